//! Decisions: which thread takes the next step, and when stores reach memory.

use super::schedule::Turn;
use super::session::Actor;
use super::state::{End, Failure, Object, State, Wait};
use super::strategy::{Candidate, Position, Strategy};
use palisade_dpor::{Choice, Mode};

/// How many times threads in waiting loops may continue when no other thread can.
const MAX_IDLE_STEPS: u32 = 2000;

/// Threads that have not ended.
#[derive(Default)]
struct Threads {
    ready: Vec<usize>,
    waiting: Vec<usize>,
    in_loops: Vec<usize>,
}

impl State {
    /// Decides what is next. Stores may reach memory. Afterwards a thread is running, or the execution has
    /// ended.
    pub fn decide(&mut self) {
        self.running = None;
        while self.end.is_none() {
            match self.choose() {
                Some((Turn::Step { thread, outcome }, outcomes)) => {
                    return self.take(thread, outcome, outcomes);
                }
                Some((Turn::Write { thread, buffer }, _)) => self.write(thread, buffer),
                None => return,
            }
        }
    }

    /// Chooses the next turn, with the number of outcomes that it has. `None` if the execution has ended.
    fn choose(&mut self) -> Option<(Turn, usize)> {
        let mut threads = self.sort_threads();
        let writes: Vec<(usize, usize, bool)> =
            self.buffers.oldest().map(|(thread, buffer, _, ready)| (thread, buffer, ready)).collect();
        for &(thread, buffer, is_ready) in &writes {
            if let Some(recording) = &mut self.recording {
                let key = self.buffers.key(thread, buffer);
                recording.waits(self.session.process(Actor::Buffer(thread, key)), !is_ready);
            }
        }
        self.idling = threads.ready.is_empty() && writes.is_empty();
        if let Some(thread) = self.wanted_in_loop(&threads).filter(|_| !self.idling) {
            let at = threads.ready.partition_point(|&other| other < thread);
            threads.ready.insert(at, thread);
        }
        if self.idling
            && let Some(end) = self.idle(&threads)
        {
            self.finish(end);
            return None;
        }
        let is_at_limit = self.schedule.0.len() >= self.max_steps;
        if is_at_limit && self.recording.is_some() {
            self.finish(End::Cut);
            return None;
        }
        if is_at_limit && !self.idling {
            let steps = threads.ready.iter().map(|&thread| Turn::Step { thread, outcome: 0 });
            let ready = writes.iter().filter(|(.., ready)| *ready);
            let writes = ready.map(|&(thread, buffer, _)| Turn::Write { thread, buffer });
            let turns: Vec<Turn> = steps.chain(writes).collect();
            return Some((self.choose_in_rounds(&turns)?, 1));
        }
        if self.idling {
            let next = threads.in_loops[self.idle as usize % threads.in_loops.len()];
            return Some((Turn::Step { thread: next, outcome: 0 }, 1));
        }
        let mut candidates: Vec<Candidate> = Vec::with_capacity(threads.ready.len() + writes.len());
        for thread in threads.ready {
            let process = self.session.process(Actor::Thread(thread));
            let pending =
                self.thread(thread).pending.as_ref().expect("the thread has announced its next step");
            let (outcomes, footprint) = (self.outcomes(pending), pending.footprint.clone());
            let turn = Turn::Step { thread, outcome: 0 };
            candidates.push(Candidate { process, turn, outcomes, footprint });
        }
        for (thread, buffer, _) in writes.into_iter().filter(|(.., ready)| *ready) {
            let process = self.session.process(Actor::Buffer(thread, self.buffers.key(thread, buffer)));
            let store = self.buffers.front(thread, buffer).cloned().expect("the buffer is not empty");
            let footprint = self.writing(thread, &store);
            let turn = Turn::Write { thread, buffer };
            candidates.push(Candidate { process, turn, outcomes: 1, footprint });
        }
        let mut strategy = self.strategy.take().expect("the strategy is present between decisions");
        let position = Position {
            last: self.last,
            last_thread: self.last_thread,
            step: self.schedule.0.len(),
            counts: &self.counts,
        };
        let chosen = strategy.choose(&candidates, position);
        self.strategy = Some(strategy);
        if chosen.is_none() {
            self.finish(End::Stopped);
        }
        chosen.map(|(candidate, turn)| (turn, candidates[candidate].outcomes))
    }

