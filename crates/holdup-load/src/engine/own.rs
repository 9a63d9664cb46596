//! The generator's own limits: how long its CPU cgroup throttled it.

use std::fs;
use std::path::{Path, PathBuf};

/// `cpu.stat` of this process's cgroup and of those above it: each of them can throttle.
pub struct Throttling {
    files: Vec<PathBuf>,
}

/// Time without CPU because a quota was used up, since the groups were created.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThrottledTime {
    /// Seconds.
    pub seconds: f64,
    /// Periods in which it happened.
    pub periods: f64,
}

impl Throttling {
    /// Finds the files to read.
    pub fn for_this_process() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self { files: files(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo")) }
    }

    /// The present state; none where nothing can be read.
    pub fn read(&self) -> Option<ThrottledTime> {
        let mut sum = None;
        for text in self.files.iter().filter_map(|f| fs::read_to_string(f).ok()) {
            let sum = sum.get_or_insert_with(ThrottledTime::default);
            let one = parse(&text);
            sum.seconds += one.seconds;
            sum.periods += one.periods;
        }
        sum
    }
}

/// CPU time that the hypervisor gave to other guests, from one reading to the next.
pub struct StolenTime {
    /// Stolen and all time of all CPUs, in ticks.
    before: Option<(u64, u64)>,
}

impl StolenTime {
    /// Takes the first reading.
    pub fn new() -> Self {
        Self { before: ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()) }
    }

    /// Stolen share of all CPU time since the last reading, 0-1; none where the kernel does not
    /// say.
    pub fn since_last(&mut self) -> Option<f64> {
        let now = ticks(&fs::read_to_string("/proc/stat").ok()?)?;
        let (stolen, all) = self.before.replace(now)?;
        let passed = now.1.saturating_sub(all);
        (passed > 0).then(|| now.0.saturating_sub(stolen) as f64 / passed as f64)
    }
}

/// Stolen and all ticks of the first line of `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal.
fn ticks(text: &str) -> Option<(u64, u64)> {
    let numbers: Vec<u64> = text.lines().next()?.split_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
    Some((*numbers.get(7)?, numbers[..8].iter().sum()))
}

/// The files, from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo` (proc(5), cgroups(7)).
fn files(cgroup: &str, mountinfo: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_v2 = controllers.is_empty();
        if !is_v2 && !controllers.split(',').any(|c| c == "cpu") {
            continue;
        }
        let Some((root, mount)) = mountinfo.lines().find_map(|line| mount_of(line, is_v2)) else { continue };
        // A group outside what is mounted here (a container's own view) is visible at the mount
        // itself.
        let relative = path.strip_prefix(root.as_str()).unwrap_or("").trim_start_matches('/');
        let relative = if relative.contains("..") { "" } else { relative };
        let mut folder = Path::new(&mount).join(relative);
        while folder.starts_with(&mount) {
            files.push(folder.join("cpu.stat"));
            if !folder.pop() {
                break;
            }
        }
    }
    files
}

/// Root and mount point of a line of mountinfo, if it mounts the wanted kind of cgroup file system.
fn mount_of(line: &str, is_v2: bool) -> Option<(String, String)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, mount) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (kind, options) = (right.next()?, right.nth(1)?);
    let is_wanted = if is_v2 { kind == "cgroup2" } else { kind == "cgroup" && options.split(',').any(|o| o == "cpu") };
    is_wanted.then(|| (root.trim_end_matches('/').to_owned(), mount.to_owned()))
}

fn parse(text: &str) -> ThrottledTime {
    let mut throttled = ThrottledTime::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else { continue };
        let Ok(value) = value.trim().parse::<f64>() else { continue };
        match key {
            "nr_throttled" => throttled.periods = value,
            "throttled_usec" => throttled.seconds = value / 1e6,
            // cgroup v1 counts nanoseconds.
            "throttled_time" => throttled.seconds = value / 1e9,
            _ => {}
        }
    }
    throttled
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 25 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
31 25 0:28 / /sys/fs/cgroup/unified rw,relatime shared:10 - cgroup2 cgroup2 rw
32 25 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";

    #[test]
    fn every_level_of_either_version_is_read() {
        let shown =
            |cgroup: &str| -> Vec<String> { files(cgroup, MOUNTS).iter().map(|f| f.display().to_string()).collect() };
        assert_eq!(
            shown("1:cpu,cpuacct:/a/b\n4:memory:/x\n"),
            ["/sys/fs/cgroup/cpu/a/b/cpu.stat", "/sys/fs/cgroup/cpu/a/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"]
        );
        assert_eq!(
            shown("0::/user.slice"),
            ["/sys/fs/cgroup/unified/user.slice/cpu.stat", "/sys/fs/cgroup/unified/cpu.stat"]
        );
        assert_eq!(shown("0::/../other"), ["/sys/fs/cgroup/unified/cpu.stat"]);
    }

    #[test]
    fn both_units_are_seconds() {
        assert_eq!(
            parse("usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 2500000\n"),
            ThrottledTime { seconds: 2.5, periods: 3.0 }
        );
        assert_eq!(
            parse("nr_periods 0\nnr_throttled 2\nthrottled_time 500000000\n"),
            ThrottledTime { seconds: 0.5, periods: 2.0 }
        );
    }
}
