//! Bit sets, searchable by subset and by superset.
//!
//! *Problem.* Among thousands of stored masks, which are subsets (or supersets) of a given one?
//!
//! *Idea.* A trie over slices of 16 bits. A leaf that grows too long is split by the next slice. For each branch, the bits
//! that all its masks have, and those that at least one of them has, are kept beside those of the other branches. A query
//! descends only into branches that these do not rule out. Leaves are long, because reading the next mask takes far less
//! time than finding another leaf in memory.
//!
//! *Invariants*
//! 1. All masks below a branch agree in the slices above it.
//! 2. Only leaves of the last level are longer than [`MAX_LEAF`].
//! 3. The items of a leaf increase, so those since a given one are its last ones.
//! 4. No item of a branch is later than the split says.
//! 5. All masks of a branch have the bits that it has in common, and no others than it has at all.

/// A longer leaf is split.
const MAX_LEAF: usize = 96;
const SLICE: u32 = 16;
const LEVELS: u32 = 2 * u64::BITS / SLICE;

/// A bit set.
pub(crate) type Mask = [u64; 2];

pub(crate) fn is_subset(a: Mask, b: Mask) -> bool {
    a[0] & !b[0] == 0 && a[1] & !b[1] == 0
}

/// Items with masks.
#[derive(Clone, Debug)]
pub(crate) struct Masks {
    bounds: Bounds,
    tree: Tree,
}

#[derive(Clone, Debug)]
enum Tree {
    /// The masks, and the items.
    Leaf(Vec<Mask>, Vec<u32>),
    Split(Box<Split>),
}

/// The slices of the branches, the latest item of each, the bounds of their masks, and the branches.
#[derive(Clone, Debug, Default)]
struct Split {
    slices: Vec<u16>,
    latest: Vec<u32>,
    bounds: Vec<Bounds>,
    branches: Vec<Tree>,
}

/// Bits that some masks have in common, and bits that at least one of them has.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    common: Mask,
    any: Mask,
}

impl Bounds {
    /// Those of no masks.
    const NONE: Bounds = Bounds { common: [u64::MAX; 2], any: [0; 2] };

    fn add(&mut self, mask: Mask) {
        for (half, bits) in mask.into_iter().enumerate() {
            self.common[half] &= bits;
            self.any[half] |= bits;
        }
    }
}

impl Default for Masks {
    fn default() -> Self {
        Masks { bounds: Bounds::NONE, tree: Tree::default() }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Tree::Leaf(Vec::new(), Vec::new())
    }
}

fn slice(mask: Mask, level: u32) -> u16 {
    let of_half = u64::BITS / SLICE;
    (mask[(level / of_half) as usize] >> (SLICE * (level % of_half))) as u16
}

impl Masks {
    pub fn insert(&mut self, mask: Mask, item: u32) {
        self.bounds.add(mask);
        self.tree.insert(0, mask, item);
    }

    /// The first item, of those from `since` on, whose mask is a subset of the given one and that passes the test.
    pub fn find_subset(&self, since: u32, mask: Mask, test: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        if !is_subset(self.bounds.common, mask) {
            return None;
        }
        self.tree.find_subset(since, mask, test)
    }

    /// Removes the items whose masks are supersets of the given one and that pass the test. Returns how many.
    pub fn remove_supersets(&mut self, mask: Mask, test: &mut impl FnMut(u32) -> bool) -> usize {
        if !is_subset(mask, self.bounds.any) {
            return 0;
        }
        self.tree.remove_supersets(mask, test)
    }

    /// Adds all items to a list.
    pub fn collect(&self, all: &mut Vec<u32>) {
        self.tree.collect(all);
    }
}

impl Tree {
    fn insert(&mut self, level: u32, mask: Mask, item: u32) {
        match self {
            Tree::Leaf(masks, items) if items.len() < MAX_LEAF || level == LEVELS => {
                // Nearly always the last place.
                let place = items.iter().rposition(|&other| other < item).map_or(0, |before| before + 1);
                masks.insert(place, mask);
                items.insert(place, item);
            }
            Tree::Leaf(masks, items) => {
                let (masks, items) = (std::mem::take(masks), std::mem::take(items));
                *self = Tree::Split(Box::default());
                for (mask, item) in masks.into_iter().zip(items).chain([(mask, item)]) {
                    self.insert(level, mask, item);
                }
            }
            Tree::Split(split) => {
                let slice = slice(mask, level);
                let place = split.slices.iter().position(|&other| other == slice).unwrap_or_else(|| {
                    split.slices.push(slice);
                    split.latest.push(item);
                    split.bounds.push(Bounds::NONE);
                    split.branches.push(Tree::default());
                    split.slices.len() - 1
                });
                split.latest[place] = split.latest[place].max(item);
                split.bounds[place].add(mask);
                split.branches[place].insert(level + 1, mask, item);
            }
        }
    }

