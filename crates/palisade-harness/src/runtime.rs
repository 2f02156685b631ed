//! The runtime that is linked into programs. Its sources are part of this crate and are compiled by the
//! user's own compiler when they are needed.

use crate::cache::{Cache, digest, temporary_folder};
use object::{Object as _, ObjectSymbol as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources, which `build.rs` has packed.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime.packed"));

/// Sources, by file name.
pub fn sources() -> Vec<(String, String)> {
    palisade_packed::unpack(PACKED)
}

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
    parts.push(PACKED);
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
    let all = sources();
    for (name, text) in &all {
        let path = work.join(name);
        fs::write(&path, text).map_err(io(&path))?;
    }
    let made = work.join("runtime.o");
    let sources = all.iter().map(|(name, _)| name).filter(|name| name.ends_with(".c"));
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
    fn all_sources_are_packed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime");
        let mut files: Vec<String> = fs::read_dir(folder)
            .expect("the folder exists")
            .map(|entry| entry.expect("it can be read").file_name().into_string().expect("a plain name"))
            .collect();
        let packed = sources();
        for (name, text) in &packed {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime").join(name);
            assert_eq!(fs::read_to_string(file).expect("the file exists"), *text, "{name}");
        }
        let mut listed: Vec<String> = packed.into_iter().map(|(name, _)| name).collect();
        files.sort_unstable();
        listed.sort_unstable();
        assert_eq!(files, listed);
    }
}
