//! Registers that are declared dead are never read.
//!
//! The automata, and the checks that take steps themselves, treat a register as 0 where [`Liveness`] declares
//! it dead. The engines do the same with the same analysis. So its result is not trusted here. It is checked,
//! location by location, with a separate interpretation of the instructions.
//!
//! *Guarantee.* If all facts pass, the following holds for every register that is dead at a location. On no
//! path from there is it read before it is written, passed to a procedure or back to a caller, or seen by a
//! property. The proof is by induction on the length of the path: the next instruction does not use the
//! register, and either writes it or leads to a location where it is dead as well.

use crate::Refusal;
use palisade_base::Id;
use palisade_program::running::{
    Address, Code, CodeId, Condition, Edge, EdgeId, Expr, Instr, Liveness, Location, RegId, System,
};

/// The liveness analysis, after checking it.
pub(crate) fn checked(system: &System) -> Result<Liveness, Refusal> {
    let liveness = Liveness::new(system);
    check(system, |code, location| liveness.dead(code, location))?;
    for (code, body) in system.codes.iter_enumerated() {
        for register in body.registers.ids() {
            if is_seen(system, code, register) && !liveness.is_observed(code, register) {
                return Err(wrong(body, register));
            }
        }
    }
    Ok(liveness)
}

/// Checks the registers that are declared dead, by code and location.
fn check<'d>(system: &System, dead: impl Fn(CodeId, Location) -> &'d [RegId]) -> Result<(), Refusal> {
    for (code, body) in system.codes.iter_enumerated() {
        let seen: Vec<bool> = body.registers.ids().map(|register| is_seen(system, code, register)).collect();
        let mut dead_at = vec![vec![false; body.registers.len()]; body.location_count()];
        for (at, dead_at) in dead_at.iter_mut().enumerate() {
            dead(code, Location::from_index(at)).iter().for_each(|register| dead_at[register.index()] = true);
        }
        for (at, dead_here) in dead_at.iter().enumerate() {
            for register in body.registers.ids().filter(|register| dead_here[register.index()]) {
                let edges = body.edges_from(Location::from_index(at)).map(|edge| &body.edges()[EdgeId(edge)]);
                let stays_dead = |edge: &Edge| {
                    !uses(system, &edge.instr, register)
                        && (writes(&edge.instr, register) || dead_at[edge.target.index()][register.index()])
                };
                if seen[register.index()] || !edges.into_iter().all(stays_dead) {
                    return Err(wrong(body, register));
                }
            }
        }
    }
    Ok(())
}

fn wrong(code: &Code, register: RegId) -> Refusal {
    let name = &code.registers[register].name;
    Refusal::Liveness(format!("{name} of {}", code.name))
}

/// Whether a property looks at the register.
fn is_seen(system: &System, code: CodeId, register: RegId) -> bool {
    fn looks(system: &System, condition: &Condition, code: CodeId, register: RegId) -> bool {
        match condition {
            Condition::Register(thread, seen) => {
                system.roles[system.instances[*thread].role].code == code && *seen == register
            }
            Condition::Const(_) | Condition::Cell(_) | Condition::At(..) | Condition::Count(_) => false,
            Condition::Unary(_, a) => looks(system, a, code, register),
            Condition::Binary(_, a, b) => {
                looks(system, a, code, register) || looks(system, b, code, register)
            }
        }
    }
    system.properties.iter().any(|property| looks(system, &property.bad, code, register))
}

/// Whether an instruction depends on the value of a register. Calls and returns pass on the private
/// variables.
fn uses(system: &System, instr: &Instr, register: RegId) -> bool {
    let reads = |expr: &Expr| occurs(expr, register);
    let points = |address: &Address| match address {
        Address::Cell(_) => false,
        Address::Element { base: _, len: _, index } => occurs(index, register),
        Address::Pointer(pointer) => occurs(pointer, register),
    };
    let is_private = register.index() < system.privates;
    match instr {
        Instr::Nop
        | Instr::Havoc(..)
        | Instr::Fence
        | Instr::StoreFence
        | Instr::AtomicBegin
        | Instr::AtomicEnd => false,
        Instr::Assign(_, value) | Instr::Assume(value) | Instr::Assert(value, _) => reads(value),
        Instr::Load(_, address) => points(address),
        Instr::Store(address, value) => points(address) || reads(value),
        Instr::Locked { rmw: _, result: _, address, operands } => {
            points(address) || operands.iter().any(reads)
        }
        Instr::Call { code: _, args, result: _ } => is_private || args.iter().any(reads),
        Instr::Return(value) => is_private || value.as_ref().is_some_and(reads),
        Instr::Spawn(_, args) => args.iter().any(reads),
    }
}

