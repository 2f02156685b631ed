//! From text to a program, with the bounds that the user sets on integers.

use crate::c::CProgram;
use crate::language::InputLanguage;
use palisade_base::{Diagnostic, Source};
use palisade_engine::{Threads, any_number_of_several};
use palisade_program::Value;
use palisade_program::written::{Block, Domain, Outside, Program, StmtKind, Type};
use palisade_report::Colour;
use palisade_syntax::Language;
use std::fmt;
use std::str::FromStr;

/// A program that was read and is valid.
#[derive(Clone, Debug)]
pub struct Input {
    /// What it was read from.
    pub source: Source,
    /// Its language.
    pub language: InputLanguage,
    /// The program.
    pub program: Program,
    /// Warnings about it.
    pub warnings: Vec<Diagnostic>,
    /// The range that integers without a declared domain were limited to.
    pub int_range: Option<IntRange>,
    /// How it was made, if it is a C program.
    pub c: Option<Box<CProgram>>,
}

/// How many threads there are with `--threads N`. In a program with identities, that is the number of processes with
/// identities, and the others are there as declared.
pub fn threads_of_each(program: &Program, count: u32) -> String {
    let threads = if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
    match &program.identities {
        Some(identities) => format!("{threads} of {}", identities.process),
        None => format!("{threads} of each process"),
    }
}

impl Input {
    /// What was given for the program on the command line and answers depend on, in words: values of constants, the
    /// number of threads, and the range of integers. C programs have an assumption about their threads instead.
    pub fn terms(&self, threads: Threads) -> Option<String> {
        let threads = match threads {
            _ if self.c.is_some() => None,
            Threads::Declared => None,
            Threads::Several => Some("any number of threads".to_owned()),
            Threads::Any => Some("any number of threads of each process".to_owned()),
            Threads::Each(count) => Some(threads_of_each(&self.program, count)),
        };
        let constants = self.source.constants().iter().map(|(name, value)| format!("{name} = {value}"));
        let range = self.int_range.map(|range| format!("integers in {range}"));
        let terms: Vec<String> = constants.chain(threads).chain(range).collect();
        (!terms.is_empty()).then(|| format!("with {}", terms.join(", ")))
    }
}

impl Input {
    /// The program with any number of instances of each process that is declared with several. Refused if there is no
    /// such process, or if properties refer to instances in a way that needs their number.
    pub fn with_any_number_of_several(mut self) -> Result<Input, Refused> {
        if !any_number_of_several(&mut self.program) {
            let message =
                "no process is declared with several instances, so `--threads any` would change nothing";
            let help = "`--threads any=all` takes every process any number of times; in `.pal`, `process P[*]` declares any number";
            let error = Diagnostic::error("declared-once", message).help(help);
            return Err(Refused { source: self.source, diagnostics: vec![error] });
        }
        let diagnostics = palisade_program::validate(&self.program);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Refused { source: self.source, diagnostics });
        }
        Ok(self)
    }

    /// The program with this number of processes with identities, if it has any. Refused if it refers to one that is not
    /// there then.
    pub fn with_identities(mut self, number: u32) -> Result<Input, Refused> {
        if !self.program.has_other_identities(number) {
            return Ok(self);
        }
        self.program = self.program.with_identities(number);
        let diagnostics = palisade_program::validate(&self.program);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Refused { source: self.source, diagnostics });
        }
        Ok(self)
    }
}

/// A source that is not a valid program.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What was read.
    pub source: Source,
    /// What is wrong with it: at least one error.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = palisade_report::diagnostics(&self.source, &self.diagnostics, usize::MAX, Colour::Never);
        f.write_str(text.trim_end())
    }
}

impl std::error::Error for Refused {}

/// A range for the integers without a declared domain. Both ends are included.
///
/// A process that would put another value into a variable or register is blocked. So what is found within the
/// range is real, and what is proved holds within the range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IntRange {
    /// The smallest value.
    pub lo: Value,
    /// The largest value.
    pub hi: Value,
}

impl fmt::Display for IntRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.lo, self.hi)
    }
}

impl FromStr for IntRange {
    type Err = String;

    fn from_str(text: &str) -> Result<IntRange, String> {
        let (lo, hi) = text.split_once("..").ok_or("a range is written LO..HI, e.g. -1..7")?;
        let number = |text: &str| {
            text.trim().parse::<Value>().map_err(|_| format!("`{}` is not a 64-bit integer", text.trim()))
        };
        let range = IntRange { lo: number(lo)?, hi: number(hi)? };
        if range.lo > range.hi {
            return Err(format!("the range {range} is empty"));
        }
        Ok(range)
    }
}

/// Reads a program.
pub fn read(source: Source, language: Language, int_range: Option<IntRange>) -> Result<Input, Refused> {
    let parsed = match palisade_syntax::parse(language, &source) {
        Ok(parsed) => parsed,
        Err(diagnostics) => return Err(Refused { source, diagnostics }),
    };
    let mut program = parsed.program;
    let mut warnings = parsed.warnings;
    if let Some(range) = int_range {
        bound(&mut program, range);
        let diagnostics = palisade_program::validate(&program);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Refused { source, diagnostics });
        }
        warnings
            .extend(diagnostics.into_iter().filter(|found| !warnings.contains(found)).collect::<Vec<_>>());
    }
    Ok(Input { source, language: language.into(), program, warnings, int_range, c: None })
}

/// Gives this range to every variable, register, parameter and result without a declared domain.
pub(crate) fn bound(program: &mut Program, range: IntRange) {
    let bound = |ty: &mut Type| {
        if ty.domain == Domain::Int {
            *ty = Type { domain: Domain::Range { lo: range.lo, hi: range.hi }, outside: Outside::Block };
        }
    };
    program.shared.iter_mut().for_each(|shared| bound(&mut shared.ty));
    for procedure in &mut program.procedures {
        procedure.params.iter_mut().for_each(|param| bound(&mut param.ty));
        procedure.result.iter_mut().for_each(bound);
        bound_block(&mut procedure.body, &bound);
    }
    for template in &mut program.templates {
        bound_block(&mut template.body, &bound);
    }
}

/// The same for the registers declared in a block. The parsers limit how deep blocks nest.
fn bound_block(block: &mut Block, bound: &dyn Fn(&mut Type)) {
    for statement in block {
        if let StmtKind::Let { ty, .. } = &mut statement.kind {
            bound(ty);
        }
        statement.kind.blocks_mut().into_iter().for_each(|inner| bound_block(inner, bound));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let check =
            |text: &str, expected: Result<(Value, Value), &str>| match (text.parse::<IntRange>(), expected) {
                (Ok(range), Ok((lo, hi))) => assert_eq!(range, IntRange { lo, hi }),
                (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
                (found, _) => panic!("{text}: {found:?}"),
            };
        check("0..7", Ok((0, 7)));
        check("-3..-1", Ok((-3, -1)));
        check("7", Err("LO..HI"));
        check("1..x", Err("`x` is not"));
        check("0..99999999999999999999", Err("not a 64-bit integer"));
        check("5..1", Err("is empty"));
    }
}
