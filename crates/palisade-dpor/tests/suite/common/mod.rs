//! A small machine for testing the search, and counting traces by brute force.

pub mod buffered;
pub mod random;

use palisade_dpor::{Footprint, Mode, Next, Step, Subject};
use std::collections::BTreeSet;

/// An expression over the registers of a process.
pub type Expr = fn(&[i64]) -> i64;

/// Instructions. Memory accesses, locks and joins are steps; the others are executed together with the step
/// before.
#[derive(Clone)]
#[allow(dead_code, reason = "not every test uses every instruction")]
pub enum Instr {
    /// `r = memory[a]`
    Load(usize, Expr),
    /// `memory[a] = v`
    Store(Expr, Expr),
    /// Compare-and-swap: address, old value, new value. `r` is 1 if it succeeded.
    Cas(usize, Expr, Expr, Expr),
    /// Jumps to an instruction if an expression is not 0.
    Jump(Expr, usize),
    /// `r = v`
    Set(usize, Expr),
    /// Sets `r` to any of `0..n`.
    Choose(usize, usize),
    /// Takes a lock.
    Lock(Expr),
    /// Releases it.
    Unlock(Expr),
    /// Takes a lock for reading.
    Share(Expr),
    /// Releases it.
    Unshare(Expr),
    /// Starts a process that runs some code.
    Spawn(usize),
}

#[derive(Clone)]
struct Process {
    code: usize,
    at: usize,
    registers: Vec<i64>,
    /// How many processes it has started.
    children: usize,
}

#[derive(Clone)]
struct State {
    memory: Vec<i64>,
    /// The holders of each lock: a number of readers, or one writer.
    locks: Vec<i64>,
    /// By number; `None` for processes that do not exist yet.
    processes: Vec<Option<Process>>,
}

/// A program that can be run step by step.
#[derive(Clone)]
pub struct Machine {
    codes: Vec<Vec<Instr>>,
    states: Vec<State>,
    /// For each process, its parent and its index among the parent's children.
    names: Vec<Option<(usize, usize)>>,
}

const REGISTERS: usize = 8;
/// Locks have addresses from here on.
pub const LOCKS: u64 = 1000;

impl Machine {
    /// The first `processes` codes run from the start.
    pub fn new(codes: Vec<Vec<Instr>>, processes: usize, memory: usize, locks: usize) -> Machine {
        let process = |code| Some(Process { code, at: 0, registers: vec![0; REGISTERS], children: 0 });
        let state = State {
            memory: vec![0; memory],
            locks: vec![0; locks],
            processes: (0..processes).map(process).collect(),
        };
        let mut machine = Machine { codes, states: vec![state], names: vec![None; processes] };
        for process in 0..processes {
            // This small machine does not support choices before the first step.
            let (mut states, started) = machine.settle(machine.states[0].clone(), process);
            assert!(states.len() == 1 && started.is_empty(), "no choice and no spawn before the first step");
            machine.states[0] = states.remove(0);
        }
        machine
    }

    fn now(&self) -> &State {
        self.states.last().expect("there is a state")
    }

    fn instr(&self, state: &State, process: usize) -> Option<&Instr> {
        let process = state.processes.get(process)?.as_ref()?;
        self.codes[process.code].get(process.at)
    }

    /// Runs a process to its next step. Returns all states it can be in then, and the processes that were
    /// started.
    fn settle(&mut self, mut state: State, process: usize) -> (Vec<State>, Vec<usize>) {
        let mut started = Vec::new();
        loop {
            let Some(instr) = self.instr(&state, process).cloned() else { return (vec![state], started) };
            let me = state.processes[process].as_mut().expect("it exists");
            match instr {
                Instr::Jump(condition, to) => {
                    me.at = if condition(&me.registers) != 0 { to } else { me.at + 1 }
                }
                Instr::Set(register, value) => {
                    me.registers[register] = value(&me.registers);
                    me.at += 1;
                }
                Instr::Choose(register, n) => {
                    let mut all = Vec::new();
                    for value in 0..n {
                        let mut state = state.clone();
                        let me = state.processes[process].as_mut().expect("it exists");
                        me.registers[register] = value as i64;
                        me.at += 1;
                        let (states, more) = self.settle(state, process);
                        assert!(more.is_empty(), "no spawn after a choice");
                        all.extend(states);
                    }
                    return (all, started);
                }
                Instr::Spawn(code) => {
                    me.at += 1;
                    me.children += 1;
                    let name = Some((process, me.children));
                    let number = match self.names.iter().position(|known| *known == name) {
                        Some(number) => number,
                        None => {
                            self.names.push(name);
                            self.names.len() - 1
                        }
                    };
                    if state.processes.len() <= number {
                        state.processes.resize(number + 1, None);
                    }
                    state.processes[number] =
                        Some(Process { code, at: 0, registers: vec![0; REGISTERS], children: 0 });
                    let (mut states, more) = self.settle(state, number);
                    assert!(states.len() == 1 && more.is_empty(), "a child begins with a step");
                    state = states.remove(0);
                    started.push(number);
                }
                _ => return (vec![state], started),
            }
        }
    }

