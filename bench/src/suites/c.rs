//! C programs: the corpus, growth with the number of threads, and reading LLVM IR.
//!
//! *Aims.*
//! - All verdicts of the corpus, in at most 60 s each.
//! - `safe` with three threads in 2 s, where Dartagnan's own tests say UNKNOWN under TSO. `safe` here means for any
//!   number of iterations; GenMC and Dartagnan answer up to a bound on loops.
//! - The test-and-set locks with eight threads in 5 s, Treiber's stack with five and the queue of Michael and Scott
//!   with four in 60 s.
//! - 10,000 lines of LLVM IR read in 0.1 s.
//!
//! *How.* Every program is checked by this program's own `check`, in a process of its own, so times include the
//! compiler. The figures of GenMC are those of version 0.10.3 under TSO on a busy machine with two cores, for the
//! programs of the same algorithms that come with GenMC and Dartagnan. Those programs are not ours: the figures are
//! comparable in kind only.

use crate::measure::{machine, output, timed};
use crate::table::{Table, judged, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say};
use anyhow::{Context, Result, anyhow};
use palisade::{Model, Source};
use palisade_corpus::{Question, c_expectations, c_texts};
use palisade_harness::cache::{TempDir, temporary_folder};
use serde_json::Value;
use std::process::Command;

/// A row of the corpus is shown if it takes longer than this, in seconds.
const WORTH_A_ROW: f64 = 0.5;

/// What is known about a program that exists for any number of threads.
struct Growth {
    file: &'static str,
    /// With how many threads it is checked.
    threads: &'static [u64],
    /// What GenMC took: seconds and executions, by number of threads from 3. `None`: not in 60 s.
    genmc: &'static [Option<(f64, u64)>],
    /// What Dartagnan's own tests say about it under TSO.
    dartagnan: &'static str,
    /// How many seconds it may take with this many threads under TSO.
    aims: &'static [(u64, f64)],
}

const GROWTH: [Growth; 7] = [
    Growth {
        file: "c/ttas.c",
        threads: &[3, 4, 5, 6, 8],
        genmc: &[Some((0.12, 36)), Some((0.47, 576)), Some((3.1, 14_400)), None],
        dartagnan: "UNKNOWN",
        aims: &[(3, 2.0), (8, 5.0)],
    },
    Growth {
        file: "c/tas.c",
        threads: &[3, 4, 5, 6, 8],
        genmc: &[Some((0.11, 36)), Some((0.48, 576)), Some((2.5, 14_400)), Some((45.0, 518_400))],
        dartagnan: "PASS",
        aims: &[(3, 2.0), (8, 5.0)],
    },
    Growth {
        file: "c/ticket.c",
        threads: &[3, 4, 5, 6],
        genmc: &[Some((0.10, 6)), Some((0.13, 24)), Some((0.13, 120)), Some((0.23, 720))],
        dartagnan: "PASS",
        aims: &[(3, 2.0)],
    },
    Growth { file: "c/clh.c", threads: &[2, 3, 4], genmc: &[], dartagnan: "UNKNOWN", aims: &[(3, 2.0)] },
    Growth { file: "c/mcs.c", threads: &[2, 3, 4], genmc: &[], dartagnan: "", aims: &[] },
    Growth {
        file: "c/treiber.c",
        threads: &[2, 3, 4, 5],
        genmc: &[Some((0.12, 270)), Some((3.8, 13_992)), None],
        dartagnan: "UNKNOWN",
        aims: &[(3, 2.0), (5, 60.0)],
    },
    Growth {
        file: "c/ms_queue.c",
        threads: &[2, 3, 4],
        genmc: &[Some((1.4, 1_368)), None],
        dartagnan: "UNKNOWN",
        aims: &[(3, 2.0), (4, 60.0)],
    },
];

/// Runs the suite. Each question may take this many seconds.
pub fn run(seconds: u64) -> Result<()> {
    say!("{}; at most {seconds} s per program and model\n", machine());
    let folder = temporary_folder("palisade-bench-c-").context("cannot make a temporary folder")?;
    for (file, text) in c_texts() {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {file}"))?;
    }
    growth(&folder, seconds)?;
    corpus(&folder, seconds)?;
    reading(&folder)
}

/// What `check` says about a program.
struct Answer {
    verdict: SafetyVerdict,
    seconds: f64,
    states: Option<u64>,
}

fn check(
    folder: &TempDir,
    file: &str,
    model: Model,
    options: &[&str],
    flags: &[&str],
    seconds: u64,
) -> Result<Answer> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let limit = seconds.to_string();
    let start = std::time::Instant::now();
    let done = Command::new(this)
        .current_dir(folder.path())
        .args(["check", file, "--format", "json", "--model", model.name(), "--timeout", &limit])
        .args(options)
        .arg("--")
        .args(flags)
        .output()
        .context("cannot run this program")?;
    let seconds = start.elapsed().as_secs_f64();
    let printed = String::from_utf8_lossy(&done.stdout);
    let record: Value = serde_json::from_str(&printed)
        .map_err(|_| anyhow!("{file}: {}", String::from_utf8_lossy(&done.stderr)))?;
    let word = record["verdict"].as_str().context("an answer has a verdict")?;
    let verdict = SafetyVerdict::parse(word).with_context(|| format!("an answer with the verdict {word}"))?;
    Ok(Answer { verdict, seconds, states: record["stats"]["states"].as_u64() })
}

