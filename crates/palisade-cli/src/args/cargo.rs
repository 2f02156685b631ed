//! The arguments of `palisade cargo`.

use super::*;

const CARGO_EXAMPLES: &str = "\
Examples:
  palisade cargo build                          build the programs of a package for `palisade run`
  palisade cargo run --bin queue_test           build one and run it under `palisade run`
  palisade cargo test                           run each #[test] under `palisade run`
  palisade cargo --suppress known.txt test      with options of `palisade run`
  palisade run --strategy exhaustive -- target/palisade/HOST/debug/queue_test

Options of `palisade run` come first; all other arguments go to cargo.
`test` leaves out documentation tests, which cannot be instrumented.
Its build files have a folder of their own, target/palisade (or $CARGO_TARGET_DIR/palisade).
`palisade doctor` shows whether this rustc supports it. Tests can use the crate palisade-sync
instead, which needs no instrumentation: see docs/rust-tests.md.
Exit codes: 0 built, 2 not built; if cargo runs a program, those of `palisade run`.";

/// `palisade cargo`
#[derive(Debug, Args)]
#[command(after_long_help = CARGO_EXAMPLES)]
pub struct CargoArgs {
    /// Options of `palisade run`, and then the arguments of cargo
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub arguments: Vec<String>,
}
