//! The language server on C programs: check on command, errors of the compiler, fences as a quick fix.

use crate::common::Scratch;
use crate::lsp::editor::{Editor, applied};
use serde_json::{Value, json};

const STORE_BUFFERING: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
atomic_int x, y;
int r1, r2;
static void *p(void *_) {
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    r1 = atomic_load_explicit(&y, memory_order_relaxed);
    return _;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, p, 0);
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    r2 = atomic_load_explicit(&x, memory_order_relaxed);
    pthread_join(t, 0);
    assert(r1 || r2);
    return 0;
}
";

fn has(found: &[Value], code: &str) -> bool {
    found.iter().any(|found| found["code"] == code)
}

#[test]
fn c_is_checked_on_command_and_fixed() {
    let scratch = Scratch::new("lsp c").file("sb.c", STORE_BUFFERING);
    let uri = format!("file://{}", scratch.path("sb.c").to_str().expect("a path").replace(' ', "%20"));
    let mut editor = Editor::start(&scratch, &["--timeout", "1000"]);
    editor.open(&uri, "c", STORE_BUFFERING);
    editor.save(&uri);
    let answer = editor.run("palisade.check", &uri);
    assert_eq!(answer["word"], "unsafe", "{answer}");
    let found = editor.diagnostics(&uri, |found| has(found, "unsafe"));
    assert_eq!(found[0]["range"]["start"], json!({ "line": 16, "character": 4 }), "{found:?}");
    let steps = found[0]["relatedInformation"].as_array().expect("steps");
    assert!(steps.iter().all(|step| step["location"]["uri"] == uri), "{steps:?}");
    assert!(steps.iter().any(|step| step["location"]["range"]["start"]["line"] == 13), "{steps:?}");
    let answer = editor.run("palisade.fences", &uri);
    assert_eq!(answer["word"], "repairable", "{answer}");
    let found = editor.diagnostics(&uri, |found| has(found, "fences"));
    let place = json!({ "line": 16, "character": 4 });
    let params = json!({
        "textDocument": { "uri": uri }, "range": { "start": place, "end": place }, "context": { "diagnostics": found },
    });
    let actions = editor.ask("textDocument/codeAction", params);
    let fixed = applied(STORE_BUFFERING, &actions[0]["edit"], &uri);
    assert_ne!(fixed, STORE_BUFFERING);
    // What is not saved is not seen, and this is said.
    editor.replace(&uri, 2, &fixed);
    let id = editor
        .request("workspace/executeCommand", json!({ "command": "palisade.check", "arguments": [uri] }));
    let refused = editor.response(id);
    assert!(
        refused["error"]["message"].as_str().is_some_and(|why| why.starts_with("save the file first")),
        "{refused}"
    );
    std::fs::write(scratch.path("sb.c"), &fixed).expect("it can be written");
    editor.save(&uri);
    assert_eq!(editor.run("palisade.check", &uri)["word"], "safe");
    let page = editor.run("palisade.html", &uri);
    assert!(page["html"].as_str().is_some_and(|page| page.contains("sb.c")), "{page}");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn errors_of_the_compiler_are_shown() {
    let text = "int main(void) {\n    return x;\n}\n";
    let scratch = Scratch::new("lsp_c_wrong").file("wrong.c", text);
    let uri = format!("file://{}", scratch.path("wrong.c").to_str().expect("a path"));
    let mut editor = Editor::start(&scratch, &["--timeout", "1000"]);
    editor.open(&uri, "c", text);
    assert_eq!(editor.run("palisade.check", &uri)["word"], "refused");
    let found = editor.diagnostics(&uri, |found| !found.is_empty());
    assert_eq!(found[0]["range"]["start"], json!({ "line": 1, "character": 11 }), "{found:?}");
    assert_eq!(editor.shut_down(), Some(0));
}
