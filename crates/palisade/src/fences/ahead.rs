//! Candidates that other processes judge ahead of time.
//!
//! The search for fences announces the candidates that it may ask about next. While this process judges one, each helper
//! judges another. The search goes on as it would alone: it takes the next candidate, and if it was judged before, it
//! takes that judgement. So the sets of fences and their order are the same for any number of processes. What was judged
//! in vain is not counted.

use super::wire::{get_candidate, get_judgement, put_candidate, put_judgement};
use super::{FencesOptions, engines, places, without_plain};
use crate::Input;
use palisade_cluster::{Helpers, Pending};
use palisade_engine::Limits;
use palisade_fences::{Fencing, Judgement, Oracle, Placement, Places};
use std::cell::RefCell;
use std::time::Duration;

/// How long to wait for a judgement before looking whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What other processes are doing.
pub(super) struct Ahead<'a> {
    helpers: &'a Helpers,
    placement: Placement,
    asked: RefCell<Vec<(Fencing, Pending)>>,
    known: RefCell<Vec<(Fencing, Option<Judgement>)>>,
}

impl Ahead<'_> {
    pub(super) fn new(helpers: &Helpers, placement: Placement) -> Ahead<'_> {
        Ahead { helpers, placement, asked: RefCell::default(), known: RefCell::default() }
    }

    /// How many processes have nothing to do.
    pub(super) fn appetite(&self) -> usize {
        let mut asked = self.asked.borrow_mut();
        asked.retain(|(fencing, pending)| match pending.get() {
            Some(answer) => {
                self.known.borrow_mut().push((fencing.clone(), get_judgement(&answer)));
                false
            }
            None => true,
        });
        self.helpers.count().saturating_sub(asked.len())
    }

    pub(super) fn expect(&self, fencing: &Fencing) {
        let mut asked = self.asked.borrow_mut();
        let is_known = asked.iter().any(|(known, _)| known == fencing)
            || self.known.borrow().iter().any(|(known, _)| known == fencing);
        if !is_known {
            let pending = self.helpers.ask(put_candidate(self.placement, fencing));
            asked.push((fencing.clone(), pending));
        }
    }

    /// The judgement about a candidate, if another process has it, or is about to.
    pub(super) fn take(&self, fencing: &Fencing, limits: &Limits) -> Option<Judgement> {
        let position = |(known, _): &(Fencing, _)| known == fencing;
        let pending = {
            let mut asked = self.asked.borrow_mut();
            let at = asked.iter().position(|(known, _)| known == fencing);
            at.map(|at| asked.swap_remove(at).1)
        };
        if let Some(pending) = pending {
            let answer = pending.wait_while(LOOK, || limits.check(0).is_ok());
            return answer.and_then(|answer| get_judgement(&answer));
        }
        let mut known = self.known.borrow_mut();
        let at = known.iter().position(position)?;
        known.swap_remove(at).1
    }
}

/// Judges candidates for another process that looks for fences in the same program.
pub struct FencesHelp<'a> {
    input: Input,
    options: &'a FencesOptions,
    /// The places where fences may be, for each placement that was asked about.
    places: Vec<(Placement, Places)>,
}

impl FencesHelp<'_> {
    /// For a program and options that must be the same everywhere.
    pub fn new<'a>(input: &Input, options: &'a FencesOptions) -> FencesHelp<'a> {
        FencesHelp { input: without_plain(input), options, places: Vec::new() }
    }

    /// Answers a question. If there is no answer, the other process has to find out alone why.
    pub fn answer(&mut self, question: &[u8], limits: &Limits) -> Vec<u8> {
        let judgement = limits.within(|| self.judge(question, limits)).unwrap_or(None);
        put_judgement(judgement.as_ref())
    }

    fn judge(&mut self, question: &[u8], limits: &Limits) -> Option<Judgement> {
        let (placement, fencing) = get_candidate(question)?;
        let options = FencesOptions { placement, ..self.options.clone() };
        if !self.places.iter().any(|(known, _)| *known == placement) {
            self.places.push((placement, places(&self.input, &options).ok()?));
        }
        let (_, places) = self.places.iter().find(|(known, _)| *known == placement)?;
        if places.places().len() != fencing.len() {
            return None;
        }
        engines(&self.input, &options).judge(&places.marked(&fencing), limits).ok()
    }
}
