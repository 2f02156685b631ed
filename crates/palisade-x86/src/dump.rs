//! What a file defines, as text, to compare ways to read it.
//!
//! Instructions that do nothing are left out: they fill gaps, and which of them do so is up to the assembler.

use crate::image::{Image, SectionKind, SectionOffset};
use crate::listing;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::fmt::Write;

/// The sections, relocations and symbols of an image. Sections that are not loaded and tables for unwinding are left out.
pub(crate) fn text(image: &Image) -> String {
    let mut out = String::new();
    for (index, section) in image.sections.iter().enumerate() {
        let matters = section.kind != SectionKind::Other
            && !section.name.starts_with(".eh_frame")
            && !section.name.starts_with(".note")
            && !section.bytes.is_empty();
        if !matters {
            continue;
        }
        let (name, kind, length) = (&section.name, section.kind, section.bytes.len());
        writeln!(out, "section {name}: {kind:?}, {length} bytes, aligned to {}", section.align)
            .expect(WRITES);
        match section.kind {
            SectionKind::Code => code(image, index, &mut out),
            _ => section.bytes.chunks(16).zip((0usize..).step_by(16)).for_each(|(bytes, at)| {
                if bytes.iter().any(|byte| *byte != 0) {
                    writeln!(out, "  {at:#x}: {bytes:02x?}").expect(WRITES);
                }
            }),
        }
        for (at, relocation) in &section.relocations {
            let target = match relocation.target.place(relocation.addend) {
                Some(place) => named(image, place),
                None => format!("{:?} {:+}", relocation.target, relocation.addend),
            };
            writeln!(out, "  {at:#x} <- {} {target}", relocation.how).expect(WRITES);
        }
    }
    // The order of functions is that of the listing, and the order of others does not matter.
    let mut symbols: Vec<_> = image.symbols.iter().collect();
    symbols.sort_by_key(|symbol| (!symbol.function, if symbol.function { "" } else { &symbol.name }));
    for symbol in symbols {
        let place = named(image, symbol.place);
        let (name, size) = (&symbol.name, symbol.size);
        let kind = if symbol.function { "function" } else { "symbol" };
        let seen = match (symbol.global, symbol.weak) {
            (_, true) => "weak ",
            (true, _) => "global ",
            _ => "",
        };
        writeln!(out, "{seen}{kind} {name}: {place}, {size} bytes").expect(WRITES);
    }
    out
}

const WRITES: &str = "writing to a string";

fn named(image: &Image, place: SectionOffset) -> String {
    format!("{}{:+}", image.section(place).name, place.offset)
}

fn code(image: &Image, index: usize, out: &mut String) {
    let section = &image.sections[index];
    for instruction in Decoder::with_ip(64, &section.bytes, 0, DecoderOptions::NONE).iter() {
        let at = instruction.ip();
        if instruction.mnemonic() == Mnemonic::Nop {
            continue;
        }
        let text = listing::instruction(&instruction);
        let (length, memory) = (instruction.len(), instruction.memory_size());
        write!(out, "  {at:#x} ({length}): {text}").expect(WRITES);
        match instruction.op_kinds().any(|kind| kind == iced_x86::OpKind::Memory) {
            true => writeln!(out, " [{memory:?}]").expect(WRITES),
            false => out.push('\n'),
        }
    }
    for (place, text) in image.unread.iter().filter(|(place, _)| place.section == index) {
        writeln!(out, "  {:#x}: not read: {text}", place.offset).expect(WRITES);
    }
}
