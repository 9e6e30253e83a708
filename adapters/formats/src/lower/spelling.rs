//! Alternative spellings of calls, as grammar, and the texts that are no part of a call.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use louver::fsm::{ByteSet, Combine, Dfa, DfaBuilder, TooLarge};
use louver::fuel;
use louver::ids::RuleId;
use louver::ir::{Except, Expr, Literal, regular};

use super::Lowering;
use super::arguments::LoweredArguments;
use super::calls::any_rule;
use super::markers::is_single_character;
use super::raw::ends_clean;
use crate::format::{ArgumentStyle, CallSpelling, Marker, fixed_prefix};
use crate::pattern::pattern_dfa;
use crate::plan::Role;
use crate::request::LowerError;

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

/// The automaton of the shortest texts that are no prefix of a text of `dfa`, and do not begin with
/// one.
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
            let text = self.text_after_begin(spelling, &names, &watched)?;
            self.spellings.push(LoweredSpelling { calls, text });
        }
        Ok(())
    }

    /// Arguments of functions and custom tools in another style than the template's. A tool whose
    /// schema cannot be enforced in that style cannot be called in it.
    fn functions_in(
        &mut self,
        style: &ArgumentStyle,
        canonical: &[Option<LoweredArguments>],
    ) -> Vec<Option<LoweredArguments>> {
        let (request, mut out) = (self.request, Vec::new());
        for (k, canonical) in canonical.iter().enumerate().take(request.functions()) {
            let findings = std::mem::take(&mut self.findings);
            let lowered = canonical.as_ref().and_then(|_| match request.tools.get(k) {
                Some(tool) => self.arguments(k, tool, style),
                None => {
                    let custom = k - request.tools.len();
                    self.custom_arguments(custom, &request.customs[custom], style)
                }
            });
            let found = std::mem::replace(&mut self.findings, findings);
            let is_enforced = found.errors.is_empty() && found.relaxed.is_empty();
            out.push(lowered.filter(|_| is_enforced));
        }
        out
    }

    /// What may follow the begin marker of an ambiguous spelling as text: a name that no tool has,
    /// the byte that ends it, and a text that does not match `text_unless`. `None` if the spelling
    /// is unambiguous or there is no tool.
    fn text_after_begin(
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
        let after = self.text_automaton(watched, TextKind::Mismatch(pattern.clone()))?;
        let name = self.text_automaton(watched, TextKind::UpTo(end))?;
        let first: Vec<u8> =
            watched.iter().filter_map(|text| text.first().copied()).chain([end]).collect();
        let tail = self.builder.rule("other name", Expr::Automaton(name));
        let other = self.builder.rule("nothing", Expr::Never);
        let leave = ByteSet::from_bytes(&first).complement();
        let except = Except { words, leave, tail, other, close: vec![end].into() };
        let body = Expr::seq([Expr::Except(Box::new(except)), Expr::Automaton(after)]);
        Ok(Some(self.builder.labelled("text after a marker", Role::ResumedText.label(), body)))
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
        let is_small = watched.iter().map(Vec::len).sum::<usize>() < MAX_CACHED_TEXT_BYTES;
        if is_small && !fuel::is_exhausted() {
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
            self.call_begins().into_iter().partition(|text| is_single_character(text));
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
    pub(crate) fn calls_after_begin(&mut self, spelling: &CallSpelling, calls: &[RuleId]) -> Expr {
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
