//! `palisade cc` and `palisade c++`: a compiler for programs that `palisade run` can run.
//!
//! Exit codes: 0 if the compiler succeeded, 2 if not.

use crate::args::CcArgs;
use crate::exit::Exit;
use crate::output::Output;
use palisade::Diagnostic;
use palisade::harness::cache::Cache;
use palisade::harness::driver;
use std::process::Command;

/// The language to compile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compiles {
    /// C.
    C,
    /// C++.
    Cxx,
}

impl Compiles {
    /// The compiler that the user requests, or the first one that is available.
    pub fn compiler(self, requested: Option<&str>) -> String {
        let (variable, usual) = match self {
            Compiles::C => ("CC", ["gcc", "clang"]),
            Compiles::Cxx => ("CXX", ["g++", "clang++"]),
        };
        let from_environment =
            || std::env::var(variable).ok().filter(|name| !name.is_empty() && !name.contains("palisade"));
        let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
        requested
            .map(str::to_owned)
            .or_else(from_environment)
            .unwrap_or_else(|| usual.into_iter().find(is_there).unwrap_or(usual[0]).to_owned())
    }
}

/// The user's cache. If others can write to it, it is not used, and a warning is printed.
pub fn user_cache(output: &Output) -> Result<Cache, Exit> {
    match Cache::of_user(|name| std::env::var_os(name)) {
        Ok(cache) => {
            if let Some(why) = cache.refused() {
                let warning = Diagnostic::warning("cache-not-used", format!("the cache is not used: {why}"))
                    .help(
                        "set PALISADE_CACHE to a folder that belongs to you and that no other user can replace",
                    );
                output.complain_about("cache", warning);
            }
            Ok(cache)
        }
        Err(error) => {
            let folder = std::env::temp_dir();
            let problem = format!("cannot create a temporary folder in {}: {error}", folder.display());
            let diagnostic = Diagnostic::error("cannot-compile", problem)
                .help("set TMPDIR to a folder that you can write to");
            output.complain_about("cache", diagnostic);
            Err(Exit::Error)
        }
    }
}

/// Runs the command.
pub fn run(args: &CcArgs, language: Compiles, output: &Output) -> Exit {
    let compiler = language.compiler(args.compiler.as_deref());
    let cache = match user_cache(output) {
        Ok(cache) => cache,
        Err(exit) => return exit,
    };
    match driver::compile(&compiler, &args.arguments, &cache) {
        Ok(compiled) => {
            for (source, code) in &compiled.unfollowed {
                let message = format!("inline assembly that touches memory is not followed: `{code}`");
                output.complain_about(source, Diagnostic::warning("inline-assembly", message));
            }
            for file in &compiled.not_compiled {
                let message =
                    "this code was not compiled by `palisade cc`: what it does to memory is not seen";
                let warning = Diagnostic::warning("not-compiled", message)
                    .help("compile its sources with `palisade cc` or `palisade c++`");
                output.complain_about(file, warning);
            }
            if !compiled.said.is_empty() {
                output.print(&compiled.said);
            }
            if compiled.success { Exit::Fine } else { Exit::Error }
        }
        Err(error) => {
            let diagnostic = Diagnostic::error("cannot-compile", error.to_string())
                .help("run `palisade doctor` to see what is missing on this machine");
            output.complain_about(&compiler, diagnostic);
            Exit::Error
        }
    }
}
