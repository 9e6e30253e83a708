//! Shortest-match rules (`lazy`, `suffix=`, `stop=`), and free text that they interrupt.

use std::collections::BTreeMap;
use std::ops::Range;

use super::ast::{Definition, Marker, MarkerKind, Node, NodeKind, for_each_name, is_terminal};
use super::lower::{FileLowering, attributes};
use super::pattern;
use crate::front::diagnostic::Diagnostic;
use crate::fsm::{Combine, Dfa, TooLarge};
use crate::ir::regular::{self, BYTES};
use crate::ir::{AfterTag, Attributes, Dispatch, DispatchEnd, Expr, Trigger};
use crate::limits::Limits;

/// Maximum number of pairs into which a match is split at its marker.
const MAX_SPLITS: usize = 64;
/// Maximum depth to which rules are followed to classify alternatives as tools or text.
const MAX_DEPTH: usize = 16;

/// The automata of a shortest-match rule.
struct MatchAutomata {
    /// The texts before the marker; all texts of the rule if it has none.
    body: Dfa,
    /// The marker.
    marker: Option<Dfa>,
    /// The shortest matches, marker included.
    whole: Dfa,
}

/// An alternative that begins with a shortest-match rule.
struct ToolAlternative<'a, 't> {
    /// The shortest-match rule.
    head: &'a Definition<'t>,
    /// The items after it.
    rest: &'a [Node<'t>],
}

