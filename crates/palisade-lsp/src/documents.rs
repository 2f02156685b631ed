//! The files that are open in the editor, with their contents there.

use crate::edits::Fix;
use crate::places::Places;
use crate::position::Lines;
use crate::questions::Asked;
use lsp_types::{Diagnostic, Uri};
use palisade::{InputLanguage, Source};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An open file.
pub(crate) struct Document {
    pub(crate) uri: Uri,
    /// `None` if it is in no language of ours.
    pub(crate) language: Option<InputLanguage>,
    pub(crate) text: String,
    pub(crate) lines: Lines,
    /// The client's number of this text.
    pub(crate) version: i32,
    /// How often the program has changed, in this file or in one that it imports.
    pub(crate) revision: u64,
    /// Whether the text differs from what was last opened or saved.
    pub(crate) is_changed: bool,
    /// The program: this file as it was last looked at, and those that it imports.
    pub(crate) source: Source,
    /// Where the files of the program are.
    pub(crate) places: Places,
    /// What is wrong with the program, in any file.
    pub(crate) problems: Vec<(Uri, Diagnostic)>,
    /// What the last question of each kind found about this text, in any file.
    pub(crate) findings: BTreeMap<Asked, Vec<(Uri, Diagnostic)>>,
    /// The fences that were found for this text.
    pub(crate) fix: Option<Fix>,
    /// The last answer to each question about this text, in a few words, for the code lens.
    pub(crate) answers: BTreeMap<Asked, String>,
}

impl Document {
    /// A file that was opened. The name of its language matters if the file's name does not show it.
    pub(crate) fn new(uri: Uri, language_id: &str, text: String, version: i32) -> Document {
        let address = uri.as_str();
        let extension = address.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end);
        let by_name = InputLanguage::from_name(language_id);
        // Editors call many files plain text. Of the names of ours, these are not ambiguous.
        let by_extension =
            extension.filter(|extension| *extension != "txt").and_then(InputLanguage::from_extension);
        let language = by_name
            .or(by_extension)
            .filter(|language| matches!(language, InputLanguage::Text(_) | InputLanguage::C));
        let lines = Lines::new(&text);
        Document {
            source: Source::new("", ""),
            places: Places::one(uri.clone(), lines.clone()),
            uri,
            language,
            text,
            lines,
            version,
            revision: 0,
            is_changed: false,
            problems: Vec::new(),
            findings: BTreeMap::new(),
            fix: None,
            answers: BTreeMap::new(),
        }
    }

    /// Takes a new text. What was found out about the old one no longer counts.
    pub(crate) fn set_text(&mut self, text: String, version: i32) {
        self.lines = Lines::new(&text);
        self.text = text;
        self.version = version;
        self.is_changed = true;
        self.forget();
    }

    /// What was found out no longer counts.
    fn forget(&mut self) {
        self.revision += 1;
        self.findings.clear();
        self.fix = None;
        self.answers.clear();
    }

    /// Takes the program that the file is part of. Returns whether another file of it has changed.
    pub(crate) fn set_program(&mut self, source: Source, places: Places) -> bool {
        let others = |source: &Source| source.text()[source.main_text().len()..].to_owned();
        let changed = others(&source) != others(&self.source);
        if changed {
            self.forget();
        }
        (self.source, self.places) = (source, places);
        changed
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match path(&self.uri) {
            Some(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            None => self.uri.as_str().to_owned(),
        }
    }
}

/// The path of a file on this machine.
pub(crate) fn path(uri: &Uri) -> Option<PathBuf> {
    let decoded = decoded(uri.as_str().strip_prefix("file://")?)?;
    // On Windows a path begins with a drive: `/c:/lock.c`.
    let is_drive = cfg!(windows) && decoded.as_bytes().get(2) == Some(&b':');
    decoded.starts_with('/').then(|| PathBuf::from(if is_drive { &decoded[1..] } else { &decoded }))
}

/// A text in which `%20` stands for a blank.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part[2..].bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The address of a file on this machine.
pub(crate) fn uri(path: &std::path::Path) -> Option<Uri> {
    let mut text = String::from("file://");
    for byte in path.to_str()?.replace('\\', "/").bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::Language;
    use std::path::Path;

    #[test]
    fn addresses_are_paths() {
        let check = |address: &str, expected: Option<&str>| {
            assert_eq!(path(&address.parse().expect("an address")), expected.map(PathBuf::from), "{address}");
        };
        check("file:///a/b%20c.pal", Some("/a/b c.pal"));
        check("file:///a/%C3%BC.c", Some("/a/ü.c"));
        check("untitled:Untitled-1", None);
        for name in ["/a/b c.pal", "/ü/#%.c"] {
            assert_eq!(path(&uri(Path::new(name)).expect("it has one")), Some(PathBuf::from(name)));
        }
    }

    #[test]
    fn languages() {
        let language = |address: &str, id: &str| {
            Document::new(address.parse().expect("an address"), id, String::new(), 0).language
        };
        assert_eq!(language("file:///a.pal", "plaintext"), Some(Language::Pal.into()));
        assert_eq!(language("file:///a.rmm", ""), Some(Language::Rmm.into()));
        assert_eq!(language("file:///a.litmus", ""), Some(Language::Litmus.into()));
        assert_eq!(language("file:///a.txt", "plaintext"), None);
        assert_eq!(language("file:///a.txt", "trencher"), Some(Language::Trencher.into()));
        assert_eq!(language("untitled:x", "pal"), Some(Language::Pal.into()));
        assert_eq!(language("file:///a.c", "c"), Some(InputLanguage::C));
        assert_eq!(language("file:///a.b/notes", ""), None);
    }
}
