//! A request's bytes, laid out once and sent many times.

use crate::{Request, USER_AGENT};

/// The bytes of `request`. `Host`, `User-Agent` and the body's length are added unless it brings its own; with
/// `keep_alive` false it asks the server to close after its response.
#[must_use]
pub fn request_bytes(request: &Request<'_>, keep_alive: bool) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    if !request.has("host") {
        head += &format!("Host: {}\r\n", request.authority);
    }
    if !request.has("user-agent") {
        head += &format!("User-Agent: {USER_AGENT}\r\n");
    }
    for (name, value) in request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !keep_alive && !request.has("connection") {
        head += "Connection: close\r\n";
    }
    if let Some(length) = request.declared_length() {
        // A second length, or one beside chunks, is what requests are smuggled with.
        if !request.has("content-length") && !request.has("transfer-encoding") {
            head += &format!("Content-Length: {length}\r\n");
        }
    }
    head += "\r\n";
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(request.body.unwrap_or_default());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(request: &Request<'_>, keep_alive: bool) -> String {
        String::from_utf8(request_bytes(request, keep_alive)).expect("ASCII")
    }

    const GET: Request<'_> =
        Request { method: "GET", scheme: "http", authority: "a.example:81", path: "/x?y", headers: &[], body: None };

    #[test]
    fn what_is_missing_is_added() {
        let agent = format!("User-Agent: {USER_AGENT}\r\n");
        assert_eq!(text(&GET, true), format!("GET /x?y HTTP/1.1\r\nHost: a.example:81\r\n{agent}\r\n"));
        assert_eq!(
            text(&GET, false),
            format!("GET /x?y HTTP/1.1\r\nHost: a.example:81\r\n{agent}Connection: close\r\n\r\n")
        );
        let post = Request { method: "POST", ..GET };
        assert!(text(&post, true).ends_with("Content-Length: 0\r\n\r\n"));
        let post = Request { body: Some(b"hello"), ..post };
        assert!(text(&post, true).ends_with("Content-Length: 5\r\n\r\nhello"));
    }

    #[test]
    fn what_is_given_stays_as_it_is() {
        let headers = ["host", "USER-AGENT", "Connection", "content-length"].map(|n| (n.to_owned(), "z".to_owned()));
        let request = Request { method: "PUT", headers: &headers, body: Some(b"b"), ..GET };
        assert_eq!(
            text(&request, false),
            "PUT /x?y HTTP/1.1\r\nhost: z\r\nUSER-AGENT: z\r\nConnection: z\r\ncontent-length: z\r\n\r\nb"
        );
    }
}
