//! Where a text is likely to go: the places at which its tokens are likely to end, likeliest first.
//!
//! Nothing is known of the model but its vocabulary, and nothing of its texts but that they follow the grammar. What is taken for
//! likely is therefore rough: declared names, in the order of their declaration; what ends a text rather than more of it; white
//! space as JSON is mostly written; tokens as long as they can be.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{At, Symbol, cut};
use crate::compile::Likely;
use crate::fsm::ByteSet;
use crate::hash::HashMap;
use crate::ir::SpecialToken;
use crate::matcher::{ConfigId, DEAD, Parser, ParserLimit};
use crate::vocab::Trie;

/// So many bytes that lead to one place are text.
const TEXT: usize = 48;
/// So many bytes that lead to one place are not looked at one by one: a token may end behind any of them.
const MANY: usize = 8;
/// What is less likely, seen from where a token begins, is not followed.
const UNLIKELY: f64 = 1e-3;
/// What is less likely, seen from the beginning, is not looked at.
const LEAST: f64 = 1e-5;
/// For each so many places that may still be looked at, one more is kept: some turn out to be like others.
const KEPT: usize = 4;
/// How likely a token ends although a longer one would go on: where words end, and inside of them.
const SHORT: (f64, f64) = (0.02, 0.001);
/// How likely something is that begins as a special token in whose place it may stand does.
const SPELLED: f64 = 0.02;
/// How likely a word is not cut where tokenizers cut it.
const UNCUT: f64 = 0.02;
/// Nodes of the vocabulary's trie that are looked at from one place.
const NODES: usize = 512;
/// No group.
const NONE: u8 = u8::MAX;
/// So many items of configurations behind a place count as one more place: where a grammar is very ambiguous, steps are costly.
const ITEMS: usize = 8;
/// So many bytes of a parser that has grown, too.
const BYTES: usize = 4096;

/// A place, and how to get there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// As it is: counters of normal ones are right for one token only.
    pub(super) config: ConfigId,
    /// What it has in common with places that have the same mask.
    normal: ConfigId,
    /// The place before it in the constraint's own parser; none for the beginning.
    pub(super) from: Option<At>,
    /// From there to here.
    pub(super) path: Rc<[Symbol]>,
    likely: f64,
    /// The last byte read.
    last: Option<u8>,
}

/// The order of places: the likelier, then the earlier found.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rank {
    likely: f64,
    number: usize,
}

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.likely.total_cmp(&other.likely).then(other.number.cmp(&self.number))
    }
}

/// Bytes that lead to one place.
#[derive(Clone, Debug)]
struct Group {
    to: ConfigId,
    bytes: ByteSet,
    likely: f64,
    /// One more byte of a trigger.
    triggers: bool,
    /// The classes of its bytes, one bit each; see [`CLASSES`].
    classes: u16,
}

/// What a place has to do with text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    No,
    /// It is text, and more of it leads back here.
    Here,
    /// Most bytes lead to text.
    Near,
    /// It is text of a counted length.
    Counted,
}

/// What can follow a place.
#[derive(Debug)]
struct Outlook {
    groups: Vec<Group>,
    specials: Vec<(u32, ConfigId)>,
    /// Which of the groups most bytes are in, if that is text.
    text: Option<usize>,
    kind: Text,
    /// By byte, which of the groups it is in, or [`NONE`]; not where there is one group.
    by_byte: [u8; 256],
    /// Few bytes that stand in names lead somewhere: a name goes on.
    names: bool,
    /// Free text ends in the beginning of a trigger here, which can go on.
    begun: bool,
}

/// What can follow, and how likely it is.
struct Branch {
    symbol: Symbol,
    to: ConfigId,
    /// Where the byte leads in the vocabulary's trie.
    child: Option<u32>,
    likely: f64,
    many: bool,
}

/// Inside a token.
struct Inside {
    config: ConfigId,
    node: u32,
    likely: f64,
    path: Vec<Symbol>,
    /// How much of the path is the longest token so far, and where that leads.
    token: Option<(usize, ConfigId)>,
}

/// Tokens that may follow a place, by where they lead.
#[derive(Default)]
struct Found {
    list: Vec<Way>,
}

struct Way {
    to: ConfigId,
    likely: f64,
    most: f64,
    path: Vec<Symbol>,
}

