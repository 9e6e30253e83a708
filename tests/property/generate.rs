//! Random grammars of every kind of expression over the letters `a` to `d`, and random
//! vocabularies.

use std::sync::Arc;

use louver::fsm::{ByteSet, DfaBuilder};
use louver::ids::{RuleId, SpecialId, TokenId};
use louver::ir::{
    AfterTag, Attributes, Counted, Dispatch, DispatchEnd, Except, Expr, Grammar, Graph, Member,
    Members, PresenceClause, Rule, SpecialToken, Trigger,
};
use louver::vocab::Vocabulary;
use proptest::collection::vec;
use proptest::prelude::*;

/// Id of the stop token of every random vocabulary.
pub(crate) const STOP: TokenId = TokenId::from_raw(0);
const SPECIALS: [&str; 2] = ["<x>", "<y>"];
pub(crate) const LETTERS: &[u8] = b"abcd";
const MAX_RULES: u32 = 4;

/// The tokens of a random vocabulary.
#[derive(Clone, Debug)]
pub(crate) struct VocabularyTexts {
    words: Vec<Vec<u8>>,
    letters: usize,
    padding: usize,
}

impl VocabularyTexts {
    /// Id 0 is the stop token, 1 and 2 are special, 3 is unused. Then come single letters, words
    /// (some repeated), and padding.
    pub(crate) fn build(&self) -> Vocabulary {
        let mut builder = Vocabulary::builder(4 + self.letters + self.words.len() + self.padding);
        builder.special(0, "<stop>").stop(0).special(1, SPECIALS[0]).special(2, SPECIALS[1]);
        let letters = LETTERS[..self.letters].chunks(1);
        for (id, word) in (4..).zip(letters.chain(self.words.iter().map(Vec::as_slice))) {
            builder.token(id, word);
        }
        builder.build().expect("a valid vocabulary")
    }
}

pub(crate) fn vocabulary() -> impl Strategy<Value = VocabularyTexts> {
    // Fewer letters than the grammar has: some grammars then need bytes that no token has.
    (vec(word(1..6), 0..14), 2..=LETTERS.len(), 0usize..40)
        .prop_map(|(words, letters, padding)| VocabularyTexts { words, letters, padding })
}

fn letter() -> impl Strategy<Value = u8> {
    // Mostly the first two, so that words share beginnings.
    prop_oneof![4 => Just(b'a'), 4 => Just(b'b'), 2 => Just(b'c'), 1 => Just(b'd')]
}

fn word(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(letter(), len.clone()), 1 => (letter(), len).prop_map(|(b, n)| vec![b; n])]
}

/// Grammars with special tokens.
pub(crate) fn grammar() -> impl Strategy<Value = Grammar> {
    rules(true)
}

/// Grammars over bytes only.
pub(crate) fn byte_grammar() -> impl Strategy<Value = Grammar> {
    rules(false)
}

/// The same with wide bounds around all repeats.
pub(crate) fn wide_grammar() -> impl Strategy<Value = Grammar> {
    (rules(true), expr(true), 0u32..30, 18u32..80).prop_map(|(mut grammar, body, min, more)| {
        let count = grammar.rules.len() as u32;
        let mut body = Expr::Repeat { body: Box::new(body), min, max: Some(min + more) };
        wrap_refs(&mut body, count);
        let start = &mut grammar.rules[0].body;
        *start = Expr::Seq(vec![body, std::mem::replace(start, Expr::Empty)]);
        grammar.rules.iter_mut().for_each(|rule| widen(&mut rule.body));
        grammar
    })
}

fn widen(expr: &mut Expr) {
    match expr {
        Expr::Repeat { body, min, max } => {
            widen(body);
            *max = max.map(|max| *min + 18 + max % 60);
        }
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter_mut().for_each(widen),
        _ => {}
    }
}

fn rules(specials: bool) -> impl Strategy<Value = Grammar> {
    // The start has several parts and each rule has a way to end; otherwise too many grammars
    // derive little or nothing.
    let start = prop_oneof![
        3 => vec(expr(specials), 1..4).prop_map(Expr::Seq),
        1 => expr(specials),
    ];
    let way_out =
        prop_oneof![3 => word(1..3).prop_map(|word| Expr::bytes(&word)), 1 => Just(Expr::Empty)];
    let body = prop_oneof![
        4 => (vec(expr(specials), 1..3), way_out).prop_map(|(mut parts, way_out)| {
            parts.push(way_out);
            Expr::Alt(parts)
        }),
        1 => expr(specials),
    ];
    (start, vec(body, 0..MAX_RULES as usize)).prop_map(move |(start, mut bodies)| {
        bodies.insert(0, start);
        let count = bodies.len() as u32;
        let rules = bodies.into_iter().enumerate().map(|(i, mut body)| {
            wrap_refs(&mut body, count);
            Rule { name: format!("r{i}"), body, attributes: Attributes::default() }
        });
        let specials = if specials {
            SPECIALS.map(|s| SpecialToken::Name(s.to_owned())).to_vec()
        } else {
            Vec::new()
        };
        Grammar { rules: rules.collect(), start: RuleId::new(0), specials }
    })
}

