//! The command as people use it. There is one test program: it is linked once, and its tests run in parallel.

mod common;

mod bad_input;
mod bench;
mod book;
mod certify;
mod check;
mod constants;
mod coverage;
mod diagnostics;
mod fair;
mod fences;
mod fmt;
mod folder;
mod group;
mod heavy;
mod hostile;
mod imports;
mod limits;
mod lsp;
mod machine;
mod monitor;
mod names;
mod outcomes;
mod progress;
mod proofs;
mod readme;
mod replay;
mod robust;
mod serve;
mod shell;
mod threads;
mod translate;
mod written;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod c;
    mod c_any;
    mod c_any_random;
    mod c_assumptions;
    mod c_corpus;
    mod c_ends;
    mod c_exit;
    mod c_fences;
    mod c_finish;
    mod c_library;
    mod c_minimise;
    mod c_mistakes;
    mod c_odd;
    mod c_random;
    mod c_schedule;
    mod cargo;
    mod cargo_test;
    mod html;
    mod html_run;
    mod lsp_c;
    mod object;
    mod object_forms;
    mod packages;
    mod programs;
    mod run;
    mod run_cc;
    mod run_ends;
    mod run_suppress;
    mod rust;
    mod rust_corpus;
    mod rust_package;
    mod sarif_run;
    mod sarif_shape;
    mod schema;
    mod serve_c;
    mod signals;
}
