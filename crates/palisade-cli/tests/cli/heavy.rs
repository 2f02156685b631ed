//! Limits hold in every phase. Programs that are heavy in one phase are checked with every command and
//! engine.
//!
//! A test run uses a few commands per program and generous limits, because the machine may be busy.
//! `PALISADE_LIMITS=measure` runs all commands one after the other, compares with the aims of docs/limits.md
//! (a tenth or 0.3 s of time, a quarter or 32 MiB of memory), and prints the table on that page.

use crate::common;

use common::Scratch;
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use serde_json::Value;
use std::fmt::Write;
use std::io::Read;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a test run allows beyond the given time. It exists to detect work that does not end.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a test run allows beyond the given memory.
const SPARE: u64 = 96 << 20;
/// A command that takes longer than this is killed and counts as failed.
const NEVER: Duration = Duration::from_secs(60);

/// A program that is heavy in one phase.
struct Heavy {
    file: &'static str,
    text: String,
}

/// The text of a body with a statement for each of these numbers.
fn lines(numbers: std::ops::Range<usize>, statement: impl Fn(usize) -> String) -> String {
    numbers.fold(String::new(), |mut text, number| {
        text.push_str(&statement(number));
        text.push('\n');
        text
    })
}

fn heavy_programs() -> Vec<Heavy> {
    let mut all = Vec::new();
    let mut add = |file: &'static str, text: String| all.push(Heavy { file, text });
    add(
        "domain.pal",
        "shared x: 0..1000000;\n\
         process P { let r: 0..1000000 = *; x = r; assert(x == r); }\n\
         process Q { let s: 0..1000000 = *; x = s; }\n"
            .to_owned(),
    );
    add(
        "array.pal",
        "shared a[60000]: 0..1;\n\
         process P { a[0] = 1; let r = a[59999]; }\n\
         process Q { a[59999] = 1; let s = a[0]; }\n\
         final P.r == 1 || Q.s == 1;\n"
            .to_owned(),
    );
    let calls = lines(1..41, |i| format!("proc f{i}() {{ f{0}(); f{0}(); }}", i - 1));
    add(
        "calls.pal",
        format!(
            "shared x: 0..1;\nproc f0() {{ x = 1; }}\n{calls}process P {{ f40(); }}\nprocess Q {{ let r = x; }}\n"
        ),
    );
    let jumps =
        lines(0..20_000, |i| format!("l{i}: if x == {} {{ goto l{}; }}", i % 2, (i * 7919 + 1) % 20_000));
    add("gotos.pal", format!("shared x, y: 0..1;\nprocess P {{\n{jumps}}}\nprocess Q {{ y = 1; x = 1; }}\n"));
    let chain = lines(0..20_000, |i| format!("l{i}: goto l{};", i + 1));
    add(
        "chain.pal",
        format!(
            "shared x: 0..1;\nprocess P {{\n{chain}l20000: skip;\n}}\nprocess Q {{ x = 1; }}\nforbid P@l19999;\n"
        ),
    );
    let line = lines(0..5000, |i| format!("x = {}; let r{i} = y;", i % 2));
    add(
        "line.pal",
        format!(
            "shared x, y: 0..1;\nprocess P {{\n{line}}}\nprocess Q {{ y = 1; let s = x; assert(s < 2); }}\n"
        ),
    );
    let (open, close) = ("if x == 0 {\n".repeat(120), "}\n".repeat(120));
    add(
        "nested.pal",
        format!("shared x: 0..1;\nprocess P {{\n{open}x = 1;\n{close}}}\nprocess Q {{ x = 1; }}\n"),
    );
    let processes =
        lines(0..3000, |i| format!("process P{i} {{ x = {}; let r = x; assert(r < 2); }}", i % 2));
    add("processes.pal", format!("shared x: 0..1;\n{processes}"));
    add(
        "initial.pal",
        "shared a[12]: 0..9 = *;\n\
         process P { let r = a[0]; a[1] = r; }\n\
         process Q { a[0] = 1; let s = a[1]; }\n\
         forbid a[0] == 10;\n"
            .to_owned(),
    );
    let sum = vec!["x"; 20_000].join(" + ");
    add(
        "sum.pal",
        format!("shared x: 0..1;\nprocess P {{ let r = {sum}; assert(r >= 0); }}\nprocess Q {{ x = 1; }}\n"),
    );
    let (declared, moved) =
        (lines(0..6000, |i| format!("let r{i} = x;")), lines(0..5999, |i| format!("r{i} = r{};", i + 1)));
    add(
        "registers.pal",
        format!("shared x: 0..1;\nprocess P {{\n{declared}loop {{\n{moved}}}\n}}\nprocess Q {{ x = 1; }}\n"),
    );
    let choices: Vec<String> = (0..5000).map(|i| format!("{{ x = {}; let r{i} = x; }}", i % 2)).collect();
    let choices = choices.join("\nor ");
    add(
        "choices.pal",
        format!("shared x: 0..1;\nprocess P {{ loop {{ choose {choices} }} }}\nprocess Q {{ x = 1; }}\n"),
    );
    add(
        "section.pal",
        "shared a[8]: 0..9 = *;\n\
         process P { atomic { let s = a[0]+a[1]+a[2]+a[3]+a[4]+a[5]+a[6]+a[7]; a[0] = s % 10; } }\n\
         process Q { a[1] = 1; }\n\
         forbid a[0] == 11;\n"
            .to_owned(),
    );
    add(
        "count.pal",
        "shared x: 0..1;\n\
         process P { let i = 0; while i < 1000000000 { i = i + 1; } x = 1; }\n\
         process Q { let r = x; assert(r < 2); }\n"
            .to_owned(),
    );
    add(
        "roles.pal",
        "shared x[3000]: 0..1;\n\
         process P(i: 0..2999) { x[i] = 1; let r = x[(i+1) % 3000]; assert(r < 2); }\n"
            .to_owned(),
    );
    let bad: Vec<String> =
        (0..5000).map(|i| format!("(P@a && x == {} && y == {} && P@b)", i % 2, 1 - i % 2)).collect();
    add(
        "property.pal",
        format!(
            "shared x, y: 0..1;\nprocess P {{ a: x = 1; let r = y; b: skip; }}\nprocess Q {{ y = 1; let s = x; }}\nforbid {};\n",
            bad.join(" || ")
        ),
    );
    add("search.pal", common::ENDLESS.to_owned());
    add(
        "values.pal",
        "shared x[4]: 0..9999;\n\
         process P(i: 0..3) { loop { x[i] = (x[(i + 1) % 4] * 7 + 3) % 10000; } }\n\
         forbid x[0] == 5000 && x[1] == 4999 && x[2] == 4998 && x[3] == 1;\n"
            .to_owned(),
    );
    add(
        "any.pal",
        "shared x[4]: 0..7;\n\
         process P[*] { loop { let i: 0..3 = *; x[i] = (x[(i + 1) % 4] * 7 + 3) % 8; } }\n\
         forbid x[0] == 5 && x[1] == 4 && x[2] == 3 && x[3] == 1 && count(P@end) >= 1;\n"
            .to_owned(),
    );
    add(
        "late.pal",
        "shared x: 0..2000;\n\
         shared y: 0..1;\n\
         process P { let i = 0; while i < 2000 { i = i + 1; x = i; } assert(y == 0); }\n\
         process Q { y = 1; }\n"
            .to_owned(),
    );
    add(
        "spawn.pal",
        "shared x: 0..1;\n\
         process M { loop { spawn W(0); } }\n\
         process W(i: 0..1) on spawn { x = 1; let r = x; assert(r < 2); }\n"
            .to_owned(),
    );
    add(
        "recursive.pal",
        "shared x, y: 0..3;\n\
         proc f(n: 0..3) { if n > 0 { x = n; f(n - 1); y = x; f(n - 1); } else { let z: 0..3 = *; f(z); } }\n\
         process P { f(3); }\n\
         process Q { f(2); let r = y; assert(r < 4); }\n"
            .to_owned(),
    );
    let rows = lines(0..6000, |i| format!(" MOV [x{}],$1 | MOV EAX,[x{}] ;", i % 50, (i + 1) % 50));
    add("rows.litmus", format!("X86 rows\n\"Many rows\"\n{{ }}\n P0 | P1 ;\n{rows}exists (1:EAX=0)\n"));
    let data = lines(0..60, |i| format!("  x{i} = 0 : [0:9]"));
    let writes = lines(0..6000, |i| format!("  write: x{} := {};", i % 60, i % 10));
    let reads = lines(0..6000, |i| format!("  read: $r := x{};", i % 60));
    add(
        "statements.rmm",
        format!(
            "forbidden * BAD\ndata\n{data}process\ntext\n{writes}  BAD: nop\n\
             process\nregisters\n  $r = 0 : [0:9]\ntext\n{reads}  BAD: nop\n"
        ),
    );
    let writes = lines(0..6000, |i| format!("transition q{i} q{} write 1 {}", i + 1, i % 50));
    let reads = lines(0..6000, |i| format!("transition q{i} q{} read r {}", i + 1, i % 50));
    add(
        "transitions.trencher",
        format!(
            "thread left\ninitial q0\nfinal q6000\n{writes}end\n\nthread right\ninitial q0\nfinal q6000\n{reads}end\n"
        ),
    );
    let body = lines(0..20_000, |i| format!("x = {}; y = x;", i % 2));
    add(
        "text.pal",
        format!("shared x, y: 0..1;\n{}", lines(0..20, |i| format!("process P{i} {{\n{body}}}"))),
    );
    all
}

