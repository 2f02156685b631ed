//! What the translation of a test knows and writes: registers, variables and statements.
//!
//! The code is walked several times. The first walks only learn which values each register and variable can hold
//! ([`Facts`]), flow-insensitively for variables and between labels for registers; the last one writes the statements.

use super::bank::{self, Bank};
use super::ir::Mem;
use super::registers::{Family, Part, Register, Width};
use super::test::Test;
use super::values::{Facts, Maker, Val};
use super::variables::{Start, VarId, Variables};
use crate::generate::{Names, assign, declare, named, read};
use crate::report::Report;
use palisade_base::{Diagnostic, IdVec, Origin, Span};
use palisade_program::written::{BinaryOp, Block, Expr, ExprKind, Name, Place, PlaceKind, Stmt, StmtKind};
use std::sync::Arc;

/// What is known of a whole test.
pub(super) struct Knowledge {
    /// Of each register of each thread.
    pub(super) registers: Vec<[Option<Facts>; Family::COUNT]>,
    pub(super) variables: IdVec<VarId, Facts>,
    /// The bit that stands for a variable in [`Facts::points`]; the last bit stands for all further ones.
    pub(super) bits: IdVec<VarId, u64>,
    /// The variables of each bit.
    pub(super) by_bit: Vec<Vec<VarId>>,
    /// Whether the last walk learned something.
    pub(super) grown: bool,
}

impl Knowledge {
    /// What the initial state says.
    pub(super) fn new(test: &Test<'_>, banks: &[Bank], variables: &Variables<'_>) -> Knowledge {
        let mut by_bit: Vec<Vec<VarId>> = Vec::new();
        let mut bits = IdVec::new();
        for (id, variable) in variables.all.iter_enumerated() {
            let taken = if variable.address_taken {
                if by_bit.len() < 64 {
                    by_bit.push(Vec::new());
                }
                let last = by_bit.len() - 1;
                by_bit[last].push(id);
                1 << last
            } else {
                0
            };
            bits.push(taken);
        }
        let mut knowledge =
            Knowledge { registers: Vec::new(), variables: IdVec::new(), bits, by_bit, grown: false };
        for (thread, bank) in test.threads.iter().zip(banks) {
            let mut registers = [None; Family::COUNT];
            for &family in &bank.order {
                let start = variables.registers.get(&(thread.number, family));
                let facts = start.map_or(Facts::exactly(0), |(register, start)| {
                    knowledge.start(variables, *start, |number| held(number, *register, bank.width(family)))
                });
                registers[usize::from(family.0)] = Some(facts);
            }
            knowledge.registers.push(registers);
        }
        for (id, variable) in variables.all.iter_enumerated() {
            let width = variables.width(id);
            let mut facts: Option<Facts> = None;
            for start in &variable.init {
                let found = knowledge.start(variables, *start, |number| width.signed(number).unwrap_or(0));
                match &mut facts {
                    Some(facts) => _ = facts.join(&found),
                    None => facts = Some(found),
                }
            }
            knowledge.variables.push(facts.unwrap_or(Facts::exactly(0)));
        }
        knowledge
    }

    fn start(&self, variables: &Variables<'_>, start: Start, number: impl Fn(i128) -> i64) -> Facts {
        match start {
            Start::Number(value, _) => Facts::exactly(number(value)),
            Start::Address(id, element) => {
                let address = variables.all[id].address + i64::from(element);
                Facts { points: self.bits[id], ..Facts::exactly(address) }
            }
        }
    }

    /// The variables in a set of bits.
    pub(super) fn pointees(&self, points: u64) -> impl Iterator<Item = VarId> {
        let bits = (0..self.by_bit.len()).filter(move |bit| points & 1 << bit != 0);
        bits.flat_map(|bit| self.by_bit[bit].iter().copied())
    }

