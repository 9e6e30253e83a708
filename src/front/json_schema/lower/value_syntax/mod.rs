//! Value syntaxes other than JSON: Python literals, strings with custom delimiters, elements, tags.
//! And parameters, whose outermost members are not written as those of an object.
//!
//! A syntax changes strings, the words `null`, `true` and `false`, and member names. Except in
//! elements and tags, brackets, commas, colons and numbers are those of JSON.

mod elements;
mod lookalikes;
mod nested;
mod parameters;
mod python_values;
mod raw_strings;
mod style;

pub(super) use python_values::PythonRules;
pub use python_values::PythonValues;
pub use raw_strings::{AmbiguousText, RawQuotes, RawStrings};
pub use style::{MemberPart, NameWriter, ParameterStyle, ValueStyle};

use std::sync::Arc;

use super::super::read::facets::StringFacets;
use super::SchemaLowering;
use super::builtin_pattern::builtin_pattern_dfa;
use super::spelling::Spelling;
use crate::cache::ProcessCell;
use crate::front::regex::{CountedDfa, Lengths, SCALARS, spell_not_ascii, spell_utf8};
use crate::front::text_search::contains;
use crate::fsm::{ByteSet, Combine, Dfa, DfaBuilder, TooLarge, WordSearch};
use crate::ids::RuleId;
use crate::ir::{Except, Expr, Literal, Trigger};

/// The words of an automaton over code points that have a length within the bounds.
pub(super) type CountedNames = (Dfa, Lengths);

/// Syntax of the values of a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ValueSyntax {
    /// JSON.
    #[default]
    Json,
    /// Python literals: `'it'` or `"it"`, `True`, `False`, `None`.
    Python(PythonDialect),
    /// Strings without escapes between two delimiters, each one of the given triggers; member names
    /// without quotes.
    Delimited(Vec<Trigger>),
    /// Each value in an element ([`ElementStyle`]).
    Elements(Box<ElementStyle>),
    /// Each value between tags that have its name ([`NestedStyle`]).
    Nested(Box<NestedStyle>),
}

/// What is allowed in Python literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PythonDialect {
    /// Literals.
    Literals,
    /// The same, but `true`, `false` and `null` may stand for `True`, `False` and `None`.
    JsonWords,
    /// Literals without undeclared names, unless names may repeat: these are compared in JSON only.
    Declared,
}

/// The texts that elements consist of. For `<value name="n" type="raw">text</value>`, `open` is
/// `<value`, `name` is ` name="` and `"`, `text` is ` type="raw">`, and `close` is `</value>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementStyle {
    /// Beginning of every element.
    pub open: String,
    /// Texts before and after the name of an object member. Array elements have no name.
    pub name: [String; 2],
    /// Before a string, which is written without quotes and escapes.
    pub text: String,
    /// Before a number, `true`, `false` or `null`.
    pub scalar: String,
    /// Before an object's members.
    pub object: String,
    /// Before an array's elements.
    pub array: String,
    /// End of every element. No string contains it.
    pub close: String,
}

impl ElementStyle {
    /// The beginning of an element with the name of a member, escaped as in XML.
    pub(super) fn open_with_name(&self, name: &str) -> Expr {
        Expr::text(&format!("{}{}{}{}", self.open, self.name[0], escape_xml(name), self.name[1]))
    }

    /// One string as an element; [`Expr::Never`] if it contains the closing tag.
    pub(super) fn constant(&self, text: &str) -> Expr {
        if contains(text, self.close.as_bytes()) {
            return Expr::Never;
        }
        Expr::text(&format!("{}{text}{}", self.text, self.close))
    }
}

/// Escapes a text for an XML attribute.
fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Names that may be written without quotes.
const BARE_NAME: &str = "^[A-Za-z_$][A-Za-z0-9_$.-]*$";

/// The quotes of Python strings.
const QUOTES: [u8; 2] = [b'"', b'\''];

