//! Both forms of traces: events are read back as they were written, and no input makes the reader panic.

use palisade_conformance::random::Random;
use palisade_monitor::{
    Access, Action, BinaryWriter, Bytes, Ending, Event, Instruction, Process, TextWriter, TraceError,
    TraceReader,
};

fn read(bytes: &[u8]) -> (Vec<(Event, String)>, Result<Ending, TraceError>) {
    let mut reader = TraceReader::new(bytes).expect("memory can be read");
    let mut events = Vec::new();
    let result = reader.read(|event| events.push(*event));
    let name = |event: Event| (event, reader.instructions().name(event.instruction).to_owned());
    (events.into_iter().map(name).collect(), result)
}

/// One event of each kind, with numbers of all lengths.
fn samples() -> Vec<Event> {
    let bytes = |address, size| Bytes::new(address, size).expect("a good range");
    let actions = [
        Action::Access(Access::Load, bytes(0x10, 1)),
        Action::Access(Access::Store, bytes(0x7fff_1234_5678, 8)),
        Action::Access(Access::Locked, bytes(0, 4)),
        Action::Access(Access::LockedLoad, bytes(0xEFFF_FFFF_FFFF_FF00, 64)),
        Action::Access(Access::Load, bytes(300, 3)),
        Action::Fence,
        Action::StoreFence,
        Action::Spawn(Process(4000)),
        Action::Start(Process(1)),
        Action::Join(Process(200)),
        Action::Free { address: 1 << 40, size: 1 << 33 },
    ];
    let event = |(index, action)| Event {
        process: Process([0, 7, 300, 4095][index % 4]),
        instruction: Instruction([0, 1, 299][index % 3]),
        action,
    };
    actions.into_iter().enumerate().map(event).collect()
}

fn binary(events: &[Event]) -> Vec<u8> {
    let mut writer = BinaryWriter::new(Vec::new()).expect("memory can be written");
    for number in 0..300 {
        writer.instruction(&format!("file.c:{number}")).expect("memory can be written");
    }
    events.iter().for_each(|event| writer.event(event).expect("memory can be written"));
    writer.finish().expect("memory can be written")
}

#[test]
fn binary_traces_are_read_as_they_were_written() {
    let (events, result) = read(&binary(&samples()));
    result.expect("well formed");
    for ((event, name), sample) in events.iter().zip(samples()) {
        assert_eq!(*event, sample);
        assert_eq!(*name, format!("file.c:{}", sample.instruction.0));
    }
    assert_eq!(events.len(), samples().len());
}

#[test]
fn text_traces_are_read_as_they_were_written() {
    let mut writer = TextWriter::new(Vec::new()).expect("memory can be written");
    for (index, event) in samples().iter().enumerate() {
        writer.event(event, ["a.c:1  x = 1", "", "b.c"][index % 3]).expect("memory can be written");
    }
    let text = writer.finish().expect("memory can be written");
    let (events, result) = read(&text);
    result.expect("well formed");
    // Processes are numbered in the order of their first event. Names of instructions are kept.
    for (index, ((event, name), sample)) in events.iter().zip(samples()).enumerate() {
        let expected = ["a.c:1 x = 1".to_owned(), format!("event on line {}", index + 2), "b.c".to_owned()];
        assert_eq!(*name, expected[index % 3]);
        match (event.action, sample.action) {
            (Action::Spawn(_), Action::Spawn(_)) | (Action::Start(_), Action::Start(_)) => {}
            (Action::Join(_), Action::Join(_)) => {}
            (action, expected) => assert_eq!(action, expected),
        }
    }
    assert_eq!(events.len(), samples().len());
}

#[test]
fn a_binary_trace_that_is_cut_off_anywhere_is_recognised() {
    let whole = binary(&samples());
    for length in 0..whole.len() {
        let (events, result) = read(&whole[..length]);
        if length < 9 {
            // The magic word is incomplete, so the input counts as text. An empty input is an empty text
            // without an end mark.
            assert!(result.is_err() || matches!((length, &result), (0, Ok(Ending::Unmarked))), "{length}");
        } else {
            assert!(matches!(result, Err(TraceError::CutOff)), "{length}: {result:?}");
        }
        assert!(events.len() <= samples().len());
        assert!(events.iter().map(|(event, _)| *event).eq(samples().into_iter().take(events.len())));
    }
}

