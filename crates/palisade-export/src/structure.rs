//! Control-flow graphs as nested text: loops, branches, and gotos for the rest.
//!
//! *Problem.* A routine is a graph. The other languages have `if`, loops and gotos. The text should read like
//! a program.
//!
//! *Source.* The idea to nest along the dominator tree is Ramsey's ("Beyond Relooper", ICFP 2022). With gotos
//! any graph can be written, so nothing is refused or duplicated.
//!
//! *How.* A location with one predecessor is written where control comes from. A location with several (a
//! join) is written after the location that dominates it. What follows a loop is written after that loop. A
//! jump to what comes next in the text is empty; a jump to the start or end of the innermost loop is
//! `continue` or `break`; everything else is `goto`.
//!
//! *Guarantee.* Every reachable location is written once, and every step leads where it leads in the graph.

use crate::routine::Routine;
use palisade_base::{Id, IdVec, limits};
use palisade_program::running::{Instr, Location};
use std::collections::BTreeSet;

/// A piece of text.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// The only step of a location.
    Step(Location),
    /// The steps of a location, each with what follows it.
    Branch(Location, Vec<Vec<Node>>),
    /// A location that a `goto` may lead to.
    Label(Location),
    /// An endless loop, left by `break` or `goto`.
    Loop(Location, Vec<Node>),
    /// An atomic section that is entered and left only here. The step of the location opens it.
    Atomic(Location, Vec<Node>),
    Goto(Location),
    Break,
    Continue,
    /// The end of the routine.
    End,
    /// A location without steps that is not the end.
    Stuck(Location),
}

/// A routine as text.
#[derive(Debug)]
pub(crate) struct Structured {
    pub body: Vec<Node>,
    /// The locations that gotos lead to.
    pub labels: BTreeSet<Location>,
}

/// Whether the other language has `continue`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Continues {
    Yes,
    No,
}

/// Writes a routine as nested text.
pub(crate) fn structure(routine: &Routine<'_>, continues: Continues) -> Structured {
    let graph = Graph::new(routine);
    let mut writer = Writer { routine, graph, continues, labels: BTreeSet::new(), depth: 0 };
    let context = Context { follow: Some(routine.code.exit), header: None, after: None };
    let mut body = Vec::new();
    writer.place(routine.code.entry, context, &mut body);
    Structured { body: sections(routine, body), labels: writer.labels }
}

/// What surrounds a piece of text.
#[derive(Clone, Copy)]
struct Context {
    /// The location that comes next in the text.
    follow: Option<Location>,
    /// The header of the innermost loop.
    header: Option<Location>,
    /// The location after the innermost loop.
    after: Option<Location>,
}

struct Writer<'r, 'a> {
    routine: &'r Routine<'a>,
    graph: Graph,
    continues: Continues,
    labels: BTreeSet<Location>,
    /// The nesting depth of the text.
    depth: usize,
}

/// Text that is nested deeper than this uses gotos instead.
const MAX_DEPTH: usize = 12;

impl Writer<'_, '_> {
    /// Writes a location, the locations it dominates, and so on until `context.follow` comes next.
    fn place(&mut self, mut location: Location, context: Context, text: &mut Vec<Node>) {
        loop {
            limits::checkpoint();
            let after = self.graph.after[location].clone();
            let follow = after.first().copied().or(context.follow);
            let next = if self.graph.is_header[location] {
                // A join already has its label.
                if !matches!(text.last(), Some(Node::Label(last)) if *last == location) {
                    text.push(Node::Label(location));
                }
                let mut body = Vec::new();
                let inner = Context { follow: Some(location), header: Some(location), after: follow };
                if let Some(rest) = self.one(location, inner, &mut body) {
                    body.push(Node::Label(rest));
                    self.place(rest, inner, &mut body);
                }
                text.push(Node::Loop(location, body));
                None
            } else {
                self.one(location, Context { follow, ..context }, text)
            };
            // What follows a loop. For a location that is not a loop header this is empty.
            let mut rest: Vec<Location> = next.into_iter().collect();
            rest.extend(after);
            let Some((&last, first)) = rest.split_last() else { return };
            for (i, &place) in first.iter().enumerate() {
                text.push(Node::Label(place));
                self.place(place, Context { follow: Some(rest[i + 1]), ..context }, text);
            }
            text.push(Node::Label(last));
            location = last;
        }
    }

