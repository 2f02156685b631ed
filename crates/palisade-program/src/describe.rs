//! Describes the running form as text: expressions and instructions with the names of registers and cells, in
//! the notation of `.pal`.
//!
//! The output is for people only. It is not meant to be parsed.

use crate::running::{Address, BinaryOp, Check, Code, Expr, Instr, RegId, System, UnaryOp};

/// An instruction of a code, such as `%0 = flag[1]` or `assume(%0 == 0)`.
pub fn instruction(system: &System, code: &Code, instr: &Instr) -> String {
    let e = |expr: &Expr| expression(code, expr);
    let list = |exprs: &[Expr]| exprs.iter().map(e).collect::<Vec<_>>().join(", ");
    let r = |register: RegId| code.registers[register].name.as_str();
    match instr {
        Instr::Nop => "skip".to_owned(),
        Instr::Assign(register, value) => format!("{} = {}", r(*register), e(value)),
        Instr::Havoc(register, lo, hi) => format!("{} = any({lo}..{hi})", r(*register)),
        Instr::Assume(condition) => format!("assume({})", e(condition)),
        Instr::Assert(condition, Check::Assertion) => format!("assert({})", e(condition)),
        Instr::Assert(condition, check) => format!("assert({}) else {}", e(condition), check.name()),
        Instr::Load(register, place) => format!("{} = {}", r(*register), address(system, code, place)),
        Instr::Store(place, value) => format!("{} = {}", address(system, code, place), e(value)),
        Instr::Fence => "fence".to_owned(),
        Instr::StoreFence => "sfence".to_owned(),
        Instr::Locked { rmw, result, address: place, operands } => {
            let place = address(system, code, place);
            format!("{} = {}({place}, {})", r(*result), rmw.name(), list(operands))
        }
        Instr::AtomicBegin => "atomic {".to_owned(),
        Instr::AtomicEnd => "} atomic".to_owned(),
        Instr::Call { code: callee, args, result } => {
            let call = format!("{}({})", system.codes[*callee].name, list(args));
            match result {
                Some(register) => format!("{} = {call}", r(*register)),
                None => call,
            }
        }
        Instr::Return(None) => "return".to_owned(),
        Instr::Return(Some(value)) => format!("return {}", e(value)),
        Instr::Spawn(template, args) => format!("spawn {}({})", system.templates[*template].name, list(args)),
    }
}

/// An address, such as `x`, `flag[1]`, `a[i + 1]` or `*p`.
pub fn address(system: &System, code: &Code, address: &Address) -> String {
    match address {
        Address::Cell(cell) => system.cells[*cell].name.clone(),
        Address::Element { base, index, .. } => {
            // The name of an array's first cell is `a[0]`, or `a[0].x` if it is a field.
            let name = &system.cells[*base].name;
            let (array, field) = name.split_once('[').unwrap_or((name.as_str(), ""));
            let field = field.split_once(']').map_or("", |(_, field)| field).replace("[0]", "");
            format!("{array}[{}]{field}", expression(code, index))
        }
        Address::Pointer(pointer) => {
            let mut text = "*".to_owned();
            write_expression(&mut text, code, pointer, UNARY);
            text
        }
    }
}

/// An expression over the registers of a code, with as few parentheses as the grammar of `.pal` needs.
pub fn expression(code: &Code, expr: &Expr) -> String {
    let mut text = String::new();
    write_expression(&mut text, code, expr, 0);
    text
}

/// The precedence of operators with one operand.
const UNARY: u8 = 11;

/// The precedence of comparisons.
const COMPARISON: u8 = 4;

/// The symbol of an operator and its precedence, as in Rust.
fn symbol(op: BinaryOp) -> (&'static str, u8) {
    match op {
        BinaryOp::Mul => ("*", 10),
        BinaryOp::Div => ("/", 10),
        BinaryOp::Rem => ("%", 10),
        BinaryOp::Add => ("+", 9),
        BinaryOp::Sub => ("-", 9),
        BinaryOp::Shl => ("<<", 8),
        BinaryOp::Shr => (">>", 8),
        BinaryOp::BitAnd => ("&", 7),
        BinaryOp::BitXor => ("^", 6),
        BinaryOp::BitOr => ("|", 5),
        BinaryOp::Eq => ("==", COMPARISON),
        BinaryOp::Ne => ("!=", COMPARISON),
        BinaryOp::Lt => ("<", COMPARISON),
        BinaryOp::Le => ("<=", COMPARISON),
        BinaryOp::Gt => (">", COMPARISON),
        BinaryOp::Ge => (">=", COMPARISON),
        BinaryOp::And => ("&&", 3),
        BinaryOp::Or => ("||", 2),
        BinaryOp::WordMul => ("*%", 10),
        BinaryOp::WordDiv => ("/%", 10),
        BinaryOp::WordRem => ("%%", 10),
        BinaryOp::WordAdd => ("+%", 9),
        BinaryOp::WordSub => ("-%", 9),
        BinaryOp::WordShl => ("<<%", 8),
        BinaryOp::WordShr => (">>%", 8),
        BinaryOp::WordLt => ("<%", COMPARISON),
        BinaryOp::WordLe => ("<=%", COMPARISON),
    }
}

fn write_expression(text: &mut String, code: &Code, expr: &Expr, outer: u8) {
    match expr {
        Expr::Const(value) if *value < 0 && outer >= UNARY => text.push_str(&format!("({value})")),
        Expr::Const(value) => text.push_str(&value.to_string()),
        Expr::Reg(register) => text.push_str(&code.registers[*register].name),
        Expr::Unary(op, a) => {
            text.push(match op {
                UnaryOp::Neg => '-',
                UnaryOp::Not => '!',
                UnaryOp::BitNot => '~',
            });
            write_expression(text, code, a, UNARY);
        }
        Expr::Binary(op, a, b) => {
            let (symbol, strength) = symbol(*op);
            // Comparisons do not chain. The other operators associate to the left.
            let left = if strength == COMPARISON { strength + 1 } else { strength };
            if strength < outer {
                text.push('(');
            }
            write_expression(text, code, a, left);
            text.push_str(&format!(" {symbol} "));
            write_expression(text, code, b, strength + 1);
            if strength < outer {
                text.push(')');
            }
        }
    }
}
