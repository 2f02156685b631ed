//! One file: the verdict, the run, and how the answer was found.

use super::Request;
use super::machine::{self, Expected, Remark};
use crate::args::Format;
use crate::exit::Exit;
use crate::files::{self, InputFile, Reading};
use crate::group::{self, Role};
use crate::html::Page;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::ran_out::{Backstop, LastWords, Question};
use palisade::engine::Exhausted;
use palisade::report::html::{self, Entry};
use palisade::report::{self, Colour, Finding, LocalSteps, Report};
use palisade::trace::WitnessFile;
use palisade::{
    Answer, AskError, CheckOptions, Diagnostic, Input, Limits, Note, Reason, Refused, Threads, Verdict,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

/// The result for a file.
pub(super) enum Checked {
    /// An answer.
    Answered(Box<Answered>),
    /// The file was refused.
    Refused(Refused),
    /// The file is not a program and was not meant to be one.
    Skipped,
    /// Time or memory ran out before anything could be said about the file.
    RanOut(LastWords, Exhausted),
    /// This process took part in the work. Another one has the answer.
    TookPart,
    /// Palisade itself has a bug.
    Failed(String, AskError),
    /// Palisade panicked.
    Panicked(String),
}

/// An answer, with the program that it is about.
pub(super) struct Answered {
    pub(super) input: Input,
    pub(super) answer: Answer,
    /// Whether the program states a property, as far as that matters for the answer. Without one, only faults
    /// can go wrong.
    pub(super) has_property: bool,
    /// Warnings about what no run reaches. They are among those of the input, too.
    pub(super) vacuity: Vec<Diagnostic>,
    witness: Option<WitnessFile>,
    limits: Option<String>,
}

/// Reads and checks a file within limits.
pub(super) fn check(found: &InputFile, request: &Request<'_>, limits: &Limits, output: &Output) -> Checked {
    within(found, request, limits, output, || match read(found, request) {
        Ok(input) => answer(input, request, limits),
        Err(why) => why,
    })
}

/// Checks a file within limits that is read only the first time, and kept after that.
pub(super) fn check_again(
    found: &InputFile,
    kept: &mut Option<Input>,
    request: &Request<'_>,
    limits: &Limits,
    output: &Output,
) -> Checked {
    within(found, request, limits, output, || {
        let input = match kept {
            Some(input) => input.clone(),
            None => match read(found, request) {
                Ok(input) => kept.insert(input).clone(),
                Err(why) => return why,
            },
        };
        answer(input, request, limits)
    })
}

fn within(
    found: &InputFile,
    request: &Request<'_>,
    limits: &Limits,
    output: &Output,
    check: impl FnOnce() -> Checked,
) -> Checked {
    let last_words = output.last_words(&found.path, Question::Check(request.options.model));
    limits.within(check).unwrap_or_else(|what| Checked::RanOut(last_words, what))
}

/// Reads a file, or says why there is nothing to check.
fn read(found: &InputFile, request: &Request<'_>) -> Result<Input, Checked> {
    let reading = files::for_any_number(&request.args.reading, &request.args.machine);
    match files::read_for(found, &reading, &request.args.machine) {
        Reading::Program(input) => Ok(*input),
        Reading::Refused(refused) => Err(Checked::Refused(refused)),
        Reading::Skipped => Err(Checked::Skipped),
    }
}

pub(super) fn answer(mut input: Input, request: &Request<'_>, limits: &Limits) -> Checked {
    // A C program itself says how many threads it has.
    let options = match &input.c {
        Some(_) => CheckOptions { threads: Threads::Declared, ..request.options.clone() },
        None => request.options.clone(),
    };
    let answer = match group::take_part(|| palisade::c::check_input(&mut input, &options, limits)) {
        Ok(_) if request.role == Role::Follows => return Checked::TookPart,
        Ok(mut answer) => {
            // The loss of a process stops what this one does alone.
            if let &Verdict::Unknown(Reason::Exhausted(what)) = &answer.outcome.verdict {
                answer.outcome.verdict = Verdict::Unknown(group::reason(what));
            }
            answer
        }
        Err(error) => return Checked::Failed(input.source.name().to_owned(), error),
    };
    let answer = match answer.compared_with_sc(&input, &options, limits) {
        Ok(answer) => answer,
        Err(error) => return Checked::Failed(input.source.name().to_owned(), error),
    };
    let answer = match request.args.shortest {
        true => match answer.with_shortest_run(&mut input, &options, limits) {
            Ok(answer) => answer,
            Err(error) => return Checked::Failed(input.source.name().to_owned(), error),
        },
        false => answer,
    };
    // If a run breaks the program, a remark about missing properties is not needed.
    let graced = limits.clone().with_grace();
    let no_property = match answer.outcome.verdict {
        Verdict::Violated(_) => None,
        _ if request.args.deadlock => None,
        // If there is no time for the remark, it is left out: the answer matters more.
        _ => graced.within(|| palisade::no_property(&input)).unwrap_or(None),
    };
    let has_property = no_property.is_none();
    input.warnings.extend(no_property);
    let vacuity = answer.vacuity(&input);
    input.warnings.extend(vacuity.iter().cloned());
    let witness = graced.within(|| answer.witness_file(&input)).unwrap_or(None);
    let limits = input.terms(answer.threads);
    Checked::Answered(Box::new(Answered { input, answer, has_property, vacuity, witness, limits }))
}

/// How much is printed about a file on standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Portion {
    /// The first line.
    Headline,
    /// The first line, the run, the counters.
    Everything,
}

