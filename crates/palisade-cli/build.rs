//! The version as `palisade --version` prints it: with the commit and its date, if this is a clone and git is
//! installed. And the model of Rust's `std`, packed.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    pack_std();
    let mut version = env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    // The clone must be one of this project, not of another project that contains a copy of it.
    let is_clone = git(&["ls-files", "--error-unmatch", "Cargo.toml"]).is_some();
    if let Some(commit) = git(&["log", "-1", "--format=%h %cs", "--abbrev=12"]).filter(|_| is_clone) {
        version = format!("{version} ({commit})");
        // A new commit changes one of these files. Those that do not exist are left out, because cargo would
        // run this script every time.
        let head = ["HEAD".to_owned(), "packed-refs".to_owned()];
        let branch = git(&["symbolic-ref", "-q", "HEAD"]);
        for name in head.into_iter().chain(branch) {
            let file = git(&["rev-parse", "--git-path", &name]);
            if let Some(file) = file.filter(|file| Path::new(file).exists()) {
                println!("cargo::rerun-if-changed={file}");
            }
        }
    }
    println!("cargo::rustc-env=PALISADE_VERSION={version}");
}

/// Packs the sources of `src/rust/std`.
fn pack_std() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src/rust/std");
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = palisade_packed::files_below(&folder, &["rs"]).expect("the folder can be read");
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("std.packed");
    fs::write(out, palisade_packed::pack(files)).expect("the output folder is writable");
}

/// What git prints about the folder of this crate. `None` if git is not installed or this is not a clone.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
