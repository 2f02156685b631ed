//! Parsing speed and memory on large generated texts of every input language.
//!
//! *Aim.* At least 20 MB/s. A text of 10 MB is read or refused within seconds and 1 GB.
//!
//! *How.* Each text is read and validated in a separate process. The peak memory of that process, including
//! the text, is reported. Two sizes show whether the time is linear.

use crate::measure::{machine, median, output, timed};
use crate::table::{Table, judged, megabytes};
use crate::watch::{measuring, say};
use anyhow::{Context, Result};
use clap::Args;
use palisade_base::Source;
use palisade_engine::peak_memory_bytes;
use palisade_syntax::Language;
use std::fmt::Write;

/// One text, read in this process.
#[derive(Args, Clone, Copy, Debug)]
pub struct Read {
    /// The language: pal, rmm, litmus or trencher
    #[arg(value_parser = |name: &str| Language::from_name(name).ok_or("unknown language"))]
    language: Language,
    /// The size of the text in bytes
    bytes: usize,
}

impl Read {
    /// Prints one line: the answer, bytes, seconds of processor time, peak bytes.
    pub fn run(self) -> Result<()> {
        let source = Source::new("generated", text(self.language, self.bytes));
        let answer = match palisade_syntax::parse(self.language, &source) {
            Ok(_) => "read",
            Err(diagnostics) => diagnostics.first().map_or("refused", |first| first.id),
        };
        let peak = peak_memory_bytes().unwrap_or(0);
        // Repeated, because the host's processor time has a coarse resolution.
        let (mut runs, mut seconds) = (0, 0.0);
        while seconds < 0.5 {
            seconds += timed(|| palisade_syntax::parse(self.language, &source).is_ok()).1.max(1e-3);
            runs += 1;
        }
        println!("{answer} {} {:.6} {peak}", source.text().len(), seconds / f64::from(runs));
        Ok(())
    }
}

/// Runs the suite.
pub fn run() -> Result<()> {
    say!("{}\n", machine());
    let mut table = Table::new(&["language", "MB", "answer", "seconds", "MB/s", "", "peak MB", ""]);
    for language in Language::ALL {
        for size in [1_000_000, 10_000_000] {
            measuring(&format!("{}, {size} bytes", language.name()))?;
            table.row(row(language, size)?);
        }
    }
    table.print();
    Ok(())
}

fn row(language: Language, size: usize) -> Result<Vec<String>> {
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..3 {
        let line = output(&mut crate::again(&["read", language.name(), &size.to_string()])?)?;
        let fields = parse_line(&line).with_context(|| format!("not the output of a reader: {line}"))?;
        times.push(fields.2);
        last = Some(fields);
    }
    let (answer, bytes, _, peak) = last.context("there is at least one run")?;
    let seconds = median(times);
    let rate = bytes as f64 / seconds;
    Ok(vec![
        language.name().to_owned(),
        megabytes(bytes as f64),
        answer,
        format!("{seconds:.3}"),
        format!("{:.1}", rate / 1e6),
        judged(rate >= 20e6),
        megabytes(peak as f64),
        judged(peak <= 1_000_000_000),
    ])
}

fn parse_line(line: &str) -> Option<(String, usize, f64, u64)> {
    let mut words = line.split_whitespace();
    Some((
        words.next()?.to_owned(),
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
    ))
}

/// A text of about this many bytes.
fn text(language: Language, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 1000);
    match language {
        Language::Pal => pal(&mut text, bytes),
        Language::Rmm => rmm(&mut text, bytes),
        Language::Litmus => litmus(&mut text, bytes),
        Language::Trencher => trencher(&mut text, bytes),
    }
    text
}

/// Appends to a text. Writing to a string never fails.
macro_rules! put {
    ($text:expr, $($what:tt)*) => { write!($text, $($what)*).expect("writing to a string succeeds") };
}

/// The number of processes. It is small, because programs with very many processes are refused.
const PROCESSES: usize = 8;

