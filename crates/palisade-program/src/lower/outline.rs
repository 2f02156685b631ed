//! Which edges lead to each statement.
//!
//! *Problem.* Which statements do runs reach, given the edges that they take? A statement need not have an
//! edge of its own: `skip`, `break` and `goto` leave no trace in the running form.
//!
//! *How.* The outline keeps the control flow as lowering emits it, with all empty steps, and the id that each
//! edge has in the running form. The edges that simplification removes are empty steps, and those that no
//! path from the entry takes. An empty step is possible wherever its source is reached.
//!
//! *Guarantee.* If `taken` are the edges that runs take, and procedures return to the locations `returned`,
//! then [`Outline::reached`] are the locations that runs reach. There may be more only if two calls return to
//! the same location of the running form, and one of them never returns. The tests compare it with programs in
//! which every statement has a label.

use super::globals::Globals;
use super::{Waits, flow, instances};
use crate::running::{CodeId, Edge, EdgeId, Instr, Location};
use crate::written::{ExprKind, Name, Program, StmtKind};
use palisade_base::{Id, IdVec, Span, limits};

/// The statements of one code, and the control flow between them.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The statements and labels, in the order of the text.
    pub points: Vec<Point>,
    entry: Location,
    locations: usize,
    /// The edges before simplification: source, target, and the edge of the running form.
    edges: Vec<(Location, Location, Kept)>,
}

/// What became of an edge in the running form.
#[derive(Clone, Copy, Debug)]
enum Kept {
    /// It is gone: it is an empty step, or no path takes it.
    Gone,
    /// This edge.
    Edge(EdgeId),
    /// This call, which returns to this location.
    Call(Location),
}

/// A statement or a label.
#[derive(Clone, Debug)]
pub struct Point {
    /// What is there.
    pub kind: PointKind,
    /// Its place in the source.
    pub span: Span,
    /// The location in front of it, an index into [`Outline::reached`].
    pub start: Location,
    /// The location after it.
    pub after: Location,
}

/// What is at a point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PointKind {
    /// A label.
    Label(Name),
    /// `assert`
    Assert,
    /// `assert(false)`: whoever gets here has failed.
    Fail,
    /// `await`, `assume`, or a `while` with an empty body: it holds up the process until something is true.
    Wait,
    /// Any other statement.
    Other,
}

impl PointKind {
    /// The kind of a statement. Blocks are not points themselves.
    pub(super) fn of(kind: &StmtKind) -> Option<PointKind> {
        match kind {
            StmtKind::Block(_) => None,
            StmtKind::Assert(e, _) if matches!(e.kind, ExprKind::Bool(false) | ExprKind::Int(0)) => {
                Some(PointKind::Fail)
            }
            StmtKind::Assert(..) => Some(PointKind::Assert),
            StmtKind::Await(_) | StmtKind::Assume(_) => Some(PointKind::Wait),
            StmtKind::While { body, .. } if body.is_empty() => Some(PointKind::Wait),
            _ => Some(PointKind::Other),
        }
    }
}

impl Outline {
    pub(super) fn new(
        points: Vec<Point>,
        entry: Location,
        locations: usize,
        edges: Vec<(Location, Location)>,
    ) -> Outline {
        let edges = edges.into_iter().map(|(source, target)| (source, target, Kept::Gone)).collect();
        Outline { points, entry, locations, edges }
    }

    /// Records that the edge with this index became an edge of the running form.
    pub(super) fn keep(&mut self, index: usize, id: EdgeId, edge: &Edge) {
        self.edges[index].2 = match edge.instr {
            Instr::Call { .. } => Kept::Call(edge.target),
            _ => Kept::Edge(id),
        };
    }

    /// Whether each location is reached, given the edges of the running form that are taken, and its locations
    /// that a procedure returns to. The code itself is entered.
    pub fn reached(&self, taken: impl Fn(EdgeId) -> bool, returned: impl Fn(Location) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.locations];
        let mut open = vec![self.entry];
        let mut empty: Vec<Vec<Location>> = vec![Vec::new(); self.locations];
        for &(source, target, kept) in &self.edges {
            match kept {
                Kept::Edge(id) if taken(id) => open.push(target),
                Kept::Call(location) if returned(location) => open.push(target),
                Kept::Edge(_) | Kept::Call(_) => {}
                Kept::Gone => empty[source.index()].push(target),
            }
        }
        while let Some(location) = open.pop() {
            if !std::mem::replace(&mut reached[location.index()], true) {
                open.extend(&empty[location.index()]);
            }
        }
        reached
    }
}

impl Outline {
    /// The points that follow a location without any step in between, by their index.
    pub fn at_once(&self, location: Location) -> Vec<usize> {
        let mut known = vec![false; self.locations];
        let mut open = vec![location];
        while let Some(location) = open.pop() {
            if !std::mem::replace(&mut known[location.index()], true) {
                let gone = |(source, _, kept): &&(Location, Location, Kept)| {
                    *source == location && matches!(kept, Kept::Gone)
                };
                open.extend(self.edges.iter().filter(gone).map(|(_, target, _)| *target));
            }
        }
        let points = self.points.iter().enumerate();
        points.filter(|(_, point)| known[point.start.index()]).map(|(index, _)| index).collect()
    }
}

/// The outlines of all codes of a program, as [`super::lower`] makes them.
///
/// # Panics
/// If the program is not valid.
pub fn outlines(program: &Program) -> IdVec<CodeId, Outline> {
    let globals = Globals::new(program);
    let mut outlines = IdVec::new();
    for template in &program.templates {
        for args in instances::combinations(&template.params) {
            limits::checkpoint();
            outlines.push(flow::process_code(&globals, Waits::Delay, template, &args, &[]).1);
        }
    }
    for procedure in &program.procedures {
        outlines.push(flow::procedure_code(&globals, Waits::Delay, procedure).1);
    }
    outlines
}
