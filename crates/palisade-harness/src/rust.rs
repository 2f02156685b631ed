//! Instrumented builds of Rust programs: how `palisade cargo` configures cargo.
//!
//! rustc's own options run LLVM's ThreadSanitizer pass over every function, and our runtime is passed to the
//! linker. This does not need a nightly compiler. It does depend on the names of passes in rustc's LLVM, so
//! `palisade doctor` tries it.
//!
//! rustc also writes its assembly, and the linker that it starts is ours ([`link`]). There the assembly is
//! [audited](crate::audit) like that of a C compiler, assembled, and linked in place of rustc's own object.
//! So accesses for which LLVM's pass makes no call, and inline assembly, are followed or reported as in C.
//!
//! The standard library is precompiled. What it does inside its own functions is not seen, apart from system
//! calls, so the functions that the program uses are [followed or reported](crate::standard) where it calls them.
//! Generic and inline functions, including atomics, are compiled with the program and are seen.
//!
//! Build scripts and procedural macros run while the program is built and must not be instrumented. Cargo
//! leaves them alone when a target is specified, even if it is the host.

use crate::audit::Fresh;
use crate::cache::{Cache, digest, temporary_folder};
use crate::driver::{self, DriverError};
use crate::link::{self, Link, Linked};
use crate::runtime::{self, RuntimeError};
use crate::standard;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// rustc options that call the runtime at every access.
pub const INSTRUMENT: &[&str] =
    &["-Cpasses=forceattrs,tsan-module,function(tsan)", "-Cllvm-args=-force-attribute=sanitize_thread"];

/// Further options:
/// - source lines, and enough inlining to get source lines of the program instead of the standard library's;
/// - one piece of assembly for each crate, which is what its object file was made from.
const OTHER_OPTIONS: &[&str] = &[
    "-Cllvm-args=-tsan-instrument-func-entry-exit=0",
    "-Cllvm-args=-tsan-instrument-read-before-write=1",
    "-Cllvm-args=-tsan-distinguish-volatile=1",
    "-Cdebuginfo=2",
    "-Copt-level=1",
    "-Ccodegen-units=1",
    "-Clto=off",
    "--emit=asm",
];

/// Cargo's own settings. An incremental build, or one that optimises the whole program when it is linked,
/// would have other objects than those that belong to the assembly.
const SETTINGS: &[(&str, &str)] =
    &[("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_LTO", "off"), ("CARGO_PROFILE_RELEASE_LTO", "off")];

/// The beginning of the name of the linker that `palisade cargo` gives to rustc. It is a link to `palisade` itself.
pub const LINKER: &str = "palisade-linker";

/// The compiler that links, as rustc would call it.
const COMPILER: &str = "cc";

/// Why a build is not possible.
#[derive(Debug, thiserror::Error)]
pub enum RustError {
    /// There is no runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The runtime could not be written.
    #[error("the runtime cannot be written to the cache: is the disk full?")]
    NotKept,
    /// rustc does not report its host.
    #[error("`rustc -vV` does not report its host: is Rust installed?")]
    NoHost,
    /// The linker could not be put in place.
    #[error("{path}: the link to the linker cannot be made: {error}")]
    NoLinker {
        /// Where it should be.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// The target for which rustc compiles by default.
pub fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// All rustc options for a program that is linked with this runtime by this linker.
pub fn flags(runtime: &Path, linker: &Path) -> Vec<String> {
    let options = INSTRUMENT.iter().chain(OTHER_OPTIONS).map(|&option| option.to_owned());
    let linker = [format!("-Clinker={}", linker.display()), "-Clinker-flavor=gcc".to_owned()];
    let link = runtime::LIBRARIES.iter().map(|&library| library.to_owned());
    let link = std::iter::once(runtime.display().to_string()).chain(link);
    options.chain(linker).chain(link.map(|argument| format!("-Clink-arg={argument}"))).collect()
}

/// What cargo runs after it has built it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// Programs.
    Programs,
    /// Programs that contain tests, each of which is run on its own.
    Tests,
}

/// The environment for a cargo that builds programs for `palisade run` and runs them with it. `user_flags`
/// are the user's own flags, separated by `\x1f`. `palisade` is the executable that links and runs the
/// programs.
pub fn environment(
    cache: &Cache,
    palisade: &Path,
    user_flags: Option<&str>,
    runs: Runs,
) -> Result<Vec<(String, OsString)>, RustError> {
    let runtime = runtime::object("gcc", cache)?.path.ok_or(RustError::NotKept)?;
    let host = host().ok_or(RustError::NoHost)?;
    let linker = linker(cache, palisade)?;
    let mut all: Vec<String> =
        user_flags.into_iter().flat_map(|flags| flags.split('\x1f')).map(str::to_owned).collect();
    all.extend(flags(&runtime, &linker));
    let runner = format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace(['-', '.'], "_"));
    let mut run = palisade.as_os_str().to_owned();
    run.push(match runs {
        Runs::Programs => " run --",
        Runs::Tests => " run --tests --",
    });
    let settings = SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value)));
    Ok(settings
        .chain([
            ("CARGO_ENCODED_RUSTFLAGS".to_owned(), all.join("\x1f").into()),
            ("CARGO_BUILD_TARGET".to_owned(), host.into()),
            (runner, run),
        ])
        .collect())
}

