//! A disk of this machine: what it does, for which processes, and how much of its reads was not
//! asked for.

use std::collections::BTreeMap;

use holdup_recording::metrics;
use holdup_recording::words::{bytes, bytes_per_second, ms, percent, thousands};
use holdup_signals::host::disk_waits::DiskWaits;
use holdup_signals::host::disks::HOST;
use holdup_signals::host::throttle::Throttle;
use holdup_signals::host::useful_reads::UsefulReads;
use holdup_signals::{Disk, Disks, Missing, View};

use holdup_signals::evidence::Evidence;

use crate::case::Case;
use crate::strength::{Strength, UNSEEN};

/// A disk is full if it was busy for this share (0-1) of the time …
pub const BUSY: f64 = 0.9;

/// … and if this many operations were queued or in service on average.
pub const QUEUED: f64 = 4.0;

/// Reads of a page or two brought nothing that matters besides the page asked for, bytes.
pub const PLAIN_READ_BYTES: f64 = 8.0 * 1024.0;

/// Bytes read per byte asked for, from which the difference is readahead.
pub const AMPLIFIED: f64 = 4.0;

/// From here on it may be readahead: a window around a page that misses only some of its pages is
/// read in parts, so that reads are far smaller than the window. Adjacent pages that are used as
/// well, or the file's layout, look the same.
pub const MAYBE_AMPLIFIED: f64 = 2.0;

/// A random reader gets about one window per fault, a sequential one many.
pub const WINDOWS_PER_FAULT: f64 = 1.5;

/// Whether most of what is read is unused readahead.
pub fn is_oversized(useful: &UsefulReads) -> bool {
    useful.ratio() >= AMPLIFIED && is_readahead_like(useful)
}

/// Whether what is read besides what was asked for may be readahead: reads of more than a page or
/// two, not larger than the window allows, that no sequential reader makes.
pub fn is_readahead_like(useful: &UsefulReads) -> bool {
    let window = useful.window_bytes.unwrap_or(useful.read_each());
    useful.read_each() > PLAIN_READ_BYTES
        && useful.ratio() >= MAYBE_AMPLIFIED
        && useful.read_per_fault() <= WINDOWS_PER_FAULT * window
}

/// The devices mounted where the service's threads wait for files, most threads first.
fn mounted_devices(view: &View<'_>, waits: &DiskWaits) -> Vec<String> {
    let paths = waits.asleep.groups.iter().filter_map(|place| place.path.as_deref());
    let mounts = paths.filter(|path| path.starts_with('/')).filter_map(|path| view.mount_of(path));
    mounts.map(|mount| view.whole_device(&mount.device)).collect()
}

/// Whether the service's threads wait for files on `device`, as far as that is known: not if all of them are on
/// other disks.
pub fn is_of_service(case: &Case<'_>, device: &str) -> bool {
    struct Files(Vec<String>, Disks);
    let files = case.measured(|case| {
        let view = case.slow();
        let disks = view.disks()?;
        let waits = view.disk_waits(&disks, case.completed_in(view.window)?)?;
        let mut devices = mounted_devices(&view, &waits);
        devices.retain(|device| disks.named(device).is_some());
        Ok::<_, Missing>(Files(devices, disks))
    });
    let Ok(files) = files else { return true };
    let Files(devices, disks) = &*files;
    let is_beneath =
        |above: &str, device: &str| disks.named(above).is_some_and(|disk| disk.beneath.iter().any(|of| of == device));
    devices.is_empty() || devices.iter().any(|own| own == device || is_beneath(own, device) || is_beneath(device, own))
}

/// The device whose window counts: the one mounted where threads wait, else the one at a cgroup's
/// limit, else the one that spent the longest time reading.
pub fn read_device<'d>(view: &View<'_>, disks: &'d Disks, waits: &DiskWaits) -> Option<&'d Disk> {
    let mounted = mounted_devices(view, waits).into_iter().next();
    let limited = || view.throttles().ok()?.into_iter().find(Throttle::is_reached).map(|t| t.device);
    let named = |device: String| disks.named(&device).filter(|disk| disk.read.operations > 0.0);
    mounted.and_then(named).or_else(|| limited().and_then(named)).or_else(|| {
        disks.tops().filter(|d| d.read.operations > 0.0).max_by(|a, b| a.read.seconds.total_cmp(&b.read.seconds))
    })
}

