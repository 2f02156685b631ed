//! Source lines of instructions, from the debugging information of the program.

use crate::stream::Module;
use addr2line::Loader;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Names of instructions by their addresses.
pub struct Symbols {
    modules: Vec<Module>,
    /// The debugging information of each module, once it was requested; `None` inside if the module has none.
    loaders: Vec<Option<Option<Loader>>>,
    known: FxHashMap<u64, String>,
    /// The calls that a call site stands for: see [`RecordKind::Site`](crate::log::RecordKind::Site).
    sites: FxHashMap<u64, Vec<u64>>,
    /// By the name of a place, its other frames.
    frames: BTreeMap<String, Frames>,
    /// Files of the program are named relative to this folder.
    folder: String,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").field("modules", &self.modules).finish_non_exhaustive()
    }
}

impl Symbols {
    /// Names in these modules. Files below `folder` are named relative to it.
    pub fn new(modules: Vec<Module>, folder: &str) -> Symbols {
        let loaders = modules.iter().map(|_| None).collect();
        Symbols {
            modules,
            loaders,
            known: FxHashMap::default(),
            sites: FxHashMap::default(),
            frames: BTreeMap::new(),
            folder: folder.to_owned(),
        }
    }

    /// Names in the same program, loaded elsewhere.
    pub(crate) fn elsewhere(&self, modules: Vec<Module>) -> Symbols {
        Symbols::new(modules, &self.folder)
    }

    /// Learns what call sites stand for.
    pub fn learn(&mut self, sites: &[(u64, Vec<u64>)]) {
        for (site, calls) in sites {
            if !self.sites.contains_key(site) {
                self.sites.insert(*site, calls.clone());
            }
        }
    }

    /// The names of all frames of a place, by the name of the place, which comes first.
    pub fn frames(&self, name: &str) -> Vec<String> {
        let mut all = vec![name.to_owned()];
        if let Some(Frames { through, from }) = self.frames.get(name) {
            all.extend(through.iter().chain(from).cloned());
        }
        all
    }

    /// The other frames of all places that have some.
    pub fn all_frames(&self) -> &BTreeMap<String, Frames> {
        &self.frames
    }

    /// `FILE:LINE:COLUMN in FUNCTION` of the call that returns to an address, or as much of it as is known. If that
    /// is in a library, the name is that of the first frame outside.
    pub fn name(&mut self, place: u64) -> String {
        if let Some(name) = self.known.get(&place) {
            return name.clone();
        }
        let name = self.look_up(place);
        self.known.insert(place, name.clone());
        name
    }

    /// Whether the call that returns to an address is in libtest, which is precompiled: its copies are seen, and what
    /// orders them is not. Such a function belongs to libtest by its name, and all of its lines are those of Rust's
    /// libraries.
    pub fn is_libtest(&mut self, place: u64) -> bool {
        let return_address = self.sites.get(&place).and_then(|calls| calls.first().copied()).unwrap_or(place);
        let Some(address) = return_address.checked_sub(1) else { return false };
        let inside = |module: &Module| (module.base..module.end).contains(&address);
        let Some(index) = self.modules.iter().position(inside) else { return false };
        let module = &self.modules[index];
        let offset = address - module.base;
        let loader = self.loaders[index].get_or_insert_with(|| Loader::new(&module.path).ok());
        let Some(loader) = loader else { return false };
        loader.find_symbol(offset).is_some_and(is_of_libtest)
            && is_in_libraries(loader, offset).unwrap_or(false)
    }

    /// All frames of the call that returns to an address, innermost first. The last one is that of the function; the
    /// others were inlined into it.
    fn frames_at(&mut self, return_address: u64) -> Vec<Frame> {
        if return_address == 0 {
            return vec![Frame { name: "the end of a thread".to_owned(), code: Code::Unknown }];
        }
        // The call is before its return address.
        let address = return_address - 1;
        let unknown = |name: String| vec![Frame { name, code: Code::Unknown }];
        let inside = |module: &Module| (module.base..module.end).contains(&address);
        let Some(index) = self.modules.iter().position(inside) else {
            return unknown(format!("{address:#x}"));
        };
        let module = &self.modules[index];
        let offset = address - module.base;
        let loader = self.loaders[index].get_or_insert_with(|| Loader::new(&module.path).ok());
        let frames = loader.as_ref().and_then(|loader| frames(loader, offset, &self.folder));
        frames.unwrap_or_else(|| {
            let file = module.path.rsplit('/').next().unwrap_or("");
            let symbol = loader.as_ref().and_then(|loader| loader.find_symbol(offset));
            unknown(match symbol {
                Some(symbol) => format!("{} in {file}", addr2line::demangle_auto(symbol.into(), None)),
                None => format!("{file}+{offset:#x}"),
            })
        })
    }

