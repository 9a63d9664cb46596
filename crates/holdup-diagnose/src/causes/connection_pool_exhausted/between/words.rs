//! What the kinds of poolers call their settings, and how to change them.

use holdup_signals::database::pooler::{BusiestPool, Product};

use crate::resources::pooler::Pooler;

/// What else the kinds of poolers call by names of their own.
pub(super) struct Words {
    pub size: &'static str,
    pub pool: &'static str,
    /// What a larger pool may bring.
    pub risk: &'static str,
    /// What shows that the queue is gone.
    pub proof: &'static str,
    /// The command that gives the pool this size.
    pub command: fn(&BusiestPool, f64) -> Option<String>,
}

const PGBOUNCER: Words = Words {
    size: "default_pool_size",
    pool: "database",
    risk: "Each pair of database and user may then open that many connections: check the sum against the database's max_connections.",
    proof: "cl_waiting stays 0 in SHOW POOLS",
    command: |_, to| {
        Some(format!("default_pool_size = {to:.0} below [pgbouncer] in pgbouncer.ini, then RELOAD on its console"))
    },
};

const PROXYSQL: Words = Words {
    size: "max_connections in mysql_servers",
    pool: "hostgroup",
    risk: "The servers may then get that many connections: check it against their own max_connections.",
    proof: "no row of stats_mysql_processlist has the command Connect",
    command: |pool, to| {
        let (each, hostgroup) = ((to / pool.servers as f64).ceil(), pool.name.parse::<u32>().ok()?);
        Some(format!(
            "UPDATE mysql_servers SET max_connections = {each:.0} WHERE hostgroup_id = {hostgroup}; LOAD MYSQL SERVERS TO RUNTIME; SAVE MYSQL SERVERS TO DISK;"
        ))
    },
};

/// The words of this pooler.
pub(super) fn words(pooler: &Pooler) -> &'static Words {
    match pooler.kind.product {
        Product::PgBouncer => &PGBOUNCER,
        Product::ProxySql => &PROXYSQL,
    }
}
