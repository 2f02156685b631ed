//! A search that takes guesses as additional bad elements, or makes its own from a visit ([`Visited`]).
//!
//! *Guesses are not trusted.* If the search closes, it has proved them along with what was asked. A guess from which an
//! initial element is derived is wrong. The run that shows this passes through reachable configurations, so every guess
//! that contains one of these is wrong too. All of them are retracted, and the search goes on ([`Search::retract`]).
//!
//! *Violations.* An initial element that is derived from a bad one without guesses stands for a run.

use super::element::Element;
use super::setup::Setup;
use super::tracked::Attempt;
use super::visited::Visited;
use super::witness::{Program, Unfolded};
use crate::chain::links;
use palisade_engine::Exhausted;
use palisade_wqo::{Backward, Closed, NodeId, Search, SearchEnd};

/// Where guesses come from, and when the search gives up.
enum Source {
    /// They are given. The search may generate this many elements for each of them.
    Given { per_guess: u64 },
    /// They are made while the search runs. It gives up if one is wrong.
    Visit(Visited),
}

impl Source {
    fn bytes(&self) -> u64 {
        match self {
            Source::Given { .. } => 0,
            Source::Visit(visited) => visited.bytes(),
        }
    }
}

/// The search, and what it has to prove.
pub(crate) struct Guessing<'s> {
    exact: &'s Setup,
    bad: Vec<Element>,
    search: Search<'s, Setup>,
    source: Source,
    /// The most guesses that there were at one time.
    guessed: u64,
}

impl<'s> Guessing<'s> {
    /// A search with these guesses.
    pub fn new(
        exact: &'s Setup,
        bad: &[Element],
        guesses: impl IntoIterator<Item = Element>,
        per_guess: u64,
    ) -> Guessing<'s> {
        let mut guessing = Guessing::of(exact, bad, Source::Given { per_guess });
        // An initial guess is wrong. It would end the search at once.
        let possible = guesses.into_iter().filter(|guess| !exact.is_initial(guess));
        possible.for_each(|guess| guessing.search.guess(guess));
        guessing.guessed = guessing.search.guesses() as u64;
        guessing
    }

    /// A search that makes its own guesses.
    pub fn from_visit(exact: &'s Setup, bad: &[Element], visited: Visited) -> Guessing<'s> {
        Guessing::of(exact, bad, Source::Visit(visited))
    }

    fn of(exact: &'s Setup, bad: &[Element], source: Source) -> Guessing<'s> {
        let mut search = Search::new(exact);
        bad.iter().for_each(|element| search.add(element.clone()));
        Guessing { exact, bad: bad.to_vec(), search, source, guessed: 0 }
    }

    /// The number of elements generated so far.
    pub fn generated(&self) -> u64 {
        self.search.generated()
    }

    /// The memory in use, approximately.
    pub fn bytes(&self) -> u64 {
        self.search.bytes() + self.source.bytes()
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
        let Guessing { bad, search, source, guessed, .. } = self;
        loop {
            let mut exhausted = None;
            let mut expanded = 0u64;
            let bytes = source.bytes();
            let for_guesses = match source {
                Source::Given { per_guess } => per_guess.saturating_mul(*guessed),
                Source::Visit(_) => u64::MAX,
            };
            let mut may_continue = |search: &Search<'_, Setup>| {
                expanded += 1;
                if expanded.is_multiple_of(256) {
                    exhausted = check(search.generated(), search.bytes() + bytes).err();
                }
                exhausted.is_none() && search.generated() < most.min(for_guesses)
            };
            let found = search.run_guessing(&mut may_continue, &mut |element| match source {
                Source::Given { .. } => None,
                Source::Visit(visited) => visited.generalise(exact, element),
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
                    if let Source::Visit(_) = source {
                        return Attempt::Hopeless;
                    }
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
