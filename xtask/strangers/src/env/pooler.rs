//! PgBouncer in front of PostgreSQL: started for a draw, on the server that is up. Faults change a setting at its console,
//! or hold its server connections from sessions of their own.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::process::{self, Guarded, ask, free_port};
use super::running::Running;
use crate::topology::{App, Between, Topology};

/// Users whom it lets in: the app, other clients, and who watches.
const USERS: &str = "\"app\" \"\"\n\"batch\" \"\"\n\"boss\" \"\"\n";

/// Version 3.0 of PostgreSQL's protocol.
const VERSION: u32 = 3 << 16;

/// A handle on it, for faults.
#[derive(Clone, Copy, Debug)]
pub struct Pooler {
    /// Its port on loopback.
    pub port: u16,
    /// Server connections of a pool while nothing is wrong.
    pub size: u32,
}

/// A pooler that runs until this value goes.
pub struct Pooled {
    _process: Guarded,
    /// The handle.
    pub pooler: Pooler,
}

/// Server connections that suffice for `topology`. In session mode each client of the load or the app keeps one.
fn size(topology: &Topology) -> u32 {
    match (topology.between, topology.app) {
        (Between::PoolerSession, App::None) => 100,
        (Between::PoolerSession, _) => 24,
        _ => 20,
    }
}

impl Pooled {
    /// Starts it in `dir` before the database on port `database`; none where the draw has no pooler.
    pub fn start(topology: &Topology, dir: &Path, database: u16) -> Result<Option<Self>> {
        if !topology.between.is_pooler() {
            return Ok(None);
        }
        let pooler = Pooler { port: free_port()?, size: size(topology) };
        let (options, users) = (dir.join("pgbouncer.ini"), dir.join("pgbouncer.users"));
        let mode = if topology.between == Between::PoolerSession { "session" } else { "transaction" };
        let (port, size) = (pooler.port, pooler.size);
        let text = format!(
            "[databases]\nshop = host=127.0.0.1 port={database} dbname=shop\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\nadmin_users = boss\n\
             stats_users = boss\npool_mode = {mode}\ndefault_pool_size = {size}\nmax_client_conn = 900\n",
            users.display()
        );
        fs::write(&users, USERS).with_context(|| format!("failed to write {}", users.display()))?;
        fs::write(&options, text).with_context(|| format!("failed to write {}", options.display()))?;
        // It refuses to be root, and takes the account that the servers have.
        let mut words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"].map(str::to_owned).to_vec();
        words.extend([process::server("pgbouncer"), options.display().to_string()]);
        let process = Guarded::start(dir, "pgbouncer", "TERM", &words, &[])?;
        let is_ready = || Session::open(pooler.port, "app").and_then(|mut session| session.execute("SELECT 1")).is_ok();
        process::until("PgBouncer", Duration::from_secs(20), is_ready)
            .with_context(|| fs::read_to_string(dir.join("pgbouncer.log")).unwrap_or_default())?;
        Ok(Some(Self { _process: process, pooler }))
    }
}

impl Pooler {
    /// Address for `holdup --watch`.
    pub fn watch_address(&self) -> String {
        format!("pgbouncer://boss@127.0.0.1:{}/pgbouncer", self.port)
    }

    /// Name of that source in recordings.
    pub fn source(&self) -> String {
        format!("pgbouncer://127.0.0.1:{}", self.port)
    }

    fn set_size(&self, connections: u32) -> Result<()> {
        let mut console = Command::new("psql");
        console.args(["-qAtX", "-h", "127.0.0.1", "-U", "boss", "-d", "pgbouncer", "-p", &self.port.to_string()]);
        ask(console.args(["-c", &format!("SET default_pool_size = {connections}")]), "").map(drop)
    }

    /// Leaves each pool so many server connections until the fault ends.
    pub fn set_size_until(&self, connections: u32) -> Result<Running> {
        self.set_size(connections)?;
        let pooler = *self;
        Ok(Running::until(move || pooler.set_size(pooler.size)))
    }

