//! The names declared in a program.

use super::declarations::hides_shared;
use super::{Report, limits};
use crate::lower::globals::{Memory, layout};
use crate::written::{Name, Param, Procedure, Program, Stmt, StmtKind, Template};
use palisade_base::{Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// The global names of a program. If a name is declared twice, the first declaration counts.
pub(super) struct Names<'p> {
    /// Where the cells of shared variables are.
    pub(super) memory: FxHashMap<&'p str, Memory>,
    /// Where the shared variables are declared.
    pub(super) shared: FxHashMap<&'p str, Span>,
    /// Where the private variables are declared.
    pub(super) privates: FxHashMap<&'p str, Span>,
    pub(super) procedures: FxHashMap<&'p str, &'p Procedure>,
    pub(super) templates: FxHashMap<&'p str, (&'p Template, BodyNames<'p>)>,
    /// The arrays with one cell per process, if the number of processes is open.
    pub(super) per_identity: FxHashSet<&'p str>,
}

/// The registers and labels of a body.
#[derive(Default)]
pub(super) struct BodyNames<'p> {
    /// Registers declared by `let`, with the spans of their names.
    pub(super) registers: FxHashMap<&'p str, Span>,
    pub(super) labels: FxHashMap<&'p str, LabelPlace>,
}

/// Where a label is.
#[derive(Clone, Copy)]
pub(super) struct LabelPlace {
    pub(super) span: Span,
    /// How many atomic blocks contain it.
    pub(super) atomic_depth: usize,
    /// The number of the innermost atomic block, counted from 1 in the order of the text; 0 if there is none.
    pub(super) atomic_block: usize,
}

impl<'p> Names<'p> {
    /// Collects the names and reports those declared twice, except registers and labels.
    pub(super) fn new(program: &'p Program, report: &mut Report) -> Names<'p> {
        let mut names = Names {
            memory: layout(&program.shared),
            shared: FxHashMap::default(),
            privates: FxHashMap::default(),
            procedures: FxHashMap::default(),
            templates: FxHashMap::default(),
            per_identity: FxHashSet::default(),
        };
        if let Some(identities) = program.identities.as_ref().filter(|_| program.has_open_identities()) {
            names.per_identity = identities.arrays.iter().map(|array| &**array).collect();
        }
        for variable in &program.shared {
            match names.shared.get(variable.name.as_str()) {
                Some(&first) => report.push(declared_twice("shared variable", &variable.name, first)),
                None => {
                    names.shared.insert(variable.name.as_str(), variable.name.span());
                }
            }
        }
        for private in &program.privates {
            let name = &private.name;
            match (names.privates.get(name.as_str()), names.shared.get(name.as_str())) {
                (Some(&first), _) => report.push(declared_twice("private variable", name, first)),
                (None, Some(&shared)) => report.push(hides_shared("private variable", name, shared)),
                (None, None) => _ = names.privates.insert(name.as_str(), name.span()),
            }
        }
        for procedure in &program.procedures {
            match names.procedures.get(procedure.name.as_str()) {
                Some(first) => report.push(declared_twice("procedure", &procedure.name, first.name.span())),
                None => {
                    names.procedures.insert(procedure.name.as_str(), procedure);
                }
            }
        }
        for template in &program.templates {
            match names.templates.get(template.name.as_str()) {
                Some((first, _)) => report.push(declared_twice("process", &template.name, first.name.span())),
                None => {
                    let body = BodyNames::new(&template.body);
                    names.templates.insert(template.name.as_str(), (template, body));
                }
            }
        }
        names
    }

    /// The number of roles of a template. If it exceeds the limit, the result may be too small but still
    /// exceeds it.
    pub(super) fn role_count(&self, template: &Template) -> usize {
        let count = template.params.iter().map(values).fold(1u64, u64::saturating_mul);
        count.min(limits::MAX_ROLES + 1) as usize
    }
}

/// The number of values of a parameter. It is 1 if the domain is empty or infinite, which is reported
/// elsewhere.
pub(super) fn values(param: &Param) -> u64 {
    param.ty.domain.bounds().and_then(|(lo, hi)| width(lo, hi)).unwrap_or(1)
}

/// The number of values from `lo` to `hi`, saturating; `None` if there are none.
pub(super) fn width(lo: crate::Value, hi: crate::Value) -> Option<u64> {
    (lo <= hi).then(|| hi.abs_diff(lo).saturating_add(1))
}

/// The error for a second declaration.
pub(super) fn declared_twice(what: &str, name: &Name, first: Span) -> Diagnostic {
    Diagnostic::error("duplicate-name", format!("the {what} `{name}` is declared twice"))
        .at(name.span(), "declared again here")
        .at(first, "first declared here")
}

impl<'p> BodyNames<'p> {
    pub(super) fn new(body: &'p [Stmt]) -> BodyNames<'p> {
        let mut names = BodyNames::default();
        names.collect(body, 0, 0, &mut 0);
        names
    }

    fn collect(&mut self, block: &'p [Stmt], atomic_depth: usize, atomic_block: usize, blocks: &mut usize) {
        for stmt in block {
            for label in &stmt.labels {
                let place = LabelPlace { span: label.span(), atomic_depth, atomic_block };
                self.labels.entry(label.as_str()).or_insert(place);
            }
            match &stmt.kind {
                StmtKind::Let { name, .. } => {
                    self.registers.entry(name.as_str()).or_insert(name.span());
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.collect(then, atomic_depth, atomic_block, blocks);
                    self.collect(otherwise, atomic_depth, atomic_block, blocks);
                }
                StmtKind::While { body, .. } | StmtKind::Loop(body) | StmtKind::Block(body) => {
                    self.collect(body, atomic_depth, atomic_block, blocks);
                }
                StmtKind::Choose(alternatives) => {
                    for alternative in alternatives {
                        self.collect(alternative, atomic_depth, atomic_block, blocks);
                    }
                }
                StmtKind::Atomic(body) => {
                    *blocks += 1;
                    self.collect(body, atomic_depth + 1, *blocks, blocks);
                }
                _ => {}
            }
        }
    }
}
