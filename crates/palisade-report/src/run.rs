//! The results of running a real program under many schedules: as text with the source lines, and as JSON.
//!
//! Three kinds of findings are kept apart: failures, data races, and violations of sequential consistency. If
//! the question is whether the program can fail, a violation is not an error. It is reported last, as information.

use crate::monitor::{ROLES, named_json, shown_place};
use crate::report::{Detail, Layout, Report, Standing};
use crate::silenced::{silenced_json, silenced_text};
use crate::{Colour, SCHEMA_VERSION, fit, one_line};
use palisade_base::Source;
use palisade_harness::divergence::Doing;
use palisade_harness::execution::Unfollowed;
use palisade_harness::schedule::Strategy;
use palisade_harness::session::{Findings, First, NamedReordering, Occurrences, Unrepeated};
use palisade_harness::suppress::Unused;
use palisade_harness::symbols::Frames;
use palisade_memory::Model;
use palisade_monitor::Violation;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The findings of a session.
#[derive(Clone, Copy, Debug)]
pub struct RunFinding<'a> {
    /// The program, as the user named it.
    pub program: &'a str,
    /// Everything that was found.
    pub findings: &'a Findings,
    /// What was asked.
    pub question: RunQuestion,
    /// The available source texts, by name.
    pub sources: &'a BTreeMap<String, Source>,
    /// The other frames of places, by the names of the places.
    pub frames: &'a BTreeMap<String, Frames>,
    /// Suppressions that have silenced nothing.
    pub unused: &'a [Unused],
    /// How threads were switched.
    pub scheduling: &'a str,
    /// Why there is no answer, if there is none.
    pub problem: Option<&'a str>,
    /// Where the schedule of the first finding is stored.
    pub saved: Option<&'a str>,
    /// The result of an exhaustive search: whether all executions were run, how many, and within how many
    /// preemptions.
    pub exhaustive: Option<(bool, u64, Option<usize>)>,
    /// Time taken.
    pub seconds: f64,
    /// How much memory Palisade itself used at most, if known.
    pub peak_memory_bytes: Option<u64>,
}

/// What a session asks about a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunQuestion {
    /// Can it fail with the store buffers of this model?
    Failures(Model),
    /// Can store buffers make any difference: those of this model, or any?
    Robustness(Option<Model>),
}

impl RunFinding<'_> {
    /// Violations, if they are what was asked about.
    pub(crate) fn violations(&self) -> impl Iterator<Item = &Occurrences<Violation>> {
        self.findings.violations.iter().filter(|found| self.asks_about(&found.what))
    }

    /// The same for those that are silenced.
    pub(crate) fn silenced_violations(&self) -> impl Iterator<Item = &Occurrences<Violation>> {
        self.findings.silenced.violations.iter().filter(|found| self.asks_about(&found.what))
    }

    fn asks_about(&self, violation: &Violation) -> bool {
        match self.question {
            RunQuestion::Failures(_) => false,
            RunQuestion::Robustness(model) => model.is_none_or(|model| violation.model == model),
        }
    }

    /// How many findings are silenced.
    pub(crate) fn silenced(&self) -> usize {
        let silenced = &self.findings.silenced;
        self.silenced_violations().count() + silenced.races.len() + silenced.failures.len()
    }
}

/// The result of running a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunVerdict {
    /// Violations of sequential consistency.
    Violations,
    /// The program failed.
    Failed,
    /// Data races.
    Races,
    /// No findings, but not everything was seen.
    Unknown,
    /// No findings, and everything was seen.
    Clean,
}

impl RunFinding<'_> {
    /// The first verdict in the list that applies.
    pub fn verdict(&self) -> RunVerdict {
        if self.violations().next().is_some() {
            RunVerdict::Violations
        } else if self.findings.failures.iter().any(|found| !found.what.is_inconclusive) {
            RunVerdict::Failed
        } else if !self.findings.races.is_empty() {
            RunVerdict::Races
        } else if self.problem.is_some() || !self.findings.failures.is_empty() || !followed_all(self.findings)
        {
            RunVerdict::Unknown
        } else {
            RunVerdict::Clean
        }
    }
}

