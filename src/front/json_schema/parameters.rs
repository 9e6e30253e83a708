//! An object whose outermost members do not stand in braces: parameters in tags, or keyword arguments.

use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::SchemaErrorReason as Reason;
use super::doc::LocId;
use super::facets::{Among, Facets, StringFacets, Types};
use super::lower::Lowering;
use super::members::Member;
use super::normalize::Needs;
use super::punctuation::Frame;
use super::syntax::{Syntax, around, contains, either, lookalikes, spelled};
use super::{Policy, Registry, SchemaErrors, SchemaOptions};
use crate::front::regex::{by_target, spell_dfa, spell_utf8};
use crate::fsm::{Combine, Dfa};
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::regular;
use crate::ir::{AfterTag, Dispatch, DispatchEnd, Expr, GrammarBuilder, Graph, Trigger};
use crate::limits::Limits;
use crate::spec::json::Json;

/// A set of JSON types, for [`Parameters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// `null`.
    pub const NULL: Kinds = Kinds(1);
    /// Booleans.
    pub const BOOLEAN: Kinds = Kinds(2);
    /// Numbers, whole or not.
    pub const NUMBER: Kinds = Kinds(4);
    /// Strings.
    pub const STRING: Kinds = Kinds(8);
    /// Arrays.
    pub const ARRAY: Kinds = Kinds(16);
    /// Objects.
    pub const OBJECT: Kinds = Kinds(32);
    /// All of them.
    pub const ALL: Kinds = Kinds(63);
    /// Whole numbers, as a word of [`Parameters::other_kinds`] for them. In no other set.
    pub const INTEGER: Kinds = Kinds(64);

    /// The set with these bits, lowest first in the order of the constants.
    pub const fn from_bits(bits: u8) -> Kinds {
        Kinds(bits & Kinds::ALL.0)
    }

    /// Its bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both sets.
    pub fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// What is in both.
    pub fn within(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    /// Whether they have a type in common.
    pub fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    fn types(self) -> Types {
        let pairs = [
            (Kinds::NULL, Types::NULL),
            (Kinds::BOOLEAN, Types::BOOLEAN),
            (Kinds::NUMBER, Types::NUMBER),
            (Kinds::INTEGER, Types::INTEGER),
            (Kinds::STRING, Types::STRING),
            (Kinds::ARRAY, Types::ARRAY),
            (Kinds::OBJECT, Types::OBJECT),
        ];
        pairs
            .iter()
            .filter(|(kind, _)| self.meets(*kind))
            .fold(Types::NONE, |all, (_, types)| all.or(*types))
    }

    /// Texts that a reader takes for a value of these types rather than for a string, as an anchored pattern; none for
    /// strings alone.
    pub fn lookalikes(self) -> Option<String> {
        let words = [
            (Kinds::NULL, "null"),
            (Kinds::BOOLEAN, "true|false"),
            (Kinds::NUMBER, r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"),
            (Kinds::ARRAY, r"\[[^]*"),
            (Kinds::OBJECT, r"\{[^]*"),
        ];
        let parts: Vec<&str> =
            words.iter().filter(|(kind, _)| self.meets(*kind)).map(|(_, text)| *text).collect();
        (!parts.is_empty()).then(|| format!("^(?:{})$", parts.join("|")))
    }
}

/// How the members of the outermost object stand, one after the other.
pub struct Parameters<'s> {
    /// Before the first member, or before nothing.
    pub open: Expr,
    /// Between two members.
    pub between: Expr,
    /// Behind the last member, or behind nothing.
    pub close: Expr,
    /// One member, in this order. Has a name and a value.
    pub member: Vec<Piece>,
    /// Strings that are a member's whole value stand as they are.
    pub raw: Option<Raw>,
    /// How other values are written.
    pub syntax: Syntax,
    /// Further words for types ([`Piece::Kind`]) of members that are not declared.
    pub other_kinds: Vec<(Kinds, Vec<u8>)>,
    /// A declared name as it is written; none if that cannot be.
    pub name: &'s dyn Fn(&str) -> Option<String>,
}

