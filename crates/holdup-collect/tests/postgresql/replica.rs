//! A server and its replica: how far behind, by both accounts, and what is kept for it.

use holdup_recording::Batch;

use crate::{Server, Which};
use crate::{until, watch};

#[test]
fn a_server_and_its_replica() {
    // Those that are fetched have no program that copies a server.
    let Some(server) = Server::of(Which::System, &[("wal_level", "logical")]) else { return };
    server.run(
        "CREATE USER watcher; GRANT pg_monitor TO watcher; CREATE TABLE t (id int); INSERT INTO t SELECT generate_series(1, 1000);
         SELECT pg_create_logical_replication_slot('read_by_nobody', 'test_decoding');",
    );
    let replica = server.replica(&[("hot_standby_feedback", "on"), ("wal_receiver_status_interval", "1s")]);
    let gate = replica.wait_for("reading");
    let reading =
        replica.begin(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t;{gate}COMMIT;"));
    server.run("SELECT txid_current();\nSELECT txid_current();\nINSERT INTO t VALUES (1);");
    // What is there when it is first looked at need not be waited for.
    server.until_some(
        "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'followed' AND active AND xmin IS NOT NULL",
    );
    replica.until_some("SELECT count(pg_last_xact_replay_timestamp())");
    let has = |batch: &Batch, metric: &str, labels: &[(&str, &str)]| {
        batch.samples.iter().any(|row| row.metric == format!("postgresql_{metric}") && row.labels.contains(labels))
    };
    let mut above = watch(&server.address("watcher", ""));
    above.probe().expect("it can be watched");
    let behind = [("application_name", "walreceiver"), ("slot", "followed")];
    let seen = until(above.as_mut(), "replica and slots", |batch| {
        has(batch, "stat_replication_replay_lag_bytes", &behind)
            && has(batch, "replication_slot_retained_bytes", &[("slot", "followed"), ("active", "1")])
            && has(batch, "replication_slot_retained_bytes", &[("slot", "read_by_nobody"), ("active", "0")])
            // A logical slot says what is confirmed, and what it decodes with.
            && has(batch, "replication_slot_unconfirmed_bytes", &[("slot", "read_by_nobody"), ("plugin", "test_decoding")])
            && !has(batch, "replication_slot_unconfirmed_bytes", &[("slot", "followed")])
            && has(batch, "oldest_xmin_age_transactions", &[("holder", "slot"), ("name", "read_by_nobody")])
            // What is read there is told here, and held by its slot.
            && has(batch, "oldest_xmin_age_transactions", &[("holder", "slot"), ("name", "followed")])
    });
    assert!(seen.sessions.iter().all(|row| row.true_state != "executing"), "a sender that waits: {:?}", seen.sessions);
    let mut below = watch(&replica.address("watcher", ""));
    below.probe().expect("it can be watched");
    until(below.as_mut(), "the replica's own account", |batch| {
        has(batch, "replica_replay_lag_bytes", &[])
            && has(batch, "replica_replayed_age_seconds", &[])
            && has(batch, "wal_position_bytes", &[])
            && has(batch, "table_size_bytes", &[("table", "public.t")])
    });
    let mut batch = Batch::default();
    below.settings(&mut batch).expect("settings");
    replica.open("reading");
    reading.end();
}
