//! Instructions.
//!
//! Everything that decides what an instruction does is kept: orderings, scopes, `volatile`, alignment,
//! `nontemporal` and the flags whose violation makes a result `poison`. Floating-point and vector
//! instructions are represented, so that a user who cannot handle them can reject them by name and line.

use crate::calls::Call;
use crate::debug::NodeId;
use crate::module::BlockId;
use crate::types::TypeId;
use crate::values::{ConstantId, Operand, ValueId};
use palisade_base::Span;

/// One instruction of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// Where its result goes.
    pub result: Option<ValueId>,
    /// The type of its result; `void` if there is none.
    pub ty: TypeId,
    /// Where it is written.
    pub span: Span,
    /// The place in the source program that it was compiled from.
    pub location: Option<NodeId>,
}

/// What an instruction does.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// `ret`
    Return(Option<Operand>),
    /// `br label %l`
    Branch(BlockId),
    /// `br i1 %c, label %then, label %otherwise`
    BranchIf {
        /// The condition.
        condition: Operand,
        /// If it is true.
        then: BlockId,
        /// If it is false.
        otherwise: BlockId,
    },
    /// `switch`
    Switch {
        /// What is compared.
        value: Operand,
        /// If no case matches.
        default: BlockId,
        /// Values and where they lead.
        cases: Box<[(ConstantId, BlockId)]>,
    },
    /// `indirectbr`
    IndirectBranch {
        /// The address of a block.
        address: Operand,
        /// The blocks it may be.
        targets: Box<[BlockId]>,
    },
    /// `unreachable`
    Unreachable,
    /// `resume`: continues unwinding.
    Resume(Operand),
    /// `invoke`: a call that may unwind.
    Invoke {
        /// The call.
        call: Box<Call>,
        /// If the call returns.
        normal: BlockId,
        /// If it unwinds.
        unwind: BlockId,
    },
    /// `callbr`: assembly that may jump.
    CallBranch {
        /// The call.
        call: Box<Call>,
        /// If the assembly does not jump.
        fallthrough: BlockId,
        /// Where it may jump.
        targets: Box<[BlockId]>,
    },
    /// `call`
    Call(Box<Call>),
    /// `alloca`
    Alloca {
        /// The type of each element.
        ty: TypeId,
        /// The number of elements, if it is not 1.
        count: Option<Operand>,
        /// The alignment in bytes; `None` is that of the type.
        align: Option<u64>,
    },
    /// `load`
    Load {
        /// What is loaded.
        ty: TypeId,
        /// From where.
        pointer: Operand,
        /// How.
        access: Access,
    },
    /// `store`
    Store {
        /// What is stored.
        value: Operand,
        /// To where.
        pointer: Operand,
        /// How.
        access: Access,
    },
    /// `cmpxchg`: its result is the old value and whether the exchange happened.
    CompareExchange {
        /// Where.
        pointer: Operand,
        /// The value that must be there.
        expected: Operand,
        /// The value that replaces it.
        new: Operand,
        /// Whether it may fail for no reason.
        weak: bool,
        /// Whether it is volatile.
        volatile: bool,
        /// The ordering if the exchange happens.
        success: Ordering,
        /// The ordering if it does not.
        failure: Ordering,
        /// Which threads it is atomic towards.
        scope: Scope,
        /// The alignment in bytes; `None` is the size of the value.
        align: Option<u64>,
    },
    /// `atomicrmw`: its result is the old value.
    ReadModifyWrite {
        /// What is done.
        op: RmwOp,
        /// Where.
        pointer: Operand,
        /// With what.
        value: Operand,
        /// Whether it is volatile.
        volatile: bool,
        /// The ordering.
        ordering: Ordering,
        /// Which threads it is atomic towards.
        scope: Scope,
        /// The alignment in bytes; `None` is the size of the value.
        align: Option<u64>,
    },
    /// `fence`
    Fence {
        /// The ordering.
        ordering: Ordering,
        /// Which threads it is about.
        scope: Scope,
    },
    /// `getelementptr`
    GetElementPtr {
        /// The type that the indices are about.
        source: TypeId,
        /// The address of the whole.
        base: Operand,
        /// Which part.
        indices: Box<[Operand]>,
        /// `inbounds` and the like.
        flags: Flags,
    },
    /// Arithmetic.
    Binary {
        /// Which operation.
        op: BinaryOp,
        /// `nsw` and the like.
        flags: Flags,
        /// The left operand.
        left: Operand,
        /// The right operand.
        right: Operand,
    },
    /// `fneg`
    FloatNegate(Operand),
    /// A conversion to the type of the result.
    Cast {
        /// Which conversion.
        op: CastOp,
        /// `nneg` and the like.
        flags: Flags,
        /// What is converted.
        value: Operand,
    },
    /// `icmp`
    Compare {
        /// Which comparison.
        predicate: IntPredicate,
        /// `samesign`.
        flags: Flags,
        /// The left operand.
        left: Operand,
        /// The right operand.
        right: Operand,
    },
    /// `fcmp`
    FloatCompare {
        /// Which comparison, as it is written.
        predicate: FloatPredicate,
        /// The left operand.
        left: Operand,
        /// The right operand.
        right: Operand,
    },
    /// `phi`: the value that belongs to the block from which control came.
    Phi(Box<[(Operand, BlockId)]>),
    /// `select`
    Select {
        /// Which one.
        condition: Operand,
        /// If the condition is true.
        yes: Operand,
        /// If it is false.
        no: Operand,
    },
    /// `freeze`: any fixed value instead of `undef` and `poison`.
    Freeze(Operand),
    /// `extractvalue`
    ExtractValue {
        /// A struct or array.
        aggregate: Operand,
        /// The path to the part.
        indices: Box<[u32]>,
    },
    /// `insertvalue`
    InsertValue {
        /// A struct or array.
        aggregate: Operand,
        /// The new part.
        value: Operand,
        /// The path to the part.
        indices: Box<[u32]>,
    },
    /// `extractelement`
    ExtractElement {
        /// The vector.
        vector: Operand,
        /// Which element.
        index: Operand,
    },
    /// `insertelement`
    InsertElement {
        /// The vector.
        vector: Operand,
        /// The new element.
        value: Operand,
        /// Which element.
        index: Operand,
    },
    /// `shufflevector`
    ShuffleVector {
        /// The first vector.
        left: Operand,
        /// The second vector.
        right: Operand,
        /// Which elements of the two.
        mask: Operand,
    },
    /// `va_arg`: the next argument of a variadic function.
    NextArgument {
        /// The list of arguments.
        list: Operand,
    },
    /// `landingpad`: where unwinding arrives.
    LandingPad {
        /// Whether it is entered even if no clause matches.
        cleanup: bool,
        /// `catch` and `filter` clauses.
        clauses: Box<[Operand]>,
    },
}

