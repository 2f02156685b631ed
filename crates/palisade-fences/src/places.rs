//! Where fences may go, and programs with fences there.
//!
//! A place is one or more gaps between statements ([`crate::gaps`]). It is either all gaps that correspond to
//! one position in the source text, in every template and every instance, or those of one instance. An access that
//! can be made stronger is a place too ([`crate::access`]).
//!
//! *Marks.* [`Places::marked`] inserts a labelled step into every gap of every place: a fence where one is
//! requested, an empty step elsewhere. So programs that differ only in their fences have the same control
//! flow, edge by edge. A run of one is a run of another if the machine can take its steps there. Labels are
//! named `%…`, which cannot be written in a program. They change no verdict, since properties cannot see
//! them.

use crate::access::{AccessAt, Accessed, Change, Role, Stronger};
use crate::gaps::{BodyId, Gap, GapId, fill, gaps};
use crate::repeated::Repeated;
use palisade_base::{Id, IdVec, Span, define_id, limits};
use palisade_program::running::{CodeId, Location, System};
use palisade_program::written::{
    BinaryOp, Expr, ExprKind, Name, Param, Place as WrittenPlace, PlaceKind, Program, Stmt, StmtKind, UnaryOp,
};
use palisade_program::{Instantiation, Value, lower};
use palisade_syntax::edit::{FenceAt, FenceKind, Side};
use rustc_hash::{FxHashMap, FxHashSet};

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
    /// How the text makes an access stronger, if it can. Places per instance have no such accesses.
    pub stronger: &'a dyn Fn(AccessAt) -> Option<Stronger>,
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
    /// If an access is made stronger instead of adding a fence: which one, and how.
    pub access: Option<(Accessed, Stronger)>,
    gaps: Vec<GapId>,
}

impl FencePlace {
    /// What is changed in the text.
    pub fn change(&self, kind: FenceKind) -> Change {
        match (&self.access, kind) {
            (None, FenceKind::Full) => Change::Fence,
            (None, FenceKind::StoreStore) => Change::StoreFence,
            (Some((_, stronger)), FenceKind::Full) => stronger.full,
            (Some((_, stronger)), FenceKind::StoreStore) => stronger.weak.unwrap_or(stronger.full),
        }
    }

    /// The access that is made stronger, if the place is one.
    pub fn stronger(&self) -> Option<AccessAt> {
        self.access.map(|(accessed, _)| AccessAt { span: self.span, accessed })
    }

    /// The fence as it is inserted into a text, if the place is not an access.
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
    /// For each gap, the places in it, and what they do there. There are several if they belong to different
    /// instances, or to accesses next to the gap.
    by_gap: FxHashMap<GapId, Vec<(PlaceId, Role)>>,
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
        let gaps = gaps(program);
        let several = with_several_stores(&gaps);
        for (index, gap) in gaps.into_iter().enumerate() {
            limits::checkpoint();
            let id = GapId::from_index(index);
            for (access, role) in accesses(&gap, wanted) {
                if access.accessed == Accessed::Store && several.contains(&access.span) {
                    continue;
                }
                found.add_access(&gap, id, (access, role), wanted, &mut known, &mut processes);
            }
            if gap.inner {
                continue;
            }
            let fits = match wanted.placement {
                Placement::AfterWrites => gap.after_write,
                Placement::BeforeReads => gap.before_read,
                Placement::Anywhere => !(gap.same_as_previous && taken),
            };
            if !fits {
                continue;
            }
            taken = false;
            for candidate in candidates(program, &system, &gap, id, wanted) {
                limits::checkpoint();
                taken = true;
                let body = (wanted.per == Per::Instance).then_some(candidate.body);
                let key = (candidate.span, Where::Beside(candidate.side), body, candidate.args.clone());
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
                found.by_gap.entry(id).or_default().push((place, Role::Fence));
            }
        }
        for (place, processes) in processes.iter_enumerated() {
            found.places[place].process = processes.join(", ");
        }
        found.find_loops();
        found
    }

    /// Adds the access of a statement, or another gap next to it.
    fn add_access(
        &mut self,
        gap: &Gap,
        id: GapId,
        (access, role): (AccessAt, Role),
        wanted: &Wanted<'_>,
        known: &mut FxHashMap<Key, PlaceId>,
        processes: &mut IdVec<PlaceId, Vec<String>>,
    ) {
        let Some(stronger) = (wanted.stronger)(access) else { return };
        let key = (access.span, Where::At(access.accessed), None, None);
        let process = name_of(&self.program, gap.body);
        let place = match known.get(&key) {
            Some(&place) => {
                self.places[place].gaps.push(id);
                if !processes[place].contains(&process) {
                    processes[place].push(process);
                }
                place
            }
            None => {
                let labels = gap.label.iter().chain(&gap.preceding_label).cloned().collect();
                let place = FencePlace {
                    process: process.clone(),
                    body: gap.body,
                    args: None,
                    span: access.span,
                    side: Side::After,
                    label: gap.label.clone().or_else(|| gap.preceding_label.clone()),
                    labels,
                    in_loop: false,
                    store_fence: wanted.store_fences && stronger.weak.is_some(),
                    access: Some((access.accessed, stronger)),
                    gaps: vec![id],
                };
                if !(wanted.allows)(&place) {
                    return;
                }
                processes.push(vec![process]);
                let place = self.places.push(place);
                known.insert(key, place);
                place
            }
        };
        self.by_gap.entry(id).or_default().push((place, role));
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

    /// The program with fences, in the form in which it would be written. A stronger access is written as the fences
    /// that it is equivalent to.
    pub fn fenced(&self, fencing: &Fencing) -> Program {
        self.filled(&|there, _| Some(Stmt::new(statement(strongest(there, fencing)?), Span::NONE)))
    }

    /// The program with a labelled step at every place: a fence or an empty step.
    pub fn marked(&self, fencing: &Fencing) -> Program {
        self.filled(&|there, label| {
            let kind = strongest(there, fencing).map_or(StmtKind::Skip, statement);
            Some(Stmt { labels: vec![Name::generated(label)], ..Stmt::new(kind, Span::NONE) })
        })
    }

    /// For each gap with places, the fence there. Fencings with the same fences make the same program.
    pub fn effect(&self, fencing: &Fencing) -> Vec<(GapId, Option<FenceKind>)> {
        let mut effect: Vec<_> =
            self.by_gap.iter().map(|(&gap, there)| (gap, strongest(there, fencing))).collect();
        effect.sort_unstable();
        effect
    }

    /// The marks of a marked program in its running form.
    pub fn marks(&self, system: &System) -> Marks {
        let mut places: FxHashMap<String, Vec<(PlaceId, Role)>> = FxHashMap::default();
        for (&gap, there) in &self.by_gap {
            for part in self.parts(there) {
                places.insert(mark(gap, part), part.to_vec());
            }
        }
        let mut by_location = FxHashMap::default();
        for (code, body) in system.codes.iter_enumerated() {
            for (label, location) in &body.labels {
                if let Some(there) = places.get(label) {
                    by_location.insert((code, *location), there.clone());
                }
            }
        }
        Marks { by_location }
    }

    /// The places of a gap that share one statement: all of them, or those of one instance each.
    fn parts<'a>(&self, there: &'a [(PlaceId, Role)]) -> Vec<&'a [(PlaceId, Role)]> {
        if there.iter().all(|&(place, _)| self.places[place].args.is_none()) {
            vec![there]
        } else {
            there.chunks(1).collect()
        }
    }

    fn filled(&self, statement: Filling<'_>) -> Program {
        fill(&self.program, &mut |gap, _| {
            let there = self.by_gap.get(&gap)?;
            let mut all: Vec<(PlaceId, Stmt)> = self
                .parts(there)
                .into_iter()
                .filter_map(|part| Some((part[0].0, statement(part, mark(gap, part))?)))
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
        for (&(code, location), there) in &marks.by_location {
            for &(place, _) in there {
                self.places[place].in_loop |= repeated.contains(code, location);
            }
        }
    }
}

/// The locations of the marks in a marked program.
#[derive(Clone, Debug)]
pub struct Marks {
    by_location: FxHashMap<(CodeId, Location), Vec<(PlaceId, Role)>>,
}

impl Marks {
    /// The places whose step starts at a location, and what they do there.
    pub fn at(&self, code: CodeId, location: Location) -> &[(PlaceId, Role)] {
        self.by_location.get(&(code, location)).map_or(&[], Vec::as_slice)
    }
}

/// The statement for the places of a gap, and its mark.
type Filling<'a> = &'a dyn Fn(&[(PlaceId, Role)], String) -> Option<Stmt>;

/// Beside a statement, or at its access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Where {
    Beside(Side),
    At(Accessed),
}

