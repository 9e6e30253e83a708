//! Property tests of distinct values (`uniqueItems`): random arrays all of whose sentences are
//! enumerated, so that what may follow is looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use louver::compile::Compiled;
use louver::engine::{CompletionOptions, Engine, Matcher};
use louver::front::ebnf;
use louver::front::json_schema::{SchemaOptions, Whitespace};
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::vocab::Vocabulary;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestCaseError;

use super::{config, matcher_after};
use crate::harness::columns::{COLUMNS, mask};

/// Elements. Many are equal values in different spellings, or have equal beginnings.
const ELEMENTS: &[&str] = &[
    r#""a""#,
    r#""\u0061""#,
    r#""ab""#,
    r#""""#,
    r#""\/""#,
    r#""/""#,
    "1",
    "1.0",
    "1e0",
    "10e-1",
    "10",
    "1.5",
    "-0",
    "0",
    "100",
    "1e2",
    "true",
    "null",
    "[1]",
    "[1.0]",
    "[]",
    "[ ]",
    r#"["a"]"#,
    r#"{"a":1,"b":2}"#,
    r#"{"b":2,"a":1.0}"#,
    r#"{"a":1}"#,
    r#"{"a":2}"#,
    "{}",
    "[[1]]",
    r#"[1,"a"]"#,
    r#"["a",1]"#,
    "x",
    "x1",
    " 1",
    " x",
    "1 ",
    "[1 2]",
    "[12]",
    r#"{ "a" : 1 }"#,
    "\"\u{e9}\"",
    r#""\u00e9""#,
    r#""\ud83d\ude00""#,
    "\"\u{1F600}\"",
];
/// Elements of arrays within the array, whose elements are distinct, too.
const INNER: &[&str] = &["1", "1.0", "2", r#""a""#];

/// A grammar of lists of elements in brackets.
#[derive(Clone, Debug)]
struct ListGrammar {
    /// Texts of elements.
    elements: Vec<&'static str>,
    /// Texts of elements of inner arrays; none if there are no inner arrays.
    inner: Vec<&'static str>,
    /// Elements may also be any number of `z`, by a left-recursive rule.
    recursive: bool,
    /// Most elements.
    most: usize,
    /// A comma may be followed by a space.
    space: bool,
    /// There may be a second list after a semicolon, so that tokens close one scope and open
    /// another.
    twice: bool,
    /// Lists stand in brackets.
    brackets: bool,
}

fn lists() -> impl Strategy<Value = ListGrammar> {
    let elements = subsequence(ELEMENTS, 1..6);
    let inner = prop_oneof![2 => Just(Vec::new()), 1 => subsequence(INNER, 1..3)];
    let rest = (
        any::<bool>(),
        1usize..4,
        any::<bool>(),
        proptest::bool::weighted(0.3),
        proptest::bool::weighted(0.8),
    );
    (elements, inner, rest).prop_map(
        |(elements, inner, (recursive, most, space, twice, brackets))| {
            let lists = ListGrammar { elements, inner, recursive, most, space, twice, brackets };
            // No more elements than there are values.
            let values: BTreeSet<String> = lists.elements().iter().map(|e| value(e)).collect();
            ListGrammar { most: most.min(values.len()), ..lists }
        },
    )
}

/// A text as a literal of EBNF.
fn quoted(text: &str) -> String {
    let escape =
        |c: char| if c.is_ascii() { format!("\\x{:02x}", u32::from(c)) } else { c.to_string() };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

impl ListGrammar {
    /// The grammar as EBNF.
    fn text(&self) -> String {
        let mut out = String::new();
        let space = if self.space { "\" \"?" } else { "" };
        let list = |element: &str, most: usize| {
            format!("({element} (\",\" {space} {element}){{0,{}}})?", most - 1)
        };
        let (open, close) = if self.brackets { ("\"[\"", "\"]\"") } else { ("", "") };
        let root = match self.twice {
            false => {
                format!("root{} ::= {open} {} {close}\n", "[scope]", list("element", self.most))
            }
            true => format!(
                "root ::= list (\";\" list)?\nlist{} ::= {open} {} {close}\n",
                "[scope]",
                list("element", self.most.min(2))
            ),
        };
        out.push_str(&root);
        let mut ways: Vec<String> = self.elements.iter().map(|e| quoted(e)).collect();
        if self.recursive {
            ways.push("letters".into());
            out.push_str("letters ::= \"z\" | letters \"z\"\n");
        }
        if !self.inner.is_empty() {
            ways.push("inner".into());
            let _ =
                writeln!(out, "inner[scope] ::= \"[\" {} \"]\"", list("one", self.most_inner()));
            let one: Vec<String> = self.inner.iter().map(|e| quoted(e)).collect();
            let _ = writeln!(out, "one[element] ::= {}", one.join(" | "));
        }
        let _ = writeln!(out, "element[element] ::= {}", ways.join(" | "));
        out
    }

    fn grammar(&self) -> Grammar {
        ebnf::lower(&self.text(), &Default::default(), &Limits::default())
            .expect("a grammar")
            .grammar
    }
}

/// A canonical spelling of a JSON value. A text that is not JSON is itself.
fn canonical(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Number(n) => {
            format!("{:?}", n.as_f64().map(|n| if n == 0.0 { 0.0 } else { n }))
        }
        serde_json::Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        serde_json::Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().map(|(k, v)| (k, canonical(v))).collect();
            format!("{members:?}")
        }
        other => other.to_string(),
    }
}

