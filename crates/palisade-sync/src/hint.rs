//! As [`std::hint`].

use crate::runtime::here;
use crate::runtime::session::Place;
pub use std::hint::black_box;
use std::panic::Location;

/// Says that the thread waits in a loop. In a run, a round of such a loop that changes nothing is not run again and again.
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
            let instruction = state.session.instruction(Place::new(location, operation));
            state.look(here.thread, instruction, None);
        }
    }
}
