//! Leaf: switches for the optimisations of the engine, so that the worth of each can be measured
//! and the rest tested without it.

use crate::setters::with_methods;

/// Whether an optimisation is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// It is used.
    #[default]
    On,
    /// It is not used.
    Off,
}

impl Switch {
    /// Whether it is used.
    pub fn is_on(self) -> bool {
        self == Switch::On
    }
}

/// Declares [`Switches`]: a switch is one line here, and the place where it is read. Tests of masks
/// and `louver bench schema --ablation ROUNDS` go through [`Switches::EACH`].
macro_rules! switches {
    ($($(#[$doc:meta])+ $field:ident / $method:ident,)+) => {
        /// The optimisations of an engine that can be switched off. None changes a mask; each costs
        /// time when it is off. All are on by default.
        ///
        /// Sharing between grammars and simplification have options of their own. Interning cannot
        /// be switched off: caches are keyed by the ids of configurations.
        ///
        /// ```
        /// use std::sync::Arc;
        /// use louver::internals::{Switch, Switches};
        /// use louver::{Engine, EngineOptions, Vocabulary};
        ///
        /// let switches = Switches::default().with_resolved_suffixes(Switch::Off);
        /// let options = EngineOptions::default().with_switches(switches);
        /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), options);
        /// assert!(!engine.options().switches.resolved_suffixes.is_on());
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Switches {
            $($(#[$doc])+ pub $field: Switch,)+
        }

        with_methods!(Switches { $($method: $field = Switch,)+ });

        impl Switches {
            /// All off.
            pub const OFF: Switches = Switches { $($field: Switch::Off,)+ };

            /// Each optimisation: its name, and the switches with this one off and all others on.
            pub const EACH: &[(&str, Switches)] = &[
                $((stringify!($field), Switches { $field: Switch::Off, ..Switches::ON }),)+
            ];

            const ON: Switches = Switches { $($field: Switch::On,)+ };
        }
    };
}

switches! {
    /// The transition cache. Off: each transition is computed anew.
    transitions / with_transitions,
    /// The cache of finished masks. Off: each mask is made anew, and masks made in the background
    /// are lost.
    masks / with_masks,
    /// Representatives: configurations that no token can tell apart share one mask. Off: each has
    /// its own.
    representatives / with_representatives,
    /// Equal masks of different configurations are stored once. Off, or with `masks` off: each is
    /// stored.
    equal_masks / with_equal_masks,
    /// The cache of the decisions on context-dependent tokens, keyed by what follows the rule. Off:
    /// they are decided anew for each mask.
    resolved_suffixes / with_resolved_suffixes,
    /// Counters for counted repeats. Off: repeats are written out as copies, except those of more
    /// than 2,000 nodes, those past 100,000 nodes in one grammar, and those in deferred bodies.
    counters / with_counters,
    /// Background work by [`Constraint::prepare`](crate::engine::Constraint::prepare) and
    /// [`Matcher::prefetch`](crate::engine::Matcher::prefetch). Off: they do nothing.
    background / with_background,
}
