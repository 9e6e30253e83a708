//! Ids of calls: written by the model or made up, and unique in a conversation.

use std::collections::HashSet;

use crate::format::IdStyle;

/// An id that the model has written.
pub(crate) struct WireCallId {
    /// The part of the header that belongs to the id, before the number.
    pub(crate) prefix: String,
    /// The part that numbers calls.
    pub(crate) number: String,
    pub(crate) style: IdStyle,
}

/// The ids of a generation's calls.
#[derive(Clone, Debug)]
pub(crate) struct CallIds {
    seed: u64,
    taken: HashSet<String>,
}

impl CallIds {
    pub(crate) fn new(seed: u64) -> Self {
        CallIds { seed, taken: HashSet::new() }
    }

    /// Reserves ids: no call gets one of them.
    pub(crate) fn reserve(&mut self, ids: impl IntoIterator<Item = String>) {
        self.taken.extend(ids);
    }

    /// The id of the call with this number: the id that the model has written, the next free one in
    /// its style, or one made up.
    pub(crate) fn next(&mut self, call: usize, written: Option<WireCallId>) -> String {
        let free = |id: &String| !self.taken.contains(id);
        let id = match &written {
            Some(WireCallId { prefix, number, style }) => {
                let numbered = (call..).map(|number| prefix.clone() + &style.write(number, ""));
                std::iter::once(prefix.clone() + number).chain(numbered).find(free)
            }
            None => (0..).map(|round| made_up_id(self.seed.wrapping_add(round), call)).find(free),
        };
        let id = id.unwrap_or_default();
        self.taken.insert(id.clone());
        id
    }
}

/// The number of letters and digits of a made-up id, after `call_`.
const ID_LEN: usize = 16;

/// A made-up id: `call_` and [`ID_LEN`] letters and digits, a function of the seed and the call's
/// number.
fn made_up_id(seed: u64, index: usize) -> String {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut state = mix(mix(seed).wrapping_add(index as u64));
    let letters = (0..ID_LEN).map(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        char::from(ALPHABET[(mix(state) % 62) as usize])
    });
    std::iter::once("call_".to_owned()).chain(letters.map(String::from)).collect()
}

/// SplitMix64's output function (Steele, Lea and Flood, 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
