//! Makes a long recording out of two short real ones: the seconds of a healthy one again and again, and in the middle those of a
//! faulty one of the same lab, a twelfth of the time. Ten of the lab run side by side, so that its 100 requests a second are 1,000,
//! and in its queue 1,000 sessions wait.
//!
//! Tables are as `holdup run` writes them: all samples, the rows of a hundred idle sessions a second beside those that do something,
//! every execution of a statement, the server's counters by statement, threads at their places, a line a second and series in
//! `latency.hlog`, and some 100,000 rows of requests in all, which stand for all. What a fixture was relieved of is put back as so
//! many series, statements and places that no rule reads.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use holdup_recording::hlog::{self, Interval};
use holdup_recording::manifest::{Format, Totals};
use holdup_recording::rows::{
    Event, Exchange, Execution, Plan, Request, Sample, Session, Setting, Span, Stage, Statement, Thread,
};
use holdup_recording::writer::write_table;
use holdup_recording::{Labels, Recording, Row};

const S: i64 = 1_000_000_000;

/// How many of the lab there are.
const TIMES: i64 = 10;

/// Rows of requests that end well `holdup run` keeps in all: three quarters of its 100,000; but one a second at least.
const REQUESTS: i64 = 75_000;

/// Rows of idle sessions in a sample of all (`IDLE_ROWS_MAX` of the collector).
const IDLE: i64 = 100;

/// Further series: what a MariaDB 10.11 has in `SHOW GLOBAL STATUS` beyond what is in a fixture, and a host of eight CPUs in `/proc`.
const OTHER_SERIES: [(&str, &str, usize); 2] =
    [("mysql://127.0.0.1:3306", "mysql_global_status_other", 480), ("host", "system_other", 250)];

/// Further statements that the server counts.
const OTHER_STATEMENTS: i64 = 50;

/// Further places at which threads of watched processes stand.
const PLACES: i64 = 15;

/// What ten side by side have no more of than one has: shares and times, and settings as values.
const SAME: &[&str] = &[
    "_avg",
    "_max",
    "_ratio",
    "holdup_load_busy",
    "holdup_load_cpu",
    "holdup_load_run_queue",
    "process_start_time",
    "system_disk_io_time",
    "system_pressure",
];

/// A short recording, to be repeated.
struct Lap {
    recording: Recording,
    begins: i64,
    /// What its process ids, in order, and its addresses are called in all.
    names: BTreeMap<String, String>,
}

/// Who reads a sample, what, and of what.
type Key = (String, String, Labels);

impl Lap {
    fn of(fixture: &Path) -> Result<Self, Box<dyn Error>> {
        let recording = Recording::open(fixture)?;
        let begins = recording.manifest.phases.first().ok_or("no load")?.from;
        let mut names = BTreeMap::new();
        let mut pids = 0;
        for row in &recording.tables.samples.rows {
            let source = row.source.as_str();
            if names.contains_key(source) {
                continue;
            }
            let name = match source.split(':').next() {
                Some("mysql") => "mysql://127.0.0.1:3306".to_owned(),
                Some("prometheus") => "prometheus:http://127.0.0.1:8080/metrics".to_owned(),
                Some("pid") => {
                    pids += 1;
                    format!("pid:{}", 1_000 + pids)
                }
                _ => source.to_owned(),
            };
            names.insert(source.to_owned(), name);
        }
        Ok(Self { recording, begins, names })
    }

    fn seconds(&self) -> i64 {
        let phases = &self.recording.manifest.phases;
        phases.last().map_or(0, |last| (last.to - self.begins) / S)
    }

    fn name(&self, source: &str) -> String {
        self.names.get(source).cloned().unwrap_or_else(|| source.to_owned())
    }

    /// The rows of one turn, by the time `at`, in the order of rows.
    fn turn<'r, R>(&self, rows: &'r [R], at: impl Fn(&R) -> i64) -> impl Iterator<Item = &'r R> {
        let (from, to) = (self.begins, self.begins + self.seconds() * S);
        rows.iter().filter(move |row| (from..to).contains(&at(row)))
    }
}

/// A long recording to be made.
pub struct Grown {
    healthy: Lap,
    faulty: Lap,
    turns: i64,
    faulty_turns: Range<i64>,
    begins: i64,
}

impl Grown {
    /// One of about `seconds`, out of two fixtures.
    ///
    /// # Errors
    /// If one of them can't be read.
    pub fn of(healthy: &Path, faulty: &Path, seconds: i64) -> Result<Self, Box<dyn Error>> {
        let (healthy, faulty) = (Lap::of(healthy)?, Lap::of(faulty)?);
        let turns = (seconds / healthy.seconds()).max(6);
        let bad = (turns / 12).max(2);
        let begins = healthy.begins;
        Ok(Self { healthy, faulty, turns, faulty_turns: turns / 2..turns / 2 + bad, begins })
    }

