//! The path to a state that was found, collected over the shares.
//!
//! Each state has a mark of its parent: 32 bits of the parent's hash ([`crate::share`]). The parent is in the level
//! before. So every process looks for states of that level with these bits, and keeps those that really lead to the
//! state. Of all candidates, the smallest is taken. Which states are candidates does not depend on which process keeps them, so the
//! path is the same for any number of processes.
//!
//! *Cost.* Over the whole path, each state is hashed at most once. There is one message per level.

use crate::agree::another_question;
use crate::search::{End, Search, Spread};
use crate::share::mark;
use crate::summary::PATH;
use palisade_search::hash;

impl Search<'_> {
    /// The states from an initial one to this one, which is new in the last round.
    pub(crate) fn path_to<E: Spread>(
        &mut self,
        expand: &E,
        goal: Vec<u64>,
    ) -> Result<Vec<Vec<u64>>, End<E::Halt>> {
        let mut path = vec![goal.clone()];
        let share = self.seat.share.clone();
        let at = |state: &[u64]| share.borrow().position(state);
        let mut mark_of_parent = {
            let own = at(&goal).map(|position| share.borrow().mark(position));
            let messages = self.seat.exchange(message(own.map(|mark| (mark, &goal))), self.limits)?;
            smallest(&messages)?.expect("some process keeps the state that was found").0
        };
        let mut end = share.borrow().len() - share.borrow().waiting();
        for level in (0..self.levels.len()).rev() {
            let state = path.last().expect("it has at least one state");
            let start = self.levels[level];
            let candidates = (start..end).filter(|&position| {
                let share = share.borrow();
                let candidate = share.state(position);
                mark(hash(candidate)) == mark_of_parent && expand.leads_to(candidate, state)
            });
            let best = candidates.min_by(|&a, &b| share.borrow().state(a).cmp(share.borrow().state(b)));
            let own = best.map(|best| (share.borrow().mark(best), share.borrow().state(best).to_vec()));
            let own = own.as_ref().map(|(mark, state)| (*mark, state));
            let messages = self.seat.exchange(message(own), self.limits)?;
            let (mark, parent) = smallest(&messages)?.expect("the parent of a state is in the level before");
            path.push(parent);
            mark_of_parent = mark;
            end = start;
        }
        path.reverse();
        Ok(path)
    }
}

/// A state and the mark of its parent as a message, or that there is none.
fn message(own: Option<(u32, &Vec<u64>)>) -> Vec<u64> {
    let mut words = vec![PATH];
    if let Some((mark, state)) = own {
        words.push(mark.into());
        words.extend_from_slice(state);
    }
    words
}

/// The smallest state of all messages, with the mark of its parent.
fn smallest<H>(messages: &[Vec<u64>]) -> Result<Option<(u32, Vec<u64>)>, End<H>> {
    let mut best: Option<(u32, Vec<u64>)> = None;
    for (process, message) in messages.iter().enumerate() {
        match message.as_slice() {
            [PATH] => {}
            [PATH, mark, state @ ..] => {
                if best.as_ref().is_none_or(|(_, other)| state < other.as_slice()) {
                    best = Some((*mark as u32, state.to_vec()));
                }
            }
            _ => return Err(End::Lost(another_question(process))),
        }
    }
    Ok(best)
}
