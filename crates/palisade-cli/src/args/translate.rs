//! The arguments of `palisade translate`.

use super::*;

const TRANSLATE_EXAMPLES: &str = "\
Examples:
  palisade translate peterson.pal --rounds 1 --to pal                for reading
  palisade translate peterson.pal --rounds 1 --to promela -o p.pml   for Spin:
  spin -run -safety -m1000000 p.pml
  palisade translate peterson.pal --age 1 --to c -o p.c              for CBMC; or run it:
  gcc -pthread p.c -o p && ./p 42
  palisade translate test.litmus --as-is --to promela                without store buffers

The result is a program for sequential consistency. It can go wrong exactly when the
original can go wrong under TSO within the bound.
Exit codes: 0 done, 2 usage or input error, 3 unknown: time or memory ran out.";

/// `palisade translate`
#[derive(Debug, Args)]
#[command(after_long_help = TRANSLATE_EXAMPLES)]
#[command(group = clap::ArgGroup::new("bound").required(true).args(["rounds", "age", "as_is"]))]
pub struct TranslateArgs {
    /// The program (- for standard input)
    pub file: PathBuf,
    /// TSO with at most this many rounds per process
    #[arg(long, value_name = "K", value_parser = rounds)]
    pub rounds: Option<u32>,
    /// TSO with stores that stay in their buffers for at most this many rounds
    #[arg(long, value_name = "K", value_parser = rounds)]
    pub age: Option<u32>,
    /// The program unchanged, under sequential consistency
    #[arg(long)]
    pub as_is: bool,
    /// The language to write
    #[arg(long, value_name = "LANGUAGE")]
    pub to: TargetArg,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Number of instances of every process, for c and promela
    #[arg(long, value_name = "N", value_parser = instances)]
    pub threads: Option<u32>,
    /// How programs are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Languages to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TargetArg {
    /// Palisade's own language
    Pal,
    /// C11 with POSIX threads, for verifiers or to run
    C,
    /// Spin's language
    Promela,
}

fn rounds(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX_ROUNDS);
    number.ok_or_else(|| format!("expected a number from 0 to {MAX_ROUNDS}"))
}

fn instances(text: &str) -> Result<u32, String> {
    up_to(MAX_INSTANCES, text)
}
