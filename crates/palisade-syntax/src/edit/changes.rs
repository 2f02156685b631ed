//! Changes to a text: insertions and replacements, collected first and applied together.

/// Changes to a text. They do not overlap.
#[derive(Default)]
pub(super) struct Edits {
    all: Vec<Edit>,
}

struct Edit {
    at: usize,
    /// The order of changes at the same place: first what closes (innermost first), then what opens
    /// (outermost first), then what replaces.
    order: (u8, i64),
    remove: usize,
    text: String,
    /// Where in `text` a fence begins.
    fence: Option<usize>,
}

impl Edits {
    /// Inserts a text after a statement that starts at the given place.
    pub(super) fn after(&mut self, at: usize, statement: usize, text: String, fence: Option<usize>) {
        self.all.push(Edit { at, order: (0, -(statement as i64)), remove: 0, text, fence });
    }

    /// Inserts a text before a statement that starts at the given place.
    pub(super) fn before(&mut self, at: usize, statement: usize, text: String, fence: Option<usize>) {
        self.all.push(Edit { at, order: (1, statement as i64), remove: 0, text, fence });
    }

    /// Replaces a range of the text.
    pub(super) fn replace(&mut self, range: std::ops::Range<usize>, text: String) {
        self.all.push(Edit { at: range.start, order: (2, 0), remove: range.len(), text, fence: None });
    }

    /// Where the end of a file is in the new text. Only the last file can end with a statement.
    pub(super) fn moved(&self, text: &str) -> impl Fn(usize) -> usize + 'static {
        let end = text.len();
        let changes: Vec<(usize, usize, usize)> =
            self.all.iter().map(|edit| (edit.at, edit.text.len(), edit.remove)).collect();
        move |place| {
            let before = changes.iter().filter(|(at, ..)| *at < place || place == end);
            before.fold(place, |moved, (_, added, removed)| moved + added - removed)
        }
    }

    /// Returns the new text, and where the fences begin in it, in order.
    pub(super) fn apply(mut self, text: &str) -> (String, Vec<usize>) {
        self.all.sort_by_key(|edit| (edit.at, edit.order));
        let mut out =
            String::with_capacity(text.len() + self.all.iter().map(|e| e.text.len()).sum::<usize>());
        let mut fences = Vec::new();
        let mut at = 0;
        for edit in self.all {
            out.push_str(&text[at..edit.at.max(at)]);
            fences.extend(edit.fence.map(|offset| out.len() + offset));
            out.push_str(&edit.text);
            at = edit.at.max(at) + edit.remove;
        }
        out.push_str(&text[at..]);
        (out, fences)
    }
}
