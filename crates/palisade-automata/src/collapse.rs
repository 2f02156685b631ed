//! Collapsing local steps: after a step that concerns memory, a thread runs on until its next one.
//!
//! *Problem.* Interleaving the local steps of different threads multiplies states without adding behaviour.
//!
//! *Guarantee.* A bad state is reachable with collapsed steps iff it is without. A step is collapsed only if it is
//! - *local*: its outcome does not depend on memory and does not change it, so it commutes with every step of other threads. Putting a store into
//!   the own buffer is local as well: it commutes with others' steps and with the own buffer's updates, and doing it as soon as
//!   possible never needs a longer buffer than doing it later, since the thread does nothing else in between;
//! - *invisible*: what properties see of the thread stays the same.
//!
//! A thread that gets stuck (a false assumption, an endless local loop) without having changed memory, its buffer or its view can be forgotten: the others can
//! do the same without that step. This is what makes `await` a blocking read.

use crate::local::{After, Kind, Local, ThreadMachine};
use crate::observe::Observer;
use palisade_memory::Action;
use rustc_hash::FxHashMap;

/// A collapsed step stops at the latest after this many thread states; stopping early is always right.
const MOST: usize = 1 << 14;

/// Where a thread can be after running on, each with the local steps that lead there.
pub struct Runs {
    /// Thread states that wait for something.
    pub stops: Vec<(Local, Vec<Action>)>,
    /// Whether some thread state wanted to call deeper than allowed.
    pub too_deep: bool,
}

/// Frames a thread may have.
pub const MOST_FRAMES: usize = 256;

/// Runs a thread on from `after`, a step of `source` (`None` at the start).
pub fn run_on(
    machine: &ThreadMachine<'_>,
    observer: &Observer,
    source: Option<&Local>,
    after: After,
) -> Runs {
    let changed = after.write.is_some() || after.child.is_some();
    let source_view = source.map(|local| observer.view(local));
    let forgettable = |local: &Local| {
        !changed
            && local.fault.is_none()
            && source.is_some_and(|source| source.thread.buffer == local.thread.buffer)
            && source_view.as_ref() == Some(&observer.view(local))
    };
    let mut search = Search { machine, observer, runs: Runs { stops: Vec::new(), too_deep: false } };
    // Depth-first, so that a thread state met again on the current path shows an endless loop.
    let mut state = FxHashMap::default();
    let mut path = vec![Visit { local: after.local, next: None, by: None }];
    while let Some(depth) = path.len().checked_sub(1) {
        let visit = &mut path[depth];
        if visit.next.is_none() {
            state.insert(visit.local.clone(), Colour::OnPath);
            match search.local_steps(&visit.local, state.len()) {
                None => {
                    search.stop(&path);
                    visit_done(&mut state, &mut path);
                    continue;
                }
                Some(steps) if steps.is_empty() => {
                    if !forgettable(&visit.local) {
                        search.stop(&path);
                    }
                    visit_done(&mut state, &mut path);
                    continue;
                }
                Some(steps) => visit.next = Some(steps),
            }
        }
        let visit = &mut path[depth];
        match visit.next.as_mut().expect("set above").pop() {
            None => visit_done(&mut state, &mut path),
            Some((action, local)) => match state.get(&local) {
                None => path.push(Visit { local, next: None, by: Some(action) }),
                Some(Colour::Done) => {}
                Some(Colour::OnPath) => {
                    if !forgettable(&local) {
                        let end = path.iter().position(|visit| visit.local == local).expect("on the path");
                        search.stop(&path[..=end]);
                    }
                }
            },
        }
    }
    let mut runs = search.runs;
    let mut seen = rustc_hash::FxHashSet::default();
    runs.stops.retain(|(local, _)| seen.insert(local.clone()));
    runs
}

#[derive(Clone, Copy, PartialEq)]
enum Colour {
    OnPath,
    Done,
}

struct Visit {
    local: Local,
    /// Local steps not yet followed.
    next: Option<Vec<(Action, Local)>>,
    /// The step that led here.
    by: Option<Action>,
}

fn visit_done(state: &mut FxHashMap<Local, Colour>, path: &mut Vec<Visit>) {
    let visit = path.pop().expect("called with a path");
    state.insert(visit.local, Colour::Done);
}

struct Search<'m, 'a> {
    machine: &'m ThreadMachine<'a>,
    observer: &'m Observer,
    runs: Runs,
}

impl Search<'_, '_> {
    /// The local steps of a thread state (none: it is stuck), or `None` if it has to stop here.
    fn local_steps(&mut self, local: &Local, visited: usize) -> Option<Vec<(Action, Local)>> {
        let ended = local.thread.has_ended(self.machine.machine.system);
        if local.fault.is_some() || ended || visited > MOST {
            return None;
        }
        if local.thread.frames.len() > MOST_FRAMES {
            self.runs.too_deep = true;
            return Some(Vec::new());
        }
        let edges: Vec<_> = self.machine.edges(local).collect();
        if edges.iter().any(|&edge| self.machine.kind(local, edge) != Kind::Local) {
            return None;
        }
        let view = self.observer.view(local);
        let mut steps = Vec::new();
        for edge in edges {
            for action in self.machine.actions(local, edge) {
                if let Some(after) = self.machine.step(local, action, None) {
                    if self.observer.view(&after.local) != view {
                        return None;
                    }
                    steps.push((action, after.local));
                }
            }
        }
        // Fences and sections that wait for pending stores.
        if steps.is_empty() && !local.thread.buffer.is_empty() { None } else { Some(steps) }
    }

    fn stop(&mut self, path: &[Visit]) {
        let last = path.last().expect("a path has a start");
        let steps = path.iter().filter_map(|visit| visit.by).collect();
        self.runs.stops.push((last.local.clone(), steps));
    }
}
