//! The names of a `.pal` program: what each of them declares, and where it is used. Editors ask for this: go to
//! definition, rename, the outline.
//!
//! The written program knows where its names are. Constants are not in it: they were replaced by their values.
//! Their names are used for nothing else, so they are found among the tokens.
//!
//! *Guarantee*: every mention of a declared name is listed once, with the declaration that the validator finds.

mod rename;
mod repair;
mod text;
mod walk;

pub use rename::{RenameError, rename};
pub use text::{declared_constants, declares_process};

pub use palisade_program::print::{RESERVED, is_legal_name, is_quotable_name};

use crate::{Language, Parsed, parse};
use palisade_base::{Diagnostic, Source, Span};

/// A name that a program declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// What it names.
    pub kind: SymbolKind,
    /// The name.
    pub name: String,
    /// Where the name is in its declaration.
    pub declared: Span,
    /// The whole declaration: of a process or procedure with its body.
    pub whole: Span,
    /// Where the name of the process or procedure that contains it is declared.
    pub within: Option<Span>,
    /// What the declaration says: the domain of a variable, the heading of a process.
    pub detail: String,
    /// Where else the name is.
    pub uses: Vec<Span>,
}

impl Symbol {
    /// All places with the name, in the order of the text.
    pub fn mentions(&self) -> Vec<Span> {
        let mut mentions: Vec<Span> = self.uses.iter().copied().chain([self.declared]).collect();
        mentions.sort_unstable();
        mentions
    }
}

/// What a name is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolKind {
    /// `const N = 3;`
    Constant,
    /// `shared x: 0..3;`
    Shared,
    /// `private x: 0..3;`
    Private,
    /// `proc f(…) { … }`
    Procedure,
    /// `process P { … }`
    Process,
    /// A parameter of a process or procedure.
    Parameter,
    /// `let r = 0;`
    Register,
    /// `cs: …`
    Label,
    /// `forall i in 0..2: …`
    Bound,
    /// `enum State { … }`
    Enum,
    /// A value of an enumeration.
    EnumValue,
    /// `struct Node { … }`
    Struct,
    /// A field of a struct.
    Field,
}

impl SymbolKind {
    /// The kind in words.
    pub fn describe(self) -> &'static str {
        match self {
            SymbolKind::Constant => "constant",
            SymbolKind::Shared => "shared variable",
            SymbolKind::Private => "private variable",
            SymbolKind::Procedure => "procedure",
            SymbolKind::Process => "process",
            SymbolKind::Parameter => "parameter",
            SymbolKind::Register => "register",
            SymbolKind::Label => "label",
            SymbolKind::Bound => "variable of a quantifier",
            SymbolKind::Enum => "enumeration",
            SymbolKind::EnumValue => "value of an enumeration",
            SymbolKind::Struct => "struct",
            SymbolKind::Field => "field",
        }
    }
}

/// The names of a program, and its properties.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Symbols {
    /// The declared names.
    pub symbols: Vec<Symbol>,
    /// The properties: `forbid …;` and the like.
    pub properties: Vec<Span>,
}

impl Symbols {
    /// The symbol whose name is at a byte of the text, or just before it, and the place of that mention.
    pub fn at(&self, byte: usize) -> Option<(&Symbol, Span)> {
        let touches = |span: &Span| span.start as usize <= byte && byte <= span.end as usize;
        self.symbols.iter().find_map(|symbol| Some((symbol, symbol.mentions().into_iter().find(touches)?)))
    }
}

/// The names of a `.pal` program without errors.
pub fn symbols(source: &Source) -> Result<Symbols, Vec<Diagnostic>> {
    Ok(all(source, &parse(Language::Pal, source)?))
}

/// The names of a `.pal` program that may have errors, as far as it can be read. `None` if nothing can be.
pub fn known_symbols(source: &Source) -> Option<Symbols> {
    let (readable, parsed) = repair::readable(source)?;
    let mut found = all(&readable, &parsed);
    // A file that could not be imported has no names.
    found.symbols.retain(|symbol| source.text().len() > symbol.declared.start as usize);
    Some(found)
}

fn all(source: &Source, parsed: &Parsed) -> Symbols {
    let mut found = walk::symbols(&parsed.program, source);
    text::add_bound(&mut found, &parsed.bound, source);
    text::add_constants(&mut found, source.text());
    text::extend_to_blocks(&mut found, source.text());
    found.symbols.sort_by_key(|symbol| symbol.declared);
    found
}
