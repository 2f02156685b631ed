//! What this machine supports: compilers, fast thread switching, debugging information, instrumented Rust.
//!
//! Nothing is guessed. Each compiler compiles, links and runs a small program with a violation, which must be
//! found.

use crate::cache::Cache;
use crate::driver;
use crate::process::{Program, Scheduling};
use crate::session::{Options, Session};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The state of a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// It works.
    Fine,
    /// It is missing, and it is not needed.
    Absent,
    /// It is present but does not work, or it is missing and needed.
    Broken,
}

impl Health {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Health::Fine => "fine",
            Health::Absent => "absent",
            Health::Broken => "broken",
        }
    }
}

/// One component that was examined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The component.
    pub what: &'static str,
    /// Its state.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// Whether it is a compiler.
    pub is_compiler: bool,
}

/// Store buffering: a violation in nearly every schedule.
const PROBE: &str = "#include <pthread.h>
volatile int x, y, r[2];
static void *p(void *a) { x = 1; r[0] = y; return a; }
static void *q(void *a) { y = 1; r[1] = x; return a; }
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, p, 0);
    pthread_create(&t[1], 0, q, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    return 0;
}
";

/// Examines everything. `cache` is where the runtime is kept; `work` is a folder for intermediate files.
pub fn examine(cache: &Cache, work: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut scheduling = None;
    for (name, compiler, package) in [
        ("C, gcc", "gcc", "gcc"),
        ("C++, g++", "g++", "g++"),
        ("C, clang", "clang", "clang"),
        ("C++, clang++", "clang++", "clang"),
    ] {
        findings.push(compiler_finding(name, compiler, package, cache, work, &mut scheduling));
    }
    let fast = scheduling.as_deref() == Some("coroutines");
    findings.push(Finding {
        what: "coroutines",
        health: if fast { Health::Fine } else { Health::Absent },
        found: if fast {
            "FSGSBASE is available: threads are switched within the process".to_owned()
        } else {
            "FSGSBASE is not available, or no program could be run to find out: threads pass a token, which is slower"
                .to_owned()
        },
        advice: (!fast).then(|| {
            "Linux 5.9 or later on a processor with FSGSBASE (Intel from 2012, AMD from 2017)".to_owned()
        }),
        is_compiler: false,
    });
    findings.push(rust_finding(work));
    findings
}

fn compiler_finding(
    what: &'static str,
    compiler: &str,
    package: &str,
    cache: &Cache,
    work: &Path,
    scheduling: &mut Option<String>,
) -> Finding {
    let finding = |health, found: String, advice: Option<String>| Finding {
        what,
        health,
        found,
        advice,
        is_compiler: true,
    };
    let Some(version) = version(compiler) else {
        let advice = format!("Debian package {package}");
        return finding(Health::Absent, "not installed".to_owned(), Some(advice));
    };
    match probe(compiler, cache, work) {
        Ok(how) => {
            *scheduling = Some(how);
            finding(Health::Fine, version, None)
        }
        Err(problem) => {
            let first = problem.lines().next().unwrap_or("").to_owned();
            finding(Health::Broken, version, Some(first))
        }
    }
}

/// The first line that a program prints about itself.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// Compiles and runs a program with a violation. Returns how its threads were switched.
fn probe(compiler: &str, cache: &Cache, work: &Path) -> Result<String, String> {
    let message = |problem: &dyn std::fmt::Display| problem.to_string();
    fs::create_dir_all(work).map_err(|error| message(&error))?;
    let language = if compiler.ends_with("++") { "cpp" } else { "c" };
    let source = work.join(format!("probe.{language}"));
    let program = work.join(format!("probe-{}", compiler.replace('+', "x")));
    fs::write(&source, PROBE).map_err(|error| message(&error))?;
    let arguments = [source.display().to_string(), "-o".to_owned(), program.display().to_string()];
    let compiled = driver::compile(compiler, &arguments, cache).map_err(|error| message(&error))?;
    if !compiled.success {
        return Err("it does not compile a small program with -fsanitize=thread".to_owned());
    }
    let program = Program { command: vec![program.display().to_string()], scheduling: Scheduling::Best };
    let options = Options { schedules: 20, ..Options::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let mut session = Session::start(&program, &options, "", &stop, None).map_err(|error| message(&error))?;
    session.run(|_| true);
    if session.findings.violations.is_empty() {
        return Err("it did not find the violation in a small test program".to_owned());
    }
    Ok(session.scheduling().to_owned())
}

/// Whether this rustc can instrument Rust programs.
fn rust_finding(work: &Path) -> Finding {
    let finding = |health, found: String, advice: Option<&str>| Finding {
        what: "Rust",
        health,
        found,
        advice: advice.map(str::to_owned),
        is_compiler: false,
    };
    let Some(version) = version("rustc") else {
        return finding(Health::Absent, "rustc is not installed".to_owned(), Some("https://rustup.rs"));
    };
    let source = work.join("probe.rs");
    let object = work.join("probe-rust.o");
    let text = "#![crate_type = \"lib\"]\n#[no_mangle]\npub fn f(x: &mut u32) { *x += 1; }\n";
    let made = fs::create_dir_all(work).and_then(|()| fs::write(&source, text)).is_ok()
        && Command::new("rustc")
            .args(["--emit=obj", "-C", "passes=forceattrs,tsan-module,function(tsan)"])
            .args(["-C", "llvm-args=-force-attribute=sanitize_thread", "-o"])
            .arg(&object)
            .arg(&source)
            .output()
            .is_ok_and(|output| output.status.success());
    let calls = |bytes: Vec<u8>| bytes.windows(11).any(|window| window == b"__tsan_read");
    if made && fs::read(&object).is_ok_and(calls) {
        finding(Health::Fine, format!("{version} can instrument programs"), None)
    } else {
        finding(
            Health::Absent,
            format!("{version} cannot instrument programs"),
            Some("use the crate palisade-sync in tests instead"),
        )
    }
}
