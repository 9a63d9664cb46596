//! Pools of connections and of workers by what their libraries and exporters call their figures: what
//! waits for a place in each, and whether one was free meanwhile.

use holdup_recording::words::thousands;
use holdup_recording::{Labels, metrics};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::view::stretches::within;

use super::MANY;
use crate::strength::{FAIR, STRONG, Strength, WEAK};

/// What a pool holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Connections to a server.
    Connections,
    /// Workers that serve requests.
    Workers,
}

/// The names of a pool's figures; the first of each that was recorded counts.
struct Pool {
    name: &'static str,
    holds: Holds,
    waiting: &'static [&'static str],
    used: &'static [&'static str],
    most: &'static [&'static str],
    free: &'static [&'static str],
}

const fn pool(name: &'static str, holds: Holds, [waiting, used, most, free]: [&'static [&'static str]; 4]) -> Pool {
    Pool { name, holds, waiting, used, most, free }
}

use Holds::{Connections, Workers};

/// Micrometer, OpenTelemetry, client libraries of Prometheus, and exporters. Figures of a live source of
/// holdup's own are judged by that source.
const POOLS: &[Pool] = &[
    pool(
        "HikariCP",
        Connections,
        [
            &[metrics::app::HIKARICP_CONNECTIONS_PENDING.name, "hikaricp_pending_threads"],
            &[metrics::app::HIKARICP_CONNECTIONS_ACTIVE.name, "hikaricp_active_connections"],
            &[metrics::app::HIKARICP_CONNECTIONS_MAX.name, "hikaricp_max_connections"],
            &["hikaricp_connections_idle", "hikaricp_idle_connections"],
        ],
    ),
    pool(
        "the app's pool of connections",
        Connections,
        [
            &[metrics::app::DB_CLIENT_CONNECTION_PENDING_REQUESTS.name, "db_client_connections_pending_requests"],
            &["jdbc_connections_active"],
            &[metrics::app::DB_CLIENT_CONNECTION_MAX.name, "db_client_connections_max", "jdbc_connections_max"],
            &["jdbc_connections_idle"],
        ],
    ),
    pool(
        "Agroal",
        Connections,
        [&["agroal_awaiting_count"], &["agroal_active_count"], &[], &["agroal_available_count"]],
    ),
    pool(
        "r2dbc-pool",
        Connections,
        [
            &["r2dbc_pool_pending_connections"],
            &["r2dbc_pool_acquired_connections"],
            &["r2dbc_pool_max_allocated_connections"],
            &["r2dbc_pool_idle_connections"],
        ],
    ),
    pool(
        "Go's database/sql",
        Connections,
        [
            &[],
            &["go_sql_in_use_connections", "go_sql_stats_connections_in_use", "sql_connections_in_use"],
            &["go_sql_max_open_connections", "go_sql_stats_connections_max_open", "sql_connections_max_open"],
            &[],
        ],
    ),
    pool("pgxpool", Connections, [&[], &["pgxpool_acquired_conns"], &["pgxpool_max_conns"], &[]]),
    pool(
        "Prisma's pool",
        Connections,
        [&["prisma_client_queries_wait"], &["prisma_pool_connections_busy"], &[], &["prisma_pool_connections_idle"]],
    ),
    pool(
        "Active Record's pool",
        Connections,
        [
            &["active_record_connection_pool_waiting", "ruby_active_record_connection_pool_waiting"],
            &["active_record_connection_pool_busy", "ruby_active_record_connection_pool_busy"],
            &["active_record_connection_pool_size", "ruby_active_record_connection_pool_size"],
            &["active_record_connection_pool_idle", "ruby_active_record_connection_pool_idle"],
        ],
    ),
    pool(
        "the MongoDB driver's pool",
        Connections,
        [&["mongodb_driver_pool_waitqueuesize"], &["mongodb_driver_pool_checkedout"], &[], &[]],
    ),
    pool(
        "the HTTP client's pool",
        Connections,
        [
            &["httpcomponents_httpclient_pool_total_pending", "reactor_netty_connection_provider_pending_connections"],
            &["reactor_netty_connection_provider_active_connections"],
            &["httpcomponents_httpclient_pool_total_max", "reactor_netty_connection_provider_max_connections"],
            &["reactor_netty_connection_provider_idle_connections"],
        ],
    ),
    pool(
        "PgBouncer",
        Connections,
        [
            &["pgbouncer_pools_client_waiting_connections", "pgbouncer_pools_client_waiting"],
            &["pgbouncer_pools_server_active_connections", "pgbouncer_pools_server_active"],
            &[],
            &["pgbouncer_pools_server_idle_connections", "pgbouncer_pools_server_idle"],
        ],
    ),
    pool(
        "Puma",
        Workers,
        [
            &[metrics::puma::BACKLOG.name, "ruby_puma_request_backlog", "ruby_puma_backlog"],
            &[],
            &[metrics::puma::MAX_THREADS.name, "ruby_puma_max_threads"],
            &[metrics::puma::POOL_CAPACITY.name, "ruby_puma_thread_pool_capacity", "ruby_puma_pool_capacity"],
        ],
    ),
    pool(
        "PHP-FPM",
        Workers,
        [
            &["phpfpm_listen_queue", metrics::php_fpm::LISTEN_QUEUE.name],
            &["phpfpm_active_processes", metrics::php_fpm::ACTIVE_PROCESSES.name],
            &["phpfpm_total_processes", metrics::php_fpm::TOTAL_PROCESSES.name],
            &["phpfpm_idle_processes", metrics::php_fpm::IDLE_PROCESSES.name],
        ],
    ),
    pool(
        "Tomcat",
        Workers,
        [
            &[],
            &["tomcat_threads_busy_threads", "tomcat_threads_busy"],
            &["tomcat_threads_config_max_threads", "tomcat_threads_config_max"],
            &[],
        ],
    ),
    pool(
        "Jetty",
        Workers,
        [&["jetty_threads_jobs"], &["jetty_threads_busy"], &["jetty_threads_config_max"], &["jetty_threads_idle"]],
    ),
    pool(
        ".NET's thread pool",
        Workers,
        [
            &[
                "dotnet_thread_pool_queue_length",
                "dotnet_threadpool_queue_length",
                "process_runtime_dotnet_thread_pool_queue_length",
                "system_runtime_threadpool_queue_length",
            ],
            &[],
            &[],
            &[],
        ],
    ),
    pool(
        "the proxy's backend",
        Workers,
        [&["haproxy_backend_current_queue", metrics::haproxy::QUEUED_REQUESTS.name], &[], &[], &[]],
    ),
];

/// One figure of a pool: its name, its labels, its mean in the view.
struct Figure<'v> {
    metric: &'static str,
    labels: &'v Labels,
    mean: f64,
}

