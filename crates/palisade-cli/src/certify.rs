//! `palisade certify`: does a certificate prove its program safe?
//!
//! No engine takes part: only the parser, the lowering, the automata and the checker of
//! `palisade-certificate`.
//!
//! Exit codes: 0 if the proof is accepted, 1 if it is not, 2 if the file or the program cannot be read, 3 if
//! time or memory ran out.

use crate::args::{CertifyArgs, Common, Format};
use crate::exit::Exit;
use crate::files::{self, Reading, Recorded};
use crate::limits::UserLimits;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::ran_out::{Backstop, Question};
use palisade::certificate::{Certificate, CertificateError, Refusal, Summary};
use palisade::engine::{Proof, Threads};
use palisade::program::written::{Count, Program, ProgressKind, Start};
use palisade::trace::text_hash;
use palisade::{Diagnostic, Interlocked, Limits, Model, report, threads_of_each};
use serde_json::json;
use std::time::Duration;

/// How long checking may take if the user does not say. Certificates come from others, and one that is made for it can keep the
/// checker busy for days. Proofs that engines write are checked within seconds.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Runs the command.
pub fn run(args: &CertifyArgs, common: &Common, output: &Output) -> Exit {
    let limits = limits(common);
    let last_words = output.last_words(&args.certificate, Question::Other("certify"));
    let backstop = Backstop::new(&limits, last_words.clone());
    let limits = limits.per_file(1);
    limits.within(|| judge(args, common, &limits, backstop, output)).unwrap_or_else(|what| {
        output.print(&last_words.say(what));
        Exit::Unknown
    })
}

/// The limits that the user sets, with a limit on time in any case.
fn limits(common: &Common) -> UserLimits {
    UserLimits { timeout: Some(common.timeout.unwrap_or(TIMEOUT)), ..UserLimits::new(common) }
}

fn judge(args: &CertifyArgs, common: &Common, limits: &Limits, backstop: Backstop, output: &Output) -> Exit {
    let name = args.certificate.display().to_string();
    let refuse = |error: Diagnostic| output.refuse_about(&name, error);
    let bad = |message: String| Diagnostic::error("bad-certificate", message);
    let text = match files::text(&args.certificate) {
        Ok(text) => text,
        Err(error) => return refuse(error),
    };
    let certificate = match Certificate::from_json(&text) {
        Ok(certificate) => certificate,
        Err(error @ CertificateError::Malformed(_)) => {
            let help = "give a file that `palisade check --certificate FILE` wrote, unchanged";
            return refuse(bad(error.to_string()).help(help));
        }
        Err(error) => return refuse(bad(error.to_string())),
    };
    let recorded = Recorded {
        file: &certificate.file,
        language: &certificate.language,
        int_range: certificate.int_range,
        constants: &certificate.constants,
        build: certificate.build.as_ref(),
        several: certificate.threads == Threads::Several,
    };
    let path =
        recorded.path(&args.certificate, args.program.as_deref(), |text| certificate.hash == text_hash(text));
    let input = match recorded.read(path, args.program.as_deref()) {
        Ok(Reading::Program(input)) => input,
        Ok(Reading::Refused(refused)) => return output.refuse(&refused),
        Ok(Reading::Skipped) => unreachable!("files that are named are not skipped"),
        Err(message) => return refuse(bad(message)),
    };
    let hash = text_hash(&input.source.identity());
    if certificate.hash != hash {
        output.complain_about(&name, files::another_program(&input, args.program.as_deref(), "proof"));
    } else if let Some(warning) = files::another_translation(&input, certificate.build.as_ref(), "proof") {
        output.complain_about(&name, warning);
    }
    let meter = Meter::new(output.detail == Detail::Quiet);
    let judged =
        palisade::certify_input(&input, &certificate, &limits.clone().with_progress(meter.progress()));
    drop(meter);
    drop(backstop);
    let (verdict, exit) = match &judged {
        Ok(_) => ("valid", Exit::Fine),
        Err(Refusal::Exhausted(_)) => ("unknown", Exit::Unknown),
        Err(_) => ("invalid", Exit::Violated),
    };
    let program = input.source.name();
    let shown = report::visible(&name);
    let text = match common.format {
        Format::Json => {
            let mut shown = Vec::new();
            if is_deadlock_free(&certificate, &input.program) {
                shown.push("free of deadlocks");
            }
            if states(&input.program, ProgressKind::is_goal) {
                shown.push("all `live` properties hold");
            }
            if can_finish(&certificate) {
                shown.push("it can always finish");
            }
            record(&name, program, &hash, &certificate, verdict, &shown, &judged)
        }
        Format::Text => match &judged {
            Ok(summary) => format!(
                "valid  {shown}: {} is {} {}, {} [{hash}]\n",
                report::visible(program),
                shown_as(&certificate, &input.program),
                question(&certificate, &input.program),
                by(&certificate.proof, summary),
            ),
            Err(error) => format!("{verdict}  {shown}: {error}\n"),
        },
    };
    output.print(&text);
    exit
}

