//! Linking: which definition a name of a module stands for.
//!
//! Definitions with external linkage win over declarations in other modules. Internal ones stay apart. Of several
//! weak definitions the first counts, unless there is a strong one.

use palisade_base::{Diagnostic, Id};
use palisade_llvm::Module;
use palisade_llvm::module::{FunctionId, GlobalId, Linkage, SymbolId, SymbolKind};
use palisade_llvm::values::{ConstantKind, Expression};
use rustc_hash::FxHashMap;

/// A function that is defined in a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct FunctionRef {
    pub(crate) module: usize,
    pub(crate) function: FunctionId,
}

/// A variable that is defined in a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct GlobalRef {
    pub(crate) module: usize,
    pub(crate) global: GlobalId,
}

/// What a name stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Target {
    Function(FunctionRef),
    Global(GlobalRef),
    /// A function that no module defines.
    Library(Box<str>),
    /// A variable that no module defines.
    Missing(Box<str>),
}

/// The modules of a program.
pub(crate) struct Linked<'a> {
    pub(crate) modules: &'a [Module],
    defined: FxHashMap<&'a str, (Target, bool)>,
}

impl<'a> Linked<'a> {
    pub(crate) fn new(modules: &'a [Module]) -> Result<Linked<'a>, Vec<Diagnostic>> {
        let mut linked = Linked { modules, defined: FxHashMap::default() };
        let mut errors = Vec::new();
        for (index, module) in modules.iter().enumerate() {
            for symbol in &module.symbols {
                if matches!(&*symbol.name, "llvm.global_ctors" | "llvm.global_dtors") {
                    let names = functions_in(module, symbol.kind).join("`, `");
                    errors.push(Diagnostic::error(
                        "c-unsupported",
                        format!(
                            "not supported: constructors and destructors, which run before and after `main`: `{names}`"
                        ),
                    ));
                    continue;
                }
                let (linkage, target) = match symbol.kind {
                    SymbolKind::Function(id) if module.functions[id].body.is_some() => {
                        let target = Target::Function(FunctionRef { module: index, function: id });
                        (module.functions[id].linkage, target)
                    }
                    SymbolKind::Global(id) if module.globals[id].initializer.is_some() => {
                        let target = Target::Global(GlobalRef { module: index, global: id });
                        (module.globals[id].linkage, target)
                    }
                    _ => continue,
                };
                let strong = match linkage {
                    Linkage::Private | Linkage::Internal => continue,
                    Linkage::External | Linkage::Appending => true,
                    _ => false,
                };
                match linked.defined.get(&*symbol.name) {
                    Some((_, true)) if strong => errors.push(Diagnostic::error(
                        "c-duplicate",
                        format!("`{}` is defined in two translation units", symbol.name),
                    )),
                    Some((_, true)) => {}
                    Some((_, false)) if !strong => {}
                    _ => _ = linked.defined.insert(&symbol.name, (target, strong)),
                }
            }
        }
        if errors.is_empty() { Ok(linked) } else { Err(errors) }
    }

    /// What a name of a module stands for. `None` for an alias of something else than a name.
    pub(crate) fn resolve(&self, module: usize, symbol: SymbolId) -> Option<Target> {
        let mut symbol = symbol;
        // A chain of aliases is shorter than the number of names.
        for _ in 0..=self.modules[module].symbols.len() {
            let here = &self.modules[module];
            let entry = &here.symbols[symbol];
            let local = |linkage| matches!(linkage, Linkage::Private | Linkage::Internal);
            match entry.kind {
                SymbolKind::Function(id) => {
                    let function = &here.functions[id];
                    if function.body.is_some() && local(function.linkage) {
                        return Some(Target::Function(FunctionRef { module, function: id }));
                    }
                    let defined = self.defined.get(&*entry.name).map(|(target, _)| target.clone());
                    return Some(defined.unwrap_or_else(|| Target::Library(entry.name.clone())));
                }
                SymbolKind::Global(id) => {
                    let global = &here.globals[id];
                    if global.initializer.is_some() && local(global.linkage) {
                        return Some(Target::Global(GlobalRef { module, global: id }));
                    }
                    let defined = self.defined.get(&*entry.name).map(|(target, _)| target.clone());
                    return Some(defined.unwrap_or_else(|| Target::Missing(entry.name.clone())));
                }
                SymbolKind::Alias(id) => match here.constants[here.aliases[id].target].kind {
                    ConstantKind::Symbol(next) => symbol = next,
                    _ => return None,
                },
            }
        }
        None
    }

    /// The function with this name that can be called from anywhere, or else the only one of this name.
    pub(crate) fn function(&self, name: &str) -> Option<FunctionRef> {
        if let Some((Target::Function(found), _)) = self.defined.get(name) {
            return Some(*found);
        }
        let mut found = self.modules.iter().enumerate().flat_map(|(module, here)| {
            let defined = here.functions.iter().enumerate();
            let named = defined.filter(|(_, f)| f.body.is_some() && &*here.symbols[f.symbol].name == name);
            named.map(move |(index, _)| FunctionRef { module, function: FunctionId::from_index(index) })
        });
        let first = found.next();
        first.filter(|_| found.next().is_none())
    }

    pub(crate) fn name(&self, function: FunctionRef) -> &'a str {
        let module = &self.modules[function.module];
        &module.symbols[module.functions[function.function].symbol].name
    }
}

/// The functions whose addresses are in the initial value of a variable.
fn functions_in(module: &Module, variable: SymbolKind) -> Vec<&str> {
    let SymbolKind::Global(global) = variable else { return Vec::new() };
    let mut open: Vec<_> = module.globals[global].initializer.into_iter().collect();
    let mut found = Vec::new();
    while let Some(constant) = open.pop() {
        match &module.constants[constant].kind {
            ConstantKind::Aggregate(parts) => open.extend(parts.iter().rev()),
            ConstantKind::Expression(Expression::Cast { value, .. }) => open.push(*value),
            ConstantKind::Symbol(symbol) => found.push(&*module.symbols[*symbol].name),
            _ => {}
        }
    }
    found
}
