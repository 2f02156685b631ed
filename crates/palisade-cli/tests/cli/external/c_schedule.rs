//! Runs that `check` finds under SC, repeated by the compiled program.
//!
//! *How.* The program is compiled by `palisade cc` and runs under our scheduler, one step at a time. For each access
//! in the run, its thread is scheduled until it is about to access the same variable in the same line in the same
//! way, and then once more. What lies between are accesses that the translation keeps in registers: no other thread
//! has anything to do with them. After the last access the thread goes on by itself, and the same assertion fails in
//! the same line.
//!
//! Nothing of the translation takes part in the second run except for the order of the accesses.

use crate::common::Scratch;
use palisade::harness::allowance::Allowance;
use palisade::harness::log::{Record, RecordKind, WAITS};
use palisade::harness::process::{Program, Scheduling, Server};
use palisade::harness::schedule::{Actor, Command, Strategy, Turns};
use palisade::harness::symbols::Symbols;
use palisade_conformance::c::concurrent;
use palisade_conformance::seeds;
use palisade_corpus::{Question, Safety, c_expectations};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// The most steps of a run.
const MAX_STEPS: u64 = 5000;

/// How many steps of a thread are looked at together.
const LOOK_AHEAD: u64 = 40;

/// How an access is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AccessKind {
    Read,
    Write,
    Locked,
}

/// An access of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Event {
    thread: u16,
    line: u64,
    kind: AccessKind,
    /// The variable, without what follows its name.
    variable: String,
    /// Whether nothing was written.
    only_reads: bool,
}

