//! `palisade show`: a program in another form.

use crate::args::{Form, ShowArgs};
use crate::exit::Exit;
use crate::files::{self, Found, Named, Reading};
use crate::output::Output;
use palisade::program::{Instantiation, dot, lower, print};

/// Instances of a template that may have any number of them: the drawing shows each role once anyway.
const ANY: u32 = 1;

/// Runs the command.
pub fn run(args: &ShowArgs, output: &Output) -> Exit {
    let found = Found { path: args.file.clone(), key: String::new(), named: Named::ByUser };
    let input = match files::read(&found, args.input, None) {
        Reading::Program(input) => input,
        Reading::Refused(refused) => {
            output.complain(&output.diagnostics(&refused.source, &refused.diagnostics));
            return Exit::Error;
        }
        Reading::Skipped => unreachable!("files that are named are not skipped"),
    };
    let text = match args.form {
        Form::Pal => print::print(&input.program),
        Form::Dot => dot::control_flow(&lower(&input.program, Instantiation { any: ANY, every: None })),
    };
    // A reader who has gone away has seen enough.
    let _ = output.print(&text);
    Exit::Fine
}
