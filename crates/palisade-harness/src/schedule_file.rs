//! The files in which schedules are kept.
//!
//! A schedule has the turns of an execution. The execution of a search also depends on what the search knew at that
//! point: the numbers of threads, by which their stacks and heaps have their addresses, and which words of stacks
//! threads share. With these lines, it can be repeated exactly.

use crate::schedule::{ACTOR_BITS, Actor, Known, Strategy, Turn, Turns};
use palisade_memory::Model;
use std::fmt::{self, Write};

/// A schedule as stored in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// What the execution showed.
    pub shows: String,
    /// How its threads were chosen.
    pub strategy: Strategy,
    /// The seed.
    pub seed: u64,
    /// The expected length of executions, for [`Strategy::Pct`].
    pub length: u64,
    /// The memory model whose store buffers threads had; `None` if they had none and the question was whether
    /// buffers can make a difference.
    pub model: Option<Model>,
    /// The turns. Threads are numbered as `search` says, and otherwise in the order in which they were started.
    pub turns: Turns,
    /// If it is an execution of a search: what the search knew.
    pub search: Option<Known>,
}

/// Why a file is not a schedule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ScheduleError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

/// Turns per line of a file.
const TURNS_PER_LINE: usize = 16;

fn words(f: &mut fmt::Formatter<'_>, key: &str, words: &[String]) -> fmt::Result {
    words.chunks(TURNS_PER_LINE).try_for_each(|line| writeln!(f, "{key} {}", line.join(" ")))
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "palisade schedule 1")?;
        for word in &self.program {
            writeln!(f, "program {}", escaped(word))?;
        }
        writeln!(f, "shows {}", escaped(&self.shows))?;
        writeln!(f, "strategy {}", self.strategy)?;
        writeln!(f, "seed {}", self.seed)?;
        if self.length > 0 {
            writeln!(f, "length {}", self.length)?;
        }
        if let Some(model) = self.model {
            writeln!(f, "model {}", model.name())?;
        }
        if let Some(Known { threads, shared, compared: _ }) = &self.search {
            writeln!(f, "search")?;
            let threads: Vec<String> =
                threads.iter().map(|(parent, index)| format!("{parent}.{index}")).collect();
            words(f, "threads", &threads)?;
            let shared: Vec<String> =
                shared.iter().map(|(address, bytes)| format!("{address:x}.{bytes:x}")).collect();
            words(f, "shared", &shared)?;
        }
        let turns: Vec<String> =
            self.turns.turns.iter().map(|turn| format!("{}*{}", turn.actor, turn.steps)).collect();
        words(f, "turns", &turns)?;
        writeln!(f, "end")
    }
}

impl Schedule {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Schedule, ScheduleError> {
        let mut schedule = Schedule {
            program: Vec::new(),
            shows: String::new(),
            strategy: Strategy::Random,
            seed: 0,
            length: 0,
            model: None,
            turns: Turns::default(),
            search: None,
        };
        let wrong = |line: usize, problem: &str| ScheduleError { line, problem: problem.to_owned() };
        let mut lines = text.lines().zip(1..);
        match lines.next() {
            Some(("palisade schedule 1", _)) => {}
            _ => return Err(wrong(1, "a schedule begins with `palisade schedule 1`")),
        }
        let mut last = 1;
        for (line, number) in lines {
            last = number;
            let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "program" => schedule.program.push(unescaped(rest)),
                "shows" => schedule.shows = unescaped(rest),
                "strategy" => {
                    schedule.strategy = strategy(rest).ok_or_else(|| wrong(number, "unknown strategy"))?;
                }
                "seed" => {
                    schedule.seed = rest.parse().map_err(|_| wrong(number, "a seed is a number"))?;
                }
                "length" => {
                    schedule.length = rest.parse().map_err(|_| wrong(number, "a length is a number"))?;
                }
                "search" => schedule.search = Some(Known::default()),
                "threads" | "shared" => {
                    let known = schedule.search.get_or_insert_with(Known::default);
                    let radix = if key == "threads" { 10 } else { 16 };
                    for word in rest.split_whitespace() {
                        let Some((first, second)) = pair(word, radix) else {
                            return Err(wrong(number, &format!("`{word}` is not a pair of numbers")));
                        };
                        match (key, u32::try_from(first), u8::try_from(second)) {
                            ("threads", Ok(parent), _) => known.threads.push((parent, second)),
                            ("shared", _, Ok(bytes)) => known.shared.push((first, bytes)),
                            _ => return Err(wrong(number, &format!("`{word}` is too large"))),
                        }
                    }
                }
                "model" => {
                    let known = Model::ALL.into_iter().find(|model| model.name() == rest);
                    schedule.model = Some(known.ok_or_else(|| wrong(number, "unknown memory model"))?);
                }
                "turns" => {
                    for word in rest.split_whitespace() {
                        let turn = turn(word).ok_or_else(|| {
                            wrong(number, &format!("`{word}` is not a turn, which is THREAD*STEPS, bTHREAD*STEPS for a store buffer, or THREAD=VALUE*1 for a value that the program asks for"))
                        })?;
                        schedule.turns.turns.push(turn);
                    }
                }
                "end" => return Ok(schedule),
                "" => {}
                _ => return Err(wrong(number, &format!("`{key}` is not part of a schedule"))),
            }
        }
        Err(wrong(last, "the file is cut off: it ends without `end`"))
    }
}

