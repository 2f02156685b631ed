//! Bit sets, searchable by subset and by superset.
//!
//! *Problem.* Among thousands of stored masks, which are subsets (or supersets) of a given one?
//!
//! *Idea.* A trie over slices of 16 bits. A leaf that grows too long is split by the next slice. A query
//! descends only into branches whose slice is a subset (or superset) of its own.
//!
//! *Invariants*
//! 1. All masks below a branch agree in the slices above it.
//! 2. Only leaves of the last level are longer than [`MAX_LEAF`].

/// A longer leaf is split.
const MAX_LEAF: usize = 32;
const SLICE: u32 = 16;
const LEVELS: u32 = 2 * u64::BITS / SLICE;

/// A bit set.
pub(crate) type Mask = [u64; 2];

fn is_subset(a: Mask, b: Mask) -> bool {
    a[0] & !b[0] == 0 && a[1] & !b[1] == 0
}

/// Items with masks.
#[derive(Clone, Debug)]
pub(crate) enum Masks {
    /// The masks, and the items.
    Leaf(Vec<Mask>, Vec<u32>),
    /// The slices of the branches, and the branches.
    Split(Vec<u16>, Vec<Masks>),
}

impl Default for Masks {
    fn default() -> Self {
        Masks::Leaf(Vec::new(), Vec::new())
    }
}

fn slice(mask: Mask, level: u32) -> u16 {
    let of_half = u64::BITS / SLICE;
    (mask[(level / of_half) as usize] >> (SLICE * (level % of_half))) as u16
}

impl Masks {
    pub fn insert(&mut self, mask: Mask, item: u32) {
        self.insert_at(0, mask, item);
    }

    fn insert_at(&mut self, level: u32, mask: Mask, item: u32) {
        match self {
            Masks::Leaf(masks, items) if items.len() < MAX_LEAF || level == LEVELS => {
                masks.push(mask);
                items.push(item);
            }
            Masks::Leaf(masks, items) => {
                let (masks, items) = (std::mem::take(masks), std::mem::take(items));
                *self = Masks::Split(Vec::new(), Vec::new());
                for (mask, item) in masks.into_iter().zip(items).chain([(mask, item)]) {
                    self.insert_at(level, mask, item);
                }
            }
            Masks::Split(slices, branches) => {
                let slice = slice(mask, level);
                let place = slices.iter().position(|&other| other == slice).unwrap_or_else(|| {
                    slices.push(slice);
                    branches.push(Masks::default());
                    slices.len() - 1
                });
                branches[place].insert_at(level + 1, mask, item);
            }
        }
    }

    /// The first item whose mask is a subset of the given one and that passes the test.
    pub fn find_subset(&self, mask: Mask, test: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        self.find_subset_at(0, mask, test)
    }

    fn find_subset_at(&self, level: u32, mask: Mask, test: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        match self {
            Masks::Leaf(masks, items) => {
                let mut subsets = masks.iter().zip(items).filter(|(other, _)| is_subset(**other, mask));
                subsets.find(|(_, item)| test(**item)).map(|(_, &item)| item)
            }
            Masks::Split(slices, branches) => {
                let lacking = !slice(mask, level);
                let fits = slices.iter().zip(branches).filter(|(slice, _)| **slice & lacking == 0);
                fits.into_iter().find_map(|(_, branch)| branch.find_subset_at(level + 1, mask, test))
            }
        }
    }

    /// Removes the items whose masks are supersets of the given one and that pass the test. Returns how many.
    pub fn remove_supersets(&mut self, mask: Mask, test: &mut impl FnMut(u32) -> bool) -> usize {
        self.remove_supersets_at(0, mask, test)
    }

    fn remove_supersets_at(&mut self, level: u32, mask: Mask, test: &mut impl FnMut(u32) -> bool) -> usize {
        match self {
            Masks::Leaf(masks, items) => {
                let before = items.len();
                let mut place = 0;
                while place < items.len() {
                    if is_subset(mask, masks[place]) && test(items[place]) {
                        masks.remove(place);
                        items.remove(place);
                    } else {
                        place += 1;
                    }
                }
                before - items.len()
            }
            Masks::Split(slices, branches) => {
                let wanted = slice(mask, level);
                let fits = slices.iter().zip(branches).filter(|(slice, _)| wanted & !**slice == 0);
                fits.map(|(_, branch)| branch.remove_supersets_at(level + 1, mask, test)).sum()
            }
        }
    }

    /// Checks the invariants. `above` has the slices of the branches above.
    #[cfg(test)]
    fn check_invariants(&self, above: &[u16]) {
        let level = above.len() as u32;
        match self {
            Masks::Leaf(masks, items) => {
                assert_eq!(masks.len(), items.len(), "each item has a mask");
                assert!(
                    items.len() <= MAX_LEAF || level == LEVELS,
                    "invariant 2: a leaf of level {level} is short"
                );
                for &mask in masks {
                    let agrees = (0..level).all(|level| slice(mask, level) == above[level as usize]);
                    assert!(agrees, "invariant 1: {mask:x?} is below {above:x?}");
                }
            }
            Masks::Split(slices, branches) => {
                assert_eq!(slices.len(), branches.len(), "invariant 1: each branch has a slice");
                for (&slice, branch) in slices.iter().zip(branches) {
                    branch.check_invariants(&[above, &[slice]].concat());
                }
            }
        }
    }

    /// Adds all items to a list.
    pub fn collect(&self, all: &mut Vec<u32>) {
        match self {
            Masks::Leaf(_, items) => all.extend(items),
            Masks::Split(_, branches) => branches.iter().for_each(|branch| branch.collect(all)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Masks with few bits, in all slices.
    fn mask() -> impl Strategy<Value = Mask> {
        proptest::collection::vec(0usize..14, 0..5).prop_map(|bits| {
            let mut mask = [0, 0];
            bits.into_iter().for_each(|bit| mask[bit * 9 / 64] |= 1 << (bit * 9 % 64));
            mask
        })
    }

    proptest! {
        #[test]
        fn finds_subsets_and_supersets(stored in proptest::collection::vec(mask(), 0..200), query in mask()) {
            let mut masks = Masks::default();
            for (item, &mask) in stored.iter().enumerate() {
                masks.insert(mask, item as u32);
            }
            masks.check_invariants(&[]);
            let sorted = |mut items: Vec<u32>| { items.sort_unstable(); items };
            let those = |fits: &dyn Fn(Mask) -> bool| -> Vec<u32> {
                (0..stored.len()).filter(|&item| fits(stored[item])).map(|item| item as u32).collect()
            };
            let mut met = Vec::new();
            masks.find_subset(query, &mut |item| { met.push(item); false });
            prop_assert_eq!(sorted(met), those(&|mask| is_subset(mask, query)));
            let mut met = Vec::new();
            let removed = masks.remove_supersets(query, &mut |item| { met.push(item); item % 2 == 0 });
            prop_assert_eq!(removed, met.iter().filter(|&&item| item % 2 == 0).count());
            prop_assert_eq!(sorted(met), those(&|mask| is_subset(query, mask)));
            masks.check_invariants(&[]);
            let mut left = Vec::new();
            masks.collect(&mut left);
            prop_assert_eq!(left.len(), stored.len() - removed);
        }
    }
}
