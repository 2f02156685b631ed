//! Memory models side by side: the verdict under each, and the outcomes under each.

use super::idle::Idle;
use super::text::escape;
use super::{Entry, Subject, run};
use crate::models::{buffers, worst};
use crate::outcomes::OutcomesFinding;
use crate::{ModelRow, Report, Standing};
use palisade_memory::Model;
use std::fmt::Write;

/// The verdicts under several models, next to each other. The worst is the verdict of all.
pub fn models(subject: Subject<'_>, rows: &[ModelRow]) -> Entry {
    let mut body = String::from("<div class=\"side-by-side\" role=\"list\" aria-label=\"Memory models\">\n");
    for row in rows {
        let verdict = escape(row.verdict);
        let why = row.why.as_deref().map_or_else(String::new, |why| format!("<p>{}</p>", escape(why)));
        let found = match row.engine {
            "none" => String::new(),
            engine => format!("<p class=\"account\">engine {}, {:.2} s</p>", escape(engine), row.seconds),
        };
        writeln!(
            body,
            "<section class=\"one-model {verdict}\" role=\"listitem\" data-model=\"{}\" data-standing=\"{}\">\
             <h3>{} <span class=\"badge\">{verdict}</span></h3><p class=\"muted\">{}</p>{why}{found}</section>",
            row.model.name(),
            standing(row.standing),
            row.model.name().to_uppercase(),
            machines(row.model)
        )
        .expect("writing to a string");
    }
    body.push_str("</div>\n");
    let word = worst(rows).map_or("unknown", |row| row.verdict).to_owned();
    let why = buffers(rows).unwrap_or_default().to_owned();
    Entry { file: subject.source.name().to_owned(), word, why, account: String::new(), body }
}

/// The machines of a model, in words.
fn machines(model: Model) -> &'static str {
    match model {
        Model::Sc => "no store buffers",
        Model::Tso => "x86, SPARC TSO: one buffer per thread",
        Model::Pso => "SPARC PSO: a buffer per variable",
    }
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Good => "good",
        Standing::Bad => "bad",
        Standing::Open => "open",
    }
}

/// The outcomes under several models as a table, and the run to one of them.
pub fn outcomes(subject: Subject<'_>, finding: &OutcomesFinding<'_>) -> Entry {
    let mut body = String::new();
    if !finding.rows.is_empty() {
        body.push_str(&table(finding));
    }
    let remarks = finding.remarks();
    if !remarks.is_empty() {
        writeln!(body, "<pre class=\"remarks\">{}</pre>", escape(&remarks)).expect("writing to a string");
    }
    if let Some(shown) = &finding.run {
        let model = shown.evidence.machine.model.name().to_uppercase();
        writeln!(body, "<h3>A run to outcome {} under {model}</h3>", shown.number)
            .expect("writing to a string");
        body.push_str(&run::run(subject, &shown.evidence, "f0", Idle::Folded));
    }
    Entry {
        file: finding.subject().to_owned(),
        word: finding.word().to_owned(),
        why: finding.why().unwrap_or_default(),
        account: String::new(),
        body,
    }
}

fn table(finding: &OutcomesFinding<'_>) -> String {
    let mut html = String::from(
        "<div class=\"wide\" role=\"region\" aria-label=\"Outcomes\" tabindex=\"0\"><table class=\"outcomes\"><thead><tr><th scope=\"col\"><span class=\"sr\">number</span></th>",
    );
    for name in &finding.names {
        write!(html, "<th scope=\"col\">{}</th>", escape(name)).expect("writing to a string");
    }
    for model in &finding.models {
        write!(html, "<th scope=\"col\">{}</th>", model.model.name().to_uppercase())
            .expect("writing to a string");
    }
    html.push_str("<th scope=\"col\"><span class=\"sr\">remark</span></th></tr></thead><tbody>\n");
    for (row, number) in finding.rows.iter().zip(1..) {
        let class = if row.marked { " class=\"marked\"" } else { "" };
        write!(html, "<tr{class} data-outcome=\"{number}\"><th scope=\"row\">{number}</th>")
            .expect("writing to a string");
        for word in &row.words {
            write!(html, "<td class=\"code\">{}</td>", escape(word)).expect("writing to a string");
        }
        for (under, model) in row.under.iter().zip(&finding.models) {
            let (class, word) = match (under, model.missing) {
                (true, _) => ("yes", "yes"),
                (false, None) => ("no", "–"),
                (false, Some(_)) => ("maybe", "?"),
            };
            write!(html, "<td class=\"{class}\">{word}</td>").expect("writing to a string");
        }
        writeln!(html, "<td>{}</td></tr>", remark(finding.mark(row))).expect("writing to a string");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// What marks an outcome, in words.
fn remark(mark: &str) -> &str {
    if mark == "*" { "the condition holds" } else { mark }
}
