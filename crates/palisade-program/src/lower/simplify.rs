//! Removes empty steps and unreachable code from a control-flow graph.
//!
//! *Guarantee.* The same states are reachable, up to locations without labels. Every label keeps its own
//! location. The only edge of a labelled location is kept even if it is empty: being at `cs` in `cs: skip;`
//! is a state like any other.
//!
//! *How.*
//! - Rule A: a location without a label whose only edge is empty is merged with the target of that edge.
//! - Rule B: suppose that one of several edges of a location is empty and is the only edge to its target.
//!   Then the target's edges can start at this location instead. The choice is now made together with the
//!   next step instead of before it. Only the process itself sees its choice, so no other state becomes
//!   reachable.
//!
//! Locations are numbered in the order of the text, with the entry first and the exit last.
//!
//! *Cost.* Linear.

use super::Waits;
use super::outline::Outline;
use crate::running::{Code, Edge, EdgeId, Instr, Location, Stay};
use crate::written::END_LABEL;
use palisade_base::{Id, limits};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// A control-flow graph as lowering emits it.
pub(super) struct Graph {
    pub(super) locations: usize,
    pub(super) entry: Location,
    pub(super) exit: Location,
    /// In the order of the text.
    pub(super) edges: Vec<Marked>,
    /// In the order of the text.
    pub(super) labels: Vec<(String, Location)>,
    pub(super) waits: Waits,
    /// The statements that a `leaves` mentions.
    pub(super) stays: Vec<Inside>,
}

/// A labelled statement, as lowering emits it.
pub(super) struct Inside {
    pub(super) label: String,
    pub(super) locations: FxHashSet<Location>,
    /// Its edges, by their index in the order of the text.
    pub(super) edges: Range<usize>,
    /// Locations that are not merged with others.
    pub(super) pinned: Vec<Location>,
}

/// An edge and its marks.
pub(super) struct Marked {
    edge: Edge,
    /// Its index as emitted.
    index: usize,
    /// Whether it belongs to a wait and does not end it.
    attempts: bool,
    /// Whether it is a plain access.
    plain: bool,
    /// The statements of [`Graph::stays`] that it begins and ends in without leaving them.
    stays: Vec<usize>,
}

impl std::ops::Deref for Marked {
    type Target = Edge;
    fn deref(&self) -> &Edge {
        &self.edge
    }
}

impl std::ops::DerefMut for Marked {
    fn deref_mut(&mut self) -> &mut Edge {
        &mut self.edge
    }
}

/// Edges with their marks. `attempts` has the indices of those that belong to a wait and do not end it, `plain`
/// those of plain accesses, both in increasing order.
pub(super) fn marked(edges: Vec<Edge>, attempts: &[usize], plain: &[usize], stays: &[Inside]) -> Vec<Marked> {
    let mut attempts = attempts.iter().copied().peekable();
    let mut plain = plain.iter().copied().peekable();
    let mark = |(index, edge): (usize, Edge)| {
        let stays = stays.iter().enumerate();
        let stays =
            stays.filter(|(_, stay)| stay.edges.contains(&index) && stay.locations.contains(&edge.target));
        let stays = stays.map(|(stay, _)| stay).collect();
        let (attempts, plain) = (attempts.next_if_eq(&index).is_some(), plain.next_if_eq(&index).is_some());
        Marked { edge, index, attempts, plain, stays }
    };
    edges.into_iter().enumerate().map(mark).collect()
}

