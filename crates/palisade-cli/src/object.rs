//! Machine code: object files, and assembly, which is assembled first.
//!
//! The source of such a program is its listing, one line per instruction: runs and messages show its lines.

use crate::args::ReadingArgs;
use crate::c::{options, recorded_options};
use crate::compiler;
use crate::files::{self, InputFile, Named, Reading};
use palisade::c::{COptions, Compilation, FileNames, read_c};
use palisade::trace::BuildRecord;
use palisade::{Diagnostic, InputLanguage, Refused, Source};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reads an object file or assembly.
pub fn read(found: &InputFile, language: InputLanguage, reading: &ReadingArgs) -> Reading {
    let refuse = |message: &str| {
        let source = Source::new(found.path.display().to_string(), "");
        let diagnostics = vec![Diagnostic::error("c-option", message)];
        Reading::Refused(Refused { source, diagnostics })
    };
    if found.named == Named::ByUser {
        if reading.int_range.is_some() {
            return refuse("--int-range does not apply to machine code");
        }
        if reading.c.test.is_some() {
            return refuse("--test applies only to Rust programs, and this is machine code");
        }
    }
    finish(compile(&found.path, language, &reading.c.compiler, options(&reading.c)))
}

/// Reads a program again as it was recorded.
pub fn read_again(found: &InputFile, language: InputLanguage, build: &BuildRecord) -> Reading {
    finish(compile(&found.path, language, &build.arguments, recorded_options(build)))
}

fn finish(compiled: Result<Compilation, Refused>) -> Reading {
    match compiled.and_then(read_c) {
        Ok(input) => Reading::Program(Box::new(input)),
        Err(refused) => Reading::Refused(refused),
    }
}

/// Turns object files into a program: the one that is named, and further ones after `--`.
fn compile(
    path: &Path,
    language: InputLanguage,
    words: &[String],
    options: COptions,
) -> Result<Compilation, Refused> {
    let refuse = |path: &Path, error: Diagnostic| Refused {
        source: Source::new(path.display().to_string(), ""),
        diagnostics: vec![error],
    };
    let mut paths = vec![(path.to_owned(), language == InputLanguage::Assembly)];
    for word in words {
        let file = PathBuf::from(word);
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("o") if !word.starts_with('-') => paths.push((file, false)),
            Some("s") if !word.starts_with('-') => paths.push((file, true)),
            _ => {
                let message = format!("`{word}` is neither an object file nor assembly");
                let error = Diagnostic::error("compiler-argument", message)
                    .help("after `--` come further files of the program: .o and .s");
                return Err(refuse(path, error));
            }
        }
    }
    let mut objects = Vec::new();
    let mut assembler = String::new();
    for (file, is_assembly) in &paths {
        let bytes = match is_assembly {
            false => files::bytes(file).map_err(|error| refuse(file, error))?,
            true => {
                let text = files::text(file).map_err(|error| refuse(file, error))?;
                let (bytes, version) = assemble(&text).map_err(|error| refuse(file, error))?;
                assembler = version;
                bytes
            }
        };
        objects.push((file.display().to_string(), bytes));
    }
    program(path, language, &objects, words, assembler, options)
}

/// Turns object files, by their names, into a program.
pub fn program(
    path: &Path,
    language: InputLanguage,
    objects: &[(String, Vec<u8>)],
    words: &[String],
    compiler: String,
    options: COptions,
) -> Result<Compilation, Refused> {
    let given: Vec<(&str, &[u8])> =
        objects.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let lifted = palisade::x86::lift(&given).map_err(|(index, error)| Refused {
        source: Source::new(objects[index].0.as_str(), ""),
        diagnostics: vec![error],
    })?;
    let mut source = Source::new(path.display().to_string(), lifted[0].listing.as_str());
    let mut files = FileNames::default();
    let mut modules = Vec::new();
    for (index, ((name, _), lifted)) in objects.iter().zip(&lifted).enumerate() {
        files.add("", name, name);
        if index > 0 {
            source.add(name.as_str(), &lifted.listing);
        }
        let ir = Source::new(format!("{name} (as LLVM IR)"), lifted.module.as_str());
        let module = palisade::llvm::read(&ir);
        modules.push(module.map_err(|diagnostics| Refused { source: ir, diagnostics })?);
    }
    // Races are about what a compiler may do. This is what it has done.
    let options = COptions { races: false, ..options };
    let arguments = words.to_vec();
    Ok(Compilation { source, files, language, modules, compiler, arguments, options })
}

/// Assembles a text. Returns the object file and the version of the assembler.
fn assemble(text: &str) -> Result<(Vec<u8>, String), Diagnostic> {
    let problem = |message: String| {
        Diagnostic::error("cannot-assemble", message)
            .help("install an assembler (`apt install binutils`), or give an object file")
    };
    // Clang says which symbols matter to the linker, in a way that some assemblers do not know.
    let known = |line: &str| !line.trim_start().starts_with(".addrsig");
    let text: String =
        text.lines().map(|line| if known(line) { line } else { "" }).flat_map(|line| [line, "\n"]).collect();
    let folder = tempfile::tempdir().map_err(|error| problem(format!("no temporary folder: {error}")))?;
    let object = folder.path().join("assembled.o");
    let mut command = Command::new("as");
    command.args(["--64", "-o"]).arg(&object).arg("--").arg("-");
    let ended = compiler::run(&mut command, Some(&text))
        .map_err(|failure| problem(format!("the assembler `as` {failure}")))?;
    if !ended.success {
        let complaints = String::from_utf8_lossy(&ended.complained);
        let first: Vec<&str> = complaints.lines().filter(|line| line.contains("Error")).take(5).collect();
        let message =
            format!("the assembler rejects it: {}", first.join("; ").replace("{standard input}", "line "));
        return Err(Diagnostic::error("assembly-error", message));
    }
    let version = Command::new("as").arg("--version").output();
    let version = version
        .map(|output| String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned());
    let bytes = files::bytes(&object)?;
    Ok((bytes, version.unwrap_or_default()))
}
