//! Compiling and running the C programs.

use crate::watch::stop;
use anyhow::{Context, Result, ensure};
use palisade_harness::cache::{Cache, TempDir, temporary_folder};
use palisade_harness::driver;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Options, Session};
use palisade_memory::{Interlocked, Model};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

macro_rules! sources {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("../../../programs/run/", $name)))),*] };
}

/// The programs, which are embedded in the binary.
const SOURCES: [(&str, &str); 17] = sources! {
    "common.h" "litmus.c" "fib.c" "dekker.c" "bakery.c" "msn.c" "ms2.c" "harris.c" "lazylist.c" "snark.c" "chase_lev.c" "seqlock.c" "treiber.c" "spsc.c" "ticket.c" "mcs.c" "dcl.c"
};

/// The size of a test, and whether it has fences.
#[derive(Clone, Copy)]
pub struct Settings {
    pub threads: usize,
    pub ops: usize,
    pub fenced: bool,
}

/// A folder with the sources, which is removed at the end.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Result<Folder> {
        let folder = temporary_folder("palisade-bench-run-").context("cannot make a temporary folder")?;
        let path = folder.path();
        for (name, text) in SOURCES {
            std::fs::write(path.join(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        Ok(Folder(folder))
    }

    fn arguments(&self, name: &str, settings: Settings, as_file: &str) -> (Vec<String>, PathBuf) {
        let output = self.0.path().join(as_file);
        let mut arguments = vec![
            format!("-DTHREADS={}", settings.threads),
            format!("-DOPS={}", settings.ops),
            "-std=c11".to_owned(),
        ];
        arguments.extend(settings.fenced.then(|| "-DFENCED".to_owned()));
        let source = self.0.path().join(format!("{name}.c")).display().to_string();
        arguments.extend([source, "-o".to_owned(), output.display().to_string()]);
        (arguments, output)
    }

    /// Compiles a program as `palisade cc` does.
    pub fn compile(&self, name: &str, settings: Settings) -> Result<PathBuf> {
        self.compile_with(name, settings, &[], &[])
    }

    /// The same with more arguments: flags, and definitions that replace those of the settings.
    pub fn compile_with(
        &self,
        name: &str,
        settings: Settings,
        flags: &[&str],
        definitions: &[&str],
    ) -> Result<PathBuf> {
        let (mut arguments, output) = self.arguments(name, settings, name);
        if !definitions.is_empty() {
            arguments.retain(|argument| !argument.starts_with("-D"));
        }
        arguments.splice(0..0, flags.iter().chain(definitions).map(|&argument| argument.to_owned()));
        let cache = Cache::in_folder(&self.0.path().join("cache")).context("cannot make a cache")?;
        let compiled = driver::compile("gcc", &arguments, &cache)
            .context("gcc is needed (Debian package gcc; `./test` installs it)")?;
        ensure!(compiled.success, "{name}.c does not compile");
        Ok(output)
    }

    /// Compiles a program with gcc alone.
    pub fn plain(&self, name: &str, settings: Settings, flags: &[&str]) -> Result<PathBuf> {
        let (arguments, output) = self.arguments(name, settings, &format!("{name}-plain"));
        let done = Command::new("gcc").args(flags).arg("-pthread").args(arguments).output();
        let done = done.context("gcc is needed (Debian package gcc; `./test` installs it)")?;
        ensure!(
            done.status.success(),
            "{name}.c does not compile: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        Ok(output)
    }
}

/// A session of a program.
pub fn session(path: &Path, interlocked: Interlocked, schedules: u64) -> Result<Session> {
    let program = Program { command: vec![path.display().to_string()], scheduling: Scheduling::Best };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options { interlocked, schedules, jobs, ..Options::default() };
    let folder = path.parent().unwrap_or(Path::new(".")).display().to_string();
    Session::start(&program, &options, &folder, &stop(), None).context("the program cannot be started")
}

/// A session of a program with store buffers.
pub fn session_with(path: &Path, model: Model, scheduling: Scheduling, jobs: usize) -> Result<Session> {
    let program = Program { command: vec![path.display().to_string()], scheduling };
    let options = Options { model, jobs, ..Options::default() };
    let folder = path.parent().unwrap_or(Path::new(".")).display().to_string();
    Session::start(&program, &options, &folder, &stop(), None).context("the program cannot be started")
}

/// What random executions show: traces with violations, and distinct violations.
pub struct NativeRun {
    pub events: u64,
    pub tso: (u64, u64),
    pub pso: (u64, u64),
    pub seconds: f64,
}

/// Runs random executions, on all cores.
pub fn random(path: &Path, schedules: u64, interlocked: Interlocked) -> Result<NativeRun> {
    let mut session = session(path, interlocked, schedules)?;
    let start = Instant::now();
    session.run(|_| true);
    let seconds = start.elapsed().as_secs_f64();
    let findings = &session.findings;
    ensure!(
        findings.executions == schedules,
        "{}: executions were lost: {:?}",
        path.display(),
        findings.lost
    );
    ensure!(findings.failures.is_empty(), "{}: {:?}", path.display(), findings.failures[0].what);
    let distinct =
        |model| findings.violations.iter().filter(|found| found.what.model == model).count() as u64;
    Ok(NativeRun {
        events: findings.events,
        tso: (findings.violating[0], distinct(Model::Tso)),
        pso: (findings.violating[1], distinct(Model::Pso)),
        seconds,
    })
}
