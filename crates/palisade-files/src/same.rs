//! Whether two paths lead to the same file, even if it does not exist yet.

use crate::follow_links;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The identity of a file. Two paths lead to the same file exactly if their identities are equal, however
/// they are written: `x` and `./x`, links and hard links.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Identity {
    /// An existing file, by its device and inode.
    Existing(u64, u64),
    /// A file that does not exist yet, by its folder's device and inode and its name.
    InFolder(u64, u64, std::ffi::OsString),
    /// A file whose folder does not exist either.
    Missing(PathBuf),
}

impl Identity {
    /// The file that a path leads to.
    pub fn of(path: &Path) -> Identity {
        if let Ok(metadata) = fs::metadata(path) {
            return Identity::existing(&metadata);
        }
        let path = follow_links(path).unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        match (fs::metadata(folder), path.file_name()) {
            (Ok(folder), Some(name)) => Identity::InFolder(folder.dev(), folder.ino(), name.to_owned()),
            _ => Identity::Missing(std::path::absolute(&path).unwrap_or(path)),
        }
    }

    /// The file that standard input is read from; `None` for pipes and terminals.
    pub fn of_standard_input() -> Option<Identity> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        let metadata = input.metadata().ok()?;
        metadata.is_file().then(|| Identity::existing(&metadata))
    }

    fn existing(metadata: &Metadata) -> Identity {
        Identity::Existing(metadata.dev(), metadata.ino())
    }
}
