//! Certificates as files: a versioned JSON form with everything needed to check the proof again.
//!
//! *Invariant*: the proof alone convinces; the rest says of which program and which question it is the proof. The digest tells whether the file was damaged or edited, not whether
//! somebody cheats: that is what [`verify`](crate::verify) is for.

use crate::sc_file::{CrowdsBody, StacksBody};
use crate::single_file::SingleBody;
use palisade_engine::Threads;
use palisade_engine::proof::{Element, Held, LoadBuffers, Message, Part, Pending, Process, Proof};
use palisade_memory::Interlocked;
use palisade_program::Value;
use palisade_trace::text_hash;
use serde::{Deserialize, Serialize};

/// The version of the form.
pub const SCHEMA_VERSION: u32 = 1;

/// What certificates call a kind of proof.
pub fn kind(proof: &Proof) -> &'static str {
    match proof {
        Proof::LoadBuffers(_) => LOAD_BUFFERS,
        Proof::SingleBuffer(_) => SINGLE_BUFFER,
        Proof::AllStates => ALL_STATES,
        Proof::Crowds(_) => CROWDS,
        Proof::Stacks(_) => STACKS,
    }
}

const LOAD_BUFFERS: &str = "load-buffers";
const SINGLE_BUFFER: &str = "single-buffer";
const ALL_STATES: &str = "all-states";
const CROWDS: &str = "numbers-of-threads";
const STACKS: &str = "sets-of-stacks";
const OWN_ADDRESS: &str = "own-address";

/// A proof with what it is a proof of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The program's file.
    pub file: String,
    /// Its language.
    pub language: String,
    /// The hash of its text.
    pub hash: String,
    /// The memory model.
    pub model: String,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// How often the templates are instantiated.
    pub threads: Threads,
    /// The range of integers without a declared domain, if one was given.
    pub int_range: Option<(Value, Value)>,
    /// The engine that found the proof.
    pub engine: String,
    /// The proof.
    pub proof: Proof,
}

/// Why a file is not a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Not JSON, or not of this form.
    #[error("this is not a certificate: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A later version.
    #[error("this certificate has version {0}; this Palisade reads version {SCHEMA_VERSION}")]
    Version(u32),
    /// The digest is another one.
    #[error("the certificate was changed since it was written")]
    Changed,
    /// The proof is not of the kind that the file says.
    #[error("the certificate says that its proof is of the kind `{said}`, but it is of the kind `{found}`")]
    Kind {
        /// The kind that the file says.
        said: String,
        /// The kind of the proof.
        found: &'static str,
    },
    /// Something in it makes no sense.
    #[error("the certificate says `{0}`, which nobody understands")]
    Unknown(String),
}

#[derive(Serialize, Deserialize)]
struct Version {
    schema_version: u32,
}

#[derive(Serialize, Deserialize)]
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
    engine: String,
    digest: String,
    proof: AnyBody,
}

/// The proof, by its kind.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AnyBody {
    Crowds(CrowdsBody),
    Stacks(StacksBody),
    Load(Body),
    Single(SingleBody),
    All(AllStates),
}

/// Nothing need be said.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AllStates {}

#[derive(Serialize, Deserialize)]
struct Program {
    file: String,
    language: String,
    hash: String,
}

/// Numbers in the order of the fields of [`palisade_engine::proof`]; messages are `[own, cell, value]`.
#[derive(Serialize, Deserialize)]
struct Body {
    classes: Vec<Vec<u32>>,
    pending: Vec<(u32, u32, u32, u32)>,
    held: Vec<(u32, u32, Vec<Vec<u32>>)>,
    parts: Vec<Section>,
}

#[derive(Serialize, Deserialize)]
struct Section {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracked: Option<Vec<u32>>,
    elements: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    memory: Vec<(u32, u32)>,
    processes: Vec<Actor>,
}

/// Automaton, class, and messages, newest first.
type Actor = (u32, u32, Vec<(u8, u32, u32)>);