    /// After many walks: takes everything that may still grow to its limits.
    pub(super) fn widen(&mut self, before: &Knowledge, banks: &[Bank], variables: &Variables<'_>) {
        for ((registers, old), bank) in self.registers.iter_mut().zip(&before.registers).zip(banks) {
            for (family, (now, old)) in registers.iter_mut().zip(old).enumerate() {
                if let (Some(now), Some(old)) = (now, old)
                    && now != old
                {
                    now.widen(bank.width(Family(family as u8)));
                }
            }
        }
        for (id, now) in
            self.variables.ids().zip(before.variables.iter()).map(|(id, old)| (id, *old)).collect::<Vec<_>>()
        {
            if self.variables[id] != now {
                self.variables[id].widen(variables.width(id));
            }
        }
    }

    pub(super) fn copy(&self) -> Knowledge {
        Knowledge {
            registers: self.registers.clone(),
            variables: self.variables.clone(),
            bits: self.bits.clone(),
            by_bit: Vec::new(),
            grown: false,
        }
    }
}

/// What a register of which so many bits are kept holds when a part of it is given a number and the rest is 0.
pub(super) fn held(number: i128, register: Register, kept: Width) -> i64 {
    let part = register.part.width();
    let bits = (number & ((1 << part.0) - 1)) << if register.part == Part::High8 { 8 } else { 0 };
    kept.signed(bits & ((1 << kept.0) - 1)).expect("cut to the width")
}

/// A temporary or flag of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extra {
    Temporary,
    Result,
    Zero,
    Sign,
    Carry,
    Overflow,
}

impl Extra {
    const ALL: [(Extra, &'static str); 6] = [
        (Extra::Temporary, "tmp"),
        (Extra::Result, "res"),
        (Extra::Zero, "ZF"),
        (Extra::Sign, "SF"),
        (Extra::Carry, "CF"),
        (Extra::Overflow, "OF"),
    ];
}

/// A memory operand, found.
pub(super) struct Located {
    pub(super) place: Option<Place>,
    /// The width of the variable.
    pub(super) var_width: Width,
    /// How many bits of it are accessed.
    pub(super) width: Width,
    /// The variable, or those it can be.
    target: Target,
}

enum Target {
    One(VarId),
    Some(u64),
}

/// Why an operand is not found: it was reported.
pub(super) struct Unfound;

/// The translation of one thread.
pub(super) struct State<'s, 'a> {
    pub(super) knowledge: &'s mut Knowledge,
    pub(super) variables: &'s Variables<'a>,
    pub(super) bank: &'s Bank,
    pub(super) thread: usize,
    pub(super) report: &'s mut Report,
    /// Whether statements are written, or only facts learned.
    pub(super) build: bool,
    /// What is known of registers since the last label.
    current: [Option<Facts>; Family::COUNT],
    names: [Option<Arc<str>>; Family::COUNT],
    extras: [Option<Arc<str>>; 6],
    extra_facts: [Facts; 6],
    spare: Names,
    block: Block,
    labels: Vec<Name>,
    /// The instruction being translated.
    pub(super) span: Span,
}

impl<'s, 'a> State<'s, 'a> {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn new(
        knowledge: &'s mut Knowledge,
        variables: &'s Variables<'a>,
        bank: &'s Bank,
        thread: usize,
        report: &'s mut Report,
        build: bool,
        names: [Option<Arc<str>>; Family::COUNT],
        spare: Names,
    ) -> State<'s, 'a> {
        let current = knowledge.registers[thread];
        State {
            knowledge,
            variables,
            bank,
            thread,
            report,
            build,
            current,
            names,
            extras: Default::default(),
            extra_facts: [Facts::exactly(0); 6],
            spare,
            block: Vec::new(),
            labels: Vec::new(),
            span: Span::NONE,
        }
    }

    pub(super) fn maker(&self) -> Maker {
        Maker { build: self.build, span: self.span }
    }

    /// Control may come here from elsewhere.
    pub(super) fn label(&mut self, labels: impl IntoIterator<Item = Name>) {
        self.current = self.knowledge.registers[self.thread];
        if self.build {
            self.labels.extend(labels);
        }
    }

    pub(super) fn emit(&mut self, kind: StmtKind) {
        if self.build {
            let labels = std::mem::take(&mut self.labels);
            self.block.push(Stmt { labels, kind, origin: Origin(self.span) });
        }
    }

