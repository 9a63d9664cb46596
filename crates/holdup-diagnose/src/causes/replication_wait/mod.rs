//! Writes to MongoDB's primary wait for its secondaries.

mod signs;

use crate::change::Fix;
use holdup_recording::metrics::{self, Metric};

use super::{Cause, CauseFinding, Definition, Doc, Judge, MATTERS, Occurs, Outcome, Role, ms};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::is_too_small;
use crate::resources::tickets::MONGODB;
use crate::strength::{CERTAIN, NONE};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnMongodb,
    signs: Some(signs::find),
    ..Definition::new(Cause::ReplicationWait, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Writes wait for the secondaries",
    what: "A write with the write concern majority ends when most members of the replica set have it. If the secondaries fall behind by more than some seconds, flow control also makes each write wait before it begins. With MySQL's semi-synchronous and PostgreSQL's synchronous replication a commit waits for a replica.",
    hurts: "The primary is idle, and its writes are as slow as its slowest needed secondary, or as the network to it.",
    needs: "The primary's own counters (--watch mongodb://…, or its diagnostic.data), and a baseline window.",
    predicts: "The time that writes wait for their write concern, or for flow control, grows by most of the delay; reads are as quick as before.",
    clears: "Both times are a small part of the delay, or no longer than in the baseline window.",
    looks_like: "A slow disk of the primary: then its own reads and writes of pages are slow too.",
    fix: "Find the secondary that is behind (rs.status()) and what holds it: its disk, an index build, the network. Flow control only shows the lag.",
    prove: "The same load again: metrics.getLastError.wtime and flowControl.timeAcquiringMicros hardly grow.",
    references: "MongoDB manual: serverStatus (metrics.getLastError.wtime, flowControl), Write Concern, Check Flow Control, rs.printSecondaryReplicationInfo.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "rs.printSecondaryReplicationInfo(); db.serverStatus().flowControl",
    1,
    "which secondary is behind, and whether the primary holds writes back for it",
);

/// What writes wait for: counter, its unit in milliseconds, and in words.
const WAITS: [(Metric, f64, &str); 2] = [
    (
        metrics::mongodb::SERVER_STATUS_METRICS_GET_LAST_ERROR_WTIME_TOTAL_MILLIS,
        1.0,
        "until other members had its write",
    ),
    (metrics::mongodb::SERVER_STATUS_FLOW_CONTROL_TIME_ACQUIRING_MICROS, 1e-3, "for flow control"),
];

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let mut waits = Vec::new();
    for wait in &WAITS {
        let now = request_ms(case, &view, wait)?;
        let before = case.baseline().map_or(Ok(0.0), |baseline| request_ms(case, &baseline, wait))?;
        let (metric, _, what) = wait;
        let text = format!("a request waited {} {what}, {} in the baseline window", ms(now), ms(before));
        let piece = view.counter(metric.name, &[], MONGODB)?.evidence(ms(now), ms(before), text);
        waits.push(((now - before).max(0.0), piece));
    }
    let explains_ms: f64 = waits.iter().map(|(grown, _)| grown).sum();
    waits.sort_by(|a, b| b.0.total_cmp(&a.0));
    let weights = waits.iter().map(|(grown, _)| if case.share(*grown) >= MATTERS { CERTAIN } else { NONE }).collect();
    let evidence: Vec<Evidence> = waits.into_iter().map(|(_, piece)| piece).collect();
    if is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    let text = "Find the member that is behind, and look at its disk, its index builds and the network to it.";
    let fix = Fix {
        text: text.to_owned(),
        command: Some("rs.printSecondaryReplicationInfo()".to_owned()),
        keep: None,
        risk: None,
    };
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![fix],
        prove: "Run the same scenario again: writes hardly wait for other members.".to_owned(),
        role: Role::Root,
    }))
}

/// Milliseconds that a request waited so.
fn request_ms(case: &Case<'_>, view: &View<'_>, (metric, unit_ms, _): &(Metric, f64, &str)) -> Result<f64, Missing> {
    let waited = view.counter(metric.name, &[], MONGODB)?;
    Ok(waited.delta * unit_ms / case.completed_in(view.window)?.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const STATUS: &str = "mongodb_server_status";

    /// 100 writes a second of 5 ms, and of 205 from 20 s on, when each waits `acknowledged_ms` for other members and `held_ms` for
    /// flow control; before it waited 3 ms for members.
    fn made(acknowledged_ms: f64, held_ms: f64) -> SyntheticRecording {
        let total = |before: f64, then: f64| move |s: i64| before * s.min(20) as f64 + then * (s - 20).max(0) as f64;
        SyntheticRecording::new(40)
            .requests(100, 205)
            .each_request(|n, r| {
                if n < 2_000 {
                    r.done_at = r.intended_at + 5_000_000;
                }
            })
            .counted(
                "mongodb://db",
                &format!("{STATUS}_metrics_get_last_error_wtime_total_millis"),
                &[],
                total(300.0, 100.0 * acknowledged_ms),
            )
            .counted(
                "mongodb://db",
                &format!("{STATUS}_flow_control_time_acquiring_micros"),
                &[],
                total(0.0, 1e5 * held_ms),
            )
    }

    #[test]
    fn both_waits_add_up_beyond_the_baseline() {
        let of = |made: SyntheticRecording| made.explains(&DEFINITION).unwrap();
        assert!((of(made(183.0, 0.0)) - 180.0).abs() < 10.0, "{}", of(made(183.0, 0.0)));
        assert!((of(made(3.0, 180.0)) - 180.0).abs() < 10.0);
    }

    #[test]
    fn as_long_as_before_is_not_the_reason() {
        assert_eq!(made(3.0, 1.0).explains(&DEFINITION), Some(0.0));
        for gone in ["metrics_get_last_error_wtime_total_millis", "flow_control_time_acquiring_micros"] {
            assert_eq!(made(183.0, 0.0).without(&format!("{STATUS}_{gone}")).explains(&DEFINITION), None, "{gone}");
        }
    }
}
