//! The code to export: routines.
//!
//! A routine is the code of a process role, or of a procedure for one way of calling it. A procedure that is
//! called both inside and outside atomic blocks gives two routines. So for every location of a routine it is
//! known whether an atomic section is open there. Only the steps that really open and close a section remain.
//!
//! *Fused loads.* A load into a temporary, followed by local steps that consume it (a branch, an assertion,
//! an assignment), becomes one step: `if (x == 0)` instead of `t = x; if (t == 0)`. This is done where no
//! property observes the location before the load. The argument: a state between the two steps looks to all
//! other processes like the state before the load, which changes only the temporary. The states after the
//! second step are also reached if it comes right after the load, since it touches nothing shared. So the
//! same bad states can be reached.

use crate::watch::Watch;
use palisade_base::{Id, IdVec, Span, limits};
use palisade_program::running::{
    Address, Code, CodeId, Expr, Instr, Liveness, Location, RegId, RoleId, System,
};

/// One step of a routine.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    /// A load that happens in the same step, before the instruction. In the instruction, the register denotes
    /// the content of the cell.
    pub load: Option<(RegId, Address)>,
    /// The instruction.
    pub instr: Instr,
    /// The next location.
    pub target: Location,
    /// The source of the step.
    pub span: Span,
}

/// What a routine is the code of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoutineKind {
    Process(RoleId),
    /// A procedure, as called inside or outside atomic sections.
    Procedure(Section),
}

/// Whether a location is inside an atomic section.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Section {
    Outside,
    Inside,
}

/// A routine.
#[derive(Clone, Debug)]
pub(crate) struct Routine<'a> {
    pub kind: RoutineKind,
    pub id: CodeId,
    pub code: &'a Code,
    /// The steps from each location.
    pub moves: IdVec<Location, Vec<Move>>,
    /// Where atomic sections are open.
    pub section: IdVec<Location, Section>,
}

/// All routines of a system: the processes first, each called routine after those that call it.
pub(crate) fn routines<'a>(system: &'a System, watch: &Watch, liveness: &Liveness) -> Vec<Routine<'a>> {
    let mut roles: Vec<RoleId> = Vec::new();
    let mut wanted: Vec<(RoutineKind, CodeId)> = Vec::new();
    let want_role = |role: RoleId, roles: &mut Vec<RoleId>, wanted: &mut Vec<(RoutineKind, CodeId)>| {
        if !roles.contains(&role) {
            roles.push(role);
            wanted.push((RoutineKind::Process(role), system.roles[role].code));
        }
    };
    system.instances.iter().for_each(|instance| want_role(instance.role, &mut roles, &mut wanted));
    let mut found: Vec<Routine<'a>> = Vec::new();
    while found.len() < wanted.len() {
        limits::checkpoint();
        let (kind, id) = wanted[found.len()];
        let routine = Routine::new(system, kind, id, watch, liveness);
        for (location, moves) in routine.moves.iter_enumerated() {
            for step in moves {
                limits::checkpoint();
                match &step.instr {
                    Instr::Call { code, .. } => {
                        let callee = (RoutineKind::Procedure(routine.section[location]), *code);
                        if !wanted.contains(&callee) {
                            wanted.push(callee);
                        }
                    }
                    Instr::Spawn(template, _) => {
                        for &role in &system.templates[*template].roles {
                            want_role(role, &mut roles, &mut wanted);
                        }
                    }
                    _ => {}
                }
            }
        }
        found.push(routine);
    }
    found.sort_by_key(|routine| matches!(routine.kind, RoutineKind::Procedure(_)));
    found
}

