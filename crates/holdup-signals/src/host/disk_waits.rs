//! What the service's threads in uninterruptible sleep waited for, by where in the kernel they
//! stood: a page fault, a read or write call, a directory, memory. And how much of that disks can
//! account for. A place without a stack is judged by its wait channel, which is coarser. If neither
//! is conclusive, the wait stays unknown.

use crate::database::server_waits::ServerWaits;
use crate::host::disks::Disks;
use crate::{Asleep, Missing, Place, View};

/// What a thread in uninterruptible sleep waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A page of a mapped file.
    Fault,
    /// A read call.
    Read,
    /// A page of a file, by a fault or a call: the wait channel does not say which.
    Page,
    /// A write, a flush, or the journal.
    Write,
    /// A directory's lock or entry: create, open, unlink, rename.
    Directory,
    /// A page that was swapped out.
    Swap,
    /// Memory to be reclaimed.
    Reclaim,
    /// A file system over the network or in another process.
    Remote,
    /// Unknown.
    Unknown,
}

/// Functions on the way to a wait, the most specific first: a fault may reclaim memory before it
/// reads. The names are those of Linux 4 to 6. An entry that ends with `*` is a prefix.
const FUNCTIONS: &[(&str, Wait)] = &[
    ("try_to_free*", Wait::Reclaim),
    ("shrink_*", Wait::Reclaim),
    ("reclaim_throttle", Wait::Reclaim),
    ("throttle_direct_reclaim", Wait::Reclaim),
    ("mem_cgroup_handle_over_high", Wait::Reclaim),
    ("__alloc_pages_slowpath*", Wait::Reclaim),
    ("do_swap_page", Wait::Swap),
    ("swap_readpage", Wait::Swap),
    ("swap_read_folio", Wait::Swap),
    ("fuse_*", Wait::Remote),
    ("__fuse_*", Wait::Remote),
    ("request_wait_answer", Wait::Remote),
    ("nfs*", Wait::Remote),
    ("rpc_*", Wait::Remote),
    ("filemap_fault", Wait::Fault),
    ("do_unlinkat", Wait::Directory),
    ("unlinkat", Wait::Directory),
    ("do_renameat*", Wait::Directory),
    ("do_mkdirat", Wait::Directory),
    ("do_rmdir", Wait::Directory),
    ("filename_create", Wait::Directory),
    ("path_openat", Wait::Directory),
    ("open_last_lookups", Wait::Directory),
    ("lookup_slow", Wait::Directory),
    ("jbd2_*", Wait::Write),
    ("vfs_fsync*", Wait::Write),
    ("vfs_write", Wait::Write),
    ("vfs_iter_write", Wait::Write),
    ("ksys_write", Wait::Write),
    ("ext4_sync_file", Wait::Write),
    ("xfs_log_force*", Wait::Write),
    ("balance_dirty_pages*", Wait::Write),
    ("do_writepages", Wait::Write),
    ("folio_wait_writeback", Wait::Write),
    ("wait_on_page_writeback", Wait::Write),
    ("submit_bio_wait", Wait::Write),
    ("blkdev_issue_flush", Wait::Write),
    ("vfs_read", Wait::Read),
    ("vfs_iter_read", Wait::Read),
    ("filemap_read", Wait::Read),
    ("generic_file_read_iter", Wait::Read),
    ("folio_wait_bit*", Wait::Page),
    ("wait_on_page_bit*", Wait::Page),
    ("__lock_page*", Wait::Page),
    ("filemap_update_page", Wait::Page),
];

/// What threads at `place` wait for.
pub fn wait_of(place: &Place) -> Wait {
    let is = |pattern: &str, function: &str| match pattern.strip_suffix('*') {
        Some(beginning) => function.starts_with(beginning),
        None => function == pattern,
    };
    let has = |pattern: &str| {
        place.wchan.as_deref().is_some_and(|wchan| is(pattern, wchan)) || place.functions().any(|f| is(pattern, f))
    };
    FUNCTIONS.iter().find(|(pattern, _)| has(pattern)).map_or(Wait::Unknown, |(_, wait)| *wait)
}

