//! `import "lock.pal";`
//!
//! The items of the file are read as if they stood in place of the import, so that nothing else has to know it. A
//! file that is imported several times is read where it is imported first.
//!
//! All files of a program are in one [`Source`], one after the other. [`find_imports`] puts them there; which file
//! a path means is up to its caller. The parser follows what the source says, file by file, without recursion.

use super::lexer::Lexer;
use super::parser::{Parse, Parser};
use super::token::{Sign, Token, TokenKind};
use crate::limits::{MAX_IMPORT_DEPTH, MAX_IMPORTED_BYTES, MAX_IMPORTS};
use crate::report::Report;
use palisade_base::{Diagnostic, Imported, Source, Span, limits};

/// Which files have been read, and which are open.
pub(super) struct Imports<'s> {
    source: &'s Source,
    /// The file that is being read.
    current: usize,
    /// The files that were interrupted by an import, the main file first.
    interrupted: Vec<Interrupted>,
    /// Which files have been entered.
    seen: Vec<bool>,
    /// Whether a file could not be read, so that constants may be missing.
    pub failed: bool,
}

/// A file, and where to continue in it.
struct Interrupted {
    file: usize,
    /// The path in its import.
    import: Span,
    lexer: Span,
    current: Token,
    next: Token,
    previous: Span,
}

impl<'s> Imports<'s> {
    pub fn new(source: &'s Source) -> Imports<'s> {
        let mut seen = vec![false; source.files().len()];
        seen[0] = true;
        Imports { source, current: 0, interrupted: Vec::new(), seen, failed: false }
    }

    /// Leaves the rest of all files unread.
    pub fn give_up(&mut self) {
        self.interrupted.clear();
    }
}

impl Parser<'_> {
    /// Whether an import begins here. The word is not reserved.
    pub fn at_import(&self) -> bool {
        self.next.kind == TokenKind::Path && self.at_name("import")
    }

    /// Reads `import "lock.pal";`, and continues in that file.
    pub fn import_item(&mut self) -> Parse<()> {
        self.advance();
        let span = self.current.span;
        self.advance();
        self.grow(2)?;
        self.semicolon()?;
        let imports = &self.imports;
        let path = unquoted(imports.source.slice(span));
        let error = |id: &'static str, message: String| Diagnostic::error(id, message).at(span, "");
        let diagnostic = match imports.source.imported(imports.current, path) {
            Some(&Imported::File(file)) => {
                let open = imports.interrupted.iter().find(|open| open.file == file);
                if open.is_none() && file != imports.current {
                    if imports.seen[file] {
                        return Ok(());
                    }
                    if imports.interrupted.len() < MAX_IMPORT_DEPTH {
                        self.enter_file(file, span);
                        return Ok(());
                    }
                    error("too-deep", format!("more than {MAX_IMPORT_DEPTH} levels of imports"))
                } else {
                    let error = error("import-cycle", format!("`{path}` imports itself"));
                    let error = match open {
                        Some(open) => error.at(open.import, "on the way through this import"),
                        None => error,
                    };
                    error.help("move what both files need to a third one, and import that")
                }
            }
            Some(Imported::Missing(message, help)) => {
                error("bad-import", message.clone()).help(help.as_str())
            }
            None => {
                let help =
                    "put the declarations here instead, or save the program as a file next to that one";
                error("bad-import", "a program that is not in a folder cannot import files".to_owned())
                    .help(help)
            }
        };
        // The import itself was read, so the items after it are too.
        self.imports.failed = true;
        self.report.push(diagnostic);
        Ok(())
    }

    /// Skips an import inside a block, which was opened here.
    pub fn misplaced_import(&mut self, opened: Span) {
        let message = "`import` must be outside processes and procedures";
        let diagnostic = Diagnostic::error("misplaced-declaration", message)
            .at(self.current.span, "")
            .at(opened, "inside this block");
        self.report.push(diagnostic.help("write imports at the start of the file; if the block should have ended earlier, a `}` is missing"));
        self.advance();
        self.advance();
        self.eat(Sign::Semicolon);
    }

    fn enter_file(&mut self, file: usize, import: Span) {
        let imports = &mut self.imports;
        imports.seen[file] = true;
        let lexer = self.lexer.enter(file_text(imports.source, file));
        let (current, next, previous) = (self.current, self.next, self.previous);
        let from = std::mem::replace(&mut imports.current, file);
        imports.interrupted.push(Interrupted { file: from, import, lexer, current, next, previous });
        self.current = self.lexer.next(&mut self.report);
        self.next = self.lexer.next(&mut self.report);
    }

