//! Synthetic recordings of requests with known waits, as reported by the app, the server and
//! packets. Never compiled into holdup.

use holdup_recording::rows::{Exchange, Request, Session, Span, Statement};

use crate::testing::SyntheticRecording;

const MS: f64 = 1e6;
const S: i64 = 1_000_000_000;

/// Requests per second.
pub const RATE: i64 = 40;
/// Seconds.
pub const SECONDS: i64 = 20;
/// Nothing is injected before this second.
pub const BASELINE_S: i64 = 8;

/// The waits of each request, milliseconds, on top of its usual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Injected {
    /// For a connection of the pool.
    pub pool: f64,
    /// For another service.
    pub downstream: f64,
    /// Between app and database, both ways together.
    pub database_network: f64,
    /// In front of execution, in the database.
    pub admission: f64,
    /// For a lock.
    pub lock: f64,
    /// While the statement runs.
    pub execution: f64,
    /// Between client and app.
    pub network: f64,
    /// In the app itself.
    pub app: f64,
    /// Further database calls, each of 1 ms.
    pub calls: i64,
}

/// Nothing is injected.
pub const NONE: Injected = Injected {
    pool: 0.0,
    downstream: 0.0,
    database_network: 0.0,
    admission: 0.0,
    lock: 0.0,
    execution: 0.0,
    network: 0.0,
    app: 0.0,
    calls: 0,
};

/// The sources that report.
#[derive(Clone, Copy, Debug)]
pub struct ReportingSources {
    /// Spans of the app.
    pub spans: bool,
    /// Single statements of the server.
    pub executions: bool,
    /// Packets of the server's side, and of the client's.
    pub wire: (bool, bool),
    /// The server's tables of its thread pool.
    pub pool_tables: bool,
    /// Whether statements have their trace id in them.
    pub trace_in_statements: bool,
}

/// All of them.
pub const ALL: ReportingSources = ReportingSources {
    spans: true,
    executions: true,
    wire: (true, true),
    pool_tables: true,
    trace_in_statements: true,
};

/// The trace id of request `i`.
pub fn trace(i: i64) -> String {
    format!("{:032x}", 0xabc0_0000 + i as u128)
}

/// One request's rows, from `at` on (nanoseconds); gives its end.
struct Line<'m> {
    at: f64,
    trace: String,
    spans: &'m mut Vec<Span>,
    number: i64,
}

impl Line<'_> {
    fn span(&mut self, id: &str, resource: &str, from: f64, to: f64) -> &mut Span {
        self.spans.push(Span {
            started_at: from as i64,
            duration_ns: (to - from) as i64,
            source: "otlp".into(),
            service: "shop".into(),
            trace_id: self.trace.clone(),
            span_id: Some(format!("{id}{:012x}", self.number)),
            parent_id: (resource != "request").then(|| format!("root{:012x}", self.number)),
            name: format!("{resource} {id}"),
            kind: "client".into(),
            resource: resource.into(),
            calls: 1,
            ..Span::default()
        });
        let last = self.spans.len() - 1;
        &mut self.spans[last]
    }
}

