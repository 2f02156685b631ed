//! `palisade completions` and `palisade man`: made from the same definitions as the help.

use crate::args::{CompletionsArgs, ManArgs, Palisade};
use crate::exit::Exit;
use crate::files;
use crate::output::Output;
use clap::CommandFactory;
use clap_mangen::Man;
use palisade::Diagnostic;
use std::path::Path;

/// Prints the completions for a shell.
pub fn completions(args: &CompletionsArgs, output: &Output) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Palisade::command(), "palisade", &mut script);
    // A reader who has gone away has seen enough.
    let _ = output.print(&String::from_utf8_lossy(&script));
    Exit::Fine
}

/// Prints the manual page, or writes all of them.
pub fn man(args: &ManArgs, output: &Output) -> Exit {
    let mut command = Palisade::command();
    command.build();
    match &args.folder {
        None => {
            let _ = output.print(&page(&command));
            Exit::Fine
        }
        Some(folder) => match write_pages(&command, folder) {
            Ok(count) => {
                let _ = output.print(&format!("{count} pages written to {}\n", folder.display()));
                Exit::Fine
            }
            Err((file, error)) => {
                output.complain_about(&file, error);
                Exit::Error
            }
        },
    }
}

fn page(command: &clap::Command) -> String {
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text).expect("memory can be written");
    String::from_utf8_lossy(&text).into_owned()
}

fn write_pages(command: &clap::Command, folder: &Path) -> Result<usize, (String, Diagnostic)> {
    // A folder that cannot be made is one that cannot be written to.
    let _ = std::fs::create_dir_all(folder);
    let mut count = 0;
    let pages = std::iter::once(command).chain(command.get_subcommands().filter(|sub| !sub.is_hide_set()));
    for command in pages {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let path = folder.join(format!("{name}.1"));
        files::write(&path, &page(command)).map_err(|error| (path.display().to_string(), error))?;
        count += 1;
    }
    Ok(count)
}
