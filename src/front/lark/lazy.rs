//! Rules that end as early as they can, and free text that such rules interrupt.

use std::collections::BTreeMap;

use super::ast::{Definition, Marker, MarkerKind, Node, NodeKind, is_terminal};
use super::lower::{Scope, attributes};
use super::pattern;
use super::terminal::names;
use crate::front::diagnostic::Diagnostic;
use crate::fsm::{Combine, Dfa, TooLarge};
use crate::ir::regular::{self, BYTES};
use crate::ir::{AfterTag, Attributes, Dispatch, DispatchEnd, Expr, Trigger};
use crate::limits::Limits;

/// Most ways to tell a text from the marker behind it.
const MAX_SPLITS: usize = 64;
/// How far rules are followed to see whether they are tools or text.
const MAX_STEPS: usize = 16;

/// The texts of a rule that ends as early as it can.
struct Match {
    /// What stands before the marker; everything if there is none.
    body: Dfa,
    marker: Option<Dfa>,
    /// The shortest ones.
    whole: Dfa,
}

/// An alternative that begins with a rule that ends as early as it can.
struct Tool<'a, 't> {
    head: &'a Definition<'t>,
    rest: &'a [Node<'t>],
}

impl<'a, 't> Scope<'_, '_, 'a, 't> {
    /// The body of a lazy rule, one with a marker, or both. Only matches of `within` count, if it is given.
    pub(super) fn shortest(
        &mut self,
        definition: &'a Definition<'t>,
        within: Option<&Dfa>,
    ) -> Expr {
        if definition.attributes.marker.is_none()
            && let NodeKind::Seq(items) = &definition.body.kind
            && let Some((token, text)) = items.split_last()
            && matches!(token.kind, NodeKind::Special(_))
            && text.iter().all(|node| self.is_text(node))
        {
            // A special token is no text, so the first one ends the match.
            let mut parts: Vec<Expr> = text.iter().map(|node| self.text(node)).collect();
            parts.push(self.node(token));
            return Expr::seq(parts);
        }
        let Some(mut found) = self.matches(definition) else { return Expr::Never };
        if let Some(within) = within {
            let limit = self.session.states();
            let both = found.whole.combine(within, Combine::And, limit);
            let both = self.session.built(both, limit, Dfa::len);
            let Some(both) = self.bounded(both, &definition.body) else { return Expr::Never };
            found.whole = both;
        }
        match (&definition.attributes.marker, &found.marker) {
            (Some(said), Some(marker)) => self.marked(definition, said, &found, marker),
            _ => Expr::Automaton(found.whole.into()),
        }
    }

    /// A text and its marker, each with its capture.
    fn marked(
        &mut self,
        definition: &'a Definition<'t>,
        said: &Marker<'t>,
        found: &Match,
        marker: &Dfa,
    ) -> Expr {
        let attributes = &definition.attributes;
        let stop_capture = attributes.stop_capture.as_ref().map(|name| name.value.clone());
        if attributes.capture.is_none() && stop_capture.is_none() && said.kind == MarkerKind::Suffix
        {
            return Expr::Automaton(found.whole.clone().into());
        }
        let limit = self.session.states();
        let split = regular::split(&found.whole, &found.body, marker, limit);
        let size =
            |pairs: &Vec<(Dfa, Dfa)>| pairs.iter().map(|(a, b)| a.len() + b.len()).sum::<usize>();
        let split = self.session.built(split, limit, size);
        let Some(pairs) = self.bounded(split, &said.node) else { return Expr::Never };
        if pairs.len() > MAX_SPLITS {
            let message =
                format!("more than {MAX_SPLITS} ways to tell the marker from the text before it");
            self.session.report(Diagnostic::error(said.node.span.clone(), message));
            return Expr::Never;
        }
        let builder = &mut self.session.builder;
        let parts = pairs.into_iter().map(|(before, after)| {
            let mut body = Expr::Automaton(before.into());
            let hidden = said.kind == MarkerKind::Stop;
            if let (false, Some(name)) = (hidden, &attributes.capture) {
                let rule = builder.rule(definition.name.value, body);
                builder.attributes(rule).capture = Some(name.clone());
                body = Expr::Ref(rule);
            }
            let marker = builder.rule("marker", Expr::Automaton(after.into()));
            *builder.attributes(marker) =
                Attributes { capture: stop_capture.clone(), hidden, ..Attributes::default() };
            Expr::seq([body, Expr::Ref(marker)])
        });
        Expr::alt(parts.collect::<Vec<_>>())
    }

