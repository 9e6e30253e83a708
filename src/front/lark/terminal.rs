//! Lowers terminals and plain-text rules to regular languages over bytes.

use std::ops::Range;

use super::ast::{Node, NodeKind, for_each_name, is_terminal};
use super::lower::{FileLowering, TextState};
use super::pattern;
use crate::front::diagnostic::Diagnostic;
use crate::fsm::{Combine, Dfa};
use crate::ir::Expr;
use crate::ir::regular::BYTES;

/// Maximum number of states of an automaton that replaces an expression.
const COMPACT_STATES: usize = 2_000;
/// Maximum bound of a repeat that such an automaton unrolls. Larger ones stay counters.
const COMPACT_COUNT: u32 = 16;
/// Maximum length of a text that is inlined into every terminal that refers to it.
const MAX_INLINE_BYTES: usize = 64;

/// Whether an expression has a repeat with a large bound.
fn has_large_count(expr: &Expr) -> bool {
    let is_large =
        matches!(expr, Expr::Repeat { min, max, .. } if max.unwrap_or(*min) > COMPACT_COUNT);
    is_large || expr.children().any(has_large_count)
}

impl<'a, 't> FileLowering<'_, '_, 'a, 't> {
    /// Replaces an expression by its automaton, if that is small.
    pub(super) fn compact(&mut self, expr: Expr) -> Expr {
        match &expr {
            Expr::Empty
            | Expr::Never
            | Expr::Bytes(_)
            | Expr::Class(_)
            | Expr::Automaton(_)
            | Expr::Ref(_) => expr,
            _ if has_large_count(&expr) => expr,
            _ => {
                let dfa = self.session.automaton(&expr, COMPACT_STATES);
                dfa.map_or(expr, |dfa| Expr::Automaton(dfa.into()))
            }
        }
    }

    /// Builds the automaton of an expression; reports an error if it is too large.
    pub(super) fn dfa(&mut self, expr: &Expr, span: &Range<usize>) -> Option<Dfa> {
        let dfa = self.session.automaton(expr, usize::MAX);
        if let Err(error) = &dfa {
            self.session.refuse(span.clone(), format!("this has no automaton: {error}"));
        }
        dfa.ok()
    }

    /// Lowers a definition to text.
    pub(super) fn definition_text(&mut self, root: usize) -> Expr {
        self.resolve(root);
        match &self.texts[root] {
            // A terminal that stayed an expression has it as the body of its rule.
            TextState::Done(Expr::Ref(rule)) if *rule == self.rules[root] => {
                self.session.builder.rules()[rule.index()].body.clone()
            }
            TextState::Done(expr) => expr.clone(),
            _ => Expr::Never,
        }
    }

    /// Lowers a definition to text, dependencies first. Reports cycles.
    fn resolve(&mut self, root: usize) {
        // Definitions being lowered, each with its remaining dependencies.
        let mut stack: Vec<(usize, Vec<(usize, Range<usize>)>)> = Vec::new();
        if self.texts[root] == TextState::New {
            let dependencies = self.begin(root);
            stack.push((root, dependencies));
        }
        while let Some((i, dependencies)) = stack.last_mut() {
            let i = *i;
            match dependencies.pop() {
                Some((dependency, span)) => match self.texts[dependency] {
                    TextState::New => {
                        let dependencies = self.begin(dependency);
                        stack.push((dependency, dependencies));
                    }
                    TextState::Open => {
                        let name = self.file.definitions[dependency].name.value;
                        let what = if is_terminal(name) { "terminal" } else { "rule" };
                        let message = format!("{what} `{name}` leads back to itself");
                        let diagnostic = Diagnostic::error(span, message)
                            .help("only rules can be recursive, outside of terminals");
                        self.session.report(diagnostic);
                        self.texts[dependency] = TextState::Failed;
                    }
                    TextState::Failed | TextState::Done(_) => {}
                },
                None => {
                    stack.pop();
                    if self.texts[i] == TextState::Open {
                        self.finish(i);
                    }
                }
            }
        }
    }

    /// Begins to lower a definition; returns its dependencies.
    fn begin(&mut self, i: usize) -> Vec<(usize, Range<usize>)> {
        self.texts[i] = TextState::Open;
        let mut dependencies = Vec::new();
        for_each_name(&self.file.definitions[i].body, &mut |name, span| {
            if let Some(&dependency) = self.index.get(name)
                && self.file.definitions[dependency].attributes.is_empty()
            {
                dependencies.push((dependency, span.clone()));
            }
        });
        let of_terminal = is_terminal(self.file.definitions[i].name.value);
        for (dependency, span) in dependencies.iter().filter(|_| of_terminal) {
            let name = self.file.definitions[*dependency].name.value;
            if !is_terminal(name) {
                let message = format!("rule `{name}` in a terminal");
                self.session.report(Diagnostic::error(span.clone(), message).help(
                    "a terminal consists of terminals and text: begin the name with a \
                               capital",
                ));
            }
        }
        dependencies
    }

