//! The memory of processes: `x[my]` and `x[N]`.
//!
//! A variable that every process declares with the same domain becomes one array with a cell per process.
//! Otherwise each process's copy becomes a separate variable.

use super::ast::{Cell, Declaration, Process, Statement, StatementKind, Word};
use super::memory::{declared_type, initial};
use super::messages::Messages;
use super::names::Names;
use super::token::Here;
use palisade_base::Diagnostic;
use palisade_program::Value;
use palisade_program::written::{Init, Name, Shared};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// The copies of one variable.
struct Local<'a> {
    /// The processes that declare it, by their index in the file, and their declarations.
    declared: Vec<(usize, &'a Declaration<'a>)>,
    layout: Layout,
}

enum Layout {
    /// One array for all processes.
    Array(Arc<str>),
    /// One variable per process that declares it, by the number of the process.
    Scalars(FxHashMap<u32, Arc<str>>),
}

/// The memory of the processes.
pub(crate) struct Locals<'a> {
    by_name: FxHashMap<&'a str, Local<'a>>,
    /// For each process of the file, the numbers of its copies.
    numbers: Vec<Range<u32>>,
}

/// How a process addresses its memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Addressing {
    /// Not at all. Its copies are identical.
    None,
    /// By an index that depends on the number of the process.
    Indexed,
    /// By names that depend on the number of the process.
    Named,
}

/// What a mention of a local variable means to a process.
pub(crate) enum Copy {
    /// A variable.
    Scalar(Arc<str>),
    /// A cell of an array, the same for all copies of the process.
    Fixed(Arc<str>, Value),
    /// The cell whose index is the number of the process.
    Own(Arc<str>),
    /// The cell `n + (me <= n)`.
    Other(Arc<str>, Value),
    /// The cell `sum - me`, which belongs to the other one of two copies.
    Opposite(Arc<str>, Value),
}

