//! The database's side: each statement with the server's timing, the packets on either side of the
//! network, and the state of sampled sessions, joined into one call and found by trace id.
//!
//! A statement's timing and packets are joined by the trace id in its text, or by the connection
//! (the session id in the greeting, or the client's address and port in the server's list) and the
//! time at which both ended. Session ids are assumed unique within a recording; with several
//! watched servers only the trace id is conclusive.

mod front;

use std::collections::HashMap;

use holdup_recording::Recording;
use holdup_recording::rows::{Exchange, Session, Statement};

use self::front::{Front, Fronts};
use super::by_trace::{ByTrace, trace_number};

/// Largest difference between the times of the history and of the packets on one machine: the
/// server's timer is mapped to the wall clock once per read.
const CLOCKS_NS: i64 = 20_000_000;

/// Clocks of two hosts under one time service differ by less. The two sightings of a packet are
/// searched within it.
const HOSTS_NS: i64 = 500_000_000;

/// One statement from all its sources; at least one of the three is present.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// The server's own timing.
    pub execution: Option<&'a Statement>,
    /// The packets, on the server's machine.
    pub server: Option<&'a Exchange>,
    /// The packets, on the client's machine.
    pub client: Option<&'a Exchange>,
    /// The request in front of it on its connection, from the packets of either side.
    server_front: Front,
    client_front: Front,
}

fn ms(ns: i64) -> f64 {
    ns.max(0) as f64 / 1e6
}

impl Call<'_> {
    /// When it began, by the closest clock.
    pub fn started_at(&self) -> i64 {
        let of_wire = self.client.or(self.server).map(|e| e.request_at);
        of_wire.or(self.execution.map(|s| s.observed_at - s.duration_ns)).unwrap_or(0)
    }

    /// The server's own timing, milliseconds. For a statement that is only prepared, that is
    /// parsing.
    pub fn execution_ms(&self) -> Option<f64> {
        let prepared = || self.server.or(self.client).filter(|e| e.kind == "prepare").map(|_| 0.0);
        self.execution.map(|s| ms(s.duration_ns)).or_else(prepared)
    }

    /// From the request's arrival at the server's machine to the response's end there,
    /// milliseconds. A request sent before earlier ones were answered counts from the end of the
    /// last of those: until then it waits for them, at the client's expense.
    pub fn served_ms(&self) -> Option<f64> {
        self.server.map(|e| ms(e.done_at - self.server_front.later(e.request_end_at)))
    }

    /// The part of it before the first byte of the response, milliseconds.
    pub fn first_byte_ms(&self) -> Option<f64> {
        self.server.and_then(|e| Some(ms(e.first_byte_at? - self.server_front.later(e.request_end_at))))
    }

    /// How long the request was at the server's machine before the server began to execute it,
    /// milliseconds: the wait for admission.
    ///
    /// It is the time at the machine beyond the server's own timing. Both spans end with the
    /// response, because the server's timer runs while rows are sent, so they differ at their
    /// beginning. Subtracting the whole timing from the time to the first byte would hide the queue
    /// in front of every large result. But a client that reads slowly, or a response sent after the
    /// timer has ended, also lengthens the packets' span at its end. A wait for execution is over
    /// when the response begins, so it is capped at the time to the first byte.
    ///
    /// None if either is unknown, or if it is unknown when the request in front of it ended.
    pub fn before_execution_ms(&self) -> Option<f64> {
        if self.server_front == Front::Unknown {
            return None;
        }
        let (served, executed) = (self.served_ms()?, self.execution_ms()?);
        Some((served - executed).max(0.0).min(self.first_byte_ms().unwrap_or(served)))
    }

    /// From the request's first byte on the client's machine to the response's last, milliseconds;
    /// on a single machine the server's. In a pipeline each counts from the end of the previous
    /// one, so that the sum is the elapsed time.
    pub fn called_ms(&self) -> Option<f64> {
        let of_client = self.client.map(|e| (e, self.client_front));
        let loopback = || self.server.filter(|e| e.side == "loopback").map(|e| (e, self.server_front));
        of_client.or_else(loopback).map(|(e, front)| ms(e.done_at - front.later(e.request_at)))
    }

    /// The digest of its statement: from its packets, which also have the text of prepared
    /// statements; else from the server, unless that keeps no text and shows words in brackets.
    pub fn digest(&self) -> Option<&str> {
        let of_wire = self.server.or(self.client).and_then(|e| e.digest.as_deref());
        let of_server = self.execution.filter(|s| !s.digest_text.starts_with('('));
        of_wire.or(of_server.map(|s| s.digest.as_str()))
    }

    /// The longest duration that any source reports, milliseconds.
    pub fn longest_ms(&self) -> f64 {
        let known = [self.called_ms(), self.served_ms(), self.execution_ms()];
        known.into_iter().flatten().fold(0.0, f64::max)
    }

    /// The trace id in its text. A prepared statement's text has the trace id of the request that
    /// prepared it, and the server shows it for every later execution. Only packets show whether
    /// text and execution came together.
    fn trace(&self) -> Option<u128> {
        let told = [
            self.server.and_then(|e| e.trace_id.as_deref()),
            self.execution.filter(|_| !self.is_prepared()).and_then(|s| s.trace_id.as_deref()),
            self.client.and_then(|e| e.trace_id.as_deref()),
        ];
        told.into_iter().flatten().find_map(trace_number)
    }

    fn is_prepared(&self) -> bool {
        self.server.or(self.client).is_some_and(|e| e.kind == "execute")
    }
}

