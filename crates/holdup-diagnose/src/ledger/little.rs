//! Little's law as a check: milliseconds per request times requests per second give the number that
//! wait at any moment. Where the recording counted the waiting ones, both must agree.

use serde::{Deserialize, Serialize};

use holdup_recording::metrics;
use holdup_recording::words::round;
use holdup_signals::View;
use holdup_signals::app::accounts::{Accounts, Owner, SPEAKS, mean};

/// Largest factor between the two counts: samples are few, and may miss the one second in which
/// most waited.
const AGREES: f64 = 2.0;
/// Smaller counts of waiting requests are ignored.
const FEW: f64 = 0.5;

/// One part of the ledger compared with a count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Part of the ledger.
    pub part: String,
    /// Mean over all joined requests, milliseconds.
    pub ms: f64,
    /// Requests per second.
    pub rate_per_second: f64,
    /// Waiting at any moment according to these two.
    pub expected: f64,
    /// Counted on average.
    pub sampled: f64,
    /// Whether both agree.
    pub agrees: bool,
    /// In words.
    pub text: String,
}

/// How waiting is counted: part, gauge, labels, and its name.
type CountSource = (Owner, &'static str, &'static [(&'static str, &'static str)], &'static str);

const COUNTED: [CountSource; 4] = [
    (
        Owner::PoolWait,
        metrics::app::DB_CLIENT_CONNECTION_PENDING_REQUESTS.name,
        &[],
        "requests waiting for a pooled connection",
    ),
    (
        Owner::AdmissionQueue,
        metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name,
        &[],
        "statements in the thread pool's queue",
    ),
    (Owner::LockWait, metrics::mysql::SESSIONS.name, &[("true_state", "lock_wait")], "sessions waiting for a lock"),
    (
        Owner::LockWait,
        metrics::postgresql::SESSIONS.name,
        &[("true_state", "lock_wait")],
        "sessions waiting for a lock",
    ),
];

/// All checks possible for a stretch.
pub fn checks(accounts: &Accounts<'_>, view: &View<'_>) -> Vec<Check> {
    let joined = || accounts.all.iter().filter(|a| a.is_joined);
    let times = || accounts.all.iter().map(|a| a.request.intended_at);
    let (Some(first), Some(last)) = (times().min(), accounts.all.iter().map(|a| a.request.done_at).max()) else {
        return Vec::new();
    };
    // Joined requests stand for all: their mean, and the rate of all.
    let requests: u64 = accounts.all.iter().map(|a| a.request.count()).sum();
    let rate = requests as f64 / ((last - first) as f64 / 1e9).max(1e-9);
    if accounts.joined_ratio() < SPEAKS {
        return Vec::new();
    }
    let check = |(owner, metric, labels, name): CountSource| {
        let sampled = view.gauge(metric, labels, "").ok()?.mean;
        let ms = mean(joined(), |a| a.amounts.ms(owner));
        let expected = ms / 1e3 * rate;
        let (less, more) = (expected.min(sampled), expected.max(sampled));
        if more < FEW {
            return None;
        }
        let agrees = more <= AGREES * less || more - less < FEW;
        let both = format!(
            "{} per request at {rate:.0}/s make {expected:.1} {name} at any moment, and {sampled:.1} were counted",
            holdup_recording::words::ms(ms)
        );
        let text = match () {
            () if agrees => both,
            () if sampled > expected => {
                format!("{both}: other requests wait there, too, or these requests' share is larger")
            }
            () => format!("{both}: most of that time is not spent there"),
        };
        let part = owner.name().to_owned();
        let (ms, rate_per_second) = (round(ms, 3), round(rate, 1));
        Some(Check {
            part,
            ms,
            rate_per_second,
            expected: round(expected, 2),
            sampled: round(sampled, 2),
            agrees,
            text,
        })
    };
    COUNTED.into_iter().filter_map(check).collect()
}
