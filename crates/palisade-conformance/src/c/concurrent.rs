//! Random concurrent C programs: two or three threads that use atomics of all orders, locks, semaphores, condition
//! variables, flags, a heap, and ordinary C in between.
//!
//! *Conditions on the programs*, so that a compiled program can judge them under sequential consistency:
//! - A condition variable is waited for in a loop, and signalled in the critical section that makes its predicate
//!   true. Then it makes no difference whether waits may end without a signal.
//! - Loops end, except those that wait for other threads. Some programs have runs that never end.
//! - Nothing is undefined, except for data races in some programs. Compilers keep their accesses without
//!   optimisation.

use super::expressions::{Integer, Scope, Typed};
use super::{Text, finish, outputs};
use crate::random::Random;

/// A random program.
pub fn generate(seed: u64) -> String {
    program(seed, false)
}

/// The same program with an assertion about what it ends with, which some runs may violate.
pub fn generate_failing(seed: u64) -> String {
    program(seed, true)
}

fn program(seed: u64, asserts: bool) -> String {
    let mut random = Random::new(seed);
    let threads = if random.percent(70) { 2 } else { 3 };
    let atomics = (0..random.between(1, 3)).map(|_| *random.pick(&Integer::ALL)).collect();
    let guarded = (0..random.between(1, 2)).map(|_| *random.pick(&Integer::ALL)).collect();
    let racy = random.percent(20);
    let features = (0..3).map(|_| *random.pick(&Feature::ALL)).collect();
    let generator = Generator {
        random,
        text: Text::default(),
        threads,
        atomics,
        guarded,
        racy,
        asserts,
        features,
        locals: Vec::new(),
        names: 0,
    };
    generator.generate()
}

/// What a program may use besides atomics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Feature {
    Mutex,
    TryLock,
    Semaphore,
    Condition,
    Flag,
    Heap,
    Volatile,
    ThreadLocal,
    SpinLock,
    C11Mutex,
    Once,
    Barrier,
    Struct,
}

impl Feature {
    const ALL: [Feature; 13] = [
        Feature::Mutex,
        Feature::TryLock,
        Feature::Semaphore,
        Feature::Condition,
        Feature::Flag,
        Feature::Heap,
        Feature::Volatile,
        Feature::ThreadLocal,
        Feature::SpinLock,
        Feature::C11Mutex,
        Feature::Once,
        Feature::Barrier,
        Feature::Struct,
    ];
}

const ORDERS: [&str; 5] = ["relaxed", "acquire", "release", "acq_rel", "seq_cst"];

struct Generator {
    random: Random,
    text: Text,
    threads: usize,
    /// The types of the atomic variables `x0`, `x1`, …
    atomics: Vec<Integer>,
    /// The types of the variables `m0`, `m1`, … that a mutex protects.
    guarded: Vec<Integer>,
    /// Whether the protected variables are accessed without it, too.
    racy: bool,
    /// Whether there is an assertion about what the program ends with.
    asserts: bool,
    features: Vec<Feature>,
    /// The locals of the current function.
    locals: Vec<Typed>,
    names: usize,
}

impl Generator {
    fn generate(mut self) -> String {
        for header in ["assert.h", "pthread.h", "semaphore.h", "stdatomic.h", "stdlib.h", "threads.h"] {
            self.text.line(format!("#include <{header}>"));
        }
        self.declarations();
        let declared = std::mem::take(&mut self.text.text);
        let shared_body = self.random.percent(20);
        if shared_body {
            self.thread("run");
        } else {
            for thread in 0..self.threads {
                self.thread(&format!("run{thread}"));
            }
        }
        let body = |thread: usize| if shared_body { "run".to_owned() } else { format!("run{thread}") };
        self.text.open("int main(void)");
        self.text.line("unsigned acc = 9;");
        self.text.line(format!("pthread_t threads[{}];", self.threads));
        self.text.line(format!("void *ends[{}];", self.threads));
        let tokens = self.random.below(2);
        self.text.line(format!("sem_init(&semaphore, 0, {tokens});"));
        self.text.line("mtx_init(&mutex11, mtx_plain);");
        self.text.line("pthread_spin_init(&spin, 0);");
        self.text.line("pthread_barrier_init(&barrier, 0, 2);");
        self.text.line(format!(
            "for (int i = 0; i < {}; i++) {{ arguments[i].index = i; arguments[i].salt = 3 * i + 1; }}",
            self.threads
        ));
        for thread in 0..self.threads {
            self.text.line(format!(
                "pthread_create(&threads[{thread}], 0, {}, &arguments[{thread}]);",
                body(thread)
            ));
        }
        self.locals = vec![Typed::new("acc", Integer::UInt)];
        if self.random.percent(40) {
            self.action(1);
        }
        let mut order: Vec<usize> = (0..self.threads).collect();
        self.random.shuffle(&mut order);
        for thread in order {
            self.text.line(format!("pthread_join(threads[{thread}], &ends[{thread}]);"));
        }
        let compared = self.compared();
        for (index, value) in compared.iter().enumerate() {
            self.text.line(format!("o{index} = (long){value};"));
        }
        if self.asserts {
            let all = (0..compared.len()).map(|index| format!("(unsigned long)o{index}"));
            let all: Vec<String> = all.collect();
            let value = self.random.below(3);
            self.text.line(format!("assert(({}) % 3 != {value});", all.join(" + ")));
        }
        self.text.line("finish();");
        self.text.line("return 0;");
        self.text.close("");
        declared + &outputs(compared.len()) + &finish(compared.len()) + &self.text.text
    }

