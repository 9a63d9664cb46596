//! The age of the checkpoint, and how near it is to what the redo log allows.

use holdup_recording::metrics;
use holdup_signals::database::server::DATABASE;
use holdup_signals::{Gauge, Missing, View};

/// From this share (0-1) of the log's capacity, InnoDB writes pages as fast as it can, regardless
/// of innodb_io_capacity: asynchronous flushing starts at six to seven eighths of the greatest age,
/// which is nine tenths of the files or all of them.
const NEAR: f64 = 0.75;

/// The same as a share (0-1) of the greatest age, where the server says what that is
/// (Innodb_checkpoint_max_age): in a small log it is far below the size of the files, because room
/// for the changes in progress is set aside. MariaDB: `max_modified_age_async` in log0log.cc.
const NEAR_MOST: f64 = 7.0 / 8.0;

/// The age of the checkpoint and the log's capacity, bytes.
pub(super) struct Age {
    pub(super) metric: &'static str,
    pub(super) age: Gauge,
    pub(super) capacity: f64,
    /// From where it is near the greatest there may be.
    pub(super) near: f64,
}

pub(super) fn age(view: &View<'_>) -> Result<Age, Missing> {
    let ages =
        [metrics::mysql::INNODB_CHECKPOINT_AGE_BYTES.name, metrics::mysql::GLOBAL_STATUS_INNODB_CHECKPOINT_AGE.name];
    let found = ages.into_iter().find_map(|metric| Some((metric, view.gauge(metric, &[], DATABASE).ok()?)));
    let (metric, age) = found.ok_or_else(|| Missing::new("samples of mysql_innodb_checkpoint_age_bytes", DATABASE))?;
    let level = |metric: &str| view.gauge(metric, &[], DATABASE).ok().map(|g| g.max).filter(|v| *v > 0.0);
    let number = |name: &str| view.setting_number(name).ok().filter(|v| *v > 0.0);
    let capacity = level(metrics::mysql::INNODB_LOG_CAPACITY_BYTES.name)
        .or_else(|| level(metrics::mysql::GLOBAL_STATUS_INNODB_CHECKPOINT_MAX_AGE.name))
        .or_else(|| number("innodb_redo_log_capacity"))
        .or_else(|| Some(number("innodb_log_file_size")? * number("innodb_log_files_in_group").unwrap_or(1.0)))
        .ok_or_else(|| Missing::new("the redo log's capacity", DATABASE))?;
    let most = level(metrics::mysql::GLOBAL_STATUS_INNODB_CHECKPOINT_MAX_AGE.name);
    let near = most.map_or(NEAR * capacity, |most| (NEAR_MOST * most).min(NEAR * capacity));
    Ok(Age { metric, age, capacity, near })
}
