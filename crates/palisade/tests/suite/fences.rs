//! Fences for programs of every input language. The sets are those of the literature, and the text with a
//! fence is the program that was judged.

use palisade::{
    CheckOptions, FencesAnswer, FencesError, FencesOptions, Goal, Input, Language, Limits, Model, Per,
    Placement, Source, Spot, Threads, Verdict, Which, WriteError,
};
use palisade_fences::{FenceKind, Places, Wanted};
use palisade_syntax::edit::{FenceAt, insert_fences};
use std::path::Path;

fn corpus(file: &str) -> Input {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let language = Language::from_extension(extension).expect("the corpus has known languages");
    input(language, file, &text)
}

fn language(input: &Input) -> Language {
    input.language.text().expect("the corpus has languages that are parsed")
}

fn input(language: Language, name: &str, text: &str) -> Input {
    palisade::read(Source::new(name, text), language, None).unwrap_or_else(|refused| panic!("{refused}"))
}

fn pal(text: &str) -> Input {
    input(Language::Pal, "test.pal", text)
}

fn ask(input: &Input, options: &FencesOptions) -> FencesAnswer {
    palisade::fences(input, options, &Limits::unlimited(1)).unwrap_or_else(|error| panic!("{error}"))
}

fn all() -> FencesOptions {
    FencesOptions { which: Which::All, ..FencesOptions::default() }
}

/// The sets as text. `P 9, s Q 4` is a full fence in P next to line 9 and a store-store fence in Q next to
/// line 4.
fn sets_as_text(input: &Input, answer: &FencesAnswer) -> Vec<String> {
    let mut sets: Vec<String> = answer
        .findings
        .sets
        .iter()
        .map(|set| {
            let fences = set.fences.iter().map(|fence| {
                let place = &answer.places.places()[fence.place];
                let line = input.source.position(place.span).expect("places are written").line;
                let kind = if fence.kind == FenceKind::Full { "" } else { "s " };
                format!("{kind}{} {line}", place.process)
            });
            fences.collect::<Vec<_>>().join(", ")
        })
        .collect();
    sets.sort();
    sets
}

#[track_caller]
fn check(input: &Input, options: &FencesOptions, word: &str, sets: &[&str]) {
    let answer = ask(input, options);
    assert_eq!(answer.word(), word, "{}: {:?}", input.source.name(), answer.findings.end);
    assert_eq!(sets_as_text(input, &answer), sets, "{}", input.source.name());
}

fn spot(text: &str) -> Spot {
    text.parse().unwrap_or_else(|message| panic!("{text}: {message}"))
}

/// The fences of Table 1 of "Counter-example guided fence insertion under TSO" (TACAS 2012), which counts
/// them per process.
#[test]
fn fences_of_the_literature() {
    let options = FencesOptions { per: Per::Instance, ..all() };
    let check = |file: &str, word: &str, sets: &[&str]| check(&corpus(file), &options, word, sets);
    check("mutex/dekker_simple.pal", "repairable", &["P(0) 8, P(1) 8"]);
    check("mutex/dekker.pal", "repairable", &["P(0) 10, P(1) 10"]);
    check("mutex/peterson.pal", "repairable", &["P(0) 9, P(1) 9"]);
    let bakery = [
        "P(0) 11, P(1) 11, P(0) 18, P(1) 18",
        "P(0) 11, P(1) 11, P(0) 18, P(1) 19",
        "P(0) 11, P(1) 11, P(0) 19, P(1) 19",
        "P(0) 11, P(1) 11, P(1) 18, P(0) 19",
    ];
    check("mutex/bakery.pal", "repairable", &bakery);
    check("mutex/lamport_fast.pal", "repairable", &["P(1) 12, P(2) 12, P(1) 18, P(2) 18"]);
    check("mutex/burns.pal", "repairable", &["First 9, Second 22"]);
    check("mutex/dijkstra.pal", "repairable", &["P(1) 18, P(2) 18"]);
    check("data-structures/producer_consumer_1_2.pal", "unsafe", &[]);
    for none_needed in [
        "locks/clh.pal",
        "barriers/sense_reversing.pal",
        "barriers/tournament.pal",
        "protocols/alternating_bit.pal",
    ] {
        check(none_needed, "safe", &[""]);
    }
}

