//! Checks that a guessed symmetry really is one.
//!
//! *Guarantee.* If the check succeeds, the claims in the header of [`super`] hold. For each transposition g of
//! neighbours in a block it checks, for every thread t and every edge of its code, that the edge of g(t) does to g(s)
//! what the edge of t does to s:
//! 1. The texts agree in everything but constants and cells.
//! 2. Constants and cells of t are mapped to those of g(t). For a thread that stays, they stay.
//! 3. Operators commute with g, for all values that their operands may have. Comparing values of one kind for
//!    equality always does, because g is one-to-one.
//! 4. Addresses lead from a value to a cell as they lead from its image to the cell's image.
//! 5. Conditions have the same truth value.
//! 6. What is assigned, loaded or stored has the kind of its target. Where it is converted to the target's type, this
//!    commutes with g.
//! 7. Locked arithmetic, and registers with a value of choice, have kinds without families.
//! 8. A register that a step does not assign, and that is live after it, keeps its kind.
//!
//! By induction over runs, all values in a reachable state are among those that are checked, and so are their images.
//! Cells of one family have the same type, and their initial values are mapped to each other. Threads that properties
//! name, and cells and registers that they read, are not moved.

use super::sorts::{Body, Sorts, assigned, is_truth, operand};
use super::{Conflict, KindId, Permutation, Symmetry};
use palisade_automata::Pointers;
use palisade_base::{Id, limits};
use palisade_program::Value;
use palisade_program::running::{
    Address, BinaryOp, Cell, CellId, Code, CodeId, Condition, Domain, Edge, Expr, GoalKind, Instr, Liveness,
    Location, Outside, RegId, Rmw, System, Type, binary, unary,
};
use rustc_hash::FxHashMap;

/// The largest number of pairs of operands that are tried.
const MAX_PAIRS: usize = 1 << 12;

/// Checks a symmetry. The error names a block without which it may hold.
pub(super) fn verify(
    symmetry: &Symmetry,
    system: &System,
    pointers: &Pointers,
    liveness: &Liveness,
    bodies: &[Body],
    sorts: &Sorts<'_>,
) -> Result<(), Conflict> {
    let (_, numbers) = sorts.families();
    let conditions = system.properties.iter().map(|property| &property.bad);
    let goals = system.goals.iter().filter_map(|goal| match &goal.kind {
        GoalKind::End => None,
        GoalKind::Condition { condition, .. } => Some(condition),
    });
    conditions.chain(goals).try_for_each(|condition| blind(symmetry, system, condition))?;
    for (block, range) in symmetry.blocks.iter().enumerate() {
        for position in range.start..range.end - 1 {
            let g = Permutation::exchange(position, position + 1);
            let check = Check { symmetry, system, pointers, liveness, sorts, numbers: &numbers, g };
            if !check.memory() || !bodies.iter().all(|body| check.body(body)) {
                return Err(Conflict::Without(block));
            }
        }
    }
    Ok(())
}

/// Checks that no permutation changes what a condition sees.
fn blind(symmetry: &Symmetry, system: &System, condition: &Condition) -> Result<(), Conflict> {
    let block_of = |position: usize| {
        let at = symmetry.blocks.iter().position(|range| range.contains(&position));
        at.expect("every position is in a block")
    };
    match condition {
        Condition::Const(_) => Ok(()),
        Condition::Cell(cell) => match symmetry.owners[*cell] {
            Some((_, position)) => Err(Conflict::Without(block_of(position.into()))),
            None => still(symmetry, symmetry.cells[*cell], block_of),
        },
        Condition::Register(thread, _) | Condition::At(thread, _) => {
            if let Some(position) = symmetry.threads.iter().position(|other| other == thread) {
                let block = block_of(position);
                return Err(Conflict::Drop { block, member: position - symmetry.blocks[block].start });
            }
            let Condition::Register(_, register) = condition else { return Ok(()) };
            let code = system.roles[system.instances[*thread].role].code;
            // It may be anywhere, and properties keep it alive.
            let mut kinds = symmetry.registers[code].iter().map(|kinds| kinds[register.index()]);
            kinds.try_for_each(|kind| still(symmetry, kind, block_of))
        }
        Condition::Count(places) => {
            for (block, range) in symmetry.blocks.iter().enumerate() {
                let of = |position: usize| {
                    let role = symmetry.roles[position];
                    let own = places.iter().filter(|(other, _)| *other == role);
                    let mut locations: Vec<Location> = own.map(|&(_, location)| location).collect();
                    locations.sort_unstable();
                    locations.dedup();
                    locations
                };
                if range.clone().any(|position| of(position) != of(range.start)) {
                    return Err(Conflict::Without(block));
                }
            }
            Ok(())
        }
        Condition::Unary(_, a) => blind(symmetry, system, a),
        Condition::Binary(_, a, b) => {
            blind(symmetry, system, a)?;
            blind(symmetry, system, b)
        }
    }
}

