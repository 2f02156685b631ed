//! Certificates as files: a versioned JSON format with everything needed to check the proof again.
//!
//! *Invariant.* The file states which question it answers (`tests/suite/certificates.rs` checks this):
//! - the program, by the hash of its text;
//! - the memory model;
//! - the number of threads;
//! - the range of integers;
//! - what locked instructions wait for;
//! - whether deadlocks were asked about, and, for C, whether the program can finish.
//!
//! The digest seals question and proof together. It shows whether the file was damaged or edited. It does not
//! protect against forgery: that is the task of [`verify`](crate::verify).
//!
//! Each question has exactly one form: numbers have no leading zeros, flags are 0 or 1, and there are no
//! unused keys.

use crate::domains::CellDomain;
use crate::identities_file::IdentitiesBody;
use crate::sc_file::{CrowdsBody, StacksBody};
use crate::single_file::SingleBody;
use palisade_automata::MAX_DECLARED;
use palisade_engine::proof::{Element, Held, LoadBuffers, Part, Pending, Process, Proof, Ranking, SetLetter};
use palisade_engine::{ProofKind, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_program::Value;
use palisade_trace::{BuildRecord, text_hash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format. Load-buffer and single-buffer proofs have sets of values since version 3.
pub const SCHEMA_VERSION: u32 = 3;

const VERSION_WITH_SETS: u32 = 3;

/// The oldest version that can be read. Earlier ones do not seal the question.
const OLDEST_VERSION: u32 = 2;

/// The maximal number of instances of a process. The command line accepts no more.
const MAX_INSTANCES: u32 = 4096;

/// The maximal number of ranks: a short file must not take much memory.
const MAX_RANKS: u64 = 1 << 26;

const OWN_ADDRESS: &str = "own-address";

/// A proof together with the question it answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The program's file.
    pub file: String,
    /// Its language.
    pub language: String,
    /// The hash of its text.
    pub hash: String,
    /// How it was made from its text, if a compiler took part.
    pub build: Option<BuildRecord>,
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// How many instances of the templates there are.
    pub threads: Threads,
    /// The range of integers without a declared domain, if one was given.
    pub int_range: Option<(Value, Value)>,
    /// The constants that had other values than in the text.
    pub constants: BTreeMap<String, Value>,
    /// The engine that found the proof.
    pub engine: String,
    /// Whether freedom from deadlocks was asked for, whatever the program says.
    pub deadlocks: bool,
    /// The proof.
    pub proof: Proof,
    /// The proof of what must stay possible. Without it, the checker searches for itself.
    pub ranking: Option<Ranking>,
    /// The same for a program that was made from C: that it is free of deadlocks and can finish. It is about the
    /// translation for that question. Without it, nothing is claimed about that.
    pub finish: Option<Ranking>,
    /// Domains that were guessed. The proof is about the program with these domains, which proves them as well.
    pub domains: Vec<CellDomain>,
    /// The number that integers were taken modulo. The proof is about [that program](crate::wrapped).
    pub modulus: Option<u32>,
}

/// Why a file is not a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Not JSON, or not in this format.
    #[error("this is not a certificate: {0}")]
    Malformed(#[from] serde_json::Error),
    /// An earlier version, which did not seal the question.
    #[error(
        "this certificate has version {0}, which does not seal what it proves; this Palisade reads versions {OLDEST_VERSION} to {SCHEMA_VERSION}. Create a new one with `palisade check --certificate`"
    )]
    Old(u32),
    /// A later version.
    #[error(
        "this certificate has version {0}; this Palisade reads versions {OLDEST_VERSION} to {SCHEMA_VERSION}"
    )]
    Version(u32),
    /// The digest does not match.
    #[error("the certificate was changed since it was written")]
    Changed,
    /// The proof is not of the kind that the file states.
    #[error("the certificate claims a proof of kind `{claimed}`, but contains one of kind `{found}`")]
    WrongKind {
        /// The kind that the file claims.
        claimed: String,
        /// The kind of the proof.
        found: &'static str,
    },
    /// A field has a meaningless value.
    #[error("the certificate contains `{0}`, which is not a valid value")]
    Unknown(String),
    /// It names an unknown memory model.
    #[error("unknown memory model `{0}`")]
    Model(String),
}

