//! Statements open and close tables instead of finding them open: the server's cache of open tables
//! is too small.

mod signs;

use super::Source::With;
use super::bound::Bound;
use super::parts::clearing;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Occurs, Outcome, Role, Trait, ms, percent, thousands,
};
use crate::case::Case;
use crate::change::database::Server;
use crate::change::parameters::{Engine, TABLE_OPEN_CACHE};
use crate::change::{Direction, Fix};
use crate::next_command::NextCommand;
use crate::resources::share;
use crate::strength::{FAIR, STRONG};
use holdup_recording::metrics;
use holdup_recording::metrics::Metric;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Busy, Counter, Gauge, Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnMysql,
    traits: &[Trait::LongStatement],
    follows_from: &[
        // More statements at a time keep more tables open; a cache that was as small before did not change.
        Edge::same_time(&[&[With(Trait::Load)]]),
    ],
    bound: Some(bound),
    signs: Some(signs::find),
    ..Definition::new(Cause::TableCacheSmall, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The cache of open tables is too small",
    what: "Each statement needs an open handle of every table it names. The server keeps table_open_cache of them. Beyond that it closes one to open another, and closes returned handles for good.",
    hurts: "Opening reads the table's definition and sets it up under locks that all sessions share, on every statement instead of once. It hides behind slower things, and shows once these are gone.",
    needs: "The server's counters and settings, and its sampled sessions (--watch mysql://…).",
    predicts: "Opened_tables grows with every statement, the cache is full, and sessions are in \"Opening tables\" or \"closing tables\" for a part of each request.",
    clears: "Hardly any table is opened, or the cache has room, or few sessions are in those states.",
    looks_like: "Metadata locks (\"Waiting for table metadata lock\"). Many different tables, more than the cache could sensibly hold. FLUSH TABLES at short intervals: Opened_tables grows and the cache has room.",
    fix: "A table_open_cache of at least the concurrent statements times the tables of each, plus the number of tables.",
    prove: "The same load again: Opened_tables does not grow, and no session is in those states.",
    references: "MySQL Reference Manual: How MySQL Opens and Closes Tables (table_open_cache, Opened_tables, open_files_limit); General Thread States. MariaDB documentation: Optimizing table_open_cache.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "SHOW GLOBAL STATUS LIKE 'Open%tables'; SHOW GLOBAL VARIABLES LIKE 'table_open_cache';",
    1,
    "whether tables are opened again and again",
);

const ENABLE: &str = "--watch mysql://USER@HOST:PORT, as an account with PROCESS";

/// What sessions report while they open or close tables, in MySQL 5.1 to 8 and MariaDB, in lower
/// case.
const STATES: &[&str] = &["opening tables", "opening table", "closing tables", "closing table"];

/// With fewer tables opened per statement, the cache is missed rarely.
const MISSED: f64 = 0.05;

/// From this share (0-1) a cache is full: sessions close tables meanwhile.
const FULL: f64 = 0.9;

/// Least factor to enlarge a cache by: a smaller step would soon be revised.
const STEP: f64 = 2.0;

/// The server's other files and connections.
const OTHER_FILES: f64 = 500.0;

