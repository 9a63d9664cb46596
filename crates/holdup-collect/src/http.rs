//! One HTTP request and its complete answer, bounded in time and in bytes. It is for status
//! endpoints; load is generated elsewhere. It follows no redirects (they could carry a password to
//! another host) and uses no proxy from the environment.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use holdup_recording::files;
use percent_encoding::percent_decode_str;
use ureq::config::ConfigBuilder;
use ureq::tls::{PemItem, RootCerts, parse_pem};
use ureq::typestate::AgentScope;

/// An answer with any status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case; empty if the header is missing.
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

/// A client with this timeout for the whole request, connecting included, and this `Accept` header.
pub(crate) fn agent(timeout: Duration, accept: &str) -> ureq::Agent {
    config(timeout, accept).build().into()
}

/// What all clients have in common.
pub(crate) fn config(timeout: Duration, accept: &str) -> ConfigBuilder<AgentScope> {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .accept(accept)
        .user_agent(concat!("holdup/", env!("CARGO_PKG_VERSION")))
}

/// The certificates in the PEM file `path`, which `option` names, as the only ones to trust.
pub(crate) fn authority(path: &Path, option: &str) -> Result<RootCerts, String> {
    let wrong = |what: &str| format!("{}: {what}; {option} needs the PEM file of the authority", path.display());
    let pem = files::read(path, files::SMALL_BYTES).map_err(|error| format!("{}: {error}", path.display()))?;
    let items = parse_pem(&pem).collect::<Result<Vec<_>, _>>().map_err(|_| wrong("not a PEM file"))?;
    let certificate = |item| if let PemItem::Certificate(found) = item { Some(found) } else { None };
    let found: Vec<_> = items.into_iter().filter_map(certificate).collect();
    if found.is_empty() { Err(wrong("it contains no certificate")) } else { Ok(RootCerts::new_with_certs(&found)) }
}

/// The reason that a JSON answer gives, by `of`, in at most 300 printable characters.
pub(crate) fn said(body: &[u8], of: impl Fn(&serde_json::Value) -> Option<&str>) -> String {
    let answer: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let reason = answer.as_ref().and_then(of).unwrap_or("no reason is given");
    reason.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// What a body is that should be something else.
pub(crate) fn kind(body: &[u8]) -> &'static str {
    match body.trim_ascii_start().first() {
        Some(b'<') => "HTML",
        _ => "something else",
    }
}

/// The answer of `url`; otherwise the reason in words, without the URL.
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
    // A refusal's status matters more than an oversized body.
    let body = if status == 200 { body.map_err(|e| reason(&e))? } else { body.unwrap_or_default() };
    Ok(Answer { status, content_type, body })
}

/// Parses an answer from a connection that the server closed after it (HTTP/1.0: no chunks); none
/// if it is not HTTP or was cut off.
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

/// `text` with each `%XX` replaced by its byte.
pub(crate) fn decoded(text: &str) -> Result<String, String> {
    let is_escape = |rest: &str| rest.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return Err("a `%` is not followed by two hex digits (write a literal % as %25)".to_owned());
    }
    let text = percent_decode_str(text).decode_utf8();
    text.map(Cow::into_owned).map_err(|_| "its %XX sequences do not decode to UTF-8".to_owned())
}

/// The error in words, without the URL.
pub fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(e) => e.to_string(),
        ureq::Error::Timeout(_) => "no complete answer within the time limit".to_owned(),
        ureq::Error::HostNotFound => "the host name does not resolve".to_owned(),
        ureq::Error::BodyExceedsLimit(bytes) => format!("its answer exceeds {bytes} bytes"),
        ureq::Error::ConnectionFailed => "the connection failed; is a server listening there?".to_owned(),
        ureq::Error::Tls(why) => format!("TLS: {why}"),
        ureq::Error::Protocol(e) => format!("its answer is not HTTP: {e}"),
        // Other errors may repeat the URL.
        _ => "the request failed; is the URL right?".to_owned(),
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
