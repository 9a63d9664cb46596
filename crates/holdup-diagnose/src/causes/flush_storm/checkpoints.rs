//! The same for PostgreSQL: a checkpoint has to write its pages in a hurry, because the log has
//! reached max_wal_size early, and sessions pile up. Until version 16 the background writer's view
//! counts checkpoints, from 17 on a separate one.

use super::meanwhile::Meanwhile;
use super::{CauseFinding, Outcome, bytes, thousands};
use crate::case::{Band, Case};
use crate::causes::Role;
use crate::change::database::Server;
use crate::change::parameters::{COMPLETION_TARGET, Engine, MAX_WAL_SIZE};
use crate::change::{Direction, Fix};
use crate::resources::sessions::{ALWAYS, PileUp};
use crate::resources::{checkpoints, is_felt};
use crate::strength::{FAIR, STRONG, Strength, WEAK};
use holdup_recording::metrics;
use holdup_signals::database::vacuum::PAGE_BYTES;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View, Window};

/// What to record for a server.
const POSTGRESQL: &str = "--watch postgresql://USER@HOST:PORT";

/// Pages that checkpoints wrote, checkpoints due to the log's size, and those due to time; new
/// names first.
const NAMES: [[&str; 3]; 2] = [
    [
        metrics::postgresql::STAT_CHECKPOINTER_BUFFERS_WRITTEN.name,
        metrics::postgresql::STAT_CHECKPOINTER_NUM_REQUESTED.name,
        metrics::postgresql::STAT_CHECKPOINTER_NUM_TIMED.name,
    ],
    [
        metrics::postgresql::STAT_BGWRITER_BUFFERS_CHECKPOINT.name,
        metrics::postgresql::STAT_BGWRITER_CHECKPOINTS_REQ.name,
        metrics::postgresql::STAT_BGWRITER_CHECKPOINTS_TIMED.name,
    ],
];

/// A checkpoint is writing at this many pages per second; the background writer alone writes fewer.
const WRITES: f64 = 50.0;

/// From this factor on, checkpoints are requested far more often than before.
const MORE_OFTEN: f64 = 3.0;

/// A checkpointer that works for a smaller share (0-1) of the time does so now and then.
const NOW_AND_THEN: f64 = 0.25;

/// Whether a PostgreSQL is watched, and the names of its counters.
pub(super) fn names(view: &View<'_>) -> Option<[&'static str; 3]> {
    NAMES.into_iter().find(|names| !view.sources_of(names[0]).is_empty())
}

/// Judges it from checkpoints.
///
/// # Errors
/// If a counter or sessions were not recorded.
pub(super) fn judge(case: &Case<'_>, [written, requested, timed]: [&'static str; 3]) -> Result<Outcome, Missing> {
    let view = case.slow();
    let pages = view.counter(written, &[], POSTGRESQL)?;
    let (requested, timed) = (view.counter(requested, &[], POSTGRESQL)?, view.counter(timed, &[], POSTGRESQL)?);
    // A reading at the end of an interval belongs to it, one at its start to the interval before.
    let shifted = |w: Window| Window { from: w.from + 1, to: w.to + 1 };
    let growths = view.growths(|_| true, written, &[]);
    let written_in = growths.iter().filter(|g| g.rate() >= WRITES).map(|g| shifted(g.window));
    // The counters grow when a checkpoint ends, which may be after the episode.
    let storms: Vec<Window> = written_in.chain(checkpoints::hurried(&view)).collect();
    let counted = pages.evidence(
        format!("{} pages", thousands(pages.delta)),
        "few at a time",
        format!(
            "checkpoints wrote {} pages; {} started because of the log's size and {} because of time",
            thousands(pages.delta),
            thousands(requested.delta),
            thousands(timed.delta)
        ),
    );
    if storms.is_empty() {
        return none_wrote(case, written, counted);
    }
    let is_new = began(case, written, &requested);
    let piled = PileUp::measure(case, &view, &storms)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let explains_ms = piled.request_ms(&view, completed);
    let sessions = piled.evidence(&view, explains_ms);
    // A checkpoint that never ends is spread over its time, as it should be: there is nothing to
    // compare.
    if !is_felt(case, explains_ms)? || piled.ratio >= ALWAYS && !is_new {
        return Ok(Outcome::Cleared(vec![counted].into_iter().chain(sessions).collect()));
    }
    let asked = checkpoints::asked_by_hand(&view);
    let working = checkpoints::at_work(&view);
    let meanwhile = Meanwhile::measure(&view, &storms, case.baseline().as_ref());
    // One that is due by time and spread hurts only if changes have to wait for it.
    let is_forced = asked.is_some() || requested.delta > 0.0 || working.is_some();
    let refutes = |of: &&Meanwhile| of.is_burst() && asked.is_none() || of.is_steady() && !is_forced;
    if let Some(refuted) = meanwhile.as_ref().filter(refutes) {
        let told = [refuted.evidence.clone(), counted];
        return Ok(Outcome::Cleared(told.into_iter().chain(sessions).collect()));
    }
    let mut pieces: Vec<(Evidence, Strength)> = Vec::new();
    pieces.push((counted, if requested.delta > 0.0 { FAIR } else { WEAK }));
    pieces.extend(sessions.map(|told| (told, FAIR)));
    pieces.extend(meanwhile.map(|of| {
        let shows = of.is_slower() || of.logs_whole_pages();
        (of.evidence, if shows { FAIR } else { WEAK })
    }));
    pieces.extend(working.map(|(ratio, told)| (told, STRONG * if is_new { ratio } else { 0.0 })));
    let mut fixes = fixes(&view, &requested);
    if let Some(asked) = asked {
        let text = "Find what runs CHECKPOINT, and stop it: the server starts checkpoints by itself and spreads them.";
        fixes.insert(0, Fix { text: text.to_owned(), command: None, keep: None, risk: None });
        pieces.push((asked, STRONG));
    }
    let (evidence, weights) = pieces.into_iter().unzip();
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes,
        prove: "Run the same scenario again: checkpoints start because of time, and sessions do not pile up while one writes."
            .to_owned(),
        role: Role::Root,
    }))
}

