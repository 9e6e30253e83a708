//! The request: what one turn may be, parsed from an OpenAI request body or built by a program.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use louver::engine::Engine;
use louver::front::json_schema::{
    Registry, SchemaError, SchemaErrorReason, SchemaErrors, SchemaOptions,
};
use louver::front::structural_tag::StructuralTagErrors;
use louver::fsm::TooLarge;
use louver::ir::GrammarError;
use louver::limits::Limits;
use louver::spec::json::{Json, push_token};
use louver::spec::tools::{
    MAX_TOOL_NAME_BYTES, Tool, ToolChoice, ToolChoiceError, ToolError, ToolErrorKind, ToolErrors,
};
use serde_json::json;

use crate::answer::AnswerTag;
use crate::custom::CustomTool;
use crate::fault::PartErrors;
use crate::format::WireFormat;
use crate::marker::Marker;
use crate::turn::CallKind;

/// What one turn may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolRequest {
    /// The offered functions.
    pub tools: Vec<Tool>,
    /// The offered custom tools, which are called with text.
    pub customs: Vec<CustomTool>,
    /// The offered built-in tools.
    pub builtins: Vec<Builtin>,
    /// The names of the tools that may be called. `None`: all tools.
    pub allowed: Option<Vec<String>>,
    /// Whose schemas are enforced.
    pub strictness: Strictness,
    /// Whether a tool, and which tool, must be called.
    pub tool_choice: ToolChoice,
    /// How many calls the turn may have.
    pub parallel: Parallel,
    /// Whether there is a reasoning block.
    pub reasoning: Reasoning,
    /// The bound on reasoning. When it is reached, only the end of the block can follow.
    pub reasoning_budget: Option<ReasoningBudget>,
    /// Stop strings. Free text and the turn end with the first of them, which is not part of the
    /// text.
    pub stop: Vec<String>,
    /// Texts that free text must not contain, in addition to those of the format.
    pub bans: Vec<String>,
    /// The JSON Schema of the answer. If tools may be called, the turn is calls or the answer; if a
    /// call is forced, the schema is ignored.
    pub response_format: Option<Json>,
    /// A structural tag that constrains the answer. It excludes a schema and tools that may be
    /// called.
    pub answer_tag: Option<AnswerTag>,
    /// The options of JSON Schemas.
    pub schema_options: SchemaOptions,
    /// The limits of lowering.
    pub limits: Limits,
    /// Schema documents that references may lead to.
    pub registry: Registry,
    /// When the schemas of tools are lowered.
    pub lazy: LazyTools,
}

/// When the schema of a tool's arguments is lowered. A schema is lowered later only if it certainly
/// has no errors, so that lowering a request always finds all errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LazyTools {
    /// With the request.
    Never,
    /// When a parse reaches the tool's arguments, in requests with at least this number of tools.
    From(usize),
}

impl Default for LazyTools {
    fn default() -> Self {
        LazyTools::From(2)
    }
}

/// How many calls a turn may have, if the family allows several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallel {
    /// Any number.
    #[default]
    Any,
    /// One at most.
    One,
    /// At most this number.
    AtMost(NonZeroU32),
}

/// Whose schemas are enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Every tool's.
    #[default]
    All,
    /// Those of tools with `strict`, and of all tools if a call is forced. The arguments of other
    /// tools are any JSON object.
    AsFlagged,
}

/// A built-in tool, which the model knows without a schema in the prompt: a browser, an
/// interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct Builtin {
    /// Its name, as the model writes it.
    pub name: String,
    /// The JSON Schema of its arguments. `None`: the schema that the family knows, or else the tool
    /// is called with code.
    pub parameters: Option<Json>,
    /// The JSON pointer of `parameters` in the request, for errors.
    pub pointer: String,
}

