//! What a text says becomes a grammar: names get their rules, classes their bytes, patterns their automata.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::EbnfOptions;
use super::ast::{DispatchNode, Kind, MembersNode, Name, Node, Regex, RuleDef, Span, TokenDispatch, TriggerNode};
use super::parse::Text;
use super::warn;
use crate::front::Lowered;
use crate::front::diagnostic::{Diagnostic, Diagnostics, similar};
use crate::front::regex::{Pattern, RegexError, SCALARS, spell_dfa, spell_utf8};
use crate::fsm::{Combine, Dfa, Nfa, TooLarge};
use crate::hash::{HashMap, HashSet};
use crate::ids::RuleId;
use crate::ir::regular::{self, NotRegular};
use crate::ir::{
    AfterTag, Dispatch, Expr, Grammar, GrammarBuilder, Graph, Member, Members, Simplify, SpecialToken, Trigger,
};
use crate::limits::Limits;

/// Most unknown names for which a similar one is looked for, and most names among which.
const MAX_SIMILAR: usize = 20;
const MAX_KNOWN: usize = 5_000;

/// Most lazy rules whose grammar is simplified because they are recursive.
const MAX_SIMPLIFIED: usize = 16;

/// What may not stand raw between the quotes of a JSON string: controls, the quote, the backslash.
const NOT_IN_JSON: [(u32, u32); 3] = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)];

/// The grammar of these rules, or all that is wrong.
pub(super) fn lower(text: Text, options: &EbnfOptions, limits: &Limits) -> Result<Lowered, Diagnostics> {
    let Text { rules, broken, diagnostics } = text;
    let mut lowering = Lowering {
        options,
        limits,
        builder: GrammarBuilder::new(),
        names: HashMap::default(),
        broken: broken.into_iter().collect(),
        known: rules.iter().take(MAX_KNOWN).map(|rule| rule.name.text.clone()).collect(),
        imports: BTreeMap::new(),
        unknown: 0,
        diagnostics,
    };
    let start = lowering.declare(&rules);
    for (i, rule) in rules.iter().enumerate() {
        let body = lowering.expr(&rule.body);
        let id = RuleId::new(i);
        lowering.builder.define(id, body);
        *lowering.builder.attributes(id) = rule.attributes.clone();
    }
    let Lowering { builder, mut diagnostics, .. } = lowering;
    let Some(start) = start.filter(|_| !diagnostics.has_errors()) else { return Err(diagnostics) };
    let mut grammar = match builder.finish(start) {
        Ok(grammar) => grammar,
        Err(error) => {
            diagnostics.push(Diagnostic::error(0..0, error.to_string()));
            return Err(diagnostics);
        }
    };
    warn::warnings(&grammar, &rules, &mut diagnostics);
    lazy(&mut grammar, &rules, limits, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(Lowered { grammar, warnings: diagnostics })
}

/// Rules of which only the shortest matches count become automata, inner ones first.
fn lazy(grammar: &mut Grammar, rules: &[RuleDef], limits: &Limits, diagnostics: &mut Diagnostics) {
    if rules.iter().all(|rule| rule.lazy.is_none()) {
        return;
    }
    let mut simplified = 0;
    for id in warn::callees_first(grammar) {
        let Some((rule, Some(span))) = rules.get(id.index()).map(|rule| (rule, rule.lazy.clone())) else { continue };
        let body = &grammar.rules[id.index()].body;
        let mut found = regular::automaton(body, &grammar.rules, limits.automaton_states);
        if matches!(found, Err(NotRegular::Recursive { .. })) && simplified < MAX_SIMPLIFIED {
            // Recursion at the ends of rules is repetition, written otherwise.
            simplified += 1;
            let whole = Grammar { start: id, ..grammar.clone() };
            if let Ok(simple) = whole.simplify(Simplify::Full) {
                let body = &simple.rules[simple.start.index()].body;
                found = regular::automaton(body, &simple.rules, limits.automaton_states);
            }
        }
        match found {
            Ok(dfa) => grammar.rules[id.index()].body = Expr::Automaton(Arc::new(dfa.shortest())),
            Err(why) => {
                let message = format!("`{}` cannot be lazy: it is not regular", rule.name.text);
                diagnostics.push(Diagnostic::error(span, message).label(why.to_string()));
            }
        }
    }
}

struct Lowering<'o> {
    options: &'o EbnfOptions,
    limits: &'o Limits,
    builder: GrammarBuilder,
    names: HashMap<String, RuleId>,
    broken: HashSet<String>,
    /// Names to suggest.
    known: Vec<String>,
    imports: BTreeMap<String, RuleId>,
    unknown: usize,
    diagnostics: Diagnostics,
}

