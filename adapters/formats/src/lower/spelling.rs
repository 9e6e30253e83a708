//! Alternative spellings of calls, as grammar.

use std::sync::Arc;

use louver::fsm::ByteSet;
use louver::ids::RuleId;
use louver::ir::{Except, Expr, Literal};
use memchr::memchr;

use super::Lowering;
use super::calls::{after_first, any_rule};
use super::text_automata::TextKind;
use crate::format::{ArgumentStyle, CallSpelling};
use crate::lowered::{LoweredTool, SpanPhase};
use crate::request::LowerError;

/// The rules of an alternative spelling.
#[derive(Clone, Default)]
pub(crate) struct LoweredSpelling {
    /// Calls after `begin`, one rule per tool.
    pub(crate) calls: Vec<RuleId>,
    /// In an ambiguous spelling, what may follow `begin` as text.
    pub(crate) text: Option<RuleId>,
}

impl Lowering<'_> {
    /// Lowers the alternative spellings of calls of functions and custom tools. Adds the tools'
    /// arguments in other styles than the template's.
    pub(crate) fn lower_spellings(&mut self, tools: &mut [LoweredTool]) -> Result<(), LowerError> {
        let format = self.format;
        let names: Vec<String> =
            tools.iter().filter(|tool| !tool.is_builtin).map(|tool| tool.name.clone()).collect();
        let watched = self.watched_texts();
        let mut styles = vec![&format.call.arguments];
        for spelling in format.all_spellings() {
            let syntax = format.spelling_syntax(spelling);
            if !styles.contains(&syntax.arguments) {
                styles.push(syntax.arguments);
                self.add_arguments(tools, syntax.arguments);
            }
            let spelled = tools.iter().enumerate().filter(|(_, tool)| !tool.is_builtin);
            let calls = spelled.filter_map(|(k, tool)| self.call(k, tool, &syntax)).collect();
            let text = self.text_after_begin(spelling, &names, &watched)?;
            self.spellings.push(LoweredSpelling { calls, text });
        }
        Ok(())
    }

    /// Adds the arguments of functions and custom tools in a style. A tool whose schema cannot be
    /// enforced in the style cannot be called in it.
    fn add_arguments(&mut self, tools: &mut [LoweredTool], style: &ArgumentStyle) {
        let is_spelled = |lowered: &LoweredTool| lowered.is_callable() && !lowered.is_builtin;
        for (k, (tool, lowered)) in self.request.tools.iter().zip(tools).enumerate() {
            let findings = std::mem::take(&mut self.findings);
            let arguments = if is_spelled(lowered) { self.arguments(k, tool, style) } else { None };
            let found = std::mem::replace(&mut self.findings, findings);
            if found.errors.is_empty() && found.relaxed.is_empty() {
                lowered.arguments.extend(arguments.map(|arguments| (style.clone(), arguments)));
            }
        }
    }

    /// What may follow the begin marker of an ambiguous spelling as text: a name that no tool has,
    /// the byte that ends it, and a text that does not match `text_unless`. `None` if the spelling
    /// is unambiguous or there is no tool.
    fn text_after_begin(
        &mut self,
        spelling: &CallSpelling,
        names: &[String],
        watched: &Arc<[Vec<u8>]>,
    ) -> Result<Option<RuleId>, LowerError> {
        let (Some(pattern), Some((style, end))) = (&spelling.text_unless, spelling.leading_name())
        else {
            return Ok(None);
        };
        // A name that contains the end byte, in an escape, ends there if it is text: what begins as
        // that name does is no text.
        let up_to_end = |name: &String| {
            let mut word = style.write(name).into_bytes();
            word.truncate(memchr(end, &word).unwrap_or(word.len()));
            Literal::from(word)
        };
        let mut words: Vec<Literal> = names.iter().map(up_to_end).collect();
        if words.is_empty() {
            return Ok(None);
        }
        words.sort_unstable();
        words.dedup();
        let after = self.text_automaton(watched, TextKind::Mismatch(pattern.clone()))?;
        let tail = self.text_automaton(watched, TextKind::UpTo(end, None))?;
        let begins: Vec<u8> = watched.iter().filter_map(|text| text.first().copied()).collect();
        let leave = ByteSet::from_bytes(&[&begins[..], &[end]].concat()).complement();
        // A letter that begins a watched text is read by the automaton that looks for that text.
        let is_free = |byte: &u8| {
            byte.is_ascii_alphanumeric() && !words.iter().any(|word| word.contains(byte))
        };
        let letters: Vec<u8> = begins.into_iter().filter(is_free).collect();
        let other = match letters.is_empty() {
            true => Expr::Never,
            false => {
                let letters = Some(ByteSet::from_bytes(&letters));
                Expr::Automaton(self.text_automaton(watched, TextKind::UpTo(end, letters))?)
            }
        };
        let tail = self.builder.rule("other name", Expr::Automaton(tail));
        let other = self.builder.rule("other name", other);
        let except = Except { words, leave, tail, other, close: vec![end].into() };
        let body = Expr::seq([Expr::Except(Box::new(except)), Expr::Automaton(after)]);
        Ok(Some(self.builder.labelled("text after a marker", SpanPhase::ResumedText.label(), body)))
    }

    /// What follows the first call of a list in each spelling: further calls, the end of the list,
    /// and `next`.
    pub(crate) fn lists_before(&mut self, next: &Expr) -> Vec<Expr> {
        let (format, max) = (self.format, self.max_calls());
        let spellings = format.all_spellings().enumerate();
        let lists = spellings.map(|(k, spelling)| {
            let more = self.next_in_list(k, spelling);
            let more = more.map_or(Expr::Empty, |call| after_first(call, max));
            Expr::seq([more, self.optional_marker(spelling.end.as_ref()), next.clone()])
        });
        lists.collect()
    }

    /// As [`Lowering::lists_before`], where the calls of the turn are counted. `fewer`: what
    /// follows one more call, if one may follow.
    pub(crate) fn counted_lists(&mut self, next: &Expr, fewer: &[Expr]) -> Vec<Expr> {
        let spellings = self.format.all_spellings().enumerate();
        let lists = spellings.map(|(k, spelling)| {
            let end = self.optional_marker(spelling.end.as_ref());
            let end = Expr::seq([end, next.clone()]);
            match (self.next_in_list(k, spelling), fewer.get(k)) {
                (Some(call), Some(fewer)) => {
                    let rest = Expr::alt([end, Expr::seq([call, fewer.clone()])]);
                    Expr::Ref(self.builder.rule("rest of a list", rest))
                }
                _ => end,
            }
        });
        lists.collect()
    }

    /// A call of spelling `k` after another one, if that may follow.
    fn next_in_list(&mut self, k: usize, spelling: &CallSpelling) -> Option<Expr> {
        let separator = self.fixed_parts(spelling.separator.as_ref()?);
        Some(Expr::seq([separator, any_rule(&self.spellings[k].calls)]))
    }
}
