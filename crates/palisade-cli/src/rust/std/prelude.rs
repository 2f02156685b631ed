//! What every program imports. Since some version, that includes the macros that print.

pub use real::prelude::*;

macro_rules! preludes {
    ($($name:ident)*) => {$(
        pub mod $name {
            pub use crate::{dbg, eprint, eprintln, print, println};
            pub use real::prelude::$name::*;
        }
    )*};
}

preludes! { v1 rust_2015 rust_2018 rust_2021 rust_2024 }
