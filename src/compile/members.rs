//! Sets of members as automata. A state of a rule with such a set is a place and the members that there have been: places are
//! those of one automaton for all sets, the sets are those that a parse has met. Nothing is enumerated.

use std::ops::Range;

use indexmap::IndexSet;

use super::units::Unit;
use crate::fsm::{Edge, Nfa};
use crate::hash::Seeded;
use crate::ir::{Counts, Pick, Taken};

/// Most bytes of a name that are looked at.
const MOST_SPELLED: usize = 128;
/// How likely a member is that may repeat, beside the others.
const UNDECLARED: f64 = 1.0 / 256.0;

/// States that differ only in which members there have been: the instance, and each state's place with what is told of what there has been.
pub(super) type Kind = Box<[(u32, u32)]>;

/// What is put in the place of a place in a set of members, where it is not told which members there have been.
pub(super) struct StandIn {
    /// A place from which its member goes on in the same way.
    pub(super) like: u32,
    /// Where whatever can be read can be read as a member that may repeat as well: what is put in its place, as it makes no difference.
    pub(super) covered: Option<u32>,
}

/// How likely something is beside others at the same place, for texts in which members come as they are declared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Likely {
    /// It leads on at a place in a set of members: the more the likelier, at most 1.
    Among(f64),
    /// It leads to where a member has ended: the more the likelier, beside others that do.
    Behind(f64),
}

impl Likely {
    /// Whether it is what members are that may repeat, and what else is hardly meant.
    pub(crate) fn is_undeclared(self) -> bool {
        matches!(self, Likely::Among(likely) if likely <= UNDECLARED)
    }

    /// That of what may be either.
    pub(crate) fn or(self, other: Likely) -> Likely {
        match (self, other) {
            (Likely::Among(a), Likely::Among(b)) => Likely::Among(a.max(b)),
            (Likely::Behind(a), Likely::Behind(b)) => Likely::Behind(a.max(b)),
            (among @ Likely::Among(_), behind) | (behind, among) if among.is_undeclared() => behind,
            (among @ Likely::Among(_), _) | (_, among) => among,
        }
    }
}

/// The sets of members in a rule: places of its automaton that mean more than their edges.
#[derive(Debug, Default)]
pub(super) struct Regions {
    all: Vec<Region>,
    /// By state of the automaton.
    roles: Vec<Role>,
}

