//! The answers for one program under several memory models, as one table.

use crate::report::{Colour, Report, Standing};
use crate::table::{self, Align, Column};
use crate::{Explain, Finding, visible};
use palisade_memory::Model;

/// The answer under one model.
#[derive(Clone, Debug)]
pub struct ModelRow {
    /// The model.
    pub model: Model,
    /// The verdict, or `error`.
    pub verdict: &'static str,
    /// Whether the verdict is good news.
    pub standing: Standing,
    /// The engine that answered.
    pub engine: &'static str,
    /// Time taken.
    pub seconds: f64,
    /// What is bad, why it is unknown, or what a good verdict is limited to.
    pub why: Option<String>,
}

impl ModelRow {
    /// The row of an answer.
    pub fn of<Q: Explain>(finding: &Finding<'_, Q>) -> ModelRow {
        ModelRow {
            model: finding.model,
            verdict: finding.outcome.word(),
            standing: finding.standing(),
            engine: finding.outcome.engine,
            seconds: finding.seconds,
            why: finding.why(),
        }
    }

    /// The row of a question for which there was not enough time or memory.
    pub fn ran_out(model: Model, seconds: f64, what: String) -> ModelRow {
        let (verdict, standing, engine) = ("unknown", Standing::Open, "none");
        ModelRow { model, verdict, standing, engine, seconds, why: Some(what) }
    }
}

/// The answers to a command for one program: a line for scripts, with the worst verdict first, and unless only that is
/// wanted, a table.
pub fn models(command: &str, file: &str, rows: &[ModelRow], whole: bool, colour: Colour) -> String {
    let Some(worst) = worst(rows) else { return String::new() };
    let verdicts =
        rows.iter().map(|row| format!("{} under {}", row.verdict, row.model.name().to_uppercase()));
    let verdicts = verdicts.collect::<Vec<_>>().join(", ");
    let mut text =
        format!("{}  {}: {verdicts}\n", worst.standing.painted(worst.verdict, colour), visible(file));
    if !whole {
        return text;
    }
    let cells = |cell: &dyn Fn(&ModelRow) -> String| rows.iter().map(cell).collect::<Vec<String>>();
    let columns = [
        Column::new("model", Align::Left, cells(&|row| row.model.name().to_uppercase())),
        Column::new("verdict", Align::Left, cells(&|row| row.verdict.to_owned())),
        Column::new("engine", Align::Left, cells(&|row| row.engine.to_owned())),
        Column::new("seconds", Align::Right, cells(&|row| format!("{:.2}", row.seconds))),
        Column::new("why", Align::Left, cells(&|row| row.why.clone().unwrap_or_default())),
    ];
    text.push('\n');
    for line in table::lines(&columns) {
        text.push_str(&(line + "\n"));
    }
    if let Some(remark) = buffers(rows) {
        text.push_str(&format!("\n{remark}\n"));
    }
    if let Some(bad) = rows.iter().find(|row| row.standing == Standing::Bad) {
        let (file, model) = (visible(file), bad.model.name());
        text.push_str(&format!("`palisade {command} {file} --model {model}` shows the run\n"));
    }
    text
}

/// The row with the worst verdict; of several, the first.
pub(crate) fn worst(rows: &[ModelRow]) -> Option<&ModelRow> {
    let rank = |row: &&ModelRow| match row.standing {
        Standing::Good => 0,
        Standing::Open => 1,
        Standing::Bad => 2,
    };
    rows.iter().rev().max_by_key(rank)
}

/// Whether store buffers are to blame, if that is known.
pub(crate) fn buffers(rows: &[ModelRow]) -> Option<&'static str> {
    let without = rows.iter().find(|row| row.model == Model::Sc)?;
    let broken = rows.iter().any(|row| row.model != Model::Sc && row.standing == Standing::Bad);
    match without.standing {
        Standing::Bad => Some("it breaks even without store buffers"),
        Standing::Good if broken => Some("it breaks only with store buffers"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_buffers_are_blamed_only_if_that_is_known() {
        let row = |(model, verdict): (Model, &'static str)| ModelRow {
            model,
            verdict,
            standing: match verdict {
                "safe" => Standing::Good,
                "unsafe" => Standing::Bad,
                _ => Standing::Open,
            },
            engine: "explicit",
            seconds: 0.25,
            why: None,
        };
        let check = |verdicts: [&'static str; 3], word: &str, blamed: Option<&str>| {
            let rows: Vec<ModelRow> = Model::ALL.into_iter().zip(verdicts).map(row).collect();
            let text = models("check", "a.pal", &rows, true, Colour::Never);
            let [sc, tso, pso] = verdicts;
            let first = format!("{word}  a.pal: {sc} under SC, {tso} under TSO, {pso} under PSO");
            assert_eq!(text.lines().next(), Some(first.as_str()));
            assert_eq!(buffers(&rows), blamed, "{text}");
            assert_eq!(models("check", "a.pal", &rows, false, Colour::Never), first + "\n");
        };
        let only = Some("it breaks only with store buffers");
        check(["safe", "safe", "safe"], "safe", None);
        check(["safe", "unsafe", "unsafe"], "unsafe", only);
        check(["safe", "unknown", "unsafe"], "unsafe", only);
        check(["unknown", "unsafe", "unsafe"], "unsafe", None);
        check(["safe", "safe", "unknown"], "unknown", None);
        check(["unsafe", "unsafe", "unsafe"], "unsafe", Some("it breaks even without store buffers"));
    }
}