/// No checkpoint wrote in the episode; one that ended later may have been under way, as sessions would show.
fn none_wrote(case: &Case<'_>, written: &str, counted: Evidence) -> Result<Outcome, Missing> {
    let ended = case.view(case.whole()).growths(|_| true, written, &[]).iter().any(|g| g.rate() >= WRITES);
    match case.slow().gauge(metrics::postgresql::ACTIVITY_SESSIONS.name, &[], POSTGRESQL) {
        Err(missing) if ended => Err(missing),
        _ => Ok(Outcome::Cleared(vec![counted])),
    }
}

/// Whether checkpoints are new: there was hardly one in the baseline window, or they start far more often
/// because of the log's size or of a request.
fn began(case: &Case<'_>, written: &str, requested: &Counter) -> bool {
    let Some(baseline) = case.baseline() else { return false };
    let at_work = checkpoints::at_work(&baseline).map_or(0.0, |(ratio, _)| ratio);
    let is_quiet =
        baseline.counter(written, &[], POSTGRESQL).is_ok_and(|c| c.rate() < WRITES) && at_work < NOW_AND_THEN;
    let before = NAMES.iter().find_map(|names| baseline.counter(names[1], &[], POSTGRESQL).ok());
    let band = |of: &Counter| Band::of_count(of.rate(), of.delta).read(of.reads);
    is_quiet
        || before.is_some_and(|before| requested.delta >= 1.0 && band(requested).since(band(&before)).rose(MORE_OFTEN))
}

