//! Leaf: typed ids. Each table index has a type of its own, so that a rule cannot be used as a
//! state.

/// An id that can index a table.
pub(crate) trait TableId: Copy {
    /// As a table index.
    fn table_index(self) -> usize;
}

/// Declares an id: a `u32` with a type of its own.
macro_rules! id {
    ($(#[$doc:meta])* $vis:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $vis struct $name(u32);

        // No id needs all of these.
        #[allow(dead_code)]
        impl $name {
            /// The id with this index. Panics only beyond `u32::MAX`; every limit on table sizes is
            /// far below.
            #[inline]
            $vis fn new(index: usize) -> Self {
                $name(u32::try_from(index).expect("table index within u32"))
            }

            /// The id with this raw number.
            #[inline]
            $vis const fn from_raw(raw: u32) -> Self {
                $name(raw)
            }

            /// The raw number.
            #[inline]
            $vis const fn raw(self) -> u32 {
                self.0
            }

            /// As a table index.
            #[inline]
            $vis const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl $crate::ids::TableId for $name {
            #[inline]
            fn table_index(self) -> usize {
                self.index()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// A token id of the model's vocabulary.
    ///
    /// ```
    /// use louver::TokenId;
    ///
    /// let id = TokenId::from_raw(257);
    /// assert_eq!((id.raw(), id.index(), id), (257, 257, TokenId::new(257)));
    /// ```
    pub TokenId
}
id! {
    /// A rule of one [`Grammar`](crate::ir::Grammar).
    pub RuleId
}
id! {
    /// A special token named by a grammar: an index into
    /// [`Grammar::specials`](crate::ir::Grammar::specials).
    pub SpecialId
}
id! {
    /// A label that a front end puts on a rule and that traces report. The engine attaches no
    /// meaning to it.
    pub Label
}

pub(crate) use id;
