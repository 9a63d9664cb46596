//! Fields that carry their own names: JSON lines, and `key=value` lines as Heroku's router writes
//! them. Names count without case and punctuation, and the lists here have them so. A time's unit is
//! in its name, in its text (`12ms`), or follows from whose name it is.

use std::borrow::Cow;

use serde_json::Value;

use super::entry::{Edge, Entry, Part, from_number, last_of, status};
use super::request::{self, Arrival, Request};

/// Names of the moment, the best first. The first three are a start. A server's own comes before
/// those that a shipper of logs may have added.
const MOMENT_NAMES: [&str; 15] = [
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
const METHOD_NAMES: [&str; 6] = ["method", "requestmethod", "httpmethod", "httprequestmethod", "reqmethod", "verb"];
/// Names of the path or the address, the best first.
const TARGET_NAMES: [&str; 11] = [
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
const LINE_NAMES: [&str; 2] = ["request", "requestline"];
/// Names of the query, where it is not in the target.
const QUERY_NAMES: [&str; 3] = ["querystring", "query", "args"];

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
const REQUEST_OBJECTS: [&str; 5] = ["request", "req", "http", "httprequest", "url"];
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

/// When a request came and what it asked for, by the names of fields: a better name replaces what
/// another gave, and of equal ones the first counts.
#[derive(Default)]
struct Asked {
    /// The rank of its name, and its text.
    moment: Option<(usize, String)>,
    line: Option<String>,
    method: Option<String>,
    target: Option<(usize, String)>,
    query: Option<String>,
}

impl Asked {
    /// Takes a field of an object that is `depth` below the line's; whether it is one of these.
    fn put(&mut self, name: &str, depth: u8, text: &str) -> bool {
        let rank = |names: &[&str]| names.iter().position(|n| *n == name);
        if let Some(rank) = rank(&MOMENT_NAMES).filter(|_| depth == 0) {
            // A time that is in seconds of this day is a duration of another field.
            let is_moment = super::time::parse(text).is_some_and(|at| at > 100_000_000_000_000_000);
            if is_moment && self.moment.as_ref().is_none_or(|(best, _)| rank < *best) {
                self.moment = Some((rank, text.to_owned()));
            }
            if is_moment {
                return true;
            }
        }
        if let Some(rank) = rank(&TARGET_NAMES) {
            if self.target.as_ref().is_none_or(|(best, _)| rank < *best) {
                self.target = Some((rank, text.to_owned()));
            }
            return true;
        }
        let kept =
            [(&METHOD_NAMES[..], &mut self.method), (&LINE_NAMES, &mut self.line), (&QUERY_NAMES, &mut self.query)];
        let mut kept = kept.into_iter().filter(|(names, _)| names.contains(&name));
        kept.next().map(|(_, place)| place.get_or_insert_with(|| text.to_owned())).is_some()
    }
}

/// All that was found.
#[derive(Default)]
struct Found {
    asked: Asked,
    entry: Entry<'static>,
    whole: Option<(f64, f64)>,
    is_router: bool,
}

/// Reads a JSON object.
///
/// # Errors
/// What is wrong with it.
pub fn json(line: &str) -> Result<Entry<'static>, &'static str> {
    let mut found = Found::default();
    let is_searched = |name: &str| REQUEST_OBJECTS.contains(&name) || ANSWER_OBJECTS.contains(&name);
    object(line.as_bytes(), &is_searched, &mut |name, prefix, depth, text| found.put(name, prefix, depth, text))?;
    found.finish()
}

/// Reads a JSON object as what a replay needs of it.
///
/// # Errors
/// What is wrong with it.
pub fn arrival(line: &[u8]) -> Result<Arrival<'static>, &'static str> {
    let mut asked = Asked::default();
    object(line, &|name| REQUEST_OBJECTS.contains(&name), &mut |name, _, depth, text| {
        asked.put(name, depth, text);
        Ok(())
    })?;
    let at = asked.moment.and_then(|(_, text)| super::time::parse(&text));
    let at = at.ok_or("no time under the keys time, timestamp, ts, @timestamp, time_iso8601, msec or the like")?;
    let by_line = asked.line.as_deref().and_then(|line| request::line(line.as_bytes())).map(Request::into_owned);
    let by_parts = || {
        let (method, (_, mut target)) = asked.method.zip(asked.target)?;
        let query = asked.query.as_deref().unwrap_or_default().trim_start_matches('?');
        if !query.is_empty() && !target.contains('?') {
            target = format!("{target}?{query}");
        }
        request::request(method.as_bytes(), target.as_bytes()).map(Request::into_owned)
    };
    Ok(Arrival { at, request: by_line.or_else(by_parts) })
}

/// Takes the name of a field, the object that it is in, how deep that is, and the field's text.
type PutField<'p> = dyn FnMut(&str, &str, u8, &str) -> Result<(), &'static str> + 'p;

/// Calls `put` with each text and number of the object in `line`, and of the objects in it whose
/// names are searched.
fn object(line: &[u8], is_searched: &dyn Fn(&str) -> bool, put: &mut PutField<'_>) -> Result<(), &'static str> {
    const WRONG: &str = "it is not one JSON object";
    let value: Value = serde_json::from_slice(line).map_err(|_| WRONG)?;
    if value.is_object() { fields(&value, ("", 0), is_searched, put) } else { Err(WRONG) }
}

fn fields(
    value: &Value,
    (prefix, depth): (&str, u8),
    is_searched: &dyn Fn(&str) -> bool,
    put: &mut PutField<'_>,
) -> Result<(), &'static str> {
    for (key, value) in value.as_object().into_iter().flatten() {
        let name = plain(key);
        match value {
            Value::Object(_) if depth + 1 < DEPTH && is_searched(&name) => {
                fields(value, (&name, depth + 1), is_searched, put)?;
            }
            Value::String(text) => put(&name, prefix, depth, text)?,
            Value::Number(number) => put(&name, prefix, depth, &number.to_string())?,
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
        if pairs == 0 && found.asked.moment.is_none() && super::time::parse(word).is_some() && word.len() > 10 {
            found.asked.moment = Some((MOMENT_NAMES.len(), word.to_owned()));
        }
        rest = after.trim_start();
    }
    if pairs < 2 {
        return Err("it has no key=value words");
    }
    found.finish()
}

impl Found {
    fn put(&mut self, name: &str, prefix: &str, depth: u8, text: &str) -> Result<(), &'static str> {
        if self.asked.put(name, depth, text) {
            return Ok(());
        }
        if STATUSES.contains(&name) {
            self.entry.status = status(text)?;
        } else if SERVERS.contains(&name) {
            self.entry.server = Cow::Owned(last_of(text).to_owned());
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

    fn finish(self) -> Result<Entry<'static>, &'static str> {
        let Asked { moment, line, method, target, .. } = self.asked;
        let (rank, text) = moment.ok_or("it has no time under a usual name (time, timestamp, ts, …)")?;
        let edge = if rank < STARTS { Edge::Start } else { Edge::End };
        let mut entry = self.entry;
        if let Some((number, unit)) = self.whole {
            // Only Traefik has the best of the names of the moment, and its times are in nanoseconds.
            let unit = if rank == 0 { 1.0 } else { unit };
            entry.whole_ns = entry.whole_ns.or(from_number(number, unit)?);
        }
        entry.moment(&text, edge)?;
        if self.is_router && entry.whole_ns.is_none() {
            // Heroku's router writes the two parts of the whole.
            entry.whole_ns = entry.upstream_ns.map(|ns| ns + entry.connect_ns.unwrap_or(0));
        }
        let (method, target) = match line {
            Some(line) => {
                let mut words = line.split(' ').map(str::to_owned);
                (words.next(), words.next())
            }
            None => (method, target.map(|(_, target)| target)),
        };
        Ok(Entry {
            method: Cow::Owned(method.unwrap_or_default()),
            target: Cow::Owned(target.unwrap_or_default()),
            ..entry
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