fn fixes(view: &View<'_>, requested: &Counter) -> Vec<Fix> {
    let server = Server::find(view, Engine::PostgreSql);
    let mut fixes = Vec::new();
    if let Some(size) = server.number(&MAX_WAL_SIZE).filter(|_| requested.delta > 0.0) {
        fixes.push(match server.change(Direction::Raise, &MAX_WAL_SIZE, 4.0 * size) {
            Ok(change) => change.fix(
                "checkpoints then start because of time and are spread out",
                server.steps(&[(&MAX_WAL_SIZE, &change)]),
                "Takes that much disk. Recovery after a crash reads more log and takes longer.",
            ),
            Err(stay) => stay.fix("The log cannot grow further between two checkpoints."),
        });
    }
    if server.number(&COMPLETION_TARGET).is_some_and(|target| target < 0.85)
        && let Ok(change) = server.change(Direction::Raise, &COMPLETION_TARGET, 0.9)
    {
        fixes.push(change.fix(
            "a checkpoint's writes are then spread over its interval",
            server.steps(&[(&COMPLETION_TARGET, &change)]),
            "",
        ));
    }
    fixes.push(Fix {
        text: format!(
            "Make checkpoints rarer (checkpoint_timeout), so that frequently changed pages are written once; after each checkpoint, a full image of each changed page of {} goes to the log.",
            bytes(PAGE_BYTES)
        ),
        command: None,
        keep: None,
        risk: Some("Recovery after a crash takes longer.".to_owned()),
    });
    fixes
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Session;

    use super::super::DEFINITION;
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "postgresql://db";

    /// 50 requests of 400 ms a second. In every second half of eight seconds checkpoints write 1,000 pages a second, `piled` sessions
    /// execute and the log grows by `log` a second; else 2 sessions and 10 MB.
    fn server(piled: i64, log: f64) -> SyntheticRecording {
        let storm = |s: i64| s % 8 >= 4;
        let rows = (0..=24).flat_map(|s| {
            (0..if storm(s) { piled } else { 2 }).map(move |i| Session {
                observed_at: s * 1_000_000_000,
                source: DB.into(),
                session_id: i,
                true_state: "executing".into(),
                command: "active".into(),
                state: Some("IO:DataFileRead".into()),
                ..Session::default()
            })
        });
        let sum = |of: &dyn Fn(i64) -> f64, s: i64| (1..=s).map(of).sum::<f64>();
        SyntheticRecording::new(24)
            .requests(50, 400)
            .session_rows(rows.collect())
            .without("mysql_sessions")
            .gauge(DB, "postgresql_sessions", &[("true_state", "executing")], 2.0)
            .counted(DB, NAMES[1][0], &[], move |s| sum(&|t| if storm(t) { 1_000.0 } else { 0.0 }, s))
            .counter(DB, NAMES[1][1], &[], 0.125)
            .counter(DB, NAMES[1][2], &[], 0.0)
            .counted(DB, "postgresql_wal_position_bytes", &[], move |s| sum(&|t| if storm(t) { log } else { 10e6 }, s))
            .setting(DB, "max_wal_size", "1GB")
    }

    #[test]
    fn checkpoints_that_stop_the_changes_are_found() {
        let made = server(32, 1e6);
        assert!((made.explains(&DEFINITION).unwrap() - 300.0).abs() < 50.0, "{:?}", made.explains(&DEFINITION));
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!(found.fixes[0].command.as_deref().unwrap().contains("max_wal_size = '4096MB'"), "{:?}", found.fixes);
    }

    #[test]
    fn a_checkpoint_that_has_not_ended_yet_shows_in_the_checkpointer() {
        let labels = [("backend_type", "checkpointer"), ("wait_event", "DataFileSync")];
        let storm = |s: i64| if s % 8 >= 4 { 1.0 } else { 0.0 };
        let made = server(32, 1e6).without(NAMES[1][0]).counter(DB, NAMES[1][0], &[], 0.0);
        assert_eq!(made.explains(&DEFINITION), Some(0.0));
        let hurried = made.counted(DB, "postgresql_activity_sessions", &labels, storm);
        assert!(hurried.explains(&DEFINITION).unwrap() > 200.0, "{:?}", hurried.explains(&DEFINITION));
    }

    /// The same under a steady load: as many rows are changed in storms, or `burst` times as many, and the log grows by 30 MB a second
    /// then.
    fn steady(burst: f64) -> SyntheticRecording {
        let rows = move |s: i64| (1..=s).map(|t| if t % 8 >= 4 { 100.0 * burst } else { 100.0 }).sum::<f64>();
        server(32, 30e6).counted(DB, "postgresql_stat_database_tup_updated", &[("database", "app")], rows)
    }

    #[test]
    fn pages_that_are_logged_whole_are_not_a_burst_of_changes() {
        assert!(
            (steady(1.0).explains(&DEFINITION).unwrap() - 300.0).abs() < 50.0,
            "{:?}",
            steady(1.0).explains(&DEFINITION)
        );
        let Ok(Outcome::Found(found)) = steady(1.0).judge(&DEFINITION) else { panic!("not found") };
        let told = found.evidence.iter().any(|piece| piece.text.contains("of log each; at other times 100 rows/s"));
        assert!(told, "{:?}", found.evidence);
        assert_eq!(steady(3.0).explains(&DEFINITION), Some(0.0), "three times as many rows are changed");
    }

    #[test]
    fn a_checkpoint_that_is_due_by_time_and_spread_clears_it_while_changes_go_on() {
        let spread = |made: SyntheticRecording| made.without(NAMES[1][1]).counter(DB, NAMES[1][1], &[], 0.0);
        assert_eq!(spread(steady(1.0)).explains(&DEFINITION), Some(0.0));
        assert!(spread(server(32, 1e6)).explains(&DEFINITION).unwrap() > 200.0, "changes had to stop");
    }

    #[test]
    fn checkpoints_without_waiting_sessions_clear_it() {
        assert_eq!(server(2, 1e6).explains(&DEFINITION), Some(0.0), "nobody stands");
        assert_eq!(server(32, 30e6).explains(&DEFINITION), Some(0.0), "the log grows faster: a burst of changes");
        assert_eq!(server(32, 1e6).without(NAMES[1][1]).explains(&DEFINITION), None);
        assert_eq!(server(32, 1e6).without("postgresql_sessions").explains(&DEFINITION), None);
    }
}
