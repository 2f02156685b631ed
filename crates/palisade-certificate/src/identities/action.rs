//! How renamings of identities act on the automata, and which identities a class of states remembers.
//!
//! The exchange of two neighbouring identities maps a thread state to the one of the renamed process at the same place
//! of its code, with renamed identities in its registers. Which registers hold identities follows from a data flow over
//! the code: what is loaded from a cell that holds identities, and what is in a register that the program declares for
//! them. The exchange must map states to states, and states of one class to states of one class. All renamings are
//! products of such exchanges.
//!
//! *What a class remembers.* Let s be a state of the class, and u an identity that is neither the process's own nor in
//! its registers. All identities that are not in its registers can be exchanged with u without changing s. Those that can be
//! exchanged with u without changing the class are the ones that the class does not remember. This must be the
//! same for all states of the class.

use super::cells::Cell;
use palisade_automata::{Automata, Local};
use palisade_base::Id;
use palisade_program::Value;
use palisade_program::running::{
    Address, CellId, Code, Edge, Expr, Instr, Location, RegId, Rmw, RoleId, System,
};
use palisade_program::written::Domain;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

const DATA: u8 = 1;
const IDENTITY: u8 = 2;

/// The image of each identity. That of 0, `none`, is 0.
pub(super) type Renaming = Vec<u8>;

/// What a renaming does to automata and classes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Image {
    pub identity: Renaming,
    pub kind: Vec<u32>,
    pub class: Vec<Vec<u32>>,
}

pub(super) struct Action {
    /// The exchange of each identity with the next, from that of 1 and 2.
    pub exchanges: Vec<Image>,
    /// For each automaton and class, the identities that it remembers, as bits, without the process's own.
    pub remembered: Vec<Vec<u32>>,
    images: RefCell<FxHashMap<Renaming, Rc<Image>>>,
}

impl Action {
    /// `owner` has the identity of each automaton, and 0 for those without one.
    pub fn new(
        system: &System,
        automata: &Automata,
        (cells, which): (&[Cell], u32),
        classes: &[Vec<u32>],
        owner: &[u8],
        number: u8,
    ) -> Result<Action, String> {
        let sorts: Vec<Vec<Vec<u8>>> = automata
            .automata
            .iter()
            .map(|automaton| sorts(system.role_code(automaton.role), cells, which))
            .collect();
        let states: Vec<FxHashMap<&Local, u32>> = automata
            .automata
            .iter()
            .map(|automaton| {
                automaton.states.iter_enumerated().map(|(state, local)| (local, state.0)).collect()
            })
            .collect();
        let mut exchanges = Vec::new();
        for first in 1..number {
            let mut identity: Renaming = (0..=number).collect();
            identity.swap(first as usize, first as usize + 1);
            let renamed = |owner_of: u8| identity[owner_of as usize];
            let mut kinds = Vec::new();
            let mut of_kinds = Vec::new();
            for (kind, automaton) in automata.automata.iter().enumerate() {
                let image = match owner[kind] {
                    0 => kind,
                    own => {
                        owner.iter().position(|&other| other == renamed(own)).ok_or("a process is missing")?
                    }
                };
                let role = automata.automata[image].role;
                let number_of_classes = classes[kind].iter().max().map_or(0, |&most| most as usize + 1);
                let mut of_kind = vec![None; number_of_classes];
                for (state, local) in automaton.states.iter_enumerated() {
                    let renamed = rename(system, local, &sorts[kind], &identity, role)?;
                    let target =
                        states[image].get(&renamed).ok_or("a renamed thread state does not exist")?;
                    let class = classes[image][*target as usize];
                    let known = &mut of_kind[classes[kind][state.index()] as usize];
                    if known.is_some_and(|known| known != class) {
                        return Err("a class has states that are renamed to different classes".into());
                    }
                    *known = Some(class);
                }
                kinds.push(image as u32);
                // Classes without states are never used.
                of_kinds.push(of_kind.into_iter().map(|class| class.unwrap_or(0)).collect());
            }
            exchanges.push(Image { identity, kind: kinds, class: of_kinds });
        }
        let unit = Image {
            identity: (0..=number).collect(),
            kind: (0..owner.len() as u32).collect(),
            class: classes
                .iter()
                .map(|classes| (0..classes.iter().max().map_or(0, |&most| most + 1)).collect())
                .collect(),
        };
        let images = RefCell::new([(unit.identity.clone(), Rc::new(unit))].into_iter().collect());
        let mut action = Action { exchanges, remembered: Vec::new(), images };
        for (kind, automaton) in automata.automata.iter().enumerate() {
            let mut remembered: Vec<Option<u32>> = vec![None; action.exchanges[0].class[kind].len()];
            for (state, local) in automaton.states.iter_enumerated() {
                let class = classes[kind][state.index()];
                let mentioned = mentioned(local, &sorts[kind])?;
                let here = action.remembers((kind, class), (owner[kind], number), mentioned)?;
                let known = &mut remembered[class as usize];
                if known.is_some_and(|known| known != here) {
                    return Err("states of one class remember different identities".into());
                }
                *known = Some(here);
            }
            action.remembered.push(remembered.into_iter().map(|known| known.unwrap_or(0)).collect());
        }
        Ok(action)
    }

