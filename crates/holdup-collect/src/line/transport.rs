//! The socket of a connection: TCP, with or without TLS, or a Unix socket. No call waits for longer
//! than [`PATIENCE`], or until the deadline that it was given; the resolver of names has limits of its
//! own.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use super::{PATIENCE, Place};
use crate::connections::notice_death;

pub(super) enum Transport {
    Plain(TcpStream),
    Local(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Transport {
    /// Connects before `deadline`.
    pub(super) fn open(place: &Place<'_>, deadline: Instant) -> Result<Self> {
        match place {
            Place::Network(host, port) => tcp(host, *port, deadline).map(Self::Plain),
            Place::Local(path) => {
                let stream = UnixStream::connect(path).map_err(|error| with(path, &error))?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Self::Local(stream))
            }
        }
    }

    /// The connection whose TLS handshake is over.
    pub(super) fn encrypted(client: ClientConnection, stream: TcpStream) -> Self {
        Self::Tls(Box::new(StreamOwned::new(client, stream)))
    }

    /// Duplicates the socket.
    pub(super) fn socket(&self) -> Result<OwnedFd> {
        match self {
            Self::Plain(stream) => stream.try_clone().map(OwnedFd::from),
            Self::Local(stream) => stream.try_clone().map(OwnedFd::from),
            Self::Tls(stream) => stream.sock.try_clone().map(OwnedFd::from),
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Local(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Reads once, for `time` at most; [`ErrorKind::Interrupted`] if that brought no byte of the answer.
    pub(super) fn receive(&mut self, bytes: &mut [u8], time: Duration) -> Result<usize> {
        // A time-out of zero would stand for none.
        let time = Some(time.max(Duration::from_millis(1)));
        match self {
            Self::Plain(stream) => stream.set_read_timeout(time).and_then(|()| stream.read(bytes)),
            Self::Local(stream) => stream.set_read_timeout(time).and_then(|()| stream.read(bytes)),
            Self::Tls(stream) => stream.sock.set_read_timeout(time).and_then(|()| decrypted(stream, bytes)),
        }
    }
}

/// What has been decrypted, else one read of the socket: the stream's own read goes on until there is
/// something to return, however long records come in drops or hold nothing.
fn decrypted(stream: &mut StreamOwned<ClientConnection, TcpStream>, bytes: &mut [u8]) -> Result<usize> {
    match stream.conn.reader().read(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        read => return read,
    }
    if stream.conn.read_tls(&mut stream.sock)? == 0 {
        return Ok(0);
    }
    let processed = stream.conn.process_new_packets();
    while stream.conn.wants_write() {
        stream.conn.write_tls(&mut stream.sock)?;
    }
    processed.map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
    Err(Error::from(ErrorKind::Interrupted))
}

/// Tries the addresses of `host` in turn, before `deadline`; the error is the last one's.
fn tcp(host: &str, port: u16, deadline: Instant) -> Result<TcpStream> {
    let mut last = Error::other(format!("the host name {host} has no address"));
    for place in (host, port).to_socket_addrs().map_err(|error| Error::other(format!("{host}: {error}")))? {
        let time = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&place, time.min(PATIENCE)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                notice_death(&stream);
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                last = Error::new(error.kind(), format!("no connection within {} s", PATIENCE.as_secs()));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The same kind of error, with the place in its text.
fn with(place: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("{place}: {error}"))
}
