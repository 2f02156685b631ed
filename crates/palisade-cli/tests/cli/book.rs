//! Runs every command in the book and compares its output.
//!
//! A block marked `console` holds commands after `$ `, each followed by its output (standard output, then
//! standard error). In the output, `[..]` matches any text within a line and `...` matches any lines. The
//! commands of a page run in order, in one folder that looks like the repository.

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of the book.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).expect("there is a book");
    let mut pages: Vec<PathBuf> = docs.map(|entry| entry.expect("the book can be read").path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// A command, and the output that the book shows.
struct Shown {
    command: String,
    output: String,
}

/// The commands of a page, in order.
fn commands(text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside && line.trim() == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            found.push(Shown { command: command.to_owned(), output: String::new() });
        } else if line.starts_with("$ ") {
            panic!("commands must be in blocks marked `console`: {line}");
        } else if inside {
            let last =
                found.last_mut().unwrap_or_else(|| panic!("a console block begins with a command: {line}"));
            last.output.push_str(line);
            last.output.push('\n');
        }
    }
    found
}

/// A folder that looks like the repository, in which commands may write freely.
struct Copy {
    folder: PathBuf,
    path: std::ffi::OsString,
}

impl Copy {
    fn new(name: &str, text: &str) -> Copy {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("an old copy can be removed");
        }
        // Sources are copied only for pages that need them.
        for part in ["corpus", "docs", "bench", "crates"]
            .iter()
            .filter(|part| **part != "crates" || text.contains("crates/"))
        {
            copy(&root().join(part), &folder.join(part));
        }
        for file in ["Cargo.toml", "README.md"] {
            fs::copy(root().join(file), folder.join(file)).expect("a file can be copied");
        }
        let binary = Path::new(env!("CARGO_BIN_EXE_palisade")).parent().expect("a file is in a folder");
        let mut path = binary.as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Copy { folder, path }
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&self.folder).env("PATH", &self.path);
        shell.env("PALISADE_CACHE", common::run_cache());
        shell.env_remove("NO_COLOR").env_remove("TERM").stdin(Stdio::null());
        shell
    }

    /// What a command prints.
    fn run(&self, command: &str) -> String {
        if command.starts_with("palisade serve") {
            return self.begin(command);
        }
        let output = self.shell(command).output().expect("a shell can be started");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("commands print UTF-8");
        // Progress lines, which appear on slow machines, are not part of the output.
        let is_progress = |line: &str| {
            line.split_once(" s").is_some_and(|(first, rest)| {
                first.parse::<u64>().is_ok() && (rest.starts_with(": ") || rest.starts_with(", "))
            })
        };
        let errors: String = text(output.stderr)
            .lines()
            .filter(|line| !is_progress(line))
            .map(|line| line.to_owned() + "\n")
            .collect();
        text(output.stdout) + &errors
    }

    /// The first line of a command that does not end by itself. It listens on a free port, whatever the book
    /// says.
    fn begin(&self, command: &str) -> String {
        let mut server = self
            .shell(&format!("exec {command} --listen 127.0.0.1:0"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell can be started");
        let mut line = String::new();
        BufReader::new(server.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it prints something");
        server.kill().expect("it runs until it is killed");
        server.wait().expect("it ends");
        let (start, port) = line.trim_end().rsplit_once(':').expect("an address has a port");
        assert!(port.trim_end_matches('/').parse::<u16>().is_ok(), "{line}");
        format!("{start}:7227/\n")
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be read") {
        let path = entry.expect("a folder can be read").path();
        let target = to.join(path.file_name().expect("entries have names"));
        if path.is_dir() {
            copy(&path, &target);
        } else if path.is_file() {
            fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}

/// Runs the commands of a page and returns the differences.
fn wrong_on(page: &Path) -> Vec<String> {
    let name = page.file_stem().and_then(|name| name.to_str()).expect("pages have plain names");
    let text = read(page);
    let shown = commands(&text);
    if shown.is_empty() {
        return Vec::new();
    }
    let copy = Copy::new(name, &text);
    let mut wrong = Vec::new();
    for Shown { command, output } in shown {
        let printed = copy.run(&command);
        let assert = snapbox::Assert::new().normalize_paths(false);
        if let Err(difference) = assert.try_eq(None, printed.as_str().into(), output.as_str().into()) {
            wrong.push(format!("{name}.md: $ {command}\n{difference}"));
        }
    }
    fs::remove_dir_all(&copy.folder).expect("the copy can be removed");
    wrong
}

/// The book has commands that start compilers, so `./test quick` skips them.
mod external {
    use super::*;

    #[test]
    fn commands_print_what_the_book_says() {
        let pages = pages();
        let count: usize = pages.iter().map(|page| commands(&read(page)).len()).sum();
        assert!(count > 40, "the book has commands, {count}");
        // Pages are independent of each other, so several run at a time.
        let next = AtomicUsize::new(0);
        let wrong = Mutex::new(Vec::new());
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let found = wrong_on(page);
                        wrong.lock().expect("no page panics").extend(found);
                    }
                });
            }
        });
        let wrong = wrong.into_inner().expect("no page panics");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn programs_in_the_tour_are_those_in_its_folder() {
    let tour = read(&root().join("docs/tour.md"));
    for file in ["spinlock.pal", "announce.pal"] {
        let program = read(&root().join("docs/tour").join(file));
        let code: Vec<&str> = program.lines().filter(|line| !line.starts_with("//")).collect();
        assert!(tour.contains(&code.join("\n")), "{file}");
    }
}

