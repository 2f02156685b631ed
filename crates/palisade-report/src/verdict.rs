//! A verdict as text: the line that scripts read, and the details below it.

use crate::{Colour, Finding, explain};
use palisade_engine::{Outcome, Stats, Verdict};
use palisade_memory::Model;
use std::fmt::Write;

/// The line of a file: verdict, file, and why. Without a line break.
pub fn headline(finding: &Finding<'_>, colour: Colour) -> String {
    let word = finding.outcome.verdict.word();
    let style = match finding.outcome.verdict {
        Verdict::Safe => "1;32",
        Verdict::Unsafe(_) => "1;31",
        Verdict::Unknown(_) => "1;33",
    };
    let why = why(finding).map_or_else(String::new, |why| format!(": {why}"));
    format!("{}  {}{why}", colour.paint(style, word), finding.file)
}

/// What is bad, why it is unknown, or what `safe` is limited to.
pub(crate) fn why(finding: &Finding<'_>) -> Option<String> {
    match (&finding.outcome.verdict, &finding.evidence) {
        (Verdict::Unknown(reason), _) => Some(reason.to_string()),
        (Verdict::Unsafe(_), Some(evidence)) => {
            let threads = match finding.threads {
                Some(1) => "with 1 thread, ".to_owned(),
                Some(threads) => format!("with {threads} threads, "),
                None => String::new(),
            };
            Some(format!("{threads}{}", explain(evidence)))
        }
        (Verdict::Safe, _) => match (finding.certified, finding.limits) {
            (Some(_), Some(limits)) => Some(format!("{limits}, proof checked")),
            (Some(_), None) => Some("proof checked".to_owned()),
            (None, limits) => limits.map(str::to_owned),
        },
        (Verdict::Unsafe(_), None) => None,
    }
}

/// How much to tell about how the answer came about.
///
/// In brief: model, engine, the first counter, time. In full: every counter and the peak memory as well.
pub fn details(finding: &Finding<'_>, full: bool) -> String {
    let Finding { model, outcome, seconds, peak_memory_bytes, .. } = *finding;
    let mut text = account(model, outcome.engine, &outcome.stats, seconds, peak_memory_bytes, full);
    if let Some(certified) = finding.certified {
        if certified.engine != outcome.engine {
            write!(text, "; proof by engine {}", certified.engine).expect("writing to a string");
        }
        write!(
            text,
            "; proof of {} elements checked in {:.2} s",
            grouped(certified.elements),
            certified.seconds
        )
        .expect("writing to a string");
    }
    for other in finding.others.iter().filter(|_| full) {
        text.push_str("\n  ");
        text.push_str(&reached(other));
    }
    text
}

/// What an engine had found out when another one gave the answer.
fn reached(outcome: &Outcome) -> String {
    let mut text = format!("{}: ", outcome.engine);
    match &outcome.verdict {
        Verdict::Unknown(reason) => text.push_str(&reason.to_string()),
        verdict => text.push_str(verdict.word()),
    }
    for (name, value) in outcome.stats.iter().take(1) {
        write!(text, ", {} {}", grouped(value), name.replace('_', " ")).expect("writing to a string");
    }
    text
}

/// The same for any kind of answer.
pub(crate) fn account(
    model: Model,
    engine: &str,
    stats: &Stats,
    seconds: f64,
    peak_memory_bytes: Option<u64>,
    full: bool,
) -> String {
    let mut text = format!("{}, engine {engine}", model.name().to_uppercase());
    let counters = stats.iter().take(if full { usize::MAX } else { 1 });
    for (name, value) in counters {
        write!(text, ", {} {}", grouped(value), name.replace('_', " ")).expect("writing to a string");
    }
    write!(text, ", {seconds:.2} s").expect("writing to a string");
    if let (true, Some(bytes)) = (full, peak_memory_bytes) {
        write!(text, ", {:.1} MiB", bytes as f64 / (1u64 << 20) as f64).expect("writing to a string");
    }
    text
}

/// `1,234,567`
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_engine::Reason;

    #[test]
    fn lines() {
        let mut stats = Stats::new();
        stats.set("states", 1_234_567);
        stats.set("peak_frontier", 12);
        let check = |verdict, limits, line: &str, told: &str| {
            let outcome = Outcome { verdict, engine: "explicit", stats: stats.clone() };
            let finding = Finding {
                file: "a.pal",
                model: Model::Tso,
                outcome: &outcome,
                limits,
                seconds: 1.5,
                peak_memory_bytes: Some(3 << 20),
                evidence: None,
                witness: None,
                threads: None,
                others: &[],
                certified: None,
            };
            assert_eq!(headline(&finding, Colour::Never), line);
            assert_eq!(details(&finding, line.starts_with("unknown")), told);
        };
        check(Verdict::Safe, None, "safe  a.pal", "TSO, engine explicit, 1,234,567 states, 1.50 s");
        check(
            Verdict::Safe,
            Some("with integers in 0..7"),
            "safe  a.pal: with integers in 0..7",
            "TSO, engine explicit, 1,234,567 states, 1.50 s",
        );
        check(
            Verdict::Unknown(Reason::BufferBound(8)),
            None,
            "unknown  a.pal: no bad state with buffers up to 8",
            "TSO, engine explicit, 1,234,567 states, 12 peak frontier, 1.50 s, 3.0 MiB",
        );
    }

    #[test]
    fn digits_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (12345678, "12,345,678")] {
            assert_eq!(grouped(value), text);
        }
    }
}
