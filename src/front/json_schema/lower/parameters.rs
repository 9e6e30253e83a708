//! Tagged parameters: an object whose outermost members are not written in braces, but each in tags
//! or as keyword arguments.
//!
//! A [`ParameterStyle`] describes how one member is written. String values may be written without
//! quotes ([`RawStrings`]).

use std::sync::Arc;

use super::super::error::{SchemaError, SchemaErrorReason as Reason, SchemaErrors};
use super::super::options::SchemaOptions;
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{Facets, MembershipTest, ObjectFacets, TypeSet};
use super::super::read::registry::Registry;
use super::SchemaLowering;
use super::attempts::retry;
use super::json_types::JsonTypes;
use super::member_graph::{ObjectMember, ObjectMembers};
use super::name_classes::uniform_undeclared;
use super::punctuation::Delimiters;
use super::raw_strings::{RawStrings, restrict};
use super::syntax::{ValueSyntax, bare_complement};
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Expr, GrammarBuilder};
use crate::limits::Limits;
use crate::spec::json::Json;

/// The text of a declared name; `None` if it cannot be written.
pub type NameWriter = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The texts around and between the members of the outermost object. No expression refers to a
/// rule, if the parameters are [deferred](super::super::defer_parameters).
#[derive(Clone)]
pub struct ParameterStyle {
    /// Before the first member; also written if there are no members.
    pub open: Expr,
    /// Between consecutive members.
    pub between: Expr,
    /// After the last member; also written if there are no members.
    pub close: Expr,
    /// The parts of one member, in order. They include a name and a value.
    pub member: Vec<MemberPart>,
    /// If set, a member's value that is a string is written without quotes and escapes.
    pub raw: Option<RawStrings>,
    /// Syntax of all other values.
    pub syntax: ValueSyntax,
    /// Further names of types ([`MemberPart::Kind`]), for members that are not declared.
    pub other_kinds: Vec<(JsonTypes, Vec<u8>)>,
    /// How declared names are written.
    pub name: NameWriter,
}

impl ParameterStyle {
    /// The fixed bytes directly after a name, if any.
    fn name_terminator(&self) -> Option<&Expr> {
        let mut after = self.member.iter().skip_while(|part| **part != MemberPart::Name).skip(1);
        match after.next() {
            Some(MemberPart::Fixed(expr @ Expr::Bytes(_))) => Some(expr),
            _ => None,
        }
    }
}

/// The result of [`lower_parameters`].
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredParameters {
    /// The rule of all parameters.
    pub rule: RuleId,
    /// The types of their values.
    pub types: ParameterTypes,
    /// Keywords that are not enforced, with their pointers; empty with
    /// [`Policy::Strict`](super::super::Policy::Strict).
    pub relaxed: Vec<SchemaError>,
}

/// The types that the values of parameters may have. Raw values are read accordingly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterTypes {
    /// Of declared names, in ascending order of the names.
    pub declared: Vec<(String, JsonTypes)>,
    /// Of all other names.
    pub others: JsonTypes,
}

/// A part of a member.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberPart {
    /// A fixed text.
    Fixed(Expr),
    /// The member's name.
    Name,
    /// The name of the value's type. Values of a type in none of the sets cannot be written.
    Kind(Vec<(JsonTypes, Vec<u8>)>),
    /// The value; with [`RawStrings`], also the text that ends it.
    Value,
}

/// As [`lower_into`](super::super::lower_into), for an object whose members are written in `style`.
///
/// The grammar excludes values of other types than objects. With
/// [`AmbiguousText::Json`](super::raw_strings::AmbiguousText::Json), it also excludes strings that
/// read as a value of another type that the schema allows there: `5`, where the schema allows
/// numbers and strings. Cost: as `lower_into`; strings with patterns need automata of the size of
/// their patterns, and lengths are counted.
pub fn lower_parameters(
    builder: &mut GrammarBuilder,
    source: (&Json, &Registry),
    options: &SchemaOptions,
    limits: &Limits,
    style: &ParameterStyle,
) -> Result<LoweredParameters, SchemaErrors> {
    let ((rule, types), relaxed) = retry(options, |attempt| {
        let mut types = MemberTypes::default();
        let lowering = SchemaLowering::new(builder, source, *options, limits, attempt);
        let (rule, relaxed) =
            lowering.with_syntax(style.syntax.clone()).lower_root_with(|lowering| {
                let conj = lowering.normalizer.conjunction(vec![LocId::ROOT]);
                let alternatives = lowering.normalizer.alternatives(&conj);
                let alternatives: Vec<Facets<'_>> = alternatives
                    .iter()
                    .map(|facets| lowering.close_undeclared(facets).into_owned())
                    .collect();
                types = lowering.member_types(&alternatives);
                let parts: Vec<Expr> = alternatives
                    .iter()
                    .map(|facets| lowering.parameters(facets, &types, style))
                    .collect();
                Expr::Ref(lowering.rule("parameters".into(), Expr::alt(parts)))
            })?;
        Ok(((rule, types), relaxed))
    })?;
    let mut declared: Vec<(String, JsonTypes)> =
        types.declared.into_iter().map(|(name, k)| (name.to_owned(), k)).collect();
    declared.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let types = ParameterTypes { declared, others: types.others };
    Ok(LoweredParameters { rule, types, relaxed })
}

