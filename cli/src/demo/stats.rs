//! Statistics of a demo run, and its final report.

use std::time::Duration;

use louver_mistralrs::Timing;
use serde_json::{Value, json};

/// Counts over all turns.
#[derive(Debug, Default)]
pub(super) struct RunStats {
    pub(super) calls: usize,
    pub(super) valid: usize,
    /// Number of required calls that were not made.
    pub(super) missing: usize,
    pub(super) answer_valid: bool,
    pub(super) tokens: usize,
    pub(super) timing: Timing,
}

impl RunStats {
    /// Whether every call and the answer were valid.
    pub(super) fn is_good(&self) -> bool {
        self.calls == self.valid && self.missing == 0 && self.answer_valid
    }

    pub(super) fn lines(&self, constrained: bool) -> Vec<String> {
        let percent = (self.valid * 100)
            .checked_div(self.calls)
            .map_or(String::new(), |p| format!(" ({p} %)"));
        let missing =
            if self.missing == 0 { String::new() } else { format!(", missing {}", self.missing) };
        let mut lines = vec![
            format!("calls      made {}, valid {}{percent}{missing}", self.calls, self.valid),
            format!("answer     {}", if self.answer_valid { "valid" } else { "NOT VALID" }),
            format!("tokens     {}", self.tokens),
        ];
        if constrained {
            let (mean, p99) =
                (micros(self.timing.mask_mean()), micros(self.timing.mask_quantile(0.99)));
            lines.push(format!("mask       mean {mean}, p99 {p99}"));
            lines.push(format!("Louver     {:.1} % of the step time", 100.0 * self.timing.share()));
        }
        lines
    }

    pub(super) fn record(&self, constrained: bool) -> Value {
        let mut value = json!({
            "type": "summary", "constrained": constrained, "calls": self.calls, "valid": self.valid,
            "missing": self.missing, "answer_valid": self.answer_valid, "tokens": self.tokens,
        });
        if constrained {
            value["mask_mean_us"] = json!(self.timing.mask_mean().as_secs_f64() * 1e6);
            value["mask_p99_us"] = json!(self.timing.mask_quantile(0.99).as_secs_f64() * 1e6);
            value["louver_share"] = json!(self.timing.share());
        }
        value
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}