impl Builtin {
    /// Parses entry `k` of a request's tools: `{"type": "python"}`, `{"type": "browser.search",
    /// "parameters": {...}}`. `None` if its type is `function` or `custom`.
    pub fn parse(k: usize, entry: &Json) -> Result<Option<Builtin>, RequestError> {
        let Some(kind) = entry.get("type").and_then(Json::as_str) else { return Ok(None) };
        if kind == "function" || kind == "custom" || entry.get("function").is_some() {
            return Ok(None);
        }
        let error = |expected| RequestError::Builtin { tool: k, expected };
        let name = match entry.get("name") {
            None | Some(Json::Null) => kind,
            Some(Json::String(name)) => name,
            Some(_) => return Err(error("`name` to be a string")),
        };
        if name.is_empty() || name.len() > MAX_TOOL_NAME_BYTES || name.contains(char::is_control) {
            return Err(error("a name without control characters"));
        }
        let parameters = match entry.get("parameters") {
            None | Some(Json::Null) => None,
            Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema.clone()),
            Some(_) => return Err(error("`parameters` to be a JSON Schema")),
        };
        let pointer = format!("/tools/{k}/parameters");
        Ok(Some(Builtin { name: name.to_owned(), parameters, pointer }))
    }
}

/// Whether a turn begins with a reasoning block, in families that have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// The turn may begin with a block.
    #[default]
    Optional,
    /// No block: reasoning is off, or the prompt has already closed the block.
    Off,
    /// The turn begins with a block.
    Required,
    /// The prompt has already opened the block: the turn begins inside.
    Opened,
}

/// A bound on the reasoning of a turn, without its markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningBudget {
    /// At most this number of tokens that begin in the reasoning. If the end marker is text in the
    /// vocabulary, the token that begins it counts.
    Tokens(u32),
    /// At most this number of code points.
    Characters(u32),
}

