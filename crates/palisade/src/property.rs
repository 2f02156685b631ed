//! Programs that state no property.
//!
//! Such a program can only fail with a fault: a value outside its domain, an array index out of bounds, a
//! division by 0, an overflow. `safe` then means less than most people think, so the user is warned. Robustness does
//! not need a property.

use crate::Input;
use crate::language::InputLanguage;
use palisade_base::Diagnostic;
use palisade_program::written::{Block, Check, Program, StmtKind};
use palisade_syntax::Language;

/// A warning if the program has neither a property nor an assertion.
pub fn no_property(input: &Input) -> Option<Diagnostic> {
    let is_c = input.c.is_some();
    // The translation of C asserts many things that the program does not.
    let is_property = |check| !is_c || matches!(check, Check::Assertion | Check::NoAbort | Check::NoPanic);
    if states_property(&input.program, &is_property) || input.c.as_ref().is_some_and(|c| c.asserted()) {
        return None;
    }
    let what = match &input.c {
        Some(c) if c.asks_finish() => "faults and deadlocks",
        _ => "faults",
    };
    let message = match is_c && mentions_assert(input.source.text()) {
        true => {
            format!("no assertion is left in the program after compilation: only {what} were looked for")
        }
        false => format!("the program states no property: only {what} were looked for"),
    };
    let warning = Diagnostic::warning("no-property", message);
    let robust = format!("`palisade robust {}`", input.source.name());
    Some(warning.help(match input.language {
        InputLanguage::Text(Language::Trencher) => format!("{robust} answers the question that Trencher answers"),
        InputLanguage::Object | InputLanguage::Assembly => format!(
            "null pointers, accesses outside of variables and the like were looked for; \
             state what must hold with `assert`, or run {robust}"
        ),
        InputLanguage::C | InputLanguage::Llvm | InputLanguage::Rust => format!(
            "null pointers, accesses out of bounds, overflows and the like were looked for; \
             state what must hold with `assert`, or run {robust}"
        ),
        InputLanguage::Text(_) => format!(
            "faults are values outside their domain, array indices out of bounds, divisions by 0 and overflows; \
             state what must hold with `assert`, `forbid` or `final`, or run {robust}"
        ),
    }))
}

/// Whether C source calls `assert`.
fn mentions_assert(text: &str) -> bool {
    text.match_indices("assert").any(|(at, word)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].trim_start();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '<')) && after.starts_with('(')
    })
}

fn states_property(program: &Program, is_property: &dyn Fn(Check) -> bool) -> bool {
    let bodies = program.templates.iter().map(|template| &template.body);
    let bodies = bodies.chain(program.procedures.iter().map(|procedure| &procedure.body));
    let mut blocks: Vec<&Block> = bodies.collect();
    while let Some(block) = blocks.pop() {
        for stmt in block {
            if let StmtKind::Assert(_, check) = stmt.kind
                && is_property(check)
            {
                return true;
            }
            blocks.extend(stmt.kind.blocks());
        }
    }
    !program.properties.is_empty() || !program.progress.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;

    #[test]
    fn properties_may_be_anywhere() {
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
        check("shared x: 0..1; process P { x = 1; } deadlock-free;", pal, None);
        check("shared x: 0..1; process P { x = 1; } live end;", pal, None);
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
