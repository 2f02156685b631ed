//! What follows `--`: options of rustc.

use palisade::Diagnostic;

/// Options of rustc.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arguments {
    /// Options, each in the words it was given in.
    pub options: Vec<String>,
}

/// Options whose value is the next word.
const WITH_VALUE: [&str; 30] = [
    "-A",
    "-C",
    "-D",
    "-F",
    "-L",
    "-W",
    "-Z",
    "-l",
    "-o",
    "--allow",
    "--cap-lints",
    "--cfg",
    "--check-cfg",
    "--codegen",
    "--color",
    "--crate-name",
    "--crate-type",
    "--deny",
    "--edition",
    "--emit",
    "--env-set",
    "--error-format",
    "--extern",
    "--forbid",
    "--json",
    "--out-dir",
    "--print",
    "--sysroot",
    "--target",
    "--warn",
];

/// Options that decide what the compiler prints and where.
const OUTPUT: [&str; 17] = [
    "-o",
    "-g",
    "-h",
    "-v",
    "-V",
    "--color",
    "--crate-name",
    "--crate-type",
    "--emit",
    "--error-format",
    "--explain",
    "--help",
    "--json",
    "--out-dir",
    "--print",
    "--sysroot",
    "--target",
];

/// What `-C` must not change.
const CODE: [&str; 12] = [
    "codegen-units",
    "debuginfo",
    "incremental",
    "instrument-coverage",
    "linker-plugin-lto",
    "llvm-args",
    "lto",
    "no-prepopulate-passes",
    "opt-level",
    "panic",
    "passes",
    "symbol-mangling-version",
];

/// Beginnings of options that neither run code nor write files.
const HARMLESS: [&str; 15] = [
    "-A",
    "-D",
    "-F",
    "-W",
    "--allow",
    "--cap-lints",
    "--cfg",
    "--check-cfg",
    "--deny",
    "--edition",
    "--forbid",
    "--warn",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "-Ctarget-cpu",
];

/// An option and its value, which may be in one word or in two.
struct OptionOfRustc {
    words: Vec<String>,
    /// In one word: `--edition=2024`, `-Copt-level=3`.
    whole: String,
}

/// Separates options. Fails at words that are not options.
fn options(words: &[String]) -> Result<Vec<OptionOfRustc>, Diagnostic> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            let message = format!("`{word}` is not an option of rustc");
            return Err(Diagnostic::error("compiler-argument", message).help(
                "after `--` come options such as --edition 2024 and --cfg NAME; a program is one file and its modules",
            ));
        }
        let value = WITH_VALUE.contains(&word.as_str()).then(|| words.next()).flatten();
        let short = word.replace("--codegen", "-C");
        let whole = match value {
            Some(value) if short.starts_with("--") => format!("{short}={value}"),
            Some(value) => format!("{short}{value}"),
            None if short.starts_with("-C=") => short.replacen("-C=", "-C", 1),
            None => short,
        };
        found.push(OptionOfRustc { words: std::iter::once(word).chain(value).cloned().collect(), whole });
    }
    Ok(found)
}

impl Arguments {
    /// Fails for what cannot be passed on.
    pub fn new(words: &[String]) -> Result<Arguments, Diagnostic> {
        let mut all = Vec::new();
        for option in options(words)? {
            let refuse = |help: &str| {
                let message =
                    format!("rustc cannot be given `{}`: its output is read", option.words.join(" "));
                Err(Diagnostic::error("compiler-argument", message).help(help))
            };
            let name = match option.words[0].as_str() {
                "-o" => "-o",
                _ => option.whole.split('=').next().unwrap_or_default(),
            };
            if name == "--test" {
                return refuse("name a test: `palisade check FILE --test NAME`");
            }
            if OUTPUT.contains(&name) || name.strip_prefix("-C").is_some_and(|name| CODE.contains(&name)) {
                return refuse("leave it out");
            }
            // How much a program is optimised makes no difference to what is read.
            if name != "-O" {
                all.extend(option.words);
            }
        }
        Ok(Arguments { options: all })
    }
}

/// Fails if the words come from a file that is to be judged, and the compiler could be made to run code or to write
/// files by them. The file may come from anyone.
pub fn refuse_harmful(words: &[String]) -> Result<(), Diagnostic> {
    for option in options(words)? {
        let begins = |known: &&str| option.whole.starts_with(*known);
        if option.whole != "-O" && !HARMLESS.iter().any(begins) {
            let message = format!(
                "the file asks for the compiler option `{}`, which is not taken from a file",
                option.words.join(" ")
            );
            return Err(Diagnostic::error("compiler-argument", message)
                .help("a file can only ask for options such as --edition, --cfg and -W; check the program itself instead"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_that_are_passed_on() {
        let check = |text: &str, expected: Result<&str, &str>| match (Arguments::new(&words(text)), expected)
        {
            (Ok(found), Ok(options)) => assert_eq!(found.options.join(" "), options),
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{}", error.message),
            (found, _) => panic!("{text}: {found:?}"),
        };
        check("", Ok(""));
        check("--edition 2024 --cfg broken_1 -O", Ok("--edition 2024 --cfg broken_1"));
        check("--edition=2018 -C target-cpu=native", Ok("--edition=2018 -C target-cpu=native"));
        check("-C debug-assertions=off -A warnings", Ok("-C debug-assertions=off -A warnings"));
        for refused in [
            "-o x",
            "--out-dir x",
            "--emit=asm",
            "-C opt-level=0",
            "-Cpanic=unwind",
            "--codegen=lto",
            "-C=passes=x",
            "-g",
        ] {
            check(refused, Err("its output is read"));
        }
        check("--test", Err("`--test`"));
        check("other.rs", Err("`other.rs` is not an option"));
    }

    #[test]
    fn options_that_a_file_may_ask_for() {
        for text in
            ["", "--edition 2024 --cfg broken_1", "-C overflow-checks=off -Dwarnings --check-cfg cfg(x)"]
        {
            assert!(refuse_harmful(&words(text)).is_ok(), "{text}");
        }
        for text in [
            "--extern x=x.so",
            "-L .",
            "-C linker=x",
            "-Cllvm-args=-load=x.so",
            "-Zfoo",
            "-C incremental=x",
            "@x",
        ] {
            assert!(refuse_harmful(&words(text)).is_err(), "{text}");
        }
    }
}