impl Certificate {
    /// The file's text.
    pub fn to_json(&self) -> String {
        let body = match &self.proof {
            Proof::LoadBuffers(proof) => AnyBody::Load(Body::of(proof)),
            Proof::SingleBuffer(proof) => AnyBody::Single(SingleBody::of(proof)),
            Proof::AllStates => AnyBody::All(AllStates {}),
            Proof::Crowds(proof) => AnyBody::Crowds(CrowdsBody::of(proof)),
            Proof::Stacks(proof) => AnyBody::Stacks(StacksBody::of(proof)),
        };
        let digest = digest(&body);
        let file = File {
            schema_version: SCHEMA_VERSION,
            kind: kind(&self.proof).to_owned(),
            program: Program {
                file: self.file.clone(),
                language: self.language.clone(),
                hash: self.hash.clone(),
            },
            model: self.model.clone(),
            interlocked: (self.interlocked == Interlocked::OwnAddress).then(|| OWN_ADDRESS.to_owned()),
            threads: match self.threads {
                Threads::Declared => "declared".to_owned(),
                Threads::Any => "any".to_owned(),
                Threads::Each(count) => count.to_string(),
            },
            int_range: self.int_range.map(|(lo, hi)| [lo, hi]),
            engine: self.engine.clone(),
            digest,
            proof: body,
        };
        serde_json::to_string(&file).expect("numbers and strings can be written") + "\n"
    }

    /// Reads a file's text.
    pub fn from_json(text: &str) -> Result<Certificate, CertificateError> {
        let version: Version = serde_json::from_str(text)?;
        if version.schema_version != SCHEMA_VERSION {
            return Err(CertificateError::Version(version.schema_version));
        }
        let file: File = serde_json::from_str(text)?;
        if ![LOAD_BUFFERS, SINGLE_BUFFER, ALL_STATES, CROWDS, STACKS].contains(&&file.kind[..]) {
            return Err(CertificateError::Unknown(file.kind));
        }
        if digest(&file.proof) != file.digest {
            return Err(CertificateError::Changed);
        }
        let proof = match file.proof {
            AnyBody::Load(body) => Proof::LoadBuffers(body.proof()),
            AnyBody::Single(body) => Proof::SingleBuffer(body.proof()),
            AnyBody::All(AllStates {}) => Proof::AllStates,
            AnyBody::Crowds(body) => Proof::Crowds(body.proof()),
            AnyBody::Stacks(body) => Proof::Stacks(body.proof()),
        };
        if kind(&proof) != file.kind {
            return Err(CertificateError::Kind { said: file.kind, found: kind(&proof) });
        }
        let interlocked = match file.interlocked.as_deref() {
            None => Interlocked::WholeBuffer,
            Some(OWN_ADDRESS) => Interlocked::OwnAddress,
            Some(other) => return Err(CertificateError::Unknown(other.to_owned())),
        };
        let threads = match &file.threads[..] {
            "declared" => Threads::Declared,
            "any" => Threads::Any,
            count => match count.parse() {
                Ok(count) => Threads::Each(count),
                Err(_) => return Err(CertificateError::Unknown(file.threads)),
            },
        };
        Ok(Certificate {
            file: file.program.file,
            language: file.program.language,
            hash: file.program.hash,
            model: file.model,
            interlocked,
            threads,
            int_range: file.int_range.map(|[lo, hi]| (lo, hi)),
            engine: file.engine,
            proof,
        })
    }
}

fn digest(body: &AnyBody) -> String {
    text_hash(&serde_json::to_string(body).expect("numbers can be written"))
}

impl Body {
    fn of(proof: &LoadBuffers) -> Body {
        let actor = |process: &Process| {
            let message = |message: &Message| (u8::from(message.own), message.cell, message.value);
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
            classes: proof.classes.clone(),
            pending: proof.pending.iter().map(|p| (p.kind, p.state, p.cell, p.value)).collect(),
            held: proof.held.iter().map(|held| (held.cell, held.kind, held.values.clone())).collect(),
            parts: proof.parts.iter().map(section).collect(),
        }
    }

    fn proof(self) -> LoadBuffers {
        let process = |(kind, state, word): Actor| {
            let message = |(own, cell, value)| Message { own: own != 0, cell, value };
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
        LoadBuffers {
            classes: self.classes,
            pending: self
                .pending
                .into_iter()
                .map(|(kind, state, cell, value)| Pending { kind, state, cell, value })
                .collect(),
            held: self.held.into_iter().map(|(cell, kind, values)| Held { cell, kind, values }).collect(),
            parts: self.parts.into_iter().map(part).collect(),
        }
    }
}
