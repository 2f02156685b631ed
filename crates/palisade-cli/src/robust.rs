//! `palisade robust`: does the memory model add any behaviour at all? If so, a run that shows it, and its cycle.

use crate::args::{Common, Format, RobustArgs};
use crate::exit::Exit;
use crate::files::{self, Found, Reading};
use crate::html::{Page, subject};
use crate::limits::Limits;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::paths::keep_apart;
use crate::ran_out::{Backstop, Question};
use palisade::engine::Exhausted;
use palisade::report::{self, LocalSteps, RaceFinding, RobustFinding, html};
use palisade::{
    Limits, Diagnostic, EngineChoice, Input, RaceAnswer, Races, RobustAnswer, RobustError, RobustOptions,
    Robustness,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Runs the command.
pub fn run(args: &RobustArgs, common: &Common, output: &Output) -> Exit {
    let found = match files::find(&args.paths, args.input) {
        Ok(found) => found,
        Err(problems) => return output.refuse_all(problems),
    };
    let inputs = found.iter().map(|found| found.path.as_path());
    let outputs = [
        ("--dot", args.dot.as_deref()),
        ("--witness", args.witness.as_deref()),
        ("--html", args.html.as_deref()),
    ];
    if let Err(exit) = keep_apart(inputs, &outputs, output) {
        return exit;
    }
    let single = found.len() == 1 && !args.paths[0].is_dir();
    if !single && (args.dot.is_some() || args.witness.is_some()) {
        let error =
            Diagnostic::error("witness-of-many", "--dot and --witness take the run of one program only");
        return output.refuse_about("--dot, --witness", error.help("ask about one file at a time"));
    }
    let limits = Limits::new(common);
    let mut worst = Exit::Fine;
    let mut page = Page::new(args.html.as_deref());
    for found in &found {
        let question = match args.triangular {
            true => Question::Triangular,
            false => Question::Robust(args.model.into()),
        };
        let last_words = output.last_words(&found.path, question);
        let backstop = single.then(|| Backstop::new(&limits, last_words.clone()));
        let limits = limits.limits(1);
        let exit = file(found, args, &limits, single, output, &mut page, backstop);
        worst = worst.worst(exit.unwrap_or_else(|what| {
            output.print(&last_words.say(what));
            Exit::Unknown
        }));
    }
    if page.write(output) { worst } else { Exit::Error }
}

/// Asks about one file. What there is to show goes to the page.
fn file(
    found: &Found,
    args: &RobustArgs,
    limits: &Limits,
    single: bool,
    output: &Output,
    page: &mut Page<'_>,
    backstop: Option<Backstop>,
) -> Result<Exit, Exhausted> {
    let input = match limits.within(|| files::read(found, args.input, args.int_range))? {
        Reading::Program(input) => input,
        Reading::Refused(refused) => {
            page.refuse(&refused.source, &refused.diagnostics);
            return Ok(output.refuse(&refused));
        }
        Reading::Skipped => return Ok(Exit::Fine),
    };
    output.warn(&input);
    let options = RobustOptions {
        model: args.model.into(),
        interlocked: args.interlocked.into(),
        threads: args.threads.unwrap_or_default(),
        engine: match args.engine.as_str() {
            "auto" => EngineChoice::Auto,
            name => EngineChoice::Named(name.to_owned()),
        },
        ..RobustOptions::default()
    };
    let meter = Meter::new(output.detail == Detail::Quiet);
    let ask = AssertUnwindSafe(|| {
        if args.triangular {
            palisade::triangular(&input.program, options.threads, limits, &meter).map(Told::Race)
        } else {
            palisade::robust(&input.program, &options, limits, &meter).map(Told::Robust)
        }
    });
    let answer = catch_unwind(ask);
    drop(meter);
    let name = input.source.name();
    // Printing takes as long as its readers need.
    drop(backstop);
    Ok(match answer {
        Ok(Ok(Told::Robust(answer))) => tell(&input, &answer, args, single, output, page),
        Ok(Ok(Told::Race(answer))) => tell_race(&input, &answer, single, output, page),
        Ok(Err(error)) => {
            let id = match error {
                RobustError::NoSuchEngine { .. } => "no-such-engine",
                RobustError::EngineBug { .. }
                | RobustError::EnginePanicked { .. }
                | RobustError::NotShown { .. }
                | RobustError::NoRace(_) => "internal-error",
            };
            output.refuse_about(name, Diagnostic::error(id, error.to_string()))
        }
        Err(_) => {
            let error = Diagnostic::error("internal-error", "Palisade failed, and there is no verdict");
            let help = "this is a bug in Palisade: please report it with the program and the lines above";
            output.refuse_about(name, error.help(help))
        }
    })
}

/// What was asked and found out.
enum Told {
    Robust(RobustAnswer),
    Race(RaceAnswer),
}

/// Tells the answer about triangular races in one file.
fn tell_race(input: &Input, answer: &RaceAnswer, single: bool, output: &Output, page: &mut Page<'_>) -> Exit {
    let finding = RaceFinding {
        file: input.source.name(),
        outcome: &answer.outcome,
        seconds: answer.seconds,
        peak_memory_bytes: answer.peak_memory_bytes,
        evidence: answer.evidence(&input.source),
    };
    page.add(|number| html::race(subject(input), &finding, number));
    let mut text = match output.format {
        Format::Json => report::race_json(&finding) + "\n",
        Format::Text => report::race_headline(&finding, output.colour) + "\n",
    };
    if output.format == Format::Text && single && output.detail != Detail::Quiet {
        let all = output.detail == Detail::Verbose;
        if let Some((evidence, _)) = finding.evidence {
            let local = if all { LocalSteps::Shown } else { LocalSteps::Folded };
            text = text + "\n" + &report::witness(&evidence, local, output.width, output.colour) + "\n";
        }
        text = text + &report::race_details(&finding, all) + "\n";
    }
    output.print(&text);
    match answer.outcome.answer {
        Verdict::Holds => Exit::Fine,
        Verdict::Violated(_) => Exit::Violated,
        Verdict::Unknown(_) => Exit::Unknown,
    }
}

/// Tells the answer about one file.
fn tell(
    input: &Input,
    answer: &RobustAnswer,
    args: &RobustArgs,
    single: bool,
    output: &Output,
    page: &mut Page<'_>,
) -> Exit {
    let witness = answer.witness_file(input);
    let limits = input.int_range.map(|range| format!("with integers in {range}"));
    let evidence = answer
        .evidence(&input.source)
        .zip(answer.cycle())
        .map(|(evidence, (happens_before, cycle))| (evidence, happens_before, cycle));
    let finding = RobustFinding {
        file: input.source.name(),
        model: answer.model,
        outcome: &answer.outcome,
        limits: limits.as_deref(),
        seconds: answer.seconds,
        peak_memory_bytes: answer.peak_memory_bytes,
        evidence,
        witness: witness.as_ref(),
    };
    page.add(|number| html::robust(subject(input), &finding, number));
    output.print(&text(&finding, single, output));
    let dot =
        evidence.map(|(evidence, happens_before, cycle)| report::cycle_dot(&evidence, happens_before, cycle));
    let kept = [
        (args.dot.as_deref(), dot),
        (args.witness.as_deref(), witness.as_ref().map(palisade::trace::WitnessFile::to_json)),
    ];
    for (path, content) in kept {
        let Some(path) = path else { continue };
        if let Err(exit) = keep(path, content.as_deref(), output) {
            return exit;
        }
    }
    match answer.outcome.answer {
        Verdict::Holds => Exit::Fine,
        Verdict::Violated(_) => Exit::Violated,
        Verdict::Unknown(_) => Exit::Unknown,
    }
}

/// What goes to standard output.
fn text(finding: &RobustFinding<'_>, single: bool, output: &Output) -> String {
    if output.format == Format::Json {
        return report::robust_json(finding) + "\n";
    }
    let mut text = report::robust_headline(finding, output.colour) + "\n";
    if !single || output.detail == Detail::Quiet {
        return text;
    }
    let all = output.detail == Detail::Verbose;
    if let Some((evidence, happens_before, cycle)) = finding.evidence {
        let local = if all { LocalSteps::Shown } else { LocalSteps::Folded };
        text.push('\n');
        text.push_str(&report::witness(&evidence, local, output.width, output.colour));
        text.push('\n');
        text.push_str(&report::cycle(&evidence, happens_before, cycle));
        text.push('\n');
    }
    text + &report::robust_details(finding, all) + "\n"
}

/// Writes a file if there is something to write.
fn keep(path: &Path, content: Option<&str>, output: &Output) -> Result<(), Exit> {
    match content {
        Some(content) => files::write(path, content).map_err(|error| {
            output.complain_about(&path.display().to_string(), error);
            Exit::Error
        }),
        None => {
            if output.detail != Detail::Quiet {
                let name = path.display().to_string();
                let name = report::visible(&name);
                output.complain(&format!("{name}: not written, there is no run to keep\n"));
            }
            Ok(())
        }
    }
}
