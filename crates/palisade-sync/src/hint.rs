//! Like [`std::hint`].

use crate::runtime::here;
use crate::runtime::session::CallSite;
pub use std::hint::black_box;
use std::panic::Location;

/// Declares that the thread waits in a loop. In a run, an iteration of such a loop that changes nothing is
/// not repeated over and over.
#[track_caller]
pub fn spin_loop() {
    waits("spin_loop");
    std::hint::spin_loop();
}

#[track_caller]
pub(crate) fn waits(operation: &'static str) {
    let location = Location::caller();
    if let Some(here) = here() {
        let mut state = here.run.state();
        if state.end.is_none() {
            let instruction = state.session.instruction(CallSite::new(location, operation));
            state.look(here.thread, instruction, None);
        }
    }
}
