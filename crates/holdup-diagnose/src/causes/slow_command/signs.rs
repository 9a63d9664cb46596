//! Commands that keep a server's one thread, by its slow log or by its times of each command.

use holdup_recording::words::percent;

use super::busy;
use crate::instant::facts::Facts;
use crate::instant::{MOST, SOME, Share, Signs};
use crate::strength::STRONG;

/// A command of this mean time is slow where others take microseconds, seconds: the limit of the slow log
/// as it is shipped (Redis documentation: SLOWLOG, slowlog-log-slower-than).
const SLOW_S: f64 = 0.01;

/// How the settings of a pasted slow log begin: one a command.
const PASTED: &str = "slowlog.";

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let window_s = facts.view.window.seconds().max(1.0);
    for heavy in facts.statements.heavy.iter().filter(|heavy| heavy.of.source.starts_with("redis:")) {
        let busy = (heavy.of.seconds / window_s).min(1.0);
        if heavy.each_s() >= SLOW_S && busy >= SOME {
            let why = format!("it kept the server's one thread for {} of the time", percent(busy));
            let evidence = heavy.evidence(&facts.view, "duration_ns", percent(busy), &why);
            signs.accounting(STRONG * (busy / MOST).min(1.0), evidence, heavy.share(1.0));
        }
    }
    for busy in busy::all(&facts.view) {
        let share = Share { ratio: busy.share, of: "of the server's one thread".to_owned() };
        signs.accounting(STRONG * busy.share, busy.evidence(&facts.view, ""), share);
    }
}

/// Whether the slow log is known: it was pasted, or a watched server's has entries.
pub(super) fn has_slow_log(facts: &Facts<'_>) -> bool {
    let tables = &facts.view.recording.tables;
    tables.settings.rows.iter().any(|row| row.name.starts_with(PASTED))
        || tables.statements.rows.iter().any(|row| row.kind == "execution" && row.source.starts_with("redis:"))
}
