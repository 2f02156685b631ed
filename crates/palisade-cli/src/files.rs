//! Files: finding them, reading and writing them, and reporting what is wrong with them.

use crate::args::{CArgs, MachineArgs, ReadingArgs};
use crate::c;
use crate::object;
use crate::rust;
use crate::waiting::Waiting;
use palisade::syntax::names::{declared_constants, declares_process};
use palisade::syntax::{ImportedFile, Language, find_imports};
use palisade::trace::BuildRecord;
use palisade::{Diagnostic, Input, InputLanguage, IntRange, Refused, Source, Threads};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Larger files are refused without being read.
const LARGEST_FILE: u64 = 256 << 20;

/// A file to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its name in tables of expectations: relative to the given folder, with `/`.
    pub key: String,
    /// Whether it was named on the command line or found in a folder.
    pub named: Named,
}

/// Where the name of a file comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// The user named it. Whatever is wrong with it is an error.
    ByUser,
    /// It was found in a folder. A `.txt` that is not a Trencher file is ignored, and so are options for C.
    InFolder,
}

/// The result of reading a file.
pub enum Reading {
    /// A program.
    Program(Box<Input>),
    /// Not a valid program, and the reasons.
    Refused(Refused),
    /// Not meant to be a program.
    Skipped,
}

/// The files named by the user, and all files with known extensions in the folders named by the user. Of the C
/// and Rust files in folders, only those with a `main` are programs. The files of each folder are in the order of their
/// names. If a language is given, only files in that language are taken from folders. The folder of a Cargo package is
/// that package.
pub fn find(
    paths: &[PathBuf],
    input: Option<InputLanguage>,
) -> Result<Vec<InputFile>, Vec<(String, Diagnostic)>> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        if path.is_dir() && !is_folder(path) && input.is_none_or(|input| input == InputLanguage::Rust) {
            let path =
                if path == Path::new(".") { PathBuf::new() } else { path.clone() }.join(rust::MANIFEST);
            let key = path.display().to_string();
            found.push(InputFile { path, key, named: Named::ByUser });
        } else if path.is_dir() {
            let before = found.len();
            walk(path, path, input, &mut found, &mut problems);
            found[before..].sort_by(|a, b| a.key.cmp(&b.key));
            if found.len() == before && problems.is_empty() {
                let message = "the folder contains no programs";
                let error = Diagnostic::error("no-input-files", message).help(extensions_help());
                problems.push((path.display().to_string(), error));
            }
        } else {
            found.push(InputFile {
                path: path.clone(),
                key: path.display().to_string(),
                named: Named::ByUser,
            });
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// The same for a command that reads programs. `.pal` files in folders are left out if they have no processes and
/// others import them. A constant that no program in the folders has is an error.
pub fn find_for(
    paths: &[PathBuf],
    reading: &ReadingArgs,
) -> Result<Vec<InputFile>, Vec<(String, Diagnostic)>> {
    let mut found = find(paths, reading.input)?;
    leave_out_parts(&mut found);
    if reading.constants.is_empty() || found.iter().any(|file| file.named == Named::ByUser) {
        return Ok(found);
    }
    let sources = found.iter().filter_map(|file| Some(with_imports(&file.path, text(&file.path).ok()?)));
    let declared: Vec<String> = sources.flat_map(|source| declared_constants(source.text())).collect();
    let problems: Vec<(String, Diagnostic)> = (reading.constants.iter())
        .filter(|(name, _)| !declared.contains(name))
        .map(|(name, value)| {
            let message = format!("`-D {name}={value}`: no program here has a constant `{name}`");
            let folders: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            (folders.join(", "), Diagnostic::error("unknown-constant", message))
        })
        .collect();
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// Whether a path is a folder with files to read. A folder with a Cargo package is one program.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir() && !path.join(rust::MANIFEST).is_file()
}

/// Collects the programs in a folder and its subfolders. Hidden entries and links to folders are not
/// followed. A broken link is a file that cannot be read.
fn walk(
    root: &Path,
    folder: &Path,
    input: Option<InputLanguage>,
    found: &mut Vec<InputFile>,
    problems: &mut Vec<(String, Diagnostic)>,
) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push((folder.display().to_string(), unreadable(&error)));
                continue;
            }
        };
        for entry in entries {
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if language_of(&path).is_some_and(|language| {
                !rust::is_package(&path)
                    && input.is_none_or(|input| input == language)
                    && !language.is_machine_code()
                    && (language.text().is_some() || c::defines_main(&path))
            }) && (path.is_file() || (!path.exists() && !is_txt(&path)))
            {
                let relative = path.strip_prefix(root).unwrap_or(&path);
                let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
                let key = parts.join("/");
                found.push(InputFile { path, key, named: Named::InFolder });
            }
        }
    }
}

