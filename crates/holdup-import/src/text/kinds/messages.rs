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
    event: Event,
    /// In a sentence.
    says: &'static str,
    /// Texts that all stand in the line, in lower case: one of these lists suffices.
    phrases: Phrases,
    /// Whether such a line, in lower case, says it: of some, healthy programs print as well, the number decides.
    counts: fn(&str) -> bool,
}

type Event = (&'static str, (&'static str, &'static str));
type Phrases = &'static [&'static [&'static str]];

const fn event(event: Event, says: &'static str, phrases: Phrases) -> Meaning {
    Meaning { event, says, phrases, counts: |_| true }
}

const fn error(name: &'static str, says: &'static str, phrases: Phrases) -> Meaning {
    event((events::ERROR, ("error", name)), says, phrases)
}

const fn restart(why: &'static str, says: &'static str, phrases: Phrases) -> Meaning {
    event((events::RESTART, ("why", why)), says, phrases)
}

impl Meaning {
    const fn if_number(self, counts: fn(&str) -> bool) -> Self {
        Self { counts, ..self }
    }
}

/// Said of a pool's own count of those that wait, too.
const NO_CONNECTION: &str = "a request got no connection from the app's pool in time";

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
            &["connection refused because", "too many open connections"],
            &["worker_connections are not enough"],
            &["max clients reached"],
            &["ora-12519"],
        ],
    ),
    error(
        events::POOL_TIMEOUT,
        NO_CONNECTION,
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
            &["max connect timeout reached while reaching hostgroup"],
            &["max_connections reached for all servers"],
            &["waitqueuetimeouterror"],
            &["timed out while checking out a connection from connection pool"],
            &["pool empty. unable to fetch a connection"],
            &["attempt by a client to checkout a connection has timed out"],
            &["getconnectiontimeoutexception"],
            &["no managed connections available within configured blocking timeout"],
            &["no resources currently available in pool"],
            &["connectionwaittimeoutexception"],
            &["connection pool has been exhausted"],
            &["connection pool timeout"],
            &["timeout exceeded when trying to connect"],
            &["connectionacquiretimeouterror"],
            &["sequel::pooltimeout"],
            &["connectionpool::timeouterror"],
            &["connection not available and request was dropped from queue"],
            &["pool#acquire", "has been pending for more than"],
            &["connection acquisition timed out"],
            &["acquire operation took longer", "configured maximum time"],
            &["connection pool reached max wait queue size"],
            &["could not get a resource from the pool"],
            &["waitqueuefullexception"],
            &["timeout waiting for a pooled item"],
            &["timed-out waiting to acquire database connection"],
            &["failed to acquire", "connection", "context deadline exceeded"],
        ],
    ),
    error(events::POOL_TIMEOUT, NO_CONNECTION, &[&["waiting=", "idle=", "active="]]).if_number(is_used_up),
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
            &["maximum number of threads", "created for connector"],
            &["thread pool is exhausted"],
            &["scoreboard is full"],
            &["request queue is full"],
            &["bulkhead", "is full and does not permit further calls"],
            &["could not be queued for execution and no fallback"],
            &["threadpool", "starvation"],
            &["thread pool starvation"],
            &["requestexpiryerror"],
        ],
    ),
    error(
        events::LOCK_TIMEOUT,
        "a statement gave up waiting for a lock",
        &[
            &["lock wait timeout exceeded"],
            &["canceling statement due to lock timeout"],
            &["could not obtain lock on"],
            &["lock request time out period exceeded"],
            &["timed out waiting to acquire lock"],
            &["within a max lock request timeout"],
            &["ora-00054"],
        ],
    ),
    error(
        events::WRITER_WAITED,
        "a statement found the embedded database's lock taken, and gave up",
        &[&["database is locked"], &["sqlite_busy"]],
    ),
    error(
        events::DISK_BUSY,
        "a flush of the append-only file took more than 2 s",
        &[&["aof fsync is taking too long"]],
    ),
    error(
        events::CREDITS_LOW,
        "the volume's credits for bursts are low or used up",
        &[&["burst balance credits", "are low"], &["burst balance", "running low"], &["burst balance", "exhausted"]],
    ),
    error(events::LOCK_TIMEOUT, "a session waited long for a lock", &[&["still waiting for", "lock on", " after "]]),
    event(
        (events::DEADLOCK, ("error", "deadlock")),
        "sessions waited for each other's locks, and one was rolled back",
        &[
            &["deadlock found when trying to get lock"],
            &["deadlock detected"],
            &["was deadlocked on lock resources"],
            &["ora-00060"],
        ],
    ),
    error(
        events::SLOW_FLUSH,
        "a server waited long until its log was on the disk",
        &[
            &["slow fdatasync"],
            &["wal: sync duration of"],
            &["failed to send out heartbeat on time"],
            &["took too long", "fsync"],
            &["fsync-ing the write ahead log", "took"],
            &["apply request took too long"],
        ],
    ),
    error(
        events::CHECKPOINTS,
        "a database flushed its pages too often, or could not keep up with it",
        &[
            &["checkpoints are occurring too frequently"],
            &["page_cleaner", "intended loop took"],
            &["async flush", "log capacity"],
            &["difficult to find free blocks in the buffer pool"],
            &["waiting for checkpoint", "log"],
        ],
    ),
    error(
        events::QUEUE_FULL,
        "a server's queue of new connections was full",
        &[
            &["connect() to unix:", "(11: resource temporarily unavailable)"],
            &["listen queue of socket", "full"],
            &["accept queue", "full"],
            &["listen backlog", "full"],
        ],
    ),
    error(
        events::UPSTREAM_TIMEOUT,
        "a proxy gave up waiting for the answer of the server behind it",
        &[
            &["upstream timed out", "reading response header"],
            &["timeout specified has expired", "reading from remote server"],
            &["upstream request timeout"],
            &["at=error code=h12"],
            &[" sh-- "],
            &["504 gateway time"],
        ],
    ),
    error(
        events::UPSTREAM_TIMEOUT,
        "a client gave up waiting for the answer of a service that it calls",
        &[
            &["sockettimeoutexception", "read timed out"],
            &["readtimeouterror"],
            &["exceptions.readtimeout"],
            &["httpx.readtimeout"],
            &["client.timeout exceeded while awaiting headers"],
            &["esockettimedout"],
            &["net::readtimeout"],
            &["faraday::timeouterror"],
            &["curl error 28"],
            &["due to the configured httpclient.timeout"],
        ],
    ),
    error(
        events::UPSTREAM_UNREACHABLE,
        "a proxy could not connect to the server behind it",
        &[
            &["connect() failed", "while connecting to upstream"],
            &["no live upstreams"],
            &["upstream connect error or disconnect/reset before headers", "connection"],
            &["at=error code=h19"],
        ],
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
    )
    .if_number(has_many_rows),
    error(
        events::QUOTA_RAN_OUT,
        "a monitor saw the quota of CPU run out in more than a quarter of its periods",
        &[&["throttling of cpu"]],
    )
    .if_number(is_often_throttled),
    error(
        events::CHECKPOINTS,
        "a checkpoint waited for seconds until its files were on the disk",
        &[&["checkpoint complete", " sync="]],
    )
    .if_number(is_slow_checkpoint),
    error(
        events::REPEATED_STATEMENTS,
        "a tool of the app saw one request run the same statement for each row",
        &[&["use eager loading detected"], &["n+1 query detected"], &["n+1 queries detected"]],
    ),
    error(
        events::REPLICATION_STOPPED,
        "a replica could not go on, because what it needs is gone or fails",
        &[
            &["requested wal segment", "has already been removed"],
            &["got fatal error 1236"],
            &["slave sql thread aborted"],
            &["invalidating obsolete replication slot"],
        ],
    ),
    error(
        events::HEAP_FULL,
        "the heap of an app was full, and its collector freed hardly anything",
        &[
            &["gc overhead limit exceeded"],
            &["outofmemoryerror: java heap space"],
            &["reached heap limit allocation failed"],
            &["ineffective mark-compacts near heap limit"],
        ],
    ),
    error(
        events::WRAPAROUND,
        "transaction ids ran short because vacuum fell behind",
        &[&["to avoid wraparound"], &["must be vacuumed within", "transactions"]],
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
            &["low on resource: memory"],
            &["memory resource limit alarm set"],
            &["had condition: [memorypressure]"],
            &["error r14 (memory quota exceeded)"],
        ],
    ),
    error(
        events::SCANNED,
        "an operation read a whole collection or table",
        &[&["plansummary: collscan"], &["\"plansummary\":\"collscan\""], &["\"stage\" : \"collscan\""]],
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
            &["mysqld got signal"],
            &["mariadbd got signal"],
            &["main process exited, code=dumped"],
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
    event(
        (events::OUT_OF_MEMORY_KILL, ("scope", "cgroup")),
        "a container was killed for lack of memory",
        &[
            &["reason", "oomkilled"],
            &["oom-killed"],
            &["\"oomkilled\": true"],
            &["oomkilled=true"],
            &["constraint=constraint_memcg"],
            &["killed by yarn for exceeding", "memory"],
            &["error r15 (memory quota vastly exceeded)"],
        ],
    ),
];