#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema_version: u32,
    kind: String,
    program: Program,
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interlocked: Option<String>,
    threads: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    int_range: Option<[Value; 2]>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    constants: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deadlock_free: bool,
    engine: String,
    digest: String,
    proof: AnyBody,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ranking: Option<RankingBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish: Option<RankingBody>,
    /// Variable, least and greatest value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    domains: Vec<(String, Value, Value)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modulus: Option<u32>,
}

/// Ranks as `[rank, how many states in a row]`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RankingBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadlock: Option<Vec<(u32, u32)>>,
    goals: Vec<Vec<(u32, u32)>>,
}

impl RankingBody {
    fn of(ranking: &Ranking) -> RankingBody {
        let runs = |ranks: &Vec<u32>| -> Vec<(u32, u32)> {
            ranks.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
        };
        RankingBody {
            deadlock: ranking.deadlock.as_ref().map(runs),
            goals: ranking.goals.iter().map(runs).collect(),
        }
    }

    fn ranking(self) -> Result<Ranking, CertificateError> {
        let mut room = MAX_RANKS;
        let mut ranks = |runs: Vec<(u32, u32)>| -> Result<Vec<u32>, CertificateError> {
            let count: u64 = runs.iter().map(|(_, count)| u64::from(*count)).sum();
            if count > room || runs.iter().any(|(_, count)| *count == 0) {
                return Err(CertificateError::Unknown(format!("ranks of {count} states")));
            }
            room -= count;
            Ok(runs.into_iter().flat_map(|(rank, count)| std::iter::repeat_n(rank, count as usize)).collect())
        };
        let deadlock = self.deadlock.map(&mut ranks).transpose()?;
        let goals = self.goals.into_iter().map(ranks).collect::<Result<_, _>>()?;
        Ok(Ranking { deadlock, goals })
    }
}

/// The proof, by its kind.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AnyBody {
    Crowds(CrowdsBody),
    Stacks(StacksBody),
    Load(Body),
    Single(SingleBody),
    Identities(IdentitiesBody),
    All(AllStates),
}

/// A proof without content.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AllStates {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    file: String,
    language: String,
    hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    build: Option<BuildRecord>,
}

/// Numbers in the order of the fields of [`palisade_engine::proof`]; letters are `[own, cell, set]`. Without
/// sets, as in version 2, the set with each number is that of the value with this number.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rewritten: bool,
    classes: Vec<Vec<u32>>,
    pending: Vec<(u32, u32, u32, u32)>,
    held: Vec<(u32, u32, Vec<Vec<u32>>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sets: Option<Vec<Vec<u32>>>,
    parts: Vec<Section>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracked: Option<Vec<u32>>,
    elements: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    memory: Vec<(u32, u32)>,
    processes: Vec<Actor>,
}

/// Automaton, class, and letters, newest first.
type Actor = (u32, u32, Vec<(Flag, u32, u32)>);

