//! Where any text goes on, wherever it leads: a pattern that is looked for keeps an eye on every letter, and reads them all; one with a bound on its
//! length counts characters, and reads them all until it gets there. Masks need not know where words end up, only that they can be read.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigId, DEAD};
use crate::fsm::{ASCII_LETTERS, BLACK_CODE_POINTS, ByteSet, CODE_POINTS, NOT_ASCII, kind, utf8};
use crate::hash::HashSet;

/// A walk that has looked at this part of the vocabulary's nodes finds out what is not known; and then once more behind so many nodes for each configuration
/// that has taken.
const LONG_WALK: usize = 128;
const LONGER: usize = 64;
/// So many items, of configurations and of frames, take as long as a configuration.
const ITEMS: usize = 4;

/// Most configurations between code points that such texts are followed to, and most inside of code points.
const MEMBERS: usize = 96;
const INSIDE: usize = 512;
/// Most of them behind which code points that are not ASCII are followed.
const SPELLING: usize = 12;
/// Most configurations that are made for that.
const NEW: usize = 160;
/// How often bytes that lead elsewhere are left out.
const TRIES: usize = 6;
/// Texts of so many characters are worth being known, and of so many are long enough.
const SHORT: u16 = 4;
const LONG: u16 = 16;
/// Texts of any length.
const ENDLESS: u16 = u16::MAX;

/// Which texts can be read from a configuration on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Any {
    /// The kinds of their bytes.
    kinds: u64,
    /// So many characters at most.
    length: u16,
    /// The same for those with code points that are not ASCII.
    spelt: u16,
    /// Whether that has been found out.
    known: bool,
}

/// When a walk asks which texts can be read: answers take no longer than the walk itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asking {
    /// Nodes it had looked at when it began, and configurations that answers had taken.
    looked: usize,
    made: usize,
}

impl Asking {
    /// A walk that begins, behind so many nodes.
    pub(crate) fn new(parser: &Parser, looked: usize) -> Asking {
        Asking { looked, made: parser.any_made }
    }

    /// Whether what is not known is worth finding out, behind so many nodes.
    #[inline]
    fn is_worth(&self, parser: &Parser, looked: usize) -> bool {
        looked
            >= self.looked
                + parser.vocab_nodes() / LONG_WALK
                + LONGER * (parser.any_made - self.made)
    }
}

/// Texts that are followed from a configuration.
#[derive(Default)]
struct Texts {
    /// Where they lead, between code points, and behind how many at least. In ascending order of that.
    members: Vec<(ConfigId, u16)>,
    /// The same ones.
    reached: HashSet<ConfigId>,
    /// Where they lead inside of code points.
    inside: HashSet<(u8, ConfigId)>,
}

/// How following texts has ended.
enum Ended {
    /// All texts of at most so many characters can be read, and of so many with code points that are not ASCII.
    Read(u16, u16),
    /// Without these kinds, longer ones can be.
    Without(u64),
}

impl Parser {
    /// Whether any text of so many characters at most, all of these kinds (see [`kind`] and [`CODE_POINTS`]), can be read from a configuration on. Found for all
    /// configurations that such texts lead to at once; where these are many, for shorter texts. No where a walk has not looked at enough nodes yet to
    /// find out. Cost: a look-up, or some transitions for each of them.
    pub(crate) fn reads_any(
        &mut self,
        config: ConfigId,
        (kinds, length): (u64, u16),
        (asking, looked): (&Asking, usize),
    ) -> Result<bool, ParserLimit> {
        let any = match self.known_any(config) {
            Some(any) => any,
            None if asking.is_worth(self, looked) => self.find_any(config)?,
            None => return Ok(false),
        };
        let most =
            if kinds & (CODE_POINTS | BLACK_CODE_POINTS) == 0 { any.length } else { any.spelt };
        Ok(kinds & !any.kinds == 0 && length <= most)
    }

    /// Whether text of letters and other characters, of any length, can be read from a configuration on.
    pub(crate) fn reads_any_text(&mut self, config: ConfigId) -> Result<bool, ParserLimit> {
        let any = match self.known_any(config) {
            Some(any) => any,
            None => self.find_any(config)?,
        };
        Ok(ASCII_LETTERS & !any.kinds == 0 && any.length == ENDLESS)
    }

    #[inline]
    fn known_any(&self, config: ConfigId) -> Option<Any> {
        self.any.get(config as usize).copied().filter(|any| any.known)
    }

