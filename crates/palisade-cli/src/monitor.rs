//! `palisade monitor`: reads a recorded execution, or one that is still running. Reports which violations of
//! sequential consistency TSO and PSO could have added.
//!
//! Exit codes:
//!
//! - 0 if there are none in a trace with an end mark;
//! - 1 if there are some;
//! - 2 if the trace is cut off or malformed (what could be read is still reported);
//! - 3 if reading was stopped, or there is no violation and no end mark.

use crate::args::{Common, MonitorArgs};
use crate::exit::Exit;
use crate::group::{self, Group, Role};
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::paths::{clash, keep_apart};
use crate::waiting::Waiting;
use crate::{files, interrupt, limits};
use palisade::harness::allowance::{Allowance, LimitReached};
use palisade::memory::Interlocked;
use palisade::monitor::{Ending, Monitor, Seen, TraceError, TraceReader, Violation};
use palisade::report::{self, MonitorFinding, Report, SourcePlace, Standing};
use palisade::{Diagnostic, Source, Stats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Why a trace without violations is not necessarily clean.
const UNMARKED: &str = "the trace has no end mark, so events may be missing";

/// The limits are checked after this many events.
const CHECKED: usize = 1 << 10;

/// What was found in one of several traces, ready to be printed.
#[derive(Serialize, Deserialize)]
struct Answer {
    out: String,
    err: String,
    exit: Exit,
}

/// Runs the command.
pub fn run(args: &MonitorArgs, common: &Common, output: &Output) -> Exit {
    let traces = args.traces.iter().map(PathBuf::as_path);
    if let Err(exit) = keep_apart(traces.clone(), &[("--sarif", args.sarif.as_deref())], output) {
        return exit;
    }
    if args.sarif.is_some() && args.traces.len() > 1 {
        let error = Diagnostic::error("unsuitable-options", "--sarif is for one trace at a time");
        return output.refuse_about("--sarif", error.help("run the command once per trace"));
    }
    if let Some(exit) = group::refuse_standard_input(&args.group, traces.clone(), output) {
        return exit;
    }
    let traces: Vec<&Path> = traces.collect();
    let group = match Group::join(&args.group, common, &traces, output) {
        Ok(group) => group,
        Err(exit) => return exit,
    };
    if group.role() != Role::Alone {
        let exit = shared(args, common, &group, output);
        return group.end(exit, output);
    }
    let mut worst = Exit::Fine;
    for trace in &args.traces {
        if output.is_closed() || interrupt::is_stopped() {
            return worst.worst(Exit::Unknown);
        }
        worst = worst.worst(one(trace, args, common, output));
    }
    worst
}

/// Reads traces together with other processes: each of them reads the next one that no other has.
fn shared(args: &MonitorArgs, common: &Common, group: &Group, output: &Output) -> Exit {
    let memory = limits::UserLimits::new(common).shared_by(group.on_this_machine, common).memory;
    let common = &Common { memory: Some(memory), ..common.clone() };
    let stop = interrupt::stop_flag();
    let answer = |index: usize| {
        let kept = output.keeping();
        let exit = one(&args.traces[index], args, common, &kept);
        let (out, err) = kept.into_kept();
        serde_json::to_vec(&Answer { out, err, exit }).expect("an answer has only string keys")
    };
    let (mut worst, mut done) = (Exit::Fine, 0);
    let mut deliver = |_: usize, answer: Vec<u8>| {
        let answer: Answer = serde_json::from_slice(&answer).expect("another process runs the same version");
        output.print(&answer.out);
        output.complain(&answer.err);
        worst = worst.worst(answer.exit);
        done += 1;
        !output.is_closed()
    };
    let shared = group::share_out(common, args.traces.len(), &stop, &answer, &mut deliver);
    if group.role() == Role::Follows {
        return Exit::Fine;
    }
    if let Err(lost) = shared {
        output.complain(&format!("{lost}; the traces after this one were not read\n"));
    }
    if done < args.traces.len() { worst.worst(Exit::Unknown) } else { worst }
}

/// Reads one trace.
fn one(trace: &Path, args: &MonitorArgs, common: &Common, output: &Output) -> Exit {
    let name = trace.display().to_string();
    let start = Instant::now();
    let memory = limits::UserLimits::new(common).per_file(1).memory();
    let allowance = Allowance {
        stop: interrupt::stop_flag(),
        deadline: common.timeout.and_then(|timeout| start.checked_add(timeout)),
        memory: Some(memory),
    };
    let input = match open(trace) {
        Ok(input) => input,
        Err(error) => return output.refuse_about(&name, error),
    };
    let stopped = input.gave_up();
    let mut monitor = Monitor::new(Interlocked::from(args.interlocked)).with_memory(memory);
    let mut over = None;
    let (reader, read) = match TraceReader::new(input) {
        Ok(mut reader) => {
            let meter = Meter::new(output.detail == Detail::Quiet || output.is_kept());
            let read = reader.read_batches(|events| {
                for events in events.chunks(CHECKED) {
                    let full = || if monitor.is_full() { Err(LimitReached::Memory) } else { Ok(()) };
                    over = over.or_else(|| full().and_then(|()| allowance.check()).err());
                    if over.is_some() {
                        stopped.store(true, Ordering::Relaxed);
                        return;
                    }
                    monitor.take_all(events);
                }
                let mut stats = Stats::new();
                stats.set("events", monitor.events());
                stats.set("violations", monitor.violations().len() as u64);
                meter.say("reading the trace", &stats);
            });
            (reader, read)
        }
        Err(error) => return output.refuse_about(&name, files::unreadable(&error)),
    };
    if monitor.is_full() {
        over = Some(LimitReached::Memory);
    }
    let stopped = over.is_some() || stopped.load(Ordering::Relaxed);
    let mut violations = monitor.violations().sorted();
    if let Some(model) = args.model {
        violations.retain(|(violation, _)| violation.model == model.into());
    }
    let problem = match &read {
        _ if over == Some(LimitReached::Memory) => Some(format!(
            "reading was stopped: out of memory ({:.2} GiB)",
            memory as f64 / (1u64 << 30) as f64
        )),
        _ if stopped => Some("reading was stopped".to_owned()),
        // A violation that was found counts, whatever follows in the trace.
        Ok(Ending::Unmarked) if violations.is_empty() => Some(UNMARKED.to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    let sources = sources(&violations, &reader);
    let finding = MonitorFinding {
        file: &name,
        events: monitor.events(),
        violations: &violations,
        instructions: reader.instructions(),
        sources: &sources,
        problem: problem.as_deref(),
        seconds: start.elapsed().as_secs_f64(),
        peak_memory_bytes: palisade::engine::peak_memory_bytes(),
    };
    output.print(&output.rendered(&finding));
    let mut exit = match (stopped, &read) {
        (true, _) => Exit::Unknown,
        (_, Err(_)) => Exit::Error,
        _ => match finding.standing() {
            Standing::Good => Exit::Fine,
            Standing::Bad => Exit::Violated,
            Standing::Open => Exit::Unknown,
        },
    };
    if let Some(problem) = &problem {
        let id = match (&read, stopped) {
            (_, true) => "stopped",
            (Ok(_), _) => "unmarked-trace",
            (Err(TraceError::CutOff), _) => "cut-off-trace",
            (Err(TraceError::Io(_)), _) => "unreadable-file",
            _ => "malformed-trace",
        };
        let help = match read {
            Ok(_) if !stopped => "end a complete trace with the line `end`".to_owned(),
            _ => match monitor.events() {
                1 => "the answer covers the 1 event that was read before it".to_owned(),
                events => format!("the answer covers the {events} events that were read before it"),
            },
        };
        let diagnostic = Diagnostic::error(id, problem.clone()).help(help);
        output.complain_about(&name, diagnostic);
    }
    if let Some(path) = &args.sarif {
        let sarif = report::monitor_sarif(&finding, env!("CARGO_PKG_VERSION"));
        let quoted = clash(sources.keys().map(Path::new), &[("--sarif", Some(path))]);
        let failed = quoted.or_else(|| Some((path.display().to_string(), files::write(path, &sarif).err()?)));
        if let Some((name, problem)) = failed {
            output.complain_about(&name, problem);
            exit = Exit::Error;
        }
    }
    exit
}

/// Opens the trace. Reading begins at once, and ends on Ctrl-C or when the time is up.
fn open(path: &Path) -> Result<Waiting, Diagnostic> {
    if path == Path::new("-") {
        return Ok(Waiting::new(|| Ok(io::stdin())));
    }
    if path.is_dir() {
        return Err(Diagnostic::error("is-a-folder", "this is a folder, not a file"));
    }
    if let Err(error) = path.metadata() {
        return Err(files::unreadable(&error));
    }
    let path = path.to_owned();
    Ok(Waiting::new(|| File::open(path)))
}

/// The available source texts for the violations.
fn sources(violations: &[(Violation, Seen)], reader: &TraceReader<'_>) -> BTreeMap<String, Source> {
    let mut sources = BTreeMap::new();
    for (violation, _) in violations {
        for instruction in [violation.store, violation.previous, violation.access] {
            if let Some(place) = SourcePlace::of(reader.instructions().name(instruction))
                && place.file != "-"
                && !sources.contains_key(&place.file)
                && let Ok(text) = files::text(Path::new(&place.file))
            {
                sources.insert(place.file.clone(), Source::new(place.file, text));
            }
        }
    }
    sources
}
