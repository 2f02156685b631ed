//! Store buffers away: from TSO to SC with a bound on rounds or on the age of stores.

mod translate;

pub use translate::{Bounded, Translation, translate, translate_age, translate_rounds};
