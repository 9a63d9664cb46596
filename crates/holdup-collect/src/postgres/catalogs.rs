//! The objects of the connected database: indexes, tables with their columns, triggers, views,
//! extensions, and settings of roles and databases. Each kind is one statement that reads catalogs
//! only. No row of a user's table is read, and a table under an exclusive lock is not waited for.

use holdup_recording::Coverage;
use holdup_recording::catalog::{Form, Key, Kind};
use holdup_recording::secret::settings::is_secret_in_postgresql;

use super::server::{Failure, Server};
use super::settings;
use crate::catalogs::{self, MOST, Reading};
use crate::coverage::{Line as _, part};
use crate::pace::Turn;
use crate::reading::{Out, tell};

/// When the configuration was loaded, and how often rows of catalogs were changed: functions that read
/// counters, not the catalogs.
const MARK: &str = "SELECT pg_conf_load_time()::text || ' ' || sum(pg_stat_get_tuples_inserted(holdup_o) + \
     pg_stat_get_tuples_updated(holdup_o) + pg_stat_get_tuples_deleted(holdup_o))::text FROM unnest(ARRAY['pg_index'::regclass, \
     'pg_attribute'::regclass, 'pg_trigger'::regclass, 'pg_rewrite'::regclass, 'pg_extension'::regclass, \
     'pg_db_role_setting'::regclass]::oid[]) AS holdup_o";

/// Tables and indexes that are locked so that even readers wait: their definition would have to wait.
const HELD: &str = "ARRAY(SELECT relation FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation IS NOT NULL)";

/// Objects below this id are the server's own.
const OWN: &str = "16384";

/// What a statement reads: what the object belongs to, its name, its state and its definition. `{held}`
/// and `{own}` stand for the above.
const READS: [(Kind, &str); 6] = [
    (
        Kind::Index,
        "SELECT holdup_n.nspname || '.' || holdup_t.relname, holdup_i.relname, \
         CASE WHEN holdup_x.indisvalid THEN '' ELSE 'invalid' END, \
         CASE WHEN holdup_x.indrelid <> ALL({held}) AND holdup_x.indexrelid <> ALL({held}) THEN pg_get_indexdef(holdup_x.indexrelid) END \
         FROM pg_index AS holdup_x JOIN pg_class AS holdup_i ON holdup_i.oid = holdup_x.indexrelid \
         JOIN pg_class AS holdup_t ON holdup_t.oid = holdup_x.indrelid JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_t.relnamespace \
         WHERE holdup_x.indexrelid >= {own} AND holdup_t.relkind IN ('r', 'm', 'p') AND holdup_t.relpersistence <> 't'",
    ),
    (
        Kind::Table,
        "SELECT '', holdup_n.nspname || '.' || holdup_t.relname, '', string_agg(holdup_a.attname || ' ' || \
         format_type(holdup_a.atttypid, holdup_a.atttypmod) || \
         CASE WHEN holdup_a.attstattarget >= 0 THEN ' statistics ' || holdup_a.attstattarget ELSE '' END, E'\\n' ORDER BY holdup_a.attnum) \
         FROM pg_class AS holdup_t JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_t.relnamespace \
         JOIN pg_attribute AS holdup_a ON holdup_a.attrelid = holdup_t.oid AND holdup_a.attnum > 0 AND NOT holdup_a.attisdropped \
         WHERE holdup_t.oid >= {own} AND holdup_t.relkind IN ('r', 'm', 'p') AND holdup_t.relpersistence <> 't' \
         GROUP BY holdup_n.nspname, holdup_t.relname",
    ),
    (
        Kind::Trigger,
        "SELECT holdup_n.nspname || '.' || holdup_t.relname, holdup_g.tgname, \
         CASE WHEN holdup_g.tgenabled = 'D' THEN 'disabled' ELSE '' END, \
         'calls ' || holdup_p.proname || ' ' || md5(holdup_g.tgtype || ' ' || coalesce(holdup_g.tgqual::text, '')) \
         FROM pg_trigger AS holdup_g JOIN pg_class AS holdup_t ON holdup_t.oid = holdup_g.tgrelid \
         JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_t.relnamespace JOIN pg_proc AS holdup_p ON holdup_p.oid = holdup_g.tgfoid \
         WHERE NOT holdup_g.tgisinternal AND holdup_t.oid >= {own}",
    ),
    (
        Kind::View,
        "SELECT '', holdup_n.nspname || '.' || holdup_v.relname, '', md5(holdup_r.ev_action::text) \
         FROM pg_rewrite AS holdup_r JOIN pg_class AS holdup_v ON holdup_v.oid = holdup_r.ev_class \
         JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_v.relnamespace \
         WHERE holdup_v.oid >= {own} AND holdup_v.relkind IN ('v', 'm') AND holdup_r.rulename = '_RETURN'",
    ),
    (Kind::Extension, "SELECT '', extname, '', extversion FROM pg_extension"),
    (
        Kind::Setting,
        "SELECT CASE WHEN holdup_r.rolname IS NULL THEN 'database ' || holdup_d.datname ELSE 'role ' || holdup_r.rolname || \
         coalesce(' in database ' || holdup_d.datname, '') END, split_part(holdup_c, '=', 1), '', substr(holdup_c, strpos(holdup_c, '=') + 1) \
         FROM pg_db_role_setting AS holdup_s LEFT JOIN pg_database AS holdup_d ON holdup_d.oid = holdup_s.setdatabase \
         LEFT JOIN pg_roles AS holdup_r ON holdup_r.oid = holdup_s.setrole CROSS JOIN unnest(holdup_s.setconfig) AS holdup_c \
         WHERE holdup_s.setrole = 0 OR holdup_r.rolname IS NOT NULL",
    ),
];

