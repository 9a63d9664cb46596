//! Other clients take nearly all connections that the server admits, and the app, which connects for each request, is refused.

use super::{Family, Fault, Parameter};
use crate::env::sessions;
use crate::topology::{App, Engine};

pub const FAULT: Fault = Fault {
    name: "connection_limit",
    family: Family::Database,
    mechanism: "Other clients take nearly all connections that the server admits, and the app, which connects for each request, is refused.",
    causes: &["connection_limit"],
    parameters: &[Parameter::new("left", 4.0, 1.0)],
    // Behind a pooler it is the pooler that is refused, and requests wait there.
    fits: |topology| {
        let is_direct = topology.engine != Engine::MariadbThreadPool && !topology.between.is_pooler();
        topology.app == App::Python && is_direct
    },
    prepare: |setup, _| {
        setup.load.at_most(40.0);
        setup.load.at_least(25.0);
        setup.knobs.push(("reconnect", 1.0));
        setup.knobs.push(("hold_ms", 60.0));
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let left = values.get("left").round();
        let idle = sessions::repeat(env.database, 30.0, 1_000.0, "SELECT 1")?;
        let limit = if env.database.engine.is_mysql() {
            env.database.set_global("max_connections", &format!("{:.0}", 33.0 + left))?
        } else {
            // Those who watch have a database role of their own.
            let set = format!("ALTER ROLE app NOSUPERUSER CONNECTION LIMIT {left:.0}");
            env.database.sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO app; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app")?;
            env.database.sql_until(&set, "ALTER ROLE app SUPERUSER CONNECTION LIMIT -1")?
        };
        Ok(idle.and(limit))
    },
};
