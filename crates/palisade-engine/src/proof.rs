//! Proofs: what an engine can return together with `safe`, so that the answer can be checked independently.
//!
//! A proof is pure data, made of numbers. States, cells and values are those of the program's explicit
//! automata, which every user of a proof builds in the same way. The crate that checks proofs
//! (`palisade-certificate`) documents what a proof means and why it is valid.

use palisade_program::Value;

/// A proof that no bad state is reachable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// Sets of load-buffer configurations, closed under predecessors.
    LoadBuffers(LoadBuffers),
    /// A set of single-buffer configurations with queues, closed under predecessors.
    SingleBuffer(SingleBuffer),
    /// There are finitely many states. Visiting all of them shows that none is bad.
    AllStates,
    /// Numbers of threads in thread states, closed under steps.
    Crowds(Crowds),
    /// Sets of stacks, closed under the steps of one thread while the others wait.
    Stacks(Stacks),
    /// Sets of load-buffer configurations of any number of processes with identities.
    Identities(Identities),
}

impl Proof {
    /// The kind of this proof.
    pub fn kind(&self) -> ProofKind {
        match self {
            Proof::LoadBuffers(_) => ProofKind::LoadBuffers,
            Proof::SingleBuffer(_) => ProofKind::SingleBuffer,
            Proof::AllStates => ProofKind::AllStates,
            Proof::Crowds(_) => ProofKind::Crowds,
            Proof::Stacks(_) => ProofKind::Stacks,
            Proof::Identities(_) => ProofKind::Identities,
        }
    }
}

/// A kind of proof.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProofKind {
    /// [`Proof::LoadBuffers`].
    LoadBuffers,
    /// [`Proof::SingleBuffer`].
    SingleBuffer,
    /// [`Proof::AllStates`].
    AllStates,
    /// [`Proof::Crowds`].
    Crowds,
    /// [`Proof::Stacks`].
    Stacks,
    /// [`Proof::Identities`].
    Identities,
}

impl ProofKind {
    /// All kinds.
    pub const ALL: [ProofKind; 6] = [
        ProofKind::LoadBuffers,
        ProofKind::SingleBuffer,
        ProofKind::AllStates,
        ProofKind::Crowds,
        ProofKind::Stacks,
        ProofKind::Identities,
    ];

    /// Its name in certificates and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ProofKind::LoadBuffers => "load-buffers",
            ProofKind::SingleBuffer => "single-buffer",
            ProofKind::AllStates => "all-states",
            ProofKind::Crowds => "numbers-of-threads",
            ProofKind::Stacks => "sets-of-stacks",
            ProofKind::Identities => "identities",
        }
    }
}

/// A proof that a program is free of deadlocks and that its goals stay reachable, for finitely many states: how
/// far each state is from what must stay possible.
///
/// States are numbered breadth first, from the initial states in their order, by the steps of the machine in
/// their order. The program is lowered with retries. So the states themselves need not be listed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ranking {
    /// For each state, an upper bound on the steps before one that moves, or before all threads have ended.
    /// Present if the program is free of deadlocks.
    pub deadlock: Option<Vec<u32>>,
    /// For each goal of the program, in its order: for each state, an upper bound on the steps to the goal.
    pub goals: Vec<Vec<u32>>,
}

impl Ranking {
    /// The rank of states with a fault, which are not judged.
    pub const NOT_JUDGED: u32 = u32::MAX;
}

/// A proof that was checked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Certified {
    /// The engine that gave the proof.
    pub engine: &'static str,
    /// The kind of the proof.
    pub kind: ProofKind,
    /// How many elements or states were looked at.
    pub elements: u64,
    /// How long that took.
    pub seconds: f64,
}

/// A proof with a single buffer, for PSO. It is a set that contains the bad states, is closed under
/// predecessors, and contains no initial state.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SingleBuffer {
    /// Whether a store and a fence after it count as one step, and a read by the only writer of a cell as a
    /// local one, where that makes no difference.
    pub rewritten: bool,
    /// For each automaton, the class of each of its states. States of one class are not distinguished. Without
    /// classes, every state is one by itself.
    pub classes: Vec<Vec<u32>>,
    /// Sets of values, by their positions among a cell's values. Elements name them by their positions here.
    pub sets: Vec<Vec<u32>>,
    /// The minimal elements of the set.
    pub elements: Vec<Snapshot>,
}

