//! `palisade check`: one file with full details, or many files with a line each.

mod all;
mod build;
mod machine;
mod many;
mod one;

use crate::args::{CheckArgs, Common, ModelChoice};
use crate::exit::Exit;
use crate::expect::Expectations;
use crate::files::{self, InputFile};
use crate::group::{self, Group, Role};
use crate::limits::UserLimits;
use crate::output::Output;
use crate::paths::keep_apart;
use palisade::{
    CheckOptions, CoverageWanted, Deadlocks, Diagnostic, EngineChoice, Model, Options, Refused, Source,
};
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn run(args: &CheckArgs, common: &Common, output: &Output) -> Exit {
    if let Some(exit) = (args.model == ModelChoice::All).then(|| all::refused(args, output)).flatten() {
        return exit;
    }
    let expectations = match &args.expect {
        None => None,
        Some(path) => match expectations(path, args, output) {
            Some(expectations) => Some(expectations),
            None => return Exit::Error,
        },
    };
    let found = match files::find_for(&args.paths, &args.reading) {
        Ok(found) => found,
        Err(problems) => return output.refuse_all(problems),
    };
    let inputs = found.iter().map(|found| found.path.as_path()).chain(args.expect.as_deref());
    let outputs = [
        ("--witness", args.witness.as_deref()),
        ("--certificate", args.certificate.as_deref()),
        ("--html", args.html.as_deref()),
        ("--junit", args.junit.as_deref()),
        ("--sarif", args.sarif.as_deref()),
        ("--tsv", args.tsv.as_deref()),
    ];
    if let Err(exit) = keep_apart(inputs, &outputs, output) {
        return exit;
    }
    if let Some(exit) = not_shared(args, output) {
        return exit;
    }
    let files: Vec<&Path> = found.iter().map(|found| found.path.as_path()).collect();
    let group = match Group::join(&args.group, common, &files, output) {
        Ok(group) => group,
        Err(exit) => return exit,
    };
    let exit = with_group(args, common, &found, expectations.as_ref(), &group, output);
    group.end(exit, output)
}

/// Runs the command as a member of a group, or alone.
fn with_group(
    args: &CheckArgs,
    common: &Common,
    found: &[InputFile],
    expectations: Option<&Expectations>,
    group: &Group,
    output: &Output,
) -> Exit {
    let role = group.role();
    let mut options = options(args);
    let mut limits = UserLimits::new(common);
    if role != Role::Alone {
        limits = limits.shared_by(group.on_this_machine, common);
        if single_program(args, found) {
            options.engine = EngineChoice::from("explicit");
        }
    }
    let request = Request { args, common, options, limits, role };
    if args.model == ModelChoice::All {
        return all::run(found, &request, output);
    }
    if let Some(command) = &args.build {
        return match found {
            [found] => build::run(found, command, &request, output),
            _ => {
                let error = Diagnostic::error("build-of-c", "--build compiles one program at a time");
                output.refuse_about("--build", error)
            }
        };
    }
    match found {
        [found] if single_program(args, std::slice::from_ref(found)) => one::run(found, &request, output),
        _ if args.witness.is_some() => {
            let error =
                Diagnostic::error("witness-of-many", "--witness can keep the run of one program only")
                    .help("check one file at a time, or use --format json, which has every run in it");
            output.refuse_about("--witness", error)
        }
        _ if args.certificate.is_some() => {
            let message = "--certificate can keep the proof of one program only";
            let error = Diagnostic::error("certificate-of-many", message).help("check one file at a time");
            output.refuse_about("--certificate", error)
        }
        _ => many::run(found, &request, expectations, output),
    }
}

/// Whether the answer is about one program, with full details.
fn single_program(args: &CheckArgs, found: &[InputFile]) -> bool {
    let single = args.expect.is_none() && args.tsv.is_none() && !files::is_folder(&args.paths[0]);
    args.model == ModelChoice::All || single && found.len() == 1
}

/// Refuses what cannot be shared with other processes.
fn not_shared(args: &CheckArgs, output: &Output) -> Option<Exit> {
    if !args.group.is_wanted() {
        return None;
    }
    if !matches!(args.engine.as_str(), "auto" | "explicit") {
        let message =
            format!("only explicit search is shared by several processes, not engine {}", args.engine);
        return Some(group::refuse("--engine", &message, output));
    }
    if args.build.is_some() {
        return Some(group::refuse("--build", "--build cannot be shared by several processes", output));
    }
    group::refuse_standard_input(&args.group, args.paths.iter().map(PathBuf::as_path), output)
}

/// The user's request.
struct Request<'a> {
    args: &'a CheckArgs,
    common: &'a Common,
    options: CheckOptions,
    limits: UserLimits,
    role: Role,
}

fn options(args: &CheckArgs) -> CheckOptions {
    CheckOptions {
        prove: args.certificate.is_some(),
        certify: args.certify,
        model: model(args),
        interlocked: args.machine.interlocked.into(),
        threads: args.machine.threads.unwrap_or_default(),
        engine: EngineChoice::from(args.engine.as_str()),
        options: Options {
            max_buffer: args.max_buffer,
            reduction: args.reduction.into(),
            unroll: args.unroll,
            rounds: args.rounds,
            age: args.age,
            ..Options::default()
        },
        deadlocks: if args.deadlock { Deadlocks::Asked } else { Deadlocks::IfStated },
        coverage: if args.coverage { CoverageWanted::Yes } else { CoverageWanted::IfCheap },
    }
}

/// The memory model, or the first one if all are asked about.
fn model(args: &CheckArgs) -> Model {
    args.model.models()[0]
}

/// The table of expected verdicts. Reports what is wrong with it.
fn expectations(path: &Path, args: &CheckArgs, output: &Output) -> Option<Expectations> {
    let name = path.display().to_string();
    let text = match files::text(path) {
        Ok(text) => text,
        Err(error) => {
            output.refuse_about(&name, error);
            return None;
        }
    };
    let source = Source::new(name, text);
    match Expectations::parse(&source, model(args)) {
        Ok(expectations) => Some(expectations),
        Err(diagnostics) => {
            output.refuse(&Refused { source, diagnostics });
            None
        }
    }
}