    fn find_subset(&self, since: u32, mask: Mask, test: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        match self {
            Tree::Leaf(masks, items) => {
                let first = if since == 0 { 0 } else { items.partition_point(|&item| item < since) };
                let subsets = masks[first..].iter().enumerate().filter(|(_, other)| is_subset(**other, mask));
                subsets.map(|(place, _)| items[first + place]).find(|&item| test(item))
            }
            Tree::Split(split) => {
                let fits =
                    split.bounds.iter().enumerate().filter(|(_, bounds)| is_subset(bounds.common, mask));
                let mut recent = fits.filter(|&(place, _)| since == 0 || split.latest[place] >= since);
                recent.find_map(|(place, _)| split.branches[place].find_subset(since, mask, test))
            }
        }
    }

    fn remove_supersets(&mut self, mask: Mask, test: &mut impl FnMut(u32) -> bool) -> usize {
        match self {
            Tree::Leaf(masks, items) => {
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
            Tree::Split(split) => {
                let fits = split.bounds.iter().zip(&mut split.branches);
                let fits = fits.filter(|(bounds, _)| is_subset(mask, bounds.any));
                fits.map(|(_, branch)| branch.remove_supersets(mask, test)).sum()
            }
        }
    }

    fn collect(&self, all: &mut Vec<u32>) {
        match self {
            Tree::Leaf(_, items) => all.extend(items),
            Tree::Split(split) => split.branches.iter().for_each(|branch| branch.collect(all)),
        }
    }

    /// Checks the invariants. `above` has the slices of the branches above.
    #[cfg(test)]
    fn check_invariants(&self, above: &[u16], bounds: Bounds) {
        let level = above.len() as u32;
        match self {
            Tree::Leaf(masks, items) => {
                assert_eq!(masks.len(), items.len(), "each item has a mask");
                assert!(
                    items.len() <= MAX_LEAF || level == LEVELS,
                    "invariant 2: a leaf of level {level} is short"
                );
                assert!(items.is_sorted(), "invariant 3: items increase");
                for &mask in masks {
                    let agrees = (0..level).all(|level| slice(mask, level) == above[level as usize]);
                    assert!(agrees, "invariant 1: {mask:x?} is below {above:x?}");
                    let within = is_subset(bounds.common, mask) && is_subset(mask, bounds.any);
                    assert!(within, "invariant 5: {mask:x?} is within {bounds:x?}");
                }
            }
            Tree::Split(split) => {
                let Split { slices, latest, bounds: all, branches } = &**split;
                assert_eq!(slices.len(), branches.len(), "invariant 1: each branch has a slice");
                assert_eq!(slices.len(), latest.len(), "invariant 4: each branch has a latest item");
                assert_eq!(slices.len(), all.len(), "invariant 5: each branch has bounds");
                for (place, branch) in branches.iter().enumerate() {
                    let (common, any) = (all[place].common, all[place].any);
                    let within = is_subset(bounds.common, common) && is_subset(any, bounds.any);
                    assert!(within, "invariant 5: the bounds of a branch are within those above");
                    branch.check_invariants(&[above, &[slices[place]]].concat(), all[place]);
                    let mut items = Vec::new();
                    branch.collect(&mut items);
                    assert!(items.iter().all(|&item| item <= latest[place]), "invariant 4: none is later");
                }
            }
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
        fn finds_subsets_and_supersets(stored in proptest::collection::vec(mask(), 0..600), query in mask(), since in 0u32..600) {
            let mut masks = Masks::default();
            // Some come late.
            let late = |&item: &usize| item % 7 == 3;
            let early = (0..stored.len()).filter(|item| !late(item));
            for item in early.chain((0..stored.len()).filter(late)) {
                masks.insert(stored[item], item as u32);
            }
            masks.tree.check_invariants(&[], masks.bounds);
            let sorted = |mut items: Vec<u32>| { items.sort_unstable(); items };
            let those = |fits: &dyn Fn(Mask) -> bool| -> Vec<u32> {
                (0..stored.len()).filter(|&item| fits(stored[item])).map(|item| item as u32).collect()
            };
            let mut met = Vec::new();
            masks.find_subset(0, query, &mut |item| { met.push(item); false });
            prop_assert_eq!(sorted(met), those(&|mask| is_subset(mask, query)));
            let mut met = Vec::new();
            masks.find_subset(since, query, &mut |item| { met.push(item); false });
            let late = those(&|mask| is_subset(mask, query)).into_iter().filter(|&item| item >= since);
            prop_assert_eq!(sorted(met), late.collect::<Vec<_>>());
            let mut met = Vec::new();
            let removed = masks.remove_supersets(query, &mut |item| { met.push(item); item % 2 == 0 });
            prop_assert_eq!(removed, met.iter().filter(|&&item| item % 2 == 0).count());
            prop_assert_eq!(sorted(met), those(&|mask| is_subset(query, mask)));
            masks.tree.check_invariants(&[], masks.bounds);
            let mut left = Vec::new();
            masks.collect(&mut left);
            prop_assert_eq!(left.len(), stored.len() - removed);
        }
    }
}