impl Answered {
    pub(super) fn finding(&self) -> Finding<'_> {
        self.answer.finding(&self.input, self.limits.as_deref(), self.witness.as_ref())
    }

    /// The answer as an entry of a web page.
    pub(super) fn html(&self, notes: &[Note], number: usize) -> Entry {
        html::answer(crate::html::subject(&self.input), &self.finding(), notes, number)
    }

    /// The text for standard output.
    ///
    /// If the limits are reached while a run is being put into words, the run is left out.
    pub(super) fn rendered(&self, portion: Portion, limits: &Limits, output: &Output) -> String {
        let rendered = limits.clone().with_grace().within(|| self.render(self.finding(), portion, output));
        rendered.unwrap_or_else(|what| {
            if output.format == Format::Text && portion == Portion::Everything {
                output.complain(&format!("the run is not shown: {what}\n"));
            }
            self.render(self.finding().without_run(), portion, output)
        })
    }

    fn render(&self, finding: Finding<'_>, portion: Portion, output: &Output) -> String {
        match (output.format, portion) {
            (Format::Text, Portion::Headline) => {
                finding.headline(output.colour)
                    + "
"
            }
            _ => output.rendered(&finding),
        }
    }

    /// The run that breaks the program, in the form that is stored in files.
    pub(super) fn witness(&self) -> Option<&WitnessFile> {
        self.witness.as_ref()
    }

    /// What is bad, in one line.
    pub(super) fn violation(&self) -> Option<String> {
        self.answer.evidence(&self.input.source).as_ref().map(report::explain)
    }

    /// The run that breaks the program, as a table.
    pub(super) fn story(&self) -> String {
        let evidence = self.answer.evidence(&self.input.source);
        let table =
            |evidence| report::witness(evidence, LocalSteps::Folded, report::UNLIMITED, Colour::Never);
        evidence.as_ref().map_or_else(String::new, table)
    }

    pub(super) fn exit(&self) -> Exit {
        Exit::of(&self.answer.outcome.verdict)
    }
}

/// Checks one file.
pub(super) fn run(found: &InputFile, request: &Request<'_>, output: &Output) -> Exit {
    let start = Instant::now();
    let limits = request.limits.per_file(1);
    let last_words = output.last_words(&found.path, Question::Check(request.options.model));
    let backstop = (request.role != Role::Follows).then(|| Backstop::new(&request.limits, last_words));
    let meter = Meter::new(output.detail == Detail::Quiet);
    let check =
        AssertUnwindSafe(|| check(found, request, &limits.clone().with_progress(meter.progress()), output));
    let checked = catch_unwind(check).unwrap_or_else(|_| Checked::Panicked(found.path.display().to_string()));
    let notes = meter.notes();
    drop(meter);
    let remark = Remark::wanted(&checked, request.args);
    if let Some(remark) = &remark {
        let (file, seconds) = (found.path.display().to_string(), start.elapsed().as_secs_f64());
        let entry = machine::Entry { file: &file, seconds, remark, expected: Expected::Safe };
        if !machine::write(request.args, &[entry], seconds, output) {
            return Exit::Error;
        }
    }
    match checked {
        Checked::Answered(answered) => {
            output.warn(&answered.input);
            let rendered = answered.rendered(Portion::Everything, &limits, output);
            drop(backstop);
            output.print(&rendered);
            if output.detail == Detail::Verbose && output.format == Format::Text {
                output.print(&report::notes(&answered.input.source, &notes));
            }
            let witness = answered.witness.as_ref().map(WitnessFile::to_json);
            let no_run = "there is no run to keep".to_owned();
            let certificate = answered.answer.certificate(&answered.input).map(|proof| proof.to_json());
            let no_proof = match answered.answer.outcome.verdict {
                Verdict::Holds => "no engine provided a proof".to_owned(),
                _ => "there is no proof to keep".to_owned(),
            };
            let kept = keep(request.args.witness.as_deref(), witness, &no_run, output)
                && keep(request.args.certificate.as_deref(), certificate, &no_proof, output);
            let mut page = Page::new(request.args.html.as_deref());
            page.add(|number| answered.html(&notes, number));
            if !page.write(output) || !kept {
                return Exit::Error;
            }
            answered.exit()
        }
        Checked::Refused(refused) => {
            let mut page = Page::new(request.args.html.as_deref());
            page.refuse(&refused.source, &refused.diagnostics);
            page.write(output);
            output.refuse(&refused)
        }
        Checked::Skipped | Checked::TookPart => Exit::Fine,
        Checked::RanOut(last_words, what) => {
            drop(backstop);
            output.print(&last_words.say(what));
            Exit::Unknown
        }
        Checked::Failed(name, error) => output.refuse_about(&name, failure(&error)),
        Checked::Panicked(name) => output.refuse_about(&name, panicked()),
    }
}

/// Writes the text, if a file was named for it and there is a text. Returns false if it cannot be written.
fn keep(path: Option<&Path>, text: Option<String>, why_not: &str, output: &Output) -> bool {
    match (path, text) {
        (Some(path), Some(text)) => {
            let written = files::write(path, &text);
            written.map_err(|error| output.complain_about(&path.display().to_string(), error)).is_ok()
        }
        (Some(path), None) if output.detail != Detail::Quiet => {
            let name = path.display().to_string();
            output.complain(&format!("{}: not written, {why_not}\n", report::visible(&name)));
            true
        }
        _ => true,
    }
}

/// A bug in Palisade as a diagnostic.
pub(super) fn failure(error: &AskError) -> Diagnostic {
    Diagnostic::error(error.id(), error.to_string())
}

/// A panic as a diagnostic. The panic's message was printed before it.
pub(super) fn panicked() -> Diagnostic {
    Diagnostic::error("internal-error", "Palisade failed, and there is no verdict")
        .help("this is a bug in Palisade: please report it with the program and the lines above")
}
