//! `palisade fences --minimise`: which fences and orders of a C program are unnecessary.

use crate::args::{FencesArgs, ReadingArgs};
use crate::c::read_patched;
use crate::exit::Exit;
use crate::fences::failure;
use crate::files::{InputFile, Reading};
use crate::meter::Meter;
use crate::output::{Detail, Output};
use crate::patch;
use palisade::c::FilePatch;
use palisade::engine::Exhausted;
use palisade::report::{self, Report, Standing};
use palisade::{Deadlocks, Diagnostic, FencesError, FencesOptions, Input, InputLanguage, Limits};

/// Runs the command for one program.
pub fn minimise(
    found: &InputFile,
    args: &FencesArgs,
    input: &Input,
    options: &FencesOptions,
    limits: &Limits,
    output: &Output,
) -> Result<Exit, Exhausted> {
    if input.language != InputLanguage::C {
        let error = Diagnostic::error("c-option", "--minimise is for C programs");
        return Ok(output.refuse_about("--minimise", error.help("remove fences by hand, and check again")));
    }
    // What is left at the end is not the question.
    let mut reading: ReadingArgs = args.reading.clone();
    reading.c.no_leaks = true;
    let compile = |patches: &[FilePatch]| match read_patched(found, input.language, &reading, patches) {
        Reading::Program(program) => Ok(program),
        Reading::Refused(refused) => Err(refused),
        Reading::Skipped => unreachable!("files that are named are not skipped"),
    };
    let program = match compile(&[]) {
        Ok(program) => program,
        Err(refused) => return Ok(output.refuse(&refused)),
    };
    let mut options = options.clone();
    options.check.deadlocks = Deadlocks::IfStated;
    let meter = Meter::new(output.detail == Detail::Quiet);
    let watched = limits.clone().with_progress(meter.progress());
    let answer = limits.within(|| palisade::minimise(&program, &options, &compile, &watched))?;
    drop(meter);
    let answer = match answer {
        Ok(answer) => answer,
        Err(FencesError::Exhausted(what)) => return Err(what),
        Err(error) => {
            return Ok(output.refuse_about(input.source.name(), failure(&error)));
        }
    };
    output.warn(&program);
    let finding = answer.finding(&program);
    output.print(&output.rendered(&finding));
    match finding.standing() {
        Standing::Good => {}
        Standing::Bad => return Ok(Exit::Violated),
        Standing::Open => return Ok(Exit::Unknown),
    }
    if !args.diff && args.write.is_none() {
        return Ok(Exit::Fine);
    }
    let name = args.write.as_ref().map_or("--diff".to_owned(), |path| path.display().to_string());
    let Some(patches) = answer.patches(&program) else {
        if output.detail != Detail::Quiet {
            output.complain(&format!("{}: not written, nothing is unnecessary\n", report::visible(&name)));
        }
        return Ok(Exit::Fine);
    };
    let patches: Vec<FilePatch> = patches.into_iter().map(patch::as_on_disk).collect();
    if args.diff {
        output.print_content(&patch::unified(&patches));
    }
    match args.write.as_deref().map(|path| patch::write(path, &program, &patches)) {
        Some(Err(error)) => {
            output.complain_about(&name, error);
            Ok(Exit::Error)
        }
        _ => Ok(Exit::Fine),
    }
}
