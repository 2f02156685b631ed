//! `palisade run`: runs an instrumented program under many schedules, with store buffers, and reports what
//! happened. With `--robust` it runs without store buffers and reports what the monitors saw.
//!
//! Exit codes: 0 clean, 1 violations, 2 the program cannot be run, 3 unknown, 4 the program fails, 5 data races
//! only.

use crate::args::{Common, InterlockedArg, RunArgs, SchedulingArg, StrategyArg};
use crate::exit::Exit;
use crate::group::{Group, Role};
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::paths::{clash, keep_apart};
use crate::{cargo, execution_page, files, group, interrupt, limits, suppress};
use palisade::cluster::{Helpers, fingerprint};
use palisade::harness::elsewhere::{Elsewhere, Runner};
use palisade::harness::execution::Leaks;
use palisade::harness::explore::Searched;
use palisade::harness::process::{Program, Scheduling, StartError};
use palisade::harness::schedule::{Schedule, Strategy};
use palisade::harness::session::{Findings, First, NamedFailure, Occurrences, Options, Session, Unrepeated};
use palisade::harness::shorten::shorten;
use palisade::harness::timeline::Timeline;
use palisade::harness::words::decoded;
use palisade::memory::Interlocked;
use palisade::report::{self, RunFinding, RunQuestion, RunVerdict, SourcePlace};
use palisade::{Diagnostic, Source, Stats};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A session ends when this many executions could not be followed to their end. The others are unlikely to
/// fare better.
const MAX_INCONCLUSIVE: u64 = 3;

/// The depth of PCT if none is given.
const PCT_DEPTH: u32 = 3;

/// Runs the command.
pub fn run(args: &RunArgs, common: &Common, output: &Output) -> Exit {
    let mut joined = None;
    let exit = with_group(args, common, output, &mut joined);
    match joined {
        Some(group) => group.end(exit, output),
        None => exit,
    }
}

