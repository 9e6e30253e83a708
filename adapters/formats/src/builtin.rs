//! Calls of built-in tools: tools that the model was trained with, such as a browser or an
//! interpreter.

use std::collections::BTreeMap;
use std::sync::Arc;

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::Combine;
use louver::ids::RuleId;
use louver::ir::{Expr, regular};
use louver::spec::json::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::{ArgumentReader, LoweredArguments};
use crate::format::{ArgumentStyle, WireFormat};
use crate::lower::Lowering;
use crate::marker::{Marker, Part};
use crate::raw::{RawContext, text_dfa};
use crate::request::{Builtin, LowerError};

/// Calls of built-in tools: `begin header ARGUMENTS trailer end`. A tool without a schema is called
/// with code in place of the arguments and the trailer, and with `bare_code` of the header, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltinFormat {
    /// Opens a call, where turns are no sequences of messages. In free text it starts the call. The
    /// turn ends with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Marker>,
    /// From `begin` to the arguments. Names the tool exactly once.
    pub header: Vec<Part>,
    /// Other headers that are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<Part>>,
    /// How arguments are written.
    #[serde(default = "json")]
    pub arguments: ArgumentStyle,
    /// From the arguments to `end`. Missing after code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailer: Vec<Part>,
    /// Closes the call. By default, as other calls are closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// Code has no header, so that a call does not name the tool that runs it.
    #[serde(default)]
    pub bare_code: bool,
    /// The JSON Schemas of tools that the family's models know, by name. Any other tool without a
    /// schema in the request is called with code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<String, Value>,
}

fn json() -> ArgumentStyle {
    ArgumentStyle::Json
}

impl BuiltinFormat {
    /// The schema of a tool's arguments, or `None` if the tool is called with code.
    pub(crate) fn schema(&self, builtin: &Builtin) -> Option<Json> {
        let known = || self.known.get(&builtin.name).map(Json::from);
        builtin.parameters.clone().or_else(known)
    }
}

impl WireFormat {
    /// The marker that opens a call of a built-in tool, where turns are no sequences of messages.
    pub(crate) fn builtin_begin(&self) -> Option<&Marker> {
        self.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref())
    }

    /// Texts that bare code must not begin with: what follows the begin marker of built-in tools
    /// in calls that are not bare code.
    fn call_prefixes(&self, builtins: &[Builtin]) -> Vec<Vec<u8>> {
        let Some(format) = self.builtin.as_ref().filter(|format| format.bare_code) else {
            return Vec::new();
        };
        let begins: Vec<String> = format.begin.iter().flat_map(Marker::as_texts).collect();
        let spellings = self.unambiguous_spellings().map(|spelling| &spelling.begin);
        let calls = self.call.begin.iter().chain(spellings).flat_map(Marker::as_texts);
        let behind_begin = |call: String| {
            begins.iter().find_map(|begin| call.strip_prefix(begin.as_str()).map(str::to_owned))
        };
        let mut out: Vec<String> =
            calls.filter_map(behind_begin).filter(|rest| !rest.is_empty()).collect();
        let headers = self.builtin_syntax(false).map(|call| call.headers).unwrap_or_default();
        for builtin in builtins.iter().filter(|builtin| format.schema(builtin).is_some()) {
            out.extend(headers.iter().map(|header| fixed_prefix(header, &builtin.name)));
        }
        out.into_iter().map(String::into_bytes).collect()
    }
}

/// The longest beginning of a header that is written in one way only.
pub(crate) fn fixed_prefix(header: &[Part], name: &str) -> String {
    let fixed = header.iter().map_while(|part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Name { name: style } => Some(style.write(name)),
        Part::Marker(marker) => Some(marker.write()),
        Part::Id { .. } | Part::Gap { .. } | Part::Maybe { .. } => None,
    });
    fixed.collect()
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
            Some(schema) => self.lower_in(&format.arguments, &schema, &builtin.pointer)?,
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

impl WireFormat {
    /// Fails if the request's built-in tools do not fit the format.
    pub(crate) fn check_builtins(&self, builtins: &[Builtin]) -> Result<(), LowerError> {
        let Some(format) = &self.builtin else {
            if builtins.is_empty() {
                return Ok(());
            }
            return Err(LowerError::NoBuiltins { format: self.name.clone() });
        };
        let with_code = builtins.iter().filter(|builtin| format.schema(builtin).is_none()).count();
        if format.bare_code && with_code > 1 {
            let what = "several built-in tools that are called with code, in a format that does \
                        not name them";
            return Err(LowerError::Combination { what });
        }
        Ok(())
    }
}
