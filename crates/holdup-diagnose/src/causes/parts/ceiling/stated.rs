//! A limit that the provider's own percentage shows as reached: what it proves, what it leaves open,
//! and the outcome where the rates themselves show no level.

use super::sizing::sizing;
use super::word;
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role, ms, percent};
use crate::change::Fix;
use crate::resources::is_too_small;
use crate::resources::volume::level::{CLOUD, rate, waited_ms};
use crate::resources::volume::stated::Stated;
use crate::strength::{CERTAIN, STRONG, Strength};
use holdup_recording::metrics;
use holdup_signals::client::latency::Origin;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::limit_shares::Limited;
use holdup_signals::host::throttle::Unit;
use holdup_signals::{Gauge, Missing};

/// Figures of a volume that show how its operations wait.
const WAITS: [&str; 3] =
    [metrics::aws::DISK_QUEUE_DEPTH.name, metrics::aws::READ_LATENCY.name, metrics::aws::WRITE_LATENCY.name];

/// The percentage as evidence, and its strength.
pub(crate) fn statement(case: &Case<'_>, of: &Stated) -> (Evidence, Strength) {
    let slow = case.slow().window;
    let ratio = of.share.bound_ratio(slow).unwrap_or(0.0);
    let mean = percent(of.share.mean(slow));
    let text = format!(
        "the provider's own percentage of {} of {} was at 95 to 100 % in {} of the periods, {mean} on average: this limit binds, whatever the volume's type",
        of.share.limit,
        of.share.instance,
        percent(ratio)
    );
    (of.share.evidence(slow, mean, text), CERTAIN * ratio)
}

/// What the percentage does not say.
fn open(case: &Case<'_>, of: &Stated) -> String {
    let both = match (of.share.limited, &of.flow) {
        (Limited::OperationsOrBytes, None) => {
            "It does not say whether operations or bytes are limited: their mean size would (read_iops, write_iops, read_throughput, write_throughput)."
        }
        (Limited::OperationsOrBytes, Some(_)) => {
            "It does not say whether operations or bytes are limited: their mean size decided."
        }
        _ => "",
    };
    let level = match of.level(case) {
        Some(level) => format!("With the rates beside it the limit is {}.", rate(of.unit, level)),
        None => format!("It does not say how many {} that is.", word(of.unit)),
    };
    [both, level.as_str()].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The outcome by the percentage alone.
pub(super) fn outcome(case: &Case<'_>, of: &Stated) -> Result<Outcome, Missing> {
    let (share, strength) = statement(case, of);
    let explains_ms = explains_ms(case, of)?;
    let slow = case.slow();
    let instance = of.share.instance.as_str();
    let gauge = |metric: &str| slow.gauge(metric, &[("db_instance", instance)], "").ok();
    let waits = WAITS.iter().find_map(|metric| gauge(metric)).map(|waits: Gauge| {
        let text = format!(
            "a request waits {} longer for the volume than in the baseline window. {}",
            ms(explains_ms),
            open(case, of)
        );
        waits.evidence(ms(explains_ms), "a small part of the delay", text)
    });
    let evidence: Vec<Evidence> = [share].into_iter().chain(waits).collect();
    if is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        weights: [strength, STRONG].into_iter().take(evidence.len()).collect(),
        evidence,
        fixes: vec![raise(case, of)],
        prove: format!("The same load again: {} of {instance} stays below 95 %.", of.share.limit),
        role: Role::Root,
    }))
}

/// Milliseconds that a mean request waits longer for the volume than in the baseline window.
fn explains_ms(case: &Case<'_>, of: &Stated) -> Result<f64, Missing> {
    if let Some(flow) = &of.flow {
        return waited_ms(case, flow);
    }
    if case.origin == Origin::Volume {
        return Ok(case.excess_ms());
    }
    let each = |window| -> Result<f64, Missing> {
        let labels = [("db_instance", of.share.instance.as_str())];
        let queued = case.view(window).gauge(metrics::aws::DISK_QUEUE_DEPTH.name, &labels, CLOUD)?;
        Ok(queued.mean * window.seconds() / case.completed_in(window)?.max(1.0) * 1e3)
    };
    let baseline = case.baseline().filter(|baseline| !case.is_of_other(baseline.window));
    let baseline = baseline.map(|baseline| each(baseline.window)).transpose()?.unwrap_or(0.0);
    Ok((each(case.slow().window)? - baseline).max(0.0))
}

