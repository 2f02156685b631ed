//! Executions that other processes of Palisade run, perhaps on other machines.
//!
//! An execution depends only on its command, so it shows the same wherever it is run. The other process runs the program
//! and judges the execution. What it sends back is what a worker of this process would have found ([`Execution`]), and for
//! a search, the log as well.
//!
//! *The same program.* Places are identified by their addresses. So the other process gets a list of where the modules of the
//! program are in this one, and refuses if they are elsewhere in its own.

use crate::ahead::{Ran, read};
use crate::allowance::Allowance;
use crate::execution::Execution;
use crate::log::{RECORD, Record};
use crate::process::{Lost, Program, StartError};
use crate::schedule::Command;
use crate::session::Options;
use crate::stream::Module;
use crate::worker::{Cut, Worker};
use palisade_memory::Model;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Something that takes requests to other processes. Each of them answers with a [`Runner`].
pub trait Elsewhere: Debug + Send + Sync {
    /// How many requests keep all of them busy.
    fn appetite(&self) -> usize;

    /// The answer of one of them, or `None` if there will be no answer.
    fn ask(&self, request: Vec<u8>) -> Option<Vec<u8>>;
}

#[derive(Serialize, Deserialize)]
enum Request {
    /// Run these executions.
    Run { modules: Vec<Module>, commands: Vec<Command> },
    /// Run this execution of a search.
    Explore { modules: Vec<Module>, command: Box<Command> },
}

#[derive(Serialize, Deserialize)]
enum Reply {
    Ran(Vec<Result<Execution, CutElsewhere>>),
    Explored(Box<Result<RanElsewhere, CutElsewhere>>),
}

/// [`Ran`], with its log as bytes.
#[derive(Serialize, Deserialize)]
struct RanElsewhere {
    execution: Execution,
    log: Vec<u8>,
    shared: Vec<(u64, u8)>,
    compared: Vec<u64>,
    threads: usize,
    fails_alone: bool,
}

/// [`Cut`], with its reason in words.
#[derive(Serialize, Deserialize)]
struct CutElsewhere {
    lost: LostElsewhere,
    so_far: Option<Box<Execution>>,
}

#[derive(Serialize, Deserialize)]
enum LostElsewhere {
    Stopped,
    Memory,
    Broken(String),
}

/// Runs executions elsewhere. Returns as many results as there are commands, or fewer if one of them was lost.
pub(crate) fn run(
    elsewhere: &dyn Elsewhere,
    modules: &[Module],
    commands: &[Command],
) -> Vec<Result<Execution, Cut>> {
    let request = Request::Run { modules: modules.to_vec(), commands: commands.to_vec() };
    match ask(elsewhere, &request) {
        Some(Reply::Ran(results)) => {
            results.into_iter().map(|result| result.map_err(Cut::from)).take(commands.len()).collect()
        }
        // The group is coming to an end, and says why.
        _ => vec![Err(Lost::Stopped.into())],
    }
}

/// Runs an execution of a search elsewhere.
pub(crate) fn explore(elsewhere: &dyn Elsewhere, modules: &[Module], command: &Command) -> Result<Ran, Cut> {
    let request = Request::Explore { modules: modules.to_vec(), command: Box::new(command.clone()) };
    match ask(elsewhere, &request) {
        Some(Reply::Explored(result)) => (*result).map(Ran::from).map_err(Cut::from),
        _ => Err(Lost::Stopped.into()),
    }
}

fn ask(elsewhere: &dyn Elsewhere, request: &Request) -> Option<Reply> {
    let request = bincode::serialize(request).expect("a request has no maps that JSON would not have");
    bincode::deserialize(&elsewhere.ask(request)?).ok()
}

/// Runs executions for another process.
pub struct Runner {
    program: Program,
    options: Options,
    allowance: Allowance,
    worker: Option<(Model, Worker)>,
}

impl Runner {
    /// For a program and options that are the same in the other process.
    pub fn new(
        program: &Program,
        options: &Options,
        stop: &Arc<AtomicBool>,
        deadline: Option<Instant>,
    ) -> Runner {
        let allowance = Allowance { stop: stop.clone(), deadline, memory: options.memory };
        Runner { program: program.clone(), options: options.clone(), allowance, worker: None }
    }