impl Op {
    /// Whether this ends a block.
    pub fn is_terminator(&self) -> bool {
        matches!(
            self,
            Op::Return(_)
                | Op::Branch(_)
                | Op::BranchIf { .. }
                | Op::Switch { .. }
                | Op::IndirectBranch { .. }
                | Op::Unreachable
                | Op::Resume(_)
                | Op::Invoke { .. }
                | Op::CallBranch { .. }
        )
    }

    /// The call of a `call`, `invoke` or `callbr`.
    pub fn call(&self) -> Option<&Call> {
        match self {
            Op::Call(call) | Op::Invoke { call, .. } | Op::CallBranch { call, .. } => Some(call),
            _ => None,
        }
    }
}

/// How a load or store accesses memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Access {
    /// The ordering and scope of an atomic access.
    pub atomic: Option<(Ordering, Scope)>,
    /// Whether it is volatile.
    pub volatile: bool,
    /// The alignment in bytes; `None` is that of the type.
    pub align: Option<u64>,
    /// Whether it carries `!nontemporal`: on x86, such a store is not ordered with others.
    pub nontemporal: bool,
    /// Whether it carries `!noundef`: what is loaded must have been written.
    pub written: bool,
}

/// Orderings of atomic accesses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ordering {
    /// `unordered`: Java's plain accesses.
    Unordered,
    /// `monotonic`: C's relaxed.
    Monotonic,
    /// `acquire`
    Acquire,
    /// `release`
    Release,
    /// `acq_rel`
    AcquireRelease,
    /// `seq_cst`
    SequentiallyConsistent,
}

