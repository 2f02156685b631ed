//! Where compiled runtimes are kept: a folder that only the user can access.
//!
//! *Problem.* Files from the cache are linked into the user's programs. Other users must not be able to put
//! files there.
//!
//! *How.*
//! 1. The folder belongs to the user and has mode 0700. No other user can replace it: every folder above it
//!    belongs to the user or to root, and is not world-writable unless it is sticky. If others could write to
//!    a folder of ours, it is closed to them first. After that, an entry in it is trusted only if it passes
//!    the next test.
//! 2. An entry is a plain file that belongs to the user, has no other links and is not writable by others.
//!    Its name contains the SHA-256 of its content. A file that fails this test is removed and made again.
//! 3. The bytes that were checked are the bytes that are used: they are read once.
//! 4. A new entry is written to a file of its own and then renamed, so two builds at the same time do not
//!    interfere.
//!
//! If no folder can be used, a private temporary one is made and removed at the end. Everything still works, but
//! nothing is kept.

use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
pub use tempfile::TempDir;
use tempfile::{Builder, NamedTempFile};

/// Access for the owner only.
const PRIVATE: u32 = 0o700;
/// Writable by the group or by everyone.
const OTHERS_WRITE: u32 = 0o022;
/// Writable by everyone.
const ALL_WRITE: u32 = 0o002;
/// Entries of the folder can be renamed only by their owners.
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;
/// An upper bound on the size of a runtime.
const LARGEST: u64 = 64 << 20;

/// A folder for files that are made once.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    /// The folder, if it is temporary.
    temporary: Option<TempDir>,
    /// Why the user's own folder is not used, if it exists and was refused.
    refused: Option<String>,
}

impl Cache {
    /// The user's cache, according to these environment variables: `PALISADE_CACHE`, or a folder in
    /// `XDG_CACHE_HOME` or in `HOME`.
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> io::Result<Cache> {
        match user_folder(variable) {
            Some(folder) => Cache::in_folder(&folder),
            None => Cache::private(None),
        }
    }

    /// A cache in this folder, which is created if it does not exist. If it cannot be trusted or created, it
    /// is not used.
    pub fn in_folder(folder: &Path) -> io::Result<Cache> {
        match secured(folder) {
            Ok(folder) => Ok(Cache { folder, temporary: None, refused: None }),
            // A home directory that cannot be written to is not worth a complaint.
            Err(Refused::Unusable) => Cache::private(None),
            Err(Refused::Because(why)) => Cache::private(Some(format!("{}: {why}", folder.display()))),
        }
    }

    fn private(refused: Option<String>) -> io::Result<Cache> {
        let temporary = temporary_folder("palisade-cache-")?;
        Ok(Cache { folder: temporary.path().to_owned(), temporary: Some(temporary), refused })
    }

    /// Why the user's own folder is not used, if it exists and cannot be trusted.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the folder is removed when this value is dropped.
    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// The path and content of the entry with this name. Entries that have changed since they were made are
    /// removed.
    pub fn get(&self, name: &str) -> Option<(PathBuf, Vec<u8>)> {
        let mut entries: Vec<PathBuf> = fs::read_dir(&self.folder)
            .ok()?
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(|file| digest_in(file, name).is_some()))
            .map(|entry| entry.path())
            .collect();
        // Sorted, so that the choice is the same every time.
        entries.sort_unstable();
        entries.into_iter().find_map(|path| match read_own(&path) {
            Ok(content) if path.file_name()?.to_str()? == file_name(name, &content) => Some((path, content)),
            _ => {
                // If it cannot be removed, it is still not used.
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
                None
            }
        })
    }

    /// Keeps an entry. Returns its path, or why it could not be kept.
    pub fn put(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.folder.join(file_name(name, content));
        let mut file = NamedTempFile::new_in(&self.folder)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }
}

/// The variable that names a folder for temporary files. Whoever has set it removes the folder.
pub const TEMPORARY: &str = "PALISADE_TEMPORARY";

/// The folder for temporary files that was given to this process.
pub fn given_folder() -> Option<PathBuf> {
    std::env::var_os(TEMPORARY).map(PathBuf::from).filter(|folder| folder.is_dir())
}

/// A new private folder among the temporary files.
pub fn temporary_folder(prefix: &str) -> io::Result<TempDir> {
    let folder = given_folder().unwrap_or_else(std::env::temp_dir);
    Builder::new().prefix(prefix).permissions(Permissions::from_mode(PRIVATE)).tempdir_in(folder)
}

/// The SHA-256 of `content`, in hexadecimal.
pub fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file_name(name: &str, content: &[u8]) -> String {
    format!("{name}-{}.o", digest(content))
}