/// Whether there was something to see, and everything was seen.
fn followed_all(findings: &Findings) -> bool {
    findings.unfollowed.is_empty() && findings.events > 0
}

impl Report for RunFinding<'_> {
    fn subject(&self) -> &str {
        self.program
    }

    fn word(&self) -> &str {
        match self.verdict() {
            RunVerdict::Violations => "violations",
            RunVerdict::Failed => "failed",
            RunVerdict::Races => "races",
            RunVerdict::Unknown => "unknown",
            RunVerdict::Clean => "clean",
        }
    }

    fn standing(&self) -> Standing {
        match self.verdict() {
            RunVerdict::Violations | RunVerdict::Failed | RunVerdict::Races => Standing::Bad,
            RunVerdict::Unknown => Standing::Open,
            RunVerdict::Clean => Standing::Good,
        }
    }

    fn why(&self) -> Option<String> {
        Some(counts(self).join(", "))
    }

    fn body(&self, layout: &Layout) -> String {
        let mut text = run_text(self, layout.width, layout.colour);
        if layout.detail == Detail::Verbose {
            let per_second = |count: u64| count as f64 / self.seconds.max(1e-9);
            write!(
                text,
                "\n{} schedules in {:.2} s, {:.0} per second, {:.2} million steps per second, {} threads, {}\n",
                self.findings.executions,
                self.seconds,
                per_second(self.findings.executions),
                per_second(self.findings.steps) / 1e6,
                self.findings.threads,
                self.scheduling,
            )
            .expect("writing to a string");
        }
        text
    }

    fn json(&self) -> String {
        run_json(self)
    }
}

/// How many findings there are of each kind.
fn counts(finding: &RunFinding<'_>) -> Vec<String> {
    let mut counts = Vec::new();
    for model in [Model::Tso, Model::Pso] {
        let count = finding.violations().filter(|found| found.what.model == model).count();
        if count > 0 {
            counts.push(format!("{count} under {}", model.name().to_uppercase()));
        }
    }
    let mut names: Vec<&str> = finding.findings.failures.iter().map(|found| found.what.name).collect();
    names.dedup();
    counts.extend(names.iter().map(|name| name.replace('-', " ")));
    match finding.findings.races.len() {
        0 => {}
        1 => counts.push("1 data race".to_owned()),
        races => counts.push(format!("{races} data races")),
    }
    match finding.silenced() {
        0 => {}
        silenced => counts.push(format!("{silenced} silenced")),
    }
    let executions = finding.findings.executions;
    // Of some values, not all were tried.
    let has_all_values = !finding.findings.unfollowed.keys().any(|(what, _)| *what == Unfollowed::Value);
    let exhaustive = finding.exhaustive.map(|(all, seen, within)| (all && has_all_values, seen, within));
    counts.push(match exhaustive {
        Some((true, 1, None)) => "the only partial order".to_owned(),
        Some((false, 1, None)) => "1 partial order, not all".to_owned(),
        Some((true, orders, None)) => format!("all {orders} partial orders"),
        Some((false, orders, None)) => format!("{orders} partial orders, not all"),
        Some((complete, schedules, Some(preemptions))) => {
            let plural = |count: usize| if count == 1 { "" } else { "s" };
            let counted = match (complete, schedules) {
                (true, 1) => "the only schedule".to_owned(),
                (false, 1) => "1 schedule".to_owned(),
                (true, _) => format!("all {schedules} schedules"),
                (false, _) => format!("{schedules} schedules"),
            };
            format!("{counted} with at most {preemptions} preemption{}", plural(preemptions))
        }
        None => format!("{executions} schedule{}", if executions == 1 { "" } else { "s" }),
    });
    match finding.findings.silenced.cut_short {
        0 => {}
        1 => counts.push("1 of them ended early at a silenced failure".to_owned()),
        short => counts.push(format!("{short} of them ended early at silenced failures")),
    }
    counts.push(match finding.findings.events {
        1 => "1 event".to_owned(),
        events => format!("{events} events"),
    });
    counts
}

