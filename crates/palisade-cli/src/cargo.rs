//! `palisade cargo`: runs cargo to build programs that `palisade run` can run.
//!
//! Exit codes: those of `palisade run` if cargo runs a program, 0 if it only builds one, and 2 if it cannot.
//! Cargo passes on the exit code of the program it runs, and uses the same codes for problems of its own. So
//! `palisade run` leaves a note that it was started.

use crate::args::CargoArgs;
use crate::cc;
use crate::exit::Exit;
use crate::output::Output;
use palisade::Diagnostic;
use palisade::harness::cache::{Cache, temporary_folder};
use palisade::harness::rust;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Runs the command.
pub fn run(args: &CargoArgs, output: &Output) -> Exit {
    let cache = match cc::user_cache(output) {
        Ok(cache) => cache,
        Err(exit) => return exit,
    };
    match cargo(args, &cache) {
        Ok((code, has_run)) => exit(code, has_run),
        Err(problem) => {
            let diagnostic = Diagnostic::error("cannot-build", problem)
                .help("run `palisade doctor` to see what this machine lacks");
            output.complain_about("cargo", diagnostic);
            Exit::Error
        }
    }
}

/// The arguments, if rustc has started this program as its linker.
pub fn linker_arguments() -> Option<Vec<std::ffi::OsString>> {
    let mut arguments = std::env::args_os();
    let name = PathBuf::from(arguments.next()?);
    let is_linker = name.file_name()?.to_string_lossy().starts_with(rust::LINKER);
    is_linker.then(|| arguments.collect())
}

/// Links a Rust program. rustc shows what is printed here if it fails.
pub fn link(arguments: Vec<std::ffi::OsString>) -> ExitCode {
    let arguments = arguments.into_iter().map(std::ffi::OsString::into_string).collect::<Result<_, _>>();
    let linked = match arguments {
        Ok(arguments) => rust::link(arguments).map_err(|error| error.to_string()),
        Err(argument) => Err(format!("{} cannot be linked: its name is not UTF-8", argument.display())),
    };
    match linked {
        Ok(linked) if linked.success => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(problem) => {
            // If it cannot be printed, the exit code still says that something is wrong.
            let _ = writeln!(std::io::stderr(), "palisade: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The variable that names the file in which `palisade run` notes that cargo started it.
const NOTE: &str = palisade::harness::process::CARGO_NOTE;

/// Notes that this is `palisade run`, if it was started through `palisade cargo`.
pub fn note_run() {
    if let Some(path) = std::env::var_os(NOTE) {
        // Without the note, the code is taken for cargo's own, which is an error in any case.
        let _ = std::fs::write(path, "");
    }
}

/// The meaning of cargo's exit code.
fn exit(code: Option<i32>, has_run: bool) -> Exit {
    let all = [Exit::Fine, Exit::Violated, Exit::Unknown, Exit::Failed, Exit::Races];
    let known = if has_run { &all[..] } else { &all[..1] };
    known.iter().copied().find(|exit| Some(i32::from(exit.code())) == code).unwrap_or(Exit::Error)
}

/// The exit code of cargo, and whether it comes from `palisade run`.
fn cargo(args: &CargoArgs, cache: &Cache) -> Result<(Option<i32>, bool), String> {
    let palisade = std::env::current_exe().map_err(|error| error.to_string())?;
    // As in cargo, the encoded flags take precedence over the plain ones.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok().or_else(|| {
        let plain = std::env::var("RUSTFLAGS").ok()?;
        Some(plain.split_whitespace().collect::<Vec<_>>().join("\x1f"))
    });
    let flags = flags.filter(|flags| !flags.is_empty());
    let environment =
        rust::environment(cache, &palisade, flags.as_deref()).map_err(|error| error.to_string())?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let folder = temporary_folder("palisade-cargo-").map_err(|error| error.to_string())?;
    let note = folder.path().join("run");
    let status = Command::new("cargo")
        .args(&args.arguments)
        .envs(environment)
        .env("CARGO_TARGET_DIR", target.join("palisade"))
        .env(NOTE, &note)
        .status()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    let has_run = note.exists();
    Ok((status.code(), has_run))
}
