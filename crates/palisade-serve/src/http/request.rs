//! Parsing requests: bytes in, a request out. This is a pure function, so it can be tested with any bytes.
//!
//! The parser is strict: lines end with CR LF, white space only where it belongs, one `Host`, one
//! `Content-Length`, no transfer encodings. A request that two programs could read in two ways is refused.

use super::Status;

/// The largest size of the request line and header fields, in bytes.
pub const LARGEST_HEAD: usize = 16 << 10;
/// The largest number of header fields.
const MAX_FIELDS: usize = 64;

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path as it was sent, without the query.
    pub path: String,
    /// Names in lower case, and values without white space around them.
    fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The method of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// Any other.
    Other,
}

/// The result of parsing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parsed {
    /// The beginning of a request; the rest has not arrived yet.
    Incomplete,
    /// A request.
    Complete(Box<Request>),
    /// Not an acceptable request.
    Refused(Status),
}

impl Request {
    /// The value of a header field, by its name in lower case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a request with a body of at most `largest_body` bytes. Bytes after it are ignored.
pub fn parse(bytes: &[u8], largest_body: usize) -> Parsed {
    match read(bytes, largest_body) {
        Ok(Some(request)) => Parsed::Complete(Box::new(request)),
        Ok(None) => Parsed::Incomplete,
        Err(status) => Parsed::Refused(status),
    }
}

fn read(bytes: &[u8], largest_body: usize) -> Result<Option<Request>, Status> {
    let head = &bytes[..bytes.len().min(LARGEST_HEAD)];
    let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") else {
        // Refuse at once what cannot become a request.
        if head.contains(&0) || head.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
            return Err(Status::BadRequest);
        }
        return if bytes.len() >= LARGEST_HEAD { Err(Status::HeaderFieldsTooLarge) } else { Ok(None) };
    };
    let head = str::from_utf8(&bytes[..end]).map_err(|_| Status::BadRequest)?;
    if !head.is_ascii() {
        return Err(Status::BadRequest);
    }
    let mut lines = head.split("\r\n");
    let (method, path) = request_line(lines.next().unwrap_or(""))?;
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        if fields.len() == MAX_FIELDS {
            return Err(Status::HeaderFieldsTooLarge);
        }
        fields.push(field(line)?);
    }
    let all = |name: &str| fields.iter().filter(|(field, _)| field == name).collect::<Vec<_>>();
    if all("host").len() != 1 {
        return Err(Status::BadRequest);
    }
    if !all("transfer-encoding").is_empty() {
        return Err(Status::NotImplemented);
    }
    if !all("expect").is_empty() {
        return Err(Status::ExpectationFailed);
    }
    let length = match all("content-length").as_slice() {
        [] if method == Method::Post => return Err(Status::LengthRequired),
        [] => 0,
        [(_, value)] => length(value)?,
        _ => return Err(Status::BadRequest),
    };
    if length > largest_body {
        return Err(Status::ContentTooLarge);
    }
    let Some(body) = bytes.get(end + 4..end + 4 + length) else { return Ok(None) };
    Ok(Some(Request { method, path, fields, body: body.to_vec() }))
}

/// `GET /path?query HTTP/1.1`
fn request_line(line: &str) -> Result<(Method, String), Status> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Status::BadRequest);
    };
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(Status::BadRequest);
    }
    match version {
        "HTTP/1.1" | "HTTP/1.0" => {}
        _ if version.starts_with("HTTP/") => return Err(Status::VersionNotSupported),
        _ => return Err(Status::BadRequest),
    }
    if !target.starts_with('/') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Status::BadRequest);
    }
    let path = target.split(['?', '#']).next().unwrap_or("").to_owned();
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        _ => Method::Other,
    };
    Ok((method, path))
}

/// `Name: value`
fn field(line: &str) -> Result<(String, String), Status> {
    let (name, value) = line.split_once(':').ok_or(Status::BadRequest)?;
    let is_text = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t';
    if name.is_empty() || !name.bytes().all(is_token) || !value.bytes().all(is_text) {
        return Err(Status::BadRequest);
    }
    Ok((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()))
}

