//! Lowers the written form to the running form.
//!
//! *Guarantee.* If [`crate::validate()`] finds no error in a program, [`lower`] returns a [`System`] with the
//! invariants listed in [`crate::running`]. Only this module defines the order of evaluation:
//! 1. Operands are evaluated left to right. Each mention of a shared cell is one load. `&&` and `||` evaluate
//!    their second operand only if it is needed.
//! 2. In `p = e` the right side is evaluated first, then the index or pointer of `p`, then the store happens.
//!    A locked instruction evaluates its operands, then its address, then the access happens.
//! 3. Registers are read late, when the instruction that needs them runs. Nothing can change them in between:
//!    only their own code assigns them, and no expression does. Calls can change private variables, so these
//!    are read before a call in the same expression.
//!
//! *How.* There is one code per template and combination of parameter values (a role). The parameters are
//! constants in it, so `flag[1 - i]` is a fixed cell and `if i == 0` is decided at this stage. `resolve`
//! resolves names and folds constants, `values` and `flow` emit one edge per instruction, and `simplify`
//! removes the empty steps that remain.
//!
//! *Cost.* Linear in the size of the bodies times the number of their roles.

mod flow;
mod fold;
pub(crate) mod globals;
mod instances;
mod outline;
mod property;
mod resolve;
mod simplify;
mod values;

pub use instances::mentions_more_than;
pub use outline::{Outline, Point, PointKind, outlines};

use crate::running::{Role, System, TemplateInfo};
use crate::written::{Enum, Program};
use globals::Globals;
pub use globals::element_name;
use palisade_base::{Id, IdVec, limits};

/// How many instances each template gets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Instantiation {
    /// The number of instances of a template declared with `[*]`, per combination of parameter values.
    pub any: u32,
    /// If given, overrides the count of every template that starts initially.
    pub every: Option<u32>,
}

impl Instantiation {
    /// The declared counts, with this many instances for `[*]`.
    pub fn declared(any: u32) -> Instantiation {
        Instantiation { any, every: None }
    }
}

/// What a failed attempt of a wait leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Waits {
    /// A process stays where an attempt of an `await` that only loads has failed. The same states are
    /// reachable as with another attempt, up to where a waiting process is. This is enough for questions
    /// about states, and makes fewer steps.
    #[default]
    Delay,
    /// A process tries again. Questions about what stays possible need this. In detail:
    /// 1. A *wait* is an `await`, or a `while` with an empty body. Its condition makes no calls, and in a
    ///    `while` it accesses memory. The edges that do not end it are listed in
    ///    [`crate::running::Code::attempts`].
    /// 2. A choice between alternatives is made together with the first step. If an alternative of a `choose`
    ///    begins with an `await` that has no label, a failed attempt leads back to the choice.
    /// 3. A loop without any instruction is a step that can be repeated.
    Retry,
}

/// Lowers a valid program for questions about states: [`lower_with`] and [`Waits::Delay`].
pub fn lower(program: &Program, instantiation: Instantiation) -> System {
    lower_with(program, instantiation, Waits::Delay)
}

/// Lowers a valid program for questions about what stays possible: [`lower_with`] and [`Waits::Retry`].
pub fn lower_retrying(program: &Program, instantiation: Instantiation) -> System {
    lower_with(program, instantiation, Waits::Retry)
}

/// Lowers a valid program.
///
/// A template that a property refers to by number gets at least as many instances as the number needs.
///
/// # Panics
/// If the program is not valid.
pub fn lower_with(program: &Program, instantiation: Instantiation, waits: Waits) -> System {
    // `every` counts processes with identities, too, even if the program declares their number.
    let number = match instantiation.every {
        None if program.has_open_identities() => Some(instantiation.any),
        every => every,
    };
    if let Some(number) = number.map(|number| number.max(1))
        && program.has_other_identities(number)
    {
        return lower_with(&program.with_identities(number), instantiation, waits);
    }
    // No two processes have the same identity. The others are there as declared, or that many if any number is.
    let instantiation = match program.identities {
        Some(_) => Instantiation { any: instantiation.every.unwrap_or(instantiation.any), every: None },
        None => instantiation,
    };
    let globals = Globals::new(program);
    let (cells, addresses) = globals.memory();
    let names = |declared: &Enum| declared.values.iter().map(ToString::to_string).collect();
    let mut system = System {
        enums: program.enums.iter().map(names).collect(),
        cells,
        addresses,
        codes: IdVec::new(),
        roles: IdVec::new(),
        templates: IdVec::new(),
        privates: program.privates.len(),
        instances: IdVec::new(),
        properties: Vec::new(),
        goals: Vec::new(),
        fair: Vec::new(),
    };
    for template in &program.templates {
        let id = system.templates.push(TemplateInfo { name: template.name.to_string(), roles: Vec::new() });
        let left = property::left_labels(program, template, waits);
        for args in instances::combinations(&template.params) {
            limits::checkpoint();
            let code = system.codes.push(flow::process_code(&globals, waits, template, &args, &left).0);
            let name = instances::role_name(template, &args, &system);
            let role = system.roles.push(Role { template: id, args, code, name });
            system.templates[id].roles.push(role);
        }
    }
    assert_eq!(system.codes.len(), globals.first_procedure().index(), "the codes of the roles come first");
    for procedure in &program.procedures {
        system.codes.push(flow::procedure_code(&globals, waits, procedure).0);
    }
    let placement = instances::place(program, &mut system, instantiation);
    system.properties = property::lower(&globals, &system, &placement, &program.properties);
    system.goals = property::goals(&globals, &system, &placement, &program.progress);
    if waits == Waits::Retry {
        system.fair = property::fair(&system, &placement, &program.progress);
    }
    system
}
