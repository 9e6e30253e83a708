//! Member sets of up to 300 members, too many for an oracle that enumerates subsets. Counting
//! decides whether a list of members is a sentence, and adding up gives the shortest completion.

use std::sync::Arc;

use louver::compile::{CompileError, Compiled};
use louver::engine::{CompletionOptions, Constraint, Engine, Matcher};
use louver::front::json_schema::SchemaOptions;
use louver::fsm::ByteSet;
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::ir::{Expr, Grammar, GrammarBuilder, Member, Members};
use louver::limits::Limits;
use louver::mask::bit;
use louver::matcher::Recognizer;
use louver::vocab::Vocabulary;
use proptest::collection::vec;
use proptest::prelude::*;

use super::config;

/// A member set: for each member the number of further bytes of its body, and whether it is
/// required.
#[derive(Clone, Debug)]
struct MemberSet {
    unique: Vec<(usize, bool)>,
    repeatable: Vec<usize>,
    min: u32,
    count_repeatable: bool,
    max: Option<u32>,
}

fn set() -> impl Strategy<Value = MemberSet> {
    let unique = prop_oneof![
        vec((0usize..30, any::<bool>()), 0..=64),
        vec((0usize..4, Just(false)), 30..=64),
    ];
    let min = prop_oneof![Just(0u32), 0u32..20, 0u32..70];
    // The search for the shortest completion is quadratic in the members and linear in `min`.
    let required = prop_oneof![9 => Just(false), 1 => Just(true)];
    let large = vec((0usize..4, required), 65..=300);
    let sizes = prop_oneof![2 => (unique, min), 1 => (large, 0u32..3)];
    let repeatable = prop_oneof![2 => vec(0usize..1, 0..1), 1 => vec(0usize..9, 1..3)];
    let max = prop_oneof![2 => Just(None), 1 => (0u32..70).prop_map(Some)];
    (sizes, repeatable, any::<bool>(), max).prop_map(
        |((unique, min), repeatable, count_repeatable, max)| MemberSet {
            unique,
            repeatable,
            min,
            count_repeatable,
            max,
        },
    )
}

impl MemberSet {
    /// A member's text: a name, of which some are prefixes of others, and its further bytes.
    fn text(&self, i: usize) -> String {
        let longer = |n: usize| "-".repeat(n);
        match i.checked_sub(self.unique.len()) {
            None => format!("m{i}:{}", longer(self.unique[i].0)),
            Some(repeatable) => {
                format!("mm{}:{}", "m".repeat(repeatable), longer(self.repeatable[repeatable]))
            }
        }
    }

    fn len(&self) -> usize {
        self.unique.len() + self.repeatable.len()
    }

    fn grammar(&self) -> Grammar {
        let mut b = GrammarBuilder::new();
        // Half of the members are rules of their own, and values are calls.
        let mut body = |i: usize| {
            let text = self.text(i);
            let (name, value) = text.split_once(':').expect("a colon");
            let value = b.rule(
                format!("v{i}"),
                Expr::seq([Expr::text(value), Expr::class(ByteSet::from_bytes(b".!"))]),
            );
            let body = Expr::seq([Expr::text(name), Expr::text(":"), Expr::Ref(value)]);
            if i.is_multiple_of(2) { body } else { Expr::Ref(b.rule(format!("m{i}"), body)) }
        };
        let unique = self.unique.iter().enumerate();
        let unique = unique.map(|(i, &(_, required))| Member { body: body(i), required }).collect();
        let repeatable = (self.unique.len()..self.len()).map(&mut body).collect();
        let (separator, min) = (Expr::text(", "), self.min);
        let count_repeatable = self.count_repeatable;
        let (max, clauses) = (self.max, Vec::new());
        let set = Members { unique, repeatable, separator, min, count_repeatable, max, clauses };
        let object = Expr::seq([Expr::text("{"), Expr::Members(Box::new(set)), Expr::text("}")]);
        let start = b.rule("start", Expr::repeat(object, 1, Some(2)));
        b.finish(start).expect("well formed")
    }

    fn write(&self, list: &[usize]) -> String {
        let members: Vec<String> = list.iter().map(|&i| format!("{}.", self.text(i))).collect();
        format!("{{{}}}", members.join(", "))
    }