/// Checks that no permutation moves values of a kind.
fn still(symmetry: &Symmetry, kind: KindId, block_of: impl Fn(usize) -> usize) -> Result<(), Conflict> {
    match symmetry.kinds[kind as usize].families.first() {
        Some((start, _)) => Err(Conflict::Without(block_of(*start))),
        None => Ok(()),
    }
}

/// The check of one permutation.
struct Check<'c> {
    symmetry: &'c Symmetry,
    system: &'c System,
    pointers: &'c Pointers,
    liveness: &'c Liveness,
    sorts: &'c Sorts<'c>,
    numbers: &'c FxHashMap<u32, KindId>,
    g: Permutation,
}

/// A piece of a text: in the first thread of the body, in a thread, and in its image.
struct Three<'c, T> {
    first: &'c T,
    here: &'c T,
    there: &'c T,
    /// The code of the thread.
    code: CodeId,
    /// Where it is.
    source: Location,
}

impl<'c, T> Three<'c, T> {
    fn map<U>(&self, part: impl Fn(&'c T) -> &'c U) -> Three<'c, U> {
        let Three { first, here, there, code, source } = *self;
        Three { first: part(first), here: part(here), there: part(there), code, source }
    }
}

impl Check<'_> {
    fn act(&self, kind: KindId, value: Value) -> Value {
        self.symmetry.value(kind, &self.g, value)
    }

    fn cell(&self, cell: CellId) -> CellId {
        self.symmetry.cell(&self.g, cell)
    }

    /// Whether cells and their images are alike, and the initial memory is invariant.
    fn memory(&self) -> bool {
        self.system.cells.iter_enumerated().all(|(id, cell)| {
            let image = self.cell(id);
            let kind = self.symmetry.cells[id];
            let Cell { ty, init, .. } = self.system.cells[image];
            let same_init = match (cell.init, init) {
                (Some(value), Some(other)) => self.act(kind, value) == other,
                // Any value of the domain.
                (None, None) => kind == 0,
                _ => false,
            };
            ty == cell.ty && self.symmetry.cells[image] == kind && same_init
        })
    }

    /// Whether the threads of a body do what their images do.
    fn body(&self, body: &Body) -> bool {
        let first = body.codes[0];
        body.codes.iter().all(|&code| {
            let here = self.symmetry.codes.iter().position(|&other| other == code);
            let image = here.map_or(code, |position| self.symmetry.codes[self.g.image(position)]);
            self.code(first, code, image)
        })
    }

    /// Whether a code does what its image does. `body` is the first code of the body.
    fn code(&self, body: CodeId, code: CodeId, image: CodeId) -> bool {
        let codes = &self.system.codes;
        let (here, there) = (&codes[code], &codes[image]);
        let frame = |code: &Code| (code.entry, code.exit, code.location_count(), code.edges().len());
        let lists = |code: &Code| (code.plain.clone(), code.attempts.clone(), code.stays.clone());
        let types = |code: &Code| code.registers.iter().map(|register| register.ty).collect::<Vec<_>>();
        let registers = &self.symmetry.registers;
        let dead = |code: CodeId| {
            let locations = (0..here.location_count()).map(|location| Location(location as u32));
            locations.map(move |location| self.liveness.dead(code, location))
        };
        // Registers that are read before they are written are 0 at the start.
        let entry = self.liveness.dead(code, here.entry);
        let live = here.registers.ids().filter(|register| !entry.contains(register));
        frame(here) == frame(there)
            && lists(here) == lists(there)
            && types(here) == types(there)
            && registers[code] == registers[body]
            && registers[code] == registers[image]
            && dead(code).eq(dead(image))
            && live
                .map(|register| self.symmetry.register(code, here.entry, register))
                .all(|kind| self.act(kind, 0) == 0)
            && here.edges().ids().all(|edge| {
                limits::checkpoint();
                let edges = [body, code, image].map(|code| &self.system.codes[code].edges()[edge]);
                let [first, here, there] = edges.map(|edge| &edge.instr);
                let (source, target) = (edges[1].source, edges[1].target);
                (source, target) == (edges[2].source, edges[2].target)
                    // All codes of a body have the same kinds.
                    && (code != body || self.keeps(code, edges[1]))
                    && self.instr(target, &Three { first, here, there, code, source })
            })
    }

    /// Whether registers that an edge does not assign keep their kinds.
    fn keeps(&self, code: CodeId, edge: &Edge) -> bool {
        let dead = self.liveness.dead(code, edge.target);
        self.system.codes[code].registers.ids().all(|register| {
            let kind = |location| self.symmetry.register(code, location, register);
            assigned(&edge.instr) == Some(register)
                || dead.contains(&register)
                || kind(edge.source) == kind(edge.target)
        })
    }

    fn instr(&self, target: Location, instr: &Three<'_, Instr>) -> bool {
        let (code, source) = (instr.code, instr.source);
        let register = |register: RegId| self.symmetry.register(code, target, register);
        let ty = |register: RegId| self.system.codes[code].registers[register].ty;
        match (instr.first, instr.here, instr.there) {
            (_, Instr::Nop, Instr::Nop)
            | (_, Instr::Fence, Instr::Fence)
            | (_, Instr::StoreFence, Instr::StoreFence)
            | (_, Instr::AtomicBegin, Instr::AtomicBegin)
            | (_, Instr::AtomicEnd, Instr::AtomicEnd) => true,
            (_, Instr::Havoc(r, lo, hi), there @ Instr::Havoc(..)) => {
                *there == Instr::Havoc(*r, *lo, *hi) && register(*r) == 0
            }
            (Instr::Assign(_, first), Instr::Assign(r, here), Instr::Assign(s, there)) => {
                let e = Three { first, here, there, code, source };
                r == s
                    && self.expr(&e)
                    && self.kind(first) == register(*r)
                    && self.fits(register(*r), ty(*r), self.pointers.values(code, here).as_deref())
            }
            (Instr::Assume(first), Instr::Assume(here), Instr::Assume(there)) => {
                let e = Three { first, here, there, code, source };
                self.expr(&e) && self.same_truth(&e)
            }
            (Instr::Assert(first, _), Instr::Assert(here, check), Instr::Assert(there, other)) => {
                let e = Three { first, here, there, code, source };
                check == other && self.expr(&e) && self.same_truth(&e)
            }
            (Instr::Load(_, first), Instr::Load(r, here), Instr::Load(s, there)) => {
                let address = Three { first, here, there, code, source };
                r == s
                    && self.address(&address).is_some_and(|cells| {
                        cells.into_iter().all(|cell| {
                            self.symmetry.cells[cell] == register(*r)
                                && self.fits(register(*r), ty(*r), self.pointers.held(cell))
                        })
                    })
            }
            (Instr::Store(first, value), Instr::Store(here, e), Instr::Store(there, image)) => {
                let address = Three { first, here, there, code, source };
                let e = Three { first: value, here: e, there: image, code, source };
                self.expr(&e) && self.address(&address).is_some_and(|cells| self.stored(&e, &cells))
            }
            (
                Instr::Locked { address: first, operands: values, .. },
                Instr::Locked { rmw, result, address: here, operands },
                Instr::Locked { rmw: other, result: other_result, address: there, operands: images },
            ) => {
                let address = Three { first, here, there, code, source };
                let Some(cells) = self.address(&address) else { return false };
                let mut all = values.iter().zip(operands).zip(images);
                let plain = |kind: KindId| kind == 0;
                let answers = cells.iter().all(|&cell| match rmw {
                    Rmw::Cas => plain(register(*result)),
                    _ => {
                        let (kind, held) = (self.symmetry.cells[cell], self.pointers.held(cell));
                        kind == register(*result) && self.fits(kind, ty(*result), held)
                    }
                });
                rmw == other
                    && result == other_result
                    && operands.len() == images.len()
                    && answers
                    && all.all(|((first, here), there)| {
                        let e = Three { first, here, there, code, source };
                        let moves = matches!(rmw, Rmw::Cas | Rmw::Exchange);
                        let still = || {
                            plain(self.kind(e.first))
                                && cells.iter().all(|&cell| plain(self.symmetry.cells[cell]))
                        };
                        self.expr(&e) && if moves { self.stored(&e, &cells) } else { still() }
                    })
            }
            _ => false,
        }
    }

    /// Whether a value that is stored, or compared with a cell, has the kind of the cells and fits them alike.
    fn stored(&self, e: &Three<'_, Expr>, cells: &[CellId]) -> bool {
        let kind = self.kind(e.first);
        let values = if kind == 0 { None } else { self.pointers.values(e.code, e.here) };
        cells.iter().all(|&cell| {
            self.symmetry.cells[cell] == kind
                && self.fits(kind, self.system.cells[cell].ty, values.as_deref())
        })
    }

    fn kind(&self, first: &Expr) -> KindId {
        self.numbers[&self.sorts.of_expr(first)]
    }

    /// Whether converting these values to a type commutes with the permutation.
    fn fits(&self, kind: KindId, ty: Type, values: Option<&[Value]>) -> bool {
        let converted = |value: Value| match ty.outside {
            _ if ty.domain.contains(value) => Some(value),
            Outside::Wrap => ty.wrapped(value.into()),
            Outside::Fault | Outside::Block => None,
        };
        let all = ty.domain == Domain::Int || ty.domain.bounds() == Some((Value::MIN, Value::MAX));
        kind == 0
            || all
            || values.is_some_and(|values| {
                let same = |&value: &Value| {
                    converted(value).map(|value| self.act(kind, value)) == converted(self.act(kind, value))
                };
                values.iter().all(same)
            })
    }

    /// Whether a condition is true iff its image is.
    fn same_truth(&self, e: &Three<'_, Expr>) -> bool {
        let kind = self.kind(e.first);
        let same = |&value: &Value| (value != 0) == (self.act(kind, value) != 0);
        self.act(kind, 0) == 0
            || self.pointers.values(e.code, e.here).is_some_and(|values| values.iter().all(same))
    }

    /// Whether the value of an expression is mapped to the value of its image.
    fn expr(&self, e: &Three<'_, Expr>) -> bool {
        let left = || e.map(|e| operand(e, 0));
        let right = || e.map(|e| operand(e, 1));
        let result = self.kind(e.first);
        match (e.here, e.there) {
            (Expr::Const(value), Expr::Const(image)) => self.act(result, *value) == *image,
            (Expr::Reg(register), Expr::Reg(image)) => {
                register == image && self.symmetry.register(e.code, e.source, *register) == result
            }
            (Expr::Unary(op, _), Expr::Unary(other, _)) => {
                let a = left();
                let kind = self.kind(a.first);
                let commutes = |&value: &Value| {
                    let value_here = unary(*op, value).ok().map(|value| self.act(result, value));
                    value_here == unary(*op, self.act(kind, value)).ok()
                };
                op == other
                    && self.expr(&a)
                    && (kind == 0 && result == 0
                        || self
                            .pointers
                            .values(a.code, a.here)
                            .is_some_and(|values| values.iter().all(commutes)))
            }
            (Expr::Binary(op, ..), Expr::Binary(other, ..)) => {
                let (a, b) = (left(), right());
                op == other && self.expr(&a) && self.expr(&b) && self.binary(*op, &a, &b, result)
            }
            _ => false,
        }
    }

    fn binary(&self, op: BinaryOp, a: &Three<'_, Expr>, b: &Three<'_, Expr>, result: KindId) -> bool {
        let (left, right) = (self.kind(a.first), self.kind(b.first));
        if is_truth(op) && result != 0 {
            return false;
        }
        match op {
            _ if left == 0 && right == 0 && result == 0 => return true,
            BinaryOp::Eq | BinaryOp::Ne if left == right => return true,
            BinaryOp::And | BinaryOp::Or => return self.same_truth(a) && self.same_truth(b),
            _ => {}
        }
        let values = |e: &Three<'_, Expr>| self.pointers.values(e.code, e.here);
        let (Some(lefts), Some(rights)) = (values(a), values(b)) else { return false };
        let commutes = |x: Value, y: Value| {
            let here = binary(op, x, y).ok().map(|value| self.act(result, value));
            here == binary(op, self.act(left, x), self.act(right, y)).ok()
        };
        lefts.len() * rights.len() <= MAX_PAIRS
            && lefts.iter().all(|&x| rights.iter().all(|&y| commutes(x, y)))
    }

    /// The cells that an address may lead to, if the image of the address leads to the images of the cells.
    fn address(&self, address: &Three<'_, Address>) -> Option<Vec<CellId>> {
        let Three { code, source, .. } = *address;
        let e = match (address.first, address.here, address.there) {
            (_, Address::Cell(cell), Address::Cell(image)) => {
                return (self.cell(*cell) == *image).then(|| vec![*cell]);
            }
            (Address::Element { index: first, .. }, Address::Element { index: here, .. }, there) => {
                let Address::Element { index: there, .. } = there else { return None };
                Three { first, here, there, code, source }
            }
            (Address::Pointer(first), Address::Pointer(here), Address::Pointer(there)) => {
                Three { first, here, there, code, source }
            }
            _ => return None,
        };
        let cells = self.pointers.cells(self.system, code, address.here)?;
        let kind = self.kind(e.first);
        let led = |address: &Address, value: Value| match address {
            Address::Cell(cell) => Some(*cell),
            Address::Element { base, len, .. } => {
                u32::try_from(value).ok().filter(|i| i < len).map(|i| CellId(base.0 + i))
            }
            Address::Pointer(_) => self.system.cell_at(value),
        };
        // Without a finite set of values, an index may be anything, and so may its image.
        let every = |len: u32| (0..Value::from(len)).collect();
        let values = match (self.pointers.values(code, e.here), address.here) {
            (Some(values), _) => values,
            (None, Address::Element { len, .. }) if kind == 0 => every(*len),
            _ => return None,
        };
        let leads = |&value: &Value| {
            led(address.here, value).map(|cell| self.cell(cell)) == led(address.there, self.act(kind, value))
        };
        (self.expr(&e) && values.iter().all(leads)).then_some(cells)
    }
}
