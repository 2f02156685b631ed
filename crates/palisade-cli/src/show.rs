//! `palisade show`: a program in another form.

use crate::args::{Form, Format, ShowArgs};
use crate::exit::Exit;
use crate::files::{self, Found, Named, Reading};
use crate::output::Output;
use clap::ValueEnum;
use palisade::program::{Instantiation, dot, lower, print};
use palisade::report;
use serde_json::json;

/// Instances of a template that may have any number of them: the drawing shows each role once anyway.
const ANY: u32 = 1;

/// Runs the command.
pub fn run(args: &ShowArgs, output: &Output) -> Exit {
    let found = Found { path: args.file.clone(), key: String::new(), named: Named::ByUser };
    let input = match files::read(&found, args.input, None) {
        Reading::Program(input) => input,
        Reading::Refused(refused) => return output.refuse(&refused),
        Reading::Skipped => unreachable!("files that are named are not skipped"),
    };
    let text = match args.form {
        Form::Pal => print::print(&input.program),
        Form::Dot => dot::control_flow(&lower(&input.program, Instantiation { any: ANY, every: None })),
    };
    let told = match output.format {
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
    };
    output.print(&told);
    Exit::Fine
}
