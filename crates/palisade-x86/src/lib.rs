//! Machine code for x86-64, turned into LLVM IR.
//!
//! *Problem.* What runs is not the source program but what the compiler made of it. An object file says exactly which
//! instructions run, and which accesses to memory they make.
//!
//! *How.* [`lift`] reads ELF object files and assembly as gcc, clang and rustc write them:
//! 1. `image` reads sections, symbols and relocations of object files, `lines` the lines of the source program. `text` turns
//!    assembly into the same.
//! 2. `decode` follows control through each function; `liveness` finds out which registers functions take and change.
//! 3. `emit` writes each function as LLVM IR: registers and flags are local variables, parts of the stack frame are
//!    objects, and each instruction makes its accesses to memory in its order. `data` writes the variables.
//! 4. `listing` writes what people see: one line per instruction.
//!
//! *Guarantee.* Every access to memory of the instructions is there, with its size, and nothing is assumed about the
//! compiler. Whatever is relied on is checked: that functions restore the registers that their callers keep values in,
//! that the stack pointer is known, and that nothing is used that a called function may have changed. What is not
//! understood is refused, with the place, if control can reach it.
//!
//! What is absent: nothing here knows about memory models, reads files or prints.

mod data;
mod decode;
mod dump;
mod emit;
mod frame;
mod image;
mod library;
mod lines;
mod listing;
mod liveness;
mod mutexes;
mod names;
mod program;
mod registers;
mod state;
mod text;

use emit::{Interface, Shared};
use image::Image;
use listing::Listing;
use liveness::Liveness;
use names::{Names, quoted};
use palisade_base::Diagnostic;
use palisade_llvm::MACHINE_CODE;
use program::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// An object file as LLVM IR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lifted {
    /// One line per instruction, or the text of assembly. Places in the module are places in this text.
    pub listing: String,
    /// The module.
    pub module: String,
}

/// A file of a program: its name, and what is in it.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// The name that answers use.
    pub name: &'a str,
    /// What is in it.
    pub contents: Contents<'a>,
}

/// What is in a file.
#[derive(Clone, Copy, Debug)]
pub enum Contents<'a> {
    /// An object file.
    Object(&'a [u8]),
    /// Assembly in AT&T syntax.
    Assembly(&'a str),
}

impl File<'_> {
    fn read(&self) -> Result<Image, Vec<Diagnostic>> {
        match self.contents {
            Contents::Object(bytes) => Image::read(self.name, bytes)
                .map_err(|why| vec![Diagnostic::error("object-file", why).help(HELP)]),
            Contents::Assembly(text) => text::read(self.name, text),
        }
    }

    /// The file, if it can be followed.
    fn followed(&self) -> Result<Image, Vec<Diagnostic>> {
        let mut image = self.read()?;
        image.has_no_constructors().map_err(|why| vec![Diagnostic::error("object-file", why)])?;
        image.close_functions();
        Ok(image)
    }
}

/// What a file defines, as text: sections, relocations and symbols. Two files with the same text are the same program.
///
/// # Errors
/// Why the file cannot be read.
pub fn dump(file: &File<'_>) -> Result<String, Vec<Diagnostic>> {
    file.read().map(|image| dump::text(&image))
}

