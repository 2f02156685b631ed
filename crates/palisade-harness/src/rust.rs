//! Instrumented builds of Rust programs: how `palisade cargo` configures cargo.
//!
//! rustc's own options run LLVM's ThreadSanitizer pass over every function, and our runtime is passed to the
//! linker. This does not need a nightly compiler. It does depend on the names of passes in rustc's LLVM, so
//! `palisade doctor` tries it.
//!
//! The standard library is precompiled. What it does inside its own functions is not seen, apart from system
//! calls. Its generic and inline functions, including atomics, are compiled with the program and are seen.
//!
//! Build scripts and procedural macros run while the program is built and must not be instrumented. Cargo
//! leaves them alone when a target is specified, even if it is the host.

use crate::cache::Cache;
use crate::runtime::{self, RuntimeError};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// rustc options that call the runtime at every access.
pub const INSTRUMENT: &[&str] =
    &["-Cpasses=forceattrs,tsan-module,function(tsan)", "-Cllvm-args=-force-attribute=sanitize_thread"];

/// Further options: source lines, and enough inlining to get source lines of the program instead of the
/// standard library's.
const BESIDES: &[&str] = &["-Cdebuginfo=2", "-Copt-level=1"];

/// Why a build is not possible.
#[derive(Debug, thiserror::Error)]
pub enum RustError {
    /// There is no runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The runtime could not be written.
    #[error("the runtime cannot be written to the cache: is the disk full?")]
    NotKept,
    /// rustc does not report its host.
    #[error("`rustc -vV` does not tell its host: is Rust installed?")]
    NoHost,
}

/// The target for which rustc compiles by default.
pub fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// All rustc options for a program that is linked with this runtime.
pub fn flags(runtime: &Path) -> Vec<String> {
    let options = INSTRUMENT.iter().chain(BESIDES).map(|&option| option.to_owned());
    let link = runtime::LIBRARIES.iter().map(|&library| library.to_owned());
    let link = std::iter::once(runtime.display().to_string()).chain(link);
    options.chain(link.map(|argument| format!("-Clink-arg={argument}"))).collect()
}

/// The environment for a cargo that builds programs for `palisade run` and runs them with it. `user_flags`
/// are the user's own flags, separated by `\x1f`. `palisade` is the executable that runs the programs.
pub fn environment(
    cache: &Cache,
    palisade: &Path,
    user_flags: Option<&str>,
) -> Result<Vec<(String, OsString)>, RustError> {
    let runtime = runtime::object("gcc", cache)?.path.ok_or(RustError::NotKept)?;
    let host = host().ok_or(RustError::NoHost)?;
    let mut all: Vec<String> =
        user_flags.into_iter().flat_map(|flags| flags.split('\x1f')).map(str::to_owned).collect();
    all.extend(flags(&runtime));
    let runner = format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace(['-', '.'], "_"));
    let mut run = palisade.as_os_str().to_owned();
    run.push(" run --");
    Ok(vec![
        ("CARGO_ENCODED_RUSTFLAGS".to_owned(), all.join("\x1f").into()),
        ("CARGO_BUILD_TARGET".to_owned(), host.into()),
        (runner, run),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options() {
        let flags = flags(Path::new("/cache/runtime.o"));
        for expected in [
            "-Cllvm-args=-force-attribute=sanitize_thread",
            "-Clink-arg=/cache/runtime.o",
            "-Clink-arg=-pthread",
        ] {
            assert!(flags.iter().any(|flag| flag == expected), "{expected} in {flags:?}");
        }
    }
}