/// One set of members.
#[derive(Debug)]
struct Region {
    counts: Counts,
    /// The states between are its own.
    range: Range<u32>,
    /// Where members begin: those that come at most once, then the others.
    once: Vec<u32>,
    often: Vec<u32>,
    separator: u32,
    /// From where on the states inside of each member are, those that come at most once first, and those of the separator, which ends
    /// them all.
    inside: Vec<u32>,
    /// The separator may be empty.
    touching: bool,
    before: u32,
    behind: u32,
    /// Where the rule goes on.
    exit: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Role {
    /// No other than its edges.
    #[default]
    None,
    /// Of a region: nothing has been there.
    Start(u32),
    /// Before a member.
    Before(u32),
    /// Where a member or a separator begins: nothing of it has been read, and nothing leads back here.
    First,
    /// At the end of a member.
    End(u32, Pick),
    /// Behind a member.
    Behind(u32),
    /// Behind a separator.
    Between(u32),
}

/// What a set of members is made of, each part as the states where it begins and ends.
pub(super) struct Fragments {
    pub(super) counts: Counts,
    /// There need be no member.
    pub(super) nullable: bool,
    pub(super) once: Vec<(u32, u32)>,
    pub(super) often: Vec<(u32, u32)>,
    pub(super) separator: (u32, u32),
}

impl Regions {
    /// No rule has many.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Puts a set of members together, whose parts are the last states of the automaton from `begin` on, so that it begins at `from`.
    /// Returns where it ends.
    pub(super) fn add(
        &mut self,
        nfa: &mut Nfa,
        (from, begin): (u32, u32),
        fragments: Fragments,
    ) -> u32 {
        let Fragments { counts, nullable, once, often, separator } = fragments;
        let number = self.all.len() as u32;
        let inside = once
            .iter()
            .chain(&often)
            .chain([&separator])
            .map(|part| part.0)
            .chain([nfa.len() as u32])
            .collect();
        let [start, before, behind, exit] = [(); 4].map(|()| nfa.state());
        nfa.epsilon(from, start);
        let mut roles = vec![
            (start, Role::Start(number)),
            (before, Role::Before(number)),
            (behind, Role::Behind(number)),
        ];
        let mut one = |nfa: &mut Nfa, (begin, to): (u32, u32), role: Role| {
            let end = nfa.state();
            nfa.epsilon(to, end);
            let (first, is_empty) = first(nfa, begin, end);
            roles.extend([(first, Role::First), (end, role)]);
            (first, end, is_empty)
        };
        // Edges between places are there to tell which can lead to the rule's end; where they really lead is for counts to say.
        let mut ends = Vec::new();
        let mut many = |nfa: &mut Nfa, parts: Vec<(u32, u32)>, role: &dyn Fn(usize) -> Role| {
            let parts = parts.into_iter().enumerate().map(|(i, part)| {
                let (first, end, _) = one(nfa, part, role(i));
                ends.push((first, end));
                first
            });
            parts.collect::<Vec<u32>>()
        };
        let once = many(nfa, once, &|i| Role::End(number, Pick::Once(i)));
        let often = many(nfa, often, &|_| Role::End(number, Pick::Often));
        let (separator, between, touching) = one(nfa, separator, Role::Between(number));
        for (first, end) in ends {
            nfa.epsilon(before, first);
            nfa.epsilon(end, behind);
        }
        nfa.epsilon(behind, separator);
        nfa.epsilon(between, before);
        nfa.epsilon(behind, exit);
        if counts.can_begin() {
            nfa.epsilon(start, before);
        }
        if nullable {
            nfa.epsilon(start, exit);
        }
        self.roles.resize(nfa.len(), Role::None);
        roles.into_iter().for_each(|(state, role)| self.roles[state as usize] = role);
        let range = begin..nfa.len() as u32;
        self.all.push(Region {
            counts,
            range,
            once,
            often,
            separator,
            inside,
            touching,
            before,
            behind,
            exit,
        });
        exit
    }

    /// How many sets there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Which set a place ends a member of.
    pub(super) fn ends(&self, place: u32) -> Option<u32> {
        match self.role(place) {
            Role::End(region, _) => Some(region),
            _ => None,
        }
    }

    /// Whether a place means no more than its edges.
    pub(super) fn is_plain(&self, place: u32) -> bool {
        matches!(self.role(place), Role::None | Role::First)
    }

    /// Whether a set has members that may repeat, and any number of them.
    pub(super) fn may_repeat(&self, region: usize) -> bool {
        let region = &self.all[region];
        region.counts.is_unbounded() && !region.often.is_empty()
    }

    /// The symbols that a separator is made of; none where it may be empty.
    pub(super) fn separating(&self, nfa: &Nfa, region: usize) -> Option<Vec<(u32, u32)>> {
        let region = &self.all[region];
        let [.., begin, end] = region.inside[..] else { return None };
        let edges = (begin..end).flat_map(|state| nfa.edges(state)).map(|e| (e.lo, e.hi));
        (!region.touching).then(|| edges.collect())
    }

    /// What each member of a set that comes at most once begins with, as long as nothing but one byte may follow another: these bytes, and the place before
    /// each.
    pub(super) fn spelled(&self, nfa: &Nfa, region: usize) -> impl Iterator<Item = Vec<(u32, u8)>> {
        self.all[region].once.iter().map(|&first| {
            let mut spelled = Vec::new();
            let mut place = first;
            while spelled.len() < MOST_SPELLED
                && self.is_plain(place)
                && let [Edge { lo, hi, to }] = nfa.edges(place).collect::<Vec<_>>()[..]
                && lo == hi
                && let Ok(byte) = u8::try_from(lo)
                && nfa.epsilons(place).next().is_none()
            {
                spelled.push((place, byte));
                place = to;
            }
            spelled
        })
    }

