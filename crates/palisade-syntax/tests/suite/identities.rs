//! Processes with identities: what they are read as, and what is refused.

use palisade_base::Source;
use palisade_program::print::print;
use palisade_program::running::Instr;
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};

fn program(text: &str) -> Program {
    let source = Source::new("test.pal", text);
    parse(Language::Pal, &source).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}")).program
}

const LOCK: &str = "\
shared flag[id]: bool;
shared turn: id or none = none;

process P(me: id)[*] {
    let seen: id or none = turn;
    for other in others {
        if other == seen {
            break;
        }
        await !flag[other];
    }
    turn = me;
}

forbid count(P@end) >= 2 && turn == none;
";

#[test]
fn a_number_gives_an_ordinary_program() {
    let open = program(LOCK);
    assert!(open.has_open_identities());
    for number in 1..=4 {
        let fixed = open.with_identities(number);
        assert!(!fixed.has_open_identities());
        assert_eq!(program(&LOCK.replace("[*]", &format!("[{number}]"))), fixed);
        assert_eq!(fixed.with_identities(2), open.with_identities(2));
        let system = lower(&open, Instantiation::declared(number));
        assert_eq!(system.instances.len(), number as usize);
        assert_eq!(system.cells.len(), number as usize + 2);
        let again = lower(&fixed, Instantiation { any: 1, every: Some(number) });
        assert_eq!(format!("{again:?}"), format!("{system:?}"));
    }
}

#[test]
fn programs_are_printed_as_they_are_written() {
    let open = program(LOCK);
    assert_eq!(program(&print(&open)), open);
    assert!(print(&open).contains("for other in others {"), "{}", print(&open));
    let fixed = open.with_identities(3);
    assert_eq!(program(&print(&fixed)), fixed);
    assert!(print(&fixed).contains("process P(me: id)[3] {"), "{}", print(&fixed));
}

/// `*` is any identity, whatever their number is. Numbers are those that the program says.
#[test]
fn numbers_that_are_chosen_stay_as_they_are() {
    let text = |choice: &str| {
        format!(
            "shared turn: id or none;\n\nprocess P(me: id)[*] {{\n    let t: id or none = {choice};\n    turn = t;\n}}\n"
        )
    };
    for (choice, with_five) in [("*", 5), ("any(0..2)", 2), ("any(0..1)", 1)] {
        let open = program(&text(choice));
        assert_eq!(print(&open), text(choice));
        let five = print(&open.with_identities(5));
        assert!(five.contains(&format!("= {choice};")), "{five}");
        let system = lower(&open, Instantiation::declared(5));
        let edges = system.codes.iter().flat_map(|code| code.edges().iter());
        let chosen = edges.filter(|edge| matches!(edge.instr, Instr::Havoc(_, 0, last) if last == with_five));
        assert_eq!(chosen.count(), 5, "{choice}");
    }
}

/// `--threads N` is about N processes of each kind of which there is any number, and about those that are declared.
#[test]
fn processes_beside_those_with_identities() {
    let open = program("process P(me: id)[*] { skip; } process Q[*] { skip; } process R { skip; }");
    for number in 1..=3 {
        let program = open.with_identities(number);
        let system = lower(&program, Instantiation { any: 1, every: Some(number) });
        assert_eq!(system.instances.len(), 2 * number as usize + 1);
    }
}

#[test]
fn the_words_can_be_names() {
    program("shared id, none, others: 0..3; process P { id = none + others; }");
    program("enum id { a, b } shared x: id; process P(i: id) { x = i; }");
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let errors = parse(Language::Pal, &Source::new("test.pal", text)).map(|_| ()).unwrap_err();
    let found: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert!(errors.iter().any(|error| error.id == "bad-identity"), "{found:?}");
    assert!(found.iter().any(|found| found.contains(message)), "{found:?}");
}

/// The number of processes is checked before the program is written out for it.
#[test]
fn too_many_processes() {
    for (count, total) in [(257, 257), (3_000_000_000u32, 3_000_000_000u64), (u32::MAX, u32::MAX.into())] {
        for (others, more) in [("", 0), ("process Q[3] { skip; } process R on spawn { skip; }", 3)] {
            let text =
                format!("shared flag[id]: bool; {others} process P(me: id)[{count}] {{ flag[me] = true; }}");
            let errors = parse(Language::Pal, &Source::new("test.pal", text)).map(|_| ()).unwrap_err();
            let [error] = &errors[..] else { panic!("{errors:?}") };
            assert_eq!(error.id, "too-many-processes");
            let message = format!("the program starts {} processes; the limit is 256", total + more);
            assert_eq!(error.message, message);
        }
    }
    program("process P(me: id)[256] { skip; }");
}

#[test]
fn what_is_refused() {
    refused("shared x: id; process P(me: id)[*] { skip; }", "does not always hold an identity");
    refused("shared x: id or none; process P { skip; }", "no process has an identity");
    refused("process P(me: id, i: 0..1)[*] { skip; }", "no other parameters");
    refused("process P(me: id)[*] on spawn { skip; }", "from the start");
    refused("process P(me: id)[0] { skip; }", "at least one");
    refused("process P(me: id)[*] { skip; } process Q(me: id)[*] { skip; }", "only one process");
    refused("shared f[id][2]: bool; process P(me: id)[*] { skip; }", "no other dimension");
    refused("shared f[id]: bool = [1, 0]; process P(me: id)[*] { skip; }", "the same initial value");
    refused("process P(me: id)[*] { let x: 0..9 = any(id or none); }", "does not choose");
    let flags = "shared f[id]: bool; process P(me: id)[*] { f[me] = true; }";
    refused(&format!("{flags} forbid f[2];"), "the number of processes is open");
    refused(&format!("{flags} forbid f[1] && count(P@end) >= 1;"), "the number of processes is open");
    program(&format!("{flags} forbid f[none];"));
    program(&format!("{} forbid f[2];", flags.replace("[*]", "[2]")));
}

/// How many identities a step involves: that of the process, those in registers, and those that an expression holds. An
/// atomic block is one step.
#[test]
fn identities_that_a_step_involves() {
    let known = |body: &str| {
        let start = "shared flag[id]: bool; shared x, y, z: id or none; process P(me: id)[*] {";
        program(&format!("{start} {body} }}")).identities_are_names()
    };
    for (body, expected) in [
        ("skip;", 1),
        ("x = none;", 1),
        ("x = me;", 2),
        ("await x == none;", 2),
        ("await x == y;", 3),
        ("await x == none || y == none && z != none;", 2),
        ("let a: id or none = x; await flag[a];", 3),
        ("for other in others { await !flag[other]; }", 3),
        ("atomic { if x == none || y == none && z != none { skip; } }", 4),
        ("atomic { if x == none { x = y; } z = none; }", 3),
        ("let a: id or none = none; atomic { a = x; a = y; a = z; }", 5),
        // With many registers, what is chosen and forgotten between two steps differs from what is held at both.
        ("let a: id or none = *; let b: id or none = *; let c: id or none = *;", 5),
        ("let a: id or none = *; let b: id or none = *; let c: id or none = *; let d: id or none = *;", 7),
    ] {
        assert_eq!(known(body), Ok(expected), "{body}");
    }
    for body in
        ["assert(me < 2);", "assert(x != 1);", "x = 1;", "atomic { await x == none; while x == y {} }"]
    {
        assert!(known(body).is_err(), "{body}");
    }
}
