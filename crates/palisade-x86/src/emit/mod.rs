//! Functions as LLVM IR.
//!
//! Registers and flags are local variables, which the translation of LLVM IR keeps in registers. A function is emitted
//! again and again until it is known what its blocks begin with ([`State`]), then once more to see how its frame is
//! used, and then for good.
//!
//! *Conventions.*
//! - All values are integers of the width of their operand. Addresses are integers of 64 bits.
//! - A function takes the registers that it reads, and then words of its caller's frame. It returns `rax`, or `rax` and
//!   `rdx`.
//! - What cannot be followed becomes a call of a function that is named [`REFUSE`] and the reason. It is reported only if
//!   control can reach it. Where that depends on values, it is a call of [`NOT_FOLLOWED`], which makes the answer unknown
//!   if some run gets there.

mod arithmetic;
mod calls;
mod counts;
mod flags;
mod integer;
mod locked;
mod operands;
mod vector;

use crate::decode::{Block, Code, Exit, Function, Jumps, TableForm};
use crate::frame::{Regions, Uses};
use crate::image::SectionOffset;
use crate::library;
use crate::liveness::Liveness;
use crate::names::{self, quoted};
use crate::program::{Callee, FunctionId, Program};
use crate::registers::{ARGUMENTS, Gpr, RAX, RDX, SAVED, Set};
use crate::state::{Known, State};
use flags::Flags;
use iced_x86::FlowControl;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The beginning of the name of a function that stands for what cannot be followed.
pub(crate) const REFUSE: &str = "palisade.refuse ";

/// The beginning of the name of a function that says what is taken for granted.
const ASSUME: &str = "palisade.assume ";

/// The name of a function that stands for what is not followed if a run really gets there.
const NOT_FOLLOWED: &str = "palisade.not_followed";

/// An integer value: a constant, or the name of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) width: u32,
}

/// What is found out about functions while they are emitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    /// How many bits of the result are defined.
    pub(crate) result: u32,
    /// How many words it reads from the frame of its caller.
    pub(crate) stack_arguments: usize,
    /// Whether it uses what it has pushed, where that was taken for room.
    pub(crate) pushes: bool,
}

/// What the emission of all functions shares.
pub(crate) struct Shared<'a> {
    pub(crate) program: &'a Program,
    pub(crate) liveness: &'a Liveness,
    pub(crate) names: &'a names::Names,
    pub(crate) found: BTreeMap<FunctionId, Interface>,
    /// The functions to be declared, with their types.
    pub(crate) declared: BTreeMap<String, String>,
    /// Variables that other files define.
    pub(crate) external: BTreeSet<String>,
    /// The line of each instruction in the listing.
    pub(crate) lines: BTreeMap<(usize, SectionOffset), u32>,
    /// Metadata of the places.
    pub(crate) locations: BTreeMap<(u32, usize), usize>,
}

/// A function while it is emitted.
pub(crate) struct Emitter<'s, 'a> {
    shared: &'s mut Shared<'a>,
    id: FunctionId,
    function: &'a Function,
    out: String,
    temporaries: usize,
    labels: usize,
    state: State,
    flags: Flags,
    uses: Uses,
    regions: Option<Regions>,
    /// What is known at the beginnings of blocks.
    at: BTreeMap<SectionOffset, State>,
    location: Option<usize>,
    /// Registers that hold a number or an address that is known, since the last label.
    constants: BTreeMap<Gpr, String>,
    /// The least that is defined of what it returns.
    result: u32,
    /// Whether it uses what it has pushed, where that was taken for room.
    pushes: bool,
    /// The block and the instruction that are emitted.
    now: (SectionOffset, usize),
}

impl<'s, 'a> Emitter<'s, 'a> {
    fn new(shared: &'s mut Shared<'a>, id: FunctionId) -> Emitter<'s, 'a> {
        let function = shared.program.function(id);
        Emitter {
            shared,
            id,
            function,
            out: String::new(),
            temporaries: 0,
            labels: 0,
            state: State::entry(0),
            flags: Flags::Undefined,
            uses: Uses::default(),
            regions: None,
            at: BTreeMap::new(),
            location: None,
            constants: BTreeMap::new(),
            result: 64,
            pushes: false,
            now: (function.entry, 0),
        }
    }

    /// Which registers the program has a use for after this instruction.
    fn used_after(&self) -> Set {
        let (place, index) = self.now;
        let Some(block) = self.function.blocks.get(&place) else { return Set::default() };
        self.shared.liveness.used_after(self.shared.program, self.id, block, index)
    }