/// Which threads an atomic access or a fence is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// All threads.
    System,
    /// `singlethread`: only signal handlers of the same thread. It is a barrier for the compiler alone.
    SingleThread,
}

/// A set of words with which an instruction promises something. A broken promise makes the result `poison`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u16);

macro_rules! flags {
    ($($name:ident $word:literal $bit:literal $doc:literal;)*) => {
        impl Flags {
            /// The flag of a word.
            pub(crate) fn of_word(word: &str) -> Option<Flags> {
                match word {
                    $($word => Some(Flags(1 << $bit)),)*
                    _ => None,
                }
            }

            /// Adds flags.
            pub(crate) fn add(&mut self, other: Flags) {
                self.0 |= other.0;
            }

            $(#[doc = $doc]
            pub fn $name(self) -> bool {
                self.0 & (1 << $bit) != 0
            })*
        }
    };
}

flags! {
    no_unsigned_wrap "nuw" 0 "The result does not wrap as an unsigned number.";
    no_signed_wrap "nsw" 1 "The result does not wrap as a signed number.";
    exact "exact" 2 "There is no remainder.";
    disjoint "disjoint" 3 "No bit is set on both sides.";
    non_negative "nneg" 4 "The operand is not negative.";
    same_sign "samesign" 5 "Both operands have the same sign.";
    inbounds "inbounds" 6 "The address stays within the object.";
    no_unsigned_signed_wrap "nusw" 7 "The address does not wrap when a signed offset is added.";
}

/// Defines an enum with the word of each variant.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $word:literal $doc:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $(#[doc = $doc] $variant,)*
        }

        impl $name {
            /// The word in the text.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// What a word stands for.
            pub(crate) fn of_word(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// Operations with two operands.
    BinaryOp {
        Add "add" "Sum.",
        Sub "sub" "Difference.",
        Mul "mul" "Product.",
        UDiv "udiv" "Unsigned quotient.",
        SDiv "sdiv" "Signed quotient.",
        URem "urem" "Unsigned remainder.",
        SRem "srem" "Signed remainder.",
        Shl "shl" "Shift to the left.",
        LShr "lshr" "Shift to the right, filling with zeros.",
        AShr "ashr" "Shift to the right, filling with the sign.",
        And "and" "Bitwise and.",
        Or "or" "Bitwise or.",
        Xor "xor" "Bitwise exclusive or.",
        FAdd "fadd" "Sum of floats.",
        FSub "fsub" "Difference of floats.",
        FMul "fmul" "Product of floats.",
        FDiv "fdiv" "Quotient of floats.",
        FRem "frem" "Remainder of floats.",
    }
}

impl BinaryOp {
    /// Whether the operands are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, BinaryOp::FAdd | BinaryOp::FSub | BinaryOp::FMul | BinaryOp::FDiv | BinaryOp::FRem)
    }

    /// Whether the word may carry this flag.
    pub(crate) fn allows(self, flags: Flags) -> bool {
        let wraps = flags.no_signed_wrap() || flags.no_unsigned_wrap();
        let allowed = match self {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl => wraps,
            BinaryOp::UDiv | BinaryOp::SDiv | BinaryOp::LShr | BinaryOp::AShr => flags.exact(),
            BinaryOp::Or => flags.disjoint(),
            _ => false,
        };
        allowed || flags == Flags::default()
    }
}

