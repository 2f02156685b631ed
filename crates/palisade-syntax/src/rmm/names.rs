//! Names that `.pal` accepts: not its keywords, and distinct.

use palisade_program::print::is_legal_name;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Names in use.
#[derive(Default)]
pub(crate) struct Names {
    taken: HashSet<Arc<str>>,
    /// The last number appended to each name.
    numbers: HashMap<Arc<str>, u32>,
}

impl Names {
    /// A name that neither these nor the outer names use: the first preferred name that is free, or the last
    /// one with a number.
    pub fn fresh(&mut self, outer: Option<&Names>, preferred: &[&str]) -> Arc<str> {
        let is_free = |names: &Names, name: &str| is_legal_name(name) && !names.taken.contains(name);
        let fits = |names: &Names, name: &str| {
            is_free(names, name) && outer.is_none_or(|outer| is_free(outer, name))
        };
        let name = match preferred.iter().find(|candidate| fits(self, candidate)) {
            Some(candidate) => Arc::from(*candidate),
            None => {
                let base: Arc<str> = preferred.last().copied().unwrap_or("x").into();
                let mut number = self.numbers.get(&base).copied().unwrap_or(1);
                let name = loop {
                    number += 1;
                    let name = format!("{base}_{number}");
                    if fits(self, &name) {
                        break Arc::from(name);
                    }
                };
                self.numbers.insert(base, number);
                name
            }
        };
        self.taken.insert(Arc::clone(&name));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_clash() {
        let mut names = Names::default();
        let check = |names: &mut Names, preferred: &[&str], expected: &str| {
            assert_eq!(&*names.fresh(None, preferred), expected);
        };
        check(&mut names, &["x"], "x");
        check(&mut names, &["x"], "x_2");
        check(&mut names, &["x", "x_own"], "x_own");
        check(&mut names, &["x", "x_own"], "x_own_2");
        check(&mut names, &["loop"], "loop_2");
        check(&mut names, &["x"], "x_3");
        let mut inner = Names::default();
        assert_eq!(&*inner.fresh(Some(&names), &["x", "r_x"]), "r_x");
        assert_eq!(&*inner.fresh(Some(&names), &["y"]), "y");
    }
}
