//! Several processes that share the work of one command.

use super::{Ran, Scratch, catches, start};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The processes that another one has started.
#[cfg(target_os = "linux")]
pub fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("there are processes").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        after.split_whitespace().nth(1) == Some(parent.to_string().as_str())
    };
    ids.filter(is_child).collect()
}

/// Starts a command in several processes. Also returns those other than the first, once all of them take part.
#[cfg(target_os = "linux")]
pub fn start_group(scratch: &Scratch, args: &[&str], processes: usize, more: &[&str]) -> (Child, Vec<u32>) {
    let count = processes.to_string();
    let child = start(&mut scratch.command(&[args, &["--processes", &count], more].concat()));
    let others = loop {
        let others = children(child.id());
        let takes_part = |process: u32| is_connected(process) && catches(process);
        let is_complete = others.len() == processes - 1 && takes_part(child.id());
        if is_complete && others.iter().all(|&other| takes_part(other)) {
            break others;
        }
        std::thread::yield_now();
    };
    (child, others)
}

/// The directories of the threads of a process.
#[cfg(target_os = "linux")]
fn threads(process: u32) -> Vec<std::path::PathBuf> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    threads.map_or_else(|_| Vec::new(), |threads| threads.flatten().map(|thread| thread.path()).collect())
}

/// Whether a process is connected with the others of its group: timely has threads that receive from them.
#[cfg(target_os = "linux")]
pub fn is_connected(process: u32) -> bool {
    let name = |thread: &std::path::PathBuf| std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
    threads(process).iter().any(|thread| name(thread).starts_with("timely:recv"))
}

/// Whether a program with several threads runs below a process.
#[cfg(target_os = "linux")]
pub fn runs_threads(process: u32) -> bool {
    children(process).into_iter().any(|child| threads(child).len() > 1 || runs_threads(child))
}

/// Whether a process is there and has not ended.
#[cfg(target_os = "linux")]
pub fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, after)| after.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

/// Sends a signal to a process, given as the option of `kill`.
pub fn send(process: u32, signal: &str) {
    let killed = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(killed.expect("`kill` can be run").success());
}

/// A hosts file with addresses of this machine that are free now.
pub fn hosts(processes: usize) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Below the ports that hosts choose for outgoing connections, and others for each test program.
    let port = |_| loop {
        let number = std::process::id() % 1_500 * 8 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (number % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    };
    (0..processes).map(port).map(|port| format!("127.0.0.1:{port}\n")).collect()
}

/// Runs a command in two processes that are in the file `hosts`, with their own arguments. The first one comes first.
pub fn pair(scratch: &Scratch, first: &[&str], second: &[&str]) -> (Ran, Ran) {
    pair_of(scratch, first, scratch, second)
}

/// The same in two folders.
pub fn pair_of(here: &Scratch, first: &[&str], there: &Scratch, second: &[&str]) -> (Ran, Ran) {
    let start = |scratch: &Scratch, args: &[&str], index: &str| {
        let mut command = scratch.command(&[args, &["--hosts", "hosts", "--process", index]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command can be started")
    };
    let second = start(there, second, "1");
    let first = start(here, first, "0");
    let ended = |child: Child| Ran::new(child.wait_with_output().expect("the command ends"));
    (ended(first), ended(second))
}
