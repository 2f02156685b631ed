//! Guess and proof: engines that list values decide programs whose variables are machine words or have no domain, and
//! the checker believes no guess.

use palisade::certificate::{Certificate, Refusal};
use palisade::engine::{Limits, Question, Safety, Verdict};
use palisade::memory::{Machine, Model};
use palisade::program::written::{
    Domain, Expr, ExprKind, Init, InitValue, Outside, Place, PlaceKind, Program, Rmw, Stmt, StmtKind, Type,
};
use palisade::program::{Instantiation, Value, lower, print, validate};
use palisade::{CheckOptions, EngineChoice, Input};
use palisade_base::{Diagnostic, Source, Span};
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::{Profile, generate, seeds};
use palisade_syntax::Language;
use std::collections::BTreeMap;

/// The program with this type instead of small domains.
fn widened(mut program: Program, ty: Type) -> Program {
    for shared in &mut program.shared {
        let arbitrary = match &shared.init {
            Init::Every(value) => *value == InitValue::Any,
            Init::Each(values) => values.contains(&InitValue::Any),
        };
        if !arbitrary && shared.ty.outside != Outside::Block {
            shared.ty = ty;
        }
    }
    program
}

fn input(text: &str) -> Input {
    palisade::read(Source::new("words.pal", text), Language::Pal, None).expect("it is valid")
}

/// The answer of an engine, and the certificate if there is one.
fn ask(input: &Input, engine: &str, model: Model) -> (Verdict, Option<Certificate>) {
    let engine = EngineChoice::from(engine);
    let options = CheckOptions { model, engine, prove: true, certify: true, ..CheckOptions::default() };
    let limits = Limits::unlimited(1).with_work(20_000);
    let answer = palisade::check(&input.program, &options, &limits).expect("it is no bug");
    let certificate = answer.certificate(input);
    (answer.outcome.verdict, certificate)
}

/// A certificate with a smaller domain proves nothing: every domain is as small as it can be.
fn check_forged(input: &Input, certificate: &Certificate, limits: &Limits) {
    for index in 0..certificate.domains.len() {
        for end in 0..2 {
            let mut forged = certificate.clone();
            let domain = &mut forged.domains[index];
            match end {
                0 => domain.lo += 1,
                _ => domain.hi -= 1,
            }
            let judged = palisade::certify(&input.program, &forged, limits);
            assert!(judged.is_err(), "{:?}", forged.domains);
        }
    }
}

/// Words of 32 bits.
const WORD: Type =
    Type { domain: Domain::Range { lo: i32::MIN as Value, hi: i32::MAX as Value }, outside: Outside::Wrap };

#[test]
fn differential_engines_with_guessed_domains() {
    let guessed = differential(WORD, 40, 1, |program| program);
    assert!(guessed.is_none_or(|guessed| guessed > 5), "{guessed:?}");
}

/// In a variable that wraps around, `cas` compares with what its operand becomes there.
#[test]
fn differential_engines_where_cas_expects_other_numbers() {
    let guessed = differential(WORD, 30, 2_000, expecting_more);
    assert!(guessed.is_none_or(|guessed| guessed > 5), "{guessed:?}");
}

/// The program in which each `cas` expects 2^32 more, which is the same in a word.
fn expecting_more(program: Program) -> Program {
    let text = print::print(&program);
    let mut parts = text.split("cas(");
    let first = parts.next().unwrap_or_default().to_owned();
    let more = parts.fold(first, |text, part| text + "cas(" + &part.replacen(", ", ", 4294967296 + ", 1));
    let read = palisade::read(Source::new("words.pal", more), Language::Pal, None);
    read.map_or(program, |input| input.program)
}

