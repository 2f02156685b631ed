//! The playground in a real Chromium. Every control is used.

use crate::common::{ENDLESS, Running, STORE_BUFFERING, small};
use palisade_conformance::browser::{Browser, Page, Shown};
use palisade_serve::{Config, Load};

/// The pictures of a happens-before cycle that can be seen.
const VISIBLE_CYCLES: &str = "[...document.querySelectorAll('#result .cycle svg')].filter((e) => e.checkVisibility()).map((e) => e.getAttribute('class') || 'wide').join(' ')";
/// Elements of the machine that are cut off.
const CUT: &str = "[...document.querySelectorAll('#result .machine *')].filter((e) => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML.slice(0, 80)).join('\\n')";
/// Long names and values.
const LONG: &str = "\
enum State { Idle, WaitingForSomethingVeryLongIndeed }
shared a_very_long_variable_name_indeed[3]: State;
process P(i: 0..1) {
    for k in 0..2 { a_very_long_variable_name_indeed[k] = WaitingForSomethingVeryLongIndeed; }
    let old: State = WaitingForSomethingVeryLongIndeed;
}
final a_very_long_variable_name_indeed[0] == Idle;
";

const IDLE: Load = Load { connections: 0, running: 0, waiting: 0 };

fn playground() -> Running {
    Running::start(Config { runs: 2, waiting: 4, connections: 64, ..small() })
}

fn open(page: &mut Page<'_>, server: &Running) {
    page.open(&server.server.url());
    page.wait_until("document.body.dataset.ready !== undefined");
}

/// Chooses from a list as a user would.
fn choose(page: &mut Page<'_>, id: &str, value: &str) {
    let done = page.eval(&format!(
        "(() => {{ const e = document.getElementById('{id}'); e.value = '{value}'; e.dispatchEvent(new Event('change')); return e.value; }})()"
    ));
    assert_eq!(done, value, "{id} offers this value");
}

/// Chooses an example in the dialog.
fn choose_example(page: &mut Page<'_>, path: &str) {
    page.click("#open-examples");
    page.wait_until("document.getElementById('examples').open");
    page.click(&format!("#topics [data-path='{path}']"));
    page.wait_until(&format!("document.getElementById('example').dataset.path === '{path}'"));
}

/// Replaces the program.
fn write(page: &mut Page<'_>, text: &str) {
    page.click("#text");
    page.eval("document.getElementById('text').select()");
    page.type_text(text);
}

fn ask(page: &mut Page<'_>, command: &str, word: &str) {
    page.eval("document.getElementById('result').replaceChildren()");
    page.click(&format!("[data-ask={command}]"));
    page.wait_until(&format!("document.querySelector('#result .badge')?.textContent === '{word}'"));
}

