//! The queue of a proxy between client and app: requests that wait in HAProxy for a slot of a
//! server. At an instant so many requests were with the service, and so many of them in the queue.
//! Over many instants that is their share of the time of requests: Little's law on both sides
//! (L = λW, with one λ).

use super::Intervals;
use super::instants::{self, Instant};
use crate::case::Case;

/// The part's name.
pub(super) const PROXY_QUEUE: &str = "proxy_queue";

/// The share of time in the queue; empty without a proxy's figures. holdup takes the proxy to be
/// between client and app.
pub(super) fn parts(case: &Case<'_>) -> Vec<(&'static str, Intervals)> {
    let view = case.view(case.whole());
    let (Ok(requests), Ok(own)) = (case.requests_in(case.whole()), case.completed_in(case.whole())) else {
        return Vec::new();
    };
    let queued = view.queued_at_proxy(own);
    let mut instants: Vec<_> = queued.into_iter().map(|(at, queued)| Instant::new(at, [queued])).collect();
    instants::count(&mut instants, &requests);
    instants::parts(&instants, &[PROXY_QUEUE])
}

#[cfg(test)]
mod tests {
    use crate::testing::{Judged as _, SyntheticRecording};

    const SOURCE: &str = "haproxy:/run/h.sock";

    /// 50 a second of 400 ms, so 20 with the service, of which 14 wait in a HAProxy that answers so many.
    fn made(answered: f64) -> SyntheticRecording {
        let app = [("backend", "app")];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .target("http://127.0.0.1:80")
            .gauge(SOURCE, "haproxy_queued_requests", &app, 14.0)
            .counter(SOURCE, "haproxy_requests_total", &app, answered)
    }

    fn near(ms: f64, expected: f64) {
        // At the very beginning fewer are on their way.
        assert!((ms - expected).abs() < 0.12 * expected.max(50.0), "{ms} instead of {expected}");
    }

    #[test]
    fn requests_in_its_queue_are_a_part_of_their_own() {
        near(made(50.0).part("proxy_queue"), 280.0);
        // Half of them are of other clients.
        near(made(100.0).part("proxy_queue"), 140.0);
        near(SyntheticRecording::new(12).requests(50, 400).part("proxy_queue"), 0.0);
    }

    #[test]
    fn beside_what_the_kernel_says_of_the_app_behind_it() {
        let server = "server:8080";
        let behind = made(50.0)
            .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 2.0)
            .gauge(server, "server_accepted_connections", &[("pid", "7")], 4.0)
            .gauge(server, "server_answering_connections", &[("pid", "7")], 4.0);
        for (name, ms) in [("proxy_queue", 280.0), ("accept_queue", 40.0), ("app_other", 80.0)] {
            near(behind.part(name), ms);
        }
    }

    #[test]
    fn no_more_than_the_app_leaves() {
        let timed =
            |app_s: f64| {
                made(50.0)
                    .counter("prometheus:app", "http_server_request_duration_seconds_sum", &[], 50.0 * app_s)
                    .counter("prometheus:app", "http_server_request_duration_seconds_count", &[], 50.0)
            };
        near(timed(0.1).part("proxy_queue"), 280.0);
        near(timed(0.1).part("network"), 20.0);
        // A proxy behind the app is no queue in front of it.
        near(timed(0.399).part("proxy_queue"), 1.0);
    }
}
