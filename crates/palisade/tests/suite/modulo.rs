//! Counters that grow without bound: engines prove programs with integers taken modulo a number, and the checker builds
//! that program itself.
//!
//! The judge is a bounded search of the program itself. Whatever it finds, the program modulo a number has it too, and
//! no engine says `safe`. More programs: `PALISADE_SEEDS=5000`.

use palisade::certificate::{Certificate, Refusal, runs_away, wrapped};
use palisade::engine::{Limits, Verdict};
use palisade::memory::{Machine, Model};
use palisade::program::{Instantiation, lower};
use palisade::{CheckOptions, EngineChoice, Input};
use palisade_base::Source;
use palisade_conformance::Random;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::seeds;
use palisade_syntax::Language;
use std::collections::BTreeMap;

fn input(text: &str) -> Input {
    palisade::read(Source::new("tickets.pal", text), Language::Pal, None)
        .unwrap_or_else(|refused| panic!("{refused:?}\n{text}"))
}

/// The answer of an engine, the note about the number, and the certificate if there is one.
fn ask(input: &Input, engine: &str, model: Model, work: u64) -> (Verdict, Option<Certificate>) {
    let engine = EngineChoice::from(engine);
    let options = CheckOptions { model, engine, prove: true, certify: true, ..CheckOptions::default() };
    let limits = Limits::unlimited(1).with_work(work);
    let answer = palisade::check(&input.program, &options, &limits).expect("it is no bug");
    let notes = answer.progress.iter().flat_map(|progress| &progress.holds);
    let noted = notes.filter(|note| note.contains("modulo")).count();
    assert_eq!(noted, usize::from(answer.modulus.is_some()), "the answer says how it was proved");
    let certificate = answer.certificate(input);
    (answer.outcome.verdict, certificate)
}

fn ticket(file: &str) -> Input {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(file);
    input(&std::fs::read_to_string(path).expect("it is in the corpus"))
}

/// Steps of some engines never end where an integer grows in a loop. That does not keep the others from an answer.
#[test]
fn endless_steps() {
    let text =
        "shared x: int; process P { loop { x = x + 12; } } process Q { loop { if x == 25 { bad: skip; } } }
                forbid Q@bad;";
    for model in Model::ALL {
        assert_eq!(ask(&input(text), "auto", model, 100_000).0, Verdict::Holds, "{}", model.name());
    }
}

#[test]
fn ticket_locks() {
    let limits = Limits::unlimited(1);
    for (engine, model) in
        [("dual", Model::Tso), ("sb", Model::Pso), ("sb", Model::Tso), ("auto", Model::Tso)]
    {
        let lock = ticket("locks/ticket_unbounded.pal");
        let (verdict, certificate) = ask(&lock, engine, model, 100_000);
        assert_eq!(verdict, Verdict::Holds, "{engine}");
        let certificate = certificate.expect("it has a proof");
        assert_eq!(certificate.modulus, Some(2), "{engine}");
        let stored = Certificate::from_json(&certificate.to_json()).expect("it can be read");
        assert_eq!(stored, certificate);
        assert!(palisade::certify(&lock.program, &stored, &limits).is_ok(), "{engine}");
        // The proof is about this number only, and not about the program itself.
        for modulus in [None, Some(0), Some(1), Some(3), Some(5), Some(u32::MAX)] {
            let forged = Certificate { modulus, ..certificate.clone() };
            assert!(palisade::certify(&lock.program, &forged, &limits).is_err(), "{modulus:?}");
        }
        let broken = ticket("locks/ticket_unbounded.broken.pal");
        let (verdict, _) = ask(&broken, engine, model, 100_000);
        assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
        // Its certificate proves nothing about the broken lock.
        assert!(palisade::certify(&broken.program, &certificate, &limits).is_err());
    }
}

/// The difference of a remainder and a number that is known exactly must not overflow: a condition that faults is not
/// true, and the property would never count.
#[test]
fn properties_that_compare_with_large_numbers() {
    let least = "-9223372036854775807 - 1";
    for text in [
        format!(
            "shared t: int; shared big: int = {least}; process P {{ loop {{ t = t + 1; }} }} forbid t != big;"
        ),
        format!(
            "shared t: int; process P {{ let r = {least}; loop {{ l: t = t + 1; }} }} forbid P@l && t != P.r;"
        ),
        format!(
            "shared t: int; shared big: int = {least}; process P {{ loop {{ t = t + 1; }} }} forbid t >= big; final t < big;"
        ),
        format!(
            "shared t: int; shared big: int = {least}; process P {{ loop {{ t = t + 1; if t == 3 {{ l: skip; }} }} }} forbid P@l && big <= t;"
        ),
        format!(
            "shared t: int; shared big: int = {least}; process P {{ while t != 3 {{ t = t + 1; }} }} final !(t > big);"
        ),
        format!(
            "shared t: int; shared big: int = {least}; process P {{ loop {{ t = t + 1; }} }} forbid !(t == big) && t == 2;"
        ),
    ] {
        for (engine, model) in
            [("dual", Model::Tso), ("sb", Model::Pso), ("sb", Model::Tso), ("auto", Model::Tso)]
        {
            let (verdict, _) = ask(&input(&text), engine, model, 20_000);
            assert_ne!(verdict, Verdict::Holds, "{engine} under {}\n{text}", model.name());
        }
    }
}

