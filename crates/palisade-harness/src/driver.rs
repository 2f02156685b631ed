//! Carries out what [`compile`](crate::compile) plans: starts the compiler, rewrites assembly, cleans up.

use crate::asm;
use crate::compile::{Family, PlanError, Step, Tools, plan};
use crate::runtime::{self, RuntimeError};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Why something was not compiled, besides what the compiler said itself.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A file on the way cannot be read or written.
    #[error("{file}: {error}")]
    Io {
        /// Which.
        file: String,
        /// Why.
        error: io::Error,
    },
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compiled {
    /// Whether the compiler was content.
    pub success: bool,
    /// Inline assembly that touches memory and cannot be followed: source and instruction.
    pub unfollowed: Vec<(String, String)>,
}

/// Compiles as a compiler with these arguments would; what the compiler prints goes where our output goes. `cache` is a folder for the runtime, `work` one for what is made on the
/// way, which is removed at the end.
pub fn compile(
    compiler: &str,
    arguments: &[String],
    cache: &Path,
    work: &Path,
) -> Result<Compiled, DriverError> {
    let runtime = runtime::object(compiler, cache)?;
    let version = Command::new(compiler)
        .arg("--version")
        .output()
        .map_err(|error| RuntimeError::NoCompiler { compiler: compiler.to_owned(), error })?;
    let family = Family::of(&String::from_utf8_lossy(&version.stdout));
    let tools = Tools { compiler: compiler.to_owned(), family, runtime, work: work.to_owned() };
    let steps = plan(arguments, &tools)?;
    let io = |file: &Path| {
        let file = file.display().to_string();
        move |error| DriverError::Io { file, error }
    };
    fs::create_dir_all(work).map_err(io(work))?;
    let done = carry_out(&steps, compiler);
    // What is left there does no harm.
    let _ = fs::remove_dir_all(work);
    done
}

fn carry_out(steps: &[Step], compiler: &str) -> Result<Compiled, DriverError> {
    let mut compiled = Compiled { success: true, unfollowed: Vec::new() };
    for step in steps {
        match step {
            Step::Compile(arguments) => {
                let status = Command::new(compiler)
                    .args(arguments)
                    .status()
                    .map_err(|error| RuntimeError::NoCompiler { compiler: compiler.to_owned(), error })?;
                if !status.success() {
                    compiled.success = false;
                    return Ok(compiled);
                }
            }
            Step::Rewrite { file, source } => {
                let io = |error| DriverError::Io { file: file.display().to_string(), error };
                let rewritten = asm::rewrite(&fs::read_to_string(file).map_err(io)?);
                let found = rewritten.unfollowed.into_iter().map(|code| (source.clone(), code));
                compiled.unfollowed.extend(found);
                let io = |error| DriverError::Io { file: file.display().to_string(), error };
                fs::write(file, rewritten.text).map_err(io)?;
            }
        }
    }
    Ok(compiled)
}
