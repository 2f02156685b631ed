//! What an editor shows while a program has errors, and the words of what it shows.

use super::SB;
use crate::common::Scratch;
use crate::lsp::editor::{Editor, applied};
use serde_json::{Value, json};

fn outline(editor: &mut Editor, uri: &str) -> Vec<String> {
    let symbols = editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": uri } }));
    let symbols = symbols.as_array().unwrap_or_else(|| panic!("no outline: {symbols}"));
    symbols.iter().map(|symbol| symbol["name"].as_str().expect("a name").to_owned()).collect()
}

fn uri(scratch: &Scratch, name: &str) -> String {
    format!("file://{}", scratch.folder().canonicalize().expect("a folder").join(name).display())
}

#[test]
fn names_are_known_while_there_are_errors() {
    let scratch = Scratch::new("lsp_names_errors");
    let mut editor = Editor::start(&scratch, &[]);
    editor.open(SB, "pal", "const N = 3;\nshared x: bool;\nprocess P { x = 1; yy = 2; }\n");
    assert_eq!(outline(&mut editor, SB), ["N", "x", "P"]);
    let found = editor.at("textDocument/definition", SB, 2, 12, json!({}));
    assert_eq!(found["range"]["start"], json!({ "line": 1, "character": 7 }));
    let hover = editor.at("textDocument/hover", SB, 2, 12, json!({}));
    assert!(
        hover["contents"]["value"].as_str().is_some_and(|text| text.contains("shared x: bool")),
        "{hover}"
    );
    let position = json!({ "line": 2, "character": 12 });
    let params = json!({ "textDocument": { "uri": SB }, "position": position, "newName": "z" });
    let id = editor.request("textDocument/rename", params);
    let refused = editor.response(id);
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("has errors")), "{refused}");
    // A statement that is not finished.
    editor.replace(SB, 2, "shared x: bool;\nprocess P { x = }\nprocess Q { let r = x; }\n");
    assert_eq!(outline(&mut editor, SB), ["x", "P", "Q"]);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn a_file_with_a_broken_import() {
    let text = "import  \"gone.pal\";\nshared a[N]: 0..1;\nprocess P { a[0] = 1; }\n";
    let scratch = Scratch::new("lsp_broken_import").file("main.pal", text);
    let main = uri(&scratch, "main.pal");
    let mut editor = Editor::start(&scratch, &[]);
    editor.open(&main, "pal", text);
    assert_eq!(outline(&mut editor, &main), ["a", "P"]);
    let options =
        json!({ "textDocument": { "uri": main }, "options": { "tabSize": 4, "insertSpaces": true } });
    let edits = editor.ask("textDocument/formatting", options);
    let formatted = applied(text, &json!({ "changes": { main.as_str(): edits } }), &main);
    assert_eq!(formatted, text.replace("import  ", "import "));
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn a_run_through_a_file_that_is_not_open() {
    let lock = "shared x, y;\n\nproc store_and_load() -> int {\n    x = 1;\n    return y;\n}\n";
    let text = "import \"lock.pal\";\nprocess P { let r = store_and_load(); }\nprocess Q { y = 1; let r = x; }\nfinal P.r == 1 || Q.r == 1;\n";
    let scratch = Scratch::new("lsp_other_file").file("main.pal", text).file("lock.pal", lock);
    let (main, other) = (uri(&scratch, "main.pal"), uri(&scratch, "lock.pal"));
    let mut editor = Editor::start(&scratch, &["--timeout", "1000"]);
    editor.open(&main, "pal", text);
    assert_eq!(editor.run("palisade.check", &main)["word"], "unsafe");
    let found = editor.diagnostics(&main, |found| super::has(found, "unsafe"));
    let broken = found.iter().find(|found| found["code"] == "unsafe").expect("it is there");
    let steps = broken["relatedInformation"].as_array().expect("steps");
    let places: Vec<&Value> =
        steps.iter().map(|step| &step["location"]).filter(|place| place["uri"] == other.as_str()).collect();
    assert!(!places.is_empty(), "{broken}");
    for place in places {
        let (start, end) = (&place["range"]["start"], &place["range"]["end"]);
        let line = lock.lines().nth(start["line"].as_u64().expect("a line") as usize).expect("it is there");
        let column = |place: &Value| place["character"].as_u64().expect("a column") as usize;
        assert_eq!(start["line"], end["line"], "{place}");
        assert!(
            ["x = 1", "x = 1;", "y", "return y;"].contains(&&line[column(start)..column(end)]),
            "{place}"
        );
    }
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn values_of_enumerations_have_names() {
    let scratch = Scratch::new("lsp_enums");
    let mut editor = Editor::start(&scratch, &[]);
    editor.open(SB, "pal", "enum S { Idle, Busy }\nshared st[2]: S;\nprocess P { st[0] = Busy; }\n");
    let mut hover = |line, character| {
        let hover = editor.at("textDocument/hover", SB, line, character, json!({}));
        hover["contents"]["value"].as_str().expect("a text").to_owned()
    };
    assert!(hover(1, 7).contains("- `st[0]`: Idle, Busy\n- `st[1]`: Idle\n"), "{}", hover(1, 7));
    assert_eq!(hover(0, 9), "`Idle` = 0, a value of `S`");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn messages_say_everything_once() {
    let scratch = Scratch::new("lsp_once");
    let mut editor = Editor::start(&scratch, &[]);
    editor.open(SB, "pal", "shared x\nprocess P { x = 1; }\nbogus;\n");
    let found = editor.diagnostics(SB, |found| found.len() == 2);
    let first = |found: &Value| {
        found["message"].as_str().and_then(|text| text.lines().next()).expect("a text").to_owned()
    };
    assert_eq!(first(&found[0]), "expected `;`, found the keyword `process`");
    assert_eq!(first(&found[1]), "expected an item, found `bogus`");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn each_loop_has_its_own_variable() {
    let scratch = Scratch::new("lsp_loops");
    let mut editor = Editor::start(&scratch, &[]);
    let text = "shared a[3]: 0..3;\nprocess P {\n    for j in 0..2 { a[j] = 1; }\n    for j in 0..1 { a[j] = 2; }\n}\n";
    editor.open(SB, "pal", text);
    let found = editor.at("textDocument/definition", SB, 3, 22, json!({}));
    assert_eq!(found["range"]["start"], json!({ "line": 3, "character": 8 }));
    let edit = editor.at("textDocument/rename", SB, 3, 22, json!({ "newName": "k" }));
    assert_eq!(applied(text, &edit, SB), text.replace("for j in 0..1 { a[j]", "for k in 0..1 { a[k]"));
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn confusing_names_are_refused() {
    let scratch = Scratch::new("lsp_confusing");
    let mut editor = Editor::start(&scratch, &[]);
    editor.open(SB, "pal", "shared x;\nprocess P { x = 1; }\n");
    let mut rename = |name: &str| {
        let position = json!({ "line": 0, "character": 7 });
        let params = json!({ "textDocument": { "uri": SB }, "position": position, "newName": name });
        let id = editor.request("textDocument/rename", params);
        editor.response(id)["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(rename("while"), "`while` is a keyword, which cannot be a name");
    assert_eq!(rename("true"), "`true` is a keyword, which cannot be a name");
    assert!(rename("9a").starts_with("`9a` is not a valid name: "), "{}", rename("9a"));
    assert_eq!(rename("P"), "`P` is already used: it is a process");
    assert_eq!(rename("z"), "");
    assert_eq!(rename("`9a`"), "");
    assert_eq!(editor.shut_down(), Some(0));
}
