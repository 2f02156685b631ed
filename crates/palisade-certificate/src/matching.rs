//! Assigning a different partner to each process.

/// Whether each of the first `few` can be assigned a different one of the first `many` that fits. This uses
/// backtracking, since few processes are alike.
pub(crate) fn each_has_its_own(few: usize, many: usize, fits: &dyn Fn(usize, usize) -> bool) -> bool {
    fn place(
        from: usize,
        few: usize,
        many: usize,
        fits: &dyn Fn(usize, usize) -> bool,
        taken: Option<&Assignment<'_>>,
    ) -> bool {
        from == few
            || (0..many).any(|index| {
                !taken.is_some_and(|taken| taken.holds(index))
                    && fits(from, index)
                    && place(from + 1, few, many, fits, Some(&Assignment { index, before: taken }))
            })
    }
    // The first condition only avoids a search that would fail anyway.
    few <= many && place(0, few, many, fits, None)
}

/// The partners that are already assigned.
struct Assignment<'t> {
    index: usize,
    before: Option<&'t Assignment<'t>>,
}

impl Assignment<'_> {
    fn holds(&self, index: usize) -> bool {
        self.index == index || self.before.is_some_and(|before| before.holds(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways in which three may fit three, compared with the definition.
    #[test]
    fn each_needs_a_partner_of_its_own() {
        for (few, many) in (0..=3).flat_map(|few| (0..=3usize).map(move |many| (few, many))) {
            for table in 0..1u32 << 9 {
                let fits = |a: usize, b: usize| table >> (3 * a + b) & 1 == 1;
                let ways = (0..many.pow(few as u32))
                    .map(|way| (0..few).map(move |a| way / many.pow(a as u32) % many));
                let expected = ways.into_iter().any(|way| {
                    let given: Vec<usize> = way.collect();
                    let different = given.iter().enumerate().all(|(a, b)| !given[..a].contains(b));
                    different && given.iter().enumerate().all(|(a, &b)| fits(a, b))
                });
                assert_eq!(each_has_its_own(few, many, &fits), expected, "{few} of {many}: {table:09b}");
            }
        }
    }
}
