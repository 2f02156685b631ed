//! Runs a closure with its threads under a scheduler: one thread at a time, with a decision before every
//! operation that other threads can observe.
//!
//! Threads are operating-system threads that pass a token around. A thread announces its next step. When it
//! is chosen, it takes the step and runs freely until its next one. None of this happens outside a run:
//! [`here`] returns the current thread's place in a run, if it belongs to one.

pub mod buffers;
mod decide;
mod livelock;
mod memory;
pub mod schedule;
pub mod session;
pub mod spin;
pub mod state;
pub mod strategy;
pub mod trace;

use buffers::{Buffers, Drain};
use palisade_dpor::{Footprint, Writes};
use palisade_monitor::{Action, Instruction};
use session::{CallSite, Session};
use state::{End, Failure, Outcomes, Pending, State, WITH_READERS, Wait};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use strategy::Strategy;

/// An execution in progress.
#[derive(Debug)]
pub struct Run {
    state: Mutex<State>,
    /// Notified whenever an operating-system thread ends.
    over: Condvar,
    pub epoch: u64,
}

/// The current thread's place in a run.
#[derive(Clone, Debug)]
pub struct Here {
    pub run: Arc<Run>,
    pub thread: usize,
}

/// The payload with which threads are unwound when their execution is over.
struct ExecutionOver;

thread_local! {
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
    /// The message and place of this thread's last panic.
    static PANIC: RefCell<Option<(String, Option<String>)>> = const { RefCell::new(None) };
}

/// The current thread's place in its run, if it belongs to one.
pub fn here() -> Option<Here> {
    HERE.try_with(|here| here.borrow().clone()).ok().flatten()
}

impl Run {
    /// The state. A panic while it is locked would be a bug in this crate, and the state would then not be
    /// worth protecting.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Here {
    /// The number of a call site.
    pub fn instruction(&self, location: &'static Location<'static>, operation: &'static str) -> Instruction {
        self.run.state().session.instruction(CallSite::new(location, operation))
    }