/// Runs the command, and joins a group once it is known that there is something to do.
fn with_group(args: &RunArgs, common: &Common, output: &Output, joined: &mut Option<Group>) -> Exit {
    cargo::note_run();
    let replayed = match args.replay.as_deref().map(schedule_of).transpose() {
        Ok(replayed) => replayed,
        Err((name, diagnostic)) => return output.refuse_about(&name, diagnostic),
    };
    let command = match &replayed {
        Some(schedule) if args.command.is_empty() => schedule.program.clone(),
        _ => args.command.clone(),
    };
    let path = PathBuf::from(command.first().map(|word| decoded(word)).unwrap_or_default());
    let name = path.display().to_string();
    let subject = args.label.as_ref().unwrap_or(&name);
    let wanted = args.model.map(palisade::Model::from);
    let model = match (&replayed, wanted) {
        (Some(schedule), _) => schedule.model.unwrap_or(palisade::Model::Sc),
        (None, _) if args.robust => palisade::Model::Sc,
        (None, wanted) => wanted.unwrap_or(palisade::Model::Tso),
    };
    let robust = args.robust || replayed.as_ref().is_some_and(|schedule| schedule.model.is_none());
    if let Some(problem) = unsuitable(args, model, wanted) {
        return output.refuse_about(if name.is_empty() { "palisade run" } else { &name }, problem);
    }
    let suppressions = match suppress::read(args.suppress.as_deref(), output) {
        Ok(suppressions) => suppressions,
        Err(exit) => return exit,
    };
    let mut job = Job {
        args,
        robust,
        program: Program {
            command,
            scheduling: match args.scheduling {
                SchedulingArg::Best => Scheduling::Best,
                SchedulingArg::Token => Scheduling::Token,
            },
        },
        options: Options {
            strategy: match args.strategy {
                StrategyArg::Pct => Strategy::Pct { depth: args.depth.unwrap_or(PCT_DEPTH) },
                _ => Strategy::Random,
            },
            seed: common.seed,
            schedules: args.schedules.unwrap_or(1000),
            steps: args.max_steps,
            patience: args.patience,
            time: args.execution_timeout,
            model,
            interlocked: Interlocked::from(args.interlocked),
            first_only: args.stop_at_first,
            memory: Some(limits::UserLimits::new(common).per_file(1).memory()),
            jobs: limits::jobs(common),
            suppressions,
            read_source: suppress::source,
            leaks: if args.allow_leaked_threads { Leaks::Allowed } else { Leaks::Reported },
        },
        folder: std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
        stop: interrupt::stop_flag(),
        deadline: common.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
    };
    let schedule = job.schedule_file(replayed.is_some());
    let outputs = [
        ("--save", schedule.as_deref()),
        ("--sarif", args.sarif.as_deref()),
        ("--html", args.html.as_deref()),
    ];
    let program = Some(path.as_path()).filter(|path| path.components().count() > 1);
    let inputs = [args.replay.as_deref(), args.suppress.as_deref(), program];
    if let Err(exit) = keep_apart(inputs.into_iter().flatten(), &outputs, output) {
        return exit;
    }
    // The program is compared with its options.
    let known: Vec<&Path> = args.suppress.as_deref().into_iter().collect();
    let group = match Group::join(&args.group, common, &known, output) {
        Ok(group) => &*joined.insert(group),
        Err(exit) => return exit,
    };
    if group.role() != Role::Alone {
        let limits = limits::UserLimits::new(common).shared_by(group.on_this_machine, common);
        (job.options.memory, job.options.jobs) = (Some(limits.memory), limits.jobs);
    }
    let start = Instant::now();
    let meter = Meter::new(output.detail == Detail::Quiet || group.role() == Role::Follows);
    let mut runner = Runner::new(&job.program, &job.options, &job.stop, job.deadline);
    let (done, lost) = group::with_help(
        &job.question(),
        &job.stop,
        |helpers| job.run(replayed.as_ref(), helpers, &meter),
        |request| runner.answer(request),
    );
    drop(meter);
    if group.role() == Role::Follows {
        return Exit::Fine;
    }
    let (mut session, exhaustive) = match (done, lost) {
        (Some(Ok((mut session, exhaustive))), lost) => {
            if lost.is_some() {
                // It was stopped for this reason only.
                session.findings.stopped = false;
                session.findings.lost = lost;
            }
            (session, exhaustive)
        }
        (None, lost) => {
            let lost = lost.expect("a group that was not lost has a result");
            return job.lost_early(subject, lost, start, output);
        }
        (Some(Err(StartError::Stopped)), _) => return job.stopped_early(subject, start, output),
        (Some(Err(error)), _) => return refuse(&name, &error, output),
    };
    let problem = job.problem(&session.findings, exhaustive);
    let ended_well = session.findings.failures.is_empty()
        && session.findings.unfollowed.is_empty()
        && !session.findings.stopped
        && !session.findings.out_of_memory;
    if session.findings.accesses == 0
        && session.findings.executions > 0
        && session.findings.threads > 1
        && ended_well
    {
        let diagnostic = Diagnostic::error("not-instrumented", "no memory access was seen")
            .help("compile and link with `palisade cc` or `palisade c++`; objects from other compilers are not followed");
        return output.refuse_about(&name, diagnostic);
    }
    suppress::warn(&session, output);
    let mut unwritten = false;
    let sources = sources(&session.findings);
    // A test is only a part of its program.
    let unused = if args.label.is_some() { Vec::new() } else { session.unused_suppressions() };
    let quoted = clash(sources.keys().map(Path::new), &outputs);
    let is_free = quoted.is_none();
    let saved = match quoted.map_or_else(|| job.save(&mut session, schedule.as_deref()), Err) {
        Ok(saved) => saved,
        Err((path, diagnostic)) => {
            output.complain_about(&path, diagnostic);
            unwritten = args.save.is_some() || !is_free;
            None
        }
    };
    let scheduling = session.scheduling().to_owned();
    let shown = match (&args.html, job.most_important(&session.findings)) {
        (Some(_), Some((first, _))) => job.show_again(&mut session, &first, saved.as_deref()),
        _ => Err(execution_page::NOTHING.to_owned()),
    };
    let finding = RunFinding {
        peak_memory_bytes: palisade::engine::peak_memory_bytes(),
        program: subject,
        findings: &session.findings,
        question: if robust { RunQuestion::Robustness(wanted) } else { RunQuestion::Failures(model) },
        sources: &sources,
        frames: session.frames(),
        unused: &unused,
        scheduling: &scheduling,
        problem: problem.as_deref(),
        saved: saved.as_deref(),
        exhaustive: exhaustive
            .map(|searched: Searched| (searched.complete, searched.executions, args.preemptions)),
        seconds: start.elapsed().as_secs_f64(),
    };
    output.print(&output.rendered(&finding));
    let exit = match finding.verdict() {
        RunVerdict::Clean => Exit::Fine,
        RunVerdict::Violations => Exit::Violated,
        RunVerdict::Failed => Exit::Failed,
        RunVerdict::Races => Exit::Races,
        RunVerdict::Unknown => Exit::Unknown,
    };
    if let Some(path) = args.sarif.as_ref().filter(|_| is_free)
        && let Err(error) = files::write(path, &report::run_sarif(&finding, env!("CARGO_PKG_VERSION")))
    {
        output.complain_about(&path.display().to_string(), error);
        return Exit::Error;
    }
    if let Some(path) = args.html.as_ref().filter(|_| is_free)
        && let Err(error) = execution_page::write(path, &finding, &shown)
    {
        output.complain_about(&path.display().to_string(), error);
        return Exit::Error;
    }
    if unwritten { Exit::Error } else { exit }
}