/// In iostat's terms.
pub fn what_it_does(disk: &Disk) -> String {
    let per_second = |n: f64| thousands(n / disk.seconds.max(1e-9));
    format!(
        "{}: {} reads and {} writes a second, {} in requests of {}; a read takes {}, a write {}; {:.1} in the queue, busy for {}",
        disk.name(),
        per_second(disk.read.operations),
        per_second(disk.write.operations),
        bytes_per_second(disk.bytes_per_second()),
        bytes(disk.bytes_each()),
        ms(disk.read.await_ms()),
        ms(disk.write.await_ms()),
        disk.queue,
        percent(disk.utilization)
    )
}

/// The process that does the I/O.
#[derive(Default)]
pub struct IoOwner {
    /// Its name, with its number.
    pub name: Option<String>,
    /// Its share (0-1) of all bytes.
    pub share: Option<f64>,
    /// Its evidence.
    pub evidence: Vec<Evidence>,
    /// Whether processes are watched, and others did most of it.
    is_elsewhere: bool,
}

impl IoOwner {
    /// The weights of evidence for a limit: less where unwatched processes did most of the I/O. What
    /// they are may be the root.
    pub fn known(&self, mut weights: Vec<Strength>) -> Vec<Strength> {
        if self.is_elsewhere {
            weights.iter_mut().for_each(|weight| *weight = *weight * UNSEEN);
        }
        weights
    }
}

/// The watched process that did most of the I/O of `disk`. If all watched ones together did less
/// than half, the evidence is the sleeping processes of the machine.
pub fn who(view: &View<'_>, disk: &Disk) -> IoOwner {
    const METRIC: &str = metrics::process::DISK_IO_BYTES.name;
    let all = disk.read.bytes + disk.write.bytes;
    let mut processes: Vec<(String, f64)> = Vec::new();
    for process in view.processes_with(METRIC) {
        if let Ok(done) = view.counter_where(|s| s == process.source, METRIC, &[], HOST) {
            processes.push((format!("{} (pid {})", process.name, process.pid()), done.delta));
        }
    }
    processes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut who = IoOwner::default();
    let watched: f64 = processes.iter().map(|(_, done)| done).sum();
    if let (Some((name, done)), Ok(counter)) = (processes.first(), view.counter(METRIC, &[], HOST)) {
        let share = (done / all.max(1.0)).min(1.0);
        let text = format!(
            "{name} read and wrote {}, {} of the I/O of {}",
            bytes_per_second(done / view.window.seconds()),
            percent(share),
            disk.device
        );
        who.evidence.push(counter.evidence(percent(share), "", text));
        (who.name, who.share) = (Some(name.clone()), Some(share));
    }
    if watched < 0.5 * all {
        who.is_elsewhere = !processes.is_empty();
        who.evidence.extend(others(view));
        if who.share.is_some_and(|share| share < 0.5) {
            (who.name, who.share) = (None, None);
        }
    }
    who
}

/// Processes of the whole machine with threads in uninterruptible sleep, including kernel threads
/// that write back.
fn others(view: &View<'_>) -> Option<Evidence> {
    let rows = view.recording.tables.threads.with_columns(&["source", "process", "state"]).ok()?;
    let mut by_process: BTreeMap<&str, u64> = BTreeMap::new();
    let here = |at| view.window.contains(at);
    for row in rows.iter().filter(|r| r.source == "host" && r.state == "D" && here(r.observed_at)) {
        *by_process.entry(&row.process).or_default() += row.count();
    }
    let mut sorted: Vec<(&str, u64)> = by_process.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (first, _) = *sorted.first()?;
    let names: Vec<&str> = sorted.iter().take(4).map(|(name, _)| *name).collect();
    let text = format!(
        "unwatched processes did most of it; the threads waiting for I/O on this machine are those of {}",
        names.join(", ")
    );
    let labels = holdup_recording::Labels::new([("state", "D"), ("process", first)]);
    Some(Evidence::new("threads", "process", labels, view.window, names.join(", "), "", text))
}
