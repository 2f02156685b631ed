//! Stores that no attack can start with, by control flow alone.
//!
//! A store is worth holding back only if there is a path from it, without a fence, locked instruction or
//! atomic section, on which its thread loads a cell (or starts a thread, or under PSO stores to another
//! cell). Other threads must be able to enter through that step, one after the other, until one of those that
//! have entered may access the cell of the store.
//!
//! All sets are over-approximations:
//! - An array access with unknown index counts as the whole array.
//! - A pointer counts as the cells that [`Pointers`](palisade_automata::Pointers) finds.
//! - A call counts as everything a thread may do.
//! - For a thread that enters, everything it may ever do counts.

use crate::expand::Question;
use palisade_automata::{CellSets, Cells, Local};
use palisade_base::{Id, IdVec, limits};
use palisade_engine::{Limits, Reason};
use palisade_memory::{Action, Interlocked, Machine, Model};
use palisade_program::running::{CellId, Code, CodeId, EdgeId, Instr, Location, RoleId, System, TemplateId};
use rustc_hash::FxHashMap;

/// The effects that some code may have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Footprint {
    loads: Cells,
    stores: Cells,
    /// Roles that may be started.
    starts: u128,
}

impl Footprint {
    fn add(&mut self, other: Footprint) {
        self.loads |= other.loads;
        self.stores |= other.stores;
        self.starts |= other.starts;
    }

    fn conflicts(self, other: Footprint) -> bool {
        self.stores & (other.loads | other.stores) != 0 || self.loads & other.stores != 0
    }
}

/// Which stores may start an attack, by role, code and edge, with the cells for which they may.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    cells: FxHashMap<(RoleId, CodeId, EdgeId), Cells>,
    /// How many attacks (thread, store, load) there are.
    pub attacks: u64,
    /// How many of them are not ruled out.
    pub left: u64,
    sets: CellSets,
}

impl Candidates {
    /// Examines all stores of a program.
    pub fn new(question: Question, machine: Machine<'_>, limits: &Limits) -> Result<Candidates, Reason> {
        let Machine { system, model, interlocked } = machine;
        let analysis = Analysis { system, model, interlocked, sets: CellSets::of_all(system) };
        let roles: Vec<Footprint> = system.roles.ids().map(|role| analysis.role(role)).collect();
        let sets = analysis.sets.clone();
        let mut candidates = Candidates { cells: FxHashMap::default(), attacks: 0, left: 0, sets };
        let mut seen = Locations::new(system);
        for (role, _) in system.roles.iter_enumerated() {
            let instances = system.instances.iter().filter(|instance| instance.role == role).count();
            let startable = roles.iter().any(|footprint| footprint.starts & bit(role) != 0);
            if instances == 0 && !startable {
                continue;
            }
            let alone = instances == 1 && !startable;
            let (counted, loads) = (instances.max(1) as u64, analysis.loads(role));
            // Many instructions access the same cells, so results are kept.
            let mut known: FxHashMap<Footprint, Cells> = FxHashMap::default();
            for code in analysis.codes(role) {
                for (edge, stored) in analysis.stores(code) {
                    limits.check(0).map_err(Reason::Exhausted)?;
                    candidates.attacks += counted * loads;
                    let mut hit: Cells = 0;
                    let target = system.codes[code].edges()[edge].target;
                    analysis.overtakers(role, code, target, &mut seen, |overtaker| {
                        let reached = known.entry(overtaker).or_insert_with(|| match question {
                            Question::Cycle => reached(&roles, overtaker, role, alone),
                            Question::Triangle => races(&roles, overtaker, role, alone),
                        });
                        candidates.left += counted * u64::from(*reached & stored != 0);
                        hit |= *reached & stored;
                    });
                    if hit != 0 {
                        candidates.cells.insert((role, code, edge), hit);
                    }
                }
            }
        }
        Ok(candidates)
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Whether a thread that takes this store to this cell may start an attack with it.
    pub fn may_attack(&self, local: &Local, action: Action, cell: CellId) -> bool {
        let Action::Execute { edge, .. } = action else { return false };
        let key = (local.thread.role, local.thread.top().code, edge);
        self.cells.get(&key).is_some_and(|cells| cells & self.sets.only(cell) != 0)
    }
}

/// The cells that entering threads may access, starting from threads that conflict with `start`.
fn reached(roles: &[Footprint], start: Footprint, attacker: RoleId, alone: bool) -> Cells {
    let mut all = start;
    let mut inside = vec![false; roles.len()];
    loop {
        let enters = |index: usize| {
            let role = RoleId::from_index(index);
            let other = role != attacker || !alone;
            let started = all.starts & bit(role) != 0;
            !inside[index] && (started || other && roles[index].conflicts(all))
        };
        let Some(index) = (0..roles.len()).find(|&index| enters(index)) else { break };
        inside[index] = true;
        all.add(roles[index]);
    }
    let entered = roles.iter().zip(inside).filter(|(_, inside)| *inside);
    entered.fold(0, |cells, (role, _)| cells | role.loads | role.stores)
}

/// All cells if another thread may store to a loaded cell, or a thread is started. Otherwise no cells.
fn races(roles: &[Footprint], overtaker: Footprint, attacker: RoleId, alone: bool) -> Cells {
    let others = roles.iter().enumerate().filter(|(index, _)| *index != attacker.index() || !alone);
    let stored = others.fold(0, |cells, (_, role)| cells | role.stores);
    if stored & overtaker.loads != 0 || overtaker.starts != 0 { Cells::MAX } else { 0 }
}

/// The role as a member of a set. With very many roles, several share a bit.
fn bit(role: RoleId) -> u128 {
    1 << (role.0 % 128)
}

struct Analysis<'a> {
    system: &'a System,
    model: Model,
    interlocked: Interlocked,
    sets: CellSets,
}

