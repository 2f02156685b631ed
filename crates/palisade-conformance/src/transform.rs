//! Changes to a program whose effect on the verdict is known: the metamorphic laws.

use crate::random::Random;
use crate::walk;
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Domain, END_LABEL, Name, Outside, PlaceKind, Placement, Program, Stmt, StmtKind, Type,
};

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
        if name.as_str() != END_LABEL {
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

/// Makes a program rely on machine words: its variables lie at chosen addresses, some ranges wrap around, and
/// some operators work on words. This may change the verdict, unless the program neither leaves its ranges nor
/// computes with addresses.
pub fn in_words(program: &Program, random: &mut Random) -> Program {
    let mut result = program.clone();
    let mut next = 8;
    // Addresses in another order than that of the declarations.
    let mut order: Vec<usize> = (0..result.shared.len()).collect();
    random.shuffle(&mut order);
    for index in order {
        let shared = &mut result.shared[index];
        let step = random.value(1, 9);
        shared.at = Some(Placement { address: next, step: if shared.len.is_some() { step } else { 1 } });
        next += step * Value::from(shared.len.unwrap_or(1)) + random.value(1, 20);
    }
    let wrap = |ty: &mut Type, random: &mut Random| {
        if matches!(ty.domain, Domain::Range { .. }) && random.percent(60) {
            ty.outside = Outside::Wrap;
        }
    };
    result.shared.iter_mut().for_each(|shared| wrap(&mut shared.ty, random));
    walk::blocks(&mut result, &mut |block| {
        for stmt in block {
            if let StmtKind::Let { ty, .. } = &mut stmt.kind {
                wrap(ty, random);
            }
        }
    });
    walk::operators(&mut result, &mut |op| {
        let word = match op {
            BinaryOp::Add => BinaryOp::WordAdd,
            BinaryOp::Sub => BinaryOp::WordSub,
            BinaryOp::Mul => BinaryOp::WordMul,
            BinaryOp::Lt => BinaryOp::WordLt,
            BinaryOp::Le => BinaryOp::WordLe,
            _ => return,
        };
        if random.percent(50) {
            *op = word;
        }
    });
    result
}

/// Makes values wrap around: in some variables, registers, parameters and results, whose ranges change, too. This may
/// change the verdict.
pub fn wrapping(program: &Program, random: &mut Random) -> Program {
    let mut result = program.clone();
    let range = |random: &mut Random| {
        let lo = random.value(-2, 1);
        Type::wrapping(lo, lo + random.value(1, 4))
    };
    for shared in &mut result.shared {
        // The initial values stay inside.
        if let Domain::Range { lo, hi } = shared.ty.domain
            && random.percent(70)
        {
            shared.ty = Type::wrapping(lo - random.value(0, 1), hi + random.value(0, 1));
        }
    }
    for procedure in &mut result.procedures {
        for ty in procedure.params.iter_mut().map(|param| &mut param.ty).chain(&mut procedure.result) {
            if random.percent(40) {
                *ty = range(random);
            }
        }
    }
    walk::blocks(&mut result, &mut |block| {
        for stmt in block {
            if let StmtKind::Let { ty, init: Some(_), .. } = &mut stmt.kind
                && random.percent(if ty.domain == Domain::Int { 20 } else { 60 })
            {
                *ty = range(random);
            }
        }
    });
    result
}

/// Makes some accesses plain. This adds data races, if there are any, to what is wrong with the program.
pub fn with_plain(program: &Program, random: &mut Random) -> Program {
    let mut result = program.clone();
    walk::places(&mut result, &mut |place| place.plain = random.percent(40));
    result
}

/// The program with all accesses to some variables marked as plain.
pub fn with_plain_variables(program: &Program, variables: &[&str]) -> Program {
    let mut result = program.clone();
    walk::places(&mut result, &mut |place| {
        if let PlaceKind::Named(name) = &place.kind {
            place.plain = variables.contains(&name.to_string().as_str());
        }
    });
    result
}
