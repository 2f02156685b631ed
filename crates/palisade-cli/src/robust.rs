//! `palisade robust`: does the memory model add any behaviour at all? If so, shows a run and its cycle.

use crate::args::{Common, Format, RobustArgs, WeakModelsArg};
use crate::exit::Exit;
use crate::files::{self, InputFile, Reading};
use crate::html::{Page, subject};
use crate::limits::UserLimits;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::paths::keep_apart;
use crate::ran_out::{Backstop, Question};
use palisade::engine::Exhausted;
use palisade::report::{self, ModelRow, Report, html};
use palisade::trace::WitnessFile;
use palisade::{
    Answer, Ask, Diagnostic, EngineChoice, Input, Limits, RobustOptions, Robustness, Threads, TriangularRaces,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Runs the command.
pub fn run(args: &RobustArgs, common: &Common, output: &Output) -> Exit {
    let found = match files::find_for(&args.paths, &args.reading) {
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
    let files = [
        ("--dot", args.dot.is_some()),
        ("--witness", args.witness.is_some()),
        ("--html", args.html.is_some()),
    ];
    if let Some((option, _)) = files.into_iter().find(|(_, given)| *given && args.model == WeakModelsArg::All)
    {
        let message = format!("{option} needs one memory model, and `--model all` asks about all");
        let error = Diagnostic::error("one-model-only", message).help("ask about one model at a time");
        return output.refuse_about(option, error);
    }
    let single = found.len() == 1 && !files::is_folder(&args.paths[0]);
    if !single && (args.dot.is_some() || args.witness.is_some()) {
        let error =
            Diagnostic::error("witness-of-many", "--dot and --witness can keep the run of one program only");
        return output.refuse_about("--dot, --witness", error.help("ask about one file at a time"));
    }
    let limits = UserLimits::new(common);
    let mut worst = Exit::Fine;
    let mut page = Page::new(args.html.as_deref());
    for found in &found {
        let question = match args.triangular {
            true => Question::Triangular,
            false => Question::Robust(args.model.models()[0]),
        };
        let last_words = output.last_words(&found.path, question);
        let backstop = single.then(|| Backstop::new(&limits, last_words.clone()));
        let limits = limits.per_file(1);
        let exit = file(found, args, &limits, single, output, &mut page, backstop);
        worst = worst.worst(exit.unwrap_or_else(|what| {
            output.print(&last_words.say(what));
            Exit::Unknown
        }));
    }
    if page.write(output) { worst } else { Exit::Error }
}

/// Asks about one file. The result is also added to the page.
fn file(
    found: &InputFile,
    args: &RobustArgs,
    limits: &Limits,
    single: bool,
    output: &Output,
    page: &mut Page<'_>,
    backstop: Option<Backstop>,
) -> Result<Exit, Exhausted> {
    let reading = files::for_any_number(&args.reading, &args.machine);
    let mut input = match limits.within(|| files::read_for(found, &reading, &args.machine))? {
        Reading::Program(input) => input,
        Reading::Refused(refused) => {
            page.refuse(&refused.source, &refused.diagnostics);
            return Ok(output.refuse(&refused));
        }
        Reading::Skipped => return Ok(Exit::Fine),
    };
    output.warn(&input);
    // A C program itself says how many threads it has.
    let threads = match &input.c {
        Some(_) => Threads::Declared,
        None => args.machine.threads.unwrap_or_default(),
    };
    if args.model == WeakModelsArg::All && !args.triangular {
        let exit = all_models(&input, args, threads, limits, output);
        drop(backstop);
        return Ok(exit);
    }
    let options = RobustOptions {
        model: args.model.models()[0],
        interlocked: args.machine.interlocked.into(),
        threads,
        engine: EngineChoice::from(args.engine.as_str()),
        ..RobustOptions::default()
    };
    let meter = Meter::new(output.detail == Detail::Quiet);
    let watched = limits.clone().with_progress(meter.progress());
    let ask = AssertUnwindSafe(|| match args.triangular {
        true => palisade::c::triangular_input(&mut input, options.threads, &watched).map(Answered::Races),
        false => palisade::c::robust_input(&mut input, &options, &watched).map(Answered::Robust),
    });
    let answer = catch_unwind(ask);
    drop(meter);
    let name = input.source.name();
    // Printing takes as long as its readers need.
    drop(backstop);
    Ok(match answer {
        Ok(Ok(Answered::Robust(answer))) => print_and_keep(&input, &answer, args, single, output, page),
        Ok(Ok(Answered::Races(answer))) => print(&input, &answer, None, single, output, page),
        Ok(Err(error)) => output.refuse_about(name, Diagnostic::error(error.id(), error.to_string())),
        Err(_) => output.refuse_about(name, failed()),
    })
}

/// Asks about one file under all models with store buffers.
fn all_models(input: &Input, args: &RobustArgs, threads: Threads, limits: &Limits, output: &Output) -> Exit {
    let mut worst = Exit::Fine;
    let mut rows = Vec::new();
    for &model in args.model.models() {
        let options = RobustOptions {
            model,
            interlocked: args.machine.interlocked.into(),
            threads,
            engine: EngineChoice::from(args.engine.as_str()),
            ..RobustOptions::default()
        };
        let meter = Meter::new(output.detail == Detail::Quiet);
        let watched = limits.clone().with_progress(meter.progress());
        let mut input = input.clone();
        let ask = AssertUnwindSafe(|| palisade::c::robust_input(&mut input, &options, &watched));
        let answer = catch_unwind(ask);
        drop(meter);
        let name = input.source.name();
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                return output.refuse_about(name, Diagnostic::error(error.id(), error.to_string()));
            }
            Err(_) => return output.refuse_about(name, failed()),
        };
        let range = input.terms(answer.threads);
        let witness = answer.witness_file(&input);
        let finding = answer.finding(&input, range.as_deref(), witness.as_ref());
        worst = worst.worst(Exit::of(&answer.outcome.verdict));
        match output.format {
            Format::Json => output.print(&output.rendered(&finding)),
            Format::Text => rows.push(ModelRow::of(&finding)),
        }
    }
    if output.format == Format::Text {
        let whole = output.detail != Detail::Quiet;
        output.print(&report::models("robust", input.source.name(), &rows, whole, output.colour));
    }
    worst
}

