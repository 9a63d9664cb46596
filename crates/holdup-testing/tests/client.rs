//! A blocking driver: one session, one socket, TLS if it is wanted. No event and no error may hold [`crate::PASSWORD`].

#![allow(missing_docs, reason = "events and answers as `holdup-protocol` has them")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use holdup_protocol::database::{Address, Error, Event, Session, Statement, TlsMode};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Values of a row.
pub type Values = Vec<Option<String>>;

/// An event that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    LoggedIn,
    StartTls,
    Row { statement: usize, columns: Vec<String>, values: Values },
    Done { rows: u64, affected: u64, bytes: u64 },
    Failed { statement: usize, code: String, message: String },
}

impl Seen {
    fn of(event: Event<'_>) -> Self {
        assert!(!format!("{event:?}").contains(crate::PASSWORD), "an event tells the password");
        match event {
            Event::LoggedIn => Self::LoggedIn,
            Event::StartTls => Self::StartTls,
            Event::Row { statement, columns, values } => {
                let text = |value: &Option<&[u8]>| value.map(|value| String::from_utf8_lossy(value).into_owned());
                Self::Row { statement, columns: columns.to_vec(), values: values.iter().map(text).collect() }
            }
            Event::Done { rows, affected, bytes, .. } => Self::Done { rows, affected, bytes },
            Event::Failed { statement, code, message } => {
                Self::Failed { statement, code: code.to_owned(), message: message.to_owned() }
            }
        }
    }
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Gone,
}

/// What became of statements.
#[derive(Debug)]
pub struct Answer {
    pub rows: Vec<Seen>,
    pub end: Seen,
}

impl Answer {
    /// Rows, changed rows.
    pub fn done(&self) -> (u64, u64) {
        match &self.end {
            Seen::Done { rows, affected, .. } => (*rows, *affected),
            other => panic!("{other:?}"),
        }
    }

    pub fn bytes(&self) -> u64 {
        if let Seen::Done { bytes, .. } = self.end { bytes } else { panic!("{:?}", self.end) }
    }

    /// Which statement failed, and with what code.
    pub fn failed(&self) -> (usize, &str) {
        match &self.end {
            Seen::Failed { statement, code, .. } => (*statement, code),
            other => panic!("{other:?}"),
        }
    }

    pub fn message(&self) -> &str {
        if let Seen::Failed { message, .. } = &self.end { message } else { panic!("{:?}", self.end) }
    }

    /// The values of the only row that was kept.
    pub fn row(&self) -> Vec<Option<&str>> {
        match self.rows.as_slice() {
            [Seen::Row { values, .. }] => values.iter().map(Option::as_deref).collect(),
            other => panic!("{other:?}"),
        }
    }
}

/// How a client ended, if not well.
#[derive(Debug)]
pub enum End {
    Error(Error),
    Closed,
}

pub struct Client {
    pub session: Session,
    socket: Socket,
    seen: Vec<Seen>,
    certificate: Option<CertificateDer<'static>>,
    /// Bytes that are fed at once.
    pub piece: usize,
}

impl Client {
    /// Logs in.
    pub fn connect(address: &str, certificate: Option<&CertificateDer<'static>>) -> Result<Self, End> {
        let address = Address::parse(address).expect("an address");
        let socket = TcpStream::connect((address.host.as_str(), address.port)).map_err(|_| End::Closed)?;
        socket.set_read_timeout(Some(Duration::from_secs(240))).expect("a timeout");
        socket.set_nodelay(true).expect("no delay");
        let mut client = Self {
            session: Session::new(address.dialect, address.login(), address.tls),
            socket: Socket::Plain(socket),
            seen: Vec::new(),
            certificate: certificate.cloned(),
            piece: usize::MAX,
        };
        client.until(|seen| matches!(seen, Seen::LoggedIn))?;
        assert!(client.session.is_ready() && !client.session.is_in_transaction());
        assert_eq!(client.seen.contains(&Seen::StartTls), address.tls == TlsMode::On);
        client.seen.clear();
        Ok(client)
    }

