//! What a log says of its statements, as the rows that a collector writes of a server's own
//! counters: sums so far, at the ends of stretches of time. Parts of the time (waits for a disk,
//! for a ticket) are stages of the statement.

use std::collections::BTreeMap;

use holdup_logs::digest::attribute::{Attributes, ERRORS, LOCK_TIME, QUERY_TIME, ROWS_EXAMINED, ROWS_SENT};
use holdup_logs::digest::course::Stretch;
use holdup_logs::digest::shape::Shape;
use holdup_logs::digest::tally::Tally;
use holdup_recording::rows::{Event, Setting, Stage, Statement};
use holdup_recording::{Batch, Labels, words};

/// Most stretches of a recording: the width of one is a power of two of seconds.
const STRETCHES_MAX: i64 = 60;

/// Rows that are passed on at once.
const ROWS_AT_ONCE: usize = 10_000;

/// Parts of a statement's time, by the names of attributes, and our names of the stages.
const STAGES: [(&str, &str); 11] = [
    ("Pages_read_time", "storage_read"),
    ("Storage_read_time", "storage_read"),
    ("InnoDB_IO_r_wait", "storage_read"),
    ("Storage_write_time", "storage_write"),
    ("Cache_wait", "cache_wait"),
    ("Ticket_wait", "ticket_wait"),
    ("InnoDB_queue_wait", "ticket_wait"),
    ("Flow_control_wait", "flow_control_wait"),
    ("Write_concern_wait", "write_concern_wait"),
    ("Planning_time", "planning"),
    ("Cpu_time", "cpu"),
];

/// Flags that say how a table was read; a log with none of them does not say it.
const SCANS: [&str; 2] = ["Full_scan", "Full_join"];

/// Attributes that say that a sort or a result did not fit in memory.
const SPILLS: [&str; 1] = ["Filesort_on_disk"];

/// The setting that a log with these flags shows.
const VERBOSITY: (&str, &str) = ("log_slow_verbosity", "query_plan");

/// When statements of a log ran, in stretches of one width.
pub(super) struct Course {
    /// First and last moment, nanoseconds since 1970.
    pub span: Option<(i64, i64)>,
    width_us: i64,
}

impl Course {
    /// Of a log, whose messages lie in `heard`, nanoseconds since 1970.
    pub fn of(tally: &Tally, heard: Option<(i64, i64)>) -> Self {
        // From the first begin to the end of the last stretch, which is less than its width too late.
        let ended = |shape: &Shape| Some((shape.seen_us?.0, *shape.course.as_ref()?.by(0).keys().next_back()?));
        let ns = |us: i64| us.saturating_mul(1_000);
        let spans = tally.shapes.iter().filter_map(ended).map(|(from, to)| (ns(from), ns(to)));
        let span = spans.chain(heard).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let span = span.map(|(from, to)| (from, to.max(from.saturating_add(1_000_000_000))));
        let mut width_us = 1_000_000;
        while span.is_some_and(|(from, to)| to.saturating_sub(from) / 1_000 > width_us * STRETCHES_MAX) {
            width_us *= 2;
        }
        Self { span, width_us }
    }

    /// Passes on the rows of all statements of `source`.
    pub fn rows(&self, source: &str, tally: &Tally, put: &mut dyn FnMut(Batch)) {
        let Some((from, to)) = self.span else { return };
        let names = Names::of(&tally.attributes);
        let mut batch = Batch::default();
        if is_verbose(tally) {
            let (name, value) = (VERBOSITY.0.to_owned(), VERBOSITY.1.to_owned());
            batch.settings.push(Setting { observed_at: from, source: source.to_owned(), name, value });
        }
        for shape in &tally.shapes {
            let Some(course) = &shape.course else { continue };
            let statement = Statement {
                source: source.to_owned(),
                kind: "digest_total".to_owned(),
                digest: shape.id.clone(),
                digest_text: shape.text.clone(),
                database: most(shape, tally),
                ..Statement::default()
            };
            self.statement(&statement, &course.by(self.width_us), (from, to), &names, &mut batch);
            if batch.len() >= ROWS_AT_ONCE {
                put(std::mem::take(&mut batch));
            }
        }
        if tally.rest.calls > 0 {
            let text = "(statements beyond the memory of this import)".to_owned();
            let mut rest = Statement {
                observed_at: from,
                source: source.to_owned(),
                kind: "digest_total".to_owned(),
                digest: "(others)".to_owned(),
                digest_text: text,
                ..Statement::default()
            };
            batch.statements.push(rest.clone());
            (rest.observed_at, rest.calls, rest.duration_ns) =
                (to, count(tally.rest.calls), ns(u64::try_from(tally.rest.total_us).unwrap_or(u64::MAX)));
            batch.statements.push(rest);
        }
        put(batch);
    }

    /// The rows of one statement: its sums before and after each stretch in which it ran.
    fn statement(
        &self,
        empty: &Statement,
        stretches: &BTreeMap<i64, Stretch>,
        (from, to): (i64, i64),
        names: &Names,
        batch: &mut Batch,
    ) {
        let mut sums = empty.clone();
        let mut read_at = None;
        for (end_us, stretch) in stretches {
            let end = end_us.saturating_mul(1_000).clamp(from, to);
            let begin = end_us.saturating_sub(self.width_us).saturating_mul(1_000).clamp(from, to);
            if read_at != Some(begin) {
                batch.statements.push(Statement { observed_at: begin, ..sums.clone() });
            }
            names.add(stretch, &mut sums);
            batch.statements.push(Statement { observed_at: end, ..sums.clone() });
            read_at = Some(end);
            batch.stages.extend(names.stages(stretch, &sums, end));
            batch.events.extend(names.spills(stretch, &sums, end));
        }
    }
}