    /// Writes a location and the joins it dominates, except for the last one, which is returned: the caller
    /// continues there.
    fn one(&mut self, location: Location, context: Context, text: &mut Vec<Node>) -> Option<Location> {
        let joins = self.graph.joins[location].clone();
        let moves = &self.routine.moves[location];
        // If there are several successors, one that nothing else competes with is written after the branch,
        // not in it.
        let inlined: Vec<Location> = moves
            .iter()
            .map(|step| step.target)
            .filter(|target| self.graph.is_inlined(location, *target))
            .collect();
        // If another step leads to what comes next anyway, nesting saves a goto.
        let falls = moves.len() > 1 && moves.iter().any(|step| Some(step.target) == context.follow);
        let chained = joins.is_empty() && inlined.len() == 1 && (!falls || self.depth > MAX_DEPTH);
        let follow =
            if chained { inlined.first().copied() } else { joins.first().copied().or(context.follow) };
        let inner = Context { follow, ..context };
        match moves.len() {
            0 if location == self.routine.code.exit => text.push(Node::End),
            0 => text.push(Node::Stuck(location)),
            1 => {
                text.push(Node::Step(location));
                let (target, returns) = (moves[0].target, matches!(moves[0].instr, Instr::Return(_)));
                if !returns {
                    self.jump(location, target, inner, text);
                }
            }
            _ => {
                let steps: Vec<(Location, bool)> =
                    moves.iter().map(|step| (step.target, matches!(step.instr, Instr::Return(_)))).collect();
                let mut alternatives = Vec::new();
                for (target, returns) in steps {
                    let mut alternative = Vec::new();
                    if !returns {
                        self.jump(location, target, inner, &mut alternative);
                    }
                    alternatives.push(alternative);
                }
                text.push(Node::Branch(location, alternatives));
            }
        }
        if chained {
            return inlined.first().copied();
        }
        let (&last, first) = joins.split_last()?;
        for (i, &place) in first.iter().enumerate() {
            text.push(Node::Label(place));
            self.place(place, Context { follow: Some(joins[i + 1]), ..context }, text);
        }
        Some(last)
    }

    /// The jump from a step to its target.
    fn jump(&mut self, source: Location, target: Location, context: Context, text: &mut Vec<Node>) {
        if context.follow == Some(target) {
            return;
        }
        if self.graph.is_inlined(source, target) {
            self.depth += 1;
            self.place(target, context, text);
            self.depth -= 1;
        } else if context.header == Some(target) && self.continues == Continues::Yes {
            text.push(Node::Continue);
        } else if context.after == Some(target) {
            text.push(Node::Break);
        } else if target == self.routine.code.exit {
            text.push(Node::End);
        } else {
            self.labels.insert(target);
            text.push(Node::Goto(target));
        }
    }
}

/// Where the locations of a graph are written.
struct Graph {
    /// Whether some step leads back here.
    is_header: IdVec<Location, bool>,
    /// The joins written after each location, in order.
    joins: IdVec<Location, Vec<Location>>,
    /// What is written after the loop that starts at each location, in order.
    after: IdVec<Location, Vec<Location>>,
    /// For each location with one predecessor: the predecessor, if the location is written there.
    inlined_at: IdVec<Location, Option<Location>>,
}

impl Graph {
    fn is_inlined(&self, source: Location, target: Location) -> bool {
        self.inlined_at[target] == Some(source)
    }

