//! A connection that speaks PostgreSQL's protocol: how it is made, its time limits, and the meaning
//! of its errors. It knows no server's views: PgBouncer's console is read through it, too. The
//! protocol is in `holdup-protocol`; here is the socket.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdup_protocol::database::{Dialect, Error, Event, Login, Session, Statement, TlsMode};
use rustls::{ClientConnection, StreamOwned};

use super::address::{Address, Tls};
use super::tls;
use crate::connections::{Connections, Slot, notice_death};
use crate::database::Trouble;

/// Longest wait for a connection or an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Largest answer kept, bytes.
const ANSWER_BYTES: usize = 32 << 20;

/// Why a statement has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is lost, or was never made.
    Lost(String),
    /// No answer within the time limit: the server accepts but does not respond.
    Silent(String),
    /// Nothing listens there.
    Refused(String),
    /// The server rejected the login.
    Login(String),
    /// The server's error, SQLSTATE and message.
    Server(String, String),
}

impl Trouble for Failure {
    fn is_of_connection(&self) -> bool {
        !matches!(self, Self::Server(..))
    }

    fn is_of_read(&self) -> bool {
        matches!(self, Self::Server(..) | Self::Silent(_))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(why) | Self::Silent(why) | Self::Refused(why) | Self::Login(why) => f.write_str(why),
            Self::Server(code, words) => write!(f, "{words} ({code})"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            // Class 28: invalid authorization; 3D000: no such database.
            Error::LoginRefused { code, .. } if code.starts_with("28") || code == "3D000" => {
                Self::Login(error.to_string())
            }
            Error::UnsupportedAuth(_) | Error::ServerNotProved => Self::Login(error.to_string()),
            _ => Self::Lost(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) {
            return Self::Silent(format!("no answer within {} s", PATIENCE.as_secs()));
        }
        Self::to_place("", &error)
    }
}

impl Failure {
    /// The connection to `place` failed.
    fn to_place(place: &str, error: &std::io::Error) -> Self {
        let why = if place.is_empty() { error.to_string() } else { format!("{place}: {error}") };
        match error.kind() {
            // Includes a missing socket file.
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => Self::Refused(why),
            _ => Self::Lost(why),
        }
    }
}

/// Rows of an answer, with their column names.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// One row: texts, none for NULL.
#[derive(Debug, Default)]
pub(crate) struct Row(pub(crate) Vec<Option<String>>);

impl Row {
    pub(crate) fn text(&self, index: usize) -> Option<&str> {
        self.0.get(index)?.as_deref()
    }

    pub(crate) fn int(&self, index: usize) -> Option<i64> {
        self.text(index)?.parse().ok()
    }

    pub(crate) fn float(&self, index: usize) -> Option<f64> {
        self.text(index)?.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

enum Transport {
    Plain(TcpStream),
    Local(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Transport {
    fn open(address: &Address) -> Result<Self, Failure> {
        if address.host.starts_with('/') {
            let path = format!("{}/.s.PGSQL.{}", address.host, address.port);
            let stream = UnixStream::connect(&path).map_err(|error| Failure::to_place(&path, &error))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            return Ok(Self::Local(stream));
        }
        let mut last = Failure::Lost(format!("the host name {} has no address", address.host));
        let found = (address.host.as_str(), address.port).to_socket_addrs();
        for place in found.map_err(|error| Failure::Lost(format!("{}: {error}", address.host)))? {
            match TcpStream::connect_timeout(&place, PATIENCE) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    notice_death(&stream);
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(Self::Plain(stream));
                }
                Err(error) => last = Failure::to_place("", &error),
            }
        }
        Err(last)
    }

    fn encrypted(self, address: &Address) -> Result<Self, Failure> {
        match self {
            Self::Plain(stream) => {
                let connection = tls::connection(address).map_err(|why| Failure::Lost(format!("TLS: {why}")))?;
                Ok(Self::Tls(Box::new(StreamOwned::new(connection, stream))))
            }
            other => Ok(other),
        }
    }

    /// Duplicates the socket.
    fn socket(&self) -> std::io::Result<OwnedFd> {
        match self {
            Self::Plain(stream) => stream.try_clone().map(OwnedFd::from),
            Self::Local(stream) => stream.try_clone().map(OwnedFd::from),
            Self::Tls(stream) => stream.sock.try_clone().map(OwnedFd::from),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Local(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn receive(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(bytes),
            Self::Local(stream) => stream.read(bytes),
            Self::Tls(stream) => stream.read(bytes),
        }
    }
}

/// An open connection.
pub(crate) struct Connection {
    session: Session,
    transport: Option<Transport>,
    /// Whether the server still owes an answer that holdup no longer waits for.
    is_silent: bool,
    /// Returned last.
    slot: Option<Slot>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let (true, Some(transport), Some(slot)) = (self.is_silent, &self.transport, self.slot.take())
            && let Ok(socket) = transport.socket()
        {
            slot.keep(socket);
        }
    }
}

/// The parts of the server's answer that a call waits for.
#[derive(Default)]
struct AnswerState {
    logged_in: bool,
    tls: bool,
    done: bool,
    failed: Option<(String, String)>,
    rows: Rows,
    bytes: usize,
}

impl AnswerState {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::LoggedIn => self.logged_in = true,
            Event::StartTls => self.tls = true,
            Event::Row { columns, values, .. } => {
                if self.rows.columns.is_empty() {
                    self.rows.columns = columns.to_vec();
                }
                self.bytes += values.iter().flatten().map(|value| value.len()).sum::<usize>();
                if self.bytes <= ANSWER_BYTES {
                    let text = |value: &Option<&[u8]>| value.map(|value| String::from_utf8_lossy(value).into_owned());
                    self.rows.rows.push(Row(values.iter().map(text).collect()));
                }
            }
            Event::Done { .. } => self.done = true,
            Event::Failed { code, message, .. } => self.failed = Some((code.to_owned(), message.to_owned())),
        }
    }
}

impl Connection {
    /// Opens a connection, encrypted as far as the address asks for it.
    pub(crate) fn open(address: &Address, connections: &Connections) -> Result<Self, Failure> {
        let wish = match address.tls {
            _ if address.host.starts_with('/') => TlsMode::Off,
            Tls::Disable => TlsMode::Off,
            Tls::Prefer | Tls::Require | Tls::VerifyCa | Tls::VerifyFull => TlsMode::On,
        };
        match Self::connect(address, wish, connections) {
            // A refused TLS request is the only error with this text.
            Err(Failure::Lost(why)) if address.tls == Tls::Prefer && why == Error::TlsNotOffered.to_string() => {
                Self::connect(address, TlsMode::Off, connections)
            }
            other => other,
        }
    }

