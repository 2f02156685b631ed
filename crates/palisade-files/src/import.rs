//! The file that another file imports.

use crate::Identity;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file that another one imports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Import {
    /// Where it is: relative if the path of the importing file is.
    pub path: PathBuf,
    /// What identifies it: the same for two paths exactly if they lead to the same file.
    pub identity: String,
    /// Its text.
    pub text: String,
}

/// Where the file is that another one imports by a path with `/` from its own folder.
pub fn beside(importer: &Path, path: &str) -> PathBuf {
    importer.parent().unwrap_or(Path::new("")).join(path)
}

/// What identifies a file: the same for two paths exactly if they lead to the same file.
pub fn identity(path: &Path) -> String {
    format!("{:?}", Identity::of(path))
}

/// Reads the file that another one imports. If it fails, the error says why. Only regular files are read, and only up
/// to a limit.
pub fn import(importer: &Path, path: &str, limit: u64) -> Result<Import, String> {
    let place = beside(importer, path);
    let unreadable = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            format!("there is no file `{}`", place.display())
        }
        _ => format!("`{}` cannot be read: {error}", place.display()),
    };
    let kind = fs::metadata(&place).map_err(|error| unreadable(&error))?;
    if !kind.is_file() {
        return Err(format!("`{}` is not a file", place.display()));
    }
    let mut bytes = Vec::new();
    let file = File::open(&place).map_err(|error| unreadable(&error))?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > limit {
        return Err(format!("`{}` is larger than {} MiB", place.display(), limit >> 20));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("`{}` is not a text file: byte {at} is not UTF-8", place.display())
    })?;
    Ok(Import { identity: identity(&place), path: place, text })
}