/// The canonical spelling of a text.
fn value(text: &str) -> String {
    serde_json::from_str(text).map_or_else(|_| format!("other {text}"), |v| canonical(&v))
}

impl ListGrammar {
    /// All sentences, by enumeration.
    fn sentences(&self) -> BTreeSet<String> {
        let bracketed = |list: String| if self.brackets { format!("[{list}]") } else { list };
        let most = if self.twice { self.most.min(2) } else { self.most };
        let lists: BTreeSet<String> =
            all_lists(&self.elements(), most, self.commas()).into_iter().map(bracketed).collect();
        if !self.twice {
            return lists;
        }
        let two = lists.iter().flat_map(|a| lists.iter().map(move |b| format!("{a};{b}")));
        lists.iter().cloned().chain(two).collect()
    }

    fn commas(&self) -> &'static [&'static str] {
        if self.space { &[",", ", "] } else { &[","] }
    }

    /// Most elements of inner arrays.
    fn most_inner(&self) -> usize {
        self.inner.iter().map(|e| value(e)).collect::<BTreeSet<String>>().len().min(2)
    }

    fn elements(&self) -> Vec<String> {
        let mut elements: Vec<String> = self.elements.iter().map(|e| (*e).to_owned()).collect();
        if self.recursive {
            elements.extend((1..=LETTERS).map(|n| "z".repeat(n)));
        }
        if !self.inner.is_empty() {
            let inner: Vec<String> = self.inner.iter().map(|e| (*e).to_owned()).collect();
            elements.extend(
                all_lists(&inner, self.most_inner(), self.commas())
                    .into_iter()
                    .map(|list| format!("[{list}]")),
            );
        }
        elements
    }
}

/// Letters of the longest recursive element that is enumerated.
const LETTERS: usize = 6;

/// All lists of distinct elements, with each of the separators.
fn all_lists(elements: &[String], most: usize, commas: &[&str]) -> Vec<String> {
    let values: Vec<String> = elements.iter().map(|e| value(e)).collect();
    let mut out = vec![String::new()];
    let mut grown: Vec<(String, Vec<usize>)> = vec![(String::new(), Vec::new())];
    for _ in 0..most {
        let mut next = Vec::new();
        for (text, taken) in &grown {
            for (i, element) in elements.iter().enumerate() {
                if taken.iter().any(|&other| values[other] == values[i]) {
                    continue;
                }
                let with = [taken.clone(), vec![i]].concat();
                let commas: &[&str] = if taken.is_empty() { &[""] } else { commas };
                next.extend(
                    commas.iter().map(|comma| (format!("{text}{comma}{element}"), with.clone())),
                );
            }
        }
        out.extend(next.iter().map(|(text, _)| text.clone()));
        grown = next;
    }
    out
}