    /// The set of members that a place is in or behind a member of.
    fn around(&self, place: u32) -> Option<&Region> {
        match self.role(place) {
            Role::Before(region) | Role::Behind(region) => Some(self.of(region)),
            _ => self.all.iter().find(|region| region.range.contains(&place)),
        }
    }

    /// Whether a place that is not in a member is where one may begin without anything read before it; none where that depends on what is called.
    fn is_between(&self, nfa: &Nfa, region: &Region, place: u32) -> Option<bool> {
        let mut seen = vec![(place, true)];
        let mut at = 0;
        while let Some(&(state, known)) = seen.get(at) {
            if matches!(self.role(state), Role::Between(_) | Role::Before(_)) {
                return known.then_some(true);
            }
            // Whatever is called may be empty.
            let called = nfa.edges(state).filter(|e| e.lo > 255).map(|e| (e.to, false));
            for (to, by) in nfa.epsilons(state).map(|to| (to, true)).chain(called) {
                if region.range.contains(&to) && !seen.iter().any(|&(other, _)| other == to) {
                    seen.push((to, known && by));
                }
            }
            at += 1;
        }
        Some(false)
    }

    fn role(&self, place: u32) -> Role {
        self.roles.get(place as usize).copied().unwrap_or_default()
    }

    fn of(&self, region: u32) -> &Region {
        &self.all[region as usize]
    }
}

impl Region {
    /// Whether a place is inside of a member.
    fn is_member(&self, place: u32) -> bool {
        self.part(place).is_some_and(|part| part + 2 < self.inside.len())
    }

    /// Which member or separator a place is inside of, in the order of [`Region::inside`]; the separator is the last one.
    fn part(&self, place: u32) -> Option<usize> {
        let part = self.inside.partition_point(|&begin| begin <= place).checked_sub(1)?;
        (part + 1 < self.inside.len()).then_some(part)
    }

    /// The member that a place is where it begins, or inside of.
    fn member(&self, place: u32) -> Option<Pick> {
        let nth = |firsts: &[u32]| firsts.iter().position(|&first| first == place);
        let begins =
            nth(&self.once).map(Pick::Once).or_else(|| nth(&self.often).map(|_| Pick::Often));
        begins.or_else(|| match self.part(place)? {
            member if member < self.once.len() => Some(Pick::Once(member)),
            _ => self.is_member(place).then_some(Pick::Often),
        })
    }

    /// How likely a place is, seen from where the member or separator begins that it is in.
    fn likely(&self, place: u32, taken: Taken) -> f64 {
        let Some(part) = self.part(place) else { return 1.0 };
        match part {
            member if member < self.once.len() => self.counts.likely(taken, member),
            part if part + 2 == self.inside.len() && self.counts.left(taken) > 0 => 1.0,
            _ => UNDECLARED,
        }
    }

    /// Where a member may begin.
    fn firsts(&self, pick: Pick) -> &[u32] {
        match pick {
            Pick::Once(i) => &self.once[i..=i],
            Pick::Often => &self.often,
        }
    }
}

/// A state that reads what `begin` does, and that nothing leads to; and whether `begin` leads to `end` without reading.
fn first(nfa: &mut Nfa, begin: u32, end: u32) -> (u32, bool) {
    let mut closure = vec![begin];
    let mut at = 0;
    while at < closure.len() {
        for to in nfa.epsilons(closure[at]) {
            if !closure.contains(&to) {
                closure.push(to);
            }
        }
        at += 1;
    }
    let is_empty = closure.contains(&end);
    let edges: Vec<Edge> =
        closure.into_iter().flat_map(|state| nfa.edges(state).collect::<Vec<_>>()).collect();
    let first = nfa.state();
    edges.into_iter().for_each(|e| nfa.edge(first, e.lo, e.hi, e.to));
    (first, is_empty)
}

/// The states of a rule with sets of members that have been met.
#[derive(Debug)]
pub(super) struct MemberStates {
    /// What has been there, by number; nothing is the first.
    taken: IndexSet<Taken, Seeded>,
    /// A state's number is that of what has been there and, in so many bits, that of a place.
    bits: u32,
    /// Those that do not fit, by what is left of their numbers without [`OTHER`].
    others: IndexSet<(u32, u32), Seeded>,
    /// Nothing is noted of what has been there.
    is_shape: bool,
}

/// In a state's number: it is one of the others.
const OTHER: u32 = 1 << 31;

/// Nothing.
const NOTHING: u32 = 0;
/// In place of a number: some of what has been there is told.
const TOLD: u32 = 1 << 31;
/// In place of a number: nothing is told, not even which members there may be.
const UNTOLD: u32 = u32::MAX;

impl MemberStates {
    pub(super) fn new(unit: &Unit, is_shape: bool) -> MemberStates {
        let bits = unit.main.nfa.len().next_power_of_two().trailing_zeros();
        let taken = IndexSet::from_iter([Taken::default()]);
        MemberStates { taken, bits, others: IndexSet::default(), is_shape }
    }

