//! Objects have addresses that are the same in every execution: they depend on the thread that created them
//! and on their index among its objects.

use crate::runtime::Here;
use crate::runtime::here;

/// The identity of an atomic, a lock or a similar object.
#[derive(Debug)]
pub struct Object {
    made: Created,
}

#[derive(Clone, Copy, Debug)]
enum Created {
    /// In a constant or static; its address is its real one.
    Static,
    /// Outside of any run.
    Outside,
    /// In an execution.
    In { epoch: u64, address: u64 },
}

/// The addresses of statics start here.
const STATICS: u64 = 1 << 62;

impl Object {
    /// An object that is created now.
    pub fn new() -> Object {
        let made = match here() {
            Some(here) => {
                let mut state = here.run.state();
                if state.end.is_some() {
                    Created::Outside
                } else {
                    Created::In { epoch: here.run.epoch, address: state.new_address(here.thread) }
                }
            }
            None => Created::Outside,
        };
        Object { made }
    }

    /// An object for statics.
    pub const fn fixed() -> Object {
        Object { made: Created::Static }
    }

    /// Whether it is in a static and so outlives executions.
    pub fn is_static(&self) -> bool {
        matches!(self.made, Created::Static)
    }

    /// Its address in the current execution.
    ///
    /// # Panics
    /// If it does not belong to the current execution.
    #[track_caller]
    pub fn address(&self, here: &Here) -> u64 {
        match self.made {
            Created::Static => STATICS + (std::ptr::from_ref(self).addr() as u64),
            Created::In { epoch, address } if epoch == here.run.epoch => address,
            // While everything is unwound, addresses are not needed any more.
            _ if std::thread::panicking() => 0,
            _ => panic!(
                "used in a run of palisade_sync but created outside of it: create everything that threads share inside the closure, or in a static with `const_new`"
            ),
        }
    }
}