/// State between readings.
#[derive(Default)]
pub(super) struct Catalogs {
    reading: Reading<String>,
    /// Whether the account may read them at all.
    is_allowed: bool,
}

impl Catalogs {
    /// Takes over what a probe found. After a reconnect what was known stays: a restart changes settings.
    pub(super) fn allow(&mut self, is_allowed: bool) {
        self.is_allowed = is_allowed;
    }

    /// Reads settings and objects if a mark shows that something changed.
    pub(super) fn sample(&mut self, server: &Server, turn: &mut Turn, out: &mut Out) -> Result<(), Failure> {
        if !self.is_allowed {
            return Ok(());
        }
        let mark = mark(server)?;
        let Some(begun) = self.reading.due_at(&mark, turn) else { return Ok(()) };
        let result = tell_settings(server, out).and_then(|()| self.read(server, out));
        self.reading.note(mark, turn, begun, result)
    }

    /// Reads the objects along with the settings, unless they were read a moment ago.
    pub(super) fn with_settings(&mut self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        if !self.is_allowed {
            return Ok(());
        }
        let mark = mark(server)?;
        let Some(begun) = self.reading.due_with_settings(&mark) else { return Ok(()) };
        let result = self.read(server, out);
        self.reading.note(mark, &mut Turn::default(), begun, result)
    }

    /// Reads all kinds; one that fails does not keep the others from being read.
    fn read(&mut self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        let mut failed = None;
        for (kind, sql) in READS {
            match server.rows(&limited(sql)) {
                Ok(answer) => {
                    let is_cut = answer.rows.len() >= MOST;
                    let text = |row: &super::server::Row, at| row.text(at).unwrap_or_default().to_owned();
                    let read = answer.rows.iter().map(|row| {
                        let form = row.text(3).map(|definition| Form::new(text(row, 2), definition));
                        (Key::new(kind, text(row, 0), text(row, 1)), form)
                    });
                    let is_shown = |key: &Key| kind != Kind::Setting || !is_secret_in_postgresql(&key.name);
                    self.reading.put(kind, read.filter(|(key, _)| is_shown(key)).collect(), is_cut, out);
                }
                Err(failure @ Failure::Server(..)) => {
                    failed.get_or_insert(failure);
                }
                Err(lost) => return Err(lost),
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// The server's settings.
fn tell_settings(server: &Server, out: &mut Out) -> Result<(), Failure> {
    let found = settings::settings(server)?;
    tell(out.batch, out.source(), found);
    Ok(())
}

fn mark(server: &Server) -> Result<String, Failure> {
    let answer = server.rows_again(MARK)?;
    Ok(answer.rows.first().and_then(|row| row.text(0)).unwrap_or_default().to_owned())
}

fn limited(sql: &str) -> String {
    format!("{} LIMIT {MOST}", sql.replace("{held}", HELD).replace("{own}", OWN))
}

/// The line of the coverage, and whether the catalogs may be read.
pub(super) fn find(server: &Server, source: &str, account: &str) -> Result<(Coverage, bool), Failure> {
    let entry = part(source, catalogs::PART);
    for (kind, sql) in READS {
        let count = format!("SELECT count(*) FROM ({}) AS holdup_all", limited(&counted(sql)));
        match server.value(&count) {
            Ok(count)
                if count.as_deref().and_then(|count| count.parse().ok()).is_some_and(|count: usize| count >= MOST) =>
            {
                return Ok((entry.partial(catalogs::cut(kind)), true));
            }
            Ok(_) => {}
            // Public may read these catalogs unless someone revoked that.
            Err(failure @ Failure::Server(..)) => {
                let why = format!("the account may not read the catalogs of {}s: {failure}", kind.word());
                let enable = format!("GRANT SELECT ON ALL TABLES IN SCHEMA pg_catalog TO {account};");
                return Ok((entry.absent(why).enable(enable), false));
            }
            Err(lost) => return Err(lost),
        }
    }
    Ok((entry, true))
}

/// The same rows without what is costly to write.
fn counted(sql: &str) -> String {
    let from = sql.find(" FROM pg_").unwrap_or(0);
    let end = sql.find(" GROUP BY ").unwrap_or(sql.len());
    let rows = sql.get(from..end).unwrap_or_default();
    match sql.len() == end {
        true => format!("SELECT 1 {rows}"),
        false => format!("SELECT DISTINCT holdup_t.oid {rows}"),
    }
}
