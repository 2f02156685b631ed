//! Litmus tests in C: one description, two programs.
//!
//! [`Litmus::text`] is the test in C. [`Litmus::outcomes`] has what it can end with, by the brute-force interpreter on
//! a program that is built directly from the description. So nothing that translates C takes part in the second.
//!
//! *Mapping.* Loads are loads. Stores are stores, after a store-store fence if they are `release` or `seq_cst`, and
//! before a fence if they are `seq_cst`. Read-modify-write operations are locked instructions, after a store-store
//! fence if they have release semantics. A `seq_cst` fence is a fence, one with release semantics is a store-store
//! fence, others are nothing. `volatile` is `relaxed`.

use super::{Text, finish, outputs};
use crate::brute::{self, Observed, Scope};
use crate::build::{assign, declare, int, locked, named, process, shared, stmt, var};
use crate::generate::cycle::{AccessKind, Skeleton, critical_cycle};
use crate::random::Random;
use palisade_memory::{Machine, Model};
use palisade_program::written::{Block, InitValue, Program, Rmw, Stmt, StmtKind, Type};
use palisade_program::{Instantiation, Value, lower};
use std::collections::BTreeSet;

/// A memory order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// `memory_order_relaxed`
    Relaxed,
    /// `memory_order_consume`
    Consume,
    /// `memory_order_acquire`
    Acquire,
    /// `memory_order_release`
    Release,
    /// `memory_order_acq_rel`
    AcqRel,
    /// `memory_order_seq_cst`
    SeqCst,
}

const LOADS: [Order; 4] = [Order::Relaxed, Order::Consume, Order::Acquire, Order::SeqCst];
const STORES: [Order; 3] = [Order::Relaxed, Order::Release, Order::SeqCst];
const ALL: [Order; 6] =
    [Order::Relaxed, Order::Consume, Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst];

impl Order {
    fn name(self) -> &'static str {
        match self {
            Order::Relaxed => "memory_order_relaxed",
            Order::Consume => "memory_order_consume",
            Order::Acquire => "memory_order_acquire",
            Order::Release => "memory_order_release",
            Order::AcqRel => "memory_order_acq_rel",
            Order::SeqCst => "memory_order_seq_cst",
        }
    }

    /// The order of a compare-and-exchange of this order that fails, and so only loads.
    pub(super) fn after_failure(self) -> Order {
        match self {
            Order::Release => Order::Relaxed,
            Order::AcqRel => Order::Acquire,
            order => order,
        }
    }

    fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

/// The name of a function that changes a variable by an operation, in C and in Rust. An exchange has different names.
pub(super) fn fetching(rmw: Rmw) -> Option<&'static str> {
    match rmw {
        Rmw::Exchange => None,
        Rmw::FetchAdd => Some("fetch_add"),
        Rmw::FetchSub => Some("fetch_sub"),
        Rmw::FetchAnd => Some("fetch_and"),
        Rmw::FetchOr => Some("fetch_or"),
        Rmw::FetchXor => Some("fetch_xor"),
        Rmw::Cas => unreachable!("it has a value that is expected"),
    }
}

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A load.
    Load(usize, Order),
    /// A store of a value.
    Store(usize, Value, Order),
    /// A read-modify-write operation. What it returns is observed. The second value is what a compare-exchange
    /// expects.
    Update(Rmw, usize, Value, Value, Order),
    /// A fence.
    Fence(Order),
}

/// A litmus test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Litmus {
    pub(super) threads: Vec<Vec<Action>>,
    /// Which variables are `volatile` and not atomic.
    pub(super) volatile: Vec<bool>,
    /// Whether results are stored at once or at the end of the thread.
    pub(super) at_once: bool,
}

/// What each action that returns something is called, by thread and action.
pub(super) fn results(threads: &[Vec<Action>]) -> Vec<(usize, usize)> {
    let returns = |action: &Action| !matches!(action, Action::Store(..) | Action::Fence(_));
    let of_thread = |(thread, actions): (usize, &Vec<Action>)| -> Vec<(usize, usize)> {
        (0..actions.len()).filter(|&at| returns(&actions[at])).map(|at| (thread, at)).collect()
    };
    threads.iter().enumerate().flat_map(of_thread).collect()
}

