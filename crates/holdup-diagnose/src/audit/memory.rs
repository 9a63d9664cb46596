//! Advice on memory: transparent and explicit huge pages, swapping, overcommit, NUMA, memory maps, dirty pages.

use super::facts::{Facts, Product, Server};
use super::{Check, Deviation, sysctl, sysctl_against};
use crate::cause::Cause;
use crate::change::Fix;

const MONGODB_CHECKLIST: &str = "MongoDB Manual: Operations Checklist, Operating System Configuration, Linux (https://www.mongodb.com/docs/manual/administration/production-checklist-operations/)";
const MONGODB_THP: &str = "MongoDB Manual: TCMalloc Performance Optimization, Enable Transparent Hugepages (https://www.mongodb.com/docs/manual/administration/tcmalloc-performance/)";
const MONGODB_NUMA: &str = "MongoDB Manual: Production Notes, MongoDB and NUMA Hardware (https://www.mongodb.com/docs/manual/administration/production-notes/#mongodb-and-numa-hardware)";
const REDIS_ADMIN: &str = "Redis documentation: Redis administration, Redis setup tips, Linux (https://redis.io/docs/latest/operate/oss_and_stack/management/admin/)";

pub(super) const CHECKS: &[Check] = &[
    Check {
        check: "transparent_hugepage",
        product: Product::MongoDb,
        against: huge_for_mongodb,
        advised: "never up to MongoDB 7.0, always from 8.0 on",
        why: "up to 7.0 MongoDB's scattered accesses are slower with transparent huge pages; from 8.0 its allocator is made for them",
        reference: MONGODB_THP,
        matters: &[],
    },
    Check {
        check: "transparent_hugepage",
        product: Product::Redis,
        against: huge_always,
        advised: "never or madvise",
        why: "after a fork for a snapshot each first write copies a page of 2 MiB instead of 4 KiB",
        reference: "Redis documentation: Diagnosing latency issues, Latency induced by transparent huge pages (https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/latency/)",
        matters: &[Cause::MemoryPressure],
    },
    Check {
        check: "transparent_hugepage",
        product: Product::PostgreSql,
        against: huge_always,
        advised: "never or madvise",
        why: "they have made PostgreSQL slower on some kernels; explicit huge pages are another matter",
        reference: "PostgreSQL documentation: Resource Consumption, huge_pages (https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-HUGE-PAGES)",
        matters: &[],
    },
    Check {
        check: "transparent_hugepage",
        product: Product::MariaDb,
        against: huge_always,
        advised: "never or madvise",
        why: "the server's memory grows and is not returned, so new versions disable them for themselves",
        reference: "MariaDB: MDEV-33279, Disable transparent huge pages (https://jira.mariadb.org/browse/MDEV-33279)",
        matters: &[Cause::MemoryPressure],
    },
    Check {
        check: "swappiness",
        product: Product::MongoDb,
        against: swappiness,
        advised: "1",
        why: "a statement that needs swapped-out memory waits until it is read back",
        reference: "MongoDB Manual: Production Notes, Set vm.swappiness (https://www.mongodb.com/docs/manual/administration/production-notes/#set-vm-swappiness)",
        matters: &[Cause::MemoryPressure],
    },
    Check {
        check: "swappiness",
        product: Product::MariaDb,
        against: swappiness,
        advised: "1",
        why: "a statement that needs swapped-out memory waits until it is read back",
        reference: "MariaDB documentation: Configuring Linux for MariaDB, Swappiness (https://mariadb.com/docs/server/server-management/install-and-upgrade-mariadb/configuring-mariadb/mariadb-performance-advanced-configurations/configuring-linux-for-mariadb)",
        matters: &[Cause::MemoryPressure],
    },
    Check {
        check: "swappiness",
        product: Product::Elasticsearch,
        against: swappiness,
        advised: "1, or no swap at all",
        why: "a heap that is swapped out makes garbage collections last for minutes",
        reference: "Elastic documentation: Disable swapping, Configure swappiness (https://www.elastic.co/docs/deploy-manage/deploy/self-managed/setup-configuration-memory)",
        matters: &[Cause::MemoryPressure],
    },
    Check {
        check: "overcommit",
        product: Product::Redis,
        against: |facts, _| sysctl_against(facts, "vm.overcommit_memory", "1", |v| v != 1),
        advised: "1",
        why: "without it the fork for a snapshot may be refused although its pages are shared",
        reference: REDIS_ADMIN,
        matters: &[Cause::OutOfMemoryKill],
    },
    Check {
        check: "overcommit",
        product: Product::PostgreSql,
        against: |facts, _| sysctl_against(facts, "vm.overcommit_memory", "2", |v| v != 2),
        advised: "2",
        why: "if promised memory is not there, the kernel kills the server; with 2 an allocation fails instead",
        reference: "PostgreSQL documentation: Managing Kernel Resources, Linux Memory Overcommit (https://www.postgresql.org/docs/current/kernel-resources.html#LINUX-MEMORY-OVERCOMMIT)",
        matters: &[Cause::OutOfMemoryKill],
    },
    Check {
        check: "huge_pages",
        product: Product::PostgreSql,
        against: huge_pages,
        advised: "enough of them for shared_buffers",
        why: "with normal pages each backend has separate page tables for all of shared_buffers",
        reference: "PostgreSQL documentation: Managing Kernel Resources, Linux Huge Pages (https://www.postgresql.org/docs/current/kernel-resources.html#LINUX-HUGE-PAGES)",
        matters: &[Cause::MemoryPressure],
    },
    Check {
        check: "zone_reclaim",
        product: Product::MongoDb,
        against: |facts, _| sysctl_against(facts, "vm.zone_reclaim_mode", "0", |v| v != 0),
        advised: "0, and mongod started with memory interleaved over the nodes",
        why: "the kernel drops a node's page cache while other nodes have free memory",
        reference: MONGODB_CHECKLIST,
        matters: &[Cause::MemoryPressure, Cause::WorkingSetExceedsMemory],
    },
    Check {
        check: "numa_interleave",
        product: Product::MongoDb,
        against: nodes,
        advised: "mongod started by numactl --interleave=all on a host with several NUMA nodes",
        why: "a cache that fills one node makes the kernel drop that node's pages while others have free memory",
        reference: MONGODB_NUMA,
        matters: &[Cause::MemoryPressure, Cause::WorkingSetExceedsMemory],
    },
    Check {
        check: "numa_interleave",
        product: Product::MySql,
        against: numa_interleave,
        advised: "innodb_numa_interleave=ON on a host with several NUMA nodes",
        why: "a buffer pool that fills one node makes that node reclaim and swap while others have free memory",
        reference: "MySQL Reference Manual: InnoDB Startup Options and System Variables, innodb_numa_interleave (https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_numa_interleave)",
        matters: &[Cause::MemoryPressure],
    },
    Check {
        check: "memory_maps",
        product: Product::Elasticsearch,
        against: |facts, _| sysctl_against(facts, "vm.max_map_count", "1048576", |v| v < 1_048_576),
        advised: "1048576 (older versions: 262144)",
        why: "its index files are memory maps, and the number of maps per process is limited",
        reference: "Elastic documentation: Increase virtual memory (https://www.elastic.co/docs/deploy-manage/deploy/self-managed/vm-max-map-count)",
        matters: &[],
    },
    Check {
        check: "memory_maps",
        product: Product::MongoDb,
        against: |facts, _| sysctl_against(facts, "vm.max_map_count", "128000", |v| v < 128_000),
        advised: "128000, or twice the connections that are allowed",
        why: "each connection takes two memory maps, and the kernel limits those of a process",
        reference: MONGODB_CHECKLIST,
        matters: &[Cause::ConnectionLimit],
    },
    Check {
        check: "dirty_pages",
        product: Product::PostgreSql,
        against: dirty,
        advised: "vm.dirty_background_bytes of 64 MiB and vm.dirty_bytes of 512 MiB",
        why: "a ratio of a large memory is gigabytes of dirty pages, which a checkpoint's fsync writes all at once",
        reference: "TuneD: profile postgresql, tuned-profiles-postgresql(7) (https://github.com/redhat-performance/tuned/blob/master/profiles/postgresql/tuned.conf)",
        matters: &[Cause::DiskSaturated],
    },
];

