//! `palisade replay`: does a witness file contain a run of its program that ends in a bad state?
//!
//! Only the trusted parts take part: the parser, the lowering, the machine of `palisade-memory` and the
//! checker of `palisade-trace`.
//!
//! Exit codes: 0 if the run is a witness, 1 if it is not, 2 if the file or the program cannot be read, 3 if
//! time or memory ran out.

use crate::args::{Common, Format, ReplayArgs};
use crate::exit::Exit;
use crate::files::{self, Reading, Recorded};
use crate::html::{Page, subject};
use crate::limits::UserLimits;
use crate::output::{Detail, Output};
use crate::paths::keep_apart;
use crate::ran_out::{Backstop, Question};
use palisade::Evidence;
use palisade::certificate::can_reach;
use palisade::memory::Violation;
use palisade::program::lower_with;
use palisade::program::running::System;
use palisade::report::{self, LocalSteps, html};
use palisade::trace::{Replay, WitnessError, WitnessFile, text_hash};
use palisade::{Diagnostic, Input, Limits, threads_of_each};
use serde_json::json;

/// Witness files with more instances than this are refused. No search would have found them.
const MAX_INSTANCES: u32 = 4096;

/// Runs the command.
pub fn run(args: &ReplayArgs, common: &Common, output: &Output) -> Exit {
    let limits = UserLimits::new(common);
    let last_words = output.last_words(&args.witness, Question::Other("replay"));
    let backstop = Backstop::new(&limits, last_words.clone());
    let work = limits.per_file(1);
    work.within(|| judge(args, common, &work, backstop, output)).unwrap_or_else(|what| {
        output.print(&last_words.say(what));
        Exit::Unknown
    })
}

/// Why a file is not a witness file.
pub fn not_a_witness(error: &WitnessError) -> Diagnostic {
    let diagnostic = Diagnostic::error("bad-witness", error.to_string());
    match error {
        WitnessError::Malformed(_) => {
            diagnostic.help("give a file that `palisade check --witness FILE` wrote, unchanged")
        }
        _ => diagnostic,
    }
}

fn judge(args: &ReplayArgs, common: &Common, limits: &Limits, backstop: Backstop, output: &Output) -> Exit {
    let name = args.witness.display().to_string();
    let refuse = |error: Diagnostic| output.refuse_about(&name, error);
    let text = match files::text(&args.witness) {
        Ok(text) => text,
        Err(error) => return refuse(error),
    };
    let witness = match WitnessFile::from_json(&text) {
        Ok(witness) => witness,
        Err(error) => return refuse(not_a_witness(&error)),
    };
    let recorded = match recorded(&witness) {
        Ok(recorded) => recorded,
        Err(error) => return refuse(error),
    };
    let path =
        recorded.path(&args.witness, args.program.as_deref(), |text| witness.program.hash == text_hash(text));
    let inputs = [args.witness.as_path(), path.as_path()];
    if let Err(exit) = keep_apart(inputs, &[("--html", args.html.as_deref())], output) {
        return exit;
    }
    let read = recorded
        .read(path, args.program.as_deref())
        .map_err(|message| Diagnostic::error("bad-witness", message));
    let input = match read {
        Ok(Reading::Program(input)) => input,
        Ok(Reading::Refused(refused)) => return output.refuse(&refused),
        Ok(Reading::Skipped) => unreachable!("files that are named are not skipped"),
        Err(error) => return refuse(error),
    };
    if witness.program_changed(&input.source) {
        output.complain_about(&name, files::another_program(&input, args.program.as_deref(), "witness"));
    } else if let Some(warning) =
        files::another_translation(&input, witness.program.build.as_ref(), "witness")
    {
        output.complain_about(&name, warning);
    }
    let mut page = Page::new(args.html.as_deref());
    let replayed = report_on(&name, &witness, &input, &mut page, common, limits, output);
    drop(backstop);
    output.print(&replayed.text);
    if replayed.exit == Exit::Fine && !page.write(output) {
        return Exit::Error;
    }
    replayed.exit
}

/// How many threads of each process take part, if that is not what the program declares.
fn threads(witness: &WitnessFile) -> Option<u32> {
    witness.instantiation().every
}

/// The result of a replay.
struct Replayed {
    text: String,
    exit: Exit,
}

