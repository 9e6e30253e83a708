//! Compiling a request. The engine's grammar cache keeps the results for equal requests.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use louver::compile::CompileError;
use louver::engine::{Constraint, Engine};
use louver::front::json_schema::Policy;
use louver::fuel;
use louver::spec::json::Json;

use crate::format::WireFormat;
use crate::lowered::LoweredRequest;
use crate::request::{ConstraintError, PartErrors, ResponseFormat, Tool, ToolChoice, ToolRequest};

/// Estimated bytes of key, lowered request and constraint per byte of what the request says.
const BYTES_PER_REQUEST_BYTE: usize = 4;
/// Estimated bytes of an entry of the cache beside that: two copies of the format.
const BYTES_PER_ENTRY: usize = 16 << 10;

/// The cache key: a request with the engine's limits, and a format. The request has no
/// descriptions, which are for the model and not for the grammar.
#[derive(PartialEq)]
struct RequestKey {
    format: WireFormat,
    request: ToolRequest,
}

// No field holds a float, so that equality is reflexive.
impl Eq for RequestKey {}

impl Hash for RequestKey {
    /// Hashes all that clients choose and that may be long, so that a look-up, which is under the
    /// lock of the cache, seldom compares more than one request. Cost: linear.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let RequestKey { format, request } = self;
        format.name.hash(state);
        request.texts().for_each(|text| text.hash(state));
        request.documents().for_each(|document| document.hash(state));
    }
}

impl RequestKey {
    /// Estimated memory of the entry without its grammar, in bytes.
    fn bytes(&self) -> usize {
        let texts = self.request.texts().map(|text| size_of::<String>() + text.len());
        let documents = self.request.documents().map(|document| document.bytes());
        let tools = self.request.tools.len() * size_of::<Tool>();
        let said = tools + texts.sum::<usize>() + documents.sum::<usize>();
        BYTES_PER_REQUEST_BYTE * said + BYTES_PER_ENTRY
    }
}

impl ToolRequest {
    /// The schemas of tools, and the schema or the structural tag of the response.
    fn documents(&self) -> impl Iterator<Item = Cow<'_, Json>> {
        let response = self.response_format.as_ref().map(|format| match format {
            ResponseFormat::Schema(schema) => Cow::Borrowed(schema),
            ResponseFormat::StructuralTag(tag) => Cow::Owned(tag.tag.to_json()),
        });
        self.tools.iter().filter_map(Tool::parameters).map(Cow::Borrowed).chain(response)
    }

    /// The texts beside the documents, without descriptions.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let ToolRequest { tools, allowed, tool_choice, stop, bans, response_format, .. } = self;
        let inputs = tools.iter().filter_map(|tool| match tool {
            Tool::Custom(tool) => tool.input.grammar(),
            Tool::Function(_) | Tool::Builtin(_) => None,
        });
        let named = match tool_choice {
            ToolChoice::Named(name) => Some(name),
            ToolChoice::Auto | ToolChoice::Required | ToolChoice::None => None,
        };
        let special_tokens = match response_format {
            Some(ResponseFormat::StructuralTag(tag)) => tag.options.special_tokens.as_slice(),
            _ => &[],
        };
        let lists = [allowed.as_deref().unwrap_or_default(), stop, bans, special_tokens];
        let listed = lists.into_iter().flatten().chain(named).map(String::as_str);
        tools.iter().map(Tool::name).chain(inputs).chain(listed)
    }

    /// Takes over the engine's limits and special tokens, lowers the request for a format and
    /// compiles the grammar. An equal request gets the same results, with their masks,
    /// while they are in the grammar cache, also if descriptions of tools differ:
    /// [`EngineOptions::grammar_cache_bytes`](louver::engine::EngineOptions::grammar_cache_bytes).
    pub fn compile(
        mut self,
        engine: &Engine,
        format: &WireFormat,
    ) -> Result<(LoweredRequest, Constraint), ConstraintError> {
        // The engine's registry is shared by all requests.
        let documents = self.registry.iter();
        let own_registry: usize = documents.map(|(uri, json)| uri.len() + json.bytes()).sum();
        self.apply_engine(engine);
        self.tools.iter_mut().for_each(Tool::clear_description);
        let key = RequestKey { format: format.clone(), request: self };
        let bytes = key.bytes() + own_registry;
        // One budget of work for all documents of the request.
        let options = &key.request.schema_options;
        let text_len = key.request.documents().map(|document| document.text_len()).sum();
        let fuel = options.compile_budget(&key.request.limits, text_len);
        let (constraint, lowered) =
            engine.get_or_compile(key, bytes, |RequestKey { format, request }| {
                fuel::with_budget(fuel, || compile_within(engine, format, request))
            })?;
        Ok((LoweredRequest::clone(&lowered), constraint))
    }
}

