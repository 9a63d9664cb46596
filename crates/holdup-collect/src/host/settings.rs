//! What is set on the host: kernel, limits, dirty-page and cgroup limits, disk schedulers. A setting that this
//! kernel does not have is left out.

use crate::proc::{Proc, Tree};

/// `/proc/sys` files that bear on a slow service; their names here are sysctl's.
const SYSCTLS: [&str; 11] = [
    "net.core.somaxconn",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_abort_on_overflow",
    "vm.swappiness",
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_bytes",
    "vm.overcommit_memory",
    "fs.file-max",
    "kernel.task_delayacct",
];

/// Name and value of every setting that can be read.
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
        put(name, proc.word(Tree::Proc, &format!("sys/{}", name.replace('.', "/"))));
    }
    for name in ["enabled", "defrag"] {
        let words = proc.word(Tree::Sys, &format!("kernel/mm/transparent_hugepage/{name}"));
        put(&format!("transparent_hugepage.{name}"), words.map(|words| chosen(&words)));
    }
    found.extend(disks(proc));
    found.extend(cgroup(proc));
    found
}

fn cpus(proc: &Proc) -> Option<String> {
    let mut buffer = Vec::new();
    let text = proc.read_lines("stat", &mut buffer).ok()?;
    let is_cpu =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    Some(text.lines().filter(is_cpu).count().to_string())
}

/// Of `always [madvise] never` the word in brackets; other text as it is.
fn chosen(words: &str) -> String {
    let word = words.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    word.unwrap_or(words).to_owned()
}

fn disks(proc: &Proc) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(proc.path(Tree::Sys, "block")) else { return found };
    let mut devices: Vec<String> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    devices.sort();
    for device in devices {
        if proc.word(Tree::Sys, &format!("block/{device}/size")).is_none_or(|sectors| sectors == "0") {
            continue;
        }
        for name in ["scheduler", "read_ahead_kb", "rotational", "nr_requests"] {
            if let Some(value) = proc.word(Tree::Sys, &format!("block/{device}/queue/{name}")) {
                found.push((format!("block.{device}.{name}"), chosen(&value)));
            }
        }
    }
    found
}

/// The tightest CPU and memory limit of our own cgroup and those above it, in version 2 or 1. A limit on a cgroup
/// binds everything below, so the levels up to the root (or to what a container shows of it) are all looked at.
fn cgroup(proc: &Proc) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut buffer = Vec::new();
    let Ok(text) = proc.read_lines("self/cgroup", &mut buffer) else { return found };
    let (mut quota, mut memory) = (None::<(f64, String)>, None::<u64>);
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mut mounts: Vec<&str> = controllers.split(',').filter(|c| !c.is_empty() && !c.contains('=')).collect();
        if controllers.is_empty() {
            mounts.extend(["", "unified"]);
        }
        for mount in mounts {
            for level in levels(path) {
                let file = |name: &str| proc.word(Tree::Sys, &format!("fs/cgroup/{mount}{level}/{name}"));
                let cpu = match mount {
                    "cpu" => file("cpu.cfs_quota_us").zip(file("cpu.cfs_period_us")),
                    "" | "unified" => file("cpu.max").and_then(|both| {
                        both.split_once(' ').map(|(quota, period)| (quota.to_owned(), period.to_owned()))
                    }),
                    _ => None,
                };
                if let Some((of, per)) = cpu
                    && let (Ok(of_us), Ok(per_us)) = (of.parse::<f64>(), per.parse::<f64>())
                    && of_us > 0.0
                    && per_us > 0.0
                    && quota.as_ref().is_none_or(|(least, _)| of_us / per_us < *least)
                {
                    quota = Some((of_us / per_us, format!("{of} {per}")));
                }
                let limit = if mount == "memory" { file("memory.limit_in_bytes") } else { file("memory.max") };
                // Version 1 writes "no limit" as the largest number of whole pages.
                if let Some(bytes) = limit.and_then(|text| text.parse::<u64>().ok()).filter(|bytes| *bytes < 1 << 60) {
                    memory = Some(memory.map_or(bytes, |least| least.min(bytes)));
                }
            }
        }
    }
    found.push(("cgroup.cpu_quota_us_per_period_us".to_owned(), quota.map_or("max".to_owned(), |(_, text)| text)));
    found.push(("cgroup.memory_limit_bytes".to_owned(), memory.map_or("max".to_owned(), |bytes| bytes.to_string())));
    found
}

/// `/a/b` -> `/a/b`, `/a`, and the root.
fn levels(path: &str) -> Vec<&str> {
    let mut levels = Vec::new();
    let mut path = path.trim_end_matches('/');
    while let Some((parent, _)) = path.rsplit_once('/') {
        levels.push(path);
        path = parent;
    }
    levels.push("");
    // The path is the kernel's, but a fake or foreign tree must not lead out of it.
    levels.retain(|level| !level.contains(".."));
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_up_to_the_root() {
        assert_eq!(levels("/a/b"), ["/a/b", "/a", ""]);
        assert_eq!(levels("/"), [""]);
        assert_eq!(levels("/../x"), [""]);
    }

    #[test]
    fn the_word_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("128"), "128");
    }

    #[test]
    fn the_tightest_limit_on_the_way_up() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/self/cgroup", "0::/a/b\n");
        put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
        put("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
        put("sys/fs/cgroup/a/b/memory.max", "2000\n");
        put("sys/fs/cgroup/a/memory.max", "1000\n");
        let expected = [("cgroup.cpu_quota_us_per_period_us", "50000 100000"), ("cgroup.memory_limit_bytes", "1000")];
        assert_eq!(cgroup(&Proc::at(dir.path())), expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        put("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/\n1:name=systemd:/\n");
        put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert!(cgroup(&Proc::at(dir.path())).iter().all(|(_, value)| value == "max"));
    }
}
