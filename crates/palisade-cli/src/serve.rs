//! `palisade serve`: the playground. Prints its address and serves it until Ctrl-C.

use crate::args::{Common, Format, ServeArgs};
use crate::c::Sealed;
use crate::exit::Exit;
use crate::limits::UserLimits;
use crate::output::{Detail, Output};
use palisade::{Diagnostic, Refused, Source, report};
use palisade_serve::{Config, Globals, ReadC, Server};
use serde_json::json;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

/// The time limit of a run, if none is given.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The memory limit of a run, if none is given.
const MEMORY: u64 = 2 << 30;
/// Larger programs are refused. Nobody types them into a web page.
const LARGEST: usize = 512 << 10;
/// The maximum number of connections at a time.
const CONNECTIONS: usize = 256;

/// Runs the command.
pub fn run(args: &ServeArgs, common: &Common, output: &Output) -> Exit {
    if args.answer {
        return answer(args);
    }
    // C is offered only if clang is there and can be kept from reading files.
    let c = !args.no_c && Sealed::tested().is_ok();
    let limits = UserLimits::new(common);
    let runs = args.runs.map_or(limits.jobs, |runs| runs as usize).max(1);
    let memory = limits.per_file(runs).memory();
    let config = Config {
        listen: args.listen,
        timeout: common.timeout.unwrap_or(TIMEOUT),
        memory: if common.memory.is_some() { memory } else { memory.min(MEMORY) },
        jobs: (limits.jobs / runs).max(1),
        runs,
        waiting: usize::from(args.waiting),
        connections: CONNECTIONS,
        largest: LARGEST,
        c,
        version: concat!("Palisade ", env!("PALISADE_VERSION")).to_owned(),
    };
    // If the path of this executable is unknown, threads answer.
    let worker = std::env::current_exe().map(|program| {
        let mut command: Vec<OsString> = vec![program.into(), "serve".into(), "--answer".into()];
        command.extend((!c).then(|| "--no-c".into()));
        command
    });
    let server = match Server::bind(config) {
        Ok(server) => match worker {
            Ok(worker) => server.with_worker(worker),
            Err(_) => server,
        },
        Err(error) => {
            let problem = Diagnostic::error("cannot-listen", error.to_string());
            let help = "choose another port with --listen, or 127.0.0.1:0 for any that is free";
            return output.refuse_about(&args.listen.to_string(), problem.help(help));
        }
    };
    if !server.address().ip().is_loopback() && output.detail != Detail::Quiet {
        let warning = Diagnostic::warning(
            "not-only-here",
            "other machines can reach the playground and run checks on this one",
        );
        output.complain_about(&server.address().to_string(), warning);
    }
    let url = server.url();
    let line = match common.format {
        Format::Text => format!("serving  {url}\n"),
        Format::Json => {
            let version = report::SCHEMA_VERSION;
            json!({ "schema_version": version, "command": "serve", "url": url }).to_string() + "\n"
        }
    };
    output.print(&line);
    server.serve(&limits.stop);
    Exit::Fine
}

/// Answers one question for a server that started this process.
fn answer(args: &ServeArgs) -> Exit {
    let read_c = |source: Source, globals: Globals| match Sealed::new() {
        Ok(sealed) => sealed.read(source, globals == Globals::Kept),
        Err(error) => Err(Refused { source, diagnostics: vec![error] }),
    };
    let read_c: Option<Box<ReadC>> = if args.no_c { None } else { Some(Box::new(read_c)) };
    // If the server is gone, no answer is needed.
    let hung_up = || std::process::exit(Exit::Unknown.code().into());
    match palisade_serve::answer_one(io::stdin(), &mut io::stdout(), read_c, hung_up) {
        Ok(()) => Exit::Fine,
        Err(_) => Exit::Error,
    }
}
