//! Violations of sequential consistency in small programs, compiled and run.

use crate::common::{compile, compile_with, failures, program, random, run, violations};
use palisade_memory::Model;

#[test]
fn dekker_is_broken_without_fences_and_correct_with_them() {
    let findings = run(&program(&compile("dekker.c", &[])), &random(200));
    assert_eq!((findings.executions, findings.lost.as_deref()), (200, None));
    assert!(violations(&findings, Model::Tso) > 0 && violations(&findings, Model::Pso) > 0);
    assert_eq!(failures(&findings), [""; 0], "it is correct under sequential consistency");
    let name = |found: &palisade_harness::session::Occurrences<palisade_monitor::Violation>| {
        findings.instructions.name(found.what.store).to_owned()
    };
    assert!(
        findings.violations.iter().any(|found| name(found).starts_with("dekker.c:22:")),
        "a store that can wait is named by its line: {:?}",
        findings.violations.iter().map(name).collect::<Vec<_>>()
    );
    let findings = run(&program(&compile("dekker.c", &["-DFENCED"])), &random(200));
    let found =
        (violations(&findings, Model::Tso), violations(&findings, Model::Pso), failures(&findings).len());
    assert_eq!(found, (0, 0, 0));
}

#[test]
fn fences_in_inline_assembly_count() {
    for compiler in ["gcc", "clang"] {
        let check = |flags: &[&str], expected: (bool, bool, usize)| {
            let findings = run(&program(&compile_with(compiler, "assembly.c", flags)), &random(100));
            let found = (
                violations(&findings, Model::Tso) > 0,
                violations(&findings, Model::Pso) > 0,
                findings.unfollowed.len(),
            );
            assert_eq!((found, failures(&findings).len()), (expected, 0), "{compiler} {flags:?}");
        };
        check(&[], (true, true, 0));
        check(&["-DMFENCE"], (false, false, 0));
        check(&["-DLOCK_ADD", "-O2"], (false, false, 0));
        check(&["-DSFENCE"], (true, true, 0));
        check(&["-DMFENCE", "-DPLAIN"], (false, false, 1));
    }
}

#[test]
fn what_compilers_expand_inline_is_followed() {
    for compiler in ["gcc", "clang"] {
        for what in ["-DSET", "-DCOPY", "-DMOVE"] {
            for optimisation in ["-O0", "-O2", "-O3"] {
                let name = format!("copies_{compiler}{what}{optimisation}");
                let path = compile_with(compiler, "copies.c", &[what, optimisation]);
                let findings = run(&program(&path), &random(100));
                assert!(violations(&findings, Model::Tso) > 0, "{name}");
            }
        }
    }
}

#[test]
fn data_races_are_distinguished() {
    let findings = run(&program(&compile("races.c", &[])), &random(50));
    assert!(!findings.races.is_empty());
    for found in &findings.races {
        for (place, _) in [&found.what.first, &found.what.second] {
            assert!(place.starts_with("races.c:10:"), "{place}");
        }
    }
    assert_eq!(failures(&findings), [""; 0]);
}

#[test]
fn programs_without_the_runtime_are_refused() {
    use palisade_harness::process::{Program, Server, StartError};
    let start = |command: &str| {
        let program = Program { command: vec![command.to_owned()], scheduling: Default::default() };
        Server::start(&program, &Default::default()).map(|_| ())
    };
    assert!(matches!(start("/bin/true"), Err(StartError::NotInstrumented)));
    assert!(matches!(start("/nowhere/at/all"), Err(StartError::Io(_))));
    // Whether a script starts an instrumented program is known only after starting it.
    let script = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("script.sh");
    std::fs::write(&script, "#!/bin/sh\necho hello\n").expect("a file can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("it can be made executable");
    assert!(matches!(start(&script.display().to_string()), Err(StartError::NotInstrumented)));
}
