//! C programs: compiled to LLVM IR elsewhere, translated here with as much room as they need.
//!
//! - [`read_c`] turns modules into an [`Input`]. How many threads and objects there has to be room for is first
//!   guessed from one run on the trusted machine (`guess.rs`).
//! - [`check_input`] asks whether the program is safe (`check.rs`). Where a run exceeds the room, the program is
//!   translated again with more, up to a maximum.
//! - `words.rs` and `places.rs` express runs in terms of C and its source lines.

mod any;
mod check;
mod exit;
mod finish;
mod guess;
mod limits;
mod patch;
mod places;
mod stronger;
#[cfg(test)]
mod tests;
mod tokens;
mod weaker;
mod words;

pub use check::{Unsettled, check_input, robust_input, settle, triangular_input};
pub use exit::is_about_the_end;
pub use finish::state_finish;
pub use limits::{MAX_HEAP, MAX_SLOTS};
pub use palisade_c::{Aim, Roots, Slots};
pub use patch::FilePatch;
pub(crate) use patch::{change, insert};
pub use places::{FileNames, beyond_its_end};
pub(crate) use stronger::{becomes, replacement, stronger};
pub use weaker::Weakening;
pub(crate) use weaker::{Rendering, for_the_compiler, places_after, statements, weakened, weakenings};

use crate::language::InputLanguage;
use crate::{Input, Refused};
use limits::Room;
use palisade_base::{Diagnostic, Source, Span};
use palisade_c::{Allocation, Finish, Identity, Note, Options, Thread, Translation};
use palisade_llvm::Module;
use palisade_program::print;
use palisade_program::written::Program;
use palisade_trace::{Addresses, BuildRecord, FunctionsRecord, Replay, text_hash};
use places::SourcePlaces;
use std::fmt;
use std::sync::Arc;
use words::CWords;

/// A program as the compiler gave it.
#[derive(Clone, Debug)]
pub struct Compilation {
    /// The user's files, the main file first.
    pub source: Source,
    /// The names of these files.
    pub files: FileNames,
    /// What the main file is written in.
    pub language: InputLanguage,
    /// The translation units.
    pub modules: Vec<Module>,
    /// The version that the compiler printed.
    pub compiler: String,
    /// Its arguments besides the file.
    pub arguments: Vec<String>,
    /// How to translate the program.
    pub options: COptions,
}

/// How to translate a C program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct COptions {
    /// Where execution starts.
    pub roots: Roots,
    /// How many threads there is room for. If this is not given, as many as are needed, up to [`MAX_SLOTS`].
    pub slots: Option<Slots>,
    /// How many objects there is room for. If this is not given, as many as are needed, up to [`MAX_HEAP`].
    pub heap: Option<u32>,
    /// Whether data races are errors.
    pub races: bool,
    /// Whether to check that the program can always finish.
    pub finish: bool,
    /// Whether to check what is left when the program ends.
    pub exit: bool,
    /// Whether the last values of all globals can be seen, including those that only one thread accesses.
    pub keep_globals: bool,
    /// Whether runs that exceed the room are left out. Only for replaying such runs.
    pub within_limits: bool,
    /// Whether there is any number of the threads that run the same function.
    pub any_threads: bool,
    /// What is asked about the program. [`Aim::Progress`] is only for replaying runs: other questions need the
    /// program with all its runs.
    pub aim: Aim,
    /// The test of a Rust program that runs instead of `main`.
    pub test: Option<String>,
}

impl Default for COptions {
    fn default() -> COptions {
        COptions {
            roots: Roots::Main,
            slots: None,
            heap: None,
            races: true,
            finish: true,
            exit: true,
            keep_globals: false,
            within_limits: false,
            any_threads: false,
            aim: Aim::Safety,
            test: None,
        }
    }
}

/// How an [`Input`] was made from C, and what is needed to make it again with more room.
#[derive(Clone, Debug)]
pub struct CProgram {
    recipe: Arc<Recipe>,
    room: Room,
    words: Arc<CWords>,
    /// What it means for the program to finish.
    finish: Finish,
    /// Whether waits on condition variables can end spuriously.
    spurious: bool,
    /// Whether a thread may still run when `main` returns, as far as the text says.
    outlives: bool,
    /// Whether an assertion of the program always holds, so that nothing is left of it.
    asserted: bool,
    /// Whether it allocates memory.
    allocates: bool,
    /// For [`Aim::Exit`], what it may allocate, if that is followed.
    allocations: Option<Vec<Allocation>>,
    /// Its threads, in the order of the instances of the processes.
    threads: Vec<Thread>,
    /// What an answer about the program rests on, one sentence each.
    pub notes: Vec<String>,
    /// What every answer about the program, positive or not, assumes.
    pub circumstances: Vec<String>,
    /// How the program was made.
    pub build: BuildRecord,
}

