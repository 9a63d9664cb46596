//! Lines of HAProxy's log, of HTTP and of TCP, with any fields around them: how each session ended, and how
//! long it stood in the proxy's queue. A log of response times has a reader of its own; this one reads the few
//! lines that people quote.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use holdup_recording::{Labels, events};
use regex::Regex;

use super::{Context, Kind, Line, number, text};

pub(super) const KIND: Kind = Kind::lines("HAProxy's log", |lines| session(text(lines, 0)).is_some(), read);

/// How a session ended, by the first two letters of its state: an error, and in words (HAProxy, Configuration
/// Manual, 8.5).
const ENDS: [(&str, &str, &str); 8] = [
    ("sQ", events::WORKERS_BUSY, "gave up waiting in the proxy's queue: all slots of its servers were taken"),
    ("CQ", events::WORKERS_BUSY, "ended by the client in the proxy's queue: all slots of its servers were taken"),
    ("cQ", events::WORKERS_BUSY, "ended in the proxy's queue: all slots of its servers were taken"),
    ("sH", events::UPSTREAM_TIMEOUT, "gave up waiting for the answer of the server behind it"),
    ("sD", events::UPSTREAM_TIMEOUT, "gave up waiting for more of the server's answer"),
    ("sC", events::UPSTREAM_UNREACHABLE, "could not connect to the server in time"),
    ("SC", events::UPSTREAM_UNREACHABLE, "found no server that took its connection"),
    ("PC", events::TOO_MANY_CONNECTIONS, "refused to open a connection because a limit of its own was reached"),
];

/// From this share (0-1) of a session's time in the queue, that is what it waited for …
const MOST: f64 = 0.5;

/// … if it was at least so long, milliseconds.
const LONG_MS: f64 = 100.0;

/// One session: its state at the end, and the part (0-1) of its time that it stood in the queue.
struct Session<'l> {
    end: &'l str,
    queued: f64,
}

fn pattern() -> Option<&'static Regex> {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    let make = || {
        // Frontend, backend and server; times; for HTTP the status; bytes; for HTTP two cookies; the state;
        // connections and queues.
        Regex::new(
            r"\S+ [^\s/]+/\S+ (-?\d+(?:/[-+]?\d+){2,4}) (?:-?\d{1,3} )?\+?\d+ (?:\S+ \S+ )?([A-Za-z-]{2}(?:[A-Za-z-]{2})?) \d+/\d+/\d+/\d+/\+?\d+ \d+/\d+",
        )
        .ok()
    };
    PATTERN.get_or_init(make).as_ref()
}

fn session(line: &str) -> Option<Session<'_>> {
    // Times and counts have slashes.
    if line.len() > 8_192 || line.bytes().filter(|byte| *byte == b'/').count() < 7 {
        return None;
    }
    let found = pattern()?.captures(line)?;
    let times: Vec<f64> = found.get(1)?.as_str().split('/').filter_map(number).collect();
    // Of HTTP the time of the request comes first; of TCP the time in the queue does.
    let queued_ms = if times.len() >= 5 { times.get(1) } else { times.first() }.copied().unwrap_or(0.0);
    let whole_ms = times.last().copied().unwrap_or(0.0);
    let queued = if queued_ms >= LONG_MS { queued_ms / whole_ms.max(queued_ms) } else { 0.0 };
    Some(Session { end: found.get(2)?.as_str().get(..2)?, queued })
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let (mut ends, mut queued, mut used): (BTreeMap<usize, usize>, usize, usize) = (BTreeMap::new(), 0, 0);
    for line in lines {
        let Some(session) = session(&line.text) else { break };
        used += 1;
        match ENDS.iter().position(|(state, ..)| *state == session.end) {
            Some(end) => *ends.entry(end).or_default() += 1,
            None => queued += usize::from(session.queued >= MOST),
        }
    }
    let at = context.instant();
    context.out.setting(at, "haproxy:", "log.sessions", used.to_string());
    let mut put = |error: &str, text: String, count: usize| {
        let labels = Labels::new([("error", error)]).with(events::COUNT, count.to_string());
        context.out.event(at, events::ERROR, text, labels);
    };
    for (end, count) in ends {
        if let Some((state, error, words)) = ENDS.get(end) {
            put(error, format!("{count} of {used} sessions of the proxy ({state}) {words}"), count);
        }
    }
    // One may be chance.
    if queued >= 2 {
        let words = "stood in its queue for most of their time: all slots of its servers were taken";
        put(events::WORKERS_BUSY, format!("{queued} of {used} sessions of the proxy {words}"), queued);
    }
    used.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP: &str = r#"192.0.2.7:50112 [03/Nov/2026:08:09:10.250] web~ shop/one 2/310/4/84/401 504 912 - - sH-- 9/9/7/3/0 6/0 {agent} "GET /cart/17 HTTP/1.1""#;

    #[test]
    fn the_end_of_a_session_is_read_in_any_form() {
        let tcp = "Nov  3 08:09:10 edge haproxy[8]: 192.0.2.7:50112 [03/Nov/2026:08:09:10.250] db db/one 5000/-1/5000 0 sQ 9/9/7/3/0 6/0";
        let extra = format!("id=7 {HTTP} TLSv1.3");
        for (line, end, queued) in [(HTTP, "sH", 0.77), (tcp, "sQ", 1.0), (extra.as_str(), "sH", 0.77)] {
            let session = session(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((session.end, (session.queued * 100.0).round() / 100.0), (end, queued), "{line}");
        }
        for other in ["GET /a/b/c/d/e/f/g/h HTTP/1.1", "1/2/3/4/5 200 9", "/var/lib/a/b/c/d/e 1/2/3"] {
            assert!(session(other).is_none(), "{other}");
        }
    }

    #[test]
    fn sessions_that_ended_well_make_no_event() {
        let calm = HTTP.replace("sH--", "----").replace("/310/", "/0/");
        let events = |log: &str| {
            let mut context = Context::default();
            read(&super::super::super::paste::lines(log.as_bytes(), |_| false), &mut context);
            context.out.batch.events.len()
        };
        assert_eq!(events(&format!("{calm}\n{calm}\n{calm}\n")), 0);
        let queued = HTTP.replace("sH--", "----");
        assert_eq!(events(&format!("{queued}\n{queued}\n{calm}\n")), 1);
    }
}
