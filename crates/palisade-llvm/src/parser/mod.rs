//! The parser, by hand: one file per part of the language.
//!
//! The first token of a construct decides what it is, except in calls, where the callee is read after the
//! arguments: only they say which type it has. Names may be used before they are defined, so ids are given at
//! the first mention, and what was never defined is reported at the end.
//!
//! After an error, parsing continues at the next line, so that one run reports all constructs that are not
//! understood.

mod attributes;
mod calls;
mod check;
mod constants;
mod dominance;
mod finish;
mod functions;
mod globals;
mod instructions;
mod locals;
mod memory;
mod metadata;
mod names;
mod records;
mod report;
mod types;

use crate::debug::{DebugInfo, NodeId};
use crate::layout::{DataLayout, Layouts};
use crate::lexer::{Lexed, Lexer};
use crate::limits::MAX_NESTING;
use crate::module::{Module, SymbolId};
use crate::token::{Token, shorten, unescape};
use crate::types::{NamedTypeId, TypeId, Types};
use crate::values::ConstantId;
use names::Names;
use palisade_base::{Diagnostic, IdVec, Source, Span};
use report::Report;
use rustc_hash::FxHashMap;

/// What a parsing function returns. The diagnostic is boxed: results stay small.
type Parse<T> = Result<T, Box<Diagnostic>>;

/// Where a name was mentioned first, and whether it was defined.
#[derive(Clone, Copy)]
struct Mention {
    defined: bool,
    span: Span,
}

/// The state of the parser.
pub(crate) struct Parser<'a> {
    source: &'a Source,
    lexer: Lexer<'a>,
    current: Lexed<'a>,
    /// Where the token before the current one ended.
    last_end: u32,
    /// How deeply types, constants and metadata are nested here.
    depth: u32,
    /// Whether pointers are `ptr`, as opposed to `i32*`.
    opaque_pointers: bool,
    module: Module,
    report: Report,
    named_types: Names<NamedTypeId>,
    named_mentions: IdVec<NamedTypeId, Mention>,
    symbols: Names<SymbolId>,
    symbol_mentions: IdVec<SymbolId, Mention>,
    /// Each use of a symbol with a pointee, which must be its type.
    typed_uses: Vec<(SymbolId, TypeId, Span)>,
    nodes: FxHashMap<u32, NodeId>,
    node_mentions: IdVec<NodeId, Mention>,
    /// Addresses of blocks in functions that may come later.
    block_addresses: Vec<BlockAddress>,
    /// The attribute groups that were mentioned.
    group_mentions: Vec<(u32, Span)>,
}

/// The address of a block: where it is used, and what it means.
struct BlockAddress {
    constant: ConstantId,
    function: SymbolId,
    block: Box<str>,
    span: Span,
}

/// Reads a module.
pub(crate) fn parse(source: &Source) -> Result<Module, Vec<Diagnostic>> {
    let mut parser = Parser::new(source);
    parser.module();
    parser.finish()
}

