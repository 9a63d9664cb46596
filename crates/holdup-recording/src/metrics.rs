//! The metric registry: every metric that samples may have, with unit, kind, source and
//! description, declared once. Collectors write and rules read by these constants, so a misspelt
//! metric does not compile. `docs/collectors.md` is generated from it.
//!
//! One file per source. A new metric is one line there:
//!
//! `Counter DISK_IO_TIME: Seconds = "system_disk_io_time_seconds_total", "Time with a request in flight, by device";`
//!
//! The constant is the name in capitals without the source's prefix, `_seconds`, and a counter's
//! `_total`. Names that a server chooses (MySQL's status variables, columns of PostgreSQL's views)
//! are members of a [`Family`]. A member that a rule reads also has a constant.

use std::path::Path;
use std::{fmt, io};

use serde::Serialize;

use crate::files;

/// How a value changes over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, until its source restarts.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Not a sample itself: a counter of observations (`_count`) and one of their sum (`_sum`),
    /// often with buckets.
    Histogram,
}

impl Kind {
    /// The kind as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things; the description names them.
    Count,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Bytes.
    Bytes,
    /// Pages of memory, or of a database's cache.
    Pages,
    /// A share between 0 and 1.
    Ratio,
    /// 1 if so, 0 if not.
    Boolean,
    /// Bytes per second.
    BytesPerSecond,
    /// Operations per second.
    PerSecond,
}

impl Unit {
    /// The unit as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Bytes => "bytes",
            Self::Pages => "pages",
            Self::Ratio => "ratio",
            Self::Boolean => "boolean",
            Self::BytesPerSecond => "bytes/s",
            Self::PerSecond => "1/s",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A metric: what the samples of one name mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name in the recording.
    pub name: &'static str,
    /// Unit of its values.
    pub unit: Unit,
    /// Counter or gauge.
    pub kind: Kind,
    /// The source that writes it: [`Source::name`].
    pub source: &'static str,
    /// What it measures, and its labels.
    pub description: &'static str,
}

/// Metrics that a server names itself; their names share a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The prefix of their names. Empty if any name may occur.
    pub prefix: &'static str,
    /// Unit and kind of the members, in words.
    pub unit: &'static str,
    /// The source that writes it: [`Source::name`].
    pub source: &'static str,
    /// Description of the members.
    pub description: &'static str,
}

impl Family {
    /// The member whose name ends in `rest`.
    pub fn member(&self, rest: impl fmt::Display) -> Member {
        Member(format!("{}{rest}", self.prefix))
    }
}

/// The name of a member of a [`Family`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(String);

impl Member {
    /// The name in the recording.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Member> for String {
    fn from(member: Member) -> Self {
        member.0
    }
}

/// The name of a sample: a [`Metric`] or a [`Member`] of a family, and no other text.
pub trait MetricName {
    /// The name in the recording.
    fn name(&self) -> &str;
}

impl MetricName for Metric {
    fn name(&self) -> &str {
        self.name
    }
}

impl MetricName for Member {
    fn name(&self) -> &str {
        &self.0
    }
}

impl<N: MetricName + ?Sized> MetricName for &N {
    fn name(&self) -> &str {
        (**self).name()
    }
}

/// A source, and the metrics it writes.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Short name, e.g. `host`.
    pub name: &'static str,
    /// Title for a heading.
    pub title: &'static str,
    /// The prefix of its metrics, which the constants leave out. Empty if they share none.
    pub prefix: &'static str,
    /// Its metrics, in the order of their declaration.
    pub metrics: &'static [Metric],
    /// Its families.
    pub families: &'static [Family],
}

