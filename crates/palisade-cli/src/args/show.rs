//! The arguments of `palisade show`.

use super::*;

const SHOW_EXAMPLES: &str = "\
Examples:
  palisade show test.litmus --as pal                  in Palisade's own language
  palisade show lock.pal --as svg > lock.svg          control flow as a picture
  palisade show run.json --as svg > run.svg           a run as a picture (check --witness run.json)
  palisade show lock.pal --as dot | dot -Tsvg -O      control flow, drawn by Graphviz

Exit codes: 0 done, 2 usage or input error, 3 unknown: time or memory ran out.";

/// `palisade show`
#[derive(Debug, Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
pub struct ShowArgs {
    /// The program (- for standard input), or for `--as svg` a run in a witness file
    pub file: PathBuf,
    /// The form to print
    #[arg(long = "as", value_name = "FORM")]
    pub form: Form,
    /// Value of a constant of a `.pal` program, instead of the one in the file
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = constant)]
    pub constants: Vec<(String, i64)>,
    /// Input language, regardless of the file's extension
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    pub input: Option<InputLanguage>,
    /// How C programs are read.
    #[command(flatten)]
    pub c: CArgs,
}

/// Forms of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Form {
    /// Palisade's own language
    Pal,
    /// Control flow as a graph for Graphviz
    Dot,
    /// A picture: the control flow of a program, or a run
    Svg,
}
