//! Compiles the programs of `tests/programs` as `palisade cc` does, and runs them.

use palisade_harness::cache::Cache;
use palisade_harness::driver;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, Options, Session};
use palisade_harness::{runtime, rust};
use palisade_memory::Model;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

pub fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("harness");
    std::fs::create_dir_all(&folder).expect("a scratch folder can be made");
    folder
}

/// Where the runtime is kept. It is made once for all tests of a program.
pub fn cache() -> Cache {
    Cache::in_folder(&scratch().join("cache")).expect("a cache can be made")
}

/// Compiles a program. The name of the result must be unique to the test.
pub fn compile_with(compiler: &str, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    // Tests of one file share programs, and each test may be a separate process. A program must not be replaced
    // while another process runs it: its file would then have another name. Within a process, a program is moved into
    // place once it is complete.
    let folder = scratch().join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).expect("a scratch folder can be made");
    let output = folder.join(name);
    let made = folder.join(format!("{name}.made"));
    let mut arguments: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
    arguments.extend([
        programs().join(source).display().to_string(),
        "-o".into(),
        made.display().to_string(),
    ]);
    let compiled = driver::compile(compiler, &arguments, &cache()).unwrap_or_else(|error| {
        panic!(
            "gcc, g++ and clang are needed (Debian packages of these names; `./test` installs them): {error}"
        )
    });
    assert!(compiled.success, "{compiler} {}", arguments.join(" "));
    std::fs::rename(&made, &output).expect("a program can be put in place");
    output
}

/// Compiles a C program with gcc, or a C++ program with g++.
pub fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let compiler = if source.ends_with(".c") { "gcc" } else { "g++" };
    compile_with(compiler, source, name, flags)
}

/// Compiles a Rust program with this rustc, as `palisade cargo` does.
pub fn rust_program(source: &str) -> PathBuf {
    rust_program_with(source, &[])
}

/// The same, with more options for rustc.
pub fn rust_program_with(source: &str, options: &[&str]) -> PathBuf {
    // Each test may be a separate process.
    let name = source.replace('/', "-");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rust {name}.{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a scratch folder can be made");
    let runtime = runtime::object("gcc", &cache())
        .unwrap_or_else(|error| panic!("gcc is needed (Debian package gcc; `./test` installs it): {error}"));
    let compiled = std::process::Command::new("rustc")
        .args(["--edition=2021", "--emit=link", "--crate-name", "program", "--out-dir"])
        .arg(&folder)
        .arg(programs().join(format!("{source}.rs")))
        .args(rust::flags(
            &runtime.path.expect("it is kept"),
            Path::new(env!("CARGO_BIN_EXE_palisade-linker-for-tests")),
        ))
        .args(options)
        .output()
        .expect("rustc is installed with cargo");
    let printed = String::from_utf8_lossy(&compiled.stderr);
    assert!(
        compiled.status.success(),
        "rustc does not instrument {source}.rs (see `palisade doctor`): {printed}"
    );
    folder.join("program")
}

pub fn program(path: &Path) -> Program {
    Program { command: vec![path.display().to_string()], scheduling: Scheduling::Best }
}

pub fn start(program: &Program, options: &Options) -> Session {
    let stop = Arc::new(AtomicBool::new(false));
    let folder = programs().display().to_string();
    Session::start(program, options, &folder, &stop, None).expect("the program starts")
}

/// Runs a program with these options.
pub fn run(program: &Program, options: &Options) -> Findings {
    run_until(program, options, |_| false)
}

/// Runs a program with these options until enough was found.
pub fn run_until(program: &Program, options: &Options, enough: impl Fn(&Findings) -> bool) -> Findings {
    let mut session = start(program, options);
    session.run(|findings| !enough(findings));
    assert_eq!(session.findings.lost, None);
    session.findings
}

/// Options for this many random schedules.
pub fn random(schedules: u64) -> Options {
    Options { schedules, ..Options::default() }
}

/// The number of violations under a model.
pub fn violations(findings: &Findings, model: Model) -> usize {
    findings.violations.iter().filter(|found| found.what.model == model).count()
}

/// The names of the failures, sorted.
pub fn failures(findings: &Findings) -> Vec<&'static str> {
    let mut names: Vec<&str> = findings.failures.iter().map(|found| found.what.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}
