//! Alternative spellings of calls: what the models of a family are known to write beside the syntax
//! of the chat template.
//!
//! The begin marker of a spelling may also be ordinary text (a JSON object in an answer, say). A
//! spelling with `text_unless` is *ambiguous*: its begin marker starts a call if the name of an
//! offered tool follows, and is text otherwise.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use louver::front::regex;
use louver::fsm::{ByteSet, Combine, Dfa, DfaBuilder, TooLarge};
use louver::fuel;
use louver::ids::RuleId;
use louver::ir::{Except, Expr, Literal, regular};
use louver::limits::Limits;
use serde::{Deserialize, Serialize};

use crate::arguments::LoweredArguments;
use crate::builtin::fixed_prefix;
use crate::custom::REGEX;
use crate::format::{ArgumentStyle, TagPart, TaggedStyle, WireFormat};
use crate::lower::{Lowering, any_rule};
use crate::marker::{Glue, Marker, NameStyle, Part, unique};
use crate::plan::Role;
use crate::raw::ends_clean;
use crate::request::LowerError;

/// An alternative spelling of calls: `begin CALL (separator CALL)* end`, where a call is `header
/// ARGUMENTS trailer`. `begin` in free text starts it. Where a call is forced, the grammar allows
/// the template's syntax alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSpelling {
    /// Opens the calls.
    pub begin: Marker,
    /// From `begin` or `separator` to the arguments. Names the tool exactly once.
    pub header: Vec<Part>,
    /// How arguments are written. By default, as in the template's syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentStyle>,
    /// From the arguments to the next call or `end`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailer: Vec<Part>,
    /// Between two calls. Without it, there is one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<Glue>,
    /// Closes the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// Makes the spelling ambiguous: `begin` is text unless the name of an offered tool follows. A
    /// regular expression of what must not follow any other name, as that would be a call of a tool
    /// that is not offered. `header` must begin with the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_unless: Option<String>,
}

impl CallSpelling {
    fn is_ambiguous(&self) -> bool {
        self.text_unless.is_some()
    }

    /// In a header that begins with the name: the name's style, and the byte after the name.
    fn leading_name(&self) -> Option<(NameStyle, u8)> {
        match &self.header[..] {
            [Part::Name { name }, Part::Text(behind), ..] => {
                Some((*name, *behind.as_bytes().first()?))
            }
            _ => None,
        }
    }

    /// Checks what `text_unless` needs. The error says what is wrong.
    pub(crate) fn check_text_unless(&self) -> Result<(), &'static str> {
        let Some(pattern) = &self.text_unless else { return Ok(()) };
        if self.leading_name().is_none() {
            return Err("needs a header that begins with the name and a text");
        }
        let is_text = matches!(self.begin, Marker::Text(_) | Marker::Any(_));
        if !is_text || self.begin.plain_texts().is_empty() {
            return Err("needs texts as `begin`");
        }
        pattern_dfa(pattern, &Limits::default()).map(|_| ())
    }
}

/// The automaton of the texts that a regular expression matches as a whole, over bytes.
fn pattern_dfa(pattern: &str, limits: &Limits) -> Result<Dfa, &'static str> {
    let what = "is not a regular expression, or too large";
    let work = || {
        let grammar = regex::lower(pattern, &REGEX, limits).map_err(|_| what)?;
        regular::automaton(&Expr::Ref(grammar.start), &grammar.rules, limits.automaton_states)
            .map_err(|_| what)
    };
    fuel::with_default_budget(|| limits.compile_budget(pattern.len()), work)
}

/// A regular set of texts that cannot be (part of) a call. See [`Lowering::text_automaton`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum TextKind {
    /// The shortest texts that do not begin any text of a regular expression.
    Mismatch(String),
    /// The shortest texts that do not begin any of the watched texts.
    Unwatched,
    /// Texts up to the first occurrence of this byte.
    UpTo(u8),
}

/// The automata of [`Lowering::text_automaton`], by watched texts, kind and limit of states.
type TextAutomata = HashMap<(Vec<Vec<u8>>, TextKind, usize), Arc<Dfa>>;

