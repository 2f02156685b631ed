//! Memory: the variables of a file, and what a memory location refers to.
//!
//! Global variables are declared first, in the order of the file, so the variable `[i]` has the address `i +
//! 1`. A pointer that may miss them is guarded by an assumption. If it points elsewhere, it blocks, and it
//! never reaches the memory of a process.

use super::ast::{Cell, Declaration, Expr, File, Word};
use super::linear::Linear;
use super::locals::{Copy, Locals, duplicate};
use super::messages::Messages;
use super::names::Names;
use super::token::Here;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, Origin, Span};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Domain, Expr as Written, ExprKind, Init, InitValue, Name, Outside, Place, PlaceKind, Shared,
    Type, UnaryOp,
};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// The memory of a file.
pub(crate) struct Memory<'a> {
    /// Global variables by name, as indices into `globals`.
    by_name: FxHashMap<&'a str, usize>,
    globals: Vec<(Arc<str>, &'a Declaration<'a>)>,
    /// The memory of the processes.
    pub locals: Locals<'a>,
}

/// The process that a location belongs to, and what is known about its registers.
pub(crate) struct View<'v> {
    /// The index of the process in the file.
    pub process: usize,
    /// The numbers of the copies that the statement is translated for.
    pub copies: &'v Range<u32>,
    /// The parameter that holds the number, if there are several copies.
    pub me: Option<&'v Arc<str>>,
    /// The domains of registers.
    pub domain: &'v dyn Fn(&str) -> Option<(Value, Value)>,
}

/// A memory location as a place of the written form.
pub(crate) struct ResolvedCell<'a, 'e> {
    /// The variable or array cell, or a pointer that depends on registers.
    pub place: Result<Place, Pointer<'a, 'e>>,
    /// Its domain, if it is one variable with a finite domain.
    pub domain: Option<(Value, Value)>,
}

/// A pointer that depends on registers.
pub(crate) struct Pointer<'a, 'e> {
    /// The pointer as written.
    pub expr: &'e Expr<'a>,
    /// The pointer as a sum, unless it is too long.
    pub sum: Option<Linear<'a>>,
    /// Whether it can be negative.
    pub from_below: bool,
    /// The number of global variables, if the pointer can be that large.
    pub from_above: Option<Value>,
    /// Its place in the text.
    pub here: Here,
}

impl<'a> Memory<'a> {
    /// Declares all variables.
    pub fn new(
        file: &'a File<'a>,
        names: &mut Names,
        shared: &mut Vec<Shared>,
        messages: &mut Messages,
    ) -> Memory<'a> {
        let mut by_name = FxHashMap::default();
        let mut globals: Vec<(Arc<str>, &Declaration<'_>)> = Vec::new();
        for declaration in &file.globals {
            if let Some(&before) = by_name.get(declaration.name.text) {
                let before: &(Arc<str>, &Declaration<'_>) = &globals[before];
                duplicate(declaration.name, before.1.name.here, "variable", messages);
                continue;
            }
            let name = names.fresh(None, &[declaration.name.text]);
            by_name.insert(declaration.name.text, globals.len());
            shared.push(Shared {
                name: Name::new(Arc::clone(&name), declaration.name.here.span),
                len: None,
                ty: declared_type(declaration),
                init: Init::Every(initial(declaration)),
                at: None,
                origin: declaration.origin(),
            });
            globals.push((name, declaration));
        }
        for declaration in file.globals.iter().chain(file.processes.iter().flat_map(|process| &process.data))
        {
            if declaration.init.is_none() && declaration.domain.is_none() {
                let name = declaration.name.text;
                let message = format!("`{name}` can start with infinitely many values");
                let error = Diagnostic::error("any-without-domain", message);
                let help = format!("give it a domain, such as `{name} = * : [0:3]`, or an initial value");
                messages.at(declaration.name.here, "", error.help(help));
            }
        }
        let locals = Locals::new(&file.processes, names, shared, messages);
        Memory { by_name, globals, locals }
    }

    /// What a memory location means to a process; `None` if there is an error.
    pub fn find<'e>(
        &self,
        cell: &'e Cell<'a>,
        view: &View<'_>,
        messages: &mut Messages,
    ) -> Option<ResolvedCell<'a, 'e>> {
        match cell {
            Cell::Global(name) => match self.by_name.get(name.text) {
                Some(global) => Some(self.global(*global, name.here)),
                None => {
                    self.unknown(*name, messages);
                    None
                }
            },
            Cell::Own(name, here) => match self.locals.own(*name, view.process, view.copies) {
                Some((copy, domain)) => Some(ResolvedCell { place: Ok(place(copy, view, *here)), domain }),
                None => {
                    self.unknown_local(*name, *here, messages);
                    None
                }
            },
            Cell::Other(name, n, here) => {
                if !self.locals.has(name.text) {
                    self.unknown_local(*name, *here, messages);
                    return None;
                }
                let (copy, domain) = self.locals.other(*name, *n, *here, view.copies, messages)?;
                Some(ResolvedCell { place: Ok(place(copy, view, *here)), domain })
            }
            Cell::Pointer(pointer, here) => self.pointer(pointer, *here, view, messages),
        }
    }

