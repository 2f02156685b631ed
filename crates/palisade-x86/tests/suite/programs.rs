//! Whole programs: compiled, lifted, compiled again and run, they do what they did before.

use crate::common::{SUPPORT, clang, lift_to, run};
use palisade_conformance::c::sequential;
use palisade_conformance::seeds;
use std::path::Path;
use std::process::Command;

/// What a program prints, and how it ends.
fn outcome(program: &Path) -> (String, Option<i32>) {
    let ended = Command::new(program).output().expect("the program can be started");
    (String::from_utf8_lossy(&ended.stdout).into_owned(), ended.status.code())
}

/// The program, with what is compared printed by calls with two arguments. Arguments on the stack are not passed on to
/// functions that take any number of them.
fn printing(program: &str) -> String {
    let (before, rest) =
        program.split_once("    FILE *file").expect("the function that writes what is compared");
    let (written, after) = rest.split_once("fclose(file);").expect("its end");
    let names = written.split([',', ')']).map(str::trim).filter(|name| name.starts_with('o'));
    let prints: String = names.map(|name| format!("    printf(\"%ld\\n\", {name});\n")).collect();
    format!("{before}{prints}{after}")
}

#[test]
fn random_programs_do_what_they_did() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("support.c"), SUPPORT).expect("the text can be written");
    let (mut same, mut refused, mut other) = (0, 0, Vec::new());
    for seed in seeds(3) {
        let text = printing(&sequential::generate(seed));
        std::fs::write(at("program.c"), text).expect("the text can be written");
        for (compiler, level) in
            [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O0"), ("clang", "-O2"), ("gcc", "-O1")]
        {
            let built = Command::new(compiler)
                .args([level, "-w", "-fno-stack-protector", "-c", "-DOUTCOMES", "-o"])
                .arg(at("program.o"))
                .arg(at("program.c"))
                .status();
            assert!(built.is_ok_and(|status| status.success()), "{compiler} fails for seed {seed}");
            let link = |object: &str, to: &str| {
                let mut command = Command::new("gcc");
                command.args(["-no-pie", "-w", "-o"]).arg(at(to)).arg(at(object)).arg(at("support.c"));
                run(&mut command);
            };
            link("program.o", "real");
            let expected = outcome(&at("real"));
            if expected.1 != Some(0) {
                continue;
            }
            lift_to(&at("program.o"), &at("lifted.ll"), "");
            run(clang().args(["-O0", "-c", "-o"]).arg(at("lifted.o")).arg(at("lifted.ll")));
            link("lifted.o", "lifted");
            match outcome(&at("lifted")) {
                (_, Some(77)) => refused += 1,
                found if found == expected => same += 1,
                found => {
                    other.push(format!("{compiler} {level}, seed {seed}: {found:?} instead of {expected:?}"))
                }
            }
        }
    }
    assert!(other.is_empty(), "{same} are the same, but not: {}", other.join("\n"));
    assert!(refused <= same / 10, "{refused} are refused, and {same} are the same");
}
