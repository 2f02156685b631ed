//! Random integer expressions of C.
//!
//! Most are defined whatever the values are: signed sums are formed as unsigned ones, divisors are positive, shifts
//! are masked. Now and then one is left as it is ([`Scope::careless`] in a thousand). A sanitizer then decides.

use crate::random::Random;

/// An integer type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Integer {
    /// `_Bool`
    Bool,
    /// `signed char`
    Char,
    /// `unsigned char`
    UChar,
    /// `short`
    Short,
    /// `unsigned short`
    UShort,
    /// `int`
    Int,
    /// `unsigned`
    UInt,
    /// `long`
    Long,
    /// `unsigned long`
    ULong,
}

impl Integer {
    /// All types.
    pub const ALL: [Integer; 9] = [
        Integer::Bool,
        Integer::Char,
        Integer::UChar,
        Integer::Short,
        Integer::UShort,
        Integer::Int,
        Integer::UInt,
        Integer::Long,
        Integer::ULong,
    ];

    /// Its name in C.
    pub fn name(self) -> &'static str {
        match self {
            Integer::Bool => "_Bool",
            Integer::Char => "signed char",
            Integer::UChar => "unsigned char",
            Integer::Short => "short",
            Integer::UShort => "unsigned short",
            Integer::Int => "int",
            Integer::UInt => "unsigned",
            Integer::Long => "long",
            Integer::ULong => "unsigned long",
        }
    }

    /// The type that it becomes in an expression.
    pub fn promoted(self) -> Integer {
        match self {
            Integer::UInt | Integer::Long | Integer::ULong => self,
            _ => Integer::Int,
        }
    }

    /// The width of a promoted type.
    fn bits(self) -> u32 {
        if matches!(self, Integer::Long | Integer::ULong) { 64 } else { 32 }
    }

    /// Whether a promoted type has negative values.
    fn is_signed(self) -> bool {
        matches!(self, Integer::Int | Integer::Long)
    }

    /// The unsigned type of the width of a promoted type.
    fn unsigned(self) -> Integer {
        if self.bits() == 64 { Integer::ULong } else { Integer::UInt }
    }

    /// The common type of two promoted types.
    fn common(self, other: Integer) -> Integer {
        match (self, other) {
            (Integer::ULong, _) | (_, Integer::ULong) => Integer::ULong,
            (Integer::Long, _) | (_, Integer::Long) => Integer::Long,
            (Integer::UInt, _) | (_, Integer::UInt) => Integer::UInt,
            _ => Integer::Int,
        }
    }
}

/// An expression with its type, which is a promoted one unless it is a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Typed {
    pub text: String,
    pub ty: Integer,
}

impl Typed {
    pub fn new(text: impl Into<String>, ty: Integer) -> Typed {
        Typed { text: text.into(), ty }
    }
}

/// What expressions may use.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// What can be read.
    pub readable: Vec<Typed>,
    /// How many operations in a thousand may be undefined.
    pub careless: usize,
}

const LITERALS: [(&str, Integer); 34] = [
    ("0", Integer::Int),
    ("1", Integer::Int),
    ("2", Integer::Int),
    ("3", Integer::Int),
    ("7", Integer::Int),
    ("(-1)", Integer::Int),
    ("(-2)", Integer::Int),
    ("(-128)", Integer::Int),
    ("127", Integer::Int),
    ("128", Integer::Int),
    ("255", Integer::Int),
    ("256", Integer::Int),
    ("32767", Integer::Int),
    ("32768", Integer::Int),
    ("65535", Integer::Int),
    ("65536", Integer::Int),
    ("2147483647", Integer::Int),
    ("(-2147483647 - 1)", Integer::Int),
    ("0u", Integer::UInt),
    ("1u", Integer::UInt),
    ("5u", Integer::UInt),
    ("2147483648u", Integer::UInt),
    ("4294967295u", Integer::UInt),
    ("0L", Integer::Long),
    ("1L", Integer::Long),
    ("(-1L)", Integer::Long),
    ("2147483648L", Integer::Long),
    ("4294967296L", Integer::Long),
    ("9223372036854775807L", Integer::Long),
    ("(-9223372036854775807L - 1)", Integer::Long),
    ("1ul", Integer::ULong),
    ("255ul", Integer::ULong),
    ("9223372036854775808ul", Integer::ULong),
    ("18446744073709551615ul", Integer::ULong),
];

