//! Turns a function and everything it calls into the code of one thread.
//!
//! Every call gets its own copy of the callee. Values of instructions become expressions; those that are used
//! more than once get a register. Locals become objects, which `promote` turns into registers where it can.
//!
//! What cannot be translated becomes a step of its own ([`StepKind::Unsupported`]), which is reported only if
//! control can reach it.

use crate::expr::{self, Expr};
use crate::flat::{Access, BlockId, Code, End, ObjectId, RegId, Step, StepKind, Written};
use crate::library;
use crate::link::FunctionRef;
use crate::memory::{Leaf, Memory, MemoryObject, Refusal, ThreadNumber, Val, alignment, leaves, width};
use crate::objects::ObjectKind;
use crate::taken::AddressesTaken;
use crate::unsupported::Unsupported;
use crate::{Language, Places, scopes, undefined};
use palisade_base::{Id, Span};
use palisade_llvm::Module;
use palisade_llvm::flow::Flow;
use palisade_llvm::instructions::{Instruction, Op};
use palisade_llvm::module::{BlockId as IrBlockId, Body, Function};
use palisade_llvm::types::{Type, TypeId};
use palisade_llvm::values::{Operand, ValueId};
use palisade_program::written::{BinaryOp, Check};
use rustc_hash::{FxHashMap, FxHashSet};

/// How many times one function may be active at the same time. Deeper recursion is refused.
const MAX_RECURSION: usize = 6;

/// The maximum number of steps of one thread.
const MAX_STEPS: usize = 200_000;

/// An expression with more operators gets a register.
const MAX_EXPRESSION: usize = 24;

/// The register that holds what a thread returns.
pub(crate) const RESULT: RegId = RegId(1);

/// What the threads of a program share while they are generated.
pub(crate) struct Context<'a> {
    pub(crate) memory: Memory<'a>,
    pub(crate) places: &'a dyn Places,
    pub(crate) language: Language,
    pub(crate) options: &'a crate::Options,
    /// What cannot be translated, by the index in [`StepKind::Unsupported`].
    pub(crate) unsupported: Vec<Unsupported>,
    /// Functions whose address is used other than to call them, of all modules.
    pub(crate) taken: AddressesTaken,
    /// The tokens of threads that park.
    pub(crate) tokens: Vec<(ThreadNumber, ObjectId)>,
    /// What the answer rests on.
    pub(crate) notes: std::collections::BTreeSet<crate::Note>,
    /// What every answer, positive or not, assumes.
    pub(crate) circumstances: std::collections::BTreeSet<crate::Note>,
    pub(crate) features: Features,
    /// The threads that wait for conditions, by the number of their bit.
    pub(crate) waiting: Vec<ThreadNumber>,
    pub(crate) heap: crate::heap::Heap,
    /// Calls that wait, by their place.
    pub(crate) waits: Vec<(Span, crate::Wait)>,
    /// The threads that hold mutexes, by the number that is stored in the mutex minus 1.
    pub(crate) owners: Vec<ThreadNumber>,
    /// Locals of blocks whose ends are not marked in the text.
    pub(crate) unmarked: Vec<ObjectId>,
}

/// What occurs in a program, so that what does not occur need not be checked.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Features {
    /// Threads are detached.
    pub(crate) detaches: bool,
    /// Mutexes, reader-writer locks, semaphores and condition variables are destroyed.
    pub(crate) destroys_mutexes: bool,
    pub(crate) destroys_rwlocks: bool,
    pub(crate) destroys_semaphores: bool,
    pub(crate) destroys_conditions: bool,
    /// Memory is freed.
    pub(crate) frees: bool,
    /// Mutexes may be recursive, or check for errors.
    pub(crate) unusual_mutexes: bool,
    /// Semaphores may start with a value that is close to the largest one.
    pub(crate) large_semaphores: bool,
}

/// Where the result of a function goes.
#[derive(Clone)]
enum Results {
    Nothing,
    Scalar(RegId),
    Struct(Vec<RegId>),
}

impl Results {
    fn value(&self) -> Val {
        let scalar = |register: &RegId| Val::Scalar(Expr::Reg(*register));
        match self {
            Results::Nothing => Val::Aggregate(Vec::new()),
            Results::Scalar(register) => scalar(register),
            Results::Struct(registers) => Val::Aggregate(registers.iter().map(scalar).collect()),
        }
    }
}