/// Why a request body cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Errors of `tools`.
    #[error(transparent)]
    Tools(#[from] ToolErrors),
    /// An error of `tool_choice`.
    #[error(transparent)]
    Choice(#[from] ToolChoiceError),
    /// Errors of the structural tag.
    #[error(transparent)]
    StructuralTag(#[from] StructuralTagErrors),
    /// An unknown member where each member may demand a constraint.
    #[error("{pointer}: there is no such member{hint}")]
    UnknownMember {
        /// JSON pointer of the member.
        pointer: String,
        /// What to write instead, after a colon, or the empty text.
        hint: &'static str,
    },
    /// An error of a built-in tool.
    #[error("/tools/{tool}: expected {expected}")]
    Builtin {
        /// Its index among the tools.
        tool: usize,
        /// What is expected.
        expected: &'static str,
    },
    /// An error of another member.
    #[error("{pointer}: must be {expected}")]
    Malformed {
        /// JSON pointer of the member.
        pointer: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl ToolRequest {
    /// Parses `tools`, `tool_choice` (`allowed_tools` too), `parallel_tool_calls`,
    /// `response_format` and `stop` of an OpenAI request body. Other members are ignored. Cost:
    /// linear.
    pub fn parse(body: &Json) -> Result<ToolRequest, RequestError> {
        let malformed = |pointer, expected| RequestError::Malformed { pointer, expected };
        let Json::Object(members) = body else {
            return Err(malformed("", "an object"));
        };
        let OfferedTools { tools, customs, builtins } = match members.get("tools") {
            None | Some(Json::Null) => Default::default(),
            Some(tools) => parse_tools(tools)?,
        };
        let (tool_choice, allowed) =
            parse_choice(members.get("tool_choice").unwrap_or(&Json::Null))?;
        let stop = match members.get("stop") {
            None | Some(Json::Null) => Some(Vec::new()),
            Some(Json::String(text)) => Some(vec![text.clone()]),
            Some(Json::Array(items)) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Some(_) => None,
        };
        let stop = stop.ok_or(malformed("/stop", "a string or an array of strings"))?;
        let parallel = match members.get("parallel_tool_calls") {
            None | Some(Json::Null | Json::Bool(true)) => Parallel::Any,
            Some(Json::Bool(false)) => Parallel::One,
            Some(_) => return Err(malformed("/parallel_tool_calls", "a boolean")),
        };
        let response = members.get("response_format").unwrap_or(&Json::Null);
        check_response_format(response)?;
        let kind = response.get("type").and_then(Json::as_str);
        let response_format = match (kind, response) {
            (_, Json::Null) | (Some("text" | "structural_tag"), _) => None,
            (Some("json_object"), _) => Some(any_object()),
            (Some("json_schema"), _) => match response.pointer("/json_schema/schema") {
                Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema.clone()),
                _ => return Err(malformed(RESPONSE_POINTER, "a JSON Schema")),
            },
            _ => {
                let expected = "\"text\", \"json_object\", \"json_schema\" or \"structural_tag\"";
                return Err(malformed("/response_format/type", expected));
            }
        };
        let answer_tag = match kind {
            Some("structural_tag") => Some(AnswerTag::parse(body, &Limits::default())?),
            _ => None,
        };
        let request = ToolRequest {
            tools,
            customs,
            builtins,
            tool_choice,
            allowed,
            parallel,
            response_format,
            answer_tag,
            stop,
            ..ToolRequest::default()
        };
        request.check_choice()?;
        Ok(request)
    }
}

impl ToolRequest {
    /// The schema of a tool's arguments that is enforced.
    pub(crate) fn arguments_schema<'a>(&self, tool: &'a Tool) -> Cow<'a, Json> {
        if self.is_enforced(tool) {
            Cow::Borrowed(&tool.parameters)
        } else {
            Cow::Owned(any_object())
        }
    }

    /// Whether a tool's schema is enforced.
    fn is_enforced(&self, tool: &Tool) -> bool {
        self.strictness == Strictness::All || tool.strict || self.is_forced()
    }

    /// Whether the turn must have a call.
    pub(crate) fn is_forced(&self) -> bool {
        matches!(self.tool_choice, ToolChoice::Required | ToolChoice::Named(_))
    }

    /// Whether the turn may call the tool.
    pub(crate) fn may_call(&self, name: &str) -> bool {
        let is_allowed =
            self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|a| a == name));
        is_allowed
            && match &self.tool_choice {
                ToolChoice::Auto | ToolChoice::Required => true,
                ToolChoice::None => false,
                ToolChoice::Named(named) => named == name,
            }
    }

    /// The tools whose schema is not enforced as they are not `strict`: their indices, and an error
    /// for each.
    pub(crate) fn unflagged(&self) -> Vec<(usize, SchemaError)> {
        let tools = self.tools.iter().enumerate().filter(|(_, tool)| {
            !self.is_enforced(tool) && self.may_call(&tool.name) && tool.parameters != any_object()
        });
        let error = |(k, tool): (usize, &Tool)| {
            let reason = "the tool is not flagged strict: any object".into();
            let error = SchemaError {
                pointer: tool.parameters_pointer(self.position(k)),
                keyword: String::new(),
                reason: SchemaErrorReason::Unsupported(reason),
            };
            (k, error)
        };
        tools.map(error).collect()
    }

    /// The index of function `k` among all tools of the request.
    pub(crate) fn position(&self, k: usize) -> usize {
        let index = |builtin: &Builtin| {
            let rest = builtin.pointer.strip_prefix("/tools/")?;
            rest.split('/').next()?.parse().ok()
        };
        let customs = self.customs.iter().filter_map(CustomTool::index);
        let mut others: Vec<usize> =
            self.builtins.iter().filter_map(index).chain(customs).collect();
        others.sort_unstable();
        others.into_iter().fold(k, |k, other| if other <= k { k + 1 } else { k })
    }

    /// Replaces the offered tools by those of a request body's `tools`: functions, custom tools and
    /// built-in tools.
    pub fn offer(&mut self, tools: &Json) -> Result<(), RequestError> {
        OfferedTools { tools: self.tools, customs: self.customs, builtins: self.builtins } =
            parse_tools(tools)?;
        Ok(())
    }

    /// Takes over the properties of an engine that lowering depends on: its limits, its registry
    /// unless the request has one, and the special tokens of its vocabulary.
    pub fn apply_engine(&mut self, engine: &Engine) {
        self.limits = engine.options().limits.clone();
        if self.registry.is_empty() {
            self.registry = engine.options().registry.clone();
        }
        if let Some(answer) = &mut self.answer_tag {
            let specials = engine.vocab().specials().iter().map(|(_, name)| name.clone());
            answer.options.special_tokens.extend(specials);
        }
    }

    /// The number of tools that are called as functions are: all but the built-in tools.
    pub(crate) fn functions(&self) -> usize {
        self.tools.len() + self.customs.len()
    }

    /// Names and kinds in the order of a plan's tools.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&str, CallKind)> {
        let functions = self.tools.iter().map(|tool| (tool.name.as_str(), CallKind::Function));
        let customs = self.customs.iter().map(|custom| (custom.name.as_str(), CallKind::Custom));
        functions
            .chain(customs)
            .chain(self.builtins.iter().map(|b| (b.name.as_str(), CallKind::Function)))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds().map(|(name, _)| name)
    }

    /// Checks that a structural tag goes with the rest of the request and the format.
    fn check_answer(&self, format: &WireFormat) -> Result<(), LowerError> {
        if self.answer_tag.is_none() {
            return Ok(());
        }
        let has_schema = self.response_format.is_some();
        refuse(has_schema, "a structural tag and a schema of the answer")?;
        refuse(!self.stop.is_empty(), "stop strings and `response_format`")?;
        // The free text of the tag could be taken for calls.
        let may_call = self.tool_choice != ToolChoice::None && self.names().next().is_some();
        refuse(may_call, "a structural tag as `response_format`, and tools that may be called")?;
        let frame_end = format.frame.as_ref().map(|frame| &frame.end);
        let mut ends = format.text.end.iter().chain(frame_end).flat_map(Marker::plain_texts);
        let what = "a structural tag as `response_format`, in a format that ends text with a \
                    written marker";
        refuse(ends.next().is_some(), what)
    }

    fn check_choice(&self) -> Result<(), ToolChoiceError> {
        let names: HashSet<&str> = self.names().collect();
        let is_offered = |name: &str| names.contains(name);
        let unknown = |name: &str| {
            let known = self.names().map(str::to_owned).collect();
            Err(ToolChoiceError::UnknownTool { name: name.to_owned(), known })
        };
        if let Some(name) = self.allowed.iter().flatten().find(|name| !is_offered(name)) {
            return unknown(name);
        }
        let listed: HashSet<&str> = self.allowed.iter().flatten().map(String::as_str).collect();
        let is_allowed = |name: &str| self.allowed.is_none() || listed.contains(name);
        match &self.tool_choice {
            ToolChoice::Named(name) if !is_offered(name) || !is_allowed(name) => unknown(name),
            ToolChoice::Required if !self.names().any(is_allowed) => Err(ToolChoiceError::NoTools),
            _ => Ok(()),
        }
    }

    /// Checks that the parts of the request go with each other and with the format.
    pub(crate) fn check(&self, format: &WireFormat) -> Result<(), LowerError> {
        self.check_choice()?;
        format.check_builtins(&self.builtins)?;
        let mut taken: HashSet<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        let is_taken = self.builtins.iter().any(|builtin| taken.contains(&*builtin.name));
        refuse(is_taken, "a built-in tool and another of the same name")?;
        taken.extend(self.builtins.iter().map(|builtin| &*builtin.name));
        let is_taken = self.customs.iter().any(|custom| !taken.insert(&custom.name));
        refuse(is_taken, "a custom tool and another of the same name")?;
        self.check_answer(format)?;
        self.check_texts(format)?;
        if self.reasoning_budget.is_some() {
            let is_off = self.reasoning == Reasoning::Off;
            refuse(is_off, "a reasoning budget without reasoning")?;
            if format.reasoning.is_none() {
                return Err(LowerError::NoReasoning { format: format.name.clone() });
            }
        }
        Ok(())
    }

    /// Checks stop strings and bans.
    fn check_texts(&self, format: &WireFormat) -> Result<(), LowerError> {
        let texts = || self.stop.iter().chain(&self.bans);
        let limit = self.limits.dispatch_bytes;
        let mut bytes = 0usize;
        for (k, text) in texts().enumerate() {
            bytes = bytes.saturating_add(text.len());
            if bytes > limit {
                // A single stop string may stand in the request without a list.
                let pointer = match self.stop.len() {
                    1 if k == 0 => "/stop".to_owned(),
                    stops if k < stops => format!("/stop/{k}"),
                    _ => String::new(),
                };
                return Err(LowerError::TooMuchText { pointer, limit });
            }
        }
        refuse(texts().any(String::is_empty), "an empty stop string or ban")?;
        let has_schema = self.response_format.is_some();
        refuse(!self.stop.is_empty() && has_schema, "stop strings and `response_format`")?;
        let frame = format.frame.iter().flat_map(|frame| [&frame.begin, &frame.end]);
        let section = format.section.iter().map(|section| &section.begin);
        let markers = section
            .chain(&format.call.begin)
            .chain(&format.text.end)
            .chain(format.builtin_begin())
            .chain(frame);
        let markers: Vec<String> = markers.flat_map(Marker::plain_texts).collect();
        let is_in_marker =
            texts().any(|text| markers.iter().any(|marker| marker.contains(text.as_str())));
        refuse(is_in_marker, "a stop string or ban that is part of a marker of the format")
    }
}

