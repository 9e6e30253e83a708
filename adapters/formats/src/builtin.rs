//! Calls of the model's own tools: a browser, an interpreter.

use std::collections::BTreeMap;

use louver::front::regex::{SCALARS, spell_utf8};
use louver::fsm::Combine;
use louver::ids::RuleId;
use louver::ir::{Expr, regular};
use louver::spec::json::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::{Lowered, Reader};
use crate::format::{ArgumentStyle, WireFormat};
use crate::lower::Lowering;
use crate::marker::{Marker, Part, Settle};
use crate::raw::{Frame, text_dfa};
use crate::request::{Builtin, LowerError};

/// How the model's own tools are called: `begin header ARGUMENTS trailer end`. Code stands in the place of arguments, and with
/// `bare_code` in the place of the header too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltinFormat {
    /// Opens such a call where turns are no rows of messages. Reading it in free text starts the call, and the turn ends with
    /// that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Marker>,
    /// From `begin` to the arguments; names the tool exactly once.
    pub header: Vec<Part>,
    /// Other headers that are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<Part>>,
    /// How arguments are written.
    #[serde(default = "json")]
    pub arguments: ArgumentStyle,
    /// From the arguments to `end`; not behind code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailer: Vec<Part>,
    /// Closes the call; as other calls are closed if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// Code has no header: it does not say which tool is to run it.
    #[serde(default)]
    pub bare_code: bool,
    /// What tools that the family knows are called with: a JSON Schema by name. Any other tool without a schema in the
    /// request is called with code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<String, Value>,
}

fn json() -> ArgumentStyle {
    ArgumentStyle::Json
}

impl BuiltinFormat {
    pub(crate) fn bind(&mut self, how: Settle<'_>) {
        let parts =
            self.header.iter_mut().chain(self.also.iter_mut().flatten()).chain(&mut self.trailer);
        parts.for_each(|part| part.bind(how));
        self.begin.iter_mut().chain(&mut self.end).for_each(|marker| marker.bind(how));
        self.arguments.bind(how);
    }

    pub(crate) fn markers(&self) -> Vec<(&'static str, &Marker)> {
        let begin = self.begin.iter().map(|m| ("/builtin/begin", m));
        begin.chain(self.end.iter().map(|m| ("/builtin/end", m))).collect()
    }

    /// Headers, the one that is written first.
    pub(crate) fn headers(&self, code: bool) -> Vec<&[Part]> {
        if code && self.bare_code {
            return vec![&[]];
        }
        std::iter::once(&self.header).chain(&self.also).map(Vec::as_slice).collect()
    }

    /// The schema of a tool's arguments; none if it is called with code.
    pub(crate) fn schema(&self, builtin: &Builtin) -> Option<Json> {
        builtin
            .parameters
            .clone()
            .or_else(|| self.known.get(&builtin.name).cloned().map(Json::from))
    }
}

impl WireFormat {
    /// Headers of a function, or of a tool of the model's own.
    pub(crate) fn headers(&self, own: bool, code: bool) -> Vec<&[Part]> {
        match self.builtin.as_ref().filter(|_| own) {
            Some(builtin) => builtin.headers(code),
            None => std::iter::once(&self.call.header)
                .chain(&self.call.also)
                .map(Vec::as_slice)
                .collect(),
        }
    }

    /// What closes calls of the model's own tools.
    pub(crate) fn builtin_end(&self) -> Option<&Marker> {
        self.builtin.as_ref().and_then(|builtin| builtin.end.as_ref()).or(self.call.end.as_ref())
    }

    /// Texts that bare code does not begin with: what begins other calls behind the same marker.
    fn begins_calls(&self, builtins: &[Builtin]) -> Vec<Vec<u8>> {
        let Some(own) = self.builtin.as_ref().filter(|own| own.bare_code) else {
            return Vec::new();
        };
        let begins: Vec<String> = own.begin.iter().flat_map(Marker::texts_of_spellings).collect();
        let calls =
            self.call.begin.iter().chain(self.sure_spellings().map(|spelling| &spelling.begin));
        let calls = calls.flat_map(Marker::texts_of_spellings);
        let behind = |call: String| {
            begins.iter().find_map(|begin| call.strip_prefix(begin.as_str()).map(str::to_owned))
        };
        let mut out: Vec<String> =
            calls.filter_map(behind).filter(|rest| !rest.is_empty()).collect();
        for builtin in builtins.iter().filter(|builtin| own.schema(builtin).is_some()) {
            out.extend(own.headers(false).into_iter().map(|header| written(header, &builtin.name)));
        }
        out.into_iter().map(String::into_bytes).collect()
    }
}

/// A header as far as it is always written the same.
pub(crate) fn written(header: &[Part], name: &str) -> String {
    let fixed = header.iter().map_while(|part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Name(part) => Some(part.name.write(name)),
        Part::Marker(marker) => Some(marker.write()),
        Part::Id(_) | Part::Gap(_) | Part::Maybe(_) => None,
    });
    fixed.collect()
}

impl Lowering<'_> {
    /// What a tool of the model's own is called with.
    pub(crate) fn builtin_arguments(&mut self, k: usize, builtin: &Builtin) -> Option<Lowered> {
        let format = self.format;
        let own = format.builtin.as_ref().filter(|_| self.callable(&builtin.name))?;
        let lowered = match own.schema(builtin) {
            Some(schema) => self.lower_in(&own.arguments, &schema, &builtin.pointer)?,
            None => Lowered { rule: self.code(), reader: Reader::code() },
        };
        Some(self.as_arguments(self.request.functions() + k, &builtin.name, lowered))
    }

    /// Any text up to what closes the call; where code is bare, one that does not begin as other calls do.
    fn code(&mut self) -> RuleId {
        let begins = self.format.begins_calls(&self.request.builtins);
        let ends = self.format.builtin_end().map(Marker::text_heads).unwrap_or_default();
        let any = || Expr::star(spell_utf8(&SCALARS));
        let body = if ends.is_empty()
            && begins.is_empty()
            && !self.format.builtin.as_ref().is_some_and(|b| b.bare_code)
        {
            any()
        } else {
            let limit = self.request.limits.automaton_states;
            let frame = Frame {
                trail: Vec::new(),
                ends: ends.into_iter().map(String::into_bytes).collect(),
                ..Frame::default()
            };
            let begins = begins.iter().map(|text| Expr::seq([Expr::bytes(text), any()]));
            let others = regular::automaton(&Expr::alt(begins.chain([Expr::Empty])), &[], limit);
            let texts = text_dfa(&frame, limit).ok().zip(others.ok());
            let body = texts
                .and_then(|(texts, others)| texts.combine(&others, Combine::Minus, limit).ok());
            // Past the limit, nothing is code.
            body.map_or(Expr::Never, |dfa| Expr::Automaton(std::sync::Arc::new(dfa.minimize())))
        };
        self.builder.rule("code", body)
    }

    /// Whether the parts of the request that concern the model's own tools fit the format.
    pub(crate) fn check_builtins(
        format: &WireFormat,
        builtins: &[Builtin],
    ) -> Result<(), LowerError> {
        let Some(own) = &format.builtin else {
            if builtins.is_empty() {
                return Ok(());
            }
            return Err(LowerError::NoBuiltins { format: format.name.clone() });
        };
        let code = builtins.iter().filter(|builtin| own.schema(builtin).is_none()).count();
        if own.bare_code && code > 1 {
            let what = "several tools of the model's own that are called with code, in a format that does not name them";
            return Err(LowerError::Combination { what });
        }
        Ok(())
    }
}
