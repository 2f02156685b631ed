//! `palisade doctor`: can this machine run real programs under the scheduler, and what should be installed?
//!
//! Exit codes: 0 if C programs can be run, 3 if something needed for that is missing.

use crate::args::Format;
use crate::c::Clang;
use crate::cc;
use crate::exit::Exit;
use crate::output::Output;
use crate::rust::Rustc;
use palisade::Diagnostic;
use palisade::harness::cache::temporary_folder;
use palisade::harness::doctor::{Finding, Health, examine};
use palisade::report::SCHEMA_VERSION;

/// Whether C programs can be checked.
fn reads_c() -> Finding {
    let (health, found, advice) = match Clang::find() {
        Ok(clang) => (Health::Fine, format!("`palisade check lock.c` uses {}", clang.version), None),
        Err(error) => (Health::Absent, "there is no clang to read them with".to_owned(), error.help),
    };
    Finding { what: "checking C", health, found, advice, is_compiler: false }
}

/// Whether Rust programs can be checked.
fn reads_rust() -> Finding {
    let (health, found, advice) = match Rustc::find() {
        Ok(rustc) => (Health::Fine, format!("`palisade check lock.rs` uses {}", rustc.version), None),
        Err(error) => (Health::Absent, error.message, error.help),
    };
    Finding { what: "checking Rust", health, found, advice, is_compiler: false }
}

/// Runs the command.
pub fn run(output: &Output) -> Exit {
    let cache = match cc::user_cache(output) {
        Ok(cache) => cache,
        Err(exit) => return exit,
    };
    let work = match temporary_folder("palisade-doctor-") {
        Ok(work) => work,
        Err(error) => {
            let problem = format!("cannot create a temporary folder: {error}");
            output.complain_about("doctor", Diagnostic::error("cannot-compile", problem));
            return Exit::Error;
        }
    };
    let mut findings = examine(&cache, work.path());
    findings.push(reads_c());
    findings.push(reads_rust());
    let ready = findings.iter().any(|finding| finding.is_compiler && finding.health == Health::Fine);
    let text = match output.format {
        Format::Json => {
            let checks: Vec<serde_json::Value> = findings
                .iter()
                .map(|finding| {
                    serde_json::json!({
                        "what": finding.what,
                        "health": finding.health.name(),
                        "found": finding.found,
                        "advice": finding.advice,
                    })
                })
                .collect();
            let record = serde_json::json!({
                "schema_version": SCHEMA_VERSION,
                "command": "doctor",
                "verdict": if ready { "ready" } else { "not-ready" },
                "checks": checks,
            });
            format!("{record}\n")
        }
        Format::Text => {
            let mut text = format!("{}\n", if ready { "ready" } else { "not-ready" });
            let width = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
            for finding in &findings {
                text +=
                    &format!("  {:7}  {:width$}  {}\n", finding.health.name(), finding.what, finding.found);
                if let Some(advice) = &finding.advice {
                    text += &format!("           {:width$}  {advice}\n", "");
                }
            }
            text
        }
    };
    output.print(&text);
    if ready { Exit::Fine } else { Exit::Unknown }
}
