//! Tagged parameters: an object whose outermost members are not written in braces, but each in tags
//! or as keyword arguments.
//!
//! A [`ParameterStyle`] describes how one member is written. String values may be written without
//! quotes ([`RawStrings`]); such a text can look like a value of another type, which
//! [`AmbiguousText`] resolves.

use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::super::error::{SchemaError, SchemaErrorReason as Reason, SchemaErrors};
use super::super::options::SchemaOptions;
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{Facets, MembershipTest, ObjectFacets, StringFacets, TypeSet};
use super::super::read::registry::Registry;
use super::SchemaLowering;
use super::attempts::retry;
use super::json_types::{JsonTypes, lookalike_dfa};
use super::member_graph::ObjectMember;
use super::object::uniform_undeclared;
use super::punctuation::Delimiters;
use super::syntax::{
    ValueSyntax, any_trigger, bare_complement, contains, trigger_texts, without_texts,
};
use crate::front::regex::spell_utf8;
use crate::fsm::{Combine, Dfa};
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::regular;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Expr, GrammarBuilder, Trigger};
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

/// Strings written without quotes and escapes.
#[derive(Clone, Debug, PartialEq)]
pub struct RawStrings {
    /// Triggers that end a value of any type, each with the expression that must follow it. A
    /// string contains none of them.
    pub end: Vec<(Trigger, Expr)>,
    /// Optional text before a value, not part of it.
    pub lead: Vec<u8>,
    /// Optional text after a value, not part of it.
    pub trail: Vec<u8>,
    /// Further texts that a string does not contain.
    pub excludes: Vec<Vec<u8>>,
    /// Whether white space may surround values that are not strings, as between JSON tokens.
    pub spaced: bool,
    /// Treatment of strings that look like values of another type.
    pub reading: AmbiguousText,
    /// Whether `True`, `False` and `None` may stand for `true`, `false` and `null`, in values that
    /// cannot be strings.
    pub python_words: bool,
}

/// Python's words for the JSON words among values.
fn python_words(values: &[Expr]) -> Vec<Expr> {
    let words = ValueSyntax::Json.words().into_iter().zip(ValueSyntax::Python.words());
    let is_there = |(json, _): &(&[u8], &[u8])| values.contains(&Expr::bytes(json));
    words.filter(is_there).map(|(_, python)| Expr::bytes(python)).collect()
}

/// Meaning of a raw text that is a string, but would be another value as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmbiguousText {
    /// The other value. Where the schema allows a value of that type, the grammar excludes the
    /// string.
    Json,
    /// The reader of the output decides. The grammar excludes no strings.
    Either,
}

impl RawStrings {
    /// The texts that end a value.
    fn terminator(&self) -> Expr {
        let end = |(trigger, rest): &(Trigger, Expr)| {
            Expr::seq([any_trigger(std::slice::from_ref(trigger)), rest.clone()])
        };
        Expr::alt(self.end.iter().map(end))
    }

    /// Whether a text is a string, and not another value of these types.
    pub(super) fn reads_as_string(&self, text: &str, kinds: JsonTypes) -> bool {
        let is_ambiguous = |others: &Dfa| others.accepts(text.chars().map(u32::from));
        !self.forbidden().iter().any(|forbidden| contains(text, forbidden))
            && !lookalike_dfa(kinds).is_some_and(is_ambiguous)
    }

    /// The texts that a string must not contain.
    pub(crate) fn forbidden(&self) -> Vec<&[u8]> {
        let ends =
            self.end.iter().flat_map(|(trigger, _)| trigger_texts(std::slice::from_ref(trigger)));
        ends.chain(self.excludes.iter().map(Vec::as_slice)).collect()
    }
}

