//! File names that are not plain text: nothing in them moves the cursor or breaks a line, and saved runs are
//! found again.

use crate::common;

use common::{FENCED, Ran, STORE_BUFFERING, Scratch};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A name with an escape sequence, a line break and a change of the writing direction.
const ODD: &str = "od\u{1b}[31md\n\r\u{202e}\u{9b}x.pal";
/// How it is shown.
const SHOWN: &str = "od\\u{1b}[31md\\n\\r\\u{202e}\\u{9b}x.pal";

#[track_caller]
fn is_plain(text: &str) {
    let odd = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!text.contains(odd), "{}", text.escape_debug());
}

/// Checks that no control characters are printed, and that the name is shown.
#[track_caller]
fn check(ran: Ran, name: &str) -> Ran {
    is_plain(&ran.stdout);
    is_plain(&ran.stderr);
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains(name), "{}{}", ran.stdout, ran.stderr);
    ran
}

#[test]
fn control_characters_in_names_are_escaped() {
    let scratch = Scratch::new("names_control")
        .file(ODD, STORE_BUFFERING)
        .file(&format!("safe{ODD}"), FENCED)
        .file(&format!("bad{ODD}"), "process P { x = 1; }\nprocess Q { y = 1; }\n")
        .file(&format!("trace{ODD}"), "p store x\nend\n")
        .file("run.trace", "p load\u{1b}[2J x\n");
    let safe = format!("safe{ODD}");
    let (bad, trace) = (format!("bad{ODD}"), format!("trace{ODD}"));
    for args in [
        &["check", ODD, "--witness", &format!("w{ODD}")][..],
        &["check", "-q", ODD],
        &["check", "-v", &safe],
        &["check", &bad],
        &["check", "-v", ".", "--expect", ODD],
        &["check", &format!("none{ODD}")],
        &["check", "--witness", &format!("w2{ODD}"), &safe],
        &["robust", ODD],
        &["robust", &safe, "--witness", &format!("w2{ODD}")],
        &["robust", "--triangular", ODD],
        &["fences", ODD],
        &["fences", &safe, "--write", &format!("w2{ODD}")],
        &["fences", ODD, "--html", ODD],
        &["replay", &format!("w{ODD}")],
        &["monitor", &trace],
        &["translate", ODD, "--as-is", "--to", "c"],
        &["translate", ODD, "--as-is", "--to", "promela"],
    ] {
        check(scratch.run(args), SHOWN);
    }
    check(scratch.run(&["check", ".", "--tsv", "t", "--html", "h", "--junit", "j"]), SHOWN);
    for file in ["t", "h", "j"] {
        assert!(scratch.read(file).contains(SHOWN), "{file}");
        assert!(!scratch.read(file).contains(['\u{1b}', '\u{202e}']), "{file}");
    }
    // The same applies to words of a file that are quoted in a message.
    check(scratch.run(&["monitor", "run.trace"]), "load\\u{1b}[2J");
    // JSON contains the exact name.
    let json = scratch.run(&["check", "--format", "json", ODD]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["file"], ODD);
}

#[test]
fn certificates_of_odd_names() {
    let scratch = Scratch::new("names_certificate").file(ODD, FENCED);
    scratch.run(&["check", "-q", ODD, "--certificate", &format!("c{ODD}")]).exits(0);
    check(scratch.run(&["certify", &format!("c{ODD}")]).exits(0), SHOWN);
}

fn bytes(name: &[u8]) -> OsString {
    OsStr::from_bytes(name).to_owned()
}

fn run(scratch: &Scratch, args: &[&OsStr]) -> Ran {
    Ran::new(scratch.command(&[]).args(args).output().expect("the command starts"))
}

#[test]
fn witnesses_of_files_with_names_that_are_not_utf_8_replay() {
    let scratch = Scratch::new("names_bytes");
    let folder = PathBuf::from(OsString::from_vec(b"d\xff".to_vec()));
    if std::fs::create_dir(scratch.path(".").join(&folder)).is_err() {
        // This file system accepts only text as names.
        return;
    }
    let write = |name: &Path, text: &str| {
        std::fs::write(scratch.path(".").join(name), text).expect("a file can be written");
    };
    let other = STORE_BUFFERING.replace("x = 1", "x = 0");
    // Two names that look the same: the text says which one is meant.
    let (file, like) = (folder.join(bytes(b"caf\xe9.pal")), folder.join(bytes(b"caf\xe8.pal")));
    write(&file, STORE_BUFFERING);
    write(&like, &other);
    let plain = PathBuf::from(bytes(b"plain\xfe.pal"));
    write(&plain, STORE_BUFFERING);
    let safe = PathBuf::from(bytes(b"safe\xfe.pal"));
    write(&safe, FENCED);
    for (file, witness) in [(&file, "w1"), (&plain, "w2")] {
        for command in ["check", "robust"] {
            let option = OsStr::new("--witness");
            run(&scratch, &[command.as_ref(), "-q".as_ref(), file.as_os_str(), option, witness.as_ref()])
                .exits(1);
            let ran = scratch.run(&["replay", witness]).exits(0).complains("");
            assert!(ran.stdout.starts_with("valid"), "{}", ran.stdout);
        }
    }
    run(
        &scratch,
        &["check".as_ref(), "-q".as_ref(), safe.as_os_str(), "--certificate".as_ref(), "c".as_ref()],
    )
    .exits(0);
    scratch.run(&["certify", "c"]).exits(0).complains("");
    // The same for witness files whose names are not text.
    let odd = bytes(b"w\xfe");
    run(&scratch, &["check".as_ref(), "-q".as_ref(), plain.as_os_str(), "--witness".as_ref(), &odd]).exits(1);
    run(&scratch, &["replay".as_ref(), "-q".as_ref(), &odd]).exits(0);
}
