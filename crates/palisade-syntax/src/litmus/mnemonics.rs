//! The supported instructions, by name.

use super::registers::Width;

/// The meaning of a mnemonic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mnemonic {
    pub(super) op: Op,
    /// The width given by its suffix.
    pub(super) width: Option<Width>,
}

impl Mnemonic {
    /// Whether its operand is a label.
    pub(super) fn is_jump(self) -> bool {
        matches!(self.op, Op::Jmp | Op::Jcc(_))
    }
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Mov,
    /// `movzx`, with the width of the source if the name contains it.
    MovZero(Option<Width>),
    /// `movsx`, in the same way.
    MovSign(Option<Width>),
    Lea,
    Xchg,
    /// herd's exchange without a lock.
    XchgUnlocked,
    Cmpxchg,
    Xadd,
    /// `add`, `sub`, `and`, `or` and `xor`.
    Binary(Arith),
    Cmp,
    Test,
    Inc,
    Dec,
    Neg,
    Not,
    Shift(Shift),
    /// `bt`, `bts`, `btr` and `btc`.
    Bit(BitOp),
    Jmp,
    Jcc(Cc),
    Set(Cc),
    Cmov(Cc),
    Mfence,
    Sfence,
    /// `lfence`, `nop` and `pause`: no effect in these memory models.
    Nothing,
}

/// Arithmetic with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arith {
    Add,
    Sub,
    And,
    Or,
    Xor,
}

/// Shifts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shift {
    Left,
    Logical,
    Arithmetic,
}

/// What happens to the tested bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BitOp {
    Keep,
    Set,
    Reset,
    Complement,
}

/// Conditions on the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cc {
    Equal,
    NotEqual,
    Less,
    GreaterEqual,
    LessEqual,
    Greater,
    Below,
    AboveEqual,
    BelowEqual,
    Above,
    Sign,
    NotSign,
    Overflow,
    NotOverflow,
}

/// Why a mnemonic is not supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unknown {
    /// An x86 instruction that Palisade does not model, and why.
    Unsupported(&'static str),
    /// Not an instruction.
    NotAnInstruction,
}

/// Names for suggestions.
pub(super) const NAMES: [&str; 40] = [
    "mov", "movb", "movw", "movl", "movq", "movzx", "movsx", "lea", "xchg", "cmpxchg", "xadd", "add", "sub",
    "and", "or", "xor", "cmp", "test", "inc", "dec", "neg", "not", "shl", "shr", "sar", "bts", "jmp", "je",
    "jne", "jl", "jle", "jg", "jge", "ja", "jb", "mfence", "sfence", "lfence", "lock", "nop",
];

/// Looks up a mnemonic, ignoring case.
pub(super) fn mnemonic(name: &str) -> Result<Mnemonic, Unknown> {
    let mut buffer = [0; 16];
    let lower = buffer.get_mut(..name.len()).ok_or(Unknown::NotAnInstruction)?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let lower = std::str::from_utf8(lower).map_err(|_| Unknown::NotAnInstruction)?;
    if let Some(op) = plain(lower) {
        return Ok(Mnemonic { op, width: None });
    }
    if let Some(mnemonic) = extending(lower) {
        return Ok(mnemonic);
    }
    if let Some(width) = suffix(lower)
        && let Some(op) = plain(&lower[..lower.len() - 1])
        && takes_suffix(op)
    {
        return Ok(Mnemonic { op, width: Some(width) });
    }
    Err(unsupported(lower).map_or(Unknown::NotAnInstruction, Unknown::Unsupported))
}

fn plain(name: &str) -> Option<Op> {
    Some(match name {
        "mov" | "movabs" => Op::Mov,
        "movzx" => Op::MovZero(None),
        "movsx" => Op::MovSign(None),
        "movsxd" => Op::MovSign(Some(Width::LONG)),
        "lea" => Op::Lea,
        "xchg" => Op::Xchg,
        "uxch" => Op::XchgUnlocked,
        "cmpxchg" => Op::Cmpxchg,
        "xadd" => Op::Xadd,
        "add" => Op::Binary(Arith::Add),
        "sub" => Op::Binary(Arith::Sub),
        "and" => Op::Binary(Arith::And),
        "or" => Op::Binary(Arith::Or),
        "xor" => Op::Binary(Arith::Xor),
        "cmp" => Op::Cmp,
        "test" => Op::Test,
        "inc" => Op::Inc,
        "dec" => Op::Dec,
        "neg" => Op::Neg,
        "not" => Op::Not,
        "shl" | "sal" => Op::Shift(Shift::Left),
        "shr" => Op::Shift(Shift::Logical),
        "sar" => Op::Shift(Shift::Arithmetic),
        "bt" => Op::Bit(BitOp::Keep),
        "bts" => Op::Bit(BitOp::Set),
        "btr" => Op::Bit(BitOp::Reset),
        "btc" => Op::Bit(BitOp::Complement),
        "jmp" => Op::Jmp,
        "mfence" => Op::Mfence,
        "sfence" => Op::Sfence,
        "lfence" | "nop" | "pause" => Op::Nothing,
        _ => {
            let (of, code) = if let Some(code) = name.strip_prefix("set") {
                (Op::Set as fn(Cc) -> Op, code)
            } else if let Some(code) = name.strip_prefix("cmov") {
                (Op::Cmov as fn(Cc) -> Op, code)
            } else {
                (Op::Jcc as fn(Cc) -> Op, name.strip_prefix('j')?)
            };
            of(condition(code)?)
        }
    })
}

