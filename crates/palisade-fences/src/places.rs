//! Where fences may go, and programs with fences there.
//!
//! A place is one or more gaps between statements ([`crate::gaps`]). It is either all gaps that correspond to
//! one position in the source text, in every template and every instance, or those of one instance.
//!
//! *Marks.* [`Places::marked`] inserts a labelled step into every gap of every place: a fence where one is
//! requested, an empty step elsewhere. So programs that differ only in their fences have the same control
//! flow, edge by edge. A run of one is a run of another if the machine can take its steps there. Labels are
//! named `%…`, which cannot be written in a program. They change no verdict, since properties cannot see
//! them.

use crate::gaps::{BodyId, Gap, GapId, fill, gaps};
use crate::repeated::Repeated;
use palisade_base::{Id, IdVec, Span, define_id, limits};
use palisade_program::running::{CodeId, Location, System};
use palisade_program::written::{
    BinaryOp, Expr, ExprKind, Name, Param, Place as WrittenPlace, PlaceKind, Program, Stmt, StmtKind, UnaryOp,
};
use palisade_program::{Instantiation, Value, lower};
use palisade_syntax::edit::{FenceAt, FenceKind, Side};
use rustc_hash::FxHashMap;

define_id!(
    /// A place.
    PlaceId
);

/// The fence at each place.
pub type Fencing = IdVec<PlaceId, Option<FenceKind>>;

/// Between which statements fences may be placed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Placement {
    /// After statements that store to shared memory.
    #[default]
    AfterWrites,
    /// Before statements that load from it.
    BeforeReads,
    /// Anywhere. Of adjacent places with the same effect only the first counts.
    Anywhere,
}

/// What counts as one fence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Per {
    /// A position in the source. The fence is in all instances of its process.
    #[default]
    Source,
    /// A position in one instance, if instances have different parameters.
    Instance,
}

/// The requirements on places.
pub struct Wanted<'a> {
    /// Between which statements.
    pub placement: Placement,
    /// What counts as one fence.
    pub per: Per,
    /// Whether store-store fences make a difference.
    pub store_fences: bool,
    /// Whether a fence can be written there.
    pub can_write: &'a dyn Fn(FenceAt) -> bool,
    /// Whether the user wants fences there.
    pub allows: &'a dyn Fn(&FencePlace) -> bool,
}

/// A place for a fence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FencePlace {
    /// The process or procedure, or several, separated by commas. If places are per instance, the instance.
    pub process: String,
    /// The body it is in.
    pub body: BodyId,
    /// The parameters of the instance, if the place belongs to one.
    pub args: Option<Vec<Value>>,
    /// The statement next to which the fence would be written.
    pub span: Span,
    /// The side of that statement.
    pub side: Side,
    /// The label after the place, or else the label of the statement before it.
    pub label: Option<String>,
    /// All labels that can refer to the place.
    pub labels: Vec<String>,
    /// Whether control may reach the place repeatedly.
    pub in_loop: bool,
    /// Whether a store-store fence is an option too.
    pub store_fence: bool,
    gaps: Vec<GapId>,
}

impl FencePlace {
    /// The fence as it is inserted into a text.
    pub fn fence(&self, kind: FenceKind) -> FenceAt {
        FenceAt { span: self.span, side: self.side, kind }
    }

    /// The fences that are possible here, weak ones first.
    pub fn kinds(&self) -> &'static [FenceKind] {
        if self.store_fence { &[FenceKind::StoreStore, FenceKind::Full] } else { &[FenceKind::Full] }
    }
}

/// A program and the places for fences in it.
#[derive(Clone, Debug)]
pub struct Places {
    program: Program,
    places: IdVec<PlaceId, FencePlace>,
    /// For each gap, the places in it. There are several if they belong to different instances.
    by_gap: FxHashMap<GapId, Vec<PlaceId>>,
}