fn language_of(path: &Path) -> Option<InputLanguage> {
    if rust::is_package(path) {
        return Some(InputLanguage::Rust);
    }
    InputLanguage::from_extension(path.extension()?.to_str()?)
}

/// Reads a program.
pub fn read(found: &InputFile, reading: &ReadingArgs) -> Reading {
    let name = found.path.display().to_string();
    let refuse = |error: Diagnostic| {
        Reading::Refused(Refused { source: Source::new(name.as_str(), ""), diagnostics: vec![error] })
    };
    let Some(language) = reading.input.or_else(|| language_of(&found.path)) else {
        // If the file cannot be read, that is reported instead of its unknown extension.
        return refuse(match text(&found.path) {
            Err(error) => error,
            Ok(_) => c::refuse_other_languages(&found.path).err().unwrap_or_else(|| {
                if found.path == Path::new("-") {
                    let message = "the language of standard input is unknown";
                    return Diagnostic::error("unknown-language", message)
                        .help("add --input LANGUAGE: `palisade check - --input pal`");
                }
                Diagnostic::error("unknown-language", "the file name does not show the language")
                    .help(extensions_help())
            }),
        });
    };
    if let (Named::ByUser, None, Some((constant, value))) =
        (found.named, language.text(), reading.constants.first())
    {
        let error = Diagnostic::error("unknown-constant", "-D sets constants of `.pal` programs only");
        return refuse(match language {
            InputLanguage::C => {
                error.help(format!("options for the compiler go after `--`: `-- -D{constant}={value}`"))
            }
            _ => error,
        });
    }
    let language = match language {
        InputLanguage::Text(language) => language,
        InputLanguage::C | InputLanguage::Llvm => return c::read(found, language, reading),
        InputLanguage::Rust => return rust::read(found, reading),
        InputLanguage::Object | InputLanguage::Assembly => return object::read(found, language, reading),
    };
    if let Some(error) = c::unused(&reading.c).filter(|_| found.named == Named::ByUser) {
        return refuse(error);
    }
    let text = match text(&found.path) {
        Ok(text) => text,
        Err(error) => return refuse(error),
    };
    let source = match language {
        Language::Pal => with_imports(&found.path, text),
        _ => Source::new(name.as_str(), text),
    };
    // Not every program in a folder has every constant.
    let mut constants = reading.constants.clone();
    if found.named == Named::InFolder {
        let declared = if language == Language::Pal { declared_constants(source.text()) } else { Vec::new() };
        constants.retain(|(name, _)| declared.contains(name));
    }
    let source = source.with_constants(constants);
    let read = palisade::read(source, language, reading.int_range);
    let read = match reading.several {
        true => read.and_then(Input::with_any_number_of_several),
        false => read,
    };
    match read {
        Ok(input) => Reading::Program(Box::new(input)),
        Err(_) if found.named == Named::InFolder && is_txt(&found.path) => Reading::Skipped,
        Err(refused) => Reading::Refused(refused),
    }
}

