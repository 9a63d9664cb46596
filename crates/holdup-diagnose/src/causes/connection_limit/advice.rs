//! What to do about a limit on connections: fewer of them, or a higher limit with files for it.

use crate::causes::thousands;
use crate::change::database::Server;
use crate::change::parameters::{MYSQL_CONNECTIONS, POSTGRESQL_CONNECTIONS, USER_CONNECTIONS};
use crate::change::{Direction, Fix};
use crate::resources::connection_limits::{ConnectionLimit, LimitedServer};
use crate::resources::sessions;
use holdup_recording::metrics::nginx::WRITING_CONNECTIONS;
use holdup_signals::View;

pub(super) fn fixes(view: &View<'_>, limit: &ConnectionLimit) -> Vec<Fix> {
    if limit.server == LimitedServer::Nginx {
        return of_nginx(view, limit);
    }
    let refused = limit.refused.as_ref().map_or(0.0, |r| (r.0 / view.window.seconds()).ceil());
    // Half as many again, plus those refused in a second.
    let enough = ((limit.had.max(limit.most) * 1.5 + refused) / 50.0).ceil() * 50.0;
    let idle = sessions::counted(view, &[("true_state", "idle")]);
    let idle_share = idle.filter(|i| i.mean > 0.5 * limit.had).map(|i| i.mean);
    let mut fixes = Vec::new();
    if let Some(idle) = idle_share {
        fixes.push(Fix {
            text: format!(
                "Make the apps' pools smaller, or put a pooler in between: {idle:.0} of {:.0} connections were idle on average.",
                limit.had
            ),
            command: None,
            keep: None,
            risk: Some("A pool that is too small makes its requests wait instead.".to_owned()),
        });
    }
    fixes.push(match limit.server {
        LimitedServer::MongoDb => of_mongodb(enough),
        LimitedServer::Postgresql if limit.had < limit.most => of_a_role(),
        _ => raise(view, limit, enough),
    });
    fixes
}

/// MongoDB's limit is set in its configuration, and the system's limits stand below it.
fn of_mongodb(enough: f64) -> Fix {
    Fix {
        text: format!(
            "Use fewer connections first: a smaller maxPoolSize in each app. Else raise net.maxIncomingConnections to {}, with as many open files (ulimit -n) and a restart.",
            thousands(enough)
        ),
        command: None,
        keep: None,
        risk: Some("Each connection has a thread with its stack (up to 1 MiB).".to_owned()),
    }
}

/// How many slots there are is only in nginx' configuration. Idle connections are not why none is
/// free: nginx closes those itself before it refuses one.
fn of_nginx(view: &View<'_>, limit: &ConnectionLimit) -> Vec<Fix> {
    let busy = view.gauge(WRITING_CONNECTIONS.name, &[], "").map_or(limit.had, |busy| busy.max);
    let shorter = Fix {
        text: format!(
            "Find what its requests wait for: up to {} of {} connections were busy with one.",
            thousands(busy),
            thousands(limit.had)
        ),
        command: None,
        keep: None,
        risk: None,
    };
    let more = Fix {
        text: "Raise nginx' worker_connections, which each worker process has: a proxied request takes two. Raise \
               worker_rlimit_nofile with it."
            .to_owned(),
        command: Some("nginx -T | grep -E 'worker_(connections|processes|rlimit_nofile)'".to_owned()),
        keep: Some("worker_connections in the events block of nginx.conf; then nginx -s reload".to_owned()),
        risk: Some("More requests then reach the app at once.".to_owned()),
    };
    vec![shorter, more]
}

/// The server had room: a role or a database has a limit of its own.
fn of_a_role() -> Fix {
    Fix {
        text: "Raise the limit of the role or the database that has reached its own (ALTER ROLE … CONNECTION LIMIT)."
            .to_owned(),
        command: Some(
            "SELECT rolname, rolconnlimit FROM pg_roles WHERE rolconnlimit >= 0; \
             SELECT datname, datconnlimit FROM pg_database WHERE datconnlimit >= 0;"
                .to_owned(),
        ),
        keep: None,
        risk: Some("The limit may keep connections for other roles.".to_owned()),
    }
}

/// A higher limit: by how much it is reached, and with files for it.
fn raise(view: &View<'_>, limit: &ConnectionLimit, enough: f64) -> Fix {
    let parameter = match (limit.server, limit.setting) {
        (LimitedServer::Postgresql, _) => &POSTGRESQL_CONNECTIONS,
        (_, "max_user_connections") => &USER_CONNECTIONS,
        _ => &MYSQL_CONNECTIONS,
    };
    let server = Server::find(view, parameter.engine);
    let change = match server.change(Direction::Raise, parameter, enough) {
        Ok(change) => change,
        // What PostgreSQL itself calls its limit may be that of a role or a database.
        Err(stay) if limit.server == LimitedServer::Postgresql => {
            return stay.fix("Look for a limit of the role or the database (ALTER ROLE … CONNECTION LIMIT).");
        }
        Err(stay) => return stay.fix("Use fewer connections."),
    };
    let steps = server.steps(&[(parameter, &change)]);
    if limit.server == LimitedServer::Postgresql {
        let why = format!("it had {} at once", thousands(limit.had));
        return change.fix(&why, steps, "Each backend takes 5 to 10 MiB, plus work_mem for each sort.");
    }
    let files = view.setting_number("open_files_limit").unwrap_or(0.0);
    let lack = if files > 0.0 && files < change.to + 500.0 {
        format!(", and open_files_limit is {}: raise that first (LimitNOFILE= of the server's unit)", thousands(files))
    } else {
        String::new()
    };
    let why = format!("it had {} at once{lack}", thousands(limit.had));
    change.fix(&why, steps, "Each connection has a thread with its stack (256 KiB to 1 MiB) and the buffers of its statements; more of them active at once may make all slower.")
}