    fn is_sentence(&self, list: &[usize]) -> bool {
        let n = self.unique.len();
        let twice = (0..n).any(|i| list.iter().filter(|&&other| other == i).count() > 1);
        let missing = self
            .unique
            .iter()
            .enumerate()
            .any(|(i, &(_, required))| required && !list.contains(&i));
        let repeatable = list.iter().filter(|&&i| i >= n).count();
        let counted = list.len() - repeatable
            + if self.count_repeatable { repeatable } else { repeatable.min(1) };
        !twice
            && !missing
            && counted >= self.min as usize
            && self.max.is_none_or(|max| list.len() <= max as usize)
    }

    /// The fewest bytes of further members that complete a list without duplicates; None if it
    /// cannot be completed.
    fn shortest(&self, list: &[usize]) -> Option<u64> {
        let n = self.unique.len();
        let cost = |i: usize| self.text(i).len() as u64 + 1 + 2;
        let missing = (0..n).filter(|i| self.unique[*i].1 && !list.contains(i));
        let mut taken: Vec<usize> = list.iter().copied().chain(missing).collect();
        let mut others: Vec<usize> = (0..n).filter(|i| !taken.contains(i)).collect();
        let times = match self.count_repeatable {
            true => self.min as usize,
            false => usize::from(!list.iter().any(|&i| i >= n)),
        };
        if let Some(repeatable) = (n..self.len()).min_by_key(|&i| cost(i)) {
            others.extend(std::iter::repeat_n(repeatable, times));
        }
        others.sort_by_key(|&i| cost(i));
        for next in others {
            if self.is_sentence(&taken) {
                break;
            }
            taken.push(next);
        }
        let first = if list.is_empty() && !taken.is_empty() { 2 } else { 0 };
        let sum = taken[list.len()..].iter().map(|&i| cost(i)).sum::<u64>();
        self.is_sentence(&taken).then(|| sum - first)
    }
}

