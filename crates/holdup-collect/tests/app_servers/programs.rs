//! Starts servers and ends them, a whole process group each; clients that ask and wait; a peer that answers when it is told to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use holdup_testing::Process;

use super::PATIENCE;

/// Whether all of `programs` are here; says so if not.
pub fn are_here(programs: &[&str]) -> bool {
    programs.iter().all(|name| holdup_testing::program(name, name).is_some())
}

/// Starts a server of this test in `folder`; its process group ends with it.
pub fn launch(folder: &Path, command: &mut Command) -> Process {
    Process::start_group(command.current_dir(folder), &folder.join("log"))
}

/// Waits until it answers.
pub fn wait_for_answer(server: &mut Process, port: u16) {
    server.wait("answer", || get(port, "/").is_some_and(|answer| answer.contains("fine")));
}

/// The answer to one request; none if there is none.
pub fn get(port: u16, path: &str) -> Option<String> {
    let mut line = TcpStream::connect(("127.0.0.1", port)).ok()?;
    line.set_read_timeout(Some(PATIENCE)).ok()?;
    line.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    line.read_to_string(&mut answer).ok().filter(|length| *length > 0)?;
    Some(answer)
}

/// A request that is under way.
pub fn ask(port: u16, path: &str) -> JoinHandle<Option<String>> {
    let path = path.to_owned();
    spawn(move || get(port, &path))
}

/// Connections that nobody waits for: more of them than there is room for.
pub fn knock(port: u16, times: usize) -> Vec<TcpStream> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let tried: Vec<_> =
        (0..times).map(|_| spawn(move || TcpStream::connect_timeout(&address, Duration::from_millis(300)))).collect();
    tried.into_iter().filter_map(|thread| thread.join().unwrap().ok()).collect()
}

/// What a server asks in turn: takes a line, and answers it once it may.
#[derive(Clone)]
pub struct Peer {
    pub port: u16,
    may: Arc<(Mutex<bool>, Condvar)>,
}

impl Peer {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = Self { port: listener.local_addr().unwrap().port(), may: Arc::default() };
        let may = peer.may.clone();
        spawn(move || {
            for line in listener.incoming().flatten() {
                let may = may.clone();
                spawn(move || answer(line, &may));
            }
        });
        peer
    }

    pub fn let_go(&self, now: bool) {
        *self.may.0.lock().unwrap() = now;
        self.may.1.notify_all();
    }
}

fn answer(mut line: TcpStream, may: &(Mutex<bool>, Condvar)) -> std::io::Result<()> {
    let mut lines = BufReader::new(line.try_clone()?);
    let mut text = String::new();
    while lines.read_line(&mut text)? > 0 {
        let guard = may.0.lock().unwrap();
        drop(may.1.wait_while(guard, |may| !*may).unwrap());
        line.write_all(b"yes\n")?;
        text.clear();
    }
    Ok(())
}