#[test]
fn cas_expects_what_its_operand_becomes() {
    let limits = Limits::unlimited(1);
    for text in [
        "shared x: u32 = 3; process P { if cas(x, 4294967299, 1) { assert(false); } } process Q { loop { x = 4; x = 3; } }",
        "const FREE = -1; shared lock: u32 = 4294967295;
         process P[2] { if cas(lock, FREE, 4294967294) { cs: skip; lock = 4294967295; } } process Q { let t = lock; }
         forbid count(P@cs) >= 1;",
        "shared x: 0..7 wrap = 3; process P { loop { let e = x; if cas(x, e + 8, e) { assert(false); } } }",
    ] {
        let program = input(text);
        for (engine, model) in
            [("dual", Model::Tso), ("sb", Model::Tso), ("sb", Model::Pso), ("dual", Model::Sc), ("auto", Model::Tso)]
        {
            let (verdict, _) = ask(&program, engine, model);
            assert_ne!(verdict, Verdict::Holds, "{engine} under {}\n{text}", model.name());
        }
        let name = program.program.shared[0].name.text.to_string();
        let value = if name == "lock" { Value::from(u32::MAX) } else { 3 };
        let domain = palisade::certificate::CellDomain { name, lo: value, hi: value };
        let refused = palisade::certificate::narrowed(&program.program, &[domain]);
        assert!(refused.is_err_and(|why| why.to_string().contains("cas")), "{text}");
    }
    // Within its domain, a word may be compared.
    let text = "shared x: u32 = 3; shared n: u32;
                process P[2] { loop { if cas(x, 3, 5) { fetch_add(n, 1); assert(n <= 1); fetch_sub(n, 1); fence; x = 3; } } }";
    let program = input(text);
    let (verdict, certificate) = ask(&program, "dual", Model::Tso);
    assert_eq!(verdict, Verdict::Holds);
    assert!(palisade::certify(&program.program, &certificate.expect("it has a proof"), &limits).is_ok());
}

/// Without domains, every value that a process stores is also counted up and down again. So the values that one
/// process alone could store have no bound.
#[test]
fn differential_engines_without_domains() {
    let guessed = differential(Type::INT, 20, 1_000, counting);
    assert!(guessed.is_none_or(|guessed| guessed > 5), "{guessed:?}");
}

/// The program in which processes count a variable up and down around each store of their bodies.
fn counting(mut program: Program) -> Program {
    let Some(counter) = program.shared.iter().find(|shared| shared.len.is_none() && shared.ty == Type::INT)
    else {
        return program;
    };
    let add = |rmw| {
        let place = Place::new(PlaceKind::Named(counter.name.clone()), Span::NONE);
        let locked = ExprKind::Locked(rmw, place, vec![Expr::int(1)]);
        Stmt::new(StmtKind::Eval(Expr::new(locked, Span::NONE)), Span::NONE)
    };
    for template in &mut program.templates {
        let body = std::mem::take(&mut template.body);
        for stmt in body {
            let stores = matches!(stmt.kind, StmtKind::Assign { .. }) && stmt.labels.is_empty();
            match stores {
                true => template.body.extend([add(Rmw::FetchAdd), stmt, add(Rmw::FetchSub)]),
                false => template.body.push(stmt),
            }
        }
    }
    program
}

