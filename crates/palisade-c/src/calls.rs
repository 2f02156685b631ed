//! Calls: which function a call instruction means, by name or through a pointer.

use crate::expr::Expr;
use crate::flat::{Access, End, StepKind, Written};
use crate::inline::{Generator, Refused, definition_result};
use crate::link::{FunctionRef, Target};
use crate::memory::{Val, width};
use crate::returns::may_lack_value;
use crate::{Language, taken};
use palisade_llvm::calls::{ArgumentValue, Call, Callee};
use palisade_llvm::instructions::Instruction;
use palisade_llvm::types::{Type, TypeId};
use palisade_llvm::values::{ConstantKind, Expression, Operand};
use palisade_program::written::{BinaryOp, Check};

impl<'a> Generator<'a, '_> {
    pub(crate) fn call_instruction(
        &mut self,
        instruction: &'a Instruction,
        call: &'a Call,
    ) -> Result<(), Refused> {
        let callee = match &call.callee {
            Callee::Assembly(assembly) => return self.assembly(instruction, assembly, &call.arguments),
            Callee::Value(callee) => *callee,
        };
        let module = self.module();
        // Calls of intrinsics may have metadata as arguments; these are known by name.
        let mut arguments = Vec::new();
        let mut operands = Vec::new();
        for argument in &call.arguments {
            if let ArgumentValue::Operand(operand) = argument.value {
                operands.push(operand);
            }
        }
        let target = match callee {
            Operand::Constant(constant) => {
                let mut constant = constant;
                // A function that is called as another type.
                while let ConstantKind::Expression(Expression::Cast { value, .. }) =
                    &module.constants[constant].kind
                {
                    constant = *value;
                }
                match module.constants[constant].kind {
                    ConstantKind::Symbol(symbol) => {
                        self.context.memory.linked.resolve(self.module_index(), symbol)
                    }
                    _ => None,
                }
            }
            Operand::Local(_) => None,
        };
        if let Some(Target::Library(name)) = &target {
            return self.library(instruction, name, &operands);
        }
        for &operand in &operands {
            arguments.push(self.value(operand)?);
        }
        let mut lacks = |function: FunctionRef| {
            let module = &self.context.memory.linked.modules[function.module];
            module.functions[function.function].body.as_ref().is_some_and(|body| may_lack_value(module, body))
        };
        let may_lack = match target {
            Some(Target::Function(function)) => lacks(function),
            _ => self.context.taken.called(None).any(&mut lacks),
        };
        let result = match target {
            // The verifier's own functions mean what they are for, whatever their body is.
            Some(Target::Function(function)) => {
                let name = self.context.memory.linked.name(function);
                if crate::library::replaces(name) {
                    return self.library(instruction, name, &operands);
                }
                self.call(function, arguments)?
            }
            _ => {
                let pointer = self.scalar(callee)?;
                let slot = match self.context.language {
                    Language::Rust => taken::slot(self.module(), self.body(), callee),
                    Language::C | Language::Machine => None,
                };
                self.call_pointer(pointer, arguments, call.ty, slot)?
            }
        };
        if let Some(value) = instruction.result {
            if may_lack && self.uses(value) > 0 {
                self.check_returned(&result);
            }
            self.set(value, result);
        }
        Ok(())
    }

    /// Calls through a pointer: one of the functions of fitting type whose address is used, perhaps in a slot of a
    /// virtual table.
    fn call_pointer(
        &mut self,
        pointer: Expr,
        arguments: Vec<Val>,
        ty: TypeId,
        slot: Option<u64>,
    ) -> Result<Val, Refused> {
        let pointer = match pointer {
            pointer if pointer.size() > 1 => {
                let register = self.temporary(64);
                self.step(StepKind::Assign(register, pointer));
                Expr::Reg(register)
            }
            pointer => pointer,
        };
        let module = self.module();
        let Type::Function { result, parameters, .. } = module.types.get(ty) else {
            return Err(self.refuse("a call of this form"));
        };
        if width(module, *result).is_none() && module.types.get(*result) != &Type::Void {
            return Err(self.refuse("a call through a pointer that returns a struct"));
        }
        let result = width(module, *result).map(|w| self.temporary(w));
        let caller = module;
        let count = parameters.len();
        let after = self.new_block();
        let linked = self.context.memory.linked;
        let fitting: Vec<FunctionRef> = self
            .context
            .taken
            .called(slot)
            .filter(|function| {
                let module = &linked.modules[function.module];
                let definition = &module.functions[function.function];
                let widths = parameters.iter().zip(&definition.parameters).all(|(&given, parameter)| {
                    width(caller, given).is_none_or(|given| width(module, parameter.ty) == Some(given))
                });
                let returned = width(module, definition_result(module, definition));
                definition.parameters.len() == count
                    && widths
                    && returned == result.map(|result| self.code.width(result))
            })
            .collect();
        for function in fitting {
            let address = self.context.memory.function_address(Target::Function(function));
            let equal = self.binary(BinaryOp::Eq, pointer.clone(), Expr::Int(address));
            let (yes, no) = (self.new_block(), self.new_block());
            self.end(End::Branch(equal, yes, no));
            self.go_on(yes);
            let value = if crate::library::replaces(linked.name(function)) {
                Err(self.refuse(format!("a call of `{}` through a pointer", linked.name(function))))
            } else {
                self.call(function, arguments.clone())
            };
            if let Ok(value) = value {
                if let (Some(result), Val::Scalar(e)) = (result, value) {
                    self.step(StepKind::Assign(result, e));
                }
                self.end(End::Goto(after));
            }
            self.go_on(no);
        }
        let fits =
            |(_, parameters): &(Box<str>, Option<usize>)| parameters.is_none_or(|known| known == count);
        let library: Vec<_> = self.context.taken.library.iter().filter(|it| fits(it)).cloned().collect();
        for (name, _) in library {
            let address = self.context.memory.function_address(Target::Library(name.clone()));
            let equal = self.binary(BinaryOp::Eq, pointer.clone(), Expr::Int(address));
            let (yes, no) = (self.new_block(), self.new_block());
            self.end(End::Branch(equal, yes, no));
            self.go_on(yes);
            self.refuse(format!("a call of `{name}` through a pointer"));
            self.go_on(no);
        }
        // Not the address of a function of this type. The access fails with the address.
        let register = self.temporary(8);
        self.step(StepKind::Load {
            to: register,
            from: Access { pointer, size: 0, plain: false },
            written: Written::Needed,
        });
        self.step(StepKind::Assert(Expr::Int(0), Check::Unreachable));
        self.end(End::Stop);
        self.go_on(after);
        Ok(result.map_or(Val::Aggregate(Vec::new()), |register| Val::Scalar(Expr::Reg(register))))
    }
}
