//! `palisade fences`: which fences make a program safe or robust, why each is needed, and the program with
//! them.

use crate::args::{ChangesArg, Common, FencesArgs, Format, GoalArg, PerArg, PlacementArg};
use crate::exit::Exit;
use crate::files::{self, InputFile, Reading};
use crate::group::{self, Group, Role};
use crate::html::{Page, subject};
use crate::limits::UserLimits;
use crate::meter::Meter;
use crate::minimise::minimise;
use crate::output::{Detail, Output};
use crate::patch;
use crate::paths::keep_apart;
use crate::ran_out::{Backstop, LastWords, Question};
use palisade::c::{FilePatch, Unsettled};
use palisade::cluster::Helpers;
use palisade::engine::Exhausted;
use palisade::report::{self, Standing, html};
use palisade::{
    Changes, CheckOptions, Confirm, Costs, Deadlocks, Diagnostic, EngineChoice, FencesAnswer, FencesError,
    FencesHelp, FencesOptions, Goal, Input, InputLanguage, Limits, Model, Options, Per, Placement, Reason,
    Threads, Which, WriteError,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

/// Runs the command.
pub fn run(args: &FencesArgs, common: &Common, output: &Output) -> Exit {
    let args = &FencesArgs { reading: files::for_any_number(&args.reading, &args.machine), ..args.clone() };
    let found = match files::find_for(std::slice::from_ref(&args.file), &args.reading) {
        Ok(found) => found,
        Err(problems) => return output.refuse_all(problems),
    };
    let [found] = found.as_slice() else {
        let error = Diagnostic::error("is-a-folder", "fences are computed for one program at a time");
        return output.refuse_about(&args.file.display().to_string(), error);
    };
    let outputs = [("--write", args.write.as_deref()), ("--html", args.html.as_deref())];
    if let Err(exit) = keep_apart([found.path.as_path()], &outputs, output) {
        return exit;
    }
    if args.diff && output.format == Format::Json {
        let error = Diagnostic::error("unsuitable-options", "--diff prints a patch, which is not JSON");
        return output.refuse_about("--diff", error.help("leave out --format json, or use --write FILE"));
    }
    if args.changes == Some(ChangesArg::Accesses) && args.per == PerArg::Instance {
        let error = Diagnostic::error("unsuitable-options", "accesses cannot be made stronger per instance");
        return output.refuse_about("--changes", error.help("leave out --per instance"));
    }
    if let Some(error) = engine_of_other_goal(args) {
        return output.refuse_about("--engine", error);
    }
    let paths = std::iter::once(args.file.as_path());
    if let Some(exit) = group::refuse_standard_input(&args.group, paths, output) {
        return exit;
    }
    if args.minimise && args.group.is_wanted() {
        return group::refuse("--minimise", "--minimise cannot be shared by several processes", output);
    }
    let group = match Group::join(&args.group, common, &[&found.path], output) {
        Ok(group) => group,
        Err(exit) => return exit,
    };
    let mut limits = UserLimits::new(common);
    if group.role() != Role::Alone {
        limits = limits.shared_by(group.on_this_machine, common);
    }
    let question = Question::Fences {
        model: args.model.into(),
        goal: match args.goal {
            GoalArg::Safety => Goal::Safety.name(),
            GoalArg::Robustness => Goal::Robustness.name(),
        },
        all: args.all,
    };
    let last_words = output.last_words(&found.path, question);
    let backstop = (group.role() != Role::Follows).then(|| Backstop::new(&limits, last_words.clone()));
    let asked = Asked { found, args, role: group.role(), stop: &limits.stop };
    let exit = file(&asked, &limits.per_file(1), output, &last_words, backstop).unwrap_or_else(|what| {
        if group.role() != Role::Follows {
            output.print(&last_words.say(what));
        }
        Exit::Unknown
    });
    group.end(exit, output)
}

/// What the user asked, and what this process does for the answer.
struct Asked<'a> {
    found: &'a InputFile,
    args: &'a FencesArgs,
    role: Role,
    stop: &'a AtomicBool,
}

