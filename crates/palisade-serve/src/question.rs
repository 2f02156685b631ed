//! Questions from the page: one JSON object per request.

use palisade::program::Instantiation;
use palisade::{
    CheckOptions, EngineChoice, FencesOptions, Goal, InputLanguage, Model, Options, Placement, RobustOptions,
    Source, Threads, Which,
};
use serde::{Deserialize, Serialize};

/// The maximum number of instances of every process; more are not practical in a playground.
const MAX_THREADS: u32 = 64;
/// Longer names are truncated.
const LONGEST_NAME: usize = 200;

/// A question about a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    /// What to do.
    pub(crate) command: Command,
    /// The program's text.
    pub(crate) program: String,
    /// The program's name in the answer. No file of that name is ever looked for.
    #[serde(default)]
    name: String,
    /// The language of the program.
    language: String,
    /// The memory model.
    model: String,
    /// Values of constants, as in `N=3 M=4`.
    #[serde(default)]
    constants: String,
    /// The engine; the default is `auto`.
    #[serde(default)]
    engine: Option<String>,
    /// Instances of every process: a number or `any`; the default is as declared.
    #[serde(default)]
    threads: Option<String>,
    /// The goal of fences: `safety` or `robustness`.
    #[serde(default)]
    goal: Option<String>,
    /// Where fences may be placed: `after-writes`, `before-reads` or `anywhere`.
    #[serde(default)]
    place: Option<String>,
    /// Whether to find all minimal sets of fences.
    #[serde(default)]
    all: bool,
    /// The number of the outcome to which a run is wanted, counted from 1.
    #[serde(default)]
    pub(crate) outcome: Option<usize>,
    /// The index of the initial state to step from.
    #[serde(default)]
    pub(crate) start: usize,
    /// The indices of the chosen steps, in order.
    #[serde(default)]
    pub(crate) choices: Vec<usize>,
}

/// What to do with a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Command {
    /// Is it safe?
    Check,
    /// Is it robust?
    Robust,
    /// Which fences does it need?
    Fences,
    /// Take single steps.
    Step,
    /// Is it safe under each memory model?
    Compare,
    /// Which values can it end with, under each memory model?
    Outcomes,
    /// What is wrong with its text?
    Read,
}

impl Question {
    /// Reads a request's body.
    pub(crate) fn read(body: &[u8]) -> Result<Question, String> {
        serde_json::from_slice(body).map_err(|error| format!("malformed question: {error}"))
    }

    /// The program's text under its name.
    pub(crate) fn source(&self) -> Source {
        let name: String = self.name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
        let name = if name.is_empty() { "program".to_owned() } else { name };
        Source::new(name, self.program.clone())
    }

    /// The program's text under its name, with the given values of constants.
    pub(crate) fn source_with_constants(&self) -> Result<Source, String> {
        let given = self.constants.split([',', ';', ' ', '\t', '\n']).filter(|word| !word.is_empty());
        let constants: Vec<(String, i64)> = given.map(constant).collect::<Result<_, _>>()?;
        Ok(self.source().with_constants(constants))
    }

    pub(crate) fn language(&self) -> Result<InputLanguage, String> {
        let known = InputLanguage::from_name(&self.language)
            .filter(|language| matches!(language, InputLanguage::Text(_) | InputLanguage::C));
        known.ok_or_else(|| format!("unknown language `{}`", self.language))
    }

    pub(crate) fn model(&self) -> Result<Model, String> {
        let found = Model::ALL.into_iter().find(|model| model.name() == self.model);
        found.ok_or_else(|| format!("unknown memory model `{}`", self.model))
    }

    /// The same without SC, under which every program is robust.
    fn weak_model(&self) -> Result<Model, String> {
        match self.model()? {
            Model::Sc => Err("choose TSO or PSO: every program is robust under SC".to_owned()),
            model => Ok(model),
        }
    }

    fn threads(&self) -> Result<Threads, String> {
        match self.threads.as_deref() {
            None | Some("" | "declared") => Ok(Threads::Declared),
            Some("any") => Ok(Threads::Several),
            Some("any=all") => Ok(Threads::Any),
            Some(number) => {
                let number = number.parse().ok().filter(|number| (1..=MAX_THREADS).contains(number));
                number.map(Threads::Each).ok_or_else(|| {
                    format!("expected a number of threads from 1 to {MAX_THREADS}, `any` or `any=all`")
                })
            }
        }
    }

    /// Whether there is any number of the processes that are declared with several instances.
    pub(crate) fn has_any_number_of_several(&self) -> bool {
        self.threads() == Ok(Threads::Several)
    }

    fn engine(&self) -> EngineChoice {
        match self.engine.as_deref() {
            None | Some("" | "auto") => EngineChoice::Auto,
            Some(name) => EngineChoice::Named(name.to_owned()),
        }
    }

    /// The running form to step through. Any number of processes becomes two.
    pub(crate) fn instantiation(&self) -> Result<Instantiation, String> {
        Ok(match self.threads()? {
            Threads::Declared | Threads::Several => Instantiation { any: 2, every: None },
            Threads::Any => Instantiation { any: 2, every: Some(2) },
            Threads::Each(number) => Instantiation { any: number, every: Some(number) },
        })
    }

    pub(crate) fn check(&self) -> Result<CheckOptions, String> {
        Ok(CheckOptions {
            model: self.model()?,
            threads: self.threads()?,
            engine: self.engine(),
            options: Options::default(),
            ..CheckOptions::default()
        })
    }

    pub(crate) fn robust(&self) -> Result<RobustOptions, String> {
        Ok(RobustOptions { model: self.weak_model()?, threads: self.threads()?, ..RobustOptions::default() })
    }

    pub(crate) fn fences(&self) -> Result<FencesOptions, String> {
        Ok(FencesOptions {
            goal: match self.goal.as_deref() {
                None | Some("safety") => Goal::Safety,
                Some("robustness") => Goal::Robustness,
                Some(other) => return Err(format!("unknown goal `{other}`")),
            },
            placement: match self.place.as_deref() {
                None | Some("after-writes") => Placement::AfterWrites,
                Some("before-reads") => Placement::BeforeReads,
                Some("anywhere") => Placement::Anywhere,
                Some(other) => return Err(format!("unknown place for fences `{other}`")),
            },
            which: if self.all { Which::All } else { Which::Cheapest },
            check: CheckOptions { model: self.weak_model()?, ..self.check()? },
            ..FencesOptions::default()
        })
    }
}

/// Reads `N=3`.
fn constant(word: &str) -> Result<(String, i64), String> {
    let expected = || format!("constants are written as `N=3 M=4`, not `{word}`");
    let (name, value) = word.split_once('=').ok_or_else(expected)?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let value = match value {
        "true" => Some(1),
        "false" => Some(0),
        number => number.parse().ok(),
    };
    Ok((name.to_owned(), value.filter(|_| is_name).ok_or_else(expected)?))
}