/// The 256 bytes, pieces of sentences, and pieces that repeat.
fn vocabulary(sentences: &BTreeSet<String>, random: &mut Random) -> Vocabulary {
    let all: Vec<&String> = sentences.iter().collect();
    let mut pieces: BTreeSet<Vec<u8>> = BTreeSet::new();
    for _ in 0..40 {
        let bytes = all[random.below(all.len())].as_bytes();
        let from = random.below(bytes.len() + 1);
        let piece = &bytes[from..(from + 2 + random.below(9)).min(bytes.len())];
        // Also with a repetition, which is an error.
        let mut twice = piece.to_vec();
        twice.push(b',');
        twice.extend_from_slice(piece);
        pieces.extend([piece.to_vec(), twice].into_iter().filter(|p| p.len() > 1));
    }
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    Vocabulary::toy(&pieces)
}

/// A deterministic generator of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Prefixes that are tested.
const MAX_PREFIXES: usize = 150;

proptest! {
    #![proptest_config(config(200))]

    /// Masks along random prefixes are those of the enumerated sentences.
    #[test]
    fn elements_of_a_scope_are_distinct(
        lists in lists(),
        seed in any::<u64>(),
        (direct_walk, mutual_rules) in select(vec![(1024usize, 24usize), (0, 24), (300, 0), (3, 0)]),
    ) {
        let sentences = lists.sentences();
        // Small enough to enumerate, with ends that all recursive elements reach.
        prop_assume!(sentences.len() < 30_000);
        let mut sentence_prefixes: BTreeSet<&[u8]> = BTreeSet::new();
        for sentence in &sentences {
            sentence_prefixes.extend((0..=sentence.len()).map(|end| &sentence.as_bytes()[..end]));
        }
        let mut random = Random(seed);
        let vocab = Arc::new(vocabulary(&sentences, &mut random));
        let options = crate::harness::unlimited()
            .with_tuning(MaskTuning { direct_walk, mutual_rules });
        let engine = Engine::new(vocab.clone(), options);
        let constraint = engine.compile(lists.grammar()).expect("compiles");
        let mut pending = vec![Vec::new()];
        let longest = |text: &[u8]| lists.recursive && text.ends_with(&[b'z'; LETTERS - 2]);
        for _ in 0..MAX_PREFIXES {
            let pick = random.below(1 << 16);
            if pending.is_empty() {
                break;
            }
            let prefix: Vec<TokenId> = pending.swap_remove(pick % pending.len());
            let text: Vec<u8> =
                prefix.iter().flat_map(|&t| vocab.bytes(t).unwrap().to_vec()).collect();
            if longest(&text) {
                continue;
            }
            let column = COLUMNS[pick % COLUMNS.len()];
            let mut matcher = column.matcher(&constraint, &prefix, &[]);
            let got = mask(&mut matcher, &vocab);
            for (id, &got) in got.iter().enumerate() {
                let token = TokenId::new(id);
                let mut after = text.clone();
                let want = if vocab.is_stop(token) {
                    sentences.contains(std::str::from_utf8(&text).unwrap_or("\u{0}"))
                } else {
                    after.extend_from_slice(vocab.bytes(token).unwrap_or(b"\0"));
                    sentence_prefixes.contains(&after[..])
                };
                // Longer recursive elements are sentences as well, but not enumerated.
                let unknown =
                    lists.recursive && after.windows(LETTERS).any(|w| w == [b'z'; LETTERS]);
                prop_assert!(
                    got == want || unknown,
                    "{:?} after {:?} in {}\n{}",
                    String::from_utf8_lossy(&after),
                    String::from_utf8_lossy(&text),
                    lists.text(),
                    got
                );
                prop_assert_eq!(
                    got,
                    matcher.clone().advance(token).is_ok(),
                    "{:?} {:?}",
                    String::from_utf8_lossy(&after),
                    String::from_utf8_lossy(&text)
                );
                if want && !vocab.is_stop(token) && !unknown {
                    let mut longer = prefix.clone();
                    longer.push(token);
                    pending.push(longer);
                }
            }
            check_completions((&mut matcher, constraint.compiled()), &text, &sentences)?;
        }
    }
}

