//! Directives.

use super::Reader;
use super::instruction::{Field, Fix};
use super::layout::{Piece, Section};
use super::lexer::{Cursor, is_of_name};
use super::symbols::Meaning;
use crate::image::{Kind, MAX_SECTION};

/// Directives that say nothing about what the program does.
const IGNORED: [&str; 12] = [
    ".ident",
    ".addrsig",
    ".addrsig_sym",
    ".hidden",
    ".protected",
    ".internal",
    ".code64",
    ".version",
    ".gnu_attribute",
    ".loc_mark_labels",
    ".att_syntax",
    ".no_dead_strip",
];

impl Reader {
    pub(super) fn directive(&mut self, name: &str, cursor: &mut Cursor<'_>) {
        match name {
            ".att_syntax" if cursor.rest().contains("noprefix") => {
                self.error("not supported: registers without `%`", self.span);
            }
            ".cfi_personality" | ".cfi_lsda" => {
                // The table for unwinding is left out, but it makes the symbol one of the file.
                let symbol = cursor.rest().split_once(',').map(|(_, symbol)| symbol.trim().to_owned());
                if let Some(symbol) = symbol.filter(|symbol| !symbol.starts_with(".L")) {
                    self.symbols.named(&symbol, self.span);
                }
            }
            _ if name.starts_with(".cfi_") || IGNORED.contains(&name) => {}
            ".text" | ".data" | ".bss" => {
                self.end(cursor);
                self.enter(name, None, "");
            }
            ".section" | ".pushsection" => {
                if name == ".pushsection" {
                    self.kept.push((self.current, self.previous));
                }
                self.named_section(cursor);
            }
            ".popsection" => match self.kept.pop() {
                Some((current, previous)) => (self.current, self.previous) = (current, previous),
                None => self.error("no `.pushsection` before this", self.span),
            },
            ".previous" => std::mem::swap(&mut self.current, &mut self.previous),
            ".globl" | ".global" => self.each_symbol(cursor, |symbol| symbol.global = true),
            ".weak" => self.each_symbol(cursor, |symbol| symbol.weak = true),
            ".local" => self.each_symbol(cursor, |symbol| symbol.local = true),
            ".type" => self.symbol_type(cursor),
            ".size" => {
                let Some((symbol, size)) = self.symbol_and_value(cursor) else { return };
                self.symbols.get_mut(symbol).size = Some(size);
            }
            ".set" | ".equ" => {
                let Some((symbol, value)) = self.symbol_and_value(cursor) else { return };
                self.give(symbol, Meaning::Equal(value));
            }
            ".comm" | ".common" | ".lcomm" => self.common(name == ".lcomm", cursor),
            ".file" => self.file(cursor),
            ".loc" => self.location(cursor),
            ".byte" => self.data(1, cursor),
            ".value" | ".short" | ".word" | ".2byte" | ".hword" => self.data(2, cursor),
            ".long" | ".int" | ".4byte" => self.data(4, cursor),
            ".quad" | ".8byte" => self.data(8, cursor),
            ".uleb128" | ".sleb128" => self.numbers(name == ".sleb128", cursor),
            ".ascii" => self.strings(false, cursor),
            ".asciz" | ".string" => self.strings(true, cursor),
            ".zero" | ".skip" | ".space" => self.fill(false, cursor),
            ".fill" => self.fill(true, cursor),
            ".p2align" => self.align(true, cursor),
            ".align" | ".balign" => self.align(false, cursor),
            ".end" => self.ended = true,
            _ => self.error(format!("not supported: the directive `{name}`"), self.span),
        }
    }

