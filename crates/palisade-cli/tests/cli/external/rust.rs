//! Rust programs on the command line: what is passed to rustc, what it complains about, where programs start.

use crate::common::Scratch;

const COUNTER: &str = "use std::sync::atomic::{AtomicU32, Ordering};
static X: AtomicU32 = AtomicU32::new(0);
pub fn add() {
    X.fetch_add(1, Ordering::Relaxed);
}
mod inner {
    pub fn look() {
        assert_eq!(super::X.load(super::Ordering::Relaxed), super::EXPECTED);
    }
}
const EXPECTED: u32 = if cfg!(wrong) { 3 } else { 2 };
#[cfg(test)]
mod tests {
    fn both() {
        let other = std::thread::spawn(super::add);
        super::add();
        other.join().unwrap();
    }
    #[test]
    fn counts() {
        both();
        super::inner::look();
    }
    #[test]
    fn counts_too_early() {
        let other = std::thread::spawn(super::add);
        super::inner::look();
        other.join().unwrap();
    }
    #[test]
    #[should_panic]
    fn panics() {
        super::inner::look();
    }
    #[test]
    fn returns() -> Result<(), String> {
        Ok(())
    }
}
";

#[test]
fn tests_and_functions_by_name() {
    let scratch = Scratch::new("rust-names").file("counter.rs", COUNTER);
    scratch.run(&["check", "-q", "counter.rs", "--test", "counts"]).exits(0).prints(
        "safe  counter.rs: free of deadlocks, `main` can always finish
",
    );
    scratch.run(&["check", "-q", "counter.rs", "--test", "tests::counts_too_early"]).exits(1).prints(
        "unsafe  counter.rs: the program panicked in main at line 8: [..]
",
    );
    let functions = ["check", "-q", "counter.rs", "--thread", "add", "--thread", "add", "--final", "look"];
    scratch.run(&functions).exits(0).prints(
        "safe  counter.rs: free of deadlocks, all threads can always end
",
    );
    let wrong = [&functions[..], &["--", "--cfg", "wrong", "--edition", "2024"]].concat();
    scratch.run(&wrong).exits(1).prints(
        "unsafe  counter.rs: the program panicked in look at line 8: [..]
",
    );
}

#[test]
fn names_that_are_not_there() {
    let scratch = Scratch::new("rust-no-names").file("counter.rs", COUNTER);
    scratch.run(&["check", "counter.rs", "--test", "count"]).exits(2).complains(
        "error[no-such-test]: counter.rs: there is no test `count`
...
 = help: there are `tests::counts`, `tests::counts_too_early`, `tests::panics`, `tests::returns`
...
",
    );
    scratch.run(&["check", "counter.rs", "--test", "returns"]).exits(2).complains(
        "error[c-unsupported]: counter.rs: the test returns a value, and only panics count as failures
...
",
    );
    scratch.run(&["check", "counter.rs", "--test", "panics"]).exits(2).complains(
        "error[c-unsupported]: counter.rs: the test `tests::panics` must panic, and `#[should_panic]` is not followed
...
",
    );
    scratch.run(&["check", "counter.rs", "--thread", "remove"]).exits(2).complains(
        "error[c-no-function]: counter.rs: there is no function `remove`
...
 = help: there are `add`, `inner::look`
...
",
    );
    scratch.run(&["check", "counter.rs"]).exits(2).complains(
        "error[rust-error]: `main` function not found in crate `program` (E0601)
...
",
    );
}

#[test]
fn what_rustc_complains_about() {
    let scratch = Scratch::new("rust-errors")
        .file("broken.rs", "mod other;\nfn main() {\n    other::run(1);\n}\n")
        .file("other.rs", "pub fn run() {}\n");
    scratch.run(&["check", "broken.rs"]).exits(2).complains(
        "error[rust-error]: this function takes 0 arguments but 1 argument was supplied (E0061)
...
3 |     other::run(1);
...
",
    );
    scratch.run(&["check", "broken.rs", "--", "--emit", "asm"]).exits(2).complains(
        "error[compiler-argument]: broken.rs: rustc cannot be given `--emit asm`: its output is read
...
",
    );
    scratch.run(&["check", "broken.rs", "--int-range", "0..1"]).exits(2).complains(
        "error[c-option]: broken.rs: --int-range does not apply to Rust programs
...
",
    );
}