/// The tags of [`ValueSyntax::Nested`]: `<name>` and `</name>`, each after a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedStyle {
    /// Stands before every tag, in any of these spellings. No string contains it.
    pub mark: Vec<Trigger>,
    /// The name of the elements of arrays.
    pub item: String,
}

impl NestedStyle {
    /// The mark.
    pub(super) fn mark(&self) -> Expr {
        any_trigger(&self.mark)
    }

    /// The mark, and the tag that opens a value of this name.
    pub(super) fn open(&self, name: &str) -> Expr {
        Expr::seq([self.mark(), Expr::text(&format!("<{name}>"))])
    }

    /// The tags that open a member, but those of an element and of these names.
    pub(super) fn open_all_but<'a>(&'a self, mut excluded: Vec<&'a str>) -> Expr {
        excluded.push(&self.item);
        Expr::seq([self.mark(), Expr::text("<"), bare_complement(excluded), Expr::text(">")])
    }

    /// The tag that closes a value of this name. The mark before it belongs to the value.
    pub(super) fn close(name: &str) -> Expr {
        Expr::text(&format!("</{name}>"))
    }

    /// Whether a tag can have this name.
    pub fn can_write_name(name: &str) -> bool {
        let is_reserved = |c: char| "<>/&\"".contains(c) || c.is_whitespace() || c.is_control();
        !name.is_empty() && !name.contains(is_reserved)
    }
}

impl ValueSyntax {
    /// The words for `null`, `true`, `false`.
    pub(super) fn words(&self) -> [&'static [&'static [u8]]; 3] {
        match self {
            ValueSyntax::Python(PythonDialect::JsonWords) => {
                [&[b"None", b"null"], &[b"True", b"true"], &[b"False", b"false"]]
            }
            ValueSyntax::Python(_) => [&[b"None"], &[b"True"], &[b"False"]],
            ValueSyntax::Json
            | ValueSyntax::Delimited(_)
            | ValueSyntax::Elements(_)
            | ValueSyntax::Nested(_) => [&[b"null"], &[b"true"], &[b"false"]],
        }
    }

    /// Whether the syntax is that of JSON.
    pub(crate) fn is_json(&self) -> bool {
        *self == ValueSyntax::Json
    }

    /// Whether values stand between tags.
    pub(super) fn is_nested(&self) -> bool {
        matches!(self, ValueSyntax::Nested(_))
    }

    /// Whether the syntax is that of Python, and these texts have no character that it escapes.
    pub(super) fn is_plain_python(&self, texts: &[&str]) -> bool {
        let plain = QUOTES.map(python_plain);
        let is_plain = |byte| plain.iter().all(|plain| plain.contains(byte));
        matches!(self, ValueSyntax::Python(_))
            && texts.iter().all(|text| text.bytes().all(is_plain))
    }

    /// Whether member names are written without quotes.
    pub(super) fn has_bare_names(&self) -> bool {
        !matches!(self, ValueSyntax::Json | ValueSyntax::Python(_))
    }

    /// One string; [`Expr::Never`] if it cannot be written.
    pub(super) fn constant(&self, text: &str, spelling: Spelling) -> Expr {
        match self {
            ValueSyntax::Json => spelling.literal(text),
            ValueSyntax::Python(_) => Expr::alt(QUOTES.map(|quote| {
                let chars = text.chars().map(u32::from).map(|c| python_spell(&[(c, c)], quote));
                Expr::seq([quote_expr(quote)].into_iter().chain(chars).chain([quote_expr(quote)]))
            })),
            ValueSyntax::Delimited(marks)
                if marks.iter().filter_map(Trigger::text).any(|mark| contains(text, mark)) =>
            {
                Expr::Never
            }
            ValueSyntax::Delimited(marks) => {
                Expr::seq([any_trigger(marks), Expr::text(text), any_trigger(marks)])
            }
            ValueSyntax::Elements(elements) => elements.constant(text),
            // See `nested_constant`.
            ValueSyntax::Nested(_) => Expr::Never,
        }
    }

    /// Whether the name of a member can be written. White space may stand around a bare name, so it
    /// cannot begin or end the name.
    pub(crate) fn can_write_name(&self, name: &str) -> bool {
        let reserved = [':', ',', '{', '}', '[', ']', '<', '"'];
        let white_space = [' ', '\t', '\n', '\r'];
        match self {
            ValueSyntax::Delimited(_) => {
                !name.is_empty()
                    && !name.contains(reserved)
                    && !name.starts_with(white_space)
                    && !name.ends_with(white_space)
            }
            ValueSyntax::Nested(_) => NestedStyle::can_write_name(name),
            ValueSyntax::Json | ValueSyntax::Python(_) | ValueSyntax::Elements(_) => true,
        }
    }

    /// What follows the value of a member: of this name, or of one of the undeclared names. The
    /// latter need not be the name before the value.
    pub(super) fn after_member(&self, name: Option<&str>) -> Expr {
        match (self, name) {
            (ValueSyntax::Nested(_), Some(name)) => NestedStyle::close(name),
            (ValueSyntax::Nested(_), None) => {
                Expr::seq([Expr::text("</"), bare_complement(Vec::new()), Expr::text(">")])
            }
            _ => Expr::Empty,
        }
    }

    /// The name of one member; [`Expr::Never`] if it cannot be written.
    pub(super) fn name(&self, name: &str, spelling: Spelling) -> Expr {
        match self {
            _ if !self.can_write_name(name) => Expr::Never,
            ValueSyntax::Delimited(_) => Expr::text(name),
            ValueSyntax::Elements(elements) => elements.open_with_name(name),
            ValueSyntax::Nested(tags) => tags.open(name),
            ValueSyntax::Json | ValueSyntax::Python(_) => self.constant(name, spelling),
        }
    }
}

