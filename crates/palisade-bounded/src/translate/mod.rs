//! From TSO to SC, program to program.
//!
//! *Problem.* Given a program, write another one that reaches under SC what the given program reaches under
//! TSO in runs within a bound. The bound is either at most `k` rounds per process, or a store age of at
//! most `k`.
//!
//! *Source.* Atig, Bouajjani and Parlato, "Getting rid of store buffers in TSO analysis" (CAV 2011), sections
//! 3 and 4.
//!
//! *Definitions.*
//! - A *round* of a process is a stretch of a run in which only this process takes steps and only its pending
//!   stores reach memory. Rounds are as long as possible.
//! - When a round ends, every pending store of the process gets one round older.
//! - Runs with *k rounds* have at most `k` rounds of each process.
//! - Runs with *store age k* have no pending store older than `k` at the end of any round, including the last
//!   one.
//!
//! *Guarantee.* A state *rests* if no round is in progress (`sim == 0`). The resting states of the
//! translation under SC and the states at the ends of rounds of runs within the bound have the same memory,
//! registers and labels that properties mention (Theorems 1 and 2). Faults are reached by one iff they are
//! reached by the other, and so are bad states of every property. The size is linear in the size of the
//! program for fixed `k`. Variables count by their cells.
//!
//! *How.*
//! - While a process is in a round it holds the token `sim`, so no other process moves.
//! - Each store is assigned the round in which it takes effect, `r_TSO` rounds from now. If that is 0, it
//!   takes effect at once. Otherwise its value goes to `queue_d_x` with `mask_d_x` set, where `d = r_TSO`.
//! - Stores leave the buffer in order, so `r_TSO` never shrinks except as rounds pass.
//! - At the start of a round, `queue_1` is written to memory and the other queues move up by one.
//! - A load reads the newest entry of the queues, or memory if there is none (`view_x`).
//! - Fences, locked instructions and atomic blocks are passed only if `r_TSO` is 0.
//! - Inside atomic blocks the program is unchanged, because nothing is pending there.
//!
//! *Differences from the paper.*
//! 1. Queues are numbered from the current round on. The paper numbers them from the first round (section 3)
//!    or modulo `k` (section 4, where `k + 1` would be needed). So both translations are the same except for
//!    how far `r_TSO` can grow, and states that behave alike are equal.
//! 2. Stores need not reach memory: with `k` rounds there is a queue for a round that never comes. The paper
//!    assumes empty buffers at the end, but a bad state may have pending stores.
//! 3. The view is computed when it is needed. Rebuilding it at the start of each round would read every
//!    variable.
//! 4. A round may end only before something that others can observe, not between any two statements. It may
//!    not end after a store that stays pending, nor if nothing has happened since the last place to end it
//!    ([`body`] has the argument). So most stores need no guess: whether a store stays pending matters only
//!    if a load follows it in its round.
//! 5. `sim` is a shared token rather than an atomic section for each round, since sections of `.pal` cannot
//!    end in the middle of a loop. Its domain `0..1` is `blocking`, so `fetch_add(sim, 1)` waits until it is
//!    free. With no round left, `1 + (r_SC == k)` adds more than the domain allows.
//! 6. `pending` counts the resting processes with pending stores. Conditions on memory are judged where it
//!    is 0.

mod body;
mod build;
mod helpers;
mod names;
mod property;

use build::{call, equals, name, place, positive, run, stmt, truth, var};
use helpers::{Helper, Locals, Variable};
use names::Names;
use palisade_base::{Diagnostic, Origin, Span, limits};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Check, END_LABEL, Expr, Init, InitValue, Name, Private, Procedure, Program, Rmw, Shared,
    Stmt, StmtKind, Type,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// The bounded quantity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bounded {
    /// The rounds per process.
    Rounds(u32),
    /// The number of ends of rounds of its process for which a store may stay pending.
    Age(u32),
}

