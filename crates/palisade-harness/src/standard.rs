//! Precompiled functions of Rust's standard library, and what they do to the program's memory.
//!
//! Most of the standard library is generic or inline and is compiled with the program. The rest comes as machine
//! code without calls of the runtime. Where the program refers to such a function, by a call or by its address,
//! it refers to a small function of ours instead, which reports what the function touches and then jumps to it.
//! References inside the standard library stay as they are.
//!
//! - Some functions are [harmless](Does::Nothing): they touch only data of the library, or only memory that
//!   the program's own code accesses as well, before and after the call. Locks, channels and threads are such
//!   cases: their fast paths are inline, and everything else they do is a locked instruction or a system call.
//! - For some it is known what they [touch](Does::Touches). The runtime follows these accesses.
//! - Some order what threads do: their beginning and end become events.
//! - Calls of all others are reported while there are other threads.

use crate::asm;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol, SymbolKind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A precompiled function that the program uses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Function {
    /// Its name in object files.
    pub symbol: String,
    /// Its name for people.
    pub name: String,
    /// What our function does.
    pub does: Does,
}

/// What a function does to memory of the program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Does {
    /// Nothing that has to be followed.
    Nothing,
    /// It touches this, as `runtime/library.c` reads it.
    Touches(String),
    /// It gives up a lock and takes it again, or waits for others in some other way. The object is the argument
    /// in this register.
    Waits(&'static str),
    /// It takes a lock that another thread has. The lock is the first argument.
    Takes,
    /// It runs something once, or waits until another thread has done so.
    Once,
    /// It counts a thread that `thread::scope` waits for. The scope is the first argument.
    Enters,
    /// It counts down when such a thread has ended.
    Leaves,
    /// It is not known what it does.
    Unknown,
}

/// The prefix of our functions.
const PREFIX: &str = "palisade_std.";

/// The functions in the precompiled part of the standard library.
pub fn precompiled<'a>(arguments: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let is_library = |word: &&str| {
        word.ends_with(".rlib") && Path::new(word).components().any(|part| part.as_os_str() == "rustlib")
    };
    let mut all = BTreeSet::new();
    for word in arguments.filter(is_library) {
        // A file that cannot be read is the linker's problem.
        let Ok(bytes) = fs::read(word) else { continue };
        let Ok(archive) = ArchiveFile::parse(bytes.as_slice()) else { continue };
        let members = archive.members().flatten().filter_map(|member| member.data(bytes.as_slice()).ok());
        for object in members.filter_map(|data| object::File::parse(data).ok()) {
            let is_function = |symbol: &object::Symbol<'_, '_>| {
                symbol.is_definition() && symbol.is_global() && symbol.kind() == SymbolKind::Text
            };
            let functions = object.symbols().filter(is_function);
            all.extend(functions.filter_map(|symbol| symbol.name().ok().map(str::to_owned)));
        }
    }
    all
}

/// The assembly of a crate with references to our functions. `found` receives the functions that have to be
/// there.
pub fn redirect(text: &str, precompiled: &BTreeSet<String>, found: &mut BTreeSet<Function>) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._$".contains(c);
    // What the crate defines itself is followed.
    let own: BTreeSet<&str> = text.lines().filter_map(|line| Some(asm::label(line)?.0)).collect();
    let mut redirected = String::with_capacity(text.len() + text.len() / 16);
    for line in text.lines() {
        // Names in texts are for debuggers.
        let mut rest = line;
        let is_text = matches!(asm::split(line).0, ".ascii" | ".asciz" | ".string");
        while let Some(at) = rest.find(is_name).filter(|_| !is_text) {
            redirected.push_str(&rest[..at]);
            let end = rest[at..].find(|c| !is_name(c)).map_or(rest.len(), |length| at + length);
            let word = &rest[at..end];
            rest = &rest[end..];
            if word.starts_with('_')
                && precompiled.contains(word)
                && !own.contains(word)
                && let Some(function) = function(word)
            {
                redirected.push_str(PREFIX);
                found.insert(function);
            }
            redirected.push_str(word);
        }
        redirected.push_str(rest);
        redirected.push('\n');
    }
    redirected
}