    /// Lowers a definition whose dependencies are lowered.
    fn finish(&mut self, i: usize) {
        let definition = &self.file.definitions[i];
        let body = self.node_text(&definition.body);
        let body = self.compact(body);
        if let Expr::Automaton(dfa) = &body
            && dfa.is_empty()
            && !self.session.diagnostics.has_errors()
        {
            let message = format!("`{}` matches nothing", definition.name.value);
            self.session.report(Diagnostic::warning(definition.name.span.clone(), message));
        }
        self.texts[i] = TextState::Done(match body {
            Expr::Bytes(bytes) if bytes.len() <= MAX_INLINE_BYTES => Expr::Bytes(bytes),
            small @ (Expr::Empty
            | Expr::Never
            | Expr::Class(_)
            | Expr::Automaton(_)
            | Expr::Ref(_)) => small,
            body if is_terminal(definition.name.value) => {
                self.session.builder.define(self.rules[i], body);
                Expr::Ref(self.rules[i])
            }
            body => Expr::Ref(self.session.builder.rule(definition.name.value, body)),
        });
    }

    /// Lowers an expression to text.
    pub(super) fn text(&mut self, node: &'a Node<'t>) -> Expr {
        let mut dependencies = Vec::new();
        for_each_name(node, &mut |name, _| {
            if let Some(&dependency) = self.index.get(name)
                && self.file.definitions[dependency].attributes.is_empty()
            {
                dependencies.push(dependency);
            }
        });
        dependencies.into_iter().for_each(|dependency| self.resolve(dependency));
        self.node_text(node)
    }

    /// As [`FileLowering::text`], with all dependencies lowered.
    fn node_text(&mut self, node: &'a Node<'t>) -> Expr {
        match &node.kind {
            NodeKind::Name(name) => self.named_text(name, &node.span),
            NodeKind::Text(text, false) => Expr::text(text),
            NodeKind::Text(text, true) if self.session.spend(text.len(), &node.span) => {
                pattern::folded_text(text)
            }
            NodeKind::Text(..) => Expr::Never,
            NodeKind::Range(low, high) => pattern::range(*low, *high),
            NodeKind::Regex(source, flags) => {
                match pattern::lower(source, flags, self.session.limits, &mut self.session.nodes) {
                    Ok(expr) => expr,
                    Err(error) => {
                        let begin = node.span.start + 1;
                        let span = begin + error.span.start..begin + error.span.end;
                        self.session.refuse(span, error.message)
                    }
                }
            }
            NodeKind::Substring(json) => self.substring(json),
            NodeKind::Seq(parts) => {
                let parts: Vec<Expr> = parts.iter().map(|part| self.node_text(part)).collect();
                Expr::seq(parts)
            }
            NodeKind::Alt(parts) => {
                let parts: Vec<Expr> = parts.iter().map(|part| self.node_text(part)).collect();
                Expr::alt(parts)
            }
            NodeKind::Repeat(body, min, max) => Expr::repeat(self.node_text(body), *min, *max),
            NodeKind::And(parts) => self.all_of(parts, &node.span),
            NodeKind::Not(body) => self.none_of(body, &node.span),
            NodeKind::Special(token) => self.refuse(&format!("special token `{token}`"), node),
            NodeKind::Grammar(name) => self.refuse(&format!("grammar `@{name}`"), node),
            NodeKind::Json(_) => self.refuse("`%json`", node),
            NodeKind::Lark(_) => self.refuse("`%lark`", node),
        }
    }

    /// Reports what is not text.
    fn refuse(&mut self, what: &str, node: &Node<'t>) -> Expr {
        let message =
            format!("{what} cannot stand in a terminal or a lazy rule: it is not plain text");
        self.session.refuse(node.span.clone(), message)
    }

    /// Lowers a reference to text.
    fn named_text(&mut self, name: &'t str, span: &Range<usize>) -> Expr {
        let Some(&i) = self.index.get(name) else {
            return match self.imports.get(name) {
                Some((body, _)) => body.clone(),
                None => self.undefined(name, span),
            };
        };
        match &self.texts[i] {
            TextState::Done(expr) => expr.clone(),
            // Rules with attributes are not text.
            TextState::New => {
                let message = format!(
                    "rule `{name}` has attributes, which would be lost in a terminal or a lazy rule"
                );
                self.session.refuse(span.clone(), message)
            }
            TextState::Open | TextState::Failed => Expr::Never,
        }
    }

    /// Lowers an intersection.
    fn all_of(&mut self, parts: &'a [Node<'t>], span: &Range<usize>) -> Expr {
        let mut all: Option<Dfa> = None;
        for part in parts {
            let expr = self.node_text(part);
            let Some(dfa) = self.dfa(&expr, &part.span) else { return Expr::Never };
            let both = self.build(span, |limit| match all {
                None => Ok(dfa),
                Some(other) => other.combine(&dfa, Combine::And, limit),
            });
            if both.is_none() {
                return Expr::Never;
            }
            all = both;
        }
        all.map_or(Expr::Never, |dfa| Expr::Automaton(dfa.into()))
    }

    /// Lowers a complement.
    fn none_of(&mut self, body: &'a Node<'t>, span: &Range<usize>) -> Expr {
        let expr = self.node_text(body);
        let Some(dfa) = self.dfa(&expr, &body.span) else { return Expr::Never };
        match dfa.complement(&BYTES, self.session.states()) {
            Ok(dfa) => Expr::Automaton(dfa.into()),
            Err(error) => self.session.refuse(span.clone(), error.to_string()),
        }
    }
}
