//! Each change of a row updates many indexes, some of which no statement reads.

mod added;
mod trace;
mod writes;

use crate::change::Fix;
use holdup_recording::{Labels, metrics};

use self::writes::writes;
use super::parts::clearing::or_by_disk;
use super::parts::identifier;
use super::{
    Cause, CauseFinding, Contribution, Definition, Doc, Judge, Outcome, Role, Source::Of, Source::With, Trait, bytes,
    ms, percent, thousands,
};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::is_felt;
use crate::strength::{FAIR, WEAK};
use holdup_signals::database::tables::{POSTGRESQL, TableWrites};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::LongStatement],
    adds_to: &[Contribution {
        to: &[&[With(Trait::DiskLimit)], &[Of(Cause::DiskSaturated)], &[Of(Cause::CommitLogBound)]],
        least: 0.0,
    }],
    traces: &[trace::PATTERN],
    ..Definition::new(Cause::TooManyIndexes, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Every change maintains many indexes",
    what: "An inserted row gets an entry in every index of its table; a changed row gets a new one in each, unless no indexed column changed and its page has room (HOT). Indexes that no statement reads cost as much as others.",
    hurts: "Every change reads, changes and logs index pages at random places: on a table with ten indexes they are most of the I/O of writes. Vacuum goes through each of them, too.",
    needs: "PostgreSQL's tables and indexes with blocks read (--watch postgresql://…), and statements by digest for the time of those that write.",
    predicts: "The most written table has many indexes, several of which were never read and are not needed for uniqueness; few of its updates are HOT; most blocks read for it belong to indexes; and the statements that write it are a large part of the delay.",
    clears: "Few indexes, or all are read; or most updates are HOT and rows are seldom inserted; or writes take a small share of the delay.",
    looks_like: "A working set that does not fit in memory (reads wait as well). This is a state, not an event: it existed before, and shows when the indexes no longer fit in memory.",
    fix: "Drop indexes that no statement reads, after checking the replicas and a whole business cycle; leave room in pages (fillfactor) so that updates can be HOT.",
    prove: "The same load again: fewer index blocks read per change, and the writing statements take a fraction of the time.",
    references: "PostgreSQL documentation: Heap-Only Tuples (HOT), pg_stat_all_indexes (idx_scan), pg_statio_all_tables; Index maintenance in Routine Vacuuming.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::statement(
    "SELECT * FROM sys.schema_unused_indexes;",
    "SELECT relname, indexrelname, idx_scan FROM pg_stat_user_indexes ORDER BY idx_scan LIMIT 20;",
    "which indexes are written and never read",
);

/// Number of indexes that counts as many.
const MANY: f64 = 5.0;

/// Number of unread indexes from which they are to blame.
const UNREAD: usize = 2;

/// Least rows written per second that matter.
const WRITTEN: f64 = 1.0;

/// Share (0-1) of HOT updates from which indexes are spared.
const HOT: f64 = 0.8;

