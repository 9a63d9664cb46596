//! Who watches: from one recording the recordings that others would have made, by taking sources away. That is the same
//! as not having watched, but for what docs/strangers.md lists. The stranger bench and the tests of the judge ask; which
//! source belongs to whom is for them to say.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Recording;

/// Sources by who would watch them: a source of the recording begins with one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// The database's own account.
    pub database: Vec<String>,
    /// Its processes, on its machine.
    pub database_process: Vec<String>,
    /// The app: processes, metrics, spans.
    pub app: Vec<String>,
    /// What stands in front of app or database: proxy and pooler. Draws from before there were any do not name it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<String>,
    /// The machine.
    pub host: Vec<String>,
}

/// A kind of watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watcher {
    /// Makes the load and watches everything.
    Everything,
    /// The same without the app's spans.
    NoSpans,
    /// The same without plans.
    NoPlans,
    /// Watches the machine, the app, the database and what stands between; the load is others'.
    AppAndDatabase,
    /// Watches the database on its machine.
    Database,
    /// Watches the database from afar, as with a managed one.
    DatabaseFromAfar,
    /// Watches the machine.
    Host,
}

impl Watcher {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Everything,
        Self::NoSpans,
        Self::NoPlans,
        Self::AppAndDatabase,
        Self::Database,
        Self::DatabaseFromAfar,
        Self::Host,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::NoSpans => "no spans",
            Self::NoPlans => "no plans",
            Self::AppAndDatabase => "app and database",
            Self::Database => "database",
            Self::DatabaseFromAfar => "database from afar",
            Self::Host => "host",
        }
    }

    /// Whether it makes the load.
    pub fn has_load(self) -> bool {
        matches!(self, Self::Everything | Self::NoSpans | Self::NoPlans)
    }

    /// Whether it would have recorded something else than another kind.
    pub fn differs(self, recording: &Recording, sources: &Sources) -> bool {
        match self {
            Self::NoSpans => !recording.tables.spans.rows.is_empty(),
            Self::NoPlans => !recording.tables.plans.rows.is_empty(),
            Self::AppAndDatabase => !sources.app.is_empty() || !sources.between.is_empty(),
            Self::Database | Self::DatabaseFromAfar => !sources.database.is_empty(),
            Self::Everything | Self::Host => true,
        }
    }

    fn keeps(self, source: &str, sources: &Sources) -> bool {
        let is_of = |list: &[String]| {
            list.iter().any(|own| source == own || source.strip_prefix(own.as_str()).is_some_and(is_part))
        };
        let kept: &[&Vec<String>] = match self {
            Self::Everything | Self::NoSpans | Self::NoPlans => return true,
            Self::AppAndDatabase => {
                &[&sources.host, &sources.app, &sources.between, &sources.database, &sources.database_process]
            }
            Self::Database => &[&sources.host, &sources.database, &sources.database_process],
            Self::DatabaseFromAfar => &[&sources.database],
            Self::Host => &[&sources.host],
        };
        kept.iter().any(|list| is_of(list))
    }

    /// Leaves in `recording` what this watcher would have had.
    pub fn take(self, recording: &mut Recording, sources: &Sources) {
        let tables = &mut recording.tables;
        // What was condensed was condensed of everything.
        tables.condensed = None;
        macro_rules! keep {
            ($($table:ident)*) => {
                $(tables.$table.rows.retain(|row| self.keeps(row.source.as_ref(), sources));)*
            };
        }
        keep!(samples threads sessions statements stages spans exchanges plans settings events);
        if self == Self::NoSpans {
            tables.spans.rows.clear();
        }
        if self == Self::NoPlans {
            tables.plans.rows.clear();
        }
        if self == Self::DatabaseFromAfar {
            // Plans come from the server's log file, which is on its machine.
            tables.plans.rows.clear();
        }
        recording.manifest.coverage.retain(|coverage| self.keeps(&coverage.source, sources));
        if !self.has_load() {
            take_load(recording);
        }
    }
}

/// Leaves in `recording` no load by holdup: neither what was asked for nor what the client measured.
pub fn take_load(recording: &mut Recording) {
    recording.tables.requests.rows.clear();
    recording.tables.requests.present = false;
    recording.tables.executions.rows.clear();
    recording.tables.executions.present = false;
    recording.latencies.clear();
    let manifest = &mut recording.manifest;
    manifest.load = None;
    manifest.phases.clear();
    manifest.scenario = None;
}