/// Shared by all requests of the process: formats are few, and most requests watch for the texts
/// of the format alone.
static TEXT_AUTOMATA: LazyLock<Mutex<TextAutomata>> = LazyLock::new(Mutex::default);

/// The most automata in [`TEXT_AUTOMATA`].
const MAX_CACHED_AUTOMATA: usize = 1024;

/// The most bytes of watched texts of an automaton in [`TEXT_AUTOMATA`].
const MAX_CACHED_TEXT_BYTES: usize = 1024;

/// The automaton of the shortest texts that are no prefix of a text of `dfa`.
fn shortest_non_prefixes(dfa: &Dfa) -> Dfa {
    let mut builder = DfaBuilder::new();
    (0..dfa.len()).for_each(|_| {
        builder.state(false);
    });
    let outside = builder.state(true);
    for state in (0..dfa.len() as u32).filter(|&state| !dfa.is_final(state)) {
        let mut from = 0;
        for edge in dfa.edges(state) {
            if from < edge.lo {
                builder.edge(state, from, edge.lo - 1, outside);
            }
            if !dfa.is_final(edge.to) {
                builder.edge(state, edge.lo, edge.hi, edge.to);
            }
            from = edge.hi + 1;
        }
        if from <= 255 {
            builder.edge(state, from, 255, outside);
        }
    }
    builder.finish().minimize()
}

/// The rules of an alternative spelling.
#[derive(Clone, Default)]
pub(crate) struct LoweredSpelling {
    /// Calls after `begin`, one rule per tool.
    pub(crate) calls: Vec<RuleId>,
    /// In an ambiguous spelling, what may follow `begin` as text.
    pub(crate) text: Option<RuleId>,
}

impl WireFormat {
    pub(crate) fn unambiguous_spellings(&self) -> impl Iterator<Item = &CallSpelling> {
        self.spellings.iter().filter(|spelling| !spelling.is_ambiguous())
    }

    /// Begin markers that may be text.
    pub(crate) fn ambiguous_begins(&self) -> Vec<String> {
        let ambiguous = self.spellings.iter().filter(|spelling| spelling.is_ambiguous());
        ambiguous.flat_map(|spelling| spelling.begin.plain_texts()).collect()
    }

    /// Begin markers that always start a call.
    pub(crate) fn unambiguous_begins(&self) -> Vec<String> {
        let spellings = self.unambiguous_spellings().map(|spelling| &spelling.begin);
        let markers = self.calls_begin().into_iter().chain(self.builtin_begin()).chain(spellings);
        let ambiguous = self.ambiguous_begins();
        let is_unambiguous = |text: &String| !ambiguous.iter().any(|begin| text.starts_with(begin));
        unique(markers.flat_map(Marker::plain_texts).filter(is_unambiguous))
    }

    /// Texts that no unescaped string of an argument contains: what begins arguments and calls, and
    /// what ends calls. Parsers of the format split at these texts.
    pub(crate) fn excluded_values(&self, style: &TaggedStyle) -> Vec<String> {
        let open = style.open.first().map(|part| match part {
            TagPart::Text(text) => vec![text.clone()],
            TagPart::Marker(marker) => marker.plain_texts(),
            TagPart::Key { .. } | TagPart::Kind { .. } | TagPart::Gap { .. } => Vec::new(),
        });
        let trailers =
            std::iter::once(&self.call.trailer).chain(self.spellings.iter().map(|s| &s.trailer));
        let trailers = trailers.filter_map(|parts| parts.first()).flat_map(|part| match part {
            Part::Text(text) => vec![text.clone()],
            Part::Marker(marker) => marker.plain_texts(),
            _ => Vec::new(),
        });
        let section_end = self.section.iter().filter_map(|section| section.end.as_ref());
        let ends =
            section_end.chain(&self.call.end).chain(&self.call.begin).flat_map(Marker::plain_texts);
        let close = style.close.write();
        let texts = (open.into_iter().flatten())
            .chain(trailers)
            .chain(ends)
            .chain(self.unambiguous_begins())
            .chain(style.excludes.iter().cloned())
            .map(|text| text.trim().to_owned());
        unique(texts.filter(|text| text.chars().count() > 1 && !close.contains(text.as_str())))
    }
}

