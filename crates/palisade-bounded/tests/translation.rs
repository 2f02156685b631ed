//! What translated programs look like: valid, readable, linear in size, and safe or not as TSO is within the bound.

use palisade_base::{Severity, Source};
use palisade_bounded::{translate_age, translate_rounds};
use palisade_engine::{Budget, Engine, Options, Silent, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_program::{print, validate, written::Program};
use palisade_syntax::{Language, parse};

fn read(text: &str) -> Program {
    parse(Language::Pal, &Source::new("test.pal", text)).unwrap_or_else(|e| panic!("{e:?}\n{text}")).program
}

/// What SC says about a translation, which must be a valid program that can be read again.
fn verdict(program: &Program) -> &'static str {
    let errors: Vec<_> = validate(program).into_iter().filter(|d| d.severity == Severity::Error).collect();
    let text = print::print(program);
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    assert_eq!(read(&text), *program, "{text}");
    let task = Task {
        program,
        threads: Threads::Declared,
        model: Model::Sc,
        interlocked: Interlocked::default(),
        options: Options::default(),
    };
    let outcome = palisade_explore::Explicit.check(&task, &Budget::unlimited(1), &Silent);
    eprintln!("{:?}", outcome.stats);
    outcome.verdict.word()
}

const DEKKER: &str = "
shared flag[2]: bool;
process P(i: 0..1) {
    flag[i] = true;
    if !flag[1 - i] {
    cs: skip;
    }
}
forbid P(0)@cs && P(1)@cs;
";

#[test]
fn smoke() {
    let program = read(DEKKER);
    eprintln!("{}", print::print(&translate_rounds(&program, 2).unwrap()));
    eprintln!("{}", print::print(&translate_age(&program, 1).unwrap()));
    for k in 0..4 {
        eprintln!("rounds {k}: {}", verdict(&translate_rounds(&program, k).unwrap()));
        eprintln!("age {k}: {}", verdict(&translate_age(&program, k).unwrap()));
    }
}