    /// The section with this name, which is added if it is new.
    pub(super) fn section(&mut self, name: &str, flags: Option<&str>, more: &str) -> usize {
        let key = format!("{name}\n{more}");
        if let Some(known) = self.by_key.get(&key) {
            return *known;
        }
        let is = |family: &str| {
            name == family || name.strip_prefix(family).is_some_and(|rest| rest.starts_with('.'))
        };
        let usual = match () {
            () if is(".text") || is(".init") || is(".fini") => "ax",
            () if is(".data") || is(".bss") || is(".init_array") || is(".fini_array") => "aw",
            () if is(".preinit_array") || is(".ctors") || is(".dtors") => "aw",
            () if is(".tdata") || is(".tbss") => "awT",
            () if is(".rodata") || is(".eh_frame") => "a",
            () => "",
        };
        let flags = flags.unwrap_or(usual);
        let kind = match () {
            () if !flags.contains('a') => Kind::Other,
            () if flags.contains('x') => Kind::Code,
            () if flags.contains('T') => Kind::ThreadLocal,
            () if flags.contains('w') && !name.starts_with(".data.rel.ro") => Kind::Data,
            () => Kind::ReadOnly,
        };
        self.by_key.insert(key, self.sections.len());
        self.sections.push(Section {
            name: name.to_owned(),
            kind,
            align: 1,
            mergeable: flags.contains('M'),
            pieces: Vec::new(),
            after: None,
            offsets: Vec::new(),
        });
        self.sections.len() - 1
    }

    fn enter(&mut self, name: &str, flags: Option<&str>, more: &str) {
        let section = self.section(name, flags, more);
        self.previous = self.current;
        self.current = section;
    }

