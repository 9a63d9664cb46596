//! The list of slow requests. The first source to notice a slow request (the load, the app's spans)
//! posts it; sources that can still look closer (a database's history, before it is overwritten)
//! wait for it. Posting never blocks, and entries live briefly: those that no reader takes in time
//! are dropped and counted.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use holdup_recording::Batch;

use crate::own_thread::lock;

/// Largest number of slow requests waiting for one reader. Beyond it the oldest are dropped: their
/// history is overwritten first.
const WAITING_MAX: usize = 512;

/// Largest number of trace ids remembered, so that the load's row and the app's span of one request
/// count once.
const REMEMBERED_MAX: usize = 8_192;

/// Longest trace id accepted (W3C Trace Context: 32 hex digits).
const ID_DIGITS: usize = 32;

/// One request that took longer than the threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowRequest {
    /// Its trace id: 32 lower-case hex digits, nothing else.
    pub trace_id: String,
    /// When it was sent or received; nanoseconds since 1970, by the reporter's clock.
    pub begun_at: i64,
    /// When it ended, by the same clock.
    pub ended_at: i64,
}

/// The list. Clones share it.
#[derive(Clone, Debug)]
pub struct SlowRequests(Arc<SharedList>);

#[derive(Debug)]
struct SharedList {
    threshold_ns: i64,
    readers: Mutex<Vec<Weak<Queue>>>,
    remembered: Mutex<RecentIds>,
}

#[derive(Debug, Default)]
struct RecentIds {
    ids: HashSet<String>,
    order: VecDeque<String>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<VecDeque<SlowRequest>>,
    arrived: Condvar,
    dropped: AtomicU64,
}

/// A reader of slow requests.
#[derive(Debug)]
pub struct Reader(Arc<Queue>);

impl SlowRequests {
    /// A list of requests that took longer than `threshold`.
    pub fn new(threshold: Duration) -> Self {
        let threshold_ns = i64::try_from(threshold.as_nanos()).unwrap_or(i64::MAX);
        Self(Arc::new(SharedList { threshold_ns, readers: Mutex::default(), remembered: Mutex::default() }))
    }

    /// The threshold.
    pub fn threshold(&self) -> Duration {
        Duration::from_nanos(self.0.threshold_ns.unsigned_abs())
    }

    /// A reader that receives everything posted from now on.
    pub fn reader(&self) -> Reader {
        let queue = Arc::new(Queue::default());
        let mut readers = lock(&self.0.readers);
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(&queue));
        Reader(queue)
    }

    /// Posts the slow ones among the requests and the app's server spans in `batch`.
    pub fn note(&self, batch: &Batch) {
        for request in &batch.requests {
            let Some(trace_id) = &request.trace_id else { continue };
            // Slowness counts from the intended start, as for its user; the server knows it only
            // from when it was sent.
            if request.done_at - request.intended_at >= self.0.threshold_ns
                && let Some(sent_at) = request.sent_at
            {
                self.put(trace_id, sent_at, request.done_at);
            }
        }
        for span in batch.spans.iter().filter(|span| span.resource == "request") {
            if span.duration_ns >= self.0.threshold_ns {
                self.put(&span.trace_id, span.started_at, span.started_at.saturating_add(span.duration_ns));
            }
        }
    }

    /// Posts one, once: it began and ended at these times (nanoseconds since 1970). An invalid
    /// trace id is ignored.
    pub fn put(&self, trace_id: &str, begun_at: i64, ended_at: i64) {
        // It becomes part of holdup's own SQL: hex digits only.
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if trace_id.len() != ID_DIGITS || !trace_id.bytes().all(is_hex) {
            return;
        }
        if !lock(&self.0.remembered).is_new(trace_id) {
            return;
        }
        let slow = SlowRequest { trace_id: trace_id.to_owned(), begun_at, ended_at };
        for reader in lock(&self.0.readers).iter().filter_map(Weak::upgrade) {
            let mut waiting = lock(&reader.waiting);
            if waiting.len() >= WAITING_MAX {
                waiting.pop_front();
                reader.dropped.fetch_add(1, Ordering::Relaxed);
            }
            waiting.push_back(slow.clone());
            drop(waiting);
            reader.arrived.notify_one();
        }
    }
}

