//! The arguments after `--`: options of the compiler, and further files.

use palisade::Diagnostic;
use std::path::{Path, PathBuf};

/// Everything after `--`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arguments {
    /// Options of the compiler.
    pub options: Vec<String>,
    /// Further files of the program.
    pub files: Vec<PathBuf>,
}

/// Options whose value is the next word.
const WITH_VALUE: [&str; 16] = [
    "-I",
    "-D",
    "-U",
    "-F",
    "-L",
    "-l",
    "-x",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-target",
    "-Xclang",
    "-mllvm",
];

/// Endings of C++ and similar languages.
const CXX: [&str; 7] = ["cc", "cpp", "cxx", "c++", "C", "mm", "cu"];

/// Beginnings of options that neither run code nor write files.
const HARMLESS: [&str; 26] = [
    "-D",
    "-U",
    "-I",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-std=",
    "-ansi",
    "-O",
    "-g",
    "-w",
    "-W",
    "-pedantic",
    "-pthread",
    "-l",
    "-m",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fsigned-char",
    "-funsigned-char",
    "-fcommon",
    "-fno-common",
];

/// Options that begin like harmless ones, and are not.
const HARMFUL: [&str; 9] = [
    "-Wp,",
    "-Wa,",
    "-Wl,",
    "-mllvm",
    "-gen-reproducer",
    "-gsplit-dwarf",
    "-include-pch",
    "-working-directory",
    "-wrapper",
];

/// Fails if the words come from a file that is to be judged, and could make the compiler run code or write files. The
/// file may come from anyone.
pub fn refuse_harmful(words: &[String]) -> Result<(), Diagnostic> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let begins = |list: &[&str]| list.iter().any(|option| word.starts_with(option));
        if word.starts_with('-') && (begins(&HARMFUL) || !begins(&HARMLESS)) {
            let message = format!("the file asks for the compiler option `{word}`, which a file may not set");
            return Err(Diagnostic::error("compiler-argument", message)
                .help("a file can only ask for options such as -D, -I, -std=, -O, -W and -m; check the program itself instead"));
        }
        if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        }
    }
    Ok(())
}

impl Arguments {
    /// Separates options from files. Fails for what cannot be part of a C program.
    pub fn new(words: &[String]) -> Result<Arguments, Diagnostic> {
        let refuse =
            |message: String, help: &str| Err(Diagnostic::error("compiler-argument", message).help(help));
        let mut arguments = Arguments::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "-o" || word == "-E" || word == "-M" || word == "-MM" || word == "-fsyntax-only" {
                return refuse(
                    format!("`{word}` cannot be passed to the compiler: Palisade reads its output"),
                    "leave it out",
                );
            } else if word.starts_with('-') && word != "-" {
                arguments.options.push(word.clone());
                if WITH_VALUE.contains(&word.as_str()) {
                    arguments.options.extend(words.next().cloned());
                }
            } else {
                refuse_other_languages(Path::new(word))?;
                if !matches!(extension(Path::new(word)), Some("c" | "i" | "ll")) {
                    return refuse(
                        format!("`{word}` is neither an option of the compiler nor a C file"),
                        "after `--` come options such as -DN=3 and -I include, and further .c files",
                    );
                }
                arguments.files.push(PathBuf::from(word));
            }
        }
        Ok(arguments)
    }
}

/// Fails for C++ and Objective-C.
pub fn refuse_other_languages(path: &Path) -> Result<(), Diagnostic> {
    match extension(path).filter(|extension| CXX.contains(extension)) {
        None => Ok(()),
        Some(_) => Err(Diagnostic::error(
            "c-plus-plus",
            format!("`{}` is C++, but this command reads only C", path.display()),
        )
        .help("`palisade run` runs C++ programs under many schedules")),
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_file_may_ask_for() {
        let harmful = |words: &str| {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            refuse_harmful(&words).is_err()
        };
        for words in ["", "-DN=3 -I include -include a.h queue.c", "-O2 -Wall -std=c11 -pthread -m64 -U X -g"]
        {
            assert!(!harmful(words), "{words}");
        }
        for words in [
            "-fplugin=./x.so",
            "-Xclang -load -Xclang x.so",
            "-DN=3 -fpass-plugin=x.so",
            "-MMD -MF/any/path",
            "-Wp,-MD,/any/path",
            "-save-temps",
            "-ftime-trace",
            "-gen-reproducer",
            "-mllvm -x",
            "--config x",
            "-B.",
            "-I include -wrapper x",
        ] {
            assert!(harmful(words), "{words}");
        }
    }

    #[test]
    fn options_and_files_are_separated() {
        let check = |words: &str, expected: Result<(&str, &str), &str>| {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            match (Arguments::new(&words), expected) {
                (Ok(found), Ok((options, files))) => {
                    let names: Vec<String> = found.files.iter().map(|f| f.display().to_string()).collect();
                    assert_eq!(
                        (found.options.join(" ").as_str(), names.join(" ").as_str()),
                        (options, files)
                    );
                }
                (Err(error), Err(part)) => assert!(error.message.contains(part), "{}", error.message),
                (found, _) => panic!("{words:?}: {found:?}"),
            }
        };
        check("", Ok(("", "")));
        check(
            "-DN=3 queue.c -I include -include a.c b.ll",
            Ok(("-DN=3 -I include -include a.c", "queue.c b.ll")),
        );
        check("-O2 -Wall -pthread -lpthread", Ok(("-O2 -Wall -pthread -lpthread", "")));
        check("queue.cpp", Err("is C++"));
        check("queue.o", Err("neither an option"));
        check("-o queue", Err("`-o`"));
    }
}