    /// Sessions of the app's user, until the fault ends. Each executes `begin`, stays idle for `held`, executes `end`, and
    /// begins again at once.
    pub fn hold(&self, sessions: u32, begin: &'static str, held: Duration, end: &'static str) -> Result<Running> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut all = Vec::new();
        for _ in 0..sessions {
            let mut session = Session::open(self.port, "app").context("PgBouncer lets no other client in")?;
            let stream = session.0.try_clone().context("a socket can't be shared")?;
            let stop = Arc::clone(&stop);
            let hold = move || {
                // An error is the end of the fault: its socket is closed.
                while session.execute(begin).is_ok() && sleep(held, &stop) && session.execute(end).is_ok() {}
            };
            let thread = thread::Builder::new().name("holder".to_owned()).spawn(hold);
            all.push((stream, thread.context("could not start a thread")?));
        }
        Ok(Running::until(move || {
            stop.store(true, Ordering::Relaxed);
            for (stream, _) in &all {
                let _ = stream.shutdown(Shutdown::Both);
            }
            all.into_iter().for_each(|(_, thread)| drop(thread.join()));
            Ok(())
        }))
    }
}

/// Sleeps, and wakes early where `stop` is set; whether it was not.
fn sleep(time: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + time;
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(Duration::from_millis(50)));
    }
    false
}

/// A session without a password: as much of PostgreSQL's protocol as it takes to execute a statement.
struct Session(TcpStream);

impl Session {
    fn open(port: u16, user: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let names = format!("user\0{user}\0database\0shop\0\0");
        let length = 8 + names.len() as u32;
        stream.write_all(&[&length.to_be_bytes()[..], &VERSION.to_be_bytes(), names.as_bytes()].concat())?;
        let mut session = Self(stream);
        session.finish()?;
        Ok(session)
    }

    fn execute(&mut self, sql: &str) -> io::Result<()> {
        let length = 5 + sql.len() as u32;
        self.0.write_all(&[&b"Q"[..], &length.to_be_bytes(), sql.as_bytes(), b"\0"].concat())?;
        self.finish()
    }

    /// Reads until the server is ready for the next statement.
    fn finish(&mut self) -> io::Result<()> {
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]).saturating_sub(4);
            io::copy(&mut (&self.0).take(length.into()), &mut io::sink())?;
            if head[0] == b'Z' {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What a server says to a login and to two statements, message by message.
    fn serve(listener: &TcpListener) -> io::Result<Vec<u8>> {
        let (mut stream, _) = listener.accept()?;
        let message = |kind: u8, text: &[u8]| [&[kind][..], &(4 + text.len() as u32).to_be_bytes()[..], text].concat();
        let ready = message(b'Z', b"I");
        stream.write_all(&[message(b'R', &[0; 4]), message(b'S', b"a\0b\0"), ready.clone()].concat())?;
        stream.write_all(&[message(b'C', b"BEGIN\0"), ready.clone(), message(b'E', b"SERROR\0\0"), ready].concat())?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said)?;
        Ok(said)
    }

    #[test]
    fn a_session_reads_each_answer_to_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || serve(&listener));
        let mut session = Session::open(port, "app").unwrap();
        session.execute("BEGIN").unwrap();
        session.execute("COMMIT").unwrap();
        drop(session);
        let said = server.join().unwrap().unwrap();
        let expected = b"\0\0\0\x20\0\x03\0\0user\0app\0database\0shop\0\0Q\0\0\0\x0aBEGIN\0Q\0\0\0\x0bCOMMIT\0";
        assert_eq!(said, expected, "{}", String::from_utf8_lossy(&said));
    }

    #[test]
    fn a_pool_has_room_for_its_clients() {
        let mut topology = crate::draw::Draw::new(0).topology;
        topology.between = Between::PoolerSession;
        for (app, clients) in [(App::None, 2 * crate::load::SESSIONS), (App::Python, super::super::app::POOL)] {
            topology.app = app;
            assert!(size(&topology) > clients);
        }
    }
}