/// A matcher after a text.
fn matcher_after(constraint: &Constraint, text: &str) -> louver::engine::Matcher {
    let mut matcher = constraint.matcher();
    text.bytes().for_each(|byte| matcher.advance(TokenId::from_raw(byte.into())).expect("allowed"));
    matcher
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn large_member_sets_agree_with_counting(
        set in set(),
        picks in vec(any::<u16>(), 0..70),
        times in 0usize..2,
    ) {
        let grammar = set.grammar();
        let compiled = match Compiled::new(&grammar, &Limits::default()) {
            Ok(compiled) => compiled,
            Err(CompileError::Empty { .. }) => {
                prop_assert_eq!(set.shortest(&[]), None);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert!(set.shortest(&[]).is_some());
        let mut list: Vec<usize> =
            picks.iter().map(|&pick| usize::from(pick) % set.len().max(1)).collect();
        list.retain(|&i| i < set.len());
        let mut recognizer = Recognizer::new(Arc::new(compiled));
        let mut accepts = |list: &[usize]| {
            recognizer.reset();
            recognizer.push(set.write(list).as_bytes()).is_ok() && recognizer.is_complete()
        };
        // Four lists: as drawn; without duplicates; with the required members in front; with one of
        // them again.
        prop_assert_eq!(accepts(&list), set.is_sentence(&list));
        let mut seen = Vec::new();
        list.retain(|&i| {
            i >= set.unique.len() || {
                let new = !seen.contains(&i);
                seen.push(i);
                new
            }
        });
        prop_assert_eq!(accepts(&list), set.is_sentence(&list));
        let required = (0..set.unique.len()).filter(|i| set.unique[*i].1 && !list.contains(i));
        let whole: Vec<usize> = required.chain(list.iter().copied()).collect();
        prop_assert_eq!(accepts(&whole), set.is_sentence(&whole));
        let again: Vec<usize> = whole.iter().chain(whole.first()).copied().collect();
        prop_assert_eq!(accepts(&again), set.is_sentence(&again));
        if times == 0 {
            return Ok(());
        }
        // After every other member: the shortest completion, and what may follow.
        let engine = Engine::new(
            Arc::new(Vocabulary::toy(&[b", m1", b".}", b", mm"])),
            crate::harness::unlimited(),
        );
        let constraint = engine.compile(&grammar).expect("compiles");
        for upto in (0..=list.len()).step_by(2) {
            let text = set.write(&list[..upto]);
            let text = &text[..text.len() - 1];
            let Some(length) = set.shortest(&list[..upto]) else {
                recognizer.reset();
                prop_assert!(recognizer.push(text.as_bytes()).is_err(), "{:?} leads nowhere", text);
                break;
            };
            let mut matcher = matcher_after(&constraint, text);
            let completion =
                matcher.shortest_completion(&CompletionOptions::default()).expect("no limit");
            prop_assert_eq!(completion.length, length + 1, "after {:?}", text);
            let bytes = completion.bytes().expect("text");
            bytes.iter().for_each(|&byte| {
                matcher.advance(TokenId::from_raw(byte.into())).expect("allowed")
            });
            prop_assert!(matcher.is_complete());
        }
    }
}

/// Sets of members that may be empty are rejected; those of thousands of members are not.
#[test]
fn member_sets_are_large_but_have_no_empty_members() {
    let grammar = |count: usize, body: Expr| {
        let unique = (0..count).map(|_| Member { body: body.clone(), required: false }).collect();
        let set = Members {
            unique,
            repeatable: Vec::new(),
            separator: Expr::text(","),
            min: 0,
            count_repeatable: false,
            max: None,
            clauses: Vec::new(),
        };
        let mut b = GrammarBuilder::new();
        let start = b.rule("start", Expr::Members(Box::new(set)));
        b.finish(start)
    };
    let empty = grammar(2, Expr::optional(Expr::text("a"))).expect("well formed");
    assert!(matches!(
        Compiled::new(&empty, &Limits::default()),
        Err(CompileError::EmptyMember { .. })
    ));
    // Reports do not enumerate subsets.
    let large = Arc::new(
        Compiled::new(grammar(3_000, Expr::text("abc")).expect("well formed"), &Limits::default())
            .expect("compiles"),
    );
    assert!(large.size().states < 1_000 && large.automata()[0].states.len() < 1_000);
}

/// Pieces of tokens around members.
const PIECES: [&str; 22] = [
    "\"",
    "\"",
    ",",
    ", ",
    ": ",
    ":",
    "{",
    "}",
    "[",
    "]",
    "a",
    "ab",
    "abc",
    "b",
    "ba",
    "c",
    "1",
    "true",
    "\": 1, \"",
    "\"a\": 1",
    "\": {\"",
    "                  ",
];

/// A schema of an object with the members `names`. Values are integers, booleans, objects of the
/// same members, or arrays of those.
fn object(names: &[&str], (required, kinds, closed): (u8, u32, bool), deep: bool) -> String {
    let inner = || object(names, (required >> 3, kinds >> 5, !closed), false);
    let value = |i: usize| match (kinds >> (2 * (i % 8))) & 3 {
        2 if deep => inner(),
        3 if deep => format!(r#"{{"type": "array", "items": {}}}"#, inner()),
        1 => r#"{"type": "boolean"}"#.to_owned(),
        _ => r#"{"type": "integer"}"#.to_owned(),
    };
    let properties: Vec<String> =
        names.iter().enumerate().map(|(i, name)| format!("\"{name}\": {}", value(i))).collect();
    let required: Vec<String> = (0..8)
        .filter(|i| required >> i & 1 == 1)
        .filter_map(|i| names.get(i))
        .map(|n| format!("\"{n}\""))
        .collect();
    format!(
        r#"{{"type": "object", "properties": {{{}}}, "required": [{}], "additionalProperties": {}}}"#,
        properties.join(", "),
        required.join(", "),
        if closed { "false" } else { r#"{"type": "integer"}"# },
    )
}

proptest! {
    #![proptest_config(config(64))]

    /// Each bit against stepping the token, for any members so far, and any number of members
    /// within one token.
    #[test]
    fn masks_of_member_sets_agree_with_stepping(
        names in proptest::sample::subsequence(vec!["a", "ab", "abc", "b", "ba", "bb", "c", "ca"], 5..=8),
        order in any::<u64>(),
        (required, kinds, closed) in (prop_oneof![2 => Just(0u8), 1 => any::<u8>()], any::<u32>(), any::<bool>()),
        pieces in vec(vec(proptest::sample::select(&PIECES[..]), 1..7), 60..200),
        walks in vec(vec(any::<u16>(), 24), 1..4),
        (direct, apart, whole) in any::<(bool, bool, bool)>(),
        many in prop_oneof![2 => Just(0usize), 1 => 70usize..130],
    ) {
        let letter = |i: usize| char::from(b"abc1"[i % 4]);
        let long = |i: usize| [i, i / 4, i / 16, i / 64].map(letter).iter().collect::<String>();
        let more: Vec<String> = (0..many).map(long).collect();
        let mut names = names;
        names.extend(more.iter().map(String::as_str));
        let turn = order as usize % names.len();
        names.rotate_left(turn);
        let extra: std::collections::BTreeSet<String> =
            pieces.iter().map(|pieces| pieces.concat()).filter(|t| t.len() > 1).collect();
        // As in most models' vocabularies: no token goes from a comma into a name, so states do not
        // depend on earlier members.
        let goes_into_name = |text: &str| {
            text.as_bytes().windows(3).any(|three| {
                b", ".contains(&three[0]) && three[1] == b'"' && b"abc".contains(&three[2])
            })
        };
        // No token contains a quote with so much of a name before it.
        let ends_name = |text: &str| {
            text.as_bytes().windows(3).any(|three| {
                b"\"abc".contains(&three[0]) && b"abc".contains(&three[1]) && three[2] == b'"'
            })
        };
        let extra: std::collections::BTreeSet<String> = extra
            .into_iter()
            .filter(|text| !(apart && goes_into_name(text) || whole && ends_name(text)))
            .collect();
        let extra: Vec<&[u8]> = extra.iter().map(String::as_bytes).collect();
        let vocab = Arc::new(Vocabulary::toy(&extra));
        let options = crate::harness::unlimited()
            .with_tuning(MaskTuning::with_direct_walk(if direct { 16_384 } else { 0 }));
        let engine = Engine::new(vocab.clone(), options);
        let schema = object(&names, (required, kinds, closed), true);
        let constraint =
            engine.compile_json_schema(&schema, &SchemaOptions::default()).expect("compiles");
        let mut row = vec![0; vocab.mask_words()];
        for walk in walks {
            let mut matcher = constraint.matcher();
            for choice in walk {
                matcher.fill_mask(&mut row);
                let mut follow = Vec::new();
                for id in (0..vocab.width()).map(TokenId::new) {
                    let allowed = matcher.allows(id);
                    prop_assert_eq!(
                        bit(&row, id),
                        allowed,
                        "{} {:?} after {}",
                        id,
                        vocab.bytes(id).map(String::from_utf8_lossy),
                        &text(&vocab, &matcher)
                    );
                    // Tokens that lead on: not only white space, and declared names rather than
                    // others.
                    let leads_on = |bytes: &[u8]| {
                        bytes.iter().all(|byte| b"\"{}[],: abc1tfrueals".contains(byte))
                            && bytes != b" "
                    };
                    if allowed && vocab.bytes(id).is_some_and(leads_on) {
                        follow.push(id);
                    }
                }
                if follow.is_empty() {
                    break;
                }
                // Longer tokens come last.
                let from = if choice % 4 == 0 { 0 } else { follow.len() / 2 };
                matcher
                    .advance(follow[from + usize::from(choice / 4) % (follow.len() - from)])
                    .expect("is allowed");
            }
        }
    }
}

/// Where a member is read after other ones, masks depend only on whether the object may end after
/// it, and whether another member may follow.
#[test]
fn masks_after_a_member_depend_on_what_may_follow_it() {
    let vocab = Arc::new(Vocabulary::toy(&[
        b"\":1}", b"\":1,", b"\":1,\"", b"1}", b"1,", b"1,\"", b",\"", b"\":", b"xy",
    ]));
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "cc": {"type": "integer"},
        "dd": {"type": "integer"}, "ee": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}"#;
    let others = r#""cc":1,"dd":1,"ee":1,"#;
    let texts = [
        "",
        r#""a":1,"#,
        r#""cc":1,"#,
        r#""a":1,"cc":1,"#,
        others,
        r#""a":1,"cc":1,"dd":1,"ee":1,"#,
    ];
    let texts = texts.map(|text| format!("{{{text}\"b"));
    let mut row = vec![0; vocab.mask_words()];
    for turn in 0..texts.len() {
        let engine = Engine::new(vocab.clone(), crate::harness::unlimited());
        let constraint =
            engine.compile_json_schema(schema, &SchemaOptions::default()).expect("compiles");
        for at in 0..texts.len() {
            let text = &texts[(turn + at) % texts.len()][..];
            for more in ["", "\":", "\":1"] {
                let mut matcher = matcher_after(&constraint, &[text, more].concat());
                matcher.fill_mask(&mut row);
                for id in (0..vocab.width()).map(TokenId::new) {
                    assert_eq!(
                        bit(&row, id),
                        matcher.allows(id),
                        "{:?} after {text}{more}",
                        vocab.shown(id).to_string()
                    );
                }
            }
        }
        // Three masks with the required member, three without, and three with all of them; three
        // more where earlier keys are known: not eighteen.
        let misses = engine.pool_stats().mask_misses;
        assert!(misses <= 12, "{misses} masks");
    }
}

/// Where undeclared keys are allowed, the remaining declared ones matter only to tokens that end a
/// key.
#[test]
fn masks_depend_on_remaining_members_where_a_token_ends_a_key() {
    let names = ["is_a", "is_b", "has_a", "has_b", "on_a", "on_b", "x"];
    let declared = names.map(|name| format!("\"{name}\": {{\"type\": \"boolean\"}}")).join(", ");
    let schema = |more: &str| {
        format!(r#"{{"type": "object", "properties": {{{declared}}}, "required": ["x"]{more}}}"#)
    };
    // Where undeclared keys must begin with `o`, other remaining keys matter.
    let few = r#", "patternProperties": {"^o": {}}, "additionalProperties": false"#;
    let texts = [
        &[][..],
        &["is_a"],
        &["on_b", "is_a"],
        &["is_a", "is_b", "has_a", "has_b", "on_a", "on_b"],
    ];
    let spelled =
        |names: &[&str]| names.iter().map(|name| format!("\"{name}\":true,")).collect::<String>();
    let texts = texts
        .map(|names| ["\"x\":true,", ""].map(|required| format!("{{{required}{}", spelled(names))))
        .concat();
    let plain: &[&[u8]] =
        &[b"\":", b"is", b"has", b"_a", b"tr", b"ue", b"true", b"e,", b"\"i", b", "];
    let ending: &[&[u8]] = &[b"_a\"", b"b\":"];
    let misses = [("", false), ("", true), (few, false), (few, true)].map(|(more, ends)| {
        let tokens = [plain, if ends { ending } else { &[] }].concat();
        let vocab = Arc::new(Vocabulary::toy(&tokens));
        let engine = Engine::new(vocab.clone(), crate::harness::unlimited());
        let constraint =
            engine.compile_json_schema(&schema(more), &SchemaOptions::default()).expect("compiles");
        let (mut row, mut misses) = (vec![0; vocab.mask_words()], 0);
        for text in &texts {
            for more in [
                "",
                "\"",
                "\"is",
                "\"is_",
                "\"is_a",
                "\"has_b",
                "\"other",
                "\"other\":",
                "\"x",
                "\"x\":tr",
            ] {
                let mut matcher = constraint.matcher();
                let text = [text, more].concat();
                if !text.bytes().all(|byte| matcher.advance(TokenId::from_raw(byte.into())).is_ok())
                {
                    // A member that was read before.
                    continue;
                }
                let before = engine.pool_stats().mask_misses;
                matcher.fill_mask(&mut row);
                if matches!(more, "" | "\"" | "\"is" | "\"other\":") {
                    misses += engine.pool_stats().mask_misses - before;
                }
                for id in (0..vocab.width()).map(TokenId::new) {
                    let allowed = matcher.allows(id);
                    assert_eq!(
                        bit(&row, id),
                        allowed,
                        "{:?} after {text}",
                        vocab.shown(id).to_string()
                    );
                }
            }
        }
        misses
    });
    assert!(misses[0] <= 40 && misses[1] > misses[0] && misses[2] > misses[0], "{misses:?} masks");
}

fn text(vocab: &Vocabulary, matcher: &Matcher) -> String {
    matcher.tokens().iter().map(|&token| vocab.shown(token).to_string()).collect()
}

/// A member may stand twice in a clause.
#[test]
fn repeated_members_of_clauses_count_once() {
    let text = "root ::= Members(\",\", optional(\"a\"), optional(\"b\"), optional(\"c\"), \
                clause((), (0, 0, 1)))\n";
    let grammar = louver::front::ebnf::lower(text, &Default::default(), &Limits::default());
    let grammar = grammar.expect("a grammar").grammar;
    let compiled = Arc::new(Compiled::new(grammar, &Limits::default()).expect("compiles"));
    let accepts = |text: &str| {
        let mut recognizer = Recognizer::new(compiled.clone());
        recognizer.push(text.as_bytes()).ok().map(|()| recognizer.is_complete())
    };
    assert_eq!(["a", "b", "b,c", "c,a"].map(accepts), [Some(true); 4]);
    // Not even begun: nothing could follow.
    assert_eq!(["b,a", "a,b", "b,c,a"].map(accepts), [None; 3]);
}
