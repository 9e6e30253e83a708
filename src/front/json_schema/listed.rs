//! Numbers that `enum` and `const` list, in the spellings they have.

use super::decimal::Decimal;
use crate::fsm::{Dfa, DfaBuilder};
use crate::hash::HashMap;

/// Most digits that are written out.
const MAX_DIGITS: usize = 64;
/// Most digits before the point of a number with an exponent.
const MAX_BEFORE: i64 = 20;

/// What listed numbers may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spellings {
    /// Whole ones: a fraction of zeros, and exponents if numbers have any.
    pub(super) zero_fraction: bool,
    pub(super) exponents: bool,
}

/// The texts of these numbers, as a minimal automaton over bytes: without an exponent, and with the point anywhere from before the
/// first digit to behind the last and the exponent that goes with it; any number of zeros at the end of a fraction and at the
/// beginning of an exponent. A number with more than 64 digits has no spelling without an exponent here. Cost: close to linear
/// in the numbers' digits, up to twenty of each.
pub(super) fn listed(values: &[Decimal], spellings: Spellings) -> Dfa {
    let mut trie = Trie { nodes: vec![Node::default()] };
    for value in values {
        trie.number(value, spellings);
    }
    trie.dfa(spellings)
}

/// What may follow a text that ends no number as it stands, or does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Ends {
    /// Nothing.
    plain: bool,
    /// One of these exponents.
    powers: Vec<i64>,
    /// Any exponent.
    any: bool,
}

impl Ends {
    fn is_none(&self) -> bool {
        *self == Ends::default()
    }

    fn join(&mut self, other: &Ends) {
        self.plain |= other.plain;
        self.any |= other.any;
        self.powers.extend(&other.powers);
        self.powers.sort_unstable();
        self.powers.dedup();
    }
}

#[derive(Default)]
struct Node {
    /// Behind the point.
    fraction: bool,
    children: Vec<(u8, usize)>,
    ends: Ends,
    /// The same if zeros come first.
    behind_zeros: Ends,
}

/// Beginnings of numbers, up to their exponents.
struct Trie {
    nodes: Vec<Node>,
}

impl Trie {
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

    fn ends(&mut self, text: &[u8]) -> &mut Ends {
        let node = text.iter().fold(0, |node, &byte| self.child(node, byte));
        &mut self.nodes[node].ends
    }

    fn number(&mut self, value: &Decimal, spellings: Spellings) {
        let exponents = spellings.exponents && (spellings.zero_fraction || !value.is_integer());
        if value.is_zero() {
            for text in ["0", "-0"] {
                self.ends(text.as_bytes()).join(&Ends {
                    plain: true,
                    any: exponents,
                    ..Ends::default()
                });
            }
            return;
        }
        if let Some(text) = value.plain(MAX_DIGITS) {
            self.ends(text.as_bytes()).plain = true;
        }
        let digits: Vec<u8> = value.digits().iter().map(|digit| b'0' + digit).collect();
        let length = digits.len() as i64;
        let most = length.max(value.power() + 1).min(MAX_BEFORE);
        for before in (0..=most).filter(|_| exponents && digits.len() <= MAX_DIGITS) {
            let mut text = if value.is_negative() { b"-".to_vec() } else { Vec::new() };
            let point = before.min(length) as usize;
            text.extend(if before == 0 { b"0" } else { &digits[..point] });
            text.resize(text.len() + (before - length).max(0) as usize, b'0');
            if before < length {
                text.push(b'.');
                text.extend(&digits[point..]);
            }
            let power = value.power() + 1 - before;
            self.ends(&text).join(&Ends { powers: vec![power], ..Ends::default() });
        }
    }

    /// Zeros at the end of a fraction change nothing: what may end before them may end behind them.
    fn add_zeros(&mut self, spellings: Spellings) {
        let mut at = 0;
        while at < self.nodes.len() {
            let mut ends = self.nodes[at].ends.clone();
            if self.nodes[at].fraction {
                ends.join(&self.nodes[at].behind_zeros);
                match self.nodes[at].children.iter().find(|(byte, _)| *byte == b'0') {
                    Some(&(_, child)) => {
                        self.nodes[at].behind_zeros = Ends::default();
                        self.nodes[child].ends.join(&ends);
                    }
                    None => self.nodes[at].behind_zeros = ends,
                }
            } else {
                ends.plain &= spellings.zero_fraction;
                if !ends.is_none() {
                    let point = self.child(at, b'.');
                    self.nodes[point].behind_zeros.join(&ends);
                }
            }
            // Children come behind their parents.
            at += 1;
        }
    }

    fn dfa(mut self, spellings: Spellings) -> Dfa {
        self.add_zeros(spellings);
        let mut build = Build::default();
        let states: Vec<u32> =
            self.nodes.iter().map(|node| build.builder.state(node.ends.plain)).collect();
        for (node, &state) in self.nodes.iter().zip(&states) {
            for &(byte, child) in &node.children {
                build.builder.edge(state, u32::from(byte), u32::from(byte), states[child]);
            }
            build.exponent(state, &node.ends);
            if !node.behind_zeros.is_none() {
                let zeros = build.zeros(&node.behind_zeros);
                build.builder.edge(state, 48, 48, zeros);
            }
        }
        build.builder.finish().minimize()
    }
}

