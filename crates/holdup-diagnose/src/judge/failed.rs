//! Failed requests of an access log in a sentence: how many, who refused, and from which second on.

use holdup_recording::clock;
use holdup_recording::words::{percent, thousands};
use holdup_signals::client::latency::FailedRequests;

use crate::case::Case;
use crate::failures::FAILURES_MATTER;

/// Most kinds to name.
const KINDS: usize = 3;

/// The sentence, with a space before it; none if hardly any failed.
pub(super) fn text(case: &Case<'_>) -> Option<String> {
    let view = case.view(case.whole());
    let failed = FailedRequests::read(view.index, view.window);
    let share = failed.count() / failed.requests.max(1.0);
    if share < FAILURES_MATTER {
        return None;
    }
    let named = failed.kinds.iter().take(KINDS).map(|kind| {
        let at = clock::rfc3339(kind.first_at);
        let at = at.get(11..19).unwrap_or_default();
        format!("{} times {}, from {at} on", thousands(kind.count), who(&kind.kind))
    });
    let named = named.collect::<Vec<_>>().join("; ");
    Some(format!(" By the access log {} of the requests failed: {named}.", percent(share.min(1.0))))
}

/// Who refused, by the kind of error.
fn who(kind: &str) -> &'static str {
    match kind {
        "client_gave_up" => "a client closed its connection before the answer (499)",
        "gateway_timeout" => "a server behind the proxy did not answer in time (504)",
        "upstream_unreachable" => "a server behind the proxy could not be reached or broke off (502)",
        "unavailable" => "the server refused, or had none behind it (503)",
        "too_many_requests" => "a rate limit refused (429)",
        "request_timeout" => "a client did not send its request in time (408)",
        _ => "the app failed (500)",
    }
}
