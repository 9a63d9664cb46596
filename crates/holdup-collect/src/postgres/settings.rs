//! The server's settings, without secrets and without those that holdup's own session changes.

use holdup_recording::secret::settings::is_secret_in_postgresql;

use super::server::{Failure, Server};

/// Settings that holdup's own session changes.
const OURS: &[&str] = &[
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "search_path",
    "default_transaction_read_only",
];

/// All settings in the server's notation (`128MB`), except those that may contain a secret.
pub(super) fn settings(server: &Server) -> Result<Vec<(String, String)>, Failure> {
    let answer = server.rows("SELECT name, current_setting(name, true) FROM pg_settings")?;
    // The session's own settings are not the server's.
    let is_ours = |name: &str| {
        OURS.contains(&name)
            || name.starts_with("application_name")
            || matches!(name, "transaction_read_only" | "client_encoding")
    };
    let all = answer.rows.iter().filter_map(|row| Some((row.text(0)?.to_owned(), row.text(1)?.to_owned())));
    Ok(all.filter(|(name, _)| !is_ours(name) && !is_secret_in_postgresql(name)).collect())
}
