//! The program with its fences, in its own language.
//!
//! *Guarantee.* The text that is given back was read again, and the program in it was judged like any other: it is right.

use super::{FencesAnswer, OracleError};
use crate::fences::oracle::Engines;
use crate::{Input, Refused, read};
use palisade_base::{Diagnostic, Source};
use palisade_engine::{Budget, Progress, Reason};
use palisade_fences::{Oracle, PlaceId, Verdict};
use palisade_syntax::edit::{FenceAt, FenceKind, insert_fences};
use std::collections::BTreeMap;

/// Why the fences are not in the text.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// There is no such set.
    NoSet,
    /// A fence is wanted in some instances of a process only, which the text cannot say.
    SomeInstances(String),
    /// The text has no room for them.
    NoRoom(Vec<Diagnostic>),
    /// The new text cannot be read.
    NotReadable(Refused),
    /// The program of the new text is not right, though it was with fences in its place: a bug in Palisade.
    NotRight,
    /// Whether it is right was not found out again.
    Unknown(Reason),
    /// An engine failed.
    Oracle(OracleError),
}

impl FencesAnswer {
    /// The text of the program with the fences of a set.
    pub fn written(
        &self,
        input: &Input,
        set: usize,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<String, WriteError> {
        let set = self.findings.sets.get(set).ok_or(WriteError::NoSet)?;
        let mut wanted: BTreeMap<FenceAt, Vec<PlaceId>> = BTreeMap::new();
        for fence in &set.fences {
            let at = self.places.places()[fence.place].fence(fence.kind);
            wanted.entry(at).or_default().push(fence.place);
        }
        for (at, there) in &wanted {
            self.in_all_instances(*at, there)?;
        }
        let fences: Vec<FenceAt> = wanted.into_keys().collect();
        let text = insert_fences(input.language, &input.source, &fences).map_err(WriteError::NoRoom)?;
        let source = Source::new(input.source.name(), text);
        let again = read(source, input.language, input.int_range).map_err(WriteError::NotReadable)?;
        let oracle = Engines { goal: self.options.goal, options: &self.options.check };
        let judged = oracle.judge(&again.program, budget, progress).map_err(WriteError::Oracle)?;
        match judged.verdict {
            Verdict::Right => Ok(again.source.text().to_owned()),
            Verdict::Wrong(_) => Err(WriteError::NotRight),
            Verdict::Unknown(reason) => Err(WriteError::Unknown(reason)),
        }
    }

    /// Checks that the places are all there are in the instances of a process, so that one fence in the text is meant.
    fn in_all_instances(&self, at: FenceAt, there: &[PlaceId]) -> Result<(), WriteError> {
        let kind: FenceKind = at.kind;
        let same = self.places.places().iter_enumerated().filter(|(_, place)| place.fence(kind) == at);
        for (other, place) in same {
            if !there.contains(&other) {
                return Err(WriteError::SomeInstances(place.process.clone()));
            }
        }
        Ok(())
    }
}
