//! The options of the user: good ones count, and wrong ones are shown.

use super::{SB, has};
use crate::common::{STORE_BUFFERING, Scratch};
use crate::lsp::editor::Editor;
use serde_json::{Value, json};

/// A server with these options, and the errors that it shows.
fn start(name: &str, options: &Value, errors: usize) -> (Editor, Vec<String>) {
    let mut editor = Editor::uninitialized(&Scratch::new(name), &[]);
    editor.ask("initialize", json!({ "capabilities": {}, "initializationOptions": options }));
    let shown = (0..errors).map(|_| {
        let shown = editor.wait("window/showMessage", |params| params["type"] == 1);
        shown["message"].as_str().expect("a text").to_owned()
    });
    let shown = shown.collect();
    (editor, shown)
}

/// Safe under TSO, and unsafe under PSO.
const MESSAGE_PASSING: &str = "\
const N = 2;
shared x: 0..3; shared y: 0..1;
process P { x = N; y = 1; }
process Q { await y == 1; let r = x; assert(r == N); }
";

#[test]
fn without_a_known_model_nothing_is_answered() {
    let (mut editor, shown) = start("lsp_model", &json!({ "model": "arm" }), 1);
    let names_it = |text: &str| text.contains("`model`") && text.contains("\"sc\", \"tso\" or \"pso\"");
    assert!(names_it(&shown[0]), "{shown:?}");
    editor.open(SB, "pal", STORE_BUFFERING);
    for command in ["palisade.check", "palisade.robust", "palisade.fences", "palisade.html"] {
        let id = editor.request("workspace/executeCommand", json!({ "command": command, "arguments": [SB] }));
        let refused = editor.response(id);
        assert!(refused["error"]["message"].as_str().is_some_and(names_it), "{command}: {refused}");
    }
    editor.save(SB);
    let found = editor.diagnostics(SB, |found| has(found, "unknown"));
    assert!(found[0]["message"].as_str().is_some_and(names_it), "{found:?}");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn good_options_count_and_answers_name_them() {
    let constants = json!({ "N": 3, "M": "3" });
    let options =
        json!({ "model": "PSO", "budget": "5", "checkOnSave": "no", "constants": constants, "modle": 1 });
    let (mut editor, shown) = start("lsp_options", &options, 4);
    for option in
        ["no option `modle`", "option `budget` is", "option `checkOnSave` is", "option `constants.M` is"]
    {
        assert_eq!(shown.iter().filter(|shown| shown.contains(option)).count(), 1, "{option}: {shown:?}");
    }
    editor.open(SB, "pal", MESSAGE_PASSING);
    let answer = editor.run("palisade.check", SB);
    assert_eq!(answer["word"], "unsafe", "{answer}");
    assert!(
        answer["headline"].as_str().is_some_and(|text| text.ends_with(" under PSO with N = 3")),
        "{answer}"
    );
    let hover = editor.at("textDocument/hover", SB, 0, 6, json!({}));
    let shown = hover["contents"]["value"].as_str().expect("a text");
    assert!(shown.contains("const N = 3\n") && shown.contains("`constants`; the file says `2`"), "{shown}");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn constants_can_be_true() {
    let (mut editor, _) = start("lsp_true", &json!({ "constants": { "FAST": true } }), 0);
    editor.open(SB, "pal", "const FAST = false;\nprocess P { assert(FAST == 0); }\n");
    let answer = editor.run("palisade.check", SB);
    assert_eq!(answer["word"], "unsafe", "{answer}");
    let hover = editor.at("textDocument/hover", SB, 0, 6, json!({}));
    assert!(
        hover["contents"]["value"].as_str().is_some_and(|text| text.contains("const FAST = true")),
        "{hover}"
    );
    assert_eq!(editor.shut_down(), Some(0));
}