    fn global<'e>(&self, global: usize, here: Here) -> ResolvedCell<'a, 'e> {
        let (name, declaration) = &self.globals[global];
        let kind = PlaceKind::Named(Name::new(Arc::clone(name), here.span));
        ResolvedCell { place: Ok(Place::new(kind, here.span)), domain: declaration.domain }
    }

    fn pointer<'e>(
        &self,
        pointer: &'e Expr<'a>,
        here: Here,
        view: &View<'_>,
        messages: &mut Messages,
    ) -> Option<ResolvedCell<'a, 'e>> {
        let count = Value::try_from(self.globals.len()).expect("the globals fit into memory");
        let sum = Linear::of(pointer);
        let bounds = sum.as_ref().and_then(|sum| sum.bounds(view.domain));
        if count == 0 || bounds.is_some_and(|(least, greatest)| greatest < 0 || count <= least) {
            let message = if count == 0 {
                "this pointer has no target: there are no global variables".to_owned()
            } else {
                format!("this does not point to a global variable; these are [0] to [{}]", count - 1)
            };
            let help = "`[i]` is the variable with index i in the global section `data`, from 0";
            messages.at(here, "", Diagnostic::error("invalid-pointer", message).help(help));
            return None;
        }
        if let Some(index) =
            sum.as_ref().and_then(Linear::value).and_then(|value| usize::try_from(value).ok())
        {
            return Some(self.global(index, here));
        }
        let from_below = bounds.is_none_or(|(least, _)| least < 0);
        let from_above = bounds.is_none_or(|(_, greatest)| count <= greatest).then_some(count);
        let sum = sum.filter(|sum| sum.terms.len() <= 4);
        Some(ResolvedCell {
            place: Err(Pointer { expr: pointer, sum, from_below, from_above, here }),
            domain: None,
        })
    }

    fn unknown(&self, name: Word<'a>, messages: &mut Messages) {
        let word = name.text;
        let error = Diagnostic::error("unknown-variable", format!("there is no global variable `{word}`"));
        let error = if self.locals.has(word) {
            error.help(format!(
                "`{word}` belongs to processes: `{word}[my]` is the process's own, `{word}[0]` that of another process"
            ))
        } else {
            suggest(error, word, self.by_name.keys().copied())
        };
        messages.at(name.here, "", error);
    }

    fn unknown_local(&self, name: Word<'a>, here: Here, messages: &mut Messages) {
        let word = name.text;
        let error = Diagnostic::error(
            "unknown-variable",
            format!("this process has no variable `{word}` of its own"),
        );
        let error = if self.by_name.contains_key(word) {
            error.help(format!("`{word}` is a global variable; write it without brackets"))
        } else {
            suggest(error, word, self.locals.names())
        };
        messages.at(here, "", error);
    }
}

/// Adds "did you mean" if there is a similar name.
pub(crate) fn suggest<'n>(
    error: Diagnostic,
    word: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Diagnostic {
    match similar(word, known) {
        Some(known) => error.help(format!("did you mean `{known}`?")),
        None => error,
    }
}

/// The known name that is most similar to a word. Of equally similar names, the first in the alphabet,
/// whatever their order.
pub(crate) fn similar<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let mut known: Vec<&str> = known.into_iter().collect();
    if known.len() > 1000 {
        return None;
    }
    known.sort_unstable();
    nearest(word, known)
}

fn place(copy: Copy, view: &View<'_>, here: Here) -> Place {
    let span = here.span;
    let me = || {
        let me = view.me.expect("a process with several copies has its number as parameter");
        let name = Name::new(Arc::clone(me), span);
        Written::new(ExprKind::Read(Place::new(PlaceKind::Named(name), span)), span)
    };
    let element = |array, index| PlaceKind::Element(Name::new(array, span), Box::new(index));
    let kind = match copy {
        Copy::Scalar(name) => PlaceKind::Named(Name::new(name, span)),
        Copy::Fixed(array, index) => element(array, int(index, span)),
        Copy::Own(array) => element(array, me()),
        Copy::Other(array, n) => {
            let later = binary(BinaryOp::Le, me(), int(n, span), span);
            let index = if n == 0 { later } else { binary(BinaryOp::Add, int(n, span), later, span) };
            element(array, index)
        }
        Copy::Opposite(array, sum) => element(array, binary(BinaryOp::Sub, int(sum, span), me(), span)),
    };
    Place::new(kind, span)
}

/// A literal.
pub(crate) fn int(value: Value, span: Span) -> Written {
    let literal = |value| Written::new(ExprKind::Int(value), span);
    match value.checked_neg() {
        Some(positive) if value < 0 => {
            Written::new(ExprKind::Unary(UnaryOp::Neg, Box::new(literal(positive))), span)
        }
        _ => literal(value),
    }
}

/// An operator with two operands.
pub(crate) fn binary(op: BinaryOp, left: Written, right: Written, span: Span) -> Written {
    Written::new(ExprKind::Binary(op, Box::new(left), Box::new(right)), span)
}

/// The type of a variable or register: values outside the domain block.
pub(crate) fn declared_type(declaration: &Declaration<'_>) -> Type {
    match declaration.domain {
        Some((lo, hi)) => Type { domain: Domain::Range { lo, hi }, outside: Outside::Block },
        None => Type::INT,
    }
}

/// The initial value of a variable.
pub(crate) fn initial(declaration: &Declaration<'_>) -> InitValue {
    declaration.init.map_or(InitValue::Any, |value| InitValue::Const(int(value, declaration.name.here.span)))
}

impl Declaration<'_> {
    /// Its span as an origin.
    pub fn origin(&self) -> Origin {
        Origin(self.here.span)
    }
}
