//! Many questions, answered by whichever process is free.
//!
//! Every process knows the list of questions. Process 0 gives them out: each process gets the next question when
//! it has answered the last one. Process 0 delivers the answers in order, as soon as all earlier ones are there. It
//! answers questions itself, too.
//!
//! Questions are answered on a thread of their own, so that a process that works on a long one still notices when another
//! one is lost.
//!
//! *Ends.* If a process is lost, or one is asked to stop, the flag that stops the work is set in all of them, so that no
//! process goes on with a question that nobody waits for. What was asked before is still delivered if it arrives soon.

use crate::agree::{Agreed, Work, agree, another_question};
use crate::connect::fingerprint;
use crate::seat::{Lost, Seat};
use palisade_engine::Limits;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Questions that a process has at a time, so that it does not wait for the next one.
const AHEAD: usize = 2;
/// Programs are recursed over as deeply as the main thread does.
pub(crate) const STACK: usize = 16 << 20;
/// The message that there are no more questions.
pub(crate) const OVER: u64 = u64::MAX;
/// The message that a process was asked to stop.
pub(crate) const STOP: u64 = u64::MAX - 1;
/// How long answers are waited for that are on their way when the work is stopped.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers `count` questions, together with the other processes. `what` is a number that differs if the processes would
/// answer differently, although their commands are the same. In process 0, `deliver` gets all answers in order. It
/// returns false to stop early. In the others, it is not called. `stop` stops the work, and is set when it ends early.
///
/// If a process is lost, the answers before the first missing one have been delivered. If the work is stopped, some that
/// come before others may be missing.
pub fn share_out(
    seat: &mut Seat,
    what: u64,
    count: usize,
    stop: &AtomicBool,
    answer: &(dyn Fn(usize) -> Vec<u8> + Sync),
    deliver: &mut dyn FnMut(usize, Vec<u8>) -> bool,
) -> Result<(), Lost> {
    let both = [what.to_le_bytes(), (count as u64).to_le_bytes()].concat();
    if agree(seat, Work::Questions, fingerprint(&mut std::iter::once(both)), &Limits::unlimited(1))?
        == Agreed::ToStop
    {
        stop.store(true, Ordering::Relaxed);
        return Ok(());
    }
    thread::scope(|scope| {
        let (ask, asked) = channel::<usize>();
        let (done, answers) = channel();
        let main = thread::current();
        // It ends when there are no more questions.
        let answering = move || answer_all(&asked, answer, &done, &main);
        thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, answering)
            .expect("the host lets a process have a second thread");
        let result = match seat.index() {
            0 => lead(seat, count, stop, &ask, &answers, deliver),
            _ => follow(seat, stop, &ask, &answers),
        };
        if !matches!(result, Ok(Done::All)) {
            // The thread ends as soon as it can.
            stop.store(true, Ordering::Relaxed);
        }
        result.map(|_| ())
    })
}

/// Whether all questions were answered.
enum Done {
    All,
    Some,
}

/// Answers questions as they come.
fn answer_all(
    asked: &Receiver<usize>,
    answer: &(dyn Fn(usize) -> Vec<u8> + Sync),
    done: &Sender<(usize, Vec<u8>)>,
    main: &Thread,
) {
    for question in asked {
        if done.send((question, answer(question))).is_err() {
            return;
        }
        main.unpark();
    }
}