/// The link by which rustc starts `palisade` as a linker. Its name depends on the version, so that cargo
/// builds everything again after an update.
fn linker(cache: &Cache, palisade: &Path) -> Result<PathBuf, RustError> {
    let identity = format!("{} {}", env!("CARGO_PKG_VERSION"), palisade.display());
    let path = cache.folder().join(format!("{LINKER}-{}", &digest(identity.as_bytes())[..16]));
    let is_there = || fs::read_link(&path).is_ok_and(|target| target == palisade);
    if !is_there() {
        // Two builds may do this at once.
        let made = cache.folder().join(format!("{LINKER}.{}", std::process::id()));
        let result = std::os::unix::fs::symlink(palisade, &made).and_then(|()| fs::rename(&made, &path));
        result.map_err(|error| RustError::NoLinker { path: path.clone(), error })?;
    }
    Ok(path)
}

/// Links a Rust program with these arguments, as rustc's linker would.
pub fn link(arguments: Vec<String>) -> Result<Linked, DriverError> {
    let io = |file: &Path| {
        let file = file.display().to_string();
        move |error| DriverError::Io { file, error }
    };
    let work = temporary_folder("palisade-link-").map_err(io(&std::env::temp_dir()))?;
    let arguments = expanded(arguments).map_err(io(Path::new("the linker's arguments")))?;
    let after = |option: &str| {
        let mut words = arguments.iter().skip_while(|word| *word != option);
        words.nth(1).cloned()
    };
    let output = PathBuf::from(after("-o").unwrap_or_else(|| "a.out".to_owned()));
    let is_library = arguments.iter().any(|word| word == "-shared");
    let precompiled = standard::precompiled(arguments.iter().map(String::as_str));
    let mut used = BTreeSet::new();
    let mut names = Vec::new();
    let mut replaced = Vec::new();
    for (index, word) in arguments.iter().enumerate() {
        let path = Path::new(word);
        let is_object = word.ends_with(".o") && path.is_file();
        if is_object && is_library && is_our_runtime(path) {
            // A library uses the runtime of the program that loads it.
            continue;
        }
        if (is_object || word.ends_with(".rlib"))
            && let Some(object) = followed(path, index, work.path(), &precompiled, &mut used)?
        {
            names.push((object.clone(), word.clone()));
            replaced.push(object.display().to_string());
            if is_object {
                continue;
            }
            // The rest of the archive is still needed. What was replaced is not taken from it.
        }
        replaced.push(word.clone());
    }
    let link = Link { arguments: replaced, output, is_library, names, standard: used };
    Ok(link::link(COMPILER, &link, work.path())?)
}

fn is_our_runtime(path: &Path) -> bool {
    let is_one =
        |bytes: Vec<u8>| object::File::parse(bytes.as_slice()).is_ok_and(|file| runtime::is_runtime(&file));
    fs::read(path).is_ok_and(is_one)
}

/// An object file in which everything is followed, from the assembly that belongs to rustc's object file or
/// archive. Returns `None` if there is no such assembly, as for the standard library.
fn followed(
    file: &Path,
    index: usize,
    work: &Path,
    precompiled: &BTreeSet<String>,
    used: &mut BTreeSet<standard::Function>,
) -> Result<Option<PathBuf>, DriverError> {
    let io = |file: &Path| {
        let file = file.display().to_string();
        move |error| DriverError::Io { file, error }
    };
    let Some(source) = assembly_of(file) else { return Ok(None) };
    let assembly = work.join(format!("{index}.s"));
    let text = fs::read_to_string(&source).map_err(io(&source))?;
    let mut functions = BTreeSet::new();
    let text = standard::redirect(&with_plain_names(&text), precompiled, &mut functions);
    fs::write(&assembly, text).map_err(io(&assembly))?;
    if driver::follow(&assembly, &file.display().to_string(), Fresh::Ignored, COMPILER, work)?.is_none() {
        return Ok(None);
    }
    let object = work.join(format!("{index}.o"));
    let status = Command::new(COMPILER)
        .args(["-x", "assembler", "-Wa,--no-warn", "-c", "-o"])
        .args([&object, &assembly])
        .status()
        .map_err(|error| RuntimeError::NoCompiler { compiler: COMPILER.to_owned(), error })?;
    if !status.success() {
        return Ok(None);
    }
    let original = fs::read(file).map_err(io(file))?;
    let made = fs::read(&object).map_err(io(&object))?;
    let has_all =
        defined(&made).is_some_and(|made| defined(&original).is_some_and(|all| all.is_subset(&made)));
    if has_all {
        used.extend(functions);
    }
    Ok(has_all.then_some(object))
}

