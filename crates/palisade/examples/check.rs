//! Is a lock correct under x86-TSO? If not, show how it breaks. If it is, check the proof.
//!
//! `cargo run -p palisade --example check`

use palisade::report::{Colour, LocalSteps};
use palisade::{CheckOptions, Language, Limits, Source, Verdict};
use std::time::Duration;

const LOCK: &str = "\
shared flag[2]: bool;

process P(me: 0..1) {
    flag[me] = true;
    if !flag[1 - me] {
    cs: skip;
    }
    flag[me] = false;
}

forbid P(0)@cs && P(1)@cs;
";

fn main() {
    for (name, text) in [("lock.pal", LOCK.to_owned()), ("fenced.pal", LOCK.replace("true;", "true; fence;"))]
    {
        let input = match palisade::read(Source::new(name, text), Language::Pal, None) {
            Ok(input) => input,
            Err(refused) => return println!("{refused}"),
        };
        let options = CheckOptions { certify: true, ..CheckOptions::default() };
        let limits = Limits::unlimited(2).with_timeout(Duration::from_secs(10)).with_memory(1 << 30);
        let answer = match palisade::check(&input.program, &options, &limits) {
            Ok(answer) => answer,
            Err(error) => return println!("{error}"),
        };
        match &answer.outcome.verdict {
            Verdict::Holds => {
                println!("{name} is safe, and the proof was accepted: {:?}", answer.certified);
            }
            Verdict::Violated(_) => {
                let evidence = answer.evidence(&input.source).expect("an unsafe answer has a run");
                println!("{name}: {}", palisade::report::explain(&evidence));
                println!("{}", palisade::report::witness(&evidence, LocalSteps::Folded, 120, Colour::Never));
            }
            Verdict::Unknown(reason) => println!("{name}: {reason}"),
        }
    }
}
