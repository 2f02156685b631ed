//! Programs that are run again from their start: the same traces as from all interleavings, with about one
//! run per trace; limits; programs that do not repeat themselves.

use crate::common::random::{Shape, random_program, test_each_shape};
use crate::common::{self, Instr, Machine, Trace, all_traces, trace_of};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_dpor::{
    Choice, Executions, Foreseen, Limits, Mode, Next, Preference, Recording, Request, Subject, Summary,
    explore_executions, explore_preemptions,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The lock that a process touches next, and whether it is free.
type Free<M> = fn(&mut M, usize) -> Option<(u64, bool)>;

/// A machine that is only ever run from its start.
pub struct Rerun<M> {
    pub machine: M,
    /// Whether it reports which locks were free, and avoids running sleeping processes.
    helpful: bool,
    /// Whether locks have readers.
    readers: bool,
    pub runs: u64,
    /// From this run on, another program is run instead.
    then: Option<(u64, M)>,
    /// The thread of a process that is a store buffer.
    pub buffers: fn(&M, usize) -> Option<usize>,
    /// What a process is about to replace in memory.
    pub held: fn(&mut M, usize) -> Option<u64>,
    /// The lock that a process touches next, and whether it is free, if the kind of step does not say it.
    pub free: Option<Free<M>>,
}

impl<M: Subject> Rerun<M> {
    pub fn new(machine: M, helpful: bool) -> Rerun<M> {
        let (readers, runs, then, free) = (false, 0, None, None);
        Rerun { machine, helpful, readers, runs, then, buffers: |_, _| None, held: |_, _| None, free }
    }

    fn announce(&mut self, recording: &mut Recording) {
        for process in 0..self.machine.processes() {
            if let Some(thread) = (self.buffers)(&self.machine, process) {
                recording.buffers_for(process, thread);
            }
            match self.machine.next(process) {
                Next::Nothing => recording.ends(process),
                Next::Ready(footprint) => recording.will(process, footprint),
                Next::Waiting(footprint) => {
                    recording.will(process, footprint);
                    recording.waits(process, true);
                }
            }
        }
    }

    /// For locks: whether the lock that a step touches is free.
    fn open(&mut self, process: usize) -> Option<(u64, bool)> {
        if let Some(free) = self.free {
            return free(&mut self.machine, process);
        }
        let Next::Ready(footprint) = self.machine.next(process) else { return None };
        let touch = footprint.touches.first()?;
        let address = touch.address;
        // With readers it depends on which process waits.
        let known = self.helpful && touch.mode == Mode::Write && !self.readers;
        (known && address >= common::LOCKS).then_some((address, footprint.waits))
    }
}

impl<M: Subject> Executions for Rerun<M> {
    fn run(&mut self, request: &Request<'_>) -> Recording {
        self.runs += 1;
        if let Some((_, machine)) = self.then.take_if(|(run, _)| *run == self.runs) {
            self.machine = machine;
        }
        self.machine.rewind(0);
        let mut recording = Recording::new();
        let mut asleep = request.asleep.to_vec();
        self.announce(&mut recording);
        for at in 0..request.steps {
            let ready = |machine: &mut M, process| match machine.next(process) {
                Next::Ready(footprint) => Some(footprint),
                _ => None,
            };
            let choice = match request.choices.get(at) {
                Some(&choice) => choice,
                None => {
                    let is_asleep =
                        |process| self.helpful && asleep.iter().any(|sleeper| sleeper.process == process);
                    let is_buffer = |process: &usize| (self.buffers)(&self.machine, *process).is_some();
                    let taken = recording.choices().map(|choice| choice.process);
                    let last = taken.filter(|process| !is_buffer(process)).last();
                    let everybody = (0..self.machine.processes()).rev();
                    let preferred = everybody.clone().filter(is_buffer).chain(last);
                    let obeys = self.helpful && request.preference == Preference::SameProcess;
                    let preferred: Vec<usize> = preferred.filter(|_| obeys).collect();
                    let mut awake =
                        preferred.into_iter().chain(everybody).filter(|&process| !is_asleep(process));
                    let Some(process) = awake.find(|&process| ready(&mut self.machine, process).is_some())
                    else {
                        break;
                    };
                    Choice { process, outcome: 0 }
                }
            };
            let Some(mut footprint) = ready(&mut self.machine, choice.process) else { break };
            if footprint.is_conditional() {
                footprint = footprint.settled(self.machine.fails_now(choice.process));
            }
            if at >= request.choices.len() {
                let taken = |of: usize| recording.choices().filter(|choice| choice.process == of).count();
                asleep.retain(|sleeper| !sleeper.is_woken_by(choice.process, &footprint, taken));
            }
            let outcomes = self.machine.outcomes(choice.process);
            let open = self.open(choice.process);
            recording.step(choice, outcomes, open);
            if footprint.is_conditional() && self.machine.fails_now(choice.process) {
                recording.fails();
            }
            if let Some(held) = (self.held)(&mut self.machine, choice.process) {
                recording.held(held);
            }
            self.machine.step(choice.process, choice.outcome);
            self.announce(&mut recording);
        }
        recording
    }
}

fn explored(rerun: &mut Rerun<Machine>, limits: Limits) -> (BTreeSet<Trace>, Summary) {
    let mut seen = BTreeSet::new();
    let (summary, _) = explore_executions(rerun, limits, |_, execution| {
        assert!(seen.insert(trace_of(execution.steps)), "a trace is seen twice");
        ControlFlow::Continue(())
    });
    (seen, summary)
}

fn check_random(shape: Shape) {
    let (mut runs, mut executions) = (0, 0);
    for seed in seeds(300) {
        let machine = random_program(shape, &mut Random::new(seed));
        for helpful in [true, false] {
            let mut rerun =
                Rerun { readers: shape == Shape::Readers, ..Rerun::new(machine.clone(), helpful) };
            let (seen, summary) = explored(&mut rerun, Limits::default());
            rerun.machine.rewind(0);
            let all = all_traces(&mut rerun.machine);
            assert_eq!(seen, all, "{shape:?}, seed {seed}, helpful {helpful}");
            assert!(summary.is_complete() && summary.broken_off == 0, "{shape:?}, seed {seed}: {summary:?}");
            if helpful {
                runs += rerun.runs;
                executions += summary.executions;
            }
        }
    }
    println!("{shape:?}: {runs} runs for {executions} executions");
    // If it is not known which process could have taken a lock, additional runs are needed.
    let most = if shape == Shape::Readers { 4 * executions } else { executions + executions / 4 };
    assert!(runs <= most, "{shape:?}: {runs} runs for {executions} executions");
}

test_each_shape!(check_random);

/// Processes that each write the same cell once.
fn writers(count: usize) -> Machine {
    Machine::new(vec![vec![Instr::Store(|_| 0, |_| 1)]; count], count, 1, 0)
}

#[test]
fn limits_are_reported() {
    let check = |limits: Limits, executions: u64, complete: bool| {
        let (_, summary) = explored(&mut Rerun::new(writers(4), true), limits);
        assert_eq!((summary.executions, summary.is_complete()), (executions, complete), "{limits:?}");
    };
    check(Limits::default(), 24, true);
    check(Limits { executions: 24, ..Limits::default() }, 24, true);
    check(Limits { executions: 23, ..Limits::default() }, 23, false);
}

/// All schedules with at most this many preemptions, by brute force: their number and their traces.
fn all_within(machine: &mut Machine, most: usize) -> (u64, BTreeSet<Trace>) {
    fn go(
        machine: &mut Machine,
        left: usize,
        steps: &mut Vec<(usize, usize, palisade_dpor::Footprint, Vec<usize>)>,
        found: &mut (u64, BTreeSet<Trace>),
    ) {
        let last = steps.last().map(|step| step.0);
        let goes_on = last.is_some_and(|last| matches!(machine.next(last), Next::Ready(_)));
        let mut over = true;
        for process in 0..machine.processes() {
            let Next::Ready(footprint) = machine.next(process) else { continue };
            over = false;
            let cost = usize::from(goes_on && last != Some(process));
            if cost > left {
                continue;
            }
            for outcome in 0..machine.outcomes(process) {
                let started = machine.step(process, outcome);
                steps.push((process, outcome, (*footprint).clone(), started));
                go(machine, left - cost, steps, found);
                steps.pop();
                machine.rewind(steps.len());
            }
        }
        if over {
            found.0 += 1;
            found.1.insert(common::trace(steps));
        }
    }
    let mut found = (0, BTreeSet::new());
    machine.rewind(0);
    go(machine, most, &mut Vec::new(), &mut found);
    found
}

#[test]
fn differential_preemptions() {
    let mut complete = 0;
    let seeds = seeds(60);
    for seed in &seeds {
        for shape in [Shape::Plain, Shape::Choices, Shape::Locks, Shape::Spawns] {
            let machine = random_program(shape, &mut Random::new(seed));
            for preemptions in 0..3 {
                let mut rerun = Rerun::new(machine.clone(), true);
                let mut schedules = 0;
                let limits = Limits::default();
                let (summary, _) = explore_preemptions(&mut rerun, preemptions, limits, |_, _| {
                    schedules += 1;
                    ControlFlow::Continue(())
                });
                let (expected, traces) = all_within(&mut rerun.machine, preemptions);
                let what = format!("{shape:?}, seed {seed}, {preemptions} preemptions");
                assert_eq!((schedules, summary.executions), (expected, expected), "{what}");
                assert_eq!(summary.traces, traces.len() as u64, "{what}");
                let all = all_within(&mut rerun.machine, usize::MAX);
                assert_eq!(summary.is_complete(), expected == all.0, "{what}");
                complete += u32::from(summary.is_complete());
                assert!(rerun.runs <= expected + 1, "{what}: {} runs", rerun.runs);
            }
        }
    }
    assert!(complete > 100 || !seeds.suffice(), "some searches are complete: {complete}");
}

#[test]
fn a_program_that_does_not_repeat_itself_is_reported() {
    let elsewhere = Machine::new(vec![vec![Instr::Store(|_| 1, |_| 1)]; 3], 3, 2, 0);
    let mut rerun = Rerun { then: Some((3, elsewhere)), ..Rerun::new(writers(3), true) };
    let (summary, divergence) =
        explore_executions(&mut rerun, Limits::default(), |_, _| ControlFlow::Continue(()));
    assert!(summary.broken && !summary.is_complete(), "{summary:?}");
    let divergence = divergence.expect("the divergence is reported");
    let address = |foreseen: &Foreseen| match foreseen {
        Foreseen::Step { footprint, .. } => footprint.touches.first().map(|touch| touch.address),
        Foreseen::Nothing => None,
    };
    assert_eq!((divergence.position, divergence.process), (0, 0), "{divergence:?}");
    assert_ne!(address(&divergence.expected), address(&divergence.happened), "{divergence:?}");
}
