//! `palisade outcomes`: all values that a program can end with.

use crate::args::{Common, OutcomesArgs};
use crate::exit::Exit;
use crate::files::{self, InputFile, Named, Reading};
use crate::limits::UserLimits;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::ran_out::{Backstop, Question};
use palisade::c::{Unsettled, settle};
use palisade::engine::peak_memory_bytes;
use palisade::report::{self, OutcomesFinding};
use palisade::{
    AskError, Diagnostic, Input, Limits, Listed, Listing, Options, OutcomeList, OutcomeRun, Reason, Refused,
    Threads,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the command.
pub fn run(args: &OutcomesArgs, common: &Common, output: &Output) -> Exit {
    let limits = UserLimits::new(common);
    let last_words = output.last_words(&args.file, Question::Outcomes(args.model.models()));
    let backstop = Backstop::new(&limits, last_words.clone());
    let limits = limits.per_file(1);
    let meter = Meter::new(output.detail == Detail::Quiet);
    let watched = limits.clone().with_progress(meter.progress());
    let listed = catch_unwind(AssertUnwindSafe(|| list(args, &watched)));
    drop(meter);
    let listed = match listed {
        Ok(Ok(listed)) => listed,
        Ok(Err(NoList::Refused(refused))) => return output.refuse(&refused),
        Ok(Err(NoList::Failed(name, error))) => {
            return output.refuse_about(&name, Diagnostic::error(error.id(), error.to_string()));
        }
        Ok(Err(NoList::RanOut(what))) => {
            drop(backstop);
            output.print(&last_words.say(what));
            return Exit::Unknown;
        }
        Err(_) => {
            let error = Diagnostic::error("internal-error", "Palisade failed, and there is no list");
            let help = "this is a bug in Palisade: please report it with the program and the lines above";
            return output.refuse_about(&args.file.display().to_string(), error.help(help));
        }
    };
    let text = limits.with_grace().within(|| {
        let finding = listed.finding();
        (output.rendered(&finding), report::Report::standing(&finding) == report::Standing::Good)
    });
    drop(backstop);
    match text {
        Ok((text, complete)) => {
            output.warn(&listed.input);
            output.print(&text);
            match &listed.run {
                Some((_, Err(reason))) => {
                    output.complain(&format!("the run is not shown: {reason}\n"));
                    Exit::Unknown
                }
                _ if complete => Exit::Fine,
                _ => Exit::Unknown,
            }
        }
        Err(what) => {
            output.print(&last_words.say(what));
            Exit::Unknown
        }
    }
}

/// Why there is no list.
enum NoList {
    Refused(Refused),
    Failed(String, AskError),
    RanOut(palisade::engine::Exhausted),
}

/// A list of outcomes.
struct List {
    input: Input,
    list: OutcomeList,
    /// The run that was requested, with the number of its outcome.
    run: Option<(usize, Result<OutcomeRun, Reason>)>,
    limits: Option<String>,
}

/// Reads the program and lists its outcomes.
fn list(args: &OutcomesArgs, limits: &Limits) -> Result<List, NoList> {
    let found = InputFile { path: args.file.clone(), key: String::new(), named: Named::ByUser };
    let mut reading = args.reading.clone();
    reading.c.keep_globals = true;
    let reading = limits.within(|| files::read(&found, &reading));
    let mut input = match reading.map_err(NoList::RanOut)? {
        Reading::Program(input) => *input,
        Reading::Refused(refused) => return Err(NoList::Refused(refused)),
        Reading::Skipped => unreachable!("files that are named are not skipped"),
    };
    let weakest = args.model.models().pop().expect("a choice of models has one");
    let unsettled = settle(&mut input, weakest, Threads::default(), limits);
    let unsettled = unsettled.map_err(|error| NoList::Failed(input.source.name().to_owned(), error))?;
    let listed = if args.all { Listed::All } else { Listed::Named };
    let listing = limits.within(|| Listing::new(&input, listed)).map_err(NoList::RanOut)?;
    let listing = listing
        .map_err(|diagnostics| NoList::Refused(Refused { source: input.source.clone(), diagnostics }))?;
    let failed = |error| NoList::Failed(input.source.name().to_owned(), error);
    let options = Options { max_buffer: args.max_buffer, ..Options::default() };
    let interlocked = args.interlocked.into();
    let mut outcomes = Vec::new();
    for model in args.model.models() {
        let mut found = listing.outcomes(model, interlocked, &options, limits).map_err(failed)?;
        found.missing = found.missing.or_else(|| unsettled.clone().map(Unsettled::reason));
        outcomes.push(found);
    }
    let list = OutcomeList::new(listing, outcomes);
    let rows = list.rows();
    let run = match args.run {
        None => None,
        Some(number) => {
            let number = number as usize;
            let Some(row) = rows.get(number - 1) else {
                let message = format!("there is no outcome {number}: the list has {}", rows.len());
                let error = Diagnostic::error("no-such-outcome", message);
                let help = "run `palisade outcomes` without --run to see the numbers";
                let diagnostics = vec![error.help(help)];
                return Err(NoList::Refused(Refused { source: input.source.clone(), diagnostics }));
            };
            let model = list.strongest(row);
            let run =
                list.listing().run_to(&row.values, model, interlocked, &options, limits).map_err(failed)?;
            Some((number, run))
        }
    };
    let mut limits: Vec<String> = input.terms(Threads::Declared).into_iter().collect();
    // Not all of the outcomes need be those of the machine, so it is said why.
    if input.language.is_machine_code() {
        limits.extend(input.circumstances().iter().map(|note| format!("where {note}")));
    }
    let limits = (!limits.is_empty()).then(|| limits.join(", "));
    Ok(List { input, list, run, limits })
}

impl List {
    fn finding(&self) -> OutcomesFinding<'_> {
        let run = self.run.as_ref().and_then(|(number, run)| Some((*number, run.as_ref().ok()?)));
        let finding = self.list.finding(&self.input, run, self.limits.as_deref());
        OutcomesFinding { peak_memory_bytes: peak_memory_bytes(), ..finding }
    }
}
