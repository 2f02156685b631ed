//! One execution, step by step, for people to look at.
//!
//! *Problem.* An execution has thousands of steps. Few of them matter: the accesses to memory that threads share,
//! and how long stores wait in their buffers.
//!
//! *How.* The schedule is run again and its records are kept, the last [`MAX_RECORDS`] of them. A step is folded
//! ([`Fold`]) if it touches only memory that no other thread touches, does not touch memory at all, or belongs to a
//! loop whose iterations look alike. Folded steps are still there; it is up to the page to hide them.
//!
//! *Guarantee.* The steps are those of the log, in its order. A store that is overtaken is not folded. Of the steps
//! that overtake it at the same place, the first and the last are not folded.
//!
//! *Invariants.*
//! 1. A step that brings a store to memory comes after that store, and is folded if and only if the store is,
//!    unless an overtaking refers to one of them.
//! 2. The first and the last iteration of a loop are not folded.

use crate::buffers::Buffers;
use crate::execution::Execution;
use crate::log::{ORDERED, Order, Record, RecordKind};
use crate::schedule::Command;
use crate::session::Session;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many records are kept. Those before them are only counted.
pub const MAX_RECORDS: usize = 1 << 17;
/// The longest round of a loop that is recognised, in steps of its thread that are not folded.
const MAX_ROUND: usize = 48;
/// Loops inside loops are folded up to this depth.
const MAX_NESTING: usize = 4;

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Reads memory.
    Load,
    /// Reads a pending store of its own thread, at least in part: the step that made the newest such store.
    Forward(usize),
    /// Writes memory at once.
    Store,
    /// Puts a store into the thread's buffer.
    Buffer,
    /// A pending store reaches memory: the step that made it, if it was kept.
    Reach(Option<usize>),
    /// A locked instruction that reads and writes, or an operation on a lock.
    Locked,
    /// A locked instruction that wrote nothing.
    LockedLoad,
    /// A fence that waits until the buffer is empty.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// Starts a thread: its lane.
    Start(usize),
    /// Has waited for the end of a thread: its lane.
    Join(usize),
    /// Frees memory.
    Free,
    /// Sleeps, yields, or orders accesses for the compiler only.
    Pause,
    /// The thread ends.
    Ended,
}

/// Why a step need not be shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fold {
    /// It touches only memory that no other thread touches in this execution.
    Private,
    /// It does not touch memory.
    Nothing,
    /// It belongs to a round of a loop that is neither the first nor the last, and takes the same steps.
    Round,
}

/// A step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its lane, which stands for its thread.
    pub lane: usize,
    /// What it does.
    pub kind: StepKind,
    /// Where in the program, as in the findings. For [`StepKind::Reach`], where the store is.
    pub place: String,
    /// Why it need not be shown.
    pub fold: Option<Fold>,
}

/// A step that took effect before an older store of its thread, where sequential consistency does not allow it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Overtaking {
    /// The load, or the step in which a younger store reaches memory.
    pub step: usize,
    /// The step that made the store, which was still pending.
    pub store: usize,
}

/// An execution as its steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// The number of each lane's thread, as the findings use it.
    pub threads: Vec<u16>,
    /// How many steps came before the first that was kept.
    pub dropped: u64,
    /// The steps.
    pub steps: Vec<Step>,
    /// Which steps overtook which stores.
    pub overtakings: Vec<Overtaking>,
}

/// The records of one execution.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    records: VecDeque<Record>,
    dropped: u64,
}

impl Recording {
    fn take(&mut self, record: &Record) {
        let is_step = !matches!(
            record.kind,
            RecordKind::Note
                | RecordKind::Stuck
                | RecordKind::Exit
                | RecordKind::Text
                | RecordKind::End
                | RecordKind::Value
        );
        if record.is_pending() || !is_step {
            return;
        }
        if self.records.len() == MAX_RECORDS {
            self.records.pop_front();
            self.dropped += 1;
        }
        self.records.push_back(*record);
    }
}

impl Session {
    /// Runs one execution and keeps its records. The findings do not change, unless it is cut off.
    pub fn record(&mut self, command: &Command) -> Option<(Execution, Recording)> {
        let mut recording = Recording::default();
        let execution = self.try_out(command, |record| recording.take(record))?;
        Some((execution, recording))
    }
}

