//! The state of a translation: what is known about registers and variables, and the statements emitted so
//! far.
//!
//! The code is walked several times. The first walks only learn which values each register and variable can
//! have ([`Facts`]). This is flow-insensitive for variables; for registers it is tracked between labels. The
//! last walk emits the statements.

use super::bank::{self, Bank};
use super::knowledge::Knowledge;
use super::registers::{Family, Part, Register, Width};
use super::values::{Facts, Maker, Val};
use super::variables::Variables;
use crate::generate::{Names, assign, declare, named, read};
use crate::report::Report;
use palisade_base::{Diagnostic, Origin, Span};
use palisade_program::written::{BinaryOp, Block, Expr, Name, Place, Stmt, StmtKind};
use std::sync::Arc;

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

/// An operand could not be resolved. The error has been reported.
pub(super) struct Unresolved;

/// The thread being translated.
#[derive(Clone, Copy)]
pub(super) struct Setting<'s, 'a> {
    pub(super) variables: &'s Variables<'a>,
    /// Its index.
    pub(super) thread: usize,
    pub(super) bank: &'s Bank,
    /// The names of its registers.
    pub(super) registers: &'s RegisterNames,
    /// Names that are already used.
    pub(super) names: &'s Names<'s>,
}

/// The names of the registers that a thread uses.
pub(super) type RegisterNames = [Option<Arc<str>>; Family::COUNT];

/// The translation of one thread.
pub(super) struct State<'s, 'a> {
    pub(super) knowledge: &'s mut Knowledge,
    pub(super) variables: &'s Variables<'a>,
    pub(super) bank: &'s Bank,
    thread: usize,
    pub(super) report: &'s mut Report,
    /// Whether statements are emitted. Otherwise only facts are learned.
    pub(super) build: bool,
    /// What is known about registers since the last label.
    current: [Option<Facts>; Family::COUNT],
    names: &'s RegisterNames,
    extras: [Option<Arc<str>>; 6],
    extra_facts: [Facts; 6],
    spare: Names<'s>,
    block: Block,
    labels: Vec<Name>,
    /// The instruction being translated.
    pub(super) span: Span,
}

impl<'s, 'a> State<'s, 'a> {
    pub(super) fn new(
        setting: Setting<'s, 'a>,
        knowledge: &'s mut Knowledge,
        report: &'s mut Report,
        build: bool,
    ) -> State<'s, 'a> {
        let current = knowledge.starts[setting.thread];
        State {
            knowledge,
            variables: setting.variables,
            bank: setting.bank,
            thread: setting.thread,
            report,
            build,
            current,
            names: setting.registers,
            extras: Default::default(),
            extra_facts: [Facts::exactly(0); 6],
            spare: setting.names.inner(),
            block: Vec::new(),
            labels: Vec::new(),
            span: Span::NONE,
        }
    }

    pub(super) fn maker(&self) -> Maker {
        Maker { build: self.build, span: self.span }
    }

    /// A label: control can come here from elsewhere.
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

    /// Collects the statements that `write` emits.
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

    /// Collects statements that may or may not execute. What was possible before them remains possible after
    /// them.
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
    pub(super) fn fail<T>(&mut self, diagnostic: impl FnOnce() -> Diagnostic) -> Result<T, Unresolved> {
        if self.build {
            self.report.push(diagnostic());
        }
        Err(Unresolved)
    }

    fn register_place(&self, family: Family) -> Option<Place> {
        let name =
            self.names[usize::from(family.0)].as_ref().expect("the bank contains every register in use");
        self.build.then(|| named(name, self.span))
    }

    fn whole(&self, family: Family) -> Val {
        let facts = self.current[usize::from(family.0)].expect("the bank contains every register in use");
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

    /// Writes a value to a part of a register. The rest of the register follows the rules of x86.
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
        // A 16-bit register holds a signed number.
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

    /// A value that can be used several times. It is stored in a temporary if needed.
    pub(super) fn atom(&mut self, extra: Extra, value: Val) -> Val {
        if value.is_atom() && !value.loads {
            return value;
        }
        self.set_extra(extra, value);
        self.read_extra(extra)
    }

    /// The body: declarations of the registers in use, and the statements.
    pub(super) fn finish(mut self, starts: impl Fn(Family) -> Expr) -> Block {
        if !self.build {
            return Vec::new();
        }
        if !self.labels.is_empty() {
            self.span = self.labels[0].span();
            self.emit(StmtKind::Skip);
        }
        let mut body = Vec::new();
        for &family in &self.bank.order {
            let name =
                self.names[usize::from(family.0)].as_ref().expect("the bank contains every register in use");
            body.push(declare(name, starts(family), Span::NONE));
        }
        for name in self.extras.iter().flatten() {
            body.push(declare(name, Expr::int(0), Span::NONE));
        }
        body.append(&mut self.block);
        body
    }
}

/// The names of a thread's registers.
pub(super) fn register_names(bank: &Bank, upper: bool, spare: &mut Names<'_>) -> RegisterNames {
    let mut names = RegisterNames::default();
    for &family in &bank.order {
        let mut name = bank::name(family, bank.width(family));
        if upper {
            name.make_ascii_uppercase();
        }
        names[usize::from(family.0)] = Some(spare.fresh(&name));
    }
    names
}
