//! Access control: only pages of this server itself may ask, under a name that leads here.
//!
//! A foreign page that is open in the same browser can send requests to the loopback interface. Two attacks
//! are possible:
//!
//! - The page makes its own name point here (DNS rebinding). The request's `Host` is then that name. It is
//!   refused, because only addresses and `localhost` are accepted.
//! - The page sends a request across sites. `Origin` is then not this server, or `Sec-Fetch-Site` says so.
//!   Also, a browser does not send a request with a JSON body across sites without a preflight request,
//!   which this server never answers.

use crate::http::{Method, Request, Status};
use std::net::{IpAddr, SocketAddr};

/// Whether the server at an address may answer a request.
pub(crate) fn allows(request: &Request, address: SocketAddr) -> Result<(), (Status, &'static str)> {
    let host = request.field("host").unwrap_or("");
    if !is_ours(host, address) {
        return Err((Status::Forbidden, "unknown host name; use the address that `palisade serve` printed"));
    }
    if let Some(origin) = request.field("origin")
        && origin.strip_prefix("http://").is_none_or(|origin| !origin.eq_ignore_ascii_case(host))
    {
        return Err((Status::Forbidden, "requests from other sites are not allowed"));
    }
    if let Some(site) = request.field("sec-fetch-site")
        && request.method == Method::Post
        && site != "same-origin"
    {
        return Err((Status::Forbidden, "requests from other sites are not allowed"));
    }
    if request.method == Method::Post {
        let kind = request.field("content-type").unwrap_or("").split(';').next().unwrap_or("").trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err((
                Status::UnsupportedMediaType,
                "the request body must be JSON (Content-Type: application/json)",
            ));
        }
    }
    Ok(())
}

/// Whether `Host` is a name of this server: the right port, and `localhost` or an address that it listens on.
fn is_ours(host: &str, address: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(80)),
    };
    if port != Some(address.port()) {
        return false;
    }
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    match name.parse::<IpAddr>() {
        // If the server listens on all interfaces, any address will do. A foreign name that points here is
        // not an address.
        Ok(ip) => {
            ip == address.ip()
                || address.ip().is_unspecified()
                || (ip.is_loopback() && address.ip().is_loopback())
        }
        Err(_) => {
            name.eq_ignore_ascii_case("localhost")
                && (address.ip().is_loopback() || address.ip().is_unspecified())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};

    fn check(address: &str, request: &str, expected: Result<(), Status>) {
        let bytes = request.replace('\n', "\r\n");
        let Parsed::Complete(request) = parse(bytes.as_bytes(), 10) else { panic!("{bytes:?}") };
        let address = address.parse().expect("an address");
        assert_eq!(allows(&request, address).map_err(|(status, _)| status), expected, "{bytes:?}");
    }

    #[test]
    fn names() {
        let get = |host: &str| format!("GET / HTTP/1.1\nHost: {host}\n\n");
        let refused = Err(Status::Forbidden);
        for (address, host, expected) in [
            ("127.0.0.1:7", "127.0.0.1:7", Ok(())),
            ("127.0.0.1:7", "localhost:7", Ok(())),
            ("127.0.0.1:7", "LocalHost:7", Ok(())),
            ("127.0.0.1:80", "localhost", Ok(())),
            ("[::1]:7", "[::1]:7", Ok(())),
            ("127.0.0.1:7", "localhost:8", refused),
            ("127.0.0.1:7", "localhost", refused),
            ("127.0.0.1:7", "evil.example:7", refused),
            ("127.0.0.1:7", "127.0.0.1.evil.example:7", refused),
            ("127.0.0.1:7", "localhost.evil.example:7", refused),
            ("127.0.0.1:7", "10.0.0.1:7", refused),
            ("127.0.0.1:7", "", refused),
            ("0.0.0.0:7", "10.0.0.1:7", Ok(())),
            ("0.0.0.0:7", "evil.example:7", refused),
            ("10.0.0.1:7", "10.0.0.1:7", Ok(())),
            ("10.0.0.1:7", "localhost:7", refused),
        ] {
            check(address, &get(host), expected);
        }
    }

    #[test]
    fn origins() {
        let post = |fields: &str| {
            format!("POST /api/run HTTP/1.1\nHost: localhost:7\nContent-Length: 0\n{fields}\n\n")
        };
        let json = "Content-Type: application/json";
        let refused = Err(Status::Forbidden);
        for (fields, expected) in [
            (json.to_owned(), Ok(())),
            (format!("{json}; charset=utf-8"), Ok(())),
            (format!("{json}\nOrigin: http://localhost:7\nSec-Fetch-Site: same-origin"), Ok(())),
            (format!("{json}\nOrigin: http://127.0.0.1:7"), refused),
            (format!("{json}\nOrigin: https://localhost:7"), refused),
            (format!("{json}\nOrigin: http://evil.example"), refused),
            (format!("{json}\nOrigin: null"), refused),
            (format!("{json}\nSec-Fetch-Site: cross-site"), refused),
            ("Content-Type: text/plain".to_owned(), Err(Status::UnsupportedMediaType)),
            ("X: y".to_owned(), Err(Status::UnsupportedMediaType)),
        ] {
            check("127.0.0.1:7", &post(&fields), expected);
        }
    }
}
