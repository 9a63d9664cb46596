//! Whether a statement belongs to the requests under diagnosis, or to other users of the same
//! server.

use crate::case::Case;
use holdup_signals::app::accounts::{SPEAKS, Sources, trace_of};

/// Least number of requests followed into the database to conclude that none runs the statement.
const LEAST: usize = 20;

/// Whether requests of the stretch run statements of `digest`; none if too few can be followed, or
/// if the server does not identify one of their calls.
pub(crate) fn is_of_requests(case: &Case<'_>, digest: &str) -> Option<bool> {
    let accounts = case.accounts();
    let joined: Vec<u128> =
        accounts.all.iter().filter(|a| a.is_joined && a.calls > 0).filter_map(|a| trace_of(a.request)).collect();
    if joined.len() < LEAST || accounts.joined_ratio() < SPEAKS {
        return None;
    }
    runs(case.sources(), &joined, digest)
}

fn runs(sources: &Sources<'_>, traces: &[u128], digest: &str) -> Option<bool> {
    let mut is_known = true;
    for call in traces.iter().flat_map(|trace| sources.calls().of_trace(*trace)) {
        match call.digest() {
            Some(of_call) if of_call == digest => return Some(true),
            Some(_) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}
