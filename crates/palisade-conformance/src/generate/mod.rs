//! Random programs, biased towards shapes in which memory models differ.
//!
//! A program is built in three steps:
//! 1. a skeleton of accesses (`cycle`);
//! 2. threads that make these accesses more or less directly, with other statements in between (`body`);
//! 3. a property that is broken about as often as not (`property`).
//!
//! *Guarantee.* The same profile and seed always give the same program on one version of this file. Every
//! program is valid. Programs of acyclic profiles have finitely many states under every model.

mod body;
mod choices;
mod constructs;
pub(crate) mod cycle;
mod endless;
mod property;
mod recursive;
mod spawning;
mod templates;
mod waiting;
mod waking;

pub use constructs::with_and_without_constructs;
pub use endless::generate_endless;
pub use recursive::{Recursion, generate_recursive};
pub use spawning::{generate_fenced_spawning, generate_spawning};
pub use templates::generate_parameterized;
pub use waiting::generate_waiting;
pub use waking::generate_waking;

use crate::brute::{self, Answer, Scope};
use crate::build::{self, declare, element, int, name, stmt};
use crate::random::Random;
use body::{Body, BodyKind};
use choices::Loops;
use cycle::{Access, AccessKind, Skeleton};
use palisade_memory::{Machine, Model};
use palisade_program::written::{
    Block, Count, Domain, Init, InitValue, Outside, Param, Place, Procedure, Program, Start, StmtKind, Type,
};
use palisade_program::{Instantiation, Value, lower};

/// What the programs may contain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Profile {
    /// Straight lines and branches: loads, stores, fences, locked instructions. No procedures, spawned
    /// processes, atomic blocks or loops.
    Simple,
    /// Everything but loops and recursion: every run ends.
    Acyclic,
    /// Like [`Profile::Simple`], with loops.
    Cyclic,
    /// Everything, including bounded recursion.
    Full,
    /// Straight lines and branches in which several values lead to the same place. Not one of
    /// [`Profile::ALL`].
    Choices,
    /// The same with loops.
    CyclicChoices,
}

impl Profile {
    /// Those that every engine is tested with.
    pub const ALL: [Profile; 4] = [Profile::Simple, Profile::Acyclic, Profile::Cyclic, Profile::Full];

    /// Whether every run of such a program ends.
    pub fn is_acyclic(self) -> bool {
        matches!(self, Profile::Simple | Profile::Acyclic | Profile::Choices)
    }

    /// Whether procedures, spawned processes and atomic blocks occur.
    fn has_structure(self) -> bool {
        matches!(self, Profile::Acyclic | Profile::Full)
    }
}

/// The program that a seed names.
///
/// The seed also determines which kind of verdict is wanted. Of several attempts, the first with that verdict
/// is taken. If there is none, one that SC does not break is taken, if possible.
pub fn generate(profile: Profile, seed: u64) -> Program {
    match profile {
        Profile::Choices => return choices::generate(seed, Loops::None, false),
        Profile::CyclicChoices => return choices::generate(seed, Loops::Some, false),
        Profile::Simple | Profile::Acyclic | Profile::Cyclic | Profile::Full => {}
    }
    let mut random = Random::new(seed ^ ((profile as u64 + 1) << 56));
    let wanted = *random.weighted(&[
        (20, Verdicts::Safe),
        (15, Verdicts::BrokenBySc),
        (30, Verdicts::BrokenByTso),
        (25, Verdicts::BrokenByPso),
        (10, Verdicts::Open),
    ]);
    let mut best = (Verdicts::BrokenBySc, attempt(profile, &mut random));
    for _ in 0..5 {
        let program = attempt(profile, &mut random);
        let found = verdicts(&program);
        if found == wanted || wanted == Verdicts::Open {
            return program;
        }
        if found != Verdicts::BrokenBySc || best.0 == Verdicts::BrokenBySc {
            best = (found, program);
        }
    }
    best.1
}

/// A program for any number of threads in which several values lead to the same place.
pub fn generate_parameterized_choices(seed: u64) -> Program {
    choices::generate(seed, Loops::None, true)
}

/// The verdicts of the models on a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdicts {
    /// It is safe under all of them.
    Safe,
    /// It is broken under all of them.
    BrokenBySc,
    /// It is broken, but not by SC.
    BrokenByTso,
    /// It is broken only by PSO.
    BrokenByPso,
    /// Not decided within the limits.
    Open,
}

fn verdicts(program: &Program) -> Verdicts {
    match is_broken(program, Model::Sc) {
        Some(true) => return Verdicts::BrokenBySc,
        Some(false) => {}
        None => return Verdicts::Open,
    }
    match (is_broken(program, Model::Pso), is_broken(program, Model::Tso)) {
        (Some(false), _) => Verdicts::Safe,
        (_, Some(true)) => Verdicts::BrokenByTso,
        (Some(true), Some(false)) => Verdicts::BrokenByPso,
        _ => Verdicts::Open,
    }
}