/// Name of the host's setting.
const HUGE: &str = "transparent_hugepage.enabled";

/// The first release whose allocator wants transparent huge pages.
const MONGODB_HUGE_SINCE: u32 = 8;

/// Up to 7.0 they are to be off, since 8.0 on. Without the server's version, `always` is shown with the
/// advice for both.
fn huge_for_mongodb(facts: &Facts<'_>, server: &Server<'_>) -> Vec<Deviation> {
    let major = facts.own(server, "version").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if major.is_none_or(|major| major < MONGODB_HUGE_SINCE) {
        return huge_always(facts, server);
    }
    let steps = facts.place.machine(
        "echo always > /sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
        "transparent_hugepage=always on the kernel's command line, or a TuneD profile".to_owned(),
    );
    let fix = Fix {
        text: format!("Give huge pages to all programs.{}", steps.note()),
        command: steps.command,
        keep: steps.keep,
        risk: Some("Applies to everything on this host; other servers, as Redis, want them off.".to_owned()),
    };
    let other = facts.host(HUGE).filter(|v| *v != "always");
    other.map(|value| Deviation::of_host(HUGE, value, Some(fix))).into_iter().collect()
}

fn huge_always(facts: &Facts<'_>, _: &Server<'_>) -> Vec<Deviation> {
    let always = facts.host(HUGE).filter(|v| *v == "always");
    let steps = facts.place.machine(
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
        "transparent_hugepage=madvise on the kernel's command line, or a TuneD profile".to_owned(),
    );
    let fix = || Fix {
        text: format!("Give huge pages only to programs that ask for them.{}", steps.note()),
        command: steps.command.clone(),
        keep: steps.keep.clone(),
        risk: Some(
            "Applies to everything on this host; restart the server to release the huge pages it has.".to_owned(),
        ),
    };
    always.map(|value| Deviation::of_host(HUGE, value, Some(fix()))).into_iter().collect()
}

