//! Which causes can occur at all, and what would show them on the databases that are watched: a
//! cause of MySQL's is not a suspect on a host whose database is PostgreSQL. It is neither cleared
//! nor listed as open, and lowers the confidence in no other cause.
//!
//! Pauses of an app's runtime are listed as open. If no source reports a runtime, they lower no
//! confidence: most services of unknown make have none that pauses for long. The same is so of the
//! way to the database if no client of it is known to be on another machine.
//!
//! Where the time to explain is that of a cloud's volume, only causes that act on disks can have
//! lengthened it. At a documented limit of the instance or volume, causes that raise the demand do
//! not compete either: the limit is known to bind, whatever raised the demand.

mod asked;

use crate::cause::Cause;
use holdup_recording::Recording;
use holdup_recording::manifest::{Coverage, CoverageState};

use holdup_signals::client::latency::Origin;

use crate::case::Case;
use crate::causes::Occurs;
use crate::instant::machine;
use crate::next_command::Machine;
use crate::resources::database_path;
use crate::resources::volume::level;
use crate::verdict::{NotJudged, SplitReport};

/// Phrases that ask for MySQL, and what they are for PostgreSQL. Longer ones first.
const AS_POSTGRESQL: &[(&str, &str)] = &[
    ("with performance_schema=ON and its consumer statements_digest on", "with the extension pg_stat_statements"),
    ("as an account with PROCESS", "as a member of pg_monitor"),
    ("mysql://USER@HOST:PORT or --watch postgresql://USER@HOST:PORT/DATABASE", "postgresql://USER@HOST:PORT/DATABASE"),
    ("mysql://USER@HOST:PORT", "postgresql://USER@HOST:PORT/DATABASE"),
    ("postgresql://… or mysql://…", "postgresql://…"),
];

/// Phrases that offer both, and what they are for MySQL.
const AS_MYSQL: &[(&str, &str)] = &[
    ("mysql://USER@HOST:PORT or --watch postgresql://USER@HOST:PORT/DATABASE", "mysql://USER@HOST:PORT"),
    ("postgresql://… or mysql://…", "mysql://…"),
];

/// Lets each of `open` ask for the kind of database that `recording` watched. Where the source has
/// named the command that gives the rest, `enable` is that command: it is for the account in use.
pub(crate) fn ask_for_watched(open: &mut [NotJudged], recording: &Recording) {
    let watched = Watched::from_recording(recording);
    let coverage = &recording.manifest.coverage;
    let figures = figures_instead(coverage);
    let phrases = watched.phrases();
    for one in open {
        for (of_any, of_watched) in phrases {
            one.enable = one.enable.replace(of_any, of_watched);
        }
        if let Some(figures) = figures.filter(|_| asks_for_machine(&one.enable)) {
            figures.clone_into(&mut one.enable);
        }
        let lacked = watched_command(&one.enable, coverage).or_else(|| lacked(&one.enable, &one.missing, coverage));
        if let Some(lacked) = lacked {
            one.enable = lacked;
        }
    }
}

/// How the provider of a managed database gives the figures of its machine, which no collector can run
/// on; none for a machine of the reader's own.
fn figures_instead(coverage: &[Coverage]) -> Option<&'static str> {
    let is_reached = coverage.iter().any(|entry| entry.source == "host" && entry.state != CoverageState::Absent);
    match machine::by_sources(coverage).filter(|_| !is_reached)? {
        Machine::Amazon => {
            Some("aws cloudwatch get-metric-data and aws pi get-resource-metrics (holdup import --help)")
        }
        Machine::Azure => Some("az monitor metrics list (holdup import --help)"),
        Machine::Google => Some("gcloud monitoring time-series list (holdup import --help)"),
        Machine::Reached | Machine::Unknown => None,
    }
}

/// Whether `enable` is a collector on the database's machine alone.
fn asks_for_machine(enable: &str) -> bool {
    enable.starts_with("--watch host")
}