words! {
    /// Conversions.
    CastOp {
        Trunc "trunc" "Drops the upper bits.",
        ZExt "zext" "Fills with zeros.",
        SExt "sext" "Fills with the sign.",
        FpTrunc "fptrunc" "To a smaller float.",
        FpExt "fpext" "To a larger float.",
        FpToUi "fptoui" "From a float to an unsigned integer.",
        FpToSi "fptosi" "From a float to a signed integer.",
        UiToFp "uitofp" "From an unsigned integer to a float.",
        SiToFp "sitofp" "From a signed integer to a float.",
        PtrToInt "ptrtoint" "From a pointer to an integer.",
        PtrToAddr "ptrtoaddr" "From a pointer to its address, without exposing it.",
        IntToPtr "inttoptr" "From an integer to a pointer.",
        BitCast "bitcast" "The same bits with another type.",
        AddrSpaceCast "addrspacecast" "To a pointer of another address space.",
    }
}

words! {
    /// Comparisons of integers and pointers.
    IntPredicate {
        Eq "eq" "Equal.",
        Ne "ne" "Not equal.",
        Ugt "ugt" "Greater, unsigned.",
        Uge "uge" "Greater or equal, unsigned.",
        Ult "ult" "Less, unsigned.",
        Ule "ule" "Less or equal, unsigned.",
        Sgt "sgt" "Greater, signed.",
        Sge "sge" "Greater or equal, signed.",
        Slt "slt" "Less, signed.",
        Sle "sle" "Less or equal, signed.",
    }
}

words! {
    /// Comparisons of floats.
    FloatPredicate {
        False "false" "Never.",
        Oeq "oeq" "Ordered and equal.",
        Ogt "ogt" "Ordered and greater.",
        Oge "oge" "Ordered and greater or equal.",
        Olt "olt" "Ordered and less.",
        Ole "ole" "Ordered and less or equal.",
        One "one" "Ordered and not equal.",
        Ord "ord" "Neither is NaN.",
        Ueq "ueq" "Unordered or equal.",
        Ugt "ugt" "Unordered or greater.",
        Uge "uge" "Unordered or greater or equal.",
        Ult "ult" "Unordered or less.",
        Ule "ule" "Unordered or less or equal.",
        Une "une" "Unordered or not equal.",
        Uno "uno" "One is NaN.",
        True "true" "Always.",
    }
}

words! {
    /// What an `atomicrmw` does.
    RmwOp {
        Xchg "xchg" "Exchange.",
        Add "add" "Sum.",
        Sub "sub" "Difference.",
        And "and" "Bitwise and.",
        Nand "nand" "Bitwise and, negated.",
        Or "or" "Bitwise or.",
        Xor "xor" "Bitwise exclusive or.",
        Max "max" "Signed maximum.",
        Min "min" "Signed minimum.",
        UMax "umax" "Unsigned maximum.",
        UMin "umin" "Unsigned minimum.",
        UIncWrap "uinc_wrap" "Counts up to the operand, then from 0 again.",
        UDecWrap "udec_wrap" "Counts down to 0, then from the operand again.",
        USubCond "usub_cond" "Difference, if it is not negative.",
        USubSat "usub_sat" "Difference, or 0 if it would be negative.",
        FAdd "fadd" "Sum of floats.",
        FSub "fsub" "Difference of floats.",
        FMax "fmax" "Maximum of floats.",
        FMin "fmin" "Minimum of floats.",
        FMaximum "fmaximum" "Maximum of floats, or NaN.",
        FMinimum "fminimum" "Minimum of floats, or NaN.",
    }
}

impl RmwOp {
    /// Whether the operand is a floating-point number.
    pub fn is_float(self) -> bool {
        use RmwOp::*;
        matches!(self, FAdd | FSub | FMax | FMin | FMaximum | FMinimum)
    }
}

impl Ordering {
    /// The word in the text.
    pub fn word(self) -> &'static str {
        match self {
            Ordering::Unordered => "unordered",
            Ordering::Monotonic => "monotonic",
            Ordering::Acquire => "acquire",
            Ordering::Release => "release",
            Ordering::AcquireRelease => "acq_rel",
            Ordering::SequentiallyConsistent => "seq_cst",
        }
    }

    /// What a word stands for.
    pub(crate) fn of_word(word: &str) -> Option<Ordering> {
        use Ordering::*;
        let all = [Unordered, Monotonic, Acquire, Release, AcquireRelease, SequentiallyConsistent];
        all.into_iter().find(|ordering| ordering.word() == word)
    }
}
