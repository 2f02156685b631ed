//! What all processes do before they begin something together: each says what it was asked.
//!
//! *What is compared.* The kind of work, a number that describes it, and what the whole command was asked ([`Asked`]). The
//! number alone is not enough: a folder with ten files under TSO has as many questions as one with ten files under SC.
//!
//! A process can be missing. It was asked to stop before it came here, or has nothing more to do because it read another
//! input. It then says that it leaves ([`Seat::leave`]) where the others say what they were asked. All of them hear that in
//! the same step, so all of them end, and nobody has to say so again.

use crate::seat::{Lost, Over, Seat};
use palisade_engine::Limits;

/// The kinds of work that can be begun together. Their numbers differ from those of all other messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Search = 2,
    Questions = 5,
    Help = 6,
}

/// What a process was asked, as two fingerprints. Both have to be the same in all processes of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// The command, and all options that affect answers.
    pub command: u64,
    /// The files that it reads.
    pub files: u64,
}

/// How a process leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Leaving {
    /// Whether it was asked to stop.
    pub is_stopped: bool,
    /// Whether it has a complete answer. Only that of process 0 counts.
    pub is_complete: bool,
}

impl Leaving {
    pub(crate) fn encode(self) -> Vec<u64> {
        vec![LEAVING, self.is_stopped.into(), self.is_complete.into()]
    }

    /// How a group ends whose processes have sent these messages: whether one of them was asked to stop, and whether process 0
    /// has a complete answer.
    pub(crate) fn of_group(messages: &[Vec<u64>]) -> Leaving {
        let left = || messages.iter().map(|message| Leaving::decode(message));
        let is_complete = left().next().flatten().is_some_and(|first| first.is_complete);
        Leaving { is_stopped: left().flatten().any(|leaving| leaving.is_stopped), is_complete }
    }

    /// How a process leaves that sends this message, if it does.
    pub(crate) fn decode(message: &[u64]) -> Option<Leaving> {
        match *message {
            [LEAVING, is_stopped, is_complete] => {
                Some(Leaving { is_stopped: is_stopped != 0, is_complete: is_complete != 0 })
            }
            _ => None,
        }
    }
}

const LEAVING: u64 = 4;

/// What the processes have said.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Agreed {
    /// All do the same.
    Yes,
    /// One was asked to stop, so all of them do.
    ToStop,
}

/// Finds out whether all processes were asked the same thing, of which `what` is a number. Fails if they were not.
///
/// If they do not agree, each process sees a message that differs from its own. So all of them know that the group is over.
pub(crate) fn agree(seat: &mut Seat, work: Work, what: u64, limits: &Limits) -> Result<Agreed, Lost> {
    if seat.over.is_none() {
        let Asked { command, files } = seat.asked;
        let own = vec![work as u64, what, command, files];
        let messages = seat.exchange(own.clone(), limits)?;
        seat.left = Leaving::of_group(&messages);
        seat.over = disagreement(&own, &messages);
    }
    match &seat.over {
        None => Ok(Agreed::Yes),
        Some(Over::Stopped) => Ok(Agreed::ToStop),
        Some(Over::Lost(lost)) => Err(lost.clone()),
    }
}

fn disagreement(own: &[u64], messages: &[Vec<u64>]) -> Option<Over> {
    if Leaving::of_group(messages).is_stopped {
        return Some(Over::Stopped);
    }
    let process = messages.iter().position(|message| message != own)?;
    let lost = match Leaving::decode(&messages[process]).is_some() {
        true => Lost::because(process, "it has ended without taking part"),
        false => another_question_than(own, process, &messages[process]),
    };
    Some(Over::Lost(lost))
}

/// A process says that it was asked something else. If possible, says what differs.
fn another_question_than(own: &[u64], process: usize, message: &[u64]) -> Lost {
    let (&[_, _, command, files], &[_, _, their_command, their_files]) = (own, message) else {
        return another_question(process);
    };
    match (command == their_command, files == their_files) {
        (false, _) => asked_else(process, ", with other arguments"),
        (true, false) => asked_else(process, ", about other files"),
        (true, true) => another_question(process),
    }
}

/// A process says something that does not belong to this work.
pub(crate) fn another_question(process: usize) -> Lost {
    asked_else(process, "")
}

fn asked_else(process: usize, how: &str) -> Lost {
    let help = "run the same command, on the same files, in every process";
    Lost::because(process, format!("it was asked something else{how}; {help}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat::Place;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    /// What the first of two processes finds out if the other one does this.
    fn first_hears(other: impl FnOnce(Seat) + Send) -> Result<Agreed, String> {
        let mut places = Place::group(2).expect("there are ports");
        let (second, first) = (places.pop().expect("there are two"), places.pop().expect("there are two"));
        thread::scope(|scope| {
            scope.spawn(|| other(second.sit_down()));
            let mut seat = first.sit_down();
            let mut agree =
                |work| agree(&mut seat, work, 7, &Limits::unlimited(1)).map_err(|lost| lost.to_string());
            let heard = agree(Work::Search);
            if heard != Ok(Agreed::Yes) {
                assert_eq!(agree(Work::Help), heard, "nobody is asked again");
            }
            seat.leave(Leaving::default(), &Arc::default(), Duration::from_secs(10));
            heard
        })
    }

    #[test]
    fn all_of_them_hear_what_one_has_to_say() {
        let patience = Duration::from_secs(10);
        let leaves = |is_stopped| {
            move |seat: Seat| {
                seat.leave(Leaving { is_stopped, is_complete: false }, &Arc::default(), patience);
            }
        };
        let says = |work, what, asked| {
            move |mut seat: Seat| {
                seat.set_asked(asked);
                let _ = agree(&mut seat, work, what, &Limits::unlimited(1));
                seat.leave(Leaving::default(), &Arc::default(), patience);
            }
        };
        let same = Asked::default();
        assert_eq!(first_hears(says(Work::Search, 7, same)), Ok(Agreed::Yes));
        assert_eq!(first_hears(leaves(true)), Ok(Agreed::ToStop));
        let lost = |why: &str| Err(format!("process 1 was lost: {why}"));
        assert_eq!(first_hears(leaves(false)), lost("it has ended without taking part"));
        let asked_else = |how: &str| {
            let help = "run the same command, on the same files, in every process";
            lost(&format!("it was asked something else{how}; {help}"))
        };
        assert_eq!(first_hears(says(Work::Search, 8, same)), asked_else(""));
        assert_eq!(first_hears(says(Work::Help, 7, same)), asked_else(""));
        let arguments = Asked { command: 1, files: 1 };
        assert_eq!(first_hears(says(Work::Search, 7, arguments)), asked_else(", with other arguments"));
        let files = Asked { command: 0, files: 1 };
        assert_eq!(first_hears(says(Work::Search, 7, files)), asked_else(", about other files"));
    }
}