/// The other processes of the group.
#[derive(Debug)]
struct Others {
    helpers: Helpers,
    deadline: Option<Instant>,
}

/// How often to look whether the others are late, and how late they may be.
const LOOK: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_secs(3);

impl Elsewhere for Others {
    fn appetite(&self) -> usize {
        self.helpers.appetite()
    }

    fn ask(&self, request: Vec<u8>) -> Option<Vec<u8>> {
        let is_late = || self.deadline.is_some_and(|deadline| deadline.elapsed() > LATE);
        self.helpers.ask(request).wait_while(LOOK, || !is_late())
    }
}

/// Options that do not go together.
fn unsuitable(args: &RunArgs, model: palisade::Model, wanted: Option<palisade::Model>) -> Option<Diagnostic> {
    use palisade::Model::{Pso, Sc};
    let (problem, help) = if args.robust && wanted == Some(Sc) {
        ("--robust asks about store buffers, and --model sc has none", "use --model tso or --model pso")
    } else if args.replay.is_some() && model != Sc && wanted.is_some_and(|wanted| wanted != model) {
        ("the schedule was recorded under another memory model", "leave out --model")
    } else if args.robust && model != Sc {
        ("--robust runs without store buffers, and the schedule was recorded with them", "leave out --robust")
    } else if args.interlocked == InterlockedArg::OwnAddress
        && (!args.robust || wanted.is_some_and(|wanted| wanted != Pso))
    {
        ("--interlocked own-address is about violations under PSO", "add --robust")
    } else if args.depth.is_some() && args.strategy != StrategyArg::Pct {
        ("--depth is about PCT", "add --strategy pct")
    } else if args.replay.is_some() && args.group.is_wanted() {
        ("one schedule cannot be shared by several processes", "leave out --processes and --hosts")
    } else if args.preemptions.is_some() && args.strategy != StrategyArg::Exhaustive {
        ("--preemptions is about a search through all executions", "add --strategy exhaustive")
    } else {
        return None;
    };
    Some(Diagnostic::error("unsuitable-options", problem).help(help))
}

