//! `palisade show`: a program in another form.

use crate::args::{Common, Form, Format, ReadingArgs, ShowArgs};
use crate::exit::Exit;
use crate::files;
use crate::limits::UserLimits;
use crate::output::Output;
use crate::ran_out::{Backstop, Question};
use clap::ValueEnum;
use palisade::program::{Instantiation, dot, lower, print};
use palisade::{Refused, report};
use serde_json::json;

/// The number of instances of a template whose number of instances is not fixed. The drawing shows each role
/// only once anyway.
const ANY: u32 = 1;

/// Runs the command.
pub fn run(args: &ShowArgs, common: &Common, output: &Output) -> Exit {
    let limits = UserLimits::new(common);
    let last_words = output.last_words(&args.file, Question::Other("show"));
    let backstop = Backstop::new(&limits, last_words.clone());
    let shown = limits.per_file(1).within(|| show(args, output));
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
fn show(args: &ShowArgs, output: &Output) -> Result<String, Refused> {
    let input = files::read_named(
        &args.file,
        &ReadingArgs { input: args.input, int_range: None, c: args.c.clone() },
    )?;
    let text = match args.form {
        Form::Pal => print::print(&input.program),
        Form::Dot => dot::control_flow(&lower(&input.program, Instantiation { any: ANY, every: None })),
    };
    Ok(match output.format {
        Format::Text => text,
        Format::Json => {
            let form = args.form.to_possible_value().expect("no form is hidden");
            let record = json!({
                "schema_version": report::SCHEMA_VERSION,
                "command": "show",
                "file": input.source.name(),
                "as": form.get_name(),
                "text": text,
            });
            record.to_string() + "\n"
        }
    })
}
