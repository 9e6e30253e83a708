//! What a turn may be, and why a request cannot become a grammar.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use louver::engine::Engine;
use louver::front::json_schema::{SchemaError, SchemaErrorReason, SchemaErrors, SchemaOptions};
use louver::front::structural_tag::StructuralTagErrors;
use louver::fsm::TooLarge;
use louver::ir::GrammarError;
use louver::limits::Limits;
use louver::spec::json::{Json, push_token};
use louver::spec::tools::{
    Tool, ToolChoice, ToolChoiceError, ToolError, ToolErrorKind, ToolErrors,
};
use serde_json::json;

use crate::answer::AnswerTag;
use crate::custom::CustomTool;
use crate::fault::PartErrors;
use crate::format::WireFormat;
use crate::lower::{Lowering, unknown};
use crate::marker::Marker;
use crate::turn::CallKind;

/// One turn's demands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolRequest {
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// The tools on offer that are called with text.
    pub customs: Vec<CustomTool>,
    /// The model's own tools on offer, in families that have them.
    pub builtins: Vec<Builtin>,
    /// The only tools that may be called, by name; `None`: all of them.
    pub allowed: Option<Vec<String>>,
    /// Whose arguments match their schema.
    pub strictness: Strictness,
    /// Whether and which of them must be called.
    pub tool_choice: ToolChoice,
    /// How many calls the turn may have.
    pub parallel: Parallel,
    /// What the reasoning block may be.
    pub reasoning: Reasoning,
    /// How much reasoning there may be. Behind that much, only the end of the block can follow.
    pub reasoning_budget: Option<ReasoningBudget>,
    /// Free text ends with the first of these, and the turn with it. It is no part of the text.
    pub stop: Vec<String>,
    /// What free text never contains, beside what the format excludes.
    pub bans: Vec<String>,
    /// The JSON Schema of an answer. With tools to choose from, the turn is calls or such an answer; where a call is
    /// forced, it plays no part.
    pub response_format: Option<Json>,
    /// A structural tag that the answer obeys, instead of a schema. Not beside tools that may be called.
    pub answer_tag: Option<AnswerTag>,
    /// How schemas are read.
    pub schema_options: SchemaOptions,
    /// What schemas may cost.
    pub limits: Limits,
    /// When the schemas of tools become grammars.
    pub lazy: LazyTools,
}

/// When the schema of a tool's arguments becomes a grammar. Changes nothing but when the work is done: a schema is put off only where it is certain
/// that it can be enforced, so that all errors of a request are found with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LazyTools {
    /// With the request.
    Never,
    /// When the model calls the tool, in requests with at least so many tools and in formats whose arguments are JSON.
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
    /// So many at most.
    AtMost(NonZeroU32),
}

/// Whose arguments match their schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Every tool's.
    #[default]
    All,
    /// Those of tools marked `strict`, and of all tools where a call is forced; otherwise arguments
    /// are any JSON object.
    AsFlagged,
}

/// A tool of the model's own: known to it without a schema in the prompt, such as a browser or an interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct Builtin {
    /// Its name, as the model writes it.
    pub name: String,
    /// The JSON Schema of its arguments; `None`: what the family knows of it, or else it is called with code.
    pub parameters: Option<Json>,
    /// Where `parameters` stands in the request, for errors.
    pub pointer: String,
}

impl Builtin {
    /// An entry of a request's tools, the one with this number, if its type is another than `function` and `custom`: `{"type": "python"}`, `{"type": "browser.search", "parameters": {...}}`.
    pub fn parse(k: usize, entry: &Json) -> Result<Option<Builtin>, RequestError> {
        let Some(kind) = entry.get("type").and_then(Json::as_str) else { return Ok(None) };
        if kind == "function" || kind == "custom" || entry.get("function").is_some() {
            return Ok(None);
        }
        let name = match entry.get("name") {
            None | Some(Json::Null) => kind.to_owned(),
            Some(Json::String(name)) => name.clone(),
            Some(_) => {
                return Err(RequestError::Builtin { tool: k, expected: "`name` to be a string" });
            }
        };
        if name.is_empty()
            || name.len() > louver::spec::tools::MAX_TOOL_NAME_BYTES
            || name.contains(char::is_control)
        {
            return Err(RequestError::Builtin {
                tool: k,
                expected: "a name without control characters",
            });
        }
        let parameters = match entry.get("parameters") {
            None | Some(Json::Null) => None,
            Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema.clone()),
            Some(_) => {
                return Err(RequestError::Builtin {
                    tool: k,
                    expected: "`parameters` to be a JSON Schema",
                });
            }
        };
        Ok(Some(Builtin { name, parameters, pointer: format!("/tools/{k}/parameters") }))
    }
}

