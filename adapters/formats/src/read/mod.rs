//! Reading: the output of a generation -> events and turns. The extractor reads constrained output
//! as it arrives; lenient reading parses whole texts that were generated without a constraint.

mod call_ids;
mod events;
mod extractor;
mod header;
mod lenient;
mod matching;
mod scan;
mod stop_strings;
mod turn;

pub use self::events::{Cut, Event};
pub use self::extractor::Extractor;
pub use self::lenient::{Difference, Reading};
pub use self::turn::{Call, Incomplete, Turn, TurnCollector};
