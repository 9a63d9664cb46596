//! App servers in one vocabulary, whatever the source: how many workers (threads or processes) are
//! busy, how many there are at most, and how many requests wait for one. Puma, uWSGI, PHP-FPM,
//! Tomcat and Jetty report this themselves. From outside, the kernel reports connections that wait
//! to be accepted and connections that the server's processes hold.
//!
//! The same word means different things to different servers. This module alone settles that:
//! Puma's `backlog` stays 0 with hundreds waiting, because they wait in the kernel, and its
//! `running` counts threads that exist, not those at work.
//!
//! It judges nothing. Little's law turns the mean number of waiting requests into milliseconds of a
//! request: [`waited_ms`].

mod asleep;
mod downstream;
mod outside;
mod slots;

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::{Labels, metrics};

use crate::{Evidence, app::timing};
use crate::{View, Window};
pub use downstream::DownstreamService;
pub use outside::Outside;
pub(crate) use outside::called;

/// What to record to learn how busy workers are.
pub const ENABLE: &str = "--watch server:PORT of the app; for the app server's own figures: --watch puma:http://HOST:PORT?token=T, uwsgi:HOST:PORT, php-fpm:HOST:PORT, or prometheus:http://HOST/metrics of a JVM";

/// A sample speaks for this long before and after it, nanoseconds: samples are a second apart.
const SAMPLE_REACH_NS: i64 = 1_000_000_000;

/// The sum over all series of a source, by instant.
pub type Levels = BTreeMap<i64, f64>;

/// Milliseconds that a request spends where `standing` of them are on average, if `per_second` go through: Little's law.
pub fn waited_ms(standing: f64, per_second: f64) -> f64 {
    if per_second > 0.0 { standing / per_second * 1e3 } else { 0.0 }
}

