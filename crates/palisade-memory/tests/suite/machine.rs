//! Single rules of the machine: what waits for what, what blocks, what is an error, and how threads start.

use crate::common::{check, outcomes, system};
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_memory::{
    Action, Effect, Interlocked, Machine, Model, Pending, Refusal, State, Step, Violation,
};
use palisade_program::running::{CellId, EdgeId, System, ThreadId};
use std::collections::BTreeSet;

/// The step that takes the first edge from the thread's location.
fn execute(system: &System, state: &State, thread: u32) -> Step {
    let frame = state.threads[ThreadId(thread)].top();
    let edge = EdgeId(system.codes[frame.code].edges_from(frame.location).start);
    Step { thread: ThreadId(thread), action: Action::Execute { edge, choice: None } }
}

fn update(thread: u32, position: usize) -> Step {
    Step { thread: ThreadId(thread), action: Action::Update { position } }
}

/// Takes steps by hand.
struct ManualRun<'a> {
    machine: Machine<'a>,
    state: State,
}

impl<'a> ManualRun<'a> {
    fn new(system: &'a System, model: Model) -> ManualRun<'a> {
        let machine = Machine::new(system, model);
        let state = machine.initial_states().next().expect("there is an initial state");
        ManualRun { machine, state }
    }

    /// Executes the thread's next instruction.
    fn execute(&mut self, thread: u32) -> Result<Effect, Refusal> {
        let step = execute(self.machine.system, &self.state, thread);
        self.take(step)
    }

    fn update(&mut self, thread: u32, position: usize) -> Result<Effect, Refusal> {
        self.take(update(thread, position))
    }

    fn take(&mut self, step: Step) -> Result<Effect, Refusal> {
        let (state, effect) = self.machine.step(&self.state, step)?;
        self.state = state;
        Ok(effect)
    }

    fn buffer(&self, thread: u32) -> &[Pending] {
        &self.state.threads[ThreadId(thread)].buffer
    }
}

const X: CellId = CellId(0);
const Y: CellId = CellId(1);

#[test]
fn stores_wait_in_the_buffer_and_own_loads_see_them() {
    let system = system("shared x, y: 0..2; process P { x = 1; let r = x; let s = y; fence; }");
    let mut run = ManualRun::new(&system, Model::Tso);
    assert_eq!(run.execute(0), Ok(Effect::Buffered(X, 1)));
    assert_eq!(run.state.memory[X], 0);
    assert_eq!(run.execute(0), Ok(Effect::ReadBuffer(X, 1)));
    assert_eq!(run.execute(0), Ok(Effect::ReadMemory(Y, 0)));
    assert_eq!(run.execute(0), Err(Refusal::BufferNotEmpty));
    assert_eq!(run.update(0, 0), Ok(Effect::Updated(X, 1)));
    assert_eq!(run.state.memory[X], 1);
    assert_eq!(run.update(0, 0), Err(Refusal::NotUpdatable));
    assert_eq!(run.execute(0), Ok(Effect::Fenced));
    let mut run = ManualRun::new(&system, Model::Sc);
    assert_eq!(run.execute(0), Ok(Effect::Wrote(X, 1)));
    assert_eq!(run.execute(0), Ok(Effect::ReadMemory(X, 1)));
}

#[test]
fn tso_takes_the_oldest_pso_the_oldest_of_each_cell() {
    let system = system("shared x, y: 0..2; process P { x = 1; y = 1; x = 2; sfence; y = 2; }");
    let mut run = ManualRun::new(&system, Model::Tso);
    (0..5).for_each(|_| assert!(run.execute(0).is_ok(), "stores and sfence are always possible"));
    assert_eq!(run.buffer(0).len(), 4, "no barrier under TSO");
    assert_eq!(run.update(0, 1), Err(Refusal::NotUpdatable));
    assert_eq!(run.update(0, 0), Ok(Effect::Updated(X, 1)));
    let mut run = ManualRun::new(&system, Model::Pso);
    (0..5).for_each(|_| assert!(run.execute(0).is_ok(), "stores and sfence are always possible"));
    assert_eq!(run.buffer(0)[3], Pending::Barrier);
    assert_eq!(run.update(0, 3), Err(Refusal::NotUpdatable), "a barrier is not a store");
    assert_eq!(run.update(0, 2), Err(Refusal::NotUpdatable), "an older store to x is in the way");
    assert_eq!(run.update(0, 4), Err(Refusal::NotUpdatable), "the barrier is in the way");
    assert_eq!(run.update(0, 9), Err(Refusal::NotUpdatable), "there is no such entry");
    assert_eq!(run.update(0, 1), Ok(Effect::Updated(Y, 1)));
    assert_eq!(run.update(0, 0), Ok(Effect::Updated(X, 1)));
    assert_eq!(run.update(0, 0), Ok(Effect::Updated(X, 2)));
    assert_eq!(run.buffer(0), [Pending::Store(Y, 2)], "a barrier never comes first");
}

#[test]
fn impossible_steps_are_rejected() {
    let system = system("shared x: 0..2; process P { let r = any(0..1); x = r; }");
    let mut run = ManualRun::new(&system, Model::Tso);
    let choose = |choice| Step { thread: ThreadId(0), action: Action::Execute { edge: EdgeId(0), choice } };
    assert_eq!(run.update(7, 0), Err(Refusal::NoSuchThread));
    assert_eq!(run.take(choose(None)), Err(Refusal::WrongChoice));
    assert_eq!(run.take(choose(Some(2))), Err(Refusal::WrongChoice));
    let other = Step { thread: ThreadId(0), action: Action::Execute { edge: EdgeId(1), choice: None } };
    assert_eq!(run.take(other), Err(Refusal::WrongLocation));
    let none = Step { thread: ThreadId(0), action: Action::Execute { edge: EdgeId(99), choice: None } };
    assert_eq!(run.take(none), Err(Refusal::WrongLocation));
    assert_eq!(run.take(choose(Some(1))), Ok(Effect::Local));
    assert_eq!(run.execute(0), Ok(Effect::Buffered(X, 1)));
}

#[test]
fn an_atomic_section_stops_all_other_threads() {
    let text =
        "shared x, y: 0..2; process P { y = 1; atomic { x = 1; x = 2; } } process Q { y = 2; let r = x; }";
    let system = system(text);
    let mut run = ManualRun::new(&system, Model::Tso);
    assert_eq!(run.execute(1), Ok(Effect::Buffered(Y, 2)));
    assert_eq!(run.execute(0), Ok(Effect::Buffered(Y, 1)));
    assert_eq!(run.execute(0), Err(Refusal::BufferNotEmpty), "opening a section drains the buffer");
    assert_eq!(run.update(0, 0), Ok(Effect::Updated(Y, 1)));
    assert_eq!(run.execute(0), Ok(Effect::Local));
    assert_eq!(run.update(1, 0), Err(Refusal::SectionOpen));
    assert_eq!(run.execute(1), Err(Refusal::SectionOpen));
    assert_eq!(run.execute(0), Ok(Effect::Wrote(X, 1)), "stores inside reach memory at once");
    assert_eq!(run.execute(1), Err(Refusal::SectionOpen));
    assert_eq!(run.execute(0), Ok(Effect::Wrote(X, 2)));
    assert_eq!(run.execute(0), Ok(Effect::Local));
    assert_eq!(run.state.section, None);
    assert_eq!(run.update(1, 0), Ok(Effect::Updated(Y, 2)));
    // No thread ever sees x = 1.
    check(text, "Q.r", "0 2", "0 2", "0 2");
}

#[test]
fn only_plain_increments_can_be_lost() {
    check("shared x: 0..2; process P[2] { atomic { x = x + 1; } }", "x", "2", "2", "2");
    check("shared x: 0..2; process P[2] { fetch_add(x, 1); }", "x", "2", "2", "2");
    check("shared x: 0..2; process P[2] { x = x + 1; }", "x", "1 2", "1 2", "1 2");
}

#[test]
fn pso_locked_instructions_can_wait_for_their_own_address_only() {
    let text = "shared x, y: 0..2; process P { x = 1; y = 1; let t = fetch_add(y, 1); } process Q { let r = y; let s = x; }";
    let system = system(text);
    let with = |interlocked| Machine { system: &system, model: Model::Pso, interlocked };
    let expected = |words: &str| words.split(' ').map(str::to_owned).collect::<BTreeSet<String>>();
    let whole = outcomes(with(Interlocked::WholeBuffer), "P.t Q.r Q.s");
    assert_eq!(whole, expected("100 101 110 111 121"), "y = 2 comes after x = 1");
    let own = outcomes(with(Interlocked::OwnAddress), "P.t Q.r Q.s");
    assert_eq!(own, expected("100 101 110 111 120 121"), "y = 2 can come before x = 1, but not before y = 1");
    let tso = Machine { system: &system, model: Model::Tso, interlocked: Interlocked::OwnAddress };
    assert_eq!(outcomes(tso, "P.t Q.r Q.s"), expected("100 101 111 121"), "the option concerns PSO only");
}

/// What brute force finds first, as text, under every model.
#[track_caller]
fn check_fault(body: &str, expected: &str) {
    let text = format!("shared x: 0..2; shared a[2]: 0..2; shared n: int; process P {{ {body} }}");
    let system = system(&text);
    for model in Model::ALL {
        let machine = Machine::new(&system, model);
        let found = match brute::check(machine, Scope::states(10_000)) {
            Answer::Unsafe(run) => match violation_after(machine, &run.steps, &run.memory) {
                Violation::Fault(thread, fault) => format!("{}: {fault}", system.instances[thread].name),
                Violation::Property(index) => format!("property {index}"),
                other => format!("{other:?}"),
            },
            other => other.word().to_owned(),
        };
        assert_eq!(found, expected, "{} of {text}", model.name());
    }
}

fn violation_after(machine: Machine<'_>, steps: &[Step], memory: &[i64]) -> Violation {
    let mut state = machine.initial_state(memory).expect("the run starts in an initial state");
    for &step in steps {
        state = machine.step(&state, step).expect("the run is possible").0;
    }
    assert!(machine.successors(&state).is_empty() || state.fault.is_none(), "nothing happens after a fault");
    machine.violation(&state).expect("the run ends in a bad state")
}

#[test]
fn run_time_errors() {
    check_fault("assert(x == 0);", "safe");
    check_fault("let r = x; assert(r == 1);", "P: assertion failed");
    check_fault("x = 3;", "P: value 3 is outside the declared domain");
    check_fault("fetch_add(x, 3);", "P: value 3 is outside the declared domain");
    check_fault("let r: bool = 2;", "P: value 2 is outside the declared domain");
    check_fault("let r = 2; a[r] = 1;", "P: array index 2 is out of bounds");
    check_fault("let r = 0 - 1; x = a[r];", "P: array index -1 is out of bounds");
    check_fault("let p = 0; *p = 1;", "P: null pointer dereferenced");
    check_fault("let p = 9; let r = *p;", "P: 9 is not the address of a cell");
    check_fault("let p = &a[1]; *p = 2; assert(a[1] == 2);", "safe");
    check_fault("n = 1 / x;", "P: division by zero");
    check_fault("n = 1 % x;", "P: division by zero");
    check_fault("n = 9223372036854775807; n = n + 1;", "P: arithmetic overflow");
    check_fault("let r = 64; n = 1 << r;", "P: arithmetic overflow");
}

#[test]
fn a_blocking_domain_stops_the_process() {
    let text = "shared x: 0..1 blocking; shared y: 0..1; process P { let r = any(0..2); x = r; y = 1; }";
    check(text, "P.r x y", "001 111", "001 111", "001 111");
    let register = "shared x: 0..2; process P { x = 2; } process Q { let r: 0..1 blocking = x; }";
    check(register, "Q.r x", "02", "02", "02");
    let locked = "shared x: 0..1 blocking; process P[2] { fetch_add(x, 1); } process Q { x = 0; }";
    check(locked, "x", "1", "1", "1");
}

#[test]
fn assumptions_stop_and_awaits_wait() {
    let assume = "shared x, y: 0..1; process P { x = 1; } process Q { assume(x == 1); y = 1; }";
    check(assume, "x y", "11", "11", "11");
    let wait = "shared x, y: 0..1; process P { y = 1; x = 1; } process Q { await x == 1; let r = y; }";
    check(wait, "Q.r", "1", "1", "0 1");
}

#[test]
fn spawned_processes_start_with_an_empty_buffer_and_spawn_is_not_a_fence() {
    let text = "shared x, y: 0..2; process P { x = 1; spawn Q(2); } process Q(i: 1..2) on spawn { y = i; let r = x; x = r + 1; }";
    // The spawned process can miss the store made before it was started. Then either store can come last.
    check(text, "x y", "22", "12 22", "12 22");
    let fenced = text.replace("spawn", "fence; spawn").replacen("on fence; spawn", "on spawn", 1);
    check(&fenced, "x y", "22", "22", "22");
    let many = "shared x: 0..3; process P { let n = 3; while n > 0 { spawn Q(); n = n - 1; } } process Q on spawn { fetch_add(x, 1); }";
    check(many, "x", "3", "3", "3");
}

#[test]
fn recursion_keeps_the_registers_of_each_activation() {
    let sum = "shared x: 0..20; proc f(n: 0..4) -> 0..20 { if n == 0 { return 0; } let rest = f(n - 1); return rest + n; }
        process P { let r = f(4); x = r; }";
    check(sum, "P.r x", "1010", "1010", "1010");
    // Each activation stores. The outermost store comes last.
    let stores = "shared x, y: 0..3; proc f(n: 0..3) { if n > 0 { f(n - 1); x = n; } } process P { f(3); y = x; } process Q { let r = y; let s = x; }";
    check(
        stores,
        "Q.r Q.s y",
        "003 013 023 033 333",
        "003 013 023 033 333",
        "003 013 023 033 303 313 323 333",
    );
}

#[test]
fn properties_are_checked_in_the_right_states() {
    let word = |text: &str, model| {
        let system = system(text);
        brute::check(Machine::new(&system, model), Scope::states(10_000)).word()
    };
    let check = |text: &str, expected: [&str; 3]| {
        assert_eq!(Model::ALL.map(|model| word(text, model)), expected, "{text}");
    };
    // Memory is checked only when all buffers are empty, and not inside atomic blocks.
    let two = "shared x, y: 0..1; process P { x = 1; y = 1; } forbid x == 1 && y == 0;";
    check(two, ["unsafe", "unsafe", "unsafe"]);
    check(
        "shared x, y: 0..1; process P { x = 1; y = 1; } forbid x == 0 && y == 1;",
        ["safe", "safe", "safe"],
    );
    let atomic = "shared x, y: 0..1; process P { atomic { x = 1; y = 1; } } forbid x == 1 && y == 0;";
    check(atomic, ["safe", "safe", "safe"]);
    let pso = "shared x, y: 0..1; process P { x = 1; y = 1; } process Q { await y; l: skip; } forbid Q@l && x == 0;";
    check(pso, ["safe", "safe", "safe"]);
    // Registers and labels are checked in every state.
    check("process P { let r = 1; r = 0; } forbid P.r == 1;", ["unsafe", "unsafe", "unsafe"]);
    check("process P { let r = 1; r = 0; } final P.r == 0;", ["safe", "safe", "safe"]);
    let count =
        "shared x: 0..1; process P[3] { await cas(x, 0, 1); cs: skip; x = 0; } forbid count(P@cs) >= 2;";
    check(count, ["safe", "safe", "safe"]);
    let late =
        "shared x: 0..1; process P[3] { await x == 0; x = 1; cs: skip; x = 0; } forbid count(P@cs) >= 3;";
    check(late, ["unsafe", "unsafe", "unsafe"]);
    // A final condition is checked only when all processes have ended.
    check("shared x: 0..1; process P { assume(x == 1); } final x == 1;", ["safe", "safe", "safe"]);
}
