//! Directives.

use super::Reader;
use super::instruction::{Field, Fix};
use super::layout::{Piece, Position, Section};
use super::lexer::{Cursor, is_of_name};
use super::symbols::Meaning;
use crate::image::{MAX_SECTION, SectionKind};
use iced_x86::{Decoder, DecoderOptions};

/// Directives about unwinding, which say nothing about what the program does.
const UNWINDING: &str = "startproc endproc sections personality lsda def_cfa def_cfa_offset def_cfa_register \
    adjust_cfa_offset offset rel_offset val_offset register restore undefined same_value remember_state restore_state \
    return_column signal_frame window_save escape";

impl Reader {
    pub(super) fn directive(&mut self, name: &str, cursor: &mut Cursor<'_>) {
        let before = self.position();
        self.any_directive(name, cursor);
        if self.current != before.section {
            if self.widened {
                self.not_supported("a prefix before another section", self.span);
            }
        } else if self.sections[self.current].kind == SectionKind::Code {
            self.check_bytes(before);
        }
    }

    /// Refuses bytes in code that depend on what follows: they have to be instructions of their own, or prefixes as the
    /// access to thread-local variables has them.
    fn check_bytes(&mut self, before: Position) {
        let is_align = |piece: &Piece| matches!(piece, Piece::Align { .. });
        let added = match self.sections[self.current].pieces.get(before.piece..).unwrap_or_default() {
            [Piece::Bytes(bytes, fixes), rest @ ..] => {
                let is_plain = rest.iter().all(is_align) && fixes.iter().all(|fix| fix.at < before.offset);
                is_plain.then(|| &bytes[before.offset..])
            }
            rest => rest.iter().all(is_align).then_some(&[][..]),
        };
        let is_whole = |bytes: &[u8]| {
            let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
            decoder.iter().all(|instruction| !instruction.is_invalid())
        };
        match added {
            Some([]) => {}
            Some(bytes) if bytes.iter().all(|byte| *byte == 0x66) => self.widened = true,
            Some(bytes) if !self.widened && is_whole(bytes) => {}
            _ => self.not_supported("data in code that is not a whole instruction", self.span),
        }
    }

    fn any_directive(&mut self, name: &str, cursor: &mut Cursor<'_>) {
        match name {
            ".att_syntax" => {
                let word = cursor.name();
                if word.is_some_and(|word| word != "prefix") {
                    return self.not_supported("registers without `%`", self.span);
                }
                self.end(cursor);
            }
            ".ident" | ".version" => match cursor.string() {
                Some(_) => self.end(cursor),
                None => self.error("a string is expected here", cursor.span()),
            },
            ".code64" | ".addrsig" => self.end(cursor),
            ".loc_mark_labels" => {
                if self.given_number(cursor).is_some() {
                    self.end(cursor);
                }
            }
            ".hidden" | ".protected" | ".internal" => self.each_symbol(cursor, |_| {}),
            ".addrsig_sym" => match cursor.name() {
                Some(_) => self.end(cursor),
                None => self.error("the name of a symbol is expected here", cursor.span()),
            },
            ".cfi_personality" | ".cfi_lsda" => {
                // The table for unwinding is left out, but it makes the symbol one of the file.
                let symbol = cursor.rest().split_once(',').map(|(_, symbol)| symbol.trim().to_owned());
                if let Some(symbol) = symbol.filter(|symbol| !symbol.starts_with(".L")) {
                    self.symbols.named(&symbol, self.span);
                }
            }
            _ if name
                .strip_prefix(".cfi_")
                .is_some_and(|of| UNWINDING.split(' ').any(|known| known == of)) =>
            {
                // Numbers, names of registers and of symbols.
                let is_known = |c: char| is_of_name(c) || matches!(c, ' ' | '\t' | ',' | '%' | '-' | '+');
                cursor.take_while(is_known);
                self.end(cursor);
            }
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
            ".popsection" => {
                self.end(cursor);
                match self.kept.pop() {
                    Some((current, previous)) => (self.current, self.previous) = (current, previous),
                    None => self.error("no `.pushsection` before this", self.span),
                }
            }
            ".previous" => {
                self.end(cursor);
                std::mem::swap(&mut self.current, &mut self.previous);
            }
            ".globl" | ".global" => self.each_symbol(cursor, |symbol| symbol.global = true),
            ".weak" => self.each_symbol(cursor, |symbol| symbol.weak = true),
            ".local" => self.each_symbol(cursor, |symbol| symbol.local = true),
            ".type" => self.symbol_type(cursor),
            ".size" => {
                let Some((symbol, size)) = self.symbol_and_value(cursor) else { return };
                let known = &mut self.symbols.get_mut(symbol).size;
                if known.as_ref().is_some_and(|known| *known != size) {
                    return self.not_supported("a symbol with two sizes", self.span);
                }
                *known = Some(size);
            }
            ".set" | ".equ" => {
                let Some((symbol, value)) = self.symbol_and_value(cursor) else { return };
                self.give(symbol, Meaning::Equal(value));
            }
            ".comm" => self.common(cursor),
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
            ".end" => {
                self.end(cursor);
                self.ended = true;
            }
            _ => self.error(format!("not supported: the directive `{name}`"), self.span),
        }
    }

