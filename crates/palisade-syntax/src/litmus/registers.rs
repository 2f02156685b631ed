//! Registers and their parts.

use super::heading::Arch;
use std::fmt;

/// A width in bits: 8, 16, 32 or 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Width(pub(super) u32);

impl Width {
    pub(super) const BYTE: Width = Width(8);
    pub(super) const WORD: Width = Width(16);
    pub(super) const LONG: Width = Width(32);
    pub(super) const QUAD: Width = Width(64);

    /// The smallest signed integer of this width.
    pub(super) fn least(self) -> i128 {
        -(1 << (self.0 - 1))
    }

    /// The largest signed integer of this width.
    pub(super) fn greatest(self) -> i128 {
        (1 << (self.0 - 1)) - 1
    }

    /// Its size in bytes.
    pub(super) fn bytes(self) -> i64 {
        i64::from(self.0 / 8)
    }

    /// The signed integer with the same bits, if the number fits as a signed or unsigned integer.
    pub(super) fn signed(self, number: i128) -> Option<i64> {
        let range = 1_i128 << self.0;
        match number {
            _ if number < self.least() || number >= range => None,
            _ if number > self.greatest() => i64::try_from(number - range).ok(),
            _ => i64::try_from(number).ok(),
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One of the sixteen general registers, including all its parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Family(pub(super) u8);

impl Family {
    /// The one that `cmpxchg` compares with.
    pub(super) const ACCUMULATOR: Family = Family(0);
    /// The number of registers.
    pub(super) const COUNT: usize = 16;
}

/// A part of a register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Part {
    Low8,
    /// Bits 8 to 15, such as `ah`.
    High8,
    Low16,
    Low32,
    All64,
}

impl Part {
    pub(super) fn width(self) -> Width {
        match self {
            Part::Low8 | Part::High8 => Width::BYTE,
            Part::Low16 => Width::WORD,
            Part::Low32 => Width::LONG,
            Part::All64 => Width::QUAD,
        }
    }

    /// How many bits of the register a program must keep if it uses this part.
    pub(super) fn reach(self) -> Width {
        if self == Part::High8 { Width::WORD } else { self.width() }
    }

    /// This many of the lowest bits.
    pub(super) fn low(width: Width) -> Part {
        match width.0 {
            8 => Part::Low8,
            16 => Part::Low16,
            32 => Part::Low32,
            _ => Part::All64,
        }
    }
}

/// A register as an instruction names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Register {
    pub(super) family: Family,
    pub(super) part: Part,
}

const LETTERS: [(&str, u8); 4] = [("a", 0), ("c", 1), ("d", 2), ("b", 3)];
const POINTERS: [(&str, u8); 4] = [("sp", 4), ("bp", 5), ("si", 6), ("di", 7)];

/// The register with a name, ignoring case. The 64-bit registers exist only on X86_64.
pub(super) fn register(name: &str, arch: Arch) -> Option<Register> {
    let mut buffer = [0; 4];
    let lower = buffer.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let lower = std::str::from_utf8(lower).ok()?;
    let (register, only_64) = lookup(lower)?;
    (arch == Arch::X86_64 || !only_64).then_some(register)
}

/// All names, for suggestions.
pub(super) fn register_names(arch: Arch) -> impl Iterator<Item = &'static str> {
    const NAMES: [&str; 16] = [
        "eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", "esp", "rax", "rbx", "rcx", "rdx", "rsi", "rdi",
        "rbp", "rsp",
    ];
    NAMES.into_iter().take(if arch == Arch::X86 { 8 } else { 16 })
}

/// The register and whether it exists only on X86_64.
fn lookup(name: &str) -> Option<(Register, bool)> {
    let make = |family: u8, part, only_64| Some((Register { family: Family(family), part }, only_64));
    if let Some(number) = name.strip_prefix('r').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        let digits = number.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let family = digits.parse::<u8>().ok().filter(|n| (8..16).contains(n) && !digits.starts_with('0'))?;
        let part = match &number[digits.len()..] {
            "" => Part::All64,
            "d" => Part::Low32,
            "w" => Part::Low16,
            "b" | "l" => Part::Low8,
            _ => return None,
        };
        return make(family, part, true);
    }
    for (letter, family) in LETTERS {
        match name.strip_prefix(letter) {
            Some("l") => return make(family, Part::Low8, false),
            Some("h") => return make(family, Part::High8, false),
            Some("x") => return make(family, Part::Low16, false),
            _ => {}
        }
        match name.strip_suffix('x').and_then(|rest| rest.strip_suffix(letter)) {
            Some("e") => return make(family, Part::Low32, false),
            Some("r") => return make(family, Part::All64, true),
            _ => {}
        }
    }
    for (letters, family) in POINTERS {
        match name.strip_prefix(letters) {
            Some("") => return make(family, Part::Low16, false),
            Some("l") => return make(family, Part::Low8, true),
            _ => {}
        }
        match name.strip_suffix(letters) {
            Some("e") => return make(family, Part::Low32, false),
            Some("r") => return make(family, Part::All64, true),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_every_width() {
        let check = |name: &str, expected: Option<(u8, Part)>| {
            let found = register(name, Arch::X86_64).map(|r| (r.family.0, r.part));
            assert_eq!(found, expected, "{name}");
        };
        check("rax", Some((0, Part::All64)));
        check("EAX", Some((0, Part::Low32)));
        check("ax", Some((0, Part::Low16)));
        check("al", Some((0, Part::Low8)));
        check("AH", Some((0, Part::High8)));
        check("rbx", Some((3, Part::All64)));
        check("edx", Some((2, Part::Low32)));
        check("rsi", Some((6, Part::All64)));
        check("edi", Some((7, Part::Low32)));
        check("sil", Some((6, Part::Low8)));
        check("rbp", Some((5, Part::All64)));
        check("r8", Some((8, Part::All64)));
        check("R15d", Some((15, Part::Low32)));
        check("r9w", Some((9, Part::Low16)));
        check("r10b", Some((10, Part::Low8)));
        check("r7", None);
        check("r16", None);
        check("r08", None);
        check("x", None);
        check("eex", None);
        check("", None);
        check("eaxx", None);
        check("é", None);
        assert_eq!(register("rax", Arch::X86), None);
        assert_eq!(register("r8d", Arch::X86), None);
        assert!(register("eax", Arch::X86).is_some());
    }

    #[test]
    fn numbers_are_signed_or_unsigned() {
        assert_eq!(Width::LONG.signed(4_294_967_295), Some(-1));
        assert_eq!(Width::LONG.signed(-1), Some(-1));
        assert_eq!(Width::LONG.signed(4_294_967_296), None);
        assert_eq!(Width::BYTE.signed(-129), None);
        assert_eq!(Width::BYTE.signed(200), Some(-56));
        assert_eq!(Width::QUAD.signed(u64::MAX.into()), Some(-1));
    }
}
