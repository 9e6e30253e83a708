//! States and edges of a dispatch automaton.
//!
//! The states are numbered in ranges by kind: free text before and after a tag, within a longer
//! trigger, fired, and after a special token. Their edges are computed from the trie on request.

use std::ops::Range;
use std::sync::Arc;

use super::super::DispatchMark;
use super::super::rule_nfa::{EdgeSymbol, StateSummary};
use super::DispatchTexts;
use super::matches::{MatchTable, TriggerId, TriggerOrStop};
use super::trie::{DispatchNodeId, count_steps};
use crate::fsm::{Csr, Edge};
use crate::ids::id;
use crate::ir::{AfterTag, DispatchEnd};

id! {
    /// A state of a dispatch automaton.
    pub(crate) DispatchStateId
}

impl DispatchStateId {
    /// The start state: free text at the root.
    pub(in crate::compile) const START: DispatchStateId = DispatchStateId::from_raw(0);
    /// The accepting state without edges.
    const END: DispatchStateId = DispatchStateId::from_raw(1);
}

/// The edges of a state.
#[derive(Debug, Default)]
pub(in crate::compile) struct StateEdges {
    /// Over bytes and special tokens; sorted.
    pub(in crate::compile) edges: Vec<Edge>,
    /// Calls of tag bodies; sorted.
    pub(in crate::compile) calls: Vec<TagCall>,
    /// The dispatch may end.
    pub(in crate::compile) is_final: bool,
}

/// A call of the bodies of a trigger's tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::compile) struct TagCall {
    pub(in crate::compile) trigger: TriggerId,
    /// The state to return to.
    pub(in crate::compile) to: DispatchStateId,
}

/// What the bodies of a trigger's tags derive.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagBodies {
    /// One of them derives a finite text.
    pub(super) productive: bool,
    /// One of them derives the empty string.
    pub(super) nullable: bool,
}

/// The kind of a state, with its trie node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateKind {
    Start,
    End,
    /// Free text before the first tag.
    TextBefore(DispatchNodeId),
    /// Free text after a tag.
    TextAfter(DispatchNodeId),
    /// A trigger has fired that is a prefix of a longer one; only the rest of the longer one may
    /// follow.
    Committed(DispatchNodeId),
    /// A trigger or stop that the node's text ends with has fired.
    Fired(DispatchNodeId),
    /// A special token has been read.
    Special(SpecialRead),
}

/// A special token after free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SpecialRead {
    /// Its index in [`MatchTable::specials`].
    special: u32,
    /// Node of the longest special prefix in front of it; the root: none.
    prefix: DispatchNodeId,
    /// Read within a longer trigger: only that special prefix counts.
    committed: bool,
}

/// The automaton of all dispatches with the same texts.
#[derive(Debug)]
pub(crate) struct DispatchAutomaton {
    matches: Arc<MatchTable>,
    end: DispatchEnd,
    after: AfterTag,
    /// By trigger.
    bodies: Vec<TagBodies>,
    /// Nodes that are free-text states, states within a longer trigger, and fired states; each list
    /// is sorted.
    free_text: Vec<DispatchNodeId>,
    committed: Vec<DispatchNodeId>,
    fired: Vec<DispatchNodeId>,
    /// Sorted.
    specials: Vec<SpecialRead>,
    live: LiveStates,
}

/// Liveness: from where the end can be reached.
#[derive(Debug, Default)]
struct LiveStates {
    /// By node: its text ends with a trigger that has a productive body.
    tags: Vec<bool>,
    /// After a tag.
    after: bool,
    /// Free text in which nothing has fired.
    text: bool,
    /// By node: as free text, and within a longer trigger.
    free_text: Vec<bool>,
    committed: Vec<bool>,
}

