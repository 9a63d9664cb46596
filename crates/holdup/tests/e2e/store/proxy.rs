//! A network that breaks: a proxy on loopback in front of a server, which forwards bytes and does to each answer what a rule
//! says. It knows nothing of HTTP except that client and server take turns.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use crate::program::send;

/// What happens to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It arrives this much later.
    Late(Duration),
    /// The server has done what it was asked to do, and the client gets a reset in place of the answer.
    Reset,
    /// The process with this id is killed, and the client gets a reset.
    Killed(u32),
}

/// An answer on its way.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Its number, from 1, in all connections together.
    pub number: usize,
    /// How many of them are answers to inserts, with this one.
    pub inserts: usize,
    /// Whether it is one.
    pub is_insert: bool,
}

/// What the client has said since the last answer.
const NOTHING: u8 = 0;
const QUESTION: u8 = 1;
const INSERT: u8 = 2;

#[derive(Default)]
struct Counts {
    answers: AtomicUsize,
    inserts: AtomicUsize,
}

pub struct Proxy {
    port: u16,
}

impl Proxy {
    /// In front of the server at `port`.
    pub fn start(port: u16, rule: impl Fn(Answer) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let (rule, counts) = (Arc::new(rule), Arc::new(Counts::default()));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { continue };
                // Of a server that is away the client sees a connection that ends.
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let (rule, counts) = (Arc::clone(&rule), Arc::clone(&counts));
                std::thread::spawn(move || carry(&client, &server, &*rule, &counts));
            }
        });
        Self { port: own }
    }

    /// The address of a database behind it.
    pub fn url(&self, database: &str) -> String {
        format!("clickhouse://127.0.0.1:{}/{database}", self.port)
    }
}

impl Counts {
    fn next(&self, is_insert: bool) -> Answer {
        let inserts = self.inserts.fetch_add(usize::from(is_insert), Ordering::SeqCst) + usize::from(is_insert);
        Answer { number: self.answers.fetch_add(1, Ordering::SeqCst) + 1, inserts, is_insert }
    }
}

fn carry(client: &TcpStream, server: &TcpStream, rule: &dyn Fn(Answer) -> Fate, counts: &Counts) {
    let said = Arc::new(AtomicU8::new(NOTHING));
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let saying = Arc::clone(&said);
    let asking = std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length) = from.read(&mut bytes) {
            let kind = if bytes.starts_with(b"POST") { INSERT } else { QUESTION };
            // The first bytes after an answer are the head of a request.
            let _ = saying.compare_exchange(NOTHING, kind, Ordering::SeqCst, Ordering::SeqCst);
            if length == 0 || to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (server, client);
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length) = from.read(&mut bytes) {
        let kind = if length > 0 { said.swap(NOTHING, Ordering::SeqCst) } else { NOTHING };
        let fate = if kind == NOTHING { Fate::Arrives } else { rule(counts.next(kind == INSERT)) };
        match fate {
            Fate::Arrives => {}
            Fate::Late(by) => std::thread::sleep(by),
            Fate::Reset => return reset(client, server),
            Fate::Killed(pid) => {
                send(pid, libc::SIGKILL);
                return reset(client, server);
            }
        }
        if length == 0 || to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = asking.join();
}

/// Ends both connections, that of the client by a reset.
fn reset(client: &TcpStream, server: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: `linger` lives through the call, which reads that many bytes of it.
    unsafe {
        let value = (&raw const linger).cast();
        libc::setsockopt(client.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, size_of_val(&linger) as u32);
    }
    let _ = server.shutdown(Shutdown::Both);
    // With the last handle on it the connection is reset; the other thread has one until it reads again.
    let _ = client.shutdown(Shutdown::Read);
}
