//! What can only be checked at the end: names that were never defined, and what names stand for.

use super::Parser;
use crate::layout::Layouts;
use crate::module::{BlockId, FunctionId, Module, SymbolId, SymbolKind};
use crate::types::{Type, TypeId};
use crate::values::ConstantKind;
use palisade_base::{Diagnostic, Span};
use rustc_hash::FxHashMap;

impl Parser<'_> {
    /// The module, or all errors.
    pub(super) fn finish(mut self) -> Result<Module, Vec<Diagnostic>> {
        // What was not understood may have defined names, or mentioned what are no names.
        if !self.report.has_errors() {
            self.undefined_names();
        }
        if !self.report.has_errors() {
            self.check_symbols();
            self.block_addresses();
        }
        if !self.report.has_errors() {
            self.module.layouts = Layouts::new(&self.module.types, &self.module.data_layout);
            self.check_sizes();
        }
        if !self.report.has_errors() {
            return Ok(self.module);
        }
        let debug = &self.module.debug;
        Err(self.report.into_diagnostics(|location| {
            let position = debug.position(location)?;
            Some(format!("{}:{}", position.file, position.line))
        }))
    }

    fn undefined(&mut self, message: String, span: Span) {
        self.report.push(Diagnostic::error("undefined-name", message).at(span, ""));
    }

    fn undefined_names(&mut self) {
        for id in self.module.types.named().ids() {
            if !self.named_mentions[id].defined {
                let message =
                    format!("the type `%{}` is used but never defined", self.module.types.named()[id].name);
                self.undefined(message, self.named_mentions[id].span);
            }
        }
        for id in self.module.symbols.ids() {
            if !self.symbol_mentions[id].defined {
                let message = format!("`@{}` is used but never defined", self.module.symbols[id].name);
                self.undefined(message, self.symbol_mentions[id].span);
            }
        }
        for mention in self.node_mentions.as_slice().to_vec() {
            if !mention.defined {
                let name = self.source.slice(mention.span).to_owned();
                self.undefined(format!("the metadata `{name}` is used but never defined"), mention.span);
            }
        }
        for (group, span) in std::mem::take(&mut self.group_mentions) {
            if !self.module.attribute_groups.contains_key(&group) {
                self.undefined(format!("the attributes `#{group}` are used but never defined"), span);
            }
        }
    }

    /// Uses with a pointee agree with the definition, as LLVM demands.
    fn check_symbols(&mut self) {
        for (symbol, used, span) in std::mem::take(&mut self.typed_uses) {
            let types = &self.module.types;
            let (Type::Pointer { pointee, .. }, defined) = (types.get(used), self.symbol_type(symbol)) else {
                continue;
            };
            if *pointee != Some(defined) {
                let (used, defined) = (types.display(used), types.display(defined));
                let name = &self.module.symbols[symbol].name;
                let message = format!("`@{name}` holds a `{defined}` but is used as `{used}`");
                self.report.push(Diagnostic::error("type-mismatch", message).at(span, ""));
            }
        }
    }

    /// The type of what is at a symbol.
    fn symbol_type(&self, symbol: SymbolId) -> TypeId {
        match self.module.symbols[symbol].kind {
            SymbolKind::Global(id) => self.module.globals[id].ty,
            SymbolKind::Function(id) => self.module.functions[id].ty,
            SymbolKind::Alias(id) => self.module.aliases[id].ty,
        }
    }

    /// Finds the blocks whose addresses are taken.
    fn block_addresses(&mut self) {
        let mut blocks: FxHashMap<FunctionId, FxHashMap<Box<str>, BlockId>> = FxHashMap::default();
        for address in std::mem::take(&mut self.block_addresses) {
            let found = match self.module.symbols[address.function].kind {
                SymbolKind::Function(function) => {
                    let body = self.module.functions[function].body.as_ref();
                    let blocks = blocks.entry(function).or_insert_with(|| {
                        let blocks = body.into_iter().flat_map(|body| body.blocks.iter_enumerated());
                        blocks.map(|(id, block)| (block.name.clone(), id)).collect()
                    });
                    blocks.get(&address.block).map(|&block| (function, block))
                }
                _ => None,
            };
            match found {
                Some((function, block)) => {
                    self.module.constants[address.constant].kind =
                        ConstantKind::BlockAddress { function, block };
                }
                None => {
                    let message = format!("there is no block `%{}` in this function", address.block);
                    self.undefined(message, address.span);
                }
            }
        }
    }

    /// Variables that the module defines have a size.
    fn check_sizes(&mut self) {
        for global in self.module.globals.iter() {
            if global.initializer.is_some() && self.module.layouts.get(global.ty).is_none() {
                let message = format!("`{}` has no size", self.module.types.display(global.ty));
                self.report.push(Diagnostic::error("type-mismatch", message).at(global.span, ""));
            }
        }
    }
}
