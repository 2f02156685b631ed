//! Exact engines by backward search over well-quasi-orders.
//!
//! - [`Dual`]: load buffers; TSO and SC, for fixed and for any numbers of threads.
//!
//! What is absent: text, and any step of the store-buffer machine. Runs found here are replayed there.

mod dual;

pub use dual::Dual;
