//! `palisade lsp`, as an editor uses it.

pub mod editor;
mod errors;
mod options;

use crate::common::{ENDLESS, FENCED, Ran, STORE_BUFFERING, Scratch};
use editor::{Editor, applied};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const SB: &str = "file:///nowhere/sb.pal";

fn codes(diagnostics: &[Value]) -> Vec<&str> {
    diagnostics.iter().filter_map(|diagnostic| diagnostic["code"].as_str()).collect()
}

fn has(diagnostics: &[Value], code: &str) -> bool {
    codes(diagnostics).contains(&code)
}

/// From a text with errors to a program that is right, and what an editor asks on the way. No file is on the disk.
#[test]
fn a_session() {
    let scratch = Scratch::new("lsp_session");
    let mut editor = Editor::start(&scratch, &["--timeout", "1000"]);
    // Errors while typing: all of them, with help.
    let wrong = STORE_BUFFERING.replace("x = 1;", "x == 1;").replace("let r = x;", "let r = z;");
    editor.open(SB, "pal", &wrong);
    let errors = editor.diagnostics(SB, |found| !found.is_empty());
    assert_eq!(errors[0]["code"], "comparison-as-statement", "{errors:?}");
    assert!(errors[0]["message"].as_str().expect("a text").contains("\nhelp: "), "{errors:?}");
    assert_eq!(errors[0]["range"]["start"]["line"], 3);
    // An edit of one character, and another.
    let range = |line, from, to| json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } });
    editor.change(SB, 2, json!([{ "range": range(3, 7, 8), "text": "" }]));
    let errors = editor.diagnostics(SB, |found| !has(found, "comparison-as-statement"));
    assert_eq!(codes(&errors), ["unknown-name"], "{errors:?}");
    editor.change(SB, 3, json!([{ "range": range(9, 12, 13), "text": "x" }]));
    editor.diagnostics(SB, |found| found.is_empty());
    // The verdict when it is saved, with the steps of the run.
    editor.save(SB);
    let found = editor.diagnostics(SB, |found| has(found, "unsafe"));
    let broken = found.iter().find(|found| found["code"] == "unsafe").expect("it is there");
    assert_eq!((&broken["severity"], &broken["range"]["start"]["line"]), (&json!(1), &json!(12)), "{broken}");
    let steps = broken["relatedInformation"].as_array().expect("steps");
    let step = |text: &str| steps.iter().any(|step| step["message"].as_str().expect("a text").contains(text));
    assert!(step("P: x = 1; (1 stored to x)") && step("Q: let r = x; (x read as 0)"), "{steps:?}");
    assert!(has(&found, "overtakes"), "{found:?}");
    // The fences come by themselves, as a quick fix.
    let found = editor.diagnostics(SB, |found| has(found, "fences"));
    let hint = found.iter().find(|found| found["code"] == "fences").expect("it is there");
    assert_eq!(hint["message"], "write `fence;` here: safe with 2 fences");
    let params = json!({
        "textDocument": { "uri": SB }, "range": range(12, 0, 1), "context": { "diagnostics": found },
    });
    let actions = editor.ask("textDocument/codeAction", params);
    assert_eq!(
        (&actions[0]["kind"], &actions[0]["title"]),
        (&json!("quickfix"), &json!("Insert fences: safe with 2 fences"))
    );
    let text = wrong.replace("x == 1;", "x = 1;").replace("let r = z;", "let r = x;");
    let fenced = applied(&text, &actions[0]["edit"], SB);
    assert_eq!(fenced.matches("    fence;\n").count(), 2, "{fenced}");
    // What was found about the old text is gone; the new one is safe.
    editor.replace(SB, 4, &fenced);
    editor.diagnostics(SB, |found| found.is_empty());
    editor.save(SB);
    editor.wait("$/progress", |params| {
        params["value"]["kind"] == "end"
            && params["value"]["message"].as_str().is_some_and(|text| text.starts_with("safe  sb.pal"))
    });
    let titles = |lenses: &Value| {
        let lenses = lenses.as_array().expect("a list");
        lenses
            .iter()
            .map(|lens| lens["command"]["title"].as_str().expect("a text").to_owned())
            .collect::<Vec<_>>()
    };
    let lenses = editor.ask("textDocument/codeLens", json!({ "textDocument": { "uri": SB } }));
    assert_eq!(titles(&lenses), ["check: safe under TSO", "robust", "fences"]);
    let answer = editor.run("palisade.robust", SB);
    assert_eq!(answer["word"], "robust", "{answer}");
    let lenses = editor.ask("textDocument/codeLens", json!({ "textDocument": { "uri": SB } }));
    assert_eq!(titles(&lenses), ["check: safe under TSO", "robust: robust under TSO", "fences"]);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn names() {
    let scratch = Scratch::new("lsp_names");
    let mut editor = Editor::start(&scratch, &[]);
    // Columns count UTF-16 units: the letter before `x` on the second line has two.
    let text = "shared x, y: 0..3 = 2;\nprocess P { /* 𝔵 */ x = 1; }\nprocess Q { let r = x; y = r; }\nforbid x == 3;\n";
    editor.open(SB, "pal", text);
    let at = |line: u32, character: u32| json!({ "line": line, "character": character });
    let place = |line: u32, from: u32, to: u32| json!({ "start": at(line, from), "end": at(line, to) });
    let found = editor.at("textDocument/definition", SB, 1, 21, json!({}));
    assert_eq!(found, json!({ "uri": SB, "range": place(0, 7, 8) }));
    let found =
        editor.at("textDocument/references", SB, 0, 7, json!({ "context": { "includeDeclaration": true } }));
    let ranges: Vec<&Value> = found.as_array().expect("a list").iter().map(|found| &found["range"]).collect();
    assert_eq!(ranges, [&place(0, 7, 8), &place(1, 21, 22), &place(2, 20, 21), &place(3, 7, 8)]);
    let found = editor.at("textDocument/prepareRename", SB, 1, 21, json!({}));
    assert_eq!(found, json!({ "range": place(1, 21, 22), "placeholder": "x" }));
    let edit = editor.at("textDocument/rename", SB, 1, 21, json!({ "newName": "flag" }));
    let renamed = applied(text, &edit, SB);
    assert_eq!(renamed, text.replace('x', "flag"));
    let id = editor.request(
        "textDocument/rename",
        json!({ "textDocument": { "uri": SB }, "position": at(1, 21), "newName": "y" }),
    );
    let refused = editor.response(id);
    assert!(
        refused["error"]["message"].as_str().is_some_and(|why| why.contains("already used")),
        "{refused}"
    );
    // The domain, and the values that are stored.
    let hover = editor.at("textDocument/hover", SB, 1, 21, json!({}));
    let shown = hover["contents"]["value"].as_str().expect("a text");
    assert!(
        shown.contains("shared x: 0..3") && shown.contains("- `x`: 1, 2") && !shown.contains("`y`"),
        "{shown}"
    );
    assert!(shown.contains("may not occur in any run"), "{shown}");
    let hover = editor.at("textDocument/hover", SB, 2, 16, json!({}));
    assert!(hover["contents"]["value"].as_str().is_some_and(|text| text.contains("let r: int")), "{hover}");
    assert_eq!(editor.at("textDocument/hover", SB, 1, 0, json!({})), Value::Null);
    let symbols = editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": SB } }));
    let outline: Vec<&str> = symbols
        .as_array()
        .expect("a list")
        .iter()
        .map(|symbol| symbol["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(outline, ["x", "y", "P", "Q", "forbid x == 3;"]);
    assert_eq!(symbols[3]["children"][0]["name"], "r", "{symbols}");
    assert_eq!(symbols[2]["range"], place(1, 0, 29), "{symbols}");
    let options =
        json!({ "textDocument": { "uri": SB }, "options": { "tabSize": 8, "insertSpaces": false } });
    editor.replace(SB, 2, "shared  x ;\nprocess P{ x=1; }\n");
    let edits = editor.ask("textDocument/formatting", options);
    let formatted = applied("shared  x ;\nprocess P{ x=1; }\n", &json!({ "changes": { SB: edits } }), SB);
    assert_eq!(formatted, "shared x;\nprocess P { x = 1; }\n");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn several_files_in_all_languages() {
    let scratch = Scratch::new("lsp_languages");
    let mut editor = Editor::start(&scratch, &[]);
    let files = [
        ("file:///a/one.pal", "pal", "process P { x = 1; }\n"),
        ("file:///a/two.rmm", "rmm", "forbidden nonsense\n"),
        ("file:///a/three.litmus", "litmus", "X86 broken\n{ }\n P0 ;\n FLY [x] ;\n"),
        ("file:///a/four.txt", "trencher", "thread t\ninitial\n"),
        ("untitled:Untitled-1", "pal", "process { }\n"),
    ];
    for (uri, language, text) in files {
        editor.open(uri, language, text);
        let found = editor.diagnostics(uri, |found| !found.is_empty());
        assert!(found.iter().all(|found| found["source"] == "palisade"), "{found:?}");
    }
    // A text of another language is left alone.
    editor.open("file:///a/notes.md", "markdown", "process { }\n");
    editor.diagnostics("file:///a/notes.md", |found| found.is_empty());
    // One is closed: its errors are gone. The others are still there.
    editor.notify("textDocument/didClose", json!({ "textDocument": { "uri": "file:///a/one.pal" } }));
    editor.diagnostics("file:///a/one.pal", |found| found.is_empty());
    editor.replace("file:///a/two.rmm", 2, "/*");
    editor.diagnostics("file:///a/two.rmm", |found| !found.is_empty());
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn errors_are_where_utf_16_says() {
    let scratch = Scratch::new("lsp_columns");
    let mut editor = Editor::start(&scratch, &[]);
    editor.open(SB, "pal", "/* é𝔵 */ process P { x = 1; }\n");
    let found = editor.diagnostics(SB, |found| !found.is_empty());
    assert_eq!(found[0]["range"]["start"], json!({ "line": 0, "character": 22 }), "{found:?}");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn what_is_not_a_message_is_skipped() {
    let scratch = Scratch::new("lsp_malformed");
    let mut editor = Editor::start(&scratch, &[]);
    editor.send_raw(b"Content-Length: 3\r\n\r\n{]}");
    editor.send_raw(b"nonsense\r\n");
    editor.send_raw(b"Content-Length: 99999999999999999\r\n\r\n");
    for _ in 0..3 {
        editor.wait("window/logMessage", |_| true);
    }
    editor.notify("textDocument/didOpen", json!({ "nothing": 1 }));
    editor.wait("window/logMessage", |params| {
        params["message"].as_str().is_some_and(|text| text.contains("didOpen"))
    });
    let id = editor.request("textDocument/hover", json!([1]));
    assert_eq!(editor.response(id)["error"]["code"], -32602);
    let id = editor.request("palisade/nothing", json!({}));
    assert_eq!(editor.response(id)["error"]["code"], -32601);
    let id =
        editor.request("workspace/executeCommand", json!({ "command": "palisade.fly", "arguments": [SB] }));
    assert_eq!(editor.response(id)["error"]["code"], -32602);
    let id =
        editor.request("workspace/executeCommand", json!({ "command": "palisade.check", "arguments": [SB] }));
    assert_eq!(editor.response(id)["error"]["code"], -32602);
    // It still works.
    editor.open(SB, "pal", FENCED);
    assert_eq!(editor.run("palisade.check", SB)["word"], "safe");
    assert_eq!(editor.shut_down(), Some(0));
}

/// The line above a program is short, whatever the answers are.
#[test]
fn fences_that_do_not_help() {
    let mut editor = Editor::start(&Scratch::new("lsp_hopeless"), &[]);
    editor.open(SB, "pal", "shared x: 0..3;\nprocess P[2] { x = 1; }\nfinal x == 2;\n");
    let answer = editor.run("palisade.fences", SB);
    assert!(answer["headline"].as_str().is_some_and(|text| text.contains("no fences can help, because")));
    let lenses = editor.ask("textDocument/codeLens", json!({ "textDocument": { "uri": SB } }));
    assert_eq!(lenses[2]["command"]["title"], "fences: none can help", "{lenses}");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn started_by_hand() {
    let mut command = Scratch::new("lsp_by_hand").command(&["lsp"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    child.stdin.take().expect("a pipe").write_all(b"hello\n").expect("it reads");
    let ran = Ran::new(child.wait_with_output().expect("it ends")).exits(1);
    assert!(ran.stderr.contains("editors start this command"), "{}", ran.stderr);
}

#[test]
fn before_and_after() {
    let scratch = Scratch::new("lsp_phases");
    let mut editor = Editor::uninitialized(&scratch, &["--stdio"]);
    let id = editor.request("textDocument/hover", json!({}));
    assert_eq!(editor.response(id)["error"]["code"], -32002);
    assert_eq!(editor.leave(), Some(1));
    let mut editor = Editor::start(&scratch, &[]);
    editor.ask("shutdown", Value::Null);
    let id = editor.request("textDocument/hover", json!({}));
    assert_eq!(editor.response(id)["error"]["code"], -32600);
    assert_eq!(editor.leave(), Some(0));
}

#[test]
fn questions_can_be_stopped() {
    let scratch = Scratch::new("lsp_stopped");
    let mut editor = Editor::start(&scratch, &["--timeout", "100000", "--jobs", "1"]);
    editor.open(SB, "pal", ENDLESS);
    // By cancelling the request.
    let check = json!({ "command": "palisade.check", "arguments": [SB] });
    let id = editor.request("workspace/executeCommand", check.clone());
    editor.wait("$/progress", |params| params["value"]["kind"] == "begin");
    editor.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(editor.response(id)["error"]["code"], -32800);
    // By a newer question about the same file.
    let older = editor.request("workspace/executeCommand", check.clone());
    editor.save(SB);
    assert_eq!(editor.response(older)["error"]["code"], -32800);
    // By the user, who sees the progress of the question: that of the fourth one.
    let newest = editor.request("workspace/executeCommand", check);
    let begun = |editor: &mut Editor| editor.wait("$/progress", |params| params["value"]["kind"] == "begin");
    let tokens =
        [begun(&mut editor), begun(&mut editor), begun(&mut editor)].map(|begun| begun["token"].clone());
    let token = &tokens[2];
    editor.notify("window/workDoneProgress/cancel", json!({ "token": token }));
    assert_eq!(editor.response(newest)["error"]["code"], -32800);
    // The editor was never kept waiting, and the server still answers.
    assert_eq!(editor.at("textDocument/definition", SB, 1, 28, json!({}))["range"]["start"]["line"], 0);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn a_verdict_that_takes_too_long_is_unknown() {
    let scratch = Scratch::new("lsp_budget");
    let mut editor = Editor::start(&scratch, &["--timeout", "0.2"]);
    editor.open(SB, "pal", ENDLESS);
    editor.save(SB);
    let found = editor.diagnostics(SB, |found| has(found, "unknown"));
    assert!(found[0]["message"].as_str().is_some_and(|text| text.contains("out of time")), "{found:?}");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn a_huge_file() {
    let scratch = Scratch::new("lsp_huge");
    let mut editor = Editor::start(&scratch, &[]);
    let body = "    x = 1 - x;\n".repeat(20_000);
    editor.open(SB, "pal", &format!("shared x: 0..1;\nprocess P {{\n{body}    y = 1;\n}}\n"));
    let found = editor.diagnostics(SB, |found| !found.is_empty());
    assert_eq!(found[0]["range"]["start"]["line"], 20_002, "{found:?}");
    // Many edits at once: the last one counts.
    for version in 2..50 {
        let place = json!({ "line": 20_002, "character": 4 });
        editor.change(SB, version, json!([{ "range": { "start": place, "end": place }, "text": "/**/" }]));
    }
    editor.wait("textDocument/publishDiagnostics", |params| params["version"] == 49);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn the_server_ends_with_its_input() {
    let scratch = Scratch::new("lsp_left");
    let mut editor = Editor::start(&scratch, &["--timeout", "100000"]);
    editor.open(SB, "pal", ENDLESS);
    editor.save(SB);
    editor.wait("$/progress", |params| params["value"]["kind"] == "begin");
    assert_eq!(editor.leave(), Some(1));
}

#[test]
fn a_page_shows_the_run() {
    let scratch = Scratch::new("lsp_page");
    let mut editor = Editor::start(&scratch, &[]);
    editor.open(SB, "pal", STORE_BUFFERING);
    let answer = editor.run("palisade.html", SB);
    let page = answer["html"].as_str().expect("a page");
    assert!(
        answer["word"] == "unsafe" && page.starts_with("<!DOCTYPE html>") && page.contains("sb.pal"),
        "{page:.200}"
    );
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn settings() {
    let scratch = Scratch::new("lsp_settings");
    let mut editor = Editor::uninitialized(&scratch, &[]);
    let options = json!({ "model": "sc", "checkOnSave": false, "budget": 100 });
    editor.ask("initialize", json!({ "capabilities": {}, "initializationOptions": options }));
    editor.open(SB, "pal", STORE_BUFFERING);
    editor.save(SB);
    assert_eq!(editor.run("palisade.check", SB)["word"], "safe");
    assert_eq!(editor.shut_down(), Some(0));
}
