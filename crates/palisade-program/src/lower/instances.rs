//! Roles and instances: the processes of the program.

use super::Instantiation;
use crate::Value;
use crate::running::{Instance, RoleId, System, TemplateId, ThreadId};
use crate::written::{
    Count, Expr, ExprKind, Name, Observation, Param, ProcessRef, Program, ProgressKind, Select, Start,
    Template,
};
use palisade_base::{Id, limits};
use rustc_hash::FxHashMap;

/// All combinations of parameter values. The first parameter changes slowest.
pub(crate) fn combinations(params: &[Param]) -> impl Iterator<Item = Vec<Value>> + '_ {
    let bounds = |param: &Param| {
        let bounds = param.ty.domain.bounds();
        bounds.unwrap_or_else(|| panic!("validation: the parameter `{}` has a finite domain", param.name))
    };
    let bounds: Vec<(Value, Value)> = params.iter().map(bounds).collect();
    assert!(bounds.iter().all(|(lo, hi)| lo <= hi), "validation: no parameter has an empty domain");
    let first = bounds.iter().map(|(lo, _)| *lo).collect();
    std::iter::successors(Some(first), move |args: &Vec<Value>| {
        let mut next = args.clone();
        for (value, (lo, hi)) in next.iter_mut().zip(&bounds).rev() {
            if *value < *hi {
                *value += 1;
                return Some(next);
            }
            *value = *lo;
        }
        None
    })
}

/// The index of a combination of values among all combinations.
fn combination(params: &[Param], args: &[Value]) -> usize {
    params.iter().zip(args).fold(0, |index, (param, &arg)| {
        let (lo, hi) = param.ty.domain.bounds().expect("validation: parameters have finite domains");
        assert!(lo <= arg && arg <= hi, "validation: the arguments of a process fit its parameters");
        index * (hi - lo + 1) as usize + (arg - lo) as usize
    })
}

/// `P(0, 1)`, or `P` without parameters. Values of enumerations are shown by their names.
pub(super) fn role_name(template: &Template, args: &[Value], system: &System) -> String {
    if args.is_empty() {
        return template.name.to_string();
    }
    let name = |(param, &value): (&Param, &Value)| {
        system.value_name(param.ty.domain, value).map_or_else(|| value.to_string(), str::to_owned)
    };
    let args: Vec<String> = template.params.iter().zip(args).map(name).collect();
    format!("{}({})", template.name, args.join(", "))
}

/// The threads that belong to each template.
pub(super) struct Placement<'p> {
    templates: FxHashMap<&'p str, (&'p Template, TemplateId)>,
    /// The first thread of each role that starts initially.
    first: FxHashMap<RoleId, ThreadId>,
}

/// Adds the instances that exist at the start.
pub(super) fn place<'p>(program: &'p Program, system: &mut System, wanted: Instantiation) -> Placement<'p> {
    let ids = system.templates.ids();
    let templates: FxHashMap<&str, (&Template, TemplateId)> =
        program.templates.iter().zip(ids).map(|(t, id)| (t.name.as_str(), (t, id))).collect();
    let mut placement = Placement { templates, first: FxHashMap::default() };

    // Copies that a property refers to always exist, whatever number was requested.
    let mentioned = mentioned(program);
    for (template, id) in program.templates.iter().zip(system.templates.ids()) {
        if template.start == Start::OnSpawn {
            continue;
        }
        let declared = match template.count {
            Count::Fixed(count) => count,
            Count::Any => wanted.any,
        };
        let copies =
            wanted.every.unwrap_or(declared).max(mentioned.get(template.name.as_str()).copied().unwrap_or(0));
        let numbered = copies > 1 || template.count != Count::Fixed(1);
        for &role in &system.templates[id].roles {
            placement.first.insert(role, ThreadId::from_index(system.instances.len()));
            for copy in 0..copies {
                limits::checkpoint();
                let role_name = &system.roles[role].name;
                let name = if numbered { format!("{role_name}[{copy}]") } else { role_name.clone() };
                system.instances.push(Instance { role, name });
            }
        }
    }
    placement
}

/// How many copies of each template the properties refer to by number, at least.
fn mentioned(program: &Program) -> FxHashMap<&str, u32> {
    let mut mentioned: FxHashMap<&str, u32> = FxHashMap::default();
    let mut mention = |process: &ProcessRef| {
        let template = program.templates.iter().find(|template| template.name == process.template);
        let Some(template) = template else { return };
        let copy = match (&process.select, template.count) {
            (Select::Index(index), Count::Fixed(copies)) => index % copies,
            (Select::Index(index), Count::Any) => *index,
            (Select::Only | Select::Args(_), _) => 0,
        };
        let least = mentioned.entry(template.name.as_str()).or_default();
        *least = (*least).max(copy + 1);
    };
    for property in &program.properties {
        processes(&property.condition, &mut mention);
    }
    for progress in &program.progress {
        match &progress.kind {
            ProgressKind::Live(condition) => processes(condition, &mut mention),
            ProgressKind::Leaves { process, .. } => mention(process),
            ProgressKind::DeadlockFree | ProgressKind::LiveEnd | ProgressKind::Terminates => {}
        }
    }
    mentioned
}

/// A process, with its number of copies, of which the properties mention more than `every` copies.
pub fn mentions_more_than(program: &Program, every: u32) -> Option<(&str, u32)> {
    let mentioned = mentioned(program);
    let names = program.templates.iter().map(|template| template.name.as_str());
    let needed = names.filter_map(|name| Some((name, *mentioned.get(name)?)));
    needed.into_iter().find(|&(_, copies)| copies > every)
}

impl Placement<'_> {
    /// The thread that a property refers to.
    pub(super) fn thread(&self, system: &System, process: &ProcessRef) -> ThreadId {
        let (role, copy) = self.resolve(system, process);
        let first = self.first.get(&role).expect("validation: only initial instances are referred to");
        ThreadId(first.0 + copy)
    }

    /// The template with a name.
    pub(super) fn template(&self, name: &Name) -> (&Template, TemplateId) {
        *self
            .templates
            .get(name.as_str())
            .unwrap_or_else(|| panic!("validation: the process `{name}` exists"))
    }

    /// The role that a property refers to, and the index of the copy. Numbers count the declared copies, so
    /// that `P[2]` means the same process whatever the number of instances.
    fn resolve(&self, system: &System, process: &ProcessRef) -> (RoleId, u32) {
        let (template, id) = self.template(&process.template);
        let roles = &system.templates[id].roles;
        match &process.select {
            Select::Only => (roles[0], 0),
            Select::Args(args) => (roles[combination(&template.params, args)], 0),
            Select::Index(index) => match template.count {
                Count::Fixed(copies) => {
                    let role = roles.get((index / copies) as usize);
                    (*role.expect("validation: an instance with this number exists"), index % copies)
                }
                Count::Any => (roles[0], *index),
            },
        }
    }
}

/// Calls `visit` for every process that an expression of a property mentions.
fn processes(e: &Expr, visit: &mut dyn FnMut(&ProcessRef)) {
    match &e.kind {
        ExprKind::Observe(Observation::At { process, .. } | Observation::Register { process, .. }) => {
            visit(process);
        }
        ExprKind::Unary(_, a) => processes(a, visit),
        ExprKind::Binary(_, a, b) => {
            processes(a, visit);
            processes(b, visit);
        }
        _ => {}
    }
}
