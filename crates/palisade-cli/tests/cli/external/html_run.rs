//! `palisade run --html`: executions of real programs, opened in a real Chromium.

use super::programs::{RACE, compiled_as};
use crate::common::Scratch;
use palisade_conformance::browser::{Browser, Page, Shown};

/// Both threads read 0 only with store buffers. The text of the program tries to break out of the page.
const BUFFERING: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int x, y;
static int r[2]; // </script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>
static void *p(void *a)
{
    atomic_store_explicit(&x, 1, memory_order_release);
    r[0] = atomic_load_explicit(&y, memory_order_acquire);
    return a;
}
static void *q(void *a)
{
    atomic_store_explicit(&y, 1, memory_order_release);
    r[1] = atomic_load_explicit(&x, memory_order_acquire);
    return a;
}
int main(void)
{
    pthread_t t[2];
    puts(\"</pre></script><script>window.broken = 1</script>\");
    fflush(stdout);
    pthread_create(&t[0], 0, p, 0);
    pthread_create(&t[1], 0, q, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    assert(r[0] || r[1]);
    return 0;
}
";

/// Thousands of steps that look alike, before a failure on any machine.
const LONG: &str = "\
#include <pthread.h>
#include <stdlib.h>
static volatile int shared, own[64];
static void *run(void *a)
{
    for (int i = 0; i < 3000; i++) { shared = i; own[i % 64]++; }
    return a;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, run, 0);
    for (int i = 0; i < 1500; i++) shared = -i;
    pthread_join(t, 0);
    abort();
}
";

fn open(page: &mut Page<'_>, scratch: &Scratch, file: &str) {
    page.open(&format!("file://{}", scratch.path(file).display()));
}

fn text(page: &mut Page<'_>, selector: &str) -> String {
    page.text(&format!("document.querySelector({selector:?})?.textContent ?? '(none)'"))
}

fn count(page: &mut Page<'_>, selector: &str) -> u64 {
    page.eval(&format!("document.querySelectorAll({selector:?}).length")).as_u64().expect("a number")
}

/// A thread whose buffer holds `stores` stores before it reads.
fn long_buffer(stores: usize) -> String {
    let cells =
        |text: fn(usize) -> String, between: &str| (0..stores).map(text).collect::<Vec<_>>().join(between);
    let store =
        cells(|cell| format!("    atomic_store_explicit(&a[{cell}], 1, memory_order_release);"), "\n");
    let all = cells(|cell| format!("a[{cell}]"), " && ");
    format!(
        "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int a[{stores}], y;
static int r[2];
static void *p(void *arg)
{{
{store}
    r[0] = atomic_load_explicit(&y, memory_order_acquire);
    return arg;
}}
static void *q(void *arg)
{{
    atomic_store_explicit(&y, 1, memory_order_release);
    r[1] = atomic_load_explicit(&a[0], memory_order_acquire);
    return arg;
}}
int main(void)
{{
    pthread_t t[2];
    pthread_create(&t[0], 0, p, 0);
    pthread_create(&t[1], 0, q, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    assert(r[0] || r[1] || !({all}));
    return 0;
}}
"
    )
}

#[test]
fn stores_that_wait_together_are_drawn_side_by_side() {
    let mut browser = Browser::start();
    let mut page = browser.page(1280, 900);
    // How many stores have no bar of their own, in the wide picture and in the narrow one.
    for (stores, wide, narrow) in [(6, 0, 0), (12, 4, 6)] {
        let scratch = compiled_as("long.c", &format!("html_run_long_{stores}"), &long_buffer(stores));
        let run = ["run", "--strategy", "pct", "--schedules", "3000", "--html", "run.html", "--", "./t"];
        scratch.run(&run).exits(4);
        open(&mut page, &scratch, "run.html");
        for (svg, more) in [("svg:not(.narrow)", wide), ("svg.narrow", narrow)] {
            let numbers = page.text(&format!(
                "Math.max(0, ...[...document.querySelectorAll('.timeline {svg} .more')].map((e) => Number(e.textContent))).toString()"
            ));
            assert_eq!(numbers, more.to_string(), "{stores} stores, {svg}");
            let misplaced = page.eval(&format!(
                "(() => {{
                    const box = (e) => ['x', 'y', 'width', 'height'].map((name) => Number(e.getAttribute(name)));
                    const bars = [...document.querySelectorAll('.timeline {svg} .bar')].map(box);
                    const lanes = [...document.querySelectorAll('.timeline {svg} .lane')].map(box);
                    const meet = (a, b) => a[0] < b[0] + b[2] && b[0] < a[0] + a[2] && a[1] < b[1] + b[3] && b[1] < a[1] + a[3];
                    const inside = (a, b) => b[0] <= a[0] && a[0] + a[2] <= b[0] + b[2];
                    const overlaps = bars.filter((bar, i) => bars.some((other, j) => i < j && meet(bar, other))).length;
                    return overlaps + bars.filter((bar) => !lanes.some((lane) => inside(bar, lane))).length;
                }})()"
            ));
            assert_eq!(misplaced, 0, "{stores} stores, {svg}");
        }
    }
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn an_execution_with_store_buffers_can_be_stepped_through() {
    let scratch = compiled_as("a<b>.c", "html_run", BUFFERING);
    scratch.run(&["run", "--html", "run.html", "--", "./t"]).exits(4);
    let mut browser = Browser::start();
    let mut page = browser.page(1280, 900);
    open(&mut page, &scratch, "run.html");
    assert_eq!(text(&mut page, ".verdict .badge"), "failed");
    let why = text(&mut page, ".verdict .why");
    assert!(
        why.contains("assertion") && why.ends_with("– with store buffers (TSO, PSO); not seen without them"),
        "{why}"
    );
    assert!(text(&mut page, ".places").contains("this store was still in the store buffer"));

    // The picture: a lane per thread, the two stores wait, and both loads overtake them.
    assert_eq!(count(&mut page, "svg:not(.narrow) .lane"), 3);
    assert!(count(&mut page, "svg .bar") >= 2);
    assert!(count(&mut page, "svg .overtakes") >= 1);
    assert!(text(&mut page, "svg .outcome text").contains("assertion"));
    let slower =
        "[...document.querySelectorAll('svg .bar')].every((bar) => Number(bar.getAttribute('height')) > 0)";
    assert_eq!(page.eval(slower), true);

    // It opens at the end. Keys step through it, and the source follows.
    let end = text(&mut page, ".controls .count");
    page.press("Home", false);
    assert!(text(&mut page, ".controls .count") != end);
    let overtaking = "[...document.querySelectorAll('.steps tbody tr:not(.local)')].findIndex((row) => row.classList.contains('overtaking'))";
    let steps = page.eval(overtaking).as_u64().expect("a load overtakes a store");
    for _ in 0..steps {
        page.press("ArrowRight", false);
    }
    assert!(text(&mut page, ".caption .note").starts_with("It took effect before the store of step "));
    let line = text(&mut page, ".now-line code");
    assert!(line.contains("atomic_load_explicit"), "{line}");
    assert_eq!(count(&mut page, ".now-line"), 1);
    page.press("ArrowLeft", false);
    assert_eq!(count(&mut page, ".caption .note"), 0);
    page.press("End", false);
    assert_eq!(text(&mut page, ".controls .count"), end);
    page.click("[data-do=previous]");
    page.click("[data-do=play]");
    page.wait_until("document.querySelector('.play').getAttribute('aria-label') === 'Play'");
    assert_eq!(text(&mut page, ".controls .count"), end);

    // A box of the picture and a row of the table select their step.
    page.click("svg .node.update text");
    assert!(text(&mut page, ".caption .effect").ends_with("reaches memory"));
    page.click(".steps > summary");
    page.click(".local-switch");
    page.click(".steps tbody tr:first-child td");
    assert!(text(&mut page, ".controls .count").starts_with("step 1 of "));

    // Text from the program stays text, and the page makes no requests.
    assert_eq!(page.text("typeof window.broken"), "undefined");
    assert!(text(&mut page, ".listing .file").contains("a<b>.c"));
    assert!(text(&mut page, "pre.engine-notes").contains("</pre></script><script>"));
    assert_eq!(page.eval("document.images.length"), 0);
    assert_eq!(page.requests().len(), 1, "{:?}", page.requests());
    assert!(page.problems().is_empty(), "{:?}", page.problems());

    // The saved schedule gives the same picture.
    scratch.run(&["run", "--replay", "t.schedule", "--html", "again.html"]).exits(4);
    let drawn = "document.querySelector('.timeline svg').innerHTML";
    open(&mut page, &scratch, "run.html");
    page.press("Home", false);
    let first = page.text(drawn);
    open(&mut page, &scratch, "again.html");
    page.press("Home", false);
    assert_eq!(page.text(drawn), first);
}

