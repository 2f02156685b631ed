//! New frames are filled with a pattern, so that a read of what was never written there is noticed (`runtime/fresh.c`).
//!
//! At the start of a function, everything below the stack pointer is unused. A function is filled only if it takes an
//! address in its frame, since nobody else can read other frames, and only as far as its first [`MAX_FILLED`] bytes.
//!
//! *Invariant.* No registers and no flags are changed.

use std::fmt::Write;

/// Whether reads of memory that was never written are errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fresh {
    /// They are: the code loads single values only where the source does.
    Checked,
    /// They may be parts of copies. No memory is filled in a program with such code.
    Ignored,
}

impl Fresh {
    /// What such an object file contains in addition.
    pub(crate) fn section(self) -> &'static str {
        match self {
            Fresh::Checked => "",
            Fresh::Ignored => {
                "\n\t.section .rodata.palisade_fresh,\"a\",@progbits\n\t.weak palisade_ignores_fresh\n\
                 \t.type palisade_ignores_fresh, @object\npalisade_ignores_fresh:\n\t.byte 1\n\
                 \t.size palisade_ignores_fresh, 1\n"
            }
        }
    }
}

/// The same number as in `runtime/fresh.c`.
const PATTERN: u32 = 0xc1f9_f6fa;
const MAX_FILLED: u32 = 512;

/// Fills this many bytes below the stack pointer.
pub(super) fn fill(text: &mut String, depth: u32) {
    for at in (4..=depth.min(MAX_FILLED)).step_by(4) {
        writeln!(text, "\tmovl ${PATTERN:#x}, -{at}(%rsp)").expect("writing to a string");
    }
}
