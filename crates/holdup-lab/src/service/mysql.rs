//! A connection to MariaDB or MySQL that waits for its answers, as a service's threads do. The
//! protocol is in `holdup-protocol`; here is the socket. It uses TCP, as the traffic of a lab should,
//! and no TLS.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use holdup_protocol::database::{Address, Dialect, Error, Event, Session, Statement, TlsMode};

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// An open connection.
pub struct Client {
    session: Session,
    stream: TcpStream,
    /// Buffer for what is received.
    bytes: Vec<u8>,
}

/// Why a connection or a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server's error, after which the connection can still be used.
    #[error("error {0}: {1}")]
    Server(String, String),
    /// The connection is broken, or was never made.
    #[error("{0}")]
    Connection(String),
}

impl From<std::io::Error> for ClientError {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Without it the server counts an aborted connection.
        self.session.quit();
        let _ = self.stream.write_all(self.session.output());
    }
}

/// Takes the columns and values of a row.
pub type TakeRow<'a> = dyn FnMut(&[String], &[Option<&[u8]>]) + 'a;

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or refuses the login.
    pub fn connect(address: &Address) -> Result<Self, ClientError> {
        let mut session = Session::new(Dialect::Mysql, address.login(), TlsMode::Off);
        session.keep_every_row();
        // A failed statement leaves its transaction to the service, as drivers do.
        session.leave_transactions();
        let mut client = Self { session, stream: reach(&address.host, address.port)?, bytes: vec![0; 16 << 10] };
        while !client.session.is_ready() {
            client.exchange(&mut |_| ())?;
        }
        Ok(client)
    }

    /// Runs a statement and hands all its rows on.
    ///
    /// # Errors
    ///
    /// The server's, or that the connection broke.
    pub fn run(&mut self, sql: &str, take: &mut TakeRow<'_>) -> Result<(), ClientError> {
        let statement = Statement { text: sql.to_owned(), ..Statement::default() };
        let refused = |error: &dyn std::fmt::Display| ClientError::Connection(error.to_string());
        self.session.execute(&[statement], true).map_err(|error| refused(&error))?;
        let mut ended = None;
        while ended.is_none() {
            self.exchange(&mut |event| match event {
                Event::Row { columns, values, .. } => take(columns, values),
                Event::Done { .. } => ended = Some(Ok(())),
                Event::Failed { code, message, .. } => {
                    ended = Some(Err(ClientError::Server(code.to_owned(), message.to_owned())));
                }
                Event::LoggedIn | Event::StartTls => {}
            })?;
        }
        ended.unwrap_or(Ok(()))
    }

    /// Sends what is to be sent, and takes what has been received.
    fn exchange(&mut self, events: &mut dyn FnMut(Event<'_>)) -> Result<(), ClientError> {
        let sent = self.session.output().len();
        self.stream.write_all(self.session.output())?;
        self.session.consumed(sent);
        let count = loop {
            match self.stream.read(&mut self.bytes) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if count == 0 {
            return Err(ClientError::Connection("the server closed the connection".to_owned()));
        }
        let received = self.bytes.get(..count).unwrap_or_default();
        self.session.feed(received, events).map_err(|error| {
            ClientError::Connection(match error {
                // The service's connections have no TLS, which the error's own text asks for.
                Error::NeedsTls(_) => "the account's password may only be sent encrypted; \
                    create it with mysql_native_password"
                    .to_owned(),
                other => other.to_string(),
            })
        })
    }
}

/// Tries the addresses of `host` in turn.
fn reach(host: &str, port: u16) -> Result<TcpStream, ClientError> {
    let mut last = ClientError::Connection(format!("the host name {host} has no address"));
    for place in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, CONNECT_WITHIN) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}
