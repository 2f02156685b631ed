//! Objects have addresses that are the same in every execution: by who made them, and as how manieth.

use crate::runtime::Here;
use crate::runtime::here;

/// The identity of an atomic, a lock or the like.
#[derive(Debug)]
pub struct Object {
    made: Made,
}

#[derive(Clone, Copy, Debug)]
enum Made {
    /// In a constant or static; its address is that in memory.
    Static,
    /// Outside of any run.
    Outside,
    /// In an execution.
    In { epoch: u64, address: u64 },
}

/// Where statics are.
const STATICS: u64 = 1 << 62;

impl Object {
    /// Made now.
    pub fn new() -> Object {
        let made = match here() {
            Some(here) => {
                let mut state = here.run.state();
                if state.end.is_some() {
                    Made::Outside
                } else {
                    Made::In { epoch: here.run.epoch, address: state.new_address(here.thread) }
                }
            }
            None => Made::Outside,
        };
        Object { made }
    }

    /// For statics.
    pub const fn fixed() -> Object {
        Object { made: Made::Static }
    }

    /// Whether it is in a static, so that it outlives executions.
    pub fn is_static(&self) -> bool {
        matches!(self.made, Made::Static)
    }

    /// Its address in the present execution.
    ///
    /// # Panics
    /// If it does not belong to it.
    #[track_caller]
    pub fn address(&self, here: &Here) -> u64 {
        match self.made {
            Made::Static => STATICS + (std::ptr::from_ref(self).addr() as u64),
            Made::In { epoch, address } if epoch == here.run.epoch => address,
            // While everything is unwound nobody needs addresses any more.
            _ if std::thread::panicking() => 0,
            _ => panic!(
                "used in a run of palisade_sync, but made outside of it: make everything that threads share inside the closure, or in a static with `const_new`"
            ),
        }
    }
}