/// What could not be followed, as one word for other programs to read.
pub fn unfollowed_name(what: Unfollowed) -> &'static str {
    match what {
        Unfollowed::Fork => "fork",
        Unfollowed::Handler => "signal-handler",
        Unfollowed::Assembly => "inline-assembly",
        Unfollowed::Access => "access",
        Unfollowed::Time => "timed-wait",
        Unfollowed::NotCompiled => "not-compiled",
        Unfollowed::Call(_) => "library-call",
        Unfollowed::Code => "code",
        Unfollowed::Mapping => "mapping",
        Unfollowed::MemoryFile => "memory-file",
        Unfollowed::AfterExit => "after-exit",
        Unfollowed::Value => "value",
    }
}

/// How to reproduce a finding.
pub(crate) fn again(first: &First) -> String {
    let strategy = match first.strategy {
        Strategy::Random => String::new(),
        Strategy::Pct { depth } => format!("--strategy pct --depth {depth} "),
        Strategy::Stay | Strategy::Round => return format!("first in schedule {}", first.number),
    };
    format!("first with {strategy}--seed {}", first.seed)
}

pub(crate) fn times<T>(found: &Occurrences<T>) -> String {
    let schedules = match found.executions {
        1 => "in 1 schedule".to_owned(),
        executions => format!("in {executions} schedules"),
    };
    format!("{schedules}, {}", again(&found.first))
}

/// Says so if a finding was seen only once.
fn once<T>(text: &mut String, found: &Occurrences<T>) {
    if !found.is_repeated {
        writeln!(text, "  there was no time to repeat it from its schedule").expect("writing to a string");
    }
}

