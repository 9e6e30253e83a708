//! Results of cases, their totals, and tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Mode;

/// The result of one case in one mode.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CaseResult {
    pub(super) id: String,
    #[serde(skip)]
    pub(super) category: String,
    pub(super) mode: Mode,
    /// Number of calls.
    pub(super) calls: usize,
    /// Number of calls that match their tool's schema.
    pub(super) valid: usize,
    /// Whether the calls are the expected ones.
    pub(super) is_right: bool,
    /// Whether the length limit ended the answer.
    pub(super) is_cut: bool,
    /// Generated tokens.
    pub(super) tokens: usize,
    /// Time of generation, without the prompt.
    pub(super) seconds: f64,
    /// Louver's part of it.
    pub(super) louver_seconds: f64,
    /// The calls, for people.
    pub(super) made: Vec<String>,
    /// The text besides them.
    pub(super) text: String,
}

impl CaseResult {
    /// Whether there are calls and all are valid.
    fn is_valid(&self) -> bool {
        self.calls > 0 && self.valid == self.calls
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.label())
    }
}

impl Mode {
    fn label(self) -> &'static str {
        match self {
            Mode::Free => "free",
            Mode::Host => "host",
            Mode::Louver => "louver",
        }
    }
}

/// Totals over cases in one mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Totals {
    pub(super) cases: usize,
    /// Cases with at least one call that can be read.
    pub(super) with_calls: usize,
    pub(super) calls: usize,
    pub(super) valid_calls: usize,
    /// Cases all of whose calls are valid, and that have one.
    pub(super) valid_cases: usize,
    /// Cases whose calls are the expected ones.
    pub(super) right_cases: usize,
    /// Cases that the length limit ended.
    pub(super) cut_cases: usize,
    pub(super) tokens: usize,
    pub(super) seconds: f64,
    pub(super) louver_seconds: f64,
}

impl Totals {
    pub(super) fn of<'r>(results: impl Iterator<Item = &'r CaseResult>) -> Totals {
        results.fold(Totals::default(), |all, one| Totals {
            cases: all.cases + 1,
            with_calls: all.with_calls + usize::from(one.calls > 0),
            calls: all.calls + one.calls,
            valid_calls: all.valid_calls + one.valid,
            valid_cases: all.valid_cases + usize::from(one.is_valid()),
            right_cases: all.right_cases + usize::from(one.is_right),
            cut_cases: all.cut_cases + usize::from(one.is_cut),
            tokens: all.tokens + one.tokens,
            seconds: all.seconds + one.seconds,
            louver_seconds: all.louver_seconds + one.louver_seconds,
        })
    }

    fn milliseconds_per_token(&self) -> f64 {
        1e3 * self.seconds / self.tokens.max(1) as f64
    }
}

/// A Markdown table.
pub(super) fn table(totals: &BTreeMap<(String, Mode), Totals>) -> String {
    let mut out = String::from(
        "| category | mode | cases | valid calls | valid cases | right cases | cut off | tokens | \
         ms per token | Louver's share |\n|:--|:--|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for ((category, mode), t) in totals {
        let share = match mode {
            Mode::Louver if t.seconds > 0.0 => {
                format!("{:.1} %", 100.0 * t.louver_seconds / t.seconds)
            }
            _ => "-".to_owned(),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} of {} | {} | {} | {} | {} | {:.1} | {share} |",
            category.trim_start_matches('~'),
            mode.label(),
            t.cases,
            t.valid_calls,
            t.calls,
            t.valid_cases,
            t.right_cases,
            t.cut_cases,
            t.tokens,
            t.milliseconds_per_token(),
        );
    }
    out
}

/// The results as a JSON document.
pub(super) fn json(
    model: &str,
    seed: u64,
    totals: &BTreeMap<(String, Mode), Totals>,
    results: &[CaseResult],
) -> Value {
    let totals = totals.iter().map(|((category, mode), totals)| {
        json!({"category": category.trim_start_matches('~'), "mode": mode, "totals": totals})
    });
    json!({
        "model": model, "seed": seed, "totals": totals.collect::<Vec<_>>(), "cases": results,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_added_and_shown() {
        let one = CaseResult {
            id: "simple_1".to_owned(),
            category: "simple".to_owned(),
            mode: Mode::Louver,
            calls: 2,
            valid: 1,
            is_right: true,
            is_cut: false,
            tokens: 10,
            seconds: 0.5,
            louver_seconds: 0.005,
            made: Vec::new(),
            text: String::new(),
        };
        let totals = Totals::of([&one, &one].into_iter());
        assert_eq!((totals.cases, totals.calls, totals.valid_calls), (2, 4, 2));
        let totals = BTreeMap::from([(("~all".to_owned(), Mode::Louver), totals)]);
        let row = "| all | louver | 2 | 2 of 4 | 0 | 2 | 0 | 20 | 50.0 | 1.0 % |";
        assert!(table(&totals).contains(row), "{}", table(&totals));
        assert_eq!(json("m", 1, &totals, &[one])["totals"][0]["mode"], "louver");
    }
}
