//! Programs written down for other tools: Promela for Spin, C with POSIX threads.
//!
//! What is exported is the program under sequential consistency: the running form of [`palisade_program`], step for step. So the order of loads,
//! short-circuit evaluation and what is atomic are those of [`palisade_program::lower()`], and not decided a second time here.
//!
//! *Guarantee.* The exported program reaches a violated assertion exactly if the program reaches a bad state under SC. What the other language cannot say
//! is refused with its place in the source.
//!
//! *Reading order*: `watch` and `observed` (what properties see), `routine` (the code), `structure` (as nested text), `expression`, `memory` and
//! `step` (what both languages share), then `promela` and `c`.

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
mod watch;

use palisade_base::{Diagnostic, Source};
use palisade_program::running::{Role, System};
use palisade_program::written::{Count, Program, Start};
use palisade_program::{Instantiation, print};

/// A program to be written down.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// A valid program.
    pub program: &'a Program,
    /// What it was read from, for comments.
    pub source: &'a Source,
    /// What the first comment says.
    pub heading: &'a str,
    /// How many processes each template gets, if not as many as declared.
    pub threads: Option<u32>,
}

/// Languages to export to.
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
    /// The program in another language, or all that it cannot say.
    pub fn to(&self, target: Target) -> Result<String, Vec<Diagnostic>> {
        if target == Target::Pal {
            return Ok(print::print(self.program));
        }
        let problems = self.any_number();
        if !problems.is_empty() {
            return Err(problems);
        }
        match target {
            Target::Pal => unreachable!("printed above"),
            Target::Promela => promela::write(self),
            Target::C => c::write(self),
        }
    }

    fn instantiation(&self) -> Instantiation {
        Instantiation { any: 0, every: self.threads }
    }

    /// Templates whose number of processes is open.
    fn any_number(&self) -> Vec<Diagnostic> {
        if self.threads.is_some() {
            return Vec::new();
        }
        let open = |start: Start, count: Count| start == Start::Initially && count == Count::Any;
        let templates = self.program.templates.iter().filter(|template| open(template.start, template.count));
        templates
            .map(|template| {
                let message = format!("there may be any number of processes `{}`", template.name);
                Diagnostic::error("any-number", message)
                    .at(template.origin.0, "")
                    .help("say how many there are to be with --threads N")
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