fn digest_in<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".o")
}

/// The folder that the user wants. Paths must be absolute, as the specification of these variables requires.
fn user_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
    set("PALISADE_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|folder| folder.join("palisade")))
        .or_else(|| absolute("HOME").map(|folder| folder.join(".cache/palisade")))
}

/// Why a folder is not used.
#[derive(Debug)]
enum Refused {
    /// It cannot be created or written to.
    Unusable,
    /// It cannot be trusted.
    Because(String),
}

impl From<io::Error> for Refused {
    fn from(_: io::Error) -> Refused {
        Refused::Unusable
    }
}

/// The real path of the folder, which is created if necessary and closed to others.
fn secured(folder: &Path) -> Result<PathBuf, Refused> {
    let me = rustix::process::geteuid().as_raw();
    let because = |why: String| Err(Refused::Because(why));
    let folder = std::path::absolute(folder)?;
    // Links on the path are followed if the user or the administrator made them.
    for part in folder.ancestors() {
        if let Ok(found) = fs::symlink_metadata(part)
            && found.is_symlink()
            && !is_trusted(&found, me)
        {
            return because(format!("{} is a link that user {} made", part.display(), found.uid()));
        }
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(PRIVATE).create(&folder)?;
    let folder = folder.canonicalize()?;
    let found = fs::symlink_metadata(&folder)?;
    if found.uid() != me {
        return because(format!("it belongs to user {}, not to user {me}", found.uid()));
    }
    for above in folder.ancestors().skip(1) {
        let found = fs::symlink_metadata(above)?;
        if !is_trusted(&found, me) {
            return because(format!("{} belongs to user {}", above.display(), found.uid()));
        }
        if found.mode() & ALL_WRITE != 0 && found.mode() & STICKY == 0 {
            return because(format!("everyone can write to {}", above.display()));
        }
    }
    if found.mode() & 0o777 != PRIVATE {
        fs::set_permissions(&folder, Permissions::from_mode(PRIVATE))?;
    }
    // A folder that cannot be written to, for instance on a read-only disk, cannot keep anything.
    NamedTempFile::new_in(&folder)?;
    Ok(folder)
}

fn is_trusted(found: &Metadata, me: u32) -> bool {
    found.uid() == me || found.uid() == ROOT
}

/// Reads a plain file that belongs to the user and that no one else can have written.
fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let foreign = || io::Error::other("not a plain file that belongs to the user");
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let mut file: File = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let found = file.metadata()?;
    let me = rustix::process::geteuid().as_raw();
    let is_own =
        found.is_file() && found.uid() == me && found.nlink() == 1 && found.mode() & OTHERS_WRITE == 0;
    if !is_own || found.len() > LARGEST {
        return Err(foreign());
    }
    let mut content = Vec::new();
    Read::by_ref(&mut file).take(LARGEST).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    /// A folder for one test. The folder in which the tests run may be open to others; this one is not.
    fn scratch() -> TempDir {
        temporary_folder("palisade-test-").expect("a scratch folder can be made")
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("it exists").mode() & 0o777
    }

    fn keeps(folder: &Path) -> bool {
        !Cache::in_folder(folder).expect("a cache").is_temporary()
    }

    #[test]
    fn folders_by_the_environment() {
        let check = |set: &[(&str, &str)], expected: Option<&str>| {
            let variable =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
            assert_eq!(user_folder(variable), expected.map(PathBuf::from), "{set:?}");
        };
        check(&[("PALISADE_CACHE", "/p"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], Some("/p"));
        check(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], Some("/x/palisade"));
        check(&[("XDG_CACHE_HOME", ""), ("HOME", "/h")], Some("/h/.cache/palisade"));
        check(&[("XDG_CACHE_HOME", "x"), ("HOME", "h")], None);
        check(&[], None);
    }

    #[test]
    fn damaged_entries_are_removed() {
        let scratch = scratch();
        let cache = Cache::in_folder(&scratch.path().join("a/b")).expect("a cache");
        assert!(!cache.is_temporary());
        assert_eq!((mode(cache.folder()), mode(&scratch.path().join("a"))), (PRIVATE, PRIVATE));
        assert_eq!(cache.get("r"), None);
        let path = cache.put("r", b"code").expect("it can be kept");
        assert_eq!(cache.get("r"), Some((path.clone(), b"code".to_vec())));
        assert_eq!(cache.get("other"), None);
        for damaged in [&b"cod"[..], b"", b"codx", b"code and more"] {
            fs::write(&path, damaged).expect("the file can be damaged");
            assert_eq!(cache.get("r"), None, "{damaged:?}");
            assert!(!path.exists(), "a damaged entry is removed");
            cache.put("r", b"code").expect("it can be made again");
            assert_eq!(cache.get("r").expect("an entry").1, b"code");
        }
    }

    #[test]
    fn entries_that_others_could_have_written_are_not_used() {
        let scratch = scratch();
        let cache = Cache::in_folder(&scratch.path().join("c")).expect("a cache");
        let path = cache.put("r", b"code").expect("it can be kept");
        // Writable by others.
        fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("a mode can be set");
        assert_eq!(cache.get("r"), None);
        // A link, even to the right content.
        let elsewhere = scratch.path().join("elsewhere");
        fs::write(&elsewhere, b"code").expect("a file can be written");
        symlink(&elsewhere, &path).expect("a link can be made");
        assert_eq!(cache.get("r"), None);
        assert!(elsewhere.exists(), "only the link is removed");
        // A file with two names.
        fs::hard_link(&elsewhere, &path).expect("a link can be made");
        assert_eq!(cache.get("r"), None);
        // A file of another user, if we may change owners.
        cache.put("r", b"code").expect("it can be kept");
        if chown(&path, Some(4711), None).is_ok() {
            assert_eq!(cache.get("r"), None);
        }
        // A pipe without a writer does not block.
        let _ = fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("`mkfifo` can be run").success());
        assert_eq!(cache.get("r"), None);
        // A folder in the place of a file.
        fs::create_dir(&path).expect("a folder can be made");
        fs::write(path.join("something"), b"code").expect("a file can be written");
        assert_eq!(cache.get("r"), None);
        assert!(!path.exists(), "the folder is removed");
        cache.put("r", b"code").expect("it can be made again");
        assert_eq!(cache.get("r").expect("an entry").1, b"code");
    }

    #[test]
    fn folders_are_closed_or_refused() {
        let scratch = scratch();
        let folder = scratch.path().join("open");
        fs::create_dir(&folder).expect("a folder can be made");
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("a mode can be set");
        assert!(keeps(&folder));
        assert_eq!(mode(&folder), PRIVATE, "an own folder is closed");
        // A folder above it that is world-writable.
        let above = scratch.path().join("above");
        fs::create_dir(&above).expect("a folder can be made");
        fs::set_permissions(&above, Permissions::from_mode(0o777)).expect("a mode can be set");
        let refused = Cache::in_folder(&above.join("cache")).expect("a cache");
        assert!(refused.is_temporary());
        assert!(refused.refused().is_some_and(|why| why.contains("everyone can write to")));
        fs::set_permissions(&above, Permissions::from_mode(0o1777)).expect("a mode can be set");
        assert!(
            keeps(&above.join("cache")),
            "a sticky folder is fine, because only owners can rename its entries"
        );
        // The user's own link is followed; another user's link is not.
        let link = scratch.path().join("link");
        symlink(&folder, &link).expect("a link can be made");
        assert!(keeps(&link));
        if std::os::unix::fs::lchown(&link, Some(4711), None).is_ok() {
            assert!(!keeps(&link));
            assert!(!keeps(&link.join("below")));
            chown(&folder, Some(4711), None).expect("a folder can be given away");
            assert!(!keeps(&folder));
            assert!(!keeps(&folder.join("below")));
        }
    }

    #[test]
    fn without_a_folder_for_the_cache() {
        let cache = Cache::of_user(|_| None).expect("a cache");
        assert!(cache.is_temporary() && cache.refused().is_none());
        assert_eq!(mode(cache.folder()), PRIVATE);
        let folder = cache.folder().to_owned();
        cache.put("r", b"code").expect("it can be kept until the end");
        assert_eq!(cache.get("r").expect("an entry").1, b"code");
        drop(cache);
        assert!(!folder.exists());
        // A home directory that is a file, as for users that may not log in.
        let cache = Cache::of_user(|name| (name == "HOME").then(|| "/dev/null".into())).expect("a cache");
        assert!(cache.is_temporary() && cache.refused().is_none());
    }

    #[test]
    fn two_at_once() {
        let scratch = scratch();
        let folder = scratch.path().join("c");
        std::thread::scope(|scope| {
            for content in [b"one", b"two"] {
                let folder = &folder;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let cache = Cache::in_folder(folder).expect("a cache");
                        cache.put("r", content).expect("it can be kept");
                        let (_, found) = cache.get("r").expect("an entry");
                        assert!(
                            [b"one", b"two"].contains(&found.as_slice().try_into().expect("three bytes"))
                        );
                    }
                });
            }
        });
    }
}
