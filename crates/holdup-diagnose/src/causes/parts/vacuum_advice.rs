//! Which autovacuum settings suit a table, by what happens to its rows, with the arithmetic: at how
//! many dead rows a run starts, how often that is at the measured rate, and how much a run has to
//! process.

use super::identifier;
use crate::causes::{bytes, thousands};
use crate::change::Fix;
use holdup_signals::View;
use holdup_signals::database::autovacuum::VacuumThreshold;
use holdup_signals::database::tables::{POSTGRESQL, TableWrites};
use holdup_signals::database::vacuum::PAGE_BYTES;

/// The lifetime of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// They stay, and are updated again and again.
    Updated,
    /// They are inserted and soon deleted.
    ShortLived,
    /// Neither.
    Other,
}

/// The lifetime of the rows of `table`; for a TOAST table, that of its owner's rows.
pub(crate) fn profile(table: &TableWrites) -> Profile {
    if table.deleted > 0.0 && table.deleted >= 0.5 * table.inserted && table.inserted >= table.updated {
        Profile::ShortLived
    } else if table.updated > 0.0 && table.updated >= table.inserted + table.deleted {
        Profile::Updated
    } else {
        Profile::Other
    }
}

/// When a run should start for such rows: values that a large service with such tables has settled
/// on.
fn suiting(profile: Profile) -> VacuumThreshold {
    match profile {
        Profile::Updated => VacuumThreshold { scale: 0.01, threshold: 50.0 },
        Profile::ShortLived => VacuumThreshold { scale: 0.0, threshold: 5_000.0 },
        Profile::Other => VacuumThreshold::BY_DEFAULT,
    }
}

/// `at 10,050 dead rows, every 40 s`.
fn how_often(fires: VacuumThreshold, live: f64, per_second: f64) -> String {
    let at = fires.at(live);
    let every = at / per_second.max(1e-9);
    let every = if every < 120.0 {
        format!("{} s", thousands(every.max(1.0)))
    } else {
        format!("{} min", thousands(every / 60.0))
    };
    format!("at {} dead rows, every {every} at the measured {} per second", thousands(at), thousands(per_second))
}

/// Settings for `table`, if the present ones do not suit its rows. `owner` is the table that the
/// rows belong to: itself, or for a TOAST table the one whose values it holds.
pub(crate) fn advise(view: &View<'_>, table: &TableWrites, owner: &TableWrites) -> Option<Fix> {
    let profile = profile(owner);
    let (now, then) = (VacuumThreshold::set(view, table), suiting(profile));
    let (live, per_second) = (table.live?, table.dead_per_second());
    if profile == Profile::Other || per_second <= 0.0 || then.at(live) >= 0.8 * now.at(live) {
        return None;
    }
    let lives = match profile {
        Profile::Updated => "are updated again and again and stay",
        _ => "are deleted soon after their insert",
    };
    // One dead row per page at worst; in a TOAST table four in each.
    let a_page = if table.toast_of.is_some() { 4.0 } else { 1.0 };
    let touched = |fires: VacuumThreshold| {
        let pages = fires.at(live) / a_page;
        view.table_bytes(table).map_or(pages * PAGE_BYTES, |all| (pages * PAGE_BYTES).min(all))
    };
    let text = format!(
        "Start autovacuum of {} sooner, in smaller portions: its rows {lives}. With scale factor {} and threshold {} it starts {} and processes up to {} of pages with dead rows; with {} and {} {}, up to {}.",
        table.name(),
        now.scale,
        thousands(now.threshold),
        how_often(now, live, per_second),
        bytes(touched(now)),
        then.scale,
        thousands(then.threshold),
        how_often(then, live, per_second),
        bytes(touched(then)),
    );
    let prefix = if table.toast_of.is_some() { "toast." } else { "" };
    Some(Fix {
        text,
        command: Some(format!(
            "ALTER TABLE {} SET ({prefix}autovacuum_vacuum_scale_factor = {}, {prefix}autovacuum_vacuum_threshold = {:.0});",
            identifier::table(&owner.table),
            then.scale,
            then.threshold
        )),
        keep: Some("It is stored with the table.".to_owned()),
        risk: Some("More runs, each of which also reads all indexes of the table; setting it waits for running transactions on the table.".to_owned()),
    })
}

/// What to record for the arithmetic's figures.
pub(crate) const NEEDS: &str = POSTGRESQL;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "postgresql://db";

    fn made(inserted: f64, updated: f64, deleted: f64) -> SyntheticRecording {
        let labels = [("database", "app"), ("table", "public.article")];
        let metric = |column: &str| format!("postgresql_stat_tables_{column}");
        SyntheticRecording::new(10)
            .counter(DB, &metric("n_tup_ins"), &labels, inserted)
            .counter(DB, &metric("n_tup_upd"), &labels, updated)
            .counter(DB, &metric("n_tup_del"), &labels, deleted)
            .gauge(DB, &metric("n_live_tup"), &labels, 1e6)
            .gauge(DB, &metric("n_dead_tup"), &labels, 100.0)
    }

    fn advice(made: &SyntheticRecording) -> Option<Fix> {
        made.with(|case| {
            let view = case.slow();
            let tables = view.table_writes().unwrap();
            advise(&view, &tables[0], &tables[0])
        })
    }

    #[test]
    fn rows_that_stay_and_rows_that_go_have_settings_of_their_own() {
        let often = advice(&made(1.0, 100.0, 0.0)).unwrap();
        assert!(often.text.contains("at 200,050 dead rows, every 33 min"), "{}", often.text);
        assert!(often.text.contains("with 0.01 and 50 at 10,050 dead rows, every 100 s"), "{}", often.text);
        assert_eq!(
            often.command.as_deref(),
            Some(
                "ALTER TABLE public.article SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 50);"
            )
        );
        let short = advice(&made(100.0, 1.0, 100.0)).unwrap();
        assert!(short.command.unwrap().contains("scale_factor = 0, autovacuum_vacuum_threshold = 5000"));
        assert_eq!(advice(&made(100.0, 1.0, 0.0)), None, "rows are only added");
        let set = made(1.0, 100.0, 0.0).setting(
            DB,
            "reloptions:public.article",
            "fillfactor=90,autovacuum_vacuum_scale_factor=0.005",
        );
        assert_eq!(advice(&set), None, "it comes sooner already");
    }
}
