//! Access logs, read twice: as arrivals that a load replays ([`combined`], [`json_arrival`]), and as
//! an account of response time: lines in, counters by second out, in the shape of the histogram that
//! an app reports of its own requests. Memory is bounded for a log of any size.
//!
//! A server writes a line when the request has ended. Its time belongs to the second in which the
//! request came: the moment of the line less the time it took.

#![forbid(unsafe_code)]

mod columns;
pub mod combined;
mod entry;
mod format;
mod haproxy;
pub mod lines;
mod names;
pub mod request;
mod route;
mod template;
pub mod time;
mod timeline;

use std::collections::HashMap;

use serde::Serialize;

pub use entry::Entry;
pub use format::Format;
pub use names::arrival as json_arrival;
pub use request::{Arrival, Request};
pub use route::pattern;
pub use timeline::{Family, Pairs, SLOTS_MAX, SeriesCount, SeriesId, Timeline};

use lines::{Line, MAX_LINE};

/// Lines by which a format is recognised.
pub const SAMPLE_LINES: usize = 200;

/// Unreadable lines that are kept to be shown.
const SHOWN: usize = 3;

/// Longest route or address, characters.
const LABEL_MAX: usize = 100;

/// Routes that are kept apart.
const ROUTES_MAX: usize = 50;

/// Methods that OpenTelemetry keeps apart.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// Its file.
    pub file: String,
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

/// Counts of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Lines that are neither empty nor comments.
    pub lines: u64,
    /// Requests without a response time.
    pub untimed: u64,
    /// Answers with a status of 500 or more.
    pub failed: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Requests more than a day from all others.
    pub strays: u64,
    /// The first lines that could not be read.
    pub first_unreadable: Vec<Unreadable>,
}

/// A log being read.
#[derive(Debug)]
pub struct AccessLog {
    format: Format,
    counts: Counts,
    timeline: Timeline,
    routes: Vec<String>,
    /// Series by route, method and status.
    served: HashMap<(u16, u8, u16), [SeriesId; 2]>,
    servers: HashMap<String, [SeriesId; 2]>,
    queue: Option<SeriesId>,
}

/// The result of a log.
#[derive(Debug)]
pub struct Account {
    /// The format's name.
    pub format: String,
    /// Counts of lines.
    pub counts: Counts,
    /// The counters.
    pub timeline: Timeline,
}

