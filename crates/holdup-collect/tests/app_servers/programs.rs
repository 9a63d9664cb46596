//! Starts servers and ends them, a whole process group each; clients that ask and wait; a peer that answers when it is told to.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use super::PATIENCE;

/// Whether all of `programs` are here; says so if not.
pub fn are_here(programs: &[&str]) -> bool {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin"];
    for program in programs {
        if !folders.iter().any(|folder| Path::new(folder).join(program).exists()) {
            assert!(std::env::var_os("CI").is_none(), "{program} is not installed: cargo xtask setup");
            eprintln!("skipped: {program} is not installed (cargo xtask setup installs it)");
            return false;
        }
    }
    true
}

pub fn free_port() -> u16 {
    holdup_lab::ports::free().unwrap()
}

/// A server of this test: its process group ends with it.
pub struct Program {
    child: Child,
    log: std::path::PathBuf,
}

impl Program {
    /// Starts it in `folder`, where its output is `log`.
    pub fn start(folder: &Path, command: &mut Command) -> Self {
        let log = folder.join("log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let errors = file.try_clone().unwrap();
        let child =
            command.current_dir(folder).stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0).spawn();
        Self { child: child.unwrap(), log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until `is_so`.
    pub fn wait(&mut self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended: {}", self.log());
            assert!(Instant::now() < deadline, "no {what}: {}", self.log());
            sleep(Duration::from_millis(50));
        }
    }

    /// Whether it ends by itself within this time.
    pub fn ended_within(&mut self, time: Duration) -> bool {
        sleep(time);
        self.child.try_wait().unwrap().is_some()
    }

    pub fn wait_for_port(&mut self, port: u16) {
        self.wait("answer", || get(port, "/").is_some_and(|answer| answer.contains("fine")));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: plain numbers; the group is that of our own child.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

/// Ends one process of a server of this test.
pub fn kill(pid: u32) {
    // SAFETY: plain numbers.
    assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGKILL) }, 0);
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