fn attempt(profile: Profile, random: &mut Random) -> Program {
    Generator::new(profile, Random::new(random.next_word())).generate()
}

/// Whether the model breaks the program, if that is decided within the limits.
fn is_broken(program: &Program, model: Model) -> Option<bool> {
    let system = lower(program, Instantiation { any: 2, every: None });
    match brute::check(Machine::new(&system, model), Scope { states: 1_000, buffer: Some(3) }) {
        Answer::Safe => Some(false),
        Answer::Unsafe(_) => Some(true),
        Answer::Inconclusive => None,
    }
}

/// Where a variable of the skeleton is.
#[derive(Clone, Debug)]
enum Home {
    /// A shared scalar.
    Scalar(String),
    /// An element of the array.
    Element(String, u32),
}

/// A process as the property generator sees it.
#[derive(Clone, Debug)]
struct Actor {
    template: String,
    count: u32,
    params: usize,
    start: Start,
    /// Registers that hold plain values (no addresses).
    registers: Vec<String>,
    /// Registers that hold what the skeleton's reads returned, with the expected values.
    expected: Vec<(String, Value)>,
    labels: Vec<String>,
    /// Whether it loops without an exit.
    endless: bool,
}

struct Generator {
    random: Random,
    profile: Profile,
    program: Program,
    homes: Vec<Home>,
    actors: Vec<Actor>,
    /// How many more statements may be added.
    noise: usize,
    next_procedure: usize,
    /// The critical cycle the program was made from.
    cycle: Option<Skeleton>,
}

impl Generator {
    fn new(profile: Profile, random: Random) -> Generator {
        Generator {
            random,
            profile,
            program: Program::default(),
            homes: Vec::new(),
            actors: Vec::new(),
            noise: 0,
            next_procedure: 0,
            cycle: None,
        }
    }

    fn generate(mut self) -> Program {
        if self.random.percent(20) {
            self.symmetric();
        } else {
            self.asymmetric();
        }
        self.spawn_one();
        self.properties();
        self.program
    }

    /// One template per thread of a skeleton.
    fn asymmetric(&mut self) {
        let most = if self.profile.is_acyclic() { 4 } else { 3 };
        let (skeleton, is_cycle) = if self.random.percent(75) {
            (cycle::critical_cycle(&mut self.random, most), true)
        } else {
            (cycle::random_accesses(&mut self.random, 3), false)
        };
        self.noise = match skeleton.threads.len() {
            2 => self.random.between(0, 6),
            3 => self.random.between(0, 3),
            _ => self.random.between(0, 2),
        };
        self.declare_variables(skeleton.variables);
        let mut bodies = Vec::new();
        for (index, accesses) in skeleton.threads.iter().enumerate() {
            let (body, actor) = self.thread(format!("P{index}"), accesses, &[], 1);
            bodies.push((actor.template.clone(), body));
            self.actors.push(actor);
        }
        for (template, body) in bodies {
            self.program.templates.push(build::process(&template, body));
        }
        self.cycle = is_cycle.then_some(skeleton);
    }

    /// One template with several instances: identical ones, or one per value of a parameter.
    fn symmetric(&mut self) {
        let instances = if self.random.percent(75) { 2 } else { 3 };
        let by_parameter = self.random.percent(50);
        let Skeleton { threads, variables, .. } = cycle::random_accesses(&mut self.random, 2);
        let variables = variables.max(2);
        self.noise = if instances == 2 { self.random.between(0, 3) } else { 0 };
        self.declare_variables(variables);
        if by_parameter {
            // One cell per instance, to be read by the others.
            let ty = Type::range(0, 2);
            let zero = InitValue::Const(int(0));
            self.program.shared.push(build::shared("own", Some(instances), ty, zero));
        }
        let mut accesses = threads.into_iter().next().unwrap_or_default();
        accesses.truncate(if instances == 2 { 3 } else { 2 });
        let params: &[&str] = if by_parameter { &["i"] } else { &[] };
        let (mut body, mut actor) = self.thread("W".to_owned(), &accesses, params, instances);
        let params = if by_parameter {
            let own = |index| element("own", index);
            let other = build::binary(
                palisade_program::written::BinaryOp::Rem,
                build::binary(palisade_program::written::BinaryOp::Add, build::var("i"), int(1)),
                int(instances.into()),
            );
            let at = self.random.below(body.len() + 1);
            body.insert(at, build::assign(own(build::var("i")), int(1)));
            body.push(declare("seen", Type::INT, build::read(own(other))));
            actor.registers.push("seen".to_owned());
            actor.expected.push(("seen".to_owned(), 0));
            actor.count = 1;
            actor.params = instances as usize;
            vec![Param { name: name("i"), ty: Type::range(0, Value::from(instances) - 1) }]
        } else {
            Vec::new()
        };
        let count = Count::Fixed(actor.count);
        self.program.templates.push(build::template("W", params, count, Start::Initially, body));
        self.actors.push(actor);
    }

