//! Sections as the text describes them, and their bytes once everything has its place.
//!
//! A section is a list of pieces. The length of some of them depends on the places of labels: jumps are short if their
//! target is near. They are short at first, and those that do not reach their target become long, until all reach it.
//! This ends because nothing becomes shorter again.

use super::expression::Expression;
use super::instruction::Fix;
use crate::image::SectionKind;
use palisade_base::Span;

/// A place in a section, by the index of the piece and the offset in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Position {
    pub(super) section: usize,
    pub(super) piece: usize,
    pub(super) offset: usize,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Bytes(Vec<u8>, Vec<Fix>),
    /// Up to the next multiple of this many bytes, unless that is further than `most`.
    Align {
        to: u64,
        most: u64,
        fill: Option<u8>,
    },
    /// A jump by a condition or always. A long one has 4 bytes for its distance.
    Jump {
        condition: Option<u8>,
        target: Expression,
        long: bool,
        span: Span,
    },
    /// A number in as many bytes as it needs.
    Number {
        value: Expression,
        signed: bool,
        length: usize,
        span: Span,
    },
}

/// A section.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) kind: SectionKind,
    pub(super) align: u64,
    /// Whether the linker may put equal parts of it together.
    pub(super) mergeable: bool,
    /// The flags and what follows them, once they were written.
    pub(super) written: Option<(Vec<char>, String)>,
    pub(super) pieces: Vec<Piece>,
    /// The section whose end this one begins at.
    pub(super) after: Option<usize>,
    /// The offsets of the pieces, and the end, once they are known.
    pub(super) offsets: Vec<u64>,
}

impl Section {
    /// The bytes to append to.
    pub(super) fn bytes(&mut self) -> (&mut Vec<u8>, &mut Vec<Fix>) {
        if !matches!(self.pieces.last(), Some(Piece::Bytes(..))) {
            self.pieces.push(Piece::Bytes(Vec::new(), Vec::new()));
        }
        match self.pieces.last_mut() {
            Some(Piece::Bytes(bytes, fixes)) => (bytes, fixes),
            _ => unreachable!("one was added"),
        }
    }

    /// Puts the pieces one after the other, from a start on. Returns the end.
    pub(super) fn place(&mut self, start: u64) -> u64 {
        let mut at = start;
        self.offsets.clear();
        for piece in &self.pieces {
            self.offsets.push(at);
            at += piece.length(at);
        }
        self.offsets.push(at);
        at
    }
}

impl Piece {
    /// How long it is at an offset.
    pub(super) fn length(&self, at: u64) -> u64 {
        match self {
            Piece::Bytes(bytes, _) => bytes.len() as u64,
            Piece::Align { to, most, .. } => {
                let missing = at.next_multiple_of(*to) - at;
                if missing > *most { 0 } else { missing }
            }
            Piece::Jump { long: false, .. } => 2,
            Piece::Jump { condition: None, .. } => 5,
            Piece::Jump { .. } => 6,
            Piece::Number { length, .. } => *length as u64,
        }
    }
}

/// A number in groups of 7 bits, of at least this length.
pub(super) fn in_groups(value: i128, signed: bool, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = value;
    loop {
        let byte = (rest & 0x7f) as u8;
        rest >>= 7;
        let sign = byte & 0x40 != 0;
        let done = if signed { (rest == 0 && !sign) || (rest == -1 && sign) } else { rest == 0 };
        if (done || bytes.len() >= 18) && bytes.len() + 1 >= length {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}

/// Instructions that do nothing, of this length together.
pub(super) fn nothing(mut length: u64) -> Vec<u8> {
    const FORMS: [&[u8]; 11] = [
        &[0x90],
        &[0x66, 0x90],
        &[0x0f, 0x1f, 0],
        &[0x0f, 0x1f, 0x40, 0],
        &[0x0f, 0x1f, 0x44, 0, 0],
        &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
        &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
        &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        &[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    ];
    let mut bytes = Vec::new();
    while length > 0 {
        let form = FORMS[(length.min(11) - 1) as usize];
        bytes.extend(form);
        length -= form.len() as u64;
    }
    bytes
}
