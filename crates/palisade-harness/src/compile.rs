//! The compiler driver: from the arguments of `palisade cc` to the commands that are run.
//!
//! - Every source is compiled to assembly with the calls that ThreadSanitizer's runtime would receive.
//! - Inline assembly is [rewritten](crate::asm), and the result is assembled.
//! - Programs are linked with our runtime in place of ThreadSanitizer's.
//! - All other arguments go to the compiler unchanged.
//!
//! [`plan`] starts nothing. It only says what to start.

use crate::audit::Fresh;
use crate::link::Link;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The family of a compiler; families differ in their options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// The GNU compilers.
    Gcc,
    /// The LLVM compilers.
    Clang,
}

impl Family {
    /// The family, from the output of `--version`.
    pub fn of(version: &str) -> Family {
        if version.contains("clang") { Family::Clang } else { Family::Gcc }
    }

    /// The flags that make the compiler call the runtime at every access.
    fn flags(self) -> &'static [&'static str] {
        match self {
            // The functions that a program may call under ThreadSanitizer do not exist here, so the macro is
            // not defined either.
            Family::Gcc => &[
                "-fsanitize=thread",
                "--param=tsan-distinguish-volatile=1",
                "--param=tsan-instrument-func-entry-exit=0",
                NO_TAIL_CALLS,
                "-U__SANITIZE_THREAD__",
                "-Wno-tsan",
                // Expanded inline, these would be accesses that the runtime does not see.
                "-fno-builtin-memcpy",
                "-fno-builtin-memmove",
                "-fno-builtin-memset",
                STRINGS_OF_CXX,
            ],
            Family::Clang => &[
                "-fsanitize=thread",
                "-mllvm",
                "-tsan-distinguish-volatile=1",
                "-mllvm",
                "-tsan-instrument-func-entry-exit=0",
                NO_TAIL_CALLS,
                "-mllvm",
                "-tsan-instrument-read-before-write=1",
                "-mllvm",
                "-tsan-handle-cxx-exceptions=0",
                "-Wno-unused-command-line-argument",
                STRINGS_OF_CXX,
            ],
        }
    }
}

/// A call in the place of a return would come from the caller of its function. If that is precompiled code, as for the
/// function of a `std::thread`, a `delete` would count as the library's own.
const NO_TAIL_CALLS: &str = "-fno-optimize-sibling-calls";

/// The members of `std::string` are compiled with the program instead of being called in the library, where
/// they would not be followed. It means nothing in C.
const STRINGS_OF_CXX: &str = "-D_GLIBCXX_EXTERN_TEMPLATE=-1";

/// What to compile with.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The compiler.
    pub compiler: String,
    /// Its family.
    pub family: Family,
    /// The object file of the runtime.
    pub runtime: PathBuf,
    /// A folder for intermediate files.
    pub work: PathBuf,
}

/// A step of the build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Start the compiler with these arguments.
    Compile(Vec<String>),
    /// Rewrite the inline assembly in a file.
    Rewrite {
        /// The assembly.
        file: PathBuf,
        /// What it was compiled from, for messages.
        source: String,
        /// Whether reads of memory that was never written are errors in it.
        fresh: Fresh,
    },
    /// Link, and look at what was linked.
    Link(Link),
}

/// Why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// An option that is incompatible with instrumented builds.
    #[error("`{option}` cannot be used: {why}")]
    Option {
        /// The option.
        option: String,
        /// The reason.
        why: &'static str,
    },
    /// One output for several inputs.
    #[error("`-o` with `-c` or `-S` takes one source file, and there are {0}")]
    OneOutput(usize),
}

/// How far to compile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// No code is generated: `-E`, `-M`, `--version`.
    None,
    Assembly,
    Object,
    Link,
}

/// The arguments by category.
#[derive(Debug)]
struct Sorted {
    stage: Stage,
    output: Option<String>,
    /// Sources, by their index in `words`.
    sources: Vec<usize>,
    /// Words in order, without `-c`, `-S`, and `-o` with its file.
    words: Vec<Word>,
    /// Whether there is an option `-O`, and whether the last one optimises.
    has_level: bool,
    optimises: bool,
    dependencies: bool,
    dependency_file: bool,
    dependency_target: bool,
}

#[derive(Clone, Debug)]
enum Word {
    /// For both compiling and linking.
    Flag(String),
    /// For linking only: objects, libraries.
    Link(String),
    Source(String),
    /// A source that is assembled as it is.
    Assembly(String),
}

