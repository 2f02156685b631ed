//! Arguments about C and Rust programs.

use super::*;
use palisade::c::{MAX_HEAP, MAX_SLOTS};

/// How C and Rust programs are read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Args)]
pub struct CArgs {
    /// Without main: a function that runs before the threads
    #[arg(long, value_name = "FUNCTION", requires = "thread", help_heading = "C and Rust programs")]
    pub init: Option<String>,
    /// Without main: a function that runs as a thread (may be repeated)
    #[arg(long, value_name = "FUNCTION", help_heading = "C and Rust programs")]
    pub thread: Vec<String>,
    /// Without main: a function that runs after all threads
    #[arg(
        long = "final",
        value_name = "FUNCTION",
        requires = "thread",
        help_heading = "C and Rust programs"
    )]
    pub last: Option<String>,
    /// Rust: a test that runs instead of main, by its name or the end of its path
    #[arg(long, value_name = "NAME", conflicts_with = "thread", help_heading = "C and Rust programs")]
    pub test: Option<String>,
    /// Threads that one thread can start if the source does not fix the number [default: as needed]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = slots, help_heading = "C and Rust programs")]
    pub slots: Option<u32>,
    /// Objects that a thread can allocate at one place in the program [default: as needed]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = heap, help_heading = "C and Rust programs")]
    pub heap: Option<u32>,
    /// Do not report data races on plain variables
    #[arg(long, hide_short_help = true, help_heading = "C and Rust programs")]
    pub no_races: bool,
    /// Do not ask whether the program can get stuck before it is over
    #[arg(long, hide_short_help = true, help_heading = "C and Rust programs")]
    pub no_deadlock: bool,
    /// Do not ask what is left when the program ends: memory that was not freed, threads that still run
    #[arg(long, hide_short_help = true, help_heading = "C and Rust programs")]
    pub no_leaks: bool,
    /// Whether the last values of all globals are wanted. Not an option: the command decides.
    #[arg(skip)]
    pub keep_globals: bool,
    /// Whether there is any number of the threads that run the same function. Not an option: `--threads any` says so.
    #[arg(skip)]
    pub any_threads: bool,
    /// What follows -- goes to the compiler: options, and further .c files
    #[arg(last = true, value_name = "COMPILER ARGUMENT", help_heading = "C and Rust programs")]
    pub compiler: Vec<String>,
}

/// Larger numbers than these are allowed if the user asks for them, up to a point.
const MORE: u32 = 16;

fn slots(text: &str) -> Result<u32, String> {
    up_to(MAX_SLOTS * MORE, text)
}

fn heap(text: &str) -> Result<u32, String> {
    up_to(MAX_HEAP * MORE, text)
}