/// Palisade panicked. The panic's message was printed before.
fn failed() -> Diagnostic {
    let error = Diagnostic::error("internal-error", "Palisade failed, and there is no verdict");
    error.help("this is a bug in Palisade: please report it with the program and the lines above")
}

/// The question and its answer.
enum Answered {
    Robust(Answer<Robustness>),
    Races(Answer<TriangularRaces>),
}

/// Prints the answer for one file, and adds it to the page.
fn print<Q: Ask>(
    input: &Input,
    answer: &Answer<Q>,
    witness: Option<&WitnessFile>,
    single: bool,
    output: &Output,
    page: &mut Page<'_>,
) -> Exit {
    let limits = input.terms(answer.threads);
    let finding = answer.finding(input, limits.as_deref(), witness);
    page.add(|number| html::answer(subject(input), &finding, &[], number));
    let text = match (output.format, single) {
        (Format::Text, false) => finding.headline(output.colour) + "\n",
        _ => output.rendered(&finding),
    };
    output.print(&text);
    Exit::of(&answer.outcome.verdict)
}

/// Prints the answer about the robustness of one file, and writes the requested files.
fn print_and_keep(
    input: &Input,
    answer: &Answer<Robustness>,
    args: &RobustArgs,
    single: bool,
    output: &Output,
    page: &mut Page<'_>,
) -> Exit {
    let witness = answer.witness_file(input);
    let exit = print(input, answer, witness.as_ref(), single, output, page);
    let evidence = answer.evidence(&input.source).zip(answer.cycle());
    let dot = evidence
        .map(|(evidence, (happens_before, cycle))| report::cycle_dot(&evidence, happens_before, cycle));
    let kept =
        [(args.dot.as_deref(), dot), (args.witness.as_deref(), witness.as_ref().map(WitnessFile::to_json))];
    for (path, content) in kept {
        let Some(path) = path else { continue };
        if let Err(exit) = keep(path, content.as_deref(), output) {
            return exit;
        }
    }
    exit
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
