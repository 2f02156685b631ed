//! `palisade bench`: the suites print their tables themselves. This file shows their progress meanwhile.

use crate::args::{self, Common, Format};
use crate::exit::Exit;
use crate::interrupt;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use palisade::{Diagnostic, Stats};
use palisade_bench::{BenchArgs, Watch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Runs the command.
pub fn run(args: &BenchArgs, common: &Common, output: &Output) -> Exit {
    if let Some(option) = refused(common) {
        let why =
            format!("`palisade bench` has no --{option}: its suites are always measured in the same way");
        let help = "suites with long searches have --seconds; see `palisade bench SUITE --help`";
        return output.refuse_about("bench", Diagnostic::error("no-such-option", why).help(help));
    }
    let stop = if args.is_suite() { interrupt::stop_flag() } else { Arc::default() };
    let meter = Arc::new(Meter::new(output.detail == Detail::Quiet || !args.is_suite()));
    let watch = args.is_suite().then(|| -> Box<dyn Watch> {
        let meter = Arc::downgrade(&meter);
        Box::new(Waiting { meter, stop: stop.clone(), format: output.format })
    });
    let result = palisade_bench::run(args, watch);
    drop(meter);
    match result {
        _ if stop.load(Ordering::Relaxed) => {
            let stopped = Diagnostic::error("stopped", "stopped; everything measured so far was printed");
            output.complain_about("bench", stopped);
            Exit::Unknown
        }
        Ok(()) => Exit::Fine,
        Err(error) => output.refuse_about("bench", Diagnostic::error("bench-failed", format!("{error:#}"))),
    }
}

/// An option of [`args::NOT_OF_BENCH`] that was given.
fn refused(common: &Common) -> Option<&'static str> {
    let given = [
        common.timeout.is_some(),
        common.memory.is_some(),
        common.jobs.is_some(),
        common.seed != 0,
        common.verbose,
    ];
    args::NOT_OF_BENCH.into_iter().zip(given).find_map(|(option, is_given)| is_given.then_some(option))
}

/// Shows which row is being measured.
struct Waiting {
    /// Exists as long as the command is waiting.
    meter: Weak<Meter>,
    stop: Arc<AtomicBool>,
    format: Format,
}

impl Watch for Waiting {
    fn measuring(&self, suite: &str, row: &str) {
        if let Some(meter) = self.meter.upgrade() {
            meter.say(&format!("{suite}, {row}"), &Stats::new());
        }
    }

    fn printing(&self) {
        if let Some(meter) = self.meter.upgrade() {
            meter.wipe();
        }
    }

    fn stop(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    fn wants_json(&self) -> bool {
        self.format == Format::Json
    }
}
