//! The arguments of `palisade fences`.

use super::*;

const FENCES_EXAMPLES: &str = "\
Examples:
  palisade fences peterson.pal                        a smallest set of fences, and why
  palisade fences peterson.pal --all                  all minimal sets
  palisade fences lock.rmm --write fenced.rmm         the program with the fences in it
  palisade fences lock.c --diff | patch -p1           a patch for C sources
  palisade fences lock.c --cost fence=20,seq_cst=15   what fences and stronger accesses cost
  palisade fences --minimise lock.c                   which fences and orders are unnecessary
  palisade fences bakery.pal --all --place anywhere   not only after writes
  palisade fences lock.pal --never 12 --never P@cs    but not there
  palisade fences lock.pal --loop-weight 10           a fence in a loop costs as much as ten
  palisade fences lock.pal --threads any              for any number of threads
  palisade fences mcs.pal --goal robustness           no behaviour beyond that of SC
  palisade fences bakery.pal --all --processes 2      two sets are judged at a time

A PLACE is a line, LINE-LINE, a label or a process; or PROCESS@LINE, PROCESS@LABEL.

The first word is the verdict: safe (or robust) if no fences are needed, repairable if those shown
are enough, unsafe (or not-robust) if no fences help, unknown.
Exit codes: 0 safe, robust or repairable, 1 no fences help, 2 usage or input error, 3 unknown.";

/// `palisade fences`
#[derive(Clone, Debug, Args)]
#[command(after_long_help = FENCES_EXAMPLES)]
pub struct FencesArgs {
    /// The program (- for standard input)
    pub file: PathBuf,
    /// What the fences are for
    #[arg(long, value_name = "GOAL", default_value = "safety")]
    pub goal: GoalArg,
    /// Report which fences and memory orders of a C program are unnecessary, and check it without them
    #[arg(long, conflicts_with_all = ["all", "place", "changes", "only", "never", "per", "weight", "loop_weight", "html"])]
    pub minimise: bool,
    /// Where fences may be placed [default: after-writes; in C anywhere, if that is not enough]
    #[arg(long, value_name = "WHERE")]
    pub place: Option<PlacementArg>,
    /// What may be changed in a C program [default: any]
    #[arg(long, value_name = "WHAT")]
    pub changes: Option<ChangesArg>,
    /// Cost of each kind of change: fence=20,seq_cst=15,... (also sfence, release, exchange)
    #[arg(long, value_name = "KIND=COST,...", action = clap::ArgAction::Append)]
    pub cost: Vec<Costs>,
    /// Place fences only next to these statements
    #[arg(long, value_name = "PLACE", action = clap::ArgAction::Append)]
    pub only: Vec<Spot>,
    /// Place no fences next to these statements
    #[arg(long, value_name = "PLACE", action = clap::ArgAction::Append)]
    pub never: Vec<Spot>,
    /// List all minimal sets, not only a cheapest one
    #[arg(long)]
    pub all: bool,
    /// What counts as one fence: a place in the source, or in one instance of a process
    #[arg(long, value_name = "WHAT", default_value = "source")]
    pub per: PerArg,
    /// Multiply the cost of changes next to these statements
    #[arg(long, value_name = "PLACE=COST", value_parser = weight, action = clap::ArgAction::Append)]
    pub weight: Vec<(Spot, u64)>,
    /// Multiply the cost of changes inside loops
    #[arg(long, value_name = "COST", value_parser = cost)]
    pub loop_weight: Option<u64>,
    /// Write the program with the fences of the (first) set to a file
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Print the fences of the (first) set as a patch, for `patch -p1`
    #[arg(long)]
    pub diff: bool,
    /// Write the answer to a file as a web page, with the runs that show why
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Memory model
    #[arg(long, value_name = "MODEL", default_value = "tso")]
    pub model: WeakModelArg,
    /// Engine to use; auto runs all that suit the program, and the first answer wins
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = all_engines())]
    pub engine: String,
    /// Longest store buffers that explicit search tries if they can grow without bound
    #[arg(long, value_name = "N", default_value_t = palisade::Options::default().max_buffer, value_parser = buffer)]
    pub max_buffer: usize,
    /// Processes, and their locked instructions.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Also find fences against deadlocks, even if the program does not ask for them
    #[arg(long)]
    pub deadlock: bool,
    /// How programs are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Other processes that judge programs with fences.
    #[command(flatten)]
    pub group: GroupArgs,
}

/// What fences are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum GoalArg {
    /// No run breaks a property
    Safety,
    /// Every run is like a sequentially consistent one
    Robustness,
}

/// Where fences may be placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PlacementArg {
    /// After statements that store to shared memory
    AfterWrites,
    /// Before statements that load from shared memory
    BeforeReads,
    /// Between any two statements
    Anywhere,
}

/// What may be changed in a C program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ChangesArg {
    /// Fences are added, and accesses made stronger
    Any,
    /// Fences are added
    Fences,
    /// Accesses are made stronger
    Accesses,
}

/// What counts as one fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PerArg {
    /// A place in one instance of a process
    Instance,
    /// A place in the source
    Source,
}

fn weight(text: &str) -> Result<(Spot, u64), String> {
    let (place, number) = text.rsplit_once('=').ok_or("a weight is written PLACE=COST, e.g. 12=5")?;
    Ok((place.parse()?, cost(number)?))
}

fn cost(text: &str) -> Result<u64, String> {
    up_to(1_000_000, text).map(u64::from)
}

fn all_engines() -> PossibleValuesParser {
    let mut names: Vec<&str> = palisade::engines().iter().map(|engine| engine.name()).collect();
    names.extend(palisade::engines::robustness_engines().iter().map(|engine| engine.name()));
    names.insert(0, "auto");
    let mut known = std::collections::HashSet::new();
    names.retain(|name| known.insert(*name));
    PossibleValuesParser::new(names)
}
