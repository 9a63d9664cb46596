//! One recording of a fleet: its host, what runs there, which time it covers, and how far its clock
//! was off. What runs there is known from what was recorded: a load makes a generator; a database's
//! own address or process makes a database; a socket that the load's target names, spans or another
//! process make an app.

use std::ops::Range;
use std::path::PathBuf;

use super::clocks::Clock;
use super::{MACHINE, sources};
use crate::manifest::{LoadFacts, RunState};
use crate::{Manifest, Recording, metrics};

/// What runs on a host. Facts of a database's host are looked at first, those of others last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A database.
    Database,
    /// The service that the load asks.
    App,
    /// Something else, or unknown.
    Other,
    /// holdup's load.
    Generator,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::App => "app",
            Self::Other => "other",
            Self::Generator => "generator",
        }
    }
}

/// Names of databases' processes.
const DATABASES: &[&str] = &["mariadbd", "mysqld", "postgres", "mongod"];

/// Source prefixes of databases.
const SCHEMES: &[&str] =
    &["mysql://", "postgresql://", "postgres://", "mongodb://", "redis:", "elasticsearch://", "opensearch://"];

/// Whether `source` is a database.
pub(super) fn is_database(source: &str) -> bool {
    SCHEMES.iter().any(|scheme| source.starts_with(scheme))
}

/// One recording of a fleet.
#[derive(Clone, Debug)]
pub struct Part {
    /// The host's name, unique in the fleet.
    pub host: String,
    /// The recording as the user named it.
    pub shown: String,
    /// Its directory.
    pub dir: PathBuf,
    /// What runs there.
    pub roles: Vec<Role>,
    /// When it was recorded, by its own clock, nanoseconds since the Unix epoch.
    pub recorded: Range<i64>,
    /// How far it got.
    pub state: RunState,
    /// Its clock against that of another part; none for the part whose clock counts, and for one
    /// that shares nothing with the others.
    pub clock: Option<Clock>,
    /// Whether its clock counts.
    pub is_reference: bool,
    /// Whether it recorded its machine.
    pub has_machine: bool,
    /// Its sources, as they are called in the joined recording.
    pub sources: Vec<String>,
    /// Sources of it that were left out, because another part recorded the same server.
    pub left_out: Vec<String>,
    /// The load it made.
    pub load: Option<LoadFacts>,
    /// From when to when its load was scheduled, by its own clock.
    pub scheduled: Option<Range<i64>>,
}

impl Part {
    pub(super) fn new(host: String, shown: String, recording: &Recording) -> Self {
        let Recording { dir, manifest, .. } = recording;
        let sources: Vec<String> = sources::of(recording).into_iter().collect();
        Self {
            host,
            shown,
            dir: dir.clone(),
            roles: Vec::new(),
            recorded: manifest.started_at..manifest.ended_at.unwrap_or(i64::MAX),
            state: manifest.state,
            clock: None,
            is_reference: false,
            has_machine: sources.iter().any(|source| source == MACHINE),
            sources,
            left_out: Vec::new(),
            load: manifest.load.clone(),
            scheduled: manifest.phases.first().zip(manifest.phases.last()).map(|(first, last)| first.from..last.to),
        }
    }

    /// How long before the end of its schedule it ended, nanoseconds.
    pub fn early_ns(&self) -> Option<i64> {
        let scheduled = self.scheduled.as_ref()?;
        Some(scheduled.end.saturating_sub(self.recorded.end).max(0))
    }

    /// When it was recorded, by the clock that counts.
    pub fn covered(&self) -> Range<i64> {
        self.moved(self.recorded.start)..self.moved(self.recorded.end)
    }

    /// The time `at` of its own clock, by the clock that counts.
    pub(super) fn moved(&self, at: i64) -> i64 {
        let by = self.clock.as_ref().map_or(0, |clock| clock.offset_ns);
        if at == i64::MAX { at } else { at.saturating_add(by) }
    }
}

/// What runs where `recording` was made, if the load's requests go to port `target`.
pub(super) fn roles(recording: &Recording, target: Option<&str>) -> Vec<Role> {
    let tables = &recording.tables;
    let sources = sources::of(recording);
    let programs = tables.settings.rows.iter().filter(|row| row.name == "comm" && row.source.starts_with("pid:"));
    let comm = |is: fn(&str) -> bool| programs.clone().any(|row| is(&row.value));
    let is_database_program = |name: &str| DATABASES.contains(&name);
    let has = |scheme: &str| sources.iter().any(|source| source.starts_with(scheme));
    let is_asked = |port: &str| {
        let queues =
            tables.condensed.iter().filter_map(|c| c.series.by_metric.get(metrics::tcp::ACCEPT_QUEUE_LENGTH.name));
        queues.flat_map(|of| of.keys()).any(|(_, labels)| labels.get("port") == Some(port))
    };
    let mut roles = Vec::new();
    if comm(is_database_program) || sources.iter().any(|source| is_database(source) && sources::is_local(source)) {
        roles.push(Role::Database);
    }
    let is_app = has("server:")
        || has("prometheus:")
        || tables.spans.rows.iter().any(|span| span.resource == "request")
        || target.is_some_and(is_asked)
        || comm(|name| !DATABASES.contains(&name) && name != "holdup");
    if is_app {
        roles.push(Role::App);
    }
    if recording.manifest.load.is_some() {
        roles.push(Role::Generator);
    }
    if roles.is_empty() {
        roles.push(Role::Other);
    }
    roles
}

/// The port of the load's target.
pub(super) fn target_port(manifest: &Manifest) -> Option<String> {
    let target = &manifest.load.as_ref()?.target;
    let (scheme, rest) = target.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
    port.map(str::to_owned).or_else(|| Some(if scheme == "https" { "443" } else { "80" }.to_owned()))
}