impl Parameters<'_> {
    /// The bytes that always stand right behind a name, if there are any.
    fn behind_name(&self) -> Option<&Expr> {
        let mut behind = self.member.iter().skip_while(|piece| **piece != Piece::Name).skip(1);
        match behind.next() {
            Some(Piece::Fixed(expr @ Expr::Bytes(_))) => Some(expr),
            _ => None,
        }
    }
}

/// Parameters lowered.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredParameters {
    /// The rule of all of them.
    pub rule: RuleId,
    /// Declared names, and of which types their values may be. Tells how raw values are to be read.
    pub kinds: Vec<(String, Kinds)>,
    /// The same for all other names.
    pub others: Kinds,
}

/// A piece of a member.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Always the same.
    Fixed(Expr),
    /// The member's name.
    Name,
    /// A text that says of which type the value is. A type in none of the sets cannot be written.
    Kind(Vec<(Kinds, Vec<u8>)>),
    /// The value, and where there is [`Raw`], its end.
    Value,
}

/// Strings that stand as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Raw {
    /// Any of these ends a value, whatever its type, and what must follow it then; a string contains none of them.
    pub end: Vec<(Trigger, Expr)>,
    /// May stand before a value and is no part of it.
    pub lead: Vec<u8>,
    /// May stand behind a value and is no part of it.
    pub trail: Vec<u8>,
    /// A string contains none of these.
    pub excludes: Vec<Vec<u8>>,
    /// Around values that are no strings: white space, as between JSON tokens, or nothing.
    pub spaced: bool,
    /// Whether reading must not need the schema's alternatives.
    pub reading: Reading,
}

/// What a text stands for that is a string and would be another value as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The other value: where the place allows that too, such a string is left out of the grammar.
    Json,
    /// Either, as whoever reads it decides: no string is left out.
    Either,
}

impl Raw {
    fn ends(&self) -> Expr {
        let end = |(trigger, rest): &(Trigger, Expr)| {
            Expr::seq([either(std::slice::from_ref(trigger)), rest.clone()])
        };
        Expr::alt(self.end.iter().map(end))
    }

    fn forbidden(&self) -> Vec<&[u8]> {
        let ends = self.end.iter().flat_map(|(trigger, _)| spelled(std::slice::from_ref(trigger)));
        ends.chain(self.excludes.iter().map(Vec::as_slice)).collect()
    }
}

/// As [`lower_into`](super::lower_into), for an object whose members stand as `style` says. Values of other types than
/// objects are left out. A string that could be read as a value of another type its place allows is left out too (`5`,
/// where the schema allows a number or a string). Costs as much as `lower_into`; strings with patterns or lengths
/// need automata as large as those.
pub fn lower_parameters(
    builder: &mut GrammarBuilder,
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
    style: &Parameters<'_>,
) -> Result<LoweredParameters, SchemaErrors> {
    let registry = Registry::default();
    let (rule, known) = with_needs(options, |options, needs| {
        let mut known = Known::default();
        let lowering = Lowering::new(builder, (schema, &registry), options, limits, needs);
        let (rule, _) = lowering.with_syntax(style.syntax.clone()).run_with(|lowering| {
            let conj = lowering.norm.conj(vec![LocId::ROOT]);
            let alternatives = lowering.norm.alternatives(&conj);
            let alternatives: Vec<Facets<'_>> =
                alternatives.iter().map(|facets| lowering.closed(facets).into_owned()).collect();
            known = lowering.kinds(&alternatives);
            let parts: Vec<Expr> = alternatives
                .iter()
                .map(|facets| lowering.parameters(facets, &known, style))
                .collect();
            Expr::Ref(lowering.rule("parameters".into(), Expr::alt(parts)))
        })?;
        Ok((rule, known))
    })?;
    let mut kinds: Vec<(String, Kinds)> =
        known.declared.into_iter().map(|(name, k)| (name.to_owned(), k)).collect();
    kinds.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(LoweredParameters { rule, kinds, others: known.others })
}

