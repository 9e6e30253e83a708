//! The states of a dispatch: free text before a tag and after one, what has fired, and the end. Only which states there are
//! is found beforehand; their edges are found when a state is asked for.

use std::ops::Range;
use std::sync::Arc;

use super::super::Mark;
use super::super::units::Symbol;
use super::Watched;
use super::found::{Fired, Texts};
use super::trie::{ROOT, steps};
use crate::fsm::{Edge, Grouped};
use crate::ir::{AfterTag, DispatchEnd};

const START: u32 = 0;
const END: u32 = 1;
/// Not a state.
const NONE: u32 = u32::MAX;

/// A state with all that leads on from it.
#[derive(Debug, Default)]
pub(in crate::compile) struct Closed {
    /// Sorted; calls are numbers of triggers.
    pub(in crate::compile) edges: Vec<Edge>,
    pub(in crate::compile) is_final: bool,
}

/// What is known of the rules of a trigger's tags: whether one derives something, and the empty string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derives {
    pub(super) something: bool,
    pub(super) nothing: bool,
}

/// Where in a dispatch a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    End,
    /// Free text before the first tag.
    Before(u32),
    /// Free text after a tag.
    After(u32),
    /// A trigger has fired, but its text also begins a longer one: only the rest of that may follow.
    Committed(u32),
    /// What a node's text ends with has fired.
    Fired(u32),
    /// A special token has been read.
    Special(Special),
}

/// A special token behind free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Special {
    /// The number of the token.
    special: u32,
    /// The longest lead before it; the root is none.
    lead: u32,
    /// Only that lead counts.
    committed: bool,
}

/// The automaton of all dispatches that watch for the same.
#[derive(Debug)]
pub(crate) struct Shape {
    texts: Arc<Texts>,
    end: DispatchEnd,
    after: AfterTag,
    /// By trigger.
    derives: Vec<Derives>,
    /// Nodes of free text, those that a longer trigger goes on at, and those where something fires; each sorted.
    plain: Vec<u32>,
    committed: Vec<u32>,
    fired: Vec<u32>,
    /// Sorted.
    specials: Vec<Special>,
    live: Live,
}

/// What can get to the end.
#[derive(Debug, Default)]
struct Live {
    /// By node: a trigger that its text ends with and whose rules derive something.
    tags: Vec<bool>,
    /// What follows a tag.
    after: bool,
    /// Free text that is not over.
    text: bool,
    /// By node: free text there.
    plain: Vec<bool>,
    committed: Vec<bool>,
}

impl Shape {
    pub(super) fn new(watched: &Watched, texts: Arc<Texts>, derives: Vec<Derives>) -> Shape {
        let nodes = |of: &[bool]| (0..of.len() as u32).filter(|&node| of[node as usize]).collect();
        let (plain, committed, fired) =
            (nodes(&texts.plain), nodes(&texts.committed), nodes(&texts.fired));
        let mut specials: Vec<Special> = (0..texts.specials.len() as u32)
            .filter(|&special| !texts.specials[special as usize].1.is_empty())
            .map(|special| Special { special, lead: ROOT, committed: false })
            .collect();
        for lead in &texts.leads {
            let special = |committed| Special { special: lead.special, lead: lead.node, committed };
            specials.extend(texts.plain[lead.node as usize].then(|| special(false)));
            specials.extend(texts.committed[lead.node as usize].then(|| special(true)));
        }
        specials.sort_unstable();
        specials.dedup();
        let (end, after) = (watched.end, watched.after);
        let live = Live::default();
        let mut shape =
            Shape { texts, end, after, derives, plain, committed, fired, specials, live };
        shape.find_live();
        shape
    }

    /// The same, of which other rules are called.
    pub(super) fn with(&self, watched: &Watched, derives: Vec<Derives>) -> Shape {
        Shape::new(watched, self.texts.clone(), derives)
    }

    /// Number of states, free text before and after a tag counted once.
    pub(super) fn len(&self) -> usize {
        2 + self.plain.len() + self.committed.len() + self.fired.len() + self.specials.len()
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let nodes = self.plain.len() + self.committed.len() + self.fired.len();
        let live = self.texts.trie.len() * 3;
        self.texts.bytes()
            + nodes * 4
            + live
            + self.specials.len() * size_of::<Special>()
            + self.derives.len() * 2
    }

    pub(super) fn start(&self) -> u32 {
        START
    }

    fn loops(&self) -> bool {
        self.after == AfterTag::Loop
    }