/// Less I/O, or a higher limit.
fn raise(case: &Case<'_>, of: &Stated) -> Fix {
    let limit = of.level(case);
    let room = of.flow.as_ref().zip(limit).map(|(flow, level)| sizing(case, flow, of.unit, level).text);
    let unit = if of.unit == Unit::Bytes { "throughput" } else { "IOPS" };
    let room = room.unwrap_or_else(|| {
        format!("raise the provisioned {unit}; the smaller of the volume's and the server's limit counts")
    });
    let text = format!("Reduce the I/O first (unchanged values sent again, missing indexes, memory); then {room}.");
    let risk =
        "Higher limits cost more; a larger server size restarts the database, more provisioned I/O mostly does not.";
    Fix { text, command: None, keep: None, risk: Some(risk.to_owned()) }
}

#[cfg(test)]
mod tests {
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};
    use crate::verdict::{Answer, Diagnosis};

    const LABELS: [(&str, &str); 1] = [("db_instance", "db")];

    /// A volume of unknown type, whose queue is thirty times as long from 60 s on, with the share `metric` of its limit.
    fn volume(metric: &str, share: f64) -> SyntheticRecording {
        let wave = |s: i64| 1.0 + 0.1 * (s as f64 * 1.7).sin();
        SyntheticRecording::new(120)
            .counted("azure", metric, &LABELS, move |s| if s < 60 { 0.3 * wave(s) } else { share })
            .counted("azure", "aws_disk_queue_depth", &LABELS, move |s| wave(s) * if s < 60 { 1.3 } else { 40.0 })
            .counted("azure", "aws_read_iops", &LABELS, move |s| if s < 60 { 1_500.0 * wave(s) } else { 4_000.0 })
            .counted("azure", "aws_write_iops", &LABELS, move |s| if s < 60 { 300.0 * wave(s) } else { 1_000.0 })
    }

    fn named(diagnosis: &Diagnosis) -> (Answer, Option<Cause>) {
        (diagnosis.verdict, diagnosis.culprit)
    }

    #[test]
    fn a_percentage_beside_a_queue_is_as_good_as_a_documented_limit() {
        let found = volume("aws_disk_iops_consumed_ratio", 0.99).diagnose();
        assert_eq!(named(&found), (Answer::Found, Some(Cause::IopsCeiling)), "{}", found.headline);
        assert!(found.findings[0].confidence >= 0.8, "{:?}", found.findings[0]);
        let texts: String = found.findings[0].evidence.iter().map(|piece| piece.text.as_str()).collect();
        assert!(texts.contains("whatever the volume's type") && texts.contains("how many operations"), "{texts}");
        let bytes = volume("aws_disk_throughput_consumed_ratio", 0.99).diagnose();
        assert_eq!(named(&bytes), (Answer::Found, Some(Cause::ThroughputCeiling)), "{}", bytes.headline);
        let below = volume("aws_disk_iops_consumed_ratio", 0.7).diagnose();
        assert_eq!(below.culprit, None, "{}", below.headline);
    }

    #[test]
    fn sizes_decide_where_the_percentage_does_not_say_what_is_limited() {
        let sized = |bytes: f64| {
            let made = volume("aws_disk_io_consumed_ratio", 0.99);
            let made = made.counted("azure", "aws_read_throughput_bytes_per_second", &LABELS, move |s| {
                bytes * if s < 60 { 1_500.0 } else { 4_000.0 + 300.0 * (s as f64).sin() }
            });
            let made = made.gauge("azure", "aws_write_throughput_bytes_per_second", &LABELS, 1_000.0 * bytes);
            let found = made.diagnose();
            let texts: String = found.findings.iter().flat_map(|f| &f.evidence).map(|e| e.text.as_str()).collect();
            (found.culprit, texts)
        };
        let (small, texts) = sized(8_192.0);
        assert_eq!(small, Some(Cause::IopsCeiling), "{texts}");
        assert_eq!(sized(262_144.0).0, Some(Cause::ThroughputCeiling));
        // Without sizes the verdict says what it does not know.
        let unsized_found = volume("aws_disk_io_consumed_ratio", 0.99).diagnose();
        let texts: String = unsized_found.findings[0].evidence.iter().map(|piece| piece.text.as_str()).collect();
        assert!(texts.contains("does not say whether operations or bytes are limited"), "{texts}");
    }
}
