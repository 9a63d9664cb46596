//! Which place of an output is which metric: figures of kernel files and status pages that a collector
//! reads and a person pastes. Data and pure functions.

/// Lines of `/proc/diskstats`.
pub mod diskstats {
    use crate::metrics::{Metric, host as metric};

    /// Unit of the sector counts, whatever the device's own sector is.
    pub const SECTOR_BYTES: f64 = 512.0;

    /// The numbers of a device behind its name, by their place: metric, direction, and how many make one of
    /// the metric's unit (Documentation/admin-guide/iostats.rst).
    pub const NUMBERS: [(usize, Metric, Option<&str>, f64); 14] = [
        (0, metric::DISK_OPERATIONS, Some("read"), 1.0),
        (1, metric::DISK_MERGED, Some("read"), 1.0),
        (2, metric::DISK_IO_BYTES, Some("read"), 1.0 / SECTOR_BYTES),
        (3, metric::DISK_OPERATION_TIME, Some("read"), 1e3),
        (4, metric::DISK_OPERATIONS, Some("write"), 1.0),
        (5, metric::DISK_MERGED, Some("write"), 1.0),
        (6, metric::DISK_IO_BYTES, Some("write"), 1.0 / SECTOR_BYTES),
        (7, metric::DISK_OPERATION_TIME, Some("write"), 1e3),
        (8, metric::DISK_IN_FLIGHT, None, 1.0),
        (9, metric::DISK_IO_TIME, None, 1e3),
        (10, metric::DISK_WEIGHTED_IO_TIME, None, 1e3),
        (11, metric::DISK_DISCARDS, None, 1.0),
        (15, metric::DISK_FLUSHES, None, 1.0),
        (16, metric::DISK_FLUSH_TIME, None, 1e3),
    ];
}

/// HAProxy's `show info` and `show stat`.
pub mod haproxy {
    use crate::metrics::{Metric, haproxy as metric};

    /// Lines of `show info`, with the factor from their unit.
    pub const INFO: &[(&str, Metric, f64)] = &[
        ("CurrConns", metric::CONNECTIONS, 1.0),
        ("Maxconn", metric::CONNECTIONS_LIMIT, 1.0),
        ("Run_queue", metric::RUN_QUEUE, 1.0),
        ("Idle_pct", metric::IDLE_RATIO, 0.01),
    ];

    /// Columns of a frontend.
    pub const FRONTEND: &[(&str, Metric, f64)] =
        &[("scur", metric::FRONTEND_SESSIONS, 1.0), ("slim", metric::FRONTEND_SESSIONS_LIMIT, 1.0)];

    /// Columns of a backend's queue and of a server's.
    pub const QUEUE: &[(&str, Metric, f64)] =
        &[("qcur", metric::QUEUED_REQUESTS, 1.0), ("qmax", metric::QUEUED_REQUESTS_MAX, 1.0)];

    /// Columns of a backend; times are in milliseconds.
    pub const BACKEND: &[(&str, Metric, f64)] = &[
        ("qtime", metric::QUEUE_TIME, 1e-3),
        ("ctime", metric::CONNECT_TIME, 1e-3),
        ("rtime", metric::RESPONSE_TIME, 1e-3),
        ("ttime", metric::TOTAL_TIME, 1e-3),
        ("econ", metric::CONNECT_ERRORS, 1.0),
        ("eresp", metric::RESPONSE_ERRORS, 1.0),
        ("wretr", metric::RETRIES, 1.0),
        ("wredis", metric::REDISPATCHES, 1.0),
        ("cli_abrt", metric::CLIENT_ABORTS, 1.0),
    ];

    /// Columns of a server.
    pub const SERVER: &[(&str, Metric, f64)] = &[
        ("scur", metric::SERVER_SESSIONS, 1.0),
        ("rtime", metric::SERVER_RESPONSE_TIME, 1e-3),
        ("stot", metric::SERVER_REQUESTS, 1.0),
    ];
}

/// nginx' page `stub_status`.
pub mod nginx {
    use crate::metrics::{Metric, nginx as metric};

    /// The figures of the page in its order; none if it is another page.
    #[must_use]
    pub fn figures(page: &str) -> Option<Vec<(Metric, f64)>> {
        let mut lines = page.lines();
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
        let active = number(lines.next()?.strip_prefix("Active connections:")?)?;
        // Some builds add a column: the head names those that there are.
        let head = lines.next()?.strip_prefix("server ")?.split_whitespace();
        let counts: Vec<(&str, f64)> = head.zip(lines.next()?.split_whitespace().filter_map(number)).collect();
        let words: Vec<&str> = lines.next()?.split_whitespace().collect();
        let count = |name: &str| counts.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let now = |name: &str| number(words.get(words.iter().position(|word| *word == name)? + 1)?);
        Some(vec![
            (metric::ACTIVE_CONNECTIONS, active),
            (metric::READING_CONNECTIONS, now("Reading:")?),
            (metric::WRITING_CONNECTIONS, now("Writing:")?),
            (metric::WAITING_CONNECTIONS, now("Waiting:")?),
            (metric::ACCEPTED_CONNECTIONS, count("accepts")?),
            (metric::HANDLED_CONNECTIONS, count("handled")?),
            (metric::REQUESTS, count("requests")?),
        ])
    }
}

