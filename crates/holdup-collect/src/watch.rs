//! Turns `--watch ADDRESS` into a collector. The list of schemes is explicit and ordered: a new
//! source is a file and a line here.

use std::time::Duration;

use holdup_recording::nearest::nearest;

pub use crate::options::Options;
use crate::{Collector, ProbeError};
use Kind::{Asked, Read, ReadHidden};

/// Makes a collector from the rest of its address. An error says what is wrong with that, and repeats
/// nothing that may be a password.
type Make = fn(rest: &str, options: &Options) -> Result<Box<dyn Collector>, String>;

/// What a source costs, and whether its address may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Local data, and data that arrives unrequested.
    Read,
    /// The same, with an address that may hold a password.
    ReadHidden,
    /// A server, an app or a cluster's API, which does work to answer. Its address may hold a password.
    Asked,
}

/// A kind of source.
pub struct Scheme {
    /// Prefix of its addresses.
    pub prefix: &'static str,
    /// An address.
    pub example: &'static str,
    /// What it is.
    pub what: &'static str,
    kind: Kind,
    make: Make,
}

const fn scheme(prefix: &'static str, example: &'static str, what: &'static str, kind: Kind, make: Make) -> Scheme {
    Scheme { prefix, example, what, kind, make }
}

/// Every scheme.
#[rustfmt::skip]
pub const SCHEMES: &[Scheme] = &[
    scheme("host", "host", "this Linux machine: load, CPU, memory, disks, network, TCP queues, threads", Read, crate::host::make),
    scheme("pid:", "pid:4711", "one process, those of its program that it forked, and their threads: states, wait channels, CPU and run-queue time", Read, crate::process::make),
    scheme("cgroup:", "cgroup:/system.slice/app.service", "one cgroup, by name or by folder in /sys/fs/cgroup: CPU against its quota, memory, kills, processes, disk", Read, crate::cgroup::make),
    scheme("server:", "server:8080", "any server that listens on a TCP port here, from outside: accept queue, workers, the connections they hold and those they wait on, restarts; ?pid=N: in that process' network namespace (a container's)", Read, crate::server::make),
    scheme("puma:", "puma:http://127.0.0.1:9293?token=T", "Puma's control server, over TCP or puma:unix:/run/pumactl.sock, one process or a cluster: threads, capacity, requests of each worker", Asked, crate::puma::make),
    scheme("uwsgi:", "uwsgi:127.0.0.1:1717", "uWSGI's stats server, over TCP or uwsgi:unix:/run/stats.sock: its queue, and each worker's state, requests, kills", Asked, crate::uwsgi::make),
    scheme("php-fpm:", "php-fpm:127.0.0.1:9000?status=/status", "the status page of a PHP-FPM pool by FastCGI, over TCP or php-fpm:unix:/run/php.sock?status=/status, or through a web server (php-fpm:http://127.0.0.1/status): children, queue, limits reached", Asked, crate::php_fpm::make),
    scheme("haproxy:", "haproxy:/run/haproxy/admin.sock", "HAProxy's stats socket, at a path or at HOST:PORT: requests that wait for a server's slot, sessions, times and errors of each backend and server", Asked, crate::haproxy::make),
    scheme("nginx:", "nginx:http://127.0.0.1:8080/stub_status", "nginx' stub_status page: connections accepted, dropped, busy and idle; requests. Its access log is a source of its own: log:", Asked, crate::nginx::make),
    #[cfg(feature = "mysql")]
    scheme("mysql:", "mysql://user@127.0.0.1:3306", "MariaDB or MySQL: sessions with their true state, thread pool, locks, statements; its slow log with ?log=PATH", Asked, crate::mysql::make),
    #[cfg(feature = "postgresql")]
    scheme("postgresql:", "postgresql://user@127.0.0.1:5432/db", "PostgreSQL: sessions and their waits, tables, vacuum, statements; its log with ?log=PATH", Asked, crate::postgres::make),
    #[cfg(feature = "postgresql")]
    scheme("postgres:", "postgres://user@127.0.0.1:5432/db", "the same", Asked, crate::postgres::make),
    #[cfg(feature = "postgresql")]
    scheme("pgbouncer:", "pgbouncer://user@127.0.0.1:6432/pgbouncer", "PgBouncer's admin console: clients that wait for a server connection, and for how long; pools, statements", Asked, crate::pgbouncer::make),
    #[cfg(feature = "mysql")]
    scheme("proxysql:", "proxysql://user@127.0.0.1:6032", "ProxySQL's admin interface: clients that wait for a server connection, pools and their servers, statements", Asked, crate::proxysql::make),
    #[cfg(feature = "mongodb")]
    scheme("mongodb:", "mongodb://user@127.0.0.1:27017", "MongoDB: operations and what each waits for, tickets, cache, checkpoints, collections and indexes, the replica set", Asked, crate::mongodb::make),
    #[cfg(any(feature = "mysql", feature = "postgresql"))]
    scheme("redis:", "redis://user@127.0.0.1:6379", "Redis or Valkey, also at redis:unix:/PATH: memory, evictions, persistence, replicas, the time of each command, slow commands", Asked, crate::redis::make),
    #[cfg(any(feature = "mysql", feature = "postgresql"))]
    scheme("rediss:", "rediss://user@cache.example:6379", "the same over TLS", Asked, crate::redis::make_encrypted),
    #[cfg(any(feature = "mysql", feature = "postgresql"))]
    scheme("kafka:", "kafka://127.0.0.1:9092", "Kafka, by one broker or several (kafka://HOST:PORT,HOST:PORT): backlog and lag in seconds of each consumer group, its members and rebalances; partitions without enough copies", Asked, crate::kafka::make),
    #[cfg(any(feature = "mysql", feature = "postgresql"))]
    scheme("elasticsearch:", "elasticsearch://user@127.0.0.1:9200", "Elasticsearch, by one node of the cluster: each node's indexing, searches, merges, thread pools with queues and rejections, memory limits, collections; the state of the cluster", Asked, crate::elasticsearch::make),
    #[cfg(any(feature = "mysql", feature = "postgresql"))]
    scheme("opensearch:", "opensearch://user@127.0.0.1:9200", "the same of OpenSearch", Asked, crate::elasticsearch::make_opensearch),
    scheme("tracepoints", "tracepoints", "disk requests and file system calls as the kernel traces them, as root: size, sequence, time", Read, crate::tracepoints::make),
    #[cfg(feature = "otlp")]
    scheme("otlp", "otlp", "traces and metrics that apps send in OpenTelemetry's protocol, to 127.0.0.1:4317 and :4318", Read, crate::otlp::make),
    #[cfg(feature = "otlp")]
    scheme("otlp:", "otlp:127.0.0.1:4318", "the same, to another address", Read, crate::otlp::make),
    scheme("log:", "log:/var/log/app.log", "an app's or proxy's log, followed as it grows: each request's time and waits by its trace id; JSON lines or key=value pairs", ReadHidden, crate::log::make),
    scheme("wire:", "wire:3306", "packets of database ports (wire:3306,5432), with CAP_NET_RAW: each MySQL, PostgreSQL and MongoDB request and response on the network; ?pid=N: in that process' network namespace (a container's)", Read, crate::wire::make),
    scheme("probe:", "probe:http://127.0.0.1:8080/health?every=10s&timeout=1s&failures=3", "the service as a Kubernetes liveness probe sees it: a new connection each time, HTTP or HTTPS (status 200 to 399 is success), or probe:tcp://HOST:PORT; ?delay= postpones the first probe", ReadHidden, crate::probe::make),
    scheme("kubernetes:", "kubernetes:", "pods as the cluster's API reports them: limits, probes, restarts with reasons, kills; in a pod with its service account (?namespace=N, ?pod=P or ?selector=a%3Db), elsewhere kubernetes:https://HOST:PORT?namespace=N&token-file=PATH&ca-file=PATH", Asked, crate::kubernetes::make),
    scheme("instance:", "instance:db.r5.2xlarge", "the cloud's name for the machine, from which its limits follow", Read, crate::hardware::instance),
    scheme("volume:", "volume:gp3:500G:3000:125M", "the disk's type and, if known, its size, operations a second and bytes a second. gp2, gp3, io1, io2; pd-standard, pd-balanced, pd-ssd; P1 to P80", Read, crate::hardware::volume),
    scheme("prometheus:", "prometheus:http://127.0.0.1:9090/metrics", "every series of a Prometheus endpoint", Asked, crate::prometheus::make),
];