/// What makes the program with a given amount of room, for a kind of question.
type Translator = dyn Fn(Room, Aim, Identity) -> Result<Translation, Vec<Diagnostic>> + Send + Sync;

/// What is needed to make a program.
struct Recipe {
    source: Source,
    language: InputLanguage,
    compiler: String,
    arguments: Vec<String>,
    options: COptions,
    translator: Arc<Translator>,
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipe").field("file", &self.source.name()).finish_non_exhaustive()
    }
}

impl CProgram {
    /// Whether to check that the program can always finish.
    pub fn asks_finish(&self) -> bool {
        self.recipe.options.finish && !self.any_threads()
    }

    /// Whether there is any number of the threads that run the same function.
    fn any_threads(&self) -> bool {
        self.recipe.options.any_threads
    }

    /// Whether an assertion of the program always holds, so that nothing is left of it.
    pub(crate) fn asserted(&self) -> bool {
        self.asserted
    }

    /// What addresses mean in it.
    pub fn addresses(&self) -> &dyn Addresses {
        &*self.words
    }

    pub(crate) fn shared_addresses(&self) -> Arc<dyn Addresses> {
        self.words.clone()
    }
}

/// Reads a C program. If the room is not given, it is guessed.
pub fn read_c(compilation: Compilation) -> Result<Input, Refused> {
    let Compilation { source, files, language, modules, compiler, arguments, options } = compilation;
    let text = source.clone();
    let (roots, races, keep_globals) = (options.roots.clone(), options.races, options.keep_globals);
    let translator = move |room: Room, aim: Aim, identity: Identity| {
        let places = SourcePlaces { source: &text, files: &files };
        let (slots, pool, roots) = (room.slots, room.heap, roots.clone());
        // Races are found by the other question.
        let races = races && aim == Aim::Safety;
        let options = Options { slots, pool, aim, races, keep_globals, roots, identity };
        palisade_c::translate(&modules, &places, &options)
    };
    let translator = Arc::new(translator);
    make(Recipe { source, language, compiler, arguments, options, translator })
}

/// Makes a program with as much room as a run of it needs.
fn make(recipe: Recipe) -> Result<Input, Refused> {
    let recipe = Arc::new(recipe);
    let options = &recipe.options;
    let start = Room {
        slots: options.slots.unwrap_or(guess::START.slots),
        heap: options.heap.unwrap_or(guess::START.heap),
    };
    let (program, c) = guess::with_room(start, &|room| recipe.translate(room, options.aim), options)?;
    let mut input = Input {
        source: recipe.source.clone(),
        language: recipe.language,
        program,
        warnings: Vec::new(),
        int_range: None,
        c: Some(Box::new(c)),
    };
    if options.within_limits {
        input.leave_out_runs_beyond_limits();
    }
    Ok(input)
}

impl Recipe {
    /// Translates the program with this much room, for a kind of question.
    fn translate(self: &Arc<Recipe>, room: Room, aim: Aim) -> Result<(Program, CProgram), Refused> {
        let refused = |diagnostics: Vec<Diagnostic>| Refused { source: self.source.clone(), diagnostics };
        let translate = |identity: Identity| (self.translator)(room, aim, identity);
        let translation = match self.options.any_threads {
            true => any::any_number(translate),
            false => translate(Identity::Known),
        };
        let translation = translation.map_err(refused)?;
        let found = palisade_program::validate(&translation.program);
        if found.iter().any(Diagnostic::is_error) {
            let of_palisade = |error: Diagnostic| {
                error.help("this is a bug in Palisade's translation of C: please report it with the program")
            };
            return Err(refused(found.into_iter().filter(Diagnostic::is_error).map(of_palisade).collect()));
        }
        let functions = match &self.options.roots {
            Roots::Main => None,
            Roots::Functions { init, threads, finally } => {
                Some(FunctionsRecord { init: init.clone(), threads: threads.clone(), last: finally.clone() })
            }
        };
        let build = BuildRecord {
            compiler: self.compiler.clone(),
            arguments: self.arguments.clone(),
            functions,
            test: self.options.test.clone(),
            slots: [room.slots.main, room.slots.nested],
            heap: room.heap,
            races: self.options.races && aim == Aim::Safety,
            within_limits: false,
            finish: matches!(aim, Aim::Progress | Aim::Both),
            any_threads: self.options.any_threads,
            digest: digest(&translation.program),
        };
        let c = CProgram {
            recipe: Arc::clone(self),
            room,
            words: Arc::new(CWords { objects: translation.objects, waits: translation.waits }),
            finish: translation.finish,
            spurious: translation.spurious,
            outlives: translation.outlives,
            asserted: translation.asserted,
            allocates: translation.allocates,
            allocations: translation.allocations,
            threads: translation.threads,
            notes: self.notes(translation.notes, &translation.uses_of_bits),
            circumstances: self.circumstances(translation.circumstances),
            build,
        };
        Ok((translation.program, c))
    }
}