/// All findings, with source lines.
fn run_text(finding: &RunFinding<'_>, width: usize, colour: Colour) -> String {
    let mut text = String::new();
    for group in grouped(finding) {
        let models: Vec<String> = group
            .iter()
            .map(|found| {
                let model = found.what.model.name().to_uppercase();
                format!("{} ({})", colour.paint("1", &model), times(found))
            })
            .collect();
        writeln!(text, "\n{}", models.join(", ")).expect("writing to a string");
        let violation = group[0].what;
        let names = [violation.store, violation.previous, violation.access]
            .map(|instruction| finding.findings.instructions.name(instruction).to_owned());
        once(&mut text, group[0]);
        let lines = names.into_iter().zip(ROLES).map(|(name, (_, says))| (name, says.to_owned()));
        places(&mut text, finding, lines.collect(), width);
    }
    for found in &finding.findings.failures {
        let message = one_line(&found.what.message);
        writeln!(text, "\n{} ({})", colour.paint("1", &message), times(found)).expect("writing to a string");
        let only = found.what.is_excluded_without_buffers;
        if let Some(machines) =
            machines(finding, found.possible, only).filter(|_| !found.what.is_inconclusive)
        {
            writeln!(text, "  {machines}").expect("writing to a string");
        }
        if !found.what.is_inconclusive {
            once(&mut text, found);
        }
        places(&mut text, finding, found.what.places.clone(), width);
        for reordering in &found.first.reorderings {
            places(&mut text, finding, reordered(reordering), width);
        }
        output(&mut text, &found.what.output);
    }
    for found in &finding.findings.races {
        writeln!(text, "\n{} ({})", colour.paint("1", "data race"), times(found))
            .expect("writing to a string");
        if let Some(machines) = machines(finding, found.possible, false) {
            writeln!(text, "  {machines}").expect("writing to a string");
        }
        once(&mut text, found);
        let access = |(name, writes): &(String, bool), other: &str| {
            (name.clone(), format!("{}{other}", if *writes { "writes" } else { "reads" }))
        };
        let race = &found.what;
        let lines = vec![
            access(&race.first, ""),
            access(&race.second, " the same memory, and nothing orders the two"),
        ];
        places(&mut text, finding, lines, width);
    }
    for (what, place) in finding.findings.unfollowed.keys() {
        let what = match what {
            Unfollowed::Fork => "a new process is started; what it does is not followed",
            Unfollowed::Handler => "a signal handler is installed; what it does to memory is not followed",
            Unfollowed::Assembly => "inline assembly touches memory; what it does is not followed",
            Unfollowed::Access => {
                "the compiler did not instrument an access to memory that threads may share, and the access cannot be followed exactly"
            }
            Unfollowed::Time => "a wait with a timeout was assumed to end only when no other thread can run",
            Unfollowed::NotCompiled => {
                "this code was not compiled by `palisade cc`; what it does to memory is not seen"
            }
            Unfollowed::Call(number) => match finding.findings.calls.get(number) {
                Some(name) => &format!(
                    "`{}` is called; what it does to memory that threads may share is not seen",
                    crate::visible(name)
                ),
                None => {
                    "a library function is called; what it does to memory that threads may share is not seen"
                }
            },
            Unfollowed::Code => "memory becomes executable; what code generated at run time does is not seen",
            Unfollowed::Mapping => {
                "memory is mapped so that it can change without an access by the program: through a file, another process, another address, or because it is replaced"
            }
            Unfollowed::MemoryFile => {
                "the memory of a process is opened as a file; what is written to it is not followed"
            }
            Unfollowed::AfterExit => {
                "memory is accessed after `exit`, by a destructor of a library, while there are other threads; this is not followed"
            }
            Unfollowed::Value => {
                "a nondeterministic value has too many possibilities, and only a few were tried; with `__VERIFIER_nondet_range(LOW, HIGH)` every value in the range is tried"
            }
        };
        writeln!(text, "\n{}: {what}", colour.paint("1", "not followed")).expect("writing to a string");
        places(&mut text, finding, vec![(place.clone(), "here".to_owned())], width);
    }
    let reorderings = &finding.findings.reorderings;
    if !reorderings.is_empty() {
        let count = finding.findings.reordered;
        let schedules =
            if count == 1 { "1 schedule was".to_owned() } else { format!("{count} schedules were") };
        let title = colour.paint("1", "not robust");
        writeln!(text, "\n{title}: {schedules} not sequentially consistent. This alone is not an error.")
            .expect("writing to a string");
        for found in reorderings {
            places(&mut text, finding, reordered(&found.what), width);
        }
    }
    let assumed = finding.findings.assumed;
    if assumed > 0 {
        let schedules = if assumed == 1 { "1 schedule".to_owned() } else { format!("{assumed} schedules") };
        writeln!(text, "\nIn {schedules}, an assumption (`__VERIFIER_assume`) did not hold.")
            .expect("writing to a string");
    }
    silenced_text(&mut text, finding, colour);
    if let Some(problem) = finding.problem {
        writeln!(text, "\n{problem}").expect("writing to a string");
    }
    if let Some(diverged) = &finding.findings.divergence {
        let sides = [("expected", &diverged.expected), ("happened", &diverged.happened)];
        let lines = sides
            .into_iter()
            .filter_map(|(side, doing)| Some((doing.place.clone()?, format!("{side}: {}", doing.what))));
        places(&mut text, finding, lines.collect(), width);
    }
    if let Some(saved) = finding.saved.map(crate::visible) {
        writeln!(text, "\nThe schedule is in {saved}: repeat it with `palisade run --replay {saved}`.")
            .expect("writing to a string");
    }
    text
}

/// The two instructions of a reordering, each with what it did.
pub(crate) fn reordered(reordering: &NamedReordering) -> Vec<(String, String)> {
    let overtakes =
        if reordering.writes { "when this store reached memory" } else { "when this load read memory" };
    vec![
        (reordering.store.clone(), "this store was still in the store buffer".to_owned()),
        (reordering.access.clone(), overtakes.to_owned()),
    ]
}

/// On which machines a failure or race can happen, as far as is known; `only` if it was shown to need store buffers.
pub(crate) fn machines(finding: &RunFinding<'_>, possible: Option<Model>, only: bool) -> Option<String> {
    let RunQuestion::Failures(model) = finding.question else { return None };
    let text = match possible {
        _ if model == Model::Sc => "on any machine",
        Some(Model::Sc) => "on any machine: it does not depend on store buffers",
        Some(Model::Tso) if only => "only with store buffers (TSO, PSO); it cannot happen without them",
        Some(Model::Tso) => "with store buffers (TSO, PSO); not seen without them",
        Some(Model::Pso) if only => {
            "only with store buffers (PSO, not seen with TSO's); it cannot happen without them"
        }
        Some(Model::Pso) => "with PSO's store buffers; not seen with those of TSO, or without any",
        None => {
            "with store buffers; the execution was too long to find out whether it could happen without them"
        }
    };
    Some(text.to_owned())
}

