//! The oracle's grammar: a recursive transition network, derived from the definition of [`Expr`]
//! alone. Every expression becomes a small machine whose moves read a byte, read a special token,
//! or run another machine. It has no minimisation, no counters and no automata library: counted
//! repeats are copied out, and dispatch is defined by comparison of strings.

use std::collections::HashMap;

use louver::ids::SpecialId;
use louver::ir::{AfterTag, Dispatch, DispatchEnd, Expr, Grammar, Members, Trigger};

/// A transition of a machine.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// Reads one of these bytes.
    Bytes(Box<[bool; 256]>),
    /// Reads this special token of the grammar.
    Special(u32),
    /// Runs a machine.
    Call(usize),
}

/// States with moves; state 0 is the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    pub(crate) finals: Vec<bool>,
    pub(crate) moves: Vec<Vec<(Move, usize)>>,
}

/// All machines of a grammar; the first ones are the rules in their order. Moves that lead nowhere
/// are pruned.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) machines: Vec<Machine>,
    /// Whether a machine derives anything.
    pub(crate) productive: Vec<bool>,
}

impl Machine {
    fn state(&mut self, is_final: bool) -> usize {
        self.finals.push(is_final);
        self.moves.push(Vec::new());
        self.finals.len() - 1
    }
}

/// A move that reads one byte.
fn one(byte: u8) -> Move {
    let mut set = Box::new([false; 256]);
    set[usize::from(byte)] = true;
    Move::Bytes(set)
}

impl Network {
    pub(crate) fn new(grammar: &Grammar) -> Network {
        let mut network = Network {
            machines: vec![Machine::default(); grammar.rules.len()],
            productive: Vec::new(),
        };
        for (i, rule) in grammar.rules.iter().enumerate() {
            network.machines[i] = network.machine(&rule.body);
        }
        network.prune();
        network
    }

    fn add(&mut self, expr: &Expr) -> usize {
        if let Expr::Ref(rule) = expr {
            return rule.index();
        }
        let machine = self.machine(expr);
        self.machines.push(machine);
        self.machines.len() - 1
    }

    fn machine(&mut self, expr: &Expr) -> Machine {
        let mut m = Machine::default();
        let start = m.state(false);
        match expr {
            Expr::Empty => m.finals[start] = true,
            Expr::Never => {}
            Expr::Bytes(bytes) => {
                let mut state = start;
                for &byte in bytes.iter() {
                    let next = m.state(false);
                    m.moves[state].push((one(byte), next));
                    state = next;
                }
                m.finals[state] = true;
            }
            Expr::Class(set) => {
                let end = m.state(true);
                let table: [bool; 256] = std::array::from_fn(|b| set.contains(b as u8));
                m.moves[start].push((Move::Bytes(Box::new(table)), end));
            }
            Expr::Special(special) => {
                let end = m.state(true);
                m.moves[start].push((Move::Special(special.raw()), end));
            }
            Expr::Ref(rule) => {
                let end = m.state(true);
                m.moves[start].push((Move::Call(rule.index()), end));
            }
            Expr::Seq(parts) => {
                let mut state = start;
                for part in parts {
                    let next = m.state(false);
                    m.moves[state].push((Move::Call(self.add(part)), next));
                    state = next;
                }
                m.finals[state] = true;
            }
            Expr::Alt(parts) => {
                let end = m.state(true);
                for part in parts {
                    m.moves[start].push((Move::Call(self.add(part)), end));
                }
            }
            Expr::Repeat { body, min, max } => {
                let body = self.add(body);
                let last = max.unwrap_or(*min) as usize;
                m.finals[start] = *min == 0 && max.is_none_or(|max| max >= *min);
                for count in 1..=last {
                    let is_final = count >= *min as usize;
                    let next = m.state(is_final);
                    m.moves[count - 1].push((Move::Call(body), next));
                }
                if max.is_none() {
                    m.moves[last].push((Move::Call(body), last));
                }
            }
            Expr::Automaton(dfa) => {
                m = Machine::default();
                for state in 0..dfa.len() as u32 {
                    m.state(dfa.is_final(state));
                }
                for state in 0..dfa.len() as u32 {
                    for edge in dfa.edges(state) {
                        let table: [bool; 256] =
                            std::array::from_fn(|b| (edge.lo..=edge.hi).contains(&(b as u32)));
                        m.moves[state as usize]
                            .push((Move::Bytes(Box::new(table)), edge.to as usize));
                    }
                }
            }
            Expr::Graph(graph) => {
                // A separate start, because the graph's start may be any node.
                for node in 0..graph.nodes {
                    m.state(graph.ends.contains(&node));
                }
                let empty = self.add(&Expr::Empty);
                m.moves[start].push((Move::Call(empty), graph.start as usize + 1));
                for (from, expr, to) in &graph.edges {
                    let call = self.add(expr);
                    m.moves[*from as usize + 1].push((Move::Call(call), *to as usize + 1));
                }
            }
            Expr::Members(members) => self.members(members, &mut m),
            Expr::Except(_) | Expr::Counted(_) => {
                let call = self.add(&match expr {
                    Expr::Except(except) => except.to_graph(),
                    Expr::Counted(counted) => counted.to_graph(),
                    other => other.clone(),
                });
                let end = m.state(true);
                m.moves[start].push((Move::Call(call), end));
            }
            Expr::Dispatch(dispatch) => m = free_text(dispatch),
            Expr::Deferred(_) => panic!("the oracle reads loaded grammars"),
        }
        m
    }

