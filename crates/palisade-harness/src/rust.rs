//! Rust programs, by instrumented builds: what `palisade cargo` tells cargo.
//!
//! rustc's own options run LLVM's ThreadSanitizer pass over every function, and the linker is given our runtime. This needs no nightly compiler, but it depends on the names of passes in rustc's LLVM, so that
//! `palisade doctor` tries it. The standard library comes compiled: what it does inside its own functions is not seen, apart from system calls; its generic and inline functions, atomics among
//! them, are compiled with the program and are.
//!
//! Build scripts and procedural macros run while the program is built and must stay as they are: cargo leaves them alone when it is told a target, be it the host.

use crate::cache::Cache;
use crate::runtime::{self, RuntimeError};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Options of rustc that call the runtime at every access.
pub const INSTRUMENT: &[&str] =
    &["-Cpasses=forceattrs,tsan-module,function(tsan)", "-Cllvm-args=-force-attribute=sanitize_thread"];

/// Options besides: source lines, and inlining enough to have those of the program instead of the standard library's.
const BESIDES: &[&str] = &["-Cdebuginfo=2", "-Copt-level=1"];

/// Why there is no build.
#[derive(Debug, thiserror::Error)]
pub enum RustError {
    /// There is no runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The runtime could not be written.
    #[error("the runtime cannot be written to the cache: is the disk full?")]
    NotKept,
    /// rustc does not tell what it compiles for.
    #[error("`rustc -vV` does not tell its host: is Rust installed?")]
    NoHost,
}

/// What rustc compiles for by default.
pub fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// All options of rustc for a program that is linked with this runtime.
pub fn flags(runtime: &Path) -> Vec<String> {
    let options = INSTRUMENT.iter().chain(BESIDES).map(|&option| option.to_owned());
    let link = runtime::LIBRARIES.iter().map(|&library| library.to_owned());
    let link = std::iter::once(runtime.display().to_string()).chain(link);
    options.chain(link.map(|argument| format!("-Clink-arg={argument}"))).collect()
}

/// The environment of a cargo that builds programs for `palisade run`, and runs them by it. `flags` are those that the user has set already, one per line of `\x1f`; `palisade` is the
/// program to run them by.
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
