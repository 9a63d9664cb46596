//! Threads in uninterruptible sleep (state D): how many on average, and where each stood: kernel
//! function, kernel stack, system call, file. Rules decide what they waited for, and why.
//!
//! Each sample reads all threads; only those in D leave rows. So a mean is over all instants at
//! which threads were counted, with and without one in D. For a large pile-up holdup reads only
//! some stacks and files; the other threads are assumed to stand where known ones of the same
//! process stand.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Thread;
use holdup_recording::{Labels, metrics};

use crate::Evidence;
use crate::{Gauge, Missing, View};

/// What to record to count threads by state.
const ENABLE: &str = "--watch pid:N for the app and the database, or --watch host";

/// The state letter of `/proc/PID/stat`.
const UNINTERRUPTIBLE: &str = "D";

/// Prefixes of the names of the kernel's own threads, for use without a stack. Their work belongs
/// to a request that is counted already, or to none.
const KERNEL_THREADS: &[&str] =
    &["kworker", "jbd2/", "loop", "kswapd", "khugepaged", "kcompactd", "md", "dmcrypt", "txg_", "xfsaild"];

/// Process names of database servers (at most 15 bytes): on a database's host, a sleeping thread
/// usually serves its requests.
const SERVERS: &[&str] = &[
    "mysqld",
    "mariadbd",
    "postgres",
    "mongod",
    "redis-server",
    "valkey-server",
    "clickhouse-serv",
    "memcached",
    "etcd",
];

/// Whether a process of this name is a database's server.
pub fn is_database_server(name: &str) -> bool {
    SERVERS.contains(&name)
}

/// Whether a thread of this name is the kernel's own.
pub fn is_kernel_thread(name: &str) -> bool {
    KERNEL_THREADS.iter().any(|prefix| name.starts_with(prefix))
}

/// Functions at which every kernel thread's stack ends.
const KERNEL_THREAD_ENDS: &[&str] = &["kthread", "ret_from_fork", "ret_from_fork_asm"];

/// Threads at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Process name.
    pub process: String,
    /// Kernel function they sleep in.
    pub wchan: Option<String>,
    /// Kernel stack, innermost function first, joined by ` < `.
    pub stack: Option<String>,
    /// File of their system call; digits of its last component are `?`.
    pub path: Option<String>,
    /// System call number.
    pub syscall: Option<i64>,
    /// How many on average.
    pub mean: f64,
}

impl Place {
    /// The directory of the file, if that is known.
    pub fn directory(&self) -> Option<&str> {
        let (directory, _) = self.path.as_deref()?.rsplit_once('/')?;
        Some(if directory.is_empty() { "/" } else { directory })
    }

    /// Whether `function` is where they sleep or on the way there.
    pub fn passes(&self, function: &str) -> bool {
        self.wchan.as_deref() == Some(function) || self.functions().any(|f| f == function)
    }

    /// The kernel stack's functions, innermost first.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.stack.as_deref().unwrap_or_default().split(" < ").map(|f| f.split('+').next().unwrap_or(f))
    }

    /// The most specific name of the place: the wait channel, else the innermost function.
    pub fn function(&self) -> Option<&str> {
        self.wchan.as_deref().or_else(|| self.functions().next().filter(|f| !f.is_empty()))
    }

    fn is_known(&self) -> bool {
        self.stack.is_some() || self.path.is_some()
    }
}

/// Threads in uninterruptible sleep over a window.
#[derive(Clone, Debug)]
pub struct Asleep {
    /// How many on average.
    pub mean: f64,
    /// Most at one instant.
    pub max: f64,
    /// Where they stood, most first.
    pub groups: Vec<Place>,
    /// Instants at which they were counted.
    pub instants: usize,
    /// Whether it covers watched processes; if not, every process of the host.
    pub watched: bool,
    /// Whether no threads were counted, and a storage engine's own timing of its reads and writes
    /// stands for them.
    pub is_timed: bool,
    counted: Gauge,
    view_window: crate::Window,
}

impl Asleep {
    /// Mean number at places for which `is` holds.
    pub fn mean_where(&self, is: impl Fn(&Place) -> bool) -> f64 {
        // An empty sum is -0, which would be printed so.
        self.groups.iter().filter(|place| is(place)).map(|place| place.mean).fold(0.0, |sum, mean| sum + mean)
    }

    /// Milliseconds per each of `completed` requests, if `mean` threads stood there on average:
    /// Little's law.
    pub fn per_request_ms(&self, mean: f64, completed: f64) -> f64 {
        mean / (completed / self.view_window.seconds().max(1e-9)).max(1e-9) * 1e3
    }