/// A program made of pieces, each of which is heavy in some phase.
fn random_program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut up_to = |most| random.below(most);
    let largest = [1, 9, 1000, 1_000_000][up_to(4)];
    let cells = [1, 4, 100, 20_000][up_to(4)];
    let init = if up_to(2) == 0 { " = *" } else { "" };
    let mut text = format!("shared a[{cells}]: 0..{largest}{init};\nshared x: 0..1;\n");
    for process in 0..2 + up_to(3) {
        writeln!(text, "process P{process} {{").expect("writing to a string");
        for piece in 0..1 + up_to(4) {
            let name = format!("r{process}_{piece}");
            let times = [1, 10, 2000][up_to(3)];
            let statement = match up_to(6) {
                0 => format!("let {name}: 0..{largest} = *; a[0] = {name};\n"),
                1 => (0..times).fold(format!("let {name} = 0;\n"), |text, i| {
                    text + &format!("{name} = a[{}]; x = {};\n", i % cells, i % 2)
                }),
                2 => format!("let {name} = 0; while {name} < {times}000 {{ {name} = {name} + 1; }}\n"),
                3 => format!("let {name} = {};\n", vec!["x"; times].join(" + ")),
                4 => format!("atomic {{ let {name} = a[0] + a[{}]; a[0] = {name} % 2; }}\n", cells - 1),
                _ => format!("let {name} = 0; loop {{ {name} = a[0]; a[{}] = {name}; }}\n", cells - 1),
            };
            text.push_str(&statement);
        }
        text.push_str("}\n");
    }
    text + "forbid x == 2;\n"
}