impl Found {
    fn add(&mut self, to: ConfigId, likely: f64, path: &[Symbol]) {
        match self.list.iter_mut().find(|way| way.to == to) {
            Some(way) => {
                way.likely += likely;
                if likely > way.most {
                    (way.most, way.path) = (likely, path.to_vec());
                }
            }
            None => self.list.push(Way { to, likely, most: likely, path: path.to_vec() }),
        }
    }
}

/// Places that were found and not looked at, and what is known of those that were.
pub(super) struct Places {
    open: BTreeMap<Rank, Place>,
    /// By what places have in common: where it is in `open`, or none if one has been looked at.
    seen: HashMap<ConfigId, Option<Rank>>,
    known: HashMap<ConfigId, Rc<Outlook>>,
    /// Whether others are text.
    texts: HashMap<ConfigId, bool>,
    /// Lengths of the first tokens of words.
    cuts: HashMap<Vec<u8>, usize>,
    number: usize,
    /// Places where tokens end that may still be looked at.
    room: usize,
    /// Places inside of tokens that were looked at, and these.
    steps: usize,
    /// Most of those.
    most: usize,
}

impl Places {
    /// `room`: most places to look at where tokens end; `most`: those and all inside of tokens.
    pub(super) fn new(parser: &mut Parser, room: usize, most: usize) -> Places {
        let config = parser.start();
        let normal = parser.normal(config);
        let start =
            Place { config, normal, from: None, path: Rc::new([]), likely: 1.0, last: None };
        let rank = Rank { likely: 1.0, number: 0 };
        Places {
            open: BTreeMap::from([(rank, start)]),
            seen: HashMap::from_iter([(normal, Some(rank))]),
            known: HashMap::default(),
            texts: HashMap::default(),
            cuts: HashMap::default(),
            number: 0,
            room,
            steps: 0,
            most,
        }
    }

    /// The likeliest place that has not been looked at.
    pub(super) fn next(&mut self) -> Option<Place> {
        self.room = self.room.checked_sub(1)?;
        let (_, place) = self.open.pop_last()?;
        self.seen.insert(place.normal, None);
        Some(place)
    }

    /// Most places to keep.
    fn kept(&self) -> usize {
        self.room.saturating_add(self.room / KEPT)
    }

    /// What is not likelier will not be looked at.
    fn least(&self) -> f64 {
        match self.open.first_key_value() {
            Some((rank, _)) if self.open.len() >= self.kept() => rank.likely.max(LEAST),
            _ if self.room == 0 => f64::INFINITY,
            _ => LEAST,
        }
    }

    /// Adds a place, or another way to one. False where one like it has been looked at.
    fn add(&mut self, mut place: Place) -> bool {
        match self.seen.get(&place.normal) {
            Some(None) => return false,
            Some(Some(rank)) => {
                let rank = *rank;
                let Some(other) = self.open.remove(&rank) else { return true };
                let likely = other.likely + place.likely;
                if other.likely >= place.likely {
                    place = other;
                }
                place.likely = likely;
            }
            None if place.likely <= self.least() => return true,
            None => {}
        }
        self.number += 1;
        let rank = Rank { likely: place.likely, number: self.number };
        self.seen.insert(place.normal, Some(rank));
        self.open.insert(rank, place);
        while self.open.len() > self.kept()
            && let Some((_, last)) = self.open.pop_first()
        {
            self.seen.remove(&last.normal);
        }
        true
    }

    /// Counts what a parser has grown by as places inside of tokens: where a grammar is very ambiguous, that is what masks cost.
    pub(super) fn count(&mut self, bytes: usize) {
        self.steps = self.steps.saturating_add(bytes / BYTES);
    }

    /// Whether as many places have been looked at as may be.
    pub(super) fn is_spent(&self) -> bool {
        self.steps >= self.most
    }

    /// Whether more text leads a place that was left back to itself.
    pub(super) fn is_text(&self, config: ConfigId) -> bool {
        self.known.get(&config).is_some_and(|outlook| outlook.kind == Text::Here)
    }