fn figures<'v>(view: &View<'v>, names: &'static [&'static str]) -> Vec<Figure<'v>> {
    let of = |metric: &'static str| {
        let series = view.index.series(metric, &[]);
        let figures = series.filter_map(|((_, labels), points)| {
            let points = within(points, view.window);
            let sum: f64 = points.iter().map(|(_, value)| *value).sum();
            (!points.is_empty()).then(|| Figure { metric, labels, mean: sum / points.len() as f64 })
        });
        figures.collect::<Vec<_>>()
    };
    names.iter().map(|name| of(name)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// What waits in pools that hold `what` and have no place left, and pools whose places are all taken.
pub(crate) fn used_up(view: &View<'_>, what: Holds) -> Vec<(Strength, Evidence)> {
    POOLS.iter().filter(|pool| pool.holds == what).filter_map(|pool| pool.used_up(view)).collect()
}

impl Pool {
    fn used_up(&self, view: &View<'_>) -> Option<(Strength, Evidence)> {
        let [waiting, used, most, free] = [self.waiting, self.used, self.most, self.free].map(|of| figures(view, of));
        let at =
            |figures: &[Figure<'_>], labels: &Labels| figures.iter().find(|of| of.labels == labels).map(|of| of.mean);
        let room = |labels: &Labels| {
            let places = || Some((at(&most, labels)? - at(&used, labels)?).max(0.0));
            at(&free, labels).or_else(places)
        };
        // Requests of one worker do not go to another that is free.
        let stuck: Vec<&Figure<'_>> = waiting
            .iter()
            .filter(|of| of.mean > 0.0 && room(of.labels).is_none_or(|room| room < of.mean.min(1.0)))
            .collect();
        let count: f64 = stuck.iter().map(|of| of.mean).sum();
        if let Some(first) = stuck.iter().max_by(|a, b| a.mean.total_cmp(&b.mean)) {
            let of = if waiting.len() > 1 {
                format!(" in {} of {} queues", stuck.len(), waiting.len())
            } else {
                String::new()
            };
            let places = if room(first.labels).is_some() { ", and no place was free" } else { "" };
            let text = format!("{} requests waited for a place in {}{of}{places}", thousands(count), self.name);
            let is_known = room(first.labels).is_some();
            let strength = match count >= MANY {
                true if is_known => STRONG,
                true => FAIR,
                false => WEAK,
            };
            return Some((strength, first.evidence(view, format!("{} waiting", thousands(count)), text)));
        }
        // Without a count of those that wait: every place is taken.
        let full = used.iter().find(|of| {
            let most = at(&most, of.labels).unwrap_or(0.0);
            self.waiting.is_empty() && most >= 1.0 && of.mean >= most
        })?;
        let text = format!("all {} places of {} were taken", thousands(full.mean), self.name);
        Some((FAIR, full.evidence(view, thousands(full.mean), text)))
    }
}

impl Figure<'_> {
    fn evidence(&self, view: &View<'_>, observed: String, text: String) -> Evidence {
        let labels = self.labels.iter().fold(Labels::new([("metric", self.metric)]), |all, (k, v)| all.with(k, v));
        Evidence::new("samples", "value", labels, view.window, observed, "0, or a place free", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    const APP: &str = "prometheus:paste";

    fn found(made: &SyntheticRecording, what: Holds) -> Vec<(f64, String)> {
        made.seen(|view| used_up(view, what).into_iter().map(|(s, e)| (s.chance(), e.text)).collect())
    }

    #[test]
    fn requests_that_wait_while_no_place_is_free_are_found() {
        let workers = |capacity: f64| {
            SyntheticRecording::new(3)
                .gauge(APP, "puma_backlog", &[("index", "0")], 5.0)
                .gauge(APP, "puma_backlog", &[("index", "1")], 0.0)
                .gauge(APP, "puma_pool_capacity", &[("index", "0")], capacity)
                .gauge(APP, "puma_pool_capacity", &[("index", "1")], 1.0)
        };
        let busy = found(&workers(0.0), Workers);
        assert_eq!(busy.len(), 1);
        assert!(
            busy[0].0 >= STRONG.chance() && busy[0].1.contains("5 requests waited for a place in Puma"),
            "{busy:?}"
        );
        // A place is free: the request is taken at once.
        assert_eq!(found(&workers(5.0), Workers), []);
        assert_eq!(found(&workers(0.0), Connections), []);
    }

    #[test]
    fn a_pool_that_is_used_up_counts_less_than_one_with_a_queue() {
        let go = |used: f64| {
            SyntheticRecording::new(3).gauge(APP, "go_sql_in_use_connections", &[], used).gauge(
                APP,
                "go_sql_max_open_connections",
                &[],
                20.0,
            )
        };
        assert_eq!(found(&go(20.0), Connections).first().map(|(chance, _)| *chance), Some(FAIR.chance()));
        assert_eq!(found(&go(12.0), Connections), []);
        let unlimited = SyntheticRecording::new(3).gauge(APP, "go_sql_in_use_connections", &[], 9.0).gauge(
            APP,
            "go_sql_max_open_connections",
            &[],
            0.0,
        );
        assert_eq!(found(&unlimited, Connections), []);
    }
}