/// The commands and options to try.
const QUESTIONS: [&[&str]; 21] = [
    &["check"],
    &["check", "--engine", "explicit"],
    &["check", "--engine", "dual"],
    &["check", "--engine", "sb"],
    &["check", "--engine", "lazy"],
    &["check", "--engine", "rounds"],
    &["check", "--engine", "age"],
    &["check", "--engine", "pushdown"],
    &["check", "--model", "pso"],
    &["check", "--model", "sc", "--jobs", "1"],
    &["check", "--certify"],
    &["check", "--deadlock"],
    &["check", "--shortest"],
    &["outcomes", "--all"],
    &["robust"],
    &["robust", "--triangular"],
    &["fences"],
    &["fences", "--goal", "robustness"],
    &["translate", "--rounds", "2", "--to", "promela"],
    &["translate", "--age", "2", "--to", "c"],
    &["show", "--as", "dot"],
];

/// How a command ended.
struct Answered {
    seconds: f64,
    peak: Option<u64>,
    verdict: String,
}

/// Runs a command on a file within limits.
fn ask(scratch: &Scratch, file: &str, question: &[&str], timeout: &str, memory: &str) -> Answered {
    let mut args = question.to_vec();
    args.extend([file, "--timeout", timeout, "--memory", memory, "--format", "json"]);
    let command = format!("palisade {}", args.join(" "));
    let start = Instant::now();
    let mut child = scratch
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command can be started");
    let mut stdout = child.stdout.take().expect("a pipe");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.read_to_string(&mut text);
        // The receiver is gone if this took too long.
        let _ = sender.send(read.map(|_| text));
    });
    let Ok(printed) = receiver.recv_timeout(NEVER) else {
        child.kill().expect("a child can be killed");
        panic!("{command}: does not end");
    };
    let status = child.wait().expect("the child ends");
    let seconds = start.elapsed().as_secs_f64();
    let printed = printed.expect("the child prints text");
    assert!(matches!(status.code(), Some(0..=3)), "{command}: {status}\n{printed}");
    let answer: Value = serde_json::from_str(&printed).unwrap_or_else(|error| {
        panic!("{command}: {error}\n{}", printed.chars().take(1000).collect::<String>())
    });
    let verdict = match (&answer["verdict"], &answer["reason"], &answer["error"]) {
        (Value::String(verdict), Value::String(reason), _) => format!("{verdict}: {reason}"),
        (Value::String(verdict), _, _) => verdict.clone(),
        (_, _, Value::String(error)) => format!("refused: {error}"),
        _ => "done".to_owned(),
    };
    let code = status.code().expect("it ended by itself");
    assert_eq!(code == 3, verdict.starts_with("unknown"), "{command}: {code}, {verdict}");
    Answered { seconds, peak: answer["peak_memory_bytes"].as_u64(), verdict }
}

