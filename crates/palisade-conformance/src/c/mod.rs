//! Random C programs, named by their seed, and their judge.
//!
//! | module | programs | judge |
//! |---|---|---|
//! | [`litmus`] | two to four threads with a few atomic accesses each | the brute-force interpreter, on a program that is built from the same description and never was C or Rust |
//! | [`concurrent`] | threads, locks, semaphores, condition variables, heap | the compiled program, run once per partial order |
//! | [`crowd`] | functions that any number of threads run | the brute-force interpreter, with a few threads, on a program that is built from the same description |
//! | [`leaks`] | heap objects that are handed around | all interleavings of the operations |
//! | [`heap`] | two threads that allocate, free and use blocks | all interleavings of the operations, with store buffers |
//! | [`sequential`] | arithmetic, pointers, structs, copies, calls, heap | the compiled program, with sanitizers |
//!
//! Programs put what is compared into the `long` variables `o0`, `o1`, … With `-DOUTCOMES="FILE"` they append these
//! values to a file as one line when they end.

pub mod concurrent;
pub mod crowd;
mod expressions;
pub mod heap;
pub mod leaks;
pub mod litmus;
mod litmus_in_rust;
pub mod sequential;

pub use expressions::Integer;

use std::fmt::Write;

/// The text of a program, line by line.
#[derive(Clone, Default, Debug)]
struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// Adds a line.
    fn line(&mut self, line: impl AsRef<str>) {
        writeln!(self.text, "{:1$}{2}", "", 4 * self.depth, line.as_ref()).expect("writing to a string");
    }

    /// Adds a line that opens a block.
    fn open(&mut self, line: impl AsRef<str>) {
        self.line(format!("{} {{", line.as_ref()));
        self.depth += 1;
    }

    /// Closes a block.
    fn close(&mut self, rest: &str) {
        self.depth -= 1;
        self.line(format!("}}{rest}"));
    }
}

/// The declarations of what is compared.
fn outputs(count: usize) -> String {
    (0..count).map(|index| format!("static long o{index};\n")).collect()
}

/// A function `finish` that writes what is compared to a file, if there is to be one.
fn finish(count: usize) -> String {
    let formats = vec!["%ld"; count].join(" ");
    let values: String = (0..count).map(|index| format!(", o{index}")).collect();
    format!(
        "#ifdef OUTCOMES\n#include <stdio.h>\nstatic void finish(void)\n{{\n    FILE *file = fopen(OUTCOMES, \"a\");\n    \
         fprintf(file, \"{formats}\\n\"{values});\n    fclose(file);\n}}\n#else\nstatic void finish(void)\n{{\n}}\n#endif\n"
    )
}
