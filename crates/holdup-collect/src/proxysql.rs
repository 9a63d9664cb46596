//! `--watch proxysql://USER@HOST:PORT`: the admin interface of ProxySQL, a proxy between apps and
//! MySQL or MariaDB. It shows how many clients have sent a statement and wait for a server
//! connection: time that neither the app nor the server can tell apart from the server's.
//!
//! The interface speaks MySQL's protocol over tables of SQLite. holdup sends plain SELECTs, each
//! alone. They carry no marker: ProxySQL keeps no record of what its admin interface is asked.
//! Which statement reads what stands in `tables`.

mod tables;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use holdup_protocol::database::Dialect;
use holdup_recording::{Batch, Coverage};

use crate::coverage::{self, Line as _};
use crate::database::{Link, Reads, cannot_connect, refused_login};
use crate::line::Line;
use crate::mysql::address::{self, Address};
use crate::mysql::failure::Failure;
use crate::mysql::{ask, log_in};
use crate::options::Options;
use crate::pace::{Pace, Turn};
use crate::reading::{Out, tell};
use crate::table::Rows;
use crate::{Collector, ProbeError, ReadError};

/// The port of its admin interface.
const PORT: u16 = 6032;

/// Shortest time between two reads of the counters by statement. For each, ProxySQL copies all that
/// it has.
const DIGESTS_EVERY: Duration = Duration::from_secs(10);

const EXAMPLE: &str = "proxysql://USER[:PASSWORD]@HOST[:PORT][?tls=verify|require|off, tls_ca=PATH, password_env=VAR, \
    password_file=PATH, option_file=PATH], with the port of its admin interface";

/// A part that a version or an account may lack.
struct Part {
    name: &'static str,
    sql: &'static str,
    enable: &'static str,
}

const WAITING: Part = Part { name: "waiting clients", sql: tables::WAITING, enable: "ProxySQL 2.0 or later" };

const LIMITS: Part = Part {
    name: "limits of pools",
    sql: tables::LIMITS,
    enable: "an account of admin-admin_credentials, which may change ProxySQL unless admin-read_only is true",
};

const ERRORS: Part = Part { name: "errors of servers", sql: tables::ERRORS, enable: "ProxySQL 2.0.3 or later" };

const DIGESTS: Part = Part { name: "statements", sql: tables::DIGESTS, enable: "ProxySQL 2.0 or later" };

/// Whether each part is there.
#[derive(Clone, Copy, Default)]
struct Has {
    waiting: bool,
    limits: bool,
    errors: bool,
    digests: bool,
}

/// A ProxySQL as a source.
struct ProxySql {
    source: String,
    address: Address,
    link: Link<Line>,
    has: Has,
    /// The list of clients is as long as there are clients.
    waiting: Pace,
    digests: Pace,
}

/// Makes the collector for `proxysql://…`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let address = parse(rest).map_err(|why| format!("{why}; expected {EXAMPLE}"))?;
    Ok(Box::new(ProxySql {
        source: format!("proxysql://{}:{}", address.host, address.port),
        address,
        link: Link::default(),
        has: Has::default(),
        waiting: Pace::default(),
        digests: Pace::slow(DIGESTS_EVERY),
    }))
}

fn parse(rest: &str) -> Result<Address, String> {
    address::read(rest.strip_prefix("//").ok_or("it does not begin with proxysql://")?, PORT)
}

impl ProxySql {
    /// Takes out the connection, and makes a new one after a loss. A new one may be to a ProxySQL of
    /// another version.
    fn connected(&mut self) -> Result<Line, Failure> {
        if let Some(line) = self.link.server.take() {
            return Ok(line);
        }
        let (line, (has, _)) = self.found()?;
        self.has = has;
        Ok(line)
    }

    /// A new connection, what can be read over it, and an entry for each part that cannot.
    fn found(&self) -> Result<(Line, (Has, Vec<Coverage>)), Failure> {
        let connect = |connections: &_| Ok(log_in(&self.address, self.address.port, connections)?);
        self.link.find(connect, |line| find(line, &self.source))
    }

    fn read_digests(&mut self, line: &mut Line, reads: &mut Reads, batch: &mut Batch) {
        let begun = Instant::now();
        let mut out = Out::new(batch, &self.source);
        let read = reads
            .read("statements", || self.digests.read(&mut Turn::default(), begun, ask(line, DIGESTS.sql.to_owned())));
        if let Some(rows) = read {
            tables::put_digests(&rows, &mut out);
        }
    }

