//! Expressions and addresses as text, and what can go wrong when they are evaluated.
//!
//! Both languages write expressions with C's operators. Parentheses are placed so that C compilers do not
//! warn.
//!
//! *Numbers.* In Palisade they have 64 bits and never wrap around. In the other language they have 32 or 64
//! bits. If the ranges of the operands do not rule out that a result is too large, conditions such as
//! `can_add(a, b)` guard it.

use crate::memory::Memory;
use crate::ranges::{Range, Ranges, binary_exact, unary_exact};
use crate::uses::{Guard, Registers, Uses};
use crate::wrap;
use palisade_program::Value;
use palisade_program::running::{Address, BinaryOp, CodeId, Expr, Outside, RegId, Type, UnaryOp};

/// The other language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    Promela,
    C,
}

/// The width of numbers in the other language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    Int,
    Long,
}

impl Width {
    /// The smallest and the largest number.
    pub fn bounds(self) -> (i128, i128) {
        match self {
            Width::Int => (i32::MIN.into(), i32::MAX.into()),
            Width::Long => (Value::MIN.into(), Value::MAX.into()),
        }
    }

    fn bits(self) -> i128 {
        match self {
            Width::Int => 32,
            Width::Long => 64,
        }
    }
}

/// A condition of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// It must hold: the program is wrong if it is false. The second part is the reason.
    Must(String, &'static str),
    /// The process waits while it is false.
    May(String),
}

/// What names in expressions mean.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub language: Language,
    pub width: Width,
    pub memory: &'a Memory,
    pub ranges: &'a Ranges,
    pub code: CodeId,
    pub registers: &'a Registers,
    pub uses: &'a Uses,
    /// A register that denotes the content of a cell.
    pub load: Option<Load<'a>>,
}

/// A load that happens in the same step: its register denotes the content of the cell.
#[derive(Clone, Copy)]
pub(crate) struct Load<'a> {
    pub register: RegId,
    pub address: &'a Address,
    pub form: LoadForm,
}

/// How a load is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadForm {
    /// As the cell.
    Cell,
    /// As a separate step, `LOAD(cell)`.
    Step,
}

/// The text of a value.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub text: String,
    /// Whether it is a single word, which needs no parentheses anywhere.
    is_word: bool,
}

impl Term {
    /// A name or a number.
    pub fn word(text: impl Into<String>) -> Term {
        Term { text: text.into(), is_word: true }
    }

    /// An operation.
    pub fn operation(text: String) -> Term {
        Term { text, is_word: false }
    }

    /// The text as an operand of any operator.
    pub fn tight(&self) -> String {
        if self.is_word { self.text.clone() } else { format!("({})", self.text) }
    }
}