/// An expression for any of the triggers.
pub(super) fn any_trigger(marks: &[Trigger]) -> Expr {
    Expr::alt(marks.iter().map(Trigger::expr))
}

/// One quote.
fn quote_expr(quote: u8) -> Expr {
    Expr::bytes(&[quote])
}

/// The ASCII characters that stand for themselves in a Python string.
fn python_plain(quote: u8) -> ByteSet {
    let mut plain = ByteSet::range(0x20, 0x7E);
    plain.remove(quote);
    plain.remove(b'\\');
    plain
}

/// One code point of an unconstrained Python string, in the usual spellings.
fn python_char(quote: u8) -> Expr {
    let plain = python_plain(quote);
    let hex = ByteSet::from_bytes(b"0123456789abcdefABCDEF");
    let not_d = ByteSet::from_bytes(b"0123456789abcefABCEF");
    let unit = |first: ByteSet, second: ByteSet| {
        let digits = [first, second, hex, hex].map(Expr::Class);
        Expr::seq([Expr::text("u")].into_iter().chain(digits))
    };
    let scalar = Expr::alt([
        unit(not_d, hex),
        unit(ByteSet::from_bytes(b"dD"), ByteSet::from_bytes(b"01234567")),
    ]);
    let escape = Expr::alt([
        Expr::Class(ByteSet::from_bytes(b"\\\"'nrtbf")),
        Expr::seq([Expr::text("x"), Expr::Class(hex), Expr::Class(hex)]),
        scalar,
    ]);
    Expr::alt([
        Expr::Class(plain),
        Expr::code_points('\u{80}', char::MAX),
        Expr::seq([Expr::text("\\"), escape]),
    ])
}