#[test]
fn a_program_is_chosen_checked_and_fixed() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    assert!(
        page.text("document.getElementById('text').value").contains("Peterson"),
        "an example is loaded at the start"
    );
    assert!(page.eval("document.querySelectorAll('#lines .h-keyword').length").as_u64() > Some(5));
    // Examples by topic, with a line about each. The field finds them by any of their words.
    page.click("#open-examples");
    assert!(page.eval("document.querySelectorAll('#topics li').length").as_u64() > Some(80));
    assert_eq!(
        page.eval("[...document.querySelectorAll('#topics .about')].every((e) => e.textContent.length > 10)"),
        true
    );
    assert!(page.eval("document.querySelectorAll('#topics h3').length").as_u64() > Some(8));
    page.type_text("dekker SPARC");
    let found = "[...document.querySelectorAll('#topics button')].filter((e) => e.checkVisibility()).map((e) => e.dataset.path).join(' ')";
    assert_eq!(page.text(found), "mutex/dekker_simple.fenced.pal mutex/dekker_simple.pal");
    page.press("Escape", false);
    page.eval("document.getElementById('examples').close()");

    ask(&mut page, "check", "unsafe");
    page.click("#result [data-do=first]");
    page.click("#result [data-do=next]");
    assert_eq!(page.text("document.querySelector('#result .count').textContent"), "step 1 of 8");
    // The program is shown once: the editor marks the steps.
    assert_eq!(page.eval("document.querySelectorAll('#result .listing').length"), 0);
    assert_eq!(page.text("document.querySelector('#editor .now-line').dataset.line"), "8");
    assert_eq!(page.text("document.querySelector('#editor .broken').dataset.line"), "16");
    assert_eq!(page.eval("document.getElementById('result').innerText.split('both at cs').length - 1"), 1);
    choose(&mut page, "model", "sc");
    ask(&mut page, "check", "safe");
    page.click("[data-ask=robust]");
    page.wait_until("document.querySelector('#result .problem')?.textContent.includes('SC')");
    choose(&mut page, "model", "pso");
    ask(&mut page, "robust", "not-robust");
    assert_eq!(page.text(VISIBLE_CYCLES), "wide");
    choose(&mut page, "model", "tso");

    // Other languages, engines and numbers of threads.
    choose_example(&mut page, "trencher/store_buffering.trencher");
    assert_eq!(page.text("document.getElementById('language').value"), "trencher");
    ask(&mut page, "check", "unsafe");
    choose_example(&mut page, "litmus/sb.pal");
    choose(&mut page, "engine", "explicit");
    ask(&mut page, "check", "unsafe");
    choose(&mut page, "engine", "auto");
    choose(&mut page, "threads", "any=all");
    ask(&mut page, "check", "unsafe");
    choose(&mut page, "threads", "");

    // Fences, with all their options.
    write(&mut page, STORE_BUFFERING);
    choose(&mut page, "language", "pal");
    assert_eq!(
        page.text("document.getElementById('example').textContent"),
        "your own program",
        "an edited program is no longer an example"
    );
    ask(&mut page, "fences", "repairable");
    assert_eq!(page.eval("document.querySelectorAll('#result .fences > li').length"), 2);
    page.click("#result .fence-set .act");
    page.wait_until("document.querySelector('#result .badge')?.textContent === 'safe' && document.getElementById('text').value.match(/fence;/g)?.length === 2");
    page.wait_until("document.querySelectorAll('#result [data-set]').length === 0");
    write(&mut page, STORE_BUFFERING);
    page.click(".more > summary");
    choose(&mut page, "goal", "robustness");
    choose(&mut page, "place", "before-reads");
    page.click("#all");
    ask(&mut page, "fences", "repairable");

    // The URL names the example.
    let url = format!("{}#mutex/dekker.fenced.pal", server.server.url());
    page.eval(&format!("location.href = '{url}'"));
    page.wait_until("document.getElementById('example').dataset.path === 'mutex/dekker.fenced.pal'");
    ask(&mut page, "check", "safe");
    assert!(page.problems().is_empty(), "{:?}", page.problems());
    let origin = server.server.url();
    assert!(
        page.requests().iter().all(|request| request.starts_with(&origin) || request.starts_with("data:")),
        "{:?}",
        page.requests()
    );
    drop(browser);
    server.wait_for(IDLE);
}

