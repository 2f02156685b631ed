//! Proofs: what an engine can hand over together with `safe`, so that somebody else can check the answer.
//!
//! Pure data, made of numbers: states, cells and values are those of the program's explicit automata, which everybody builds alike. What a proof means and why it
//! convinces is said by the crate that checks it (`palisade-certificate`).

use palisade_program::Value;

/// A proof that no bad state is reachable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// Sets of load-buffer configurations, closed under predecessors.
    LoadBuffers(LoadBuffers),
    /// A set of single-buffer configurations with queues, closed under predecessors.
    SingleBuffer(SingleBuffer),
    /// There are finitely many states: whoever visits them all sees that none is bad.
    AllStates,
    /// Numbers of threads in thread states, closed under steps.
    Crowds(Crowds),
    /// Sets of stacks, closed under what one thread does while the others wait.
    Stacks(Stacks),
}

impl Proof {
    /// What kind of proof it is.
    pub fn kind(&self) -> ProofKind {
        match self {
            Proof::LoadBuffers(_) => ProofKind::LoadBuffers,
            Proof::SingleBuffer(_) => ProofKind::SingleBuffer,
            Proof::AllStates => ProofKind::AllStates,
            Proof::Crowds(_) => ProofKind::Crowds,
            Proof::Stacks(_) => ProofKind::Stacks,
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
}

impl ProofKind {
    /// All kinds.
    pub const ALL: [ProofKind; 5] = [
        ProofKind::LoadBuffers,
        ProofKind::SingleBuffer,
        ProofKind::AllStates,
        ProofKind::Crowds,
        ProofKind::Stacks,
    ];

    /// Its name in certificates and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ProofKind::LoadBuffers => "load-buffers",
            ProofKind::SingleBuffer => "single-buffer",
            ProofKind::AllStates => "all-states",
            ProofKind::Crowds => "numbers-of-threads",
            ProofKind::Stacks => "sets-of-stacks",
        }
    }
}

/// A proof that was checked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Certified {
    /// The engine that gave the proof.
    pub engine: &'static str,
    /// What kind of proof it is.
    pub kind: ProofKind,
    /// How many elements or states were looked at.
    pub elements: u64,
    /// How long that took.
    pub seconds: f64,
}

/// A proof by a single buffer, for PSO: a set that holds the bad states, is closed under predecessors, and misses the initial states.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SingleBuffer {
    /// The least elements of the set.
    pub elements: Vec<Snapshot>,
}

/// All configurations with at least this.
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
    /// The value, by its position among the cell's values.
    pub value: u32,
    /// Whether no process has a store to it in a queue.
    pub settled: bool,
}

/// A process, the positions in the buffer that it asks for, and its queues.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Viewer {
    /// The automaton.
    pub kind: u32,
    /// The state; `None` for any.
    pub state: Option<u32>,
    /// The letters asked for, oldest first.
    pub word: Vec<Message>,
    /// The queues of which something is asked, by cell.
    pub queues: Vec<Queue>,
}

/// What is asked of a queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Queue {
    /// The cell.
    pub cell: u32,
    /// Whether the last value is the newest entry, or the queue is empty.
    pub closed: bool,
    /// Values that are among the entries, oldest first.
    pub values: Vec<u32>,
}

/// A proof by load buffers: an invariant, and sets that hold the bad states, are closed under predecessors where the invariant holds, and miss the initial states.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct LoadBuffers {
    /// For each automaton the class of each of its states; states of one class are not told apart.
    pub classes: Vec<Vec<u32>>,
    /// Which own stores can be the newest pending ones of their cell, and where.
    pub pending: Vec<Pending>,
    /// What cells hold in memory at the states of their only writers.
    pub held: Vec<Held>,
    /// The sets. Every bad state is in one of them.
    pub parts: Vec<Part>,
}

/// A process of this automaton, at this class of states, may have this value as its newest pending store to the cell.
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
    /// For each automaton, how many of its processes are followed; the others may write whatever they ever write, at any time. `None`: all are followed.
    pub tracked: Option<Vec<u32>>,
    /// The least elements of the set.
    pub elements: Vec<Element>,
}

/// All configurations with at least this.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Element {
    /// Cells and what they hold.
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
    /// The letters asked for, newest first.
    pub word: Vec<Message>,
}

/// A message in a load buffer, or a position in a single buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Message {
    /// Whether it is the process's own store.
    pub own: bool,
    /// The cell.
    pub cell: u32,
    /// The value, by its position among the cell's values.
    pub value: u32,
}

/// A proof by numbers of threads, for programs under SC whose threads start threads: a set of states that holds the initial ones, is closed under steps, and holds no bad state.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Crowds {
    /// For each code, the locations that are never passed over.
    pub stops: Vec<Vec<u32>>,
    /// Contents of memory, by cell.
    pub memories: Vec<Vec<Value>>,
    /// Thread states.
    pub threads: Vec<ThreadState>,
    /// The elements of the set.
    pub elements: Vec<Crowd>,
}

/// All states with this memory, these threads from the start, and started threads in these numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Crowd {
    /// Which contents of memory.
    pub memory: u32,
    /// The thread states of the threads that are there from the start.
    pub named: Vec<u32>,
    /// How many started threads are in which thread state; none in others.
    pub started: Vec<Number>,
}

/// How many threads are in a thread state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Number {
    /// Which thread state.
    pub thread: u32,
    /// At least so many.
    pub least: u32,
    /// At most so many; `None` for any number.
    pub most: Option<u32>,
}

/// What there is to know about a thread under SC.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ThreadState {
    /// The role it runs.
    pub role: u32,
    /// Its frames, that of the process body first.
    pub frames: Vec<Activation>,
    /// How many atomic sections it has open.
    pub depth: u32,
}

/// A frame: an activation of a process body or procedure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Activation {
    /// What it runs.
    pub code: u32,
    /// Where it is.
    pub location: u32,
    /// What its registers hold.
    pub registers: Vec<Value>,
    /// The caller's register for the result.
    pub result: Option<u32>,
}

/// A proof by sets of stacks, for recursive programs under SC: pieces that hold the initial states and no bad state, such that what a thread makes of a piece while the others wait is in a piece.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stacks {
    /// For each code, the locations that are never passed over.
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
    /// Whether a frame below has an atomic section open.
    pub inherited: bool,
    /// How many sections it has opened itself.
    pub opened: u32,
}

/// A set of stacks, as an automaton that reads the top first: for each state its edges, a frame and the next state or `None` for the end. The first state is the start.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct StackSet {
    /// The edges.
    pub states: Vec<Vec<(u32, Option<u32>)>>,
}

/// All states with this memory in which the stack of each thread is in its set.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Piece {
    /// Which contents of memory.
    pub memory: u32,
    /// The threads in the order of their creation: role, and set of stacks.
    pub threads: Vec<(u32, u32)>,
}

impl Proof {
    /// How many elements are listed in it.
    pub fn len(&self) -> usize {
        match self {
            Proof::LoadBuffers(proof) => proof.parts.iter().map(|part| part.elements.len()).sum(),
            Proof::SingleBuffer(proof) => proof.elements.len(),
            Proof::AllStates => 0,
            Proof::Crowds(proof) => proof.elements.len(),
            Proof::Stacks(proof) => proof.pieces.len(),
        }
    }

    /// Whether no elements are listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