/// What is wrong if the engine exists, but is for the other goal.
fn engine_of_other_goal(args: &FencesArgs) -> Option<Diagnostic> {
    let of_safety = palisade::engines().iter().any(|engine| engine.name() == args.engine);
    let of_robustness =
        palisade::engines::robustness_engines().iter().any(|engine| engine.name() == args.engine);
    let goal = match (args.goal, of_safety, of_robustness) {
        (GoalArg::Safety, false, true) => "robustness",
        (GoalArg::Robustness, true, false) => "safety",
        _ => return None,
    };
    let message = format!("the engine `{}` is for {goal}", args.engine);
    Some(
        Diagnostic::error("no-such-engine", message)
            .help(format!("add `--goal {goal}`, or choose another engine")),
    )
}

fn options(args: &FencesArgs) -> FencesOptions {
    FencesOptions {
        goal: match args.goal {
            GoalArg::Safety => Goal::Safety,
            GoalArg::Robustness => Goal::Robustness,
        },
        placement: match args.place {
            None | Some(PlacementArg::AfterWrites) => Placement::AfterWrites,
            Some(PlacementArg::BeforeReads) => Placement::BeforeReads,
            Some(PlacementArg::Anywhere) => Placement::Anywhere,
        },
        widen: args.place.is_none(),
        changes: match args.changes {
            None | Some(ChangesArg::Any) => Changes::Any,
            Some(ChangesArg::Fences) => Changes::Fences,
            Some(ChangesArg::Accesses) => Changes::Accesses,
        },
        costs: args.cost.iter().fold(Costs::default(), Costs::and),
        per: match args.per {
            PerArg::Source => Per::Source,
            PerArg::Instance => Per::Instance,
        },
        which: if args.all { Which::All } else { Which::Cheapest },
        only: args.only.clone(),
        never: args.never.clone(),
        weights: args.weight.clone(),
        loop_weight: args.loop_weight,
        check: CheckOptions {
            model: args.model.into(),
            interlocked: args.machine.interlocked.into(),
            threads: args.machine.threads.unwrap_or_default(),
            engine: EngineChoice::from(args.engine.as_str()),
            options: Options { max_buffer: args.max_buffer, ..Options::default() },
            deadlocks: if args.deadlock { Deadlocks::Asked } else { Deadlocks::IfStated },
            ..CheckOptions::default()
        },
    }
}