impl Timeline {
    /// The steps of an execution. `numbers` are the threads' numbers in the findings, `name` gives the name of a
    /// place.
    pub fn new(
        execution: &Execution,
        recording: &Recording,
        numbers: &[u16],
        name: impl FnMut(u64) -> String,
    ) -> Timeline {
        let reorderings = execution.judgement.iter().flat_map(|judgement| &judgement.reorderings);
        let pairs: BTreeSet<(u64, u64)> = reorderings.map(|found| (found.store, found.access)).collect();
        timeline(recording, &pairs, numbers, name)
    }
}

fn timeline(
    recording: &Recording,
    reorderings: &BTreeSet<(u64, u64)>,
    numbers: &[u16],
    mut name: impl FnMut(u64) -> String,
) -> Timeline {
    let mut lanes = Lanes::default();
    lanes.of(0);
    let mut steps: Vec<Step> = Vec::with_capacity(recording.records.len());
    let mut overtakings = Vec::new();
    let mut buffers: Buffers<usize> = Buffers::default();
    for (index, record) in recording.records.iter().enumerate() {
        let lane = lanes.of(record.thread);
        let kind = match record.kind {
            RecordKind::Load => {
                let size = u64::from(record.size).max(1);
                let mut own = buffers.of(record.thread).iter().rev();
                let newest = own.find(|store| store.overlaps(record.address, size));
                newest.map_or(StepKind::Load, |store| StepKind::Forward(store.with))
            }
            RecordKind::Store if record.is_buffered() => StepKind::Buffer,
            RecordKind::Store => StepKind::Store,
            RecordKind::Update => StepKind::Reach(None),
            RecordKind::Locked => StepKind::Locked,
            RecordKind::LockedLoad => StepKind::LockedLoad,
            RecordKind::Fence if record.order == Order::SeqCst => StepKind::Fence,
            RecordKind::StoreFence => StepKind::StoreFence,
            RecordKind::Start => StepKind::Start(lanes.of(record.address as u16)),
            RecordKind::Join => StepKind::Join(lanes.of(record.address as u16)),
            RecordKind::Free if record.size == ORDERED => StepKind::Pause,
            RecordKind::Free => StepKind::Free,
            RecordKind::Ended => StepKind::Ended,
            _ => StepKind::Pause,
        };
        let mut step = Step { lane, kind, place: String::new(), fold: None };
        let mut place = record.place;
        match kind {
            StepKind::Load => {
                let mut pending = buffers.of(record.thread).iter().rev();
                let overtaken = pending.find(|store| reorderings.contains(&(store.place, record.place)));
                overtakings.extend(overtaken.map(|store| Overtaking { step: index, store: store.with }));
            }
            StepKind::Buffer => buffers.store(record, index),
            StepKind::Reach(_) => {
                let older: Vec<(u64, usize)> =
                    buffers.of(record.thread).iter().map(|store| (store.place, store.with)).collect();
                if let Some((position, store)) = buffers.update(record) {
                    place = store.place;
                    step.kind = StepKind::Reach(Some(store.with));
                    let overtaken = older[..position]
                        .iter()
                        .rev()
                        .find(|(older, _)| reorderings.contains(&(*older, store.place)));
                    overtakings.extend(overtaken.map(|&(_, store)| Overtaking { step: index, store }));
                }
            }
            _ => {}
        }
        // In records about freed memory, the place is a size.
        if kind != StepKind::Free {
            step.place = name(place);
        }
        steps.push(step);
    }
    fold(&mut steps, recording, &overtakings);
    let threads =
        lanes.threads.iter().map(|&thread| numbers.get(usize::from(thread)).copied().unwrap_or(thread));
    Timeline { threads: threads.collect(), dropped: recording.dropped, steps, overtakings }
}

/// Threads in the order in which they appear. The first thread is always the first.
#[derive(Default)]
struct Lanes {
    threads: Vec<u16>,
}

impl Lanes {
    fn of(&mut self, thread: u16) -> usize {
        self.threads.iter().position(|&other| other == thread).unwrap_or_else(|| {
            self.threads.push(thread);
            self.threads.len() - 1
        })
    }
}

