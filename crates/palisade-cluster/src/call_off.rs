//! A process that cannot take part says so to the others before it ends, so that they do not wait for it.
//!
//! It calls all of them, as it would to join them, and says why it does not. Processes that are started at the same time may
//! not listen yet, so it tries for a short time ([`REFUSAL`]).

use crate::connect::{ConnectError, Meeting, RETRY, call};
use crate::greeting::{Heard, Talk, Word};
use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// How long a process that cannot take part tries to say so to the others.
const REFUSAL: Duration = Duration::from_secs(2);

impl Meeting {
    /// Says to all others that this process cannot take part, and why. Those that do not listen within a short time do not
    /// hear it.
    pub fn call_off(&self, why: &str) {
        self.say_to_everyone(&Word::Refused(self.index, why.to_owned()));
    }

    pub(crate) fn say_to_everyone(&self, word: &Word) {
        let deadline = Instant::now() + REFUSAL;
        let (sender, done) = channel::<()>();
        for (_, address) in self.addresses.iter().enumerate().filter(|(process, _)| *process != self.index) {
            let (address, sender) = (address.clone(), sender.clone());
            let lines = [self.greeting().line(), word.line()];
            let inform = move || {
                while Instant::now() < deadline && say(&address, &lines, deadline).is_err() {
                    thread::sleep(RETRY);
                }
                drop(sender);
            };
            // One that cannot be reached cannot be informed.
            let _ = thread::Builder::new().spawn(inform);
        }
        drop(sender);
        // Looking up a name may take longer than that.
        let _ = done.recv_timeout(REFUSAL);
    }

    /// What to say to the others about an error.
    pub(crate) fn word(&self, error: &ConnectError) -> Word {
        match error {
            ConnectError::Stopped => Word::Stopped(self.index),
            ConnectError::StoppedElsewhere(process) => Word::Stopped(*process),
            ConnectError::Refused { process, why } => Word::Refused(*process, why.clone()),
            error => Word::Refused(self.index, error.to_string()),
        }
    }
}

/// Says these lines to a process, and waits until it has closed the connection: what is on its way when this side closes it
/// may not arrive.
fn say(address: &str, lines: &[String], deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now()).max(RETRY);
    let mut talk = Talk::new(call(address, left)?)?;
    lines.iter().try_for_each(|line| talk.say(line))?;
    while Instant::now() < deadline && !matches!(talk.listen(), Heard::Ended(_)) {
        thread::sleep(RETRY);
    }
    Ok(())
}