/// Of which types the values of names may be, over all alternatives: reading does not know the alternative.
#[derive(Default)]
struct Known<'a> {
    declared: HashMap<&'a str, Kinds>,
    others: Kinds,
}

/// As [`lower_into`](super::lower_into), in another syntax than JSON.
pub fn lower_syntax(
    builder: &mut GrammarBuilder,
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
    syntax: &Syntax,
) -> Result<RuleId, SchemaErrors> {
    let registry = Registry::default();
    with_needs(options, |options, needs| {
        let lowering = Lowering::new(builder, (schema, &registry), options, limits, needs);
        lowering.with_syntax(syntax.clone()).run().map(|(rule, _)| rule)
    })
}

/// Reads a schema, strictly, as often as it turns out to need more.
pub(super) fn with_needs<T>(
    options: &SchemaOptions,
    mut read: impl FnMut(SchemaOptions, Needs) -> Result<T, Result<Needs, SchemaErrors>>,
) -> Result<T, SchemaErrors> {
    let options = SchemaOptions { policy: Policy::Strict, ..*options };
    let mut needs = Needs::default();
    loop {
        match read(options, needs) {
            Ok(lowered) => return Ok(lowered),
            Err(Ok(more)) => needs = more,
            Err(Err(errors)) => return Err(errors),
        }
    }
}

