//! Called by cargo instead of rustc.
//!
//! Crates that run on this machine while others are built (build scripts, macros) are compiled as cargo asks. So that
//! they can be told apart, cargo is asked to build for a named target. All others are compiled for us.

use super::super::rustc::{CHANGEABLE, CRATE_FLAGS, LLVM_IR};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The variable that names the folder of our library. It says that we are called instead of rustc.
pub const FOLDER: &str = "PALISADE_RUST_LIBRARY";

/// What marks the crate that is checked.
pub const MARK: &str = "--cfg=palisade_checked";

/// Where in the folder its command line is taken down.
pub const TAKEN_DOWN: &str = "command.json";

/// How cargo would have called rustc.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invocation {
    /// All arguments, without those that say what is written, and where.
    pub arguments: Vec<String>,
    /// All variables.
    pub variables: Vec<(String, String)>,
    /// Where it runs.
    pub folder: PathBuf,
}

impl Invocation {
    /// What cargo would have called, with these words.
    fn new(words: &[String]) -> Option<Invocation> {
        let mut arguments = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--out-dir" => _ = words.next(),
                MARK => {}
                word if ["--emit=", "--json=", "--error-format="].iter().any(|it| word.starts_with(it)) => {}
                word => arguments.push(word.to_owned()),
            }
        }
        // The pipes that limit the number of jobs will be gone.
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| !name.ends_with("MAKEFLAGS") && name != FOLDER)
            .collect();
        Some(Invocation { arguments, variables, folder: std::env::current_dir().ok()? })
    }

    /// As it is taken down.
    fn to_json(&self) -> Value {
        json!({ "arguments": self.arguments, "variables": self.variables, "folder": self.folder.to_str() })
    }

    /// What was taken down.
    pub fn from_json(text: &[u8]) -> Option<Invocation> {
        let taken: Value = serde_json::from_slice(text).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let pair = |value: &Value| Some((text(&value[0])?, text(&value[1])?));
        Some(Invocation {
            arguments: taken["arguments"].as_array()?.iter().map(text).collect::<Option<_>>()?,
            variables: taken["variables"].as_array()?.iter().map(pair).collect::<Option<_>>()?,
            folder: PathBuf::from(taken["folder"].as_str()?),
        })
    }

    /// The name of the crate.
    pub fn crate_name(&self) -> &str {
        let name = self.arguments.windows(2).find(|pair| pair[0] == "--crate-name");
        name.map_or("", |pair| pair[1].as_str())
    }
}

/// Does what is to be done instead of rustc, if this program is called like that.
pub fn wrapped() -> Option<ExitCode> {
    let folder = PathBuf::from(std::env::var_os(FOLDER)?);
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((rustc, arguments)) = words.split_first() else { return Some(ExitCode::FAILURE) };
    let text: Option<Vec<String>> = arguments.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let mut command = Command::new(rustc);
    command.env_remove(FOLDER);
    let failure = match text.filter(|text| is_for_us(text)) {
        None => command.args(arguments).exec(),
        Some(words) if words.iter().any(|word| word == MARK) => match take_down(&words, &folder) {
            // This fails for cargo, so that it asks again the next time.
            Ok(()) => return Some(ExitCode::FAILURE),
            Err(error) => error,
        },
        Some(words) => for_us(&mut command, &words, &folder).exec(),
    };
    // If it cannot be printed, the exit code still says that something is wrong.
    let _ = writeln!(std::io::stderr(), "palisade: {failure}");
    Some(ExitCode::FAILURE)
}

/// Whether a crate becomes part of the program. Build scripts may call the compiler too, to see what it can do.
fn is_for_us(words: &[String]) -> bool {
    let has = |name: &str| words.iter().any(|word| word == name);
    let by_script = std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("CARGO_CFG_"));
    has("--target") && has("--crate-name") && has("--out-dir") && !by_script
}

fn take_down(words: &[String], folder: &Path) -> std::io::Result<()> {
    let invocation = Invocation::new(words).ok_or_else(|| std::io::Error::other("the folder is gone"))?;
    std::fs::write(folder.join(TAKEN_DOWN), invocation.to_json().to_string())
}

/// Compiles a dependency: as cargo asks, with our library, and with LLVM IR. Programs are not linked.
fn for_us<'a>(command: &'a mut Command, words: &[String], folder: &Path) -> &'a mut Command {
    let is_program = words.windows(2).any(|pair| pair == ["--crate-type", "bin"])
        || words.iter().any(|word| word == "--test");
    let cargo_asks = words.iter().map(|word| match word.strip_prefix("--emit=") {
        Some(_) if is_program => "--emit=dep-info",
        _ => word.as_str(),
    });
    let mut library = OsString::from("--extern=std=");
    library.push(folder.join("libstd.rlib"));
    command.args(CHANGEABLE).args(cargo_asks).args(CRATE_FLAGS).args(LLVM_IR).arg(library);
    if !words.iter().any(|word| word.starts_with("--cap-lints")) {
        command.arg("--cap-lints=allow");
    }
    // Functions are compiled with the program, where LLVM can inline them.
    command.arg("-Zcross-crate-inline-threshold=always").env("RUSTC_BOOTSTRAP", "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_taken_down() {
        let words =
            words("--crate-name lock src/main.rs --emit=link --out-dir x --cfg=palisade_checked --test");
        let taken = Invocation::new(&words).expect("there is a folder");
        assert_eq!(taken.arguments.join(" "), "--crate-name lock src/main.rs --test");
        assert_eq!(taken.crate_name(), "lock");
        assert_eq!(Invocation::from_json(taken.to_json().to_string().as_bytes()), Some(taken));
    }

    #[test]
    fn programs_are_not_linked() {
        let arguments = |text: &str| {
            let mut command = Command::new("rustc");
            let command = for_us(&mut command, &words(text), Path::new("/std"));
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert!(arguments("--crate-type bin --emit=dep-info,link").contains("--emit=dep-info -C"));
        assert!(arguments("--crate-type lib --emit=metadata,link").contains("--emit=metadata,link"));
        assert!(arguments("--cap-lints warn").contains("--extern=std=/std/libstd.rlib"));
        assert!(!arguments("--cap-lints warn").contains("--cap-lints=allow"));
    }
}
