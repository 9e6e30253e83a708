//! Leaf: setters of structs that users build, one line each. The adapters use them, too.

/// Gives a struct a method for each listed field that returns the value with that field replaced:
/// `with_methods!(Limits { with_depth: depth = usize })`. The field's value is converted with
/// `into`: `with_root: root = impl Into<String>`. Not part of the public interface.
#[doc(hidden)]
#[macro_export]
macro_rules! with_methods {
    (
        $type:ident $(<$($lifetime:lifetime),+>)? {
            $($(#[$attribute:meta])* $method:ident: $field:ident = $value:ty,)+
        }
    ) => {
        impl $(<$($lifetime),+>)? $type $(<$($lifetime),+>)? {
            $(
                #[doc = concat!(
                    "The same with this value of [`", stringify!($field), "`](", stringify!($type),
                    "::", stringify!($field), ").",
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
