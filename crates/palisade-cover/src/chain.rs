//! What backward searches share around the search itself: their counters, and the chain of elements from an
//! initial one to a bad one.

use crate::bad::Bad;
use palisade_automata::{Automata, StateId};
use palisade_engine::Stats;
use palisade_wqo::{Backward, NodeId, Search};

/// A backward search whose steps can be named.
pub(crate) trait NamedSteps: Backward<Element: PartialEq> {
    /// A step from an element to one of its successors.
    type Step;

    /// Passes the predecessors of an element to `give`, each with its step.
    fn steps(&self, element: &Self::Element, give: &mut dyn FnMut(Self::Element, Self::Step));

    /// Passes the elements of a bad combination to `give`, each with the states that the combination names,
    /// in the order of the element's processes.
    fn bad_elements(&self, bad: &Bad, give: &mut dyn FnMut(Self::Element, Vec<StateId>));
}

/// One step of a chain: the elements before and after it, and the step itself.
pub(crate) struct Link<E, S> {
    pub before: E,
    pub step: S,
    pub after: E,
}

/// The way from an initial element to a bad one.
pub(crate) struct Chain<E, S> {
    pub links: Vec<Link<E, S>>,
    /// The states that the bad combination names, in the order of the last element's processes.
    pub bad: Vec<StateId>,
}

/// The steps from an initial element to the element that was added to the search.
pub(crate) fn links<B: NamedSteps>(
    system: &B,
    search: &Search<'_, B>,
    initial: NodeId,
) -> Option<Vec<Link<B::Element, B::Step>>> {
    let mut links = Vec::new();
    let mut node = initial;
    while let Some(successor) = search.successor(node) {
        let (before, after) = (search.element(node), search.element(successor));
        links.push(Link { step: step_between(system, &before, &after)?, before, after });
        node = successor;
    }
    Some(links)
}

/// The chain that starts with an initial element.
pub(crate) fn chain<B: NamedSteps>(
    system: &B,
    search: &Search<'_, B>,
    bad: &[Bad],
    initial: NodeId,
) -> Option<Chain<B::Element, B::Step>> {
    let links = links(system, search, initial)?;
    let mut end = initial;
    while let Some(successor) = search.successor(end) {
        end = successor;
    }
    let last = search.element(end);
    let mut states = None;
    for combination in bad {
        system.bad_elements(combination, &mut |element, named| {
            if states.is_none() && element == last {
                states = Some(named);
            }
        });
    }
    Some(Chain { links, bad: states? })
}

/// The step by which one element is a predecessor of another.
fn step_between<B: NamedSteps>(system: &B, before: &B::Element, after: &B::Element) -> Option<B::Step> {
    let mut found = None;
    system.steps(after, &mut |element, step| {
        if found.is_none() && element == *before {
            found = Some(step);
        }
    });
    found
}

/// The counters of a search. `elsewhere` is the number of configurations that other searches generated.
pub(crate) fn count<B: Backward>(
    search: &Search<'_, B>,
    elsewhere: u64,
    automata: &Automata,
    stats: &mut Stats,
) {
    stats.set("configurations", search.generated() + elsewhere);
    stats.set("antichain", search.antichain_len() as u64);
    stats.set("subsumption_tests", search.subsumption_tests());
    stats.set("local_states", automata.automata.iter().map(|automaton| automaton.states.len() as u64).sum());
    stats.set("table_bytes", search.bytes());
}
