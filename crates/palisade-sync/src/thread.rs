//! Like [`std::thread`]: threads that a run schedules.

use crate::runtime::state::{Object as Shared, State, Wait, touching};
use crate::runtime::{Here, body, here};
use palisade_dpor::Mode;
use palisade_monitor::{Access, Action, Bytes, Process};
use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::{Arc, Mutex, PoisonError};
pub use std::thread::{AccessError, LocalKey, Result, ThreadId, available_parallelism, panicking};
use std::time::Duration;

/// The result of a thread of a run; `None` as the error if it was unwound because the execution was over.
type Ended<T> = std::result::Result<T, Option<Box<dyn Any + Send>>>;

/// Like [`std::thread::spawn`].
///
/// # Panics
/// If the operating system cannot start a thread.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f).expect("the operating system can start a thread")
}

/// Like [`std::thread::Builder`].
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
    stack_size: Option<usize>,
}

impl Builder {
    /// A builder with default settings.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// The thread's name, which reports show.
    pub fn name(self, name: String) -> Builder {
        Builder { name: Some(name), ..self }
    }

    /// The size of its stack.
    pub fn stack_size(self, size: usize) -> Builder {
        Builder { stack_size: Some(size), ..self }
    }

    fn std(&self) -> std::thread::Builder {
        let builder = std::thread::Builder::new();
        let builder = self.name.iter().fold(builder, |builder, name| builder.name(name.clone()));
        self.stack_size.iter().fold(builder, |builder, size| builder.stack_size(*size))
    }

    /// Starts the thread.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let Some(child) = start(self.name.clone(), Location::caller()) else {
            return self.std().spawn(f).map(|inner| JoinHandle(Handle::Outside(inner)));
        };
        let place = child.clone();
        let inner = self.std().spawn(move || body(place, f))?;
        let thread = Thread { inner: inner.thread().clone(), number: Some(child.thread) };
        Ok(JoinHandle(Handle::Inside(inner, thread)))
    }
}

/// A new thread of the run, if this is in a run.
fn start(name: Option<String>, location: &'static Location<'static>) -> Option<Here> {
    let here = here()?;
    // Starting a thread is a system call, before which all stores reach memory.
    here.drain((location, "spawn"));
    let instruction = here.instruction(location, "spawn");
    let mut state = here.run.state();
    if state.end.is_some() {
        drop(state);
        here.unwind::<()>();
        return None;
    }
    let thread = state.start(here.thread, name, instruction);
    drop(state);
    Some(Here { run: here.run, thread })
}

/// Waits in the run for the end of a thread.
fn wait_for(thread: usize, location: &'static Location<'static>) {
    let Some(here) = here() else { return };
    let address = State::end_address(thread);
    let footprint = touching(&[(address, 1, Mode::Read)], true);
    here.glance((location, "join"), footprint, Wait::End(thread), |state, by| {
        state.event(here.thread, by, Action::Join(Process(thread as u32)));
        state.progress(here.thread);
    });
}

fn result<T>(joined: Result<Ended<T>>) -> Result<T> {
    match joined {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Some(payload))) | Err(payload) => Err(payload),
        Ok(Err(None)) => Err(Box::new("the execution is over")),
    }
}

/// Like [`std::thread::JoinHandle`].
#[derive(Debug)]
pub struct JoinHandle<T>(Handle<T>);

#[derive(Debug)]
enum Handle<T> {
    Outside(std::thread::JoinHandle<T>),
    Inside(std::thread::JoinHandle<Ended<T>>, Thread),
}

impl<T> JoinHandle<T> {
    /// Waits for the end of the thread.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        let location = Location::caller();
        match self.0 {
            Handle::Outside(inner) => inner.join(),
            Handle::Inside(inner, thread) => {
                wait_for(thread.number.unwrap_or(0), location);
                result(inner.join())
            }
        }
    }

    /// The thread.
    pub fn thread(&self) -> Thread {
        match &self.0 {
            Handle::Outside(inner) => Thread { inner: inner.thread().clone(), number: None },
            Handle::Inside(_, thread) => thread.clone(),
        }
    }

    /// Whether it has ended.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Handle::Outside(inner) => inner.is_finished(),
            Handle::Inside(inner, thread) => match (here(), thread.number) {
                (Some(here), Some(number)) => ended(&here, number, Location::caller()),
                _ => inner.is_finished(),
            },
        }
    }
}

/// Checks whether a thread has ended.
fn ended(here: &Here, thread: usize, location: &'static Location<'static>) -> bool {
    let address = State::end_address(thread);
    let footprint = touching(&[(address, 1, Mode::Read)], false);
    let ended = here.glance((location, "is_finished"), footprint, Wait::No, |state, by| {
        let ended = state.threads[thread].as_ref().is_some_and(|thread| thread.ended);
        state.look_at_object(here.thread, by, (address, u64::from(ended)));
        ended
    });
    ended.unwrap_or(true)
}

