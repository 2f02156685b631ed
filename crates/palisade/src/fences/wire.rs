//! Judgements as words, for other processes of the same program.

use palisade_base::Id;
use palisade_engine::{Stats, Verdict, Witness};
use palisade_fences::{FenceKind, Fencing, Judgement, Placement, Shown};
use palisade_memory::{Action, Step};
use palisade_program::Instantiation;
use palisade_program::running::{EdgeId, ThreadId};
use palisade_trace::Run;
use std::sync::{Mutex, PoisonError};

/// A candidate, with the places that it is about.
pub(super) fn put_candidate(placement: Placement, fencing: &Fencing) -> Vec<u8> {
    let place = |kind: &Option<FenceKind>| match kind {
        None => 0,
        Some(FenceKind::StoreStore) => 1,
        Some(FenceKind::Full) => 2,
    };
    let placement = match placement {
        Placement::AfterWrites => 0,
        Placement::BeforeReads => 1,
        Placement::Anywhere => 2,
    };
    std::iter::once(placement).chain(fencing.iter().map(place)).collect()
}

/// The candidate in these bytes.
pub(super) fn get_candidate(bytes: &[u8]) -> Option<(Placement, Fencing)> {
    let (placement, fencing) = bytes.split_first()?;
    let placement = match placement {
        0 => Placement::AfterWrites,
        1 => Placement::BeforeReads,
        2 => Placement::Anywhere,
        _ => return None,
    };
    let kind = |byte: &u8| {
        Some(match byte {
            0 => None,
            1 => Some(FenceKind::StoreStore),
            2 => Some(FenceKind::Full),
            _ => return None,
        })
    };
    let fencing = fencing.iter().map(kind).collect::<Option<Vec<_>>>()?;
    Some((placement, fencing.into_iter().collect()))
}

/// An answer. One that is unknown is not passed on: nobody else may learn more, but whoever asks has to find out alone
/// why it is unknown.
pub(super) fn put_judgement(judgement: Option<&Judgement>) -> Vec<u8> {
    let mut out = Words::default();
    let known = judgement.filter(|judgement| judgement.verdict.is_known());
    out.word(known.is_some().into());
    if let Some(Judgement { verdict, engine, stats, shown }) = known {
        let (kind, goal) = match *shown {
            Shown::Missed => (0, 0),
            Shown::Deadlock => (1, 0),
            Shown::OutOfReach(goal) => (2, goal as u64),
            Shown::Forever => (3, 0),
        };
        out.word(kind);
        out.word(goal);
        out.text(engine);
        out.word(stats.iter().count() as u64);
        for (name, value) in stats.iter() {
            out.text(name);
            out.word(value);
        }
        out.word(verdict.witness().is_some().into());
        if let Some(witness) = verdict.witness() {
            out.witness(witness);
        }
    }
    out.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The answer in these bytes, or `None` if there is none.
pub(super) fn get_judgement(bytes: &[u8]) -> Option<Judgement> {
    let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
    let words: Vec<u64> = words.collect();
    let mut rest = Rest(&words);
    if rest.word()? == 0 {
        return None;
    }
    let shown = match (rest.word()?, rest.word()?) {
        (0, _) => Shown::Missed,
        (1, _) => Shown::Deadlock,
        (2, goal) => Shown::OutOfReach(goal as usize),
        _ => Shown::Forever,
    };
    let engine = rest.text()?;
    let mut stats = Stats::new();
    for _ in 0..rest.word()? {
        let name = rest.text()?;
        stats.set(name, rest.word()?);
    }
    let verdict = match rest.word()? {
        0 => Verdict::Holds,
        _ => Verdict::Violated(rest.witness()?),
    };
    Some(Judgement { verdict, engine, stats, shown })
}

#[derive(Default)]
struct Words(Vec<u64>);

impl Words {
    fn word(&mut self, word: u64) {
        self.0.push(word);
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        self.0.extend(text.bytes().map(u64::from));
    }

    fn optional(&mut self, value: Option<u64>) {
        self.word(value.is_some().into());
        self.word(value.unwrap_or(0));
    }

    fn witness(&mut self, witness: &Witness) {
        let Witness { instantiation: Instantiation { any, every }, run: Run { memory, steps } } = witness;
        self.word((*any).into());
        self.optional(every.map(u64::from));
        self.word(memory.len() as u64);
        memory.iter().for_each(|&value| self.word(value as u64));
        self.word(steps.len() as u64);
        for Step { thread, action } in steps {
            self.word(thread.index() as u64);
            match *action {
                Action::Execute { edge, choice } => {
                    self.word(0);
                    self.word(edge.index() as u64);
                    self.optional(choice.map(|value| value as u64));
                }
                Action::Update { position } => {
                    self.word(1);
                    self.word(position as u64);
                }
            }
        }
    }
}

/// Words that were not read yet.
struct Rest<'w>(&'w [u64]);

