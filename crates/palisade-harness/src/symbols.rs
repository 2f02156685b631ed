//! Source lines of instructions, from the debugging information of the program.

use crate::stream::Module;
use addr2line::Loader;
use rustc_hash::FxHashMap;

/// Names of instructions by their addresses.
pub struct Symbols {
    modules: Vec<Module>,
    /// The debugging information of each module, once it was requested; `None` inside if the module has none.
    loaders: Vec<Option<Option<Loader>>>,
    known: FxHashMap<u64, String>,
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
        Symbols { modules, loaders, known: FxHashMap::default(), folder: folder.to_owned() }
    }

    /// `FILE:LINE:COLUMN in FUNCTION` of the call that returns to an address, or as much of it as is known.
    pub fn name(&mut self, return_address: u64) -> String {
        if let Some(name) = self.known.get(&return_address) {
            return name.clone();
        }
        let name = self.look_up(return_address);
        self.known.insert(return_address, name.clone());
        name
    }

    /// Whether the call that returns to an address is in libtest, which is precompiled: its copies are seen, and what
    /// orders them is not. Such a function belongs to libtest by its name, and all of its lines are those of Rust's
    /// libraries.
    pub fn is_libtest(&mut self, return_address: u64) -> bool {
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

    fn look_up(&mut self, return_address: u64) -> String {
        if return_address == 0 {
            return "the end of a thread".to_owned();
        }
        // The call is before its return address.
        let address = return_address - 1;
        let inside = |module: &Module| (module.base..module.end).contains(&address);
        let Some(index) = self.modules.iter().position(inside) else {
            return format!("{address:#x}");
        };
        let module = &self.modules[index];
        let offset = address - module.base;
        let loader = self.loaders[index].get_or_insert_with(|| Loader::new(&module.path).ok());
        loader.as_ref().and_then(|loader| place(loader, offset, &self.folder)).unwrap_or_else(|| {
            let file = module.path.rsplit('/').next().unwrap_or("");
            let symbol = loader.as_ref().and_then(|loader| loader.find_symbol(offset));
            match symbol {
                Some(symbol) => format!("{} in {file}", addr2line::demangle_auto(symbol.into(), None)),
                None => format!("{file}+{offset:#x}"),
            }
        })
    }
}

/// Whether a file belongs to Rust's standard library. Accesses there are named by where the program called
/// the library, if that is known.
fn is_library(file: &str) -> bool {
    file.starts_with("/rustc/") || file.contains("/lib/rustlib/src/rust/library/")
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

/// The innermost place of an address, which is where the access is written. The function is the one that the
/// access was compiled into.
fn place(loader: &Loader, address: u64, folder: &str) -> Option<String> {
    let mut frames = loader.find_frames(address).ok()?;
    let mut frame = frames.next().ok()??;
    while frame.location.as_ref().and_then(|location| location.file).is_some_and(is_library) {
        match frames.next() {
            Ok(Some(outer)) => frame = outer,
            _ => break,
        }
    }
    let location = frame.location?;
    let file = location.file?;
    let file = file.strip_prefix(folder).map_or(file, |rest| rest.trim_start_matches('/'));
    let line = location.line.filter(|&line| line > 0)?;
    let place = match location.column {
        Some(column) if column > 0 => format!("{file}:{line}:{column}"),
        _ => format!("{file}:{line}"),
    };
    let function = frame.function.as_ref().and_then(|function| Some(function.demangle().ok()?.into_owned()));
    Some(match function {
        Some(function) => format!("{place} in {function}"),
        None => place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
