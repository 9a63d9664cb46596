//! Advice on limits, the network and the clock: open files, processes, listen queues, ephemeral ports, clock source.

use super::facts::{Facts, Product, Server};
use super::{Check, Deviation, sysctl, sysctl_against};
use crate::cause::Cause;
use crate::change::Fix;
use crate::change::host::Place;

const MONGODB_ULIMIT: &str = "MongoDB Manual: UNIX ulimit Settings, Recommended ulimit Settings (https://www.mongodb.com/docs/manual/reference/ulimit/)";
const REDIS_CLIENTS: &str = "Redis documentation: Redis client handling, Maximum concurrent connected clients (https://redis.io/docs/latest/develop/reference/clients/)";
const IP_SYSCTL: &str = "Linux kernel documentation: IP Sysctl (https://docs.kernel.org/networking/ip-sysctl.html)";

pub(super) const CHECKS: &[Check] = &[
    Check {
        check: "open_files",
        product: Product::MongoDb,
        against: |facts, server| limit(facts, server, "limit.nofile", "NOFILE", 64_000),
        advised: "64000",
        why: "each connection takes descriptors, and each collection and index a file",
        reference: MONGODB_ULIMIT,
        matters: &[Cause::FileDescriptorLimit],
    },
    Check {
        check: "processes",
        product: Product::MongoDb,
        against: |facts, server| limit(facts, server, "limit.nproc", "NPROC", 64_000),
        advised: "64000",
        why: "each connection has a thread, and a thread counts as a process",
        reference: MONGODB_ULIMIT,
        matters: &[],
    },
    Check {
        check: "open_files",
        product: Product::Elasticsearch,
        against: |facts, server| limit(facts, server, "limit.nofile", "NOFILE", 65_535),
        advised: "65535",
        why: "each segment of an index is several files, and running out of descriptors loses data",
        reference: "Elastic documentation: Increase the file descriptor limit (https://www.elastic.co/docs/deploy-manage/deploy/self-managed/file-descriptors)",
        matters: &[Cause::FileDescriptorLimit],
    },
    Check {
        check: "processes",
        product: Product::Elasticsearch,
        against: |facts, server| limit(facts, server, "limit.nproc", "NPROC", 4_096),
        advised: "4096",
        why: "it has a thread pool for each kind of work, and a thread counts as a process",
        reference: "Elastic documentation: Number of threads (https://www.elastic.co/docs/deploy-manage/deploy/self-managed/max-number-of-threads)",
        matters: &[],
    },
    Check {
        check: "open_files",
        product: Product::Redis,
        against: |facts, server| limit(facts, server, "limit.nofile", "NOFILE", 10_032),
        advised: "10032 for the default maxclients of 10000",
        why: "it needs 32 descriptors for itself, and with a lower limit accepts fewer clients than maxclients",
        reference: REDIS_CLIENTS,
        matters: &[Cause::FileDescriptorLimit],
    },
    Check {
        check: "somaxconn",
        product: Product::Redis,
        against: |facts, _| sysctl_against(facts, "net.core.somaxconn", "1024", |v| v < 511),
        advised: "511 or more, as much as tcp-backlog",
        why: "the kernel caps the server's listen queue at this, and a burst of new connections overflows a short one",
        reference: "Redis documentation: redis.conf, tcp-backlog (https://github.com/redis/redis/blob/unstable/redis.conf)",
        matters: &[],
    },
    Check {
        check: "clock_source",
        product: Product::Redis,
        against: clock,
        advised: "tsc, or kvm-clock under KVM",
        why: "other clocks need a system call, and the server reads the clock with every command",
        reference: "Redis source: syscheck.c, checkClocksource, as redis-server --check-system runs it (https://github.com/redis/redis/blob/unstable/src/syscheck.c)",
        matters: &[Cause::CpuSaturated],
    },
    Check {
        check: "clock_source",
        product: Product::PostgreSql,
        against: clock,
        advised: "tsc, or kvm-clock under KVM",
        why: "other clocks take up to microseconds to read, and EXPLAIN ANALYZE and track_io_timing read the clock all the time",
        reference: "PostgreSQL documentation: pg_test_timing, Changing Time Sources (https://www.postgresql.org/docs/17/pgtesttiming.html)",
        matters: &[Cause::CpuSaturated],
    },
    Check {
        check: "ephemeral_ports",
        product: Product::Linux,
        against: ports,
        advised: "32768 to 60999, the kernel's default",
        why: "each outgoing connection to an address takes a port, and keeps it for a minute after it is closed",
        reference: IP_SYSCTL,
        matters: &[],
    },
    Check {
        check: "tcp_tw_reuse",
        product: Product::Linux,
        against: |facts, _| sysctl_against(facts, "net.ipv4.tcp_tw_reuse", "2", |v| v == 0),
        advised: "2 (on loopback), or 1",
        why: "without it a client that opens a connection per request runs out of ports",
        reference: IP_SYSCTL,
        matters: &[],
    },
];

