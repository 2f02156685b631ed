//! Commands that start compilers and cargo: when they are asked to end, everything that they have started ends, and
//! nothing is left among the temporary files.
//!
//! Such a command does its work in a child process. The child leads a process group of its own, in which all its
//! compilers are, and has a private folder for temporary files. The first request to end is passed on to the group.
//! `palisade run` prints what it has then, and compilers remove their files. The second one kills the group. In both
//! cases we wait until all of the group have ended, and remove the folder. Processes whose parents have ended become
//! our children, so that we can wait for them.

use crate::interrupt;
use palisade::harness::cache::{TEMPORARY, given_folder, temporary_folder};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, kill_process_group,
    set_child_subreaper, waitid, waitpgid,
};
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};

/// What has happened to the child.
#[derive(Default)]
struct State {
    /// It has ended, and its number may be that of another process soon.
    is_over: bool,
    /// The first signal.
    stopped_by: Option<i32>,
}

/// Runs this command in a child process, and returns its exit code. Returns `None` if this is the child, or if it is
/// not possible.
pub fn run() -> Option<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    // In a group of its own, the compiler could not read a program from the terminal.
    let reads_terminal = arguments.iter().any(|word| word == "-") && std::io::stdin().is_terminal();
    if given_folder().is_some() || reads_terminal {
        return None;
    }
    let folder = temporary_folder("palisade-").ok()?;
    let mut signals = Signals::new(interrupt::requests()).ok()?;
    adopt();
    let mut child = Command::new(std::env::current_exe().ok()?)
        .args(arguments)
        .env(TEMPORARY, folder.path())
        .process_group(0)
        .spawn()
        .ok()?;
    let group = Pid::from_child(&child);
    let state = Arc::new(Mutex::new(State::default()));
    let shared = state.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return;
            }
            let ends = if state.stopped_by.is_none() { Signal::TERM } else { Signal::KILL };
            // If all of them have ended, there is nothing to end.
            let _ = kill_process_group(group, ends);
            state.stopped_by.get_or_insert(signal);
        }
    });
    // It keeps its number until it is waited for in the usual way.
    while waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .is_err_and(|error| error == rustix::io::Errno::INTR)
    {}
    let stopped_by = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = state.stopped_by.is_none();
        state.stopped_by
    };
    let status = child.wait().ok()?;
    if stopped_by.is_some() {
        wait_for_all(group);
    }
    drop(folder);
    let by_signal = stopped_by.or(status.signal()).map(|signal| interrupt::ENDED_BY_SIGNAL + signal);
    let code = status.code().or(by_signal).and_then(|code| u8::try_from(code).ok());
    Some(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// From now on, processes that our children leave behind are our children.
pub fn adopt() {
    // Without this, they are those of the system, and end a little later.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Waits until all other processes of our group have ended.
pub fn wait_for_group() {
    wait_for_all(getpgrp());
}

fn wait_for_all(group: Pid) {
    loop {
        match waitpgid(group, WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
