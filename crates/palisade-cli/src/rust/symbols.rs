//! Where a program starts: the functions with the names that users know, and the symbols that they have.

use palisade::Diagnostic;
use palisade::c::Roots;
use palisade::llvm::Module;
use palisade::llvm::module::SymbolKind;
use palisade::llvm::types::Type;
use std::collections::BTreeSet;

/// At most this many names are listed.
const MAX_NAMES: usize = 12;

/// Where the program starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// In `main`.
    Main,
    /// In the function with this symbol.
    Symbol(String),
    /// In functions whose paths end like this.
    Functions(Vec<String>),
}

impl Start {
    /// In the functions that the user named, or in `main`.
    pub fn of(roots: &Roots) -> Start {
        match roots {
            Roots::Main => Start::Main,
            Roots::Functions { init, threads, finally } => {
                Start::Functions(init.iter().chain(threads).chain(finally).cloned().collect())
            }
        }
    }
}

/// The path of a function or variable, with the name of the crate.
fn path(symbol: &str) -> Option<String> {
    rustc_demangle::try_demangle(symbol).ok().map(|path| format!("{path:#}"))
}

/// Without the name of the program's crate.
fn without_crate<'p>(path: &'p str, crate_name: &str) -> Option<&'p str> {
    path.strip_prefix(crate_name)?.strip_prefix("::")
}