    /// Adds an instruction.
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str("  ");
        self.out.push_str(text.as_ref());
        if let Some(location) = self.location {
            write!(self.out, ", !dbg !{location}").expect("writing to a string");
        }
        self.out.push('\n');
    }

    /// Adds an instruction with a result.
    fn value(&mut self, width: u32, text: impl AsRef<str>) -> Value {
        let name = format!("%t{}", self.temporaries);
        self.temporaries += 1;
        self.line(format!("{name} = {}", text.as_ref()));
        Value { text: name, width }
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("part{}", self.labels)
    }

    fn begin(&mut self, label: &str) {
        self.constants.clear();
        writeln!(self.out, "{label}:").expect("writing to a string");
    }

    /// Says that something cannot be followed.
    fn refuse(&mut self, why: impl AsRef<str>) {
        let name = format!("{REFUSE}{}", why.as_ref());
        self.shared.declared.insert(name.clone(), "void ()".to_owned());
        self.line(format!("call void {}()", quoted(&name)));
    }

    /// Says what is taken for granted.
    fn assume(&mut self, what: &str) {
        let name = format!("{ASSUME}{what}");
        self.declare(&name, "void ()");
        self.line(format!("call void {}()", quoted(&name)));
    }

    /// Ends a run that gets here: what follows is not known, and neither is the answer then.
    fn give_up(&mut self) {
        self.declare(NOT_FOLLOWED, "void ()");
        self.line(format!("call void @{NOT_FOLLOWED}()"));
        self.line("unreachable");
    }

    /// Gives up in runs in which a condition does not hold.
    fn give_up_unless(&mut self, condition: &Value) {
        let (yes, no) = (self.label(), self.label());
        self.line(format!("br i1 {}, label %{yes}, label %{no}", condition.text));
        self.begin(&no);
        self.give_up();
        self.begin(&yes);
    }

    /// Finds out what is known at the beginnings of blocks.
    fn settle(&mut self, parameters: usize) {
        self.at = [(self.function.entry, State::entry(parameters))].into();
        loop {
            let before = self.at.clone();
            self.pass();
            if self.at == before {
                return;
            }
        }
    }

    /// Emits the blocks once.
    fn pass(&mut self) {
        let function = self.function;
        self.result = 64;
        self.pushes = false;
        self.out.clear();
        for (place, block) in &function.blocks {
            let Some(state) = self.at.get(place) else { continue };
            self.state = state.clone();
            self.flags = if self.state.flags { Flags::Stored } else { Flags::Undefined };
            self.begin(&label_of(*place));
            self.block(*place, block);
        }
    }

    /// Emits one block, and passes on what is known at its end.
    fn block(&mut self, place: SectionOffset, block: &Block) {
        let (last, before) = match (&block.exit, block.code.split_last()) {
            (Exit::Next(_), _) | (_, None) => (None, &block.code[..]),
            (_, Some((last, before))) => (Some(last), before),
        };
        for (index, code) in before.iter().enumerate() {
            self.now = (place, index);
            self.place(code);
            self.instruction(code);
        }
        self.now = (place, before.len());
        let Some(last) = last else {
            match block.exit {
                Exit::Next(to) => {
                    self.leave(block);
                    self.line(format!("br label %{}", label_of(to)));
                }
                _ => self.line("unreachable"),
            }
            return;
        };
        self.place(last);
        if let (Some(why), false) = (&last.refused, matches!(block.exit, Exit::Nowhere)) {
            self.refuse(why);
        }
        match &block.exit {
            Exit::Next(_) => unreachable!("handled before"),
            Exit::Jump(to) => {
                self.leave(block);
                self.line(format!("br label %{}", label_of(*to)));
            }
            Exit::Branch(yes, no) => {
                let condition = match last.instruction.is_jcc_short_or_near() {
                    true => self.condition(last.instruction.condition_code()),
                    false => {
                        self.unknown(last);
                        operands::constant(1, 0)
                    }
                };
                self.leave(block);
                let condition = condition.text;
                self.line(format!("br i1 {condition}, label %{}, label %{}", label_of(*yes), label_of(*no)));
            }
            Exit::Table(jumps) => self.jump_by_table(jumps, block),
            Exit::TailCall => {
                let callee = self.shared.program.callee(self.id.unit, last).unwrap_or(Callee::Pointer);
                self.tail_call(last, &callee);
            }
            Exit::Return if last.instruction.code() != iced_x86::Code::Retnq => {
                self.unknown(last);
                self.line("unreachable");
            }
            Exit::Return => self.return_(),
            Exit::Nowhere => {
                if last.refused.is_none() && last.instruction.flow_control() == FlowControl::Exception {
                    self.declare("llvm.trap", "void ()");
                    self.line("call void @llvm.trap()");
                } else {
                    self.instruction(last);
                }
                self.line("unreachable");
            }
        }
    }

    /// The place of what is emitted from here on.
    fn place(&mut self, code: &Code) {
        let line = self.shared.lines.get(&(self.id.unit, code.place)).copied();
        let subprogram = self.shared.names.subprogram(self.id);
        self.location = line.map(|line| {
            let next = self.shared.names.first_location() + self.shared.locations.len();
            *self.shared.locations.entry((line, subprogram)).or_insert(next)
        });
    }

    /// Passes on what is known, and puts flags and addresses where the next blocks look for them.
    fn leave(&mut self, block: &Block) {
        for to in block.successors() {
            let live = self.shared.liveness.at.get(&(self.id, to)).copied().unwrap_or_default();
            if live.has_flags() {
                self.store_flags();
            }
        }
        self.state.flags = !matches!(self.flags, Flags::Undefined);
        // Registers that hold an address in the frame, but not on every way to the next block.
        for to in block.successors() {
            let live = self.shared.liveness.at.get(&(self.id, to)).copied().unwrap_or_default();
            for register in Gpr::all().filter(|register| live.has(*register)) {
                let after = self.at.get(&to).map(|state| state.get(register));
                if let Known::Frame(at) = self.state.get(register)
                    && after.is_some_and(|after| after != Known::Frame(at))
                {
                    let address = self.frame_address(at);
                    self.store_register(register, &address);
                }
            }
        }
        for to in block.successors() {
            let merged = match self.at.get(&to) {
                Some(known) => known.merge(&self.state),
                None => self.state.clone(),
            };
            self.at.insert(to, merged);
        }
    }

    fn jump_by_table(&mut self, jumps: &Jumps, block: &Block) {
        let (index, first, step) = match jumps.form {
            TableForm::Absolute(register) => (self.read_register(register), 0, 1),
            TableForm::Relative(register) => {
                let sum = self.read_register(register);
                let table = self.address_of(&crate::image::Target::Place(jumps.table), 0);
                let index = self.value(64, format!("sub i64 {}, {}", sum.text, table.text));
                (index, jumps.table.offset, 4)
            }
        };
        self.leave(block);
        let default = self.label();
        let mut text = format!("switch i64 {}, label %{default} [", index.text);
        for (number, to) in jumps.entries.iter().enumerate() {
            write!(text, " i64 {}, label %{}", first + step * number as i64, label_of(*to))
                .expect("writing to a string");
        }
        self.line(text + " ]");
        self.begin(&default);
        self.give_up();
    }

    /// Returns to the caller. Everything that it wants back must be as it was.
    fn return_(&mut self) {
        if self.state.stack() != Some(0) {
            self.refuse("a return while the stack pointer is not where it was at the call");
        }
        for register in SAVED {
            if self.state.get(register) != Known::Entry(register) {
                self.refuse(format!("a return while `{}` may have changed", register.name()));
            }
        }
        let known = self.state.get(RAX);
        self.result = self.result.min(known.bits());
        let result = if known.bits() == 0 { "0".to_owned() } else { self.load_register(RAX).text };
        if self.shared.liveness.summary(self.id).pair {
            let second = self.state.get(RDX);
            let second = if second.bits() == 0 { "0".to_owned() } else { self.load_register(RDX).text };
            let half = self.value(64, format!("insertvalue {{ i64, i64 }} undef, i64 {result}, 0"));
            let both = self.value(64, format!("insertvalue {{ i64, i64 }} {}, i64 {second}, 1", half.text));
            self.line(format!("ret {{ i64, i64 }} {}", both.text));
        } else {
            self.line(format!("ret i64 {result}"));
        }
    }

    fn declare(&mut self, name: &str, ty: &str) {
        self.shared.declared.insert(name.to_owned(), ty.to_owned());
    }
}