/// An index, and whether it was read.
struct Index {
    name: String,
    scans: f64,
    bytes: f64,
    unique: bool,
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    added::judge(case).map_or_else(|| or_by_disk(case, from_server(case)), Ok)
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let tables = view.table_writes()?;
    if view.sources_of(metrics::postgresql::STAT_INDEXES_IDX_SCAN.name).is_empty() {
        return Err(Missing::new("which indexes are read (postgresql_stat_indexes_idx_scan)", POSTGRESQL));
    }
    let mut written: Vec<&TableWrites> = tables.iter().filter(|t| t.toast_of.is_none()).collect();
    written.sort_by(|a, b| b.written().total_cmp(&a.written()));
    let Some(table) = written.first().filter(|t| t.written() / t.seconds.max(1e-9) >= WRITTEN) else {
        let none = tables.first().map(|t| {
            view.table_evidence(t, metrics::postgresql::STAT_TABLES_N_TUP_UPD, "none", "", "hardly a row was written")
        });
        return Ok(Outcome::Cleared(none.into_iter().collect()));
    };
    let indexes = indexes(case, table);
    // Never read at all, or at least not in this recording.
    let unread: Vec<&Index> = indexes.iter().filter(|i| !i.unique && i.scans <= 0.0).collect();
    let spared = table.updated * hot_ratio(table) / table.written().max(1.0);
    let seen = described(&view, table, indexes.len(), &unread);
    if (indexes.len() as f64) < MANY || unread.len() < UNREAD || spared >= HOT {
        return Ok(Outcome::Cleared(vec![seen]));
    }
    // The index blocks among those read for it, and the blocks of unread indexes among these.
    let blocks = |kind: &str| blocks_read(&view, table, kind);
    let (heap, index) = (blocks("heap"), blocks("idx"));
    let of_indexes = index / (heap + index).max(1.0);
    let needless = unread.len() as f64 / indexes.len() as f64;
    let (writes_ms, statement) = writes(case, table)?;
    let explains_ms = writes_ms * of_indexes * needless;
    let read = Evidence::new(
        "samples",
        "value",
        Labels::new([("metric", metrics::postgresql::STATIO_TABLES_IDX_BLKS_READ.name)]),
        view.window,
        ms(explains_ms),
        "a small part of the delay",
        format!(
            "{} of the blocks read for it were index blocks; statements that write it take {} of a request longer than in the baseline window, {} of it for unread indexes",
            percent(of_indexes),
            ms(writes_ms),
            ms(explains_ms)
        ),
    );
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![seen, read]));
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: [Some(seen), Some(read), statement].into_iter().flatten().collect(),
        weights: vec![FAIR, WEAK],
        fixes: drop_unread(table, &unread),
        prove: "The same load again: fewer index blocks per change.".to_owned(),
        role: Role::Root,
    }))
}

/// Share (0-1) of a table's updates that change no index.
fn hot_ratio(table: &TableWrites) -> f64 {
    table.hot / table.updated.max(1.0)
}

/// The most written table, with its number of `indexes` and those that are `unread`.
fn described(view: &View<'_>, table: &TableWrites, indexes: usize, unread: &[&Index]) -> Evidence {
    let names: Vec<&str> = unread.iter().map(|i| i.name.as_str()).collect();
    let text = format!(
        "{}, the most written table ({} rows/s), has {indexes} indexes, of which {} were not read{}; {} of its updates are HOT",
        table.table,
        thousands(table.written() / table.seconds.max(1e-9)),
        unread.len(),
        if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) },
        percent(hot_ratio(table))
    );
    view.table_evidence(
        table,
        metrics::postgresql::STAT_TABLES_N_TUP_UPD,
        format!("{indexes} indexes, {} not read", unread.len()),
        format!("fewer than {MANY:.0}, or all of them read"),
        text,
    )
}

fn drop_unread(table: &TableWrites, unread: &[&Index]) -> Vec<Fix> {
    let all: f64 = unread.iter().map(|i| i.bytes).sum();
    let risk = "A monthly statement that needs it then reads the whole table. Keep its definition (pg_get_indexdef).";
    let fix = |i: &&Index| Fix {
        text: format!(
            "Drop {}, which was never read ({} of the {} of such indexes): check the server's replicas and month-end jobs first.",
            i.name,
            bytes(i.bytes),
            bytes(all)
        ),
        command: Some(format!("DROP INDEX CONCURRENTLY {};", in_schema_of(table, &i.name))),
        keep: None,
        risk: Some(risk.to_owned()),
    };
    unread.iter().take(3).map(fix).collect()
}

/// Indexes of `table`, with how often each was read in the whole recording, and before it.
fn indexes(case: &Case<'_>, table: &TableWrites) -> Vec<Index> {
    let view = case.view(case.whole());
    let same = [("database", table.database.as_str()), ("table", table.table.as_str())];
    let size = |index: &str| {
        let labels = [same[0], same[1], ("index", index)];
        view.gauge(metrics::postgresql::INDEX_SIZE_BYTES.name, &labels, "").map_or(0.0, |g| g.max)
    };
    let of = view.index.series(metrics::postgresql::STAT_INDEXES_IDX_SCAN.name, &same);
    let own = of.filter(|((source, _), _)| *source == table.source);
    own.map(|((_, labels), series)| {
        let name = labels.get("index").unwrap_or_default().to_owned();
        let scans = series.last().map_or(0.0, |(_, n)| *n);
        Index { bytes: size(&name), scans, unique: labels.get("unique") == Some("1"), name }
    })
    .collect()
}

