//! Minimal sets of fences.
//!
//! *Aims.*
//! 1. Every row of Table 1 of Abdulla, Atig, Chen, Leonardsson and Rezine, "Counter-example guided fence
//!    insertion under weak memory models" (TACAS 2012), with the paper's sets ([`paper`]).
//! 2. Fewer programs checked than Algorithm 2 as printed needs ([`algorithm2`]).
//! 3. All minimal sets of every program of the corpus with up to three processes, within ten seconds each
//!    ([`corpus`]).
//! 4. The published `.rmm` files with the fences that are known for them, and Trencher's files with the
//!    fences for robustness that are known ([`folder`]).
//!
//! *How.* Fences are placed after stores (for robustness before loads, as in Trencher) and are counted per
//! process, as in the paper. Seconds are wall-clock time on one core. They are also given without the
//! engines; this is the time for finding places, demands and hitting sets. Algorithm 2 is given up after
//! [`MAX_QUERIES`] queries.

mod algorithm2;
pub mod corpus;
pub mod folder;
pub mod paper;

use crate::measure::machine;
use crate::watch::{say, stop};
use anyhow::{Context, Result, anyhow};
use palisade::{CheckOptions, Input, Language, RobustOptions, Source};
use palisade_engine::Limits;
use palisade_fences::{
    End, Findings, Goal, Judgement, Oracle, Per, Placement, Places, Shown, Wanted, Which, find,
};
use palisade_memory::{Machine, Model};
use palisade_program::running::System;
use palisade_program::written::Program;
use palisade_syntax::edit::insert_fences;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum number of queries of Algorithm 2.
const MAX_QUERIES: usize = 2_000;

/// Runs the suite: the folders if there are any, otherwise the paper's table and the corpus.
pub fn run(folders: &[PathBuf], seconds: u64) -> Result<()> {
    say!("{}; at most {seconds} s per program\n", machine());
    let limit = Duration::from_secs(seconds);
    if folders.is_empty() {
        paper::run(limit)?;
        corpus::run(limit)
    } else {
        folder::run(folders, limit)
    }
}

/// After stores, as in the paper. For robustness before loads, which is where Trencher puts them.
fn placement(goal: Goal) -> Placement {
    match goal {
        Goal::Safety => Placement::AfterWrites,
        Goal::Robustness => Placement::BeforeReads,
    }
}

/// The best engines for the program as an oracle that measures its time.
struct TimedOracle {
    goal: Goal,
    /// Seconds spent in engines.
    seconds: Cell<f64>,
}

impl Oracle for TimedOracle {
    type Error = anyhow::Error;

    fn judge(&self, program: &Program, limits: &Limits) -> Result<Judgement> {
        let start = Instant::now();
        let judgement = match self.goal {
            Goal::Safety => {
                let outcome = palisade::check(program, &CheckOptions::default(), limits)?.outcome;
                Judgement {
                    verdict: outcome.verdict,
                    engine: outcome.engine,
                    stats: outcome.stats,
                    shown: Shown::Missed,
                }
            }
            Goal::Robustness => {
                let outcome = palisade::robust(program, &RobustOptions::default(), limits)?.outcome;
                Judgement {
                    verdict: outcome.verdict,
                    engine: outcome.engine,
                    stats: outcome.stats,
                    shown: Shown::Missed,
                }
            }
        };
        self.seconds.set(self.seconds.get() + start.elapsed().as_secs_f64());
        Ok(judgement)
    }

    fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        Machine::new(system, Model::Tso)
    }

    fn goal(&self) -> Goal {
        self.goal
    }
}

/// The minimal sets of fences of a program, by number and size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sets {
    /// No fences are needed.
    NoneNeeded,
    /// No fences help.
    NoneHelp,
    /// This many sets. The smallest has `least` fences, the largest `most`.
    Found { count: usize, least: usize, most: usize },
    /// Not known.
    Unknown,
}

impl Sets {
    /// One set of this size.
    const fn one(size: usize) -> Sets {
        Sets::several(1, size)
    }

    /// Several sets of the same size.
    const fn several(count: usize, size: usize) -> Sets {
        Sets::Found { count, least: size, most: size }
    }

    /// Whether another tool's set may be one of these.
    fn contains(self, other: Sets) -> bool {
        match (self, other) {
            (Sets::Found { least, most, .. }, Sets::Found { count: 1, least: size, .. }) => {
                (least, most) == (size, size)
            }
            _ => self == other,
        }
    }
}