/// The types that the values of members may have in any alternative of the schema. A reader does
/// not know which alternative applies.
#[derive(Default)]
struct MemberTypes<'a> {
    /// By declared name.
    declared: HashMap<&'a str, JsonTypes>,
    /// Of all other names.
    others: JsonTypes,
}

/// As [`lower_into_reported`](super::super::lower_into_reported), in another syntax than JSON.
pub fn lower_syntax(
    builder: &mut GrammarBuilder,
    source: (&Json, &Registry),
    options: &SchemaOptions,
    limits: &Limits,
    syntax: &ValueSyntax,
) -> Result<(RuleId, Vec<SchemaError>), SchemaErrors> {
    retry(options, |attempt| {
        let lowering = SchemaLowering::new(builder, source, *options, limits, attempt);
        lowering.with_syntax(syntax.clone()).lower_root()
    })
}

impl<'a> SchemaLowering<'a, '_> {
    /// The types of all members over all alternatives.
    fn member_types(&mut self, alternatives: &[Facets<'a>]) -> MemberTypes<'a> {
        let mut types = MemberTypes::default();
        let objects: Vec<_> = alternatives
            .iter()
            .filter(|f| f.types.meets(TypeSet::OBJECT))
            .map(|f| &f.object)
            .collect();
        for object in &objects {
            for name in self.declared_names(object) {
                let locs = self.normalizer.member_schemas(object, name);
                let kinds = self.value_types(&locs);
                let entry = types.declared.entry(name).or_default();
                *entry = entry.with(kinds);
            }
        }
        for object in &objects {
            let declared = self.declared_names(object);
            let mut others = JsonTypes::default();
            for locs in self.undeclared_schemas(object, &declared) {
                others = others.with(self.value_types(&locs));
            }
            types.others = types.others.with(others);
            let declared = MembershipTest::new(&declared, types.declared.len());
            for (name, kinds) in &mut types.declared {
                if !declared.contains(name) {
                    *kinds = kinds.with(others);
                }
            }
        }
        types
    }

    /// The types of the values that satisfy the subschemas at `locs`.
    fn value_types(&mut self, locs: &[LocId]) -> JsonTypes {
        let conj = self.normalizer.conjunction(locs);
        let alternatives = self.normalizer.alternatives(&conj);
        Self::kinds_of(&alternatives)
    }

    /// Lowers the parameters of one alternative.
    fn parameters(
        &mut self,
        facets: &Facets<'a>,
        types: &MemberTypes<'a>,
        style: &ParameterStyle,
    ) -> Expr {
        if !facets.types.meets(TypeSet::OBJECT) {
            return Expr::Never;
        }
        if facets.values.is_some() || !facets.object.witnesses.is_empty() {
            let what = "listed objects, or negated members, as parameters";
            self.normalizer.reader.report(self.location, "", Reason::Unsupported(what.into()));
            return Expr::Never;
        }
        self.normalizer.reader.report_unenforced(facets, TypeSet::OBJECT);
        let object = &facets.object;
        let names = self.declared_names(object);
        let Some((declared, required)) = self.declared_parameters(object, &names, types, style)
        else {
            return Expr::Never;
        };
        let additional = self.additional_parameters(object, &names, types.others, style);
        let delimiters = Delimiters {
            open: style.open.clone(),
            close: style.close.clone(),
            comma: style.between.clone(),
            empty: Expr::seq([style.open.clone(), style.close.clone()]),
        };
        let members = ObjectMembers { declared, required, additional, distinct_names: false };
        self.object_graph(object, members, &delimiters)
    }

    /// The declared parameters that can be present, and the indices of the required ones. `None`: a
    /// required one allows no value.
    fn declared_parameters(
        &mut self,
        object: &ObjectFacets<'a>,
        names: &[&'a str],
        types: &MemberTypes<'a>,
        style: &ParameterStyle,
    ) -> Option<(Vec<ObjectMember>, Vec<usize>)> {
        let (mut members, mut required) = (Vec::with_capacity(names.len()), Vec::new());
        let required_names = MembershipTest::new(&object.required, names.len());
        for &name in names {
            let locs = self.normalizer.member_schemas(object, name);
            let at =
                locs.first().copied().filter(|&at| at != LocId::FALSE).unwrap_or(self.location);
            let is_required = required_names.contains(&name);
            let body = match (self.normalizer.accepts_name(object, name), (style.name)(name)) {
                (false, _) => Expr::Never,
                (true, Some(written)) => {
                    let kinds = types.declared.get(name).copied().unwrap_or_default();
                    self.parameter((Expr::text(&written), false), &locs, (kinds, &[]), style)
                }
                (true, None) => {
                    let what = format!("the wire format cannot write the name {name:?}");
                    self.normalizer.reader.report(at, "", Reason::Unsupported(what));
                    Expr::Never
                }
            };
            if body != Expr::Never {
                required.extend(is_required.then_some(members.len()));
                members.push(ObjectMember::new(body, is_required));
            } else if is_required {
                let what = format!("required member {name:?} allows no value");
                self.normalizer.reader.conflict(at, "", &what);
                return None;
            }
        }
        Some((members, required))
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
            let name = (Expr::Ref(self.rule("name".into(), name)), end.is_some());
            let body = self.parameter(name, &locs, (present, &style.other_kinds), style);
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

    /// Lowers one member. `ended`: the name includes its terminator. `present`: the types that its
    /// values may have in any alternative. `more`: further names of types.
    fn parameter(
        &mut self,
        (name, ended): (Expr, bool),
        locs: &[LocId],
        (present, more): (JsonTypes, &[(JsonTypes, Vec<u8>)]),
        style: &ParameterStyle,
    ) -> Expr {
        let groups: Vec<(JsonTypes, Vec<u8>)> =
            match style.member.iter().find_map(|part| match part {
                MemberPart::Kind(groups) => Some(groups.clone()),
                _ => None,
            }) {
                Some(groups) => groups,
                None => vec![(JsonTypes::ALL, Vec::new())],
            };
        let mut out = Vec::new();
        for (kinds, written) in groups.into_iter().chain(more.iter().cloned()) {
            let value = self.parameter_value(locs, kinds, present.within(kinds), style);
            if value != Expr::Never {
                let at = style.member.iter().position(|part| *part == MemberPart::Name);
                let terminator = at.filter(|_| ended).map(|at| at + 1);
                out.push(Expr::seq(style.member.iter().enumerate().map(|(at, part)| match part {
                    MemberPart::Fixed(_) if terminator == Some(at) => Expr::Empty,
                    MemberPart::Fixed(expr) => expr.clone(),
                    MemberPart::Name => name.clone(),
                    MemberPart::Kind(_) => Expr::bytes(&written),
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
        kinds: JsonTypes,
        present: JsonTypes,
        style: &ParameterStyle,
    ) -> Expr {
        let conj = self.normalizer.conjunction(locs);
        let alternatives = self.normalizer.alternatives(&conj);
        let here = conj.first().copied().unwrap_or(self.location);
        let outer = std::mem::replace(&mut self.location, here);
        let within: Vec<Facets<'a>> =
            alternatives.iter().filter_map(|f| restrict(f, kinds.types())).collect();
        let value = match &style.raw {
            Some(raw) => self.raw_values(&within, present, raw),
            None => {
                let mut parts = Vec::new();
                within.iter().for_each(|facets| self.syntax_values(facets, &mut parts));
                self.value_rule(parts)
            }
        };
        self.location = outer;
        value
    }

    /// The union of values, as a rule.
    pub(super) fn value_rule(&mut self, parts: Vec<Expr>) -> Expr {
        match Expr::alt(parts) {
            Expr::Never => Expr::Never,
            body => Expr::Ref(self.rule("value".into(), body)),
        }
    }

    /// Lowers values in the current syntax.
    pub(super) fn syntax_values(&mut self, facets: &Facets<'a>, parts: &mut Vec<Expr>) {
        let mut scalars = Vec::new();
        self.lower_facets(facets, parts, &mut scalars);
        parts.extend(scalars.iter().map(|word| Expr::bytes(word)));
    }
}