    fn look_up(&mut self, place: u64) -> String {
        let calls = self.sites.get(&place).cloned().unwrap_or_else(|| vec![place]);
        let mut through = Vec::new();
        for call in calls {
            let mut frames = self.frames_at(call).into_iter();
            // An access is named by where the program is, not the library that it has called.
            let own = frames.find_map(|frame| match frame.code {
                Code::Own => Some(frame.name),
                Code::Library | Code::Unknown => {
                    through.push(frame.name);
                    None
                }
            });
            if let Some(name) = own {
                let from = frames.filter(|frame| frame.code == Code::Own).map(|frame| frame.name).collect();
                self.keep(&name, Frames { through, from });
                return name;
            }
        }
        let name = through.pop().unwrap_or_default();
        self.keep(&name, Frames { through, from: Vec::new() });
        name
    }

    /// Keeps the frames of the first place with a name.
    fn keep(&mut self, name: &str, frames: Frames) {
        if frames != Frames::default() {
            self.frames.entry(name.to_owned()).or_insert(frames);
        }
    }
}

/// A function that an instruction belongs to, after inlining.
struct Frame {
    name: String,
    code: Code,
}

/// Whose code it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    Own,
    Library,
    /// There is no source line.
    Unknown,
}

/// The frames of a place besides the one that names it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Frames {
    /// Functions of libraries that it has called, innermost first.
    pub through: Vec<String>,
    /// Functions into which it was inlined, innermost first.
    pub from: Vec<String>,
}

/// Whether a source file belongs to a compiler, the system or a standard library. Paths can contain `..`.
pub(crate) fn is_library(file: &str) -> bool {
    let mut parts: Vec<&str> = Vec::new();
    for part in file.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    let path = format!("/{}", parts.join("/"));
    let is_rust = path.starts_with("/rustc/") || path.contains("/lib/rustlib/src/rust/library/");
    let is_below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let is_of_compiler = ["/include/c++/", "/lib/gcc/", "/lib/clang/"];
    file.starts_with('/')
        && (is_rust
            || is_below(&["/usr/include/", "/usr/local/include/", "/usr/lib/"])
            || is_of_compiler.iter().any(|folder| path.contains(folder)))
}

/// Whether a mangled name mentions the crate `test`, as the functions of libtest and those compiled for it do.
fn is_of_libtest(symbol: &str) -> bool {
    symbol.starts_with("_R")
        && symbol.match_indices("_4test").any(|(at, _)| {
            let before = symbol[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric());
            symbol[before.len()..at].contains("Cs")
        })
}

/// Whether an address has lines, and all of them are in Rust's libraries.
fn is_in_libraries(loader: &Loader, address: u64) -> Option<bool> {
    let mut frames = loader.find_frames(address).ok()?;
    let mut is_known = false;
    while let Some(frame) = frames.next().ok()? {
        if !frame.location?.file.is_some_and(is_library) {
            return Some(false);
        }
        is_known = true;
    }
    Some(is_known)
}

/// The frames of an address. `None` if it has no source line.
fn frames(loader: &Loader, address: u64, folder: &str) -> Option<Vec<Frame>> {
    let mut frames = loader.find_frames(address).ok()?;
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let Some(location) = frame.location else { continue };
        let (Some(file), Some(line)) = (location.file, location.line.filter(|&line| line > 0)) else {
            continue;
        };
        let code = if is_library(file) { Code::Library } else { Code::Own };
        let file = file.strip_prefix(folder).map_or(file, |rest| rest.trim_start_matches('/'));
        let place = match location.column {
            Some(column) if column > 0 => format!("{file}:{line}:{column}"),
            _ => format!("{file}:{line}"),
        };
        let function =
            frame.function.as_ref().and_then(|function| Some(function.demangle().ok()?.into_owned()));
        let name = match function {
            Some(function) => format!("{place} in {function}"),
            None => place,
        };
        found.push(Frame { name, code });
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_libraries() {
        for (file, expected) in [
            ("/usr/include/c++/13/bits/atomic_base.h", true),
            ("/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/atomic", true),
            ("/usr/lib/llvm-14/lib/clang/14.0.6/include/stdatomic.h", true),
            ("/opt/gcc/include/c++/14/mutex", true),
            ("/rustc/abc/library/core/src/sync/atomic.rs", true),
            ("/home/me/include/queue.h", false),
            ("/usr/src/queue.c", false),
            ("include/c++/queue.h", false),
            ("/usr/include/../src/queue.c", false),
        ] {
            assert_eq!(is_library(file), expected, "{file}");
        }
    }

    #[test]
    fn functions_of_libtest() {
        let send = "_RNvMs_NtNtCsjrHSEGnQ3l9_3std4sync4mpmcINtB4_6SenderNtNtCs3mSbOeLENLV_4test5event13CompletedTestE4sendBV_";
        let instantiated = "_RINvMNtCsgEmfK2I1SDS_4core3stre12trim_matchesECs3mSbOeLENLV_4test";
        for (symbol, expected) in [
            (send, true),
            (instantiated, true),
            ("_RNvNtCs1111111_5flags5tests_4test", false),
            ("_RNvCs1111111_5flags4test", false),
            ("_ZN4test8run_test17h0E", false),
            ("main", false),
        ] {
            assert_eq!(is_of_libtest(symbol), expected, "{symbol}");
        }
    }
}
