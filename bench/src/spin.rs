//! Spin's verifiers: writing the model, compiling, finding good settings, running, reading the output.
//!
//! The user of a verifier has to choose two sizes: how deep its search may go (`-m`) and the logarithm of the
//! number of hash buckets (`-w`). Both cost memory up front, and too small a hash table costs time. A first
//! run with plenty of both shows how deep the search goes and how many states there are. The runs that count
//! get just enough depth, and between one and two buckets per state.

use crate::measure::output;
use crate::models::Model;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiled verifier with its settings.
pub struct Verifier {
    program: PathBuf,
    arguments: Vec<String>,
}

/// Whether Spin leaves states out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
    /// Compiled with `-DNOREDUCE`.
    No,
    /// Spin's own partial-order reduction.
    Yes,
}

/// What a verifier printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// States stored.
    pub states: u64,
    /// Depth reached.
    pub depth: u64,
    /// Errors found.
    pub errors: u64,
    /// Megabytes (of 2^20 bytes) in states, hash table and stack.
    pub total_megabytes: f64,
}

/// Checks that Spin can be used; the error says how to get what is missing.
pub fn check_installed() -> Result<String> {
    let help = "the spin suite needs Spin and a C compiler: apt-get install -y spin gcc";
    let version = output(Command::new("spin").arg("-V")).context(help)?;
    let compiler = output(Command::new("gcc").arg("-dumpfullversion")).context(help)?;
    Ok(format!("{}; gcc {}", version.trim(), compiler.trim()))
}

impl Verifier {
    /// Builds the verifier of a model in a folder and finds its settings.
    pub fn new(model: Model, reduce: Reduce, folder: &Path) -> Result<Verifier> {
        Verifier::of(&model.to_string(), &model.promela(), reduce, 50_000_000, folder)
    }

    /// The same for a text in Promela, with a unique name. The first search may go to this depth.
    pub fn of(name: &str, text: &str, reduce: Reduce, depth: u64, folder: &Path) -> Result<Verifier> {
        let folder = folder.join(format!("{name}-{reduce:?}"));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("model.pml"), text)?;
        output(Command::new("spin").args(["-a", "model.pml"]).current_dir(&folder))?;
        let mut compile = Command::new("gcc");
        compile.args(["-O2", "-DSAFETY", "-DMEMLIM=12000", "-o", "pan", "pan.c"]).current_dir(&folder);
        if reduce == Reduce::No {
            compile.arg("-DNOREDUCE");
        }
        output(&mut compile)?;
        // Without -E, a thread that waits forever would be an error.
        let settings = |depth: u64, buckets: u64| {
            vec!["-E".to_owned(), format!("-m{depth}"), format!("-w{}", buckets.ilog2())]
        };
        let mut verifier = Verifier { program: folder.join("pan"), arguments: settings(depth, 1 << 24) };
        let first = verifier.run()?;
        verifier.arguments = settings(first.depth + 100, (first.states * 2).next_power_of_two() / 2);
        Ok(verifier)
    }

    /// The command that runs it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        // A run that breaks the model is written to the same folder.
        if let Some(folder) = self.program.parent() {
            command.current_dir(folder);
        }
        command
    }

    /// Its settings, as on the command line.
    pub fn settings(&self) -> String {
        self.arguments.join(" ")
    }

    /// Runs it once.
    pub fn run(&self) -> Result<Printed> {
        let text = output(&mut self.command())?;
        let printed =
            Printed::parse(&text).with_context(|| format!("not the output of a verifier:\n{text}"))?;
        ensure!(!text.contains("max search depth too small"), "the search was cut off:\n{text}");
        Ok(printed)
    }
}

impl Printed {
    fn parse(text: &str) -> Option<Printed> {
        let before = |what: &str| {
            let line = text.lines().find(|line| line.contains(what))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        let after = |what: &str| {
            let rest = text.split_once(what)?.1.trim_start();
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        Some(Printed {
            states: before("states, stored")? as u64,
            depth: after("depth reached")?,
            errors: after("errors:")?,
            total_megabytes: before("total actual memory usage")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_verifier() {
        let text = "
State-vector 36 byte, depth reached 2173, errors: 0
    11396 states, stored
    18200 states, matched
Stats on memory usage (in Megabytes):
    0.609\tequivalent memory usage for states (stored*(State-vector + overhead))
    0.655\tactual memory usage for states
    8.000\tmemory used for hash table (-w20)
   54.362\ttotal actual memory usage
";
        let printed = Printed::parse(text).expect("this is what pan prints");
        assert_eq!((printed.states, printed.depth, printed.errors), (11396, 2173, 0));
        assert_eq!(printed.total_megabytes, 54.362);
        assert!(Printed::parse("pan: out of memory").is_none());
    }
}
