//! The facts of an instant: what CPUs, threads, disks, memory and sessions did, each with the row
//! that shows it. What was not pasted is absent.

use holdup_signals::host::cpu::{CpuMode, CpuTime};

use crate::resources::full_disk::{Filling, FullDisk, room};
use holdup_recording::metrics;
use holdup_recording::words::{bytes, percent};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::{Wait, wait_of};
use holdup_signals::host::threads::{Asleep, Place};
use holdup_signals::view::stretches::within;
use holdup_signals::{Disk, Gauge, View};

use super::accept_queue::{AcceptQueue, SeenWorkers};
use super::cloud::{CloudDatabase, CloudSign};
use super::counts::Counts;
use super::documents::Documents;
use super::happened::Happened;
use super::load::{Heaviest, Load, WaitKind, kind};
use super::pods::Pods;
use super::sessions::Sessions;
use super::statements::Statements;
use super::{MANY, OF_WINDOW, Share, Sign, Signs, machine};
use crate::next_command::Machine;
use crate::resources::cpu::{FULL, gives_way_seconds};
use crate::resources::disk::{BUSY, QUEUED, what_it_does};

/// Requests up to this size are random: a disk takes them one by one, bytes.
const SMALL_BYTES: f64 = 32.0 * 1024.0;

/// As many idle sessions for each active one, and as many at least, may hide queued ones.
const ASLEEP_PER_ACTIVE: f64 = 10.0;
const ASLEEP: f64 = 20.0;

/// What a disk without time left mostly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskWork {
    /// Small reads at random.
    ReadsPages,
    /// Reads as large as readahead's window, for threads that each wait for one page.
    ReadsWindows,
    /// Other large reads.
    ReadsMuch,
    /// Writes.
    Writes,
}

/// Everything that suspects are judged by.
pub(crate) struct Facts<'c> {
    pub view: View<'c>,
    /// CPUs, if their number is known.
    pub cpus: Option<f64>,
    /// The 1-minute load average.
    pub load: Option<Gauge>,
    /// The load average of the quarter of an hour before, unless a person said that something is wrong.
    pub usual_load: Option<f64>,
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
    /// Requests in the queues of a thread pool, by its groups or by its queues.
    pub pool_queue: Option<Gauge>,
    /// Pages swapped per second, in and out.
    pub swapped: Option<(f64, Evidence)>,
    /// Share (0-1) of the memory that is available.
    pub available: Option<(f64, Evidence)>,
    /// Bytes read from disks for each page that a thread waited for.
    pub read_per_fault: Option<(f64, Evidence)>,
    /// File systems and volumes without room, the surest first.
    pub full: Vec<FullDisk>,
    /// Those that will be full at their pace, the soonest first.
    pub filling: Vec<Filling>,
    /// A full accept queue.
    pub accept_queue: Option<AcceptQueue>,
    /// Workers of an app server, as they were seen.
    pub workers: Option<SeenWorkers>,
    /// What the host's own counts show.
    pub counts: Counts,
    /// The disk's figures are means since boot: they show what is usual.
    pub is_disk_mean: bool,
    /// Workers of autovacuum that run.
    pub vacuums: Option<Gauge>,
    /// The server has no thread pool.
    pub has_no_pool: bool,
    /// It has one.
    pub has_pool: bool,
    /// The host's load was seen: its load average, its CPUs or its disks.
    pub has_load: bool,
    /// Where commands of the database's machine can be run.
    pub machine: Machine,
    pub is_postgresql: bool,
    pub documents: Documents,
    /// Kills, restarts, errors and other events of the stretch and shortly before.
    pub happened: Happened<'c>,
    pub statements: Statements,
    pub pods: Pods<'c>,
    /// Managed databases, by their provider's figures.
    pub clouds: Vec<CloudDatabase<'c>>,
    /// The statement with the largest part of a managed database's load.
    pub heaviest: Option<Heaviest>,
}

fn is_idle(of: &str, _: &str) -> bool {
    of == "idle"
}

