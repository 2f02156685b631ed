//! The library `std` of programs that are checked: its text, and the compiled form that programs are given.

use super::rustc::{self, Rustc};
use palisade::Diagnostic;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The files of the library.
const FILES: [(&str, &str); 21] = [
    ("lib.rs", include_str!("std/lib.rs")),
    ("hint.rs", include_str!("std/hint.rs")),
    ("posix.rs", include_str!("std/posix.rs")),
    ("prelude.rs", include_str!("std/prelude.rs")),
    ("printing.rs", include_str!("std/printing.rs")),
    ("process.rs", include_str!("std/process.rs")),
    ("sync/mod.rs", include_str!("std/sync/mod.rs")),
    ("sync/barrier.rs", include_str!("std/sync/barrier.rs")),
    ("sync/condvar.rs", include_str!("std/sync/condvar.rs")),
    ("sync/lazy_lock.rs", include_str!("std/sync/lazy_lock.rs")),
    ("sync/mpsc/mod.rs", include_str!("std/sync/mpsc/mod.rs")),
    ("sync/mpsc/channel.rs", include_str!("std/sync/mpsc/channel.rs")),
    ("sync/mutex.rs", include_str!("std/sync/mutex.rs")),
    ("sync/once.rs", include_str!("std/sync/once.rs")),
    ("sync/once_lock.rs", include_str!("std/sync/once_lock.rs")),
    ("sync/rwlock.rs", include_str!("std/sync/rwlock.rs")),
    ("thread/mod.rs", include_str!("std/thread/mod.rs")),
    ("thread/builder.rs", include_str!("std/thread/builder.rs")),
    ("thread/handle.rs", include_str!("std/thread/handle.rs")),
    ("thread/result.rs", include_str!("std/thread/result.rs")),
    ("thread/scoped.rs", include_str!("std/thread/scoped.rs")),
];

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
    let texts = FILES.iter().map(|(_, text)| *text);
    let flags = rustc::CRATE_FLAGS.into_iter().chain(rustc::CHANGEABLE).chain(rustc::LLVM_IR);
    let all: Vec<&str> = texts.chain(flags).chain([compiler, env!("CARGO_PKG_VERSION")]).collect();
    let mut digest = palisade::harness::cache::digest(all.join("\n").as_bytes());
    digest.truncate(16);
    digest
}

fn write() -> io::Result<TempDir> {
    let folder = palisade::harness::cache::temporary_folder("palisade-std-")?;
    for (name, text) in FILES {
        let path = folder.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(folder)
}