impl Rest<'_> {
    fn word(&mut self) -> Option<u64> {
        let (&word, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(word)
    }

    fn text(&mut self) -> Option<&'static str> {
        let length = self.word()?;
        let bytes = (0..length).map(|_| self.word().map(|word| word as u8)).collect::<Option<Vec<u8>>>()?;
        String::from_utf8(bytes).ok().map(interned)
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        let is_there = self.word()? != 0;
        let value = self.word()?;
        Some(is_there.then_some(value))
    }

    fn witness(&mut self) -> Option<Witness> {
        let any = self.word()? as u32;
        let every = self.optional()?.map(|every| every as u32);
        let values = self.word()?;
        let memory =
            (0..values).map(|_| self.word().map(|value| value as i64)).collect::<Option<Vec<_>>>()?;
        let steps = self.word()?;
        let step = |_| {
            let thread = ThreadId::from_index(self.word()? as usize);
            let action = match self.word()? {
                0 => {
                    let edge = EdgeId::from_index(self.word()? as usize);
                    Action::Execute { edge, choice: self.optional()?.map(|value| value as i64) }
                }
                _ => Action::Update { position: self.word()? as usize },
            };
            Some(Step { thread, action })
        };
        let steps = (0..steps).map(step).collect::<Option<Vec<_>>>()?;
        Some(Witness { instantiation: Instantiation { any, every }, run: Run { memory, steps } })
    }
}

/// The same text, kept for good. There are few: the names of engines and of their counters.
fn interned(text: String) -> &'static str {
    static KNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match known.iter().find(|known| **known == text) {
        Some(known) => known,
        None => {
            let kept: &'static str = text.leak();
            known.push(kept);
            kept
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_engine::Reason;

    #[test]
    fn what_is_sent_arrives() {
        let execute = |edge, choice| Action::Execute { edge: EdgeId::from_index(edge), choice };
        let step = |thread, action| Step { thread: ThreadId::from_index(thread), action };
        let steps = vec![
            step(0, execute(3, None)),
            step(2, execute(0, Some(-5))),
            step(1, Action::Update { position: 4 }),
        ];
        let run = Run { memory: vec![0, -1, i64::MIN], steps };
        let witness = Witness { instantiation: Instantiation { any: 3, every: Some(0) }, run };
        let mut stats = Stats::new();
        stats.set("states", 17);
        stats.set("configurations", u64::MAX);
        for verdict in [Verdict::Holds, Verdict::Violated(witness)] {
            for shown in [Shown::Missed, Shown::Deadlock, Shown::OutOfReach(7), Shown::Forever] {
                let sent =
                    Judgement { verdict: verdict.clone(), engine: "dual", stats: stats.clone(), shown };
                let got = get_judgement(&put_judgement(Some(&sent))).expect("it is known");
                assert_eq!((got.verdict, got.engine, got.shown), (sent.verdict, sent.engine, sent.shown));
                assert_eq!(got.stats, sent.stats);
            }
        }
        let verdict = Verdict::Unknown(Reason::CallDepth(1));
        let unknown = Judgement { verdict, engine: "dual", stats, shown: Shown::Missed };
        assert!(get_judgement(&put_judgement(Some(&unknown))).is_none());
        assert!(get_judgement(&put_judgement(None)).is_none());
        assert!(get_judgement(&[]).is_none());
    }

    #[test]
    fn candidates_arrive() {
        let fencing: Fencing =
            [None, Some(FenceKind::Full), Some(FenceKind::StoreStore)].into_iter().collect();
        for placement in [Placement::AfterWrites, Placement::BeforeReads, Placement::Anywhere] {
            let bytes = put_candidate(placement, &fencing);
            assert_eq!(get_candidate(&bytes), Some((placement, fencing.clone())));
        }
        assert_eq!(get_candidate(&[2, 9]), None);
        assert_eq!(get_candidate(&[]), None);
    }
}