impl Certificate {
    /// How many instances of the templates there are, in the form used in certificates: `declared`, `any`,
    /// `any-of-several` or a number.
    pub fn threads_word(&self) -> String {
        match self.threads {
            Threads::Declared => "declared".to_owned(),
            Threads::Any => "any".to_owned(),
            Threads::Several => "any-of-several".to_owned(),
            Threads::Each(count) => count.to_string(),
        }
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let body = match &self.proof {
            Proof::LoadBuffers(proof) => AnyBody::Load(Body::of(proof)),
            Proof::SingleBuffer(proof) => AnyBody::Single(SingleBody::of(proof)),
            Proof::AllStates => AnyBody::All(AllStates {}),
            Proof::Crowds(proof) => AnyBody::Crowds(CrowdsBody::of(proof)),
            Proof::Stacks(proof) => AnyBody::Stacks(StacksBody::of(proof)),
            Proof::Identities(proof) => AnyBody::Identities(IdentitiesBody::of(proof)),
        };
        let mut file = File {
            schema_version: SCHEMA_VERSION,
            kind: self.proof.kind().name().to_owned(),
            program: Program {
                file: self.file.clone(),
                language: self.language.clone(),
                hash: self.hash.clone(),
                build: self.build.clone(),
            },
            model: self.model.name().to_owned(),
            interlocked: (self.interlocked == Interlocked::OwnAddress).then(|| OWN_ADDRESS.to_owned()),
            threads: self.threads_word(),
            int_range: self.int_range.map(|(lo, hi)| [lo, hi]),
            constants: self.constants.clone(),
            deadlock_free: self.deadlocks,
            engine: self.engine.clone(),
            digest: String::new(),
            proof: body,
            ranking: self.ranking.as_ref().map(RankingBody::of),
            finish: self.finish.as_ref().map(RankingBody::of),
            domains: self.domains.iter().map(|d| (d.name.clone(), d.lo, d.hi)).collect(),
            modulus: self.modulus,
        };
        file.seal();
        serde_json::to_string(&file).expect("numbers and strings can be written") + "\n"
    }

    /// Reads a file's text.
    pub fn from_json(text: &str) -> Result<Certificate, CertificateError> {
        let version: Version = serde_json::from_str(text)?;
        match version.schema_version {
            OLDEST_VERSION..=SCHEMA_VERSION => {}
            old @ ..OLDEST_VERSION => return Err(CertificateError::Old(old)),
            other => return Err(CertificateError::Version(other)),
        }
        let mut file: File = serde_json::from_str(text)?;
        if ProofKind::ALL.iter().all(|kind| kind.name() != file.kind) {
            return Err(CertificateError::Unknown(file.kind));
        }
        let claimed = file.digest.clone();
        file.seal();
        if file.digest != claimed {
            return Err(CertificateError::Changed);
        }
        // Each version has one form.
        let with_sets = file.schema_version >= VERSION_WITH_SETS;
        let fits = match &file.proof {
            AnyBody::Load(body) => body.sets.is_some() == with_sets,
            AnyBody::Single(body) => {
                body.has_sets() == with_sets && (with_sets || !body.is_rewritten_or_merged())
            }
            _ => true,
        };
        if !fits {
            return Err(CertificateError::Unknown("sets".to_owned()));
        }
        let proof = match file.proof {
            AnyBody::Load(body) => Proof::LoadBuffers(body.proof()),
            AnyBody::Single(body) => Proof::SingleBuffer(body.proof()),
            AnyBody::All(AllStates {}) => Proof::AllStates,
            AnyBody::Crowds(body) => Proof::Crowds(body.proof()),
            AnyBody::Stacks(body) => Proof::Stacks(body.proof()),
            AnyBody::Identities(body) => Proof::Identities(body.proof()),
        };
        if proof.kind().name() != file.kind {
            return Err(CertificateError::WrongKind { claimed: file.kind, found: proof.kind().name() });
        }
        let interlocked = match file.interlocked.as_deref() {
            None => Interlocked::WholeBuffer,
            Some(OWN_ADDRESS) => Interlocked::OwnAddress,
            Some(other) => return Err(CertificateError::Unknown(other.to_owned())),
        };
        let threads = match &file.threads[..] {
            "declared" => Threads::Declared,
            "any" => Threads::Any,
            "any-of-several" => Threads::Several,
            count => match count.parse::<u32>() {
                Ok(number) if (1..=MAX_INSTANCES).contains(&number) && number.to_string() == count => {
                    Threads::Each(number)
                }
                _ => return Err(CertificateError::Unknown(file.threads)),
            },
        };
        let int_range = match file.int_range {
            Some([lo, hi]) if lo > hi => return Err(CertificateError::Unknown(format!("{lo}..{hi}"))),
            range => range.map(|[lo, hi]| (lo, hi)),
        };
        let Some(model) = Model::ALL.into_iter().find(|model| model.name() == file.model) else {
            return Err(CertificateError::Model(file.model));
        };
        Ok(Certificate {
            file: file.program.file,
            language: file.program.language,
            hash: file.program.hash,
            build: file.program.build,
            model,
            interlocked,
            threads,
            int_range,
            constants: file.constants,
            engine: file.engine,
            deadlocks: file.deadlock_free,
            proof,
            ranking: file.ranking.map(RankingBody::ranking).transpose()?,
            finish: file.finish.map(RankingBody::ranking).transpose()?,
            domains: file.domains.into_iter().map(|(name, lo, hi)| CellDomain { name, lo, hi }).collect(),
            modulus: file.modulus,
        })
    }
}

