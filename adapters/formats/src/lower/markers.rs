//! Markers and the parts of headers, trailers and separators, as grammar.

use louver::fsm::ByteSet;
use louver::ids::{RuleId, SpecialId};
use louver::ir::{Expr, SpecialToken, Trigger};

use super::Lowering;
use crate::format::{Atom, FixedParts, IdStyle, MAX_GAP, Marker, Part};

impl Lowering<'_> {
    pub(crate) fn parts(&mut self, parts: &[Part], name: &str) -> Expr {
        Expr::seq(parts.iter().map(|part| match part {
            Part::Text(text) => Expr::text(text),
            Part::Name { name: style } => Expr::text(&style.write(name)),
            Part::Id { id } => Expr::Ref(self.call_id(*id)),
            Part::Gap { .. } => gap(),
            Part::Maybe { maybe } => Expr::optional(self.parts(maybe, name)),
            Part::Marker(marker) => self.marker(marker),
        }))
    }

    /// The rule of ids in a style. All calls share it, so that an id before the name is parsed once
    /// and not once for each tool.
    fn call_id(&mut self, style: IdStyle) -> RuleId {
        if let Some((_, rule)) = self.ids.iter().find(|(known, _)| *known == style) {
            return *rule;
        }
        let rule = self.builder.rule("id", id_texts(style));
        self.ids.push((style, rule));
        rule
    }

    pub(crate) fn fixed_parts(&mut self, fixed_parts: &FixedParts) -> Expr {
        self.parts(&fixed_parts.parts(), "")
    }

    pub(crate) fn marker(&mut self, marker: &Marker) -> Expr {
        Expr::alt(marker.variants().iter().map(|variant| self.atoms(variant)))
    }

    pub(crate) fn optional_marker(&mut self, marker: Option<&Marker>) -> Expr {
        marker.map_or(Expr::Empty, |marker| self.marker(marker))
    }

    fn special(&mut self, name: &str) -> SpecialId {
        self.builder.special(SpecialToken::Name(name.to_owned()))
    }

    fn atoms(&mut self, atoms: &[Atom]) -> Expr {
        Expr::seq(atoms.iter().map(|atom| match atom {
            Atom::Text(text) => Expr::text(text),
            Atom::Token(name) => Expr::Special(self.special(name)),
        }))
    }

    /// For each variant of the marker: the trigger that free text is searched for, and what must
    /// follow the trigger.
    pub(crate) fn triggers_and_rests(&mut self, marker: &Marker) -> Vec<(Trigger, Expr)> {
        // `check` refuses empty markers, and the grammar refuses empty triggers.
        let split = |variant: &Vec<Atom>| {
            let (text, rest) = match &variant[..] {
                [Atom::Text(text), rest @ ..] => (text.as_str(), rest),
                all => ("", all),
            };
            let (token, rest) = match rest {
                [Atom::Token(name), rest @ ..] => (Some(self.special(name)), rest),
                rest => (None, rest),
            };
            (Trigger::new(text, token), self.atoms(rest))
        };
        marker.variants().iter().map(split).collect()
    }

    /// As [`Lowering::triggers_and_rests`], of the begin marker of calls. If it begins with the
    /// begin marker of built-in tools, that is the trigger and the remainder must follow.
    pub(crate) fn begin_triggers(&mut self, marker: &Marker) -> Vec<(Trigger, Expr)> {
        let builtin_begins =
            self.format.builtin_begin().map(Marker::plain_texts).unwrap_or_default();
        let mut triggers = self.triggers_and_rests(marker);
        for (trigger, rest) in &mut triggers {
            if let Some(text) = trigger.text()
                && let Some(begin) =
                    builtin_begins.iter().find(|begin| text.starts_with(begin.as_bytes()))
            {
                *rest = Expr::seq([Expr::bytes(&text[begin.len()..]), rest.clone()]);
                *trigger = Trigger::Text(begin.clone().into_bytes());
            }
        }
        triggers
    }

    /// The triggers of a marker whose variants have one atom.
    pub(crate) fn triggers(&mut self, marker: &Marker) -> Vec<Trigger> {
        self.triggers_and_rests(marker).into_iter().map(|(trigger, _)| trigger).collect()
    }
}

/// White space, as much as a gap may have.
pub(crate) fn gap() -> Expr {
    Expr::repeat(Expr::Class(ByteSet::WHITE_SPACE), 0, Some(MAX_GAP))
}

/// The texts of ids in a style.
fn id_texts(style: IdStyle) -> Expr {
    let bytes: Vec<u8> = (0..0x80).filter(|byte| style.has(char::from(*byte))).collect();
    let (min, max) = style.lengths().into_inner();
    Expr::repeat(Expr::Class(ByteSet::from_bytes(&bytes)), min as u32, Some(max as u32))
}

/// Whether a begin marker is a single character, which text may contain: only what follows it tells
/// a call from text.
pub(crate) fn is_single_character(begin: &str) -> bool {
    begin.chars().count() == 1
}
