//! A proxy's slots for the servers behind it: HAProxy sends a server at most `maxconn` requests at
//! once, and queues the others itself, where the app does not see them. To a request a slot is a
//! worker: it waits for a free one, and holds it until it is answered.

use holdup_recording::Labels;
use holdup_recording::metrics::haproxy;

use super::{Levels, Workers, around, mean};
use crate::{Evidence, View};

impl Workers {
    /// Evidence that points at a proxy's queue; none for an app server.
    pub fn queue_evidence(&self, expected: impl Into<String>, text: impl Into<String>) -> Option<Evidence> {
        let labels = Labels::new([("metric", haproxy::QUEUED_REQUESTS.name), ("backend", self.backend.as_deref()?)]);
        let observed = format!("{:.1}", self.queue.unwrap_or_default());
        Some(Evidence::new("samples", "value", labels, self.window, observed, expected, text))
    }
}

impl View<'_> {
    /// The slots of the backend with the longest queue, or else with the largest share of them
    /// taken; none if no proxy reports slots.
    pub fn slots(&self) -> Option<Workers> {
        let used = haproxy::SLOTS_USED.name;
        let sources = self.sources_of(used);
        let backends = sources.into_iter().flat_map(|source| {
            let names = self.label_values(used, "backend");
            names.into_iter().filter_map(move |backend| self.slots_of(source, &backend))
        });
        let queue = |slots: &Workers| slots.queue.unwrap_or_default();
        backends.max_by(|a, b| queue(a).total_cmp(&queue(b)).then(a.busy_ratio().total_cmp(&b.busy_ratio())))
    }

    fn slots_of(&self, source: &str, backend: &str) -> Option<Workers> {
        let labels = [("backend", backend)];
        let levels = |metric| self.levels(source, metric, &labels);
        let (used, most) = (levels(haproxy::SLOTS_USED.name), levels(haproxy::SLOTS.name));
        let queued = levels(haproxy::QUEUED_REQUESTS.name);
        if used.is_empty() || most.is_empty() {
            return None;
        }
        // Requests of one user may have to wait for one server while another has free slots.
        let is_full = |at: &i64| queued.get(at).is_some_and(|n| *n > 0.0) || used.get(at) >= most.get(at);
        let full: Vec<i64> = used.keys().filter(|at| is_full(at)).copied().collect();
        // The limit can be moved while the proxy runs: the one at which requests waited counts.
        let at_limit = full.last().and_then(|at| most.get(at)).copied();
        Some(Workers {
            source: source.to_owned(),
            server: "HAProxy",
            busy: mean(&used),
            most: at_limit.unwrap_or_else(|| most.values().copied().fold(0.0, f64::max)),
            full_ratio: full.len() as f64 / used.len() as f64,
            full: around(full),
            queue: Some(mean(&queued)),
            queue_is_kernels: false,
            served_per_second: self.per_second(source, haproxy::REQUESTS.name, &labels),
            is_self_reported: false,
            metric: haproxy::SLOTS_USED.name,
            window: self.window,
            queue_time_ms: self.gauge(haproxy::QUEUE_TIME.name, &labels, "").ok().map(|time| time.mean * 1e3),
            backend: Some(backend.to_owned()),
        })
    }

    /// How many servers of the proxy `source` have slots in `backend`.
    pub fn servers_with_slots(&self, source: &str, backend: &str) -> usize {
        let labels = [("backend", backend)];
        self.index.series(haproxy::SLOTS.name, &labels).filter(|((of, _), _)| of == source).count()
    }

    /// Requests that wait in proxies' queues, by instant, less those of other clients. `own` is how
    /// many requests the client got answered in the window: where a backend answered more, others
    /// have as large a share of its queue.
    pub fn queued_at_proxy(&self, own: f64) -> Levels {
        let queued = haproxy::QUEUED_REQUESTS.name;
        let whole = |source: &str| {
            let mut sum = Levels::new();
            for backend in self.label_values(queued, "backend") {
                let labels = [("backend", backend.as_str())];
                let grown = self.growths(|of| of == source, haproxy::REQUESTS.name, &labels);
                let answered: f64 = grown.iter().map(|growth| growth.delta).sum();
                let own_ratio = (own / answered.max(own).max(1.0)).min(1.0);
                for (at, n) in self.levels(source, queued, &labels) {
                    *sum.entry(at).or_default() += n * own_ratio;
                }
            }
            sum
        };
        // Of several proxies one is at work, the others stand by.
        let all = self.sources_of(queued).into_iter().map(whole);
        all.max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

    const SOURCE: &str = "haproxy:/run/h.sock";

    /// A backend of two servers with two slots each, of which so many are taken.
    fn backend(made: SyntheticRecording, name: &'static str, used: [f64; 2], queued: f64) -> SyntheticRecording {
        let server = |server: &'static str| [("backend", name), ("server", server)];
        made.gauge(SOURCE, "haproxy_slots", &server("a"), 2.0)
            .gauge(SOURCE, "haproxy_slots", &server("b"), 2.0)
            .gauge(SOURCE, "haproxy_slots_used", &server("a"), used[0])
            .gauge(SOURCE, "haproxy_slots_used", &server("b"), used[1])
            .gauge(SOURCE, "haproxy_queued_requests", &[("backend", name)], queued)
            .gauge(SOURCE, "haproxy_queued_requests", &server("a"), 1.0)
            .counter(SOURCE, "haproxy_requests_total", &[("backend", name)], 40.0)
    }

    #[test]
    fn the_backend_with_the_queue_and_not_the_sum_of_all() {
        let made = backend(SyntheticRecording::new(10), "idle", [0.0, 0.0], 0.0);
        let made = backend(made, "app", [2.0, 2.0], 7.0);
        let slots = made.seen(|view| view.slots()).unwrap();
        assert_eq!((slots.backend.as_deref(), slots.busy, slots.most), (Some("app"), 4.0, 4.0));
        assert_eq!((slots.queue, slots.full_ratio, slots.served_per_second), (Some(8.0), 1.0, Some(40.0)));
        assert_eq!(slots.name(), "slots of HAProxy's backend app");
        // Of 40 a second for ten seconds half are the client's own; all of the other backend's.
        let levels = made.seen(|view| view.queued_at_proxy(200.0));
        assert!(levels.values().all(|n| (n - 4.5).abs() < 0.01), "{levels:?}");
        assert!(
            SyntheticRecording::new(10).seen(|view| view.slots().is_none() && view.queued_at_proxy(1.0).is_empty())
        );
    }

    #[test]
    fn a_queue_for_one_server_is_no_free_slot_of_another() {
        let made = backend(SyntheticRecording::new(10), "app", [2.0, 0.0], 0.0);
        let slots = made.seen(|view| view.slots()).unwrap();
        assert_eq!((slots.busy_ratio(), slots.full_ratio), (0.5, 1.0));
    }

    #[test]
    fn slots_that_were_taken_away_are_counted_as_they_are() {
        let made =
            SyntheticRecording::new(10)
                .counted(SOURCE, "haproxy_slots", &[("backend", "app"), ("server", "a")], |s| {
                    if s < 2 { 50.0 } else { 2.0 }
                })
                .gauge(SOURCE, "haproxy_slots_used", &[("backend", "app"), ("server", "a")], 2.0)
                .counted(SOURCE, "haproxy_queued_requests", &[("backend", "app")], |s| if s < 2 { 0.0 } else { 7.0 });
        assert_eq!(made.seen(|view| view.slots()).unwrap().most, 2.0);
    }

    #[test]
    fn a_full_proxy_goes_before_a_full_server() {
        let made = SyntheticRecording::new(10).gauge("puma:app", "puma_max_threads", &[], 4.0).gauge(
            "puma:app",
            "puma_pool_capacity",
            &[],
            0.0,
        );
        let full = backend(made, "app", [2.0, 2.0], 7.0);
        full.seen(|view| {
            assert_eq!(view.workers().unwrap().server, "HAProxy");
            assert_eq!(view.app_workers().unwrap().name(), "workers of Puma");
        });
    }
}
