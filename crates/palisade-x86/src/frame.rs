//! How the stack frame of a function becomes objects.
//!
//! Offsets are relative to the return address, which is at 0. What is accessed at known offsets only is an object of
//! its own. From the first place whose address is used in another way, everything up to where a register is saved is
//! one object: pointers into it may lead anywhere in it.
//!
//! *Guarantee.* An access that leaves its object is an error. So no pointer reaches the return address or a register
//! that is saved for the caller, and nothing depends on how the frame is cut.

use std::collections::BTreeSet;

/// How a frame is used.
#[derive(Clone, Default, Debug)]
pub(crate) struct Uses {
    /// Accesses at known offsets: where, and how many bytes.
    pub(crate) direct: BTreeSet<(i64, i64)>,
    /// Places whose address is used in another way.
    pub(crate) pointed: BTreeSet<i64>,
    /// Where registers are saved.
    pub(crate) saved: BTreeSet<i64>,
}

/// A part of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Whether pointers lead into it.
    pub(crate) pointed: bool,
}

/// The parts of a frame, in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Regions {
    pub(crate) all: Vec<Region>,
}

impl Uses {
    /// How many words of arguments it reads from the frame of its caller.
    pub(crate) fn stack_arguments(&self) -> usize {
        let end = self.direct.iter().map(|(at, size)| at + size).max().unwrap_or(0);
        usize::try_from((end - 8 + 7) / 8).unwrap_or(0)
    }

    pub(crate) fn regions(&self) -> Regions {
        let mut all: Vec<Region> = Vec::new();
        for &at in self.pointed.iter().filter(|at| **at < 0) {
            if self.saved.contains(&at) || all.last().is_some_and(|last| at < last.end) {
                continue;
            }
            let end = self.saved.range(at..).next().copied().unwrap_or(0).min(0);
            all.push(Region { start: at, end, pointed: true });
        }
        let pointed = all.clone();
        let mut open: Option<Region> = None;
        for &(at, size) in &self.direct {
            if pointed.iter().any(|region| region.start <= at && at + size <= region.end) {
                continue;
            }
            match &mut open {
                Some(region) if at < region.end => region.end = region.end.max(at + size),
                _ => {
                    all.extend(open.take());
                    open = Some(Region { start: at, end: at + size, pointed: false });
                }
            }
        }
        all.extend(open);
        all.sort_by_key(|region| region.start);
        Regions { all }
    }
}

impl Regions {
    /// The region in which some bytes lie, by its index, and where in it. An address may be that of its end.
    pub(crate) fn find(&self, at: i64, size: i64) -> Option<(usize, i64)> {
        let inside = |region: &Region| region.start <= at && at + size <= region.end;
        let start_inside = |region: &Region| region.start <= at && at < region.end;
        let index = match size {
            0 => self
                .all
                .iter()
                .position(|r| start_inside(r) && r.pointed)
                .or_else(|| self.all.iter().position(|region| region.pointed && region.end == at)),
            _ => self.all.iter().position(inside),
        }?;
        Some((index, at - self.all[index].start))
    }
}
