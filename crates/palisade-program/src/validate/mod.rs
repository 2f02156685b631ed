//! Reports everything that is wrong with a program at once.
//!
//! *Guarantee.* A program without errors can be lowered ([`crate::lower()`]) and run. Validation takes time
//! linear in the size of the program (for expressions and statements of bounded depth). It never panics,
//! whatever the program.
//!
//! There are three separate name spaces, because the grammar distinguishes them: shared variables (and the
//! registers of a body, which must not hide them), procedures, and processes. Labels belong to their body.
//!
//! [`limits`] defines what is too large.

mod body;
mod declarations;
mod expressions;
pub mod limits;
mod names;
mod properties;

use crate::written::{Program, ProgressKind};
pub use declarations::too_many_processes;
use names::Names;
use palisade_base::{Diagnostic, nearest};

/// All errors and warnings of a program, in the order of the source. The program is usable if there are only
/// warnings.
pub fn validate(program: &Program) -> Vec<Diagnostic> {
    let mut report = Report::default();
    let names = Names::new(program, &mut report);
    declarations::check(program, &names, &mut report);
    let mut size = Size::default();
    for template in &program.templates {
        let statements = body::check_process(template, &names, &mut report);
        size.add(statements.saturating_mul(names.role_count(template)), template.origin.0);
    }
    for procedure in &program.procedures {
        let statements = body::check_procedure(procedure, &names, &mut report);
        size.add(statements, procedure.origin.0);
    }
    for property in &program.properties {
        size.add(properties::check(&property.condition, &names, &mut report), property.origin.0);
    }
    for progress in &program.progress {
        match &progress.kind {
            ProgressKind::Live(condition) => {
                size.add(properties::check(condition, &names, &mut report), progress.origin.0);
            }
            ProgressKind::Leaves { process, label } => {
                properties::check_leaves(process, label, &names, &mut report);
            }
            ProgressKind::DeadlockFree | ProgressKind::LiveEnd | ProgressKind::Terminates => {}
        }
    }
    size.check(&mut report);
    report.into_diagnostics()
}

/// Collects diagnostics.
#[derive(Default)]
struct Report {
    diagnostics: Vec<Diagnostic>,
    /// How many names have been compared for suggestions so far.
    comparisons: usize,
}

impl Report {
    fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Adds "did you mean", unless too many names have been compared already: comparing every unknown name
    /// with every known one takes quadratic time.
    fn suggest<'a>(
        &mut self,
        diagnostic: Diagnostic,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Diagnostic {
        let left = limits::MAX_COMPARISONS.saturating_sub(self.comparisons);
        let mut candidates: Vec<&str> = candidates.into_iter().take(left + 1).collect();
        self.comparisons = self.comparisons.saturating_add(candidates.len());
        if candidates.len() > left {
            return diagnostic;
        }
        // A fixed order, so that the same one of two equally similar names is always suggested.
        candidates.sort_unstable();
        match nearest(word, candidates) {
            Some(candidate) => diagnostic.help(format!("did you mean `{candidate}`?")),
            None => diagnostic,
        }
    }

    fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(Diagnostic::span);
        self.diagnostics
    }
}

/// The size of the running form.
#[derive(Default)]
struct Size {
    total: usize,
    largest: (usize, palisade_base::Span),
}

impl Size {
    fn add(&mut self, size: usize, span: palisade_base::Span) {
        self.total = self.total.saturating_add(size);
        if size > self.largest.0 {
            self.largest = (size, span);
        }
    }

    fn check(&self, report: &mut Report) {
        if self.total > limits::MAX_CODE {
            let message = format!(
                "the program is too large: its processes together have more than {} statements and expressions",
                limits::MAX_CODE
            );
            report.push(
                Diagnostic::error("too-large", message)
                    .at(self.largest.1, "the largest part")
                    .help("every combination of parameter values gets its own copy of the code"),
            );
        }
    }
}
