//! Listed numbers: the automaton of all spellings of the numbers in an `enum` or `const`.
//!
//! A trie holds the mantissas of all numbers, one path per position of the decimal point. Its nodes
//! record which exponents complete a number there. The automaton is built from the trie and
//! minimised.

use super::number_text::{LOWER_E, MINUS, NINE, PLUS, UPPER_E, ZERO};
use crate::decimal::Decimal;
use crate::fsm::{Dfa, DfaBuilder};
use crate::hash::HashMap;

/// Maximum number of digits of a text without an exponent.
const MAX_DIGITS: usize = 64;
/// Maximum number of digits before the point of a number with an exponent.
const MAX_BEFORE: i64 = 20;

/// Spellings that listed numbers may have besides the shortest one.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberSpellings {
    /// Whole numbers may have a fraction of zeros, and an exponent if numbers may have exponents.
    pub(super) zero_fraction: bool,
    /// Numbers may have exponents.
    pub(super) exponents: bool,
}

/// Builds the minimal automaton over bytes of the spellings of `values`.
///
/// A number is spelled without an exponent, or with an exponent and the point at any position
/// within or around its digits. Fractions may have trailing zeros, and exponents leading zeros.
/// Numbers of more than 64 digits have no spelling without an exponent. Cost: close to linear in
/// the digits of the numbers, up to 20 of each.
pub(super) fn listed_dfa(values: &[Decimal], spellings: NumberSpellings) -> Dfa {
    let mut trie = NumberTrie { nodes: vec![Node::default()] };
    for value in values {
        trie.insert_number(value, spellings);
    }
    trie.dfa(spellings)
}

/// The ways in which the text of a trie node may be completed to a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Completions {
    /// The text is a number as it stands.
    no_exponent: bool,
    /// Exponents that complete it.
    exponents: Vec<i64>,
    /// Any exponent completes it.
    any_exponent: bool,
}

impl Completions {
    /// Whether nothing completes the text.
    fn is_none(&self) -> bool {
        *self == Completions::default()
    }

    /// Adds other completions.
    fn join(&mut self, other: &Completions) {
        self.no_exponent |= other.no_exponent;
        self.any_exponent |= other.any_exponent;
        self.exponents.extend(&other.exponents);
        self.exponents.sort_unstable();
        self.exponents.dedup();
    }
}

/// A node of the trie.
#[derive(Default)]
struct Node {
    /// Whether the text contains the decimal point.
    fraction: bool,
    children: Vec<(u8, usize)>,
    /// Completions of the text of this node.
    ends: Completions,
    /// Completions of the text followed by one or more zeros.
    after_zeros: Completions,
}

/// A trie of the mantissas of all listed numbers. Children have greater indices than their parents.
struct NumberTrie {
    nodes: Vec<Node>,
}

impl NumberTrie {
    /// Finds or inserts a child.
    fn child(&mut self, node: usize, byte: u8) -> usize {
        if let Some(&(_, child)) = self.nodes[node].children.iter().find(|(b, _)| *b == byte) {
            return child;
        }
        let child = self.nodes.len();
        let fraction = byte == b'.' || self.nodes[node].fraction;
        self.nodes.push(Node { fraction, ..Node::default() });
        self.nodes[node].children.push((byte, child));
        child
    }

    /// The completions at the node of `text`, which is inserted if it is missing.
    fn ends(&mut self, text: &[u8]) -> &mut Completions {
        let node = text.iter().fold(0, |node, &byte| self.child(node, byte));
        &mut self.nodes[node].ends
    }

    /// Inserts all spellings of a number.
    fn insert_number(&mut self, value: &Decimal, spellings: NumberSpellings) {
        let exponents = spellings.exponents && (spellings.zero_fraction || !value.is_integer());
        if value.is_zero() {
            for text in ["0", "-0"] {
                self.ends(text.as_bytes()).join(&Completions {
                    no_exponent: true,
                    any_exponent: exponents,
                    ..Completions::default()
                });
            }
            return;
        }
        if let Some(text) = value.plain(MAX_DIGITS) {
            self.ends(text.as_bytes()).no_exponent = true;
        }
        let digits: Vec<u8> = value.digits().iter().map(|digit| b'0' + digit).collect();
        let length = digits.len() as i64;
        let most = length.max(value.first_place() + 1).min(MAX_BEFORE);
        for before in (0..=most).filter(|_| exponents && digits.len() <= MAX_DIGITS) {
            let mut text = if value.is_negative() { b"-".to_vec() } else { Vec::new() };
            let point = before.min(length) as usize;
            text.extend(if before == 0 { b"0" } else { &digits[..point] });
            text.resize(text.len() + (before - length).max(0) as usize, b'0');
            if before < length {
                text.push(b'.');
                text.extend(&digits[point..]);
            }
            let exponent = value.first_place() + 1 - before;
            self.ends(&text)
                .join(&Completions { exponents: vec![exponent], ..Completions::default() });
        }
    }

