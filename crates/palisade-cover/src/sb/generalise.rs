//! Elements with fewer requirements, for small proofs.
//!
//! Each candidate lacks one requirement of an element: a process, a letter, an entry of a queue, or something about a
//! cell. Under PSO requirements on a process depend on each other, and what a candidate lacks is chosen such that the
//! rest says no more than before:
//! - A letter implies that nothing is pending for its cell. Where the last letter on a cell is left out, this stays as
//!   an empty queue, which can be left out next.
//! - The last entry of a closed queue is the newest one. If it were left out, the one before it would have to be the
//!   newest. So the queue is opened first.
//! - A process may be at any state only as long as entries of its queues are required. The last of these goes with the
//!   process.
//! - A settled cell is first allowed to have pending stores.

use super::draft::Draft;
use super::element::{Content, Element, End, Process, Queue};
use super::setup::{Setup, Sharing};
use palisade_memory::Model;
use palisade_wqo::Generalise;

impl Generalise for Setup {
    fn generalise(&self, element: &Element, give: &mut dyn FnMut(Element) -> bool) {
        debug_assert_eq!(self.sharing, Sharing::PerProcess, "letters of different processes are not ordered");
        let mut try_it = |change: &dyn Fn(&mut Draft)| {
            let mut draft = Draft::of(element);
            change(&mut draft);
            let grounded = draft.processes.iter().all(is_grounded);
            grounded && self.normalise(&mut draft).is_some() && give(self.sorted(&draft).0)
        };
        for (index, process) in element.processes.iter().enumerate() {
            let whole = |draft: &mut Draft| {
                draft.processes.remove(index);
                draft.dropped.remove(index);
            };
            let letter = |draft: &mut Draft, place: usize| self.leave_out_letter(draft, index, place);
            if try_it(&whole) || (0..process.word.len()).any(|place| try_it(&|draft| letter(draft, place))) {
                return;
            }
            for queue in &process.queues {
                if less(queue).any(|less| try_it(&|draft| put(&mut draft.processes[index], queue, &less))) {
                    return;
                }
            }
        }
        for (cell, &content) in element.memory.iter().enumerate() {
            let known = Content::known(content.set());
            let unsettled = |draft: &mut Draft| draft.memory[cell] = known;
            if content.is_settled() && known != Content::ANY && try_it(&unsettled)
                || content != Content::ANY && try_it(&|draft| draft.memory[cell] = Content::ANY)
            {
                return;
            }
        }
    }

    /// Every requirement counts, because each of them can be left out.
    fn size(&self, element: &Element) -> usize {
        element.requirements()
    }
}

/// Whether something says where the process is: a state, or stores that it has executed.
fn is_grounded(process: &Process) -> bool {
    process.state.is_some() || process.queues.iter().any(|queue| !queue.values.is_empty())
}

impl Setup {
    fn leave_out_letter(&self, draft: &mut Draft, process: usize, place: usize) {
        let of = &mut draft.processes[process];
        let cell = of.word.remove(place).cell();
        let stores = self.model == Model::Pso && self.kinds[of.kind as usize].stored[cell].is_some();
        if stores && !of.has_letter(cell) {
            of.set_queue(Queue::empty(cell));
        }
    }
}

/// Queues that require less. `None` requires nothing.
fn less(queue: &Queue) -> impl Iterator<Item = Option<Queue>> {
    let open = Queue { end: End::Open, ..queue.clone() };
    let opened = (queue.end == End::Closed && !queue.values.is_empty()).then(|| Some(open));
    let emptied = queue.is_empty().then_some(None);
    let newest = if queue.end == End::Closed { 1 } else { 0 };
    let shorter = (0..queue.values.len().saturating_sub(newest)).map(|place| {
        let mut shorter = queue.clone();
        shorter.values.remove(place);
        (!shorter.values.is_empty()).then_some(shorter)
    });
    opened.into_iter().chain(emptied).chain(shorter)
}

fn put(process: &mut Process, queue: &Queue, less: &Option<Queue>) {
    match less {
        Some(less) => process.set_queue(less.clone()),
        None => process.forget_queue(queue.cell),
    }
}