#[test]
fn one_place_in_the_source_is_one_fence() {
    check(&corpus("mutex/peterson.pal"), &all(), "repairable", &["P 9"]);
    check(&corpus("mutex/bakery.pal"), &all(), "repairable", &["P 11, P 18", "P 11, P 19"]);
    check(&corpus("rmm/flags_unfenced.rmm"), &all(), "repairable", &["P0 9"]);
    check(&corpus("litmus-x86/intel_sb.litmus"), &all(), "repairable", &["P0 6, P1 6"]);
    check(&corpus("trencher/store_buffering.trencher"), &all(), "repairable", &["left 5, right 14"]);
}

#[test]
fn under_pso_store_store_fences_are_used_where_they_suffice() {
    let options =
        FencesOptions { check: CheckOptions { model: Model::Pso, ..CheckOptions::default() }, ..all() };
    check(&corpus("mutex/peterson.pal"), &options, "repairable", &["s P 8, P 9"]);
    check(&corpus("rmm/pointers.rmm"), &options, "repairable", &["s P0 14"]);
}

#[test]
fn any_number_of_threads() {
    let options =
        FencesOptions { check: CheckOptions { threads: Threads::Any, ..CheckOptions::default() }, ..all() };
    // A lock that is correct for any number of threads.
    let text = "\
shared lock: 0..1;
shared data: 0..1;
process P {
    await cas(lock, 0, 1);
    data = 1;
    let r = lock;
    assert(r == 1);
    data = 0;
    lock = 0;
}
process Q {
    let seen = data;
    await cas(lock, 0, 1);
    assert(data == 0);
    lock = 0;
}
";
    check(&pal(text), &options, "safe", &[""]);
    let sb = "\
shared x, y: 0..1;
process P { x = 1; let r = y; p: skip; }
process Q { y = 1; let r = x; q: skip; }
forbid P@p && Q@q && P.r == 0 && Q.r == 0;
";
    let input = pal(sb);
    check(&input, &options, "repairable", &["P 2, Q 3"]);
    let answer = ask(&input, &options);
    let text = answer.written(&input, 0, &Limits::unlimited(1)).expect("the fences can be written");
    assert!(text.contains("x = 1; fence; let r = y;"), "{text}");
}

/// Robustness may need fences that safety does not need, and never fewer. Robust programs need none.
#[test]
fn robustness() {
    let options = FencesOptions { goal: Goal::Robustness, ..all() };
    check(&corpus("mutex/dekker_simple.pal"), &options, "repairable", &["P 8"]);
    check(&corpus("mutex/peterson.pal"), &options, "repairable", &["P 9"]);
    check(&corpus("locks/parker.pal"), &options, "repairable", &["Sleeper 11"]);
    check(&corpus("trencher/peterson_once.trencher"), &options, "repairable", &["zero 6, one 19"]);
    check(&corpus("locks/mcs.pal"), &options, "robust", &[""]);
    check(&corpus("mutex/peterson.fenced.pal"), &options, "robust", &[""]);
    // Safe, because it states no property, but not robust.
    let text = "shared x, y: 0..1;\nprocess P {\nx = 1;\nlet r = y;\n}\nprocess Q {\ny = 1;\nlet r = x;\n}\n";
    check(&pal(text), &all(), "safe", &[""]);
    check(&pal(text), &options, "repairable", &["P 3, Q 7"]);
    let nowhere = FencesOptions { only: vec![spot("3")], ..options.clone() };
    let input = pal(text);
    let answer = ask(&input, &nowhere);
    assert_eq!(answer.word(), "not-robust");
    assert!(answer.under_sc.is_none(), "every program is robust under SC");
    let answer = ask(&input, &options);
    let fenced = answer.written(&input, 0, &Limits::unlimited(1)).expect("the fences can be written");
    check(&pal(&fenced), &options, "robust", &[""]);
}

#[test]
fn placements() {
    let peterson = corpus("mutex/peterson.pal");
    let place = |placement| FencesOptions { placement, ..all() };
    check(&peterson, &place(Placement::BeforeReads), "repairable", &["P 10"]);
    check(&peterson, &place(Placement::Anywhere), "repairable", &["P 9"]);
}

