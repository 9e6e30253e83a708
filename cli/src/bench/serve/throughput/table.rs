//! The table of rates: a row for each arrangement.

use louver_mistralrs::Timing;

use super::{Measurement, SETUPS, Setup};
use crate::bench::stats::spread;

/// The first lines of the table.
pub(super) fn header() -> Vec<String> {
    [
        "| model, shape, at once | free, tokens/s | constrained / free | without overlap / free | \
         Louver draws / host draws | constrained / host | Louver's share | mask mean | mask p99 |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    .map(str::to_owned)
    .into()
}

/// The figures of one arrangement.
pub(super) struct Row<'r> {
    name: &'r str,
    rounds: &'r [Vec<Measurement>],
}

impl<'r> Row<'r> {
    /// `rounds` has the measurements of each of [`SETUPS`], in the order of the rounds.
    pub(super) fn new(name: &'r str, rounds: &'r [Vec<Measurement>]) -> Row<'r> {
        Row { name, rounds }
    }

    fn runs(&self, setup: Setup) -> &'r [Measurement] {
        let at = SETUPS.iter().position(|other| *other == setup);
        at.and_then(|at| self.rounds.get(at)).map_or(&[], Vec::as_slice)
    }

    /// The ratios of two setups' rates in the same round; least, median and greatest.
    fn ratio(&self, one: Setup, other: Setup) -> Option<[f64; 3]> {
        let pairs = self.runs(one).iter().zip(self.runs(other));
        spread(pairs.map(|(one, other)| one.rate / other.rate).collect())
    }

    /// The median ratio; 0 if nothing was measured.
    pub(super) fn constrained_to_free(&self) -> f64 {
        self.ratio(Setup::Constrained, Setup::Free).map_or(0.0, |[_, median, _]| median)
    }

    /// The row.
    pub(super) fn line(&self) -> String {
        let ratio = |one, other| match self.ratio(one, other) {
            Some([low, median, high]) => format!("{median:.2} ({low:.2} to {high:.2})"),
            None => "-".to_owned(),
        };
        let free = spread(self.runs(Setup::Free).iter().map(|run| run.rate).collect());
        let mut timing = Timing::default();
        self.runs(Setup::Constrained).iter().for_each(|run| timing.add(&run.timing));
        format!(
            "| {} | {:.0} | {} | {} | {} | {} | {:.1} % | {:.0} us | {:.0} us |",
            self.name,
            free.map_or(0.0, |[_, median, _]| median),
            ratio(Setup::Constrained, Setup::Free),
            ratio(Setup::ConstrainedNoOverlap, Setup::Free),
            ratio(Setup::Constrained, Setup::ConstrainedHostDraws),
            ratio(Setup::Constrained, Setup::Host),
            100.0 * timing.share(),
            timing.mask_mean().as_secs_f64() * 1e6,
            timing.mask_quantile(0.99).as_secs_f64() * 1e6,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rows_have_medians_of_the_ratios_by_round() {
        let run = |rate| Measurement {
            rate,
            timing: Timing::default(),
            took: Duration::from_secs(1),
            tokens: 1,
        };
        let runs = |rates: [f64; 3]| rates.map(run).into_iter().collect::<Vec<_>>();
        let mut rounds = vec![runs([100.0, 10.0, 1000.0])];
        rounds.push(runs([99.0, 11.0, 900.0]));
        rounds.push(runs([50.0, 5.0, 500.0]));
        rounds.push(runs([33.0, 11.0, 300.0]));
        rounds.push(Vec::new());
        let row = Row::new("m, calls, 8", &rounds);
        assert_eq!(row.constrained_to_free(), 0.99);
        let start = "| m, calls, 8 | 100 | 0.99 (0.90 to 1.10) | 0.50 (0.50 to 0.50) | \
                     3.00 (1.00 to 3.00) | - |";
        assert!(row.line().starts_with(start), "{}", row.line());
        assert_eq!(Row::new("", &[]).constrained_to_free(), 0.0);
    }
}