    fn compared(&self) -> Vec<String> {
        let mut compared: Vec<String> = (0..self.atomics.len()).map(|index| format!("x{index}")).collect();
        compared.extend((0..self.guarded.len()).map(|index| format!("m{index}")));
        compared.extend((0..self.threads).map(|thread| format!("ends[{thread}]")));
        compared.extend((0..self.threads).map(|thread| format!("arguments[{thread}].salt")));
        compared.extend(["acc", "pair.low", "pair.high", "v", "table[0]", "table[1]"].map(str::to_owned));
        compared
    }

    fn declarations(&mut self) {
        for (index, ty) in self.atomics.clone().into_iter().enumerate() {
            let value = self.random.below(3);
            self.text.line(format!("static _Atomic({}) x{index} = {value};", ty.name()));
        }
        for (index, ty) in self.guarded.clone().into_iter().enumerate() {
            self.text.line(format!("static {} m{index};", ty.name()));
        }
        for line in [
            "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;",
            "static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;",
            "static int ready;",
            "static sem_t semaphore;",
            "static mtx_t mutex11;",
            "static pthread_spinlock_t spin;",
            "static pthread_barrier_t barrier;",
            "static pthread_once_t once = PTHREAD_ONCE_INIT;",
            "static atomic_int flag;",
            "static volatile unsigned short v;",
            "static _Thread_local unsigned own = 4;",
            "static int table[2];",
            "struct pair { unsigned char low; long high; };",
            "static struct pair pair;",
            "struct node { struct node *next; short value; };",
            "static _Atomic(struct node *) top;",
            "struct argument { int index; unsigned short salt; };",
            "static struct argument arguments[3];",
            "static void begin(void) { x0 = 3; }",
        ] {
            self.text.line(line);
        }
        self.text.open("static unsigned take(atomic_int *from, int by)");
        self.text.line("int old = atomic_load_explicit(from, memory_order_acquire);");
        self.text.line("while (!atomic_compare_exchange_weak(from, &old, (old + by) & 7)) {}");
        self.text.line("return (unsigned)old;");
        self.text.close("");
    }