impl<'a> Locals<'a> {
    /// Lays out the memory of the processes and declares it.
    pub fn new(
        processes: &'a [Process<'a>],
        names: &mut Names,
        shared: &mut Vec<Shared>,
        messages: &mut Messages,
    ) -> Locals<'a> {
        let mut next = 0;
        let numbers: Vec<Range<u32>> = processes
            .iter()
            .map(|process| {
                next += process.count;
                next - process.count..next
            })
            .collect();
        let mut order = Vec::new();
        let mut declarations: FxHashMap<&str, Vec<(usize, &Declaration<'_>)>> = FxHashMap::default();
        for (index, process) in processes.iter().enumerate() {
            for declaration in &process.data {
                let declared = declarations.entry(declaration.name.text).or_default();
                match declared.last() {
                    None => order.push(declaration.name.text),
                    Some((by, before)) if *by == index => {
                        duplicate(declaration.name, before.name.here, "variable", messages);
                        continue;
                    }
                    Some(_) => {}
                }
                declared.push((index, declaration));
            }
        }
        let mut locals = Locals { by_name: FxHashMap::default(), numbers };
        for name in order {
            let declared = declarations.remove(name).expect("the variable was declared");
            locals.lay_out(name, declared, names, shared);
        }
        locals
    }

    fn lay_out(
        &mut self,
        name: &'a str,
        declared: Vec<(usize, &'a Declaration<'a>)>,
        names: &mut Names,
        shared: &mut Vec<Shared>,
    ) {
        let (_, first) = declared[0];
        let alike = declared.iter().all(|(_, declaration)| declaration.domain == first.domain);
        let layout = if declared.len() == self.numbers.len() && alike {
            let array = names.fresh(None, &[name, &format!("{name}_of")]);
            let init = if declared.iter().all(|(_, declaration)| declaration.init == first.init) {
                Init::Every(initial(first))
            } else {
                let cells = declared.iter().flat_map(|(process, declaration)| {
                    self.numbers[*process].clone().map(|_| initial(declaration))
                });
                Init::Each(cells.collect())
            };
            shared.push(Shared {
                name: Name::new(Arc::clone(&array), first.name.here.span),
                len: Some(self.total()),
                ty: declared_type(first),
                init,
                at: None,
                origin: first.origin(),
            });
            Layout::Array(array)
        } else {
            let mut scalars = FxHashMap::default();
            for (process, declaration) in &declared {
                for number in self.numbers[*process].clone() {
                    let scalar =
                        names.fresh(None, &[&format!("{name}_{number}"), &format!("{name}_of_{number}")]);
                    shared.push(Shared {
                        name: Name::new(Arc::clone(&scalar), declaration.name.here.span),
                        len: None,
                        ty: declared_type(declaration),
                        init: Init::Every(initial(declaration)),
                        at: None,
                        origin: declaration.origin(),
                    });
                    scalars.insert(number, scalar);
                }
            }
            Layout::Scalars(scalars)
        };
        self.by_name.insert(name, Local { declared, layout });
    }

    /// The number of processes, copies included.
    pub fn total(&self) -> u32 {
        self.numbers.last().map_or(0, |numbers| numbers.end)
    }

    /// The numbers of the copies of a process of the file.
    pub fn numbers(&self, process: usize) -> Range<u32> {
        self.numbers[process].clone()
    }

    /// Whether some process has a variable with that name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.by_name.keys().copied()
    }

    /// How the statements of a process address the memory of processes.
    pub fn addressing(&self, statements: &[Statement<'a>]) -> Addressing {
        let of = |statement: &Statement<'a>| match &statement.kind {
            StatementKind::Await(_, parts) | StatementKind::Write(_, parts) => self.addressing_of(&parts.0),
            StatementKind::Load(_, parts) => self.addressing_of(&parts.1),
            StatementKind::Cas(parts) => self.addressing_of(&parts.0),
            StatementKind::If(parts) => self.addressing(&parts.1).max(self.addressing(&parts.2)),
            StatementKind::While(parts) => self.addressing(&parts.1),
            StatementKind::Either(alternatives) | StatementKind::Locked(alternatives) => alternatives
                .iter()
                .map(|alternative| self.addressing(alternative))
                .max()
                .unwrap_or(Addressing::None),
            StatementKind::Block(statements) => self.addressing(statements),
            _ => Addressing::None,
        };
        statements.iter().map(of).max().unwrap_or(Addressing::None)
    }

    fn addressing_of(&self, cell: &Cell<'a>) -> Addressing {
        match cell {
            Cell::Global(_) | Cell::Pointer(..) => Addressing::None,
            Cell::Own(name, _) | Cell::Other(name, ..) => match self.by_name.get(name.text) {
                Some(Local { layout: Layout::Scalars(_), .. }) => Addressing::Named,
                _ => Addressing::Indexed,
            },
        }
    }

    /// What `x[my]` means to the copies with these numbers, and its domain.
    pub fn own(
        &self,
        name: Word<'a>,
        process: usize,
        copies: &Range<u32>,
    ) -> Option<(Copy, Option<(Value, Value)>)> {
        let local = self.by_name.get(name.text)?;
        let domain = local.by_process(process)?.domain;
        let copy = match &local.layout {
            Layout::Array(array) if copies.len() == 1 => Copy::Fixed(Arc::clone(array), copies.start.into()),
            Layout::Array(array) => Copy::Own(Arc::clone(array)),
            Layout::Scalars(scalars) => Copy::Scalar(Arc::clone(scalars.get(&copies.start)?)),
        };
        Some((copy, domain))
    }

    /// What `x[n]` means to the copies with these numbers, and its domain. Reports an error if there is no
    /// such variable.
    pub fn other(
        &self,
        name: Word<'a>,
        n: Value,
        here: Here,
        copies: &Range<u32>,
        messages: &mut Messages,
    ) -> Option<(Copy, Option<(Value, Value)>)> {
        let others = self.total() - 1;
        let Some(n) = u32::try_from(n).ok().filter(|n| *n < others) else {
            let message = match others {
                0 => "there is no other process".to_owned(),
                1 => format!("there is only one other process, so only `{}[0]` exists", name.text),
                _ => format!(
                    "there are only {others} other processes: `{0}[0]` to `{0}[{1}]`",
                    name.text,
                    others - 1
                ),
            };
            messages.at(here, "", Diagnostic::error("no-such-process", message));
            return None;
        };
        // For processes with a number up to n it is process n + 1, for later ones process n.
        let owners = [(copies.start <= n).then_some(n + 1), (copies.end - 1 > n).then_some(n)];
        let local = self.by_name.get(name.text)?;
        let mut domain = None;
        for owner in owners.into_iter().flatten() {
            let process = self.numbers.partition_point(|numbers| numbers.end <= owner);
            match local.by_process(process) {
                Some(declaration) => domain = declaration.domain,
                None => {
                    let message = format!("process {owner} has no variable `{}`", name.text);
                    let error = Diagnostic::error("unknown-variable", message);
                    let help = format!("`{}[{n}]` means the variable of process {owner} here", name.text);
                    messages.at(here, "", error.help(help));
                    return None;
                }
            }
        }
        let copy = match (&local.layout, owners) {
            (Layout::Array(array), [Some(_), Some(_)]) if *copies == (n..n + 2) => {
                Copy::Opposite(Arc::clone(array), (2 * n + 1).into())
            }
            (Layout::Array(array), [Some(_), Some(_)]) => Copy::Other(Arc::clone(array), n.into()),
            (Layout::Array(array), [Some(owner), None] | [None, Some(owner)]) => {
                Copy::Fixed(Arc::clone(array), owner.into())
            }
            (Layout::Scalars(scalars), [Some(owner), _] | [None, Some(owner)]) => {
                Copy::Scalar(Arc::clone(scalars.get(&owner)?))
            }
            (_, [None, None]) => return None,
        };
        Some((copy, domain))
    }
}

impl<'a> Local<'a> {
    /// The declaration in a process of the file.
    fn by_process(&self, process: usize) -> Option<&'a Declaration<'a>> {
        let at = self.declared.binary_search_by_key(&process, |(by, _)| *by).ok()?;
        Some(self.declared[at].1)
    }
}

/// Reports a second declaration of a name.
pub(crate) fn duplicate(name: Word<'_>, before: Here, what: &str, messages: &mut Messages) {
    let error = Diagnostic::error("duplicate-name", format!("the {what} `{}` is declared twice", name.text));
    messages.at_both(name.here, "", Some((before, "first declared here")), error);
}
