//! What a request gives the chat template besides messages and tools: reasoning and variables.

use louver::spec::json::Json;
use louver_mistralrs::TemplateInput;
use serde_json::{Map, Value};

use crate::request::members::{Faults, Members};
use crate::request::pointers::PointerMap;
use crate::request::to_value;

/// The values of `reasoning_effort`.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// What a request says of reasoning, and the variables that it sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TemplateOptions {
    /// Whether the request turns reasoning on or off.
    pub(crate) reasoning: Option<bool>,
    /// Variables of the chat template: `reasoning_effort`, `documents`, and the members of
    /// `chat_template_kwargs` besides `enable_thinking` and `thinking`.
    pub(crate) variables: Map<String, Value>,
}

impl TemplateOptions {
    /// Reads `reasoning_effort`, `enable_thinking`, `documents` and `chat_template_kwargs`. Every
    /// effort besides `none` turns reasoning on. Errors of later stages that concern reasoning have
    /// the pointer `/reasoning_effort`, which is mapped to the first member that was sent.
    pub(crate) fn read(
        members: &Members<'_>,
        pointers: &mut PointerMap,
        faults: &mut Faults,
    ) -> TemplateOptions {
        let mut reader = Reader { options: TemplateOptions::default(), set_by: None, faults };
        if let Some(effort) = members.one_of(reader.faults, "reasoning_effort", &EFFORTS) {
            reader.set_reasoning(members, "reasoning_effort", effort != "none");
            reader.options.variables.insert("reasoning_effort".to_owned(), effort.into());
        }
        reader.read_switch(members, "enable_thinking");
        if let Some(documents) = members.array(reader.faults, "documents") {
            let documents = documents.iter().map(to_value).collect();
            reader.options.variables.insert("documents".to_owned(), documents);
        }
        if let Some(variables) = members.object(reader.faults, "chat_template_kwargs") {
            for (name, value) in variables.iter().filter(|(_, value)| **value != Json::Null) {
                reader.read_variable(&variables, name, value);
            }
        }
        if let Some(pointer) = reader.set_by.filter(|pointer| pointer != "/reasoning_effort") {
            pointers.insert("/reasoning_effort", pointer);
        }
        reader.options
    }
}

struct Reader<'a> {
    options: TemplateOptions,
    /// The pointer of the first member that turns reasoning on or off.
    set_by: Option<String>,
    faults: &'a mut Faults,
}

impl Reader<'_> {
    /// Turns reasoning on or off, as a member says.
    fn set_reasoning(&mut self, members: &Members<'_>, name: &str, is_on: bool) {
        match (&self.set_by, self.options.reasoning) {
            (Some(first), Some(previous)) if previous != is_on => {
                members.fail(self.faults, name, "contradiction", format!("contradicts {first}"));
            }
            (Some(_), _) => {}
            (None, _) => {
                self.set_by = Some(members.pointer(name));
                self.options.reasoning = Some(is_on);
            }
        }
    }

    /// Reads a boolean that turns reasoning on or off.
    fn read_switch(&mut self, members: &Members<'_>, name: &str) {
        if let Some(is_on) = members.boolean(self.faults, name) {
            self.set_reasoning(members, name, is_on);
        }
    }

    /// Reads a member of `chat_template_kwargs`.
    fn read_variable(&mut self, members: &Members<'_>, name: &str, value: &Json) {
        if matches!(name, "enable_thinking" | "thinking") {
            return self.read_switch(members, name);
        }
        if TemplateInput::is_reserved(name) {
            let message = "other members of the request, or the model, give this variable";
            return members.fail(self.faults, name, "unsupported", message);
        }
        let value = to_value(value);
        let known = self.options.variables.entry(name).or_insert_with(|| value.clone());
        if *known != value {
            members.fail(self.faults, name, "contradiction", format!("contradicts /{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> (TemplateOptions, PointerMap, Vec<String>) {
        let body = Json::parse(text, &Limits::default()).unwrap();
        let (mut pointers, mut faults) = (PointerMap::default(), Faults::new());
        let members = Members::of_body(&body).unwrap();
        let options = TemplateOptions::read(&members, &mut pointers, &mut faults);
        (options, pointers, faults.into_iter().map(|fault| fault.param.unwrap()).collect())
    }

    #[test]
    fn settings_of_reasoning_must_agree() {
        for (text, want, want_faults) in [
            ("{}", None, vec![]),
            (r#"{"reasoning_effort": "none"}"#, Some(false), vec![]),
            (r#"{"reasoning_effort": "high", "enable_thinking": true}"#, Some(true), vec![]),
            (r#"{"chat_template_kwargs": {"enable_thinking": false}}"#, Some(false), vec![]),
            (r#"{"chat_template_kwargs": {"thinking": true}}"#, Some(true), vec![]),
            (
                r#"{"reasoning_effort": "low",
                    "chat_template_kwargs": {"enable_thinking": false, "thinking": 1}}"#,
                Some(true),
                vec!["/chat_template_kwargs/enable_thinking", "/chat_template_kwargs/thinking"],
            ),
            (r#"{"reasoning_effort": "max"}"#, Some(true), vec![]),
            (r#"{"reasoning_effort": "most"}"#, None, vec!["/reasoning_effort"]),
            (r#"{"chat_template_kwargs": {"x": null, "enable_thinking": null}}"#, None, vec![]),
        ] {
            let (options, _, faults) = read(text);
            assert_eq!(
                (options.reasoning, faults),
                (want, want_faults.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn variables_are_passed_on_unless_the_request_gives_them_otherwise() {
        let text = r#"{"reasoning_effort": "high", "chat_template_kwargs":
            {"reasoning_effort": "high", "thinking_budget": 512, "list": [1, {"a": null}],
             "thinking": true}}"#;
        let (options, _, faults) = read(text);
        let want =
            json!({"reasoning_effort": "high", "thinking_budget": 512, "list": [1, {"a": null}]});
        assert_eq!((Value::Object(options.variables), faults), (want, vec![]));
        let (options, _, faults) = read(r#"{"documents": [{"text": "a"}]}"#);
        assert_eq!(Value::Object(options.variables), json!({"documents": [{"text": "a"}]}));
        assert!(faults.is_empty());
        let text = r#"{"documents": [], "chat_template_kwargs": {"documents": [1]}}"#;
        assert_eq!(read(text).2, ["/chat_template_kwargs/documents"]);
        assert_eq!(read(r#"{"documents": "a"}"#).2, ["/documents"]);
        let text = r#"{"reasoning_effort": "high", "chat_template_kwargs": {
            "reasoning_effort": "low", "tools": [], "messages": [], "add_generation_prompt": false,
             "bos_token": ""}}"#;
        let names = ["reasoning_effort", "tools", "messages", "add_generation_prompt", "bos_token"];
        let want = names.map(|name| format!("/chat_template_kwargs/{name}"));
        assert_eq!(read(text).2, want);
    }

    #[test]
    fn errors_of_reasoning_are_at_the_member_that_was_sent() {
        for (text, pointer) in [
            ("{}", "/reasoning_effort"),
            (r#"{"enable_thinking": false}"#, "/enable_thinking"),
            (r#"{"reasoning_effort": "none", "enable_thinking": false}"#, "/reasoning_effort"),
            (r#"{"chat_template_kwargs": {"thinking": false}}"#, "/chat_template_kwargs/thinking"),
        ] {
            let (_, pointers, _) = read(text);
            assert_eq!(pointers.original("/reasoning_effort"), pointer, "{text}");
        }
    }
}