/// Options that take the next word as their value.
const WITH_VALUE: &[&str] = &[
    "-D",
    "-U",
    "-I",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-isysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-x",
    "-Xpreprocessor",
    "-Xassembler",
    "-Xclang",
    "-mllvm",
    "-arch",
    "--param",
    "-target",
    "--sysroot",
    "-B",
    "-std",
    "-aux-info",
    "-dumpbase",
    "-dumpdir",
    "-wrapper",
    "-specs",
    "-fplugin",
];
/// The same for the linker.
const LINK_WITH_VALUE: &[&str] = &["-L", "-l", "-Xlinker", "-T", "-u", "-z", "-e", "-rpath", "-framework"];

/// Extensions of sources that are compiled.
const SOURCES: &[&str] = &["c", "i", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "ii", "CC"];

/// Extensions of sources that are assembled.
const ASSEMBLY: &[&str] = &["s", "S", "sx"];

fn has_extension(word: &str, extensions: &[&str]) -> bool {
    let extension = Path::new(word).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extensions.contains(&extension))
}

fn sort(arguments: &[String]) -> Result<Sorted, PlanError> {
    let mut sorted = Sorted {
        stage: Stage::Link,
        output: None,
        sources: Vec::new(),
        words: Vec::new(),
        has_level: false,
        optimises: false,
        dependencies: false,
        dependency_file: false,
        dependency_target: false,
    };
    let refuse = |option: &str, why| Err(PlanError::Option { option: option.to_owned(), why });
    // The value of the last `-x`.
    let mut language: Option<String> = None;
    let mut inputs = 0;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let flag = |sorted: &mut Sorted, word: &str| sorted.words.push(Word::Flag(word.to_owned()));
        match word.as_str() {
            "-c" => sorted.stage = sorted.stage.min(Stage::Object),
            "-S" => sorted.stage = sorted.stage.min(Stage::Assembly),
            "-E" | "-M" | "-MM" | "-fsyntax-only" | "--version" | "-v" | "-###" | "--help"
            | "-dumpversion" | "-dumpmachine" => {
                sorted.stage = Stage::None;
                flag(&mut sorted, word);
            }
            "-o" => sorted.output = words.next().cloned(),
            "-static" | "-static-pie" | "--static" => {
                return refuse(word, "the runtime takes the place of functions of shared libraries");
            }
            "-m32" | "-mx32" => return refuse(word, "the runtime is for x86-64"),
            "-masm=intel" => return refuse(word, "inline assembly is read in AT&T syntax"),
            "-fsanitize=thread" => {}
            _ if word.starts_with("-fsanitize=") => {
                return refuse(word, "other sanitizers have runtimes of their own");
            }
            _ if word.starts_with("-flto") => {}
            _ if word.starts_with("-print-") => {
                sorted.stage = Stage::None;
                flag(&mut sorted, word);
            }
            _ if WITH_VALUE.contains(&word.as_str()) => {
                sorted.dependency_file |= word == "-MF";
                sorted.dependency_target |= word == "-MT" || word == "-MQ";
                flag(&mut sorted, word);
                if let Some(value) = words.next() {
                    if word == "-x" {
                        language = (value != "none").then(|| value.clone());
                    }
                    flag(&mut sorted, value);
                }
            }
            _ if LINK_WITH_VALUE.contains(&word.as_str()) => {
                sorted.words.push(Word::Link(word.clone()));
                if let Some(value) = words.next() {
                    sorted.words.push(Word::Link(value.clone()));
                }
            }
            _ if word.starts_with("-l") || word.starts_with("-L") || word.starts_with("-Wl,") => {
                sorted.words.push(Word::Link(word.clone()));
            }
            _ if word.starts_with('-') && word.len() > 1 => {
                if word.starts_with("-O") {
                    sorted.has_level = true;
                    sorted.optimises = word != "-O0";
                }
                sorted.dependencies |= word == "-MD" || word == "-MMD";
                flag(&mut sorted, word);
            }
            _ => {
                inputs += 1;
                let is_assembly = match &language {
                    Some(language) => language.starts_with("assembler"),
                    None => has_extension(word, ASSEMBLY),
                };
                if is_assembly {
                    sorted.words.push(Word::Assembly(word.clone()));
                } else if language.is_some() || has_extension(word, SOURCES) {
                    sorted.sources.push(sorted.words.len());
                    sorted.words.push(Word::Source(word.clone()));
                } else {
                    sorted.words.push(Word::Link(word.clone()));
                }
            }
        }
    }
    if inputs == 0 {
        sorted.stage = Stage::None;
    }
    Ok(sorted)
}

impl Sorted {
    fn has_flag(&self, wanted: &str) -> bool {
        self.words.iter().any(|word| matches!(word, Word::Flag(flag) if flag == wanted))
    }
}

impl Stage {
    fn min(self, other: Stage) -> Stage {
        if (self as u8) < (other as u8) { self } else { other }
    }
}