    /// All states after the next step of a process, and the processes that were started.
    fn after(&mut self, process: usize) -> (Vec<State>, Vec<usize>) {
        let mut state = self.now().clone();
        let instr = self.instr(&state, process).expect("it is ready").clone();
        let me = state.processes[process].as_mut().expect("it exists");
        let registers = me.registers.clone();
        me.at += 1;
        match instr {
            Instr::Load(register, address) => {
                me.registers[register] = state.memory[address(&registers) as usize];
            }
            Instr::Store(address, value) => state.memory[address(&registers) as usize] = value(&registers),
            Instr::Cas(register, address, old, new) => {
                let cell = &mut state.memory[address(&registers) as usize];
                me.registers[register] = i64::from(*cell == old(&registers));
                if *cell == old(&registers) {
                    *cell = new(&registers);
                }
            }
            Instr::Lock(lock) => state.locks[lock(&registers) as usize] = -1,
            Instr::Unlock(lock) => state.locks[lock(&registers) as usize] = 0,
            Instr::Share(lock) => state.locks[lock(&registers) as usize] += 1,
            Instr::Unshare(lock) => state.locks[lock(&registers) as usize] -= 1,
            _ => unreachable!("the process is at a step"),
        }
        self.settle(state, process)
    }
}

impl Subject for Machine {
    fn processes(&self) -> usize {
        self.now().processes.len()
    }

    fn next(&mut self, process: usize) -> Next {
        let state = self.now();
        let Some(instr) = self.instr(state, process) else { return Next::Nothing };
        let registers = &state.processes[process].as_ref().expect("it exists").registers;
        match instr {
            Instr::Load(_, address) => {
                Next::Ready(Footprint::one(address(registers) as u64, 1, Mode::Read).into())
            }
            Instr::Store(address, _) | Instr::Cas(_, address, ..) => {
                Next::Ready(Footprint::one(address(registers) as u64, 1, Mode::Write).into())
            }
            Instr::Lock(lock) => {
                let lock = lock(registers) as usize;
                let touched =
                    Footprint { waits: true, ..Footprint::one(LOCKS + lock as u64, 1, Mode::Write) };
                if state.locks[lock] != 0 {
                    Next::Waiting(touched.into())
                } else {
                    Next::Ready(touched.into())
                }
            }
            Instr::Share(lock) => {
                let lock = lock(registers) as usize;
                let touched = Footprint { waits: true, ..Footprint::one(LOCKS + lock as u64, 1, Mode::Read) };
                if state.locks[lock] < 0 {
                    Next::Waiting(touched.into())
                } else {
                    Next::Ready(touched.into())
                }
            }
            Instr::Unshare(lock) => {
                Next::Ready(Footprint::one(LOCKS + lock(registers) as u64, 1, Mode::Read).into())
            }
            Instr::Unlock(lock) => {
                Next::Ready(Footprint::one(LOCKS + lock(registers) as u64, 1, Mode::Write).into())
            }
            _ => unreachable!("the process is at a step"),
        }
    }

    fn outcomes(&mut self, process: usize) -> usize {
        // Counting needs the names of processes, so it works on a copy.
        let mut copy = Machine {
            codes: self.codes.clone(),
            states: vec![self.now().clone()],
            names: self.names.clone(),
        };
        copy.after(process).0.len()
    }

    fn step(&mut self, process: usize, outcome: usize) -> Vec<usize> {
        let (mut states, started) = self.after(process);
        self.states.push(states.swap_remove(outcome));
        started
    }

    fn rewind(&mut self, steps: usize) {
        self.states.truncate(steps + 1);
    }

    fn position(&self) -> usize {
        self.states.len() - 1
    }
}

/// More processes than any program here has.
const LANES: usize = 24;

/// A trace: for every step, by process and index, its outcome and what happens before it.
pub type Trace = Vec<(usize, u32, usize, Vec<u32>)>;

/// The trace of an execution, computed from scratch.
pub fn trace(steps: &[(usize, usize, Footprint, Vec<usize>)]) -> Trace {
    let mut clocks: Vec<Vec<u32>> = Vec::new();
    let mut trace = Vec::new();
    for (position, (process, outcome, footprint, _)) in steps.iter().enumerate() {
        let mut clock = vec![0u32; LANES];
        for (earlier, (other, _, touched, started)) in steps[..position].iter().enumerate() {
            if other == process || touched.conflicts(footprint) || started.contains(process) {
                for lane in 0..LANES {
                    clock[lane] = clock[lane].max(clocks[earlier][lane]);
                }
            }
        }
        clock[*process] += 1;
        trace.push((*process, clock[*process], *outcome, clock.clone()));
        clocks.push(clock);
    }
    trace.sort();
    trace
}

/// All traces, from running every interleaving.
pub fn all_traces(machine: &mut Machine) -> BTreeSet<Trace> {
    let mut found = BTreeSet::new();
    let mut steps = Vec::new();
    interleave(machine, &mut steps, &mut found);
    found
}

fn interleave(
    machine: &mut Machine,
    steps: &mut Vec<(usize, usize, Footprint, Vec<usize>)>,
    found: &mut BTreeSet<Trace>,
) {
    let mut over = true;
    for process in 0..machine.processes() {
        let Next::Ready(footprint) = machine.next(process) else { continue };
        over = false;
        for outcome in 0..machine.outcomes(process) {
            let started = machine.step(process, outcome);
            steps.push((process, outcome, Footprint::clone(&footprint), started));
            interleave(machine, steps, found);
            steps.pop();
            machine.rewind(steps.len());
        }
    }
    if over {
        found.insert(trace(steps));
    }
}

/// The trace of an execution according to the search.
pub fn trace_of(steps: &[Step]) -> Trace {
    let widen = |clock: &[u32]| {
        let mut clock = clock.to_vec();
        clock.resize(LANES, 0);
        clock
    };
    let mut trace: Trace = steps.iter().map(|s| (s.process, s.number, s.outcome, widen(&s.clock))).collect();
    trace.sort();
    trace
}
