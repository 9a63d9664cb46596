//! `--metrics ADDR`: a page that Prometheus scrapes while the load runs. A small HTTP/1.1 server
//! with one request per connection and a thread each for a few of them. Each connection has one
//! limit in bytes and one in time, so that no client can take more or keep another from its answer.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdup_recording::priority::give_way;

/// Longest request head.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Most open connections; further ones are closed at once.
const CONNECTIONS_MAX: usize = 16;

/// Time for one request and its answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Interval between checks for a new connection, or for the end.
const POLL: Duration = Duration::from_millis(20);

/// The text that is served.
#[derive(Clone, Default)]
pub struct Page(Arc<Mutex<Arc<str>>>);

impl Page {
    /// Replaces the text by `text`.
    pub fn set(&self, text: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }

    fn get(&self) -> Arc<str> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The server; it ends when dropped.
pub struct Scrape {
    /// The address it listens on.
    pub address: SocketAddr,
    /// What it serves.
    pub page: Page,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Parses `ADDR`: `HOST:PORT` with an IP address as host, or a port alone, which means loopback.
///
/// # Errors
/// If it is neither; the message gives examples.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.replace("localhost:", "127.0.0.1:").parse().map_err(|_| {
        format!(
            "\"{text}\" is not an address to listen on; e.g. 127.0.0.1:9464, or 0.0.0.0:9464 to allow other machines"
        )
    })
}

impl Scrape {
    /// Listens on `address`.
    ///
    /// # Errors
    /// If it cannot, e.g. because another process does.
    pub fn open(address: SocketAddr) -> Result<Self, String> {
        Self::with_patience(address, PATIENCE)
    }

    fn with_patience(address: SocketAddr, patience: Duration) -> Result<Self, String> {
        let cannot = |e: std::io::Error| format!("cannot listen on {address}: {e}");
        let listener = TcpListener::bind(address).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let (page, stop) = (Page::default(), Arc::new(AtomicBool::new(false)));
        let (own_page, own_stop) = (page.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("metrics".to_owned());
        let thread = thread.spawn(move || serve(&listener, &own_page, &own_stop, patience)).map_err(cannot)?;
        Ok(Self { address, page, stop, thread: Some(thread) })
    }
}

impl Drop for Scrape {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, page: &Page, stop: &Arc<AtomicBool>, patience: Duration) {
    give_way();
    let open = Arc::new(AtomicUsize::new(0));
    while !stop.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(POLL);
            continue;
        };
        let place = ConnectionSlot::acquire(&open);
        if open.load(Ordering::Relaxed) > CONNECTIONS_MAX {
            continue;
        }
        let client = Client { stream, deadline: Instant::now() + patience, stop: Arc::clone(stop), _place: place };
        let page = page.get();
        // Without a thread, or after a bad request or a disconnect, the connection is closed.
        let _ = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || client.serve(&page));
    }
}

