//! Parses macros, `Name(...)`.

use std::sync::Arc;

use super::super::text_search::TextSearch;
use super::arguments::{Argument, ArgumentKind, ArgumentValue, positional};
use super::ast::{
    DispatchNode, MembersNode, Name, Node, RegexNode, SyntaxKind, TokenDispatchNode, TriggerNode,
};
use super::cursor::{Reported, is_word};
use super::parse::Parser;
use crate::front::diagnostic::{Diagnostic, UniqueKeys};
use crate::front::regex::{Case, Classes, Dot, LookAround, RegexOptions};
use crate::fsm::{DfaBuilder, Edge};
use crate::hash::HashSet;
use crate::ir::{AfterTag, DispatchEnd, Graph, PresenceClause, SpecialToken};

impl Parser<'_> {
    /// Parses the arguments of a macro, at its `(`.
    pub(super) fn call(&mut self, name: &Name) -> Result<SyntaxKind, Reported> {
        let begin = self.cursor.offset;
        self.cursor.eat("(");
        match &*name.text {
            "Graph" => return self.graph(begin),
            "Members" => return self.members(name),
            _ => {}
        }
        let arguments = self.arguments(")")?;
        match &*name.text {
            "Regex" => self.regex(name, arguments),
            "Substring" => {
                let chunks: Result<_, _> = positional(arguments)
                    .map(|a| {
                        a.map_err(|k| self.unknown_key(&k, "Substring"))
                            .and_then(|value| self.bytes(value))
                    })
                    .collect();
                Ok(SyntaxKind::Substring(chunks?))
            }
            "Token" | "ExcludeToken" => {
                let tokens: Result<Vec<SpecialToken>, _> = positional(arguments)
                    .map(|a| {
                        a.map_err(|k| self.unknown_key(&k, &name.text))
                            .and_then(|value| self.special_token(value))
                    })
                    .collect();
                let mut tokens = tokens?;
                Ok(SyntaxKind::Token(match (&*name.text, tokens.len()) {
                    ("Token", 1) => tokens.remove(0),
                    ("Token", _) => SpecialToken::AnyOf(tokens),
                    _ => SpecialToken::AnyBut(tokens),
                }))
            }
            "TagDispatch" => self.dispatch(arguments),
            "TokenTagDispatch" => self.token_dispatch(arguments),
            _ => self.automaton(name, arguments),
        }
    }

    /// Parses `RegexNode("pattern", json_string=bool, flags="isu")`.
    fn regex(&mut self, name: &Name, arguments: Vec<Argument>) -> Result<SyntaxKind, Reported> {
        let (mut pattern, mut json_string) = (None, false);
        let mut options = RegexOptions {
            classes: Classes::Ascii,
            dot: Dot::Any,
            look_around: LookAround::Refused,
            ..RegexOptions::default()
        };
        for Argument { key, value } in arguments {
            match key {
                None if pattern.is_none() => {
                    let span = value.span.clone();
                    let text = self.text(value)?;
                    // Offsets agree with the text only if the string has no escapes.
                    let is_verbatim = self.cursor.text[span.clone()]
                        .get(1..)
                        .is_some_and(|s| s.starts_with(&text));
                    pattern = Some((text, is_verbatim.then_some(span.start + 1)));
                }
                None => return self.unexpected_value(&value, "one pattern"),
                Some(key) if key.text == "json_string" => json_string = self.boolean(&value)?,
                Some(key) if key.text == "flags" => {
                    options.dot = Dot::NoLineFeed;
                    let span = value.span.clone();
                    for flag in self.text(value)?.chars() {
                        match flag {
                            'i' => options.case = Case::Insensitive,
                            's' => options.dot = Dot::Any,
                            'u' => {}
                            _ => {
                                let message = format!("no flag `{}`", flag.escape_default());
                                return self.cursor.error(
                                    Diagnostic::error(span, message)
                                        .help("flags are `i`, `s` and `u`"),
                                );
                            }
                        }
                    }
                }
                Some(key) => return Err(self.unknown_key(&key, "Regex")),
            }
        }
        match pattern {
            Some((pattern, verbatim)) => Ok(SyntaxKind::Regex(Box::new(RegexNode {
                pattern,
                verbatim,
                options,
                json_string,
                lazy: false,
            }))),
            None => self.cursor.error(Diagnostic::error(
                name.span.clone(),
                "a regular expression without a pattern",
            )),
        }
    }

    /// Parses the arguments of `except!(expression, ..., max)`, at its `(`.
    pub(super) fn except(&mut self, name: &Name) -> Result<SyntaxKind, Reported> {
        let begin = self.cursor.offset;
        self.cursor.eat("(");
        self.enter(begin)?;
        let (mut parts, mut max): (Vec<Node>, _) = (Vec::new(), None);
        loop {
            self.cursor.skip()?;
            let digits = self.cursor.rest().bytes().take_while(u8::is_ascii_digit).count();
            let is_number = !self.cursor.rest()[digits..].starts_with(is_word);
            match self.cursor.peek() {
                Some(')') => break,
                Some('0'..='9') if is_number && max.is_none() && !parts.is_empty() => {
                    max = Some(self.cursor.number()?)
                }
                _ => match self.atom()? {
                    Some(part) => parts.push(part),
                    None => {
                        return self.cursor.expected("a string, a rule or a regular expression");
                    }
                },
            }
            self.cursor.skip()?;
            if !self.cursor.eat(",") && self.cursor.peek() != Some(')') {
                return self.cursor.expected("`,` or `)`");
            }
        }
        self.close(')', begin)?;
        self.depth -= 1;
        if parts.is_empty() {
            return self.cursor.error(Diagnostic::error(
                name.span.clone(),
                "`except!` needs a text to leave out",
            ));
        }
        let excluded = match parts.len() {
            1 => parts.remove(0),
            _ => self.node(SyntaxKind::Alt(parts), begin..self.cursor.offset)?,
        };
        Ok(SyntaxKind::Except { excluded: Box::new(excluded), max })
    }

    /// Parses `TagDispatch(("trigger", rule), ..., stops=(...), excludes=(...),
    /// loop_after_dispatch=bool, ends=...)`.
    fn dispatch(&mut self, arguments: Vec<Argument>) -> Result<SyntaxKind, Reported> {
        let mut out = DispatchNode {
            tags: Vec::new(),
            stops: Vec::new(),
            excludes: Vec::new(),
            after: AfterTag::Loop,
            end: DispatchEnd::Anywhere,
        };
        for Argument { key, value } in arguments {
            let Some(key) = key else {
                let span = value.span.clone();
                let (trigger, body) = self.pair(value)?;
                out.tags.push((self.trigger(trigger)?, span, body));
                continue;
            };
            match &*key.text {
                "stops" | "stop_str" => {
                    for part in self.tuple(value) {
                        out.stops.push(self.trigger(part)?);
                    }
                }
                "excludes" => {
                    for part in self.tuple(value) {
                        let empty =
                            matches!(&part.kind, ArgumentKind::Text(bytes) if bytes.is_empty());
                        if empty {
                            return self.unexpected_value(&part, "a text that is not empty");
                        }
                        out.excludes.push(self.bytes(part)?);
                    }
                }
                "loop_after_dispatch" => {
                    out.after = if self.boolean(&value)? { AfterTag::Loop } else { AfterTag::End }
                }
                "stop_eos" => {
                    out.end = if self.boolean(&value)? {
                        DispatchEnd::Anywhere
                    } else {
                        DispatchEnd::AtStop
                    };
                }
                "ends" => out.end = self.dispatch_end(&value)?,
                _ => return Err(self.unknown_key(&key, "TagDispatch")),
            }
        }
        self.unreachable_tags(&out);
        Ok(SyntaxKind::Dispatch(Box::new(out)))
    }

    /// The value as the end of a dispatch.
    fn dispatch_end(&mut self, value: &ArgumentValue) -> Result<DispatchEnd, Reported> {
        match &value.kind {
            ArgumentKind::Word(word) if word == "anywhere" => Ok(DispatchEnd::Anywhere),
            ArgumentKind::Word(word) if word == "after_one_tag" => Ok(DispatchEnd::AfterOneTag),
            ArgumentKind::Word(word) if word == "at_stop" => Ok(DispatchEnd::AtStop),
            _ => self.unexpected_value(value, "`anywhere`, `after_one_tag` or `at_stop`"),
        }
    }

    /// Warns of triggers that contain an excluded text, and therefore never fire.
    fn unreachable_tags(&mut self, dispatch: &DispatchNode) {
        let excludes = TextSearch::new(&dispatch.excludes);
        for (trigger, span, _) in &dispatch.tags {
            let TriggerNode { text, token } = trigger;
            let before = if token.is_some() { &text[..] } else { &text[..text.len() - 1] };
            if let Some(exclude) = excludes.find(before).map(|found| &dispatch.excludes[found]) {
                let message =
                    "this tag never fires: an excluded text is read before its trigger is complete";
                let label = format!("{:?} is excluded", String::from_utf8_lossy(exclude));
                self.cursor
                    .diagnostics
                    .push(Diagnostic::warning(span.clone(), message).label(label));
            }
        }
    }

    /// Parses a pair `(trigger, rule)`.
    fn pair(&mut self, value: ArgumentValue) -> Result<(ArgumentValue, Name), Reported> {
        match value.kind {
            ArgumentKind::Tuple(mut parts) if parts.len() == 2 => {
                let (Some(body), Some(trigger)) = (parts.pop(), parts.pop()) else {
                    return Err(Reported);
                };
                match body.kind {
                    ArgumentKind::Word(text) => Ok((trigger, Name { text, span: body.span })),
                    _ => self.unexpected_value(&body, "the name of a rule"),
                }
            }
            _ => self
                .unexpected_value(&value, "a trigger and the name of a rule: `(\"<tool>\", tool)`"),
        }
    }

    /// The value as a trigger.
    fn trigger(&mut self, value: ArgumentValue) -> Result<TriggerNode, Reported> {
        match value.kind {
            ArgumentKind::Text(ref bytes) if bytes.is_empty() => {
                self.unexpected_value(&value, "a text that is not empty")
            }
            ArgumentKind::Text(text) => Ok(TriggerNode { text, token: None }),
            ArgumentKind::Token(token) => Ok(TriggerNode { text: Vec::new(), token: Some(token) }),
            ArgumentKind::Tuple(ref parts) => match &parts[..] {
                [
                    ArgumentValue { kind: ArgumentKind::Text(text), .. },
                    ArgumentValue { kind: ArgumentKind::Token(token), .. },
                ] if !text.is_empty() => {
                    Ok(TriggerNode { text: text.clone(), token: Some(token.clone()) })
                }
                _ => self.unexpected_value(&value, "a string and the token after it"),
            },
            ArgumentKind::Word(_) => self.unexpected_value(&value, "a string or a token"),
        }
    }

    /// Parses `TokenTagDispatch((id, rule), ..., loop_after_dispatch=bool, excludes=(id, ...))`.
    fn token_dispatch(&mut self, arguments: Vec<Argument>) -> Result<SyntaxKind, Reported> {
        let mut out =
            TokenDispatchNode { tags: Vec::new(), excludes: Vec::new(), after: AfterTag::Loop };
        let mut spans = Vec::new();
        for Argument { key, value } in arguments {
            match key {
                None => {
                    let (trigger, body) = self.pair(value)?;
                    out.tags.push((self.special_token(trigger)?, body));
                }
                Some(key) if key.text == "loop_after_dispatch" => {
                    out.after = if self.boolean(&value)? { AfterTag::Loop } else { AfterTag::End };
                }
                Some(key) if key.text == "excludes" => {
                    for part in self.tuple(value) {
                        spans.push(part.span.clone());
                        out.excludes.push(self.special_token(part)?);
                    }
                }
                Some(key) => return Err(self.unknown_key(&key, "TokenTagDispatch")),
            }
        }
        let triggers: HashSet<&SpecialToken> = out.tags.iter().map(|(token, _)| token).collect();
        let mut excludes = out.excludes.iter().zip(spans);
        if let Some((_, span)) = excludes.find(|(token, _)| triggers.contains(token)) {
            return self.cursor.error(Diagnostic::error(span, "this token is a trigger too"));
        }
        Ok(SyntaxKind::TokenDispatch(Box::new(out)))
    }

    /// Parses `Automaton((is_final, (lo, hi, to), ...), ...)`: states with their edges over bytes.
    /// The first state is the start.
    fn automaton(&mut self, name: &Name, arguments: Vec<Argument>) -> Result<SyntaxKind, Reported> {
        let count = arguments.len();
        if count == 0 || count > self.states {
            let message = format!("an automaton has 1 to {} states", self.states);
            return self.cursor.error(Diagnostic::error(name.span.clone(), message));
        }
        let mut builder = DfaBuilder::new();
        for _ in 0..count {
            builder.state(false);
        }
        for (state, argument) in (0u32..).zip(positional(arguments)) {
            let value = argument.map_err(|key| self.unknown_key(&key, "Automaton"))?;
            let span = value.span.clone();
            let mut parts = self.tuple(value).into_iter();
            let Some(is_final) = parts.next() else {
                return self
                    .cursor
                    .error(Diagnostic::error(span, "a state without `true` or `false` in front"));
            };
            builder.set_final(state, self.boolean(&is_final)?);
            let mut edges = Vec::new();
            for part in parts {
                let span = part.span.clone();
                let parts = self.tuple(part);
                let numbers: Result<Vec<u32>, _> = parts.iter().map(|n| self.integer(n)).collect();
                match numbers?[..] {
                    [lo, hi, to] if lo <= hi && hi <= 255 && (to as usize) < count => {
                        edges.push(Edge { lo, hi, to })
                    }
                    _ => {
                        return self.cursor.error(
                            Diagnostic::error(span, "no edge")
                                .label("expected `(first byte, last byte, state)`"),
                        );
                    }
                }
            }
            edges.sort_unstable();
            if edges.windows(2).any(|pair| pair[1].lo <= pair[0].hi) {
                return self.cursor.error(Diagnostic::error(
                    span,
                    "two edges of this state have a byte in common",
                ));
            }
            edges.iter().for_each(|e| builder.edge(state, e.lo, e.hi, e.to));
        }
        Ok(SyntaxKind::Automaton(Arc::new(builder.finish())))
    }

    /// Parses `Members(separator, required(a), optional(b), repeated(c), min=n, max=n,
    /// count_repeated=bool)`, after its `(`.
    fn members(&mut self, name: &Name) -> Result<SyntaxKind, Reported> {
        let separator = self.alternatives()?;
        let mut out = MembersNode {
            separator,
            unique: Vec::new(),
            repeatable: Vec::new(),
            min: 0,
            count_repeatable: false,
            max: None,
            clauses: Vec::new(),
        };
        let mut keys = UniqueKeys::default();
        loop {
            self.cursor.skip()?;
            if self.cursor.eat(")") {
                break;
            }
            self.comma()?;
            self.cursor.skip()?;
            const EXPECTED: &str = "`required(...)`, `optional(...)`, `repeated(...)`, \
                                    `clause(...)`, `min=...`, `max=...` or `count_repeated=...`";
            let open = self.cursor.offset;
            let Some(kind) = self.cursor.name()? else { return self.cursor.expected(EXPECTED) };
            if matches!(&*kind.text, "min" | "max" | "count_repeated") && self.cursor.eat("=") {
                self.add_key(&mut keys, &kind)?;
                match &*kind.text {
                    "min" => out.min = self.graph_number()?,
                    "max" => out.max = Some(self.graph_number()?),
                    _ => {
                        let value = self.value(0)?;
                        out.count_repeatable = self.boolean(&value)?;
                    }
                }
                continue;
            }
            if kind.text == "clause" && self.cursor.eat("(") {
                out.clauses.push(self.presence_clause()?);
                continue;
            }
            if !matches!(&*kind.text, "required" | "optional" | "repeated") || !self.cursor.eat("(")
            {
                self.cursor.offset = open;
                return self.cursor.expected(EXPECTED);
            }
            let body = self.alternatives()?;
            self.close(')', open)?;
            match &*kind.text {
                "repeated" => out.repeatable.push(body),
                kind => out.unique.push((body, kind == "required")),
            }
        }
        if let Some(max) = out.max.filter(|&max| max < out.min) {
            // Understood, and printed grammars have it: an empty language.
            let message = format!("`max={max}` is less than `min={}`: it matches nothing", out.min);
            self.cursor.diagnostics.push(Diagnostic::warning(name.span.clone(), message));
        }
        Ok(SyntaxKind::Members(Box::new(out)))
    }

    /// Parses `clause((member, ...), (member, ...))`, after its `(`.
    fn presence_clause(&mut self) -> Result<PresenceClause, Reported> {
        let open = self.cursor.offset;
        let present = self.member_indices()?;
        self.comma()?;
        let absent = self.member_indices()?;
        self.close(')', open)?;
        Ok(PresenceClause { present, absent })
    }

    /// Consumes a list of members, by index.
    fn member_indices(&mut self) -> Result<Vec<usize>, Reported> {
        self.cursor.skip()?;
        let list = self.value(0)?;
        let list = self.tuple(list).into_iter();
        list.map(|member| Ok(self.integer(&member)? as usize)).collect()
    }

    /// Parses `Graph(nodes, start, (end, ...), (from, expression, to), ...)`, after its `(`.
    fn graph(&mut self, begin: usize) -> Result<SyntaxKind, Reported> {
        let nodes = self.graph_number()?;
        self.comma()?;
        let start = self.graph_number()?;
        self.comma()?;
        let value = self.value(0)?;
        let mut ends = Vec::new();
        for end in self.tuple(value) {
            ends.push(self.integer(&end)?);
        }
        let mut edges = Vec::new();
        loop {
            self.cursor.skip()?;
            if self.cursor.eat(")") {
                break;
            }
            self.comma()?;
            self.cursor.skip()?;
            let open = self.cursor.offset;
            if !self.cursor.eat("(") {
                return self.cursor.expected("an edge: `(from, expression, to)`");
            }
            let from = self.graph_number()?;
            self.comma()?;
            let expr = self.alternatives()?;
            self.comma()?;
            let to = self.graph_number()?;
            self.close(')', open)?;
            edges.push((from, expr, to));
        }
        let named = edges
            .iter()
            .flat_map(|(from, _, to)| [*from, *to])
            .chain(ends.iter().copied())
            .chain([start]);
        if let Some(node) = named.into_iter().find(|&node| node >= nodes) {
            let message = format!("the graph has no node {node}");
            return self.cursor.error(Diagnostic::error(begin..self.cursor.offset, message));
        }
        // Nodes without edges cost memory as well.
        if nodes as usize > self.states {
            let message = format!("a graph has at most {} nodes", self.states);
            return self.cursor.error(Diagnostic::error(begin..self.cursor.offset, message));
        }
        Ok(SyntaxKind::Graph(Graph { nodes, start, ends, edges }))
    }

    /// Consumes a number.
    fn graph_number(&mut self) -> Result<u32, Reported> {
        self.cursor.skip()?;
        self.cursor.number()
    }

    /// Consumes a comma.
    fn comma(&mut self) -> Result<(), Reported> {
        self.cursor.skip()?;
        if self.cursor.eat(",") { Ok(()) } else { self.cursor.expected("`,`") }
    }
}