fn refuse(is_wrong: bool, what: &'static str) -> Result<(), LowerError> {
    if is_wrong { Err(LowerError::Combination { what }) } else { Ok(()) }
}

/// The schema of any object.
fn any_object() -> Json {
    Json::from(json!({"type": "object"}))
}

/// Refuses unknown members of a `response_format`. Structural tags are checked by their own parser.
fn check_response_format(response: &Json) -> Result<(), RequestError> {
    let known: &[&str] = match response.get("type").and_then(Json::as_str) {
        Some("json_schema") => &["type", "json_schema"],
        Some("text" | "json_object") => &["type"],
        _ => return Ok(()),
    };
    let inner = response.get("json_schema").unwrap_or(&Json::Null);
    let places = [
        ("/response_format", response, known),
        ("/response_format/json_schema", inner, &["name", "description", "schema", "strict"]),
    ];
    for (at, value, known) in places {
        let Json::Object(members) = value else { continue };
        if let Some(name) = members.unknown(known).next() {
            let mut pointer = at.to_owned();
            push_token(&mut pointer, name);
            let is_schema =
                ["type", "properties", "$schema", "enum", "anyOf", "$ref", "$defs"].contains(&name);
            let hint = if at.ends_with("json_schema") && is_schema {
                ": the schema belongs in `json_schema.schema`"
            } else {
                ""
            };
            return Err(RequestError::UnknownMember { pointer, hint });
        }
    }
    Ok(())
}

