//! The tables of a recording, a struct per table. Field names are column names; units come last in a name; `*_at` are
//! nanoseconds since the Unix epoch, in UTC. (`observed_at` rather than `at`, which is a reserved word in DuckDB.)

use crate::labels::Labels;
use crate::table::table;
use crate::text::Text;

table! {
    /// One client request. A request that was due and never sent also has a row, with `sent_at` empty.
    pub struct Request in "requests" {
        /// The scenario's name of the operation, e.g. `search`.
        operation: String,
        /// The load phase in which it was due, e.g. `step 3: 180/s`.
        phase: String,
        /// When the schedule wanted it sent. Response time counts from here.
        intended_at: i64,
        /// When a connection became free for it, at the earliest `intended_at`; empty if none did.
        ready_at: Option<i64>,
        /// When its first byte was passed to the kernel. `sent_at - ready_at` is send lag: the generator's own.
        sent_at: Option<i64>,
        /// When the first byte of the response arrived: the kernel's receive time stamp if available.
        first_byte_at: Option<i64>,
        /// When it ended: last byte arrived, error seen, or given up.
        done_at: i64,
        /// `ok`, or the kind of failure (listed in `docs/recording.md`): `http_status`, `timeout`, `never_sent`,
        /// `connect_failed`, …; or `unfinished` if the run was stopped while it was in flight.
        outcome: String,
        /// The HTTP status, if there was one.
        status: Option<i32>,
        /// Bytes of the response, head and body.
        response_bytes: i64,
        /// Nanoseconds of connecting that this request waited for (0 on a reused connection).
        connect_ns: i64,
        /// Trace id that was sent with it, if any.
        trace_id: Option<String>,
        /// Number of requests of its operation and outcome (success or failure) that it stands for: 1, or more if rows
        /// were sampled. 0 in recordings from before sampling: take it as 1.
        weight: i64,
    }
}

impl Request {
    /// How many requests this row stands for, at least 1.
    pub fn count(&self) -> u64 {
        self.weight.max(1).unsigned_abs()
    }
}

table! {
    /// One raw counter or gauge of one source at one instant. Never a rate.
    pub struct Sample in "samples" {
        /// Middle of the read.
        observed_at: i64,
        /// Duration of the read, in nanoseconds: the value is from somewhere in this window.
        window_ns: i64,
        /// The source, e.g. `host`, `pid:4711`, `mysql://127.0.0.1:3306`, `prometheus:http://…`.
        source: String,
        /// Metric name: units last, counters end in `_total`, ratios in `_ratio`.
        metric: String,
        /// What the value belongs to, e.g. `{"device":"sda","direction":"read"}`, as JSON.
        labels: Labels,
        /// The value as read.
        value: f64,
    }
}

table! {
    /// Sampled OS threads of one process in the same state and place. Before format 1.3 one row per thread.
    pub struct Thread in "threads" {
        /// When its state was read.
        observed_at: i64,
        /// The source that read it.
        source: String,
        /// Process id.
        pid: i64,
        /// Thread id of one of them.
        tid: i64,
        /// Name of the process (`comm` of its main thread).
        process: String,
        /// Name of that thread (its own `comm`).
        thread: String,
        /// State letter of `/proc/PID/stat`: R running or runnable, S sleeping, D uninterruptible, …
        state: String,
        /// Kernel function it sleeps in; empty if the kernel does not say.
        wchan: Option<String>,
        /// Number of its current system call, if readable.
        syscall: Option<i64>,
        /// Nanoseconds on a CPU since it started (`schedstat`); empty if the row covers several threads.
        cpu_ns_total: Option<i64>,
        /// Nanoseconds runnable but waiting for a CPU since it started (`schedstat`); empty if the row covers several.
        run_queue_ns_total: Option<i64>,
        /// Kernel stack, innermost function first, joined by ` < `, e.g. `do_unlinkat < __x64_sys_unlink <
        /// do_syscall_64`; empty if not readable.
        stack: Option<String>,
        /// The file of the system call, as the process names it, made absolute: the argument of `unlink`, `openat`,
        /// `rename`, …, or the target of a file descriptor. Digits of its last component are replaced by `?`.
        path: Option<String>,
        /// Number of threads at that place. 0 in recordings from before rows covered several: take it as 1.
        count: i64,
    }
}

impl Thread {
    /// How many threads this row stands for, at least 1.
    pub fn count(&self) -> u64 {
        self.count.max(1).unsigned_abs()
    }
}