    /// `name, "flags", @type, size, group, comdat`, of which all but the name may be missing.
    fn named_section(&mut self, cursor: &mut Cursor<'_>) {
        // Names of sections may have other characters in them than names of symbols.
        let name = match cursor.peek() {
            Some('"') => cursor.name(),
            _ => Some(cursor.take_while(|c| is_of_name(c) || matches!(c, '-' | '@' | '/' | '+')).to_owned()),
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return self.error("the name of a section is expected here", cursor.span());
        };
        if cursor.is_at_end() {
            return self.enter(&name, None, "");
        }
        let flags = if cursor.eat(',') { cursor.string() } else { None };
        let Some(flags) = flags.and_then(|flags| String::from_utf8(flags).ok()) else {
            return self.error("not supported: a section without flags such as \"ax\"", cursor.span());
        };
        if let Some(unknown) = flags.chars().find(|c| !"awxMSTGoRe?".contains(*c)) {
            return self.error(format!("not supported: the flag `{unknown}` of a section"), cursor.span());
        }
        let mut rest = cursor.rest().trim().trim_start_matches(',').trim_start();
        // Sections of one name differ by what follows the type.
        rest = rest
            .strip_prefix(['@', '%'])
            .map_or(rest, |of| of.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'));
        let more = rest.split_whitespace().collect::<String>();
        self.enter(
            &name,
            Some(&flags),
            if flags.contains('G') || more.contains("unique") { &more } else { "" },
        );
    }

    fn each_symbol(&mut self, cursor: &mut Cursor<'_>, change: impl Fn(&mut super::symbols::Symbol)) {
        loop {
            let Some(name) = cursor.name() else {
                return self.error("the name of a symbol is expected here", cursor.span());
            };
            let symbol = self.symbols.named(&name, self.span);
            change(self.symbols.get_mut(symbol));
            if !cursor.eat(',') {
                return self.end(cursor);
            }
        }
    }

    fn symbol_type(&mut self, cursor: &mut Cursor<'_>) {
        let Some(name) = cursor.name() else {
            return self.error("the name of a symbol is expected here", cursor.span());
        };
        cursor.eat(',');
        let kind = cursor.rest().trim().trim_start_matches(['@', '%']).trim_matches('"').to_ascii_lowercase();
        let function = match kind.as_str() {
            "function" | "stt_func" => true,
            "object" | "tls_object" | "notype" | "common" | "stt_object" | "stt_notype" | "stt_tls"
            | "gnu_unique_object" => false,
            _ => return self.error(format!("not supported: a symbol of the type `{kind}`"), self.span),
        };
        let symbol = self.symbols.named(&name, self.span);
        self.symbols.get_mut(symbol).function = Some(function);
    }

    fn symbol_and_value(
        &mut self,
        cursor: &mut Cursor<'_>,
    ) -> Option<(super::expression::SymbolId, super::expression::Expression)> {
        let name = cursor.name();
        let (Some(name), true) = (name.filter(|name| name != "."), cursor.eat(',')) else {
            self.error("the name of a symbol and a value are expected here", cursor.span());
            return None;
        };
        let symbol = self.symbols.named(&name, self.span);
        let value = self.expression(cursor)?;
        self.end(cursor);
        Some((symbol, value))
    }

    /// A number that is known here.
    fn given_number(&mut self, cursor: &mut Cursor<'_>) -> Option<u64> {
        let before = cursor.clone();
        let value = self.expression(cursor)?.value().and_then(|value| u64::try_from(value).ok());
        if value.is_none() {
            self.error("not supported: something else than a positive number", before.span());
        }
        value
    }

    fn common(&mut self, local: bool, cursor: &mut Cursor<'_>) {
        let Some(name) = cursor.name().filter(|_| cursor.eat(',')) else {
            return self.error("the name of a symbol and a size are expected here", cursor.span());
        };
        let Some(size) = self.given_number(cursor) else { return };
        let declared = self.symbols.named(&name, self.span);
        let declared = self.symbols.get(declared).local;
        // Without an alignment, it follows from the size, as assemblers do it.
        let mut align = match (local, declared) {
            (true, _) => 1 << size.max(1).ilog2().min(3),
            (false, true) => 1,
            (false, false) => size.next_power_of_two().min(16),
        };
        if cursor.eat(',') {
            let Some(given) = self.given_number(cursor) else { return };
            align = given.max(1);
        }
        self.end(cursor);
        if !align.is_power_of_two() || align > 1 << 20 {
            return self.error("an alignment that is not a power of two", self.span);
        }
        if size > MAX_SECTION {
            return self.error(format!("the variable `{name}` is too large"), self.span);
        }
        let symbol = self.symbols.named(&name, self.span);
        if !local && !self.symbols.get(symbol).local {
            self.symbols.get_mut(symbol).global = true;
            self.symbols.get_mut(symbol).size = Some(super::Expression::number(i128::from(size)));
            return self.give(symbol, Meaning::Common(size, align));
        }
        // Those that only this file sees come after everything else in `.bss`.
        let bss = self.section(".bss", None, "");
        let rest = match self.sections.iter().position(|section| section.after == Some(bss)) {
            Some(known) => known,
            None => {
                let rest = Section { after: Some(bss), pieces: Vec::new(), ..self.sections[bss].clone() };
                self.sections.push(rest);
                self.sections.len() - 1
            }
        };
        let outside = std::mem::replace(&mut self.current, rest);
        self.align_to(align, u64::MAX, None);
        self.define(symbol);
        self.zeros(size, 0);
        if self.symbols.get(symbol).size.is_none() {
            self.symbols.get_mut(symbol).size = Some(super::Expression::number(i128::from(size)));
        }
        self.current = outside;
    }

    /// `number "folder" "name"`, or only a name.
    fn file(&mut self, cursor: &mut Cursor<'_>) {
        let digits = cursor.take_while(|c| c.is_ascii_digit() || c.is_whitespace()).trim().parse::<u64>();
        let mut name = None;
        while cursor.peek() == Some('"') {
            let Some(found) = cursor.string() else {
                return self.error("a name without its end", cursor.span());
            };
            name = Some(String::from_utf8_lossy(&found).into_owned());
        }
        if let (Ok(number), Some(name)) = (digits, name) {
            let last = name.rsplit('/').next().unwrap_or_default();
            self.files.insert(number, last.chars().filter(|c| !c.is_control()).collect());
        }
    }

    /// `file line column …`.
    fn location(&mut self, cursor: &mut Cursor<'_>) {
        let mut words = cursor.rest().split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(file)), Some(Ok(line))) = (words.next(), words.next()) else {
            return self.error("the numbers of a file and a line are expected here", cursor.span());
        };
        // What comes between two of them belongs to the first.
        if let Some(row) = self.announced.take() {
            self.rows.push((self.position(), row));
        }
        // Code of no line belongs to the one before.
        if line > 0 {
            let row = self.files.get(&file).cloned().zip(Some(line));
            match cursor.rest().contains(" view ") {
                // With a view, the line begins here, and not with the next instruction.
                true => self.rows.push((self.position(), row)),
                false => self.announced = Some(row),
            }
        }
    }

    fn data(&mut self, size: usize, cursor: &mut Cursor<'_>) {
        if !self.is_loaded() {
            return;
        }
        if cursor.is_at_end() {
            return;
        }
        loop {
            let before = cursor.clone();
            let Some(expression) = self.expression(cursor) else { return };
            let span = cursor.since(&before);
            match expression.value() {
                Some(value) => {
                    let bits = size as u32 * 8;
                    if !(-(1i128 << (bits - 1))..1i128 << bits).contains(&value) {
                        self.error(format!("the number does not fit in {size} bytes"), span);
                    }
                    self.append(&value.to_le_bytes()[..size], Vec::new());
                }
                None => {
                    let fix = Fix { at: 0, field: Field::Data(size), expression, span };
                    self.append(&[0; 8][..size], vec![fix]);
                }
            }
            // What follows in the same statement has a place of its own.
            self.here = None;
            if !cursor.eat(',') {
                return self.end(cursor);
            }
        }
    }

    /// Numbers in groups of 7 bits.
    fn numbers(&mut self, signed: bool, cursor: &mut Cursor<'_>) {
        if !self.is_loaded() {
            return;
        }
        loop {
            let before = cursor.clone();
            let Some(value) = self.expression(cursor) else { return };
            let span = cursor.since(&before);
            self.sections[self.current].pieces.push(Piece::Number { value, signed, length: 1, span });
            if !cursor.eat(',') {
                return self.end(cursor);
            }
        }
    }

    fn strings(&mut self, ended: bool, cursor: &mut Cursor<'_>) {
        if !self.is_loaded() || cursor.is_at_end() {
            return;
        }
        loop {
            let before = cursor.clone();
            let Some(mut bytes) = cursor.string() else {
                return self.error("a string that is not read", before.span());
            };
            if ended {
                bytes.push(0);
            }
            self.append(&bytes, Vec::new());
            if !cursor.eat(',') {
                return self.end(cursor);
            }
        }
    }

    /// `.zero count, value` or `.fill count, size, value`.
    fn fill(&mut self, sized: bool, cursor: &mut Cursor<'_>) {
        if !self.is_loaded() {
            return;
        }
        let Some(count) = self.given_number(cursor) else { return };
        let mut rest = [1, 0];
        for (index, value) in rest.iter_mut().enumerate().skip(usize::from(!sized)) {
            if index > 0 && !sized && cursor.is_at_end() || !cursor.eat(',') {
                break;
            }
            let Some(given) = self.given_number(cursor) else { return };
            *value = given;
        }
        self.end(cursor);
        let [size, value] = rest;
        match (size, value) {
            (1, 0..=255) => self.zeros(count, value as u8),
            (1..=8, 0) => self.zeros(count.saturating_mul(size), 0),
            _ => self.error("not supported: a value of several bytes that is repeated", self.span),
        }
    }

    /// So many bytes of one value.
    fn zeros(&mut self, count: u64, value: u8) {
        self.filled = self.filled.saturating_add(count);
        if self.filled > MAX_SECTION {
            let limit = MAX_SECTION >> 20;
            return self.error(format!("the section is larger than {limit} MiB"), self.span);
        }
        self.append(&vec![value; count as usize], Vec::new());
    }

    /// `.p2align power, fill, most` or `.balign bytes, fill, most`.
    fn align(&mut self, is_power: bool, cursor: &mut Cursor<'_>) {
        if !self.is_loaded() {
            return;
        }
        let Some(first) = self.given_number(cursor) else { return };
        let to = match is_power {
            true if first < 21 => 1 << first,
            false if first <= 1 << 20 => first.max(1),
            _ => 0,
        };
        let (mut fill, mut most) = (None, u64::MAX);
        if cursor.eat(',') {
            if cursor.peek() != Some(',') {
                let Some(value) = self.given_number(cursor) else { return };
                fill = Some((value & 0xff) as u8);
            }
            if cursor.eat(',') {
                let Some(value) = self.given_number(cursor) else { return };
                most = if value == 0 { u64::MAX } else { value };
            }
        }
        self.end(cursor);
        if !u64::is_power_of_two(to) {
            return self.error("an alignment that is not a power of two", self.span);
        }
        self.align_to(to, most, fill);
    }

    fn align_to(&mut self, to: u64, most: u64, fill: Option<u8>) {
        let section = &mut self.sections[self.current];
        section.align = section.align.max(to);
        section.pieces.push(Piece::Align { to, most, fill });
    }
}