impl Places {
    /// Finds the places of a program.
    pub fn new(program: &Program, wanted: &Wanted<'_>) -> Places {
        let system = lower(program, Instantiation::declared(1));
        let mut found =
            Places { program: program.clone(), places: IdVec::new(), by_gap: FxHashMap::default() };
        let mut known: FxHashMap<Key, PlaceId> = FxHashMap::default();
        let mut processes: IdVec<PlaceId, Vec<String>> = IdVec::new();
        // Whether the previous gap, or one with the same effect, is a place.
        let mut taken = false;
        for (index, gap) in gaps(program).into_iter().enumerate() {
            limits::checkpoint();
            let fits = match wanted.placement {
                Placement::AfterWrites => gap.after_write,
                Placement::BeforeReads => gap.before_read,
                Placement::Anywhere => !(gap.same_as_previous && taken),
            };
            if !fits {
                continue;
            }
            taken = false;
            let id = GapId::from_index(index);
            for candidate in candidates(program, &system, &gap, id, wanted) {
                limits::checkpoint();
                taken = true;
                let body = (wanted.per == Per::Instance).then_some(candidate.body);
                let key = (candidate.span, candidate.side, body, candidate.args.clone());
                let place = match known.get(&key) {
                    Some(&place) => {
                        found.places[place].gaps.push(id);
                        if !processes[place].contains(&candidate.process) {
                            processes[place].push(candidate.process);
                        }
                        place
                    }
                    None if !(wanted.allows)(&candidate) => continue,
                    None => {
                        processes.push(vec![candidate.process.clone()]);
                        let place = found.places.push(candidate);
                        known.insert(key, place);
                        place
                    }
                };
                found.by_gap.entry(id).or_default().push(place);
            }
        }
        for (place, processes) in processes.iter_enumerated() {
            found.places[place].process = processes.join(", ");
        }
        found.find_loops();
        found
    }

    /// The places.
    pub fn places(&self) -> &IdVec<PlaceId, FencePlace> {
        &self.places
    }

    /// The program without fences.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// No fence anywhere.
    pub fn no_fences(&self) -> Fencing {
        self.places.iter().map(|_| None).collect()
    }

    /// The program with fences, in the form in which it would be written.
    pub fn fenced(&self, fencing: &Fencing) -> Program {
        let statement = |place: PlaceId, _: String| {
            let kind = match fencing[place]? {
                FenceKind::StoreStore => StmtKind::StoreFence,
                FenceKind::Full => StmtKind::Fence,
            };
            Some(Stmt::new(kind, Span::NONE))
        };
        self.filled(&statement)
    }

    /// The program with a labelled step at every place: a fence or an empty step.
    pub fn marked(&self, fencing: &Fencing) -> Program {
        let statement = |place: PlaceId, label: String| {
            let kind = match fencing[place] {
                None => StmtKind::Skip,
                Some(FenceKind::StoreStore) => StmtKind::StoreFence,
                Some(FenceKind::Full) => StmtKind::Fence,
            };
            Some(Stmt { labels: vec![Name::generated(label)], ..Stmt::new(kind, Span::NONE) })
        };
        self.filled(&statement)
    }

    /// The marks of a marked program in its running form.
    pub fn marks(&self, system: &System) -> Marks {
        let mut places: FxHashMap<String, PlaceId> = FxHashMap::default();
        for (&gap, there) in &self.by_gap {
            places.extend(there.iter().map(|&place| (mark(gap, place), place)));
        }
        let mut by_location = FxHashMap::default();
        for (code, body) in system.codes.iter_enumerated() {
            for (label, location) in &body.labels {
                if let Some(&place) = places.get(label) {
                    by_location.insert((code, *location), place);
                }
            }
        }
        Marks { by_location }
    }

    fn filled(&self, statement: &dyn Fn(PlaceId, String) -> Option<Stmt>) -> Program {
        fill(&self.program, &mut |gap, _| {
            let there = self.by_gap.get(&gap)?;
            let mut all: Vec<(PlaceId, Stmt)> = there
                .iter()
                .filter_map(|&place| Some((place, statement(place, mark(gap, place))?)))
                .collect();
            if all.len() == 1 && self.places[all[0].0].args.is_none() {
                return all.pop().map(|(_, statement)| statement);
            }
            // One alternative per instance.
            all.into_iter().rev().fold(None, |otherwise, (place, statement)| {
                let condition = self.is_instance(&self.places[place]);
                let otherwise = otherwise.into_iter().collect();
                let kind = StmtKind::If { condition, then: vec![statement], otherwise };
                Some(Stmt::new(kind, Span::NONE))
            })
        })
    }