/// All calls of a recording, by request.
pub struct Calls<'a> {
    calls: Vec<Call<'a>>,
    /// Trace and index in `calls`, in order of both.
    by_trace: Vec<(u128, usize)>,
    sessions: ByTrace<'a, Session>,
}

impl<'a> Calls<'a> {
    /// Joins the rows of `recording`.
    pub fn new(recording: &'a Recording) -> Self {
        let tables = &recording.tables;
        let is_whole = |e: &&Exchange| matches!(e.outcome.as_str(), "ok" | "error") && e.kind != "login";
        // Without a known side, the time may or may not include the network.
        let answered = |e: &&Exchange| is_whole(e) && matches!(e.side.as_str(), "server" | "client" | "loopback");
        let fronts = Fronts::new(&tables.exchanges.rows);
        let (on_client, on_server): (Vec<&Exchange>, Vec<&Exchange>) =
            tables.exchanges.rows.iter().filter(answered).partition(|e| e.side == "client");
        let mut clients = Sightings::new(&on_client);
        let mut executions = Executions::new(recording);
        let mut calls: Vec<Call<'a>> = Vec::new();
        for server in on_server {
            let (execution, client) = (executions.of_exchange(server), clients.of_exchange(server));
            let server_front = fronts.of_exchange(server);
            let client_front = client.map_or(Front::Free, |e| fronts.of_exchange(e));
            calls.push(Call { execution, server: Some(server), client, server_front, client_front });
        }
        for client in clients.left() {
            let (execution, client_front) = (executions.of_exchange(client), fronts.of_exchange(client));
            calls.push(Call { execution, client: Some(client), client_front, ..Call::default() });
        }
        calls.extend(executions.left().map(|s| Call { execution: Some(s), ..Call::default() }));
        calls.sort_by_key(Call::started_at);
        let traces = calls.iter().enumerate().filter_map(|(i, call)| Some((call.trace()?, i)));
        let mut by_trace: Vec<(u128, usize)> = traces.collect();
        by_trace.sort_unstable();
        let sessions = tables.sessions.rows.iter();
        let sessions = sessions.map(|s| (s.trace_id.as_deref().and_then(trace_number), s.observed_at, s));
        Self { calls, by_trace, sessions: ByTrace::new(sessions) }
    }

    /// The calls of one trace, in order of time.
    pub fn of_trace(&self, trace: u128) -> Vec<&Call<'a>> {
        let from = self.by_trace.partition_point(|(t, _)| *t < trace);
        let mine = self.by_trace[from..].iter().take_while(|(t, _)| *t == trace);
        mine.filter_map(|(_, i)| self.calls.get(*i)).collect()
    }

    /// All calls.
    pub fn all(&self) -> &[Call<'a>] {
        &self.calls
    }

    /// Sampled sessions that ran a statement of one trace.
    pub fn sessions_of(&self, trace: u128) -> impl Iterator<Item = &'a Session> + '_ {
        self.sessions.get(trace)
    }
}

