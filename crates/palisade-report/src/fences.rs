//! Sets of fences as text and JSON.

use crate::account::account;
use crate::finding::with_given;
use crate::json::{add_file, diagnostics_json};
use crate::report::{Detail, Layout, Report, Standing};
use crate::{Colour, LocalSteps, SCHEMA_VERSION, explain, one_line, witness};
use palisade_base::{Diagnostic, Source};
use palisade_engine::{Reason, Stats};
use palisade_fences::{Change, FenceKind, FencePlace, Side};
use palisade_memory::Model;
use palisade_trace::{Evidence, HappensBefore, Origin, WitnessFile};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The answer for one file.
#[derive(Clone, Debug)]
pub struct FencesFinding<'a> {
    /// The text of the program. Its name is the file's, as the user named it.
    pub source: &'a Source,
    /// Its language, by name.
    pub language: &'a str,
    /// Warnings about the program.
    pub warnings: &'a [Diagnostic],
    /// The memory model.
    pub model: Model,
    /// `safety` or `robustness`.
    pub goal: &'a str,
    /// Whether all minimal sets were requested.
    pub all: bool,
    /// The verdict.
    pub word: &'a str,
    /// The engine that answered last.
    pub engine: &'a str,
    /// What was counted.
    pub stats: &'a Stats,
    /// How many places there are for fences.
    pub places: usize,
    /// Every set has at least this many fences.
    pub fewest: usize,
    /// The sets of fences, the cheapest first.
    pub sets: Vec<Vec<ReportedFence<'a>>>,
    /// The cost of each set.
    pub costs: Vec<u64>,
    /// How the search ended.
    pub end: FencesEnd<'a>,
    /// What the answer is limited to, e.g. `with integers in 0..7`.
    pub limits: Option<&'a str>,
    /// Time taken.
    pub seconds: f64,
    /// The peak memory.
    pub peak_memory_bytes: Option<u64>,
}

/// A fence of a set, or an access that is made stronger.
#[derive(Clone, Debug)]
pub struct ReportedFence<'a> {
    /// Its place.
    pub place: &'a FencePlace,
    /// Its kind.
    pub kind: FenceKind,
    /// The statement after the change, if an access is made stronger.
    pub becomes: Option<String>,
    /// A run of the program without the fence, or with the weaker fence instead.
    pub without: Evidence<'a>,
    /// The weaker fence.
    pub weaker: Option<FenceKind>,
}