    /// Adds the places where the next token may end; `at` is where the place is in the constraint's own parser. Returns the ways to
    /// places like others that were looked at.
    pub(super) fn leave(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        place: &Place,
        at: At,
    ) -> Result<Vec<Rc<[Symbol]>>, ParserLimit> {
        let mut found = Found::default();
        self.tokens(parser, trie, place, &mut found)?;
        self.cut(parser, trie, place, &mut found)?;
        let mut known = Vec::new();
        for Way { to, likely, path, .. } in found.list {
            if to == DEAD {
                continue;
            }
            let last = match path.last() {
                Some(Symbol::Byte(byte)) => Some(*byte),
                _ => None,
            };
            let (likely, path): (f64, Rc<[Symbol]>) = (place.likely * likely, path.into());
            let normal = parser.normal(to);
            if !self.add(Place {
                config: to,
                normal,
                from: Some(at),
                path: path.clone(),
                likely,
                last,
            }) {
                known.push(path);
            }
        }
        Ok(known)
    }

    /// Follows the grammar and the vocabulary at once. A token ends where no longer one could be meant, and perhaps earlier.
    fn tokens(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        place: &Place,
        found: &mut Found,
    ) -> Result<(), ParserLimit> {
        let begin =
            Inside { config: place.config, node: 0, likely: 1.0, path: Vec::new(), token: None };
        let unlikely = UNLIKELY.max(self.least() / place.likely);
        let mut open = vec![begin];
        let mut nodes = 0;
        while let Some(Inside { config, node, likely, path, token }) = open.pop() {
            nodes += 1;
            if nodes > NODES || self.is_spent() {
                break;
            }
            let last = match path.last() {
                Some(Symbol::Byte(byte)) => Some(*byte),
                Some(Symbol::Special(_)) => None,
                None => place.last,
            };
            let ends_here = token.filter(|token| token.0 == path.len());
            let branches =
                self.branches(parser, trie, (config, node), (last, unlikely / likely))?;
            if let (true, Some((len, to))) = (branches.is_empty(), token) {
                found.add(to, likely, &path[..len]);
            }
            for branch in branches {
                let likely = likely * branch.likely;
                if let (Some((_, to)), Symbol::Byte(byte), Some(_)) =
                    (ends_here, branch.symbol, branch.child)
                {
                    let word_ends = last.is_some_and(|last| kind(last) != kind(byte));
                    found.add(to, likely * if word_ends { SHORT.0 } else { SHORT.1 }, &path);
                }
                if likely < unlikely {
                    continue;
                }
                let child = match (branch.symbol, branch.child) {
                    (Symbol::Special(_), _) if path.is_empty() => {
                        found.add(branch.to, likely, &[branch.symbol]);
                        continue;
                    }
                    (Symbol::Byte(_), Some(child)) => Some(child),
                    _ => None,
                };
                let Some(child) = child else {
                    if let Some((len, to)) = token {
                        found.add(to, likely, &path[..len]);
                    }
                    continue;
                };
                let mut path = path.clone();
                path.push(branch.symbol);
                let is_token = !trie.words_at(child).is_empty();
                if is_token && (branch.many || trie.node(child).end == child + 1) {
                    found.add(branch.to, likely, &path);
                    continue;
                }
                let token = if is_token { Some((path.len(), branch.to)) } else { token };
                open.push(Inside { config: branch.to, node: child, likely, path, token });
            }
        }
        Ok(())
    }

    /// Moves the ends of tokens to where tokenizers cut the words that they begin, as far as the grammar says what words those are.
    fn cut(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        place: &Place,
        found: &mut Found,
    ) -> Result<(), ParserLimit> {
        let least = self.least() / place.likely;
        let mut others: Vec<(ConfigId, f64, Vec<Symbol>)> = Vec::new();
        for way in found.list.iter_mut().filter(|way| way.likely >= least) {
            let bytes = way.path.iter().map_while(|symbol| match symbol {
                Symbol::Byte(byte) => Some(*byte),
                Symbol::Special(_) => None,
            });
            let mut word: Vec<u8> = bytes.collect();
            // Letters behind at most one other byte, or signs behind at most a space.
            let Some(&head) = word.first().filter(|_| word.len() == way.path.len()) else {
                continue;
            };
            let is_of: fn(&u8) -> bool = match word.last() {
                Some(last) if is_sign(last) => is_sign,
                _ => u8::is_ascii_alphabetic,
            };
            let own = match head {
                _ if is_of(&head) => 0,
                b'0'..=b'9' => continue,
                _ if head == b' ' || is_of(&b'a') => 1,
                _ => continue,
            };
            if own == 0 && place.last.is_some_and(|last| is_of(&last))
                || word.len() == own
                || !word[own..].iter().all(is_of)
            {
                continue;
            }
            let mut at = way.to;
            let is_whole = loop {
                match self.goes_on(parser, at, is_of)? {
                    Some(Some((byte, to))) if word.len() < cut::LONGEST => {
                        word.push(byte);
                        at = to;
                    }
                    on => break on == Some(None),
                }
            };
            if !is_whole {
                continue;
            }
            let cut = *self.cuts.entry(word).or_insert_with_key(|word| cut::first(trie, word));
            if cut < way.path.len() {
                let mut to = place.config;
                for symbol in &way.path[..cut] {
                    to = symbol.step(parser, to)?;
                }
                others.push((to, way.likely * (1.0 - UNCUT), way.path[..cut].to_vec()));
                way.likely *= UNCUT;
            }
        }
        others.into_iter().for_each(|(to, likely, path)| found.add(to, likely, &path));
        Ok(())
    }

