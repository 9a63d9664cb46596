//! PostgreSQL's part: its own cache (shared_buffers) and the kernel's behind it, compared with its
//! tables and indexes. A block in neither is read from the disk; vacuum's reads do not count as the
//! requests'.

use super::{FullCache, READS_A_REQUEST, bytes, less_data, percent};
use crate::change::Fix;
use crate::strength::FAIR;
use holdup_recording::metrics;
use holdup_signals::database::memory_setting::bytes_of;
use holdup_signals::database::vacuum::PAGE_BYTES;
use holdup_signals::{Disk, Missing, View};

const SERVER: &str = "--watch postgresql://USER@HOST:PORT";

/// PostgreSQL's caches, if requests read past them and its data do not fit in them; none otherwise,
/// or if none is watched.
///
/// # Errors
/// If the size of its data or of the cache was not recorded.
pub(super) fn cache(view: &View<'_>, disk: &Disk, completed: f64) -> Result<Option<FullCache>, Missing> {
    const READ: &str = metrics::postgresql::STAT_DATABASE_BLKS_READ.name;
    if view.sources_of(READ).is_empty() {
        return Ok(None);
    }
    let reads = view.counter(READ, &[], SERVER)?;
    let a_request = reads.delta / completed;
    if a_request < READS_A_REQUEST {
        return Ok(None);
    }
    let own = view.setting("shared_buffers", SERVER)?;
    let own = bytes_of(own, PAGE_BYTES).ok_or_else(|| Missing::new("setting shared_buffers as a size", SERVER))?;
    let stored = stored(view).ok_or_else(|| Missing::new("sizes of tables (postgresql_table_size_bytes)", SERVER))?;
    let memory = view.memory()?;
    // The kernel caches files in what processes leave; its part of shared_buffers is a process's
    // memory.
    let kept = memory.file_bytes.unwrap_or((memory.limit_bytes - own).max(0.0));
    let room = own + kept;
    let hits = view.counter(metrics::postgresql::STAT_DATABASE_BLKS_HIT.name, &[], SERVER).map_or(0.0, |c| c.delta);
    let missed = reads.delta / (reads.delta + hits).max(1.0);
    let evidence = vec![
        reads.evidence(
            format!("{a_request:.1} a request"),
            format!("below {READS_A_REQUEST}"),
            format!(
                "{a_request:.1} blocks per request were not in shared_buffers, {} of its requests",
                percent(missed)
            ),
        ),
        memory.evidence(
            view,
            format!("{} for {}", bytes(room), bytes(stored)),
            "room for all of it",
            format!(
                "the known tables and indexes have {}, shared_buffers {} and cached files {}",
                bytes(stored),
                bytes(own),
                bytes(kept)
            ),
        ),
    ];
    if stored <= room || !memory.is_full() {
        return Ok(None);
    }
    // Vacuum's reads from the disk do not belong to any working set.
    let vacuum = view.vacuum().ok().and_then(|v| v.bytes_per_second).map_or(0.0, |(rate, _)| rate * disk.seconds);
    let of_requests = (1.0 - vacuum / disk.read.bytes.max(1.0)).clamp(0.0, 1.0);
    let share = (reads.delta * PAGE_BYTES / disk.read.bytes.max(1.0)).min(1.0) * of_requests;
    let more = stored - room;
    Ok(Some(FullCache {
        share,
        evidence,
        weights: vec![FAIR, FAIR],
        fixes: vec![
            Fix {
                text: format!(
                    "Give it {} more memory, or as much as the busiest tables need: {} of blocks were read past shared_buffers in these {:.0} s.",
                    bytes(more),
                    bytes(reads.delta * PAGE_BYTES),
                    view.window.seconds()
                ),
                command: None,
                keep: None,
                risk: None,
            },
            less_data(),
        ],
    }))
}

/// Bytes of all tables and indexes whose size was read.
fn stored(view: &View<'_>) -> Option<f64> {
    let last = |metric: &str| -> f64 {
        view.index
            .series(metric, &[])
            .filter_map(|(_, series)| series.last())
            .map(|(_, bytes)| bytes)
            .fold(0.0, |sum, b| sum + b)
    };
    let all = last(metrics::postgresql::TABLE_SIZE_BYTES.name) + last(metrics::postgresql::INDEX_SIZE_BYTES.name);
    (all > 0.0).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "postgresql://db";
    const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";

    /// 100 requests a second of 400 ms that wait for reads of 8 kB, of a server with 32 MB of its own cache, tables of `stored` bytes
    /// and 100 MB of memory that is full.
    fn made(stored: f64) -> SyntheticRecording {
        SyntheticRecording::new(20)
            .requests(100, 400)
            .asleep(40, "io_schedule", READ, None)
            .disk("vda", (2_000.0, 8_192.0, 20.0), (1.0, 8_192.0, 1.0))
            .counter(DB, "postgresql_stat_database_blks_read", &[("database", "app")], 2_000.0)
            .counter(DB, "postgresql_stat_database_blks_hit", &[("database", "app")], 6_000.0)
            .gauge(DB, "postgresql_table_size_bytes", &[("database", "app"), ("table", "public.a")], stored)
            .setting(DB, "shared_buffers", "32MB")
            .gauge("pid:7", "cgroup_memory_usage_bytes", &[], 99e6)
            .gauge("host", "system_memory_total_bytes", &[], 8e9)
            .gauge("host", "system_memory_usage_bytes", &[("state", "free")], 4e9)
            .setting("pid:7", holdup_signals::host::memory::LIMIT, "100000000")
            .setting("pid:7", "cgroup.path", "/db")
            .setting("host", "block.vda.read_ahead_kb", "8")
    }

    #[test]
    fn a_table_larger_than_memory_is_found() {
        let explains = made(1e9).explains(&DEFINITION).unwrap();
        assert!((explains - 400.0).abs() < 40.0, "{explains}");
        let worker = [("backend_type", "autovacuum worker"), ("object", "relation"), ("context", "vacuum")];
        let run = [("pid", "9"), ("table", "public.a"), ("worker", "autovacuum")];
        let vacuumed = made(1e9)
            .gauge(DB, "postgresql_activity_sessions", &[("backend_type", "client backend")], 9.0)
            .gauge(DB, "postgresql_progress_vacuum_heap_blks_total", &run, 100_000.0)
            .counter(DB, "postgresql_stat_io_reads", &worker, 1_000.0);
        let less = vacuumed.explains(&DEFINITION).unwrap();
        assert!((less - 200.0).abs() < 30.0, "half is vacuum's: {less}");
    }

    #[test]
    fn a_fitting_table_clears_it_and_missing_sizes_leave_it_open() {
        assert_ne!(made(50e6).explains(&DEFINITION).map(|ms| ms > 0.0), Some(true));
        assert_eq!(made(1e9).without("postgresql_table_size_bytes").explains(&DEFINITION), None);
        assert_eq!(made(1e9).without_setting("shared_buffers").explains(&DEFINITION), None);
    }
}