/// Leaves out `.pal` files without processes that others import: they are parts of programs.
fn leave_out_parts(found: &mut Vec<InputFile>) {
    let is_pal = |file: &&InputFile| {
        file.named == Named::InFolder && language_of(&file.path) == Some(Language::Pal.into())
    };
    let texts = found.iter().filter(is_pal).filter_map(|file| Some((&file.path, text(&file.path).ok()?)));
    let (programs, others): (Vec<_>, Vec<_>) = texts.partition(|(_, text)| declares_process(text));
    if others.is_empty() {
        return;
    }
    let mut parts = BTreeSet::new();
    for (path, text) in programs {
        let source = with_imports(path, text);
        parts.extend(source.files().skip(1).map(|(name, _)| palisade_files::identity(Path::new(name))));
    }
    let others: BTreeSet<PathBuf> = others.into_iter().map(|(path, _)| path.clone()).collect();
    found.retain(|file| {
        let is_part = || parts.contains(&palisade_files::identity(&file.path));
        file.named == Named::ByUser || !others.contains(&file.path) || !is_part()
    });
}

/// A `.pal` program with the files that it imports. What cannot be read is reported when the program is parsed.
pub fn with_imports(path: &Path, text: String) -> Source {
    let mut source = Source::new(path.display().to_string(), text);
    if path == Path::new("-") {
        return source;
    }
    let main = source.name().to_owned();
    find_imports(&mut source, &palisade_files::identity(path), &mut |importer, imported| {
        // The name of the main file need not be its path.
        let importer = if importer == main { path } else { Path::new(importer) };
        match palisade_files::import(importer, imported, LARGEST_FILE) {
            Ok(import) => Ok(ImportedFile {
                name: import.path.display().to_string(),
                identity: import.identity,
                text: import.text,
            }),
            Err(message) => Err((message, IMPORT_HELP.to_owned())),
        }
    });
    source
}

/// What to do about a file that cannot be imported.
const IMPORT_HELP: &str = "paths start at the folder of the file that imports them";

/// Reads a program that is asked about with these options. A C program can have any number of threads, if the
/// [reading options](for_any_number) say so.
pub fn read_for(found: &InputFile, reading: &ReadingArgs, machine: &MachineArgs) -> Reading {
    match read(found, reading) {
        Reading::Program(input) if input.program.identities.is_some() => match machine.threads {
            Some(Threads::Each(number)) => match input.with_identities(number) {
                Ok(input) => Reading::Program(Box::new(input)),
                Err(refused) => Reading::Refused(refused),
            },
            _ => Reading::Program(input),
        },
        Reading::Program(input) if reading.c.any_threads => Reading::Program(input),
        Reading::Program(input) => match c::refuse_threads(input, machine) {
            Ok(input) => Reading::Program(input),
            Err(refused) => Reading::Refused(refused),
        },
        other => other,
    }
}

/// The reading options, with any number of threads in a C program if that is asked for.
pub fn for_any_number(reading: &ReadingArgs, machine: &MachineArgs) -> ReadingArgs {
    let mut reading = reading.clone();
    reading.c.any_threads = matches!(machine.threads, Some(Threads::Any | Threads::Several));
    reading.several = machine.threads == Some(Threads::Several);
    reading
}

/// Reads the only program of a command.
pub fn read_named(path: &Path, reading: &ReadingArgs) -> Result<Box<Input>, Refused> {
    let found = InputFile { path: path.to_owned(), key: String::new(), named: Named::ByUser };
    match read(&found, reading) {
        Reading::Program(input) => Ok(input),
        Reading::Refused(refused) => Err(refused),
        Reading::Skipped => unreachable!("files that are named are not skipped"),
    }
}

fn is_txt(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt"))
}

/// The text of a file; `-` is standard input.
pub fn text(path: &Path) -> Result<String, Diagnostic> {
    String::from_utf8(bytes(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let help = match error.as_bytes() {
            // The beginning of an ELF file that is not an object file (type 1).
            [0x7f, b'E', b'L', b'F', .., _] if error.as_bytes().get(16) != Some(&1) => {
                return Diagnostic::error("not-text", "this is a compiled program").help(
                    "give its source or its object files (.o); `palisade run` runs programs that `palisade cc` made",
                );
            }
            [0x7f, b'E', b'L', b'F', ..] => "object files have names that end in .o; for others, add --input object",
            _ => "programs are text files in UTF-8",
        };
        Diagnostic::error("not-text", format!("not a text file: byte {at} is not UTF-8")).help(help)
    })
}

