//! Robustness by attacks (`palisade robust`), and lazy TSO reachability (`--engine lazy`).
//!
//! *Problem.* Does a memory model with store buffers add any behaviour to a program? A program is robust if
//! every run has the happens-before of a sequentially consistent run (`palisade_trace::HappensBefore`).
//!
//! | file | idea |
//! |---|---|
//! | [`discard`] | stores that no attack can start with, by control flow alone |
//! | [`threads`] | where threads wait: the policy of the thread automaton of `palisade-automata` |
//! | [`sections`] | atomic sections as single events |
//! | [`state`], [`expand`], [`search`] | one search for all attacks; `expand` has the argument |
//! | [`crowd`] | the same with any number of threads, which are counted |
//! | [`witness`] | back to a run of the store-buffer machine |
//! | [`mod@triangular`] | triangular races: their absence is sufficient for robustness |
//! | [`lazy`] | TSO reachability by a few searches under SC: the oracle, the extension, unrolling |

mod attacks;
mod crowd;
mod discard;
mod expand;
mod lazy;
mod search;
mod sections;
mod state;
mod threads;
mod triangular;
mod witness;

pub use attacks::Attacks;
pub use lazy::Lazy;
pub use triangular::Triangles;