fn condition(code: &str) -> Option<Cc> {
    Some(match code {
        "e" | "z" => Cc::Equal,
        "ne" | "nz" => Cc::NotEqual,
        // herd calls these `jlt` and `jgt`.
        "l" | "nge" | "lt" => Cc::Less,
        "g" | "nle" | "gt" => Cc::Greater,
        "ge" | "nl" => Cc::GreaterEqual,
        "le" | "ng" => Cc::LessEqual,
        "b" | "nae" | "c" => Cc::Below,
        "ae" | "nb" | "nc" => Cc::AboveEqual,
        "be" | "na" => Cc::BelowEqual,
        "a" | "nbe" => Cc::Above,
        "s" => Cc::Sign,
        "ns" => Cc::NotSign,
        "o" => Cc::Overflow,
        "no" => Cc::NotOverflow,
        _ => return None,
    })
}

/// `movzbl`, `movslq` and similar mnemonics.
fn extending(name: &str) -> Option<Mnemonic> {
    let (of, widths) = match (name.strip_prefix("movz"), name.strip_prefix("movs")) {
        (Some(widths), _) => (Op::MovZero as fn(Option<Width>) -> Op, widths),
        (_, Some(widths)) => (Op::MovSign as fn(Option<Width>) -> Op, widths),
        _ => return None,
    };
    let [from, to] = <[u8; 2]>::try_from(widths.as_bytes()).ok()?;
    let (from, to) = (letter(from)?, letter(to)?);
    (from < to).then(|| Mnemonic { op: of(Some(from)), width: Some(to) })
}

fn suffix(name: &str) -> Option<Width> {
    letter(*name.as_bytes().last()?)
}

fn letter(letter: u8) -> Option<Width> {
    Some(match letter {
        b'b' => Width::BYTE,
        b'w' => Width::WORD,
        b'l' => Width::LONG,
        b'q' => Width::QUAD,
        _ => return None,
    })
}

fn takes_suffix(op: Op) -> bool {
    !matches!(
        op,
        Op::Jmp | Op::Jcc(_) | Op::Set(_) | Op::Mfence | Op::Sfence | Op::MovZero(_) | Op::MovSign(_)
    )
}

/// Why an instruction is not modelled.
fn unsupported(name: &str) -> Option<&'static str> {
    let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if is(&["clflush", "clwb", "prefetch", "invlpg", "wbinvd"]) {
        Some("caches are not part of these memory models")
    } else if is(&["movnt", "maskmov"]) {
        Some("non-temporal accesses do not follow these memory models")
    } else if is(&["push", "pop", "call", "ret", "enter", "leave"]) {
        Some("the stack is not modelled")
    } else if is(&["xbegin", "xend", "xabort", "xtest"]) {
        Some("transactions are not modelled")
    } else if is(&["jp", "jnp", "setp", "setnp", "cmovp", "cmovnp"]) {
        Some("the parity flag is not modelled")
    } else if is(&[
        "adc",
        "sbb",
        "mul",
        "imul",
        "div",
        "idiv",
        "rol",
        "ror",
        "cmpxchg8b",
        "cmpxchg16b",
        "bsf",
        "bsr",
    ]) {
        Some("this arithmetic is not modelled")
    } else if is(&[
        "movd", "movs", "movap", "movup", "movaps", "stos", "lods", "cmps", "scas", "rep", "cpuid", "int",
        "sys", "hlt",
    ]) {
        Some("this instruction is not modelled")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics_are_found_with_their_widths() {
        let check = |name: &str, op: Op, width: Option<u32>| {
            assert_eq!(mnemonic(name), Ok(Mnemonic { op, width: width.map(Width) }), "{name}");
        };
        check("mov", Op::Mov, None);
        check("MOVQ", Op::Mov, Some(64));
        check("movb", Op::Mov, Some(8));
        check("movzbl", Op::MovZero(Some(Width::BYTE)), Some(32));
        check("movslq", Op::MovSign(Some(Width::LONG)), Some(64));
        check("movzx", Op::MovZero(None), None);
        check("cmpxchgl", Op::Cmpxchg, Some(32));
        check("subl", Op::Binary(Arith::Sub), Some(32));
        check("shl", Op::Shift(Shift::Left), None);
        check("shll", Op::Shift(Shift::Left), Some(32));
        check("setl", Op::Set(Cc::Less), None);
        check("setnb", Op::Set(Cc::AboveEqual), None);
        check("cmovl", Op::Cmov(Cc::Less), None);
        check("cmovll", Op::Cmov(Cc::Less), Some(32));
        check("cmovcq", Op::Cmov(Cc::Below), Some(64));
        check("jlt", Op::Jcc(Cc::Less), None);
        check("JNE", Op::Jcc(Cc::NotEqual), None);
        check("nopl", Op::Nothing, Some(32));
    }

    #[test]
    fn unsupported_instructions_say_why() {
        let check = |name: &str, known: bool| {
            let found = mnemonic(name).expect_err(name);
            assert_eq!(matches!(found, Unknown::Unsupported(_)), known, "{name}");
        };
        check("clflush", true);
        check("movntiq", true);
        check("pushq", true);
        check("jp", true);
        check("imull", true);
        check("movsd", true);
        check("mvo", false);
        check("jmpq", false);
        check("", false);
        check("x", false);
        check("averyverylongname", false);
    }
}
