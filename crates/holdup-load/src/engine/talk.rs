//! A conversation with a database that waits for each answer: for the login before a load, and for what
//! fills a database. The loops of a load wait for nothing, and do not use it.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use holdup_protocol::database::{Error, Event, Session};
use rustls::{ClientConnection, Stream};

use super::tls::Tls;

/// Bytes read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// A conversation.
pub struct Talk {
    /// What is said.
    pub session: Session,
    stream: TcpStream,
    tls: Option<Tls>,
    encrypted: Option<Box<ClientConnection>>,
    buffer: Vec<u8>,
}

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    /// The socket's error, which may be a timeout.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server closed the connection.
    #[error("it closed the connection")]
    Closed,
    /// TLS failed.
    #[error("TLS failed ({0})")]
    Tls(#[from] rustls::Error),
    /// The server wants TLS, and this side has none.
    #[error("it wants TLS; add ?tls=on")]
    NoTls,
    /// The server broke the protocol, or refused.
    #[error(transparent)]
    Session(#[from] Error),
}

impl Talk {
    /// On a connected socket, whose timeouts are the caller's.
    ///
    /// # Errors
    /// If TLS begins at once and cannot.
    pub fn new(stream: TcpStream, session: Session, tls: Option<&Tls>) -> Result<Self, TalkError> {
        let mut talk = Self { session, stream, tls: tls.cloned(), encrypted: None, buffer: vec![0; BUFFER_BYTES] };
        if talk.session.begins_encrypted() {
            talk.begin_tls()?;
        }
        Ok(talk)
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn begin_tls(&mut self) -> Result<(), TalkError> {
        let tls = self.tls.as_ref().ok_or(TalkError::NoTls)?;
        let mut encrypted = tls.connection()?;
        encrypted.complete_io(&mut self.stream).map_err(TalkError::from_io)?;
        self.encrypted = Some(encrypted);
        self.session.tls_started();
        Ok(())
    }

    /// Sends what there is to send, waits for bytes, and takes them.
    ///
    /// # Errors
    /// If the conversation cannot go on.
    pub fn step(&mut self, events: &mut dyn FnMut(Event<'_>)) -> Result<(), TalkError> {
        self.say().map_err(TalkError::from_io)?;
        let count = loop {
            let read = match &mut self.encrypted {
                None => self.stream.read(&mut self.buffer),
                Some(tls) => Stream::new(&mut **tls, &mut self.stream).read(&mut self.buffer),
            };
            match read {
                Ok(0) => return Err(TalkError::Closed),
                Ok(count) => break count,
                // A signal says nothing about the server; a stop is noticed once it has answered.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(TalkError::from_io(error)),
            }
        };
        let mut begins_tls = false;
        let mut events = |event: Event<'_>| match event {
            Event::StartTls => begins_tls = true,
            event => events(event),
        };
        self.session.feed(self.buffer.get(..count).unwrap_or_default(), &mut events)?;
        if begins_tls {
            // Everything before the TLS client hello is sent in clear text.
            self.say()?;
            self.begin_tls()?;
        }
        Ok(())
    }

    /// Sends the session's output, encrypted once TLS has begun.
    ///
    /// # Errors
    /// The socket's.
    pub fn say(&mut self) -> io::Result<()> {
        let output = self.session.output();
        match &mut self.encrypted {
            None => self.stream.write_all(output)?,
            Some(tls) => {
                let mut stream = Stream::new(&mut **tls, &mut self.stream);
                stream.write_all(output)?;
                stream.flush()?;
            }
        }
        let count = output.len();
        self.session.consumed(count);
        Ok(())
    }
}

impl TalkError {
    /// From an error of a socket on which TLS may be spoken.
    fn from_io(error: io::Error) -> Self {
        match tls_error(&error) {
            Some(error) => Self::Tls(error.clone()),
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::Closed,
            None => Self::Io(error),
        }
    }
}

/// What rustls said, if it is its error.
pub(super) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