/// The metrics of one kind of server, and what they mean.
struct Teller {
    server: &'static str,
    busy: &'static str,
    /// The upper bound: a gauge of all workers, of the spare ones, or a setting.
    most: Most,
    /// Requests that wait for a worker, and whether they wait in the kernel's accept queue. None
    /// where the kernel has the queue and the server counts something else.
    queue: Option<(&'static str, bool)>,
    /// Counter of requests that it has served.
    served: Option<&'static str>,
    /// Whether workers report by themselves, when they get to it. A stopped worker then keeps
    /// looking idle.
    is_self_reported: bool,
}

enum Most {
    /// A gauge says it.
    Gauge(&'static str),
    /// A gauge of the spare workers; `busy` is counted among them.
    Spare(&'static str),
    /// As many as there are series.
    Series,
    /// The greatest value of a gauge, or a setting.
    Greatest(&'static str, &'static str),
}

const TELLERS: &[Teller] = &[
    Teller {
        server: "Puma",
        busy: metrics::puma::POOL_CAPACITY.name,
        most: Most::Spare(metrics::puma::MAX_THREADS.name),
        queue: Some((metrics::puma::BACKLOG.name, false)),
        served: Some(metrics::puma::REQUESTS.name),
        is_self_reported: true,
    },
    Teller {
        server: "uWSGI",
        busy: metrics::uwsgi::WORKER_BUSY.name,
        most: Most::Series,
        queue: Some((metrics::uwsgi::LISTEN_QUEUE.name, true)),
        served: Some(metrics::uwsgi::REQUESTS.name),
        is_self_reported: false,
    },
    Teller {
        server: "PHP-FPM",
        busy: metrics::php_fpm::ACTIVE_PROCESSES.name,
        most: Most::Greatest(metrics::php_fpm::TOTAL_PROCESSES.name, "pm.max_children"),
        queue: Some((metrics::php_fpm::LISTEN_QUEUE.name, true)),
        served: Some(metrics::php_fpm::ACCEPTED_CONNECTIONS.name),
        is_self_reported: false,
    },
    Teller {
        server: "Tomcat",
        busy: "tomcat_threads_busy_threads",
        most: Most::Gauge("tomcat_threads_config_max_threads"),
        queue: None,
        served: Some("tomcat_global_request_seconds_count"),
        is_self_reported: false,
    },
    Teller {
        server: "Jetty",
        busy: "jetty_threads_busy",
        most: Most::Gauge("jetty_threads_config_max"),
        queue: Some(("jetty_threads_jobs", false)),
        served: None,
        is_self_reported: false,
    },
];

/// Counters of the requests that a server answered, its own and that of the app's HTTP metrics, and
/// whether they are seconds old while workers are busy.
pub fn request_counters() -> impl Iterator<Item = (String, bool)> {
    let own = TELLERS.iter().filter_map(|teller| Some((teller.served?.to_owned(), teller.is_self_reported)));
    own.chain([(format!("{}_count", timing::HTTP_SERVER), false)])
}

/// A server's workers by its own figures.
#[derive(Clone, Debug)]
pub struct Workers {
    /// The source, e.g. `puma:127.0.0.1:9293`.
    pub source: String,
    /// The server's name.
    pub server: &'static str,
    /// Busy on average.
    pub busy: f64,
    /// The most there can be.
    pub most: f64,
    /// Share (0-1) of instants at which all were busy.
    pub full_ratio: f64,
    /// When all were busy.
    pub full: Vec<Window>,
    /// Requests that wait for a worker by the server's own figures, on average; none if it counts
    /// none.
    pub queue: Option<f64>,
    /// Whether they wait in the kernel's accept queue.
    pub queue_is_kernels: bool,
    /// Requests that it served, per second; none if it does not count them.
    pub served_per_second: Option<f64>,
    /// Whether workers report by themselves, when they get to it. A stopped worker then keeps
    /// looking idle.
    pub is_self_reported: bool,
    /// The proxy's backend whose slots these are; none for an app server.
    pub backend: Option<String>,
    /// How long a request waited in the queue by the proxy's own mean, milliseconds; none if it
    /// reports none.
    pub queue_time_ms: Option<f64>,
    metric: &'static str,
    window: Window,
}

impl Workers {
    /// What they are, in words: `workers of Puma`, `slots of HAProxy's backend app`.
    pub fn name(&self) -> String {
        match &self.backend {
            Some(backend) => format!("slots of {}'s backend {backend}", self.server),
            None => format!("workers of {}", self.server),
        }
    }

    /// Busy ones as a share (0-1) of all.
    pub fn busy_ratio(&self) -> f64 {
        self.busy / self.most.max(1e-9)
    }

    /// Evidence that points at how many were busy.
    pub fn evidence(&self, expected: impl Into<String>, text: impl Into<String>) -> Evidence {
        let observed = format!("{:.1} of {:.0}", self.busy, self.most);
        let labels = Labels::new([("metric", self.metric)]);
        Evidence::new("samples", "value", labels, self.window, observed, expected, text)
    }
}

/// Windows around `instants`, as wide as a sample speaks for.
pub fn around(instants: impl IntoIterator<Item = i64>) -> Vec<Window> {
    let reach = |at: i64| Window { from: at - SAMPLE_REACH_NS, to: at + SAMPLE_REACH_NS };
    instants.into_iter().map(reach).collect()
}

/// Their mean.
pub fn mean(levels: &Levels) -> f64 {
    if levels.is_empty() { 0.0 } else { levels.values().sum::<f64>() / levels.len() as f64 }
}

impl View<'_> {
    /// The sum over all series of `metric` of `source`, at each instant of the window.
    pub fn levels(&self, source: &str, metric: &str, labels: &[(&str, &str)]) -> Levels {
        let sums = self.index.sums(metric, |of, own| of == source && own.contains(labels));
        sums.into_iter().filter(|(at, _)| self.window.contains(*at)).collect()
    }

    /// The app server's workers, or the slots that a proxy has for it: those of which the larger
    /// share is busy. None if neither is reported.
    pub fn workers(&self) -> Option<Workers> {
        // If both are full, requests wait where they come first: at the proxy.
        let all = self.app_workers().into_iter().chain(self.slots());
        all.max_by(|a, b| a.busy_ratio().total_cmp(&b.busy_ratio()))
    }

    /// The workers of the server that has the largest share of them busy; none if no server reports
    /// them.
    pub fn app_workers(&self) -> Option<Workers> {
        let all = TELLERS.iter().flat_map(|teller| {
            let sources: BTreeSet<&str> = self.sources_of(teller.busy).into_iter().collect();
            sources.into_iter().filter_map(move |source| self.told_by(teller, source))
        });
        all.max_by(|a, b| a.busy_ratio().total_cmp(&b.busy_ratio()))
    }

    fn told_by(&self, teller: &Teller, source: &str) -> Option<Workers> {
        let told = self.levels(source, teller.busy, &[]);
        let whole = View { window: Window { from: i64::MIN, to: i64::MAX }, ..*self };
        let most_at: Levels = match teller.most {
            Most::Gauge(metric) | Most::Spare(metric) => self.levels(source, metric, &[]),
            Most::Series => {
                let mut count = Levels::new();
                for (_, series) in self.index.series(teller.busy, &[]).filter(|((of, _), _)| of == source) {
                    series.iter().for_each(|(at, _)| *count.entry(*at).or_default() += 1.0);
                }
                count
            }
            Most::Greatest(metric, setting) => {
                let set = self.setting_of(source, setting).and_then(|text| text.parse::<f64>().ok());
                let seen = whole.levels(source, metric, &[]).into_values().fold(0.0, f64::max);
                told.keys().map(|at| (*at, set.unwrap_or(seen))).collect()
            }
        };
        let busy: Vec<(i64, f64, f64)> = told
            .iter()
            .filter_map(|(at, told)| {
                let most = *most_at.get(at).filter(|most| **most > 0.0)?;
                let busy = if matches!(teller.most, Most::Spare(_)) { most - told } else { *told };
                Some((*at, busy.max(0.0), most))
            })
            .collect();
        if busy.is_empty() {
            return None;
        }
        let n = busy.len() as f64;
        let full: Vec<i64> = busy.iter().filter(|(_, busy, most)| busy >= most).map(|(at, ..)| *at).collect();
        let queue =
            teller.queue.map(|(metric, _)| self.levels(source, metric, &[])).filter(|levels| !levels.is_empty());
        Some(Workers {
            source: source.to_owned(),
            server: teller.server,
            is_self_reported: teller.is_self_reported,
            busy: busy.iter().map(|(_, busy, _)| busy).sum::<f64>() / n,
            // While a process restarts, some of its workers may be missing.
            most: busy.iter().map(|(.., most)| *most).fold(0.0, f64::max),
            full_ratio: full.len() as f64 / n,
            full: around(full),
            queue: queue.as_ref().map(mean),
            queue_is_kernels: teller.queue.is_some_and(|(_, is_kernels)| is_kernels),
            served_per_second: teller.served.and_then(|metric| self.per_second(source, metric, &[])),
            backend: None,
            queue_time_ms: None,
            metric: teller.busy,
            window: self.window,
        })
    }

    /// Growth per second of counter `metric` of `source`, over all its series with `labels` and
    /// without restarts; none without two samples.
    fn per_second(&self, source: &str, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let growths = self.growths(|of| of == source, metric, labels);
        let seconds: f64 = growths.iter().map(|g| g.window.seconds()).sum();
        (seconds > 0.0).then(|| growths.iter().map(|g| g.delta).sum::<f64>() / seconds)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

    fn workers(made: &SyntheticRecording) -> Option<(&'static str, f64, f64, f64)> {
        made.seen(|view| view.workers().map(|w| (w.server, w.busy, w.most, w.full_ratio)))
    }

    #[test]
    fn every_server_means_something_else_by_its_words() {
        let worker = |n: &'static str| [("worker", n), ("pid", n)];
        let puma = |spare: f64| {
            let source = "puma:127.0.0.1:9293";
            ["0", "1"].into_iter().fold(SyntheticRecording::new(10), |made, n| {
                made.gauge(source, "puma_max_threads", &worker(n), 5.0)
                    .gauge(source, "puma_pool_capacity", &worker(n), spare)
                    // Threads that exist: they may all be idle.
                    .gauge(source, "puma_running", &worker(n), 5.0)
                    .gauge(source, "puma_backlog", &worker(n), 0.0)
            })
        };
        assert_eq!(workers(&puma(0.0)), Some(("Puma", 10.0, 10.0, 1.0)));
        assert_eq!(workers(&puma(4.0)), Some(("Puma", 2.0, 10.0, 0.0)));
        let uwsgi = SyntheticRecording::new(10).gauge("uwsgi:app", "uwsgi_worker_busy", &worker("1"), 1.0).gauge(
            "uwsgi:app",
            "uwsgi_worker_busy",
            &worker("2"),
            0.0,
        );
        assert_eq!(workers(&uwsgi), Some(("uWSGI", 1.0, 2.0, 0.0)));
        let fpm = SyntheticRecording::new(10)
            .gauge("php-fpm:app", "php_fpm_active_processes", &[("pool", "www")], 4.0)
            .counted("php-fpm:app", "php_fpm_total_processes", &[("pool", "www")], |s| if s < 5 { 2.0 } else { 8.0 });
        assert_eq!(workers(&fpm), Some(("PHP-FPM", 4.0, 8.0, 0.0)));
        assert_eq!(
            workers(&fpm.setting("php-fpm:app", "pm.max_children", "4")),
            Some(("PHP-FPM", 4.0, 4.0, 1.0)),
            "what is set goes before what was seen"
        );
        assert_eq!(workers(&SyntheticRecording::new(10)), None);
        // Without how many there are, nobody knows whether all are busy.
        assert_eq!(workers(&puma(0.0).without("puma_max_threads")), None);
    }

    #[test]
    fn a_restart_does_not_undo_what_was_served() {
        let made = SyntheticRecording::new(10)
            .gauge("puma:app", "puma_max_threads", &[], 5.0)
            .gauge("puma:app", "puma_pool_capacity", &[], 0.0)
            .counted("puma:app", "puma_requests_total", &[], |s| {
                if s < 5 { 100.0 * s as f64 } else { 100.0 * (s - 5) as f64 }
            });
        let served = made.seen(|view| view.workers().and_then(|w| w.served_per_second));
        assert_eq!(served, Some(100.0));
    }
}
