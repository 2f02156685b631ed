//! General registers by number, and sets of them.
//!
//! *Source.* System V ABI, AMD64 Architecture Processor Supplement, section 3.2.3 (parameter passing).

use iced_x86::Register;

/// A general register: its number in instructions, `rax` is 0 and `rsp` is 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Gpr(pub(crate) u8);

/// Their names.
pub(crate) const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

pub(crate) const RAX: Gpr = Gpr(0);
pub(crate) const RDX: Gpr = Gpr(2);
pub(crate) const RSP: Gpr = Gpr(4);
pub(crate) const RBP: Gpr = Gpr(5);

/// The registers that hold the first integer arguments.
pub(crate) const ARGUMENTS: [Gpr; 6] = [Gpr(7), Gpr(6), Gpr(2), Gpr(1), Gpr(8), Gpr(9)];

/// The registers that a function must leave as they were.
pub(crate) const SAVED: [Gpr; 6] = [Gpr(3), Gpr(5), Gpr(12), Gpr(13), Gpr(14), Gpr(15)];

impl Gpr {
    /// The general register that a register is, or is part of.
    pub(crate) fn of(register: Register) -> Option<Gpr> {
        let full = register.full_register();
        full.is_gpr64().then(|| Gpr(full.number() as u8))
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES[self.0 as usize]
    }

    pub(crate) fn all() -> impl Iterator<Item = Gpr> {
        (0..16).map(Gpr)
    }
}

/// A set of parts of general registers, and of flags: three bits for the lowest byte of a register, the one above it, and
/// the rest.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Set(u64);

/// The flags, as one member of a set.
pub(crate) const FLAGS: Set = Set(1 << 60);

impl Set {
    pub(crate) fn of(registers: &[Gpr]) -> Set {
        Set(registers.iter().fold(0, |set, register| set | 7 << (3 * register.0)))
    }

    /// The part of a general register that a register is.
    pub(crate) fn part(register: Register) -> Option<Set> {
        let parts = match register.size() {
            1 if matches!(register, Register::AH | Register::BH | Register::CH | Register::DH) => 2,
            1 => 1,
            2 => 3,
            _ => 7,
        };
        Gpr::of(register).map(|full| Set(parts << (3 * full.0)))
    }

    /// The registers that a function may change.
    pub(crate) fn volatile() -> Set {
        let all: Vec<Gpr> = Gpr::all().collect();
        Set::of(&all).without(Set::of(&SAVED)).without(Set::of(&[RSP]))
    }

    pub(crate) fn has(self, register: Gpr) -> bool {
        self.0 & 7 << (3 * register.0) != 0
    }

    /// The lowest bytes of a register: one, or two.
    pub(crate) fn lowest(register: Gpr, bytes: u32) -> Set {
        Set(((1 << bytes) - 1) << (3 * register.0))
    }

    /// The parts of a register that are in the set.
    pub(crate) fn part_of(self, register: Gpr) -> Set {
        Set(self.0 & 7 << (3 * register.0))
    }

    /// The same parts of another register.
    pub(crate) fn moved(self, from: Gpr, to: Gpr) -> Set {
        Set((self.0 >> (3 * from.0) & 7) << (3 * to.0))
    }

    /// Everything of a register up to the highest part that is in the set.
    pub(crate) fn up_to(self, register: Gpr) -> Set {
        let all = match self.0 >> (3 * register.0) & 7 {
            0 => 0,
            1 => 1,
            2 | 3 => 3,
            _ => 7,
        };
        Set(all << (3 * register.0))
    }

    /// How many of the lowest bits of a register are in the set, at least.
    pub(crate) fn bits(self, register: Gpr) -> u32 {
        match self.0 >> (3 * register.0) & 7 {
            0 => 0,
            1 => 8,
            2 | 3 => 16,
            _ => 32,
        }
    }

    pub(crate) fn has_flags(self) -> bool {
        self.0 & FLAGS.0 != 0
    }

    pub(crate) fn with(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Set) -> Set {
        Set(self.0 & !other.0)
    }
}
