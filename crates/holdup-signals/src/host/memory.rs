//! Memory over a window: which limit is tighter, the machine's or that of a watched process's
//! cgroup; how full it is, and of what; and what that led to: pages of files read again, page
//! faults that waited for a disk, allocations that waited for memory. Memory full of cached files
//! is used well, so none of this is a fault by itself.

use crate::Evidence;
use crate::{Counter, Missing, View};
use holdup_recording::{Labels, metrics};

/// What to record for the machine's memory.
pub const HOST: &str = "--watch host";

/// What to record for the memory of a process's cgroup.
pub const PROCESS: &str = "--watch pid:N for the app and the database";

/// Bytes of a page of memory. Machines with larger ones fault less often for the same bytes.
pub const PAGE_BYTES: f64 = 4096.0;

/// From this share (0-1) in use, a new page pushes another out. The kernel keeps a few per cent of
/// the machine free (vm.min_free_kbytes and the watermarks above it) and charges a cgroup's pages
/// in batches.
const FULL: f64 = 0.9;

/// Name of the setting with a cgroup's memory limit.
pub const LIMIT: &str = "cgroup.memory_limit_bytes";

/// The tighter of the limits on memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its owner: `host`, or `pid:N` for the cgroup of that process.
    pub source: String,
    /// The limit, bytes.
    pub limit_bytes: f64,
    /// Share (0-1) of it in use on average, cached files included.
    pub in_use_ratio: f64,
    /// Bytes of cached files among it, on average; none if not recorded.
    pub file_bytes: Option<f64>,
    /// The metric of its samples.
    metric: &'static str,
}

impl Memory {
    /// Whether a new page has to push another out.
    pub fn is_full(&self) -> bool {
        self.in_use_ratio >= FULL
    }

    /// Whether a cgroup's limit is the tighter one.
    pub fn is_cgroup(&self) -> bool {
        self.source != "host"
    }

    /// Evidence that points at its samples.
    pub fn evidence(&self, view: &View<'_>, observed: String, expected: &str, text: String) -> Evidence {
        let labels = Labels::new([("metric", self.metric)]);
        Evidence::new("samples", "value", labels, view.window, observed, expected, text)
    }
}