/// A source's parts are called `SOURCE PART` in the coverage.
fn is_part(rest: &str) -> bool {
    rest.starts_with(' ')
}

impl fmt::Display for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A lab's recording with own load, host, a server, its process, and an app with spans.
    fn recording() -> (Recording, Sources) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hidden-queue-accounts");
        let recording = Recording::open(&root).unwrap();
        let named = |prefix: &str| {
            let names = recording.manifest.coverage.iter().map(|coverage| coverage.source.clone());
            names.filter(|name| name.starts_with(prefix) && !name.contains(' ')).collect::<Vec<_>>()
        };
        let sources = Sources {
            database: named("mysql://"),
            database_process: named("pid:"),
            app: named("otlp"),
            between: Vec::new(),
            host: named("host"),
        };
        (recording, sources)
    }

    fn seen(watcher: Watcher) -> Recording {
        let (mut recording, sources) = recording();
        watcher.take(&mut recording, &sources);
        recording
    }

    #[test]
    fn watchers_without_load_have_no_requests() {
        let (all, _) = recording();
        assert!(all.manifest.load.is_some() && !all.tables.requests.rows.is_empty());
        let everything = seen(Watcher::Everything);
        assert_eq!(everything.manifest, all.manifest);
        assert_eq!(everything.tables.samples.rows, all.tables.samples.rows);
        for watcher in [Watcher::AppAndDatabase, Watcher::Database, Watcher::DatabaseFromAfar, Watcher::Host] {
            let seen = seen(watcher);
            assert!(seen.tables.requests.rows.is_empty() && seen.latencies.is_empty(), "{watcher}");
            assert!(seen.manifest.load.is_none() && seen.manifest.phases.is_empty(), "{watcher}");
            assert!(seen.tables.events.rows.iter().all(|event| event.source != "holdup"), "{watcher}");
        }
    }

    #[test]
    fn each_has_its_own_sources_only() {
        let (_, sources) = recording();
        let prefixes = |watcher| {
            let seen = seen(watcher);
            let samples = seen.tables.samples.rows.iter().map(|row| row.source.to_string());
            let coverage = seen.manifest.coverage.iter().map(|coverage| coverage.source.clone());
            let mut names: Vec<String> =
                samples.chain(coverage).map(|name| name.split([':', ' ']).next().unwrap().to_owned()).collect();
            names.sort();
            names.dedup();
            names
        };
        assert_eq!(prefixes(Watcher::Host), ["host"]);
        assert_eq!(prefixes(Watcher::DatabaseFromAfar), ["mysql"]);
        assert_eq!(prefixes(Watcher::Database), ["host", "mysql", "pid"]);
        assert!(seen(Watcher::Database).tables.spans.rows.is_empty());
        assert!(!seen(Watcher::AppAndDatabase).tables.spans.rows.is_empty());
        assert!(seen(Watcher::NoSpans).tables.spans.rows.is_empty());
        let (all, _) = recording();
        assert!(Watcher::NoSpans.differs(&all, &sources) && !Watcher::NoPlans.differs(&all, &sources));
    }

    #[test]
    fn a_pooler_is_seen_by_those_who_watch_the_app_and_not_from_the_database() {
        let between = vec!["pgbouncer://127.0.0.1:6432".to_owned(), "haproxy:127.0.0.1:9999".to_owned()];
        let sources = Sources { between, ..Sources::default() };
        for source in &sources.between {
            let seen: Vec<Watcher> = Watcher::ALL.into_iter().filter(|who| who.keeps(source, &sources)).collect();
            let expected = [Watcher::Everything, Watcher::NoSpans, Watcher::NoPlans, Watcher::AppAndDatabase];
            assert_eq!(seen, expected, "{source}");
        }
        let (recording, _) = recording();
        // Without an app there is still something between.
        assert!(Watcher::AppAndDatabase.differs(&recording, &sources));
        for watcher in [Watcher::AppAndDatabase, Watcher::Database, Watcher::DatabaseFromAfar] {
            assert!(!watcher.differs(&recording, &Sources::default()), "{watcher}");
        }
    }

    /// `pid:12` is not a part of `pid:1`, but `pid:1 block I/O delay` is.
    #[test]
    fn a_source_is_not_another_with_a_longer_name() {
        let sources = Sources { host: vec!["pid:1".to_owned()], ..Sources::default() };
        let keeps = |name| Watcher::Host.keeps(name, &sources);
        assert!(keeps("pid:1") && keeps("pid:1 block I/O delay") && !keeps("pid:12"));
    }
}
