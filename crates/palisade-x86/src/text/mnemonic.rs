//! What mnemonics of AT&T syntax stand for.
//!
//! The library that encodes instructions knows them by the names of the processor's manual. Most names of AT&T syntax
//! are these, with a letter for the size of the operands. This file has the others.

use iced_x86::{Code, EncodingKind};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A reading of a mnemonic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    /// Its name in the manual, in lower case.
    pub(super) name: String,
    /// The size of its operands, if it says so.
    pub(super) size: Option<usize>,
    /// The size of its source, if that is another one.
    pub(super) from: Option<usize>,
}

/// The size that a letter stands for.
fn size_of(letter: char) -> Option<usize> {
    Some(match letter {
        'b' => 1,
        'w' => 2,
        'l' => 4,
        'q' => 8,
        _ => return None,
    })
}

/// The forms of each instruction of 64-bit code that are not about vectors of 256 bits and more.
pub(super) fn forms(name: &str) -> &'static [Code] {
    static FORMS: OnceLock<BTreeMap<String, Vec<Code>>> = OnceLock::new();
    let forms = FORMS.get_or_init(|| {
        let mut forms: BTreeMap<String, Vec<Code>> = BTreeMap::new();
        for code in Code::values() {
            let info = code.op_code();
            if info.is_instruction() && info.mode64() && info.encoding() == EncodingKind::Legacy {
                let name = format!("{:?}", code.mnemonic()).to_ascii_lowercase();
                forms.entry(name).or_default().push(code);
            }
        }
        forms
    });
    forms.get(name).map_or(&[], Vec::as_slice)
}

/// The readings of a mnemonic, of which the first that fits counts.
pub(super) fn readings(mnemonic: &str) -> Vec<Wanted> {
    let wanted = |name: &str, size| Wanted { name: name.to_owned(), size, from: None };
    if let Some((name, to, from)) = extension(mnemonic) {
        return vec![Wanted { name: name.to_owned(), size: Some(to), from: Some(from) }];
    }
    for family in ["set", "cmov"] {
        let Some(rest) = mnemonic.strip_prefix(family) else { continue };
        if let Some(condition) = condition(rest) {
            return vec![wanted(&format!("{family}{}", CONDITIONS[condition]), None)];
        }
        let letter = rest.chars().next_back().and_then(size_of);
        if let (Some(size), true) = (letter, rest.is_ascii())
            && let Some(condition) = condition(&rest[..rest.len() - 1])
        {
            return vec![wanted(&format!("{family}{}", CONDITIONS[condition]), Some(size))];
        }
    }
    let mut found = vec![wanted(renamed(mnemonic), None)];
    if let Some(letter) = mnemonic.chars().next_back()
        && let Some(size) = size_of(letter)
    {
        found.push(wanted(renamed(&mnemonic[..mnemonic.len() - 1]), Some(size)));
    }
    found.retain(|wanted| !forms(&wanted.name).is_empty());
    found
}

/// Names that differ from those of the manual.
fn renamed(name: &str) -> &str {
    match name {
        "sal" => "shl",
        "cbtw" => "cbw",
        "cwtl" => "cwde",
        "cltq" => "cdqe",
        "cwtd" => "cwd",
        "cltd" => "cdq",
        "cqto" => "cqo",
        name => name,
    }
}

/// `movsbl` and the like: the name in the manual, the size of the target, and that of the source.
fn extension(mnemonic: &str) -> Option<(&'static str, usize, usize)> {
    let letters: Vec<char> = mnemonic.strip_prefix("mov")?.chars().collect();
    let [kind @ ('s' | 'z'), from, to] = letters[..] else { return None };
    let (from, to) = (size_of(from)?, size_of(to)?);
    let name = match (kind, from) {
        ('s', 4) => "movsxd",
        ('s', _) => "movsx",
        ('z', 1 | 2) => "movzx",
        _ => return None,
    };
    (from < to).then_some((name, to, from))
}

/// The conditions, by their numbers in instructions.
pub(super) const CONDITIONS: [&str; 16] =
    ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];

/// The number of a condition, by any of its names.
pub(super) fn condition(name: &str) -> Option<usize> {
    let name = match name {
        "c" | "nae" => "b",
        "nb" | "nc" => "ae",
        "z" => "e",
        "nz" => "ne",
        "na" => "be",
        "nbe" => "a",
        "pe" => "p",
        "po" => "np",
        "nge" => "l",
        "nl" => "ge",
        "ng" => "le",
        "nle" => "g",
        name => name,
    };
    CONDITIONS.iter().position(|known| *known == name)
}

/// Instructions without operands whose name stands for several forms in the manual.
pub(super) fn without_operands(mnemonic: &str) -> Option<&'static [u8]> {
    Some(match mnemonic {
        "ret" | "retq" => &[0xc3],
        "leave" | "leaveq" => &[0xc9],
        "nop" => &[0x90],
        _ => return None,
    })
}

/// Instructions on strings, with their operands as they may be written.
pub(super) fn string(mnemonic: &str) -> Option<(Vec<u8>, &'static str)> {
    let family = mnemonic.get(..4)?;
    let mut letters = mnemonic[4..].chars();
    let (size, None) = (size_of(letters.next()?)?, letters.next()) else { return None };
    let accumulator = ["%al", "%ax", "%eax", "%rax"][size.trailing_zeros() as usize];
    let (opcode, operands) = match (family, accumulator) {
        ("movs", _) => (0xa4, "(%rsi),%es:(%rdi)"),
        ("cmps", _) => (0xa6, "%es:(%rdi),(%rsi)"),
        ("stos", "%al") => (0xaa, "%al,%es:(%rdi)"),
        ("stos", "%ax") => (0xaa, "%ax,%es:(%rdi)"),
        ("stos", "%eax") => (0xaa, "%eax,%es:(%rdi)"),
        ("stos", _) => (0xaa, "%rax,%es:(%rdi)"),
        ("lods", "%al") => (0xac, "(%rsi),%al"),
        ("lods", "%ax") => (0xac, "(%rsi),%ax"),
        ("lods", "%eax") => (0xac, "(%rsi),%eax"),
        ("lods", _) => (0xac, "(%rsi),%rax"),
        ("scas", "%al") => (0xae, "%es:(%rdi),%al"),
        ("scas", "%ax") => (0xae, "%es:(%rdi),%ax"),
        ("scas", "%eax") => (0xae, "%es:(%rdi),%eax"),
        ("scas", _) => (0xae, "%es:(%rdi),%rax"),
        _ => return None,
    };
    let bytes = match size {
        1 => vec![opcode],
        2 => vec![0x66, opcode + 1],
        4 => vec![opcode + 1],
        _ => vec![0x48, opcode + 1],
    };
    Some((bytes, operands))
}

/// The byte of a prefix.
pub(super) fn prefix(name: &str) -> Option<u8> {
    Some(match name {
        "lock" => 0xf0,
        "rep" | "repe" | "repz" => 0xf3,
        "repne" | "repnz" => 0xf2,
        "data16" => 0x66,
        "addr32" => 0x67,
        "notrack" => 0x3e,
        "rex64" => 0x48,
        _ => return None,
    })
}
