//! Which features of the language a program uses.

use super::{Code, CodeId, Instr, System};
use palisade_base::Id;

/// Which features of the language a program uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Structure {
    /// Whether procedures are called.
    pub calls: bool,
    /// Whether a procedure that a process can reach may call itself, directly or indirectly.
    pub is_recursive: bool,
    /// Whether threads are started at run time.
    pub spawns: bool,
    /// Whether some access is plain, so that data races are possible.
    pub has_plain: bool,
}

impl Structure {
    /// Inspects all codes.
    pub fn new(system: &System) -> Structure {
        let uses = |which: fn(&Instr) -> bool| {
            system.codes.iter().any(|code| code.edges().iter().any(|edge| which(&edge.instr)))
        };
        Structure {
            calls: uses(|instr| matches!(instr, Instr::Call { .. })),
            is_recursive: is_recursive(system),
            spawns: uses(|instr| matches!(instr, Instr::Spawn(..))),
            has_plain: system.codes.iter().any(|code| !code.plain.is_empty()),
        }
    }
}

fn is_recursive(system: &System) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum Colour {
        New,
        OnPath,
        Done,
    }
    let mut colour = vec![Colour::New; system.codes.len()];
    for role in system.roles.iter() {
        if colour[role.code.index()] != Colour::New {
            continue;
        }
        let mut path = vec![(role.code, callees(&system.codes[role.code]))];
        colour[role.code.index()] = Colour::OnPath;
        while let Some((code, callees_left)) = path.last_mut() {
            let Some(callee) = callees_left.pop() else {
                colour[code.index()] = Colour::Done;
                path.pop();
                continue;
            };
            match colour[callee.index()] {
                Colour::New => {
                    colour[callee.index()] = Colour::OnPath;
                    path.push((callee, callees(&system.codes[callee])));
                }
                Colour::OnPath => return true,
                Colour::Done => {}
            }
        }
    }
    false
}

fn callees(code: &Code) -> Vec<CodeId> {
    let called = |instr: &Instr| match instr {
        Instr::Call { code, .. } => Some(*code),
        _ => None,
    };
    code.edges().iter().filter_map(|edge| called(&edge.instr)).collect()
}
