//! Operands in AT&T syntax: `%rax`, `$5`, `8(%rdi,%rcx,4)`, `%fs:x@TPOFF`, `*%rax`.

use super::expression::{self, Expression, Lookup};
use super::lexer::Cursor;
use iced_x86::Register;
use palisade_base::Span;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// An operand.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) what: What,
    /// Whether a `*` is before it.
    pub(super) starred: bool,
    pub(super) span: Span,
}

/// What an operand is.
#[derive(Clone, Debug)]
pub(super) enum What {
    Register(Register),
    Immediate(Expression),
    Memory(Memory),
}

/// An address.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) segment: Option<Register>,
    pub(super) displacement: Option<Expression>,
    pub(super) base: Option<Register>,
    pub(super) index: Option<Register>,
    pub(super) scale: u32,
}

impl Memory {
    /// The expression, if there is nothing else: where a jump leads.
    pub(super) fn only_expression(&self) -> Option<&Expression> {
        let bare = self.segment.is_none() && self.base.is_none() && self.index.is_none();
        self.displacement.as_ref().filter(|_| bare)
    }
}

/// The registers by their names.
fn registers() -> &'static BTreeMap<String, Register> {
    static NAMES: OnceLock<BTreeMap<String, Register>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let wanted = |register: &Register| {
            register.is_gpr()
                || register.is_segment_register()
                || register.is_xmm()
                || register.is_mm()
                || *register == Register::RIP
        };
        Register::values()
            .filter(wanted)
            .map(|register| {
                // The library writes `R8L` for what is written `%r8b`.
                let name = format!("{register:?}").to_ascii_lowercase();
                let name = match name.strip_suffix('l') {
                    Some(number) if number[1..].parse::<u8>().is_ok() => format!("{number}b"),
                    _ => name,
                };
                (name, register)
            })
            .collect()
    })
}

/// Reads the operands of an instruction. Fails with what is not read, and where.
pub(super) fn read(cursor: &mut Cursor<'_>, lookup: &mut dyn Lookup) -> Result<Vec<Operand>, (String, Span)> {
    let mut found = Vec::new();
    if cursor.is_at_end() {
        return Ok(found);
    }
    loop {
        let before = cursor.clone();
        let starred = cursor.eat('*');
        let what = operand(cursor, lookup).map_err(|why| (why, before.span()))?;
        found.push(Operand { what, starred, span: cursor.since(&before) });
        if cursor.is_at_end() {
            return Ok(found);
        }
        if !cursor.eat(',') {
            return Err(("something after an operand that is not read".to_owned(), cursor.span()));
        }
    }
}

fn register(cursor: &mut Cursor<'_>) -> Result<Register, String> {
    if !cursor.eat('%') {
        return Err("a register is expected here".to_owned());
    }
    let name = cursor.take_while(|c| c.is_ascii_alphanumeric()).to_ascii_lowercase();
    match registers().get(&name) {
        Some(register) if !cursor.rest().starts_with('(') => Ok(*register),
        _ => Err(format!("the register `%{name}`")),
    }
}

fn operand(cursor: &mut Cursor<'_>, lookup: &mut dyn Lookup) -> Result<What, String> {
    match cursor.peek() {
        Some('$') => {
            cursor.bump();
            expression::read(cursor, lookup).map(What::Immediate)
        }
        Some('%') => {
            let found = register(cursor)?;
            if found.is_segment_register() && cursor.eat(':') {
                return memory(cursor, lookup, Some(found)).map(What::Memory);
            }
            match found.is_segment_register() || found == Register::RIP {
                true => Err(format!("the register `{found:?}`")),
                false => Ok(What::Register(found)),
            }
        }
        _ => memory(cursor, lookup, None).map(What::Memory),
    }
}

fn memory(
    cursor: &mut Cursor<'_>,
    lookup: &mut dyn Lookup,
    segment: Option<Register>,
) -> Result<Memory, String> {
    // A parenthesis begins a base, unless an expression is in it.
    let is_base = |cursor: &Cursor<'_>| {
        let mut ahead = cursor.clone();
        ahead.eat('(') && matches!(ahead.peek(), Some('%' | ','))
    };
    let displacement = match is_base(cursor) {
        true => None,
        false => Some(expression::read(cursor, lookup)?),
    };
    let mut found = Memory { segment, displacement, base: None, index: None, scale: 1 };
    if !cursor.eat('(') {
        return Ok(found);
    }
    if cursor.peek() != Some(',') {
        found.base = Some(register(cursor)?);
    }
    if cursor.eat(',') {
        found.index = Some(register(cursor)?);
        if cursor.eat(',') {
            let scale = expression::read(cursor, lookup)?.value();
            found.scale = match scale {
                Some(scale @ (1 | 2 | 4 | 8)) => scale as u32,
                _ => return Err("a scale other than 1, 2, 4 and 8".to_owned()),
            };
        }
    }
    let is_address = |register: Register| register.is_gpr64() || register.is_gpr32();
    let fits = match (found.base, found.index) {
        (Some(Register::RIP), None) | (None, None) => true,
        (base, index) => {
            let same = base.zip(index).is_none_or(|(base, index)| base.size() == index.size());
            let used = [base, index].into_iter().flatten();
            same && used.into_iter().all(is_address) && !matches!(index, Some(Register::RSP | Register::ESP))
        }
    };
    match (fits, cursor.eat(')')) {
        (true, true) => Ok(found),
        (false, _) => Err("an address with such registers".to_owned()),
        (_, false) => Err("a `(` without its `)`".to_owned()),
    }
}
