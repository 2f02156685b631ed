//! Folders for tests, empty at the start.

use std::path::{Path, PathBuf};

/// The folder `name` of the test that calls this. The test harness names the thread of a test after the test, so
/// tests that chose the same name do not share a folder, and the path is the same in every run. With one thread for
/// all tests, the thread is `main`: then tests run one after another.
///
/// `parent` is where this executable keeps such folders: a folder of `CARGO_TARGET_TMPDIR`, which all packages share.
///
/// # Panics
/// If an old folder cannot be removed, or a new one cannot be made.
pub fn scratch_folder(parent: &Path, name: &str) -> PathBuf {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("helper").replace("::", ".");
    let folder = parent.join(test).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("an old scratch folder can be removed");
    }
    std::fs::create_dir_all(&folder).expect("a scratch folder can be made");
    folder
}
