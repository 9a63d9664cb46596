//! Small synthetic recordings for tests of signals and rules: steady rates and levels, requests of
//! one length. Never compiled into holdup.

use holdup_recording::manifest::{Host, LoadFacts, Manifest, Model, Phase, Reported, Threshold};
use holdup_recording::pipeline::Stage;
use holdup_recording::rows::{Event, Request, Sample, Session, Setting, Statement, Thread};
use holdup_recording::tables::Tables;
use holdup_recording::{Labels, Recording};

use crate::Window;
use crate::view::{Index, View};

const S: i64 = 1_000_000_000;

/// An event: second, source, kind, labels.
pub type EventRow<'a> = (i64, &'a str, &'a str, &'a [(&'a str, &'a str)]);

/// A recording under construction: a sample a second, from 0 to its length.
#[derive(Clone)]
pub struct SyntheticRecording {
    seconds: i64,
    recording: Recording,
}

impl SyntheticRecording {
    /// A recording of `seconds` with nothing in it.
    pub fn new(seconds: i64) -> Self {
        let mut manifest = Manifest::starting("made", 0, Host::default());
        manifest.ended_at = Some(seconds * S);
        let mut tables = Tables::default();
        tables.samples.present = true;
        tables.settings.present = true;
        tables.threads.present = true;
        let recording =
            Recording { dir: Default::default(), manifest, tables, latencies: Vec::new(), search: None, excerpt: None };
        Self { seconds, recording }
    }

    fn put(mut self, source: &str, metric: &str, labels: &[(&str, &str)], value: impl Fn(i64) -> f64) -> Self {
        self.recording.tables.samples.rows.extend((0..=self.seconds).map(|second| Sample {
            observed_at: second * S,
            source: source.into(),
            metric: metric.into(),
            labels: Labels::new(labels.iter().copied()),
            value: value(second),
            ..Sample::default()
        }));
        self
    }

    /// A counter that grows by `per_second`.
    pub fn counter(self, source: &str, metric: &str, labels: &[(&str, &str)], per_second: f64) -> Self {
        self.put(source, metric, labels, |second| 1000.0 + per_second * second as f64)
    }

    /// A counter by its value at each second.
    pub fn counted(self, source: &str, metric: &str, labels: &[(&str, &str)], value: impl Fn(i64) -> f64) -> Self {
        self.put(source, metric, labels, value)
    }

    /// A constant gauge.
    pub fn gauge(self, source: &str, metric: &str, labels: &[(&str, &str)], value: f64) -> Self {
        self.put(source, metric, labels, |_| value)
    }

    /// Adds a setting of `source`.
    pub fn setting(mut self, source: &str, name: &str, value: &str) -> Self {
        let (source, name, value) = (source.into(), name.into(), value.into());
        self.recording.tables.settings.rows.push(Setting { source, name, value, observed_at: 0 });
        self
    }

    /// A disk's counters: operations per second, bytes of each, milliseconds of each, for reads and
    /// for writes.
    pub fn disk(mut self, device: &str, read: (f64, f64, f64), write: (f64, f64, f64)) -> Self {
        let mut busy = 0.0;
        for (direction, (operations, bytes, await_ms)) in [("read", read), ("write", write)] {
            let labels = [("device", device), ("direction", direction)];
            let seconds = operations * await_ms / 1e3;
            busy += seconds;
            self = self
                .counter("host", "system_disk_operations_total", &labels, operations)
                .counter("host", "system_disk_io_bytes_total", &labels, operations * bytes)
                .counter("host", "system_disk_operation_time_seconds_total", &labels, seconds);
        }
        let labels = [("device", device)];
        self.counter("host", "system_disk_io_time_seconds_total", &labels, f64::min(busy, 1.0))
            .counter("host", "system_disk_weighted_io_time_seconds_total", &labels, busy)
            .gauge("host", "system_disk_in_flight", &labels, busy.round())
    }

    /// `count` threads of process `store` (pid:7) in uninterruptible sleep in `wchan` below `stack` at every instant.
    pub fn asleep(mut self, count: i64, wchan: &str, stack: &str, path: Option<&str>) -> Self {
        self.recording.tables.threads.rows.extend((0..=self.seconds).map(|second| Thread {
            observed_at: second * S,
            source: "pid:7".into(),
            pid: 7,
            tid: 8,
            process: "store".into(),
            thread: "worker".into(),
            state: "D".into(),
            wchan: Some(wchan.into()),
            stack: Some(stack.into()),
            path: path.map(str::to_owned),
            count,
            ..Thread::default()
        }));
        self.gauge("pid:7", "process_threads", &[("state", "D")], count as f64)
    }

