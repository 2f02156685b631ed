//! The program with its fences: as a file, or as a patch.

use crate::args::FencesArgs;
use crate::c::read_patched;
use crate::files::{self, InputFile, Reading};
use palisade::c::{FilePatch, Unsettled, settle, state_finish};
use palisade::report;
use palisade::{
    Deadlocks, Diagnostic, FencesAnswer, FencesOptions, Goal, Input, InputLanguage, Limits, Model, Reason,
    WriteError,
};
use std::path::{Component, Path};

/// The main file, and others that change. The program with the changes was read and checked again.
pub fn confirmed(
    found: &InputFile,
    args: &FencesArgs,
    input: &Input,
    answer: &FencesAnswer,
    limits: &Limits,
) -> Result<Vec<FilePatch>, WriteError> {
    let patches = answer.patches(input, 0)?;
    if input.c.is_none() {
        answer.written(input, 0, limits)?;
        return Ok(match input.source.files().len() {
            1 => patches,
            _ => patches.into_iter().map(as_on_disk).collect(),
        });
    }
    if answer.confirmed.is_none() {
        confirm(found, args, input.language, &answer.options, &patches, limits)?;
    }
    Ok(patches.into_iter().map(as_on_disk).collect())
}

/// Compiles a C program with changes, and checks it again.
pub fn confirm(
    found: &InputFile,
    args: &FencesArgs,
    language: InputLanguage,
    options: &FencesOptions,
    patches: &[FilePatch],
    limits: &Limits,
) -> Result<(), WriteError> {
    let mut again = match read_patched(found, language, &args.reading, patches) {
        Reading::Program(again) => again,
        Reading::Refused(refused) => return Err(WriteError::NotReadable(refused)),
        Reading::Skipped => unreachable!("files that are named are not skipped"),
    };
    let check = &options.check;
    let model = if options.goal == Goal::Robustness { Model::Sc } else { check.model };
    match settle(&mut again, model, check.threads, limits).map_err(WriteError::Ask)? {
        None => {}
        Some(Unsettled::Exceeded(reason) | Unsettled::Unknown(reason)) => {
            return Err(WriteError::Unknown(reason));
        }
    }
    if options.goal == Goal::Safety {
        let stated = state_finish(&mut again);
        if *stated.as_ref().unwrap_or(&Deadlocks::IfStated) != check.deadlocks {
            let why = stated.err().unwrap_or("whether it can finish is another question with the fences");
            return Err(WriteError::Unknown(Reason::Observed(why.to_owned())));
        }
    }
    options.confirm(&again, limits)
}

/// A last line without an end got one when the file was read.
pub fn as_on_disk(patch: FilePatch) -> FilePatch {
    match files::text(Path::new(&patch.name)) {
        Ok(text) if patch.name != "-" && !text.ends_with('\n') && patch.before.ends_with('\n') => {
            let after = patch.after.strip_suffix('\n').unwrap_or(&patch.after).to_owned();
            FilePatch { before: text, after, ..patch }
        }
        _ => patch,
    }
}

/// The changes as a unified diff.
pub fn unified(patches: &[FilePatch]) -> String {
    let mut text = String::new();
    for patch in patches.iter().filter(|patch| patch.before != patch.after) {
        let name = relative(&patch.name);
        let (old, new) = (in_patch(&format!("a/{name}")), in_patch(&format!("b/{name}")));
        text += &report::unified_diff(&patch.before, &patch.after, (&old, &new));
    }
    text
}

/// A name in a line `---` or `+++`. One with a space ends with a tab, unless it is quoted.
fn in_patch(name: &str) -> String {
    let quoted = report::patch_name(name).into_owned();
    if quoted == name && name.contains(' ') { quoted + "\t" } else { quoted }
}

/// The name of a file as a patch has it: from the current folder if the file is below it, else from the root.
fn relative(name: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let is_above = Path::new(name).components().any(|part| part == Component::ParentDir);
    let path = match std::fs::canonicalize(name) {
        Ok(whole) if is_above => whole,
        _ => Path::new(name).to_owned(),
    };
    path.strip_prefix(here).unwrap_or(&path).display().to_string().trim_start_matches('/').to_owned()
}

/// Writes the program to a file.
pub fn write(path: &Path, input: &Input, patches: &[FilePatch]) -> Result<(), Diagnostic> {
    let is_main = |patch: &&FilePatch| patch.name == input.source.name();
    let changed: Vec<&FilePatch> = patches.iter().filter(|patch| patch.before != patch.after).collect();
    match patches.iter().find(is_main) {
        Some(main) if changed.iter().all(is_main) => files::write(path, &main.after),
        _ => {
            let names: Vec<&str> = changed.iter().map(|patch| patch.name.as_str()).collect();
            let message = format!("not written: the fences go into {}", names.join(" and "));
            Err(Diagnostic::error("several-files", message).help("use --diff for a patch"))
        }
    }
}