#[test]
fn a_text_trace_that_is_cut_off_is_recognised() {
    let check = |text: &str, events: usize, cut: bool| {
        let (read, result) = read(text.as_bytes());
        assert_eq!(read.len(), events, "{text}");
        assert_eq!(matches!(result, Err(TraceError::CutOff)), cut, "{text}: {result:?}");
        assert_eq!(result.is_ok(), !cut, "{text}");
    };
    check("palisade trace 1\np load x\nend\n", 1, false);
    check("palisade trace 1\np load x\nend", 1, true);
    check("palisade trace 1\np load x\n", 1, true);
    check("palisade trace 1\np load x\nq lo", 1, true);
    check("palisade trace 1\n", 0, true);
    check("", 0, false);
    check("# nothing\n\n", 0, false);
    check("p load x", 1, false);
    // Half an event is not an event.
    check("palisade trace 1\np load x\nq load xy", 1, true);
    // The beginning of a process's name looks like the end mark.
    check("palisade trace 1\np load x\nend1 load x\n", 2, true);
    check("palisade trace 1\nend1 load x\nend", 1, true);
    check("palisade trace 1\nend1 load x\nend\n", 1, false);
}

#[test]
fn only_a_text_trace_with_an_end_mark_is_known_to_be_complete() {
    for start in ["", "palisade trace 1\n"] {
        let whole = format!("{start}p store x a.c:1\nq load flag b.c:2\n# done\nend\n# more\n");
        let marked = whole.find("end").expect("there is an end mark") + "end\n".len();
        for length in 0..=whole.len() {
            let (_, result) = read(&whole.as_bytes()[..length]);
            let is_marked = matches!(result, Ok(Ending::Marked));
            assert_eq!(is_marked, length >= marked, "{:?}: {result:?}", &whole[..length]);
        }
    }
}

#[test]
fn errors_in_text_traces() {
    let check = |text: &str, expected: &str| {
        let error = read(text.as_bytes()).1.expect_err(text);
        assert_eq!(error.to_string(), expected);
    };
    check("p", "line 1: the operation is missing");
    check("\np jump x", "line 2: unknown operation `jump`");
    check("p load", "line 1: the address is missing");
    check("p load x/0", "line 1: `x/0` is not a valid range of 1 to 64 bytes");
    check("p load x/65", "line 1: `x/65` is not a valid range of 1 to 64 bytes");
    check("p load x/a", "line 1: `a` is not a number of bytes");
    check("p load 12z", "line 1: `12z` is not an address below 0xf000000000000000");
    check(
        "p load 0xf000000000000000",
        "line 1: `0xf000000000000000` is not an address below 0xf000000000000000",
    );
    check("p load x+q", "line 1: `x+q`: the offset is not a number below 2147483648");
    check("p start", "line 1: the name of a process is missing");
    check("p join p", "line 1: a process cannot join itself");
    check("p load x\nend\nq load x", "line 3: there is more text after the end mark");
    let long = format!("p load x {}", "x".repeat(70_000));
    check(&long, "line 1: the line is longer than 65536 bytes");
}

#[test]
fn errors_in_binary_traces() {
    let check = |records: &[u8], expected: &str| {
        let mut bytes = b"PALTRACE\x01".to_vec();
        bytes.extend_from_slice(records);
        assert_eq!(read(&bytes).1.expect_err(expected).to_string(), expected);
    };
    check(&[11], "byte 9: unknown kind of record: 11");
    check(&[0x30, 0, 0, 2], "byte 9: instruction 0 has not been named");
    check(
        &[10, 1, b'a', 0x30, 0x80, 0x40, 0, 2],
        "byte 12: process number 8192 is too large; it must be below 4096",
    );
    check(&[10, 1, 0xff], "byte 9: the name of an instruction is not UTF-8");
    check(&[10, 0x80, 0x80, 1], "byte 9: the name of an instruction has 16384 bytes; the limit is 4096");
    check(&[10, 1, b'a', 0xf0, 0, 0, 2, 0], "byte 12: invalid access to 0 bytes at 0x1");
    check(&[10, 1, b'a', 0x30, 0, 0, 1], "byte 12: invalid access to 8 bytes at 0xffffffffffffffff");
    check(&[10, 1, b'a', 7, 3, 0, 3], "byte 12: process 3 starts or joins itself");
    check(&[15, 2], "byte 9: the end mark counts 2 events, but the trace has 0");
    check(&[15, 0, 0], "byte 9: there is more data after the end mark");
    check(
        &[15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        "byte 9: a number does not fit into 64 bits",
    );
    check(&[], "the trace is cut off: it ends without its end mark");
}

#[test]
fn no_input_makes_the_reader_panic() {
    let mut random = Random::new(1);
    let whole = binary(&samples());
    let text = b"palisade trace 1\np load x+1/2 a.c:1\nq store 0x10 b\np start q\nq free x/9\nend\n".to_vec();
    for _ in 0..20_000 {
        for good in [&whole, &text] {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            let mut monitor = palisade_monitor::Monitor::new(Default::default());
            let mut reader = TraceReader::new(&bytes[..]).expect("memory can be read");
            let _ = reader.read(|event| monitor.take(event));
        }
    }
}
