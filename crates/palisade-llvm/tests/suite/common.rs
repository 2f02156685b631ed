//! What the tests share: reading texts, and two texts with a bit of everything.

use palisade_base::{Diagnostic, Source};
use palisade_llvm::Module;
use palisade_llvm::calls::Callee;
use palisade_llvm::instructions::Op;
use palisade_llvm::module::{Body, Function};
use palisade_llvm::values::Operand;

pub fn try_read(text: &str) -> Result<Module, Vec<Diagnostic>> {
    palisade_llvm::read(&Source::new("test.ll", text))
}

/// Reads a text that must be right.
#[track_caller]
pub fn read(text: &str) -> Module {
    let source = Source::new("test.ll", text);
    match palisade_llvm::read(&source) {
        Ok(module) => module,
        Err(errors) => panic!("{}\nin\n{text}", describe(&source, &errors)),
    }
}

/// Diagnostics with line and column, one per line.
pub fn describe(source: &Source, errors: &[Diagnostic]) -> String {
    let line = |error: &Diagnostic| {
        let position = source.position(error.span()).expect("errors have a place");
        format!("{}:{} {}: {}\n", position.line, position.column, error.id, error.message)
    };
    errors.iter().map(line).collect()
}

/// The body of a function of the module.
#[track_caller]
pub fn body<'a>(module: &'a Module, name: &str) -> (&'a Function, &'a Body) {
    let function = module.function(name).expect("the function is there");
    (function, function.body.as_ref().expect("the function has a body"))
}

/// The operations of a function, in order.
pub fn operations(body: &Body) -> Vec<&Op> {
    body.blocks.iter().flat_map(|block| &block.instructions).map(|instruction| &instruction.op).collect()
}

/// The operations of a function with this text between its braces. Its parameters are `%p`, a pointer, `%x`
/// and `%y` of type i32, and `%c` of type i1.
#[track_caller]
pub fn with_body<T>(lines: &str, use_it: impl Fn(&Module, &Body) -> T) -> T {
    let module = read(&function_with(lines));
    let (_, body) = body(&module, "f");
    use_it(&module, body)
}

/// A module with a function around these lines.
pub fn function_with(lines: &str) -> String {
    format!(
        "@g = global i32 0\ndeclare i32 @h(i32, ...)\n\
         define void @f(ptr %p, i32 %x, i32 %y, i1 %c) {{\nentry:\n{lines}\n}}\n"
    )
}

/// The name of the function that a call calls.
pub fn callee(module: &Module, body: &Body, op: &Op) -> Option<String> {
    match op.call()?.callee {
        Callee::Value(operand @ Operand::Constant(_)) => Some(module.display(body, operand).to_string()),
        _ => None,
    }
}

/// A spinlock in the text of LLVM 14: pointers have a pointee, and debug information is in calls.
pub const TYPED: &str = include_str!("texts/typed.ll");

/// The same in the text of LLVM 19: opaque pointers, and debug information in records.
pub const OPAQUE: &str = include_str!("texts/opaque.ll");

/// All lexical forms and rare constructs.
pub const FORMS: &str = include_str!("texts/forms.ll");
