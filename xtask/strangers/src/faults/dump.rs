//! A logical backup reads every table at full speed.

use super::{Family, Fault, Parameter};

pub const FAULT: Fault = Fault {
    name: "dump",
    family: Family::Database,
    mechanism: "A logical backup reads every table at full speed.",
    causes: &["backup_or_bulk_load"],
    parameters: &[Parameter::new("dumps", 1.0, 4.0)],
    start: |env, values| {
        let port = env.database.side_port();
        let dump = if env.database.engine.is_mysql() {
            format!("mariadb-dump --no-defaults -h127.0.0.1 -P {port} -u batch --single-transaction shop")
        } else {
            format!("pg_dump -h 127.0.0.1 -p {port} -U batch shop")
        };
        env.processes(values.get("dumps"), &["sh", "-c", &format!("while :; do {dump} >/dev/null; done")])
    },
    ..Fault::BASE
};
