//! Texts that are part of a program, compressed: a build script packs them, and the program unpacks them when it needs
//! them. This makes the binary smaller.
//!
//! The archive is one stream of deflate. In it, each text follows its name and its length in bytes, which have a line each.

use std::path::Path;
use std::{fs, io};

/// The best compression. Build scripts have the time.
const LEVEL: u8 = 10;

/// Packs texts. Names have no line breaks.
///
/// # Panics
/// If a name has a line break.
pub fn pack<N: AsRef<str>, T: AsRef<str>>(texts: impl IntoIterator<Item = (N, T)>) -> Vec<u8> {
    let mut all = String::new();
    for (name, text) in texts {
        let (name, text) = (name.as_ref(), text.as_ref());
        assert!(!name.contains('\n'), "a name is one line: {name:?}");
        all.push_str(&format!("{name}\n{}\n{text}", text.len()));
    }
    miniz_oxide::deflate::compress_to_vec(all.as_bytes(), LEVEL)
}

/// What was packed: names and texts, in the same order.
///
/// # Panics
/// If [`pack`] did not make this archive.
pub fn unpack(packed: &[u8]) -> Vec<(String, String)> {
    let unpacked = miniz_oxide::inflate::decompress_to_vec(packed).expect("`pack` has made this");
    let mut rest = std::str::from_utf8(&unpacked).expect("texts and names are text");
    let mut found = Vec::new();
    while let Some((name, after)) = rest.split_once('\n') {
        let (length, after) = after.split_once('\n').expect("the length of the text follows its name");
        let (text, after) = after.split_at(length.parse().expect("the length is a number"));
        found.push((name.to_owned(), text.to_owned()));
        rest = after;
    }
    found
}

/// The same, kept for the rest of the program.
///
/// # Panics
/// If [`pack`] did not make this archive.
pub fn unpack_static(packed: &[u8]) -> &'static [(&'static str, &'static str)] {
    let texts = unpack(packed).into_iter().map(|(name, text)| (&*name.leak(), &*text.leak()));
    texts.collect::<Vec<_>>().leak()
}

/// The files below a folder with one of these extensions, sorted by their paths in it, which are written with `/`.
///
/// # Errors
/// If a file cannot be read, or is not text.
pub fn files_below(folder: &Path, extensions: &[&str]) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    collect(folder, "", extensions, &mut found)?;
    found.sort_unstable();
    Ok(found)
}

fn collect(
    folder: &Path,
    above: &str,
    extensions: &[&str],
    found: &mut Vec<(String, String)>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if path.is_dir() {
            collect(&path, &format!("{above}{name}/"), extensions, found)?;
        } else if path
            .extension()
            .is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
        {
            found.push((format!("{above}{name}"), fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_unpacked_as_they_were() {
        let texts = [("a/b.pal", "x = 1;\n\n3\nno newline at the end"), ("empty", ""), ("", "Müller\n")];
        let unpacked = unpack(&pack(texts));
        assert!(unpacked.iter().map(|(name, text)| (name.as_str(), text.as_str())).eq(texts));
        assert_eq!(unpack_static(&pack(texts)), texts);
        assert!(unpack(&pack::<&str, &str>([])).is_empty());
    }

    #[test]
    fn files_are_found_in_folders() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = files_below(sources, &["rs"]).expect("the folder can be read");
        assert!(found.iter().any(|(name, text)| name == "src/lib.rs" && text.contains("files_below")));
        assert!(found.is_sorted());
    }
}
