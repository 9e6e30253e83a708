//! Calls of built-in tools, as grammar.

use std::sync::Arc;

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::Combine;
use louver::ids::RuleId;
use louver::ir::{Expr, regular};

use super::Lowering;
use super::arguments::LoweredArguments;
use super::raw::{RawContext, text_dfa};
use crate::arguments::ArgumentReader;
use crate::format::{Marker, WireFormat, fixed_prefix};
use crate::request::Builtin;

impl WireFormat {
    /// Texts that bare code must not begin with: what follows the begin marker of built-in tools
    /// in calls that are not bare code.
    fn call_prefixes(&self, builtins: &[Builtin]) -> Vec<Vec<u8>> {
        let Some(format) = self.builtin.as_ref().filter(|format| format.bare_code) else {
            return Vec::new();
        };
        let begins: Vec<String> = format.begin.iter().flat_map(Marker::as_texts).collect();
        let spellings = self.unambiguous_spellings().map(|spelling| &spelling.begin);
        let calls = self.call.begin.iter().chain(spellings).flat_map(Marker::as_texts);
        let after_begin = |call: String| {
            begins.iter().find_map(|begin| call.strip_prefix(begin.as_str()).map(str::to_owned))
        };
        let mut out: Vec<String> =
            calls.filter_map(after_begin).filter(|rest| !rest.is_empty()).collect();
        let headers = self.builtin_syntax(false).map(|call| call.headers).unwrap_or_default();
        for builtin in builtins.iter().filter(|builtin| format.schema(builtin).is_some()) {
            out.extend(headers.iter().map(|header| fixed_prefix(header, &builtin.name)));
        }
        out.into_iter().map(String::into_bytes).collect()
    }
}

impl Lowering<'_> {
    /// The arguments of built-in tool `k`, or `None` if the turn cannot call it.
    pub(crate) fn builtin_arguments(
        &mut self,
        k: usize,
        builtin: &Builtin,
    ) -> Option<LoweredArguments> {
        let format =
            self.format.builtin.as_ref().filter(|_| self.request.may_call(&builtin.name))?;
        let lowered = match format.schema(builtin) {
            Some(schema) => self.lower_arguments(&format.arguments, &schema, &builtin.pointer)?,
            None => LoweredArguments { rule: self.code(), reader: ArgumentReader::code() },
        };
        Some(self.label_arguments(self.request.functions() + k, &builtin.name, lowered))
    }

    /// Code: any text up to the end marker. Bare code must not begin as other calls do.
    fn code(&mut self) -> RuleId {
        let prefixes = self.format.call_prefixes(&self.request.builtins);
        let ends = self.format.builtin_end().map(Marker::plain_texts).unwrap_or_default();
        let is_bare = self.format.builtin.as_ref().is_some_and(|format| format.bare_code);
        let any_text = || Expr::star(spell_utf8(&SCALARS));
        if ends.is_empty() && prefixes.is_empty() && !is_bare {
            return self.builder.rule("code", any_text());
        }
        let limit = self.request.limits.automaton_states;
        let ends = ends.into_iter().map(String::into_bytes).collect();
        let texts = text_dfa(&RawContext { ends, ..RawContext::default() }, limit).ok();
        let excluded = prefixes.iter().map(|text| Expr::seq([Expr::bytes(text), any_text()]));
        let excluded = Expr::alt(excluded.chain([Expr::Empty]));
        let excluded = regular::automaton(&excluded, &[], limit).ok();
        let code = texts
            .zip(excluded)
            .and_then(|(texts, excluded)| texts.combine(&excluded, Combine::Minus, limit).ok());
        // Past the limit of states, no text is code.
        let code = code.map_or(Expr::Never, |dfa| Expr::Automaton(Arc::new(dfa.minimize())));
        self.builder.rule("code", code)
    }
}
