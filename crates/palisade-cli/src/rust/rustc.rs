//! Calling rustc: from Rust to LLVM IR as text.
//!
//! Generic functions are compiled with the program only if it is optimised, so rustc is asked to optimise. LLVM is
//! asked to do no more than what makes the text easy to follow: it inlines functions and keeps local variables in
//! registers. Other memory accesses are neither moved nor removed by that.

use super::model::Model;
use super::package::Invocation;
use crate::compiler;
use crate::files;
use palisade::Diagnostic;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first version whose library has what ours refers to.
const OLDEST: u32 = 85;

/// The name of the program's crate. It begins the paths of its functions.
pub const CRATE: &str = "program";

/// What all crates are compiled with.
pub const CRATE_FLAGS: [&str; 2] = ["-Cpanic=abort", "-Csymbol-mangling-version=v0"];

/// What the user may change: these come before the user's options.
pub const CHANGEABLE: [&str; 2] = ["-Cdebug-assertions=on", "-Coverflow-checks=on"];

/// What makes rustc print a crate. These come after the user's options.
pub const LLVM_IR: [&str; 5] =
    ["--emit=llvm-ir", "-Copt-level=2", "-Cno-prepopulate-passes", "-Cdebuginfo=2", "-Ccodegen-units=1"];

/// What LLVM does.
const PASSES: &str = "-Cpasses=forceattrs,function(sroa),cgscc(inline),function(sroa)";

/// How to get rustc.
const INSTALL: &str = "install Rust 1.85 or later (https://rustup.rs), or name a compiler in RUSTC";

/// A Rust compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rustc {
    program: OsString,
    /// The line that it prints about itself.
    pub version: String,
    /// What it compiles for, if nothing else is asked for.
    pub host: String,
    /// The folder in which it is called: which compiler that is may depend on it.
    folder: PathBuf,
}

/// What is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitKind {
    /// A program with `main`.
    Program,
    /// All functions of a file, whether they are used or not.
    Library,
    /// The tests of a file.
    Tests,
    /// The same, with all functions that are inlined otherwise.
    ListOfTests,
    /// Not compiled: the text of the tests, with the list that rustc makes of them.
    TextOfTests,
}

/// Where a program comes from.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// A file.
    File {
        /// The file, or `-` for a text from standard input.
        file: &'a Path,
        /// The text that is passed through standard input instead of the file.
        text: Option<&'a str>,
        /// The user's options.
        options: &'a [String],
    },
    /// A package: how cargo would call the compiler.
    Package(&'a Invocation),
}

/// What the compiler is given.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// Where the program comes from.
    pub given: Given<'a>,
    /// What is compiled.
    pub kind: UnitKind,
    /// A function that is not inlined.
    pub kept: Option<&'a str>,
}

/// Why there is no LLVM IR.
#[derive(Debug)]
pub enum NotCompiled {
    /// The compiler rejects the program. What it printed.
    Rejected(String),
    /// The compiler cannot be called.
    Problem(Diagnostic),
}

impl Rustc {
    /// `$RUSTC`, or else `rustc`, as it is called in this folder.
    pub fn find() -> Result<Rustc, Diagnostic> {
        Rustc::find_in(Path::new("."))
    }

    /// The same in another folder.
    pub fn find_in(folder: &Path) -> Result<Rustc, Diagnostic> {
        let program = std::env::var_os("RUSTC").filter(|name| !name.is_empty());
        let program = program.unwrap_or_else(|| OsString::from("rustc"));
        let mut command = Command::new(&program);
        let output = command.arg("-vV").current_dir(folder).stdin(Stdio::null()).output();
        let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        let Some(minor) = minor(&version) else {
            let message = "rustc is not installed, and Rust programs are read through it";
            return Err(Diagnostic::error("no-rustc", message).help(INSTALL));
        };
        if minor < OLDEST {
            let message = format!("{version} is too old to read Rust programs with");
            return Err(Diagnostic::error("old-rustc", message).help(INSTALL));
        }
        let host = text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        Ok(Rustc { program, version, host: host.trim().to_owned(), folder: folder.to_owned() })
    }