/// Whether an instruction assigns a value to a register, whatever it held before. The value that a call
/// leaves there is not read before the call returns.
fn writes(instr: &Instr, register: RegId) -> bool {
    match instr {
        Instr::Assign(written, _) | Instr::Havoc(written, ..) | Instr::Load(written, _) => {
            *written == register
        }
        Instr::Locked { result, .. } => *result == register,
        Instr::Call { result, .. } => *result == Some(register),
        Instr::Nop
        | Instr::Assume(_)
        | Instr::Assert(..)
        | Instr::Store(..)
        | Instr::Fence
        | Instr::StoreFence
        | Instr::AtomicBegin
        | Instr::AtomicEnd
        | Instr::Return(_)
        | Instr::Spawn(..) => false,
    }
}

fn occurs(expr: &Expr, register: RegId) -> bool {
    match expr {
        Expr::Const(_) => false,
        Expr::Reg(read) => *read == register,
        Expr::Unary(_, a) => occurs(a, register),
        Expr::Binary(_, a, b) => occurs(a, register) || occurs(b, register),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;
    use palisade_conformance::generate::{Recursion, generate_recursive, generate_spawning};
    use palisade_conformance::{Profile, generate, seeds};
    use palisade_program::{Instantiation, lower};
    use palisade_syntax::{Language, parse};
    use std::collections::BTreeMap;

    fn system(text: &str) -> System {
        let program = parse(Language::Pal, &Source::new("p", text)).expect("a program").program;
        lower(&program, Instantiation { any: 1, every: None })
    }

    type Facts = BTreeMap<(u32, u32), Vec<RegId>>;

    fn facts(system: &System) -> Facts {
        let liveness = Liveness::new(system);
        let codes = system.codes.iter_enumerated();
        let places = codes.flat_map(|(id, code)| (0..code.location_count() as u32).map(move |at| (id.0, at)));
        places.map(|(code, at)| ((code, at), liveness.dead(CodeId(code), Location(at)).to_vec())).collect()
    }

    fn judge(system: &System, facts: &Facts) -> Result<(), Refusal> {
        check(system, |code, location| &facts[&(code.0, location.0)])
    }

    /// The analysis declares every dead register dead, so adding any other register must be rejected.
    fn no_other_register_is_dead(system: &System) -> usize {
        let facts = facts(system);
        assert_eq!(judge(system, &facts), Ok(()));
        let mut refused = 0;
        for (&(code, at), dead) in &facts {
            for register in system.codes[CodeId(code)].registers.ids().filter(|r| !dead.contains(r)) {
                let mut more = facts.clone();
                more.get_mut(&(code, at)).expect("every location has facts").push(register);
                assert!(judge(system, &more).is_err(), "{register:?} of code {code} is not dead at {at}");
                refused += 1;
            }
        }
        refused
    }

    #[test]
    fn every_way_to_read_a_register() {
        let texts = [
            "shared x: 0..3; process P { let r = x; x = r; }",
            "shared x[2]: 0..1; process P { let r = x[0]; x[r] = 1; }",
            "shared x[2]: 0..1; process P { let r = x[0]; let s = x[r]; assert(s == 0 || s == 1); }",
            "shared x: 0..3; process P { let r = x; assume(r > 0); }",
            "shared x: 0..3; process P { let r = x; assert(-r < 4); }",
            "shared x: 0..3; process P { let r = x; let s = cas(x, r, 1); assert(s || !s); }",
            "shared x: 0..3; process P { let r = x; let s = xchg(x, r); assert(s >= 0); }",
            "shared x[2]: 0..1; process P { let r = x[0]; let s = xchg(x[r], 1); assert(s >= 0); }",
            "shared x: 0..1; process P { let r = x; spawn Q(r); } process Q(i: 0..1) on spawn { x = i; }",
            "shared x: 0..1; proc f(a: 0..1) -> 0..1 { return 1 - a; } process P { let r = x; let s = f(r); assert(s < 2); }",
            "private p: 0..1; shared x: 0..1; proc f() { x = p; } process P { p = x; f(); }",
            "private p: 0..1; shared x: 0..1; proc f() { p = x; } process P { f(); x = p; }",
            "shared x: 0..1; process P { let r = x; } final P.r == 0;",
        ];
        for text in texts {
            assert!(no_other_register_is_dead(&system(text)) > 0, "{text}");
        }
    }

    #[test]
    fn random_programs() {
        let seeds = seeds(20);
        let mut refused = 0;
        for seed in &seeds {
            let programs = Profile::ALL.map(|profile| generate(profile, 40_000 + seed));
            let others =
                [generate_recursive(Recursion::Free, 40_000 + seed), generate_spawning(40_000 + seed)];
            for program in programs.into_iter().chain(others) {
                let system = lower(&program, Instantiation { any: 1, every: None });
                refused += no_other_register_is_dead(&system);
                assert!(checked(&system).is_ok());
            }
        }
        assert!(refused > 0 || !seeds.suffice());
    }
}