    /// Does what another process requests.
    pub fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let reply = match bincode::deserialize(request) {
            Ok(Request::Run { modules, commands }) => {
                let mut results = Vec::new();
                for command in &commands {
                    let result = self
                        .worker(&modules, command.model)
                        .and_then(|worker| worker.run(command, |_| ()))
                        .map_err(CutElsewhere::from);
                    let is_lost = result.is_err();
                    results.push(result);
                    if is_lost {
                        break;
                    }
                }
                Reply::Ran(results)
            }
            Ok(Request::Explore { modules, command }) => {
                let result = self.worker(&modules, command.model).and_then(|worker| {
                    worker.server.ask(&command)?;
                    read(worker)
                });
                Reply::Explored(Box::new(result.map(RanElsewhere::from).map_err(CutElsewhere::from)))
            }
            Err(error) => {
                let why = Lost::Broken(io::Error::other(error.to_string()));
                Reply::Ran(vec![Err(Cut::from(why).into())])
            }
        };
        bincode::serialize(&reply).expect("a reply can be put into bytes")
    }

    /// The program, under this model. It is started when it is first needed.
    fn worker(&mut self, modules: &[Module], model: Model) -> Result<&mut Worker, Cut> {
        if self.worker.as_ref().is_none_or(|(known, _)| *known != model) {
            let Runner { program, options, allowance, .. } = self;
            let worker = Worker::start(program, model, options.interlocked, allowance, options.room());
            let worker = worker.map_err(|error| match error {
                StartError::Stopped => Lost::Stopped,
                error => Lost::Broken(io::Error::other(format!("in another process, it {error}"))),
            })?;
            if worker.server.hello.modules != modules {
                let why = "in another process, it is loaded at other addresses";
                return Err(Lost::Broken(io::Error::other(why)).into());
            }
            self.worker = Some((model, worker));
        }
        let (_, worker) = self.worker.as_mut().expect("it was just started");
        Ok(worker)
    }
}

impl From<Ran> for RanElsewhere {
    fn from(ran: Ran) -> RanElsewhere {
        let Ran { execution, log, shared, compared, threads, fails_alone } = ran;
        let log = log.iter().flat_map(Record::encode).collect();
        RanElsewhere { execution, log, shared, compared, threads, fails_alone }
    }
}

impl From<RanElsewhere> for Ran {
    fn from(ran: RanElsewhere) -> Ran {
        let RanElsewhere { execution, log, shared, compared, threads, fails_alone } = ran;
        let (records, _) = log.as_chunks::<RECORD>();
        let log = records.iter().map(|record| Record::decode(record).expect("it was a record")).collect();
        Ran { execution, log, shared, compared, threads, fails_alone }
    }
}

impl From<Cut> for CutElsewhere {
    fn from(Cut { lost, so_far }: Cut) -> CutElsewhere {
        let lost = match lost {
            Lost::Stopped => LostElsewhere::Stopped,
            Lost::Memory => LostElsewhere::Memory,
            Lost::Broken(error) => LostElsewhere::Broken(error.to_string()),
        };
        CutElsewhere { lost, so_far }
    }
}

impl From<CutElsewhere> for Cut {
    fn from(CutElsewhere { lost, so_far }: CutElsewhere) -> Cut {
        let lost = match lost {
            LostElsewhere::Stopped => Lost::Stopped,
            LostElsewhere::Memory => Lost::Memory,
            LostElsewhere::Broken(why) => Lost::Broken(io::Error::other(why)),
        };
        Cut { lost, so_far }
    }
}

/// Memory models as bytes.
pub(crate) mod model {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(model: &Model, serializer: S) -> Result<S::Ok, S::Error> {
        let number = Model::ALL.iter().position(|known| known == model).expect("all models are listed");
        (number as u8).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Model, D::Error> {
        let number = u8::deserialize(deserializer)?;
        let model = Model::ALL.get(usize::from(number));
        model.copied().ok_or_else(|| serde::de::Error::custom("there is no such model"))
    }
}

/// Violations as bytes, with how often each was seen.
pub(crate) mod violations {
    use super::*;
    use crate::execution::PlacedViolation;
    use palisade_monitor::Seen;

    type Violations = Vec<(PlacedViolation, Seen)>;

    pub(crate) fn serialize<S: Serializer>(
        violations: &Violations,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let pairs = violations.iter().map(|(violation, seen)| (violation, seen.count, seen.first));
        serializer.collect_seq(pairs)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Violations, D::Error> {
        let pairs: Vec<(PlacedViolation, u64, u64)> = Vec::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(violation, count, first)| (violation, Seen { count, first })).collect())
    }
}
