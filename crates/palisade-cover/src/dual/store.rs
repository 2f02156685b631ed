//! Elements of a search, packed: the numbers of their processes, in their order, and their known cells.

use super::element::{Element, Memory, View};
use super::process::{Process, ProcessTable};
use crate::values::SetId;
use palisade_base::Id;
use palisade_program::running::CellId;

/// All elements of a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    /// Where each element begins in `words`. It ends where the next one begins.
    begins: Vec<u32>,
    /// For each element: the number of its processes, their numbers, and its known cells, each in one word with the set
    /// of values.
    words: Vec<u32>,
}

impl Store {
    /// Adds an element. Returns the memory it takes, approximately.
    pub fn push(&mut self, element: &Element) -> usize {
        let before = self.words.len();
        grow(&mut self.words);
        grow(&mut self.begins);
        self.begins.push(u32::try_from(before).expect("fewer than 2^32 words are kept"));
        self.words.push(element.processes.len() as u32);
        self.words.extend(element.processes.iter().map(Process::number));
        self.words.extend(element.known().map(cell));
        size_of::<u32>() * (1 + self.words.len() - before)
    }

    /// The numbers of an element's processes, and its known cells.
    fn parts(&self, number: u32) -> (&[u32], &[u32]) {
        let begin = self.begins[number as usize] as usize;
        let end = self.begins.get(number as usize + 1).map_or(self.words.len(), |&next| next as usize);
        let (count, rest) = self.words[begin..end].split_first().expect("an element has a first word");
        rest.split_at(*count as usize)
    }

    /// An element, without unpacking it. The processes are those of the table.
    pub fn packed<'a>(&'a self, number: u32, of: &'a [Process]) -> Packed<'a> {
        let (processes, cells) = self.parts(number);
        Packed { of, processes, cells }
    }

    /// An element of a program with this many cells.
    pub fn get(&self, number: u32, table: &ProcessTable, cells: usize) -> Element {
        let entries = table.entries();
        let packed = self.packed(number, &entries);
        let mut memory: Memory = smallvec::smallvec![SetId::ALL; cells];
        packed.known().for_each(|(cell, set)| memory[cell.index()] = set);
        let processes = (0..packed.count()).map(|place| packed.process(place).clone()).collect();
        Element { memory, processes }
    }
}

/// A known cell in one word.
fn cell((cell, set): (CellId, SetId)) -> u32 {
    cell.0 << 16 | u32::from(set.0)
}

/// A quarter more room where there is none left. A list that doubles would often be half empty.
fn grow<T>(list: &mut Vec<T>) {
    if list.capacity() - list.len() < 64 {
        list.reserve_exact(list.len() / 4 + 64);
    }
}

/// A packed element.
pub(crate) struct Packed<'a> {
    of: &'a [Process],
    processes: &'a [u32],
    cells: &'a [u32],
}

impl View for Packed<'_> {
    fn count(&self) -> usize {
        self.processes.len()
    }

    fn process(&self, place: usize) -> &Process {
        &self.of[self.processes[place] as usize]
    }

    fn content(&self, cell: CellId) -> SetId {
        let set = self.known().find_map(|(known, set)| (known == cell).then_some(set));
        set.unwrap_or(SetId::ALL)
    }

    fn known(&self) -> impl Iterator<Item = (CellId, SetId)> {
        self.cells.iter().map(|&cell| (CellId(cell >> 16), SetId(cell as u16)))
    }
}
