//! Compiles the programs of `tests/programs` as `palisade cc` does, and runs them.

use palisade_harness::cache::Cache;
use palisade_harness::driver;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, Options, Session};
use palisade_harness::{runtime, rust};
use palisade_memory::Model;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
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

/// Where the runtime is kept. It is made once for all tests, those of the command included.
pub fn cache() -> Cache {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run_cache");
    Cache::in_folder(&folder).expect("a cache can be made")
}

/// Makes a program from a source, unless a test of the same executable has made it from the same text with the same
/// options: many tests use the same programs, and each test may be a separate process. A program is never replaced,
/// because another process may be running it.
fn made_once(source: &Path, options: &[&str], make: impl FnOnce(&Path) -> PathBuf) -> PathBuf {
    let folder = scratch().join(format!("{:016x}", fingerprint(source, options)));
    std::fs::create_dir_all(&folder).expect("a scratch folder can be made");
    let program = folder.join(source.file_stem().expect("a source has a name"));
    let lock = File::create(folder.join(".lock")).expect("a file can be made");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("a file can be locked");
    if !program.exists() {
        let made = make(&folder);
        std::fs::rename(made, &program).expect("a program can be put in place");
    }
    program
}

/// Everything that a program is made from: our own code, by when it was built, the source, the headers next to it, and
/// the options.
fn fingerprint(source: &Path, options: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let linker = PathBuf::from(env!("CARGO_BIN_EXE_palisade-linker-for-tests"));
    for executable in [std::env::current_exe().expect("this test has a file"), linker] {
        let file = std::fs::metadata(executable).expect("it was built");
        (file.len(), file.modified().expect("Linux knows when it was built")).hash(&mut hasher);
    }
    let folder = source.parent().expect("a source is in a folder");
    let files = std::fs::read_dir(folder).expect("the folder of a source can be read");
    let mut texts: Vec<PathBuf> = files.map(|file| file.expect("it can be read").path()).collect();
    texts.retain(|file| file.extension().is_some_and(|extension| extension == "h"));
    texts.sort();
    texts.push(source.to_owned());
    for text in texts {
        let content = std::fs::read(&text).unwrap_or_else(|error| panic!("{}: {error}", text.display()));
        (text, content).hash(&mut hasher);
    }
    options.hash(&mut hasher);
    hasher.finish()
}

/// Compiles a program.
pub fn compile_with(compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
    let source = programs().join(source);
    made_once(&source, &[&[compiler], flags].concat(), |folder| {
        let made = folder.join("made");
        let mut arguments: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        arguments.extend([source.display().to_string(), "-o".into(), made.display().to_string()]);
        let compiled = driver::compile(compiler, &arguments, &cache()).unwrap_or_else(|error| {
            panic!(
                "gcc, g++ and clang are needed (Debian packages of these names; `./test` installs them): {error}"
            )
        });
        assert!(compiled.success, "{compiler} {}", arguments.join(" "));
        made
    })
}

/// Compiles a C program with gcc, or a C++ program with g++.
pub fn compile(source: &str, flags: &[&str]) -> PathBuf {
    let compiler = if source.ends_with(".c") { "gcc" } else { "g++" };
    compile_with(compiler, source, flags)
}

/// Compiles a Rust program with this rustc, as `palisade cargo` does.
pub fn rust_program(source: &str) -> PathBuf {
    rust_program_with(source, &[])
}

/// The same, with more options for rustc.
pub fn rust_program_with(source: &str, options: &[&str]) -> PathBuf {
    let file = programs().join(format!("{source}.rs"));
    made_once(&file, options, |folder| {
        let runtime = runtime::object("gcc", &cache()).unwrap_or_else(|error| {
            panic!("gcc is needed (Debian package gcc; `./test` installs it): {error}")
        });
        let compiled = std::process::Command::new("rustc")
            .args(["--edition=2021", "--emit=link", "--crate-name", "program", "--out-dir"])
            .arg(folder)
            .arg(&file)
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
    })
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
