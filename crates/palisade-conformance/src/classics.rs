//! Well-known litmus tests and algorithms as `.pal` texts, with their verdicts under SC, TSO and PSO and the
//! sources of these.
//!
//! A text begins with three comment lines: what it is, its verdicts (`// sc safe, tso unsafe, pso unsafe`),
//! and the source of the verdicts. The tests of this crate also check every verdict by brute force.

use crate::generate::Profile;
use palisade_base::Source;
use palisade_memory::Model;
use palisade_program::written::{Program, StmtKind};
use palisade_syntax::{Language, parse};

/// A well-known program.
#[derive(Clone, Debug)]
pub struct Classic {
    /// Its name, without `.pal`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The program.
    pub program: Program,
}

impl Classic {
    /// `safe` or `unsafe`.
    pub fn expected(&self, model: Model) -> &'static str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("// sc "));
        let line = line.unwrap_or_else(|| panic!("{} states no verdicts", self.name));
        let mut verdicts = line.split(", ").map(|part| part.rsplit(' ').next().unwrap_or(part));
        let index = Model::ALL.iter().position(|&other| other == model).expect("ALL holds every model");
        match verdicts.nth(index) {
            Some(word @ ("safe" | "unsafe")) => word,
            _ => panic!("{} states no verdict for {}", self.name, model.name()),
        }
    }

    /// What kind of program it is.
    pub fn profile(&self) -> Profile {
        let mut program = self.program.clone();
        let mut loops = false;
        crate::walk::blocks(&mut program, &mut |block| {
            let is_loop = |kind: &StmtKind| {
                matches!(
                    kind,
                    StmtKind::While { .. } | StmtKind::Loop(_) | StmtKind::Await(_) | StmtKind::Goto(_)
                )
            };
            loops |= block.iter().any(|stmt| is_loop(&stmt.kind));
        });
        if loops { Profile::Cyclic } else { Profile::Acyclic }
    }
}

/// All of them.
///
/// # Panics
/// If one of them is not a valid program.
pub fn all() -> Vec<Classic> {
    let read = |&(name, text): &(&'static str, &'static str)| {
        let source = Source::new(format!("{name}.pal"), text);
        match parse(Language::Pal, &source) {
            Ok(parsed) => Classic { name, text, program: parsed.program },
            Err(diagnostics) => panic!("{name}.pal is not valid: {diagnostics:?}"),
        }
    };
    TEXTS.iter().map(read).collect()
}

/// Names and texts.
const TEXTS: &[(&str, &str)] = &[
    ("2+2w+sfences", include_str!("../classics/2+2w+sfences.pal")),
    ("2+2w", include_str!("../classics/2+2w.pal")),
    ("3.sb", include_str!("../classics/3.sb.pal")),
    ("await", include_str!("../classics/await.pal")),
    ("choice+atomic", include_str!("../classics/choice+atomic.pal")),
    ("choice+fence", include_str!("../classics/choice+fence.pal")),
    ("choice+locked", include_str!("../classics/choice+locked.pal")),
    ("corr", include_str!("../classics/corr.pal")),
    ("corw", include_str!("../classics/corw.pal")),
    ("cowr", include_str!("../classics/cowr.pal")),
    ("coww", include_str!("../classics/coww.pal")),
    ("dekker+fence", include_str!("../classics/dekker+fence.pal")),
    ("dekker", include_str!("../classics/dekker.pal")),
    ("faulting+property", include_str!("../classics/faulting+property.pal")),
    ("iriw", include_str!("../classics/iriw.pal")),
    ("isa2+sfence", include_str!("../classics/isa2+sfence.pal")),
    ("isa2", include_str!("../classics/isa2.pal")),
    ("lb", include_str!("../classics/lb.pal")),
    ("mp+fence", include_str!("../classics/mp+fence.pal")),
    ("mp+locked", include_str!("../classics/mp+locked.pal")),
    ("mp+sfence-late", include_str!("../classics/mp+sfence-late.pal")),
    ("mp+sfence", include_str!("../classics/mp+sfence.pal")),
    ("mp", include_str!("../classics/mp.pal")),
    ("n4", include_str!("../classics/n4.pal")),
    ("n5", include_str!("../classics/n5.pal")),
    ("n6", include_str!("../classics/n6.pal")),
    ("own-read", include_str!("../classics/own-read.pal")),
    ("peterson+fence", include_str!("../classics/peterson+fence.pal")),
    ("peterson+fences", include_str!("../classics/peterson+fences.pal")),
    ("peterson", include_str!("../classics/peterson.pal")),
    ("publish+sfence", include_str!("../classics/publish+sfence.pal")),
    ("publish", include_str!("../classics/publish.pal")),
    ("r+po+fence", include_str!("../classics/r+po+fence.pal")),
    ("r+sfence+fence", include_str!("../classics/r+sfence+fence.pal")),
    ("r", include_str!("../classics/r.pal")),
    ("rwc+fence", include_str!("../classics/rwc+fence.pal")),
    ("rwc", include_str!("../classics/rwc.pal")),
    ("s+sfence", include_str!("../classics/s+sfence.pal")),
    ("s", include_str!("../classics/s.pal")),
    ("sb+atomics", include_str!("../classics/sb+atomics.pal")),
    ("sb+fence+po", include_str!("../classics/sb+fence+po.pal")),
    ("sb+fences", include_str!("../classics/sb+fences.pal")),
    ("sb+locked-elsewhere", include_str!("../classics/sb+locked-elsewhere.pal")),
    ("sb+locked", include_str!("../classics/sb+locked.pal")),
    ("sb+rfi", include_str!("../classics/sb+rfi.pal")),
    ("sb+sfences", include_str!("../classics/sb+sfences.pal")),
    ("sb", include_str!("../classics/sb.pal")),
    ("spinlock+sfence", include_str!("../classics/spinlock+sfence.pal")),
    ("spinlock", include_str!("../classics/spinlock.pal")),
    ("w+rwc+fence", include_str!("../classics/w+rwc+fence.pal")),
    ("wrc", include_str!("../classics/wrc.pal")),
    ("z6.3", include_str!("../classics/z6.3.pal")),
];
