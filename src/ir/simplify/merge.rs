//! Merging of equivalent rules. Two rules are equivalent if their labels are equal and their bodies
//! are equal up to equivalent callees. Computes the coarsest such partition, so that copies of
//! mutually recursive rules merge as well.

use std::hash::Hasher as _;

use super::reach;
use crate::fsm::{Dfa, coarsest};
use crate::hash::{HashMap, Hasher, Seeded, hasher};
use crate::ids::RuleId;
use crate::ir::{
    AfterTag, Attributes, Dispatch, DispatchEnd, Expr, Grammar, Graph, Members, Rule, Trigger,
};

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    plan(grammar).map(|representatives| apply(grammar, &representatives)).is_some()
}

/// By rule: its representative; `None` if no two rules are equivalent. Linear if all hashes differ.
fn plan(grammar: &Grammar) -> Option<Vec<RuleId>> {
    let rules = grammar.rules.len();
    // Rules with a unique hash are equivalent to no other rule.
    let hashes: Vec<u64> = grammar.rules.iter().map(hash).collect();
    let mut sorted = hashes.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == rules {
        return None;
    }
    let mut count = vec![0u32; sorted.len()];
    let bucket: Vec<usize> =
        hashes.iter().map(|hash| sorted.partition_point(|h| h < hash)).collect();
    bucket.iter().for_each(|&at| count[at] += 1);
    let mut encoding = ExactEncoding::default();
    let mut keys_by_encoding: hashbrown::HashMap<Box<[u64]>, u32, Seeded> =
        hashbrown::HashMap::default();
    let mut keys = Vec::with_capacity(rules);
    let mut next = 0;
    let (mut tail, mut position, mut head) = (Vec::new(), Vec::new(), Vec::new());
    for (i, rule) in grammar.rules.iter().enumerate() {
        if count[bucket[i]] == 1 {
            keys.push(next);
            next += 1;
            continue;
        }
        encoding.words.clear();
        encoding.refs.clear();
        write_rule(rule, &mut encoding);
        let key = *keys_by_encoding.entry_ref(encoding.words.as_slice()).or_insert(next);
        next = next.max(key + 1);
        keys.push(key);
        for (at, target) in encoding.refs.iter().enumerate() {
            tail.push(i as u32);
            position.push(at as u32);
            head.push(target.raw());
        }
    }
    if next as usize == rules {
        return None;
    }
    let class = coarsest(&keys, &tail, &position, &head)?;
    // The first rule of a class represents it.
    let mut first: Vec<Option<RuleId>> = vec![None; rules];
    let representatives: Vec<RuleId> = (0..rules)
        .map(|rule| *first[class[rule] as usize].get_or_insert(RuleId::new(rule)))
        .collect();
    let all = representatives
        .iter()
        .enumerate()
        .all(|(rule, &representative)| representative.index() == rule);
    (!all).then_some(representatives)
}

/// Replaces each rule by its representative.
fn apply(grammar: &mut Grammar, representatives: &[RuleId]) {
    grammar.rules.iter_mut().for_each(|rule| {
        rule.body.remap(&|target| representatives[target.index()], &|special| special)
    });
    grammar.start = representatives[grammar.start.index()];
    let keep: Vec<bool> = representatives
        .iter()
        .enumerate()
        .map(|(rule, &representative)| representative.index() == rule)
        .collect();
    reach::retain(grammar, &keep);
}

/// Receives the encoding of a rule without its callees.
trait Encoder<'g> {
    /// A number.
    fn word(&mut self, word: u64);
    /// Bytes; their number has been written before.
    fn bytes(&mut self, bytes: &[u8]);
    /// A callee.
    fn reference(&mut self, rule: RuleId);
    /// A DFA.
    fn automaton(&mut self, dfa: &'g Dfa);
}

/// An encoder to a hash: different hashes imply different encodings.
struct HashEncoding(Hasher);

impl Encoder<'_> for HashEncoding {
    fn word(&mut self, word: u64) {
        self.0.write_u64(word);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn reference(&mut self, _: RuleId) {}

    fn automaton(&mut self, dfa: &Dfa) {
        self.0.write_u64((dfa.len() as u64) << 32 | dfa.edge_count() as u64);
    }
}

