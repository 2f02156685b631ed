//! The preparation for every search: the automata of a program, if the engines' words can represent them.

use palisade_automata::{Automata, StateId};
use palisade_base::{IdVec, limits};
use palisade_engine::{Analysis, Limits, Reason};
use std::sync::Arc;

/// Letters store cells in sixteen bits.
const MAX_CELLS: usize = 1 << 16;

/// The automata of a program, or why it has none.
pub(crate) fn automata(analysis: &Analysis<'_>, limits: &Limits) -> Result<Arc<Automata>, Reason> {
    let cells = analysis.system(1).cells.len();
    if cells >= MAX_CELLS {
        return Err(Reason::Unsupported(format!("there are too many shared variables ({cells})")));
    }
    analysis.automata(limits)
}

/// The states that pass `matters` and from which silent edges alone lead to `state`. The state itself may be
/// one of them.
pub(crate) fn roots(
    state: StateId,
    silent: &IdVec<StateId, Vec<StateId>>,
    matters: impl Fn(StateId) -> bool,
) -> Vec<StateId> {
    let mut seen = vec![state];
    let mut next = 0;
    while next < seen.len() {
        limits::checkpoint();
        let before: Vec<_> = silent[seen[next]].iter().copied().filter(|s| !seen.contains(s)).collect();
        seen.extend(before);
        next += 1;
    }
    seen.retain(|&state| matters(state));
    seen
}
