//! A replication slot without a reader keeps write-ahead log, until the disk is full.

mod slots;

use super::parts::present;
use super::{Cause, Definition, Doc, Judge, Occurs, Outcome, Trait};
use crate::case::Case;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::next_command::NextCommand;
use holdup_signals::Missing;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    traits: &[Trait::Harm],
    signs: Some(find),
    ..Definition::new(Cause::ReplicationSlotKeepsLog, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A replication slot keeps the log",
    what: "PostgreSQL keeps all write-ahead log that the reader of a replication slot has not confirmed. A slot whose reader is gone, or does not keep up, keeps it without end unless max_slot_wal_keep_size limits it.",
    hurts: "The log fills the volume at the pace of writes. When it is full the server stops and does not start again without space. A logical slot also keeps dead rows of the catalogs from being removed.",
    needs: "The slots (--watch postgresql://…, SELECT * FROM pg_replication_slots in pasted text), or a cloud's figures (OldestReplicationSlotLag).",
    predicts: "A slot is not active, and the log that it keeps is gigabytes and grows with each write.",
    clears: "Every slot keeps less than a gigabyte; or the server has none.",
    looks_like: "A reader that has confirmed all, of which an open transaction keeps the log: end that transaction. Log that archive_command cannot archive stays, too (pg_stat_archiver: failed_count), and so does that of wal_keep_size and of a long checkpoint.",
    fix: "Start the slot's reader again, or drop the slot if it is not needed. The next checkpoint frees the log. Then set max_slot_wal_keep_size, so that a lost reader cannot fill the disk.",
    prove: "The slot is gone or its lag falls, and the free space of the volume rises after the next checkpoint.",
    references: "PostgreSQL documentation: pg_replication_slots (confirmed_flush_lsn, inactive_since, wal_status, safe_wal_size), pg_stat_replication, Replication Slots, max_slot_wal_keep_size; Amazon RDS user guide: OldestReplicationSlotLag, TransactionLogsDiskUsage.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "SELECT slot_name, active, wal_status, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) AS holds FROM pg_replication_slots ORDER BY restart_lsn;",
    1,
    "which slot has no reader, and how much log it keeps",
);

