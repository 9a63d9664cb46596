//! Which statements to take off the server: an index first, a replica for what only reads, another database for
//! the rest.

use crate::causes::percent;
use crate::change::database::Server;
use crate::change::parameters::Engine;
use crate::change::{Fix, cut};
use crate::resources::statements;
use holdup_signals::{DigestUse, View};

/// Most statements that are named.
const NAMED: usize = 3;

/// Moving a smaller part (0-1) of the statements' time hardly relieves the server.
const HEAVY: f64 = 0.05;

/// Characters of each.
const STATEMENT: usize = 60;

/// What to do with the statements that hold the threads, heaviest first.
pub(super) fn heaviest(view: &View<'_>) -> Fix {
    let server = Server::find(view, Engine::MySql);
    let executed = view.executed(&["digest_text"]).unwrap_or_default();
    let all: f64 = executed.iter().map(|of| of.seconds).sum();
    let heavy = executed.iter().filter(|of| of.seconds >= HEAVY * all && of.seconds > 0.0).take(NAMED);
    let named: Vec<String> = heavy.map(|of| named(of, of.seconds / all)).collect();
    let log = server.value("slow_query_log_file").filter(|path| path.starts_with('/')).unwrap_or("SLOW_LOG");
    let on = executed.first().map(|of| of.source.as_str()).filter(|source| source.starts_with("mysql://"));
    let command = on.map(|on| format!("holdup advise {log} --on {on}"));
    let text = match (named.as_slice(), statements::holding(view, "executing")) {
        ([], Some((statement, sessions))) => format!(
            "Make the statement that holds the threads shorter, or move it to a replica: {} ({sessions:.1} sessions ran it on average).",
            cut(&statement)
        ),
        ([], None) => "Find the statements that hold the threads (longest by total time) and make them shorter, or move them to a replica.".to_owned(),
        (named, _) => format!(
            "Shorten or move the statements with the most time: {}. holdup advise looks for an index first, and says which can be read from a replica.",
            named.join("; ")
        ),
    };
    Fix::by_command(text, command.as_deref(), None)
}

/// A statement with its part of the time, and where it can go.
fn named(of: &DigestUse, share: f64) -> String {
    let text: String = of.text.chars().take(STATEMENT).collect();
    let cut = if text.len() < of.text.len() { " …" } else { "" };
    let to = if only_reads(of) { "it only reads: a replica" } else { "it writes: another database" };
    format!("{}{cut} ({} of the time; {to})", text.trim_end(), percent(share))
}

/// Whether a replica could answer it: it changed no row, and neither writes nor locks by its text.
fn only_reads(of: &DigestUse) -> bool {
    let text = of.text.to_uppercase();
    let locks = [" FOR UPDATE", " FOR SHARE", " LOCK IN SHARE MODE", " INTO OUTFILE", "GET_LOCK"];
    of.rows_changed == 0.0
        && ["SELECT", "(SELECT"].iter().any(|begins| text.trim_start().starts_with(begins))
        && !locks.iter().any(|lock| text.contains(lock))
}
