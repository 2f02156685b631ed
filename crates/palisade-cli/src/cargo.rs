//! `palisade cargo`: cargo, building programs that `palisade run` can run.
//!
//! Exit codes: those of `palisade run` where cargo runs a program, 0 where it only builds one, and 2 if it cannot.

use crate::args::CargoArgs;
use crate::exit::Exit;
use crate::output::Output;
use palisade::Diagnostic;
use palisade::harness::{runtime, rust};
use std::path::PathBuf;
use std::process::Command;

/// Runs the command.
pub fn run(args: &CargoArgs, output: &Output) -> Exit {
    match cargo(args) {
        Ok(code) => exit(code, runs(args)),
        Err(problem) => {
            let diagnostic = Diagnostic::error("cannot-build", problem)
                .help("`palisade doctor` tells what this machine lacks");
            output.complain_about("cargo", diagnostic);
            Exit::Error
        }
    }
}

/// Whether cargo is asked to run a program, whose code it hands on.
fn runs(args: &CargoArgs) -> bool {
    let is_option = |word: &&String| word.starts_with(['-', '+']);
    args.arguments
        .iter()
        .find(|word| !is_option(word))
        .is_some_and(|command| command == "run" || command == "r")
}

/// What a code of cargo means.
fn exit(code: Option<i32>, runs: bool) -> Exit {
    let all = [Exit::Fine, Exit::Violated, Exit::Unknown, Exit::Failed, Exit::Races];
    let known = if runs { &all[..] } else { &all[..1] };
    known.iter().copied().find(|exit| Some(i32::from(exit.code())) == code).unwrap_or(Exit::Error)
}

/// The exit code of cargo.
fn cargo(args: &CargoArgs) -> Result<Option<i32>, String> {
    let cache = runtime::cache_folder(|name| std::env::var_os(name));
    let palisade = std::env::current_exe().map_err(|error| error.to_string())?;
    // As cargo does, the encoded flags before the plain ones.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok().or_else(|| {
        let plain = std::env::var("RUSTFLAGS").ok()?;
        Some(plain.split_whitespace().collect::<Vec<_>>().join("\x1f"))
    });
    let flags = flags.filter(|flags| !flags.is_empty());
    let environment =
        rust::environment(&cache, &palisade, flags.as_deref()).map_err(|error| error.to_string())?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let status = Command::new("cargo")
        .args(&args.arguments)
        .envs(environment)
        .env("CARGO_TARGET_DIR", target.join("palisade"))
        .status()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    Ok(status.code())
}