/// The command by which an already watched source would give what `enable` asks for.
fn watched_command(enable: &str, coverage: &[Coverage]) -> Option<String> {
    let scheme = ["mysql://", "postgresql://"].into_iter().find(|s| enable.starts_with(&format!("--watch {s}")))?;
    let is_of_statements = enable.contains("statements");
    let of_it = coverage.iter().filter(|entry| entry.source.starts_with(scheme));
    let part = of_it.filter(|entry| entry.source.contains(' ') == is_of_statements);
    let mut asked = part.filter(|entry| !is_of_statements || entry.source.contains("statements"));
    asked.find_map(|entry| entry.enable.clone())
}

/// What watched sources lack of what `enable` asks them for: an answer, a setting or a right, or else
/// what is `missing`; if it also asks for others, those. None if only other sources are meant, e.g. the
/// host of another machine.
fn lacked(enable: &str, missing: &str, coverage: &[Coverage]) -> Option<String> {
    let asked = asked::read(enable);
    let others = asked::others(&asked, coverage)?;
    let (first, entry) = asked.iter().find_map(|one| Some((one, one.watched(coverage)?)))?;
    let source = &entry.source;
    if matches!(entry.state, CoverageState::Absent) {
        return Some(entry.enable.clone().unwrap_or_else(|| format!("an answer from {source}")));
    }
    if !others.is_empty() {
        return Some(asked::say(&others, &asked));
    }
    match first.rest.split_once(' ') {
        Some(("or", other)) => Some(other.to_owned()),
        Some(("with" | "as", _)) => Some(format!("{source} {}", first.rest)),
        _ => Some(format!("{missing} from {source}")),
    }
}

/// `split` without a source that is watched: it says what that source lacks.
pub(crate) fn ask_for_lacking(split: SplitReport, recording: &Recording) -> SplitReport {
    let coverage = &recording.manifest.coverage;
    let phrases = Watched::from_recording(recording).phrases();
    let of_watched = |text: &str| phrases.iter().fold(text.to_owned(), |text, (any, this)| text.replace(any, this));
    let split = SplitReport { watch: split.watch.as_deref().map(of_watched), ..split };
    let asked = split.watch.as_ref().map(|watch| format!("--watch {watch}")).unwrap_or_default();
    let Some(entry) = asked::read(&asked).first().and_then(|one| one.watched(coverage)) else { return split };
    let (measure, source) = (&split.measure, &entry.source);
    let measure = format!("{measure}, which {source} does not give");
    SplitReport { measure, command: watched_command(&asked, coverage), watch: None, ..split }
}

/// The causes among `open` that may be what another finding shows.
pub(crate) fn unseen(open: &[NotJudged], case: &Case<'_>) -> Vec<NotJudged> {
    let has_runtime = case.view(case.whole()).has_runtime();
    let has_way = database_path::is_there(case);
    let is_volume = case.origin == Origin::Volume;
    let is_at_limit = is_volume && level::is_at_documented(case);
    let watched = Watched::from_recording(case.recording);
    let is_suspect = |one: &&NotJudged| match one.cause.definition().occurs {
        _ if !watched.can_have(one.cause) => false,
        Occurs::InRuntimes => has_runtime,
        Occurs::BetweenMachines => has_way,
        Occurs::Rarely => false,
        _ if is_volume && !one.cause.acts_on_disks() => false,
        _ => !(is_at_limit && one.cause.is_disk_demand()),
    };
    open.iter().filter(is_suspect).cloned().collect()
}

/// Leaves out of `open` what occurs on MongoDB, Redis or Elasticsearch alone if `recording` has none.
pub(crate) fn leave_out_absent(open: &mut Vec<NotJudged>, recording: &Recording) {
    let watched = Watched::from_recording(recording);
    open.retain(|one| match one.cause.definition().occurs {
        Occurs::OnMongodb => watched.mongodb,
        Occurs::OnRedis => watched.redis,
        Occurs::OnElasticsearch => watched.elasticsearch,
        _ => true,
    });
}

/// The causes among `open` that the databases of `recording` can have.
pub(crate) fn among(open: Vec<NotJudged>, recording: &Recording) -> Vec<NotJudged> {
    let watched = Watched::from_recording(recording);
    open.into_iter().filter(|one| watched.can_have(one.cause)).collect()
}

