//! `--metrics ADDR`: a page that Prometheus scrapes while the load runs. A small HTTP/1.1 server on one thread: a
//! request a connection, one connection at a time, each with a limit in bytes and time, so that nobody who asks can
//! take more than that.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdup_recording::priority::give_way;

/// Longest request head.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Time for one request and its answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How often is looked for a new connection, or the end.
const POLL: Duration = Duration::from_millis(20);

/// The text that is served.
#[derive(Clone, Default)]
pub struct Page(Arc<Mutex<Arc<str>>>);

impl Page {
    /// Puts `text` in the place of what was there.
    pub fn set(&self, text: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }

    fn get(&self) -> Arc<str> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The server; it ends when this does.
pub struct Scrape {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it serves.
    pub page: Page,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Reads `ADDR`: `HOST:PORT` with an address for host, or a port alone, which is one of loopback.
///
/// # Errors
/// What would be right.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.replace("localhost:", "127.0.0.1:")
        .parse()
        .map_err(|_| format!("\"{text}\" is no address to listen on; e.g. 127.0.0.1:9464, or 0.0.0.0:9464 for all who can reach this machine"))
}

impl Scrape {
    /// Listens on `address`.
    ///
    /// # Errors
    /// If it can't, e.g. because somebody else does.
    pub fn open(address: SocketAddr) -> Result<Self, String> {
        let cannot = |e: std::io::Error| format!("can't listen on {address}: {e}");
        let listener = TcpListener::bind(address).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let (page, stop) = (Page::default(), Arc::new(AtomicBool::new(false)));
        let (own_page, own_stop) = (page.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("metrics".to_owned());
        let thread = thread.spawn(move || serve(&listener, &own_page, &own_stop)).map_err(cannot)?;
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

fn serve(listener: &TcpListener, page: &Page, stop: &AtomicBool) {
    give_way();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // Whoever asks badly or goes away is no matter of ours.
            Ok((stream, _)) => drop(answer(stream, page, stop)),
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

fn answer(mut stream: TcpStream, page: &Page, stop: &AtomicBool) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    let deadline = Instant::now() + TIMEOUT;
    stream.set_read_timeout(Some(POLL * 5))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut head = Vec::new();
    let mut buffer = [0; 1_024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX {
            return reply(&mut stream, "431 Request Header Fields Too Large", "too large\n", true);
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => head.extend(&buffer[..n]),
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(e) => return Err(e),
        }
        if Instant::now() >= deadline || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(&head);
    let mut words = line.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET" | "HEAD", "/metrics") => reply(&mut stream, "200 OK", &page.get(), method == "GET"),
        ("GET" | "HEAD", _) => reply(&mut stream, "404 Not Found", "it is at /metrics\n", method == "GET"),
        _ => reply(&mut stream, "405 Method Not Allowed", "GET only\n", true),
    }
}

fn reply(stream: &mut TcpStream, status: &str, body: &str, with_body: bool) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{}", if with_body { body } else { "" }).as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    // What the other side still sends must not turn our answer into a reset.
    let mut rest = [0; 1_024];
    let mut left = HEAD_BYTES_MAX;
    while let Ok(n @ 1..) = stream.read(&mut rest)
        && left > 0
    {
        left = left.saturating_sub(n);
    }
    Ok(())
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
        // One who says nothing does not keep the others out for ever.
        let silent = TcpStream::connect(scrape.address).unwrap();
        assert!(get("/metrics").starts_with("HTTP/1.1 200 "));
        drop(silent);
        let taken = Scrape::open(scrape.address).err().unwrap();
        assert!(taken.contains("in use"), "{taken}");
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
