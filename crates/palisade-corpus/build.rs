//! Packs the programs of `corpus/` and the tables of their verdicts, so that they are available wherever the library is
//! used.

use std::path::Path;
use std::{env, fs};

/// The file extensions of programs that Palisade reads by itself.
const LANGUAGES: [&str; 4] = ["pal", "rmm", "litmus", "trencher"];

fn main() {
    let corpus = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../corpus");
    println!("cargo::rerun-if-changed={}", corpus.display());
    for (extensions, name) in [(&LANGUAGES[..], "texts"), (&["c"], "c_texts"), (&["tsv"], "tables")] {
        let files = palisade_packed::files_below(&corpus, extensions).expect("the corpus can be read");
        let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join(format!("{name}.packed"));
        fs::write(out, palisade_packed::pack(files)).expect("the output folder is writable");
    }
}
