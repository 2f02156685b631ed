//! Well-quasi-orders. This crate is pure mathematics: it does not know what a program is.
//!
//! - [`is_subword`], [`embeds`] and [`injects`]: the orders on words and multisets, well-quasi-orders by Higman's lemma;
//! - [`Antichain`]: the minimal elements of an upward-closed set, with fast subsumption;
//! - [`Sharing`]: what several processes would have to exchange if they shared a search;
//! - [`Search`]: the generic backward search for well-structured systems (Abdulla, Čerāns, Jonsson and Tsay,
//!   LICS 1996; Finkel and Schnoebelen, TCS 2001).

mod antichain;
mod closed;
mod masks;
mod order;
mod search;
mod sharing;

pub use antichain::{Antichain, Entry, Signature};
pub use closed::{Closed, Generalise};
pub use order::{embeds, injects, is_subword};
pub use search::{Backward, Keys, NodeId, Search, SearchEnd};
pub use sharing::{Owners, Shares, Sharing};
