//! Other clients group by a text, which the server sorts in temporary tables on the disk that requests need.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::load::Operation;
use crate::topology::Storage;

pub const FAULT: Fault = Fault {
    name: "temporary_tables",
    family: Family::Database,
    mechanism: "Other clients group by a text, which the server sorts in temporary tables on the disk that requests need.",
    causes: &["on_disk_temporary_tables"],
    parameters: &[Parameter::new("sessions", 1.0, 10.0)],
    fits: |topology| topology.storage == Storage::Throttled,
    prepare: |setup, _| {
        setup.load.ensure(Operation::Order, 0.3);
        setup.mysql.push(("innodb_flush_log_at_trx_commit", "1".to_owned()));
        setup.postgresql.push(("synchronous_commit", "on".to_owned()));
        setup.postgresql.push(("work_mem", "'64kB'".to_owned()));
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let group = "SELECT COUNT(*) FROM (SELECT body, COUNT(*) c FROM document WHERE id < 6000 GROUP BY body \
                     ORDER BY body) t";
        sessions::repeat(env.database, values.get("sessions"), 100.0, group)
    },
};
