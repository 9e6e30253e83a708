//! Alternative spellings of calls, as grammar.

use louver::fsm::ByteSet;
use louver::ids::RuleId;
use louver::ir::{Except, Expr, Literal};

use super::Lowering;
use super::arguments::LoweredArguments;
use super::calls::{after_first, any_rule};
use super::text_automata::TextKind;
use crate::format::{ArgumentStyle, CallSpelling};
use crate::lowered::Role;
use crate::request::{LowerError, Tool};

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
        let (format, request) = (self.format, self.request);
        let spelled = || request.tools.iter().filter(|tool| !tool.is_builtin());
        let names: Vec<&str> = spelled().map(Tool::name).collect();
        let watched = self.watched_texts();
        for spelling in &format.spellings {
            let syntax = format.spelling_syntax(spelling);
            let index = match styles.iter().position(|(style, _)| *style == syntax.arguments) {
                Some(index) => index,
                None => {
                    let lowered = self.spelled_arguments(syntax.arguments, &styles[0].1);
                    styles.push((syntax.arguments, lowered));
                    styles.len() - 1
                }
            };
            let mut calls = Vec::new();
            for (k, (tool, arguments)) in request.tools.iter().zip(&styles[index].1).enumerate() {
                if let Some(LoweredArguments { rule, .. }) = arguments
                    && !tool.is_builtin()
                {
                    calls.push(self.call((k, tool.name()), &syntax, *rule));
                }
            }
            let text = self.text_after_begin(spelling, &names, &watched)?;
            self.spellings.push(LoweredSpelling { calls, text });
        }
        Ok(())
    }

    /// Arguments of functions and custom tools in another style than the template's. A tool whose
    /// schema cannot be enforced in that style cannot be called in it.
    fn spelled_arguments(
        &mut self,
        style: &ArgumentStyle,
        canonical: &[Option<LoweredArguments>],
    ) -> Vec<Option<LoweredArguments>> {
        let mut out = Vec::new();
        for (k, (tool, canonical)) in self.request.tools.iter().zip(canonical).enumerate() {
            let is_spelled = canonical.is_some() && !tool.is_builtin();
            let findings = std::mem::take(&mut self.findings);
            let lowered = is_spelled.then(|| self.arguments(k, tool, style)).flatten();
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
        names: &[&str],
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

    /// The calls of a spelling, after its begin marker.
    pub(crate) fn calls_after_begin(&mut self, spelling: &CallSpelling, calls: &[RuleId]) -> Expr {
        let call = any_rule(calls);
        let more = match &spelling.separator {
            Some(separator) => {
                let next = Expr::seq([self.fixed_parts(separator), call.clone()]);
                after_first(next, self.most_calls())
            }
            None => Expr::Empty,
        };
        let end = self.optional_marker(spelling.end.as_ref());
        Expr::seq([call, more, end])
    }
}