#[test]
fn models_and_outcomes_are_shown_side_by_side() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    choose_example(&mut page, "litmus-x86/intel_sb.litmus");
    ask(&mut page, "compare", "unsafe");
    let verdicts = "[...document.querySelectorAll('.one-model')].map((e) => e.dataset.model + ' ' + e.querySelector('.badge').textContent).join(', ')";
    assert_eq!(page.text(verdicts), "sc safe, tso unsafe, pso unsafe");
    let same_row = "new Set([...document.querySelectorAll('.one-model')].map((e) => e.getBoundingClientRect().top)).size";
    assert_eq!(page.eval(same_row), 1);
    page.click(".one-model[data-model=pso] .act");
    page.wait_until("document.querySelector('#result .player:not([hidden])')");
    assert_eq!(page.text("document.getElementById('model').value"), "pso");
    ask(&mut page, "outcomes", "complete");
    let first = "[...document.querySelectorAll('.outcomes .marked td')].slice(0, 5).map((e) => e.textContent).join(' ')";
    assert_eq!(page.text(first), "0 0 – yes yes");
    page.click(".outcomes .marked .act");
    page.wait_until("document.querySelector('#result .player:not([hidden])')");
    assert!(
        page.text("document.getElementById('result').textContent").contains("A run to outcome 1 under TSO")
    );
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn a_link_contains_the_program() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    let program = format!("// ünïcode 日本 \\ \"quotes\"\n{STORE_BUFFERING}");
    write(&mut page, &program);
    choose(&mut page, "model", "pso");
    page.click("#link");
    page.wait_until("document.getElementById('link-status').textContent !== ''");
    let link = page.text("location.href");
    assert!(link.contains("#~pal,pso,z") && link.len() < program.len() + 60, "{link}");
    // Without compression, the link is longer.
    let plain = page.text(
        "(async () => { const kept = CompressionStream; delete window.CompressionStream; const link = await palisadeLink.write('pal', 'tso', document.getElementById('text').value); window.CompressionStream = kept; return link; })()",
    );
    assert!(plain.starts_with("~pal,tso,u"), "{plain}");
    for (fragment, model) in [(link.split('#').nth(1).expect("a fragment").to_owned(), "pso"), (plain, "tso")]
    {
        write(&mut page, "process P {}");
        assert_eq!(page.text("location.hash"), "", "the address does not name another program");
        page.eval(&format!("location.hash = '#{fragment}'"));
        page.wait_until("document.getElementById('text').value.includes('quotes')");
        assert_eq!(page.text("document.getElementById('text').value"), program);
        assert_eq!(page.text("document.getElementById('model').value"), model);
    }
    ask(&mut page, "check", "unsafe");
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn damaged_links_are_reported_and_change_nothing() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    let link = page.text("(async () => await palisadeLink.write('pal', 'pso', document.getElementById('text').value, 'N=3'))()");
    let without_constants = link.strip_suffix(",N=3").expect("it has a constant");
    write(&mut page, STORE_BUFFERING);
    let fault = "document.getElementById('address-fault')";
    let cut_at = |length: usize| link[..length].to_owned();
    let cases = [
        ("~pal,pso,garbage!!".to_owned(), "This link is incomplete: its program is damaged."),
        (cut_at(100), "This link is incomplete: a part of its program is missing or damaged."),
        (
            cut_at(without_constants.len() - 1),
            "This link is incomplete: a part of its program is missing or damaged.",
        ),
        (cut_at(link.len() - 1), "This link is incomplete: a value of a constant is missing or damaged."),
        ("~pal,ps".to_owned(), "This link is incomplete: it has no program."),
        (
            "~pal,tso,zAAAA".to_owned(),
            "This link is incomplete: a part of its program is missing or damaged.",
        ),
        ("~cobol,tso,zS87".to_owned(), "This link is for the language `cobol`, which is not known here."),
        ("~pal,arm,zS87".to_owned(), "This link is for the memory model `arm`, which is not known here."),
        ("nope/nope.pal".to_owned(), "There is no example `nope/nope.pal`."),
        ("%".to_owned(), "There is no example `%`."),
    ];
    for (fragment, words) in &cases {
        page.eval(&format!("location.hash = '#{fragment}'"));
        page.wait_until(&format!("{fault}.checkVisibility() && {fault}.textContent === '{words}'"));
        assert_eq!(page.text("document.getElementById('text').value"), STORE_BUFFERING, "{fragment}");
        assert_eq!(page.text("document.getElementById('model').value"), "tso", "{fragment}");
    }
    // Parts of the page, and examples that exist, are no faults.
    page.eval("location.hash = '#text'");
    page.wait_until(&format!("!{fault}.checkVisibility()"));
    // What was typed last is still there when a damaged link is opened.
    page.open(&format!("{}/playground.css", server.server.url().trim_end_matches('/')));
    page.open(&format!("{}#{}", server.server.url(), cut_at(100)));
    page.wait_until("document.body.dataset.ready !== undefined");
    page.wait_until(&format!("{fault}.checkVisibility()"));
    assert_eq!(page.text("document.getElementById('text').value"), STORE_BUFFERING);
    assert_eq!(page.poor_contrast(), "");
    // The address is forgotten, and the fault with it, when the program is changed.
    write(&mut page, "process P {}");
    assert_eq!(page.eval(&format!("{fault}.checkVisibility()")), false);
    assert_eq!(page.text("location.hash"), "");
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn the_page_scrolls_to_answers() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1000, 700);
    let features = serde_json::json!([{ "name": "prefers-reduced-motion", "value": "reduce" }]);
    page.call("Emulation.setEmulatedMedia", serde_json::json!({ "features": features }));
    open(&mut page, &server);
    let top = |id: &str| format!("Math.round(document.getElementById('{id}').getBoundingClientRect().top)");
    page.eval("document.getElementById('text').focus({ preventScroll: true })");
    assert!(page.eval(&top("result")).as_i64() > Some(350), "the answer is below the editor");
    page.press("Enter", true);
    page.wait_until("document.querySelector('#result .badge')?.textContent === 'unsafe'");
    assert!((0..40).contains(&page.eval(&top("result")).as_i64().expect("a number")));
    page.eval("scrollTo(0, 0); document.querySelector('[data-ask=step]').click()");
    page.wait_until("document.querySelectorAll('#next button').length === 2");
    assert!((0..40).contains(&page.eval(&top("steps")).as_i64().expect("a number")));
    // The player has the whole width, because the program is in the editor.
    let width = "document.querySelector('#result .player').offsetWidth / document.getElementById('result').offsetWidth";
    assert!(page.eval(width).as_f64() > Some(0.95));
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn the_caret_is_where_the_text_is() {
    let server = playground();
    let mut browser = Browser::start();
    for (width, height) in [(1300, 900), (375, 740)] {
        let mut page = browser.page(width, height);
        open(&mut page, &server);
        for empty in [0, 120] {
            write(&mut page, &format!("shared aaaa: bool;{}", "\n".repeat(empty)));
            page.eval("document.getElementById('editor').scrollTo(0, 0)");
            // The text that can be seen, and the transparent text of the field over it.
            let seen = "document.querySelector('#lines .line code').getBoundingClientRect().left";
            let field = "(() => { const e = document.getElementById('text'); return e.getBoundingClientRect().left + parseFloat(getComputedStyle(e).paddingLeft); })()";
            let apart = page.eval(&format!("Math.abs({seen} - {field})"));
            assert!(apart.as_f64() < Some(0.1), "{width} {empty}: {apart}");
            // A click between the second and the third `a`.
            let place = page.eval("(() => { const walk = document.createTreeWalker(document.querySelector('#lines .line code'), NodeFilter.SHOW_TEXT); let at = 9; let node; while ((node = walk.nextNode()) && node.length < at) { at -= node.length; } const range = document.createRange(); range.setStart(node, at); range.collapse(true); const box = range.getBoundingClientRect(); return [box.left, box.top + box.height / 2]; })()");
            for kind in ["mousePressed", "mouseReleased"] {
                let event = serde_json::json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
                page.call("Input.dispatchMouseEvent", event);
            }
            assert_eq!(page.eval("document.getElementById('text').selectionStart"), 9, "{width} {empty}");
        }
    }
}

