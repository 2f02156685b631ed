//! The arguments of `palisade cc` and `palisade c++`.

use super::*;

const CC_EXAMPLES: &str = "\
Examples:
  palisade cc -o queue_test queue_test.c        compile and link a C program for `palisade run`
  palisade c++ -std=c++20 -c pool.cpp           one object of a C++ program
  palisade cc --compiler clang -o t t.c         with another compiler
  make CC='palisade cc' CXX='palisade c++'      a whole project

All arguments but a leading --compiler go to the compiler: that one, or $CC ($CXX), or gcc (g++).
Without -O the program is compiled without optimisation, which keeps every access visible.
Exit codes: 0 compiled, 2 not compiled.";

/// `palisade cc`, `palisade c++`
#[derive(Debug, Args)]
#[command(after_long_help = CC_EXAMPLES)]
pub struct CcArgs {
    /// The compiler to use [default: $CC or gcc; $CXX or g++]
    #[arg(long, value_name = "COMPILER")]
    pub compiler: Option<String>,
    /// Arguments of the compiler
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

impl CcArgs {
    /// Takes the words after `palisade cc` unchanged, because compilers have options with the same names as
    /// ours. `None` if help is requested.
    pub fn raw(words: &[String]) -> Option<CcArgs> {
        match words {
            [help] if help == "--help" || help == "-h" => None,
            [option, compiler, rest @ ..] if option == "--compiler" => {
                Some(CcArgs { compiler: Some(compiler.clone()), arguments: rest.to_vec() })
            }
            [first, rest @ ..] if first.starts_with("--compiler=") => Some(CcArgs {
                compiler: first.strip_prefix("--compiler=").map(str::to_owned),
                arguments: rest.to_vec(),
            }),
            _ => Some(CcArgs { compiler: None, arguments: words.to_vec() }),
        }
    }
}
