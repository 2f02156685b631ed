//! What is handed to others: crates, a Debian package, the GitHub action.

use crate::common::{ENDLESS, FENCED, Ran, STORE_BUFFERING, Scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ran(command: &mut Command) -> Ran {
    Ran::new(command.output().expect("the command can be started"))
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).args(arguments).args(["--offline"]);
    command
}

/// The crates that may be published. Those that the others need are among them, or cargo would refuse to package.
#[test]
fn crates_can_be_packaged() {
    let metadata = ran(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"])).exits(0);
    let metadata: Value = serde_json::from_str(&metadata.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let published: Vec<&Value> = packages.iter().filter(|package| package["publish"].is_null()).collect();
    let names: Vec<&str> = published.iter().filter_map(|package| package["name"].as_str()).collect();
    for name in ["palisade", "palisade-sync"] {
        assert!(names.contains(&name), "{name} is published: {names:?}");
    }
    for package in &published {
        for field in ["description", "license", "rust_version", "documentation"] {
            assert!(package[field].is_string(), "{}: {field}", package["name"]);
        }
    }
    let scratch = Scratch::new("packages");
    let mut command = cargo(&["package", "--quiet", "--no-verify", "--allow-dirty"]);
    for name in &names {
        command.args(["-p", name]);
    }
    ran(command.env("CARGO_TARGET_DIR", scratch.folder())).exits(0);
    let made = std::fs::read_dir(scratch.path("package")).expect("packages were made");
    let made = made.filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|ending| ending == "crate"))
    });
    assert_eq!(made.count(), names.len());
}

/// The Debian package has what it should have, and its command starts.
#[test]
fn the_debian_package() {
    let scratch = Scratch::new("deb");
    let mut command = Command::new(root().join("packaging/deb"));
    // The binary of the tests is large.
    command.arg(env!("CARGO_BIN_EXE_palisade")).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    let made = ran(&mut command).exits(0);
    let package = root().join(made.stdout.trim_end());
    ran(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(scratch.folder())).exits(0);
    std::fs::remove_file(&package).expect("the package can be removed");
    for file in [
        "usr/share/man/man1/palisade-check.1.gz",
        "usr/share/bash-completion/completions/palisade",
        "usr/share/zsh/vendor-completions/_palisade",
        "usr/share/fish/vendor_completions.d/palisade.fish",
        "usr/share/doc/palisade/copyright",
    ] {
        assert!(scratch.path(file).is_file(), "{file}");
    }
    let version = ran(Command::new(scratch.path("usr/bin/palisade")).arg("--version")).exits(0);
    assert!(version.stdout.starts_with("palisade "), "{}", version.stdout);
}

/// The last step of the action, with these inputs. Returns its exit code and its outputs.
fn action(scratch: &Scratch, files: &str, options: &str, unknown: &str) -> (Option<i32>, String) {
    let outputs = scratch.path("outputs");
    std::fs::write(&outputs, "").expect("a file can be written");
    let mut command = Command::new(root().join("packaging/action-check"));
    command.current_dir(scratch.folder()).env("PALISADE", env!("CARGO_BIN_EXE_palisade"));
    command.env("FILES", files).env("OPTIONS", options).env("UNKNOWN", unknown);
    command.env("RESULTS", scratch.folder()).env("GITHUB_OUTPUT", &outputs);
    let code = command.output().expect("the script can be started").status.code();
    (code, scratch.read("outputs"))
}

#[test]
fn the_action() {
    let scratch = Scratch::new("action").file("good one.pal", FENCED).file("bad.pal", STORE_BUFFERING);
    let scratch = scratch.file("endless.pal", ENDLESS);
    let (code, outputs) = action(&scratch, "  good one.pal\n\n", "--model tso --timeout 60", "fail");
    assert_eq!(code, Some(0), "{outputs}");
    assert!(outputs.ends_with("exit-code=0\n"), "{outputs}");
    let (code, outputs) = action(&scratch, "good one.pal\nbad.pal\n", "", "pass");
    assert_eq!(code, Some(1), "{outputs}");
    assert!(scratch.read("palisade.sarif").contains("bad.pal"));
    assert!(scratch.read("palisade.xml").contains("<failure"));
    let short = "--timeout 0.1";
    let (code, outputs) = action(&scratch, "endless.pal", short, "fail");
    assert_eq!(code, Some(3), "{outputs}");
    let (code, outputs) = action(&scratch, "endless.pal", short, "pass");
    assert_eq!(code, Some(0), "{outputs}");
    assert!(outputs.ends_with("exit-code=3\n"), "{outputs}");
    assert_eq!(action(&scratch, " \n", "", "fail").0, Some(2));
    assert_eq!(action(&scratch, "bad.pal", "", "maybe").0, Some(2));
}