/// The hash of a rule's encoding.
fn hash(rule: &Rule) -> u64 {
    let mut hash = HashEncoding(hasher());
    write_rule(rule, &mut hash);
    hash.0.finish()
}

/// An encoder to words: compared in full.
#[derive(Default)]
struct ExactEncoding<'g> {
    words: Vec<u64>,
    refs: Vec<RuleId>,
    automata: HashMap<&'g Dfa, u64>,
}

impl<'g> Encoder<'g> for ExactEncoding<'g> {
    fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.words.extend(
            bytes.chunks(8).map(|chunk| chunk.iter().fold(0, |word, &b| word << 8 | u64::from(b))),
        );
    }

    fn reference(&mut self, rule: RuleId) {
        self.refs.push(rule);
    }

    fn automaton(&mut self, dfa: &'g Dfa) {
        let next = self.automata.len() as u64;
        self.words.push(*self.automata.entry(dfa).or_insert(next));
    }
}

/// Encodes a rule with its attributes.
fn write_rule<'g>(rule: &'g Rule, out: &mut impl Encoder<'g>) {
    let Attributes {
        label,
        capture,
        hidden,
        temperature,
        budget,
        scope,
        element,
        unique_key,
        unlikely,
    } = &rule.attributes;
    out.word(
        [*hidden, *scope, *element, *unique_key, *unlikely]
            .into_iter()
            .fold(0, |flags, flag| flags << 1 | u64::from(flag)),
    );
    out.word(label.map_or(0, |label| u64::from(label.raw()) + 1));
    out.word(capture.as_ref().map_or(0, |name| name.len() as u64 + 1));
    capture.iter().flat_map(|name| name.bytes()).for_each(|byte| out.word(byte.into()));
    out.word(temperature.map_or(u64::MAX, |t| u64::from(t.to_bits())));
    let (tokens, chars, on_exhausted) =
        budget.map_or((None, None, 0), |b| (b.tokens, b.chars, b.on_exhausted as u64 + 1));
    for bound in [tokens, chars] {
        out.word(bound.map_or(u64::MAX, u64::from));
    }
    out.word(on_exhausted);
    write(&rule.body, out);
}

/// A tag in the top byte, and a number below 2^56.
fn write_tag<'g>(out: &mut impl Encoder<'g>, kind: u8, number: usize) {
    out.word(u64::from(kind) << 56 | number as u64);
}

/// Encodes an expression.
fn write<'g>(expr: &'g Expr, out: &mut impl Encoder<'g>) {
    match expr {
        Expr::Empty => write_tag(out, 0, 0),
        Expr::Never => write_tag(out, 1, 0),
        Expr::Bytes(bytes) => literal(bytes, out),
        Expr::Class(set) => {
            write_tag(out, 3, 0);
            set.words().into_iter().for_each(|word| out.word(word));
        }
        Expr::Special(special) => write_tag(out, 4, special.index()),
        Expr::Ref(rule) => {
            write_tag(out, 5, 0);
            out.reference(*rule);
        }
        Expr::Seq(parts) => {
            write_tag(out, 6, parts.len());
            parts.iter().for_each(|part| write(part, out));
        }
        Expr::Alt(parts) => {
            write_tag(out, 7, parts.len());
            parts.iter().for_each(|part| write(part, out));
        }
        Expr::Repeat { body, min, max } => {
            write_tag(out, 8, *min as usize);
            out.word(max.map_or(0, |max| u64::from(max) + 1));
            write(body, out);
        }
        Expr::Automaton(dfa) => {
            write_tag(out, 9, 0);
            out.automaton(dfa);
        }
        Expr::Counted(counted) => {
            write_tag(out, 13, counted.min as usize);
            out.word(counted.max.map_or(0, |max| u64::from(max) + 1));
            write_graph(&counted.graph, out);
        }
        Expr::Graph(graph) => write_graph(graph, out),
        Expr::Except(except) => {
            write_tag(out, 12, except.words.len());
            except.words.iter().chain([&except.close]).for_each(|word| literal(word, out));
            except.leave.words().into_iter().for_each(|word| out.word(word));
            out.reference(except.tail);
            out.reference(except.other);
        }
        Expr::Members(members) => write_members(members, out),
        Expr::Dispatch(dispatch) => write_dispatch(dispatch, out),
        Expr::Deferred(deferred) => {
            write_tag(out, 20, 0);
            out.word(deferred.serial());
        }
    }
}

