//! The playground in a real Chromium. Every control is used.

use crate::common::{ENDLESS, Running, STORE_BUFFERING, small};
use palisade_conformance::browser::{Browser, Page, Shown};
use palisade_serve::{Config, Load};

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
    assert!(page.eval("document.querySelectorAll('#colours .h-keyword').length").as_u64() > Some(5));
    assert!(page.eval("document.querySelectorAll('#example option').length").as_u64() > Some(80));

    ask(&mut page, "check", "unsafe");
    page.click("#result [data-do=first]");
    page.click("#result [data-do=next]");
    assert_eq!(page.text("document.querySelector('#result .count').textContent"), "step 1 of 8");
    choose(&mut page, "model", "sc");
    ask(&mut page, "check", "safe");
    page.click("[data-ask=robust]");
    page.wait_until("document.querySelector('#result .problem')?.textContent.includes('SC')");
    choose(&mut page, "model", "pso");
    ask(&mut page, "robust", "not-robust");
    assert_eq!(page.eval("document.querySelectorAll('#result .cycle svg').length"), 1);
    choose(&mut page, "model", "tso");

    // Other languages, engines and numbers of threads.
    choose(&mut page, "example", "trencher/store_buffering.trencher");
    assert_eq!(page.text("document.getElementById('language').value"), "trencher");
    ask(&mut page, "check", "unsafe");
    choose(&mut page, "example", "litmus/sb.pal");
    choose(&mut page, "engine", "explicit");
    ask(&mut page, "check", "unsafe");
    choose(&mut page, "engine", "auto");
    choose(&mut page, "threads", "any");
    ask(&mut page, "check", "unsafe");
    choose(&mut page, "threads", "");

    // Fences, with all their options.
    write(&mut page, STORE_BUFFERING);
    choose(&mut page, "language", "pal");
    assert_eq!(
        page.text("document.getElementById('example').value"),
        "",
        "an edited program is no longer an example"
    );
    ask(&mut page, "fences", "safe");
    assert_eq!(page.eval("document.querySelectorAll('#result ins').length"), 2);
    page.click(".more > summary");
    choose(&mut page, "goal", "robustness");
    choose(&mut page, "place", "before-reads");
    page.click("#all");
    ask(&mut page, "fences", "robust");

    // The URL names the example.
    let url = format!("{}#mutex/dekker.fenced.pal", server.server.url());
    page.eval(&format!("location.href = '{url}'"));
    page.wait_until("document.getElementById('example').value === 'mutex/dekker.fenced.pal'");
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
fn errors_are_shown_where_they_are() {
    let server = playground();
    let mut browser = Browser::start();
    let mut page = browser.page(1300, 900);
    open(&mut page, &server);
    write(
        &mut page,
        "// <img src=x onerror=\"window.broken = 1\"></textarea><script>window.broken = 1</script>\nprocess P {\n    z = 1;\n}\n",
    );
    page.press("Enter", true);
    page.wait_until("document.querySelector('#result .diagnostics')");
    assert_eq!(
        page.text("[...document.querySelectorAll('#gutter .wrong')].map((e) => e.textContent).join()"),
        "3"
    );
    page.click("#result .diagnostics .place");
    assert_eq!(
        page.eval("document.activeElement.id === 'text' && document.activeElement.selectionStart > 90"),
        true
    );
    // The mark disappears when the text changes. Tab indents; Escape, then Tab, leaves the editor.
    page.press("Tab", false);
    assert_eq!(page.eval("document.querySelectorAll('#gutter .wrong').length"), 0);
    assert!(page.text("document.getElementById('text').value").contains("        z = 1;"));
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
    choose(&mut page, "example", "mutex/peterson.pal");
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
            page.click("[data-ask=step]");
            page.wait_until("document.querySelectorAll('#next button').length > 0");
            page.keep_picture(&format!("playground-step-{width}-{shown:?}"));
            assert_eq!(page.too_wide(), "", "{width}");
            assert_eq!(page.poor_contrast(), "", "{shown:?}");
            assert_eq!(page.without_names(), "");
        }
    }
}
