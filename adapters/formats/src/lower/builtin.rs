//! Calls of built-in tools, as grammar.

use std::sync::Arc;

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::{Combine, TooLarge};
use louver::ids::RuleId;
use louver::ir::{Expr, regular};

use super::Lowering;
use super::raw::{RawContext, text_dfa};
use crate::arguments::ArgumentReader;
use crate::format::{Marker, fixed_prefix};
use crate::lowered::LoweredArguments;
use crate::request::{BuiltinTool, CustomError, RequestFault};

impl Lowering<'_> {
    /// Texts that bare code must not begin with: what follows the begin marker of built-in tools
    /// in calls that are not bare code.
    fn call_prefixes(&self) -> Vec<Vec<u8>> {
        let Lowering { format: wire_format, request, .. } = self;
        let Some(format) = wire_format.builtin.as_ref().filter(|format| format.bare_code) else {
            return Vec::new();
        };
        let begins: Vec<String> = format.begin.iter().flat_map(Marker::as_texts).collect();
        let spellings = wire_format.unambiguous_spellings().map(|spelling| &spelling.begin);
        let calls = wire_format.call.begin.iter().chain(spellings).flat_map(Marker::as_texts);
        let after_begin = |call: String| {
            begins.iter().find_map(|begin| call.strip_prefix(begin.as_str()).map(str::to_owned))
        };
        let mut out: Vec<String> =
            calls.filter_map(after_begin).filter(|rest| !rest.is_empty()).collect();
        let headers =
            wire_format.builtin_syntax(false).map(|call| call.headers).unwrap_or_default();
        for tool in request.tools.iter().filter(|tool| tool.is_builtin()) {
            if wire_format.parameters(tool).is_some() {
                out.extend(headers.iter().map(|header| fixed_prefix(header, tool.name())));
            }
        }
        out.into_iter().map(String::into_bytes).collect()
    }

    /// The arguments of built-in tool `k`.
    pub(crate) fn builtin_arguments(
        &mut self,
        k: usize,
        tool: &BuiltinTool,
    ) -> Option<LoweredArguments> {
        let format = self.format.builtin.as_ref()?;
        if let Some(schema) = format.schema(tool) {
            let pointer = format!("/tools/{k}/parameters");
            return self.lower_arguments(&format.arguments, &schema, &pointer);
        }
        match self.code() {
            Ok(rule) => Some(LoweredArguments { rule, reader: ArgumentReader::code() }),
            Err(cause) => {
                let (pointer, error) = (format!("/tools/{k}"), CustomError::Code(cause));
                self.findings.errors.customs.extend(RequestFault::of_custom(&pointer, &error));
                None
            }
        }
    }

    /// Code: any text up to the end marker. Bare code must not begin as other calls do. Fails past
    /// the limit of states.
    fn code(&mut self) -> Result<RuleId, TooLarge> {
        let prefixes = self.call_prefixes();
        let ends = self.format.builtin_end().map(Marker::plain_texts).unwrap_or_default();
        let is_bare = self.format.builtin.as_ref().is_some_and(|format| format.bare_code);
        let any_text = || Expr::star(spell_utf8(&SCALARS));
        if ends.is_empty() && prefixes.is_empty() && !is_bare {
            return Ok(self.builder.rule("code", any_text()));
        }
        let limit = self.request.limits.automaton_states;
        let texts = text_dfa(&RawContext::until(ends), limit)?;
        let excluded = prefixes.iter().map(|text| Expr::seq([Expr::bytes(text), any_text()]));
        let excluded = Expr::alt(excluded.chain([Expr::Empty]));
        let excluded =
            regular::automaton(&excluded, &[], limit).map_err(|_| TooLarge::States { limit })?;
        let code = texts.combine(&excluded, Combine::Minus, limit)?;
        Ok(self.builder.rule("code", Expr::Automaton(Arc::new(code.minimize()))))
    }
}
