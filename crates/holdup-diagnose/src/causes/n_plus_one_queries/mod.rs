//! The app queries the database one by one for what a single query could return.

mod by_count;
mod by_level;
mod signs;

use crate::change::Fix;
use std::collections::HashMap;

use holdup_recording::Labels;

use super::bound::Bound;
use super::{Cause, CauseFinding, Definition, Doc, Judge, Outcome, Role, Trait, ms};
use crate::case::Case;
use crate::next_command;
use crate::resources::{is_too_small, statements};
use crate::strength::{CERTAIN, Strength, WEAK};
use holdup_signals::app::accounts::{Accounts, Resource, SPEAKS, trace_of};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Distribution, Missing};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Avoidable],
    bound: Some(bound),
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::REPEATED_STATEMENTS, crate::strength::STRONG)],
    ..Definition::new(Cause::NPlusOneQueries, DOC, Judge::Alone(judge), &next_command::HEAVIEST_STATEMENTS)
};

const DOC: Doc = Doc {
    title: "One request runs the same statement over and over",
    what: "For each row of a list the app sends one more statement of the same kind (1 + N of them), usually because an object mapper fetches related rows on first access.",
    hurts: "Each is fast, and together they take as many round trips as there are rows: the request grows with its data, and every millisecond of network or queue counts N times. The server's slow log stays empty.",
    needs: "The app's spans with the statements' digests, or the server's own timing of statements with the request's trace id in them. Or the app's count of its database calls (db.client.operation.duration) and a baseline window. Without a baseline window, the server's counters by statement and the number of requests.",
    predicts: "Many calls of one digest in one request, each fast, together most of its time; the time grows with their number.",
    clears: "No statement runs often in a request, or all its calls together are a small share of the delay.",
    looks_like: "A slow network or a queue in front of the database: the number of calls is unchanged, and each is slower.",
    fix: "Query once: a join, an IN list, the mapper's eager or batch loading.",
    prove: "The same load again: a handful of calls per request, and the database's parts of the ledger shrink with them.",
    references: "M. Fowler, Patterns of Enterprise Application Architecture, Lazy Load (ripple loading); documentation of Hibernate (fetching), SQLAlchemy (select IN loading), Django (prefetch_related).",
};

/// From this many calls of one digest in a mean request it is a loop rather than a few queries: a
/// single call could replace them.
const LOOP: f64 = 5.0;

const ENABLE: &str = "--watch otlp with the app's database spans, or --watch mysql://USER@HOST:PORT with the trace id in each statement (docs/trace-ids.md)";

/// One statement's calls in a mean request.
struct RepeatedStatement {
    digest: String,
    text: String,
    calls: f64,
    /// Median of one call, milliseconds.
    each_ms: f64,
    /// The table it comes from.
    table: &'static str,
}

/// Clears by the number of calls alone: if a request makes few calls in all, none of them repeats.
fn few_calls(case: &Case<'_>) -> Option<Outcome> {
    let (ms, calls, evidence) = statements::database_by_spans(case).filter(|(_, calls, _)| *calls < LOOP)?;
    let text = format!("a request makes {calls:.1} database calls, {} in all", super::ms(ms));
    Some(Outcome::Cleared(vec![evidence.saying(format!("{LOOP:.0} or more"), text)]))
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if let Some(cleared) = few_calls(case) {
        return Ok(cleared);
    }
    let Some(repeated) = most_repeated(case, case.accounts()) else {
        let missing = || Missing::new("the statements of single requests, by digest", ENABLE);
        return by_count::judge(case).or_else(|| by_level::judge(case)).ok_or_else(missing);
    };
    let baseline = case.baseline_accounts().and_then(|baseline| of_digest(case, baseline, &repeated.digest));
    // The saving of one query instead of many; if the baseline window had as many, their number is
    // not new.
    let (before, each_ms) =
        baseline.map_or((1.0, repeated.each_ms), |baseline| (baseline.calls.max(1.0), baseline.each_ms));
    let explains_ms = (repeated.calls - before).max(0.0) * each_ms;
    let labels = match repeated.table {
        "spans" => Labels::new([("resource", "database")]),
        _ => Labels::new([("kind", "execution"), ("digest", repeated.digest.as_str())]),
    };
    let text = format!(
        "a request runs one statement {:.1} times, {} each: {}",
        repeated.calls,
        ms(repeated.each_ms),
        repeated.text
    );
    let window = case.slow().window;
    let calls = format!("{:.1} calls per request", repeated.calls);
    let mut evidence = vec![Evidence::new(repeated.table, "digest", labels, window, calls, "1 or 2", text)];
    if repeated.calls < LOOP || is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    let said = format!("as one query they would take {} less", ms(explains_ms));
    evidence.push(evidence[0].clone().saying("", said));
    Ok(found(explains_ms, evidence, vec![CERTAIN, WEAK]))
}

/// All database calls of a request, each for as long as the app waits for it.
fn bound(case: &Case<'_>) -> Option<Bound> {
    let (all_ms, calls, evidence) = statements::database_of_app(case)?;
    let text = format!("all {calls:.1} database calls of a request take {}", ms(all_ms));
    Some(Bound { ms: all_ms, evidence: evidence.saying("", text) })
}