/// A device that is busy for this share (0-1) of the time counts as never idle: samples are
/// inexact.
const NEVER_RESTS: f64 = 0.9;

/// Sightings of sleeping threads from which their mean number is known well enough.
const SIGHTINGS: f64 = 10.0;

/// The greatest mean of an event that was not seen in n samples is this over n, in nineteen cases
/// of twenty.
const UNSEEN: f64 = 3.0;

/// Threads in uninterruptible sleep and what disks have to do with it.
pub struct DiskWaits {
    /// The threads.
    pub asleep: Asleep,
    /// Requests that ended in the window.
    pub completed: f64,
    /// Total time of all reads of all devices, seconds, each counted at one level of its stack.
    pub read_seconds: f64,
    /// The same for reads and writes.
    pub io_seconds: f64,
    /// Utilization (0-1) of the device with the longest total operation time.
    pub busiest: f64,
    /// Whether a cgroup's limit delays requests before a device counts them. Devices then know less
    /// than threads do.
    pub held_back: bool,
    /// What the sessions of a database waited for, if it reports that.
    pub sessions: Option<ServerWaits>,
    /// Whether requests can wait only in these sessions, while the threads may belong to any
    /// process of the machine: sessions then decide.
    pub is_all_in_sessions: bool,
}

impl DiskWaits {
    /// Mean number of threads that wait so.
    pub fn mean_of(&self, waits: &[Wait]) -> f64 {
        self.asleep.mean_where(|place| waits.contains(&wait_of(place)))
    }

    /// Milliseconds per request that `mean` threads make: Little's law.
    pub fn ms(&self, mean: f64) -> f64 {
        self.asleep.per_request_ms(mean, self.completed)
    }

    /// Milliseconds per request that threads slept uninterruptibly, for any reason.
    pub fn asleep_ms(&self) -> f64 {
        self.ms(self.asleep.mean)
    }

    /// Milliseconds per request that all I/O of the machine took: the most that requests can have
    /// waited for their own I/O.
    pub fn io_ms(&self) -> f64 {
        self.io_seconds / self.completed * 1e3
    }

    /// Milliseconds per request that threads waited for disks: at most what all I/O took, unless a
    /// device was never idle (`busiest` is the share of busy time). Threads behind its I/O, such as
    /// the waiters of one journal commit or of a directory's lock, then wait for the device too,
    /// though few operations are in its queue.
    pub fn disks_ms(&self, busiest: f64) -> f64 {
        if self.is_all_in_sessions {
            return self.sessions_ms(busiest);
        }
        let asleep = self.ms((self.asleep.mean - self.mean_of(&[Wait::Remote, Wait::Reclaim])).max(0.0));
        let known = &[Wait::Fault, Wait::Read, Wait::Page, Wait::Write, Wait::Directory, Wait::Swap];
        let behind = if busiest >= NEVER_RESTS { self.ms(self.mean_of(known)) * busiest } else { 0.0 };
        let threads = if self.held_back { asleep } else { asleep.min(self.io_ms().max(behind)) };
        threads.max(self.sessions_ms(busiest)).max(self.unseen_ms())
    }

    /// Milliseconds per request that devices took for reads, as far as too few samples of threads
    /// leave it open. A process that reads waits for it; short waits between two samples are
    /// counted by devices alone.
    fn unseen_ms(&self) -> f64 {
        let instants = self.asleep.instants.max(1) as f64;
        let seen = self.asleep.mean * instants;
        if seen >= SIGHTINGS {
            return 0.0;
        }
        let most = (seen + 2.0 * seen.sqrt() + UNSEEN) / instants;
        (self.read_seconds / self.completed * 1e3).min(self.ms(most))
    }

    /// The same by the database's own sessions, which include those that queue inside the database.
    fn sessions_ms(&self, busiest: f64) -> f64 {
        let waited = self.ms(self.sessions.map_or(0.0, |sessions| sessions.for_disk()));
        if self.held_back {
            waited
        } else if busiest >= NEVER_RESTS {
            waited * busiest
        } else {
            waited.min(self.io_ms())
        }
    }