/// Whether a path without the crate ends with these names.
fn ends_with(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

/// Gives the functions in which the program starts the names by which the translation finds them: `main`, or what the
/// user calls them.
pub fn rename(module: &mut Module, start: &Start, crate_name: &str) -> Result<(), Diagnostic> {
    let entries = entries(module, start, crate_name)?;
    for (symbol, _) in &entries {
        refuse_values(module, start, symbol)?;
    }
    let mut names: BTreeSet<String> = module.symbols.iter().map(|symbol| symbol.name.to_string()).collect();
    for symbol in module.symbols.iter_mut() {
        let entry = entries.iter().find(|(entry, _)| **entry == *symbol.name);
        match entry {
            Some((_, name)) => symbol.name = name.as_str().into(),
            // rustc's own `main` calls the program's.
            None if entries.iter().any(|(_, name)| **name == *symbol.name) => {
                symbol.name = unused(&format!("{} of rustc", symbol.name), &mut names).into();
            }
            None => {}
        }
    }
    Ok(())
}

/// Fails if a function in which the program starts takes or returns something that is not followed.
fn refuse_values(module: &Module, start: &Start, symbol: &str) -> Result<(), Diagnostic> {
    let Some(function) = module.function(symbol) else { return Ok(()) };
    let Type::Function { result, .. } = *module.types.get(function.ty) else { return Ok(()) };
    let message = match start {
        Start::Main if !function.parameters.is_empty() && path(symbol).is_some() => {
            "`main` returns a value that is not followed"
        }
        Start::Symbol(_) if *module.types.get(result) != Type::Void || !function.parameters.is_empty() => {
            "the test returns a value, and only panics count as failures"
        }
        _ => return Ok(()),
    };
    Err(Diagnostic::error("c-unsupported", message).help("let it return nothing, and panic instead"))
}

fn is_defined(module: &Module, kind: SymbolKind) -> bool {
    match kind {
        SymbolKind::Function(id) => module.functions[id].body.is_some(),
        SymbolKind::Global(id) => module.globals[id].initializer.is_some(),
        SymbolKind::Alias(_) => false,
    }
}

/// The name, or one like it that is not used yet.
fn unused(name: &str, names: &mut BTreeSet<String>) -> String {
    let mut found = name.to_owned();
    let mut count = 1;
    while !names.insert(found.clone()) {
        count += 1;
        found = format!("{name}@{count}");
    }
    found
}

/// The symbols of the functions in which the program starts, with their new names.
fn entries(module: &Module, start: &Start, crate_name: &str) -> Result<Vec<(String, String)>, Diagnostic> {
    let functions: Vec<&str> = module
        .symbols
        .iter()
        .filter(|symbol| matches!(symbol.kind, SymbolKind::Function(_)) && is_defined(module, symbol.kind))
        .map(|symbol| &*symbol.name)
        .collect();
    match start {
        Start::Symbol(symbol) => Ok(vec![(symbol.clone(), "main".to_owned())]),
        Start::Main => {
            let is_main = |symbol: &&&str| path(symbol).is_some_and(|path| ends_with(&path, "main"));
            let in_root = |symbol: &&&str| {
                path(symbol).is_some_and(|path| without_crate(&path, crate_name) == Some("main"))
            };
            // `main` may be imported from a module. A program without Rust's `main` has its own.
            let found = functions.iter().find(in_root).or_else(|| functions.iter().find(is_main));
            Ok(found.map(|symbol| ((*symbol).to_owned(), "main".to_owned())).into_iter().collect())
        }
        Start::Functions(names) => {
            let mut entries = Vec::new();
            for name in names {
                let entry = (find_function(name, &functions, crate_name)?, name.clone());
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
            Ok(entries)
        }
    }
}

/// The only function of the program whose path ends like this.
fn find_function(name: &str, functions: &[&str], crate_name: &str) -> Result<String, Diagnostic> {
    let own: Vec<(&str, String)> = functions
        .iter()
        .filter_map(|symbol| Some((*symbol, without_crate(&path(symbol)?, crate_name)?.to_owned())))
        .chain(
            functions.iter().filter(|symbol| path(symbol).is_none()).map(|name| (*name, (*name).to_owned())),
        )
        .filter(|(_, path)| !path.contains(['{', '<']))
        .collect();
    only(name, Wanted::Function, &own)
}

/// The symbols of the functions that LLVM IR defines.
pub fn defined_functions(ir: &str) -> Vec<&str> {
    let name = |line: &'_ str| -> Option<std::ops::Range<usize>> {
        let from = line.find('@')? + 1;
        let length = line[from..].find('(')?;
        Some(from..from + length)
    };
    let lines = ir.lines().filter(|line| line.starts_with("define "));
    lines.filter_map(|line| Some(line.get(name(line)?)?.trim_matches('"'))).collect()
}

/// The tests among some functions: their symbols and paths.
pub fn tests(functions: &[&str], crate_name: &str) -> Vec<(String, String)> {
    let paths: Vec<(&str, String)> =
        functions.iter().filter_map(|symbol| Some((*symbol, path(symbol)?))).collect();
    // The list of tests has a closure for each of them.
    let called: BTreeSet<&str> = paths
        .iter()
        .filter_map(|(_, path)| {
            path.strip_prefix('<')?.split_once("::{closure#0} as core::ops::function::FnOnce<()>>")
        })
        .map(|(test, _)| test)
        .collect();
    let tests = paths.iter().filter(|(_, path)| called.contains(path.as_str()));
    tests
        .filter_map(|(symbol, path)| {
            Some(((*symbol).to_owned(), without_crate(path, crate_name)?.to_owned()))
        })
        .collect()
}

/// The path of a function in the program's crate.
pub fn path_in(symbol: &str, crate_name: &str) -> Option<String> {
    without_crate(&path(symbol)?, crate_name).map(str::to_owned)
}

/// Whether a test is marked with `#[should_panic]`, as the list says that rustc adds to the text.
pub fn must_panic(expanded: &str, test: &str) -> bool {
    const KEY: &str = "ShouldPanic::";
    let entry = expanded.split_once(&format!("StaticTestName(\"{test}\")"));
    let says = entry.and_then(|(_, rest)| rest.split_once(KEY));
    says.is_none_or(|(_, answer)| !answer.starts_with("No"))
}

/// The symbol of the only test whose path ends like this.
pub fn find_test(name: &str, tests: &[(String, String)]) -> Result<String, Diagnostic> {
    let tests: Vec<(&str, String)> =
        tests.iter().map(|(symbol, path)| (symbol.as_str(), path.clone())).collect();
    only(name, Wanted::Test, &tests)
}

/// What is looked for by its name.
#[derive(Clone, Copy)]
enum Wanted {
    Function,
    Test,
}

/// The only one whose path ends with these names.
fn only(name: &str, wanted: Wanted, all: &[(&str, String)]) -> Result<String, Diagnostic> {
    let id = match wanted {
        Wanted::Function => "c-no-function",
        Wanted::Test => "no-such-test",
    };
    let what = match wanted {
        Wanted::Function => "function",
        Wanted::Test => "test",
    };
    let exact: Vec<&(&str, String)> = all.iter().filter(|(_, path)| path == name).collect();
    let found = match exact.as_slice() {
        [] => all.iter().filter(|(_, path)| ends_with(path, name)).collect(),
        _ => exact,
    };
    let list = |paths: &mut dyn Iterator<Item = &str>| {
        let paths: BTreeSet<&str> = paths.collect();
        let more = paths.len().saturating_sub(MAX_NAMES);
        let shown: Vec<String> = paths.iter().take(MAX_NAMES).map(|path| format!("`{path}`")).collect();
        match more {
            0 => shown.join(", "),
            _ => format!("{} and {more} more", shown.join(", ")),
        }
    };
    match found.as_slice() {
        [(symbol, _)] => Ok((*symbol).to_owned()),
        [] => {
            let error = Diagnostic::error(id, format!("there is no {what} `{name}`"));
            Err(match all.is_empty() {
                true => error.help(format!("the file has no {what}s")),
                false => {
                    error.help(format!("there are {}", list(&mut all.iter().map(|(_, path)| path.as_str()))))
                }
            })
        }
        several => {
            let paths = list(&mut several.iter().map(|(_, path)| path.as_str()));
            let message = format!("there are several {what}s `{name}`: {paths}");
            Err(Diagnostic::error(id, message).help("write more of its path"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_by_the_end_of_their_path() {
        let functions = [
            "_RNvCs1234_7program4push",
            "_RNvNtCs1234_7program1a3pop",
            "_RNvNtCs1234_7program1b3pop",
            "plain",
        ];
        let check = |name: &str, expected: Result<usize, &str>| match (
            find_function(name, &functions, "program"),
            expected,
        ) {
            (Ok(found), Ok(index)) => assert_eq!(found, functions[index]),
            (Err(error), Err(part)) => {
                let all = format!("{} {}", error.message, error.help.unwrap_or_default());
                assert!(all.contains(part), "{all}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        };
        check("push", Ok(0));
        check("a::pop", Ok(1));
        check("plain", Ok(3));
        check("pop", Err("several functions `pop`: `a::pop`, `b::pop`"));
        check("ush", Err("there are `a::pop`, `b::pop`, `plain`, `push`"));
    }

    #[test]
    fn tests_that_must_panic() {
        let entry = |name: &str, answer: &str| {
            format!("name: test::StaticTestName(\"{name}\"),\n should_panic: test::ShouldPanic::{answer},\n")
        };
        let text = entry("a", "No") + &entry("b::a", "Yes") + &entry("c", "YesWithMessage(\"x\")");
        assert_eq!(["a", "b::a", "c", "d"].map(|test| must_panic(&text, test)), [false, true, true, true]);
    }

    #[test]
    fn symbols_in_the_text() {
        let ir =
            "define internal void @_RNvC7program1f(ptr %0) {\ndeclare void @g()\ndefine i32 @\"a b\"() {\n";
        assert_eq!(defined_functions(ir), ["_RNvC7program1f", "a b"]);
    }
}