fn limit(facts: &Facts<'_>, server: &Server<'_>, name: &str, of_systemd: &str, least: u64) -> Vec<Deviation> {
    let value = facts.process(server, name).and_then(|v| v.parse::<u64>().ok()).filter(|v| *v < least);
    // A process may have more of a hard limit already, and keeps it.
    let hard = facts.process(server, &format!("{name}_hard")).and_then(|v| v.parse::<u64>().ok());
    let hard = hard.map_or(least, |hard| hard.max(least));
    let pid = server.process.unwrap_or_default().trim_start_matches("pid:");
    let of_server = Place::among(facts.rows, server.process.unwrap_or("host"));
    let may = of_server.is_machine() && !pid.is_empty();
    let fix = || Fix {
        text: format!("Let {} have {least}.", server.name),
        command: may.then(|| format!("prlimit --pid {pid} --{}={least}:{hard}", of_systemd.to_lowercase())),
        keep: Some(format!("Limit{of_systemd}={least} in its systemd unit (systemctl edit UNIT)")),
        risk: None,
    };
    let set = |value: u64| Deviation {
        subject: server.name.to_owned(),
        observed: value.to_string(),
        fix: Some(fix()),
        word: server.name.to_owned(),
    };
    value.map(set).into_iter().collect()
}

/// Clocks that are read without a system call (the vDSO has them).
const FAST_CLOCKS: &[&str] = &["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

fn clock(facts: &Facts<'_>, _: &Server<'_>) -> Vec<Deviation> {
    let slow = facts.host("clock_source").filter(|v| !FAST_CLOCKS.contains(v));
    let steps = facts.place.machine(
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource".to_owned(),
        "clocksource=tsc on the kernel's command line".to_owned(),
    );
    let fix = || Fix {
        text: format!("Use the CPU's own counter, if the kernel offers it.{}", steps.note()),
        command: steps.command.clone(),
        keep: steps.keep.clone(),
        risk: Some("If the kernel found the counter unstable, time jumps: check dmesg first.".to_owned()),
    };
    slow.map(|value| Deviation::of_host("clock_source", value, Some(fix()))).into_iter().collect()
}

/// Ports that the kernel's default range has.
const DEFAULT_PORTS: i64 = 60_999 - 32_768 + 1;

fn ports(facts: &Facts<'_>, _: &Server<'_>) -> Vec<Deviation> {
    const NAME: &str = "net.ipv4.ip_local_port_range";
    let Some(value) = facts.host(NAME) else { return Vec::new() };
    let mut bounds = value.split_ascii_whitespace().filter_map(|v| v.parse::<i64>().ok());
    match (bounds.next(), bounds.next()) {
        (Some(low), Some(high)) if high - low + 1 < DEFAULT_PORTS => {
            vec![Deviation::of_host(NAME, &format!("{low} to {high}"), sysctl(facts, NAME, "\"32768 60999\""))]
        }
        _ => Vec::new(),
    }
}
