//! An oracle that accepts a set of changes only once the text with these changes has been confirmed.

use super::ahead::Ahead;
use super::oracle::Engines;
use super::write::WriteError;
use crate::AskError;
use crate::c::FilePatch;
use palisade_engine::{Exhausted, Limits};
use palisade_fences::{Fencing, Goal, Judgement, Oracle, Places};
use palisade_memory::{Machine, State};
use palisade_program::running::System;
use palisade_program::written::Program;
use std::cell::RefCell;

/// Reads the program with these changes, and checks it again.
pub type Confirm<'a> = &'a (dyn Fn(&[FilePatch], &Limits) -> Result<(), WriteError> + Sync);

/// Has the text for some fences confirmed.
pub(super) type ConfirmFencing<'a> = &'a dyn Fn(&Places, &Fencing, &Limits) -> Result<(), WriteError>;

/// The engines, other processes that ask theirs ahead of time, and what confirms.
pub(super) struct Confirming<'a> {
    engines: Engines<'a>,
    ahead: Option<Ahead<'a>>,
    confirm: Option<ConfirmFencing<'a>>,
    /// Why the first set was not confirmed.
    first_error: RefCell<Option<WriteError>>,
}

impl<'a> Confirming<'a> {
    pub(super) fn new(
        engines: Engines<'a>,
        ahead: Option<Ahead<'a>>,
        confirm: Option<ConfirmFencing<'a>>,
    ) -> Confirming<'a> {
        Confirming { engines, ahead, confirm, first_error: RefCell::default() }
    }

    /// What became of the set that was found.
    pub(super) fn confirmed(&self, accepted: bool) -> Option<Result<(), WriteError>> {
        self.confirm?;
        match accepted {
            true => Some(Ok(())),
            false => self.first_error.borrow().clone().map(Err),
        }
    }
}

impl Oracle for Confirming<'_> {
    type Error = AskError;

    fn judge(&self, program: &Program, limits: &Limits) -> Result<Judgement, AskError> {
        self.engines.judge(program, limits)
    }

    fn appetite(&self) -> usize {
        self.ahead.as_ref().map_or(0, Ahead::appetite)
    }

    fn expect(&self, _places: &Places, fencing: &Fencing) {
        self.ahead.iter().for_each(|ahead| ahead.expect(fencing));
    }

    fn judged_before(&self, _places: &Places, fencing: &Fencing, limits: &Limits) -> Option<Judgement> {
        self.ahead.as_ref()?.take(fencing, limits)
    }

    fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        self.engines.machine(system)
    }

    fn goal(&self) -> Goal {
        self.engines.goal()
    }

    fn accepts(&self, places: &Places, fencing: &Fencing, limits: &Limits) -> Result<bool, AskError> {
        let Some(confirm) = self.confirm else { return Ok(true) };
        if fencing.iter().all(Option::is_none) {
            return Ok(true);
        }
        match confirm(places, fencing, limits) {
            Ok(()) => Ok(true),
            Err(WriteError::Ask(error)) => Err(error),
            Err(error) => {
                self.first_error.borrow_mut().get_or_insert(error);
                Ok(false)
            }
        }
    }

    fn is_out_of_reach(
        &self,
        machine: Machine<'_>,
        state: &State,
        goal: usize,
        limits: &Limits,
    ) -> Result<bool, Exhausted> {
        self.engines.is_out_of_reach(machine, state, goal, limits)
    }
}
