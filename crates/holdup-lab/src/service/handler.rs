//! The path from a request to its response: the handler's work, the wait for a connection, the
//! statements, and the call to a downstream service during which the connection is held. Each is
//! timed where it happens.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::service::answer::Answer;
use crate::service::database::{Connection, StatementError, Target};
use crate::service::http::Request;
use crate::service::metrics::{Metrics, POOL};
use crate::service::options::Route;
use crate::service::orders::Orders;
use crate::service::pool::Pool;
use crate::service::store::Store;
use crate::service::tracing::{Activity, Trace, Tracing};
use crate::service::{Options, ServiceError, seed};

/// State that all threads of the service share.
pub struct Service {
    /// The measurements.
    pub metrics: Metrics,
    /// The pool of connections; none without a database.
    pub pool: Option<Pool<Connection>>,
    /// Spans, if requested.
    pub tracing: Tracing,
    peer: Option<(String, u16)>,
    pool_checkout_delay: Duration,
    routes: BTreeMap<String, Route>,
    system: &'static str,
    pool_timeout: Option<Duration>,
    hold: Duration,
    work: Duration,
    rows: u64,
    drawn: AtomicU64,
    orders: Option<Orders>,
    store: Option<Store>,
}

impl Service {
    /// Fills and opens the database and its pool.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached, or the document store cannot be opened.
    pub fn open(options: &Options) -> Result<Self, ServiceError> {
        let target = Target::open(options)?;
        let connections = target.connect(options.pool)?;
        Ok(Self {
            metrics: Metrics::default(),
            pool: (!connections.is_empty()).then(|| Pool::new(connections)),
            routes: options.routes_or_default().into_iter().map(|route| (route.path.clone(), route)).collect(),
            tracing: Tracing::new(options.otlp.as_deref(), options.trace_sql, options.response_timing)?,
            peer: target.peer(),
            pool_checkout_delay: options.pool_checkout_delay.unwrap_or_default(),
            system: target.system(),
            pool_timeout: options.pool_timeout,
            hold: Duration::from_millis(options.hold_ms),
            work: Duration::from_millis(options.work_ms),
            rows: options.rows,
            drawn: AtomicU64::new(0),
            orders: options.orders.then(Orders::default),
            store: Store::open(options)?,
        })
    }

    /// Answers one request; counts its waits in `trace`, if it has one.
    pub fn answer(&self, request: &Request, trace: Option<&Trace<'_>>) -> Answer {
        if let Some(answer) = self.orders.as_ref().and_then(|orders| orders.answer(request)) {
            if !self.work.is_zero() {
                thread::sleep(self.work);
            }
            return answer;
        }
        if let Some(answer) = self.store.as_ref().and_then(|store| store.answer(request, &self.metrics)) {
            return answer;
        }
        let Some(route) = self.routes.get(&request.path) else {
            return error(StatusCode::NOT_FOUND, "no such path", String::new());
        };
        if request.method != "GET" {
            return error(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered", route.path.clone());
        }
        let id = match asked_id(&request.query) {
            Ok(id) => id.unwrap_or_else(|| self.draw_id()),
            Err(()) => return error(StatusCode::BAD_REQUEST, "id must be a whole number", route.path.clone()),
        };
        if !self.work.is_zero() {
            thread::sleep(self.work);
        }
        let (status, body) = match &self.pool {
            Some(pool) if !route.statements.is_empty() => self.query(pool, route, id, trace),
            _ => (StatusCode::OK, json!({ "id": id })),
        };
        Answer::json(status, &body, route.path.clone())
    }

    fn query(&self, pool: &Pool<Connection>, route: &Route, id: i64, trace: Option<&Trace<'_>>) -> (StatusCode, Value) {
        let asked = Instant::now();
        if !self.pool_checkout_delay.is_zero() {
            thread::sleep(self.pool_checkout_delay);
        }
        let connection = pool.checkout(self.pool_timeout);
        let obtained = Instant::now();
        self.metrics.pool_wait.observe(POOL, obtained - asked);
        if let Some(trace) = trace {
            trace.waited(Activity::Checkout, asked, connection.is_none());
        }
        let Some(mut connection) = connection else {
            self.metrics.pool_timeouts_total.fetch_add(1, Ordering::Relaxed);
            return (StatusCode::SERVICE_UNAVAILABLE, json!({ "error": "no database connection became free in time" }));
        };
        let result = route.statements.iter().try_fold(Vec::new(), |_, sql| self.run(&mut connection, sql, id, trace));
        // The mistake that this service exists to show: it awaits the downstream service while it
        // holds the connection.
        if !self.hold.is_zero() {
            let called = Instant::now();
            thread::sleep(self.hold);
            self.metrics.downstream.observe("server_address=\"neighbour\"", called.elapsed());
            if let Some(trace) = trace {
                trace.waited(Activity::Downstream, called, false);
            }
        }
        self.metrics.pool_use.observe(POOL, obtained.elapsed());
        pool.give_back(connection);
        match result {
            Err(error) => {
                // The database's words go to the operator, not to the HTTP client.
                eprintln!("{}: {error}", route.path);
                (StatusCode::INTERNAL_SERVER_ERROR, json!({ "error": "the database failed" }))
            }
            Ok(rows) => (StatusCode::OK, json!({ "id": id, "rows": rows })),
        }
    }

    fn run(
        &self,
        connection: &mut Connection,
        sql: &str,
        id: i64,
        trace: Option<&Trace<'_>>,
    ) -> Result<Vec<Value>, StatementError> {
        // SQLite caches prepared statements by their text, which has to stay the same.
        let is_remote = matches!(connection, Connection::Mysql(_));
        let sent = trace.filter(|_| is_remote).map(|trace| trace.statement(sql));
        let begun = Instant::now();
        let result = connection.run(sent.as_deref().unwrap_or(sql), id);
        if let Some(trace) = trace {
            // As drivers report statements with parameters.
            let activity = Activity::Statement(self.system, self.peer.clone(), sql.replace("{id}", "?"));
            trace.waited(activity, begun, result.is_err());
        }
        let word: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
        let labels = format!("db_system_name=\"{}\",db_operation_name=\"{}\"", self.system, word.to_ascii_uppercase());
        self.metrics.operation.observe(&labels, begun.elapsed());
        result
    }

    fn draw_id(&self) -> i64 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        (seed::mix(drawn + 1) % self.rows) as i64 + 1
    }
}

fn asked_id(query: &str) -> Result<Option<i64>, ()> {
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("id="));
    asked.map(|text| text.parse().map_err(|_| ())).transpose()
}

fn error(status: StatusCode, why: &str, route: String) -> Answer {
    Answer::json(status, &json!({ "error": why }), route)
}
