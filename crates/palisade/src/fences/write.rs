//! The program with its fences, in its own language.
//!
//! *Guarantee.* The text of [`FencesAnswer::written`] was read again, and the program in it was checked like any
//! other. It is correct. C has to be compiled in between, so there the caller reads the text again and asks
//! [`FencesAnswer::confirm`].

use super::{FencesAnswer, FencesOptions};
use crate::c::{self, FilePatch};
use crate::fences::oracle::Engines;
use crate::language::InputLanguage;
use crate::{AskError, Input, Refused, read};
use palisade_base::Diagnostic;
use palisade_engine::Verdict;
use palisade_engine::{Limits, Reason, Threads};
use palisade_fences::{BodyId, FencePlace, Fencing, Oracle, PlaceId, Places};
use palisade_syntax::Language;
use palisade_syntax::edit::{FenceAt, insert_conditional_fences};
use std::collections::{BTreeMap, BTreeSet};

/// Why the fences were not written into the text.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// There is no such set.
    NoSet,
    /// Fences are not written into LLVM IR, and the text of C has to be compiled.
    Compiled,
    /// A fence is needed only in some instances of a process, which the text cannot express.
    SomeInstances(String),
    /// The text has no room for them.
    NoRoom(Vec<Diagnostic>),
    /// The new text cannot be read.
    NotReadable(Refused),
    /// The program in the new text is not correct, though the program with the same fences inserted was. In C a
    /// macro can be the reason. Otherwise this is a bug in Palisade.
    NotRight,
    /// It could not be confirmed again that the program is correct.
    Unknown(Reason),
    /// An engine failed.
    Ask(AskError),
}

impl FencesOptions {
    /// Checks a program that was read from a text with changes.
    pub fn confirm(&self, again: &Input, limits: &Limits) -> Result<(), WriteError> {
        let oracle = Engines { goal: self.goal, options: &self.check, undecided: None };
        // Fences do not prevent data races.
        let judged = oracle.judge(&again.program.without_plain(), limits).map_err(WriteError::Ask)?;
        match judged.verdict {
            Verdict::Holds => Ok(()),
            Verdict::Violated(_) => Err(WriteError::NotRight),
            Verdict::Unknown(reason) => Err(WriteError::Unknown(reason)),
        }
    }
}

/// The main file of a C program, and other files that change, with these fences and stronger accesses. This is not
/// checked.
pub(super) fn changed_text(
    input: &Input,
    places: &Places,
    fencing: &Fencing,
) -> Result<Vec<FilePatch>, WriteError> {
    if input.language != InputLanguage::C {
        return Err(WriteError::Compiled);
    }
    let (mut fences, mut accesses) = (BTreeSet::new(), Vec::new());
    for (place, kind) in places.places().iter().zip(fencing) {
        let Some(kind) = *kind else { continue };
        if place.args.is_some() {
            return Err(WriteError::SomeInstances(place.process.clone()));
        }
        match place.stronger() {
            Some(access) => accesses.push((access, kind)),
            None => _ = fences.insert(place.fence(kind)),
        }
    }
    let fences: Vec<FenceAt> = fences.into_iter().collect();
    c::change(&input.source, &fences, &accesses).map_err(WriteError::NoRoom)
}

impl FencesAnswer {
    /// The text of the program with the fences of one set, with all its files.
    pub fn written(&self, input: &Input, set: usize, limits: &Limits) -> Result<String, WriteError> {
        let language = input.language.text().ok_or(WriteError::Compiled)?;
        let patches = self.patches(input, set)?;
        let texts = (0..input.source.files().len()).map(|file| {
            let span = input.source.file_span(file);
            let patch = patches.iter().find(|patch| patch.name == input.source.file(span));
            patch.map_or_else(|| input.source.slice(span), |patch| patch.after.as_str())
        });
        let source = input.source.with_texts(texts);
        let again = read(source, language, input.int_range);
        let again = match self.options.check.threads {
            Threads::Several => again.and_then(Input::with_any_number_of_several),
            _ => again,
        };
        let again = again.map_err(WriteError::NotReadable)?;
        self.confirm(&again, limits)?;
        Ok(again.source.text().to_owned())
    }

    /// The main file, and other files of the program that change, with the fences of one set in them. This is not
    /// checked.
    pub fn patches(&self, input: &Input, set: usize) -> Result<Vec<FilePatch>, WriteError> {
        if input.language == InputLanguage::C {
            let set = self.findings.sets.get(set).ok_or(WriteError::NoSet)?;
            return changed_text(input, &self.places, &set.fencing);
        }
        let fences = self.wanted(input, set)?;
        let language = input.language.text().ok_or(WriteError::Compiled)?;
        let fenced =
            insert_conditional_fences(language, &input.source, &fences).map_err(WriteError::NoRoom)?;
        let patches = input.source.files().enumerate().map(|(file, (name, _))| FilePatch {
            name: name.to_owned(),
            before: input.source.slice(input.source.file_span(file)).to_owned(),
            after: fenced.slice(fenced.file_span(file)).to_owned(),
        });
        let patches = patches.enumerate().filter(|(file, patch)| *file == 0 || patch.before != patch.after);
        Ok(patches.map(|(_, patch)| patch).collect())
    }

    /// Checks a program that was read from a text with fences.
    pub fn confirm(&self, again: &Input, limits: &Limits) -> Result<(), WriteError> {
        self.options.confirm(again, limits)
    }

    /// The fences of one set, with the conditions under which they apply.
    fn wanted(&self, input: &Input, set: usize) -> Result<Vec<(FenceAt, Option<String>)>, WriteError> {
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
        Ok(fences)
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
