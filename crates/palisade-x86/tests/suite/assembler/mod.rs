//! Assembly as our reader reads it, against the object file that `as` makes of the same text.
//!
//! Sections, relocations, symbols, decoded instructions, listings and modules have to be the same. The texts are what
//! compilers write, and all forms of the instructions that matter. Random instructions are printed and read again.
//! `PALISADE_SEEDS=1000` looks further.

mod compilers;
mod instructions;
mod layout;
mod random;
mod refused;

use crate::common::run;
use palisade_x86::{Contents, File, dump, lift};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

/// A folder for what compilers and assemblers write.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What `as` makes of a text, if it takes it.
    fn assembled_if_possible(&self, text: &str) -> Option<Vec<u8>> {
        std::fs::write(self.at("text.s"), text).expect("the text can be written");
        let mut command = Command::new("as");
        command.arg("--64").arg("-o").arg(self.at("text.o")).arg(self.at("text.s"));
        let made = command.output().expect("`as` can be run");
        made.status.success().then(|| std::fs::read(self.at("text.o")).expect("the object file was written"))
    }

    /// What `as` makes of a text.
    fn assembled(&self, text: &str) -> Vec<u8> {
        // Some assemblers do not know what clang says about symbols to the linker, and folders of files.
        let known = |line: &&str| !line.contains(".addrsig");
        let of_file = |line: &str| match line.trim_start().starts_with(".file") && !line.contains("md5") {
            true => line.replace("\" \"", "/"),
            false => line.to_owned(),
        };
        let known: Vec<String> = text.lines().filter(known).map(of_file).collect();
        std::fs::write(self.at("text.s"), known.join("\n") + "\n").expect("the text can be written");
        run(Command::new("as").arg("--64").arg("-o").arg(self.at("text.o")).arg(self.at("text.s")));
        std::fs::read(self.at("text.o")).expect("the object file was written")
    }
}

/// How much is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// What is in the file.
    File,
    /// That, and the listing and the module.
    Program,
}

/// Compares both ways to read a text.
#[track_caller]
fn check(folder: &Folder, what: &str, text: &str, depth: Depth) {
    let object = folder.assembled(text);
    let expected = File { name: "text.s", contents: Contents::Object(&object) };
    let found = File { name: "text.s", contents: Contents::Assembly(text) };
    let read = |file: &File<'_>| match dump(file) {
        Ok(dumped) => dumped,
        Err(errors) => {
            let shown = errors.iter().map(|error| {
                let at = text.get(error.span().range()).unwrap_or_default();
                format!("{}: {at}", error.message)
            });
            panic!("{what} is refused: {}", shown.collect::<Vec<_>>().join("\n"))
        }
    };
    same(what, &read(&expected), &read(&found));
    if depth == Depth::File {
        return;
    }
    let [expected, found] = [expected, found].map(|file| lift(&[file]));
    match (expected, found) {
        (Ok(expected), Ok(found)) => {
            let [expected, found] = [&expected[0], &found[0]];
            // Without `.loc`, assembly is its own listing, and places are lines of the text.
            if found.listing == text {
                let [expected, found] =
                    [expected, found].map(|lifted| renumbered(&without_places(&lifted.module)));
                return same(what, &expected, &found);
            }
            same(what, &expected.listing, &found.listing);
            same(what, &renumbered(&expected.module), &renumbered(&found.module));
        }
        (Err((_, expected)), Err((_, found))) => assert_eq!(expected[0].message, found[0].message, "{what}"),
        (expected, found) => panic!("{what}: {expected:?} and {found:?}"),
    }
}

#[track_caller]
fn same(what: &str, expected: &str, found: &str) {
    let different: Vec<String> = expected
        .lines()
        .zip(found.lines())
        .filter(|(one, other)| one != other)
        .take(5)
        .map(|(one, other)| format!("`{other}` instead of `{one}`"))
        .collect();
    assert!(different.is_empty(), "{what}: {}", different.join("\n"));
    assert_eq!(expected.lines().count(), found.lines().count(), "{what}: the end differs");
}

/// A module without places.
fn without_places(module: &str) -> String {
    let mut out = String::new();
    for line in
        module.lines().filter(|line| !line.contains("!DILocation(") && !line.contains("!DISubprogram("))
    {
        let code = line.split_once(", !dbg !").map_or(line, |(code, _)| code);
        out.push_str(code);
        out.push('\n');
    }
    out
}

/// A module in which sections are numbered as they come. Object files have more of them.
fn renumbered(module: &str) -> String {
    let mut numbers: Vec<&str> = Vec::new();
    let mut parts = module.split("at.");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        if digits == 0 {
            write!(out, "at.{part}").expect("writing to a string");
            continue;
        }
        let number = numbers.iter().position(|number| *number == &part[..digits]).unwrap_or(numbers.len());
        if number == numbers.len() {
            numbers.push(&part[..digits]);
        }
        write!(out, "at.{number}{}", &part[digits..]).expect("writing to a string");
    }
    out
}