fn refuse(name: &str, error: &StartError, output: &Output) -> Exit {
    let is_source =
        ["c", "cc", "cpp", "rs"].iter().any(|end| Path::new(name).extension() == Some(end.as_ref()));
    let is_here = !name.contains('/') && Path::new(name).is_file();
    let here = format!("the one in this folder is started with `palisade run ./{name}`");
    let (id, help) = match error {
        _ if is_source && Path::new(name).is_file() => (
            "cannot-start",
            "this is a source file: compile it with `palisade cc` (`c++`, `cargo`) first, then pass the program that results",
        ),
        StartError::NotInstrumented => (
            "not-instrumented",
            "compile and link it with `palisade cc` or `palisade c++`; run the program itself, not a script that starts it",
        ),
        StartError::NoHello(_) => ("no-start", "run `palisade doctor` to see what this machine can do"),
        _ if is_here => ("cannot-start", here.as_str()),
        _ => ("cannot-start", "give the path of a program, such as `palisade run ./test`"),
    };
    let message = match error {
        // The system says that there is no such file. There is one, but it does not look for it here.
        StartError::Io(error) if error.kind() == ErrorKind::NotFound && is_source && is_here => {
            "cannot be started: it is not a program".to_owned()
        }
        StartError::Io(error) if error.kind() == ErrorKind::NotFound && is_here => {
            format!("cannot be started: there is no program `{name}` on the PATH")
        }
        _ => error.to_string(),
    };
    let program = if name.is_empty() { "palisade run" } else { name };
    output.refuse_about(program, Diagnostic::error(id, message).help(help))
}

fn schedule_of(path: &Path) -> Result<Schedule, (String, Diagnostic)> {
    let name = path.display().to_string();
    let text = files::text(path).map_err(|error| (name.clone(), error))?;
    Schedule::parse(&text).map_err(|error| (name, Diagnostic::error("malformed-schedule", error.to_string())))
}

