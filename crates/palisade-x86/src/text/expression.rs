//! Expressions: a constant, plus and minus symbols, with at most one suffix such as `@PLT`.

use super::lexer::Cursor;

/// A symbol, by its index in the table of symbols.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct SymbolId(pub(super) usize);

/// How the linker is to refer to a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Suffix {
    /// `@PLT`.
    Call,
    /// `@GOTPCREL`.
    TableEntry,
    /// `@GOTTPOFF`.
    ThreadTableEntry,
    /// `@TPOFF`.
    ThreadPosition,
    /// `@TLSGD`, `@TLSLD` and `@DTPOFF`: the number of the relocation in the ABI.
    Shared(u32),
}

impl Suffix {
    fn of(name: &str) -> Option<Suffix> {
        Some(match name.to_ascii_uppercase().as_str() {
            "PLT" => Suffix::Call,
            "GOTPCREL" => Suffix::TableEntry,
            "GOTTPOFF" => Suffix::ThreadTableEntry,
            "TPOFF" => Suffix::ThreadPosition,
            "TLSGD" => Suffix::Shared(19),
            "TLSLD" => Suffix::Shared(20),
            "DTPOFF" => Suffix::Shared(21),
            _ => return None,
        })
    }
}

/// A sum.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Expression {
    pub(super) constant: i128,
    pub(super) plus: Vec<SymbolId>,
    pub(super) minus: Vec<SymbolId>,
    pub(super) suffix: Option<Suffix>,
}

impl Expression {
    pub(super) fn number(constant: i128) -> Expression {
        Expression { constant, ..Expression::default() }
    }

    pub(super) fn symbol(symbol: SymbolId) -> Expression {
        Expression { plus: vec![symbol], ..Expression::default() }
    }

    /// Its value, if no symbol is in it.
    pub(super) fn value(&self) -> Option<i128> {
        (self.plus.is_empty() && self.minus.is_empty() && self.suffix.is_none()).then_some(self.constant)
    }

    /// The same, unless its number is far from all that has a meaning.
    fn bounded(self) -> Option<Expression> {
        (self.constant.unsigned_abs() < 1 << 70).then_some(self)
    }

    fn negated(self) -> Option<Expression> {
        let Expression { constant, plus, minus, suffix: None } = self else { return None };
        Some(Expression { constant: constant.checked_neg()?, plus: minus, minus: plus, suffix: None })
    }

    fn add(mut self, other: Expression) -> Option<Expression> {
        self.constant = self.constant.checked_add(other.constant)?;
        self.plus.extend(other.plus);
        self.minus.extend(other.minus);
        if self.plus.len() + self.minus.len() > MAX_SYMBOLS {
            return None;
        }
        if self.suffix.is_some() && other.suffix.is_some() {
            return None;
        }
        self.suffix = self.suffix.or(other.suffix);
        self.bounded()
    }
}

/// Where symbols are looked up.
pub(super) trait Lookup {
    /// The symbol with a name.
    fn symbol(&mut self, name: &str) -> SymbolId;
    /// The place of the statement.
    fn here(&mut self) -> SymbolId;
    /// The label that is a number, before or after the statement.
    fn numbered(&mut self, number: u64, forwards: bool) -> SymbolId;
}

/// How many symbols a sum may have.
const MAX_SYMBOLS: usize = 8;

/// How deep parentheses are followed.
const MAX_DEPTH: usize = 50;

/// Reads an expression.
pub(super) fn read(cursor: &mut Cursor<'_>, lookup: &mut dyn Lookup) -> Result<Expression, String> {
    sum(cursor, lookup, 0)
}

const TOO_LARGE: &str = "an expression of a form that is not read";

fn sum(cursor: &mut Cursor<'_>, lookup: &mut dyn Lookup, depth: usize) -> Result<Expression, String> {
    let mut left = product(cursor, lookup, depth)?;
    loop {
        let right = if cursor.eat('+') {
            product(cursor, lookup, depth)?
        } else if cursor.eat('-') {
            product(cursor, lookup, depth)?.negated().ok_or(TOO_LARGE)?
        } else {
            return Ok(left);
        };
        left = left.add(right).ok_or(TOO_LARGE)?;
    }
}