    pub(super) fn emit_assign(&mut self, place: Option<Place>, value: Val) {
        if let (Some(place), Some(value)) = (place, value.expr) {
            let Stmt { kind, .. } = assign(place, value, self.span);
            self.emit(kind);
        }
    }

    /// Collects the statements that `write` writes.
    pub(super) fn inside<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        let labels = std::mem::take(&mut self.labels);
        let outer = std::mem::take(&mut self.block);
        let result = write(self);
        self.labels = labels;
        (std::mem::replace(&mut self.block, outer), result)
    }

    /// `atomic { … }`
    pub(super) fn atomic<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let (block, result) = self.inside(write);
        self.emit(StmtKind::Atomic(block));
        result
    }

    /// Collects statements that run or not: what is known before them stays possible behind them.
    pub(super) fn maybe(&mut self, write: impl FnOnce(&mut Self)) -> Block {
        let before = self.current;
        let (block, ()) = self.inside(write);
        for (now, before) in self.current.iter_mut().zip(before) {
            if let (Some(now), Some(before)) = (now, before) {
                now.join(&before);
            }
        }
        block
    }

    /// Reports an error, once.
    pub(super) fn fail<T>(&mut self, diagnostic: impl FnOnce() -> Diagnostic) -> Result<T, Unfound> {
        if self.build {
            self.report.push(diagnostic());
        }
        Err(Unfound)
    }

    fn register_place(&self, family: Family) -> Option<Place> {
        let name = self.names[usize::from(family.0)].as_ref().expect("the bank holds every register used");
        self.build.then(|| named(name, self.span))
    }

    fn whole(&self, family: Family) -> Val {
        let facts = self.current[usize::from(family.0)].expect("the bank holds every register used");
        Val::new(self.register_place(family).map(read), facts)
    }

    /// The value of a part of a register.
    pub(super) fn read_register(&self, register: Register) -> Val {
        let whole = self.whole(register.family);
        let points = whole.facts.points;
        let maker = self.maker();
        let mut value = match register.part {
            Part::High8 => {
                let shifted = maker.shift_arithmetic(whole, 8);
                maker.sign_extend(shifted, Width::BYTE)
            }
            part => maker.sign_extend(whole, part.width()),
        };
        value.facts.points = points;
        value
    }

    /// Puts a value into a part of a register. What happens to the rest is x86's rule.
    pub(super) fn write_register(&mut self, register: Register, value: Val) {
        let kept = self.bank.width(register.family);
        let maker = self.maker();
        let points = value.facts.points;
        let mut value = match register.part {
            part if part != Part::High8 && part.width() == kept => value,
            Part::Low32 | Part::All64 => maker.zero_extend(value, Width::LONG),
            Part::Low16 | Part::Low8 | Part::High8 => self.merged(register, value),
        };
        value.facts.points = points;
        let slot = usize::from(register.family.0);
        self.current[slot] = Some(value.facts);
        let known = self.knowledge.registers[self.thread][slot].get_or_insert(value.facts);
        self.knowledge.grown |= known.join(&value.facts);
        let place = self.register_place(register.family);
        self.emit_assign(place, value);
    }

    /// The whole register after a write to 8 or 16 bits of it.
    fn merged(&self, register: Register, value: Val) -> Val {
        let maker = self.maker();
        let old = self.whole(register.family);
        let bits = register.part.width();
        let (shift, mask) = match register.part {
            Part::High8 => (8, 0xff00),
            _ => (0, (1_i64 << bits.0) - 1),
        };
        let fits = old.facts.least >= 0 && old.facts.greatest <= mask.into() && shift == 0;
        let new = maker.zero_extend(value, bits);
        if fits {
            return new;
        }
        let new = if shift > 0 {
            let facts = Facts::between(new.facts.least << shift, new.facts.greatest << shift);
            maker.shift(BinaryOp::Shl, new, shift, facts)
        } else {
            new
        };
        let rest = maker.bitwise(BinaryOp::BitAnd, old, maker.constant(!mask));
        let merged = maker.bitwise(BinaryOp::BitOr, rest, new);
        // A 16-bit register is held as a signed number.
        maker.sign_extend(merged, self.bank.width(register.family))
    }

    fn extra_name(&mut self, extra: Extra) -> Arc<str> {
        let slot = extra as usize;
        let spare = &mut self.spare;
        self.extras[slot].get_or_insert_with(|| spare.fresh(Extra::ALL[slot].1)).clone()
    }

    pub(super) fn set_extra(&mut self, extra: Extra, value: Val) {
        self.extra_facts[extra as usize] = value.facts;
        if self.build {
            let name = self.extra_name(extra);
            self.emit_assign(Some(named(&name, self.span)), value);
        }
    }

    pub(super) fn read_extra(&mut self, extra: Extra) -> Val {
        let facts = match extra {
            Extra::Temporary | Extra::Result => self.extra_facts[extra as usize],
            _ => Facts::between(0, 1),
        };
        let place = self.build.then(|| {
            let name = self.extra_name(extra);
            named(&name, self.span)
        });
        Val::new(place.map(read), facts)
    }

    /// A value that can be written several times, through a temporary if need be.
    pub(super) fn atom(&mut self, extra: Extra, value: Val) -> Val {
        if value.is_atom() && !value.loads {
            return value;
        }
        self.set_extra(extra, value);
        self.read_extra(extra)
    }

    /// The value of a constant operand.
    pub(super) fn address(&mut self, var: VarId, bytes: i64, span: Span) -> Result<Val, Unfound> {
        let place = self.element(var, bytes, span)?;
        let variables = self.variables;
        let cell = bytes / variables.width(var).bytes();
        let facts =
            Facts { points: self.knowledge.bits[var], ..Facts::exactly(variables.all[var].address + cell) };
        Ok(Val::new(place.map(|place| Expr::new(ExprKind::AddressOf(place), span)), facts))
    }

    /// An element of a variable, so many bytes from its start.
    fn element(&mut self, var: VarId, bytes: i64, span: Span) -> Result<Option<Place>, Unfound> {
        let variables = self.variables;
        let variable = &variables.all[var];
        let size = variables.width(var).bytes();
        let len = variable.len.unwrap_or(1);
        let cell = u32::try_from(bytes / size).ok().filter(|&cell| cell < len);
        let (Some(cell), 0) = (cell, bytes % size) else {
            return self.fail(|| {
                let message = format!(
                    "byte {bytes} of `{}` is outside of it or not the start of an element",
                    variable.name
                );
                Diagnostic::error("outside-variable", message).at(span, "").at(variable.span, "")
            });
        };
        Ok(self.build.then(|| match variable.len {
            None => named(&variable.name, span),
            Some(_) => self.array_element(&variable.name, Expr::int(cell.into()), span),
        }))
    }

    fn array_element(&self, name: &Arc<str>, index: Expr, span: Span) -> Place {
        Place::new(PlaceKind::Element(Name::new(name.clone(), span), Box::new(index)), span)
    }

    /// Finds a memory operand. The width is that of the instruction, if it has one.
    pub(super) fn locate(&mut self, memory: &Mem, width: Option<Width>) -> Result<Located, Unfound> {
        let span = memory.span;
        let (place, target, var_width) = match (memory.var, memory.base) {
            (Some(var), None) if memory.index.is_none() => {
                (self.element(var, memory.displacement, span)?, Target::One(var), self.variables.width(var))
            }
            (Some(var), _) => {
                let place = self.indexed(var, memory)?;
                (place, Target::One(var), self.variables.width(var))
            }
            (None, _) => self.pointed(memory)?,
        };
        let width = width.unwrap_or(var_width);
        if width > var_width {
            let variables = self.variables;
            let name = match target {
                Target::One(var) => variables.all[var].name.clone(),
                Target::Some(_) => "the variable".into(),
            };
            return self.fail(|| {
                let message = format!("this accesses {width} bits, but `{name}` has {var_width}");
                mixed_size(message, span)
            });
        }
        Ok(Located { place, var_width, width, target })
    }

    /// The bytes that the registers of an address add up to, besides the one that holds an address.
    fn offset(&mut self, base: Option<Register>, memory: &Mem) -> Val {
        let maker = self.maker();
        let mut bytes = maker.constant(memory.displacement);
        if let Some(base) = base {
            let base = self.read_register(base);
            bytes = maker.add(bytes, base, Width::QUAD);
        }
        if let Some((index, scale)) = memory.index
            && scale > 0
        {
            let index = self.read_register(index);
            let scale = u32::try_from(scale).unwrap_or(1).trailing_zeros();
            let facts = Facts::between(index.facts.least << scale, index.facts.greatest << scale);
            let scaled = if scale == 0 { index } else { maker.shift(BinaryOp::Shl, index, scale, facts) };
            bytes = maker.add(bytes, scaled, Width::QUAD);
        }
        bytes
    }

    /// The offset in cells of so many bytes; writes an assertion that it is a whole number of cells.
    fn cells(&mut self, bytes: Val, size: i64) -> Val {
        let maker = self.maker();
        if bytes.facts.least == bytes.facts.greatest && bytes.facts.least % i128::from(size) == 0 {
            let cells = i64::try_from(bytes.facts.least / i128::from(size)).unwrap_or(i64::MAX);
            return maker.constant(cells);
        }
        if size == 1 {
            return bytes;
        }
        let any = Facts::between(i64::MIN.into(), i64::MAX.into());
        let rest = maker.binary(BinaryOp::Rem, bytes.clone(), maker.constant(size), any);
        let aligned = maker.compare(BinaryOp::Eq, rest, maker.constant(0));
        if let Some(aligned) = aligned.expr {
            self.emit(StmtKind::Assert(aligned));
        }
        let facts =
            Facts::between(bytes.facts.least / i128::from(size), bytes.facts.greatest / i128::from(size));
        maker.binary(BinaryOp::Div, bytes, maker.constant(size), facts)
    }

    /// `x(%rax)`: a variable and an offset in registers.
    fn indexed(&mut self, var: VarId, memory: &Mem) -> Result<Option<Place>, Unfound> {
        let bytes = self.offset(memory.base, memory);
        let cells = self.cells(bytes, self.variables.width(var).bytes());
        let variables = self.variables;
        let variable = &variables.all[var];
        if variable.len.is_some() {
            return Ok(cells.expr.map(|index| self.array_element(&variable.name, index, memory.span)));
        }
        if cells.facts.least != 0 || cells.facts.greatest != 0 {
            let maker = self.maker();
            if let Some(inside) = maker.compare(BinaryOp::Eq, cells, maker.constant(0)).expr {
                self.emit(StmtKind::Assert(inside));
            }
        }
        Ok(self.build.then(|| named(&variable.name, memory.span)))
    }

    /// `(%rax)`: an address in a register.
    fn pointed(&mut self, memory: &Mem) -> Result<(Option<Place>, Target, Width), Unfound> {
        let points = |state: &Self, register: Option<Register>| {
            register.map_or(0, |register| state.read_register(register).facts.points)
        };
        let mut memory = *memory;
        if points(self, memory.base) == 0
            && let Some((index, 1)) = memory.index
            && points(self, Some(index)) != 0
        {
            (memory.base, memory.index) = (Some(index), memory.base.map(|base| (base, 1)));
        }
        let holder = memory.base.filter(|base| points(self, Some(*base)) != 0);
        let Some(holder) = holder else {
            return self.fail(|| {
                Diagnostic::error("not-an-address", "no register here can hold the address of a variable")
                    .at(memory.span, "")
                    .help("give a register an address in the initial state: `0:RAX=x;`")
            });
        };
        let pointer = self.read_register(holder);
        let targets = pointer.facts.points;
        let mut widths: Vec<Width> =
            self.knowledge.pointees(targets).map(|var| self.variables.width(var)).collect();
        widths.sort_unstable();
        widths.dedup();
        let [var_width] = widths[..] else {
            return self.fail(|| {
                let message = "this can access variables of different widths".to_owned();
                mixed_size(message, memory.span)
            });
        };
        let bytes = self.offset(None, &memory);
        let cells = self.cells(bytes, var_width.bytes());
        let span = memory.span;
        if cells.facts.least == 0 && cells.facts.greatest == 0 {
            let place = pointer.expr.map(|pointer| Place::new(PlaceKind::Deref(Box::new(pointer)), span));
            return Ok((place, Target::Some(targets), var_width));
        }
        if !self.knowledge.pointees(targets).any(|var| self.variables.all[var].len.is_some()) {
            return self.fail(|| {
                Diagnostic::error("outside-variable", "this is outside of every variable it could mean")
                    .at(span, "")
            });
        }
        let address = self.maker().add(pointer, cells, Width::QUAD);
        let place = address.expr.map(|address| Place::new(PlaceKind::Deref(Box::new(address)), span));
        Ok((place, Target::Some(targets), var_width))
    }

    fn target_facts(&self, target: &Target) -> Facts {
        match target {
            Target::One(var) => self.knowledge.variables[*var],
            Target::Some(points) => {
                let mut facts: Option<Facts> = None;
                for var in self.knowledge.pointees(*points) {
                    let found = self.knowledge.variables[var];
                    match &mut facts {
                        Some(facts) => _ = facts.join(&found),
                        None => facts = Some(found),
                    }
                }
                facts.unwrap_or(Facts::exactly(0))
            }
        }
    }

    /// What a memory operand holds.
    pub(super) fn load(&self, located: &Located) -> Val {
        let facts = self.target_facts(&located.target);
        let whole = Val { loads: true, ..Val::new(located.place.clone().map(read), facts) };
        let mut value = self.maker().sign_extend(whole, located.width);
        value.facts.points = facts.points;
        value
    }

    /// Notes that a value reaches a memory operand.
    pub(super) fn note_store(&mut self, located: &Located, facts: &Facts) {
        let targets: Vec<VarId> = match located.target {
            Target::One(var) => vec![var],
            Target::Some(points) => self.knowledge.pointees(points).collect(),
        };
        for var in targets {
            self.knowledge.grown |= self.knowledge.variables[var].join(facts);
        }
    }

    /// Refuses a change of only a part of a variable.
    pub(super) fn whole_variable(&mut self, located: &Located, span: Span) -> Result<(), Unfound> {
        if located.width == located.var_width {
            return Ok(());
        }
        let (width, var_width) = (located.width, located.var_width);
        self.fail(|| {
            let message = format!("this changes {width} bits of a variable of {var_width}");
            mixed_size(message, span)
        })
    }

    /// `x = v;`
    pub(super) fn store(&mut self, located: &Located, value: Val) {
        self.note_store(located, &value.facts);
        self.emit_assign(located.place.clone(), value);
    }

    /// The body: declarations of what was used, and the statements.
    pub(super) fn finish(mut self, starts: impl Fn(Family) -> Expr) -> Block {
        if !self.labels.is_empty() {
            self.span = self.labels[0].span();
            self.emit(StmtKind::Skip);
        }
        let mut body = Vec::new();
        for &family in &self.bank.order {
            let name =
                self.names[usize::from(family.0)].as_ref().expect("the bank holds every register used");
            body.push(declare(name, starts(family), Span::NONE));
        }
        for name in self.extras.iter().flatten() {
            body.push(declare(name, Expr::int(0), Span::NONE));
        }
        body.append(&mut self.block);
        body
    }
}

fn mixed_size(message: String, span: Span) -> Diagnostic {
    Diagnostic::error("mixed-size", message)
        .at(span, "")
        .help("accesses to parts of a variable are not modelled; declare it with the width it is used with")
}

/// The names of a thread's registers.
pub(super) fn register_names(
    bank: &Bank,
    upper: bool,
    spare: &mut Names,
) -> [Option<Arc<str>>; Family::COUNT] {
    let mut names: [Option<Arc<str>>; Family::COUNT] = Default::default();
    for &family in &bank.order {
        let mut name = bank::name(family, bank.width(family));
        if upper {
            name.make_ascii_uppercase();
        }
        names[family.index()] = Some(spare.fresh(&name));
    }
    names
}

impl Family {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}