impl<'a> Parser<'a> {
    fn new(source: &'a Source) -> Parser<'a> {
        let mut lexer = Lexer::new(source.text());
        let current = lexer.next();
        Parser {
            source,
            lexer,
            current,
            last_end: 0,
            depth: 0,
            opaque_pointers: uses_opaque_pointers(source.text()),
            module: Module {
                source_name: None,
                triple: None,
                data_layout: DataLayout::default(),
                types: Types::new(),
                layouts: Layouts::default(),
                constants: IdVec::new(),
                symbols: IdVec::new(),
                globals: IdVec::new(),
                functions: IdVec::new(),
                aliases: IdVec::new(),
                assembly: Vec::new(),
                attribute_groups: FxHashMap::default(),
                debug: DebugInfo::default(),
            },
            report: Report::default(),
            named_types: Names::default(),
            named_mentions: IdVec::new(),
            symbols: Names::default(),
            symbol_mentions: IdVec::new(),
            typed_uses: Vec::new(),
            nodes: FxHashMap::default(),
            node_mentions: IdVec::new(),
            block_addresses: Vec::new(),
            group_mentions: Vec::new(),
        }
    }

    /// Everything up to the end of the text.
    fn module(&mut self) {
        while self.token() != Token::End {
            let before = self.current.span;
            if let Err(error) = self.item() {
                self.report.push(*error);
                self.skip_to_item(before);
            }
        }
    }

    /// One thing outside functions.
    fn item(&mut self) -> Parse<()> {
        match self.token() {
            Token::Word("source_filename") => {
                self.advance();
                self.sign(b'=')?;
                self.module.source_name = Some(self.text("a file name")?);
                Ok(())
            }
            Token::Word("target") => self.target(),
            Token::Word("module") => self.module_assembly(),
            Token::Word("define") => self.define(),
            Token::Word("declare") => self.declare(),
            Token::Word("attributes") => self.attribute_group(),
            Token::Word("uselistorder" | "uselistorder_bb") => self.use_list_order(),
            Token::Local(name) => self.named_type(name),
            Token::Global(name) => self.global(name),
            Token::Comdat(_) => self.comdat_definition(),
            Token::MetadataNode(number) => self.metadata_definition(number),
            Token::MetadataName(_) => self.named_metadata(),
            Token::Summary(_) => self.summary(),
            token => Err(self.unsupported(format!("{token} outside a function"))),
        }
    }

    /// `target triple = "…"` and `target datalayout = "…"`.
    fn target(&mut self) -> Parse<()> {
        self.advance();
        let what = self.token();
        match what {
            Token::Word("triple" | "datalayout") => self.advance(),
            token => return Err(self.unsupported(format!("`target` with {token}"))),
        };
        self.sign(b'=')?;
        let span = self.current.span;
        let text = self.text("a string")?;
        if what == Token::Word("triple") {
            self.module.triple = Some(text);
            return Ok(());
        }
        match DataLayout::parse(&text) {
            Ok(layout) => self.module.data_layout = layout,
            Err(part) => {
                let message =
                    format!("the data layout has a part that is not understood: `{}`", shorten(&part));
                return Err(unsupported_help(Diagnostic::error("unsupported-ir", message).at(span, "")));
            }
        }
        Ok(())
    }

    /// `module asm "…"`
    fn module_assembly(&mut self) -> Parse<()> {
        let start = self.current.span;
        self.advance();
        self.word("asm")?;
        let text = self.text("a line of assembly")?;
        let span = start.to(self.last_span());
        self.module.assembly.push(crate::module::ModuleAssembly { text, span });
        Ok(())
    }

    /// `$name = comdat any`: decides which copy the linker keeps. All copies mean the same.
    fn comdat_definition(&mut self) -> Parse<()> {
        self.advance();
        self.sign(b'=')?;
        self.word("comdat")?;
        match self.token() {
            Token::Word("any" | "exactmatch" | "largest" | "nodeduplicate" | "noduplicates" | "samesize") => {
                self.advance();
                Ok(())
            }
            token => Err(self.unsupported(format!("`comdat` with {token}"))),
        }
    }

    /// `^0 = module: (…)`: notes for link-time optimisation, which repeat what the module says.
    fn summary(&mut self) -> Parse<()> {
        self.advance();
        self.sign(b'=')?;
        match self.token() {
            Token::Label(_) => self.advance(),
            token => return Err(self.expected("a name with a colon", token)),
        }
        match self.token() {
            Token::Sign(b'(') => self.skip_brackets(),
            // `^5 = flags: 8`
            Token::Integer(_) => {
                self.advance();
                Ok(())
            }
            token => Err(self.expected("`(`", token)),
        }
    }

    /// `uselistorder i32 %x, { 1, 0 }`: an order that nothing depends on.
    fn use_list_order(&mut self) -> Parse<()> {
        self.advance();
        while !self.at_sign(b'{') {
            match self.token() {
                Token::End => return Err(self.expected("`{`", Token::End)),
                Token::Sign(b'(' | b'[' | b'<') => self.skip_brackets()?,
                _ => self.advance(),
            }
        }
        self.skip_brackets()
    }

    // The stream of tokens.

    fn token(&self) -> Token<'a> {
        self.current.token
    }

    fn advance(&mut self) {
        self.last_end = self.current.span.end;
        self.current = self.lexer.next();
    }

