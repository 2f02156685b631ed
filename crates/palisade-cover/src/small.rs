//! Small proofs: a closed set that becomes a certificate is made smaller first.
//!
//! Requirements of its elements are left out as long as it stays closed ([`Closed::shrink`]), and elements that are not
//! needed any more are left out as well. The work is limited, and the result is a proof whenever it stops.

use palisade_engine::{Exhausted, Limits};
use palisade_wqo::{Closed, Generalise};

/// How many elements the generalisation of one element may add to a proof.
const ADDED: usize = 16;

/// To make a proof smaller, this many elements are generated for each element that was generated to find it, or this
/// many in all if that is more.
const TO_SHRINK: (u64, u64) = (16, 1 << 18);

/// The elements of a small closed set with the bad ones. `found` is the number of elements that were generated to
/// find the set.
pub(crate) fn small<B: Generalise>(
    mut closed: Closed<'_, B>,
    bad: &[B::Element],
    found: u64,
    limits: &Limits,
) -> Result<Vec<B::Element>, Exhausted> {
    closed.keep_needed(bad.iter().cloned());
    let found_elements = closed.elements().cloned().collect::<Vec<_>>();
    let mut exhausted = None;
    let most = TO_SHRINK.1.max(TO_SHRINK.0 * found);
    closed.shrink(
        ADDED,
        |_| false,
        |generated| {
            exhausted = limits.check(0).err();
            exhausted.is_none() && generated < most
        },
    );
    if let Some(exhausted) = exhausted {
        return Err(exhausted);
    }
    closed.keep_needed(bad.iter().cloned());
    let elements = closed.into_elements();
    // What is added to generalise elements may be more than what is left out.
    Ok(if elements.len() < found_elements.len() { elements } else { found_elements })
}