/// Turns the files of a program into LLVM IR.
///
/// # Errors
/// The index of the file that cannot be read, and why. Places are places in the text of assembly.
pub fn lift(files: &[File<'_>]) -> Result<Vec<Lifted>, (usize, Vec<Diagnostic>)> {
    let mut images = Vec::new();
    for (index, file) in files.iter().enumerate() {
        images.push(file.followed().map_err(|refused| (index, refused))?);
    }
    let program = Program::new(images);
    let names = Names::new(&program);
    if let Some((unit, variable)) = mutexes::of_another_kind(&program, &names) {
        let why = format!(
            "the variable `{variable}` may hold a mutex that is recursive or checks for errors from the start, and \
             machine code does not tell"
        );
        let help = "initialise the mutex with `pthread_mutex_init`";
        return Err((unit, vec![Diagnostic::error("object-file", why).help(help)]));
    }
    let listings: Vec<Listing> = program.units.iter().map(Listing::new).collect();
    let mut lines = BTreeMap::new();
    for (unit, listing) in listings.iter().enumerate() {
        lines.extend(listing.lines.iter().map(|(place, line)| ((unit, *place), *line)));
    }
    // What is pushed only makes room on the stack, until a function turns out to use it.
    let mut pushing = BTreeSet::new();
    loop {
        let liveness = Liveness::new(&program, pushing.clone());
        let found = program.ids().map(|id| (id, Interface { result: 64, stack_arguments: 0, pushes: false }));
        let mut shared = Shared {
            program: &program,
            liveness: &liveness,
            names: &names,
            found: found.collect(),
            declared: BTreeMap::new(),
            external: BTreeSet::new(),
            lines: lines.clone(),
            locations: BTreeMap::new(),
        };
        settle(&mut shared);
        let before = pushing.len();
        pushing.extend(shared.found.iter().filter(|(_, found)| found.pushes).map(|(id, _)| *id));
        if pushing.len() == before {
            return Ok(modules(&mut shared, listings));
        }
    }
}

/// Finds out what functions return and take, which follows from what the functions that they call return and take.
fn settle(shared: &mut Shared<'_>) {
    let mut rounds = 0;
    loop {
        let before = shared.found.clone();
        for id in shared.program.ids() {
            let (_, found) = emit::function(shared, id);
            let known = shared.found.get_mut(&id).expect("all functions are there");
            // Less is returned and more is taken from round to round, so that this ends.
            known.result = known.result.min(found.result);
            known.stack_arguments = known.stack_arguments.max(found.stack_arguments);
            known.pushes |= found.pushes;
        }
        rounds += 1;
        if shared.found == before || rounds > 100 + 8 * shared.found.len() {
            return;
        }
    }
}

/// The modules of all files.
fn modules(shared: &mut Shared<'_>, listings: Vec<Listing>) -> Vec<Lifted> {
    let mut lifted = Vec::new();
    for (unit, listing) in listings.into_iter().enumerate() {
        shared.declared.clear();
        shared.external.clear();
        shared.locations.clear();
        let module = module(shared, unit, &listing);
        lifted.push(Lifted { listing: listing.text, module });
    }
    lifted
}

const HELP: &str = "give an object file for x86-64 Linux, as `cc -c` writes it";

/// The module of one object file.
fn module(shared: &mut Shared<'_>, unit: usize, listing: &Listing) -> String {
    let mut functions = String::new();
    let ids: Vec<_> = shared.program.ids().filter(|id| id.unit == unit).collect();
    for &id in &ids {
        let (text, _) = emit::function(shared, id);
        functions.push_str(&text);
        for (alias, ..) in &shared.program.function(id).aliases {
            let name = quoted(shared.names.function(id));
            writeln!(functions, "{} = alias i64 (), ptr {name}", quoted(alias)).expect("writing to a string");
        }
    }
    let (mut external, mut declared) =
        (std::mem::take(&mut shared.external), std::mem::take(&mut shared.declared));
    let variables = data::variables(shared.program, shared.names, unit, &mut external, &mut declared);
    let image = &shared.program.units[unit].image;
    let mut out = format!("target triple = \"{MACHINE_CODE}\"\n{variables}");
    let own = |name: &str| {
        shared.names.variables(unit).values().any(|variable| variable.name == name)
            || ids.iter().any(|id| shared.names.function(*id) == name)
    };
    for name in external.iter().filter(|name| !own(name) && !declared.contains_key(*name)) {
        writeln!(out, "{} = external global i64", quoted(name)).expect("writing to a string");
    }
    // Functions that other units define.
    for id in shared.program.ids().filter(|id| id.unit != unit && shared.program.function(*id).global) {
        let name = shared.names.function(id);
        let summary = shared.liveness.summary(id);
        let count = summary.parameters + shared.found[&id].stack_arguments;
        let result = if summary.pair { "{ i64, i64 }" } else { "i64" };
        let used = functions.contains(&quoted(name)) || out.contains(&quoted(name));
        if used && !own(name) && !declared.contains_key(name) {
            let list = vec!["i64"; count].join(", ");
            writeln!(out, "declare {result} {}({list})", quoted(name)).expect("writing to a string");
        }
    }
    for (name, ty) in declared.iter().filter(|(name, _)| !own(name)) {
        let (result, list) = ty.split_once(' ').unwrap_or((ty, "()"));
        writeln!(out, "declare {result} {}{list}", quoted(name)).expect("writing to a string");
    }
    out.push_str(&functions);
    let file = image.name.replace(['"', '\\'], "?");
    out.push_str("!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2}\n");
    out.push_str("!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)\n");
    writeln!(out, "!1 = !DIFile(filename: \"{file}\", directory: \"\")").expect("writing to a string");
    out.push_str(
        "!2 = !{i32 2, !\"Debug Info Version\", i32 3}\n!3 = !DISubroutineType(types: !4)\n!4 = !{}\n",
    );
    for id in ids {
        let function = shared.program.function(id);
        let line = listing.functions.get(&function.entry).copied().unwrap_or(1);
        let name = function.name.replace(['"', '\\'], "?");
        writeln!(
            out,
            "!{} = distinct !DISubprogram(name: \"{name}\", scope: !1, file: !1, line: {line}, type: !3, \
             spFlags: DISPFlagDefinition, unit: !0)",
            shared.names.subprogram(id)
        )
        .expect("writing to a string");
    }
    let mut locations: Vec<_> = shared.locations.iter().map(|(place, number)| (*number, *place)).collect();
    locations.sort_unstable();
    for (number, (line, subprogram)) in locations {
        writeln!(out, "!{number} = !DILocation(line: {line}, column: 1, scope: !{subprogram})")
            .expect("writing to a string");
    }
    out
}