    /// The body of a thread that makes the accesses.
    fn thread(
        &mut self,
        template: String,
        accesses: &[Access],
        params: &[&str],
        count: u32,
    ) -> (Block, Actor) {
        let mut body = Body::new(self, BodyKind::Process, params);
        let mut stmts = Vec::new();
        let mut expected = Vec::new();
        for access in accesses {
            if body.random().percent(35) {
                stmts.extend(body.noise(2));
            }
            let (made, register) = body.access(*access);
            stmts.extend(made);
            if let (Some(register), AccessKind::Read(value)) = (register, access.kind) {
                expected.push((register, value));
            }
        }
        if body.random().percent(20) {
            stmts.extend(body.noise(2));
        }
        let stmts = body.finish(stmts);
        let (registers, labels) = (body.values(), body.labels());
        let endless = body.is_endless();
        let start = Start::Initially;
        (stmts, Actor { template, count, params: 0, start, registers, expected, labels, endless })
    }

    /// The shared variables of a skeleton: scalars or the elements of one array.
    fn declare_variables(&mut self, variables: usize) {
        if variables > 1 && self.random.percent(30) {
            let (ty, _) = self.variable_type();
            let init = match self.random.below(10) {
                0 if ty.domain != Domain::Int => Init::Every(InitValue::Any),
                1 => Init::Each(
                    (0..variables).map(|_| InitValue::Const(int(self.random.value(0, 1)))).collect(),
                ),
                _ => Init::Every(InitValue::Const(int(0))),
            };
            let mut array = build::shared("a", Some(variables as u32), ty, InitValue::Any);
            array.init = init;
            self.program.shared.push(array);
            self.homes = (0..variables).map(|index| Home::Element("a".to_owned(), index as u32)).collect();
        } else {
            for variable in ["x", "y", "z", "w"].iter().take(variables) {
                let (ty, init) = self.variable_type();
                self.program.shared.push(build::shared(variable, None, ty, init));
                self.homes.push(Home::Scalar((*variable).to_owned()));
            }
        }
    }

    fn variable_type(&mut self) -> (Type, InitValue) {
        let int_is_fine = self.profile.is_acyclic();
        let ty = match self.random.below(20) {
            0 if int_is_fine => Type::INT,
            1 => Type::range(-1, 2),
            2 => Type { outside: Outside::Block, ..Type::range(0, 2) },
            3 | 4 => Type::range(0, 2),
            _ => Type::range(0, 3),
        };
        let init = match self.random.below(12) {
            0 if ty.domain != Domain::Int => InitValue::Any,
            1 => InitValue::Const(int(1)),
            _ => InitValue::Const(int(0)),
        };
        (ty, init)
    }

    /// Sometimes makes one of the processes start only when another one spawns it.
    fn spawn_one(&mut self) {
        let templates = self.program.templates.len();
        if !self.profile.has_structure() || templates < 2 || !self.random.percent(15) {
            return;
        }
        let spawned = templates - 1;
        let parent = self.random.below(spawned);
        let spawn =
            StmtKind::Spawn { template: self.program.templates[spawned].name.clone(), args: Vec::new() };
        self.program.templates[spawned].start = Start::OnSpawn;
        self.actors[spawned].start = Start::OnSpawn;
        let body = &mut self.program.templates[parent].body;
        let at = self.random.below(body.len().min(2) + 1);
        body.insert(at, stmt(spawn));
    }

    /// A new procedure with this body.
    fn procedure(&mut self, params: &[(&str, Type)], result: Option<Type>, body: Block) -> String {
        let text = format!("f{}", self.next_procedure);
        self.next_procedure += 1;
        let param = |&(text, ty): &(&str, Type)| Param { name: name(text), ty };
        self.program.procedures.push(Procedure {
            name: name(text.as_str()),
            params: params.iter().map(param).collect(),
            result,
            body,
            origin: palisade_base::Origin::NONE,
        });
        text
    }

    /// The place of a variable of the skeleton, by a constant address.
    fn home(&self, variable: usize) -> Place {
        match &self.homes[variable] {
            Home::Scalar(text) => build::named(text),
            Home::Element(array, index) => element(array, int((*index).into())),
        }
    }
}