    /// The thread whose turn it is in a given schedule, if it can run and is in a loop that is treated as a wait. The
    /// search that made the schedule may have known better.
    fn wanted_in_loop(&self, threads: &Threads) -> Option<usize> {
        let wanted = self.strategy.as_ref().and_then(Strategy::wanted_thread)?;
        let pending =
            self.thread(*threads.in_loops.iter().find(|&&number| number == wanted)?).pending.as_ref()?;
        let drained = self.buffers.undrained(wanted, pending.drain);
        let is_ready = self.is_ready(wanted, pending.wait) && self.buffers.have_written(wanted, &drained);
        is_ready.then_some(wanted)
    }

    /// The threads that have not ended, by what they do.
    fn sort_threads(&mut self) -> Threads {
        let mut threads = Threads::default();
        for number in 0..self.threads.len() {
            let Some(thread) = &self.threads[number] else { continue };
            let Some(pending) = thread.pending.as_ref().filter(|_| !thread.ended) else { continue };
            if thread.round.is_some() {
                threads.in_loops.push(number);
                continue;
            }
            let drained = self.buffers.undrained(number, pending.drain);
            let is_ready = self.is_ready(number, pending.wait) && self.buffers.have_written(number, &drained);
            if let Some(recording) = &mut self.recording {
                recording.waits(self.session.process(Actor::Thread(number)), !is_ready);
            }
            let list = if is_ready { &mut threads.ready } else { &mut threads.waiting };
            list.push(number);
        }
        threads
    }

    /// Nothing is ready: whether the execution has ended, or threads in waiting loops continue.
    fn idle(&mut self, threads: &Threads) -> Option<End> {
        if threads.in_loops.is_empty() {
            return Some(if threads.waiting.is_empty() { End::Complete } else { self.deadlock() });
        }
        if self.recording.is_some() && !self.probation {
            if threads.in_loops.iter().any(|&number| !self.round_is_unchanged(number)) {
                return Some(End::Waited);
            }
            self.probation = true;
        }
        self.idle += 1;
        let is_over = self.idle > MAX_IDLE_STEPS;
        is_over.then(|| End::Failed(Failure::Spin(self.call_sites(|thread| thread.round.is_some()))))
    }

    /// The oldest store of a buffer reaches memory.
    fn write(&mut self, thread: usize, buffer: usize) {
        let key = self.buffers.key(thread, buffer);
        let process = self.session.process(Actor::Buffer(thread, key));
        if let Some(recording) = &mut self.recording {
            recording.step(Choice { process, outcome: 0 }, 1, None);
            let store = self.buffers.front(thread, buffer);
            if let Some(&value) = store.and_then(|store| self.memory.get(&store.address)) {
                recording.held(value);
            }
        }
        if !self.idling {
            self.schedule.0.push(Turn::Write { thread, buffer });
            self.count(process);
            self.last = Some(process);
        }
        self.write_oldest(thread, buffer);
        self.announce_write(thread, buffer);
    }

    fn count(&mut self, process: usize) {
        if self.counts.len() <= process {
            self.counts.resize(process + 1, 0);
        }
        self.counts[process] += 1;
    }

    /// Makes a thread the next one.
    fn take(&mut self, thread: usize, outcome: usize, outcomes: usize) {
        let pending = self.thread_mut(thread).pending.take().expect("the thread has announced its next step");
        let process = self.session.process(Actor::Thread(thread));
        if let Some(recording) = self.recording.as_mut().filter(|_| !self.idling) {
            let open =
                pending.footprint.touches.iter().find_map(|touch| match self.objects.get(&touch.address) {
                    Some(Object::Lock { readers: 0, writer }) => Some((touch.address, !writer)),
                    None if matches!(pending.wait, Wait::Free(lock) if lock == touch.address) => {
                        Some((touch.address, true))
                    }
                    _ => None,
                });
            let ends = State::end_address(thread);
            let open = open.or_else(|| {
                let end = pending.footprint.touches.iter().any(|touch| touch.address == ends);
                end.then_some((ends, false))
            });
            recording.step(Choice { process, outcome }, outcomes, open);
            if let [touch] = pending.footprint.touches.as_slice()
                && let Some(&value) = self.memory.get(&touch.address)
            {
                recording.held(value);
            }
        }
        if !self.idling {
            self.schedule.0.push(Turn::Step { thread, outcome });
            self.count(process);
            self.last = Some(process);
            self.last_thread = Some(process);
        }
        self.buffers.drained(thread, pending.drain);
        if self.buffers.exist() && !pending.traces_itself {
            let touches = pending.footprint.touches.iter();
            let touched: Vec<(u64, bool)> =
                touches.map(|touch| (touch.address, touch.mode == Mode::Write)).collect();
            self.trace.access(thread, pending.instruction, &touched);
        }
        self.running = Some(thread);
        debug_assert!(self.others_have_announced(thread), "only the running thread has no next step");
    }
}
