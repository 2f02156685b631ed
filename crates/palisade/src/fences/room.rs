//! Which fences the text of a program has room for.
//!
//! The text is parsed again whenever fences are written into it, so many fences are tried at a time. If there
//! is room for all fences of a list, there is room for each of them.

use crate::language::InputLanguage;
use crate::{Input, c};
use palisade_fences::{Placement, Places, Wanted};
use palisade_syntax::edit::{FenceAt, FenceKind, insert_fences};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The fences that can be written into a text.
pub(super) struct Room {
    fences: BTreeSet<FenceAt>,
}

impl Room {
    /// Tries all fences that a placement may require.
    pub(super) fn new(input: &Input, placement: Placement, store_fences: bool) -> Room {
        let requested: RefCell<BTreeSet<FenceAt>> = RefCell::default();
        let ask = |fence: FenceAt| {
            requested.borrow_mut().insert(fence);
            false
        };
        let wanted = Wanted {
            placement,
            per: palisade_fences::Per::Source,
            store_fences,
            can_write: &ask,
            stronger: &|_| None,
            allows: &|_| true,
        };
        Places::new(&input.program, &wanted);
        let full: Vec<FenceAt> = requested.into_inner().into_iter().collect();
        let mut fences = BTreeSet::new();
        fit(input, &full, &mut fences);
        if store_fences {
            let weak: Vec<FenceAt> =
                fences.iter().map(|fence| FenceAt { kind: FenceKind::StoreStore, ..*fence }).collect();
            fit(input, &weak, &mut fences);
        }
        Room { fences }
    }

    /// Whether there is room for a fence.
    pub(super) fn is_for(&self, fence: FenceAt) -> bool {
        self.fences.contains(&fence)
    }
}

/// Adds those of the fences that can be written.
fn fit(input: &Input, fences: &[FenceAt], fitting: &mut BTreeSet<FenceAt>) {
    if fences.is_empty() {
        return;
    }
    let fits = match (input.language.text(), input.language) {
        (Some(language), _) => insert_fences(language, &input.source, fences).is_ok(),
        (None, InputLanguage::C) => c::insert(&input.source, fences).is_ok(),
        // Fences are not written into LLVM IR. They are reported by their lines.
        (None, _) => fences.iter().all(|fence| !fence.span.is_none()),
    };
    if fits {
        fitting.extend(fences);
    } else if fences.len() > 1 {
        let (first, second) = fences.split_at(fences.len() / 2);
        fit(input, first, fitting);
        fit(input, second, fitting);
    }
}
