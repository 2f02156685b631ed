//! Statements and blocks.

use super::names::Quoted;
use super::{Annotation, Printer, expr};
use crate::written::{Block, Check, Domain, Expr, ExprKind, Stmt, StmtKind};
use palisade_base::limits;
use std::fmt::{self, Write};

impl Printer {
    /// Writes `{ … }`, starting on the current line. No line break follows the closing brace.
    pub(super) fn block(&mut self, block: &Block) -> fmt::Result {
        if block.is_empty() {
            self.out.push_str("{}");
            return Ok(());
        }
        self.out.push_str("{\n");
        self.level += 1;
        block.iter().try_for_each(|stmt| self.statement(stmt))?;
        self.level -= 1;
        self.indent(self.level);
        self.out.push('}');
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt) -> fmt::Result {
        limits::checkpoint();
        self.labels(stmt)?;
        self.unlabelled(&stmt.kind)?;
        self.out.push('\n');
        Ok(())
    }

    /// Writes the labels and the indentation of a statement. A label goes on the statement's line if it fits
    /// there, or if the statement only carries the label.
    fn labels(&mut self, stmt: &Stmt) -> fmt::Result {
        let Some((last, others)) = stmt.labels.split_last() else {
            self.indent(self.level);
            return Ok(());
        };
        for label in others {
            self.indent(self.level - 1);
            writeln!(self.out, "{}:", Quoted(label))?;
        }
        self.indent(self.level - 1);
        let space = 4usize.saturating_sub(last.text.len() + 1);
        if space > 0 || stmt.kind == StmtKind::Skip {
            write!(self.out, "{}:{:2$}", Quoted(last), "", space.max(1))
        } else {
            writeln!(self.out, "{}:", Quoted(last))?;
            self.indent(self.level);
            Ok(())
        }
    }

    /// Whether an expression is `*` for a domain.
    fn is_any_of(&self, domain: Domain, e: &Expr) -> bool {
        let ExprKind::Any { lo, hi } = &e.kind else { return false };
        let identities = self.identities.as_ref().filter(|identities| identities.is_identity(domain));
        domain.bounds() == Some((*lo, *hi)) && identities.is_none_or(|identities| identities.is_any(e))
    }

    fn unlabelled(&mut self, kind: &StmtKind) -> fmt::Result {
        if let Some(others) = self.identities.as_ref().and_then(|identities| identities.loop_of(kind)) {
            write!(self.out, "for {} in others ", Quoted(others.variable))?;
            return self.block(others.body);
        }
        match kind {
            StmtKind::Skip => self.out.push_str("skip;"),
            StmtKind::Let { name, ty, init } => {
                write!(self.out, "let {}{}", Quoted(name), Annotation(*ty, &self.enums))?;
                match init {
                    Some(init) if self.is_any_of(ty.domain, init) => {
                        self.out.push_str(" = *");
                    }
                    Some(init) => self.wrapped(" = ", init)?,
                    None => {}
                }
                self.out.push(';');
            }
            StmtKind::Assign { place, value } => {
                write!(self.out, "{}", expr::Placed(place))?;
                return self.simple(" = ", value);
            }
            StmtKind::Eval(value) => return self.simple("", value),
            StmtKind::Fence => self.out.push_str("fence;"),
            StmtKind::StoreFence => self.out.push_str("sfence;"),
            StmtKind::Assume(condition) => return self.parenthesized("assume(", condition),
            StmtKind::Await(condition) => return self.simple("await ", condition),
            StmtKind::Assert(condition, Check::Assertion) => return self.parenthesized("assert(", condition),
            StmtKind::Assert(condition, check) => {
                self.wrapped("assert(", condition)?;
                write!(self.out, ") else {};", check.name())?;
            }
            StmtKind::If { condition, then, otherwise } => {
                write!(self.out, "if {} ", expr::Shown(condition))?;
                self.block(then)?;
                return self.otherwise(otherwise);
            }
            StmtKind::While { condition, body } => {
                write!(self.out, "while {} ", expr::Shown(condition))?;
                return self.block(body);
            }
            StmtKind::Loop(body) => {
                self.out.push_str("loop ");
                return self.block(body);
            }
            StmtKind::Break => self.out.push_str("break;"),
            StmtKind::Continue => self.out.push_str("continue;"),
            StmtKind::Goto(label) => write!(self.out, "goto {};", Quoted(label))?,
            StmtKind::Choose(alternatives) => {
                for (i, alternative) in alternatives.iter().enumerate() {
                    self.out.push_str(if i == 0 { "choose " } else { " or " });
                    self.block(alternative)?;
                }
            }
            StmtKind::Atomic(body) => {
                self.out.push_str("atomic ");
                return self.block(body);
            }
            StmtKind::Block(body) => return self.block(body),
            StmtKind::Return(None) => self.out.push_str("return;"),
            StmtKind::Return(Some(value)) => return self.simple("return ", value),
            StmtKind::Spawn { template, args } => {
                write!(self.out, "spawn {}({});", Quoted(template), expr::Args(args))?
            }
        }
        Ok(())
    }

    /// `start e;`
    fn simple(&mut self, start: &str, value: &Expr) -> fmt::Result {
        self.wrapped(start, value)?;
        self.out.push(';');
        Ok(())
    }

    /// `start e);`
    fn parenthesized(&mut self, start: &str, condition: &Expr) -> fmt::Result {
        self.wrapped(start, condition)?;
        self.out.push_str(");");
        Ok(())
    }

    fn otherwise(&mut self, otherwise: &Block) -> fmt::Result {
        match &otherwise[..] {
            [] => Ok(()),
            [Stmt { labels, kind: kind @ StmtKind::If { .. }, .. }] if labels.is_empty() => {
                self.out.push_str(" else ");
                self.unlabelled(kind)
            }
            _ => {
                self.out.push_str(" else ");
                self.block(otherwise)
            }
        }
    }
}