    /// Member sets by their definition: a state for every list of members.
    fn members(&mut self, members: &Members, m: &mut Machine) {
        let unique: Vec<usize> =
            members.unique.iter().map(|member| self.add(&member.body)).collect();
        let repeatable: Vec<usize> = members.repeatable.iter().map(|body| self.add(body)).collect();
        let separator = self.add(&members.separator);
        let may_end = |list: &[usize]| {
            let of_unique = list.iter().filter(|&&i| i < unique.len()).count();
            let distinct = match members.count_repeatable {
                true => list.len(),
                false => of_unique + usize::from(of_unique < list.len()),
            };
            members
                .unique
                .iter()
                .enumerate()
                .all(|(i, member)| !member.required || list.contains(&i))
                && members.clauses.iter().all(|clause| {
                    clause.present.iter().any(|i| list.contains(i))
                        || clause.absent.iter().any(|i| !list.contains(i))
                })
                && distinct >= members.min as usize
        };
        // Repeated members differ in nothing but their number, of which only what the bounds allow
        // counts.
        let bound = members.max.unwrap_or(members.min.max(1)) as usize;
        let mut states_by_list: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut pending = vec![Vec::new()];
        states_by_list.insert(Vec::new(), 0);
        m.finals[0] = may_end(&[]);
        while let Some(list) = pending.pop() {
            let mut from = states_by_list[&list];
            if members.max.is_some_and(|max| list.len() >= max as usize) {
                continue;
            }
            if !list.is_empty() {
                let before = m.state(false);
                m.moves[from].push((Move::Call(separator), before));
                from = before;
            }
            for (i, &body) in unique.iter().chain(&repeatable).enumerate() {
                if i < unique.len() && list.contains(&i) {
                    continue;
                }
                let mut longer = [&list[..], &[i.min(unique.len())]].concat();
                longer.sort_unstable();
                let more =
                    longer.iter().filter(|&&i| i == unique.len()).count().saturating_sub(bound);
                longer.truncate(longer.len() - more);
                let after = *states_by_list.entry(longer.clone()).or_insert_with(|| {
                    pending.push(longer.clone());
                    m.state(may_end(&longer))
                });
                m.moves[from].push((Move::Call(body), after));
            }
        }
    }

