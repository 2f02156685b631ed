//! Whatever its input, the binary neither panics nor hangs: programs in all languages, witnesses,
//! certificates, traces, requests.
//!
//! A test run tries several thousand cases of each kind. `PALISADE_SEEDS=1000000` tries a million.

mod mutate;

use mutate::{Random, spoil_number, spoiled};
use palisade::certificate::Certificate;
use palisade::monitor::{BinaryWriter, Monitor, TraceReader};
use palisade::program::{Instantiation, lower};
use palisade::trace::{WitnessFile, text_hash};
use palisade::{
    CheckOptions, EngineChoice, Input, Interlocked, Language, Limits, Model, Source, Verdict, check_simply,
};
use palisade_conformance::seeds;
use palisade_serve::http::{Parsed, parse};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A case that takes longer than this counts as hanging.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tries a number of cases, and reports which one panics or hangs.
fn hammer(
    inputs: &[&[u8]],
    words: &[&str],
    spoil: fn(&mut Vec<u8>, &mut Random),
    target: impl Fn(&[u8]) + Send + 'static,
) {
    let cases = seeds(3000).starting_at(1);
    let inputs: Vec<Vec<u8>> = inputs.iter().map(|input| input.to_vec()).collect();
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let (done, tried) = mpsc::channel::<(u64, Result<(), String>)>();
    // Not a scoped thread: a thread that hangs is abandoned, and the other tests continue.
    std::thread::spawn(move || {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for case in cases {
            let mut random = Random::new(case);
            let mut input = spoiled(&inputs, &words, &mut random);
            spoil(&mut input, &mut random);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&input)))
                .map_err(|_| String::from_utf8_lossy(&input).into_owned());
            if done.send((case, outcome)).is_err() {
                return;
            }
        }
    });
    let mut last = None;
    loop {
        match tried.recv_timeout(PATIENCE) {
            Ok((case, Ok(()))) => last = Some(case),
            Ok((case, Err(input))) => panic!("PALISADE_SEED={case} panics: {input}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the case after {last:?} hangs"),
        }
    }
}

fn nothing_more(_: &mut Vec<u8>, _: &mut Random) {}

fn program(file: &str) -> Input {
    let text = palisade_corpus::text(file).expect("the corpus has it");
    palisade::read(Source::new(file, text), Language::Pal, None).expect("the corpus is well formed")
}

#[test]
fn programs() {
    let seeds: Vec<&[u8]> = palisade_corpus::texts().iter().map(|(_, text)| text.as_bytes()).collect();
    let words = [
        "process", "shared", "loop {", "atomic {", "spawn", "forbid", "final", "proc", "private", "*", "= *",
        "}", "{", "(", ")", "[", "]", "count(", "@", "..", "\u{0}", "\u{fe0f}", "ä", "/*", "//", "\"",
        "\r\n", "forall (", "MOV", "|", "text", "%",
    ];
    hammer(&seeds, &words, nothing_more, |input| {
        let text = String::from_utf8_lossy(input);
        for language in Language::ALL {
            let _ = palisade::read(Source::new("p", text.as_ref()), language, None);
        }
    });
}

#[test]
fn witnesses() {
    let input = program("litmus/sb.pal");
    let answer = check_simply(&input.program, CheckOptions::default());
    let witness = answer.witness_file(&input).expect("the program is unsafe").to_json();
    let words = [
        "{",
        "}",
        "[",
        "]",
        "null",
        "\"execute\"",
        "\"update\"",
        "\"tso\"",
        "\"pso\"",
        "true",
        ",",
        ":",
        "\"cell\"",
    ];
    hammer(&[witness.as_bytes()], &words, spoil_number, move |text| {
        if let Ok(witness) = WitnessFile::from_json(&String::from_utf8_lossy(text)) {
            let Instantiation { any, every } = witness.instantiation();
            if any.max(every.unwrap_or(0)) < 100 {
                let _ = witness.verify(&lower(&input.program, witness.instantiation()));
            }
        }
    });
}

#[test]
fn certificates() {
    let name = "mutex/dekker_simple.fenced.pal";
    hammer_certificates(name, &[(Model::Tso, None), (Model::Pso, None), (Model::Sc, None)]);
}

#[test]
fn certificates_of_recursive_programs() {
    hammer_certificates("recursive/flags.fenced.pal", &[(Model::Sc, Some("pushdown"))]);
}

#[test]
fn certificates_of_programs_that_start_processes() {
    hammer_certificates("spawning/workers.pal", &[(Model::Sc, Some("pushdown"))]);
}

