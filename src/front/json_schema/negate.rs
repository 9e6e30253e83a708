//! What a schema does not allow, for `not`, `if` and overlapping `oneOf` branches: one alternative for each keyword
//! that can be violated.

use std::rc::Rc;

use super::SchemaErrorReason as Reason;
use super::decimal::Decimal;
use super::doc::LocId;
use super::facets::{ArrayPart, Bound, Facets, ObjectPart, SomeMember, Types};
use super::keywords::Said;
use super::normalize::Normalizer;
use crate::spec::json::{Json, Object};

impl<'a> Normalizer<'a> {
    /// The alternatives of the negation of a schema object. `loc` is the negated location.
    pub(super) fn negation(&mut self, loc: LocId, object: &'a Object) -> Rc<Vec<Facets<'a>>> {
        let plain = loc.negated();
        let Said { facets, all, any, one, cases } = self.keywords(plain, object);
        let mut out = Vec::new();
        self.violations(plain, facets, &mut out);
        for schema in all {
            out.extend(self.expand(schema.negated()).iter().cloned());
        }
        for (_, branches) in any {
            let conj = self.conj(branches.into_iter().map(LocId::negated).collect());
            out.extend(self.alternatives(&conj).iter().cloned());
        }
        for branches in one {
            self.not_one(plain, &branches, &mut out);
        }
        if !cases.is_empty() {
            self.cannot(plain, "");
        }
        Rc::new(out)
    }

    /// None of the branches holds, or two of them do.
    fn not_one(&mut self, loc: LocId, branches: &[LocId], out: &mut Vec<Facets<'a>>) {
        const MAX_BRANCHES: usize = 16;
        if branches.len() > MAX_BRANCHES {
            return self.cannot(loc, "oneOf");
        }
        let none = self.conj(branches.iter().map(|b| b.negated()).collect());
        out.extend(self.alternatives(&none).iter().cloned());
        for (i, &first) in branches.iter().enumerate() {
            for &second in &branches[i + 1..] {
                // The same branch twice is one conjunct, which is right: both then hold together.
                let both = self.conj(vec![first, second]);
                out.extend(self.alternatives(&both).iter().cloned());
            }
        }
    }

    fn cannot(&mut self, loc: LocId, keyword: &'static str) {
        let what = "it would have to be negated (for `not`, `if` or overlapping `oneOf` branches)";
        self.report(loc, keyword, Reason::Unsupported(what.into()));
    }

    fn violations(&mut self, loc: LocId, facets: Facets<'a>, out: &mut Vec<Facets<'a>>) {
        let Facets { types, number, string, array, object, values, unenforced } = facets;
        let of = |types| Facets { types, ..Facets::any() };
        if let Some(values) = &values {
            // Contradicting keywords leave no value: then everything violates them.
            self.other_values(loc, values, out);
        } else if types != Types::ALL {
            out.push(of(Types::ALL.minus(types)));
        }
        for item in unenforced {
            self.cannot(item.loc, item.keyword);
        }
        if let Some(bound) = number.low {
            let mut f = of(Types::NUMBER);
            f.number.lower(Bound { exclusive: !bound.exclusive, ..bound });
            out.push(f);
        }
        if let Some(bound) = number.high {
            let mut f = of(Types::NUMBER);
            f.number.raise(Bound { exclusive: !bound.exclusive, ..bound });
            out.push(f);
        }
        for unit in number.multiples {
            let mut f = of(Types::NUMBER);
            f.number.not_multiples.push(unit);
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
        for pattern in string.patterns {
            let mut f = of(Types::STRING);
            f.string.patterns.push(super::facets::PatternUse { negated: !pattern.negated, ..pattern });
            out.push(f);
        }
        for (min, max) in lengths(array.min, array.max) {
            let mut f = of(Types::ARRAY);
            (f.array.min, f.array.max) = (min, max);
            out.push(f);
        }
        for part in &array.parts {
            self.other_elements(loc, part, out);
        }
        for &contained in &array.contains {
            let mut f = of(Types::ARRAY);
            f.array.parts.push(Rc::new(ArrayPart { prefix: Vec::new(), rest: Some(contained.negated()) }));
            out.push(f);
        }
        for (min, max) in lengths(object.min, object.max) {
            let mut f = of(Types::OBJECT);
            (f.object.min, f.object.max) = (min, max);
            out.push(f);
        }
        for name in object.required {
            let mut f = of(Types::OBJECT);
            f.object.forbidden.push(name);
            out.push(f);
        }
        if !object.names.is_empty() {
            self.cannot(loc, "propertyNames");
        }
        for part in &object.parts {
            for (pattern, schema) in &part.patterns {
                let some = SomeMember {
                    matching: Some(pattern.clone()),
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
                    not_matching: part.patterns.iter().map(|(pattern, _)| pattern.clone()).collect(),
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
    fn other_values(&mut self, loc: LocId, values: &[&'a Json], out: &mut Vec<Facets<'a>>) {
        static BOOLEANS: [Json; 2] = [Json::Bool(false), Json::Bool(true)];
        let mut rest = Facets::any();
        for value in values {
            match value {
                Json::Null => rest.types = rest.types.minus(Types::NULL),
                Json::Bool(_) => rest.types = rest.types.minus(Types::BOOLEAN),
                Json::String(text) => rest.string.excluded.push(text),
                Json::Number(n) => rest.number.excluded.push(Decimal::parse(n.as_str())),
                _ => return self.cannot(loc, "enum"),
            }
        }
        let named = |b: &Json| values.contains(&b);
        let booleans: Vec<&'a Json> = BOOLEANS.iter().filter(|b| !named(b)).collect();
        if booleans.len() == 1 {
            out.push(Facets { types: Types::BOOLEAN, values: Some(Rc::new(booleans)), ..Facets::any() });
        }
        out.push(rest);
    }

    /// Arrays with an element that this part does not allow.
    fn other_elements(&mut self, loc: LocId, part: &ArrayPart, out: &mut Vec<Facets<'a>>) {
        for (i, schema) in part.prefix.iter().enumerate() {
            let mut f = Facets { types: Types::ARRAY, ..Facets::any() };
            // The elements before are free: any location that allows all would do, and `not false` does.
            let mut prefix = vec![LocId::FALSE.negated(); i];
            prefix.push(schema.negated());
            f.array.min = i as u32 + 1;
            f.array.parts.push(Rc::new(ArrayPart { prefix, rest: None }));
            out.push(f);
        }
        match part.rest {
            Some(rest) if part.prefix.is_empty() => {
                let mut f = Facets { types: Types::ARRAY, ..Facets::any() };
                f.array.contains.push(rest.negated());
                out.push(f);
            }
            Some(_) => self.cannot(loc, "items"),
            None => {}
        }
    }
}

/// Objects with such a member.
fn with_some<'a>(some: SomeMember<'a>) -> Facets<'a> {
    let mut f = Facets { types: Types::OBJECT, ..Facets::any() };
    f.object.some.push(Rc::new(some));
    f
}