impl<'c> Facts<'c> {
    pub fn read(view: View<'c>) -> Self {
        let gauge = |metric: &str, labels: &[(&str, &str)]| view.gauge(metric, labels, "").ok();
        let disks = view.disks().ok();
        let disk = disks.and_then(|disks| disks.tops().max_by(|a, b| a.queue.total_cmp(&b.queue)).cloned());
        let postgresql = view.sources_of(metrics::postgresql::ACTIVITY_SESSIONS.name);
        let load = gauge(metrics::host::LOAD_AVERAGE_1M.name, &[]);
        let idle = idle(&view);
        let statements = Statements::read(&view);
        let is_disk_mean = is_since_boot(&view, metrics::host::DISK_IO_TIME.name);
        let read_per_fault = read_per_fault(&view, disk.as_ref());
        let sessions = Sessions::read(&view).or_else(|| Sessions::of_load(&view));
        let (full, filling) = room(&view).map_or_else(|_| Default::default(), |room| (room.full, room.filling));
        Self {
            clouds: CloudDatabase::all(view),
            heaviest: Load::heaviest(&view),
            documents: Documents::read(&view, disk.as_ref()),
            read_per_fault,
            cpus: gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[]).map(|cpus| cpus.mean).filter(|n| *n >= 1.0),
            has_load: load.is_some() || idle.is_some() || disk.is_some(),
            usual_load: usual_load(&view),
            load,
            idle,
            niced: niced(&view),
            waits_for_cpu: waits_for_cpu(&view),
            runnable: gauge(metrics::host::THREADS.name, &[("state", "R")]),
            asleep: view.asleep().ok(),
            disk,
            is_postgresql: !postgresql.is_empty()
                || statements.are_postgresql
                || sessions.as_ref().is_some_and(|sessions| sessions.is_postgresql),
            statements,
            sessions,
            pool_queue: [metrics::mysql::THREAD_POOL_QUEUE_LENGTH, metrics::mysql::THREAD_POOL_QUEUED_CONNECTIONS]
                .into_iter()
                .find_map(|metric| gauge(metric.name, &[])),
            swapped: swapped(&view),
            available: available(&view),
            full,
            filling,
            accept_queue: AcceptQueue::read(&view),
            workers: SeenWorkers::read(&view),
            counts: Counts::read(&view),
            is_disk_mean,
            vacuums: gauge(metrics::postgresql::ACTIVITY_SESSIONS.name, &[("backend_type", "autovacuum worker")])
                .filter(|vacuums| vacuums.max >= 1.0),
            has_pool: view.setting("thread_handling", "").is_ok_and(|value| value == "pool-of-threads"),
            has_no_pool: view.setting("thread_handling", "").is_ok_and(|value| value != "pool-of-threads"),
            happened: Happened::read(&view),
            pods: Pods::read(&view),
            machine: machine::of_database(&view),
            view,
        }
    }

    /// Whether any of them was read in the view.
    pub fn are_any(&self) -> bool {
        let (tables, window) = (&self.view.recording.tables, self.view.window);
        let series = self.view.index.condensed.series.by_metric.values().flatten();
        let sampled = || series.into_iter().any(|(_, points)| !within(points, window).is_empty());
        let has_threads = || tables.threads.rows.iter().any(|row| window.contains(row.observed_at));
        let has_events = || tables.events.rows.iter().any(|row| window.contains(row.observed_at));
        let has_statements = || self.statements.most_called.is_some();
        self.sessions.is_some() || sampled() || has_threads() || has_events() || has_statements()
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
        let disk = self.disk.as_ref().filter(|_| !self.is_disk_mean);
        disk.filter(|disk| disk.utilization < BUSY && disk.queue < 1.0)
    }

    /// The disk that has no time left, and what it mostly does: then waits for it are settled, and
    /// their reason is not.
    pub fn full_disk(&self) -> Option<(&Disk, DiskWork)> {
        let disk = self.disk.as_ref().filter(|disk| disk.utilization >= BUSY && disk.queue >= QUEUED)?;
        let has_windows = || {
            let window = self.wide_readahead(disk).map(|(window, _)| window);
            window.is_some_and(|window| disk.bytes_each() >= OF_WINDOW * window) && self.page_waiters().is_some()
        };
        let work = match () {
            () if disk.read.seconds < disk.write.seconds => DiskWork::Writes,
            () if disk.bytes_each() <= SMALL_BYTES => DiskWork::ReadsPages,
            () if has_windows() => DiskWork::ReadsWindows,
            () => DiskWork::ReadsMuch,
        };
        Some((disk, work))
    }

    /// The share of the threads in uninterruptible sleep that are in places for which `is` holds.
    fn asleep_share(&self, is: impl Fn(&Place, Wait) -> bool) -> Option<Share> {
        let asleep = self.asleep.as_ref().filter(|asleep| asleep.mean > 0.0)?;
        let there = asleep.mean_where(|place| is(place, wait_of(place)));
        let of = format!("of {:.0} threads in uninterruptible sleep", asleep.mean.max(there));
        Some(Share { ratio: there / asleep.mean.max(there), of })
    }

    /// A load average that no running thread makes: CPUs idle beside it. Without the number of CPUs only a
    /// load of many dozens is much on any host.
    pub fn load_beside_idle(&self) -> Option<Evidence> {
        const MUCH: f64 = 48.0;
        const PER_CPU: f64 = 2.0;
        const IDLE: f64 = 0.2;
        let load = self.load.as_ref()?;
        let (idle, waiting, _) = self.idle.as_ref().filter(|(idle, waiting, _)| idle + waiting >= IDLE)?;
        let is_much = load.max >= self.cpus.map_or(MUCH, |cpus| PER_CPU * cpus);
        let each = self.cpus.map_or_else(String::new, |cpus| format!(" on {cpus:.0} CPUs"));
        let text = format!(
            "the load average was {:.0}{each} while CPUs were idle for {} of the time and waited for I/O for {}: threads \
             wait uninterruptibly",
            load.max,
            percent(*idle),
            percent(*waiting)
        );
        is_much.then(|| load.evidence(format!("{:.0}", load.max), "near the number of running threads", text))
    }

    /// The same as evidence, if it does what `is` says.
    pub fn disk_that(&self, is: impl Fn(DiskWork) -> bool) -> Option<Evidence> {
        let (disk, _) = self.full_disk().filter(|(_, work)| is(*work))?;
        let since = if self.is_disk_mean { "on average since boot, " } else { "" };
        self.view.disk_evidence(disk, "below 1", format!("{since}{}", what_it_does(disk))).ok()
    }

    /// Many threads that each wait for a page of a file, read at random.
    pub fn page_waiters(&self) -> Option<Evidence> {
        let asleep = self.asleep.as_ref()?;
        let is_page = |place: &&Place| matches!(wait_of(place), Wait::Fault | Wait::Page) && place.mean >= MANY;
        let place = asleep.groups.iter().find(is_page)?;
        let text =
            format!("{:.0} threads of {} waited for a page of a file, each for its own", place.mean, place.process);
        Some(asleep.at(place, format!("{:.0} threads", place.mean), "0", text))
    }

    /// Places in the kernel where many threads sleep, of those that `is` holds for.
    pub fn asleep_in(&self, is: impl Fn(&Place, Wait) -> bool) -> Vec<Sign> {
        let Some(asleep) = &self.asleep else { return Vec::new() };
        let least = MANY.max(0.5 * self.cpus.unwrap_or(0.0));
        let share = self.asleep_share(&is);
        let places = asleep.groups.iter().filter(|place| place.mean >= least && is(place, wait_of(place)));
        let evidence = |place: &Place| {
            let function = place.function().unwrap_or("an unknown function");
            let text = format!("{:.0} threads of {} slept in {function}", place.mean, place.process);
            let evidence = asleep.at(place, format!("{:.0} threads", place.mean), "0", text);
            Sign { evidence, share: share.clone(), seen: asleep.present_ratio() }
        };
        places.map(evidence).collect()
    }

    /// Active sessions for which `is` holds of the true state and the server's words, if they are at
    /// least this share (0-1) of all. `what` says what they did.
    pub fn sessions_in(&self, least: f64, what: &str, is: impl Fn(&str, &str) -> bool) -> Option<Sign> {
        let sessions = self.sessions.as_ref()?;
        let (active, count) = (sessions.active(), sessions.count(&is));
        let is_much = count >= MANY.min(active) && count >= 2.0 && count / active.max(1.0) >= least;
        let text = format!("{count:.0} of {active:.0} active sessions {what}");
        let share = Share { ratio: count / active.max(1.0), of: format!("of {active:.0} active sessions") };
        let evidence = is_much.then(|| sessions.evidence(is, "few", text)).flatten()?;
        Some(Sign { share: Some(share), ..evidence.into() })
    }

    /// Adds signs of a volume, with the share of the sampled sessions that wait for it.
    pub fn add_of_volume(&self, signs: &mut Signs, of: impl Fn(&CloudDatabase<'_>) -> Option<CloudSign>) {
        for (strength, evidence) in self.clouds.iter().filter_map(of) {
            signs.add(strength, Sign { share: self.volume_share(), ..evidence.into() });
        }
    }

    /// The share of the sampled sessions that wait for a managed database's volume; none if no figure
    /// tells.
    fn volume_share(&self) -> Option<Share> {
        let sessions = self.sessions.as_ref().filter(|sessions| sessions.is_load)?;
        let at_volume =
            |state: &str| matches!(kind(state), WaitKind::Read | WaitKind::Flush | WaitKind::Log | WaitKind::Temporary);
        let (active, waiting) = (sessions.active(), sessions.count(|_, state| at_volume(state)));
        let of = format!("of {active:.0} active sessions");
        (waiting > 0.0).then(|| Share { ratio: waiting / active.max(1.0), of })
    }

    /// Sessions of a MySQL that look idle, and those that work, if the first are many and nothing else
    /// explains them: CPUs have room, no disk is full, and no queue was counted. Pools keep connections
    /// that are not used, and queued ones were used lately: without a pool of threads that is known,
    /// nearly all were.
    pub fn hidden_idle(&self) -> Option<(f64, f64)> {
        /// No request waits longer without an error.
        const WAITED_S: f64 = 60.0;
        const LATELY_S: f64 = 10.0;
        const NEARLY_ALL: f64 = 0.9;
        let sessions = self.sessions.as_ref().filter(|_| !self.is_postgresql && !self.documents.is_there)?;
        let active = sessions.active();
        let lately = match self.has_pool && sessions.idle_s.is_empty() {
            true => 1.0,
            false if self.has_pool => sessions.lately_idle(WAITED_S),
            false => Some(sessions.lately_idle(LATELY_S)).filter(|lately| *lately >= NEARLY_ALL)?,
        };
        let idle = sessions.count(is_idle) * lately;
        let has_room = self.idle.is_none() || !self.are_cpus_full();
        let may_queue = self.pool_queue.is_none() && !self.has_no_pool && self.full_disk().is_none();
        (idle >= ASLEEP.max(ASLEEP_PER_ACTIVE * active) && has_room && may_queue).then_some((idle, active))
    }

    /// Sessions that look idle.
    pub fn idle_sessions(&self, text: String) -> Option<Evidence> {
        self.sessions.as_ref()?.evidence(is_idle, "few", text)
    }

    /// Whether CPUs have no time left; threads that make way for others leave it to them.
    pub fn are_cpus_full(&self) -> bool {
        self.idle.as_ref().is_some_and(|(idle, waiting, _)| idle + waiting + self.niced <= 1.0 - FULL)
    }

    /// The accept queue, if a line stands in it and CPUs are not known to be short.
    pub fn standing_accept_queue(&self) -> Option<&AcceptQueue> {
        const ROOM: f64 = 0.2;
        let has_room = self.idle.as_ref().is_none_or(|(idle, waiting, _)| idle + waiting + self.niced >= ROOM);
        self.accept_queue.as_ref().filter(|queue| queue.stands && has_room)
    }

    /// Whether threads that sleep wait for a lock of the kernel, or the disk has time left.
    pub fn waits_for_no_disk(&self) -> bool {
        self.is_no_disk_waited_for() || self.idle_disk().is_some()
    }
}

