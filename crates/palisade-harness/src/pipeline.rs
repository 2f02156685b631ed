//! Executions of a search that the session's own process runs before the search asks for them, while the search is
//! busy with earlier ones.
//!
//! The search announces what it is going to request ([`palisade_dpor::Executions::expect`]). These executions are sent to
//! the process at once. It runs them one after the other, and what it logs waits in the pipe until it is read. So one
//! job keeps two processors busy: the program runs on one and the search on the other. Further jobs have processes of
//! their own (`ahead.rs`).
//!
//! *Invariants.*
//! 1. Executions end in the order in which they were begun.
//! 2. An execution depends only on its command, so it shows the same whether it was begun in advance or not. What
//!    commands know of earlier executions is compared when a result is used (`ahead.rs`).

use crate::ahead::{Kept, Key, Ran, key, read};
use crate::schedule::Command;
use crate::worker::{Cut, Worker};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many executions are begun at the same time.
const BEGUN: usize = 4;

/// Executions of one process.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    /// Those that were sent to the process and not read, the first one first.
    begun: VecDeque<Key>,
    /// Those that were read and not requested yet.
    ended: Kept<Ran>,
}

impl Pipeline {
    /// How many more executions to announce now.
    pub(crate) fn appetite(&self) -> usize {
        BEGUN.saturating_sub(self.begun.len())
    }

    /// Whether the process has executions that were not read.
    pub(crate) fn is_busy(&self) -> bool {
        !self.begun.is_empty()
    }

    /// The search is going to request this execution.
    pub(crate) fn expect(&mut self, worker: &mut Worker, command: &Command) {
        let key = key(command);
        let is_known = self.begun.contains(&key) || self.ended.contains(&key);
        if !is_known && worker.server.try_ask(command) {
            self.begun.push_back(key);
        }
    }

    /// The execution with this command. Also returns how long it took to read others that were begun before.
    pub(crate) fn run(&mut self, worker: &mut Worker, command: &Command) -> (Result<Ran, Cut>, Duration) {
        let key = key(command);
        if let Some(ran) = self.ended.remove(&key) {
            return (Ok(ran), Duration::ZERO);
        }
        let start = Instant::now();
        if !self.begun.contains(&key) {
            if self.begun.is_empty() || !worker.server.try_ask(command) {
                // Others come first: the program may wait for their logs to be read before it reads a long request.
                while let Some(next) = self.begun.pop_front() {
                    if let Err(cut) = self.read_other(worker, next) {
                        return (Err(cut), start.elapsed());
                    }
                }
                if let Err(lost) = worker.server.ask(command) {
                    return (Err(lost.into()), start.elapsed());
                }
            }
            self.begun.push_back(key.clone());
        }
        while let Some(next) = self.begun.pop_front() {
            if next == key {
                let waited = start.elapsed();
                return (read(worker), waited);
            }
            if let Err(cut) = self.read_other(worker, next) {
                return (Err(cut), start.elapsed());
            }
        }
        unreachable!("the execution was begun");
    }

    /// Reads an execution that is requested later.
    fn read_other(&mut self, worker: &mut Worker, key: Key) -> Result<(), Cut> {
        match read(worker) {
            Ok(ran) => {
                let records = ran.log.len();
                self.ended.insert(key, ran, records);
                Ok(())
            }
            // What it has shown belongs to another command.
            Err(Cut { lost, .. }) => Err(lost.into()),
        }
    }
}