/// The accesses of a run. Threads are numbered in the order in which `main` starts them.
fn events(record: &Value) -> Vec<Event> {
    let steps = record["witness"]["steps"].as_array().expect("a run has steps");
    let assumptions = record["assumptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<&str> = assumptions
        .filter_map(|text| text.split_once(" besides `main`: "))
        .flat_map(|(_, names)| names.split(", "))
        .collect();
    let event = |step: &Value| {
        let effect = &step["effect"];
        let kind = match effect["kind"].as_str()? {
            "read" => AccessKind::Read,
            "store" => AccessKind::Write,
            "locked" => AccessKind::Locked,
            _ => return None,
        };
        let thread = number(step["process"].as_str()?, &names);
        let cell = effect["cell"].as_str()?;
        // Cells of the translation itself are named after threads.
        if cell.rsplit_once('.').is_some_and(|(thread, _)| thread == "main" || names.contains(&thread)) {
            return None;
        }
        let variable = cell.split(['.', '[', '#', '+']).next()?.to_owned();
        let only_reads = kind == AccessKind::Read || kind == AccessKind::Locked && effect["wrote"].is_null();
        Some(Event { thread, line: step["line"].as_u64()?, kind, variable, only_reads })
    };
    // Before there are other threads, `main` needs no schedule.
    let starts =
        |step: &&Value| !step["effect"]["cell"].as_str().is_some_and(|cell| cell.ends_with(".started"));
    steps.iter().skip_while(starts).filter_map(event).collect()
}

/// The number of a process in the order in which `main` starts threads. Threads with the same code are instances of
/// one process: `work[1]` is the second with the function `work`.
fn number(process: &str, names: &[&str]) -> u16 {
    let function = |name: &str| name.split('#').next().map(str::to_owned);
    let index = match process.strip_suffix(']').and_then(|process| process.split_once('[')) {
        Some((first, instance)) => {
            let same = names.iter().enumerate().filter(|(_, name)| function(name) == function(first));
            same.map(|(index, _)| index).nth(instance.parse().expect("an index"))
        }
        None => names.iter().position(|name| *name == process),
    };
    index.map_or(0, |index| index as u16 + 1)
}

/// A compiled program under our scheduler.
struct Compiled {
    server: Server,
    symbols: Symbols,
    /// Where the global variables are.
    variables: Vec<(Range<u64>, String)>,
}

/// What a program did after some turns.
struct Ahead {
    /// What each thread does next.
    next: BTreeMap<u16, Record>,
    /// What the threads did after that, in order.
    steps: Vec<Record>,
    /// What the program printed.
    printed: String,
}

impl Compiled {
    /// Compiles and starts a program.
    fn new(scratch: &Scratch, source: &Path, flags: &[&str]) -> Result<Compiled, String> {
        let (program, source) = (scratch.path("program"), source.display().to_string());
        let output = program.display().to_string();
        let mut arguments = vec!["cc", "--compiler", "clang", "-w", "-g", &source, "-o", &output];
        arguments.extend(flags);
        let compiled = scratch.run(&arguments);
        if compiled.code != Some(0) {
            return Err(compiled.stderr);
        }
        let started = Program { command: vec![output.clone()], scheduling: Scheduling::Best };
        let server = Server::start(&started, &Allowance::default()).map_err(|error| error.to_string())?;
        let modules = server.hello.modules.clone();
        let base = modules.iter().find(|module| module.path == output).map_or(0, |module| module.base);
        let variables = variables(&output, base);
        Ok(Compiled { server, symbols: Symbols::new(modules, ""), variables })
    }

    /// Takes these turns. Then a thread takes up to so many steps, or the program goes on by itself.
    fn run(&mut self, turns: &Turns, then: Option<(u16, u64)>) -> Result<Ahead, String> {
        let taken = turns.steps();
        let mut all = turns.clone();
        if let Some((thread, count)) = then {
            (0..count).for_each(|_| all.push(Actor::thread(thread)));
        }
        let command = Command {
            strategy: Strategy::Stay,
            seed: 0,
            length: 0,
            steps: if then.is_none() { 0 } else { all.steps() },
            turns: all,
            asleep: Vec::new(),
            stall: 5000,
            time: 20_000,
            explores: true,
            repeats: false,
            model: palisade::Model::Sc,
            addresses: Vec::new(),
            known: Default::default(),
        };
        self.server.ask(&command).map_err(|error| error.to_string())?;
        let (mut chosen, mut next, mut steps) = (0, BTreeMap::new(), Vec::new());
        let take = |record: &Record| {
            chosen += u64::from(record.is_chosen());
            if chosen > taken {
                steps.extend(record.is_chosen().then_some(*record));
            } else if record.is_pending() && !record.continues() {
                next.insert(record.thread, *record);
            } else if record.kind == RecordKind::Ended {
                next.remove(&record.thread);
            }
        };
        let (_, output) = self.server.read(take, |_| (), || Ok(())).map_err(|error| error.to_string())?;
        Ok(Ahead { next, steps, printed: output.text() })
    }

    /// Whether a thread is about to make an access.
    fn is_next(&mut self, record: &Record, event: &Event) -> bool {
        let kinds: &[RecordKind] = match event.kind {
            AccessKind::Read => &[RecordKind::Load, RecordKind::LockedLoad, RecordKind::Locked],
            AccessKind::Write => &[RecordKind::Store, RecordKind::Locked],
            // Some locks are given back by a store.
            AccessKind::Locked => &[RecordKind::Locked, RecordKind::LockedLoad, RecordKind::Store],
        };
        let place = self.symbols.name(record.place);
        let line = place.split(':').nth(1).and_then(|line| line.parse().ok());
        let known = self.variables.iter().any(|(_, name)| *name == event.variable);
        let found = self.variables.iter().find(|(range, _)| range.contains(&record.address));
        let variable = match found {
            Some((_, name)) => *name == event.variable,
            None => !known,
        };
        kinds.contains(&record.kind) && line == Some(event.line) && variable
    }

    /// The turns in which the program makes these accesses in this order.
    fn turns(&mut self, events: &[Event]) -> Result<Turns, String> {
        let mut turns = Turns::default();
        for (index, event) in events.iter().enumerate() {
            // What tests a lock or a mark of the heap before it is written may be no access of its own.
            let mut later = events[index + 1..].iter().filter(|other| other.thread == event.thread);
            let after = later.find(|other| *other != event);
            let written = after.filter(|after| {
                event.kind == AccessKind::Read
                    && after.kind != AccessKind::Read
                    && **after == Event { kind: after.kind, only_reads: after.only_reads, ..event.clone() }
            });
            loop {
                let Ahead { next, steps, .. } = self.run(&turns, Some((event.thread, LOOK_AHEAD)))?;
                let mut place =
                    |step: &Record| format!("{:?} at {}", step.kind, self.symbols.name(step.place));
                let places: Vec<String> = steps.iter().take(5).map(&mut place).collect();
                let unreached =
                    |why: &str| Err(format!("{event:?} (number {index}) {why}; next: {places:?}"));
                if turns.steps() > MAX_STEPS {
                    return unreached("is not reached");
                }
                let Some(record) = next.get(&event.thread) else {
                    // It is not started yet.
                    turns.push(Actor::thread(0));
                    continue;
                };
                if record.flags & WAITS != 0 && event.only_reads && self.is_next(record, event) {
                    // It finds that it has to wait.
                    break;
                }
                if record.flags & WAITS != 0 {
                    // It waits for the end of a thread whose accesses are all made.
                    let done = |thread: &u16| events[index..].iter().all(|event| event.thread != *thread);
                    let ready = next.iter().filter(|(_, record)| record.flags & WAITS == 0);
                    let Some(other) = ready.map(|(thread, _)| *thread).find(done) else {
                        return unreached("waits for another thread");
                    };
                    turns.push(Actor::thread(other));
                    continue;
                }
                let position = |this: &mut Compiled, event: &Event| {
                    steps.iter().position(|step| this.is_next(step, event))
                };
                let (reached, written) =
                    (position(self, event), written.and_then(|event| position(self, event)));
                if written.is_some() && reached.is_none_or(|at| Some(at) >= written) {
                    break;
                }
                let count = match reached {
                    Some(at) => at + 1,
                    None if steps.is_empty() => return unreached("cannot be reached"),
                    None => steps.len(),
                };
                (0..count).for_each(|_| turns.push(Actor::thread(event.thread)));
                if reached.is_some() {
                    break;
                }
            }
        }
        Ok(turns)
    }
}

/// Where the global variables of a program are in memory.
fn variables(program: &str, base: u64) -> Vec<(Range<u64>, String)> {
    // Unlike `nm`, it does not load the plugin of LLVM, which takes ten times as long.
    let readelf = std::process::Command::new("readelf").args(["-sW", program]).output();
    let text = String::from_utf8_lossy(&readelf.expect("readelf can be started").stdout).into_owned();
    let variable = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, address, size, "OBJECT", _, _, section, name] = words[..] else { return None };
        section.parse::<u16>().ok()?;
        let start = base + u64::from_str_radix(address, 16).ok()?;
        // Large sizes are hexadecimal.
        let size = match size.strip_prefix("0x") {
            Some(size) => u64::from_str_radix(size, 16).ok()?,
            None => size.parse().ok()?,
        };
        Some((start..start + size, name.to_owned()))
    };
    text.lines().filter_map(variable).collect()
}

