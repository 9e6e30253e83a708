//! Automata of member sets: object members in any order, each at most once.
//!
//! A state is a set of pairs (members seen so far, position in the rule's automaton). Positions
//! exist once; sets of seen members are interned as a parse meets them. So nothing enumerates the
//! exponentially many subsets.
//!
//! See docs/internals/MEMBER_SETS.md.

mod states;

use std::ops::Range;

pub(super) use states::{EquivalenceKey, MemberSetStates, SeenSetId};

use crate::fsm::{Edge, Nfa};
use crate::ids::id;
use crate::ir::{MemberBounds, MemberChoices, NextMember, SeenMembers};

/// Longest prefix of a name that is examined, in bytes.
const MAX_SPELLED: usize = 128;
/// Most members after a common prefix whose likelihood is examined.
const MAX_LIKELY: usize = 64;
/// Likelihood of a repeatable (undeclared) member, relative to declared ones.
const UNDECLARED_LIKELIHOOD: f64 = 1.0 / 256.0;

id! {
    /// A member set of one rule: an index into [`MemberSets::all`].
    pub(super) MemberSetId
}

id! {
    /// A node of a trie of names: an index into [`NameTrie::nodes`].
    NameNodeId
}

impl NameNodeId {
    /// In front of all names.
    const ROOT: NameNodeId = NameNodeId::from_raw(0);
}

/// By member set and declared member: the length of the prefix of its name that a repeatable member
/// also accepts and that no token crosses. Within it, presence of the member changes no mask.
pub(super) type CoveredBytes<'a> = &'a dyn Fn(MemberSetId, usize) -> usize;

/// The likelihood of a continuation, for previews. Assumes that members come in declaration order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MemberLikelihood {
    /// Of a continuation within a member set: at most 1.
    Among(f64),
    /// Of a state after a member: comparable only with others of this kind.
    After(f64),
}

impl MemberLikelihood {
    /// Whether it is as unlikely as an undeclared member.
    pub(crate) fn is_undeclared(self) -> bool {
        matches!(self, MemberLikelihood::Among(likely) if likely <= UNDECLARED_LIKELIHOOD)
    }

    /// The likelihood of a state with either continuation.
    pub(crate) fn or(self, other: MemberLikelihood) -> MemberLikelihood {
        match (self, other) {
            (MemberLikelihood::Among(a), MemberLikelihood::Among(b)) => {
                MemberLikelihood::Among(a.max(b))
            }
            (MemberLikelihood::After(a), MemberLikelihood::After(b)) => {
                MemberLikelihood::After(a.max(b))
            }
            (among @ MemberLikelihood::Among(_), after) | (after, among)
                if among.is_undeclared() =>
            {
                after
            }
            (among @ MemberLikelihood::Among(_), _) | (_, among) => among,
        }
    }
}

/// The member sets of a rule, and the roles of its automaton states.
#[derive(Debug, Default)]
pub(super) struct MemberSets {
    all: Vec<MemberSet>,
    /// By state of the automaton.
    roles: Vec<StateRole>,
}

/// One member set. Its fields are states of the rule's automaton.
#[derive(Debug)]
struct MemberSet {
    bounds: MemberBounds,
    /// The states of the set: its parts, and the states in between.
    range: Range<u32>,
    /// First states of the members: unique members, then repeatable ones.
    unique: Vec<u32>,
    repeatable: Vec<u32>,
    names: NameTrie,
    separator: u32,
    /// First state of each part, ascending: unique members, repeatable members, the
    /// separator; then the end.
    part_starts: Vec<u32>,
    /// The separator is nullable.
    separator_nullable: bool,
    /// In front of a member.
    before: u32,
    /// After a member.
    after: u32,
    /// After the set.
    exit: u32,
}

/// The names of unique members, as far as each is one literal. Common prefixes are states of
/// their own, so that a state need not list all members that may still come.
#[derive(Debug, Default)]
struct NameTrie {
    /// Unique members, ordered by name: those with a common prefix are neighbors.
    order: Vec<u32>,
    /// The nodes; the first one is in front of all members.
    nodes: Vec<NameNode>,
}