    /// Allows trailing zeros in fractions: what completes a text also completes it after more
    /// zeros.
    fn add_zeros(&mut self, spellings: NumberSpellings) {
        let mut at = 0;
        while at < self.nodes.len() {
            let mut ends = self.nodes[at].ends.clone();
            if self.nodes[at].fraction {
                ends.join(&self.nodes[at].after_zeros);
                match self.nodes[at].children.iter().find(|(byte, _)| *byte == b'0') {
                    Some(&(_, child)) => {
                        self.nodes[at].after_zeros = Completions::default();
                        self.nodes[child].ends.join(&ends);
                    }
                    None => self.nodes[at].after_zeros = ends,
                }
            } else {
                ends.no_exponent &= spellings.zero_fraction;
                if !ends.is_none() {
                    let point = self.child(at, b'.');
                    self.nodes[point].after_zeros.join(&ends);
                }
            }
            // Inserted children have greater indices, so that they are visited later.
            at += 1;
        }
    }

    /// Builds the automaton.
    fn dfa(mut self, spellings: NumberSpellings) -> Dfa {
        self.add_zeros(spellings);
        let mut listed = ListedBuilder::default();
        let states: Vec<u32> =
            self.nodes.iter().map(|node| listed.builder.state(node.ends.no_exponent)).collect();
        for (node, &state) in self.nodes.iter().zip(&states) {
            for &(byte, child) in &node.children {
                listed.builder.edge(state, u32::from(byte), u32::from(byte), states[child]);
            }
            listed.exponent(state, &node.ends);
            if !node.after_zeros.is_none() {
                let zeros = listed.zeros(&node.after_zeros);
                listed.builder.edge(state, ZERO, ZERO, zeros);
            }
        }
        listed.builder.finish().minimize()
    }
}

/// Builds the automaton of a trie. Interns the states after mantissas by what may follow.
#[derive(Default)]
struct ListedBuilder {
    builder: DfaBuilder,
    /// States after trailing zeros of a fraction.
    after_zeros: HashMap<Completions, u32>,
    /// States after `e`.
    after_e: HashMap<Completions, u32>,
    /// States within an exponent, by the digits that may follow and those read.
    digits: HashMap<(Vec<Vec<u8>>, DigitsRead), u32>,
}

/// The digits of an exponent that have been read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DigitsRead {
    /// None.
    None,
    /// Only leading zeros.
    Zeros,
    /// A digit that is not a leading zero.
    Significant,
}

impl ListedBuilder {
    /// The state after trailing zeros of a fraction.
    fn zeros(&mut self, ends: &Completions) -> u32 {
        if let Some(&state) = self.after_zeros.get(ends) {
            return state;
        }
        let state = self.builder.state(ends.no_exponent);
        self.after_zeros.insert(ends.clone(), state);
        self.builder.edge(state, ZERO, ZERO, state);
        self.exponent(state, ends);
        state
    }

    /// Adds the edges for `e` and `E`, if an exponent may follow.
    fn exponent(&mut self, from: u32, ends: &Completions) {
        if !ends.any_exponent && ends.exponents.is_empty() {
            return;
        }
        let ends = Completions { no_exponent: false, ..ends.clone() };
        let state = match self.after_e.get(&ends) {
            Some(&state) => state,
            None => {
                let state = if ends.any_exponent {
                    self.any_exponent()
                } else {
                    self.listed_exponents(&ends.exponents)
                };
                self.after_e.insert(ends, state);
                state
            }
        };
        for mark in [UPPER_E, LOWER_E] {
            self.builder.edge(from, mark, mark, state);
        }
    }

    /// A state after `e` where any exponent may follow.
    fn any_exponent(&mut self) -> u32 {
        let (state, sign, digits) =
            (self.builder.state(false), self.builder.state(false), self.builder.state(true));
        for mark in [PLUS, MINUS] {
            self.builder.edge(state, mark, mark, sign);
        }
        for from in [state, sign, digits] {
            self.builder.edge(from, ZERO, NINE, digits);
        }
        state
    }

    /// A state after `e` where one of the exponents must follow.
    fn listed_exponents(&mut self, exponents: &[i64]) -> u32 {
        let texts = |negative: bool| {
            let of_sign = exponents
                .iter()
                .filter(move |&&exponent| exponent == 0 || (exponent < 0) == negative);
            of_sign.map(|&exponent| match exponent {
                0 => Vec::new(),
                _ => exponent.unsigned_abs().to_string().into_bytes(),
            })
        };
        let [positive, negative] = [false, true].map(|negative| {
            let mut texts: Vec<Vec<u8>> = texts(negative).collect();
            texts.sort_unstable();
            texts
        });
        // A state of its own: unlike the states after a sign, a sign may follow it.
        let state = self.builder.state(false);
        for (sign, texts) in [(PLUS, &positive), (MINUS, &negative)] {
            if !texts.is_empty() {
                let after_sign = self.digits(texts.clone(), DigitsRead::None);
                self.builder.edge(state, sign, sign, after_sign);
            }
        }
        if !positive.is_empty() {
            self.next_digits(state, &positive, DigitsRead::None);
        }
        state
    }

