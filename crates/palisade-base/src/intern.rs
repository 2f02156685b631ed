//! Interning: equal items get the same id. Ids are assigned in the order in which items are first seen.

use crate::{Id, IdVec};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::rc::Rc;

/// A table of items without duplicates.
#[derive(Debug)]
pub struct Interner<I, T> {
    ids: FxHashMap<Rc<T>, I>,
    items: IdVec<I, Rc<T>>,
}

impl<I: Id, T: Eq + Hash> Default for Interner<I, T> {
    fn default() -> Self {
        Interner::new()
    }
}

impl<I: Id, T: Eq + Hash> Interner<I, T> {
    /// An empty table.
    pub fn new() -> Interner<I, T> {
        Interner { ids: FxHashMap::default(), items: IdVec::new() }
    }

    /// The id of an item. A new item gets the next id.
    pub fn id(&mut self, item: T) -> I {
        if let Some(&id) = self.ids.get(&item) {
            return id;
        }
        let item = Rc::new(item);
        let id = self.items.push(Rc::clone(&item));
        self.ids.insert(item, id);
        id
    }

    /// The item with an id.
    pub fn get(&self, id: I) -> &Rc<T> {
        &self.items[id]
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All items, by id.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(Rc::as_ref)
    }
}