/// A common prefix of several names.
#[derive(Debug)]
struct NameNode {
    /// The state after the prefix.
    state: u32,
    /// The members, as a range of [`NameTrie::order`].
    members: Range<u32>,
    /// The length of the prefix, in bytes.
    depth: u32,
}

/// What a state of the automaton means for member sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum StateRole {
    /// An ordinary state.
    #[default]
    None,
    /// Entry of a set: no member has been seen.
    Start(MemberSetId),
    /// In front of a member.
    Before(MemberSetId),
    /// After a common prefix of several names.
    Name(MemberSetId, NameNodeId),
    /// First state of a member or separator. No edge leads back to it.
    First,
    /// Last state of a member.
    End(MemberSetId, NextMember),
    /// After a member.
    After(MemberSetId),
    /// After a separator.
    Between(MemberSetId),
}

/// The parts of a member set, each as its first and last state.
pub(super) struct MemberFragments {
    pub(super) bounds: MemberBounds,
    /// The set derives the empty string.
    pub(super) nullable: bool,
    pub(super) unique: Vec<(u32, u32)>,
    pub(super) repeatable: Vec<(u32, u32)>,
    pub(super) separator: (u32, u32),
}

impl MemberFragments {
    /// The first state of each part, ascending.
    fn starts(&self) -> impl Iterator<Item = u32> {
        self.unique.iter().chain(&self.repeatable).chain([&self.separator]).map(|part| part.0)
    }
}

/// A part of a member set with a first state that no edge leads back to, and a last state of its
/// own.
struct EnclosedPart {
    first: u32,
    end: u32,
    /// It derives the empty string.
    is_nullable: bool,
}

impl EnclosedPart {
    /// Encloses the part between two states.
    fn new(nfa: &mut Nfa, begin: u32, to: u32) -> EnclosedPart {
        let end = nfa.state();
        nfa.epsilon(to, end);
        let (first, is_nullable) = entry_copy(nfa, begin, end);
        EnclosedPart { first, end, is_nullable }
    }
}

/// The enclosed parts of a member set.
struct EnclosedParts {
    unique: Vec<EnclosedPart>,
    repeatable: Vec<EnclosedPart>,
    separator: EnclosedPart,
}

impl EnclosedParts {
    /// Encloses all parts.
    fn new(
        nfa: &mut Nfa,
        unique: Vec<(u32, u32)>,
        repeatable: Vec<(u32, u32)>,
        separator: (u32, u32),
    ) -> EnclosedParts {
        let mut all = |parts: Vec<(u32, u32)>| {
            parts.into_iter().map(|(begin, to)| EnclosedPart::new(nfa, begin, to)).collect()
        };
        let (unique, repeatable) = (all(unique), all(repeatable));
        let separator = EnclosedPart::new(nfa, separator.0, separator.1);
        EnclosedParts { unique, repeatable, separator }
    }

    /// The roles of the first and last states, in this member set.
    fn roles(&self, set: MemberSetId) -> impl Iterator<Item = (u32, StateRole)> {
        let unique = self.unique.iter().enumerate();
        let unique =
            unique.map(move |(i, part)| (part, StateRole::End(set, NextMember::Unique(i))));
        let repeatable = self
            .repeatable
            .iter()
            .map(move |part| (part, StateRole::End(set, NextMember::Repeatable)));
        unique
            .chain(repeatable)
            .chain([(&self.separator, StateRole::Between(set))])
            .flat_map(|(part, end)| [(part.first, StateRole::First), (part.end, end)])
    }
}

