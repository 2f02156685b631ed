//! The listing of an object file: one line per instruction. Places of the program are places in it. Assembly is its own
//! listing, unless it says which lines of a source program its instructions come from (`.loc`): a listing shows these.

use crate::image::SectionOffset;
use crate::program::Unit;
use iced_x86::{Formatter, GasFormatter, Instruction};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A listing, and the line of each instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) text: String,
    pub(crate) lines: BTreeMap<SectionOffset, u32>,
    /// The line of each function, by its entry.
    pub(crate) functions: BTreeMap<SectionOffset, u32>,
}

/// The text of an instruction.
pub(crate) fn instruction(instruction: &Instruction) -> String {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_gas_show_mnemonic_size_suffix(false);
    options.set_rip_relative_addresses(true);
    options.set_space_after_operand_separator(true);
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_displacement_leading_zeros(false);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    text
}

impl Listing {
    pub(crate) fn new(unit: &Unit) -> Listing {
        if let Some(text) = &unit.image.text {
            return Listing::of_text(unit, text);
        }
        let mut listing = Listing::default();
        let mut number = 0;
        let mut add = |listing: &mut Listing, line: &str| {
            listing.text.push_str(line);
            listing.text.push('\n');
            number += 1;
            number
        };
        for function in &unit.functions {
            let line = add(&mut listing, &format!("{}:", function.name));
            listing.functions.insert(function.entry, line);
            for code in function.blocks.values().flat_map(|block| &block.code) {
                let mut text =
                    format!("    {}+{:#x}", function.name, code.place.offset - function.entry.offset);
                if code.place.section != function.entry.section {
                    text = format!("    {}+{:#x}", unit.image.section(code.place).name, code.place.offset);
                }
                if let Some((file, line)) = unit.image.lines.at(code.place) {
                    write!(text, " ({file}:{line})").expect("writing to a string");
                }
                let written = unit.image.unread.get(&code.place).cloned();
                let written = written.unwrap_or_else(|| instruction(&code.instruction));
                write!(text, ": {written}").expect("writing to a string");
                if let Some(target) = refers(unit, code) {
                    write!(text, " <{target}>").expect("writing to a string");
                }
                let line = add(&mut listing, &text);
                listing.lines.entry(code.place).or_insert(line);
            }
        }
        listing
    }
}

impl Listing {
    /// Assembly as its own listing.
    fn of_text(unit: &Unit, text: &str) -> Listing {
        let mut listing = Listing { text: text.to_owned(), ..Listing::default() };
        let line = |place: SectionOffset| {
            let (_, line) = unit.image.lines.at(place)?;
            u32::try_from(line).ok()
        };
        for function in &unit.functions {
            listing.functions.extend(line(function.entry).map(|line| (function.entry, line)));
            let code = function.blocks.values().flat_map(|block| &block.code);
            listing.lines.extend(code.filter_map(|code| Some((code.place, line(code.place)?))));
        }
        listing
    }
}

/// The name of what an instruction refers to.
fn refers(unit: &Unit, code: &crate::decode::Code) -> Option<String> {
    use crate::image::Target;
    let (target, by) = match (&code.displacement, &code.immediate, &code.branch) {
        (Some(reference), ..) | (None, Some(reference), _) => reference.target(),
        (None, _, Some(target @ Target::External(_))) => (target, 0),
        (None, _, Some(target @ Target::Place(place)))
            if unit.functions.iter().any(|f| f.entry == *place) =>
        {
            (target, 0)
        }
        _ => return None,
    };
    let (name, by) = match target {
        Target::External(name) => (name.clone(), by),
        Target::Place(place) | Target::Symbol(place) => {
            let place = *place + by;
            let containing = unit.image.symbols.iter().find(|symbol| {
                symbol.place.section == place.section
                    && symbol.place.offset <= place.offset
                    && place.offset < symbol.place.offset + symbol.size.max(1)
            });
            match containing {
                Some(symbol) => (symbol.name.clone(), place.offset - symbol.place.offset),
                None => (unit.image.section(place).name.clone(), place.offset),
            }
        }
    };
    Some(match by {
        0 => name,
        by => format!("{name}{by:+}"),
    })
}
