//! From the written to the running form.
//!
//! *Guarantee.* For a program in which [`crate::validate()`] finds no error, [`lower`] gives a [`System`]
//! with the invariants stated in [`crate::running`]. This is the only place that says in which order things
//! happen:
//! 1. Operands are evaluated left to right; each mention of a shared cell is one load. `&&` and `||` evaluate
//!    their second operand only if it is needed.
//! 2. In `p = e` the right side comes first, then the index or pointer of `p`, then the store. A locked
//!    instruction evaluates its operands, then its address, then it happens.
//! 3. Registers are read late, when the instruction that needs them runs. Nothing can change them in between:
//!    only the own code assigns them, and no expression does. Calls change private variables, so these are
//!    read before a call in the same expression.
//!
//! *How.* There is one code per template and combination of parameter values (a role), in which the
//! parameters are constants, so that `flag[1 - i]` is a cell and `if i == 0` is decided. `resolve` gives
//! every name its meaning and folds constants, `values` and `flow` emit one edge per instruction, and
//! `simplify` takes away the empty steps this leaves.
//!
//! *Cost.* Linear in the size of the bodies times the number of their roles.

mod flow;
mod fold;
pub(crate) mod globals;
mod instances;
mod property;
mod resolve;
mod simplify;
mod values;

use crate::running::{Role, System, TemplateInfo};
use crate::written::Program;
use globals::Globals;
use palisade_base::{Id, IdVec, limits};

/// How many instances the templates get.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Instantiation {
    /// Instances of a template declared with any number (`[*]`), per combination of parameters.
    pub any: u32,
    /// If given, overrides every template's count (for templates that start initially).
    pub every: Option<u32>,
}

impl Instantiation {
    /// As declared, with this many instances where any number is declared.
    pub fn declared(any: u32) -> Instantiation {
        Instantiation { any, every: None }
    }
}

/// Lowers a valid program.
///
/// A template that a property refers to by number gets at least as many instances as the number needs.
///
/// # Panics
/// If the program is not valid.
pub fn lower(program: &Program, instantiation: Instantiation) -> System {
    let globals = Globals::new(program);
    let mut system = System {
        cells: globals.cells(program),
        codes: IdVec::new(),
        roles: IdVec::new(),
        templates: IdVec::new(),
        privates: program.privates.len(),
        instances: IdVec::new(),
        properties: Vec::new(),
    };
    for template in &program.templates {
        let id = system.templates.push(TemplateInfo { name: template.name.to_string(), roles: Vec::new() });
        for args in instances::combinations(&template.params) {
            limits::go_on();
            let code = system.codes.push(flow::process_code(&globals, template, &args));
            let name = instances::role_name(&template.name, &args);
            let role = system.roles.push(Role { template: id, args, code, name });
            system.templates[id].roles.push(role);
        }
    }
    assert_eq!(system.codes.len(), globals.first_procedure().index(), "the codes of the roles come first");
    for procedure in &program.procedures {
        system.codes.push(flow::procedure_code(&globals, procedure));
    }
    let placement = instances::place(program, &mut system, instantiation);
    system.properties = property::lower(&globals, &system, &placement, &program.properties);
    system
}