#[test]
fn a_compiler_that_is_not_there() {
    let scratch = Scratch::new("rust-no-rustc").file("a.rs", "fn main() {}\n");
    let ran = scratch.command(&["check", "a.rs"]).env("RUSTC", "/no/such/rustc").output().expect("it runs");
    crate::common::Ran::new(ran).exits(2).complains(
        "error[no-rustc]: a.rs: rustc is not installed, and Rust programs are read through it
...
",
    );
}

/// A witness and a certificate record what is needed to compile the program again.
#[test]
fn again() {
    let scratch = Scratch::new("rust-again").file("counter.rs", COUNTER);
    let unsafe_test = ["check", "-q", "counter.rs", "--test", "counts_too_early", "--witness", "run.json"];
    scratch.run(&unsafe_test).exits(1);
    scratch
        .run(&["replay", "-q", "run.json"])
        .exits(0)
        .prints("valid  run.json: the program panicked [..]\n");
    let safe = ["check", "-q", "counter.rs", "--test", "counts", "--certificate", "proof.json"];
    scratch.run(&safe).exits(0);
    scratch.run(&["certify", "-q", "proof.json"]).exits(0).prints("valid [..]\n");
    let hostile = scratch.read("run.json").replace("\"build\": {", "\"build\": {\"arguments\": [\"-Lx\"],");
    std::fs::write(scratch.path("hostile.json"), hostile).expect("a file can be written");
    let complaint = "[..]`-Lx`, which is not taken from a file\n...\n";
    scratch.run(&["replay", "hostile.json"]).exits(2).complains(complaint);
}

const TRAIT_OBJECT: &str = "use std::sync::Arc; use std::thread; trait Shape: Send + Sync { fn area(&self) -> u32; }
struct Square; struct Line(Box<u32>); impl Shape for Square { fn area(&self) -> u32 { 4 } }
impl Shape for Line { fn area(&self) -> u32 { *self.0 } }
fn area(index: u32) -> Arc<dyn Shape> { if index == 0 { Arc::new(Square) } else { Arc::new(Line(Box::new(3))) } }
fn main() { let (a, b) = (area(1), area(0)); let (c, d) = (a.clone(), b.clone());
let t = thread::spawn(move || (c.area(), d.area())); assert_eq!(t.join().unwrap(), (3, 4)); assert!(a.area() < b.area()); }";

const BOXED_CLOSURE: &str =
    "use std::sync::atomic::*; use std::thread; static X: AtomicU32 = AtomicU32::new(0);
fn main() { let mut n = 0; let f: Box<dyn FnMut() -> u32 + Send> = Box::new(move || { n += 1; n });
let g: Box<dyn FnOnce() + Send> = Box::new(|| X.store(1, Ordering::Relaxed));
let t = thread::spawn(move || { let mut f = f; g(); f() + f() }); assert_eq!(t.join().unwrap(), 3);
assert_eq!(X.load(Ordering::Relaxed), 1); }";

const LAZY_LOCK: &str =
    "use std::sync::*; use std::thread; static L: LazyLock<Mutex<u32>> = LazyLock::new(|| Mutex::new(3));
fn main() { let t = thread::spawn(|| *L.lock().unwrap() += 1); *L.lock().unwrap() += 1;
t.join().unwrap(); assert_eq!(*L.lock().unwrap(), 5); }";

