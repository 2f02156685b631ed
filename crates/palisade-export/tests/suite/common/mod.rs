//! Programs to export, and the tools that check the result.

use palisade_base::Source;
use palisade_engine::{Engine, Limits, Options, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_export::{Export, Target};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_syntax::Language;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// A program and the source it was read from.
pub struct Subject {
    pub name: String,
    pub source: Source,
    pub program: Program,
    /// Processes of each template, if not as declared.
    pub threads: Option<u32>,
}

impl Subject {
    /// Reads a program.
    pub fn read(name: &str, text: &str) -> Subject {
        let source = Source::new(name, text);
        let extension = name.rsplit_once('.').map_or("pal", |(_, extension)| extension);
        let language = Language::from_extension(extension).expect("a known language");
        let parsed = palisade_syntax::parse(language, &source)
            .unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        Subject { name: name.to_owned(), source, program: parsed.program, threads: None }
    }

    /// A generated program.
    pub fn generated(name: &str, program: &Program) -> Subject {
        // It is printed and read again, so that comments have a source to quote.
        let text = palisade_program::print::print(program);
        Subject::read(name, &text)
    }

    /// With this many processes of each template.
    pub fn threads(self, threads: u32) -> Subject {
        Subject { threads: Some(threads), ..self }
    }

    /// The program in another language.
    pub fn export(&self, target: Target) -> String {
        self.try_export(target).unwrap_or_else(|problems| panic!("{}: {problems:?}", self.name))
    }

    /// The same, for programs that may be refused.
    pub fn try_export(&self, target: Target) -> Result<String, Vec<palisade_base::Diagnostic>> {
        Export { program: &self.program, source: &self.source, heading: &self.name, threads: self.threads }
            .to(target)
    }

    /// The verdict of explicit search under SC; `None` if it is unknown.
    pub fn is_safe(&self) -> Option<bool> {
        let threads = self.threads.map_or(Threads::Declared, Threads::Each);
        let task = Task {
            program: &self.program,
            threads,
            model: Model::Sc,
            interlocked: Interlocked::default(),
            options: Options::default(),
        };
        let limits = Limits::unlimited(1).with_timeout(Duration::from_secs(60)).with_memory(1 << 30);
        match Explicit.check(&task.analysis(), &limits).verdict {
            Verdict::Holds => Some(true),
            Verdict::Violated(_) => Some(false),
            Verdict::Unknown(_) => None,
        }
    }
}

/// Values that wrap around: in cells, registers, parameters, results and choices, in ranges that do not start at 0, of
/// negative values, in locked instructions, and through pointers.
pub const WRAPPING: [&str; 22] = [
    "shared x: 0..7 wrap = 6; process P { x = x + 3; assert(x == 1); x = x - 2; assert(x == 7); }",
    "shared x: 0..7 wrap = 6; process P { x = x + 3; assert(x == 2); }",
    "shared x: -2..1 wrap; process P { x = x + 2; assert(x == -2); x = x - 7; assert(x == -1); x = 0 - 9; assert(x == -1); }",
    "shared x: 3..5 wrap = 4; process P { x = 0; assert(x == 3); x = 8; assert(x == 5); x = 0 - 4; assert(x == 5); }",
    "shared x: u8 = 250; process P[2] { fetch_add(x, 5); } final x == 4;",
    "shared x: u8 = 250; process P[2] { x = x + 5; } final x == 4;",
    "shared x: i8 = 127; process P { let r = fetch_add(x, 1); assert(r == 127 && x == 0 - 128); r = fetch_sub(x, 257); assert(x == 127); }",
    "shared x: 0..3 wrap = 1; process P { assert(cas(x, 5, 6)); assert(x == 2); assert(!cas(x, 1, 3)); let r = xchg(x, 0 - 1); assert(r == 2 && x == 3); }",
    "shared x: 0..4 wrap = 3; process P { fetch_or(x, 4); assert(x == 2); fetch_xor(x, 7); assert(x == 0); fetch_and(x, 3); assert(x == 0); }",
    "shared x: 0..9 = 9; process P { let r: 0..3 wrap = x; assert(r == 1); r = r + 3; assert(r == 0); let s: 0..1 wrap = fetch_add(x, 0); assert(s == 1); }",
    "proc f(a: 0..3 wrap) -> 5..6 wrap { return a; } process P { let r = f(6); assert(r == 6); let s: 0..1 wrap = f(5); assert(s == 1); }",
    "proc f(a: 0..3 wrap, n: 0..2) -> 0..3 wrap { if n == 0 { return a; } return f(a + 3, n - 1) + 1; } process P { assert(f(2, 2) == 2); }",
    "process P { let r: 0..3 wrap = any(2..5); assert(r >= 0 && r <= 3); } forbid P.r == 4;",
    "process P { let r: 0..7 wrap = any(6..9); l: skip; } forbid P@l && P.r == 5;",
    "process P { let r: 0..7 wrap = any(6..9); l: skip; } forbid P@l && P.r == 1;",
    "shared a[3]: 0..2 wrap = [2, 0, 1]; process P { let i: 0..2 wrap = 1; for k in 0..4 { a[i] = a[i] + 2; i = i + 1; } assert(a[1] == 1 && a[2] == 2 && a[0] == 1); }",
    "struct S { n: u8 = 255, f[2]: 0..3 wrap } shared s[2]: S; process P(i: 0..1) { s[i].n = s[i].n + 1; s[i].f[i] = 0 - 1; } final s[0].n == 0 && s[1].f[1] == 3;",
    "shared x: 0..3 wrap; shared y: 0..9; shared z: 1..2 wrap = 1; process P { let p = any(1..3); *p = 5; assert(x == 1 || y == 5 || z == 1); assert(*p != 5 || p == 2); }",
    "shared x: 0..3 wrap; shared y: 0..9; process P { let p = &x; fetch_add(*p, 7); p = &y; fetch_add(*p, 7); p = &x; assert(cas(*p, 7, 4)); } final x == 0 && y == 7;",
    "private k: 0..2 wrap; shared x: 0..9; process P[2] { k = k + 5; k = k + 2; atomic { x = x + k; } } final x == 2;",
    "enum E { A, B, C } shared e: E; shared t: 0..2 wrap; process P[2] { let r = fetch_add(t, 2); if r == 2 { e = C; } } final t == 1 && (e == A || e == C);",
    "shared x: 0..0 wrap; process P { x = 5; assert(x == 0); x = 0 - 3; fetch_add(x, 9); } final x == 0;",
];

/// The corpus, with two processes where any number is declared, and without programs whose tickets grow forever: other
/// tools do not come to the end of those.
pub fn corpus() -> Vec<Subject> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let pal = palisade_corpus::expectations().into_iter().map(|expectation| expectation.file.to_owned());
    let table =
        std::fs::read_to_string(folder.join("languages.tsv")).expect("the list of other files exists");
    let others = table.lines().skip(1).filter_map(|line| line.split('\t').next().map(str::to_owned));
    pal.chain(others)
        .filter(|file| !file.contains("ticket_unbounded"))
        .map(|file| {
            let text =
                std::fs::read_to_string(folder.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            let mut subject = Subject::read(&file, &text);
            if subject.program.has_open_identities() {
                subject.program = subject.program.with_identities(2);
            }
            if file.contains(".any.") { subject.threads(2) } else { subject }
        })
        .collect()
}

/// An empty folder for one test.
pub fn scratch(name: &str) -> PathBuf {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("export");
    palisade_conformance::scratch_folder(&parent, name)
}

/// Runs an external program that the tests need.
pub fn run(command: &mut Command, package: &str) -> Output {
    let output = command.output();
    output.unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        panic!("{program} cannot be started ({error}): install the package {package}, or run ./test")
    })
}