impl<'a, 't> FileLowering<'_, '_, 'a, 't> {
    /// Lowers the body of a shortest-match rule. If `within` is given, only its texts are matches.
    pub(super) fn shortest_match(
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
            // The text contains no special tokens, so that the first one ends the match.
            let mut parts: Vec<Expr> = text.iter().map(|node| self.text(node)).collect();
            parts.push(self.node(token));
            return Expr::seq(parts);
        }
        let Some(mut automata) = self.match_automata(definition) else { return Expr::Never };
        if let Some(within) = within {
            let both = |limit| automata.whole.combine(within, Combine::And, limit);
            let Some(both) = self.build(&definition.body.span, both) else { return Expr::Never };
            automata.whole = both;
        }
        match (&definition.attributes.marker, &automata.marker) {
            (Some(attribute), Some(marker)) => {
                self.marked_match(definition, attribute, &automata, marker)
            }
            _ => Expr::Automaton(automata.whole.into()),
        }
    }

    /// Lowers a match with a marker: the text and the marker, each with its capture.
    fn marked_match(
        &mut self,
        definition: &'a Definition<'t>,
        attribute: &Marker<'t>,
        automata: &MatchAutomata,
        marker: &Dfa,
    ) -> Expr {
        let attributes = &definition.attributes;
        let stop_capture = attributes.stop_capture.as_ref().map(|name| name.value.clone());
        if attributes.capture.is_none()
            && stop_capture.is_none()
            && attribute.kind == MarkerKind::Suffix
        {
            return Expr::Automaton(automata.whole.clone().into());
        }
        let limit = self.session.states();
        let split = regular::split(&automata.whole, &automata.body, marker, limit);
        let size =
            |pairs: &Vec<(Dfa, Dfa)>| pairs.iter().map(|(a, b)| a.len() + b.len()).sum::<usize>();
        let split = self.session.charge_states(split, limit, size);
        let Some(pairs) = self.report_limit(split, &attribute.node.span) else {
            return Expr::Never;
        };
        if pairs.len() > MAX_SPLITS {
            let message =
                format!("more than {MAX_SPLITS} ways to tell the marker from the text before it");
            return self.session.refuse(attribute.node.span.clone(), message);
        }
        if self.is_kept(definition) {
            return self.match_before_marker(definition, attribute, &pairs);
        }
        let hidden = attribute.kind == MarkerKind::Stop;
        let parts = pairs.into_iter().map(|(before, after)| {
            let mut body = Expr::Automaton(before.into());
            if !hidden && attributes.capture.is_some() {
                let capture = attributes.capture.clone();
                let of_body = Attributes { capture, ..Attributes::default() };
                body = self.session.rule_with(definition.name.value, body, of_body);
            }
            let of_marker =
                Attributes { capture: stop_capture.clone(), hidden, ..Attributes::default() };
            let marker = Expr::Automaton(after.into());
            Expr::seq([body, self.session.rule_with("marker", marker, of_marker)])
        });
        Expr::alt(parts.collect::<Vec<_>>())
    }

    /// Whether what follows a rule reads its marker.
    fn is_kept(&self, definition: &Definition<'t>) -> bool {
        self.index.get(definition.name.value).is_some_and(|&i| self.kept[i])
    }

    /// Lowers a match whose marker is left to what follows.
    fn match_before_marker(
        &mut self,
        definition: &Definition<'t>,
        attribute: &Marker<'t>,
        pairs: &[(Dfa, Dfa)],
    ) -> Expr {
        if let Some(name) = &definition.attributes.stop_capture {
            let message =
                "`stop_capture` has nothing to report: what follows the rule reads the `stop` text";
            self.session.report(
                Diagnostic::error(name.span.clone(), message)
                    .help("give the capture to what follows, or write `suffix=`"),
            );
        }
        let union = |limit| Dfa::union(pairs.iter().map(|(before, _)| before), limit);
        let union = self.build(&attribute.node.span, union);
        union.map_or(Expr::Never, |dfa| Expr::Automaton(dfa.into()))
    }

    /// Builds the automata of a shortest-match rule; reports errors.
    fn match_automata(&mut self, definition: &'a Definition<'t>) -> Option<MatchAutomata> {
        let expr = self.text(&definition.body);
        let body = self.dfa(&expr, &definition.body.span)?;
        let Some(attribute) = &definition.attributes.marker else {
            let whole = body.shortest();
            return Some(MatchAutomata { body, marker: None, whole });
        };
        let expr = self.text(&attribute.node);
        let marker = self.dfa(&expr, &attribute.node.span)?;
        let both = self.build(&attribute.node.span, |limit| body.concat(&marker, limit));
        let whole = both?.shortest();
        Some(MatchAutomata { body, marker: Some(marker), whole })
    }

    /// Reports an automaton that is too large.
    fn report_limit<T>(&mut self, result: Result<T, TooLarge>, span: &Range<usize>) -> Option<T> {
        if let Err(error) = &result {
            self.session.report(Diagnostic::error(span.clone(), error.to_string()));
        }
        result.ok()
    }

    /// Builds an automaton within the states that remain, and charges its states. Reports one that
    /// is too large.
    pub(super) fn build(
        &mut self,
        span: &Range<usize>,
        build: impl FnOnce(usize) -> Result<Dfa, TooLarge>,
    ) -> Option<Dfa> {
        let limit = self.session.states();
        let built = self.session.charge_states(build(limit), limit, Dfa::len);
        self.report_limit(built, span)
    }

    /// The automaton of all texts.
    fn any_text(&mut self) -> Dfa {
        if let Some(dfa) = &self.session.any_text {
            return dfa.clone();
        }
        let all = pattern::lower(".*", "s", &Limits::default(), &mut { usize::MAX });
        let dfa = regular::automaton(&all.expect("a well-formed pattern"), &[], 1_000)
            .expect("a few states");
        self.session.any_text.insert(dfa).clone()
    }

    /// Marks the rules that are plain text: those without attributes that refer only to terminals
    /// and to plain-text rules.
    pub(super) fn mark_plain_rules(&mut self) {
        let file = self.file;
        self.plain = vec![false; file.definitions.len()];
        // For each rule, the rules that refer to it, and the number of its references not yet known
        // to be text.
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); file.definitions.len()];
        let mut missing = vec![0usize; file.definitions.len()];
        let mut pending = Vec::new();
        for (i, definition) in file.definitions.iter().enumerate() {
            if is_terminal(definition.name.value)
                || !definition.attributes.is_empty()
                || !has_no_tokens(&definition.body)
            {
                continue;
            }
            for_each_name(&definition.body, &mut |name, _| {
                if !is_terminal(name) {
                    missing[i] += 1;
                    if let Some(&named) = self.index.get(name) {
                        users[named].push(i);
                    }
                }
            });
            if missing[i] == 0 {
                pending.push(i);
            }
        }
        while let Some(i) = pending.pop() {
            self.plain[i] = true;
            for &user in &users[i] {
                missing[user] -= 1;
                if missing[user] == 0 {
                    pending.push(user);
                }
            }
        }
    }

    /// Whether an expression of a rule is plain text.
    fn is_text(&self, node: &Node<'t>) -> bool {
        let mut plain = has_no_tokens(node);
        for_each_name(node, &mut |name, _| {
            plain &= is_terminal(name) || self.index.get(name).is_some_and(|&i| self.plain[i]);
        });
        plain
    }

    /// Whether an expression matches any text.
    fn is_any_text(&mut self, node: &'a Node<'t>) -> bool {
        if !self.is_text(node) {
            return false;
        }
        let expr = self.text(node);
        let any = self.any_text();
        // Expressions that need more states are not recognised.
        self.session.automaton(&expr, 1_000).is_ok_and(|dfa| dfa == any)
    }

    /// Classifies the alternatives of a repeat as tools and as text. `None` if one is neither.
    fn classify_alternatives(
        &mut self,
        node: &'a Node<'t>,
        depth: usize,
        tools: &mut Vec<ToolAlternative<'a, 't>>,
        texts: &mut Vec<&'a Node<'t>>,
    ) -> Option<()> {
        if depth > MAX_DEPTH || !self.session.spend(1, &node.span) {
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
            NodeKind::Alt(list) => list
                .iter()
                .try_for_each(|part| self.classify_alternatives(part, depth + 1, tools, texts)),
            NodeKind::Seq(items) if items.first().is_some_and(|first| head(first).is_some()) => {
                let (first, rest) = items.split_first()?;
                tools.push(ToolAlternative { head: head(first)?, rest });
                Some(())
            }
            NodeKind::Name(name) => {
                if let Some(head) = head(node) {
                    tools.push(ToolAlternative { head, rest: &[] });
                    return Some(());
                }
                let definition = &self.file.definitions[*self.index.get(name)?];
                if definition.attributes.is_empty() && !is_terminal(name) && !self.is_text(node) {
                    return self.classify_alternatives(&definition.body, depth + 1, tools, texts);
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

    /// Lowers `(tool | ...)* rest`, where tools begin with any text up to a marker and `rest` is
    /// any text. The first marker read begins a tool, whatever else could be read there. `None` for
    /// other expressions.
    pub(super) fn tools(&mut self, repeat: &'a Node<'t>, rest: &'a Node<'t>) -> Option<Expr> {
        let NodeKind::Repeat(body, min @ (0 | 1), None) = &repeat.kind else { return None };
        let (mut tools, mut texts) = (Vec::new(), Vec::new());
        self.classify_alternatives(body, 0, &mut tools, &mut texts)?;
        if tools.is_empty() || (*min == 1 && !texts.is_empty()) {
            return None;
        }
        let (tail, tail_attributes) = self.tail(rest)?;
        if !self.is_any_text(tail) || !texts.into_iter().all(|text| self.is_any_text(text)) {
            return None;
        }
        if let Some(tool) = tools.iter().find(|tool| self.is_kept(tool.head)) {
            let message = "after a rule with `stop=` before free text, its text is not read again";
            self.session.report(
                Diagnostic::error(tool.head.name.span.clone(), message)
                    .help("write `suffix=`, and leave the text out after the rule"),
            );
            return Some(Expr::Never);
        }
        let any = self.any_text();
        let match_dfas = self.match_dfas(&tools, &any)?;
        if tail_attributes.is_empty()
            && let Some(triggers) = self.triggers(&tools, &match_dfas, &any)
        {
            return Some(self.dispatch(&tools, &triggers, *min));
        }
        let first = self.build(&body.span, |limit| Dfa::union(match_dfas.values(), limit))?;
        let first = first.shortest();
        let free = self.build(&rest.span, |limit| any.without_prefix(&first, &BYTES, limit))?;
        let mut parts = Vec::new();
        for tool in &tools {
            let head = self.shortest_match(tool.head, Some(&first));
            let rule_attributes = attributes(tool.head);
            let head = match rule_attributes.is_empty() {
                true => head,
                false => self.session.rule_with(tool.head.name.value, head, rule_attributes),
            };
            let head = self.with_ignored(head);
            let rest = self.sequence(tool.rest);
            parts.push(Expr::seq([head, rest]));
        }
        let free = self.session.rule_with("text", Expr::Automaton(free.into()), tail_attributes);
        Some(Expr::seq([Expr::repeat(Expr::alt(parts), *min, None), free]))
    }

    /// The matches of the tools' heads by name. `None` if one does not allow any text before its
    /// marker.
    fn match_dfas(
        &mut self,
        tools: &[ToolAlternative<'a, 't>],
        any: &Dfa,
    ) -> Option<BTreeMap<&'t str, Dfa>> {
        let mut match_dfas = BTreeMap::new();
        for tool in tools {
            let name = tool.head.name.value;
            if match_dfas.contains_key(name) {
                continue;
            }
            let whole = self.match_automata(tool.head)?.whole;
            let anywhere = self.build(&tool.head.body.span, |limit| any.concat(&whole, limit))?;
            if whole.is_empty() || anywhere.shortest() != whole {
                return None;
            }
            match_dfas.insert(name, whole);
        }
        Some(match_dfas)
    }

    /// The expression after the tools, and its attributes if it is a rule.
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

    /// The markers as texts. `None` if one is not a fixed text, or if a part of a match is captured
    /// or hidden.
    fn triggers(
        &self,
        tools: &[ToolAlternative<'a, 't>],
        match_dfas: &BTreeMap<&'t str, Dfa>,
        any: &Dfa,
    ) -> Option<BTreeMap<&'t str, Vec<u8>>> {
        let limit = self.session.states();
        let mut triggers = BTreeMap::new();
        for tool in tools {
            let head = &tool.head.attributes;
            let is_stop =
                head.marker.as_ref().is_some_and(|marker| marker.kind == MarkerKind::Stop);
            let is_plain = head.capture.is_none() && head.stop_capture.is_none() && !is_stop;
            if !is_plain || !attributes(tool.head).is_empty() {
                return None;
            }
        }
        for (name, whole) in match_dfas {
            let word = whole.shortest_word().filter(|word| !word.is_empty())?;
            if any.concat(&Dfa::word(word.iter().copied()), limit).ok()?.shortest() != *whole {
                return None;
            }
            let bytes = word.into_iter().filter_map(|symbol| u8::try_from(symbol).ok());
            triggers.insert(*name, bytes.collect());
        }
        Some(triggers)
    }

    /// Lowers tools to a tag dispatch.
    fn dispatch(
        &mut self,
        tools: &[ToolAlternative<'a, 't>],
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
                return self.session.refuse(tool.head.name.span.clone(), message);
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
        Dispatch { tags, stops, excludes, after: AfterTag::Loop, end }.into()
    }
}

/// Whether an expression consists of text and references only.
fn has_no_tokens(node: &Node<'_>) -> bool {
    let is_token = matches!(
        node.kind,
        NodeKind::Special(_) | NodeKind::Grammar(_) | NodeKind::Json(_) | NodeKind::Lark(_)
    );
    !is_token && node.operands().iter().all(has_no_tokens)
}