/// `41.18% throttling of CPU`, as the usual alert says it.
fn is_often_throttled(line: &str) -> bool {
    const OFTEN_PERCENT: f64 = 25.0;
    before(line, "% throttling").is_some_and(|percent| percent >= OFTEN_PERCENT)
}

/// `checkpoint complete: …; sync=12.406 s`: writing is spread over minutes, and the flush at its end holds up others.
fn is_slow_checkpoint(line: &str) -> bool {
    const SLOW_S: f64 = 3.0;
    let sync = line.split_once("checkpoint complete").and_then(|(_, rest)| rest.split_once(" sync="));
    sync.and_then(|(_, rest)| number(rest.split_whitespace().next()?)).is_some_and(|seconds| seconds >= SLOW_S)
}

/// What a line says; none if no message stands in it.
fn meaning(line: &str) -> Option<&'static Meaning> {
    let line = line.to_lowercase();
    let has = |all: &&[&str]| all.iter().all(|phrase| line.contains(phrase));
    MEANINGS.iter().find(|meaning| meaning.phrases.iter().any(has) && (meaning.counts)(&line))
}

/// `total=10, active=10, idle=0, waiting=5`, as HikariCP tells its state: a pool without an idle connection,
/// for which requests wait.
fn is_used_up(line: &str) -> bool {
    let of = |name: &str| counted(line, name);
    of("waiting=").is_some_and(|waiting| waiting >= 1.0) && of("idle=") == Some(0.0)
}