/// What a local is called, and what it is.
#[derive(Clone, Default)]
struct LocalName {
    name: String,
    ty: Option<palisade_llvm::debug::NodeId>,
    /// Whether it belongs to a block inside the function.
    in_block: bool,
}

/// The copy of a function at one call.
pub(crate) struct Frame<'a> {
    module: usize,
    function: FunctionRef,
    body: &'a Body,
    values: FxHashMap<ValueId, Val>,
    /// How many times each value is used.
    uses: Vec<u32>,
    /// The code of each block.
    blocks: Vec<BlockId>,
    phis: FxHashMap<ValueId, RegId>,
    /// Values that may never have been written.
    pub(crate) undefined: FxHashSet<ValueId>,
    /// Values that are loaded without a check whether they were written.
    pub(crate) unchecked: FxHashMap<ValueId, RegId>,
    /// Where the result goes: one register per field of a struct.
    result: Results,
    /// Where control goes after the function.
    after: BlockId,
    /// What locals are called.
    names: FxHashMap<ValueId, LocalName>,
    /// Locals for which the text marks where they begin and cease to exist.
    marked: FxHashSet<ValueId>,
    /// The objects of its locals, and whether their ends are marked.
    locals: Vec<(ObjectId, bool)>,
}

/// The code of a thread while it is generated.
pub(crate) struct Generator<'a, 'c> {
    pub(crate) context: &'c mut Context<'a>,
    pub(crate) code: Code,
    pub(crate) thread: ThreadNumber,
    /// The number of threads that this one has started.
    pub(crate) started: RegId,
    /// Where the thread ends.
    pub(crate) exit: BlockId,
    /// What the thread returns.
    pub(crate) result: RegId,
    /// Whether another thread may ask for that.
    pub(crate) joinable: bool,
    here: BlockId,
    frames: Vec<Frame<'a>>,
    /// The registers that hold the locks that the thread holds as a reader, once there are some.
    pub(crate) read_locks: Option<[RegId; 4]>,
    /// The innermost place in a file of the user.
    pub(crate) span: Span,
    call_spans: Vec<Span>,
    steps: usize,
}

/// Marks a piece of code that ends early.
pub(crate) struct Refused;

impl<'a, 'c> Generator<'a, 'c> {
    /// An empty thread.
    pub(crate) fn new(context: &'c mut Context<'a>, thread: ThreadNumber) -> Generator<'a, 'c> {
        let mut code = Code::default();
        let entry = code.new_block();
        let exit = code.new_block();
        let started = code.new_register("started", 64);
        let result = code.new_register("result", 64);
        assert_eq!(result, RESULT, "the register for the result has a fixed number");
        let mut generator = Generator {
            context,
            code,
            thread,
            started,
            exit,
            result,
            joinable: false,
            here: entry,
            frames: Vec::new(),
            read_locks: None,
            span: Span::NONE,
            call_spans: Vec::new(),
            steps: 0,
        };
        generator.step(StepKind::Assign(started, Expr::Int(0)));
        generator
    }

    /// Ends the thread: control goes to the exit, where `finish` is generated.
    pub(crate) fn finish(mut self, finish: impl FnOnce(&mut Self)) -> Code {
        self.end(End::Goto(self.exit));
        self.here = self.exit;
        finish(&mut self);
        self.code
    }

    pub(crate) fn step(&mut self, kind: StepKind) {
        self.steps += 1;
        if self.steps == MAX_STEPS {
            let what = format!("more than {MAX_STEPS} steps in one thread, with all calls inlined");
            let kind = self.context.unsupported(what, self.span);
            self.code.block_mut(self.here).steps.push(Step { kind, span: self.span });
        }
        if self.steps >= MAX_STEPS {
            return;
        }
        self.code.block_mut(self.here).steps.push(Step { kind, span: self.span });
    }

    pub(crate) fn make_step(&self, kind: StepKind) -> Step {
        Step { kind, span: self.span }
    }

    /// Ends the current block. What follows is unreachable until [`Generator::go_on`].
    pub(crate) fn end(&mut self, end: End) {
        let span = self.span;
        let block = self.code.block_mut(self.here);
        block.end = end;
        block.end_span = span;
        self.here = self.code.new_block();
    }

    /// Continues in a block.
    pub(crate) fn go_on(&mut self, block: BlockId) {
        self.here = block;
    }

