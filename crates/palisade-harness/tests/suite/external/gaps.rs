//! Accesses for which compilers make no call, and functions of the C library that access memory: all are
//! followed.

use crate::common::{compile_with, failures, random, run, run_until, violations};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Findings;
use palisade_memory::Model;
use std::path::Path;

const COMPILERS: [&str; 2] = ["gcc", "clang"];
const OPTIMISATIONS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// The cases in `gaps.c`, by their names.
fn gaps() -> Vec<String> {
    let source = include_str!("../../programs/gaps.c");
    let table = source.split("gaps[] = {").nth(1).and_then(|rest| rest.split("};").next()).expect("a table");
    table.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn program(path: &Path, arguments: &[&str]) -> Program {
    let path = path.display().to_string();
    let command = std::iter::once(path).chain(arguments.iter().map(|&argument| argument.to_owned()));
    Program { command: command.collect(), scheduling: Scheduling::Best }
}

fn check_gaps(compiler: &str) {
    let gaps = gaps();
    assert!(gaps.len() > 30, "{gaps:?}");
    for optimisation in OPTIMISATIONS {
        let name = format!("gaps_{compiler}{optimisation}");
        let path = compile_with(compiler, "gaps.c", &["-w", optimisation]);
        for gap in &gaps {
            let is_seen = |findings: &Findings| violations(findings, Model::Tso) > 0;
            let findings = run_until(&program(&path, &[gap]), &random(300), is_seen);
            assert!(is_seen(&findings), "{name} {gap}");
            assert_eq!(failures(&findings), [""; 0], "{name} {gap}");
            let findings = run(&program(&path, &[&format!("-{gap}")]), &random(50));
            let found = (violations(&findings, Model::Tso), findings.unfollowed.len());
            assert_eq!(found, (0, 0), "{name} {gap} with fences");
        }
    }
}

#[test]
fn what_gcc_leaves_out_is_followed() {
    check_gaps("gcc");
}

#[test]
fn what_clang_leaves_out_is_followed() {
    check_gaps("clang");
}

#[test]
fn what_is_private_is_not_taken_for_a_gap() {
    for compiler in COMPILERS {
        for optimisation in OPTIMISATIONS {
            for more in
                ["-fomit-frame-pointer", "-fno-omit-frame-pointer", "-fstack-protector-all", "-fno-pic"]
            {
                let name = format!("followed_{compiler}{optimisation}{more}");
                let mut flags = vec![optimisation, more];
                if more == "-fno-pic" {
                    flags.push("-no-pie");
                }
                let path = compile_with(compiler, "followed.c", &flags);
                let findings = run(&program(&path, &[]), &random(20));
                let failures: Vec<_> = findings.failures.iter().map(|found| &found.what).collect();
                assert!(failures.is_empty(), "{name}: {failures:?}");
                assert!(findings.races.is_empty(), "{name}: {:?}", findings.races);
                assert!(findings.unfollowed.is_empty(), "{name}: {:?}", findings.unfollowed);
                let found = [Model::Tso, Model::Pso].map(|model| violations(&findings, model));
                assert_eq!(found, [0, 0], "{name}");
            }
        }
    }
}

#[test]
fn what_is_shared_on_a_stack_is_followed_or_reported() {
    for compiler in COMPILERS {
        for optimisation in OPTIMISATIONS {
            for mine in ["-DPLAIN", "-DRETURNS", "-DLONG_DOUBLE"] {
                let name = format!("stack_{compiler}{optimisation}{mine}");
                let path = compile_with(compiler, "stack.c", &["-w", optimisation, mine]);
                let is_reported = |findings: &Findings| {
                    findings.unfollowed.keys().any(|(what, _)| *what == Unfollowed::Access)
                };
                let is_seen =
                    |findings: &Findings| violations(findings, Model::Tso) > 0 || is_reported(findings);
                let findings = run_until(&program(&path, &[]), &random(300), is_seen);
                assert!(is_seen(&findings), "{name}");
                let reported = is_reported(&findings);
                // clang makes no call for members of a struct on the function's own stack, even if other code
                // has its address.
                assert!(
                    !reported || mine != "-DPLAIN" || compiler == "clang",
                    "{name}: {:?}",
                    findings.unfollowed
                );
            }
        }
    }
}