fn wrap(rule: &mut RuleId, count: u32) {
    *rule = RuleId::from_raw(rule.raw() % count);
}

/// Maps references, which were drawn before the number of rules was known, to rules that exist.
fn wrap_refs(expr: &mut Expr, count: u32) {
    match expr {
        Expr::Ref(rule) => wrap(rule, count),
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter_mut().for_each(|p| wrap_refs(p, count)),
        Expr::Repeat { body, .. } => wrap_refs(body, count),
        Expr::Graph(graph) => graph.edges.iter_mut().for_each(|(_, e, _)| wrap_refs(e, count)),
        Expr::Members(members) => members.parts_mut().for_each(|part| wrap_refs(part, count)),
        Expr::Counted(counted) => {
            counted.graph.edges.iter_mut().for_each(|(_, e, _)| wrap_refs(e, count))
        }
        Expr::Except(except) => {
            [&mut except.tail, &mut except.other].into_iter().for_each(|rule| wrap(rule, count))
        }
        Expr::Dispatch(dispatch) => {
            dispatch.tags.iter_mut().for_each(|(_, rule)| wrap(rule, count))
        }
        Expr::Empty | Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => {}
        Expr::Automaton(_) | Expr::Deferred(_) => {}
    }
}

fn expr(specials: bool) -> impl Strategy<Value = Expr> {
    let special = if specials { 2 } else { 0 };
    let leaf = prop_oneof![
        2 => Just(Expr::Empty),
        1 => Just(Expr::Never),
        16 => word(1..4).prop_map(|word| Expr::bytes(&word)),
        1 => Just(Expr::Class(ByteSet::EMPTY)),
        8 => vec(letter(), 1..4).prop_map(|letters| Expr::Class(ByteSet::from_bytes(&letters))),
        2 * special => (0..SPECIALS.len()).prop_map(|s| Expr::Special(SpecialId::new(s))),
        16 => (0..MAX_RULES).prop_map(|r| Expr::Ref(RuleId::from_raw(r))),
        4 => automaton(),
        4 => dispatch(specials),
        // At most ten options may have no weight.
        4 => prop_oneof![except(), counted()],
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            4 => vec(inner.clone(), 0..4).prop_map(Expr::Seq),
            6 => vec(inner.clone(), 1..4).prop_map(Expr::Alt),
            6 => (inner.clone(), bounds()).prop_map(|(body, (min, max))| {
                Expr::Repeat { body: Box::new(body), min, max }
            }),
            2 => graph(inner.clone()),
            3 => members(inner),
        ]
    })
}

/// Small bounds, and ones too large to copy states when nested.
fn bounds() -> impl Strategy<Value = (u32, Option<u32>)> {
    prop_oneof![
        6 => (0u32..3, proptest::option::of(2u32..5)),
        1 => (0u32..4, (0u32..3).prop_map(Some)),
        1 => (0u32..12, (10u32..40).prop_map(Some)),
        1 => (0u32..90, proptest::option::of(60u32..150)),
    ]
}

pub(crate) fn automaton() -> impl Strategy<Value = Expr> {
    let state = (proptest::bool::weighted(0.7), vec(proptest::option::of(0u32..4), LETTERS.len()));
    vec(state, 1..5).prop_map(|states| {
        let mut builder = DfaBuilder::new();
        for (is_final, _) in &states {
            builder.state(*is_final);
        }
        for (from, (_, edges)) in (0u32..).zip(&states) {
            for (letter, to) in LETTERS.iter().zip(edges) {
                if let Some(to) = to {
                    let letter = u32::from(*letter);
                    builder.edge(from, letter, letter, to % states.len() as u32);
                }
            }
        }
        Expr::Automaton(Arc::new(builder.finish()))
    })
}

fn graph(inner: impl Strategy<Value = Expr>) -> impl Strategy<Value = Expr> {
    let edge = (0u32..4, prop_oneof![3 => inner, 1 => Just(Expr::Empty)], 0u32..4);
    (1u32..5, 0u32..4, vec(0u32..4, 1..3), vec(edge, 1..7)).prop_map(
        |(nodes, start, ends, edges)| {
            let edges = edges.into_iter().map(|(from, expr, to)| (from % nodes, expr, to % nodes));
            let ends = ends.into_iter().map(|n| n % nodes).collect();
            Expr::Graph(Box::new(Graph {
                nodes,
                start: start % nodes,
                ends,
                edges: edges.collect(),
            }))
        },
    )
}