    fn new(routine: &Routine<'_>) -> Graph {
        let count = routine.moves.len();
        let exit = routine.code.exit;
        let successors: Vec<Vec<usize>> = routine
            .moves
            .iter()
            .map(|moves| moves.iter().map(|step| step.target.index()).collect())
            .collect();
        let order = reverse_postorder(routine.code.entry.index(), &successors);
        let mut number = vec![usize::MAX; count];
        order.iter().enumerate().for_each(|(i, &place)| number[place] = i);
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); count];
        for &place in &order {
            limits::checkpoint();
            successors[place].iter().for_each(|&target| predecessors[target].push(place));
        }
        let dominator = dominators(&order, &number, &predecessors);
        let loops = Loops::new(&order, &number, &predecessors, &dominator);

        let empty = || (0..count).map(|_| Vec::new()).collect::<IdVec<Location, Vec<Location>>>();
        let mut graph = Graph {
            is_header: (0..count).map(|place| loops.members[place].is_some()).collect(),
            joins: empty(),
            after: empty(),
            inlined_at: (0..count).map(|_| None).collect(),
        };
        for &place in order.iter().skip(1).filter(|&&place| place != exit.index()) {
            let parent = dominator[place];
            let (target, from) = (Location::from_index(place), Location::from_index(parent));
            if let Some(header) = loops.outermost_left(parent, place, &dominator) {
                graph.after[Location::from_index(header)].push(target);
            } else if predecessors[place].len() > 1 {
                graph.joins[from].push(target);
            } else {
                graph.inlined_at[target] = Some(from);
            }
        }
        graph
    }
}

/// The locations in reverse postorder of a depth-first search.
fn reverse_postorder(entry: usize, successors: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; successors.len()];
    let mut stack = vec![(entry, 0)];
    seen[entry] = true;
    while let Some((place, next)) = stack.pop() {
        limits::checkpoint();
        // From the last successor to the first, so that the first one comes first in the reversed order.
        match successors[place].len().checked_sub(next + 1) {
            Some(i) => {
                stack.push((place, next + 1));
                let target = successors[place][i];
                if !std::mem::replace(&mut seen[target], true) {
                    stack.push((target, 0));
                }
            }
            None => order.push(place),
        }
    }
    order.reverse();
    order
}

/// The immediate dominator of each location (Cooper, Harvey and Kennedy, "A simple, fast dominance
/// algorithm", 2001). The entry dominates itself.
fn dominators(order: &[usize], number: &[usize], predecessors: &[Vec<usize>]) -> Vec<usize> {
    let mut dominator = vec![usize::MAX; number.len()];
    dominator[order[0]] = order[0];
    let mut changed = true;
    while changed {
        changed = false;
        for &place in &order[1..] {
            limits::checkpoint();
            let known = predecessors[place].iter().copied().filter(|&p| dominator[p] != usize::MAX);
            let meet = |mut a: usize, mut b: usize| {
                while a != b {
                    limits::checkpoint();
                    while number[a] > number[b] {
                        a = dominator[a];
                    }
                    while number[b] > number[a] {
                        b = dominator[b];
                    }
                }
                a
            };
            let new = known.reduce(meet).expect("a reached location has a known predecessor");
            changed |= dominator[place] != new;
            dominator[place] = new;
        }
    }
    dominator
}

/// Natural loops by header.
struct Loops {
    members: Vec<Option<BTreeSet<usize>>>,
}

