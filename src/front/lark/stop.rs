//! Whether a rule with `stop=` or its caller reads the stop marker: an analysis of what may follow.
//!
//! As in llguidance, what follows the rule reads the marker if nothing else could be read there.
//! Otherwise the rule reads it, as with `suffix=`.

use super::ast::{Marker, MarkerKind, Node, NodeKind, is_terminal};
use super::lower::FileLowering;
use crate::front::diagnostic::Diagnostic;
use crate::fsm::Dfa;
use crate::hash::{HashMap, HashSet};
use crate::ir::Expr;

/// Maximum number of bytes that are compared with a marker.
const MAX_COMPARED: usize = 1_024;
/// Maximum number of states of a terminal that is compared with a marker.
const MAX_STATES: usize = 10_000;

/// What can be read after a reference to a rule.
#[derive(Clone, Copy)]
enum Next {
    /// Items of the same rule, by their index in [`FollowIndex::list`].
    Items(usize),
    /// What follows the rule of this definition.
    EndOfRule(usize),
}

/// Items that follow a part of a rule.
struct FollowItems<'a, 't> {
    items: &'a [Node<'t>],
    /// All items may be left out: they are the body of a repeat.
    is_optional: bool,
    /// What can be read after them.
    next: Next,
}

/// What follows the references to each rule of a file (the FOLLOW relation of grammars).
struct FollowIndex<'a, 't> {
    list: Vec<FollowItems<'a, 't>>,
    /// What can be read after each reference, per definition.
    after: Vec<Vec<Next>>,
    /// Whether a rule can be empty, per definition.
    is_empty: Vec<bool>,
}

/// Who reads the marker of a rule.
#[derive(Default)]
struct Readings {
    /// Somewhere all that can follow begins with it.
    by_next: bool,
    /// Somewhere something else can follow.
    by_rule: bool,
}

impl<'a, 't> FileLowering<'_, '_, 'a, 't> {
    /// Finds the rules whose markers are read by what follows them; reports those for which it
    /// depends on the reference.
    pub(super) fn find_kept_markers(&mut self) {
        let file = self.file;
        self.kept = vec![false; file.definitions.len()];
        let stops: Vec<(usize, &'a Marker<'t>)> = (0..)
            .zip(&file.definitions)
            .filter_map(|(i, definition)| {
                let marker = definition.attributes.marker.as_ref();
                Some(i).zip(marker.filter(|marker| marker.kind == MarkerKind::Stop))
            })
            .collect();
        // Ignored text could follow everywhere.
        if stops.is_empty() || self.ignore.is_some() {
            return;
        }
        let Some(follow) = self.follow() else { return };
        let mut known = HashMap::default();
        for (i, marker) in stops {
            let expr = self.text(&marker.node);
            let Some(words) = self.dfa(&expr, &marker.node.span) else { continue };
            let words = words.shortest();
            let readings = self.readings(&follow, i, &words, &mut known);
            self.kept[i] = readings.by_next;
            let word = words.shortest_word().unwrap_or_default();
            if readings.by_next && (readings.by_rule || words != Dfa::word(word)) {
                let name = self.file.definitions[i].name.value;
                let message = format!(
                    "only in some cases is `{name}` followed by its `stop` text, which would be \
                     read once there and twice elsewhere"
                );
                self.session.report(
                    Diagnostic::error(marker.node.span.clone(), message)
                        .help("write `suffix=`, so that the text is part of the rule"),
                );
            }
        }
    }