    fn find_any(&mut self, config: ConfigId) -> Result<Any, ParserLimit> {
        let before = self.made();
        let mut found = Any { known: true, ..Any::default() };
        let mut texts = Texts::default();
        let mut kinds = self.readable(config);
        for _ in 0..TRIES {
            if kinds & ASCII_LETTERS == 0 {
                break;
            }
            texts.members.clear();
            texts.reached.clear();
            texts.inside.clear();
            match self.follow_texts(config, kinds, &mut texts)? {
                Ended::Without(less) => kinds &= !less,
                Ended::Read(length, _) if length < SHORT => break,
                Ended::Read(length, spelt) => {
                    found = Any { kinds, length, spelt, known: true };
                    break;
                }
            }
        }
        self.any_made += self.made() - before;
        if self.any.len() < self.store().configs() {
            self.any.resize(self.store().configs(), Any::default());
        }
        if found.length >= SHORT {
            for &(member, level) in &texts.members {
                let left = |length: u16| {
                    if length == ENDLESS { ENDLESS } else { length.saturating_sub(level) }
                };
                let (length, spelt) = (left(found.length), left(found.spelt));
                // Others may say more of those that are near the end.
                if !self.any[member as usize].known
                    && length >= LONG.min(found.length / 2)
                    && spelt >= found.spelt / 2
                {
                    self.any[member as usize] = Any { length, spelt, ..found };
                }
            }
        }
        self.any[config as usize] = found;
        Ok(found)
    }

    /// What has been made, in configurations: those of many items take longer.
    fn made(&self) -> usize {
        self.store().configs() + self.store().all_items() / ITEMS
    }

    /// Follows all texts of these kinds, shortest first, for as long as all can be read.
    fn follow_texts(
        &mut self,
        config: ConfigId,
        kinds: u64,
        texts: &mut Texts,
    ) -> Result<Ended, ParserLimit> {
        let ascii = ByteSet::range(0, 0x7F);
        texts.members.push((config, 0));
        texts.reached.insert(config);
        // Texts of so many characters can be read, if there is nothing else behind what has been reached.
        let (mut length, mut spelt) = (ENDLESS, ENDLESS);
        let most = self.store().configs() + NEW;
        // Those without white space are some of all.
        let code_points = [(CODE_POINTS, &utf8::ANY), (BLACK_CODE_POINTS, &utf8::BLACK)];
        let code_points = code_points.into_iter().find(|(one, _)| kinds & one != 0);
        let mut at = 0;
        while let Some(&(from, level)) = texts.members.get(at).filter(|&&(_, level)| level < length)
        {
            at += 1;
            for bytes in self.alike(from) {
                let mut here =
                    bytes.intersect(&ascii).iter().filter(|&byte| kind(byte) & kinds != 0);
                let Some(byte) = here.next() else { continue };
                let next = self.step(from, byte)?;
                if texts.reached.contains(&next) {
                    continue;
                }
                let readable = self.readable(next);
                if kinds & !readable == 0 {
                    texts.reached.insert(next);
                    texts.members.push((next, level + 1));
                    continue;
                }
                let here = here.fold(kind(byte), |all, byte| all | kind(byte));
                if level + 1 < LONG && kinds & ASCII_LETTERS & !readable == 0 {
                    return Ok(Ended::Without(kinds & !readable));
                }
                if level + 1 < LONG && here & ASCII_LETTERS == 0 {
                    // What leads there is left out, such as the character with which an escape begins.
                    return Ok(Ended::Without(here));
                }
                length = level + 1;
            }
            if level < spelt
                && let Some((one, steps)) = code_points
            {
                if at > SPELLING {
                    spelt = level;
                } else if !self.follow_code_points((from, level), (kinds, steps), texts)? {
                    if level < SHORT {
                        return Ok(Ended::Without(one));
                    }
                    spelt = level;
                }
            }
            if texts.members.len() > MEMBERS
                || texts.inside.len() > INSIDE
                || self.store().configs() > most
            {
                length = length.min(level);
            }
        }
        Ok(Ended::Read(length, spelt.min(length)))
    }