/// What was found for one program.
struct Run {
    /// All minimal sets.
    findings: Findings,
    places: Places,
    /// Queries until a smallest set was found, and until all sets were found.
    one: u64,
    all: u64,
    /// Seconds for all sets, and how many of them were spent outside the engines.
    seconds: f64,
    outside: f64,
    /// The number of queries of Algorithm 2.
    printed: Option<algorithm2::Queries>,
}

impl Run {
    fn new(input: &Input, goal: Goal, per: Per, limit: Duration, compare: bool) -> Result<Run> {
        let wanted = Wanted {
            placement: placement(goal),
            per,
            store_fences: false,
            stronger: &|_| None,
            can_write: &|fence| {
                let language = input.language.text();
                language.is_some_and(|language| insert_fences(language, &input.source, &[fence]).is_ok())
            },
            allows: &|_| true,
        };
        let limits = || Limits::unlimited(1).with_timeout(limit).with_memory(3 << 30).with_stop(stop());
        let start = Instant::now();
        let places = Places::new(&input.program, &wanted);
        let oracle = TimedOracle { goal, seconds: Cell::new(0.0) };
        let findings = find(&places, Which::All, &|_, _| 1, &oracle, &limits())?;
        let seconds = start.elapsed().as_secs_f64();
        let outside = seconds - oracle.seconds.get();
        let one = find(&places, Which::Cheapest, &|_, _| 1, &oracle, &limits())?;
        let calls = |findings: &Findings| findings.stats.get("engine_calls").unwrap_or(0);
        let printed = if compare && goal == Goal::Safety && !matches!(findings.end, End::Unknown(_)) {
            algorithm2::run(&places, &oracle, MAX_QUERIES)
        } else {
            None
        };
        Ok(Run { one: calls(&one), all: calls(&findings), findings, places, seconds, outside, printed })
    }

    /// The sets by number and size.
    fn sets(&self) -> Sets {
        let sizes = || self.findings.sets.iter().map(|set| set.fences.len());
        match &self.findings.end {
            End::Unknown(_) => Sets::Unknown,
            End::Hopeless(_) => Sets::NoneHelp,
            End::Complete if sizes().eq([0]) => Sets::NoneNeeded,
            End::Complete => Sets::Found {
                count: sizes().count(),
                least: sizes().min().unwrap_or(0),
                most: sizes().max().unwrap_or(0),
            },
        }
    }

    /// A short description of the sets: `2`, `3 sets of 2`, `none needed`, `none help`, or why they are not
    /// known.
    fn describe(&self) -> String {
        match (&self.findings.end, self.sets()) {
            (End::Unknown(reason), _) => reason.to_string(),
            (_, Sets::Unknown) => unreachable!("the search has an end"),
            (_, Sets::NoneHelp) => "none help".to_owned(),
            (_, Sets::NoneNeeded) => "none needed".to_owned(),
            (_, Sets::Found { count: 1, most, .. }) => format!("{most}"),
            (_, Sets::Found { count, least, most }) => {
                let sizes = if least == most { format!("{least}") } else { format!("{least} to {most}") };
                format!("{count} sets of {sizes}")
            }
        }
    }

    /// The fences of the first set: `P(0) 8, P(1) 8`.
    fn first_set(&self, input: &Input) -> Vec<String> {
        let fences = self.findings.sets.first().map_or([].as_slice(), |set| set.fences.as_slice());
        let place = |fence: &palisade_fences::Fence| {
            let place = &self.places.places()[fence.place];
            let line = input.source.position(place.span).map_or(0, |position| position.line);
            format!("{} {line}", place.process)
        };
        fences.iter().map(place).collect()
    }

    /// Whether fewer queries were needed than Algorithm 2 needs, or Algorithm 2 needs only one.
    fn is_quicker(&self) -> bool {
        self.printed.is_none_or(|printed| {
            let printed = printed.all as u64;
            self.all < printed || printed == 1
        })
    }

    fn queries(&self) -> Vec<String> {
        let printed = |count: fn(&algorithm2::Queries) -> usize| match &self.printed {
            Some(queries) => count(queries).to_string(),
            None => "-".to_owned(),
        };
        vec![
            self.one.to_string(),
            self.all.to_string(),
            printed(|queries| queries.one),
            printed(|queries| queries.all),
        ]
    }
}

fn read(path: &Path) -> Result<Input> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let language = Language::from_extension(extension).context("a known language")?;
    let name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    palisade::read(Source::new(name, text), language, None).map_err(|refused| anyhow!("{refused}"))
}
