//! A transaction that stays open keeps the versions of rows that others change, and statements read
//! past them.

mod signs;

use super::parts::clearing;
use super::{Cause, CauseFinding, Definition, Doc, Judge, Occurs, Outcome, Role, Trait, ms, thousands};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::newcomers::Newcomers;
use crate::resources::volume::demand::demand;
use crate::resources::{is_felt, locks};
use crate::strength::{FAIR, STRONG};
use holdup_recording::{Labels, metrics};
use holdup_signals::database::tables::{POSTGRESQL, TableWrites};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnPostgresql,
    signs: Some(signs::find),
    traits: &[Trait::LongStatement],
    errors: &[(holdup_recording::events::ROWS_KEPT, crate::strength::STRONG)],
    ..Definition::new(Cause::OldSnapshot, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A forgotten transaction keeps old row versions",
    what: "A transaction sees the rows as they were at its snapshot. As long as it is open, no version that it might still read can be removed, neither by vacuum nor by the pruning of a page. Each change of a row leaves one more.",
    hurts: "Every statement that comes to such a row reads its dead versions first, more of them each second. The transaction itself does nothing, and no session waits.",
    needs: "The oldest snapshot and who holds it, dead and live rows by table, and counters by statement (--watch postgresql://…, as a member of pg_monitor, with pg_stat_statements).",
    predicts: "One holder has the oldest snapshot all the time and its age grows with the transactions of others. A table that is changed has more dead rows than live ones, and more than in the baseline window. The statements on that table take longer a call, without waits for disks or locks.",
    clears: "No transaction is open for long; or no table has many dead rows; or the statements on it take no longer.",
    looks_like: "Vacuum that does not keep up (autovacuum_pressure): dead rows grow as well, and the oldest snapshot is young. A plan that changed: the dead rows stay. A bulk change beside the requests leaves as many dead rows, which go with the next vacuum.",
    fix: "End the session that holds the snapshot, and limit how long a transaction may idle.",
    prove: "After the session has ended and vacuum has run, dead rows are few again and the statements take what they took.",
    references: "PostgreSQL documentation: Concurrency Control, Routine Vacuuming, pg_stat_activity.backend_xmin, idle_in_transaction_session_timeout, hot_standby_feedback, replication slots.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "SELECT pid, state, age(backend_xmin), now() - xact_start AS open FROM pg_stat_activity WHERE backend_xmin IS NOT NULL ORDER BY age(backend_xmin) DESC LIMIT 5;",
    1,
    "which session holds the oldest snapshot, and for how long",
);

/// A transaction that is open for less than this has not been forgotten, seconds: a slow statement
/// takes as long.
const LONG_SECONDS: f64 = 5.0;

/// Dead rows for each live one from which a statement reads at least twice as many versions.
const DEAD_PER_LIVE: f64 = 1.0;

/// Versions that came since the baseline window, for each live row: fewer were there before.
const MORE_PER_LIVE: f64 = 0.5;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match from_server(case) {
        Err(missing) => clearing::by_statements(case, "including reading old versions of rows").ok_or(missing),
        outcome => outcome,
    }
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let open = view.gauge(metrics::postgresql::OLDEST_TRANSACTION.name, &[], POSTGRESQL)?;
    let holder = Holder::oldest(&view);
    if open.max < LONG_SECONDS && holder.as_ref().is_none_or(|holder| holder.is_session()) {
        let text = format!("no transaction was open for more than {:.1} s", open.max);
        return Ok(Outcome::Cleared(vec![open.evidence(format!("{:.1} s", open.max), "hours", text)]));
    }
    let Some(holder) = holder else {
        return Err(Missing::new("the session with the oldest snapshot", POSTGRESQL));
    };
    let baseline = case.baseline().ok_or_else(|| Missing::baseline(", for its dead rows to compare with"))?;
    let tables = view.table_writes()?;
    let Some((table, more)) = most_kept(&tables, &baseline.table_writes()?) else {
        let fullest = tables.iter().max_by(|a, b| a.dead.unwrap_or(0.0).total_cmp(&b.dead.unwrap_or(0.0)));
        let told = fullest.map(|table| dead_rows(&view, table, None));
        return Ok(Outcome::Cleared(told.into_iter().collect()));
    };
    let kept = dead_rows(&view, table, Some(more));
    let longer_ms = Newcomers::for_case(case)?.slowed_on(&table.table);
    // Waits for disks and locks have rules of their own; what is unknown of them counts as reading.
    let waits_ms = [demand(case).and_then(|demand| demand.waited_ms(case)).ok(), locks::waited_ms(case).ok()];
    let explains_ms = (longer_ms - waits_ms.into_iter().flatten().sum::<f64>()).max(0.0);
    let slower = view.table_evidence(
        table,
        metrics::postgresql::STAT_TABLES_N_DEAD_TUP,
        ms(explains_ms),
        "near 0 ms",
        format!(
            "the requests' own statements on it take {} of a request longer than in the baseline window, {} of it without waits for disks and locks",
            ms(longer_ms),
            ms(explains_ms)
        ),
    );
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![slower, kept]));
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: vec![holder.evidence(&view, open.max), kept, slower],
        weights: vec![STRONG, STRONG, FAIR],
        fixes: vec![holder.fix()],
        prove: "The same load after the session has ended and vacuum has run: the table has few dead rows, and the statements take what they took before."
            .to_owned(),
        role: Role::Root,
    }))
}

