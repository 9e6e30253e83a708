//! What stands around and between values, members and elements: made once a schema.

use std::rc::Rc;

use super::Whitespace;
use super::lower::Lowering;
use super::syntax::Syntax;
use crate::fsm::ByteSet;
use crate::ir::Expr;

/// Most levels of indentation.
const MAX_INDENTS: u32 = 64;

/// Between a name and its value, and around members and elements.
pub(super) struct Punctuation {
    pub(super) colon: Expr,
    pub(super) braces: Frame,
    pub(super) brackets: Frame,
}

/// What stands around and between members, or elements.
pub(super) struct Frame {
    /// With the gap behind it.
    pub(super) open: Expr,
    /// With the gap before it.
    pub(super) close: Expr,
    /// With both.
    pub(super) comma: Expr,
    /// Nothing between.
    pub(super) empty: Expr,
}

impl Lowering<'_, '_> {
    /// What stands around and between.
    pub(super) fn punctuation(&mut self) -> Rc<Punctuation> {
        if let Some(known) = &self.punctuation {
            return known.clone();
        }
        let colon =
            if let Syntax::Elements(_) = self.syntax { Expr::Empty } else { self.between(":") };
        let (braces, brackets) = (self.frame("{", "}"), self.frame("[", "]"));
        self.punctuation.insert(Rc::new(Punctuation { colon, braces, brackets })).clone()
    }

    /// White space between JSON tokens.
    pub(super) fn gap(&mut self) -> Expr {
        if let Some(rule) = self.shared.space {
            return Expr::Ref(rule);
        }
        let body = match self.norm.options.whitespace {
            Whitespace::Flexible { max } if max > 0 => {
                Expr::repeat(Expr::Class(ByteSet::WHITE_SPACE), 0, Some(max))
            }
            Whitespace::Pretty { indent } => {
                let unit = Expr::text(&" ".repeat(indent as usize));
                Expr::seq([Expr::text("\n"), Expr::repeat(unit, 0, Some(MAX_INDENTS))])
            }
            _ => return Expr::Empty,
        };
        let rule = self.rule("ws".into(), body);
        Expr::Ref(*self.shared.space.insert(rule))
    }

    /// A comma or colon with what stands around it.
    fn between(&mut self, mark: &str) -> Expr {
        let spaces = |count: u32| Expr::text(&format!("{mark}{}", " ".repeat(count as usize)));
        match self.norm.options.whitespace {
            Whitespace::PythonLike => spaces(1),
            Whitespace::Exact { after_comma, after_colon } => {
                spaces(if mark == "," { after_comma } else { after_colon })
            }
            Whitespace::Pretty { .. } if mark == ":" => spaces(1),
            Whitespace::Pretty { .. } => Expr::seq([Expr::text(mark), self.gap()]),
            Whitespace::Compact | Whitespace::Flexible { .. } => {
                let gap = self.gap();
                Expr::seq([gap.clone(), Expr::text(mark), gap])
            }
        }
    }

    fn frame(&mut self, open: &str, close: &str) -> Frame {
        let gap = self.gap();
        let inside = match self.norm.options.whitespace {
            Whitespace::Pretty { .. } => Expr::Empty,
            _ => gap.clone(),
        };
        if let Syntax::Elements(elements) = &self.syntax {
            // Members begin with their names, elements of arrays with the tag alone.
            let (open, first) = if open == "{" {
                (&elements.object, "")
            } else {
                (&elements.array, &elements.open[..])
            };
            let comma = Expr::seq([gap.clone(), Expr::text(first)]);
            return Frame {
                empty: Expr::seq([Expr::text(open), inside, Expr::text(&elements.close)]),
                open: Expr::seq([Expr::text(open), comma.clone()]),
                close: Expr::seq([gap, Expr::text(&elements.close)]),
                comma,
            };
        }
        Frame {
            empty: Expr::seq([Expr::text(open), inside, Expr::text(close)]),
            open: Expr::seq([Expr::text(open), gap.clone()]),
            close: Expr::seq([gap, Expr::text(close)]),
            comma: self.between(","),
        }
    }
}

/// As [`Expr::seq`] of the three.
pub(super) fn around(before: &Expr, inside: Expr, after: &Expr) -> Expr {
    let (before, after) = (parts(before), parts(after));
    let mut out = Vec::with_capacity(before.len() + 1 + after.len());
    out.extend_from_slice(before);
    match inside {
        Expr::Seq(inner) => out.extend(inner),
        inside => out.push(inside),
    }
    out.extend_from_slice(after);
    let is_tidy = out.len() > 1
        && !out.iter().any(|part| matches!(part, Expr::Empty | Expr::Never | Expr::Seq(_)));
    if is_tidy { Expr::Seq(out) } else { Expr::seq(out) }
}

fn parts(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::Seq(parts) => parts,
        Expr::Empty => &[],
        other => std::slice::from_ref(other),
    }
}