pub(super) fn read(lines: &[Line], context: &mut Context) -> usize {
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

/// A vacuum says so of none, too, and of those that a statement of the moment may see.
fn has_many_rows(line: &str) -> bool {
    const FEW: f64 = 1_000.0;
    ["dead row versions", "are dead but not yet"].iter().all(|words| before(line, words).is_none_or(|n| n >= FEW))
}

/// The number before `words`.
fn before(line: &str, words: &str) -> Option<f64> {
    number(line.split_once(words)?.0.trim_end().rsplit([' ', '\t']).next()?)
}

/// The number after `name`.
fn counted(line: &str, name: &str) -> Option<f64> {
    let (_, rest) = line.split_once(name)?;
    number(rest.split(|c: char| !c.is_ascii_digit()).next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<&'static str> {
        meaning(line).map(|meaning| meaning.event.1.1)
    }

    #[test]
    fn a_programs_own_words_count_wherever_they_stand() {
        for (line, meant) in [
            ("FATAL:  sorry, too many clients already", events::TOO_MANY_CONNECTIONS),
            ("I saw `[alert] 7#0: 512 worker_connections are not enough` twice", events::TOO_MANY_CONNECTIONS),
            (
                "WARNING: [pool web] server reached pm.max_children setting (9), consider raising it",
                events::WORKERS_BUSY,
            ),
            (
                "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00",
                events::POOL_TIMEOUT,
            ),
            ("ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction", events::LOCK_TIMEOUT),
            ("LOG:  checkpoints are occurring too frequently (11 seconds apart)", events::CHECKPOINTS),
            ("InnoDB: Starting crash recovery from checkpoint LSN=7", events::CRASH),
            ("   Sort Method: external merge  Disk: 812kB", events::SPILLED),
            ("HikariPool-1 - Pool stats (total=10, active=10, idle=0, waiting=23)", events::POOL_TIMEOUT),
            ("redis.clients.jedis.JedisException: Could not get a resource from the pool", events::POOL_TIMEOUT),
            ("process 812 still waiting for ShareLock on transaction 7 after 1000.1 ms", events::LOCK_TIMEOUT),
            ("Maximum number of threads (200) created for connector with port 8443", events::WORKERS_BUSY),
            ("java.net.SocketTimeoutException: Read timed out", events::UPSTREAM_TIMEOUT),
            ("Description: 38.42% throttling of CPU in namespace shop for container web", events::QUOTA_RAN_OUT),
            (
                "LOG:  checkpoint complete: wrote 9 buffers; write=11.2 s, sync=7.411 s, total=18.6 s",
                events::CHECKPOINTS,
            ),
            ("USE eager loading detected\n  Post => [:author]", events::REPEATED_STATEMENTS),
        ] {
            assert_eq!(of(line), Some(meant), "{line}");
        }
        for calm in [
            "   Sort Method: quicksort  Memory: 25kB",
            "we use a connection pool of 20 with a time-out",
            "DETAIL:  0 dead row versions cannot be removed yet, oldest xmin: 812044",
            "tuples: 12 removed, 412044 remain, 3 are dead but not yet removable, oldest xmin: 81204",
            "max_client_conn = 100",
            "Description: 3.10% throttling of CPU in namespace shop for container web",
            "LOG:  checkpoint complete: wrote 9 buffers; write=269.1 s, sync=0.021 s, total=269.2 s",
            "automatic vacuum of table \"shop.items\" (to prevent wraparound)",
            "maxclients 10000",
            "HikariPool-1 - Pool stats (total=10, active=2, idle=8, waiting=0)",
        ] {
            assert_eq!(of(calm), None, "{calm}");
        }
    }
}
