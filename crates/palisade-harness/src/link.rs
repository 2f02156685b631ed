//! Linking: what really becomes part of a program, and what of it cannot be followed.
//!
//! The linker lists the files that it uses, including members of archives. For each of them there are three cases:
//! - All of its code has our [mark](crate::mark) and is followed.
//! - It belongs to the compiler or to the libraries of C, C++ and Rust. The runtime stands between these and
//!   the program.
//! - Otherwise its code is not followed. Its name is put into the program, and `palisade run` reports it.
//!
//! Shared libraries are judged when the program starts, since more of them may be loaded than were linked.
//!
//! Functions that the program calls in the libraries of C and C++ are sorted by [a table](crate::functions).
//! A function that is neither followed nor harmless gets a wrapper, which reports the call and then makes it.
//!
//! What was found is known only after linking. If there is anything to put into the program, it is linked
//! again.

use crate::functions;
use crate::mark::{self, Code};
use crate::standard::{self, Does};
use crate::{runtime, rust};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What to link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The arguments of the compiler.
    pub arguments: Vec<String>,
    /// The file that is made.
    pub output: PathBuf,
    /// Whether a shared library is made.
    pub is_library: bool,
    /// What intermediate files were made from, for messages.
    pub names: Vec<(PathBuf, String)>,
    /// Functions of Rust's standard library to which objects refer through [ours](crate::standard).
    pub standard: BTreeSet<standard::Function>,
}

/// How linking ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Linked {
    /// Whether the compiler succeeded.
    pub success: bool,
    /// Code that is not followed, by the names of the files.
    pub not_compiled: Vec<String>,
    /// What the linker printed, apart from the list of its files.
    pub said: String,
}

/// Why something was not linked, apart from the compiler's own messages.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The compiler cannot be started.
    #[error("the compiler `{compiler}` cannot be started: {error}")]
    NoCompiler {
        /// Its name.
        compiler: String,
        /// The error.
        error: io::Error,
    },
    /// A file cannot be read or written.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// The error.
        error: io::Error,
    },
    /// A file that was linked cannot be read.
    #[error("{file}: what was linked cannot be read: {error}")]
    Object {
        /// The file.
        file: String,
        /// The error.
        error: object::Error,
    },
}

/// Parts of programs that compilers and the libraries of C, C++ and Rust bring with them.
const OWN: &[&str] = &[
    "crt1.o",
    "Scrt1.o",
    "gcrt1.o",
    "grcrt1.o",
    "rcrt1.o",
    "Mcrt1.o",
    "crti.o",
    "crtn.o",
    "libc_nonshared.a",
    "libpthread_nonshared.a",
    "libssp_nonshared.a",
    "libstdc++_nonshared.a",
    "libgcc.a",
    "libgcc_eh.a",
    "libatomic.a",
    "libstdc++.a",
    "libsupc++.a",
    "libstdc++fs.a",
    "libc++.a",
    "libc++abi.a",
    "libc++experimental.a",
];

/// Whether a file comes with the compiler. Files that users name themselves are mostly relative.
fn is_own(file: &Path) -> bool {
    let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let begins = |prefix: &str| name.starts_with(prefix) && name.ends_with(".o");
    let is_rust = name.ends_with(".rlib") && file.components().any(|part| part.as_os_str() == "rustlib");
    file.is_absolute()
        && (OWN.contains(&name.as_str())
            || begins("crtbegin")
            || begins("crtend")
            || begins("crtfastmath")
            || begins("crtprec")
            || name.starts_with("libclang_rt.builtins")
            || name.starts_with("clang_rt.crt")
            || is_rust)
}

/// A file that the linker used.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Input {
    file: PathBuf,
    /// The member, if the file is an archive.
    member: Option<String>,
}

/// A line of the linker's list: a file, or an archive with a member as different linkers write it.
fn input(line: &str) -> Option<Input> {
    let is_there = |file: &str| Path::new(file).is_file();
    if is_there(line) {
        return Some(Input { file: line.into(), member: None });
    }
    if let Some(rest) = line.strip_prefix('(') {
        let mut ends = rest.match_indices(')').map(|(at, _)| at);
        let end = ends.find(|&end| is_there(&rest[..end]))?;
        return Some(Input { file: rest[..end].into(), member: Some(rest[end + 1..].to_owned()) });
    }
    let inner = line.strip_suffix(')')?;
    let mut begins = inner.match_indices('(').map(|(at, _)| at);
    let begin = begins.find(|&begin| is_there(&inner[..begin]))?;
    Some(Input { file: inner[..begin].into(), member: Some(inner[begin + 1..].to_owned()) })
}