impl<'a> Lowering<'a, '_> {
    fn kinds(&mut self, alternatives: &[Facets<'a>]) -> Known<'a> {
        let mut known = Known::default();
        let objects: Vec<_> = alternatives
            .iter()
            .filter(|f| f.types.meets(Types::OBJECT))
            .map(|f| &f.object)
            .collect();
        for object in &objects {
            for name in self.declared(object) {
                let locs = self.norm.member(object, name);
                let kinds = self.present(&locs);
                let entry = known.declared.entry(name).or_default();
                *entry = entry.with(kinds);
            }
        }
        for object in &objects {
            let declared = self.declared(object);
            let mut others = Kinds::default();
            for (_, locs) in self.undeclared(object, &declared) {
                others = others.with(self.present(&locs));
            }
            known.others = known.others.with(others);
            let declared = Among::new(&declared, known.declared.len());
            for (name, kinds) in &mut known.declared {
                if !declared.has(name) {
                    *kinds = kinds.with(others);
                }
            }
        }
        known
    }

    /// The types of the values that satisfy the locations.
    fn present(&mut self, locs: &[LocId]) -> Kinds {
        let conj = self.norm.conj(locs);
        let alternatives = self.norm.alternatives(&conj);
        let types = alternatives.iter().fold(Types::NONE, |all, f| all.or(possible(f)));
        each_kind().filter(|kind| types.meets(kind.types())).fold(Kinds::default(), Kinds::with)
    }

    fn parameters(
        &mut self,
        facets: &Facets<'a>,
        known: &Known<'a>,
        style: &Parameters<'_>,
    ) -> Expr {
        if !facets.types.meets(Types::OBJECT) {
            return Expr::Never;
        }
        if facets.values.is_some() || !facets.object.some.is_empty() {
            let what = "listed objects, or negated members, as parameters";
            self.norm.report(self.at, "", Reason::Unsupported(what.into()));
            return Expr::Never;
        }
        self.norm.report_unenforced(facets, Types::OBJECT);
        let object = &facets.object;
        let declared = self.declared(object);
        let mut members = Vec::with_capacity(declared.len());
        let mut needed = Vec::new();
        let must = Among::new(&object.required, declared.len());
        for &name in &declared {
            let locs = self.norm.member(object, name);
            let at = locs.first().copied().filter(|&at| at != LocId::FALSE).unwrap_or(self.at);
            let required = must.has(&name);
            let body = match (self.norm.accepts_name(object, name), (style.name)(name)) {
                (false, _) => Expr::Never,
                (true, Some(written)) => {
                    let kinds = known.declared.get(name).copied().unwrap_or_default();
                    self.parameter((Expr::text(&written), false), &locs, (kinds, &[]), style)
                }
                (true, None) => {
                    let what = format!("the wire format cannot write the name {name:?}");
                    self.norm.report(at, "", Reason::Unsupported(what));
                    Expr::Never
                }
            };
            if body != Expr::Never {
                if required {
                    needed.push(members.len());
                }
                members.push(Member { first: (0, body), more: Vec::new(), required });
            } else if required {
                self.norm.conflict(at, "", &format!("required member {name:?} allows no value"));
                return Expr::Never;
            }
        }
        let mut additional = Vec::new();
        for (names, locs) in self.undeclared(object, &declared) {
            let name = self.bare_names(&names);
            if name != Expr::Never {
                // A rule with what ends the name: its masks are those of all such names, whatever follows.
                let end = style.behind_name();
                let name = Expr::seq([Some(name), end.cloned()].into_iter().flatten());
                let name = (Expr::Ref(self.rule("name".into(), name)), end.is_some());
                let body = self.parameter(name, &locs, (known.others, &style.other_kinds), style);
                if body != Expr::Never {
                    additional.push(Member { first: (0, body), more: Vec::new(), required: false });
                }
            }
        }
        let frame = Frame {
            open: style.open.clone(),
            close: style.close.clone(),
            comma: style.between.clone(),
            empty: Expr::seq([style.open.clone(), style.close.clone()]),
        };
        self.object_graph(object, (members, &needed, additional), (&frame, false))
    }

    fn parameter(
        &mut self,
        (name, ended): (Expr, bool),
        locs: &[LocId],
        (present, more): (Kinds, &[(Kinds, Vec<u8>)]),
        style: &Parameters<'_>,
    ) -> Expr {
        let groups: Vec<(Kinds, Vec<u8>)> =
            match style.member.iter().find_map(|piece| match piece {
                Piece::Kind(groups) => Some(groups.clone()),
                _ => None,
            }) {
                Some(groups) => groups,
                None => vec![(Kinds::ALL, Vec::new())],
            };
        let mut out = Vec::new();
        for (kinds, written) in groups.into_iter().chain(more.iter().cloned()) {
            let value = self.parameter_value(locs, kinds, present.within(kinds), style);
            if value != Expr::Never {
                let at = style.member.iter().position(|piece| *piece == Piece::Name);
                let behind = at.filter(|_| ended).map(|at| at + 1);
                out.push(Expr::seq(style.member.iter().enumerate().map(
                    |(at, piece)| match piece {
                        Piece::Fixed(_) if behind == Some(at) => Expr::Empty,
                        Piece::Fixed(expr) => expr.clone(),
                        Piece::Name => name.clone(),
                        Piece::Kind(_) => Expr::bytes(&written),
                        Piece::Value => value.clone(),
                    },
                )));
            }
        }
        Expr::alt(out)
    }

    /// The values of these types that satisfy the locations, with what ends them.
    fn parameter_value(
        &mut self,
        locs: &[LocId],
        kinds: Kinds,
        present: Kinds,
        style: &Parameters<'_>,
    ) -> Expr {
        let conj = self.norm.conj(locs);
        let alternatives = self.norm.alternatives(&conj);
        let here = conj.first().copied().unwrap_or(self.at);
        let at = std::mem::replace(&mut self.at, here);
        let within: Vec<Facets<'a>> =
            alternatives.iter().filter_map(|f| only(f, kinds.types())).collect();
        let mut parts = Vec::new();
        let mut ends = None;
        let present = match &style.raw {
            Some(Raw { reading: Reading::Either, .. }) => Kinds::STRING,
            _ => present,
        };
        for f in &within {
            let Some(raw) = &style.raw else {
                self.plain(f, &mut parts);
                continue;
            };
            if let Some(rest) = only(f, Types::ALL.minus(Types::STRING)) {
                let mut plain = Vec::new();
                self.plain(&rest, &mut plain);
                let gap = if raw.spaced { self.gap() } else { Expr::Empty };
                parts.push(Expr::seq([
                    optional(&raw.lead),
                    gap.clone(),
                    Expr::alt(plain),
                    gap,
                    optional(&raw.trail),
                ]));
            }
            if let Some(text) = only(f, Types::STRING) {
                self.norm.report_unenforced(&text, Types::STRING);
                if present == Kinds::STRING && text.values.is_none() && text.string.is_free() {
                    ends = Some(raw.end.clone());
                } else {
                    parts.push(self.raw_string(&text, present, raw));
                }
            }
        }
        self.at = at;
        if let (Some(stops), Some(raw)) = (ends, &style.raw) {
            // Any text: the other alternatives are among them.
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
            Some(raw) => Expr::seq([value, raw.ends()]),
            None => value,
        }
    }

    fn plain(&mut self, facets: &Facets<'a>, parts: &mut Vec<Expr>) {
        let mut scalars = Vec::new();
        self.facets(facets, parts, &mut scalars);
        parts.extend(scalars.iter().map(|word| Expr::bytes(word)));
    }

    /// A string as it stands, apart from texts that would be read as something else.
    fn raw_string(&mut self, facets: &Facets<'a>, kinds: Kinds, raw: &Raw) -> Expr {
        let forbidden = raw.forbidden();
        if let Some(values) = &facets.values {
            let texts = values.iter().filter_map(|value| value.as_str());
            let kept = texts.filter(|text| {
                let taken = |others: &Dfa| others.accepts(text.chars().map(u32::from));
                self.norm.accepts_text(&facets.string, text)
                    && !forbidden.iter().any(|f| contains(text, f))
                    && !lookalikes(kinds).is_some_and(taken)
            });
            return Expr::alt(kept.flat_map(|text| framed_word(text, raw)));
        }
        if !facets.string.is_free() {
            return self.raw_text_of(&facets.string, &forbidden, kinds, raw);
        }
        // Any string: the same for all schemas, and most automata of a request are these.
        let free = StringFacets::default();
        let key = FreeText {
            kinds,
            forbidden: forbidden.iter().map(|text| text.to_vec()).collect(),
            frame: [raw.lead.clone(), raw.trail.clone()],
            limit: self.norm.limits.automaton_states,
        };
        if let Some(known) = free_texts().get(&key).cloned() {
            return (*known).clone();
        }
        // As an automaton: written out it would be copied, compared and walked for each of them.
        let expr = self.raw_text_of(&free, &forbidden, kinds, raw);
        let expr = match regular::automaton(&expr, &[], key.limit) {
            Ok(dfa) if expr != Expr::Never => Expr::Automaton(Arc::new(dfa)),
            _ => expr,
        };
        let mut known = free_texts();
        if expr != Expr::Never && known.len() < FREE_TEXTS {
            known.insert(key, Arc::new(expr.clone()));
        }
        expr
    }

    fn raw_text_of(
        &mut self,
        string: &StringFacets<'a>,
        forbidden: &[&[u8]],
        kinds: Kinds,
        raw: &Raw,
    ) -> Expr {
        // Lengths last, as they multiply states.
        let lengths = (string.min, string.max);
        let Some(texts) =
            self.raw_text(&StringFacets { min: 0, max: None, ..string.clone() }, forbidden)
        else {
            return Expr::Never;
        };
        match self.framed_text(texts, lengths, kinds, raw) {
            Ok(expr) => expr,
            Err(error) => self.too_large(&error),
        }
    }

    fn framed_text(
        &mut self,
        texts: Dfa,
        lengths: (u32, Option<u32>),
        kinds: Kinds,
        raw: &Raw,
    ) -> Result<Expr, crate::fsm::TooLarge> {
        let limits = self.norm.limits;
        let limit = limits.automaton_states;
        let minus =
            |a: &Dfa, b: &Dfa| a.combine(b, Combine::Minus, limit).map(|dfa| dfa.minimize());
        let mut texts = texts;
        if let Some(others) = lookalikes(kinds) {
            texts = minus(&texts, others)?;
        }
        if texts.is_empty() {
            return Ok(Expr::Never);
        }
        // Without the frame, a text must not begin or end as if it had one.
        let mut ends = vec![(Expr::bytes(&raw.trail), texts.clone())];
        if !raw.trail.is_empty() {
            ends.push((Expr::Empty, minus(&texts, &around(true, &raw.trail, false, limit)?)?));
        }
        let mut out = Vec::new();
        for (trail, texts) in ends {
            let framed = self.spell_of_length(&texts, lengths)?;
            out.push(Expr::seq([Expr::bytes(&raw.lead), framed, trail.clone()]));
            if !raw.lead.is_empty() {
                let bare = minus(&texts, &around(false, &raw.lead, true, limit)?)?;
                out.push(Expr::seq([self.spell_of_length(&bare, lengths)?, trail]));
            }
        }
        Ok(Expr::alt(out))
    }

    /// Those of an automaton's texts that have so many code points.
    fn spell_of_length(
        &mut self,
        dfa: &Dfa,
        lengths: (u32, Option<u32>),
    ) -> Result<Expr, crate::fsm::TooLarge> {
        let edges = |_: &mut Self, graph: &mut Graph| {
            for from in 0..dfa.len() as u32 {
                let edges = by_target(dfa, from).into_iter();
                edges.for_each(|(to, ranges)| graph.edge(from, spell_utf8(&ranges), to));
            }
        };
        let exact = match lengths {
            _ if dfa.is_empty() => return Ok(Expr::Never),
            (0, None) => return Ok(spell_dfa(dfa, &mut spell_utf8)),
            (min, max) => match self.counted_texts(dfa, lengths, edges) {
                Some(counted) => return Ok(counted),
                None => dfa.of_length(min, max, self.norm.limits.automaton_states)?,
            },
        };
        Ok(if exact.is_empty() { Expr::Never } else { spell_dfa(&exact, &mut spell_utf8) })
    }
}

/// What strings without facets depend on.
#[derive(PartialEq, Eq, Hash)]
struct FreeText {
    kinds: Kinds,
    forbidden: Vec<Vec<u8>>,
    /// Lead and trail.
    frame: [Vec<u8>; 2],
    limit: usize,
}

/// Most of them that are kept: wire formats are few, and so are sets of types.
const FREE_TEXTS: usize = 256;

/// Those that have been built in this process.
fn free_texts() -> MutexGuard<'static, HashMap<FreeText, Arc<Expr>>> {
    static KNOWN: LazyLock<Mutex<HashMap<FreeText, Arc<Expr>>>> = LazyLock::new(Mutex::default);
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A text in all its frames. Without lead or trail, it must not begin or end as if it had one.
fn framed_word(text: &str, raw: &Raw) -> impl Iterator<Item = Expr> {
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

fn optional(text: &[u8]) -> Expr {
    Expr::optional(Expr::bytes(text))
}

fn each_kind() -> impl Iterator<Item = Kinds> {
    (0..6).map(|bit| Kinds(1 << bit))
}

/// The types of values there can be.
fn possible(facets: &Facets<'_>) -> Types {
    match &facets.values {
        Some(values) => values.iter().fold(Types::NONE, |all, value| all.or(Types::of(value))),
        None => facets.types,
    }
}

/// The facets for values of these types; none if there are none.
fn only<'a>(facets: &Facets<'a>, types: Types) -> Option<Facets<'a>> {
    let mut out = facets.clone();
    out.types = out.types.and(types);
    if let Some(values) = &facets.values {
        let kept: Vec<&Json> =
            values.iter().copied().filter(|value| types.meets(Types::of(value))).collect();
        if kept.is_empty() {
            return None;
        }
        out.values = Some(Rc::new(kept));
    }
    (!out.types.is_none()).then_some(out)
}