/// A slot among the open connections.
struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlot {
    fn acquire(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One connection; its slot is released after the socket.
struct Client {
    stream: TcpStream,
    /// Everything must be done by then.
    deadline: Instant,
    stop: Arc<AtomicBool>,
    _place: ConnectionSlot,
}

impl Client {
    fn serve(mut self, page: &str) {
        give_way();
        // A client that disconnects early is not an error.
        let _ = self.answer(page);
    }

    fn answer(&mut self, page: &str) -> std::io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_read_timeout(Some(POLL * 5))?;
        self.stream.set_write_timeout(Some(POLL * 5))?;
        let mut head = Vec::new();
        let mut buffer = [0; 1_024];
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            if head.len() > HEAD_BYTES_MAX {
                return self.reply("431 Request Header Fields Too Large", "too large\n", true);
            }
            match self.turn(|stream| stream.read(&mut buffer))? {
                0 => return Ok(()),
                n => head.extend(&buffer[..n]),
            }
        }
        let line = String::from_utf8_lossy(&head);
        let mut words = line.lines().next().unwrap_or_default().split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default();
        match (method, path) {
            ("GET" | "HEAD", "/metrics") => self.reply("200 OK", page, method == "GET"),
            ("GET" | "HEAD", _) => self.reply("404 Not Found", "see /metrics\n", method == "GET"),
            _ => self.reply("405 Method Not Allowed", "GET only\n", true),
        }
    }

    /// Reads or writes some bytes, within the remaining time.
    fn turn(&mut self, mut act: impl FnMut(&mut TcpStream) -> std::io::Result<usize>) -> std::io::Result<usize> {
        loop {
            if Instant::now() >= self.deadline || self.stop.load(Ordering::Relaxed) {
                return Err(ErrorKind::TimedOut.into());
            }
            match act(&mut self.stream) {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                done => return done,
            }
        }
    }

    fn reply(&mut self, status: &str, body: &str, with_body: bool) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let text = format!("{head}{}", if with_body { body } else { "" });
        let mut left = text.as_bytes();
        while !left.is_empty() {
            let sent = self.turn(|stream| stream.write(left))?;
            left = left.get(sent..).unwrap_or_default();
        }
        self.stream.shutdown(std::net::Shutdown::Write)?;
        // Bytes that the client still sends must not turn our answer into a reset.
        let mut rest = [0; 1_024];
        let mut left = HEAD_BYTES_MAX;
        while left > 0 {
            match self.turn(|stream| stream.read(&mut rest))? {
                0 => break,
                n => left = left.saturating_sub(n),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_page_is_served_and_nothing_else() {
        let scrape = Scrape::open(parse("0").unwrap()).unwrap();
        scrape.page.set("a 1\n");
        assert!(scrape.address.ip().is_loopback());
        let get = |path: &str| ask(scrape.address, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let page = get("/metrics");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\na 1\n"), "{page}");
        scrape.page.set("a 2\n");
        assert!(get("/metrics?x=1").ends_with("\r\n\r\na 2\n"));
        assert!(get("/").starts_with("HTTP/1.1 404 "));
        let head = ask(scrape.address, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(scrape.address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(ask(scrape.address, &format!("GET /{}", "x".repeat(9_000))).starts_with("HTTP/1.1 431 "));
        let taken = Scrape::open(scrape.address).err().unwrap();
        assert!(taken.contains("in use"), "{taken}");
    }

    /// Clients that say nothing, send their head byte by byte, or do not read their answer.
    #[test]
    fn slow_clients_do_not_block_the_page_and_are_bounded() {
        let scrape = Scrape::with_patience(parse("0").unwrap(), Duration::from_secs(3_600)).unwrap();
        scrape.page.set(&"a 1\n".repeat(4 << 20));
        let connect = || TcpStream::connect(scrape.address).unwrap();
        let slow = |number: usize| {
            let mut stream = connect();
            let sent = ["", "GET /met", "GET /metrics HTTP/1.1\r\n\r\n"][number % 3];
            stream.write_all(sent.as_bytes()).unwrap();
            stream
        };
        let held: Vec<TcpStream> = (0..CONNECTIONS_MAX - 1).map(slow).collect();
        let page = ask(scrape.address, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with("a 1\n"));
        let is_open = |stream: &TcpStream| {
            stream.set_nonblocking(true).unwrap();
            let seen = stream.peek(&mut [0]);
            stream.set_nonblocking(false).unwrap();
            seen.map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |count| count > 0)
        };
        assert!(held.iter().all(is_open), "they were not waited for, and are waited for still");
        // One of these may get the last place.
        let mut more: Vec<TcpStream> = (0..8).map(|_| connect()).collect();
        for stream in more.iter_mut().skip(1) {
            assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "one too many");
        }
        drop(more);
        drop((held, scrape));
    }

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("localhost:1", "127.0.0.1:1"),
            ("0.0.0.0:9464", "0.0.0.0:9464"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected);
        }
        assert!(parse("here").is_err() && parse("99999").is_err() && parse("").is_err());
    }
}
