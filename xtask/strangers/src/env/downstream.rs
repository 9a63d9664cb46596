//! The service that the Python app asks for each order: it answers after as long as a fault says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::running::Running;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}";

/// How long it takes when nothing is wrong.
const USUAL: Duration = Duration::from_millis(2);

/// How long answers take.
#[derive(Debug)]
struct Delay {
    us: AtomicU64,
    /// One answer of so many takes that long, the others [`USUAL`].
    every: AtomicU64,
    asked: AtomicU64,
}

impl Delay {
    fn set(&self, us: u64, every: u64) {
        self.us.store(us, Ordering::Relaxed);
        self.every.store(every, Ordering::Relaxed);
    }

    fn reset(&self) {
        self.set(USUAL.as_micros() as u64, 1);
    }

    /// That of the next answer.
    fn next(&self) -> Duration {
        let (number, every) = (self.asked.fetch_add(1, Ordering::Relaxed), self.every.load(Ordering::Relaxed).max(1));
        let is_late = number.is_multiple_of(every);
        if is_late { Duration::from_micros(self.us.load(Ordering::Relaxed)) } else { USUAL }
    }
}

/// It serves until the bench ends.
#[derive(Clone, Debug)]
pub struct Downstream {
    delay: Arc<Delay>,
    /// Its port, on every address of this machine's private networks.
    pub port: u16,
}

impl Downstream {
    /// Starts it on `address`.
    pub fn start(address: &str) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).with_context(|| format!("can't listen on {address}"))?;
        let port = listener.local_addr()?.port();
        let delay = Arc::new(Delay { us: AtomicU64::new(0), every: AtomicU64::new(1), asked: AtomicU64::new(0) });
        delay.reset();
        let shared = Arc::clone(&delay);
        let serve = move || {
            for stream in listener.incoming().flatten() {
                let delay = Arc::clone(&shared);
                let _ = thread::Builder::new().name("downstream".to_owned()).spawn(move || answer(stream, &delay));
            }
        };
        thread::Builder::new().name("downstream".to_owned()).spawn(serve).context("could not start a thread")?;
        Ok(Self { delay, port })
    }

    /// Lets it take so long until the fault ends.
    pub fn delay_until(&self, delay_ms: f64) -> Running {
        self.delay_some_until(delay_ms, 1)
    }

    /// Lets one answer of `every` take so long until the fault ends.
    pub fn delay_some_until(&self, delay_ms: f64, every: u64) -> Running {
        self.delay.set((delay_ms * 1e3) as u64, every);
        let delay = Arc::clone(&self.delay);
        Running::until(move || {
            delay.reset();
            Ok(())
        })
    }
}

fn answer(stream: TcpStream, delay: &Delay) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
        if line.trim().is_empty() {
            thread::sleep(delay.next());
            if writer.write_all(ANSWER).is_err() {
                return;
            }
        }
        line.clear();
    }
}
