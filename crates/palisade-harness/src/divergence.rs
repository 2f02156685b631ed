//! The first event by which an execution differs from what was expected: the expected event, the actual
//! event, and where they are in the source.

use crate::log::{ORDERED, RECORD, Record, RecordKind};
use palisade_dpor::{Divergence, Footprint, Foreseen, Label, Mode};
use serde::{Deserialize, Serialize};

/// The first event that differed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diverged {
    /// The number of steps before it.
    pub step: u64,
    /// The thread whose event was expected.
    pub thread: u16,
    /// What the thread was expected to do.
    pub expected: Doing,
    /// What it did instead.
    pub happened: Doing,
}

/// What a thread does, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Doing {
    /// A phrase that follows the name of the thread and "was about to".
    pub what: String,
    /// The place in the source, if there is one.
    pub place: Option<String>,
}

impl Doing {
    /// What was found at a point of a search. `name` returns the name of a place.
    fn foreseen(foreseen: &Foreseen, name: &mut impl FnMut(u64) -> String) -> Doing {
        match foreseen {
            Foreseen::Nothing => Doing { what: "do nothing more".to_owned(), place: None },
            Foreseen::Step { label: Some(label), ready, .. } => match record_of(label) {
                Some(record) => Doing::of(&record, *ready, name),
                None => Doing { what: "take a step".to_owned(), place: None },
            },
            Foreseen::Step { footprint, label: None, .. } => {
                Doing { what: describe_footprint(footprint), place: None }
            }
        }
    }

    fn of(record: &Record, ready: bool, name: &mut impl FnMut(u64) -> String) -> Doing {
        let what = describe(record);
        let what = if ready { what } else { format!("wait until it can {what}") };
        Doing { what, place: (record.place != 0).then(|| name(record.place)) }
    }

    /// The phrase with its place.
    fn text(&self) -> String {
        match &self.place {
            Some(place) => format!("{} ({place})", self.what),
            None => self.what.clone(),
        }
    }
}

impl Diverged {
    /// Describes a divergence that a search has found. `thread` is the number by which users know the thread.
    pub(crate) fn new(divergence: &Divergence, thread: u16, mut name: impl FnMut(u64) -> String) -> Diverged {
        Diverged {
            step: divergence.position as u64,
            thread,
            expected: Doing::foreseen(&divergence.expected, &mut name),
            happened: Doing::foreseen(&divergence.happened, &mut name),
        }
    }

    /// One sentence with both the expected and the actual event.
    pub fn text(&self) -> String {
        let Diverged { step, thread, expected, happened } = self;
        let plural = if *step == 1 { "" } else { "s" };
        let (expected, happened) = (expected.text(), happened.text());
        format!(
            "After {step} step{plural}, thread {thread} was expected to {expected}, but was about to {happened}."
        )
    }
}

/// A record as a label of the search.
pub(crate) fn label(record: &Record) -> Label {
    let bytes = record.encode();
    let number = |at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("half of a record is eight bytes"))
    };
    [number(0), number(8)]
}

fn record_of(label: &Label) -> Option<Record> {
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(&label[0].to_le_bytes());
    bytes[8..].copy_from_slice(&label[1].to_le_bytes());
    Record::decode(&bytes)
}

fn describe(record: &Record) -> String {
    let bytes = |how: &str| {
        let plural = if record.size == 1 { "" } else { "s" };
        format!("{how} {} byte{plural} at {:#x}", record.size, record.address)
    };
    match record.kind {
        RecordKind::Load => bytes("load"),
        RecordKind::Store => bytes("store"),
        RecordKind::Update => {
            format!("let its store of {} bytes at {:#x} reach memory", record.size, record.address)
        }
        RecordKind::Locked | RecordKind::LockedLoad => {
            bytes("execute a locked instruction or lock operation on")
        }
        RecordKind::Fence if record.size > 0 => {
            format!("call the kernel for the futex at {:#x}", record.address)
        }
        RecordKind::Fence | RecordKind::StoreFence => "execute a fence".to_owned(),
        RecordKind::Start => "start a thread".to_owned(),
        RecordKind::Join => format!("join thread {}", record.address),
        RecordKind::Free if record.size == ORDERED => "read a clock or call the system".to_owned(),
        RecordKind::Free if record.size > 0 => "leave a function".to_owned(),
        RecordKind::Free => format!("free the memory at {:#x}", record.address),
        RecordKind::Choice => "get a nondeterministic value".to_owned(),
        RecordKind::Ended => "end".to_owned(),
        RecordKind::Exit => format!("end the program with exit code {}", record.address),
        _ => "continue after a pause or at its start".to_owned(),
    }
}

