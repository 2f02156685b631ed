//! Elements of a search, packed.
//!
//! Few different processes (kind, state, word) occur in a search, and each of them in many elements. So processes are
//! kept once, with their words in one list of letters. An element is a few machine words: the numbers of its processes,
//! in their order, and its known cells.

use super::element::{Element, Memory, Process, View, Word, key};
use crate::symbol::Symbol;
use crate::values::SetId;
use hashbrown::HashTable;
use palisade_automata::StateId;
use palisade_base::Id;
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// All elements of a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    /// Where each element begins in `words`. It ends where the next one begins.
    begins: Vec<u32>,
    /// For each element: the number of its processes, their numbers, and its known cells, each in one word with the set
    /// of values.
    words: Vec<u32>,
    processes: Processes,
    /// The hashes of the elements, and their numbers.
    numbers: HashTable<(u32, u32)>,
}

/// Processes that occur in elements.
#[derive(Clone, Debug, Default)]
struct Processes {
    /// Kind and state of each, and where its word begins in `letters`. It ends where the next one begins.
    kept: Vec<(u64, u32)>,
    letters: Vec<Symbol>,
    numbers: FxHashMap<Process, u32>,
}

impl Processes {
    fn number(&mut self, process: &Process) -> u32 {
        if let Some(&number) = self.numbers.get(process) {
            return number;
        }
        let number = self.kept.len() as u32;
        self.kept.push((key(process), self.letters.len() as u32));
        self.letters.extend_from_slice(&process.word);
        self.numbers.insert(process.clone(), number);
        number
    }

    fn word(&self, number: u32) -> &[Symbol] {
        let begin = self.kept[number as usize].1 as usize;
        let end = self.kept.get(number as usize + 1).map_or(self.letters.len(), |next| next.1 as usize);
        &self.letters[begin..end]
    }
}

impl Store {
    /// Adds an element. Returns the memory it takes, approximately.
    pub fn push(&mut self, element: &Element) -> usize {
        let (before, known) = (self.words.len(), self.processes.kept.len());
        grow(&mut self.words);
        grow(&mut self.begins);
        let number = self.begins.len() as u32;
        self.begins.push(u32::try_from(before).expect("fewer than 2^32 words are kept"));
        self.words.push(element.processes.len() as u32);
        let numbers = element.processes.iter().map(|process| self.processes.number(process));
        self.words.extend(numbers);
        let cells = element.known().map(|(cell, set)| cell.0 << 16 | u32::from(set.0));
        self.words.extend(cells);
        let hash = hash(element);
        self.numbers.insert_unique(spread(hash), (hash, number), |&(hash, _)| spread(hash));
        let processes = self.processes.kept.len() - known;
        let table = 3 * size_of::<u32>();
        table
            + size_of::<u32>() * (1 + self.words.len() - before)
            + processes * 2 * size_of::<(Process, u64)>()
    }

    /// Whether this element is in the store.
    pub fn contains(&self, element: &Element) -> bool {
        let hash = hash(element);
        let same = |&(other, number): &(u32, u32)| other == hash && is_same(element, &self.packed(number));
        self.numbers.find(spread(hash), same).is_some()
    }

    /// An element, without unpacking it.
    pub fn packed(&self, number: u32) -> Packed<'_> {
        let begin = self.begins[number as usize] as usize;
        let end = self.begins.get(number as usize + 1).map_or(self.words.len(), |&next| next as usize);
        let (count, rest) = self.words[begin..end].split_first().expect("an element has a first word");
        let (processes, cells) = rest.split_at(*count as usize);
        Packed { of: &self.processes, processes, cells }
    }

    /// An element of a program with this many cells.
    pub fn get(&self, number: u32, cells: usize) -> Element {
        let packed = self.packed(number);
        let mut memory: Memory = smallvec::smallvec![SetId::ALL; cells];
        packed.known().for_each(|(cell, set)| memory[cell.index()] = set);
        let process = |place: usize| {
            let key = packed.key(place);
            let (kind, state) = ((key >> 32) as u32, StateId(key as u32));
            Process { kind, state, word: Word::from_slice(packed.word(place)) }
        };
        Element { memory, processes: (0..packed.count()).map(process).collect() }
    }
}

fn hash(element: &impl View) -> u32 {
    let mut hasher = FxHasher::default();
    for place in 0..element.count() {
        hasher.write_u64(element.key(place));
        element.word(place).iter().for_each(|letter| letter.hash(&mut hasher));
    }
    element.known().for_each(|(cell, set)| hasher.write_u32(cell.0 << 16 | u32::from(set.0)));
    (hasher.finish() >> 32) as u32
}

/// A hash of all bits of a table's entry.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn is_same(a: &impl View, b: &impl View) -> bool {
    a.count() == b.count()
        && (0..a.count()).all(|place| a.key(place) == b.key(place) && a.word(place) == b.word(place))
        && a.known().eq(b.known())
}

/// A quarter more room where there is none left. A list that doubles would often be half empty.
fn grow<T>(list: &mut Vec<T>) {
    if list.capacity() - list.len() < 64 {
        list.reserve_exact(list.len() / 4 + 64);
    }
}

/// A packed element.
pub(crate) struct Packed<'a> {
    of: &'a Processes,
    processes: &'a [u32],
    cells: &'a [u32],
}

impl View for Packed<'_> {
    fn count(&self) -> usize {
        self.processes.len()
    }

    fn key(&self, place: usize) -> u64 {
        self.of.kept[self.processes[place] as usize].0
    }

    fn word(&self, place: usize) -> &[Symbol] {
        self.of.word(self.processes[place])
    }

    fn content(&self, cell: CellId) -> SetId {
        let set = self.known().find_map(|(known, set)| (known == cell).then_some(set));
        set.unwrap_or(SetId::ALL)
    }

    fn known(&self) -> impl Iterator<Item = (CellId, SetId)> {
        self.cells.iter().map(|&cell| (CellId(cell >> 16), SetId(cell as u16)))
    }
}
