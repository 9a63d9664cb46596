//! The service's command line.

use std::net::SocketAddr;
use std::time::Duration;

use crate::service::address::DatabaseAddress;
use crate::service::capacity::CapacityOptions;
use crate::service::duration;
use crate::service::script::split_statements;
use crate::service::store::StoreOptions;

/// The route that is served by default.
const DEFAULT_ROUTE: &str = "/vacancy=SELECT id, title, city, salary FROM vacancy WHERE id = {id}";

/// Options of the service.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Address to serve on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,

    /// Address of /metrics and /health, on threads of their own
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,

    /// Allow addresses other than loopback
    #[arg(long)]
    pub allow_remote: bool,

    /// none, sqlite:PATH or mysql://user@host:port/database (password also in HOLDUP_MYSQL_PASSWORD)
    #[arg(long, value_name = "DATABASE", default_value = "none")]
    pub database: DatabaseAddress,

    /// Database connections in the pool
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pool: u32,

    /// Longest wait for a connection of the pool, then 503 [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub pool_timeout: Option<Duration>,

    /// Statements that a GET of PATH runs
    ///
    /// {id} is the query parameter id or a random one. Without SQL, no connection is used. If PATH
    /// is given twice, the last one counts.
    #[arg(long = "route", value_name = "PATH=SQL", value_parser = parse_route)]
    pub routes: Vec<Route>,

    /// Be an order service as well
    ///
    /// POST /auth (JSON user, password) hands out tokens, GET /orders/N needs one; GET and POST
    /// /login (form) and /home use a cookie; /echo returns the request. Every password but `wrong`
    /// is right.
    #[arg(long)]
    pub orders: bool,

    /// Milliseconds the handler keeps its connection after the statement, as for a call to a
    /// downstream service
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub hold_ms: u64,

    /// Time to get a connection out of the pool although one is free
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub pool_checkout_delay: Option<Duration>,

    /// Milliseconds the handler works before it requests a connection
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub work_ms: u64,

    /// Rows of the table vacancy in a new SQLite file; random ids are 1 to N
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rows: u64,

    /// Make the SQLite file or the document store, and end
    #[arg(long)]
    pub seed_only: bool,

    /// Most open client connections
    ///
    /// At that many it stops accepting, and further ones wait in the kernel's accept queue.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub max_connections: u32,

    /// Send spans of each request and its waits to this address, e.g. http://127.0.0.1:4318
    ///
    /// The protocol is OpenTelemetry's. Each statement then begins with the trace's id.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,

    /// Begin each statement for MariaDB with /*traceparent='…'*/, as --otlp does
    #[arg(long)]
    pub trace_sql: bool,

    /// Report in each response's Server-Timing where its time went: total, pool, db, http
    #[arg(long)]
    pub response_timing: bool,

    /// Stop when stdin ends, because the process that started it is gone
    #[arg(long)]
    pub stop_on_stdin_eof: bool,

    /// Options of the document store
    #[command(flatten)]
    pub store: StoreOptions,

    /// Options of the services with known capacity
    #[command(flatten)]
    pub capacity: CapacityOptions,
}

/// A path and its statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The path, as it stands before any `?`.
    pub path: String,
    /// Statements, one after the other on one connection. None: no connection is used.
    pub statements: Vec<String>,
}

fn parse_route(text: &str) -> Result<Route, String> {
    let (path, sql) = text.split_once('=').ok_or("write PATH=SQL, e.g. '/vacancy=SELECT 1'")?;
    if !path.starts_with('/') || path.contains(['?', ' ']) {
        return Err(format!("path `{path}` must start with / and hold neither ? nor space"));
    }
    Ok(Route { path: path.to_owned(), statements: split_statements(sql) })
}

impl Options {
    /// The given routes, or the default one.
    pub(crate) fn routes_or_default(&self) -> Vec<Route> {
        if self.routes.is_empty() { parse_route(DEFAULT_ROUTE).into_iter().collect() } else { self.routes.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_a_path_and_statements() {
        let route = parse_route("/v=SELECT 'a;b=c' FROM t WHERE id = {id}; SELECT 2").expect("a route");
        assert_eq!(route.path, "/v");
        assert_eq!(route.statements, ["SELECT 'a;b=c' FROM t WHERE id = {id}", "SELECT 2"]);
        assert_eq!(parse_route("/live=").expect("a route").statements, Vec::<String>::new());
        assert!(parse_route("v=SELECT 1").is_err());
        assert!(parse_route("/v").is_err());
    }
}