#[test]
fn long_names_and_values_are_not_cut_off() {
    let server = playground();
    let mut browser = Browser::start();
    for (width, height) in [(375, 740), (1300, 900)] {
        let mut page = browser.page(width, height);
        open(&mut page, &server);
        write(&mut page, LONG);
        ask(&mut page, "check", "unsafe");
        for _ in 0..3 {
            page.click("#result [data-do=previous]");
            assert_eq!(page.text(CUT), "", "{width}");
            assert_eq!(page.too_wide(), "", "{width}");
        }
        let tallest =
            "Math.max(...[...document.querySelectorAll('#result .cell dt')].map((e) => e.offsetHeight))";
        assert!(page.eval(tallest).as_u64() < Some(100), "words are broken only where they must be");
        let value = "document.querySelector('#result .cell dd').textContent";
        assert!(["Idle", "WaitingForSomethingVeryLongIndeed"].contains(&page.text(value).as_str()));
        // Registers have names for values, too.
        page.click("#result [data-do=last]");
        let registers = page.text("document.querySelector('#result .lane.now .registers').textContent");
        assert!(registers.contains("k=") && registers.contains("old="), "{registers}");
        let named = "[...document.querySelectorAll('#result .registers')].map((e) => /old=(\\w+)/.exec(e.textContent)[1]).every((name) => ['Idle', 'WaitingForSomethingVeryLongIndeed'].includes(name))";
        assert_eq!(page.eval(named), true);
        assert!(page.problems().is_empty(), "{:?}", page.problems());
    }
}