/// At most this many places are named in one sentence.
const MAX_PLACES: usize = 3;

impl Recipe {
    /// What answers rest on.
    fn notes(&self, notes: Vec<Note>, uses_of_bits: &[Span]) -> Vec<String> {
        let mut notes: Vec<String> = notes.into_iter().map(|note| note.0).collect();
        let mut lines: Vec<String> =
            uses_of_bits.iter().filter_map(|span| self.source.line_in_words(*span)).collect();
        lines.dedup();
        let place = match lines.as_slice() {
            [] => String::new(),
            [line] => format!(" at {line}"),
            [others @ .., last] if lines.len() <= MAX_PLACES => {
                format!(" at {} and {last}", others.join(", "))
            }
            [first, ..] => format!(" at {first} and {} other places", lines.len() - 1),
        };
        if !uses_of_bits.is_empty() {
            notes.push(format!(
                "one layout of memory: what the program does depends on the bits or the order of addresses{place}"
            ));
        }
        notes
    }

    /// What answers assume.
    fn circumstances(&self, notes: Vec<Note>) -> Vec<String> {
        let mut all: Vec<String> = notes.into_iter().map(|note| note.0).collect();
        if let Some(test) = &self.options.test {
            all.push(format!("the program is the test `{}`", palisade_report::visible(test)));
        }
        if !self.arguments.is_empty() {
            let arguments: Vec<_> =
                self.arguments.iter().map(|argument| palisade_report::visible(argument)).collect();
            all.push(format!("the program is compiled with `{}`", arguments.join(" ")));
        }
        all
    }
}

fn digest(program: &Program) -> String {
    text_hash(&print::print(program))
}

impl Input {
    /// What addresses mean, if pointers are addresses of bytes.
    pub fn addresses(&self) -> Option<&dyn Addresses> {
        self.c.as_ref().map(|c| c.addresses())
    }

    /// What an answer about the program rests on, one sentence each.
    pub fn assumptions(&self) -> &[String] {
        self.c.as_ref().map_or(&[], |c| &c.notes)
    }

    /// What every answer about the program assumes, one sentence each.
    pub fn circumstances(&self) -> &[String] {
        self.c.as_ref().map_or(&[], |c| &c.circumstances)
    }

    /// Translates the program again, with this much room.
    fn translate_again(&mut self, room: Room) -> Result<(), Refused> {
        let Some(c) = &self.c else { return Ok(()) };
        let (program, c) = c.recipe.translate(room, c.recipe.options.aim)?;
        (self.program, self.c) = (program, Some(Box::new(c)));
        Ok(())
    }

    /// The program with the same room, for the question whether it can finish.
    pub fn for_progress(&self) -> Option<Result<Input, Refused>> {
        self.translated_for(Aim::Progress)
    }

    /// The program with as many threads as its source starts, if it is one with any number of them.
    fn with_threads_of_source(&self) -> Option<Result<Input, Refused>> {
        let c = self.c.as_ref().filter(|c| c.any_threads())?;
        let recipe = &c.recipe;
        let options = COptions { any_threads: false, ..recipe.options.clone() };
        let recipe = Arc::new(Recipe {
            source: recipe.source.clone(),
            language: recipe.language,
            compiler: recipe.compiler.clone(),
            arguments: recipe.arguments.clone(),
            options,
            translator: Arc::clone(&recipe.translator),
        });
        let translated = recipe.translate(c.room, recipe.options.aim);
        Some(translated.map(|(program, c)| Input { program, c: Some(Box::new(c)), ..self.clone() }))
    }

    /// The program with the same room, for another question.
    fn translated_for(&self, aim: Aim) -> Option<Result<Input, Refused>> {
        let c = self.c.as_ref()?;
        let translated = c.recipe.translate(c.room, aim);
        Some(translated.map(|(program, c)| Input { program, c: Some(Box::new(c)), ..self.clone() }))
    }

    /// The program without the runs that exceed the room, if it is a C program that has such runs.
    pub(crate) fn within_limits(&self) -> Option<Input> {
        self.c.as_ref().filter(|c| !c.build.within_limits)?;
        let mut within = self.clone();
        within.leave_out_runs_beyond_limits();
        Some(within)
    }

    /// Whether a run exceeds the parts of a C program that are followed.
    pub(crate) fn is_limit(&self, replay: &Replay) -> bool {
        let limit = self.c.as_ref().zip(replay.violation);
        limit.is_some_and(|(c, violation)| limits::Limit::of(violation, &c.words).is_some())
    }

    /// Leaves out the runs that exceed the room.
    fn leave_out_runs_beyond_limits(&mut self) {
        self.program = limits::within_limits(&self.program);
        if let Some(c) = &mut self.c {
            c.build.within_limits = true;
        }
    }
}