impl MemberSets {
    /// Whether the rule has no member set.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Connects the parts of a member set, which begins at `from`. The parts are the states from
    /// `begin` on. Returns the state after the set.
    pub(super) fn add(
        &mut self,
        nfa: &mut Nfa,
        from: u32,
        begin: u32,
        fragments: MemberFragments,
    ) -> u32 {
        let set = MemberSetId::new(self.all.len());
        let part_starts = fragments.starts().chain([nfa.len() as u32]).collect();
        let [start, before, after, exit] = [(); 4].map(|()| nfa.state());
        nfa.epsilon(from, start);
        let MemberFragments { bounds, nullable, unique, repeatable, separator } = fragments;
        let parts = EnclosedParts::new(nfa, unique, repeatable, separator);
        // These epsilon edges serve the liveness analysis only. Which of them a parse may take
        // depends on the members seen, see `follow_epsilons`.
        for part in parts.unique.iter().chain(&parts.repeatable) {
            nfa.epsilon(part.end, after);
        }
        parts.repeatable.iter().for_each(|part| nfa.epsilon(before, part.first));
        let [unique, repeatable] = [&parts.unique, &parts.repeatable]
            .map(|parts| parts.iter().map(|part| part.first).collect::<Vec<u32>>());
        let names = NameTrie::new(nfa, &unique, before);
        nfa.epsilon(after, parts.separator.first);
        nfa.epsilon(parts.separator.end, before);
        nfa.epsilon(after, exit);
        if bounds.has_sentence() {
            nfa.epsilon(start, before);
        }
        if nullable {
            nfa.epsilon(start, exit);
        }
        self.roles.resize(nfa.len(), StateRole::None);
        let places = [
            (start, StateRole::Start(set)),
            (before, StateRole::Before(set)),
            (after, StateRole::After(set)),
        ];
        let nodes = names.nodes.iter().enumerate().skip(1);
        let nodes = nodes.map(|(i, node)| (node.state, StateRole::Name(set, NameNodeId::new(i))));
        for (state, role) in places.into_iter().chain(parts.roles(set)).chain(nodes) {
            self.roles[state as usize] = role;
        }
        self.all.push(MemberSet {
            bounds,
            range: begin..nfa.len() as u32,
            unique,
            repeatable,
            names,
            separator: parts.separator.first,
            part_starts,
            separator_nullable: parts.separator.is_nullable,
            before,
            after,
            exit,
        });
        exit
    }

    /// The ids of the member sets.
    pub(super) fn ids(&self) -> impl Iterator<Item = MemberSetId> + use<> {
        (0..self.all.len()).map(MemberSetId::new)
    }

    /// Whether the set has repeatable members without an upper bound.
    pub(super) fn may_repeat(&self, member_set: MemberSetId) -> bool {
        let member_set = self.set(member_set);
        member_set.bounds.is_unbounded() && !member_set.repeatable.is_empty()
    }

    /// Ranges of symbols that occur in the separator; `None` if it is nullable.
    pub(super) fn separator_symbols(
        &self,
        nfa: &Nfa,
        member_set: MemberSetId,
    ) -> Option<Vec<(u32, u32)>> {
        let member_set = self.set(member_set);
        let [.., begin, end] = member_set.part_starts[..] else { return None };
        let edges = (begin..end).flat_map(|state| nfa.edges(state)).map(|e| (e.lo, e.hi));
        (!member_set.separator_nullable).then(|| edges.collect())
    }