    fn each_symbol(&mut self, cursor: &mut Cursor<'_>, change: impl Fn(&mut super::symbols::Symbol)) {
        loop {
            let Some(name) = cursor.name().filter(|name| name != ".") else {
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
        let Some(name) = cursor.name().filter(|name| name != ".") else {
            return self.error("the name of a symbol is expected here", cursor.span());
        };
        cursor.eat(',');
        let marked = cursor.eat('@') || cursor.eat('%');
        let kind = match (marked, cursor.peek()) {
            (false, Some('"')) => cursor.name().unwrap_or_default(),
            _ => cursor.take_while(is_of_name).to_owned(),
        };
        let kind = kind.to_ascii_lowercase();
        self.end(cursor);
        let function = match kind.as_str() {
            "function" | "stt_func" => true,
            "object" | "tls_object" | "notype" | "common" | "stt_object" | "stt_notype" | "stt_tls"
            | "gnu_unique_object" => false,
            _ => return self.error(format!("not supported: a symbol of the type `{kind}`"), self.span),
        };
        let symbol = self.symbols.named(&name, self.span);
        let known = &mut self.symbols.get_mut(symbol).function;
        if known.is_some_and(|known| known != function) {
            return self.not_supported("a symbol with two types", self.span);
        }
        *known = Some(function);
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

    fn common(&mut self, cursor: &mut Cursor<'_>) {
        let Some(name) = cursor.name().filter(|name| name != "." && cursor.eat(',')) else {
            return self.error("the name of a symbol and a size are expected here", cursor.span());
        };
        let Some(size) = self.given_number(cursor) else { return };
        // Without an alignment, assemblers disagree about it.
        let mut align = 1;
        if cursor.eat(',') {
            let Some(given) = self.given_number(cursor) else { return };
            align = given;
        } else if size > 1 {
            return self.not_supported("`.comm` without an alignment, as in `.comm x,4,4`", self.span);
        }
        self.end(cursor);
        if !align.is_power_of_two() || align > 1 << 20 {
            return self.error("an alignment that is not a power of two", self.span);
        }
        if size > MAX_SECTION {
            return self.error(format!("the variable `{name}` is too large"), self.span);
        }
        let symbol = self.symbols.named(&name, self.span);
        if !self.symbols.get(symbol).local {
            self.symbols.get_mut(symbol).global = true;
            self.symbols.get_mut(symbol).size = Some(super::Expression::number(i128::from(size)));
            return self.give(symbol, Meaning::Common(size, align));
        }
        // Those that only this file sees come after everything else in `.bss`.
        let Some(bss) = self.section(".bss", None, "") else { return };
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
        let digits =
            cursor.take_while(|c| c.is_ascii_digit() || c == ' ' || c == '\t').trim_ascii().parse::<u64>();
        let mut name = None;
        while cursor.peek() == Some('"') {
            let Some(found) = cursor.string() else {
                return self.error("a name without its end", cursor.span());
            };
            name = Some(String::from_utf8_lossy(&found).into_owned());
        }
        for word in ["md5", "source"] {
            let mut ahead = cursor.clone();
            if ahead.name().as_deref() == Some(word) {
                *cursor = ahead;
                match cursor.peek() {
                    Some('"') => _ = cursor.string(),
                    _ => _ = cursor.take_while(|c| c.is_ascii_alphanumeric()),
                }
            }
        }
        self.end(cursor);
        if let (Ok(number), Some(name)) = (digits, name) {
            let last = name.rsplit('/').next().unwrap_or_default();
            self.files.insert(number, last.chars().filter(|c| !c.is_control()).collect());
        }
    }

    /// `file line column …`.
    fn location(&mut self, cursor: &mut Cursor<'_>) {
        let mut words = cursor.rest().split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(file)), Some(Ok(line))) = (words.next(), words.next()) else {
            return self.error("the numbers of a file and a line are expected here", cursor.span());
        };
        if !cursor.rest().chars().all(|c| is_of_name(c) || matches!(c, ' ' | '\t' | '-')) {
            return self.not_supported("a line of such a form", cursor.span());
        }
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
            let range = if signed { i128::from(i64::MIN)..1 << 63 } else { 0..1 << 64 };
            if value.value().is_some_and(|value| !range.contains(&value)) {
                return self.not_supported("a number with a sign, or of more than 64 bits", span);
            }
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
                let Ok(value) = u8::try_from(value) else {
                    return self.not_supported("a fill of more than a byte", self.span);
                };
                fill = Some(value);
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
        // How many of these bytes there are depends on how long instructions are.
        if self.sections[self.current].kind == SectionKind::Code && !matches!(fill, None | Some(0x90)) {
            return self.not_supported("code that is filled with something else than `nop`", self.span);
        }
        self.align_to(to, most, fill);
    }

    fn align_to(&mut self, to: u64, most: u64, fill: Option<u8>) {
        let section = &mut self.sections[self.current];
        section.align = section.align.max(to);
        section.pieces.push(Piece::Align { to, most, fill });
    }
}