/// All configurations that contain at least this.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Snapshot {
    /// What the end of the buffer holds.
    pub memory: Vec<Cell>,
    /// Processes.
    pub processes: Vec<Viewer>,
}

/// What the end of the buffer holds in a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cell {
    /// The cell.
    pub cell: u32,
    /// The set of values of which it holds one, by its position among [`SingleBuffer::sets`].
    pub values: u32,
    /// Whether no process has a store to it in a queue.
    pub settled: bool,
}

/// A process, the positions in the buffer that it requires, and its queues.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Viewer {
    /// The automaton.
    pub kind: u32,
    /// The class of states, or `None` for any state.
    pub state: Option<u32>,
    /// The required letters, oldest first.
    pub word: Vec<SetLetter>,
    /// The queues with requirements, by cell.
    pub queues: Vec<Queue>,
}

/// The requirements on a queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Queue {
    /// The cell.
    pub cell: u32,
    /// Whether the last value is the newest entry. If there are no values: whether the queue is empty.
    pub closed: bool,
    /// Entries that must be there, oldest first: for each, the set of values of which it has one.
    pub values: Vec<u32>,
}

/// A proof with load buffers: an invariant, and sets of configurations. The sets contain the bad states, are
/// closed under predecessors where the invariant holds, and contain no initial state.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct LoadBuffers {
    /// Whether a store and a fence after it count as one step, and a read by the only writer of a cell as a
    /// local one, where that makes no difference.
    pub rewritten: bool,
    /// For each automaton, the class of each of its states. States of one class are not distinguished.
    pub classes: Vec<Vec<u32>>,
    /// Which own stores can be the newest pending ones of their cell, and where.
    pub pending: Vec<Pending>,
    /// What cells hold in memory, by the state of their only writer.
    pub held: Vec<Held>,
    /// Sets of values, by their positions among a cell's values. Elements name them by their positions here.
    pub sets: Vec<Vec<u32>>,
    /// The sets. Every bad state is in one of them.
    pub parts: Vec<Part>,
}

/// A process of this automaton, in this class of states, may have this value as its newest pending store to
/// the cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pending {
    /// The automaton.
    pub kind: u32,
    /// The class of states.
    pub state: u32,
    /// The cell.
    pub cell: u32,
    /// The value, by its position among the cell's values.
    pub value: u32,
}

/// What memory can hold in a cell that only one process writes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Held {
    /// The cell.
    pub cell: u32,
    /// The automaton of its only writer.
    pub kind: u32,
    /// For each class of states, the values.
    pub values: Vec<Vec<u32>>,
}

/// A set of configurations, closed under predecessors.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Part {
    /// For each automaton, how many of its processes are tracked. The others may write any value that they
    /// ever write, at any time. `None` means that all are tracked.
    pub tracked: Option<Vec<u32>>,
    /// The minimal elements of the set.
    pub elements: Vec<Element>,
}

/// All configurations that contain at least this.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Element {
    /// Cells, each with the set of values of which it holds one.
    pub memory: Vec<(u32, u32)>,
    /// Processes.
    pub processes: Vec<Process>,
}

/// A process: its automaton, its class of states, and what its load buffer holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Process {
    /// The automaton.
    pub kind: u32,
    /// The class of states.
    pub state: u32,
    /// The required letters, newest first.
    pub word: Vec<SetLetter>,
}

/// A proof for any number of processes with identities. It is about the automata of the program with
/// [`Identities::number`] of them, in which loops over all others are single reads. The last of these identities,
/// *star*, stands for all processes that an element does not name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Identities {
    /// The number of identities.
    pub number: u32,
    /// For each automaton, the class of each of its states. States of one class are not distinguished.
    pub classes: Vec<Vec<u32>>,
    /// Which own stores can be the newest pending ones of their cell, and where.
    pub pending: Vec<Pending>,
    /// What cells hold in memory, by the state of their only writer.
    pub held: Vec<Held>,
    /// Sets of values, as numbers. Elements name them by their positions here.
    pub sets: Vec<Vec<Value>>,
    /// The minimal elements of the set.
    pub elements: Vec<Named>,
}