/// The last lines of what the program printed.
fn output(text: &mut String, printed: &str) {
    const LINES: usize = 8;
    let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return;
    }
    writeln!(text, "  it printed{}:", if lines.len() > LINES { " (last lines)" } else { "" })
        .expect("writing to a string");
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        writeln!(text, "  | {}", one_line(line)).expect("writing to a string");
    }
}

/// Lines with places, source and a remark, in columns.
fn places(text: &mut String, finding: &RunFinding<'_>, lines: Vec<(String, String)>, width: usize) {
    type Line = (String, String, String, Vec<String>);
    let lines: Vec<Line> = lines
        .into_iter()
        .map(|(name, says)| {
            let (place, source) = shown_place(&name, finding.sources);
            (place, source, says, frame_lines(finding.frames.get(&name)))
        })
        .collect();
    let widest = |column: fn(&Line) -> &String| {
        lines.iter().map(|line| column(line).chars().count()).max().unwrap_or(0)
    };
    let (first, second) = (widest(|line| &line.0), widest(|line| &line.1).min(width / 2));
    for (place, source, says, frames) in &lines {
        let source = fit(source, second);
        let line = format!("  {place:<first$}  {source:<second$}  {says}");
        writeln!(text, "{}", line.trim_end()).expect("writing to a string");
        for line in frames {
            writeln!(text, "    {}", one_line(line)).expect("writing to a string");
        }
    }
}

/// The other frames of a place, each with how it belongs to it.
fn frame_lines(frames: Option<&Frames>) -> Vec<String> {
    let Some(Frames { through, from }) = frames else { return Vec::new() };
    let through = through.iter().rev().map(|name| format!("through {name}"));
    through.chain(from.iter().map(|name| format!("inlined into {name}"))).collect()
}

/// Violations, grouped by their instructions.
fn grouped<'a>(finding: &'a RunFinding<'_>) -> Vec<Vec<&'a Occurrences<Violation>>> {
    let mut groups: Vec<Vec<&Occurrences<Violation>>> = Vec::new();
    let key = |found: &Occurrences<Violation>| (found.what.store, found.what.previous, found.what.access);
    for found in finding.violations() {
        match groups.iter_mut().find(|group| key(group[0]) == key(found)) {
            Some(group) => group.push(found),
            None => groups.push(vec![found]),
        }
    }
    groups
}

fn found_json<T>(found: &Occurrences<T>) -> Value {
    json!({
        "schedules": found.executions,
        "count": found.count,
        "first_schedule": found.first.number,
        "strategy": found.first.strategy.to_string(),
        "seed": found.first.seed,
        "switches": found.first.turns.as_ref().map(|turns| turns.switches()),
    })
}

/// A place with its other frames.
pub(crate) fn place_json(name: &str, finding: &RunFinding<'_>) -> Value {
    let mut place = named_json(name, finding.sources);
    if let Some(frames) = finding.frames.get(name) {
        let all = |names: &[String]| -> Value {
            names.iter().map(|name| named_json(name, finding.sources)).collect()
        };
        place["through"] = all(&frames.through);
        place["inlined_into"] = all(&frames.from);
    }
    place
}

