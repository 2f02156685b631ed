//! Random x86 code computes the same values in the program as on the machine.
//!
//! Each test is one thread of random instructions of all widths, in either notation. A small interpreter of
//! the registers, flags and variables computes the outcome. The test then asks `forall (…that outcome…)`, and
//! its program is run and must satisfy that.

use palisade_base::Source;
use palisade_conformance::random::Random;
use palisade_memory::{Machine, Model};
use palisade_program::print::print;
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};
use std::fmt::Write;

const SEEDS: u64 = 2000;

#[test]
fn random_code_computes_what_the_machine_computes() {
    for seed in 0..SEEDS {
        let (text, outcome) = generate(seed);
        run(&format!("{text}\nforall ({outcome})\n"), seed);
    }
}

/// Runs a test of one thread under SC, where there is only one run, and checks its last state.
fn run(text: &str, seed: u64) {
    let parsed = parse(Language::Litmus, &Source::new("test.litmus", text))
        .unwrap_or_else(|errors| panic!("seed {seed}: {errors:#?}\nin\n{text}"));
    let system = lower(&parsed.program, Instantiation { any: 1, every: None });
    let machine = Machine::new(&system, Model::Sc);
    let mut state = machine.initial_states().next().expect("there is an initial state");
    loop {
        assert!(state.fault.is_none(), "seed {seed}: {:?}\n{text}\n{}", state.fault, print(&parsed.program));
        let mut successors = machine.successors(&state);
        assert!(successors.len() <= 1, "seed {seed}: one thread has at most one step\n{text}");
        let Some(next) = successors.pop() else { break };
        state = next.state;
    }
    let violation = machine.violation(&state);
    assert!(
        violation.is_none(),
        "seed {seed}: {violation:?}\n{text}\n{}\n{state:#?}",
        print(&parsed.program)
    );
}

/// Random numbers, and random operands.
struct Operands(Random);

