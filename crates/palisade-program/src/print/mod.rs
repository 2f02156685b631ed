//! The printer: a program as `.pal` text.
//!
//! *Guarantee*: parsing the text gives the same program (equality ignores spans), and printing that gives the
//! same text. This holds for every valid program whose names are legal ([`is_legal_name`]) and whose nesting
//! stays below the parser's limits.
//!
//! Layout: four spaces per level, a blank line between items, as few parentheses as possible, and labels one
//! level to the left of their statement. Constants do not appear: the written form contains their values.

mod expr;
mod names;
mod stmt;

use names::Quoted;
pub use names::{RESERVED, is_legal_name, is_quotable_name};

use crate::written::{
    Count, Domain, Enum, Expr, ExprKind, Identities, Init, InitValue, Outside, Param, PlaceKind, Placement,
    Private, Procedure, Program, Progress, ProgressKind, Property, PropertyKind, Shared, Start, Template,
    Type,
};
use std::fmt::{self, Write};

/// The program as text.
pub fn print(program: &Program) -> String {
    let enums = program.enums.iter().map(|declared| Quoted(&declared.name).to_string()).collect();
    let mut printer = Printer { out: String::new(), level: 0, enums, identities: program.identities.clone() };
    if let Some(identities) = &program.identities {
        printer.enums[identities.which as usize] = "id or none".to_owned();
    }
    printer.program(program).expect("writing to a string does not fail");
    printer.out
}

/// Lines longer than this are broken where possible.
const WIDTH: usize = 100;

struct Printer {
    out: String,
    /// The indentation level of the current line.
    level: usize,
    /// The names of the enumerations.
    enums: Vec<String>,
    identities: Option<Identities>,
}

impl Printer {
    fn program(&mut self, program: &Program) -> fmt::Result {
        let which = program.identities.as_ref().map(|identities| identities.which as usize);
        let declared = program.enums.iter().enumerate().filter(|(index, _)| Some(*index) != which);
        let declared: Vec<&Enum> = declared.map(|(_, declared)| declared).collect();
        for declared in &declared {
            let values: Vec<String> = declared.values.iter().map(|value| Quoted(value).to_string()).collect();
            writeln!(self.out, "enum {} {{ {} }}", Quoted(&declared.name), values.join(", "))?;
        }
        if !declared.is_empty() && !program.shared.is_empty() {
            self.blank_line();
        }
        let mut rest = &program.shared[..];
        while let Some(first) = rest.first() {
            let together = rest.iter().take_while(|shared| declared_alike(first, shared)).count();
            rest = self.shared(rest, together)?;
        }
        let mut rest = &program.privates[..];
        if !rest.is_empty() {
            self.blank_line();
        }
        while let Some(first) = rest.first() {
            let together = rest.iter().take_while(|private| private.ty == first.ty).count();
            rest = self.privates(rest, together)?;
        }
        for procedure in &program.procedures {
            self.blank_line();
            self.procedure(procedure)?;
        }
        for template in &program.templates {
            self.blank_line();
            self.template(template)?;
        }
        if !program.properties.is_empty() || !program.progress.is_empty() {
            self.blank_line();
        }
        program.properties.iter().try_for_each(|property| self.property(property))?;
        program.progress.iter().try_for_each(|progress| self.progress(progress))
    }

    /// The number of processes of a template with identities.
    fn number_of(&self, template: &Template) -> Option<u32> {
        let identities = self.identities.as_ref();
        let identities = identities.filter(|identities| template.name.as_str() == &*identities.process);
        identities.map(|identities| identities.number)
    }

    /// Whether a variable has one cell per process.
    fn is_per_identity(&self, variable: &Shared) -> bool {
        self.identities.as_ref().is_some_and(|identities| identities.arrays.contains(&variable.name.text))
    }

