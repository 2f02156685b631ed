//! Programs exported for other tools: Promela for Spin, and C with POSIX threads.
//!
//! The exported program is the program under sequential consistency: the running form of
//! [`palisade_program`], step for step. So [`palisade_program::lower()`] determines the order of loads,
//! short-circuit evaluation and what is atomic. None of this is decided a second time here.
//!
//! *Guarantee.* The exported program reaches a violated assertion exactly if the program reaches a bad state
//! under SC. A program that the other language cannot express is refused, with the position in the source.
//!
//! *Reading order*: `watch` and `observed` (what properties observe), `routine` (the code), `structure` (code
//! as nested text), `expression`, `memory`, `step` and `uses` (what both languages share), then `promela` and
//! `c`.

mod c;
mod expression;
mod memory;
mod names;
mod observed;
mod promela;
mod ranges;
mod refuse;
mod routine;
mod step;
mod structure;
mod text;
mod uses;
mod watch;
mod wrap;

use palisade_base::{Diagnostic, Source};
use palisade_program::running::{Role, System};
use palisade_program::written::{Count, Program, Start};
use palisade_program::{Instantiation, print};

/// A program to export.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// A valid program.
    pub program: &'a Program,
    /// The source it was read from, for comments.
    pub source: &'a Source,
    /// The text of the first comment.
    pub heading: &'a str,
    /// The number of processes of each template, if not as declared.
    pub threads: Option<u32>,
}

/// The languages to export to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// Palisade's own.
    Pal,
    /// The language of Spin.
    Promela,
    /// C11 with POSIX threads.
    C,
}

impl Export<'_> {
    /// The program in another language, or all reasons why the language cannot express it.
    pub fn to(&self, target: Target) -> Result<String, Vec<Diagnostic>> {
        if target == Target::Pal {
            return Ok(print::print(self.program));
        }
        let mut problems = self.any_number();
        if self.program.has_plain() {
            let message = "plain accesses, and the question whether they race, cannot be exported";
            problems.push(Diagnostic::error("plain-access", message));
        }
        if let Some(span) = self.program.chosen_address() {
            let message = "variables with chosen addresses cannot be exported";
            problems.push(Diagnostic::error("chosen-address", message).at(span, ""));
        }
        if let Some(span) = self.program.word_operator() {
            let message = "operators on 64-bit words cannot be exported";
            problems.push(Diagnostic::error("machine-words", message).at(span, ""));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        match target {
            Target::Pal => unreachable!("handled above"),
            Target::Promela => promela::write(self),
            Target::C => c::write(self),
        }
    }

    fn instantiation(&self) -> Instantiation {
        Instantiation { any: 0, every: self.threads }
    }

    /// Errors for templates without a fixed number of processes.
    fn any_number(&self) -> Vec<Diagnostic> {
        if self.threads.is_some() {
            return Vec::new();
        }
        let open = |start: Start, count: Count| start == Start::Initially && count == Count::Any;
        let templates = self.program.templates.iter().filter(|template| open(template.start, template.count));
        templates
            .map(|template| {
                let message = format!("the number of `{}` processes is not fixed", template.name);
                Diagnostic::error("any-number", message)
                    .at(template.origin.0, "")
                    .help("set the number with --threads N")
            })
            .collect()
    }
}

/// A name for a role: `P_0` for `P(0)`.
fn role_name(system: &System, role: &Role) -> String {
    let mut name = system.templates[role.template].name.clone();
    for arg in &role.args {
        name.push_str(&format!("_{arg}").replace('-', "minus_"));
    }
    name
}