impl AccessLog {
    /// A log in `format`.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            counts: Counts::default(),
            timeline: Timeline::default(),
            routes: Vec::new(),
            served: HashMap::new(),
            servers: HashMap::new(),
            queue: None,
        }
    }

    /// Reads one line of `file`.
    pub fn line(&mut self, file: &str, number: u64, line: Line<'_>) {
        let bytes = match line {
            Line::Whole(bytes) => bytes.trim_ascii(),
            Line::TooLong => return self.refuse(file, number, &format!("it is longer than {} KiB", MAX_LINE / 1024)),
        };
        if bytes.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        if let (format::Shape::Columns(columns), true) = (&mut self.format.shape, text.starts_with('#')) {
            columns.directive(&text);
            return;
        }
        // Borrowed apart from `self`, which counts what the entry says.
        let format = std::mem::replace(&mut self.format, Format { name: String::new(), shape: format::Shape::Json });
        match format.read(&text).and_then(|entry| entry.started_at().map(|at| (entry, at)).ok_or("it has no time")) {
            Ok((entry, at)) => self.count(&entry, at),
            Err(why) => self.refuse(file, number, why),
        }
        self.format = format;
    }

    fn refuse(&mut self, file: &str, line: u64, why: &str) {
        self.counts.lines += 1;
        self.counts.unreadable += 1;
        if self.counts.first_unreadable.len() < SHOWN {
            self.counts.first_unreadable.push(Unreadable { file: file.to_owned(), line, why: why.to_owned() });
        }
    }

    fn count(&mut self, entry: &Entry<'_>, at: i64) {
        self.counts.lines += 1;
        self.counts.untimed += u64::from(entry.whole_ns.is_none());
        self.counts.failed += u64::from(entry.status >= 500);
        let [served, all] = self.series_of(entry);
        self.timeline.add(at, all, 0);
        if let Some(kind) = failure(entry.status) {
            let id = self.timeline.series(Family::Failed, &vec![(ERROR_TYPE, kind.to_owned())], Pairs::new);
            self.timeline.add(at, id, 0);
        }
        if let Some(ns) = entry.whole_ns {
            self.timeline.add(at, served, ns);
        }
        if entry.upstream_ns.is_some() || entry.connect_ns.is_some() {
            let [client, connect] = self.server(&entry.server);
            for (id, ns) in [(client, entry.upstream_ns), (connect, entry.connect_ns)] {
                if let Some(ns) = ns {
                    self.timeline.add(at, id, ns);
                }
            }
        }
        if let Some(ns) = entry.queue_ns {
            let timeline = &mut self.timeline;
            let id = *self.queue.get_or_insert_with(|| timeline.series(Family::Queue, &Pairs::new(), Pairs::new));
            timeline.add(at, id, ns);
        }
    }

    /// The series of served requests, and of all.
    fn series_of(&mut self, entry: &Entry<'_>) -> [SeriesId; 2] {
        let route = self.route(&entry.target);
        let method = METHODS.iter().position(|m| m.eq_ignore_ascii_case(&entry.method)).unwrap_or(METHODS.len());
        let key = (route, method as u8, entry.status);
        if let Some(known) = self.served.get(&key) {
            return *known;
        }
        let status = entry.status.to_string();
        let name = |route: &str, method: &str| -> Pairs {
            vec![
                ("http_route", route.to_owned()),
                ("http_request_method", method.to_owned()),
                ("http_response_status_code", status.clone()),
            ]
        };
        let route = self.routes.get(usize::from(route)).map_or(OTHER, String::as_str);
        let labels = name(route, METHODS.get(method).unwrap_or(&"_OTHER"));
        let served = self.timeline.series(Family::Server, &labels, || name(OTHER, "_OTHER"));
        let by_status = vec![("http_response_status_code", status.clone())];
        let all = self.timeline.series(Family::Requests, &by_status, Pairs::new);
        self.served.insert(key, [served, all]);
        [served, all]
    }

    /// The number of a request's route; that behind the last is `other`.
    fn route(&mut self, target: &str) -> u16 {
        let path = request::path_of(target.as_bytes()).and_then(|path| std::str::from_utf8(path).ok());
        let route = path.map_or_else(|| OTHER.to_owned(), |path| shown(&pattern(path)));
        match self.routes.iter().position(|known| *known == route) {
            Some(known) => known as u16,
            None if self.routes.len() < ROUTES_MAX => {
                self.routes.push(route);
                self.routes.len() as u16 - 1
            }
            None => ROUTES_MAX as u16,
        }
    }

    /// The series of a server behind the proxy: requests to it, and connecting.
    fn server(&mut self, name: &str) -> [SeriesId; 2] {
        if let Some(known) = self.servers.get(name) {
            return *known;
        }
        let shown = if name.is_empty() { UPSTREAM.to_owned() } else { shown(name) };
        let labels = vec![("server_address", shown)];
        let other = || vec![("server_address", OTHER.to_owned())];
        let both = [Family::Client, Family::Connect].map(|family| self.timeline.series(family, &labels, other));
        if self.servers.len() < SERVERS_MAX {
            self.servers.insert(name.to_owned(), both);
        }
        both
    }

    /// What the log said.
    pub fn finish(mut self) -> Account {
        self.counts.strays = self.timeline.drop_strays();
        Account { format: self.format.name, counts: self.counts, timeline: self.timeline }
    }
}

/// The kind of error that a status stands for: whose patience or strength ended. Answers that are
/// the client's own mistake (404, 401) are not failures of the service.
fn failure(status: u16) -> Option<&'static str> {
    Some(match status {
        // nginx' and Amazon's load balancers' word for a client that closed its connection first.
        460 | 499 => "client_gave_up",
        408 => "request_timeout",
        429 => "too_many_requests",
        502 | 521 | 523 => "upstream_unreachable",
        503 => "unavailable",
        504 | 522 | 524 => "gateway_timeout",
        500..=599 => "server_error",
        _ => return None,
    })
}

/// OpenTelemetry's label of an error's kind.
const ERROR_TYPE: &str = "error_type";

/// Text of a log as a label: short, and without control characters.
fn shown(text: &str) -> String {
    text.chars().take(LABEL_MAX).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Stands for what is too rare to be kept apart.
const OTHER: &str = "other";
/// A server behind the proxy whose address the log does not have.
const UPSTREAM: &str = "upstream";
/// Addresses whose series are remembered; further ones are looked up each time.
const SERVERS_MAX: usize = 1_000;

#[cfg(test)]
mod tests;
