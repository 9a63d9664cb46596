//! Turns `--watch ADDRESS` into a collector. The list of schemes is explicit and ordered: a new
//! source is a file and a line here.

use std::time::Duration;

use holdup_recording::nearest::nearest;

pub use crate::options::Options;
use crate::{Collector, ProbeError};

/// Makes a collector from its address.
type Make = fn(address: &str, options: &Options) -> Result<Box<dyn Collector>, ProbeError>;

/// Every scheme: prefix of the address, example, description, and constructor.
#[rustfmt::skip]
pub const SCHEMES: &[(&str, &str, &str, Make)] = &[
    ("host", "host", "this Linux machine: load, CPU, memory, disks, network, TCP queues, threads", crate::host::make),
    ("pid:", "pid:4711", "one process, those of its program that it forked, and their threads: states, wait channels, CPU and run-queue time", crate::process::make),
    ("cgroup:", "cgroup:/system.slice/app.service", "one cgroup, by name or by folder in /sys/fs/cgroup: CPU against its quota, memory, kills, processes, disk", crate::cgroup::make),
    ("server:", "server:8080", "any server that listens on a TCP port here, from outside: accept queue, workers, the connections they hold and those they wait on, restarts; ?pid=N: in that process' network namespace (a container's)", crate::server::make),
    ("puma:", "puma:http://127.0.0.1:9293?token=T", "Puma's control server, over TCP or puma:unix:/run/pumactl.sock, one process or a cluster: threads, capacity, requests of each worker", crate::puma::make),
    ("uwsgi:", "uwsgi:127.0.0.1:1717", "uWSGI's stats server, over TCP or uwsgi:unix:/run/stats.sock: its queue, and each worker's state, requests, kills", crate::uwsgi::make),
    ("php-fpm:", "php-fpm:127.0.0.1:9000?status=/status", "the status page of a PHP-FPM pool by FastCGI, over TCP or php-fpm:unix:/run/php.sock?status=/status, or through a web server (php-fpm:http://127.0.0.1/status): children, queue, limits reached", crate::php_fpm::make),
    ("haproxy:", "haproxy:/run/haproxy/admin.sock", "HAProxy's stats socket, at a path or at HOST:PORT: requests that wait for a server's slot, sessions, times and errors of each backend and server", crate::haproxy::make),
    ("nginx:", "nginx:http://127.0.0.1:8080/stub_status", "nginx' stub_status page: connections accepted, dropped, busy and idle; requests. Its access log is a source of its own: log:", crate::nginx::make),
    #[cfg(feature = "mysql")]
    ("mysql:", "mysql://user@127.0.0.1:3306", "MariaDB or MySQL: sessions with their true state, thread pool, locks, statements; its slow log with ?log=PATH", crate::mysql::make),
    #[cfg(feature = "postgresql")]
    ("postgresql:", "postgresql://user@127.0.0.1:5432/db", "PostgreSQL: sessions and their waits, tables, vacuum, statements; its log with ?log=PATH", crate::postgres::make),
    #[cfg(feature = "postgresql")]
    ("postgres:", "postgres://user@127.0.0.1:5432/db", "the same", crate::postgres::make),
    #[cfg(feature = "postgresql")]
    ("pgbouncer:", "pgbouncer://user@127.0.0.1:6432/pgbouncer", "PgBouncer's admin console: clients that wait for a server connection, and for how long; pools, statements", crate::pgbouncer::make),
    #[cfg(feature = "mysql")]
    ("proxysql:", "proxysql://user@127.0.0.1:6032", "ProxySQL's admin interface: clients that wait for a server connection, pools and their servers, statements", crate::proxysql::make),
    #[cfg(feature = "mongodb")]
    ("mongodb:", "mongodb://user@127.0.0.1:27017", "MongoDB: operations and what each waits for, tickets, cache, checkpoints, collections and indexes, the replica set", crate::mongodb::make),
    ("tracepoints", "tracepoints", "disk requests and file system calls as the kernel traces them, as root: size, sequence, time", crate::tracepoints::make),
    #[cfg(feature = "otlp")]
    ("otlp", "otlp", "traces and metrics that apps send in OpenTelemetry's protocol, to 127.0.0.1:4317 and :4318", crate::otlp::make),
    #[cfg(feature = "otlp")]
    ("otlp:", "otlp:127.0.0.1:4318", "the same, to another address", crate::otlp::make),
    ("log:", "log:/var/log/app.log", "an app's or proxy's log, followed as it grows: each request's time and waits by its trace id; JSON lines or key=value pairs", crate::log::make),
    ("wire:", "wire:3306", "packets of database ports (wire:3306,5432), with CAP_NET_RAW: each MySQL, PostgreSQL and MongoDB request and response on the network; ?pid=N: in that process' network namespace (a container's)", crate::wire::make),
    ("probe:", "probe:http://127.0.0.1:8080/health?every=10s&timeout=1s&failures=3", "the service as a Kubernetes liveness probe sees it: a new connection each time, HTTP or HTTPS (status 200 to 399 is success), or probe:tcp://HOST:PORT; ?delay= postpones the first probe", crate::probe::make),
    ("kubernetes:", "kubernetes:", "pods as the cluster's API reports them: limits, probes, restarts with reasons, kills; in a pod with its service account (?namespace=N, ?pod=P or ?selector=a%3Db), elsewhere kubernetes:https://HOST:PORT?namespace=N&token-file=PATH&ca-file=PATH", crate::kubernetes::make),
    ("instance:", "instance:db.r5.2xlarge", "the cloud's name for the machine, from which its limits follow", crate::hardware::make),
    ("volume:", "volume:gp3:500G:3000:125M", "the disk's type and, if known, its size, operations a second and bytes a second. gp2, gp3, io1, io2; pd-standard, pd-balanced, pd-ssd; P1 to P80", crate::hardware::make),
    ("prometheus:", "prometheus:http://127.0.0.1:9090/metrics", "every series of a Prometheus endpoint", crate::prometheus::make),
];

