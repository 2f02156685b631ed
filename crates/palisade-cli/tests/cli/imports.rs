//! `import "lock.pal";`: programs of several files.

use crate::common::Scratch;
use crate::lsp::editor::Editor;
use serde_json::{Value, json};

const MAIN: &str = "\
import \"lib/lock.pal\";
import \"lib/size.pal\";

process P(i: 0..N - 1) {
    acquire(i);
cs: skip;
    flag[i] = false;
}

forbid P(0)@cs && P(1)@cs;
";

const LOCK: &str = "\
import \"size.pal\";

shared flag[N]: bool;

proc acquire(i: 0..N - 1) {
    flag[i] = true;
    await !flag[1 - i];
}
";

fn lock(name: &str) -> Scratch {
    Scratch::new(name).file("main.pal", MAIN).file("lib/lock.pal", LOCK).file("lib/size.pal", "const N = 2;")
}

#[test]
fn runs_fences_and_formatting_know_the_files() {
    let scratch = lock("imports_runs");
    let ran = scratch.run(&["check", "main.pal", "--witness", "run.json"]);
    assert!(
        ran.stdout.starts_with("unsafe  main.pal: P(0) and P(1) are both at cs (line 10"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("lib/lock.pal:6  flag[i] = true;"), "{}", ran.stdout);
    assert!(scratch.run(&["replay", "run.json"]).stdout.starts_with("valid  run.json"));
    // The run of another text is not replayed without a word about it.
    let scratch = scratch.file("lib/size.pal", "const N = 2; // two");
    let ran = scratch.run(&["replay", "run.json"]);
    assert!(ran.stderr.contains("program-changed"), "{}{}", ran.stdout, ran.stderr);
    let ran = scratch.run(&["fences", "main.pal", "--diff", "-q"]);
    assert!(
        ran.stdout.contains("--- a/lib/lock.pal")
            && ran.stdout.contains("     flag[i] = true;\n+    fence;\n"),
        "{}",
        ran.stdout
    );
    let ran = scratch.run(&["fences", "main.pal", "--write", "new.pal"]);
    assert!(ran.stderr.contains("not written: the fences go into lib/lock.pal"), "{}", ran.stderr);
    assert!(!scratch.path("new.pal").exists());
    let ran = scratch.run(&["fmt", "--check", "main.pal", "lib/lock.pal"]);
    assert_eq!(ran.stdout, "unchanged  main.pal\nunchanged  lib/lock.pal\n");
    // A part that is no program is not checked on its own, but formatted.
    let ran = scratch.run(&["check", ".", "-D", "N=2"]);
    assert!(ran.stdout.contains("unsafe       1\n") && ran.stdout.contains("1 file in"), "{}", ran.stdout);
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    assert_eq!(scratch.run(&["fmt", "--check", "."]).stdout.lines().count(), 3);
}

#[test]
fn certificates_are_about_all_files() {
    let scratch = lock("imports_proofs")
        .file("lib/lock.pal", LOCK.replace("= true;", "= true; fence;"))
        .file("lib/size.pal", "const N = 2;\n");
    let ran = scratch.run(&["check", "main.pal", "--certificate", "proof.json"]);
    assert!(ran.stdout.starts_with("safe"), "{}{}", ran.stdout, ran.stderr);
    let ran = scratch.run(&["certify", "proof.json"]);
    assert!(ran.stdout.starts_with("valid") && ran.stderr.is_empty(), "{}{}", ran.stdout, ran.stderr);
    // Without the fence in the imported file, the proof does not hold.
    let scratch = scratch.file("lib/lock.pal", LOCK);
    let ran = scratch.run(&["certify", "proof.json"]);
    assert!(
        ran.stdout.starts_with("invalid") && ran.stderr.contains("program-changed"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    // Text that moves from one file to another makes another program.
    let scratch = Scratch::new("imports_moved")
        .file("main.pal", "import \"a.pal\";\nshared x: 0..1;\nprocess P { x = 1; assert(x == 1); }\n")
        .file("a.pal", "shared y: 0..1;\n");
    scratch.run(&["check", "main.pal", "--certificate", "proof.json"]);
    let scratch = scratch
        .file("main.pal", "import \"a.pal\";\nshared x: 0..1;\n")
        .file("a.pal", "process P { x = 1; assert(x == 1); }\nshared y: 0..1;\n");
    let ran = scratch.run(&["certify", "proof.json"]);
    assert!(ran.stderr.contains("program-changed"), "{}{}", ran.stdout, ran.stderr);
}

/// The names of the errors, with their places.
fn errors(scratch: &Scratch, file: &str) -> Vec<(String, String)> {
    let ran = scratch.run(&["check", file]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    let mut found = Vec::new();
    for line in ran.stderr.lines() {
        if let Some(rest) = line.strip_prefix("error[") {
            found.push((rest.split(']').next().unwrap_or_default().to_owned(), String::new()));
        } else if let (Some((_, place)), Some(last)) = (line.split_once("--> "), found.last_mut()) {
            last.1 = place.to_owned();
        }
    }
    found
}

#[test]
fn errors_name_the_file() {
    let program = "process P { skip; }\n";
    let check = |name: &str, files: &[(&str, &str)], expected: &[(&str, &str)]| {
        let scratch = files.iter().fold(Scratch::new(name), |scratch, (name, text)| scratch.file(name, text));
        let found = errors(&scratch, "main.pal");
        let found: Vec<(&str, &str)> = found.iter().map(|(id, at)| (id.as_str(), at.as_str())).collect();
        assert_eq!(found, expected, "{name}: {}", scratch.run(&["check", "main.pal"]).stderr);
    };
    let with = |imports: &str| format!("{imports}\n{program}");
    // All of them, and nothing that only follows from a missing file.
    let text =
        with("import \"a.pal\";\nimport \"b\";\nimport \"/c.pal\";\nimport \"x//y.pal\";\nshared x: 0..N;");
    let bad = ["main.pal:1:8", "main.pal:2:8", "main.pal:3:8", "main.pal:4:8"].map(|at| ("bad-import", at));
    check("imports_missing", &[("main.pal", &text)], &bad);
    let text = with("import \"a.pal\";");
    let a = ("a.pal", "import \"b.pal\";\n");
    let cycle = [("main.pal", text.as_str()), a, ("b.pal", "shared y;\nimport \"a.pal\";")];
    check("imports_cycle", &cycle, &[("import-cycle", "b.pal:2:8")]);
    let main = [("main.pal", text.as_str()), ("a.pal", "import \"main.pal\";")];
    check("imports_main", &main, &[("import-cycle", "a.pal:1:8")]);
    let own = [("main.pal", text.as_str()), ("a.pal", "import \"a.pal\";")];
    check("imports_self", &own, &[("import-cycle", "a.pal:1:8")]);
    let twice = [("main.pal", text.as_str()), a, ("b.pal", "const N = 1;\nproc P() {}\nconst N = 2;")];
    check("imports_twice", &twice, &[("duplicate-name", "b.pal:3:7")]);
    let other = with("import \"a.pal\";\nshared N;");
    let other = [("main.pal", other.as_str()), ("a.pal", "const N = 1;")];
    check("imports_other", &other, &[("duplicate-name", "main.pal:2:8")]);
    // The end of a file is a place in it.
    let open = [("main.pal", text.as_str()), a, ("b.pal", "proc f() {\n    skip;"), ("c.pal", "")];
    let open = [open[0], ("a.pal", "import \"b.pal\";\nimport \"c.pal\";\n"), open[2], open[3]];
    check("imports_open", &open, &[("unclosed-block", "b.pal:1:10")]);
    let inside = format!("import \"a.pal\";\n{}", program.replace("skip;", "import \"a.pal\"; skip;"));
    let inside = [("main.pal", inside.as_str()), ("a.pal", "")];
    check("imports_inside", &inside, &[("misplaced-declaration", "main.pal:2:13")]);
    let scratch = Scratch::new("imports_stdin").file("main.pal", &text);
    let ran = scratch
        .command(&["check", "-", "--input", "pal"])
        .stdin(std::fs::File::open(scratch.path("main.pal")).expect("it is there"))
        .output();
    let ran = ran.expect("it runs");
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(text.contains("a program that is not in a folder cannot import files"), "{text}");
}

#[test]
fn imports_are_limited() {
    let mut scratch =
        Scratch::new("imports_deep").file("main.pal", "import \"0.pal\";\nprocess P { skip; }\n");
    for level in 0..40 {
        scratch = scratch.file(&format!("{level}.pal"), format!("import \"{}.pal\";\n", level + 1));
    }
    let found = errors(&scratch.file("40.pal", ""), "main.pal");
    assert_eq!(found, [("too-deep".to_owned(), "29.pal:1:8".to_owned())]);
    let imports: String = (0..205).map(|file| format!("import \"{file}.pal\";\n")).collect();
    let mut scratch = Scratch::new("imports_many").file("main.pal", imports + "process P { skip; }\n");
    for file in 0..205 {
        scratch = scratch.file(&format!("{file}.pal"), "");
    }
    let found = errors(&scratch, "main.pal");
    assert_eq!((found.len(), found[0].1.as_str()), (5, "main.pal:201:8"), "{found:?}");
    // What is not a text file is not imported.
    let scratch = Scratch::new("imports_odd")
        .file("main.pal", "import \"a.pal\";\nimport \"folder.pal\";\nprocess P { skip; }\n")
        .file("a.pal", b"\xff\xfe")
        .file("folder.pal/x", "");
    let ran = scratch.run(&["check", "main.pal"]);
    assert!(
        ran.stderr.contains("byte 0 is not UTF-8") && ran.stderr.contains("is not a file"),
        "{}",
        ran.stderr
    );
}

#[test]
fn editors_see_all_files() {
    let scratch = lock("imports_lsp");
    let mut editor = Editor::uninitialized(&scratch, &["--timeout", "1000"]);
    let options = json!({ "constants": { "N": 2, "K": 7 } });
    editor.ask("initialize", json!({ "capabilities": {}, "initializationOptions": options }));
    let uri = |name: &str| format!("file://{}", scratch.path(name).display());
    let (main, library) = (uri("main.pal"), uri("lib/lock.pal"));
    editor.open(&main, "pal", MAIN);
    // The declaration is in the other file, and a new name goes to both.
    let found = editor.at("textDocument/definition", &main, 4, 5, json!({}));
    assert_eq!((&found["uri"], &found["range"]["start"]["line"]), (&json!(library), &json!(4)), "{found}");
    let renamed = editor.at("textDocument/rename", &main, 4, 5, json!({ "newName": "take" }));
    assert_eq!(
        renamed["changes"][&library][0]["range"]["start"],
        json!({ "line": 4, "character": 5 }),
        "{renamed}"
    );
    assert_eq!(renamed["changes"][&main][0]["newText"], "take", "{renamed}");
    let outline = editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": main } }));
    let names: Vec<&Value> =
        outline.as_array().expect("a list").iter().map(|symbol| &symbol["name"]).collect();
    assert_eq!(names, ["P", "forbid P(0)@cs && P(1)@cs;"]);
    // The run and its fence are shown in the other file.
    editor.save(&main);
    let found = editor.diagnostics(&library, |found| found.iter().any(|found| found["code"] == "overtakes"));
    assert_eq!(found[0]["range"]["start"]["line"], 6, "{found:?}");
    let found = editor.diagnostics(&library, |found| found.iter().any(|found| found["code"] == "fences"));
    assert!(found.iter().any(|found| found["code"] == "fences"), "{found:?}");
    // An error in the other file, as it is in the editor, is shown there.
    editor.open(&library, "pal", &LOCK.replace("= true;", "== true;"));
    editor
        .diagnostics(&library, |found| found.iter().any(|found| found["code"] == "comparison-as-statement"));
    editor.replace(&library, 2, &LOCK.replace("= true;", "= true; fence;"));
    editor.diagnostics(&library, |found| found.iter().all(|found| found["code"] == "no-process"));
    assert_eq!(editor.run("palisade.check", &main)["word"], "safe");
    assert_eq!(editor.shut_down(), Some(0));
}