    /// Threads that waited for reads. Where the reason is unknown, reads get their share in the
    /// time of all I/O.
    pub fn reading(&self) -> f64 {
        let known = self.mean_of(&[Wait::Fault, Wait::Read, Wait::Page]);
        let share = if self.io_seconds > 0.0 { (self.read_seconds / self.io_seconds).min(1.0) } else { 0.0 };
        let located: f64 = self.asleep.groups.iter().map(|place| place.mean).sum();
        let open = self.mean_of(&[Wait::Unknown]) + (self.asleep.mean - located).max(0.0);
        known + open * share
    }

    /// Milliseconds per request that threads waited for reads of disks: at most what these reads
    /// took, unless a device was never idle; as much, if too few samples leave it open. A device
    /// counts at most as many requests as it has tags (128 or 256, `nr_requests`). Threads beyond
    /// that wait for a tag, in a fault or call like the others, and no counter of the device shows
    /// them.
    pub fn reading_ms(&self) -> f64 {
        let asleep = self.ms(self.reading());
        let known = self.ms(self.mean_of(&[Wait::Fault, Wait::Read, Wait::Page]));
        let behind = if self.busiest >= NEVER_RESTS { known * self.busiest } else { 0.0 };
        let counted = self.read_seconds / self.completed * 1e3;
        if self.held_back { asleep } else { asleep.min(counted.max(behind)).max(self.unseen_ms()) }
    }

    /// Share (0-1) of the waits for reads that are page faults; none if no place is known.
    pub fn fault_ratio(&self) -> Option<f64> {
        let (faults, calls) = (self.mean_of(&[Wait::Fault]), self.mean_of(&[Wait::Read]));
        (faults + calls > 0.0).then(|| faults / (faults + calls))
    }

    /// The place where most threads wait so.
    pub fn place(&self, waits: &[Wait]) -> Option<&Place> {
        self.asleep.groups.iter().find(|place| waits.contains(&wait_of(place)))
    }
}