#[test]
fn every_page_is_in_the_contents_and_links_lead_somewhere() {
    let contents = ["README.md", "SUMMARY.md"].map(|name| (name, read(&root().join("docs").join(name))));
    let mut missing = BTreeSet::new();
    let others = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "bench/README.md",
        "corpus/README.md",
        "editors/vscode/README.md",
    ]
    .map(|file| root().join(file));
    for page in pages().iter().chain(&others) {
        let name = page.file_name().and_then(|name| name.to_str()).expect("pages have plain names");
        let is_in_book = page.parent().is_some_and(|folder| folder.ends_with("docs"));
        // The first page is a table of contents for readers, and the other one is that of mdBook.
        for (list, entries) in contents.iter().filter(|(list, _)| is_in_book && *list != name) {
            if name != "SUMMARY.md" && !entries.contains(&format!("({name})")) {
                missing.insert(format!("{name} is not in {list}"));
            }
        }
        let text = read(page);
        let folder = page.parent().expect("a file is in a folder");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            if !target.exists() {
                missing.insert(format!("{}: {link}", page.display()));
            } else if !anchor.is_empty() && !anchors(&read(&target)).contains(anchor) {
                missing.insert(format!("{}: {link} has no such heading", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The names by which headings can be linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            words.chars().filter(|&c| c.is_alphanumeric() || c == '-' || c == '_').collect()
        })
        .collect()
}

/// The pages that describe a command.
fn pages_of(command: &str) -> &str {
    match command {
        "cc" | "c++" | "doctor" => "run",
        "cargo" => "rust-tests",
        "completions" | "man" => "install",
        "lsp" => "editor",
        other => other,
    }
}

#[test]
fn every_command_has_a_page_and_every_option_is_documented() {
    let scratch = common::Scratch::new("book_options");
    let help = scratch.run(&["--help"]).exits(0).stdout;
    let (_, rest) = help.split_once("Commands:\n").expect("there is a list of commands");
    let (list, _) = rest.split_once("\n\n").expect("the list ends");
    let everywhere = read(&root().join("docs/command-line.md"));
    let mut missing = BTreeSet::new();
    // Continuation lines of a long description are indented further.
    let lines = list.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let commands = lines.filter_map(|line| line.split_whitespace().next());
    for command in commands.filter(|name| *name != "help") {
        let page = root().join("docs").join(pages_of(command)).with_extension("md");
        if !page.exists() {
            missing.insert(format!("`{command}` has no page: {}", page.display()));
            continue;
        }
        let text = read(&page) + &everywhere;
        let help = scratch.run(&[command, "--help"]).exits(0).stdout;
        let options = help.split_whitespace().filter(|word| word.starts_with("--")).map(|word| {
            word.trim_matches(|c: char| !c.is_ascii_lowercase() && c != '-').trim_end_matches('-')
        });
        for option in options.filter(|option| option.len() > 2) {
            let plain = ["--help", "--quiet", "--verbose"].contains(&option);
            if !plain && !text.contains(option) {
                missing.insert(format!("{option} of `{command}`"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