/// Encodes a graph.
fn write_graph<'g>(graph: &'g Graph, out: &mut impl Encoder<'g>) {
    write_tag(out, 10, graph.edges.len());
    out.word(u64::from(graph.nodes) << 32 | u64::from(graph.start));
    write_tag(out, 10, graph.ends.len());
    graph.ends.iter().for_each(|&end| out.word(end.into()));
    for (from, expr, to) in &graph.edges {
        out.word(u64::from(*from) << 32 | u64::from(*to));
        write(expr, out);
    }
}

/// Encodes a member set.
fn write_members<'g>(members: &'g Members, out: &mut impl Encoder<'g>) {
    write_tag(out, 14, members.unique.len());
    write_tag(out, 14, members.repeatable.len());
    write_tag(out, 14, members.min as usize);
    out.word(members.max.map_or(0, |max| u64::from(max) + 1));
    out.word(u64::from(members.count_repeatable));
    for chunk in members.unique.chunks(64) {
        out.word(chunk.iter().fold(0, |bits, member| bits << 1 | u64::from(member.required)));
    }
    write_tag(out, 14, members.clauses.len());
    for clause in &members.clauses {
        write_tag(out, 14, clause.present.len());
        write_tag(out, 14, clause.absent.len());
        clause.literals().for_each(|(member, _)| out.word(member as u64));
    }
    members.parts().for_each(|part| write(part, out));
}

/// Encodes a dispatch.
fn write_dispatch<'g>(dispatch: &Dispatch, out: &mut impl Encoder<'g>) {
    let Dispatch { tags, stops, excludes, after, end } = dispatch;
    write_tag(
        out,
        11,
        match after {
            AfterTag::Loop => 0,
            AfterTag::End => 1,
        },
    );
    write_tag(
        out,
        11,
        match end {
            DispatchEnd::Anywhere => 0,
            DispatchEnd::AfterOneTag => 1,
            DispatchEnd::AtStop => 2,
        },
    );
    for list in [tags.len(), stops.len(), excludes.len()] {
        write_tag(out, 11, list);
    }
    for (trigger, body) in tags {
        write_trigger(trigger, out);
        out.reference(*body);
    }
    stops.iter().for_each(|stop| write_trigger(stop, out));
    excludes.iter().for_each(|exclude| literal(exclude, out));
}

/// Encodes a trigger.
fn write_trigger<'g>(trigger: &Trigger, out: &mut impl Encoder<'g>) {
    match trigger {
        Trigger::Text(text) => literal(text, out),
        Trigger::Special(special) => write_tag(out, 4, special.index()),
        Trigger::TextThenSpecial(text, special) => {
            write_tag(out, 5, special.index());
            literal(text, out);
        }
    }
}

/// Encodes a literal.
fn literal<'g>(bytes: &[u8], out: &mut impl Encoder<'g>) {
    write_tag(out, 2, bytes.len());
    out.bytes(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{GrammarBuilder, Member};

    #[test]
    fn member_sets_merge_only_with_equal_required_members() {
        let set = |required: usize| {
            let member =
                |k: usize| Member { body: Expr::text(&format!("{k:03}")), required: k == required };
            Expr::Members(Box::new(Members {
                unique: (0..130).map(member).collect(),
                repeatable: Vec::new(),
                separator: Expr::text(","),
                min: 0,
                count_repeatable: false,
                max: None,
                clauses: Vec::new(),
            }))
        };
        let rules_after_merging = |first: usize, second: usize| {
            let mut builder = GrammarBuilder::new();
            let rules = [first, second].map(|k| Expr::Ref(builder.rule("object", set(k))));
            let start = builder.rule("start", Expr::seq(rules));
            let mut grammar = builder.into_grammar(start);
            run(&mut grammar);
            grammar.rules.len()
        };
        assert_eq!(rules_after_merging(5, 5), 2);
        for (first, second) in [(0, 1), (63, 64), (128, 129), (3, 67)] {
            assert_eq!(rules_after_merging(first, second), 3, "{first}, {second}");
        }
    }
}