/// The tools of a request, by kind.
#[derive(Debug, Default)]
struct OfferedTools {
    tools: Vec<Tool>,
    customs: Vec<CustomTool>,
    builtins: Vec<Builtin>,
}

/// Parses `tools`: functions, custom tools and built-in tools. Fails with all errors.
fn parse_tools(tools: &Json) -> Result<OfferedTools, RequestError> {
    let Json::Array(entries) = tools else {
        return Ok(OfferedTools { tools: Tool::parse_list(tools)?, ..OfferedTools::default() });
    };
    let mut offered = OfferedTools::default();
    let (mut functions, mut errors) = (Vec::new(), Vec::new());
    for (k, entry) in entries.iter().enumerate() {
        if is_custom(entry) {
            match CustomTool::parse(k, entry) {
                Ok(custom) => offered.customs.push(custom),
                Err(found) => errors.extend(found),
            }
        } else if let Some(builtin) = Builtin::parse(k, entry)? {
            offered.builtins.push(builtin);
        } else {
            functions.push((k, entry.clone()));
        }
    }
    let list = Json::Array(functions.iter().map(|(_, entry)| entry.clone()).collect());
    // The index in the request of a function.
    let index = |k: usize| functions.get(k).map(|(index, _)| *index);
    match Tool::parse_list(&list) {
        Ok(tools) => offered.tools = tools,
        Err(found) => errors.extend(found.0.into_iter().map(|mut error| {
            let mut tokens: Vec<String> = error.pointer.split('/').map(str::to_owned).collect();
            if let Some(token) = tokens.get_mut(2)
                && let Some(k) = token.parse::<usize>().ok().and_then(index)
            {
                *token = k.to_string();
            }
            error.pointer = tokens.join("/");
            if let ToolErrorKind::Duplicate { first, .. } = &mut error.kind {
                *first = index(*first).unwrap_or(*first);
            }
            error
        })),
    }
    // If a custom tool and another tool have the same name, the later one is an error.
    let functions =
        functions.iter().zip(&offered.tools).map(|((k, _), tool)| (*k, &tool.name, None));
    let customs =
        offered.customs.iter().filter_map(|c| Some((c.index()?, &c.name, Some(&c.pointer))));
    let mut named: Vec<(usize, &String, Option<&String>)> = functions.chain(customs).collect();
    named.sort_unstable();
    let mut first: HashMap<&String, (usize, bool)> = HashMap::new();
    for (k, name, custom) in named {
        match first.get(name) {
            Some(&(first, was_custom)) if was_custom || custom.is_some() => {
                let pointer = custom.map_or_else(|| format!("/tools/{k}"), String::clone);
                let kind = ToolErrorKind::Duplicate { name: name.clone(), first };
                errors.push(ToolError { pointer: format!("{pointer}/name"), kind });
            }
            Some(_) => {}
            None => drop(first.insert(name, (k, custom.is_some()))),
        }
    }
    if errors.is_empty() { Ok(offered) } else { Err(ToolErrors(errors).into()) }
}