/// Whether a wait for a condition variable ends without a signal. Compiled programs do not do that under our scheduler.
fn has_early_end(record: &Value) -> bool {
    let steps = record["witness"]["steps"].as_array().into_iter().flatten();
    let texts: Vec<&str> = steps.filter_map(|step| step["text"].as_str()).collect();
    let wait = texts.iter().position(|text| text.contains("pthread_cond_wait"));
    let signals =
        |text: &&str| text.contains("pthread_cond_signal") || text.contains("pthread_cond_broadcast");
    wait.is_some_and(|wait| !texts[wait..].iter().any(signals))
}

/// Checks a program under SC. If an assertion fails, the run is repeated by the compiled program. Returns whether
/// there was such a run.
fn repeat(scratch: &Scratch, source: &Path, flags: &[&str]) -> Result<bool, String> {
    // What inline assembly accesses is not scheduled step by step.
    if std::fs::read_to_string(source).is_ok_and(|text| text.contains("asm")) {
        return Ok(false);
    }
    let name = source.display().to_string();
    let mut arguments =
        vec!["check", &name, "--model", "sc", "--no-races", "--format", "json", "--timeout", "30", "--"];
    arguments.extend(flags);
    let ran = scratch.run(&arguments);
    let record: Value = serde_json::from_str(&ran.stdout).map_err(|_| ran.stderr)?;
    let violation = record["violation"].as_str().unwrap_or_default().to_owned();
    if !violation.starts_with("assertion failed") || has_early_end(&record) {
        return Ok(false);
    }
    let line = record["witness"]["violation"]["line"].as_u64().expect("a run ends in a line");
    let mut compiled = Compiled::new(scratch, source, flags)?;
    let turns = compiled.turns(&events(&record))?;
    let printed = compiled.run(&turns, None)?.printed;
    let expected = format!("{}:{line}: ", source.file_name().expect("a file").to_string_lossy());
    match printed.contains(&expected) && printed.contains("assertion") {
        true => Ok(true),
        false => Err(format!("{violation}: another end: {printed}")),
    }
}

#[test]
fn runs_of_the_corpus_are_repeated_by_the_compiled_program() {
    let scratch = Scratch::new("c_schedule_corpus");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let corpus = corpus.canonicalize().expect("the corpus exists");
    let (mut repeated, mut wrong) = (0, Vec::new());
    for expected in c_expectations() {
        if expected.question != Question::Safety || expected.verdicts.sc != Some(Safety::Unsafe) {
            continue;
        }
        match repeat(&scratch, &corpus.join(expected.file), &expected.flags) {
            Ok(done) => repeated += usize::from(done),
            Err(why) => wrong.push(format!("{} {:?}: {why}", expected.file, expected.flags)),
        }
    }
    println!("{repeated} runs repeated");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(repeated > 30, "{repeated} runs repeated");
}

#[test]
fn runs_of_random_programs_are_repeated_by_the_compiled_program() {
    let scratch = Scratch::new("c_schedule_random");
    let mut wrong = Vec::new();
    for seed in seeds(6) {
        let file = format!("{seed}.c");
        std::fs::write(scratch.path(&file), concurrent::generate_failing(seed))
            .expect("a file can be written");
        if let Err(why) = repeat(&scratch, &scratch.path(&file), &[]) {
            wrong.push(format!("seed {seed}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "in {}:\n{}", scratch.path("").display(), wrong.join("\n"));
}
