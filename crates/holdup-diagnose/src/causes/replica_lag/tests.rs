//! Replicas that are behind, and those that only look so.

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const REPLICA: &str = "mysql://replica";
const STANDBY: &str = "postgresql://standby";

/// The chance (0-1) that the signs give, and the first sentence.
fn seen(made: &SyntheticRecording) -> (f64, String) {
    made.with(|case| {
        let mut signs = Signs::default();
        find(&Facts::read(case.view(case.whole())), &mut signs);
        let weighed = signs.weigh();
        weighed.map_or((0.0, String::new()), |weighed| (weighed.chance, weighed.evidence[0].text.clone()))
    })
}

fn mysql(lag: impl Fn(i64) -> f64) -> SyntheticRecording {
    SyntheticRecording::new(60).counted(REPLICA, "mysql_replica_lag_seconds", &[("channel", "")], lag)
}

#[test]
fn a_lag_that_grows_is_said_with_its_pace() {
    let (chance, text) = seen(&mysql(|s| 30.0 + s as f64));
    assert!(chance > 0.8, "{chance}");
    assert_eq!(text, "the replica is 89 s behind, and falls further behind by 1 s each second");
}

#[test]
fn jitter_one_late_reading_and_a_set_delay_do_not_count_as_lag() {
    assert_eq!(seen(&mysql(|s| (s % 3) as f64)).0, 0.0);
    assert_eq!(seen(&mysql(|s| if s == 30 { 400.0 } else { 0.0 })).0, 0.0);
    let delayed = mysql(|_| 3_601.0).gauge(REPLICA, "mysql_replica_delay_seconds", &[("channel", "")], 3_600.0);
    assert_eq!(seen(&delayed).0, 0.0);
}

#[test]
fn an_applier_that_stopped_is_certain() {
    let stopped = SyntheticRecording::new(3)
        .gauge(REPLICA, "mysql_replica_io_running", &[("channel", "c1")], 1.0)
        .gauge(REPLICA, "mysql_replica_sql_running", &[("channel", "c1")], 0.0);
    let (chance, text) = seen(&stopped);
    assert!(chance >= 0.9 && text.contains("replica c1 applies nothing"), "{chance} {text}");
}

#[test]
fn a_standby_of_an_idle_primary_is_not_behind() {
    let standby = |left: f64| {
        SyntheticRecording::new(60)
            .counted(STANDBY, "postgresql_replica_replayed_age_seconds", &[], |s| 7_000.0 + s as f64)
            .gauge(STANDBY, "postgresql_replica_replay_lag_bytes", &[], left)
    };
    assert_eq!(seen(&standby(0.0)).0, 0.0);
    assert!(seen(&standby(5e8)).0 > 0.8);
    let Ok(Outcome::Cleared(evidence)) = standby(0.0).judge(&DEFINITION) else { panic!("not cleared") };
    assert!(evidence[0].text.contains("it has replayed all that it received"), "{evidence:?}");
}

#[test]
fn clouds_and_members_of_a_set_tell_it_too() {
    let cloud = |lag: f64| {
        let labels = [("db_instance", "shop-r1"), ("stat", "Average")];
        SyntheticRecording::new(60).gauge("cloudwatch:x", "aws_replica_lag_seconds", &labels, lag)
    };
    assert!(seen(&cloud(900.0)).0 > 0.8 && seen(&cloud(900.0)).1.contains("replica shop-r1 is 900 s behind"));
    assert_eq!(seen(&cloud(1.0)).0, 0.0);
    assert!(seen(&cloud(-1.0)).1.contains("does not replicate"));
    let set = |late: f64| {
        let member = |made: SyntheticRecording, name: &str, lag: f64| {
            let labels = [("member", name), ("stage", "applied")];
            made.counted("mongodb://db", "mongodb_replica_optime_seconds", &labels, move |s| 1e9 + s as f64 - lag)
        };
        member(member(SyntheticRecording::new(60), "db1", 0.0), "db2", late)
    };
    assert!(seen(&set(300.0)).0 > 0.8 && seen(&set(2.0)).0 < 0.01);
}

#[test]
fn without_a_replica_it_is_not_judged() {
    assert!(SyntheticRecording::new(3).judge(&DEFINITION).is_err());
    assert!(matches!(mysql(|_| 600.0).judge(&DEFINITION), Ok(Outcome::Uncounted(..))));
}
