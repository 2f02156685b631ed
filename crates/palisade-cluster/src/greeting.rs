//! What processes say to each other before they are connected: lines of text.
//!
//! | line | meaning |
//! |---|---|
//! | `palisade INDEX PROCESSES SECRET VERSION` | the greeting, from both sides |
//! | `ready` | this process has met all others |
//! | `refused INDEX WHY` | the group does not come together, because of this process |
//! | `stopped INDEX` | the same: the user asked this process to stop |
//!
//! Nothing here waits. Lines are read as far as they have arrived, so that one slow stranger keeps nobody waiting. They are
//! read byte by byte, because what follows the last line is not ours.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// The longest line.
const MAX_LINE: usize = 512;

/// What a process says first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Greeting {
    pub index: usize,
    pub processes: usize,
    pub secret: String,
    pub version: String,
}

impl Greeting {
    pub fn line(&self) -> String {
        let Greeting { index, processes, secret, version } = self;
        format!("palisade {index} {processes} {secret} {version}")
    }

    pub fn parse(line: &str) -> Option<Greeting> {
        let mut words = line.strip_prefix("palisade ")?.splitn(4, ' ');
        let index = words.next()?.parse().ok()?;
        let processes = words.next()?.parse().ok()?;
        let secret = words.next()?.to_owned();
        Some(Greeting { index, processes, secret, version: words.next()?.to_owned() })
    }
}

/// What a process says after the greeting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// It has met all others.
    Ready,
    /// The group does not come together, because of this process.
    Refused(usize, String),
    /// The user asked this process to stop.
    Stopped(usize),
}

impl Word {
    pub fn line(&self) -> String {
        let line = match self {
            Word::Ready => "ready".to_owned(),
            Word::Refused(process, why) => {
                format!("refused {process} {}", why.replace(char::is_control, " "))
            }
            Word::Stopped(process) => format!("stopped {process}"),
        };
        let end = (0..=line.len().min(MAX_LINE - 1)).rev().find(|&end| line.is_char_boundary(end));
        line[..end.unwrap_or(0)].to_owned()
    }

    pub fn parse(line: &str) -> Option<Word> {
        if line == "ready" {
            return Some(Word::Ready);
        }
        if let Some(process) = line.strip_prefix("stopped ") {
            return Some(Word::Stopped(process.parse().ok()?));
        }
        let (process, why) = line.strip_prefix("refused ")?.split_once(' ')?;
        let why = why.replace(char::is_control, " ");
        Some(Word::Refused(process.parse().ok()?, why))
    }
}

/// What has arrived from a process.
pub(crate) enum Heard {
    /// No whole line.
    Nothing,
    /// A line.
    Line(String),
    /// The connection has ended, or what came is not a line.
    Ended(io::Error),
}

/// A connection on which lines are exchanged.
pub(crate) struct Talk {
    stream: TcpStream,
    line: Vec<u8>,
    /// When the connection was made.
    pub since: Instant,
    /// The address of the other side, if there still is one.
    pub peer: Option<SocketAddr>,
}

impl Talk {
    pub fn new(stream: TcpStream) -> io::Result<Talk> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr().ok();
        Ok(Talk { stream, line: Vec::new(), since: Instant::now(), peer })
    }

    /// The other side, for messages.
    pub fn caller(&self) -> String {
        self.peer.map_or_else(|| "a caller".to_owned(), |peer| peer.to_string())
    }

    /// Sends a line. There is always room for it, because little has been sent before.
    pub fn say(&mut self, line: &str) -> io::Result<()> {
        self.stream.write_all(format!("{line}\n").as_bytes())
    }

    /// The next line, if all of it has arrived.
    pub fn listen(&mut self) -> Heard {
        let mut byte = [0];
        loop {
            match self.stream.read(&mut byte) {
                Ok(0) => return Heard::Ended(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended")),
                Ok(_) if byte[0] == b'\n' => {
                    let line = std::mem::take(&mut self.line);
                    return Heard::Line(String::from_utf8_lossy(&line).into_owned());
                }
                Ok(_) if self.line.len() == MAX_LINE => return Heard::Ended(not_palisade()),
                Ok(_) => self.line.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Heard::Ended(error),
            }
        }
    }

    /// The connection, for what follows the last line.
    pub fn into_stream(self) -> io::Result<TcpStream> {
        self.stream.set_nonblocking(false)?;
        Ok(self.stream)
    }
}

/// The other side says something that we do not understand.
pub(crate) fn not_palisade() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not Palisade")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let greeting =
            Greeting { index: 3, processes: 7, secret: "-".to_owned(), version: "1.0 (ab)".to_owned() };
        assert_eq!(Greeting::parse(&greeting.line()), Some(greeting));
        for word in [Word::Ready, Word::Refused(2, "it does not fit".to_owned()), Word::Stopped(11)] {
            assert_eq!(Word::parse(&word.line()), Some(word));
        }
        assert_eq!(Word::Refused(0, "two\nlines".to_owned()).line(), "refused 0 two lines");
        assert!(Word::Refused(0, "é".repeat(MAX_LINE)).line().len() < MAX_LINE);
        for line in ["", "palisade 1 2", "readily", "refused", "refused x y", "stopped"] {
            assert!(Greeting::parse(line).is_none() && Word::parse(line).is_none(), "{line}");
        }
    }
}
