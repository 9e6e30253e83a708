//! Results of cases, their totals, and the table.

use std::fmt::Write as _;
use std::time::Duration;

use super::super::record::{CallVerdict, RequestRecord};
use super::Mode;
use crate::bench::stats::nanos;

/// The result of one case in one mode.
#[derive(Clone, Debug)]
pub(super) struct CaseResult {
    pub(super) id: String,
    pub(super) category: String,
    pub(super) mode: Mode,
    /// Number of calls.
    pub(super) calls: usize,
    pub(super) verdict: CallVerdict,
    /// Whether the length limit ended the answer.
    pub(super) is_truncated: bool,
    /// Generated tokens.
    pub(super) tokens: usize,
    /// Time of generation, without the prompt.
    pub(super) took: Duration,
    /// Louver's part of it.
    pub(super) louver: Duration,
}

impl CaseResult {
    /// Whether there are calls and all are valid.
    pub(super) fn is_valid(&self) -> bool {
        self.calls > 0 && self.verdict.valid == self.calls
    }

    /// A line of the output file.
    pub(super) fn record(&self) -> RequestRecord {
        RequestRecord {
            id: format!("{} {}", self.id, self.mode.label()),
            took_ns: nanos(self.took),
            tokens: Some(self.tokens as u64),
            louver_ns: (self.mode == Mode::Louver).then(|| nanos(self.louver)),
            finish: Some(if self.is_truncated { "length" } else { "stop" }.to_owned()),
            calls: Some(self.calls as u64),
            verdict: Some(self.verdict.clone()),
            ..RequestRecord::default()
        }
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
#[derive(Clone, Debug, Default, PartialEq)]
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
    pub(super) truncated: usize,
    pub(super) tokens: usize,
    pub(super) took: Duration,
    pub(super) louver: Duration,
}

impl Totals {
    pub(super) fn of<'r>(results: impl Iterator<Item = &'r CaseResult>) -> Totals {
        results.fold(Totals::default(), |all, one| Totals {
            cases: all.cases + 1,
            with_calls: all.with_calls + usize::from(one.calls > 0),
            calls: all.calls + one.calls,
            valid_calls: all.valid_calls + one.verdict.valid,
            valid_cases: all.valid_cases + usize::from(one.is_valid()),
            right_cases: all.right_cases + usize::from(one.verdict.is_right),
            truncated: all.truncated + usize::from(one.is_truncated),
            tokens: all.tokens + one.tokens,
            took: all.took + one.took,
            louver: all.louver + one.louver,
        })
    }

    /// None if nothing was generated.
    fn milliseconds_per_token(&self) -> Option<f64> {
        (self.tokens > 0).then(|| 1e3 * self.took.as_secs_f64() / self.tokens as f64)
    }

    /// The time per token, relative to another's.
    fn ratio(&self, free: &Totals) -> Option<f64> {
        let (own, free) = (self.milliseconds_per_token()?, free.milliseconds_per_token()?);
        (free > 0.0).then(|| own / free)
    }
}

/// The lines of a Markdown table: each category and mode, and at the end all categories.
pub(super) fn table(results: &[CaseResult], modes: &[Mode]) -> Vec<String> {
    let mut categories: Vec<Option<&str>> = Vec::new();
    for result in results {
        if !categories.contains(&Some(&*result.category)) {
            categories.push(Some(&result.category));
        }
    }
    categories.push(None);
    let mut lines = vec![
        "| category | mode | cases | right cases | valid calls | valid cases | cut off | tokens | ms \
         per token | ratio to free | Louver's share |"
            .to_owned(),
        "|:--|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|".to_owned(),
    ];
    for category in categories {
        let totals = |mode: Mode| {
            let is_own = |result: &&CaseResult| {
                result.mode == mode && category.is_none_or(|name| name == result.category)
            };
            Totals::of(results.iter().filter(is_own))
        };
        let free = totals(Mode::Free);
        let name = category.unwrap_or("all");
        lines.extend(modes.iter().map(|mode| row(name, *mode, &totals(*mode), &free)));
    }
    lines
}

fn row(category: &str, mode: Mode, t: &Totals, free: &Totals) -> String {
    let share = match mode {
        Mode::Louver if !t.took.is_zero() => {
            format!("{:.1} %", 100.0 * t.louver.as_secs_f64() / t.took.as_secs_f64())
        }
        _ => "-".to_owned(),
    };
    let number =
        |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.2}"));
    let (time, ratio) = (number(t.milliseconds_per_token()), number(t.ratio(free)));
    let mut out = String::new();
    let _ = write!(
        out,
        "| {category} | {} | {} | {} | {} of {} | {} | {} | {} | {time} | {ratio} | {share} |",
        mode.label(),
        t.cases,
        t.right_cases,
        t.valid_calls,
        t.calls,
        t.valid_cases,
        t.truncated,
        t.tokens,
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_added_and_shown() {
        let one = |mode, millis| CaseResult {
            id: "simple_1".to_owned(),
            category: "simple".to_owned(),
            mode,
            calls: 2,
            verdict: CallVerdict { valid: 1, is_right: true, ..CallVerdict::default() },
            is_truncated: false,
            tokens: 10,
            took: Duration::from_millis(millis),
            louver: Duration::from_millis(5),
        };
        let modes = [Mode::Free, Mode::Louver];
        let lines = table(&[one(modes[0], 400), one(modes[1], 500), one(modes[1], 500)], &modes);
        let free = "| simple | free | 1 | 1 | 1 of 2 | 0 | 0 | 10 | 40.00 | 1.00 | - |";
        let louver = "| all | louver | 2 | 2 | 2 of 4 | 0 | 0 | 20 | 50.00 | 1.25 | 1.0 % |";
        assert_eq!((lines.len(), &*lines[2], &*lines[5]), (6, free, louver));
        assert!(!one(Mode::Louver, 1).is_valid());
    }
}
