//! Well-quasi-orders: pure mathematics, no programs.
//!
//! - [`is_subword`] and [`injects`]: the orders on words and multisets that Higman's lemma makes well-quasi-orders;
//! - [`Antichain`]: the minimal elements of an upward-closed set, with fast subsumption;
//! - [`Search`]: the generic backward search for well-structured systems (Abdulla, Čerāns, Jonsson and Tsay, LICS 1996; Finkel and Schnoebelen,
//!   TCS 2001).

mod antichain;
mod masks;
mod order;
mod search;

pub use antichain::{Antichain, Entry, Signature};
pub use order::{injects, is_subword};
pub use search::{Backward, Found, NodeId, Search};
