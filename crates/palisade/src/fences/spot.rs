//! Statements as users name them: `12`, `12-20`, `cs`, `P`, `P@12`, `P@cs`.

use palisade_base::Source;
use palisade_fences::FencePlace;
use std::fmt;
use std::str::FromStr;

/// Some statements of a program. A fence is at this spot if it is next to one of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Spot {
    process: Option<String>,
    what: What,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum What {
    /// The statements that begin in these lines.
    Lines(usize, usize),
    /// The statement with this label. Without a process in front of the name, also all statements of the
    /// process or procedure with this name.
    Name(String),
}

impl FromStr for Spot {
    type Err = String;

    fn from_str(text: &str) -> Result<Spot, String> {
        let (process, what) = match text.split_once('@') {
            Some((process, what)) => (Some(process.to_owned()), what),
            None => (None, text),
        };
        if what.is_empty() || process.as_ref().is_some_and(String::is_empty) {
            return Err("a place is a line, LINE-LINE, a label or a process; or PROCESS@LINE, PROCESS@LABEL"
                .to_owned());
        }
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (first, last) = what.split_once('-').unwrap_or((what, what));
        if !(is_number(first) && is_number(last)) {
            return Ok(Spot { process, what: What::Name(what.to_owned()) });
        }
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("`{text}` is not a line"));
        let (first, last) = (number(first)?, number(last)?);
        if first == 0 || first > last {
            return Err(format!("`{what}`: lines count from 1, and the first line of a range comes first"));
        }
        Ok(Spot { process, what: What::Lines(first, last) })
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(process) = &self.process {
            write!(f, "{process}@")?;
        }
        match &self.what {
            What::Lines(first, last) if first == last => write!(f, "{first}"),
            What::Lines(first, last) => write!(f, "{first}-{last}"),
            What::Name(name) => f.write_str(name),
        }
    }
}

impl Spot {
    /// Whether a fence at this place is at this spot.
    pub(super) fn contains(&self, place: &FencePlace, source: &Source) -> bool {
        let is_process = |name: &str| {
            let named = |process: &str| process == name || process.split('(').next() == Some(name);
            place.process.split(", ").any(named) || place.process == name
        };
        if self.process.as_ref().is_some_and(|process| !is_process(process)) {
            return false;
        }
        match &self.what {
            What::Lines(first, last) => source
                .position(place.span)
                .is_some_and(|position| (*first..=*last).contains(&(position.line as usize))),
            What::Name(name) => place.labels.contains(name) || (self.process.is_none() && is_process(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spots() {
        let check = |text: &str, expected: Result<&str, &str>| match (text.parse::<Spot>(), expected) {
            (Ok(spot), Ok(text)) => assert_eq!(spot.to_string(), text),
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        for text in ["12", "3-7", "cs", "P@cs", "P(0)@12", "Worker"] {
            check(text, Ok(text));
        }
        check("4-4", Ok("4"));
        check("", Err("a place is a line"));
        check("@cs", Err("a place is a line"));
        check("P@", Err("a place is a line"));
        check("0", Err("count from 1"));
        check("7-3", Err("first line of a range"));
        check("99999999999999999999999", Err("is not a line"));
    }
}
