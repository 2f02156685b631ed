//! What a command line asks, in a form that the processes of a group can compare.
//!
//! Every argument is compared unless it is listed here. So an option that is added later is compared, too.

use clap::{ArgMatches, Command};

/// Arguments that may differ from process to process: which process this is, and what its machine can do.
const OWN: [&str; 5] = ["processes", "hosts", "process", "memory", "jobs"];
/// Arguments about how answers look.
const LOOKS: [&str; 3] = ["format", "quiet", "verbose"];
/// Files that are written. Their names do not matter to the other processes, but the answers of many questions are
/// prepared for them.
const WRITTEN: [&str; 8] = ["witness", "certificate", "html", "junit", "sarif", "tsv", "save", "write"];
/// Those that the answer depends on: a proof is looked for only if it is to be kept.
const WANTED: [&str; 1] = ["certificate"];

/// What a command line asks.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The command, and all arguments that affect answers.
    pub command: String,
    /// How answers look, and which files they are prepared for.
    pub looks: String,
}

impl Asked {
    /// What these matches of the whole command line ask.
    pub fn new(palisade: &Command, matches: &ArgMatches) -> Asked {
        let mut asked = Asked::default();
        let Some((name, matches)) = matches.subcommand() else { return asked };
        let Some(command) = palisade.find_subcommand(name) else { return asked };
        asked.command = name.to_owned();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let Ok(Some(values)) = matches.try_get_raw(id) else { continue };
            let values: Vec<_> = values.collect();
            let said = |values: &str| format!("\n{id}={values}");
            if LOOKS.contains(&id) {
                asked.looks += &said(&format!("{values:?}"));
            } else if WRITTEN.contains(&id) {
                asked.looks += &said("some file");
                if WANTED.contains(&id) {
                    asked.command += &said("some file");
                }
            } else if !OWN.contains(&id) {
                asked.command += &said(&format!("{values:?}"));
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Asked {
        let mut command = super::super::command();
        let matches = command.try_get_matches_from_mut(line.split(' ')).expect("it is a command line");
        Asked::new(&command, &matches)
    }

    #[test]
    fn what_may_differ_and_what_may_not() {
        let check = |other: &str, same_command: bool, same_looks: bool| {
            let (one, other) = (asked("palisade check a.pal"), asked(other));
            assert_eq!(one.command == other.command, same_command, "{other:?}");
            assert_eq!(one.looks == other.looks, same_looks, "{other:?}");
        };
        check("palisade check --hosts h --process 1 --memory 1 --jobs 7 --model tso a.pal", true, true);
        check("palisade check a.pal -q", true, false);
        check("palisade check a.pal --format json", true, false);
        check("palisade check a.pal --html page.html", true, false);
        check("palisade check a.pal --certificate proof.json", false, false);
        let options = [
            "--model sc",
            "--deadlock",
            "--shortest",
            "--coverage",
            "--max-buffer 3",
            "--threads 3",
            "--timeout 9",
            "--seed 4",
            "-D N=3",
            "b.pal",
            "--expect table",
        ];
        for option in options {
            check(&format!("palisade check a.pal {option}"), false, true);
        }
        assert_eq!(asked("palisade run --html a -- t x").looks, asked("palisade run --html b -- t x").looks);
        assert_ne!(asked("palisade run -- t x").command, asked("palisade run -- t y").command);
        assert_ne!(asked("palisade fences a.pal").command, asked("palisade check a.pal").command);
    }
}
