//! Calls: of functions of the program, of the C library, and through pointers.
//!
//! *Source.* System V ABI, AMD64 Architecture Processor Supplement, section 3.2.

use super::flags::Flags;
use super::operands::{Address, constant};
use super::{Emitter, Value, library_type};
use crate::decode::{self, Code};
use crate::library::{self, Signature};
use crate::names::quoted;
use crate::program::{Callee, FunctionId};
use crate::registers::{ARGUMENTS, Gpr, RAX, RDX, Set};
use crate::state::{DEFINED, Known, UNDEFINED};
use iced_x86::OpKind;

impl Emitter<'_, '_> {
    /// A call after which the function goes on.
    pub(super) fn call(&mut self, code: &Code) {
        let callee = self.shared.program.callee(self.id.unit, code).unwrap_or(Callee::Pointer);
        let Some(stack) = self.state.stack() else { return self.refuse("a stack pointer that is not known") };
        self.call_of(code, &callee, stack);
    }

    /// A call that ends the function.
    pub(super) fn tail_call(&mut self, code: &Code, callee: &Callee) {
        if self.state.stack() != Some(0) {
            self.refuse("a jump to a function while the stack pointer is not where it was at the call");
        }
        let summary = match callee {
            Callee::Function(function) => Some(self.shared.liveness.summary(*function)),
            _ => None,
        };
        let pair = summary.is_some_and(|summary| summary.pair);
        if self.shared.liveness.summary(self.id).pair && !pair {
            self.refuse("a jump to a function that returns in one register, where two are expected");
        }
        // The called function finds the arguments of this one where it looks for its own.
        self.call_of(code, callee, 8);
        self.return_();
    }

    /// The arguments of a function of the program.
    fn arguments(&mut self, function: FunctionId, stack: i64) -> Vec<String> {
        let summary = self.shared.liveness.summary(function);
        let mut list = Vec::new();
        for register in &ARGUMENTS[..summary.parameters] {
            let value = self.argument(*register, 32);
            list.push(format!("i64 {}", value.text));
        }
        for index in 0..self.shared.found.get(&function).map_or(0, |found| found.stack_arguments) {
            let at = stack + 8 * index as i64;
            let (value, _) = self.load(&Address::Frame(at), 64);
            list.push(format!("i64 {}", value.text));
        }
        list
    }

    /// The value of a register that is passed on.
    fn argument(&mut self, register: Gpr, width: u32) -> Value {
        if self.state.get(register).bits() < width {
            let name = register.name();
            self.refuse(format!(
                "an argument in `{name}`, which holds nothing that the program has put there"
            ));
            return constant(64, 0);
        }
        self.load_register(register)
    }

