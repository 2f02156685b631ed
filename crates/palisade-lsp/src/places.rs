//! The files of a program: the open one, and those that it imports.

use crate::documents::{Document, path, uri};
use crate::position::Lines;
use crate::run::Other;
use lsp_types::{Location, Uri};
use palisade::syntax::names::declared_constants;
use palisade::syntax::{ImportedFile, find_imports};
use palisade::{Language, Source, Span};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Larger files are not imported.
const LARGEST_FILE: u64 = 64 << 20;

/// Where the files of a program are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// By the number of the file, the open one first. `None` if a path has no address.
    uris: Vec<Option<Uri>>,
    lines: Lines,
}

impl Places {
    /// A program of one file.
    pub(crate) fn one(uri: Uri, lines: Lines) -> Places {
        Places { uris: vec![Some(uri)], lines }
    }

    /// The place of a span. One without an address is shown at the start of the open file.
    pub(crate) fn location(&self, source: &Source, span: Span) -> Location {
        let file = source.file_number(span);
        let main = || self.uris[0].clone().expect("the open file has an address");
        if file == 0 {
            return Location::new(main(), self.lines.range(source.main_text(), span));
        }
        let Some(Some(uri)) = self.uris.get(file) else { return Location::new(main(), Default::default()) };
        let whole = source.file_span(file);
        let inner = Span { start: span.start - whole.start, end: span.end - whole.start };
        let text = source.slice(whole);
        Location::new(uri.clone(), Lines::new(text).range(text, inner))
    }

    /// A file by its name, with its text.
    pub(crate) fn file<'s>(&self, source: &'s Source, name: &str) -> Option<Other<'s>> {
        let file = source.files().position(|(known, _)| known == name)?;
        Some(Other { uri: self.uri(source, name)?, text: Some(source.slice(source.file_span(file))) })
    }

    /// The address of a file by its name.
    pub(crate) fn uri(&self, source: &Source, name: &str) -> Option<Uri> {
        let file = source.files().position(|(known, _)| known == name)?;
        self.uris.get(file).cloned().flatten()
    }
}

/// The texts of open files, by what identifies them.
pub(crate) type OpenTexts = BTreeMap<String, String>;

/// The texts of the open `.pal` files, as their editor has them.
pub(crate) fn open_texts<'d>(documents: impl Iterator<Item = &'d Document>) -> OpenTexts {
    let is_pal = |document: &&Document| document.language.is_some_and(|language| language == Language::Pal);
    let texts = documents.filter(is_pal).filter_map(|document| {
        Some((palisade_files::identity(&path(&document.uri)?), document.text.clone()))
    });
    texts.collect()
}

/// The program of an open file: with the files that it imports, and the constants that it has.
pub(crate) fn program(
    document: &Document,
    open: &OpenTexts,
    constants: &BTreeMap<String, i64>,
) -> (Source, Places) {
    let mut source = Source::new(document.name(), document.text.clone());
    let mut places = Places::one(document.uri.clone(), document.lines.clone());
    if document.language.is_none_or(|language| language != Language::Pal) {
        return (source, places);
    }
    if let Some(main) = path(&document.uri) {
        // The names are short; these are the paths of the files by name.
        let mut paths: BTreeMap<String, PathBuf> = BTreeMap::from([(document.name(), main.clone())]);
        find_imports(&mut source, &palisade_files::identity(&main), &mut |importer, imported| {
            let name = palisade_files::beside(importer.as_ref(), imported).display().to_string();
            let from = paths[importer].clone();
            let found = palisade_files::import(&from, imported, LARGEST_FILE)
                .map_err(|why| (why, "paths start at the folder of the file that imports them".to_owned()))?;
            paths.insert(name.clone(), found.path);
            let text = open.get(&found.identity).cloned().unwrap_or(found.text);
            Ok(ImportedFile { name, identity: found.identity, text })
        });
        let names = source.files().skip(1).map(|(name, _)| name);
        places.uris.extend(names.map(|name| uri(paths.get(name)?)));
    }
    let given: Vec<(String, i64)> = match constants.is_empty() {
        true => Vec::new(),
        false => {
            let declared = declared_constants(source.text());
            let known = constants.iter().filter(|(name, _)| declared.contains(name));
            known.map(|(name, value)| (name.clone(), *value)).collect()
        }
    };
    (source.with_constants(given), places)
}