/// As [`lower_into`](super::super::lower_into), for an object whose members are written in `style`.
///
/// The grammar excludes values of other types than objects. With [`AmbiguousText::Json`], it also
/// excludes strings that read as a value of another type that the schema allows there: `5`, where
/// the schema allows numbers and strings. Cost: as `lower_into`; strings with patterns need
/// automata of the size of their patterns, and lengths are counted.
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
            let undeclared = match uniform_undeclared(object) {
                Some(locs) => vec![locs],
                None => {
                    let classes = self.undeclared_classes(object, &declared).into_iter();
                    classes.map(|(_, locs)| locs).collect()
                }
            };
            for locs in undeclared {
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
        let declared = self.declared_names(object);
        let mut members = Vec::with_capacity(declared.len());
        let mut required_members = Vec::new();
        let required_names = MembershipTest::new(&object.required, declared.len());
        for &name in &declared {
            let locs = self.normalizer.member_schemas(object, name);
            let at =
                locs.first().copied().filter(|&at| at != LocId::FALSE).unwrap_or(self.location);
            let required = required_names.contains(&name);
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
                if required {
                    required_members.push(members.len());
                }
                members.push(ObjectMember { first: (0, body), more: Vec::new(), required });
            } else if required {
                self.normalizer.reader.conflict(
                    at,
                    "",
                    &format!("required member {name:?} allows no value"),
                );
                return Expr::Never;
            }
        }
        let mut additional = Vec::new();
        for (name, locs) in self.undeclared_names(object, &declared) {
            if name != Expr::Never {
                // The rule includes the terminator of the name, so that its masks do not depend on
                // what follows.
                let end = style.name_terminator();
                let name = Expr::seq([Some(name), end.cloned()].into_iter().flatten());
                let name = (Expr::Ref(self.rule("name".into(), name)), end.is_some());
                let body = self.parameter(name, &locs, (types.others, &style.other_kinds), style);
                if body != Expr::Never {
                    additional.push(ObjectMember {
                        first: (0, body),
                        more: Vec::new(),
                        required: false,
                    });
                }
            }
        }
        let delimiters = Delimiters {
            open: style.open.clone(),
            close: style.close.clone(),
            comma: style.between.clone(),
            empty: Expr::seq([style.open.clone(), style.close.clone()]),
        };
        self.object_graph(object, (members, &required_members, additional), (&delimiters, false))
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
        let at = std::mem::replace(&mut self.location, here);
        let within: Vec<Facets<'a>> =
            alternatives.iter().filter_map(|f| restrict(f, kinds.types())).collect();
        let mut parts = Vec::new();
        let mut ends = None;
        let present = match &style.raw {
            Some(RawStrings { reading: AmbiguousText::Either, .. }) => JsonTypes::STRING,
            _ => present,
        };
        for f in &within {
            let Some(raw) = &style.raw else {
                self.syntax_values(f, &mut parts);
                continue;
            };
            if let Some(rest) = restrict(f, TypeSet::ALL.minus(TypeSet::STRING)) {
                let mut plain = Vec::new();
                self.syntax_values(&rest, &mut plain);
                if raw.python_words && !present.meets(JsonTypes::STRING) {
                    plain.extend(python_words(&plain));
                }
                let gap = if raw.spaced { self.gap() } else { Expr::Empty };
                parts.push(Expr::seq([
                    optional(&raw.lead),
                    gap.clone(),
                    Expr::alt(plain),
                    gap,
                    optional(&raw.trail),
                ]));
            }
            if let Some(text) = restrict(f, TypeSet::STRING) {
                self.normalizer.reader.report_unenforced(&text, TypeSet::STRING);
                if present == JsonTypes::STRING && text.values.is_none() && text.string.is_free() {
                    ends = Some(raw.end.clone());
                } else {
                    parts.push(self.raw_string(&text, present, raw));
                }
            }
        }
        self.location = at;
        if let (Some(stops), Some(raw)) = (ends, &style.raw) {
            // Any text is allowed, which includes all other alternatives.
            let mut tags = Vec::new();
            let mut bare = Vec::new();
            for (trigger, rest) in stops {
                match rest {
                    Expr::Empty => bare.push(trigger),
                    rest => tags.push((trigger, self.rule("end".into(), rest))),
                }
            }
            let excludes = raw.excludes.clone();
            let dispatch = Dispatch {
                tags,
                stops: bare,
                excludes,
                after: AfterTag::End,
                end: DispatchEnd::AtStop,
            };
            let body = Expr::Dispatch(Box::new(dispatch));
            return Expr::Ref(self.rule("text".into(), body));
        }
        let body = Expr::alt(parts);
        if body == Expr::Never {
            return body;
        }
        let value = Expr::Ref(self.rule("value".into(), body));
        match &style.raw {
            Some(raw) => Expr::seq([value, raw.terminator()]),
            None => value,
        }
    }

    /// Lowers values in the style's syntax.
    fn syntax_values(&mut self, facets: &Facets<'a>, parts: &mut Vec<Expr>) {
        let mut scalars = Vec::new();
        self.lower_facets(facets, parts, &mut scalars);
        parts.extend(scalars.iter().map(|word| Expr::bytes(word)));
    }

    /// Lowers a raw string, except texts that a reader would take for another value.
    pub(super) fn raw_string(
        &mut self,
        facets: &Facets<'a>,
        kinds: JsonTypes,
        raw: &RawStrings,
    ) -> Expr {
        let forbidden = raw.forbidden();
        if let Some(values) = &facets.values {
            let texts = values.iter().filter_map(|value| value.as_str());
            let unambiguous = texts.filter(|text| {
                self.normalizer.accepts_text(&facets.string, text)
                    && raw.reads_as_string(text, kinds)
            });
            return Expr::alt(unambiguous.flat_map(|text| framed_word(text, raw)));
        }
        if !facets.string.is_free() {
            return self.raw_string_expr(&facets.string, &forbidden, kinds, raw);
        }
        // An unconstrained string does not depend on the schema. Cached, because most automata of a
        // request are of this form.
        let free = StringFacets::default();
        let key = FreeTextKey {
            kinds,
            forbidden: forbidden.iter().map(|text| text.to_vec()).collect(),
            frame: [raw.lead.clone(), raw.trail.clone()],
            limit: self.normalizer.reader.limits.automaton_states,
        };
        if let Some(cached) = free_text_cache().get(&key).cloned() {
            return (*cached).clone();
        }
        // As an automaton: an expression would be copied, compared and walked for each string.
        let expr = self.raw_string_expr(&free, &forbidden, kinds, raw);
        let expr = match regular::automaton(&expr, &[], key.limit) {
            Ok(dfa) if expr != Expr::Never => Expr::Automaton(Arc::new(dfa)),
            _ => expr,
        };
        let mut cache = free_text_cache();
        if expr != Expr::Never && cache.len() < MAX_CACHED_FREE_TEXTS {
            cache.insert(key, Arc::new(expr.clone()));
        }
        expr
    }

    /// Lowers a raw string with the given facets.
    fn raw_string_expr(
        &mut self,
        string: &StringFacets<'a>,
        forbidden: &[&[u8]],
        kinds: JsonTypes,
        raw: &RawStrings,
    ) -> Expr {
        let parts = self.raw_text_parts(string, forbidden).into_iter();
        let spelt = parts.map(|(texts, lengths)| {
            let framed = self.framed_text((*texts).clone(), lengths, kinds, raw);
            framed.unwrap_or_else(|error| self.too_large(&error))
        });
        Expr::alt(spelt.collect::<Vec<_>>())
    }

    /// Spells the texts of an automaton with the optional lead and trail.
    fn framed_text(
        &mut self,
        mut texts: Dfa,
        lengths: (u32, Option<u32>),
        kinds: JsonTypes,
        raw: &RawStrings,
    ) -> Result<Expr, crate::fsm::TooLarge> {
        let limit = self.normalizer.reader.limits.automaton_states;
        if let Some(others) = lookalike_dfa(kinds) {
            texts = texts.combine(others, Combine::Minus, limit)?;
        }
        let mut out = Vec::new();
        for (trail, texts) in optional_frame(texts, (true, &raw.trail, false), limit)? {
            for (lead, texts) in optional_frame(texts, (false, &raw.lead, true), limit)? {
                let spelt = self.spell_of_length(&texts, lengths, &mut spell_utf8)?;
                out.push(Expr::seq([lead, spelt, trail.clone()]));
            }
        }
        Ok(Expr::alt(out))
    }
}

