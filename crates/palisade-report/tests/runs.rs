//! Programs, a shortest run that breaks each, and how it is reported.

use palisade_base::Source;
use palisade_memory::{Machine, Model, State};
use palisade_program::{Instantiation, lower};
use palisade_report::{Colour, LocalSteps, UNLIMITED, explain, svg, witness};
use palisade_syntax::{Language, parse};
use palisade_trace::Evidence;
use palisade_trace::{Run, replay};
use snapbox::str;
use std::collections::{HashMap, VecDeque};

/// A shortest run to a bad state, by breadth-first search over the trusted machine.
fn shortest_run(machine: Machine<'_>) -> Run {
    let mut parents: HashMap<State, Option<(State, palisade_memory::Step)>> = HashMap::new();
    let mut queue: VecDeque<State> = VecDeque::new();
    for state in machine.initial_states() {
        parents.insert(state.clone(), None);
        queue.push_back(state);
    }
    while let Some(mut state) = queue.pop_front() {
        if machine.violation(&state).is_some() {
            let mut steps = Vec::new();
            while let Some(Some((parent, step))) = parents.get(&state) {
                steps.push(*step);
                state = parent.clone();
            }
            steps.reverse();
            return Run { memory: state.memory.as_slice().to_vec(), steps };
        }
        for next in machine.successors(&state) {
            parents.entry(next.state.clone()).or_insert_with(|| {
                queue.push_back(next.state.clone());
                Some((state.clone(), next.step))
            });
        }
    }
    panic!("the program is safe");
}

