//! Global variables and aliases.

use super::{Parse, Parser};
use crate::module::{Alias, Global, Linkage, SymbolId, SymbolKind};
use crate::token::{Name, Token};
use palisade_base::{Diagnostic, Span};

/// What stands before `global`, `alias` or the type of a function.
#[derive(Default)]
pub(super) struct Heading {
    pub(super) linkage: Option<Linkage>,
    pub(super) thread_local: bool,
}

/// The linkage of a keyword.
fn linkage(word: &str) -> Option<Linkage> {
    Some(match word {
        "private" => Linkage::Private,
        "internal" => Linkage::Internal,
        "available_externally" => Linkage::AvailableExternally,
        "linkonce" => Linkage::LinkOnce,
        "linkonce_odr" => Linkage::LinkOnceOdr,
        "weak" => Linkage::Weak,
        "weak_odr" => Linkage::WeakOdr,
        "common" => Linkage::Common,
        "appending" => Linkage::Appending,
        "extern_weak" => Linkage::ExternWeak,
        "external" => Linkage::External,
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    /// Linkage, visibility and the like: everything up to the first word that is none of these.
    pub(super) fn heading(&mut self) -> Parse<Heading> {
        let mut heading = Heading::default();
        while let Token::Word(word) = self.token() {
            match word {
                "dso_local" | "dso_preemptable" => {}
                "default" | "hidden" | "protected" => {}
                "dllimport" | "dllexport" => {}
                "unnamed_addr" | "local_unnamed_addr" => {}
                "thread_local" => heading.thread_local = true,
                word => match linkage(word) {
                    Some(found) => heading.linkage = Some(found),
                    None => break,
                },
            }
            self.advance();
            if word == "thread_local" && self.at_sign(b'(') {
                self.skip_brackets()?;
            }
        }
        Ok(heading)
    }

    /// `@name = …`
    pub(super) fn global(&mut self, name: Name<'a>) -> Parse<()> {
        let start = self.current.span;
        let symbol = self.symbol(name)?;
        self.advance();
        self.sign(b'=')?;
        let heading = self.heading()?;
        let address_space = match self.token() {
            Token::Word("addrspace") => self.address_space()?,
            _ => 0,
        };
        let externally_initialized = self.eat_word("externally_initialized");
        let constant = match self.token() {
            Token::Word("global") => false,
            Token::Word("constant") => true,
            Token::Word("alias") => return self.alias(start, symbol, heading),
            token => return Err(self.unsupported(format!("{token} in the definition of `@{name}`"))),
        };
        self.advance();
        let ty = self.ty()?;
        let pointer = self.pointer_in(ty, address_space)?;
        let declared = matches!(heading.linkage, Some(Linkage::External | Linkage::ExternWeak));
        let initializer = match declared {
            true => None,
            false => Some(self.constant(ty)?),
        };
        let mut global = Global {
            symbol,
            ty,
            pointer,
            initializer,
            linkage: heading.linkage.unwrap_or_default(),
            thread_local: heading.thread_local,
            constant,
            externally_initialized,
            align: None,
            section: None,
            span: start,
            variables: Vec::new(),
        };
        self.global_properties(&mut global)?;
        let id = self.module.globals.push(global);
        self.define_symbol(symbol, SymbolKind::Global(id), start)
    }

    /// `, section "x", align 4, !dbg !0`
    fn global_properties(&mut self, global: &mut Global) -> Parse<()> {
        while self.eat_sign(b',') {
            match self.token() {
                Token::Word("align") => global.align = Some(self.align()?),
                Token::Word("section") => {
                    self.advance();
                    global.section = Some(self.text("the name of a section")?);
                }
                Token::Word("partition" | "code_model") => {
                    self.advance();
                    self.text("a string")?;
                }
                Token::Word("comdat") => self.comdat()?,
                Token::Word(
                    "no_sanitize_address"
                    | "no_sanitize_hwaddress"
                    | "sanitize_memtag"
                    | "sanitize_address_dyninit",
                ) => self.advance(),
                Token::MetadataName(name) => {
                    self.advance();
                    let node = self.metadata_node()?;
                    if name == "dbg" {
                        global.variables.push(node);
                    }
                }
                token => return Err(self.unsupported(format!("{token} in the definition of a variable"))),
            }
        }
        while let Token::AttributeGroup(_) = self.token() {
            self.advance();
        }
        Ok(())
    }

    /// `comdat` or `comdat($name)`
    pub(super) fn comdat(&mut self) -> Parse<()> {
        self.word("comdat")?;
        match self.at_sign(b'(') {
            true => self.skip_brackets(),
            false => Ok(()),
        }
    }

    /// `alias i32, ptr @x`
    fn alias(&mut self, span: Span, symbol: SymbolId, heading: Heading) -> Parse<()> {
        self.advance();
        let ty = self.ty()?;
        self.sign(b',')?;
        let target = self.typed_constant()?;
        while self.eat_sign(b',') {
            self.word("partition")?;
            self.text("a string")?;
        }
        let linkage = heading.linkage.unwrap_or_default();
        let alias = Alias { symbol, ty, target, linkage, thread_local: heading.thread_local, span };
        let id = self.module.aliases.push(alias);
        self.define_symbol(symbol, SymbolKind::Alias(id), span)
    }

    pub(super) fn define_symbol(&mut self, symbol: SymbolId, kind: SymbolKind, span: Span) -> Parse<()> {
        let mention = &mut self.symbol_mentions[symbol];
        if mention.defined {
            let message = format!("`@{}` is defined twice", self.module.symbols[symbol].name);
            return Err(Box::new(Diagnostic::error("duplicate-name", message).at(span, "")));
        }
        mention.defined = true;
        self.module.symbols[symbol].kind = kind;
        Ok(())
    }
}
