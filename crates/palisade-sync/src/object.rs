//! Objects have addresses that are the same in every execution: they depend on the thread that created them
//! and on their index among its objects.

use crate::runtime::Here;
use crate::runtime::here;

/// The identity of an atomic, a lock or a similar object.
#[derive(Debug)]
pub struct Object {
    created: Created,
}

#[derive(Clone, Copy, Debug)]
enum Created {
    /// In a constant or static; its address is its real one.
    Static,
    /// Outside any run.
    Outside,
    /// In an execution.
    In { epoch: u64, address: u64 },
}

/// The addresses of statics start here.
const STATICS: u64 = 1 << 62;

impl Object {
    /// An object that is created now.
    pub fn new() -> Object {
        let created = match here() {
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
        Object { created }
    }

    /// An object for statics.
    pub const fn fixed() -> Object {
        Object { created: Created::Static }
    }

    /// Whether it is in a static and so outlives executions.
    pub fn is_static(&self) -> bool {
        matches!(self.created, Created::Static)
    }

    /// Its address, if it belongs to the current execution.
    pub fn current_address(&self, here: &Here) -> Option<u64> {
        match self.created {
            Created::Static => Some(STATICS + (std::ptr::from_ref(self).addr() as u64)),
            Created::In { epoch, address } if epoch == here.run.epoch => Some(address),
            _ => None,
        }
    }

    /// Its address in the current execution.
    ///
    /// # Panics
    /// If it does not belong to the current execution.
    #[track_caller]
    pub fn address(&self, here: &Here) -> u64 {
        match self.current_address(here) {
            Some(address) => address,
            // During unwinding, addresses are no longer needed.
            None if std::thread::panicking() => 0,
            None => panic!(
                "this object is used in a run of palisade_sync but was created outside it: create everything that threads share inside the closure, or in a static with `const_new`"
            ),
        }
    }
}
