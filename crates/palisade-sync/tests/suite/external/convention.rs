//! Loom's conventions, as docs/rust-tests.md describes them: two crates outside the workspace, one of which depends
//! on the other. Both use the standard library, or `palisade-sync` with `--cfg palisade`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A lock of two flags. Without the fence, both threads can enter with store buffers.
const FLAGS: &str = r#"//! A lock of two flags.
mod shim {
    #[cfg(not(palisade))]
    pub use std::sync;
    #[cfg(palisade)]
    pub use palisade_sync::sync;
}

use shim::sync::atomic::{AtomicBool, Ordering, fence};

/// A lock of two flags, which may not be given.
pub struct Flags([AtomicBool; 2]);

impl Flags {
    /// Both are down.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Flags {
        Flags([AtomicBool::new(false), AtomicBool::new(false)])
    }

    /// Whether a thread gets the lock.
    pub fn try_lock(&self, me: usize, fenced: bool) -> bool {
        self.0[me].store(true, Ordering::Release);
        if fenced {
            fence(Ordering::SeqCst);
        }
        !self.0[1 - me].load(Ordering::Acquire)
    }
}

#[cfg(palisade)]
#[cfg(test)]
mod tests {
    use super::Flags;
    use palisade_sync::sync::Arc;
    use palisade_sync::thread;

    #[test]
    fn in_the_crate_itself() {
        palisade_sync::test(|| {
            let flags = Arc::new(Flags::new());
            let other = flags.clone();
            let second = thread::spawn(move || other.try_lock(1, true));
            assert!(!(flags.try_lock(0, true) && second.join().unwrap()));
        });
    }
}
"#;

/// A test of another crate that uses the lock.
const TEST: &str = r#"#![cfg(palisade)]
use palisade_sync::sync::Arc;
use palisade_sync::{Checker, Machines, thread};
use user::Twice;

fn both(fenced: bool) {
    let twice = Arc::new(Twice::new());
    let other = twice.clone();
    let second = thread::spawn(move || other.enter(1, fenced));
    let first = twice.enter(0, fenced);
    assert!(!(first && second.join().unwrap()));
}

#[test]
fn in_the_folder_of_tests() {
    palisade_sync::test(|| both(true));
    let failed = Checker::new().check(|| both(false)).failed.expect("both enter");
    let needs_buffers = matches!(failed.machines, Some(Machines::OnlyBuffered | Machines::Buffered { .. }));
    assert!(needs_buffers, "{failed:?}");
}
"#;

const USER: &str = r#"//! Uses the lock.
pub struct Twice(flags::Flags);

impl Twice {
    /// Nobody is inside.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Twice {
        Twice(flags::Flags::new())
    }

    /// Whether a thread may enter.
    pub fn enter(&self, me: usize, fenced: bool) -> bool {
        self.0.try_lock(me, fenced)
    }
}

#[cfg(test)]
#[cfg(not(palisade))]
mod tests {
    #[test]
    fn with_the_standard_library() {
        assert!(super::Twice::new().enter(0, true));
    }
}
"#;

fn manifest(name: &str, dependency: &str) -> String {
    let sync = env!("CARGO_MANIFEST_DIR");
    format!(
        r#"[package]
name = "{name}"
version = "0.0.0"
edition = "2021"

[dependencies]
{dependency}

[target.'cfg(palisade)'.dependencies]
palisade-sync = {{ path = "{sync}" }}

[lints.rust]
unexpected_cfgs = {{ level = "deny", check-cfg = ["cfg(palisade)"] }}

[workspace]
"#
    )
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
    std::fs::write(path, text).expect("a file can be written");
}

fn cargo_test(folder: &Path, target: &str, flags: &str) -> Output {
    Command::new(env!("CARGO"))
        .args(["test", "--offline"])
        .current_dir(folder)
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CARGO_INCREMENTAL", "0")
        // Building takes longest here.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join(target))
        .output()
        .expect("cargo can be started")
}

#[track_caller]
fn passes(output: &Output, test: &str) {
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}\n{errors}");
    assert!(printed.contains(&format!("{test} ... ok")), "{test} ran: {printed}\n{errors}");
}

#[test]
fn crates_outside_of_the_workspace() {
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("convention");
    let (flags, user) = (folder.join("flags"), folder.join("user"));
    write(&flags, "Cargo.toml", &manifest("flags", ""));
    write(&flags, "src/lib.rs", FLAGS);
    write(&user, "Cargo.toml", &manifest("user", "flags = { path = \"../flags\" }"));
    write(&user, "src/lib.rs", USER);
    write(&user, "tests/both.rs", TEST);
    // The versions that are known to be there.
    let lock = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock"));
    for one in [&flags, &user] {
        write(one, "Cargo.lock", lock.as_deref().expect("the workspace has a lock file"));
    }
    passes(&cargo_test(&user, "convention-std", ""), "tests::with_the_standard_library");
    let tested = cargo_test(&user, "convention-palisade", "--cfg palisade");
    passes(&tested, "in_the_folder_of_tests");
    let printed = String::from_utf8_lossy(&tested.stdout);
    assert!(!printed.contains("with_the_standard_library"), "{printed}");
    passes(&cargo_test(&flags, "convention-palisade", "--cfg palisade"), "tests::in_the_crate_itself");
}