/// Declares a source's metrics and families as constants, and all of them as `SOURCE`, so that the
/// list is always complete.
macro_rules! metrics {
    (
        $source:literal, $title:literal, $prefix:literal;
        $($kind:ident $constant:ident: $unit:ident = $name:literal, $description:literal;)*
        $(@family $family:ident: $rule:literal = $start:literal, $about:literal;)*
    ) => {
        use crate::metrics::{Kind, Metric, Source, Unit};

        $(
            #[doc = concat!("`", $name, "`: ", $description, ".")]
            pub const $constant: Metric = Metric {
                name: $name,
                unit: Unit::$unit,
                kind: Kind::$kind,
                source: $source,
                description: $description,
            };
        )*
        $(
            #[doc = concat!("`", $start, "*`: ", $about, ".")]
            pub const $family: crate::metrics::Family =
                crate::metrics::Family { prefix: $start, unit: $rule, source: $source, description: $about };
        )*

        /// The source with all of its metrics.
        pub const SOURCE: Source = Source {
            name: $source,
            title: $title,
            prefix: $prefix,
            metrics: &[$($constant),*],
            families: &[$($family),*],
        };

        /// Names of the constants, in the order of [`SOURCE`].
        #[cfg(test)]
        pub(super) const CONSTANTS: &[&str] = &[$(stringify!($constant)),*];
    };
}

/// Declares the modules of the sources, and lists them as [`SOURCES`].
macro_rules! sources {
    ($($module:ident: $about:literal;)*) => {
        $(#[doc = $about] pub mod $module;)*

        /// Every source, in the order of the documentation.
        pub const SOURCES: &[Source] = &[$($module::SOURCE),*];

        /// Names of the constants, in the order of [`SOURCES`].
        #[cfg(test)]
        const CONSTANTS: &[&[&str]] = &[$($module::CONSTANTS),*];
    };
}

sources! {
    host: "The Linux host: `system_*`.";
    tcp: "TCP as the kernel sees it: `tcp_*`.";
    process: "One process: `process_*`.";
    cgroup: "One cgroup: `cgroup_*`.";
    server: "A server on a TCP port, from outside: `server_*`.";
    puma: "Puma's control server: `puma_*`.";
    uwsgi: "uWSGI's stats server: `uwsgi_*`.";
    php_fpm: "PHP-FPM's status page: `php_fpm_*`.";
    haproxy: "HAProxy's stats socket: `haproxy_*`.";
    nginx: "nginx' `stub_status` page: `nginx_*`.";
    mysql: "MariaDB and MySQL: `mysql_*`.";
    postgresql: "PostgreSQL: `postgresql_*`.";
    mongodb: "MongoDB: `mongodb_*`.";
    redis: "Redis and Valkey: `redis_*`.";
    elasticsearch: "Elasticsearch and OpenSearch: `elasticsearch_*`.";
    kafka: "Kafka: topics and consumer groups: `kafka_*`.";
    pgbouncer: "PgBouncer, a pool in front of PostgreSQL: `pgbouncer_*`.";
    proxysql: "ProxySQL, a proxy in front of MySQL and MariaDB: `proxysql_*`.";
    tracepoints: "The kernel's trace points: `traced_*`.";
    otlp: "The receiver of OpenTelemetry's protocol: `otlp_*`.";
    log: "A followed log: `log_*`.";
    access_log: "An imported access log: `access_log_*`.";
    wire: "Captured packets: `wire_*`.";
    probe: "Liveness probes: `probe_*`.";
    kubernetes: "Containers of a pod: `container_*`.";
    kubernetes_node: "Nodes of a cluster: `kubernetes_node_*`.";
    aws: "Amazon's figures: `aws_*`.";
    load: "The load generator: `holdup_load_*`.";
    app: "What apps and their libraries report, by OpenTelemetry or on a Prometheus endpoint.";
}

/// Every metric with a constant.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    SOURCES.iter().flat_map(|source| source.metrics)
}

/// An entry of the [`DICTIONARY`], which other tools may read.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    kind: Option<&'static str>,
    unit: &'static str,
    source: &'static str,
    description: &'static str,
}

/// Name of the file with the dictionary of metrics.
pub const DICTIONARY: &str = "metrics.json";

