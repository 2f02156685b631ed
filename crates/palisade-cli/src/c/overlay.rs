//! Files whose text clang sees differently from what is on disk.
//!
//! Clang gets it through an overlay of its virtual file system: a list of paths, each with the file that has the text.
//! Names in messages and debug information stay those of the user's files.

use palisade::Diagnostic;
use palisade::c::FilePatch;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The overlay, and the texts in it. They are removed when it is dropped.
pub struct Overlay {
    folder: Option<TempDir>,
}

impl Overlay {
    /// An overlay for files that have changed; nothing if none have.
    pub fn new(patches: &[FilePatch]) -> Result<Overlay, Diagnostic> {
        Overlay::write(patches).map_err(|error| {
            let message = format!("the changed program cannot be passed to clang: {error}");
            Diagnostic::error("cannot-compile", message)
                .help("it is written to the temporary folder (TMPDIR)")
        })
    }

    fn write(patches: &[FilePatch]) -> io::Result<Overlay> {
        if patches.is_empty() {
            return Ok(Overlay { folder: None });
        }
        let folder = tempfile::tempdir()?;
        let mut roots = Vec::new();
        for (index, patch) in patches.iter().enumerate() {
            let text = folder.path().join(format!("{index}"));
            fs::write(&text, &patch.after)?;
            for name in names(Path::new(&patch.name))? {
                roots.push(json!({"type": "file", "name": name, "external-contents": text}));
            }
        }
        let overlay =
            json!({"version": 0, "case-sensitive": "true", "use-external-names": false, "roots": roots});
        fs::write(folder.path().join(LIST), overlay.to_string())?;
        Ok(Overlay { folder: Some(folder) })
    }

    /// The compiler's options for it.
    pub fn options(&self) -> Vec<String> {
        let list = self.folder.as_ref().map(|folder| folder.path().join(LIST).display().to_string());
        list.map_or_else(Vec::new, |list| vec!["-ivfsoverlay".to_owned(), list])
    }
}

const LIST: &str = "overlay.json";

/// The paths by which the compiler may know a file. It can know the current folder by another name.
fn names(file: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let here = std::env::current_dir()?;
    let also_here = std::env::var_os("PWD").map_or_else(|| here.clone(), PathBuf::from);
    let mut names = BTreeSet::from([here.join(file), also_here.join(file)]);
    names.extend(fs::canonicalize(file));
    Ok(names)
}