/// Shortest sampling interval of a source that must do work to answer.
const ASKED: Duration = Duration::from_millis(100);

/// The same for the others.
const READ: Duration = Duration::from_millis(10);

/// Checks that every source of `addresses` may be sampled every `interval`.
///
/// # Errors
/// The first that may not, with its shortest interval. An address may contain a password, so only
/// the scheme is repeated.
pub fn check_interval<'a>(addresses: impl IntoIterator<Item = &'a str>, interval: Duration) -> Result<(), ProbeError> {
    for address in addresses {
        let is_asked = SCHEMES.iter().any(|scheme| scheme.kind == Asked && address.starts_with(scheme.prefix));
        let shortest = if is_asked { ASKED } else { READ };
        if interval < shortest {
            let why = if is_asked { ": each sample is work for that server" } else { "" };
            return Err(ProbeError::BadAddress(format!(
                "--interval {}ms is too short for --watch {}, which is sampled at most every {}ms{why}",
                interval.as_secs_f64() * 1e3,
                without_rest(address),
                shortest.as_millis()
            )));
        }
    }
    Ok(())
}

/// The scheme of an address, which may contain a password.
fn without_rest(address: &str) -> String {
    address.split_once(':').map_or_else(|| address.to_owned(), |(scheme, _)| format!("{scheme}:…"))
}