    /// Evidence that points at the counts.
    pub fn counted(
        &self,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        self.counted.evidence(observed, expected, text)
    }

    /// Evidence that points at the rows of `place`.
    pub fn at(
        &self,
        place: &Place,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let mut labels = Labels::new([("state", UNINTERRUPTIBLE), ("process", place.process.as_str())]);
        if let Some(wchan) = &place.wchan {
            labels = labels.with("wchan", wchan.clone());
        }
        if let Some(directory) = place.directory() {
            labels = labels.with("directory", directory);
        }
        // A column that its rows have.
        let column = if place.path.is_some() {
            "path"
        } else if place.stack.is_some() {
            "stack"
        } else if place.wchan.is_some() {
            "wchan"
        } else {
            "state"
        };
        Evidence::new("threads", column, labels, self.view_window, observed, expected, text)
    }

    /// The process with most of them.
    pub fn process(&self) -> Option<&str> {
        let mut by_process: BTreeMap<&str, f64> = BTreeMap::new();
        for place in &self.groups {
            *by_process.entry(&place.process).or_default() += place.mean;
        }
        by_process.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(process, _)| process)
    }

    /// What was counted, as the middle of a sentence.
    pub fn who(&self) -> &'static str {
        match (self.is_timed, self.watched) {
            (true, _) => "operations read or wrote pages (by the storage engine's own timing)",
            (_, true) => "threads of the service were in uninterruptible sleep",
            (_, false) => "threads of this machine (none watched) were in uninterruptible sleep",
        }
    }

    /// Share (0-1) of the instants at which any slept.
    pub fn present_ratio(&self) -> f64 {
        self.counted.positive_ratio
    }

    /// Whether any place's stack or file was readable.
    pub fn has_places(&self) -> bool {
        self.groups.iter().any(Place::is_known)
    }
}

