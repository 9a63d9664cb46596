//! Time for which the app has a request and waits for nothing that any source shows: what is left of
//! the growth of its own timing without CPU, downstream services, database, pooled connections,
//! disks and the run queue.

use holdup_recording::metrics;
use holdup_recording::words::ms;
use holdup_signals::app::app_server::waited_ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::threads::is_database_server;
use holdup_signals::{View, app::timing};

use super::workers::answered_per_second;
use crate::case::Case;
use crate::resources::connections::{NAMES, pool_wait_ms};

/// Deviations that chance exceeds in one case of twenty, on either side.
const ERRORS: f64 = 2.0;

/// Time without an owner, in the episode beyond that of the baseline window.
pub struct UnownedTime {
    /// Milliseconds of a request.
    pub ms: f64,
    /// The app's own timing.
    pub timed: Evidence,
    /// What has an owner.
    pub owned: Evidence,
}

impl UnownedTime {
    /// None unless the app times its requests and its waits for a pooled connection, and everything
    /// else that it may wait for was recorded, in the baseline window, too.
    pub fn measure(case: &Case<'_>) -> Option<Self> {
        let (view, baseline) = (case.slow(), case.baseline()?);
        let (now, before) = (Moment::measure(case, &view)?, Moment::measure(case, &baseline)?);
        let sum = view.counter(&format!("{}_sum", timing::HTTP_SERVER), &[], "").ok()?;
        let cpu = view.counter(metrics::process::CPU_TIME.name, &[], "").ok()?;
        let (is, was) = (ms(now.timed_ms), ms(before.timed_ms));
        let timed = format!("by its own timing the app had a request for {is}, {was} in the baseline window");
        let more = now.owned_ms() - before.owned_ms();
        let owned = format!("{} more of it than in the baseline window have an owner: {}", ms(more), now.says());
        Some(Self {
            // What chance adds to looks at a few connections now and then is not the app's.
            ms: (now.rest_ms() - before.rest_ms() - ERRORS * now.error_ms.hypot(before.error_ms)).max(0.0),
            timed: sum.evidence(is, was, timed),
            owned: cpu.evidence(ms(now.owned_ms()), "most of it", owned),
        })
    }
}

/// The parts of a request in one window, milliseconds.
struct Moment {
    timed_ms: f64,
    downstream_ms: f64,
    database_ms: f64,
    cpu_ms: f64,
    pool_ms: f64,
    kernel_ms: f64,
    /// One deviation of what was seen at instants.
    error_ms: f64,
}

impl Moment {
    fn measure(case: &Case<'_>, view: &View<'_>) -> Option<Self> {
        let outside = view.outside().ok().filter(|outside| outside.has_processes())?;
        let services = view.downstream_services(&outside.source)?;
        let per_second = answered_per_second(case, view).filter(|rate| *rate > 0.0)?;
        let pending = |is_database: bool| {
            let of_kind = services.iter().filter(|service| service.is_database == is_database);
            of_kind.map(|service| service.pending).sum::<f64>()
        };
        // The app's own timing of its calls is exact.
        let calls_ms = per_request_ms(case, view, timing::OPERATION);
        let seen = pending(false) + if calls_ms.is_some() { 0.0 } else { pending(true) };
        let instants = view.levels(&outside.source, metrics::server::ACCEPTED_CONNECTIONS.name, &[]).len().max(1);
        let apps = view.processes_with(metrics::process::THREADS.name).into_iter();
        let apps: Vec<&str> = apps.filter(|app| !is_database_server(app.name)).map(|app| app.source).collect();
        let of_apps = |source: &str| apps.contains(&source);
        let seconds = |metric: &str| Some(view.counter_where(of_apps, metric, &[], "").ok()?.rate());
        let asleep = view.gauge_where(of_apps, metrics::process::THREADS.name, &[("state", "D")], "");
        let asleep = asleep.map_or(0.0, |gauge| gauge.mean);
        Some(Self {
            timed_ms: view.mean(timing::HTTP_SERVER, &[], timing::APP_METRICS).ok()?.ms,
            downstream_ms: waited_ms(pending(false), per_second),
            database_ms: calls_ms.unwrap_or_else(|| waited_ms(pending(true), per_second)),
            cpu_ms: waited_ms(seconds(metrics::process::CPU_TIME.name)?, per_second),
            pool_ms: NAMES.iter().find_map(|names| pool_wait_ms(case, view, names))?,
            kernel_ms: waited_ms(seconds(metrics::process::RUN_QUEUE.name)? + asleep, per_second),
            error_ms: waited_ms((seen / instants as f64).sqrt(), per_second),
        })
    }

    fn owned_ms(&self) -> f64 {
        self.downstream_ms + self.database_ms + self.cpu_ms + self.pool_ms + self.kernel_ms
    }

    fn rest_ms(&self) -> f64 {
        (self.timed_ms - self.owned_ms()).max(0.0)
    }

    fn says(&self) -> String {
        format!(
            "CPU {}, downstream services {}, database {}, a pooled connection {}, disks and run queue {}",
            ms(self.cpu_ms),
            ms(self.downstream_ms),
            ms(self.database_ms),
            ms(self.pool_ms),
            ms(self.kernel_ms)
        )
    }
}

/// Milliseconds of a request in what the app times under the name `metric`; none if it does not.
fn per_request_ms(case: &Case<'_>, view: &View<'_>, metric: &str) -> Option<f64> {
    let timed = view.mean(metric, &[], timing::APP_METRICS).ok()?;
    Some(timed.ms * timed.count / case.completed_in(view.window).ok()?.max(1.0))
}
