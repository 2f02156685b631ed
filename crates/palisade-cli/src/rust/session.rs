//! Compiling a program: its tests are listed, and then it is compiled as it is read.

use super::complaints;
use super::model::Model;
use super::rustc::{Given, NotCompiled, Rustc, Unit, UnitKind};
use super::symbols::{self, Start, defined_functions};
use palisade::c::Roots;
use palisade::llvm::Module;
use palisade::{Diagnostic, Refused, Source};
use std::path::Path;

/// Calls rustc, and reports what it rejects.
pub struct Session<'a> {
    /// The compiler.
    pub rustc: &'a Rustc,
    /// Our library.
    pub model: &'a Model,
    /// The program's main file.
    pub source: &'a Source,
}

impl Session<'_> {
    /// A problem with the program.
    pub fn refuse(&self, error: Diagnostic) -> Refused {
        Refused { source: Source::new(self.source.name(), ""), diagnostics: vec![error] }
    }

    fn ir(&self, unit: Unit<'_>) -> Result<String, Refused> {
        let folder = match unit.given {
            Given::File { .. } => Path::new(""),
            Given::Package(invocation) => &invocation.folder,
        };
        self.rustc.compile(unit, self.model).map_err(|error| match error {
            NotCompiled::Problem(error) => self.refuse(error),
            NotCompiled::Rejected(printed) => {
                complaints::refused(&printed, self.source.name(), self.source, folder)
            }
        })
    }

    /// The tests of a program: their symbols and paths.
    pub fn tests(&self, given: Given<'_>, crate_name: &str) -> Result<Vec<(String, String)>, Refused> {
        // Tests are inlined into what calls them, unless the compiler is asked to keep them. So it is asked twice.
        let all = self.ir(Unit { given, kind: UnitKind::ListOfTests, kept: None })?;
        Ok(symbols::tests(&defined_functions(&all), crate_name))
    }

    /// The program that starts in the chosen test, in `main`, or in functions.
    pub fn module(
        &self,
        given: Given<'_>,
        crate_name: &str,
        test: Option<String>,
        roots: &Roots,
    ) -> Result<Module, Refused> {
        let kind = match (&test, roots) {
            (Some(_), _) => UnitKind::Tests,
            (None, Roots::Main) => UnitKind::Program,
            (None, Roots::Functions { .. }) => UnitKind::Library,
        };
        if let Some(path) = test.as_deref().and_then(|symbol| symbols::path_in(symbol, crate_name)) {
            let text = self.ir(Unit { given, kind: UnitKind::TextOfTests, kept: None })?;
            if symbols::must_panic(&text, &path) {
                let message = format!("the test `{path}` must panic, and `#[should_panic]` is not followed");
                return Err(self.refuse(
                    Diagnostic::error("c-unsupported", message)
                        .help("check a test that passes without a panic"),
                ));
            }
        }
        let ir = self.ir(Unit { given, kind, kept: test.as_deref() })?;
        let ir = Source::new(format!("{} (as LLVM IR)", self.source.name()), ir);
        let mut module = match palisade::llvm::read(&ir) {
            Ok(module) => module,
            Err(diagnostics) => return Err(Refused { source: ir, diagnostics }),
        };
        let start = test.map_or_else(|| Start::of(roots), Start::Symbol);
        symbols::rename(&mut module, &start, crate_name).map_err(|error| self.refuse(error))?;
        Ok(module)
    }
}