impl Lowering<'_> {
    /// Declares all rules; returns the one in which derivations begin.
    fn declare(&mut self, rules: &[RuleDef]) -> Option<RuleId> {
        let mut start: Option<(usize, Span)> = None;
        for (i, rule) in rules.iter().enumerate() {
            let id = self.builder.declare(&*rule.name.text);
            match self.names.get(&rule.name.text) {
                None => drop(self.names.insert(rule.name.text.clone(), id)),
                Some(first) => {
                    let message = format!("a second rule `{}`", rule.name.text);
                    let first = rules[first.index()].name.span.clone();
                    self.diagnostics.push(
                        Diagnostic::error(rule.name.span.clone(), message)
                            .related(first, "the first one")
                            .help("alternatives of one rule are written `a | b`"),
                    );
                }
            }
            match (&rule.start, &start) {
                (Some(span), None) => start = Some((i, span.clone())),
                (Some(span), Some((_, first))) => self.diagnostics.push(
                    Diagnostic::error(span.clone(), "a second rule to start with")
                        .related(first.clone(), "the first one"),
                ),
                (None, _) => {}
            }
        }
        let root = &self.options.root;
        match start {
            Some((i, _)) => Some(RuleId::new(i)),
            None => {
                let found = self.names.get(root).copied();
                if found.is_none() && !self.diagnostics.has_errors() {
                    let message = format!("there is no rule `{root}`, in which derivations begin");
                    let first = rules.first().map(|rule| rule.name.span.clone());
                    let mut diagnostic = Diagnostic::error(first.unwrap_or(0..0), message);
                    if let Some(name) = similar(root, self.known.iter().map(String::as_str)) {
                        diagnostic = diagnostic.help(format!("is `{name}` meant?"));
                    }
                    self.diagnostics.push(diagnostic);
                }
                found
            }
        }
    }

    fn rule(&mut self, name: &str, span: &Span) -> Expr {
        match self.names.get(name) {
            Some(&id) => Expr::Ref(id),
            None if self.broken.contains(name) => Expr::Never,
            None => {
                self.unknown += 1;
                let mut diagnostic = Diagnostic::error(span.clone(), format!("there is no rule `{name}`"));
                if self.unknown <= MAX_SIMILAR {
                    let known = self.known.iter().map(String::as_str);
                    diagnostic.help = similar(name, known).map(|name| format!("is `{name}` meant?"));
                }
                self.diagnostics.push(diagnostic);
                Expr::Never
            }
        }
    }

    fn body(&mut self, name: &Name) -> RuleId {
        match self.rule(&name.text, &name.span) {
            Expr::Ref(id) => id,
            _ => RuleId::new(0),
        }
    }

    fn special(&mut self, token: &SpecialToken) -> Expr {
        Expr::Special(self.builder.special(token.clone()))
    }

    /// Mirrors the text: what is written nested stays nested, so that printed grammars are read back as they were.
    fn expr(&mut self, node: &Node) -> Expr {
        match &node.kind {
            Kind::Empty => Expr::Empty,
            Kind::Bytes(bytes) => Expr::bytes(bytes),
            Kind::Class { ranges, negated } => spell_utf8(&code_points(ranges, *negated)),
            Kind::ByteClass(set) => Expr::class(*set),
            Kind::Any => spell_utf8(&SCALARS),
            Kind::Token(token) => self.special(token),
            // Where dots may be names, one that is none is any character.
            Kind::Ref(name) if &**name == "." && !self.names.contains_key(name) => spell_utf8(&SCALARS),
            Kind::Ref(name) => self.rule(name, &node.span),
            Kind::Import(name) => self.import(name, &node.span),
            Kind::Seq(parts) => Expr::Seq(parts.iter().map(|part| self.expr(part)).collect()),
            Kind::Alt(parts) => Expr::Alt(parts.iter().map(|part| self.expr(part)).collect()),
            Kind::Repeat { body, min, max } => Expr::Repeat { body: Box::new(self.expr(body)), min: *min, max: *max },
            Kind::Regex(regex) => self.regex(regex, &node.span),
            Kind::Substring(chunks) => substring(chunks),
            Kind::Except { texts, max } => match except(texts, *max, self.limits.automaton_states) {
                Ok(dfa) => Expr::Automaton(Arc::new(dfa)),
                Err(why) => self.too_large(&node.span, why),
            },
            Kind::Dispatch(dispatch) => self.dispatch(dispatch, &node.span),
            Kind::TokenDispatch(dispatch) => self.token_dispatch(dispatch),
            Kind::Members(members) => self.members(members),
            Kind::Automaton(dfa) => Expr::Automaton(dfa.clone()),
            Kind::Graph { nodes, start, ends, edges } => {
                let edges = edges.iter().map(|(from, expr, to)| (*from, self.expr(expr), *to)).collect();
                Expr::Graph(Box::new(Graph { nodes: *nodes, start: *start, ends: ends.clone(), edges }))
            }
        }
    }

    fn members(&mut self, node: &MembersNode) -> Expr {
        let once = node.once.iter().map(|(body, required)| Member { body: self.expr(body), required: *required });
        let once = once.collect();
        let often = node.often.iter().map(|body| self.expr(body)).collect();
        let separator = self.expr(&node.separator);
        Expr::Members(Box::new(Members { once, often, separator, min: node.min, max: node.max }))
    }

    fn too_large(&mut self, span: &Span, why: TooLarge) -> Expr {
        self.diagnostics.push(Diagnostic::error(span.clone(), why.to_string()));
        Expr::Never
    }

    fn import(&mut self, name: &str, span: &Span) -> Expr {
        if let Some(&id) = self.imports.get(name) {
            return Expr::Ref(id);
        }
        let Some(grammar) = self.options.grammars.get(name) else {
            let help = similar(name, self.options.grammars.keys().map(String::as_str));
            let help = help.map(|name| format!("is `@{name}` meant?"));
            let message = format!("there is no grammar `{name}`");
            self.diagnostics.push(Diagnostic { help, ..Diagnostic::error(span.clone(), message) });
            return Expr::Never;
        };
        let id = self.builder.import(grammar);
        self.imports.insert(name.to_owned(), id);
        Expr::Ref(id)
    }

    fn regex(&mut self, regex: &Regex, span: &Span) -> Expr {
        let limit = self.limits.automaton_states;
        let mut spell = |ranges: &[(u32, u32)]| {
            if regex.json_string { spell_utf8(&without(ranges, &NOT_IN_JSON)) } else { spell_utf8(ranges) }
        };
        let lowered = Pattern::with_options(&regex.pattern, &regex.options, self.limits).and_then(|pattern| {
            if regex.lazy {
                return Ok(spell_dfa(&pattern.match_dfa(limit)?.shortest(), &mut spell));
            }
            Ok(match pattern.branches(&mut spell) {
                Some(branches) => Expr::alt(branches.into_iter().map(|b| b.body)),
                None => spell_dfa(&pattern.match_dfa(limit)?, &mut spell),
            })
        });
        lowered.unwrap_or_else(|error| {
            let offset = match &error {
                RegexError::Syntax { offset, .. } | RegexError::Unsupported { offset, .. } => Some(*offset),
                _ => None,
            };
            let place = match (regex.verbatim, offset) {
                (Some(begin), Some(offset)) => begin + offset..begin + offset + 1,
                _ => span.clone(),
            };
            self.diagnostics.push(Diagnostic::error(place, error.to_string()));
            Expr::Never
        })
    }

    fn trigger(&mut self, trigger: &TriggerNode) -> Trigger {
        match trigger {
            TriggerNode::Text(text) => Trigger::Text(text.clone()),
            TriggerNode::Token(token) => Trigger::Special(self.builder.special(token.clone())),
            TriggerNode::Led(text, token) => Trigger::Led(text.clone(), self.builder.special(token.clone())),
        }
    }

    fn dispatch(&mut self, dispatch: &DispatchNode, span: &Span) -> Expr {
        let mut tags = Vec::with_capacity(dispatch.tags.len());
        for (trigger, _, body) in &dispatch.tags {
            tags.push((self.trigger(trigger), self.body(body)));
        }
        let stops = dispatch.stops.iter().map(|stop| self.trigger(stop)).collect();
        let excludes = dispatch.excludes.clone();
        let dispatch = Dispatch { tags, stops, excludes, after: dispatch.after, end: dispatch.end };
        let most = self.limits.dispatch_bytes;
        if dispatch.bytes() > most {
            let message = format!("the triggers, stops and excludes have more than {most} bytes");
            self.diagnostics.push(Diagnostic::error(span.clone(), message));
            return Expr::Never;
        }
        Expr::Dispatch(Box::new(dispatch))
    }

    /// Any tokens but the triggers and the excluded ones, and behind each trigger its rule.
    fn token_dispatch(&mut self, dispatch: &TokenDispatch) -> Expr {
        let triggers = dispatch.tags.iter().map(|(trigger, _)| trigger);
        let free = SpecialToken::AnyBut(triggers.chain(&dispatch.excludes).cloned().collect());
        let free = self.special(&free);
        let mut tags = Vec::with_capacity(dispatch.tags.len());
        for (trigger, body) in &dispatch.tags {
            tags.push(Expr::seq([self.special(trigger), Expr::Ref(self.body(body))]));
        }
        match dispatch.after {
            AfterTag::Loop => {
                tags.insert(0, free);
                Expr::star(Expr::alt(tags))
            }
            AfterTag::End => Expr::seq([Expr::star(free), Expr::optional(Expr::alt(tags))]),
        }
    }
}