/// Exchanges seen on the client's machine, by connection.
struct Sightings<'a> {
    rows: Vec<&'a Exchange>,
    taken: Vec<bool>,
    by_connection: HashMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Sightings<'a> {
    fn new(rows: &[&'a Exchange]) -> Self {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|e| e.request_at);
        let mut by_connection: HashMap<_, Vec<usize>> = HashMap::new();
        for (i, row) in rows.iter().enumerate() {
            by_connection.entry((row.client.as_str(), row.server.as_str())).or_default().push(i);
        }
        Self { taken: vec![false; rows.len()], rows, by_connection }
    }

    /// The client-side sighting of an exchange seen on the server's machine: the one of the same
    /// trace, else the nearest in time.
    fn of_exchange(&mut self, server: &Exchange) -> Option<&'a Exchange> {
        let mine = self.by_connection.get(&(server.client.as_str(), server.server.as_str()))?;
        let from = mine.partition_point(|i| self.rows[*i].request_at < server.request_at - HOSTS_NS);
        let near =
            mine[from..].iter().copied().take_while(|i| self.rows[*i].request_at <= server.request_at + HOSTS_NS);
        let fits = |i: &usize| {
            let row = self.rows[*i];
            !self.taken[*i] && row.kind == server.kind && row.trace_id == server.trace_id
        };
        let best = near.filter(fits).min_by_key(|i| (self.rows[*i].request_at - server.request_at).abs())?;
        self.taken[best] = true;
        Some(self.rows[best])
    }

    fn left(&self) -> impl Iterator<Item = &'a Exchange> + use<'a> {
        let left: Vec<&'a Exchange> =
            self.rows.iter().zip(&self.taken).filter(|(_, t)| !**t).map(|(e, _)| *e).collect();
        left.into_iter()
    }
}

/// Executions by trace and by session, each joined to one exchange at most.
struct Executions<'a> {
    rows: Vec<&'a Statement>,
    taken: Vec<bool>,
    by_trace: HashMap<u128, Vec<usize>>,
    /// In order of their end.
    by_session: HashMap<i64, Vec<usize>>,
    /// The session that an address belonged to, and when.
    by_address: HashMap<&'a str, Vec<(i64, i64)>>,
}

impl<'a> Executions<'a> {
    fn new(recording: &'a Recording) -> Self {
        let tables = &recording.tables;
        let mut rows: Vec<&Statement> = tables.statements.rows.iter().filter(|s| s.kind == "execution").collect();
        rows.sort_by_key(|s| s.observed_at);
        let mut by_trace: HashMap<u128, Vec<usize>> = HashMap::new();
        let mut by_session: HashMap<i64, Vec<usize>> = HashMap::new();
        for (i, row) in rows.iter().enumerate() {
            if let Some(trace) = row.trace_id.as_deref().and_then(trace_number) {
                by_trace.entry(trace).or_default().push(i);
            }
            if let Some(session) = row.session_id {
                by_session.entry(session).or_default().push(i);
            }
        }
        let mut by_address: HashMap<&str, Vec<(i64, i64)>> = HashMap::new();
        if !tables.exchanges.rows.is_empty() {
            for row in &tables.sessions.rows {
                let Some(client) = row.client.as_deref() else { continue };
                by_address.entry(client).or_default().push((row.observed_at, row.session_id));
            }
        }
        Self { taken: vec![false; rows.len()], rows, by_trace, by_session, by_address }
    }

    /// The session of a connection: by its greeting, or from the server's list nearest in time.
    fn session_of(&self, exchange: &Exchange) -> Option<i64> {
        let listed = || {
            let seen = self.by_address.get(exchange.client.as_str())?;
            seen.iter().min_by_key(|(at, _)| (at - exchange.request_at).abs()).map(|(_, id)| *id)
        };
        exchange.session_id.or_else(listed)
    }

    /// The execution that an exchange requested.
    fn of_exchange(&mut self, exchange: &Exchange) -> Option<&'a Statement> {
        if exchange.kind == "prepare" {
            return None;
        }
        let distance = |i: &usize| (self.rows[*i].observed_at - exchange.done_at).abs();
        // No statement runs longer than its client waits.
        let fits = |i: &usize| {
            !self.taken[*i] && self.rows[*i].duration_ns <= exchange.done_at - exchange.request_at + CLOCKS_NS / 10
        };
        let trace = exchange.trace_id.as_deref().and_then(trace_number);
        let of_trace = trace.and_then(|t| self.by_trace.get(&t));
        let of_trace = of_trace.and_then(|mine| mine.iter().copied().filter(fits).min_by_key(distance));
        let of_session = || {
            let mine = self.by_session.get(&self.session_of(exchange)?)?;
            let from = mine.partition_point(|i| self.rows[*i].observed_at < exchange.request_at - CLOCKS_NS);
            let near = mine[from..].iter().copied();
            let near = near.take_while(|i| self.rows[*i].observed_at <= exchange.done_at + CLOCKS_NS);
            near.filter(fits).min_by_key(distance)
        };
        let best = of_trace.or_else(of_session)?;
        self.taken[best] = true;
        Some(self.rows[best])
    }

    fn left(&self) -> impl Iterator<Item = &'a Statement> + use<'a> {
        let left: Vec<&'a Statement> =
            self.rows.iter().zip(&self.taken).filter(|(_, t)| !**t).map(|(s, _)| *s).collect();
        left.into_iter()
    }
}

#[cfg(test)]
mod tests;
