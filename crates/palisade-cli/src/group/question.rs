//! What a process was asked, as fingerprints that the processes of a group compare.
//!
//! Files are compared by their names and contents, and `.pal` programs with all files that they import. Files that only a compiler
//! reads, such as the headers of a C program, are not compared here. A search compares the program that comes out.

use crate::args::Common;
use crate::{files, interrupt};
use palisade::cluster::{Asked, fingerprint};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much is read at once: a whole number of words.
const PIECE: usize = 1 << 20;

/// What the user asked this process, about these files.
pub fn asked(common: &Common, files: &[&Path]) -> Asked {
    let name = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    let mut pieces = files.iter().flat_map(|path| std::iter::once(name(path)).chain(contents(path)));
    Asked { command: of_text(&common.asked.command), files: fingerprint(&mut pieces) }
}

/// A fingerprint of a text.
pub fn of_text(text: &str) -> u64 {
    fingerprint(&mut std::iter::once(text.as_bytes().to_vec()))
}

/// A file in pieces. A file that cannot be read is different from all that can.
fn contents(path: &Path) -> Box<dyn Iterator<Item = Vec<u8>>> {
    // Opening a pipe would wait for its other end, and take away what is in it.
    let file = path.metadata().ok().filter(|kind| kind.is_file()).and_then(|_| File::open(path).ok());
    let Some(mut file) = file else { return Box::new(std::iter::once(b"not a file".to_vec())) };
    if path.extension().is_some_and(|extension| extension == "pal")
        && let Ok(text) = files::text(path)
    {
        let all = files::with_imports(path, text).text().as_bytes().to_vec();
        return Box::new([length(all.len() as u64), all].into_iter());
    }
    let size = file.metadata().map_or(0, |kind| kind.len());
    let pieces = std::iter::from_fn(move || {
        let mut piece = Vec::new();
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece);
        read.ok().filter(|&count| count > 0 && !interrupt::is_stopped()).map(|_| piece)
    });
    Box::new(std::iter::once(length(size)).chain(pieces))
}

fn length(length: u64) -> Vec<u8> {
    length.to_le_bytes().to_vec()
}
