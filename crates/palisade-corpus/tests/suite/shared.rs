//! The programs of the corpus by several processes: the same verdict, the same number of states and the same run as by
//! one. Here the processes are threads, connected over the loopback interface.

use palisade::cluster::{Leaving, Place, take_part};
use palisade::{CheckOptions, EngineChoice, Language, Limits, Model, Options, Source, Verdict};
use palisade_corpus::expectations;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Larger searches take too long for a test.
const STATES: u64 = 20_000;

/// The verdict, and the counters that must not depend on the number of processes.
fn shared(
    processes: usize,
    program: &palisade::program::written::Program,
    model: Model,
) -> Vec<(Verdict, Vec<Option<u64>>)> {
    let options = CheckOptions {
        model,
        engine: EngineChoice::Named("explicit".to_owned()),
        options: Options { max_buffer: 2, ..Options::default() },
        ..CheckOptions::default()
    };
    let run = |place: Place| {
        let limits = Limits::unlimited(1).with_work(STATES);
        let check = || palisade::check(program, &options, &limits);
        let (answer, seat) = take_part(place.sit_down(), check);
        seat.leave(Leaving::default(), &Arc::default(), Duration::from_secs(10));
        let outcome = answer.expect("the engine exists").outcome;
        let counters = ["states", "transitions", "depth", "chain_steps", "thread_states"];
        (outcome.verdict, counters.map(|name| outcome.stats.get(name)).to_vec())
    };
    let places = Place::group(processes).expect("there are ports");
    std::thread::scope(|scope| {
        let runs: Vec<_> = places.into_iter().map(|place| scope.spawn(|| run(place))).collect();
        runs.into_iter().map(|run| run.join().expect("no process panics")).collect()
    })
}

#[test]
fn differential_the_corpus_by_any_number_of_processes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    for (index, expectation) in expectations().iter().enumerate() {
        let text = std::fs::read_to_string(folder.join(expectation.file)).expect("the file can be read");
        let source = Source::new(expectation.file, text);
        let program = palisade::syntax::parse(Language::Pal, &source).expect("it is well formed").program;
        let model = Model::ALL[index % 3];
        let one = shared(1, &program, model).remove(0);
        for (process, several) in shared(2 + index % 3, &program, model).into_iter().enumerate() {
            assert_eq!(several, one, "{}, {}, process {process}", expectation.file, model.name());
        }
    }
}
