//! The server's counters (`SHOW GLOBAL STATUS`) and settings (`SHOW GLOBAL VARIABLES`), in full.
//! Readers of the recording pick the relevant ones.

use std::collections::HashMap;
use std::time::Instant;

use holdup_recording::secret::settings::is_secret_in_mysql;
use holdup_recording::{Labels, events, metrics};

use super::failure::Failure;
use super::server::Server;
use super::versions::Topic;
use crate::reading::Out;

/// The statement for the counters; its shape in the server's records is distinct from that of other
/// clients.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name <> ''";

/// The statement for the settings.
const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name <> ''";

/// The server counts its uptime in whole seconds: a deficit up to this is rounding.
const ROUNDING_S: f64 = 2.0;

/// When the server's uptime was last read, and its value, seconds.
pub(super) type Uptime = (Instant, f64);

/// Adds all numeric counters as samples named `mysql_global_status_<name>`, and an event if the
/// server has restarted. Also returns the counters, by lower-case name.
pub(super) fn sample(
    server: &Server,
    uptime: &mut Option<Uptime>,
    out: &mut Out,
) -> Result<HashMap<String, f64>, Failure> {
    let begun = Instant::now();
    let rows = out.read(|| server.rows(STATUS))?;
    let mut values = HashMap::new();
    for row in &rows {
        let (Some(name), Some(value)) = (row.text(0), row.float(1)) else { continue };
        let name = name.to_ascii_lowercase();
        if name == "uptime" {
            // A monotonic clock. The value may be as old as the answer was slow.
            let (now, slack) = (Instant::now(), ROUNDING_S + begun.elapsed().as_secs_f64());
            if uptime.is_some_and(|(then, before)| value + slack < before + (now - then).as_secs_f64()) {
                out.say(events::RESTART, format!("the server restarted {value} s ago"), Labels::none());
            }
            *uptime = Some((now, value));
        }
        out.put_plain(metrics::mysql::GLOBAL_STATUS.member(&name), value);
        // The pool's threads, on servers that show nothing else of the pool.
        if server.release.has(Topic::PoolThreads) == "yes" {
            let metric = match name.as_str() {
                "threadpool_threads" => Some(metrics::mysql::THREAD_POOL_THREADS),
                "threadpool_idle_threads" => Some(metrics::mysql::THREAD_POOL_IDLE_THREADS),
                _ => None,
            };
            metric.into_iter().for_each(|metric| out.put_plain(metric, value));
        }
        values.insert(name, value);
    }
    Ok(values)
}

/// All global variables except those that may contain a secret.
pub(super) fn settings(server: &Server) -> Result<Vec<(String, String)>, Failure> {
    let rows = server.rows(VARIABLES)?;
    let all = rows.iter().filter_map(|row| Some((row.text(0)?.to_owned(), row.text(1)?.to_owned())));
    Ok(all.filter(|(name, _)| !is_secret_in_mysql(name)).collect())
}
