//! `--html`: opens pages in a real Chromium and uses every control.

use crate::common;

use common::{FENCED, STORE_BUFFERING, Scratch};
use palisade_conformance::browser::{Browser, Page, Shown};

const PETERSON: &str = "\
// </script><script>window.broken = 1</script><img src=\"http://example.invalid/x\" onerror=\"window.broken = 1\">
shared flag[2]: bool;
shared turn: 0..1 = *;

process P(i: 0..1) {
    loop {
        flag[i] = true;
        turn = 1 - i;
        while flag[1 - i] && turn == 1 - i {}
    cs: skip;
        flag[i] = false;
    }
}

forbid P(0)@cs && P(1)@cs;
";

/// Each process sees the other's flag and lowers its own for a moment, forever.
const AFTER_YOU: &str = "\
shared flag[2]: bool;
process P(i: 0..1) {
    flag[i] = true;
    fence;
    while flag[1 - i] {
        flag[i] = false;
        fence;
        flag[i] = true;
        fence;
    }
}
terminates;
";

/// Steps that touch no shared memory, which are initially folded.
const WITH_LOCAL_STEPS: &str = "\
shared x, y: 0..3;
process P { let a = 1; a = a + 1; x = a; let r = y; }
process Q { y = 2; let r = x; }
final P.r == 2 || Q.r == 2;
";

fn address(scratch: &Scratch, file: &str) -> String {
    format!("file://{}", scratch.path(file).display())
}

/// The step that the page shows, and the stores in a thread's buffer, newest first.
fn count(page: &mut Page<'_>) -> String {
    page.text("document.querySelector('.count').textContent")
}

fn queue(page: &mut Page<'_>, lane: usize) -> String {
    page.text(&format!(
        "[...document.querySelectorAll('.lanes .lane')[{lane}].querySelectorAll('.store, .none')].map((e) => e.textContent).join(' | ')"
    ))
}