    fn unusable(&self, failure: &Failure) -> ProbeError {
        if let Failure::Login(why) = failure {
            return ProbeError::denied(&self.source, why);
        }
        let words = failure.to_string();
        if words.contains("only connect locally") {
            let why = format!("{words}: give it another account, in admin-stats_credentials");
            return ProbeError::denied(&self.source, why);
        }
        // Its errors of statements have the number of a refused login.
        if failure.is_login() && !words.contains("Admin Error") {
            let is_given = !self.address.password.reveal().is_empty();
            let why = refused_login(&words, &self.address.user, is_given, Dialect::Mysql);
            return ProbeError::denied(&self.source, why);
        }
        let hint = match failure {
            Failure::Server(..) => {
                "is this ProxySQL's admin interface (6032 unless admin-mysql_ifaces says otherwise), and not its port for apps or a server?"
            }
            _ => "is ProxySQL running, and is this the port of its admin interface?",
        };
        ProbeError::unreachable(&self.source, format!("{words}; {hint}"))
    }
}

/// What can be read, and an entry for each part that cannot.
fn find(line: &mut Line, source: &str) -> Result<(Has, Vec<Coverage>), Failure> {
    for sql in [tables::FIGURES, tables::POOL] {
        ask(line, sql.to_owned())?;
    }
    let mut absent = Vec::new();
    let mut has = |part: &Part| match ask(line, part.sql.to_owned()) {
        Ok(_) => Ok(true),
        Err(failure @ Failure::Server(..)) => {
            absent.push(coverage::part(source, part.name).absent(failure.to_string()).enable(part.enable));
            Ok(false)
        }
        Err(failure) => Err(failure),
    };
    let has = Has { waiting: has(&WAITING)?, limits: has(&LIMITS)?, errors: has(&ERRORS)?, digests: has(&DIGESTS)? };
    Ok((has, absent))
}

impl Collector for ProxySql {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.link.connections.forget_failures();
        let (line, (has, absent)) = self.found().map_err(|failure| self.unusable(&failure))?;
        (self.link.server, self.has) = (Some(line), has);
        Ok(Coverage::with_parts(&self.source, absent))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut line = self.connected().map_err(|failure| ReadError(format!("settings: {failure}")))?;
        let mut reads = self.link.reads();
        // 2.0 knows its version in the settings alone.
        let version = match ask(&mut line, "SELECT @@version".to_owned()) {
            Err(Failure::Server(..)) => None,
            other => reads.note("settings", other),
        };
        let version = version.and_then(|rows| Some(rows.rows.first()?.text(0)?.to_owned()));
        tell(batch, &self.source, version.map(|version| ("proxysql_version", version)));
        if self.has.limits
            && let Some(rows) = reads.read("settings", || ask(&mut line, tables::SETTINGS.to_owned()))
        {
            tell(batch, &self.source, tables::settings(&rows));
        }
        if self.has.digests {
            self.read_digests(&mut line, &mut reads, batch);
        }
        self.link.finish(line, reads)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut line = self.connected().map_err(cannot_connect)?;
        let mut reads = self.link.reads();
        let source = self.source.clone();
        let mut out = Out::new(batch, &source);
        let mut read = |part: &'static str, sql: &str, out: &mut Out<'_>| -> Option<Rows> {
            out.begin();
            reads.read(part, || ask(&mut line, sql.to_owned()))
        };
        if let Some(rows) = read("figures", tables::FIGURES, &mut out) {
            tables::put_figures(&rows, &mut out);
        }
        let pool = read("pool", tables::POOL, &mut out);
        let hostgroups = pool.map_or_else(BTreeSet::new, |rows| tables::put_pool(&rows, &mut out));
        if self.has.waiting
            && let Some(begun) = self.waiting.due(&Turn::default())
        {
            let rows = read(WAITING.name, WAITING.sql, &mut out).ok_or(());
            if let Ok(rows) = self.waiting.read(&mut Turn::default(), begun, rows) {
                tables::put_waiting(&rows, &hostgroups, &mut out);
            }
        }
        for (has, part, put) in [
            (self.has.limits, LIMITS, tables::put_limits as fn(&Rows, &mut Out<'_>)),
            (self.has.errors, ERRORS, tables::put_errors),
        ] {
            if has && let Some(rows) = read(part.name, part.sql, &mut out) {
                put(&rows, &mut out);
            }
        }
        if self.has.digests && self.digests.due(&Turn::default()).is_some() {
            self.read_digests(&mut line, &mut reads, batch);
        }
        self.link.finish(line, reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let short = parse("//me:canary@h").unwrap();
        assert_eq!((short.host.as_str(), short.port), ("h", PORT));
        assert_eq!(parse("//me@h:6132/").unwrap().port, 6132);
        for bad in ["proxysql:", "proxysql://:canary@h", "proxysql://me:canary@h:0", "proxysql://me:canary@h?x=1"] {
            let error = crate::watch::collector(bad, &Options::default()).err().unwrap().to_string();
            assert!(error.contains("proxysql://USER") && !error.contains("canary"), "{error}");
        }
    }
}