fn with_evidence<T>(model: Model, text: &str, report: impl FnOnce(&Evidence<'_>) -> T) -> T {
    let source = Source::new("p.pal", text);
    let program = parse(Language::Pal, &source).expect("the program is well formed").program;
    let system = lower(&program, Instantiation { any: 2, every: None });
    let machine = Machine::new(&system, model);
    let run = shortest_run(machine);
    let replay = replay(machine, &run).expect("the run is a witness");
    report(&Evidence { source: &source, addresses: None, machine, run: &run, replay: &replay })
}

#[test]
fn sentences() {
    let check = |text: &str, expected: &str| {
        assert_eq!(with_evidence(Model::Tso, text, explain), expected, "{text}");
    };
    let two = "process P(i: 0..2) { a: skip; b: skip; }\n";
    check(&format!("{two}forbid P(0)@b;"), "P(0) is at b (line 2: forbid P(0)@b)");
    check(
        &format!("{two}forbid P(0)@b && P(2)@b;"),
        "P(0) and P(2) are both at b (line 2: forbid P(0)@b && P(2)@b)",
    );
    check(
        &format!("{two}forbid P(0)@b && P(1)@end && P(2)@b;"),
        "P(0) and P(2) are both at b and P(1) is at end (line 2: forbid P(0)@b && P(1)@end && P(2)@b)",
    );
    check(
        &format!("{two}forbid count(P@b) >= 3;"),
        "P(0), P(1) and P(2) are all at b (line 2: forbid count(P@b) >= 3)",
    );
    check(&format!("{two}forbid count(P@b) == 0;"), "no process is at b (line 2: forbid count(P@b) == 0)");
    check(
        &format!("{two}forbid P(1)@b && (P(0)@b || !P(0)@a);"),
        "P(1) and P(0) are both at b (line 2: forbid P(1)@b && (P(0)@b || !P(0)@a))",
    );
    check(&format!("{two}forbid !P(0)@a;"), "P(0) is not at a (line 2: forbid !P(0)@a)");
    let store = "shared x: 0..3;\nprocess P { let r = 2; x = r + 1; }\n";
    check(&format!("{store}forbid x >= 2;"), "x = 3 (line 3: forbid x >= 2)");
    check(
        &format!("{store}final !(x == 3 && P.r == 2);"),
        "at the end, x = 3 and P.r = 2 (line 3: final !(x == 3 && P.r == 2))",
    );
    check(&format!("{store}final x < P.r;"), "at the end, x = 3 and P.r = 2 (line 3: final x < P.r)");
    check("process P { let r = 3;\n  assert(r < 3); }", "assertion failed in P at line 2: assert(r < 3)");
    check(
        "shared a[2];\nprocess Main { spawn Q(1); spawn Q(1); }\nprocess Q(i: 0..1) on spawn { a[i + fetch_add(a[i], 1)] = 0; }",
        "array index 2 is out of bounds in Q(1)#2 at line 3: a[i + fetch_add(a[i], 1)] = 0",
    );
}

#[test]
fn every_kind_of_step() {
    let text = "\
shared x, y, lock: 0..3;

process Main {
    x = 1;
    sfence;
    y = any(2..3);
    spawn Helper(1);
    atomic { lock = 1; let r = lock; }
    done: skip;
}

process Helper(i: 0..1) on spawn {
    await cas(lock, 1, 2);
    fence;
    let s = twice(i);
    assert(s != 2 || y != 3);
}

proc twice(a) -> int {
    return a + a;
}
";
    let table =
        with_evidence(Model::Pso, text, |evidence| witness(evidence, LocalSteps::Shown, 120, Colour::Never));
    snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV).eq(
        table,
        str![[r#"
step   process    line  instruction                effect            buffer Main  memory x  y  lock
   0                    (start)                                                          0  0     0
   1   Main          4  x = 1;                     store x = 1       x=1                 0  0     0
   2   Main             (store of step 1)          x = 1 to memory                       1  0     0
   3   Main          5  sfence;                    sfence                                1  0     0
   4   Main          6  any(2..3)                  chose 3                               1  0     0
   5   Main          6  y = any(2..3);             store y = 3       y=3                 1  0     0
   6   Main             (store of step 5)          y = 3 to memory                       1  3     0
   7   Main          7  spawn Helper(1);           start Helper(1)                       1  3     0
   8   Main          8  atomic                     atomic begins                         1  3     0
   9   Main          8  lock = 1;                  write lock = 1                        1  3     1
  10   Main          8  let r = lock;              read lock = 1                         1  3     1
  11   Main          8  atomic                     atomic ends                           1  3     1
  12   Helper(1)    13  cas(lock, 1, 2)            lock: 1 -> 2                          1  3     2
  13   Helper(1)    13  await cas(lock, 1, 2);                                           1  3     2
  14   Helper(1)    14  fence;                     fence                                 1  3     2
  15   Helper(1)    15  let s = twice(i);          enter twice                           1  3     2
  16   Helper(1)    20  return a + a;              return                                1  3     2
  17   Helper(1)    16  assert(s != 2 || y != 3);                                        1  3     2
  18   Helper(1)    16  y                          read y = 3                            1  3     2
  19   Helper(1)    16  assert(s != 2 || y != 3);                                        1  3     2
  20   Helper(1)    16  assert(s != 2 || y != 3);  assertion failed                      1  3     2

"#]],
    );
}

#[test]
fn stores_out_of_order() {
    let text = "\
shared data, ready: 0..1;
process Writer { data = 1; ready = 1; }
process Reader { await ready == 1; got: assert(data == 1); }
";
    let table =
        with_evidence(Model::Pso, text, |evidence| witness(evidence, LocalSteps::Folded, 120, Colour::Never));
    snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV).eq(
        table,
        str![[r#"
step   process  line  instruction         effect               buffer Writer   memory data  ready
   0                  (start)                                                            0      0
   1   Writer      2  data = 1;           store data = 1       data=1                    0      0
   2   Writer      2  ready = 1;          store ready = 1      data=1 ready=1            0      0
   3*  Writer         (store of step 2)   ready = 1 to memory  data=1                    0      1
   4   Reader      3  ready               read ready = 1       data=1                    0      1
   6   Reader      3  data                read data = 0        data=1                    0      1
   7   Reader      3  assert(data == 1);  assertion failed     data=1                    0      1

* step 3: Writer's store to ready reaches memory while its store from step 1 is still in the buffer

1 local step not shown (-v shows all)

"#]],
    );
}

#[test]
fn wide_tables_are_made_narrow() {
    let text = "\
shared a_variable_with_a_long_name[4]: 0..3;
process P(i: 0..3) {
    a_variable_with_a_long_name[i] = i;
    a_variable_with_a_long_name[3 - i] = a_variable_with_a_long_name[i] + a_variable_with_a_long_name[(i + 1) % 4] - i;
}
forbid P(0)@end && P(3)@end && a_variable_with_a_long_name[0] == 3;
";
    with_evidence(Model::Tso, text, |evidence| {
        for width in [60, 100, 120, 160] {
            let table = witness(evidence, LocalSteps::Folded, width, Colour::Never);
            let widest = table.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width.max(120), "{widest} columns:\n{table}");
            assert!(table.lines().next().is_some_and(|heading| heading.contains("instruction")));
        }
    });
}

#[test]
fn what_matters_is_not_cut() {
    // Eleven local steps, so that the store has a number of two digits.
    let text = "\
shared a_variable_with_a_long_name, another_variable_with_a_long_name: 0..3;
process P {
    let r: 0..20 = 0;
    r = 1; r = 2; r = 3; r = 4; r = 5; r = 6; r = 7; r = 8; r = 9; r = 10; r = 11;
    a_variable_with_a_long_name = another_variable_with_a_long_name + another_variable_with_a_long_name + 1;
    fence;
    assert(another_variable_with_a_long_name == 1);
}
";
    with_evidence(Model::Tso, text, |evidence| {
        let table = |width| witness(evidence, LocalSteps::Folded, width, Colour::Never);
        for width in [40, 80, 100] {
            let table = table(width);
            assert!(table.contains("(step 14)") && !table.contains("(store of step 1…"), "{width}:\n{table}");
        }
        let whole = table(UNLIMITED);
        assert!(!whole.contains('…') && whole.contains("(store of step 14)"), "{whole}");
        let source = "a_variable_with_a_long_name = another_variable_with_a_long_name + another_variable_with_a_long_name + 1;";
        assert!(whole.contains(source), "{whole}");
    });
}

#[test]
fn pictures_say_what_they_leave_out() {
    let text = "shared x: 0..1;\nprocess P { let a = 1; let b = a + 1; x = 1; let c = b; }\nfinal x == 0;\n";
    let drawn = with_evidence(Model::Tso, text, |evidence| svg::run(evidence).expect("it is small"));
    assert!(drawn.contains("local steps are left out."), "{drawn}");
    let text = "shared x: 0..1;\nprocess P { x = 1; }\nfinal x == 0;\n";
    let drawn = with_evidence(Model::Sc, text, |evidence| svg::run(evidence).expect("it is small"));
    assert!(!drawn.contains("left out"), "{drawn}");
}

/// The number after a letter of a path.
fn coordinate(path: &str, letter: char) -> usize {
    let (_, after) = path.split_once(letter).expect("the path has this part");
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..end].parse().expect("a number")
}

#[test]
fn pictures_of_programs_keep_distances() {
    let condition = "first_name + 1 == second_name || first_name == second_name + 1 || second_name == 2";
    let text = format!(
        "shared x: 0..2;\nprocess P {{\n    let first_name = x;\n    let second_name = x;\n    loop {{ if {condition} {{ x = 1; }} x = 2; }}\n}}\n"
    );
    let source = Source::new("p.pal", text);
    let program = parse(Language::Pal, &source).expect("the program is well formed").program;
    let system = lower(&program, Instantiation { any: 2, every: None });
    let drawn = svg::program("p.pal", &system).expect("it is small");
    // What is cut off is in a title.
    assert!(drawn.contains('…') && drawn.contains("|| second_name == 2)</title>"), "{drawn}");
    let bottom: usize = {
        let (_, lane) = drawn.split_once("<rect class=\"lane\"").expect("a lane");
        let (_, height) = lane.split_once("height=\"").expect("its height");
        height[..height.find('"').expect("the end")].parse().expect("a number")
    };
    let lines: Vec<&str> = drawn.lines().collect();
    let mut jumps = 0;
    for (line, next) in lines.iter().zip(&lines[1..]) {
        let Some(path) = line.strip_prefix("<path class=\"edge\" d=\"") else { continue };
        let end = coordinate(path, 'V');
        assert!(end + 8 < bottom, "{path} is too close to the border at {bottom}");
        if path[..path.find('"').expect("the end")].contains('H') {
            let (_, place) = next.split_once("y=\"").expect("its text is next");
            let baseline: usize = place[..place.find('"').expect("the end")].parse().expect("a number");
            assert!(end >= baseline + 6, "{path} touches its text at {baseline}");
            jumps += 1;
        }
    }
    assert!(jumps >= 2, "{drawn}");
}