impl<'a> Routine<'a> {
    fn new(
        system: &'a System,
        kind: RoutineKind,
        id: CodeId,
        watch: &Watch,
        liveness: &Liveness,
    ) -> Routine<'a> {
        let code = &system.codes[id];
        let start = match kind {
            RoutineKind::Procedure(section) => section,
            RoutineKind::Process(_) => Section::Outside,
        };
        let (moves, section) = open_sections(code, start);
        let mut routine = Routine { kind, id, code, moves, section };
        routine.fuse(system, watch, liveness);
        routine
    }

    /// Whether a register is a parameter.
    pub fn is_parameter(&self, privates: usize, register: RegId) -> bool {
        (privates..privates + self.code.params).contains(&register.index())
    }

    /// The step with an index from a location.
    pub fn step(&self, location: Location, index: usize) -> &Move {
        &self.moves[location][index]
    }

    /// Fuses loads with the local steps after them.
    fn fuse(&mut self, system: &System, watch: &Watch, liveness: &Liveness) {
        let mut incoming = vec![0u32; self.moves.len()];
        incoming[self.code.entry.index()] += 1;
        for step in self.moves.iter().flatten() {
            incoming[step.target.index()] += 1;
        }
        for location in self.moves.ids() {
            let seen = |location| match self.kind {
                RoutineKind::Process(role) => {
                    self.section[location] == Section::Outside && watch.sees(system, role, location)
                }
                RoutineKind::Procedure(_) => false,
            };
            let [Move { instr: Instr::Load(register, address), target, .. }] = &self.moves[location][..]
            else {
                continue;
            };
            let (register, address, middle) = (*register, address.clone(), *target);
            let consumes_it = |step: &Move| match &step.instr {
                _ if step.load.is_some() => false,
                Instr::Assume(_) | Instr::Assert(..) => {
                    liveness.dead(self.id, step.target).contains(&register)
                }
                Instr::Assign(to, _) => {
                    *to == register || liveness.dead(self.id, step.target).contains(&register)
                }
                _ => false,
            };
            let next = &self.moves[middle];
            // The register would stand for the value in the address, too.
            let mut is_in_address = false;
            address.registers(&mut |read| is_in_address |= read == register);
            if is_in_address
                || !self.code.registers[register].is_temporary()
                || liveness.is_observed(self.id, register)
                || middle == location
                || incoming[middle.index()] != 1
                || next.is_empty()
                || seen(location)
                || seen(middle)
                || !next.iter().all(consumes_it)
            {
                continue;
            }
            let fused: Vec<Move> = next
                .iter()
                .map(|step| Move { load: Some((register, address.clone())), ..step.clone() })
                .collect();
            self.moves[location] = fused;
            self.moves[middle].clear();
        }
    }
}

/// The steps of a code, and where sections are open. Steps that open or close a section inside another one
/// become empty.
fn open_sections(code: &Code, start: Section) -> (IdVec<Location, Vec<Move>>, IdVec<Location, Section>) {
    let depth_at_start = u32::from(start == Section::Inside);
    let mut depth: Vec<Option<u32>> = vec![None; code.location_count()];
    depth[code.entry.index()] = Some(depth_at_start);
    let mut moves: IdVec<Location, Vec<Move>> = (0..code.location_count()).map(|_| Vec::new()).collect();
    let mut open = vec![code.entry];
    while let Some(location) = open.pop() {
        limits::checkpoint();
        let before = depth[location.index()].expect("only reached locations are in the queue");
        for id in code.edges_from(location) {
            let edge = &code.edges()[palisade_program::running::EdgeId(id)];
            let (instr, after) = match &edge.instr {
                Instr::AtomicBegin if before > 0 => (Instr::Nop, before + 1),
                Instr::AtomicBegin => (Instr::AtomicBegin, 1),
                Instr::AtomicEnd if before > 1 => (Instr::Nop, before - 1),
                Instr::AtomicEnd => (Instr::AtomicEnd, before - 1),
                instr => (instr.clone(), before),
            };
            moves[location].push(Move { load: None, instr, target: edge.target, span: edge.span });
            if depth[edge.target.index()].is_none() {
                depth[edge.target.index()] = Some(after);
                open.push(edge.target);
            }
        }
    }
    let section = |depth: &Option<u32>| match depth {
        Some(1..) => Section::Inside,
        _ => Section::Outside,
    };
    (moves, depth.iter().map(section).collect())
}

/// Calls `visit` for every expression of an instruction.
pub(crate) fn expressions(instr: &Instr, visit: &mut dyn FnMut(&Expr)) {
    let address = |address: &Address, visit: &mut dyn FnMut(&Expr)| match address {
        Address::Cell(_) => {}
        Address::Element { index: e, .. } | Address::Pointer(e) => visit(e),
    };
    match instr {
        Instr::Assign(_, e) | Instr::Assume(e) | Instr::Assert(e, _) | Instr::Return(Some(e)) => visit(e),
        Instr::Load(_, place) => address(place, visit),
        Instr::Store(place, e) => {
            address(place, visit);
            visit(e);
        }
        Instr::Locked { address: place, operands, .. } => {
            address(place, visit);
            operands.iter().for_each(visit);
        }
        Instr::Call { args, .. } | Instr::Spawn(_, args) => args.iter().for_each(visit),
        Instr::Nop
        | Instr::Havoc(..)
        | Instr::Fence
        | Instr::StoreFence
        | Instr::AtomicBegin
        | Instr::AtomicEnd
        | Instr::Return(None) => {}
    }
}
