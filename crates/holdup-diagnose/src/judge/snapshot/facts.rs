//! The facts of an instant: what CPUs, threads, disks, memory and sessions did, each with the row
//! that shows it. What was not pasted is absent.

use std::collections::BTreeMap;

use crate::resources::full_disk::FullDisk;
use holdup_recording::words::{bytes, percent};
use holdup_recording::{Labels, metrics};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::cpu::{CpuMode, CpuTime};
use holdup_signals::host::threads::Asleep;
use holdup_signals::{Disk, Gauge, View};

use super::accept_queue::AcceptQueue;
use super::documents::Documents;
use super::machine;
use super::pods::Pods;
use crate::case::Case;
use crate::paste_next::Machine;
use crate::resources::cpu::gives_way_seconds;

/// Everything that suspects are judged by.
pub(super) struct Facts<'c> {
    pub view: View<'c>,
    /// CPUs, if their number is known.
    pub cpus: Option<f64>,
    /// The 1-minute load average.
    pub load: Option<Gauge>,
    /// Share (0-1) of CPU time that was idle, and idle with I/O in flight.
    pub idle: Option<(f64, f64, Evidence)>,
    /// Share (0-1) of CPU time that niced threads of others used: they make way.
    pub niced: f64,
    /// Threads of the watched processes that waited for a CPU, on average.
    pub waits_for_cpu: Option<(f64, Evidence)>,
    /// Threads running or runnable.
    pub runnable: Option<Gauge>,
    pub asleep: Option<Asleep>,
    /// The disk with the longest queue.
    pub disk: Option<Disk>,
    pub sessions: Option<Sessions>,
    /// Requests in the queues of a thread pool.
    pub pool_queue: Option<Gauge>,
    /// Pages swapped per second, in and out.
    pub swapped: Option<(f64, Evidence)>,
    /// Share (0-1) of the memory that is available.
    pub available: Option<(f64, Evidence)>,
    /// Bytes read from disks for each page that a thread waited for.
    pub read_per_fault: Option<(f64, Evidence)>,
    /// File systems and volumes without room, the surest first.
    pub full: Vec<FullDisk>,
    /// A full accept queue.
    pub accept_queue: Option<AcceptQueue>,
    /// Workers of autovacuum that run.
    pub vacuums: Option<Gauge>,
    /// The server has no thread pool.
    pub has_no_pool: bool,
    /// The host's load was seen: its load average, its CPUs or its disks.
    pub has_load: bool,
    /// Where commands of the database's machine can be run.
    pub machine: Machine,
    pub is_postgresql: bool,
    pub documents: Documents,
    pub pods: Pods<'c>,
}

/// Sampled sessions, on average.
pub(super) struct Sessions {
    /// By what they really do and the server's words.
    by_state: BTreeMap<(String, String), f64>,
    view_window: holdup_signals::Window,
}

impl Sessions {
    fn read(view: &View<'_>) -> Option<Self> {
        let rows = view.sessions(&["true_state", "state", "command"]).ok()?;
        let instants = view.session_instants().max(1) as f64;
        let mut by_state: BTreeMap<(String, String), f64> = BTreeMap::new();
        // The server's own threads serve no client.
        for row in rows.into_iter().filter(|row| row.command != "Daemon") {
            let state = row.state.as_deref().unwrap_or_default().to_owned();
            *by_state.entry((row.true_state.to_string(), state)).or_default() += 1.0 / instants;
        }
        (!by_state.is_empty()).then_some(Self { by_state, view_window: view.window })
    }

    /// How many for which `is` holds of the true state and the server's words.
    pub fn count(&self, is: impl Fn(&str, &str) -> bool) -> f64 {
        self.by_state.iter().filter(|((of, state), _)| is(of, state)).fold(0.0, |sum, (_, n)| sum + n)
    }

    /// Those that do not sleep.
    pub fn active(&self) -> f64 {
        self.count(|of, _| of != "idle")
    }

