//! Members that mean nothing to the server, and members that mean something it cannot do.

use louver::spec::json::Json;

use crate::config::UnknownMembers;
use crate::error::ApiFault;
use crate::request::members::{Faults, Members};

/// Members that every route reads, and that mean the same in all.
pub(crate) const COMMON: [&str; 15] = [
    "model",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "stop",
    "stream",
    "louver",
];

/// What a route knows of its members beside [`COMMON`].
pub(crate) struct Table {
    /// Read by the route.
    pub(crate) known: &'static [&'static str],
    /// Known from OpenAI's API, and without a meaning for what is generated here.
    pub(crate) ignored: &'static [&'static str],
    /// Known from OpenAI's API, with a meaning that cannot be honoured, and why.
    pub(crate) refused: &'static [(&'static str, &'static str)],
}

impl Table {
    /// Notes members that must be refused. A refused member that asks for nothing (`null`, `false`, empty) is let pass.
    pub(crate) fn check(&self, members: &Members<'_>, unknown: UnknownMembers, faults: &mut Faults) {
        for name in members.names() {
            let Some(value) = members.get(name) else { continue };
            if let Some((_, why)) = self.refused.iter().find(|(refused, _)| *refused == name) {
                if !asks_for_nothing(value) {
                    members.fail(faults, name, "unsupported", *why);
                }
                continue;
            }
            let is_known =
                [&COMMON, self.known].iter().any(|known| known.contains(&name)) || self.ignored.contains(&name);
            if !is_known && unknown == UnknownMembers::Refuse {
                faults.push(ApiFault::at(members.pointer(name), "unknown_member", "there is no such member"));
            }
        }
    }
}

fn asks_for_nothing(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Bool(true) | Json::Number(_) | Json::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    const TABLE: Table = Table { known: &["a"], ignored: &["user"], refused: &[("bias", "it cannot be done")] };

    #[test]
    fn what_is_refused() {
        let check = |text: &str, unknown| {
            let (json, mut faults) = (Json::parse(text, &Limits::default()).unwrap(), Faults::new());
            TABLE.check(&Members::of(&json, "", &mut faults).unwrap(), unknown, &mut faults);
            faults.into_iter().map(|f| f.param.unwrap()).collect::<Vec<_>>()
        };
        let text = r#"{"a": 1, "seed": 1, "user": 2, "bias": {"1": 2}, "x": 3}"#;
        assert_eq!(check(text, UnknownMembers::Ignore), ["/bias"]);
        assert_eq!(check(text, UnknownMembers::Refuse), ["/bias", "/x"]);
        assert_eq!(check(r#"{"bias": {}, "x": null}"#, UnknownMembers::Refuse), [""; 0]);
    }
}