impl Scope {
    fn is_careless(&self, random: &mut Random) -> bool {
        random.below(1000) < self.careless
    }

    /// A literal.
    pub fn literal(random: &mut Random) -> Typed {
        let (text, ty) = if random.percent(60) { LITERALS[random.below(8)] } else { *random.pick(&LITERALS) };
        Typed::new(text, ty)
    }

    /// An expression of at most this depth.
    pub fn expression(&self, random: &mut Random, depth: usize) -> Typed {
        if depth == 0 || random.percent(20) {
            return if self.readable.is_empty() || random.percent(25) {
                Scope::literal(random)
            } else {
                random.pick(&self.readable).clone()
            };
        }
        match random.below(16) {
            0 => self.unary(random, depth),
            1 | 2 => {
                let ty = *random.pick(&Integer::ALL);
                let inner = self.expression(random, depth - 1);
                Typed::new(format!("(({})({}))", ty.name(), inner.text), ty)
            }
            3 => {
                let (a, b) = (self.condition(random, depth - 1), self.expression(random, depth - 1));
                let c = self.expression(random, depth - 1);
                let ty = b.ty.promoted().common(c.ty.promoted());
                Typed::new(format!("({a} ? {} : {})", b.text, c.text), ty)
            }
            4 => Typed::new(self.condition(random, depth), Integer::Int),
            _ => self.binary(random, depth),
        }
    }

    /// A condition.
    pub fn condition(&self, random: &mut Random, depth: usize) -> String {
        let depth = depth.saturating_sub(1);
        let (a, b) = (self.expression(random, depth), self.expression(random, depth));
        match random.below(9) {
            0 => format!("({} && {})", a.text, b.text),
            1 => format!("({} || {})", a.text, b.text),
            2 => format!("(!{})", a.text),
            at => format!("({} {} {})", a.text, ["==", "!=", "<", "<=", ">", ">="][at - 3], b.text),
        }
    }

    fn unary(&self, random: &mut Random, depth: usize) -> Typed {
        let inner = self.expression(random, depth - 1);
        let ty = inner.ty.promoted();
        match random.below(3) {
            0 => Typed::new(format!("(~{})", inner.text), ty),
            1 if ty.is_signed() && !self.is_careless(random) => {
                let unsigned = ty.unsigned();
                Typed::new(format!("(({})-({}){})", ty.name(), unsigned.name(), inner.text), ty)
            }
            1 => Typed::new(format!("(-{})", inner.text), ty),
            _ => Typed::new(format!("(+{})", inner.text), ty),
        }
    }

    fn binary(&self, random: &mut Random, depth: usize) -> Typed {
        let (a, b) = (self.expression(random, depth - 1), self.expression(random, depth - 1));
        let ty = a.ty.promoted().common(b.ty.promoted());
        match random.below(12) {
            op @ 0..=4 => {
                let op = ["+", "-", "*", "+", "-"][op];
                let text = if !ty.is_signed() || self.is_careless(random) {
                    format!("({} {op} {})", a.text, b.text)
                } else if random.percent(30) {
                    // Small numbers do not overflow.
                    format!("(({} & 255) {op} ({} & 127))", a.text, b.text)
                } else {
                    let unsigned = ty.unsigned().name();
                    format!("(({})(({unsigned}){} {op} ({unsigned}){}))", ty.name(), a.text, b.text)
                };
                Typed::new(text, ty)
            }
            op @ (5 | 6) => {
                let op = ["/", "%"][op - 5];
                let text = if self.is_careless(random) {
                    format!("({} {op} {})", a.text, b.text)
                } else {
                    format!("({} {op} (({} & 15) + 1))", a.text, b.text)
                };
                Typed::new(text, ty)
            }
            op @ (7 | 8) => {
                let op = ["<<", ">>"][op - 7];
                let ty = a.ty.promoted();
                let text = if self.is_careless(random) {
                    format!("({} {op} {})", a.text, b.text)
                } else if op == "<<" && ty.is_signed() {
                    let unsigned = ty.unsigned().name();
                    format!("(({})(({unsigned}){} << ({} & {})))", ty.name(), a.text, b.text, ty.bits() - 1)
                } else {
                    format!("({} {op} ({} & {}))", a.text, b.text, ty.bits() - 1)
                };
                Typed::new(text, ty)
            }
            op => Typed::new(format!("({} {} {})", a.text, ["&", "|", "^"][op - 9], b.text), ty),
        }
    }
}