/// Members that begin with a letter, so that none is empty. Often with the same letter, so that
/// they diverge late.
fn members(inner: impl Strategy<Value = Expr> + Clone + 'static) -> impl Strategy<Value = Expr> {
    let body = (word(1..3), inner.clone())
        .prop_map(|(word, expr)| Expr::Seq(vec![Expr::bytes(&word), expr]))
        .boxed();
    let unique =
        (body.clone(), any::<bool>()).prop_map(|(body, required)| Member { body, required });
    let separator = prop_oneof![4 => word(1..3).prop_map(|word| Expr::bytes(&word)), 1 => inner];
    let repeatable = prop_oneof![2 => vec(body.clone(), 0..1), 1 => vec(body, 1..3)];
    let min = prop_oneof![3 => Just(0u32), 1 => 1u32..4];
    let max = prop_oneof![3 => Just(None), 1 => (0u32..5).prop_map(Some)];
    let bounds = (min, any::<bool>(), max);
    (vec(unique, 0..5), repeatable, separator, bounds, clauses()).prop_map(
        |(unique, repeatable, separator, bounds, mut clauses)| {
            let (mut min, count_repeatable, mut max) = bounds;
            clauses.retain(|clause| {
                clause.present.iter().chain(&clause.absent).all(|&i| i < unique.len())
            });
            if !clauses.is_empty() {
                (min, max) = (min.min(1), None);
            }
            Expr::Members(Box::new(Members {
                unique,
                repeatable,
                separator,
                min,
                count_repeatable,
                max,
                clauses,
            }))
        },
    )
}

/// Clauses on the presence of members, all of one kind that is decided while members are read.
fn clauses() -> impl Strategy<Value = Vec<PresenceClause>> {
    let members = |most: usize| vec(0usize..5, 0..most + 1);
    let clauses = |present: usize, absent: usize| {
        let clause = (members(present), members(absent));
        vec(clause.prop_map(|(present, absent)| PresenceClause { present, absent }), 1..5)
    };
    let two = vec((0usize..5, 0usize..5, 0u8..4), 1..6).prop_map(|list| {
        let clause = |(a, b, kind)| match kind {
            0 => PresenceClause { present: vec![a, b], absent: Vec::new() },
            1 => PresenceClause { present: Vec::new(), absent: vec![a, b] },
            _ => PresenceClause { present: vec![a], absent: vec![b] },
        };
        list.into_iter().map(clause).collect()
    });
    let one_of = vec(0usize..5, 2..5).prop_map(|mut list| {
        list.sort_unstable();
        list.dedup();
        let pairs = list.iter().flat_map(|&a| list.iter().map(move |&b| vec![a, b]));
        let pairs = pairs.filter(|pair| pair[0] < pair[1]);
        let exclusions = pairs.map(|absent| PresenceClause { present: Vec::new(), absent });
        let first = PresenceClause { present: list.clone(), absent: Vec::new() };
        [first].into_iter().chain(exclusions).collect()
    });
    prop_oneof![
        4 => Just(Vec::new()),
        1 => clauses(3, 1),
        1 => clauses(0, 3),
        1 => two,
        1 => one_of,
    ]
}

fn counted() -> impl Strategy<Value = Expr> {
    let step = prop_oneof![
        word(1..4).prop_map(|word| Expr::bytes(&word)),
        vec(letter(), 1..4).prop_map(|letters| Expr::Class(ByteSet::from_bytes(&letters))),
    ];
    (graph(step), 0..5u32, proptest::option::of(0..7u32)).prop_map(|(graph, min, max)| {
        let Expr::Graph(mut graph) = graph else { return Expr::Never };
        graph.edges.retain(|(_, step, _)| *step != Expr::Empty);
        Expr::Counted(Box::new(Counted { graph: *graph, min, max }))
    })
}

fn except() -> impl Strategy<Value = Expr> {
    let words = proptest::collection::btree_set(word(0..4), 0..4);
    let rule = || (0..MAX_RULES).prop_map(RuleId::from_raw);
    (words, vec(letter(), 0..4), rule(), rule(), word(1..3)).prop_map(
        |(words, leave, tail, other, close)| {
            let (words, leave) =
                (words.into_iter().map(Into::into).collect(), ByteSet::from_bytes(&leave));
            Expr::Except(Box::new(Except { words, leave, tail, other, close: close.into() }))
        },
    )
}

fn dispatch(specials: bool) -> impl Strategy<Value = Expr> {
    let special = if specials { 1 } else { 0 };
    let trigger = prop_oneof![
        4 => word(1..4).prop_map(Trigger::Text),
        special => (0..SPECIALS.len()).prop_map(|s| Trigger::Special(SpecialId::new(s))),
        special => (word(1..3), 0..SPECIALS.len())
            .prop_map(|(text, s)| Trigger::TextThenSpecial(text, SpecialId::new(s))),
    ];
    let end = prop_oneof![2 => Just(DispatchEnd::Anywhere), 1 => Just(DispatchEnd::AfterOneTag), 1 => Just(DispatchEnd::AtStop)];
    (
        vec((trigger.clone(), (0..MAX_RULES).prop_map(RuleId::from_raw)), 0..4),
        vec(trigger, 0..3),
        vec(word(1..4), 0..3),
        prop_oneof![3 => Just(AfterTag::Loop), 1 => Just(AfterTag::End)],
        end,
    )
        .prop_map(|(tags, stops, excludes, after, end)| {
            Expr::Dispatch(Box::new(Dispatch { tags, stops, excludes, after, end }))
        })
}
