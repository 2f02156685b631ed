//! The preparation for every search: the automata of a program, if the engines' words can represent them.

use crate::bad::Bad;
use palisade_automata::{Automata, Merged, Starts, StateId};
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

/// The automata, and those with bisimilar states merged, with [delayed stores](palisade_automata::Starts).
pub(crate) struct Prepared {
    pub automata: Arc<Automata>,
    pub merged: Arc<Merged>,
    pub starts: Starts,
    /// Whether stores are delayed.
    pub delays: bool,
}

/// Everything that a search needs to begin.
pub(crate) fn prepared(analysis: &Analysis<'_>, limits: &Limits) -> Result<Prepared, Reason> {
    let automata = automata(analysis, limits)?;
    let (delayed, starts) = automata.with_delayed_stores(analysis.task.model, analysis.task.interlocked);
    let Some(delayed) = delayed else { return without_delays(analysis, limits, starts) };
    let merged = Arc::new(delayed.merged(&analysis.system(1)));
    Ok(Prepared { automata: Arc::new(delayed), merged, starts, delays: true })
}

/// The same without delayed stores, for a search in which threads are started when nothing is pending.
pub(crate) fn drained(analysis: &Analysis<'_>, limits: &Limits) -> Result<Prepared, Reason> {
    without_delays(analysis, limits, Starts::Drained)
}

fn without_delays(analysis: &Analysis<'_>, limits: &Limits, starts: Starts) -> Result<Prepared, Reason> {
    let automata = automata(analysis, limits)?;
    Ok(Prepared { merged: analysis.merged(limits)?, automata, starts, delays: false })
}

impl Prepared {
    /// Whether a bad combination may be unreal because stores of a process that it does not mention are delayed. See
    /// [`crate::spawns`].
    pub fn may_be_pending(&self, combinations: &[Bad]) -> bool {
        self.delays && combinations.iter().any(|bad| !bad.memory.is_empty())
    }
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