/// Finds out which steps need not be shown.
fn fold(steps: &mut [Step], recording: &Recording, overtakings: &[Overtaking]) {
    let kept = kept(steps, overtakings);
    let shared = Shared::of(recording);
    for ((index, step), record) in steps.iter_mut().enumerate().zip(&recording.records) {
        if kept.contains(&index) {
            continue;
        }
        step.fold = match step.kind {
            StepKind::Pause => Some(Fold::Nothing),
            StepKind::Load
            | StepKind::Forward(_)
            | StepKind::Store
            | StepKind::Buffer
            | StepKind::Reach(_)
            | StepKind::Locked
            | StepKind::LockedLoad
                if !shared.touches(record) =>
            {
                Some(Fold::Private)
            }
            _ => None,
        };
    }
    let lanes = steps.iter().map(|step| step.lane + 1).max().unwrap_or(0);
    for lane in 0..lanes {
        for _ in 0..MAX_NESTING {
            let shown: Vec<usize> = (0..steps.len())
                .filter(|&index| {
                    let step = &steps[index];
                    step.lane == lane && step.fold.is_none() && !matches!(step.kind, StepKind::Reach(_))
                })
                .collect();
            let keys: Vec<(&str, std::mem::Discriminant<StepKind>)> = shown
                .iter()
                .map(|&index| (steps[index].place.as_str(), std::mem::discriminant(&steps[index].kind)))
                .collect();
            let repeated: Vec<usize> = middle_rounds(&keys)
                .into_iter()
                .map(|at| shown[at])
                .filter(|index| !kept.contains(index))
                .collect();
            if repeated.is_empty() {
                break;
            }
            repeated.into_iter().for_each(|index| steps[index].fold = Some(Fold::Round));
        }
    }
    for index in 0..steps.len() {
        if let StepKind::Reach(Some(store)) = steps[index].kind
            && !kept.contains(&index)
        {
            steps[index].fold = steps[store].fold;
        }
    }
    let is_paired = |(index, step): (usize, &Step)| match step.kind {
        StepKind::Reach(Some(store)) => {
            store < index && (kept.contains(&index) || step.fold == steps[store].fold)
        }
        _ => true,
    };
    debug_assert!(steps.iter().enumerate().all(is_paired), "invariant 1");
}

/// Stores that are overtaken, the first and the last step that overtake each of them at a place, and the other half
/// of such stores.
fn kept(steps: &[Step], overtakings: &[Overtaking]) -> BTreeSet<usize> {
    let mut ends: BTreeMap<(usize, &str), (usize, usize)> = BTreeMap::new();
    for &Overtaking { step, store } in overtakings {
        ends.entry((store, &steps[step].place)).or_insert((step, step)).1 = step;
    }
    let mut kept: BTreeSet<usize> =
        ends.into_iter().flat_map(|((store, _), (first, last))| [store, first, last]).collect();
    for (index, step) in steps.iter().enumerate() {
        if let StepKind::Reach(Some(store)) = step.kind
            && (kept.contains(&index) || kept.contains(&store))
        {
            kept.extend([index, store]);
        }
    }
    kept
}

/// Which words of memory more than one thread touches.
struct Shared {
    words: FxHashMap<u64, Option<u16>>,
}

fn words(record: &Record) -> std::ops::RangeInclusive<u64> {
    const WORD: u64 = 8;
    record.address / WORD..=(record.address + u64::from(record.size).max(1) - 1) / WORD
}

impl Shared {
    fn of(recording: &Recording) -> Shared {
        let mut known: FxHashMap<u64, Option<u16>> = FxHashMap::default();
        let accesses = recording.records.iter().filter(|record| {
            matches!(
                record.kind,
                RecordKind::Load
                    | RecordKind::Store
                    | RecordKind::Update
                    | RecordKind::Locked
                    | RecordKind::LockedLoad
            )
        });
        for record in accesses {
            for word in words(record) {
                let thread = known.entry(word).or_insert(Some(record.thread));
                if *thread != Some(record.thread) {
                    *thread = None;
                }
            }
        }
        Shared { words: known }
    }

    fn touches(&self, record: &Record) -> bool {
        words(record).any(|word| self.words.get(&word).is_some_and(Option::is_none))
    }
}