impl View<'_> {
    /// The fullest memory: that of a watched process's cgroup with a limit, or the machine's.
    ///
    /// # Errors
    /// If neither was recorded, or only one of a cgroup's limit and usage.
    pub fn memory(&self) -> Result<Memory, Missing> {
        // A cgroup with figures may have a limit. If that was not recorded, room on the machine
        // proves nothing.
        let has_cgroup = !self.sources_of(metrics::cgroup::MEMORY_USAGE_BYTES.name).is_empty();
        let settings = match self.recording.tables.settings.with_columns(&["source", "name", "value"]) {
            Err(what) if has_cgroup => return Err(Missing::new(what, PROCESS)),
            settings => settings.unwrap_or_default(),
        };
        let mut all: Vec<Memory> = Vec::new();
        for row in settings.iter().filter(|s| s.name == LIMIT && s.source.starts_with("pid:")) {
            let Ok(limit) = row.value.parse::<f64>() else { continue };
            let gauge = |metric| self.gauge_where(|source| source == row.source, metric, &[], PROCESS);
            all.push(Memory {
                source: row.source.clone(),
                limit_bytes: limit,
                in_use_ratio: gauge(metrics::cgroup::MEMORY_USAGE_BYTES.name)?.mean / limit.max(1.0),
                file_bytes: gauge(metrics::cgroup::MEMORY_FILE_BYTES.name).ok().map(|g| g.mean),
                metric: metrics::cgroup::MEMORY_USAGE_BYTES.name,
            });
        }
        let host = self.memory_of_host();
        if let Ok(host) = &host {
            all.push(host.clone());
        }
        let fullest = all.into_iter().max_by(|a, b| a.in_use_ratio.total_cmp(&b.in_use_ratio));
        fullest.map_or(host, Ok)
    }

    /// Path of the cgroup that `metric` of `source` belongs to, below the mount of its controller.
    /// In version 1 each controller may have another path.
    pub fn cgroup_of(&self, source: &str, metric: &str) -> String {
        let labelled = self.index.series(metric, &[]).find(|((s, _), _)| s == source);
        let path = labelled.and_then(|((_, labels), _)| labels.get("cgroup"));
        path.or(self.setting_of(source, "cgroup.path")).unwrap_or("/ITS-CGROUP").trim_end_matches('/').to_owned()
    }

    fn memory_of_host(&self) -> Result<Memory, Missing> {
        let state =
            |state| self.gauge(metrics::host::MEMORY_USAGE_BYTES.name, &[("state", state)], HOST).map(|g| g.mean);
        let total = self.gauge(metrics::host::MEMORY_TOTAL_BYTES.name, &[], HOST)?.mean;
        Ok(Memory {
            source: "host".to_owned(),
            limit_bytes: total,
            in_use_ratio: 1.0 - state("free")? / total.max(1.0),
            file_bytes: state("cached").ok(),
            metric: metrics::host::MEMORY_USAGE_BYTES.name,
        })
    }

    /// Page faults that had to read from a disk: the machine's, because its disks serve all
    /// processes; else the watched processes'.
    ///
    /// # Errors
    /// If none were recorded.
    pub fn major_faults(&self) -> Result<Counter, Missing> {
        self.counter(metrics::host::PAGING_FAULTS.name, &[("type", "major")], HOST)
            .or_else(|_| self.counter(metrics::process::MAJOR_FAULTS.name, &[], PROCESS))
    }

    /// Pages of `kind` (`file`, `anon`) read again soon after they were dropped: in the cgroup of
    /// `memory`, else on the machine.
    ///
    /// # Errors
    /// If neither was recorded.
    pub fn refaults(&self, memory: &Memory, kind: &str) -> Result<Counter, Missing> {
        let labels = [("type", kind)];
        if memory.is_cgroup()
            && let Ok(own) =
                self.counter_where(|s| s == memory.source, metrics::cgroup::MEMORY_REFAULTS.name, &labels, PROCESS)
        {
            return Ok(own);
        }
        self.counter(metrics::host::PAGING_REFAULTS.name, &labels, HOST)
    }

    /// Seconds in which a task stalled for lack of memory (PSI, `some`): the greater of the
    /// machine's and that of a watched process's cgroup.
    ///
    /// # Errors
    /// If the kernel does not count them, or they were not recorded.
    pub fn memory_stall(&self) -> Result<Counter, Missing> {
        let labels = [("resource", "memory"), ("kind", "some")];
        let host = self.counter(metrics::host::PRESSURE.name, &labels, HOST);
        let sources = self.sources_of(metrics::cgroup::PRESSURE_STALL.name);
        let own = sources.into_iter().filter(|s| s.starts_with("pid:")).filter_map(|of| {
            self.counter_where(|s| s == of, metrics::cgroup::PRESSURE_STALL.name, &labels, PROCESS).ok()
        });
        let most = own.chain(host.clone()).max_by(|a, b| a.delta.total_cmp(&b.delta));
        most.map_or(host, Ok)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

    #[test]
    fn the_fullest_memory_is_the_one_that_matters() {
        let made = SyntheticRecording::new(10)
            .gauge("host", "system_memory_total_bytes", &[], 8e9)
            .gauge("host", "system_memory_usage_bytes", &[("state", "free")], 4e9)
            .gauge("host", "system_memory_usage_bytes", &[("state", "cached")], 3e9)
            .gauge("pid:7", "cgroup_memory_usage_bytes", &[], 0.99e9)
            .setting("pid:7", super::LIMIT, "1000000000");
        let memory = made.seen(|view| view.memory().unwrap());
        assert!(memory.is_full() && memory.source == "pid:7", "{memory:?}");
        assert!(made.clone().without("cgroup_memory_usage_bytes").seen(|view| view.memory().is_err()));
        let tight = made.gauge("host", "system_memory_usage_bytes", &[("state", "free")], -4e9 + 8e5);
        let host = tight.seen(|view| view.memory().unwrap());
        assert!(host.is_full() && !host.is_cgroup(), "{host:?}");
    }

    #[test]
    fn a_cgroups_refaults_are_not_added_to_the_hosts() {
        let file = [("type", "file")];
        let made = SyntheticRecording::new(10)
            .counter("host", "cgroup_memory_refaults_total", &file, 7.0)
            .counter("pid:7", "cgroup_memory_refaults_total", &file, 5.0)
            .counter("host", "system_paging_refaults_total", &file, 100.0)
            .gauge("host", "system_memory_total_bytes", &[], 8e9)
            .gauge("host", "system_memory_usage_bytes", &[("state", "free")], 4e9)
            .gauge("pid:7", "cgroup_memory_usage_bytes", &[], 0.99e9)
            .setting("pid:7", super::LIMIT, "1000000000");
        made.seen(|view| {
            let memory = view.memory().unwrap();
            let rate = view.refaults(&memory, "file").unwrap().rate();
            assert!((rate - 5.0).abs() < 1e-9, "{rate}");
        });
    }
}
