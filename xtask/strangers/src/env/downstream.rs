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

/// It serves until the bench ends.
#[derive(Clone, Debug)]
pub struct Downstream {
    delay_us: Arc<AtomicU64>,
    /// Its port, on every address of this machine's private networks.
    pub port: u16,
}

impl Downstream {
    /// Starts it on `address`.
    pub fn start(address: &str) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).with_context(|| format!("can't listen on {address}"))?;
        let port = listener.local_addr()?.port();
        let delay_us = Arc::new(AtomicU64::new(USUAL.as_micros() as u64));
        let shared = Arc::clone(&delay_us);
        let serve = move || {
            for stream in listener.incoming().flatten() {
                let delay_us = Arc::clone(&shared);
                let _ = thread::Builder::new().name("downstream".to_owned()).spawn(move || answer(stream, &delay_us));
            }
        };
        thread::Builder::new().name("downstream".to_owned()).spawn(serve).context("could not start a thread")?;
        Ok(Self { delay_us, port })
    }

    /// Lets it take so long until the fault ends.
    pub fn delay_until(&self, delay_ms: f64) -> Running {
        self.delay_us.store((delay_ms * 1e3) as u64, Ordering::Relaxed);
        let delay_us = Arc::clone(&self.delay_us);
        Running::until(move || {
            delay_us.store(USUAL.as_micros() as u64, Ordering::Relaxed);
            Ok(())
        })
    }
}

fn answer(stream: TcpStream, delay_us: &AtomicU64) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
        if line.trim().is_empty() {
            thread::sleep(Duration::from_micros(delay_us.load(Ordering::Relaxed)));
            if writer.write_all(ANSWER).is_err() {
                return;
            }
        }
        line.clear();
    }
}
