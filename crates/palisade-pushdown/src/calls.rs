//! Who calls whom.

use palisade_base::Id;
use palisade_program::running::{Code, CodeId, Instr, System};

/// Whether some procedure that a process can come to may call itself, directly or through others.
pub fn is_recursive(system: &System) -> bool {
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

/// Whether some code starts threads.
pub fn spawns(system: &System) -> bool {
    let mut edges = system.codes.iter().flat_map(|code| code.edges().iter());
    edges.any(|edge| matches!(edge.instr, Instr::Spawn(..)))
}