    /// The token after the current one.
    fn peek(&self) -> Token<'a> {
        let mut ahead = self.lexer;
        ahead.next().token
    }

    /// The last byte before the current token that is not blank, as a place.
    fn last_span(&self) -> Span {
        Span { start: self.last_end, end: self.last_end }
    }

    /// The text from a place up to the current token.
    fn since(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    fn at_sign(&self, sign: u8) -> bool {
        self.token() == Token::Sign(sign)
    }

    fn eat_sign(&mut self, sign: u8) -> bool {
        let found = self.at_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn sign(&mut self, sign: u8) -> Parse<()> {
        if self.eat_sign(sign) {
            return Ok(());
        }
        Err(self.expected(&format!("`{}`", sign as char), self.token()))
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.token(), Token::Word(found) if found == word);
        if found {
            self.advance();
        }
        found
    }

    fn word(&mut self, word: &str) -> Parse<()> {
        if self.eat_word(word) {
            return Ok(());
        }
        Err(self.expected(&format!("`{word}`"), self.token()))
    }

    /// A comma that is not followed by an attachment such as `!dbg !5`.
    fn eat_comma(&mut self) -> bool {
        let found = self.at_sign(b',') && !matches!(self.peek(), Token::MetadataName(_));
        if found {
            self.advance();
        }
        found
    }

    /// A string, without escapes.
    fn text(&mut self, what: &str) -> Parse<Box<str>> {
        match self.token() {
            Token::Text(raw) => {
                self.advance();
                Ok(String::from_utf8_lossy(&unescape(raw)).into())
            }
            token => Err(self.expected(what, token)),
        }
    }

    /// A number without a sign.
    fn number<N: std::str::FromStr>(&mut self, what: &str) -> Parse<N> {
        match self.token() {
            Token::Integer(digits) => match digits.parse() {
                Ok(number) => {
                    self.advance();
                    Ok(number)
                }
                Err(_) => Err(self.error("ir-number", format!("`{}` is not {what}", shorten(digits)))),
            },
            token => Err(self.expected(what, token)),
        }
    }

    /// `(5)`
    fn number_in_brackets<N: std::str::FromStr>(&mut self, what: &str) -> Parse<N> {
        self.sign(b'(')?;
        let number = self.number(what)?;
        self.sign(b')')?;
        Ok(number)
    }

    /// Reads something nested one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_NESTING {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips brackets and everything in them. The current token is the opening one.
    fn skip_brackets(&mut self) -> Parse<()> {
        let start = self.current.span;
        let mut depth = 0_usize;
        loop {
            match self.token() {
                Token::Sign(b'(' | b'[' | b'{' | b'<') => depth += 1,
                Token::Sign(b')' | b']' | b'}' | b'>') => depth = depth.saturating_sub(1),
                Token::End => {
                    return Err(Box::new(
                        Diagnostic::error("ir-syntax", "this bracket is never closed").at(start, ""),
                    ));
                }
                _ => {}
            }
            self.advance();
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Skips to a line that starts something outside functions. `before` is where the failed item started.
    fn skip_to_item(&mut self, before: Span) {
        if self.current.span == before {
            self.advance();
        }
        loop {
            let starts_item = match self.token() {
                Token::End => return,
                Token::Word(
                    "source_filename" | "target" | "module" | "define" | "declare" | "attributes",
                )
                | Token::Global(_)
                | Token::Comdat(_)
                | Token::MetadataNode(_)
                | Token::MetadataName(_)
                | Token::Summary(_) => true,
                Token::Local(_) => matches!(self.peek(), Token::Sign(b'=')) && self.is_type_definition(),
                _ => false,
            };
            if starts_item && self.current.starts_line {
                return;
            }
            self.advance();
        }
    }

    /// Whether `%name = type` starts here.
    fn is_type_definition(&self) -> bool {
        let mut ahead = self.lexer;
        ahead.next();
        ahead.next().token == Token::Word("type")
    }

    // Errors.

    fn error(&self, id: &'static str, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(id, message).at(self.current.span, ""))
    }

    fn expected(&self, what: &str, found: Token<'_>) -> Box<Diagnostic> {
        self.error("ir-syntax", format!("expected {what}, found {found}"))
    }

    /// A construct that is not understood, at the current token.
    fn unsupported(&self, what: impl std::fmt::Display) -> Box<Diagnostic> {
        let message = format!("{what} is not understood");
        unsupported_help(Diagnostic::error("unsupported-ir", message).at(self.current.span, ""))
    }

    fn too_deep(&self) -> Box<Diagnostic> {
        self.error("too-deep", format!("this is nested more than {MAX_NESTING} levels deep"))
    }
}

/// Adds what users can do about a construct that is not understood.
fn unsupported_help(diagnostic: Diagnostic) -> Box<Diagnostic> {
    Box::new(diagnostic.help(
        "Palisade reads the IR that clang 14 to 19 and rustc write for C and Rust on x86-64 and SPARC. \
         Compile with one of these, without optimisation, or leave out the code that this line comes from.",
    ))
}

/// Whether a text has pointers without a pointee. The first pointer decides: no text has both kinds.
fn uses_opaque_pointers(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    loop {
        match lexer.next().token {
            Token::Word("ptr") | Token::End => return true,
            Token::Sign(b'*') => return false,
            _ => {}
        }
    }
}