impl<'a> Lowering<'a> {
    /// Lowers the alternative spellings. `styles` has the tools' arguments by style, the template's
    /// style first; arguments in other styles are added.
    pub(crate) fn lower_spellings(
        &mut self,
        styles: &mut Vec<(&'a ArgumentStyle, Vec<Option<LoweredArguments>>)>,
    ) -> Result<(), LowerError> {
        let (format, functions) = (self.format, self.request.functions());
        let names: Vec<String> =
            self.request.kinds().take(functions).map(|(name, _)| name.to_owned()).collect();
        let watched = self.watched_texts();
        for spelling in &format.spellings {
            let syntax = format.spelling_syntax(spelling);
            let index = match styles.iter().position(|(style, _)| *style == syntax.arguments) {
                Some(index) => index,
                None => {
                    let lowered = self.functions_in(syntax.arguments, &styles[0].1);
                    styles.push((syntax.arguments, lowered));
                    styles.len() - 1
                }
            };
            let mut calls = Vec::new();
            for (k, (name, arguments)) in names.iter().zip(&styles[index].1).enumerate() {
                if let Some(LoweredArguments { rule, .. }) = arguments {
                    calls.push(self.call((k, name), &syntax, *rule));
                }
            }
            let text = self.text_behind_begin(spelling, &names, &watched)?;
            self.spellings.push(LoweredSpelling { calls, text });
        }
        Ok(())
    }

    /// Arguments of functions and custom tools in another style than the template's. A tool whose
    /// schema cannot be enforced in that style cannot be called in it.
    fn functions_in(
        &mut self,
        style: &'a ArgumentStyle,
        canonical: &[Option<LoweredArguments>],
    ) -> Vec<Option<LoweredArguments>> {
        self.style = style;
        let (request, mut out) = (self.request, Vec::new());
        for (k, canonical) in canonical.iter().enumerate().take(request.functions()) {
            let findings = std::mem::take(&mut self.findings);
            let lowered = canonical.as_ref().and_then(|_| match request.tools.get(k) {
                Some(tool) => self.arguments(k, tool),
                None => {
                    let custom = k - request.tools.len();
                    self.custom_arguments(custom, &request.customs[custom])
                }
            });
            let found = std::mem::replace(&mut self.findings, findings);
            let is_enforced = found.errors.is_empty() && found.relaxed.is_empty();
            out.push(lowered.filter(|_| is_enforced));
        }
        self.style = &self.format.call.arguments;
        out
    }

    /// What may follow the begin marker of an ambiguous spelling as text: a name that no tool has,
    /// the byte that ends it, and a text that does not match `text_unless`. `None` if the spelling
    /// is unambiguous or there is no tool.
    fn text_behind_begin(
        &mut self,
        spelling: &CallSpelling,
        names: &[String],
        watched: &[Vec<u8>],
    ) -> Result<Option<RuleId>, LowerError> {
        let (Some(pattern), Some((style, end))) = (&spelling.text_unless, spelling.leading_name())
        else {
            return Ok(None);
        };
        let mut words: Vec<Literal> =
            names.iter().map(|name| style.write(name).into_bytes().into()).collect();
        if words.is_empty() || words.iter().any(|word| word.contains(&end)) {
            return Ok(None);
        }
        words.sort_unstable();
        words.dedup();
        let behind = self.text_automaton(watched, TextKind::Mismatch(pattern.clone()))?;
        let name = self.text_automaton(watched, TextKind::UpTo(end))?;
        let first: Vec<u8> =
            watched.iter().filter_map(|text| text.first().copied()).chain([end]).collect();
        let tail = self.builder.rule("other name", Expr::Automaton(name));
        let other = self.builder.rule("nothing", Expr::Never);
        let leave = ByteSet::from_bytes(&first).complement();
        let except = Except { words, leave, tail, other, close: vec![end].into() };
        let body = Expr::seq([Expr::Except(Box::new(except)), Expr::Automaton(behind)]);
        Ok(Some(self.builder.labelled("text behind a marker", Role::ResumedText.label(), body)))
    }

    /// The automaton of texts of a kind that contain no watched text and do not end with the
    /// beginning of one. Small automata are cached for the process.
    pub(crate) fn text_automaton(
        &self,
        watched: &[Vec<u8>],
        kind: TextKind,
    ) -> Result<Arc<Dfa>, LowerError> {
        let limit = self.request.limits.automaton_states;
        let error =
            |cause| LowerError::TooLarge { what: "texts that free text must not contain", cause };
        let too_large = || error(TooLarge::States { limit });
        let automaton = |expr: &Expr| regular::automaton(expr, &[], limit).map_err(|_| too_large());
        let cache = || TEXT_AUTOMATA.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (watched.to_vec(), kind, limit);
        if let Some(dfa) = cache().get(&key) {
            return Ok(dfa.clone());
        }
        let dfa = match &key.1 {
            TextKind::Mismatch(pattern) => {
                let dfa = pattern_dfa(pattern, &self.request.limits).map_err(|_| too_large())?;
                shortest_non_prefixes(&dfa)
            }
            TextKind::Unwatched => {
                let watched = Expr::alt(watched.iter().map(|text| Expr::bytes(text)));
                shortest_non_prefixes(&automaton(&watched)?)
            }
            TextKind::UpTo(end) => {
                let end = ByteSet::from_bytes(&[*end]);
                let before = Expr::star(Expr::Class(end.complement()));
                automaton(&Expr::seq([before, Expr::Class(end)]))?
            }
        };
        let dfa = dfa.combine(&ends_clean(watched), Combine::And, limit).map_err(error)?;
        let dfa = Arc::new(dfa);
        if watched.iter().map(Vec::len).sum::<usize>() < MAX_CACHED_TEXT_BYTES {
            let mut cache = cache();
            if cache.len() >= MAX_CACHED_AUTOMATA {
                cache.clear();
            }
            cache.insert(key, dfa.clone());
        }
        Ok(dfa)
    }

    /// Begin markers that always start a call. Without tools, the spellings' begin markers are
    /// text.
    pub(crate) fn call_begins(&self) -> Vec<String> {
        let mut begins = self.format.unambiguous_begins();
        if self.request.kinds().next().is_none() {
            let spellings = self.format.unambiguous_spellings();
            let as_text: Vec<String> = spellings.flat_map(|s| s.begin.plain_texts()).collect();
            begins.retain(|begin| !as_text.contains(begin));
        }
        begins
    }

    /// Texts that start a call wherever they occur. A begin marker of a single character does so
    /// only with the header of an offered tool after it.
    pub(crate) fn call_texts(&self) -> Vec<String> {
        let (single, mut out): (Vec<String>, Vec<String>) =
            self.call_begins().into_iter().partition(|text| text.chars().count() == 1);
        // What a section's begin marker has after it before the header.
        let inner = self.format.call.begin.as_ref().filter(|_| self.format.section.is_some());
        let inner = inner.map_or_else(|| vec![String::new()], Marker::plain_texts);
        for (name, _) in self.request.kinds().take(self.request.functions()) {
            let header = fixed_prefix(&self.format.call.header, name);
            for begin in &single {
                out.extend(inner.iter().map(|inner| format!("{begin}{inner}{header}")));
            }
        }
        out
    }

    /// Texts that free text must not skip: begin markers of calls, excluded texts, stop strings and
    /// bans.
    pub(crate) fn watched_texts(&self) -> Vec<Vec<u8>> {
        let begins = self.call_begins().into_iter().chain(self.format.ambiguous_begins());
        let excludes = &self.format.text.excludes;
        let others = excludes.iter().chain(&self.request.stop).chain(&self.request.bans).cloned();
        begins.chain(others).map(String::into_bytes).collect()
    }

    /// The calls of a spelling, after its begin marker.
    pub(crate) fn calls_behind_begin(&mut self, spelling: &CallSpelling, calls: &[RuleId]) -> Expr {
        let call = any_rule(calls);
        let most = self.most_calls();
        let more = match &spelling.separator {
            Some(separator) if most != Some(1) => {
                let next = Expr::seq([self.glue(separator), call.clone()]);
                Expr::repeat(next, 0, most.map(|most| most - 1))
            }
            _ => Expr::Empty,
        };
        let end = self.optional_marker(spelling.end.as_ref());
        Expr::seq([call, more, end])
    }
}