/// A run that never ends: the cycle is marked in the drawing and in the list, and the player repeats it.
#[test]
fn the_cycle_of_an_endless_run_is_marked_and_repeated() {
    let scratch = Scratch::new("html_cycle").file("after_you.pal", AFTER_YOU);
    scratch.run(&["check", "after_you.pal", "--html", "run.html"]).exits(1);
    let mut browser = Browser::start();
    let mut page = browser.page(1280, 900);
    page.open(&address(&scratch, "run.html"));
    assert!(count(&mut page).ends_with(", again and again"));
    assert_eq!(page.text("document.querySelector('svg .repeats text').textContent"), "forever");
    assert_eq!(page.text("document.querySelectorAll('.steps .forever').length + ''"), "1");
    let repeated = page.text("document.querySelectorAll('.steps .repeated').length + ''");
    assert!(repeated.parse().is_ok_and(|rows: usize| rows >= 12), "{repeated}");
    page.click("[data-do=first]");
    assert!(!count(&mut page).contains("again"));
    // After the last step, the player goes on with the first step of the cycle.
    page.click("[data-do=last]");
    page.click("[data-do=previous]");
    page.click("[data-do=play]");
    page.wait_until("document.querySelector('.count').textContent.startsWith('step 24 of 24')");
    page.wait_until("/^step 1.*again and again/.test(document.querySelector('.count').textContent)");
    assert_eq!(page.text("document.querySelector('.play').getAttribute('aria-label')"), "Pause");
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn every_control_of_a_run_works() {
    let scratch = Scratch::new("html_controls").file("peterson.pal", PETERSON);
    scratch.run(&["check", "peterson.pal", "--html", "run.html"]).exits(1);
    let mut browser = Browser::start();
    let mut page = browser.page(1280, 900);
    page.open(&address(&scratch, "run.html"));

    // It opens at the end, because people want to see what is wrong.
    assert_eq!(count(&mut page), "step 8 of 8");
    // The failure is stated once.
    assert_eq!(page.eval("document.body.innerText.split('both at cs').length - 1"), 1);
    assert_eq!(page.text("document.querySelector('.line.broken').dataset.line"), "15");

    page.click("[data-do=first]");
    assert_eq!(count(&mut page), "step 0 of 8");
    assert_eq!(queue(&mut page, 1), "empty");
    page.click("[data-do=next]");
    page.click("[data-do=next]");
    assert_eq!(count(&mut page), "step 2 of 8");
    assert_eq!(queue(&mut page, 1), "turn = 0 | flag[1] = 1");
    assert_eq!(page.text("document.querySelector('.now-line').dataset.line"), "8");
    page.click("[data-do=previous]");
    assert_eq!(queue(&mut page, 1), "flag[1] = 1");
    page.click("[data-do=last]");
    assert_eq!(count(&mut page), "step 8 of 8");

    // The keyboard, while nothing in particular has the focus.
    page.eval("document.activeElement.blur()");
    page.press("Home", false);
    assert_eq!(count(&mut page), "step 0 of 8");
    for _ in 0..3 {
        page.press("ArrowRight", false);
    }
    assert_eq!(count(&mut page), "step 3 of 8");
    assert_eq!(page.eval("document.querySelectorAll('.entry.overtaken').length"), 2);
    assert!(page.text("document.querySelector('.leaping .leap').textContent").contains("past 2 stores"));
    assert_eq!(page.text("document.querySelector('.cell.read dt').textContent"), "flag[0]");
    page.press("ArrowLeft", false);
    assert_eq!(count(&mut page), "step 2 of 8");
    page.press("End", false);
    assert_eq!(count(&mut page), "step 8 of 8");

    // The slider, by its own keys and by a value.
    page.eval("document.querySelector('input[type=range]').focus()");
    page.press("Home", false);
    page.press("ArrowRight", false);
    assert_eq!(count(&mut page), "step 1 of 8");
    assert!(
        page.text("document.activeElement.getAttribute('aria-valuetext')").starts_with("step 1 of 8: P(1)")
    );
    page.eval("(() => { const r = document.querySelector('input[type=range]'); r.value = 5; r.dispatchEvent(new Event('input')); })()");
    assert_eq!(count(&mut page), "step 5 of 8");

    // Clicking rows of the table or boxes of the picture selects their step.
    page.click(".steps tr[data-step='2'] td");
    assert_eq!(count(&mut page), "step 3 of 8");
    page.click(".timeline .node[data-step='5'] text");
    assert_eq!(count(&mut page), "step 6 of 8");
    assert_eq!(page.text("document.querySelector('.steps tr.now-step th').textContent"), "6");
    page.click(".steps > summary");
    assert_eq!(page.eval("document.querySelector('details.steps').open"), false);

    // Playing continues to the end and stops there. Space pauses.
    page.click("[data-do=play]");
    assert_eq!(page.text("document.querySelector('.play').getAttribute('aria-label')"), "Pause");
    page.wait_until("document.querySelector('.count').textContent === 'step 8 of 8'");
    page.wait_until("document.querySelector('.play').getAttribute('aria-label') === 'Play'");
    page.eval("document.activeElement.blur()");
    page.press(" ", false);
    assert_eq!(count(&mut page), "step 0 of 8");
    page.press(" ", false);
    assert_eq!(page.text("document.querySelector('.play').getAttribute('aria-label')"), "Play");

    // Text from the program stays text, and the page makes no requests.
    assert_eq!(page.text("typeof window.broken"), "undefined");
    assert!(
        page.text("document.querySelector('[data-line=\"1\"] code').textContent").starts_with("// </script>")
    );
    assert_eq!(page.eval("document.images.length"), 0);
    let own = address(&scratch, "run.html");
    assert!(page.requests().iter().all(|request| *request == own), "{:?}", page.requests());
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn local_steps_fold_and_unfold() {
    let scratch = Scratch::new("html_local").file("local.pal", WITH_LOCAL_STEPS);
    scratch.run(&["check", "local.pal", "--html", "run.html"]).exits(1);
    let mut browser = Browser::start();
    let mut page = browser.page(1000, 800);
    page.open(&address(&scratch, "run.html"));
    let visible =
        "[...document.querySelectorAll('.steps tbody tr')].filter((row) => row.offsetParent !== null).length";
    let positions = "Number(document.querySelector('input[type=range]').max)";
    let (rows, folded) = (page.eval(visible).as_u64(), page.eval(positions).as_u64());
    page.click(".local-switch");
    assert!(page.eval(visible).as_u64() > rows, "more rows are shown");
    assert!(page.eval(positions).as_u64() > folded, "the slider passes more states");
    assert!(page.text("document.querySelector('.registers').textContent").contains("a="));
    page.click(".local-switch");
    assert_eq!(page.eval(visible).as_u64(), rows);
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

/// Three processes that take part.
const THREE: &str = "shared flag[3]: bool;
shared inside: 0..3;

process P(i: 0..2) {
    flag[i] = true;
    if !flag[(i + 1) % 3] && !flag[(i + 2) % 3] {
        inside = inside + 1;
    }
}

forbid inside == 3;
";

/// Two processes break the program; the others only stand by. The program is longer than its listing is high.
fn many_processes() -> String {
    let padding = "// Nothing to see here.\n".repeat(60);
    format!(
        "shared x, y, spare[12]: 0..1;\nprocess P {{ x = 1; let r = y; }}\nprocess Idle(i: 0..4) {{ spare[i] = 1; }}\n{padding}\
         process Q {{ y = 1; let r = x; }}\nforbid P@end && Q@end && P.r == 0 && Q.r == 0;\n"
    )
}

#[test]
fn idle_processes_fold_away_and_the_code_follows_the_run() {
    let scratch = Scratch::new("html_idle").file("many.pal", many_processes());
    scratch.run(&["check", "many.pal", "--html", "run.html"]).exits(1);
    let mut browser = Browser::start();
    let mut page = browser.page(1100, 800);
    page.open(&address(&scratch, "run.html"));
    assert_eq!(page.eval("document.querySelectorAll('.timeline svg rect.lane').length"), 3);
    let seen = "[...document.querySelectorAll('.lanes .lane .name')].filter((e) => e.checkVisibility()).map((e) => e.textContent).join(' ')";
    assert_eq!(page.text(seen), "P Q");
    page.click(".idle > summary");
    assert_eq!(page.text(seen), "P Q Idle(0) Idle(1) Idle(2) Idle(3) Idle(4)");
    assert!(page.text("document.querySelector('.timeline').textContent").contains("Idle(4) take no step"));
    // The line of the step is always inside the listing.
    let inside = "(() => { const [l, b] = ['.now-line', '.listing'].map((s) => document.querySelector(s).getBoundingClientRect()); return l.top >= b.top && l.bottom <= b.bottom; })()";
    let scrolled = "document.querySelector('.listing').scrollTop > 0";
    let mut places = Vec::new();
    page.click("[data-do=first]");
    for _ in 0..4 {
        page.click("[data-do=next]");
        assert_eq!(page.eval(inside), true);
        places.push(page.eval(scrolled) == true);
    }
    assert!(places.contains(&true) && places.contains(&false), "{places:?}");
    // The memory column fits without scrolling.
    for width in [1100, 700, 375] {
        page.resize(width, 800);
        assert_eq!(
            page.eval("(() => { const w = document.querySelector('.steps .wide'); return w.scrollWidth <= w.clientWidth; })()"),
            true,
            "{width}"
        );
    }
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn without_scripts_the_essentials_are_there() {
    let scratch = Scratch::new("html_plain").file("sb.pal", STORE_BUFFERING);
    scratch.run(&["robust", "sb.pal", "--html", "run.html"]).exits(1);
    let mut browser = Browser::start();
    let mut page = browser.page(1000, 800);
    page.allow_scripts(false);
    page.open(&address(&scratch, "run.html"));
    let shows = |page: &mut Page<'_>, selector: &str| {
        let found = page.eval(&format!(
            "(() => {{ const e = document.querySelector('{selector}'); return !!e && e.getBoundingClientRect().height > 0; }})()"
        ));
        found == true
    };
    for selector in [".verdict", ".line.passed", ".timeline svg", ".steps table", ".cycle svg", ".stats dl"] {
        assert!(shows(&mut page, selector), "{selector}");
    }
    assert!(!shows(&mut page, ".player"), "controls that do nothing are not shown");
    assert!(page.text("document.querySelector('.cycle ol').textContent").contains("from-read of x"));
}

#[test]
fn fences_with_their_reasons() {
    let scratch = Scratch::new("html_fences").file("sb.pal", STORE_BUFFERING).file("fenced.pal", FENCED);
    scratch.run(&["fences", "sb.pal", "--all", "--html", "fences.html"]).exits(0);
    let mut browser = Browser::start();
    let mut page = browser.page(1100, 800);
    page.open(&address(&scratch, "fences.html"));
    let fences =
        "[...document.querySelectorAll('.fence-set ins')].map((e) => e.textContent.trim()).join(' ')";
    assert_eq!(page.text(fences), "fence; fence;");
    assert_eq!(page.eval("document.querySelectorAll('.reason').length"), 2);
    // Each reason has its own run. Keys go to the one in use.
    page.click(".fences li:nth-child(2) summary");
    page.click(".fences li:nth-child(2) [data-do=first]");
    page.press("ArrowRight", false);
    let counts = "[...document.querySelectorAll('.count')].map((e) => e.textContent.split(' ')[1]).join(' ')";
    let counts = page.text(counts);
    let (first, second) = counts.split_once(' ').expect("two runs");
    assert!(first != "1" && second == "1", "{counts}");
    assert!(page.problems().is_empty(), "{:?}", page.problems());

    scratch.run(&["fences", "fenced.pal", "--html", "none.html"]).exits(0);
    page.open(&address(&scratch, "none.html"));
    assert!(page.text("document.querySelector('.why').textContent").contains("no fences needed"));
}

#[test]
fn many_files_are_a_list_and_replay_has_a_page_too() {
    let scratch = Scratch::new("html_many")
        .file("all/a<b>.pal", STORE_BUFFERING)
        .file("all/fenced.pal", FENCED)
        .file("all/wrong.pal", "process P { x = ; }");
    scratch.run(&["check", "all", "--html", "all.html"]).exits(2);
    let mut browser = Browser::start();
    let mut page = browser.page(1100, 800);
    page.open(&address(&scratch, "all.html"));
    let words =
        page.text("[...document.querySelectorAll('.files .badge')].map((e) => e.textContent).join(' ')");
    assert_eq!(words, "unsafe safe error");
    page.click(".files a");
    assert_eq!(
        page.text("document.querySelector(location.hash).querySelector('.file').textContent"),
        "all/a<b>.pal"
    );
    assert!(page.text("document.querySelector('.diagnostics').textContent").contains("line 1"));
    page.click(".diagnostics .place");
    assert!(page.problems().is_empty(), "{:?}", page.problems());

    scratch.run(&["check", "all/a<b>.pal", "--witness", "run.json"]).exits(1);
    scratch.run(&["replay", "run.json", "--html", "replay.html"]).exits(0);
    page.open(&address(&scratch, "replay.html"));
    assert_eq!(page.text("document.querySelector('.badge').textContent"), "valid");
    page.click("[data-do=first]");
    assert!(count(&mut page).starts_with("step 0"));
}

#[test]
fn readable_on_a_phone_in_dark_mode_on_paper_and_by_machines() {
    let scratch =
        Scratch::new("html_readable").file("peterson.pal", PETERSON).file("sb.pal", STORE_BUFFERING);
    scratch.run(&["check", "peterson.pal", "--html", "check.html"]).exits(1);
    scratch.run(&["fences", "sb.pal", "--all", "--html", "fences.html"]).exits(0);
    scratch.run(&["check", ".", "--html", "all.html"]).exits(1);
    // After the folder was checked.
    let scratch = scratch.file("three.pal", THREE);
    scratch.run(&["check", "three.pal", "--html", "three.html"]).exits(1);
    let mut browser = Browser::start();
    let mut page = browser.page(375, 740);
    for file in ["check.html", "fences.html", "all.html", "three.html"] {
        for shown in [Shown::Light, Shown::Dark] {
            page.show(shown);
            page.open(&address(&scratch, file));
            page.eval("document.querySelectorAll('details').forEach((details) => { details.open = true; })");
            page.eval("document.querySelector('[data-do=previous]').click()");
            assert_eq!(page.too_wide(), "", "{file}");
            // No picture scrolls, however many threads it has.
            let fits = "[...document.querySelectorAll('.timeline .wide')].every((e) => e.scrollWidth <= e.clientWidth)";
            assert_eq!(page.eval(fits), true, "{file}");
            page.keep_picture(&format!("{file}-phone-{shown:?}"));
            assert_eq!(page.poor_contrast(), "", "{file}, {shown:?}");
        }
        assert_eq!(page.without_names(), "", "{file}");
        let small = "[...document.querySelectorAll('.controls button')].filter((e) => e.getBoundingClientRect().width < 40 && e.offsetParent).length";
        assert_eq!(page.eval(small), 0, "buttons are large enough for fingers");
    }
    page.show(Shown::Print);
    page.open(&address(&scratch, "check.html"));
    assert_eq!(page.text("getComputedStyle(document.querySelector('.controls')).display"), "none");
    page.keep_picture("check-print");
    let cut = "[...document.querySelectorAll('.listing')].some((e) => e.scrollHeight > e.clientHeight + 1)";
    assert_eq!(page.eval(cut), false, "programs are printed as a whole");
    assert!(page.printed_pages() >= 1);
}