    /// The type of a result: one or two registers.
    fn result_type(&self, function: FunctionId) -> &'static str {
        if self.shared.liveness.summary(function).pair { "{ i64, i64 }" } else { "i64" }
    }

    fn call_of(&mut self, code: &Code, callee: &Callee, stack: i64) {
        match callee {
            Callee::Function(function) => {
                let arguments = self.arguments(*function, stack).join(", ");
                let name = quoted(self.shared.names.function(*function));
                let ty = self.result_type(*function);
                let result = self.value(64, format!("call {ty} {name}({arguments})"));
                let summary = self.shared.liveness.summary(*function);
                self.after_call(summary.changes);
                let defined = self.shared.found.get(function).map_or(64, |found| found.result);
                if summary.pair {
                    let parts: Vec<Value> = (0..2)
                        .map(|index| {
                            self.value(64, format!("extractvalue {{ i64, i64 }} {}, {index}", result.text))
                        })
                        .collect();
                    self.store_register(RAX, &parts[0]);
                    self.store_register(RDX, &parts[1]);
                    self.state.set(RDX, DEFINED);
                } else {
                    self.store_register(RAX, &result);
                }
                self.state.set(RAX, Known::Defined(defined));
            }
            Callee::Library(name) => self.call_library(name),
            Callee::Pointer => self.call_pointer(code, stack),
        }
    }

    /// What a called function may have changed is not used any more.
    fn after_call(&mut self, changes: Set) {
        for register in Gpr::all().filter(|register| changes.has(*register)) {
            self.state.set(register, UNDEFINED);
        }
        self.state.vectors = 0;
        self.flags = Flags::Undefined;
    }

    fn call_library(&mut self, name: &str) {
        let ty = library_type(name);
        self.declare(name, &ty);
        let Some(signature) = library::signature(name) else {
            self.line(format!("call void {}()", quoted(name)));
            self.after_call(Set::volatile());
            return;
        };
        let Signature { arguments, result, variadic } = signature;
        let mut list = Vec::new();
        for (letter, register) in arguments.chars().zip(ARGUMENTS) {
            let (width, ty) = if letter == 'i' { (32, "i32") } else { (64, "i64") };
            let value = self.argument(register, width);
            let value = self.truncate(&value, width);
            list.push(format!("{ty} {}", value.text));
        }
        if variadic {
            // More arguments may follow in registers: those that hold something.
            for register in ARGUMENTS.iter().skip(arguments.len()) {
                if self.state.get(*register).bits() < 32 {
                    break;
                }
                let value = self.load_register(*register);
                list.push(format!("i64 {}", value.text));
            }
        }
        let (name, list) = (quoted(name), list.join(", "));
        let called = if variadic { ty.as_str() } else { result_word(result) };
        match result {
            'v' => self.line(format!("call {called} {name}({list})")),
            result => {
                let width = if result == 'i' { 32 } else { 64 };
                let value = self.value(width, format!("call {called} {name}({list})"));
                self.after_call(Set::volatile());
                let wide = self.zero_extend(&value, 64);
                self.store_register(RAX, &wide);
                self.state.set(RAX, Known::Defined(width));
                return;
            }
        }
        self.after_call(Set::volatile());
    }

    /// A call of one of the functions whose address is used.
    fn call_pointer(&mut self, code: &Code, stack: i64) {
        let pointer = match code.instruction.op0_kind() {
            OpKind::Register | OpKind::Memory => self.read(code, 0, 64),
            _ => return self.refuse("a jump to code that belongs to no function"),
        };
        let after = self.label();
        let before = self.state.clone();
        let mut defined = 64;
        // A function that returns less than is used is not called here either.
        let needed = self.used_after().bits(RAX);
        for function in self.shared.program.address_taken.clone() {
            let name = quoted(self.shared.names.function(function));
            let no = self.if_equal(&pointer, &name);
            // A function that takes more than there is is not called here, unless the program is wrong.
            let passed = |register: &Gpr| before.get(*register).bits() >= 32;
            let summary = self.shared.liveness.summary(function);
            let returned = self.shared.found.get(&function).map_or(64, |found| found.result);
            if ARGUMENTS[..summary.parameters].iter().all(passed) && returned >= needed {
                self.call_of(code, &Callee::Function(function), stack);
                defined = defined.min(self.state.get(RAX).bits());
                self.line(format!("br label %{after}"));
            } else {
                self.give_up();
            }
            self.state = before.clone();
            self.begin(&no);
        }
        for name in self.shared.program.library_taken.clone() {
            self.declare(&name, &library_type(&name));
            let no = self.if_equal(&pointer, &quoted(&name));
            let signature = library::signature(&name);
            let widths = signature.map_or("", |signature| signature.arguments);
            let returned = if signature.is_some_and(|signature| signature.result != 'v') { 32 } else { 0 };
            let returns = returned >= needed || !decode::returns(&name);
            let passed = |(letter, register): (char, &Gpr)| {
                before.get(*register).bits() >= if letter == 'i' { 32 } else { 64 }
            };
            if widths.chars().zip(&ARGUMENTS).all(passed) && returns {
                self.call_library(&name);
                if decode::returns(&name) {
                    defined = defined.min(self.state.get(RAX).bits());
                    self.line(format!("br label %{after}"));
                } else {
                    self.line("unreachable");
                }
            } else {
                self.give_up();
            }
            self.state = before.clone();
            self.begin(&no);
        }
        // Not the address of a function: a read there fails with the address.
        let wrong = self.value(64, format!("inttoptr i64 {} to ptr", pointer.text));
        self.value(8, format!("load i8, ptr {}, align 1", wrong.text));
        self.give_up();
        self.begin(&after);
        self.after_call(Set::volatile());
        self.state.set(RAX, Known::Defined(defined));
    }

    /// Branches on whether a pointer is the address of a function, and begins what happens if it is. Returns the label
    /// of what happens otherwise.
    fn if_equal(&mut self, pointer: &Value, name: &str) -> String {
        let (yes, no) = (self.label(), self.label());
        let equal = self.value(1, format!("icmp eq i64 {}, ptrtoint (ptr {name} to i64)", pointer.text));
        self.line(format!("br i1 {}, label %{yes}, label %{no}", equal.text));
        self.begin(&yes);
        no
    }
}

fn result_word(letter: char) -> &'static str {
    match letter {
        'i' => "i32",
        'v' => "void",
        _ => "i64",
    }
}
