//! Processes with identities: what they are read as, and what is refused.

use palisade_base::Source;
use palisade_program::print::print;
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
}