/// Who holds the oldest snapshot.
struct Holder {
    labels: Labels,
    /// Transactions that began since it was taken, at the end of the window.
    age: f64,
}

impl Holder {
    fn oldest(view: &View<'_>) -> Option<Self> {
        let age = metrics::postgresql::OLDEST_XMIN_AGE_TRANSACTIONS.name;
        let holders = view.index.series(age, &[]).filter_map(|((_, labels), series)| {
            let within = series.iter().rfind(|(at, _)| view.window.contains(*at))?;
            Some(Self { labels: labels.clone(), age: within.1 })
        });
        holders.max_by(|a, b| a.age.total_cmp(&b.age))
    }

    fn part(&self, label: &str) -> &str {
        self.labels.get(label).unwrap_or_default()
    }

    fn is_session(&self) -> bool {
        self.part("holder") == "session"
    }

    fn evidence(&self, view: &View<'_>, open_seconds: f64) -> Evidence {
        let metric = metrics::postgresql::OLDEST_XMIN_AGE_TRANSACTIONS.name;
        let age = thousands(self.age);
        let open = match self.is_session() {
            true => format!("; the oldest transaction was open for {open_seconds:.0} s"),
            false => String::new(),
        };
        let text = format!(
            "{} {} holds the oldest snapshot, {age} transactions old at the end{open}",
            self.part("holder"),
            self.part("name")
        );
        let labels = self.labels.clone().with("metric", metric);
        Evidence::new("samples", "value", labels, view.window, format!("{age} transactions"), "few", text)
    }

    fn fix(&self) -> Fix {
        let name = self.part("name");
        let pid = name.parse::<u32>().ok().filter(|_| self.is_session());
        match pid {
            Some(pid) => Fix {
                text: format!("End session {pid}, and let the server end the next one that idles in a transaction."),
                command: Some(format!("SELECT pg_terminate_backend({pid});")),
                keep: Some(
                    "ALTER SYSTEM SET idle_in_transaction_session_timeout = '60s'; SELECT pg_reload_conf();".to_owned(),
                ),
                risk: Some(
                    "Its open transaction is rolled back; look first at what it is: SELECT * FROM pg_stat_activity."
                        .to_owned(),
                ),
            },
            None => Fix {
                text: format!(
                    "Let {} {name} hold no snapshot: turn hot_standby_feedback off there, or end its long queries.",
                    self.part("holder")
                ),
                command: None,
                keep: None,
                risk: Some(
                    "Without the feedback its own queries may be cancelled when rows that they read are removed."
                        .to_owned(),
                ),
            },
        }
    }
}

/// The table with most dead rows for each live one, if they are many and came since the baseline
/// window; and how many came.
fn most_kept<'t>(now: &'t [TableWrites], before: &[TableWrites]) -> Option<(&'t TableWrites, f64)> {
    let kept = |table: &'t TableWrites| {
        let same =
            |of: &&TableWrites| of.source == table.source && of.database == table.database && of.table == table.table;
        let was = before.iter().find(same).and_then(|of| of.dead)?;
        let (dead, live) = (table.dead?, table.live?.max(1.0));
        let is_much = dead >= DEAD_PER_LIVE * live && dead - was >= MORE_PER_LIVE * live;
        is_much.then_some((table, dead - was))
    };
    now.iter().filter_map(kept).max_by(|(_, a), (_, b)| a.total_cmp(b))
}