/// Whether the program states something of this kind.
fn states(program: &Program, which: fn(&ProgressKind) -> bool) -> bool {
    program.progress.iter().any(|progress| which(&progress.kind))
}

/// Whether the certificate is about deadlocks.
fn is_deadlock_free(certificate: &Certificate, program: &Program) -> bool {
    certificate.deadlocks
        || certificate.finish.is_some()
        || states(program, |kind| *kind == ProgressKind::DeadlockFree)
}

/// Whether the certificate shows that a C program can always finish.
fn can_finish(certificate: &Certificate) -> bool {
    certificate.finish.as_ref().is_some_and(|finish| !finish.goals.is_empty())
}

/// What the certificate shows the program to be.
fn shown_as(certificate: &Certificate, program: &Program) -> String {
    let words = [
        (true, "safe"),
        (is_deadlock_free(certificate, program), "free of deadlocks"),
        (states(program, ProgressKind::is_goal), "live"),
        (can_finish(certificate), "able to finish"),
        (states(program, ProgressKind::is_fair), "without the endless runs that it rules out"),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// The question that the certificate answers: model, threads, integers, locked instructions.
fn question(certificate: &Certificate, program: &Program) -> String {
    let mut question = format!("under {}", certificate.model.name().to_uppercase());
    let any = |count: Count, start: Start| count == Count::Any && start == Start::Initially;
    question.push_str(&match certificate.threads {
        Threads::Declared
            if certificate.build.is_none() && program.templates.iter().any(|t| any(t.count, t.start)) =>
        {
            " with any number of threads where it declares `[*]`".to_owned()
        }
        Threads::Declared if certificate.build.is_some() => {
            let left_out = match &certificate.finish {
                None => "data races, deadlocks and whether it can finish",
                Some(finish) if finish.goals.is_empty() => "data races and whether it can finish",
                Some(_) => "data races",
            };
            format!(" with {}, apart from {left_out}", threads_of(certificate))
        }
        Threads::Declared => " with the threads it declares".to_owned(),
        Threads::Any => " with any number of threads of each process".to_owned(),
        Threads::Several => {
            " with any number of threads of each process that it declares with several".to_owned()
        }
        Threads::Each(count) => format!(" with {}", threads_of_each(program, count)),
    });
    for (name, value) in &certificate.constants {
        question.push_str(&format!(", with {name} = {value}"));
    }
    if let Some((lo, hi)) = certificate.int_range {
        question.push_str(&format!(", with integers in {lo}..{hi}"));
    }
    if certificate.modulus.is_some() {
        question.push_str(", as long as no integer overflows");
    }
    if interlocked(certificate) == Interlocked::OwnAddress {
        question.push_str(", with locked instructions that wait for their own address only");
    }
    question
}

/// The threads of a C program, and how it was compiled.
fn threads_of(certificate: &Certificate) -> String {
    let Some(build) = &certificate.build else { return "the threads it starts".to_owned() };
    let mut text = match &build.functions {
        _ if build.any_threads => {
            "any number of the threads that run the same function, until they are joined".to_owned()
        }
        None => "the threads it starts".to_owned(),
        Some(functions) => {
            let init = functions.init.iter().map(|name| format!("first `{name}`"));
            let threads = functions.threads.iter().map(|name| format!("`{name}`"));
            let last = functions.last.iter().map(|name| format!("last `{name}`"));
            let parts: Vec<String> = init.chain(threads).chain(last).collect();
            format!("the functions {} instead of `main`", parts.join(", "))
        }
    };
    if !build.arguments.is_empty() {
        let arguments: Vec<String> =
            build.arguments.iter().map(|argument| report::visible(argument).into_owned()).collect();
        text = format!("{text}, compiled with `{}`", arguments.join(" "));
    }
    text
}

/// What locked instructions wait for. Only PSO leaves a choice.
fn interlocked(certificate: &Certificate) -> Interlocked {
    match certificate.model {
        Model::Pso => certificate.interlocked,
        Model::Sc | Model::Tso => Interlocked::WholeBuffer,
    }
}

/// The kind of the proof, and what was visited to check it.
fn by(proof: &Proof, summary: &Summary) -> String {
    let Summary { elements, predecessors } = summary;
    match proof {
        Proof::AllStates => format!("by visiting all states ({elements} states, {predecessors} steps)"),
        Proof::LoadBuffers(_) => {
            format!("by load buffers ({elements} elements, {predecessors} steps checked)")
        }
        Proof::SingleBuffer(_) => {
            format!("by a single buffer ({elements} elements, {predecessors} steps checked)")
        }
        Proof::Crowds(_) => {
            format!("by numbers of threads ({elements} elements, {predecessors} steps checked)")
        }
        Proof::Identities(_) => {
            format!("by load buffers with identities ({elements} elements, {predecessors} steps checked)")
        }
        Proof::Stacks(_) => format!("by sets of stacks ({elements} elements, {predecessors} steps checked)"),
    }
}

fn record(
    name: &str,
    program: &str,
    hash: &str,
    certificate: &Certificate,
    verdict: &str,
    progress: &[&str],
    judged: &Result<Summary, Refusal>,
) -> String {
    let interlocked = match interlocked(certificate) {
        Interlocked::WholeBuffer => "whole-buffer",
        Interlocked::OwnAddress => "own-address",
    };
    let mut record = json!({
        "schema_version": report::SCHEMA_VERSION,
        "command": "certify",
        "file": name,
        "program": program,
        "program_hash": hash,
        "language": certificate.language,
        "model": certificate.model.name(),
        "threads": certificate.threads_word(),
        "interlocked": interlocked,
        "kind": certificate.proof.kind().name(),
        "verdict": verdict,
    });
    if let Some((lo, hi)) = certificate.int_range {
        record["int_range"] = json!([lo, hi]);
    }
    if !certificate.constants.is_empty() {
        record["constants"] = json!(certificate.constants);
    }
    if certificate.hash != hash {
        record["sealed_program_hash"] = certificate.hash.clone().into();
    }
    match judged {
        Ok(summary) => {
            if !progress.is_empty() {
                record["progress"] = progress.into();
            }
            record["elements"] = summary.elements.into();
            record["predecessors"] = summary.predecessors.into();
        }
        Err(error) => record["reason"] = error.to_string().into(),
    }
    record.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, command};
    use clap::FromArgMatches;

    #[test]
    fn checking_never_takes_as_long_as_it_likes() {
        let timeout = |line: &str| {
            let mut matches = command().try_get_matches_from(line.split(' ')).expect("it is a command line");
            let palisade = crate::args::Palisade::from_arg_matches_mut(&mut matches).expect("it is one");
            assert!(matches!(palisade.command, Command::Certify(_)));
            limits(&palisade.common).timeout
        };
        assert_eq!(timeout("palisade certify proof.json"), Some(TIMEOUT));
        assert_eq!(timeout("palisade certify proof.json --timeout 7"), Some(Duration::from_secs(7)));
    }
}