    /// Whether the end is reached, if rules of the triggers derive something as `passes` says.
    pub(super) fn ends(&self, passes: impl Fn(u32) -> bool) -> bool {
        if self.end == DispatchEnd::Anywhere || self.fires_stop() {
            return true;
        }
        let ends = !self.loops() || self.end == DispatchEnd::AfterOneTag;
        ends && self.fires_tag(passes)
    }

    /// Whether the end is reached without reading anything.
    pub(super) fn is_nullable(&self) -> bool {
        self.end == DispatchEnd::Anywhere
    }

    fn fires_stop(&self) -> bool {
        let special = |special: &Special| self.fires_at(special).any(|fires| fires.is_none());
        self.fired.iter().any(|&node| self.texts.stops(node)) || self.specials.iter().any(special)
    }

    /// Whether a trigger fires of which `passes` is true. Each node is looked at once.
    fn fires_tag(&self, passes: impl Fn(u32) -> bool) -> bool {
        let mut seen = vec![false; self.texts.trie.len()];
        let mut fires = |node: u32| {
            let new = self
                .texts
                .tags(node)
                .take_while(|&node| !std::mem::replace(&mut seen[node as usize], true));
            let mut tags = new.filter_map(|node| self.texts.tag(node));
            tags.any(&passes)
        };
        if self.fired.iter().any(|&node| fires(node)) {
            return true;
        }
        self.specials.iter().any(|special| self.fires_at(special).flatten().any(&passes))
    }

