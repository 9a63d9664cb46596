//! One line of a log: a JSON object, or any text with `key=value` pairs, such as an access log.
//! Quoted text without a key before it, such as the request line, is skipped: clients could put
//! pairs there.

use holdup_recording::rows::Span;
use serde_json::Value;

use super::fields::{Fields, Meaning, RESOURCES, duration, moment, trace_id};

/// Largest depth of nested objects.
const DEPTH_MAX: usize = 6;

/// Largest number of fields read from a line.
const FIELDS_MAX: usize = 512;

/// Longest name of a service or an operation, characters.
const NAME_MAX: usize = 128;

/// Why a line yields no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Neither JSON nor pairs.
    NoFields,
    /// It starts like JSON but is malformed.
    BadJson,
    /// Fields, but no trace id.
    NoTrace,
    /// A trace id, but no time.
    NoTime,
}

/// The parsed content of a line.
#[derive(Debug, Default)]
struct ParsedLine {
    trace: Option<String>,
    total: Option<i64>,
    /// Time and calls, by resource.
    waits: [(Option<i64>, Option<i64>); RESOURCES.len()],
    ended_at: Option<i64>,
    service: String,
    name: String,
    status: Option<u32>,
    fields: usize,
}

/// The rows of one line: one for the whole request, if its time is there, and one per resource.
/// `read_at` is when the line was read, nanoseconds since the Unix epoch; it stands for the
/// request's end if the line does not state that.
///
/// # Errors
/// Why the line yields no rows.
pub(super) fn spans(line: &[u8], fields: &Fields, source: &str, read_at: i64) -> Result<Vec<Span>, Unread> {
    let mut parsed = ParsedLine::default();
    let line = line.trim_ascii();
    if line.first() == Some(&b'{') {
        let value: Value = serde_json::from_slice(line).map_err(|_| Unread::BadJson)?;
        walk(&value, &mut String::new(), 0, fields, &mut parsed);
    } else {
        pairs(&String::from_utf8_lossy(line), &mut |key, value| parsed.take(fields, key, value));
    }
    if parsed.fields == 0 {
        return Err(Unread::NoFields);
    }
    parsed.rows(source, read_at)
}

impl ParsedLine {
    fn take(&mut self, fields: &Fields, key: &str, value: &str) {
        self.fields += 1;
        if self.fields > FIELDS_MAX {
            return;
        }
        let Some((meaning, unit)) = fields.meaning(key) else { return };
        match meaning {
            Meaning::Trace => self.trace = self.trace.take().or_else(|| trace_id(value)),
            Meaning::Total => self.total = self.total.or_else(|| duration(value, unit)),
            Meaning::Wait(of) => {
                if let Some(wait) = duration(value, unit) {
                    let sum = &mut self.waits[of].0;
                    *sum = Some(sum.unwrap_or(0) + wait);
                }
            }
            Meaning::Calls(of) => {
                let calls = value.parse().ok().filter(|calls: &i64| (0..1_000_000_000).contains(calls));
                self.waits[of].1 = self.waits[of].1.or(calls);
            }
            Meaning::Time => self.ended_at = self.ended_at.or_else(|| moment(value)),
            Meaning::Service => self.service = name(value),
            Meaning::Name => self.name = name(value),
            Meaning::Status => self.status = value.parse().ok(),
        }
    }