    fn connect(address: &Address, wish: TlsMode, connections: &Connections) -> Result<Self, Failure> {
        let slot = connections.take_slot().map_err(Failure::Lost)?;
        let login = Login::new(address.user.clone(), address.password.clone(), Some(address.database.clone()));
        let session = Session::new(Dialect::Postgres, Arc::new(login), wish);
        let mut connection =
            Self { session, transport: Some(Transport::open(address)?), is_silent: false, slot: Some(slot) };
        connection.session.keep_every_row();
        let mut heard = AnswerState::default();
        connection.until(&mut heard, |heard| heard.logged_in || heard.tls)?;
        if heard.tls {
            connection.transport =
                connection.transport.take().map(|transport| transport.encrypted(address)).transpose()?;
            connection.session.tls_started();
            connection.until(&mut heard, |heard| heard.logged_in)?;
        }
        Ok(connection)
    }

    /// Sends and receives until `enough` was heard.
    fn until(&mut self, heard: &mut AnswerState, enough: impl Fn(&AnswerState) -> bool) -> Result<(), Failure> {
        let result = self.talk(heard, enough);
        self.is_silent |= matches!(result, Err(Failure::Silent(_)));
        result
    }

    fn talk(&mut self, heard: &mut AnswerState, enough: impl Fn(&AnswerState) -> bool) -> Result<(), Failure> {
        let transport = self.transport.as_mut().ok_or_else(|| Failure::Lost("the connection is closed".to_owned()))?;
        let deadline = Instant::now() + PATIENCE;
        let mut bytes = vec![0; 64 << 10];
        while !enough(heard) {
            let output = self.session.output();
            if !output.is_empty() {
                transport.send(output)?;
                let sent = output.len();
                self.session.consumed(sent);
            }
            if Instant::now() > deadline {
                return Err(Failure::Silent(format!("no complete answer within {} s", PATIENCE.as_secs())));
            }
            let count = match transport.receive(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            };
            if count == 0 {
                return Err(Failure::Lost("the server closed the connection".to_owned()));
            }
            self.session.feed(bytes.get(..count).unwrap_or_default(), &mut |event| heard.take(event))?;
        }
        Ok(())
    }

    /// The rows of one statement.
    pub(crate) fn rows(&mut self, text: String, is_prepared: bool, values: &[&str]) -> Result<Rows, Failure> {
        let parameters = values.iter().map(|value| Some(value.as_bytes().to_vec())).collect();
        let statement = Statement { text, is_prepared, parameters };
        self.session.execute(&[statement], true).map_err(|refused| Failure::Lost(refused.to_string()))?;
        let mut heard = AnswerState::default();
        self.until(&mut heard, |heard| heard.done || heard.failed.is_some())?;
        match heard.failed {
            Some((code, words)) => Err(Failure::Server(code, words)),
            None if heard.bytes > ANSWER_BYTES => {
                Err(Failure::Server("holdup".to_owned(), format!("the answer exceeds {ANSWER_BYTES} bytes")))
            }
            None => Ok(heard.rows),
        }
    }
}