    /// Where the fault is, seconds from the start.
    pub fn fault(&self) -> Range<i64> {
        let each = self.healthy.seconds();
        self.faulty_turns.start * each..self.faulty_turns.end * each
    }

    /// Seconds of all of it.
    pub fn seconds(&self) -> i64 {
        self.turns * self.healthy.seconds()
    }

    /// The fixture that is on in a turn, and by how much its times are to be moved.
    fn turn(&self, turn: i64) -> (&Lap, i64) {
        let lap = if self.faulty_turns.contains(&turn) { &self.faulty } else { &self.healthy };
        (lap, self.begins + turn * self.healthy.seconds() * S - lap.begins)
    }

    /// Writes it to `dir`, which is made.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, dir: &Path) -> Result<(), Box<dyn Error>> {
        std::fs::create_dir_all(dir)?;
        let mut manifest = self.faulty.recording.manifest.clone();
        manifest.format = Format { major: 1, minor: 6 };
        manifest.started_at = self.begins;
        manifest.ended_at = Some(self.begins + (self.seconds() + 2) * S);
        manifest.host.cpus *= TIMES as u32;
        let offered = self.requests_of(&self.healthy) * (self.turns - self.faulty_turns.end + self.faulty_turns.start)
            + self.requests_of(&self.faulty) * (self.faulty_turns.end - self.faulty_turns.start);
        let offered = (offered * TIMES) as u64;
        for phase in &mut manifest.phases {
            (phase.from, phase.to) = (self.begins, self.begins + self.seconds() * S);
            phase.name = format!("{}/s", phase.rate_from * TIMES as f64);
            (phase.rate_from, phase.rate_to) = (phase.rate_from * TIMES as f64, phase.rate_to * TIMES as f64);
        }
        if let Some(load) = &mut manifest.load {
            load.connections *= TIMES as u32;
            let operation = load.operations.first().cloned().unwrap_or_default();
            load.totals = vec![Totals { operation, offered, completed: offered, errors: BTreeMap::new() }];
        }
        for entry in &mut manifest.coverage {
            let (source, part) = entry.source.split_once(' ').unwrap_or((&entry.source, ""));
            entry.source = format!("{} {part}", self.faulty.name(source)).trim_end().to_owned();
        }
        let turns = || 0..self.turns;
        let mut counters = Counters::of(self);
        let mut kept = 0;
        let tables = &mut manifest.tables;
        let mut wrote = |table: &str, rows: u64| tables.insert(table.to_owned(), rows);
        wrote("samples", write_table::<Sample>(dir, turns().map(|turn| self.samples(turn, &mut counters)))?);
        wrote("requests", write_table::<Request>(dir, turns().map(|turn| self.requests(turn, &mut kept)))?);
        wrote("sessions", write_table::<Session>(dir, turns().map(|turn| self.sessions(turn)))?);
        wrote("statements", write_table::<Statement>(dir, turns().map(|turn| self.statements(turn)))?);
        wrote("threads", write_table::<Thread>(dir, turns().map(|turn| self.threads(turn)))?);
        wrote("settings", write_table::<Setting>(dir, [self.settings()])?);
        wrote("events", write_table::<Event>(dir, [self.faulty.recording.tables.events.rows.clone()])?);
        for empty in [nothing::<Stage>, nothing::<Span>, nothing::<Exchange>, nothing::<Execution>, nothing::<Plan>] {
            empty(dir)?;
        }
        let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(self.begins as u64);
        hlog::write(dir, start, turns().flat_map(|turn| self.latencies(turn)))?;
        Ok(manifest.write(dir)?)
    }

    fn requests_of(&self, lap: &Lap) -> i64 {
        lap.turn(&lap.recording.tables.requests.rows, |r| r.intended_at).count() as i64
    }

    fn requests(&self, turn: i64, since: &mut i64) -> Vec<Request> {
        let (lap, shift) = self.turn(turn);
        let a_second = (REQUESTS / self.seconds()).max(1);
        let stride = 100 * TIMES / a_second;
        let mut rows = Vec::new();
        for row in lap.turn(&lap.recording.tables.requests.rows, |r| r.intended_at) {
            *since += TIMES;
            if *since < stride {
                continue;
            }
            let moved = |at: i64| at + shift;
            rows.push(Request {
                phase: format!("{}/s", 100 * TIMES),
                intended_at: moved(row.intended_at),
                ready_at: row.ready_at.map(moved),
                sent_at: row.sent_at.map(moved),
                first_byte_at: row.first_byte_at.map(moved),
                done_at: moved(row.done_at),
                weight: std::mem::take(since),
                ..row.clone()
            });
        }
        rows
    }

    /// A line a second and series, of all requests that ended in it.
    fn latencies(&self, turn: i64) -> Vec<Interval> {
        let (lap, shift) = self.turn(turn);
        let mut seconds: BTreeMap<i64, [Vec<i64>; 3]> = BTreeMap::new();
        for row in lap.turn(&lap.recording.tables.requests.rows, |r| r.intended_at) {
            let times = seconds.entry((row.done_at + shift - self.begins) / S).or_default();
            let (Some(sent), Some(ready)) = (row.sent_at, row.ready_at) else { continue };
            let took = [row.done_at - row.intended_at, row.done_at - sent, sent - ready - row.connect_ns];
            times.iter_mut().zip(took).for_each(|(times, ns)| times.push(ns));
        }
        let mut intervals = Vec::new();
        for (second, times) in seconds {
            for (part, times) in ["response", "service", "send_lag"].into_iter().zip(times) {
                let Ok(mut histogram) = Histogram::new_with_bounds(64, 4_096, 3) else { continue };
                histogram.auto(true);
                for ns in times {
                    // It grows with what is recorded, so that nothing is too large for it.
                    let _ = histogram.record_n(ns.max(0) as u64, TIMES as u64);
                }
                let (from, length) = (Duration::from_secs(second as u64), Duration::from_secs(1));
                intervals.push(Interval { tag: format!("search.{part}"), from, length, histogram });
            }
        }
        intervals
    }

    fn samples(&self, turn: i64, counters: &mut Counters) -> Vec<Sample> {
        let (lap, shift) = self.turn(turn);
        counters.begin();
        let mut rows = Vec::new();
        let mut second = 0;
        for row in lap.turn(&lap.recording.tables.samples.rows, |r| r.observed_at) {
            while lap.begins + second * S <= row.observed_at {
                rows.extend(others(lap.begins + second * S + shift, turn * lap.seconds() + second));
                second += 1;
            }
            let key = (lap.name(&row.source), row.metric.clone(), row.labels.clone());
            let value = counters.value(&key, row.value);
            let (source, metric, labels) = key;
            rows.push(Sample {
                observed_at: row.observed_at + shift,
                window_ns: row.window_ns,
                source,
                metric,
                labels,
                value,
            });
        }
        rows
    }

    fn sessions(&self, turn: i64) -> Vec<Session> {
        let (lap, shift) = self.turn(turn);
        let source = holdup_recording::Text::from("mysql://127.0.0.1:3306");
        let idle = Session {
            source: source.clone(),
            user: Some("app".into()),
            client: Some("127.0.0.1:50412".into()),
            database: Some("jobs".into()),
            command: "Sleep".into(),
            true_state: "idle".into(),
            ..Session::default()
        };
        let mut rows = Vec::new();
        let is_count = |s: &&Sample| s.metric == "mysql_sessions";
        let mut instants: Vec<i64> = lap
            .turn(&lap.recording.tables.samples.rows, |s| s.observed_at)
            .filter(is_count)
            .map(|s| s.observed_at)
            .collect();
        instants.dedup();
        for at in instants {
            rows.extend((0..IDLE).map(|id| Session {
                observed_at: at + shift,
                session_id: 900_000 + id,
                age_ns: Some(7 * S + id),
                ..idle.clone()
            }));
            let here = lap.recording.tables.sessions.rows.iter().filter(|row| row.observed_at == at);
            for (row, copy) in here.flat_map(|row| (0..TIMES).map(move |copy| (row, copy))) {
                rows.push(Session {
                    observed_at: at + shift,
                    source: source.clone(),
                    session_id: row.session_id + 10_000 * copy,
                    blocked_by: row.blocked_by.map(|id| id + 10_000 * copy),
                    ..row.clone()
                });
            }
        }
        rows
    }

    /// Executions, and the server's counters: of the lab's statements what they come to, of others a call a second.
    fn statements(&self, turn: i64) -> Vec<Statement> {
        let (lap, shift) = self.turn(turn);
        let source = "mysql://127.0.0.1:3306".to_owned();
        let mut rows = Vec::new();
        for row in lap.turn(&lap.recording.tables.statements.rows, |r| r.observed_at) {
            rows.extend((0..TIMES).map(|copy| Statement {
                observed_at: row.observed_at + shift + 97_003 * copy,
                source: source.clone(),
                session_id: row.session_id.map(|id| id + 10_000 * copy),
                ..row.clone()
            }));
        }
        let each = self.healthy.seconds();
        for second in turn * each..(turn + 1) * each {
            rows.extend((0..OTHER_STATEMENTS).map(|n| Statement {
                observed_at: self.begins + second * S + S / 2,
                source: source.clone(),
                kind: "digest_total".to_owned(),
                digest: format!("{n:016x}"),
                digest_text: format!("SELECT ? FROM other_{n}"),
                database: Some("jobs".to_owned()),
                calls: second,
                duration_ns: second * 100_000,
                rows_examined: second,
                rows_sent: second,
                ..Statement::default()
            }));
        }
        rows
    }

    fn threads(&self, turn: i64) -> Vec<Thread> {
        let (lap, shift) = self.turn(turn);
        let rows = lap.turn(&lap.recording.tables.threads.rows, |r| r.observed_at);
        let mut rows: Vec<Thread> = rows
            .map(|row| Thread { observed_at: row.observed_at + shift, source: lap.name(&row.source), ..row.clone() })
            .collect();
        let each = self.healthy.seconds();
        for second in turn * each..(turn + 1) * each {
            rows.extend((0..PLACES).map(|n| Thread {
                observed_at: self.begins + second * S + S / 4,
                source: "pid:1001".to_owned(),
                pid: 1_001,
                tid: 2_000 + n,
                process: "mariadbd".to_owned(),
                thread: format!("worker {n}"),
                state: "S".to_owned(),
                wchan: Some("futex_do_wait".to_owned()),
                syscall: Some(202),
                count: 7,
                ..Thread::default()
            }));
        }
        rows
    }

    fn settings(&self) -> Vec<Setting> {
        let rows = self.faulty.recording.tables.settings.rows.iter();
        rows.map(|row| Setting { observed_at: self.begins, source: self.faulty.name(&row.source), ..row.clone() })
            .collect()
    }
}

