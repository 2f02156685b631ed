//! Cargo packages: cargo compiles what the program depends on, and we compile the program.
//!
//! - `manifest.rs` asks cargo what the package consists of, and `choice.rs` says which part is checked.
//! - `build.rs` has cargo compile all dependencies. It calls us instead of rustc (`wrapper.rs`), so that everything is
//!   compiled against our library `std`, and keeps LLVM IR next to each crate.
//! - The last crate is not compiled by cargo: we only take down how cargo would have done it, and then do it as often
//!   as needed.
//!
//! Functions of dependencies are compiled together with the program. What stays in a dependency is its variables and
//! functions that are never inlined: [`Built::needed`] reads those that the program refers to, as a linker would.

mod arguments;
mod build;
mod choice;
mod manifest;
mod wrapper;

pub use wrapper::{Invocation, wrapped};

use super::Compiled;
use super::model::Model;
use super::rustc::{Given, Rustc};
use super::session::Session;
use super::symbols::find_test;
use arguments::Arguments;
use build::{Builder, Built};
use choice::{Target, targets};
use manifest::Manifest;
use palisade::c::COptions;
use palisade::{Diagnostic, Refused, Source};
use std::path::Path;

/// The name of the file that describes a package.
pub const MANIFEST: &str = "Cargo.toml";

/// Whether a file describes a package.
pub fn is_package(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == MANIFEST)
}

/// Compiles a part of a package with all that it depends on.
pub fn compile(
    path: &Path,
    words: &[String],
    options: &COptions,
    source: &Source,
) -> Result<Compiled, Refused> {
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(source.name(), ""), diagnostics: vec![error] };
    let arguments = Arguments::new(words).map_err(refuse)?;
    let manifest = Manifest::read(path, arguments.package.as_deref()).map_err(refuse)?;
    let targets = targets(&manifest, &arguments, options).map_err(refuse)?;
    let rustc = Rustc::find_in(&manifest.folder).map_err(refuse)?;
    let model = Model::build(&rustc).map_err(refuse)?;
    let session = Session { rustc: &rustc, model: &model, source };
    let builder = Builder { rustc: &rustc, model: &model, manifest: &manifest, arguments: &arguments };
    let (built, test) = match &options.test {
        None => (build(&builder, &targets[0][0], source)?, None),
        Some(test) => {
            let (built, symbol) = find(test, &targets, &builder, &session)?;
            (built, Some(symbol))
        }
    };
    let given = Given::Package(&built.invocation);
    let module = session.module(given, built.invocation.crate_name(), test, &options.roots)?;
    let mut modules = built.needed(&module)?;
    modules.insert(0, module);
    Ok(Compiled { modules, compiler: rustc.version.clone() })
}

fn build(builder: &Builder<'_>, target: &Target, source: &Source) -> Result<Built, Refused> {
    builder.build(target).map_err(|error| error.refused(source.name(), source))
}

/// A part of a package with its tests: their symbols and paths.
type WithTests = (Built, Vec<(String, String)>);

/// The part of a package that has the only test of a name, and the symbol of the test.
fn find(
    test: &str,
    targets: &[Vec<Target>; 2],
    builder: &Builder<'_>,
    session: &Session<'_>,
) -> Result<(Built, String), Refused> {
    let mut parts: Vec<WithTests> = Vec::new();
    let mut error = None;
    for targets in targets.iter().filter(|targets| !targets.is_empty()) {
        for target in targets {
            let built = build(builder, target, session.source)?;
            let found = session.tests(Given::Package(&built.invocation), built.invocation.crate_name())?;
            let named = found.into_iter().map(|(symbol, path)| (symbol, target.path_of(&path))).collect();
            parts.push((built, named));
        }
        match chosen(test, targets, &parts) {
            Ok(symbol) => {
                let holds = |(_, tests): &WithTests| tests.iter().any(|(other, _)| *other == symbol);
                let at = parts.iter().position(holds).expect("the test is one of them");
                return Ok((parts.swap_remove(at).0, symbol));
            }
            Err(found) => error = Some(found),
        }
    }
    Err(session.refuse(error.unwrap_or_else(|| {
        Diagnostic::error("no-such-test", format!("there is no test `{test}`"))
            .help("no part of the package has tests")
    })))
}

/// The symbol of a test. A file of tests that has only one is enough to name it.
fn chosen(test: &str, targets: &[Target], parts: &[WithTests]) -> Result<String, Diagnostic> {
    let all: Vec<(String, String)> = parts.iter().flat_map(|(_, tests)| tests).cloned().collect();
    if targets.iter().any(|target| target.is_file_of_tests(test)) {
        let begin = format!("{test}::");
        let inside: Vec<&(String, String)> =
            all.iter().filter(|(_, path)| path.starts_with(&begin)).collect();
        if let [(symbol, _)] = inside.as_slice() {
            return Ok(symbol.clone());
        }
    }
    find_test(test, &all)
}