#[test]
fn only_and_never() {
    let bakery = corpus("mutex/bakery.pal");
    let only =
        |spots: &[&str]| FencesOptions { only: spots.iter().map(|text| spot(text)).collect(), ..all() };
    let never =
        |spots: &[&str]| FencesOptions { never: spots.iter().map(|text| spot(text)).collect(), ..all() };
    check(&bakery, &only(&["11", "P@19"]), "repairable", &["P 11, P 19"]);
    check(&bakery, &only(&["10-18"]), "repairable", &["P 11, P 18"]);
    check(&bakery, &never(&["18"]), "repairable", &["P 11, P 19"]);
    check(&bakery, &never(&["11"]), "unsafe", &[]);
    check(&bakery, &only(&["P"]), "repairable", &["P 11, P 18", "P 11, P 19"]);
    let dekker = corpus("mutex/dekker.pal");
    check(&dekker, &only(&["announce"]), "repairable", &["P 10"]);
    check(&dekker, &never(&["P@announce"]), "unsafe", &[]);
    for nowhere in ["1", "nobody", "Q@11", "P@cs"] {
        let options = only(&[nowhere]);
        match palisade::fences(&bakery, &options, &Limits::unlimited(1)) {
            Err(FencesError::NoSuchPlace(spot)) => assert_eq!(spot.to_string(), nowhere),
            other => panic!("{nowhere}: {:?}", other.map(|answer| answer.word())),
        }
    }
}

#[test]
fn the_cheapest_set() {
    let bakery = corpus("mutex/bakery.pal");
    let weights = |line: &str| FencesOptions { weights: vec![(spot(line), 5)], ..FencesOptions::default() };
    check(&bakery, &weights("18"), "repairable", &["P 11, P 19"]);
    check(&bakery, &weights("19"), "repairable", &["P 11, P 18"]);
    // One fence in the loop, or two in front of it.
    let text = "\
shared x, y, z: 0..1;
process P {
    choose { x = 1; } or { skip; x = 1; }
    loop { z = 1; let r = y; got: skip; }
}
process Q { y = 1; fence; let r = x; got: skip; }
forbid P@got && Q@got && P.r == 0 && Q.r == 0;
";
    let input = pal(text);
    check(&input, &FencesOptions::default(), "repairable", &["P 4"]);
    let dear_loops = FencesOptions { loop_weight: Some(10), ..FencesOptions::default() };
    check(&input, &dear_loops, "repairable", &["P 3, P 3"]);
    let costs: Vec<u64> = ask(&input, &FencesOptions { loop_weight: Some(10), ..all() })
        .findings
        .sets
        .iter()
        .map(|set| set.cost.weight)
        .collect();
    assert_eq!(costs, [2, 10]);
}

#[test]
fn a_program_that_is_wrong_under_sc() {
    let input = corpus("data-structures/producer_consumer_1_2.pal");
    let answer = ask(&input, &all());
    assert_eq!(answer.word(), "unsafe");
    let sc = answer.under_sc.as_ref().expect("SC was checked");
    assert!(matches!(sc.outcome.verdict, Verdict::Violated(_)));
    assert_eq!(sc.model, Model::Sc);
    assert!(matches!(answer.written(&input, 0, &Limits::unlimited(1)), Err(WriteError::NoSet)));
}

#[test]
fn the_answer_is_unknown_if_the_engine_does_not_know() {
    // Nothing is read back, so buffers grow without bound, and explicit search does not know the answer.
    let text = "\
shared x, y: 0..1;
process P { loop { x = 1; y = 1; x = 0; y = 0; } }
process Q { loop { let r = x; let s = y; } }
forbid Q.r == 2;
";
    let check = CheckOptions {
        engine: palisade::EngineChoice::Named("explicit".to_owned()),
        options: palisade::Options { max_buffer: 2, ..palisade::Options::default() },
        ..CheckOptions::default()
    };
    let answer = ask(&pal(text), &FencesOptions { check, ..all() });
    assert_eq!(answer.word(), "unknown");
    assert!(answer.findings.sets.is_empty());
}