fn product(cursor: &mut Cursor<'_>, lookup: &mut dyn Lookup, depth: usize) -> Result<Expression, String> {
    let mut left = unary(cursor, lookup, depth)?;
    while cursor.eat('*') {
        let right = unary(cursor, lookup, depth)?;
        let (a, b) = left.value().zip(right.value()).ok_or(TOO_LARGE)?;
        left = a.checked_mul(b).and_then(|value| Expression::number(value).bounded()).ok_or(TOO_LARGE)?;
    }
    match cursor.peek() {
        Some(c @ ('/' | '|' | '&' | '^' | '<' | '>' | '!' | '%' | '=')) => {
            Err(format!("the operator `{c}` in an expression"))
        }
        _ => Ok(left),
    }
}

fn unary(cursor: &mut Cursor<'_>, lookup: &mut dyn Lookup, depth: usize) -> Result<Expression, String> {
    if depth > MAX_DEPTH {
        return Err(TOO_LARGE.to_owned());
    }
    match cursor.peek() {
        Some('-') => {
            cursor.bump();
            unary(cursor, lookup, depth + 1)?.negated().ok_or_else(|| TOO_LARGE.to_owned())
        }
        Some('+') => {
            cursor.bump();
            unary(cursor, lookup, depth + 1)
        }
        Some('~') => {
            cursor.bump();
            let value = unary(cursor, lookup, depth + 1)?.value().ok_or(TOO_LARGE)?;
            Ok(Expression::number(!value))
        }
        Some('(') => {
            cursor.bump();
            let inner = sum(cursor, lookup, depth + 1)?;
            if cursor.eat(')') { Ok(inner) } else { Err("a `(` without its `)`".to_owned()) }
        }
        Some('\'') => {
            cursor.bump();
            match cursor.bump() {
                Some(c) if c.is_ascii() && c != '\\' => {
                    // A second mark may follow.
                    if cursor.rest().starts_with('\'') {
                        cursor.bump();
                    }
                    Ok(Expression::number(c as i128))
                }
                _ => Err("a character of a form that is not read".to_owned()),
            }
        }
        Some(c) if c.is_ascii_digit() => number(cursor, lookup),
        Some(_) => {
            let Some(name) = cursor.name() else { return Err("an expression is expected here".to_owned()) };
            let symbol = if name == "." { lookup.here() } else { lookup.symbol(&name) };
            let mut found = Expression::symbol(symbol);
            if cursor.rest().starts_with('@') {
                cursor.bump();
                let suffix = cursor.take_while(|c| c.is_ascii_alphanumeric());
                let of = Suffix::of(suffix).ok_or_else(|| format!("the suffix `@{suffix}`"))?;
                found.suffix = Some(of);
            }
            Ok(found)
        }
        None => Err("an expression is expected here".to_owned()),
    }
}

fn number(cursor: &mut Cursor<'_>, lookup: &mut dyn Lookup) -> Result<Expression, String> {
    let word = cursor.take_while(|c| c.is_ascii_alphanumeric());
    let lower = word.to_ascii_lowercase();
    if let Some(digits) = word.strip_suffix(['b', 'f'])
        && !lower.starts_with("0x")
        && !digits.is_empty()
        && !digits.starts_with('0')
        && let Ok(label) = digits.parse::<u64>()
    {
        return Ok(Expression::symbol(lookup.numbered(label, lower.ends_with('f'))));
    }
    // `0b` and `0f` are labels, too, unless digits follow.
    if word == "0b" || word == "0f" {
        return Ok(Expression::symbol(lookup.numbered(0, word == "0f")));
    }
    let (digits, base) = match word.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    match u64::from_str_radix(digits, base) {
        Ok(value) => Ok(Expression::number(i128::from(value))),
        Err(_) => Err(format!("`{word}` is not a number of 64 bits")),
    }
}