fn dead_rows(view: &View<'_>, table: &TableWrites, more: Option<f64>) -> Evidence {
    let (dead, live) = (table.dead.unwrap_or(0.0), table.live.unwrap_or(0.0));
    let since = more.map_or_else(String::new, |more| format!(", {} more than in the baseline window", thousands(more)));
    let text = format!("{} has {} dead rows for {} live ones{since}", table.name(), thousands(dead), thousands(live));
    view.table_evidence(
        table,
        metrics::postgresql::STAT_TABLES_N_DEAD_TUP,
        thousands(dead),
        "fewer than live ones",
        text,
    )
}

#[cfg(test)]
mod tests {
    use super::DEFINITION;
    use crate::causes::Outcome;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "postgresql://db";
    const FROM: i64 = 12;

    /// 50 requests a second of one statement on `item`, which takes 50 ms longer from the twelfth
    /// second on. A transaction is open for `open` seconds at the end, and `dead` versions come a
    /// second.
    fn made(open: f64, dead: f64) -> SyntheticRecording {
        let slow = |s: i64| (s - FROM).max(0) as f64;
        let table = [("database", "shop"), ("table", "public.item")];
        let holder = [("database", "shop"), ("holder", "session"), ("name", "4711")];
        SyntheticRecording::new(24)
            .requests(50, 60)
            .each_request(|_, r| {
                if r.intended_at < FROM * 1_000_000_000 {
                    r.done_at = r.intended_at + 5_000_000;
                }
            })
            .digest("SELECT stock FROM item WHERE id = ?", |s| (50 * s, 50 * s + 2_500 * (s - FROM).max(0), 0, 0, 0))
            .counted(DB, "postgresql_oldest_transaction_seconds", &[], move |s| open - 24.0 + s as f64)
            .counted(DB, "postgresql_oldest_xmin_age_transactions", &holder, move |s| 100.0 * slow(s))
            .counted(DB, "postgresql_stat_tables_n_dead_tup", &table, move |s| 500.0 + dead * slow(s))
            .gauge(DB, "postgresql_stat_tables_n_live_tup", &table, 1_000.0)
            .counter(DB, "postgresql_stat_tables_n_tup_upd", &table, dead)
    }

    #[test]
    fn versions_that_a_transaction_keeps_are_read_by_every_statement() {
        let found = match made(12.0, 1_000.0).judge(&DEFINITION) {
            Ok(Outcome::Found(found)) => found,
            Err(missing) => panic!("{missing:?}"),
            _ => panic!("cleared"),
        };
        assert!((found.explains_ms - 50.0).abs() < 5.0, "{}", found.explains_ms);
        assert!(found.evidence[0].text.contains("session 4711 holds the oldest snapshot"), "{:?}", found.evidence);
        assert_eq!(found.fixes[0].command.as_deref(), Some("SELECT pg_terminate_backend(4711);"));
        assert_eq!(made(12.0, 1_000.0).diagnose().culprit, Some(DEFINITION.cause));
    }

    #[test]
    fn young_transactions_few_dead_rows_and_quick_statements_clear_it() {
        assert_eq!(made(2.0, 1_000.0).explains(&DEFINITION), Some(0.0), "no old transaction");
        assert_eq!(made(12.0, 10.0).explains(&DEFINITION), Some(0.0), "few dead rows");
        let quick = made(12.0, 1_000.0)
            .tables(|t| t.statements.rows.clear())
            .digest("SELECT stock FROM item WHERE id = ?", |s| (50 * s, 50 * s, 0, 0, 0));
        assert_eq!(quick.explains(&DEFINITION), Some(0.0), "statements take no longer");
        let elsewhere = made(12.0, 1_000.0)
            .tables(|t| t.statements.rows.clear())
            .digest("SELECT name FROM note WHERE id = ?", |s| (50 * s, 50 * s + 2_500 * (s - FROM).max(0), 0, 0, 0));
        assert_eq!(elsewhere.explains(&DEFINITION), Some(0.0), "another table's statements take longer");
    }

    #[test]
    fn missing_metrics_leave_it_not_judged() {
        for metric in ["postgresql_oldest_transaction_seconds", "postgresql_stat_tables_n_tup_upd"] {
            assert_eq!(made(12.0, 1_000.0).without(metric).explains(&DEFINITION), None, "{metric}");
        }
    }

    #[test]
    fn a_replica_that_holds_a_snapshot_is_not_terminated() {
        let made = made(0.0, 1_000.0).without("postgresql_oldest_xmin_age_transactions").gauge(
            DB,
            "postgresql_oldest_xmin_age_transactions",
            &[("holder", "replica"), ("name", "standby1")],
            5_000.0,
        );
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!(found.fixes[0].command.is_none() && found.fixes[0].text.contains("standby1"), "{:?}", found.fixes);
    }
}
