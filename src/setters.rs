//! Leaf: setters of option structs, one line each.

/// Gives an option struct a method for each listed field that returns the options with that field
/// replaced: `with_methods!(Limits { with_depth: depth = usize })`. The value is converted with
/// `into`: `with_root: root = impl Into<String>`.
macro_rules! with_methods {
    ($options:ident { $($(#[$attribute:meta])* $method:ident: $field:ident = $value:ty,)+ }) => {
        impl $options {
            $(
                #[doc = concat!(
                    "The same options with this value of [`", stringify!($field), "`](",
                    stringify!($options), "::", stringify!($field), ").",
                )]
                $(#[$attribute])*
                #[must_use]
                pub fn $method(mut self, $field: $value) -> Self {
                    self.$field = $field.into();
                    self
                }
            )+
        }
    };
}

pub(crate) use with_methods;