/// Runs a command with half a second and 64 MiB, and checks it generously.
fn check(scratch: &Scratch, file: &str, question: &[&str]) {
    let Answered { seconds, peak, verdict } = ask(scratch, file, question, "0.5", "0.0625");
    let command = format!("{} {file}: {verdict}", question.join(" "));
    assert!(seconds < 0.5 + PATIENCE.as_secs_f64(), "{command}: {seconds} s");
    assert!(peak.is_none_or(|peak| peak < (64 << 20) + SPARE), "{command}: {peak:?} bytes");
}

/// Runs `check` and a few other commands on every program, so that all commands are used.
fn check_part(name: &str, part: usize, parts: usize) {
    for (number, Heavy { file, text }) in heavy_programs().into_iter().enumerate() {
        if number % parts != part {
            continue;
        }
        let scratch = Scratch::new(&format!("{name}_{number}")).file(file, text);
        let others = [(number * 2 + 1) % QUESTIONS.len(), (number * 2 + 2) % QUESTIONS.len()];
        for question in [0].into_iter().chain(others) {
            check(&scratch, file, QUESTIONS[question]);
        }
    }
}

#[test]
fn limits_hold_in_every_phase() {
    if std::env::var("PALISADE_LIMITS").is_ok_and(|value| value == "measure") {
        measure();
    } else {
        check_part("heavy_first", 0, 3);
    }
}

#[test]
fn limits_hold_in_every_phase_of_other_programs() {
    check_part("heavy_second", 1, 3);
}

#[test]
fn limits_hold_in_every_phase_of_yet_other_programs() {
    check_part("heavy_third", 2, 3);
}

