//! Scans of other clients hold the threads of the server's pool, and short statements queue for a thread.

use super::{Family, Fault, Parameter};
use crate::env::database::Database;
use crate::env::{Running, sessions};
use crate::topology::Engine;

pub const FAULT: Fault = Fault {
    name: "thread_pool_scans",
    family: Family::Database,
    mechanism: "Scans of other clients hold the threads of the server's pool, and short statements queue for a thread.",
    causes: &["thread_pool_queue"],
    parameters: &[Parameter::new("sessions", 4.0, 40.0)],
    fits: |topology| topology.engine == Engine::MariadbThreadPool,
    start: |env, values| {
        let scan = "SELECT COUNT(*) FROM orders WHERE MD5(note) LIKE '%abcdef%'";
        // Through the port of the app, where threads come from the pool.
        let shared = Database { extra_port: None, ..env.database.clone() };
        let scans = sessions::repeat(&shared, values.get("sessions"), 0.0, scan)?;
        let database = env.database.clone();
        Ok(Running::until(move || database.end_sessions(sessions::USER)).and(scans))
    },
    ..Fault::BASE
};
