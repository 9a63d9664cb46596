//! Every command that the source sends. It cannot send another: a connection takes a [`Command`], and
//! each of these only reads. The server limits the time of each.

use holdup_mongodb::{OWN_NAME, Writer};
use holdup_protocol::database::mongodb::ADMIN;

/// The server ends a command after this time, milliseconds.
const TIME_MS: i32 = 2_000;

/// Most operations of one read.
pub(super) const OPERATIONS_MAX: i32 = 500;

/// Most collections of a database that are listed.
const COLLECTIONS_MAX: i32 = 100;

/// Most entries of a database's profiler that are read at once.
pub(super) const PROFILED_MAX: i32 = 500;

/// Most indexes of a collection: a server allows 64.
const INDEXES_MAX: i32 = 64;

/// A command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command<'a> {
    /// The version.
    Build,
    /// Counters and gauges of the whole server.
    Status,
    /// Operations in progress.
    Operations,
    /// The same, of a server without the stage `$currentOp`. It has no limit of its own.
    OldOperations,
    /// The use of each collection.
    Top,
    /// The databases and their sizes.
    Databases,
    /// The collections of a database.
    Collections(&'a str),
    /// The sizes of a collection: database and name.
    Sizes(&'a str, &'a str),
    /// How often each index of a collection was used: database and name.
    IndexUses(&'a str, &'a str),
    /// What the profiler of a database has kept since that instant (milliseconds since 1970), the newest
    /// first; without an instant the newest alone.
    Profiled(&'a str, Option<i64>),
    /// The members of the replica set.
    ReplicaSet,
    /// Parameters.
    Parameters,
    /// What the configuration file and the command line set.
    Options,
}

impl<'a> Command<'a> {
    /// The database that it goes to.
    pub(super) fn database(self) -> &'a str {
        match self {
            Self::Collections(database)
            | Self::Sizes(database, _)
            | Self::IndexUses(database, _)
            | Self::Profiled(database, _) => database,
            _ => ADMIN,
        }
    }

    /// The document to send.
    pub(super) fn document(self) -> Writer {
        let command = Writer::new();
        let command = match self {
            Self::Build => command.int("buildInfo", 1),
            // The allocator's statistics take it time.
            Self::Status => command.int("serverStatus", 1).int("tcmalloc", 0),
            Self::Operations => {
                let what = Writer::new().bool("allUsers", true).bool("idleConnections", false);
                let stages = [("$currentOp", Some(what)), ("$limit", None)];
                aggregate(command.int("aggregate", 1), stages, OPERATIONS_MAX)
            }
            Self::OldOperations => command.int("currentOp", 1),
            Self::Top => command.int("top", 1),
            Self::Databases => command.int("listDatabases", 1),
            Self::Collections(_) => command
                .int("listCollections", 1)
                .bool("nameOnly", true)
                .bool("authorizedCollections", true)
                .document("cursor", Writer::new().int("batchSize", COLLECTIONS_MAX)),
            Self::Sizes(_, name) => command.text("collStats", name),
            Self::IndexUses(_, name) => {
                let stages = [("$indexStats", Some(Writer::new())), ("$limit", None)];
                aggregate(command.text("aggregate", name), stages, INDEXES_MAX)
            }
            Self::Profiled(_, since) => {
                let own = Writer::new().text("$ne", OWN_NAME);
                let filter = Writer::new().document("appName", own);
                let (filter, limit) = match since {
                    Some(since) => (filter.document("ts", Writer::new().time("$gt", since)), PROFILED_MAX),
                    None => (filter, 1),
                };
                let find = command.text("find", "system.profile").document("filter", filter);
                let find = find.document("sort", Writer::new().int("$natural", -1));
                find.int("limit", limit).int("batchSize", limit).bool("singleBatch", true)
            }
            Self::ReplicaSet => command.int("replSetGetStatus", 1),
            Self::Parameters => command.text("getParameter", "*"),
            Self::Options => command.int("getCmdLineOpts", 1),
        };
        // By the comment, a capture of packets knows them for holdup's own.
        command.text("comment", OWN_NAME).int("maxTimeMS", TIME_MS)
    }
}