    /// Evidence that points at the most frequent of them.
    pub fn evidence(&self, is: impl Fn(&str, &str) -> bool, expected: &str, text: String) -> Option<Evidence> {
        let those = self.by_state.iter().filter(|((of, state), _)| is(of, state));
        let ((of, state), _) = those.max_by(|a, b| a.1.total_cmp(b.1))?;
        let mut labels = Labels::new([("true_state", of.as_str())]);
        if !state.is_empty() {
            labels = labels.with("state", state.as_str());
        }
        let observed = format!("{:.0} sessions", self.count(is));
        Some(Evidence::new("sessions", "state", labels, self.view_window, observed, expected, text))
    }
}

impl<'c> Facts<'c> {
    pub fn read(case: &'c Case<'_>) -> Self {
        let view = case.view(case.whole());
        let gauge = |metric: &str, labels: &[(&str, &str)]| view.gauge(metric, labels, "").ok();
        let disks = view.disks().ok();
        let disk = disks.and_then(|disks| disks.tops().max_by(|a, b| a.queue.total_cmp(&b.queue)).cloned());
        let postgresql = view.sources_of(metrics::postgresql::ACTIVITY_SESSIONS.name);
        let load = gauge(metrics::host::LOAD_AVERAGE_1M.name, &[]);
        let idle = idle(&view);
        let read_per_fault = read_per_fault(&view, disk.as_ref());
        Self {
            documents: Documents::read(&view, disk.as_ref()),
            read_per_fault,
            cpus: gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[]).map(|cpus| cpus.mean).filter(|n| *n >= 1.0),
            has_load: load.is_some() || idle.is_some() || disk.is_some(),
            load,
            idle,
            niced: niced(&view),
            waits_for_cpu: waits_for_cpu(&view),
            runnable: gauge(metrics::host::THREADS.name, &[("state", "R")]),
            asleep: view.asleep().ok(),
            disk,
            sessions: Sessions::read(&view),
            pool_queue: gauge(metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name, &[]),
            swapped: swapped(&view),
            available: available(&view),
            full: crate::resources::full_disk::room(&view).map_or_else(|_| Vec::new(), |room| room.full),
            accept_queue: AcceptQueue::read(&view),
            vacuums: gauge(metrics::postgresql::ACTIVITY_SESSIONS.name, &[("backend_type", "autovacuum worker")])
                .filter(|vacuums| vacuums.max >= 1.0),
            has_no_pool: view.setting("thread_handling", "").is_ok_and(|value| value != "pool-of-threads"),
            is_postgresql: !postgresql.is_empty(),
            pods: Pods::read(&view),
            machine: machine::of_database(&view),
            view,
        }
    }

    /// How often the same thing was read at most. Rates are left out: one output may have many.
    pub fn instants(&self) -> usize {
        const READ: [&str; 4] = [
            metrics::host::LOAD_AVERAGE_1M.name,
            metrics::host::THREADS.name,
            metrics::tcp::ACCEPT_QUEUE_LENGTH.name,
            metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name,
        ];
        let series = READ.iter().flat_map(|metric| self.view.index.series(metric, &[]));
        series.map(|(_, points)| points.len()).max().unwrap_or(0).max(self.view.session_instants())
    }

    /// Whether sleeping threads wait for a lock of the kernel and not for a disk: a CPU that idles
    /// while a thread waits for a disk counts that time as iowait. Unknown if CPUs have no idle time.
    pub fn is_no_disk_waited_for(&self) -> bool {
        const IDLE: f64 = 0.1;
        const WAITED: f64 = 0.1;
        self.idle.as_ref().is_some_and(|(idle, waiting, _)| *idle >= IDLE && *waiting <= WAITED * idle)
    }

    /// The busiest disk, if it has time left.
    pub fn idle_disk(&self) -> Option<&Disk> {
        const BUSY: f64 = 0.5;
        self.disk.as_ref().filter(|disk| disk.utilization < BUSY && disk.queue < 1.0)
    }

    /// The window of `disk`'s readahead, bytes, with its setting.
    pub fn readahead(&self, disk: &Disk) -> Option<(f64, Evidence)> {
        let settings = self.view.recording.tables.settings.with_columns(&["source", "name", "value"]).ok()?;
        let name = format!("block.{}.read_ahead_kb", disk.device);
        let kib: f64 = settings.iter().rev().find(|row| row.name == name)?.value.parse().ok()?;
        let text = format!("the readahead of {} is {kib:.0} KiB", disk.device);
        let labels = Labels::new([("name", name.as_str())]);
        let evidence =
            Evidence::new("settings", "value", labels, self.view.window, format!("{kib:.0} KiB"), "8 to 16 KiB", text);
        Some((kib * 1024.0, evidence))
    }
}

