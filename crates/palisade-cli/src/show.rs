//! `palisade show`: a program in another form, or a picture of a run.

use crate::args::{Common, Form, Format, ReadingArgs, ShowArgs};
use crate::exit::Exit;
use crate::files::{self, Reading};
use crate::limits::UserLimits;
use crate::output::Output;
use crate::ran_out::{Backstop, Question};
use crate::replay;
use clap::ValueEnum;
use palisade::program::{Instantiation, dot, lower, lower_with, print};
use palisade::trace::{WitnessError, WitnessFile, text_hash};
use palisade::{Diagnostic, Evidence, Input, Limits, Refused, Source, report};
use serde_json::json;
use std::path::Path;

/// The number of instances of a template whose number of instances is not fixed. The drawing shows each role
/// only once anyway.
const ANY: u32 = 1;

/// Runs the command.
pub fn run(args: &ShowArgs, common: &Common, output: &Output) -> Exit {
    let limits = UserLimits::new(common);
    let last_words = output.last_words(&args.file, Question::Other("show"));
    let backstop = Backstop::new(&limits, last_words.clone());
    let work = limits.per_file(1);
    let shown = work.within(|| show(args, &work, output));
    drop(backstop);
    match shown {
        Ok(Ok(text)) => {
            output.print(&text);
            Exit::Fine
        }
        Ok(Err(refused)) => output.refuse(&refused),
        Err(what) => {
            output.print(&last_words.say(what));
            Exit::Unknown
        }
    }
}

/// The program in another form.
fn show(args: &ShowArgs, limits: &Limits, output: &Output) -> Result<String, Refused> {
    if args.form == Form::Svg
        && let Some(shown) = drawn_run(args, limits, output)?
    {
        return Ok(shown);
    }
    if args.form != Form::Svg && args.input.is_none() {
        refuse_run(&args.file)?;
    }
    let input = files::read_named(
        &args.file,
        &ReadingArgs {
            input: args.input,
            int_range: None,
            constants: args.constants.clone(),
            several: false,
            c: args.c.clone(),
        },
    )?;
    let text = match args.form {
        Form::Pal => print::print(&input.program),
        Form::Dot => dot::control_flow(&lower(&input.program, Instantiation { any: ANY, every: None })),
        Form::Svg => picture(&input)?,
    };
    Ok(shown(args, output, input.source.name(), text))
}

/// A text as it is printed.
fn shown(args: &ShowArgs, output: &Output, file: &str, text: String) -> String {
    match output.format {
        Format::Text => text,
        Format::Json => {
            let form = args.form.to_possible_value().expect("no form is hidden");
            let record = json!({
                "schema_version": report::SCHEMA_VERSION,
                "command": "show",
                "file": file,
                "as": form.get_name(),
                "text": text,
            });
            record.to_string() + "\n"
        }
    }
}

/// The control flow of a program as a picture.
fn picture(input: &Input) -> Result<String, Refused> {
    let system = lower(&input.program, Instantiation { any: ANY, every: None });
    report::svg::program(input.source.name(), &system).ok_or_else(|| {
        let error = Diagnostic::error("too-large-to-draw", "the program is too large for a picture")
            .help("`--as dot` has no limit; Graphviz draws it");
        Refused { source: input.source.clone(), diagnostics: vec![error] }
    })
}

/// Only `--as svg` takes the run of a witness file.
fn refuse_run(path: &Path) -> Result<(), Refused> {
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    if !is_json || !files::text(path).is_ok_and(|text| WitnessFile::from_json(&text).is_ok()) {
        return Ok(());
    }
    let error = Diagnostic::error("not-a-program", "this is a run, not a program")
        .help("`--as svg` draws it, and `palisade replay` replays it");
    Err(Refused { source: Source::new(path.display().to_string(), ""), diagnostics: vec![error] })
}

/// The run of a witness file as a picture, or `None` if the file is not one. The run is replayed first.
fn drawn_run(args: &ShowArgs, limits: &Limits, output: &Output) -> Result<Option<String>, Refused> {
    if args.file.extension().is_none_or(|extension| extension != "json") {
        return Ok(None);
    }
    let name = args.file.display().to_string();
    let refuse =
        |error: Diagnostic| Refused { source: Source::new(name.as_str(), ""), diagnostics: vec![error] };
    let bad = |message: String| refuse(Diagnostic::error("bad-witness", message));
    let text = files::text(&args.file).map_err(refuse)?;
    let witness = WitnessFile::from_json(&text).map_err(|error| refuse(replay::not_a_witness(&error)))?;
    let recorded = replay::recorded(&witness).map_err(refuse)?;
    let path = recorded.path(&args.file, None, |text| witness.program.hash == text_hash(text));
    let input = match recorded.read(path, None).map_err(bad)? {
        Reading::Program(input) => input,
        Reading::Refused(refused) => return Err(refused),
        Reading::Skipped => unreachable!("files that are named are not skipped"),
    };
    let system = lower_with(&input.program, witness.instantiation(), witness.waits());
    let invalid = |error: WitnessError| bad(format!("{error}; `palisade replay` says more"));
    let replay =
        witness.verify(&system).and_then(|replay| replay::out_of_reach(&witness, &system, replay, limits));
    let replay = replay.map_err(invalid)?;
    let machine = witness.machine(&system).map_err(invalid)?;
    let run = witness.run(&system).map_err(invalid)?;
    let evidence =
        Evidence { source: &input.source, addresses: input.addresses(), machine, run: &run, replay: &replay };
    let picture = report::svg::run(&evidence).ok_or_else(|| {
        refuse(
            Diagnostic::error("too-large-to-draw", "the run is too long for a picture")
                .help("`palisade replay --html run.html` shows it as a page"),
        )
    })?;
    Ok(Some(shown(args, output, &name, picture)))
}
