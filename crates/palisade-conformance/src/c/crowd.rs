//! Random C programs with one or two functions, each of which any number of threads may run.
//!
//! *Judge.* The brute-force interpreter, on a program that is built from the same description and never was C, with a
//! given number of threads per function.

use crate::brute::{self, Answer, Scope};
use crate::random::Random;
use palisade_base::Source;
use palisade_memory::{Machine, Model};
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};
use std::fmt::Write;

/// The shared variables.
const VARIABLES: [&str; 3] = ["x", "y", "z"];
/// Values are below this.
const VALUES: usize = 3;
/// The interpreter gives up after this many states.
const STATES: usize = 60_000;

/// A statement of a function. Every function has one local variable, `r`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Load(&'static str),
    Store(&'static str, usize),
    Release(&'static str, usize),
    Exchange(&'static str, usize),
    /// Whether the exchange was made is in `r`.
    CompareExchange(&'static str, usize, usize),
    Fence,
    /// Waits until the variable has this value.
    Await(&'static str, usize),
    /// Waits until an exchange with 1 finds 0.
    Lock(&'static str),
    /// Ends the function if `r` has this value.
    ReturnIf(usize),
    /// Fails if `r` has this value.
    AssertNot(usize),
}

/// A program.
#[derive(Clone, Debug)]
pub struct Crowd {
    functions: Vec<Vec<Operation>>,
}

/// A random program.
pub fn generate(seed: u64) -> Crowd {
    let mut random = Random::new(seed);
    let functions = (0..random.between(1, 2)).map(|_| function(&mut random)).collect();
    Crowd { functions }
}

fn function(random: &mut Random) -> Vec<Operation> {
    let mut body: Vec<Operation> = (0..random.between(2, 4)).map(|_| operation(random)).collect();
    // Something is read and tested in every function, mostly at its end.
    let tested = *random.pick(&VARIABLES);
    body.push(Operation::Load(tested));
    body.push(Operation::AssertNot(random.below(VALUES)));
    if random.percent(40) {
        // A critical section.
        let lock = *random.pick(&VARIABLES);
        body.insert(0, Operation::Lock(lock));
        body.push(Operation::Release(lock, 0));
    }
    body
}

fn operation(random: &mut Random) -> Operation {
    let variable = *random.pick(&VARIABLES);
    let value = random.below(VALUES);
    match random.below(16) {
        0..3 => Operation::Load(variable),
        3..6 => Operation::Store(variable, value),
        6 => Operation::Release(variable, value),
        7..9 => Operation::Exchange(variable, value),
        9..11 => Operation::CompareExchange(variable, random.below(VALUES), value),
        11 => Operation::Fence,
        12 => Operation::Await(variable, value),
        13 => Operation::Lock(variable),
        14 => Operation::ReturnIf(value),
        _ => Operation::AssertNot(value),
    }
}

impl Operation {
    fn c(self) -> String {
        match self {
            Operation::Load(x) => format!("r = atomic_load_explicit(&{x}, memory_order_relaxed);"),
            Operation::Store(x, v) => format!("atomic_store_explicit(&{x}, {v}, memory_order_relaxed);"),
            Operation::Release(x, v) => format!("atomic_store_explicit(&{x}, {v}, memory_order_release);"),
            Operation::Exchange(x, v) => format!("r = atomic_exchange(&{x}, {v});"),
            Operation::CompareExchange(x, e, v) => {
                format!("{{ int e = {e}; r = atomic_compare_exchange_strong(&{x}, &e, {v}); }}")
            }
            Operation::Fence => "atomic_thread_fence(memory_order_seq_cst);".to_owned(),
            Operation::Await(x, v) => {
                format!("while (atomic_load_explicit(&{x}, memory_order_acquire) != {v}) ;")
            }
            Operation::Lock(x) => format!("while (atomic_exchange(&{x}, 1)) ;"),
            Operation::ReturnIf(v) => format!("if (r == {v}) return none;"),
            Operation::AssertNot(v) => format!("assert(r != {v});"),
        }
    }

    fn pal(self) -> String {
        match self {
            Operation::Load(x) => format!("r = {x};"),
            Operation::Store(x, v) => format!("{x} = {v};"),
            Operation::Release(x, v) => format!("sfence; {x} = {v};"),
            Operation::Exchange(x, v) => format!("r = xchg({x}, {v});"),
            Operation::CompareExchange(x, e, v) => format!("r = cas({x}, {e}, {v});"),
            Operation::Fence => "fence;".to_owned(),
            Operation::Await(x, v) => format!("await {x} == {v};"),
            Operation::Lock(x) => format!("await xchg({x}, 1) == 0;"),
            Operation::ReturnIf(v) => format!("if (r == {v}) {{ return; }}"),
            Operation::AssertNot(v) => format!("assert(r != {v});"),
        }
    }
}

impl Crowd {
    /// How many functions there are.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// The program in C, with two threads per function.
    pub fn text(&self) -> String {
        let mut text = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n".to_owned();
        let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string");
        line(format!("static atomic_int {};", VARIABLES.join(", ")));
        for (index, body) in self.functions.iter().enumerate() {
            line(format!("static void *body{index}(void *none)\n{{\n    int r = 0;"));
            body.iter().for_each(|operation| line(format!("    {}", operation.c())));
            line("    (void)r;\n    return none;\n}".to_owned());
        }
        line("int main(void)\n{\n    pthread_t t[4];\n    int n = 0;".to_owned());
        for index in 0..self.functions.len() {
            line(format!("    for (int i = 0; i < 2; i++) pthread_create(&t[n++], 0, body{index}, 0);"));
        }
        line("    for (int i = 0; i < n; i++) pthread_join(t[i], 0);\n    return 0;\n}".to_owned());
        text
    }

    /// The same program in `.pal`, with any number of threads per function.
    pub fn pal(&self) -> String {
        let mut text = format!("shared {}: 0..{};\n", VARIABLES.join(", "), VALUES - 1);
        for (index, body) in self.functions.iter().enumerate() {
            let body: Vec<String> = body.iter().map(|operation| operation.pal()).collect();
            writeln!(text, "process P{index}[*] {{ let r = 0; {} }}", body.join(" "))
                .expect("writing to a string");
        }
        text
    }

    /// Whether an assertion can fail with this many threads per function. `None` if there are too many states.
    ///
    /// # Panics
    /// If the program is not well formed.
    pub fn fails(&self, model: Model, threads: u32) -> Option<bool> {
        let source = Source::new("crowd", self.pal());
        let program = parse(Language::Pal, &source).expect("the program is well formed").program;
        let system = lower(&program, Instantiation::declared(threads));
        match brute::check(Machine::new(&system, model), Scope::states(STATES)) {
            Answer::Safe => Some(false),
            Answer::Unsafe(_) => Some(true),
            Answer::Inconclusive => None,
        }
    }
}