/// What to run, and how.
struct Job<'a> {
    args: &'a RunArgs,
    /// Whether the question is robustness.
    robust: bool,
    program: Program,
    options: Options,
    folder: String,
    stop: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Job<'_> {
    fn start(&self) -> Result<Session, StartError> {
        Session::start(&self.program, &self.options, &self.folder, &self.stop, self.deadline)
    }

    /// What all processes of a group have to agree on: the program, its arguments, and what is done with it.
    fn question(&self) -> String {
        let file = self.program.command.first().map(|word| decoded(word)).unwrap_or_default();
        let program = fingerprint(&mut std::fs::read(file).ok().into_iter());
        let Options { strategy, seed, steps, patience, time, model, interlocked, leaks, .. } = &self.options;
        let options = (strategy, seed, steps, patience, time, model, interlocked, leaks);
        format!("run {program:x} {:?} {options:?}", self.program)
    }

    /// Runs executions, with the help of other processes. Also returns how an exhaustive search ended.
    fn run(
        &self,
        replayed: Option<&Schedule>,
        helpers: Option<&Helpers>,
        meter: &Meter,
    ) -> Result<(Session, Option<Searched>), StartError> {
        let others = |helpers: &Helpers| Others { helpers: helpers.clone(), deadline: self.deadline };
        let elsewhere = || helpers.map(|helpers| Arc::new(others(helpers)) as Arc<dyn Elsewhere>);
        let mut session = self.start()?.helped_by(elsewhere());
        let mut exhaustive = None;
        match (replayed, self.args.strategy) {
            (Some(schedule), _) => self.replay(&mut session, schedule),
            (None, StrategyArg::Exhaustive) => exhaustive = Some(self.explore(&mut session, meter)),
            (None, _) => session.run(|findings| {
                report_progress(meter, findings);
                is_worth_continuing(findings)
            }),
        }
        session.confirm();
        if !session.findings.unrepeated.is_empty() {
            // What a search does not see as it is, it cannot have seen completely.
            exhaustive = exhaustive.map(|searched| Searched { complete: false, ..searched });
        }
        if exhaustive.is_some_and(|searched: Searched| searched.complete) && self.args.preemptions.is_none() {
            self.search_without_buffers(&mut session.findings, elsewhere(), meter);
        }
        Ok((session, exhaustive))
    }

    /// The answer if there was no time even to start the program.
    fn stopped_early(&self, name: &str, start: Instant, output: &Output) -> Exit {
        self.ended_early(name, Findings { stopped: true, ..Findings::default() }, start, output)
    }

    /// The answer if a process of the group was lost before there was anything to report.
    fn lost_early(&self, name: &str, lost: String, start: Instant, output: &Output) -> Exit {
        self.ended_early(name, Findings { lost: Some(lost), ..Findings::default() }, start, output)
    }

    fn ended_early(&self, name: &str, findings: Findings, start: Instant, output: &Output) -> Exit {
        let problem = self.problem(&findings, None);
        let finding = RunFinding {
            peak_memory_bytes: palisade::engine::peak_memory_bytes(),
            program: name,
            findings: &findings,
            question: RunQuestion::Failures(self.options.model),
            sources: &BTreeMap::new(),
            frames: &BTreeMap::new(),
            unused: &[],
            scheduling: "none",
            problem: problem.as_deref(),
            saved: None,
            exhaustive: None,
            seconds: start.elapsed().as_secs_f64(),
        };
        output.print(&output.rendered(&finding));
        Exit::Unknown
    }

    /// Replays the turns of a schedule. If there were too many turns to store, replays its seed.
    fn replay(&self, session: &mut Session, schedule: &Schedule) {
        let command = session.repetition(schedule);
        session.execute(&command);
    }

    /// Runs all partial orders. Returns whether these were all, and how many.
    fn explore(&self, session: &mut Session, meter: &Meter) -> Searched {
        let most = self.args.schedules.unwrap_or(u64::MAX);
        session.explore(self.args.preemptions, most, |findings| {
            report_progress(meter, findings);
            is_worth_continuing(findings)
        })
    }

    /// Whether failures that were seen only with store buffers can happen without them: a search through all
    /// executions without buffers shows, if it can be completed.
    fn search_without_buffers(
        &self,
        findings: &mut Findings,
        elsewhere: Option<Arc<dyn Elsewhere>>,
        meter: &Meter,
    ) {
        let needs_buffers = |found: &Occurrences<NamedFailure>| {
            !found.what.is_inconclusive && found.possible.is_some_and(|model| model != palisade::Model::Sc)
        };
        if !findings.failures.iter().any(needs_buffers) {
            return;
        }
        let options = Options { model: palisade::Model::Sc, ..self.options.clone() };
        let Ok(session) = Session::start(&self.program, &options, &self.folder, &self.stop, self.deadline)
        else {
            return;
        };
        let mut session = session.helped_by(elsewhere);
        let searched = session.explore(None, u64::MAX, |findings| {
            report_progress(meter, findings);
            is_worth_continuing(findings)
        });
        let without = session.findings;
        let is_known = searched.complete && !searched.broken && without.unfollowed.is_empty();
        for found in findings.failures.iter_mut().filter(|found| needs_buffers(found)) {
            let same = without.failures.iter().any(|other| other.what.is_same(&found.what));
            found.what.is_excluded_without_buffers = is_known && !same;
            if same {
                found.possible = Some(palisade::Model::Sc);
            }
        }
    }

    /// Why the answer is less than what was requested.
    fn problem(&self, findings: &Findings, searched: Option<Searched>) -> Option<String> {
        let done = findings.executions;
        let schedules = format!("{done} schedule{}", if done == 1 { "" } else { "s" });
        if findings.stopped {
            let why = if self.stop.load(Ordering::Relaxed) { "was stopped" } else { "ran out of time" };
            return Some(format!("The run {why}; this report covers {schedules}."));
        }
        if findings.out_of_memory {
            let gib = self.options.memory.unwrap_or(0) as f64 / (1u64 << 30) as f64;
            return Some(format!(
                "The run ran out of memory ({gib:.2} GiB); this report covers {schedules}."
            ));
        }
        if let Some(lost) = &findings.lost {
            return Some(format!("{lost}; this report covers {schedules}."));
        }
        if let Some(unrepeated) = findings.unrepeated.first() {
            return Some(not_repeated(unrepeated, findings.unrepeated.len()));
        }
        if findings.diverged > 0 && self.args.replay.is_some() {
            let first =
                findings.divergence.as_ref().map_or_else(String::new, |first| format!(" {}", first.text()));
            return Some(format!("The schedule could not be followed.{first} {MADE_WITH}"));
        }
        if searched.is_some_and(|searched| searched.broken) {
            let first =
                findings.divergence.as_ref().map_or_else(String::new, |first| format!(" {}", first.text()));
            return Some(format!("{NOT_THE_SAME}{first} {WHAT_TO_DO}"));
        }
        if searched.is_some_and(|searched| searched.late) {
            return Some(
                "One execution, with the search through it, took longer than --execution-timeout allows."
                    .to_owned(),
            );
        }
        if findings.failures.iter().any(|found| found.what.name == NO_EXECUTION) {
            let all = if done == 1 { "the one schedule".to_owned() } else { format!("all {done} schedules") };
            let is_all = searched.is_some_and(|searched| searched.complete);
            let advice = if is_all { "" } else { " More schedules, or another seed, may satisfy it." };
            return Some(format!(
                "An assumption (`__VERIFIER_assume`) was false in {all}, so nothing is known about the program.{advice}"
            ));
        }
        if let Some(found) = findings.failures.iter().find(|found| found.what.is_inconclusive) {
            let message = &found.what.message;
            if done == 1 {
                return Some(format!("The one schedule could not be followed to its end: {message}."));
            }
            let given_up = if is_worth_continuing(findings) { "" } else { ", and no more were tried" };
            return Some(format!(
                "Not all of {done} schedules could be followed to their end{given_up}: {message}."
            ));
        }
        if let Some(problem) = self.cut_short(findings, searched) {
            return Some(problem);
        }
        if searched.is_some_and(|searched| !searched.complete)
            && is_worth_continuing(findings)
            && !self.args.stop_at_first
        {
            return Some(format!("There are more executions than the {done} that were run."));
        }
        if !findings.unfollowed.is_empty() {
            let what: BTreeSet<&str> =
                findings.unfollowed.keys().map(|(what, _)| report::unfollowed_name(*what)).collect();
            if what == BTreeSet::from(["value"]) {
                return Some(
                    "This holds for the values that were tried, but the program can get others, too."
                        .to_owned(),
                );
            }
            let what = what.into_iter().collect::<Vec<_>>().join(", ");
            return Some(format!(
                "Not everything could be followed ({what}): nothing is known about what was not seen."
            ));
        }
        (findings.events == 0)
            .then(|| format!("No event was seen in {schedules}: there is nothing to judge the program by."))
    }

    /// What silenced failures leave out. Random schedules say something about those that were followed to their end;
    /// a search or a single schedule that was cut short says nothing.
    fn cut_short(&self, findings: &Findings, searched: Option<Searched>) -> Option<String> {
        let (short, all) = (findings.silenced.cut_short, findings.executions);
        if short == 0 || searched.is_none() && short + findings.assumed < all {
            return None;
        }
        let which = match (short, all) {
            (1, 1) => "The one schedule ended early at a silenced failure".to_owned(),
            (short, all) if short == all => format!("All {all} schedules ended early at silenced failures"),
            (1, all) => format!("1 of {all} schedules ended early at a silenced failure"),
            (short, all) => format!("{short} of {all} schedules ended early at silenced failures"),
        };
        Some(format!("{which}, and what the program does after that is not known."))
    }

    /// Where the schedule of the most important finding is stored, if it is.
    fn schedule_file(&self, is_replay: bool) -> Option<PathBuf> {
        if self.args.no_save || (is_replay && self.args.save.is_none() && !self.args.shorten) {
            return None;
        }
        Some(self.args.save.clone().unwrap_or_else(|| {
            let program =
                PathBuf::from(self.program.command.first().map(|word| decoded(word)).unwrap_or_default());
            let name = program.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy());
            PathBuf::from(format!("{name}.schedule"))
        }))
    }

    /// Stores the schedule of the most important finding.
    fn save(
        &self,
        session: &mut Session,
        path: Option<&Path>,
    ) -> Result<Option<String>, (String, Diagnostic)> {
        let Some(path) = path else { return Ok(None) };
        let Some((mut first, shows)) = self.most_important(&session.findings) else { return Ok(None) };
        if self.args.shorten && first.turns.is_some() {
            let shortened = self.shortened(session, &first);
            first.turns = shortened.or(first.turns);
        }
        let name = path.display().to_string();
        let schedule = session.schedule(&first, shows, self.robust);
        files::write(path, &schedule.to_string()).map_err(|error| (name.clone(), error))?;
        Ok(Some(name))
    }

    fn most_important(&self, findings: &Findings) -> Option<(First, String)> {
        let failures = |inconclusive: bool| {
            let mut found =
                findings.failures.iter().filter(move |found| found.what.is_inconclusive == inconclusive);
            found.next().map(|found| (found.first.clone(), found.what.message.clone()))
        };
        let model = self.args.model.map(palisade::Model::from);
        let violation = findings
            .violations
            .iter()
            .filter(|_| self.robust)
            .find(|found| model.is_none_or(|model| found.what.model == model))
            .map(|found| {
                let name = |instruction| findings.instructions.name(instruction);
                let [store, previous, access] =
                    [found.what.store, found.what.previous, found.what.access].map(name);
                let model = found.what.model.name().to_uppercase();
                (found.first.clone(), format!("{model} violation: {store} | {previous} | {access}"))
            });
        let race = || {
            let found = findings.races.first()?;
            Some((
                found.first.clone(),
                format!("data race: {} | {}", found.what.first.0, found.what.second.0),
            ))
        };
        failures(false).or(violation).or_else(race).or_else(|| failures(true))
    }

    /// Runs the schedule of a finding again, in a separate session, and keeps its steps. `saved` is the file that
    /// has the schedule, if there is one: it may be shorter.
    fn show_again(
        &self,
        session: &mut Session,
        first: &First,
        saved: Option<&str>,
    ) -> Result<Timeline, String> {
        let saved = saved.and_then(|path| schedule_of(Path::new(path)).ok());
        let schedule = saved.unwrap_or_else(|| session.schedule(first, String::new(), self.robust));
        let mut fresh = self.start().map_err(|error| error.to_string())?;
        let command = fresh.repetition(&schedule);
        execution_page::steps(session, &mut fresh, &command)
    }

    /// A sequence of turns with fewer switches that shows the same, searched for in a separate session.
    fn shortened(&self, session: &Session, first: &First) -> Option<palisade::harness::schedule::Turns> {
        let mut fresh = self.start().ok()?;
        let command = fresh.repetition(&session.schedule(first, String::new(), self.robust));
        let failure = session
            .findings
            .failures
            .iter()
            .find(|found| !found.what.is_inconclusive)
            .map(|found| found.what.clone());
        let model = self.args.model.map(palisade::Model::from);
        let violation = session
            .findings
            .violations
            .iter()
            .filter(|_| self.robust)
            .find(|found| model.is_none_or(|model| found.what.model == model))
            .map(|found| {
                let name = |instruction| session.findings.instructions.name(instruction).to_owned();
                (found.what.model, [found.what.store, found.what.previous, found.what.access].map(name))
            });
        Some(shorten(&mut fresh, &command, |fresh, execution| match (&failure, &violation) {
            (Some(failure), _) => fresh.fails(execution, failure),
            (None, Some((model, names))) => fresh.shows(execution, *model, names),
            (None, None) => !execution.races.is_empty(),
        }))
    }
}

