//! Lines by which a program itself names what is wrong: it ran out of connections, workers or a pool's
//! slots, gave up waiting for a lock, could not flush, began anew. Each phrase is the program's own
//! message, printed under that condition alone, so the line counts wherever it stands: in any log, with
//! any prefix, or quoted in prose.

use holdup_recording::{Labels, events};

use super::{Context, Kind, Line, clock, number, text};

pub(super) const KIND: Kind = Kind::lines("messages of programs", |lines| meaning(text(lines, 0)).is_some(), read);

/// What a message means.
struct Meaning {
    /// The event's kind and a label: the name of an error, or why a server began anew.
    event: (&'static str, (&'static str, &'static str)),
    /// In a sentence.
    says: &'static str,
    /// Texts that all stand in the line, in lower case: one of these lists suffices.
    phrases: &'static [&'static [&'static str]],
}

const fn error(name: &'static str, says: &'static str, phrases: &'static [&'static [&'static str]]) -> Meaning {
    Meaning { event: (events::ERROR, ("error", name)), says, phrases }
}

const fn restart(why: &'static str, says: &'static str, phrases: &'static [&'static [&'static str]]) -> Meaning {
    Meaning { event: (events::RESTART, ("why", why)), says, phrases }
}

/// The messages: of databases, poolers, proxies, app servers, pools of connections and runtimes, as their
/// sources and manuals have them.
const MEANINGS: &[Meaning] = &[
    error(
        events::TOO_MANY_CONNECTIONS,
        "a server refused connections because its limit was reached",
        &[
            &["too many connections"],
            &["too many clients already"],
            &["remaining connection slots are reserved"],
            &["connection limit exceeded for"],
            &["already has more than 'max_user_connections'"],
            &["max number of clients reached"],
            &["no more connections allowed"],
            &["connection refused because too many open connections"],
            &["worker_connections are not enough"],
            &["max_client_conn"],
            &["maxclients"],
        ],
    ),
    error(
        events::POOL_TIMEOUT,
        "a request got no connection from the app's pool in time",
        &[
            &["connection is not available, request timed out after"],
            &["timeout failure stats (total="],
            &["queuepool limit of size"],
            &["could not obtain a connection from the pool within"],
            &["could not obtain a database connection within"],
            &["connectiontimeouterror", "pool"],
            &["timeout acquiring a connection"],
            &["resourcerequest timed out"],
            &["pool error timeout waiting for idle object"],
            &["timed out fetching a new connection from the connection pool"],
            &["obtaining a connection from the pool"],
            &["timeout waiting for connection from pool"],
            &["connection pool exhausted"],
            &["pool is exhausted"],
            &["poolexhausted"],
            &["couldn't get a connection after"],
            &["query_wait_timeout"],
            &["max connections reached while connecting to hostgroup"],
            &["waitqueuetimeouterror"],
            &["timed out while checking out a connection from connection pool"],
        ],
    ),
    error(
        events::WORKERS_BUSY,
        "every worker of an app server was busy",
        &[
            &["reached pm.max_children"],
            &["reached max_children setting"],
            &["reached maxrequestworkers"],
            &["reached maxclients setting"],
            &["all threads", "are currently busy"],
            &["server seems busy, (you may need to increase"],
            &["task queue depth is"],
            &["rejectedexecutionexception"],
            &["rejected_execution_exception"],
            &["no free worker"],
            &["maximum number of threads", "reached"],
            &["threadpool", "starvation"],
        ],
    ),
    error(
        events::LOCK_TIMEOUT,
        "a statement gave up waiting for a lock",
        &[
            &["lock wait timeout exceeded"],
            &["canceling statement due to lock timeout"],
            &["could not obtain lock on"],
            &["database is locked"],
            &["lock request time out period exceeded"],
            &["timed out waiting to acquire lock"],
        ],
    ),
    Meaning {
        event: (events::DEADLOCK, ("error", "deadlock")),
        says: "sessions waited for each other's locks, and one was rolled back",
        phrases: &[
            &["deadlock found when trying to get lock"],
            &["deadlock detected"],
            &["was deadlocked on lock resources"],
            &["ora-00060"],
        ],
    },
    error(
        events::SLOW_FLUSH,
        "a server waited long until its log was on the disk",
        &[
            &["slow fdatasync"],
            &["wal: sync duration of"],
            &["aof fsync is taking too long"],
            &["failed to send out heartbeat on time"],
            &["took too long", "fsync"],
        ],
    ),
    error(
        events::CHECKPOINTS,
        "a database flushed its pages too often, or could not keep up with it",
        &[
            &["checkpoints are occurring too frequently"],
            &["page_cleaner", "intended loop took"],
            &["async flush", "log capacity"],
            &["waiting for checkpoint", "log"],
        ],
    ),
    error(
        events::QUEUE_FULL,
        "a server's queue of new connections was full",
        &[&["listen queue of socket", "full"], &["accept queue", "full"], &["listen backlog", "full"]],
    ),
    error(
        events::UPSTREAM_TIMEOUT,
        "a proxy gave up waiting for the answer of the server behind it",
        &[
            &["upstream timed out", "reading response header"],
            &["timeout specified has expired", "reading from remote server"],
            &["upstream request timeout"],
            &["at=error code=h12"],
        ],
    ),
    error(
        events::UPSTREAM_UNREACHABLE,
        "a proxy could not connect to the server behind it",
        &[&["connect() failed", "while connecting to upstream"], &["no live upstreams"], &["at=error code=h19"]],
    ),
    error(
        events::SPILLED,
        "a statement sorted or hashed on disk because its memory did not suffice",
        &[&["sort method: external"], &["temporary file: path"], &["batches:", "disk usage:"]],
    ),
    error(
        events::ROWS_KEPT,
        "vacuum could not remove dead rows that an old snapshot may still see",
        &[
            &["dead row versions cannot be removed yet"],
            &["are dead but not yet removable"],
            &["oldest xmin is far in the past"],
        ],
    ),
    error(
        events::WRAPAROUND,
        "transaction ids ran short because vacuum fell behind",
        &[&["to avoid wraparound"], &["must be vacuumed within", "transactions"], &["prevent wraparound"]],
    ),
    error(
        events::OUT_OF_MEMORY,
        "a server had no memory for a request",
        &[
            &["out of memory (needed"],
            &["oom command not allowed when used memory"],
            &["error: out of memory"],
            &["cannot allocate memory"],
            &["data too large, data for"],
        ],
    ),
    restart(
        events::CRASH,
        "a server began anew after a crash",
        &[
            &["starting crash recovery"],
            &["database system was interrupted"],
            &["was not properly shut down"],
            &["all server processes terminated; reinitializing"],
            &["server process", "was terminated by signal"],
            &["detected unclean shutdown"],
            &["starting recovery", "engine"],
        ],
    ),
    restart(
        events::FAILOVER,
        "a standby took over",
        &[
            &["transition to primary complete"],
            &["promoted self to leader"],
            &["received promote request"],
            &["multi-az instance failover"],
            &["stepping down from primary"],
        ],
    ),
    restart(
        events::REQUESTED,
        "a server was shut down in an orderly way",
        &[
            &["normal shutdown"],
            &["received fast shutdown request"],
            &["received smart shutdown request"],
            &["user requested shutdown"],
        ],
    ),
    restart(
        events::UNKNOWN,
        "a server began anew",
        &[&["mysqld_safe starting"], &["mysqld", "starting as process"], &["***** server restarted *****"]],
    ),
    Meaning {
        event: (events::OUT_OF_MEMORY_KILL, ("scope", "cgroup")),
        says: "a container was killed for lack of memory",
        phrases: &[&["reason", "oomkilled"], &["oom-killed"]],
    },
];

/// What a line says; none if no message stands in it.
fn meaning(line: &str) -> Option<&'static Meaning> {
    let line = line.to_lowercase();
    let says = |meaning: &&Meaning| meaning.phrases.iter().any(|all| all.iter().all(|phrase| line.contains(phrase)));
    MEANINGS.iter().find(says)
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some((line, meaning)) = lines.first().and_then(|line| Some((line, meaning(&line.text)?))) else { return 1 };
    let (kind, (label, value)) = meaning.event;
    let of_journal = || clock::of_journal(&line.text, context.now());
    let at = line.stamp.or_else(of_journal).unwrap_or_else(|| context.instant());
    let mut says = meaning.says.to_owned();
    if let Some(waiting) = counted(&line.text, "waiting=") {
        says += &format!(" ({waiting:.0} requests waited for one)");
    }
    context.out.event(at, kind, says, Labels::new([(label, value)]));
    1
}

/// The number after `name`.
fn counted(line: &str, name: &str) -> Option<f64> {
    let (_, rest) = line.split_once(name)?;
    number(rest.split(|c: char| !c.is_ascii_digit()).next()?)
}
