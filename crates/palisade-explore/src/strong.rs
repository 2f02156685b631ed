//! Strongly connected components.
//!
//! *Source.* Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1, 1972,
//! without recursion.

use palisade_base::limits;
use rustc_hash::FxHashMap;

/// The strongly connected components of a graph that have at least one step. `after` calls the function that
/// it is given for each state that a step leads to. All of these must be among the states.
pub(crate) fn components(states: &[u32], after: impl Fn(u32, &mut dyn FnMut(u32))) -> Vec<Vec<u32>> {
    limits::room_for(32 * states.len() as u64);
    let number: FxHashMap<u32, usize> =
        states.iter().zip(0..).map(|(&state, number)| (state, number)).collect();
    // For each state by its number: the order in which it was met (0 if it was not), the earliest state on
    // the stack that it leads back to, and whether it is on the stack.
    let mut met = vec![0u32; states.len()];
    let mut low = vec![0u32; states.len()];
    let mut stacked = vec![false; states.len()];
    let (mut stack, mut found, mut count) = (Vec::new(), Vec::new(), 0);
    // The states on the way to the current one, with the states after them that are still to be seen.
    let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
    for root in 0..states.len() {
        if met[root] != 0 {
            continue;
        }
        let mut enter = Some(root);
        loop {
            limits::checkpoint();
            if let Some(at) = enter.take() {
                count += 1;
                (met[at], low[at], stacked[at]) = (count, count, true);
                stack.push(at);
                let mut next = Vec::new();
                after(states[at], &mut |to| next.push(number[&to]));
                path.push((at, next));
            }
            let Some((at, next)) = path.last_mut() else { break };
            let at = *at;
            match next.pop() {
                Some(to) if met[to] == 0 => enter = Some(to),
                Some(to) if stacked[to] => low[at] = low[at].min(met[to]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some(&(before, _)) = path.last() {
                        low[before] = low[before].min(low[at]);
                    }
                    if low[at] == met[at] {
                        let from = stack.iter().rposition(|&other| other == at).expect("it is on the stack");
                        let component: Vec<u32> =
                            stack[from..].iter().map(|&number| states[number]).collect();
                        stack.drain(from..).for_each(|number| stacked[number] = false);
                        let mut to_itself = false;
                        after(states[at], &mut |to| to_itself |= to == states[at]);
                        if component.len() > 1 || to_itself {
                            found.push(component);
                        }
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_graphs() {
        let check = |steps: &[(u32, u32)], expected: &[&[u32]]| {
            let states: Vec<u32> = (0..6).collect();
            let after = |state: u32, visit: &mut dyn FnMut(u32)| {
                steps.iter().filter(|(from, _)| *from == state).for_each(|&(_, to)| visit(to));
            };
            let mut found = components(&states, after);
            found.iter_mut().for_each(|component| component.sort_unstable());
            found.sort_unstable();
            assert_eq!(found, expected, "{steps:?}");
        };
        check(&[], &[]);
        check(&[(0, 1), (1, 2)], &[]);
        check(&[(3, 3)], &[&[3]]);
        check(&[(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)], &[&[0, 1], &[2, 3]]);
        check(&[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 1), (5, 0)], &[&[0, 1, 2, 3, 4]]);
        check(&[(5, 4), (4, 3), (3, 4), (3, 5), (0, 5)], &[&[3, 4, 5]]);
    }
}
