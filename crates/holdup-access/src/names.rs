//! Fields that carry their own names: JSON lines, and `key=value` lines as Heroku's router writes
//! them. Names count without case and punctuation, and the lists here have them so. A time's unit is
//! in its name, in its text (`12ms`), or follows from whose name it is.

use std::borrow::Cow;

use serde_json::Value;

use super::entry::{Edge, Entry, Part, from_number, status};

/// Names of the moment, the best first. The first three are a start. A server's own comes before
/// those that a shipper of logs may have added.
pub const MOMENT_NAMES: [&str; 15] = [
    "startutc",
    "starttime",
    "startlocal",
    "msec",
    "timeiso8601",
    "timestamp",
    "ts",
    "time",
    "timelocal",
    "datetime",
    "date",
    "eventtime",
    "receivedat",
    "t",
    "startedat",
];
/// How many of them are a start.
const STARTS: usize = 3;

/// Names of the method.
pub const METHOD_NAMES: [&str; 6] = ["method", "requestmethod", "httpmethod", "httprequestmethod", "reqmethod", "verb"];
/// Names of the path or the address, the best first.
pub const TARGET_NAMES: [&str; 11] = [
    "requesturi",
    "uri",
    "url",
    "original",
    "urloriginal",
    "path",
    "requestpath",
    "urlpath",
    "requesturl",
    "target",
    "originalurl",
];
/// Names of the whole request line.
pub const LINE_NAMES: [&str; 2] = ["request", "requestline"];

const STATUSES: [&str; 9] = [
    "status",
    "statuscode",
    "httpstatus",
    "responsecode",
    "responsestatus",
    "code",
    "downstreamstatus",
    "httpstatuscode",
    "httpresponsestatuscode",
];
const SERVERS: [&str; 5] = ["upstreamaddr", "upstreamhost", "upstream", "serviceaddr", "dyno"];

/// Objects that hold the request, or a part of it.
pub const REQUEST_OBJECTS: [&str; 5] = ["request", "req", "http", "httprequest", "url"];
/// Further objects that are searched: they hold the answer and its times.
const ANSWER_OBJECTS: [&str; 4] = ["response", "res", "event", "data"];
/// How deep.
const DEPTH: u8 = 3;

/// Units at the end of a name or of a text, in nanoseconds.
const UNITS: [(&str, f64); 14] = [
    ("milliseconds", 1e6),
    ("microseconds", 1e3),
    ("nanoseconds", 1.0),
    ("seconds", 1e9),
    ("millis", 1e6),
    ("micros", 1e3),
    ("nanos", 1.0),
    ("secs", 1e9),
    ("sec", 1e9),
    ("ms", 1e6),
    ("us", 1e3),
    ("µs", 1e3),
    ("ns", 1.0),
    ("s", 1e9),
];

/// Names of times without a unit, with the unit of whole numbers and that of others.
const TIMES: [(&str, Part, f64, f64); 22] = [
    ("requesttime", Part::Whole, 1e9, 1e9),
    ("rt", Part::Whole, 1e9, 1e9),
    ("duration", Part::Whole, 1e6, 1e9),
    ("latency", Part::Whole, 1e6, 1e9),
    ("elapsed", Part::Whole, 1e6, 1e9),
    ("took", Part::Whole, 1e6, 1e9),
    ("responsetime", Part::Whole, 1e6, 1e6),
    ("timetaken", Part::Whole, 1e6, 1e9),
    ("totaltime", Part::Whole, 1e6, 1e9),
    ("requestduration", Part::Whole, 1e6, 1e9),
    ("eventduration", Part::Whole, 1.0, 1.0),
    ("requestprocessingtime", Part::Queue, 1e9, 1e9),
    ("upstreamresponsetime", Part::Upstream, 1e9, 1e9),
    ("urt", Part::Upstream, 1e9, 1e9),
    ("upstreamservicetime", Part::Upstream, 1e6, 1e6),
    ("originduration", Part::Upstream, 1.0, 1.0),
    ("service", Part::Upstream, 1e6, 1e6),
    ("upstreamconnecttime", Part::Connect, 1e9, 1e9),
    ("uct", Part::Connect, 1e9, 1e9),
    ("connect", Part::Connect, 1e6, 1e6),
    ("queue", Part::Queue, 1e6, 1e6),
    ("upstreamqueuetime", Part::Queue, 1e9, 1e9),
];

