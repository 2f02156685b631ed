//! All memory models: a table per file, or with `--format json` the objects that each model alone would give.

use super::Request;
use super::one::{Checked, Portion, check_again, failure, panicked};
use crate::args::{CheckArgs, Format};
use crate::exit::Exit;
use crate::files::InputFile;
use crate::group::Role;
use crate::limits::UserLimits;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::ran_out::{Backstop, Question};
use palisade::report::{self, ModelRow};
use palisade::{CheckOptions, Diagnostic, Input, Model};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Options whose files hold the answer for one model.
pub(super) fn refused(args: &CheckArgs, output: &Output) -> Option<Exit> {
    let files = [
        ("--witness", args.witness.is_some()),
        ("--certificate", args.certificate.is_some()),
        ("--html", args.html.is_some()),
        ("--expect", args.expect.is_some()),
        ("--junit", args.junit.is_some()),
        ("--sarif", args.sarif.is_some()),
        ("--tsv", args.tsv.is_some()),
    ];
    let (option, _) = files.into_iter().find(|(_, given)| *given)?;
    let message = format!("{option} needs one memory model, and `--model all` asks about all");
    let error = Diagnostic::error("one-model-only", message).help("ask about one model at a time");
    Some(output.refuse_about(option, error))
}

/// Checks files under all models.
pub(super) fn run(found: &[InputFile], request: &Request<'_>, output: &Output) -> Exit {
    let mut worst = Exit::Fine;
    for file in found {
        if output.is_closed() {
            break;
        }
        let mut rows = Vec::new();
        let mut kept = None;
        let start = Instant::now();
        for (index, model) in Model::ALL.into_iter().enumerate() {
            let options = CheckOptions { model, ..request.options.clone() };
            // The time for a file is for all models. Each may take an equal share of what is left.
            let models_left = (Model::ALL.len() - index) as u32;
            let share = |timeout: Duration| timeout.saturating_sub(start.elapsed()) / models_left;
            let limits = UserLimits { timeout: request.limits.timeout.map(share), ..request.limits.clone() };
            let request = Request { options, limits, ..*request };
            let (row, exit) = one_model(file, &mut kept, &request, found.len() == 1, output);
            worst = worst.worst(exit);
            // Other models would say the same about a file that cannot be read.
            let Some(row) = row else {
                if request.role == Role::Follows {
                    continue;
                }
                break;
            };
            rows.push(row);
        }
        if output.format == Format::Text && rows.len() == Model::ALL.len() {
            let whole = output.detail != Detail::Quiet;
            let name = file.path.display().to_string();
            output.print(&report::models("check", &name, &rows, whole, output.colour));
        }
    }
    worst
}

/// Asks about one file under one model. Without a row, there is nothing to say about the file.
fn one_model(
    found: &InputFile,
    kept: &mut Option<Input>,
    request: &Request<'_>,
    single: bool,
    output: &Output,
) -> (Option<ModelRow>, Exit) {
    let start = Instant::now();
    let model = request.options.model;
    let limits = request.limits.per_file(1);
    let last_words = output.last_words(&found.path, Question::Check(model));
    let backstop =
        (single && request.role != Role::Follows).then(|| Backstop::new(&request.limits, last_words));
    let meter = Meter::new(output.detail == Detail::Quiet);
    let watched = limits.clone().with_progress(meter.progress());
    let checked = catch_unwind(AssertUnwindSafe(|| check_again(found, kept, request, &watched, output)));
    drop(meter);
    let name = found.path.display().to_string();
    match checked.unwrap_or_else(|_| Checked::Panicked(name.clone())) {
        Checked::Answered(answered) => {
            // What no run reaches is printed for the weakest model: no run reaches it under the others either. So is
            // what is left at the end of a run: a run under another model is one under this.
            let last = Model::ALL[Model::ALL.len() - 1];
            let about_runs = |warning: &Diagnostic| {
                answered.vacuity.contains(warning) || palisade::c::is_about_the_end(warning)
            };
            output.warn_where(&answered.input, |warning| match about_runs(warning) {
                true => model == last,
                false => model == Model::ALL[0],
            });
            if output.format == Format::Json {
                let text = answered.rendered(Portion::Everything, &limits, output);
                drop(backstop);
                output.print(&text);
            }
            (Some(ModelRow::of(&answered.finding())), answered.exit())
        }
        Checked::RanOut(last_words, what) => {
            drop(backstop);
            if output.format == Format::Json {
                output.print(&last_words.say(what));
            }
            let row = ModelRow::ran_out(model, start.elapsed().as_secs_f64(), what.to_string());
            (Some(row), Exit::Unknown)
        }
        Checked::Refused(refused) => (None, output.refuse(&refused)),
        Checked::Skipped | Checked::TookPart => (None, Exit::Fine),
        Checked::Failed(name, error) => (None, output.refuse_about(&name, failure(&error))),
        Checked::Panicked(name) => (None, output.refuse_about(&name, panicked())),
    }
}
