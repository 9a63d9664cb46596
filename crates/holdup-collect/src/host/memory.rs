//! Memory, swapping and pressure stalls: `/proc/meminfo`, `/proc/vmstat`, `/proc/pressure/*`.

use holdup_recording::Labels;

use super::Reader;
use crate::ReadError;
use crate::proc::number;
use crate::reading::Out;

/// Memory by state. The four states of `system_memory_usage_bytes` add up to the total: `cached` is page cache and
/// reclaimable slab, `used` the rest (OpenTelemetry's meaning). Dirty and writeback pages are part of `cached`,
/// so they have names of their own.
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
        out.put("system_memory_usage_bytes", Labels::of([("state", state)]), value);
    }
    out.put_plain("system_memory_available_bytes", available);
    out.put_plain("system_memory_total_bytes", total);
    out.put_plain("system_memory_dirty_bytes", dirty);
    out.put_plain("system_memory_writeback_bytes", writeback);
    for (state, value) in [("used", swap_total - swap_free), ("free", swap_free)] {
        out.put("system_paging_usage_bytes", Labels::of([("state", state)]), value);
    }
    Ok(())
}

/// Pages swapped in and out, and page faults that had to read from a disk. A kernel built without swap has the last only.
pub(super) fn paging(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    const FILE: &str = "/proc/vmstat";
    let text = reader.proc.read_lines("vmstat", &mut reader.buffer)?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let faults = number(FILE, "pgmajfault", field("pgmajfault"))?;
    for (direction, name) in [("in", "pswpin"), ("out", "pswpout")] {
        if let Some(pages) = field(name) {
            let pages = number(FILE, name, Some(pages))?;
            out.put("system_paging_operations_total", Labels::of([("direction", direction)]), pages);
        }
    }
    out.put("system_paging_faults_total", Labels::of([("type", "major")]), faults);
    Ok(())
}

/// Time in which some, or all, non-idle tasks were stalled for want of a resource (PSI).
pub(super) fn pressure(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    for resource in ["cpu", "memory", "io"] {
        out.begin();
        let name = format!("pressure/{resource}");
        let text = reader.proc.read_lines(&name, &mut reader.buffer)?;
        for line in text.lines() {
            let kind = line.split_ascii_whitespace().next().unwrap_or_default();
            if kind != "some" && kind != "full" {
                return Err(ReadError(format!("/proc/{name}: a line that is neither `some` nor `full`")));
            }
            let total = line.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="));
            let total_us: f64 = number(&format!("/proc/{name}"), "total", total)?;
            let labels = Labels::of([("resource", resource), ("kind", kind)]);
            out.put("system_pressure_seconds_total", labels, total_us / 1e6);
        }
    }
    Ok(())
}