/// A reader of arrays of strings, which rejects an element that occurred before.
#[derive(Clone, Debug, Default, PartialEq)]
struct StringArray {
    /// Complete elements.
    done: Vec<String>,
    /// The encoded text of the string under way.
    open: Option<String>,
    /// Where in the array the text ends.
    place: ArrayPosition,
}

/// A position in an array of strings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum ArrayPosition {
    #[default]
    Before,
    First,
    Element,
    Inside,
    After,
    End,
}

impl StringArray {
    fn read(mut self, text: &[u8]) -> Option<StringArray> {
        for &byte in text {
            self.place = match (self.place, byte) {
                (ArrayPosition::Before, b'[') => ArrayPosition::First,
                (ArrayPosition::First, b']') | (ArrayPosition::After, b']') => ArrayPosition::End,
                (ArrayPosition::First | ArrayPosition::Element, b'"') => {
                    self.open = Some(String::new());
                    ArrayPosition::Inside
                }
                (ArrayPosition::After, b',') => ArrayPosition::Element,
                (ArrayPosition::Inside, byte) => {
                    let open = self.open.as_mut()?;
                    let escaped = open.len() - open.trim_end_matches('\\').len();
                    if byte == b'"' && escaped % 2 == 0 {
                        let text: String = serde_json::from_str(&format!("\"{open}\"")).ok()?;
                        if self.done.contains(&text) {
                            return None;
                        }
                        self.done.push(text);
                        self.open = None;
                        ArrayPosition::After
                    } else {
                        open.push(char::from(byte));
                        // The possible rests of an escape.
                        let whole = ["", "n", "0000", "000", "00", "0"].iter();
                        let fits = |end: &&str| {
                            serde_json::from_str::<String>(&format!("\"{open}{end}\"")).is_ok()
                        };
                        whole.clone().any(fits).then_some(ArrayPosition::Inside)?
                    }
                }
                _ => return None,
            };
        }
        Some(self)
    }
}

/// Tokens with ends, beginnings and whole strings.
const TOKENS: &[&str] = &[
    "[\"",
    "\",\"",
    "\",",
    ",\"",
    "\"]",
    "a\"",
    "\"a",
    "aa",
    "a\",\"",
    "a\",\"a",
    "a\",\"a\"",
    "\"a\",\"a\"",
    "\",\"\",\"",
    "\"\",\"\"",
    "\",\"a\"]",
    "\",\"b\",\"b\"",
    "b\",\"b\"]",
    "\\u0061",
    "\\u00",
    "61\"",
    "61",
    "\\n",
    "\\u000a",
    "[\"a\",\"a",
    "[\"a\",\"a\"",
    "[\"a\",\"b\"]",
    "\"\"",
    "[\"\",\"\"]",
    "/\"",
    "\\/\"",
    "b\",\"a\",\"",
    "],[",
    "\"b\",\"a\"",
    "ab\"",
    "b\"",
];