impl RecentIds {
    fn is_new(&mut self, id: &str) -> bool {
        if !self.ids.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

impl Reader {
    /// Waits at most `patience` for slow requests; returns at most `most` of them, the newest
    /// first.
    pub fn wait(&self, patience: Duration, most: usize) -> Vec<SlowRequest> {
        let waiting = lock(&self.0.waiting);
        let (mut waiting, _) = self
            .0
            .arrived
            .wait_timeout_while(waiting, patience, |waiting| waiting.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        // The newest first: the history still has most of their statements.
        let from = waiting.len().saturating_sub(most);
        waiting.split_off(from).into_iter().rev().collect()
    }

    /// How many were dropped because no reader took them in time.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::{Request, Span};

    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn id(number: u64) -> String {
        format!("{number:032x}")
    }

    fn request(number: u64, took_ms: i64) -> Request {
        Request {
            intended_at: 1_000_000_000,
            sent_at: Some(1_001_000_000),
            done_at: 1_000_000_000 + took_ms * 1_000_000,
            trace_id: Some(id(number)),
            ..Request::default()
        }
    }

    #[test]
    fn each_reader_gets_a_slow_request_once() {
        let board = SlowRequests::new(Duration::from_millis(500));
        let (one, two) = (board.reader(), board.reader());
        let span = |number, took_ms: i64, resource: &str| Span {
            started_at: 5,
            duration_ns: took_ms * 1_000_000,
            trace_id: id(number),
            resource: resource.to_owned(),
            ..Span::default()
        };
        let never_sent = Request { sent_at: None, ..request(9, 900) };
        let batch = Batch {
            requests: vec![request(1, 499), request(2, 500), never_sent],
            spans: vec![span(2, 800, "request"), span(3, 800, "database"), span(4, 800, "request")],
            ..Batch::default()
        };
        board.note(&batch);
        let seen: Vec<String> = one.wait(NOW, 10).into_iter().map(|slow| slow.trace_id).collect();
        assert_eq!(seen, [id(4), id(2)], "the newest first, each once");
        let again = two.wait(NOW, 10);
        assert_eq!((again.len(), again[1].begun_at, again[1].ended_at), (2, 1_001_000_000, 1_500_000_000));
        assert!(one.wait(NOW, 10).is_empty());
    }

    #[test]
    fn nothing_but_a_trace_id_gets_into_a_statement() {
        let board = SlowRequests::new(NOW);
        let reader = board.reader();
        for bad in ["", "abc", "0' OR 1=1 -- 00000000000000000000", &"%".repeat(32), &"A".repeat(32), &"g".repeat(32)] {
            board.put(bad, 0, 1);
        }
        assert!(reader.wait(NOW, 10).is_empty());
    }

    #[test]
    fn an_absent_reader_does_not_block_the_board() {
        let board = SlowRequests::new(NOW);
        let reader = board.reader();
        for number in 0..2 * WAITING_MAX as u64 {
            board.put(&id(number), 0, 1);
        }
        assert_eq!(reader.dropped(), WAITING_MAX as u64);
        let seen = reader.wait(NOW, 3);
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[0].trace_id, id(2 * WAITING_MAX as u64 - 1));
        drop(reader);
        board.put(&id(1 << 40), 0, 1);
        let other = board.reader();
        assert!(other.wait(NOW, 1).is_empty(), "what was put up before is not told");
    }

    #[test]
    fn a_reader_is_woken() {
        let board = SlowRequests::new(NOW);
        let reader = board.reader();
        let waiter = std::thread::spawn(move || reader.wait(Duration::from_secs(60), 1).len());
        board.put(&id(1), 0, 1);
        assert_eq!(waiter.join().unwrap(), 1);
    }
}