impl Scope<'_> {
    /// The range of an expression.
    pub fn range(&self, e: &Expr) -> Range {
        self.ranges.expr(self.code, e)
    }

    /// An expression that is not an operand.
    pub fn expr(&self, e: &Expr) -> String {
        self.write(e)
    }

    /// An expression as a value.
    pub fn term(&self, e: &Expr) -> Term {
        Term { text: self.write(e), is_word: self.is_word(e) }
    }

    /// Whether an expression is written without spaces.
    fn is_word(&self, e: &Expr) -> bool {
        match e {
            // The smallest numbers are written as differences.
            Expr::Const(value) => !matches!(*value, Value::MIN) && i32::try_from(*value) != Ok(i32::MIN),
            Expr::Reg(register) => match self.load {
                Some(load) if load.register == *register => self.without_load().is_word_address(load.address),
                _ => true,
            },
            Expr::Unary(UnaryOp::Neg | UnaryOp::BitNot, a) => self.is_word(a),
            Expr::Unary(UnaryOp::Not, a) => match &**a {
                Expr::Const(_) | Expr::Reg(_) => self.is_word(a),
                Expr::Unary(UnaryOp::Not, b) => {
                    (matches!(**b, Expr::Const(_) | Expr::Reg(_)) || is_truth(b)) && self.is_word(b)
                }
                _ => false,
            },
            Expr::Binary(..) => false,
        }
    }

    fn is_word_address(&self, address: &Address) -> bool {
        match address {
            Address::Cell(_) => true,
            Address::Element { index: e, .. } | Address::Pointer(e) => self.is_word(e),
        }
    }

    fn without_load(&self) -> Scope<'_> {
        Scope { load: None, ..*self }
    }

    /// An expression as a condition.
    pub fn truth(&self, e: &Expr) -> String {
        match e {
            Expr::Const(_) | Expr::Reg(_) => self.write(e),
            e if is_truth(e) => self.write(e),
            e => format!("{} != 0", self.operand(e, BinaryOp::Ne, Side::Left)),
        }
    }

    /// The negation of a condition.
    pub fn falsehood(&self, e: &Expr) -> String {
        match e {
            Expr::Binary(op, a, b) if opposite(*op).is_some() => {
                let op = opposite(*op).expect("the operator has an opposite");
                self.binary(op, a, b)
            }
            Expr::Unary(UnaryOp::Not, a) => self.truth(a),
            Expr::Const(_) | Expr::Reg(_) => format!("!{}", self.tight(e)),
            e if is_truth(e) => format!("!({})", self.write(e)),
            e => format!("{} == 0", self.operand(e, BinaryOp::Eq, Side::Left)),
        }
    }

    fn write(&self, e: &Expr) -> String {
        match e {
            Expr::Const(value) => self.number(*value),
            Expr::Reg(register) => match self.load {
                Some(load) if load.register == *register => {
                    let cell = self.without_load().place(load.address);
                    match load.form {
                        LoadForm::Cell => cell,
                        LoadForm::Step => format!("LOAD({cell})"),
                    }
                }
                _ => self.registers.name(*register),
            },
            Expr::Unary(UnaryOp::Not, a) => self.falsehood(a),
            Expr::Unary(UnaryOp::Neg, a) => format!("-{}", self.tight(a)),
            Expr::Unary(UnaryOp::BitNot, a) => format!("~{}", self.tight(a)),
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
        }
    }

    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr) -> String {
        let (left, right) = (self.operand(a, op, Side::Left), self.operand(b, op, Side::Right));
        match op {
            BinaryOp::Shl if self.width == Width::Long && matches!(a, Expr::Const(_)) => {
                format!("(value){left} << {right}")
            }
            // Shifting a negative number to the left is undefined in C.
            BinaryOp::Shl if self.range(a).lo < 0 => {
                let one = if self.width == Width::Long { "1LL" } else { "1" };
                format!("{left} * ({one} << {right})")
            }
            BinaryOp::Shr if !self.range(b).within(0, self.width.bits() - 1) => {
                let most = self.width.bits() - 1;
                let right = self.write(b);
                let by = match self.language {
                    Language::Promela => format!("({right} > {most} -> {most} : {right})"),
                    Language::C => format!("({right} > {most} ? {most} : {right})"),
                };
                format!("{left} >> {by}")
            }
            // The remainder of the smallest number divided by -1 is 0, but the other languages do not
            // guarantee that.
            BinaryOp::Rem if self.has_no_quotient(a, b) => match self.language {
                Language::Promela => format!("({right} == -1 -> 0 : {left} % {right})"),
                Language::C => format!("({right} == -1 ? 0 : {left} % {right})"),
            },
            _ => format!("{left} {} {right}", op.symbol()),
        }
    }

    /// Whether the smallest number may be divided by -1, so that the quotient does not fit.
    fn has_no_quotient(&self, a: &Expr, b: &Expr) -> bool {
        let divisors = self.range(b);
        self.range(a).lo <= self.width.bounds().0 && divisors.lo <= -1 && divisors.hi >= -1
    }

    /// One of two values, by a condition.
    pub fn choice(&self, condition: &str, yes: &str, no: &str) -> Term {
        Term::word(match self.language {
            Language::Promela => format!("({condition} -> {yes} : {no})"),
            Language::C => format!("({condition} ? {yes} : {no})"),
        })
    }

    /// An expression as the second operand of an operator.
    pub fn right(&self, op: BinaryOp, e: &Expr) -> String {
        self.operand(e, op, Side::Right)
    }

    fn operand(&self, e: &Expr, parent: BinaryOp, side: Side) -> String {
        let logical = matches!(parent, BinaryOp::And | BinaryOp::Or);
        let text = if logical { self.truth(e) } else { self.write(e) };
        let bare = match e {
            Expr::Const(value) => *value >= 0 || !matches!(parent, BinaryOp::Shl | BinaryOp::Shr),
            Expr::Reg(_) => true,
            Expr::Unary(UnaryOp::Not, a) => match &**a {
                // It is written as a comparison.
                Expr::Binary(op, ..) if opposite(*op).is_some() => logical,
                Expr::Unary(UnaryOp::Not, _) => false,
                _ => logical && self.is_word(e),
            },
            Expr::Unary(..) => true,
            // It is written as a comparison with 0.
            Expr::Binary(..) if logical && !is_truth(e) => true,
            Expr::Binary(op, ..) => needs_no_parentheses(*op, parent, side),
        };
        if bare {
            return text;
        }
        // C compilers warn if the result of a comparison is used in arithmetic.
        let cast = if self.language == Language::C && !logical && is_truth(e) { "(value)" } else { "" };
        format!("{cast}({text})")
    }

    /// An expression that can be an operand of any operator.
    pub fn tight(&self, e: &Expr) -> String {
        match e {
            Expr::Const(value) if *value >= 0 => self.write(e),
            Expr::Reg(_) => self.write(e),
            e if self.language == Language::C && is_truth(e) => format!("(value)({})", self.write(e)),
            e => format!("({})", self.write(e)),
        }
    }

    /// A number.
    pub fn number(&self, value: Value) -> String {
        number(self.language, value)
    }

    /// A cell as a value.
    pub fn cell(&self, address: &Address) -> Term {
        Term { text: self.place(address), is_word: self.is_word_address(address) }
    }

    /// A cell.
    pub fn place(&self, address: &Address) -> String {
        match address {
            Address::Cell(cell) => self.memory.cell(*cell),
            Address::Element { base, index, .. } => self.memory.element(*base, &self.write(index)),
            Address::Pointer(pointer) => self.memory.pointer(&self.write(pointer)),
        }
    }

    /// The conditions for evaluating an expression.
    pub fn check(&self, e: &Expr, conditions: &mut Vec<Condition>) {
        match e {
            Expr::Const(_) | Expr::Reg(_) => {}
            Expr::Unary(op, a) => {
                self.check(a, conditions);
                let (lo, hi) = self.width.bounds();
                if *op == UnaryOp::Neg && !unary_exact(*op, self.range(a)).within(lo, hi) {
                    let guard = self.uses.guard(Guard::Sub, "0", &self.write(a));
                    conditions.push(Condition::Must(guard, OVERFLOW));
                }
            }
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                self.check(a, conditions);
                let mut second = Vec::new();
                self.check(b, &mut second);
                // The second operand is evaluated only if the first does not decide.
                let decided = if *op == BinaryOp::And { self.falsehood(a) } else { self.truth(a) };
                conditions.extend(second.into_iter().map(|condition| condition.unless(&decided)));
            }
            Expr::Binary(op, a, b) => {
                self.check(a, conditions);
                self.check(b, conditions);
                self.check_operator(*op, a, b, conditions);
            }
        }
    }

    fn check_operator(&self, op: BinaryOp, a: &Expr, b: &Expr, conditions: &mut Vec<Condition>) {
        let (left, right) = (self.write(a), self.write(b));
        let (range_a, range_b) = (self.range(a), self.range(b));
        let (lo, hi) = self.width.bounds();
        let fits = binary_exact(op, range_a, range_b).within(lo, hi);
        let guard = |guard: Guard| self.uses.guard(guard, &left, &right);
        let mut must = |condition: String, why| conditions.push(Condition::Must(condition, why));
        match op {
            BinaryOp::Add if !fits => must(guard(Guard::Add), OVERFLOW),
            BinaryOp::Sub if !fits => must(guard(Guard::Sub), OVERFLOW),
            BinaryOp::Mul if !fits => must(guard(Guard::Mul), OVERFLOW),
            BinaryOp::Div | BinaryOp::Rem => {
                if range_b.lo <= 0 && range_b.hi >= 0 {
                    must(format!("{} != 0", self.operand(b, BinaryOp::Ne, Side::Left)), DIVISION);
                }
                if op == BinaryOp::Div && self.has_no_quotient(a, b) {
                    must(guard(Guard::Div), OVERFLOW);
                }
            }
            BinaryOp::Shl if !fits || !range_b.within(0, self.width.bits() - 2) => {
                must(guard(Guard::Shl), OVERFLOW);
            }
            BinaryOp::Shr if !range_b.within(0, 63) => {
                must(format!("0 <= ({right}) && ({right}) <= 63"), OVERFLOW);
            }
            _ => {}
        }
    }

    /// The conditions for accessing an address.
    pub fn check_address(&self, address: &Address, conditions: &mut Vec<Condition>) {
        let (e, least, most, why) = match address {
            Address::Cell(_) => return,
            Address::Element { len, index, .. } => (index, 0, Value::from(*len) - 1, BOUNDS),
            Address::Pointer(pointer) => (pointer, 1, self.memory.len() as Value, POINTER),
        };
        self.check(e, conditions);
        if let Some(inside) = between(self, e, least, most) {
            conditions.push(Condition::Must(inside, why));
        }
    }

    /// The condition that a type puts on a value, given as text and by its range.
    pub fn fit(&self, value: &Term, range: Range, ty: Type) -> Option<Condition> {
        let (lo, hi) = ty.domain.bounds()?;
        let inside = bounded(self.language, value, range, lo, hi)?;
        match ty.outside {
            Outside::Fault => Some(Condition::Must(inside, DOMAIN)),
            Outside::Block => Some(Condition::May(inside)),
            Outside::Wrap => None,
        }
    }

    /// What a value, given as text and by its range, becomes in a type: the same unless it [wraps](crate::wrap)
    /// around.
    pub fn become_(&self, value: &Term, range: Range, ty: Type) -> Term {
        match wrap::size(ty) {
            Some((lo, hi, _)) if range.within(lo.into(), hi.into()) => value.clone(),
            // The usual case, written as people do.
            Some((0, _, size)) if range.lo >= 0 => {
                Term::operation(format!("{} % {}", value.tight(), self.number(size)))
            }
            Some((lo, hi, _)) => Term::word(self.uses.wrap(&value.text, &self.number(lo), &self.number(hi))),
            None => value.clone(),
        }
    }
}

