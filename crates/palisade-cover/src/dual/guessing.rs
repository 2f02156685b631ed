//! A search that takes guesses as additional bad elements.
//!
//! *Guesses are not trusted.* If the search closes, it has proved them along with what was asked. A guess from which an
//! initial element is derived is wrong. The run that shows this passes through reachable configurations, so every guess
//! that contains one of these is wrong too. All of them are retracted, and the search goes on ([`Search::retract`]).
//!
//! *Violations.* An initial element that is derived from a bad one without guesses stands for a run.

use super::element::Element;
use super::setup::Setup;
use super::tracked::Attempt;
use super::witness::{Program, Unfolded};
use crate::chain::links;
use palisade_engine::Exhausted;
use palisade_wqo::{Backward, Closed, NodeId, Search, SearchEnd};

/// The search, and what it has to prove.
pub(crate) struct Guessing<'s> {
    exact: &'s Setup,
    bad: Vec<Element>,
    search: Search<'s, Setup>,
    /// The most guesses that there were at one time.
    guessed: u64,
    /// The search may generate this many elements for each guess.
    per_guess: u64,
}

impl<'s> Guessing<'s> {
    pub fn new(
        exact: &'s Setup,
        bad: &[Element],
        guesses: impl IntoIterator<Item = Element>,
        per_guess: u64,
    ) -> Guessing<'s> {
        let mut search = Search::new(exact);
        bad.iter().for_each(|element| search.add(element.clone()));
        // An initial guess is wrong. It would end the search at once.
        let possible = guesses.into_iter().filter(|guess| !exact.is_initial(guess));
        possible.for_each(|guess| search.guess(guess));
        let guessed = search.guesses() as u64;
        Guessing { exact, bad: bad.to_vec(), search, guessed, per_guess }
    }

    /// The number of elements generated so far.
    pub fn generated(&self) -> u64 {
        self.search.generated()
    }

    /// After a proof: the closed set.
    pub fn closed(&self) -> Closed<'_, Setup> {
        self.search.closed()
    }

    /// Continues until this many elements are generated. `check` is called from time to time with that number and the
    /// memory in use. If a bad element is reachable, `unfold` gets the initial element that shows it, and the result does not
    /// matter.
    pub fn attempt(
        &mut self,
        program: &Program<'_>,
        most: u64,
        check: &mut dyn FnMut(u64, u64) -> Result<(), Exhausted>,
        unfold: &mut dyn FnMut(&Setup, &Search<'_, Setup>, NodeId),
    ) -> Attempt {
        let exact = self.exact;
        let Guessing { bad, search, guessed, per_guess, .. } = self;
        loop {
            let mut exhausted = None;
            let mut expanded = 0u64;
            let found = search.run(|search| {
                expanded += 1;
                if expanded.is_multiple_of(256) {
                    exhausted = check(search.generated(), search.bytes()).err();
                }
                let within = search.generated() < most.min(per_guess.saturating_mul(*guessed));
                exhausted.is_none() && within
            });
            match (found, exhausted) {
                (_, Some(exhausted)) => return Attempt::Exhausted(exhausted),
                (None, None) if search.generated() < most => return Attempt::Hopeless,
                (None, None) => return Attempt::Unfinished,
                (Some(SearchEnd::Closed), None) => return Attempt::Proved,
                (Some(SearchEnd::Initial(node)), None) => {
                    let Some(wrong) = search.guess_behind(node) else {
                        unfold(exact, search, node);
                        return Attempt::Hopeless;
                    };
                    let links = links(exact, search, node).expect("each step has a name");
                    let seen = Unfolded::snapshots(program, &search.element(node), &links);
                    search.retract(|guess, element| {
                        guess == wrong || seen.iter().any(|seen| exact.is_below(element, seen))
                    });
                    bad.iter().for_each(|element| search.add(element.clone()));
                    *guessed = (*guessed).max(search.guesses() as u64);
                }
            }
        }
    }
}