/// How a search for fences ended.
#[derive(Clone, Debug)]
pub enum FencesEnd<'a> {
    /// The sets that were found are the ones that were requested.
    Complete,
    /// This run breaks the program under SC.
    WrongUnderSc(Evidence<'a>),
    /// No fence in an allowed place prevents this run, though the program is correct under SC.
    NotAllowed(Evidence<'a>),
    /// The same, but it is not known whether the program is correct under SC.
    NotKnownUnderSc(Evidence<'a>, &'a Reason),
    /// Not known, and the reason.
    Unknown(&'a Reason),
}

impl Report for FencesFinding<'_> {
    fn subject(&self) -> &str {
        self.source.name()
    }

    fn word(&self) -> &str {
        self.word
    }

    fn standing(&self) -> Standing {
        match self.end {
            FencesEnd::Complete => Standing::Good,
            FencesEnd::WrongUnderSc(_) | FencesEnd::NotAllowed(_) | FencesEnd::NotKnownUnderSc(..) => {
                Standing::Bad
            }
            FencesEnd::Unknown(_) => Standing::Open,
        }
    }

    fn why(&self) -> Option<String> {
        Some(fences_why(self))
    }

    fn body(&self, layout: &Layout) -> String {
        let full = layout.detail == Detail::Verbose;
        let runs = match (full, self.sets.len()) {
            (true, _) => Runs::Tables(LocalSteps::Shown),
            (false, 0 | 1) => Runs::Tables(LocalSteps::Folded),
            (false, _) => Runs::Ends,
        };
        let FencesFinding { model, engine, stats, seconds, peak_memory_bytes, .. } = *self;
        let account = account(model, engine, stats, seconds, peak_memory_bytes, full);
        format!("{}\n{account}\n", fence_sets(self, runs, layout.width, layout.colour))
    }

    fn json(&self) -> String {
        fences_json(self)
    }
}

/// What is needed, or why nothing helps.
fn fences_why(finding: &FencesFinding<'_>) -> String {
    let given = with_given(finding.source, None, None);
    match &finding.end {
        FencesEnd::Complete => {
            let least = finding.sets.iter().map(Vec::len).min().unwrap_or(0);
            // Only fences are added, or accesses are changed, too.
            let word = match finding.sets.iter().flatten().all(|fence| fence.change().is_added()) {
                true => "fence",
                false => "change",
            };
            let then = if finding.goal == "robustness" { "robust" } else { "safe" };
            let fences = match least {
                0 => "no fences needed".to_owned(),
                1 => format!("{then} with 1 {word}"),
                _ => format!("{then} with {least} {word}s"),
            };
            let sets = match finding.sets.len() {
                _ if !finding.all || least == 0 => String::new(),
                1 => ", 1 minimal set".to_owned(),
                sets => format!(", {sets} minimal sets"),
            };
            let limits = finding.limits.map_or_else(String::new, |limits| format!(", {limits}"));
            format!("{fences}{sets}{limits}")
        }
        FencesEnd::WrongUnderSc(run) => {
            format!("{given}no fences can help, because it is wrong under SC too: {}", explain(run))
        }
        FencesEnd::NotAllowed(run) => {
            format!("{given}no fence {} helps: {}", allowed(finding), explain_run(run))
        }
        FencesEnd::NotKnownUnderSc(run, reason) => {
            format!("{given}no fence {} helps: {}; under SC: {reason}", allowed(finding), explain_run(run))
        }
        FencesEnd::Unknown(reason) => {
            let sets = match finding.sets.len() {
                0 if finding.fewest == 0 => String::new(),
                0 if finding.fewest == 1 => "; at least 1 fence is needed".to_owned(),
                0 => format!("; at least {} fences are needed", finding.fewest),
                1 => "; a minimal set is known, but there may be others".to_owned(),
                sets => format!("; {sets} minimal sets are known, but there may be others"),
            };
            format!("{reason}{sets}")
        }
    }
}

fn allowed(finding: &FencesFinding<'_>) -> String {
    match finding.places {
        0 => "is allowed anywhere, so none".to_owned(),
        1 => "at the 1 place allowed".to_owned(),
        places => format!("at the {places} places allowed"),
    }
}

/// What a run shows.
pub(crate) fn explain_run(evidence: &Evidence<'_>) -> String {
    if evidence.replay.violation.is_some() {
        // What would happen without a fence, not what has happened.
        let why = explain(evidence);
        return ["aborts", "panics"].iter().zip(["aborted", "panicked"]).fold(
            why,
            |why, (now, then)| match why.strip_prefix(&format!("the program {then}")) {
                Some(rest) => format!("the program {now}{rest}"),
                None => why,
            },
        );
    }
    let happens_before = HappensBefore::of(evidence.machine, evidence.run, evidence.replay);
    match happens_before.cycle() {
        Some(cycle) => crate::explain_cycle(evidence, &happens_before, &cycle),
        None => "the run shows nothing".to_owned(),
    }
}

/// How much is shown of the runs for a set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// Only what is wrong at their end.
    Ends,
    /// The runs as tables.
    Tables(LocalSteps),
}