impl DispatchAutomaton {
    /// Numbers the states and computes their liveness.
    pub(super) fn new(
        dispatch_texts: &DispatchTexts,
        matches: Arc<MatchTable>,
        bodies: Vec<TagBodies>,
    ) -> DispatchAutomaton {
        let nodes =
            |flags: &[bool]| matches.trie.nodes().filter(|node| flags[node.index()]).collect();
        let (free_text, committed, fired) =
            (nodes(&matches.free_text), nodes(&matches.committed), nodes(&matches.fired));
        let mut specials: Vec<SpecialRead> = (0..matches.specials.len() as u32)
            .filter(|&special| !matches.specials[special as usize].1.is_empty())
            .map(|special| SpecialRead { special, prefix: DispatchNodeId::ROOT, committed: false })
            .collect();
        for prefix in &matches.special_prefixes {
            let special =
                |committed| SpecialRead { special: prefix.special, prefix: prefix.node, committed };
            specials.extend(matches.free_text[prefix.node.index()].then(|| special(false)));
            specials.extend(matches.committed[prefix.node.index()].then(|| special(true)));
        }
        specials.sort_unstable();
        specials.dedup();
        let (end, after) = (dispatch_texts.end, dispatch_texts.after);
        let live = LiveStates::default();
        let mut automaton = DispatchAutomaton {
            matches,
            end,
            after,
            bodies,
            free_text,
            committed,
            fired,
            specials,
            live,
        };
        automaton.find_live();
        automaton
    }

    /// The automaton for the same texts with other bodies.
    pub(super) fn with_bodies(
        &self,
        dispatch_texts: &DispatchTexts,
        bodies: Vec<TagBodies>,
    ) -> DispatchAutomaton {
        DispatchAutomaton::new(dispatch_texts, self.matches.clone(), bodies)
    }

    /// Number of states; free text before and after a tag counts once.
    pub(super) fn len(&self) -> usize {
        2 + self.free_text.len() + self.committed.len() + self.fired.len() + self.specials.len()
    }

