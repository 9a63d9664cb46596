//! The server's own monitor of latency: what made its one thread stand still, and for how long. It is
//! off unless `latency-monitor-threshold` is set; then it keeps the longest stop of each second by event.

use std::collections::BTreeMap;

use super::resp::Reply;

/// Most events that are followed: a server has some twenty.
const EVENTS_MAX: usize = 32;

/// A stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// The server's word for what it did.
    pub(super) event: String,
    /// Seconds since 1970 by the server's clock.
    pub(super) at_s: i64,
    pub(super) ms: i64,
}

impl Stop {
    fn last(&self) -> (i64, i64) {
        (self.at_s, self.ms)
    }
}

/// Until when each event was read.
#[derive(Default)]
pub(super) struct Latency {
    /// The last stop by event: seconds since 1970, and milliseconds. A longer one of the same second is
    /// another. None before the first look.
    seen: Option<BTreeMap<String, (i64, i64)>>,
}

impl Latency {
    /// The events that happened since the last look; of the first look none. What was known of them ends
    /// with the server, which `has_restarted` since.
    pub(super) fn moved(&mut self, latest: &[Stop], has_restarted: bool) -> Vec<String> {
        let Some(seen) = &mut self.seen else {
            self.seen = Some(latest.iter().map(|stop| (stop.event.clone(), stop.last())).collect());
            return Vec::new();
        };
        if has_restarted {
            seen.clear();
        }
        let is_new = |stop: &&Stop| seen.get(&stop.event).is_none_or(|last| stop.last() > *last);
        latest.iter().filter(is_new).map(|stop| stop.event.clone()).collect()
    }

    /// The stops of `event` that were not read before, by its `history`.
    pub(super) fn new_ones(&mut self, event: &str, history: &Reply) -> Vec<Stop> {
        let seen = self.seen.get_or_insert_default();
        let since = seen.get(event).copied().unwrap_or((i64::MIN, 0));
        let of = |entry: &Reply| match entry {
            Reply::List(parts) => match parts[..] {
                [Reply::Number(at_s), Reply::Number(ms), ..] => Some(Stop { event: event.to_owned(), at_s, ms }),
                _ => None,
            },
            _ => None,
        };
        let all = if let Reply::List(list) = history { &list[..] } else { &[] };
        let new: Vec<Stop> = all.iter().filter_map(of).filter(|stop| stop.last() > since && stop.ms > 0).collect();
        if let Some(last) = new.iter().map(Stop::last).max() {
            seen.insert(event.to_owned(), last);
        }
        new
    }
}

/// The latest stop of each event; what is not one, and a name that no server has, is left out.
pub(super) fn latest(reply: &Reply) -> Option<Vec<Stop>> {
    let Reply::List(list) = reply else { return None };
    let of = |entry: &Reply| {
        let Reply::List(parts) = entry else { return None };
        let [Reply::Text(event), Reply::Number(at_s), Reply::Number(ms), ..] = &parts[..] else { return None };
        let is_name = event.len() <= 40 && event.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        is_name.then(|| Stop { event: event.clone(), at_s: *at_s, ms: *ms })
    };
    Some(list.iter().filter_map(of).take(EVENTS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: Vec<Reply>) -> Reply {
        Reply::List(entries)
    }

    fn told(event: &str, at_s: i64) -> Reply {
        let name = Reply::Text(event.to_owned());
        list(vec![name, Reply::Number(at_s), Reply::Number(120), Reply::Number(900)])
    }

    #[test]
    fn a_stop_counts_once_and_those_of_before_do_not() {
        let mut latency = Latency::default();
        let history =
            |times: &[i64]| list(times.iter().map(|at| list(vec![Reply::Number(*at), Reply::Number(120)])).collect());
        let look = |at_s: i64| latest(&list(vec![told("fork", at_s)])).unwrap();
        assert!(latency.moved(&look(10), false).is_empty(), "from before");
        assert!(latency.moved(&look(10), false).is_empty());
        assert_eq!(latency.moved(&look(13), false), ["fork"]);
        let times = |stops: Vec<Stop>| stops.iter().map(|stop| stop.at_s).collect::<Vec<_>>();
        assert_eq!(times(latency.new_ones("fork", &history(&[8, 10, 12, 13]))), [12, 13]);
        assert!(latency.moved(&look(13), false).is_empty());
        let longer = Stop { ms: 300, ..look(13).remove(0) };
        assert_eq!(latency.moved(&[longer], false), ["fork"], "a longer one of the same second");
        assert_eq!(latency.moved(&look(13), true), ["fork"], "another server");
        assert_eq!(times(latency.new_ones("fork", &history(&[13]))), [13]);
    }

    #[test]
    fn names_and_entries_that_no_server_has_are_left_out() {
        let reply = list(vec![told("user:7 s3cret", 3), told("aof-write", 4), Reply::Nothing]);
        let found = latest(&reply).unwrap();
        assert_eq!(found.iter().map(|stop| stop.event.as_str()).collect::<Vec<_>>(), ["aof-write"]);
        assert!(latest(&Reply::Error("ERR unknown command".to_owned())).is_none());
        assert!(Latency::default().new_ones("fork", &Reply::Nothing).is_empty());
    }
}