#[test]
fn what_is_refused() {
    let check = |text: &str, expected: &str| {
        let refusal = wrapped(&input(text).program, 3).expect_err("it is refused");
        assert!(matches!(refusal, Refusal::Unfit(_)));
        assert!(refusal.to_string().contains(expected), "{refusal}\n{text}");
    };
    let counter = |rest: &str| {
        format!("shared n, k: int; shared b: 0..3; process P {{ let r: int; loop {{ n = n + 1; {rest} }} }}")
    };
    assert!(wrapped(&input(&counter("")).program, 3).is_ok());
    assert!(!runs_away(&input("shared n: int; process P { loop { n = 3; } }").program));
    check("shared n: int; process P { loop { n = 3; } }", "none grows");
    check(&counter("n = n * 2;"), "operator");
    check(&counter("r = n; n = r / 2;"), "operator");
    check(&counter("n = n & 1;"), "operator");
    check(&counter("r = n; n = r + r;"), "too much");
    check(&counter("n = n + 65537;"), "large");
    check(&counter("b = n;"), "exactly");
    check(&counter("n = n + k;"), "too much");
    check(&counter("if n { skip; }"), "exactly");
    check(&counter("fetch_or(n, 1);"), "locked instruction");
    check(&counter("cas(n, n, 1);"), "steps of its own");
    check(&counter("r = &b; *r = 1;"), "pointers");
    check("shared a[2], n: int; process P { loop { fetch_add(n, 1); a[n] = 1; } }", "exactly");
    check("shared n: int = 70000; process P { loop { fetch_add(n, 1); } }", "initial value");
}

/// A random program with two processes, whose integers are counted, copied and compared.
fn program(seed: u64) -> String {
    let random = &mut Random::new(seed);
    let mut text = String::from(
        "shared a, b: int;\nshared c: int = -2;\nshared least: int = -9223372036854775807 - 1;\nshared f: bool;\n",
    );
    for name in ["P", "Q"] {
        let body = block(random, 3, 2);
        let labelled = block(random, 1, 1);
        let end = block(random, 1, 1);
        let repeated = random.below(3) > 0;
        let (open, close) = if repeated { ("loop {", "}") } else { ("{", "}") };
        text.push_str(&format!(
            "process {name} {{ let r: int; let s: int; {open} {body} cs: {labelled} skip; {end} {close} }}\n"
        ));
    }
    let property = match random.below(6) {
        0 | 1 => "forbid P@cs && Q@cs;".to_owned(),
        2 => {
            let right = pick(random, &["b", "least"]);
            format!("forbid {} && P@cs;", comparison(random, "a", right))
        }
        3 => format!("forbid !({}) && !Q@cs;", comparison(random, "P.r", "Q.s")),
        4 => format!("final {};", comparison(random, "a", "2")),
        _ => format!("forbid {};", comparison(random, "a", "-1")),
    };
    text + &property
}

fn pick<'t>(random: &mut Random, from: &[&'t str]) -> &'t str {
    from[random.below(from.len())]
}

fn comparison(random: &mut Random, left: &str, right: &str) -> String {
    let op = pick(random, &["==", "==", "==", "!=", "!=", "<", ">="]);
    format!("{left} {op} {right}")
}

fn condition(random: &mut Random) -> String {
    let left = pick(random, &["r", "s", "a", "b", "c", "r + 1", "a - b"]);
    let right = pick(random, &["s", "r", "0", "1", "a", "b", "-1", "s - 1"]);
    let simple = comparison(random, left, right);
    match random.below(8) {
        0 => format!("{simple} && !f"),
        1 => format!("f || {simple}"),
        2 => format!("!({simple})"),
        3 => format!("({simple}) == f"),
        4 => "cas(a, r, r + 1)".to_owned(),
        5 => format!("cas(b, s - 1, {right}) && {simple}")
            .replace("cas(b, s - 1, a)", "cas(b, s, r)")
            .replace("cas(b, s - 1, b)", "cas(b, 0, s)"),
        _ => simple,
    }
}

fn block(random: &mut Random, most: usize, depth: usize) -> String {
    (0..1 + random.below(most)).map(|_| stmt(random, depth) + " ").collect()
}