    pub(crate) fn new_block(&mut self) -> BlockId {
        self.code.new_block()
    }

    pub(crate) fn temporary(&mut self, width: u32) -> RegId {
        self.code.new_register("", width)
    }

    /// What a thread does not [know about itself](crate::Identity). No two threads get the same range, so those that do
    /// something with it differ.
    pub(crate) fn unknown(&mut self) -> Expr {
        let to = self.temporary(64);
        self.step(StepKind::Any { to, lo: i64::MIN + self.thread, hi: i64::MAX, wide: None });
        Expr::Reg(to)
    }

    pub(crate) fn binary(&self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        expr::binary(op, a, b, &self.code.registers)
    }

    pub(crate) fn wrap(&self, width: u32, e: Expr) -> Expr {
        expr::wrap(width, e, &self.code.registers)
    }

    /// Something that cannot be translated.
    pub(crate) fn refuse(&mut self, what: impl Into<String>) -> Refused {
        let function = self.frames.last().map(|frame| frame.function);
        let function =
            function.map(|function| library::rust::readable(self.context.memory.linked.name(function)));
        let index = self.context.add_unsupported(what, self.span, function);
        self.step(StepKind::Unsupported(index));
        self.end(End::Stop);
        Refused
    }

    /// The result of a constant or type that may be refused.
    pub(crate) fn accept<T>(&mut self, result: Result<T, Refusal>) -> Result<T, Refused> {
        result.map_err(|what| self.refuse(what))
    }

