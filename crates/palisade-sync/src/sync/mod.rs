//! Like [`std::sync`].

pub mod atomic;
mod barrier;
mod cell;
mod condvar;
pub mod mpsc;
mod mutex;
mod once;
mod rwlock;

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use once::{LazyLock, Once, OnceLock};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};

use crate::runtime::Here;
use crate::runtime::state::State;
use palisade_monitor::{Access, Action, Bytes, Instruction};

/// The memory events of a synchronisation object: a locked instruction between two fences.
fn meet(state: &mut State, here: &Here, instruction: Instruction, address: u64) {
    let bytes = Bytes::new(address, 1).expect("addresses of objects are far below the maximum");
    for action in [Action::Fence, Action::Access(Access::Locked, bytes), Action::Fence] {
        state.event(here.thread, instruction, action);
    }
    state.progress(here.thread);
}
