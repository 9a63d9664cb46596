//! MySQL's part: InnoDB's own cache, the buffer pool, which may have been made smaller.

use super::{FullCache, READS_A_REQUEST, advice, bytes, less_data, percent};
use crate::case::Case;
use crate::strength::{FAIR, STRONG};
use holdup_recording::metrics::{self, Metric};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Disk, Gauge, Missing, View, Window};

/// A cache with a smaller share (0-1) free is full: servers keep a few per cent.
const FREE_PAGES: f64 = 0.05;

/// A cache below this share (0-1) of its former size was made smaller.
const SHRUNK: f64 = 0.9;

const SERVER: &str = "--watch mysql://USER@HOST:PORT";

/// InnoDB's buffer pool, if it is full and requests read past it; none otherwise.
pub(super) fn cache(
    case: &Case<'_>,
    view: &View<'_>,
    disk: &Disk,
    completed: f64,
) -> Result<Option<FullCache>, Missing> {
    let any = [
        metrics::mysql::GLOBAL_STATUS_QUESTIONS,
        metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READS,
        metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_TOTAL,
    ];
    if any.iter().all(|metric| view.sources_of(metric.name).is_empty()) {
        return Ok(None);
    }
    let reads = view.counter(metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READS.name, &[], SERVER)?;
    // A cache that shrinks, or has been emptied, is full in the end.
    let Window { from, to } = view.window;
    let late = View { window: Window { from: from + (to - from) / 2, to }, ..*view };
    let pages = |metric: Metric| late.gauge(metric.name, &[], SERVER).or_else(|_| view.gauge(metric.name, &[], SERVER));
    let free = pages(metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_FREE)?;
    let total = pages(metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_TOTAL)?;
    let (a_request, free_ratio) = (reads.delta / completed, free.mean / total.mean.max(1.0));
    let page = view.setting("innodb_page_size", SERVER).ok().and_then(|v| v.parse::<f64>().ok()).unwrap_or(16_384.0);
    // After it was made smaller, a pool counts pages as free that it does not use yet.
    let smaller = shrunk(case, &total, page);
    if a_request < READS_A_REQUEST || free_ratio >= FREE_PAGES && smaller.is_none() {
        return Ok(None);
    }
    let asked = view.counter(metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_READ_REQUESTS.name, &[], SERVER).ok();
    let missed = asked
        .map_or_else(String::new, |asked| format!(", {} of its requests", percent(reads.delta / asked.delta.max(1.0))));
    let mut evidence = vec![
        reads.evidence(
            format!("{a_request:.1} a request"),
            format!("below {READS_A_REQUEST}"),
            format!("{a_request:.1} pages per request were not in the buffer pool{missed}"),
        ),
        free.evidence(
            format!("{} free", percent(free_ratio)),
            format!("more than {}", percent(FREE_PAGES)),
            format!("{} of the buffer pool's pages were free", percent(free_ratio)),
        ),
    ];
    let now = total.mean * page;
    let mut weights = vec![STRONG, FAIR];
    if let Some(smaller) = smaller {
        (evidence[1], weights[1]) = (smaller, STRONG);
    }
    let read_past = reads.delta * page;
    let fix = advice::larger_pool(view, now, read_past);
    Ok(Some(FullCache {
        // By operations or by bytes, whichever others do more of.
        share: (reads.delta / disk.read.operations.max(1.0))
            .min(reads.delta * page / disk.read.bytes.max(1.0))
            .min(1.0),
        evidence,
        weights,
        fixes: vec![fix, less_data()],
    }))
}

/// Evidence that the buffer pool is smaller than in the baseline window; none if it is not.
fn shrunk(case: &Case<'_>, total: &Gauge, page: f64) -> Option<Evidence> {
    let metric = metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_TOTAL.name;
    let before = case.baseline()?.gauge(metric, &[], SERVER).ok()?.mean * page;
    let now = total.mean * page;
    let text = format!("the buffer pool has {}, and had {} in the baseline window", bytes(now), bytes(before));
    (now < SHRUNK * before).then(|| total.evidence(bytes(now), bytes(before), text))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mysql://x";
    const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";
    const POOL: &str = "mysql_global_status_innodb_buffer_pool";

    /// 100 requests a second of 10 ms, and of 400 from 20 s on, when the pool has `pages` instead of 8,192, half of them free.
    fn made(pages: f64) -> SyntheticRecording {
        SyntheticRecording::new(40)
            .requests(100, 400)
            .each_request(|n, r| {
                if n < 2_000 {
                    r.done_at = r.intended_at + 10_000_000;
                }
            })
            .asleep(40, "io_schedule", READ, None)
            .disk("vda", (2_000.0, 16_384.0, 20.0), (1.0, 8_192.0, 1.0))
            .counter(DB, &format!("{POOL}_reads"), &[], 2_000.0)
            .counted(DB, &format!("{POOL}_pages_total"), &[], move |s| if s < 20 { 8_192.0 } else { pages })
            .counted(DB, &format!("{POOL}_pages_free"), &[], move |_| pages / 2.0)
    }

    #[test]
    fn a_pool_that_was_made_smaller_is_full() {
        assert!(made(512.0).explains(&DEFINITION).unwrap() > 200.0, "{:?}", made(512.0).explains(&DEFINITION));
        assert!(made(8_192.0).explains(&DEFINITION).is_none_or(|ms| ms == 0.0), "it has room");
    }
}
