//! Accesses that may cross the end of a cache line.
//!
//! *Problem.* An access of machine code, and an atomic or volatile one in C, is one step here. The processor makes it at once only if it stays within a cache
//! line (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, section 9.1.1). Otherwise others may see
//! a part of it.
//!
//! *How.* An object begins at a multiple of its alignment, and a cache line at a multiple of 64 bytes. So an access stays
//! within its line wherever the object is if it stays within a block as large as the alignment, or as a line if that is
//! smaller. Other accesses are refused, unless all threads make them with locked instructions, which are made at once
//! anywhere, or nobody writes there.

use crate::Language;
use crate::expr::Expr;
use crate::flat::{Access, ObjectId, StepKind};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::threads::ThreadCode;
use palisade_base::{Diagnostic, Span};
use std::collections::BTreeSet;

/// The size of a cache line.
const LINE: i64 = 64;

/// Finds an access that may cross the end of a cache line, in memory that others may access.
pub(crate) fn check(
    layout: &Layout,
    threads: &[ThreadCode],
    memory: &Memory<'_>,
    language: Language,
) -> Result<(), Vec<Diagnostic>> {
    let crosses = |object: ObjectId, offset: i64, size: u32| {
        let block = memory.object(object).align.clamp(1, LINE);
        offset.rem_euclid(block) + (1 << size) > block
    };
    let wide: BTreeSet<(ObjectId, u32)> = layout
        .cells
        .iter()
        .filter(|cell| !cell.constant && crosses(cell.object, cell.offset, cell.size))
        .map(|cell| (cell.object, cell.size))
        .collect();
    if wide.is_empty() {
        return Ok(());
    }
    for thread in threads {
        for id in thread.code.reachable() {
            for step in &thread.code.block(id).steps {
                let (StepKind::Load { from: access, .. } | StepKind::Store { to: access, .. }) = &step.kind
                else {
                    continue;
                };
                // A plain access of C that others could see a part of is a data race.
                if access.plain && language == Language::C {
                    continue;
                }
                if let Some(object) = reached(access, &wide, &crosses) {
                    return Err(vec![refusal(&memory.object(object).name, access.size, step.span)]);
                }
            }
        }
    }
    Ok(())
}

/// The object with which an access may cross the end of a line.
fn reached(
    access: &Access,
    wide: &BTreeSet<(ObjectId, u32)>,
    crosses: &impl Fn(ObjectId, i64, u32) -> bool,
) -> Option<ObjectId> {
    match (&access.pointer, access.pointer.base()) {
        (Expr::Address(object, offset), _) => (wide.contains(&(*object, access.size))
            && crosses(*object, *offset, access.size))
        .then_some(*object),
        (_, Some(object)) => wide.contains(&(object, access.size)).then_some(object),
        (_, None) => wide.iter().find(|(_, size)| *size == access.size).map(|(object, _)| *object),
    }
}

fn refusal(name: &str, size: u32, span: Span) -> Diagnostic {
    let bytes = 1 << size;
    let message = format!(
        "not supported: an access to {bytes} bytes of `{name}` that may cross the end of a cache line, where the \
         processor does not make it at once"
    );
    Diagnostic::error("c-unsupported", message).at(span, "")
}
