//! Control flow of a function: predecessors, an order of the blocks, and which block dominates which.
//!
//! *Source.* Lengauer and Tarjan, "A fast algorithm for finding dominators in a flowgraph", TOPLAS 1979, the
//! version with path compression and without balancing.
//!
//! *Cost.* `m log n` for `n` blocks and `m` branches, without recursion: functions may have any number of
//! blocks.

use crate::module::{BlockId, Body};
use palisade_base::{Id, IdVec};

/// The control flow of a function.
#[derive(Clone, Debug)]
pub struct Flow {
    predecessors: IdVec<BlockId, Vec<BlockId>>,
    /// The blocks that can be reached from the entry, each before those that it dominates.
    order: Vec<BlockId>,
    immediate: IdVec<BlockId, Option<BlockId>>,
    /// Where a walk through the tree of dominators enters and leaves each block. Not set for unreachable
    /// blocks.
    interval: IdVec<BlockId, Option<(u32, u32)>>,
}

impl Flow {
    /// The control flow of a body. Every block must end with a terminator.
    pub fn new(body: &Body) -> Flow {
        let successors: IdVec<BlockId, Vec<BlockId>> = body
            .blocks
            .iter()
            .map(|block| {
                let mut successors = Vec::new();
                if let Some(last) = block.instructions.last() {
                    last.op.for_each_successor(|to| successors.push(to));
                }
                successors
            })
            .collect();
        let mut predecessors: IdVec<BlockId, Vec<BlockId>> = body.blocks.iter().map(|_| Vec::new()).collect();
        for (from, targets) in successors.iter_enumerated() {
            targets.iter().for_each(|&to| predecessors[to].push(from));
        }
        let mut search = Search::new(body.blocks.len());
        search.walk(&successors);
        let immediate = search.dominators(&predecessors);
        let interval = intervals(&immediate, &search.order);
        Flow { predecessors, order: preorder(&interval), immediate, interval }
    }

    /// The blocks from which control can come, once per way.
    pub fn predecessors(&self, block: BlockId) -> &[BlockId] {
        &self.predecessors[block]
    }

    /// The blocks that can be reached from the entry, each before those that it dominates.
    pub fn reachable(&self) -> &[BlockId] {
        &self.order
    }

    /// Whether the block can be reached from the entry.
    pub fn is_reachable(&self, block: BlockId) -> bool {
        self.interval[block].is_some()
    }

    /// The nearest other block that is on all paths to this one.
    pub fn immediate_dominator(&self, block: BlockId) -> Option<BlockId> {
        self.immediate[block]
    }

    /// Whether every path from the entry to `block` leads through `dominator`. A block dominates itself. Every
    /// block dominates what cannot be reached.
    pub fn dominates(&self, dominator: BlockId, block: BlockId) -> bool {
        match (self.interval[dominator], self.interval[block]) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some((enter, leave)), Some((inner, _))) => enter <= inner && inner < leave,
        }
    }
}

/// The blocks in the order in which the walk entered them.
fn preorder(interval: &IdVec<BlockId, Option<(u32, u32)>>) -> Vec<BlockId> {
    let mut entered: Vec<(u32, BlockId)> =
        interval.iter_enumerated().filter_map(|(block, interval)| Some(((*interval)?.0, block))).collect();
    entered.sort_unstable();
    entered.into_iter().map(|(_, block)| block).collect()
}

/// A depth-first search from the entry, and what the algorithm keeps. Blocks are numbered by the search.
struct Search {
    /// The blocks in the order of the search.
    order: Vec<BlockId>,
    number: IdVec<BlockId, Option<usize>>,
    parent: Vec<usize>,
}

impl Search {
    fn new(blocks: usize) -> Search {
        Search { order: Vec::new(), number: (0..blocks).map(|_| None).collect(), parent: Vec::new() }
    }

