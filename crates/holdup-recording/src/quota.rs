//! The CPU time that a cgroup may use per period, in the kernel's and in the recording's notation.

use std::fmt;

/// The name of the setting, in the form of [`CpuQuota::parse`]; `max` means no limit.
pub const SETTING: &str = "cgroup.cpu_quota_us_per_period_us";

/// CPU time that may be used per period; both are above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuQuota {
    /// CPU time, microseconds.
    pub us: f64,
    /// Length of the period, microseconds.
    pub period_us: f64,
}

impl CpuQuota {
    /// Parses `50000 100000` (`cpu.max` of version 2). `None` for `max`, which means no limit, and
    /// for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (us, period_us) = text.split_once(' ')?;
        Self::from_v1(us, period_us)
    }

    /// Parses the two files of version 1, `cpu.cfs_quota_us` and `cpu.cfs_period_us`. A quota of -1
    /// means no limit.
    pub fn from_v1(us: &str, period_us: &str) -> Option<Self> {
        let positive = |text: &str| text.trim().parse().ok().filter(|us: &f64| us.is_finite() && *us > 0.0);
        Some(Self { us: positive(us)?, period_us: positive(period_us)? })
    }

    /// The quota as a number of CPUs.
    pub fn cpus(self) -> f64 {
        self.us / self.period_us
    }
}

impl fmt::Display for CpuQuota {
    /// In the form of [`CpuQuota::parse`], to the microsecond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} {:.0}", self.us, self.period_us)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuQuota;

    #[test]
    fn a_quota_is_cpu_time_in_a_period() {
        let quota = CpuQuota::parse("20000 100000\n").unwrap();
        assert_eq!((quota.cpus(), quota.to_string()), (0.2, "20000 100000".to_owned()));
        assert_eq!(CpuQuota::from_v1("20000\n", "100000\n"), Some(quota));
        for none in ["max", "max 100000", "-1 100000", "0 100000", "5 0", "nan 1", ""] {
            assert_eq!(CpuQuota::parse(none), None, "{none}");
        }
    }
}
