//! What people with a background in C, C++ or Rust write, and what to write instead.

use super::token::{Sign, Word};
use crate::suggest;
use palisade_base::{Diagnostic, Span};

/// A keyword in place of an expression.
pub(super) fn word_in_expression(word: Word, span: Span) -> Option<Diagnostic> {
    let (message, help) = match word {
        Word::Null | Word::NullMacro => (
            "there is no null pointer",
            "write 0: the first cell has address 1, so 0 is never the address of a cell",
        ),
        _ => return None,
    };
    Some(Diagnostic::error("foreign-syntax", message).at(span, "").help(help))
}

/// A keyword in place of a statement.
pub(super) fn word_as_statement(word: Word, span: Span) -> Option<Diagnostic> {
    let (message, help) = match word {
        Word::For => ("a `for` loop takes a range", "write `for i in 0..3 { … }`; both ends are included"),
        Word::Do => ("there is no `do` loop", "write `loop { …; if !condition { break; } }`"),
        Word::Switch => ("there is no `switch`", "write `if … {} else if … {} else {}`"),
        Word::FullFence => ("the full fence is called `fence`", "write `fence;`"),
        Word::LoadFence => (
            "there is no load fence",
            "loads already happen in program order, so it would have no effect; `fence;` also waits for pending stores",
        ),
        Word::Else => ("`else` without `if`", "it must follow the `}` of an `if`"),
        Word::Or => ("`or` without `choose`", "write `choose { … } or { … }`; the operator is `||`"),
        _ => return None,
    };
    let id = if matches!(word, Word::Else | Word::Or) { "unexpected-token" } else { "foreign-syntax" };
    Some(Diagnostic::error(id, message).at(span, "").help(help))
}

/// `++` or `--`.
pub(super) fn increment(sign: Sign, place: &str, span: Span) -> Diagnostic {
    let (op, function) = if sign == Sign::PlusPlus { ('+', "fetch_add") } else { ('-', "fetch_sub") };
    Diagnostic::error("compound-assignment", format!("`{}` would hide a load and a store", sign.text()))
        .at(span, "")
        .help(format!(
            "write `{place} = {place} {op} 1;` (a load, then a store) or `{function}({place}, 1);` (one locked instruction)"
        ))
}

/// Whether a sign is one of `+=`, `-=`, ….
pub(super) fn is_compound_assignment(sign: Sign) -> bool {
    matches!(
        sign,
        Sign::PlusEqual
            | Sign::MinusEqual
            | Sign::StarEqual
            | Sign::SlashEqual
            | Sign::PercentEqual
            | Sign::AndEqual
            | Sign::OrEqual
            | Sign::CaretEqual
            | Sign::ShiftLeftEqual
            | Sign::ShiftRightEqual
    )
}

/// `x += e` and similar statements.
pub(super) fn compound_assignment(sign: Sign, place: &str, value: &str, span: Span) -> Diagnostic {
    let op = sign.text().trim_end_matches('=');
    let function = match sign {
        Sign::PlusEqual => Some("fetch_add"),
        Sign::MinusEqual => Some("fetch_sub"),
        Sign::AndEqual => Some("fetch_and"),
        Sign::OrEqual => Some("fetch_or"),
        Sign::CaretEqual => Some("fetch_xor"),
        _ => None,
    };
    let operand = if value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        value.to_string()
    } else {
        format!("({value})")
    };
    let mut help = format!("write `{place} = {place} {op} {operand};` (a load, then a store)");
    if let Some(function) = function {
        help += &format!(" or `{function}({place}, {value});` (one locked instruction)");
    }
    Diagnostic::error("compound-assignment", format!("`{}` would hide a load and a store", sign.text()))
        .at(span, "")
        .help(help)
}

/// Help for an unknown word at the start of a statement.
pub(super) fn statement_help(word: &str) -> Option<String> {
    let known = match word {
        "var" | "auto" | "mut" | "register" | "unsigned" | "long" | "char" => {
            "declare registers with `let r = 0;`"
        }
        "static" | "volatile" | "_Atomic" => {
            "declare shared variables outside processes, with `shared x = 0;`"
        }
        "until" => "write `await condition;`",
        "either" | "alt" => "write `choose { … } or { … }`",
        "elif" | "elseif" | "elsif" => "write `else if`",
        "lock" => "write `atomic { … }`",
        "print" | "println" | "printf" => "programs have no output; use `assert` and look at the witness",
        _ => return suggest::nearest(word, STATEMENTS.iter().map(|w| w.text())).map(did_you_mean),
    };
    Some(known.to_string())
}

/// Help for an unknown word where an item should start.
pub(super) fn item_help(word: &str) -> String {
    let known = match word {
        "fn" | "func" | "function" | "def" | "void" => {
            "procedures are declared with `proc f(a: 0..3) -> bool { … }`"
        }
        "thread" | "proctype" | "active" => "processes are declared with `process P { … }`",
        "var" | "let" | "global" | "static" | "volatile" | "byte" | "bit" | "unsigned" | "long" | "char" => {
            "shared variables are declared with `shared x: 0..3 = 0;`"
        }
        "exists" => {
            "write `forbid exists i in 0..2: …;`, or `final !(…);` to ask whether a final state can occur"
        }
        "forall" => "write `final forall i in 0..2: …;`",
        "include" | "import" | "use" | "mod" | "require" => {
            "the declarations of another file are taken with `import \"lock.pal\";`"
        }
        _ => match suggest::nearest(word, ITEMS.iter().map(|w| w.text())) {
            Some(near) => return did_you_mean(near),
            None => {
                "a program consists of items such as `shared`, `process`, `proc`, `const`, `enum`, `struct`, `import` and `forbid`; statements go into a `process`"
            }
        },
    };
    known.to_string()
}

fn did_you_mean(near: &str) -> String {
    format!("did you mean `{near}`?")
}

const ITEMS: &[Word] = &[
    Word::Const,
    Word::Enum,
    Word::Shared,
    Word::Private,
    Word::Process,
    Word::Proc,
    Word::Forbid,
    Word::Final,
];

const STATEMENTS: &[Word] = &[
    Word::Let,
    Word::Skip,
    Word::Fence,
    Word::StoreFence,
    Word::Assume,
    Word::Await,
    Word::Assert,
    Word::If,
    Word::Else,
    Word::While,
    Word::Loop,
    Word::Break,
    Word::Continue,
    Word::Goto,
    Word::Choose,
    Word::Or,
    Word::Atomic,
    Word::Return,
    Word::Spawn,
];
