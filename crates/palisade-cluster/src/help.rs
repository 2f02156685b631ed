//! One process works, and the others answer questions that come up in its work.
//!
//! [`share_out`](crate::share_out) is for questions that are known from the start. Here process 0 does its work as if it
//! were alone, and asks [`Helpers`] for parts of it ahead of time. What it decides does not depend on them: an answer is
//! what it would have found out itself. So the result is the same for any number of processes.
//!
//! *Threads.* The work runs on a thread of its own. The thread of the seat passes on questions and answers, and notices
//! when a process is lost. In the other processes, answers are found on a thread of their own, for the same reason.
//!
//! *Ends.* If a process is lost, or asked to stop, the flag that stops the work is set everywhere.

use crate::agree::{Agreed, Work, agree, another_question};
use crate::questions::{OVER, STACK, STOP, decode, encode};
use crate::seat::{Lost, Seat};
use palisade_engine::Limits;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Questions that a process has at a time, so that it does not wait for the next one.
const AHEAD: usize = 2;

/// How long the others have to answer after the work was stopped.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a question and its answer look like here: bytes that only those who ask and answer understand.
type Bytes = Vec<u8>;

/// The processes that answer questions.
#[derive(Clone, Debug)]
pub struct Helpers {
    count: usize,
    ask: Sender<(Bytes, Sender<Bytes>)>,
    main: Thread,
}

/// An answer that may not be there yet.
#[derive(Debug)]
pub struct Pending(Receiver<Bytes>);

impl Helpers {
    /// There are no helpers.
    fn nobody() -> Helpers {
        Helpers { count: 0, ask: channel().0, main: thread::current() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many questions keep all of them busy.
    pub fn appetite(&self) -> usize {
        AHEAD * self.count
    }

    /// Asks whichever is free first.
    pub fn ask(&self, question: Vec<u8>) -> Pending {
        let (sender, receiver) = channel();
        // If nobody listens any more, there will be no answer.
        let _ = self.ask.send((question, sender));
        self.main.unpark();
        Pending(receiver)
    }
}

impl Pending {
    /// Waits for the answer, and asks from time to time whether to go on waiting. `None` if there will not be an answer,
    /// because the group has come to an end.
    pub fn wait_while(self, time: Duration, goes_on: impl Fn() -> bool) -> Option<Vec<u8>> {
        loop {
            match self.0.recv_timeout(time) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Timeout) if goes_on() => {}
                Err(_) => return None,
            }
        }
    }

    /// The answer, if it is there.
    pub fn get(&self) -> Option<Vec<u8>> {
        self.0.try_recv().ok()
    }
}

/// Does work in process 0, for which all other processes answer questions, and returns its result there. `what` is a number
/// that differs if processes were asked different things. `stop` ends the work and the answers to questions early.
///
/// If a process is lost, the result is what the work has come to by then.
pub fn with_help<T: Send>(
    seat: &mut Seat,
    what: u64,
    stop: &AtomicBool,
    work: impl FnOnce(&Helpers) -> T + Send,
    answer: impl FnMut(&[u8]) -> Vec<u8> + Send,
) -> (Option<T>, Result<(), Lost>) {
    match agree(seat, Work::Help, what, &Limits::unlimited(1)) {
        Ok(Agreed::Yes) => {}
        Ok(Agreed::ToStop) => {
            stop.store(true, Ordering::Relaxed);
            return ((seat.index() == 0).then(|| work(&Helpers::nobody())), Ok(()));
        }
        Err(lost) => return (None, Err(lost)),
    }
    match seat.index() {
        0 => lead(seat, stop, work),
        _ => (None, follow(seat, stop, answer)),
    }
}

/// A thread that works beside the one of the seat, and wakes it up at its end, even if it panics.
struct Wakes(Thread);

impl Drop for Wakes {
    fn drop(&mut self) {
        self.0.unpark();
    }
}

fn lead<T: Send>(
    seat: &mut Seat,
    stop: &AtomicBool,
    work: impl FnOnce(&Helpers) -> T + Send,
) -> (Option<T>, Result<(), Lost>) {
    let main = thread::current();
    let (ask, questions) = channel();
    let helpers = Helpers { count: seat.processes() - 1, ask, main: main.clone() };
    thread::scope(|scope| {
        let working = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
            let _wakes = Wakes(main);
            work(&helpers)
        });
        let working = working.expect("the host lets a process have a second thread");
        let passed = pass_on(seat, stop, &questions, || working.is_finished());
        if passed.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        // Whoever waits for an answer waits in vain.
        drop(questions);
        let result = working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (1..seat.processes()).for_each(|process| seat.tell(process, vec![OVER]));
        (Some(result), passed)
    })
}

