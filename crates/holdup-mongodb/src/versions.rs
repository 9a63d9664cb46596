//! Which section of `serverStatus` is where, from MongoDB 4.4 to 8.0: one table. It names a section's
//! paths, so that a figure which moved keeps its metric, and tells which sections a server should have
//! and does not.

use std::fmt;

use crate::value::Value;

/// A server's version, first two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl Version {
    /// `7.0.14` -> 7.0.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        Some(Self(parts.next()??, parts.next()??))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The oldest version that the table is made for.
pub const OLDEST: Version = Version(4, 4);

/// The newest.
pub const NEWEST: Version = Version(8, 0);

/// A section of `serverStatus`, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its name in the coverage.
    pub name: &'static str,
    /// Where it is, the oldest place first.
    pub places: &'static [Place],
}

/// A place of a section.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The first version that has it there.
    pub since: Version,
    /// The path.
    pub path: &'static [&'static str],
    /// What the metrics of its figures begin with, behind the family's own prefix.
    pub prefix: &'static str,
}

const fn always(path: &'static [&'static str], prefix: &'static str) -> Place {
    Place { since: OLDEST, path, prefix }
}

const fn since(major: u32, path: &'static [&'static str], prefix: &'static str) -> Place {
    Place { since: Version(major, 0), path, prefix }
}

/// The sections.
#[rustfmt::skip]
pub const SECTIONS: &[Section] = &[
    Section { name: "connections", places: &[always(&["connections"], "connections")] },
    Section { name: "operation counters", places: &[always(&["opcounters"], "opcounters")] },
    Section { name: "operation latencies", places: &[always(&["opLatencies"], "op_latencies")] },
    Section { name: "queues for locks", places: &[always(&["globalLock"], "global_lock")] },
    Section { name: "locks", places: &[always(&["locks"], "locks")] },
    Section { name: "network", places: &[always(&["network"], "network")] },
    Section { name: "memory", places: &[always(&["mem"], "mem")] },
    Section { name: "page faults", places: &[always(&["extra_info"], "extra_info")] },
    Section { name: "flow control", places: &[always(&["flowControl"], "flow_control")] },
    Section { name: "WiredTiger cache and eviction", places: &[always(&["wiredTiger", "cache"], "wired_tiger_cache")] },
    Section { name: "tickets", places: &[
        always(&["wiredTiger", "concurrentTransactions"], "wired_tiger_concurrent_transactions"),
        since(8, &["queues", "execution"], "wired_tiger_concurrent_transactions"),
    ] },
    // The older place names each figure `transaction checkpoint …`.
    Section { name: "checkpoints", places: &[
        always(&["wiredTiger", "transaction"], "wired_tiger_transaction"),
        since(8, &["wiredTiger", "checkpoint"], "wired_tiger_transaction_transaction_checkpoint"),
    ] },
    Section { name: "write conflicts", places: &[
        always(&["metrics", "operation", "writeConflicts"], "metrics_operation_write_conflicts"),
    ] },
    // Before, only `currentOp` shows them.
    Section { name: "index builds", places: &[since(7, &["indexBuilds"], "index_builds")] },
];

impl Section {
    /// Its newest place that `status` has, and what is there.
    #[must_use]
    pub fn find<'s>(&self, status: &'s Value) -> Option<(&'static Place, &'s Value)> {
        self.places.iter().rev().find_map(|place| Some((place, status.at(place.path)?)))
    }

    /// Where a server of this version has it; none if it came later.
    #[must_use]
    pub fn expected(&self, version: Version) -> Option<&'static [&'static str]> {
        self.places.iter().rev().find(|place| place.since <= version).map(|place| place.path)
    }
}

/// The sections that `status` lacks, each with the path where this version should have it.
#[must_use]
pub fn missing_sections(status: &Value) -> Vec<(&'static str, String)> {
    let version = status.get("version").and_then(Value::text).and_then(Version::parse).unwrap_or(NEWEST);
    let version = version.max(OLDEST);
    let missing = SECTIONS.iter().filter(|section| section.find(status).is_none());
    missing.filter_map(|section| Some((section.name, section.expected(version)?.join(".")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_each_section_at_one_place() {
        for section in SECTIONS {
            assert!(section.places.windows(2).all(|pair| pair[0].since < pair[1].since), "{}", section.name);
            assert_eq!(section.places[0].since == OLDEST, section.name != "index builds", "{}", section.name);
        }
        let tickets = SECTIONS.iter().find(|section| section.name == "tickets").unwrap();
        assert_eq!(tickets.expected(Version(7, 0)), Some(&["wiredTiger", "concurrentTransactions"][..]));
        assert_eq!(tickets.expected(Version(8, 0)), Some(&["queues", "execution"][..]));
        let builds = SECTIONS.iter().find(|section| section.name == "index builds").unwrap();
        assert_eq!((builds.expected(Version(6, 0)), builds.expected(Version(7, 0)).is_some()), (None, true));
        assert_eq!(Version::parse("8.0.4-rc0"), Some(Version(8, 0)));
        assert_eq!((Version::parse("8"), Version::parse("x.y")), (None, None));
    }
}
