//! Shared leaf: what makes the engine fast, part by part, so that each part's worth can be measured and the rest tested without it.

/// Whether a part is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// It is.
    #[default]
    On,
    /// It is not.
    Off,
}

impl Switch {
    /// Whether it is on.
    pub fn is_on(self) -> bool {
        self == Switch::On
    }
}

/// The parts of an engine that can be switched off. No switch changes a mask; each costs time when it is off. All are on by default.
///
/// Sharing between grammars and simplification have options of their own. Configurations are always interned: their ids are what everything else is
/// kept by; `transitions` and `masks` are what is kept by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Where the bytes of a configuration lead is kept. Off: it is found anew each time.
    pub transitions: Switch,
    /// Finished masks are kept. Off: each is made anew, and what was made ahead is lost.
    pub masks: Switch,
    /// Configurations that no token tells apart, in counters, steps or members that there have been, have one mask, which is kept once. Off: each has
    /// one of its own.
    pub stand_ins: Switch,
    /// Masks of different configurations that turn out to be alike are held once. Off, or with `masks` off: each is held.
    pub alike: Switch,
    /// Which of the tokens that an entry leaves undecided are allowed is kept, by what follows the rule. Off: they are read anew for each mask.
    pub lookahead: Switch,
    /// Counted repeats are counters. Off: they are written out, those apart that would have more than 2,000 nodes, behind
    /// 100,000 nodes in one grammar all others, and those of bodies that are made later.
    pub counters: Switch,
    /// [`Constraint::prepare`](crate::engine::Constraint::prepare) and [`Matcher::prefetch`](crate::engine::Matcher::prefetch) make masks in the
    /// background. Off: they do nothing.
    pub ahead: Switch,
}

impl Switches {
    /// All off.
    pub const OFF: Switches = Switches {
        transitions: Switch::Off,
        masks: Switch::Off,
        stand_ins: Switch::Off,
        alike: Switch::Off,
        lookahead: Switch::Off,
        counters: Switch::Off,
        ahead: Switch::Off,
    };
}