/// Opening a table takes less than this, milliseconds: its file may have to come from a slow disk.
const OPEN_MS: f64 = 20.0;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match from_server(case) {
        Err(missing) => clearing::by_statements(case, "including opening tables").ok_or(missing),
        outcome => outcome,
    }
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let opened = view.counter(metrics::mysql::GLOBAL_STATUS_OPENED_TABLES.name, &[], ENABLE)?;
    let questions = view.counter(metrics::mysql::GLOBAL_STATUS_QUESTIONS.name, &[], ENABLE)?;
    let open = view.gauge(metrics::mysql::GLOBAL_STATUS_OPEN_TABLES.name, &[], ENABLE)?;
    let cache = number(&view, "table_open_cache")?;
    let per_statement = opened.rate() / questions.rate().max(1e-9);
    let missed = opened.evidence(
        format!("{per_statement:.2} a statement"),
        "about none",
        format!("the server opened {:.0} tables/s, {per_statement:.2} per statement", opened.rate()),
    );
    let filled = open.evidence(
        format!("{:.0} of {:.0}", open.mean, cache),
        format!("below {cache:.0}"),
        format!("{:.0} tables were open on average, and table_open_cache is {:.0}", open.mean, cache),
    );
    if per_statement < MISSED {
        return Ok(Outcome::Cleared(vec![missed, filled]));
    }
    if open.max < FULL * cache && overflows(&view).is_none_or(|c| c.delta == 0.0) {
        return Ok(Outcome::Cleared(vec![filled, missed]));
    }
    let busy = view.busy_sessions()?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let mean = busy.mean_in(STATES);
    // Little's law: sessions in those states = rate x time in them.
    let explains_ms = mean / (completed / view.window.seconds()) * 1e3;
    let Some(states) = busy.evidence(STATES).filter(|_| share(case, explains_ms) >= MATTERS) else {
        let seen = opened.evidence(
            format!("{} a request", ms(explains_ms)),
            "a large part of the delay, if the cache were the cause",
            format!(
                "of {:.1} busy sessions, {mean:.1} opened or closed tables: {} per request",
                busy.mean(),
                ms(explains_ms)
            ),
        );
        return Ok(Outcome::Cleared(vec![seen, filled]));
    };
    let share = mean / busy.mean().max(1e-9);
    let wanted = wanted(&view, &busy, &open, cache);
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: [states, missed, filled].into_iter().chain(overflow(&view)).collect(),
        weights: vec![STRONG, FAIR * per_statement.min(1.0), FAIR * share.min(1.0)],
        fixes: vec![fix(&view, wanted)],
        prove: format!(
            "Run the same scenario again: Opened_tables does not grow, and {} of the sessions have left \"Opening tables\" and \"closing tables\".",
            percent(share)
        ),
        role: Role::Root,
    }))
}

/// A request waits at most for the tables that it opens and for those that all others open meanwhile.
fn bound(case: &Case<'_>) -> Option<Bound> {
    let view = case.slow();
    let opened = view.counter(metrics::mysql::GLOBAL_STATUS_OPENED_TABLES.name, &[], ENABLE).ok()?;
    let response_ms = case.degradation.as_ref()?.slow_mean_ms;
    let during = opened.rate() * response_ms / 1e3 + opened.delta / case.completed_in(view.window).ok()?.max(1.0);
    let text = format!("{during:.1} tables were opened during a request, in under {} each", ms(OPEN_MS));
    let evidence = opened.evidence(format!("{during:.1} a request"), "", text);
    Some(Bound { ms: during * OPEN_MS, evidence })
}

fn number(view: &View<'_>, name: &str) -> Result<f64, Missing> {
    let text = view.setting(name, ENABLE)?;
    text.parse().map_err(|_| Missing::new(format!("setting {name} as a number"), ENABLE))
}

/// How many tables were closed because the cache was full, if the server counts it (MySQL 5.6.6,
/// MariaDB 10.1).
fn overflows(view: &View<'_>) -> Option<Counter> {
    view.counter(metrics::mysql::GLOBAL_STATUS_TABLE_OPEN_CACHE_OVERFLOWS.name, &[], ENABLE).ok()
}

fn overflow(view: &View<'_>) -> Option<Evidence> {
    let overflows = overflows(view).filter(|c| c.delta > 0.0)?;
    let text = format!("{:.0} tables/s were closed because the cache was full", overflows.rate());
    Some(overflows.evidence(format!("{:.0} a second", overflows.rate()), "0", text))
}

/// The needed size of the cache, and the reason.
struct CacheSize {
    entries: f64,
    why: String,
}

/// Concurrent statements times the tables that each opens, half as many again, plus one of each
/// table.
fn wanted(view: &View<'_>, busy: &Busy, open: &Gauge, cache: f64) -> CacheSize {
    let counter = |metric: Metric| view.counter(metric.name, &[], ENABLE).ok();
    let lookups: f64 =
        [metrics::mysql::GLOBAL_STATUS_TABLE_OPEN_CACHE_HITS, metrics::mysql::GLOBAL_STATUS_TABLE_OPEN_CACHE_MISSES]
            .into_iter()
            .filter_map(counter)
            .map(|c| c.delta)
            .sum();
    let opened = counter(metrics::mysql::GLOBAL_STATUS_OPENED_TABLES).map_or(0.0, |c| c.delta);
    let statements = counter(metrics::mysql::GLOBAL_STATUS_QUESTIONS).map_or(1.0, |c| c.delta.max(1.0));
    let each = (lookups.max(opened) / statements).ceil().max(1.0);
    let running = view.gauge(metrics::mysql::GLOBAL_STATUS_THREADS_RUNNING.name, &[], ENABLE).map_or(0.0, |g| g.max);
    let at_once = busy.max.max(running);
    let tables =
        view.gauge(metrics::mysql::GLOBAL_STATUS_OPEN_TABLE_DEFINITIONS.name, &[], ENABLE).map_or(0.0, |g| g.max);
    let needed = at_once * each * 1.5 + tables;
    let entries = round_up(needed.max(STEP * cache.max(open.max)));
    let why = format!(
        "{} statements at once x {each:.0} tables each, half as many again, plus one of each of {} tables",
        thousands(at_once),
        thousands(tables)
    );
    CacheSize { entries, why }
}

