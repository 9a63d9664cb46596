//! A backup runs at its leisure and takes nothing that requests need.

use super::{Family, Fault, Parameter};
use crate::topology::Data;

pub const FAULT: Fault = Fault {
    name: "harmless_backup",
    family: Family::Control,
    mechanism: "A backup runs at its leisure and takes nothing that requests need.",
    parameters: &[Parameter::new("pause_ms", 800.0, 200.0)],
    fits: |topology| topology.data == Data::InCache,
    prepare: |setup, _| setup.load.at_most(200.0),
    start: |env, values| {
        let port = env.database.side_port();
        let dump = if env.database.engine.is_mysql() {
            format!("mariadb-dump --no-defaults -h127.0.0.1 -P {port} -u batch --single-transaction shop customer")
        } else {
            format!("pg_dump -h 127.0.0.1 -p {port} -U batch -t customer shop")
        };
        let pause = values.get("pause_ms") * 1e-3;
        let work = format!("while :; do nice -n 19 {dump} >/dev/null; sleep {pause:.2}; done");
        env.processes(1.0, &["sh", "-c", &work])
    },
    ..Fault::BASE
};