    /// What it is called with.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder);
        command
    }

    /// Compiles our library.
    pub fn compile_model(&self, model: &Model) -> Result<(), Diagnostic> {
        let mut command = self.command();
        command.args(["--crate-name=std", "--crate-type=rlib", "--edition=2021", "-Cmetadata=palisade"]);
        command.args(CRATE_FLAGS).arg("--cap-lints=allow").arg("--out-dir").arg(model.folder());
        // Its lines are not the user's, and its folder has another name each time.
        let mut renamed = OsString::from("--remap-path-prefix=");
        renamed.push(model.folder());
        renamed.push("=/rustc/palisade");
        command.arg(renamed).arg(model.text());
        let ended =
            compiler::run(&mut command, None).map_err(|failure| problem(format!("rustc {failure}")))?;
        if ended.success {
            return Ok(());
        }
        let complained = String::from_utf8_lossy(&ended.complained);
        let first = complained.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let message = format!("{} cannot compile the library that programs are given: {first}", self.version);
        Err(Diagnostic::error("cannot-compile", message).help(INSTALL))
    }

    /// Compiles a program to LLVM IR.
    pub fn compile(&self, unit: Unit<'_>, model: &Model) -> Result<String, NotCompiled> {
        let mut command = self.command();
        let has = |words: &[String], name: &str| words.iter().any(|word| word.starts_with(name));
        command.args(CHANGEABLE);
        let user = match unit.given {
            Given::File { options, .. } => {
                if !has(options, "--edition") {
                    command.arg("--edition=2021");
                }
                command.arg(format!("--crate-name={CRATE}"));
                options
            }
            Given::Package(invocation) => {
                command.env_clear().envs(invocation.variables.iter().cloned());
                command.env("RUSTC_BOOTSTRAP", "1").current_dir(&invocation.folder);
                &invocation.arguments
            }
        };
        command.args(user).args(CRATE_FLAGS).args(LLVM_IR).arg("--error-format=json");
        if !has(user, "--cap-lints") {
            command.arg("--cap-lints=allow");
        }
        let mut model_option = OsString::from("--extern=std=");
        model_option.push(model.library());
        command.arg(model_option);
        self.add_kind(&mut command, unit);
        // rustc writes files beside its output, so that goes to a folder of ours.
        let output = model.folder().join("program.ll");
        command.arg("-o").arg(&output);
        let text = match unit.given {
            Given::Package(_) => None,
            Given::File { file, text, .. } => {
                // A name that begins with `-` is not an option.
                match file.as_os_str().as_encoded_bytes() {
                    [b'-', _, ..] => command.arg(Path::new(".").join(file)),
                    _ => command.arg(file),
                };
                text
            }
        };
        let failed = |message: String| NotCompiled::Problem(problem(message));
        let ended =
            compiler::run(&mut command, text).map_err(|failure| failed(format!("rustc {failure}")))?;
        if !ended.success {
            return Err(NotCompiled::Rejected(String::from_utf8_lossy(&ended.complained).into_owned()));
        }
        files::text(&output)
            .map_err(|_| failed("rustc has written no program: one of its options prevents that".to_owned()))
    }

    /// What kind of program it is. Cargo says it itself.
    fn add_kind(&self, command: &mut Command, unit: Unit<'_>) {
        let is_file = matches!(unit.given, Given::File { .. });
        match unit.kind {
            UnitKind::Program if is_file => _ = command.arg("--crate-type=bin"),
            UnitKind::Program => {}
            UnitKind::Library => {
                command.args(is_file.then_some("--crate-type=lib")).arg("-Clink-dead-code=on");
            }
            UnitKind::Tests | UnitKind::ListOfTests | UnitKind::TextOfTests => {
                // Tests that end the program when they panic are not stable yet. A test must not be part of what calls it.
                command.env("RUSTC_BOOTSTRAP", "1").args(is_file.then_some("--test"));
                command.args(["-Zpanic-abort-tests", "-Zinline-mir=no"]);
            }
        }
        if unit.kind == UnitKind::TextOfTests {
            command.arg("-Zunpretty=expanded");
        } else if unit.kind != UnitKind::ListOfTests {
            let kept =
                unit.kept.map_or_else(String::new, |name| format!(" -force-attribute={name}:noinline"));
            command.arg(PASSES).arg(format!("-Cllvm-args=-inline-threshold=1000000{kept}"));
        }
    }
}

fn problem(message: String) -> Diagnostic {
    Diagnostic::error("cannot-compile", message).help("run `palisade doctor` to see what this machine lacks")
}

/// The second number of a version such as `rustc 1.85.0 (4d91de4e4 2025-02-17)`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(minor("rustc 1.85.0 (4d91de4e4 2025-02-17)"), Some(85));
        assert_eq!(minor("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)"), Some(97));
        assert_eq!(minor("clang version 18.1.8"), None);
    }
}
