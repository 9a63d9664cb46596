//! Memory, swapping and pressure stalls: `/proc/meminfo`, `/proc/vmstat`, `/proc/pressure/*`.

use holdup_recording::{Labels, metrics};

use super::Reader;
use crate::ReadError;
use crate::proc::{keyed, number};
use crate::reading::Out;

/// Memory by state. The four states of `system_memory_usage_bytes` add up to the total: `cached` is
/// page cache and reclaimable slab, `used` the rest (OpenTelemetry's meaning). Dirty and writeback
/// pages are part of `cached`, so they have separate metrics.
pub(super) fn usage(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let text = reader.proc.read_lines("meminfo", &mut reader.buffer)?;
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let field = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
        number::<f64>("/proc/meminfo", name, field).map(|kb| kb * 1024.0)
    };
    let (total, free, available) = (bytes("MemTotal")?, bytes("MemFree")?, bytes("MemAvailable")?);
    let buffers = bytes("Buffers")?;
    let cached = bytes("Cached")? + bytes("SReclaimable")?;
    let (swap_total, swap_free) = (bytes("SwapTotal")?, bytes("SwapFree")?);
    let (dirty, writeback) = (bytes("Dirty")?, bytes("Writeback")?);
    let used = (total - free - buffers - cached).max(0.0);
    for (state, value) in [("used", used), ("free", free), ("buffers", buffers), ("cached", cached)] {
        out.put(metrics::host::MEMORY_USAGE_BYTES, Labels::new([("state", state)]), value);
    }
    out.put_plain(metrics::host::MEMORY_AVAILABLE_BYTES, available);
    out.put_plain(metrics::host::MEMORY_TOTAL_BYTES, total);
    out.put_plain(metrics::host::MEMORY_DIRTY_BYTES, dirty);
    out.put_plain(metrics::host::MEMORY_WRITEBACK_BYTES, writeback);
    for (state, value) in [("used", swap_total - swap_free), ("free", swap_free)] {
        out.put(metrics::host::PAGING_USAGE_BYTES, Labels::new([("state", state)]), value);
    }
    Ok(())
}

/// Pages swapped in and out, faults that read from a disk, pages read again soon after their
/// eviction (refaults), and the work of finding free pages. Counters that a kernel lacks are left
/// out: one built without swap has no swapping, one before 5.9 only one kind of refault.
pub(super) fn paging(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    const FILE: &str = "/proc/vmstat";
    let counters = keyed::flat(FILE, reader.proc.read_lines("vmstat", &mut reader.buffer)?)?;
    let of = |name: &str| counters.get(name).copied();
    let faults = of("pgmajfault").ok_or_else(|| ReadError(format!("{FILE}: pgmajfault is missing")))?;
    // Before Linux 4.8 and 4.10 each zone has a separate counter.
    let by_zone = |name: &str| {
        let zones = ["dma", "dma32", "normal", "high", "movable", "device"];
        let counts: Vec<u64> = zones.iter().filter_map(|zone| of(&format!("{name}_{zone}"))).collect();
        (!counts.is_empty()).then(|| counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)))
    };
    // A sum needs all its parts: this counter comes after all of them, so the file is complete up
    // to here.
    let is_whole = of("pgrotated").is_some();
    let all = |name: &str| of(name).or_else(|| by_zone(name)).filter(|_| is_whole);
    let steal = ["pgsteal_direct", "pgsteal_kswapd"].iter().filter_map(|name| all(name)).reduce(u64::saturating_add);
    for (metric, label, value) in [
        (metrics::host::PAGING_OPERATIONS, Some(("direction", "in")), of("pswpin")),
        (metrics::host::PAGING_OPERATIONS, Some(("direction", "out")), of("pswpout")),
        (metrics::host::PAGING_FAULTS, Some(("type", "major")), Some(faults)),
        (
            metrics::host::PAGING_REFAULTS,
            Some(("type", "file")),
            of("workingset_refault_file").or_else(|| of("workingset_refault")),
        ),
        (metrics::host::PAGING_REFAULTS, Some(("type", "anon")), of("workingset_refault_anon")),
        (metrics::host::MEMORY_RECLAIM_PAGES, Some(("kind", "scan_direct")), all("pgscan_direct")),
        (metrics::host::MEMORY_RECLAIM_PAGES, Some(("kind", "scan_kswapd")), all("pgscan_kswapd")),
        (metrics::host::MEMORY_RECLAIM_PAGES, Some(("kind", "steal")), steal),
        (metrics::host::OUT_OF_MEMORY_KILLS, None, of("oom_kill")),
        (metrics::host::ALLOCATION_STALLS, None, all("allocstall")),
    ] {
        if let Some(value) = value {
            out.put(metric, Labels::new(label), value as f64);
        }
    }
    Ok(())
}

/// Time in which some, or all, non-idle tasks were stalled waiting for a resource (PSI).
pub(super) fn pressure(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    for resource in ["cpu", "memory", "io"] {
        out.begin();
        let name = format!("pressure/{resource}");
        let text = reader.proc.read_lines(&name, &mut reader.buffer)?;
        for (kind, total_us) in keyed::pressure(&format!("/proc/{name}"), text)? {
            let labels = Labels::new([("resource", resource), ("kind", kind)]);
            out.put(metrics::host::PRESSURE, labels, total_us as f64 / 1e6);
        }
    }
    Ok(())
}