    /// Continues after the import of the file that ends here. Returns false at the end of the main file.
    pub fn leave_file(&mut self) -> bool {
        let Some(open) = self.imports.interrupted.pop() else { return false };
        self.imports.current = open.file;
        self.lexer.leave(open.lexer);
        (self.current, self.next, self.previous) = (open.current, open.next, open.previous);
        true
    }
}

/// The text of a file. The line end that separates it from the next file belongs to neither, so that its end is a
/// place in it.
pub(super) fn file_text(source: &Source, file: usize) -> Span {
    let span = source.file_span(file);
    let is_last = file + 1 == source.files().len();
    Span { end: if is_last { span.end } else { (span.end - 1).max(span.start) }, ..span }
}

fn unquoted(path: &str) -> &str {
    path.trim_matches('"')
}

/// A file that an import refers to.
#[derive(Clone, Debug)]
pub struct ImportedFile {
    /// Its name in messages.
    pub name: String,
    /// What identifies it: two paths to the same file have the same identity.
    pub identity: String,
    /// Its text.
    pub text: String,
}

/// Finds the file that an import means: gets the name of the importing file and the path that is written there. If it
/// fails, it says why, and what to do.
pub type Look<'a> = dyn FnMut(&str, &str) -> Result<ImportedFile, (String, String)> + 'a;

/// Adds the files that a `.pal` program imports, directly or through others. `main` is the identity of the main
/// file.
pub fn find_imports(source: &mut Source, main: &str, look: &mut Look<'_>) {
    let mut identities: Vec<String> = vec![main.to_owned()];
    let mut file = 0;
    while file < source.files().len() {
        limits::checkpoint();
        for path in paths(source, file) {
            if source.imported(file, &path).is_some() {
                continue;
            }
            let importer = source.file(source.file_span(file)).to_owned();
            let found = refuse_path(&path).and_then(|()| look(&importer, &path));
            let target = found.and_then(|found| {
                if let Some(known) = identities.iter().position(|known| *known == found.identity) {
                    return Ok(Imported::File(known));
                }
                if source.files().len() > MAX_IMPORTS {
                    let message = format!("the program imports more than {MAX_IMPORTS} files");
                    return Err((message, "join some of them".to_owned()));
                }
                if source.text().len() + found.text.len() > MAX_IMPORTED_BYTES {
                    let limit = MAX_IMPORTED_BYTES >> 20;
                    let message = format!("the program and the files it imports are larger than {limit} MiB");
                    return Err((message, "check a smaller program".to_owned()));
                }
                identities.push(found.identity);
                source.add(found.name, &found.text);
                Ok(Imported::File(source.files().len() - 1))
            });
            let target = target.unwrap_or_else(|(message, help)| Imported::Missing(message, help));
            source.import(file, &path, target);
        }
        file += 1;
    }
}

/// What no path may be, wherever it is looked for.
fn refuse_path(path: &str) -> Result<(), (String, String)> {
    let help =
        "write the path from the folder of this file, with `/`: `import \"locks/ticket.pal\";`".to_owned();
    let refuse = |message: String| Err((message, help.clone()));
    if path.starts_with('/') {
        return refuse("imports are relative to the folder of this file".to_owned());
    }
    if path.contains("//") || path.contains(['*', '\\', ':']) || path.contains(char::is_control) {
        return refuse(format!("`{}` is not a path to import", super::lexer::shorten(path)));
    }
    if !path.ends_with(".pal") || path.ends_with("/.pal") || path == ".pal" {
        return refuse("only `.pal` files can be imported".to_owned());
    }
    Ok(())
}

/// The paths of the imports in a file, in the order of its text.
fn paths(source: &Source, file: usize) -> Vec<String> {
    let mut lexer = Lexer::new(source.text());
    lexer.enter(file_text(source, file));
    // The parser reports what is wrong.
    let mut ignored = Report::default();
    let mut found = Vec::new();
    loop {
        let token = lexer.next(&mut ignored);
        match token.kind {
            TokenKind::End => return found,
            TokenKind::Path => found.push(unquoted(source.slice(token.span)).to_owned()),
            _ => {}
        }
    }
}