fn file(
    asked: &Asked<'_>,
    limits: &Limits,
    output: &Output,
    last_words: &LastWords,
    backstop: Option<Backstop>,
) -> Result<Exit, Exhausted> {
    let &Asked { found, args, role, stop } = asked;
    let mut input = match limits.within(|| files::read_for(found, &args.reading, &args.machine))? {
        Reading::Program(input) => input,
        Reading::Refused(refused) => {
            let mut page = Page::new(args.html.as_deref());
            page.refuse(&refused.source, &refused.diagnostics);
            page.write(output);
            return Ok(output.refuse(&refused));
        }
        Reading::Skipped => return Ok(Exit::Fine),
    };
    if input.language != InputLanguage::C
        && matches!(args.changes, Some(ChangesArg::Any | ChangesArg::Accesses))
    {
        let error = Diagnostic::error("c-option", "accesses can be made stronger in C programs only");
        return Ok(output.refuse_about("--changes", error.help("leave out --changes")));
    }
    let mut options = options(args);
    if input.c.is_some() {
        // A C program itself says how many threads it has.
        options.check.threads = Threads::Declared;
    }
    if args.minimise {
        drop(backstop);
        return minimise(found, args, &input, &options, limits, output);
    }
    // A robust program behaves as it does under SC. Fences never add behaviour.
    let model = if options.goal == Goal::Robustness { Model::Sc } else { options.check.model };
    match palisade::c::settle(&mut input, model, options.check.threads, limits) {
        Ok(Some(Unsettled::Exceeded(reason))) => {
            drop(backstop);
            output.print(&last_words.say_why(reason));
            return Ok(Exit::Unknown);
        }
        Ok(_) => {}
        Err(error) => return Ok(output.refuse_about(input.source.name(), failure(&FencesError::Ask(error)))),
    }
    if input.c.is_some() && options.goal == Goal::Safety {
        // Whether it can get stuck is asked about every C program, in a way of its own.
        let stated = limits.within(|| palisade::c::state_finish(&mut input))?;
        options.check.deadlocks = stated.unwrap_or_else(|why| {
            let message = format!("fences against lost wake-ups are not looked for: {why}");
            input.warnings.push(Diagnostic::warning("fences-for-safety", message));
            Deadlocks::IfStated
        });
    }
    let meter = Meter::new(output.detail == Detail::Quiet);
    let confirm = |patches: &[FilePatch], limits: &Limits| {
        let confirmed =
            limits.within(|| patch::confirm(found, args, input.language, &options, patches, limits));
        confirmed.unwrap_or_else(|what| Err(WriteError::Unknown(Reason::Exhausted(what))))
    };
    let confirm: Option<Confirm<'_>> = match input.language == InputLanguage::C && !args.all {
        true => Some(&confirm),
        false => None,
    };
    let ask = |helpers: Option<&Helpers>| {
        let limits = limits.clone().with_progress(meter.progress());
        let ask = || palisade::fences_confirmed(&input, &options, confirm, helpers, &limits);
        catch_unwind(AssertUnwindSafe(ask))
    };
    let what = format!("fences {:?} {options:?}", input.program);
    let mut help = FencesHelp::new(&input, &options);
    let (answer, lost) = group::with_help(&what, stop, ask, |question| help.answer(question, limits));
    drop(meter);
    if role == Role::Follows {
        return Ok(Exit::Fine);
    }
    // Printing takes as long as its readers need. Writing a program checks the limits itself.
    drop(backstop);
    let Some(answer) = answer else {
        output.print(&last_words.say_why(Reason::Observed(lost.unwrap_or_default())));
        return Ok(Exit::Unknown);
    };
    let answer = match answer {
        Ok(Ok(mut answer)) => {
            lost.into_iter().for_each(|lost| answer.note_end(Reason::Observed(lost)));
            answer
        }
        Ok(Err(FencesError::Exhausted(_))) if lost.is_some() => {
            output.print(&last_words.say_why(Reason::Observed(lost.unwrap_or_default())));
            return Ok(Exit::Unknown);
        }
        Ok(Err(FencesError::Exhausted(what))) => return Err(what),
        Ok(Err(error)) => return Ok(output.refuse_about(input.source.name(), failure(&error))),
        Err(_) => {
            let error = Diagnostic::error("internal-error", "Palisade failed, and there is no answer");
            let help = "this is a bug in Palisade: please report it with the program and the lines above";
            return Ok(output.refuse_about(input.source.name(), error.help(help)));
        }
    };
    if args.goal == GoalArg::Safety && answer.standing() != Standing::Bad {
        let remark = limits.clone().with_grace().within(|| palisade::no_property(&input));
        input.warnings.extend(remark.unwrap_or(None));
    }
    output.warn(&input);
    let mut page = Page::new(args.html.as_deref());
    print(&input, &answer, &mut page, output);
    if !page.write(output) {
        return Ok(Exit::Error);
    }
    let exit = match answer.standing() {
        Standing::Good => Exit::Fine,
        Standing::Open => Exit::Unknown,
        Standing::Bad => Exit::Violated,
    };
    let exit = match (args.write.is_some() || args.diff, &answer.confirmed) {
        (true, _) => exit.worst(write(found, args, &input, &answer, limits, output)),
        (false, Some(Err(error))) => {
            if let (Some(problem), _) = not_written(error.clone(), &input, output) {
                output.complain_about(input.source.name(), problem);
            }
            exit
        }
        (false, _) => exit,
    };
    Ok(exit)
}

/// Prints the answer.
fn print(input: &Input, answer: &FencesAnswer, page: &mut Page<'_>, output: &Output) {
    let limits = input.terms(answer.options.check.threads);
    let finding = answer.finding(input, limits.as_deref());
    page.add(|number| html::fences(subject(input), &finding, number));
    output.print(&output.rendered(&finding));
}

