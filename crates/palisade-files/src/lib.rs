//! Files that are written completely or not at all, whether two paths lead to the same file, and files that others
//! import.
//!
//! *Guarantee:* [`write`] leaves the file as it was, or replaces it with the complete new text. A full disk,
//! a size limit or a killed process cannot leave a partial or empty file. The new text goes to a temporary
//! file in the same folder, is synced to disk, and is then renamed.
//!
//! A replaced file keeps its name, its mode, its group, and its owner where the system allows it. Symbolic
//! links are followed, so a link stays a link. Other hard links keep the old text. Pipes, terminals and
//! devices cannot be replaced and are written directly. A named pipe that no process reads is an error.

mod import;
mod same;

pub use import::{Import, beside, identity, import};
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

/// The number of symbolic links that are followed; the same as in Linux.
const MAX_LINKS: usize = 40;
/// The mode of a new file, before the user's umask.
const NEW_FILE: u32 = 0o666;
/// The mode of a temporary file that will replace another. Other users cannot read it before it gets the old
/// file's mode.
const PRIVATE: u32 = 0o600;
/// The permissions of the group.
const GROUP_BITS: u32 = 0o070;
/// The set-user-ID and set-group-ID bits.
const SET_ID_BITS: u32 = 0o6000;

/// How long the reader of a named pipe may take to open it. This is enough for a reader that is started
/// together with Palisade.
const WAIT_FOR_READER: Duration = Duration::from_millis(200);

/// Writes a file. If this fails, a file that existed before is unchanged.
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
        // The process that opened it still writes to it. After a rename it would write to the old file.
        return OpenOptions::new().append(true).open(path)?.write_all(bytes);
    }
    replace(&fs::canonicalize(path)?, Some(&old), bytes)
}

/// Writes to a named pipe, if some process reads it. Opening it the usual way would wait for a reader
/// forever.
fn write_to_pipe(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let start = Instant::now();
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    loop {
        match options.open(path) {
            Ok(mut pipe) => {
                // From here on, writing waits for a slow reader.
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

/// Puts a new file at a path that is not a link.
fn replace(path: &Path, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    if old.is_some() {
        // Renaming does not require write permission for the old file, but a read-only file must stay as it
        // is.
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
        // Some file systems do not support this.
        Err(error) if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            return Err(error);
        }
        _ => {}
    }
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The reason why the temporary file could not be created, without its name.
fn no_new_file(error: io::Error) -> io::Error {
    // `tempfile` appends the path to the operating system's text and gives no access to the original error.
    let text = error.to_string();
    let why = text.split(" at path ").next().unwrap_or_default();
    if error.kind() == io::ErrorKind::PermissionDenied {
        let why = format!("its folder must be writable, because the file is replaced by a new one: {why}");
        return io::Error::new(error.kind(), why);
    }
    io::Error::new(error.kind(), why)
}

/// Gives a new file the owner, group and mode of the old one. The permissions of the old group are not given
/// to another group.
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

/// Standard output or error, if it goes to this file. Printed text and the text written here then follow one
/// another in the file.
fn standard_stream(file: &Metadata) -> Option<File> {
    let same = |stream: BorrowedFd<'_>| {
        let stream = File::from(stream.try_clone_to_owned().ok()?);
        let target = stream.metadata().ok()?;
        (target.dev() == file.dev() && target.ino() == file.ino()).then_some(stream)
    };
    same(io::stdout().as_fd()).or_else(|| same(io::stderr().as_fd()))
}

/// The target of a path with links, whether or not it exists.
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

/// Whether a path names an open file of some process, such as `/dev/fd/3`.
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