/// Kinds of database servers that were watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Watched {
    mysql: bool,
    postgresql: bool,
    mongodb: bool,
    redis: bool,
    elasticsearch: bool,
}

impl Watched {
    /// The kinds in `recording`, from the sources that could be read.
    fn from_recording(recording: &Recording) -> Self {
        let has = |scheme: &str| {
            let read = |state: CoverageState| state != CoverageState::Absent;
            recording.manifest.coverage.iter().any(|entry| entry.source.starts_with(scheme) && read(entry.state))
        };
        Self {
            mysql: has("mysql://"),
            postgresql: has("postgresql://") || has("postgres://"),
            mongodb: has("mongodb://"),
            redis: has("redis:"),
            elasticsearch: has("elasticsearch://") || has("opensearch://"),
        }
    }

    /// Phrases that ask for any database, and what they are for the only kind that was watched.
    fn phrases(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self { postgresql: true, mysql: false, mongodb: false, .. } => AS_POSTGRESQL,
            Self { mysql: true, postgresql: false, mongodb: false, .. } => AS_MYSQL,
            _ => &[],
        }
    }

    /// Whether `cause` can occur. If no database was watched, any of MySQL's or PostgreSQL's can.
    fn can_have(self, cause: Cause) -> bool {
        // A cache beside the database says nothing of which database it is.
        let is_known = self.mysql || self.postgresql || self.mongodb;
        match cause.definition().occurs {
            Occurs::OnMysql => self.mysql || !is_known,
            Occurs::OnPostgresql => self.postgresql || !is_known,
            Occurs::OnMongodb => self.mongodb,
            Occurs::OnRedis => self.redis,
            Occurs::OnElasticsearch => self.elasticsearch,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use holdup_recording::Manifest;
    use holdup_recording::manifest::Host;

    use super::*;

    #[test]
    fn a_watched_source_is_proposed_with_its_own_command() {
        let entry = |source: &str, enable: Option<&str>| Coverage {
            enable: enable.map(str::to_owned),
            ..Coverage::with_parts(source, Vec::new()).remove(0)
        };
        let asked = |enable: &str, coverage: Vec<Coverage>| {
            let mut manifest = Manifest::starting("r", 0, Host::default());
            manifest.coverage = coverage;
            let recording = Recording {
                dir: Default::default(),
                manifest,
                tables: Default::default(),
                latencies: Vec::new(),
                search: None,
                excerpt: None,
            };
            let (cause, title, missing) = (Cause::DiskFull, "t".to_owned(), "m".to_owned());
            let mut open = [NotJudged { cause, title, missing, enable: enable.to_owned() }];
            ask_for_watched(&mut open, &recording);
            open[0].enable.clone()
        };
        let process = "--watch mysql://USER@HOST:PORT, as an account with PROCESS";
        let pg = "postgresql://h:5432 as a member of pg_monitor";
        assert_eq!(asked(process, vec![entry("host", None)]), process);
        assert_eq!(asked(process, vec![entry("postgresql://h:5432", None)]), pg);
        let both = vec![entry("postgresql://h:5432", None), entry("mysql://h:3306", None)];
        assert_eq!(asked(process, both), "mysql://h:3306 as an account with PROCESS");
        let (grant, extension) = ("GRANT pg_monitor TO me;", "CREATE EXTENSION pg_stat_statements; (in database d)");
        let partial = || {
            vec![
                entry("postgresql://h:5432", Some(grant)),
                entry("postgresql://h:5432 pg_stat_statements", Some(extension)),
            ]
        };
        assert_eq!(asked(process, partial()), grant);
        let digest = "--watch mysql://USER@HOST:PORT, with performance_schema=ON and its consumer statements_digest on";
        assert_eq!(asked(digest, partial()), extension);
        assert_eq!(asked("--watch host", partial()), "--watch host");
    }

    #[test]
    fn a_watched_source_is_asked_for_what_it_lacks() {
        let entry = |source: &str, state| Coverage::new(source, state, Some("refused".to_owned()));
        let coverage = [
            entry("host", CoverageState::Complete),
            entry("server:8080", CoverageState::Partial),
            entry("mysql://h:3306", CoverageState::Absent),
            entry("pid:7", CoverageState::Complete),
        ];
        let asked = |enable: &str| lacked(enable, "its rate", &coverage);
        assert_eq!(asked("--watch host").as_deref(), Some("its rate from host"));
        assert_eq!(asked("--watch server:PORT of the app").as_deref(), Some("its rate from server:8080"));
        let silent = asked("--watch mysql://USER@HOST:PORT, as an account with PROCESS");
        assert_eq!(silent.as_deref(), Some("an answer from mysql://h:3306"));
        assert_eq!(asked("--watch host, or --watch tracepoints").as_deref(), Some("--watch tracepoints"));
        assert_eq!(asked("--watch host, and pid:N for the app").as_deref(), Some("--watch pid:N for the app"));
        assert_eq!(asked("--watch host, or df in pasted text").as_deref(), Some("df in pasted text"));
        // There may be another process, another machine, and another database.
        for other in [
            "--watch pid:N for the app and the database",
            "--watch host on the database's machine",
            "--watch postgresql://USER@HOST:PORT/DATABASE",
            "GRANT pg_monitor TO me;",
        ] {
            assert_eq!(asked(other), None, "{other}");
        }
        // Wherever they stand in the sentence, and whichever database it is.
        let coverage = [
            entry("mongodb://h:27017", CoverageState::Complete),
            entry("server:8080", CoverageState::Complete),
            entry("host", CoverageState::Complete),
        ];
        let asked = |enable: &str| lacked(enable, "its rate", &coverage);
        let any = "--watch mysql://… or postgresql://… or mongodb://…";
        assert_eq!(asked(any).as_deref(), Some("its rate from mongodb://h:27017"));
        let app = "--watch prometheus:http://APP/metrics or --watch mysql://USER@HOST:PORT or --watch mongodb://h, or load from holdup run";
        assert_eq!(asked(app).as_deref(), Some("--watch prometheus:http://APP/metrics"));
        let way = "--watch server:PORT of the app, beside --watch mysql://USER@HOST:PORT or mongodb://USER@HOST:PORT; and --watch host on the database's machine, for its round trips";
        assert_eq!(asked(way).as_deref(), Some("--watch host on the database's machine, for its round trips"));
        let packets = "--watch wire:PORT, or --watch server:PORT of the app, or pid:N of the app";
        assert_eq!(asked(packets).as_deref(), Some("--watch wire:PORT or --watch pid:N of the app"));
        assert_eq!(asked("--watch mysql://… or postgresql://…, of the replica"), None);
        let coverage = [entry("mysql://h:3306", CoverageState::Complete)];
        assert_eq!(lacked("--watch mysql://… or postgresql://… of the replica", "calls", &coverage), None);
        let statements = "--watch mysql://USER@HOST:PORT, with performance_schema=ON";
        let told = lacked(statements, "calls", &coverage);
        assert_eq!(told.as_deref(), Some("mysql://h:3306 with performance_schema=ON"));
    }

    #[test]
    fn a_server_that_is_not_there_has_no_causes() {
        let watched = |mysql, postgresql| Watched { mysql, postgresql, ..Watched::default() };
        assert!(
            !watched(true, false).can_have(Cause::ToastRewrite)
                && watched(true, false).can_have(Cause::TableCacheSmall)
        );
        assert!(
            !watched(false, true).can_have(Cause::TableCacheSmall)
                && watched(false, true).can_have(Cause::ToastRewrite)
        );
        let of_documents = Watched { mongodb: true, ..Watched::default() };
        assert!(of_documents.can_have(Cause::TicketsExhausted) && !of_documents.can_have(Cause::TableCacheSmall));
        for cause in Cause::ALL.iter().copied() {
            let is_of_others =
                matches!(cause.definition().occurs, Occurs::OnMongodb | Occurs::OnRedis | Occurs::OnElasticsearch);
            assert_eq!(watched(false, false).can_have(cause), !is_of_others, "{cause}");
            assert_eq!(watched(true, true).can_have(cause), !is_of_others, "{cause}");
        }
    }
}
