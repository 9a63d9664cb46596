//! A program beside the service that is on no list, and reads or writes most of what is new on the disk.

use holdup_signals::host::throttle::Unit;

use super::Outcome;
use crate::case::Case;
use crate::causes::{CauseFinding, Role, bytes_per_second, ms, percent};
use crate::change::Fix;
use crate::resources::disk::is_of_service;
use crate::resources::is_felt;
use crate::resources::neighbours::Neighbour;
use crate::resources::volume::demand::demand;
use crate::strength::{FAIR, STRONG, WEAK};

/// By the threads of the host and what no watched process moved; none if no program began, or requests
/// hardly wait for the disk.
pub(super) fn by_threads(case: &Case<'_>) -> Option<Outcome> {
    let demand = demand(case).ok()?;
    let shared = Neighbour::began(case, &demand.flow.name);
    // On another disk it hurts by what it pushes out of memory alone.
    let is_shared = shared.as_ref().is_some_and(|neighbour| is_of_service(case, &neighbour.device));
    let elsewhere = || {
        let disks = case.slow().disks().ok()?;
        let mut others = disks.tops().filter(|disk| disk.device != demand.flow.name);
        others.find_map(|disk| Neighbour::began(case, &disk.device))
    };
    let neighbour = shared.or_else(elsewhere)?;
    let pushed = neighbour.pushes_out(case);
    let of_memory = pushed.as_ref().map_or(0.0, |(share, _)| *share);
    let of_disk = if is_shared { demand.share_of_newcomer(case, neighbour.bytes_per_second) } else { 0.0 };
    let waited = demand.waited_ms(case).ok()?;
    let explains_ms = waited * of_disk.max(of_memory);
    if !is_felt(case, explains_ms).ok()? {
        return None;
    }
    let (others, new) = (neighbour.bytes_per_second, neighbour.new_bytes_per_second);
    let text = format!(
        "processes that are not watched move {} more than in the baseline window, {} of the {} that are new on {}; a request waits {} for {}",
        bytes_per_second(others),
        percent((others / new.max(others)).min(1.0)),
        bytes_per_second(new.max(others)),
        neighbour.device,
        ms(waited),
        demand.flow.name
    );
    let moved = demand.flow.evidence(Unit::Bytes, case.slow().window, bytes_per_second(others), "0".into(), text);
    let fix = format!(
        "Let {} run at another time, on another disk, or slower: ionice -c3, or IOReadBandwidthMax= and IOWriteBandwidthMax= of its systemd unit.",
        neighbour.name
    );
    let mut pieces = vec![(neighbour.evidence, FAIR), (moved, if is_shared { STRONG } else { WEAK })];
    pieces.extend(pushed.map(|(_, told)| (told, FAIR)));
    let (evidence, weights) = pieces.into_iter().unzip();
    Some(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![Fix::advice(fix, Some("It then takes longer."))],
        prove: format!("The same load without {}: response time is that of the baseline window.", neighbour.name),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::resources::neighbours::tests::made;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 40 threads wait for the disk, which has as many operations in flight from 20 s on.
    fn waiting(made: SyntheticRecording) -> SyntheticRecording {
        type Grown = (&'static str, &'static [(&'static str, &'static str)], f64);
        const TIMES: [Grown; 3] = [
            ("system_disk_operation_time_seconds_total", &[("device", "vda"), ("direction", "read")], 40.0),
            ("system_disk_weighted_io_time_seconds_total", &[("device", "vda")], 40.0),
            ("system_disk_io_time_seconds_total", &[("device", "vda")], 1.0),
        ];
        let made = made.asleep(40, "io_schedule", "io_schedule < __iomap_dio_rw < vfs_read", None);
        TIMES.iter().fold(made, |made, (metric, labels, rate)| {
            let grown = |s: i64| 0.2 * s.min(20) as f64 + rate * (s - 20).max(0) as f64;
            let made = made.without(metric).counted("host", metric, labels, grown);
            let is_by_direction = labels.len() > 1;
            let write = [("device", "vda"), ("direction", "write")];
            if is_by_direction { made.counter("host", metric, &write, 1e-3) } else { made }
        })
    }

    #[test]
    fn an_export_on_no_list_is_named_if_it_reads_what_is_new() {
        let found = waiting(made("export.py", 20, 20e6, 0.0)).diagnose();
        assert_eq!(found.culprit, Some(DEFINITION.cause), "{}", found.headline);
        let texts: String = found.findings[0].evidence.iter().map(|piece| piece.text.as_str()).collect();
        assert!(texts.contains("export.py, which is not watched") && texts.contains("100 % of the 20 MB/s"), "{texts}");
    }

    #[test]
    fn a_bystander_is_not_accused_of_what_the_database_reads() {
        let bystander = waiting(made("rsyslogd", 20, 20e6, 19e6));
        assert!(bystander.explains(&DEFINITION).is_none_or(|ms| ms == 0.0), "{:?}", bystander.explains(&DEFINITION));
    }
}
