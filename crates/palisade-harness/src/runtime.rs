//! The runtime that is linked into programs: its sources are part of this crate and are compiled by the user's own compiler when they are needed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sources, by file name.
pub const SOURCES: &[(&str, &str)] = &[
    ("log.h", include_str!("../runtime/log.h")),
    ("palisade.h", include_str!("../runtime/palisade.h")),
    ("access.c", include_str!("../runtime/access.c")),
    ("asm.c", include_str!("../runtime/asm.c")),
    ("atomic.c", include_str!("../runtime/atomic.c")),
    ("c11.c", include_str!("../runtime/c11.c")),
    ("clock.c", include_str!("../runtime/clock.c")),
    ("heap.c", include_str!("../runtime/heap.c")),
    ("limits.c", include_str!("../runtime/limits.c")),
    ("lock.c", include_str!("../runtime/lock.c")),
    ("memory.c", include_str!("../runtime/memory.c")),
    ("random.c", include_str!("../runtime/random.c")),
    ("schedule.c", include_str!("../runtime/schedule.c")),
    ("server.c", include_str!("../runtime/server.c")),
    ("spin.c", include_str!("../runtime/spin.c")),
    ("switch.c", include_str!("../runtime/switch.c")),
    ("thread.c", include_str!("../runtime/thread.c")),
    ("wait.c", include_str!("../runtime/wait.c")),
];

/// How the runtime is compiled. It defines functions of the C library, so the compiler must not take them for granted.
pub const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-builtin",
    "-fno-lto",
    "-fno-strict-aliasing",
    "-fexceptions",
    "-w",
    "-pthread",
];

/// What a program with the runtime is linked with.
pub const LIBRARIES: &[&str] = &["-pthread", "-ldl", "-rdynamic"];

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A file cannot be written.
    #[error("{path}: {error}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no such compiler.
    #[error("the compiler `{compiler}` cannot be started: {error}")]
    NoCompiler {
        /// Its name.
        compiler: String,
        /// Why.
        error: io::Error,
    },
    /// It does not compile.
    #[error("`{compiler}` does not compile the runtime:\n{said}")]
    DoesNotCompile {
        /// The compiler.
        compiler: String,
        /// What it said.
        said: String,
    },
}

/// The C compiler that belongs to a C++ compiler.
fn for_c(compiler: &str) -> String {
    let (folder, name) = compiler.rsplit_once('/').map_or(("", compiler), |(folder, name)| (folder, name));
    let name = name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc");
    if folder.is_empty() { name } else { format!("{folder}/{name}") }
}

/// The object file of the runtime, compiled if it is not there yet. Objects are kept in `folder`, by what they are made of.
pub fn object(compiler: &str, folder: &Path) -> Result<PathBuf, RuntimeError> {
    let compiler = for_c(compiler);
    let compiler = compiler.as_str();
    let version = Command::new(compiler)
        .arg("--version")
        .output()
        .map_err(|error| RuntimeError::NoCompiler { compiler: compiler.to_owned(), error })?;
    let mut hasher = DefaultHasher::new();
    (compiler, version.stdout, SOURCES, FLAGS).hash(&mut hasher);
    let object = folder.join(format!("runtime-{:016x}.o", hasher.finish()));
    if object.exists() {
        return Ok(object);
    }
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| RuntimeError::Io { path, error }
    };
    // Somebody else may be doing the same: everybody works in a folder of their own, and the last one wins.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let work = folder.join(format!("work-{}-{number}", std::process::id()));
    fs::create_dir_all(&work).map_err(io(&work))?;
    for (name, text) in SOURCES {
        let path = work.join(name);
        fs::write(&path, text).map_err(io(&path))?;
    }
    let made = work.join("runtime.o");
    let sources = SOURCES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c"));
    let output = Command::new(compiler)
        .current_dir(&work)
        .args(FLAGS)
        .args(["-r", "-nostdlib", "-o"])
        .arg("runtime.o")
        .args(sources)
        .output()
        .map_err(|error| RuntimeError::NoCompiler { compiler: compiler.to_owned(), error })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // What is left there does no harm.
        let _ = fs::remove_dir_all(&work);
        return Err(RuntimeError::DoesNotCompile { compiler: compiler.to_owned(), said });
    }
    fs::rename(&made, &object).map_err(io(&object))?;
    let _ = fs::remove_dir_all(&work);
    Ok(object)
}

/// Where objects are kept: in the user's cache, or with other temporary files.
pub fn cache_folder(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> PathBuf {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PALISADE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("palisade")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/palisade")))
        .unwrap_or_else(|| std::env::temp_dir().join("palisade"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_for_c() {
        let check = |compiler: &str, expected: &str| assert_eq!(for_c(compiler), expected);
        check("gcc", "gcc");
        check("g++-12", "gcc-12");
        check("/usr/bin/x86_64-linux-gnu-g++", "/usr/bin/x86_64-linux-gnu-gcc");
        check("clang++", "clang");
        check("c++", "cc");
    }

    #[test]
    fn all_sources_are_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime");
        let mut files: Vec<String> = fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("it can be read").file_name().into_string().expect("a plain name"))
            .collect();
        let mut listed: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        files.sort();
        listed.sort_unstable();
        assert_eq!(files, listed);
    }
}
