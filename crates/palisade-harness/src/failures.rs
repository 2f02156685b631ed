//! Failures in words: what went wrong, and where.

use crate::execution::{Execution, Failure, LeftState, LeftThread, Unfollowed};
use crate::findings::NamedFailure;
use crate::stream::Hello;
use crate::symbols::Symbols;

/// How the names of the runtime's own source files begin: see [`runtime`](crate::runtime).
const RUNTIME: &str = "palisade-runtime/";

/// The message about a deadlock names at most this many threads. The places list all of them.
const MAX_NAMED: usize = 8;

/// A failure in words.
pub(crate) fn name_failure(
    hello: &Hello,
    symbols: &mut Symbols,
    numbers: &[u16],
    failure: &Failure,
    execution: &Execution,
) -> NamedFailure {
    let number = |thread: u16| numbers.get(usize::from(thread)).copied().unwrap_or(thread);
    let mut places = Vec::new();
    let mut threads = |symbols: &mut Symbols, left: &[LeftThread], says: &str| {
        for left in left {
            places.push((symbols.name(left.place), format!("thread {} {says}", number(left.thread))));
        }
    };
    let message = match failure {
        Failure::Signal { signal, place, what } => {
            let at = crash_place(symbols, *place, execution);
            if at != 0 {
                places.push((symbols.name(at), "here".to_owned()));
            }
            match what {
                Some(what) => what.clone(),
                None => format!("the program was ended by {}", signal_name(*signal)),
            }
        }
        Failure::ExitCode { code } => format!("the program ended with exit code {code}"),
        Failure::Deadlock { threads: left } | Failure::Spins { threads: left } => {
            let (spinning, waiting): (Vec<LeftThread>, Vec<LeftThread>) =
                left.iter().partition(|left| left.how == LeftState::Spins);
            threads(symbols, &waiting, "waits here");
            threads(symbols, &spinning, "waits here, in a loop");
            let named = left.iter().take(MAX_NAMED).map(|left| {
                let how = if left.how == LeftState::Spins { "waits in a loop" } else { "waits" };
                format!("thread {} {how} at {}", number(left.thread), symbols.name(left.place))
            });
            let mut parts: Vec<String> = named.collect();
            if left.len() > MAX_NAMED {
                parts.push(format!("{} more wait", left.len() - MAX_NAMED));
            }
            format!("deadlock: {}", parts.join("; "))
        }
        Failure::Livelock { threads: left } => {
            let (running, waiting): (Vec<LeftThread>, Vec<LeftThread>) =
                left.iter().partition(|left| left.how == LeftState::Spins);
            threads(symbols, &waiting, "waits here");
            threads(symbols, &running, "repeats the same steps and keeps passing here");
            let named: Vec<String> = running.iter().map(|left| number(left.thread).to_string()).collect();
            match named.as_slice() {
                [one] => format!("livelock: thread {one} repeats the same steps forever"),
                several => format!("livelock: threads {} repeat the same steps forever", several.join(", ")),
            }
        }
        Failure::Misuse(misuse) => {
            places.extend(misuse.places(number, |place| symbols.name(place)));
            misuse.message(number)
        }
        Failure::Endless => "the execution was ended at its step limit".to_owned(),
        Failure::Stalled { call: Some(call), place } => {
            places.push((symbols.name(*place), "this was the last event before it".to_owned()));
            format!(
                "the program was blocked in system call {call} ({}), with all of its threads, for longer than --patience allows",
                call_name(*call)
            )
        }
        Failure::Stalled { call: None, place } => {
            places.push((symbols.name(*place), "this was the last event before it".to_owned()));
            "the program ran for longer than --patience allows without a visible memory access: a long computation, or a loop without accesses, perhaps over a plain variable that optimisation keeps in a register".to_owned()
        }
        Failure::Late => "the execution was ended at its time limit".to_owned(),
        Failure::Leaked { threads: left } => {
            let running: Vec<LeftThread> =
                left.iter().copied().filter(|left| left.how == LeftState::Running).collect();
            let ended: Vec<LeftThread> =
                left.iter().copied().filter(|left| left.how != LeftState::Running).collect();
            threads(symbols, &running, "was here");
            if running.is_empty() {
                format!("the program ended, but {} had never been joined", counted(ended.len()))
            } else {
                format!("the program ended while {} still running", counted_were(running.len()))
            }
        }
        Failure::EarlyExit { thread } => {
            let thread = number(*thread);
            format!("thread {thread} ended the program while the first thread was still running")
        }
        Failure::Unsupported { what } => what.clone(),
        Failure::Vanished => {
            "the program ended without `exit`, so it is not known what its threads were doing".to_owned()
        }
        Failure::Internal { what } => what.clone(),
    };
    // A value that was tried is a value that is possible.
    let is_followed = execution.unfollowed.iter().all(|(what, _)| *what == Unfollowed::Value)
        && hello.not_compiled.is_empty();
    NamedFailure {
        name: failure.name(),
        message,
        places,
        is_inconclusive: failure.is_inconclusive_with(is_followed),
        output: execution.output.text(),
        is_excluded_without_buffers: false,
    }
}

/// Where the program crashed. The runtime makes atomic accesses for the program; one that crashes is at the last place
/// of its thread.
fn crash_place(symbols: &mut Symbols, place: u64, execution: &Execution) -> u64 {
    let is_runtime = place != 0 && symbols.name(place).starts_with(RUNTIME);
    let thread = execution.end.crash.filter(|_| is_runtime).map(|(_, _, thread)| usize::from(thread));
    thread.and_then(|thread| execution.last.get(thread).copied()).unwrap_or(place)
}

fn counted(threads: usize) -> String {
    if threads == 1 { "a thread".to_owned() } else { format!("{threads} threads") }
}

fn counted_were(threads: usize) -> String {
    if threads == 1 { "a thread was".to_owned() } else { format!("{threads} threads were") }
}

fn signal_name(signal: u32) -> String {
    let name = match signal {
        4 => "SIGILL: an illegal instruction",
        5 => "SIGTRAP",
        6 => "SIGABRT: it aborted",
        7 => "SIGBUS: an access to memory that does not exist",
        8 => "SIGFPE: an arithmetic error",
        9 => "SIGKILL",
        11 => "SIGSEGV: an access to memory that is not allowed",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

fn call_name(call: u32) -> &'static str {
    match call {
        0 => "read",
        1 => "write",
        7 => "poll",
        23 => "select",
        34 => "pause",
        35 | 230 => "a sleep",
        43 => "accept",
        45 => "recvfrom",
        47 => "recvmsg",
        61 | 247 => "waiting for a process",
        202 => "futex",
        232 | 281 => "epoll",
        270 => "pselect",
        271 => "ppoll",
        _ => "unnamed",
    }
}
