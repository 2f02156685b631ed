//! `palisade cluster`: the commands that start a group on several machines, printed or run.
//!
//! There is nothing here that one could not type: each process is `palisade COMMAND --hosts FILE --process I`. Those on
//! other machines end by themselves when one of the group ends, so nothing has to be cleaned up there.
//!
//! *No orphans.* With `--start`, everything that was started ends with this command, however it ends. Processes on this
//! machine know its process id, and look whether it is still their parent.

use crate::args::ClusterArgs;
use crate::exit::Exit;
use crate::group::{self, hosts};
use crate::interrupt;
use crate::output::Output;
use palisade::Diagnostic;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Options that this command adds itself.
const OWN: [&str; 3] = ["--processes", "--hosts", "--process"];
/// How long processes may take to end after one of them has, or after they were asked to.
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
    if let Some(option) = own_option(&args.command) {
        let message = format!("`palisade cluster` adds {option} to the command itself");
        let error = Diagnostic::error("unsuitable-options", message);
        return code(output.refuse_about("palisade cluster", error.help(format!("leave out {option}"))));
    }
    if args.start {
        return match start(args, &addresses, output) {
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

/// An option in the command that this one adds itself.
fn own_option(command: &[String]) -> Option<&'static str> {
    let words = command.iter().take(own_part(command));
    let mut names = words.map(|word| word.split('=').next().unwrap_or(word));
    names.find_map(|name| OWN.into_iter().find(|own| *own == name))
}

/// How many words of a command are Palisade's. The others belong to the program that `palisade run` runs.
fn own_part(command: &[String]) -> usize {
    command.iter().position(|word| word == "--").unwrap_or(command.len())
}

/// The arguments of one process.
fn words(args: &ClusterArgs, index: usize) -> Vec<String> {
    let hosts = args.hosts.display().to_string();
    let own = ["--hosts".to_owned(), hosts, "--process".to_owned(), index.to_string()];
    // After the program of `palisade run`, they would be its arguments.
    let is_run = args.command.first().is_some_and(|name| name == "run");
    let (before, after) = args.command.split_at(if is_run { 1 } else { own_part(&args.command) });
    [before, &own, after].concat()
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
    // An IPv6 address has brackets only next to a port.
    let host = host.trim_start_matches('[').trim_end_matches(']');
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
fn start(args: &ClusterArgs, addresses: &[String], output: &Output) -> io::Result<u8> {
    let stop = interrupt::stop_flag();
    let here = std::env::current_exe()?;
    let local = |index: usize| {
        let mut command = Command::new(&here);
        group::start_by_cluster(&mut command).args(words(args, index));
        command
    };
    let mut others = Others::default();
    for (index, address) in addresses.iter().enumerate().skip(1) {
        let mut command = match remote(args, address, index) {
            Some(words) => {
                let (program, rest) = words.split_first().expect("there is a command");
                let mut command = Command::new(program);
                command.args(rest);
                command
            }
            None => local(index),
        };
        others.0.push(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    }
    // Ctrl-C in a terminal reaches it through this command only: a second signal would end it without an answer.
    let first = local(0).stdin(Stdio::null()).process_group(0).spawn()?;
    let mut first = First { child: first, asked: None };
    let mut failed: Option<Instant> = None;
    let status = loop {
        if let Some(status) = first.child.try_wait()? {
            break status;
        }
        let is_stopped = stop.load(Ordering::Relaxed);
        // Those that end because this command was stopped have not failed.
        if failed.is_none()
            && !is_stopped
            && let Some((process, status)) = others.failed()
        {
            output.complain(&format!("process {process} {}\n", group::how_it_ended(status)));
            failed = Some(Instant::now());
        }
        // Process 0 notices, too, if it was connected.
        if is_stopped || failed.is_some_and(|since| since.elapsed() > FAREWELL) {
            first.ask_to_end();
        }
        std::thread::sleep(LOOK);
    };
    let deadline = Instant::now() + FAREWELL;
    while others.0.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    if stop.load(Ordering::Relaxed) && !status.success() {
        return Ok(Exit::Unknown.code());
    }
    if failed.is_some() && first.asked.is_some() {
        return Ok(Exit::Error.code());
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::Unknown.code()))
}

/// Process 0. It ends with this command.
struct First {
    child: Child,
    /// When it was asked to end.
    asked: Option<Instant>,
}

impl First {
    /// Asks it to end, and ends it if it takes too long.
    fn ask_to_end(&mut self) {
        match self.asked {
            None => {
                // One that has ended cannot be asked.
                let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
                self.asked = Some(Instant::now());
            }
            Some(asked) if asked.elapsed() > 2 * FAREWELL => _ = self.child.kill(),
            Some(_) => {}
        }
    }
}

impl Drop for First {
    fn drop(&mut self) {
        // One that has ended is not there to be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes other than the first. They end with this one.
#[derive(Default)]
struct Others(Vec<Child>);

impl Others {
    /// The first process that has ended with an error, if one has.
    fn failed(&mut self) -> Option<(usize, ExitStatus)> {
        let ended = |(index, child): (usize, &mut Child)| Some((index + 1, child.try_wait().ok()??));
        self.0.iter_mut().enumerate().filter_map(ended).find(|(_, status)| !status.success())
    }
}

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