impl Graph {
    /// The code, without registers yet. Adds the label `end`. The outline gets the ids of the edges that remain.
    pub(super) fn into_code(mut self, name: String, outline: &mut Outline) -> Code {
        self.drop_unreachable();
        self.merge_forward();
        self.merge_choices();
        self.renumber();
        let Graph { locations, entry, exit, mut edges, mut labels, waits: _, stays } = self;
        labels.push((END_LABEL.to_owned(), exit));
        // The order of a code's edges.
        edges.sort_by_key(|marked| marked.source);
        let those = |mark: fn(&Marked) -> bool| {
            let marked = edges.iter().enumerate().filter(|(_, marked)| mark(marked));
            marked.map(|(index, _)| EdgeId::from_index(index)).collect()
        };
        let (attempts, plain) = (those(|marked| marked.attempts), those(|marked| marked.plain));
        let stays = stays.into_iter().enumerate().map(|(number, inside)| {
            let staying = edges.iter().enumerate().filter(|(_, marked)| marked.stays.contains(&number));
            let mut locations: Vec<Location> = inside.locations.into_iter().collect();
            locations.sort_unstable();
            let edges = staying.map(|(index, _)| EdgeId::from_index(index)).collect();
            Stay { label: inside.label, locations, edges }
        });
        let stays = stays.collect();
        for (id, marked) in edges.iter().enumerate() {
            outline.keep(marked.index, EdgeId::from_index(id), marked);
        }
        let edges = edges.into_iter().map(|marked| marked.edge).collect();
        let mut code = Code::new(name, entry, exit, locations, edges);
        code.labels = labels;
        code.attempts = attempts;
        code.plain = plain;
        code.stays = stays;
        code
    }

    /// Whether each location has a label. The exit and pinned locations count as labelled.
    fn labelled(&self) -> Vec<bool> {
        let mut labelled = vec![false; self.locations];
        self.labels.iter().for_each(|(_, location)| labelled[location.index()] = true);
        let pinned = self.stays.iter().flat_map(|stay| &stay.pinned);
        pinned.for_each(|location| labelled[location.index()] = true);
        labelled[self.exit.index()] = true;
        labelled
    }

    /// Removes the edges that no run takes.
    fn drop_unreachable(&mut self) {
        limits::checkpoint();
        // The targets of all locations, grouped by source.
        let mut first = vec![0usize; self.locations + 1];
        self.edges.iter().for_each(|edge| first[edge.source.index() + 1] += 1);
        (0..self.locations).for_each(|location| first[location + 1] += first[location]);
        let mut next = first.clone();
        let mut targets = vec![self.entry; self.edges.len()];
        for edge in &self.edges {
            targets[next[edge.source.index()]] = edge.target;
            next[edge.source.index()] += 1;
        }
        let mut reached = vec![false; self.locations];
        let mut open = vec![self.entry];
        reached[self.entry.index()] = true;
        while let Some(location) = open.pop() {
            for &target in &targets[first[location.index()]..first[location.index() + 1]] {
                if !std::mem::replace(&mut reached[target.index()], true) {
                    open.push(target);
                }
            }
        }
        self.edges.retain(|edge| reached[edge.source.index()]);
    }

    /// Rule A.
    fn merge_forward(&mut self) {
        limits::checkpoint();
        let labelled = self.labelled();
        let mut next: Vec<Option<Location>> = vec![None; self.locations];
        let mut edge_count = vec![0u32; self.locations];
        for edge in &self.edges {
            edge_count[edge.source.index()] += 1;
            next[edge.source.index()] = (edge.instr == Instr::Nop).then_some(edge.target);
        }
        for location in 0..self.locations {
            if labelled[location] || edge_count[location] != 1 {
                next[location] = None;
            }
        }
        let (representative, waits) = (follow(&mut next), self.waits);
        let moved = |location: Location| representative[location.index()];
        self.stay_on_the_way(&next, &representative);
        // A merged location is no longer in use. A cycle of empty steps is left without any edge, or with one
        // that can be repeated.
        self.edges.retain(|edge| {
            let merged = moved(edge.source) != edge.source;
            let ring = waits == Waits::Delay
                && edge.instr == Instr::Nop
                && moved(edge.target) == edge.source
                && !labelled[edge.source.index()]
                && edge_count[edge.source.index()] == 1;
            !merged && !ring
        });
        self.edges.iter_mut().for_each(|edge| edge.target = moved(edge.target));
        self.entry = moved(self.entry);
    }