proptest! {
    #![proptest_config(config(60))]

    /// Arrays of arbitrary strings: there are infinitely many, so the engine does not search for
    /// other values.
    #[test]
    fn strings_of_an_array_are_distinct(
        tokens in subsequence(TOKENS, 8..TOKENS.len()),
        seed in any::<u64>(),
        (direct_walk, mutual_rules) in select(vec![(1024usize, 24usize), (0, 24), (60, 24), (0, 0)]),
    ) {
        let tokens: Vec<&[u8]> = tokens.iter().map(|t| t.as_bytes()).collect();
        let vocab = Arc::new(Vocabulary::toy(&tokens));
        let options = crate::harness::unlimited()
            .with_tuning(MaskTuning { direct_walk, mutual_rules });
        let engine = Engine::new(vocab.clone(), options);
        let schema = r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#;
        let options = SchemaOptions::default().with_whitespace(Whitespace::Compact);
        let constraint = engine.compile_json_schema(schema, &options).expect("compiles");
        let mut random = Random(seed);
        for _ in 0..3 {
            let (mut matcher, mut reader) = (constraint.matcher(), StringArray::default());
            for _ in 0..20 {
                let got = mask(&mut matcher, &vocab);
                let mut follow = Vec::new();
                for (id, &got) in got.iter().enumerate() {
                    let token = TokenId::new(id);
                    let Some(bytes) = vocab.bytes(token).filter(|_| !vocab.is_stop(token)) else {
                        prop_assert_eq!(got, reader.place == ArrayPosition::End);
                        continue;
                    };
                    if bytes.iter().any(|byte| !(0x20..0x7F).contains(byte))
                        || bytes.ends_with(b"d")
                    {
                        // Parts of characters, and of surrogate pairs.
                        continue;
                    }
                    let next = reader.clone().read(bytes);
                    prop_assert!(
                        got == next.is_some(),
                        "{:?} after {reader:?}: {got}",
                        String::from_utf8_lossy(bytes)
                    );
                    prop_assert_eq!(got, matcher.clone().advance(token).is_ok());
                    if let Some(next) =
                        next.filter(|_| bytes.len() > 1 || b"[]\",ab".contains(&bytes[0]))
                    {
                        follow.push((token, next));
                    }
                }
                if follow.is_empty() {
                    break;
                }
                let (token, next) = follow.swap_remove(random.below(follow.len()));
                prop_assert_eq!(matcher.advance(token), Ok(()));
                reader = next;
                let end = matcher
                    .shortest_completion(&CompletionOptions::default())
                    .expect("within limits");
                let whole = reader.clone().read(&end.bytes().expect("short"));
                prop_assert!(
                    whole.is_some_and(|whole| whole.place == ArrayPosition::End),
                    "{end:?} after {reader:?}"
                );
            }
        }
    }
}

/// Completions are sentences, forced text begins all continuations, and the recogniser agrees with
/// the matcher.
fn check_completions(
    (matcher, compiled): (&mut Matcher, &Arc<Compiled>),
    text: &[u8],
    sentences: &BTreeSet<String>,
) -> Result<(), TestCaseError> {
    let completion =
        matcher.shortest_completion(&CompletionOptions::default()).expect("within limits");
    let whole = [text, &completion.bytes().expect("short")].concat();
    let whole = String::from_utf8_lossy(&whole).into_owned();
    prop_assert!(sentences.contains(&whole), "{whole} is no sentence");
    let forced = [text, &matcher.forced_bytes(20)].concat();
    let follow = sentences.iter().filter(|s| s.as_bytes().starts_with(text));
    for sentence in follow {
        let common = forced.len().min(sentence.len());
        prop_assert!(
            sentence.as_bytes()[..common] == forced[..common] && forced.len() <= sentence.len()
        );
    }
    let mut recognizer = Recognizer::new(compiled.clone());
    prop_assert!(recognizer.push(text).is_ok());
    prop_assert_eq!(recognizer.is_complete(), matcher.is_complete());
    Ok(())
}

/// An element that may be the beginning of another one is rejected where it ends; its continuations
/// are rejected with it, even where the text continues as another element.
#[test]
fn continuations_of_a_rejected_element_are_rejected() {
    let text = r#"
        root[scope] ::= "[" (element ("," " "? element)?)? "]"
        element[element] ::= "x1" | " x"
    "#;
    let grammar =
        ebnf::lower(text, &Default::default(), &Limits::default()).expect("a grammar").grammar;
    let vocab = Arc::new(Vocabulary::toy(&[b"x]" as &[u8], b"x1]", b" x]"]));
    for direct_walk in [1024, 0] {
        let mut matcher = matcher_after(&grammar, &vocab, direct_walk, b"[ x, ");
        let got = mask(&mut matcher, &vocab);
        let ids = [b"x]" as &[u8], b"x1]", b" x]"].map(|text| vocab.find(text).unwrap().index());
        assert_eq!(ids.map(|id| got[id]), [false, true, false]);
    }
}