/// Writes the program with the fences of the first set, or prints the patch.
fn write(
    found: &InputFile,
    args: &FencesArgs,
    input: &Input,
    answer: &FencesAnswer,
    limits: &Limits,
    output: &Output,
) -> Exit {
    let meter = Meter::new(output.detail == Detail::Quiet);
    let limits = limits.clone().with_progress(meter.progress());
    let patches = match &answer.confirmed {
        Some(Err(error)) => Ok(Err(error.clone())),
        _ => limits.within(|| patch::confirmed(found, args, input, answer, &limits)),
    };
    let patches = patches.unwrap_or_else(|what| Err(WriteError::Unknown(Reason::Exhausted(what))));
    drop(meter);
    let name = args.write.as_ref().map_or("--diff".to_owned(), |path| path.display().to_string());
    match patches {
        Ok(patches) => {
            if args.diff {
                output.print_content(&patch::unified(&patches));
            }
            match args.write.as_deref().map(|path| patch::write(path, input, &patches)) {
                Some(Err(error)) => {
                    output.complain_about(&name, error);
                    Exit::Error
                }
                _ => Exit::Fine,
            }
        }
        Err(WriteError::NoSet) => {
            if output.detail != Detail::Quiet {
                let name = report::visible(&name);
                output.complain(&format!("{name}: not written, there are no fences to insert\n"));
            }
            Exit::Fine
        }
        Err(error) => {
            let (problem, exit) = not_written(error, input, output);
            if let Some(problem) = problem {
                output.complain_about(&name, problem);
            }
            exit
        }
    }
}

/// Why the fences were not written, unless that was printed, and how the command ends.
fn not_written(error: WriteError, input: &Input, output: &Output) -> (Option<Diagnostic>, Exit) {
    let is_c = input.c.is_some();
    let (problem, exit) = match error {
        WriteError::NoSet => unreachable!("this is not an error"),
        WriteError::Compiled => {
            let (message, help) = match input.language {
                InputLanguage::Rust => (
                    "not written: fences can be written into C, but not into Rust",
                    "insert them into the source at the lines above: \
                     std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst)",
                ),
                _ => (
                    "not written: fences can be written into C, but not into LLVM IR",
                    "insert them into the source at the lines above: atomic_thread_fence(memory_order_seq_cst)",
                ),
            };
            (Diagnostic::error("compiled-language", message).help(help), Exit::Error)
        }
        WriteError::NoRoom(problems) => {
            output.complain(&output.diagnostics(&input.source, &problems));
            return (None, Exit::Error);
        }
        WriteError::SomeInstances(process) => {
            let message = format!(
                "not written: a fence is needed in `{process}` but not in the other instances of its process"
            );
            let error = Diagnostic::error("some-instances", message);
            (error.help("use --per source, or write the condition by hand"), Exit::Error)
        }
        WriteError::Unknown(reason) => {
            let message =
                format!("not written: the program with the fences could not be checked again: {reason}");
            (Diagnostic::error("not-verified", message), Exit::Unknown)
        }
        WriteError::NotReadable(refused) => {
            output.complain(&output.diagnostics(&refused.source, &refused.diagnostics));
            match is_c {
                true => (misplaced("does not compile"), Exit::Error),
                false => (bug("the program with the fences cannot be read"), Exit::Error),
            }
        }
        WriteError::NotRight if is_c => (misplaced("is still wrong"), Exit::Error),
        WriteError::NotRight => (bug("the program with the fences is not correct"), Exit::Error),
        WriteError::Ask(error) => (failure(&FencesError::Ask(error)), Exit::Error),
    };
    (Some(problem), exit)
}

/// A macro can hide where a statement of C begins and ends.
fn misplaced(what: &str) -> Diagnostic {
    let message =
        format!("not written: the fences cannot be placed here, because the program with them {what}");
    Diagnostic::error("no-room-for-fence", message)
        .help("a macro in these lines may contain several statements: insert the fences by hand")
}

fn bug(message: &str) -> Diagnostic {
    let help = "this is a bug in Palisade: please report it with the program";
    Diagnostic::error("internal-error", format!("not written: {message}")).help(help)
}

pub fn failure(error: &FencesError) -> Diagnostic {
    let id = match error {
        FencesError::NoSuchPlace(_) => "no-such-place",
        FencesError::Ask(error) => error.id(),
        FencesError::Exhausted(_) => unreachable!("running out is an answer"),
    };
    Diagnostic::error(id, error.to_string())
}