#[derive(Default)]
struct Build {
    builder: DfaBuilder,
    /// Behind zeros, and behind `e`, by what may follow.
    behind_zeros: HashMap<Ends, u32>,
    behind_e: HashMap<Ends, u32>,
    /// In an exponent, by the digits that may follow: nothing read, only zeros, more.
    digits: HashMap<(Vec<Vec<u8>>, Read), u32>,
}

/// What of an exponent's digits has been read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Read {
    Nothing,
    Zeros,
    More,
}

impl Build {
    fn zeros(&mut self, ends: &Ends) -> u32 {
        if let Some(&known) = self.behind_zeros.get(ends) {
            return known;
        }
        let state = self.builder.state(ends.plain);
        self.behind_zeros.insert(ends.clone(), state);
        self.builder.edge(state, 48, 48, state);
        self.exponent(state, ends);
        state
    }

    fn exponent(&mut self, from: u32, ends: &Ends) {
        if !ends.any && ends.powers.is_empty() {
            return;
        }
        let ends = Ends { plain: false, ..ends.clone() };
        let state = match self.behind_e.get(&ends) {
            Some(&known) => known,
            None => {
                let state = if ends.any { self.any() } else { self.powers(&ends.powers) };
                self.behind_e.insert(ends, state);
                state
            }
        };
        for mark in [69, 101] {
            self.builder.edge(from, mark, mark, state);
        }
    }

    fn any(&mut self) -> u32 {
        let (state, sign, digits) =
            (self.builder.state(false), self.builder.state(false), self.builder.state(true));
        for mark in [43, 45] {
            self.builder.edge(state, mark, mark, sign);
        }
        for from in [state, sign, digits] {
            self.builder.edge(from, 48, 57, digits);
        }
        state
    }

    fn powers(&mut self, powers: &[i64]) -> u32 {
        let texts = |negative: bool| {
            let of_sign =
                powers.iter().filter(move |&&power| power == 0 || (power < 0) == negative);
            of_sign.map(|&power| {
                if power == 0 { Vec::new() } else { power.unsigned_abs().to_string().into_bytes() }
            })
        };
        let [above, below] = [false, true].map(|negative| {
            let mut texts: Vec<Vec<u8>> = texts(negative).collect();
            texts.sort_unstable();
            texts
        });
        // The same as behind a sign, and not that state: a sign may follow.
        let state = self.builder.state(false);
        for (sign, texts) in [(43, &above), (45, &below)] {
            if !texts.is_empty() {
                let behind = self.digits(texts.clone(), Read::Nothing);
                self.builder.edge(state, sign, sign, behind);
            }
        }
        if !above.is_empty() {
            self.next_digits(state, &above, Read::Nothing);
        }
        state
    }

    /// The state where one of these (sorted) must follow.
    fn digits(&mut self, texts: Vec<Vec<u8>>, read: Read) -> u32 {
        let key = (texts, read);
        if let Some(&known) = self.digits.get(&key) {
            return known;
        }
        let state = self.builder.state(read != Read::Nothing && key.0.iter().any(Vec::is_empty));
        self.digits.insert(key.clone(), state);
        self.next_digits(state, &key.0, read);
        state
    }

    fn next_digits(&mut self, from: u32, texts: &[Vec<u8>], read: Read) {
        for digit in b'0'..=b'9' {
            let to = if digit == b'0' && read != Read::More {
                self.digits(texts.to_vec(), Read::Zeros)
            } else {
                let rest: Vec<Vec<u8>> = texts
                    .iter()
                    .filter_map(|text| text.strip_prefix(&[digit]).map(<[u8]>::to_vec))
                    .collect();
                if rest.is_empty() {
                    continue;
                }
                self.digits(rest, Read::More)
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
                // What one or two more bytes make a number.
                out.extend(longer.filter(|text| {
                    ["", "0", "00"].iter().any(|end| json(&format!("{text}{end}")))
                }));
            }
        }
        out.retain(|text| json(text));
        out
    }

    #[test]
    fn listed_numbers_are_spelt_as_documented() {
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
                    let dfa = listed(&values, Spellings { zero_fraction, exponents });
                    let mut accepted = 0;
                    for text in &texts {
                        let value = Decimal::parse(text);
                        let (mantissa, power) =
                            text.split_once('e').map_or((&text[..], None), |(m, e)| (m, Some(e)));
                        let (whole, fraction) = mantissa
                            .split_once('.')
                            .map_or((mantissa, None), |(w, f)| (w, Some(f)));
                        let digits = whole.trim_start_matches('-');
                        // The point is not further out than the digits are.
                        let near = value.is_zero()
                            || (digits != "0" || fraction.is_some_and(|f| !f.starts_with('0')))
                                && (digits == "0"
                                    || digits.len() as i64
                                        <= (value.digits().len() as i64).max(value.power() + 1));
                        let spelt = (power.is_none() || exponents && near)
                            && (!value.is_integer()
                                || zero_fraction
                                || power.is_none() && fraction.is_none());
                        let want = values.contains(&value) && spelt;
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
    fn many_numbers_are_listed_at_once() {
        let values: Vec<Decimal> =
            (0..2_000).map(|n| Decimal::parse(&(n * 7_919).to_string())).collect();
        let dfa = listed(&values, Spellings { zero_fraction: true, exponents: true });
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
