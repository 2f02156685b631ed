//! The registers of a process.

use super::assigned::read_before_written;
use super::ast::{Declaration, Process, Word};
use super::locals::duplicate;
use super::memory::{declared_type, int, similar};
use super::messages::Messages;
use super::names::Names;
use super::token::Here;
use palisade_base::Diagnostic;
use palisade_program::Value;
use palisade_program::written::{Block, Expr, ExprKind, Name, Stmt, StmtKind};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The registers of a process.
pub(crate) struct Registers<'a> {
    by_name: FxHashMap<&'a str, Register<'a>>,
}

struct Register<'a> {
    name: Arc<str>,
    declaration: &'a Declaration<'a>,
    used: bool,
}

impl<'a> Registers<'a> {
    /// Names the registers of a process.
    pub fn new(
        process: &'a Process<'a>,
        outer: &Names,
        names: &mut Names,
        messages: &mut Messages,
    ) -> Registers<'a> {
        let mut by_name: FxHashMap<&str, Register<'_>> = FxHashMap::default();
        for declaration in &process.registers {
            let word = declaration.name.text;
            if let Some(before) = by_name.get(word) {
                let name = Word { text: word, here: declaration.name.here };
                duplicate(name, before.declaration.name.here, "register", messages);
                continue;
            }
            // A register can have the same name as a variable, or a name that is not valid in `.pal`, such as
            // `$0`.
            let name = names.fresh(Some(outer), &[word, &format!("r_{word}")]);
            by_name.insert(word, Register { name, declaration, used: false });
        }
        Registers { by_name }
    }

    /// The domain of a register, if it is finite.
    pub fn domain(&self, word: &str) -> Option<(Value, Value)> {
        self.by_name.get(word)?.declaration.domain
    }

    /// The name of a register in `.pal`; `None` if it was not declared.
    pub fn mention(&mut self, word: &str, here: Here, messages: &mut Messages) -> Option<Name> {
        match self.by_name.get_mut(word) {
            Some(register) => {
                register.used = true;
                Some(Name::new(Arc::clone(&register.name), here.span))
            }
            None => {
                let error = Diagnostic::error("unknown-register", format!("there is no register `${word}`"));
                let help = match similar(word, self.by_name.keys().copied()) {
                    Some(known) => format!("did you mean `${known}`?"),
                    None => "declare it in the `registers` section of the process".to_owned(),
                };
                messages.at(here, "", error.help(help));
                None
            }
        }
    }

    /// The declarations of the registers that occur in the process, with their initial values.
    pub fn declarations(&self, process: &'a Process<'a>, messages: &mut Messages) -> Block {
        let used = process.registers.iter().filter_map(|declaration| {
            let register = &self.by_name[declaration.name.text];
            (register.used && std::ptr::eq(register.declaration, declaration)).then_some(register)
        });
        let used: Vec<&Register<'_>> = used.collect();
        let arbitrary: Vec<&str> = used
            .iter()
            .filter(|register| register.declaration.init.is_none())
            .map(|register| register.declaration.name.text)
            .collect();
        let mut read_first = read_before_written(process, &arbitrary).into_iter();
        let mut declare = |register: &&Register<'_>| {
            let declaration = register.declaration;
            let span = declaration.here.span;
            let init = match (declaration.init, declaration.domain) {
                (Some(value), _) => int(value, span),
                (None, domain) => match (read_first.next().unwrap_or(true), domain) {
                    (false, domain) => int(domain.map_or(0, |(lo, hi)| 0.clamp(lo, hi)), span),
                    (true, Some((lo, hi))) => Expr::new(ExprKind::Any { lo, hi }, span),
                    (true, None) => {
                        let word = declaration.name.text;
                        let message = format!(
                            "`${word}` can be read before it is set, and can start with infinitely many values"
                        );
                        let help =
                            format!("give it a domain, such as `${word} = * : [0:3]`, or an initial value");
                        let error = Diagnostic::error("any-without-domain", message).help(help);
                        messages.at(declaration.name.here, "", error);
                        int(0, span)
                    }
                },
            };
            let name = Name::new(Arc::clone(&register.name), declaration.name.here.span);
            Stmt::new(StmtKind::Let { name, ty: declared_type(declaration), init: Some(init) }, span)
        };
        used.iter().map(&mut declare).collect()
    }
}
