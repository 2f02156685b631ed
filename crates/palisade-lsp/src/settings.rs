//! What the user may set: the `initializationOptions` of the client.
//!
//! *Guarantee*: an option that is wrong is reported, and the others count. Without a known memory model no question is
//! answered.

use palisade::Model;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

const OPTIONS: &str = "`model`, `checkOnSave`, `budget` and `constants`";

/// What the user has set.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Settings {
    /// The memory model, or what is wrong with it.
    model: Result<Model, String>,
    /// Whether programs are checked when they are saved.
    pub(crate) check_on_save: bool,
    /// The time for each question; by default that of the command line.
    budget: Option<Duration>,
    /// Values of constants, as with `-D`. Each program takes those that it has.
    pub(crate) constants: BTreeMap<String, i64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { model: Ok(Model::Tso), check_on_save: true, budget: None, constants: BTreeMap::new() }
    }
}

impl Settings {
    /// Reads the options. Also returns what is wrong with them.
    pub(crate) fn read(options: &Value) -> (Settings, Vec<String>) {
        let (mut settings, mut wrong) = (Settings::default(), Vec::new());
        let Some(options) = object(options) else {
            let why = format!("initializationOptions: {options} is not an object with the options {OPTIONS}");
            settings.model = Err(why.clone());
            return (settings, vec![why]);
        };
        for (name, value) in options.iter().filter(|(_, value)| !value.is_null()) {
            match name.as_str() {
                "model" => {
                    settings.model = model(value);
                    wrong.extend(settings.model.clone().err());
                }
                "checkOnSave" => match value.as_bool() {
                    Some(value) => settings.check_on_save = value,
                    None => wrong.push(expected(name, "true or false", value)),
                },
                "budget" => match budget(value) {
                    Some(value) => settings.budget = Some(value),
                    None => wrong.push(expected(name, "a number of seconds greater than 0", value)),
                },
                "constants" => settings.read_constants(value, &mut wrong),
                _ => wrong.push(format!("there is no option `{name}`: the options are {OPTIONS}")),
            }
        }
        (settings, wrong)
    }

    fn read_constants(&mut self, values: &Value, wrong: &mut Vec<String>) {
        let Some(values) = object(values) else {
            wrong.push(expected("constants", "an object such as {\"N\": 3}", values));
            return;
        };
        for (name, value) in values.iter().filter(|(_, value)| !value.is_null()) {
            match value.as_i64().or_else(|| value.as_bool().map(i64::from)) {
                Some(value) => _ = self.constants.insert(name.clone(), value),
                None => {
                    let option = format!("constants.{name}");
                    wrong.push(expected(&option, "a 64-bit integer, true or false", value));
                }
            }
        }
    }

    /// The memory model, or what is wrong with it.
    pub(crate) fn model(&self) -> Result<Model, &str> {
        self.model.as_ref().copied().map_err(String::as_str)
    }

    /// The time for one question.
    pub(crate) fn budget(&self, usual: Duration) -> Duration {
        self.budget.unwrap_or(usual)
    }
}

/// An object. Some clients write an empty one as an empty list.
fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object.clone()),
        Value::Array(list) if list.is_empty() => Some(Map::new()),
        _ => None,
    }
}

/// A memory model by its name, in capitals or not.
fn model(value: &Value) -> Result<Model, String> {
    let is_it = |model: &Model| value.as_str().is_some_and(|name| name.eq_ignore_ascii_case(model.name()));
    let names = Model::ALL.map(|model| format!("\"{}\"", model.name()));
    let (last, others) = names.split_last().expect("there are several models");
    let allowed = || format!("{} or {last}", others.join(", "));
    Model::ALL.into_iter().find(is_it).ok_or_else(|| expected("model", &allowed(), value))
}

fn budget(value: &Value) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(value.as_f64()?).ok()?;
    (!time.is_zero()).then_some(time)
}

fn expected(option: &str, allowed: &str, found: &Value) -> String {
    format!("the option `{option}` is {found}, but it must be {allowed}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(options: Value, expected: &Settings, wrong: &[&str]) {
        let (settings, found) = Settings::read(&options);
        assert_eq!(&settings, expected, "{options}");
        assert_eq!(found, wrong, "{options}");
    }

    #[test]
    fn options_that_are_right() {
        let usual = Settings::default();
        check(json!({}), &usual, &[]);
        check(json!([]), &usual, &[]);
        check(json!({ "model": null, "constants": [] }), &usual, &[]);
        check(json!({ "model": "PSO" }), &Settings { model: Ok(Model::Pso), ..usual.clone() }, &[]);
        let constants = BTreeMap::from([("M".to_owned(), -2), ("N".to_owned(), 1)]);
        check(json!({ "constants": { "N": true, "M": -2 } }), &Settings { constants, ..usual.clone() }, &[]);
        let budget = Some(Duration::from_millis(1500));
        check(
            json!({ "budget": 1.5, "checkOnSave": false }),
            &Settings { budget, check_on_save: false, ..usual },
            &[],
        );
    }

    #[test]
    fn one_wrong_option_does_not_discard_the_others() {
        let usual = Settings::default();
        let pso = Settings { model: Ok(Model::Pso), ..usual.clone() };
        let why = "the option `budget` is \"5\", but it must be a number of seconds greater than 0";
        check(json!({ "model": "pso", "budget": "5" }), &pso, &[why]);
        for budget in [json!(-1), json!(0), json!(1e300)] {
            assert_eq!(Settings::read(&json!({ "budget": budget })).1.len(), 1, "{budget}");
        }
        let why = "the option `model` is \"arm\", but it must be \"sc\", \"tso\" or \"pso\"";
        check(json!({ "model": "arm" }), &Settings { model: Err(why.to_owned()), ..usual.clone() }, &[why]);
        let constants = BTreeMap::from([("M".to_owned(), 2)]);
        let why = "the option `constants.N` is \"3\", but it must be a 64-bit integer, true or false";
        check(json!({ "constants": { "N": "3", "M": 2 } }), &Settings { constants, ..usual.clone() }, &[why]);
        let why = format!("there is no option `modle`: the options are {OPTIONS}");
        check(json!({ "modle": "pso" }), &usual, &[&why]);
        assert!(Settings::read(&json!("pso")).0.model().is_err());
    }
}