    /// Whether the process is the instance that the place belongs to.
    fn is_instance(&self, place: &FencePlace) -> Expr {
        let BodyId::Template(template) = place.body else {
            panic!("procedures have no instances");
        };
        let args = place.args.as_deref().unwrap_or_default();
        condition(&self.program.templates[template].params, args)
    }

    fn find_loops(&mut self) {
        let system = lower(&self.marked(&self.no_fences()), Instantiation::declared(1));
        let marks = self.marks(&system);
        let repeated = Repeated::new(&system);
        for (&(code, location), &place) in &marks.by_location {
            self.places[place].in_loop |= repeated.contains(code, location);
        }
    }
}

/// The locations of the marks in a marked program.
#[derive(Clone, Debug)]
pub struct Marks {
    by_location: FxHashMap<(CodeId, Location), PlaceId>,
}

impl Marks {
    /// The place whose step starts at a location.
    pub fn at(&self, code: CodeId, location: Location) -> Option<PlaceId> {
        self.by_location.get(&(code, location)).copied()
    }
}

type Key = (Span, Side, Option<BodyId>, Option<Vec<Value>>);

fn mark(gap: GapId, place: PlaceId) -> String {
    format!("%{}.{}", gap.0, place.0)
}

/// `i == 0 && j == 1`
fn condition(params: &[Param], args: &[Value]) -> Expr {
    let expr = |kind| Expr::new(kind, Span::NONE);
    let number = |value: Value| match value.checked_neg() {
        Some(positive) if value < 0 => {
            expr(ExprKind::Unary(UnaryOp::Neg, Box::new(expr(ExprKind::Int(positive)))))
        }
        _ => expr(ExprKind::Int(value)),
    };
    let equations = params.iter().zip(args).map(|(param, &value)| {
        let name = WrittenPlace::new(PlaceKind::Named(param.name.clone()), Span::NONE);
        let param = expr(ExprKind::Read(name));
        expr(ExprKind::Binary(BinaryOp::Eq, Box::new(param), Box::new(number(value))))
    });
    let both = |a, b| expr(ExprKind::Binary(BinaryOp::And, Box::new(a), Box::new(b)));
    equations.reduce(both).unwrap_or_else(|| expr(ExprKind::Bool(true)))
}

/// The places of a gap, if a fence can be written there: one, or one per instance.
fn candidates(
    program: &Program,
    system: &System,
    gap: &Gap,
    id: GapId,
    wanted: &Wanted<'_>,
) -> Vec<FencePlace> {
    let preceding = gap.preceding.map(|span| (span, Side::After));
    let following = gap.following.map(|span| (span, Side::Before));
    let anchors = match wanted.placement {
        Placement::BeforeReads => [following, preceding],
        Placement::AfterWrites | Placement::Anywhere => [preceding, following],
    };
    let can_write =
        |&(span, side): &(Span, Side)| (wanted.can_write)(FenceAt { span, side, kind: FenceKind::Full });
    let Some((span, side)) = anchors.into_iter().flatten().find(can_write) else { return Vec::new() };
    let store_fence =
        wanted.store_fences && (wanted.can_write)(FenceAt { span, side, kind: FenceKind::StoreStore });
    let name = match gap.body {
        BodyId::Template(template) => program.templates[template].name.to_string(),
        BodyId::Procedure(procedure) => program.procedures[procedure].name.to_string(),
    };
    let place = FencePlace {
        process: name,
        body: gap.body,
        args: None,
        span,
        side,
        label: gap.label.clone().or_else(|| gap.preceding_label.clone()),
        labels: gap.label.iter().chain(&gap.preceding_label).cloned().collect(),
        in_loop: false,
        store_fence,
        gaps: vec![id],
    };
    let (Per::Instance, BodyId::Template(template)) = (wanted.per, gap.body) else { return vec![place] };
    let roles = system.roles.iter().filter(|role| role.template.index() == template);
    let roles: Vec<_> = roles.collect();
    match roles.as_slice() {
        [] | [_] => {
            let process = roles.first().map_or(place.process.clone(), |role| role.name.clone());
            vec![FencePlace { process, ..place }]
        }
        _ => roles
            .iter()
            .map(|role| FencePlace {
                process: role.name.clone(),
                args: Some(role.args.clone()),
                ..place.clone()
            })
            .collect(),
    }
}
