//! The library `std` of programs that are checked: its text, and the compiled form that programs are given.

use super::rustc::{self, Rustc};
use palisade::Diagnostic;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The files of the library, by their names, which `build.rs` has packed.
static FILES: LazyLock<Vec<(String, String)>> =
    LazyLock::new(|| palisade_packed::unpack(include_bytes!(concat!(env!("OUT_DIR"), "/std.packed"))));

/// The compiled library, in a folder that only the user can access. It is removed when this is dropped.
pub struct Model {
    folder: TempDir,
}

impl Model {
    /// Compiles the library. It takes a tenth of a second, so it is not kept.
    pub fn build(rustc: &Rustc) -> Result<Model, Diagnostic> {
        let folder = write().map_err(|error| {
            let message = format!("the library that programs are given cannot be written: {error}");
            Diagnostic::error("cannot-compile", message)
                .help("it is written among the temporary files (TMPDIR)")
        })?;
        let model = Model { folder };
        rustc.compile_model(&model)?;
        Ok(model)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The main file of its text.
    pub fn text(&self) -> PathBuf {
        self.folder().join("lib.rs")
    }

    /// Its compiled form.
    pub fn library(&self) -> PathBuf {
        self.folder().join("libstd.rlib")
    }
}

/// What everything depends on that is compiled for a program: the library, its compiler, and how it is called.
pub fn digest(compiler: &str) -> String {
    let texts = FILES.iter().map(|(_, text)| text.as_str());
    let flags = rustc::CRATE_FLAGS.into_iter().chain(rustc::CHANGEABLE).chain(rustc::LLVM_IR);
    let all: Vec<&str> = texts.chain(flags).chain([compiler, env!("CARGO_PKG_VERSION")]).collect();
    let mut digest = palisade::harness::cache::digest(all.join("\n").as_bytes());
    digest.truncate(16);
    digest
}

fn write() -> io::Result<TempDir> {
    let folder = palisade::harness::cache::temporary_folder("palisade-std-")?;
    for (name, text) in FILES.iter() {
        let path = folder.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(folder)
}