const MADE_WITH: &str = "Either the program was rebuilt since the schedule was recorded, or it depends on something that the scheduler does not decide, such as its process id or a file.";
const NOT_THE_SAME: &str = "The program did not behave the same when its threads took the same turns again.";
const WHAT_TO_DO: &str = "It depends on something that the scheduler does not decide or see: the process id, a file, the network, or code that was compiled without Palisade and changes memory that threads share. Make it the same in every run, or use random schedules.";

/// Something was seen once, and its schedule does not show it again.
fn not_repeated(seen: &Unrepeated, count: usize) -> String {
    let Unrepeated { what, first, instead } = seen;
    let others = match count - 1 {
        0 => String::new(),
        1 => " The same holds for 1 other observation.".to_owned(),
        others => format!(" The same holds for {others} other observations."),
    };
    let instead = instead.trim_end_matches('.');
    format!(
        "Schedule {} showed: {what}. A new process that took the same turns did not show it: {instead}. So this is not reported as a finding.{others} {NOT_REPEATED}",
        first.number
    )
}

const NOT_REPEATED: &str = "Either the program depends on something that the scheduler does not decide (the process id, a file, the network, the real time), or this is an error in Palisade: please report it.";

/// The failure that no execution has met the program's assumptions. Others may.
const NO_EXECUTION: &str = "no-execution";

