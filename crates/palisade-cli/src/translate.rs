//! `palisade translate`: writes a program for SC that does what the given program does under TSO within a
//! bound, in the language of another tool.

use crate::args::{Common, Format, TargetArg, TranslateArgs};
use crate::exit::Exit;
use crate::files;
use crate::limits::UserLimits;
use crate::output::Output;
use crate::paths::keep_apart;
use crate::ran_out::{Backstop, Question};
use palisade::export::{Export, Target};
use palisade::program::written::{Count, Program};
use palisade::{Diagnostic, Input, Refused, report};
use serde_json::json;

/// Runs the command.
pub fn run(args: &TranslateArgs, common: &Common, output: &Output) -> Exit {
    if let Err(exit) = keep_apart([args.file.as_path()], &[("--output", args.output.as_deref())], output) {
        return exit;
    }
    let limits = UserLimits::new(common);
    let last_words = output.last_words(&args.file, Question::Other("translate"));
    let backstop = Backstop::new(&limits, last_words.clone());
    let translated = limits.per_file(1).within(|| read_and_translate(args, output));
    drop(backstop);
    match translated {
        Ok(Ok((input, text))) => print(args, &input, text, output),
        Ok(Err(refused)) => output.refuse(&refused),
        Err(what) => {
            output.print(&last_words.say(what));
            Exit::Unknown
        }
    }
}

fn read_and_translate(args: &TranslateArgs, output: &Output) -> Result<(Box<Input>, String), Refused> {
    let input = files::read_named(&args.file, &args.reading)?;
    output.warn(&input);
    match translate(args, &input) {
        Ok(text) => Ok((input, text)),
        Err(diagnostics) => Err(Refused { source: input.source, diagnostics }),
    }
}

fn print(args: &TranslateArgs, input: &Input, text: String, output: &Output) -> Exit {
    if let Some(path) = &args.output
        && let Err(error) = files::write(path, &text)
    {
        return output.refuse_about(&path.display().to_string(), error);
    }
    let printed = match (output.format, &args.output) {
        (Format::Json, _) => record(args, input, &text),
        (Format::Text, Some(_)) => String::new(),
        (Format::Text, None) => text,
    };
    output.print(&printed);
    Exit::Fine
}

fn translate(args: &TranslateArgs, input: &Input) -> Result<String, Vec<Diagnostic>> {
    let is_translated = args.rounds.is_some() || args.age.is_some();
    let renumbered = args.threads.is_some_and(|number| input.program.has_other_identities(number));
    if renumbered || is_translated && input.program.has_open_identities() {
        // A translated program does not know that no two processes have the same identity.
        let Some(number) = args.threads else { return Err(vec![open_identities(&input.program)]) };
        let program = with_fixed_numbers(&input.program, number);
        let diagnostics = palisade::program::validate(&program);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(diagnostics);
        }
        return translate_to(args, input, &program, (target_of(args), None));
    }
    let (target, threads) = match args.to {
        TargetArg::Pal if args.threads.is_some() => {
            let message = "a .pal program declares its own number of processes";
            let error = Diagnostic::error("threads-of-pal", message);
            return Err(vec![error.help("leave out --threads, or translate to c or promela")]);
        }
        TargetArg::Pal => (Target::Pal, None),
        TargetArg::C | TargetArg::Promela => (target_of(args), args.threads),
    };
    translate_to(args, input, &input.program, (target, threads))
}

fn target_of(args: &TranslateArgs) -> Target {
    match args.to {
        TargetArg::Pal => Target::Pal,
        TargetArg::C => Target::C,
        TargetArg::Promela => Target::Promela,
    }
}

fn open_identities(program: &Program) -> Diagnostic {
    let template = program.templates.iter().find(|template| template.count == Count::Any);
    let template = template.expect("the number of processes with identities is open");
    let message = format!("the number of `{}` processes is not fixed", template.name);
    let error = Diagnostic::error("any-number", message).at(template.origin.0, "");
    error.help("set the number with --threads N")
}

/// The program with this number of each kind of process of which there may be any number.
fn with_fixed_numbers(program: &Program, number: u32) -> Program {
    let mut program = program.with_identities(number);
    for template in program.templates.iter_mut().filter(|template| template.count == Count::Any) {
        template.count = Count::Fixed(number);
    }
    program
}

fn translate_to(
    args: &TranslateArgs,
    input: &Input,
    program: &Program,
    (target, threads): (Target, Option<u32>),
) -> Result<String, Vec<Diagnostic>> {
    let translated: Program = match (args.rounds, args.age) {
        (Some(rounds), _) => palisade::translate_rounds(program, rounds)?,
        (None, Some(age)) => palisade::translate_age(program, age)?,
        (None, None) => program.clone(),
    };
    let heading = heading(args, input);
    Export { program: &translated, source: &input.source, heading: &heading, threads }.to(target)
}

/// The text of the first comment.
fn heading(args: &TranslateArgs, input: &Input) -> String {
    // A line break in a name would end the comment.
    let name = report::visible(input.source.name());
    let rounds = |number: u32| format!("{number} round{}", if number == 1 { "" } else { "s" });
    match (args.rounds, args.age) {
        (Some(number), _) => {
            format!("{name} under TSO with at most {} per process, as a program for SC.", rounds(number))
        }
        (None, Some(number)) => format!(
            "{name} under TSO with stores that stay in their buffers for at most {}, as a program for SC.",
            rounds(number)
        ),
        (None, None) => format!("{name} under SC."),
    }
}

fn record(args: &TranslateArgs, input: &Input, text: &str) -> String {
    let mut record = json!({
        "schema_version": report::SCHEMA_VERSION,
        "command": "translate",
        "file": input.source.name(),
        "to": match args.to {
            TargetArg::Pal => "pal",
            TargetArg::C => "c",
            TargetArg::Promela => "promela",
        },
    });
    if let Some(rounds) = args.rounds {
        record["rounds"] = rounds.into();
    }
    if let Some(age) = args.age {
        record["age"] = age.into();
    }
    match &args.output {
        Some(path) => record["output"] = path.display().to_string().into(),
        None => record["text"] = text.into(),
    }
    record.to_string() + "\n"
}
