//! One state for all images of a state, as far as that is cheap.
//!
//! *How.* Each thread gets a colour that does not depend on who is who: its shape, the contents of its cells, and
//! where it is mentioned. Then colours are refined by the colours of the threads that a thread mentions, or is
//! mentioned by, until no further threads are distinguished (Weisfeiler and Leman, 1968). The threads of each block are
//! sorted by colour.
//!
//! *Guarantee.* The result is an image of the state. Two images of one state get the same result if threads of the
//! same colour can be exchanged without changing the state, which is nearly always so. Otherwise the search visits
//! more states than necessary. Nothing depends on the colours but the number of states.

use super::{Permutation, Symmetry};
use crate::automaton::{Automaton, Need};
use crate::layout::Layout;
use palisade_automata::on_demand::LocalId;
use palisade_base::Id;
use palisade_program::running::ThreadId;
use smallvec::SmallVec;

/// An image that has no number yet.
pub(crate) struct Unknown;

/// One thread mentions another. The label says where.
struct Mention {
    from: usize,
    to: usize,
    label: u64,
}

type Colours = SmallVec<[u64; super::MAX_POSITIONS]>;

/// Scatters bits (the finaliser of SplitMix64).
fn mix(a: u64, b: u64) -> u64 {
    let mut x = a.wrapping_add(b.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x2545_F491_4F6C_DD1D);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

impl Symmetry {
    /// The permutation that leads to the normal form of a packed state.
    pub fn to_normal(&self, automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> Permutation {
        let mut g = Permutation::identity();
        let Some(colours) = self.colours(automaton, layout, state) else { return g };
        for block in &self.blocks {
            let mut order: SmallVec<[usize; super::MAX_POSITIONS]> = block.clone().collect();
            order.sort_by_key(|&position| colours[position]);
            for (image, position) in block.clone().zip(order) {
                g.set(position, image);
            }
        }
        g
    }

    /// Replaces a packed state by its image. If a thread state of the image has no number, the state stays as it
    /// is, and the thread states that need one are pushed.
    pub fn apply(
        &self,
        automaton: &Automaton<'_>,
        layout: &Layout,
        g: &Permutation,
        state: &mut [u64],
        needs: &mut Vec<Need>,
    ) -> Result<(), Unknown> {
        if *g == Permutation::identity() {
            return Ok(());
        }
        let mut locals: SmallVec<[LocalId; 16]> = SmallVec::new();
        let before = needs.len();
        for field in &layout.threads {
            let local = LocalId(field.get(state));
            match self.image(g, automaton.note(local).shape) {
                Some(image) => locals.push(image),
                None => needs.push(Need::Image(local, *g)),
            }
        }
        if needs.len() > before {
            return Err(Unknown);
        }
        let codes: SmallVec<[u32; 32]> =
            self.moved.iter().map(|&cell| layout.cells[cell].get(state)).collect();
        for (index, local) in locals.into_iter().enumerate() {
            let position = self.position[index];
            let to = position.map_or(index, |position| self.threads[g.image(position)].index());
            layout.threads[to].set(state, local.0);
        }
        for (&cell, code) in self.moved.iter().zip(codes) {
            let image = match automaton.values.member(cell, code) {
                Some((family, index)) => {
                    let start = self.kinds[self.cells[cell] as usize].families[family as usize].0;
                    automaton.values.code_of_member(cell, family, g.image(start + index) - start)
                }
                None => code,
            };
            layout.cells[self.cell(g, cell)].set(state, image);
        }
        Ok(())
    }

    /// The colours of all positions, or `None` if some thread state has no shape.
    fn colours(&self, automaton: &Automaton<'_>, layout: &Layout, state: &[u64]) -> Option<Colours> {
        let mut colours: Colours = SmallVec::from_elem(0, self.threads.len());
        let mut mentions: SmallVec<[Mention; 32]> = SmallVec::new();
        for (index, field) in layout.threads.iter().enumerate() {
            let shape = automaton.note(LocalId(field.get(state))).shape;
            if shape.number == 0 {
                return None;
            }
            let own = self.position[index];
            for (place, to) in shape.mentions.iter().enumerate() {
                let label = mix(place as u64, 1);
                match own {
                    Some(from) if from == to => {}
                    Some(from) => mentions.push(Mention { from, to, label }),
                    None => colours[to] = colours[to].wrapping_add(mix(shape.number.into(), label)),
                }
            }
            if let Some(own) = own {
                colours[own] = colours[own].wrapping_add(mix(shape.number.into(), 2));
            }
        }
        for &cell in &self.moved {
            let code = layout.cells[cell].get(state);
            let member = automaton.values.member(cell, code).map(|(family, index)| {
                (family, self.kinds[self.cells[cell] as usize].families[family as usize].0 + index)
            });
            match (self.owner(cell), member) {
                (None, None) => {}
                (None, Some((family, to))) => {
                    colours[to] = colours[to].wrapping_add(mix(mix(cell.0.into(), 3), family.into()));
                }
                (Some((own, from)), None) => {
                    colours[from] = colours[from].wrapping_add(mix(mix(own.into(), 4), code.into()));
                }
                (Some((own, from)), Some((family, to))) => {
                    let label = mix(mix(own.into(), 5), family.into());
                    match from == to {
                        true => colours[from] = colours[from].wrapping_add(label),
                        false => mentions.push(Mention { from, to, label }),
                    }
                }
            }
        }
        self.refine(&mut colours, &mentions);
        Some(colours)
    }

    /// Refines colours by those of the threads that a thread mentions, or is mentioned by.
    fn refine(&self, colours: &mut Colours, mentions: &[Mention]) {
        let mut known = different(colours);
        while !mentions.is_empty() && known < colours.len() {
            let mut finer: Colours = colours.iter().map(|&colour| mix(colour, 6)).collect();
            for &Mention { from, to, label } in mentions {
                finer[from] = finer[from].wrapping_add(mix(mix(label, 7), colours[to]));
                finer[to] = finer[to].wrapping_add(mix(mix(label, 8), colours[from]));
            }
            *colours = finer;
            let now = different(colours);
            if now <= known {
                break;
            }
            known = now;
        }
    }
}

/// How many different colours there are.
fn different(colours: &[u64]) -> usize {
    let mut sorted: Colours = colours.iter().copied().collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

/// The positions of all threads, by their index.
pub(super) fn positions(threads: &[ThreadId], instances: usize) -> Vec<Option<usize>> {
    let position = |index: usize| threads.iter().position(|thread| thread.index() == index);
    (0..instances).map(position).collect()
}
