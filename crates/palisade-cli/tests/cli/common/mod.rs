//! Runs the built command in a scratch folder and compares its output with a transcript, where `[..]` stands
//! for any text within a line and `...` for any lines.

#![allow(dead_code, reason = "every test file uses its own part of this")]

pub mod groups;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Store buffering: safe under SC, unsafe under TSO and PSO.
pub const STORE_BUFFERING: &str = "\
shared x, y: 0..1;

process P {
    x = 1;
    let r = y;
}

process Q {
    y = 1;
    let r = x;
}

final P.r == 1 || Q.r == 1;
";

/// The same with fences: safe everywhere.
pub const FENCED: &str = "\
shared x, y: 0..1;
process P { x = 1; fence; let r = y; }
process Q { y = 1; fence; let r = x; }
final P.r == 1 || Q.r == 1;
";

/// Far too many states for a test, and none of them bad.
pub const ENDLESS: &str = "\
shared x[8]: 0..99;
process P(i: 0..7) { loop { x[i] = (x[(i + 1) % 8] + x[i] + 1) % 100; } }
forbid x[0] == 98 && x[1] == 98 && x[2] == 98 && x[3] == 98 && x[4] == 98 && x[5] == 98 && x[6] == 98 && x[7] == 98;
";

/// A folder for one test, empty at the start.
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// A fresh folder. A test that needs several gives them different names.
    pub fn new(name: &str) -> Scratch {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli");
        Scratch { folder: palisade_conformance::scratch_folder(&parent, name) }
    }

    /// Adds a file, with its folders.
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Scratch {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
        std::fs::write(path, content).expect("a file can be written");
        self
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The content of a file in it.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file exists")
    }

    /// The command, to be run in the folder with these arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        command.current_dir(&self.folder).args(args).env_remove("NO_COLOR").env_remove("TERM");
        command.env("PALISADE_CACHE", run_cache());
        command
    }

    /// Runs the command.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::new(self.command(args).output().expect("the command can be started"))
    }
}

/// Where the runtime of `palisade run` is kept. It is compiled once for all tests, whether there is a home directory
/// or not.
pub fn run_cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("run_cache")
}

/// Interrupts a process like Ctrl-C.
pub fn interrupt(child: &Child) {
    signal(child, "-INT");
}

/// Sends a signal, given as the option of `kill`.
pub fn signal(child: &Child, signal: &str) {
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(killed.expect("`kill` can be run").success());
}

/// Starts the command and waits until it handles the signals that stop it.
#[cfg(target_os = "linux")]
pub fn start(command: &mut Command) -> Child {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command can be started");
    while !listens(&mut child) {
        std::thread::yield_now();
    }
    child
}

/// Whether the process catches SIGINT and SIGTERM. A shell that is about to become the command may catch the
/// first one only.
#[cfg(target_os = "linux")]
fn listens(child: &mut Child) -> bool {
    if let Ok(Some(status)) = child.try_wait() {
        panic!("the command ended by itself: {status}");
    }
    catches(child.id())
}

/// Whether a process catches SIGINT and SIGTERM.
#[cfg(target_os = "linux")]
pub fn catches(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    // Bit n - 1 of the mask is signal n: SIGINT is 2, SIGTERM is 15.
    const BOTH: u64 = 1 << 1 | 1 << 14;
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & BOTH == BOTH)
}

/// What a command printed and how it ended.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn new(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).expect("the command prints UTF-8");
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Checks the exit code, and shows the output if it differs.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that standard output matches the transcript.
    #[track_caller]
    pub fn prints(self, transcript: impl snapbox::data::IntoData) -> Ran {
        snapbox::Assert::new()
            .action_env(snapbox::assert::DEFAULT_ACTION_ENV)
            .eq(self.stdout.as_str(), transcript.into_data());
        self
    }

    /// Checks that standard error matches the transcript.
    #[track_caller]
    pub fn complains(self, transcript: impl snapbox::data::IntoData) -> Ran {
        snapbox::Assert::new()
            .action_env(snapbox::assert::DEFAULT_ACTION_ENV)
            .eq(self.stderr.as_str(), transcript.into_data());
        self
    }
}
