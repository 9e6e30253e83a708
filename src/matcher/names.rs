//! Names that must differ, while parsing: those of an object's members.
//!
//! Nothing is said of names in frames. A configuration knows which there have been beside what it is otherwise: a *plain* configuration, which knows
//! of none, and the number of a list. The list has, for each occurrence of a rule that has called names, its frame and a register
//! (see [`super::registers`]) of these and of what has been read of the next. So what can be read is found once, whatever the names were;
//! where there have been none yet, or their objects have ended, configurations are plain, and cost nothing; and masks are those of plain ones without the
//! tokens that fail.
//!
//! A walk through a vocabulary begins no names ([`Parser::step`]); a text does ([`Parser::advance`]).

use smallvec::SmallVec;

use super::limit::ParserLimit;
use super::meter::Rewritten;
use super::parser::Parser;
use super::store::{ConfigId, DEAD, FrameId, Has, Item};
use crate::capacity::ReserveMore;
use crate::compile::{EMPTY, Program};
use crate::fsm::ByteSet;
use crate::hash::{HashMap, HashSet, Seeded};

const QUOTE: u8 = b'"';
/// So many frames are searched without a table.
const FEW_FRAMES: usize = 24;

/// Frames of the occurrences of rules that have called names, and registers of these.
type List = SmallVec<[(FrameId, u32); 4]>;
type Frames = SmallVec<[FrameId; 4]>;
/// The bytes of a token.
type Token = SmallVec<[u8; 16]>;

/// A configuration, taken apart.
struct Apart {
    plain: ConfigId,
    list: List,
}

/// The names of one parser.
#[derive(Debug)]
pub(super) struct Names {
    lists: Vec<List>,
    ids: HashMap<List, u32>,
    /// Where a text under way leads: it tells bytes apart that nothing else does.
    steps: HashMap<(ConfigId, u8), ConfigId>,
    specials: HashMap<(ConfigId, u32), ConfigId>,
    /// Where tokens lead that are likely to come; see [`Parser::remember`].
    tokens: hashbrown::HashMap<(ConfigId, Token), ConfigId, Seeded>,
    /// Frames that are looked after while they are rewritten: what each was, and is.
    carried: Vec<(FrameId, FrameId)>,
    /// Frames of names that are not to end.
    pub(super) refused: Vec<FrameId>,
}

/// A configuration and what is read there, to be looked up.
#[derive(Hash)]
struct Read<'b>(ConfigId, &'b [u8]);

impl hashbrown::Equivalent<(ConfigId, Token)> for Read<'_> {
    fn equivalent(&self, (config, bytes): &(ConfigId, Token)) -> bool {
        self.0 == *config && self.1 == &bytes[..]
    }
}

impl Names {
    pub(super) fn new() -> Names {
        Names {
            lists: vec![List::new()],
            ids: [(List::new(), 0)].into_iter().collect(),
            steps: HashMap::default(),
            specials: HashMap::default(),
            tokens: hashbrown::HashMap::default(),
            carried: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Makes room for more: see [`crate::capacity`].
    pub(super) fn reserve_more(&mut self) {
        self.lists.reserve_more();
        self.ids.reserve_more();
        self.steps.reserve_more();
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.lists.len() * 2 * (size_of::<List>() + 8)
            + (self.steps.len() + self.specials.len()) * 16
            + self.tokens.len() * size_of::<(ConfigId, Token, ConfigId)>()
    }

    fn list_of(&self, number: u32) -> List {
        self.lists[number as usize].clone()
    }

    fn number(&mut self, mut list: List) -> u32 {
        list.sort_unstable();
        if let Some(&known) = self.ids.get(&list) {
            return known;
        }
        let number = self.lists.len() as u32;
        self.lists.push(list.clone());
        self.ids.insert(list, number);
        number
    }

    /// Notes what has become of frames. Others may still be as they were.
    pub(super) fn carry(&mut self, rewritten: &Rewritten) {
        for i in 0..self.carried.len() {
            let (was, is) = self.carried[i];
            if let Some(&Some(new)) = rewritten.get(&is)
                && new != is
            {
                self.carried.push((was, new));
            }
        }
        let refused = self.refused.iter().filter_map(|frame| *rewritten.get(frame)?);
        let refused: Vec<FrameId> = refused.collect();
        self.refused.extend(refused);
    }
}

/// What may become of names where a token begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Naming {
    /// None is under way or may begin.
    Outside,
    /// One may begin, or, in a plain configuration, may be under way.
    Called,
    /// One is under way.
    Text,
}

impl Parser {
    /// Whether there have been names, or one is under way, that others have to differ from.
    #[inline]
    pub(crate) fn is_named(&self, config: ConfigId) -> bool {
        self.store().done(config).names != 0
    }

