//! Having cargo build what a program depends on.

use super::super::complaints;
use super::super::model::{self, Model};
use super::super::rustc::Rustc;
use super::manifest::{cargo, complaint};
use super::wrapper::{FOLDER, Invocation, MARK, TAKEN_DOWN};
use super::{Arguments, Manifest, Target};
use crate::compiler;
use palisade::llvm::Module;
use palisade::llvm::module::SymbolKind;
use palisade::{Diagnostic, Refused, Source};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What cargo is called with.
pub struct Builder<'a> {
    /// The compiler.
    pub rustc: &'a Rustc,
    /// Our library.
    pub model: &'a Model,
    /// The package.
    pub manifest: &'a Manifest,
    /// The user's options.
    pub arguments: &'a Arguments,
}

/// A program whose dependencies are built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Built {
    /// How the program itself is compiled.
    pub invocation: Invocation,
    /// The LLVM IR of its dependencies.
    dependencies: Vec<PathBuf>,
}

/// Why a program is not built.
pub enum NotBuilt {
    /// rustc rejects a crate: what it printed, and the folder that its file names begin in.
    Rejected(String, PathBuf),
    /// Cargo fails.
    Problem(Diagnostic),
}

impl Builder<'_> {
    /// Builds the dependencies of a part of the package. Cargo must not use the network.
    pub fn build(&self, target: &Target) -> Result<Built, NotBuilt> {
        let failed = |message: String| {
            NotBuilt::Problem(Diagnostic::error("cannot-build", message).help(
                "cargo works offline here: if crates are missing, run `cargo fetch` first; dependencies are compiled \
                 with a model of std, which lacks some of it (docs/rust.md)",
            ))
        };
        let wrapper = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let taken_down = self.model.folder().join(TAKEN_DOWN);
        // What was built with another library or compiler is kept apart.
        let digest = model::digest(&self.rustc.version);
        let folder = self.manifest.target_folder.join("palisade").join(format!("check-{digest}"));
        let mut command = cargo(&self.manifest.folder);
        command.args(["rustc", "--offline", "--message-format=json", "--target", &self.rustc.host]);
        command.arg("--target-dir").arg(folder).args(["--package", &self.manifest.package]);
        command.args(&self.arguments.options).args(target.options()).args(["--", MARK]);
        command
            .env("RUSTC", self.rustc.program())
            .env("RUSTC_WRAPPER", wrapper)
            .env(FOLDER, self.model.folder())
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_LTO", "off")
            .env("CARGO_PROFILE_TEST_LTO", "off");
        let ended =
            compiler::run(&mut command, None).map_err(|failure| failed(format!("cargo {failure}")))?;
        let printed = String::from_utf8_lossy(&ended.printed);
        let messages: Vec<Value> =
            printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let Ok(invocation) = fs::read(&taken_down) else {
            return Err(match rejected(&messages) {
                Some(printed) => NotBuilt::Rejected(printed, self.workspace(&messages)),
                None => failed(format!("cargo cannot build it: {}", complaint(&ended.complained))),
            });
        };
        let _ = fs::remove_file(&taken_down);
        let Some(invocation) = Invocation::from_json(&invocation) else {
            return Err(failed("how cargo calls rustc cannot be read".to_owned()));
        };
        Ok(Built { invocation, dependencies: dependencies(&messages) })
    }

    /// The folder in which rustc compiles the crate that it rejects.
    fn workspace(&self, messages: &[Value]) -> PathBuf {
        let errors = messages.iter().filter(|message| message["message"]["level"] == "error");
        let manifest = errors.filter_map(|message| message["manifest_path"].as_str()).next();
        let folders = manifest.map(Path::new).into_iter().flat_map(Path::ancestors).skip(1);
        let file = messages
            .iter()
            .flat_map(|message| message["message"]["spans"].as_array().into_iter().flatten())
            .find_map(|span| span["file_name"].as_str());
        let holds = |folder: &&Path| file.is_some_and(|file| folder.join(file).is_file());
        folders.into_iter().find(holds).unwrap_or(&self.manifest.folder).to_owned()
    }
}