    /// Drops moves from which no sentence can be completed.
    fn prune(&mut self) {
        let mut alive: Vec<Vec<bool>> = self.machines.iter().map(|m| m.finals.clone()).collect();
        loop {
            let mut changed = false;
            for (i, machine) in self.machines.iter().enumerate() {
                for state in (0..machine.moves.len()).rev() {
                    let is_alive = machine.moves[state]
                        .iter()
                        .any(|(step, to)| alive[i][*to] && possible(step, &alive));
                    if is_alive && !alive[i][state] {
                        alive[i][state] = true;
                        changed = true;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        for (i, machine) in self.machines.iter_mut().enumerate() {
            for moves in &mut machine.moves {
                moves.retain(|(step, to)| alive[i][*to] && possible(step, &alive));
            }
        }
        self.productive = alive.iter().map(|states| states[0]).collect();
    }
}

/// Whether a move can be made at all.
fn possible(step: &Move, alive: &[Vec<bool>]) -> bool {
    match step {
        Move::Bytes(set) => set.contains(&true),
        Move::Special(_) => true,
        Move::Call(machine) => alive[*machine][0],
    }
}

/// What free text is preceded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    BeforeTags,
    AfterTag,
    /// A trigger that is the beginning of a longer pattern: only the rest of that pattern may
    /// follow.
    Longer,
}

/// Dispatch by its definition. Free text is followed by its longest suffix that begins a pattern (a
/// text trigger, a text stop, or an exclude). After each byte:
///
/// * If the longest exclude that the text ends with is longer than every trigger and stop it ends
///   with, the text is rejected.
/// * Every trigger that it ends with fires: its body follows. Every stop that it ends with ends the
///   dispatch.
/// * A text in front of a special token fires together with the token; alone, it is free text.
/// * If something fired, free text continues only where its suffix is exactly what fired and begins
///   a longer pattern, and then only with the rest of that pattern.
struct FreeText<'d> {
    dispatch: &'d Dispatch,
    patterns: Vec<&'d [u8]>,
    machine: Machine,
    /// The state after a stop, or after a last body.
    end_state: usize,
    states: HashMap<(Vec<u8>, Phase), usize>,
    pending: Vec<(Vec<u8>, Phase)>,
}

fn free_text(dispatch: &Dispatch) -> Machine {
    let excludes = dispatch.excludes.iter().map(Vec::as_slice);
    let patterns = triggers_of(dispatch).filter_map(bytes_of).chain(excludes).collect();
    let machine = Machine::default();
    let mut free = FreeText {
        dispatch,
        patterns,
        machine,
        end_state: 0,
        states: HashMap::new(),
        pending: Vec::new(),
    };
    free.state(Vec::new(), Phase::BeforeTags);
    free.end_state = free.machine.state(true);
    while let Some((text, phase)) = free.pending.pop() {
        free.bytes(&text, phase);
        free.specials(&text, phase);
    }
    free.machine
}

fn triggers_of(dispatch: &Dispatch) -> impl Iterator<Item = &Trigger> {
    dispatch.tags.iter().map(|(t, _)| t).chain(&dispatch.stops)
}

/// The bytes of a trigger.
fn bytes_of(trigger: &Trigger) -> Option<&[u8]> {
    match trigger {
        Trigger::Text(text) | Trigger::TextThenSpecial(text, _) => Some(text),
        Trigger::Special(_) => None,
    }
}

impl FreeText<'_> {
    /// The state of free text with this suffix.
    fn state(&mut self, text: Vec<u8>, phase: Phase) -> usize {
        if let Some(&state) = self.states.get(&(text.clone(), phase)) {
            return state;
        }
        let state = self.machine.state(match self.dispatch.end {
            DispatchEnd::Anywhere => phase != Phase::Longer,
            DispatchEnd::AfterOneTag => phase == Phase::AfterTag,
            DispatchEnd::AtStop => false,
        });
        self.states.insert((text.clone(), phase), state);
        self.pending.push((text, phase));
        state
    }

    /// The longest suffix of a text that begins a pattern.
    fn pattern_suffix(&self, text: &[u8]) -> Vec<u8> {
        let begins = |end: &[u8]| self.patterns.iter().any(|p| p.starts_with(end));
        let cut = (0..text.len()).find(|&i| begins(&text[i..])).unwrap_or(text.len());
        text[cut..].to_vec()
    }

    /// A state from which the bodies of these triggers follow, final if one of them is a stop.
    fn fire(&mut self, fires: impl Fn(&Trigger) -> bool) -> usize {
        let fired = self.machine.state(self.dispatch.stops.iter().any(&fires));
        for (trigger, body) in &self.dispatch.tags {
            if fires(trigger) {
                let after = match self.dispatch.after {
                    AfterTag::Loop => self.state(Vec::new(), Phase::AfterTag),
                    AfterTag::End => self.end_state,
                };
                self.machine.moves[fired].push((Move::Call(body.index()), after));
            }
        }
        fired
    }

    fn bytes(&mut self, text: &[u8], phase: Phase) {
        let from = self.state(text.to_vec(), phase);
        let dispatch = self.dispatch;
        for byte in 0..=255u8 {
            let grown = [text, &[byte]].concat();
            let next = self.pattern_suffix(&grown);
            if phase == Phase::Longer && next.len() != text.len() + 1 {
                continue;
            }
            let fires = |t: &Trigger| t.text().is_some_and(|t| grown.ends_with(t));
            let fired = triggers_of(dispatch)
                .filter(|t| fires(t))
                .filter_map(Trigger::text)
                .map(<[u8]>::len)
                .max();
            let excluded =
                dispatch.excludes.iter().filter(|e| grown.ends_with(e)).map(Vec::len).max();
            if excluded > fired {
                continue;
            }
            if fired.is_some() {
                let to = self.fire(fires);
                self.machine.moves[from].push((one(byte), to));
            }
            let led = triggers_of(dispatch)
                .any(|t| matches!(t, Trigger::TextThenSpecial(lead, _) if *lead == next));
            let longer =
                led || self.patterns.iter().any(|p| p.len() > next.len() && p.starts_with(&next));
            let next_phase = match fired {
                None => Some(phase),
                Some(len) if longer && len == next.len() => Some(Phase::Longer),
                Some(_) => None,
            };
            if let Some(phase) = next_phase {
                let to = self.state(next, phase);
                self.machine.moves[from].push((one(byte), to));
            }
        }
    }

    fn specials(&mut self, text: &[u8], phase: Phase) {
        let from = self.state(text.to_vec(), phase);
        let fires = |t: &Trigger, token: SpecialId| match t {
            Trigger::Special(special) => phase != Phase::Longer && *special == token,
            Trigger::TextThenSpecial(lead, special) if phase == Phase::Longer => {
                *special == token && text == lead
            }
            Trigger::TextThenSpecial(lead, special) => *special == token && text.ends_with(lead),
            Trigger::Text(_) => false,
        };
        let mut seen: Vec<SpecialId> = Vec::new();
        for trigger in triggers_of(self.dispatch) {
            if let Trigger::Special(special) | Trigger::TextThenSpecial(_, special) = trigger
                && fires(trigger, *special)
                && !seen.contains(special)
            {
                seen.push(*special);
                let to = self.fire(|t| fires(t, *special));
                self.machine.moves[from].push((Move::Special(special.raw()), to));
            }
        }
    }
}
