//! The brute-force recogniser: a textbook Earley chart over text positions, on the plain
//! [`Network`]. It shares nothing with the engine but the grammar's type.

use std::sync::Arc;

use louver::ids::TokenId;
use louver::ir::{Grammar, SpecialToken};
use louver::vocab::Vocabulary;
use std::collections::{HashMap, HashSet};

use super::machine::{Move, Network};

/// A partly run machine: its state, and the position at which it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Item {
    machine: usize,
    state: usize,
    origin: usize,
}

/// The Earley item set of one position.
#[derive(Clone, Debug, Default)]
struct Column {
    items: Vec<Item>,
    seen: HashSet<Item>,
    /// By machine: items that continue once the machine that began here has ended.
    waiting: HashMap<usize, Vec<Item>>,
    /// The same as pairs, for look-up.
    waits: HashSet<(usize, Item)>,
    /// Machines that began here and have ended here.
    empty: HashSet<usize>,
}

/// A byte or a special token of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    Byte(u8),
    Special(u32),
}

/// Replaces a length by a smaller one; returns whether it was smaller.
fn lower(slot: &mut Option<u64>, value: Option<u64>) -> bool {
    let lower = value.is_some_and(|v| slot.is_none_or(|s| v < s));
    if lower {
        *slot = value;
    }
    lower
}

/// A chart that grows and shrinks at its end.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    network: Arc<Network>,
    start: usize,
    specials: Vec<SpecialToken>,
    columns: Vec<Column>,
    work: usize,
}

impl Oracle {
    pub(crate) fn new(grammar: &Grammar) -> Oracle {
        let mut oracle = Oracle {
            network: Arc::new(Network::new(grammar)),
            start: grammar.start.index(),
            specials: grammar.specials.clone(),
            columns: vec![Column::default()],
            work: 0,
        };
        if oracle.derives_something() {
            oracle.add(0, Item { machine: oracle.start, state: 0, origin: 0 });
            oracle.close(0);
        }
        oracle
    }

    /// Whether the grammar has a sentence at all.
    pub(crate) fn derives_something(&self) -> bool {
        self.network.productive[self.start]
    }

    /// Symbols read so far.
    pub(crate) fn position(&self) -> usize {
        self.columns.len() - 1
    }

    /// Items made so far, the cost of the oracle's answers. Ambiguous grammars with nested counters
    /// need very many.
    pub(crate) fn work(&self) -> usize {
        self.work
    }

    /// Reads a symbol if the text remains the beginning of a sentence; otherwise changes nothing.
    pub(crate) fn push(&mut self, symbol: Symbol) -> bool {
        let position = self.columns.len();
        self.columns.push(Column::default());
        let network = self.network.clone();
        for i in 0..self.columns[position - 1].items.len() {
            let item = self.columns[position - 1].items[i];
            for &(ref step, to) in &network.machines[item.machine].moves[item.state] {
                let reads = match (step, symbol) {
                    (Move::Bytes(set), Symbol::Byte(byte)) => set[usize::from(byte)],
                    (Move::Special(s), Symbol::Special(t)) => *s == t,
                    _ => false,
                };
                if reads {
                    self.add(position, Item { state: to, ..item });
                }
            }
        }
        self.close(position);
        let alive = !self.columns[position].items.is_empty();
        if !alive {
            self.columns.pop();
        }
        alive
    }

    /// Drops everything after a position.
    pub(crate) fn back_to(&mut self, position: usize) {
        self.columns.truncate(position + 1);
    }

    /// Whether the text is a sentence.
    pub(crate) fn is_complete(&self) -> bool {
        let finals = &self.network.machines[self.start].finals;
        let column = self.columns.last().expect("there is always a column");
        column.items.iter().any(|i| i.machine == self.start && i.origin == 0 && finals[i.state])
    }

    /// The symbols that a token stands for; None if the grammar cannot read it.
    pub(crate) fn symbols(&self, vocab: &Vocabulary, token: TokenId) -> Option<Vec<Symbol>> {
        if let Some(bytes) = vocab.bytes(token)
            && !vocab.is_stop(token)
        {
            return Some(bytes.iter().map(|&b| Symbol::Byte(b)).collect());
        }
        let named = |special: &SpecialToken| match special {
            SpecialToken::Name(name) => vocab.special(name) == Some(token),
            SpecialToken::Id(id) => *id == token.raw(),
            SpecialToken::AnyOf(_) | SpecialToken::AnyBut(_) => {
                unreachable!("the oracle knows single tokens")
            }
        };
        self.specials.iter().position(named).map(|i| vec![Symbol::Special(i as u32)])
    }

