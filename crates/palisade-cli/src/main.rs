//! The `palisade` command. The only crate that reads files, prints and exits.
//!
//! Each command has a file of its own. [`args`] defines the command line, [`exit`] the exit codes.

mod args;
mod bench;
mod c;
mod cargo;
mod cc;
mod certify;
mod check;
mod cluster;
mod compiler;
mod doctor;
mod execution_page;
mod exit;
mod expect;
mod fences;
mod files;
mod fmt;
mod group;
mod html;
mod interrupt;
mod limits;
mod lsp;
mod meter;
mod minimise;
mod monitor;
mod object;
mod outcomes;
mod output;
mod patch;
mod paths;
mod ran_out;
mod replay;
mod robust;
mod run;
mod rust;
mod rust_tests;
mod serve;
mod shell;
mod show;
mod supervise;
mod suppress;
mod translate;
mod waiting;

use args::Command;
use exit::Exit;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(arguments) = cargo::linker_arguments() {
        return cargo::link(arguments);
    }
    if let Some(exit) = rust::wrapped() {
        return exit;
    }
    interrupt::report_size_limit();
    let palisade = match args::parse() {
        Ok(palisade) => palisade,
        Err(message) => {
            let exit = output::print_instead(&message);
            group::inform_others_about(&std::env::args_os().collect::<Vec<_>>(), &message);
            return ExitCode::from(exit);
        }
    };
    let starts_compilers =
        matches!(palisade.command, Command::Cc(_) | Command::Cxx(_) | Command::Cargo(_) | Command::Doctor);
    if starts_compilers && let Some(exit) = supervise::run() {
        return exit;
    }
    let output = Output::new(&palisade);
    waiting::give_up_after(palisade.common.timeout);
    let exit = match &palisade.command {
        Command::Check(args) => check::run(args, &palisade.common, &output),
        Command::Outcomes(args) => outcomes::run(args, &palisade.common, &output),
        Command::Replay(args) => replay::run(args, &palisade.common, &output),
        Command::Robust(args) => robust::run(args, &palisade.common, &output),
        Command::Certify(args) => certify::run(args, &palisade.common, &output),
        Command::Fences(args) => fences::run(args, &palisade.common, &output),
        Command::Monitor(args) => monitor::run(args, &palisade.common, &output),
        Command::Cluster(args) => return cluster::run(args, &output),
        Command::Serve(args) => serve::run(args, &palisade.common, &output),
        Command::Run(args) if args.tests => rust_tests::run(args, &palisade.common, &output),
        Command::Run(args) => run::run(args, &palisade.common, &output),
        Command::Cc(args) => cc::run(args, cc::Compiles::C, &output),
        Command::Cxx(args) => cc::run(args, cc::Compiles::Cxx, &output),
        Command::Cargo(args) => cargo::run(args, &palisade.common, &output),
        Command::Doctor => doctor::run(&output),
        Command::Translate(args) => translate::run(args, &palisade.common, &output),
        Command::Show(args) => show::run(args, &palisade.common, &output),
        Command::Fmt(args) => fmt::run(args, &palisade.common, &output),
        Command::Lsp(args) => lsp::run(args, &palisade.common),
        Command::Bench(args) => bench::run(args, &palisade.common, &output),
        Command::Completions(args) => shell::completions(args, &output),
        Command::Man(args) => shell::man(args, &output),
    };
    let exit = output.ended(exit);
    if exit == Exit::Error {
        group::inform_others(&palisade.command, output.problem());
    }
    ExitCode::from(exit.code())
}
