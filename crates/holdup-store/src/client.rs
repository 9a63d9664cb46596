//! One HTTP request to ClickHouse and its complete answer, bounded in time and in bytes. What only
//! reads goes by GET, for which the server itself refuses to write. The server holds an answer back
//! until it is complete, so an error in its middle is an error and not a cut answer.

use std::io::{Read, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use ureq::http::Response;
use ureq::{Body, http};

use crate::address::Address;
use crate::dialect::Dialect;
use crate::error::{StoreError, hint};
use crate::link::{Counted, agent, reason};
use crate::statement::Statement;

/// Largest text of an error that is read, and how much of it is shown.
const REFUSAL_BYTES_MAX: u64 = 64 << 10;
const REFUSAL_SHOWN_BYTES: usize = 400;

/// ClickHouse's error for a setting that a read-only account may not change.
const READ_ONLY: u32 = 164;

/// Largest answer about the store itself: versions, names, counts.
pub(crate) const SMALL_BYTES_MAX: u64 = 64 << 20;

/// What to look at if nothing answers.
const WAY_OUT: &str = "is ClickHouse running there, and is this the port of its HTTP interface (8123, with TLS 8443)?";

/// Waits before an answer is asked for again, and how soon it must have failed for that.
const READ_WAITS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
const AT_ONCE: Duration = Duration::from_secs(5);

/// Attempts of an insert, and the wait after the first; each further wait is twice as long.
const ATTEMPTS: u32 = 7;
const WAIT: Duration = Duration::from_millis(250);

/// How often a wait looks whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// A server, and what has been moved to and from it.
pub struct Client {
    agent: ureq::Agent,
    base: String,
    database: String,
    authorization: Option<String>,
    server: String,
    version: String,
    dialect: Dialect,
    /// Whether answers come compressed: the account may change that setting.
    is_compressed: bool,
    /// Attempts of an insert.
    attempts: u32,
    received: AtomicU64,
    sent: AtomicU64,
}

impl Client {
    /// Connects once, to learn the server's version.
    ///
    /// # Errors
    /// If it does not answer, refuses the account, or is not ClickHouse.
    pub fn connect(address: &Address) -> Result<Self, StoreError> {
        let host = address.shown_host();
        let scheme = if address.tls.is_on() { "https" } else { "http" };
        let user = address.user.as_deref().map(|user| {
            let word = address.password.as_deref().unwrap_or_default();
            format!("Basic {}", STANDARD.encode(format!("{user}:{word}")))
        });
        let mut client = Self {
            agent: agent(address)?,
            base: format!("{scheme}://{host}:{}/", address.port),
            database: address.database.clone(),
            authorization: user,
            server: address.shown(),
            version: String::new(),
            dialect: Dialect::Current,
            is_compressed: true,
            attempts: ATTEMPTS,
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        };
        client.learn_version()?;
        Ok(client)
    }

    /// The same client, which tries an insert this often.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    fn learn_version(&mut self) -> Result<(), StoreError> {
        let ask = Statement::new("SELECT version()");
        let version = match self.request(&ask, None, None, SMALL_BYTES_MAX) {
            Err(StoreError::Refused { code: READ_ONLY, .. }) => {
                self.is_compressed = false;
                self.request(&ask, None, None, SMALL_BYTES_MAX)?
            }
            answer => answer?,
        };
        let version = String::from_utf8_lossy(&version).trim().to_owned();
        let why = || StoreError::Unreachable {
            server: self.server.clone(),
            why: "it does not answer as ClickHouse's HTTP interface does; its port is 8123 by default".to_owned(),
        };
        self.dialect = Dialect::from_version(&version).ok_or_else(why)?;
        self.version = version;
        Ok(())
    }

    /// What the server's version understands.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The server's version, e.g. `26.9.1.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The server and the database, without the account.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Bytes of answers so far, as they came over the network.
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Bytes of rows so far, as they went over the network.
    pub fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The answer to a statement that only reads. One that breaks off at once is asked for again.
    ///
    /// # Errors
    /// Also if the answer has more than `most_bytes`.
    pub fn read(&self, statement: &Statement, most_bytes: u64) -> Result<Vec<u8>, StoreError> {
        for wait in READ_WAITS {
            let asked = Instant::now();
            match self.request(statement, Some(&self.database), None, most_bytes) {
                Err(error) if error.is_passing() && asked.elapsed() < AT_ONCE => std::thread::sleep(wait),
                answer => return answer,
            }
        }
        self.request(statement, Some(&self.database), None, most_bytes)
    }

    /// Runs a statement that changes something in the database.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn execute(&self, statement: &Statement) -> Result<(), StoreError> {
        self.request(statement, Some(&self.database), Some(&[]), SMALL_BYTES_MAX).map(drop)
    }

    /// Makes the database, on all servers of `cluster` if there is one.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn create_database(&self, cluster: Option<&str>) -> Result<(), StoreError> {
        let on = cluster.map_or_else(String::new, |cluster| format!(" ON CLUSTER '{cluster}'"));
        let statement = Statement::new(format!("CREATE DATABASE IF NOT EXISTS `{}`{on}", self.database));
        self.request(&statement, None, Some(&[]), SMALL_BYTES_MAX).map(drop)
    }

    /// Inserts rows in RowBinary, in several attempts unless `is_wanted` ends them.
    ///
    /// # Errors
    /// If the server did not confirm them. It may have them all the same.
    pub fn insert(
        &self,
        statement: &Statement,
        rows: &[u8],
        is_wanted: &mut dyn FnMut() -> bool,
    ) -> Result<(), StoreError> {
        let mut encoder = GzEncoder::new(Vec::with_capacity(rows.len() / 4), Compression::fast());
        let packed = encoder.write_all(rows).and_then(|()| encoder.finish());
        let packed = packed.map_err(|error| self.unreachable(error.to_string()))?;
        let mut wait = WAIT;
        for attempt in 1.. {
            match self.request(statement, Some(&self.database), Some(&packed), SMALL_BYTES_MAX) {
                Ok(_) => break,
                Err(error) if error.is_passing() && attempt < self.attempts => pause(wait, is_wanted)?,
                Err(error) => return Err(error),
            }
            wait *= 2;
        }
        self.sent.fetch_add(packed.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn unreachable(&self, why: String) -> StoreError {
        StoreError::Unreachable { server: self.server.clone(), why }
    }

    /// Sends by GET, or by POST with a body; an empty one has no rows.
    fn request(
        &self,
        statement: &Statement,
        database: Option<&str>,
        body: Option<&[u8]>,
        most_bytes: u64,
    ) -> Result<Vec<u8>, StoreError> {
        let mut url = format!("{}?{}&wait_end_of_query=1", self.base, statement.url(self.dialect));
        if let Some(database) = database {
            url.push_str(&format!("&database={database}"));
        }
        if self.is_compressed {
            url.push_str("&enable_http_compression=1");
        }
        let answer = match body {
            None => self.signed(self.agent.get(&url)).header("Accept-Encoding", "gzip").call(),
            Some([]) => self.signed(self.agent.post(&url)).send_empty(),
            Some(rows) => self.signed(self.agent.post(&url)).header("Content-Encoding", "gzip").send(rows),
        };
        let answer = answer.map_err(|error| self.unreachable(format!("{}; {WAY_OUT}", reason(&error))))?;
        if answer.status().as_u16() == 200 {
            return self.body(answer, most_bytes);
        }
        Err(self.refusal(answer))
    }

    fn signed<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header(http::header::AUTHORIZATION, authorization),
            None => request,
        }
    }

    fn body(&self, mut answer: Response<Body>, most_bytes: u64) -> Result<Vec<u8>, StoreError> {
        let encoding = answer.headers().get(http::header::CONTENT_ENCODING);
        let is_packed = encoding.is_some_and(|encoding| encoding.as_bytes() == b"gzip");
        // Packed it cannot be larger than unpacked by more than a frame.
        let packed = answer.body_mut().with_config().limit(most_bytes.saturating_add(1 << 20)).reader();
        let packed = Counted { inner: packed, count: &self.received };
        let mut bytes = Vec::new();
        let read = if is_packed {
            GzDecoder::new(packed).take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)
        } else {
            packed.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)
        };
        read.map_err(|error| self.unreachable(format!("the answer was cut off: {error}")))?;
        if bytes.len() as u64 > most_bytes {
            return Err(StoreError::TooLarge { server: self.server.clone(), most_bytes });
        }
        Ok(bytes)
    }

    fn refusal(&self, answer: Response<Body>) -> StoreError {
        let status = answer.status().as_u16();
        let header = answer.headers().get("X-ClickHouse-Exception-Code");
        let header = header.and_then(|code| code.to_str().ok()?.parse::<u32>().ok());
        let text = self.body(answer, REFUSAL_BYTES_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let code = header.or_else(|| code_in(&text)).unwrap_or(0);
        if code == 0 && matches!(status, 502..=504) {
            return self.unreachable(format!("status {status}"));
        }
        let why = match shortened(&text) {
            words if words.is_empty() => format!("status {status}"),
            words => words,
        };
        StoreError::Refused { server: self.server.clone(), code, why, hint: hint(code) }
    }
}