    fn rows(self, source: &str, read_at: i64) -> Result<Vec<Span>, Unread> {
        let trace_id = self.trace.ok_or(Unread::NoTrace)?;
        let ended_at = self.ended_at.unwrap_or(read_at);
        // Without a total, the request took at least as long as its longest wait.
        let known = self.waits.iter().filter_map(|(wait, _)| *wait).max().unwrap_or(0);
        let started_at = ended_at - self.total.unwrap_or(known);
        let status = match self.status {
            Some(500..) => "error",
            Some(100..) => "ok",
            _ => "unset",
        };
        let row = |resource: &str, duration_ns: i64, calls: i64| Span {
            started_at,
            duration_ns,
            source: source.to_owned(),
            service: self.service.clone(),
            trace_id: trace_id.clone(),
            name: if resource == "request" { self.name.clone() } else { resource.to_owned() },
            kind: if resource == "request" { "server" } else { "client" }.to_owned(),
            resource: resource.to_owned(),
            status: status.to_owned(),
            calls,
            ..Span::default()
        };
        let mut rows: Vec<Span> = self.total.map(|total| row("request", total, 1)).into_iter().collect();
        for (resource, (wait, calls)) in RESOURCES.iter().zip(self.waits) {
            rows.extend(wait.map(|wait| row(resource, wait, calls.unwrap_or(0))));
        }
        if rows.is_empty() { Err(Unread::NoTime) } else { Ok(rows) }
    }
}

fn name(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect()
}

/// Visits every scalar of an object under its path, joined by dots.
fn walk(value: &Value, path: &mut String, depth: usize, fields: &Fields, parsed: &mut ParsedLine) {
    match value {
        Value::Object(object) if depth < DEPTH_MAX => {
            for (key, value) in object.iter().take(FIELDS_MAX) {
                let length = path.len();
                if length > 0 {
                    path.push('.');
                }
                path.push_str(key);
                walk(value, path, depth + 1, fields, parsed);
                path.truncate(length);
            }
        }
        Value::String(text) => parsed.take(fields, path, text),
        Value::Number(number) => parsed.take(fields, path, &number.to_string()),
        _ => {}
    }
}

/// Calls `each` with every `key=value` and `key="value"` of `line`.
fn pairs<'a>(line: &'a str, each: &mut dyn FnMut(&'a str, &'a str)) {
    let is_key = |b: u8| b.is_ascii_alphanumeric() || b"_.-@".contains(&b);
    let is_between = |b: u8| matches!(b, b' ' | b'\t' | b',' | b';');
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'"' || bytes[at] == b'[' {
            at = after_quote(bytes, at);
            continue;
        }
        let begin = at;
        while at < bytes.len() && is_key(bytes[at]) {
            at += 1;
        }
        if at == begin || bytes.get(at) != Some(&b'=') {
            if at == begin && is_between(bytes[at]) {
                at += 1;
                continue;
            }
            // Text before something other than `=` is a plain word.
            while at < bytes.len() && !is_between(bytes[at]) && !matches!(bytes[at], b'"' | b'[') {
                at += 1;
            }
            continue;
        }
        let from = at + 1;
        if bytes.get(from) == Some(&b'"') {
            at = after_quote(bytes, from);
            let end = if at > from + 1 && bytes[at - 1] == b'"' { at - 1 } else { at };
            each(&line[begin..from - 1], &line[from + 1..end]);
        } else {
            at = from;
            while at < bytes.len() && !is_between(bytes[at]) && bytes[at] != b'"' {
                at += 1;
            }
            each(&line[begin..from - 1], &line[from..at]);
        }
    }
}