    /// Indexes the references to rules. `None` if the budget of nodes is spent, which is reported.
    fn follow(&mut self) -> Option<FollowIndex<'a, 't>> {
        let file = self.file;
        let count = file.definitions.len();
        let (list, after, is_empty) = (Vec::new(), vec![Vec::new(); count], vec![false; count]);
        let mut follow = FollowIndex { list, after, is_empty };
        for (i, definition) in file.definitions.iter().enumerate() {
            if !is_terminal(definition.name.value) {
                follow.add(&definition.body, Next::EndOfRule(i), &self.index);
            }
        }
        let mut is_stable = false;
        while !is_stable {
            if !self.session.spend(count, &file.span) {
                return None;
            }
            is_stable = true;
            for i in (0..count).rev().filter(|&i| !is_terminal(file.definitions[i].name.value)) {
                let definition = &file.definitions[i];
                let is_empty = definition.attributes.allow_nothing()
                    || follow.can_be_empty(&definition.body, &self.index);
                is_stable &= follow.is_empty[i] == is_empty;
                follow.is_empty[i] = is_empty;
            }
        }
        Some(follow)
    }

    /// Who reads the marker of a rule, by what can follow the rule. `known` has what terminals
    /// begin with.
    fn readings(
        &mut self,
        follow: &FollowIndex<'a, 't>,
        rule: usize,
        words: &Dfa,
        known: &mut HashMap<usize, Vec<u8>>,
    ) -> Readings {
        let mut found = Readings::default();
        // What comes next, and whether the marker can have been read before it.
        let mut pending: Vec<(Next, bool)> =
            follow.after[rule].iter().map(|&next| (next, false)).collect();
        let mut seen = HashSet::default();
        while let Some((next, may_be_read)) = pending.pop() {
            match next {
                Next::EndOfRule(i) if seen.insert((i, may_be_read)) => {
                    let is_start = self.file.definitions[i].name.value == "start";
                    found.by_rule |= is_start;
                    found.by_next |= is_start && may_be_read;
                    pending.extend(follow.after[i].iter().map(|&next| (next, may_be_read)));
                }
                Next::EndOfRule(_) => {}
                Next::Items(at) => {
                    let after = &follow.list[at];
                    let (first, is_open) = self.first_terminals(follow, after);
                    if !first.iter().all(|node| self.begins_with(node, words, known)) {
                        found.by_rule = true;
                        continue;
                    }
                    let may_be_read = may_be_read || !first.is_empty();
                    match is_open {
                        true => pending.push((after.next, may_be_read)),
                        false => found.by_next = true,
                    }
                }
            }
        }
        found
    }

    /// The nodes that can be read first in items, and whether all of them can be left out.
    fn first_terminals(
        &mut self,
        follow: &FollowIndex<'a, 't>,
        after: &FollowItems<'a, 't>,
    ) -> (Vec<&'a Node<'t>>, bool) {
        let (mut first, mut rules) = (Vec::new(), Vec::new());
        let file = self.file;
        let mut is_open = follow.first(after.items, &self.index, &mut first, &mut rules);
        let mut seen = HashSet::default();
        while let Some(i) = rules.pop() {
            let definition = &file.definitions[i];
            if definition.attributes.allow_nothing() || !seen.insert(i) {
                continue;
            }
            if !self.session.spend(1, &definition.name.span) || definition.attributes.is_shortest()
            {
                // A body that no marker is compared with.
                first.push(&definition.body);
                is_open = false;
                continue;
            }
            let body = std::slice::from_ref(&definition.body);
            follow.first(body, &self.index, &mut first, &mut rules);
        }
        (first, is_open || after.is_optional)
    }

    /// Whether all texts of a terminal begin with a word of a marker.
    fn begins_with(
        &mut self,
        node: &'a Node<'t>,
        words: &Dfa,
        known: &mut HashMap<usize, Vec<u8>>,
    ) -> bool {
        let is_compared = match &node.kind {
            NodeKind::Name(name) => is_terminal(name),
            NodeKind::Text(..) | NodeKind::Regex(..) | NodeKind::Range(..) => true,
            _ => false,
        };
        if !is_compared {
            return false;
        }
        let forced = known.entry(node.span.start);
        let forced = forced.or_insert_with(|| self.forced_beginning(node));
        let mut state = Some(0).filter(|_| !words.is_empty());
        for &byte in &*forced {
            state = state.and_then(|state| words.next(state, byte.into()));
            if state.is_some_and(|state| words.is_final(state)) {
                return true;
            }
        }
        false
    }

