//! The part of HTTP/1.1 that a playground needs: one request per connection, no transfer encodings in
//! requests.

mod request;
mod response;

pub use request::{Method, Parsed, Request, parse};
pub use response::{Response, Stream};

/// The status codes in use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// 200
    Ok,
    /// 400
    BadRequest,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 408
    RequestTimeout,
    /// 411
    LengthRequired,
    /// 413
    ContentTooLarge,
    /// 415
    UnsupportedMediaType,
    /// 417
    ExpectationFailed,
    /// 429
    TooManyRequests,
    /// 431
    HeaderFieldsTooLarge,
    /// 500
    InternalServerError,
    /// 501
    NotImplemented,
    /// 503
    ServiceUnavailable,
    /// 505
    VersionNotSupported,
}

impl Status {
    /// The number and its reason phrase.
    pub fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::RequestTimeout => "408 Request Timeout",
            Status::LengthRequired => "411 Length Required",
            Status::ContentTooLarge => "413 Content Too Large",
            Status::UnsupportedMediaType => "415 Unsupported Media Type",
            Status::ExpectationFailed => "417 Expectation Failed",
            Status::TooManyRequests => "429 Too Many Requests",
            Status::HeaderFieldsTooLarge => "431 Request Header Fields Too Large",
            Status::InternalServerError => "500 Internal Server Error",
            Status::NotImplemented => "501 Not Implemented",
            Status::ServiceUnavailable => "503 Service Unavailable",
            Status::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }
}