/// The recording.
pub fn made(injected: Injected, told: ReportingSources) -> SyntheticRecording {
    let slow = |second: i64| if second >= BASELINE_S { injected } else { Injected::default() };
    let (mut requests, mut spans, mut statements, mut exchanges, mut sessions) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for i in 0..RATE * SECONDS {
        let started = i * S / RATE;
        let waits = slow(started / S);
        let trace_id = trace(i);
        let text = told.trace_in_statements.then(|| trace_id.clone());
        let mut line = Line { at: started as f64, trace: trace_id.clone(), spans: &mut spans, number: i };
        line.at += waits.network * MS / 2.0 + 0.2 * MS;
        let app_from = line.at;
        line.at += 1.0 * MS;
        let pool_from = line.at;
        line.at += (waits.pool + 0.1) * MS;
        let to = line.at;
        line.span("pool", "pool", pool_from, to);
        let neighbour_from = line.at;
        line.at += (waits.downstream + 2.0) * MS;
        let to = line.at;
        line.span("http", "http", neighbour_from, to).system = Some("stock.example".into());
        let port = 40_000 + i % 50;
        for call in 0..=waits.calls {
            let first = if call == 0 { waits } else { Injected { execution: 0.9, ..Injected::default() } };
            let call_from = line.at;
            line.at += (first.database_network / 2.0 + 0.05) * MS;
            let arrived = line.at;
            line.at += first.admission * MS;
            let (executes, executed) = (line.at, (first.lock + first.execution + 1.0) * MS);
            line.at += executed;
            let answered = line.at;
            line.at += (first.database_network / 2.0 + 0.05) * MS;
            let to = line.at;
            line.span(&format!("d{call:03}"), "database", call_from, to).digest =
                Some(format!("digest {}", call.min(1)));
            statements.push(Statement {
                observed_at: (executes + executed) as i64,
                source: "mysql://db:3306".into(),
                kind: "execution".into(),
                session_id: Some(port - 40_000),
                digest: format!("digest {}", call.min(1)),
                digest_text: format!("SELECT {}", call.min(1)),
                calls: 1,
                duration_ns: executed as i64,
                trace_id: text.clone(),
                ..Statement::default()
            });
            let seen = |side: &str, from: f64, to: f64| Exchange {
                source: "wire:3306".into(),
                side: side.into(),
                protocol: "mysql".into(),
                client: format!("10.0.0.1:{port}"),
                server: "10.0.0.2:3306".into(),
                kind: "query".into(),
                trace_id: text.clone(),
                request_at: from as i64,
                request_end_at: from as i64,
                first_byte_at: Some(to as i64),
                done_at: to as i64,
                outcome: "ok".into(),
                ..Exchange::default()
            };
            let sides =
                [(told.wire.0, seen("server", arrived, answered)), (told.wire.1, seen("client", call_from, to))];
            exchanges.extend(sides.into_iter().filter(|(told, _)| *told).map(|(_, exchange)| exchange));
        }
        line.at += waits.app * MS;
        let to = line.at;
        line.span("root", "request", app_from, to).kind = "server".into();
        line.at += waits.network * MS / 2.0 + 0.2 * MS;
        requests.push(Request {
            operation: "get".into(),
            phase: "load".into(),
            intended_at: started,
            ready_at: Some(started),
            sent_at: Some(started),
            first_byte_at: Some(line.at as i64),
            done_at: line.at as i64,
            outcome: "ok".into(),
            trace_id: Some(trace_id),
            weight: 1,
            ..Request::default()
        });
    }
    // By Little's law: so many wait at any moment.
    let waiting = |ms: f64| (ms / 1e3 * RATE as f64).ceil() as i64;
    for second in 0..=SECONDS {
        let (queued, locked) = (waiting(slow(second).admission), waiting(slow(second).lock));
        for n in 0..50 {
            let (true_state, command) = match n {
                n if n < queued && told.pool_tables => ("queued", "Sleep"),
                n if n >= queued && n < queued + locked => ("lock_wait", "Query"),
                _ => ("idle", "Sleep"),
            };
            sessions.push(Session {
                observed_at: second * S,
                source: "mysql://db:3306".into(),
                session_id: n,
                client: Some(format!("10.0.0.1:{}", 40_000 + n).into()),
                command: command.into(),
                true_state: true_state.into(),
                ..Session::default()
            });
        }
    }
    let source = "mysql://db:3306";
    let per_s = |second: i64, ms: f64| (second - BASELINE_S).max(0) as f64 * ms * RATE as f64;
    let mut made = SyntheticRecording::new(SECONDS)
        // With an objective that what nothing is injected into meets.
        .requests(RATE, 100)
        .setting(source, "thread_handling", "pool-of-threads")
        .counted(source, "mysql_global_status_innodb_row_lock_time", &[], |s| per_s(s, injected.lock))
        .counter(source, "mysql_global_status_questions", &[], RATE as f64)
        .gauge(source, "mysql_global_status_threads_connected", &[], 50.0)
        .gauge(source, "mysql_sessions", &[("true_state", "idle"), ("command", "Sleep")], 50.0);
    if told.pool_tables {
        let queued = waiting(injected.admission) as f64;
        made =
            made.counted(source, "mysql_thread_pool_queue_length", &[], |s| if s >= BASELINE_S { queued } else { 0.0 });
    }
    made.tables(|tables| {
        tables.requests.rows = requests;
        tables.sessions.present = true;
        tables.sessions.rows = sessions;
        if told.spans {
            (tables.spans.present, tables.spans.rows) = (true, spans);
        }
        if told.executions {
            (tables.statements.present, tables.statements.rows) = (true, statements);
        }
        if !exchanges.is_empty() {
            (tables.exchanges.present, tables.exchanges.rows) = (true, exchanges);
        }
    })
}