/// The collector for `address`, e.g. `host`, `pid:4711`, `mysql://user@127.0.0.1:3306`, `prometheus:http://127.0.0.1:9090/metrics`.
///
/// # Errors
/// If no scheme fits or the rest of the address is wrong; the message lists the alternatives.
pub fn collector(address: &str, options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    let (scheme, rest) = Scheme::of(address)?;
    (scheme.make)(rest, options).map_err(|why| scheme.bad(address, &why))
}

/// Whether `name` is that of a source in the tables, not of a part of one or of a file.
pub fn is_source(name: &str) -> bool {
    !name.contains(' ') && Scheme::of(name).is_ok()
}

impl Scheme {
    /// The scheme of `address`, and what follows.
    fn of(address: &str) -> Result<(&'static Self, &str), ProbeError> {
        let rest = |scheme: &'static Self| {
            let rest = address.strip_prefix(scheme.prefix)?;
            (rest.is_empty() || scheme.prefix.ends_with(':')).then_some((scheme, rest))
        };
        SCHEMES.iter().find_map(rest).ok_or_else(|| unknown(address))
    }

    /// The error for an address of this scheme.
    fn bad(&self, address: &str, why: &str) -> ProbeError {
        let slashes = if self.example[self.prefix.len()..].starts_with("//") { "//" } else { "" };
        let hidden = format!("{}{slashes}…", self.prefix);
        let shown = if self.kind == Read { address } else { &hidden };
        ProbeError::BadAddress(format!("--watch {shown}: {why}"))
    }
}

fn unknown(address: &str) -> ProbeError {
    // Its hosts are in DNS records, which holdup does not read.
    #[cfg(feature = "mongodb")]
    if address.starts_with("mongodb+srv:") {
        return ProbeError::BadAddress(format!("--watch mongodb+srv://…: {}", crate::mongodb::SEVERAL_BY_NAME));
    }
    let name = address.split_once(':').map_or(address, |(name, _)| name);
    let known = || SCHEMES.iter().filter(|scheme| !scheme.what.starts_with("the same"));
    let bare = |scheme: &Scheme| scheme.prefix.trim_end_matches(':');
    let near = nearest(name, known().map(bare));
    let near = near.and_then(|near| known().find(|scheme| bare(scheme) == near));
    let hint = near.map_or_else(
        || {
            let all: Vec<&str> = known().map(|scheme| scheme.prefix).collect();
            format!("supported: {}; `holdup doctor` proposes addresses for this machine", all.join(", "))
        },
        |scheme| format!("did you mean {}?", scheme.example),
    );
    ProbeError::BadAddress(format!("--watch {}: unknown source; {hint}", without_rest(address)))
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
        let several = refused("mongodb+srv://u:canary@cluster.example/");
        assert!(several.contains("as a source of its own") && !several.contains("canary"), "{several}");
    }

    #[test]
    fn every_source_has_a_shortest_interval() {
        let check =
            |address, ms| check_interval(["host", address], Duration::from_millis(ms)).map_err(|e| e.to_string());
        for Scheme { prefix, example, .. } in SCHEMES {
            assert!(check(example, 100).is_ok() && check(example, 9).is_err(), "{prefix}");
        }
        assert!(check("pid:1", 10).is_ok() && check("tracepoints", 10).is_ok());
        let said = check("mysql://u:canary@h", 99).unwrap_err();
        assert!(
            said.starts_with("--interval 99ms is too short for --watch mysql:…, which is sampled at most every 100ms")
        );
        assert!(!said.contains("canary"));
    }
}
