//! Random C programs for any number of threads, against brute force with a few.
//!
//! - `safe` means that brute force finds nothing with 1, 2, 3 or 4 threads per function.
//! - `unsafe` comes with a run that replays, and brute force breaks the program with as many threads.
//! - If brute force breaks the program with one of these numbers, the answer is `unsafe`. Otherwise, `unknown` comes with the number of threads up to which it holds.
//!
//! `PALISADE_SEEDS=1000` looks further.

use crate::common::Scratch;
use palisade::Model;
use palisade_conformance::c::crowd::{self, Crowd};
use palisade_conformance::seeds;
use serde_json::Value;

/// The largest number of threads per function that brute force looks at.
const MOST: u32 = 4;

#[test]
fn any_number_of_threads() {
    let scratch = Scratch::new("c_any_random");
    let (mut wrong, mut words) = (Vec::new(), Vec::new());
    for seed in seeds(8) {
        let crowd = crowd::generate(seed);
        std::fs::write(scratch.path("p.c"), crowd.text()).expect("a file can be written");
        for model in [Model::Tso, Model::Pso] {
            match judged(&scratch, &crowd, model) {
                Ok(word) => words.push(word),
                Err(why) => {
                    wrong.push(format!("seed {seed}, {}: {why}\n{}", model.name(), crowd.text()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if seeds(8).suffice() {
        let count = |wanted: &str| words.iter().filter(|word| *word == wanted).count();
        assert!(count("safe") > 0 && count("unsafe") > 0, "{words:?}");
        assert!(count("unknown") <= words.len() / 8, "{words:?}");
    }
}

/// The verdict of the command, if brute force agrees.
fn judged(scratch: &Scratch, crowd: &Crowd, model: Model) -> Result<String, String> {
    let options = ["--threads", "any", "--no-races", "--no-deadlock", "--no-leaks", "--format", "json"];
    let more = ["--timeout", "60", "--model", model.name(), "--witness", "run.json"];
    let ran = scratch.run(&[&["check", "p.c"][..], &options, &more].concat());
    let answer: Value =
        serde_json::from_str(&ran.stdout).map_err(|_| format!("{}{}", ran.stdout, ran.stderr))?;
    let word = answer["verdict"].as_str().unwrap_or_default().to_owned();
    let breaks: Vec<Option<bool>> = (1..=MOST).map(|threads| crowd.fails(model, threads)).collect();
    let first = breaks.iter().position(|breaks| *breaks == Some(true)).map(|index| index as u64 + 1);
    match word.as_str() {
        "safe" => first.map_or(Ok(()), |threads| Err(format!("safe, but it fails with {threads} threads"))),
        "unsafe" => {
            let replayed = scratch.run(&["replay", "run.json"]);
            if replayed.code != Some(0) {
                return Err(format!("the run does not replay: {}{}", replayed.stdout, replayed.stderr));
            }
            // Without a number, the run has as many threads as the source starts. Otherwise `main` is one of them.
            let threads = answer["threads"].as_u64().map_or(2, |threads| threads - 1);
            let agrees =
                (threads..=u64::from(MOST)).all(|threads| breaks[threads as usize - 1] != Some(false));
            agrees.then_some(()).ok_or_else(|| format!("unsafe with {threads} threads: {breaks:?}"))
        }
        "unknown" if first.is_some() => {
            Err(format!("unknown, but it fails with {first:?} threads: {answer}"))
        }
        "unknown" => {
            answer["known_threads"].as_u64().map(|_| ()).ok_or_else(|| format!("no number: {answer}"))
        }
        _ => Err(answer.to_string()),
    }?;
    Ok(word)
}
