//! `Server-Timing` (W3C): a server's own times in the head of a response, as rows beside the
//! request's. Values are stored unchecked: also when the server claims a longer time than the
//! response took.

use std::time::Duration;

use holdup_recording::rows::Span;

/// Name of this source in the recording.
pub const SOURCE: &str = "server_timing";

/// Most bytes of all fields of a response; the rest is left out.
const MOST_BYTES: usize = holdup_protocol::http::http1::MAX_TIMING_BYTES;

/// Most metrics of a response that are read.
const MOST_METRICS: usize = 32;

/// Most characters of a metric's name that are kept.
const MOST_NAME: usize = 64;

/// Longer times cannot be part of a response, milliseconds.
const MOST_MS: f64 = 86_400_000.0;

/// Appends a field to the earlier ones; one that does not fit is left out.
pub fn keep(kept: &mut Option<Box<[u8]>>, value: &[u8]) {
    let before = kept.take().unwrap_or_default();
    if before.len() + value.len() < MOST_BYTES {
        let separator: &[u8] = if before.is_empty() { b"" } else { b"," };
        *kept = Some([&before, separator, value].concat().into());
    } else if !before.is_empty() {
        *kept = Some(before);
    }
}

/// The spans in `said`, the server's timing of the request with this id, which was sent at
/// `sent_at`, nanoseconds since the Unix epoch: one row for each resource, with the sum of its
/// waits. The number of calls is unknown, and 0.
pub fn spans(said: &[u8], trace_id: &str, sent_at: i64, is_well: bool) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for metric in split(said, b',').take(MOST_METRICS) {
        let mut parts = split(metric, b';');
        let Some(name) = parts.next().and_then(name) else { continue };
        let Some(took) = parts.find_map(duration) else { continue };
        let (resource, system) = resource(&name);
        let duration_ns = took.as_nanos() as i64;
        match spans.iter_mut().find(|span| span.resource == resource && span.system == system) {
            // Of several times of the whole request, the longest counts.
            Some(span) if resource == "request" => span.duration_ns = span.duration_ns.max(duration_ns),
            Some(span) => span.duration_ns += duration_ns,
            None => spans.push(Span {
                started_at: sent_at,
                duration_ns,
                source: SOURCE.to_owned(),
                trace_id: trace_id.to_owned(),
                kind: if resource == "request" { "server" } else { "client" }.to_owned(),
                resource: resource.to_owned(),
                system,
                status: if is_well { "ok" } else { "error" }.to_owned(),
                calls: i64::from(resource == "request"),
                name,
                ..Span::default()
            }),
        }
    }
    spans
}

/// The name of a metric.
fn name(text: &[u8]) -> Option<String> {
    let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    let text = Some(text.trim_ascii()).filter(|text| (1..=MOST_NAME).contains(&text.len()))?;
    text.iter().all(is_token).then(|| String::from_utf8_lossy(text).into_owned())
}

/// The resource that a metric's time belongs to, and its name.
fn resource(name: &str) -> (&'static str, Option<String>) {
    let resource = match name.to_ascii_lowercase().as_str() {
        "db" | "database" | "sql" => "database",
        "pool" => "pool",
        "cache" | "redis" | "memcached" => "cache",
        "http" | "api" | "upstream" | "downstream" => "http",
        "queue" => "queue",
        "total" | "app" | "request" => "request",
        _ => return ("other", Some(name.to_owned())),
    };
    let is_of_a_kind = ["redis", "memcached"].iter().any(|kind| name.eq_ignore_ascii_case(kind));
    (resource, is_of_a_kind.then(|| name.to_ascii_lowercase()))
}

/// The duration of a parameter, if it is `dur`.
fn duration(parameter: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(parameter).ok()?;
    let (name, value) = text.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("dur") {
        return None;
    }
    let value = value.trim();
    let bare = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    let ms: f64 = bare.parse().ok()?;
    (0.0..=MOST_MS).contains(&ms).then(|| Duration::from_secs_f64(ms / 1_000.0))
}

/// The parts of `text` between separators outside of quotes.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |&byte| {
        if is_escaped {
            is_escaped = false;
            return false;
        }
        is_escaped = is_quoted && byte == b'\\';
        is_quoted ^= byte == b'"';
        byte == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(said: &str) -> Vec<(String, Option<String>, i64)> {
        let spans = spans(said.as_bytes(), "t", 7, true);
        assert!(spans.iter().all(|s| s.trace_id == "t" && s.started_at == 7 && s.source == SOURCE));
        spans.into_iter().map(|s| (s.resource, s.system, s.duration_ns / 1_000)).collect()
    }

    #[test]
    fn waits_are_summed_by_resource() {
        let said =
            r#"miss, db;dur=53.5, sql;desc="a, b; dur=9 \" c";dur=1.5, redis;dur=2,Cache;DUR="3", total ; dur = 99"#;
        let expected = [
            ("database", None, 55_000),
            ("cache", Some("redis"), 2_000),
            ("cache", None, 3_000),
            ("request", None, 99_000),
        ];
        let expected = expected.map(|(r, s, us)| (r.to_owned(), s.map(str::to_owned), us));
        assert_eq!(read(said), expected);
        assert_eq!(
            read("render;dur=4, app;dur=9, total;dur=12"),
            [("other".to_owned(), Some("render".to_owned()), 4_000), ("request".to_owned(), None, 12_000)]
        );
    }

    #[test]
    fn invalid_timings_are_left_out_and_the_rest_is_bounded() {
        for said in ["", ",,;;", "db", "db;dur=", "db;dur=-1", "db;dur=NaN", "db;dur=inf", "db;dur=1e99", "d b;dur=1"] {
            assert_eq!(read(said), [], "{said}");
        }
        assert_eq!(spans(&[0xff; 100], "t", 0, true), []);
        assert_eq!(spans(&[&b"\"db;dur=1,"[..], &[b'"'; 99]].concat(), "t", 0, true), []);
        assert_eq!(spans("a;dur=1,".repeat(1_000).as_bytes(), "t", 0, false)[0].duration_ns, 32_000_000);
        let mut kept = None;
        for _ in 0..1_000 {
            keep(&mut kept, b"db;dur=1");
        }
        let kept = kept.unwrap();
        assert!(kept.starts_with(b"db;dur=1,db;dur=1") && kept.len() <= MOST_BYTES);
    }
}
