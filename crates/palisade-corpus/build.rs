//! Embeds the programs of `corpus/` in the library, so that they are available wherever the library is used.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The file extensions of programs that Palisade reads by itself.
const LANGUAGES: [&str; 4] = ["pal", "rmm", "litmus", "trencher"];

fn main() {
    let corpus = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../corpus");
    println!("cargo::rerun-if-changed={}", corpus.display());
    embed(&corpus, &LANGUAGES, "texts.rs");
    embed(&corpus, &["c"], "c_texts.rs");
}

/// Writes the programs with these extensions, as a Rust expression.
fn embed(corpus: &Path, languages: &[&str], output: &str) {
    let mut files = Vec::new();
    collect(corpus, languages, &mut files);
    let name = |file: &PathBuf| {
        let name = file.strip_prefix(corpus).expect("the file is below the corpus folder");
        name.to_str().expect("a plain name").replace('\\', "/")
    };
    let mut names: Vec<String> = files.iter().map(name).collect();
    names.sort();
    let mut code = String::from("&[\n");
    for name in names {
        writeln!(
            code,
            "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../corpus/\", {name:?}))),"
        )
        .expect("writing to a string succeeds");
    }
    code.push(']');
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join(output);
    fs::write(out, code).expect("the output folder is writable");
}

fn collect(folder: &Path, languages: &[&str], files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).expect("the corpus folder exists") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            collect(&path, languages, files);
        } else if path.extension().is_some_and(|extension| languages.iter().any(|known| extension == *known))
        {
            files.push(path);
        }
    }
}
