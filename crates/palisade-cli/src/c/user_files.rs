//! The user's files: those that the places of a compiled program are in.

use crate::files;
use palisade::Source;
use palisade::c::{FileNames, beyond_its_end};
use palisade::llvm::Module;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Whether files other than the main one are opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OtherFiles {
    /// The user's files are.
    Open,
    /// None is, whatever the program names.
    Closed,
}

/// Collects the user's files in a source that holds the main file. The compiler may know the main file by other names.
/// Some files may have another text than on disk.
pub fn user_files(
    modules: &[Module],
    name: &str,
    other_names: &[&str],
    source: &mut Source,
    patched: &dyn Fn(&str) -> Option<String>,
    others: OtherFiles,
) -> FileNames {
    let mut files = FileNames::default();
    let folder =
        std::env::current_dir().map_or_else(|_| String::new(), |folder| folder.display().to_string());
    // The compiler may know this folder by another name.
    let other_folder = std::env::var("PWD").unwrap_or_else(|_| folder.clone());
    for folder in [&folder, &other_folder] {
        for file in std::iter::once(&name).chain(other_names) {
            files.add(folder, file, name);
        }
    }
    for module in modules {
        for (file, directory) in module.debug.files() {
            let directory = if directory.is_empty() { &folder } else { directory };
            // A compiler that sees no files works in a folder of its own.
            if others == OtherFiles::Closed && other_names.contains(&file) {
                files.add(directory, file, name);
            }
            if others == OtherFiles::Open
                && !files.contains(directory, file)
                && let Some((name, text)) = user_file(directory, file, &folder)
            {
                files.add(directory, file, &name);
                source.add(name.as_str(), &patched(&name).unwrap_or(text));
            }
        }
    }
    add_missing_lines(modules, &folder, &mut files, source);
    files
}

/// Folders of the system. What is in them is not the user's: its lines are not shown.
const SYSTEM: [&str; 6] =
    ["/usr/include/", "/usr/lib", "/usr/local/include/", "/opt/", "/Library/", "/rustc/"];

/// Up to this many lines without text are shown by number, from the first to the last in one file.
const MAX_LINES_WITHOUT_TEXT: u32 = 1 << 20;

/// Lines that places refer to and whose text is not there, because of `#line` or because the file is gone. They are
/// shown by their numbers.
fn add_missing_lines(modules: &[Module], folder: &str, files: &mut FileNames, source: &mut Source) {
    let mut all: BTreeMap<(&str, &str), BTreeSet<u32>> = BTreeMap::new();
    for (file, lines) in modules.iter().flat_map(|module| module.debug.lines()) {
        all.entry(file).or_default().extend(lines);
    }
    for ((file, directory), lines) in all {
        let directory = if directory.is_empty() { folder } else { directory };
        let known = files.name(directory, file).map(str::to_owned);
        let is_missing = |line: &&u32| {
            known.as_ref().is_none_or(|name| {
                let beyond = beyond_its_end(name);
                source.line_of(name, **line).is_none() && source.line_of(&beyond, **line).is_none()
            })
        };
        let missing: Vec<u32> = lines.iter().filter(is_missing).copied().collect();
        let (Some(&first), Some(&last)) = (missing.first(), missing.last()) else { continue };
        let name = match known {
            Some(name) => beyond_its_end(&name),
            None => {
                let Some((name, _)) = user_path(directory, file, folder) else { continue };
                files.add(directory, file, &name);
                name
            }
        };
        source.add_empty_lines(name, first..=last.min(first.saturating_add(MAX_LINES_WITHOUT_TEXT)));
    }
}

/// The name and the path of a file, if it is the user's.
fn user_path(directory: &str, file: &str, folder: &str) -> Option<(String, PathBuf)> {
    let path = if file.starts_with('/') { PathBuf::from(file) } else { Path::new(directory).join(file) };
    let whole = path.display().to_string();
    if SYSTEM.iter().any(|system| whole.starts_with(system))
        || whole.contains("/lib/clang/")
        || whole.contains("/lib/rustlib/")
        || file.is_empty()
        || file.starts_with('<')
    {
        return None;
    }
    let name = path.strip_prefix(folder).map_or(whole, |path| path.display().to_string());
    Some((name, path))
}

/// The name and the text of a file, if it is the user's and can be read.
pub fn user_file(directory: &str, file: &str, folder: &str) -> Option<(String, String)> {
    let (name, path) = user_path(directory, file, folder).filter(|(_, path)| path.is_file())?;
    Some((name, files::text(&path).ok()?))
}