/// The label of a block.
fn label_of(place: SectionOffset) -> String {
    format!("at.{}.{:x}", place.section, place.offset)
}

/// Emits a function. Returns its text and what was found out about it.
pub(crate) fn function(shared: &mut Shared<'_>, id: FunctionId) -> (String, Interface) {
    let summary = shared.liveness.summary(id);
    let mut emitter = Emitter::new(shared, id);
    let entry = emitter.function.entry;
    let mut refused = emitter.function.refused.clone();
    if refused.is_none() && !emitter.function.blocks.contains_key(&entry) {
        refused = Some("code that is not there".to_owned());
    }
    if refused.is_none() {
        emitter.settle(summary.parameters);
        emitter.uses = Uses::default();
        emitter.pass();
        emitter.regions = Some(emitter.uses.regions());
        // Now more is known about the frame.
        emitter.settle(summary.parameters);
    }
    let found = Interface {
        result: emitter.result,
        stack_arguments: emitter.uses.stack_arguments(),
        pushes: emitter.pushes,
    };
    emitter.temporaries = 0;
    emitter.labels = 0;
    if refused.is_none() {
        emitter.pass();
    }
    let body = std::mem::take(&mut emitter.out);
    emitter.location = None;
    emitter.head(summary.parameters, found.stack_arguments, summary.pair, refused.as_deref());
    let mut text = std::mem::take(&mut emitter.out);
    text.push_str(&body);
    text.push_str("}\n");
    (text, found)
}