/// Our function for one of the library.
pub fn ours(symbol: &str) -> String {
    format!("{PREFIX}{symbol}")
}

/// What has to be said about a function; `None` if there is nothing to say.
fn function(symbol: &str) -> Option<Function> {
    let name = addr2line::demangle(symbol, addr2line::gimli::DW_LANG_Rust)?;
    let does = does(&name);
    (does != Does::Nothing).then(|| Function { symbol: symbol.to_owned(), name, does })
}

fn does(name: &str) -> Does {
    if let Some(size) = formatted(name) {
        return Does::Touches(format!("r{size}"));
    }
    if let Some((_, does)) = SYNCHRONISING.iter().find(|(known, _)| *known == name) {
        return does.clone();
    }
    if let Some((_, touches)) = KNOWN.iter().find(|(known, _)| *known == name) {
        return Does::Touches((*touches).to_owned());
    }
    if HARMLESS.iter().any(|prefix| name.starts_with(prefix)) { Does::Nothing } else { Does::Unknown }
}

/// The size of a number, if this is a function that formats one.
fn formatted(name: &str) -> Option<u32> {
    let (kind, how) = name.strip_prefix('<')?.split_once(" as core::fmt::")?;
    if !matches!(
        how.strip_suffix(">::fmt")?,
        "Display" | "Debug" | "LowerHex" | "UpperHex" | "Binary" | "Octal" | "LowerExp" | "UpperExp"
    ) {
        return None;
    }
    Some(match kind {
        "u8" | "i8" | "bool" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" | "f32" | "char" => 4,
        "u64" | "i64" | "f64" | "usize" | "isize" => 8,
        "u128" | "i128" => 16,
        _ => return None,
    })
}

/// Functions that are known in detail. An answer that does not fit into two registers is written to memory whose
/// address is the first argument.
const KNOWN: &[(&str, &str)] = &[
    ("core::str::converts::from_utf8", "-R2"),
    ("<str as core::fmt::Display>::fmt", "R1"),
    ("<str as core::fmt::Debug>::fmt", "R1"),
    ("<&str as core::fmt::Display>::fmt", "P"),
    ("<&str as core::fmt::Debug>::fmt", "P"),
    ("<core::fmt::Formatter>::write_str", "-R2"),
    ("<core::fmt::Formatter>::pad", "-R2"),
    ("<[u8]>::starts_with", "R1-R3"),
    ("<std::sync::poison::condvar::Condvar>::notify_one", "E"),
    ("<std::sync::poison::condvar::Condvar>::notify_all", "E"),
    ("<std::sys::sync::condvar::futex::Condvar>::notify_one", "E"),
    ("<std::sys::sync::condvar::futex::Condvar>::notify_all", "E"),
    ("<std::thread::thread::Thread>::park", "E"),
    ("<std::thread::thread::Thread>::park_timeout", "E"),
    ("<std::thread::thread::Thread>::unpark", "E"),
    ("std::thread::functions::park", "E"),
    ("std::thread::functions::park_timeout", "E"),
];

/// Functions that order what threads do, and that are not inline. Without them, races would be reported that are
/// none. Each of them is at least one locked instruction; `Once` checks that.
const SYNCHRONISING: &[(&str, Does)] = &[
    ("<std::sys::sync::condvar::futex::Condvar>::wait", Does::Waits("rsi")),
    ("<std::sys::sync::condvar::futex::Condvar>::wait_timeout", Does::Waits("rsi")),
    ("<std::sync::barrier::Barrier>::wait", Does::Waits("rdi")),
    ("<std::sys::sync::rwlock::futex::RwLock>::read_contended", Does::Takes),
    ("<std::sys::sync::rwlock::futex::RwLock>::write_contended", Does::Takes),
    ("<std::sys::sync::once::futex::Once>::call", Does::Once),
    ("<std::sys::sync::once::futex::Once>::wait", Does::Once),
    ("<std::thread::scoped::ScopeData>::increment_num_running_threads", Does::Enters),
    ("<std::thread::scoped::ScopeData>::decrement_num_running_threads", Does::Leaves),
];