impl Condition {
    /// The same condition, required only if something else does not hold.
    pub fn unless(self, other: &str) -> Condition {
        let weaken = |text: String| format!("({other}) || ({text})");
        match self {
            Condition::Must(text, why) => Condition::Must(weaken(text), why),
            Condition::May(text) => Condition::May(weaken(text)),
        }
    }
}

const OVERFLOW: &str = "overflow";
const DIVISION: &str = "division by zero";
const BOUNDS: &str = "index out of bounds";
const POINTER: &str = "bad pointer";
const DOMAIN: &str = "outside the domain";

fn between(scope: &Scope<'_>, e: &Expr, lo: Value, hi: Value) -> Option<String> {
    let text = scope.operand(e, BinaryOp::Lt, Side::Left);
    bounded(scope.language, &Term { text, is_word: scope.is_word(e) }, scope.range(e), lo, hi)
}

/// `lo <= value && value <= hi`, as far as the range does not imply it.
fn bounded(language: Language, value: &Term, range: Range, lo: Value, hi: Value) -> Option<String> {
    let value = value.tight();
    let number = |value| number(language, value);
    let least = (range.lo < lo.into()).then(|| format!("{value} >= {}", number(lo)));
    let most = (range.hi > hi.into()).then(|| format!("{value} <= {}", number(hi)));
    match (least, most) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one),
        (Some(least), Some(most)) => Some(format!("{least} && {most}")),
    }
}

