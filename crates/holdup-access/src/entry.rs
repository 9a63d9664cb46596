//! One line of an access log as facts, and how a field's text becomes one of them.

use std::borrow::Cow;

use super::time;

/// Longest time of a request that is believed, nanoseconds: a day.
pub const LONGEST_NS: i64 = 86_400_000_000_000;

/// Moments that are believed: 1995 to 2100. Before that there were no access logs.
const BELIEVED: std::ops::Range<i64> = 788_918_400_000_000_000..4_102_444_800_000_000_000;

/// Whether a moment is that of the request's arrival or of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// When the request came.
    Start,
    /// When its answer had been sent, as most servers write it.
    End,
}

/// A part of a request's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The wait for the server behind the proxy.
    Upstream,
    /// The time to connect to that server.
    Connect,
    /// The wait in the proxy's own queue.
    Queue,
    /// Passing the answer on.
    Response,
}

/// The unit in which a log writes a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Seconds.
    Seconds,
    /// Seconds that always have a decimal point, as nginx writes them.
    DecimalSeconds,
    /// Seconds with a decimal point, and else milliseconds: W3C logs of CloudFront and of IIS.
    SecondsOrMilliseconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds, always whole.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

/// The meaning of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Not used.
    Other,
    /// A moment.
    Moment(Edge),
    /// The request line.
    Request,
    /// The method.
    Method,
    /// The path, or the address.
    Target,
    /// The status.
    Status,
    /// The address of the server behind the proxy.
    Server,
    /// A time.
    Spent(Part, Scale),
    /// A time that is also a part of the whole, which the log does not have.
    Summand(Part, Scale),
}

/// The facts of one line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry<'a> {
    /// The moment, nanoseconds since the Unix epoch.
    pub at: Option<(i64, Option<Edge>)>,
    /// Whether the moment is a whole second.
    pub is_whole_second: bool,
    /// The method.
    pub method: Cow<'a, str>,
    /// The path with its query, or the address.
    pub target: Cow<'a, str>,
    /// The status; 0 without one.
    pub status: u16,
    /// The address of the server behind the proxy.
    pub server: Cow<'a, str>,
    /// The time of the request, nanoseconds.
    pub whole_ns: Option<i64>,
    /// The wait for the server behind the proxy.
    pub upstream_ns: Option<i64>,
    /// The time to connect to it.
    pub connect_ns: Option<i64>,
    /// The wait in the proxy's queue.
    pub queue_ns: Option<i64>,
    /// The time to pass the answer on.
    pub response_ns: Option<i64>,
}

impl<'a> Entry<'a> {
    /// Stores the text of a field.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn put(&mut self, field: Field, text: &'a str) -> Result<(), &'static str> {
        match field {
            Field::Other => {}
            Field::Moment(edge) => self.moment(text, edge)?,
            Field::Request => {
                let mut words = text.split(' ');
                self.method = Cow::Borrowed(words.next().unwrap_or_default());
                self.target = Cow::Borrowed(words.next().unwrap_or_default());
            }
            Field::Method => self.method = Cow::Borrowed(text),
            Field::Target => self.target = Cow::Borrowed(text),
            Field::Status => self.status = status(text)?,
            Field::Server => self.server = Cow::Borrowed(last_of(text)),
            Field::Spent(part, scale) => *self.part(part) = times(text, scale, part == Part::Whole)?,
            Field::Summand(part, scale) => {
                let spent = times(text, scale, false)?;
                *self.part(part) = spent;
                if let Some(spent) = spent {
                    *self.part(Part::Whole) = Some(self.whole_ns.unwrap_or(0) + spent);
                }
            }
        }
        Ok(())
    }

    /// Stores a moment.
    ///
    /// # Errors
    /// If the text is not one, or one that is not believed.
    pub fn moment(&mut self, text: &str, edge: Edge) -> Result<(), &'static str> {
        let text = text.strip_prefix('[').map_or(text, |rest| rest.strip_suffix(']').unwrap_or(rest));
        let at = time::parse(text).ok_or("its time cannot be read")?;
        if !BELIEVED.contains(&at) {
            return Err("its time is not between 1995 and 2100");
        }
        self.is_whole_second = at % 1_000_000_000 == 0 && !text.contains('.');
        self.at = Some((at, Some(edge)));
        Ok(())
    }

    /// The time of a part.
    pub fn part(&mut self, part: Part) -> &mut Option<i64> {
        match part {
            Part::Whole => &mut self.whole_ns,
            Part::Upstream => &mut self.upstream_ns,
            Part::Connect => &mut self.connect_ns,
            Part::Queue => &mut self.queue_ns,
            Part::Response => &mut self.response_ns,
        }
    }

    /// When the request came. The line of most servers has the moment of its end, so the time it
    /// took is subtracted; a whole second counts as its middle.
    pub fn started_at(&self) -> Option<i64> {
        let (at, edge) = self.at?;
        let at = if self.is_whole_second { at + 500_000_000 } else { at };
        let took = if edge == Some(Edge::Start) { 0 } else { self.whole_ns.unwrap_or(0) };
        Some(at - took)
    }
}

/// The status of an answer, or 0 for `-`.
pub fn status(text: &str) -> Result<u16, &'static str> {
    match text {
        "-" | "" | "-1" => Ok(0),
        _ => text.parse().ok().filter(|n| *n < 1000).ok_or("its status is not a number below 1000"),
    }
}