/// The assembly with names of source files in one piece. LLVM writes folder and file separately, which GNU's
/// assembler reads only in some modes.
fn with_plain_names(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        let joined = line.trim_start().strip_prefix(".file\t").and_then(|rest| {
            let [number, folder, _, file, ..] = rest.splitn(5, '"').collect::<Vec<_>>()[..] else {
                return None;
            };
            let slash = if file.starts_with('/') { "" } else { "/" };
            let folder = if slash.is_empty() { "" } else { folder };
            Some(format!("\t.file\t{number}\"{folder}{slash}{file}\""))
        });
        plain.push_str(joined.as_deref().unwrap_or(line));
        plain.push('\n');
    }
    plain
}

/// The assembly that rustc has written together with an object file or an archive: `deps/NAME.s` for
/// `deps/NAME.CRATE.HASH-cgu.0.rcgu.o` and for `deps/libNAME.rlib`.
fn assembly_of(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    if let Some(stem) = name.strip_suffix(".rlib") {
        let assembly = file.with_file_name(format!("{}.s", stem.strip_prefix("lib")?));
        return assembly.is_file().then_some(assembly);
    }
    let stem = name.strip_suffix(".rcgu.o").filter(|stem| stem.contains("-cgu."))?;
    let candidates = stem.match_indices('.').map(|(at, _)| file.with_file_name(format!("{}.s", &stem[..at])));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// Functions and variables that an object file, or the objects of a crate in an archive, offer to others.
fn defined(bytes: &[u8]) -> Option<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    let mut add = |object: &object::File<'_>| {
        let offered = object.symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
        all.extend(offered.filter_map(|symbol| symbol.name().ok().map(str::to_owned)));
    };
    if bytes.starts_with(&object::archive::MAGIC) {
        for member in ArchiveFile::parse(bytes).ok()?.members() {
            let member = member.ok()?;
            if member.name().ends_with(b".rcgu.o") {
                add(&object::File::parse(member.data(bytes).ok()?).ok()?);
            }
        }
    } else {
        add(&object::File::parse(bytes).ok()?);
    }
    Some(all)
}

/// Whether an object file is the little code by which rustc leads every allocation to the allocator.
pub fn is_allocator(object: &object::File<'_>, name: &str) -> bool {
    let functions =
        || object.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    name.trim_end_matches(')').ends_with(".rcgu.o")
        && functions().next().is_some()
        && functions().all(|symbol| symbol.name().is_ok_and(|name| name.contains("__rust")))
}

/// The arguments, with those that rustc has put into a file because there are many.
fn expanded(arguments: Vec<String>) -> io::Result<Vec<String>> {
    let mut all = Vec::new();
    for argument in arguments {
        match argument.strip_prefix('@') {
            Some(file) if Path::new(file).is_file() => all.extend(words(&fs::read_to_string(file)?)),
            _ => all.push(argument),
        }
    }
    Ok(all)
}

/// The words of a file of arguments: a backslash takes the next character as it is, quotes keep blanks.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => word.get_or_insert_default().extend(characters.next()),
            '"' | '\'' if quote.is_none_or(|open| open == c) => {
                quote = if quote.is_some() { None } else { Some(c) };
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && quote.is_none() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options() {
        let flags = flags(Path::new("/cache/runtime.o"), Path::new("/a b/palisade-linker"));
        for expected in [
            "-Cllvm-args=-force-attribute=sanitize_thread",
            "-Clink-arg=/cache/runtime.o",
            "-Clink-arg=-pthread",
            "-Clinker=/a b/palisade-linker",
        ] {
            assert!(flags.iter().any(|flag| flag == expected), "{expected} in {flags:?}");
        }
    }

    #[test]
    fn names_of_sources() {
        let check = |line: &str, expected: &str| {
            assert_eq!(with_plain_names(line), format!("{expected}\n"), "{line}");
        };
        check("\t.file\t1 \"/a b\" \"c.rs\"", "\t.file\t1 \"/a b/c.rs\"");
        check("\t.file\t2 \"/a\" \"/b/c.rs\" md5 0x12", "\t.file\t2 \"/b/c.rs\"");
        check("\t.file\t\"a.7-cgu.0\"", "\t.file\t\"a.7-cgu.0\"");
        check("\t.file\t3 \"c.rs\"", "\t.file\t3 \"c.rs\"");
    }

    #[test]
    fn files_of_arguments() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text}");
        check("-m64\n/a\\ b/c.o\n-o\nout\n", &["-m64", "/a b/c.o", "-o", "out"]);
        check("\"a b\" 'c \\\\d' \"\"", &["a b", "c \\d", ""]);
    }

    #[test]
    fn one_link_for_each_version() {
        let folder = temporary_folder("palisade-test-").expect("a folder");
        let cache = Cache::in_folder(&folder.path().join("cache")).expect("a cache");
        let first = linker(&cache, Path::new("/bin/a")).expect("a link");
        assert_eq!(linker(&cache, Path::new("/bin/a")).expect("the same link"), first);
        assert_ne!(linker(&cache, Path::new("/bin/b")).expect("another link"), first);
        assert_eq!(fs::read_link(&first).expect("a link"), Path::new("/bin/a"));
        assert!(first.file_name().is_some_and(|name| name.to_string_lossy().starts_with(LINKER)));
    }
}