#[test]
fn fences_in_some_instances_only() {
    let text = "\
shared x, y: 0..1;
process P(i: 0..1) {
    x = 1;
    let r = y;
    got: skip;
}
process Q { y = 1; fence; let r = x; got: skip; }
forbid P(0)@got && Q@got && P(0).r == 0 && Q.r == 0;
";
    let input = pal(text);
    let options = FencesOptions { per: Per::Instance, ..all() };
    let written = |input: &Input| {
        let answer = ask(input, &options);
        let sets = 0..answer.findings.sets.len();
        sets.map(|set| answer.written(input, set, &Limits::unlimited(1))).collect::<Vec<_>>()
    };
    check(&input, &options, "repairable", &["P(0) 3"]);
    let expected = text.replace("    x = 1;\n", "    x = 1;\n    if i == 0 { fence; }\n");
    assert_eq!(written(&input)[0].as_deref().ok(), Some(expected.as_str()));
    // In all instances: one fence in the text.
    let dekker = corpus("mutex/dekker_simple.pal");
    let text = written(&dekker).remove(0).expect("the fences can be written");
    assert_eq!(text.matches("fence;").count() - dekker.source.text().matches("fence;").count(), 1);
    assert!(!text.contains("if i =="), "{text}");
    // Both placements for each process.
    let bakery = written(&corpus("mutex/bakery.pal"));
    assert!(bakery.iter().all(Result::is_ok), "{bakery:?}");
    assert_eq!(
        bakery
            .iter()
            .filter(|text| text.as_ref().is_ok_and(|text| text.contains("if i == 1 { fence; }")))
            .count(),
        2
    );
    // Other languages cannot express it.
    let rmm = corpus("rmm/flags_unfenced.rmm");
    let options = FencesOptions { never: vec![spot("P0(0)")], ..options.clone() };
    let answer = ask(&rmm, &options);
    assert_eq!(answer.word(), "unsafe");
}

/// The text with the fences differs only in the fences, and needs no others.
#[test]
fn fenced_programs_need_no_fences() {
    for file in [
        "mutex/peterson.pal",
        "mutex/bakery.pal",
        "mutex/szymanski.pal",
        "rmm/bakery_two.rmm",
        "rmm/flags_unfenced.rmm",
        "litmus-x86/intel_sb.litmus",
        "litmus-x86/sfence_is_not_enough.litmus",
        "trencher/peterson_once.trencher",
        "trencher/store_buffering.trencher",
    ] {
        let before = corpus(file);
        let answer = ask(&before, &all());
        for set in 0..answer.findings.sets.len() {
            let text =
                answer.written(&before, set, &Limits::unlimited(1)).expect("the fences can be written");
            assert_ne!(text, before.source.text(), "{file}");
            let after = input(language(&before), file, &text);
            check(&after, &all(), "safe", &[""]);
        }
    }
}

/// For every place that is offered, the text with a fence there is read as the program that would be judged.
#[test]
fn every_place_is_written_where_it_is_judged() {
    let mut places_seen = 0;
    for file in [
        "mutex/dekker.pal",
        "mutex/bakery.pal",
        "mutex/lamport_fast.pal",
        "locks/mcs.pal",
        "locks/parker.pal",
        "data-structures/lock_free_stack.pal",
        "figures/lazy_fig8_diamond_3.pal",
        "rmm/bakery_two.rmm",
        "rmm/flags_unfenced.rmm",
        "rmm/lost_update.rmm",
        "rmm/pointers.rmm",
        "rmm/locked_swap.rmm",
        "litmus-x86/intel_sb.litmus",
        "litmus-x86/cmpxchg_lock.litmus",
        "litmus-x86/spin_and_widths.litmus",
        "litmus-x86/message_passing_pointer.litmus",
        "trencher/peterson_once.trencher",
        "trencher/array_walk.trencher",
        "trencher/exchange_lock.trencher",
        "trencher/store_buffering.trencher",
    ] {
        let input = corpus(file);
        let write = |fence: FenceAt| insert_fences(language(&input), &input.source, &[fence]);
        let wanted = Wanted {
            placement: Placement::Anywhere,
            per: Per::Source,
            store_fences: false,
            can_write: &|fence| write(fence).is_ok(),
            stronger: &|_| None,
            allows: &|_| true,
        };
        let places = Places::new(&input.program, &wanted);
        assert!(!places.places().is_empty(), "{file}");
        for (id, place) in places.places().iter_enumerated() {
            places_seen += 1;
            let mut fencing = places.no_fences();
            fencing[id] = Some(FenceKind::Full);
            let judged = places.fenced(&fencing);
            let text = write(place.fence(FenceKind::Full)).expect("only such places are offered");
            let again = self::input(language(&input), file, &text);
            if matches!(language(&input), Language::Pal | Language::Rmm) {
                assert_eq!(again.program, judged, "{file}, {place:?}");
                continue;
            }
            // Other languages choose new names, so what the programs do is compared.
            for model in [Model::Tso, Model::Pso] {
                let verdict = |program| {
                    let options = CheckOptions { model, ..CheckOptions::default() };
                    palisade::check_simply(program, options).outcome.word()
                };
                assert_eq!(verdict(&again.program), verdict(&judged), "{file}, {place:?}\n{text}");
            }
        }
    }
    assert!(places_seen > 150, "{places_seen}");
}

