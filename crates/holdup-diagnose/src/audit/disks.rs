//! Advice on disks and file systems: readahead, access times, I/O scheduler, where temporary tables lie.

use super::facts::{Facts, Product, Server};
use super::{Check, Deviation};
use crate::cause::Cause;
use crate::change::Fix;

const MONGODB_CHECKLIST: &str = "MongoDB Manual: Operations Checklist, Operating System Configuration, Linux (https://www.mongodb.com/docs/manual/administration/production-checklist-operations/)";
const MYSQL_DISKS: &str = "MySQL Reference Manual: Optimizing InnoDB Disk I/O (https://dev.mysql.com/doc/refman/8.4/en/optimizing-innodb-diskio.html)";

pub(super) const CHECKS: &[Check] = &[
    Check {
        check: "readahead",
        product: Product::MongoDb,
        against: readahead,
        advised: "8 to 32 sectors (4 to 16 KiB), unless a test shows that more is better",
        why: "documents are read at random, and readahead beside them takes the disk's time and the page cache's room",
        reference: MONGODB_CHECKLIST,
        matters: &[Cause::ReadaheadTooLarge],
    },
    Check {
        check: "atime",
        product: Product::MongoDb,
        against: atime,
        advised: "noatime",
        why: "with access times, every read also causes a write",
        reference: MONGODB_CHECKLIST,
        matters: &[Cause::AtimeUpdates],
    },
    Check {
        check: "file_system",
        product: Product::MongoDb,
        against: file_system,
        advised: "XFS",
        why: "on ext4 the storage engine's checkpoints have stalled all writes for as long as they last",
        reference: "MongoDB Manual: Production Notes, Kernel and File Systems (https://www.mongodb.com/docs/manual/administration/production-notes/#kernel-and-file-systems)",
        matters: &[Cause::FlushStorm],
    },
    Check {
        check: "atime",
        product: Product::MySql,
        against: atime,
        advised: "noatime",
        why: "with access times, every read also causes a write",
        reference: "MySQL Reference Manual: Optimizing Disk I/O (https://dev.mysql.com/doc/refman/8.4/en/disk-issues.html)",
        matters: &[Cause::AtimeUpdates],
    },
    Check {
        check: "io_scheduler",
        product: Product::MongoDb,
        against: |facts, server| scheduler(facts, server, "none", &["none", "noop", "mq-deadline", "deadline"]),
        advised: "none (noop), on SSDs also mq-deadline (deadline)",
        why: "the disk or hypervisor below orders requests itself, and a fair scheduler keeps it idle meanwhile",
        reference: MONGODB_CHECKLIST,
        matters: &[Cause::DiskSaturated],
    },
    Check {
        check: "io_scheduler",
        product: Product::MySql,
        against: |facts, server| scheduler(facts, server, "none", &["none", "noop", "mq-deadline", "deadline"]),
        advised: "none (noop) or mq-deadline (deadline)",
        why: "InnoDB submits many requests at once, and another scheduler holds some of them back",
        reference: MYSQL_DISKS,
        matters: &[Cause::DiskSaturated],
    },
    Check {
        check: "io_scheduler",
        product: Product::MariaDb,
        against: |facts, server| scheduler(facts, server, "none", &["none", "noop", "mq-deadline", "deadline"]),
        advised: "none on SSDs, mq-deadline on hard disks",
        why: "an SSD orders requests itself, and a fair scheduler keeps it idle meanwhile",
        reference: "MariaDB documentation: Configuring Linux for MariaDB, IO scheduler (https://mariadb.com/docs/server/server-management/install-and-upgrade-mariadb/configuring-mariadb/mariadb-performance-advanced-configurations/configuring-linux-for-mariadb)",
        matters: &[Cause::DiskSaturated],
    },
    Check {
        check: "tmpdir",
        product: Product::MySql,
        against: tmpdir,
        advised: "a file system in memory, large enough; not for files that replication must keep across a restart",
        why: "temporary tables that do not fit in memory, and all with BLOB or TEXT, are files there, which each statement creates and deletes",
        reference: "MySQL Reference Manual: Where MySQL Stores Temporary Files (https://dev.mysql.com/doc/refman/8.4/en/temporary-files.html)",
        matters: &[Cause::OnDiskTemporaryTables],
    },
    Check {
        check: "tmpdir",
        product: Product::MariaDb,
        against: tmpdir,
        advised: "a file system in memory, large enough; not for files that replication must keep across a restart",
        why: "temporary tables that do not fit in memory, and all with BLOB or TEXT, are files there, which each statement creates and deletes",
        reference: "MariaDB documentation: Server System Variables, tmpdir (https://mariadb.com/docs/server/server-management/variables-and-modes/server-system-variables#tmpdir)",
        matters: &[Cause::OnDiskTemporaryTables],
    },
];

