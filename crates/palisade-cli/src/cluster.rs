//! `palisade cluster`: the commands that start a group on several machines, printed or run.
//!
//! There is nothing here that one could not type: each process is `palisade COMMAND --hosts FILE --process I`. Those on
//! other machines end by themselves when one of the group ends, so nothing has to be cleaned up there.

use crate::args::ClusterArgs;
use crate::exit::Exit;
use crate::group::hosts;
use crate::output::Output;
use palisade::Diagnostic;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long the others may take to end after process 0 has.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often to look whether they have.
const LOOK: Duration = Duration::from_millis(20);

/// Prints the commands, or runs them.
pub fn run(args: &ClusterArgs, output: &Output) -> ExitCode {
    let code = |exit: Exit| ExitCode::from(output.ended(exit).code());
    let addresses = match hosts::read(&args.hosts) {
        Ok(addresses) => addresses,
        Err(error) => return code(output.refuse_about(&args.hosts.display().to_string(), error)),
    };
    if args.start {
        return match start(args, &addresses) {
            Ok(exit) => ExitCode::from(exit),
            Err(error) => {
                let error = Diagnostic::error("not-started", format!("a process was not started: {error}"))
                    .help("run `palisade cluster` without --start, and try the commands by hand");
                code(output.refuse_about("palisade cluster", error))
            }
        };
    }
    for (index, address) in addresses.iter().enumerate() {
        let line = match remote(args, address, index) {
            Some(words) => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            None => format!("{} {}", quoted(&args.program), shared(args, index)),
        };
        output.print(&format!("{line}\n"));
    }
    code(Exit::Fine)
}

/// The arguments of one process, for a shell.
fn shared(args: &ClusterArgs, index: usize) -> String {
    let words = words(args, index);
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The arguments of one process.
fn words(args: &ClusterArgs, index: usize) -> Vec<String> {
    let hosts = args.hosts.display().to_string();
    let own = ["--hosts".to_owned(), hosts, "--process".to_owned(), index.to_string()];
    args.command.iter().cloned().chain(own).collect()
}

/// The command that starts a process on another machine, or `None` if its address is one of this machine.
fn remote(args: &ClusterArgs, address: &str, index: usize) -> Option<Vec<String>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    if matches!(host, "localhost" | "[::1]") || host.starts_with("127.") {
        return None;
    }
    let folder = std::env::current_dir().map_or_else(|_| ".".to_owned(), |path| path.display().to_string());
    let there = format!("cd {} && {} {}", quoted(&folder), quoted(&args.program), shared(args, index));
    let ssh = args.ssh.split_whitespace().map(str::to_owned);
    Some(ssh.chain([host.to_owned(), there]).collect())
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@,+%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Starts all processes, and waits for process 0. Returns its exit code.
fn start(args: &ClusterArgs, addresses: &[String]) -> std::io::Result<u8> {
    let here = std::env::current_exe()?;
    let mut others = Others::default();
    for (index, address) in addresses.iter().enumerate().skip(1) {
        let mut command = match remote(args, address, index) {
            Some(words) => {
                let (program, rest) = words.split_first().expect("there is a command");
                let mut command = Command::new(program);
                command.args(rest);
                command
            }
            None => {
                let mut command = Command::new(&here);
                command.args(words(args, index));
                command
            }
        };
        others.0.push(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    }
    let status = Command::new(&here).args(words(args, 0)).status()?;
    let deadline = Instant::now() + FAREWELL;
    while others.0.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::Unknown.code()))
}

/// The processes other than the first. They end with this one.
#[derive(Default)]
struct Others(Vec<Child>);

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended is not there to be ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("a/b.pal"), "a/b.pal");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$HOME x"), "'$HOME x'");
    }
}
