//! The cases as data: what is wrong from the start, who names it, and which requests feel it.

use anyhow::Result;

use crate::env::database::Database;
use crate::env::downstream::Downstream;
use crate::env::{Running, sessions};
use crate::load::Operation;

/// What a fault may reach.
pub struct Reach<'a> {
    /// PostgreSQL.
    pub database: &'a Database,
    /// The third-party service.
    pub downstream: &'a Downstream,
    /// Starts programs that run until the fault ends.
    pub program: &'a dyn Fn(&str) -> Result<Running>,
}

/// A service with one thing wrong, or none.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What is wrong, in one sentence.
    pub mechanism: &'static str,
    /// Causes that name it. None: nothing is wrong.
    pub right: &'static [&'static str],
    /// Requests per second.
    pub rate: f64,
    /// What they do, by weight.
    pub mix: &'static [(Operation, u32)],
    /// Knobs with which the app starts.
    pub knobs: &'static [(&'static str, f64)],
    /// What is wrong outside the app.
    pub start: fn(&Reach<'_>) -> Result<Running>,
}

impl Case {
    const BASE: Self = Self {
        name: "",
        mechanism: "",
        right: &[],
        rate: 30.0,
        mix: &[(Operation::Item, 8), (Operation::Category, 4), (Operation::History, 5), (Operation::Order, 3)],
        knobs: &[],
        start: |_| Ok(Running::nothing()),
    };
}

/// All cases.
pub const CASES: &[Case] = &[
    Case {
        name: "index",
        mechanism: "The orders of a customer have had no index from the start, and each look reads all orders.",
        right: &["missing_index"],
        mix: &[(Operation::Item, 4), (Operation::Category, 2), (Operation::History, 12), (Operation::Order, 2)],
        start: |reach| {
            let index = "CREATE INDEX orders_customer ON orders (customer)";
            reach.database.sql_until("DROP INDEX orders_customer", index)
        },
        ..Case::BASE
    },
    Case {
        name: "lock",
        mechanism: "A session of an import keeps the table of items locked, and orders wait for its commit.",
        right: &["lock_contention"],
        mix: &[(Operation::Item, 2), (Operation::History, 2), (Operation::Order, 16)],
        start: |reach| {
            let lock = "BEGIN; LOCK TABLE item IN SHARE ROW EXCLUSIVE MODE";
            sessions::hold(reach.database, lock, 1_500.0, "COMMIT", 1_600.0)
        },
        ..Case::BASE
    },
    Case {
        name: "pool",
        mechanism: "Each worker has a pool of one connection, and a request keeps it and its transaction while it renders its answer.",
        right: &["connection_pool_exhausted"],
        rate: 42.0,
        knobs: &[("pool", 2.0), ("transaction_ms", 42.0)],
        ..Case::BASE
    },
    Case {
        name: "third_party",
        mechanism: "The service that orders and their history ask answers after 400 ms.",
        right: &["downstream_slow"],
        mix: &[(Operation::Item, 4), (Operation::History, 8), (Operation::Order, 4)],
        start: |reach| Ok(reach.downstream.delay_until(400.0)),
        ..Case::BASE
    },
    Case {
        name: "statement_per_row",
        mechanism: "A page of a category reads each of its items by a statement of its own.",
        right: &["n_plus_one_queries"],
        rate: 10.0,
        mix: &[(Operation::Item, 4), (Operation::Category, 12), (Operation::History, 3), (Operation::Order, 1)],
        knobs: &[("n_plus_one", 240.0)],
        ..Case::BASE
    },
    Case {
        name: "dear_endpoint",
        mechanism: "Most requests are for a report that adds up all orders, and its statement takes the CPUs.",
        right: &["cpu_saturated", "statement_mix_changed"],
        rate: 32.0,
        mix: &[(Operation::Item, 4), (Operation::Category, 2), (Operation::History, 2), (Operation::Sales, 12)],
        ..Case::BASE
    },
    Case {
        name: "dump",
        mechanism: "Three logical backups read and compress all tables beside the service.",
        right: &["backup_or_bulk_load"],
        rate: 40.0,
        start: |reach| {
            let port = reach.database.port;
            let dump = format!("while :; do pg_dump -Fc -h 127.0.0.1 -p {port} -U batch shop >/dev/null; done");
            (reach.program)(&format!("for job in 1 2 3; do {dump} & done; wait"))
        },
        ..Case::BASE
    },
    Case {
        name: "few_workers",
        mechanism: "The app has two workers with a thread each, and requests queue for one.",
        right: &["worker_pool_exhausted"],
        rate: 50.0,
        knobs: &[("workers", 2.0), ("sleep_ms", 40.0)],
        ..Case::BASE
    },
    Case { name: "healthy", mechanism: "Nothing is wrong.", ..Case::BASE },
];