fn niced(view: &View<'_>) -> f64 {
    CpuTime::measure(view).map_or(0.0, |cpu| cpu.seconds.share(gives_way_seconds(view)))
}

/// Whether a metric's rates are means since boot.
fn is_since_boot(view: &View<'_>, metric: &str) -> bool {
    view.setting(&format!("since_boot[{metric}]"), "").is_ok()
}

fn idle(view: &View<'_>) -> Option<(f64, f64, Evidence)> {
    /// A mean since boot of as much iowait shows what is usual; one of idle CPUs does not show the present.
    const WAITED: f64 = 0.2;
    let cpu = CpuTime::measure(view).ok()?;
    let (idle, waiting) = (cpu.ratio(CpuMode::Idle), cpu.ratio(CpuMode::Iowait));
    let is_mean = is_since_boot(view, metrics::host::CPU_TIME.name);
    if is_mean && waiting < WAITED {
        return None;
    }
    let since = if is_mean { " since boot" } else { "" };
    let text = format!(
        "CPUs were idle for {} of the time{since}, and for another {} while a disk worked",
        percent(idle),
        percent(waiting)
    );
    Some((idle, waiting, cpu.time.evidence(percent(idle + waiting), "near 0 %, if CPU were the cause", text)))
}

/// The 15-minute load average at the start of what was only watched. Where something is wrong, it may have been
/// so for as long.
fn usual_load(view: &View<'_>) -> Option<f64> {
    let averages = view.index.series(metrics::host::LOAD_AVERAGE_15M.name, &[]);
    let first = averages.flat_map(|(_, points)| within(points, view.window).first()).next();
    first.map(|(_, load)| *load).filter(|_| view.recording.manifest.reported.is_none())
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