/// The last of several addresses: the one that gave the answer.
pub fn last_of(text: &str) -> &str {
    let last = text.rsplit([',', ' ']).find(|part| !part.is_empty() && *part != ":").unwrap_or("");
    if last == "-" { "" } else { last }
}

/// The sum of several times, as nginx writes one for each server that it tried; none for `-` and
/// for a negative number, which stands for a phase that the request did not reach.
fn times(text: &str, scale: Scale, is_whole: bool) -> Result<Option<i64>, &'static str> {
    if is_whole && text.is_empty() {
        return Err("it ends before its response time");
    }
    let mut sum = None;
    for part in text.split([',', ' ']).filter(|part| !matches!(*part, "" | ":" | "-" | "\\N")) {
        let Some(ns) = nanoseconds(part, scale)? else {
            if is_whole {
                return Err("its response time is negative");
            }
            continue;
        };
        sum = Some(sum.unwrap_or(0i64) + ns);
    }
    if sum.is_some_and(|ns| ns > LONGEST_NS) {
        return Err("its response time is longer than a day");
    }
    Ok(sum)
}

fn nanoseconds(text: &str, scale: Scale) -> Result<Option<i64>, &'static str> {
    const WRONG: &str = "its response time is not a number of the format's unit";
    let has_point = text.contains('.');
    let unit = match scale {
        Scale::Seconds => 1e9,
        Scale::DecimalSeconds if has_point => 1e9,
        Scale::SecondsOrMilliseconds => {
            if has_point {
                1e9
            } else {
                1e6
            }
        }
        Scale::Milliseconds => 1e6,
        Scale::Microseconds if !has_point => 1e3,
        Scale::Nanoseconds => 1.0,
        Scale::DecimalSeconds | Scale::Microseconds => return if text == "-1" { Ok(None) } else { Err(WRONG) },
    };
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'));
    let number: f64 = text.parse().ok().filter(|_| is_number).ok_or(WRONG)?;
    from_number(number, unit)
}

/// `number` of `unit` nanoseconds; none if it is negative.
///
/// # Errors
/// If it is longer than a day.
pub fn from_number(number: f64, unit: f64) -> Result<Option<i64>, &'static str> {
    let ns = number * unit;
    if !ns.is_finite() || ns > LONGEST_NS as f64 {
        return Err("its response time is longer than a day");
    }
    Ok((ns >= 0.0).then_some(ns.round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(text: &str, scale: Scale) -> Result<Option<i64>, &'static str> {
        let mut entry = Entry::default();
        entry.put(Field::Spent(Part::Upstream, scale), text).map(|()| entry.upstream_ns)
    }

    #[test]
    fn times_in_their_units() {
        let ms = |n: i64| Ok(Some(n * 1_000_000));
        assert_eq!(spent("0.012", Scale::DecimalSeconds), ms(12));
        assert_eq!(spent("0.012, 0.030 : 0.001", Scale::DecimalSeconds), ms(43));
        assert_eq!(spent("-, 0.030", Scale::DecimalSeconds), ms(30));
        assert_eq!(spent("-", Scale::DecimalSeconds), Ok(None));
        assert_eq!(spent("7000", Scale::Microseconds), ms(7));
        assert_eq!(spent("7", Scale::SecondsOrMilliseconds), ms(7));
        assert_eq!(spent("0.007", Scale::SecondsOrMilliseconds), ms(7));
        assert_eq!(spent("-1", Scale::Milliseconds), Ok(None));
        for (text, scale) in [
            ("12", Scale::DecimalSeconds),
            ("1.5", Scale::Microseconds),
            ("inf", Scale::Seconds),
            ("1e3", Scale::Seconds),
            ("86401", Scale::Seconds),
            ("9".repeat(400).as_str(), Scale::Seconds),
            ("x", Scale::Milliseconds),
        ] {
            assert!(spent(text, scale).is_err(), "{text}");
        }
        let mut entry = Entry::default();
        assert!(entry.put(Field::Spent(Part::Whole, Scale::Seconds), "-3").is_err());
    }

    #[test]
    fn a_line_belongs_to_the_second_in_which_its_request_came() {
        let mut entry = Entry::default();
        entry.put(Field::Moment(Edge::End), "[10/Oct/2000:13:55:36 -0700]").unwrap();
        entry.put(Field::Spent(Part::Whole, Scale::DecimalSeconds), "2.250").unwrap();
        assert_eq!(entry.started_at(), Some(971_211_334_250_000_000));
        entry.put(Field::Moment(Edge::Start), "2000-10-10T20:55:36.125Z").unwrap();
        assert_eq!(entry.started_at(), Some(971_211_336_125_000_000));
        assert!(entry.put(Field::Moment(Edge::End), "1970-01-01T00:00:00Z").is_err());
        assert!(entry.put(Field::Moment(Edge::End), "soon").is_err());
    }

    #[test]
    fn the_last_server_answered() {
        let mut entry = Entry::default();
        entry.put(Field::Server, "10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80").unwrap();
        assert_eq!(entry.server, "10.0.0.3:80");
        entry.put(Field::Server, "-").unwrap();
        assert_eq!(entry.server, "");
    }
}