/// The same for random programs and random sets of places.
#[test]
fn random_sets_are_written_where_they_are_judged() {
    use palisade_conformance::random::Random;
    use palisade_conformance::{Profile, generate};
    for seed in 0..120 {
        let profile = Profile::ALL[seed as usize % 4];
        let input = pal(&palisade_program::print::print(&generate(profile, seed)));
        let mut random = Random::new(seed);
        for placement in [Placement::AfterWrites, Placement::BeforeReads, Placement::Anywhere] {
            let wanted = Wanted {
                placement,
                per: Per::Source,
                store_fences: true,
                can_write: &|fence| insert_fences(language(&input), &input.source, &[fence]).is_ok(),
                stronger: &|_| None,
                allows: &|_| true,
            };
            let places = Places::new(&input.program, &wanted);
            let mut fencing = places.no_fences();
            for (id, place) in places.places().iter_enumerated() {
                if random.percent(40) {
                    fencing[id] = Some(*random.pick(place.kinds()));
                }
            }
            let chosen =
                places.places().iter_enumerated().filter_map(|(id, place)| Some(place.fence(fencing[id]?)));
            let chosen: Vec<FenceAt> = chosen.collect();
            let text = insert_fences(language(&input), &input.source, &chosen)
                .expect("there is room for all of them");
            assert_eq!(pal(&text).program, places.fenced(&fencing), "seed {seed}, {placement:?}\n{text}");
        }
    }
}

/// What must stay possible: lost wake-ups and deadlocks are prevented by fences, and each fence has a run.
#[test]
fn fences_keep_things_possible() {
    let check = |file: &str, model: Model, expected: Option<&[usize]>, shows: &str| {
        let input = corpus(&format!("progress/{file}"));
        let options = FencesOptions { check: CheckOptions { model, ..CheckOptions::default() }, ..all() };
        let answer = palisade::fences(&input, &options, &Limits::unlimited(1)).expect("an answer");
        let finding = answer.finding(&input, None);
        let sizes: Vec<usize> = answer.findings.sets.iter().map(|set| set.fences.len()).collect();
        match expected {
            Some(expected) => {
                let word = if expected == [0] { "safe" } else { "repairable" };
                assert_eq!((answer.word(), sizes.as_slice()), (word, expected), "{file}");
            }
            None => assert_eq!((answer.word(), sizes.len()), ("unsafe", 0), "{file}"),
        }
        let json = palisade::report::Report::json(&finding);
        assert!(json.contains(shows), "{file}: {json}");
        for set in &answer.findings.sets {
            let fenced = answer.places.fenced(&set.fencing);
            let options = CheckOptions { model, ..CheckOptions::default() };
            assert_eq!(palisade::check_simply(&fenced, options).outcome.verdict, Verdict::Holds, "{file}");
        }
    };
    check("wake_up.pal", Model::Tso, Some(&[2]), "deadlock: Sleeper waits");
    check("wake_up.pal", Model::Pso, Some(&[2]), "deadlock: Sleeper waits");
    check("wake_up.fenced.pal", Model::Pso, Some(&[0]), "\"safe\"");
    check("message_once.pal", Model::Tso, Some(&[0]), "\"safe\"");
    check("message_once.pal", Model::Pso, Some(&[1]), "sfence");
    check("mcs.pal", Model::Pso, Some(&[1]), "sfence");
    check("abba.pal", Model::Tso, None, "deadlock: ");
    // Runs that never end.
    check("wake_up_ends.pal", Model::Tso, Some(&[2]), "forever");
    check("wake_up_ends.pal", Model::Pso, Some(&[2]), "forever");
    check("wake_up_ends.fenced.pal", Model::Pso, Some(&[0]), "\"safe\"");
    check("barrier_unordered.pal", Model::Tso, Some(&[0]), "\"safe\"");
    check("after_you.pal", Model::Tso, None, "forever");
    // An alternative that begins with a wait is not decided.
    let input = corpus("progress/choice.pal");
    let answer = palisade::fences(&input, &all(), &Limits::unlimited(1)).expect("an answer");
    assert_eq!(answer.word(), "unknown");
}