/// Lowers and compiles a request within the fuel of the thread. Under a policy that relaxes, a
/// request whose grammar takes too much work is lowered again within tighter limits.
fn compile_within(
    engine: &Engine,
    format: &WireFormat,
    request: &ToolRequest,
) -> Result<(Constraint, LoweredRequest), ConstraintError> {
    let format = format.bind(engine.vocab());
    let mut request = Cow::Borrowed(request);
    loop {
        let lowered = format.lower(&request)?;
        let compile = || {
            let constraint = engine.compile(lowered.grammar().clone())?;
            constraint.make_first_mask().map(|()| constraint)
        };
        // The rules of the grammar are none of the request's.
        let error = |error: CompileError| match (&error, request.response_format.as_ref()) {
            (CompileError::Empty { .. }, Some(ResponseFormat::StructuralTag(tag))) => {
                ConstraintError::Lower(PartErrors::of_empty_tag(tag).into())
            }
            _ => error.into(),
        };
        let tighter = request.limits.tightened();
        if request.schema_options.policy == Policy::Strict {
            return Ok((compile().map_err(error)?, lowered));
        }
        match (fuel::with_half(compile), tighter) {
            (Ok(constraint), _) => return Ok((constraint, lowered)),
            (Err(found), Some(limits)) if found.is_limit() => request.to_mut().limits = limits,
            (Err(found), _) => return Err(error(found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};
    use std::sync::Arc;

    use louver::engine::EngineOptions;
    use louver::front::json_schema::Registry;
    use louver::front::structural_tag::StructuralTag;
    use louver::limits::Limits;
    use louver::vocab::Vocabulary;
    use serde_json::json;

    use super::*;
    use crate::format::Catalog;
    use crate::request::{CustomInput, CustomTool, FunctionTool};

    const LEN: usize = 100_000;

    fn object() -> Json {
        Json::from(json!({"type": "object"}))
    }

    fn custom(input: CustomInput) -> Tool {
        CustomTool::new("edit", input).unwrap().into()
    }

    fn response(format: serde_json::Value) -> ToolRequest {
        let document = Json::from(json!({"type": "structural_tag", "format": format}));
        let tag = StructuralTag::read(&document, &Limits::default()).unwrap();
        let format = ResponseFormat::StructuralTag(Box::new(tag.into()));
        ToolRequest::default().with_response_format(format)
    }

    /// Requests that differ in one long part.
    fn long_requests(text: &str) -> Vec<ToolRequest> {
        let request = ToolRequest::default;
        let texts = || vec![text.to_owned()];
        let schema = Json::from(json!({"description": text}));
        let mut named = FunctionTool::new("f", object()).unwrap();
        text.clone_into(&mut named.name);
        vec![
            request().with_tools(vec![custom(CustomInput::Lark(text.to_owned()))]),
            request().with_tools(vec![custom(CustomInput::Regex(text.to_owned()))]),
            request().with_tools(vec![FunctionTool::new("f", schema.clone()).unwrap().into()]),
            request().with_tools(vec![named.into()]),
            request().with_allowed(texts()),
            request().with_tool_choice(ToolChoice::Named(text.to_owned())),
            request().with_stop(texts()),
            request().with_bans(texts()),
            request().with_response_format(ResponseFormat::Schema(schema)),
            response(json!({"type": "const_string", "value": text})),
            response(json!({"type": "grammar", "grammar": text})),
        ]
    }

    /// All that a client may make long is in the estimate, and all that may differ in the hash.
    #[test]
    fn keys_count_and_hash_all_texts() {
        let key = |request| RequestKey { format: WireFormat::plain(), request };
        let state = RandomState::new();
        let long = "a".repeat(LEN);
        for (k, (request, other)) in
            long_requests(&long).into_iter().zip(long_requests("b")).enumerate()
        {
            let (long, short) = (key(request), key(other));
            assert!(long.bytes() >= short.bytes() + BYTES_PER_REQUEST_BYTE * (LEN - 1), "{k}");
            assert_ne!(state.hash_one(&long), state.hash_one(&short), "{k}");
        }
    }

    /// Descriptions are neither kept nor compared.
    #[test]
    fn requests_with_other_descriptions_share_the_grammar() {
        let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
        let catalog = Catalog::shipped();
        let format = catalog.get("hermes").unwrap();
        for k in 0..3 {
            let description = Some(format!("{k}").repeat(LEN));
            let mut function = FunctionTool::new("f", object()).unwrap();
            function.description.clone_from(&description);
            let mut edit = CustomTool::new("edit", CustomInput::Text).unwrap();
            edit.description = description;
            let request = ToolRequest::default().with_tools(vec![function.into(), edit.into()]);
            request.compile(&engine, format).unwrap();
        }
        let stats = engine.stats().grammars;
        assert_eq!((stats.misses, stats.hits), (1, 2));
    }

    /// The documents of a request are counted; those of the engine are shared.
    #[test]
    fn registries_of_requests_are_counted() {
        let mut registry = Registry::new();
        registry.insert("https://example.org/a", Json::from(json!("a".repeat(LEN))));
        let bytes = |registry: &Registry, own: &Registry| {
            let options = EngineOptions::default().with_registry(registry.clone());
            let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), options);
            let request = ToolRequest::default().with_registry(own.clone());
            request.compile(&engine, &WireFormat::plain()).unwrap();
            engine.stats().grammars.bytes
        };
        let none = Registry::new();
        assert!(bytes(&none, &registry) >= bytes(&registry, &none) + LEN);
    }
}
