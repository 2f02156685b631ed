//! Memory orders of C, C++ and Rust: which events an atomic operation consists of.
//!
//! This is the only place that defines it, for everything that records executions of real programs. The
//! events are those of the machine code that compilers generate:
//!
//! | operation | order | x86 (TSO) | SPARC (PSO) | events |
//! |---|---|---|---|---|
//! | load | any | `mov` | `ld` | load |
//! | store | relaxed | `mov` | `st` | store |
//! | store | release | `mov` | `membar #StoreStore`, `st` | sfence, store |
//! | store | seq_cst | `xchg` | `membar #StoreStore`, `st`, `membar #StoreLoad` | lock |
//! | read-modify-write | any | `lock …` | `cas` | lock |
//! | compare-and-swap that fails | any | `lock cmpxchg` | `cas` | lock-load |
//! | fence | acquire | nothing | nothing | none |
//! | fence | release, acq_rel | nothing | `membar #StoreStore` | sfence |
//! | fence | seq_cst | `mfence` | `membar #StoreLoad …` | fence |
//!
//! Accesses that are not atomic count as relaxed. The events are the same for both models: the monitor for
//! TSO ignores store-store fences.
//!
//! With [`Interlocked::OwnAddress`](palisade_memory::Interlocked), a locked instruction under PSO waits only
//! for stores to its own address and for those before a store-store fence. To keep the meaning of memory
//! orders in that case, a read-modify-write with release or stronger is a store-store fence followed by a
//! locked instruction.

use crate::event::{Access, Action, Bytes};
use std::sync::atomic::Ordering;

/// An atomic operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// A load.
    Load(Bytes),
    /// A store.
    Store(Bytes),
    /// A read-modify-write that writes, even if it writes the same value: exchange, fetch-and-add, a
    /// compare-and-swap that succeeds.
    Modify(Bytes),
    /// A compare-and-swap that fails.
    Fail(Bytes),
    /// A fence (`atomic_thread_fence`).
    Fence,
}

/// The events of an operation with a memory order, at most two.
pub fn actions(operation: Operation, order: Ordering) -> impl Iterator<Item = Action> {
    let (is_fenced, action) = fenced_action(operation, order);
    is_fenced.then_some(Action::StoreFence).into_iter().chain(action)
}

/// The same as a pair: whether a store-store fence comes first, and the action that follows.
pub const fn fenced_action(operation: Operation, order: Ordering) -> (bool, Option<Action>) {
    let releases = matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst);
    let strongest = matches!(order, Ordering::SeqCst);
    match operation {
        Operation::Load(bytes) => (false, Some(Action::Access(Access::Load, bytes))),
        Operation::Store(bytes) if strongest => (releases, Some(Action::Access(Access::Locked, bytes))),
        Operation::Store(bytes) => (releases, Some(Action::Access(Access::Store, bytes))),
        Operation::Modify(bytes) => (releases, Some(Action::Access(Access::Locked, bytes))),
        Operation::Fail(bytes) => (false, Some(Action::Access(Access::LockedLoad, bytes))),
        Operation::Fence if strongest => (false, Some(Action::Fence)),
        Operation::Fence => (releases, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Instruction, Monitor, Process};
    use palisade_memory::{Interlocked, Model};

    /// Takes two operations of a first thread and then two of a second one, and checks which models show a
    /// violation.
    fn check(first: [Operation; 2], second: [Operation; 2], order: Ordering, expected: &[Model]) {
        for interlocked in [Interlocked::WholeBuffer, Interlocked::OwnAddress] {
            let mut monitor = Monitor::new(interlocked);
            for (thread, operations) in [first, second].into_iter().enumerate() {
                for action in operations.into_iter().flat_map(|operation| actions(operation, order)) {
                    let process = Process(thread as u32);
                    monitor.take(&Event { process, instruction: Instruction(0), action });
                }
            }
            let found: Vec<Model> =
                monitor.violations().sorted().iter().map(|(violation, _)| violation.model).collect();
            assert_eq!(found, expected, "{first:?} {second:?} {order:?} {interlocked:?}");
        }
    }

    #[test]
    fn orders() {
        let [x, y] = [0, 8].map(|address| Bytes::new(address, 8).expect("eight bytes are fine"));
        use Operation::{Load, Modify, Store};
        // Store buffering: only the strongest order helps.
        let buffering =
            |order, expected: &[Model]| check([Store(x), Load(y)], [Store(y), Load(x)], order, expected);
        buffering(Ordering::Relaxed, &[Model::Tso, Model::Pso]);
        buffering(Ordering::Release, &[Model::Tso, Model::Pso]);
        buffering(Ordering::SeqCst, &[]);
        // Message passing: the flag is seen, so the data must be.
        let passing =
            |order, expected: &[Model]| check([Store(x), Store(y)], [Load(y), Load(x)], order, expected);
        passing(Ordering::Relaxed, &[Model::Pso]);
        passing(Ordering::Release, &[]);
        passing(Ordering::SeqCst, &[]);
        check([Store(x), Modify(y)], [Load(y), Load(x)], Ordering::AcqRel, &[]);
    }
}