impl Operands {
    fn new(seed: u64) -> Operands {
        Operands(Random::new(seed))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// A number of a width, often near a limit.
    fn number(&mut self, bits: u32) -> i64 {
        let edges =
            [0, 1, -1, 2, 3, i64::MAX, i64::MIN, 0x7f, 0x80, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000];
        let number = if self.below(4) == 0 {
            (self.below(1 << 30) as i64) << self.below(34)
        } else {
            self.pick(&edges)
        };
        number << (64 - bits) >> (64 - bits)
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Operand {
    /// A register, and whether it is the second byte (`ah`).
    Register(usize, bool),
    Variable,
    Number(i64),
}

/// The machine: four registers, one variable per width, four flags.
#[derive(Clone, Default)]
struct Cpu {
    registers: [u64; 4],
    variables: [u64; 4],
    zero: bool,
    sign: bool,
    carry: bool,
    overflow: bool,
}

fn slot(bits: u32) -> usize {
    bits.trailing_zeros() as usize - 3
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn negative(value: u64, bits: u32) -> bool {
    value >> (bits - 1) & 1 == 1
}

impl Cpu {
    fn read(&self, operand: Operand, bits: u32) -> u64 {
        mask(bits)
            & match operand {
                Operand::Register(register, true) => self.registers[register] >> 8,
                Operand::Register(register, false) => self.registers[register],
                Operand::Variable => self.variables[slot(bits)],
                Operand::Number(number) => number as u64,
            }
    }

    fn write(&mut self, operand: Operand, bits: u32, value: u64) {
        let value = value & mask(bits);
        match operand {
            Operand::Register(register, high) => {
                let old = self.registers[register];
                self.registers[register] = match bits {
                    8 if high => old & !0xff00 | value << 8,
                    8 | 16 => old & !mask(bits) | value,
                    _ => value,
                };
            }
            Operand::Variable => self.variables[slot(bits)] = value,
            Operand::Number(_) => unreachable!("a number is not a destination"),
        }
    }

    fn result_flags(&mut self, result: u64, bits: u32) {
        self.zero = result & mask(bits) == 0;
        self.sign = negative(result, bits);
    }

    fn add(&mut self, a: u64, b: u64, bits: u32) -> u64 {
        let result = a.wrapping_add(b) & mask(bits);
        self.result_flags(result, bits);
        self.carry = result < a;
        self.overflow = negative(a, bits) == negative(b, bits) && negative(result, bits) != negative(a, bits);
        result
    }

    fn sub(&mut self, a: u64, b: u64, bits: u32) -> u64 {
        let result = a.wrapping_sub(b) & mask(bits);
        self.result_flags(result, bits);
        self.carry = a < b;
        self.overflow = negative(a, bits) != negative(b, bits) && negative(result, bits) != negative(a, bits);
        result
    }

    fn logic(&mut self, result: u64, bits: u32) -> u64 {
        self.result_flags(result, bits);
        self.carry = false;
        self.overflow = false;
        result
    }

    fn holds(&self, condition: &str) -> bool {
        let less = self.sign != self.overflow;
        match condition {
            "e" => self.zero,
            "ne" => !self.zero,
            "l" => less,
            "ge" => !less,
            "le" => less || self.zero,
            "g" => !less && !self.zero,
            "b" => self.carry,
            "ae" => !self.carry,
            "be" => self.carry || self.zero,
            "a" => !self.carry && !self.zero,
            "s" => self.sign,
            "ns" => !self.sign,
            "o" => self.overflow,
            "no" => !self.overflow,
            _ => unreachable!("no such condition"),
        }
    }
}

const CONDITIONS: [&str; 14] = ["e", "ne", "l", "ge", "le", "g", "b", "ae", "be", "a", "s", "ns", "o", "no"];
/// Conditions that do not read the carry or the overflow.
const SIMPLE: [&str; 4] = ["e", "ne", "s", "ns"];
const NAMES: [[&str; 4]; 4] = [
    ["al", "ax", "eax", "rax"],
    ["bl", "bx", "ebx", "rbx"],
    ["cl", "cx", "ecx", "rcx"],
    ["dl", "dx", "edx", "rdx"],
];
const HIGH: [&str; 4] = ["ah", "bh", "ch", "dh"];
const VARIABLES: [&str; 4] = ["b", "w", "l", "q"];
const TYPES: [&str; 4] = ["int8_t", "uint16_t", "int", "uint64_t"];
const SUFFIXES: [&str; 4] = ["b", "w", "l", "q"];
const POINTERS: [&str; 4] = ["byte ptr", "word ptr", "dword ptr", "qword ptr"];

/// A test under construction: its text, and the machine after it.
struct Generator {
    random: Operands,
    cpu: Cpu,
    intel: bool,
    widest: u32,
    rows: String,
    /// Which flags are currently defined: (zero and sign, carry, overflow).
    defined: (bool, bool, bool),
}

fn generate(seed: u64) -> (String, String) {
    let mut random = Operands::new(seed);
    let wide = random.below(3) > 0;
    let intel = random.below(2) == 0;
    let widest = if wide { 64 } else { 32 };
    let mut generator = Generator {
        random,
        cpu: Cpu::default(),
        intel,
        widest,
        rows: String::new(),
        defined: (true, true, true),
    };
    let mut init = String::new();
    for slot in 0..if wide { 4 } else { 3 } {
        let bits = 8 << slot;
        let (value, register) = (generator.random.number(bits), generator.random.number(widest));
        generator.cpu.variables[slot] = value as u64 & mask(bits);
        generator.cpu.registers[slot] = register as u64 & mask(widest);
        let name = NAMES[slot][self::slot(widest)];
        writeln!(init, "{} {} = {value}; 0:{name} = {register};", TYPES[slot], VARIABLES[slot]).unwrap();
    }
    for number in 0..3 + generator.random.below(8) {
        generator.piece(number);
    }
    let outcome = generator.outcome();
    let arch = if wide { "X86_64" } else { "X86" };
    (format!("{arch} seed{seed}\n{{\n{init}}}\n P0 ;\n{}", generator.rows), outcome)
}

impl Generator {
    /// The final values of the variables and of some part of each register.
    fn outcome(&mut self) -> String {
        let mut outcome = String::from("true");
        for (register, names) in NAMES.iter().enumerate() {
            let part = self.random.below(slot(self.widest) + 1);
            let bits = 8 << part;
            let value = self.cpu.registers[register] & mask(bits);
            let shown =
                if self.random.below(2) == 0 { value.to_string() } else { signed(value, bits).to_string() };
            write!(outcome, " /\\ 0:{}={shown}", names[part]).unwrap();
        }
        for (slot, name) in VARIABLES.iter().enumerate().take(slot(self.widest) + 1) {
            write!(outcome, " /\\ {name}={}", signed(self.cpu.variables[slot], 8 << slot)).unwrap();
        }
        outcome
    }

    fn bits(&mut self) -> u32 {
        8 << self.random.below(slot(self.widest) + 1)
    }

    fn register(&mut self, bits: u32) -> Operand {
        let register = self.random.below(4);
        Operand::Register(register, bits == 8 && self.random.below(3) == 0)
    }

    fn place(&mut self, bits: u32) -> Operand {
        if self.random.below(2) == 0 { Operand::Variable } else { self.register(bits) }
    }

    /// A source that fits a destination.
    fn source(&mut self, destination: Operand, bits: u32) -> Operand {
        match self.random.below(3) {
            0 => Operand::Number(self.random.number(bits)),
            1 if destination != Operand::Variable => Operand::Variable,
            _ => self.register(bits),
        }
    }

    fn show(&self, operand: Operand, bits: u32) -> String {
        let slot = slot(bits);
        match (operand, self.intel) {
            (Operand::Register(register, true), true) => HIGH[register].to_owned(),
            (Operand::Register(register, true), false) => format!("%{}", HIGH[register]),
            (Operand::Register(register, false), true) => NAMES[register][slot].to_owned(),
            (Operand::Register(register, false), false) => format!("%{}", NAMES[register][slot]),
            (Operand::Variable, true) => format!("{} [{}]", POINTERS[slot], VARIABLES[slot]),
            (Operand::Variable, false) => format!("({})", VARIABLES[slot]),
            (Operand::Number(number), true) => number.to_string(),
            (Operand::Number(number), false) => format!("${number}"),
        }
    }

    fn row(&mut self, label: &str, name: &str, bits: u32, operands: &[Operand]) {
        let mut shown: Vec<String> = operands.iter().map(|operand| self.show(*operand, bits)).collect();
        if !self.intel {
            shown.reverse();
        }
        let suffix = if self.intel || bits == 0 { "" } else { SUFFIXES[slot(bits)] };
        writeln!(self.rows, " {label}{name}{suffix} {} ;", shown.join(", ")).unwrap();
    }

    fn condition(&mut self) -> Option<&'static str> {
        match self.defined {
            (true, true, true) => Some(self.random.pick(&CONDITIONS)),
            (true, ..) => Some(self.random.pick(&SIMPLE)),
            (false, true, _) => Some(self.random.pick(&["b", "ae"])),
            _ => None,
        }
    }

    /// One instruction, or a jump over one.
    fn piece(&mut self, number: usize) {
        if self.random.below(6) == 0
            && let Some(condition) = self.condition()
        {
            let label = format!("L{number}");
            writeln!(self.rows, " j{condition} {label} ;").unwrap();
            let (skipped, before) = (self.cpu.holds(condition), self.cpu.clone());
            let defined = self.defined;
            self.instruction("");
            if skipped {
                self.cpu = before;
            }
            // Flags that are defined on only one path are not defined after the join.
            let (a, b) = (defined, self.defined);
            self.defined = (a.0 && b.0, a.1 && b.1, a.2 && b.2);
            self.instruction(&format!("{label}: "));
            return;
        }
        self.instruction("");
    }

    fn instruction(&mut self, label: &str) {
        let bits = self.bits();
        match self.random.below(16) {
            0 | 1 => {
                let to = self.place(bits);
                let from = self.source(to, bits);
                self.row(label, "mov", bits, &[to, from]);
                let value = self.cpu.read(from, bits);
                self.cpu.write(to, bits, value);
            }
            2..=4 => self.arithmetic(label, bits),
            5 | 6 => self.compare(label, bits),
            7 => self.step(label, bits),
            8 => self.negation(label, bits),
            9 => self.shift(label, bits),
            10 => self.bit(label),
            11 => self.exchange(label, bits),
            12 => self.compare_exchange(label, bits),
            13 => self.set(label),
            14 => self.conditional_move(label),
            _ => self.extend(label),
        }
    }

    fn lock(&mut self, place: Operand) -> &'static str {
        if place == Operand::Variable && self.random.below(2) == 0 { "lock " } else { "" }
    }

    fn arithmetic(&mut self, label: &str, bits: u32) {
        let to = self.place(bits);
        let from = self.source(to, bits);
        let name = self.random.pick(&["add", "sub", "and", "or", "xor"]);
        let lock = self.lock(to);
        self.row(label, &format!("{lock}{name}"), bits, &[to, from]);
        let (a, b) = (self.cpu.read(to, bits), self.cpu.read(from, bits));
        let result = match name {
            "add" => self.cpu.add(a, b, bits),
            "sub" => self.cpu.sub(a, b, bits),
            "and" => self.cpu.logic(a & b, bits),
            "or" => self.cpu.logic(a | b, bits),
            _ => self.cpu.logic(a ^ b, bits),
        };
        self.cpu.write(to, bits, result);
        self.defined = (true, true, true);
    }

    fn compare(&mut self, label: &str, bits: u32) {
        let first = self.place(bits);
        let second = self.source(first, bits);
        let (a, b) = (self.cpu.read(first, bits), self.cpu.read(second, bits));
        if self.random.below(2) == 0 {
            self.row(label, "cmp", bits, &[first, second]);
            self.cpu.sub(a, b, bits);
        } else {
            self.row(label, "test", bits, &[first, second]);
            self.cpu.logic(a & b, bits);
        }
        self.defined = (true, true, true);
    }

    fn step(&mut self, label: &str, bits: u32) {
        let to = self.place(bits);
        let lock = self.lock(to);
        let up = self.random.below(2) == 0;
        self.row(label, &format!("{lock}{}", if up { "inc" } else { "dec" }), bits, &[to]);
        let (carry, value) = (self.cpu.carry, self.cpu.read(to, bits));
        let result = if up { self.cpu.add(value, 1, bits) } else { self.cpu.sub(value, 1, bits) };
        self.cpu.carry = carry;
        self.cpu.write(to, bits, result);
        self.defined = (true, self.defined.1, true);
    }

    fn negation(&mut self, label: &str, bits: u32) {
        let to = self.place(bits);
        let lock = self.lock(to);
        let value = self.cpu.read(to, bits);
        if self.random.below(2) == 0 {
            self.row(label, &format!("{lock}neg"), bits, &[to]);
            let result = self.cpu.sub(0, value, bits);
            self.cpu.write(to, bits, result);
            self.defined = (true, true, true);
        } else {
            self.row(label, &format!("{lock}not"), bits, &[to]);
            self.cpu.write(to, bits, !value);
        }
    }

    fn shift(&mut self, label: &str, bits: u32) {
        let to = self.place(bits);
        let count = 1 + self.random.below(bits as usize - 1) as u32;
        let name = self.random.pick(&["shl", "shr", "sar"]);
        self.row(label, name, bits, &[to, Operand::Number(count.into())]);
        let value = self.cpu.read(to, bits);
        let result = match name {
            "shl" => value << count,
            "shr" => value >> count,
            _ => (signed(value, bits) >> count) as u64,
        } & mask(bits);
        self.cpu.result_flags(result, bits);
        self.cpu.write(to, bits, result);
        self.defined = (true, false, false);
    }

    fn bit(&mut self, label: &str) {
        let bits = self.bits().max(16);
        let to = self.place(bits);
        let number = self.random.below(bits as usize) as u32;
        let name = self.random.pick(&["bt", "bts", "btr", "btc"]);
        let lock = if name == "bt" { "" } else { self.lock(to) };
        self.row(label, &format!("{lock}{name}"), bits, &[to, Operand::Number(number.into())]);
        let value = self.cpu.read(to, bits);
        self.cpu.carry = value >> number & 1 == 1;
        match name {
            "bts" => self.cpu.write(to, bits, value | 1 << number),
            "btr" => self.cpu.write(to, bits, value & !(1 << number)),
            "btc" => self.cpu.write(to, bits, value ^ 1 << number),
            _ => {}
        }
        self.defined = (false, true, false);
    }

    fn exchange(&mut self, label: &str, bits: u32) {
        let to = self.place(bits);
        let with = self.register(bits);
        let (a, b) = (self.cpu.read(to, bits), self.cpu.read(with, bits));
        if self.random.below(2) == 0 {
            self.row(label, "xchg", bits, &[to, with]);
            self.cpu.write(to, bits, b);
            self.cpu.write(with, bits, a);
        } else {
            let lock = self.lock(to);
            self.row(label, &format!("{lock}xadd"), bits, &[to, with]);
            let sum = self.cpu.add(a, b, bits);
            self.cpu.write(with, bits, a);
            self.cpu.write(to, bits, sum);
            self.defined = (true, true, true);
        }
    }

    fn compare_exchange(&mut self, label: &str, bits: u32) {
        let to = self.place(bits);
        let new = self.register(bits);
        let lock = self.lock(to);
        self.row(label, &format!("{lock}cmpxchg"), bits, &[to, new]);
        let accumulator = Operand::Register(0, false);
        let (old, expected) = (self.cpu.read(to, bits), self.cpu.read(accumulator, bits));
        let value = self.cpu.read(new, bits);
        self.cpu.sub(expected, old, bits);
        if old == expected {
            self.cpu.write(to, bits, value);
        } else {
            self.cpu.write(accumulator, bits, old);
        }
        self.defined = (true, true, true);
    }

    fn set(&mut self, label: &str) {
        let Some(condition) = self.condition() else { return self.instruction_without_flags(label) };
        let to = self.place(8);
        let shown = self.show(to, 8);
        writeln!(self.rows, " {label}set{condition} {shown} ;").unwrap();
        let value = self.cpu.holds(condition);
        self.cpu.write(to, 8, value.into());
    }

    fn conditional_move(&mut self, label: &str) {
        let Some(condition) = self.condition() else { return self.instruction_without_flags(label) };
        let bits = self.bits().max(16);
        let to = Operand::Register(self.random.below(4), false);
        let from = self.place(bits);
        self.row(label, &format!("cmov{condition}"), bits, &[to, from]);
        let value =
            if self.cpu.holds(condition) { self.cpu.read(from, bits) } else { self.cpu.read(to, bits) };
        self.cpu.write(to, bits, value);
    }

    fn instruction_without_flags(&mut self, label: &str) {
        writeln!(self.rows, " {label}nop ;").unwrap();
    }

    fn extend(&mut self, label: &str) {
        let from_bits = self.random.pick(&[8, 16]);
        let bits = self.bits().max(2 * from_bits);
        let to = Operand::Register(self.random.below(4), false);
        let from = self.place(from_bits);
        let sign = self.random.below(2) == 0;
        let letter = if sign { "s" } else { "z" };
        let (shown_to, shown_from) = (self.show(to, bits), self.show(from, from_bits));
        if self.intel {
            writeln!(self.rows, " {label}mov{letter}x {shown_to}, {shown_from} ;").unwrap();
        } else {
            let suffixes = format!("{}{}", SUFFIXES[slot(from_bits)], SUFFIXES[slot(bits)]);
            writeln!(self.rows, " {label}mov{letter}{suffixes} {shown_from}, {shown_to} ;").unwrap();
        }
        let value = self.cpu.read(from, from_bits);
        self.cpu.write(to, bits, if sign { signed(value, from_bits) as u64 } else { value });
    }
}

fn signed(value: u64, bits: u32) -> i64 {
    (value as i64) << (64 - bits) >> (64 - bits)
}