impl Loops {
    fn new(order: &[usize], number: &[usize], predecessors: &[Vec<usize>], dominator: &[usize]) -> Loops {
        let dominates = |a: usize, mut b: usize| {
            while number[b] > number[a] {
                b = dominator[b];
            }
            a == b
        };
        let mut members: Vec<Option<BTreeSet<usize>>> = vec![None; number.len()];
        for &header in order {
            limits::checkpoint();
            let back: Vec<usize> =
                predecessors[header].iter().copied().filter(|&source| dominates(header, source)).collect();
            if back.is_empty() {
                continue;
            }
            let mut inside = BTreeSet::from([header]);
            let mut open = back;
            while let Some(place) = open.pop() {
                limits::checkpoint();
                if inside.insert(place) {
                    open.extend(&predecessors[place]);
                }
            }
            members[header] = Some(inside);
        }
        Loops { members }
    }

    /// The outermost loop that contains `parent` but not `place`.
    fn outermost_left(&self, parent: usize, place: usize, dominator: &[usize]) -> Option<usize> {
        let mut found = None;
        // The headers of the loops around a location dominate it.
        let mut header = parent;
        loop {
            limits::checkpoint();
            if let Some(members) = &self.members[header]
                && members.contains(&parent)
                && !members.contains(&place)
            {
                found = Some(header);
            }
            if dominator[header] == header {
                return found;
            }
            header = dominator[header];
        }
    }
}

/// Marks the atomic sections that are entered and left within one sequence of text.
fn sections(routine: &Routine<'_>, text: Vec<Node>) -> Vec<Node> {
    let opens =
        |node: &Node| matches!(node, Node::Step(at) if routine.step(*at, 0).instr == Instr::AtomicBegin);
    let closes =
        |node: &Node| matches!(node, Node::Step(at) if routine.step(*at, 0).instr == Instr::AtomicEnd);
    let mut marked = Vec::new();
    let mut rest = text.into_iter().peekable();
    while let Some(node) = rest.next() {
        match node {
            Node::Step(at) if opens(&node) => {
                let mut inside = Vec::new();
                let mut closed = false;
                for node in rest.by_ref() {
                    closed = closes(&node);
                    inside.push(node);
                    if closed {
                        break;
                    }
                }
                let inside = sections(routine, inside);
                if closed && stays_inside(routine, &inside[..inside.len() - 1]) {
                    marked.push(Node::Atomic(at, inside));
                } else {
                    marked.push(Node::Step(at));
                    marked.extend(inside);
                }
            }
            Node::Branch(at, alternatives) => {
                let alternatives = alternatives.into_iter().map(|text| sections(routine, text)).collect();
                marked.push(Node::Branch(at, alternatives));
            }
            Node::Loop(at, body) => marked.push(Node::Loop(at, sections(routine, body))),
            node => marked.push(node),
        }
    }
    marked
}

/// Whether text inside a section neither leaves it nor loops nor calls.
fn stays_inside(routine: &Routine<'_>, text: &[Node]) -> bool {
    let mut seen = BTreeSet::new();
    let mut wanted = BTreeSet::new();
    forward(routine, text, &mut seen, &mut wanted) && wanted.is_subset(&seen)
}

/// Whether text has only plain steps, and gotos that lead to no label seen before. Collects labels and the
/// targets of gotos.
fn forward(
    routine: &Routine<'_>,
    text: &[Node],
    seen: &mut BTreeSet<Location>,
    wanted: &mut BTreeSet<Location>,
) -> bool {
    let plain = |at: Location| {
        routine.moves[at].iter().all(|step| {
            !matches!(
                step.instr,
                Instr::AtomicBegin | Instr::AtomicEnd | Instr::Call { .. } | Instr::Return(_)
            )
        })
    };
    text.iter().all(|node| match node {
        Node::Step(at) => plain(*at),
        Node::Branch(at, alternatives) => {
            plain(*at) && alternatives.iter().all(|text| forward(routine, text, seen, wanted))
        }
        Node::Label(at) => {
            seen.insert(*at);
            true
        }
        Node::Goto(target) => {
            wanted.insert(*target);
            !seen.contains(target)
        }
        Node::Stuck(_) => true,
        Node::Loop(..) | Node::Atomic(..) | Node::Break | Node::Continue | Node::End => false,
    })
}