impl Emitter<'_, '_> {
    /// The head of the function, and its local variables.
    fn head(&mut self, parameters: usize, stack_arguments: usize, pair: bool, refused: Option<&str>) {
        let name = quoted(self.shared.names.function(self.id));
        let linkage = match self.function {
            Function { weak: true, .. } => "weak ",
            Function { global: true, .. } => "",
            _ => "internal ",
        };
        let registers = ARGUMENTS[..parameters].iter().map(|register| format!("i64 %in.{}", register.name()));
        let words = (0..stack_arguments).map(|index| format!("i64 %in.{index}"));
        let list: Vec<String> = registers.chain(words).collect();
        let result = if pair { "{ i64, i64 }" } else { "i64" };
        let subprogram = self.shared.names.subprogram(self.id);
        writeln!(self.out, "define {linkage}{result} {name}({}) !dbg !{subprogram} {{", list.join(", "))
            .expect("writing to a string");
        self.begin("entry");
        if let Some(why) = refused {
            self.refuse(why);
            self.line("unreachable");
            return;
        }
        for register in Gpr::all() {
            self.line(format!("%{} = alloca i64", register.name()));
            let initial = match ARGUMENTS[..parameters].contains(&register) {
                true => format!("%in.{}", register.name()),
                false => "0".to_owned(),
            };
            self.line(format!("store i64 {initial}, ptr %{}", register.name()));
        }
        for flag in flags::NAMES {
            self.line(format!("%{flag} = alloca i1"));
            self.line(format!("store i1 false, ptr %{flag}"));
        }
        for register in 0..16 {
            for half in ["lo", "hi"] {
                self.line(format!("%xmm{register}.{half} = alloca i64"));
                self.line(format!("store i64 0, ptr %xmm{register}.{half}"));
            }
        }
        for half in ["lo", "hi"] {
            self.line(format!("%xmm.{half} = alloca i64"));
        }
        let regions = self.regions.clone().unwrap_or_default();
        for (index, region) in regions.all.iter().enumerate() {
            // The return address, from which places count, is 8 bytes above a multiple of 16.
            let align = 1 << (region.start + 8).trailing_zeros().min(4);
            let size = region.end - region.start;
            self.line(format!("%frame{index} = alloca [{size} x i8], align {align}"));
        }
        for index in 0..stack_arguments {
            let at = 8 + 8 * index as i64;
            if let Some((region, offset)) = regions.find(at, 1) {
                let size = (regions.all[region].end - at).min(8);
                let width = if size >= 8 {
                    64
                } else if size >= 4 {
                    32
                } else {
                    8 * size
                };
                let to = self.value(64, format!("getelementptr i8, ptr %frame{region}, i64 {offset}"));
                let value = match width {
                    64 => Value { text: format!("%in.{index}"), width: 64 },
                    width => self.value(width as u32, format!("trunc i64 %in.{index} to i{width}")),
                };
                self.line(format!("store i{width} {}, ptr {}, align 1", value.text, to.text));
            }
        }
        self.line(format!("br label %{}", label_of(self.function.entry)));
    }
}

/// The type of a function of the C library.
pub(crate) fn library_type(name: &str) -> String {
    let Some(signature) = library::signature(name) else { return "void ()".to_owned() };
    let ty = |letter| if letter == 'i' { "i32" } else { "i64" };
    let mut arguments: Vec<&str> = signature.arguments.chars().map(ty).collect();
    if signature.variadic {
        arguments.push("...");
    }
    let result = if signature.result == 'v' { "void" } else { ty(signature.result) };
    format!("{result} ({})", arguments.join(", "))
}