#[test]
fn constants_get_other_values() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    write(&mut page, "const N = 2;\nshared x: 0..3;\nprocess P[N] {\n    x = x + 2;\n}\n");
    ask(&mut page, "check", "unsafe");
    page.click("#constants");
    page.type_text("N=1");
    assert_eq!(page.eval("document.getElementById('stale').hidden"), false, "the answer is about N = 2");
    ask(&mut page, "check", "safe");
    let answer = page.text("document.getElementById('result').innerText");
    assert!(answer.contains("with N = 1"), "{answer}");
    // The link has the values too.
    page.click("#link");
    page.wait_until("document.getElementById('link-status').textContent !== ''");
    let link = page.text("location.hash");
    assert!(link.ends_with(",N=1"), "{link}");
    page.eval("location.hash = '#mutex/dekker.pal'");
    page.wait_until("document.getElementById('text').value.includes('Dekker')");
    assert_eq!(page.text("document.getElementById('constants').value"), "");
    page.eval(&format!("location.hash = '{link}'"));
    page.wait_until("document.getElementById('constants').value === 'N=1'");
    ask(&mut page, "check", "safe");
    page.eval("document.getElementById('constants').value = 'N=3'");
    ask(&mut page, "check", "unsafe");
    assert!(page.text("document.querySelector('#result .why').textContent").starts_with("with N = 3, "));
    // What is wrong with a value is reported.
    page.eval("document.getElementById('constants').value = 'K=1'");
    ask(&mut page, "check", "error");
    assert!(page.text("document.getElementById('problems').innerText").contains("`K`"));
    page.eval("document.getElementById('constants').value = 'N'");
    page.click("[data-ask=check]");
    page.wait_until("document.querySelector('#result .problem')?.textContent.includes('N=3 M=4')");
    // Other languages have no constants.
    choose(&mut page, "language", "rmm");
    assert_eq!(page.eval("document.getElementById('constants-label').checkVisibility()"), false);
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn errors_are_shown_while_typing() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    ask(&mut page, "check", "unsafe");
    write(
        &mut page,
        "// <img src=x onerror=\"window.broken = 1\"></textarea><script>window.broken = 1</script>\nshared x: 0..1;\nprocess P {\n    z = 1;\n}\n",
    );
    // The answer is about another program now, and marks no lines of this one.
    assert_eq!(page.eval("document.getElementById('stale').hidden"), false);
    assert_eq!(page.eval("document.querySelectorAll('#editor .now-line, #editor .passed').length"), 0);
    // Nobody asked.
    page.wait_until("document.querySelectorAll('#problems li').length === 1");
    assert_eq!(
        page.text("[...document.querySelectorAll('#lines .wrong')].map((e) => e.dataset.line).join()"),
        "4"
    );
    assert_eq!(page.eval("[...CSS.highlights.get('wrong')].map((range) => range.toString()).join()"), "z");
    assert_eq!(page.text("document.querySelector('#problems pre').textContent"), "    z = 1;\n    ^");
    assert_eq!(page.text("document.getElementById('problems-title').textContent"), "1 error");
    page.click("#problems .place");
    assert_eq!(page.eval("document.activeElement.id === 'text' && document.activeElement.value.slice(document.activeElement.selectionStart).startsWith('z = 1')"), true);
    // Ctrl+Enter checks.
    page.press("Enter", true);
    page.wait_until("document.querySelector('#result .badge')?.textContent === 'error'");
    assert_eq!(
        page.text("document.querySelector('#result .why').textContent"),
        "1 error, shown below the program"
    );
    // What is right again is not marked. Tab indents; Escape, then Tab, leaves the editor.
    page.press("Tab", false);
    assert!(page.text("document.getElementById('text').value").contains("        z = 1;"));
    page.press("Delete", false);
    page.type_text("x");
    page.wait_until("document.querySelectorAll('#problems .error, #lines .wrong').length === 0");
    page.press("Escape", false);
    page.press("Tab", false);
    assert_eq!(page.eval("document.activeElement.id === 'text'"), false);
    assert_eq!(page.text("typeof window.broken"), "undefined");
    // The text is still there after the page is reloaded.
    let before = page.text("document.getElementById('text').value");
    open(&mut page, &server);
    assert_eq!(page.text("document.getElementById('text').value"), before);
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn steps_are_taken_by_hand() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    choose_example(&mut page, "mutex/peterson.pal");
    page.click("[data-ask=step]");
    page.wait_until("document.querySelectorAll('#next button').length === 2");
    assert_eq!(page.eval("document.getElementById('undo').disabled"), true);
    page.click("#next li:nth-child(2) button");
    page.wait_until("document.querySelector('#result .count')?.textContent === 'step 1 of 1'");
    assert!(page.text("document.querySelector('#result .queue .store').textContent").contains("flag[1] = 1"));
    page.wait_until(
        "[...document.querySelectorAll('#next button')].some((e) => e.textContent.includes('to memory'))",
    );
    page.click("#next li:last-child button");
    page.wait_until("document.querySelector('#result .count')?.textContent === 'step 2 of 2'");
    page.click("#undo");
    page.wait_until("document.querySelector('#result .count')?.textContent === 'step 1 of 1'");
    page.click("#restart");
    page.wait_until("document.querySelector('#result .count')?.textContent === 'step 0 of 0'");
    choose(&mut page, "start", "1");
    page.wait_until("document.getElementById('start').selectedOptions[0].textContent === 'turn = 1'");
    write(&mut page, "enum E { A, B }\nshared x: E = *;\nprocess P { x = B; }\n");
    page.click("[data-ask=step]");
    page.wait_until(
        "[...document.getElementById('start').options].map((e) => e.textContent).join() === 'x = A,x = B'",
    );
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn long_runs_report_progress_and_can_be_stopped() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    write(&mut page, ENDLESS);
    page.click("[data-ask=check]");
    page.wait_until("/^[0-9.]+ s: .*[0-9]+ /.test(document.getElementById('status').textContent)");
    assert_eq!(server.server.load().running, 1);
    page.click("#stop");
    page.wait_until("document.querySelector('#result .badge')?.textContent === 'unknown'");
    assert!(page.text("document.querySelector('#result .why').textContent").contains("stopped"));
    assert_eq!(page.eval("document.getElementById('working').hidden"), true);

    // A new question aborts the old one. Leaving the page ends its run.
    page.click("[data-ask=check]");
    page.wait_until("document.getElementById('status').textContent.includes(' s')");
    write(&mut page, STORE_BUFFERING);
    ask(&mut page, "check", "unsafe");
    server.wait_for(IDLE);
    write(&mut page, ENDLESS);
    page.click("[data-ask=check]");
    page.wait_until("document.getElementById('status').textContent.includes(' s')");
    assert_eq!(server.server.load().running, 1);
    page.eval("setTimeout(() => { location.href = 'about:blank'; }, 0)");
    server.wait_for(IDLE);
}