/// The sets, and for each fence why it is needed. Or the run that no fences prevent.
fn fence_sets(finding: &FencesFinding<'_>, runs: Runs, width: usize, colour: Colour) -> String {
    let mut text = String::new();
    let several = finding.sets.len() > 1;
    for (index, set) in finding.sets.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
        let number = if several {
            format!("set {} of {}", index + 1, finding.sets.len())
        } else {
            match set.iter().all(|fence| fence.change().is_added()) {
                true => "fences".to_owned(),
                false => "changes".to_owned(),
            }
        };
        let cost = if finding.costs[index] == set.len() as u64 {
            String::new()
        } else {
            format!(", cost {}", finding.costs[index])
        };
        write!(text, "\n{}\n", colour.paint("1", &format!("{number}{cost}"))).expect("writing to a string");
        for fence in set {
            writeln!(text, "  {}", describe(finding.source, fence)).expect("writing to a string");
            if let Some(becomes) = &fence.becomes {
                writeln!(text, "      becomes: {}", one_line(becomes)).expect("writing to a string");
            }
            if runs == Runs::Ends {
                let without = fence.without_it();
                writeln!(text, "      needed: {without}, {}", explain_run(&fence.without))
                    .expect("writing to a string");
            }
        }
        let Runs::Tables(local) = runs else { continue };
        for fence in set {
            let table = witness(&fence.without, local, width, colour);
            let place = match set.len() {
                1 => String::new(),
                _ => format!(" {}", spot(finding.source, fence.place)),
            };
            let without = match fence.weaker {
                Some(weaker) => format!("With only {}{place}", with_article(fence.place.change(weaker))),
                None if set.len() == 1 => "Without it".to_owned(),
                None if fence.change().is_added() => format!("Without the fence{place}"),
                None => format!("Without the change{place}"),
            };
            write!(text, "\n{without}, {}\n\n{table}", explain_run(&fence.without))
                .expect("writing to a string");
        }
    }
    let run = match &finding.end {
        FencesEnd::WrongUnderSc(run) | FencesEnd::NotAllowed(run) | FencesEnd::NotKnownUnderSc(run, _) => run,
        FencesEnd::Complete | FencesEnd::Unknown(_) => return text,
    };
    let local = match runs {
        Runs::Tables(local) => local,
        Runs::Ends => LocalSteps::Folded,
    };
    write!(text, "\n{}", witness(run, local, width, colour)).expect("writing to a string");
    text
}

impl ReportedFence<'_> {
    /// What is changed in the text.
    pub fn change(&self) -> Change {
        self.place.change(self.kind)
    }

    /// What becomes possible without it.
    pub fn shows(&self) -> String {
        explain_run(&self.without)
    }

    /// `without it`, or `with only an sfence`.
    pub(crate) fn without_it(&self) -> String {
        match self.weaker {
            Some(weaker) => format!("with only {}", with_article(self.place.change(weaker))),
            None => "without it".to_owned(),
        }
    }
}

/// `fence in P, after line 9: turn = 1 - i;`
pub(crate) fn describe(source: &Source, fence: &ReportedFence<'_>) -> String {
    let statement = one_line(source.slice(fence.place.span));
    let what = change_in_words(fence.change());
    format!("{what} in {}, {}: {statement}", fence.place.process, spot(source, fence.place))
}

/// `after line 9`
fn spot(source: &Source, place: &FencePlace) -> String {
    let line = source.line_in_words(place.span).unwrap_or_else(|| "line ?".to_owned());
    format!("{} {line}", side(place))
}

pub(crate) fn change_in_words(change: Change) -> &'static str {
    match change {
        Change::Fence => "fence",
        Change::StoreFence => "sfence",
        Change::SeqCst => "seq_cst store",
        Change::Release => "release store",
        Change::Exchange => "exchange",
        Change::StrongerFence => "full fence",
    }
}

fn with_article(change: Change) -> String {
    let words = change_in_words(change);
    let article = if words.starts_with(['e', 's']) && change != Change::SeqCst { "an" } else { "a" };
    format!("{article} {words}")
}

fn side(place: &FencePlace) -> &'static str {
    match (place.access, place.side) {
        (Some(_), _) => "at",
        (None, Side::Before) => "before",
        (None, Side::After) => "after",
    }
}