/// Shortest sampling interval of a source that must do work to answer: a server, an app, a
/// cluster's API.
const ASKED: Duration = Duration::from_millis(100);

/// The same for local data, and for data that arrives unrequested.
const READ: Duration = Duration::from_millis(10);

/// Schemes whose sources do work to answer.
const ASKED_SCHEMES: &[&str] = &[
    "mysql:",
    "postgresql:",
    "postgres:",
    "pgbouncer:",
    "proxysql:",
    "mongodb:",
    "prometheus:",
    "puma:",
    "uwsgi:",
    "php-fpm:",
    "haproxy:",
    "nginx:",
    "kubernetes:",
];

/// Checks that every source of `addresses` may be sampled every `interval`.
///
/// # Errors
/// The first that may not, with its shortest interval. An address may contain a password, so only
/// the scheme is repeated.
pub fn check_interval<'a>(addresses: impl IntoIterator<Item = &'a str>, interval: Duration) -> Result<(), ProbeError> {
    for address in addresses {
        let is_asked = ASKED_SCHEMES.iter().any(|scheme| address.starts_with(scheme));
        let shortest = if is_asked { ASKED } else { READ };
        if interval < shortest {
            let scheme =
                address.split_once(':').map_or_else(|| address.to_owned(), |(scheme, _)| format!("{scheme}:…"));
            let why = if is_asked { ": each sample is work for that server" } else { "" };
            return Err(ProbeError::BadAddress(format!(
                "--interval {}ms is too short for --watch {scheme}, which is sampled at most every {}ms{why}",
                interval.as_secs_f64() * 1e3,
                shortest.as_millis()
            )));
        }
    }
    Ok(())
}

/// The collector for `address`, e.g. `host`, `pid:4711`, `mysql://user@127.0.0.1:3306`, `prometheus:http://127.0.0.1:9090/metrics`.
///
/// # Errors
/// If no scheme fits or the rest of the address is wrong; the message lists the alternatives.
pub fn collector(address: &str, options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    for (scheme, _, _, make) in SCHEMES {
        if address == *scheme || (scheme.ends_with(':') && address.starts_with(scheme)) {
            return make(address, options);
        }
    }
    // Its hosts are in DNS records, which holdup does not read: the source says what to do.
    #[cfg(feature = "mongodb")]
    if address.starts_with("mongodb+srv:") {
        return crate::mongodb::make(address, options);
    }
    // The address may contain a password: only its scheme is repeated.
    let (scheme, rest) = address.split_once(':').map_or((address, ""), |(scheme, _)| (scheme, ":…"));
    let names = || SCHEMES.iter().filter(|(.., what, _)| !what.starts_with("the same"));
    let near = nearest(scheme, names().map(|(known, ..)| known.trim_end_matches(':')));
    let near = near.and_then(|near| names().find(|(known, ..)| known.trim_end_matches(':') == near));
    let hint = near.map_or_else(
        || {
            let all: Vec<&str> = names().map(|(scheme, ..)| *scheme).collect();
            format!("supported: {}; `holdup doctor` proposes addresses for this machine", all.join(", "))
        },
        |(_, example, ..)| format!("did you mean {example}?"),
    );
    Err(ProbeError::BadAddress(format!("--watch {scheme}{rest}: unknown source; {hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_the_source_that_was_meant() {
        let refused = |address: &str| collector(address, &Options::default()).err().unwrap().to_string();
        assert_eq!(refused("hosst"), "--watch hosst: unknown source; did you mean host?");
        let pg = refused("postgresq://u:canary@h/shop");
        assert_eq!(pg, "--watch postgresq:…: unknown source; did you mean postgresql://user@127.0.0.1:5432/db?");
        let other = refused("oracle://u:canary@h");
        assert!(other.contains("supported: host, pid:, ") && other.contains("holdup doctor"), "{other}");
        assert!(!other.contains("canary"));
    }

    #[test]
    fn every_source_has_a_shortest_interval() {
        let check =
            |address, ms| check_interval(["host", address], Duration::from_millis(ms)).map_err(|e| e.to_string());
        for (scheme, example, ..) in SCHEMES {
            assert!(check(example, 100).is_ok() && check(example, 9).is_err(), "{scheme}");
        }
        assert!(check("pid:1", 10).is_ok() && check("tracepoints", 10).is_ok());
        let said = check("mysql://u:canary@h", 99).unwrap_err();
        assert!(
            said.starts_with("--interval 99ms is too short for --watch mysql:…, which is sampled at most every 100ms")
        );
        assert!(!said.contains("canary"));
    }
}
