//! A burst has ended: a disk that was fast for a while is back at its baseline.

mod signs;

use super::parts::ceiling;
use super::parts::ceiling::level::level_evidence;
use super::{Cause, CauseFinding, Contribution, Definition, Doc, Judge, Outcome, Role, Source::With, Trait, percent};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command;
use crate::resources::is_felt;
use crate::resources::volume::burst::Balances;
use crate::resources::volume::level::{self, AtCeiling, at_ceiling, rate};
use crate::strength::{CERTAIN, FAIR, STRONG, WEAK};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::flows::FlowSource;
use holdup_signals::{Gauge, Missing};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskBurst],
    // The end of a burst explains how the ceiling was reached, not why the demand exceeds it: unless that is
    // what changed, which the limits' own edges say.
    adds_to: &[Contribution { to: &[&[With(Trait::DiskLimit)]], least: 0.0 }],
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::CREDITS_LOW, crate::strength::FAIR)],
    ..Definition::new(Cause::BurstExhausted, DOC, Judge::Alone(judge), &next_command::DISKS)
};

const DOC: Doc = Doc {
    title: "The disk's burst is used up",
    what: "Small instances and volumes may exceed their baseline several times while they have credits: EBS gives most instance sizes 30 minutes in 24 hours, and gp2 volumes 5.4 million operations. After that they are limited to their baseline.",
    hurts: "The same load is fast at one time of the day and slow at another, and nothing in the service has changed. A test that ends before the credits do measures a machine that does not exist.",
    needs: "The host's disk statistics (--watch host) or a cloud database's figures, including the time when it was fast; better also the balances EBSByteBalance%, EBSIOBalance% or BurstBalance.",
    predicts: "Two levels of bytes or operations per second, the higher one first, with more demand at both; a balance of credits that runs out as the lower level begins.",
    clears: "There is one level, or none; or the balance is far from used up.",
    looks_like: "A limit that an administrator lowered. A falling demand has no queue at the lower level.",
    fix: "A size whose baseline suffices, or a volume type without bursts (gp3, io1, io2). Deferrable work (vacuum, backups) at hours when credits are left.",
    prove: "The same load for longer than the credits last: one level of latency all the time.",
    references: "AWS: Amazon EC2 user guide, Amazon EBS-optimized instances (maximum performance for 30 minutes at least once every 24 hours), General Purpose SSD volumes (I/O credits and burst); CloudWatch metrics EBSByteBalance%, EBSIOBalance%, BurstBalance.",
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let cloud = at_ceiling(case, FlowSource::Cloud).map(|(_, at)| at);
    let host = at_ceiling(case, FlowSource::Host).map(|(_, at)| at);
    let all: Vec<AtCeiling> = match (cloud, host) {
        (Err(_), Err(missing)) => return ceiling::no_disk_was_asked(case).ok_or(missing),
        (cloud, host) => cloud.into_iter().chain(host).flatten().collect(),
    };
    let balances = Balances::read(case);
    let ended = |at: &&AtCeiling| at.burst().is_some() || at.freer().is_some();
    let found = all.iter().find(ended).filter(|_| !balances.is_left());
    let Some(at) = found.or_else(|| all.first().filter(|_| balances.is_used_up())) else {
        return Ok(Outcome::Cleared(cleared(case, &all, &balances.0)?));
    };
    let explains_ms = level::disk_ms(case, &at.flow)?;
    let mut evidence = level_evidence(at);
    if let (Some(fall), Some(first)) = (at.falls().last(), evidence.first_mut()) {
        let since = (fall.at - case.recording.manifest.started_at) as f64 / 1e9;
        first.text = format!(
            "{}; it fell from {} {since:.0} s into the recording",
            first.text,
            rate(at.binding.unit, fall.from)
        );
    }
    if let (Some(freer), Some(last)) = (at.freer(), evidence.last_mut()) {
        let since = (freer.window.to - case.recording.manifest.started_at) as f64 / 1e9;
        last.text = format!("{}; that was {since:.1} s into the recording", last.text);
    }
    evidence.extend(balances.0.iter().map(|(name, balance)| balance_evidence(name, balance)));
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    // A level of the burst itself is a limit; a higher rate before may also mean that the limit was
    // lowered.
    let mut weights = vec![match (at.burst(), at.freer()) {
        (Some(_), _) => STRONG,
        (None, Some(_)) => FAIR,
        (None, None) => WEAK,
    }];
    weights.push(if balances.is_used_up() { CERTAIN } else { WEAK });
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![Fix {
            text: format!(
                "Do not count on the burst: plan with {}, or take {}.",
                rate(at.binding.unit, at.binding.ceiling.level),
                ceiling::sizing(case, &at.flow, at.binding.unit, at.binding.ceiling.level).text
            ),
            command: None,
            keep: None,
            risk: None,
        }],
        prove: "The same load for longer than the burst lasts: response time stays as it is at the beginning."
            .to_owned(),
        role: Role::Root,
    }))
}

