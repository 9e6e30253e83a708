//! Names of a file: imports, definitions, and what is undefined or unused.

use super::ast::{Node, Spanned, for_each_name, is_terminal};
use super::lower::FileLowering;
use super::{common, pattern};
use crate::front::diagnostic::Diagnostic;
use crate::hash::HashMap;
use crate::ir::Expr;
use crate::limits::Limits;

/// Maximum number of names with which an unknown name is compared.
const MAX_COMPARED: usize = 5_000;

impl<'t> FileLowering<'_, '_, '_, 't> {
    /// Resolves imports and indexes definitions by name.
    pub(super) fn resolve_names(&mut self) {
        let file = self.file;
        let mut first: HashMap<&'t str, std::ops::Range<usize>> = HashMap::default();
        let mut library: HashMap<&'t str, Expr> = HashMap::default();
        for import in &file.imports {
            let Some(source) = common::pattern(import.name.value) else {
                let similar = self.session.diagnostics.suggest(import.name.value, common::names());
                let help = similar.unwrap_or_else(|| {
                    format!("it has {}", common::names().collect::<Vec<_>>().join(", "))
                });
                let message = format!("`common` has no terminal `{}`", import.name.value);
                self.session
                    .report(Diagnostic::error(import.name.span.clone(), message).help(help));
                // What the name stands for is unknown, and it is told only here.
                let rule = self.session.builder.rule(import.alias.value, Expr::Never);
                self.imports.insert(import.alias.value, (Expr::Never, rule));
                continue;
            };
            if !self.declare(&mut first, &import.alias) {
                continue;
            }
            let body = library.entry(import.name.value).or_insert_with(|| {
                let mut nodes = usize::MAX;
                let body = pattern::lower(source, "", &Limits::default(), &mut nodes);
                self.compact(body.expect("the library's patterns are well-formed"))
            });
            let body = body.clone();
            if !is_terminal(import.alias.value) {
                let message = format!("a terminal cannot be called `{}`", import.alias.value);
                self.session.report(
                    Diagnostic::error(import.alias.span.clone(), message)
                        .help("write it in capitals"),
                );
            }
            let rule = self.session.builder.rule(import.alias.value, body.clone());
            self.imports.insert(import.alias.value, (body, rule));
        }
        for (i, definition) in file.definitions.iter().enumerate() {
            if self.declare(&mut first, &definition.name) {
                self.index.insert(definition.name.value, i);
            }
        }
    }

    /// Declares a name; reports an error and returns `false` if it is declared already.
    fn declare(
        &mut self,
        first: &mut HashMap<&'t str, std::ops::Range<usize>>,
        name: &Spanned<&'t str>,
    ) -> bool {
        if let Some(span) = first.get(name.value) {
            let message = format!("`{}` is defined twice", name.value);
            let diagnostic = Diagnostic::error(name.span.clone(), message)
                .related(span.clone(), "first defined here");
            self.session.report(diagnostic);
            return false;
        }
        first.insert(name.value, name.span.clone());
        true
    }

    /// Warns of definitions that are not reachable from `start`.
    pub(super) fn warn_unused(&mut self, start: usize) {
        let file = self.file;
        let mut seen = vec![false; file.definitions.len()];
        let mut pending: Vec<&Node<'t>> = file.ignores.iter().collect();
        let mut reach = |i: usize, pending: &mut Vec<_>| {
            if !std::mem::replace(&mut seen[i], true) {
                let definition = &file.definitions[i];
                pending.push(&definition.body);
                pending.extend(definition.attributes.marker.iter().map(|marker| &marker.node));
            }
        };
        reach(start, &mut pending);
        while let Some(node) = pending.pop() {
            for_each_name(node, &mut |name, _| {
                self.index.get(name).into_iter().for_each(|&i| reach(i, &mut pending));
            });
        }
        let unused = file.definitions.iter().zip(seen).enumerate().filter(|(_, (_, seen))| !seen);
        for (i, (definition, _)) in unused {
            // A second definition is an error already.
            if self.index.get(definition.name.value) != Some(&i) {
                continue;
            }
            let message = format!("`{}` is never used", definition.name.value);
            self.session.report(Diagnostic::warning(definition.name.span.clone(), message));
        }
    }

    /// Reports an undefined name.
    pub(super) fn undefined(&mut self, name: &str, span: &std::ops::Range<usize>) -> Expr {
        if self.session.has_syntax_errors {
            return Expr::Never;
        }
        let suggest = self.index.len() + self.imports.len() <= MAX_COMPARED;
        let names = self.index.keys().chain(self.imports.keys()).copied().filter(|_| suggest);
        let mut candidates: Vec<&str> =
            names.filter(|other| is_terminal(other) == is_terminal(name)).collect();
        candidates.sort_unstable();
        let what = if is_terminal(name) { "terminal" } else { "rule" };
        let similar = self.session.diagnostics.suggest(name, candidates);
        let help = similar
            .or_else(|| common::pattern(name).map(|_| format!("`%import common.{name}` has one")));
        let message = format!("there is no {what} `{name}`");
        self.session.report(Diagnostic { help, ..Diagnostic::error(span.clone(), message) });
        Expr::Never
    }
}