    fn thread(&mut self, name: &str) {
        self.text.open(format!("static void *{name}(void *pointer)"));
        self.text.line("struct argument *argument = pointer;");
        let ty = *self.random.pick(&Integer::ALL);
        let value = self.random.below(5);
        self.text.line("unsigned acc = argument->salt;");
        self.text.line(format!("{} other = ({})(argument->index + {value});", ty.name(), ty.name()));
        self.locals = vec![
            Typed::new("acc", Integer::UInt),
            Typed::new("other", ty),
            Typed::new("argument->salt", Integer::UShort),
        ];
        let actions = if self.threads == 2 { self.random.between(2, 4) } else { self.random.between(1, 2) };
        for _ in 0..actions {
            self.action(2);
        }
        if self.random.percent(50) {
            let value = self.expression(2);
            self.text.line(format!("argument->salt = {value};"));
        }
        self.text.line("return (void *)(unsigned long)(acc & 1023);");
        self.text.close("");
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// An expression over locals.
    fn expression(&mut self, depth: usize) -> String {
        let scope = Scope { readable: self.locals.clone(), careless: 0 };
        scope.expression(&mut self.random, depth).text
    }

    fn order(&mut self, allowed: &[&str]) -> String {
        let orders: Vec<&str> = ORDERS.into_iter().filter(|order| allowed.contains(order)).collect();
        format!("memory_order_{}", self.random.pick(&orders))
    }

    fn load_order(&mut self) -> String {
        self.order(&["relaxed", "acquire", "seq_cst"])
    }

    fn store_order(&mut self) -> String {
        self.order(&["relaxed", "release", "seq_cst"])
    }

    fn any_order(&mut self) -> String {
        self.order(&ORDERS)
    }

    fn mix(&mut self, value: &str) {
        let line = match self.random.below(3) {
            0 => format!("acc = acc * 3 + (unsigned)({value});"),
            1 => format!("acc ^= (unsigned)({value});"),
            _ => format!("acc += (unsigned)({value}) & 15;"),
        };
        self.text.line(line);
    }

    fn action(&mut self, depth: usize) {
        if self.random.percent(45) {
            let feature = *self.random.pick(&self.features);
            self.feature(feature);
        } else if depth > 0 && self.random.percent(20) {
            self.nested(depth);
        } else {
            self.atomic();
        }
    }

    /// Actions inside C's statements.
    fn nested(&mut self, depth: usize) {
        match self.random.below(4) {
            0 => {
                let name = self.name("i");
                self.text.open(format!("for (int {name} = 0; {name} < 2; {name}++)"));
                self.atomic();
                self.text.close("");
            }
            1 => {
                self.text.open("switch (acc & 3)");
                self.text.open("case 0:");
                self.atomic();
                if self.random.percent(50) {
                    self.text.line("break;");
                }
                self.text.close("");
                self.text.open("case 1:");
                self.atomic();
                self.text.line("break;");
                self.text.close("");
                self.text.line("default:");
                self.text.line("acc++;");
                self.text.close("");
            }
            _ => {
                let condition = self.expression(2);
                self.text.open(format!("if ({condition})"));
                self.action(depth - 1);
                self.text.close("");
                if self.random.percent(50) {
                    self.text.open("else");
                    self.atomic();
                    self.text.close("");
                }
            }
        }
    }

    /// An access to an atomic variable.
    fn atomic(&mut self) {
        let index = self.random.below(self.atomics.len());
        let (x, ty) = (format!("x{index}"), self.atomics[index]);
        let value = self.expression(2);
        let plain = if ty == Integer::Bool { 6 } else { 12 };
        match self.random.below(plain) {
            0 | 1 => {
                let order = self.load_order();
                self.mix(&format!("atomic_load_explicit(&{x}, {order})"));
            }
            2 => {
                let order = self.store_order();
                self.text.line(format!("atomic_store_explicit(&{x}, {value}, {order});"));
            }
            3 => {
                let order = self.any_order();
                self.mix(&format!("atomic_exchange_explicit(&{x}, {value}, {order})"));
            }
            4 => {
                let (name, order) = (self.name("expected"), self.any_order());
                let strength = ["strong", "weak"][self.random.below(2)];
                let failure = self.order(&["relaxed"]);
                self.text.line(format!("{} {name} = {};", ty.name(), self.random.below(3)));
                self.text.open(format!(
                    "if (atomic_compare_exchange_{strength}_explicit(&{x}, &{name}, {value}, {order}, {failure}))"
                ));
                self.text.line("acc += 8;");
                self.text.close("");
                self.mix(&name);
            }
            5 => {
                let order = self.any_order();
                self.text.line(format!("atomic_thread_fence({order});"));
                self.mix(&x);
            }
            6 => self.text.line(format!("{x}{};", ["++", "--"][self.random.below(2)])),
            7 if self.is_unsigned(ty) => {
                self.text.line(format!("{x} *= 3;"));
            }
            7 | 8 => {
                let name = self.name("old");
                self.text.line(format!("{} {name} = {x};", ty.name()));
                self.text.line(format!(
                    "while (!atomic_compare_exchange_weak(&{x}, &{name}, ({}){name} ^ ({value}))) {{}}",
                    ty.name()
                ));
                self.mix(&name);
            }
            9 => {
                let (op, order) =
                    (["add", "sub", "or", "and", "xor"][self.random.below(5)], self.any_order());
                self.mix(&format!("atomic_fetch_{op}_explicit(&{x}, {value}, {order})"));
            }
            10 => self.text.line(format!("{x} {}= {value};", ["|", "&", "^"][self.random.below(3)])),
            _ => self.text.line(format!("{x} = {value};")),
        }
    }

    fn is_unsigned(&self, ty: Integer) -> bool {
        matches!(ty, Integer::UChar | Integer::UInt | Integer::ULong)
    }

    /// What is done with protected variables.
    fn critical(&mut self) {
        for _ in 0..self.random.between(1, 2) {
            let index = self.random.below(self.guarded.len());
            let m = Typed::new(format!("m{index}"), self.guarded[index]);
            self.locals.push(m.clone());
            let value = self.expression(2);
            self.locals.pop();
            match self.random.below(3) {
                0 => self.mix(&m.text),
                1 => self.text.line(format!("m{index} = {value};")),
                _ => self.text.line(format!("table[{} & 1] += 1;", m.text)),
            }
        }
    }

    fn feature(&mut self, feature: Feature) {
        match feature {
            Feature::Mutex => {
                self.text.line("pthread_mutex_lock(&lock);");
                self.critical();
                self.text.line("pthread_mutex_unlock(&lock);");
                if self.racy {
                    self.critical();
                }
            }
            Feature::TryLock => {
                self.text.open("if (pthread_mutex_trylock(&lock) == 0)");
                self.critical();
                self.text.line("pthread_mutex_unlock(&lock);");
                self.text.close("");
                self.text.open("else");
                self.text.line("acc += 100;");
                self.text.close("");
            }
            Feature::Semaphore => match self.random.below(3) {
                0 => self.text.line("sem_wait(&semaphore);"),
                1 => self.mix("sem_trywait(&semaphore) == 0"),
                _ => self.text.line("sem_post(&semaphore);"),
            },
            Feature::Condition => {
                self.text.line("pthread_mutex_lock(&lock);");
                if self.random.percent(50) {
                    self.text.line("while (!ready) pthread_cond_wait(&condition, &lock);");
                    self.critical();
                } else {
                    self.critical();
                    self.text.line("ready = 1;");
                    let how = ["signal", "broadcast"][self.random.below(2)];
                    // Others may be waiting, too: a single signal would leave them waiting.
                    let how = if self.threads > 2 { "broadcast" } else { how };
                    self.text.line(format!("pthread_cond_{how}(&condition);"));
                }
                self.text.line("pthread_mutex_unlock(&lock);");
            }
            Feature::Flag => match self.random.below(3) {
                0 => {
                    let order = self.load_order();
                    self.text.line(format!("while (!atomic_load_explicit(&flag, {order})) {{}}"));
                }
                1 => {
                    let order = self.store_order();
                    self.text.line(format!("atomic_store_explicit(&flag, 1, {order});"));
                }
                _ => self.mix("take(&flag, 1)"),
            },
            Feature::Heap => {
                let name = self.name("node");
                if self.random.percent(60) {
                    let value = self.expression(2);
                    self.text.line(format!("struct node *{name} = malloc(sizeof *{name});"));
                    self.text.line(format!("{name}->value = {value};"));
                    self.text.line(format!("{name}->next = top;"));
                    self.text.line(format!(
                        "while (!atomic_compare_exchange_weak(&top, &{name}->next, {name})) {{}}"
                    ));
                } else {
                    self.text.line(format!("struct node *{name} = atomic_exchange(&top, 0);"));
                    self.text.open(format!("while ({name})"));
                    self.text.line(format!("struct node *next = {name}->next;"));
                    self.mix(&format!("{name}->value"));
                    self.text.line(format!("free({name});"));
                    self.text.line(format!("{name} = next;"));
                    self.text.close("");
                }
            }
            Feature::Volatile => {
                let value = self.expression(2);
                match self.random.below(3) {
                    0 => self.mix("v"),
                    1 => self.text.line(format!("v = {value};")),
                    _ => self.text.line("v++;"),
                }
            }
            Feature::ThreadLocal => {
                let value = self.expression(2);
                self.text.line(format!("own += (unsigned)({value});"));
                self.mix("own");
            }
            Feature::SpinLock => {
                self.text.line("pthread_spin_lock(&spin);");
                self.text.line("pair.low++;");
                self.mix("pair.low");
                self.text.line("pthread_spin_unlock(&spin);");
            }
            Feature::C11Mutex => {
                self.text.line("mtx_lock(&mutex11);");
                self.text.line("pair.high = pair.high * 2 + (acc & 1);");
                self.mix("pair.high");
                self.text.line("mtx_unlock(&mutex11);");
            }
            Feature::Once => self.text.line("pthread_once(&once, begin);"),
            Feature::Barrier => self.text.line("pthread_barrier_wait(&barrier);"),
            Feature::Struct => {
                let name = self.name("copy");
                self.text.line("pthread_mutex_lock(&lock);");
                self.text.line(format!("struct pair {name} = pair;"));
                self.text.line(format!("{name}.low ^= {name}.high + acc;"));
                self.text.line(format!("{name}.high = {name}.low + 1;"));
                self.text.line(format!("pair = {name};"));
                self.text.line("pthread_mutex_unlock(&lock);");
                self.mix(&format!("{name}.low"));
            }
        }
    }
}