/// The position after the quoted or bracketed text that starts at `at`.
fn after_quote(bytes: &[u8], at: usize) -> usize {
    let end = if bytes[at] == b'[' { b']' } else { b'"' };
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            byte if byte == end => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn read(line: &str) -> Result<Vec<(String, i64, i64)>, Unread> {
        let rows = spans(line.as_bytes(), &Fields::default(), "log:x", 10_000_000_000)?;
        assert!(rows.iter().all(|r| r.trace_id == ID && r.source == "log:x"));
        Ok(rows.into_iter().map(|r| (r.resource, r.duration_ns / 1_000, r.calls)).collect())
    }

    fn rows(expected: &[(&str, i64, i64)]) -> Result<Vec<(String, i64, i64)>, Unread> {
        Ok(expected.iter().map(|(resource, us, calls)| ((*resource).to_owned(), *us, *calls)).collect())
    }

    #[test]
    fn json_flat_and_nested() {
        let flat = format!(
            r#"{{"trace_id":"{ID}","duration_ms":12.5,"db_ms":"7.25","db_count":3,"pool_wait_ms":1,"msg":"a=b"}}"#
        );
        assert_eq!(read(&flat), rows(&[("request", 12_500, 1), ("database", 7_250, 3), ("pool", 1_000, 0)]));
        let nested = format!(
            r#"{{"trace":{{"id":"{ID}"}},"event":{{"duration":9000000}},"db":{{"duration":4,"count":2}},"x":[1],"y":null}}"#
        );
        assert_eq!(read(&nested), rows(&[("request", 9_000, 1), ("database", 4_000, 2)]));
        let nginx = format!(
            r#"{{"request_time":"0.250","upstream_response_time":"0.1, 0.05","traceparent":"00-{ID}-00f067aa0ba902b7-01"}}"#
        );
        assert_eq!(read(&nginx), rows(&[("request", 250_000, 1), ("http", 150_000, 0)]));
    }

    #[test]
    fn access_logs_with_pairs() {
        let line = format!(
            r#"10.0.0.1 - anna [10/Oct/2000:13:55:36 -0700] "GET /a?db_ms=9&trace_id=1 HTTP/1.1" 200 2326 "-" "curl \" db_ms=8" rt=0.250 urt="0.1 : 0.05" traceparent=00-{ID}-00f067aa0ba902b7-01 status=503"#
        );
        assert_eq!(read(&line), rows(&[("request", 250_000, 1), ("http", 150_000, 0)]));
        let line = format!("level=info msg=\"done, db=5\" trace={ID}, db=7.5ms;pool=2 queries=4 duration=");
        assert_eq!(read(&line), rows(&[("database", 7_500, 4), ("pool", 2_000, 0)]));
    }

    #[test]
    fn times_names_and_statuses() {
        let line = format!(
            r#"{{"trace_id":"{ID}","duration_ms":500,"time":"2026-02-03T04:05:06.789Z","service":"shop","route":"/o/\u0007x","status":503}}"#
        );
        let rows = spans(line.as_bytes(), &Fields::default(), "log:x", 7).unwrap();
        assert_eq!(rows[0].started_at, 1_770_091_506_289_000_000);
        assert_eq!(
            (rows[0].service.as_str(), rows[0].name.as_str(), rows[0].status.as_str()),
            ("shop", "/o/x", "error")
        );
        let rows =
            spans(format!("trace={ID} total=2 db=1").as_bytes(), &Fields::default(), "log:x", 10_000_000).unwrap();
        assert_eq!((rows[0].started_at, rows[1].started_at, rows[0].status.as_str()), (8_000_000, 8_000_000, "unset"));
    }

    #[test]
    fn a_line_without_rows_gives_the_reason() {
        for (line, why) in [
            ("", Unread::NoFields),
            ("started", Unread::NoFields),
            ("GET \"a=b\" [c=d]", Unread::NoFields),
            ("{\"a\":", Unread::BadJson),
            ("{}", Unread::NoFields),
            ("a=1", Unread::NoTrace),
            ("trace=- rt=1", Unread::NoTrace),
            (&format!("trace={ID} rt=fast"), Unread::NoTime),
        ] {
            assert_eq!(read(line), Err(why), "{line}");
        }
        // Whatever it is, it is no panic and takes no time.
        for hostile in ["=", "a=\"", "a=\"\\", "[", "\"\\", "a==\"=\"", "é=é ü=\"é", "a=\"b\"c=\"d"] {
            let _ = spans(hostile.as_bytes(), &Fields::default(), "log:x", 7);
        }
        let deep = "{\"a\":".repeat(100) + "1" + &"}".repeat(100);
        assert_eq!(read(&deep), Err(Unread::NoFields));
        assert_eq!(spans(&[0xff; 300], &Fields::default(), "log:x", 7), Err(Unread::NoFields));
    }
}
