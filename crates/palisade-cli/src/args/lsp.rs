//! The arguments of `palisade lsp`.

use super::*;

const LSP_EXAMPLES: &str = "\
Examples:
  palisade lsp                 for editors, over standard input and output
  palisade lsp --timeout 30    thirty seconds for each question, instead of ten

The editor starts it: see docs/editor.md. It ends when its input ends.
Exit codes: 0 shut down by the editor, 1 the editor left without shutting it down.";

/// `palisade lsp`
#[derive(Debug, Args)]
#[command(after_long_help = LSP_EXAMPLES)]
pub struct LspArgs {
    /// Use standard input and output: the only transport, accepted because editors may ask for it
    #[arg(long, hide = true)]
    pub stdio: bool,
}