fn is_custom(entry: &Json) -> bool {
    entry.get("type").and_then(Json::as_str) == Some("custom")
}

/// Parses `tool_choice`. Also returns the names that it allows.
fn parse_choice(choice: &Json) -> Result<(ToolChoice, Option<Vec<String>>), RequestError> {
    let malformed = |expected| RequestError::Malformed { pointer: "/tool_choice", expected };
    let named = |name: &str| Ok((ToolChoice::Named(name.to_owned()), None));
    let name = choice.get("name").and_then(Json::as_str);
    match choice.get("type").and_then(Json::as_str) {
        Some("allowed_tools") => {
            // Chat Completions nests the list, Responses does not.
            let inner = choice.get("allowed_tools").unwrap_or(choice);
            let mode = match inner.get("mode").and_then(Json::as_str) {
                Some("auto") => ToolChoice::Auto,
                Some("required") => ToolChoice::Required,
                _ => return Err(malformed("allowed tools with `mode` \"auto\" or \"required\"")),
            };
            let tools = inner.get("tools").and_then(Json::as_array);
            let tools = tools.ok_or(malformed("allowed tools with `tools`, an array"))?;
            let names: Option<Vec<String>> = tools.iter().map(allowed_name).collect();
            Ok((mode, Some(names.ok_or(malformed("allowed tools that have names"))?)))
        }
        Some("custom") => {
            let nested = choice.pointer("/custom/name").map(Json::as_str);
            let name = nested.unwrap_or(name);
            named(name.ok_or(malformed("a custom tool choice that has a name"))?)
        }
        Some(kind) if kind != "function" && choice.get("function").is_none() => {
            named(name.unwrap_or(kind))
        }
        _ => Ok((ToolChoice::parse(choice)?, None)),
    }
}

/// The name of an entry of `allowed_tools`.
fn allowed_name(tool: &Json) -> Option<String> {
    let nested = tool.pointer("/function/name").or_else(|| tool.pointer("/custom/name"));
    let name = nested.or_else(|| tool.get("name")).or_else(|| tool.get("type"));
    name.and_then(Json::as_str).map(str::to_owned)
}

/// The JSON pointer of the schema of `response_format` in a request.
pub(crate) const RESPONSE_POINTER: &str = "/response_format/json_schema/schema";

/// Why a request cannot be lowered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// The tool choice does not go with the tools.
    #[error(transparent)]
    Choice(#[from] ToolChoiceError),
    /// All errors of schemas that cannot be enforced, with pointers into the request such as
    /// `/tools/2/function/parameters/properties/x/not`.
    #[error(transparent)]
    Schemas(#[from] SchemaErrors),
    /// All errors of schemas, custom tools and a structural tag that cannot be enforced, if there
    /// are others than those of schemas.
    #[error(transparent)]
    Parts(Box<PartErrors>),
    /// Reasoning is required, and the family has none.
    #[error("wire format `{format}` has no reasoning block")]
    NoReasoning {
        /// The family.
        format: String,
    },
    /// Built-in tools are offered, and the family has none.
    #[error("wire format `{format}` has no built-in tools")]
    NoBuiltins {
        /// The family.
        format: String,
    },
    /// Parts of the request that do not go together.
    #[error("not supported together: {what}")]
    Combination {
        /// The parts.
        what: &'static str,
    },
    /// The bound on calls with text between them is too large.
    #[error("at most {most} calls with text between them: over the limit of {limit}")]
    TooManyCalls {
        /// The bound.
        most: u32,
        /// The limit.
        limit: u32,
    },
    /// Stop strings and bans have more bytes than [`Limits::dispatch_bytes`].
    #[error("the texts that end or interrupt free text have more than {limit} bytes")]
    TooMuchText {
        /// JSON pointer of the first stop string beyond the limit: `/stop/3`, or `/stop` if there
        /// is one only. Empty for a ban.
        pointer: String,
        /// The limit.
        limit: usize,
    },
    /// An automaton is over the limit.
    #[error("{what}: {cause}")]
    TooLarge {
        /// The purpose of the automaton.
        what: &'static str,
        /// The limit.
        cause: TooLarge,
    },
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}