/// Random programs: every set makes the program right, and none of its fences can be left out.
#[test]
fn differential_fences_that_keep_things_possible() {
    use palisade_conformance::brute::{self, Answer, Scope};
    use palisade_conformance::fair::FairGraph;
    use palisade_conformance::progress::Graph;
    use palisade_conformance::random::Random;
    use palisade_conformance::seeds;
    use palisade_program::written::Program;
    use palisade_program::{Instantiation, lower, lower_retrying};
    let scope = Scope::states(5_000);
    let is_right = |program: &Program, model: Model| -> Option<bool> {
        let instances = Instantiation::declared(1);
        let bad = brute::check(palisade::memory::Machine::new(&lower(program, instances), model), scope);
        let system = lower_retrying(program, instances);
        let machine = palisade::memory::Machine::new(&system, model);
        let graph = Graph::new(machine, scope)?;
        let live = system.goals.iter().all(|goal| graph.live(goal) == Answer::Safe);
        let endless = FairGraph::new(machine, scope)?;
        let ends = system.fair.iter().all(|property| endless.answer(&property.kind) == Answer::Safe);
        match bad {
            Answer::Inconclusive => None,
            bad => Some(bad == Answer::Safe && graph.deadlock() == Answer::Safe && live && ends),
        }
    };
    let mut fences = 0;
    let seeds = seeds(60);
    for seed in &seeds {
        let input = pal(&sleepers(&mut Random::new(seed)));
        for model in [Model::Tso, Model::Pso] {
            let options = FencesOptions { check: CheckOptions { model, ..CheckOptions::default() }, ..all() };
            let limits = Limits::unlimited(1).with_work(3_000);
            let answer = palisade::fences(&input, &options, &limits).expect("an answer");
            if let Some(right) = is_right(&input.program, model)
                && right
                && answer.word() != "unknown"
            {
                let sizes: Vec<usize> = answer.findings.sets.iter().map(|set| set.fences.len()).collect();
                assert_eq!((answer.word(), sizes.as_slice()), ("safe", &[0][..]), "seed {seed}");
            }
            for set in &answer.findings.sets {
                let right = is_right(&answer.places.fenced(&set.fencing), model);
                assert_ne!(right, Some(false), "seed {seed}, {}", model.name());
                for fence in &set.fences {
                    fences += 1;
                    let right = is_right(&answer.places.fenced(&fence.without), model);
                    assert_ne!(right, Some(true), "seed {seed}, {}", model.name());
                }
            }
        }
    }
    assert!(fences > 20 || !seeds.suffice(), "{fences}");
}

/// Two processes that put each other to sleep and wake each other up, with mistakes.
fn sleepers(random: &mut palisade_conformance::random::Random) -> String {
    let extra = ["x = true;", "y = true;", "let r = x;", "if y { x = true; }", "fence;", "skip;"];
    let mut bodies = Vec::new();
    for (own, other) in [("a", "b"), ("b", "a")] {
        let mut body = vec![format!("{own} = true;")];
        body.push(match random.below(4) {
            0 => format!("if !{other} {{ await w; }}"),
            1 => format!("if {other} {{ w = true; }}"),
            2 if random.percent(50) => {
                format!("while !{other} {{ w = true; x = false; }} if x {{ wait: while !w {{ y = true; }} }}")
            }
            2 => format!("if !{other} {{ await x; }} else {{ w = true; }}"),
            _ => format!("if {other} {{ w = true; x = true; }}"),
        });
        for _ in 0..random.below(3) {
            let at = random.below(body.len() + 1);
            body.insert(at, random.pick(&extra).replace("let r ", &format!("let r{} ", body.len())));
        }
        bodies.push(body.join(" "));
    }
    let what = ["deadlock-free;", "live end;", "live end; deadlock-free;", "terminates;", "terminates;"];
    format!(
        "shared a, b, w, x, y: bool; process P {{ {} }} process Q {{ {} }} {}",
        bodies[0],
        bodies[1],
        random.pick(&what)
    )
}
