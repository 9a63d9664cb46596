//! Settings of the host: kernel, memory, clock, limits, and block devices by way of
//! [`block`](super::block). A setting that this kernel lacks is left out. Cgroups and mounts are
//! read in their own modules.

use super::block;
use crate::proc::{Proc, Tree};

/// `/proc/sys` files that affect a slow service, under sysctl's names.
const SYSCTLS: [&str; 28] = [
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.netfilter.nf_conntrack_max",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_tw_reuse",
    "vm.swappiness",
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.vfs_cache_pressure",
    "vm.zone_reclaim_mode",
    "vm.nr_hugepages",
    "fs.file-max",
    "fs.aio-max-nr",
    "kernel.task_delayacct",
    "kernel.numa_balancing",
    "kernel.pid_max",
    "kernel.threads-max",
];

/// Names and values of all readable settings.
pub(super) fn read(proc: &Proc) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            found.push((name.to_owned(), value));
        }
    };
    put("kernel.osrelease", proc.word(Tree::Proc, "sys/kernel/osrelease"));
    put("cpu_logical_count", cpus(proc));
    for name in SYSCTLS {
        let value = proc.word(Tree::Proc, &format!("sys/{}", name.replace('.', "/")));
        // Several values are separated by tabs.
        put(name, value.map(|value| value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")));
    }
    for name in ["enabled", "defrag"] {
        let words = proc.word(Tree::Sys, &format!("kernel/mm/transparent_hugepage/{name}"));
        put(&format!("transparent_hugepage.{name}"), words.map(|words| block::chosen(&words)));
    }
    put("clock_source", proc.word(Tree::Sys, "devices/system/clocksource/clocksource0/current_clocksource"));
    put("cpu_governor", proc.word(Tree::Sys, "devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    let nodes = proc.word(Tree::Sys, "devices/system/node/online");
    let nodes = nodes.map(|list| listed(&list).len()).filter(|count| *count > 0);
    put("numa_nodes", nodes.map(|count| count.to_string()));
    for (name, field) in [("memory_total_bytes", "MemTotal"), ("swap_total_bytes", "SwapTotal")] {
        put(name, memory_bytes(proc, field).map(|bytes| bytes.to_string()));
    }
    found.extend(block::settings(proc));
    found
}

fn cpus(proc: &Proc) -> Option<String> {
    let mut buffer = Vec::new();
    let text = proc.read_lines("stat", &mut buffer).ok()?;
    let is_cpu =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    Some(text.lines().filter(is_cpu).count().to_string())
}

fn memory_bytes(proc: &Proc, field: &str) -> Option<u64> {
    let mut buffer = Vec::new();
    let text = proc.read_lines("meminfo", &mut buffer).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The numbers of a list such as `0-3,8`, as the kernel writes nodes; none if it is not one.
pub(super) fn listed(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < LISTED_MAX).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = list.split(',').map(range).collect();
    ranges.unwrap_or_default().into_iter().flatten().collect()
}

/// More nodes than the kernel can have.
const LISTED_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers() {
        assert_eq!((listed("0"), listed("0-3,8"), listed("0-1,4-5").len()), (vec![0], vec![0, 1, 2, 3, 8], 4));
        for wrong in ["x", "3-1", "0-4294967295", ""] {
            assert!(listed(wrong).is_empty(), "{wrong}");
        }
    }
}
