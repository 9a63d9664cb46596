//! One JSON object a line, as nginx, Caddy, Traefik, Envoy or an application's own middleware write
//! it. The time and the request are found by their usual names.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use holdup_access::{LINE_NAMES, METHOD_NAMES, MOMENT_NAMES, REQUEST_OBJECTS, TARGET_NAMES};

use super::request::{self, Request};
use super::{LogEntry, time};

/// Keys of the query, in lower case without punctuation as all names are.
const QUERY: [&str; 3] = ["querystring", "query", "args"];

/// How deep objects are searched: `http.request.method`.
const DEPTH: u8 = 3;

/// Smaller numbers are durations, not times: this is in 1973.
const EARLIEST: f64 = 1e8;

/// # Errors
/// What is wrong with it.
pub(super) fn parse(line: &[u8]) -> Result<LogEntry<'_>, &'static str> {
    let mut fields = Fields::default();
    let mut json = serde_json::Deserializer::from_slice(line);
    let object = json.deserialize_map(Object { fields: &mut fields, depth: 0 });
    object.and_then(|()| json.end()).map_err(|_| "it is not one JSON object")?;
    let (_, at) =
        fields.time.ok_or("no time under the keys time, timestamp, ts, @timestamp, time_iso8601, msec or the like")?;
    let by_line = fields.line.as_deref().and_then(|line| request::line(line.as_bytes()));
    let request = match (by_line, &fields.method, &fields.target) {
        (Some(request), ..) => Some(request),
        (None, Some(method), Some((_, target))) => {
            let query = fields.query.as_deref().unwrap_or_default().trim_start_matches('?');
            let joined =
                if query.is_empty() || target.contains('?') { target.clone() } else { format!("{target}?{query}") };
            request::request(method.as_bytes(), joined.as_bytes()).map(Request::into_owned)
        }
        _ => None,
    };
    Ok(LogEntry { at, request: request.map(Request::into_owned) })
}

/// The fields found so far; the lowest rank wins.
#[derive(Default)]
struct Fields {
    time: Option<(usize, i64)>,
    line: Option<String>,
    method: Option<String>,
    target: Option<(usize, String)>,
    query: Option<String>,
}

/// What a key can mean.
#[derive(Clone, Copy, Default)]
struct Key {
    time: Option<usize>,
    line: bool,
    method: bool,
    target: Option<usize>,
    query: bool,
    nested: bool,
}

impl Key {
    fn by_name(text: &str) -> Self {
        // The longest known key has 17 characters.
        let mut buffer = [0; 20];
        let mut length = 0;
        for byte in text.bytes().filter(|b| !b"_-.@".contains(b)) {
            let Some(place) = buffer.get_mut(length) else { return Self::default() };
            *place = byte.to_ascii_lowercase();
            length += 1;
        }
        let name = &buffer[..length];
        let rank = |keys: &[&str]| keys.iter().position(|k| k.as_bytes() == name);
        Self {
            time: rank(&MOMENT_NAMES),
            line: rank(&LINE_NAMES).is_some(),
            method: rank(&METHOD_NAMES).is_some(),
            target: rank(&TARGET_NAMES),
            query: rank(&QUERY).is_some(),
            nested: rank(&REQUEST_OBJECTS).is_some(),
        }
    }
}

impl Fields {
    fn moment(&mut self, key: Key, depth: u8, at: Option<i64>) {
        if let (Some(rank), Some(at), 0) = (key.time, at, depth)
            && self.time.is_none_or(|(best, _)| rank < best)
        {
            self.time = Some((rank, at));
        }
    }

    fn text(&mut self, key: Key, depth: u8, text: &str) {
        if key.time.is_some() {
            self.moment(key, depth, time::parse(text));
        }
        if key.line && self.line.is_none() {
            self.line = Some(text.to_owned());
        }
        if key.method && self.method.is_none() {
            self.method = Some(text.to_owned());
        }
        if key.query && self.query.is_none() {
            self.query = Some(text.to_owned());
        }
        if let Some(rank) = key.target
            && self.target.as_ref().is_none_or(|(best, _)| rank < *best)
        {
            self.target = Some((rank, text.to_owned()));
        }
    }
}

