//! Code that was not compiled by `palisade cc` and became part of a program: it is named, and nothing is said
//! about the program unless something was found.

use crate::common::{cache, programs, random, run, scratch};
use palisade_harness::driver::{self, Compiled};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Findings;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = scratch().join(format!("linked {name}.{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a scratch folder can be made");
    folder
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn source(name: &str) -> String {
    text(&programs().join("linked").join(name))
}

/// Compiles as `palisade cc` does.
fn compile(compiler: &str, arguments: &[&str]) -> Compiled {
    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    let compiled = driver::compile(compiler, &arguments, &cache()).expect("the compiler can be started");
    assert!(compiled.success, "{compiler} {}", arguments.join(" "));
    compiled
}

/// Starts a program of the compiler.
fn plain(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().expect("it is there, as the compiler is");
    assert!(status.success(), "{program} {arguments:?}");
}

fn findings(program: &str, arguments: &[&str]) -> Findings {
    let command = std::iter::once(program).chain(arguments.iter().copied());
    let program = Program { command: command.map(str::to_owned).collect(), scheduling: Scheduling::Best };
    run(&program, &random(20))
}

/// What is reported as not compiled.
fn not_compiled(findings: &Findings) -> Vec<&str> {
    let all = findings.unfollowed.keys();
    all.filter(|(what, _)| *what == Unfollowed::NotCompiled).map(|(_, name)| name.as_str()).collect()
}

#[test]
fn assembly_and_objects_of_other_compilers() {
    for compiler in ["gcc", "clang"] {
        let folder = folder(&format!("objects {compiler}"));
        let program = text(&folder.join("program"));
        let compiled = compile(compiler, &[&source("main.c"), &source("write.s"), "-o", &program]);
        assert_eq!(compiled.not_compiled, [source("write.s")]);
        assert_eq!(not_compiled(&findings(&program, &[])), [source("write.s")]);

        let foreign = text(&folder.join("write 1.o"));
        plain("gcc", &["-c", &source("write.c"), "-o", &foreign]);
        compile(compiler, &[&source("main.c"), &foreign, "-o", &program]);
        assert_eq!(not_compiled(&findings(&program, &[])), [&foreign]);

        let archive = text(&folder.join("libwrite.a"));
        plain("ar", &["rc", &archive, &foreign]);
        let where_it_is = format!("-L{}", text(&folder));
        compile(compiler, &[&source("main.c"), &where_it_is, "-lwrite", "-o", &program]);
        assert_eq!(not_compiled(&findings(&program, &[])), [format!("{archive}(write 1.o)")]);

        // What is in the archive and is not needed is not part of the program.
        compile(compiler, &[&source("main.c"), &source("write.c"), &archive, "-o", &program]);
        let clean = findings(&program, &[]);
        assert!(clean.unfollowed.is_empty() && !clean.races.is_empty(), "{clean:?}");
    }
}

#[test]
fn own_objects_and_archives() {
    let folder = folder("own");
    let program = text(&folder.join("program"));
    let [own, archive, merged] = ["own.o", "libown.a", "merged.o"].map(|name| text(&folder.join(name)));
    compile("clang", &["-O2", "-c", &source("write.c"), "-o", &own]);
    plain("ar", &["rc", &archive, &own]);
    for input in [&own, &archive] {
        compile("gcc", &[&source("main.c"), input, "-o", &program]);
        let findings = findings(&program, &[]);
        assert!(findings.unfollowed.is_empty() && !findings.races.is_empty(), "{input}: {findings:?}");
    }
    // An object of ours with code of another compiler in it.
    let foreign = text(&folder.join("foreign.o"));
    let other = text(&folder.join("other.c"));
    std::fs::write(&other, "int f(int x) { return x + 1; }\n").expect("a file can be written");
    plain("gcc", &["-c", &other, "-o", &foreign]);
    plain("ld", &["-r", &own, &foreign, "-o", &merged]);
    compile("gcc", &[&source("main.c"), &merged, "-o", &program]);
    assert_eq!(not_compiled(&findings(&program, &[])), [&merged]);
}

#[test]
fn shared_libraries() {
    let folder = folder("shared");
    let [program, loads, own, mixed, foreign] =
        ["program", "loads", "libown.so", "libmixed.so", "libforeign.so"]
            .map(|name| text(&folder.join(name)));
    let shared = ["-shared", "-fPIC", "-o"];
    compile("gcc", &[&shared[..], &[&own, &source("write.c")]].concat());
    compile("gcc", &[&shared[..], &[&mixed, &source("write.s")]].concat());
    plain("gcc", &[&shared[..], &[&foreign, &source("write.c")]].concat());
    compile("gcc", &["-rdynamic", &source("loads.c"), "-o", &loads]);
    for (library, expected) in
        [(&own, vec![]), (&mixed, vec![source("write.s")]), (&foreign, vec![foreign.clone()])]
    {
        compile("gcc", &[&source("main.c"), library, "-o", &program]);
        let linked = findings(&program, &[]);
        assert_eq!(not_compiled(&linked), expected, "{library}");
        assert_eq!(linked.races.is_empty(), !expected.is_empty(), "{library}: {:?}", linked.races);
        // Loaded while the program runs, it is reported where that happens.
        let loaded = findings(&loads, &[library]);
        let places = not_compiled(&loaded);
        assert_eq!(places.is_empty(), expected.is_empty(), "{library}: {places:?}");
        assert!(places.iter().all(|place| place.contains("loads.c:17")), "{library}: {places:?}");
    }
}

#[test]
fn a_program_that_was_linked_by_hand() {
    let folder = folder("by hand");
    let [program, main, write] = ["program", "main.o", "write.o"].map(|name| text(&folder.join(name)));
    compile("gcc", &["-c", &source("main.c"), "-o", &main]);
    compile("gcc", &["-c", &source("write.c"), "-o", &write]);
    let runtime = palisade_harness::runtime::object("gcc", &cache()).expect("the runtime can be made");
    let runtime = text(&runtime.path.expect("it is kept"));
    plain("gcc", &[&main, &write, &runtime, "-o", &program, "-pthread", "-ldl", "-rdynamic"]);
    assert_eq!(not_compiled(&findings(&program, &[])).len(), 1);
}

/// Code that is written as data, or that can be written, is not followed.
#[test]
fn code_that_is_hidden_as_data() {
    for compiler in ["gcc", "clang"] {
        let folder = folder(&format!("bytes {compiler}"));
        let program = text(&folder.join("program"));
        compile(compiler, &["-w", &source("bytes.c"), "-o", &program]);
        assert_eq!(not_compiled(&findings(&program, &[])), [source("bytes.c")], "{compiler}");
    }
    let program = text(&folder("bytes writable").join("program"));
    compile("gcc", &["-w", "-DWRITABLE", &source("bytes.c"), "-o", &program]);
    let expected = [source("bytes.c"), "writable code of the program".to_owned()];
    assert_eq!(not_compiled(&findings(&program, &[])), expected);
}

/// The destructor of a library runs after everything that is followed. It is reported if another thread may still
/// run.
#[test]
fn destructors_of_libraries() {
    let folder = folder("destructors");
    let [library, program] = ["liblate.so", "program"].map(|name| text(&folder.join(name)));
    compile("gcc", &["-shared", "-fPIC", &source("late.c"), "-o", &library]);
    compile("gcc", &[&source("detached.c"), &library, "-o", &program]);
    let late = findings(&program, &[]);
    let mut reported = late.unfollowed.keys();
    let (what, place) = reported.next().expect("it is reported");
    assert_eq!((*what, reported.next()), (Unfollowed::AfterExit, None));
    assert!(place.contains("late.c:7"), "{place}");
    let joined = findings(&program, &["joins"]);
    assert!(joined.unfollowed.is_empty(), "{:?}", joined.unfollowed);
}