#[test]
fn long_executions_are_folded() {
    let scratch = compiled_as("t.c", "html_run_long", LONG);
    scratch.run(&["run", "--schedules", "1", "--html", "run.html", "--", "./t"]).exits(4);
    assert!(scratch.read("run.html").len() < 4 << 20, "{} bytes", scratch.read("run.html").len());
    let mut browser = Browser::start();
    let mut page = browser.page(1280, 900);
    open(&mut page, &scratch, "run.html");
    assert!(text(&mut page, ".why").contains("on any machine"));
    let left_out = text(&mut page, ".left-out");
    assert!(
        left_out.contains("steps are folded: ") && left_out.contains("repeat a loop iteration"),
        "{left_out}"
    );
    assert!(left_out.contains("The folded steps are not on this page."), "{left_out}");
    assert!(count(&mut page, "svg .node") < 400, "a few steps are left");
    assert!(count(&mut page, "svg .gap") > 0);
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn races_robustness_and_nothing() {
    let scratch = compiled_as("t.c", "html_run_race", RACE);
    let mut browser = Browser::start();
    let mut page = browser.page(1000, 800);
    scratch.run(&["run", "--schedules", "20", "--html", "run.html", "--", "./t"]).exits(5);
    open(&mut page, &scratch, "run.html");
    assert_eq!(text(&mut page, ".why"), "data race");
    assert!(text(&mut page, ".places").contains("nothing orders the two"));
    assert!(count(&mut page, "svg .node") > 2);

    let scratch = compiled_as("t.c", "html_run_robust", &BUFFERING.replace("assert(r[0] || r[1]);", ""));
    scratch.run(&["run", "--schedules", "50", "--html", "run.html", "--", "./t"]).exits(0);
    open(&mut page, &scratch, "run.html");
    assert_eq!(text(&mut page, ".verdict .badge"), "clean");
    assert_eq!(text(&mut page, ".problem"), "Nothing was found, so there is no execution to show.");
    scratch
        .run(&["run", "--robust", "--model", "tso", "--schedules", "50", "--html", "run.html", "--", "./t"])
        .exits(1);
    open(&mut page, &scratch, "run.html");
    assert_eq!(text(&mut page, ".why"), "not robust: TSO can break sequential consistency");
    assert!(text(&mut page, ".places").contains("this store can still be buffered"));
    assert_eq!(count(&mut page, "svg .bar"), 0, "it runs without store buffers");
    assert!(page.problems().is_empty(), "{:?}", page.problems());
}

#[test]
fn readable_on_a_phone_in_dark_mode_on_paper_and_without_scripts() {
    let scratch = compiled_as("t.c", "html_run_readable", BUFFERING);
    scratch.run(&["run", "--html", "run.html", "--", "./t"]).exits(4);
    let mut browser = Browser::start();
    for (width, height) in [(375, 740), (1400, 900)] {
        let mut page = browser.page(width, height);
        for shown in [Shown::Light, Shown::Dark] {
            page.show(shown);
            open(&mut page, &scratch, "run.html");
            page.keep_picture(&format!("execution-{width}-{shown:?}"));
            page.eval("document.querySelectorAll('details').forEach((details) => { details.open = true; })");
            assert_eq!(page.too_wide(), "", "{width}, {shown:?}");
            assert_eq!(page.poor_contrast(), "", "{width}, {shown:?}");
            // The picture with three threads fits: there is one for narrow screens.
            let fits = "[...document.querySelectorAll('.timeline .wide')].every((e) => e.scrollWidth <= e.clientWidth)";
            assert_eq!(page.eval(fits), true, "{width}, {shown:?}");
            let shown = "[...document.querySelectorAll('.timeline svg')].filter((e) => e.checkVisibility()).map((e) => e.getAttribute('class')).join()";
            assert_eq!(page.text(shown), if width < 500 { "narrow" } else { "" });
        }
        assert_eq!(page.without_names(), "");
    }
    let mut page = browser.page(1000, 800);
    page.show(Shown::Print);
    open(&mut page, &scratch, "run.html");
    assert!(page.printed_pages() >= 1);
    page.show(Shown::Light);
    page.allow_scripts(false);
    open(&mut page, &scratch, "run.html");
    for selector in [".verdict", ".line.passed", ".timeline svg", ".places", "details.steps"] {
        let height =
            page.eval(&format!("document.querySelector('{selector}').getBoundingClientRect().height > 0"));
        assert_eq!(height, true, "{selector}");
    }
    assert_eq!(page.eval("document.querySelector('.player').getBoundingClientRect().height"), 0);
}
