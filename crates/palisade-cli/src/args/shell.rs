//! The arguments of `palisade completions` and `palisade man`.

use super::*;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  palisade completions bash > ~/.local/share/bash-completion/completions/palisade
  palisade completions zsh > ~/.zfunc/_palisade
  palisade completions fish > ~/.config/fish/completions/palisade.fish";

/// `palisade completions`
#[derive(Debug, Args)]
#[command(after_long_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

const MAN_EXAMPLES: &str = "\
Examples:
  palisade man | man -l -                           read it
  palisade man --folder ~/.local/share/man/man1     install it, with a page for each command";

/// `palisade man`
#[derive(Debug, Args)]
#[command(after_long_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Write a page for every command to this folder, instead of printing the main one
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
}
