//! The machine that was measured on, and whether it was left alone meanwhile.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// What one must know of a machine to read figures from it. No names, no addresses.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Host {
    /// As the kernel calls it.
    pub cpu_model: String,
    /// Cores that can be used.
    pub cores: usize,
    /// Kernel's version, without the distributor's suffix.
    pub kernel: String,
    /// Main memory.
    pub memory_bytes: u64,
    /// The distribution's name for itself.
    pub system: String,
}

impl Host {
    /// This machine.
    pub fn read() -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let kilobytes: u64 = field(&memory, "MemTotal:")
            .and_then(|value| value.split_whitespace().next()?.parse().ok())
            .unwrap_or_default();
        Self {
            cpu_model: field(&cpu, "model name")
                .map(|name| name.trim_start_matches(": ").to_owned())
                .unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: release.trim().split('-').next().unwrap_or_default().to_owned(),
            memory_bytes: kilobytes * 1024,
            system: field(&system, "PRETTY_NAME=").map(|name| name.trim_matches('"').to_owned()).unwrap_or_default(),
        }
    }

    /// `2c-kernel6.18`.
    pub fn short(&self) -> String {
        let mut parts = self.kernel.split('.');
        let (major, minor) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("0"));
        format!("{}c-kernel{major}.{minor}", self.cores)
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Today's date, `2026-01-31`, in UTC.
pub fn today() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map_or_else(|_| "undated".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// CPU time of the whole machine up to an instant, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// Up to now; zero where the kernel doesn't say.
    pub fn now() -> Self {
        fs::read_to_string("/proc/stat").ok().and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// The first line of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice. Guests' time is
    /// in user's and nice's already.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        Some(Self { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }

    /// Share of the machine's time since `self` that the hypervisor gave to others.
    pub fn stolen_ratio(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all);
        if all == 0 { 0.0 } else { later.stolen.saturating_sub(self.stolen) as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time() {
        let before = Ticks::parse("cpu  100 0 100 800 0 0 0 0 0 0\n").unwrap();
        let after = Ticks::parse("cpu  150 0 120 820 0 0 0 10 40 0\ncpu0 1\n").unwrap();
        assert!((before.stolen_ratio(after) - 0.1).abs() < 1e-9);
        assert_eq!(Ticks::parse("intr 1"), None);
    }

    #[test]
    fn short_description() {
        let host = Host { cores: 2, kernel: "6.18.44".into(), ..Host::default() };
        assert_eq!(host.short(), "2c-kernel6.18");
        assert!(Host::read().cores >= 1);
    }
}