    /// Memory of one, in bytes, roughly.
    pub(super) const BYTES: usize = size_of::<Taken>() + 40;

    /// How many sets have been met.
    pub(super) fn sets(&self) -> usize {
        self.taken.len()
    }

    fn state(&mut self, taken: Taken, place: u32) -> u32 {
        let taken = self.taken.insert_full(taken).0 as u32;
        self.at(taken, place)
    }

    #[inline]
    fn at(&mut self, taken: u32, place: u32) -> u32 {
        if taken < OTHER >> self.bits {
            return taken << self.bits | place;
        }
        self.others.insert_full((taken, place)).0 as u32 | OTHER
    }

    /// What has been there, as a number, and the place.
    #[inline]
    pub(super) fn of(&self, state: u32) -> (u32, u32) {
        match state & OTHER {
            0 => (state >> self.bits, state & ((1 << self.bits) - 1)),
            _ => self.others[(state & !OTHER) as usize],
        }
    }

    fn taken(&self, state: u32) -> Taken {
        self.taken[self.of(state).0 as usize]
    }

    pub(super) fn start(&mut self, unit: &Unit) -> u32 {
        self.at(NOTHING, unit.main.nfa.start())
    }

    fn take(&self, counts: Counts, taken: Taken, pick: Pick) -> Option<Taken> {
        if self.is_shape { Some(taken) } else { counts.take(taken, pick) }
    }

    fn may_end(&self, counts: Counts, taken: Taken) -> bool {
        self.is_shape || counts.may_end(taken)
    }

    /// Whether a state is all that epsilon edges lead to from it, and if so, whether it matters; `None` where they lead elsewhere, too.
    pub(super) fn alone(&self, unit: &Unit, state: u32) -> Option<bool> {
        let (_, place) = self.of(state);
        let plain = unit.members.is_plain(place) && unit.main.nfa.epsilons(place).next().is_none();
        plain.then(|| unit.main.matters(place))
    }

    /// The one edge that leaves a state, if it is one to a state that matters and from which epsilon edges lead nowhere.
    pub(super) fn one_edge(&mut self, unit: &Unit, state: u32) -> Option<Edge> {
        let (number, place) = self.of(state);
        let edge = unit.main.one_edge(place).filter(|edge| unit.members.is_plain(edge.to))?;
        Some(Edge { to: self.at(number, edge.to), ..edge })
    }

