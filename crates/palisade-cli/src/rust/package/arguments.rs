//! What follows `--` where a package is checked: options of cargo that select a part of it.

use palisade::Diagnostic;

/// Options with a value that are passed on.
const WITH_VALUE: [&str; 2] = ["--features", "-F"];

/// Options without one.
const PASSED_ON: [&str; 5] =
    ["--all-features", "--no-default-features", "--locked", "--frozen", "--ignore-rust-version"];

/// Options of cargo.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arguments {
    /// Options that are passed on as they are.
    pub options: Vec<String>,
    /// The package of a workspace.
    pub package: Option<String>,
    /// The program.
    pub bin: Option<String>,
    /// The example, which is a program too.
    pub example: Option<String>,
}

impl Arguments {
    /// Fails for what cannot be passed on.
    pub fn new(words: &[String]) -> Result<Arguments, Diagnostic> {
        let mut found = Arguments::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            if PASSED_ON.contains(&word.as_str()) {
                found.options.push(word.clone());
                continue;
            }
            // We never let cargo use the network.
            if word == "--offline" {
                continue;
            }
            let known =
                WITH_VALUE.contains(&name) || matches!(name, "-p" | "--package" | "--bin" | "--example");
            let Some(value) = attached.or_else(|| words.next().cloned()).filter(|_| known) else {
                let message = format!("`{word}` is not passed on to cargo");
                return Err(Diagnostic::error("compiler-argument", message).help(
                    "for a package, after `--` come -p NAME, --bin NAME, --example NAME, --features NAMES, \
                     --all-features, --no-default-features, --locked and --frozen",
                ));
            };
            match name {
                "-p" | "--package" => found.package = Some(value),
                "--bin" => found.bin = Some(value),
                "--example" => found.example = Some(value),
                _ => found.options.push(format!("--features={value}")),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_select_a_part() {
        let check = |text: &str, expected: Option<Arguments>| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            assert_eq!(Arguments::new(&words).ok(), expected, "{text}");
        };
        check("", Some(Arguments::default()));
        let options = vec!["--features=a,b".to_owned(), "--no-default-features".to_owned()];
        check("-F a,b --no-default-features", Some(Arguments { options, ..Arguments::default() }));
        let (package, bin) = (Some("lock".to_owned()), Some("demo".to_owned()));
        check("-p lock --bin=demo --offline", Some(Arguments { package, bin, ..Arguments::default() }));
        for refused in ["--release", "--config x", "--bin", "-Zfoo", "--target-dir=x", "x"] {
            check(refused, None);
        }
    }
}
