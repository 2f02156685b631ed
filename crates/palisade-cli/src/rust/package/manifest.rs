//! What a package consists of, as `cargo metadata` says.

use crate::compiler;
use palisade::Diagnostic;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package, and where its workspace keeps what is built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The folder of the package.
    pub folder: PathBuf,
    /// The name of the package.
    pub package: String,
    /// The program that `cargo run` would run.
    pub default_run: Option<String>,
    /// Where cargo puts what it builds.
    pub target_folder: PathBuf,
    /// The libraries, programs and tests.
    pub parts: Vec<Part>,
}

/// A library, program or test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What cargo calls it.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its main file.
    pub file: PathBuf,
    /// Whether it may have tests.
    pub tests: bool,
}

/// `$CARGO`, or else `cargo`.
pub fn cargo(folder: &Path) -> Command {
    let program = std::env::var_os("CARGO").filter(|name| !name.is_empty());
    let mut command = Command::new(program.unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(folder);
    command
}

/// What cargo complains about: the lines from the first error on.
pub fn complaint(printed: &[u8]) -> String {
    const LONGEST: usize = 600;
    let text = String::from_utf8_lossy(printed);
    let from = text.find("error").unwrap_or(0);
    let words: Vec<&str> = text[from..].split_whitespace().collect();
    words.join(" ").trim_start_matches("error: ").chars().take(LONGEST).collect()
}

impl Manifest {
    /// Asks cargo about a package, by its `Cargo.toml`. In a workspace, another package can be named.
    pub fn read(path: &Path, package: Option<&str>) -> Result<Manifest, Diagnostic> {
        let refuse = |message: String| Diagnostic::error("cannot-build", message);
        let path =
            path.canonicalize().map_err(|error| refuse(format!("its folder cannot be found: {error}")))?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut command = cargo(folder);
        command.args(["metadata", "--no-deps", "--format-version=1", "--offline", "--manifest-path"]);
        command.arg(&path);
        let ended = compiler::run(&mut command, None).map_err(|failure| {
            refuse(format!("cargo {failure}")).help("run `palisade doctor` to see what this machine lacks")
        })?;
        if !ended.success {
            return Err(refuse(format!("cargo cannot read it: {}", complaint(&ended.complained))));
        }
        let printed: Value = serde_json::from_slice(&ended.printed)
            .map_err(|error| refuse(format!("`cargo metadata` is not understood: {error}")))?;
        let target_folder = PathBuf::from(text(&printed["target_directory"]));
        let all = printed["packages"].as_array().map_or(&[][..], Vec::as_slice);
        let wanted = |found: &&Value| match package {
            Some(name) => found["name"] == name,
            None => Path::new(&text(&found["manifest_path"])) == path,
        };
        let Some(found) = all.iter().find(wanted) else {
            let names: Vec<String> = all.iter().map(|found| format!("`{}`", text(&found["name"]))).collect();
            let message = match package {
                Some(name) => format!("the workspace has no package `{name}`"),
                None => "this is a workspace, not a package".to_owned(),
            };
            let help = format!("name one of its packages with `-- -p NAME`: {}", names.join(", "));
            return Err(Diagnostic::error("no-such-package", message).help(help));
        };
        let parts = found["targets"].as_array().map_or(&[][..], Vec::as_slice);
        let folder = PathBuf::from(text(&found["manifest_path"])).parent().map(Path::to_owned);
        Ok(Manifest {
            folder: folder.unwrap_or_default(),
            package: text(&found["name"]),
            default_run: found["default_run"].as_str().map(str::to_owned),
            target_folder,
            parts: parts
                .iter()
                .map(|part| Part {
                    kind: text(&part["kind"][0]),
                    name: text(&part["name"]),
                    file: PathBuf::from(text(&part["src_path"])),
                    tests: part["test"] == true,
                })
                .collect(),
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
