//! Shared variables and the headings of processes and procedures.

use super::names::{Names, declared_twice, values, width};
use super::{Report, limits};
use crate::Value;
use crate::lower::globals::{NotConstant, cell_count, constant};
use crate::written::{
    Count, Domain, Expr, ExprKind, Init, InitValue, Outside, Param, PlaceKind, Private, Program, Shared,
    Start, Template, Type,
};
use palisade_base::{Diagnostic, Span};
use rustc_hash::FxHashMap;

/// Checks all declarations.
pub(super) fn check(program: &Program, names: &Names<'_>, report: &mut Report) {
    program.shared.iter().for_each(|variable| check_shared(variable, names, report));
    program.privates.iter().for_each(|private| check_private(private, report));
    check_cells(&program.shared, report);
    check_placement(&program.shared, names, report);
    check_initial_states(&program.shared, report);
    for procedure in &program.procedures {
        if procedure.name.as_str() == "plain" {
            let message = "`plain` marks plain accesses and cannot be the name of a procedure";
            report.push(Diagnostic::error("shadowed-name", message).at(procedure.name.span(), ""));
        }
        check_params(&procedure.params, names, report);
        if let Some(ty) = procedure.result {
            check_type(ty, procedure.name.as_str(), procedure.name.span(), report);
        }
    }
    program.templates.iter().for_each(|template| check_heading(template, names, report));
    check_processes(program, names, report);
}

fn check_shared(variable: &Shared, names: &Names<'_>, report: &mut Report) {
    let name = &variable.name;
    check_type(variable.ty, name.as_str(), name.span(), report);
    if variable.len == Some(0) {
        let message = format!("the array `{name}` has no cells");
        report.push(Diagnostic::error("empty-array", message).at(name.span(), ""));
    }
    match &variable.init {
        Init::Every(init) => check_initial_value(variable, init, names, report),
        Init::Each(each) => {
            let cells = variable.len.map(|len| len as usize);
            if cells != Some(each.len()) {
                let message = match cells {
                    None => format!("`{name}` is not an array, but has a list of initial values"),
                    Some(cells) => {
                        format!(
                            "`{name}` has {cells} cells, but the list of initial values has {}",
                            each.len()
                        )
                    }
                };
                report.push(Diagnostic::error("wrong-initial-values", message).at(name.span(), "").help(
                    "write one value for each cell, or a single value without `[` `]` for all of them",
                ));
            }
            each.iter().for_each(|init| check_initial_value(variable, init, names, report));
        }
    }
}

fn check_private(private: &Private, report: &mut Report) {
    let Private { name, ty, .. } = private;
    check_type(*ty, name.as_str(), name.span(), report);
    if !ty.domain.contains(0) && !is_empty(ty.domain) {
        let message = format!("`{name}` starts at 0, which is outside its domain");
        let diagnostic = Diagnostic::error("outside-domain", message).at(name.span(), "");
        report.push(diagnostic.help(domain_help(ty.domain)));
    }
}

fn check_initial_value(variable: &Shared, init: &InitValue, names: &Names<'_>, report: &mut Report) {
    let name = &variable.name;
    let e = match init {
        InitValue::Any if variable.ty.domain == Domain::Int => {
            let message = format!("`{name}` can start with any value, but has no finite domain");
            let diagnostic = Diagnostic::error("any-without-domain", message).at(name.span(), "");
            report.push(diagnostic.help(format!("declare one, such as `{name}: 0..3 = *`")));
            return;
        }
        InitValue::Any => return,
        InitValue::Const(e) => e,
    };
    let span = if e.span().is_none() { name.span() } else { e.span() };
    let known = report.diagnostics.len();
    check_addresses(e, names, report);
    if report.diagnostics.len() > known {
        return;
    }
    match constant(e, &names.memory) {
        Ok(value) if variable.ty.domain.contains(value) || is_empty(variable.ty.domain) => {}
        Ok(value) => {
            let message = format!("the initial value {value} of `{name}` is outside its domain");
            let mut diagnostic = Diagnostic::error("outside-domain", message)
                .at(span, "")
                .help(domain_help(variable.ty.domain));
            if e.span().is_none() {
                diagnostic = diagnostic.help(format!("give `{name}` an initial value; without one it is 0"));
            }
            report.push(diagnostic);
        }
        Err(NotConstant::Faults(fault)) => {
            report.push(Diagnostic::error("constant-fault", fault.to_string()).at(span, ""));
        }
        Err(NotConstant::Depends) => {
            let message = format!("the initial value of `{name}` is not a constant");
            report.push(
                Diagnostic::error("not-constant", message)
                    .at(span, "")
                    .help("an initial value can use numbers, operators and addresses such as `&x`"),
            );
        }
    }
}

