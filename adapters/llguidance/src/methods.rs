//! Short methods.

/// Public methods of one expression, each in a line: `ref name(this, argument: Type) -> Type =
/// expression;`, where `this` is `&self`, or `&mut self` after `mut`.
macro_rules! methods {
    ($($(#[$meta:meta])* $kind:ident $name:ident($this:ident $(, $arg:ident: $of:ty)*) -> $out:ty
        = $body:expr;)+) => {
        $(methods!(@$kind [$(#[$meta])*] $name [$this $(, $arg: $of)*] $out, $body);)+
    };
    (@ref [$($meta:tt)*] $name:ident [$this:ident $(, $arg:ident: $of:ty)*] $out:ty,
        $body:expr) => {
        $($meta)* pub fn $name(&self $(, $arg: $of)*) -> $out { let $this = self; $body }
    };
    (@mut [$($meta:tt)*] $name:ident [$this:ident $(, $arg:ident: $of:ty)*] $out:ty,
        $body:expr) => {
        $($meta)* pub fn $name(&mut self $(, $arg: $of)*) -> $out { let $this = self; $body }
    };
}
pub(crate) use methods;