fn describe_footprint(footprint: &Footprint) -> String {
    match footprint.touches.first() {
        Some(touch) => {
            let how = if touch.mode == Mode::Read { "read" } else { "write" };
            let plural = if touch.size == 1 { "" } else { "s" };
            format!("{how} {} byte{plural} at {:#x}", touch.size, touch.address)
        }
        None => "take a step that accesses no memory".to_owned(),
    }
}

/// Where a schedule could not be followed: the thread of its next turn cannot continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stray {
    /// The number of steps before it.
    pub step: u64,
    /// The thread whose turn it is.
    pub thread: u16,
    /// Why it cannot continue.
    pub why: StrayReason,
    /// Where it is, or 0.
    pub place: u64,
}

/// Why a thread cannot take its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StrayReason {
    /// It does not exist.
    NotStarted,
    /// It waits.
    Waits,
    /// It has ended.
    Ended,
}

impl StrayReason {
    pub(crate) fn of(code: u8) -> StrayReason {
        match code {
            0 => StrayReason::NotStarted,
            1 => StrayReason::Waits,
            _ => StrayReason::Ended,
        }
    }
}

impl Stray {
    pub(crate) fn diverged(&self, mut name: impl FnMut(u64) -> String) -> Diverged {
        let happened = match self.why {
            StrayReason::NotStarted => "do nothing: it had not been started",
            StrayReason::Waits => "wait",
            StrayReason::Ended => "do nothing more: it had ended",
        };
        let place = (self.place != 0 && self.why == StrayReason::Waits).then(|| name(self.place));
        Diverged {
            step: self.step,
            thread: self.thread,
            expected: Doing { what: "take its turn".to_owned(), place: None },
            happened: Doing { what: happened.to_owned(), place },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Order, PENDING};

    fn record(kind: RecordKind, place: u64) -> Record {
        Record { kind, order: Order::Plain, thread: 1, flags: PENDING, size: 4, address: 0x1000, place }
    }

    #[test]
    fn both_sides_are_described_with_their_places() {
        let step = |kind, place, ready| Foreseen::Step {
            footprint: Footprint::nothing(),
            label: Some(label(&record(kind, place))),
            ready,
        };
        let check = |expected: Foreseen, happened: Foreseen, text: &str| {
            let divergence = Divergence { position: 7, process: 1, expected, happened };
            let name = |place: u64| format!("x.c:{place}");
            assert_eq!(Diverged::new(&divergence, 1, name).text(), text);
        };
        check(
            step(RecordKind::Load, 12, true),
            step(RecordKind::Store, 14, true),
            "After 7 steps, thread 1 was expected to load 4 bytes at 0x1000 (x.c:12), but was about to store 4 bytes at 0x1000 (x.c:14).",
        );
        check(
            step(RecordKind::Load, 12, true),
            Foreseen::Nothing,
            "After 7 steps, thread 1 was expected to load 4 bytes at 0x1000 (x.c:12), but was about to do nothing more.",
        );
        check(
            step(RecordKind::Locked, 12, true),
            step(RecordKind::Locked, 12, false),
            "After 7 steps, thread 1 was expected to execute a locked instruction or lock operation on 4 bytes at 0x1000 (x.c:12), but was about to wait until it can execute a locked instruction or lock operation on 4 bytes at 0x1000 (x.c:12).",
        );
    }
}
