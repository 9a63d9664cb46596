//! A replica is behind its source, or does not replicate any more.

mod behind;

use super::parts::present::{self, Shown};
use super::{Cause, Definition, Doc, Judge, Occurs, Outcome, Trait};
use crate::case::Case;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::instant::happened::Happened;
use crate::next_command::{Managed, NextCommand};
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    traits: &[Trait::Harm],
    signs: Some(find),
    ..Definition::new(Cause::ReplicaLag, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A replica is behind",
    what: "A replica applies its source's log later than the source wrote it, or not at all, because its receiver or its applier has stopped. Most often one thread applies what many sessions wrote, a long statement or transaction holds it up, or its disk or CPUs are full.",
    hurts: "Reads from the replica return old rows: what a user has just saved is not there. A failover to it loses or waits for what it has not applied, and its source keeps log for it.",
    needs: "The replica's own account (--watch mysql://… or postgresql://… of the replica, SHOW REPLICA STATUS in pasted text), its source's account of it (pg_stat_replication, rs.status), or a cloud's figures (ReplicaLag).",
    predicts: "The lag is above ten seconds at most readings, or a thread of the replica does not run.",
    clears: "The lag is below ten seconds, or as long as the replica's set delay (SQL_Delay); or a replica of PostgreSQL has replayed all that it received.",
    looks_like: "An idle source: the last transaction is old, and nothing is missing. Writes that wait for replicas (replication_wait) are slow, and replicas then are not far behind.",
    fix: "Fix what holds the applier: start a stopped one after its error is understood, split a large transaction, give each table a primary key, let several workers apply, or move reads that need fresh rows to the source.",
    prove: "The lag falls to zero and stays there through the busiest hour.",
    references: "MySQL Reference Manual: SHOW REPLICA STATUS, Replication Lag, replica_parallel_workers; MariaDB documentation: Parallel Replication; PostgreSQL documentation: Hot Standby, pg_stat_replication, pg_last_xact_replay_timestamp; Amazon RDS user guide: Working with read replicas (ReplicaLag); MongoDB manual: Troubleshoot Replica Sets.",
};

/// A provider's figures of replicas.
const LAG: Managed = Managed {
    amazon: "aws cloudwatch get-metric-data with ReplicaLag of the last day (holdup import --help)",
    azure: "az monitor metrics list with replication_lag of the last day (holdup import --help)",
    google: "gcloud monitoring time-series list of cloudsql.googleapis.com/database/replication of the last day (holdup import --help)",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand {
    managed: Some(LAG),
    ..NextCommand::statement(
        "SHOW REPLICA STATUS\\G",
        "SELECT now(), pg_is_in_recovery(), pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn(), pg_last_xact_replay_timestamp();",
        "how far the replica is behind, and whether its threads run",
    )
};

fn find(facts: &Facts<'_>, signs: &mut Signs) {
    present::signs(shown(&facts.view, &facts.happened), signs);
}

fn shown(view: &View<'_>, happened: &Happened<'_>) -> Shown {
    behind::replicas(view, happened)
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.view(case.whole());
    let shown = shown(&view, &Happened::read(&view));
    if shown.is_empty() {
        return Err(Missing::new("how far replicas are behind", "--watch mysql://… or postgresql://… of the replica"));
    }
    let fixes = vec![
        present::step(
            "See what the applier does: a stopped one names its error, a running one the transaction that holds it up.",
            Some("SHOW REPLICA STATUS\\G"),
            None,
        ),
        present::step(
            "Send reads that need fresh rows to the source until the replica has caught up.",
            None,
            Some("The source takes more load."),
        ),
    ];
    let unknown = Missing::new("what old rows cost requests", "a check of the app that reads what it wrote");
    Ok(present::outcome(shown, fixes, "The lag falls to zero and stays there under the same load.", unknown))
}

#[cfg(test)]
mod tests;