/// Redis' and Valkey's `INFO`.
pub mod redis {
    use crate::Labels;
    use crate::metrics::{self, Metric};

    /// Texts that become settings.
    pub const SETTINGS: [&str; 9] = [
        "redis_version",
        "valkey_version",
        "redis_mode",
        "role",
        "maxmemory_policy",
        "mem_allocator",
        "rdb_last_bgsave_status",
        "aof_last_write_status",
        "master_link_status",
    ];

    /// Numbers that count nothing: a port, a process, a date.
    const IDENTITIES: [&str; 6] = ["process_id", "tcp_port", "run_id", "master_port", "arch_bits", "redis_git_sha1"];

    /// The field of a line, `name:value`; none of a heading, a blank line or another text.
    pub fn field(line: &str) -> Option<(&str, &str)> {
        let (name, value) = line.split_once(':')?;
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.|".contains(&byte));
        (is_name && !value.starts_with([' ', '/'])).then_some((name, value.trim()))
    }

    /// The number called `name` in `calls=1,usec=2`.
    pub fn part(values: &str, name: &str) -> Option<f64> {
        values.split(',').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))?.1.parse().ok()
    }

    /// The figures of a field: metrics by name, with labels and values in the metric's unit.
    pub fn figures(name: &str, value: &str) -> Vec<(String, Labels, f64)> {
        let labelled = |all: &[(Metric, Option<f64>)], label: &str, of: &str| {
            let of = || Labels::new([(label, of)]);
            let known = all.iter().filter_map(|(metric, value)| Some((metric, value.filter(|v| v.is_finite())?)));
            known.map(|(metric, value)| (metric.name.to_owned(), of(), value)).collect()
        };
        let is_numbered = |prefix: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
        if let Some(command) = name.strip_prefix("cmdstat_") {
            let time = part(value, "usec").map(|us| us / 1e6);
            let all = [(metrics::redis::COMMAND_CALLS, part(value, "calls")), (metrics::redis::COMMAND_TIME, time)];
            return labelled(&all, "command", command);
        }
        if let Some(error) = name.strip_prefix("errorstat_") {
            // Scripts make errors of their own words.
            let is_usual = error.len() <= 20 && error.bytes().all(|byte| byte.is_ascii_uppercase());
            let all = [(metrics::redis::ERRORS, part(value, "count").filter(|_| is_usual))];
            return labelled(&all, "error", error);
        }
        if is_numbered("db") {
            let all =
                [(metrics::redis::KEYS, part(value, "keys")), (metrics::redis::KEYS_EXPIRING, part(value, "expires"))];
            return labelled(&all, "database", name);
        }
        if is_numbered("slave") || is_numbered("replica") {
            return labelled(&[(metrics::redis::REPLICA_LAG, part(value, "lag"))], "replica", name);
        }
        let number = value.trim_end_matches('%').parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.filter(|_| !IDENTITIES.contains(&name));
        if name == "latest_fork_usec" {
            let fork = number.map(|us| (metrics::redis::LATEST_FORK.name.to_owned(), Labels::none(), us / 1e6));
            return fork.into_iter().collect();
        }
        number
            .map(|number| (metrics::redis::INFO.member(name).as_str().to_owned(), Labels::none(), number))
            .into_iter()
            .collect()
    }
}

/// The documents of Puma's control server.
pub mod puma {
    use crate::metrics::{Metric, puma as metric};

    /// Fields of a cluster.
    pub const CLUSTER: &[(&str, Metric)] = &[
        ("workers", metric::WORKERS),
        ("booted_workers", metric::BOOTED_WORKERS),
        ("old_workers", metric::OLD_WORKERS),
    ];

    /// Fields of one process. Versions differ in them.
    pub const PROCESS: &[(&str, Metric)] = &[
        ("backlog", metric::BACKLOG),
        ("running", metric::RUNNING),
        ("pool_capacity", metric::POOL_CAPACITY),
        ("busy_threads", metric::BUSY_THREADS),
        ("max_threads", metric::MAX_THREADS),
        ("requests_count", metric::REQUESTS),
    ];
}