/// What the reasoning block at the beginning of a turn may be, in families that have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// The turn may begin with a block.
    #[default]
    Optional,
    /// There is no block: reasoning is off, or the prompt has already closed it.
    Off,
    /// The turn begins with a block.
    Required,
    /// The prompt has already opened the block: the turn begins inside.
    Opened,
}

/// How much reasoning a turn may have, its markers not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningBudget {
    /// So many tokens that begin in it. In a vocabulary where the end marker is text, a token that begins it counts.
    Tokens(u32),
    /// So many characters (code points).
    Characters(u32),
}

/// A request body that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Its `tools`.
    #[error(transparent)]
    Tools(#[from] ToolErrors),
    /// Its `tool_choice`.
    #[error(transparent)]
    Choice(#[from] ToolChoiceError),
    /// Its structural tag.
    #[error(transparent)]
    StructuralTag(#[from] StructuralTagErrors),
    /// A member that is unknown where every member may ask for structure.
    #[error("{pointer}: there is no such member{hint}")]
    UnknownMember {
        /// JSON pointer of the member.
        pointer: String,
        /// What to write instead, behind a colon; may be empty.
        hint: &'static str,
    },
    /// A tool of the model's own.
    #[error("/tools/{tool}: expected {expected}")]
    Builtin {
        /// Its place among the tools.
        tool: usize,
        /// What is expected.
        expected: &'static str,
    },
    /// Another member.
    #[error("{pointer}: must be {expected}")]
    Malformed {
        /// JSON pointer of the member.
        pointer: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl ToolRequest {
    /// Reads `tools`, `tool_choice` (`allowed_tools` too), `parallel_tool_calls`, `response_format` and `stop` of an
    /// OpenAI request body; its other members do not matter here. Cost: linear.
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
        let strings = |name, pointer| match members.get(name) {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(Json::String(text)) => Ok(vec![text.clone()]),
            Some(Json::Array(items)) => {
                let texts: Option<Vec<String>> =
                    items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
                texts.ok_or(malformed(pointer, "a string or an array of strings"))
            }
            Some(_) => Err(malformed(pointer, "a string or an array of strings")),
        };
        let stop = strings("stop", "/stop")?;
        let parallel = match members.get("parallel_tool_calls") {
            None | Some(Json::Null | Json::Bool(true)) => Parallel::Any,
            Some(Json::Bool(false)) => Parallel::One,
            Some(_) => return Err(malformed("/parallel_tool_calls", "a boolean")),
        };
        let response = members.get("response_format").unwrap_or(&Json::Null);
        check_response_format(response)?;
        let response_format = match (response.get("type").and_then(Json::as_str), response) {
            (_, Json::Null) | (Some("text"), _) => None,
            (Some("json_object"), _) => Some(Json::from(json!({"type": "object"}))),
            (Some("json_schema"), _) => match response.pointer("/json_schema/schema") {
                Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema.clone()),
                _ => return Err(malformed(RESPONSE_POINTER, "a JSON Schema")),
            },
            (Some("structural_tag"), _) => None,
            _ => {
                let expected = "\"text\", \"json_object\", \"json_schema\" or \"structural_tag\"";
                return Err(malformed("/response_format/type", expected));
            }
        };
        let answer_tag = match response.get("type").and_then(Json::as_str) {
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
    /// The schema of a tool's arguments, as strict as it is to be.
    pub(crate) fn arguments_schema<'a>(&self, tool: &'a Tool) -> Cow<'a, Json> {
        if self.is_enforced(tool) {
            Cow::Borrowed(&tool.parameters)
        } else {
            Cow::Owned(Json::from(json!({"type": "object"})))
        }
    }

    /// Whether a tool's arguments match its schema: where it is flagged, and where a call is
    /// forced.
    fn is_enforced(&self, tool: &Tool) -> bool {
        let is_forced = matches!(self.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        self.strictness == Strictness::All || tool.strict || is_forced
    }

    /// The parameters of tools that may be called with any object.
    pub(crate) fn unflagged(&self) -> Vec<(usize, SchemaError)> {
        let loose = |tool: &Tool| !self.is_enforced(tool);
        let callable = |tool: &Tool| match &self.tool_choice {
            ToolChoice::None => false,
            ToolChoice::Named(name) => *name == tool.name,
            ToolChoice::Auto | ToolChoice::Required => {
                self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&tool.name))
            }
        };
        let free = |tool: &Tool| tool.parameters == Json::from(json!({"type": "object"}));
        let tools = self
            .tools
            .iter()
            .enumerate()
            .filter(|(_, tool)| loose(tool) && callable(tool) && !free(tool));
        tools
            .map(|(k, tool)| {
                let pointer = tool.parameters_pointer(self.position(k));
                let reason = SchemaErrorReason::Unsupported(
                    "the tool is not flagged strict: any object".into(),
                );
                (k, SchemaError { pointer, keyword: String::new(), reason })
            })
            .collect()
    }

    /// Where the `k`th tool stands in the request, the model's own tools counted.
    pub(crate) fn position(&self, k: usize) -> usize {
        let place = |b: &Builtin| {
            b.pointer.strip_prefix("/tools/").and_then(|rest| rest.split('/').next()?.parse().ok())
        };
        let customs = self.customs.iter().filter_map(CustomTool::place);
        let mut taken: Vec<usize> = self.builtins.iter().filter_map(place).chain(customs).collect();
        taken.sort_unstable();
        taken.into_iter().fold(k, |at, taken| if taken <= at { at + 1 } else { at })
    }

    /// Offers the tools of a list as `tools` of a request body has them: functions, custom tools, and the model's own. They replace those
    /// that were there.
    pub fn offer(&mut self, tools: &Json) -> Result<(), RequestError> {
        OfferedTools { tools: self.tools, customs: self.customs, builtins: self.builtins } =
            parse_tools(tools)?;
        Ok(())
    }

    /// Takes over what lowering has to know of an engine: its limits, and the special tokens of its vocabulary.
    pub fn settle(&mut self, engine: &Engine) {
        self.limits = engine.options().limits.clone();
        if let Some(answer) = &mut self.answer_tag {
            let known = &mut answer.options.special_tokens;
            known.extend(engine.vocab().specials().iter().map(|(_, name)| name.clone()));
        }
    }

    /// How many of the tools are called as functions are: all but the model's own.
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

    fn check_answer(&self, format: &WireFormat) -> Result<(), LowerError> {
        let refuse = |what| Err(LowerError::Combination { what });
        if self.answer_tag.is_none() {
            return Ok(());
        }
        if self.response_format.is_some() {
            return refuse("a structural tag and a schema of the answer");
        }
        if !self.stop.is_empty() {
            return refuse("stop strings and `response_format`");
        }
        if self.tool_choice != ToolChoice::None && self.names().next().is_some() {
            // Its free text could be taken for calls.
            return refuse("a structural tag as `response_format`, and tools that may be called");
        }
        let frame_end = format.frame.as_ref().map(|frame| &frame.end);
        let ends = format.text.end.iter().chain(frame_end).flat_map(Marker::text_heads).next();
        if ends.is_some() {
            return refuse(
                "a structural tag as `response_format`, in a format that ends text with a written marker",
            );
        }
        Ok(())
    }

    fn check_choice(&self) -> Result<(), ToolChoiceError> {
        let names: HashSet<&str> = self.names().collect();
        let known = |name: &str| names.contains(name);
        let unknown = |name: &str| Err(unknown(name, self.names().map(str::to_owned)));
        if let Some(name) = self.allowed.iter().flatten().find(|name| !known(name)) {
            return unknown(name);
        }
        let listed: HashSet<&str> = self.allowed.iter().flatten().map(String::as_str).collect();
        let allowed = |name: &str| self.allowed.is_none() || listed.contains(name);
        match &self.tool_choice {
            ToolChoice::Named(name) if !known(name) || !allowed(name) => unknown(name),
            ToolChoice::Required if !self.names().any(allowed) => Err(ToolChoiceError::NoTools),
            _ => Ok(()),
        }
    }

    /// Whether the parts of the request fit each other and the format.
    pub(crate) fn check(&self, format: &WireFormat) -> Result<(), LowerError> {
        self.check_choice()?;
        let refuse = |what| Err(LowerError::Combination { what });
        Lowering::check_builtins(format, &self.builtins)?;
        let mut taken: HashSet<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        if self.builtins.iter().any(|builtin| taken.contains(&*builtin.name)) {
            return refuse("a tool of the model's own and another of the same name");
        }
        taken.extend(self.builtins.iter().map(|builtin| &*builtin.name));
        if self.customs.iter().any(|custom| !taken.insert(&custom.name)) {
            return refuse("a custom tool and another of the same name");
        }
        self.check_answer(format)?;
        let limit = self.limits.dispatch_bytes;
        // One stop string may stand there without a list.
        let place =
            |k| if self.stop.len() == 1 { "/stop".to_owned() } else { format!("/stop/{k}") };
        let places = (0..self.stop.len()).map(place).chain(std::iter::repeat(String::new()));
        let mut bytes = 0usize;
        for (text, pointer) in self.stop.iter().chain(&self.bans).zip(places) {
            bytes = bytes.saturating_add(text.len());
            if bytes > limit {
                return Err(LowerError::TooMuchText { pointer, limit });
            }
        }
        if self.stop.iter().chain(&self.bans).any(String::is_empty) {
            return refuse("an empty stop string or ban");
        }
        if !self.stop.is_empty() && self.response_format.is_some() {
            return refuse("stop strings and `response_format`");
        }
        if self.reasoning_budget.is_some() {
            if self.reasoning == Reasoning::Off {
                return refuse("a reasoning budget without reasoning");
            }
            if format.reasoning.is_none() {
                return Err(LowerError::NoReasoning { format: format.name.clone() });
            }
        }
        let own = format.builtin.iter().filter_map(|builtin| builtin.begin.as_ref());
        let frame = format.frame.iter().flat_map(|frame| [&frame.begin, &frame.end]);
        let begins = (format.section.iter().map(|s| &s.begin))
            .chain(&format.call.begin)
            .chain(&format.text.end);
        let begins = begins.chain(own).chain(frame);
        let heads: Vec<String> = begins.flat_map(|marker| marker.text_heads()).collect();
        if self
            .stop
            .iter()
            .chain(&self.bans)
            .any(|text| heads.iter().any(|head| head.contains(text.as_str())))
        {
            return refuse("a stop string or ban that is part of a marker of the format");
        }
        Ok(())
    }
}

/// Refuses unknown members of a `response_format`. Structural tags are checked where they are read.
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

/// A request's tools by kind.
#[derive(Debug, Default)]
pub(crate) struct OfferedTools {
    pub(crate) tools: Vec<Tool>,
    pub(crate) customs: Vec<CustomTool>,
    pub(crate) builtins: Vec<Builtin>,
}

/// Tools of type `function`, those of type `custom`, and the model's own.
pub(crate) fn parse_tools(tools: &Json) -> Result<OfferedTools, RequestError> {
    let Json::Array(entries) = tools else {
        return Ok(OfferedTools { tools: Tool::parse_list(tools)?, ..OfferedTools::default() });
    };
    let mut offered = OfferedTools::default();
    let (mut functions, mut faults) = (Vec::new(), Vec::new());
    for (k, entry) in entries.iter().enumerate() {
        if is_custom(entry) {
            match CustomTool::parse(k, entry) {
                Ok(custom) => offered.customs.push(custom),
                Err(found) => faults.extend(found),
            }
        } else if let Some(builtin) = Builtin::parse(k, entry)? {
            offered.builtins.push(builtin);
        } else {
            functions.push((k, entry.clone()));
        }
    }
    let list = Json::Array(functions.iter().map(|(_, entry)| entry.clone()).collect());
    match Tool::parse_list(&list) {
        Ok(tools) => offered.tools = tools,
        Err(errors) => faults.extend(errors.0.into_iter().map(|mut error| {
            // Places as they are in the request, the other tools counted.
            let place = |k: usize| functions.get(k).map(|(at, _)| *at);
            let mut tokens: Vec<String> = error.pointer.split('/').map(str::to_owned).collect();
            if let Some(token) = tokens.get_mut(2)
                && let Some(k) = token.parse::<usize>().ok().and_then(place)
            {
                *token = k.to_string();
            }
            error.pointer = tokens.join("/");
            if let ToolErrorKind::Duplicate { first, .. } = &mut error.kind {
                *first = place(*first).unwrap_or(*first);
            }
            error
        })),
    }
    // A custom tool and any other of its name: the later one is wrong.
    let functions =
        functions.iter().zip(&offered.tools).map(|((k, _), tool)| (*k, &tool.name, None));
    let customs =
        offered.customs.iter().filter_map(|c| Some((c.place()?, &c.name, Some(&c.pointer))));
    let mut named: Vec<(usize, &String, Option<&String>)> = functions.chain(customs).collect();
    named.sort_unstable();
    let mut first: HashMap<&String, (usize, bool)> = HashMap::new();
    for (k, name, custom) in named {
        match first.get(name) {
            Some(&(first, was_custom)) if was_custom || custom.is_some() => {
                let at = custom.map_or_else(|| format!("/tools/{k}"), String::clone);
                let kind = ToolErrorKind::Duplicate { name: name.clone(), first };
                faults.push(ToolError { pointer: format!("{at}/name"), kind });
            }
            Some(_) => {}
            None => drop(first.insert(name, (k, custom.is_some()))),
        }
    }
    if faults.is_empty() { Ok(offered) } else { Err(ToolErrors(faults).into()) }
}

fn is_custom(entry: &Json) -> bool {
    entry.get("type").and_then(Json::as_str) == Some("custom")
}

/// `tool_choice`, and the names it allows.
fn parse_choice(choice: &Json) -> Result<(ToolChoice, Option<Vec<String>>), RequestError> {
    let kind = choice.get("type").and_then(Json::as_str);
    if kind == Some("allowed_tools") {
        let malformed = |expected| RequestError::Malformed { pointer: "/tool_choice", expected };
        // Chat Completions nests the list, Responses does not.
        let inner = choice.get("allowed_tools").unwrap_or(choice);
        let mode = match inner.get("mode").and_then(Json::as_str) {
            Some("auto") => ToolChoice::Auto,
            Some("required") => ToolChoice::Required,
            _ => return Err(malformed("allowed tools with `mode` \"auto\" or \"required\"")),
        };
        let tools = inner
            .get("tools")
            .and_then(Json::as_array)
            .ok_or(malformed("allowed tools with `tools`, an array"))?;
        let name = |tool: &Json| {
            let nested = tool.pointer("/function/name").or_else(|| tool.pointer("/custom/name"));
            let name = nested.or_else(|| tool.get("name")).or_else(|| tool.get("type"));
            name.and_then(Json::as_str).map(str::to_owned)
        };
        let names: Option<Vec<String>> = tools.iter().map(name).collect();
        return Ok((mode, Some(names.ok_or(malformed("allowed tools that have names"))?)));
    }
    match kind {
        Some("custom") => {
            let name = choice
                .pointer("/custom/name")
                .or_else(|| choice.get("name"))
                .and_then(Json::as_str);
            let expected = "a custom tool choice that has a name";
            let name = name.ok_or(RequestError::Malformed { pointer: "/tool_choice", expected })?;
            Ok((ToolChoice::Named(name.to_owned()), None))
        }
        Some(kind) if kind != "function" && choice.get("function").is_none() => {
            let name = choice.get("name").and_then(Json::as_str).unwrap_or(kind);
            Ok((ToolChoice::Named(name.to_owned()), None))
        }
        _ => Ok((ToolChoice::parse(choice)?, None)),
    }
}

/// Where `response_format` stands in a request, for pointers.
pub(crate) const RESPONSE_POINTER: &str = "/response_format/json_schema/schema";

/// Why a request cannot become a grammar.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// The tool choice does not fit the tools.
    #[error(transparent)]
    Choice(#[from] ToolChoiceError),
    /// Schemas that cannot be enforced: all errors of all of them, with pointers into the request such as
    /// `/tools/2/function/parameters/properties/x/not`.
    #[error(transparent)]
    Schemas(#[from] SchemaErrors),
    /// Schemas, custom tools and a structural tag that cannot be enforced: all errors of all of them, where there are others
    /// than those of schemas.
    #[error(transparent)]
    Parts(Box<PartErrors>),
    /// Reasoning was asked of a family without.
    #[error("wire format `{format}` has no reasoning block")]
    NoReasoning {
        /// The family.
        format: String,
    },
    /// The model's own tools were asked of a family without.
    #[error("wire format `{format}` has no tools of the model's own")]
    NoBuiltins {
        /// The family.
        format: String,
    },
    /// Parts of the request that do not go together.
    #[error("not supported together: {what}")]
    Combination {
        /// Which.
        what: &'static str,
    },
    /// A bound on calls that is too large where text may stand between them.
    #[error("at most {most} calls with text between them: over the limit of {limit}")]
    TooManyCalls {
        /// The bound.
        most: u32,
        /// The limit.
        limit: u32,
    },
    /// More text that ends or interrupts free text than [`Limits::dispatch_bytes`] allows.
    #[error("the texts that end or interrupt free text have more than {limit} bytes")]
    TooMuchText {
        /// JSON pointer of the first stop string beyond: `/stop/3`, or `/stop` if there is one. Empty for a ban.
        pointer: String,
        /// The limit.
        limit: usize,
    },
    /// An automaton over the limit.
    #[error("{what}: {cause}")]
    TooLarge {
        /// What needs it.
        what: &'static str,
        /// The limit.
        cause: TooLarge,
    },
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}