/// What is put into a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct NotFollowed {
    /// Code that is not followed.
    not_compiled: BTreeSet<String>,
    /// Functions to wrap.
    functions: BTreeSet<String>,
}

/// Links. Intermediate files are in `work`.
pub fn link(compiler: &str, link: &Link, work: &Path) -> Result<Linked, LinkError> {
    let start = |command: &mut Command| {
        let started = command.output();
        started.map_err(|error| LinkError::NoCompiler { compiler: compiler.to_owned(), error })
    };
    let checked = work.join("checked.o");
    let assembly = work.join("checked.s");
    let assemble = |found: &NotFollowed| -> Result<bool, LinkError> {
        fs::write(&assembly, contents(found, link)).map_err(io_error(&assembly))?;
        let mut command = Command::new(compiler);
        command.args(["-x", "assembler", "-c", "-o"]).args([&checked, &assembly]);
        Ok(start(command.stderr(Stdio::inherit()))?.status.success())
    };
    let mut linked = Linked::default();
    if !assemble(&NotFollowed::default())? {
        return Ok(linked);
    }
    let mut command = Command::new(compiler);
    // It refers to functions in archives, so it comes before them.
    command.arg(&checked).args(&link.arguments).arg("-Wl,-t,-t").stderr(Stdio::inherit());
    let output = start(&mut command)?;
    if !output.status.success() {
        return Ok(linked);
    }
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut inputs = BTreeSet::new();
    for line in list.lines() {
        match input(line) {
            Some(input) => _ = inputs.insert(input),
            None => linked.said.push_str(&format!("{line}\n")),
        }
    }
    inputs.retain(|input| input.file != checked);
    let found = look(&inputs, link)?;
    linked.not_compiled = found.not_compiled.iter().cloned().collect();
    if found != NotFollowed::default() {
        if !assemble(&found)? {
            return Ok(linked);
        }
        let wraps = found.functions.iter().map(|name| format!("-Wl,--wrap={name}"));
        let mut command = Command::new(compiler);
        command.arg(&checked).args(&link.arguments).args(wraps);
        let status = command.status();
        let status =
            status.map_err(|error| LinkError::NoCompiler { compiler: compiler.to_owned(), error })?;
        linked.success = status.success();
        return Ok(linked);
    }
    linked.success = true;
    Ok(linked)
}

fn io_error(file: &Path) -> impl FnOnce(io::Error) -> LinkError {
    let file = file.display().to_string();
    move |error| LinkError::Io { file, error }
}

/// What the linked file contains that is not followed.
fn look(inputs: &BTreeSet<Input>, link: &Link) -> Result<NotFollowed, LinkError> {
    let mut found = NotFollowed::default();
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut elsewhere: BTreeSet<String> = BTreeSet::new();
    let mut files: BTreeMap<&Path, Vec<Option<&str>>> = BTreeMap::new();
    for input in inputs {
        files.entry(&input.file).or_default().push(input.member.as_deref());
    }
    for (file, members) in files {
        if is_own(file) {
            continue;
        }
        let bytes = fs::read(file).map_err(io_error(file))?;
        let shown = || {
            let name = link.names.iter().find(|(made, _)| made == file).map(|(_, name)| name.clone());
            name.unwrap_or_else(|| file.display().to_string())
        };
        let object_error = |error| LinkError::Object { file: shown(), error };
        let mut judge = |object: &object::File<'_>, name: String| match mark::code(object) {
            Code::None => {}
            Code::Followed => used.extend(undefined(object)),
            Code::Other if runtime::is_runtime(object) || rust::is_allocator(object, &name) => {}
            Code::Other => _ = found.not_compiled.insert(name),
        };
        if bytes.starts_with(&object::archive::MAGIC) || bytes.starts_with(&object::archive::THIN_MAGIC) {
            let archive = ArchiveFile::parse(bytes.as_slice()).map_err(object_error)?;
            for member in archive.members() {
                let member = member.map_err(object_error)?;
                let name = String::from_utf8_lossy(member.name()).into_owned();
                let base = |name: &str| name.rsplit('/').next().unwrap_or("").to_owned();
                if !members.iter().flatten().any(|used| base(used) == base(&name)) {
                    continue;
                }
                let name = format!("{}({name})", shown());
                if member.is_thin() {
                    let path = file.parent().unwrap_or(Path::new("")).join(base_path(member.name()));
                    let bytes = fs::read(&path).map_err(io_error(&path))?;
                    judge(&object::File::parse(bytes.as_slice()).map_err(object_error)?, name);
                } else {
                    let data = member.data(bytes.as_slice()).map_err(object_error)?;
                    judge(&object::File::parse(data).map_err(object_error)?, name);
                }
            }
        } else if bytes.starts_with(b"\x7fELF") {
            let object = object::File::parse(bytes.as_slice()).map_err(object_error)?;
            match object.kind() {
                object::ObjectKind::Dynamic => {
                    if !functions::is_system_library(file) {
                        elsewhere.extend(exported(&object));
                    }
                }
                _ => judge(&object, shown()),
            }
        } else if bytes.starts_with(b"BC\xc0\xde") {
            // Code that the linker compiles itself.
            found.not_compiled.insert(shown());
        }
    }
    let bytes = fs::read(&link.output).map_err(io_error(&link.output))?;
    let output = object::File::parse(bytes.as_slice())
        .map_err(|error| LinkError::Object { file: link.output.display().to_string(), error })?;
    let imported = output.dynamic_symbols().filter(|symbol| symbol.is_undefined());
    for symbol in imported.filter(|symbol| symbol.kind() == SymbolKind::Text) {
        let Ok(name) = symbol.name() else { continue };
        if used.contains(name) && !elsewhere.contains(name) && !functions::is_harmless(name) {
            found.functions.insert(name.to_owned());
        }
    }
    Ok(found)
}

