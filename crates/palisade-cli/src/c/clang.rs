//! Calling clang: from C to LLVM IR as text.
//!
//! The text goes through pipes, so there are no temporary files.

use crate::compiler;
use palisade::Diagnostic;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Names to try, in this order. The reader of LLVM IR knows the text of clang 14 to 22 and skips most of what later
/// versions add.
const NAMES: [&str; 10] = [
    "clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15",
    "clang-14",
];

/// What makes clang print the program as written, with debug information. It comes after the user's options
/// and so takes precedence over `-O2` and the like: an optimiser may drop the assertions.
const OPTIONS: [&str; 9] = [
    "-O0",
    "-Xclang",
    "-disable-O0-optnone",
    "-g",
    "-S",
    "-emit-llvm",
    "-fno-discard-value-names",
    "-fno-color-diagnostics",
    "-o-",
];

/// What makes clang mark the ends of blocks, where their variables cease to exist, and check indices of arrays. It
/// comes before the user's options, which may turn checks off.
const MARKS: [&str; 4] = [
    "-Xclang",
    "-fsanitize-address-use-after-scope",
    "-fsanitize=array-bounds",
    "-fsanitize-trap=array-bounds",
];

/// From this version on, clang takes every array at the end of a struct for one of open length, unless it is asked to
/// do so only for those of length 0 and 1.
const OPEN_ARRAYS: u32 = 16;

/// A compiler that is clang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clang {
    /// How to call it: a program and perhaps options.
    command: Vec<String>,
    /// The first line that it prints about itself.
    pub version: String,
}

/// What the compiler is given besides the file.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// The file, or `-` for a text from standard input.
    pub file: &'a Path,
    /// The text that is passed through standard input instead of the file.
    pub text: Option<&'a str>,
    /// The user's options.
    pub options: &'a [String],
}

/// Why there is no LLVM IR.
#[derive(Debug)]
pub enum NotCompiled {
    /// The compiler rejects the program. What it printed.
    Rejected(String),
    /// The compiler cannot be called.
    Problem(Diagnostic),
}

impl Clang {
    /// `$CC` if it is clang, or else the first clang that is installed. It is looked for until it is found once.
    pub fn find() -> Result<Clang, Diagnostic> {
        static FOUND: OnceLock<Clang> = OnceLock::new();
        if let Some(clang) = FOUND.get() {
            return Ok(clang.clone());
        }
        // With `make CC='palisade cc'` we must not call ourselves.
        let requested = std::env::var("CC").ok().filter(|name| !name.contains("palisade"));
        let requested = requested.iter().map(|cc| cc.split_whitespace().map(str::to_owned).collect());
        let usual = NAMES.iter().map(|name| vec![(*name).to_owned()]);
        let found = requested.chain(usual).find_map(Clang::of).ok_or_else(|| {
            Diagnostic::error("no-clang", "clang is not installed, but it is needed to read C programs")
                .help(INSTALL)
        })?;
        Ok(FOUND.get_or_init(|| found).clone())
    }

    /// The compiler with that command, if it is clang.
    fn of(command: Vec<String>) -> Option<Clang> {
        let (program, arguments) = command.split_first()?;
        let output =
            Command::new(program).args(arguments).arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().filter(|line| line.contains("clang"))?.trim().to_owned();
        Some(Clang { command, version })
    }

    /// The same compiler, started by another command.
    pub fn started_by(mut self, command: &[&str]) -> Clang {
        self.command = command.iter().map(|word| (*word).to_owned()).chain(self.command).collect();
        self
    }

    /// The folders with the headers of the system and of the compiler itself.
    pub fn system_headers(&self) -> io::Result<Vec<String>> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args(["-E", "-v", "-x", "c", "/dev/null"]);
        for name in ["CPATH", "C_INCLUDE_PATH"] {
            command.env_remove(name);
        }
        let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let listed = text.lines().skip_while(|line| !line.starts_with("#include <...>")).skip(1);
        let folders = listed.take_while(|line| line.starts_with(' ')).map(|line| line.trim().to_owned());
        // What is below /usr/local belongs to this machine.
        Ok(folders
            .filter(|folder| folder.starts_with('/') && !folder.starts_with("/usr/local/include"))
            .collect())
    }

    /// The first number of its version.
    fn major(&self) -> Option<u32> {
        let (_, version) = self.version.split_once("version ")?;
        version.split('.').next()?.parse().ok()
    }

    /// Compiles one file to LLVM IR.
    pub fn compile(&self, unit: Unit<'_>) -> Result<String, NotCompiled> {
        let problem = |message: String| {
            let error = Diagnostic::error("cannot-compile", message);
            NotCompiled::Problem(error.help("run `palisade doctor` to see what is missing on this machine"))
        };
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args(MARKS);
        if self.major().is_some_and(|major| major >= OPEN_ARRAYS) {
            command.arg("-fstrict-flex-arrays=1");
        }
        command.args(unit.options).args(OPTIONS);
        // A name that begins with `-` is not an option.
        let file = match unit.file.as_os_str().as_encoded_bytes() {
            [b'-', _, ..] => Path::new(".").join(unit.file).into_os_string(),
            _ => unit.file.as_os_str().to_owned(),
        };
        command.args([OsStr::new("-x"), OsStr::new("c"), &file]);
        let ended =
            compiler::run(&mut command, unit.text).map_err(|failure| problem(format!("clang {failure}")))?;
        match (ended.success, String::from_utf8(ended.printed)) {
            (true, Ok(text)) if !text.trim().is_empty() => Ok(text),
            (true, Ok(_)) => {
                Err(problem("clang printed no program: one of its options prevents that".to_owned()))
            }
            (true, Err(_)) => {
                Err(problem("clang did not print text: one of its options prevents that".to_owned()))
            }
            (false, _) => Err(NotCompiled::Rejected(String::from_utf8_lossy(&ended.complained).into_owned())),
        }
    }
}

/// How to get clang.
const INSTALL: &str = "install clang 14 or later (`apt install clang`, `dnf install clang`, \
                       `brew install llvm`), or name one in CC";
