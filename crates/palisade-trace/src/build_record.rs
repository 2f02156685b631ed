//! How a program was made from a text that a compiler has to translate first.

use serde::{Deserialize, Serialize};

/// How a program was made from a text that a compiler has to translate first. Witnesses and certificates
/// contain it, so that the program can be made again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildRecord {
    /// The version that the compiler printed.
    pub compiler: String,
    /// What it was given besides the file: options, and other files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The functions that run instead of `main`: before all threads, as threads, after all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<FunctionsRecord>,
    /// The test of a Rust program that runs instead of `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// How many threads there is room for where the number is not known from the text: started by `main`, and
    /// by every other thread.
    pub slots: [u32; 2],
    /// How many objects each thread can allocate at each place that allocates.
    pub heap: u32,
    /// Whether data races are errors.
    pub races: bool,
    /// Whether runs that exceed these numbers are left out. What such a run shows is real, and nothing follows
    /// if there is none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within_limits: bool,
    /// Whether it is the program for the question whether it can finish: waits for condition variables end by
    /// signals and timeouts only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finish: bool,
    /// Whether there is any number of the threads that run the same function.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_threads: bool,
    /// [`text_hash`](crate::text_hash) of the program that was made, as `.pal`.
    pub digest: String,
}

/// The functions that run instead of `main`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionsRecord {
    /// Runs before all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<String>,
    /// One thread each.
    pub threads: Vec<String>,
    /// Runs after all threads.
    #[serde(default, rename = "final", skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}
