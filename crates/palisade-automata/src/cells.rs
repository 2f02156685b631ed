//! Sets of cells in one machine word, to see whether accesses of different threads can conflict.
//!
//! *Guarantee.* If two threads can access the same cell and one of them can write it, the sets of the two accesses
//! share a bit. Where only such conflicts matter ([`CellSets::conflicting`]), cells that no instruction writes, or
//! that only one thread can access, have no bit. With more than 64 cells, several share a bit, which only makes the
//! sets larger.

use crate::Pointers;
use palisade_base::{Id, IdVec};
use palisade_program::running::{Address, CellId, CodeId, Instr, RoleId, System};

/// A set of cells.
pub type Cells = u64;

/// The sets of cells of a program.
#[derive(Clone, Debug)]
pub struct CellSets {
    pointers: Pointers,
    bits: IdVec<CellId, Cells>,
}

impl CellSets {
    /// Sets in which every cell counts.
    pub fn of_all(system: &System) -> CellSets {
        let bits = system.cells.ids().map(|cell| 1 << (cell.0 % Cells::BITS));
        CellSets { bits: bits.collect(), pointers: Pointers::new(system) }
    }

    /// Sets in which only those cells count that can cause a conflict between threads.
    pub fn conflicting(system: &System) -> CellSets {
        let pointers = Pointers::new(system);
        let threads = threads(system);
        let mut users: IdVec<CellId, u32> = vec![0; system.cells.len()].into();
        let mut last: IdVec<CellId, Option<RoleId>> = vec![None; system.cells.len()].into();
        let mut written: IdVec<CellId, bool> = vec![false; system.cells.len()].into();
        for role in system.roles.ids() {
            for code in codes(system, system.roles[role].code) {
                for edge in system.codes[code].edges().iter() {
                    let (address, writes) = match &edge.instr {
                        Instr::Load(_, address) => (address, false),
                        Instr::Store(address, _) | Instr::Locked { address, .. } => (address, true),
                        _ => continue,
                    };
                    let cells = pointers.cells(system, code, address);
                    for cell in cells.unwrap_or_else(|| system.cells.ids().collect()) {
                        written[cell] |= writes;
                        if last[cell].replace(role) != Some(role) {
                            users[cell] += threads[role];
                        }
                    }
                }
            }
        }
        let mut shared = 0;
        let bits = system.cells.ids().map(|cell| {
            if !written[cell] || users[cell] < 2 {
                return 0;
            }
            shared += 1;
            1 << ((shared - 1) % Cells::BITS)
        });
        CellSets { bits: bits.collect(), pointers }
    }

    /// The set that holds one cell.
    pub fn only(&self, cell: CellId) -> Cells {
        self.bits[cell]
    }

    /// The cells that an address of a code may name.
    pub fn of(&self, system: &System, code: CodeId, address: &Address) -> Cells {
        match address {
            Address::Element { len, .. } if *len >= Cells::BITS => Cells::MAX,
            _ => match self.pointers.cells(system, code, address) {
                Some(cells) => cells.into_iter().fold(0, |all, cell| all | self.only(cell)),
                None => Cells::MAX,
            },
        }
    }
}

/// How many threads of each role there can be; 2 stands for any larger number.
fn threads(system: &System) -> IdVec<RoleId, u32> {
    let mut threads: IdVec<RoleId, u32> = vec![0; system.roles.len()].into();
    for instance in system.instances.iter() {
        threads[instance.role] = (threads[instance.role] + 1).min(2);
    }
    for edge in system.codes.iter().flat_map(|code| code.edges()) {
        if let Instr::Spawn(template, _) = edge.instr {
            system.templates[template].roles.iter().for_each(|&role| threads[role] = 2);
        }
    }
    threads
}

/// A code and those that it may call, directly or indirectly.
fn codes(system: &System, start: CodeId) -> Vec<CodeId> {
    let mut found = vec![start];
    let mut known = vec![false; system.codes.len()];
    known[start.index()] = true;
    let mut next = 0;
    while let Some(&code) = found.get(next) {
        next += 1;
        for edge in system.codes[code].edges().iter() {
            if let Instr::Call { code, .. } = edge.instr
                && !std::mem::replace(&mut known[code.index()], true)
            {
                found.push(code);
            }
        }
    }
    found
}
