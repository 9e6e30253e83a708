//! Values that are not written as JSON: Python literals, and strings between delimiters of their own. Only strings,
//! words and member names differ; brackets, commas, colons and numbers stay as they are.

use std::sync::OnceLock;

use super::SchemaErrorReason as Reason;
use super::elements::Elements;
use super::facets::StringFacets;
use super::lower::Lowering;
use super::parameters::Kinds;
use super::spelling::Spelling;
use crate::front::regex::{Pattern, SCALARS, scalar_from, scalar_until, spell_dfa, spell_utf8};
use crate::fsm::{ByteSet, Combine, Dfa, Nfa, TooLarge};
use crate::ir::{Expr, Trigger};
use crate::limits::Limits;

/// How strings, words and member names are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// As JSON.
    #[default]
    Json,
    /// As Python literals: `'it'` or `"it"`, `True`, `False`, `None`.
    Python,
    /// Strings as they are, between two delimiters (any of these); member names bare.
    Delimited(Vec<Trigger>),
    /// Each value in a tag of its own.
    Elements(Box<Elements>),
}

/// Names that stand bare: without quotes around them.
const BARE_NAME: &str = "^[A-Za-z_$][A-Za-z0-9_$.-]*$";

/// The quotes of Python.
const QUOTES: [u8; 2] = [b'"', b'\''];

impl Syntax {
    /// `null`, `true`, `false`.
    pub(super) fn words(&self) -> [&'static [u8]; 3] {
        match self {
            Syntax::Python => [b"None", b"True", b"False"],
            Syntax::Json | Syntax::Delimited(_) | Syntax::Elements(_) => {
                [b"null", b"true", b"false"]
            }
        }
    }

    pub(super) fn is_json(&self) -> bool {
        *self == Syntax::Json
    }

    /// Whether names of members are written otherwise than strings.
    pub(super) fn has_bare_names(&self) -> bool {
        matches!(self, Syntax::Delimited(_) | Syntax::Elements(_))
    }

    /// One string; none if it cannot be written.
    pub(super) fn constant(&self, text: &str, spelling: Spelling) -> Expr {
        match self {
            Syntax::Json => spelling.literal(text),
            Syntax::Python => Expr::alt(QUOTES.map(|quote| {
                let chars = text.chars().map(u32::from).map(|c| python_spell(&[(c, c)], quote));
                Expr::seq([quoted(quote)].into_iter().chain(chars).chain([quoted(quote)]))
            })),
            Syntax::Delimited(marks) if spelled(marks).any(|mark| contains(text, mark)) => {
                Expr::Never
            }
            Syntax::Delimited(marks) => Expr::seq([either(marks), Expr::text(text), either(marks)]),
            Syntax::Elements(elements) => elements.constant(text),
        }
    }

    /// One member's name; none if it cannot be written.
    pub(super) fn name(&self, name: &str, spelling: Spelling) -> Expr {
        match self {
            Syntax::Delimited(_)
                if name.is_empty() || name.contains([':', ',', '{', '}', '[', ']', '<', '"']) =>
            {
                Expr::Never
            }
            Syntax::Delimited(_) => Expr::text(name),
            Syntax::Elements(elements) => elements.named(name),
            Syntax::Json | Syntax::Python => self.constant(name, spelling),
        }
    }
}

/// Any of the markers.
pub(super) fn either(marks: &[Trigger]) -> Expr {
    Expr::alt(marks.iter().map(|mark| match mark {
        Trigger::Text(bytes) => Expr::bytes(bytes),
        Trigger::Special(special) => Expr::Special(*special),
        Trigger::Led(bytes, special) => Expr::seq([Expr::bytes(bytes), Expr::Special(*special)]),
    }))
}

/// The markers that bytes spell.
pub(super) fn spelled(marks: &[Trigger]) -> impl Iterator<Item = &[u8]> {
    marks.iter().filter_map(|mark| match mark {
        Trigger::Text(bytes) => Some(&bytes[..]),
        Trigger::Special(_) | Trigger::Led(..) => None,
    })
}

pub(super) fn contains(text: &str, mark: &[u8]) -> bool {
    text.as_bytes().windows(mark.len()).any(|window| window == mark)
}

