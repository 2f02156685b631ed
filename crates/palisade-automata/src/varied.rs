//! Registers that take many values.

use palisade_base::Id;
use palisade_memory::Frame;
use palisade_program::Value;
use palisade_program::running::{CodeId, RegId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The register that holds the most different values in these frames, and how many it holds. If several hold
/// equally many, the first one. `None` if there are no registers.
pub fn most_varied_register<'f>(frames: impl Iterator<Item = &'f Frame>) -> Option<(CodeId, RegId, usize)> {
    let mut values: FxHashMap<(CodeId, usize), FxHashSet<Value>> = FxHashMap::default();
    for frame in frames {
        for (register, &value) in frame.registers.iter().enumerate() {
            values.entry((frame.code, register)).or_default().insert(value);
        }
    }
    let counts = values.into_iter().map(|(register, values)| (values.len(), std::cmp::Reverse(register)));
    let (values, std::cmp::Reverse((code, register))) = counts.max()?;
    Some((code, RegId::from_index(register), values))
}