    /// Like [`Self::asleep`], at a place that holdup may not see.
    pub fn asleep_somewhere(self, count: i64) -> Self {
        let mut made = self.asleep(count, "", "", None);
        for row in &mut made.recording.tables.threads.rows {
            (row.wchan, row.stack) = (None, None);
        }
        made
    }

    /// The given rows of threads.
    pub fn threads(mut self, rows: Vec<Thread>) -> Self {
        self.recording.tables.threads.rows.extend(rows);
        self
    }

    /// `count` sessions of a database (`mysql://db`) in `state` at every instant, all with one statement.
    pub fn sessions(mut self, count: i64, state: &str) -> Self {
        self.recording.tables.sessions.present = true;
        let instants = 0..=self.seconds;
        self.recording.tables.sessions.rows.extend(
            instants.flat_map(|second| (0..count).map(move |i| (second, i))).map(|(second, i)| Session {
                observed_at: second * S,
                source: "mysql://db".into(),
                session_id: i,
                command: "Query".into(),
                state: Some(state.into()),
                true_state: "executing".into(),
                digest_text: Some("SELECT body FROM page GROUP BY body".into()),
                ..Session::default()
            }),
        );
        self.gauge("mysql://db", "mysql_sessions", &[("true_state", "executing")], count as f64)
    }

