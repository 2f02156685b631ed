//! Code in atomic blocks, where nothing is pending.

use super::{Body, BodyKind, plain};
use palisade_program::written::{Block, Expr, ExprKind, Name, Place, PlaceKind, Stmt, StmtKind};

impl<'p> Body<'_, 'p> {
    /// Code in atomic blocks is unchanged, except for the procedures it calls and for pointers to cells that
    /// the program does not know.
    pub(super) fn raw_block(&mut self, block: &'p Block) -> Block {
        let mut out = Block::new();
        for stmt in block {
            let kind = match &stmt.kind {
                StmtKind::Let { name, ty, init } => {
                    let init = init.as_ref().map(|init| self.raw(init));
                    StmtKind::Let { name: name.clone(), ty: *ty, init }
                }
                StmtKind::Assign { place, value } => {
                    StmtKind::Assign { value: self.raw(value), place: self.raw_place(place) }
                }
                StmtKind::Eval(e) => StmtKind::Eval(self.raw(e)),
                StmtKind::Assume(e) => StmtKind::Assume(self.raw(e)),
                StmtKind::Await(e) => StmtKind::Await(self.raw(e)),
                StmtKind::Assert(e, check) => StmtKind::Assert(self.raw(e), *check),
                StmtKind::If { condition, then, otherwise } => StmtKind::If {
                    condition: self.raw(condition),
                    then: self.raw_block(then),
                    otherwise: self.raw_block(otherwise),
                },
                StmtKind::While { condition, body } => {
                    StmtKind::While { condition: self.raw(condition), body: self.raw_block(body) }
                }
                StmtKind::Loop(body) => StmtKind::Loop(self.raw_block(body)),
                StmtKind::Choose(blocks) => {
                    StmtKind::Choose(blocks.iter().map(|block| self.raw_block(block)).collect())
                }
                StmtKind::Atomic(body) => StmtKind::Atomic(self.raw_block(body)),
                StmtKind::Block(body) => StmtKind::Block(self.raw_block(body)),
                StmtKind::Spawn { template, args } => {
                    let args = args.iter().map(|arg| self.raw(arg)).collect();
                    StmtKind::Spawn { template: template.clone(), args }
                }
                StmtKind::Return(value) if self.kind == BodyKind::Procedure => {
                    StmtKind::Return(value.as_ref().map(|value| self.raw(value)))
                }
                StmtKind::Return(_) => {
                    self.returns = true;
                    StmtKind::Goto(Name::generated(self.done.as_str()))
                }
                StmtKind::Skip
                | StmtKind::Fence
                | StmtKind::StoreFence
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Goto(_) => stmt.kind.clone(),
            };
            out.push(Stmt { labels: stmt.labels.clone(), kind, origin: stmt.origin });
        }
        out
    }

    fn raw_place(&mut self, place: &'p Place) -> Place {
        let place = plain(place);
        let kind = match &place.kind {
            PlaceKind::Named(_) => place.kind.clone(),
            PlaceKind::Element(array, index) => PlaceKind::Element(array.clone(), Box::new(self.raw(index))),
            PlaceKind::Deref(pointer) => {
                let pointer = self.raw(pointer);
                PlaceKind::Deref(Box::new(self.translator.checked_pointer(pointer)))
            }
        };
        Place::new(kind, place.span())
    }

    fn raw(&mut self, e: &'p Expr) -> Expr {
        let kind = match &e.kind {
            ExprKind::Read(place) => ExprKind::Read(self.raw_place(place)),
            ExprKind::AddressOf(place) => match &plain(place).kind {
                PlaceKind::Deref(pointer) => return self.raw(pointer),
                _ => ExprKind::AddressOf(self.raw_place(place)),
            },
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, Box::new(self.raw(a))),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, Box::new(self.raw(a)), Box::new(self.raw(b))),
            ExprKind::Locked(rmw, place, operands) => {
                let operands = operands.iter().map(|operand| self.raw(operand)).collect();
                ExprKind::Locked(*rmw, self.raw_place(place), operands)
            }
            ExprKind::Call(procedure, args) => {
                let args = args.iter().map(|arg| self.raw(arg)).collect();
                let text = self.translator.atomic_name(procedure);
                ExprKind::Call(Name::new(text, procedure.span()), args)
            }
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } | ExprKind::Observe(_) => {
                e.kind.clone()
            }
        };
        Expr::new(kind, e.span())
    }
}