/// An index belongs to the schema of its table.
fn in_schema_of(table: &TableWrites, index: &str) -> String {
    let schema = table.table.split_once('.').map(|(schema, _)| schema);
    identifier::table(&schema.map_or_else(|| index.to_owned(), |schema| format!("{schema}.{index}")))
}

fn blocks_read(view: &View<'_>, table: &TableWrites, kind: &str) -> f64 {
    let labels = [("database", table.database.as_str()), ("table", table.table.as_str())];
    let metric = format!("postgresql_statio_tables_{kind}_blks_read");
    view.counter_where(|s| s == table.source, &metric, &labels, "").map_or(0.0, |c| c.delta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "postgresql://db";
    const TABLE: [(&str, &str); 2] = [("database", "app"), ("table", "public.item")];

    /// 100 requests a second of 400 ms, each an update of an item with eight indexes of which `read` are read; of the updates `hot`
    /// a second are HOT; of the blocks read nine in ten are of indexes.
    fn made(read: usize, hot: f64) -> SyntheticRecording {
        let mut made = SyntheticRecording::new(30)
            .requests(100, 400)
            .counter(DB, "postgresql_stat_tables_n_tup_upd", &TABLE, 100.0)
            .counter(DB, "postgresql_stat_tables_n_tup_hot_upd", &TABLE, hot)
            .counter(DB, "postgresql_statio_tables_heap_blks_read", &TABLE, 100.0)
            .counter(DB, "postgresql_statio_tables_idx_blks_read", &TABLE, 900.0)
            .digest("UPDATE item SET price = ?, seen = ? WHERE id = ?", |s| (100 * s, 40_000 * s, 0, 0, 0));
        for i in 0..8 {
            let name = format!("item_{i}");
            let mut labels = vec![TABLE[0], TABLE[1], ("index", name.as_str())];
            if i == 0 {
                labels.push(("unique", "1"));
            }
            made = made.gauge(DB, "postgresql_stat_indexes_idx_scan", &labels, if i < read { 5.0 } else { 0.0 });
        }
        made
    }

    #[test]
    fn unread_indexes_get_their_share_of_the_writes() {
        // Six of eight are not read, nine of ten blocks are of indexes.
        assert!((made(2, 0.0).explains(&DEFINITION).unwrap() - 400.0 * 0.9 * 6.0 / 8.0).abs() < 10.0);
        let Ok(Outcome::Found(found)) = made(2, 0.0).judge(&DEFINITION) else { panic!("not found") };
        assert!(found.evidence[0].text.contains("8 indexes, of which 6 were not read: item_2"), "{:?}", found.evidence);
        assert_eq!(found.fixes[0].command.as_deref(), Some("DROP INDEX CONCURRENTLY public.item_2;"));
    }

    #[test]
    fn indexes_that_are_read_and_updates_that_spare_them_clear_it() {
        assert_eq!(made(8, 0.0).explains(&DEFINITION), Some(0.0), "all are read");
        assert_eq!(made(7, 0.0).explains(&DEFINITION), Some(0.0), "one is not");
        assert_eq!(made(2, 95.0).explains(&DEFINITION), Some(0.0), "HOT");
        let few = made(2, 0.0).tables(|tables| {
            tables
                .samples
                .rows
                .retain(|s| !matches!(s.labels.get("index"), Some("item_5" | "item_6" | "item_7" | "item_4")));
        });
        assert_eq!(few.explains(&DEFINITION), Some(0.0), "four indexes");
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        for metric in ["postgresql_stat_tables_n_tup_upd", "postgresql_stat_indexes_idx_scan"] {
            assert_eq!(made(2, 0.0).without(metric).explains(&DEFINITION), None, "{metric}");
        }
        assert_eq!(made(2, 0.0).tables(|t| t.statements.rows.clear()).explains(&DEFINITION), None);
    }
}