fn balance_evidence(name: &str, balance: &Gauge) -> Evidence {
    let text =
        format!("the balance {name} was {} at its lowest, {} on average", percent(balance.min), percent(balance.mean));
    balance.evidence(percent(balance.min), "well above nothing", text)
}

fn cleared(case: &Case<'_>, all: &[AtCeiling], balances: &[(&str, Gauge)]) -> Result<Vec<Evidence>, Missing> {
    let mut evidence: Vec<Evidence> = balances.iter().map(|(name, b)| balance_evidence(name, b)).collect();
    if let Some(at) = all.first() {
        evidence.extend(level_evidence(at).into_iter().take(1));
    }
    if evidence.is_empty() {
        let flows = case.view(case.whole()).flows()?;
        let told =
            flows.first().and_then(|f| ceiling::other_unit(case, f, holdup_signals::host::throttle::Unit::Bytes));
        evidence.extend(told);
    }
    Ok(evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 200 requests a second that wait for a disk of 60 MB/s, and for one of 20 after 30 s.
    fn made(after: f64) -> SyntheticRecording {
        let bytes = move |s: i64| if s < 30 { 60e6 * s as f64 } else { 60e6 * 30.0 + after * (s - 30) as f64 };
        let mut made =
            SyntheticRecording::new(80).requests(200, 400).asleep(60, "io_schedule", "io_schedule < vfs_read", None);
        for direction in ["read", "write"] {
            let labels = [("device", "vda"), ("direction", direction)];
            let share = if direction == "read" { 0.7 } else { 0.3 };
            made = made
                .counted("host", "system_disk_io_bytes_total", &labels, move |s| share * bytes(s))
                .counted("host", "system_disk_operations_total", &labels, move |s| share * bytes(s) / 65_536.0)
                .counter("host", "system_disk_operation_time_seconds_total", &labels, 30.0);
        }
        let labels = [("device", "vda")];
        made.counter("host", "system_disk_io_time_seconds_total", &labels, 1.0).counter(
            "host",
            "system_disk_weighted_io_time_seconds_total",
            &labels,
            60.0,
        )
    }

    #[test]
    fn two_levels_are_a_burst_and_a_baseline() {
        assert!(made(20e6).explains(&DEFINITION).unwrap() > 200.0);
        let Ok(Outcome::Found(found)) = made(20e6).judge(&DEFINITION) else { panic!("not found") };
        assert!(found.evidence[0].text.contains("it fell from 60 MB/s 30 s"), "{:?}", found.evidence);
        assert_eq!(made(60e6).explains(&DEFINITION), Some(0.0), "one level");
        assert_eq!(made(20e6).without("system_disk_weighted_io_time_seconds_total").explains(&DEFINITION), None);
    }

    #[test]
    fn credits_that_are_left_clear_it() {
        let balance = |ratio| made(20e6).gauge("aws", "aws_ebs_byte_balance_ratio", &[("db_instance", "db")], ratio);
        assert_eq!(balance(0.9).explains(&DEFINITION), Some(0.0));
        assert!(balance(0.01).explains(&DEFINITION).unwrap() > 200.0);
    }
}
