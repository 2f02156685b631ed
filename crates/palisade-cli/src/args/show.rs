//! The arguments of `palisade show`.

use super::*;

/// `palisade show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The program (- for standard input)
    pub file: PathBuf,
    /// In which form
    #[arg(long = "as", value_name = "FORM")]
    pub form: Form,
    /// Input language, whatever the file's extension
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    pub input: Option<Language>,
}

/// Forms of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Form {
    /// Palisade's own language
    Pal,
    /// Control flow as a graph for Graphviz
    Dot,
}
