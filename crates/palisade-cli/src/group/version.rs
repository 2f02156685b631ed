//! The version that the processes of a group compare.

use palisade::cluster::fingerprint;
use std::fs::File;
use std::io::Read;

/// How much is read at once: a whole number of words.
const PIECE: usize = 1 << 20;

/// The version number, and a hash of the executable file: two builds of one version may number things differently.
pub fn version() -> String {
    let file = File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?));
    let Ok(mut file) = file else { return env!("PALISADE_VERSION").to_owned() };
    let mut pieces = std::iter::from_fn(|| {
        let mut piece = Vec::new();
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece);
        read.ok().filter(|&count| count > 0).map(|_| piece)
    });
    format!("{} ({:016x})", env!("PALISADE_VERSION"), fingerprint(&mut pieces))
}
