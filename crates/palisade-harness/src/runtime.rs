//! The runtime that is linked into programs. Its sources are part of this crate and are compiled by the
//! user's own compiler when they are needed.

use crate::cache::{Cache, digest, temporary_folder};
use object::{Object as _, ObjectSymbol as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources, by file name.
pub const SOURCES: &[(&str, &str)] = &[
    ("log.h", include_str!("../runtime/log.h")),
    ("palisade.h", include_str!("../runtime/palisade.h")),
    ("access.c", include_str!("../runtime/access.c")),
    ("asm.c", include_str!("../runtime/asm.c")),
    ("attack.c", include_str!("../runtime/attack.c")),
    ("audit.c", include_str!("../runtime/audit.c")),
    ("atomic.c", include_str!("../runtime/atomic.c")),
    ("buffer.c", include_str!("../runtime/buffer.c")),
    ("c11.c", include_str!("../runtime/c11.c")),
    ("clock.c", include_str!("../runtime/clock.c")),
    ("endless.c", include_str!("../runtime/endless.c")),
    ("fresh.c", include_str!("../runtime/fresh.c")),
    ("heap.c", include_str!("../runtime/heap.c")),
    ("hidden.c", include_str!("../runtime/hidden.c")),
    ("leave.c", include_str!("../runtime/leave.c")),
    ("order.c", include_str!("../runtime/order.c")),
    ("library.c", include_str!("../runtime/library.c")),
    ("limits.c", include_str!("../runtime/limits.c")),
    ("lock.c", include_str!("../runtime/lock.c")),
    ("memory.c", include_str!("../runtime/memory.c")),
    ("misuse.c", include_str!("../runtime/misuse.c")),
    ("random.c", include_str!("../runtime/random.c")),
    ("reap.c", include_str!("../runtime/reap.c")),
    ("resident.c", include_str!("../runtime/resident.c")),
    ("restore.c", include_str!("../runtime/restore.c")),
    ("robust.c", include_str!("../runtime/robust.c")),
    ("schedule.c", include_str!("../runtime/schedule.c")),
    ("server.c", include_str!("../runtime/server.c")),
    ("site.c", include_str!("../runtime/site.c")),
    ("spin.c", include_str!("../runtime/spin.c")),
    ("stdio.c", include_str!("../runtime/stdio.c")),
    ("strings.c", include_str!("../runtime/strings.c")),
    ("switch.c", include_str!("../runtime/switch.c")),
    ("thread.c", include_str!("../runtime/thread.c")),
    ("verifier.c", include_str!("../runtime/verifier.c")),
    ("wait.c", include_str!("../runtime/wait.c")),
    ("watch.c", include_str!("../runtime/watch.c")),
];

/// How the runtime is compiled. It defines functions of the C library, so the compiler must not make
/// assumptions about them.
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
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// There is no such compiler.
    #[error("the compiler `{compiler}` cannot be started: {error}")]
    NoCompiler {
        /// Its name.
        compiler: String,
        /// The error.
        error: io::Error,
    },
    /// The runtime does not compile.
    #[error("`{compiler}` does not compile the runtime:\n{printed}")]
    DoesNotCompile {
        /// The compiler.
        compiler: String,
        /// Its output.
        printed: String,
    },
}

/// The C compiler that belongs to a C++ compiler.
fn for_c(compiler: &str) -> String {
    let (folder, name) = compiler.rsplit_once('/').map_or(("", compiler), |(folder, name)| (folder, name));
    let name = name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc");
    if folder.is_empty() { name } else { format!("{folder}/{name}") }
}

/// The runtime as an object file.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its content.
    pub content: Vec<u8>,
    /// Where it is kept, if that was possible.
    pub path: Option<PathBuf>,
    /// The C compiler that it is for, and what this prints about its version.
    pub made_for: (String, Vec<u8>),
}

/// The object file of the runtime, which is compiled if it is not in the cache.
pub fn object(compiler: &str, cache: &Cache) -> Result<Object, RuntimeError> {
    let compiler = for_c(compiler);
    let compiler = compiler.as_str();
    let version = version(compiler)?;
    let name = format!("runtime-{}", &key(compiler, &version)[..32]);
    let made_for = (compiler.to_owned(), version);
    if let Some((path, content)) = cache.get(&name) {
        return Ok(Object { content, path: Some(path), made_for });
    }
    let content = compiled(compiler)?;
    // If nothing can be kept, for instance on a full disk, it is made again the next time.
    let path = cache.put(&name, &content).ok();
    Ok(Object { content, path, made_for })
}

/// What a compiler prints about its version.
pub(crate) fn version(compiler: &str) -> Result<Vec<u8>, RuntimeError> {
    let output = Command::new(compiler).arg("--version").output();
    let output = output.map_err(|error| RuntimeError::NoCompiler { compiler: compiler.to_owned(), error })?;
    Ok(output.stdout)
}

/// Whether an object file is the runtime: no other may define its marker.
pub fn is_runtime(object: &object::File<'_>) -> bool {
    object.symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok("palisade_runtime_marker"))
}

/// A key for everything that the object depends on.
fn key(compiler: &str, version: &[u8]) -> String {
    let mut parts: Vec<&[u8]> = vec![compiler.as_bytes(), version];
    parts.extend(SOURCES.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]));
    parts.extend(FLAGS.iter().map(|flag| flag.as_bytes()));
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(&(part.len() as u64).to_le_bytes());
        all.extend_from_slice(part);
    }
    digest(&all)
}

/// Compiles the runtime in a folder that no one else can write to.
fn compiled(compiler: &str) -> Result<Vec<u8>, RuntimeError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| RuntimeError::Io { path, error }
    };
    let folder = temporary_folder("palisade-runtime-").map_err(io(&std::env::temp_dir()))?;
    let work = folder.path();
    for (name, text) in SOURCES {
        let path = work.join(name);
        fs::write(&path, text).map_err(io(&path))?;
    }
    let made = work.join("runtime.o");
    let sources = SOURCES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c"));
    let output = Command::new(compiler)
        .current_dir(work)
        .args(FLAGS)
        // The object is the same wherever it was compiled.
        .arg(format!("-fdebug-prefix-map={}=palisade-runtime", work.display()))
        .args(["-r", "-nostdlib", "-o"])
        .arg("runtime.o")
        .args(sources)
        .output()
        .map_err(|error| RuntimeError::NoCompiler { compiler: compiler.to_owned(), error })?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(RuntimeError::DoesNotCompile { compiler: compiler.to_owned(), printed });
    }
    fs::read(&made).map_err(io(&made))
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
            .expect("the folder exists")
            .map(|entry| entry.expect("it can be read").file_name().into_string().expect("a plain name"))
            .collect();
        let mut listed: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        files.sort();
        listed.sort_unstable();
        assert_eq!(files, listed);
    }
}
