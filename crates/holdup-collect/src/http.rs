//! One question to an HTTP server, and its whole answer: bounded in time and in bytes. For endpoints that tell of a server; load is made
//! elsewhere. No redirects (they could carry a password elsewhere) and no proxy from the environment.

use std::time::Duration;

/// An answer of any status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case; empty if there is none.
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

/// Asks with this time for the whole answer, connecting included, and this header `Accept`.
pub(crate) fn agent(timeout: Duration, accept: &str) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .accept(accept)
        .user_agent(concat!("holdup/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// What `url` answers, or why there is no answer, in words without the URL.
pub(crate) fn get(
    agent: &ureq::Agent,
    url: &str,
    authorization: Option<&str>,
    bytes_max: u64,
) -> Result<Answer, String> {
    let mut request = agent.get(url);
    if let Some(authorization) = authorization {
        request = request.header("Authorization", authorization);
    }
    let mut response = request.call().map_err(|e| reason(&e))?;
    let header = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    let content_type = header.unwrap_or_default().to_ascii_lowercase();
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(bytes_max).read_to_vec();
    // Why it was refused matters more than that its words were too many.
    let body = if status == 200 { body.map_err(|e| reason(&e))? } else { body.unwrap_or_default() };
    Ok(Answer { status, content_type, body })
}

/// An answer as it came over a connection that was closed behind it (HTTP/1.0: nothing is sent in chunks); none if it is no HTTP, or was
/// cut off.
pub(crate) fn answer(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut lines = std::str::from_utf8(&bytes[..end]).ok()?.lines();
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let field = |wanted: &str| {
        let mut fields = lines.clone().filter_map(|line| line.split_once(':'));
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    let body = &bytes[end + 4..];
    let body = match field("content-length") {
        Some(length) => body.get(..length.parse().ok()?)?,
        None => body,
    };
    let content_type = field("content-type").unwrap_or_default().to_ascii_lowercase();
    Some(Answer { status, content_type, body: body.to_vec() })
}

/// In words, without the URL.
pub fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(e) => e.to_string(),
        ureq::Error::Timeout(_) => "no whole answer in time".to_owned(),
        ureq::Error::HostNotFound => "no such host".to_owned(),
        ureq::Error::BodyExceedsLimit(bytes) => format!("its answer is larger than {bytes} bytes"),
        ureq::Error::ConnectionFailed => "no connection".to_owned(),
        ureq::Error::Tls(why) => format!("TLS: {why}"),
        ureq::Error::Protocol(e) => format!("it does not speak HTTP: {e}"),
        // Others may repeat the URL.
        _ => "it can't be asked; is the URL right?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn an_answer_and_every_cut_of_it() {
        let whole = b"HTTP/1.0 403 No way\r\nContent-Type: Text/Plain\r\ncontent-length: 4\r\n\r\nno!\n";
        let found = answer(whole).unwrap();
        assert_eq!((found.status, found.content_type.as_str(), &found.body[..]), (403, "text/plain", &b"no!\n"[..]));
        for end in 0..whole.len() {
            assert!(answer(&whole[..end]).is_none(), "{end}");
        }
        assert_eq!(answer(b"HTTP/1.1 200 OK\r\n\r\n{}").unwrap().body, b"{}");
        for bad in [&b"SSH-2.0 x\r\n\r\n"[..], b"HTTP/1.0 x OK\r\n\r\n", b"HTTP/1.0 200\r\ncontent-length: x\r\n\r\n"] {
            assert!(answer(bad).is_none());
        }
    }
}