/// The finding, whatever shows it.
fn found(explains_ms: f64, evidence: Vec<Evidence>, weights: Vec<Strength>) -> Outcome {
    let fix =
        |text: &str, risk: &str| Fix { text: text.to_owned(), command: None, keep: None, risk: Some(risk.to_owned()) };
    Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![
            fix(
                "Fetch all of them with one statement: WHERE id IN (…), a join, or the object mapper's eager loading.",
                "A long IN list needs an index on its column, and a bound on its length.",
            ),
            fix(
                "Until then cache rows for the duration of a request, so that none is queried twice.",
                "Helps only where rows repeat.",
            ),
        ],
        prove:
            "Run the same scenario again: a handful of calls per request, and the database's parts of the ledger shrink."
                .to_owned(),
        role: Role::Root,
    })
}

/// Calls by digest: how many, how long each, and in how many requests.
#[derive(Default)]
struct Digests<'a> {
    by_digest: HashMap<&'a str, Vec<(f64, u64)>>,
    texts: HashMap<&'a str, &'a str>,
    requests: u64,
    table: &'static str,
}

impl<'a> Digests<'a> {
    fn add(&mut self, digest: &'a str, text: &'a str, ms: f64, count: u64) {
        self.by_digest.entry(digest).or_default().push((ms, count));
        self.texts.entry(digest).or_insert(text);
    }

    fn new(case: &'a Case<'_>, accounts: &'a Accounts<'_>) -> Option<Self> {
        Self::by_app(case, accounts).or_else(|| Self::by_server(case, accounts))
    }

    fn by_app(case: &'a Case<'_>, accounts: &'a Accounts<'_>) -> Option<Self> {
        if accounts.sampling.ratio < SPEAKS {
            return None;
        }
        let mut digests = Self { table: "spans", ..Self::default() };
        for account in accounts.all.iter().filter(|a| a.has_app) {
            let Some(app) = trace_of(account.request).and_then(|trace| case.sources().app(trace)) else { continue };
            let count = account.request.count();
            digests.requests += count;
            for wait in app.waits_for(Resource::Database) {
                let Some(digest) = wait.span.digest.as_deref() else { continue };
                let calls = wait.span.calls.max(1).unsigned_abs();
                let text = wait.span.digest_text.as_deref().unwrap_or("");
                digests.add(digest, text, wait.ms / calls as f64, calls * count);
            }
        }
        (!digests.by_digest.is_empty()).then_some(digests)
    }

    fn by_server(case: &'a Case<'_>, accounts: &'a Accounts<'_>) -> Option<Self> {
        let mut digests = Self { table: "statements", ..Self::default() };
        for account in accounts.all.iter().filter(|a| a.has_server) {
            let Some(trace) = trace_of(account.request) else { continue };
            digests.requests += account.request.count();
            for statement in case.sources().calls().of_trace(trace).into_iter().filter_map(|c| c.execution) {
                let ms = statement.duration_ns as f64 / 1e6;
                digests.add(&statement.digest, &statement.digest_text, ms, account.request.count());
            }
        }
        (!digests.by_digest.is_empty()).then_some(digests)
    }

    fn repeated(self, digest: &str) -> Option<RepeatedStatement> {
        let calls = self.by_digest.get(digest)?;
        let times = Distribution::from_counts(calls.iter().copied());
        Some(RepeatedStatement {
            digest: digest.to_owned(),
            text: self.texts.get(digest).copied().unwrap_or("").to_owned(),
            calls: times.count() as f64 / self.requests.max(1) as f64,
            each_ms: times.quantile(0.5).unwrap_or(0.0),
            table: self.table,
        })
    }
}

/// The statement that runs most often in a request.
fn most_repeated(case: &Case<'_>, accounts: &Accounts<'_>) -> Option<RepeatedStatement> {
    let digests = Digests::new(case, accounts)?;
    let count = |calls: &[(f64, u64)]| calls.iter().map(|(_, n)| n).sum::<u64>();
    let most = digests.by_digest.iter().max_by_key(|(digest, calls)| (count(calls), **digest))?.0.to_string();
    digests.repeated(&most)
}

fn of_digest(case: &Case<'_>, accounts: &Accounts<'_>, digest: &str) -> Option<RepeatedStatement> {
    Digests::new(case, accounts)?.repeated(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Judged as _;
    use holdup_signals::app::accounts::testing::{ALL, Injected, NONE, ReportingSources, made};

    const LOOPING: Injected = Injected { calls: 30, ..NONE };

    #[test]
    fn a_loop_of_statements_is_found_by_the_app_and_by_the_server() {
        let no_wire = ReportingSources { wire: (false, false), pool_tables: false, ..ALL };
        for told in [ALL, no_wire, ReportingSources { spans: false, ..no_wire }] {
            let ms = made(LOOPING, told).explains(&DEFINITION).unwrap();
            // 29 of 30 calls that take 1.9 ms, 2 with the way there and back.
            assert!((50.0..60.0).contains(&ms), "{told:?}: {ms}");
        }
        assert_eq!(made(LOOPING, ALL).diagnose().culprit, Some(Cause::NPlusOneQueries));
    }

    #[test]
    fn a_few_calls_clear_and_silence_does_not() {
        let few = Injected { calls: 2, admission: 60.0, ..LOOPING };
        assert_eq!(made(few, ALL).explains(&DEFINITION), Some(0.0));
        let silent = ReportingSources { spans: false, executions: false, ..ALL };
        assert_eq!(made(LOOPING, silent).explains(&DEFINITION), None);
    }
}