struct Object<'a> {
    fields: &'a mut Fields,
    depth: u8,
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(KeySeed)? {
            map.next_value_seed(Value { fields: self.fields, key, depth: self.depth })?;
        }
        Ok(())
    }
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<Key, E> {
        Ok(Key::by_name(text))
    }
}

struct Value<'a> {
    fields: &'a mut Fields,
    key: Key,
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.fields.text(self.key, self.depth, text);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        if number as f64 >= EARLIEST {
            // As text, because a floating-point number would lose the last digits of nanoseconds.
            self.fields.moment(self.key, self.depth, time::parse(&number.to_string()));
        }
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        if number >= EARLIEST {
            self.fields.moment(self.key, self.depth, time::epoch(number));
        }
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.key.nested && self.depth + 1 < DEPTH {
            return Object { fields: self.fields, depth: self.depth + 1 }.visit_map(map);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (i64, Option<String>) {
        let entry = parse(line.as_bytes()).unwrap_or_else(|why| panic!("{line}: {why}"));
        (entry.at / 1_000_000, entry.request.map(|r| format!("{} {}", r.method, r.path)))
    }

    #[test]
    fn servers_logs() {
        let ms = 971_211_336_000;
        for (line, expected) in [
            // nginx
            (
                r#"{"time_local":"10/Oct/2000:13:55:36 -0700","request":"GET /a?b=1 HTTP/1.1","request_time":0.003}"#,
                "GET /a?b=1",
            ),
            (r#"{"msec":"971211336.000","time":0.25,"request_method":"HEAD","uri":"/a","args":"b=1"}"#, "HEAD /a?b=1"),
            // Caddy
            (
                r#"{"level":"info","ts":971211336.0,"request":{"method":"GET","uri":"/x","headers":{"uri":["no"]}}}"#,
                "GET /x",
            ),
            // Traefik
            (
                r#"{"StartUTC":"2000-10-10T20:55:36Z","time":"2000-10-10T20:55:39Z","RequestMethod":"POST","RequestPath":"/p"}"#,
                "POST /p",
            ),
            // Elastic Common Schema
            (
                r#"{"@timestamp":"2000-10-10T20:55:36.000Z","http":{"request":{"method":"GET"}},"url":{"path":"/u","query":"q=1"}}"#,
                "GET /u?q=1",
            ),
            // nginx, with a field that a shipper of logs has added
            (
                r#"{"@timestamp":"2000-10-10T20:56:01.500Z","time_iso8601":"2000-10-10T13:55:36-07:00","request":"GET /s HTTP/1.1"}"#,
                "GET /s",
            ),
            // Google Cloud, Express
            (
                r#"{"timestamp":971211336000,"httpRequest":{"requestMethod":"GET","requestUrl":"https://h/x?y"}}"#,
                "GET /x?y",
            ),
            (r#"{"req":{"method":"GET","url":"/n"},"time":971211336000000000}"#, "GET /n"),
        ] {
            assert_eq!(parsed(line), (ms, Some(expected.to_owned())), "{line}");
        }
        assert_eq!(parsed(r#"{"ts":971211336,"msg":"started"}"#), (ms, None));
    }

    #[test]
    fn what_is_wrong() {
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        for line in ["", "{", "[]", "5", "{}", r#"{"time":"soon"}"#, r#"{"time":3.5}"#, r#"{"ts":971211336} x"#, &deep]
        {
            assert!(parse(line.as_bytes()).is_err(), "{line:.40}");
        }
        assert!(parse(b"{\"ts\":971211336,\"uri\":\"\xff\"}").is_err());
    }
}
