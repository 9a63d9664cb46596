//! Sessions of a database server that a list shows one by one, or counted: their rows, and the
//! number of each kind.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::Metric;
use holdup_recording::rows::Session;

use super::Context;

/// The time of the last list of `source`'s sessions, for what another output says of them; else `at`.
pub(super) fn at_list(source: &str, at: i64, context: &Context) -> i64 {
    let of_list = context.out.batch.sessions.iter().rev().find(|session| session.source == source);
    of_list.map_or(at, |session| session.observed_at)
}

/// Adds what another output says of a session: to its row in the last list, or as a row of its own.
pub(super) fn merge(session: Session, context: &mut Context) {
    let sessions = &mut context.out.batch.sessions;
    let is_same = |other: &&mut Session| {
        other.session_id == session.session_id
            && other.observed_at == session.observed_at
            && other.source == session.source
    };
    let Some(known) = sessions.iter_mut().rev().find(is_same) else { return sessions.push(session) };
    if session.true_state == "lock_wait" {
        known.true_state = session.true_state;
        known.blocked_by = session.blocked_by.or(known.blocked_by);
    }
    known.user = known.user.take().or(session.user);
    known.client = known.client.take().or(session.client);
    known.state = known.state.take().or(session.state);
    known.age_ns = known.age_ns.or(session.age_ns);
    if known.digest.is_none() {
        (known.digest, known.digest_text) = (session.digest, session.digest_text);
    }
}

/// Sessions that one table of counts may stand for.
const COUNTED_MAX: f64 = 100_000.0;

/// The sessions of one list.
#[derive(Default)]
pub(super) struct Sessions {
    /// By command or state, and by what they really do.
    counts: BTreeMap<(String, String), f64>,
    /// The last number that a counted session got.
    last_id: i64,
}

impl Sessions {
    fn count(&mut self, session: &Session, more: f64) {
        let key = (session.command.as_str().to_owned(), session.true_state.as_str().to_owned());
        *self.counts.entry(key).or_default() += more;
    }

    /// Adds a session.
    pub(super) fn add(&mut self, session: Session, context: &mut Context) {
        self.count(&session, 1.0);
        context.out.batch.sessions.push(session);
    }

    /// Adds as many sessions without a number of their own.
    pub(super) fn add_counted(&mut self, count: Option<f64>, session: &Session, context: &mut Context) {
        let is_possible = |count: &f64| *count >= 0.0 && *count - self.last_id as f64 <= COUNTED_MAX;
        let Some(count) = count.filter(is_possible) else { return };
        self.count(session, count);
        for _ in 0..count as usize {
            self.last_id -= 1;
            context.out.batch.sessions.push(Session { session_id: self.last_id, ..session.clone() });
        }
    }

    /// Adds their counts. A list without sessions is known to have none, of those that the server calls
    /// `idle`, too.
    pub(super) fn put(mut self, of: (&str, Metric, &str), idle: &str, at: i64, context: &mut Context) {
        let (source, metric, label) = of;
        self.counts.entry((idle.to_owned(), "idle".to_owned())).or_default();
        for ((name, true_state), count) in self.counts {
            context.out.gauge(at, source, metric.name, Labels::new([(label, name), ("true_state", true_state)]), count);
        }
    }
}