    /// Reads a token as [`Oracle::push`] reads a symbol.
    pub(crate) fn push_token(&mut self, vocab: &Vocabulary, token: TokenId) -> bool {
        let Some(symbols) = self.symbols(vocab, token) else { return false };
        let before = self.position();
        for symbol in symbols {
            if !self.push(symbol) {
                self.back_to(before);
                return false;
            }
        }
        true
    }

    /// The mask by definition: a token may follow if reading it succeeds, and a stop token also
    /// where the text is a sentence.
    pub(crate) fn mask(&mut self, vocab: &Vocabulary) -> Vec<bool> {
        let before = self.position();
        (0..vocab.width())
            .map(|id| {
                let token = TokenId::new(id);
                let allowed = self.push_token(vocab, token);
                self.back_to(before);
                allowed || vocab.is_stop(token) && self.is_complete()
            })
            .collect()
    }

    /// The fewest bytes that complete the text, where a special token counts `special`. By
    /// relaxation to a fixpoint: first within machines, then through the machines that wait for
    /// them.
    pub(crate) fn shortest(&self, special: u64) -> Option<u64> {
        let machines = &self.network.machines;
        let mut within: Vec<Vec<Option<u64>>> =
            machines.iter().map(|m| m.finals.iter().map(|&f| f.then_some(0)).collect()).collect();
        loop {
            let mut changed = false;
            for (m, machine) in machines.iter().enumerate() {
                for (state, moves) in machine.moves.iter().enumerate() {
                    for (step, to) in moves {
                        let own = match step {
                            Move::Bytes(_) => Some(1),
                            Move::Special(_) => Some(special),
                            Move::Call(callee) => within[*callee][0],
                        };
                        let total = own.zip(within[m][*to]).map(|(a, b)| a + b);
                        changed |= lower(&mut within[m][state], total);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        // From the end of a machine that began at a position.
        let mut beyond: HashMap<(usize, usize), Option<u64>> = HashMap::default();
        loop {
            let mut changed = false;
            for (origin, column) in self.columns.iter().enumerate() {
                for (&machine, callers) in &column.waiting {
                    let mut least = beyond.get(&(machine, origin)).copied().flatten();
                    for caller in callers {
                        let end = self.after(&beyond, caller.machine, caller.origin);
                        let total =
                            within[caller.machine][caller.state].zip(end).map(|(a, b)| a + b);
                        changed |= lower(&mut least, total);
                    }
                    beyond.insert((machine, origin), least);
                }
            }
            if !changed {
                break;
            }
        }
        let items = self.columns.last().map_or(&[][..], |column| &column.items);
        let length =
            |i: &Item| within[i.machine][i.state].zip(self.after(&beyond, i.machine, i.origin));
        items.iter().filter_map(length).map(|(a, b)| a + b).min()
    }

    /// The shortest completion after a machine that began at a position.
    fn after(
        &self,
        beyond: &HashMap<(usize, usize), Option<u64>>,
        machine: usize,
        origin: usize,
    ) -> Option<u64> {
        let waited = beyond.get(&(machine, origin)).copied().flatten();
        if machine == self.start && origin == 0 { Some(0) } else { waited }
    }

    fn add(&mut self, at: usize, item: Item) {
        let column = &mut self.columns[at];
        if column.seen.insert(item) {
            column.items.push(item);
            self.work += 1;
        }
    }

    /// Predicts and completes to a fixpoint.
    fn close(&mut self, at: usize) {
        let network = self.network.clone();
        let mut next = 0;
        while next < self.columns[at].items.len() {
            let item = self.columns[at].items[next];
            next += 1;
            let machine = &network.machines[item.machine];
            if machine.finals[item.state] {
                if item.origin == at {
                    self.columns[at].empty.insert(item.machine);
                }
                let waiting = self.columns[item.origin]
                    .waiting
                    .get(&item.machine)
                    .cloned()
                    .unwrap_or_default();
                for caller in waiting {
                    self.add(at, caller);
                }
            }
            for &(ref step, to) in &machine.moves[item.state] {
                let Move::Call(callee) = *step else { continue };
                let caller = Item { state: to, ..item };
                if self.columns[at].waits.insert((callee, caller)) {
                    self.columns[at].waiting.entry(callee).or_default().push(caller);
                }
                self.add(at, Item { machine: callee, state: 0, origin: at });
                if self.columns[at].empty.contains(&callee) {
                    self.add(at, caller);
                }
            }
        }
    }
}