const HARMLESS: &[&str] = &[
    // Errors.
    "core::panicking::",
    "core::option::",
    "core::result::",
    "core::cell::",
    "core::slice::index::",
    "core::str::slice_error_fail",
    "std::panicking::",
    "std::panic::",
    "std::process::abort",
    "std::process::exit",
    "<alloc::vec::Vec<_, _>>::",
    "alloc::alloc::handle_alloc_error",
    // Formatting calls functions of the program for what is formatted.
    "core::fmt::write",
    "<core::fmt::builders::",
    "<core::fmt::Formatter>::debug_",
    "<core::fmt::Formatter>::write_fmt",
    "<core::fmt::Formatter>::pad_integral",
    "alloc::fmt::format::",
    "std::io::stdio::_print",
    "std::io::stdio::_eprint",
    "<u64>::_fmt",
    "<u32>::_fmt",
    "<u16>::_fmt",
    "<u8>::_fmt",
    "<usize>::_fmt",
    // Allocation, and what it does to the ends of vectors: the program looks at them before and after.
    "__rustc::",
    "alloc::alloc::",
    "alloc::raw_vec::",
    "<alloc::raw_vec::",
    "<alloc::vec::Vec<u8>>::reserve",
    "<alloc::vec::Vec<u8> as core::ops::drop::Drop>::drop",
    "<alloc::sync::Arc<",
    "core::ptr::drop_in_place::<",
    // These call `memcpy`, which is followed.
    "core::slice::copy_from_slice_impl",
    // Threads and locks.
    "std::thread::",
    "<std::thread::",
    "std::sync::",
    "<std::sync::",
    "std::sys::sync::",
    "<std::sys::sync::",
    "std::sys::thread",
    "<std::sys::thread",
    "std::sys::pal::unix::futex::",
    "std::sys::random::",
    // The library's own state.
    "std::rt::",
    "std::env::args",
    "<std::env::Args as ",
    "<std::time::",
    "std::time::",
    "std::alloc::",
    "std_detect::",
];

/// A name without characters that our assembly gives a meaning to.
pub fn quoted(symbol: &str) -> Cow<'_, str> {
    if symbol.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c)) {
        symbol.into()
    } else {
        format!("\"{symbol}\"").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let check = |name: &str, expected: Does| assert_eq!(does(name), expected, "{name}");
        check("<u32 as core::fmt::Display>::fmt", Does::Touches("r4".into()));
        check("<f64 as core::fmt::LowerExp>::fmt", Does::Touches("r8".into()));
        check("<alloc::string::String as core::fmt::Display>::fmt", Does::Unknown);
        check("core::str::converts::from_utf8", Does::Touches("-R2".into()));
        check("core::str::lossy::utf8_chunks", Does::Unknown);
        check("core::panicking::panic_fmt", Does::Nothing);
        check("<std::sys::sync::once::futex::Once>::call", Does::Once);
        check("<std::sys::sync::mutex::futex::Mutex>::lock_contended", Does::Nothing);
    }

    #[test]
    fn references() {
        let symbol = "_RNvNtNtCs1_4core3str8converts9from_utf8";
        let precompiled = BTreeSet::from([symbol.to_owned(), "_RNvCs1_4core9panicking".to_owned()]);
        let mut found = BTreeSet::new();
        let rest = format!("\tcallq\t{symbol}x@PLT\n\t.asciz\t\"{symbol}\"\n");
        let text = format!("\tcallq\t*{symbol}@GOTPCREL(%rip)\n\t.quad\t{symbol}\n{rest}");
        let redirected = redirect(&text, &precompiled, &mut found);
        let ours = ours(symbol);
        let expected = format!("\tcallq\t*{ours}@GOTPCREL(%rip)\n\t.quad\t{ours}\n{rest}");
        assert_eq!(redirected, expected);
        let found: Vec<&str> = found.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(found, ["core::str::converts::from_utf8"]);
    }
}