/// Processes with many rounds of the fast mutex in sequence.
fn pal(text: &mut String, bytes: usize) {
    put!(text, "shared x, y: 0..2;\nshared b[2]: bool;\n");
    for process in 0..PROCESSES {
        let (i, me) = (process % 2, process % 2 + 1);
        put!(text, "\nprocess P{process} {{\n");
        let end = bytes * (process + 1) / PROCESSES;
        let mut round = 0;
        while text.len() < end {
            put!(
                text,
                "    // Round {round}: the fast way first.
    b[{i}] = true;
    x = {me};
    while y != 0 {{
        b[{i}] = false;
        await y == 0;
        b[{i}] = true;
        x = {me};
    }}
    y = {me};
    if x != {me} {{
        b[{i}] = false;
        await !b[0] && !b[1];
        if y != {me} {{ await y == 0; }}
    }}
cs{round}:
    y = 0;
    b[{i}] = false;
"
            );
            round += 1;
        }
        put!(text, "}}\n");
    }
    put!(text, "forbid P0@cs0 && P1@cs0;\n");
}

/// Two processes that lock and unlock repeatedly.
fn rmm(text: &mut String, bytes: usize) {
    put!(text, "/* Peterson's lock, many times */\n\nforbidden\n  CS0 CS0\n\ndata\n  turn = * : [0:1]\n");
    for process in 0..2 {
        put!(
            text,
            "\nprocess\ndata\n  flag = 0 : [0:1]\nregisters\n  $r0 = 0 : [0:1]\n  $r1 = 0 : [0:1]\ntext\n"
        );
        let end = bytes * (process + 1) / 2;
        let turn = 1 - process;
        let mut round = 0;
        while text.len() < end {
            put!(
                text,
                "  L{round}: write: flag[my] := 1;
  write: turn := {turn};
  W{round}: read: $r0 := flag[0];
  read: $r1 := turn;
  if $r0 = 1 && $r1 = {turn} then
    goto W{round};
  CS{round}: write: flag[my] := 0;
"
            );
            round += 1;
        }
        put!(text, "  goto L0\n");
    }
}

/// Four threads with one long column each.
fn litmus(text: &mut String, bytes: usize) {
    put!(text, "X86_64 long\n\"Four long threads\"\n{{ x=0; y=0; }}\n");
    put!(text, " P0             | P1             | P2             | P3             ;\n");
    while text.len() < bytes {
        put!(text, " movq $1,(x)    | movq $2,(y)    | movq (x),%rax  | movq (y),%rbx  ;\n");
        put!(text, " mfence         | movq (x),%rcx  | movq %rax,%rdx | xchgq %rbx,(x) ;\n");
        put!(text, " movq (y),%rax  | addq $1,%rcx   |                | mfence         ;\n");
    }
    put!(text, "exists (0:rax=0 /\\ 1:rcx=1)\n");
}

/// Threads with many repetitions of Dekker's lock.
fn trencher(text: &mut String, bytes: usize) {
    for thread in 0..PROCESSES {
        let (mine, other) = (thread % 2, 1 - thread % 2);
        put!(text, "thread t{thread}\ninitial q0\n");
        let end = bytes * (thread + 1) / PROCESSES;
        let mut round = 0;
        while text.len() < end {
            let next = round + 1;
            put!(
                text,
                "# Round {round}.
transition q{round} r{round} write 1 {mine}
transition r{round} s{round} read flag {other}
transition s{round} t{round} check == flag 1
transition s{round} x{round} check == flag 0
transition t{round} u{round} read turn 2
transition u{round} v{round} check != turn {mine}
transition u{round} r{round} check == turn {mine}
transition v{round} w{round} write 0 {mine}
transition w{round} q{round} noop
transition x{round} y{round} write {other} 2
transition y{round} z{round} write 0 {mine}
transition z{round} q{next} noop
"
            );
            round = next;
        }
        put!(text, "end\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_texts_are_valid() {
        for language in Language::ALL {
            let source = Source::new("generated", text(language, 10_000));
            let parsed = palisade_syntax::parse(language, &source);
            assert!(parsed.is_ok(), "{language}: {:?}\n{}", parsed.err(), source.text());
        }
    }
}