/// Digits only: no sign, no list.
fn length(value: &str) -> Result<usize, Status> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Status::BadRequest);
    }
    // A number that does not fit is too large in any case.
    value.parse().map_err(|_| Status::ContentTooLarge)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_conformance::random::Random;

    fn check(bytes: &str, expected: Result<Option<(Method, &str, &str)>, Status>) {
        let found = parse(bytes.as_bytes(), 10);
        match (&found, expected) {
            (Parsed::Incomplete, Ok(None)) => {}
            (Parsed::Refused(status), Err(expected)) => assert_eq!(*status, expected, "{bytes:?}"),
            (Parsed::Complete(request), Ok(Some((method, path, body)))) => {
                assert_eq!((request.method, request.path.as_str()), (method, path), "{bytes:?}");
                assert_eq!(request.body, body.as_bytes(), "{bytes:?}");
            }
            (_, expected) => panic!("{bytes:?}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn requests() {
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Ok(Some((Method::Get, "/", ""))));
        check("GET /x/y?z#w HTTP/1.0\r\nhost:a\r\n\r\nmore", Ok(Some((Method::Get, "/x/y", ""))));
        check(
            "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi!",
            Ok(Some((Method::Post, "/x", "hi"))),
        );
        check("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", Ok(Some((Method::Other, "/", ""))));
    }

    #[test]
    fn beginnings() {
        let whole = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
        for end in 1..whole.len() {
            check(&whole[..end], Ok(None));
        }
        check("", Ok(None));
    }

    #[test]
    fn refusals() {
        use Status::*;
        let with = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(LARGEST_HEAD));
        let many = with(&"X: y\r\n".repeat(MAX_FIELDS + 1));
        for (bytes, status) in [
            ("\u{16}\u{3}", BadRequest),
            ("GET /\0", BadRequest),
            ("GET / HTTP/1.1\r\n\r\n", BadRequest),
            ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", BadRequest),
            ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", BadRequest),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", VersionNotSupported),
            ("GET / FTP\r\nHost: a\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost: \u{e9}\r\n\r\n", BadRequest),
            (&long, HeaderFieldsTooLarge),
            (&many, HeaderFieldsTooLarge),
            (&with(""), LengthRequired),
            (&with("Content-Length: 11\r\n"), ContentTooLarge),
            (&with("Content-Length: 99999999999999999999999\r\n"), ContentTooLarge),
            (&with("Content-Length: +1\r\n"), BadRequest),
            (&with("Content-Length: 1, 1\r\n"), BadRequest),
            (&with("Content-Length: 1\r\nContent-Length: 1\r\n"), BadRequest),
            (&with("Transfer-Encoding: chunked\r\n"), NotImplemented),
            (&with("Content-Length: 1\r\nExpect: 100-continue\r\n"), ExpectationFailed),
        ] {
            check(bytes, Err(status));
        }
    }

    /// No bytes make it panic, and a refusal stands when more bytes arrive.
    #[test]
    fn any_bytes() {
        let seeds: [&[u8]; 3] = [
            b"POST /api/run HTTP/1.1\r\nHost: localhost:1\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nnull",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"",
        ];
        for round in palisade_conformance::seeds(20_000) {
            let mut random = Random::new(round);
            let mut next = |below: usize| random.below(below);
            let mut bytes = seeds[next(seeds.len())].to_vec();
            for _ in 0..1 + next(6) {
                let at = next(bytes.len() + 1);
                let byte = [b'\r', b'\n', b' ', b':', 0, 0xff, b'0', b'A'][next(8)];
                match next(3) {
                    0 => bytes.insert(at, byte),
                    1 if at < bytes.len() => bytes[at] = byte,
                    _ if at < bytes.len() => _ = bytes.remove(at),
                    _ => {}
                }
            }
            let cut = next(bytes.len() + 1);
            if let Parsed::Refused(_) = parse(&bytes[..cut], 10) {
                let whole = parse(&bytes, 10);
                assert!(matches!(whole, Parsed::Refused(_)), "{:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }
}