fn lead(
    seat: &mut Seat,
    count: usize,
    stop: &AtomicBool,
    ask: &Sender<usize>,
    answers: &Receiver<(usize, Vec<u8>)>,
    deliver: &mut dyn FnMut(usize, Vec<u8>) -> bool,
) -> Result<Done, Lost> {
    let mut waiting: Vec<Option<Vec<u8>>> = vec![None; count];
    let (mut asked, mut delivered) = (0, 0);
    // How many questions each process has.
    let mut has = vec![0; seat.processes()];
    let mut goes_on = true;
    let mut stopping: Option<Instant> = None;
    while delivered < count && goes_on {
        if stop.load(Ordering::Relaxed) {
            let since = stopping.get_or_insert_with(|| {
                (1..has.len()).for_each(|process| seat.tell(process, vec![STOP]));
                Instant::now()
            });
            if since.elapsed() > PATIENCE || has.iter().all(|&questions| questions == 0) {
                break;
            }
        }
        while stopping.is_none()
            && let Some(idle) = (0..has.len()).filter(|&process| has[process] < AHEAD).min_by_key(|&p| has[p])
            && asked < count
        {
            match idle {
                0 => ask.send(asked).expect("the thread waits for questions"),
                process => seat.tell(process, vec![asked as u64]),
            }
            has[idle] += 1;
            asked += 1;
        }
        for (question, answer) in answers.try_iter() {
            has[0] -= 1;
            waiting[question] = Some(answer);
        }
        for (process, words) in seat.listen()? {
            if words == [STOP] {
                stop.store(true, Ordering::Relaxed);
                continue;
            }
            let (question, answer) = decode(&words).ok_or_else(|| another_question(process))?;
            has[process] -= 1;
            *waiting.get_mut(question).ok_or_else(|| another_question(process))? = Some(answer);
        }
        while let Some(answer) = waiting.get_mut(delivered).and_then(Option::take)
            && goes_on
        {
            goes_on = deliver(delivered, answer);
            delivered += 1;
        }
    }
    (1..seat.processes()).for_each(|process| seat.tell(process, vec![OVER]));
    if delivered == count && goes_on {
        return Ok(Done::All);
    }
    for (question, answer) in waiting.iter_mut().enumerate().skip(delivered) {
        if let Some(answer) = answer.take()
            && !deliver(question, answer)
        {
            break;
        }
    }
    // The work may have been stopped because of a loss.
    seat.check()?;
    Ok(Done::Some)
}

fn follow(
    seat: &mut Seat,
    stop: &AtomicBool,
    ask: &Sender<usize>,
    answers: &Receiver<(usize, Vec<u8>)>,
) -> Result<Done, Lost> {
    let mut open = 0;
    let mut has_said_so = false;
    loop {
        for (process, words) in seat.listen()? {
            match words.as_slice() {
                [OVER] if open == 0 => return Ok(Done::All),
                [OVER] => return Ok(Done::Some),
                [STOP] => stop.store(true, Ordering::Relaxed),
                [question] => {
                    open += 1;
                    ask.send(*question as usize).expect("the thread waits for questions");
                }
                _ => return Err(another_question(process)),
            }
        }
        for (question, answer) in answers.try_iter() {
            open -= 1;
            seat.tell(0, encode(question, &answer));
        }
        if stop.load(Ordering::Relaxed) && !std::mem::replace(&mut has_said_so, true) {
            seat.tell(0, vec![STOP]);
        }
    }
}

/// An answer as a message: the question, the length, the bytes.
pub(crate) fn encode(question: usize, answer: &[u8]) -> Vec<u64> {
    let mut words = vec![question as u64, answer.len() as u64];
    words.extend(answer.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }));
    words
}

pub(crate) fn decode(words: &[u64]) -> Option<(usize, Vec<u8>)> {
    let (&question, words) = words.split_first()?;
    let (&length, words) = words.split_first()?;
    let mut answer: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    (answer.len() as u64 >= length).then(|| answer.truncate(length as usize))?;
    Some((question as usize, answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agree::Leaving;
    use crate::seat::Place;
    use std::sync::Arc;

    #[test]
    fn answers_come_in_order_from_any_number_of_processes() {
        for processes in 1..=4 {
            let places = Place::group(processes).expect("there are ports");
            let run = |place: Place| {
                let mut seat = place.sit_down();
                let mut delivered = Vec::new();
                let answer = |question: usize| format!("answer {}", question * question).into_bytes();
                let deliver = &mut |question: usize, answer: Vec<u8>| {
                    delivered.push((question, String::from_utf8(answer).expect("it is text")));
                    true
                };
                share_out(&mut seat, 0, 40, &AtomicBool::new(false), &answer, deliver)
                    .expect("nobody is lost");
                let index = seat.index();
                seat.leave(Leaving::default(), &Arc::default(), Duration::from_secs(10));
                (index, delivered)
            };
            let results: Vec<_> = thread::scope(|scope| {
                let runs: Vec<_> = places.into_iter().map(|place| scope.spawn(|| run(place))).collect();
                runs.into_iter().map(|run| run.join().expect("it does not panic")).collect()
            });
            for (index, delivered) in results {
                let expected = (0..40).map(|question| (question, format!("answer {}", question * question)));
                let expected: Vec<_> = if index == 0 { expected.collect() } else { Vec::new() };
                assert_eq!(delivered, expected, "process {index} of {processes}");
            }
        }
    }
}