/// Compares engines with brute force on random programs with wide variables. How many answers had guessed domains, if
/// there were enough programs to say.
fn differential(ty: Type, count: u64, first: u64, change: fn(Program) -> Program) -> Option<usize> {
    let seeds = seeds(count).starting_at(first);
    let mut compared: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut guessed = 0;
    for seed in &seeds {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let program = change(widened(generate(profile, seed), ty));
        if validate(&program).iter().any(Diagnostic::is_error) {
            continue;
        }
        let text = print::print(&program);
        let input = input(&text);
        let system = lower(&program, Instantiation { any: 1, every: None });
        for (model, engine) in
            [(Model::Tso, "dual"), (Model::Pso, "sb"), (Model::Sc, "dual"), (Model::Tso, "sb")]
        {
            let scope = Scope { states: 10_000, buffer: Some(3) };
            let word = match brute::check(Machine::new(&system, model), scope) {
                Answer::Safe => "safe",
                Answer::Unsafe(_) => "unsafe",
                Answer::Inconclusive => continue,
            };
            let (verdict, certificate) = ask(&input, engine, model);
            if matches!(verdict, Verdict::Unknown(_)) {
                continue;
            }
            let found = Safety::word(&verdict);
            assert_eq!(found, word, "seed {seed}, {profile:?}, {engine} under {}\n{text}", model.name());
            *compared.entry((engine, found)).or_default() += 1;
            if let Some(certificate) = certificate.filter(|certificate| !certificate.domains.is_empty()) {
                guessed += 1;
                let limits = Limits::unlimited(1).with_work(200_000);
                let stored = Certificate::from_json(&certificate.to_json()).expect("it can be read");
                assert_eq!(stored.domains, certificate.domains);
                assert!(palisade::certify(&input.program, &stored, &limits).is_ok(), "seed {seed}\n{text}");
                check_forged(&input, &certificate, &limits);
            }
        }
    }
    println!("{compared:?}, {guessed} with domains");
    seeds.suffice().then_some(guessed)
}

/// A counter without a domain that goes up and down: the values that single processes can give it have no bound.
#[test]
fn counters_without_domains() {
    let text = |most: i64| {
        format!(
            "shared n: int; process P(i: 0..1) {{ let r: int; loop {{\n\
             fetch_add(n, 1); r = n; assert(r <= {most}); assert(r >= 1); fetch_add(n, -1); }} }}"
        )
    };
    for (engine, model) in [("dual", Model::Tso), ("sb", Model::Tso), ("sb", Model::Pso), ("dual", Model::Sc)]
    {
        let program = input(&text(2));
        let (verdict, certificate) = ask(&program, engine, model);
        assert_eq!(verdict, Verdict::Holds, "{engine}");
        let certificate = certificate.expect("it has a proof");
        let limits = Limits::unlimited(1);
        assert!(palisade::certify(&program.program, &certificate, &limits).is_ok());
        let shown: Vec<(&str, i64, i64)> =
            certificate.domains.iter().map(|domain| (&*domain.name, domain.lo, domain.hi)).collect();
        if !shown.is_empty() {
            assert_eq!(shown, [("n", 0, 2)]);
            check_forged(&program, &certificate, &limits);
        }
        let (verdict, _) = ask(&input(&text(1)), engine, model);
        assert!(matches!(verdict, Verdict::Violated(_)), "{engine}");
    }
}

/// A counter in a loop: too many values to list, unless somebody knows that it is 3 at most.
#[test]
fn counters_in_loops() {
    let text = |most: i64| {
        format!(
            "shared lock: bool; shared n: -2147483648..2147483647 wrap;\n\
             process P[3] {{ let t: -2147483648..2147483647 wrap;\n\
             await !xchg(lock, true); t = n; n = t +% 1; fence; lock = false; assert(t < {most}); }}"
        )
    };
    for engine in ["dual", "sb"] {
        let program = input(&text(3));
        let (verdict, certificate) = ask(&program, engine, Model::Tso);
        assert_eq!(verdict, Verdict::Holds, "{engine}");
        let certificate = certificate.expect("it has a proof");
        let limits = Limits::unlimited(1);
        assert!(palisade::certify(&program.program, &certificate, &limits).is_ok());
        if engine == "dual" {
            let shown: Vec<(&str, i64, i64)> =
                certificate.domains.iter().map(|domain| (&*domain.name, domain.lo, domain.hi)).collect();
            assert_eq!(shown, [("n", 0, 3)]);
            check_forged(&program, &certificate, &limits);
            let unknown = Certificate { domains: Vec::new(), ..certificate };
            let judged = palisade::certify(&program.program, &unknown, &limits);
            assert!(matches!(judged, Err(Refusal::Unsuited(_) | Refusal::Unfit(_))), "{judged:?}");
        }
        let (verdict, _) = ask(&input(&text(2)), engine, Model::Tso);
        assert!(matches!(verdict, Verdict::Violated(_)), "{engine}");
    }
}
