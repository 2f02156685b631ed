//! The paper's examples, and the monitors' reports on executions given as text.

use palisade_memory::{Interlocked, Model};
use palisade_monitor::{Monitor, TraceReader};

/// Violations as `model: store, prev, access`, in the order in which they are seen.
fn monitor(trace: &str, interlocked: Interlocked) -> Vec<String> {
    let mut reader = TraceReader::new(trace.as_bytes()).expect("memory can be read");
    let mut monitor = Monitor::new(interlocked);
    reader.read(|event| monitor.take(event)).expect("the trace is well formed");
    let name = |instruction| reader.instructions().name(instruction);
    let describe = |v: palisade_monitor::Violation, count: u64| {
        let times = if count == 1 { String::new() } else { format!(" ×{count}") };
        format!("{}: {}, {}, {}{times}", v.model.name(), name(v.store), name(v.previous), name(v.access))
    };
    monitor
        .violations()
        .sorted()
        .into_iter()
        .map(|(violation, seen)| describe(violation, seen.count))
        .collect()
}

fn check(trace: &str, expected: &[&str]) {
    for interlocked in [Interlocked::WholeBuffer, Interlocked::OwnAddress] {
        assert_eq!(monitor(trace, interlocked), expected, "{interlocked:?}\n{trace}");
    }
}

/// The run of section 4. SOBER reports nothing on any execution of the program of Figure 6.
#[test]
fn figure_6_shows_a_violation() {
    check(
        "p1 store a l1\np1 load a l2\np1 load b l3\np2 store b l4\np2 store a l5",
        &["tso: l1, l4, l5", "pso: l1, l4, l5"],
    );
    // The rest of the program changes nothing.
    check(
        "p1 store a l1\np1 load a l2\np1 load b l3\np2 store b l4\np2 store a l5\np2 lock c l6\np2 load a l7",
        &["tso: l1, l4, l5", "pso: l1, l4, l5"],
    );
}

#[test]
fn figure_8_is_seen_on_another_execution() {
    check("p1 store a l1\np1 load b l2\np2 store a l3\np3 store b l4\np3 load a l5", &[]);
    check(
        "p1 store a l1\np1 load b l2\np3 store b l4\np3 load a l5\np2 store a l3",
        &["tso: l1, l4, l5", "pso: l1, l4, l5"],
    );
}

#[test]
fn store_buffering() {
    let both = &["tso: x=1, y=1, r=x", "pso: x=1, y=1, r=x"];
    check("p store x x=1\np load y r=y\nq store y y=1\nq load x r=x", both);
    // One fence is not enough, wherever it is; two are.
    check("p store x x=1\np load y r=y\nq store y y=1\nq fence f\nq load x r=x", both);
    check("p store x x=1\np fence f\np load y r=y\nq store y y=1\nq load x r=x", &[]);
    check(
        "q store y y=1\nq load x r=x\np store x x=1\np fence f\np load y r=y",
        &["tso: y=1, x=1, r=y", "pso: y=1, x=1, r=y"],
    );
    // A store-store fence does not help.
    check("p store x x=1\np sfence f\np load y r=y\nq store y y=1\nq load x r=x", both);
}

#[test]
fn message_passing_breaks_under_pso_only() {
    let trace = "p store data d=1\np store flag f=1\nq load flag r=f\nq load data r=d";
    check(trace, &["pso: d=1, r=f, r=d"]);
    check(&trace.replace("p store flag", "p sfence s\np store flag"), &[]);
    check(&trace.replace("p store flag", "p fence s\np store flag"), &[]);
}