    /// The one byte with which a word goes on, or that it is over; none where it may be either, or be anything. `is_of`: what words are made of.
    fn goes_on(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
        is_of: fn(&u8) -> bool,
    ) -> Result<Option<Option<(u8, ConfigId)>>, ParserLimit> {
        let outlook = self.outlook(parser, config)?;
        if outlook.kind == Text::Here || self.is_spent() {
            return Ok(None);
        }
        let (mut next, mut is_over) = (None, false);
        for (_, group) in
            (0..).zip(&outlook.groups).filter(|(number, _)| outlook.text != Some(*number))
        {
            match group.bytes.iter().next().filter(is_of) {
                // Only another name than the one that goes on ends here.
                _ if outlook.names && group.classes & NAMES == 0 => {}
                None if !group.bytes.iter().any(|byte| is_of(&byte)) => is_over = true,
                Some(byte) if group.bytes.len() == 1 && next.is_none() => {
                    next = Some((byte, group.to))
                }
                _ => return Ok(None),
            }
        }
        Ok((next.is_none() || !is_over).then_some(next))
    }

    /// What can follow a place. Remembered.
    fn outlook(
        &mut self,
        parser: &mut Parser,
        config: ConfigId,
    ) -> Result<Rc<Outlook>, ParserLimit> {
        if let Some(known) = self.known.get(&config) {
            return Ok(known.clone());
        }
        self.steps += 1;
        let pending = parser.pending(config);
        let (mut groups, mut items): (Vec<Group>, usize) = (Vec::new(), 0);
        let reads = parser.allowed(config);
        let sets = if reads.len() == 1 { vec![reads] } else { parser.alike(config) };
        // What cannot be likely is not followed, unless nothing else is there, or it may be a trigger.
        let likely = ByteSet::range(b' ', b'~')
            .intersect(&ByteSet::of(b"\\").complement())
            .union(&ByteSet::of(b"\n"));
        let is_likely = |bytes: &ByteSet| bytes.meets(&likely);
        let is_dispatch = parser
            .store()
            .items(config)
            .iter()
            .any(|item| parser.program().is_dispatch(item.state));
        let all = is_dispatch || !sets.iter().any(is_likely);
        for bytes in sets.iter().filter(|bytes| all || is_likely(bytes)) {
            let Some(byte) = bytes.iter().next() else { continue };
            let to = parser.step(config, byte)?;
            items += parser.store().items(to).len();
            match groups.iter_mut().find(|group| group.to == to) {
                _ if to == DEAD => {}
                Some(group) => group.bytes = group.bytes.union(bytes),
                None => {
                    let triggers = parser.pending(to) > pending;
                    groups.push(Group { to, bytes: *bytes, likely: 1.0, triggers, classes: 0 });
                }
            }
        }
        let mut by_byte = [NONE; 256];
        for (number, group) in groups.iter_mut().enumerate() {
            let number = u8::try_from(number).unwrap_or(NONE);
            for byte in group.bytes.iter() {
                by_byte[usize::from(byte)] = number;
                group.classes |= 1 << CLASS_OF[usize::from(byte)];
            }
        }
        let names =
            groups.iter().any(|group| group.bytes.len() < MANY && group.classes & !NAMES == 0);
        self.steps += items / ITEMS;
        let begun = pending > 0 && groups.iter().any(|group| group.triggers);
        let text = groups
            .iter()
            .position(|group| group.bytes.len() >= TEXT && group.classes & LETTERS != 0);
        let kind = match text.map(|text| groups[text].to) {
            None => Text::No,
            Some(to) if parser.normal(to) == parser.normal(config) => Text::Here,
            Some(to) => match self.reads_text(parser, to)? {
                true => Text::Near,
                false => Text::Counted,
            },
        };
        let likely: Vec<Option<Likely>> =
            groups.iter().map(|group| parser.likely(group.to)).collect();
        let declared =
            likely.iter().filter(|likely| likely.is_none_or(|likely| !likely.is_undeclared()));
        let behind = |likely: &Option<Likely>| match likely {
            Some(Likely::Behind(likely)) => Some(*likely),
            _ => None,
        };
        let all: Option<Vec<f64>> = declared.map(behind).collect();
        let most = all.map(|all| all.into_iter().fold(f64::MIN_POSITIVE, f64::max));
        for (group, likely) in groups.iter_mut().zip(likely) {
            group.likely = match (likely, most) {
                (Some(Likely::Among(likely)), _) => likely,
                (Some(Likely::Behind(likely)), Some(most)) => likely / most,
                _ => 1.0,
            };
        }
        let mut specials: Vec<u32> = parser.specials(config).collect();
        specials.sort_unstable();
        specials.dedup();
        let specials = specials
            .into_iter()
            .map(|special| Ok((special, parser.step_special(config, special)?)));
        let specials: Vec<(u32, ConfigId)> = specials.collect::<Result<_, ParserLimit>>()?;
        // Whoever has a special token does not spell it.
        let texts = specials.iter().filter_map(|&(special, _)| {
            match &parser.compiled().specials()[special as usize] {
                SpecialToken::Name(name) => name.bytes().next(),
                _ => None,
            }
        });
        let spelled = ByteSet::of(&texts.collect::<Vec<u8>>());
        for group in
            groups.iter_mut().filter(|group| group.bytes.len() == 1 && group.bytes.meets(&spelled))
        {
            group.likely *= SPELLED;
        }
        let outlook = Rc::new(Outlook { groups, specials, text, kind, by_byte, names, begun });
        self.known.insert(config, outlook.clone());
        Ok(outlook)
    }

