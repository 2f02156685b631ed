//! Files that are written whole or not at all, and whether two paths lead to the same file.
//!
//! *Guarantee:* [`write`] leaves the file as it was, or replaces it with the whole new text. A full disk, a size limit or a killed process cannot leave half a file or
//! an empty one. The new text goes to a temporary file in the same folder, reaches the disk, and is then renamed.
//!
//! What is kept of a file that is replaced: its name, its mode, its group, and its owner where the system allows it. Symbolic links are followed, so the link stays a link.
//! Other hard links keep the old text. Pipes, terminals and devices cannot be replaced and are written as they are; a named pipe that no process reads is an error.

mod same;

pub use same::Identity;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::{Builder, NamedTempFile};

/// As many symbolic links are followed as Linux follows.
const MAX_LINKS: usize = 40;
/// The mode of a new file, before the user's mask.
const NEW_FILE: u32 = 0o666;
/// The mode of a temporary file that will replace another: nobody else reads it before it has that one's mode.
const PRIVATE: u32 = 0o600;
/// The part of a mode that gives rights to the group.
const GROUP_BITS: u32 = 0o070;
/// The part of a mode that lends rights of the owner or group.
const SET_ID_BITS: u32 = 0o6000;

/// How long the reader of a named pipe may take to open it. A reader started together with Palisade is there by then.
const WAIT_FOR_READER: Duration = Duration::from_millis(200);

/// Writes a file. If this fails, a file that was there before is unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return replace(&follow_links(path)?, None, bytes);
        }
        Err(error) => return Err(error),
    };
    if let Some(mut stream) = standard_stream(&old) {
        return stream.write_all(bytes);
    }
    if old.file_type().is_fifo() {
        return write_to_pipe(path, bytes);
    }
    if !old.is_file() {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    if leads_to_a_descriptor(path) {
        // Whoever opened it goes on writing to it: renaming would take it away from them.
        return OpenOptions::new().append(true).open(path)?.write_all(bytes);
    }
    replace(&fs::canonicalize(path)?, Some(&old), bytes)
}

/// Writes to a named pipe, if some process reads it. Opening it the usual way would wait for one without end.
fn write_to_pipe(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let start = Instant::now();
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    loop {
        match options.open(path) {
            Ok(mut pipe) => {
                // From here on, a slow reader is waited for.
                fcntl_setfl(&pipe, OFlags::empty())?;
                return pipe.write_all(bytes);
            }
            Err(error) if error.raw_os_error() != Some(Errno::NXIO.raw_os_error()) => return Err(error),
            Err(_) if start.elapsed() < WAIT_FOR_READER => sleep(WAIT_FOR_READER / 20),
            Err(error) => {
                let why = "no process reads this pipe; start its reader first";
                return Err(io::Error::new(error.kind(), why));
            }
        }
    }
}

/// Puts a new file in the place of a path that is not a link.
fn replace(path: &Path, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    if old.is_some() {
        // Renaming needs no right to write the old file. Whoever made it read-only meant it.
        OpenOptions::new().write(true).open(path)?;
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fs::metadata(folder)?;
    let mode = if old.is_some() { PRIVATE } else { NEW_FILE };
    let mut new = Builder::new()
        .prefix(".palisade-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map_err(no_new_file)?;
    new.as_file_mut().write_all(bytes)?;
    if let Some(old) = old {
        take_over(&new, old)?;
    }
    match new.as_file().sync_all() {
        // Some file systems cannot do this, and say so.
        Err(error) if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            return Err(error);
        }
        _ => {}
    }
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Why there is no temporary file, without its name.
fn no_new_file(error: io::Error) -> io::Error {
    let text = error.to_string();
    let why = text.split(" at path ").next().unwrap_or_default();
    if error.kind() == io::ErrorKind::PermissionDenied {
        let why = format!("its folder must be writable, since files are replaced by new ones: {why}");
        return io::Error::new(error.kind(), why);
    }
    io::Error::new(error.kind(), why)
}

/// Gives a new file the owner, group and mode of the old one. Rights that the old group had are not given to another group.
fn take_over(new: &NamedTempFile, old: &Metadata) -> io::Result<()> {
    let made = new.as_file().metadata()?;
    let mut mode = old.mode() & 0o7777;
    let same_group = made.gid() == old.gid() || fchown(new.as_file(), None, Some(old.gid())).is_ok();
    let same_owner = made.uid() == old.uid() || fchown(new.as_file(), Some(old.uid()), None).is_ok();
    if !same_group {
        mode &= !GROUP_BITS;
    }
    if !same_group || !same_owner {
        mode &= !SET_ID_BITS;
    }
    new.as_file().set_permissions(Permissions::from_mode(mode))
}

/// Standard output or error, if this is the file that it goes to: text that is printed and what is written here then come one after the other.
fn standard_stream(file: &Metadata) -> Option<File> {
    let same = |stream: BorrowedFd<'_>| {
        let stream = File::from(stream.try_clone_to_owned().ok()?);
        let found = stream.metadata().ok()?;
        (found.dev() == file.dev() && found.ino() == file.ino()).then_some(stream)
    };
    same(io::stdout().as_fd()).or_else(|| same(io::stderr().as_fd()))
}

/// Where a path with links leads, although nothing is there.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Whether a path is a name of an open file of some process, such as `/dev/fd/3`.
fn leads_to_a_descriptor(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        if folder.is_some_and(|folder| folder.starts_with("/proc") && folder.ends_with("fd")) {
            return true;
        }
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests;
