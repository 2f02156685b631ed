//! The answer to `fences`, and the program with each set of fences, to be applied in the editor.

use crate::answer::{Globals, ReadC, subject};
use crate::question::Question;
use palisade::c::FilePatch;
use palisade::report::html;
use palisade::{
    Changes, Confirm, FencesOptions, Goal, Input, InputLanguage, Limits, Model, Reason, Source, Threads,
    Which, WriteError,
};

/// The answer, and for each set the text of the program with its fences. A text is `None` if it could not be confirmed
/// that the program in it is correct.
pub(crate) fn fences(
    question: &Question,
    input: &mut Input,
    limits: &Limits,
    read_c: Option<&ReadC>,
) -> Result<(html::Entry, Vec<Option<String>>), String> {
    let mut options = question.fences()?;
    prepare(input, &mut options, limits)?;
    let confirm = |patches: &[FilePatch], limits: &Limits| match read_c {
        Some(read_c) => confirm_c(&options, input.source.name(), patches, limits, read_c),
        None => Err(WriteError::Compiled),
    };
    let confirm: Option<Confirm<'_>> =
        match input.language == InputLanguage::C && options.which == Which::Cheapest {
            true => Some(&confirm),
            false => None,
        };
    let mut answer = palisade::fences_confirmed(input, &options, confirm, None, limits)
        .map_err(|error| error.to_string())?;
    // The peak of this process is not meaningful for one run among many.
    answer.peak_memory_bytes = None;
    let terms = input.terms(options.check.threads);
    let finding = answer.finding(input, terms.as_deref());
    let set = |index: usize| match input.language {
        InputLanguage::C => {
            let patches = answer.patches(input, index).ok()?;
            confirm_c(&options, input.source.name(), &patches, limits, read_c?).ok()?;
            patches.first().map(|patch| patch.after.clone())
        }
        _ => answer.written(input, index, limits).ok(),
    };
    let texts = finding.sets.iter().enumerate().map(|(index, fences)| match fences.is_empty() {
        true => None,
        false => set(index),
    });
    let texts = texts.collect();
    Ok((html::fences(subject(input), &finding, 0), texts))
}

/// As for any question about a C program: room for its runs is found, and whether it can get stuck is stated.
fn prepare(input: &mut Input, options: &mut FencesOptions, limits: &Limits) -> Result<(), String> {
    if input.c.is_none() {
        return Ok(());
    }
    (options.check.threads, options.changes, options.widen) = (Threads::Declared, Changes::Any, true);
    // A robust program behaves as it does under SC. Fences never add behaviour.
    let model = if options.goal == Goal::Robustness { Model::Sc } else { options.check.model };
    if let Some(reason) = crate::settled(input, model, Threads::Declared, limits)? {
        return Err(reason.to_string());
    }
    if options.goal == Goal::Safety
        && let Ok(deadlocks) = palisade::c::state_finish(input)
    {
        options.check.deadlocks = deadlocks;
    }
    Ok(())
}

/// Compiles a C program with changes, and checks it again.
fn confirm_c(
    options: &FencesOptions,
    name: &str,
    patches: &[FilePatch],
    limits: &Limits,
    read_c: &ReadC,
) -> Result<(), WriteError> {
    let unknown = |why: String| WriteError::Unknown(Reason::Observed(why));
    let [patch] = patches else { return Err(unknown("several files would change".to_owned())) };
    let again = limits.within(|| read_c(Source::new(name, patch.after.as_str()), Globals::AsNeeded));
    let again = again.map_err(|what| WriteError::Unknown(Reason::Exhausted(what)))?;
    let mut again = again.map_err(WriteError::NotReadable)?;
    let mut same = options.clone();
    prepare(&mut again, &mut same, limits).map_err(unknown)?;
    if same.check.deadlocks != options.check.deadlocks {
        return Err(unknown("whether it can finish is another question with the fences".to_owned()));
    }
    options.confirm(&again, limits)
}