/// What was found, with the rank of its name: a better name replaces it.
#[derive(Default)]
struct Found<'a> {
    entry: Entry<'a>,
    moment: Option<(usize, String)>,
    target: Option<usize>,
    /// Whether a field has a name that only Traefik gives: its times are in nanoseconds.
    is_traefik: bool,
    whole: Option<(f64, f64)>,
    is_router: bool,
}

/// Reads a JSON object.
///
/// # Errors
/// What is wrong with it.
pub fn json(line: &str) -> Result<Entry<'static>, &'static str> {
    let value: Value = serde_json::from_str(line).map_err(|_| "it is not one JSON object")?;
    if !value.is_object() {
        return Err("it is not one JSON object");
    }
    let mut found = Found::default();
    object(&value, "", 0, &mut found)?;
    found.finish()
}

fn object(value: &Value, prefix: &str, depth: u8, found: &mut Found<'static>) -> Result<(), &'static str> {
    let is_searched = |name: &str| REQUEST_OBJECTS.contains(&name) || ANSWER_OBJECTS.contains(&name);
    for (key, value) in value.as_object().into_iter().flatten() {
        let name = plain(key);
        match value {
            Value::Object(_) if depth + 1 < DEPTH && is_searched(&name) => {
                object(value, &name, depth + 1, found)?;
            }
            Value::String(text) => found.put(&name, prefix, depth, text)?,
            Value::Number(number) => found.put(&name, prefix, depth, &number.to_string())?,
            _ => {}
        }
    }
    Ok(())
}

/// Reads a line of `key=value` words, with a time before them or among them.
///
/// # Errors
/// What is wrong with it.
pub fn pairs(line: &str) -> Result<Entry<'static>, &'static str> {
    let mut found = Found { is_router: line.contains("router"), ..Found::default() };
    let mut rest = line.trim_start();
    let mut pairs = 0;
    while !rest.is_empty() {
        let end = rest.find([' ', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if let Some(value) = after.strip_prefix('=') {
            let (text, after) = match value.strip_prefix('"') {
                Some(quoted) => {
                    let end = quoted.find('"').ok_or("a quote in it is not closed")?;
                    (&quoted[..end], &quoted[end + 1..])
                }
                None => value.split_at(value.find(' ').unwrap_or(value.len())),
            };
            found.put(&plain(word), "", 0, text)?;
            pairs += 1;
            rest = after.trim_start();
            continue;
        }
        if pairs == 0 && found.moment.is_none() && super::time::parse(word).is_some() && word.len() > 10 {
            found.moment = Some((MOMENT_NAMES.len(), word.to_owned()));
        }
        rest = after.trim_start();
    }
    if pairs < 2 {
        return Err("it has no key=value words");
    }
    found.finish()
}

impl Found<'_> {
    fn put(&mut self, name: &str, prefix: &str, depth: u8, text: &str) -> Result<(), &'static str> {
        let is = |names: &[&str]| names.contains(&name);
        if let Some(rank) = MOMENT_NAMES.iter().position(|n| *n == name).filter(|_| depth == 0) {
            // A time that is in seconds of this day is a duration of another field.
            let is_moment = super::time::parse(text).is_some_and(|at| at > 100_000_000_000_000_000);
            if is_moment && self.moment.as_ref().is_none_or(|(best, _)| rank < *best) {
                self.moment = Some((rank, text.to_owned()));
                self.is_traefik |= name == "startutc";
            }
            if is_moment {
                return Ok(());
            }
        }
        if is(&METHOD_NAMES) {
            self.entry.method = Cow::Owned(text.to_owned());
        } else if let Some(rank) = TARGET_NAMES.iter().position(|n| *n == name) {
            if self.target.is_none_or(|best| rank < best) {
                self.target = Some(rank);
                self.entry.target = Cow::Owned(text.to_owned());
            }
        } else if is(&LINE_NAMES) {
            let mut words = text.split(' ');
            self.entry.method = Cow::Owned(words.next().unwrap_or_default().to_owned());
            self.target = Some(0);
            self.entry.target = Cow::Owned(words.next().unwrap_or_default().to_owned());
        } else if is(&STATUSES) {
            self.entry.status = status(text)?;
        } else if is(&SERVERS) {
            let last = text.rsplit([',', ' ']).find(|part| !part.is_empty() && *part != ":").unwrap_or("");
            self.entry.server = Cow::Owned(if last == "-" { String::new() } else { last.to_owned() });
        } else {
            self.time(name, prefix, text)?;
        }
        Ok(())
    }

    fn time(&mut self, name: &str, prefix: &str, text: &str) -> Result<(), &'static str> {
        let joined = format!("{prefix}{name}");
        let exact = |wanted: &str| TIMES.iter().find(|(known, ..)| *known == wanted).copied();
        let by_unit = || {
            UNITS.iter().find_map(|(unit, ns)| {
                let (_, part, ..) = exact(name.strip_suffix(unit)?)?;
                Some((part, *ns, *ns))
            })
        };
        let known = exact(&joined).or_else(|| exact(name)).map(|(_, part, whole, other)| (part, whole, other));
        let Some((part, whole, other)) = known.or_else(by_unit) else { return Ok(()) };
        let mut sum = None;
        for one in text.split([',', ' ']).filter(|one| !matches!(*one, "" | ":" | "-")) {
            let unit = UNITS.iter().find_map(|(unit, ns)| Some((one.strip_suffix(unit)?, *ns)));
            let (digits, unit) = unit.unwrap_or((one, if one.contains('.') { other } else { whole }));
            let number: f64 = digits.parse().map_err(|_| "its response time is not a number")?;
            if part == Part::Whole && number < 0.0 {
                return Err("its response time is negative");
            }
            let has_own_unit = digits.len() < one.len();
            if part == Part::Whole && !has_own_unit && name == "duration" && unit == 1e6 && prefix.is_empty() {
                // Of Traefik's numbers it is known only when all names were seen.
                self.whole = Some((number, unit));
                continue;
            }
            if let Some(ns) = from_number(number, unit)? {
                sum = Some(sum.unwrap_or(0) + ns);
            }
        }
        if sum.is_some() {
            *self.entry.part(part) = sum;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Entry<'static>, &'static str> {
        let (rank, text) = self.moment.take().ok_or("it has no time under a usual name (time, timestamp, ts, …)")?;
        let edge = if rank < STARTS { Edge::Start } else { Edge::End };
        if let Some((number, unit)) = self.whole {
            let unit = if self.is_traefik { 1.0 } else { unit };
            self.entry.whole_ns = self.entry.whole_ns.or(from_number(number, unit)?);
        }
        let mut entry = self.entry;
        entry.moment(&text, edge)?;
        if self.is_router && entry.whole_ns.is_none() {
            // Heroku's router writes the two parts of the whole.
            entry.whole_ns = entry.upstream_ns.map(|ns| ns + entry.connect_ns.unwrap_or(0));
        }
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Ok(Entry {
            at: entry.at,
            is_whole_second: entry.is_whole_second,
            method: owned(entry.method),
            target: owned(entry.target),
            status: entry.status,
            server: owned(entry.server),
            whole_ns: entry.whole_ns,
            upstream_ns: entry.upstream_ns,
            connect_ns: entry.connect_ns,
            queue_ns: entry.queue_ns,
            response_ns: None,
        })
    }
}

/// A name in lower case, without `_`, `-`, `.` and `@`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !"_-.@".contains(*c)).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
