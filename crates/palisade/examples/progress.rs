//! Watching a long check, and stopping it without losing what is known.
//!
//! `cargo run -p palisade --example progress`

use palisade::{CheckOptions, Language, Limits, Note, Progress, Source, Stats};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Far too many states, and none of them bad.
const ENDLESS: &str = "\
shared x[8]: 0..99;
process P(i: 0..7) { loop { x[i] = (x[(i + 1) % 8] + x[i] + 1) % 100; } }
forbid x[0] == 98 && x[1] == 98 && x[2] == 98 && x[3] == 98 && x[4] == 98 && x[5] == 98 && x[6] == 98;
";

/// Prints the first lines, and stops after twenty.
struct Watcher {
    limits: Limits,
    lines: AtomicUsize,
}

impl Progress for Watcher {
    fn report(&self, doing: &str, stats: &Stats) {
        match self.lines.fetch_add(1, Ordering::Relaxed) {
            0..5 => println!("{doing}: {:?}", stats.iter().next()),
            20 => self.limits.stop(),
            _ => {}
        }
    }

    fn report_lane(&self, _lane: usize, engine: &str, doing: &str, stats: &Stats) {
        self.report(&format!("{engine}, {doing}"), stats);
    }

    fn note(&self, note: &Note) {
        println!("{}", note.text);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = Source::new("endless.pal", ENDLESS);
    let input = palisade::read(source, Language::Pal, None).map_err(|refused| refused.to_string())?;
    let limits = Limits::unlimited(2);
    // Clones share the flag that stops them all.
    let watcher = Watcher { limits: limits.clone(), lines: AtomicUsize::new(0) };
    let limits = limits.with_progress(Arc::new(watcher));
    let answer = palisade::check(&input.program, &CheckOptions::default(), &limits)?;
    println!("{}: {:?}", answer.outcome.word(), answer.outcome.verdict);
    for other in &answer.others {
        println!("{}: {:?}", other.engine, other.verdict);
    }
    Ok(())
}