/// A random litmus test.
pub fn generate(seed: u64) -> Litmus {
    let random = &mut Random::new(seed);
    let mut threads: Vec<Vec<Action>>;
    let variables;
    if random.percent(60) {
        let Skeleton { threads: accesses, variables: count, .. } = critical_cycle(random, 4);
        variables = count;
        threads = Vec::new();
        for accesses in accesses {
            let mut actions = Vec::new();
            for access in accesses {
                if !actions.is_empty() && random.percent(40) {
                    actions.push(Action::Fence(*random.pick(&ALL)));
                }
                let variable = access.variable;
                actions.push(match access.kind {
                    AccessKind::Read(_) if random.percent(10) => update(random, variable, 0),
                    AccessKind::Read(_) => Action::Load(variable, *random.pick(&LOADS)),
                    AccessKind::Write(value) if random.percent(20) => update(random, variable, value),
                    AccessKind::Write(value) => Action::Store(variable, value, *random.pick(&STORES)),
                });
            }
            threads.push(actions);
        }
    } else {
        let count = random.between(2, 3);
        variables = random.between(1, 3);
        let longest = if count == 2 { 4 } else { 3 };
        threads = (0..count)
            .map(|_| {
                let length = random.between(2, longest);
                (0..length).map(|_| action(random, variables)).collect()
            })
            .collect();
    }
    let updated = |variable: usize, threads: &[Vec<Action>]| {
        let updates = |action: &Action| matches!(action, Action::Update(_, of, ..) if *of == variable);
        threads.iter().flatten().any(updates)
    };
    let volatile: Vec<bool> =
        (0..variables).map(|variable| !updated(variable, &threads) && random.percent(15)).collect();
    for action in threads.iter_mut().flatten() {
        match action {
            Action::Load(variable, order) | Action::Store(variable, _, order) if volatile[*variable] => {
                *order = Order::Relaxed;
            }
            _ => {}
        }
    }
    Litmus { threads, volatile, at_once: random.percent(50) }
}

fn action(random: &mut Random, variables: usize) -> Action {
    let variable = random.below(variables);
    let value = random.value(1, 2);
    match random.below(10) {
        0..=3 => Action::Load(variable, *random.pick(&LOADS)),
        4..=6 => Action::Store(variable, value, *random.pick(&STORES)),
        7 | 8 => update(random, variable, value),
        _ => Action::Fence(*random.pick(&ALL)),
    }
}

fn update(random: &mut Random, variable: usize, value: Value) -> Action {
    let (rmw, _) = *random.pick(&Rmw::ALL);
    Action::Update(rmw, variable, value, random.value(0, 1), *random.pick(&ALL))
}

impl Litmus {
    /// The test in C.
    pub fn text(&self) -> String {
        let mut text = Text::default();
        text.line("#include <pthread.h>");
        text.line("#include <stdatomic.h>");
        let results = results(&self.threads);
        let count = self.volatile.len() + results.len();
        text.text.push_str(&outputs(count));
        text.text.push_str(&finish(count));
        for (variable, volatile) in self.volatile.iter().enumerate() {
            let ty = if *volatile { "volatile int" } else { "atomic_int" };
            text.line(format!("static {ty} x{variable};"));
        }
        for (thread, action) in &results {
            text.line(format!("static int result{thread}_{action};"));
        }
        for (thread, actions) in self.threads.iter().enumerate() {
            text.open(format!("static void *thread{thread}(void *argument)"));
            for (at, action) in actions.iter().enumerate() {
                self.action(&mut text, thread, at, *action);
            }
            if !self.at_once {
                for (_, at) in results.iter().filter(|(of, _)| *of == thread) {
                    text.line(format!("result{thread}_{at} = r{at};"));
                }
            }
            text.line("return argument;");
            text.close("");
        }
        let threads = self.threads.len();
        text.open("int main(void)");
        text.line(format!("pthread_t threads[{threads}];"));
        for thread in 0..threads {
            text.line(format!("pthread_create(&threads[{thread}], 0, thread{thread}, 0);"));
        }
        for thread in 0..threads {
            text.line(format!("pthread_join(threads[{thread}], 0);"));
        }
        for variable in 0..self.volatile.len() {
            text.line(format!("o{variable} = x{variable};"));
        }
        for (index, (thread, action)) in results.iter().enumerate() {
            text.line(format!("o{} = result{thread}_{action};", self.volatile.len() + index));
        }
        text.line("finish();");
        text.line("return 0;");
        text.close("");
        text.text
    }