/// Programs with all kinds of things from the library, each right or wrong.
#[test]
fn the_library() {
    let programs: [(&str, &str, &str); 26] = [
        // Functions in virtual tables.
        ("trait_object", "safe", TRAIT_OBJECT),
        ("trait_object_wrong", "unsafe", &TRAIT_OBJECT.replace("3, 4", "4, 4")),
        ("boxed_closure", "safe", BOXED_CLOSURE),
        ("boxed_closure_wrong", "unsafe", &BOXED_CLOSURE.replace("n += 1", "n += 2")),
        ("lazy_lock", "safe", LAZY_LOCK),
        ("lazy_lock_wrong", "unsafe", &LAZY_LOCK.replace("t.join().unwrap(); assert", "assert")),
        // A writer that waits keeps readers out.
        ("read_twice", "unsafe", "use std::sync::RwLock; use std::thread; static L: RwLock<u32> = RwLock::new(0);
fn main() { let t = thread::spawn(|| *L.write().unwrap() += 1); let a = L.read().unwrap(); let b = L.read().unwrap();
assert_eq!(*a, *b); drop(a); drop(b); t.join().unwrap(); }"),
        ("try_read", "unsafe", "use std::sync::RwLock; use std::thread; static L: RwLock<u32> = RwLock::new(0);
fn main() { let a = L.read().unwrap(); let t = thread::spawn(|| drop(L.write()));
drop(L.try_read().unwrap()); drop(a); t.join().unwrap(); }"),
        ("read_in_turn", "safe", "use std::sync::RwLock; use std::thread; static L: RwLock<u32> = RwLock::new(0);
fn main() { let t = thread::spawn(|| *L.write().unwrap() += 1); let a = *L.read().unwrap(); let b = *L.read().unwrap();
assert!(a <= b); let u = L.read().unwrap(); let v = L.try_write().is_err(); assert!(v); drop(u); t.join().unwrap(); }"),
        ("barrier", "safe", "use std::sync::atomic::*; use std::sync::Barrier; use std::thread;
static B: Barrier = Barrier::new(2); static X: AtomicU32 = AtomicU32::new(0);
fn main() { let t = thread::spawn(|| { X.store(1, Ordering::Relaxed); B.wait(); });
B.wait(); assert_eq!(X.load(Ordering::Relaxed), 1); t.join().unwrap(); }"),
        ("try_lock", "unsafe", "use std::sync::Mutex; use std::thread; static M: Mutex<u32> = Mutex::new(0);
fn main() { let t = thread::spawn(|| { drop(M.lock()); }); assert!(M.try_lock().is_ok()); t.join().unwrap(); }"),
        ("lazy", "safe", "use std::sync::LazyLock; use std::thread; static L: LazyLock<u32> = LazyLock::new(|| 5);
fn main() { let t = thread::spawn(|| *L); assert_eq!(*L, 5); assert_eq!(t.join().unwrap(), 5); }"),
        ("results", "safe", "use std::thread;
fn main() { let a = thread::spawn(|| [1u64, 2, 3]); assert_eq!(a.join().unwrap()[2], 3); }"),
        ("boxed", "safe", "use std::thread;
fn main() { let b = thread::spawn(|| Box::new(7u32)); assert_eq!(*b.join().unwrap(), 7); }"),
        ("scope_results", "safe", "use std::thread;
fn main() { let mut n = 1; let m = thread::scope(|s| { let h = s.spawn(|| 2); s.spawn(|| n += 1); h.join().unwrap() });
assert_eq!(n + m, 4); }"),
        ("printed", "unsafe", "use std::sync::atomic::*; static X: AtomicU32 = AtomicU32::new(0);
fn main() { println!(\"{} {:?}\", X.fetch_add(1, Ordering::Relaxed), dbg!(3)); eprintln!();
assert_eq!(X.load(Ordering::Relaxed), 0); }"),
        ("ids", "safe", "use std::thread;
fn main() { let me = thread::current().id(); let t = thread::spawn(move || assert!(thread::current().id() != me));
t.join().unwrap(); assert!(me == thread::current().id()); }"),
        ("exits", "safe", "fn main() { if std::thread::panicking() { panic!() } std::process::exit(3) }"),
        ("timeout", "safe", "use std::sync::*; use std::time::Duration; static M: Mutex<bool> = Mutex::new(false);
static C: Condvar = Condvar::new(); fn main() { let g = M.lock().unwrap();
let (g, r) = C.wait_timeout_while(g, Duration::from_millis(5), |ready| !*ready).unwrap();
assert!(r.timed_out() && !*g); }"),
        ("channel", "safe", "use std::sync::mpsc; use std::thread;
fn main() { let (s, r) = mpsc::channel(); let t = thread::spawn(move || { s.send(1u32).unwrap(); });
assert_eq!(r.recv(), Ok(1)); assert!(r.recv().is_err()); t.join().unwrap(); }"),
        ("open_channel", "unsafe", "use std::sync::mpsc; use std::thread;
fn main() { let (s, r) = mpsc::sync_channel(1); let other = s.clone();
let t = thread::spawn(move || { s.send(1u32).unwrap(); });
assert_eq!(r.iter().sum::<u32>(), 1); t.join().unwrap(); drop(other); }"),
        ("finished", "safe", "use std::sync::atomic::*; use std::thread; static X: AtomicU32 = AtomicU32::new(0);
fn main() { let t = thread::spawn(|| X.store(1, Ordering::Relaxed)); while !t.is_finished() { thread::yield_now(); }
assert_eq!(X.load(Ordering::Relaxed), 1); t.join().unwrap(); }"),
        ("unfinished", "unsafe", "use std::sync::atomic::*; use std::thread; static X: AtomicU32 = AtomicU32::new(0);
fn main() { let t = thread::spawn(|| X.store(1, Ordering::Relaxed)); assert!(t.is_finished()); t.join().unwrap(); }"),
        ("unwritten", "unsafe", "use std::mem::MaybeUninit;
fn main() { let c = std::thread::spawn(|| 1u32).join().unwrap();
let x: MaybeUninit<u32> = if c == 2 { MaybeUninit::new(5) } else { MaybeUninit::uninit() };
assert!(unsafe { x.assume_init() } != 7); }"),
        ("written", "safe", "use std::mem::MaybeUninit;
fn main() { let c = std::thread::spawn(|| 2u32).join().unwrap();
let x: MaybeUninit<u32> = if c == 2 { MaybeUninit::new(5) } else { MaybeUninit::uninit() };
assert!(unsafe { x.assume_init() } != 7); }"),
        ("unwritten_static", "unsafe", "use std::mem::MaybeUninit;
static mut X: MaybeUninit<u32> = MaybeUninit::uninit(); fn main() { assert!(unsafe { X.assume_init() } != 7); }"),
    ];
    let mut scratch = Scratch::new("rust-library");
    for (name, _, text) in &programs {
        scratch = scratch.file(&format!("{name}.rs"), text);
    }
    for (name, verdict, _) in &programs {
        let ran = scratch.run(&["check", "-q", &format!("{name}.rs")]);
        ran.exits(i32::from(*verdict == "unsafe")).prints(format!("{verdict}  {name}.rs: [..]\n"));
    }
}

/// What is precompiled and not modelled is refused by its name.
#[test]
fn what_is_not_followed() {
    let scratch = Scratch::new("rust-refused")
        .file("clock.rs", "fn main() {\n    let _ = std::time::Instant::now();\n}\n")
        .file("name.rs", "fn main() {\n    std::thread::current().name();\n}\n")
        .file("main.rs", "fn main() -> Result<(), String> {\n    Ok(())\n}\n");
    let returns = "`main` returns a value that is not followed";
    for (file, name) in
        [("clock.rs", "Instant"), ("name.rs", "std::thread::Thread::name"), ("main.rs", returns)]
    {
        let ran = scratch.run(&["check", file]);
        ran.exits(2).complains(format!("error[c-unsupported]: [..]{name}[..]\n...\n"));
    }
}