    /// Separates an item from the previous one.
    fn blank_line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    /// Prints at most `together` of the first variables in one declaration, as many as fit on a line. Returns
    /// the others.
    fn shared<'p>(&mut self, variables: &'p [Shared], together: usize) -> Result<&'p [Shared], fmt::Error> {
        let Shared { ty, init, .. } = &variables[0];
        let start = self.out.len();
        self.out.push_str("shared ");
        let mut printed = 0;
        for variable in &variables[..together] {
            let name_at = self.out.len();
            if printed > 0 {
                self.out.push_str(", ");
            }
            write!(self.out, "{}", Quoted(&variable.name))?;
            match variable.len {
                Some(_) if self.is_per_identity(variable) => self.out.push_str("[id]"),
                Some(len) => write!(self.out, "[{len}]")?,
                None => {}
            }
            if let Some(Placement { address, step }) = variable.at {
                write!(self.out, " at {address}")?;
                if variable.len.is_some() {
                    write!(self.out, " step {step}")?;
                }
            }
            if printed > 0 && self.out.len() - start > WIDTH - 20 {
                self.out.truncate(name_at);
                break;
            }
            printed += 1;
        }
        write!(self.out, "{}", Annotation(*ty, &self.enums))?;
        match init {
            Init::Every(InitValue::Const(Expr { kind: ExprKind::Int(0), .. })) => {}
            Init::Every(value) => write!(self.out, " = {}", Initial(value))?,
            Init::Each(values) => {
                self.out.push_str(" = [");
                for (i, value) in values.iter().enumerate() {
                    write!(self.out, "{}{}", if i > 0 { ", " } else { "" }, Initial(value))?;
                }
                self.out.push(']');
            }
        }
        self.out.push_str(";\n");
        Ok(&variables[printed..])
    }

    /// The same for private variables.
    fn privates<'p>(
        &mut self,
        variables: &'p [Private],
        together: usize,
    ) -> Result<&'p [Private], fmt::Error> {
        let start = self.out.len();
        write!(self.out, "private {}", Quoted(&variables[0].name))?;
        let mut printed = 1;
        for variable in &variables[1..together] {
            if self.out.len() - start + variable.name.as_str().len() > WIDTH - 20 {
                break;
            }
            write!(self.out, ", {}", Quoted(&variable.name))?;
            printed += 1;
        }
        writeln!(self.out, "{};", Annotation(variables[0].ty, &self.enums))?;
        Ok(&variables[printed..])
    }

    fn procedure(&mut self, procedure: &Procedure) -> fmt::Result {
        write!(self.out, "proc {}({})", Quoted(&procedure.name), Params(&procedure.params, &self.enums))?;
        if let Some(result) = procedure.result {
            write!(self.out, " -> {}", Written(result, &self.enums))?;
        }
        self.out.push(' ');
        self.block(&procedure.body)?;
        self.out.push('\n');
        Ok(())
    }

    fn template(&mut self, template: &Template) -> fmt::Result {
        write!(self.out, "process {}", Quoted(&template.name))?;
        if self.number_of(template).is_some() {
            write!(self.out, "({}: id)", Quoted(&template.params[0].name))?;
        } else if !template.params.is_empty() {
            write!(self.out, "({})", Params(&template.params, &self.enums))?;
        }
        match template.count {
            Count::Fixed(1) if let Some(number) = self.number_of(template) => write!(self.out, "[{number}]")?,
            Count::Fixed(1) => {}
            Count::Fixed(count) => write!(self.out, "[{count}]")?,
            Count::Any => self.out.push_str("[*]"),
        }
        if template.start == Start::OnSpawn {
            self.out.push_str(" on spawn");
        }
        self.out.push(' ');
        self.block(&template.body)?;
        self.out.push('\n');
        Ok(())
    }

    fn property(&mut self, property: &Property) -> fmt::Result {
        let word = match property.kind {
            PropertyKind::Forbid => "forbid ",
            PropertyKind::Final => "final ",
        };
        self.wrapped(word, &property.condition)?;
        self.out.push_str(";\n");
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> fmt::Result {
        match &progress.kind {
            ProgressKind::DeadlockFree => self.out.push_str("deadlock-free"),
            ProgressKind::LiveEnd => self.out.push_str("live end"),
            // The shared variable `end`, which is not the end of all processes.
            ProgressKind::Live(Expr { kind: ExprKind::Read(place), .. }) if matches!(&place.kind, PlaceKind::Named(name) if name.as_str() == "end") =>
            {
                self.out.push_str("live (end)");
            }
            ProgressKind::Live(condition) => self.wrapped("live ", condition)?,
            ProgressKind::Terminates => self.out.push_str("terminates"),
            ProgressKind::Leaves { process, label } => {
                write!(self.out, "leaves {}@{label}", expr::Instance(process))?;
            }
        }
        self.out.push_str(";\n");
        Ok(())
    }

    /// Writes a word and an expression, over several lines if it is a long chain of `&&` or `||`.
    fn wrapped(&mut self, start: &str, expr: &Expr) -> fmt::Result {
        self.out.push_str(start);
        let from = self.out.len();
        write!(self.out, "{}", expr::Shown(expr))?;
        let line = self.out.rfind('\n').map_or(0, |end| end + 1);
        if self.out.len() - line <= WIDTH {
            return Ok(());
        }
        let Some((op, operands)) = expr::chain(expr) else { return Ok(()) };
        self.out.truncate(from);
        for (i, operand) in operands.into_iter().enumerate() {
            if i > 0 {
                self.out.push('\n');
                self.indent(self.level + 1);
                write!(self.out, "{} ", op.symbol())?;
            }
            write!(self.out, "{}", expr::Operand(operand, op, i > 0))?;
        }
        Ok(())
    }

    fn indent(&mut self, level: usize) {
        for _ in 0..level {
            self.out.push_str("    ");
        }
    }
}

/// Whether two variables can share a declaration.
fn declared_alike(a: &Shared, b: &Shared) -> bool {
    let placed = a.at.is_some() || b.at.is_some();
    (!placed || std::ptr::eq(a, b))
        && a.ty == b.ty
        && a.init == b.init
        && (matches!(a.init, Init::Every(_)) || std::ptr::eq(a, b))
}

struct Initial<'p>(&'p InitValue);

impl fmt::Display for Initial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            InitValue::Any => f.write_str("*"),
            InitValue::Const(value) => expr::Shown(value).fmt(f),
        }
    }
}

struct Params<'p>(&'p [Param], &'p [String]);

impl fmt::Display for Params<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, param) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}{}", Quoted(&param.name), Annotation(param.ty, self.1))?;
        }
        Ok(())
    }
}

/// `: T` after a name; nothing for `int`. The names of the enumerations are given.
struct Annotation<'p>(Type, &'p [String]);

impl fmt::Display for Annotation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Type::INT { Ok(()) } else { write!(f, ": {}", Written(self.0, self.1)) }
    }
}

/// A type as text.
struct Written<'p>(Type, &'p [String]);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.domain {
            Domain::Bool => f.write_str("bool")?,
            Domain::Range { lo, hi } => write!(f, "{lo}..{hi}")?,
            Domain::Enum { which, .. } => f.write_str(&self.1[which as usize])?,
            Domain::Int => f.write_str("int")?,
        }
        match self.0.outside {
            Outside::Fault => Ok(()),
            Outside::Block => f.write_str(" blocking"),
            Outside::Wrap => f.write_str(" wrap"),
        }
    }
}
