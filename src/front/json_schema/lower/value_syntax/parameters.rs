//! Tagged parameters: an object whose outermost members are not written in braces, but each in tags
//! or as keyword arguments.
//!
//! A [`ParameterStyle`] describes how one member is written. String values may be written without
//! quotes ([`RawStrings`](super::raw_strings::RawStrings)).

use super::super::super::error::SchemaErrorReason as Reason;
use super::super::super::read::doc::{LocId, Locs};
use super::super::super::read::facets::{Facets, JsonTypes, MembershipTest, ObjectFacets};
use super::super::SchemaLowering;
use super::super::member_graph::{ObjectMember, ObjectMembers, UnwritableName};
use super::super::name_classes::uniform_undeclared;
use super::super::punctuation::Delimiters;
use super::super::value_types::ValueTypes;
use super::bare_names::bare_complement;
use super::raw_strings::restrict;
use super::style::{MemberPart, ParameterStyle};
use crate::hash::HashMap;
use crate::ir::Expr;

impl<'a> SchemaLowering<'a, '_> {
    /// The outermost object as parameters, and the types of their values.
    pub(in super::super) fn root_parameters(
        &mut self,
        style: &ParameterStyle,
    ) -> (Expr, ValueTypes) {
        let alternatives = self.normalizer.alternatives_of([LocId::ROOT]);
        let alternatives: Vec<Facets<'_>> = alternatives
            .iter()
            .map(|facets| self.with_undeclared_option(facets).into_owned())
            .collect();
        let types = self.member_types(&alternatives);
        let parts: Vec<Expr> =
            alternatives.iter().map(|facets| self.parameters(facets, &types, style)).collect();
        (Expr::Ref(self.rule("parameters".into(), Expr::alt(parts))), types)
    }

    /// The types that the values of members may have in any alternative of the schema. A reader
    /// does not know which alternative applies.
    fn member_types(&mut self, alternatives: &[Facets<'a>]) -> ValueTypes {
        let mut declared_types: HashMap<&'a str, JsonTypes> = HashMap::default();
        let mut all_others = JsonTypes::default();
        let objects: Vec<_> = alternatives
            .iter()
            .filter(|f| f.types.meets(JsonTypes::OBJECT))
            .map(|f| &f.object)
            .collect();
        for object in &objects {
            for name in self.declared_names(object) {
                let locs = self.normalizer.member_schemas(object, name);
                let types = self.value_types(&locs);
                let entry = declared_types.entry(name).or_default();
                *entry = entry.union(types);
            }
        }
        for object in &objects {
            let declared = self.declared_names(object);
            let mut others = JsonTypes::default();
            for locs in self.undeclared_schemas(object, &declared) {
                others = others.union(self.value_types(&locs));
            }
            all_others = all_others.union(others);
            let declared = MembershipTest::new(&declared, declared_types.len());
            for (name, types) in &mut declared_types {
                if !declared.contains(name) {
                    *types = types.union(others);
                }
            }
        }
        ValueTypes::of_members(declared_types, all_others)
    }

    /// The types of the values that satisfy the subschemas at `locs`.
    fn value_types(&mut self, locs: &[LocId]) -> JsonTypes {
        Self::types_of(&self.normalizer.alternatives_of(locs.iter().copied()))
    }

    /// Lowers the parameters of one alternative.
    fn parameters(
        &mut self,
        facets: &Facets<'a>,
        types: &ValueTypes,
        style: &ParameterStyle,
    ) -> Expr {
        if !facets.types.meets(JsonTypes::OBJECT) {
            return Expr::Never;
        }
        if facets.values.is_some() || !facets.object.witnesses.is_empty() {
            let what = "listed objects, or negated members, as parameters";
            self.normalizer.reader.report(self.location, "", Reason::Unsupported(what.into()));
            return Expr::Never;
        }
        self.normalizer.reader.report_unenforced(facets, JsonTypes::OBJECT);
        let object = &facets.object;
        let names = self.declared_names(object);
        let members = self.declared_members(object, &names, |lowering, name, locs, required| {
            let written = (style.name)(name).ok_or(UnwritableName)?;
            let (written, present) = (Expr::text(&written), types.of_member(name));
            let body = lowering.parameter(written, false, &locs, present, &[], style);
            Ok((body != Expr::Never).then(|| ObjectMember::new(body, required)))
        });
        let Some(members) = members else { return Expr::Never };
        let additional = self.additional_parameters(object, &names, types.of_others(), style);
        let delimiters = Delimiters {
            open: style.open.clone(),
            close: style.close.clone(),
            comma: style.between.clone(),
            empty: Expr::seq([style.open.clone(), style.close.clone()]),
        };
        self.object_graph(object, ObjectMembers { additional, ..members }, &delimiters)
    }

    /// The undeclared parameters, one for each class of names. `present`: the types that their
    /// values may have in any alternative.
    fn additional_parameters(
        &mut self,
        object: &ObjectFacets<'a>,
        declared: &[&'a str],
        present: JsonTypes,
        style: &ParameterStyle,
    ) -> Vec<ObjectMember> {
        let mut additional = Vec::new();
        for (name, locs) in self.undeclared_names(object, declared) {
            if name == Expr::Never {
                continue;
            }
            // The rule includes the terminator of the name, so that its masks do not depend on
            // what follows.
            let end = style.name_terminator();
            let name = Expr::seq([Some(name), end.cloned()].into_iter().flatten());
            let name = Expr::Ref(self.rule("name".into(), name));
            let more = &style.other_type_names;
            let body = self.parameter(name, end.is_some(), &locs, present, more, style);
            if body != Expr::Never {
                additional.push(ObjectMember::new(body, false));
            }
        }
        additional
    }

    /// Classes of undeclared names, as they are written, and the schemas of their values.
    fn undeclared_names(
        &mut self,
        object: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> Vec<(Expr, Locs)> {
        match uniform_undeclared(object) {
            Some(locs) if self.value_types(&locs) == JsonTypes::default() => Vec::new(),
            Some(locs) => {
                let excluded = declared.iter().chain(&object.forbidden).copied();
                vec![(bare_complement(excluded.collect()), locs)]
            }
            None => {
                let classes = self.undeclared_classes(object, declared).into_iter();
                classes.map(|(names, locs)| (self.bare_names(&names), locs)).collect()
            }
        }
    }

    /// Lowers one member. `is_ended`: the name includes its terminator. `present`: the types that
    /// its values may have in any alternative. `more`: further names of types.
    fn parameter(
        &mut self,
        name: Expr,
        is_ended: bool,
        locs: &[LocId],
        present: JsonTypes,
        more: &[(JsonTypes, Vec<u8>)],
        style: &ParameterStyle,
    ) -> Expr {
        let groups: Vec<(JsonTypes, Vec<u8>)> =
            match style.member.iter().find_map(|part| match part {
                MemberPart::TypeName(groups) => Some(groups.clone()),
                _ => None,
            }) {
                Some(groups) => groups,
                None => vec![(JsonTypes::ALL, Vec::new())],
            };
        let mut out = Vec::new();
        for (types, written) in groups.into_iter().chain(more.iter().cloned()) {
            let value = self.parameter_value(locs, types, present.intersect(types), style);
            if value != Expr::Never {
                let at = style.member.iter().position(|part| *part == MemberPart::Name);
                let terminator = at.filter(|_| is_ended).map(|at| at + 1);
                out.push(Expr::seq(style.member.iter().enumerate().map(|(at, part)| match part {
                    MemberPart::Fixed(_) if terminator == Some(at) => Expr::Empty,
                    MemberPart::Fixed(expr) => expr.clone(),
                    MemberPart::Name => name.clone(),
                    MemberPart::TypeName(_) => Expr::bytes(&written),
                    MemberPart::Value => value.clone(),
                })));
            }
        }
        Expr::alt(out)
    }

    /// Lowers the values of the given types that satisfy the subschemas at `locs`, with the text
    /// that ends them.
    fn parameter_value(
        &mut self,
        locs: &[LocId],
        types: JsonTypes,
        present: JsonTypes,
        style: &ParameterStyle,
    ) -> Expr {
        let conj = self.normalizer.conjunction(locs.iter().copied());
        let alternatives = self.normalizer.alternatives(&conj);
        let here = conj.first().copied().unwrap_or(self.location);
        let outer = std::mem::replace(&mut self.location, here);
        let within: Vec<Facets<'a>> =
            alternatives.iter().filter_map(|f| restrict(f, types)).collect();
        let value = match &style.raw {
            Some(raw) => self.raw_values(&within, present, raw),
            None => {
                let mut parts = Vec::new();
                within.iter().for_each(|facets| self.syntax_values(facets, &mut parts));
                self.as_rule("value", Expr::alt(parts))
            }
        };
        self.location = outer;
        value
    }

    /// Lowers values in the current syntax.
    pub(super) fn syntax_values(&mut self, facets: &Facets<'a>, parts: &mut Vec<Expr>) {
        let mut scalars = Vec::new();
        self.lower_facets(facets, parts, &mut scalars);
        parts.extend(scalars.iter().map(|word| Expr::bytes(word)));
    }
}
