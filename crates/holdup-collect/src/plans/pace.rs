//! When to request a statement's plan: at most once per interval, sooner if its time has changed,
//! rarely after a refusal.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use holdup_recording::rows::Statement;

/// Interval between two requests for the same statement.
const AGAIN: Duration = Duration::from_secs(10);

/// Factor by which the mean execution time must have changed since the last request for the plan to
/// be due after [`SOONER`].
const CHANGED: f64 = 2.0;

/// The shorter interval, see [`CHANGED`].
const SOONER: Duration = Duration::from_secs(2);

/// Interval after a statement could not be explained.
const REFUSED: Duration = Duration::from_secs(300);

/// Largest number of statements remembered.
const STATEMENTS_MAX: usize = 2_000;

/// After this many refusals for lack of privileges, and no success, requests stop until a
/// reconnect.
const DENIALS: u32 = 5;

#[derive(Clone, Copy, Debug)]
struct PlanRequest {
    at: Instant,
    each_ns: Option<f64>,
    refused: bool,
}

/// The requests made, and the statements' execution times.
#[derive(Default)]
pub(crate) struct Pace {
    requests: HashMap<String, PlanRequest>,
    /// The last counters of each statement, by digest and database.
    counted: HashMap<(String, Option<String>), (i64, i64)>,
    /// Recent mean execution time, nanoseconds.
    each_ns: HashMap<String, f64>,
    denials: u32,
}

impl Pace {
    /// Takes the statements' counters as the server reports them.
    pub(crate) fn note(&mut self, rows: &[Statement]) {
        if self.counted.len() > STATEMENTS_MAX {
            (self.counted, self.each_ns) = (HashMap::new(), HashMap::new());
        }
        for row in rows.iter().filter(|row| row.kind == "digest_total") {
            let now = (row.calls, row.duration_ns);
            let Some(before) = self.counted.insert((row.digest.clone(), row.database.clone()), now) else { continue };
            let (calls, took) = (now.0 - before.0, now.1 - before.1);
            if calls > 0 && took >= 0 {
                self.each_ns.insert(row.digest.clone(), took as f64 / calls as f64);
            }
        }
    }

    /// How urgent a statement's plan is, higher first; none if it is not due.
    pub(crate) fn urgency(&self, digest: &str, now: Instant) -> Option<f64> {
        if self.denials >= DENIALS {
            return None;
        }
        let each_ns = self.each_ns.get(digest).copied();
        let Some(request) = self.requests.get(digest) else { return Some(f64::INFINITY) };
        let changed = each_ns.zip(request.each_ns).is_some_and(|(now, then)| {
            let ratio = now.max(1.0) / then.max(1.0);
            !(1.0 / CHANGED..CHANGED).contains(&ratio)
        });
        let pause = if request.refused {
            REFUSED
        } else if changed {
            SOONER
        } else {
            AGAIN
        };
        let waited = now.saturating_duration_since(request.at);
        (waited >= pause).then(|| waited.as_secs_f64() / pause.as_secs_f64())
    }

    /// Records a request and whether it succeeded.
    pub(crate) fn record(&mut self, digest: &str, had: bool, now: Instant) {
        if self.requests.len() > STATEMENTS_MAX {
            self.requests.clear();
        }
        if had {
            self.denials = 0;
        }
        let request = PlanRequest { at: now, each_ns: self.each_ns.get(digest).copied(), refused: !had };
        self.requests.insert(digest.to_owned(), request);
    }

    /// Records a refusal for lack of privileges.
    pub(crate) fn record_denial(&mut self, digest: &str, now: Instant) {
        self.record(digest, false, now);
        self.denials += 1;
    }

    /// Forgets refusals: the connection is new.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(calls: i64, ms: i64) -> Vec<Statement> {
        let (kind, digest) = ("digest_total".to_owned(), "a".to_owned());
        vec![Statement { kind, digest, calls, duration_ns: ms * 1_000_000, ..Statement::default() }]
    }

    #[test]
    fn again_after_a_while_sooner_if_it_takes_longer_and_rarely_if_refused() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(pace.urgency("a", start), Some(f64::INFINITY));
        pace.note(&total(10, 10));
        pace.note(&total(20, 20));
        pace.record("a", true, start);
        assert_eq!(pace.urgency("a", after(9)), None);
        assert!(pace.urgency("a", after(10)).is_some());
        pace.note(&total(30, 40));
        assert!(pace.urgency("a", after(3)).is_some(), "it takes twice as long");
        assert_eq!(pace.urgency("a", after(1)), None);
        pace.note(&total(40, 43));
        assert!(pace.urgency("a", after(3)).is_some(), "half as long");
        pace.record("a", false, start);
        assert_eq!(pace.urgency("a", after(60)), None);
    }

    #[test]
    fn the_same_statement_of_two_databases_is_two() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let of = |name: &str, calls, ms| -> Vec<Statement> {
            total(calls, ms).into_iter().map(|row| Statement { database: Some(name.to_owned()), ..row }).collect()
        };
        for calls in [10, 20] {
            pace.note(&of("a", calls, calls));
            pace.note(&of("b", 1_000 + calls, 90_000 + calls));
        }
        pace.record("a", true, start);
        pace.note(&of("a", 30, 30));
        pace.note(&of("b", 1_030, 90_030));
        assert_eq!(pace.urgency("a", start + Duration::from_secs(3)), None, "neither takes longer than before");
    }

    #[test]
    fn an_account_without_the_right_stops_asking() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for number in 0..DENIALS {
            assert!(pace.urgency("new", now).is_some());
            pace.record_denial(&number.to_string(), now);
        }
        assert_eq!(pace.urgency("new", now), None);
        pace.forget();
        assert!(pace.urgency("new", now).is_some());
    }
}