/// One code point of the ranges, which are sorted, in a Python string, escaped only where required.
fn python_spell(ranges: &[(u32, u32)], quote: u8) -> Expr {
    let (mut plain, mut short, mut hex) = (ByteSet::EMPTY, ByteSet::EMPTY, Vec::new());
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
    }
    let escape = Expr::alt([Expr::class(short)].into_iter().chain(hex));
    let escape = Expr::seq([Expr::text("\\"), escape]);
    Expr::alt([Expr::class(plain), spell_not_ascii(ranges), escape])
}

/// Where a word contains a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPosition {
    Begin,
    End,
    Anywhere,
}

/// The language without the words that contain one of the texts at a position. `None` if it has no
/// such word.
pub(super) fn without_texts(
    dfa: &Dfa,
    texts: &[&[u8]],
    position: TextPosition,
    limit: usize,
) -> Result<Option<Dfa>, TooLarge> {
    let texts = texts.iter().map(|text| String::from_utf8_lossy(text));
    // Often a character of the text occurs in no word.
    let occurs =
        |c: char| (0..dfa.len() as u32).any(|state| dfa.next(state, u32::from(c)).is_some());
    let texts: Vec<_> = texts.filter(|text| text.chars().all(occurs)).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    let search = || WordSearch::new(texts.iter().map(|text| text.chars()));
    let without = match position {
        TextPosition::Begin => dfa.without_prefix(&Dfa::texts(&texts), &SCALARS, limit),
        TextPosition::End => dfa.combine(&search().without_suffix(&SCALARS), Combine::And, limit),
        TextPosition::Anywhere => {
            dfa.combine(&search().without(&SCALARS, |_| true), Combine::And, limit)
        }
    };
    without.map(Some)
}

/// All names that may be written without quotes ([`BARE_NAME`]), except these. Cost: linear in the
/// names.
pub(super) fn bare_complement(mut excluded: Vec<&str>) -> Expr {
    let letters = ByteSet::range(b'a', b'z').union(&ByteSet::range(b'A', b'Z'));
    let first = letters.union(&ByteSet::from_bytes(b"_$"));
    let more = first.union(&ByteSet::range(b'0', b'9')).union(&ByteSet::from_bytes(b".-"));
    excluded.sort_unstable();
    excluded.dedup();
    let mut builder = DfaBuilder::new();
    let (start, free) = (builder.state(false), builder.state(true));
    let edges = |builder: &mut DfaBuilder, from: u32, bytes: &ByteSet, to: u32| {
        for (lo, hi) in bytes.ranges() {
            builder.edge(from, lo.into(), hi.into(), to);
        }
    };
    edges(&mut builder, free, &more, free);
    // (state, names below it, bytes read of them)
    let mut stack = vec![(start, &excluded[..], 0)];
    while let Some((state, names, read)) = stack.pop() {
        let mut leave = if read == 0 { first } else { more };
        let mut rest = names;
        while let Some(name) = rest.first() {
            let Some(&byte) = name.as_bytes().get(read) else {
                builder.set_final(state, false);
                rest = &rest[1..];
                continue;
            };
            let below = rest.partition_point(|other| other.as_bytes()[read] == byte);
            if leave.contains(byte) {
                leave.remove(byte);
                let child = builder.state(true);
                builder.edge(state, byte.into(), byte.into(), child);
                stack.push((child, &rest[..below], read + 1));
            }
            rest = &rest[below..];
        }
        edges(&mut builder, state, &leave, free);
    }
    Expr::Automaton(builder.finish().into())
}

/// The automaton of names that may be written without quotes.
fn bare_name_dfa() -> &'static Dfa {
    static CELL: ProcessCell<Dfa> = ProcessCell::new();
    CELL.get_or_make(|| builtin_pattern_dfa(BARE_NAME))
}

