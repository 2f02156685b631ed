//! All engines side by side (`--engine auto`), compared with each engine alone, and the cost of checking
//! proofs.
//!
//! *Aims.* (1) `auto` decides everything that some engine decides. (2) Over the corpus it takes at most twice
//! the time of the best engine for each program. (3) Proofs and their check cost at most as much again as the
//! answer.
//!
//! *How.* Every program of the corpus under every model, with all cores. The minimum of several wall-clock
//! times counts, because disturbances only add to a measurement.

use crate::corpus;
use crate::measure::machine;
use crate::table::{Table, judged};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say, stop};
use anyhow::Result;
use palisade::{Answer, CheckOptions, EngineChoice, Input, Limits, Model, engines};
use palisade_corpus::expectations;
use std::time::{Duration, Instant};

/// A row is shown if the best engine takes longer than the first number of seconds, or if the answer with its
/// checked proof takes longer than the second.
const WORTH_A_ROW: (f64, f64) = (2e-3, 1e-2);

/// Runs the suite. The minimum of this many times counts.
pub fn run(seconds: u64, rounds: usize) -> Result<()> {
    say!(
        "{}; at most {seconds} s per run; rows where the best engine takes 2 ms or more, or an answer with its proof 10 ms\n",
        machine()
    );
    let limit = Duration::from_secs(seconds);
    let mut table =
        Table::new(&["program", "model", "best", "ms", "auto", "ms", "ratio", "certified", "ratio"]);
    let mut totals = Totals::default();
    for file in expectations().iter().map(|expectation| expectation.file) {
        let input = corpus::read(file)?;
        for model in Model::ALL {
            measuring(&format!("{file} under {}", model.name()))?;
            let row = Row::measure(&input, model, limit, rounds)?;
            totals.add(&row);
            if row.best.as_ref().is_none_or(|best| best.1 >= WORTH_A_ROW.0)
                || row.certified.1 >= WORTH_A_ROW.1
            {
                table.row(row.cells(file, model));
            }
        }
    }
    table.print();
    totals.print();
    Ok(())
}

struct Row {
    /// The fastest engine that decides, and its time.
    best: Option<(&'static str, f64)>,
    /// The engine that answered, if one did, and the time.
    auto: (Option<&'static str>, f64),
    /// Whether a `safe` answer came with a checked proof, and the time.
    certified: (bool, f64),
}

impl Row {
    fn measure(input: &Input, model: Model, limit: Duration, rounds: usize) -> Result<Row> {
        let least = |options: &CheckOptions| least(input, options, limit, rounds);
        let options = |engine, certify| CheckOptions { model, engine, certify, ..CheckOptions::default() };
        let mut best: Option<(&'static str, f64)> = None;
        for engine in engines() {
            let named = options(EngineChoice::Named(engine.name().to_owned()), false);
            let (answer, seconds) = least(&named)?;
            if answer.outcome.verdict.is_known() && best.is_none_or(|(_, least)| seconds < least) {
                best = Some((engine.name(), seconds));
            }
        }
        let (auto, seconds) = least(&options(EngineChoice::Auto, false))?;
        let decided = auto.outcome.verdict.is_known().then_some(auto.outcome.engine);
        let (proved, with_proof) = least(&options(EngineChoice::Auto, true))?;
        let verdict = |answer: &Answer| SafetyVerdict::from(&answer.outcome.verdict);
        let ok = verdict(&proved) == verdict(&auto);
        Ok(Row { best, auto: (decided, seconds), certified: (ok, with_proof) })
    }

    fn cells(&self, file: &str, model: Model) -> Vec<String> {
        let (best, least) = self.best.unwrap_or(("none", f64::NAN));
        let ms = |seconds: f64| format!("{:.1}", seconds * 1e3);
        vec![
            file.to_owned(),
            model.name().to_owned(),
            best.to_owned(),
            ms(least),
            self.auto.0.unwrap_or("none").to_owned(),
            ms(self.auto.1),
            format!("{:.2}", self.auto.1 / least),
            ms(self.certified.1),
            format!("{:.2}", self.certified.1 / self.auto.1),
        ]
    }
}

/// The answer, and the minimum of several times.
fn least(input: &Input, options: &CheckOptions, limit: Duration, most: usize) -> Result<(Answer, f64)> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut least = f64::INFINITY;
    let mut rounds = 0;
    loop {
        let start = Instant::now();
        let limits = Limits::unlimited(jobs).with_timeout(limit).with_memory(4 << 30).with_stop(stop());
        let answer = palisade::check(&input.program, options, &limits)?;
        least = least.min(start.elapsed().as_secs_f64());
        rounds += 1;
        // Disturbances matter little for long runs.
        if rounds == most || least > 0.5 {
            return Ok((answer, least));
        }
    }
}

#[derive(Default)]
struct Totals {
    rows: usize,
    missed: usize,
    uncertified: usize,
    best: f64,
    auto: f64,
    certified: f64,
}

impl Totals {
    fn add(&mut self, row: &Row) {
        self.rows += 1;
        match (row.best, row.auto.0) {
            (Some((_, least)), Some(_)) => {
                self.best += least;
                self.auto += row.auto.1;
                self.certified += row.certified.1;
                self.uncertified += usize::from(!row.certified.0);
            }
            (Some(_), None) => self.missed += 1,
            (None, _) => {}
        }
    }

    fn print(&self) {
        let (auto, certified) = (self.auto / self.best, self.certified / self.auto);
        say!();
        say!(
            "{} questions; {} decided by a single engine but not by auto  {}",
            self.rows,
            self.missed,
            judged(self.missed == 0)
        );
        say!(
            "in total: the best engine for each {:.0} ms, auto {:.0} ms, ratio {auto:.2}  {}",
            self.best * 1e3,
            self.auto * 1e3,
            judged(auto <= 2.0)
        );
        say!(
            "with proofs checked: {:.0} ms, ratio {certified:.2}, {} answers without a proof  {}",
            self.certified * 1e3,
            self.uncertified,
            judged(certified <= 2.0 && self.uncertified == 0)
        );
    }
}