impl View<'_> {
    /// Threads in uninterruptible sleep. Those of the watched processes count, because they are the
    /// service. If none of them ever sleeps so, or none is watched, it is the unwatched database
    /// servers of this host. Without those either, it is all processes but the kernel's own.
    ///
    /// # Errors
    /// If threads were not counted, or their rows lack a column.
    pub fn asleep(&self) -> Result<Asleep, Missing> {
        let state = [("state", UNINTERRUPTIBLE)];
        let rows = self.recording.tables.threads.with_columns(&["observed_at", "source", "process", "state"]);
        let of = |prefix: &str| -> Vec<&Thread> {
            let rows = rows.as_ref().copied().unwrap_or_default().iter();
            rows.filter(|r| r.source.starts_with(prefix) && r.state == UNINTERRUPTIBLE)
                .filter(|r| self.window.contains(r.observed_at))
                .collect()
        };
        let (watched, host) = (of("pid:"), of("host"));
        let by_process = self.gauge(metrics::process::THREADS.name, &state, ENABLE);
        let is_server = |row: &&Thread| is_database_server(&row.process);
        let has_servers = host.iter().any(is_server);
        let (metric, counted, chosen) = match by_process {
            Ok(gauge) if gauge.max > 0.0 || !has_servers => (metrics::process::THREADS.name, gauge, watched),
            // There are rows of watched processes but no count of their threads: no other count can
            // replace it.
            Err(missing) if !watched.is_empty() => return Err(missing),
            _ => {
                let keep = |row: &&Thread| if has_servers { is_server(row) } else { true };
                let chosen = host.into_iter().filter(keep).collect();
                (metrics::host::THREADS.name, self.gauge(metrics::host::THREADS.name, &state, ENABLE)?, chosen)
            }
        };
        // Without rows it is unknown whose threads the host counted.
        let any_here = || self.gauge(metrics::host::THREADS.name, &state, ENABLE).is_ok_and(|gauge| gauge.max > 0.0);
        if let Err(what) = rows
            && (counted.max > 0.0 || any_here())
        {
            return Err(Missing::new(what, ENABLE));
        }
        let is_watched = metric == metrics::process::THREADS.name;
        let (places, left_out) = self.places(metric, chosen, is_watched);
        let located: f64 = places.iter().map(|place| place.mean).sum();
        let mut groups = spread(places);
        groups.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        let instants = self.instants_of(metric);
        Ok(Asleep {
            // The host's count includes others: the kernel's own threads, and processes that are
            // not database servers.
            mean: if has_servers && !is_watched { located } else { (counted.mean - left_out).max(0.0) },
            max: counted.max,
            groups,
            instants: instants.values().map(BTreeSet::len).max().unwrap_or(0),
            watched: is_watched,
            is_timed: false,
            counted,
            view_window: self.window,
        })
    }

    /// Operations of MongoDB that read or wrote pages, on average, by its storage engine's own timing.
    /// They stand for its threads where none were counted; none if it does not time them.
    pub(super) fn asleep_in_engine(&self) -> Option<Asleep> {
        use metrics::mongodb as of;
        const READ: &str =
            of::SERVER_STATUS_WIRED_TIGER_CACHE_APPLICATION_THREADS_PAGE_READ_FROM_DISK_TO_CACHE_TIME_USECS.name;
        const WRITTEN: &str =
            of::SERVER_STATUS_WIRED_TIGER_CACHE_APPLICATION_THREADS_PAGE_WRITE_FROM_CACHE_TO_DISK_TIME_USECS.name;
        let seconds = |metric: &str| self.counter(metric, &[], ENABLE).ok().map(|counter| counter.rate() / 1e6);
        let mean = seconds(READ)? + seconds(WRITTEN).unwrap_or(0.0);
        Some(Asleep {
            mean,
            max: mean,
            groups: Vec::new(),
            // A timing misses nothing, however short.
            instants: usize::MAX,
            watched: true,
            is_timed: true,
            counted: self.gauge(READ, &[], ENABLE).ok()?,
            view_window: self.window,
        })
    }

    /// Instants at which each source counted threads in uninterruptible sleep.
    fn instants_of(&self, metric: &str) -> BTreeMap<&str, BTreeSet<i64>> {
        let mut instants: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
        for ((source, _), series) in self.index.series(metric, &[("state", UNINTERRUPTIBLE)]) {
            let seen = series.iter().map(|(at, _)| *at).filter(|at| self.window.contains(*at));
            instants.entry(source).or_default().extend(seen);
        }
        instants
    }

    /// Where the threads of `rows` stood, and the mean number of kernel threads left out.
    fn places(&self, metric: &str, rows: Vec<&Thread>, is_watched: bool) -> (Vec<Place>, f64) {
        let instants = self.instants_of(metric);
        let mut means: BTreeMap<_, f64> = BTreeMap::new();
        for row in rows {
            let Some(n) = instants.get(row.source.as_str()).map(BTreeSet::len).filter(|n| *n > 0) else { continue };
            let place = (&row.process, &row.wchan, &row.stack, &row.path, row.syscall);
            *means.entry(place).or_default() += row.count() as f64 / n as f64;
        }
        let places = means.into_iter().map(|((process, wchan, stack, path, syscall), mean)| Place {
            process: process.clone(),
            wchan: wchan.clone(),
            stack: stack.clone(),
            path: path.clone(),
            syscall,
            mean,
        });
        let (left_out, places): (Vec<Place>, Vec<Place>) = places.partition(|p| !is_watched && is_kernels_own(p));
        (places, left_out.iter().map(|place| place.mean).sum())
    }
}

fn is_kernels_own(place: &Place) -> bool {
    match place.functions().last().filter(|f| !f.is_empty()) {
        Some(outermost) => KERNEL_THREAD_ENDS.contains(&outermost),
        None => KERNEL_THREADS.iter().any(|name| place.process.starts_with(name)),
    }
}

