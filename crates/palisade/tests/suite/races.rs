//! Data races, together with everything else that can be wrong.

use palisade::engine::{Limits, Verdict};
use palisade::memory::{Model, Violation};
use palisade::{CheckOptions, Input};
use palisade_base::Source;
use palisade_syntax::Language;

fn read(text: &str) -> Input {
    palisade::read(Source::new("p.pal", text), Language::Pal, None)
        .unwrap_or_else(|refused| panic!("{refused}"))
}

#[track_caller]
fn check(text: &str, expected: [Option<&str>; 3]) {
    let input = read(text);
    for (model, expected) in Model::ALL.into_iter().zip(expected) {
        let options = CheckOptions { model, ..CheckOptions::default() };
        let answer = palisade::check(&input.program, &options, &Limits::unlimited(1)).expect("an answer");
        let finding = answer.finding(&input, None, None);
        match (&answer.outcome.verdict, expected) {
            (Verdict::Holds, None) => assert_eq!(finding.progress.map_or(0, |note| note.holds.len()), 0),
            (Verdict::Violated(_), Some(words)) => {
                let why = palisade::report::explain(finding.evidence.as_ref().expect("a run"));
                assert!(why.contains(words), "{why}");
            }
            (verdict, _) => panic!("{}: {verdict:?}", model.name()),
        }
    }
}

#[test]
fn races_and_their_absence() {
    // Two plain stores at the same time.
    check("shared x; process P[2] { plain(x) = 1; }", [Some("data race on x"); 3]);
    // A plain load and an atomic store race; two loads do not.
    check("shared x; process P { let r = plain(x); } process Q { x = 1; }", [Some("data race on x"); 3]);
    check("shared x; process P[2] { let r = plain(x); }", [None; 3]);
    // A lock.
    let lock = "shared l: 0..1; shared x: 0..2;
        process P[2] { await cas(l, 0, 1); plain(x) = plain(x) + 1; xchg(l, 0); } final x == 2;";
    check(lock, [None; 3]);
    // Dekker's flags without fences protect nothing once there are store buffers.
    let flags = "shared f[2]: bool; shared x: 0..1;
        process P(i: 0..1) { f[i] = true; if !f[1 - i] { plain(x) = 1; } }";
    check(flags, [None, Some("data race on x"), Some("data race on x")]);
    // What is wrong otherwise comes first.
    check("shared x; process P[2] { plain(x) = 1; assert(false); }", [Some("assertion failed"); 3]);
}

/// A proof for any number of processes is not about races, and the answer says so. Where few processes race, there is a run.
#[test]
fn races_of_any_number_of_processes() {
    let ask = |text: &str| {
        let input = read(text);
        let answer = palisade::check(&input.program, &CheckOptions::default(), &Limits::unlimited(1));
        let answer = answer.expect("an answer");
        let notes = answer.finding(&input, None, None).progress.map_or(Vec::new(), |note| note.holds.clone());
        (answer.outcome.verdict, notes)
    };
    let lock = "shared lock: 0..1; shared x: 0..2;
        process P[*] { await cas(lock, 0, 1); plain(x) = 1; xchg(lock, 0); } forbid x == 2;";
    let (verdict, notes) = ask(lock);
    assert_eq!(verdict, Verdict::Holds);
    assert!(matches!(&notes[..], [note] if note.starts_with("data races are not ruled out: ")), "{notes:?}");
    let (verdict, _) = ask(&lock.replace("await cas(lock, 0, 1);", ""));
    assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
    let (verdict, notes) = ask(&lock.replace("plain(x)", "x"));
    assert_eq!((verdict, notes.len()), (Verdict::Holds, 0));
}

/// Explicit search knows no more than small numbers of processes. Races count within these numbers.
#[test]
fn races_of_small_numbers_of_processes() {
    let ask = |text: &str, engine: &str| {
        let options = CheckOptions { engine: engine.into(), ..CheckOptions::default() };
        let answer = palisade::check(&read(text).program, &options, &Limits::unlimited(1));
        answer.expect("an answer").outcome.verdict
    };
    let race = "shared x: bool; process P[*] { plain(x) = true; }";
    assert!(matches!(ask(race, "explicit"), Verdict::Violated(_)));
    let none = ask(&race.replace("plain(x)", "x"), "explicit");
    assert!(matches!(&none, Verdict::Unknown(reason) if reason.is_bound()), "{none:?}");
    let named = "shared turn: id or none; shared s: bool;
        process P(me: id)[*] {
            if turn == none { turn = me; fence; if turn == me { plain(s) = true; } }
        }";
    assert!(matches!(ask(named, "explicit"), Verdict::Violated(_)));
}

#[test]
fn proofs_are_about_everything_but_races() {
    let input = read("shared x: 0..1; process P { plain(x) = 1; } process Q { assert(plain(x) < 2); }");
    let limits = Limits::unlimited(1);
    let options = CheckOptions { certify: true, ..CheckOptions::default() };
    let answer = palisade::check(&input.program, &options, &limits).expect("an answer");
    let Verdict::Violated(_) = answer.outcome.verdict else { panic!("{:?}", answer.outcome.verdict) };
    let without = Input { program: input.program.without_plain(), ..input.clone() };
    let answer = palisade::check(&without.program, &options, &limits).expect("an answer");
    let certificate = answer.certificate(&without).expect("a proof");
    assert!(palisade::certify(&input.program, &certificate, &limits).is_ok());
}

#[test]
fn what_a_race_is_replayed_as() {
    let input = read("shared x; process P[2] { plain(x) = 1; }");
    let answer =
        palisade::check(&input.program, &CheckOptions::default(), &Limits::unlimited(1)).expect("an answer");
    let finding = answer.finding(&input, None, None);
    let violation = finding.evidence.expect("a run").replay.violation;
    assert!(matches!(violation, Some(Violation::Race(..))), "{violation:?}");
}

#[test]
fn the_operator_cannot_be_a_procedure() {
    let text = "shared x; proc plain(r) { x = r; } process P { plain(x); }";
    let refused =
        palisade::read(Source::new("p.pal", text), Language::Pal, None).expect_err("a procedure `plain`");
    assert!(refused.diagnostics.iter().any(|found| found.id == "shadowed-name"), "{refused}");
}