/// What is done to the machine itself.
fn on_machine(facts: &Facts<'_>, text: String, command: String, keep: String, risk: &str) -> Fix {
    let steps = facts.place.machine(command, keep);
    Fix { text: text + &steps.note(), command: steps.command, keep: steps.keep, risk: Some(risk.to_owned()) }
}

/// Most that the advice allows, KB: 32 sectors.
const READAHEAD_KB: u64 = 16;

fn readahead(facts: &Facts<'_>, server: &Server<'_>) -> Vec<Deviation> {
    let of = |device: &str| {
        let kilobytes = facts.host(&format!("block.{device}.read_ahead_kb"))?.parse::<u64>().ok()?;
        (kilobytes > READAHEAD_KB).then(|| Deviation {
            subject: device.to_owned(),
            observed: format!("{kilobytes} KiB ({} sectors)", kilobytes * 2),
            fix: Some(on_machine(
                facts,
                format!("Let {device} read no more than {READAHEAD_KB} KiB ahead."),
                format!("blockdev --setra {} /dev/{device}", READAHEAD_KB * 2),
                format!("ACTION==\"add|change\", KERNEL==\"{device}\", ATTR{{queue/read_ahead_kb}}=\"{READAHEAD_KB}\" in a file of /etc/udev/rules.d/"),
                "Scans and backups read in smaller pieces and take longer.",
            )),
            word: device.to_owned(),
        })
    };
    facts.devices(server).into_iter().filter_map(of).collect()
}

fn atime(facts: &Facts<'_>, server: &Server<'_>) -> Vec<Deviation> {
    let of = |path: &str| {
        let options = facts.mount(server, path, "options")?;
        let has = |option: &str| options.split(',').any(|o| o == option);
        let kind = if has("relatime") { "relatime" } else { "every read is recorded" };
        (!has("noatime") && !has("ro")).then(|| Deviation {
            subject: path.to_owned(),
            observed: kind.to_owned(),
            fix: Some(on_machine(
                facts,
                format!("Keep no access times on {path}."),
                format!("mount -o remount,noatime {path}"),
                "noatime in its line of /etc/fstab".to_owned(),
                "Programs that search files by access time no longer find recent reads.",
            )),
            word: path.to_owned(),
        })
    };
    facts.mounts(server).into_iter().filter_map(|(path, _)| of(path)).collect()
}

/// Of a server that says where its data are: another mount's file system does not matter.
fn file_system(facts: &Facts<'_>, server: &Server<'_>) -> Vec<Deviation> {
    if facts.own(server, "storage.dbPath").is_none() {
        return Vec::new();
    }
    let of = |path: &str| {
        let kind = facts.mount(server, path, "fstype").filter(|kind| *kind != "xfs")?;
        Some(Deviation {
            subject: path.to_owned(),
            observed: kind.to_owned(),
            fix: Some(Fix {
                text: "Move the data to a volume with XFS: add a member of the replica set there, and retire this one."
                    .to_owned(),
                command: None,
                keep: None,
                risk: Some("The new member copies all data.".to_owned()),
            }),
            word: String::new(),
        })
    };
    facts.mounts(server).into_iter().filter_map(|(path, _)| of(path)).collect()
}

fn scheduler(facts: &Facts<'_>, server: &Server<'_>, advised: &str, fine: &[&str]) -> Vec<Deviation> {
    let of = |device: &str| {
        let chosen = facts.host(&format!("block.{device}.scheduler"))?;
        (!fine.contains(&chosen)).then(|| Deviation {
            subject: device.to_owned(),
            observed: chosen.to_owned(),
            fix: Some(on_machine(
                facts,
                format!("Use {advised} for {device}."),
                format!("echo {advised} > /sys/block/{device}/queue/scheduler"),
                format!("ACTION==\"add|change\", KERNEL==\"{device}\", ATTR{{queue/scheduler}}=\"{advised}\" in a file of /etc/udev/rules.d/"),
                "I/O weights of cgroups need the scheduler bfq.",
            )),
            word: device.to_owned(),
        })
    };
    facts.devices(server).into_iter().filter_map(of).collect()
}

fn tmpdir(facts: &Facts<'_>, server: &Server<'_>) -> Vec<Deviation> {
    let Some(list) = facts.own(server, "tmpdir") else { return Vec::new() };
    let of = |directory: &str| {
        let parts = directory.match_indices('/').map(|(i, _)| &directory[..i.max(1)]);
        let mut above: Vec<&str> = parts.chain([directory]).collect();
        above.sort_by_key(|path| std::cmp::Reverse(path.len()));
        let kind = above.iter().find_map(|path| facts.mount(server, path, "fstype"))?;
        (kind != "tmpfs").then(|| Deviation {
            subject: directory.to_owned(),
            observed: format!("tmpdir is on {kind}"),
            // How large it must be is worked out by the rule, from what was seen.
            fix: None,
            word: directory.to_owned(),
        })
    };
    list.split(':').filter(|d| d.starts_with('/')).filter_map(of).collect()
}