fn base_path(name: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(name).into_owned())
}

/// Symbols that an object file needs from others.
fn undefined(object: &object::File<'_>) -> Vec<String> {
    let needed = object.symbols().filter(|symbol| symbol.is_undefined());
    needed.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
}

/// Symbols that a shared library defines.
fn exported(object: &object::File<'_>) -> Vec<String> {
    let defined = object.dynamic_symbols().filter(|symbol| symbol.is_definition());
    defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
}

/// What is linked into the program, as assembly. `runtime/library.c` reads it.
fn contents(found: &NotFollowed, link: &Link) -> String {
    let mut text = String::new();
    let mut put = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("writing to a string");
    let bytes = |name: &str| name.bytes().map(|byte| format!("{byte},")).collect::<String>() + "0";
    // Each function with what it touches. An empty text leaves that to the runtime.
    let c = found.functions.iter().map(|name| (name.as_str(), ""));
    let rust = link.standard.iter().map(|function| match &function.does {
        Does::Touches(what) => (function.name.as_str(), what.as_str()),
        _ => (function.name.as_str(), ""),
    });
    let functions: Vec<(&str, &str)> = c.chain(rust).collect();
    put(format_args!("\t.section .rodata\n\t.globl palisade_not_compiled\n\t.hidden palisade_not_compiled"));
    put(format_args!("palisade_not_compiled:"));
    for name in &found.not_compiled {
        put(format_args!("\t.byte {}", bytes(name)));
    }
    put(format_args!("\t.byte 0"));
    for (number, (name, touches)) in functions.iter().enumerate() {
        put(format_args!(".Lname{number}:\n\t.byte {},{}", bytes(name), bytes(touches)));
    }
    put(format_args!("\t.section .data.rel.ro,\"aw\",@progbits\n\t.balign 8"));
    put(format_args!("\t.globl palisade_calls\n\t.hidden palisade_calls\npalisade_calls:"));
    for number in 0..functions.len() {
        put(format_args!("\t.quad .Lname{number}"));
    }
    put(format_args!("\t.quad 0\n\t.text"));
    for (number, name) in found.functions.iter().enumerate() {
        if functions::REPLACED.contains(&name.as_str()) {
            put(format_args!("\t.globl __wrap_{name}\n\t.hidden __wrap_{name}\n__wrap_{name}:"));
            put(format_args!("\tjmp *palisade_{name}@GOTPCREL(%rip)"));
            continue;
        }
        // All registers are preserved: the number of vector arguments is in %al.
        put(format_args!(
            "\t.globl __wrap_{name}\n\t.hidden __wrap_{name}\n\t.type __wrap_{name}, @function\n__wrap_{name}:"
        ));
        put(format_args!("\tpushq %rax\n\tleaq .Lname{number}(%rip), %rax\n\txchgq %rax, (%rsp)"));
        put(format_args!("\tcall *palisade_call@GOTPCREL(%rip)\n\tleaq 8(%rsp), %rsp"));
        put(format_args!("\tjmp *__real_{name}@GOTPCREL(%rip)\n\t.size __wrap_{name}, .-__wrap_{name}"));
    }
    for (number, function) in (found.functions.len()..).zip(&link.standard) {
        let (ours, symbol) = (standard::ours(&function.symbol), standard::quoted(&function.symbol));
        let ours = standard::quoted(&ours);
        put(format_args!("\t.globl {ours}\n\t.hidden {ours}\n\t.type {ours}, @function\n{ours}:"));
        let around = match &function.does {
            Does::Waits(register) => Some((*register, "palisade_wait_begins", "palisade_wait_ends")),
            Does::Takes => Some(("rdi", "palisade_take_begins", "palisade_wait_ends")),
            Does::Once => Some(("rdi", "palisade_once_begins", "palisade_once_ends")),
            Does::Enters => Some(("rdi", "palisade_scope_enters", "palisade_scope_entered")),
            Does::Leaves => Some(("rdi", "palisade_scope_leaves", "palisade_scope_left")),
            _ => None,
        };
        if let Some((register, begins, ends)) = around {
            // The object and its value before the call are kept for the end. None of these functions has
            // arguments on the stack.
            put(format_args!("\t.cfi_startproc\n\tsubq $24, %rsp\n\t.cfi_adjust_cfa_offset 24"));
            put(format_args!("\tmovq %{register}, (%rsp)\n\tmovl (%{register}), %eax\n\tmovq %rax, 8(%rsp)"));
            put(format_args!("\tcall *{begins}@GOTPCREL(%rip)\n\tcall *{symbol}@GOTPCREL(%rip)"));
            put(format_args!(
                "\tcall *{ends}@GOTPCREL(%rip)\n\taddq $24, %rsp\n\t.cfi_adjust_cfa_offset -24"
            ));
            put(format_args!("\tret\n\t.cfi_endproc\n\t.size {ours}, .-{ours}"));
            continue;
        }
        put(format_args!("\tpushq %rax\n\tleaq .Lname{number}(%rip), %rax\n\txchgq %rax, (%rsp)"));
        put(format_args!("\tcall *palisade_call@GOTPCREL(%rip)\n\tleaq 8(%rsp), %rsp"));
        put(format_args!("\tjmp *{symbol}@GOTPCREL(%rip)\n\t.size {ours}, .-{ours}"));
    }
    if link.is_library {
        // The library may be loaded by a program without the runtime.
        put(format_args!("\t.weak palisade_library\n.Lregister:"));
        put(format_args!("\tmovq palisade_library@GOTPCREL(%rip), %rax\n\ttestq %rax, %rax\n\tje 1f"));
        put(format_args!("\tleaq palisade_not_compiled(%rip), %rdi\n\tleaq palisade_calls(%rip), %rsi"));
        put(format_args!("\tjmp *%rax\n1:\tret"));
        put(format_args!("\t.section .init_array,\"aw\",@init_array\n\t.balign 8\n\t.quad .Lregister"));
    }
    put(format_args!("\t.section .note.GNU-stack,\"\",@progbits"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_linker() {
        let folder = crate::cache::temporary_folder("palisade-test-").expect("a folder");
        let archive = folder.path().join("lib (1).a");
        fs::write(&archive, "").expect("a file can be written");
        let archive = archive.display().to_string();
        let check = |line: &str, member: Option<&str>| {
            let expected = Input { file: archive.clone().into(), member: member.map(str::to_owned) };
            assert_eq!(input(line), Some(expected), "{line}");
        };
        check(&archive, None);
        check(&format!("({archive})a b.o"), Some("a b.o"));
        check(&format!("{archive}(a (b).o)"), Some("a (b).o"));
        assert_eq!(input("/usr/bin/ld: mode elf_x86_64"), None);
        assert_eq!(input("attempt to open libx.a succeeded"), None);
    }

    #[test]
    fn own_files() {
        let check = |file: &str, expected: bool| assert_eq!(is_own(Path::new(file)), expected, "{file}");
        check("/usr/lib/gcc/x86_64-linux-gnu/12/crtbeginS.o", true);
        check("/usr/lib/x86_64-linux-gnu/libc_nonshared.a", true);
        check("/r/lib/rustlib/x86_64-unknown-linux-gnu/lib/libstd-1.rlib", true);
        check("/home/me/target/deps/libstd-1.rlib", false);
        check("crti.o", false);
        check("/home/me/crt.o", false);
    }
}
