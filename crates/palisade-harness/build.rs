//! Packs the sources of the runtime, which the user's compiler compiles later (`src/runtime.rs`).

use std::path::Path;
use std::{env, fs};

/// The sources, in the order in which they are compiled.
const SOURCES: &[&str] = &[
    "log.h",
    "palisade.h",
    "access.c",
    "asm.c",
    "attack.c",
    "audit.c",
    "atomic.c",
    "buffer.c",
    "c11.c",
    "clock.c",
    "endless.c",
    "fresh.c",
    "heap.c",
    "hidden.c",
    "leave.c",
    "order.c",
    "library.c",
    "limits.c",
    "lock.c",
    "memory.c",
    "misuse.c",
    "random.c",
    "reap.c",
    "resident.c",
    "restore.c",
    "robust.c",
    "schedule.c",
    "server.c",
    "site.c",
    "spin.c",
    "stdio.c",
    "strings.c",
    "switch.c",
    "thread.c",
    "verifier.c",
    "wait.c",
    "watch.c",
];

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("runtime");
    println!("cargo::rerun-if-changed={}", folder.display());
    let text = |name: &&str| fs::read_to_string(folder.join(name)).expect("the source exists");
    let packed = palisade_packed::pack(SOURCES.iter().map(|name| (name, text(name))));
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("runtime.packed");
    fs::write(out, packed).expect("the output folder is writable");
}