/// The next of 100, 200, 400, 500, 1,000, 2,000, ….
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(100.0).log10().floor());
    [1.0, 2.0, 4.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|v| *v >= value).unwrap_or(value)
}

fn fix(view: &View<'_>, wanted: CacheSize) -> Fix {
    let CacheSize { entries, why } = wanted;
    let files = number(view, "open_files_limit").unwrap_or(0.0);
    // A table takes a file or two; connections take one each.
    let least = 2.0 * entries + number(view, "max_connections").unwrap_or(0.0) + OTHER_FILES;
    let limit = if files > 0.0 && files < least {
        format!(
            "; open_files_limit is {}, and that many tables may take {} files: raise it first (LimitNOFILE={} of the server's unit), or the server lowers table_open_cache at startup",
            thousands(files),
            thousands(least),
            least.ceil()
        )
    } else {
        String::new()
    };
    let server = Server::find(view, Engine::MySql);
    match server.change(Direction::Raise, &TABLE_OPEN_CACHE, entries) {
        Ok(change) => change.fix(
            &format!("{why}{limit}"),
            server.steps(&[(&TABLE_OPEN_CACHE, &change)]),
            "Each open table takes 10 to 100 KiB of memory and up to two files; check open_files_limit.",
        ),
        Err(stay) => stay.fix("Let statements open fewer tables (fewer partitions, no SELECT over all of them)."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 50 requests of 400 ms a second, each a statement that opens `opened` tables; `open` of 100 are open.
    fn server(opened: f64, open: f64) -> SyntheticRecording {
        let db = "mysql://db";
        SyntheticRecording::new(10)
            .requests(50, 400)
            .counter(db, "mysql_global_status_questions", &[], 50.0)
            .counter(db, "mysql_global_status_opened_tables", &[], 50.0 * opened)
            .gauge(db, "mysql_global_status_open_tables", &[], open)
            .gauge(db, "mysql_global_status_open_table_definitions", &[], 60.0)
            .setting(db, "table_open_cache", "100")
            .setting(db, "open_files_limit", "1000")
    }

    #[test]
    fn sessions_that_open_tables_beside_a_full_cache_are_its_doing() {
        let made = server(5.0, 110.0).sessions(15, "Opening tables");
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!((found.explains_ms - 300.0).abs() < 30.0, "{}", found.explains_ms);
        // 15 sessions x 5 tables, half as many again, and 60: more than 100, and at least twice of what is open.
        let fix = &found.fixes[0];
        assert_eq!(fix.command.as_deref(), Some("SET GLOBAL table_open_cache = 400;"));
        assert!(fix.text.contains("open_files_limit is 1,000") && fix.keep.is_some(), "{fix:?}");
    }

    #[test]
    fn tables_that_stay_open_or_room_in_the_cache_clear_it() {
        assert_eq!(server(0.0, 110.0).sessions(15, "Opening tables").explains(&DEFINITION), Some(0.0));
        assert_eq!(server(5.0, 30.0).sessions(15, "Opening tables").explains(&DEFINITION), Some(0.0));
        assert_eq!(server(5.0, 110.0).sessions(15, "Sending data").explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn without_sessions_it_is_not_judged() {
        let made = server(5.0, 110.0).sessions(15, "closing tables");
        assert!(made.explains(&DEFINITION).is_some_and(|ms| ms > 0.0));
        for metric in ["mysql_sessions", "mysql_global_status_opened_tables", "mysql_global_status_open_tables"] {
            assert_eq!(made.clone().without(metric).explains(&DEFINITION), None, "{metric}");
        }
    }

    #[test]
    fn round_numbers() {
        assert_eq!(
            (round_up(3.0), round_up(550.0), round_up(1_001.0), round_up(4_000.0)),
            (100.0, 1_000.0, 2_000.0, 4_000.0)
        );
    }
}