    fn walk(&mut self, successors: &IdVec<BlockId, Vec<BlockId>>) {
        if successors.is_empty() {
            return;
        }
        self.visit(BlockId(0), 0);
        let mut stack = vec![(BlockId(0), 0)];
        while let Some((block, next)) = stack.last_mut() {
            let block = *block;
            let Some(&to) = successors[block].get(*next) else {
                stack.pop();
                continue;
            };
            *next += 1;
            if self.number[to].is_none() {
                let parent = self.number[block].expect("blocks on the stack have numbers");
                self.visit(to, parent);
                stack.push((to, 0));
            }
        }
    }

    fn visit(&mut self, block: BlockId, parent: usize) {
        self.number[block] = Some(self.order.len());
        self.order.push(block);
        self.parent.push(parent);
    }

    fn dominators(&self, predecessors: &IdVec<BlockId, Vec<BlockId>>) -> IdVec<BlockId, Option<BlockId>> {
        let count = self.order.len();
        let mut forest =
            Forest { ancestor: vec![None; count], label: (0..count).collect(), semi: (0..count).collect() };
        let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut dominator: Vec<usize> = vec![0; count];
        for block in (1..count).rev() {
            for from in &predecessors[self.order[block]] {
                if let Some(from) = self.number[*from] {
                    let best = forest.evaluate(from);
                    forest.semi[block] = forest.semi[block].min(forest.semi[best]);
                }
            }
            buckets[forest.semi[block]].push(block);
            let parent = self.parent[block];
            forest.ancestor[block] = Some(parent);
            for waiting in std::mem::take(&mut buckets[parent]) {
                let best = forest.evaluate(waiting);
                dominator[waiting] = if forest.semi[best] < forest.semi[waiting] { best } else { parent };
            }
        }
        let mut immediate: IdVec<BlockId, Option<BlockId>> = self.number.iter().map(|_| None).collect();
        for block in 1..count {
            if dominator[block] != forest.semi[block] {
                dominator[block] = dominator[dominator[block]];
            }
            immediate[self.order[block]] = Some(self.order[dominator[block]]);
        }
        immediate
    }
}

/// Trees of blocks whose ancestors are known; `label` is the block with the least `semi` on the way to the
/// root.
struct Forest {
    ancestor: Vec<Option<usize>>,
    label: Vec<usize>,
    semi: Vec<usize>,
}

impl Forest {
    fn evaluate(&mut self, block: usize) -> usize {
        // The blocks on the way to the root, without the root, are put below it.
        let mut path = Vec::new();
        let mut at = block;
        while let Some(above) = self.ancestor[at] {
            path.push(at);
            at = above;
        }
        let root = at;
        path.pop();
        for &at in path.iter().rev() {
            let above = self.ancestor[at].expect("it is on the way to the root");
            if self.semi[self.label[above]] < self.semi[self.label[at]] {
                self.label[at] = self.label[above];
            }
            self.ancestor[at] = Some(root);
        }
        self.label[block]
    }
}

/// Where a walk through the tree of dominators enters and leaves each block.
fn intervals(
    immediate: &IdVec<BlockId, Option<BlockId>>,
    order: &[BlockId],
) -> IdVec<BlockId, Option<(u32, u32)>> {
    let mut children: IdVec<BlockId, Vec<BlockId>> = immediate.iter().map(|_| Vec::new()).collect();
    for &block in order.iter().rev() {
        if let Some(above) = immediate[block] {
            children[above].push(block);
        }
    }
    let mut interval: IdVec<BlockId, Option<(u32, u32)>> = immediate.iter().map(|_| None).collect();
    let mut time = 0;
    let mut stack: Vec<(BlockId, bool)> = order.first().map(|&entry| (entry, false)).into_iter().collect();
    while let Some((block, done)) = stack.pop() {
        if done {
            interval[block] = interval[block].map(|(enter, _)| (enter, time));
            continue;
        }
        interval[block] = Some((time, time));
        time += 1;
        stack.push((block, true));
        stack.extend(children[block].iter().map(|&child| (child, false)));
    }
    debug_assert_eq!(time as usize, order.len(), "the walk enters every block once");
    debug_assert!(order.iter().all(|block| block.index() < immediate.len()));
    interval
}
