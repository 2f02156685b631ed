//! The files that a command reads and those that it writes must differ, so that a name typed twice destroys
//! nothing.

use crate::exit::Exit;
use crate::output::Output;
use palisade::Diagnostic;
use palisade_files::Identity;
use std::path::Path;

/// The option that may name a file that is also read: the program with fences may replace the program.
const IN_PLACE: &str = "--write";

/// Refuses outputs that are also inputs, and two outputs to the same file. Outputs come with their options.
pub fn keep_apart<'a>(
    inputs: impl IntoIterator<Item = &'a Path>,
    outputs: &[(&'static str, Option<&Path>)],
    output: &Output,
) -> Result<(), Exit> {
    match clash(inputs, outputs) {
        Some((path, problem)) => Err(output.refuse_about(&path, problem)),
        None => Ok(()),
    }
}

/// An output that is also an input or another output, and what is wrong with that.
pub fn clash<'a>(
    inputs: impl IntoIterator<Item = &'a Path>,
    outputs: &[(&'static str, Option<&Path>)],
) -> Option<(String, Diagnostic)> {
    let given = outputs.iter().filter_map(|&(option, path)| Some((option, path?)));
    let written: Vec<(&str, &Path, Identity)> =
        given.map(|(option, path)| (option, path, Identity::of(path))).collect();
    if written.is_empty() {
        return None;
    }
    let nothing = Identity::of(Path::new("/dev/null"));
    for (index, (option, path, identity)) in written.iter().enumerate() {
        let earlier = written[..index].iter().find(|(_, _, other)| other == identity && *other != nothing);
        if let Some((other, ..)) = earlier {
            let message = format!("{other} and {option} name the same file");
            let help = "give each of them a file of its own; nothing was written";
            return Some((path.display().to_string(), Diagnostic::error("same-output", message).help(help)));
        }
    }
    for input in inputs {
        let standard = input == Path::new("-");
        let read = if standard { Identity::of_standard_input() } else { Some(Identity::of(input)) };
        // Terminals and pipes can be both read and written, because nothing is replaced.
        let is_stream = !standard && input.metadata().is_ok_and(|metadata| !metadata.is_file());
        let Some(read) = read.filter(|_| !is_stream) else { continue };
        let same = written.iter().find(|(option, _, identity)| *identity == read && *option != IN_PLACE);
        if let Some((option, path, _)) = same {
            let message = format!("{option} would overwrite an input file");
            let help = "choose another file for it; nothing was written";
            return Some((
                path.display().to_string(),
                Diagnostic::error("output-is-input", message).help(help),
            ));
        }
    }
    None
}