impl Bounded {
    /// How many queues there are.
    fn queues(self) -> u32 {
        match self {
            Bounded::Rounds(bound) | Bounded::Age(bound) => bound,
        }
    }
}

/// A translated program, with the information needed to translate its runs back.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The program for SC.
    pub program: Program,
    /// The roles of its procedures.
    pub(crate) roles: FxHashMap<String, Role>,
    /// The names of the versions of procedures that are called in atomic blocks.
    pub(crate) atomic: FxHashSet<String>,
    /// Which private variable is `r_TSO`. `None` if nothing can be pending.
    pub(crate) delay: Option<usize>,
}

/// The role of a procedure in a translation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A new round begins.
    Begin,
    /// A load of a variable. For an array, the first argument is the index.
    Load {
        /// Its first cell.
        base: u32,
    },
    /// A store to a variable. The first argument is the value. For an array, the second is the index.
    Store {
        /// Its first cell.
        base: u32,
        /// Whether it is an array.
        array: bool,
    },
}

/// The largest product of cells and queues that a translation may have.
const MAX_QUEUES: u64 = 1 << 20;

/// The translation for runs in which every process has at most this many rounds. The program must be valid;
/// then so is the result.
pub fn translate_rounds(program: &Program, rounds: u32) -> Result<Program, Vec<Diagnostic>> {
    translate(program, Bounded::Rounds(rounds)).map(|translation| translation.program)
}

/// The translation for runs in which stores have at most this age. The program must be valid; then so is the
/// result.
pub fn translate_age(program: &Program, age: u32) -> Result<Program, Vec<Diagnostic>> {
    translate(program, Bounded::Age(age)).map(|translation| translation.program)
}

/// Translates a valid program.
pub fn translate(program: &Program, bounded: Bounded) -> Result<Translation, Vec<Diagnostic>> {
    let cells: u64 = program.shared.iter().map(|variable| u64::from(variable.len.unwrap_or(1))).sum();
    if cells.saturating_mul(bounded.queues().into()) > MAX_QUEUES {
        let message = format!("{} queues for each of {cells} memory cells are too many", bounded.queues());
        let at = program.shared.first().map_or(Span::NONE, |variable| variable.name.span());
        return Err(vec![Diagnostic::error("too-large", message).at(at, "").help("choose a smaller bound")]);
    }
    if let Some(span) = program.chosen_address() {
        let message = "variables with chosen addresses cannot be translated";
        return Err(vec![Diagnostic::error("chosen-address", message).at(span, "")]);
    }
    if program.has_plain() {
        let message = "plain accesses, and the question whether they race, cannot be translated";
        return Err(vec![Diagnostic::error("plain-access", message)]);
    }
    Ok(Translator::new(program, bounded).translate())
}

/// A translation in progress.
struct Translator<'p> {
    program: &'p Program,
    bounded: Bounded,
    names: Names,
    local: Locals,
    variables: Vec<Variable>,
    by_name: FxHashMap<&'p str, usize>,
    procedures: FxHashMap<&'p str, &'p Procedure>,
    sim: String,
    /// The number of resting processes with pending stores, if a property asks for it.
    pending: Option<String>,
    r_sc: Option<String>,
    r_tso: Option<String>,
    /// Whether the round may end here.
    may_end: String,
    new_round: String,
    init_round: String,
    /// Counts the process among those with pending stores, if that matters.
    end_round: Option<String>,
    delay: String,
    /// `pointer(p)` is `p` if `p` is the address of a cell of the program.
    pointer: Option<String>,
    /// Helpers that are in use, and those still to be written.
    helpers: FxHashMap<Helper, String>,
    unwritten: VecDeque<Helper>,
    /// Procedures that are called in atomic blocks, with their names there, and those still to be written.
    atomic: FxHashMap<&'p str, String>,
    unwritten_atomic: VecDeque<&'p Procedure>,
    /// The labels at which a process rests, for the labels that properties mention.
    at: FxHashMap<String, String>,
    observed: property::Observed<'p>,
    roles: FxHashMap<String, Role>,
}