    /// The effect of a renaming: that of the exchanges it consists of.
    pub fn image(&self, renaming: &Renaming) -> Rc<Image> {
        if let Some(known) = self.images.borrow().get(renaming) {
            return known.clone();
        }
        // Only the renaming that changes nothing is in order, and that one is known.
        let first = (1..renaming.len() - 1)
            .find(|&id| renaming[id] > renaming[id + 1])
            .expect("a renaming that is not in order has a place where it descends");
        let mut rest = renaming.clone();
        rest.swap(first, first + 1);
        let (rest, exchange) = (self.image(&rest), &self.exchanges[first - 1]);
        let class = |(kind, classes): (usize, &Vec<u32>)| {
            let between = exchange.kind[kind] as usize;
            classes.iter().map(|&class| rest.class[between][class as usize]).collect()
        };
        let image = Rc::new(Image {
            identity: renaming.clone(),
            kind: exchange.kind.iter().map(|&kind| rest.kind[kind as usize]).collect(),
            class: exchange.class.iter().enumerate().map(class).collect(),
        });
        self.images.borrow_mut().insert(renaming.clone(), image.clone());
        image
    }

    fn remembers(
        &self,
        (kind, class): (usize, u32),
        (own, number): (u8, u8),
        mentioned: u32,
    ) -> Result<u32, String> {
        let others = || (1..=number).filter(|&id| id != own);
        let free = others().find(|&id| mentioned >> id & 1 == 0);
        let free = free.ok_or("a thread state remembers too many identities")?;
        let stays = |id: u8| {
            let mut renaming: Renaming = (0..=number).collect();
            renaming.swap(id as usize, free as usize);
            self.image(&renaming).class[kind][class as usize] == class
        };
        let remembered = others().filter(|&id| !stays(id)).fold(0, |set, id| set | 1 << id);
        match remembered & !mentioned {
            0 => Ok(remembered),
            _ => Err("a class remembers an identity that is in no register".into()),
        }
    }
}

/// For each location and register, whether it can hold data or an identity. A register that was not assigned holds 0,
/// which is both.
fn sorts(code: &Code, cells: &[Cell], which: u32) -> Vec<Vec<u8>> {
    let declared = |register: RegId| {
        let register = &code.registers[register];
        let identity = matches!(register.ty.domain, Domain::Enum { which: of, .. } if of == which);
        if identity && !register.is_temporary() { IDENTITY } else { DATA }
    };
    let of_cell = |cell: CellId| if cells[cell.index()].holds_identity { IDENTITY } else { DATA };
    let loaded = |address: &Address| match address {
        Address::Cell(cell) => of_cell(*cell),
        Address::Element { base, .. } => of_cell(*base),
        Address::Pointer(_) => DATA | IDENTITY,
    };
    let mut at = vec![vec![0; code.registers.len()]; code.location_count()];
    let mut changed = true;
    while changed {
        changed = false;
        for Edge { source, target, instr, .. } in code.edges() {
            let mut after = at[source.index()].clone();
            match instr {
                Instr::Assign(register, value) => {
                    after[register.index()] = match value {
                        Expr::Reg(from) => after[from.index()],
                        Expr::Const(0) => 0,
                        _ => declared(*register),
                    };
                }
                Instr::Havoc(register, ..) => after[register.index()] = declared(*register),
                Instr::Load(register, address) => after[register.index()] = loaded(address),
                Instr::Locked { rmw: Rmw::Exchange, result, address, .. } => {
                    after[result.index()] = loaded(address);
                }
                Instr::Locked { result, .. } => after[result.index()] = DATA,
                Instr::Call { .. } | Instr::Spawn(..) | Instr::Return(_) => {
                    after.iter_mut().for_each(|sort| *sort = DATA | IDENTITY);
                }
                Instr::Nop
                | Instr::Assume(_)
                | Instr::Assert(..)
                | Instr::Store(..)
                | Instr::Fence
                | Instr::StoreFence
                | Instr::AtomicBegin
                | Instr::AtomicEnd => {}
            }
            for (known, new) in at[target.index()].iter_mut().zip(after) {
                changed |= *known | new != *known;
                *known |= new;
            }
        }
    }
    at
}

/// The registers of a thread state, each with whether it holds an identity.
fn registers<'l>(
    local: &'l Local,
    sorts: &'l [Vec<u8>],
) -> Result<impl Iterator<Item = (Value, bool)> + 'l, String> {
    let [frame] = &local.thread.frames[..] else { return Err("there are procedures".into()) };
    let here: &[u8] = &sorts[Location::index(frame.location)];
    let sorted = |(&value, &sort): (&Value, &u8)| value == 0 || sort == DATA || sort == IDENTITY;
    if !frame.registers.iter().zip(here).all(sorted) {
        return Err("a register holds identities and data".into());
    }
    Ok(frame.registers.iter().zip(here).map(|(&value, &sort)| (value, sort == IDENTITY && value != 0)))
}

/// The identities in registers, as bits.
fn mentioned(local: &Local, sorts: &[Vec<u8>]) -> Result<u32, String> {
    Ok(registers(local, sorts)?.filter(|(_, identity)| *identity).fold(0, |set, (value, _)| set | 1 << value))
}

/// A thread state with renamed identities, as one of the process with this role.
fn rename(
    system: &System,
    local: &Local,
    sorts: &[Vec<u8>],
    identity: &Renaming,
    role: RoleId,
) -> Result<Local, String> {
    let renamed = |(value, is_identity): (Value, bool)| match is_identity {
        false => Some(value),
        true => identity.get(usize::try_from(value).ok()?).map(|&id| id.into()),
    };
    let registers: Option<Vec<Value>> = registers(local, sorts)?.map(renamed).collect();
    let mut local = local.clone();
    local.thread.role = role;
    local.thread.frames[0].code = system.roles[role].code;
    local.thread.frames[0].registers = registers.ok_or("a register holds no identity")?;
    Ok(local)
}
