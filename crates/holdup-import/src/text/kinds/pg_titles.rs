//! Sessions of PostgreSQL by the titles of its processes, as `ps` shows them:
//! `postgres: 16/main: app shop 10.0.0.5(41234) UPDATE waiting`. A title has no wait event but a lock's.

use holdup_recording::Text;
use holdup_recording::rows::Session;

use crate::text::out::TITLES;

/// The session of a process with this command line; none for the server's own processes.
pub(super) fn session(command: &str, pid: i64, at: i64) -> Option<Session> {
    // `ps f` draws the tree of processes before it.
    let command = command.trim_start_matches([' ', '\\', '_', '|']);
    let title = command.trim().strip_prefix("postgres: ")?;
    let words: Vec<&str> = title.split_whitespace().collect();
    // Before the client stand user and database, and maybe the cluster's name.
    let place = words.iter().position(|word| is_client(word)).filter(|place| *place >= 2)?;
    let activity = words.get(place + 1..)?.join(" ");
    let (state, true_state) = match activity.as_str() {
        "" | "authentication" | "startup" => return None,
        "idle" => ("idle", "idle"),
        state if state.starts_with("idle in transaction") => ("idle in transaction", "idle_in_transaction"),
        state if state.ends_with(" waiting") => ("active", "lock_wait"),
        _ => ("active", "executing"),
    };
    let client = words.get(place)?.trim_end_matches(')').replace('(', ":");
    Some(Session {
        observed_at: at,
        source: TITLES.into(),
        session_id: pid,
        user: words.get(place - 2).map(|user| Text::from(*user)),
        database: words.get(place - 1).map(|name| Text::from(*name)),
        client: Some(Text::from(client)),
        command: state.into(),
        state: (true_state == "lock_wait").then(|| Text::from("Lock:unknown")),
        true_state: true_state.into(),
        ..Session::default()
    })
}

/// `10.0.0.5(41234)`, `[local]`
fn is_client(word: &str) -> bool {
    let port = word.strip_suffix(')').and_then(|word| word.rsplit_once('(')).map(|(_, port)| port);
    word == "[local]" || port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_say_what_a_session_does() {
        for (title, expected) in [
            ("postgres: app shop 10.0.0.5(41234) idle", Some(("idle", "app"))),
            ("postgres: 16/main: app shop 10.0.0.5(41234) idle in transaction", Some(("idle_in_transaction", "app"))),
            ("postgres: app shop [local] UPDATE waiting", Some(("lock_wait", "app"))),
            ("\\_ postgres: 13/main: app shop 10.0.0.5(41234) PARSE waiting", Some(("lock_wait", "app"))),
            ("postgres: app shop 10.0.0.5(41234) SELECT", Some(("executing", "app"))),
            ("postgres: autovacuum launcher", None),
            ("postgres: walwriter", None),
            ("/usr/lib/postgresql/16/bin/postgres -D /x", None),
        ] {
            let found = session(title, 7, 0);
            let found = found.as_ref().map(|s| (s.true_state.as_str(), s.user.as_ref().map_or("", Text::as_str)));
            assert_eq!(found, expected, "{title}");
        }
    }
}