    /// An edge stays inside a statement only if the empty steps that are merged with it do.
    fn stay_on_the_way(&mut self, next: &[Option<Location>], representative: &[Location]) {
        let mut of_empty: FxHashMap<Location, Vec<usize>> = FxHashMap::default();
        for edge in self.edges.iter().filter(|edge| next[edge.source.index()].is_some()) {
            of_empty.insert(edge.source, edge.stays.clone());
        }
        for edge in self.edges.iter_mut().filter(|edge| !edge.stays.is_empty()) {
            let mut at = edge.target;
            while at != representative[at.index()] {
                let (Some(after), Some(stays)) = (next[at.index()], of_empty.get(&at)) else { break };
                edge.stays.retain(|stay| stays.contains(stay));
                at = after;
            }
        }
    }

    /// Rule B.
    fn merge_choices(&mut self) {
        limits::checkpoint();
        let labelled = self.labelled();
        let mut incoming = vec![0u32; self.locations];
        let mut outgoing = vec![0u32; self.locations];
        incoming[self.entry.index()] += 1;
        for edge in &self.edges {
            incoming[edge.target.index()] += 1;
            outgoing[edge.source.index()] += 1;
        }
        let mut next: Vec<Option<Location>> = vec![None; self.locations];
        self.edges.retain(|edge| {
            let merge = edge.instr == Instr::Nop
                && outgoing[edge.source.index()] > 1
                && incoming[edge.target.index()] == 1
                && !labelled[edge.target.index()]
                && edge.source != edge.target;
            if merge {
                next[edge.target.index()] = Some(edge.source);
            }
            !merge
        });
        let representative = follow(&mut next);
        self.edges.iter_mut().for_each(|edge| edge.source = representative[edge.source.index()]);
    }

    /// Renumbers the remaining locations.
    fn renumber(&mut self) {
        limits::checkpoint();
        let mut number: Vec<Option<Location>> = vec![None; self.locations];
        let mut count = 0;
        let mut visit = |location: Location| {
            number[location.index()].get_or_insert_with(|| {
                count += 1;
                Location::from_index(count - 1)
            });
        };
        if self.entry != self.exit {
            visit(self.entry);
        }
        self.edges.iter().for_each(|edge| visit(edge.source));
        for location in
            self.edges.iter().map(|edge| edge.target).chain(self.labels.iter().map(|label| label.1))
        {
            if location != self.exit {
                visit(location);
            }
        }
        visit(self.exit);
        self.locations = count;
        let new = |location: Location| number[location.index()].expect("every location in use has a number");
        for edge in &mut self.edges {
            (edge.source, edge.target) = (new(edge.source), new(edge.target));
        }
        self.labels.iter_mut().for_each(|(_, location)| *location = new(*location));
        for stay in &mut self.stays {
            // A merged location is no longer in use.
            let numbered = stay.locations.iter().filter_map(|location| number[location.index()]);
            stay.locations = numbered.collect();
        }
        (self.entry, self.exit) = (new(self.entry), new(self.exit));
    }
}

/// The location reached from each location by following `next` to the end. A cycle is cut at one of its
/// locations.
fn follow(next: &mut [Option<Location>]) -> Vec<Location> {
    let mut end: Vec<Option<Location>> = vec![None; next.len()];
    let mut on_path = vec![false; next.len()];
    let mut path = Vec::new();
    for start in 0..next.len() {
        let mut at = start;
        let last = loop {
            if let Some(known) = end[at] {
                break known;
            }
            on_path[at] = true;
            path.push(at);
            match next[at] {
                Some(target) if !on_path[target.index()] => at = target.index(),
                _ => break Location::from_index(at),
            }
        };
        for location in path.drain(..) {
            on_path[location] = false;
            end[location] = Some(last);
        }
    }
    end.into_iter().map(|end| end.expect("every location was followed")).collect()
}