impl Analysis<'_> {
    fn code(&self, code: CodeId) -> &Code {
        &self.system.codes[code]
    }

    /// The code of a role and of the procedures it may call.
    fn codes(&self, role: RoleId) -> Vec<CodeId> {
        let mut found = vec![self.system.roles[role].code];
        let mut next = 0;
        while let Some(&code) = found.get(next) {
            next += 1;
            for edge in self.code(code).edges().iter() {
                if let Instr::Call { code, .. } = edge.instr
                    && !found.contains(&code)
                {
                    found.push(code);
                }
            }
        }
        found
    }

    /// Everything a thread of a role may ever do.
    fn role(&self, role: RoleId) -> Footprint {
        let mut all = Footprint::default();
        for code in self.codes(role) {
            self.code(code).edges().iter().for_each(|edge| all.add(self.instr(code, &edge.instr)));
        }
        all
    }

    fn instr(&self, code: CodeId, instr: &Instr) -> Footprint {
        let cells = |address| self.sets.of(self.system, code, address);
        let nothing = Footprint::default();
        match instr {
            Instr::Load(_, address) => Footprint { loads: cells(address), ..nothing },
            Instr::Store(address, _) => Footprint { stores: cells(address), ..nothing },
            Instr::Locked { address, .. } => {
                Footprint { loads: cells(address), stores: cells(address), ..nothing }
            }
            Instr::Spawn(template, _) => Footprint { starts: self.starts(*template), ..nothing },
            _ => nothing,
        }
    }

    fn starts(&self, template: TemplateId) -> u128 {
        self.system.templates[template].roles.iter().fold(0, |all, &role| all | bit(role))
    }

    /// The stores of a code outside atomic sections, with the cells they may store to.
    fn stores(&self, code: CodeId) -> Vec<(EdgeId, Cells)> {
        let edges = self.code(code).edges().iter_enumerated();
        let stores = edges.filter_map(|(id, edge)| match &edge.instr {
            Instr::Store(address, _) => Some((id, self.sets.of(self.system, code, address))),
            _ => None,
        });
        stores.collect()
    }

    /// How many loads a role's code has.
    fn loads(&self, role: RoleId) -> u64 {
        let codes = self.codes(role);
        let edges = codes.iter().flat_map(|&code| self.code(code).edges().iter());
        edges.filter(|edge| matches!(edge.instr, Instr::Load(..))).count() as u64
    }

    /// What may overtake a store when control is at a location after it, instruction by instruction.
    fn overtakers(
        &self,
        role: RoleId,
        code: CodeId,
        location: Location,
        seen: &mut Locations,
        mut found: impl FnMut(Footprint),
    ) {
        seen.forget();
        let mut open = vec![(code, location)];
        while let Some((code, location)) = open.pop() {
            limits::checkpoint();
            if !seen.insert(code, location) {
                continue;
            }
            // The return location of a procedure is not known: it may be anywhere in the code that the role
            // may run.
            let returns = location == self.code(code).exit && code != self.system.roles[role].code;
            if returns {
                for other in self.codes(role) {
                    let calls = self.code(other).edges().iter().filter(
                        |edge| matches!(edge.instr, Instr::Call { code: callee, .. } if callee == code),
                    );
                    open.extend(calls.map(|edge| (other, edge.target)));
                }
            }
            for id in self.code(code).edges_from(location).map(EdgeId) {
                let edge = &self.code(code).edges()[id];
                match &edge.instr {
                    Instr::Fence | Instr::AtomicBegin => continue,
                    Instr::Locked { .. }
                        if (self.model, self.interlocked) != (Model::Pso, Interlocked::OwnAddress) =>
                    {
                        continue;
                    }
                    Instr::Store(..) if self.model != Model::Pso => {}
                    Instr::Load(..) | Instr::Store(..) | Instr::Locked { .. } | Instr::Spawn(..) => {
                        found(self.instr(code, &edge.instr));
                    }
                    Instr::Call { code, .. } => open.push((*code, self.code(*code).entry)),
                    _ => {}
                }
                // A call returns to its target, if it returns.
                if !matches!(edge.instr, Instr::Call { .. }) {
                    open.push((code, edge.target));
                }
            }
        }
    }
}

/// A set of locations that can be cleared quickly.
struct Locations {
    /// By code and location: the round in which it was last inserted.
    rounds: IdVec<CodeId, Vec<u32>>,
    round: u32,
}

impl Locations {
    fn new(system: &System) -> Locations {
        let rounds = system.codes.iter().map(|code| vec![0; code.location_count()]);
        Locations { rounds: rounds.collect(), round: 0 }
    }

    fn forget(&mut self) {
        self.round += 1;
    }

    /// Inserts a location. Returns whether it is new.
    fn insert(&mut self, code: CodeId, location: Location) -> bool {
        let before = std::mem::replace(&mut self.rounds[code][location.index()], self.round);
        before != self.round
    }
}