/// The paper's PSO drains only the address of an interlocked operation, so that a spin lock's critical
/// section is not protected.
#[test]
fn what_locked_instructions_wait_for() {
    let trace = "p store data d=1\np lock flag f=1\nq load flag r=f\nq load data r=d";
    assert_eq!(monitor(trace, Interlocked::WholeBuffer), [""; 0]);
    assert_eq!(monitor(trace, Interlocked::OwnAddress), ["pso: d=1, r=f, r=d"]);
    let fenced = trace.replace("p lock", "p sfence s\np lock");
    assert_eq!(monitor(&fenced, Interlocked::OwnAddress), [""; 0]);
    // Its own store reaches memory at once, and so do the pending stores to its address.
    let own = "p store data d=1\np lock data d=2\np store flag f=1\nq load flag r=f\nq load data r=d";
    assert_eq!(monitor(own, Interlocked::OwnAddress), [""; 0]);
    let failed = "p store data d=1\np lock-load data cas\np store flag f=1\nq load flag r=f\nq load data r=d";
    assert_eq!(monitor(failed, Interlocked::OwnAddress), [""; 0]);
    assert_eq!(
        monitor(&failed.replace("lock-load", "load"), Interlocked::OwnAddress),
        ["pso: d=1, r=f, r=d"]
    );
}

/// The paper's monitors look at executions in the order in which they ran: here the load of a third process
/// makes them drain the store. The two executions are the same partial order, so a search that runs each
/// partial order once could miss the violation. Ours see it on both.
#[test]
fn the_order_of_independent_events_does_not_matter() {
    let both = &["tso: x=1, y=1, r=x", "pso: x=1, y=1, r=x"];
    check("p store x x=1\np load y r=y\nq store y y=1\nq load x r=x\nt load x t=x", both);
    check("p store x x=1\np load y r=y\nt load x t=x\nq store y y=1\nq load x r=x", both);
    // Under TSO a load of a younger store drains the older ones with it.
    let both = &["tso: x=1, y=1, r=x", "pso: x=1, y=1, r=x"];
    check("p store x x=1\np store z z=1\np load y r=y\nt load z t=z\nq store y y=1\nq load x r=x", both);
}

#[test]
fn starting_and_joining_processes() {
    // The child sees what its parent stored before, because starting a process drains the buffer. A spawn in
    // a model program does not.
    check("p store x x=1\np start q go\nq load x r=x", &[]);
    check("p store x x=1\np spawn q go\nq load x r=x", &["tso: x=1, go, r=x", "pso: x=1, go, r=x"]);
    check("p start q go\nq store x x=1\np join q wait\np load x r=x", &[]);
    // A third process's store may be pending.
    check(
        "p store x x=1\np load y r=y\nm store y y=1\nm start q go\nq load x r=x",
        &["tso: x=1, go, r=x", "pso: x=1, go, r=x"],
    );
}

#[test]
fn accesses_of_different_sizes() {
    let trace = |p: &str, q: &str| format!("p store x{p} x=1\np load y r=y\nq store y y=1\nq load x{q} r=x");
    let both = &["tso: x=1, y=1, r=x", "pso: x=1, y=1, r=x"];
    for (p, q) in [("/8", "/8"), ("/8", "+4/4"), ("+3/2", "/4"), ("+4/8", "/16"), ("/64", "+63/1")] {
        check(&trace(p, q), both);
    }
    for (p, q) in [("/4", "+4/4"), ("+3/1", "/2"), ("+8/8", "/8")] {
        check(&trace(p, q), &[]);
    }
}

#[test]
fn violations_are_counted() {
    let round = "p store x x=1\np load y r=y\nq store y y=1\nq load x r=x\nq fence\np fence\n";
    let seen = monitor(&round.repeat(3), Interlocked::WholeBuffer);
    assert!(seen.contains(&"tso: x=1, y=1, r=x ×3".to_owned()), "{seen:?}");
}

#[test]
fn freed_memory_is_new_when_it_is_used_again() {
    check("p store x x=1\np load y r=y\nq store y y=1\np free x\nq load x r=x", &[]);
    check("p store x/8 x=1\np load y r=y\nq store y y=1\np free x/4\nq load x/4 r=x", &[]);
    check(
        "p store x/8 x=1\np load y r=y\nq store y y=1\np free x/4\nq load x/8 r=x",
        &["tso: x=1, y=1, r=x", "pso: x=1, y=1, r=x"],
    );
}

#[test]
fn models_are_distinguished() {
    let seen = monitor("p store a l1\np store b l2\nq load b l3\nq load a l4", Interlocked::WholeBuffer);
    assert_eq!(seen, ["pso: l1, l3, l4"]);
    assert_eq!(Model::Pso.name(), "pso");
}
