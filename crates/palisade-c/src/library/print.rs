//! Functions that print, and others that only read their arguments.
//!
//! They do nothing that the program could notice, but they access memory:
//! - Strings are read byte by byte, up to the NUL or the precision, by plain accesses.
//! - `%n` stores the number of characters so far. It must be known from the text.
//! - A format must be a literal, or a string without `%` that is printed without other arguments.
//!
//! Printing succeeds. A program that uses the result of such a function is refused if the result is not known.

use super::format::{Conversion, Part, Size, parse};
use crate::Note;
use crate::expr::Expr;
use crate::flat::{Access, End, StepKind, Written};
use crate::inline::{Generator, Refused};
use crate::memory::Val;
use palisade_llvm::instructions::{Instruction, Op};
use palisade_llvm::types::Type;
use palisade_llvm::values::{Operand, ValueId};
use palisade_program::written::{BinaryOp, Check};

/// An argument after the format.
enum Argument {
    Number(Expr),
    Pointer(Expr),
    /// Its value does not matter.
    Float,
}

/// What a text that is read is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    String,
    /// A format, which must not have conversions.
    Format,
    /// Bytes, also those after a NUL.
    Bytes,
}

impl<'a> Generator<'a, '_> {
    /// `None` if the name is not known here.
    pub(super) fn print_function(
        &mut self,
        instruction: &'a Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Option<Expr>>, Refused> {
        let used = instruction.result.is_some_and(|result| self.uses(result) > 0);
        let known = match name {
            "printf" => self.formatted(name, operands, 0, used)?,
            "fprintf" => {
                self.stream(operands, 0)?;
                self.formatted(name, operands, 1, used)?
            }
            "dprintf" => self.formatted(name, operands, 1, used)?,
            "puts" | "fputs" | "perror" => {
                if name == "fputs" {
                    self.stream(operands, 1)?;
                }
                let text = self.operand(operands, 0)?;
                let nothing = name == "perror" && text.as_int() == Some(0);
                if !nothing {
                    self.read_text(text, None, Text::String);
                }
                None
            }
            "putchar" | "putchar_unlocked" | "putc" | "fputc" => {
                if !name.starts_with("putchar") {
                    self.stream(operands, 1)?;
                }
                let character = self.operand(operands, 0)?;
                Some(self.binary(BinaryOp::BitAnd, character, Expr::Int(0xff)))
            }
            "fflush" => {
                let stream = self.operand(operands, 0)?;
                if stream.as_int() != Some(0) {
                    self.stream(operands, 0)?;
                }
                Some(Expr::Int(0))
            }
            "setbuf" | "setvbuf" => {
                self.stream(operands, 0)?;
                if self.operand(operands, 1)?.as_int() != Some(0) {
                    return Err(self.refuse(format!("`{name}` with a buffer of the program")));
                }
                Some(Expr::Int(0))
            }
            "fwrite" => {
                self.stream(operands, 3)?;
                let (size, count) = (self.operand(operands, 1)?, self.operand(operands, 2)?);
                let size = self.binary(BinaryOp::WordMul, size, count.clone());
                self.read_memory(operands, size)?;
                Some(count)
            }
            "write" => {
                let size = self.operand(operands, 2)?;
                self.read_memory(operands.get(1..).unwrap_or(&[]), size.clone())?;
                Some(size)
            }
            "pthread_setname_np" => {
                let text = self.operand(operands, 1)?;
                self.read_text(text, None, Text::String);
                Some(Expr::Int(0))
            }
            "nanosleep" | "thrd_sleep" => {
                let time = self.operand(operands, 0)?;
                for at in [0, 8] {
                    let pointer = self.binary(BinaryOp::WordAdd, time.clone(), Expr::Int(at));
                    self.read(pointer, 3);
                }
                Some(Expr::Int(0))
            }
            _ => return Ok(None),
        };
        if used {
            if known.is_none() {
                return Err(self.refuse(format!("what `{name}` returns")));
            }
            self.context.notes.insert(Note("printing succeeds".to_owned()));
        }
        // A value that is not used.
        Ok(Some(known.or(Some(Expr::Int(0)))))
    }

    /// Loads what must have been written.
    fn read(&mut self, pointer: Expr, size: u32) -> Expr {
        let to = self.temporary(8 << size);
        let from = Access { pointer, size, plain: true };
        self.step(StepKind::Load { to, from, written: Written::Needed });
        Expr::Reg(to)
    }

    /// A stream must be one.
    fn stream(&mut self, operands: &[Operand], index: usize) -> Result<(), Refused> {
        let stream = self.operand(operands, index)?;
        self.read(stream, 0);
        Ok(())
    }

    /// Reads a text up to its end, or a number of bytes.
    fn read_text(&mut self, text: Expr, limit: Option<Expr>, kind: Text) {
        if kind == Text::String && self.literal(&text).is_some() {
            return;
        }
        let (start, index) = (self.temporary(64), self.temporary(64));
        self.step(StepKind::Assign(start, text.clone()));
        let start = if text.size() == 1 { text } else { Expr::Reg(start) };
        self.step(StepKind::Assign(index, Expr::Int(0)));
        let (again, read, next, after) =
            (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        self.end(End::Goto(again));
        self.go_on(again);
        self.end(match limit {
            Some(limit) => End::Branch(self.binary(BinaryOp::WordLt, Expr::Reg(index), limit), read, after),
            None => End::Goto(read),
        });
        self.go_on(read);
        let at = self.binary(BinaryOp::WordAdd, start, Expr::Reg(index));
        let byte = self.read(at, 0);
        if kind == Text::Format {
            let plain = self.binary(BinaryOp::Ne, byte.clone(), Expr::Int(i64::from(b'%')));
            self.step(StepKind::Assert(plain, Check::Format));
        }
        self.end(match kind {
            Text::Bytes => End::Goto(next),
            Text::String | Text::Format => {
                End::Branch(self.binary(BinaryOp::Eq, byte, Expr::Int(0)), after, next)
            }
        });
        self.go_on(next);
        let one_more = self.binary(BinaryOp::WordAdd, Expr::Reg(index), Expr::Int(1));
        self.step(StepKind::Assign(index, one_more));
        self.end(End::Goto(again));
        self.go_on(after);
    }

    /// Reads a number of bytes of what the first operand points to: whole variables where it is known which.
    fn read_memory(&mut self, operands: &[Operand], size: Expr) -> Result<(), Refused> {
        let pointer = self.operand(operands, 0)?;
        if let Some(size) = size.as_int()
            && let Some(leaves) = self.whole_scalars(operands, &pointer, size)
        {
            self.touch_outside(&pointer, size);
            for leaf in leaves {
                let at = self.binary(BinaryOp::WordAdd, pointer.clone(), Expr::Int(leaf.offset));
                self.read(at, leaf.size);
            }
            return Ok(());
        }
        self.read_text(pointer, Some(size), Text::Bytes);
        Ok(())
    }

    /// The bytes of a literal that a pointer points to, up to its NUL.
    fn literal(&self, pointer: &Expr) -> Option<Vec<u8>> {
        let Expr::Address(object, offset) = *pointer else { return None };
        let object = self.context.memory.object(object);
        let leaves = object.leaves.iter().filter(|leaf| leaf.offset >= offset && leaf.size == 0);
        let mut bytes = Vec::new();
        for leaf in leaves.take_while(|_| object.constant && offset >= 0) {
            match leaf.init {
                Some(Expr::Int(0)) => return Some(bytes),
                Some(Expr::Int(byte)) => bytes.push(byte as u8),
                _ => return None,
            }
        }
        None
    }

    /// The value of an operand, also where it is a parameter or a variable that has only one value.
    fn known_value(&mut self, operand: Operand) -> Result<Expr, Refused> {
        let value = self.scalar(operand)?;
        let Operand::Local(loaded) = operand else { return Ok(value) };
        let Some(stored) = self.only_value(loaded) else { return Ok(value) };
        match self.value(stored)? {
            Val::Scalar(known @ Expr::Address(..)) => Ok(known),
            _ => Ok(value),
        }
    }

    /// What was stored in the local variable that a value is loaded from, if that happens once and the address of the
    /// variable is not used in any other way.
    fn only_value(&self, loaded: ValueId) -> Option<Operand> {
        let instructions = || self.body().blocks.iter().flat_map(|block| &block.instructions);
        let variable = instructions().find_map(|instruction| match instruction.op {
            Op::Load { pointer: Operand::Local(variable), .. } => {
                (instruction.result == Some(loaded)).then_some(Operand::Local(variable))
            }
            _ => None,
        })?;
        let mut stored = None;
        for instruction in instructions() {
            match &instruction.op {
                Op::Load { pointer, .. } if *pointer == variable => {}
                Op::Store { pointer, value, .. } if *pointer == variable && *value != variable => {
                    if stored.replace(*value).is_some() {
                        return None;
                    }
                }
                op => {
                    let mut used = false;
                    op.for_each_operand(|operand| used |= operand == variable);
                    if used {
                        return None;
                    }
                }
            }
        }
        stored
    }

    fn argument(&mut self, operand: Operand) -> Result<Argument, Refused> {
        let ty = self.module().type_of(self.body(), operand);
        match self.module().types.get(ty) {
            Type::Float(_) => Ok(Argument::Float),
            Type::Pointer { .. } => Ok(Argument::Pointer(self.known_value(operand)?)),
            _ => Ok(Argument::Number(self.scalar(operand)?)),
        }
    }

    /// Prints by a format. Returns the number of characters, if it is known.
    fn formatted(
        &mut self,
        name: &str,
        operands: &[Operand],
        at: usize,
        used: bool,
    ) -> Result<Option<Expr>, Refused> {
        let Some((&format, others)) = operands.get(at..).and_then(<[Operand]>::split_first) else {
            return Err(self.refuse("a call with too few arguments"));
        };
        let format = self.known_value(format)?;
        let Some(literal) = self.literal(&format) else {
            if others.is_empty() && !used {
                self.read_text(format, None, Text::Format);
                return Ok(None);
            }
            return Err(self.refuse(format!("`{name}` with a format that is not a literal")));
        };
        let parts = self.accept(parse(&literal))?;
        let mut arguments = others.iter();
        let mut printed = Some(0);
        for part in parts {
            let length = match part {
                Part::Text(length) => Some(length),
                Part::Conversion(conversion) => {
                    self.conversion(name, &conversion, &mut arguments, printed)?
                }
            };
            printed = printed.zip(length).map(|(sum, length)| sum + length);
        }
        Ok(printed.map(Expr::Int))
    }

    /// Prints an argument. Returns the number of characters, if it is known.
    fn conversion(
        &mut self,
        name: &str,
        conversion: &Conversion,
        arguments: &mut std::slice::Iter<'_, Operand>,
        printed: Option<i64>,
    ) -> Result<Option<i64>, Refused> {
        let letter = conversion.letter;
        let mut next =
            |generator: &mut Self| match arguments.next() {
                Some(&operand) => generator.argument(operand),
                None => Err(generator
                    .refuse(format!("`{name}` with fewer arguments than its format has conversions"))),
            };
        let mismatch = |generator: &mut Self| {
            generator.refuse(format!("`{name}` with an argument that does not fit `%{letter}`"))
        };
        let mut size = |generator: &mut Self, size| match size {
            None => Ok(None),
            Some(Size::Known(size)) => Ok(Some(Expr::Int(size))),
            Some(Size::Argument) => match next(generator)? {
                // What is negative counts as not given.
                Argument::Number(size) => Ok(Some(size)),
                _ => Err(mismatch(generator)),
            },
        };
        size(self, conversion.width)?;
        let precision = size(self, conversion.precision)?;
        let as_it_is = conversion.width.is_none() && !conversion.flags;
        match (letter, &*conversion.length) {
            ('m', _) => Ok(None),
            ('s' | 'c', length) if !length.is_empty() => Err(self.refuse("wide characters")),
            ('c', _) => match next(self)? {
                Argument::Number(_) => Ok(as_it_is.then_some(1)),
                _ => Err(mismatch(self)),
            },
            ('s', _) => match next(self)? {
                Argument::Pointer(text) => {
                    let length = self.literal(&text).map(|literal| literal.len());
                    let length = length.and_then(|length| i64::try_from(length).ok());
                    let exact = as_it_is && precision.is_none();
                    self.read_text(text, precision, Text::String);
                    Ok(length.filter(|_| exact))
                }
                _ => Err(mismatch(self)),
            },
            ('n', length) => {
                let Argument::Pointer(pointer) = next(self)? else { return Err(mismatch(self)) };
                let Some(printed) = printed else {
                    return Err(self.refuse("`%n` after something whose length is not known"));
                };
                let size = match length {
                    "hh" => 0,
                    "h" => 1,
                    "" => 2,
                    _ => 3,
                };
                let to = Access { pointer, size, plain: true };
                self.step(StepKind::Store {
                    to,
                    value: Expr::Int(crate::expr::wrap_int(8 << size, printed)),
                });
                Ok(Some(0))
            }
            ('f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A', _) => match next(self)? {
                Argument::Float => Ok(None),
                _ => Err(mismatch(self)),
            },
            _ => match next(self)? {
                Argument::Number(_) | Argument::Pointer(_) => Ok(None),
                Argument::Float => Err(mismatch(self)),
            },
        }
    }
}
