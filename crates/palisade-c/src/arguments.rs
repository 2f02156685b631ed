//! The arguments with which the first functions of a program are called.
//!
//! `main` gets what a program started without arguments gets: its own name. Functions that are named on the command
//! line get zeros. Answers say so.

use crate::Note;
use crate::expr::Expr;
use crate::flat::ObjectId;
use crate::inline::Context;
use crate::link::FunctionRef;
use crate::memory::{Leaf, MemoryObject, Val};
use crate::objects::ObjectKind;
use palisade_base::Span;

/// The name of the program.
const NAME: &str = "program";

fn parameters(context: &Context<'_>, function: FunctionRef) -> usize {
    let module = &context.memory.linked.modules[function.module];
    module.functions[function.function].parameters.len()
}

/// The arguments of a function other than `main`: zeros.
pub(crate) fn zeros(context: &mut Context<'_>, function: FunctionRef) -> Vec<Val> {
    let count = parameters(context, function);
    if count > 0 {
        let name = context.memory.linked.name(function);
        context.circumstances.insert(Note(format!("the arguments of `{name}` are 0")));
    }
    vec![Val::Scalar(Expr::Int(0)); count]
}

/// The arguments of `main`: their number, the arguments, and an empty environment.
pub(crate) fn of_main(context: &mut Context<'_>, main: FunctionRef) -> Vec<Val> {
    let count = parameters(context, main);
    if count == 0 {
        return Vec::new();
    }
    let text = if count > 2 { " and an empty environment" } else { "" };
    let note = format!("`main` gets no arguments but the name of the program (`argc` is 1){text}");
    context.circumstances.insert(Note(note));
    let mut arguments = vec![Expr::Int(1)];
    if count > 1 {
        let bytes = NAME.bytes().chain([0]).map(|byte| Expr::Int(byte.into()));
        let name = object(context, "argv[0]", 0, bytes.collect());
        let argv = object(context, "argv", 3, vec![Expr::Address(name, 0), Expr::Int(0)]);
        arguments.push(Expr::Address(argv, 0));
    }
    if count > 2 {
        let environment = object(context, "envp", 3, vec![Expr::Int(0)]);
        arguments.push(Expr::Address(environment, 0));
    }
    arguments.resize(count, Expr::Int(0));
    arguments.into_iter().map(Val::Scalar).collect()
}

/// An array of scalars of 2^size bytes.
fn object(context: &mut Context<'_>, name: &str, size: u32, values: Vec<Expr>) -> ObjectId {
    let leaf = |(index, value)| Leaf {
        offset: i64::try_from(index << size).expect("short arrays"),
        size,
        init: Some(value),
    };
    let leaves: Vec<Leaf> = values.into_iter().enumerate().map(leaf).collect();
    context.memory.add(MemoryObject {
        name: name.to_owned(),
        kind: ObjectKind::Global,
        constant: false,
        size: i64::try_from(leaves.len() << size).expect("short arrays"),
        align: 1 << size,
        leaves,
        debug: None,
        span: Span::NONE,
    })
}