fn stmt(random: &mut Random, depth: usize) -> String {
    let simple = [
        "r = a;",
        "s = b;",
        "r = s;",
        "s = r + 1;",
        "r = s - 1;",
        "r = -s;",
        "a = r;",
        "b = s + 1;",
        "a = a + 1;",
        "c = r;",
        "r = c + 1;",
        "r = fetch_add(a, 1);",
        "s = fetch_sub(b, 1);",
        "fetch_add(b, -1);",
        "fetch_add(c, 3);",
        "r = xchg(a, s);",
        "cas(a, r, s + 1);",
        "f = true;",
        "f = !f;",
        "fence;",
        "f = cas(b, r, r + 2);",
        "f = a == r;",
        "f = r != s;",
        "r = 0;",
        "a = 0;",
    ];
    match random.below(if depth == 0 { 13 } else { 17 }) {
        0 => format!("await {};", condition(random)),
        1 => format!("assume({});", condition(random)),
        2 => format!(
            "assert({});",
            pick(random, &["r != s + 3", "r != 2 && a != 3", "f || r != -2", "r <= 2", "s != a"])
        ),
        13 | 14 => {
            let condition = condition(random);
            format!(
                "if {condition} {{ {}}} else {{ {}}}",
                block(random, 2, depth - 1),
                block(random, 1, depth - 1)
            )
        }
        15 => {
            let condition = condition(random);
            format!("while {condition} {{ {}}}", block(random, 1, depth - 1))
        }
        16 => format!("choose {{ {}}} or {{ {}}}", block(random, 1, depth - 1), block(random, 1, depth - 1)),
        _ => pick(random, &simple).to_owned(),
    }
}

#[test]
fn oracle_programs_modulo_a_number_have_all_violations() {
    let seeds = seeds(150).starting_at(1);
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in &seeds {
        let text = program(seed);
        let input = input(&text);
        let system = lower(&input.program, Instantiation { any: 1, every: None });
        let model = Model::ALL[seed as usize % 3];
        let judged = brute::check(Machine::new(&system, model), Scope { states: 3_000, buffer: Some(2) });
        let is_unsafe = matches!(judged, Answer::Unsafe(_));
        *counted.entry(judged.word()).or_default() += 1;
        for modulus in [2, 3, 4] {
            let Ok(wrapped) = wrapped(&input.program, modulus) else {
                *counted.entry("refused").or_default() += 1;
                continue;
            };
            let system = lower(&wrapped, Instantiation { any: 1, every: None });
            let scope = Scope { states: if is_unsafe { 60_000 } else { 500 }, buffer: Some(2) };
            let found = brute::check(Machine::new(&system, model), scope);
            let word = match (is_unsafe, &found) {
                (true, Answer::Safe) => panic!("seed {seed}, modulo {modulus}, {}\n{text}", model.name()),
                (true, Answer::Unsafe(_)) => "found again",
                (true, Answer::Inconclusive) => "not found again",
                (false, _) => continue,
            };
            *counted.entry(word).or_default() += 1;
        }
    }
    println!("{counted:?}");
    let found = counted.get("found again").copied().unwrap_or(0);
    assert!(found > 50 || !seeds.suffice(), "{counted:?}");
}

#[test]
fn differential_engines_with_integers_modulo_a_number() {
    let seeds = seeds(8).starting_at(10_000);
    let mut counted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let limits = Limits::unlimited(1).with_work(200_000);
    for seed in &seeds {
        let text = program(seed);
        let input = input(&text);
        let system = lower(&input.program, Instantiation { any: 1, every: None });
        let (model, engine) =
            [(Model::Tso, "dual"), (Model::Pso, "sb"), (Model::Tso, "auto"), (Model::Tso, "sb")]
                [seed as usize % 4];
        let (verdict, certificate) = ask(&input, engine, model, 3_000);
        let how = match &certificate {
            Some(Certificate { modulus: Some(_), .. }) => "modulo",
            Some(certificate) if !certificate.domains.is_empty() => "domains",
            _ => "plain",
        };
        let word = match verdict {
            Verdict::Holds => "safe",
            Verdict::Violated(_) => "unsafe",
            Verdict::Unknown(_) => "unknown",
        };
        *counted.entry((how, word)).or_default() += 1;
        let Some(certificate) = certificate else { continue };
        let judged = brute::check(Machine::new(&system, model), Scope { states: 10_000, buffer: Some(3) });
        assert!(!matches!(judged, Answer::Unsafe(_)), "seed {seed}, {engine}, {how}\n{text}");
        assert!(palisade::certify(&input.program, &certificate, &limits).is_ok(), "seed {seed}\n{text}");
        if how == "modulo" {
            let plain = Certificate { modulus: None, ..certificate.clone() };
            let judged = palisade::certify(&input.program, &plain, &limits);
            assert!(judged.is_err(), "seed {seed}: it grows, so there are no automata\n{text}");
        }
    }
    println!("{counted:?}");
    let proved = counted.get(&("modulo", "safe")).copied().unwrap_or(0);
    assert!(proved > 0 || !seeds.suffice(), "{counted:?}");
}
