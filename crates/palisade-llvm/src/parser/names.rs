//! Names and numbers of one kind of thing, with their ids. `%5` and `%"5"` are different.

use crate::token::Name;
use rustc_hash::FxHashMap;

/// A table of names.
pub(super) struct Names<I> {
    named: FxHashMap<Box<str>, I>,
    numbered: FxHashMap<u32, I>,
}

impl<I> Default for Names<I> {
    fn default() -> Self {
        Names { named: FxHashMap::default(), numbered: FxHashMap::default() }
    }
}

impl<I: Copy> Names<I> {
    /// The id of a name. `text` is the name without escapes.
    pub(super) fn get(&self, name: Name<'_>, text: &str) -> Option<I> {
        match name {
            Name::Number(number) => self.numbered.get(&number).copied(),
            Name::Plain(_) | Name::Quoted(_) => self.named.get(text).copied(),
        }
    }

    pub(super) fn insert(&mut self, name: Name<'_>, text: &str, id: I) {
        match name {
            Name::Number(number) => self.numbered.insert(number, id),
            Name::Plain(_) | Name::Quoted(_) => self.named.insert(text.into(), id),
        };
    }
}
