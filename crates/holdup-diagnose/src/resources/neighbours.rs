//! A program beside the service that began to use its disk with the episode: an export, a job of cron, a
//! scan. It is not watched itself. Two accounts show it: threads of the host that wait for a disk, by
//! program, and the bytes of the disk that no watched process moved. A program that merely waits for a disk
//! which others fill moves nothing, so both have to agree.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::words::{bytes_per_second, percent, thousands};
use holdup_recording::{Labels, metrics};
use holdup_signals::database::copies::THREADS;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::memory::PAGE_BYTES;
use holdup_signals::host::threads::{is_database_server, is_kernel_thread};
use holdup_signals::{Memory, View};

use crate::case::Case;

/// Share (0-1) of the samples in which a program has to wait for a disk to be at work on it.
const AT_WORK: f64 = 0.1;

/// Seen in a smaller share (0-1) of that in the baseline window, it began with the episode.
const HARDLY: f64 = 0.2;

/// Share (0-1) of what is new on the disk that must be others' doing.
const MOST: f64 = 0.5;

/// Pages read again per second from which some data of requests has no room …
const LEAST_PAGES: f64 = 10.0;

/// … and how many times as many as before that must be.
const GREW: f64 = 3.0;

/// Beginning of the names of holdup's own programs.
const OWN: &str = "holdup";

/// A program that began.
pub struct Neighbour {
    /// Its name.
    pub name: String,
    /// Share (0-1) of the samples in which it waited for a disk.
    pub seen_ratio: f64,
    /// The disk that it uses.
    pub device: String,
    /// Bytes per second that no watched process moved, beyond those of the baseline window.
    pub bytes_per_second: f64,
    /// Bytes per second of all that is new on the disk.
    pub new_bytes_per_second: f64,
    /// That it waited for a disk, and did not before.
    pub evidence: Evidence,
}

impl Neighbour {
    /// The program that began and reads or writes most of what is new on `device`; none if no program did, or the
    /// database's own process is not watched: what it moved is then unknown.
    pub fn began(case: &Case<'_>, device: &str) -> Option<Self> {
        let slow = case.slow();
        let baseline = case.well_before().filter(|baseline| !case.is_of_other(baseline.window))?;
        let (now, before) = (waiting(&slow)?, waiting(&baseline)?);
        let is_new = |(name, ratio): &(&&str, &f64)| {
            **ratio >= AT_WORK && before.get(**name).copied().unwrap_or(0.0) < HARDLY * **ratio
        };
        let (name, seen_ratio) = now.iter().filter(is_new).max_by(|a, b| a.1.total_cmp(b.1))?;
        let (moved, moved_before) = (Moved::measure(&slow, device)?, Moved::measure(&baseline, device)?);
        let new = moved.disk() - moved_before.disk();
        let others = moved.others_beyond(&moved_before);
        let usual = before.get(name).copied().unwrap_or(0.0);
        let text = format!(
            "{name}, which is not watched, waited for a disk in {} of the samples, and in {} of those of the baseline window",
            percent(*seen_ratio),
            percent(usual),
        );
        let labels = Labels::new([("state", "D"), ("process", *name)]);
        let observed = percent(*seen_ratio);
        (new > 0.0 && others >= MOST * new).then(|| Self {
            name: (*name).to_owned(),
            seen_ratio: *seen_ratio,
            device: device.to_owned(),
            bytes_per_second: others,
            new_bytes_per_second: new,
            evidence: Evidence::new("threads", "process", labels, slow.window, observed, "never", text),
        })
    }

    /// What it pushes out of the memory that the service shares with it: the share (0-1) of the pages that
    /// are read again which its own reads and writes account for, with evidence. Each page that it touches
    /// takes the place of another. None if that memory has room, or hardly more pages come back than in the
    /// baseline window.
    pub fn pushes_out(&self, case: &Case<'_>) -> Option<(f64, Evidence)> {
        let (slow, baseline) = (case.slow(), case.well_before()?);
        let memory = slow.memory().ok().filter(Memory::is_full)?;
        let again = |view: &View<'_>| view.refaults(&memory, "file").ok();
        let (now, before) = (again(&slow)?, again(&baseline)?);
        let more = now.rate() - before.rate();
        if more < LEAST_PAGES || now.rate() < GREW * before.rate() {
            return None;
        }
        let place = if memory.is_cgroup() { "the cgroup's memory" } else { "the machine's memory" };
        let text = format!(
            "{place} is full, and {} pages/s of files were read again after they had been dropped, {} in the baseline window: {} goes through {}",
            thousands(now.rate()),
            thousands(before.rate()),
            bytes_per_second(self.bytes_per_second),
            self.name
        );
        let told = now.evidence(thousands(now.rate()), thousands(before.rate()), text);
        Some(((self.bytes_per_second / (more * PAGE_BYTES)).min(1.0), told))
    }
}

