//! MongoDB's part: the storage engine's own cache. It is full from the share at which eviction begins;
//! a page that is not in it is read from a file, and from the disk if the kernel does not have it either.

use super::{FullCache, READS_A_REQUEST, bytes, less_data, percent};
use crate::change::Fix;
use crate::resources::tickets::MONGODB;
use crate::strength::{FAIR, STRONG};
use holdup_recording::metrics::mongodb as metric;
use holdup_signals::{Disk, Missing, View};

/// From this share (0-1) in use the engine evicts pages all the time (eviction_target is 80 %).
const FULL: f64 = 0.78;

/// The engine's cache, if it is full and requests read past it; none otherwise, or if none is watched.
///
/// # Errors
/// If the cache's size or its reads were not recorded.
pub(super) fn cache(view: &View<'_>, disk: &Disk, completed: f64) -> Result<Option<FullCache>, Missing> {
    const READS: &str = metric::SERVER_STATUS_WIRED_TIGER_CACHE_PAGES_READ_INTO_CACHE.name;
    let size = metric::SERVER_STATUS_WIRED_TIGER_CACHE_MAXIMUM_BYTES_CONFIGURED.name;
    if view.sources_of(READS).is_empty() && view.sources_of(size).is_empty() {
        return Ok(None);
    }
    let reads = view.counter(READS, &[], MONGODB)?;
    let size = view.gauge(size, &[], MONGODB)?;
    let used = view.gauge(metric::SERVER_STATUS_WIRED_TIGER_CACHE_BYTES_CURRENTLY_IN_THE_CACHE.name, &[], MONGODB)?;
    let (a_request, ratio) = (reads.delta / completed, used.max / size.max.max(1.0));
    if a_request < READS_A_REQUEST || ratio < FULL {
        return Ok(None);
    }
    let of_files = |metric: &str| view.counter(metric, &[], MONGODB).map_or(f64::INFINITY, |counter| counter.delta);
    let read = of_files(metric::SERVER_STATUS_WIRED_TIGER_BLOCK_MANAGER_BYTES_READ.name);
    let evidence = vec![
        reads.evidence(
            format!("{a_request:.1} a request"),
            format!("below {READS_A_REQUEST}"),
            format!("{a_request:.1} pages per request were not in the storage engine's cache"),
        ),
        used.evidence(
            format!("{} in use", percent(ratio)),
            format!("below {}", percent(FULL)),
            format!("{} of the cache ({}) was in use", percent(ratio), bytes(size.max)),
        ),
    ];
    let text = format!(
        "Give the storage engine more cache than {} (storage.wiredTiger.engineConfig.cacheSizeGB), if the machine has memory to spare: the kernel's page cache uses what is left.",
        bytes(size.max)
    );
    let risk = Some("The page cache shrinks by as much, and connections and sorts need memory, too.".to_owned());
    Ok(Some(FullCache {
        // What the disk read beyond that is readahead, or others'.
        share: (read / disk.read.bytes.max(1.0)).min(1.0),
        evidence,
        weights: vec![STRONG, FAIR],
        fixes: vec![less_data(), Fix { text, command: None, keep: None, risk }],
    }))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mongodb://db";
    const ENGINE: &str = "mongodb_server_status_wired_tiger";

    /// 100 operations a second of 2 ms, and of 42 from 20 s on, when each reads `reads` pages of a disk that takes 20 ms; of a cache
    /// of 1 GB the share `used` is in use.
    pub(super) fn made(used: f64, reads: f64) -> SyntheticRecording {
        let late = |s: i64| (s - 20).max(0) as f64;
        let took = move |s: i64| 0.2 * s as f64 + 4.0 * late(s);
        SyntheticRecording::new(40)
            .counter(DB, "mongodb_operations_total", &[("kind", "reads")], 100.0)
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "reads")], took)
            .gauge(DB, &format!("{ENGINE}_cache_maximum_bytes_configured"), &[], 1e9)
            .gauge(DB, &format!("{ENGINE}_cache_bytes_currently_in_the_cache"), &[], used * 1e9)
            .counted(DB, &format!("{ENGINE}_cache_pages_read_into_cache"), &[], move |s| 100.0 * reads * late(s))
            .counted(DB, &format!("{ENGINE}_block_manager_bytes_read"), &[], move |s| 819_200.0 * reads * late(s))
            .counted(
                DB,
                &format!("{ENGINE}_cache_application_threads_page_read_from_disk_to_cache_time_usecs"),
                &[],
                move |s| 2e6 * reads * late(s),
            )
            .disk("vda", (200.0, 8_192.0, 20.0), (1.0, 8_192.0, 1.0))
    }

    #[test]
    fn a_full_cache_that_is_read_past_is_the_root() {
        let full = made(0.8, 2.0);
        let diagnosis = full.diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::WorkingSetExceedsMemory), "{}", diagnosis.headline);
        assert!(
            full.explains(&DEFINITION).is_some_and(|ms| (ms - 40.0).abs() < 4.0),
            "{:?}",
            full.explains(&DEFINITION)
        );
    }

    #[test]
    fn a_cold_cache_and_a_full_one_that_is_not_read_past_are_not() {
        assert_ne!(made(0.3, 2.0).explains(&DEFINITION).map(|ms| ms > 0.0), Some(true), "it fills up after a restart");
        assert_eq!(made(0.8, 0.1).explains(&DEFINITION), Some(0.0), "it is meant to be full");
        let unknown = made(0.8, 2.0).without(&format!("{ENGINE}_cache_bytes_currently_in_the_cache"));
        assert_eq!(unknown.explains(&DEFINITION), None);
    }
}