#[test]
fn readable_on_a_phone_and_in_dark_mode() {
    let server = playground();
    let mut browser = Browser::start();
    for (width, height) in [(375, 740), (1300, 900)] {
        let mut page = browser.page(width, height);
        for shown in [Shown::Light, Shown::Dark] {
            page.show(shown);
            open(&mut page, &server);
            ask(&mut page, "check", "unsafe");
            assert_eq!(page.too_wide(), "", "{width}");
            assert_eq!(page.poor_contrast(), "", "{shown:?}");
            page.keep_picture(&format!("playground-{width}-{shown:?}"));
            // There are pictures for narrow screens. They fit, and memory is in them.
            assert_eq!(page.text(VISIBLE_CYCLES), if width < 500 { "narrow" } else { "wide" });
            let fits = "[...document.querySelectorAll('#result .wide:has(svg)')].every((e) => e.scrollWidth <= e.clientWidth)";
            assert_eq!(page.eval(fits), true, "{width}");
            let memory = "[...document.querySelectorAll('#result .timeline text')].filter((e) => e.checkVisibility() && e.textContent === 'memory').length";
            assert_eq!(page.eval(memory), 1, "{width}");
            assert!(page.eval("[...document.querySelectorAll('#result .timeline .from')].filter((e) => e.checkVisibility()).length").as_u64() > Some(0));
            page.eval("document.querySelector('#result .cycle').scrollIntoView({ behavior: 'instant' })");
            page.keep_picture(&format!("playground-cycle-{width}-{shown:?}"));
            page.click("[data-ask=step]");
            page.wait_until("document.querySelectorAll('#next button').length > 0");
            page.keep_picture(&format!("playground-step-{width}-{shown:?}"));
            assert_eq!(page.too_wide(), "", "{width}");
            assert_eq!(page.poor_contrast(), "", "{shown:?}");
            assert_eq!(page.without_names(), "");
            for command in ["compare", "fences"] {
                page.eval("document.getElementById('result').replaceChildren()");
                page.click(&format!("[data-ask={command}]"));
                page.wait_until("document.querySelector('#result .act')");
                assert_eq!(page.too_wide(), "", "{width}");
                assert_eq!(page.poor_contrast(), "", "{shown:?}");
                page.keep_picture(&format!("playground-{command}-{width}-{shown:?}"));
            }
            page.click("#open-examples");
            assert_eq!(page.poor_contrast(), "", "{shown:?}");
            assert_eq!(page.too_wide(), "", "{width}");
        }
    }
}