/// Reports the addresses of unknown variables, of whole arrays, and of elements of scalars.
fn check_addresses(e: &Expr, names: &Names<'_>, report: &mut Report) {
    match &e.kind {
        ExprKind::AddressOf(place) => match &place.kind {
            PlaceKind::Named(name) | PlaceKind::Element(name, _) => {
                let element = matches!(place.kind, PlaceKind::Element(..));
                let array = names.memory.get(name.as_str()).map(|memory| memory.len.is_some());
                match array {
                    None => {
                        let message = format!("there is no shared variable `{name}`");
                        let diagnostic = Diagnostic::error("unknown-name", message).at(name.span(), "");
                        let diagnostic =
                            report.suggest(diagnostic, name.as_str(), names.memory.keys().copied());
                        report.push(diagnostic);
                    }
                    Some(array) if array != element => {
                        report.push(super::expressions::array_misuse(name, array))
                    }
                    Some(_) => {}
                }
                if let PlaceKind::Element(_, index) = &place.kind {
                    check_addresses(index, names, report);
                }
            }
            PlaceKind::Deref(pointer) => check_addresses(pointer, names, report),
        },
        ExprKind::Unary(_, a) => check_addresses(a, names, report),
        ExprKind::Binary(_, a, b) => {
            check_addresses(a, names, report);
            check_addresses(b, names, report);
        }
        _ => {}
    }
}

/// Reports addresses that are not positive, and cells that share an address.
fn check_placement(shared: &[Shared], names: &Names<'_>, report: &mut Report) {
    if shared.iter().all(|variable| variable.at.is_none()) || cell_count(shared) > limits::MAX_CELLS {
        return;
    }
    let mut taken: FxHashMap<i128, &str> = FxHashMap::default();
    for variable in shared {
        let Some(memory) = names.memory.get(variable.name.as_str()) else { continue };
        for i in 0..variable.len.unwrap_or(1) {
            let address = i128::from(memory.at.address) + i128::from(memory.at.step) * i128::from(i);
            let name = variable.name.as_str();
            let problem = if Value::try_from(address).is_err() || address <= 0 {
                Some(format!("{address} cannot be the address of `{name}`"))
            } else {
                let other = taken.insert(address, name);
                other.map(|other| format!("cells of `{other}` and `{name}` have the same address {address}"))
            };
            if let Some(message) = problem {
                let diagnostic = Diagnostic::error("bad-address", message).at(variable.name.span(), "");
                report.push(diagnostic.help("addresses are positive, and no two cells have the same one"));
                break;
            }
        }
    }
}

fn check_cells(shared: &[Shared], report: &mut Report) {
    let cells = cell_count(shared);
    if cells > limits::MAX_CELLS {
        let largest = shared.iter().max_by_key(|variable| variable.len).expect("there are cells");
        let message = format!("the shared variables have {cells} cells; the limit is {}", limits::MAX_CELLS);
        report
            .push(Diagnostic::error("too-many-cells", message).at(largest.name.span(), "the largest array"));
    }
}