    /// Whether most bytes lead a place back to itself.
    fn reads_text(&mut self, parser: &mut Parser, config: ConfigId) -> Result<bool, ParserLimit> {
        if let Some(known) = self.known.get(&config) {
            return Ok(known.kind == Text::Here);
        }
        if let Some(&known) = self.texts.get(&config) {
            return Ok(known);
        }
        let letters = ByteSet::range(b'a', b'z');
        let text = parser
            .alike(config)
            .into_iter()
            .find(|bytes| bytes.len() >= TEXT && bytes.meets(&letters));
        let mut is_text = false;
        if let Some(byte) = text.and_then(|text| text.iter().next()) {
            let to = parser.step(config, byte)?;
            is_text = parser.normal(to) == parser.normal(config);
        }
        self.texts.insert(config, is_text);
        Ok(is_text)
    }

    /// The ways on from inside of a token. What is less likely than `unlikely` is not looked for in the vocabulary.
    fn branches(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (config, node): (ConfigId, u32),
        (last, unlikely): (Option<u8>, f64),
    ) -> Result<Vec<Branch>, ParserLimit> {
        let outlook = self.outlook(parser, config)?;
        let Outlook { groups, specials, text, kind, by_byte, begun, .. } = &*outlook;
        let names = outlook.names;
        // In the middle of a name, or of a trigger, text is what it would be if it turned out to be another one.
        let quoted = matches!(last, None | Some(b'"' | b'\'' | b'>' | b'`'));
        let mut out: Vec<Branch> = Vec::with_capacity(groups.len() + specials.len());
        // Of each group, the byte with which most tokens go on.
        let mut most: Vec<(f64, u32)> = Vec::with_capacity(groups.len());
        for (number, group) in groups.iter().enumerate() {
            let classes =
                CLASSES.iter().enumerate().filter(|(class, _)| group.classes >> class & 1 == 1);
            let likeliest = classes.map(|(_, &byte)| weight(byte, last)).fold(0.0, f64::max);
            most.push((likeliest, 0));
            let likely = match (*text == Some(number), kind) {
                _ if group.triggers => 1.0,
                // A trigger that has begun is meant.
                _ if *begun => 0.001,
                (true, Text::Here) if node == 0 => 0.0,
                (true, Text::Here) => 30.0,
                (true, Text::Near) if quoted && !names => 30.0,
                (true, Text::Near) => 0.0005,
                (true, Text::Counted | Text::No) => 1.0,
                (false, Text::Near) if names && group.classes & NAMES == 0 => 0.001,
                (false, _) => likeliest,
            };
            let first = group.bytes.iter().next().unwrap_or_default();
            out.push(Branch {
                symbol: Symbol::Byte(first),
                to: group.to,
                child: None,
                likely: likely * group.likely,
                many: group.bytes.len() >= MANY,
            });
        }
        for &(special, to) in specials {
            out.push(Branch {
                symbol: Symbol::Special(special),
                to,
                child: None,
                likely: 1.0,
                many: false,
            });
        }
        let sum: f64 = out.iter().map(|branch| branch.likely).sum();
        out.iter_mut().for_each(|branch| branch.likely /= sum.max(f64::MIN_POSITIVE));
        // Where what is likely goes on in the vocabulary.
        let likely = groups.iter().zip(&out).filter(|(_, branch)| branch.likely >= unlikely);
        let bytes = likely.fold(ByteSet::EMPTY, |bytes, (group, _)| bytes.union(&group.bytes));
        let mut fit = |child: u32, byte: u8| {
            let number = usize::from(by_byte[usize::from(byte)]);
            if number < groups.len()
                && let weight = weight(byte, last)
                && weight >= most[number].0
                && let nodes = trie.node(child).end - child
                && (weight, nodes) > most[number]
            {
                most[number] = (weight, nodes);
                (out[number].symbol, out[number].child) = (Symbol::Byte(byte), Some(child));
            }
        };
        if node == 0 {
            bytes
                .iter()
                .filter_map(|byte| Some((trie.root_child(byte)?, byte)))
                .for_each(|(child, byte)| fit(child, byte));
            return Ok(out);
        }
        let last = bytes.ranges().last().map_or(0, |(_, last)| last);
        let (mut child, end) = (node + 1, trie.node(node).end);
        while child < end && !bytes.is_empty() {
            let next = trie.node(child);
            if bytes.contains(next.byte) {
                fit(child, next.byte);
            }
            if next.byte >= last {
                break;
            }
            child = next.end;
        }
        Ok(out)
    }
}