/// Writes the dictionary into `dir`: an array of all metrics, one per line; the name of a family
/// ends in `*`.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_dictionary(dir: &Path) -> io::Result<()> {
    let metrics = all().map(|&Metric { name, unit, kind, source, description }| {
        let (kind, unit) = (Some(kind.as_str()), unit.as_str());
        Entry { name: name.to_owned(), kind, unit, source, description }
    });
    let families = SOURCES.iter().flat_map(|source| source.families);
    let families = families.map(|&Family { prefix, unit, source, description }| Entry {
        name: format!("{prefix}*"),
        kind: None,
        unit,
        source,
        description,
    });
    let lines = metrics.chain(families).map(|entry| serde_json::to_string(&entry)).collect::<Result<Vec<_>, _>>()?;
    files::replace(&dir.join(DICTIONARY), format!("[\n{}\n]\n", lines.join(",\n")).as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_name_is_declared_once() {
        let mut declared: BTreeMap<&str, &Metric> = BTreeMap::new();
        for metric in all() {
            let before = declared.insert(metric.name, metric);
            assert!(
                before.is_none(),
                "{} is declared by {} and {}",
                metric.name,
                before.unwrap().source,
                metric.source
            );
        }
    }

    #[test]
    fn a_constant_is_called_by_its_metrics_name() {
        for (source, constants) in SOURCES.iter().zip(CONSTANTS) {
            for (metric, constant) in source.metrics.iter().zip(*constants) {
                let own = metric.name.strip_prefix(source.prefix);
                let own = own.unwrap_or_else(|| panic!("{} does not begin with {}", metric.name, source.prefix));
                let own = if metric.kind == Kind::Counter { own.trim_end_matches("_total") } else { own };
                let words = own.split('_').filter(|word| *word != "seconds");
                assert_eq!(words.collect::<Vec<_>>().join("_").to_uppercase(), **constant);
            }
        }
    }

    #[test]
    fn names_say_kind_and_unit() {
        // A member of a family is called as its server calls it.
        let own = |metric: &&Metric| {
            let families = SOURCES.iter().flat_map(|source| source.families);
            !families.clone().any(|family| metric.name.starts_with(family.prefix) && family.source == metric.source)
        };
        for metric in all().filter(own) {
            let Metric { name, .. } = metric;
            assert!(name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit()), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name} is a {}", metric.kind);
            let said = match metric.unit {
                Unit::Seconds => "_seconds",
                Unit::Bytes => "_bytes",
                Unit::Ratio => "_ratio",
                Unit::BytesPerSecond => "_bytes_per_second",
                _ => continue,
            };
            assert!(name.contains(said), "{name} does not say {}", metric.unit);
        }
    }

    #[test]
    fn a_description_is_one_line_for_a_table() {
        for text in all().map(|m| m.description).chain(SOURCES.iter().flat_map(|s| s.families).map(|f| f.description)) {
            assert!(text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()), "{text}");
            assert!(!text.ends_with('.') && !text.contains(['\n', '|']), "{text}");
        }
    }

    #[test]
    fn a_member_begins_with_its_family() {
        assert_eq!(mysql::GLOBAL_STATUS.member("questions").name(), mysql::GLOBAL_STATUS_QUESTIONS.name);
    }

    #[test]
    fn the_dictionary_has_every_metric_and_family() {
        let dir = tempfile::tempdir().unwrap();
        write_dictionary(dir.path()).unwrap();
        let text = std::fs::read_to_string(dir.path().join(DICTIONARY)).unwrap();
        let entries: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        let families: usize = SOURCES.iter().map(|source| source.families.len()).sum();
        assert_eq!((entries.len(), text.lines().count()), (all().count() + families, all().count() + families + 2));
        let of = |name: &str| entries.iter().find(|entry| entry["name"] == name).unwrap();
        let threads = of("system_threads");
        assert_eq!((threads["kind"].as_str(), threads["unit"].as_str()), (Some("gauge"), Some("count")));
        assert_eq!(threads["source"], "host");
        assert!(of("mysql_global_status_*")["kind"].is_null());
    }
}