fn growth(folder: &TempDir, seconds: u64) -> Result<()> {
    say!("Growth with the number of threads: seconds and states, beside GenMC (TSO) and Dartagnan (TSO)");
    let mut table = Table::new(&[
        "program",
        "threads",
        "SC",
        "s",
        "states",
        "TSO",
        "s",
        "states",
        "PSO",
        "s",
        "states",
        "aim",
        "",
        "GenMC s",
        "executions",
        "Dartagnan",
    ]);
    for program in &GROWTH {
        for &threads in program.threads {
            let macros = format!("-DTHREADS={threads}");
            let mut cells = vec![program.file.to_owned(), threads.to_string()];
            let mut fine = true;
            let aim = program.aims.iter().find(|(count, _)| *count == threads).map(|(_, seconds)| *seconds);
            for model in Model::ALL {
                measuring(&format!("{} with {threads} threads under {}", program.file, model.name()))?;
                let answer = check(folder, program.file, model, &[], &[&macros], seconds)?;
                let in_time = model != Model::Tso || aim.is_none_or(|aim| answer.seconds <= aim);
                fine &= in_time
                    && match answer.verdict {
                        SafetyVerdict::Safe => true,
                        SafetyVerdict::Unknown => aim.is_none(),
                        SafetyVerdict::Unsafe => false,
                    };
                cells.push(answer.verdict.name().to_owned());
                cells.push(format!("{:.2}", answer.seconds));
                cells.push(answer.states.map(thousands).unwrap_or_default());
            }
            cells.push(aim.map(|aim| format!("{aim} s")).unwrap_or_default());
            cells.push(judged(fine));
            let genmc =
                threads.checked_sub(3).and_then(|index| program.genmc.get(usize::try_from(index).ok()?));
            let (time, executions) = match genmc {
                None => (String::new(), String::new()),
                Some(None) => ("not in 60".to_owned(), String::new()),
                Some(Some((seconds, executions))) => (format!("{seconds}"), thousands(*executions)),
            };
            let dartagnan = if threads == 3 { program.dartagnan } else { "" };
            cells.extend([time, executions, dartagnan.to_owned()]);
            table.row(cells);
        }
    }
    table.print();
    say!("aim: for TSO; GenMC and Dartagnan: up to a bound on loops, for programs of their own\n");
    Ok(())
}

fn corpus(folder: &TempDir, seconds: u64) -> Result<()> {
    say!("The corpus: programs and their broken twins, answers as expected");
    let mut table = Table::new(&["program", "flags", "model", "expected", "found", "s", "states", ""]);
    let (mut right, mut unknown, mut wrong, mut total) = (0, 0, 0, 0.0);
    for expected in c_expectations() {
        let options: &[&str] = if expected.question == Question::Safety { &["--no-deadlock"] } else { &[] };
        let verdicts = [expected.verdicts.sc, expected.verdicts.tso, expected.verdicts.pso];
        for (model, verdict) in Model::ALL.into_iter().zip(verdicts) {
            let Some(verdict) = verdict.map(SafetyVerdict::from) else { continue };
            measuring(&format!("{} {:?} under {}", expected.file, expected.flags, model.name()))?;
            let answer = check(folder, expected.file, model, options, &expected.flags, seconds)?;
            total += answer.seconds;
            match answer.verdict {
                found if found == verdict => right += 1,
                SafetyVerdict::Unknown => unknown += 1,
                _ => wrong += 1,
            }
            if answer.verdict != verdict || answer.seconds > WORTH_A_ROW {
                table.row(vec![
                    expected.file.to_owned(),
                    expected.flags.join(" "),
                    model.name().to_owned(),
                    verdict.name().to_owned(),
                    answer.verdict.name().to_owned(),
                    format!("{:.2}", answer.seconds),
                    answer.states.map(thousands).unwrap_or_default(),
                    judged(answer.verdict == verdict),
                ]);
            }
        }
    }
    table.print();
    say!(
        "rows: slower than {WORTH_A_ROW} s, or not as expected; in total {right} as expected, {unknown} unknown, \
         {wrong} wrong, {total:.0} s  {}\n",
        judged(wrong == 0 && unknown == 0)
    );
    Ok(())
}

/// How many functions are in the text of which the IR is read.
const FUNCTIONS: usize = 250;

fn reading(folder: &TempDir) -> Result<()> {
    measuring("reading LLVM IR")?;
    let function = |index: usize| {
        format!(
            "int f{index}(int n, int *p)\n{{\n    for (int i = 0; i < n; i++)\n        \
             if (__atomic_fetch_add(p, i, __ATOMIC_ACQ_REL) > {index})\n            p[i] = i * n;\n    return *p;\n}}\n"
        )
    };
    let text: String = (0..FUNCTIONS).map(function).collect();
    let (c, ll) = (folder.path().join("large.c"), folder.path().join("large.ll"));
    std::fs::write(&c, text).context("cannot write a file")?;
    let mut clang = Command::new("clang");
    clang.args(["-O0", "-g", "-S", "-emit-llvm", "-o"]).arg(&ll).arg(&c);
    output(&mut clang).context("clang is needed (Debian package clang; `./test` installs it)")?;
    let text = std::fs::read_to_string(&ll).context("cannot read what clang wrote")?;
    let lines = text.lines().count();
    let source = Source::new("large.ll", text);
    const ROUNDS: u32 = 10;
    let (read, seconds) = timed(|| (0..ROUNDS).all(|_| palisade::llvm::read(&source).is_ok()));
    anyhow::ensure!(read, "what clang wrote cannot be read");
    let per_10_000 = seconds / f64::from(ROUNDS) / lines as f64 * 1e4;
    say!(
        "reading {} lines of LLVM IR: {per_10_000:.3} s per 10,000 lines  {}",
        thousands(lines as u64),
        judged(per_10_000 <= 0.1)
    );
    Ok(())
}
