//! Memory models side by side: the verdict under each, and the outcomes under each.

use crate::answer::subject;
use crate::question::Question;
use palisade::report::{ModelRow, OutcomesFinding, html};
use palisade::{CheckOptions, Input, Limits, Listed, Listing, Model, Options, OutcomeList, Threads};
use std::time::Instant;

/// The verdict under each model. Each may take an equal share of the time that is left.
pub(crate) fn compare(question: &Question, input: &Input, limits: &Limits) -> Result<html::Entry, String> {
    let mut rows = Vec::new();
    for (index, model) in Model::ALL.into_iter().enumerate() {
        let models_left = (Model::ALL.len() - index) as u32;
        let share = (2..=models_left).rev().fold(limits.clone(), Limits::leaving_one_in);
        let options = CheckOptions { model, ..question.check()? };
        let start = Instant::now();
        let mut input = input.clone();
        let answer = share.within(|| palisade::c::check_input(&mut input, &options, &share));
        rows.push(match answer {
            Ok(answer) => {
                let answer = answer.map_err(|error| error.to_string())?;
                ModelRow::of(&answer.finding(&input, None, None))
            }
            Err(what) => ModelRow::ran_out(model, start.elapsed().as_secs_f64(), what.to_string()),
        });
    }
    Ok(html::models(subject(input), &rows))
}

/// The values that a program can end with, under each model, and a run to one of them if that is asked for.
pub(crate) fn outcomes(
    question: &Question,
    mut input: Input,
    limits: &Limits,
) -> Result<html::Entry, String> {
    let options = Options::default();
    let interlocked = CheckOptions::default().interlocked;
    let weakest = Model::ALL[Model::ALL.len() - 1];
    let unsettled = crate::settled(&mut input, weakest, Threads::Declared, limits)?;
    let listing = Listing::new(&input, Listed::Named).map_err(|diagnostics| {
        diagnostics.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; ")
    })?;
    let mut found = Vec::new();
    for model in Model::ALL {
        let mut outcomes =
            listing.outcomes(model, interlocked, &options, limits).map_err(|error| error.to_string())?;
        outcomes.missing = outcomes.missing.or_else(|| unsettled.clone());
        found.push(outcomes);
    }
    let list = OutcomeList::new(listing, found);
    let run = match question.outcome {
        None => None,
        Some(number) => {
            let row = number.checked_sub(1).and_then(|index| list.rows().get(index));
            let row = row.ok_or_else(|| format!("there is no outcome {number}"))?;
            let run = list.listing().run_to(&row.values, list.strongest(row), interlocked, &options, limits);
            let run = run.map_err(|error| error.to_string())?;
            Some((number, run.map_err(|reason| format!("the run is not shown: {reason}"))?))
        }
    };
    let run = run.as_ref().map(|(number, run)| (*number, run));
    let terms = input.terms(Threads::Declared);
    let finding = OutcomesFinding { warnings: &[], ..list.finding(&input, run, terms.as_deref()) };
    Ok(html::outcomes(subject(&input), &finding))
}