    /// The state where one of the sorted digit texts must follow.
    fn digits(&mut self, texts: Vec<Vec<u8>>, read: DigitsRead) -> u32 {
        let key = (texts, read);
        if let Some(&state) = self.digits.get(&key) {
            return state;
        }
        let state = self.builder.state(read != DigitsRead::None && key.0.iter().any(Vec::is_empty));
        self.digits.insert(key.clone(), state);
        self.next_digits(state, &key.0, read);
        state
    }

    /// Adds the edges for the next digit of the texts, and for leading zeros.
    fn next_digits(&mut self, from: u32, texts: &[Vec<u8>], read: DigitsRead) {
        for digit in b'0'..=b'9' {
            let to = if digit == b'0' && read != DigitsRead::Significant {
                self.digits(texts.to_vec(), DigitsRead::Zeros)
            } else {
                let rest: Vec<Vec<u8>> = texts
                    .iter()
                    .filter_map(|text| text.strip_prefix(&[digit]).map(<[u8]>::to_vec))
                    .collect();
                if rest.is_empty() {
                    continue;
                }
                self.digits(rest, DigitsRead::Significant)
            };
            self.builder.edge(from, u32::from(digit), u32::from(digit), to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::spec::json::Json;

    /// All JSON numbers of up to `n` bytes with the digits 0, 1, 5.
    fn numbers(n: usize) -> Vec<String> {
        let json =
            |text: &str| matches!(Json::parse(text, &Limits::default()), Ok(Json::Number(_)));
        let mut out = vec![String::new()];
        for from in 0.. {
            let Some(text) = out.get(from).cloned() else { break };
            if text.len() < n {
                let longer = "-+015.e".chars().map(|c| format!("{text}{c}"));
                // Texts that at most two more bytes complete to a number.
                out.extend(longer.filter(|text| {
                    ["", "0", "00"].iter().any(|end| json(&format!("{text}{end}")))
                }));
            }
        }
        out.retain(|text| json(text));
        out
    }

    #[test]
    fn listed_numbers_have_exactly_the_documented_spellings() {
        let texts = numbers(7);
        let lists: [&[&str]; 7] = [
            &["0"],
            &["1"],
            &["-15", "150"],
            &["1.5", "1.505", "0.05"],
            &["5e3", "1e-4"],
            &["10", "100", "1", "0.1"],
            &[],
        ];
        for list in lists {
            let values: Vec<Decimal> = list.iter().map(|text| Decimal::parse(text)).collect();
            for zero_fraction in [false, true] {
                for exponents in [false, true] {
                    let dfa = listed_dfa(&values, NumberSpellings { zero_fraction, exponents });
                    let mut accepted = 0;
                    for text in &texts {
                        let value = Decimal::parse(text);
                        let (mantissa, power) =
                            text.split_once('e').map_or((&text[..], None), |(m, e)| (m, Some(e)));
                        let (whole, fraction) = mantissa
                            .split_once('.')
                            .map_or((mantissa, None), |(w, f)| (w, Some(f)));
                        let digits = whole.trim_start_matches('-');
                        // The point is not further out than the digits.
                        let near = value.is_zero()
                            || (digits != "0" || fraction.is_some_and(|f| !f.starts_with('0')))
                                && (digits == "0"
                                    || digits.len() as i64
                                        <= (value.digits().len() as i64)
                                            .max(value.first_place() + 1));
                        let spelled = (power.is_none() || exponents && near)
                            && (!value.is_integer()
                                || zero_fraction
                                || power.is_none() && fraction.is_none());
                        let want = values.contains(&value) && spelled;
                        assert_eq!(
                            dfa.accepts(text.bytes().map(u32::from)),
                            want,
                            "{text} {list:?} {exponents}"
                        );
                        accepted += usize::from(want);
                    }
                    assert!(list.is_empty() || accepted > 0);
                }
            }
        }
    }

    #[test]
    fn thousands_of_listed_numbers_build_one_automaton() {
        let values: Vec<Decimal> =
            (0..2_000).map(|n| Decimal::parse(&(n * 7_919).to_string())).collect();
        let dfa = listed_dfa(&values, NumberSpellings { zero_fraction: true, exponents: true });
        let accepts = |text: &str| dfa.accepts(text.bytes().map(u32::from));
        assert!(
            accepts("7919")
                && accepts("7.919e3")
                && accepts("15830081.0")
                && !accepts("7920")
                && !accepts("7.919e2")
        );
    }
}
