//! The code: one column per thread and one row per line. Columns are separated by `|`, and each row ends with
//! `;`.

use super::lexer::{Sign, TokenKind};
use super::mnemonics::{NAMES, Unknown, mnemonic};
use super::parser::{Failed, Outcome, Parser, shown, thread_number};
use super::registers::{Width, register};
use super::test::{Instruction, Memory, Operand, OperandKind, Thread, Word};
use crate::report::plural;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, Span, limits};

/// Words that end the code.
const ENDS: [&str; 7] = ["exists", "forall", "locations", "filter", "final", "observed", "Observed"];

impl<'a> Parser<'a, '_> {
    /// Reads the code up to the final conditions.
    pub(super) fn code(&mut self) -> Vec<Thread<'a>> {
        while self.eat(Sign::Semicolon) {}
        let Ok(mut threads) = self.names() else {
            while !self.at_question_word() {
                self.advance();
            }
            return Vec::new();
        };
        while !self.at_questions() {
            limits::checkpoint();
            self.row(&mut threads);
        }
        threads
    }

    /// Whether the code ends here. The cursor is at the start of a row.
    fn at_questions(&self) -> bool {
        self.at_question_word() || self.is(Sign::LeftParen) || self.is(Sign::Trailer)
    }

    /// Whether the code ends here. The cursor can be anywhere.
    fn at_question_word(&self) -> bool {
        match self.peek() {
            TokenKind::End | TokenKind::Sign(Sign::Not) => true,
            TokenKind::Word if self.here() == "not" => self.text_ahead(1) == "exists",
            TokenKind::Word => ENDS.contains(&self.here()) && self.ahead(1) != TokenKind::Sign(Sign::Colon),
            _ => false,
        }
    }

    /// `P0 | P1 ;`
    fn names(&mut self) -> Outcome<Vec<Thread<'a>>> {
        let mut threads: Vec<Thread<'a>> = Vec::new();
        let mut numbers = rustc_hash::FxHashMap::default();
        loop {
            let name = self.word("the name of a thread, `P0`")?;
            let Some(number) = thread_number(name.text) else {
                let message = format!("expected the name of a thread, found `{}`", shown(name.text));
                let diagnostic = Diagnostic::error("unexpected-token", message).at(name.span, "");
                return self.fail(diagnostic.help("the code begins with a row of names: `P0 | P1 ;`"));
            };
            if let Some(first) = numbers.insert(number, name.span) {
                let diagnostic =
                    Diagnostic::error("defined-twice", format!("two columns are called `{}`", name.text));
                return self.fail(diagnostic.at(name.span, "").at(first, "first defined here"));
            }
            threads.push(Thread { number, name, code: Vec::new(), operands: Vec::new(), labels: Vec::new() });
            if self.eat(Sign::Semicolon) {
                return Ok(threads);
            }
            if !self.eat(Sign::Bar) {
                return self.expected("`|` or `;`");
            }
        }
    }

    /// One row: as many cells as there are threads.
    fn row(&mut self, threads: &mut [Thread<'a>]) {
        let start = self.span();
        let mut column = 0;
        loop {
            let result = match threads.get_mut(column) {
                Some(thread) => self.cell(thread),
                None => self.skip_cell(),
            };
            if result.is_err() {
                while !self.at_cell_end() && !self.at_question_word() {
                    self.advance();
                }
            }
            column += 1;
            if self.eat(Sign::Bar) {
                continue;
            }
            if !self.eat(Sign::Semicolon) && result.is_ok() {
                let _: Outcome<()> = self.expected("`;` at the end of the row");
            }
            break;
        }
        if column != threads.len() {
            let (have, want) = (plural(column, "column"), plural(threads.len(), "thread"));
            let message = format!("this row has {have}, but the test has {want}");
            let help = "leave the cell empty if a thread has no instruction here: `mfence | ;`";
            self.report.push(
                Diagnostic::error("wrong-columns", message).at(start.to(self.previous()), "").help(help),
            );
        }
    }

    fn at_cell_end(&self) -> bool {
        matches!(self.peek(), TokenKind::End | TokenKind::Sign(Sign::Bar | Sign::Semicolon))
    }

    fn skip_cell(&mut self) -> Outcome<()> {
        while !self.at_cell_end() && !self.at_question_word() {
            self.advance();
        }
        Ok(())
    }

    /// Labels and an instruction, each optional.
    fn cell(&mut self, thread: &mut Thread<'a>) -> Outcome<()> {
        while self.peek() == TokenKind::Word && self.ahead(1) == TokenKind::Sign(Sign::Colon) {
            thread.labels.push((thread.code.len(), self.word("a label")?));
            self.advance();
        }
        if self.at_cell_end() {
            return Ok(());
        }
        let start = self.span();
        let mut name = self.word("an instruction")?;
        let mut lock = None;
        if name.text.eq_ignore_ascii_case("lock") {
            lock = Some(name.span);
            self.eat(Sign::Semicolon);
            if self.at_question_word() {
                return self.expected("an instruction after `lock`");
            }
            name = self.word("an instruction after `lock`")?;
        }
        let mnemonic = match mnemonic(name.text) {
            Ok(mnemonic) => mnemonic,
            Err(unknown) => return self.unknown_instruction(name, unknown),
        };
        let first = thread.operands.len() as u32;
        if self.at_question_word() {
            return self.expected("`;` at the end of the row");
        }
        if !self.at_cell_end() {
            loop {
                let operand = self.operand()?;
                thread.operands.push(operand);
                if !self.eat(Sign::Comma) {
                    break;
                }
            }
        }
        if !self.at_cell_end() {
            return self.expected("`,`, `|` or `;`");
        }
        let span = start.to(self.previous());
        let operands = first..thread.operands.len() as u32;
        thread.code.push(Instruction { lock, mnemonic, name, operands, span });
        Ok(())
    }

    fn unknown_instruction(&mut self, name: Word<'a>, unknown: Unknown) -> Outcome<()> {
        let shown = shown(name.text);
        let diagnostic = match unknown {
            Unknown::Unsupported(why) => {
                Diagnostic::error("unsupported-instruction", format!("`{shown}` is not supported: {why}"))
                    .at(name.span, "")
            }
            Unknown::NotAnInstruction => {
                let diagnostic =
                    Diagnostic::error("unknown-instruction", format!("unknown instruction `{shown}`"));
                let near = self.report.has_room().then(|| nearest(name.text, NAMES)).flatten();
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "see docs/litmus.md for the supported instructions".to_owned(),
                };
                diagnostic.at(name.span, "").help(help)
            }
        };
        self.fail(diagnostic)
    }

    fn operand(&mut self) -> Outcome<Operand<'a>> {
        let start = self.span();
        let kind = match self.peek() {
            TokenKind::Sign(Sign::Percent) => {
                self.advance();
                let word = self.word("a register")?;
                OperandKind::Register(self.register(word)?)
            }
            TokenKind::Sign(Sign::Dollar) => {
                self.advance();
                if self.peek() == TokenKind::Word {
                    let name = self.word("a variable")?;
                    OperandKind::Address(name, self.offset()?)
                } else {
                    OperandKind::Number(self.number()?.0)
                }
            }
            TokenKind::Number(_) | TokenKind::Sign(Sign::Minus) => {
                let (number, span) = self.number()?;
                if self.is(Sign::LeftParen) || self.is(Sign::LeftBracket) {
                    let Ok(displacement) = i64::try_from(number) else {
                        return self.fail(
                            Diagnostic::error("bad-number", "this displacement is too large").at(span, ""),
                        );
                    };
                    let mut memory = self.memory()?;
                    memory.displacement = memory.displacement.wrapping_add(displacement);
                    OperandKind::Memory(memory)
                } else {
                    OperandKind::Number(number)
                }
            }
            TokenKind::Sign(Sign::LeftParen | Sign::LeftBracket) => OperandKind::Memory(self.memory()?),
            TokenKind::Word => self.named_operand()?,
            _ => return self.expected("an operand"),
        };
        Ok(Operand { kind, span: start.to(self.previous()) })
    }

    /// A register, `dword ptr […]`, `offset x`, `x`, or `x(%rax)`.
    fn named_operand(&mut self) -> Outcome<OperandKind<'a>> {
        if let Some(register) = register(self.here(), self.arch) {
            self.advance();
            return Ok(OperandKind::Register(register));
        }
        let size = match self.here().to_ascii_lowercase().as_str() {
            "byte" => Some(Width::BYTE),
            "word" => Some(Width::WORD),
            "dword" => Some(Width::LONG),
            "qword" => Some(Width::QUAD),
            _ => None,
        };
        let followed = matches!(self.ahead(1), TokenKind::Word | TokenKind::Sign(Sign::LeftBracket));
        if size.is_some() && followed {
            self.advance();
            if self.here().eq_ignore_ascii_case("ptr") {
                self.advance();
            }
            let mut memory = match self.peek() {
                TokenKind::Word => self.symbolic()?,
                _ => self.memory()?,
            };
            memory.size = size;
            return Ok(OperandKind::Memory(memory));
        }
        if self.here().eq_ignore_ascii_case("offset") && self.ahead(1) == TokenKind::Word {
            self.advance();
            let name = self.word("a variable")?;
            return Ok(OperandKind::Address(name, self.offset()?));
        }
        let follows = matches!(
            self.ahead(1),
            TokenKind::Sign(Sign::LeftParen | Sign::LeftBracket | Sign::Plus | Sign::Minus)
        );
        if follows {
            return Ok(OperandKind::Memory(self.symbolic()?));
        }
        Ok(OperandKind::Name(self.word("an operand")?))
    }

    /// `x`, `x+8`, `x(%rip)` or `x[rax*8]`.
    fn symbolic(&mut self) -> Outcome<Memory<'a>> {
        let symbol = self.word("a variable")?;
        let displacement = self.offset()?;
        let mut memory = Memory::default();
        if self.is(Sign::LeftParen) || self.is(Sign::LeftBracket) {
            memory = self.memory()?;
            if let Some(second) = memory.symbol {
                let diagnostic = Diagnostic::error("bad-operand", "an address can contain only one variable");
                return self.fail(diagnostic.at(second.span, "").at(symbol.span, "the first one"));
            }
        }
        memory.symbol = Some(symbol);
        memory.displacement = memory.displacement.wrapping_add(displacement);
        Ok(memory)
    }

    /// `+8` or `-8` after a name.
    fn offset(&mut self) -> Outcome<i64> {
        let mut total = 0_i64;
        while self.is(Sign::Plus) || self.is(Sign::Minus) {
            let negative = self.advance().kind == TokenKind::Sign(Sign::Minus);
            let (number, span) = self.number()?;
            let signed = if negative { -number } else { number };
            match i64::try_from(signed).ok().and_then(|signed| total.checked_add(signed)) {
                Some(sum) => total = sum,
                None => {
                    return self
                        .fail(Diagnostic::error("bad-number", "this offset is too large").at(span, ""));
                }
            }
        }
        Ok(total)
    }

    fn memory(&mut self) -> Outcome<Memory<'a>> {
        if self.is(Sign::LeftParen) { self.memory_in_parentheses() } else { self.memory_in_brackets() }
    }

    /// `(%rax)`, `(x)` or `(%rax,%rbx,8)`, as in AT&T notation.
    fn memory_in_parentheses(&mut self) -> Outcome<Memory<'a>> {
        let mut memory = Memory::default();
        self.expect(Sign::LeftParen)?;
        if !self.is(Sign::Comma) {
            self.base(&mut memory)?;
        }
        if self.eat(Sign::Comma) {
            self.eat(Sign::Percent);
            let word = self.word("an index register")?;
            let index = self.register(word)?;
            let scale = if self.eat(Sign::Comma) { self.scale()? } else { 1 };
            memory.index = Some((index, scale));
        }
        self.expect(Sign::RightParen)?;
        Ok(memory)
    }

    /// A register or a variable inside an address.
    fn base(&mut self, memory: &mut Memory<'a>) -> Outcome<()> {
        let percent = self.eat(Sign::Percent);
        let word = self.word("a register or a variable")?;
        if word.text.eq_ignore_ascii_case("rip") || word.text.eq_ignore_ascii_case("eip") {
            // The address is relative to the instruction, so the variable alone determines it.
            return Ok(());
        }
        match register(word.text, self.arch) {
            None if !percent => {
                if let Some(first) = memory.symbol.replace(word) {
                    let diagnostic =
                        Diagnostic::error("bad-operand", "an address can contain only one variable");
                    return self.fail(diagnostic.at(word.span, "").at(first.span, "the first one"));
                }
                memory.displacement = memory.displacement.wrapping_add(self.offset()?);
                Ok(())
            }
            _ => {
                memory.base = Some(self.register(word)?);
                Ok(())
            }
        }
    }

    fn scale(&mut self) -> Outcome<i64> {
        let (scale, span) = self.number()?;
        match scale {
            // herd writes 0 where the scale does not matter.
            0 => Ok(0),
            1 | 2 | 4 | 8 => Ok(i64::try_from(scale).unwrap_or(8)),
            _ => self.fail(
                Diagnostic::error("bad-operand", "the scale of an index must be 1, 2, 4 or 8").at(span, ""),
            ),
        }
    }

    /// `[x]`, `[rax+8]` or `[x+rax*4]`, as in Intel notation.
    fn memory_in_brackets(&mut self) -> Outcome<Memory<'a>> {
        let mut memory = Memory::default();
        let open = self.expect(Sign::LeftBracket)?;
        let mut negative = false;
        loop {
            match self.peek() {
                TokenKind::Number(_) | TokenKind::Sign(Sign::Minus) => {
                    self.bracket_number(&mut memory, negative)?
                }
                _ if negative => return self.expected("a number after `-`"),
                TokenKind::Word | TokenKind::Sign(Sign::Percent) => self.bracket_word(&mut memory)?,
                _ => return self.expected("a register, a variable or a number"),
            }
            negative = self.is(Sign::Minus);
            if !self.eat(Sign::Plus) && !self.eat(Sign::Minus) {
                break;
            }
        }
        let close = self.expect(Sign::RightBracket)?;
        if memory.symbol.is_none() && memory.base.is_none() && memory.index.is_none() {
            let diagnostic = Diagnostic::error("bad-operand", "a number cannot be used as an address here")
                .at(open.to(close), "");
            return self.fail(diagnostic.help("use a variable, or a register that holds the address of one"));
        }
        Ok(memory)
    }

    fn bracket_number(&mut self, memory: &mut Memory<'a>, negative: bool) -> Outcome<()> {
        let (number, span) = self.number()?;
        if self.eat(Sign::Star) {
            let word = self.word("a register")?;
            let index = self.register(word)?;
            return self.set_index(memory, index, number, span.to(word.span));
        }
        let signed = if negative { -number } else { number };
        match i64::try_from(signed).ok().and_then(|signed| memory.displacement.checked_add(signed)) {
            Some(sum) => memory.displacement = sum,
            None => {
                return self.fail(Diagnostic::error("bad-number", "this offset is too large").at(span, ""));
            }
        }
        Ok(())
    }

    fn bracket_word(&mut self, memory: &mut Memory<'a>) -> Outcome<()> {
        let is_register = self.is(Sign::Percent) || register(self.here(), self.arch).is_some();
        if !is_register {
            return self.base(memory);
        }
        self.eat(Sign::Percent);
        let word = self.word("a register")?;
        let found = self.register(word)?;
        if self.eat(Sign::Star) {
            let (scale, span) = self.number()?;
            return self.set_index(memory, found, scale, word.span.to(span));
        }
        if memory.base.is_none() {
            memory.base = Some(found);
            return Ok(());
        }
        self.set_index(memory, found, 1, word.span)
    }

    fn set_index(
        &mut self,
        memory: &mut Memory<'a>,
        index: super::registers::Register,
        scale: i128,
        span: Span,
    ) -> Outcome<()> {
        let problem = match scale {
            _ if memory.index.is_some() => "an address can have only one base and one index",
            0 | 1 | 2 | 4 | 8 => {
                memory.index = Some((index, i64::try_from(scale).unwrap_or(8)));
                return Ok(());
            }
            _ => "the scale of an index must be 1, 2, 4 or 8",
        };
        self.report.push(Diagnostic::error("bad-operand", problem).at(span, ""));
        Err(Failed)
    }
}