    /// For each unique member: its unambiguous literal prefix.
    pub(super) fn spelled<'a>(
        &'a self,
        nfa: &'a Nfa,
        member_set: MemberSetId,
    ) -> impl Iterator<Item = Vec<u8>> + 'a {
        self.set(member_set).unique.iter().map(|&first| Spelled::new(nfa, first).bytes)
    }

    /// The member set whose part contains `position`, or that `position` lies in front of or after
    /// a member of.
    fn enclosing(&self, position: u32) -> Option<&MemberSet> {
        match self.role(position) {
            StateRole::Before(member_set) | StateRole::After(member_set) => {
                Some(self.set(member_set))
            }
            _ => self.containing(position),
        }
    }

    /// The member set in whose names a position lies, and the node of its trie.
    fn name_node(&self, position: u32) -> Option<(MemberSetId, &NameNode)> {
        let (member_set, node) = match self.role(position) {
            StateRole::Before(member_set) => (member_set, NameNodeId::ROOT),
            StateRole::Name(member_set, node) => (member_set, node),
            _ => return None,
        };
        Some((member_set, &self.set(member_set).names.nodes[node.index()]))
    }

    /// Whether a position after a node of the trie lies in a member that may come.
    fn may_lead_to(&self, member_set: MemberSetId, to: u32, choices: &MemberChoices<'_>) -> bool {
        let set = self.set(member_set);
        match self.name_node(to) {
            Some((_, node)) => {
                set.names.members(node).any(|i| choices.include(NextMember::Unique(i)))
            }
            None => set.member_at(to).is_some_and(|next| choices.include(next)),
        }
    }

    /// Whether a position outside of members leads to the start of a member by epsilon edges.
    /// `None` if that depends on whether a called rule is nullable.
    fn is_before_member(&self, nfa: &Nfa, member_set: &MemberSet, position: u32) -> Option<bool> {
        let mut seen = vec![(position, true)];
        let mut at = 0;
        while let Some(&(state, is_certain)) = seen.get(at) {
            if matches!(self.role(state), StateRole::Between(_) | StateRole::Before(_)) {
                return is_certain.then_some(true);
            }
            // A called rule may be nullable.
            let called = nfa.edges(state).filter(|e| e.lo > 255).map(|e| (e.to, false));
            for (to, certain) in nfa.epsilons(state).map(|to| (to, true)).chain(called) {
                if member_set.range.contains(&to) && !seen.iter().any(|&(other, _)| other == to) {
                    seen.push((to, is_certain && certain));
                }
            }
            at += 1;
        }
        Some(false)
    }

    /// The role of a position.
    fn role(&self, position: u32) -> StateRole {
        self.roles.get(position as usize).copied().unwrap_or_default()
    }

    /// The member set that a position belongs to.
    fn containing(&self, position: u32) -> Option<&MemberSet> {
        self.all.iter().find(|member_set| member_set.range.contains(&position))
    }

    /// A member set by its id.
    fn set(&self, member_set: MemberSetId) -> &MemberSet {
        &self.all[member_set.index()]
    }
}

impl MemberSet {
    /// Whether a position is inside of a member.
    fn is_member(&self, position: u32) -> bool {
        self.part_at(position).is_some_and(|part| part + 2 < self.part_starts.len())
    }

    /// The index of the part around a position, as in [`MemberSet::part_starts`]; the separator is
    /// the last one.
    fn part_at(&self, position: u32) -> Option<usize> {
        let part = self.part_starts.partition_point(|&begin| begin <= position).checked_sub(1)?;
        (part + 1 < self.part_starts.len()).then_some(part)
    }

    /// The member that begins at or contains a position.
    fn member_at(&self, position: u32) -> Option<NextMember> {
        // First states are ascending.
        let nth = |firsts: &[u32]| firsts.binary_search(&position).ok();
        let begins = nth(&self.unique)
            .map(NextMember::Unique)
            .or_else(|| nth(&self.repeatable).map(|_| NextMember::Repeatable));
        begins.or_else(|| match self.part_at(position)? {
            member if member < self.unique.len() => Some(NextMember::Unique(member)),
            _ => self.is_member(position).then_some(NextMember::Repeatable),
        })
    }

    /// Likelihood of the part around a position, or of the most likely one after a node of the
    /// trie of names, as seen from where members begin.
    fn likelihood(&self, position: u32, node: Option<&NameNode>, seen: &SeenMembers) -> f64 {
        if let Some(node) = node.filter(|node| node.depth > 0) {
            let unseen = self.names.members(node).filter(|&i| !seen.closed.contains(i));
            let likely = unseen.take(MAX_LIKELY).map(|i| self.bounds.likelihood(seen, i));
            return likely.fold(0.0, f64::max);
        }
        let Some(part) = self.part_at(position) else { return 1.0 };
        match part {
            member if member < self.unique.len() => self.bounds.likelihood(seen, member),
            part if part + 2 == self.part_starts.len()
                && self.bounds.remaining_unique(seen) > 0 =>
            {
                1.0
            }
            _ => UNDECLARED_LIKELIHOOD,
        }
    }