/// Whether more executions can show more.
fn is_worth_continuing(findings: &Findings) -> bool {
    let lost: u64 = findings
        .failures
        .iter()
        .filter(|found| found.what.is_inconclusive && found.what.name != NO_EXECUTION)
        .map(|found| found.executions)
        .sum();
    lost < MAX_INCONCLUSIVE || lost * 2 < findings.executions
}

fn report_progress(meter: &Meter, findings: &Findings) {
    let mut stats = Stats::default();
    let tried = if findings.searched.is_some() { "partial_orders" } else { "schedules" };
    stats.set(tried, findings.executions);
    stats.set("distinct_findings", findings.distinct() as u64);
    meter.say(&doing(findings), &stats);
}

/// The progress. The percentage refers to what is known so far to be tried.
fn doing(findings: &Findings) -> String {
    match findings.searched {
        Some(share) => format!("about {:.0}% done", share * 100.0),
        None => "running".to_owned(),
    }
}

/// The available source texts for the findings.
fn sources(findings: &Findings) -> BTreeMap<String, Source> {
    let mut sources = BTreeMap::new();
    let mut add = |name: &str| {
        if let Some(place) = SourcePlace::of(name)
            && !sources.contains_key(&place.file)
            && let Ok(text) = files::text(Path::new(&place.file))
        {
            sources.insert(place.file.clone(), Source::new(place.file, text));
        }
    };
    for found in findings.violations.iter().chain(&findings.silenced.violations) {
        for instruction in [found.what.store, found.what.previous, found.what.access] {
            add(findings.instructions.name(instruction));
        }
    }
    for found in findings.races.iter().chain(&findings.silenced.races) {
        add(&found.what.first.0);
        add(&found.what.second.0);
    }
    for found in findings.failures.iter().chain(&findings.silenced.failures) {
        found.what.places.iter().for_each(|(place, _)| add(place));
    }
    for found in &findings.reorderings {
        add(&found.what.store);
        add(&found.what.access);
    }
    findings.unfollowed.keys().for_each(|(_, place)| add(place));
    if let Some(diverged) = &findings.divergence {
        [&diverged.expected, &diverged.happened]
            .into_iter()
            .filter_map(|doing| doing.place.as_ref())
            .for_each(|place| add(place));
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhaustive_search_reports_its_progress() {
        let mut findings = Findings { executions: 12, ..Findings::default() };
        assert_eq!(doing(&findings), "running");
        findings.searched = Some(0.254);
        assert_eq!(doing(&findings), "about 25% done");
    }
}
