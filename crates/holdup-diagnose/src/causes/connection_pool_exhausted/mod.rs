//! The app's pool of database connections has run dry.

mod advice;
mod between;
mod by_metrics;
mod by_spans;
mod signs;
#[cfg(test)]
mod tests;
mod unreported;

use super::{Cause, Definition, Doc, Edge, Judge, Outcome, Source::AnyBehindApp, Source::With, Trait};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::connections;
use crate::resources::connections::NAMES;
use holdup_signals::Missing;

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Pool, Trait::Queue],
    follows_from: &[Edge::in_front(&[&[AnyBehindApp], &[With(Trait::Load)]], connections::to_explain_ms)],
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::POOL_TIMEOUT, crate::strength::CERTAIN)],
    ..Definition::new(Cause::ConnectionPoolExhausted, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The connection pool is exhausted",
    what: "Every connection of the app's database pool, or of a pool between app and database (PgBouncer, ProxySQL), is in use, and requests queue for one. With N connections that are each held for H seconds the app can't run more than N / H units of work per second.",
    hurts: "Requests wait inside the app; the database is idle and its own metrics look perfect.",
    needs: "The app's pool metrics: connections used and allowed, requests pending, time waited and held. OpenTelemetry's db.client.connection.* over Prometheus, or HikariCP's (hikaricp_connections_*). Or its spans of waits for a connection, or its connections as the kernel sees them (--watch server:PORT), or the database's sessions by client beside holdup's own requests: these show a queue and clear nothing. For a pool in between: PgBouncer's console (--watch pgbouncer:) or ProxySQL's admin interface (--watch proxysql:).",
    predicts: "Connections in use stand at their maximum, requests are pending, and the wait for a connection is most of the excess. Without metrics: connections stand at one number, all are busy, and more requests are with the app than threads have connections.",
    clears: "No request is pending and connections are free (a wait is then for a new connection), or the wait for a connection is a small share of the delay.",
    looks_like: "A slow database or saturated CPUs: connections are held longer, so the pool runs dry as a consequence. Most of the time a connection is held is then spent in the slow part, and the pool is a symptom. It is a symptom even if the slow part is not visible, provided that the hold time of the baseline window would have sufficed. It is the root if the app itself keeps connections: those in use await no answer, and the longer hold is not in database calls, or is idle in a transaction. Workers that each have a connection of their own: as many threads take requests as there are connections.",
    fix: "Hold connections for less time (no calls of downstream services meanwhile), then more connections, up to what the database's budget allows.",
    prove: "The same load again: nothing pending, wait for a connection near zero, throughput beyond the old N / H.",
    references: "OpenTelemetry semantic conventions, database client metrics; PgBouncer documentation, SHOW POOLS and SHOW STATS; ProxySQL documentation, stats_mysql_connection_pool and stats_mysql_processlist; B. Schwartz, Queueing Theory; HikariCP wiki, About Pool Sizing.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "ss -tnp | grep -c ':3306' on the app's machine, beside its pool's maximum",
    1,
    "whether the app has all the connections that its pool allows",
);

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let [stable, hikari] = NAMES.each_ref().map(|names| by_metrics::judge(case, names));
    let metrics = stable.or_else(|missing| hikari.map_err(|_| missing));
    let of_app = metrics.or_else(|missing| by_spans::judge(case).or_else(|| unreported::judge(case)).ok_or(missing));
    join(of_app, between::judge(case))
}

/// A request waits in the app's pool first, then in the pool between app and database. A free pool
/// between them clears nothing alone: the app's may still be empty.
fn join(of_app: Result<Outcome, Missing>, between: Result<Outcome, Missing>) -> Result<Outcome, Missing> {
    match (of_app, between) {
        (Ok(Outcome::Found(app)), Ok(Outcome::Found(mut both))) => {
            // Connections of the app are held for the wait behind them: the pool behind comes first.
            both.explains_ms += app.explains_ms;
            both.evidence.extend(app.evidence);
            both.weights.extend(app.weights);
            both.fixes.extend(app.fixes);
            Ok(Outcome::Found(both))
        }
        (_, Ok(Outcome::Found(between))) => Ok(Outcome::Found(between)),
        (Ok(Outcome::Cleared(mut app)), Ok(Outcome::Cleared(between))) => {
            app.extend(between);
            Ok(Outcome::Cleared(app))
        }
        (of_app, _) => of_app,
    }
}
