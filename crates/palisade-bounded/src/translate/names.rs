//! Names that the program does not use yet.

use palisade_base::limits;
use palisade_program::print::is_legal_name;
use palisade_program::written::{Block, Program, StmtKind};
use rustc_hash::FxHashSet;

/// The names in use. Variables, registers, parameters, procedures, processes and labels share one set, so
/// that a new name is unambiguous wherever it occurs.
pub(super) struct Names {
    taken: FxHashSet<String>,
}

impl Names {
    /// The names of a program.
    pub(super) fn new(program: &Program) -> Names {
        let mut names = Names { taken: FxHashSet::default() };
        let shared = program.shared.iter().map(|variable| &variable.name);
        let privates = program.privates.iter().map(|private| &private.name);
        let procedures = program.procedures.iter().map(|procedure| &procedure.name);
        let templates = program.templates.iter().map(|template| &template.name);
        let values = program.enums.iter().flat_map(|declared| &declared.values);
        let enums = program.enums.iter().map(|declared| &declared.name).chain(values);
        for name in shared.chain(privates).chain(procedures).chain(templates).chain(enums) {
            names.taken.insert(name.to_string());
        }
        for procedure in &program.procedures {
            names.taken.extend(procedure.params.iter().map(|param| param.name.to_string()));
            names.collect(&procedure.body);
        }
        for template in &program.templates {
            names.taken.extend(template.params.iter().map(|param| param.name.to_string()));
            names.collect(&template.body);
        }
        names
    }

    fn collect(&mut self, block: &Block) {
        for stmt in block {
            limits::checkpoint();
            self.taken.extend(stmt.labels.iter().map(|label| label.to_string()));
            if let StmtKind::Let { name, .. } = &stmt.kind {
                self.taken.insert(name.to_string());
            }
            stmt.kind.blocks().into_iter().for_each(|block| self.collect(block));
        }
    }

    /// A new name: the wanted one, with `_` for what only names between backquotes contain, and with `_` appended until
    /// it is legal and unused.
    pub(super) fn fresh(&mut self, wanted: impl Into<String>) -> String {
        let wanted: String = wanted.into();
        let mut name = wanted.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            name.insert(0, '_');
        }
        while !is_legal_name(&name) || !self.taken.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_between_backquotes_lead_to_legal_names() {
        let mut names = Names { taken: FxHashSet::default() };
        let mut check = |wanted: &str, expected: &str| assert_eq!(names.fresh(wanted), expected);
        check("node[].next", "node___next");
        check("node[].next", "node___next_");
        check("3rd", "_3rd");
        check("", "_");
        check("loop", "loop_");
    }
}
