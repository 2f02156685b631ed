//! What the installed compilers write is read without complaint.

use crate::common::{body, describe};
use palisade_base::Source;
use palisade_llvm::Module;
use palisade_llvm::instructions::Op;
use palisade_llvm::module::RecordKind;
use std::io::Write;
use std::process::{Command, Stdio};

const LOCKS: &str = include_str!("sources/locks.c");
const LANGUAGE: &str = include_str!("sources/language.c");
const QUEUE: &str = include_str!("sources/queue.rs");

/// What a compiler prints for a source on its standard input.
#[track_caller]
fn compile(program: &str, arguments: &[&str], source: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} cannot be started: {error}"));
    let mut input = child.stdin.take().expect("it is a pipe");
    let source = source.to_owned();
    let writer = std::thread::spawn(move || input.write_all(source.as_bytes()));
    let output = child.wait_with_output().expect("the compiler ends");
    writer.join().expect("the writer ends").expect("the compiler reads everything");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}\n{messages}");
    String::from_utf8(output.stdout).expect("IR is text")
}

#[track_caller]
fn read(text: &str, what: &str) -> Module {
    let source = Source::new("compiled.ll", text);
    palisade_llvm::read(&source).unwrap_or_else(|errors| {
        let lines = errors.iter().filter_map(|error| source.position(error.span()));
        let lines: Vec<&str> = lines.map(|position| source.line(position.line)).collect();
        panic!("{what}\n{}{}", describe(&source, &errors), lines.join("\n"))
    })
}

fn clang(source: &str, arguments: &[&str]) -> String {
    let fixed = ["-x", "c", "-S", "-emit-llvm", "-w", "-o", "-", "-"];
    compile(&installed(), &[arguments, &fixed].concat(), source)
}

/// `$CC` if it is clang, else `clang`.
fn installed() -> String {
    let is_clang = |name: &String| {
        let output = Command::new(name).arg("--version").stdin(Stdio::null()).output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("clang"))
    };
    std::env::var("CC").ok().filter(is_clang).unwrap_or_else(|| "clang".to_owned())
}

#[test]
fn clang_at_all_levels() {
    let unoptimised = ["-O0", "-Xclang", "-disable-O0-optnone", "-g"];
    for source in [LOCKS, LANGUAGE] {
        for arguments in [
            &[&unoptimised[..], &["-fno-discard-value-names"]].concat()[..],
            &[&unoptimised[..], &["-fdiscard-value-names"]].concat()[..],
            &["-O0"],
            &["-O1", "-g"],
            &["-O2"],
        ] {
            read(&clang(source, arguments), &format!("{arguments:?}"));
        }
    }
}

/// What the locks are made of is all there.
#[test]
fn locks_are_understood() {
    let text = clang(LOCKS, &["-O0", "-Xclang", "-disable-O0-optnone", "-g", "-fno-discard-value-names"]);
    let module = read(&text, "locks.c");
    let count = |is: fn(&Op) -> bool| {
        let bodies = module.functions.iter().filter_map(|function| function.body.as_ref());
        let instructions = bodies.flat_map(|body| body.blocks.iter()).flat_map(|block| &block.instructions);
        instructions.filter(|instruction| is(&instruction.op)).count()
    };
    assert_eq!(count(|op| matches!(op, Op::CompareExchange { .. })), 1);
    assert_eq!(count(|op| matches!(op, Op::ReadModifyWrite { .. })), 4);
    assert_eq!(count(|op| matches!(op, Op::Fence { .. })), 2);
    assert_eq!(count(|op| matches!(op, Op::Store { access, .. } if access.volatile)), 1);
    let atomic = |op: &Op| match op {
        Op::Load { access, .. } | Op::Store { access, .. } => access.atomic.is_some(),
        _ => false,
    };
    assert_eq!(count(atomic), 9);
    let (_, worker) = body(&module, "worker");
    let names: Vec<&str> = worker
        .records
        .iter()
        .filter(|record| record.kind == RecordKind::Declare)
        .filter_map(|record| module.debug.variable(record.variable))
        .map(|variable| variable.name)
        .collect();
    assert_eq!(names, ["argument", "times", "i", "me", "before"]);
    let me = worker.records.iter().filter_map(|record| module.debug.variable(record.variable));
    let me = me.into_iter().find(|variable| variable.name == "me").and_then(|variable| variable.ty);
    let me = me.expect("`me` has a type");
    assert_eq!(module.debug.path(me, 0, Some(8)), ".next");
    assert_eq!(module.debug.path(me, 8, Some(1)), ".locked");
    let failed = worker.blocks.iter().flat_map(|block| &block.instructions).find(|instruction| {
        instruction.op.call().is_some()
            && instruction.ty == palisade_llvm::types::Types::VOID
            && text[instruction.span.range()].contains("@__assert_fail")
    });
    let location = failed.and_then(|instruction| instruction.location).expect("it has a place");
    let line = module.debug.position(location).expect("it is known").line;
    assert_eq!(LOCKS.lines().nth(line as usize - 1).map(str::trim), Some("assert(counter == before + 1);"));
}

/// The names and offsets of what C has.
#[test]
fn objects_of_c_are_named() {
    let text = clang(LANGUAGE, &["-O0", "-Xclang", "-disable-O0-optnone", "-g"]);
    let module = read(&text, "language.c");
    let object = module.global("object").expect("it is there");
    let variable = module.debug.variable(object.variables[0]).expect("it is known");
    let ty = variable.ty.expect("it has a type");
    for (offset, size, path) in [
        (0, 4, ".low/high"),
        (8, 1, ".items[0][0].tag"),
        (16, 8, ".items[0][0].whole"),
        (18, 2, ".items[0][0].parts[1]"),
        (96, 8, ".items[1][2].whole"),
        (104, 8, ".self"),
        (112, 8, ".method"),
    ] {
        assert_eq!(module.debug.path(ty, offset, Some(size)), path);
    }
    assert_eq!(module.layouts.size(object.ty), Some(120));
    assert!(module.global("per_thread").is_some_and(|global| global.thread_local));
    assert!(module.global("defined_elsewhere").is_some_and(|global| global.initializer.is_none()));
}

#[test]
fn rustc_with_and_without_unwinding() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    for arguments in [&["-g"][..], &["-C", "panic=abort", "-g"], &["-O"]] {
        let fixed = ["--edition", "2021", "--crate-name", "queue", "--emit=llvm-ir", "-o", "-", "-"];
        let text = compile(&rustc, &[arguments, &fixed].concat(), QUEUE);
        let module = read(&text, &format!("{arguments:?}"));
        assert!(module.function("main").is_some_and(|function| function.body.is_some()));
    }
}