fn find(facts: &Facts<'_>, signs: &mut Signs) {
    present::signs(slots::shown(&facts.view), signs);
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let shown = slots::shown(&case.view(case.whole()));
    if shown.is_empty() {
        return Err(Missing::new("what replication slots keep", "--watch postgresql://USER@HOST:PORT/DATABASE"));
    }
    let fixes = vec![
        present::step("Start the reader of the slot again, if it is still needed.", None, None),
        present::step(
            "Drop the slot if nothing reads it any more.",
            Some("SELECT pg_drop_replication_slot('SLOT');"),
            Some(
                "Its reader has to be set up again. Never delete files in pg_wal: the server cannot start without them.",
            ),
        ),
    ];
    let prove = "The slot's lag falls or the slot is gone, and the free space rises after the next checkpoint.";
    let unknown = Missing::new("when the volume is full", "--watch host, or a cloud's figures of free storage");
    Ok(present::outcome(shown, fixes, prove, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strength::FAIR;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "postgresql://db";
    const GIB: f64 = 1_073_741_824.0;
    const MIB: f64 = 1_048_576.0;

    fn chance(made: &SyntheticRecording) -> f64 {
        made.with(|case| {
            let mut signs = Signs::default();
            find(&Facts::read(case.view(case.whole())), &mut signs);
            signs.weigh().map_or(0.0, |weighed| weighed.chance)
        })
    }

    fn slot(active: &str, kept: impl Fn(i64) -> f64) -> SyntheticRecording {
        let labels = [("slot", "warehouse"), ("active", active)];
        SyntheticRecording::new(60).counted(DB, "postgresql_replication_slot_retained_bytes", &labels, kept)
    }

    #[test]
    fn gigabytes_without_a_reader_are_found_with_their_pace() {
        let made = slot("0", |s| 12.0 * GIB + 1e7 * s as f64);
        assert!(chance(&made) >= 0.9);
        let Ok(Outcome::Uncounted(found, _)) = made.judge(&DEFINITION) else { panic!("not found") };
        let text = &found.evidence[0].text;
        assert!(text.contains("slot warehouse has no reader and keeps 13 GiB") && text.contains("10 MB/s"), "{text}");
    }

    #[test]
    fn the_evidence_names_what_holds_a_slot() {
        let labels = [("slot", "warehouse"), ("active", "1"), ("plugin", "pgoutput"), ("database", "shop")];
        let put = |made: SyntheticRecording, of: &str, labels: &[(&str, &str)], value: f64| {
            made.gauge(DB, &format!("postgresql_{of}"), labels, value)
        };
        let text = |made: &SyntheticRecording| {
            let Ok(Outcome::Uncounted(found, _)) = made.judge(&DEFINITION) else { panic!("not found") };
            found.evidence[0].text.clone()
        };
        let kept = put(SyntheticRecording::new(20), "replication_slot_retained_bytes", &labels, 20.0 * GIB);
        let open = text(&put(kept.clone(), "replication_slot_unconfirmed_bytes", &labels, 2.0 * MIB));
        assert!(open.contains("slot warehouse (pgoutput, database shop) has a reader"), "{open}");
        assert!(open.contains("confirmed all but 2") && open.contains("an open transaction keeps the rest"), "{open}");
        let behind = put(kept.clone(), "replication_slot_unconfirmed_bytes", &labels, 20.0 * GIB);
        let reader = [("application_name", "debezium"), ("slot", "warehouse")];
        let of = [("sent", 3.0 * MIB), ("flush", 2.0 * GIB), ("replay", 20.0 * GIB)];
        let behind = of.iter().fold(behind, |made, (stage, value)| {
            put(made, &format!("stat_replication_{stage}_lag_bytes"), &reader, *value)
        });
        let behind = text(&behind);
        assert!(
            behind.contains("debezium was sent all but 3") && behind.contains("applied all but 20 GiB"),
            "{behind}"
        );
        let idle = [("slot", "warehouse"), ("active", "0")];
        let idle = put(
            put(SyntheticRecording::new(20), "replication_slot_retained_bytes", &idle, 20.0 * GIB),
            "replication_slot_inactive_seconds",
            &idle,
            10_800.0,
        );
        assert!(text(&idle).contains("nothing has read it for"), "{}", text(&idle));
    }

    #[test]
    fn a_reader_that_keeps_up_and_a_pause_of_seconds_are_not_found() {
        assert_eq!(chance(&slot("1", |s| 2e8 + 1e6 * (s % 5) as f64)), 0.0);
        assert_eq!(chance(&slot("0", |_| 64.0 * 1_048_576.0)), 0.0);
        assert!(matches!(slot("1", |_| 1e6).judge(&DEFINITION), Ok(Outcome::Cleared(_))));
        assert!(SyntheticRecording::new(3).judge(&DEFINITION).is_err());
    }

    #[test]
    fn the_last_state_of_a_slot_counts() {
        // The reader came back at 30 s, and the slot gave up its log.
        let gone = slot("0", |s| if s < 30 { 20.0 * GIB } else { f64::NAN }).tables(|tables| {
            tables.samples.rows.retain(|row| row.value.is_finite());
        });
        let back = gone.tables(|tables| {
            let mut rows = tables.samples.rows.clone();
            rows.retain(|row| row.observed_at >= 20_000_000_000);
            for row in &mut rows {
                row.observed_at += 20_000_000_000;
                row.value = 1e6;
                row.labels = holdup_recording::Labels::new([("slot", "warehouse"), ("active", "1")]);
            }
            tables.samples.rows.extend(rows);
        });
        assert_eq!(chance(&back), 0.0);
    }

    #[test]
    fn a_clouds_figure_of_the_oldest_slot_is_one() {
        let cloud = |kept: f64| {
            let labels = [("db_instance", "shop"), ("stat", "Maximum")];
            SyntheticRecording::new(60).gauge("cloudwatch:x", "aws_oldest_replication_slot_lag_bytes", &labels, kept)
        };
        assert!(chance(&cloud(40.0 * GIB)) >= FAIR.chance());
        assert_eq!(chance(&cloud(5e7)), 0.0);
        assert_eq!(chance(&cloud(-1.0)), 0.0);
    }
}
