//! One command keeps the one thread of a Redis server, and all others wait for it.

mod busy;
mod signs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::parts::one_thread::{self, Kept};
use super::{Cause, CauseFinding, Definition, Doc, Judge, Occurs, Outcome, Role, Trait, ms, percent};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::is_felt;
use crate::strength::STRONG;
use holdup_recording::rows::Statement;
use holdup_recording::{Labels, metrics};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnRedis,
    traits: &[Trait::LongStatement],
    signs: Some(signs::find),
    is_answered: signs::has_slow_log,
    errors: &[(holdup_recording::events::SLOW_COMMAND, crate::strength::FAIR)],
    ..Definition::new(Cause::SlowCommand, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A slow command holds up a Redis server",
    what: "Redis and Valkey execute one command at a time. A command that walks through all keys or a large collection (KEYS, HGETALL, SMEMBERS, LRANGE, SORT, a Lua script, DEL of a large key) keeps that one thread for milliseconds to seconds.",
    hurts: "Commands that take microseconds wait for the slow one, on every connection. The server's CPU is one core at most, so that the host looks idle.",
    needs: "The server's figures and its slow log (--watch redis://…, with +slowlog|get), and the rate of requests.",
    predicts: "Commands of the slow log keep the thread for a large share of the time. A command that arrives at random waits for the sum of their squared durations over twice the time. Or one command keeps the thread for most of the time, by the times of each command, though no call is long enough for the slow log.",
    clears: "The slow log is empty and no single command keeps the thread, or the wait that they make is a small share of the delay.",
    looks_like: "A fork for persistence (persistence_pause), an expiry cycle or swapping: the server stands still without a slow command. A thread that many short commands keep busy: that is demand. A network or a client that is slow: commands are short by the server's account. A slow log with a limit above the commands that hurt.",
    fix: "Ask for parts: SCAN, HSCAN and SSCAN instead of KEYS, HGETALL and SMEMBERS, ranges with a bound, UNLINK instead of DEL. Move reports to a replica. Split large collections.",
    prove: "The same load again: the slow log stays empty, and the time of one command no longer stands out.",
    references: "Redis documentation: Diagnosing latency issues; SLOWLOG GET; INFO (commandstats). L. Kleinrock, Queueing Systems, Volume 1 (1975), section 5.2: residual life.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "redis-cli SLOWLOG GET 20; redis-cli INFO commandstats",
    1,
    "which commands kept the server's one thread for long, and how long",
);

const ENABLE: &str = "--watch redis://USER@HOST:PORT, with +slowlog|get";

/// Commands of one server's slow log.
struct Slow<'a> {
    /// The longest.
    longest: &'a Statement,
    kept: Kept,
}

impl Slow<'_> {
    /// What they cost a request on average, milliseconds: each of its commands waits, and the slow ones are
    /// commands of requests themselves.
    fn of_request_ms(&self, requests: f64) -> f64 {
        self.kept.waited_ms() + 1e3 * self.kept.total_s() / requests.max(1.0)
    }
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let requests = case.completed_in(view.window)?;
    let worst = |view: &View<'_>, requests: f64| -> Result<Option<(f64, Evidence)>, Missing> {
        let all = slow_commands(view, requests)?;
        let logged = all.iter().map(|slow| (slow.of_request_ms(requests), evidence(view, slow)));
        let busy = busy::all(view);
        let counted = busy.iter().filter_map(|busy| busy.cost(view, requests));
        Ok(logged.chain(counted).max_by(|a, b| a.0.total_cmp(&b.0)))
    };
    let Some((now_ms, evidence)) = worst(&view, requests)? else {
        return Ok(Outcome::Cleared(none_evidence(&view).into_iter().collect()));
    };
    let before_ms = match case.baseline() {
        Some(baseline) => case
            .completed_in(baseline.window)
            .and_then(|requests| worst(&baseline, requests))
            .map_or(0.0, |found| found.map_or(0.0, |(before_ms, _)| before_ms)),
        None => 0.0,
    };
    let explains_ms = (now_ms - before_ms).max(0.0);
    let text = format!("{}; that cost a request {}", evidence.text, ms(explains_ms));
    let evidence = evidence.saying("a small share of the delay", text);
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![evidence]));
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: vec![evidence],
        weights: vec![STRONG],
        fixes: fixes(),
        prove: "Run the same scenario again: the slow log has no new command.".to_owned(),
        role: Role::Root,
    }))
}

/// The commands that ended in the window, by server; a server without any is left out.
///
/// # Errors
/// If no server was watched.
fn slow_commands<'a>(view: &View<'a>, requests: f64) -> Result<Vec<Slow<'a>>, Missing> {
    let processed = metrics::redis::INFO_TOTAL_COMMANDS_PROCESSED.name;
    view.counter(processed, &[], ENABLE)?;
    let mut by_server: BTreeMap<&str, Vec<&Statement>> = BTreeMap::new();
    for row in &view.recording.tables.statements.rows {
        let is_slow = row.kind == "execution" && row.source.starts_with("redis:");
        if is_slow && !one_thread::is_persistence(&row.digest_text) && view.window.contains(row.observed_at) {
            by_server.entry(&row.source).or_default().push(row);
        }
    }
    let of_server = |(source, rows): (&&'a str, &Vec<&'a Statement>)| {
        let longest = *rows.iter().max_by_key(|row| row.duration_ns)?;
        let seconds = rows.iter().map(|row| row.duration_ns as f64 / 1e9).collect();
        Some(Slow { longest, kept: Kept::new(view, source, seconds, requests) })
    };
    Ok(by_server.iter().filter_map(of_server).collect())
}

fn evidence(view: &View<'_>, slow: &Slow<'_>) -> Evidence {
    let Slow { longest, kept } = slow;
    let labels = Labels::new([("kind", "execution"), ("digest", longest.digest.as_str())]);
    let busy = percent((kept.total_s() / view.window.seconds().max(1e-3)).min(1.0));
    let text = format!(
        "{} slow commands kept the one thread of {} for {busy} of the time, {} took {}: each of the {:.1} commands of a request waited {} for them",
        kept.seconds.len(),
        longest.source,
        longest.digest_text,
        ms(longest.duration_ns as f64 / 1e6),
        kept.commands,
        ms(kept.wait_s * 1e3),
    );
    Evidence::new("statements", "duration_ns", labels, view.window, busy, "about none", text)
}

/// That no command was slow.
fn none_evidence(view: &View<'_>) -> Option<Evidence> {
    let all = view.counter(metrics::redis::INFO_TOTAL_COMMANDS_PROCESSED.name, &[], ENABLE).ok()?;
    let text = format!("none of {:.0} commands stands in the slow log", all.delta);
    Some(all.evidence("0 slow commands", "some, if one were the cause", text))
}

fn fixes() -> Vec<Fix> {
    let fix = |text: &str, command: Option<&str>, risk: Option<&str>| Fix {
        text: text.to_owned(),
        command: command.map(str::to_owned),
        keep: None,
        risk: risk.map(str::to_owned),
    };
    vec![
        fix("See which commands and clients these are.", Some("redis-cli SLOWLOG GET 20"), None),
        fix(
            "Ask for parts instead of all: SCAN, HSCAN or SSCAN with COUNT, ranges with a bound, UNLINK instead of DEL.",
            None,
            Some("A scan takes time: a key that comes or goes meanwhile may be missed, or come twice."),
        ),
        fix(
            "Move reports and scripts to a replica.",
            None,
            Some("A replica is behind by what it has not received yet."),
        ),
    ]
}
