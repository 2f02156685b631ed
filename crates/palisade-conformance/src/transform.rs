//! Changes to a program whose effect on the verdict is known: the metamorphic laws.

use crate::random::Random;
use crate::walk;
use palisade_program::written::{Name, Program, Stmt, StmtKind};

/// Adds a full fence at a random place. This never adds behaviour: removing the fence steps from a run of the
/// result gives a run of the program.
pub fn with_fence(program: &Program, random: &mut Random) -> Program {
    let mut result = program.clone();
    let mut places = 0;
    walk::blocks(&mut result, &mut |block| places += block.len() + 1);
    let Some(last) = places.checked_sub(1) else { return result };
    let mut at = random.between(0, last);
    let mut done = false;
    walk::blocks(&mut result, &mut |block| {
        if !done && at <= block.len() {
            block.insert(at, Stmt::new(StmtKind::Fence, palisade_base::Span::NONE));
            done = true;
        } else if !done {
            at -= block.len() + 1;
        }
    });
    result
}

/// Renames everything. This changes nothing.
pub fn renamed(program: &Program) -> Program {
    let mut result = program.clone();
    walk::names(&mut result, &mut |name| {
        // `end` is the label of the end of every body.
        if name.as_str() != "end" {
            *name = Name::new(format!("{name}_renamed"), name.span());
        }
    });
    result
}

/// Puts the processes in another order. This changes nothing but the processes' indices.
pub fn reordered(program: &Program, random: &mut Random) -> Program {
    let mut result = program.clone();
    random.shuffle(&mut result.templates);
    result
}