/// Spin's result for a model: whether it is safe, and the number of stored states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verified {
    pub safe: bool,
    pub states: u64,
}

/// Checks a model with Spin in a folder.
pub fn spin(folder: &Path, name: &str, model: &str) -> Verified {
    std::fs::write(folder.join("model.pml"), model).expect("the model can be written");
    let fail = |what: &str, output: &Output| -> ! {
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        panic!("{name}: {what}:\n{}\n{model}", String::from_utf8_lossy(&text))
    };
    let generated = run(Command::new("spin").args(["-a", "model.pml"]).current_dir(folder), "spin");
    if !generated.status.success() || !generated.stdout.is_empty() {
        fail("Spin does not accept the model", &generated);
    }
    // Compiling is most of the work, and clang needs less time than gcc.
    let options = ["-O0", "-w", "-DSAFETY", "-DMEMLIM=1500", "-o", "pan", "pan.c"];
    let compiled = run(Command::new("clang").args(options).current_dir(folder), "clang");
    if !compiled.status.success() {
        fail("clang does not compile the verifier", &compiled);
    }
    // Without -E: states in which nothing can move must not look like errors. -c1: stop at the first error. The verifier first clears all the memory that a
    // search of this depth needs, so it gets more only if that is too little.
    let verify = |depth: &str| {
        let settings = ["-c1", depth, "-w20"];
        run(Command::new(folder.join("pan")).args(settings).current_dir(folder), "spin")
    };
    let too_deep = "max search depth too small";
    let mut verified = verify("-m20000");
    if String::from_utf8_lossy(&verified.stdout).contains(too_deep) {
        verified = verify("-m2000000");
    }
    let text = String::from_utf8_lossy(&verified.stdout);
    let number = |before: &str| {
        let rest = text.split_once(before)?.1.trim_start();
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let stored = text.lines().find(|line| line.contains("states, stored"));
    let states = stored.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let (Some(errors), Some(states)) = (number("errors:"), states) else {
        fail("not the output of a verifier", &verified)
    };
    let only_assertions = errors == 0 || text.contains("assertion violated");
    if !only_assertions || text.contains(too_deep) || text.contains("out of memory") {
        fail("the search was not complete", &verified);
    }
    if errors == 0 && text.contains("Search not completed") {
        fail("the search was not complete", &verified);
    }
    Verified { safe: errors == 0, states }
}
