//! `palisade certify`: does a certificate prove its program safe?
//!
//! No engine takes part: only the parser, the lowering, the automata and the checker of `palisade-certificate`. Exit codes: 0 if the proof convinces, 1 if it does
//! not, 2 if the file or the program cannot be read, 3 if time or memory ran out.

use crate::args::{CertifyArgs, Common, Format};
use crate::exit::Exit;
use crate::files::{self, Reading, Recorded};
use crate::limits::Limits;
use crate::meter::Meter;
use crate::output::{Detail, Output};
use palisade::certificate::{Certificate, Refusal, Summary};
use palisade::trace::text_hash;
use palisade::{CertifyError, Diagnostic, report};
use serde_json::json;

/// Runs the command.
pub fn run(args: &CertifyArgs, common: &Common, output: &Output) -> Exit {
    let name = args.certificate.display().to_string();
    let refuse = |error: Diagnostic| output.refuse_about(&name, error);
    let bad = |message: String| Diagnostic::error("bad-certificate", message);
    let text = match files::text(&args.certificate) {
        Ok(text) => text,
        Err(error) => return refuse(error),
    };
    let certificate = match Certificate::from_json(&text) {
        Ok(certificate) => certificate,
        Err(error) => return refuse(bad(error.to_string())),
    };
    let recorded = Recorded {
        file: &certificate.file,
        language: &certificate.language,
        int_range: certificate.int_range,
    };
    let path =
        recorded.path(&args.certificate, args.program.as_deref(), |text| certificate.hash == text_hash(text));
    let input = match recorded.read(path) {
        Ok(Reading::Program(input)) => input,
        Ok(Reading::Refused(refused)) => return output.refuse(&refused),
        Ok(Reading::Skipped) => unreachable!("files that are named are not skipped"),
        Err(message) => return refuse(bad(message)),
    };
    if certificate.hash != text_hash(input.source.text()) {
        output.complain_about(&name, files::another_program(&input, args.program.as_deref(), "proof"));
    }
    let budget = Limits::new(common).budget(1);
    let meter = Meter::new(output.detail == Detail::Quiet);
    let judged = palisade::certify(&input.program, &certificate, &budget, &meter);
    drop(meter);
    let (verdict, exit) = match &judged {
        Ok(_) => ("valid", Exit::Fine),
        Err(CertifyError::Refused(Refusal::Exhausted(_))) => ("unknown", Exit::Unknown),
        Err(_) => ("invalid", Exit::Violated),
    };
    let program = input.source.name();
    let told = match common.format {
        Format::Json => record(&name, program, &certificate, verdict, &judged),
        Format::Text => match &judged {
            Ok(summary) => format!(
                "valid  {name}: {program} is safe under {} ({} elements, {} steps checked)\n",
                certificate.model.to_uppercase(),
                summary.elements,
                summary.predecessors
            ),
            Err(error) => format!("{verdict}  {name}: {error}\n"),
        },
    };
    output.print(&told);
    exit
}

fn record(
    name: &str,
    program: &str,
    certificate: &Certificate,
    verdict: &str,
    judged: &Result<Summary, CertifyError>,
) -> String {
    let mut record = json!({
        "schema_version": report::SCHEMA_VERSION,
        "command": "certify",
        "file": name,
        "program": program,
        "model": certificate.model,
        "verdict": verdict,
    });
    match judged {
        Ok(summary) => {
            record["elements"] = summary.elements.into();
            record["predecessors"] = summary.predecessors.into();
        }
        Err(error) => record["reason"] = error.to_string().into(),
    }
    record.to_string() + "\n"
}
