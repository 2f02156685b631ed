//! Programs that state no property.
//!
//! Such a program can only fail by itself: a value outside its domain, an index outside its array, a division
//! by 0, an overflow. `safe` then means less than most people think, so the user is warned. Robustness does
//! not need a property.

use crate::Input;
use palisade_base::Diagnostic;
use palisade_program::written::{Program, Stmt, StmtKind};
use palisade_syntax::Language;

/// A warning if the program has neither a property nor an assertion.
pub fn no_property(input: &Input) -> Option<Diagnostic> {
    if states_property(&input.program) {
        return None;
    }
    let warning =
        Diagnostic::warning("no-property", "the program states no property: only faults were looked for");
    let robust = format!("`palisade robust {}`", input.source.name());
    Some(warning.help(match input.language {
        Language::Trencher => format!("{robust} tells what Trencher decides"),
        _ => format!(
            "faults are values outside of their domain, indices outside of arrays, divisions by 0 and overflows; \
             say what must hold with `assert`, `forbid` or `final`, or ask {robust}"
        ),
    }))
}

fn states_property(program: &Program) -> bool {
    let bodies = program.templates.iter().map(|template| &template.body);
    let bodies = bodies.chain(program.procedures.iter().map(|procedure| &procedure.body));
    let mut blocks: Vec<&[Stmt]> = bodies.map(Vec::as_slice).collect();
    while let Some(block) = blocks.pop() {
        for stmt in block {
            match &stmt.kind {
                StmtKind::Assert(_) => return true,
                StmtKind::If { then, otherwise, .. } => blocks.extend([&then[..], &otherwise[..]]),
                StmtKind::While { body, .. }
                | StmtKind::Loop(body)
                | StmtKind::Atomic(body)
                | StmtKind::Block(body) => blocks.push(body),
                StmtKind::Choose(alternatives) => blocks.extend(alternatives.iter().map(Vec::as_slice)),
                StmtKind::Skip
                | StmtKind::Let { .. }
                | StmtKind::Assign { .. }
                | StmtKind::Eval(_)
                | StmtKind::Fence
                | StmtKind::StoreFence
                | StmtKind::Assume(_)
                | StmtKind::Await(_)
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Goto(_)
                | StmtKind::Return(_)
                | StmtKind::Spawn { .. } => {}
            }
        }
    }
    !program.properties.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;

    #[test]
    fn where_properties_may_stand() {
        let check = |text: &str, language: Language, expected: Option<&str>| {
            let input = crate::read(Source::new("p", text), language, None).expect("the program is valid");
            let found = no_property(&input);
            assert_eq!(found.is_none(), expected.is_none(), "{text}: {found:?}");
            if let (Some(found), Some(expected)) = (found, expected) {
                assert!(!found.is_error());
                assert!(found.help.as_deref().is_some_and(|help| help.contains(expected)), "{found:?}");
            }
        };
        let pal = Language::Pal;
        check("shared x: 0..1; process P { x = 1; }", pal, Some("`assert`"));
        check("shared x: 0..1; process P { x = 1; } forbid x == 1;", pal, None);
        check("shared x: 0..1; process P { x = 1; } final x == 1;", pal, None);
        for nested in [
            "if x == 1 { A }",
            "if x == 1 { skip; } else { A }",
            "while x == 1 { A }",
            "loop { A break; }",
            "atomic { { A } }",
            "choose { skip; } or { A }",
        ] {
            let text = nested.replace('A', "assert(x == 0);");
            check(&format!("shared x: 0..1; process P {{ {text} }}"), pal, None);
        }
        check("shared x: 0..1; proc f() { assert(x == 0); } process P { f(); }", pal, None);
        check("thread t\ninitial a\ntransition a b write 1 0\nend\n", Language::Trencher, Some("Trencher"));
        check("thread t\ninitial a\nfinal b\ntransition a b write 1 0\nend\n", Language::Trencher, None);
    }
}