impl<'a> SchemaLowering<'a, '_> {
    /// Lowers a string with the given facets, in a syntax other than JSON.
    pub(super) fn non_json_string(&mut self, facets: &StringFacets<'a>) -> Expr {
        let counted = facets.patterns.is_empty() && facets.excluded.is_empty();
        match self.syntax.clone() {
            ValueSyntax::Python(_) if counted => Expr::alt(QUOTES.map(|quote| {
                let body = Expr::repeat(python_char(quote), facets.min, facets.max);
                Expr::seq([quote_expr(quote), body, quote_expr(quote)])
            })),
            ValueSyntax::Json | ValueSyntax::Python(_) => {
                let parts = self.normalizer.text_parts(facets).unwrap_or_default();
                self.python_text(&parts)
            }
            ValueSyntax::Delimited(marks) => {
                let forbidden: Vec<&[u8]> = marks.iter().filter_map(Trigger::text).collect();
                let texts = self.raw_text(facets, &forbidden);
                Expr::seq([any_trigger(&marks), texts, any_trigger(&marks)])
            }
            ValueSyntax::Elements(elements) => self.element_text(&elements, facets),
            ValueSyntax::Nested(tags) => self.nested_text(&tags, facets),
        }
    }

    /// Lowers the member names of an automaton, in a syntax other than JSON.
    pub(super) fn non_json_names(&mut self, names: &CountedNames) -> Expr {
        match self.syntax.clone() {
            ValueSyntax::Json | ValueSyntax::Python(_) => {
                let (dfa, lengths) = names.clone();
                self.python_text(&[(dfa.into(), lengths)])
            }
            ValueSyntax::Delimited(_) => self.bare_names(names),
            ValueSyntax::Elements(elements) => self.element_names(&elements, names),
            ValueSyntax::Nested(tags) => self.nested_names(&tags, names),
        }
    }

    /// All Python strings but these (sorted), which are spelled without escapes.
    pub(super) fn python_complement(&mut self, excluded: &[&str]) -> Expr {
        let tails = match self.common_rules.python_tails {
            Some(tails) => tails,
            None => {
                let tails = QUOTES.map(|quote| self.python_tail(quote));
                *self.common_rules.python_tails.insert(tails)
            }
        };
        let words: Vec<Literal> = excluded.iter().map(|name| name.as_bytes().into()).collect();
        Expr::alt(QUOTES.into_iter().zip(tails).map(|(quote, (tail, other))| {
            let (leave, close) = (python_plain(quote), [quote][..].into());
            let except = Except { words: words.clone(), leave, tail, other, close };
            Expr::seq([quote_expr(quote), Expr::Except(Box::new(except))])
        }))
    }

    /// The rule of the rest of an unconstrained Python string, quote included; and the rule of a
    /// character that is not plain ASCII (escaped only where required) and such a rest.
    fn python_tail(&mut self, quote: u8) -> (RuleId, RuleId) {
        let body = Expr::seq([Expr::star(python_char(quote)), quote_expr(quote)]);
        let tail = self.rule("string-tail".into(), body);
        let code = u32::from;
        let [low, high] = SCALARS;
        let special = [(0, 0x1F), (code(quote), code(quote)), (code(b'\\'), code(b'\\'))];
        let special = special.into_iter().chain([(0x7F, low.1), high]).collect::<Vec<_>>();
        let body = Expr::seq([python_spell(&special, quote), Expr::Ref(tail)]);
        (tail, self.rule("special-tail".into(), body))
    }

    /// The names of the automaton that may be written without quotes.
    pub(super) fn bare_names(&mut self, (dfa, lengths): &CountedNames) -> Expr {
        let limits = self.normalizer.reader.limits;
        let bare = dfa.combine(bare_name_dfa(), Combine::And, limits.automaton_states);
        let spelled = bare.and_then(|bare| self.spell_of_length(&bare, *lengths, &mut spell_utf8));
        spelled.unwrap_or_else(|error| self.too_large(&error))
    }

    /// The automaton of all texts except the given ones.
    pub(super) fn all_but(&mut self, excluded: &[&str]) -> Option<Dfa> {
        let limit = self.normalizer.reader.limits.automaton_states;
        match Dfa::texts(excluded).complement(&SCALARS, limit) {
            Ok(dfa) => Some(dfa),
            Err(error) => {
                self.too_large(&error);
                None
            }
        }
    }

    /// The texts that satisfy the facets and contain none of the forbidden texts, as UTF-8.
    pub(super) fn raw_text(&mut self, facets: &StringFacets<'a>, forbidden: &[&[u8]]) -> Expr {
        let parts = self.raw_text_parts(facets, forbidden);
        self.spell_parts(&parts, &mut spell_utf8)
    }

    /// The texts of automata, each with bounds on the length, as Python strings.
    fn python_text(&mut self, parts: &[CountedDfa]) -> Expr {
        Expr::alt(QUOTES.map(|quote| {
            let mut spell = |ranges: &[(u32, u32)]| python_spell(ranges, quote);
            let texts = self.spell_parts(parts, &mut spell);
            Expr::seq([quote_expr(quote), texts, quote_expr(quote)])
        }))
    }

    /// The texts of automata, each with bounds on the length; `spell` spells the ranges of an edge.
    fn spell_parts(
        &mut self,
        parts: &[CountedDfa],
        spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr,
    ) -> Expr {
        let mut spelled = |(dfa, lengths): &CountedDfa| {
            let texts = self.spell_of_length(dfa, *lengths, spell);
            texts.unwrap_or_else(|error| self.too_large(&error))
        };
        Expr::alt(parts.iter().map(&mut spelled).collect::<Vec<_>>())
    }

    /// The automata over code points of the texts that satisfy the facets and contain none of the
    /// forbidden texts, each with bounds on the length. None if a limit is reached (reported).
    pub(super) fn raw_text_parts(
        &mut self,
        facets: &StringFacets<'a>,
        forbidden: &[&[u8]],
    ) -> Vec<CountedDfa> {
        let limit = self.normalizer.reader.limits.automaton_states;
        let parts = self.normalizer.text_parts(facets).unwrap_or_default();
        let without = |(dfa, lengths): CountedDfa| {
            let without = without_texts(&dfa, forbidden, TextPosition::Anywhere, limit)?;
            Ok((without.map_or(dfa, Arc::new), lengths))
        };
        let parts: Result<Vec<CountedDfa>, TooLarge> = parts.into_iter().map(without).collect();
        parts.unwrap_or_else(|error| {
            self.too_large(&error);
            Vec::new()
        })
    }

    /// Reports that an automaton is too large.
    pub(super) fn too_large(&mut self, error: &TooLarge) -> Expr {
        let what = format!("text in another syntax than JSON, or constants: {error}");
        let keywords = ["pattern", "format", "enum", "const", "maxLength"];
        self.normalizer.reader.report_limit(self.location, &keywords, what);
        Expr::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_complement_is_the_bare_names_but_some() {
        let lists: [&[&str]; 4] =
            [&[], &["a"], &["ab", "a", "a-9", "b é", "é", "", "_", "a"], &["9", "-a", "$"]];
        for excluded in lists {
            let Expr::Automaton(dfa) = bare_complement(excluded.to_vec()) else {
                panic!("an automaton");
            };
            let mut texts = vec![String::new()];
            let mut accepted = 0;
            while let Some(text) = texts.pop() {
                if text.chars().count() < 4 {
                    let letters = ['a', 'b', 'Z', '_', '$', '9', '-', '.', 'é', ' '];
                    texts.extend(letters.iter().map(|letter| format!("{text}{letter}")));
                }
                let is_bare = bare_name_dfa().accepts_text(&text);
                let is_other = is_bare && !excluded.contains(&&*text);
                let accepts = dfa.accepts(text.bytes().map(u32::from));
                assert_eq!(accepts, is_other, "{text:?} beside {excluded:?}");
                accepted += usize::from(accepts);
            }
            assert!(accepted > 1_000, "{accepted} beside {excluded:?}");
        }
    }
}
