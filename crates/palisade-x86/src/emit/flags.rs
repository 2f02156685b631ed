//! Flags, computed from the last instruction that sets them where something reads them.
//!
//! *Source.* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, section 3.4.3, and appendix B for
//! the conditions.

use super::operands::constant;
use super::{Emitter, Value};
use iced_x86::ConditionCode;

/// Where flags are kept between blocks.
pub(super) const NAMES: [&str; 5] = ["cf", "zf", "sf", "of", "pf"];

/// What the flags follow from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Flags {
    /// They hold nothing of the program's.
    Undefined,
    /// They are in the variables.
    Stored,
    /// The difference of two values.
    Difference { a: Value, b: Value, result: Value },
    /// The sum of two values.
    Sum { a: Value, b: Value, result: Value },
    /// A result, without carry and overflow.
    Logic { result: Value },
    /// A result, with carry and overflow as given; what is `None` is undefined.
    Given { carry: Option<Value>, overflow: Option<Value>, result: Option<Value> },
}

impl Emitter<'_, '_> {
    fn compare(&mut self, predicate: &str, a: &Value, b: &Value) -> Value {
        self.value(1, format!("icmp {predicate} i{} {}, {}", a.width, a.text, b.text))
    }

    fn with_zero(&mut self, predicate: &str, value: &Value) -> Value {
        self.compare(predicate, value, &constant(value.width, 0))
    }

    pub(super) fn not(&mut self, bit: &Value) -> Value {
        self.value(1, format!("xor i1 {}, true", bit.text))
    }

    pub(super) fn bits(&mut self, op: &str, a: &Value, b: &Value) -> Value {
        self.value(a.width, format!("{op} i{} {}, {}", a.width, a.text, b.text))
    }

    fn undefined(&mut self) -> Value {
        self.refuse("a use of flags that no instruction of the function has set");
        constant(1, 0)
    }

    fn stored(&mut self, name: &str) -> Value {
        self.value(1, format!("load i1, ptr %{name}"))
    }

    /// The carry flag.
    pub(super) fn carry(&mut self) -> Value {
        match self.flags.clone() {
            Flags::Undefined | Flags::Given { carry: None, .. } => self.undefined(),
            Flags::Stored => self.stored("cf"),
            Flags::Difference { a, b, .. } => self.compare("ult", &a, &b),
            Flags::Sum { a, result, .. } => self.compare("ult", &result, &a),
            Flags::Logic { .. } => constant(1, 0),
            Flags::Given { carry: Some(carry), .. } => carry,
        }
    }

    fn overflow(&mut self) -> Value {
        match self.flags.clone() {
            Flags::Undefined | Flags::Given { overflow: None, .. } => self.undefined(),
            Flags::Stored => self.stored("of"),
            Flags::Difference { a, b, result } => {
                let (x, y) = (self.bits("xor", &a, &b), self.bits("xor", &a, &result));
                let both = self.bits("and", &x, &y);
                self.with_zero("slt", &both)
            }
            Flags::Sum { a, b, result } => {
                let (x, y) = (self.bits("xor", &a, &result), self.bits("xor", &b, &result));
                let both = self.bits("and", &x, &y);
                self.with_zero("slt", &both)
            }
            Flags::Logic { .. } => constant(1, 0),
            Flags::Given { overflow: Some(overflow), .. } => overflow,
        }
    }

    /// The result that the zero, sign and parity flags are about.
    fn result(&self) -> Option<Value> {
        match &self.flags {
            Flags::Difference { result, .. } | Flags::Sum { result, .. } | Flags::Logic { result } => {
                Some(result.clone())
            }
            Flags::Given { result, .. } => result.clone(),
            Flags::Undefined | Flags::Stored => None,
        }
    }

    fn by_result(&mut self, name: &str, test: impl Fn(&mut Self, &Value) -> Value) -> Value {
        match (self.result(), &self.flags) {
            (Some(result), _) => test(self, &result),
            (None, Flags::Stored) => self.stored(name),
            _ => self.undefined(),
        }
    }

    fn zero(&mut self) -> Value {
        self.by_result("zf", |emitter, result| emitter.with_zero("eq", result))
    }

    fn sign(&mut self) -> Value {
        self.by_result("sf", |emitter, result| emitter.with_zero("slt", result))
    }

    fn parity(&mut self) -> Value {
        self.by_result("pf", |emitter, result| {
            let mut byte = emitter.truncate(result, 8);
            for by in [4, 2, 1] {
                let moved = emitter.value(8, format!("lshr i8 {}, {by}", byte.text));
                byte = emitter.bits("xor", &byte, &moved);
            }
            let odd = emitter.truncate(&byte, 1);
            emitter.not(&odd)
        })
    }

    /// Whether a condition holds.
    pub(super) fn condition(&mut self, condition: ConditionCode) -> Value {
        use ConditionCode as C;
        let negated = matches!(condition, C::no | C::ae | C::ne | C::a | C::ns | C::np | C::ge | C::g);
        // Comparisons of two values have instructions of their own.
        if let Flags::Difference { a, b, .. } = self.flags.clone() {
            let predicate = match condition {
                C::b => Some("ult"),
                C::ae => Some("uge"),
                C::e => Some("eq"),
                C::ne => Some("ne"),
                C::be => Some("ule"),
                C::a => Some("ugt"),
                C::l => Some("slt"),
                C::ge => Some("sge"),
                C::le => Some("sle"),
                C::g => Some("sgt"),
                _ => None,
            };
            if let Some(predicate) = predicate {
                return self.compare(predicate, &a, &b);
            }
        }
        if let Flags::Logic { result } = self.flags.clone() {
            let predicate = match condition {
                C::e | C::be => Some("eq"),
                C::ne | C::a => Some("ne"),
                C::l | C::s => Some("slt"),
                C::ge | C::ns => Some("sge"),
                C::le => Some("sle"),
                C::g => Some("sgt"),
                _ => None,
            };
            if let Some(predicate) = predicate {
                return self.with_zero(predicate, &result);
            }
        }
        let holds = match condition {
            C::o | C::no => self.overflow(),
            C::b | C::ae => self.carry(),
            C::e | C::ne => self.zero(),
            C::be | C::a => {
                let (carry, zero) = (self.carry(), self.zero());
                self.bits("or", &carry, &zero)
            }
            C::s | C::ns => self.sign(),
            C::p | C::np => self.parity(),
            C::l | C::ge => self.less(),
            C::le | C::g => {
                let (less, zero) = (self.less(), self.zero());
                self.bits("or", &less, &zero)
            }
            _ => {
                self.refuse("a jump that depends on `rcx`");
                constant(1, 0)
            }
        };
        if negated { self.not(&holds) } else { holds }
    }

    fn less(&mut self) -> Value {
        let (sign, overflow) = (self.sign(), self.overflow());
        self.bits("xor", &sign, &overflow)
    }

    /// Puts the flags where the next block looks for them. Those that are undefined must not be used there: then none
    /// of them is.
    pub(super) fn store_flags(&mut self) {
        if let Flags::Stored | Flags::Undefined = self.flags {
            return;
        }
        if let Flags::Given { carry, overflow, result } = &self.flags
            && (carry.is_none() || overflow.is_none() || result.is_none())
        {
            self.flags = Flags::Undefined;
            return;
        }
        let values = [self.carry(), self.zero(), self.sign(), self.overflow(), self.parity()];
        for (name, value) in NAMES.iter().zip(values) {
            self.line(format!("store i1 {}, ptr %{name}", value.text));
        }
        self.flags = Flags::Stored;
    }
}