fn pause(length: Duration, is_wanted: &mut dyn FnMut() -> bool) -> Result<(), StoreError> {
    let mut left = length;
    while !left.is_zero() {
        if !is_wanted() {
            return Err(StoreError::Stopped);
        }
        let step = left.min(LOOK);
        std::thread::sleep(step);
        left -= step;
    }
    Ok(())
}

/// The number in `Code: 60, e.displayText() = …` or `Code: 60. DB::Exception: …`.
fn code_in(text: &str) -> Option<u32> {
    let digits = text.split_once("Code: ")?.1;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The first line of an error, without control characters and not too long.
fn shortened(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut words: String = line.chars().filter(|c| !c.is_control()).collect();
    if words.len() > REFUSAL_SHOWN_BYTES {
        let end = (0..=REFUSAL_SHOWN_BYTES).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
        words.truncate(end);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_on_which_nothing_answers_comes_with_a_way_out() {
        let unused = std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).unwrap();
        let address = Address::parse(&format!("clickhouse://{unused}/kept")).unwrap();
        let error = Client::connect(&address).map(drop).unwrap_err().to_string();
        assert!(error.contains("refused") && error.ends_with(WAY_OUT), "{error}");
    }

    #[test]
    fn refusals_have_a_code_and_one_line() {
        assert_eq!(code_in("Code: 516. DB::Exception: x"), Some(516));
        assert_eq!(code_in("Code: 60, e.displayText() = DB::Exception: Table"), Some(60));
        assert_eq!(code_in("not found"), None);
        assert_eq!(shortened("\n a\x1b[31m b\nc"), "a[31m b");
        assert_eq!(shortened(&"\u{e4}".repeat(300)).chars().count(), 201);
    }
}
