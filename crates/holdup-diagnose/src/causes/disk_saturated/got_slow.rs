//! A disk that got slow itself: as many operations as before, and each takes many times as long. What waits
//! for it says which cause that is: where it is commits, their log is what suffers.

use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::DiskWaits;
use holdup_signals::{Disk, Missing};

use super::{CauseFinding, Outcome, Role, ms};
use crate::case::Case;
use crate::change::Fix;
use crate::resources::commits::{Committing, Durability};
use crate::strength::STRONG;

/// What makes up this part (0-1) of the waits for a disk is what waits for it.
const MOST: f64 = 0.5;

/// The outcome for `disk`, for which requests wait for `explains_ms`; `seen` shows that it got slow, what it does
/// and who sleeps.
pub(super) fn judge(
    case: &Case<'_>,
    waits: &DiskWaits,
    disk: &Disk,
    explains_ms: f64,
    mut seen: Vec<Evidence>,
) -> Result<Outcome, Missing> {
    if let Some(commits) = only_commits(case, waits, explains_ms) {
        return Ok(Outcome::Cleared([commits].into_iter().chain(seen).collect()));
    }
    seen.extend(super::place_evidence(waits));
    let text = format!(
        "Find out why an operation of {} takes so long: its health (smartctl, a RAID that rebuilds, a write cache that is off), the status of a volume at its provider, others on the same hardware. Fewer reads or a higher limit do not mend it.",
        disk.name()
    );
    let command =
        format!("iostat -x {} 1 5; smartctl -a /dev/{}; dmesg --level=err,warn | tail", disk.device, disk.device);
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: seen,
        weights: vec![STRONG, STRONG],
        fixes: vec![Fix::by_command(text, Some(&command), None)],
        prove: format!("The same load: an operation of {} takes what it took in the baseline window.", disk.device),
        role: Role::Root,
    }))
}

/// Evidence that hardly anything but commits waits for the disk; none if reads do, or commits do not.
fn only_commits(case: &Case<'_>, waits: &DiskWaits, explains_ms: f64) -> Option<Evidence> {
    let view = case.slow();
    let committing = Committing::measure(&view).ok()?;
    let commits_ms = committing.request_ms(&view, waits.completed);
    let is_durable = Durability::read(&view).is_ok_and(|durable| durable.waits);
    let is_most = commits_ms >= MOST * explains_ms && waits.reading_ms() < MOST * explains_ms;
    let first = committing.groups.first().filter(|_| is_durable && is_most)?;
    let text =
        format!("what waits for it are commits: {} of a request, {} of reads", ms(commits_ms), ms(waits.reading_ms()));
    let labels = holdup_recording::Labels::new([("true_state", first.true_state.as_str())]);
    Some(Evidence::new("sessions", "state", labels, view.window, ms(commits_ms), "reads wait, too", text))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use super::*;
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mysql://db";
    const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";

    /// 100 requests a second of 10 ms, and of 200 from 20 s of 40 on. Of a disk that does 100 operations a second in one `direction`, as
    /// many as before or `factor` times as many then, each takes 0.1 ms and then 30.
    fn made(direction: &str, factor: f64) -> SyntheticRecording {
        let then = |before: f64, after: f64| move |s: i64| before * s.min(20) as f64 + after * (s - 20).max(0) as f64;
        let device = [("device", "vda")];
        let mut made = SyntheticRecording::new(40).requests(100, 200).each_request(|n, r| {
            if n < 2_000 {
                r.done_at = r.intended_at + 10_000_000;
            }
        });
        for of in ["read", "write"] {
            let labels = [("device", "vda"), ("direction", of)];
            let rate = if of == direction { 100.0 } else { 0.0 };
            made = made
                .counted("host", "system_disk_operations_total", &labels, then(rate, factor * rate))
                .counted("host", "system_disk_io_bytes_total", &labels, then(8_192.0 * rate, 8_192.0 * factor * rate))
                .counted("host", "system_disk_operation_time_seconds_total", &labels, then(1e-4 * rate, 0.03 * rate));
        }
        made.counted("host", "system_disk_io_time_seconds_total", &device, then(0.01, 0.95)).counted(
            "host",
            "system_disk_weighted_io_time_seconds_total",
            &device,
            then(0.01, 3.0),
        )
    }

    #[test]
    fn the_same_reads_that_each_take_longer_are_a_slow_disk_and_no_limit() {
        let reads = made("read", 1.0).asleep(20, "io_schedule", READ, None);
        let found = reads.diagnose();
        assert_eq!(found.culprit, Some(Cause::DiskSaturated), "{}", found.headline);
        let text = &found.findings[0].evidence[0].text;
        assert!(text.contains("took 30.0 ms instead of 0.10 ms"), "{text}");
        assert!(text.contains("100 operations/s instead of 100: the device got slow"), "{text}");
        for limit in [Cause::IopsCeiling, Cause::ThroughputCeiling, Cause::BurstExhausted] {
            assert_eq!(reads.explains(limit.definition()), Some(0.0), "{limit}");
        }
    }

    #[test]
    fn more_operations_do_not_make_a_slow_disk() {
        let more = made("read", 4.0).asleep(20, "io_schedule", READ, None);
        let Ok(Outcome::Found(found)) = more.judge(&DEFINITION) else { panic!("not found") };
        assert!(found.evidence.iter().all(|piece| !piece.text.contains("got slow")), "{:?}", found.evidence);
    }

    #[test]
    fn where_only_commits_wait_for_a_slow_disk_their_log_is_the_cause() {
        let commits = |made: SyntheticRecording| {
            made.sessions(18, "Commit")
                .setting(DB, "innodb_flush_log_at_trx_commit", "1")
                .counter("host", "system_disk_flushes_total", &[("device", "vda")], 30.0)
                .counter("host", "system_disk_flush_time_seconds_total", &[("device", "vda")], 0.9)
        };
        let written = commits(made("write", 1.0)).asleep(2, "jbd2_log_wait_commit", "jbd2_log_wait_commit", None);
        let found = written.diagnose();
        assert_eq!(found.culprit, Some(Cause::CommitLogBound), "{}", found.headline);
        assert!(found.findings[0].evidence.iter().any(|piece| piece.text.contains("the device got slow")));
        assert_eq!(written.explains(&DEFINITION), Some(0.0));
        // Reads wait, too: the disk is what they have in common.
        let both = commits(made("read", 1.0)).asleep(20, "io_schedule", READ, None);
        assert!(both.explains(&DEFINITION).unwrap() > 100.0);
    }
}