    /// Adds what epsilon edges of a state lead to; true if the state itself matters.
    pub(super) fn follow(&mut self, unit: &Unit, state: u32, out: &mut Vec<u32>) -> bool {
        let (number, place) = self.of(state);
        let (regions, live) = (&unit.members, |place: u32| unit.main.live[place as usize]);
        if !live(place) {
            return false;
        }
        match regions.role(place) {
            Role::None | Role::First => {
                unit.main
                    .nfa
                    .epsilons(place)
                    .filter(|&to| live(to))
                    .for_each(|to| out.push(self.at(number, to)));
                unit.main.matters(place)
            }
            Role::Start(_) => {
                unit.main
                    .nfa
                    .epsilons(place)
                    .filter(|&to| live(to))
                    .for_each(|to| out.push(self.at(NOTHING, to)));
                false
            }
            Role::Before(region) => {
                let (region, taken) = (regions.of(region), self.taken(state));
                for pick in region.counts.picks(taken) {
                    if self.take(region.counts, taken, pick).is_some() {
                        let firsts = region.firsts(pick).iter().filter(|&&first| live(first));
                        firsts.for_each(|&first| out.push(self.at(number, first)));
                    }
                }
                true
            }
            Role::End(region, pick) => {
                let region = regions.of(region);
                let next = self.take(region.counts, self.taken(state), pick);
                out.extend(next.map(|next| self.state(next, region.behind)));
                false
            }
            Role::Behind(region) => {
                let (region, taken) = (regions.of(region), self.taken(state));
                let (ends, goes_on) =
                    (self.may_end(region.counts, taken), region.counts.goes_on(taken));
                if ends {
                    out.push(self.at(NOTHING, region.exit));
                }
                if goes_on {
                    out.push(self.at(number, region.separator));
                    out.extend(region.touching.then(|| self.at(number, region.before)));
                }
                // See [`MemberStates::nearing_end`].
                ends && goes_on
            }
            Role::Between(region) => {
                out.push(self.at(number, regions.of(region).before));
                false
            }
        }
    }

    /// The edges of a state.
    pub(super) fn edges(&mut self, unit: &Unit, state: u32, mut each: impl FnMut(Edge)) {
        let (number, place) = self.of(state);
        for edge in unit.main.nfa.edges(place).filter(|e| unit.main.live[e.to as usize]) {
            each(Edge { to: self.at(number, edge.to), ..edge });
        }
    }

    /// Whether a set of states is final, reads something, calls something.
    pub(super) fn look(&self, unit: &Unit, set: &[u32]) -> (bool, bool, bool) {
        let places: Vec<u32> = set.iter().map(|&state| self.of(state).1).collect();
        unit.main.look(&places)
    }

    /// What is left of a set of states of an instance if it is not told which members there have been, none where that is nothing less. States of
    /// which the same is left do the same up to where the member behind a separator begins: where one begins is told by the places, as sets are
    /// closed, and what there may be behind it, by whether it may be the last one and whether it must be. `stand_in` says what is put in a place's
    /// place.
    pub(super) fn without_names(
        &self,
        unit: &Unit,
        (instance, set): (u32, &[u32]),
        mut stand_in: impl FnMut(u32) -> StandIn,
    ) -> Option<Kind> {
        let mut less = false;
        let kinds = set.iter().map(|&state| {
            let (number, place) = self.of(state);
            let taken = self.taken(state);
            let Some(told) = self.told(unit, place, taken) else { return (place, number) };
            less = true;
            // Where members are still counted, one that repeats may not come.
            let enough =
                || unit.members.around(place).is_some_and(|region| region.counts.are_enough(taken));
            match stand_in(place) {
                StandIn { covered: Some(covered), .. } if enough() => (covered, UNTOLD),
                StandIn { like, .. } => (like, told),
            }
        });
        let mut kind: Vec<(u32, u32)> = kinds.collect();
        kind.sort_unstable();
        kind.dedup();
        kind.push((instance, 0));
        less.then(|| kind.into())
    }

    /// What is told of the members that there have been at a place; none where it is not known that this is enough.
    fn told(&self, unit: &Unit, place: u32, taken: Taken) -> Option<u32> {
        let region = unit.members.around(place)?;
        if region.touching || !region.counts.is_unbounded() {
            return None;
        }
        let behind = match region.member(place) {
            Some(pick) => self.take(region.counts, taken, pick)?,
            None => match unit.members.is_between(&unit.main.nfa, region, place)? {
                true => return Some(TOLD),
                false => taken,
            },
        };
        let (ends, goes_on) = (region.counts.may_end(behind), region.counts.goes_on(behind));
        region.counts.are_enough(behind).then_some(TOLD | u32::from(ends) | u32::from(goes_on) << 1)
    }

