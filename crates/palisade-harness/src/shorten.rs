//! Shorter schedules: the same finding with fewer switches between threads.
//!
//! *How.* A candidate is the schedule with turns left out, exchanged with their neighbours, or cut off. After
//! its last turn, the running thread continues as long as it can. Each candidate is run. If it still shows
//! the finding and has fewer switches, it replaces the schedule. The schedule is kept as it was run, so it
//! can be repeated exactly.

use crate::execution::Execution;
use crate::schedule::{Command, Turns};
use crate::session::Session;

/// The maximum number of executions to try.
const MAX_TRIES: usize = 400;

/// Shortens a schedule of a fresh session. `command` is the one that repeats it. `shows` returns whether an execution
/// has the finding.
pub fn shorten(
    session: &mut Session,
    command: &Command,
    mut shows: impl FnMut(&mut Session, &Execution) -> bool,
) -> Turns {
    let mut best = command.turns.clone();
    let mut attempt = |session: &mut Session, best: &mut Turns, candidate: Turns| -> bool {
        let command = Command { turns: candidate, ..command.clone() };
        let Some(execution) = session.execute(&command) else { return false };
        let Some(run) = execution.turns_for(&command) else { return false };
        if run.switches() < best.switches() && shows(session, &execution) {
            *best = run;
            return true;
        }
        false
    };
    // First try prefixes, halving the length each time.
    let mut length = best.turns.len() / 2;
    let mut budget = MAX_TRIES;
    while length > 0 && budget > 0 {
        budget -= 1;
        let candidate = Turns { turns: best.turns[..length.min(best.turns.len())].to_vec() };
        attempt(session, &mut best, candidate);
        length /= 2;
    }
    // Then go turn by turn, from the end, until nothing helps.
    let mut changed = true;
    while changed && budget > 0 {
        changed = false;
        let mut index = best.turns.len();
        while index > 0 && budget > 0 {
            index -= 1;
            if index >= best.turns.len() {
                continue;
            }
            for candidate in [best.exchanged(index), best.without(index)] {
                budget = budget.saturating_sub(1);
                if attempt(session, &mut best, candidate) {
                    changed = true;
                    break;
                }
            }
        }
    }
    best
}
