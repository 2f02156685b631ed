//! Any error in an input gives a diagnostic with an id and exit code 2, never a panic.

use crate::common;

use common::{STORE_BUFFERING, Scratch};
use snapbox::str;

#[test]
fn missing_files_and_folders() {
    let scratch =
        Scratch::new("bad_files").file("a.pal", STORE_BUFFERING).file("none/readme.md", "# nothing\n");
    scratch.run(&["check", "missing.pal"]).exits(2).prints("").complains(str![[r#"
error[no-such-file]: missing.pal: there is no such file or folder


"#]]);
    scratch.run(&["check", "a.pal/b.pal"]).exits(2).prints("").complains(str![[r#"
error[unreadable-file]: a.pal/b.pal: cannot be read: Not a directory (os error 20)


"#]]);
    scratch.run(&["check", "none"]).exits(2).prints("").complains(str![[r#"
error[no-input-files]: none: the folder contains no programs
 |
 = help: known extensions are .pal, .rmm, .litmus, .trencher, .c, .ll, .rs, .o, .s and .txt (Trencher's); for other files, use --input LANGUAGE

"#]]);
    scratch.run(&["show", "none", "--as", "pal"]).exits(2).prints("").complains(str![[r#"
error[is-a-folder]: none: this is a folder, not a file


"#]]);
    scratch.run(&["check", "none/readme.md"]).exits(2).prints("").complains(str![[r#"
error[unknown-language]: none/readme.md: the file name does not show the language
 |
 = help: known extensions are .pal, .rmm, .litmus, .trencher, .c, .ll, .rs, .o, .s and .txt (Trencher's); for other files, use --input LANGUAGE


"#]]);
}

#[test]
fn files_without_a_program() {
    let scratch = Scratch::new("bad_empty")
        .file("empty.pal", "")
        .file("binary.pal", b"\x7fELF\x02\x01\xff\xfe\x00".as_slice())
        .file("nul.pal", "process P { \0 }")
        .file("half.pal", "shared x;\nprocess P { x = ");
    scratch.run(&["check", "empty.pal"]).exits(2).prints("").complains(str![[r#"
error[no-process]: the program has no process that starts automatically
 --> empty.pal:1:1
  |
1 |
  | ^
  |
  = help: declare one: `process P { … }`


"#]]);
    scratch.run(&["check", "binary.pal"]).exits(2).prints("").complains(str![[r#"
error[not-text]: binary.pal: this is a compiled program
 |
 = help: give its source or its object files (.o); `palisade run` runs programs that `palisade cc` made


"#]]);
    scratch.run(&["check", "half.pal"]).exits(2).prints("").complains(str![[r#"
error[unclosed-block]: expected `}`, found the end of the file
 --> half.pal:2:11
  |
2 | process P { x = 
  |           ^     -
  |           |
  |           this block is not closed

error[unexpected-token]: expected an expression, found the end of the file
 --> half.pal:2:17
  |
2 | process P { x = 
  |                 ^ expected an expression

half.pal: 2 errors

"#]]);
    let ran = scratch.run(&["check", "nul.pal"]).exits(2);
    assert!(ran.stderr.contains("error["), "{}", ran.stderr);
}

#[test]
fn all_errors_are_reported_at_once() {
    let program = "\
shared x, x: 0..1;
process P { goto nowhere; }
process P { x = f(1, 2); }
proc f(a) -> int { return a; }
process Q { let r = 1 / 0; y = r; }
";
    Scratch::new("bad_many").file("a.pal", program).run(&["check", "a.pal"]).exits(2).prints("").complains(
        str![[r#"
error[duplicate-name]: the shared variable `x` is declared twice
 --> a.pal:1:11
  |
1 | shared x, x: 0..1;
  |        -  ^ declared again here
  |        |
  |        first declared here

error[unknown-label]: there is no label `nowhere` here
 --> a.pal:2:18
  |
2 | process P { goto nowhere; }
  |                  ^^^^^^^

error[duplicate-name]: the process `P` is declared twice
 --> a.pal:3:9
  |
2 | process P { goto nowhere; }
  |         - first declared here
3 | process P { x = f(1, 2); }
  |         ^ declared again here

error[wrong-arity]: the procedure `f` takes 1 argument, not 2
 --> a.pal:3:17
  |
3 | process P { x = f(1, 2); }
  |                 ^
4 | proc f(a) -> int { return a; }
  |      - declared here

error[constant-fault]: division by zero
 --> a.pal:5:21
  |
5 | process Q { let r = 1 / 0; y = r; }
  |                     ^^^^^

error[unknown-name]: there is no variable or register `y`
 --> a.pal:5:28
  |
5 | process Q { let r = 1 / 0; y = r; }
  |                            ^
  |
  = help: declare it: `shared y;` or `let y = …;`

a.pal: 6 errors

"#]],
    );
}

#[test]
fn large_inputs_are_refused_or_read() {
    let nested = |open: &str, close: &str| {
        format!("process P {{ let r = {}1{}; }}\n", open.repeat(200_000), close.repeat(200_000))
    };
    let scratch = Scratch::new("bad_large")
        .file("parentheses.pal", nested("(", ")"))
        .file("minus.pal", nested("- ", ""))
        .file("sum.pal", nested("1 + ", ""))
        .file("blocks.pal", format!("process P {}\n", "{".repeat(500_000)))
        .file("names.pal", format!("process P {{ {} }}\n", "y = 1; ".repeat(100_000)))
        .file("one_word.pal", "x".repeat(3_000_000));
    for file in ["parentheses.pal", "minus.pal", "sum.pal", "blocks.pal", "names.pal", "one_word.pal"] {
        let ran = scratch.run(&["check", file]).exits(2);
        assert!(ran.stderr.starts_with("error["), "{file}: {:.200}", ran.stderr);
        assert!(ran.stderr.len() < 100_000, "{file}: {} bytes of complaints", ran.stderr.len());
    }
}

#[test]
fn wrong_flags() {
    let scratch = Scratch::new("bad_flags").file("a.pal", STORE_BUFFERING);
    for args in [
        &["check"] as &[&str],
        &["check", "a.pal", "--model", "arm"],
        &["check", "a.pal", "--engine", "magic"],
        &["check", "a.pal", "--timeout", "-1"],
        &["check", "a.pal", "--memory", "0"],
        &["check", "a.pal", "--jobs", "0"],
        &["check", "a.pal", "--threads", "none"],
        &["check", "a.pal", "--threads", "5000000"],
        &["check", "a.pal", "--max-buffer", "0"],
        &["check", "a.pal", "--int-range", "9..1"],
        &["check", "a.pal", "--input", "cobol"],
        &["check", "a.pal", "-q", "-v"],
        &["check", "a.pal", "a.pal", "--witness", "w.json"],
        &["show", "a.pal"],
        &["frobnicate"],
        &[],
    ] {
        let ran = scratch.run(args).exits(2);
        assert_eq!(ran.stdout, "", "{args:?}");
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn files_that_cannot_be_written() {
    let scratch = Scratch::new("bad_write").file("a.pal", STORE_BUFFERING);
    scratch.run(&["check", "-q", "a.pal", "--witness", "no/such/folder/w.json"]).exits(2).complains(str![[
        r#"
error[unwritable-file]: no/such/folder/w.json: cannot be written: No such file or directory (os error 2)

"#
    ]]);
    scratch.run(&["check", "-q", "a.pal", "--tsv", "no/such/folder/t.tsv"]).exits(2);
}

#[test]
fn colour_only_on_a_terminal() {
    let scratch = Scratch::new("bad_colour").file("a.pal", "process");
    let ran = scratch.run(&["check", "a.pal"]).exits(2);
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
}

#[test]
#[cfg(unix)]
fn names_that_are_not_text() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new("bad_names");
    let name = std::ffi::OsStr::from_bytes(b"\xff.pal");
    let run = || common::Ran::new(scratch.command(&["check", "-q"]).arg(name).output().expect("it starts"));
    assert!(run().exits(2).stderr.contains("error[no-such-file]"));
    std::fs::write(scratch.path("").join(name), STORE_BUFFERING).expect("such a file can be written");
    run().exits(1);
}

#[test]
fn extensions_in_capitals() {
    let scratch = Scratch::new("bad_capitals").file("SB.PAL", STORE_BUFFERING).file("sb.S", "nop\n");
    scratch.run(&["check", "-q", "SB.PAL"]).exits(1);
    // This is assembly for the preprocessor, which is not started.
    let ran = scratch.run(&["check", "-q", "sb.S"]).exits(2);
    assert!(ran.stderr.contains("error[unknown-language]"), "{}", ran.stderr);
}

#[test]
fn names_like_options() {
    let scratch = Scratch::new("bad_dash").file("-x.pal", STORE_BUFFERING);
    let ran = scratch.run(&["check", "--", "-x.pal"]).exits(2);
    assert!(ran.stderr.contains("write './-x.pal' instead of '-- -x.pal'"), "{}", ran.stderr);
    scratch.run(&["check", "-q", "./-x.pal"]).exits(1);
    let ran = scratch.run(&["check", "--", "-y.pal"]).exits(2);
    assert!(!ran.stderr.contains("-y.pal"), "{}", ran.stderr);
}

/// What to do about a program that `palisade run` cannot start.
#[test]
fn programs_that_cannot_be_started() {
    let scratch = Scratch::new("cannot_start").file("here", "not a program").file("lock.c", "int main;");
    for (program, help) in [
        ("here", "error[cannot-start]: here: cannot be started: there is no program `here` on the PATH"),
        ("here", "the one in this folder is started with `palisade run ./here`"),
        ("./gone", "give the path of a program, such as `palisade run ./test`"),
        ("lock.c", "error[cannot-start]: lock.c: cannot be started: it is not a program"),
        ("./lock.c", "this is a source file: compile it with `palisade cc`"),
    ] {
        let ran = scratch.run(&["run", program]).exits(2);
        assert!(ran.stderr.contains("error[cannot-start]") && ran.stderr.contains(help), "{}", ran.stderr);
    }
}