/// Without swap there is nothing to set.
fn swappiness(facts: &Facts<'_>, _: &Server<'_>) -> Vec<Deviation> {
    if facts.host("swap_total_bytes") == Some("0") {
        return Vec::new();
    }
    sysctl_against(facts, "vm.swappiness", "1", |v| v > 1)
}

/// Below this size of memory, page tables are small, and distributions leave huge pages off.
const LARGE_MEMORY_BYTES: f64 = 8.0 * 1024.0 * 1024.0 * 1024.0;

fn is_large(facts: &Facts<'_>) -> bool {
    facts.host("memory_total_bytes").and_then(|v| v.parse::<f64>().ok()).is_some_and(|b| b >= LARGE_MEMORY_BYTES)
}

fn huge_pages(facts: &Facts<'_>, _: &Server<'_>) -> Vec<Deviation> {
    let none = facts.host("vm.nr_hugepages").filter(|v| *v == "0" && is_large(facts));
    let fix = || Fix {
        text: "Ask the server how many it needs, then reserve them.".to_owned(),
        command: Some("postgres -D DATA -C shared_memory_size_in_huge_pages".to_owned()),
        keep: Some("vm.nr_hugepages = THAT-NUMBER in a file of /etc/sysctl.d/".to_owned()),
        risk: Some("Nothing else can use the reserved memory; the server has to be restarted.".to_owned()),
    };
    none.map(|value| Deviation::of_host("vm.nr_hugepages", value, Some(fix()))).into_iter().collect()
}

/// How a process's memory is spread, only the pages that are taken tell: [`numa`](super::numa).
fn nodes(facts: &Facts<'_>, _: &Server<'_>) -> Vec<Deviation> {
    let several = facts.host("numa_nodes").filter(|v| v.parse::<u32>().is_ok_and(|nodes| nodes > 1));
    let fix = || Fix {
        text: "Start mongod with its memory spread over all nodes, and leave vm.zone_reclaim_mode at 0.".to_owned(),
        command: None,
        keep: Some("ExecStart=/usr/bin/numactl --interleave=all /usr/bin/mongod … in the service's unit".to_owned()),
        risk: Some("Needs a restart.".to_owned()),
    };
    several.map(|value| Deviation::of_host("numa_nodes", value, Some(fix()))).into_iter().collect()
}

fn numa_interleave(facts: &Facts<'_>, server: &Server<'_>) -> Vec<Deviation> {
    let nodes = facts.host("numa_nodes").and_then(|v| v.parse::<u32>().ok()).unwrap_or(1);
    let off = facts.own(server, "innodb_numa_interleave").filter(|v| *v == "OFF" && nodes > 1);
    let fix = || Fix {
        text: "Spread the buffer pool over the nodes.".to_owned(),
        command: None,
        keep: Some("innodb_numa_interleave = ON in the [mysqld] section".to_owned()),
        risk: Some("Needs a restart.".to_owned()),
    };
    off.map(|value| Deviation::of_host("innodb_numa_interleave", value, Some(fix()))).into_iter().collect()
}

/// Only on a host so large that these shares far exceed the advised bytes.
fn dirty(facts: &Facts<'_>, _: &Server<'_>) -> Vec<Deviation> {
    let by_share = |name: &str| facts.host(name).and_then(|v| v.parse::<i64>().ok()).filter(|v| *v > 0);
    let Some(share) = by_share("vm.dirty_background_ratio").filter(|_| is_large(facts)) else { return Vec::new() };
    let observed =
        format!("vm.dirty_background_ratio {share}, vm.dirty_ratio {}", by_share("vm.dirty_ratio").unwrap_or(0));
    let fix = sysctl(facts, "vm.dirty_background_bytes", "67108864");
    vec![Deviation { subject: "vm.dirty_background_ratio".to_owned(), observed, fix, word: String::new() }]
}
