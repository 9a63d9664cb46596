//! PgBouncer in front of PostgreSQL: started for a draw, on the server that is up. Faults change a setting at its console,
//! or hold its server connections from sessions of their own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::process::{self, Guarded, ask, free_port};
use super::running::Running;
use super::sessions::{self, Script};
use crate::topology::{App, Between, Topology};

/// Users whom it lets in: the app, other clients, and who watches.
const USERS: &str = "\"app\" \"\"\n\"batch\" \"\"\n\"boss\" \"\"\n";

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
        let is_ready = || ask(pooler.client("app", "shop").args(["-c", "SELECT 1"]), "").is_ok();
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
        let set = format!("SET default_pool_size = {connections}");
        ask(self.client("boss", "pgbouncer").args(["-c", &set]), "").map(drop)
    }

    /// Leaves each pool so many server connections until the fault ends.
    pub fn set_size_until(&self, connections: u32) -> Result<Running> {
        self.set_size(connections)?;
        let pooler = *self;
        Ok(Running::until(move || pooler.set_size(pooler.size)))
    }

    /// Sessions of the app's user, until the fault ends. Each executes `begin`, stays idle for `held`, executes `end`, and
    /// begins again at once.
    pub fn hold(&self, dir: &Path, sessions: u32, begin: &str, held: Duration, end: &str) -> Result<Running> {
        let round = format!("{begin};\n\\! sleep {:.3}\n{end};", held.as_secs_f64());
        let program = || self.client("app", "shop");
        sessions::start_clients(
            program,
            dir,
            sessions as usize,
            Duration::ZERO,
            &(Arc::new(move |_, _| round.clone()) as Arc<Script>),
        )
    }

    fn client(&self, user: &str, database: &str) -> Command {
        let mut psql = Command::new("psql");
        psql.args(["-qAtX", "-h", "127.0.0.1", "-U", user, "-d", database, "-p", &self.port.to_string()]);
        psql
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
