//! A conversation with a database that waits for each answer: for the login before a load, and for what
//! fills a database. The loops of a load wait for nothing, and do not use it.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use holdup_protocol::database::{Error, Event, Session};
use rustls::ClientConnection;

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
    is_told: bool,
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
        let mut talk =
            Self { session, stream, tls: tls.cloned(), encrypted: None, is_told: false, buffer: vec![0; BUFFER_BYTES] };
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
        self.encrypted = Some(tls.connection()?);
        Ok(())
    }

    /// Sends what there is to send, waits for bytes, and takes them.
    ///
    /// # Errors
    /// If the conversation cannot go on.
    pub fn step(&mut self, events: &mut dyn FnMut(Event<'_>)) -> Result<(), TalkError> {
        if self.encrypted.as_ref().is_some_and(|tls| !tls.is_handshaking())
            && !std::mem::replace(&mut self.is_told, true)
        {
            self.session.tls_started();
        }
        self.say()?;
        let count = loop {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err(TalkError::Closed),
                Ok(count) => break count,
                // A signal says nothing about the server; a stop is noticed once it has answered.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        };
        let read = self.buffer.get(..count).unwrap_or_default();
        let mut begins_tls = false;
        let mut events = |event: Event<'_>| match event {
            Event::StartTls => begins_tls = true,
            event => events(event),
        };
        match &mut self.encrypted {
            None => self.session.feed(read, &mut events)?,
            Some(tls) => {
                let plain = decrypted(tls, read)?;
                self.session.feed(&plain, &mut events)?;
            }
        }
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
        let count = self.session.output().len();
        match &mut self.encrypted {
            None => self.stream.write_all(self.session.output())?,
            Some(tls) => {
                if !tls.is_handshaking() {
                    tls.writer().write_all(self.session.output())?;
                }
                while tls.wants_write() {
                    tls.write_tls(&mut self.stream)?;
                }
                if tls.is_handshaking() {
                    return Ok(());
                }
            }
        }
        self.session.consumed(count);
        Ok(())
    }
}

fn decrypted(tls: &mut ClientConnection, mut bytes: &[u8]) -> Result<Vec<u8>, TalkError> {
    let mut plain = Vec::new();
    while !bytes.is_empty() {
        tls.read_tls(&mut bytes)?;
        let state = tls.process_new_packets()?;
        let mut part = vec![0; state.plaintext_bytes_to_read()];
        tls.reader().read_exact(&mut part)?;
        plain.extend(part);
    }
    Ok(plain)
}
