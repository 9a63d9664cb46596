//! A server began anew: it crashed, failed over, or was restarted.

mod began;

use super::parts::present::{self, Shown};
use super::{Cause, CauseFinding, Definition, Doc, Edge, Judge, Occurs, Outcome, Role, Source::Of, Trait, of_failures};
use crate::case::Case;
use crate::failures::{self, Failed};
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::instant::happened::Happened;
use crate::next_command::{Managed, NextCommand};
use crate::strength::FAIR;
use holdup_signals::{Missing, Window};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    traits: &[Trait::Harm, Trait::NamedByKubernetes],
    follows_from: &[Edge::same_time(&[&[Of(Cause::OutOfMemoryKill)]])],
    signs: Some(find),
    ..Definition::new(Cause::ServerRestart, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A server restarted",
    what: "The database or the app's server began anew: it crashed and recovered from its log, a standby took over, or it was restarted for a deployment or maintenance.",
    hurts: "Connections end and requests in flight are lost. Until it has recovered it refuses connections; then its caches are cold, and every client connects at once.",
    needs: "The server's uptime or its log (--watch mysql://… or postgresql://…; error logs in pasted text), a cloud's events (aws rds describe-events), or Kubernetes' account of restarts.",
    predicts: "The uptime falls; the log says that the server recovers or is ready for connections; connections are refused meanwhile, and all are new afterwards.",
    clears: "The uptime grew by the time that passed.",
    looks_like: "A kill for lack of memory or by a liveness probe restarts a server, too: then that is the cause, and the restart follows from it. A network partition ends connections while the uptime goes on.",
    fix: "Find why it ended: the last lines of its log before the restart, the kernel's log, the cloud's events. Let clients reconnect with a delay that grows and differs between them.",
    prove: "The uptime goes on through the same load.",
    references: "MySQL Reference Manual: Server Status Variables (Uptime), InnoDB Recovery; PostgreSQL documentation: Server Shutdown and Crash Restart, pg_postmaster_start_time; Amazon RDS user guide: RDS event categories and event messages; Kubernetes documentation: Pod Lifecycle (restart policy).",
};

/// A provider's account of restarts.
const EVENTS: Managed = Managed {
    amazon: "aws rds describe-events --duration 1440 (holdup import --help)",
    azure: "az monitor activity-log list --offset 1d",
    google: "gcloud sql operations list --instance INSTANCE --limit 20",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand {
    managed: Some(EVENTS),
    ..NextCommand::statement(
        "SHOW GLOBAL STATUS LIKE 'Uptime';",
        "SELECT now(), pg_postmaster_start_time();",
        "when the server began",
    )
};

fn find(facts: &Facts<'_>, signs: &mut Signs) {
    present::signs(began::shown(&facts.view, &facts.happened).0, signs);
    facts.pods.restarts(facts.happened.window, signs);
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let needed = &["observed_at", "source", "metric", "labels", "value"];
    let samples = case.recording.tables.samples.with_columns(needed);
    samples.map_err(|what| Missing::new(what, "record again; this recording lacks it"))?;
    // It ends before its consequences.
    let view = case.view(case.whole());
    let (shown, first) = began::shown(&view, &Happened::read(&view));
    if shown.is_empty() {
        return Err(Missing::new("the uptime of a server", "--watch mysql://… or postgresql://… or mongodb://…"));
    }
    let Some(first) = first.filter(|_| shown.iter().any(|(strength, _)| *strength >= FAIR)) else {
        return Ok(Outcome::Cleared(shown.into_iter().map(|(_, evidence)| evidence).collect()));
    };
    found(case, shown, first)
}

fn found(case: &Case<'_>, shown: Shown, first: i64) -> Result<Outcome, Missing> {
    let after = [Window { from: first, to: i64::MAX }];
    let failed = Failed::of(failures::unanswered_share(case, &after))?;
    let (mut weights, mut evidence): (Vec<_>, Vec<_>) = shown.into_iter().unzip();
    if failed.is_small() {
        return Ok(Outcome::Cleared(evidence));
    }
    if failed.uncounted.is_none() {
        evidence.push(of_failures(case, failed.share, "got no answer after it"));
        weights.push(FAIR * failed.share);
    }
    let fixes = vec![present::step(
        "Find why it ended: the last lines of its own log before the restart, and the kernel's.",
        Some("journalctl -k --since -1h | grep -iE 'killed process|segfault|panic'"),
        None,
    )];
    let found = CauseFinding {
        explains_ms: case.excess_ms() * failed.share,
        evidence,
        weights,
        fixes,
        prove: "Run the same load again: the uptime goes on.".to_owned(),
        role: Role::Root,
    };
    Ok(Outcome::failing(found, failed))
}

#[cfg(test)]
mod tests;