/// All configurations that contain at least this, up to renaming identities.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Named {
    /// How many identities it names: 1 to this number.
    pub identities: u32,
    /// Cells, each with the set of values of which it holds one.
    pub memory: Vec<(u32, u32)>,
    /// Processes.
    pub processes: Vec<NamedProcess>,
}

/// A process: its automaton, its class of states, and what its load buffer holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NamedProcess {
    /// The automaton.
    pub kind: u32,
    /// The class of states.
    pub state: u32,
    /// Groups of required letters, newest group first. The letters of a group are there in any order.
    pub word: Vec<Vec<SetLetter>>,
}

/// A message in a load buffer, or a position in a single buffer, with one value of a set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SetLetter {
    /// Whether it is the process's own store.
    pub own: bool,
    /// The cell.
    pub cell: u32,
    /// The set of values, by its position among those of the proof.
    pub values: u32,
}

/// A proof with numbers of threads, for programs under SC whose threads start threads. It is a set of states
/// that contains the initial states, is closed under steps, and contains no bad state.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Crowds {
    /// For each code, the locations that are never skipped.
    pub stops: Vec<Vec<u32>>,
    /// Contents of memory, by cell.
    pub memories: Vec<Vec<Value>>,
    /// Thread states.
    pub threads: Vec<ThreadState>,
    /// The elements of the set.
    pub elements: Vec<Crowd>,
}

/// All states with this memory, these initial threads, and started threads in these numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Crowd {
    /// The contents of memory, by index.
    pub memory: u32,
    /// The thread states of the threads that exist from the start.
    pub named: Vec<u32>,
    /// How many started threads are in which thread state. There are none in other thread states.
    pub started: Vec<Number>,
}

/// How many threads are in a thread state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Number {
    /// The thread state, by index.
    pub thread: u32,
    /// The smallest number.
    pub least: u32,
    /// The largest number, or `None` if there is no limit.
    pub most: Option<u32>,
}

/// The state of a thread under SC.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ThreadState {
    /// The role it runs.
    pub role: u32,
    /// Its frames, starting with that of the process body.
    pub frames: Vec<Activation>,
    /// How many atomic sections it has open.
    pub depth: u32,
}

/// A frame: an activation of a process body or procedure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Activation {
    /// The code it runs.
    pub code: u32,
    /// Its current location.
    pub location: u32,
    /// What its registers hold.
    pub registers: Vec<Value>,
    /// The caller's register for the result.
    pub result: Option<u32>,
}

/// A proof with sets of stacks, for recursive programs under SC. It consists of pieces:
///
/// - Every initial state is in a piece.
/// - No piece contains a bad state.
/// - When one thread runs from a piece while the others wait, the result is in a piece.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stacks {
    /// For each code, the locations that are never skipped.
    pub stops: Vec<Vec<u32>>,
    /// Contents of memory, by cell.
    pub memories: Vec<Vec<Value>>,
    /// Frames.
    pub frames: Vec<StackFrame>,
    /// Sets of stacks.
    pub sets: Vec<StackSet>,
    /// The pieces.
    pub pieces: Vec<Piece>,
}

/// A frame on a stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StackFrame {
    /// The frame.
    pub frame: Activation,
    /// Whether a frame below has an open atomic section.
    pub inherited: bool,
    /// How many sections it has opened itself.
    pub opened: u32,
}

/// A set of stacks, as an automaton that reads the top first. Each state has edges. An edge is a frame and
/// the next state, or `None` for the end. The first state is the start.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct StackSet {
    /// The edges.
    pub states: Vec<Vec<(u32, Option<u32>)>>,
}

/// All states with this memory in which the stack of each thread is in its set.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Piece {
    /// The contents of memory, by index.
    pub memory: u32,
    /// The threads in the order of their creation, each with its role and its set of stacks.
    pub threads: Vec<(u32, u32)>,
}

impl Proof {
    /// How many elements it lists.
    pub fn len(&self) -> usize {
        match self {
            Proof::LoadBuffers(proof) => proof.parts.iter().map(|part| part.elements.len()).sum(),
            Proof::SingleBuffer(proof) => proof.elements.len(),
            Proof::AllStates => 0,
            Proof::Crowds(proof) => proof.elements.len(),
            Proof::Stacks(proof) => proof.pieces.len(),
            Proof::Identities(proof) => proof.elements.len(),
        }
    }

    /// Whether it lists no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