fn report_on(
    name: &str,
    witness: &WitnessFile,
    input: &Input,
    page: &mut Page<'_>,
    common: &Common,
    limits: &Limits,
    output: &Output,
) -> Replayed {
    let system = lower_with(&input.program, witness.instantiation(), witness.waits());
    let verified = witness
        .verify(&system)
        .and_then(|replay| out_of_reach(witness, &system, replay, limits))
        .and_then(|replay| Ok((witness.machine(&system)?, witness.run(&system)?, replay)));
    let record = |verdict: &str, reason: Option<&WitnessError>, violation: Option<&str>| {
        let mut record = json!({
            "schema_version": report::SCHEMA_VERSION,
            "command": "replay",
            "file": name,
            "program": input.source.name(),
            "language": input.language.name(),
            "model": witness.model,
            "verdict": verdict,
            "steps": witness.steps.len(),
        });
        if let Some(threads) = threads(witness) {
            record["threads"] = threads.into();
        }
        if let Some(reason) = reason {
            record["reason"] = reason.to_string().into();
        }
        if let Some(violation) = violation {
            record["violation"] = violation.into();
        }
        record.to_string() + "\n"
    };
    match verified {
        Ok((machine, run, replay)) => {
            let evidence = Evidence {
                source: &input.source,
                addresses: input.addresses(),
                machine,
                run: &run,
                replay: &replay,
            };
            let why = report::explain(&evidence);
            page.add(|_| html::replay(subject(input), name, &evidence));
            if common.format == Format::Json {
                return Replayed { text: record("valid", None, Some(&why)), exit: Exit::Fine };
            }
            let with = threads(witness).map_or_else(String::new, |threads| {
                format!("with {}, ", threads_of_each(&input.program, threads))
            });
            let mut text = format!("valid  {}: {with}{why}\n", report::visible(name));
            if output.detail != Detail::Quiet {
                let all = output.detail == Detail::Verbose;
                let local = if all { LocalSteps::Shown } else { LocalSteps::Folded };
                text.push('\n');
                text.push_str(&report::witness(&evidence, local, output.width, output.colour));
            }
            Replayed { text, exit: Exit::Fine }
        }
        Err(error @ WitnessError::Unfinished(_)) => {
            let text = match common.format {
                Format::Json => record("unknown", Some(&error), None),
                Format::Text => format!("unknown  {}: {error}\n", report::visible(name)),
            };
            Replayed { text, exit: Exit::Unknown }
        }
        Err(error) => {
            let text = match common.format {
                Format::Json => record("invalid", Some(&error), None),
                Format::Text => format!("invalid  {}: {error}\n", report::visible(name)),
            };
            Replayed { text, exit: Exit::Violated }
        }
    }
}

/// Checks that the goal of a run is out of reach of its last state, as the run claims. If the limits are
/// reached, everything ends as it does for any other work.
pub fn out_of_reach(
    witness: &WitnessFile,
    system: &System,
    replay: Replay,
    limits: &Limits,
) -> Result<Replay, WitnessError> {
    let Some(Violation::Unreachable(goal)) = replay.violation else { return Ok(replay) };
    let last = replay.states.last().expect("a run has a first state");
    match can_reach(witness.machine(system)?, last, &system.goals[goal], limits) {
        Ok(false) if last.fault.is_none() => Ok(replay),
        Ok(_) => Err(WitnessError::Reachable),
        Err(what) => Err(WitnessError::Unfinished(what.to_string())),
    }
}

/// The program that the witness is about.
pub fn recorded(witness: &WitnessFile) -> Result<Recorded<'_>, Diagnostic> {
    let instantiation = witness.instantiation();
    let instances = instantiation.any.max(instantiation.every.unwrap_or(0));
    if instances > MAX_INSTANCES {
        let many = format!("{instances} instances of a process are more than the {MAX_INSTANCES} allowed");
        return Err(Diagnostic::error("bad-witness", many));
    }
    Ok(Recorded {
        file: &witness.program.file,
        language: &witness.program.language,
        int_range: witness.int_range.map(|[lo, hi]| (lo, hi)),
        constants: &witness.constants,
        build: witness.program.build.as_ref(),
        several: witness.instantiation.several,
    })
}
