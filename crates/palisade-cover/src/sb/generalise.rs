//! Elements with fewer requirements, for small proofs under TSO and SC.
//!
//! Under PSO, requirements on a process depend on each other: a letter implies that nothing is pending, and a process
//! may be at any state only as long as something is required of its queues. There, elements stay as they are.

use super::draft::Draft;
use super::element::{Content, Element};
use super::setup::{Setup, Sharing};
use palisade_memory::Model;
use palisade_wqo::Generalise;

impl Generalise for Setup {
    /// Leaves out a process, a letter, or a known cell.
    fn generalise(&self, element: &Element, give: &mut dyn FnMut(Element) -> bool) {
        debug_assert_eq!(self.sharing, Sharing::PerProcess, "letters of different processes are not ordered");
        if self.model == Model::Pso {
            return;
        }
        let mut try_it = |change: &dyn Fn(&mut Draft)| {
            let mut draft = Draft::of(element);
            change(&mut draft);
            self.normalise(&mut draft).is_some() && give(self.sorted(&draft).0)
        };
        for (index, process) in element.processes.iter().enumerate() {
            let whole = |draft: &mut Draft| {
                draft.processes.remove(index);
                draft.dropped.remove(index);
            };
            let letter = |draft: &mut Draft, letter: usize| _ = draft.processes[index].word.remove(letter);
            if try_it(&whole) || (0..process.word.len()).any(|place| try_it(&|draft| letter(draft, place))) {
                return;
            }
        }
        for (cell, &content) in element.memory.iter().enumerate() {
            if content != Content::ANY && try_it(&|draft| draft.memory[cell] = Content::ANY) {
                return;
            }
        }
    }
}
