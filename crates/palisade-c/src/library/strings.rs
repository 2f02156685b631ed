//! Functions for strings and bytes, as LLVM IR that is linked to programs that use them.

use palisade_base::Source;
use palisade_llvm::Module;
use palisade_llvm::module::SymbolKind;

const TEXT: &str = include_str!("strings.ll");

/// The module with these functions, if a program declares one of them.
pub(crate) fn module(modules: &[Module]) -> Option<Module> {
    let own = palisade_llvm::read(&Source::new("strings.ll", TEXT)).expect("our own text is well formed");
    let is_declared = |name: &str| {
        modules.iter().any(|module| {
            module.symbols.iter().any(|symbol| match symbol.kind {
                SymbolKind::Function(id) => &*symbol.name == name && module.functions[id].body.is_none(),
                SymbolKind::Global(_) | SymbolKind::Alias(_) => false,
            })
        })
    };
    own.symbols.iter().any(|symbol| is_declared(&symbol.name)).then_some(own)
}