table! {
    /// One sampled database session.
    pub struct Session in "sessions" {
        /// When it was read.
        observed_at: i64,
        /// The server.
        source: Text,
        /// The server's connection id.
        session_id: i64,
        /// The server's account name.
        user: Option<Text>,
        /// The client's address and port, e.g. `127.0.0.1:50412`; empty over a Unix socket. Since
        /// 1.4.
        client: Option<Text>,
        /// Current database.
        database: Option<Text>,
        /// The server's own word for its activity, verbatim, e.g. `Sleep`, `Query`.
        command: Text,
        /// The server's own state text, verbatim.
        state: Option<Text>,
        /// Its true state: `queued`, `lock_wait`, `executing`, `idle`. A `queued` session is in the admission queue,
        /// and the server itself reports it as `Sleep`.
        true_state: Text,
        /// Nanoseconds it has waited in the admission queue, if the server says.
        queued_ns: Option<i64>,
        /// Nanoseconds in the present state, if the server says.
        age_ns: Option<i64>,
        /// The session that blocks this one, if known.
        blocked_by: Option<i64>,
        /// Digest of the present statement.
        digest: Option<Text>,
        /// Its text with every literal replaced by `?`.
        digest_text: Option<Text>,
        /// Trace id found in the statement's comment.
        trace_id: Option<Text>,
    }
}

table! {
    /// One execution (`kind` = `execution`, `calls` = 1), or one digest's counters
    /// (`digest_total`; a proxy's are `proxied_total`).
    pub struct Statement in "statements" {
        /// When it ended, or when the counters were read.
        observed_at: i64,
        /// The server.
        source: String,
        /// `execution`, `digest_total` or `proxied_total`.
        kind: String,
        /// The server's connection id, for an execution.
        session_id: Option<i64>,
        /// Identity of the normalised statement.
        digest: String,
        /// The normalised statement: every literal replaced by `?`.
        digest_text: String,
        /// Default database.
        database: Option<String>,
        /// Executions.
        calls: i64,
        /// The server's own timing, nanoseconds.
        duration_ns: i64,
        /// Part of it in table locks, nanoseconds.
        lock_ns: i64,
        /// Rows examined.
        rows_examined: i64,
        /// Rows sent.
        rows_sent: i64,
        /// Executions that failed.
        errors: i64,
        /// Rows changed. Since format 1.4, like the columns below except the trace id.
        rows_affected: i64,
        /// Executions that used no index for at least one table.
        no_index: i64,
        /// Temporary tables, in memory or on disk.
        temporary_tables: i64,
        /// Temporary tables on disk.
        temporary_disk_tables: i64,
        /// Trace id found in the statement's comment.
        trace_id: Option<String>,
    }
}

table! {
    /// One step of one statement, by the server's own timing. Since format 1.4.
    pub struct Stage in "stages" {
        /// When it ended.
        observed_at: i64,
        /// The server.
        source: String,
        /// The server's connection id.
        session_id: Option<i64>,
        /// Identity of the normalised statement that it is a step of.
        digest: String,
        /// The server's name of the step, verbatim, e.g. `stage/sql/Sending data`.
        stage: String,
        /// The server's own timing, nanoseconds.
        duration_ns: i64,
        /// Trace id found in the statement's comment.
        trace_id: Option<String>,
    }
}

table! {
    /// The app's timing of one request, or of one wait within a request: a span, or a sum of waits from a log or a
    /// response's header. Since format 1.4.
    pub struct Span in "spans" {
        /// When it began, by the app's clock; for a sum of waits, when the request began.
        started_at: i64,
        /// Duration, nanoseconds.
        duration_ns: i64,
        /// The source: `otlp`, `otlp:ADDRESS`, `log:PATH`, `server_timing`.
        source: String,
        /// The service that reported it (`service.name`); empty if unknown.
        service: String,
        /// Trace id: 32 hex digits.
        trace_id: String,
        /// Its own id, 16 hex digits.
        span_id: Option<String>,
        /// Id of the span that contains it.
        parent_id: Option<String>,
        /// Its name, without anything that looks like a value.
        name: String,
        /// `server`, `client`, `internal`, `producer`, `consumer`.
        kind: String,
        /// The kind of time: `request` (all of it, as the app sees it), or a wait for `database`, `pool`, `http`,
        /// `cache`, `queue`; `other`.
        resource: String,
        /// The resource's name, e.g. `mariadb`, `redis`, or the downstream service.
        system: Option<String>,
        /// Address and port of the peer.
        peer: Option<String>,
        /// Digest of the statement, for a database.
        digest: Option<String>,
        /// Its text with every literal replaced by `?`.
        digest_text: Option<String>,
        /// `ok`, `error` or `unset`.
        status: String,
        /// Number of calls it sums.
        calls: i64,
    }
}