fn check_initial_states(shared: &[Shared], report: &mut Report) {
    let mut states = 1u64;
    for variable in shared {
        let Some(width) = variable.ty.domain.bounds().and_then(|(lo, hi)| width(lo, hi)) else { continue };
        let any = match &variable.init {
            Init::Every(InitValue::Any) => variable.len.unwrap_or(1),
            Init::Every(_) => 0,
            Init::Each(each) => {
                u32::try_from(each.iter().filter(|init| **init == InitValue::Any).count()).unwrap_or(u32::MAX)
            }
        };
        states = states.saturating_mul(width.saturating_pow(any));
        if states > limits::MAX_INITIAL_STATES {
            let message = format!("the program has more than {} initial states", limits::MAX_INITIAL_STATES);
            report.push(
                Diagnostic::error("too-many-initial-states", message)
                    .at(variable.name.span(), "this variable exceeds the limit")
                    .help(
                        "declare smaller domains for the variables initialised with `*`, or give them fixed values",
                    ),
            );
            return;
        }
    }
}

fn check_params(params: &[Param], names: &Names<'_>, report: &mut Report) {
    let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
    for param in params {
        check_type(param.ty, param.name.as_str(), param.name.span(), report);
        match seen.get(param.name.as_str()) {
            Some(&first) => report.push(declared_twice("parameter", &param.name, first)),
            None => {
                seen.insert(param.name.as_str(), param.name.span());
            }
        }
        if let Some(&shared) = names.shared.get(param.name.as_str()) {
            report.push(hides_shared("parameter", &param.name, shared));
        }
        if let Some(&private) = names.privates.get(param.name.as_str()) {
            report.push(hides_private("parameter", &param.name, private));
        }
    }
}

/// The error for a register or parameter with the same name as a shared variable.
pub(super) fn hides_shared(what: &str, name: &crate::written::Name, shared: Span) -> Diagnostic {
    Diagnostic::error("shadowed-name", format!("the {what} `{name}` has the same name as a shared variable"))
        .at(name.span(), "")
        .at(shared, "the shared variable is declared here")
        .help("rename it, so that it is clear which accesses are loads and stores")
}

/// The error for a register or parameter with the same name as a private variable.
pub(super) fn hides_private(what: &str, name: &crate::written::Name, private: Span) -> Diagnostic {
    Diagnostic::error("shadowed-name", format!("the {what} `{name}` has the same name as a private variable"))
        .at(name.span(), "")
        .at(private, "the private variable is declared here")
        .help("rename it")
}

/// Whether a domain is empty. That is reported at its declaration.
pub(super) fn is_empty(domain: Domain) -> bool {
    domain.bounds().is_some_and(|(lo, hi)| lo > hi)
}

/// Checks that a domain is not empty.
pub(super) fn check_type(ty: Type, name: &str, span: Span, report: &mut Report) {
    if let Domain::Range { lo, hi } = ty.domain
        && is_empty(ty.domain)
    {
        let message = format!("the domain {lo}..{hi} of `{name}` is empty");
        report.push(
            Diagnostic::error("empty-domain", message)
                .at(span, "")
                .help("write the smaller value first; both ends are included"),
        );
    }
    if ty.outside == Outside::Wrap && ty.domain == Domain::Int {
        let message = format!("`{name}` has no range in which its values could wrap around");
        let diagnostic = Diagnostic::error("wrap-without-range", message).at(span, "");
        report.push(diagnostic.help("write a range, such as `0..255 wrap`"));
    }
}

/// Describes the values of a domain.
pub(super) fn domain_help(domain: Domain) -> String {
    match domain {
        Domain::Bool => "the domain is `bool`: 0 and 1".to_owned(),
        Domain::Range { lo, hi } => format!("the domain is {lo}..{hi}, both ends included"),
        Domain::Enum { last, .. } => format!("the domain is an enumeration, with the numbers 0..{last}"),
        Domain::Int => "the domain is `int`".to_owned(),
    }
}

