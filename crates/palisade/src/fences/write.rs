//! The program with its fences, in its own language.
//!
//! *Guarantee.* The returned text was read again, and the program in it was checked like any other. It is
//! correct.

use super::FencesAnswer;
use crate::AskError;
use crate::fences::oracle::Engines;
use crate::{Input, Refused, read};
use palisade_base::{Diagnostic, Source};
use palisade_engine::Verdict;
use palisade_engine::{Limits, Reason};
use palisade_fences::{BodyId, FencePlace, Oracle, PlaceId};
use palisade_syntax::Language;
use palisade_syntax::edit::{FenceAt, insert_conditional_fences};
use std::collections::BTreeMap;

/// Why the fences were not written into the text.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// There is no such set.
    NoSet,
    /// The program was compiled, and fences are not written into the text of such programs.
    Compiled,
    /// A fence is needed only in some instances of a process, which the text cannot express.
    SomeInstances(String),
    /// The text has no room for them.
    NoRoom(Vec<Diagnostic>),
    /// The new text cannot be read.
    NotReadable(Refused),
    /// The program in the new text is not correct, though the program with the same fences inserted was. This
    /// is a bug in Palisade.
    NotRight,
    /// It could not be confirmed again that the program is correct.
    Unknown(Reason),
    /// An engine failed.
    Ask(AskError),
}

impl FencesAnswer {
    /// The text of the program with the fences of one set.
    pub fn written(&self, input: &Input, set: usize, limits: &Limits) -> Result<String, WriteError> {
        let set = self.findings.sets.get(set).ok_or(WriteError::NoSet)?;
        let mut wanted: BTreeMap<FenceAt, Vec<PlaceId>> = BTreeMap::new();
        for fence in &set.fences {
            let at = self.places.places()[fence.place].fence(fence.kind);
            wanted.entry(at).or_default().push(fence.place);
        }
        let mut fences = Vec::new();
        for (&at, there) in &wanted {
            // The text has room for only one fence at a place.
            let is_same = |other: &&FenceAt| (other.span, other.side) == (at.span, at.side);
            if wanted.keys().filter(is_same).count() > 1 {
                return Err(WriteError::SomeInstances(self.places.places()[there[0]].process.clone()));
            }
            fences.push((at, self.condition(input, at, there)?));
        }
        let language = input.language.text().ok_or(WriteError::Compiled)?;
        let text = insert_conditional_fences(language, &input.source, &fences);
        let text = text.map_err(WriteError::NoRoom)?;
        let source = Source::new(input.source.name(), text);
        let again = read(source, language, input.int_range).map_err(WriteError::NotReadable)?;
        let oracle = Engines { goal: self.options.goal, options: &self.options.check, undecided: None };
        let judged = oracle.judge(&again.program, limits).map_err(WriteError::Ask)?;
        match judged.verdict {
            Verdict::Holds => Ok(again.source.text().to_owned()),
            Verdict::Violated(_) => Err(WriteError::NotRight),
            Verdict::Unknown(reason) => Err(WriteError::Unknown(reason)),
        }
    }

    /// The condition under which a fence applies, if these places do not cover all instances.
    fn condition(&self, input: &Input, at: FenceAt, there: &[PlaceId]) -> Result<Option<String>, WriteError> {
        let places = self.places.places();
        let same = places.iter_enumerated().filter(|(_, place)| place.fence(at.kind) == at);
        let missing: Vec<&FencePlace> =
            same.filter(|(id, _)| !there.contains(id)).map(|(_, place)| place).collect();
        let Some(other) = missing.first() else { return Ok(None) };
        let instance = |id: &PlaceId| {
            let place = &places[*id];
            let (BodyId::Template(template), Some(args)) = (place.body, &place.args) else { return None };
            // Templates that share a text cannot be distinguished in it.
            if place.body != other.body {
                return None;
            }
            let params = input.program.templates[template].params.iter().zip(args);
            let equations = params.map(|(param, value)| format!("{} == {value}", param.name));
            Some(equations.collect::<Vec<_>>().join(" && "))
        };
        let instances: Option<Vec<String>> = there.iter().map(instance).collect();
        match instances {
            Some(instances) if input.language == Language::Pal => Ok(Some(instances.join(" || "))),
            _ => Err(WriteError::SomeInstances(places[there[0]].process.clone())),
        }
    }
}