    fn action(&self, text: &mut Text, thread: usize, at: usize, action: Action) {
        let result = match action {
            Action::Store(variable, value, _) if self.volatile[variable] => {
                return text.line(format!("x{variable} = {value};"));
            }
            Action::Store(variable, value, order) => {
                return text.line(format!("atomic_store_explicit(&x{variable}, {value}, {});", order.name()));
            }
            Action::Fence(order) => return text.line(format!("atomic_thread_fence({});", order.name())),
            Action::Load(variable, _) if self.volatile[variable] => format!("x{variable}"),
            Action::Load(variable, order) => {
                format!("atomic_load_explicit(&x{variable}, {})", order.name())
            }
            Action::Update(Rmw::Cas, variable, value, expected, order) => {
                text.line(format!("int expected{at} = {expected};"));
                let (order, failure) = (order.name(), order.after_failure().name());
                let strength = if at.is_multiple_of(2) { "strong" } else { "weak" };
                format!(
                    "atomic_compare_exchange_{strength}_explicit(&x{variable}, &expected{at}, {value}, {order}, {failure})"
                )
            }
            Action::Update(rmw, variable, value, _, order) => {
                let name = fetching(rmw).unwrap_or("exchange");
                format!("atomic_{name}_explicit(&x{variable}, {value}, {})", order.name())
            }
        };
        if self.at_once {
            text.line(format!("result{thread}_{at} = {result};"));
        } else {
            text.line(format!("int r{at} = {result};"));
        }
    }

    /// What the test can end with: the values of `o0`, `o1`, … `None` if there are too many states.
    pub fn outcomes(&self, model: Model) -> Option<BTreeSet<Vec<Value>>> {
        let program = self.program();
        let system = lower(&program, Instantiation { any: 1, every: None });
        let variables = (0..self.volatile.len()).map(|variable| format!("x{variable}"));
        let results = results(&self.threads).into_iter().map(|(thread, at)| format!("P{thread}.r{at}"));
        let seen: Vec<Observed> =
            variables.chain(results).map(|name| Observed::named(&system, &name)).collect();
        brute::outcomes(Machine::new(&system, model), Scope::states(300_000), &seen)
    }

    fn program(&self) -> Program {
        let word = Type::wrapping(i32::MIN.into(), i32::MAX.into());
        let variables = (0..self.volatile.len())
            .map(|variable| shared(&format!("x{variable}"), None, word, InitValue::Const(int(0))));
        let body = |actions: &[Action]| -> Block {
            actions.iter().enumerate().flat_map(|(at, action)| statements(at, *action, word)).collect()
        };
        let processes = self.threads.iter().enumerate();
        let processes = processes.map(|(thread, actions)| process(&format!("P{thread}"), body(actions)));
        Program { shared: variables.collect(), templates: processes.collect(), ..Program::default() }
    }
}

fn statements(at: usize, action: Action, word: Type) -> Vec<Stmt> {
    let register = format!("r{at}");
    let mut statements = Vec::new();
    match action {
        Action::Load(variable, _) => {
            statements.push(declare(&register, word, var(&format!("x{variable}"))));
        }
        Action::Store(variable, value, order) => {
            if order.releases() {
                statements.push(stmt(StmtKind::StoreFence));
            }
            statements.push(assign(named(&format!("x{variable}")), int(value)));
            if order == Order::SeqCst {
                statements.push(stmt(StmtKind::Fence));
            }
        }
        Action::Update(rmw, variable, value, expected, order) => {
            if order.releases() {
                statements.push(stmt(StmtKind::StoreFence));
            }
            let operands = if rmw == Rmw::Cas { vec![int(expected), int(value)] } else { vec![int(value)] };
            let place = named(&format!("x{variable}"));
            statements.push(declare(&register, word, locked(rmw, place, operands)));
        }
        Action::Fence(Order::SeqCst) => statements.push(stmt(StmtKind::Fence)),
        Action::Fence(order) if order.releases() => statements.push(stmt(StmtKind::StoreFence)),
        Action::Fence(_) => {}
    }
    statements
}