/// Passes questions on to the other processes and answers back, until the work is over.
fn pass_on(
    seat: &mut Seat,
    stop: &AtomicBool,
    questions: &Receiver<(Bytes, Sender<Bytes>)>,
    is_over: impl Fn() -> bool,
) -> Result<(), Lost> {
    let mut waiting: VecDeque<(Bytes, Sender<Bytes>)> = VecDeque::new();
    let mut asked: BTreeMap<usize, (usize, Sender<Bytes>)> = BTreeMap::new();
    let mut has = vec![0; seat.processes()];
    let mut next = 0;
    let mut stopping: Option<Instant> = None;
    while !is_over() {
        if stop.load(Ordering::Relaxed) {
            let since = stopping.get_or_insert_with(|| {
                (1..has.len()).for_each(|process| seat.tell(process, vec![STOP]));
                Instant::now()
            });
            // One that does not answer even then is not waited for.
            if since.elapsed() > PATIENCE
                && let Some(process) = has.iter().position(|&questions| questions > 0)
            {
                return Err(Lost::because(process, "it does not answer"));
            }
        }
        waiting.extend(questions.try_iter());
        while let Some(idle) = (1..has.len()).filter(|&p| has[p] < AHEAD).min_by_key(|&p| has[p])
            && let Some((question, sender)) = waiting.pop_front()
        {
            seat.tell(idle, encode(next, &question));
            asked.insert(next, (idle, sender));
            has[idle] += 1;
            next += 1;
        }
        for (process, words) in seat.listen()? {
            if words == [STOP] {
                stop.store(true, Ordering::Relaxed);
                continue;
            }
            let (number, answer) = decode(&words).ok_or_else(|| another_question(process))?;
            let (asked, sender) = asked.remove(&number).ok_or_else(|| another_question(process))?;
            if asked != process {
                return Err(another_question(process));
            }
            has[process] -= 1;
            // The work may have lost interest.
            let _ = sender.send(answer);
        }
    }
    // Work that was stopped may have been stopped because of a loss.
    if stop.load(Ordering::Relaxed) { seat.check() } else { Ok(()) }
}

fn follow(
    seat: &mut Seat,
    stop: &AtomicBool,
    mut answer: impl FnMut(&[u8]) -> Vec<u8> + Send,
) -> Result<(), Lost> {
    let main = thread::current();
    let (ask, questions) = channel::<(usize, Bytes)>();
    let (done, answers) = channel();
    thread::scope(|scope| {
        let answering = move || {
            let _wakes = Wakes(main.clone());
            for (number, question) in questions {
                if done.send((number, answer(&question))).is_err() {
                    return;
                }
                main.unpark();
            }
        };
        let answering = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, answering);
        let answering = answering.expect("the host lets a process have a second thread");
        let mut has_said_so = false;
        let result = loop {
            let heard = match seat.listen() {
                Ok(heard) => heard,
                Err(lost) => break Err(lost),
            };
            if heard.iter().any(|(_, words)| *words == [OVER]) {
                break Ok(());
            }
            if heard.iter().any(|(_, words)| *words == [STOP]) {
                stop.store(true, Ordering::Relaxed);
            }
            let questions = heard.iter().filter(|(_, words)| *words != [STOP]);
            let all = questions.map(|(process, words)| decode(words).ok_or(*process));
            match all.collect::<Result<Vec<_>, usize>>() {
                Ok(questions) => questions.into_iter().for_each(|question| _ = ask.send(question)),
                Err(process) => break Err(another_question(process)),
            }
            for (number, answer) in answers.try_iter() {
                seat.tell(0, encode(number, &answer));
            }
            if stop.load(Ordering::Relaxed) && !std::mem::replace(&mut has_said_so, true) {
                seat.tell(0, vec![STOP]);
            }
            if answering.is_finished() {
                // It has panicked: this process ends, and the others notice.
                break Ok(());
            }
        };
        // What is still asked is not wanted any more.
        stop.store(true, Ordering::Relaxed);
        drop(ask);
        result
    })
}
