//! Encodes requests.

use crate::http::{Request, USER_AGENT};

/// The bytes of `request`. `Host`, `User-Agent` and the body's length are added unless it sets them; with `keep_alive` false it
/// asks the server to close after its response.
#[must_use]
pub fn request_bytes(request: &Request<'_>, keep_alive: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256 + request.body.map_or(0, <[u8]>::len));
    let out = &mut bytes;
    for part in [request.method, " ", request.path, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    if !request.has("host") {
        put_field(out, "Host", request.authority.as_bytes());
    }
    if !request.has("user-agent") {
        put_field(out, "User-Agent", USER_AGENT.as_bytes());
    }
    for (name, value) in request.headers {
        put_field(out, name, value.as_bytes());
    }
    if !keep_alive && !request.has("connection") {
        put_field(out, "Connection", b"close");
    }
    if let Some(length) = request.declared_length() {
        // A second length, or one beside chunks, is how requests are smuggled.
        if !request.has("content-length") && !request.has("transfer-encoding") {
            put_field(out, "Content-Length", itoa::Buffer::new().format(length).as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(request.body.unwrap_or_default());
    bytes
}

fn put_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
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
    fn missing_headers_are_added() {
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
    fn the_length_of_a_body_is_declared() {
        for (length, digits) in [(0, "0"), (9, "9"), (10, "10"), (12_345, "12345")] {
            let body = vec![b'x'; length];
            let out = request_bytes(&Request { method: "POST", body: Some(&body), ..GET }, true);
            let head = String::from_utf8_lossy(&out[..out.len() - length]).into_owned();
            assert!(head.ends_with(&format!("\r\nContent-Length: {digits}\r\n\r\n")), "{head}");
        }
    }

    #[test]
    fn given_headers_are_kept() {
        let headers = ["host", "USER-AGENT", "Connection", "content-length"].map(|name| (name, "z"));
        let request = Request { method: "PUT", headers: &headers, body: Some(b"b"), ..GET };
        assert_eq!(
            text(&request, false),
            "PUT /x?y HTTP/1.1\r\nhost: z\r\nUSER-AGENT: z\r\nConnection: z\r\ncontent-length: z\r\n\r\nb"
        );
    }
}