fn quoted(quote: u8) -> Expr {
    Expr::bytes(&[quote])
}

/// One code point of a Python string, in the usual spellings.
fn python_char(quote: u8) -> Expr {
    let mut plain = ByteSet::range(0x20, 0x7E);
    plain.remove(quote);
    plain.remove(b'\\');
    let hex = || Expr::Class(ByteSet::of(b"0123456789abcdefABCDEF"));
    let not_d = ByteSet::of(b"0123456789abcefABCEF");
    let unit = |first: ByteSet, second: ByteSet| {
        Expr::seq([Expr::text("u"), Expr::Class(first), Expr::Class(second), hex(), hex()])
    };
    let any = ByteSet::of(b"0123456789abcdefABCDEF");
    let scalar = Expr::alt([unit(not_d, any), unit(ByteSet::of(b"dD"), ByteSet::of(b"01234567"))]);
    let escape = Expr::alt([
        Expr::Class(ByteSet::of(b"\\\"'nrtbf")),
        Expr::seq([Expr::text("x"), hex(), hex()]),
        scalar,
    ]);
    Expr::alt([
        Expr::Class(plain),
        Expr::code_points('\u{80}', char::MAX),
        Expr::seq([Expr::text("\\"), escape]),
    ])
}

/// Code points of a Python string, escaped only where they must be.
fn python_spell(ranges: &[(u32, u32)], quote: u8) -> Expr {
    let (mut plain, mut short, mut rest) = (ByteSet::EMPTY, ByteSet::EMPTY, Vec::new());
    let mut hex = Vec::new();
    for &(lo, hi) in ranges {
        for code in lo..=hi.min(0x7F) {
            let byte = code as u8;
            match byte {
                b'\n' => short.insert(b'n'),
                b'\r' => short.insert(b'r'),
                b'\t' => short.insert(b't'),
                8 => short.insert(b'b'),
                12 => short.insert(b'f'),
                b'\\' => short.insert(byte),
                _ if byte == quote => short.insert(byte),
                0x20..=0x7E => plain.insert(byte),
                _ => hex.push(Expr::text(&format!("x{byte:02x}"))),
            }
        }
        if let (true, Some(lo), Some(hi)) =
            (hi >= 0x80, scalar_from(lo.max(0x80)), scalar_until(hi))
        {
            rest.push(Expr::code_points(lo, hi));
        }
    }
    let escape = Expr::alt([Expr::class(short)].into_iter().chain(hex));
    Expr::alt(
        [Expr::class(plain)].into_iter().chain(rest).chain([Expr::seq([Expr::text("\\"), escape])]),
    )
}

/// `before` anything, then the text, then `after` anything (each if set).
pub(super) fn around(
    before: bool,
    text: &[u8],
    after: bool,
    limit: usize,
) -> Result<Dfa, TooLarge> {
    let mut nfa = Nfa::new();
    let start = nfa.state();
    nfa.set_start(start);
    let any =
        |nfa: &mut Nfa, state| SCALARS.iter().for_each(|&(lo, hi)| nfa.edge(state, lo, hi, state));
    if before {
        any(&mut nfa, start);
    }
    let mut at = start;
    for c in String::from_utf8_lossy(text).chars() {
        let next = nfa.state();
        nfa.edge(at, u32::from(c), u32::from(c), next);
        at = next;
    }
    nfa.set_final(at);
    if after {
        let end = nfa.state();
        nfa.epsilon(at, end);
        any(&mut nfa, end);
        nfa.set_final(end);
    }
    Ok(nfa.determinize(limit)?.minimize())
}

/// Texts that stand bare, as names.
fn bare_name() -> &'static Dfa {
    static BARE: OnceLock<Dfa> = OnceLock::new();
    BARE.get_or_init(|| own_pattern(BARE_NAME))
}

/// Texts that would be read as values of these types; none for strings alone.
pub(super) fn lookalikes(kinds: Kinds) -> Option<&'static Dfa> {
    static KNOWN: [OnceLock<Option<Dfa>>; 64] = [const { OnceLock::new() }; 64];
    KNOWN[usize::from(kinds.bits())]
        .get_or_init(|| kinds.lookalikes().map(|source| own_pattern(&source)))
        .as_ref()
}

