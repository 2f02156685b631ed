//! Threads that run the same text, up to constants and cells.

use palisade_program::running::{Address, CellId, Code, CodeId, Expr, Instr, System, ThreadId};

/// Lists of at least two threads with the same text, each with a role of its own. None if the program calls
/// procedures or starts threads.
pub(super) fn blocks(system: &System) -> Vec<Vec<ThreadId>> {
    let roles = |thread: ThreadId| system.instances[thread].role;
    let code = |thread: ThreadId| system.roles[roles(thread)].code;
    let ids: Vec<ThreadId> = system.instances.ids().collect();
    let other = |instr: &Instr| matches!(instr, Instr::Call { .. } | Instr::Return(_) | Instr::Spawn(..));
    let mut edges = ids.iter().flat_map(|&thread| system.codes[code(thread)].edges());
    if edges.any(|edge| other(&edge.instr)) {
        return Vec::new();
    }
    let alone = |thread: &ThreadId| ids.iter().filter(|&&id| code(id) == code(*thread)).count() == 1;
    let mut blocks: Vec<(Vec<ThreadId>, Code)> = Vec::new();
    for thread in ids.iter().copied().filter(alone) {
        let blank = blank(system, code(thread));
        match blocks.iter_mut().find(|(_, other)| is_same(other, &blank)) {
            Some((threads, _)) => threads.push(thread),
            None => blocks.push((vec![thread], blank)),
        }
    }
    blocks.into_iter().map(|(threads, _)| threads).filter(|threads| threads.len() > 1).collect()
}

/// Whether two codes without constants are the same.
fn is_same(a: &Code, b: &Code) -> bool {
    let shape = |code: &Code| (code.entry, code.exit, code.location_count());
    let mut registers = a.registers.iter().zip(b.registers.iter());
    shape(a) == shape(b)
        && a.registers.len() == b.registers.len()
        && registers.all(|(a, b)| a.ty == b.ty)
        && a.plain == b.plain
        && a.attempts == b.attempts
        && a.stays == b.stays
        && a.edges().len() == b.edges().len()
        && a.edges()
            .iter()
            .zip(b.edges().iter())
            .all(|(a, b)| (a.source, a.target) == (b.source, b.target) && a.instr == b.instr)
}

/// A code in which all constants and cells are 0.
fn blank(system: &System, code: CodeId) -> Code {
    let code = &system.codes[code];
    let edges = code.edges().iter().cloned().map(|mut edge| {
        blank_instr(&mut edge.instr);
        edge
    });
    let mut blank = Code::new(String::new(), code.entry, code.exit, code.location_count(), edges.collect());
    blank.registers = code.registers.clone();
    blank.plain.clone_from(&code.plain);
    blank.attempts.clone_from(&code.attempts);
    blank.stays.clone_from(&code.stays);
    blank
}

fn blank_instr(instr: &mut Instr) {
    match instr {
        Instr::Assign(_, e) | Instr::Assume(e) | Instr::Assert(e, _) => blank_expr(e),
        Instr::Load(_, address) => blank_address(address),
        Instr::Store(address, e) => {
            blank_address(address);
            blank_expr(e);
        }
        Instr::Locked { address, operands, .. } => {
            blank_address(address);
            operands.iter_mut().for_each(blank_expr);
        }
        Instr::Nop
        | Instr::Havoc(..)
        | Instr::Fence
        | Instr::StoreFence
        | Instr::AtomicBegin
        | Instr::AtomicEnd
        | Instr::Call { .. }
        | Instr::Return(_)
        | Instr::Spawn(..) => {}
    }
}

fn blank_address(address: &mut Address) {
    match address {
        Address::Cell(cell) => *cell = CellId(0),
        Address::Element { base, index, .. } => {
            *base = CellId(0);
            blank_expr(index);
        }
        Address::Pointer(e) => blank_expr(e),
    }
}

fn blank_expr(e: &mut Expr) {
    match e {
        Expr::Const(value) => *value = 0,
        Expr::Reg(_) => {}
        Expr::Unary(_, a) => blank_expr(a),
        Expr::Binary(_, a, b) => {
            blank_expr(a);
            blank_expr(b);
        }
    }
}
