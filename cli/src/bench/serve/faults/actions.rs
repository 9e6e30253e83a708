//! Actions of clients.

use louver::internals::SplitMix64;

use crate::bench::serve::faults::REFERENCE_CASES;
use crate::bench::serve::odd_models::PromptMarker;

/// An action of a client. `reference` is the index of a reference request.
#[derive(Clone, Debug)]
pub(super) enum ClientAction {
    /// A request with a known response; `traced`: with a trace, which is checked.
    Good { reference: usize, traced: bool },
    /// Disconnects from a stream after a number of chunks.
    LeaveStream { reference: usize, chunks: usize, traced: bool },
    /// Disconnects before the response, after a time.
    GiveUp { reference: usize, micros: u64 },
    /// Closes the connection within the body (`half`) or after it, without reading.
    HangUp { reference: usize, half: bool },
    /// A malformed body.
    Malformed(usize),
    /// A body of 10 MB.
    Large,
    /// A request designed to be expensive.
    Hostile(usize),
    /// A request for which the model behaves oddly.
    Odd { reference: usize, marker: PromptMarker },
    /// A request with a new schema.
    Fresh(u64),
}

/// The kind of an action. Record ids begin with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActionKind {
    pub(super) name: &'static str,
    /// A description for people.
    pub(super) description: &'static str,
    /// Whether the client does not wait for the response.
    pub(super) disconnects: bool,
}

/// All kinds.
pub(super) const ACTION_KINDS: [ActionKind; 9] = [
    ActionKind { name: "Good", description: "good", disconnects: false },
    ActionKind { name: "Fresh", description: "schemas never seen", disconnects: false },
    ActionKind { name: "Odd", description: "odd models", disconnects: false },
    ActionKind { name: "Hostile", description: "hostile schemas", disconnects: false },
    ActionKind { name: "Malformed", description: "malformed", disconnects: false },
    ActionKind { name: "Large", description: "10 MB", disconnects: false },
    ActionKind { name: "LeaveStream", description: "left streams", disconnects: true },
    ActionKind { name: "GiveUp", description: "given up", disconnects: true },
    ActionKind { name: "HangUp", description: "hung up", disconnects: true },
];

impl ActionKind {
    /// Whether a record with this id has this kind.
    pub(super) fn matches(self, id: &str) -> bool {
        id.strip_prefix(self.name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    }
}

/// The `i`th action. A quarter disconnects, a quarter is unusual in other ways, the rest is good. A
/// quarter of the good requests and half of the abandoned streams are traced.
pub(super) fn random_action(i: usize, random: &mut SplitMix64) -> ClientAction {
    let reference = random.below(REFERENCE_CASES);
    match i % 16 {
        0 => ClientAction::LeaveStream { reference, chunks: 1 + random.below(30), traced: true },
        4 => ClientAction::LeaveStream { reference, chunks: 1 + random.below(3), traced: false },
        8 => ClientAction::GiveUp { reference, micros: random.next_u64() % 40_000 },
        12 => ClientAction::HangUp { reference, half: random.below(2) == 0 },
        2 if i % 160 == 2 => ClientAction::Large,
        2 => ClientAction::Malformed(random.below(usize::MAX)),
        6 => ClientAction::Hostile(random.below(usize::MAX)),
        10 => ClientAction::Odd {
            reference,
            marker: if random.below(2) == 0 { PromptMarker::Nan } else { PromptMarker::EndFirst },
        },
        14 => ClientAction::Fresh(random.next_u64()),
        n => ClientAction::Good { reference, traced: n % 4 == 1 && n < 8 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_clients_disconnects() {
        let mut random = SplitMix64::new(1);
        let ids: Vec<String> =
            (0..2000).map(|i| format!("{:?}", random_action(i, &mut random))).collect();
        let kind = |id: &&String| {
            ACTION_KINDS.iter().filter(|kind| kind.matches(id)).copied().collect::<Vec<_>>()
        };
        assert!(ids.iter().all(|id| kind(&id).len() == 1));
        assert_eq!(ids.iter().filter(|id| kind(id)[0].disconnects).count(), 500);
        for kind in ACTION_KINDS {
            assert!(ids.iter().any(|id| kind.matches(id)), "{kind:?}");
        }
        assert_eq!(
            ids.iter().filter(|id| id.starts_with("Good") && id.contains("traced: true")).count(),
            250
        );
    }
}
