//! Giving each process one of its own.

/// Whether each of the first `few` can be given one of the first `many` of its own that fits: by backtracking, since few processes are alike.
pub(crate) fn each_has_its_own(few: usize, many: usize, fits: &dyn Fn(usize, usize) -> bool) -> bool {
    fn place(
        from: usize,
        few: usize,
        many: usize,
        fits: &dyn Fn(usize, usize) -> bool,
        taken: Option<&Taken<'_>>,
    ) -> bool {
        from == few
            || (0..many).any(|index| {
                !taken.is_some_and(|taken| taken.holds(index))
                    && fits(from, index)
                    && place(from + 1, few, many, fits, Some(&Taken { index, before: taken }))
            })
    }
    few <= many && place(0, few, many, fits, None)
}

/// What has been given away.
struct Taken<'t> {
    index: usize,
    before: Option<&'t Taken<'t>>,
}

impl Taken<'_> {
    fn holds(&self, index: usize) -> bool {
        self.index == index || self.before.is_some_and(|before| before.holds(index))
    }
}