/// The steps, in order, that turn the arguments of a compiler into a program that can be followed.
pub fn plan(arguments: &[String], tools: &Tools) -> Result<Vec<Step>, PlanError> {
    let sorted = sort(arguments)?;
    if sorted.stage == Stage::None {
        return Ok(vec![Step::Compile(arguments.to_vec())]);
    }
    let several = sorted.sources.len() > 1;
    if sorted.stage != Stage::Link && sorted.output.is_some() && several {
        return Err(PlanError::OneOutput(sorted.sources.len()));
    }
    let mut steps = Vec::new();
    let mut objects: Vec<(usize, String)> = Vec::new();
    let mut names = Vec::new();
    for (index, &at) in sorted.sources.iter().enumerate() {
        let Word::Source(source) = &sorted.words[at] else { continue };
        let output = |extension: &str| match &sorted.output {
            Some(output) if sorted.stage != Stage::Link => output.clone(),
            _ => Path::new(source)
                .with_extension(extension)
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        };
        let object = match sorted.stage {
            Stage::Link => path(&tools.work.join(format!("{index}.o"))),
            _ => output("o"),
        };
        let assembly = match sorted.stage {
            Stage::Assembly => output("s"),
            _ => path(&tools.work.join(format!("{index}.s"))),
        };
        steps.push(Step::Compile(to_assembly(&sorted, tools, at, &assembly, &object)));
        let fresh = if sorted.optimises { Fresh::Ignored } else { Fresh::Checked };
        steps.push(Step::Rewrite { file: PathBuf::from(&assembly), source: source.clone(), fresh });
        if sorted.stage != Stage::Assembly {
            let assemble =
                ["-x", "assembler", "-Wa,--no-warn", "-c", "-o", &object, &assembly].map(str::to_owned);
            steps.push(Step::Compile(assemble.to_vec()));
        }
        names.push((PathBuf::from(&object), source.clone()));
        objects.push((at, object));
    }
    if sorted.stage != Stage::Link && sorted.sources.is_empty() {
        // Objects and assembly among the inputs of `-c` are passed on unchanged.
        return Ok(vec![Step::Compile(arguments.to_vec())]);
    }
    for (at, word) in sorted.words.iter().enumerate() {
        let Word::Assembly(source) = word else { continue };
        let object = match sorted.stage {
            Stage::Link => path(&tools.work.join(format!("assembled{at}.o"))),
            Stage::Object => Path::new(source)
                .with_extension("o")
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            Stage::None | Stage::Assembly => continue,
        };
        steps.push(Step::Compile(assembled(&sorted, source, &object)));
        names.push((PathBuf::from(&object), source.clone()));
        objects.push((at, object));
    }
    if sorted.stage == Stage::Link {
        let link = link(&sorted, tools, &objects, names);
        // Objects are looked at when they are linked into a program.
        let is_object = sorted.has_flag("-r");
        steps.push(if is_object { Step::Compile(link.arguments) } else { Step::Link(link) });
    }
    Ok(steps)
}

