//! What a schema does not allow, for `not`, `if` and overlapping `oneOf` branches: one alternative for each keyword
//! that can be violated.

use std::rc::Rc;

use super::decimal::Decimal;
use super::doc::LocId;
use super::facets::{
    ArrayPart, Bound, Contains, Covers, Facets, NameTest, ObjectPart, SomeMember, Types,
};
use super::keywords::{Case, Said};
use super::normalize::{Alternatives, Locs, Normalizer};
use crate::spec::json::{Json, Object};

impl<'a> Normalizer<'a> {
    /// The alternatives of the negation of a schema object. `loc` is the negated location.
    pub(super) fn negation(&mut self, loc: LocId, object: &'a Object) -> Rc<Vec<Facets<'a>>> {
        let plain = loc.negated();
        let Said { facets, all, any, one, cases, unevaluated_properties, unevaluated_items } =
            self.keywords(plain, object);
        let mut out = Vec::new();
        self.violations(plain, facets, &mut out);
        for schema in all {
            out.extend(self.expand(schema.negated()).iter().cloned());
        }
        for (_, branches) in any {
            let conj = self.conj(branches.into_iter().map(LocId::negated).collect::<Locs>());
            out.extend(self.alternatives(&conj).iter().cloned());
        }
        for branches in one {
            self.not_one(plain, &branches, &mut out);
        }
        for case in cases {
            self.not_case(case, &mut out);
        }
        for (keyword, schema) in [
            ("unevaluatedProperties", unevaluated_properties),
            ("unevaluatedItems", unevaluated_items),
        ] {
            if schema.is_some_and(|schema| !self.doc.allows_all(schema)) {
                self.cannot(plain, keyword, &mut out);
            }
        }
        if self.evaluation {
            out = out.iter().map(Facets::unseen).collect();
        }
        Rc::new(out)
    }

    /// A consequence fails although its condition holds.
    fn not_case(&mut self, case: Case<'a>, out: &mut Vec<Facets<'a>>) {
        match case {
            Case::If { condition, then, otherwise } => {
                for (condition, consequence) in
                    [(condition, then), (condition.negated(), otherwise)]
                {
                    if let Some(consequence) = consequence {
                        let conj = self.conj(vec![condition, consequence.negated()]);
                        out.extend(self.alternatives(&conj).iter().cloned());
                    }
                }
            }
            Case::Dependent { trigger, names, schema } => {
                let mut present = Facets { types: Types::OBJECT, ..Facets::any() };
                present.object.required.push(trigger);
                for name in names {
                    let mut f = present.clone();
                    f.object.forbidden.push(name);
                    out.push(f);
                }
                if let Some(schema) = schema {
                    out.extend(
                        self.expand(schema.negated()).iter().map(|f| present.clone().conjoin(f)),
                    );
                }
            }
        }
    }

    /// None of the branches holds, or two of them do.
    fn not_one(&mut self, loc: LocId, branches: &[LocId], out: &mut Vec<Facets<'a>>) {
        const MAX_BRANCHES: usize = 16;
        if branches.len() > MAX_BRANCHES {
            return self.cannot(loc, "oneOf", out);
        }
        let none = self.conj(branches.iter().map(|b| b.negated()).collect::<Locs>());
        out.extend(self.alternatives(&none).iter().cloned());
        for (i, &first) in branches.iter().enumerate() {
            for &second in &branches[i + 1..] {
                // The same branch twice is one conjunct, which is right: both then hold together.
                let both = self.conj(vec![first, second]);
                out.extend(self.alternatives(&both).iter().cloned());
            }
        }
    }

    /// Not negated: refused, or everything is allowed.
    fn cannot(&mut self, loc: LocId, keyword: &'static str, out: &mut Vec<Facets<'a>>) {
        let what = "it would have to be negated (for `not`, `if` or overlapping `oneOf` branches)";
        self.unsupported(loc, keyword, what.into());
        out.push(Facets::any());
    }

    fn violations(&mut self, loc: LocId, facets: Facets<'a>, out: &mut Vec<Facets<'a>>) {
        let Facets { types, number, string, array, object, values, unenforced } = facets;
        let of = |types| Facets { types, ..Facets::any() };
        if let Some(values) = &values {
            // Contradicting keywords leave no value: then everything violates them.
            out.extend(self.other_values(loc, values).iter().cloned());
        } else if types != Types::ALL {
            out.push(of(Types::ALL.minus(types)));
        }
        for item in unenforced {
            self.cannot(item.loc, item.keyword, out);
        }
        if let Some(bound) = number.low.clone() {
            let mut f = of(Types::NUMBER);
            f.number.lower(Bound { exclusive: !bound.exclusive, ..bound });
            out.push(f);
        }
        if let Some(bound) = number.high.clone() {
            let mut f = of(Types::NUMBER);
            f.number.raise(Bound { exclusive: !bound.exclusive, ..bound });
            out.push(f);
        }
        for unit in &number.multiples {
            let mut f = of(Types::NUMBER);
            f.number.not_multiples.push(unit.clone());
            out.push(f);
        }
        let lengths = |min: u32, max: Option<u32>| {
            let below = (min > 0).then(|| (0, Some(min - 1)));
            let above = max.filter(|&max| max < u32::MAX).map(|max| (max + 1, None));
            below.into_iter().chain(above)
        };
        for (min, max) in lengths(string.min, string.max) {
            let mut f = of(Types::STRING);
            (f.string.min, f.string.max) = (min, max);
            out.push(f);
        }
        for pattern in &string.patterns {
            let mut f = of(Types::STRING);
            f.string
                .patterns
                .push(super::facets::PatternUse { negated: !pattern.negated, ..pattern.clone() });
            out.push(f);
        }
        for (min, max) in lengths(array.min, array.max) {
            let mut f = of(Types::ARRAY);
            (f.array.min, f.array.max) = (min, max);
            out.push(f);
        }
        for part in &array.parts {
            self.other_elements(part, out);
        }
        for contains in &array.contains {
            let below = (contains.min > 0).then(|| (0, Some(contains.min - 1)));
            let above = contains.max.filter(|&max| max < u32::MAX).map(|max| (max + 1, None));
            for (min, max) in below.into_iter().chain(above) {
                let mut f = of(Types::ARRAY);
                f.array.contains.push(Contains {
                    min,
                    max,
                    covers: Covers::Nothing,
                    ..contains.clone()
                });
                out.push(f);
            }
        }
        if let Some(loc) = array.unique {
            self.cannot(loc, "uniqueItems", out);
        }
        for (min, max) in lengths(object.min, object.max) {
            let mut f = of(Types::OBJECT);
            (f.object.min, f.object.max) = (min, max);
            out.push(f);
        }
        for &name in &object.required {
            let mut f = of(Types::OBJECT);
            f.object.forbidden.push(name);
            out.push(f);
        }
        for &names in &object.names {
            out.push(with_some(SomeMember {
                matching: Some(NameTest::Schema(names.negated())),
                not_named: Vec::new(),
                not_matching: Vec::new(),
                schema: LocId::TRUE,
            }));
        }
        for part in &object.parts {
            for (pattern, schema) in &part.patterns {
                let some = SomeMember {
                    matching: Some(NameTest::Pattern(pattern.clone())),
                    not_named: Vec::new(),
                    not_matching: Vec::new(),
                    schema: schema.negated(),
                };
                out.push(with_some(some));
            }
            if let Some(schema) = part.additional {
                let some = SomeMember {
                    matching: None,
                    not_named: part.properties.iter().map(|(name, _)| *name).collect(),
                    not_matching: part
                        .patterns
                        .iter()
                        .map(|(p, _)| NameTest::Pattern(p.clone()))
                        .collect(),
                    schema: schema.negated(),
                };
                out.push(with_some(some));
            }
            for &(name, schema) in &part.properties {
                let mut f = of(Types::OBJECT);
                f.object.required.push(name);
                f.object.parts.push(Rc::new(ObjectPart::new(vec![(name, schema.negated())])));
                out.push(f);
            }
        }
    }

    /// Everything but these values.
    pub(super) fn other_values(&mut self, loc: LocId, values: &[&'a Json]) -> Alternatives<'a> {
        static BOOLEANS: [Json; 2] = [Json::Bool(false), Json::Bool(true)];
        let mut rest = Facets::any();
        let mut compound = Vec::new();
        for &value in values {
            match value {
                Json::Null => rest.types = rest.types.minus(Types::NULL),
                Json::Bool(_) => rest.types = rest.types.minus(Types::BOOLEAN),
                Json::String(text) => rest.string.excluded.push(text),
                Json::Number(n) => rest.number.excluded.push(Decimal::parse(n.as_str())),
                Json::Array(items) => compound.push(self.other_arrays(loc, items)),
                Json::Object(object) => compound.push(self.other_objects(loc, object)),
            }
        }
        let named = |b: &Json| values.contains(&b);
        let booleans: Vec<&'a Json> = BOOLEANS.iter().filter(|b| !named(b)).collect();
        let mut out = vec![rest];
        if booleans.len() == 1 {
            out.push(Facets {
                types: Types::BOOLEAN,
                values: Some(Rc::new(booleans)),
                ..Facets::any()
            });
        }
        let mut out = Rc::new(out);
        for others in compound {
            out = self.product(out, others.into(), loc, "enum");
        }
        out
    }

    fn other_arrays(&mut self, loc: LocId, items: &'a [Json]) -> Vec<Facets<'a>> {
        let of = |types| Facets { types, ..Facets::any() };
        let length = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let mut out = vec![of(Types::ALL.minus(Types::ARRAY)), of(Types::ARRAY)];
        out[1].array.min = length.saturating_add(1);
        if length > 0 {
            let mut shorter = of(Types::ARRAY);
            shorter.array.max = Some(length - 1);
            out.push(shorter);
        }
        for (i, item) in items.iter().enumerate() {
            let mut f = of(Types::ARRAY);
            (f.array.min, f.array.max) = (length, Some(length));
            let mut prefix = vec![LocId::TRUE; i];
            prefix.push(self.doc.value(loc, item).negated());
            f.array.parts.push(Rc::new(ArrayPart { prefix, rest: None, covers: Covers::Nothing }));
            out.push(f);
        }
        out
    }

    fn other_objects(&mut self, loc: LocId, object: &'a Object) -> Vec<Facets<'a>> {
        let of = |types| Facets { types, ..Facets::any() };
        let mut out = vec![of(Types::ALL.minus(Types::OBJECT))];
        out.push(with_some(SomeMember {
            matching: None,
            not_named: object.iter().map(|(name, _)| name).collect(),
            not_matching: Vec::new(),
            schema: LocId::TRUE,
        }));
        for (name, value) in object.iter() {
            let mut without = of(Types::OBJECT);
            without.object.forbidden.push(name);
            out.push(without);
            let mut differs = of(Types::OBJECT);
            differs.object.required.push(name);
            let mut part = ObjectPart::new(vec![(name, self.doc.value(loc, value).negated())]);
            part.covers = Covers::Nothing;
            differs.object.parts.push(Rc::new(part));
            out.push(differs);
        }
        out
    }

    /// Arrays with an element that this part does not allow.
    fn other_elements(&mut self, part: &ArrayPart, out: &mut Vec<Facets<'a>>) {
        for (i, schema) in part.prefix.iter().enumerate() {
            let mut f = Facets { types: Types::ARRAY, ..Facets::any() };
            let mut prefix = vec![LocId::TRUE; i];
            prefix.push(schema.negated());
            f.array.min = i as u32 + 1;
            f.array.parts.push(Rc::new(ArrayPart { prefix, rest: None, covers: Covers::Nothing }));
            out.push(f);
        }
        if let Some(rest) = part.rest {
            let mut f = Facets { types: Types::ARRAY, ..Facets::any() };
            let from = part.prefix.len() as u32;
            let contains = Contains {
                schema: rest.negated(),
                min: 1,
                max: None,
                from,
                covers: Covers::Nothing,
            };
            f.array.contains.push(contains);
            out.push(f);
        }
    }
}

/// Objects with such a member.
fn with_some<'a>(some: SomeMember<'a>) -> Facets<'a> {
    let mut f = Facets { types: Types::OBJECT, ..Facets::any() };
    f.object.some.push(Rc::new(some));
    f
}
