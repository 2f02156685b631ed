//! Cycles of directed graphs. The memory is kept from one graph to the next: a search judges many short executions.
//!
//! *Source.* Kahn, CACM 5(11), 1962, for whether there is a cycle; Tarjan, SIAM J. Comput. 1(2), 1972, for the strongly
//! connected components.
//!
//! *Cost.* Linear.

/// A node, from 0.
pub type Node = u32;

/// A graph.
#[derive(Debug, Default)]
pub struct Graph {
    /// Successors of all nodes, one after the other, and where those of each node begin.
    successors: Vec<Node>,
    first: Vec<u32>,
    filled: Vec<u32>,
    /// For Kahn's algorithm: predecessors that are left.
    left: Vec<u32>,
    ready: Vec<Node>,
    /// For Tarjan's algorithm.
    index: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    open: Vec<Node>,
    path: Vec<(Node, u32)>,
}

const UNSEEN: u32 = u32::MAX;

fn reset<T: Copy>(list: &mut Vec<T>, length: usize, value: T) {
    list.clear();
    list.resize(length, value);
}

impl Graph {
    /// Makes this the graph with this many nodes and these edges.
    pub fn set(&mut self, nodes: usize, edges: impl Iterator<Item = (Node, Node)> + Clone) {
        reset(&mut self.first, nodes + 1, 0);
        edges.clone().for_each(|(from, _)| self.first[from as usize + 1] += 1);
        for node in 0..nodes {
            self.first[node + 1] += self.first[node];
        }
        self.filled.clone_from(&self.first);
        reset(&mut self.successors, self.first[nodes] as usize, 0);
        for (from, to) in edges {
            let at = &mut self.filled[from as usize];
            self.successors[*at as usize] = to;
            *at += 1;
        }
    }

    fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    fn after(&self, node: Node) -> &[Node] {
        &self.successors[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// Whether it has no cycle.
    pub fn is_acyclic(&mut self) -> bool {
        let nodes = self.nodes();
        reset(&mut self.left, nodes, 0);
        self.successors.iter().for_each(|&to| self.left[to as usize] += 1);
        self.ready.clear();
        self.ready.extend((0..nodes as Node).filter(|&node| self.left[node as usize] == 0));
        let mut done = 0;
        while let Some(node) = self.ready.pop() {
            done += 1;
            for at in self.first[node as usize]..self.first[node as usize + 1] {
                let to = self.successors[at as usize];
                let left = &mut self.left[to as usize];
                *left -= 1;
                if *left == 0 {
                    self.ready.push(to);
                }
            }
        }
        done == nodes
    }

    /// By node, the number of its strongly connected component.
    pub fn components(&mut self) -> &[u32] {
        let nodes = self.nodes();
        reset(&mut self.index, nodes, UNSEEN);
        reset(&mut self.low, nodes, 0);
        reset(&mut self.component, nodes, UNSEEN);
        let (mut next, mut count) = (0, 0);
        for root in 0..nodes as Node {
            if self.index[root as usize] != UNSEEN {
                continue;
            }
            self.path.push((root, 0));
            while let Some(&(node, at)) = self.path.last() {
                let here = node as usize;
                if self.index[here] == UNSEEN {
                    self.index[here] = next;
                    self.low[here] = next;
                    next += 1;
                    self.open.push(node);
                }
                if let Some(&to) = self.after(node).get(at as usize) {
                    self.path.last_mut().expect("the path was not empty").1 += 1;
                    if self.index[to as usize] == UNSEEN {
                        self.path.push((to, 0));
                    } else if self.component[to as usize] == UNSEEN {
                        self.low[here] = self.low[here].min(self.index[to as usize]);
                    }
                    continue;
                }
                self.path.pop();
                if let Some(&(parent, _)) = self.path.last() {
                    self.low[parent as usize] = self.low[parent as usize].min(self.low[here]);
                }
                if self.low[here] == self.index[here] {
                    while let Some(member) = self.open.pop() {
                        self.component[member as usize] = count;
                        if member == node {
                            break;
                        }
                    }
                    count += 1;
                }
            }
        }
        &self.component
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::random::Random;

    /// Against reachability, from graph to graph with the same memory.
    #[test]
    fn differential_reachability() {
        let (mut graph, mut cyclic) = (Graph::default(), 0);
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let nodes = random.between(1, 9);
            let edges: Vec<(Node, Node)> = (0..random.below(2 * nodes + 1))
                .map(|_| (random.below(nodes) as Node, random.below(nodes) as Node))
                .filter(|(from, to)| from != to)
                .collect();
            let mut reaches = vec![vec![false; nodes]; nodes];
            edges.iter().for_each(|&(from, to)| reaches[from as usize][to as usize] = true);
            for via in 0..nodes {
                for from in 0..nodes {
                    for to in 0..nodes {
                        reaches[from][to] |= reaches[from][via] && reaches[via][to];
                    }
                }
            }
            let is_acyclic = (0..nodes).all(|node| !reaches[node][node]);
            cyclic += u32::from(!is_acyclic);
            graph.set(nodes, edges.iter().copied());
            assert_eq!(graph.is_acyclic(), is_acyclic, "seed {seed}: {edges:?}");
            let component = graph.components();
            for a in 0..nodes {
                for b in 0..a {
                    let together = reaches[a][b] && reaches[b][a];
                    assert_eq!(component[a] == component[b], together, "seed {seed}: {edges:?}, {a} and {b}");
                }
            }
        }
        assert!((100..400).contains(&cyclic), "{cyclic}");
    }
}
