//! Which features occur in a program's text, so that those that do not occur need not be checked.

use crate::inline::Features;
use crate::link::Linked;
use palisade_llvm::Module;
use palisade_llvm::calls::{ArgumentValue, Callee};
use palisade_llvm::types::{Type, TypeId};
use palisade_llvm::values::{ConstantId, ConstantKind, Operand};

/// A semaphore that starts with less than this is never posted so often that its value becomes too large: that would
/// take as many states.
const LARGE: u128 = 1 << 30;

/// What occurs in the program.
pub(crate) fn features(linked: &Linked<'_>) -> Features {
    let mentions = |names: &[&str]| {
        linked.modules.iter().any(|module| names.iter().any(|name| module.find(name).is_some()))
    };
    let frees_in_rust = linked
        .modules
        .iter()
        .flat_map(|module| &module.symbols)
        .any(|symbol| symbol.name.ends_with("__rust_dealloc") || symbol.name.ends_with("__rust_realloc"));
    Features {
        frees: mentions(&["free", "realloc"]) || frees_in_rust,
        detaches: mentions(&["pthread_detach", "thrd_detach", "pthread_attr_setdetachstate"]),
        destroys_mutexes: mentions(&["pthread_mutex_destroy", "mtx_destroy", "pthread_spin_destroy"]),
        destroys_rwlocks: mentions(&["pthread_rwlock_destroy"]),
        destroys_semaphores: mentions(&["sem_destroy"]),
        destroys_conditions: mentions(&["pthread_cond_destroy", "cnd_destroy"]),
        unusual_mutexes: mentions(&["pthread_mutexattr_settype", "mtx_init"])
            || linked.modules.iter().any(has_unusual_mutex),
        large_semaphores: linked.modules.iter().any(has_large_semaphore),
    }
}

/// Whether a variable that may contain a mutex is not all zero at first, so that the mutex may be recursive.
fn has_unusual_mutex(module: &Module) -> bool {
    if module.types.find_named("union.pthread_mutex_t").is_none() {
        return false;
    }
    module.globals.iter().any(|global| {
        let zero = |constant: ConstantId| matches!(module.constants[constant].kind, ConstantKind::Zero);
        let scalar = module.types.fields(global.ty).is_none()
            && !matches!(module.types.get(global.ty), Type::Array { .. });
        !global.constant
            && global.initializer.is_some_and(|constant| !zero(constant))
            && !scalar
            && !holds_only_bytes(module, global.ty)
    })
}

/// Whether a type is an array of bytes, as texts are, or of such arrays.
fn holds_only_bytes(module: &Module, mut ty: TypeId) -> bool {
    while let Type::Array { element, .. } = module.types.get(ty) {
        ty = *element;
    }
    matches!(module.types.get(ty), Type::Integer(8))
}

/// Whether a semaphore may start with a large value.
fn has_large_semaphore(module: &Module) -> bool {
    let bodies = module.functions.iter().filter_map(|function| function.body.as_ref());
    let instructions = bodies.flat_map(|body| &body.blocks).flat_map(|block| &block.instructions);
    instructions.filter_map(|instruction| instruction.op.call()).any(|call| {
        let Callee::Value(Operand::Constant(callee)) = call.callee else { return false };
        let ConstantKind::Symbol(symbol) = module.constants[callee].kind else { return false };
        if &*module.symbols[symbol].name != "sem_init" {
            return false;
        }
        match call.arguments.get(2).map(|argument| &argument.value) {
            Some(ArgumentValue::Operand(Operand::Constant(value))) => {
                !matches!(module.constants[*value].kind, ConstantKind::Integer(value) if value < LARGE)
            }
            _ => true,
        }
    })
}
