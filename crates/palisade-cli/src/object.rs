//! Machine code: object files and assembly.
//!
//! The source of such a program is its listing, one line per instruction: runs and messages show its lines.

use crate::args::ReadingArgs;
use crate::c::{options, recorded_options};
use crate::files::{self, InputFile, Named, Reading};
use palisade::c::{COptions, Compilation, FileNames, read_c};
use palisade::trace::BuildRecord;
use palisade::{Diagnostic, InputLanguage, Refused, Source, x86};
use std::path::{Path, PathBuf};

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
    let mut read = Vec::new();
    for (file, is_assembly) in &paths {
        let contents = match is_assembly {
            false => files::bytes(file).map(Contents::Object),
            true => files::text(file).map(Contents::Assembly),
        };
        read.push((file.display().to_string(), contents.map_err(|error| refuse(file, error))?));
    }
    program(path, language, &read, words, String::new(), options)
}

/// What is in a file of machine code.
pub enum Contents {
    Object(Vec<u8>),
    Assembly(String),
}

/// Turns files of machine code, by their names, into a program.
pub fn program(
    path: &Path,
    language: InputLanguage,
    given: &[(String, Contents)],
    words: &[String],
    compiler: String,
    options: COptions,
) -> Result<Compilation, Refused> {
    let mut files = Vec::new();
    for (name, contents) in given {
        let contents = match contents {
            Contents::Object(bytes) => x86::Contents::Object(bytes),
            Contents::Assembly(text) => x86::Contents::Assembly(text),
        };
        files.push(x86::File { name, contents });
    }
    let lifted = x86::lift(&files).map_err(|(index, diagnostics)| {
        let (name, contents) = &given[index];
        let text = match contents {
            Contents::Object(_) => "",
            Contents::Assembly(text) => text,
        };
        Refused { source: Source::new(name.as_str(), text), diagnostics }
    })?;
    let mut source = Source::new(path.display().to_string(), lifted[0].listing.as_str());
    let mut files = FileNames::default();
    let mut modules = Vec::new();
    for (index, ((name, _), lifted)) in given.iter().zip(&lifted).enumerate() {
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
