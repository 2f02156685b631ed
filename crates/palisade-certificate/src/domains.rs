//! Domains of cells that were guessed, and are proved together with the program.
//!
//! *Problem.* Proofs list values of cells. A counter in a loop has too many values to list if nothing is known about
//! it, although it takes only a few in any run.
//!
//! *Why a guess is enough.* In the narrowed program a store of a value outside the domain of its cell is a run-time
//! error. Otherwise it is the same program: the same cells, initial values, instructions and properties. Take a run of
//! the program. As long as all its stores stay inside the domains, it is a run of the narrowed program, step by
//! step. The first store that does not would be an error there. So if the narrowed program is safe, no run has such a
//! store, every run of the program is a run of the narrowed one, and the program is safe.
//!
//! *What is checked* ([`narrowed`]), because only this makes the argument hold:
//! 1. A domain is named at most once, and belongs to a cell of the program.
//! 2. It is part of the cell's own domain. A cell without a domain (`int`) has all integers.
//! 3. The cell has one fixed initial value: narrowing the domain must not reduce the initial values.
//! 4. Values outside its own domain do not block a process: an error instead would be harmless, but it is not the
//!    same program.
//! 5. If the cell wraps around, what `cas` expects in it is in its own domain. Otherwise `cas` compares with what the number
//!    becomes in the cell, and could succeed where it fails in the narrowed program ([`wraps`](crate::wraps)).

use crate::Refusal;
use crate::wraps::expects_within;
use palisade_program::Value;
use palisade_program::written::{Init, InitValue, Outside, Program, Type};

/// The values that a cell, or each element of an array, is claimed to take, both ends included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellDomain {
    /// The name of the variable.
    pub name: String,
    /// The least value.
    pub lo: Value,
    /// The greatest value.
    pub hi: Value,
}

/// The program in which stores outside these domains are errors. If it is safe, so is the program.
pub fn narrowed(program: &Program, domains: &[CellDomain]) -> Result<Program, Refusal> {
    let mut narrow = program.clone();
    if domains.is_empty() {
        return Ok(narrow);
    }
    for (index, CellDomain { name, lo, hi }) in domains.iter().enumerate() {
        let refuse = |why: &str| Err(Refusal::Unfit(format!("the domain of `{name}` {why}")));
        if domains[..index].iter().any(|other| other.name == *name) {
            return refuse("is there twice");
        }
        let Some(shared) = narrow.shared.iter_mut().find(|shared| shared.name.as_str() == name) else {
            return refuse("is not that of a variable");
        };
        let own = shared.ty.domain;
        if lo > hi || !own.contains(*lo) || !own.contains(*hi) {
            return refuse("is not part of the variable's own");
        }
        if shared.ty.outside == Outside::Block {
            return refuse("replaces one that blocks");
        }
        if shared.ty.outside == Outside::Wrap && !expects_within(program, name, own) {
            return refuse("would change what `cas` compares with");
        }
        let is_any = |value: &InitValue| *value == InitValue::Any;
        let arbitrary = match &shared.init {
            Init::Every(value) => is_any(value),
            Init::Each(values) => values.iter().any(is_any),
        };
        if arbitrary {
            return refuse("would narrow its initial values");
        }
        shared.ty = Type::range(*lo, *hi);
    }
    if palisade_program::validate(&narrow).iter().any(palisade_base::Diagnostic::is_error) {
        return Err(Refusal::Unfit("an initial value is outside its domain".to_owned()));
    }
    Ok(narrow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;
    use palisade_syntax::{Language, parse};

    fn check(text: &str, domains: &[(&str, Value, Value)], expected: Option<&str>) {
        let program = parse(Language::Pal, &Source::new("p", text)).expect("it is well formed").program;
        let domain = |&(name, lo, hi): &(&str, Value, Value)| CellDomain { name: name.to_owned(), lo, hi };
        let domains: Vec<CellDomain> = domains.iter().map(domain).collect();
        let why = narrowed(&program, &domains).err().map(|refusal| refusal.to_string());
        assert_eq!(why.is_some(), expected.is_some(), "{text}: {why:?}");
        assert!(expected.is_none_or(|part| why.is_some_and(|why| why.contains(part))), "{text}");
    }

    #[test]
    fn what_a_domain_must_be() {
        let text =
            "shared x: 0..9 wrap; shared y: 0..3 blocking; shared z: 0..3 = *; process P { x = y + z; }";
        check(text, &[("x", 0, 4)], None);
        check(text, &[("x", 0, 9)], None);
        check(text, &[("x", 0, 4), ("x", 0, 3)], Some("is there twice"));
        check(text, &[("w", 0, 4)], Some("is not that of a variable"));
        check(text, &[("x", 0, 10)], Some("is not part of"));
        check(text, &[("x", -1, 3)], Some("is not part of"));
        check(text, &[("x", 3, 2)], Some("is not part of"));
        check(text, &[("x", 1, 3)], Some("initial value"));
        check(text, &[("y", 0, 1)], Some("blocks"));
        check(text, &[("z", 0, 1)], Some("narrow its initial values"));
        for (operand, expected) in [
            ("7", None),
            ("any(0..9)", None),
            ("r", None),
            ("!r", None),
            ("y", None),
            ("10", Some("what `cas` compares with")),
            ("-1", Some("what `cas` compares with")),
            ("r + 1", Some("what `cas` compares with")),
            ("wide", Some("what `cas` compares with")),
            ("z", Some("what `cas` compares with")),
        ] {
            let text = format!(
                "shared x: 0..9 wrap; shared y: 0..9; shared z: -1..9; shared other: 0..9 wrap;
                 process P {{ let r: 0..9; let wide: int; if cas(other, 11, 1) || cas(x, {operand}, 1) {{ skip; }} }}"
            );
            check(&text, &[("x", 0, 4)], expected);
        }
        let text =
            "shared x: 0..9 wrap; shared y: 0..9; process P { let p = &y; if cas(*p, 11, 1) { skip; } }";
        check(text, &[("x", 0, 4)], Some("what `cas` compares with"));
        let text = "shared n: int = -3; shared a[2] = [1, 7]; process P { a[1] = n; }";
        check(text, &[("n", -3, 4), ("a", 1, 7)], None);
        check(text, &[("n", -2, 4)], Some("initial value"));
        check(text, &[("a", 1, 6)], Some("initial value"));
    }
}
