//! Whether two paths lead to the same file, also if it is not there yet.

use crate::follow_links;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What makes a file one file. Two paths lead to the same file exactly if their identities are equal, however they are written: `x` and `./x`, links and hard links.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Identity {
    /// A file that is there, by its device and inode.
    There(u64, u64),
    /// A file that is not there yet, by its name in a folder.
    InFolder(u64, u64, std::ffi::OsString),
    /// A file in a folder that is not there either.
    Nowhere(PathBuf),
}

impl Identity {
    /// The file that a path leads to.
    pub fn of(path: &Path) -> Identity {
        if let Ok(metadata) = fs::metadata(path) {
            return Identity::there(&metadata);
        }
        let path = follow_links(path).unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        match (fs::metadata(folder), path.file_name()) {
            (Ok(folder), Some(name)) => Identity::InFolder(folder.dev(), folder.ino(), name.to_owned()),
            _ => Identity::Nowhere(std::path::absolute(&path).unwrap_or(path)),
        }
    }

    /// The file that standard input comes from, if it is one: pipes and terminals are not.
    pub fn of_standard_input() -> Option<Identity> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        let metadata = input.metadata().ok()?;
        metadata.is_file().then(|| Identity::there(&metadata))
    }

    fn there(metadata: &Metadata) -> Identity {
        Identity::There(metadata.dev(), metadata.ino())
    }
}