/// Numbers of attributes in one log.
struct Names {
    stages: Vec<(u16, &'static str)>,
    scans: Vec<u16>,
    spills: Vec<u16>,
    affected: Option<u16>,
    record_locks: Option<u16>,
    tables: Option<u16>,
    disk_tables: Option<u16>,
    disk_table: Option<u16>,
}

impl Names {
    fn of(attributes: &Attributes) -> Self {
        let number = |name: &str| {
            let at = attributes.all().iter().position(|attribute| attribute.name == name)?;
            u16::try_from(at).ok()
        };
        Self {
            stages: STAGES.iter().filter_map(|(name, stage)| Some((number(name)?, *stage))).collect(),
            scans: SCANS.iter().filter_map(|name| number(name)).collect(),
            spills: SPILLS.iter().filter_map(|name| number(name)).collect(),
            affected: number("Rows_affected"),
            record_locks: number("InnoDB_rec_lock_wait"),
            tables: number("Tmp_tables"),
            disk_tables: number("Tmp_disk_tables"),
            disk_table: number("Tmp_table_on_disk"),
        }
    }

    fn add(&self, stretch: &Stretch, sums: &mut Statement) {
        let sum = |number: u16| stretch.sum(number).unwrap_or(0);
        let of = |number: Option<u16>| number.map_or(0, sum);
        let add = |to: &mut i64, value: i64| *to = to.saturating_add(value);
        add(&mut sums.calls, count(stretch.calls));
        add(&mut sums.duration_ns, ns(sum(QUERY_TIME)));
        // Percona's time in row locks is a part of the other, or not: never both.
        add(&mut sums.lock_ns, ns(sum(LOCK_TIME).max(of(self.record_locks))));
        add(&mut sums.rows_examined, count(sum(ROWS_EXAMINED)));
        add(&mut sums.rows_sent, count(sum(ROWS_SENT)));
        add(&mut sums.errors, count(sum(ERRORS)));
        add(&mut sums.rows_affected, count(of(self.affected)));
        let scans = self.scans.iter().map(|number| sum(*number)).max().unwrap_or(0);
        add(&mut sums.no_index, count(scans.min(stretch.calls)));
        add(&mut sums.temporary_tables, count(of(self.tables)));
        add(&mut sums.temporary_disk_tables, count(of(self.disk_tables).max(of(self.disk_table))));
    }

    fn stages(&self, stretch: &Stretch, of: &Statement, observed_at: i64) -> Vec<Stage> {
        let took = self.stages.iter().filter_map(|(number, stage)| Some((stretch.sum(*number)?, *stage)));
        let row = |(us, stage): (u64, &str)| Stage {
            observed_at,
            source: of.source.clone(),
            digest: of.digest.clone(),
            stage: stage.to_owned(),
            duration_ns: ns(us),
            ..Stage::default()
        };
        took.filter(|(us, _)| *us > 0).map(row).collect()
    }

    /// Executions that wrote temporary files, as one event.
    fn spills(&self, stretch: &Stretch, of: &Statement, observed_at: i64) -> Option<Event> {
        let spilled = self.spills.iter().filter_map(|number| stretch.sum(*number)).max().filter(|n| *n > 0)?;
        Some(Event {
            observed_at,
            source: of.source.clone(),
            kind: "temporary_file".to_owned(),
            text: format!("{} executions sorted on disk", words::count(spilled)),
            labels: Labels::new([("digest", of.digest.as_str()), ("count", &spilled.to_string())]),
        })
    }
}

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn ns(us: u64) -> i64 {
    count(us).saturating_mul(1_000)
}

/// The database that most executions of a statement used.
fn most(shape: &Shape, tally: &Tally) -> Option<String> {
    let [_, _, databases, _] = &shape.who;
    let [_, _, names, _] = &tally.names;
    let (number, _) = databases.all().max_by_key(|(_, count)| *count)?;
    Some(names.get(number).to_owned()).filter(|name| !name.is_empty())
}

/// Whether the log says how tables were read.
fn is_verbose(tally: &Tally) -> bool {
    let names = Names::of(&tally.attributes);
    tally.shapes.iter().any(|shape| shape.flags.iter().any(|(number, _)| names.scans.contains(number)))
}

/// What would make the log say more.
pub(super) fn enable(source: &str, tally: &Tally) -> Option<&'static str> {
    match () {
        () if source.starts_with("mysql") && !is_verbose(tally) => Some(
            "log how statements are executed: SET GLOBAL log_slow_verbosity = 'query_plan,innodb' (MariaDB), \
             'full' (Percona), log_slow_extra = ON (MySQL 8.0.14)",
        ),
        () if source.starts_with("postgresql") && tally.shapes.iter().all(|shape| shape.plans.is_empty()) => Some(
            "log plans: session_preload_libraries = auto_explain, auto_explain.log_min_duration = '1s', \
                  auto_explain.log_analyze = on; and log_lock_waits = on, log_temp_files = 0",
        ),
        () => None,
    }
}

/// The statements that took most, a line each.
pub(super) fn heaviest(tally: &Tally, most: usize) -> Vec<String> {
    let time = |shape: &Shape| shape.measure(QUERY_TIME).map_or(0, |time| time.sum);
    let mut shapes: Vec<&Shape> = tally.shapes.iter().filter(|shape| time(shape) > 0).collect();
    shapes.sort_by_key(|shape| std::cmp::Reverse(time(shape)));
    let line = |shape: &&Shape| {
        let seconds = time(shape) as f64 / 1e6;
        let text: String = shape.text.chars().take(100).collect();
        format!("{seconds:>10.1} s in {} calls: {text}", words::count(shape.calls))
    };
    shapes.iter().take(most).map(line).collect()
}