/// Assigns threads with unknown place to the place of similar ones: first of the same process and
/// stack with a known file, then of the same process and wait channel, then of the same process.
fn spread(mut places: Vec<Place>) -> Vec<Place> {
    type Like = fn(&Place, &Place) -> bool;
    let steps: [(Like, Like); 3] = [
        (|p, _| p.stack.is_some() && p.path.is_none(), |p, q| q.path.is_some() && q.stack == p.stack),
        (|p, _| !p.is_known() && p.wchan.is_some(), |p, q| q.is_known() && q.wchan == p.wchan),
        (|p, _| !p.is_known() && p.wchan.is_none(), |_, q| q.is_known()),
    ];
    for (is_open, is_like) in steps {
        let (open, mut known): (Vec<Place>, Vec<Place>) = places.into_iter().partition(|p| is_open(p, p));
        let before: Vec<f64> = known.iter().map(|p| p.mean).collect();
        let mut left = Vec::new();
        for place in open {
            let like: Vec<usize> = (0..known.len())
                .filter(|i| known[*i].process == place.process && is_like(&place, &known[*i]))
                .collect();
            let all: f64 = like.iter().map(|i| before[*i]).sum();
            if all > 0.0 {
                like.into_iter().for_each(|i| known[i].mean += place.mean * before[i] / all);
            } else {
                left.push(place);
            }
        }
        known.append(&mut left);
        places = known;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    fn place(wchan: Option<&str>, stack: Option<&str>, path: Option<&str>, mean: f64) -> Place {
        let text = |t: Option<&str>| t.map(str::to_owned);
        Place {
            process: "mariadbd".into(),
            wchan: text(wchan),
            stack: text(stack),
            path: text(path),
            syscall: None,
            mean,
        }
    }

    #[test]
    fn threads_that_were_not_looked_at_stand_where_the_others_do() {
        let spread = spread(vec![
            place(Some("do_unlinkat"), Some("do_unlinkat < x"), Some("/tmp/a?"), 3.0),
            place(Some("do_unlinkat"), Some("do_unlinkat < x"), None, 1.0),
            place(Some("path_openat"), Some("path_openat < x"), Some("/tmp/b?"), 2.0),
            place(Some("path_openat"), None, None, 10.0),
            place(None, None, None, 16.0),
        ]);
        let means: Vec<f64> = spread.iter().map(|p| p.mean).collect();
        assert_eq!(means, [8.0, 24.0]);
    }

    #[test]
    fn another_process_tells_nothing() {
        let mut other = place(None, None, None, 5.0);
        other.process = "app".into();
        let all = spread(vec![place(None, Some("a < b"), None, 1.0), other.clone()]);
        assert!(all.contains(&other), "{all:?}");
    }

    #[test]
    fn the_watched_are_the_service_and_else_the_servers_on_the_host() {
        let row = |source: &str, process: &str, count: i64| Thread {
            observed_at: 0,
            source: source.into(),
            process: process.into(),
            state: "D".into(),
            count,
            ..Thread::default()
        };
        let mean = |watched: Option<f64>, rows: Vec<Thread>| {
            let mut made = SyntheticRecording::new(1).gauge("host", "system_threads", &[("state", "D")], 90.0);
            if let Some(n) = watched {
                made = made.gauge("pid:7", "process_threads", &[("state", "D")], n);
            }
            made.threads(rows).seen(|view| view.asleep().ok().map(|asleep| (asleep.mean, asleep.watched)))
        };
        let others = || vec![row("host", "dd", 40), row("host", "dd", 40)];
        // Another process sleeps, and ours does not: that is no time of our requests.
        assert_eq!(mean(Some(0.0), others()), Some((0.0, true)));
        assert_eq!(mean(Some(3.0), others()), Some((3.0, true)));
        assert_eq!(mean(None, others()), Some((90.0, false)));
        let with_server = [others(), vec![row("host", "mariadbd", 5), row("host", "kworker/0:1", 1)]].concat();
        assert_eq!(mean(Some(0.0), with_server.clone()), Some((5.0, false)));
        assert_eq!(mean(None, with_server), Some((5.0, false)));
        assert_eq!(mean(None, vec![row("pid:7", "mariadbd", 5)]), None);
    }

    #[test]
    fn evidence_of_a_place_points_at_a_column_that_its_rows_have() {
        let row = |wchan: Option<&str>| Thread {
            source: "host".into(),
            process: "mariadbd".into(),
            state: "D".into(),
            count: 5,
            wchan: wchan.map(str::to_owned),
            ..Thread::default()
        };
        let column = |wchan| {
            let made = SyntheticRecording::new(1).gauge("host", "system_threads", &[("state", "D")], 9.0);
            made.threads(vec![row(wchan)]).seen(|view| {
                let asleep = view.asleep().unwrap();
                asleep.at(&asleep.groups[0], "", "", "").column
            })
        };
        assert_eq!(column(Some("do_unlinkat")), "wchan");
        assert_eq!(column(None), "state");
    }

    #[test]
    fn directories_and_functions() {
        let p = place(None, Some("do_unlinkat+0x1 < __x64_sys_unlink"), Some("/tmp/x/#sql_?"), 1.0);
        assert_eq!((p.directory(), p.function()), (Some("/tmp/x"), Some("do_unlinkat")));
        assert!(p.passes("__x64_sys_unlink") && !p.passes("unlink"));
        let kernel = place(None, Some("io_schedule < worker_thread < kthread < ret_from_fork"), None, 1.0);
        assert!(is_kernels_own(&kernel) && !is_kernels_own(&p));
    }
}
