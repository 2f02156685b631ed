//! The arguments of `palisade lsp`.

use super::*;

const LSP_EXAMPLES: &str = "\
Examples:
  palisade lsp                 for editors, over standard input and output
  palisade lsp --timeout 30    thirty seconds for each question, instead of ten

The editor starts it: see docs/editor.md. It ends when its input ends.
Exit codes: 0 shut down by the editor, 1 the editor just left.";

/// `palisade lsp`
#[derive(Debug, Args)]
#[command(after_long_help = LSP_EXAMPLES)]
pub struct LspArgs {
    /// Over standard input and output, which is the only way; editors may say so
    #[arg(long, hide = true)]
    pub stdio: bool,
}