impl View<'_> {
    /// Threads in uninterruptible sleep beside what `disks` did, while `completed` requests ended.
    /// MongoDB's own timing of reads and writes stands for threads that were not counted.
    ///
    /// # Errors
    /// If threads were not counted, or what was done under a cgroup's limit on I/O.
    pub fn disk_waits(&self, disks: &Disks, completed: f64) -> Result<DiskWaits, Missing> {
        let asleep = self.asleep().or_else(|missing| self.asleep_in_engine().ok_or(missing))?;
        let sessions = self.server_waits().ok().flatten();
        Ok(DiskWaits {
            is_all_in_sessions: sessions.is_some() && !asleep.watched && self.asks_statements(),
            asleep,
            sessions,
            completed: completed.max(1.0),
            read_seconds: disks.operation_seconds(|d| d.read.seconds),
            io_seconds: disks.operation_seconds(|d| d.operation_seconds()),
            busiest: disks
                .tops()
                .max_by(|a, b| a.operation_seconds().total_cmp(&b.operation_seconds()))
                .map_or(0.0, |d| d.utilization),
            held_back: self.throttles()?.first().is_some_and(|t| t.is_reached()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    fn place(wchan: Option<&str>, stack: Option<&str>) -> Place {
        let text = |t: Option<&str>| t.map(str::to_owned);
        Place { process: "p".into(), wchan: text(wchan), stack: text(stack), path: None, syscall: None, mean: 1.0 }
    }

    #[test]
    fn places_tell_what_is_waited_for() {
        let fault = "folio_wait_bit_common < filemap_fault < __do_fault < do_fault < exc_page_fault";
        let wait = |wchan, stack| wait_of(&place(wchan, stack));
        assert_eq!(wait(Some("folio_wait_bit_common"), Some(fault)), Wait::Fault);
        assert_eq!(wait(Some("folio_wait_bit_common"), None), Wait::Page);
        assert_eq!(wait(None, Some("io_schedule < __iomap_dio_rw < ext4_file_read_iter < vfs_read")), Wait::Read);
        assert_eq!(wait(None, Some("shrink_folio_list < try_to_free_pages < filemap_fault")), Wait::Reclaim);
        assert_eq!(wait(None, Some("jbd2_log_wait_commit+0x1 < do_unlinkat")), Wait::Directory);
        assert_eq!(wait(Some("jbd2_log_wait_commit"), None), Wait::Write);
        assert_eq!(wait(Some("io_schedule"), None), Wait::Unknown);
    }

    /// 150 requests a second of 1.6 s, 240 threads of which sleep in faults, before a device that reads 128 at once.
    fn piled_up(reads: f64) -> SyntheticRecording {
        let fault = "folio_wait_bit_common < filemap_fault < __do_fault < exc_page_fault";
        SyntheticRecording::new(12)
            .requests(150, 1_600)
            .disk("loop0", (reads, 119_000.0, 128.0 / 206.0 * 1e3), (0.0, 0.0, 0.0))
            .asleep(240, "folio_wait_bit_common", fault, None)
    }

    #[test]
    fn waits_for_a_tag_of_a_busy_device_count_as_reads() {
        let reading = |made: &SyntheticRecording| {
            made.seen(|view| {
                let waits = view.disk_waits(&view.disks().unwrap(), 150.0 * view.window.seconds()).unwrap();
                waits.reading_ms()
            })
        };
        let all = reading(&piled_up(206.0));
        assert!((all - 1_600.0).abs() < 50.0, "{all}");
        // A device that rests most of the time has a tag for everybody.
        let rested = reading(&piled_up(1.0));
        assert!(rested < 20.0, "{rested}");
    }

    #[test]
    fn mongodbs_own_timing_stands_for_threads_that_were_not_counted() {
        let cache = "mongodb_server_status_wired_tiger_cache_application_threads_page";
        // 100 operations a second that each read for 40 ms, on a disk that takes 20 ms for each of 500 reads a second.
        let made = |has_threads: bool| {
            let made = SyntheticRecording::new(20)
                .requests(100, 50)
                .disk("vda", (500.0, 8_192.0, 20.0), (0.0, 0.0, 0.0))
                .counter("mongodb://db", &format!("{cache}_read_from_disk_to_cache_time_usecs"), &[], 4e6);
            if has_threads { made.gauge("host", "system_threads", &[("state", "D")], 0.0) } else { made }
        };
        let seen = |made: SyntheticRecording| {
            made.seen(|view| {
                let waits = view.disk_waits(&view.disks().unwrap(), 100.0 * view.window.seconds()).unwrap();
                (waits.reading_ms(), waits.disks_ms(0.5), waits.asleep.is_timed)
            })
        };
        let (reading, disks, is_timed) = seen(made(false));
        assert!((reading - 40.0).abs() < 1.0 && (disks - 40.0).abs() < 1.0 && is_timed, "{reading} {disks}");
        let (reading, _, is_timed) = seen(made(true));
        assert!(reading < 5.0 && !is_timed, "threads were counted, and none slept: {reading}");
    }

    #[test]
    fn reads_too_short_to_be_seen_take_as_long_as_their_device_does() {
        // 30 requests a second that each read ten times for half a millisecond: one of 24 samples meets one.
        let seen = SyntheticRecording::new(24)
            .requests(30, 8)
            .disk("vda", (300.0, 16_384.0, 0.5), (0.0, 0.0, 0.0))
            .tables(|tables| tables.threads.present = true)
            .counted("pid:7", "process_threads", &[("state", "D")], |s| if s == 8 { 1.0 } else { 0.0 });
        let ms = seen
            .seen(|view| view.disk_waits(&view.disks().unwrap(), 30.0 * view.window.seconds()).unwrap().reading_ms());
        assert!((4.0..=5.1).contains(&ms), "{ms}");
    }
}