    /// What a special token fires.
    fn fires_at(&self, at: &Special) -> impl Iterator<Item = Fired> + '_ {
        let &Special { special, lead, committed } = at;
        let alone = if committed { &[][..] } else { &self.texts.specials[special as usize].1[..] };
        let nodes = self.texts.lead_nodes(lead).take(if committed { 1 } else { usize::MAX });
        let leads = nodes
            .flat_map(|node| self.texts.leads_of(node))
            .filter(move |lead| lead.special == special);
        alone.iter().copied().chain(leads.map(|lead| lead.fires))
    }

    fn find_live(&mut self) {
        let (texts, len) = (self.texts.clone(), self.texts.trie.len());
        let mut live = Live { tags: vec![false; len], ..Live::default() };
        for node in 0..len as u32 {
            steps(1);
            let own = texts.tag(node).is_some_and(|tag| self.derives[tag as usize].something);
            live.tags[node as usize] =
                own || node != ROOT && live.tags[texts.trie.fail_of(node) as usize];
        }
        live.after = !self.loops() || self.end != DispatchEnd::AtStop || self.fires_stop();
        self.live = live;
        let text = self.fired.iter().any(|&node| self.is_live_fired(node));
        self.live.text = text || self.specials.iter().any(|special| self.is_live_special(special));
        self.live.committed = self.live_committed();
        self.live.plain = self.live_plain();
    }

    fn is_live(&self, fires: Fired) -> bool {
        fires.is_none_or(|tag| self.live.after && self.derives[tag as usize].something)
    }

    fn is_live_fired(&self, node: u32) -> bool {
        self.texts.stops(node) || self.live.after && self.live.tags[node as usize]
    }

    fn is_live_special(&self, special: &Special) -> bool {
        self.fires_at(special).any(|fires| self.is_live(fires))
    }

    /// By node: whether a longer trigger that goes on there gets to the end.
    fn live_committed(&self) -> Vec<bool> {
        let texts = &self.texts;
        let mut live = vec![false; texts.trie.len()];
        for &node in self.committed.iter().rev() {
            let led = texts.leads_of(node).iter().any(|lead| self.is_live(lead.fires));
            let child = |child: u32| {
                let fires =
                    !texts.is_excluded(child) && texts.fires(child) && self.is_live_fired(child);
                fires || live[child as usize]
            };
            live[node as usize] = led || texts.trie.children(node).any(child);
        }
        live
    }

    /// By node: whether free text there gets to what fires. The root does if any node does, and so do nodes from which some byte
    /// leads back to it. There are others only where all bytes are watched for.
    fn live_plain(&self) -> Vec<bool> {
        let (texts, len) = (&self.texts, self.texts.trie.len());
        if !self.live.text {
            return vec![false; len];
        }
        let alone = self.specials.iter().any(|s| s.lead == ROOT && self.is_live_special(s));
        let mut leads = vec![false; len];
        let mut live: Vec<bool> = vec![false; len];
        for node in 0..len as u32 {
            let own = texts.leads_of(node).iter().any(|lead| self.is_live(lead.fires));
            leads[node as usize] = own || node != ROOT && leads[texts.trie.fail_of(node) as usize];
            let fires = |child| {
                !texts.is_excluded(child) && texts.fires(child) && self.is_live_fired(child)
            };
            live[node as usize] = alone
                || leads[node as usize]
                || texts.trie.returns(node)
                || node == ROOT
                || texts.trie.children(node).any(fires);
        }
        let left: Vec<u32> =
            self.plain.iter().copied().filter(|&node| !live[node as usize]).collect();
        if left.is_empty() {
            return live;
        }
        // Backwards from what is known, over all transitions of the others.
        let fires = |to: u32| !texts.is_excluded(to) && texts.fires(to) && self.is_live_fired(to);
        let rows: Vec<(u32, Vec<u32>)> = left
            .iter()
            .map(|&node| {
                let mut targets = texts.trie.row(node).to_vec();
                steps(targets.len());
                targets.sort_unstable();
                targets.dedup();
                live[node as usize] = targets.iter().any(|&to| fires(to));
                targets.retain(|&to| texts.plain[to as usize]);
                (node, targets)
            })
            .collect();
        let back = Grouped::new(len, || {
            rows.iter().flat_map(|(from, targets)| targets.iter().map(|&to| (to, *from)))
        });
        back.reached((0..len as u32).filter(|&node| live[node as usize]))
    }

    fn ends_at(&self, at: At) -> bool {
        match at {
            At::Before(_) => self.end == DispatchEnd::Anywhere,
            At::After(_) => self.end != DispatchEnd::AtStop,
            _ => false,
        }
    }

    /// The state at a place, if the end can be reached from there.
    fn live(&self, at: At) -> Option<u32> {
        let live = match at {
            At::Start | At::End => true,
            At::Before(node) | At::After(node) => {
                self.ends_at(at) || self.live.plain[node as usize]
            }
            At::Committed(node) => self.live.committed[node as usize],
            At::Fired(node) => self.is_live_fired(node),
            At::Special(special) => self.is_live_special(&special),
        };
        live.then(|| self.number(at)).filter(|&state| state != NONE)
    }

    /// Where the numbers of each kind of state begin.
    fn ranges(&self) -> [Range<u32>; 5] {
        let after = if self.loops() { self.plain.len() } else { 0 };
        let mut from = END + 1;
        [self.plain.len(), after, self.committed.len(), self.fired.len(), self.specials.len()].map(
            |len| {
                let range = from..from + len as u32;
                from = range.end;
                range
            },
        )
    }

    fn number(&self, at: At) -> u32 {
        let [before, after, committed, fired, specials] = self.ranges();
        let find = |nodes: &[u32], node: u32, range: Range<u32>| match nodes.binary_search(&node) {
            Ok(at) if (at as u32) < range.end - range.start => range.start + at as u32,
            _ => NONE,
        };
        match at {
            At::Start => START,
            At::End => END,
            At::Before(node) => find(&self.plain, node, before),
            At::After(node) => find(&self.plain, node, after),
            At::Committed(node) => find(&self.committed, node, committed),
            At::Fired(node) => find(&self.fired, node, fired),
            At::Special(special) => match self.specials.binary_search(&special) {
                Ok(at) => specials.start + at as u32,
                Err(_) => NONE,
            },
        }
    }

    fn at(&self, state: u32) -> At {
        let [before, after, committed, fired, specials] = self.ranges();
        let of = |nodes: &[u32], range: &Range<u32>| nodes[(state - range.start) as usize];
        match state {
            START => At::Start,
            END => At::End,
            _ if before.contains(&state) => At::Before(of(&self.plain, &before)),
            _ if after.contains(&state) => At::After(of(&self.plain, &after)),
            _ if committed.contains(&state) => At::Committed(of(&self.committed, &committed)),
            _ if fired.contains(&state) => At::Fired(of(&self.fired, &fired)),
            _ => At::Special(self.specials[(state - specials.start) as usize]),
        }
    }

    pub(super) fn mark(&self, state: u32) -> Mark {
        match self.at(state) {
            At::Start | At::End => Mark::Plain,
            At::Before(node) | At::After(node) | At::Committed(node) => {
                Mark::Text { pending: self.texts.trie.depth(node) }
            }
            At::Fired(node) => Mark::Fired { matched: self.texts.matched(node), special: false },
            At::Special(at) => {
                Mark::Fired { matched: self.texts.trie.depth(at.lead), special: true }
            }
        }
    }

    /// Whether a state is final, reads something, calls something.
    pub(super) fn look(&self, state: u32) -> (bool, bool, bool) {
        let at = self.at(state);
        if let At::Before(node) | At::After(node) = at
            && self.texts.trie.returns(node)
        {
            let is_final = self.ends_at(at);
            if is_final || self.live.text {
                return (is_final, true, false);
            }
        }
        let closed = self.closed(state);
        let is_call = |edge: &Edge| matches!(Symbol::decode(edge.lo), Symbol::Call(_));
        let calls = closed.edges.iter().filter(|edge| is_call(edge)).count();
        (closed.is_final, calls < closed.edges.len(), calls > 0)
    }

    pub(super) fn closed(&self, state: u32) -> Closed {
        let mut out = Closed::default();
        match self.at(state) {
            At::Start => self.text(At::Before(ROOT), &mut out),
            At::End => out.is_final = true,
            at @ (At::Before(_) | At::After(_) | At::Committed(_)) => self.text(at, &mut out),
            At::Fired(node) => {
                let tags = self.texts.tags(node).map(|node| self.texts.tag(node));
                self.fire(tags.chain(self.texts.stops(node).then_some(None)), &mut out);
            }
            At::Special(special) => self.fire(self.fires_at(&special), &mut out),
        }
        out.edges.sort_unstable();
        out.edges.dedup();
        out
    }

    /// What leads on from free text.
    fn text(&self, at: At, out: &mut Closed) {
        out.is_final |= self.ends_at(at);
        let texts = &self.texts;
        let node = match at {
            At::Before(node) | At::After(node) => {
                let row = texts.trie.row(node);
                let mut from = 0;
                while from < row.len() {
                    let len = row[from..].iter().take_while(|&&to| to == row[from]).count();
                    let on = if let At::Before(_) = at {
                        At::Before(row[from])
                    } else {
                        At::After(row[from])
                    };
                    self.step((from as u8, (from + len - 1) as u8), (row[from], on), out);
                    from += len;
                }
                node
            }
            At::Committed(node) => {
                for (byte, child) in texts.trie.over(node) {
                    self.step((byte, byte), (child, At::Committed(child)), out);
                }
                node
            }
            _ => return,
        };
        let committed = matches!(at, At::Committed(_));
        // The longest lead before each special token.
        let leads = texts.lead_nodes(node).filter(|&lead| !committed || lead == node);
        let led = leads.flat_map(|lead| texts.leads_of(lead));
        let led = led.map(|found| Special { special: found.special, lead: found.node, committed });
        let alone =
            self.specials.iter().copied().filter(|special| special.lead == ROOT && !committed);
        let mut seen = vec![false; texts.specials.len()];
        for special in led.chain(alone) {
            if std::mem::replace(&mut seen[special.special as usize], true) {
                continue;
            }
            if let Some(to) = self.live(At::Special(special)) {
                let symbol = Symbol::Special(texts.specials[special.special as usize].0).encode();
                out.edges.push(Edge { lo: symbol, hi: symbol, to });
            }
        }
    }

    /// Bytes that lead to a node: free text goes on, or something fires.
    fn step(&self, (lo, hi): (u8, u8), (node, on): (u32, At), out: &mut Closed) {
        if self.texts.is_excluded(node) {
            return;
        }
        let mut edge = |at: At| {
            let edge = |to| Edge { lo: u32::from(lo), hi: u32::from(hi), to };
            out.edges.extend(self.live(at).map(edge));
        };
        if !self.texts.fires(node) {
            edge(on);
            return;
        }
        edge(At::Fired(node));
        if self.texts.goes_on(node) {
            edge(At::Committed(node));
        }
    }

    /// What leads on where something has fired: a tag's body and what follows it, or the end.
    fn fire(&self, all: impl Iterator<Item = Fired>, out: &mut Closed) {
        let mut passed = false;
        for fires in all {
            let Some(tag) = fires else {
                out.is_final = true;
                continue;
            };
            let Derives { something, nothing } = self.derives[tag as usize];
            let after = if self.loops() { At::After(ROOT) } else { At::End };
            if let Some(to) = self.live(after).filter(|_| something) {
                let symbol = Symbol::Call(tag).encode();
                out.edges.push(Edge { lo: symbol, hi: symbol, to });
            }
            passed |= nothing;
        }
        if passed && self.loops() {
            self.text(At::After(ROOT), out);
        } else {
            out.is_final |= passed;
        }
    }
}
