//! The mark in object files whose code can all be followed.
//!
//! A section of the object file lists the sizes of its sections with code. The mark counts only if these
//! sizes add up to the size of all code that the file has. So an object that was merged with code from
//! elsewhere (`ld -r`) does not pass for one that is followed.

use crate::asm;
use object::{Object, ObjectSection, SectionFlags};
use rustc_hash::FxHashSet;
use std::fmt::Write;

/// The section with the mark. It is not loaded with the program.
const SECTION: &str = ".palisade.compiled";

/// The assembly with a mark for all sections with code that it mentions. There is no mark if some of the code
/// cannot be read from the text.
pub fn mark(text: &str) -> String {
    if hides_code(text) {
        return text.to_owned();
    }
    let sections = sections(text);
    let mut marked = String::with_capacity(text.len() + 64 * sections.len());
    let mut put = |line: std::fmt::Arguments<'_>| writeln!(marked, "{line}").expect("writing to a string");
    for (number, section) in sections.iter().enumerate() {
        put(format_args!("\t{section}\n.Lpalisade_first{number}:"));
    }
    put(format_args!("\t.text\n{text}"));
    for (number, section) in sections.iter().enumerate() {
        put(format_args!("\t{section}\n.Lpalisade_last{number}:"));
    }
    put(format_args!("\t.section {SECTION},\"\",@progbits"));
    for number in 0..sections.len() {
        put(format_args!("\t.quad .Lpalisade_last{number}-.Lpalisade_first{number}"));
    }
    put(format_args!("\t.text"));
    marked
}

/// The directives that switch to sections with code, one for each section.
fn sections(text: &str) -> Vec<String> {
    let mut known = FxHashSet::from_iter([".text".to_owned()]);
    let mut found = vec![".text".to_owned()];
    for line in text.lines() {
        let (word, rest) = asm::split(line.trim());
        if matches!(word, ".section" | ".pushsection") && asm::is_code(rest) {
            let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
            let group =
                if parts.get(1).is_some_and(|flags| flags.contains('G')) { parts.get(3) } else { None };
            let name = parts[0].trim_matches('"');
            let key = group.map_or_else(|| name.to_owned(), |group| format!("{name},{group}"));
            if known.insert(key) {
                found.push(format!(".section {rest}"));
            }
        }
    }
    found
}

/// Whether a section with code contains data, which may be code, or can be written. Inline assembly has
/// [rules of its own](crate::asm).
fn hides_code(text: &str) -> bool {
    let (mut in_code, mut inside) = (true, false);
    for line in text.lines() {
        let mut rest = line.trim();
        match rest {
            "#APP" => inside = true,
            "#NO_APP" => inside = false,
            _ => {}
        }
        if inside {
            continue;
        }
        while let Some((_, after)) = asm::label(rest) {
            rest = after;
        }
        let (word, rest) = asm::split(rest);
        match word {
            ".text" => in_code = true,
            ".data" | ".bss" => in_code = false,
            ".section" | ".pushsection" => {
                let flags = rest.split(',').nth(1).unwrap_or("");
                in_code = asm::is_code(rest);
                if in_code && flags.contains('w') {
                    return true;
                }
            }
            _ if in_code && asm::DATA.contains(&word) && !PADDING.contains(&(word, rest)) => {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// Prefixes that gcc puts into calls which find thread-local variables.
const PADDING: &[(&str, &str)] = &[(".byte", "0x66"), (".value", "0x6666"), (".word", "0x6666")];

/// What is known about an object file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// It contains no code.
    None,
    /// All of its code is followed.
    Followed,
    /// It contains code that was compiled in some other way.
    Other,
}

/// What an object file contains.
pub fn code(file: &object::File<'_>) -> Code {
    let mut all = 0u64;
    let mut marked = 0u64;
    for section in file.sections() {
        if let SectionFlags::Elf { sh_flags, .. } = section.flags()
            && sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0
        {
            all = all.saturating_add(section.size());
        }
        if section.name() == Ok(SECTION)
            && let Ok(data) = section.data()
        {
            for size in data.as_chunks::<8>().0 {
                marked = marked.saturating_add(u64::from_le_bytes(*size));
            }
        }
    }
    match (all, marked) {
        (0, _) => Code::None,
        _ if all == marked => Code::Followed,
        _ => Code::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_code() {
        let check = |text: &str, expected: bool| assert_eq!(hides_code(text), expected, "{text}");
        check("\t.text\nf:\n\tret\n\t.section\t.rodata\n\t.byte 1\n\t.data\n\t.long 2\n", false);
        check("\t.text\n\t.byte\t0x66\n\tleaq x@tlsgd(%rip), %rdi\n\t.value\t0x6666\n\trex64\n", false);
        check("\t.text\nf:\n\tret\ncode:\n\t.byte 195\n", true);
        check("\t.section\t.rodata\nf:\t.byte 195\n\t.text\ncode:\t.ascii \"\\303\"\n", true);
        check("\t.section\t.mine,\"awx\",@progbits\nf:\n\tret\n", true);
        check("#APP\n\t.byte 195\n#NO_APP\n\tret\n", false);
    }

    #[test]
    fn sections_with_code() {
        let check = |text: &str, expected: &[&str]| assert_eq!(sections(text), expected, "{text}");
        check("\t.data\nx:\t.long 0\n", &[".text"]);
        check("\t.text\n\t.section\t.rodata\n\t.text\n", &[".text"]);
        check(
            "\t.section\t.text._Z1fv,\"axG\",@progbits,_Z1fv,comdat\n\t.section\t.text._Z1fv,\"axG\",@progbits,_Z1fv,comdat\n",
            &[".text", ".section .text._Z1fv,\"axG\",@progbits,_Z1fv,comdat"],
        );
        check(
            "\t.section\t.text.unlikely\n\t.section\t.text.unlikely,\"ax\",@progbits\n",
            &[".text", ".section .text.unlikely"],
        );
    }
}