    /// Approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        let nodes = self.free_text.len() + self.committed.len() + self.fired.len();
        let live = self.matches.trie.len() * 3;
        self.matches.bytes()
            + nodes * 4
            + live
            + self.specials.len() * size_of::<SpecialRead>()
            + self.bodies.len() * 2
    }

    /// Whether free text follows a tag.
    fn loops(&self) -> bool {
        self.after == AfterTag::Loop
    }

    /// Whether the end can be reached, if `passes` tells which triggers have bodies that can be
    /// passed.
    pub(super) fn can_end(&self, passes: impl Fn(TriggerId) -> bool) -> bool {
        if self.end == DispatchEnd::Anywhere || self.fires_stop() {
            return true;
        }
        let ends = !self.loops() || self.end == DispatchEnd::AfterOneTag;
        ends && self.fires_tag(passes)
    }

    /// Whether the dispatch derives the empty string.
    pub(super) fn is_nullable(&self) -> bool {
        self.end == DispatchEnd::Anywhere
    }

    /// Whether some stop can fire.
    fn fires_stop(&self) -> bool {
        let special =
            |special: &SpecialRead| self.fired_by_special(special).any(|fires| fires.is_none());
        self.fired.iter().any(|&node| self.matches.fires_stop(node))
            || self.specials.iter().any(special)
    }

    /// Whether some trigger can fire for which `passes` holds. Visits each node once.
    fn fires_tag(&self, passes: impl Fn(TriggerId) -> bool) -> bool {
        let mut seen = vec![false; self.matches.trie.len()];
        let mut fires = |node: DispatchNodeId| {
            let new = self
                .matches
                .tag_nodes(node)
                .take_while(|&node| !std::mem::replace(&mut seen[node.index()], true));
            let mut tags = new.filter_map(|node| self.matches.tag_at(node));
            tags.any(&passes)
        };
        if self.fired.iter().any(|&node| fires(node)) {
            return true;
        }
        self.specials.iter().any(|special| self.fired_by_special(special).flatten().any(&passes))
    }

    /// What a special token fires.
    fn fired_by_special(&self, at: &SpecialRead) -> impl Iterator<Item = TriggerOrStop> + '_ {
        let &SpecialRead { special, prefix, committed } = at;
        let unprefixed =
            if committed { &[][..] } else { &self.matches.specials[special as usize].1[..] };
        let nodes = self.matches.prefix_nodes(prefix).take(if committed { 1 } else { usize::MAX });
        let prefixes = nodes
            .flat_map(|node| self.matches.prefixes_at(node))
            .filter(move |prefix| prefix.special == special);
        unprefixed.iter().copied().chain(prefixes.map(|prefix| prefix.fires))
    }

    /// Computes the liveness of all states.
    fn find_live(&mut self) {
        let (matches, len) = (self.matches.clone(), self.matches.trie.len());
        let mut live = LiveStates { tags: vec![false; len], ..LiveStates::default() };
        for node in matches.trie.nodes() {
            count_steps(1);
            let at_node =
                matches.tag_at(node).is_some_and(|tag| self.bodies[tag.index()].productive);
            live.tags[node.index()] = at_node
                || node != DispatchNodeId::ROOT && live.tags[matches.trie.failure(node).index()];
        }
        live.after = !self.loops() || self.end != DispatchEnd::AtStop || self.fires_stop();
        self.live = live;
        let text = self.fired.iter().any(|&node| self.is_live_fired(node));
        self.live.text = text || self.specials.iter().any(|special| self.is_live_special(special));
        self.live.committed = self.live_committed();
        self.live.free_text = self.live_free_text();
    }

    /// Whether the end can be reached after this has fired.
    fn is_live(&self, fires: TriggerOrStop) -> bool {
        fires.is_none_or(|tag| self.live.after && self.bodies[tag.index()].productive)
    }

    /// Whether a fired state is live.
    fn is_live_fired(&self, node: DispatchNodeId) -> bool {
        self.matches.fires_stop(node) || self.live.after && self.live.tags[node.index()]
    }

    /// Whether something fires on the way to a node, and the end can be reached from there.
    fn fires_live(&self, node: DispatchNodeId) -> bool {
        !self.matches.is_excluded(node) && self.matches.fires(node) && self.is_live_fired(node)
    }

    /// Whether the state after a special token is live.
    fn is_live_special(&self, special: &SpecialRead) -> bool {
        self.fired_by_special(special).any(|fires| self.is_live(fires))
    }

    /// Liveness of states within a longer trigger, by node.
    fn live_committed(&self) -> Vec<bool> {
        let matches = &self.matches;
        let mut live = vec![false; matches.trie.len()];
        for &node in self.committed.iter().rev() {
            let has_prefix =
                matches.prefixes_at(node).iter().any(|prefix| self.is_live(prefix.fires));
            let child = |child: DispatchNodeId| self.fires_live(child) || live[child.index()];
            live[node.index()] = has_prefix || matches.trie.children(node).any(child);
        }
        live
    }

    /// Liveness of free-text states, by node. The root is live if any node is, and so is a node
    /// from which some byte leads back to the root. Other nodes exist only where every byte
    /// continues some text.
    fn live_free_text(&self) -> Vec<bool> {
        let (matches, len) = (&self.matches, self.matches.trie.len());
        if !self.live.text {
            return vec![false; len];
        }
        let unprefixed = self
            .specials
            .iter()
            .any(|s| s.prefix == DispatchNodeId::ROOT && self.is_live_special(s));
        let mut prefixes = vec![false; len];
        let mut live: Vec<bool> = vec![false; len];
        for node in matches.trie.nodes() {
            let at_node = matches.prefixes_at(node).iter().any(|prefix| self.is_live(prefix.fires));
            prefixes[node.index()] = at_node
                || node != DispatchNodeId::ROOT && prefixes[matches.trie.failure(node).index()];
            live[node.index()] = unprefixed
                || prefixes[node.index()]
                || matches.trie.can_return_to_root(node)
                || node == DispatchNodeId::ROOT
                || matches.trie.children(node).any(|child| self.fires_live(child));
        }
        let unresolved: Vec<DispatchNodeId> =
            self.free_text.iter().copied().filter(|node| !live[node.index()]).collect();
        if unresolved.is_empty() {
            return live;
        }
        // Backward reachability over all transitions of the remaining nodes.
        let rows: Vec<(DispatchNodeId, Vec<DispatchNodeId>)> = unresolved
            .iter()
            .map(|&node| {
                let mut targets = matches.trie.transitions(node).to_vec();
                count_steps(targets.len());
                targets.sort_unstable();
                targets.dedup();
                live[node.index()] = targets.iter().any(|&to| self.fires_live(to));
                targets.retain(|&to| matches.free_text[to.index()]);
                (node, targets)
            })
            .collect();
        let back = Csr::new(len, || {
            rows.iter().flat_map(|(from, targets)| targets.iter().map(|to| (to.raw(), from.raw())))
        });
        back.reached((0..len as u32).filter(|&row| live[row as usize]))
    }

    /// Whether the dispatch may end in a state.
    fn may_end_in(&self, kind: StateKind) -> bool {
        match kind {
            StateKind::TextBefore(_) => self.end == DispatchEnd::Anywhere,
            StateKind::TextAfter(_) => self.end != DispatchEnd::AtStop,
            _ => false,
        }
    }

    /// The number of a state, if it is live.
    fn live_state(&self, kind: StateKind) -> Option<DispatchStateId> {
        let live = match kind {
            StateKind::Start | StateKind::End => true,
            StateKind::TextBefore(node) | StateKind::TextAfter(node) => {
                self.may_end_in(kind) || self.live.free_text[node.index()]
            }
            StateKind::Committed(node) => self.live.committed[node.index()],
            StateKind::Fired(node) => self.is_live_fired(node),
            StateKind::Special(special) => self.is_live_special(&special),
        };
        if live { self.state_of(kind) } else { None }
    }

    /// The range of numbers of each kind of state.
    fn ranges(&self) -> [Range<u32>; 5] {
        let after = if self.loops() { self.free_text.len() } else { 0 };
        let mut from = DispatchStateId::END.raw() + 1;
        [self.free_text.len(), after, self.committed.len(), self.fired.len(), self.specials.len()]
            .map(|len| {
                let range = from..from + len as u32;
                from = range.end;
                range
            })
    }

    /// The state of this kind, if there is one.
    fn state_of(&self, kind: StateKind) -> Option<DispatchStateId> {
        let [before, after, committed, fired, specials] = self.ranges();
        let find = |nodes: &[DispatchNodeId], node: DispatchNodeId| nodes.binary_search(&node).ok();
        let (at, range) = match kind {
            StateKind::Start => return Some(DispatchStateId::START),
            StateKind::End => return Some(DispatchStateId::END),
            StateKind::TextBefore(node) => (find(&self.free_text, node), before),
            StateKind::TextAfter(node) => (find(&self.free_text, node), after),
            StateKind::Committed(node) => (find(&self.committed, node), committed),
            StateKind::Fired(node) => (find(&self.fired, node), fired),
            StateKind::Special(special) => (self.specials.binary_search(&special).ok(), specials),
        };
        let at = at.filter(|&at| at < range.len())?;
        Some(DispatchStateId::new(range.start as usize + at))
    }

    /// The kind of a state.
    fn kind(&self, state: DispatchStateId) -> StateKind {
        let [before, after, committed, fired, specials] = self.ranges();
        let number = state.raw();
        let node =
            |nodes: &[DispatchNodeId], range: &Range<u32>| nodes[(number - range.start) as usize];
        match state {
            DispatchStateId::START => StateKind::Start,
            DispatchStateId::END => StateKind::End,
            _ if before.contains(&number) => StateKind::TextBefore(node(&self.free_text, &before)),
            _ if after.contains(&number) => StateKind::TextAfter(node(&self.free_text, &after)),
            _ if committed.contains(&number) => {
                StateKind::Committed(node(&self.committed, &committed))
            }
            _ if fired.contains(&number) => StateKind::Fired(node(&self.fired, &fired)),
            _ => StateKind::Special(self.specials[(number - specials.start) as usize]),
        }
    }

    /// The meaning of a state for traces.
    pub(in crate::compile) fn mark(&self, state: DispatchStateId) -> DispatchMark {
        match self.kind(state) {
            StateKind::Start | StateKind::End => DispatchMark::Plain,
            StateKind::TextBefore(node)
            | StateKind::TextAfter(node)
            | StateKind::Committed(node) => {
                DispatchMark::Text { pending: self.matches.trie.depth(node) }
            }
            StateKind::Fired(node) => {
                DispatchMark::Fired { matched: self.matches.matched_len(node), special: false }
            }
            StateKind::Special(at) => {
                DispatchMark::Fired { matched: self.matches.trie.depth(at.prefix), special: true }
            }
        }
    }

    /// The trie node of the trigger or exclude that a state has begun, or of the trigger that it
    /// has read; `None` elsewhere, and where a stop or a special token has been read.
    pub(super) fn begun_node(&self, state: DispatchStateId) -> Option<DispatchNodeId> {
        match self.kind(state) {
            StateKind::TextBefore(node)
            | StateKind::TextAfter(node)
            | StateKind::Committed(node) => (node != DispatchNodeId::ROOT).then_some(node),
            StateKind::Fired(node) if !self.matches.fires_stop(node) => {
                self.matches.tag_nodes(node).next()
            }
            StateKind::Start | StateKind::End | StateKind::Fired(_) | StateKind::Special(_) => None,
        }
    }

    /// See [`MatchTable::likely_nodes`].
    pub(super) fn likely_nodes(&self, is_likely: impl Fn(TriggerOrStop) -> bool) -> Box<[bool]> {
        self.matches.likely_nodes(is_likely)
    }

    /// The summary of a state.
    pub(in crate::compile) fn summarize(&self, state: DispatchStateId) -> StateSummary {
        let kind = self.kind(state);
        if let StateKind::TextBefore(node) | StateKind::TextAfter(node) = kind
            && self.matches.trie.can_return_to_root(node)
        {
            let is_final = self.may_end_in(kind);
            if is_final || self.live.text {
                return StateSummary { is_final, has_scan_edge: true, has_call_edge: false };
            }
        }
        let outgoing = self.state_edges(state);
        StateSummary {
            is_final: outgoing.is_final,
            has_scan_edge: !outgoing.edges.is_empty(),
            has_call_edge: !outgoing.calls.is_empty(),
        }
    }

    /// Computes the edges of a state.
    pub(in crate::compile) fn state_edges(&self, state: DispatchStateId) -> StateEdges {
        let mut out = StateEdges::default();
        match self.kind(state) {
            StateKind::Start => {
                self.add_text_edges(StateKind::TextBefore(DispatchNodeId::ROOT), &mut out)
            }
            StateKind::End => out.is_final = true,
            kind @ (StateKind::TextBefore(_)
            | StateKind::TextAfter(_)
            | StateKind::Committed(_)) => self.add_text_edges(kind, &mut out),
            StateKind::Fired(node) => {
                let tags = self.matches.tag_nodes(node).map(|node| self.matches.tag_at(node));
                self.add_fired_edges(
                    tags.chain(self.matches.fires_stop(node).then_some(None)),
                    &mut out,
                );
            }
            StateKind::Special(special) => {
                self.add_fired_edges(self.fired_by_special(&special), &mut out)
            }
        }
        out.edges.sort_unstable();
        out.edges.dedup();
        out.calls.sort_unstable();
        out.calls.dedup();
        out
    }

    /// Adds the edges of a free-text state.
    fn add_text_edges(&self, kind: StateKind, out: &mut StateEdges) {
        out.is_final |= self.may_end_in(kind);
        let matches = &self.matches;
        let node = match kind {
            StateKind::TextBefore(node) | StateKind::TextAfter(node) => {
                let row = matches.trie.transitions(node);
                let mut from = 0;
                while from < row.len() {
                    let len = row[from..].iter().take_while(|&&to| to == row[from]).count();
                    let on = if let StateKind::TextBefore(_) = kind {
                        StateKind::TextBefore(row[from])
                    } else {
                        StateKind::TextAfter(row[from])
                    };
                    self.add_byte_edges(from as u8, (from + len - 1) as u8, row[from], on, out);
                    from += len;
                }
                node
            }
            StateKind::Committed(node) => {
                for (byte, child) in matches.trie.children_with_bytes(node) {
                    self.add_byte_edges(byte, byte, child, StateKind::Committed(child), out);
                }
                node
            }
            _ => return,
        };
        let committed = matches!(kind, StateKind::Committed(_));
        // The longest special prefix in front of each special token wins.
        let prefixes = matches.prefix_nodes(node).filter(|&prefix| !committed || prefix == node);
        let prefixed = prefixes
            .flat_map(|node| matches.prefixes_at(node))
            .map(|prefix| SpecialRead { special: prefix.special, prefix: prefix.node, committed });
        let unprefixed = self
            .specials
            .iter()
            .copied()
            .filter(|special| special.prefix == DispatchNodeId::ROOT && !committed);
        let mut seen = vec![false; matches.specials.len()];
        for special in prefixed.chain(unprefixed) {
            if std::mem::replace(&mut seen[special.special as usize], true) {
                continue;
            }
            if let Some(to) = self.live_state(StateKind::Special(special)) {
                let symbol =
                    EdgeSymbol::Special(matches.specials[special.special as usize].0).encode();
                out.edges.push(Edge { lo: symbol, hi: symbol, to: to.raw() });
            }
        }
    }

    /// Adds the edges over `lo..=hi` to a node: free text goes on, or something fires.
    fn add_byte_edges(
        &self,
        lo: u8,
        hi: u8,
        node: DispatchNodeId,
        on: StateKind,
        out: &mut StateEdges,
    ) {
        if self.matches.is_excluded(node) {
            return;
        }
        let mut edge = |kind: StateKind| {
            let edge = |to: DispatchStateId| Edge { lo: lo.into(), hi: hi.into(), to: to.raw() };
            out.edges.extend(self.live_state(kind).map(edge));
        };
        if !self.matches.fires(node) {
            edge(on);
            return;
        }
        edge(StateKind::Fired(node));
        if self.matches.begins_longer(node) {
            edge(StateKind::Committed(node));
        }
    }

    /// Adds the edges of a fired state: calls of the bodies, or the end.
    fn add_fired_edges(&self, all: impl Iterator<Item = TriggerOrStop>, out: &mut StateEdges) {
        let mut passed = false;
        for fires in all {
            let Some(trigger) = fires else {
                out.is_final = true;
                continue;
            };
            let TagBodies { productive, nullable } = self.bodies[trigger.index()];
            let after = if self.loops() {
                StateKind::TextAfter(DispatchNodeId::ROOT)
            } else {
                StateKind::End
            };
            if let Some(to) = self.live_state(after).filter(|_| productive) {
                out.calls.push(TagCall { trigger, to });
            }
            passed |= nullable;
        }
        if passed && self.loops() {
            self.add_text_edges(StateKind::TextAfter(DispatchNodeId::ROOT), out);
        } else {
            out.is_final |= passed;
        }
    }
}
