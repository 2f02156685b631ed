//! Lists the programs of the corpus, so that they can be built into the playground.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo tells where the crate is");
    let corpus = Path::new(&manifest).join("../../corpus");
    println!("cargo:rerun-if-changed={}", corpus.display());
    let mut files = Vec::new();
    programs(&corpus, &mut files);
    files.sort();
    let mut code = String::from("&[\n");
    for file in files {
        let name = file
            .strip_prefix(&corpus)
            .expect("it was found there")
            .to_str()
            .expect("corpus files have plain names");
        println!("cargo:rerun-if-changed={}", file.display());
        writeln!(code, "    ({name:?}, include_str!({:?})),", file.display().to_string())
            .expect("writing to a string");
    }
    code.push(']');
    let out = std::env::var("OUT_DIR").expect("cargo tells where to write");
    std::fs::write(Path::new(&out).join("examples.rs"), code).expect("the list can be written");
}

/// The programs below a folder: files in a folder of their own, but no tables and no notes.
fn programs(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the corpus can be read") {
        let path = entry.expect("the corpus can be read").path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        if path.is_dir() {
            programs(&path, files);
        } else if ["pal", "rmm", "litmus", "trencher"].contains(&extension) {
            files.push(path);
        }
    }
}