type Key = (Span, Where, Option<BodyId>, Option<Vec<Value>>);

fn mark(gap: GapId, part: &[(PlaceId, Role)]) -> String {
    format!("%{}.{}", gap.0, part[0].0.0)
}

/// The strongest fence that the places of a gap have there.
fn strongest(there: &[(PlaceId, Role)], fencing: &Fencing) -> Option<FenceKind> {
    there.iter().filter_map(|&(place, role)| role.effect(fencing[place]?)).max()
}

fn statement(kind: FenceKind) -> StmtKind {
    match kind {
        FenceKind::StoreStore => StmtKind::StoreFence,
        FenceKind::Full => StmtKind::Fence,
    }
}

/// The accesses next to a gap, and what they do in it if they are made stronger.
fn accesses(gap: &Gap, wanted: &Wanted<'_>) -> Vec<(AccessAt, Role)> {
    if wanted.per == Per::Instance {
        return Vec::new();
    }
    let store = |span| AccessAt { span, accessed: Accessed::Store };
    let before = gap.store_after.filter(|_| wanted.store_fences).map(|span| (store(span), Role::BeforeStore));
    let after = gap.store_before.map(|span| (store(span), Role::AfterStore));
    let fence = |span| (AccessAt { span, accessed: Accessed::StoreFence }, Role::Fence);
    before.into_iter().chain(after).chain(gap.store_fence_after.map(fence)).collect()
}

/// The statements with more than one store in a row. It is open which of them a change of the text is about.
fn with_several_stores(gaps: &[Gap]) -> FxHashSet<Span> {
    let mut several = FxHashSet::default();
    let mut current: FxHashSet<Span> = FxHashSet::default();
    for gap in gaps {
        if !gap.inner {
            current.clear();
        }
        if let Some(span) = gap.store_after
            && !current.insert(span)
        {
            several.insert(span);
        }
    }
    several
}

fn name_of(program: &Program, body: BodyId) -> String {
    match body {
        BodyId::Template(template) => program.templates[template].name.to_string(),
        BodyId::Procedure(procedure) => program.procedures[procedure].name.to_string(),
    }
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
    let place = FencePlace {
        process: name_of(program, gap.body),
        body: gap.body,
        args: None,
        span,
        side,
        label: gap.label.clone().or_else(|| gap.preceding_label.clone()),
        labels: gap.label.iter().chain(&gap.preceding_label).cloned().collect(),
        in_loop: false,
        store_fence,
        access: None,
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
