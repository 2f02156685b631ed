//! `palisade completions` and `palisade man`: generated from the same definitions as the help.

use crate::args::{self, CompletionsArgs, ManArgs};
use crate::exit::Exit;
use crate::files;
use crate::output::Output;
use clap_mangen::Man;
use palisade::{Diagnostic, report};
use std::path::Path;

/// The command that clap adds.
const HELP: &str = "help";

/// Prints the completions for a shell.
pub fn completions(args: &CompletionsArgs, output: &Output) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "palisade", &mut script);
    output.print(&String::from_utf8_lossy(&script));
    Exit::Fine
}

/// Prints the manual page, or writes all of them.
pub fn man(args: &ManArgs, output: &Output) -> Exit {
    let mut command = args::command();
    command.build();
    match &args.folder {
        None => {
            output.print(&page(&command));
            Exit::Fine
        }
        Some(folder) => match write_pages(&command, folder) {
            Ok(count) => {
                output.print(&format!(
                    "{count} pages written to {}\n",
                    report::visible(&folder.display().to_string())
                ));
                Exit::Fine
            }
            Err((file, error)) => {
                output.complain_about(&file, error);
                Exit::Error
            }
        },
    }
}

/// The manual page of a command. The text after the options in its help becomes sections of the page.
fn page(command: &clap::Command) -> String {
    // Manual pages leave out what the short help hides. They also refer to a page for `palisade help`, which
    // does not exist.
    let mut command = command.clone().mut_args(|arg| arg.hide_short_help(false));
    if command.find_subcommand(HELP).is_some() {
        command = command.mut_subcommand(HELP, |help| help.hide(true));
    }
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.get_subcommands().any(|sub| !is_hidden(sub));
    // With the values of options and the names of arguments, as the help shows them.
    let usage = command.render_usage().to_string();
    let usage = usage.trim().trim_start_matches("Usage:").lines().map(|line| roff(line.trim()));
    let synopsis = format!(".SH SYNOPSIS\n.nf\n{}\n.fi\n", usage.collect::<Vec<_>>().join("\n"));
    let man = Man::new(command);
    let mut text = Vec::new();
    let mut render = || {
        man.render_title(&mut text)?;
        man.render_name_section(&mut text)?;
        text.extend_from_slice(synopsis.as_bytes());
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
        if has_commands { man.render_subcommands_section(&mut text) } else { Ok(()) }
    };
    render().expect("memory can be written");
    String::from_utf8_lossy(&text).into_owned() + &sections(&after)
}

/// Examples (indented), notes and exit codes, as sections in which line breaks are kept.
fn sections(after: &str) -> String {
    const EXAMPLES: &str = "EXAMPLES";
    const EXIT_STATUS: &str = "EXIT STATUS";
    let mut text = String::new();
    let mut section = "";
    for line in after.lines().filter(|line| !line.is_empty()) {
        let next = match line {
            "Examples:" => EXAMPLES,
            _ if line.starts_with("Exit codes:") => EXIT_STATUS,
            _ if section == EXIT_STATUS || line.starts_with("  ") => section,
            _ => "NOTES",
        };
        if next != section {
            let end = if section.is_empty() { "" } else { ".fi\n" };
            text += &format!("{end}.SH \"{next}\"\n.nf\n");
            section = next;
        }
        if line != "Examples:" {
            text += &(roff(line) + "\n");
        }
    }
    if text.is_empty() { text } else { text + ".fi\n" }
}

/// A line of text, escaped for the formatter.
fn roff(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

fn is_hidden(command: &clap::Command) -> bool {
    command.is_hide_set() || command.get_name() == HELP
}

/// A command and its subcommands.
fn all(command: &clap::Command) -> Vec<&clap::Command> {
    let below = command.get_subcommands().filter(|sub| !is_hidden(sub)).flat_map(all);
    std::iter::once(command).chain(below).collect()
}

fn write_pages(command: &clap::Command, folder: &Path) -> Result<usize, (String, Diagnostic)> {
    // If the folder cannot be created, writing to it fails below.
    let _ = std::fs::create_dir_all(folder);
    let pages = all(command);
    for command in &pages {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = folder.join(format!("{name}.1"));
        files::write(&path, &page(command)).map_err(|error| (path.display().to_string(), error))?;
    }
    Ok(pages.len())
}