    /// The automata of a rule that ends as early as it can; reports why there are none.
    fn matches(&mut self, definition: &'a Definition<'t>) -> Option<Match> {
        let expr = self.text(&definition.body);
        let body = self.dfa(&expr, &definition.body.span)?;
        let Some(said) = &definition.attributes.marker else {
            let whole = body.shortest();
            return Some(Match { body, marker: None, whole });
        };
        let expr = self.text(&said.node);
        let marker = self.dfa(&expr, &said.node.span)?;
        let limit = self.session.states();
        let both = self.session.built(body.concat(&marker, limit), limit, Dfa::len);
        let whole = self.bounded(both, &said.node)?.shortest();
        Some(Match { body, marker: Some(marker), whole })
    }

    fn bounded<T>(&mut self, result: Result<T, TooLarge>, node: &Node<'t>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.session.report(Diagnostic::error(node.span.clone(), error.to_string()));
                None
            }
        }
    }

    /// All texts.
    fn any(&mut self) -> Dfa {
        if let Some(any) = &self.session.any {
            return any.clone();
        }
        let all = pattern::lower(".*", "s", &Limits::default(), &mut { usize::MAX });
        let any = regular::automaton(&all.expect("a well-formed pattern"), &[], 1_000)
            .expect("a few states");
        self.session.any.insert(any).clone()
    }

    /// Finds out which rules are plain text: they have no attributes and name only terminals and such rules.
    pub(super) fn find_plain(&mut self) {
        let file = self.file;
        self.plain = vec![false; file.definitions.len()];
        // Rules by those they name, and how many of those are not known to be text.
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); file.definitions.len()];
        let mut missing = vec![0usize; file.definitions.len()];
        let mut found = Vec::new();
        for (i, definition) in file.definitions.iter().enumerate() {
            if is_terminal(definition.name.value)
                || !definition.attributes.is_empty()
                || !has_no_tokens(&definition.body)
            {
                continue;
            }
            names(&definition.body, &mut |name, _| {
                if !is_terminal(name) {
                    missing[i] += 1;
                    if let Some(&named) = self.index.get(name) {
                        users[named].push(i);
                    }
                }
            });
            if missing[i] == 0 {
                found.push(i);
            }
        }
        while let Some(i) = found.pop() {
            self.plain[i] = true;
            for &user in &users[i] {
                missing[user] -= 1;
                if missing[user] == 0 {
                    found.push(user);
                }
            }
        }
    }

    /// Whether an expression of a rule is plain text.
    fn is_text(&self, node: &Node<'t>) -> bool {
        let mut plain = has_no_tokens(node);
        names(node, &mut |name, _| {
            plain &= is_terminal(name) || self.index.get(name).is_some_and(|&i| self.plain[i]);
        });
        plain
    }

    /// Whether an expression is any text.
    fn is_any(&mut self, node: &'a Node<'t>) -> bool {
        if !self.is_text(node) {
            return false;
        }
        let expr = self.text(node);
        let any = self.any();
        // What needs more states on the way is not recognised.
        let limit = self.session.states().min(1_000);
        let dfa = regular::automaton(&expr, self.session.builder.rules(), limit);
        self.session.built(dfa, limit, Dfa::len).is_ok_and(|dfa| dfa == any)
    }

    /// The alternatives of a repeat, as tools and as text; `None` if one is neither.
    fn alternatives(
        &mut self,
        node: &'a Node<'t>,
        steps: usize,
        tools: &mut Vec<Tool<'a, 't>>,
        texts: &mut Vec<&'a Node<'t>>,
    ) -> Option<()> {
        if steps > MAX_STEPS || !self.session.spend(1, &node.span) {
            return None;
        }
        let this = &*self;
        let head = |node: &Node<'t>| {
            let NodeKind::Name(name) = node.kind else { return None };
            let definition = &this.file.definitions[*this.index.get(name)?];
            (definition.attributes.is_shortest() && this.is_text(&definition.body))
                .then_some(definition)
        };
        match &node.kind {
            NodeKind::Alt(list) => {
                list.iter().try_for_each(|part| self.alternatives(part, steps + 1, tools, texts))
            }
            NodeKind::Seq(items) if items.first().is_some_and(|first| head(first).is_some()) => {
                let (first, rest) = items.split_first()?;
                tools.push(Tool { head: head(first)?, rest });
                Some(())
            }
            NodeKind::Name(name) => {
                if let Some(head) = head(node) {
                    tools.push(Tool { head, rest: &[] });
                    return Some(());
                }
                let definition = &self.file.definitions[*self.index.get(name)?];
                if definition.attributes.is_empty() && !is_terminal(name) && !self.is_text(node) {
                    return self.alternatives(&definition.body, steps + 1, tools, texts);
                }
                texts.push(node);
                Some(())
            }
            _ if self.is_text(node) => {
                texts.push(node);
                Some(())
            }
            _ => None,
        }
    }

    /// `(tool | ...)* rest`, where tools begin with any text up to a marker and `rest` is any text: the first marker that is
    /// read begins a tool, whatever else could be read there. `None` if this is something else.
    pub(super) fn tools(&mut self, repeat: &'a Node<'t>, rest: &'a Node<'t>) -> Option<Expr> {
        let NodeKind::Repeat(body, min @ (0 | 1), None) = &repeat.kind else { return None };
        let (mut tools, mut texts) = (Vec::new(), Vec::new());
        self.alternatives(body, 0, &mut tools, &mut texts)?;
        if tools.is_empty() || (*min == 1 && !texts.is_empty()) {
            return None;
        }
        let (tail, tail_attributes) = self.tail(rest)?;
        if !self.is_any(tail) || !texts.into_iter().all(|text| self.is_any(text)) {
            return None;
        }
        let (any, limit) = (self.any(), self.session.states());
        let mut wholes: BTreeMap<&'t str, Dfa> = BTreeMap::new();
        for tool in &tools {
            let name = tool.head.name.value;
            if wholes.contains_key(name) {
                continue;
            }
            let whole = self.matches(tool.head)?.whole;
            // Any text may stand before the marker.
            let anywhere = self.session.built(any.concat(&whole, limit), limit, Dfa::len);
            if whole.is_empty() || self.bounded(anywhere, &tool.head.body)?.shortest() != whole {
                return None;
            }
            wholes.insert(name, whole);
        }
        if tail_attributes.is_empty()
            && let Some(triggers) = self.triggers(&tools, &wholes, &any)
        {
            return Some(self.dispatch(&tools, &triggers, *min));
        }
        let first = self.session.built(Dfa::any_of(wholes.values(), limit), limit, Dfa::len);
        let first = self.bounded(first, body)?.shortest();
        let free = self.session.built(any.without_prefix(&first, &BYTES, limit), limit, Dfa::len);
        let free = self.bounded(free, rest)?;
        let mut parts = Vec::new();
        for tool in &tools {
            let head = self.shortest(tool.head, Some(&first));
            let own = attributes(tool.head);
            let head = if own.is_empty() {
                head
            } else {
                let rule = self.session.builder.rule(tool.head.name.value, head);
                *self.session.builder.attributes(rule) = own;
                Expr::Ref(rule)
            };
            let head = self.spaced(head);
            let rest = self.sequence(tool.rest);
            parts.push(Expr::seq([head, rest]));
        }
        let free = self.session.builder.rule("text", Expr::Automaton(free.into()));
        *self.session.builder.attributes(free) = tail_attributes;
        Some(Expr::seq([Expr::repeat(Expr::alt(parts), *min, None), Expr::Ref(free)]))
    }

    /// What stands behind the tools, and its attributes if it is a rule.
    fn tail(&self, node: &'a Node<'t>) -> Option<(&'a Node<'t>, Attributes)> {
        match node.kind {
            NodeKind::Name(name) if !is_terminal(name) => {
                let definition = &self.file.definitions[*self.index.get(name)?];
                let is_shortest = definition.attributes.is_shortest();
                (!is_shortest).then(|| (&definition.body, attributes(definition)))
            }
            _ => Some((node, Attributes::default())),
        }
    }

    /// The markers as texts, if all of them are and nothing of the tools' beginnings is captured or hidden.
    fn triggers(
        &self,
        tools: &[Tool<'a, 't>],
        wholes: &BTreeMap<&'t str, Dfa>,
        any: &Dfa,
    ) -> Option<BTreeMap<&'t str, Vec<u8>>> {
        let limit = self.session.states();
        let mut triggers = BTreeMap::new();
        for tool in tools {
            let said = &tool.head.attributes;
            let is_stop =
                said.marker.as_ref().is_some_and(|marker| marker.kind == MarkerKind::Stop);
            let is_plain = said.capture.is_none() && said.stop_capture.is_none() && !is_stop;
            if !is_plain || !attributes(tool.head).is_empty() {
                return None;
            }
        }
        for (name, whole) in wholes {
            let word = whole.shortest_word().filter(|word| !word.is_empty())?;
            if any.concat(&Dfa::word(word.iter().copied()), limit).ok()?.shortest() != *whole {
                return None;
            }
            let bytes = word.into_iter().filter_map(|symbol| u8::try_from(symbol).ok());
            triggers.insert(*name, bytes.collect());
        }
        Some(triggers)
    }

    fn dispatch(
        &mut self,
        tools: &[Tool<'a, 't>],
        triggers: &BTreeMap<&'t str, Vec<u8>>,
        min: u32,
    ) -> Expr {
        let mut tags = Vec::new();
        let (mut bytes, most) = (0, self.session.limits.dispatch_bytes);
        for tool in tools {
            let trigger = triggers[tool.head.name.value].clone();
            bytes += trigger.len();
            if bytes > most {
                let message = format!("the texts before tools have more than {most} bytes");
                self.session.report(Diagnostic::error(tool.head.name.span.clone(), message));
                return Expr::Never;
            }
            let rest = self.sequence(tool.rest);
            let body = match self.ignore {
                Some(ignore) => Expr::seq([Expr::Ref(ignore), rest]),
                None => rest,
            };
            tags.push((Trigger::Text(trigger), self.session.builder.rule("tool", body)));
        }
        let end = if min == 0 { DispatchEnd::Anywhere } else { DispatchEnd::AfterOneTag };
        let (stops, excludes) = (Vec::new(), Vec::new());
        Expr::Dispatch(Box::new(Dispatch { tags, stops, excludes, after: AfterTag::Loop, end }))
    }
}

/// Whether nothing but text and names stands in an expression.
fn has_no_tokens(node: &Node<'_>) -> bool {
    match &node.kind {
        NodeKind::Seq(parts) | NodeKind::Alt(parts) | NodeKind::And(parts) => {
            parts.iter().all(has_no_tokens)
        }
        NodeKind::Repeat(body, ..) | NodeKind::Not(body) => has_no_tokens(body),
        NodeKind::Special(_) | NodeKind::Grammar(_) | NodeKind::Json(_) | NodeKind::Lark(_) => {
            false
        }
        NodeKind::Name(_)
        | NodeKind::Text(..)
        | NodeKind::Range(..)
        | NodeKind::Regex(..)
        | NodeKind::Structured(_) => true,
    }
}