/// The positions that belong to rounds of loops, without the first and the last round of each loop.
fn middle_rounds<T: PartialEq>(keys: &[T]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < keys.len() {
        let rounds = (1..=MAX_ROUND).find_map(|length| {
            let round = keys.get(at..at + length)?;
            let rounds = keys[at..].chunks_exact(length).take_while(|other| *other == round).count();
            (rounds >= 3).then_some((length, rounds))
        });
        match rounds {
            Some((length, rounds)) => {
                found.extend(at + length..at + length * (rounds - 1));
                at += length * rounds;
            }
            None => at += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{BUFFERED, CHOSEN};

    fn record(kind: RecordKind, thread: u16, address: u64, place: u64) -> Record {
        let flags = CHOSEN | if kind == RecordKind::Store { BUFFERED } else { 0 };
        Record { kind, order: Order::Relaxed, thread, flags, size: 4, address, place }
    }

    fn of(records: &[Record], reorderings: &[(u64, u64)]) -> Timeline {
        let mut recording = Recording::default();
        records.iter().for_each(|record| recording.take(record));
        let pairs = reorderings.iter().copied().collect();
        timeline(&recording, &pairs, &[0, 7, 5], |place| place.to_string())
    }

    #[test]
    fn middle_rounds_of_loops() {
        let check = |keys: &str, expected: &[usize]| {
            assert_eq!(middle_rounds(keys.as_bytes()), expected, "{keys}");
        };
        check("", &[]);
        check("aa", &[]);
        check("aaa", &[1]);
        check("xabababy", &[3, 4]);
        check("ababx", &[]);
        check("aaaabbb", &[1, 2, 5]);
    }

    #[test]
    fn stores_wait_and_loads_overtake_them() {
        use RecordKind::{Load, Start, Store, Update};
        let timeline = of(
            &[
                record(Start, 0, 1, 1),
                record(Store, 1, 64, 10),
                record(Store, 1, 640, 11),
                record(Load, 1, 72, 12),
                record(Load, 2, 64, 20),
                record(Store, 2, 72, 21),
                record(Update, 1, 64, 10),
                record(Update, 1, 640, 11),
                record(Update, 2, 72, 21),
            ],
            &[(10, 12)],
        );
        assert_eq!(timeline.threads, [0, 7, 5]);
        assert_eq!(timeline.overtakings, [Overtaking { step: 3, store: 1 }]);
        let kinds: Vec<StepKind> = timeline.steps.iter().map(|step| step.kind).collect();
        assert_eq!(kinds[0], StepKind::Start(1));
        assert_eq!([kinds[6], kinds[7], kinds[8]], [1, 2, 5].map(|store| StepKind::Reach(Some(store))));
        let folded: Vec<usize> = (0..9).filter(|&step| timeline.steps[step].fold.is_some()).collect();
        assert_eq!(folded, [2, 7], "only the store that no other thread sees is folded");
    }

    #[test]
    fn younger_stores_overtake_older_ones() {
        use RecordKind::{Load, Store, Update};
        let records = [
            record(Store, 1, 64, 10),
            record(Store, 1, 72, 11),
            record(Update, 1, 72, 11),
            record(Load, 2, 72, 20),
            record(Load, 2, 64, 21),
            record(Update, 1, 64, 10),
        ];
        assert_eq!(of(&records, &[(10, 11)]).overtakings, [Overtaking { step: 2, store: 0 }]);
        assert_eq!(of(&records, &[]).overtakings, []);
    }

    #[test]
    fn loops_are_folded_and_what_matters_is_not() {
        use RecordKind::{Load, Store, Update};
        let mut records = vec![record(Store, 2, 64, 20)];
        records.extend((0..100).map(|_| record(Load, 1, 64, 10)));
        records.push(record(Update, 2, 64, 20));
        let shown = |timeline: &Timeline| timeline.steps.iter().filter(|step| step.fold.is_none()).count();
        assert_eq!(shown(&of(&records, &[])), 4);
        // The store that the loads overtake stays, with the first and the last of them.
        let mut records = vec![record(Store, 1, 72, 9), record(Load, 2, 72, 30), record(Store, 2, 64, 31)];
        records.extend((0..5).map(|_| record(Load, 1, 64, 10)));
        assert_eq!(shown(&of(&records, &[(9, 10)])), 5);
    }

    #[test]
    fn only_the_last_records_are_kept() {
        let mut recording = Recording::default();
        (0..MAX_RECORDS + 5).for_each(|_| recording.take(&record(RecordKind::Load, 0, 8, 1)));
        assert_eq!((recording.records.len(), recording.dropped), (MAX_RECORDS, 5));
    }
}