#[test]
fn limits_hold_for_random_programs() {
    for seed in seeds(24) {
        let scratch = Scratch::new(&format!("heavy_random_{seed}")).file("random.pal", random_program(seed));
        check(&scratch, "random.pal", QUESTIONS[seed as usize % QUESTIONS.len()]);
    }
}

/// If one file runs out of time or memory in any phase, the other files still get their answers.
#[test]
fn a_folder_continues_after_a_file_that_ran_out() {
    let mut scratch = Scratch::new("heavy_folder").file("d/zzz.pal", common::FENCED);
    let wanted = ["domain.pal", "calls.pal", "section.pal", "line.pal"];
    for Heavy { file, text } in heavy_programs() {
        if wanted.contains(&file) {
            scratch = scratch.file(&format!("d/{file}"), text);
        }
    }
    for jobs in ["1", "2"] {
        let args = ["check", "d", "--timeout", "0.5", "--memory", "0.25", "--jobs", jobs];
        let ran = scratch.run(&args);
        for file in wanted {
            assert!(ran.stdout.contains(&format!("  d/{file}")), "{file}: {}", ran.stdout);
        }
        assert!(ran.stdout.contains("safe  d/zzz.pal\n"), "{}", ran.stdout);
    }
}

/// Ctrl-C also works while a program is read and prepared.
#[test]
#[cfg(target_os = "linux")]
fn interrupted_before_the_search() {
    for Heavy { file, text } in heavy_programs() {
        if !["domain.pal", "section.pal", "line.pal", "gotos.pal"].contains(&file) {
            continue;
        }
        let scratch = Scratch::new(&format!("heavy_interrupted_{file}")).file(file, text);
        for command in ["check", "fences"] {
            let child = common::start(&mut scratch.command(&[command, "-q", file, "--memory", "1"]));
            common::interrupt(&child);
            let start = Instant::now();
            let ran = common::Ran::new(child.wait_with_output().expect("the child ends"));
            assert!(start.elapsed() < PATIENCE, "{command} {file}: {:?}", start.elapsed());
            // It may have finished earlier.
            assert!(ran.stdout.contains(file), "{command} {file}: {} {}", ran.stdout, ran.stderr);
        }
    }
}

/// Runs everything with one second and 256 MiB, and prints what exceeded the aims and the worst case of each
/// command.
fn measure() {
    const MEMORY: f64 = 256.0;
    let mut misses = String::new();
    let mut table = String::from("| question | worst time | worst memory |\n|---|---|---|\n");
    let programs: Vec<(Scratch, &str)> = heavy_programs()
        .into_iter()
        .map(|Heavy { file, text }| (Scratch::new(&format!("heavy_measured_{file}")).file(file, text), file))
        .collect();
    for question in QUESTIONS {
        let (mut slowest, mut largest) = ((0.0, ""), (0.0, ""));
        for (scratch, file) in &programs {
            let Answered { seconds, peak, verdict } = ask(scratch, file, question, "1", "0.25");
            let peak = peak.map_or(0.0, |peak| peak as f64 / f64::from(1 << 20));
            if seconds > 1.3 || peak > MEMORY * 1.25 {
                writeln!(misses, "{} {file}: {seconds:.2} s, {peak:.0} MiB, {verdict}", question.join(" "))
                    .expect("writing to a string");
            }
            if seconds > slowest.0 {
                slowest = (seconds, file);
            }
            if peak > largest.0 {
                largest = (peak, file);
            }
        }
        let memory = match largest {
            (_, "") => "not reported".to_owned(),
            (peak, file) => format!("{peak:.0} MiB ({file})"),
        };
        writeln!(table, "| `{}` | {:.2} s ({}) | {memory} |", question.join(" "), slowest.0, slowest.1)
            .expect("writing to a string");
    }
    println!("{table}\nbeyond the aims:\n{misses}");
    assert!(misses.is_empty(), "limits were exceeded:\n{misses}");
}