table! {
    /// One request of a database's protocol and its response, from the packets of one connection. Since format 1.4.
    pub struct Exchange in "exchanges" {
        /// The source: `wire:PORT`, `pcap:FILE`.
        source: String,
        /// Where it was captured: `server` (on the server's machine), `client`, `loopback` if both are the same, or
        /// `unknown`.
        side: String,
        /// `mysql` or `postgresql`.
        protocol: String,
        /// Address and port of the client.
        client: String,
        /// Address and port of the server.
        server: String,
        /// The server's connection id, if its greeting was captured.
        session_id: Option<i64>,
        /// `query`, `prepare`, `execute`, `login`, `other`, or `opaque` (encrypted: timing only).
        kind: String,
        /// Digest of the statement.
        digest: Option<String>,
        /// Its text with every literal replaced by `?`.
        digest_text: Option<String>,
        /// Trace id found in the statement's comment.
        trace_id: Option<String>,
        /// When its first byte was seen.
        request_at: i64,
        /// When its last byte was seen.
        request_end_at: i64,
        /// When the first byte of the response was seen.
        first_byte_at: Option<i64>,
        /// When the last byte of the response was seen, or it ended in another way.
        done_at: i64,
        /// `ok`, `error` (reported by the server), `closed` (without a response), `unfinished` (when the capture
        /// ended), `lost` (packets of it are missing, so its times are unreliable).
        outcome: String,
        /// The server's error code.
        error: Option<String>,
        /// Bytes of the request, without packet headers.
        request_bytes: i64,
        /// Bytes of the response, without packet headers.
        response_bytes: i64,
        /// Earlier requests of the same connection that were still unanswered (pipelining).
        ahead: i64,
        /// Segments of it that were retransmitted.
        retransmits: i64,
        /// TCP sequence number of the segment that began it: the same on both ends of the connection. Since 1.8.
        request_seq: Option<i64>,
    }
}

table! {
    /// One execution of a statement by `holdup replay`. Every execution has a row. Since format 1.6.
    pub struct Execution in "executions" {
        /// Its number in the log, from 0, by start: the same in each replay of the same log.
        number: i64,
        /// Number of its session, from 0.
        session: i64,
        /// Digest of the statement.
        digest: String,
        /// When it was due: as in the log, scaled by the replay's speed.
        intended_at: i64,
        /// When its first byte was passed to the kernel. Empty if it never was.
        sent_at: Option<i64>,
        /// When it ended.
        done_at: i64,
        /// As in `requests`.
        outcome: String,
        /// The server's error code.
        error: Option<String>,
        /// Rows received.
        rows: i64,
        /// Rows that it changed, as counted by the server.
        affected: i64,
        /// Warnings counted by the server.
        warnings: i64,
        /// Hash of the rows, if they were hashed.
        rows_hash: Option<i64>,
        /// Duration in the log, nanoseconds; empty if the log does not say.
        logged_ns: Option<i64>,
        /// Trace id found in its comment.
        trace_id: Option<String>,
    }
}

table! {
    /// A server's plan for one statement at one time; for an execution that was logged with its plan also the actual
    /// figures. Since format 1.5.
    pub struct Plan in "plans" {
        /// When it was executed or planned.
        observed_at: i64,
        /// The server.
        source: String,
        /// `auto_explain` (the server logged it after an execution), `explain` (requested, not executed), `analyze`
        /// (requested and executed). Only plans of one kind are compared.
        kind: String,
        /// The server's connection id of the session that ran the statement.
        session_id: Option<i64>,
        /// Identity of the normalised statement.
        digest: String,
        /// Its text with every literal replaced by `?`.
        digest_text: String,
        /// Default database.
        database: Option<String>,
        /// Identity of the plan's structure: kinds of nodes, tables, indexes, kinds and order of joins; no figures.
        shape: String,
        /// The tree, as JSON without values: see `plan::Node`.
        plan: String,
        /// Duration of that execution, nanoseconds.
        duration_ns: Option<i64>,
        /// The planner's cost of the whole plan, in the server's own unit.
        cost: Option<f64>,
        /// Rows that the planner expected.
        rows_estimated: Option<f64>,
        /// Actual rows.
        rows_actual: Option<f64>,
        /// Trace id found in the statement's comment.
        trace_id: Option<String>,
    }
}

table! {
    /// One setting of a host, mount, device, server or container.
    pub struct Setting in "settings" {
        /// When it was read.
        observed_at: i64,
        /// The source it belongs to.
        source: String,
        /// Its name there, e.g. `thread_pool_size`, `net.core.somaxconn`.
        name: String,
        /// Its value as text, secrets left out.
        value: String,
    }
}

table! {
    /// An event: a phase began, a server restarted, an error, a mark.
    pub struct Event in "events" {
        /// Its time.
        observed_at: i64,
        /// The source that saw it.
        source: String,
        /// Its kind, e.g. `phase`, `restart`, `error`, `mark`.
        kind: String,
        /// In words.
        text: String,
        /// Further facts.
        labels: Labels,
    }
}
