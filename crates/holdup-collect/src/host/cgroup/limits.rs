//! The limits of a cgroup. A limit binds everything below it (except version 1's throttle), so all
//! levels up to the root, or up to what a container shows of it, are read, and the tightest limit
//! counts. No counter is read.

use std::collections::BTreeMap;

use holdup_recording::quota::CpuQuota;

use crate::proc::cgroups::{Level, Place};
use crate::proc::devices::Devices;
use crate::proc::{Proc, keyed};

/// Version 1 writes "no limit" as the largest number of whole pages.
const MEMORY_UNLIMITED: u64 = 1 << 60;

/// Our setting names, files of version 1, keys of version 2's `io.max`.
const DISK_LIMITS: [(&str, &str, &str); 4] = [
    ("read_bytes_per_second", "blkio.throttle.read_bps_device", "rbps"),
    ("write_bytes_per_second", "blkio.throttle.write_bps_device", "wbps"),
    ("read_operations_per_second", "blkio.throttle.read_iops_device", "riops"),
    ("write_operations_per_second", "blkio.throttle.write_iops_device", "wiops"),
];

/// The tightest limit of a kind, and the index of the level that sets it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tightest<T> {
    pub value: T,
    pub level: usize,
}

/// The CPU quota.
pub(super) fn cpu(place: &Place) -> Option<Tightest<CpuQuota>> {
    let levels = place.levels.iter().zip(0..);
    let quotas = levels.filter_map(|(level, at)| {
        let value = if place.is_v2 {
            CpuQuota::parse(&level.word("cpu.max")?)
        } else {
            CpuQuota::from_v1(&level.word("cpu.cfs_quota_us")?, &level.word("cpu.cfs_period_us")?)
        };
        Some(Tightest { value: value?, level: at })
    });
    quotas.min_by(|a, b| a.value.cpus().total_cmp(&b.value.cpus()))
}

/// Memory limit, bytes.
pub(super) fn memory(place: &Place) -> Option<Tightest<u64>> {
    least(place, if place.is_v2 { "memory.max" } else { "memory.limit_in_bytes" })
}

/// Bytes from which version 2 slows a cgroup down to reclaim its memory.
pub(super) fn memory_high(place: &Place) -> Option<Tightest<u64>> {
    if place.is_v2 { least(place, "memory.high") } else { None }
}

/// Largest number of threads of the cgroup and all below it.
pub(super) fn processes(place: &Place) -> Option<Tightest<u64>> {
    least(place, "pids.max")
}

fn least(place: &Place, file: &str) -> Option<Tightest<u64>> {
    let levels = place.levels.iter().zip(0..);
    let limits = levels.filter_map(|(level, at)| {
        let value = level.word(file)?.parse().ok().filter(|bytes| *bytes < MEMORY_UNLIMITED)?;
        Some(Tightest { value, level: at })
    });
    limits.min_by_key(|limit| (limit.value, limit.level))
}

/// Limits per second by device and kind (`read_bytes_per_second`, …), and the nearest level that
/// sets any. Version 1's throttle ignores levels: only that of the process's own cgroup binds
/// (tried on Linux 6.18).
pub(super) fn disk(
    place: &Place,
    proc: &Proc,
    devices: &mut Devices,
) -> (BTreeMap<(String, &'static str), u64>, Option<usize>) {
    let mut found: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
    let mut nearest = None;
    let binding = if place.is_v2 { place.levels.len() } else { 1 };
    for (level, at) in place.levels.iter().take(binding).zip(0..) {
        for (number, kind, limit) in disk_limits(level, place.is_v2) {
            let Some(device) = devices.name(proc, &number) else { continue };
            nearest = nearest.or(Some(at));
            let least = found.entry((device.to_owned(), kind)).or_insert(limit);
            *least = limit.min(*least);
        }
    }
    (found, nearest)
}

fn disk_limits(level: &Level, is_v2: bool) -> Vec<(String, &'static str, u64)> {
    let mut found = Vec::new();
    let mut buffer = Vec::new();
    if is_v2 {
        let Ok(text) = level.read("io.max", &mut buffer) else { return found };
        for (device, pairs) in keyed::nested("io.max", text).unwrap_or_default() {
            for (kind, _, key) in DISK_LIMITS {
                let limit = pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
                found.extend(limit.map(|limit| (device.to_owned(), kind, limit)));
            }
        }
    } else {
        for (kind, file, _) in DISK_LIMITS {
            let Ok(text) = level.read(file, &mut buffer) else { continue };
            let lines = keyed::blkio(file, text).unwrap_or_default();
            found.extend(lines.into_iter().map(|(device, _, limit)| (device.to_owned(), kind, limit)));
        }
    }
    found
}
