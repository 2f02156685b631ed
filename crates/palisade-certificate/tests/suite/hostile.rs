//! Certificates whose numbers were changed, with a digest that fits. The checker may refuse or accept them, since the
//! programs are safe. It never panics, and takes no more memory than a proof of this size needs.

use palisade_base::Source;
use palisade_certificate::{Certificate, Refusal, verify};
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Options, Proof, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_pushdown::Pushdown;
use palisade_syntax::{Language, parse};
use palisade_trace::text_hash;
use std::collections::BTreeMap;

const WRONG: [u32; 5] = [0, 3, 11, 9_999, u32::MAX];

/// At most about this many numbers of a certificate are changed.
const CHANGED: usize = 150;

/// Safe programs, with an engine and a model that have a proof of each kind.
fn proofs(give: &mut dyn FnMut(&Task<'_>, Proof)) {
    let mutex = "shared x, y: bool;
        process P { x = true; fence; assume(!y); cs: skip; x = false; }
        process Q { y = true; fence; assume(!x); cs: skip; y = false; }
        forbid P@cs && Q@cs;";
    let several = "shared lock: 0..1;
        process P[*] { assume(cas(lock, 0, 1)); cs: skip; lock = 0; }
        forbid count(P@cs) >= 2;";
    let identities = "shared flag[id]: bool; shared turn: id or none;
        process P(me: id)[*] { flag[me] = true; fence; for o in others { await !flag[o]; } turn = me; cs: skip; }
        forbid count(P@cs) >= 2;";
    let calls = "shared x: 0..1;
        proc f(n: 0..2) { if n > 0 { f(n - 1); } }
        process P { f(2); assume(x == 1); bad: skip; }
        process Q { f(1); x = 0; }
        forbid P@bad;";
    let mut found = 0;
    for (text, model, engine) in [
        (mutex, Model::Tso, &Dual as &dyn Engine),
        (mutex, Model::Pso, &Sb),
        (several, Model::Tso, &Dual),
        (several, Model::Pso, &Sb),
        (identities, Model::Tso, &Dual),
        (calls, Model::Sc, &Pushdown),
    ] {
        let parsed = parse(Language::Pal, &Source::new("p", text));
        let program = parsed.unwrap_or_else(|errors| panic!("{errors:?}")).program;
        let (threads, options) = (Threads::Declared, Options::default());
        let task = Task { program: &program, threads, model, interlocked: Interlocked::default(), options };
        let (outcome, proof) = engine.prove(&task.analysis(), &Limits::unlimited(1));
        let proof = proof.unwrap_or_else(|| panic!("{}: {:?}\n{text}", engine.name(), outcome.verdict));
        assert_eq!(judge(&task, &proof), Ok(()), "{text}");
        give(&task, proof);
        found += 1;
    }
    assert_eq!(found, 6);
}

fn judge(task: &Task<'_>, proof: &Proof) -> Result<(), Refusal> {
    verify(task, proof, &Limits::unlimited(1).with_work(2_000)).map(|_| ())
}

/// The text with a digest that fits.
fn sealed(text: &str) -> String {
    let start = text.find("\"digest\":\"").expect("a certificate has a digest") + "\"digest\":\"".len();
    let end = start + text[start..].find('"').expect("the digest ends");
    let digest = text_hash(&format!("{}{}", &text[..start], &text[end..]));
    format!("{}{digest}{}", &text[..start], &text[end..])
}

#[test]
fn changed_numbers_never_make_the_checker_panic() {
    let (mut refused, mut accepted, mut unread) = (0, 0, 0);
    proofs(&mut |task, proof| {
        let certificate = Certificate {
            file: "p.pal".to_owned(),
            language: "pal".to_owned(),
            hash: String::new(),
            build: None,
            model: task.model,
            interlocked: task.interlocked,
            threads: task.threads,
            int_range: None,
            constants: BTreeMap::new(),
            engine: String::new(),
            deadlocks: false,
            proof,
            ranking: None,
            finish: None,
            domains: Vec::new(),
            modulus: None,
        };
        let text = certificate.to_json();
        let text = text.trim_end();
        assert_eq!(sealed(text), text, "the digest is that of everything else");
        let numbers = numbers(text, text.find("\"proof\":").expect("there is a proof"));
        for &(start, end) in numbers.iter().step_by(1 + numbers.len() / CHANGED) {
            for wrong in WRONG {
                // Instead of the number, and beside it.
                for new in [wrong.to_string(), format!("{},{wrong}", &text[start..end])] {
                    let changed = sealed(&format!("{}{new}{}", &text[..start], &text[end..]));
                    let Ok(certificate) = Certificate::from_json(&changed) else {
                        unread += 1;
                        continue;
                    };
                    match judge(task, &certificate.proof) {
                        Ok(()) => accepted += 1,
                        Err(_) => refused += 1,
                    }
                }
            }
        }
    });
    println!("{refused} refused, {accepted} accepted, {unread} not read");
    assert!(refused > 1_000 && unread > 100, "{refused} {unread}");
}

/// Where the numbers are, from a place in the text on.
fn numbers(text: &str, from: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = None;
    for (place, byte) in text.bytes().enumerate().skip(from) {
        match (byte.is_ascii_digit(), start) {
            (true, None) => start = Some(place),
            (false, Some(first)) => {
                found.push((first, place));
                start = None;
            }
            _ => {}
        }
    }
    found
}
