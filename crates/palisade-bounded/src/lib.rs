//! Removing store buffers: TSO as SC within a bound, with the engines `rounds` and `age`.
//!
//! *Source.* Atig, Bouajjani and Parlato, "Getting rid of store buffers in TSO analysis" (CAV 2011).
//!
//! | file | idea |
//! |---|---|
//! | [`translate`](mod@translate) | the translations, program to program |
//! | [`enough`] | bounds that leave nothing out |
//! | [`back`] | a run of a translation as a run of the program |
//! | [`engine`] | the engines |

mod back;
mod engine;
mod enough;
mod translate;

pub use engine::{Age, Rounds};
pub use translate::{Bounded, Translation, translate, translate_age, translate_rounds};