    /// The given number of active PostgreSQL sessions at each wait event, every second.
    pub fn waiting(self, events: &'static [(&'static str, i64)]) -> Self {
        let row = |second: i64, event: &'static str, id: i64| Session {
            observed_at: second * S,
            source: "postgresql://db".into(),
            session_id: id,
            command: "active".into(),
            state: Some(event).filter(|event| !event.is_empty()).map(Into::into),
            true_state: if event.starts_with("Lock") { "lock_wait" } else { "executing" }.into(),
            ..Session::default()
        };
        let of =
            |second| events.iter().flat_map(move |&(event, count)| (0..count).map(move |id| row(second, event, id)));
        let rows = (0..=self.seconds).flat_map(of).collect();
        self.session_rows(rows)
    }

    /// The given sessions, read once a second.
    pub fn session_rows(mut self, rows: Vec<Session>) -> Self {
        self.recording.tables.sessions.present = true;
        self.recording.tables.sessions.rows.extend(rows);
        self.gauge("mysql://db", "mysql_sessions", &[("true_state", "idle")], 0.0)
    }

    /// A statement's counters by second: calls, milliseconds, rows examined, rows sent, executions without an index.
    pub fn digest(mut self, text: &str, counts: impl Fn(i64) -> (i64, i64, i64, i64, i64)) -> Self {
        self.recording.tables.statements.present = true;
        self.recording.tables.statements.rows.extend((0..=self.seconds).map(|second| {
            let (calls, ms, rows_examined, rows_sent, no_index) = counts(second);
            Statement {
                observed_at: second * S,
                source: "mysql://db".into(),
                kind: "digest_total".into(),
                digest: text.into(),
                digest_text: text.into(),
                calls,
                duration_ns: ms * 1_000_000,
                rows_examined,
                rows_sent,
                no_index,
                ..Statement::default()
            }
        }));
        self
    }

    /// Pretends that the recording's table lacks the column.
    pub fn without_column(mut self, table: &str, column: &'static str) -> Self {
        let tables = &mut self.recording.tables;
        match table {
            "requests" => tables.requests.missing.push(column),
            "sessions" => tables.sessions.missing.push(column),
            "statements" => tables.statements.missing.push(column),
            "settings" => tables.settings.missing.push(column),
            "events" => tables.events.missing.push(column),
            _ => tables.samples.missing.push(column),
        }
        self
    }

    /// Removes a setting from all sources.
    pub fn without_setting(mut self, name: &str) -> Self {
        self.recording.tables.settings.rows.retain(|s| s.name != name);
        self
    }

    /// Changes requests one by one, by number.
    pub fn each_request(mut self, change: impl Fn(i64, &mut Request)) -> Self {
        let rows = &mut self.recording.tables.requests.rows;
        (0..).zip(rows.iter_mut()).for_each(|(number, row)| change(number, row));
        self
    }

    /// Every second request needs 1.01 s more, to connect.
    pub fn half_connect_late(self) -> Self {
        self.each_request(|number, row| {
            if number % 2 == 0 {
                row.connect_ns = 1_010_000_000;
                row.sent_at = row.sent_at.map(|at| at + row.connect_ns);
                row.done_at += row.connect_ns;
            }
        })
    }

    /// The requests with these numbers fail to connect.
    pub fn refused(self, numbers: std::ops::Range<i64>) -> Self {
        self.each_request(|number, row| {
            if numbers.contains(&number) {
                "connect_failed".clone_into(&mut row.outcome);
            }
        })
    }

    /// `per_second` requests that each take `ms`, against an objective of a tenth of it.
    pub fn requests(mut self, per_second: i64, ms: i64) -> Self {
        self.recording.tables.requests.present = true;
        let every = S / per_second;
        self.recording.tables.requests.rows = (0..self.seconds * per_second)
            .map(|i| Request {
                operation: "get".into(),
                phase: "load".into(),
                intended_at: i * every,
                ready_at: Some(i * every),
                sent_at: Some(i * every),
                first_byte_at: Some(i * every + ms * 1_000_000),
                done_at: i * every + ms * 1_000_000,
                outcome: "ok".into(),
                weight: 1,
                ..Request::default()
            })
            .collect();
        let below = ms as f64 / 10.0;
        self.recording.manifest.load = Some(LoadFacts {
            operations: vec!["get".into()],
            thresholds: vec![Threshold {
                text: format!("p99 < {below}ms"),
                metric: "p99".into(),
                below,
                ..Threshold::default()
            }],
            warm_up_ns: Some(0),
            ..LoadFacts::default()
        });
        self
    }

    /// Takes the objectives away.
    pub fn without_objectives(mut self) -> Self {
        if let Some(load) = &mut self.recording.manifest.load {
            load.thresholds.clear();
        }
        self
    }

    /// The stages that a user named.
    pub fn pipeline(mut self, stages: Vec<Stage>) -> Self {
        self.recording.manifest.pipeline = stages;
        self
    }

    /// A person said that something is wrong, without a time.
    pub fn reported(mut self) -> Self {
        self.recording.manifest.reported = Some(Reported::default());
        self
    }

    /// Bounds the p99 by `below` milliseconds instead.
    pub fn p99_below(mut self, below: f64) -> Self {
        if let Some(load) = &mut self.recording.manifest.load {
            let text = format!("p99 < {below}ms");
            load.thresholds = vec![Threshold { text, metric: "p99".into(), below, ..Threshold::default() }];
        }
        self
    }

    /// Pretends that `protocol` sent the requests.
    pub fn by_protocol(mut self, protocol: &str) -> Self {
        if let Some(load) = &mut self.recording.manifest.load {
            load.protocol = protocol.into();
        }
        self
    }

    /// Pretends a scenario with these operations.
    pub fn scenario(mut self, operations: &[&str]) -> Self {
        if let Some(load) = &mut self.recording.manifest.load {
            load.operations = operations.iter().map(|name| (*name).to_owned()).collect();
        }
        self
    }

    /// Pretends a closed model: users who each wait for their response.
    pub fn closed(mut self) -> Self {
        if let Some(load) = &mut self.recording.manifest.load {
            load.model = Model::Closed;
        }
        self
    }

    /// Pretends that `count` requests could be in flight.
    pub fn connections(mut self, count: u32) -> Self {
        if let Some(load) = &mut self.recording.manifest.load {
            load.connections = count;
        }
        self
    }

    /// Pretends that `address` was the target.
    pub fn target(mut self, address: &str) -> Self {
        if let Some(load) = &mut self.recording.manifest.load {
            load.target = address.into();
        }
        self
    }

    /// Pretends that the load was a search with result `json`, 8 connections and no objective.
    pub fn searched(mut self, json: &str) -> Self {
        self.recording.search = Some(json.to_owned());
        self.recording.manifest.phases =
            vec![Phase { name: "load".into(), from: 0, to: self.seconds * S, rate_from: 0.0, rate_to: 0.0 }];
        if let Some(load) = &mut self.recording.manifest.load {
            load.connections = 8;
            load.thresholds.clear();
        }
        self
    }

    /// The given events.
    pub fn events(mut self, events: &[EventRow<'_>]) -> Self {
        self.recording.tables.events.present = true;
        self.recording.tables.events.rows.extend(events.iter().map(|(second, source, kind, labels)| Event {
            observed_at: second * S,
            source: (*source).into(),
            kind: (*kind).into(),
            text: format!("{kind} at second {second}"),
            labels: Labels::new(labels.iter().copied()),
        }));
        self
    }

    /// Changes tables directly.
    pub fn tables(mut self, change: impl FnOnce(&mut Tables)) -> Self {
        change(&mut self.recording.tables);
        self
    }

    /// Removes a metric from all sources.
    pub fn without(mut self, metric: &str) -> Self {
        self.recording.tables.samples.rows.retain(|s| s.metric != metric);
        self
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The result of `look` on the whole of it.
    pub fn seen<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let index = Index::new(&self.recording.tables);
        let window = Window { from: self.recording.manifest.started_at, to: self.seconds * S };
        look(&View { recording: &self.recording, index: &index, window })
    }
}
