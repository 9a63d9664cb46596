//! Takes a recording of one machine apart into what three hosts would have recorded: the generator
//! its load, the app its processes, metrics and spans, the database its account and packets. Time
//! namespaces cannot shift the wall clock, so the recorded times are shifted instead.

use std::path::Path;

use holdup_recording::writer::Recorder;
use holdup_recording::{Batch, Manifest, Recording, hlog};

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    Generator,
    App,
    Database,
}

/// How to take it apart.
pub struct Split {
    /// What the app's clock shows more than the generator's, nanoseconds.
    pub app_ns: i64,
    /// The same of the database's.
    pub database_ns: i64,
    /// How long the database was recorded, if not to the end.
    pub database_for_ns: Option<i64>,
    /// Hosts that recorded the source `host`.
    pub host_on: Vec<Host>,
}

impl Default for Split {
    fn default() -> Self {
        Self { app_ns: 0, database_ns: 0, database_for_ns: None, host_on: vec![Host::Database] }
    }
}

/// The directories.
pub struct Parts {
    pub generator: String,
    pub app: String,
    pub database: String,
}

const PROGRAMS: &[&str] = &["mariadbd", "mysqld", "postgres"];

/// Takes the recording in `from` apart, into directories in `dir`.
pub fn split(from: &str, dir: &Path, how: &Split) -> Parts {
    let whole = Recording::open(Path::new(from)).unwrap();
    let databases: Vec<String> = whole
        .tables
        .settings
        .rows
        .iter()
        .filter(|row| row.name == "comm" && PROGRAMS.contains(&row.value.as_str()))
        .map(|row| row.source.clone())
        .collect();
    let place = |source: &str| {
        let name = source.split(' ').next().unwrap_or_default();
        let is_database = ["mysql://", "postgresql://", "wire:"].iter().any(|scheme| name.starts_with(scheme))
            || databases.iter().any(|of| of == name);
        match name {
            "holdup" => Host::Generator,
            _ if is_database => Host::Database,
            _ => Host::App,
        }
    };
    let write = |host: Host, name: &str, by_ns: i64| {
        let is_of = |source: &str| match source.split(' ').next() {
            Some("host") => how.host_on.contains(&host),
            _ => place(source) == host,
        };
        let mut rows = whole.tables.clone().into_batch();
        macro_rules! keep {
            ($($table:ident)*) => { $(rows.$table.retain(|row| is_of(&row.source));)* };
        }
        keep!(samples threads sessions statements stages spans exchanges plans settings events);
        let mut manifest = whole.manifest.clone();
        manifest.host.name = Some(name.to_owned());
        manifest.coverage.retain(|entry| is_of(&entry.source));
        if host != Host::Generator {
            rows.requests.clear();
            rows.executions.clear();
            (manifest.load, manifest.scenario) = (None, None);
            manifest.phases.clear();
        }
        if let Some(length) = how.database_for_ns.filter(|_| host == Host::Database) {
            let until = manifest.started_at + length;
            macro_rules! cut {
                ($($table:ident)*) => { $(rows.$table.retain(|row| row.observed_at < until);)* };
            }
            cut!(samples threads sessions statements stages);
            manifest.ended_at = Some(until);
        }
        let place = dir.join(name);
        store(&place, manifest, rows, by_ns);
        if host == Host::Generator {
            let _ = std::fs::copy(Path::new(from).join(hlog::HLOG), place.join(hlog::HLOG));
        }
        place.display().to_string()
    };
    Parts {
        generator: write(Host::Generator, "gen1", 0),
        app: write(Host::App, "app1", how.app_ns),
        database: write(Host::Database, "db1", how.database_ns),
    }
}

/// Writes a recording whose clock shows `by_ns` more.
pub fn store(place: &Path, mut manifest: Manifest, mut rows: Batch, by_ns: i64) {
    rows.move_times(by_ns);
    manifest.started_at += by_ns;
    let ended_at = manifest.ended_at.map(|at| at + by_ns);
    let state = manifest.state;
    let recorder = Recorder::create(place, &manifest).unwrap();
    recorder.sink().push(rows);
    let mut manifest = recorder.finish(manifest, state).unwrap();
    manifest.ended_at = ended_at;
    manifest.write(place).unwrap();
}

/// Gives the recording in `place` an id.
pub fn mark(place: &str, id: &str) {
    let mut manifest = Recording::manifest(Path::new(place)).unwrap();
    manifest.recording_id = Some(id.to_owned());
    manifest.write(Path::new(place)).unwrap();
}