fn check_heading(template: &Template, names: &Names<'_>, report: &mut Report) {
    check_params(&template.params, names, report);
    for param in template.params.iter().filter(|param| param.ty.domain == Domain::Int) {
        let message = format!("the parameter `{}` of a process has no finite domain", param.name);
        report.push(Diagnostic::error("infinite-parameter", message).at(param.name.span(), "").help(
            format!("there is one instance per value; declare a range such as `{}: 0..1`", param.name),
        ));
    }
    let roles = template.params.iter().map(values).fold(1u64, u64::saturating_mul);
    if roles > limits::MAX_ROLES {
        let message = format!(
            "the parameters of `{}` have more than {} combinations of values",
            template.name,
            limits::MAX_ROLES
        );
        report.push(Diagnostic::error("too-many-roles", message).at(template.name.span(), ""));
    }
    match (template.start, template.count) {
        (Start::OnSpawn, Count::Fixed(1)) | (Start::Initially, Count::Any) => {}
        (Start::OnSpawn, _) => {
            let message =
                format!("`{}` is started by `spawn`, so it cannot have a number of instances", template.name);
            let diagnostic = Diagnostic::error("bad-count", message).at(template.name.span(), "");
            report.push(diagnostic.help("remove the number of instances, or remove `on spawn`"));
        }
        (Start::Initially, Count::Fixed(0)) => {
            let message = format!("`{}` has no instances", template.name);
            let diagnostic = Diagnostic::error("bad-count", message).at(template.name.span(), "");
            report.push(
                diagnostic.help(
                    "write `[*]` for any number of instances, or `on spawn` if other processes start it",
                ),
            );
        }
        (Start::Initially, Count::Fixed(_)) => {}
    }
}

fn check_processes(program: &Program, names: &Names<'_>, report: &mut Report) {
    let initial = || program.templates.iter().filter(|template| template.start == Start::Initially);
    if initial().next().is_none() {
        let diagnostic =
            Diagnostic::error("no-process", "the program has no process that starts automatically");
        let diagnostic = match program.templates.first() {
            Some(template) => diagnostic.at(template.name.span(), "this one starts only when it is spawned"),
            None => diagnostic,
        };
        report.push(diagnostic.help("declare one: `process P { … }`"));
    }
    let instances = |template: &Template| match template.count {
        // Too many combinations of parameters are reported elsewhere.
        _ if names.role_count(template) as u64 > limits::MAX_ROLES => 0,
        Count::Fixed(count) => (names.role_count(template) as u64).saturating_mul(count.into()),
        Count::Any => 0,
    };
    let total = initial().map(instances).fold(0u64, u64::saturating_add);
    if total > limits::MAX_INSTANCES {
        let largest = initial().max_by_key(|template| instances(template)).expect("there are instances");
        report.push(too_many_processes(total, instances(largest), largest.name.span()));
    }
}

/// The error for a program that starts more processes than [`limits::MAX_INSTANCES`], most of which are declared at
/// `span`.
pub fn too_many_processes(total: u64, declared: u64, span: Span) -> Diagnostic {
    let message = format!("the program starts {total} processes; the limit is {}", limits::MAX_INSTANCES);
    Diagnostic::error("too-many-processes", message)
        .at(span, format!("{declared} of them are declared here"))
        .help("write `[*]` instead of a number to check the program for any number of processes")
}

/// The error for an index outside an array.
pub(super) fn out_of_bounds(name: &crate::written::Name, len: u32, index: Value, span: Span) -> Diagnostic {
    let message = format!("the array `{name}` has no element {index}");
    let diagnostic = Diagnostic::error("out-of-bounds", message).at(span, "");
    match len.checked_sub(1) {
        Some(last) => diagnostic.help(format!("its elements are `{name}[0]` to `{name}[{last}]`")),
        None => diagnostic,
    }
}