/// The bytes of a file; `-` is standard input.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    let too_large = || {
        let message = format!("the file is larger than {} MiB", LARGEST_FILE >> 20);
        Diagnostic::error("too-large", message)
    };
    let mut bytes = Vec::new();
    // Standard input and pipes may block forever.
    let waiting = if path == Path::new("-") {
        Some(Waiting::new(|| Ok(io::stdin())))
    } else {
        if path.is_dir() {
            return Err(Diagnostic::error("is-a-folder", "this is a folder, not a file"));
        }
        let kind = path.metadata().map_err(|error| unreadable(&error))?;
        let path = path.to_owned();
        (!kind.is_file()).then(|| Waiting::new(|| File::open(path)))
    };
    let read = if let Some(waiting) = waiting {
        let gave_up = waiting.gave_up();
        let read = waiting.take(LARGEST_FILE + 1).read_to_end(&mut bytes);
        if gave_up.load(Ordering::Relaxed) {
            return Err(Diagnostic::error("no-input", "reading was stopped before the end of the input"));
        }
        read
    } else {
        let file = File::open(path).map_err(|error| unreadable(&error))?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        if size > LARGEST_FILE {
            return Err(too_large());
        }
        bytes.reserve(size as usize + 1);
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)
    };
    read.map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(too_large());
    }
    Ok(bytes)
}

/// Why a file cannot be read or written.
pub fn unreadable(error: &io::Error) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::NotFound => Diagnostic::error("no-such-file", "there is no such file or folder"),
        _ => Diagnostic::error("unreadable-file", format!("cannot be read: {error}")),
    }
}

/// Writes a file. If it cannot be written, the old file stays unchanged.
pub fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    palisade_files::write(path, text.as_bytes())
        .map_err(|error| Diagnostic::error("unwritable-file", format!("cannot be written: {error}")))
}

fn extensions_help() -> String {
    let extensions: Vec<String> =
        InputLanguage::all().map(|language| format!(".{}", language.extension())).collect();
    format!(
        "known extensions are {} and .txt (Trencher's); for other files, use --input LANGUAGE",
        extensions.join(", ")
    )
}

/// A program as recorded in a witness or a certificate.
pub struct Recorded<'a> {
    /// Its file.
    pub file: &'a str,
    /// The name of its language.
    pub language: &'a str,
    /// The range of integers without a declared domain.
    pub int_range: Option<(i64, i64)>,
    /// The constants with other values than in its text.
    pub constants: &'a BTreeMap<String, i64>,
    /// How it was made from its text, if a compiler took part.
    pub build: Option<&'a BuildRecord>,
    /// Whether there is any number of the processes that it declares with several instances.
    pub several: bool,
}

/// A warning that the program is not the one that the result was found for: the user gave another one, or it
/// has changed since.
pub fn another_program(input: &Input, given: Option<&Path>, what: &str) -> Diagnostic {
    let name = input.source.name();
    match given {
        Some(_) => Diagnostic::warning(
            "another-program",
            format!("{name} is not the program that the {what} was found for"),
        ),
        None => {
            Diagnostic::warning("program-changed", format!("{name} has changed since the {what} was found"))
        }
    }
}

/// A warning that another compiler made another program from the same text.
pub fn another_translation(input: &Input, recorded: Option<&BuildRecord>, what: &str) -> Option<Diagnostic> {
    let (now, then) = (&input.c.as_ref()?.build, recorded?);
    if now.digest == then.digest {
        return None;
    }
    let name = input.source.name();
    let message = match now.compiler == then.compiler {
        true => format!("{name} is translated differently now than when the {what} was found"),
        false => format!(
            "{} translates {name} differently than {} did when the {what} was found",
            now.compiler, then.compiler
        ),
    };
    let help = match input.language {
        InputLanguage::Rust => "set RUSTC to the same compiler, and keep the program's modules unchanged",
        _ => "set CC to the same compiler, and keep the included files unchanged",
    };
    Some(Diagnostic::warning("another-translation", message).help(help))
}