/// Assembles a source that was written by hand.
fn assembled(sorted: &Sorted, source: &str, object: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut words = sorted.words.iter();
    let mut language = "assembler-with-cpp";
    while let Some(word) = words.next() {
        match word {
            Word::Flag(flag) if flag == "-x" => {
                if let Some(Word::Flag(value)) = words.next()
                    && value == "assembler"
                {
                    language = "assembler";
                }
            }
            Word::Flag(flag) => arguments.push(flag.clone()),
            _ => {}
        }
    }
    // The extension decides unless there was a `-x`.
    if !has_extension(source, ASSEMBLY) {
        arguments.extend(["-x".to_owned(), language.to_owned()]);
    }
    arguments.extend(["-c", "-o", object, source].map(str::to_owned));
    arguments
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Compiles one source to assembly with the calls.
fn to_assembly(sorted: &Sorted, tools: &Tools, at: usize, assembly: &str, object: &str) -> Vec<String> {
    // Debugging information and no optimisation, unless a later option of the user says otherwise.
    let mut arguments = vec!["-g".to_owned()];
    if !sorted.has_level {
        arguments.push("-O0".to_owned());
    }
    for (index, word) in sorted.words.iter().enumerate() {
        match word {
            Word::Flag(flag) => arguments.push(flag.clone()),
            Word::Source(source) if index == at => arguments.push(source.clone()),
            _ => {}
        }
    }
    arguments.extend(tools.family.flags().iter().map(|&flag| flag.to_owned()));
    if sorted.dependencies {
        let file = Path::new(object).with_extension("d");
        if !sorted.dependency_file {
            arguments.extend(["-MF".to_owned(), path(&file)]);
        }
        if !sorted.dependency_target {
            arguments.extend(["-MT".to_owned(), object.to_owned()]);
        }
    }
    arguments.extend(["-S", "-o", assembly].map(str::to_owned));
    arguments
}

/// Links the objects with the runtime.
fn link(sorted: &Sorted, tools: &Tools, objects: &[(usize, String)], names: Vec<(PathBuf, String)>) -> Link {
    let mut arguments = Vec::new();
    let mut words = sorted.words.iter().enumerate();
    let is_library = sorted.has_flag("-shared");
    while let Some((index, word)) = words.next() {
        match word {
            // The language of the sources does not apply to the objects made from them.
            Word::Flag(flag) if flag == "-x" => _ = words.next(),
            Word::Flag(flag) | Word::Link(flag) => arguments.push(flag.clone()),
            Word::Source(_) | Word::Assembly(_) => {
                let object = objects.iter().find(|(at, _)| *at == index);
                arguments.extend(object.map(|(_, object)| object.clone()));
            }
        }
    }
    if let Some(output) = &sorted.output {
        arguments.extend(["-o".to_owned(), output.clone()]);
    }
    // A library uses the runtime of the program that loads it, and an object that of the program it becomes
    // part of.
    if !is_library && !sorted.has_flag("-r") {
        arguments.push(path(&tools.runtime));
        arguments.extend(crate::runtime::LIBRARIES.iter().map(|&flag| flag.to_owned()));
    }
    let output = PathBuf::from(sorted.output.as_deref().unwrap_or("a.out"));
    Link { arguments, output, is_library, names, standard: BTreeSet::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(arguments: &str) -> Result<Vec<String>, PlanError> {
        let tools =
            Tools { compiler: "cc".into(), family: Family::Gcc, runtime: "R.o".into(), work: "W".into() };
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let flags = format!(" {}", Family::Gcc.flags().join(" "));
        let commands = plan(&arguments, &tools)?.into_iter().map(|step| match step {
            Step::Compile(arguments) => arguments.join(" ").replace(&flags, " [flags]"),
            Step::Link(link) => format!("link {}", link.arguments.join(" ")),
            Step::Rewrite { file, source, .. } => format!("rewrite {} of {source}", file.display()),
        });
        Ok(commands.collect())
    }

    fn check(arguments: &str, expected: &[&str]) {
        assert_eq!(planned(arguments).expect("a plan"), expected, "{arguments}");
    }

    #[test]
    fn plans() {
        check(
            "-o queue queue.c -lm",
            &[
                "-g -O0 queue.c [flags] -S -o W/0.s",
                "rewrite W/0.s of queue.c",
                "-x assembler -Wa,--no-warn -c -o W/0.o W/0.s",
                "link W/0.o -lm -o queue R.o -pthread -ldl -rdynamic",
            ],
        );
        check(
            "-O2 -c a/b.cpp -I inc -DX=1",
            &[
                "-g -O2 a/b.cpp -I inc -DX=1 [flags] -S -o W/0.s",
                "rewrite W/0.s of a/b.cpp",
                "-x assembler -Wa,--no-warn -c -o b.o W/0.s",
            ],
        );
        check(
            "-c a.c -MD -o out/a.o",
            &[
                "-g -O0 a.c -MD [flags] -MF out/a.d -MT out/a.o -S -o W/0.s",
                "rewrite W/0.s of a.c",
                "-x assembler -Wa,--no-warn -c -o out/a.o W/0.s",
            ],
        );
        check("-S a.c", &["-g -O0 a.c [flags] -S -o a.s", "rewrite a.s of a.c"]);
        check("a.o -fsanitize=thread libb.a -o p", &["link a.o libb.a -o p R.o -pthread -ldl -rdynamic"]);
        check(
            "-x c odd.txt -shared -o l.so",
            &[
                "-g -O0 -x c odd.txt -shared [flags] -S -o W/0.s",
                "rewrite W/0.s of odd.txt",
                "-x assembler -Wa,--no-warn -c -o W/0.o W/0.s",
                "link W/0.o -shared -o l.so",
            ],
        );
        check(
            "a.s -O1 -x assembler b.txt -o p",
            &[
                "-O1 -c -o W/assembled0.o a.s",
                "-O1 -x assembler -c -o W/assembled4.o b.txt",
                "link W/assembled0.o -O1 W/assembled4.o -o p R.o -pthread -ldl -rdynamic",
            ],
        );
        check("-r a.o b.o -o c.o", &["-r a.o b.o -o c.o"]);
        check("--version", &["--version"]);
        check("-E a.c", &["-E a.c"]);
        check("-c a.s", &["-c a.s"]);
    }

    #[test]
    fn refusals() {
        for wrong in
            ["-static a.c", "-m32 a.c", "-masm=intel a.c", "-fsanitize=address a.c", "-c a.c b.c -o c.o"]
        {
            assert!(planned(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn families() {
        assert_eq!(Family::of("Debian clang version 14.0.6"), Family::Clang);
        assert_eq!(Family::of("gcc (Debian 12.2.0) 12.2.0"), Family::Gcc);
    }
}
