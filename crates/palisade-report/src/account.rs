//! How an answer was found, in words: model, engine, counters, time.

use palisade_engine::{Exhausted, Outcome, Question, Reason, Stats, Verdict};
use palisade_memory::Model;
use std::fmt::Write;

/// What an engine had found when another one gave the answer. The limit of a probe is not one that the user
/// set, so it is reported as what the engine did.
pub(crate) fn reached<Q: Question>(outcome: &Outcome<Q>) -> String {
    let counted = outcome.stats.iter().next();
    let counted = counted.map(|(name, value)| counter(name, value, &grouped(value)));
    let reason = match &outcome.verdict {
        Verdict::Unknown(reason) => reason,
        _ => return joined(outcome.word().to_owned(), counted),
    };
    let Some(what) = reason.what_ran_out() else {
        let counted = counted.map_or_else(String::new, |counted| format!(" ({counted})"));
        return format!("{reason}{counted}");
    };
    let mut text = match (what, counted) {
        (Exhausted::Work(_) | Exhausted::Stopped, Some(counted)) => format!("stopped after {counted}"),
        (what, counted) => joined(ran_out(what), counted),
    };
    if let Reason::Partly(_, established) = reason {
        write!(text, "; {established}").expect("writing to a string");
    }
    text
}

/// What ended an engine's work before it knew the answer.
fn ran_out(what: Exhausted) -> String {
    match what {
        Exhausted::Time(time) => format!("stopped after {} s", time.as_secs_f64()),
        Exhausted::Work(work) => format!("stopped after {} states or configurations", grouped(work)),
        Exhausted::Memory(_) | Exhausted::Stopped => what.to_string(),
    }
}

/// The same in a few words, for places where the counters are shown elsewhere.
pub(crate) fn reached_in_brief<Q: Question>(outcome: &Outcome<Q>) -> String {
    match &outcome.verdict {
        Verdict::Unknown(Reason::Exhausted(what)) => ran_out(*what),
        Verdict::Unknown(Reason::Partly(what, established)) => format!("{}; {established}", ran_out(*what)),
        Verdict::Unknown(reason) => reason.to_string(),
        _ => outcome.word().to_owned(),
    }
}

fn joined(text: String, counted: Option<String>) -> String {
    match counted {
        Some(counted) => format!("{text}, {counted}"),
        None => text,
    }
}

/// Model, engine, counters, time. In brief, only the first counter.
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
        write!(text, ", {}", counter(name, value, &grouped(value))).expect("writing to a string");
    }
    write!(text, ", {seconds:.2} s").expect("writing to a string");
    if let (true, Some(bytes)) = (full, peak_memory_bytes) {
        write!(text, ", {}", mebibytes(bytes)).expect("writing to a string");
    }
    text
}

/// What one of several processes has done. In brief, only its states and its memory.
pub fn process_in_words(stats: &Stats, full: bool) -> String {
    let get = |name| stats.get(name).unwrap_or(0);
    let states = counter("states", get("states"), &grouped(get("states")));
    let mut text = format!(
        "{states} ({}/s), {}",
        grouped(get("states_per_second")),
        mebibytes(get("peak_memory_bytes"))
    );
    if full {
        let (sent, received) = (mebibytes(get("sent_bytes")), mebibytes(get("received_bytes")));
        write!(text, ", {sent} sent, {received} received").expect("writing to a string");
    }
    text
}

/// Counters that are a size, not a number of items.
const SIZES: [&str; 5] = ["antichain", "bound", "buffer_bound", "depth", "peak_frontier"];

/// A counter in words. `written` is its value as text. Examples: `12.3k states`, `1 engine call`, `depth 7`.
pub fn counter(name: &str, value: u64, written: &str) -> String {
    let words = name.split('_').map(|word| if value == 1 { singular(word) } else { word.to_owned() });
    let words = words.collect::<Vec<_>>().join(" ");
    match SIZES.contains(&name) {
        true => format!("{words} {written}"),
        false => format!("{written} {words}"),
    }
}

fn singular(word: &str) -> String {
    match (word.strip_suffix("ies"), word.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) => stem.to_owned(),
        (None, None) => word.to_owned(),
    }
}

/// `762.8 MiB`
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1u64 << 20) as f64)
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
    use std::time::Duration;

    #[test]
    fn how_far_the_other_engines_got() {
        let check = |reason: Reason, configurations: u64, full: &str, brief: &str| {
            let mut stats = Stats::new();
            if configurations > 0 {
                stats.set("configurations", configurations);
            }
            let outcome: Outcome = Outcome::new("dual", Verdict::Unknown(reason), stats);
            assert_eq!((reached(&outcome).as_str(), reached_in_brief(&outcome).as_str()), (full, brief));
        };
        let (work, time) = (Exhausted::Work(1024), Exhausted::Time(Duration::from_millis(100)));
        let brief = "stopped after 1,024 states or configurations";
        check(Reason::Exhausted(work), 1100, "stopped after 1,100 configurations", brief);
        check(Reason::Exhausted(work), 0, brief, brief);
        let brief = "stopped after 0.1 s";
        check(Reason::Exhausted(time), 1, "stopped after 0.1 s, 1 configuration", brief);
        check(Reason::Exhausted(Exhausted::Stopped), 3, "stopped after 3 configurations", "stopped");
        let partly = Reason::exhausted(time, Some(Reason::Rounds(2)));
        let brief = "stopped after 0.1 s; safe up to 2 rounds";
        check(partly, 5, "stopped after 0.1 s, 5 configurations; safe up to 2 rounds", brief);
        check(Reason::Rounds(1), 5, "safe up to 1 round (5 configurations)", "safe up to 1 round");
    }

    #[test]
    fn counters_in_words() {
        for (name, value, text) in [
            ("states", 0, "0 states"),
            ("states", 1, "1 state"),
            ("engine_calls", 1, "1 engine call"),
            ("sc_queries", 1, "1 sc query"),
            ("sc_queries", 1234, "1,234 sc queries"),
            ("attacks_discarded", 1, "1 attack discarded"),
            ("in_one_place", 1, "1 in one place"),
            ("bound", 1, "bound 1"),
            ("buffer_bound", 2, "buffer bound 2"),
        ] {
            assert_eq!(counter(name, value, &grouped(value)), text);
        }
        assert_eq!(mebibytes(3 << 19), "1.5 MiB");
    }

    #[test]
    fn digits_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (12345678, "12,345,678")] {
            assert_eq!(grouped(value), text);
        }
    }
}