fn run_json(finding: &RunFinding<'_>) -> String {
    let findings = finding.findings;
    let name = |name: &str| place_json(name, finding);
    let violations: Vec<Value> = grouped(finding)
        .into_iter()
        .map(|group| {
            let violation = group[0].what;
            let mut record = json!({});
            for ((role, _), instruction) in
                ROLES.into_iter().zip([violation.store, violation.previous, violation.access])
            {
                record[role] = name(findings.instructions.name(instruction));
            }
            for found in group {
                let mut by_model = found_json(found);
                by_model["repeated"] = found.is_repeated.into();
                record[found.what.model.name()] = by_model;
            }
            record
        })
        .collect();
    let races: Vec<Value> = findings
        .races
        .iter()
        .map(|found| {
            let access = |(place, writes): &(String, bool)| json!({ "place": name(place), "writes": writes });
            let mut record = found_json(found);
            record["first"] = access(&found.what.first);
            record["second"] = access(&found.what.second);
            record["repeated"] = found.is_repeated.into();
            record["possible_under"] = found.possible.map(Model::name).into();
            record
        })
        .collect();
    let reordering_json = |reordering: &NamedReordering| {
        json!({
            "store": name(&reordering.store),
            "access": name(&reordering.access),
            "writes": reordering.writes,
        })
    };
    let reorderings: Vec<Value> = findings
        .reorderings
        .iter()
        .map(|found| {
            let mut record = found_json(found);
            for (key, value) in reordering_json(&found.what).as_object().into_iter().flatten() {
                record[key] = value.clone();
            }
            record
        })
        .collect();
    let failures: Vec<Value> = findings
        .failures
        .iter()
        .map(|found| {
            let mut record = found_json(found);
            record["kind"] = found.what.name.into();
            record["repeated"] = found.is_repeated.into();
            record["message"] = found.what.message.as_str().into();
            let place = |(at, says): &(String, String)| json!({ "place": name(at), "says": says });
            record["places"] = found.what.places.iter().map(place).collect();
            record["output"] = found.what.output.as_str().into();
            record["possible_under"] = found.possible.map(Model::name).into();
            record["only_with_store_buffers"] = found.what.is_excluded_without_buffers.into();
            record["reorderings"] = found.first.reorderings.iter().map(reordering_json).collect();
            record
        })
        .collect();
    let unfollowed: Vec<Value> = findings
        .unfollowed
        .iter()
        .map(|((what, place), schedules)| {
            let mut entry =
                json!({ "what": unfollowed_name(*what), "place": name(place), "schedules": schedules });
            if let Unfollowed::Call(number) = what
                && let Some(function) = findings.calls.get(number)
            {
                entry["function"] = json!(function);
            }
            entry
        })
        .collect();
    let mut record = json!({
        "schema_version": SCHEMA_VERSION,
        "command": "run",
        "program": finding.program,
        "verdict": finding.word(),
        "schedules": findings.executions,
        "events": findings.events,
        "steps": findings.steps,
        "threads": findings.threads,
        "scheduling": finding.scheduling,
        "violations": violations,
        "races": races,
        "failures": failures,
        "reorderings": reorderings,
        "failed_assumptions": findings.assumed,
        "question": match finding.question {
            RunQuestion::Failures(_) => "failures",
            RunQuestion::Robustness(_) => "robustness",
        },
        "model": match finding.question {
            RunQuestion::Failures(model) => Some(model.name()),
            RunQuestion::Robustness(model) => model.map(Model::name),
        },
        "not_followed": unfollowed,
        "schedule_file": finding.saved,
        "seconds": finding.seconds,
        "peak_memory_bytes": finding.peak_memory_bytes,
    });
    silenced_json(&mut record, finding);
    if !findings.unrepeated.is_empty() {
        let seen = |seen: &Unrepeated| json!({ "what": seen.what, "instead": seen.instead, "first_schedule": seen.first.number, "seed": seen.first.seed });
        record["not_repeated"] = findings.unrepeated.iter().map(seen).collect();
    }
    if let Some((complete, seen, preemptions)) = finding.exhaustive {
        record["exhaustive"] = json!({ "seen": seen, "complete": complete, "preemptions": preemptions });
    }
    if let Some(diverged) = &findings.divergence {
        let side = |doing: &Doing| json!({ "action": doing.what, "place": doing.place.as_deref().map(name) });
        record["divergence"] = json!({
            "step": diverged.step,
            "thread": diverged.thread,
            "expected": side(&diverged.expected),
            "happened": side(&diverged.happened),
        });
    }
    if let Some(problem) = finding.problem {
        record["reason"] = problem.into();
    }
    record.to_string()
}
