//! The arguments of `palisade bench`. The suites define their own. This file handles the options of every
//! command.

use super::Palisade;
use clap::{Arg, Command, CommandFactory};

/// Options of every command that `bench` does not accept, because its suites are always measured in the same
/// way.
pub const NOT_OF_BENCH: [&str; 5] = ["timeout", "memory", "jobs", "seed", "verbose"];

/// The whole command line. The help of `bench` does not offer options that it does not accept.
pub fn command() -> Command {
    let mut command = Palisade::command();
    let hidden: Vec<Arg> = command
        .get_arguments()
        .filter(|arg| NOT_OF_BENCH.iter().any(|option| arg.get_id() == option))
        .map(|arg| arg.clone().hide(true))
        .collect();
    if let Some(bench) = command.find_subcommand_mut("bench") {
        hide(bench, &hidden);
    }
    command
}

/// Hides these options in a command and its subcommands. Clap adds a global option to each command unless the
/// command already has it.
fn hide(command: &mut Command, hidden: &[Arg]) {
    *command = std::mem::take(command).args(hidden);
    command.get_subcommands_mut().for_each(|command| hide(command, hidden));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_offered_where_they_are_accepted() {
        let mut command = command();
        command.build();
        let mut help = |words: &[&str]| {
            let command = words.iter().fold(&mut command, |command, word| {
                command.find_subcommand_mut(word).expect("the command exists")
            });
            command.render_long_help().to_string()
        };
        for words in [["bench"].as_slice(), &["bench", "cover"]] {
            let help = help(words);
            assert!(help.contains("--format") && help.contains("--quiet"), "{help}");
            for option in NOT_OF_BENCH {
                assert!(!help.contains(&format!("--{option}")), "{words:?}: --{option}");
            }
        }
        assert!(help(&["check"]).contains("--timeout"));
    }
}
