//! Transcripts of commands on C programs.

use crate::common;

use common::Scratch;
use snapbox::str;

/// Two translation units with an error in each place where one can be.
const BROKEN: &str = "#include \"list.h\"\nint main(void)\n{\n    retrun 0;\n}\n";

#[test]
fn what_the_compiler_says_about_broken_c() {
    let scratch =
        Scratch::new("c_broken").file("broken.c", BROKEN).file("list.h", "int next(void)\nint x;\n");
    scratch.run(&["check", "broken.c"]).exits(2).prints("").complains(str![[r#"
error[c-error]: expected function body after function declarator
 --> list.h:2:1
  |
2 | int x;
  | ^^^
  |

error[c-error]: use of undeclared identifier 'retrun'
 --> broken.c:4:5
  |
4 |     retrun 0;
  |     ^^^^^^
  |

broken.c: 2 errors

"#]]);
}

#[test]
fn compilers_that_are_not_there() {
    let scratch =
        Scratch::new("c_no_clang").file("main.c", "int main(void) { return 0; }\n").file("bin/cc", "");
    let mut command = scratch.command(&["check", "main.c"]);
    command.env("PATH", scratch.path("bin")).env_remove("CC");
    let ran = common::Ran::new(command.output().expect("the command can be started"));
    ran.exits(2).prints("").complains(str![[r#"
error[no-clang]: main.c: clang is not installed, and C programs are read through it
 |
 = help: install clang 14 or later (`apt install clang`, `dnf install clang`, `brew install llvm`), or name one in CC

"#]]);
}

#[test]
fn other_languages_and_options_are_refused() {
    let scratch = Scratch::new("c_refused")
        .file("main.c", "int main(void) { return 0; }\n")
        .file("main.cpp", "int main() {}\n")
        .file("sb.pal", common::STORE_BUFFERING);
    let check = |args: &[&str], id: &str, part: &str| {
        let ran = scratch.run(args).exits(2);
        assert!(ran.stderr.contains(&format!("error[{id}]")), "{}", ran.stderr);
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    };
    check(&["check", "main.cpp"], "c-plus-plus", "only C is read");
    check(&["check", "main.c", "--", "queue.cpp"], "c-plus-plus", "only C is read");
    check(&["check", "main.c", "--", "queue.o"], "compiler-argument", "neither an option");
    check(&["check", "main.c", "--", "-o", "x"], "compiler-argument", "`-o`");
    check(&["check", "main.c", "--", "-foo"], "c-error", "unknown argument: '-foo'");
    check(&["check", "main.c", "--int-range", "0..3"], "c-option", "--int-range");
    check(&["check", "sb.pal", "--heap", "3"], "c-option", "--heap");
    check(&["check", "sb.pal", "--", "-DN=3"], "c-option", "`--`");
}