/// What words are made of, and what is between them.
fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => 2,
        b'_' => 3,
        b' ' | b'\t' | b'\r' | b'\n' => 4,
        _ => 5,
    }
}

/// What [`weight`] and [`is_name`] tell apart: a byte of each class.
const CLASSES: [u8; 11] = [b' ', b'\n', b'\t', b'\\', 0, b'}', b']', b'-', b'0', b'a', b'"'];
/// Those that names are made of.
const NAMES: u16 = 1 << 8 | LETTERS;
const LETTERS: u16 = 1 << 9;

/// By byte, its class.
static CLASS_OF: [u8; 256] = {
    let (mut out, mut byte) = ([0; 256], 0usize);
    while byte < 256 {
        out[byte] = match byte as u8 {
            b' ' => 0,
            b'\n' => 1,
            b'\t' | b'\r' => 2,
            b'\\' => 3,
            0..0x20 | 0x7F.. => 4,
            b'}' => 5,
            b']' => 6,
            b'-' | b'.' => 7,
            b'0'..=b'9' | b'_' => 8,
            b'a'..=b'z' | b'A'..=b'Z' => 9,
            _ => 10,
        };
        byte += 1;
    }
    out
};

/// What tokenizers take for words of signs.
fn is_sign(byte: &u8) -> bool {
    byte.is_ascii_punctuation()
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How likely a byte is, other things being equal.
fn weight(byte: u8, last: Option<u8>) -> f64 {
    let last = last.unwrap_or(b'\n');
    match byte {
        b' ' | b'\n' | b'\t' | b'\r' => {
            let kind = match byte {
                b' ' => 1.0,
                b'\n' => 0.02,
                _ => 0.001,
            };
            let place = match last {
                b',' | b':' => 4.0,
                b' ' | b'\n' | b'\t' | b'\r' => 0.01,
                _ if is_name(last) => 0.1,
                _ => 0.02,
            };
            kind * place
        }
        b'\\' => 1e-4,
        0..0x20 | 0x7F.. => 1e-5,
        b'}' if last == b'{' => 0.1,
        b']' if last == b'[' => 0.1,
        b'-' | b'.' => 0.1,
        _ if byte.is_ascii_alphabetic() && last.is_ascii_digit() => 0.02,
        _ => 1.0,
    }
}
