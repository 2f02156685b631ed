//! A process of a hosts file that fails before it joins the others: a wrong option, a missing file. The others would wait for it
//! until their time is up, so it says to them why it does not come, and they end with the same reason.
//!
//! This needs the hosts file and the index of the process. If the command line cannot be read, they are looked for in its words
//! ([`GroupArgs::recognise`]).

use super::hosts;
use crate::args::{Command, GroupArgs};
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process has begun to meet the others. After that, they notice by themselves how it ends.
static HAS_COME: AtomicBool = AtomicBool::new(false);

/// This process meets the others.
pub(super) fn does_not_apply() {
    HAS_COME.store(true, Ordering::Relaxed);
}

/// Says to the others why this command has failed, if they wait for it.
pub fn inform_others(command: &Command, problem: Option<&str>) {
    if let Some(args) = command.group() {
        inform(args, problem.unwrap_or("it ended with an error"));
    }
}

/// Says to the others what is wrong with this command line, if it can be seen that they wait for it.
pub fn inform_others_about(words: &[OsString], error: &clap::Error) {
    if let Some(args) = GroupArgs::recognise(words).filter(|_| error.use_stderr()) {
        let text = error.to_string();
        let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect::<Vec<_>>();
        inform(&args, lines.join(" ").trim_start_matches("error: "));
    }
}

fn inform(args: &GroupArgs, why: &str) {
    let (Some(file), Some(index)) = (&args.hosts, args.process) else { return };
    if HAS_COME.load(Ordering::Relaxed) {
        return;
    }
    // Without a list of the others, or a place in it, there is nobody to inform. That was reported before.
    let Ok(addresses) = hosts::read(file) else { return };
    if index < addresses.len() {
        super::hosts_meeting(addresses, index, None).call_off(why);
    }
}