    /// Follows code points that are not ASCII; false if some cannot be read, or text of these kinds cannot be behind one.
    fn follow_code_points(
        &mut self,
        (from, level): (ConfigId, u16),
        (kinds, steps): (u64, &utf8::Steps),
        texts: &mut Texts,
    ) -> Result<bool, ParserLimit> {
        let mut open = vec![(utf8::WHOLE, from)];
        while let Some((state, begun)) = open.pop() {
            let mut last = None;
            for byte in 0x80..=0xFFu8 {
                let Some(state) = steps.next(state, byte) else { continue };
                if last.replace((self.class(byte), state)) == Some((self.class(byte), state)) {
                    continue;
                }
                let next = self.step(begun, byte)?;
                if next == DEAD {
                    return Ok(false);
                }
                if state != utf8::WHOLE {
                    if texts.inside.insert((state, next)) {
                        open.push((state, next));
                    }
                } else if !texts.reached.contains(&next) {
                    if kinds & !self.readable(next) != 0 {
                        return Ok(false);
                    }
                    texts.reached.insert(next);
                    texts.members.push((next, level + 1));
                }
            }
            if texts.inside.len() > INSIDE {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// The kinds of which a configuration reads all bytes; that code points can be read is assumed. None where values are compared or budgets
    /// counted.
    fn readable(&mut self, config: ConfigId) -> u64 {
        if !self.compiled().meters.is_empty() || self.compares(config) || self.is_scoped(config) {
            return 0;
        }
        let refused =
            self.allowed(config).complement().iter().fold(0, |all, byte| all | kind(byte));
        !refused & !NOT_ASCII
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::compile::Compiled;
    use crate::limits::Limits;

    /// Grammars, and whether it is found that letters of any length can be read behind a quote.
    const GRAMMARS: &[(&str, bool)] = &[
        (r#"root ::= "\"" [^"\\]* "\"""#, true),
        (r#"root ::= "\"" ([^"\\] | "\\" ["\\n])* "\"""#, true),
        (r#"root ::= "\"" [^"]* "ab" [^"]* "\"" [0-9]"#, true),
        (r#"root ::= "\"" [^"]* "ab" [^"]{0,6} "\"""#, false),
        (r#"root ::= "\"" [^"]{3,9} "\"""#, false),
        (r#"root ::= "\"" ([a-zA-Z]+ " ")* "\"""#, true),
        (r#"root ::= "\"" ([a-zA-Z0-9] | "é" | "語")* "\"""#, true),
        (r#"root ::= "\"" ([^" é] [^"])* "\"""#, true),
        (r#"root ::= ("\"" [^"]* "\"" | "\"" [^"x]* "x\"")+"#, true),
    ];

    fn parser(text: &str) -> Parser {
        let grammar = crate::front::ebnf::lower(text, &Default::default(), &Limits::default())
            .expect("a grammar")
            .grammar;
        let compiled = Arc::new(Compiled::new(grammar, &Limits::default()).expect("compiles"));
        Parser::new(compiled, None, &Limits::default())
    }

    fn step(parser: &mut Parser, at: ConfigId, byte: u8) -> ConfigId {
        parser.step(at, byte).expect("within limits")
    }

    /// The kinds of a text, with code points in place of bytes that are not ASCII.
    fn kinds(text: &str) -> u64 {
        text.chars().fold(0, |all, c| {
            all | u8::try_from(c).ok().filter(u8::is_ascii).map_or(CODE_POINTS, kind)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        /// What is said of a configuration holds for texts, whichever was asked about first.
        #[test]
        fn any_text_that_is_said_to_be_read_is(
            (grammar, _) in select(GRAMMARS),
            before in prop::collection::vec(select(vec!["a", "b", "x", "Z", " ", "7", "é", "語"]), 0..7),
            texts in prop::collection::vec(prop::collection::vec(select(vec!["a", "b", "x", "Q", " ", "7", "-", "\\", "\n", "é", "ß", "語", "🙂"]), 1..30), 12),
        ) {
            let mut parser = parser(grammar);
            let asking = Asking::new(&parser, 0);
            let start = parser.start();
            let mut at = step(&mut parser, start, b'"');
            for part in std::iter::once("").chain(before) {
                for &byte in part.as_bytes() {
                    at = step(&mut parser, at, byte);
                }
                if at == DEAD {
                    break;
                }
                for text in &texts {
                    let text = text.concat();
                    let length = text.chars().count() as u16;
                    let said = parser.reads_any(at, (kinds(&text), length), (&asking, usize::MAX)).expect("within limits");
                    let read = text.bytes().try_fold(at, |at, byte| Some(step(&mut parser, at, byte)).filter(|&next| next != DEAD));
                    prop_assert!(!said || read.is_some(), "{text:?} in {grammar}");
                }
            }
        }
    }

    #[test]
    fn text_of_any_length_is_found() {
        for &(grammar, endless) in GRAMMARS {
            let mut parser = parser(grammar);
            let start = parser.start();
            let at = parser.step(start, b'"').expect("within limits");
            let asking = Asking::new(&parser, 0);
            let letters = ByteSet::of(b"abxQ").iter().fold(0, |all, byte| all | kind(byte));
            let mut said = |length| {
                parser
                    .reads_any(at, (letters, length), (&asking, usize::MAX))
                    .expect("within limits")
            };
            assert_eq!((said(ENDLESS), said(4)), (endless, true), "{grammar}");
        }
    }
}
