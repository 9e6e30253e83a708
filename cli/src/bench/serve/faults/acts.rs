//! What clients do.

use crate::bench::serve::dice::Dice;
use crate::bench::serve::faults::REFERENCES;
use crate::bench::serve::hostile::Marker;

/// One thing a client does. `at`: which of the good requests.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// A request with a known answer; `traced`: recorded, and the trace is looked at.
    Good { at: usize, traced: bool },
    /// A stream that is left after so many chunks.
    LeaveStream { at: usize, chunks: usize, traced: bool },
    /// A request whose client gives up after so many microseconds.
    GiveUp { at: usize, micros: u64 },
    /// A connection that is closed in the middle of the body (half) or behind it, without reading.
    HangUp { at: usize, half: bool },
    /// A body that is no request.
    Malformed(usize),
    /// A body of 10 MB.
    Large,
    /// A request that is meant to cost much.
    Hostile(usize),
    /// A request to a model that is odd for it alone.
    Odd { at: usize, marker: Marker },
    /// A schema nobody has used before.
    Fresh(u64),
}

/// What an act is a case of. The names begin the records' ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// What it is, for people.
    pub(super) what: &'static str,
    /// Whether the client does not wait for its answer.
    pub(super) is_left: bool,
}

/// All kinds.
pub(super) const KINDS: [Kind; 9] = [
    Kind { name: "Good", what: "good", is_left: false },
    Kind { name: "Fresh", what: "schemas never seen", is_left: false },
    Kind { name: "Odd", what: "odd models", is_left: false },
    Kind { name: "Hostile", what: "hostile schemas", is_left: false },
    Kind { name: "Malformed", what: "malformed", is_left: false },
    Kind { name: "Large", what: "10 MB", is_left: false },
    Kind { name: "LeaveStream", what: "left streams", is_left: true },
    Kind { name: "GiveUp", what: "given up", is_left: true },
    Kind { name: "HangUp", what: "hung up", is_left: true },
];

impl Kind {
    /// Whether a record of this id is of this kind.
    pub(super) fn has(self, id: &str) -> bool {
        id.strip_prefix(self.name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    }
}

/// The `i`th act: a quarter is left, a quarter is odd in other ways, the rest is good; a quarter of the good ones and half
/// of the streams that are left are recorded.
pub(super) fn act(i: usize, dice: &mut Dice) -> Act {
    let at = dice.below(REFERENCES);
    match i % 16 {
        0 => Act::LeaveStream { at, chunks: 1 + dice.below(30), traced: true },
        4 => Act::LeaveStream { at, chunks: 1 + dice.below(3), traced: false },
        8 => Act::GiveUp { at, micros: dice.roll() % 40_000 },
        12 => Act::HangUp { at, half: dice.below(2) == 0 },
        2 if i % 160 == 2 => Act::Large,
        2 => Act::Malformed(dice.below(usize::MAX)),
        6 => Act::Hostile(dice.below(usize::MAX)),
        10 => {
            Act::Odd { at, marker: if dice.below(2) == 0 { Marker::Nan } else { Marker::EndFirst } }
        }
        14 => Act::Fresh(dice.roll()),
        n => Act::Good { at, traced: n % 4 == 1 && n < 8 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_left() {
        let mut dice = Dice::new(1);
        let ids: Vec<String> = (0..2000).map(|i| format!("{:?}", act(i, &mut dice))).collect();
        let kind =
            |id: &&String| KINDS.iter().filter(|kind| kind.has(id)).copied().collect::<Vec<_>>();
        assert!(ids.iter().all(|id| kind(&id).len() == 1));
        assert_eq!(ids.iter().filter(|id| kind(id)[0].is_left).count(), 500);
        for kind in KINDS {
            assert!(ids.iter().any(|id| kind.has(id)), "{kind:?}");
        }
        assert_eq!(
            ids.iter().filter(|id| id.starts_with("Good") && id.contains("traced: true")).count(),
            250
        );
    }
}