/// A number. Promela has no numbers of more than 32 bits; bounds beyond that are never reached there.
pub(crate) fn number(language: Language, value: Value) -> String {
    match (language, i32::try_from(value)) {
        (_, Ok(i32::MIN)) => format!("({} - 1)", i32::MIN + 1),
        (_, Ok(value)) => value.to_string(),
        (Language::Promela, Err(_)) => number(language, if value < 0 { i32::MIN } else { i32::MAX }.into()),
        (Language::C, Err(_)) if value == Value::MIN => format!("({}LL - 1)", value + 1),
        (Language::C, Err(_)) => format!("{value}LL"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Whether an operand is clear without parentheses.
fn needs_no_parentheses(op: BinaryOp, parent: BinaryOp, side: Side) -> bool {
    use BinaryOp::{Add, And, Div, Mul, Or, Rem, Sub};
    let product = matches!(op, Mul | Div | Rem);
    let sum = matches!(op, Add | Sub);
    match parent {
        Add | Sub => product || (sum && side == Side::Left),
        And => op == And && side == Side::Left || opposite(op).is_some(),
        Or => op == Or && side == Side::Left || opposite(op).is_some(),
        parent if opposite(parent).is_some() => product || sum,
        _ => false,
    }
}

/// The comparison that is true exactly when this one is false.
pub(crate) fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Le => BinaryOp::Gt,
        _ => return None,
    })
}

/// Whether one of two conditions is true exactly when the other is false, judged by their form.
pub(crate) fn are_opposite(a: &Expr, b: &Expr) -> bool {
    let negates = |a: &Expr, b: &Expr| match (a, b) {
        (Expr::Unary(UnaryOp::Not, a), b) => **a == *b,
        (Expr::Binary(op, a1, a2), Expr::Binary(other, b1, b2)) => {
            opposite(*op) == Some(*other) && a1 == b1 && a2 == b2
        }
        _ => false,
    };
    negates(a, b) || negates(b, a)
}

/// Whether the value is 0 or 1, judged by its form.
pub(crate) fn is_truth(e: &Expr) -> bool {
    match e {
        Expr::Unary(op, _) => *op == UnaryOp::Not,
        Expr::Binary(op, _, _) => opposite(*op).is_some() || matches!(op, BinaryOp::And | BinaryOp::Or),
        Expr::Const(_) | Expr::Reg(_) => false,
    }
}