    /// Where the members of a set that come at most once begin, as nothing has been there; `with_others`: all members.
    pub(super) fn firsts(&mut self, unit: &Unit, region: usize, with_others: bool) -> Vec<u32> {
        let region = &unit.members.all[region];
        let others = if with_others { &region.often[..] } else { &[] };
        let firsts =
            region.once.iter().chain(others).filter(|&&first| unit.main.live[first as usize]);
        firsts.map(|&first| self.at(NOTHING, first)).collect()
    }

    /// Where the members of a set that may repeat begin, as nothing has been there.
    pub(super) fn others(&mut self, unit: &Unit, region: usize) -> Vec<u32> {
        let others =
            unit.members.all[region].often.iter().filter(|&&first| unit.main.live[first as usize]);
        others.map(|&first| self.at(NOTHING, first)).collect()
    }

    /// The most members that may still come in one of these states, of those that come at most once.
    pub(super) fn left(&self, unit: &Unit, set: &[u32]) -> u32 {
        let left = |&state: &u32| {
            let (place, taken) = (self.of(state).1, self.taken(state));
            let inside = unit.members.all.iter().find(|region| region.range.contains(&place));
            let most =
                || unit.members.all.iter().map(|region| region.counts.left(Taken::default())).max();
            inside.map(|region| region.counts.left(taken)).or_else(most).unwrap_or(0)
        };
        set.iter().map(left).max().unwrap_or(0)
    }

    /// How likely these states are: the greatest of them. See [`Likely`].
    pub(super) fn likely(&self, unit: &Unit, set: &[u32], returned: bool) -> Likely {
        let mut behind: Option<f64> = None;
        let mut most = 0.0f64;
        for &state in set {
            let (place, taken) = (self.of(state).1, self.taken(state));
            let region = unit.members.all.iter().find(|region| region.range.contains(&place));
            if let Some(region) = region.filter(|region| returned && place == region.before) {
                // White space behind a separator has ended: it is as likely as the separator.
                return Likely::Among(if region.counts.left(taken) > 0 { 1.0 } else { UNDECLARED });
            }
            if let Some(region) = region.filter(|region| returned && !region.is_member(place)) {
                behind = Some(behind.unwrap_or(0.0).max(region.counts.in_order(taken)));
            }
            most = most.max(region.map_or(1.0, |region| region.likely(place, taken)));
        }
        behind.map_or(Likely::Among(most), Likely::Behind)
    }

    /// These states where the nearest end is looked for: members begin as [`Counts::picks_to_end`] has it, and where there may be an
    /// end behind one, nothing follows. `None` where that changes nothing.
    pub(super) fn nearing_end(&mut self, unit: &Unit, set: &[u32]) -> Option<Vec<u32>> {
        let regions = &unit.members;
        let role = |states: &Self, state: u32| regions.role(states.of(state).1);
        let is_changed =
            |&state: &u32| matches!(role(self, state), Role::Before(_) | Role::Behind(_));
        if self.is_shape || !set.iter().any(is_changed) {
            return None;
        }
        // States behind a member are in sets only where there may be an end.
        let done = set.iter().filter_map(|&state| match role(self, state) {
            Role::Behind(region) => Some((region, self.of(state).0)),
            _ => None,
        });
        let done: Vec<(u32, u32)> = done.collect();
        let mut out = Vec::new();
        for &state in set {
            let (number, place) = self.of(state);
            match role(self, state) {
                Role::Before(at) if !done.contains(&(at, number)) => {
                    let region = regions.of(at);
                    for (taken, pick) in region.counts.picks_to_end(self.taken(state)) {
                        let firsts = region
                            .firsts(pick)
                            .iter()
                            .filter(|&&first| unit.main.live[first as usize]);
                        firsts.for_each(|&first| out.push(self.state(taken, first)));
                    }
                }
                Role::First => {
                    let of = regions.all.iter().position(|region| region.separator == place);
                    out.extend(
                        of.filter(|&of| !done.contains(&(of as u32, number))).map(|_| state),
                    );
                }
                Role::Before(_) => {}
                _ => out.push(state),
            }
        }
        out.sort_unstable();
        out.dedup();
        Some(out)
    }
}