/// Adds stages, of which those without a document are the limit, and asks for all in one batch.
fn aggregate(command: Writer, stages: [(&str, Option<Writer>); 2], limit: i32) -> Writer {
    let pipeline = stages.into_iter().enumerate().fold(Writer::new(), |list, (index, (name, what))| {
        let stage = match what {
            Some(what) => Writer::new().document(name, what),
            None => Writer::new().int(name, limit),
        };
        list.document(&index.to_string(), stage)
    });
    command.list_of("pipeline", pipeline).document("cursor", Writer::new().int("batchSize", limit))
}

#[cfg(test)]
mod tests {
    use holdup_mongodb::{Document, Value};

    use super::*;

    /// The names of all commands, apart from the greeting and the login.
    const READ_ONLY: &[&str] = &[
        "aggregate",
        "buildInfo",
        "collStats",
        "currentOp",
        "find",
        "getCmdLineOpts",
        "getParameter",
        "listCollections",
        "listDatabases",
        "replSetGetStatus",
        "serverStatus",
        "top",
    ];

    /// The stages of its pipelines. A pipeline that writes ends with `$out` or `$merge`.
    const STAGES: &[&str] = &["$currentOp", "$indexStats", "$limit"];

    /// All of them. The match has no wildcard: a new command does not compile until it is here.
    fn all() -> Vec<Command<'static>> {
        use Command::{
            Build, Collections, Databases, IndexUses, OldOperations, Operations, Options, Parameters, Profiled,
            ReplicaSet, Sizes, Status, Top,
        };
        let all = vec![
            Build,
            Status,
            Operations,
            OldOperations,
            Top,
            Databases,
            Collections("d"),
            Sizes("d", "c"),
            IndexUses("d", "c"),
            Profiled("d", None),
            Profiled("d", Some(7)),
            ReplicaSet,
            Parameters,
            Options,
        ];
        for command in &all {
            match command {
                Build | Status | Operations | OldOperations | Top | Databases | Collections(_) | Sizes(..)
                | IndexUses(..) | Profiled(..) | ReplicaSet | Parameters | Options => {}
            }
        }
        all
    }

    #[test]
    fn nothing_but_reads_can_be_sent() {
        for command in all() {
            let bytes = command.document().finish();
            let document = Document::read(&bytes).unwrap().value().unwrap();
            let name = document.entries()[0].0.as_str();
            assert!(READ_ONLY.contains(&name), "{name}");
            assert_eq!(document.get("maxTimeMS"), Some(&Value::Number(f64::from(TIME_MS))), "{name}");
            assert_eq!(document.get("comment").and_then(Value::text), Some(OWN_NAME), "{name}");
            let reads_profiler = document.get("find").and_then(Value::text) == Some("system.profile");
            assert_eq!(name == "find", reads_profiler, "no document of yours");
            let stages = document.get("pipeline").map(Value::items).unwrap_or_default();
            assert_eq!(name == "aggregate", !stages.is_empty());
            for stage in stages {
                assert!(STAGES.contains(&stage.entries()[0].0.as_str()), "{stage:?}");
            }
            if let Some(limit) = stages.last().map(|stage| stage.get("$limit").unwrap()) {
                assert_eq!(document.at(&["cursor", "batchSize"]), Some(limit), "all of them in the first batch");
            }
        }
    }

    #[test]
    fn a_profiler_is_asked_for_the_newest_that_holdup_did_not_ask_itself() {
        let asked =
            |since| Document::read(&Command::Profiled("d", since).document().finish()).unwrap().value().unwrap();
        let [first, later] = [None, Some(7)].map(asked);
        assert_eq!(later.at(&["filter", "ts", "$gt"]), Some(&Value::Time(7)));
        for (command, most) in [(first, 1.0), (later, f64::from(PROFILED_MAX))] {
            assert_eq!(command.at(&["filter", "appName", "$ne"]).and_then(Value::text), Some(OWN_NAME));
            let number = |path: &[&str]| command.at(path).and_then(Value::number);
            assert_eq!(
                [&["sort", "$natural"][..], &["limit"], &["batchSize"]].map(number),
                [-1.0, most, most].map(Some)
            );
        }
    }

    #[test]
    fn commands_on_the_server_go_to_admin() {
        assert_eq!(Command::Status.database(), "admin");
        assert_eq!([Command::Sizes("d", "c"), Command::IndexUses("d", "c")].map(Command::database), ["d", "d"]);
    }
}