    fn until(&mut self, is_end: impl Fn(&Seen) -> bool) -> Result<(), End> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            self.write();
            if self.seen.last() == Some(&Seen::StartTls) && matches!(self.socket, Socket::Plain(_)) {
                self.start_tls();
                continue;
            }
            if self.seen.last().is_some_and(&is_end) {
                return Ok(());
            }
            let read = match &mut self.socket {
                Socket::Plain(socket) => socket.read(&mut buffer),
                Socket::Tls(stream) => stream.read(&mut buffer),
                Socket::Gone => return Err(End::Closed),
            };
            let count = read.map_err(|_| End::Closed)?;
            if count == 0 {
                return Err(End::Closed);
            }
            for piece in buffer[..count].chunks(self.piece) {
                let seen = &mut self.seen;
                if let Err(error) = self.session.feed(piece, &mut |event| seen.push(Seen::of(event))) {
                    assert!(!format!("{error} {error:?}").contains(crate::PASSWORD), "an error tells the password");
                    assert!(!self.session.is_ready());
                    return Err(End::Error(error));
                }
            }
        }
    }

    fn write(&mut self) {
        let output = self.session.output();
        let count = output.len();
        // A server that has gone is noticed by reading.
        let _ = match &mut self.socket {
            Socket::Plain(socket) => socket.write_all(output),
            Socket::Tls(stream) => stream.write_all(output).and_then(|()| stream.flush()),
            Socket::Gone => Ok(()),
        };
        self.session.consumed(count);
    }

    fn start_tls(&mut self) {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone().expect("a certificate")).expect("a good one");
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a connection");
        if let Socket::Plain(socket) = std::mem::replace(&mut self.socket, Socket::Gone) {
            self.socket = Socket::Tls(Box::new(StreamOwned::new(tls, socket)));
        }
        self.session.tls_started();
    }

    /// Executes statements, and waits until they have ended or the connection has.
    pub fn try_execute(&mut self, statements: &[Statement], keep_row: bool) -> Result<Answer, End> {
        self.session.execute(statements, keep_row).expect("it is ready");
        assert!(!self.session.is_ready());
        self.until(|seen| matches!(seen, Seen::Done { .. } | Seen::Failed { .. }))?;
        assert!(self.session.is_ready());
        let end = self.seen.pop().expect("an end");
        Ok(Answer { rows: std::mem::take(&mut self.seen), end })
    }

    pub fn execute(&mut self, statements: &[Statement], keep_row: bool) -> Answer {
        self.try_execute(statements, keep_row).expect("an answer")
    }

    /// One text.
    pub fn query(&mut self, text: &str) -> Answer {
        self.execute(&[self::text(text)], true)
    }

    /// One prepared statement.
    pub fn prepared(&mut self, text: &str, parameters: &[Option<&str>]) -> Answer {
        self.execute(&[self::prepared(text, parameters)], true)
    }

    /// The first value of the first row of a text.
    pub fn value(&mut self, text: &str) -> String {
        self.query(text).row()[0].expect("a value").to_owned()
    }

    /// Waits for what comes unasked.
    pub fn wait_for_end(&mut self) -> End {
        self.until(|_| false).expect_err("it ends")
    }

    /// Says goodbye; whether the server closes then.
    pub fn quit(mut self) -> bool {
        self.session.quit();
        assert!(!self.session.is_ready());
        matches!(self.wait_for_end(), End::Closed)
    }
}

pub fn text(text: &str) -> Statement {
    Statement { text: text.to_owned(), ..Statement::default() }
}

pub fn prepared(text: &str, parameters: &[Option<&str>]) -> Statement {
    let parameters = parameters.iter().map(|value| value.map(|value| value.as_bytes().to_vec())).collect();
    Statement { text: text.to_owned(), is_prepared: true, parameters }
}

/// The error a login ends with.
pub fn refused(address: &str) -> Error {
    match Client::connect(address, None) {
        Err(End::Error(error)) => error,
        Err(End::Closed) => panic!("closed"),
        Ok(_) => panic!("let in"),
    }
}