    /// Where a byte of a text leads: as [`Parser::step`], and from a name's beginning on it is known which there have been.
    #[inline]
    pub(crate) fn advance(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId, ParserLimit> {
        if byte == QUOTE && !self.is_named(config) && self.reads_names(config, byte) {
            return Ok(self.step_named(config, byte)?.0);
        }
        self.step(config, byte)
    }

    /// As [`Parser::advance_over`], and all transitions are known from then on.
    pub(crate) fn advance_by_byte(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<(ConfigId, usize), ParserLimit> {
        let mut at = config;
        for (good, &byte) in bytes.iter().enumerate() {
            at = self.advance(at, byte)?;
            if at == DEAD {
                return Ok((DEAD, good));
            }
        }
        Ok((at, bytes.len()))
    }

    /// Where the bytes of a token lead, and how many are fine: as [`Parser::advance`] byte by byte, but nothing is interned inside of names.
    pub(crate) fn advance_over(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<(ConfigId, usize), ParserLimit> {
        let (mut at, mut good) = (config, 0);
        while at != DEAD
            && let Some(&byte) = bytes.get(good)
        {
            // What is known is not of names, but that a quote may begin one.
            if byte != QUOTE
                && let Some(next) = self.known_step(at, byte)
            {
                at = next;
                good += usize::from(at != DEAD);
            } else if good == 0
                && let Some(next) = self.read_in_block(at, bytes)?
            {
                return Ok((next, bytes.len()));
            } else if let Some(&next) = self.known_begin(at, byte) {
                at = next;
                good += 1;
            } else if self.reads_names(at, byte) {
                if let Some(&next) = self.names.tokens.get(&Read(config, bytes)) {
                    return Ok((next, bytes.len()));
                }
                let mut apart = self.apart(at);
                while let Some(&byte) = bytes.get(good)
                    && apart.plain != DEAD
                    && (byte == QUOTE || self.is_reading(&apart.list))
                {
                    match self.read_first(&mut apart, &bytes[good..])? {
                        0 => {
                            self.read_apart(&mut apart, byte)?;
                            good += usize::from(apart.plain != DEAD);
                        }
                        read => good += read,
                    }
                }
                at = self.together(apart);
            } else {
                at = self.step(at, byte)?;
                good += usize::from(at != DEAD);
            }
        }
        Ok((at, good))
    }

    /// As [`Parser::advance_over`] and [`Parser::token_ended`], and where names are known behind the token, that is known from then on.
    pub(crate) fn remember(
        &mut self,
        config: ConfigId,
        bytes: &[u8],
    ) -> Result<ConfigId, ParserLimit> {
        let (next, _) = self.advance_over(config, bytes)?;
        if next != DEAD && self.is_named(next) {
            self.names.tokens.insert((config, bytes.into()), next);
        }
        self.token_ended(next)
    }

    /// Where the beginning of the first name leads, if that is known.
    #[inline]
    fn known_begin(&self, config: ConfigId, byte: u8) -> Option<&ConfigId> {
        if byte != QUOTE || !self.program().has_names() || self.is_named(config) {
            return None;
        }
        self.names.steps.get(&(config, byte)).filter(|&&next| next != DEAD)
    }

    /// Whether a byte is of a name, or begins one.
    fn reads_names(&self, config: ConfigId, byte: u8) -> bool {
        match self.store().done(config).names {
            0 => byte == QUOTE && self.program().has_names() && self.calls_names(config),
            names => byte == QUOTE || self.is_reading(&self.names.lists[names as usize]),
        }
    }

    /// Where a byte leads from a configuration that knows of names, or as if it did; and whether all bytes of its class lead there.
    pub(super) fn step_named(
        &mut self,
        config: ConfigId,
        byte: u8,
    ) -> Result<(ConfigId, bool), ParserLimit> {
        if let Some(&known) = self.names.steps.get(&(config, byte)) {
            return Ok((known, false));
        }
        let mut apart = self.apart(config);
        let is_text = self.read_apart(&mut apart, byte)?;
        let next = self.together(apart);
        if is_text {
            self.names.steps.insert((config, byte), next);
        }
        Ok((next, !is_text))
    }

    fn apart(&self, config: ConfigId) -> Apart {
        let store = self.store();
        Apart { plain: store.plain(config), list: self.names.list_of(store.done(config).names) }
    }

    fn together(&mut self, Apart { plain, list }: Apart) -> ConfigId {
        if plain == DEAD {
            return DEAD;
        }
        let names = self.names.number(list);
        self.parts().0.named(plain, names)
    }

    /// Reads as many bytes of the first name of a rule as only add to it; how many.
    fn read_first(&mut self, apart: &mut Apart, bytes: &[u8]) -> Result<usize, ParserLimit> {
        let [(frame, register)] = apart.list[..] else { return Ok(0) };
        let rewritten = Has::METER.or(Has::SCOPE);
        let store = self.store();
        if !store.registers.reads_first(register)
            || store.has(frame).any(rewritten)
            || self.compares(apart.plain)
        {
            return Ok(0);
        }
        let mut read = 0;
        for &byte in bytes.iter().take_while(|&&byte| byte != QUOTE) {
            let next = self.step(apart.plain, byte)?;
            if next == DEAD
                || !self.has_same_frames(apart.plain, next)
                || self.may_end(apart.plain, frame, byte)
            {
                break;
            }
            apart.plain = next;
            read += 1;
        }
        if read > 0 {
            apart.list[0].1 = self.parts().0.registers.read_all(register, &bytes[..read]);
        }
        Ok(read)
    }

    /// Whether a byte leads to where a rule with this frame has no more names.
    fn may_end(&self, plain: ConfigId, frame: FrameId, byte: u8) -> bool {
        let program = self.program();
        self.store().items(plain).iter().filter(|item| item.frame == frame).any(|item| {
            let mut edges =
                program.byte_edges(item.state).iter().filter(|e| e.lo <= byte && byte <= e.hi);
            edges.any(|e| program.ends_names(item.state, e.to))
        })
    }

    /// Reads a byte. False if all bytes of its class lead there.
    fn read_apart(&mut self, apart: &mut Apart, byte: u8) -> Result<bool, ParserLimit> {
        let Apart { plain, ref mut list } = *apart;
        let refused = self.read_names(list, plain, byte)?;
        let is_text = byte == QUOTE || self.is_reading(list) || self.compares(plain);
        self.forget_ended(list, plain, |program, state| {
            program.expand(state);
            let mut edges =
                program.byte_edges(state).iter().filter(|e| e.lo <= byte && byte <= e.hi);
            edges.any(|e| program.ends_names(state, e.to))
        });
        let rewrites = !refused.is_empty();
        self.names.refused = refused;
        let moved = self.moved(list, rewrites, |parser, anew| match anew {
            true => {
                let next = parser.read_byte(plain, byte)?;
                Ok(if parser.compares(plain) && !parser.is_live(next)? { DEAD } else { next })
            }
            false => parser.step(plain, byte),
        });
        self.names.refused.clear();
        apart.plain = moved?;
        self.keep_open(&mut apart.list, (plain, apart.plain));
        Ok(is_text)
    }

    /// Where a special token of the grammar leads from a configuration that knows of names.
    pub(super) fn special_named(
        &mut self,
        config: ConfigId,
        special: u32,
    ) -> Result<ConfigId, ParserLimit> {
        if let Some(&known) = self.names.specials.get(&(config, special)) {
            return Ok(known);
        }
        let plain = self.store().plain(config);
        let mut list = self.names.list_of(self.store().done(config).names);
        self.forget_ended(&mut list, plain, |program, state| {
            program.expand(state);
            let mut edges =
                program.special_edges(state).iter().filter(|(read, _)| *read == special);
            edges.any(|&(_, to)| program.ends_names(state, to))
        });
        let next = self.moved(&mut list, false, |parser, anew| match anew {
            true => parser.read_special(plain, special),
            false => parser.step_special(plain, special),
        })?;
        let next = self.settled(list, (plain, next));
        self.names.specials.insert((config, special), next);
        Ok(next)
    }

    /// Where the end of a token leads from a configuration that knows of names.
    pub(super) fn ended_named(&mut self, config: ConfigId) -> Result<ConfigId, ParserLimit> {
        let plain = self.store().plain(config);
        let mut list = self.names.list_of(self.store().done(config).names);
        let next = self.moved(&mut list, false, |parser, anew| match anew {
            true => parser.count_token(plain),
            false => parser.token_ended(plain),
        })?;
        Ok(self.settled(list, (plain, next)))
    }

    /// Everything either configuration could go on with. Where both know of names, what the first knows of a rule's counts.
    pub(super) fn union_named(&mut self, a: ConfigId, b: ConfigId) -> ConfigId {
        let store = self.store();
        let (mut list, others) = [a, b].map(|c| self.names.list_of(store.done(c).names)).into();
        let (a, b) = (store.plain(a), store.plain(b));
        list.extend(
            others
                .into_iter()
                .filter(|(frame, _)| list.iter().all(|(known, _)| known != frame))
                .collect::<List>(),
        );
        let both = self.union(a, b);
        let names = self.names.number(list);
        self.parts().0.named(both, names)
    }

    /// Makes a step of a plain configuration; the list then has frames as they are behind it. Where frames are rewritten, or if `anew`, the step
    /// is not taken from what is known.
    fn moved(
        &mut self,
        list: &mut List,
        anew: bool,
        step: impl FnOnce(&mut Parser, bool) -> Result<ConfigId, ParserLimit>,
    ) -> Result<ConfigId, ParserLimit> {
        let rewritten = Has::METER.or(Has::SCOPE);
        if !list.iter().any(|&(frame, _)| self.store().has(frame).any(rewritten)) {
            return step(self, anew);
        }
        self.names.carried = list.iter().map(|&(frame, _)| (frame, frame)).collect();
        let next = step(self, true);
        let known = std::mem::take(list);
        let register = |was: FrameId| {
            known.iter().find(|(frame, _)| *frame == was).map(|&(_, register)| register)
        };
        list.extend(
            self.names.carried.drain(..).filter_map(|(was, is)| Some((is, register(was)?))),
        );
        list.sort_unstable();
        list.dedup_by_key(|(frame, _)| *frame);
        next
    }

    /// Reads a byte of the names under way, and begins and ends those that do. Frames of those that are not to end.
    fn read_names(
        &mut self,
        list: &mut List,
        plain: ConfigId,
        byte: u8,
    ) -> Result<Vec<FrameId>, ParserLimit> {
        if byte == QUOTE {
            for frame in self.calling(plain) {
                let register = list
                    .iter()
                    .find(|(known, _)| *known == frame)
                    .map_or(EMPTY, |&(_, register)| register);
                if !self.store().registers.said(register).reading {
                    let begun = self.parts().0.registers.begin(register).unwrap_or(register);
                    list.retain(|(known, _)| *known != frame);
                    list.push((frame, begun));
                }
            }
        }
        let registers = &mut self.parts().0.registers;
        list.iter_mut()
            .for_each(|(_, register)| *register = registers.read(*register, u32::from(byte)));
        let mut refused = Vec::new();
        if byte != QUOTE {
            return Ok(refused);
        }
        let ends = self.ending(plain);
        for (frame, register) in list.iter_mut() {
            let mut ended =
                ends.iter().filter(|(_, home)| home == frame).map(|&(name, _)| name).peekable();
            if ended.peek().is_none() {
                continue;
            }
            let registers = &mut self.parts().0.registers;
            match registers.end(*register) {
                Some(new) => *register = new,
                None if std::mem::take(&mut registers.too_deep) => return Err(ParserLimit::Values),
                None => {
                    refused.extend(ended);
                    *register = registers.forget(*register);
                }
            }
        }
        Ok(refused)
    }

    /// Forgets the names of rules that end for good: `ends` says whether what is read leads from a state to such an end.
    fn forget_ended(
        &mut self,
        list: &mut List,
        plain: ConfigId,
        ends: impl Fn(&mut Program, u32) -> bool,
    ) {
        if list.is_empty() {
            return;
        }
        for item in SmallVec::<[Item; 8]>::from(self.store().items(plain)) {
            if list.iter().any(|(frame, _)| *frame == item.frame)
                && ends(self.program_mut(), item.state)
            {
                list.retain(|(frame, _)| *frame != item.frame);
            }
        }
    }

    /// The configuration behind a step, with what is left of a list; see [`Parser::keep_open`].
    fn settled(&mut self, mut list: List, (before, plain): (ConfigId, ConfigId)) -> ConfigId {
        self.keep_open(&mut list, (before, plain));
        self.together(Apart { plain, list })
    }

    /// What is left of a list behind a step: names that are not under way any more, and rules that are not open, are forgotten.
    fn keep_open(&mut self, list: &mut List, (before, plain): (ConfigId, ConfigId)) {
        if plain == DEAD || self.has_same_frames(before, plain) {
            return;
        }
        if self.is_reading(list) {
            let calling = self.calling(plain);
            let registers = &mut self.parts().0.registers;
            for (frame, register) in list.iter_mut() {
                if registers.said(*register).reading && !calling.contains(frame) {
                    *register = registers.forget(*register);
                }
            }
        }
        list.retain(|(_, register)| *register != EMPTY);
        self.keep_open_frames(list, plain);
    }

    /// Whether what is known of names stays as it is while a rule with this frame reads something other than names.
    pub(super) fn keeps_names(&self, config: ConfigId, frame: FrameId) -> bool {
        let list = &self.names.lists[self.store().done(config).names as usize];
        !self.is_reading(list) && list.iter().all(|(home, _)| *home != frame)
    }

    /// A plain configuration with the names that another one knows.
    pub(super) fn with_names_of(&mut self, config: ConfigId, plain: ConfigId) -> ConfigId {
        let names = self.store().done(config).names;
        self.parts().0.named(plain, names)
    }

    /// Whether a name is under way.
    fn is_reading(&self, list: &[(FrameId, u32)]) -> bool {
        list.iter().any(|&(_, register)| self.store().registers.said(register).reading)
    }

    /// Whether two configurations' items are of rules with the same frames.
    fn has_same_frames(&self, a: ConfigId, b: ConfigId) -> bool {
        let (a, b) = (self.store().items(a), self.store().items(b));
        let within = |a: &[Item], b: &[Item]| {
            a.iter().all(|item| b.iter().any(|other| other.frame == item.frame))
        };
        within(a, b) && within(b, a)
    }

    /// Takes out of a list the frames of rules that are not open. Cost: the frames that are, up to the last one that is looked for.
    fn keep_open_frames(&self, list: &mut List, config: ConfigId) {
        let mut left: Frames = list.iter().map(|&(frame, _)| frame).collect();
        let (mut queue, mut hashed): (Vec<FrameId>, HashSet<FrameId>) = Default::default();
        let mut items = self.store().items(config);
        let mut at = 0;
        while !left.is_empty() {
            for &Item { frame, .. } in items {
                // Few frames are searched, many hashed.
                let known = if queue.len() < FEW_FRAMES {
                    queue.contains(&frame)
                } else {
                    hashed.contains(&frame)
                };
                if known {
                    continue;
                }
                queue.push(frame);
                match queue.len() {
                    FEW_FRAMES => hashed.extend(&queue),
                    more if more > FEW_FRAMES => _ = hashed.insert(frame),
                    _ => {}
                }
                left.retain(|other| *other != frame);
            }
            let Some(&frame) = queue.get(at) else { break };
            items = self.store().returns(frame);
            at += 1;
        }
        list.retain(|(frame, _)| !left.contains(frame));
    }

    /// Whether a name may begin here, or is under way.
    pub(crate) fn calls_names(&self, config: ConfigId) -> bool {
        let (program, store) = (self.program(), self.store());
        store
            .items(config)
            .iter()
            .any(|i| program.state(i.state).name || store.has(i.frame).any(Has::NAME))
    }

    /// Frames of the rules in which a name may begin, or is under way.
    fn calling(&self, config: ConfigId) -> Frames {
        let mut out = Frames::new();
        let mut queue: SmallVec<[Item; 8]> = self.store().items(config).into();
        while let Some(item) = queue.pop() {
            if self.program().state(item.state).name {
                self.homes(item.frame, &mut out);
            } else if self.store().has(item.frame).any(Has::NAME) {
                queue.extend_from_slice(self.store().returns(item.frame));
            }
        }
        out
    }

    /// Names that end with a quote that is read here: their frames, and those of the rules that called them.
    fn ending(&mut self, config: ConfigId) -> SmallVec<[(FrameId, FrameId); 4]> {
        let mut ends: SmallVec<[Item; 8]> = SmallVec::new();
        for item in SmallVec::<[Item; 8]>::from(self.store().items(config)) {
            let program = self.program_mut();
            program.expand(item.state);
            let edges =
                program.byte_edges(item.state).iter().filter(|e| e.lo <= QUOTE && QUOTE <= e.hi);
            ends.extend(edges.map(|e| Item { state: e.to, ..item }));
        }
        let mut out = SmallVec::new();
        while let Some(item) = ends.pop() {
            if !self.program().state(item.state).is_final {
                continue;
            }
            if self.program().state(item.state).name {
                let mut homes = Frames::new();
                self.homes(item.frame, &mut homes);
                out.extend(homes.into_iter().map(|home| (item.frame, home)));
            } else if self.store().has(item.frame).any(Has::NAME) {
                ends.extend_from_slice(self.store().returns(item.frame));
            }
        }
        out
    }

    /// Frames of the rules that called what has this frame: parts of rules that stand for themselves are parts of those rules.
    fn homes(&self, frame: FrameId, out: &mut Frames) {
        let (mut seen, mut queue) = (Frames::new(), Frames::new());
        queue.push(frame);
        while let Some(frame) = queue.pop() {
            if seen.contains(&frame) {
                continue;
            }
            seen.push(frame);
            for item in self.store().returns(frame) {
                if self.program().is_auxiliary(item.state) {
                    queue.push(item.frame);
                } else if !out.contains(&item.frame) {
                    out.push(item.frame);
                }
            }
        }
    }

    /// What may become of names where a token is read.
    pub(crate) fn naming(&self, config: ConfigId) -> Naming {
        let list = &self.names.lists[self.store().done(config).names as usize];
        match self.calls_names(config) {
            true if self.is_reading(list) => Naming::Text,
            true => Naming::Called,
            false => Naming::Outside,
        }
    }

    /// Whether a name ends with a quote that is read here.
    pub(crate) fn ends_name(&mut self, config: ConfigId) -> bool {
        !self.ending(config).is_empty()
    }

    /// Bytes (and perhaps others) with which a name that may begin here or is under way may still become one that there has been. Of those of which nothing
    /// has been read, only if `begin`.
    pub(crate) fn towards_names(&mut self, config: ConfigId, begin: bool) -> ByteSet {
        let names = self.store().done(config).names as usize;
        let list = &self.names.lists[names];
        let begin = begin
            && list.iter().any(|&(_, register)| !self.store().registers.said(register).reading);
        let calling = if begin { self.calling(config) } else { Frames::new() };
        let mut out = ByteSet::EMPTY;
        for i in 0..self.names.lists[names].len() {
            let (frame, register) = self.names.lists[names][i];
            let registers = &mut self.parts().0.registers;
            let register = match registers.said(register).reading {
                true => register,
                false if calling.contains(&frame) => registers.begin(register).unwrap_or(register),
                false => continue,
            };
            out = out.union(&registers.towards_rivals(register, true));
        }
        out
    }
}
