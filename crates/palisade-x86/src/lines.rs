//! Lines of the source program, from the debug information of an object file.

use crate::image::{How, Image, SectionOffset};
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LittleEndian};
use std::collections::BTreeMap;

/// Sections get addresses this far apart, so that addresses say which section they belong to.
const APART: u64 = 1 << 40;

/// Which line each place comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// From each place on, up to the next one.
    rows: BTreeMap<SectionOffset, Option<(String, u64)>>,
}

impl Lines {
    /// The file and the line of a place.
    pub(crate) fn at(&self, place: SectionOffset) -> Option<(&str, u64)> {
        let first = SectionOffset { offset: i64::MIN, ..place };
        let (_, row) = self.rows.range(first..=place).next_back()?;
        row.as_ref().map(|(file, line)| (file.as_str(), *line))
    }

    /// From this place on, the code comes from a line, or from none.
    pub(crate) fn add(&mut self, place: SectionOffset, row: Option<(String, u64)>) {
        self.rows.insert(place, row);
    }

    /// Reads the line table. Without one, or where it is broken, there are no lines.
    pub(crate) fn read(image: &Image) -> Lines {
        let mut lines = Lines::default();
        let section = |name: &str| relocated(image, name).unwrap_or_default();
        let (table, strings, line_strings) =
            (section(".debug_line"), section(".debug_str"), section(".debug_line_str"));
        let debug = DebugLine::new(&table, LittleEndian);
        let mut offset = 0;
        while let Ok(program) = debug.program(DebugLineOffset(offset), 8, None, None) {
            let length = program.header().unit_length();
            let mut rows = program.rows();
            while let Ok(Some((header, row))) = rows.next_row() {
                let place = SectionOffset {
                    section: (row.address() / APART) as usize,
                    offset: (row.address() % APART) as i64,
                };
                if row.end_sequence() {
                    lines.rows.insert(place, None);
                    continue;
                }
                let name = row.file(header).map(|file| file.path_name());
                let name = name.and_then(|name| text(&name, &strings, &line_strings));
                let known = name.zip(row.line().map(std::num::NonZeroU64::get));
                lines.rows.insert(place, known);
            }
            match offset.checked_add(length + 4) {
                Some(next) if next < table.len() => offset = next,
                _ => break,
            }
        }
        lines
    }
}

/// The name of a file.
fn text(
    value: &AttributeValue<EndianSlice<'_, LittleEndian>>,
    strings: &[u8],
    line_strings: &[u8],
) -> Option<String> {
    let at = |bytes: &[u8], offset: usize| {
        let rest = bytes.get(offset..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    let name = match value {
        AttributeValue::String(name) => String::from_utf8_lossy(name.slice()).into_owned(),
        AttributeValue::DebugStrRef(offset) => at(strings, offset.0)?,
        AttributeValue::DebugLineStrRef(offset) => at(line_strings, offset.0)?,
        _ => return None,
    };
    Some(name.rsplit('/').next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect())
}

/// The bytes of a section, with places put in.
fn relocated(image: &Image, name: &str) -> Option<Vec<u8>> {
    let section = image.sections.iter().find(|section| section.name == name)?;
    let mut bytes = section.bytes.clone();
    for (&at, relocation) in &section.relocations {
        let Some(place) = relocation.target.place(0) else { continue };
        let in_code = image.section(place).kind == crate::image::SectionKind::Code;
        let base = if in_code { APART.wrapping_mul(place.section as u64) } else { 0 };
        let value = base.wrapping_add(place.offset as u64).wrapping_add(relocation.addend as u64);
        let size = if relocation.how == How::Absolute64 { 8 } else { 4 };
        let Ok(at) = usize::try_from(at) else { continue };
        if let Some(field) = bytes.get_mut(at..at + size) {
            field.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    Some(bytes)
}