impl File {
    /// Sets the digest to that of everything else.
    fn seal(&mut self) {
        self.digest.clear();
        self.digest = text_hash(&serde_json::to_string(self).expect("numbers and strings can be written"));
    }
}

/// 0 or 1.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub(crate) struct Flag(pub bool);

impl From<Flag> for u8 {
    fn from(Flag(flag): Flag) -> u8 {
        flag.into()
    }
}

impl TryFrom<u8> for Flag {
    type Error = String;

    fn try_from(number: u8) -> Result<Flag, String> {
        match number {
            0 | 1 => Ok(Flag(number == 1)),
            other => Err(format!("{other} is neither 0 nor 1")),
        }
    }
}

impl Body {
    fn of(proof: &LoadBuffers) -> Body {
        let actor = |process: &Process| {
            let message = |letter: &SetLetter| (Flag(letter.own), letter.cell, letter.values);
            (process.kind, process.state, process.word.iter().map(message).collect())
        };
        let entry = |element: &Element| Entry {
            memory: element.memory.clone(),
            processes: element.processes.iter().map(actor).collect(),
        };
        let section = |part: &Part| Section {
            tracked: part.tracked.clone(),
            elements: part.elements.iter().map(entry).collect(),
        };
        Body {
            rewritten: proof.rewritten,
            classes: proof.classes.clone(),
            pending: proof.pending.iter().map(|p| (p.kind, p.state, p.cell, p.value)).collect(),
            held: proof.held.iter().map(|held| (held.cell, held.kind, held.values.clone())).collect(),
            sets: Some(proof.sets.clone()),
            parts: proof.parts.iter().map(section).collect(),
        }
    }

    fn proof(self) -> LoadBuffers {
        let process = |(kind, state, word): Actor| {
            let message = |(Flag(own), cell, values)| SetLetter { own, cell, values };
            Process { kind, state, word: word.into_iter().map(message).collect() }
        };
        let element = |entry: Entry| Element {
            memory: entry.memory,
            processes: entry.processes.into_iter().map(process).collect(),
        };
        let part = |section: Section| Part {
            tracked: section.tracked,
            elements: section.elements.into_iter().map(element).collect(),
        };
        let parts: Vec<Part> = self.parts.into_iter().map(part).collect();
        LoadBuffers {
            rewritten: self.rewritten,
            sets: self.sets.unwrap_or_else(|| {
                let elements = || parts.iter().flat_map(|part| &part.elements);
                let processes = elements().flat_map(|element| &element.processes);
                let letters = processes.flat_map(|process| &process.word).map(|letter| letter.values);
                singles(
                    letters.chain(elements().flat_map(|element| &element.memory).map(|&(_, value)| value)),
                )
            }),
            classes: self.classes,
            pending: self
                .pending
                .into_iter()
                .map(|(kind, state, cell, value)| Pending { kind, state, cell, value })
                .collect(),
            held: self.held.into_iter().map(|(cell, kind, values)| Held { cell, kind, values }).collect(),
            parts,
        }
    }
}

/// The sets of one value each, for all values that are named and exist.
pub(crate) fn singles(named: impl Iterator<Item = u32>) -> Vec<Vec<u32>> {
    // A number beyond this is not a value, so the element that names it is refused.
    let most = named.max().map_or(0, |most| most.min(MAX_DECLARED as u32) + 1);
    (0..most).map(|value| vec![value]).collect()
}