/// Programs that are not watched, by the share (0-1) of the samples in which a thread of theirs waited for a
/// disk; none if the threads of the host were not counted.
fn waiting<'v>(view: &View<'v>) -> Option<BTreeMap<&'v str, f64>> {
    let rows = view.recording.tables.threads.with_columns(THREADS).ok()?;
    let counted = view.index.series(metrics::host::THREADS.name, &[]).flat_map(|(_, series)| series);
    let instants: BTreeSet<i64> = counted.map(|(at, _)| *at).filter(|at| view.window.contains(*at)).collect();
    let watched: BTreeSet<&str> =
        view.processes_with(metrics::process::DISK_IO_BYTES.name).iter().map(|p| p.name).collect();
    let is_other = |name: &str| {
        !watched.contains(name) && !is_database_server(name) && !is_kernel_thread(name) && !name.starts_with(OWN)
    };
    let mut seen: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    let here =
        rows.iter().filter(|row| row.source == "host" && row.state == "D" && view.window.contains(row.observed_at));
    for row in here.filter(|row| is_other(&row.process)) {
        seen.entry(&row.process).or_default().insert(row.observed_at);
    }
    let all = instants.len() as f64;
    (all > 0.0).then(|| seen.into_iter().map(|(name, at)| (name, (at.len() as f64 / all).min(1.0))).collect())
}

/// Bytes per second, read and written.
struct Moved {
    /// By the disk.
    disk: [f64; 2],
    /// By watched processes.
    own: [f64; 2],
}

impl Moved {
    fn measure(view: &View<'_>, device: &str) -> Option<Self> {
        const IO: &str = metrics::process::DISK_IO_BYTES.name;
        let watched = view.processes_with(IO);
        if !watched.iter().any(|process| is_database_server(process.name)) {
            return None;
        }
        let own = |direction: &str| {
            let labels = [("direction", direction)];
            let each = watched.iter().filter_map(|p| view.counter_where(|s| s == p.source, IO, &labels, "").ok());
            each.map(|counter| counter.rate()).fold(0.0, |sum, rate| sum + rate)
        };
        let disks = view.disks().ok()?;
        let disk = disks.named(device)?;
        let seconds = disk.seconds.max(1e-9);
        Some(Self { disk: [disk.read.bytes / seconds, disk.write.bytes / seconds], own: ["read", "write"].map(own) })
    }

    fn disk(&self) -> f64 {
        self.disk.iter().sum()
    }

