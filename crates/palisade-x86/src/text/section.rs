//! Sections by their names and flags.
//!
//! Assemblers know some names, and give these sections flags of their own, whatever is written. So the flags of a name
//! that is known here have to be the usual ones, and a name that only assemblers know is refused.

use super::Reader;
use super::layout::Section;
use super::lexer::{Cursor, is_of_name};
use crate::image::SectionKind;

/// The flags that decide how a section is loaded.
const DECISIVE: [char; 4] = ['a', 'w', 'x', 'T'];

/// Beginnings of names that assemblers have rules for.
const SPECIAL: [&str; 35] = [
    ".text",
    ".init",
    ".fini",
    ".data",
    ".bss",
    ".preinit",
    ".ctors",
    ".dtors",
    ".tdata",
    ".tbss",
    ".rodata",
    ".eh_frame",
    ".debug",
    ".note",
    ".comment",
    ".l",
    ".gnu",
    ".got",
    ".dyn",
    ".hash",
    ".interp",
    ".noinit",
    ".persistent",
    ".plt",
    ".rel",
    ".shstrtab",
    ".strtab",
    ".symtab",
    ".stab",
    ".zdebug",
    ".ctf",
    ".sframe",
    ".sdata",
    ".sbss",
    ".gcc_except_table",
];

/// The flags that a name may have. Without any, it has the first.
fn usual(name: &str) -> &'static [&'static str] {
    let is =
        |family: &str| name == family || name.strip_prefix(family).is_some_and(|rest| rest.starts_with('.'));
    match () {
        () if is(".text") || is(".init") || is(".fini") => &["ax"],
        () if is(".data") || is(".bss") || is(".init_array") || is(".fini_array") => &["aw"],
        () if is(".preinit_array") || is(".ctors") || is(".dtors") => &["aw"],
        () if is(".tdata") || is(".tbss") => &["awT"],
        () if is(".rodata") => &["a"],
        // What follows holds no variables of the program.
        () if is(".eh_frame") || is(".gcc_except_table") => &["a"],
        () if name.starts_with(".debug_") || is(".note") => &["", "a"],
        () if name == ".comment" => &[""],
        () => &[],
    }
}

impl Reader {
    /// The section with this name, which is added if it is new. `more` is what else distinguishes it, and follows
    /// the flags.
    pub(super) fn section(&mut self, name: &str, flags: Option<&str>, more: &str) -> Option<usize> {
        let usual = usual(name);
        let decisive = |flags: &str| DECISIVE.map(|flag| flags.contains(flag));
        if let Some(flags) = flags {
            let agrees = usual.iter().any(|usual| decisive(usual) == decisive(flags));
            let special = SPECIAL.iter().any(|special| name.starts_with(special));
            if !agrees && (special || !usual.is_empty()) {
                let why = format!("the section `{name}` with the flags \"{flags}\"");
                self.not_supported(&why, self.span);
                return None;
            }
        }
        let is_apart = flags.is_some_and(|flags| flags.contains('G')) || more.contains("unique");
        let key = format!("{name}\n{}", if is_apart { more } else { "" });
        let written = flags.map(|flags| {
            let mut flags: Vec<char> = flags.chars().collect();
            flags.sort_unstable();
            (flags, more.to_owned())
        });
        if let Some(&known) = self.by_key.get(&key) {
            let before = &mut self.sections[known].written;
            match (before.as_ref(), written) {
                (Some(before), Some(written)) if *before != written => {
                    self.not_supported(
                        &format!("the section `{name}` with other flags than before"),
                        self.span,
                    );
                    return None;
                }
                // The first mention without flags has decided about them.
                (None, Some(written))
                    if written.0.iter().any(|flag| matches!(flag, 'M' | 'R'))
                        || flags.map(decisive) != usual.first().map(|usual| decisive(usual)) =>
                {
                    self.not_supported(
                        &format!("the section `{name}` with other flags than before"),
                        self.span,
                    );
                    return None;
                }
                (None, written) => *before = written,
                _ => {}
            }
            return Some(known);
        }
        let Some(flags) = flags.or(usual.first().copied()) else {
            self.not_supported(&format!("the section `{name}` without flags such as \"aw\""), self.span);
            return None;
        };
        let kind = match () {
            () if !flags.contains('a') => SectionKind::Other,
            () if flags.contains('x') => SectionKind::Code,
            () if flags.contains('T') => SectionKind::ThreadLocal,
            () if flags.contains('w') && !name.starts_with(".data.rel.ro") => SectionKind::Data,
            () => SectionKind::ReadOnly,
        };
        self.by_key.insert(key, self.sections.len());
        self.sections.push(Section {
            name: name.to_owned(),
            kind,
            align: 1,
            mergeable: flags.contains('M'),
            written,
            pieces: Vec::new(),
            after: None,
            offsets: Vec::new(),
        });
        Some(self.sections.len() - 1)
    }

    pub(super) fn enter(&mut self, name: &str, flags: Option<&str>, more: &str) {
        if let Some(section) = self.section(name, flags, more) {
            self.previous = self.current;
            self.current = section;
        }
    }

    /// `name, "flags", @type, size, group, comdat`, of which all but the name may be missing.
    pub(super) fn named_section(&mut self, cursor: &mut Cursor<'_>) {
        // Names of sections may have other characters in them than names of symbols.
        let name = match cursor.peek() {
            Some('"') => cursor.name(),
            _ => Some(cursor.take_while(|c| is_of_name(c) || c == '-').to_owned()),
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return self.error("the name of a section is expected here", cursor.span());
        };
        if cursor.is_at_end() {
            return self.enter(&name, None, "");
        }
        let flags = if cursor.eat(',') { cursor.string() } else { None };
        let Some(flags) = flags.and_then(|flags| String::from_utf8(flags).ok()) else {
            return self.not_supported("a section without flags such as \"ax\"", cursor.span());
        };
        // Those that are loaded with others or left out are seldom written.
        let allowed = if flags.contains('a') { "awxMSTGR" } else { "wxMSTGoRe?" };
        if let Some(unknown) = flags.chars().find(|c| !allowed.contains(*c)) {
            return self.not_supported(&format!("the flag `{unknown}` of a section"), cursor.span());
        }
        let rest = cursor.rest();
        let is_plain = |c: char| is_of_name(c) || matches!(c, ' ' | '\t' | ',' | '@' | '%' | '-' | '"');
        if let Some(at) = rest.find(|c| !is_plain(c)) {
            cursor.take_while(is_plain);
            return self.not_supported(&format!("`{}` after a section", &rest[at..=at]), cursor.span());
        }
        let mut more: String = rest.split_ascii_whitespace().collect();
        // This is the type that sections have if none is written.
        if more == ",@progbits" || more == ",%progbits" {
            more.clear();
        }
        let kind = more.trim_start_matches([',', '@', '%']).split(',').next().unwrap_or_default();
        let known = ["", "progbits", "nobits", "note", "init_array", "fini_array", "preinit_array", "unwind"];
        if flags.contains('a') && (!known.contains(&kind) || !(more.is_empty() || more.starts_with([',']))) {
            return self.not_supported(&format!("a section of the type `{kind}`"), self.span);
        }
        self.enter(&name, Some(&flags), &more);
    }
}
