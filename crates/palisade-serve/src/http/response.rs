//! Responses: whole ones, and streams of lines.

use super::Status;
use std::io::{self, Write};

/// What every response says: nothing may be loaded from elsewhere, nobody may put the page into a frame, nothing is kept.
const FIELDS: &str = "\
Connection: close\r\n\
Cache-Control: no-store\r\n\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Referrer-Policy: no-referrer\r\n\
X-Content-Type-Options: nosniff\r\n";

/// A whole response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// How it went.
    pub status: Status,
    /// What the body is.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// A response with a body.
    pub fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status: Status::Ok, content_type, body: body.into() }
    }

    /// A refusal, with a sentence for people.
    pub fn refusal(status: Status, why: &str) -> Response {
        let body = format!("{}: {why}\n", status.line());
        Response { status, content_type: "text/plain; charset=utf-8", body: body.into() }
    }

    /// Writes it; for `HEAD` without the body.
    pub fn write(&self, out: &mut dyn Write, head_only: bool) -> io::Result<()> {
        let Response { status, content_type, body } = self;
        let more = match status {
            Status::MethodNotAllowed => "Allow: GET, HEAD, POST\r\n",
            Status::TooManyRequests | Status::ServiceUnavailable => "Retry-After: 2\r\n",
            _ => "",
        };
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{more}{FIELDS}\r\n",
            status.line(),
            body.len()
        );
        let mut bytes = head.into_bytes();
        if !head_only {
            bytes.extend_from_slice(body);
        }
        out.write_all(&bytes)?;
        out.flush()
    }
}

/// A response that is told line by line, each a JSON value, while it comes into being.
pub struct Stream<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Stream<'a> {
    /// Begins it.
    pub fn begin(out: &'a mut dyn Write) -> io::Result<Stream<'a>> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n{FIELDS}\r\n"
        );
        out.write_all(head.as_bytes())?;
        Ok(Stream { out })
    }

    /// Tells one line.
    pub fn line(&mut self, value: &serde_json::Value) -> io::Result<()> {
        let line = value.to_string() + "\n";
        write!(self.out, "{:x}\r\n{line}\r\n", line.len())?;
        self.out.flush()
    }

    /// Ends it.
    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b"0\r\n\r\n")?;
        self.out.flush()
    }
}