/// Like [`std::thread::scope`], except that the scope is passed by reference without a separate lifetime:
/// threads that start others in the scope use a clone of it.
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&Scope<'scope, 'env>) -> T,
{
    let location = Location::caller();
    std::thread::scope(|inner| {
        let scope = Scope { inner, started: Arc::default() };
        let result = panic::catch_unwind(AssertUnwindSafe(|| f(&scope)));
        // The scope of the standard library waits for all threads, and the run has to know that.
        loop {
            let next = scope.started.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(thread) = next else { break };
            wait_for(thread, location);
        }
        result.unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}

/// Like [`std::thread::Scope`].
#[derive(Clone, Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    inner: &'scope std::thread::Scope<'scope, 'env>,
    /// Threads of a run that have not been joined.
    started: Arc<Mutex<Vec<usize>>>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a thread of the scope.
    ///
    /// # Panics
    /// If the operating system cannot start a thread.
    #[track_caller]
    pub fn spawn<F, T>(&self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let Some(child) = start(None, Location::caller()) else {
            return ScopedJoinHandle(ScopedHandle::Outside(self.inner.spawn(f)));
        };
        let number = child.thread;
        self.started.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        let inner = self.inner.spawn(move || body(child, f));
        ScopedJoinHandle(ScopedHandle::Inside(inner, number, self.started.clone()))
    }
}

/// Like [`std::thread::ScopedJoinHandle`].
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T>(ScopedHandle<'scope, T>);

#[derive(Debug)]
enum ScopedHandle<'scope, T> {
    Outside(std::thread::ScopedJoinHandle<'scope, T>),
    Inside(std::thread::ScopedJoinHandle<'scope, Ended<T>>, usize, Arc<Mutex<Vec<usize>>>),
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the end of the thread.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        let location = Location::caller();
        match self.0 {
            ScopedHandle::Outside(inner) => inner.join(),
            ScopedHandle::Inside(inner, number, started) => {
                wait_for(number, location);
                started.lock().unwrap_or_else(PoisonError::into_inner).retain(|&other| other != number);
                result(inner.join())
            }
        }
    }
}

/// Like [`std::thread::Thread`].
#[derive(Clone, Debug)]
pub struct Thread {
    inner: std::thread::Thread,
    number: Option<usize>,
}

impl Thread {
    /// Its id.
    pub fn id(&self) -> ThreadId {
        self.inner.id()
    }

    /// Its name.
    pub fn name(&self) -> Option<&str> {
        self.inner.name()
    }

    /// Wakes the thread if it is parked, or the next time it parks.
    #[track_caller]
    pub fn unpark(&self) {
        let (Some(here), Some(number)) = (here(), self.number) else { return self.inner.unpark() };
        token(&here, number, "unpark", Wait::No, true, Location::caller());
    }
}

/// The current thread.
pub fn current() -> Thread {
    Thread { inner: std::thread::current(), number: here().map(|here| here.thread) }
}

/// Waits until the thread is unparked.
#[track_caller]
pub fn park() {
    let Some(here) = here() else { return std::thread::park() };
    let address = State::token_address(here.thread);
    token(&here, here.thread, "park", Wait::Token(address), false, Location::caller());
}

/// Like [`park`], but with a time limit; in a run the time can be over at once.
#[track_caller]
pub fn park_timeout(timeout: Duration) {
    let Some(here) = here() else { return std::thread::park_timeout(timeout) };
    token(&here, here.thread, "park_timeout", Wait::No, false, Location::caller());
}

/// A step on the token of a thread.
fn token(
    here: &Here,
    thread: usize,
    operation: &'static str,
    wait: Wait,
    available: bool,
    location: &'static Location<'static>,
) {
    let address = State::token_address(thread);
    let footprint = touching(&[(address, 1, Mode::Write)], wait != Wait::No);
    here.step((location, operation), footprint, wait, |state, by| {
        state.objects.insert(address, Shared::Token(available));
        let bytes = Bytes::new(address, 1).expect("addresses of objects are far below the maximum");
        state.event(here.thread, by, Action::Access(Access::Locked, bytes));
        state.progress(here.thread);
    });
}

/// Lets other threads run; in a run, a [hint](crate::hint::spin_loop) that the thread waits.
#[track_caller]
pub fn yield_now() {
    crate::hint::waits("yield_now");
    if here().is_none() {
        std::thread::yield_now();
    }
}

/// Waits for some time; in a run, only a [hint](crate::hint::spin_loop) that the thread waits.
#[track_caller]
pub fn sleep(duration: Duration) {
    crate::hint::waits("sleep");
    if here().is_none() {
        std::thread::sleep(duration);
    }
}