/// What rustc printed, if it rejects a crate.
fn rejected(messages: &[Value]) -> Option<String> {
    let of_rustc = messages.iter().filter(|message| message["reason"] == "compiler-message");
    let errors: Vec<String> = of_rustc
        .map(|message| &message["message"])
        .filter(|message| message["level"].as_str().is_some_and(|level| level.starts_with("error")))
        .map(Value::to_string)
        .collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}

/// The LLVM IR beside the crates that cargo has built.
fn dependencies(messages: &[Value]) -> Vec<PathBuf> {
    let artifacts = messages.iter().filter(|message| message["reason"] == "compiler-artifact");
    let files = artifacts.flat_map(|message| message["filenames"].as_array().into_iter().flatten());
    let ir = files.filter_map(|file| {
        let path = Path::new(file.as_str()?);
        let name = path.file_name()?.to_str()?.strip_prefix("lib")?;
        let stem = name.strip_suffix(".rlib").or_else(|| name.strip_suffix(".rmeta"))?;
        Some(path.with_file_name(format!("{stem}.ll")))
    });
    let found: BTreeSet<PathBuf> = ir.filter(|path| path.is_file()).collect();
    found.into_iter().collect()
}

impl Built {
    /// The modules of dependencies that the program refers to, as a linker takes objects out of an archive.
    pub fn needed(&self, program: &Module) -> Result<Vec<Module>, Refused> {
        let mut left: Vec<(Source, BTreeSet<String>)> = Vec::new();
        for path in &self.dependencies {
            let name = path.display().to_string();
            let text = crate::files::text(path).map_err(|error| Refused {
                source: Source::new(name.as_str(), ""),
                diagnostics: vec![error],
            })?;
            let defined = defined(&text);
            left.push((Source::new(name, text), defined));
        }
        let mut wanted = missing(program);
        let mut found = Vec::new();
        while let Some(at) = left.iter().position(|(_, defined)| !defined.is_disjoint(&wanted)) {
            let (source, _) = left.remove(at);
            let module = match palisade::llvm::read(&source) {
                Ok(module) => module,
                Err(diagnostics) => return Err(Refused { source, diagnostics }),
            };
            wanted.extend(missing(&module));
            found.push(module);
        }
        Ok(found)
    }
}

/// The names that a module refers to and does not define.
fn missing(module: &Module) -> BTreeSet<String> {
    let is_missing = |kind: SymbolKind| match kind {
        SymbolKind::Function(id) => module.functions[id].body.is_none(),
        SymbolKind::Global(id) => module.globals[id].initializer.is_none(),
        SymbolKind::Alias(_) => false,
    };
    let symbols = module.symbols.iter().filter(|symbol| is_missing(symbol.kind));
    symbols.map(|symbol| symbol.name.to_string()).collect()
}

/// The names that LLVM IR defines.
fn defined(ir: &str) -> BTreeSet<String> {
    let variable = |line: &str| {
        let (name, value) = line.strip_prefix('@')?.split_once(" = ")?;
        let external = ["private ", "internal ", "external "].iter().all(|word| !value.starts_with(word));
        external.then(|| name.trim_matches('"').to_owned())
    };
    let functions = super::super::symbols::defined_functions(ir).into_iter().map(str::to_owned);
    ir.lines().filter_map(variable).chain(functions).collect()
}

impl NotBuilt {
    /// As it is reported.
    pub fn refused(self, name: &str, source: &Source) -> Refused {
        match self {
            NotBuilt::Problem(error) => Refused { source: Source::new(name, ""), diagnostics: vec![error] },
            NotBuilt::Rejected(printed, folder) => complaints::refused(&printed, name, source, &folder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_defined() {
        let ir = "@_RNvC4lock1X = constant i32 0\n@alloc_1 = private constant i32 0\n@y = external global i8\n\
                  define void @f() {\ndeclare void @g()\n";
        assert_eq!(defined(ir), BTreeSet::from(["_RNvC4lock1X".to_owned(), "f".to_owned()]));
    }

    #[test]
    fn crates_that_rustc_rejects() {
        let messages = [
            serde_json::json!({"reason": "compiler-message", "message": {"level": "warning", "message": "w"}}),
            serde_json::json!({"reason": "compiler-message", "message": {"level": "error", "message": "e"}}),
        ];
        assert!(rejected(&messages[..1]).is_none());
        assert!(
            rejected(&messages).is_some_and(|printed| !printed.contains('\n') && printed.contains("\"e\""))
        );
    }
}