impl<'p> Translator<'p> {
    fn new(program: &'p Program, bounded: Bounded) -> Translator<'p> {
        let mut names = Names::new(program);
        let observed = property::Observed::new(program);
        let queues = bounded.queues();
        let stored = body::stored(program);
        let variables = Variable::all(program, queues, &stored, &mut names);
        let some = |wanted: &str, is_there: bool, names: &mut Names| is_there.then(|| names.fresh(wanted));
        Translator {
            program,
            bounded,
            by_name: program.shared.iter().enumerate().map(|(i, v)| (v.name.as_str(), i)).collect(),
            procedures: program.procedures.iter().map(|p| (p.name.as_str(), p)).collect(),
            sim: names.fresh("sim"),
            pending: some("pending", queues > 0 && observed.memory, &mut names),
            r_sc: some("r_SC", matches!(bounded, Bounded::Rounds(_)), &mut names),
            r_tso: some("r_TSO", queues > 0, &mut names),
            may_end: names.fresh("may_end"),
            new_round: names.fresh("new_round"),
            init_round: names.fresh("init_round"),
            end_round: some("end_round", queues > 0 && observed.memory, &mut names),
            delay: names.fresh("delay"),
            pointer: None,
            local: Locals::new(&mut names),
            names,
            variables,
            helpers: FxHashMap::default(),
            unwritten: VecDeque::new(),
            atomic: FxHashMap::default(),
            unwritten_atomic: VecDeque::new(),
            at: FxHashMap::default(),
            observed,
            roles: FxHashMap::default(),
        }
    }

    fn translate(mut self) -> Translation {
        let program = self.program;
        let templates: Vec<_> = program.templates.iter().map(|template| self.template(template)).collect();
        let called: Vec<_> = program.procedures.iter().map(|procedure| self.procedure(procedure)).collect();
        let mut raw = Vec::new();
        while let Some(procedure) = self.unwritten_atomic.pop_front() {
            limits::checkpoint();
            raw.push(self.atomic_procedure(procedure));
        }
        let mut helpers = Vec::new();
        while let Some(helper) = self.unwritten.pop_front() {
            limits::checkpoint();
            helpers.push(self.helper(helper));
        }
        let mut procedures = self.rounds();
        procedures.extend(helpers);
        procedures.extend(self.pointer_procedure());
        procedures.extend(called);
        procedures.extend(raw);
        let properties = program.properties.iter().map(|property| self.property(property)).collect();
        let delay = self.r_tso.is_some().then(|| program.privates.len() + usize::from(self.r_sc.is_some()));
        let program = Program {
            enums: program.enums.clone(),
            shared: self.shared(),
            privates: self.privates(),
            procedures,
            templates,
            properties,
            progress: Vec::new(),
            identities: None,
        };
        Translation { program, roles: self.roles, atomic: self.atomic.into_values().collect(), delay }
    }

    fn shared(&self) -> Vec<Shared> {
        let shared = |text: &str, ty| Shared {
            name: name(text),
            len: None,
            ty,
            init: Init::Every(InitValue::Const(Expr::int(0))),
            at: None,
            origin: Origin::NONE,
        };
        let token = Type { outside: palisade_program::written::Outside::Block, ..Type::range(0, 1) };
        let mut all = self.program.shared.clone();
        all.push(shared(&self.sim, token));
        all.extend(self.pending.iter().map(|pending| shared(pending, Type::INT)));
        all
    }

    fn privates(&self) -> Vec<Private> {
        let private = |text: &str, ty| Private { name: name(text), ty, origin: Origin::NONE };
        let upto = Type::range(0, self.bounded.queues().into());
        let mut all = self.program.privates.clone();
        all.extend(self.r_sc.iter().map(|r_sc| private(r_sc, upto)));
        all.extend(self.r_tso.iter().map(|r_tso| private(r_tso, upto)));
        all.push(private(&self.may_end, Type::BOOL));
        for variable in &self.variables {
            all.extend(variable.masks.iter().flatten().map(|mask| private(mask, Type::BOOL)));
            all.extend(variable.queues.iter().flatten().map(|queue| private(queue, variable.queued())));
        }
        all
    }

    /// Waits for the token.
    fn take_token(&self) -> Stmt {
        let amount = match (self.bounded, &self.r_sc) {
            (Bounded::Rounds(rounds), Some(r_sc)) => {
                let spent = equals(var(r_sc), rounds.into());
                build::binary(BinaryOp::Add, Expr::int(1), spent)
            }
            _ => Expr::int(1),
        };
        stmt(StmtKind::Eval(build::locked(Rmw::FetchAdd, place(&self.sim), vec![amount])))
    }

    /// Ends a round. The process is at rest immediately after the last of these statements.
    fn end_round(&self) -> Block {
        let count = self.end_round.iter().map(|end_round| run(end_round));
        count.chain([build::assign(place(&self.sim), Expr::int(0))]).collect()
    }

    /// Ends a round and waits for the next one, with these labels in between.
    fn switch(&self, labels: Vec<Name>) -> Block {
        let mut block = self.end_round();
        block.push(Stmt { labels, ..self.take_token() });
        block.push(self.init_round());
        block
    }

    /// Begins a round for which the token has been taken.
    fn init_round(&self) -> Stmt {
        run(&self.init_round)
    }

    /// Sets whether the round may end at the next place for it.
    fn set_may_end(&self, may: Expr) -> Stmt {
        build::assign(place(&self.may_end), may)
    }

    /// A place where the round may end, with the process at these labels until its next round. A round in
    /// which stores have reached memory may also end here.
    fn may_switch(&self, labels: Vec<Name>) -> Block {
        let mut block = Block::new();
        if !labels.is_empty() || self.observed.absence {
            block.push(self.set_may_end(truth(true)));
        }
        let mut switch = vec![self.set_may_end(truth(false))];
        switch.extend(self.switch(labels));
        // With bounded age, ending a round costs nothing if nothing is pending, so there is no need to
        // continue it.
        let ends = match (self.bounded, &self.r_tso) {
            (Bounded::Rounds(_), _) => Some(build::coin()),
            (Bounded::Age(_), Some(r_tso)) => {
                Some(build::binary(BinaryOp::Or, equals(var(r_tso), 0), build::coin()))
            }
            (Bounded::Age(_), None) => None,
        };
        let may_end = var(&self.may_end);
        let condition = match ends {
            Some(ends) => build::binary(BinaryOp::And, may_end, ends),
            None => may_end,
        };
        block.push(stmt(StmtKind::While { condition, body: switch }));
        block.push(self.set_may_end(truth(false)));
        block
    }

    /// The end of a process: rounds in which the pending stores reach memory.
    fn finish(&mut self) -> Block {
        let at_end = self.observed.end.then(|| name(&self.at_label(END_LABEL)));
        let mut block = Block::new();
        if let Some(r_tso) = &self.r_tso {
            let condition = positive(var(r_tso));
            let body = self.switch(at_end.into_iter().collect());
            block.push(stmt(StmtKind::While { condition, body }));
        }
        block.extend(self.end_round());
        block
    }

    /// Continues only if nothing is pending.
    fn drained(&self) -> Option<Stmt> {
        let r_tso = self.r_tso.as_ref()?;
        Some(stmt(StmtKind::Assume(equals(var(r_tso), 0))))
    }

    /// The procedures that begin and end rounds.
    fn rounds(&mut self) -> Vec<Procedure> {
        self.roles.insert(self.init_round.clone(), Role::Begin);
        let procedure = |text: &str, body| build::procedure(text, Vec::new(), None, body);
        let change = |text: &str, op| build::assign(place(text), build::binary(op, var(text), Expr::int(1)));
        let mut init = Block::new();
        init.extend(self.r_sc.iter().map(|r_sc| change(r_sc, BinaryOp::Add)));
        let mut all = Vec::new();
        if let Some(r_tso) = &self.r_tso {
            let waiting = || positive(var(r_tso));
            let mut begin = Block::new();
            if let Some(pending) = &self.pending {
                begin.push(change(pending, BinaryOp::Sub));
                let end_round = self.end_round.as_ref().expect("it counts pending stores");
                let count = build::when(waiting(), vec![change(pending, BinaryOp::Add)]);
                all.push(procedure(end_round, vec![count]));
            }
            begin.push(change(r_tso, BinaryOp::Sub));
            let written = self.set_may_end(truth(true));
            begin.extend(self.variables.iter().flat_map(|variable| variable.move_up(&written)));
            init.push(build::when(waiting(), begin));
            let more = match (self.bounded, &self.r_sc) {
                (Bounded::Rounds(rounds), Some(r_sc)) => {
                    let effect = build::binary(BinaryOp::Add, var(r_sc), var(r_tso));
                    build::binary(BinaryOp::Le, effect, Expr::int(rounds.into()))
                }
                _ => build::binary(BinaryOp::Lt, var(r_tso), Expr::int(Value::from(self.bounded.queues()))),
            };
            let more = build::binary(BinaryOp::And, more, build::coin());
            let grow = vec![change(r_tso, BinaryOp::Add)];
            all.push(procedure(&self.delay, vec![stmt(StmtKind::While { condition: more, body: grow })]));
        }
        all.push(procedure(&self.init_round, init));
        all.push(procedure(&self.new_round, self.may_switch(Vec::new())));
        all
    }

    /// Checks a pointer, because memory has cells that the program does not know.
    fn checked_pointer(&mut self, pointer: Expr) -> Expr {
        if self.pointer.is_none() {
            self.pointer = Some(self.names.fresh("pointer"));
        }
        let span = pointer.span();
        call(self.pointer.as_deref().expect("set above"), vec![pointer], span)
    }

    fn pointer_procedure(&self) -> Option<Procedure> {
        let pointer = self.pointer.as_ref()?;
        let cells: Value = self.program.shared.iter().map(|v| Value::from(v.len.unwrap_or(1))).sum();
        let p = &self.local.pointer;
        let from = build::binary(BinaryOp::Ge, var(p), build::int(1));
        let to = build::binary(BinaryOp::Le, var(p), build::int(cells));
        let known = build::binary(BinaryOp::And, from, to);
        let body = vec![stmt(StmtKind::Assert(known, Check::Assertion)), build::give(var(p))];
        Some(build::procedure(pointer, vec![build::param(p, Type::INT)], Some(Type::INT), body))
    }

    /// The name of a helper. A helper that was not used before is scheduled to be written.
    fn helper_name(&mut self, helper: Helper) -> String {
        if let Some(known) = self.helpers.get(&helper) {
            return known.clone();
        }
        let name = self.names.fresh(helper.wanted_name(&self.variables));
        self.helpers.insert(helper, name.clone());
        self.unwritten.push_back(helper);
        name
    }

    /// The name of a procedure for calls in atomic blocks.
    fn atomic_name(&mut self, procedure: &Name) -> String {
        let (&text, &declared) =
            self.procedures.get_key_value(procedure.as_str()).expect("validation: the procedure exists");
        if let Some(known) = self.atomic.get(text) {
            return known.clone();
        }
        let name = self.names.fresh(format!("{text}_atomic"));
        self.atomic.insert(text, name.clone());
        self.unwritten_atomic.push_back(declared);
        name
    }

    /// The label of the place where a process rests when it is at a label.
    fn at_label(&mut self, label: &str) -> String {
        if !self.at.contains_key(label) {
            let at = self.names.fresh(format!("at_{label}"));
            self.at.insert(label.to_owned(), at);
        }
        self.at[label].clone()
    }
}

/// A set of names.
type Set<'p> = FxHashSet<&'p str>;
