//! A status endpoint that does not speak HTTP: a TCP address or a Unix socket. Connecting, writing
//! and reading share one deadline, and the answer has a maximum size. The protocol is left to the
//! sources.

use std::fmt;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::page::TIMEOUT;

/// Where to connect. Displayed as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Host and port.
    Tcp(String, u16),
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Endpoint {
    /// `127.0.0.1:1717`, `[::1]:1717`, `unix:/run/app.sock`; none if the text has none of these
    /// forms.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return path.starts_with('/').then(|| Self::Unix(PathBuf::from(path)));
        }
        let (host, port) = text.rsplit_once(':')?;
        let is_host =
            !host.is_empty() && !host.contains(['/', '@', '?']) && (!host.contains(':') || host.ends_with(']'));
        let port = port.parse().ok().filter(|port| *port != 0)?;
        is_host.then(|| Self::Tcp(host.to_owned(), port))
    }

    /// Sends `request` and reads until the other side closes, up to `bytes_max`.
    pub(crate) fn ask(&self, request: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut line = self.connect(TIMEOUT)?;
        line.write_all(request)?;
        line.rest(bytes_max)
    }

    /// Connects; everything done with the stream must finish within `patience`.
    fn connect(&self, patience: Duration) -> io::Result<Stream> {
        let deadline = Instant::now() + patience;
        let inner = match self {
            Self::Tcp(host, port) => {
                // The standard library accepts an address in brackets only together with a port.
                let mut addresses = format!("{host}:{port}").to_socket_addrs()?;
                let address = addresses
                    .next()
                    .ok_or_else(|| Error::new(ErrorKind::NotFound, "the host name does not resolve"))?;
                Inner::Tcp(TcpStream::connect_timeout(&address, patience)?)
            }
            Self::Unix(path) => Inner::Unix(connect(path, patience)?),
        };
        Ok(Stream { inner, deadline })
    }
}

enum Inner {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection with a deadline.
struct Stream {
    inner: Inner,
    deadline: Instant,
}

impl Stream {
    /// Reads until the other side closes.
    fn rest(&mut self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.take(bytes_max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            return Err(Error::new(ErrorKind::FileTooLarge, format!("its answer exceeds {bytes_max} bytes")));
        }
        Ok(bytes)
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(late()) } else { Ok(Some(left)) }
    }
}

/// Why an answer is missing, in words; these three are the program's own, for a socket that may not be
/// opened, one that does not exist, and an answer that does not come.
pub(crate) fn why(error: &Error, denied: &str, absent: &str, late: impl FnOnce() -> String) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => format!("permission denied on its socket: {denied}"),
        ErrorKind::NotFound => format!("the socket does not exist: {absent}"),
        ErrorKind::TimedOut => late(),
        _ => error.to_string(),
    }
}

fn late() -> Error {
    Error::new(ErrorKind::TimedOut, "no complete answer within the time limit")
}

/// A timeout within a call appears as one of these kinds.
fn normalize_timeout(error: Error) -> Error {
    if error.kind() == ErrorKind::WouldBlock { late() } else { error }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left()?;
        match &mut self.inner {
            Inner::Tcp(line) => line.set_read_timeout(left).and_then(|()| line.read(buffer)),
            Inner::Unix(line) => line.set_read_timeout(left).and_then(|()| line.read(buffer)),
        }
        .map_err(normalize_timeout)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left()?;
        match &mut self.inner {
            Inner::Tcp(line) => line.set_write_timeout(left).and_then(|()| line.write(bytes)),
            Inner::Unix(line) => line.set_write_timeout(left).and_then(|()| line.write(bytes)),
        }
        .map_err(normalize_timeout)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to a Unix socket. Unlike the standard library's, it does not wait forever while the
/// accept queue is full.
fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    // SAFETY: an all-zero address is valid and has no family.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        return Err(Error::new(ErrorKind::InvalidInput, "the socket's path is too long"));
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, byte) in address.sun_path.iter_mut().zip(bytes) {
        *to = *byte as libc::c_char;
    }
    let done = |result: i32| if result < 0 { Err(Error::last_os_error()) } else { Ok(result) };
    // SAFETY: socket has no preconditions.
    let number = done(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new, and no other code owns it.
    let line = unsafe { OwnedFd::from_raw_fd(number) };
    let limit = libc::timeval { tv_sec: patience.as_secs() as _, tv_usec: patience.subsec_micros().into() };
    let (value, length) = ((&raw const limit).cast(), size_of::<libc::timeval>() as libc::socklen_t);
    // SAFETY: `value` points to a timeval of that length.
    done(unsafe { libc::setsockopt(line.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDTIMEO, value, length) })?;
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address has that length, and its path ends in the zeros behind it.
    done(unsafe { libc::connect(line.as_raw_fd(), (&raw const address).cast(), length) }).map_err(normalize_timeout)?;
    Ok(UnixStream::from(line))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn addresses() {
        for text in ["127.0.0.1:1717", "[::1]:80", "app.example:9000", "unix:/run/app.sock"] {
            assert_eq!(Endpoint::parse(text).map(|it| it.to_string()).as_deref(), Some(text));
        }
        for bad in
            ["", "127.0.0.1", ":80", "h:0", "h:x", "::1:80", "unix:", "unix:app.sock", "user@h:80", "http://h:80"]
        {
            assert_eq!(Endpoint::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn too_much_too_late_and_a_full_queue() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let endpoint = Endpoint::Unix(path);
        let mut stream = endpoint.connect(Duration::from_secs(60)).unwrap();
        listener.accept().unwrap().0.write_all(b"12345").unwrap();
        assert_eq!(stream.rest(4).map_err(|e| e.kind()), Err(ErrorKind::FileTooLarge));
        let mut silent = endpoint.connect(Duration::from_millis(50)).unwrap();
        assert_eq!(silent.rest(4).map_err(|e| e.kind()), Err(ErrorKind::TimedOut));
        // SAFETY: plain numbers.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let waiting: Vec<_> = (0..4).map(|_| endpoint.connect(Duration::from_millis(50))).collect();
        assert!(waiting.iter().any(|it| it.as_ref().err().is_some_and(|e| e.kind() == ErrorKind::TimedOut)));
        let gone = Endpoint::Unix("/nowhere/s".into()).connect(Duration::from_secs(1));
        assert_eq!(gone.err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    }
}