fn niced(view: &View<'_>) -> f64 {
    CpuTime::measure(view).map_or(0.0, |cpu| cpu.seconds.share(gives_way_seconds(view)))
}

fn idle(view: &View<'_>) -> Option<(f64, f64, Evidence)> {
    let cpu = CpuTime::measure(view).ok()?;
    let (idle, waiting) = (cpu.ratio(CpuMode::Idle), cpu.ratio(CpuMode::Iowait));
    let text =
        format!("{} of CPU time was idle, {} of it while a disk worked", percent(idle + waiting), percent(waiting));
    Some((idle, waiting, cpu.time.evidence(percent(idle + waiting), "near 0 %, if CPU were the cause", text)))
}

fn waits_for_cpu(view: &View<'_>) -> Option<(f64, Evidence)> {
    let of = [metrics::process::RUN_QUEUE.name, metrics::server::RUN_QUEUE_WAIT.name];
    let waited = of.into_iter().find_map(|metric| view.counter(metric, &[], "").ok())?;
    let text = format!("{:.1} threads of the watched processes waited for a CPU at a time", waited.rate());
    Some((waited.rate(), waited.evidence(format!("{:.1}", waited.rate()), "0", text)))
}

fn swapped(view: &View<'_>) -> Option<(f64, Evidence)> {
    let pages = view.counter(metrics::host::PAGING_OPERATIONS.name, &[], "").ok()?;
    let text = format!("{:.0} pages/s were swapped in and out", pages.rate());
    Some((pages.rate(), pages.evidence(format!("{:.0} a second", pages.rate()), "0", text)))
}

/// Hardly any fault: reads come by calls, and no count says which pages were needed.
fn read_per_fault(view: &View<'_>, disk: Option<&Disk>) -> Option<(f64, Evidence)> {
    const LEAST_PER_SECOND: f64 = 0.5;
    let faults = view.counter(metrics::host::PAGING_FAULTS.name, &[("type", "major")], "").ok()?;
    let each = disk?.read.bytes / disk?.seconds.max(1e-9) / faults.rate();
    let text = format!("{} were read from {} for each page that a thread waited for", bytes(each), disk?.device);
    (faults.rate() >= LEAST_PER_SECOND).then(|| (each, faults.evidence(bytes(each), "about 4 KiB", text)))
}

fn available(view: &View<'_>) -> Option<(f64, Evidence)> {
    let gauge = |metric: &str| view.gauge(metric, &[], "").ok();
    let all = gauge(metrics::host::MEMORY_TOTAL_BYTES.name)?;
    let free = gauge(metrics::host::MEMORY_AVAILABLE_BYTES.name)?;
    let share = free.min / all.mean.max(1.0);
    let swap = |state: &str| view.gauge(metrics::host::PAGING_USAGE_BYTES.name, &[("state", state)], "").ok();
    let unused = swap("free").zip(swap("used")).map(|(free, used)| free.mean / (free.mean + used.mean).max(1.0));
    let swap = unused.map_or_else(String::new, |unused| format!(", and {} of the swap was unused", percent(unused)));
    let text = format!("{} of the memory was free or could be freed{swap}", percent(share));
    Some((share, free.evidence(percent(share), "near 0 %, if memory were the cause", text)))
}
