//! C programs from strangers: compiled such that nothing on this machine shows, and within limits.
//!
//! *Problem.* The playground may be used by others. A C program can name files: `#include "/etc/passwd"` would show the
//! file's words in error messages, and so would `#line 1 "/etc/passwd"`, because Palisade quotes the lines of a run.
//!
//! *How.*
//! - Clang sees a file system with the system's headers and nothing else: an overlay of its virtual file system that does
//!   not fall through. The program itself comes through a pipe.
//! - It has no environment, an empty folder, and limits on time and memory. It cannot write files.
//! - It only translates. Nothing that it makes is run.
//! - Palisade quotes the lines of the program itself. It opens no file that the program names.
//!
//! *Guarantee.* [`Sealed::tested`] tries the seal with a file of its own before C is offered.

use super::clang::{Clang, NotCompiled, Unit};
use super::user_files::OtherFiles;
use super::{complaints, options, user_files};
use crate::args::CArgs;
use palisade::c::{Compilation, read_c};
use palisade::{Diagnostic, Input, InputLanguage, Refused, Source};
use serde_json::json;
use std::path::Path;
use std::{fs, io};
use tempfile::TempDir;

/// Changes to the empty folder, sets limits (KiB of memory, seconds, blocks of files) and becomes the compiler.
const LIMITED: &str = "cd \"$1\" && shift && ulimit -v 4194304 && ulimit -t 20 && ulimit -f 0 && exec \"$@\"";

/// A compiler that sees only the headers of the system. Its files are removed when it is dropped.
pub struct Sealed {
    clang: Clang,
    options: Vec<String>,
    folder: TempDir,
}

impl Sealed {
    /// A sealed compiler, if clang is installed.
    pub fn new() -> Result<Sealed, Diagnostic> {
        let clang = Clang::find()?;
        Sealed::around(clang).map_err(|error| {
            Diagnostic::error("cannot-compile", format!("clang cannot be sealed: {error}"))
                .help("it needs the temporary folder (TMPDIR)")
        })
    }

    fn around(clang: Clang) -> io::Result<Sealed> {
        let folder = tempfile::tempdir()?;
        let headers = clang.system_headers()?;
        let roots: Vec<_> = headers
            .iter()
            .map(|path| json!({"type": "directory-remap", "name": path, "external-contents": path}))
            .collect();
        let overlay = json!({"version": 0, "case-sensitive": "true", "fallthrough": false, "roots": roots});
        let list = folder.path().join("overlay.json");
        fs::write(&list, overlay.to_string())?;
        let empty = folder.path().join("empty");
        fs::create_dir(&empty)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let (path, empty) = (format!("PATH={path}"), empty.display().to_string());
        let clang = clang.started_by(&["env", "-i", &path, "sh", "-c", LIMITED, "sh", &empty]);
        let options = ["-ivfsoverlay", &list.display().to_string(), "-fno-crash-diagnostics"];
        Ok(Sealed { clang, options: options.map(str::to_owned).to_vec(), folder })
    }

    /// A sealed compiler whose seal was tried: it compiles a program with threads, and does not see a file that is there.
    pub fn tested() -> Result<Sealed, Diagnostic> {
        let sealed = Sealed::new()?;
        let problem = |message: &str| Diagnostic::error("cannot-compile", message);
        let secret = sealed.folder.path().join("secret.h");
        fs::write(&secret, "int secret;\n").map_err(|error| problem(&error.to_string()))?;
        let compiles = |text: &str| sealed.compile(text).is_ok();
        let end = "\nint main(void) { return 0; }\n";
        if !compiles(&format!("#include <pthread.h>\n#include <stdatomic.h>{end}")) {
            return Err(problem("clang does not compile programs if it sees only the headers of the system"));
        }
        if compiles(&format!("#include \"{}\"{end}", secret.display())) {
            return Err(problem("this clang cannot be kept from reading files"));
        }
        Ok(sealed)
    }

    fn compile(&self, text: &str) -> Result<String, NotCompiled> {
        self.clang.compile(Unit { file: Path::new("-"), text: Some(text), options: &self.options })
    }

    /// Reads a C program. With `keep_globals`, variables that are only written are kept.
    pub fn read(&self, mut source: Source, keep_globals: bool) -> Result<Input, Refused> {
        let name = source.name().to_owned();
        let ir = match self.compile(source.text()) {
            Ok(ir) => Source::new(format!("{name} (as LLVM IR)"), ir),
            Err(NotCompiled::Problem(error)) => return Err(Refused { source, diagnostics: vec![error] }),
            Err(NotCompiled::Rejected(printed)) => {
                return Err(complaints::refused(&printed, &name, &source, OtherFiles::Closed));
            }
        };
        let module = palisade::llvm::read(&ir).map_err(|diagnostics| Refused { source: ir, diagnostics })?;
        let modules = vec![module];
        let files =
            user_files(&modules, &name, &["<stdin>", "-"], &mut source, &|_| None, OtherFiles::Closed);
        read_c(Compilation {
            source,
            files,
            language: InputLanguage::C,
            modules,
            compiler: self.clang.version.clone(),
            arguments: Vec::new(),
            options: options(&CArgs { keep_globals, ..CArgs::default() }),
        })
    }
}