    /// The bytes with which all texts of a terminal begin.
    fn forced_beginning(&mut self, node: &'a Node<'t>) -> Vec<u8> {
        let expr = self.text(node);
        if let Expr::Bytes(bytes) = &expr {
            return bytes.iter().copied().take(MAX_COMPARED).collect();
        }
        let Ok(dfa) = self.session.automaton(&expr, MAX_STATES) else { return Vec::new() };
        let (mut bytes, mut state) = (Vec::new(), 0);
        while bytes.len() < MAX_COMPARED
            && !dfa.is_empty()
            && !dfa.is_final(state)
            && let [edge] = dfa.edges(state)
            && edge.lo == edge.hi
        {
            bytes.extend(u8::try_from(edge.lo));
            state = edge.to;
        }
        bytes
    }
}

impl<'a, 't> FollowIndex<'a, 't> {
    /// Adds the references in a node, which `next` follows.
    fn add(&mut self, node: &'a Node<'t>, next: Next, index: &HashMap<&'t str, usize>) {
        match &node.kind {
            NodeKind::Name(name) if !is_terminal(name) => {
                if let Some(&i) = index.get(name) {
                    self.after[i].push(next);
                }
            }
            NodeKind::Seq(items) => {
                for (i, item) in items.iter().enumerate() {
                    let next = match &items[i + 1..] {
                        [] => next,
                        rest => self.add_items(rest, false, next),
                    };
                    self.add(item, next, index);
                }
            }
            NodeKind::Alt(list) => list.iter().for_each(|part| self.add(part, next, index)),
            NodeKind::Repeat(body, _, max) => {
                let next = match max {
                    Some(0 | 1) => next,
                    _ => self.add_items(std::slice::from_ref(&**body), true, next),
                };
                self.add(body, next, index);
            }
            _ => {}
        }
    }

    /// Adds items that follow a part of a rule.
    fn add_items(&mut self, items: &'a [Node<'t>], is_optional: bool, next: Next) -> Next {
        self.list.push(FollowItems { items, is_optional, next });
        Next::Items(self.list.len() - 1)
    }

    /// Whether a node can derive the empty text. Terminals do not: markers are compared with them.
    fn can_be_empty(&self, node: &Node<'t>, index: &HashMap<&'t str, usize>) -> bool {
        match &node.kind {
            NodeKind::Text(text, _) => text.is_empty(),
            NodeKind::Name(name) if !is_terminal(name) => {
                index.get(name).is_some_and(|&i| self.is_empty[i])
            }
            NodeKind::Seq(items) => items.iter().all(|item| self.can_be_empty(item, index)),
            NodeKind::Alt(list) => list.iter().any(|part| self.can_be_empty(part, index)),
            NodeKind::Repeat(body, min, _) => *min == 0 || self.can_be_empty(body, index),
            _ => false,
        }
    }

    /// Adds what can be read first of some items: terminals and rules. Returns whether all of them
    /// can be empty.
    fn first(
        &self,
        items: &'a [Node<'t>],
        index: &HashMap<&'t str, usize>,
        terminals: &mut Vec<&'a Node<'t>>,
        rules: &mut Vec<usize>,
    ) -> bool {
        for item in items {
            match &item.kind {
                NodeKind::Name(name) if !is_terminal(name) => rules.extend(index.get(name)),
                NodeKind::Seq(items) => {
                    self.first(items, index, terminals, rules);
                }
                NodeKind::Alt(list) => {
                    for part in list {
                        self.first(std::slice::from_ref(part), index, terminals, rules);
                    }
                }
                NodeKind::Repeat(body, ..) => {
                    self.first(std::slice::from_ref(&**body), index, terminals, rules);
                }
                NodeKind::Text(text, _) if text.is_empty() => {}
                _ => terminals.push(item),
            }
            if !self.can_be_empty(item, index) {
                return false;
            }
        }
        true
    }
}