    pub(crate) fn module(&self) -> &'a Module {
        &self.context.memory.linked.modules[self.frame().module]
    }

    pub(crate) fn module_index(&self) -> usize {
        self.frame().module
    }

    pub(crate) fn frame(&self) -> &Frame<'a> {
        self.frames.last().expect("code belongs to a function")
    }

    pub(crate) fn frame_mut(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("code belongs to a function")
    }

    pub(crate) fn body(&self) -> &'a Body {
        self.frame().body
    }

    /// Notes what the call at this place waits for.
    pub(crate) fn waits_for(&mut self, wait: crate::Wait) {
        let call = (self.span, wait);
        if !call.0.is_none() && !self.context.waits.contains(&call) {
            self.context.waits.push(call);
        }
    }

    /// Whether the thread runs `main`.
    pub(crate) fn is_main(&self) -> bool {
        self.thread == 1 && self.context.options.roots == crate::Roots::Main
    }

    /// The number that the thread stores in mutexes that it holds.
    pub(crate) fn owner(&mut self) -> i64 {
        let (thread, owners) = (self.thread, &mut self.context.owners);
        let index = owners.iter().position(|known| *known == thread).unwrap_or_else(|| {
            owners.push(thread);
            owners.len() - 1
        });
        i64::try_from(index + 1).expect("few threads")
    }

    /// How many times a value is used.
    pub(crate) fn uses(&self, value: ValueId) -> u32 {
        self.frame().uses[value.index()]
    }

    /// The register of a phi.
    pub(crate) fn phi(&self, value: ValueId) -> Option<RegId> {
        self.frame().phis.get(&value).copied()
    }

    /// Whether a local is a variable of the source program, as far as the debug information says.
    pub(crate) fn is_variable(&self, local: ValueId) -> bool {
        self.frame().names.contains_key(&local)
    }

    /// The type of a local variable in the source program.
    pub(crate) fn variable_type(&self, variable: ValueId) -> Option<palisade_llvm::debug::NodeId> {
        self.frame().names.get(&variable).and_then(|local| local.ty)
    }

    /// The span of a place, or that of the innermost call in a file of the user.
    fn place(&self, location: Option<palisade_llvm::debug::NodeId>) -> Span {
        let outer = self.call_spans.last().copied().unwrap_or(Span::NONE);
        let Some(location) = location else { return outer };
        let positions = self.module().debug.positions(location);
        let mut known = positions.iter().filter(|position| position.line > 0);
        let span = known.find_map(|position| {
            self.context.places.span(position.file, position.directory, position.line, position.column)
        });
        span.unwrap_or(outer)
    }

    /// Inlines a call of a function. Control continues after it; the result is returned.
    pub(crate) fn call(&mut self, function: FunctionRef, arguments: Vec<Val>) -> Result<Val, Refused> {
        let linked = self.context.memory.linked;
        let module = &linked.modules[function.module];
        let definition = &module.functions[function.function];
        let body = definition.body.as_ref().expect("a function that is defined");
        let active = self.frames.iter().filter(|frame| frame.function == function).count();
        if active >= MAX_RECURSION {
            let name = library::rust::readable(linked.name(function));
            return Err(self.refuse(format!(
                "recursion of `{name}` that is deeper than {MAX_RECURSION} or not bounded by constants"
            )));
        }
        if arguments.len() < definition.parameters.len() {
            return Err(self.refuse("a call with too few arguments"));
        }
        if let Type::Function { variadic: true, .. } = module.types.get(definition.ty) {
            let name = linked.name(function);
            return Err(self.refuse(format!("the variadic function `{name}`")));
        }
        self.inline(function, definition, body, arguments)
    }

    /// Registers for the result of a function.
    fn results(&mut self, module: &'a Module, ty: TypeId) -> Option<Results> {
        Some(match (module.types.body(ty), width(module, ty)) {
            (Type::Void, _) => Results::Nothing,
            (_, Some(width)) => Results::Scalar(self.temporary(width)),
            (Type::Struct { fields, .. }, None) => {
                let widths: Vec<u32> =
                    fields.iter().map(|&field| width(module, field)).collect::<Option<_>>()?;
                Results::Struct(widths.into_iter().map(|width| self.temporary(width)).collect())
            }
            _ => return None,
        })
    }

    fn inline(
        &mut self,
        function: FunctionRef,
        definition: &'a Function,
        body: &'a Body,
        arguments: Vec<Val>,
    ) -> Result<Val, Refused> {
        let module = &self.context.memory.linked.modules[function.module];
        let Some(result) = self.results(module, definition_result(module, definition)) else {
            let name = self.context.memory.linked.name(function);
            return Err(
                self.refuse(format!("what `{name}` returns: floating-point numbers or nested structs"))
            );
        };
        let after = self.new_block();
        let blocks: Vec<BlockId> = body.blocks.iter().map(|_| self.code.new_block()).collect();
        let mut uses = vec![0; body.values.len()];
        for block in &body.blocks {
            for instruction in &block.instructions {
                instruction.op.for_each_operand(|operand| {
                    if let Operand::Local(value) = operand {
                        uses[value.index()] += 1;
                    }
                });
            }
        }
        let mut names = FxHashMap::default();
        for record in &body.records {
            if let Some(Operand::Local(value)) = record.place
                && let Some(variable) = module.debug.variable(record.variable)
            {
                let (name, ty, in_block) = (variable.name.to_owned(), variable.ty, variable.in_block);
                names.entry(value).or_insert(LocalName { name, ty, in_block });
            }
        }
        let frame = Frame {
            module: function.module,
            function,
            body,
            values: FxHashMap::default(),
            uses,
            blocks,
            phis: FxHashMap::default(),
            undefined: undefined::undefined_phis(module, body),
            unchecked: FxHashMap::default(),
            result: result.clone(),
            after,
            names,
            marked: scopes::marked(module, body),
            locals: Vec::new(),
        };
        self.call_spans.push(self.span);
        self.frames.push(frame);
        for (parameter, argument) in definition.parameters.iter().zip(arguments) {
            if let Some(value) = parameter.value {
                if parameter.passing.by_value.is_some() {
                    // The callee works on its own copy, at the address of which it gets.
                    let copied = self.copy_argument(parameter.passing.by_value, argument);
                    let Ok(copied) = copied else {
                        self.frames.pop();
                        self.span = self.call_spans.pop().unwrap_or(Span::NONE);
                        self.go_on(after);
                        return Err(Refused);
                    };
                    self.set(value, copied);
                } else {
                    self.set(value, argument);
                }
            }
        }
        for block in &body.blocks {
            for instruction in &block.instructions {
                if let (Op::Phi(_), Some(value)) = (&instruction.op, instruction.result) {
                    let width = width(module, instruction.ty).unwrap_or(64);
                    let register = self.temporary(width);
                    self.frame_mut().phis.insert(value, register);
                    self.set(value, Val::Scalar(Expr::Reg(register)));
                }
            }
        }
        let entry = self.frame().blocks[0];
        self.end(End::Goto(entry));
        let flow = Flow::new(body);
        let declared_again = scopes::declared_again(module, body, &flow, &self.frame().marked);
        for &block in flow.reachable() {
            let code = self.frame().blocks[block.index()];
            self.go_on(code);
            for (index, instruction) in body.blocks[block].instructions.iter().enumerate() {
                if self.steps >= MAX_STEPS {
                    break;
                }
                self.span = self.place(instruction.location);
                let declared = declared_again.get(&(block, index)).into_iter().flatten();
                declared.for_each(|&local| self.redeclare(local));
                if self.instruction(block, instruction).is_err() {
                    break;
                }
            }
        }
        let frame = self.frames.pop().expect("the function was entered");
        self.go_on(after);
        // The program ends with `main`, and the variables of `main` with the program. Where the text marks the end
        // of a variable, it has ended there.
        if !(self.frames.is_empty() && self.is_main()) {
            let unmarked = frame.locals.into_iter().filter(|(_, marked)| !marked);
            unmarked.for_each(|(object, _)| self.step(StepKind::Leave(object)));
        }
        self.span = self.call_spans.pop().unwrap_or(Span::NONE);
        Ok(result.value())
    }

    /// The thread ends here: all its locals cease to exist, except those of the thread that runs `main`, which may
    /// be in use until the program ends.
    pub(crate) fn leave_all(&mut self) {
        if !self.is_main() {
            let frames = self.frames.iter().rev();
            let locals: Vec<(ObjectId, bool)> = frames.flat_map(|frame| frame.locals.clone()).collect();
            locals.into_iter().for_each(|(object, _)| self.step(StepKind::Leave(object)));
        }
    }

    /// Whether this is `main` itself and not a function that it calls.
    pub(crate) fn in_main_itself(&self) -> bool {
        self.frames.len() == 1 && self.is_main()
    }

    /// The declaration of a local variable is reached again.
    fn redeclare(&mut self, local: ValueId) {
        let object = match self.frame().values.get(&local) {
            Some(Val::Scalar(Expr::Address(object, 0))) => *object,
            _ => return,
        };
        if self.frame().locals.iter().any(|(known, _)| *known == object) {
            self.step(StepKind::Redeclare(object));
        }
    }

    fn copy_argument(&mut self, ty: Option<TypeId>, argument: Val) -> Result<Val, Refused> {
        let ty = ty.ok_or(Refused)?;
        let Val::Scalar(source) = argument else { return Err(self.refuse("an undefined argument")) };
        let module = self.module();
        let found = leaves(module, ty);
        let found = self.accept(found)?;
        let size = module.layouts.size(ty).and_then(|size| i64::try_from(size).ok()).unwrap_or(0);
        let object = self.context.memory.add(MemoryObject {
            name: "argument".to_owned(),
            kind: ObjectKind::Local,
            constant: false,
            size,
            align: alignment(module, ty, None),
            leaves: found.clone(),
            debug: None,
            span: self.span,
        });
        self.step(StepKind::Enter(object));
        for leaf in &found {
            let to = Expr::Address(object, leaf.offset);
            let from = self.binary(BinaryOp::WordAdd, source.clone(), Expr::Int(leaf.offset));
            self.copy_leaf(to, from, leaf.size);
        }
        Ok(Val::Scalar(Expr::Address(object, 0)))
    }

    /// Copies a scalar, whether it was written or not.
    pub(crate) fn copy_leaf(&mut self, to: Expr, from: Expr, size: u32) {
        let register = self.temporary(8 << size);
        self.step(StepKind::Load {
            to: register,
            from: Access { pointer: from, size, plain: true },
            written: Written::Copied,
        });
        self.step(StepKind::Store {
            to: Access { pointer: to, size, plain: true },
            value: Expr::Reg(register),
        });
    }

    /// Sets the value of an instruction or parameter.
    pub(crate) fn set(&mut self, value: ValueId, val: Val) {
        let uses = self.frame().uses[value.index()];
        let val = match val {
            Val::Scalar(e) if (uses > 1 && e.size() > 1) || e.size() > MAX_EXPRESSION => {
                let width = width(self.module(), self.body().values[value].ty).unwrap_or(64);
                let register = self.temporary(width);
                self.step(StepKind::Assign(register, e));
                Val::Scalar(Expr::Reg(register))
            }
            val => val,
        };
        self.frame_mut().values.insert(value, val);
    }

    /// The value of an operand.
    pub(crate) fn value(&mut self, operand: Operand) -> Result<Val, Refused> {
        match operand {
            Operand::Local(value) => match self.frame().values.get(&value) {
                Some(val) => Ok(val.clone()),
                None => Err(self.refuse("a value of an instruction that was refused")),
            },
            Operand::Constant(constant) => {
                let (module, thread) = (self.module_index(), self.thread);
                let val = self.context.memory.constant(module, constant, thread);
                self.accept(val)
            }
        }
    }

    /// The value of an operand that is a scalar.
    pub(crate) fn scalar(&mut self, operand: Operand) -> Result<Expr, Refused> {
        self.depend_on(operand);
        match self.value(operand)? {
            Val::Scalar(e) => Ok(e),
            Val::Aggregate(_) => Err(self.refuse("a struct used as a whole")),
            Val::Undefined => Err(self.refuse("an undefined value")),
        }
    }

    /// The width of an operand.
    pub(crate) fn operand_width(&mut self, operand: Operand) -> Result<u32, Refused> {
        let ty = self.module().type_of(self.body(), operand);
        self.type_width(ty)
    }

    pub(crate) fn type_width(&mut self, ty: TypeId) -> Result<u32, Refused> {
        match width(self.module(), ty) {
            Some(width) => Ok(width),
            None => {
                let what = format!("values of type `{}`", self.module().types.display(ty));
                Err(self.refuse(what))
            }
        }
    }

    fn instruction(&mut self, block: IrBlockId, instruction: &'a Instruction) -> Result<(), Refused> {
        match &instruction.op {
            Op::Return(value) => {
                if let Some(value) = value {
                    let (value, result) = (self.value(*value)?, self.frame().result.clone());
                    let parts = match (value, result) {
                        (value, Results::Scalar(register)) => vec![(register, value)],
                        (Val::Aggregate(parts), Results::Struct(registers)) => {
                            registers.into_iter().zip(parts).collect()
                        }
                        (Val::Undefined, Results::Struct(registers)) => {
                            registers.into_iter().map(|register| (register, Val::Undefined)).collect()
                        }
                        _ => return Err(self.refuse("what is returned here")),
                    };
                    for (register, part) in parts {
                        match part {
                            Val::Scalar(e) => self.step(StepKind::Assign(register, e)),
                            // Nothing may use the result.
                            Val::Undefined => self.step(StepKind::Uninitialise(register)),
                            Val::Aggregate(_) => return Err(self.refuse("what is returned here")),
                        }
                    }
                }
                if let (Results::Scalar(register), [_], true) =
                    (&self.frame().result, &self.frames[..], self.joinable)
                {
                    let value = Expr::Reg(*register);
                    self.step(StepKind::Assign(self.result, value));
                    self.step(StepKind::Initialised(self.result, Check::Returned));
                }
                let after = self.frame().after;
                self.end(End::Goto(after));
            }
            Op::Branch(to) => {
                let to = self.edge(block, *to)?;
                self.end(End::Goto(to));
            }
            Op::BranchIf { condition, then, otherwise } => {
                let condition = self.scalar(*condition)?;
                let (yes, no) = (self.edge(block, *then)?, self.edge(block, *otherwise)?);
                self.end(End::Branch(condition, yes, no));
            }
            Op::Switch { value, default, cases } => {
                let value = self.scalar(*value)?;
                for (case, to) in cases {
                    let case = self.scalar(Operand::Constant(*case))?;
                    let equal = self.binary(BinaryOp::Eq, value.clone(), case);
                    let (yes, no) = (self.edge(block, *to)?, self.new_block());
                    self.end(End::Branch(equal, yes, no));
                    self.go_on(no);
                }
                let to = self.edge(block, *default)?;
                self.end(End::Goto(to));
            }
            Op::Unreachable => {
                self.step(StepKind::Assert(Expr::Int(0), Check::Unreachable));
                self.end(End::Stop);
            }
            Op::Phi(_) => {}
            Op::Alloca { ty, count, align, .. } => self.alloca(instruction, *ty, *count, *align)?,
            Op::Call(call) => self.call_instruction(instruction, call)?,
            _ => self.operation(instruction)?,
        }
        Ok(())
    }

    /// The block to which an edge leads. Phis are assigned on the way.
    fn edge(&mut self, from: IrBlockId, to: IrBlockId) -> Result<BlockId, Refused> {
        let target = self.frame().blocks[to.index()];
        let body = self.body();
        let (mut copies, mut nothing) = (Vec::new(), Vec::new());
        for instruction in &body.blocks[to].instructions {
            let (Op::Phi(incoming), Some(result)) = (&instruction.op, instruction.result) else { break };
            let Some((value, _)) = incoming.iter().find(|(_, block)| *block == from) else { continue };
            let register = self.frame().phis[&result];
            match self.value(*value)? {
                Val::Scalar(e) => copies.push((register, e)),
                Val::Undefined if self.context.language == Language::Rust => nothing.push(register),
                Val::Undefined => copies.push((register, Expr::Int(crate::UNINITIALISED))),
                Val::Aggregate(_) => return Err(self.refuse("a struct used as a whole")),
            }
        }
        if copies.is_empty() && nothing.is_empty() {
            return Ok(target);
        }
        let (back, split) = (self.here, self.new_block());
        self.go_on(split);
        // All values are read before any is assigned.
        if copies.len() > 1 {
            for (register, value) in &mut copies {
                let width = self.code.width(*register);
                let copy = self.temporary(width);
                self.step(StepKind::Assign(copy, std::mem::replace(value, Expr::Reg(copy))));
            }
        }
        for (register, value) in copies {
            self.step(StepKind::Assign(register, value));
        }
        nothing.into_iter().for_each(|register| self.step(StepKind::Uninitialise(register)));
        let span = self.span;
        let block = self.code.block_mut(self.here);
        block.end = End::Goto(target);
        block.end_span = span;
        self.go_on(back);
        Ok(split)
    }

    fn alloca(
        &mut self,
        instruction: &Instruction,
        ty: TypeId,
        count: Option<Operand>,
        align: Option<u64>,
    ) -> Result<(), Refused> {
        let Some(result) = instruction.result else { return Ok(()) };
        let given = count;
        let count = match count {
            None => 1,
            Some(count) => match self.scalar(count)? {
                Expr::Int(count) if (1..65536).contains(&count) => count,
                _ => return Err(self.refuse("a local array, or `alloca`, whose size is not a constant")),
            },
        };
        let module = self.module();
        let size = module.layouts.size(ty).and_then(|size| i64::try_from(size).ok()).unwrap_or(0);
        // Bytes that the program asks for by `alloca`, and uses as something else.
        let hint = if size == 1 { self.use_as(result) } else { None };
        let (element, step) = match hint {
            Some(hint) => (hint, module.layouts.size(hint).and_then(|size| i64::try_from(size).ok())),
            None => (ty, Some(size)),
        };
        let one = leaves(module, element);
        let one = self.accept(one)?;
        let mut all: Vec<Leaf> = Vec::new();
        let mut start = 0;
        while let Some(step) = step.filter(|step| *step > 0 && start < size * count) {
            let moved = |leaf: &Leaf| Leaf { offset: leaf.offset + start, ..leaf.clone() };
            all.extend(one.iter().map(moved).filter(|leaf| leaf.offset + (1 << leaf.size) <= size * count));
            start += step;
        }
        let known = self.frame().names.get(&result).cloned();
        let LocalName { mut name, ty: debug, in_block } = known.unwrap_or_default();
        if name.is_empty() && given.is_some() {
            name = "alloca".to_owned();
        }
        let debug = debug.map(|ty| (self.module_index(), ty));
        let marked = self.frame().marked.contains(&result);
        let kind = if in_block && marked { ObjectKind::BlockLocal } else { ObjectKind::Local };
        let object = self.context.memory.add(MemoryObject {
            name,
            kind,
            constant: false,
            size: size * count,
            align: alignment(module, ty, align),
            leaves: all,
            debug,
            span: self.span,
        });
        if !marked {
            self.step(StepKind::Enter(object));
        }
        if in_block && !marked {
            self.context.unmarked.push(object);
        }
        if !marked && scopes::is_kept_literal(self.body(), result) {
            let note = "compound literals are not used after their block has ended";
            self.context.notes.insert(crate::Note(note.to_owned()));
        }
        self.frame_mut().locals.push((object, marked));
        self.set(result, Val::Scalar(Expr::Address(object, 0)));
        Ok(())
    }
}

/// The type that a function returns.
pub(crate) fn definition_result(module: &Module, definition: &Function) -> TypeId {
    match module.types.get(definition.ty) {
        Type::Function { result, .. } => *result,
        _ => palisade_llvm::types::Types::VOID,
    }
}