    /// What others move more than in `before`. What the service writes makes the file system write as much
    /// again: that is not others' doing.
    fn others_beyond(&self, before: &Self) -> f64 {
        let others = |of: &Self, i: usize| (of.disk[i] - of.own[i]).max(0.0);
        let read = others(self, 0) - others(before, 0);
        let written = others(self, 1) - others(before, 1) - (self.own[1] - before.own[1]).max(0.0);
        read.max(0.0) + written.max(0.0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use holdup_recording::rows::Thread;

    use super::*;
    use crate::resources::disk::is_of_service;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 100 requests a second, slow from 20 s of 60 on, when `job` begins to wait for vda, which then reads `disk` bytes a second more;
    /// the database reads `own` of them.
    pub(crate) fn made(job: &'static str, from: i64, disk: f64, own: f64) -> SyntheticRecording {
        let thread = move |s: i64| Thread {
            observed_at: s * 1_000_000_000,
            source: "host".into(),
            process: job.into(),
            state: "D".into(),
            count: 1,
            ..Thread::default()
        };
        let grown = |more: f64| move |s: i64| 1e6 * s as f64 + more * (s - 20).max(0) as f64;
        let (read, write) = ([("device", "vda"), ("direction", "read")], [("device", "vda"), ("direction", "write")]);
        SyntheticRecording::new(60)
            .requests(100, 400)
            .each_request(|n, r| {
                if n < 2_000 {
                    r.done_at = r.intended_at + 10_000_000;
                }
            })
            .threads((from..=60).map(thread).collect())
            .gauge("host", "system_threads", &[("state", "D")], 1.0)
            .disk("vda", (100.0, 8_192.0, 2.0), (1.0, 8_192.0, 1.0))
            .without("system_disk_io_bytes_total")
            .counted("host", "system_disk_io_bytes_total", &read, grown(disk))
            .counter("host", "system_disk_io_bytes_total", &write, 1e3)
            .setting("pid:7", "comm", "postgres")
            .counted("pid:7", "process_disk_io_bytes_total", &[("direction", "read")], grown(own))
            .counter("pid:7", "process_disk_io_bytes_total", &[("direction", "write")], 1e3)
    }

    fn name(made: &SyntheticRecording) -> Option<String> {
        made.with(|case| Neighbour::began(case, "vda").map(|of| of.name))
    }

    #[test]
    fn a_program_that_began_and_reads_most_of_what_is_new_is_known_by_name() {
        assert_eq!(name(&made("export.py", 20, 20e6, 2e6)).as_deref(), Some("export.py"));
        made("export.py", 20, 20e6, 2e6).with(|case| {
            let of = Neighbour::began(case, "vda").unwrap();
            assert!((of.bytes_per_second - 18e6).abs() < 1e6 && (of.new_bytes_per_second - 20e6).abs() < 1e6);
        });
    }

    #[test]
    fn reads_of_a_program_push_out_pages_that_the_service_needs() {
        let squeezed = |pages: f64, used: f64| {
            let again = move |s: i64| 2.0 * s.min(20) as f64 + pages * (s - 20).max(0) as f64;
            let made = made("export.py", 20, 20e6, 2e6)
                .setting("pid:7", holdup_signals::host::memory::LIMIT, "100000000")
                .setting("pid:7", "cgroup.path", "/db")
                .gauge("pid:7", "cgroup_memory_usage_bytes", &[], used)
                .counted("pid:7", "cgroup_memory_refaults_total", &[("type", "file")], again);
            made.with(|case| Neighbour::began(case, "vda").unwrap().pushes_out(case).map(|(share, _)| share))
        };
        assert_eq!(squeezed(2_000.0, 99e6), Some(1.0), "it reads more than is read again");
        assert!(squeezed(44_000.0, 99e6).is_some_and(|share| (share - 0.1).abs() < 0.02));
        assert_eq!(squeezed(3.0, 99e6), None, "hardly a page comes back");
        assert_eq!(squeezed(2_000.0, 50e6), None, "there is room");
    }

    #[test]
    fn a_program_on_another_disk_is_not_on_the_services() {
        let on = |device: &str| {
            let stack = "io_schedule < __iomap_dio_rw < vfs_read";
            let made = made("export.py", 20, 20e6, 2e6)
                .setting("host", "mount[/data].fstype", "ext4")
                .setting("host", "mount[/data].device", device)
                .disk("vdb", (1.0, 4_096.0, 0.1), (0.0, 0.0, 0.0))
                .asleep(9, "io_schedule", stack, Some("/data/t.ibd"));
            made.with(|case| is_of_service(case, &Neighbour::began(case, "vda").unwrap().device))
        };
        assert!(on("vda") && !on("vdb"));
    }

    #[test]
    fn a_program_that_waits_for_what_the_service_reads_is_not_accused() {
        assert_eq!(name(&made("rsyslogd", 20, 20e6, 19e6)), None);
        assert_eq!(name(&made("export.py", 0, 20e6, 2e6)), None, "it was there before");
        assert_eq!(name(&made("kworker/u8:1", 20, 20e6, 2e6)), None, "the kernel's own");
        let unwatched = made("export.py", 20, 20e6, 2e6).without("process_disk_io_bytes_total");
        assert_eq!(name(&unwatched), None, "the database's own reads are unknown");
    }
}
