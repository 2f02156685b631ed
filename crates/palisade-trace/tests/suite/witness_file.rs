//! Witness files describe what happened, and tampering with them is detected.

use crate::common;

use common::{STORE_BUFFERING, shortest, system, tso};
use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::{Instantiation, lower, print};
use palisade_trace::{
    ActionRecord, EffectRecord, Medium, Origin, ViolationKind, WitnessError, WitnessFile, replay, text_hash,
};

const DECLARED: Instantiation = Instantiation { any: 2, every: None };

fn witness(text: &str) -> WitnessFile {
    let system = system(text);
    let machine = tso(&system);
    let run = shortest(machine);
    let replay = replay(machine, &run).expect("a shortest run replays");
    let source = Source::new("sb.pal", text);
    let origin = Origin {
        source: &source,
        language: "pal",
        build: None,
        instantiation: DECLARED,
        several: false,
        int_range: Some((-1, 7)),
    };
    WitnessFile::new(machine, origin, &run, &replay)
}

#[test]
fn a_file_describes_the_whole_run() {
    let file = witness(STORE_BUFFERING);
    assert_eq!(
        (file.schema_version, file.model.as_str(), file.interlocked.as_str()),
        (1, "tso", "whole-buffer")
    );
    assert_eq!((file.program.file.as_str(), file.program.language.as_str()), ("sb.pal", "pal"));
    assert_eq!(file.instantiation(), DECLARED);
    assert_eq!(file.int_range, Some([-1, 7]));
    assert_eq!(
        file.memory.iter().map(|(cell, value)| format!("{cell}={value}")).collect::<Vec<_>>(),
        ["x=0", "y=0"]
    );
    let lines: Vec<String> = file
        .steps
        .iter()
        .map(|step| {
            let line = step.line.map_or("?".to_owned(), |line| line.to_string());
            format!(
                "{} {} {line}: {} [{}] {:?}",
                step.number, step.process, step.text, step.effect, step.overtakes
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "1 P 3: x = 1; [1 stored to x] []",
            "2 P 4: let r = y; [y read as 0] [1]",
            "3 Q 7: y = 1; [1 stored to y] []",
            "4 Q 7: y = 1; [y becomes 1 in memory] []",
            "5 Q 8: let r = x; [x read as 0] []",
            "6 P 3: x = 1; [x becomes 1 in memory] []",
        ]
    );
    assert_eq!((file.violation.kind, file.violation.line), (ViolationKind::Final, Some(10)));
}

#[test]
fn a_file_reads_back_as_written() {
    let file = witness(STORE_BUFFERING);
    assert_eq!(WitnessFile::from_json(&file.to_json()), Ok(file.clone()));
    let system = system(STORE_BUFFERING);
    assert!(file.verify(&system).is_ok());
    assert!(!file.program_changed(&Source::new("elsewhere.pal", STORE_BUFFERING)));
    assert!(file.program_changed(&Source::new("sb.pal", format!("{STORE_BUFFERING} "))));
    assert_eq!(text_hash("a"), "fnv1a64:af63dc4c8601ec8c", "the published value of FNV-1a");
    // Unknown fields are ignored.
    let more = file.to_json().replacen("\"steps\"", "\"weather\": \"fine\",\n  \"steps\"", 1);
    assert_eq!(WitnessFile::from_json(&more), Ok(file));
}

#[test]
fn tampering_is_detected() {
    let system = system(STORE_BUFFERING);
    let check = |tamper: &dyn Fn(&mut WitnessFile), expected: &str| {
        let mut file = witness(STORE_BUFFERING);
        tamper(&mut file);
        let read = WitnessFile::from_json(&file.to_json()).expect("the file still parses");
        let error = read.verify(&system).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    check(
        &|file| file.model = "x86".into(),
        "unknown memory model `x86`; the models are `sc`, `tso` and `pso`",
    );
    check(
        &|file| file.interlocked = "no".into(),
        "unknown mode of locked instructions `no`; the modes are `whole-buffer` and `own-address`",
    );
    check(
        &|file| file.model = "sc".into(),
        "step 4 is not possible: no such pending store can reach memory now",
    );
    check(&|file| assert!(file.memory.remove("x").is_some()), "the initial value of `x` is missing");
    check(&|file| assert!(file.memory.insert("z".into(), 0).is_none()), "the program has no variable `z`");
    check(
        &|file| assert!(file.memory.insert("x".into(), 1).is_some()),
        "the run does not start in an initial state of the program",
    );
    check(&|file| drop(file.steps.remove(2)), "step 3 is missing: the file continues with step 4");
    check(&|file| drop(file.steps.pop()), "the last state, after step 5, violates nothing");
    check(&|file| file.steps[3].thread = 7, "step 4 is not possible: there is no such process");
    check(
        &|file| file.steps[0].action = ActionRecord::Execute { edge: 1, choice: None },
        "step 1 is not possible: the process is not at this instruction",
    );
    check(
        &|file| file.steps[0].action = ActionRecord::Execute { edge: 0, choice: Some(1) },
        "step 1 is not possible: the chosen value does not fit the instruction",
    );
    check(&|file| file.steps[0].process = "Q".into(), "step 1 belongs to P, but the file says Q");
    check(
        &|file| {
            file.steps[1].effect = EffectRecord::Read { cell: "y".into(), value: 1, from: Medium::Memory }
        },
        "step 2 does not do what the file says: the file says `y read as 1`, the replay gives `y read as 0`",
    );
    check(
        &|file| file.steps[1].effect = EffectRecord::Local,
        "step 2 does not do what the file says: the file says `no access to memory`, the replay gives `y read as 0`",
    );
    check(
        &|file| file.violation.message = "P: assertion failed".into(),
        "the run ends with a different violation: the file says `P: assertion failed`, the replay gives `the final condition does not hold`",
    );
}

#[test]
fn garbage_is_rejected_without_panics() {
    let check = |text: &str, expected: &str| {
        let error = WitnessFile::from_json(text).expect_err("garbage").to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("", "not a witness file: EOF while parsing");
    check("no", "not a witness file: expected ident at line 1 column 2");
    check("[]", "not a witness file");
    check("{}", "missing field `schema_version`");
    check("{\"schema_version\": 2}", "the witness file has version 2; this release reads version 1");
    check("{\"schema_version\": 1}", "missing field `program`");
    check("{\"schema_version\": -1}", "not a witness file: invalid value");
    check(&"[".repeat(100_000), "not a witness file");
    let deep = format!("{{\"schema_version\": 1, \"program\": {}", "{\"a\":".repeat(100_000));
    check(&deep, "not a witness file");
    // A file with one character changed is either rejected or can be checked.
    let json = witness(STORE_BUFFERING).to_json();
    let system = system(STORE_BUFFERING);
    let mut random = Random::new(1);
    for _ in 0..5_000 {
        let mut bytes = json.clone().into_bytes();
        let at = random.below(bytes.len());
        bytes[at] = *random.pick(b"0123456789-{}[]\",:xyPQae \\");
        if let Ok(file) = WitnessFile::from_json(&String::from_utf8_lossy(&bytes)) {
            let _: Result<_, WitnessError> = file.verify(&system);
        }
    }
}

#[test]
fn every_witness_of_random_programs_can_be_written_read_and_checked() {
    let mut written = 0;
    for profile in Profile::ALL {
        for seed in 0..15 {
            let program = generate(profile, seed);
            let system = lower(&program, DECLARED);
            let source = Source::new("random.pal", print::print(&program));
            for (model, interlocked) in [
                (Model::Sc, Interlocked::WholeBuffer),
                (Model::Tso, Interlocked::WholeBuffer),
                (Model::Pso, Interlocked::OwnAddress),
            ] {
                let machine = Machine { system: &system, model, interlocked };
                let Answer::Unsafe(run) = brute::check(machine, Scope::states(5_000)) else { continue };
                let replay = replay(machine, &run).expect("a shortest run replays");
                let origin = Origin {
                    source: &source,
                    language: "pal",
                    build: None,
                    instantiation: DECLARED,
                    several: false,
                    int_range: None,
                };
                let file = WitnessFile::new(machine, origin, &run, &replay);
                let read = WitnessFile::from_json(&file.to_json()).expect("it was just written");
                assert_eq!(read, file, "{profile:?} {seed}");
                assert_eq!(read.run(&system), Ok(run), "{profile:?} {seed}");
                let again = read.verify(&system);
                assert_eq!(again.map(|again| again.violation), Ok(replay.violation), "{profile:?} {seed}");
                written += 1;
            }
        }
    }
    assert!(written > 30, "only {written} programs are unsafe");
}
