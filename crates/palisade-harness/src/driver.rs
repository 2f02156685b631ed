//! Carries out what [`compile`](crate::compile) plans: starts the compiler, rewrites assembly, cleans up.

use crate::asm;
use crate::audit::{Audit, AuditError, Fresh};
use crate::cache::{Cache, temporary_folder};
use crate::compile::{Family, PlanError, Step, Tools, plan};
use crate::constants;
use crate::link::{self, LinkError};
use crate::mark::mark;
use crate::runtime::{self, RuntimeError};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Why something was not compiled, apart from the compiler's own messages.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// What was linked cannot be judged.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The compiler's own assembly cannot be read.
    #[error("{source_file}: {error}")]
    Audit {
        /// What was compiled.
        source_file: String,
        /// The error.
        error: AuditError,
    },
    /// An intermediate file cannot be read or written.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// The error.
        error: io::Error,
    },
}

/// The result of a build.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compiled {
    /// Whether the compiler succeeded.
    pub success: bool,
    /// Inline assembly that touches memory and cannot be followed: source and instruction.
    pub unfollowed: Vec<(String, String)>,
    /// Files with code that was linked and is not followed.
    pub not_compiled: Vec<String>,
    /// What the linker printed.
    pub said: String,
}

/// Compiles as a compiler with these arguments would. The compiler's output goes where our output goes.
/// `cache` is where the runtime is kept. Intermediate files are in a new private folder, which is removed at
/// the end.
pub fn compile(compiler: &str, arguments: &[String], cache: &Cache) -> Result<Compiled, DriverError> {
    let io = |file: &Path| {
        let file = file.display().to_string();
        move |error| DriverError::Io { file, error }
    };
    let object = runtime::object(compiler, cache)?;
    let work = temporary_folder("palisade-cc-").map_err(io(&std::env::temp_dir()))?;
    // The content that was checked is what is linked, whatever happens to the cache in the meantime.
    let runtime = work.path().join("runtime.o");
    fs::write(&runtime, &object.content).map_err(io(&runtime))?;
    // A compiler takes longest to start. The one for C has already said what it is.
    let (asked, version) = object.made_for;
    let version = if asked == compiler { version } else { runtime::version(compiler)? };
    let family = Family::of(&String::from_utf8_lossy(&version));
    let tools = Tools { compiler: compiler.to_owned(), family, runtime, work: work.path().to_owned() };
    let steps = plan(arguments, &tools)?;
    carry_out(&steps, compiler, work.path())
}

fn carry_out(steps: &[Step], compiler: &str, work: &Path) -> Result<Compiled, DriverError> {
    let mut compiled = Compiled { success: true, ..Compiled::default() };
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
            Step::Rewrite { file, source, fresh } => {
                let Some(unfollowed) = follow(file, source, *fresh, compiler, work)? else {
                    compiled.success = false;
                    return Ok(compiled);
                };
                compiled.unfollowed.extend(unfollowed.into_iter().map(|code| (source.clone(), code)));
            }
            Step::Link(link) => {
                let linked = link::link(compiler, link, work)?;
                compiled.not_compiled.extend(linked.not_compiled);
                compiled.said.push_str(&linked.said);
                if !linked.success {
                    compiled.success = false;
                    return Ok(compiled);
                }
            }
        }
    }
    Ok(compiled)
}

/// Rewrites the assembly in a file so that everything it does to memory is followed or reported. Returns
/// inline assembly that cannot be followed, or `None` if the file cannot be assembled; the compiler has then
/// reported why.
pub(crate) fn follow(
    file: &Path,
    source: &str,
    fresh: Fresh,
    compiler: &str,
    work: &Path,
) -> Result<Option<Vec<String>>, DriverError> {
    let io = |error| DriverError::Io { file: file.display().to_string(), error };
    let text = fs::read_to_string(file).map_err(io)?;
    let constants = constants::section(&text);
    let Some(text) = audit(&text, source, fresh, compiler, work)? else { return Ok(None) };
    let rewritten = asm::rewrite(&text);
    let io = |error| DriverError::Io { file: file.display().to_string(), error };
    fs::write(file, mark(&rewritten.text) + &constants).map_err(io)?;
    Ok(Some(rewritten.unfollowed))
}

/// The assembly with calls before accesses. Returns `None` if it cannot be assembled; the compiler has then
/// reported why.
fn audit(
    text: &str,
    source: &str,
    fresh: Fresh,
    compiler: &str,
    work: &Path,
) -> Result<Option<String>, DriverError> {
    let (assembly, object) = (work.join("probe.s"), work.join("probe.o"));
    let io = |file: &Path| {
        let file = file.display().to_string();
        move |error| DriverError::Io { file, error }
    };
    let audit = Audit::of(text);
    fs::write(&assembly, audit.probes()).map_err(io(&assembly))?;
    let status = Command::new(compiler)
        .args(["-x", "assembler", "-Wa,--no-warn", "-c", "-o"])
        .args([&object, &assembly])
        .status()
        .map_err(|error| RuntimeError::NoCompiler { compiler: compiler.to_owned(), error })?;
    if !status.success() {
        return Ok(None);
    }
    let bytes = fs::read(&object).map_err(io(&object))?;
    let text = audit
        .rewrite(&bytes, fresh)
        .map_err(|error| DriverError::Audit { source_file: source.to_owned(), error })?;
    Ok(Some(text))
}