pub(crate) fn word(kind: FenceKind) -> &'static str {
    match kind {
        FenceKind::Full => "fence",
        FenceKind::StoreStore => "sfence",
    }
}

fn fences_json(finding: &FencesFinding<'_>) -> String {
    let language = finding.language;
    let mut record = Map::new();
    let mut set = |name: &str, value: Value| record.insert(name.to_owned(), value);
    set("schema_version", SCHEMA_VERSION.into());
    set("command", "fences".into());
    set("file", finding.source.name().into());
    set("model", finding.model.name().into());
    set("goal", finding.goal.into());
    set("engine", finding.engine.into());
    set("verdict", finding.word.into());
    let reason = match &finding.end {
        FencesEnd::Unknown(reason) => Some(reason.to_string()),
        _ => None,
    };
    if let Some(reason) = reason {
        set("reason", reason.into());
    }
    if let Some(limits) = finding.limits {
        set("limits", limits.into());
    }
    set("fewest", finding.fewest.into());
    set("complete", matches!(finding.end, FencesEnd::Complete).into());
    let fence = |fence: &ReportedFence<'_>| fence_json(finding, fence, language);
    let sets = finding.sets.iter().map(|set| set.iter().map(fence).collect::<Value>());
    set("fence_sets", sets.collect());
    set("costs", finding.costs.iter().copied().collect());
    let (wrong_under, run) = match &finding.end {
        FencesEnd::WrongUnderSc(run) => (Some("sc"), Some(run)),
        FencesEnd::NotAllowed(run) | FencesEnd::NotKnownUnderSc(run, _) => {
            (Some(finding.model.name()), Some(run))
        }
        FencesEnd::Complete | FencesEnd::Unknown(_) => (None, None),
    };
    if let (Some(model), Some(run)) = (wrong_under, run) {
        set("wrong_under", model.into());
        set("violation", explain_run(run).into());
        set("run", steps(run, language));
    }
    set("seconds", finding.seconds.into());
    set("peak_memory_bytes", finding.peak_memory_bytes.into());
    let counters = finding.stats.iter().map(|(name, value)| (name.to_owned(), value.into()));
    set("stats", Value::Object(counters.collect()));
    if !finding.warnings.is_empty() {
        set("diagnostics", diagnostics_json(finding.source, finding.warnings).into());
    }
    Value::Object(record).to_string()
}

fn fence_json(finding: &FencesFinding<'_>, fence: &ReportedFence<'_>, language: &str) -> Value {
    let position = finding.source.position(fence.place.span);
    let mut record = json!({
        "process": fence.place.process,
        "line": position.map(|position| position.line),
        "column": position.map(|position| position.column),
        "label": fence.place.label,
        "side": side(fence.place),
        "fence": word(fence.kind),
        "change": fence.change().name(),
        "becomes": fence.becomes.as_deref().map(one_line),
        "text": one_line(finding.source.slice(fence.place.span)),
        "in_loop": fence.place.in_loop,
        "weaker": fence.weaker.map(word),
        "without": { "violation": explain_run(&fence.without), "run": steps(&fence.without, language) },
    });
    add_file(&mut record, finding.source, fence.place.span);
    record
}

/// The steps of a run that touch memory. They are as in a witness file, but without the parts that only mean
/// something for that program's control flow.
fn steps(evidence: &Evidence<'_>, language: &str) -> Value {
    let Evidence { source, machine, run, replay, .. } = *evidence;
    let instantiation = palisade_program::Instantiation::declared(1);
    let origin = Origin { source, language, build: None, instantiation, several: false, int_range: None };
    let file = WitnessFile::new(machine, origin, run, replay);
    let records =
        file.steps.iter().filter(|step| !matches!(step.effect, palisade_trace::EffectRecord::Local));
    let records = records.map(|step| {
        let mut step = serde_json::to_value(step).expect("records can always be written");
        if let Some(step) = step.as_object_mut() {
            step.remove("action");
        }
        step
    });
    records.collect()
}
