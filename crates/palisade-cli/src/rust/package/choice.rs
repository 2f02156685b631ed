//! Which part of a package is checked.

use super::manifest::Part;
use super::{Arguments, Manifest};
use crate::files;
use palisade::Diagnostic;
use palisade::c::{COptions, Roots};

/// A part of a package that cargo is asked to build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// What it is.
    pub kind: TargetKind,
    /// Its name.
    pub name: String,
    /// Whether it is compiled with its unit tests instead of `main`.
    pub tests: bool,
}

/// What a part of a package is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetKind {
    /// The library.
    Library,
    /// A program.
    Program,
    /// An example, which is a program.
    Example,
    /// A file of tests of its own.
    Tests,
}

impl TargetKind {
    fn of(part: &Part) -> Option<TargetKind> {
        match part.kind.as_str() {
            "lib" | "rlib" | "dylib" | "cdylib" | "staticlib" => Some(TargetKind::Library),
            "bin" => Some(TargetKind::Program),
            "example" => Some(TargetKind::Example),
            "test" => Some(TargetKind::Tests),
            _ => None,
        }
    }
}

impl Target {
    /// How cargo is asked for it.
    pub fn options(&self) -> Vec<String> {
        let mut options = match self.kind {
            TargetKind::Library => vec!["--lib".to_owned()],
            TargetKind::Program => vec!["--bin".to_owned(), self.name.clone()],
            TargetKind::Example => vec!["--example".to_owned(), self.name.clone()],
            TargetKind::Tests => vec!["--test".to_owned(), self.name.clone()],
        };
        if self.tests {
            options.push("--profile=test".to_owned());
        }
        options
    }

    /// Whether it is a file of tests with this name.
    pub fn is_file_of_tests(&self, name: &str) -> bool {
        self.kind == TargetKind::Tests && self.name == name
    }

    /// The path of a test of this part, as the user knows it.
    pub fn path_of(&self, test: &str) -> String {
        match self.kind {
            TargetKind::Tests => format!("{}::{test}", self.name),
            _ => test.to_owned(),
        }
    }
}

/// The parts that may be meant. Where a test is looked for, there may be several: those in the first list are looked at
/// first, those in the second only if it is not there.
pub fn targets(
    manifest: &Manifest,
    arguments: &Arguments,
    options: &COptions,
) -> Result<[Vec<Target>; 2], Diagnostic> {
    let parts: Vec<(TargetKind, &Part)> =
        manifest.parts.iter().filter_map(|part| Some((TargetKind::of(part)?, part))).collect();
    let refuse = |message: String, help: String| Err(Diagnostic::error("no-such-target", message).help(help));
    let names = |kind: TargetKind| -> Vec<&str> {
        parts.iter().filter(|(of, _)| *of == kind).map(|(_, part)| part.name.as_str()).collect()
    };
    let chosen = match (&arguments.bin, &arguments.example) {
        (Some(name), _) => Some((TargetKind::Program, name)),
        (None, Some(name)) => Some((TargetKind::Example, name)),
        (None, None) => None,
    };
    if let Some((kind, name)) = chosen {
        if !names(kind).contains(&name.as_str()) {
            let what = if kind == TargetKind::Program { "program" } else { "example" };
            let message = format!("the package `{}` has no {what} `{name}`", manifest.package);
            return refuse(message, listed(&names(kind)));
        }
        let target = Target { kind, name: name.clone(), tests: options.test.is_some() };
        return Ok([vec![target], Vec::new()]);
    }
    if let Some(test) = &options.test {
        return Ok(with_tests(&parts, test));
    }
    if let Roots::Functions { .. } = options.roots {
        let Some((kind, part)) = parts.iter().find(|(kind, _)| *kind == TargetKind::Library) else {
            let message = format!("the package `{}` has no library", manifest.package);
            return refuse(message, "--thread names functions of a library".to_owned());
        };
        let target = Target { kind: *kind, name: part.name.clone(), tests: false };
        return Ok([vec![target], Vec::new()]);
    }
    let programs = names(TargetKind::Program);
    let name = match (&manifest.default_run, programs.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, [name]) => (*name).to_owned(),
        (None, []) => {
            let message = format!("the package `{}` has no program", manifest.package);
            let help = "name a test with --test NAME, or functions with --thread NAME";
            return refuse(message, help.to_owned());
        }
        (None, several) => {
            let message = format!("the package `{}` has several programs", manifest.package);
            return refuse(message, format!("name one with `-- --bin NAME`; {}", listed(several)));
        }
    };
    Ok([vec![Target { kind: TargetKind::Program, name, tests: false }], Vec::new()])
}

/// The parts that may have a test. Files of tests that do not contain its name come last.
fn with_tests(parts: &[(TargetKind, &Part)], test: &str) -> [Vec<Target>; 2] {
    let (first, last) = (test.split("::").next(), test.rsplit("::").next().unwrap_or(test));
    let contains = |part: &Part| {
        let Ok(text) = files::text(&part.file) else { return true };
        text.contains(last) || text.contains("mod ") || text.contains("include!")
    };
    let (mut likely, mut others) = (Vec::new(), Vec::new());
    for (kind, part) in parts.iter().filter(|(_, part)| part.tests) {
        let is_likely = match kind {
            TargetKind::Tests => first == Some(part.name.as_str()) || contains(part),
            _ => true,
        };
        let target = Target { kind: *kind, name: part.name.clone(), tests: *kind != TargetKind::Tests };
        if is_likely { likely.push(target) } else { others.push(target) }
    }
    [likely, others]
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "there are none".to_owned(),
        _ => format!("there are `{}`", names.join("`, `")),
    }
}