    /// Takes a step of a synchronisation object: announces it, waits for its turn, and performs it. Before
    /// that, all stores of the thread reach memory. `None` if the execution is over and the thread is being
    /// unwound.
    pub fn step<R>(
        &self,
        place: (&'static Location<'static>, &'static str),
        footprint: Footprint,
        wait: Wait,
        perform: impl FnOnce(&mut State, Instruction) -> R,
    ) -> Option<R> {
        self.step_with_outcomes(place, footprint, wait, Outcomes::One, perform)
    }

    /// The same for a step that may have several outcomes.
    pub fn step_with_outcomes<R>(
        &self,
        place: (&'static Location<'static>, &'static str),
        footprint: Footprint,
        wait: Wait,
        outcomes: Outcomes,
        perform: impl FnOnce(&mut State, Instruction) -> R,
    ) -> Option<R> {
        let pending =
            |instruction, _: &mut State| Pending { wait, outcomes, ..locked(instruction, footprint) };
        self.announced(place, pending, perform)
    }

    /// A step that may fail: `perform` returns whether it has changed the object. A step that fails only reads.
    pub fn attempt(
        &self,
        place: (&'static Location<'static>, &'static str),
        footprint: Footprint,
        perform: impl FnOnce(&mut State, Instruction) -> bool,
    ) -> Option<bool> {
        let footprint = Footprint { writes: Writes::Perhaps, ..footprint };
        // Its order with readers is part of the trace, even if it fails.
        let touched: Vec<(u64, bool)> =
            footprint.touches.iter().map(|touch| (touch.address, touch.size == WITH_READERS)).collect();
        let pending =
            |instruction, _: &mut State| Pending { traces_itself: true, ..locked(instruction, footprint) };
        self.announced(place, pending, |state, by| {
            let is_done = perform(state, by);
            if state.buffers.exist() {
                let touched = touched.into_iter().map(|(address, always)| (address, always || is_done));
                state.trace.access(self.thread, by, &touched.collect::<Vec<_>>());
            }
            if !is_done {
                state.failed();
            }
            is_done
        })
    }

    /// A step that only reads a synchronisation object. Stores may be pending.
    pub fn glance<R>(
        &self,
        place: (&'static Location<'static>, &'static str),
        footprint: Footprint,
        wait: Wait,
        perform: impl FnOnce(&mut State, Instruction) -> R,
    ) -> Option<R> {
        let pending =
            |instruction, _: &mut State| Pending { wait, drain: Drain::No, ..locked(instruction, footprint) };
        self.announced(place, pending, perform)
    }

    /// A step on an atomic, or a fence. What it touches, and which stores have to reach memory before, depends
    /// on the state when it is announced.
    pub fn atomic<R>(
        &self,
        place: (&'static Location<'static>, &'static str),
        touches: impl FnOnce(&mut State) -> (Footprint, Drain),
        perform: impl FnOnce(&mut State, Instruction) -> R,
    ) -> Option<R> {
        let pending = |instruction, state: &mut State| {
            let (footprint, drain) = touches(state);
            Pending { drain, traces_itself: true, ..locked(instruction, footprint) }
        };
        self.announced(place, pending, perform)
    }

    /// If the thread has stored since it last waited for its buffer to be empty: a step that waits for it.
    /// Returns whether there was such a step.
    pub fn drain(&self, place: (&'static Location<'static>, &'static str)) -> bool {
        let state = self.run.state();
        if state.end.is_some() || state.buffers.undrained(self.thread, Drain::All).is_empty() {
            return false;
        }
        drop(state);
        self.atomic(place, |_| (Footprint::nothing(), Drain::All), |_, _| ());
        true
    }

    fn announced<R>(
        &self,
        (location, operation): (&'static Location<'static>, &'static str),
        pending: impl FnOnce(Instruction, &mut State) -> Pending,
        perform: impl FnOnce(&mut State, Instruction) -> R,
    ) -> Option<R> {
        let mut state = self.run.state();
        if state.end.is_some() {
            drop(state);
            return self.unwind();
        }
        let instruction = state.session.instruction(CallSite::new(location, operation));
        let pending = pending(instruction, &mut state);
        state.announce(self.thread, pending);
        state.decide();
        match self.turn(state) {
            Some(mut state) => Some(perform(&mut state, instruction)),
            None => self.unwind(),
        }
    }

    /// Passes the token to the chosen thread and waits until that is this thread. `None` if the execution is
    /// over.
    fn turn<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Option<MutexGuard<'a, State>> {
        if state.running != Some(self.thread) {
            wake(&state);
        }
        let turn = state.thread(self.thread).turn.clone();
        loop {
            if state.end.is_some() {
                return None;
            }
            if state.running == Some(self.thread) {
                return Some(state);
            }
            state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Unwinds the thread, or lets it continue to unwind.
    pub fn unwind<R>(&self) -> Option<R> {
        if std::thread::panicking() { None } else { panic::resume_unwind(Box::new(ExecutionOver)) }
    }

    /// Records an event for the monitors between steps.
    pub fn note(&self, location: &'static Location<'static>, operation: &'static str, action: Action) {
        let mut state = self.run.state();
        if state.end.is_none() {
            let instruction = state.session.instruction(CallSite::new(location, operation));
            state.event(self.thread, instruction, action);
        }
    }
}

/// A step that does not have to wait, except for the stores of its thread to reach memory.
fn locked(instruction: Instruction, footprint: Footprint) -> Pending {
    Pending {
        footprint,
        wait: Wait::No,
        instruction,
        outcomes: Outcomes::One,
        drain: Drain::All,
        traces_itself: false,
    }
}

/// Wakes the running thread, or all threads at the end.
fn wake(state: &State) {
    match state.running {
        Some(next) => state.thread(next).turn.notify_one(),
        None => state.threads.iter().flatten().for_each(|thread| thread.turn.notify_one()),
    }
}

/// Runs the code of a thread from its first turn to its end. `Err` contains the payload of its panic, or
/// nothing if it was unwound because the execution is over.
pub fn body<T>(here: Here, code: impl FnOnce() -> T) -> Result<T, Option<Box<dyn Any + Send>>> {
    HERE.with(|place| *place.borrow_mut() = Some(here.clone()));
    let began = {
        let state = here.run.state();
        here.turn(state).is_some()
    };
    let result = if began { panic::catch_unwind(AssertUnwindSafe(code)).map_err(Some) } else { Err(None) };
    let result = match result {
        Err(Some(payload)) if payload.is::<ExecutionOver>() => Err(None),
        Err(Some(payload)) => {
            let (message, place) =
                PANIC.with(|panic| panic.borrow_mut().take()).unwrap_or_else(|| (message(&*payload), None));
            let mut state = here.run.state();
            let thread = state.name(here.thread);
            state.finish(End::Failed(Failure::Panic { thread, message, place }));
            Err(Some(payload))
        }
        other => other,
    };
    if result.is_ok() {
        let ended = panic::catch_unwind(AssertUnwindSafe(|| end(&here)));
        debug_assert!(
            ended.is_ok_and(|ended| ended) || here.run.state().end.is_some(),
            "the thread ends, or the execution has ended"
        );
    }
    HERE.with(|place| *place.borrow_mut() = None);
    let mut state = here.run.state();
    state.live -= 1;
    if state.end.is_some() {
        wake(&state);
    }
    drop(state);
    here.run.over.notify_all();
    result
}

/// The last step of a thread.
#[track_caller]
fn end(here: &Here) -> bool {
    let address = State::end_address(here.thread);
    let footprint = Footprint::one(address, 1, palisade_dpor::Mode::Write);
    let done = here.step((Location::caller(), "end"), footprint, Wait::No, |state, _| {
        state.progress(here.thread);
        state.thread_mut(here.thread).ended = true;
        state.decide();
        wake(state);
    });
    done.is_some()
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// The result of an execution.
#[derive(Debug)]
pub struct Finished {
    pub end: End,
    pub state: State,
}

/// Panics in threads of a run are stored for the report and not printed.
fn keep_panics() {
    static KEEP: Once = Once::new();
    KEEP.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if here().is_none() {
                return before(info);
            }
            let place = info.location().map(ToString::to_string);
            PANIC.with(|panic| *panic.borrow_mut() = Some((message(info.payload()), place)));
        }));
    });
}

/// How an execution is run.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Whether the steps are recorded for a search.
    pub records: bool,
    /// Empty buffers.
    pub buffers: Buffers,
    pub max_steps: usize,
    /// A thread that takes no step for this long is abandoned.
    pub watch: Duration,
}

/// Runs a closure once.
pub fn execute(
    code: &Arc<dyn Fn() + Send + Sync>,
    strategy: Strategy,
    session: Session,
    setting: Setting,
) -> Finished {
    let Setting { records, buffers, max_steps, watch } = setting;
    let none = Buffers::new(palisade_memory::Model::Sc, palisade_memory::Interlocked::WholeBuffer);
    static EPOCHS: AtomicU64 = AtomicU64::new(1);
    keep_panics();
    let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed);
    let mut state = State::new(strategy, session, buffers, records, max_steps);
    // The first thread needs an instruction to begin with; any will do, since it touches nothing.
    state.session.instruction(CallSite {
        file: file!(),
        line: line!(),
        column: column!(),
        operation: "begin",
    });
    state.decide();
    let run = Arc::new(Run { state: Mutex::new(state), over: Condvar::new(), epoch });
    let here = Here { run: run.clone(), thread: 0 };
    let code = code.clone();
    let main = std::thread::spawn(move || drop(body(here, move || code())));
    let mut state = run.state();
    let mut silent = false;
    while state.live > 0 {
        let steps = state.schedule.0.len();
        let (next, timeout) = run.over.wait_timeout(state, watch).unwrap_or_else(PoisonError::into_inner);
        state = next;
        if timeout.timed_out() && state.schedule.0.len() == steps && state.live > 0 {
            let thread = state
                .running
                .map_or_else(|| "a thread that should have ended".to_owned(), |thread| state.name(thread));
            state.finish(End::Failed(Failure::Silent(thread)));
            wake(&state);
            silent = true;
            break;
        }
    }
    let empty = State::new(Strategy::random(0, false), Session::default(), none, false, 0);
    let mut finished = std::mem::replace(&mut *state, empty);
    // If a silent thread returns, it finds that the execution is over.
    state.end = Some(End::Stopped);
    state.live = usize::MAX / 2;
    state.threads = Vec::new();
    drop(state);
    if !silent {
        main.join().expect("the first thread catches panics");
    }
    Finished { end: finished.end.take().unwrap_or(End::Complete), state: finished }
}