/// Two numbers with a dot between them.
fn pair(word: &str, radix: u32) -> Option<(u64, u32)> {
    let (first, second) = word.split_once('.')?;
    Some((u64::from_str_radix(first, radix).ok()?, u32::from_str_radix(second, radix).ok()?))
}

fn strategy(text: &str) -> Option<Strategy> {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("random", "") => Some(Strategy::Random),
        ("pct", depth) => depth.parse().ok().map(|depth| Strategy::Pct { depth }),
        ("stay", "") => Some(Strategy::Stay),
        ("round", "") => Some(Strategy::Round),
        _ => None,
    }
}

pub(crate) fn turn(word: &str) -> Option<Turn> {
    let (actor, steps) = word.split_once('*')?;
    let actor = match actor.strip_prefix('b') {
        None => match actor.split_once('=') {
            None => Actor::thread(actor.parse().ok()?),
            Some((thread, value)) => {
                Actor { value: Some(value.parse().ok()?), ..Actor::thread(thread.parse().ok()?) }
            }
        },
        Some(buffer) => {
            let (thread, position) = buffer.split_once('.').unwrap_or((buffer, "0"));
            Actor::buffer(thread.parse().ok()?, position.parse().ok()?)
        }
    };
    let turn = Turn { actor, steps: steps.parse().ok()? };
    (actor.thread < 1 << ACTOR_BITS && turn.steps > 0).then_some(turn)
}

/// Escapes a text so that it fits on one line.
fn escaped(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        match c {
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            c if c.is_control() => write!(line, "\\u{{{:x}}}", u32::from(c)).expect("writing to a string"),
            c => line.push(c),
        }
    }
    line
}

fn unescaped(line: &str) -> String {
    let mut text = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('u') => {
                    let digits: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                Some(c) => text.push(c),
                None => {}
            },
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(text: &str) -> Turns {
        Turns { turns: text.split_whitespace().map(|word| turn(word).expect("a turn")).collect() }
    }

    #[test]
    fn files_survive() {
        let schedule = Schedule {
            program: vec!["./a b".into(), "two\nlines \\ \u{1}".into()],
            shows: "a violation".into(),
            strategy: Strategy::Pct { depth: 3 },
            seed: 7,
            length: 100,
            model: Some(Model::Pso),
            turns: turns("0*12 1*1 b1*2 2*5 b2.7*1 1=3*1 1*100000"),
            search: Some(Known {
                threads: vec![(0, 0), (0, 0), (1, 0)],
                shared: vec![(0x7fff_1000, 0xff), (0x7fff_1008, 1)],
                compared: Vec::new(),
            }),
        };
        assert_eq!(Schedule::parse(&schedule.to_string()), Ok(schedule.clone()));
        for cut in 0..schedule.to_string().len() - 4 {
            assert!(Schedule::parse(&schedule.to_string()[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn wrong_files() {
        let check = |text: &str, line: usize| {
            assert_eq!(Schedule::parse(text).expect_err("a wrong file").line, line, "{text}");
        };
        check("", 1);
        check("palisade schedule 2\nend\n", 1);
        check("palisade schedule 1\nturns 1*0\nend\n", 2);
        check("palisade schedule 1\nturns 9999*1\nend\n", 2);
        check("palisade schedule 1\nturns b1.*1\nend\n", 2);
        check("palisade schedule 1\nmodel arm\nend\n", 2);
        check("palisade schedule 1\nseed x\nend\n", 2);
        check("palisade schedule 1\nlength x\nend\n", 2);
        check("palisade schedule 1\nsearch\nthreads 1\nend\n", 3);
        check("palisade schedule 1\nsearch\nshared 10.100\nend\n", 3);
        check("palisade schedule 1\nseed 1\nwhat\nend\n", 3);
        check("palisade schedule 1\nseed 1\n", 2);
    }
}