/// The texts that match a pattern of our own as a whole.
fn own_pattern(source: &str) -> Dfa {
    let limits = Limits::default();
    let dfa =
        Pattern::parse(source, &limits).map(|pattern| pattern.match_dfa(limits.automaton_states));
    match dfa {
        Ok(Ok(dfa)) => dfa,
        Ok(Err(error)) => unreachable!("{source} is small: {error}"),
        Err(error) => unreachable!("{source} is a pattern: {error}"),
    }
}

impl<'a> Lowering<'a, '_> {
    /// A string with these facets, in a syntax that is not JSON.
    pub(super) fn foreign_string(&mut self, facets: &StringFacets<'a>) -> Expr {
        let counted = facets.patterns.is_empty() && facets.excluded.is_empty();
        match self.syntax.clone() {
            Syntax::Python if counted => Expr::alt(QUOTES.map(|quote| {
                let body = Expr::repeat(python_char(quote), facets.min, facets.max);
                Expr::seq([quoted(quote), body, quoted(quote)])
            })),
            Syntax::Json | Syntax::Python => match self.norm.text_dfa(facets) {
                Some(dfa) => python_text(&dfa),
                None => Expr::Never,
            },
            Syntax::Delimited(marks) => {
                let forbidden: Vec<&[u8]> = spelled(&marks).collect();
                match self.raw_text(facets, &forbidden) {
                    Some(dfa) => Expr::seq([
                        either(&marks),
                        spell_dfa(&dfa, &mut spell_utf8),
                        either(&marks),
                    ]),
                    None => Expr::Never,
                }
            }
            Syntax::Elements(elements) => self.element_text(&elements, facets),
        }
    }

    /// Member names that are texts of the automaton, in a syntax that is not JSON.
    pub(super) fn foreign_names(&mut self, dfa: &Dfa) -> Expr {
        match &self.syntax {
            Syntax::Json | Syntax::Python => python_text(dfa),
            Syntax::Delimited(_) => self.bare_names(dfa),
            Syntax::Elements(elements) => {
                let elements = elements.clone();
                self.element_names(&elements, dfa)
            }
        }
    }

    /// Names of the automaton that can stand bare.
    pub(super) fn bare_names(&mut self, dfa: &Dfa) -> Expr {
        let limits = self.norm.limits;
        match dfa.combine(bare_name(), Combine::And, limits.automaton_states) {
            Ok(bare) if bare.is_empty() => Expr::Never,
            Ok(bare) => spell_dfa(&bare, &mut spell_utf8),
            Err(error) => self.too_large(&error),
        }
    }

    /// All texts but these.
    pub(super) fn all_but(&mut self, excluded: &[&str]) -> Option<Dfa> {
        let words =
            Dfa::words(excluded.iter().map(|text| text.chars().map(u32::from).collect::<Vec<_>>()));
        match words.complement(&SCALARS, self.norm.limits.automaton_states) {
            Ok(dfa) => Some(dfa),
            Err(error) => {
                self.too_large(&error);
                None
            }
        }
    }

    /// Texts with these facets that contain none of the marks, as an automaton over code points.
    pub(super) fn raw_text(
        &mut self,
        facets: &StringFacets<'a>,
        forbidden: &[&[u8]],
    ) -> Option<Dfa> {
        let limit = self.norm.limits.automaton_states;
        let mut dfa = (*self.norm.text_dfa(facets)?).clone();
        for mark in forbidden {
            match around(true, mark, true, limit)
                .and_then(|with| dfa.combine(&with, Combine::Minus, limit))
            {
                Ok(without) => dfa = without.minimize(),
                Err(error) => {
                    self.too_large(&error);
                    return None;
                }
            }
        }
        (!dfa.is_empty()).then_some(dfa)
    }

    pub(super) fn too_large(&mut self, error: &TooLarge) -> Expr {
        self.norm.report(self.at, "", Reason::Limit(error.to_string()));
        Expr::Never
    }
}

/// The texts of an automaton over code points as Python strings.
fn python_text(dfa: &Dfa) -> Expr {
    Expr::alt(QUOTES.map(|quote| {
        let body = spell_dfa(dfa, &mut |ranges| python_spell(ranges, quote));
        Expr::seq([quoted(quote), body, quoted(quote)])
    }))
}