fn nothing<R: Row>(dir: &Path) -> Result<(), Box<dyn Error>> {
    write_table::<R>(dir, std::iter::empty())?;
    Ok(())
}

/// Series that no rule reads, in the `second` that begins at `at`: every other one a counter.
fn others(at: i64, second: i64) -> impl Iterator<Item = Sample> {
    let each =
        OTHER_SERIES.into_iter().flat_map(|(source, metric, count)| (0..count).map(move |n| (source, metric, n)));
    each.map(move |(source, metric, n)| Sample {
        observed_at: at + 3_000_000,
        window_ns: 1_200_000,
        source: source.to_owned(),
        metric: format!("{metric}_{n}"),
        labels: Labels::none(),
        value: if n % 2 == 0 { 17.0 * n as f64 } else { (second * (1 + n as i64 % 90)) as f64 },
    })
}

/// What goes on where a turn ends: a counter grows from where it stood, a gauge is what it is.
struct Counters {
    is_counter: HashMap<Key, f64>,
    /// Where each stands, and what it stood at in the fixture when this turn began.
    stands: HashMap<Key, (f64, f64)>,
    begun: HashMap<Key, f64>,
}

impl Counters {
    fn of(grown: &Grown) -> Self {
        // First, last, how many, and whether it ever fell.
        let mut series: HashMap<Key, (f64, f64, f64, bool)> = HashMap::new();
        for lap in [&grown.healthy, &grown.faulty] {
            let mut own: HashMap<Key, (f64, f64, f64, bool)> = HashMap::new();
            for row in lap.turn(&lap.recording.tables.samples.rows, |r| r.observed_at) {
                let key = (lap.name(&row.source), row.metric.clone(), row.labels.clone());
                let of = own.entry(key).or_insert((row.value, row.value, 0.0, false));
                *of = (of.0, row.value, of.2 + 1.0, of.3 || row.value < of.1);
            }
            for (key, of) in own {
                let all = series.entry(key).or_insert(of);
                all.3 |= of.3;
                if of.1 - of.0 > all.1 - all.0 {
                    (all.0, all.1, all.2) = (of.0, of.1, of.2);
                }
            }
        }
        let is_counter = series.into_iter().filter(|(_, of)| !of.3 && of.1 > of.0);
        let step = |of: (f64, f64, f64, bool)| (of.1 - of.0) / (of.2 - 1.0).max(1.0);
        let is_counter = is_counter.map(|(key, of)| (key, step(of))).collect();
        Self { is_counter, stands: HashMap::new(), begun: HashMap::new() }
    }

    /// The next turn begins.
    fn begin(&mut self) {
        self.begun.clear();
    }

    fn value(&mut self, key: &Key, value: f64) -> f64 {
        let times = if SAME.iter().any(|part| key.1.contains(part)) { 1.0 } else { TIMES as f64 };
        let Some(step) = self.is_counter.get(key) else { return value * times };
        let begun = *self.begun.entry(key.clone()).or_insert_with(|| {
            let stood = self.stands.get(key).map_or(value * times, |(last, _)| last + step * times);
            self.stands.insert(key.clone(), (stood, stood));
            value
        });
        let (last, from) = self.stands.entry(key.clone()).or_default();
        *last = *from + (value - begun) * times;
        *last
    }
}