impl Recorded<'_> {
    /// Reads the program, which the user may have named.
    pub fn read(&self, path: PathBuf, given: Option<&Path>) -> Result<Reading, String> {
        // Whoever wrote this file must not choose which code is run: building a package runs its build scripts.
        if given.is_none() && rust::is_package(&path) {
            return Err(format!(
                "it is about the package {}, and building a package can run code: name it with --program",
                path.display()
            ));
        }
        let language = InputLanguage::from_name(self.language)
            .ok_or_else(|| format!("unknown input language `{}`", self.language))?;
        // Whoever wrote this file must not choose how the program is read: the same text can be a program in two
        // languages.
        if let Some(by_name) = language_of(&path).filter(|by_name| *by_name != language) {
            return Err(format!(
                "it is about {} read as `{}`, but the file name says `{}`",
                path.display(),
                language.name(),
                by_name.name()
            ));
        }
        let int_range = match self.int_range {
            Some((lo, hi)) if lo > hi => return Err(format!("the range {lo}..{hi} is empty")),
            Some((lo, hi)) => Some(IntRange { lo, hi }),
            None => None,
        };
        let found = InputFile { path, key: String::new(), named: Named::ByUser };
        let constants = self.constants.iter().map(|(name, value)| (name.clone(), *value)).collect();
        let reading = ReadingArgs {
            input: Some(language),
            int_range,
            constants,
            several: self.several,
            c: CArgs::default(),
        };
        Ok(match self.build {
            Some(build) if language == InputLanguage::Rust => rust::read_again(&found, build),
            Some(build) if language.is_machine_code() => object::read_again(&found, language, build),
            Some(build) => c::read_again(&found, language, build),
            None => read(&found, &reading),
        })
    }

    /// The path of the program: the one the user gives, or else the recorded one, or else one next to the
    /// file that names it.
    ///
    /// In names that are not valid text, the invalid parts are recorded as a replacement character. If
    /// several files match, the one with the recorded text is used.
    pub fn path(&self, by: &Path, given: Option<&Path>, has_text: impl Fn(&str) -> bool) -> PathBuf {
        if let Some(given) = given {
            return given.to_owned();
        }
        let path = PathBuf::from(self.file);
        let beside = path.file_name().map(|name| by.with_file_name(name));
        std::iter::once(&path)
            .chain(&beside)
            .find_map(|path| recorded_as(path, &has_text))
            .unwrap_or_else(|| path.clone())
    }
}

/// The file whose name is displayed like this path, if there is exactly one candidate.
fn recorded_as(path: &Path, has_text: impl Fn(&str) -> bool) -> Option<PathBuf> {
    if path.exists() {
        return Some(path.to_owned());
    }
    if !path.to_str()?.contains(char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let mut found = vec![PathBuf::new()];
    for part in path.components() {
        let name = part.as_os_str();
        let is_lossy = name.to_str().is_some_and(|name| name.contains(char::REPLACEMENT_CHARACTER));
        found = found
            .into_iter()
            .flat_map(|folder| if is_lossy { shown_as(&folder, name) } else { vec![folder.join(name)] })
            .collect();
    }
    found.retain(|path| path.exists());
    match found.as_slice() {
        [only] => Some(only.clone()),
        _ => found.into_iter().find(|path| text(path).is_ok_and(|text| has_text(&text))),
    }
}

/// The entries of a folder whose names are displayed like this one, in order.
fn shown_as(folder: &Path, name: &OsStr) -> Vec<PathBuf> {
    let listed = if folder == Path::new("") { Path::new(".") } else { folder };
    let entries = fs::read_dir(listed).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let mut found: Vec<PathBuf> = names
        .filter(|other| other.to_string_lossy() == name.to_string_lossy())
        .map(|other| folder.join(other))
        .collect();
    found.sort_unstable();
    found
}