/// Texts with an optional lead or trail. Without it, a text must not begin or end like one that has
/// it.
fn optional_frame(
    texts: Dfa,
    (before, written, after): (bool, &[u8], bool),
    limit: usize,
) -> Result<Vec<(Expr, Dfa)>, crate::fsm::TooLarge> {
    if written.is_empty() {
        return Ok(vec![(Expr::Empty, texts)]);
    }
    Ok(match without_texts(&texts, (before, &[written], after), limit)? {
        None => vec![(optional(written), texts)],
        Some(bare) => vec![(Expr::bytes(written), texts), (Expr::Empty, bare)],
    })
}

/// Cache key of raw strings without facets.
#[derive(PartialEq, Eq, Hash)]
struct FreeTextKey {
    kinds: JsonTypes,
    forbidden: Vec<Vec<u8>>,
    /// Lead and trail.
    frame: [Vec<u8>; 2],
    limit: usize,
}

/// Maximum number of cached raw strings. Wire formats and sets of types are few.
const MAX_CACHED_FREE_TEXTS: usize = 256;

/// The raw strings without facets built in this process.
fn free_text_cache() -> MutexGuard<'static, HashMap<FreeTextKey, Arc<Expr>>> {
    static CACHE: LazyLock<Mutex<HashMap<FreeTextKey, Arc<Expr>>>> = LazyLock::new(Mutex::default);
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One text with and without the lead and the trail. Without them, it must not begin or end like a
/// text that has them.
fn framed_word(text: &str, raw: &RawStrings) -> impl Iterator<Item = Expr> {
    let word = |lead: &[u8], trail: &[u8]| Expr::bytes(&[lead, text.as_bytes(), trail].concat());
    let bare_lead = !raw.lead.is_empty() && !text.as_bytes().starts_with(&raw.lead);
    let bare_trail = !raw.trail.is_empty() && !text.as_bytes().ends_with(&raw.trail);
    let frames = [
        Some(word(&raw.lead, &raw.trail)),
        bare_trail.then(|| word(&raw.lead, b"")),
        bare_lead.then(|| word(b"", &raw.trail)),
        (bare_lead && bare_trail).then(|| word(b"", b"")),
    ];
    frames.into_iter().flatten()
}

/// The text or nothing.
fn optional(text: &[u8]) -> Expr {
    Expr::optional(Expr::bytes(text))
}

/// The types of the values that facets allow.
pub(super) fn allowed_types(facets: &Facets<'_>) -> TypeSet {
    match &facets.values {
        Some(values) => values.iter().fold(TypeSet::NONE, |all, value| all.or(TypeSet::of(value))),
        None => facets.types,
    }
}

/// Restricts facets to values of the given types; `None` if no value remains.
fn restrict<'a>(facets: &Facets<'a>, types: TypeSet) -> Option<Facets<'a>> {
    let mut out = facets.clone();
    out.types = out.types.and(types);
    if let Some(values) = &facets.values {
        let restricted: Vec<&Json> =
            values.iter().copied().filter(|value| types.meets(TypeSet::of(value))).collect();
        if restricted.is_empty() {
            return None;
        }
        out.values = Some(Rc::new(restricted));
    }
    (!out.types.is_none()).then_some(out)
}