/// A class as sorted, disjoint ranges of scalar values.
fn code_points(ranges: &[(u32, u32)], negated: bool) -> Vec<(u32, u32)> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    if negated {
        return SCALARS.into_iter().flat_map(|range| without(&[range], &sorted)).collect();
    }
    let mut out: Vec<(u32, u32)> = Vec::new();
    for (lo, hi) in sorted {
        match out.last_mut() {
            Some(last) if lo <= last.1.saturating_add(1) => last.1 = last.1.max(hi),
            _ => out.push((lo, hi)),
        }
    }
    out
}

/// Sorted ranges without what is in others, which are sorted too.
fn without(ranges: &[(u32, u32)], others: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    for &(lo, hi) in ranges {
        let mut from = lo;
        for &(skip, until) in others.iter().filter(|&&(skip, until)| until >= lo && skip <= hi) {
            if skip > from {
                out.push((from, skip - 1));
            }
            from = from.max(until + 1);
        }
        if from <= hi {
            out.push((from, hi));
        }
    }
    out
}

/// Chunks that follow each other in the list, any number of them.
fn substring(chunks: &[Vec<u8>]) -> Expr {
    let mut ids: HashMap<&[u8], u32> = HashMap::default();
    let mut distinct: Vec<&[u8]> = Vec::new();
    let mut word = Vec::with_capacity(chunks.len());
    for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        let id = *ids.entry(chunk).or_insert_with(|| {
            distinct.push(chunk);
            (distinct.len() - 1) as u32
        });
        word.push(id);
    }
    if word.is_empty() {
        return Expr::Empty;
    }
    let factors = Dfa::factors(&word);
    let states = 0..factors.len() as u32;
    let mut graph = Graph { nodes: factors.len() as u32, ends: states.clone().collect(), ..Graph::default() };
    for state in states {
        for edge in factors.edges(state) {
            (edge.lo..=edge.hi).for_each(|chunk| graph.edge(state, Expr::bytes(distinct[chunk as usize]), edge.to));
        }
    }
    Expr::Graph(Box::new(graph))
}

/// Texts of at most `max` code points that contain none of these.
fn except(texts: &[String], max: Option<u32>, limit: usize) -> Result<Dfa, TooLarge> {
    let mut nfa = Nfa::new();
    let (start, end) = (nfa.state(), nfa.state());
    for state in [start, end] {
        SCALARS.iter().for_each(|&(lo, hi)| nfa.edge(state, lo, hi, state));
    }
    for text in texts {
        let mut at = start;
        for c in text.chars().map(u32::from) {
            let next = nfa.state();
            nfa.edge(at, c, c, next);
            at = next;
        }
        nfa.epsilon(at, end);
    }
    nfa.set_final(end);
    let containing = nfa.determinize(limit)?.minimize();
    let free = Dfa::counted(&SCALARS, 0, max, limit)?.combine(&containing, Combine::Minus, limit)?;
    // Neither references nor dispatches are inside, so size is all that can be wrong.
    regular::automaton(&spell_dfa(&free, &mut spell_utf8), &[], limit).map_err(|_| TooLarge::States { limit })
}