/// Corrupts the proofs of a program under some models, by some engines.
fn hammer_certificates(name: &str, questions: &[(Model, Option<&str>)]) {
    let input = program(name);
    let proof = |&(model, engine): &(Model, Option<&str>)| {
        let engine = engine.map_or(EngineChoice::Auto, |name| EngineChoice::Named(name.to_owned()));
        let options = CheckOptions { model, engine, prove: true, ..CheckOptions::default() };
        let answer = check_simply(&input.program, options);
        assert_eq!(answer.outcome.verdict, Verdict::Holds);
        answer.certificate(&input).expect("exact engines give proofs").to_json()
    };
    let seeds: Vec<String> = questions.iter().map(proof).collect();
    let seeds: Vec<&[u8]> = seeds.iter().map(|seed| seed.as_bytes()).collect();
    let words = [
        "{",
        "}",
        "[",
        "]",
        "null",
        "\"any\"",
        "\"declared\"",
        "\"tso\"",
        "\"pso\"",
        "[0,0,0]",
        ",",
        "\"4096\"",
    ];
    let limits = Limits::unlimited(1).with_memory(1 << 26);
    hammer(&seeds, &words, signed, move |text| {
        if let Ok(certificate) = Certificate::from_json(&String::from_utf8_lossy(text)) {
            let limits = limits.clone().with_timeout(Duration::from_secs(2));
            let _ = palisade::certify(&input.program, &certificate, &limits);
        }
    });
}

/// Puts the right digest on a corrupted proof, so that the checker reads beyond the digest.
fn signed(text: &mut Vec<u8>, random: &mut Random) {
    spoil_number(text, random);
    let json = String::from_utf8_lossy(text).into_owned();
    let (Some(proof), Some(digest)) = (json.find("\"proof\":"), json.find("\"digest\":\"")) else { return };
    let (proof, digest) = (proof + "\"proof\":".len(), digest + "\"digest\":\"".len());
    let body = json[proof..].trim_end().strip_suffix('}').unwrap_or("");
    let Some(end) = json.get(digest..).and_then(|rest| rest.find('"')) else { return };
    let signed = format!("{}{}{}", &json[..digest], text_hash(body), &json[digest + end..]);
    *text = signed.into_bytes();
}

#[test]
fn traces() {
    let text = "palisade trace 1\np store x+4/8 a.c:3 x = 1\np load y a.c:4\nq lock 0x10/8\nq sfence\np spawn r\nr free x/64\nq join r\nq fence\nend\n";
    let mut writer = BinaryWriter::new(Vec::new()).expect("memory can be written");
    let mut reader = TraceReader::new(text.as_bytes()).expect("memory can be read");
    let mut events = Vec::new();
    reader.read(|event| events.push(*event)).expect("the trace is well formed");
    for event in &events {
        let name = reader.instructions().name(event.instruction);
        let instruction = writer.instruction(name).expect("memory can be written");
        let event = palisade::monitor::Event { instruction, ..*event };
        writer.event(&event).expect("memory can be written");
    }
    let binary = writer.finish().expect("memory can be written");
    let words = [
        "load",
        "store",
        "lock-load",
        "0xffffffffffffffff",
        "/64",
        "/0",
        "+",
        "join",
        "start",
        "\n",
        " ",
        "0xefffffffffffffff/64",
    ];
    hammer(&[text.as_bytes(), &binary], &words, nothing_more, |bytes| {
        let mut monitor = Monitor::new(Interlocked::WholeBuffer);
        if let Ok(mut reader) = TraceReader::new(bytes) {
            let _ = reader.read_batches(|events| monitor.take_all(events));
            let _ = monitor.violations().sorted();
        }
    });
}

#[test]
fn requests() {
    let seeds: [&[u8]; 3] = [
        b"GET /corpus/mutex/peterson.pal?x=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\r\n",
        b"POST /check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"text\":\"\"}",
        b"HEAD / HTTP/1.0\r\n\r\n",
    ];
    let words = [
        "\r\n",
        "\r\n\r\n",
        "Host:",
        "Content-Length: ",
        "Transfer-Encoding: chunked\r\n",
        "%00",
        "../",
        "\u{0}",
        " ",
        ":",
    ];
    hammer(&seeds, &words, nothing_more, |bytes| match parse(bytes, 1 << 16) {
        Parsed::Complete(request) => assert!(request.body.len() <= 1 << 16),
        Parsed::Incomplete | Parsed::Refused(_) => {}
    });
}

/// Everything that may take long checks the stop flag of its limits.
#[test]
fn a_stopped_budget_stops_the_checker_of_proofs() {
    let input = program("mutex/dekker_simple.fenced.pal");
    let answer = check_simply(&input.program, CheckOptions { prove: true, ..CheckOptions::default() });
    let certificate = answer.certificate(&input).expect("exact engines give proofs");
    let stopped = Limits::unlimited(1).with_stop(Arc::new(AtomicBool::new(true)));
    assert!(palisade::certify(&input.program, &certificate, &stopped).is_err());
}