    /// First states of a member.
    fn starts(&self, next_member: NextMember) -> &[u32] {
        match next_member {
            NextMember::Unique(i) => &self.unique[i..=i],
            NextMember::Repeatable => &self.repeatable,
        }
    }
}

impl NameTrie {
    /// The trie of the members with these first states; connects its nodes, from `root` on, with
    /// the members.
    fn new(nfa: &mut Nfa, unique: &[u32], root: u32) -> NameTrie {
        let spelled: Vec<Spelled> = unique.iter().map(|&first| Spelled::new(nfa, first)).collect();
        let mut order: Vec<u32> = (0..unique.len() as u32).collect();
        order.sort_by(|&a, &b| spelled[a as usize].bytes.cmp(&spelled[b as usize].bytes));
        let mut nodes = vec![NameNode { state: root, members: 0..unique.len() as u32, depth: 0 }];
        let mut at = 0;
        while let Some(NameNode { state, members, depth }) = nodes.get(at) {
            let (state, mut begin, end, depth) = (*state, members.start, members.end, *depth);
            at += 1;
            let name = |at: u32| &spelled[order[at as usize] as usize];
            while begin < end {
                let first = name(begin);
                let Some(&byte) = first.bytes.get(depth as usize) else {
                    nfa.epsilon(state, first.positions[depth as usize]);
                    begin += 1;
                    continue;
                };
                let same = (begin..end).take_while(|&at| name(at).bytes[depth as usize] == byte);
                let siblings = begin..begin + same.count() as u32;
                begin = siblings.end;
                let to = match siblings.len() {
                    1 => first.positions[depth as usize + 1],
                    _ => nfa.state(),
                };
                nfa.edge(state, byte.into(), byte.into(), to);
                if siblings.len() > 1 {
                    nodes.push(NameNode { state: to, members: siblings, depth: depth + 1 });
                }
            }
        }
        NameTrie { order, nodes }
    }

    /// The members below a node.
    fn members(&self, node: &NameNode) -> impl Iterator<Item = usize> {
        let range = node.members.start as usize..node.members.end as usize;
        self.order[range].iter().map(|&member| member as usize)
    }
}

/// The unambiguous literal prefix of a member.
struct Spelled {
    bytes: Vec<u8>,
    /// The position in front of each byte, and the one after the last byte.
    positions: Vec<u32>,
}

impl Spelled {
    /// The prefix from a member's first state on.
    fn new(nfa: &Nfa, first: u32) -> Spelled {
        let (mut bytes, mut positions) = (Vec::new(), vec![first]);
        let mut position = first;
        while bytes.len() < MAX_SPELLED
            && nfa.epsilons(position).next().is_none()
            && let Some(byte) = only_byte(nfa, &mut position)
        {
            bytes.push(byte);
            positions.push(position);
        }
        Spelled { bytes, positions }
    }
}

/// Moves a position along its only edge, if that reads one byte.
fn only_byte(nfa: &Nfa, position: &mut u32) -> Option<u8> {
    let mut edges = nfa.edges(*position);
    let Edge { lo, hi, to } = edges.next().filter(|edge| edge.lo == edge.hi)?;
    let byte = u8::try_from(lo).ok().filter(|_| lo == hi && edges.next().is_none())?;
    *position = to;
    Some(byte)
}

/// Adds a copy of the epsilon closure of `begin` that no edge leads back to. Also returns whether
/// `begin` reaches `end` without reading.
fn entry_copy(nfa: &mut Nfa, begin: u32, end: u32) -> (u32, bool) {
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
