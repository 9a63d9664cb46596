//! The true process list of a database as text and as JSON: figures of the whole server, then one
//! line per session, the most troubled first. It touches neither server nor terminal.

use std::collections::{BTreeMap, HashMap};

use super::style::mark;
use super::style::{AnsiColor, Style};
use super::visible::one_line;
use holdup_collect::processes::{Look, Process};
use holdup_recording::clock;
use holdup_recording::rows::Sample;
use holdup_recording::{Text, metrics};
use serde_json::{Value, json};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Digits of a trace id on a narrow terminal.
const TRACE_DIGITS: usize = 12;

/// Columns from which a trace id is shown in full.
const ROOMY: usize = 180;

/// The counter of a second's work: MySQL's statements, PostgreSQL's transactions.
const STATEMENTS: &str = metrics::mysql::GLOBAL_STATUS_QUESTIONS.name;
const TRANSACTIONS: &str = metrics::postgresql::STAT_DATABASE_XACT_COMMIT.name;

/// The data of one sample's view.
pub struct View<'a> {
    /// Name of the server in tables.
    pub source: &'a str,
    /// Its kind and version.
    pub release: &'a str,
    /// The sample.
    pub look: &'a Look,
    /// The sample before it, for rates.
    pub before: Option<&'a Look>,
    /// What cannot be shown, and what would enable it.
    pub notes: &'a [String],
    /// Whether to show statements with their values.
    pub literals: bool,
}

/// Columns and rows of the terminal; none if stdout is not one.
pub type Size = Option<(usize, usize)>;

impl View<'_> {
    fn all(&self, metric: &str) -> impl Iterator<Item = &Sample> {
        let metric = metric.to_owned();
        self.look.samples.iter().filter(move |sample| sample.metric == metric)
    }

    fn one(&self, metric: &str) -> Option<f64> {
        self.all(metric).next().map(|sample| sample.value)
    }

    fn sum(&self, metric: &str) -> f64 {
        self.all(metric).map(|sample| sample.value).sum()
    }

    /// The number of sessions in each true state.
    fn states(&self) -> BTreeMap<&'static str, u64> {
        let mut states = BTreeMap::new();
        for sample in self.all(metrics::mysql::SESSIONS.name).chain(self.all(metrics::postgresql::SESSIONS.name)) {
            let is = |state: &&&str| sample.labels.contains(&[("true_state", **state)]);
            let known = ["queued", "lock_wait", "executing", "idle_in_transaction", "idle"];
            if let Some(state) = known.iter().find(is) {
                *states.entry(*state).or_default() += sample.value as u64;
            }
        }
        states
    }

    /// Whether the server is a PostgreSQL.
    fn is_postgresql(&self) -> bool {
        self.all(metrics::postgresql::SESSIONS.name).next().is_some()
    }

    /// How much the counter `metric` rose per second since the previous sample.
    fn per_second(&self, metric: &str) -> Option<f64> {
        let counter = |look: &Look| look.samples.iter().find(|s| s.metric == metric).map(|s| (s.observed_at, s.value));
        let ((then, before), (now, after)) = (counter(self.before?)?, counter(self.look)?);
        (now > then && after >= before).then(|| (after - before) / ((now - then) as f64 / 1e9))
    }

    /// Sessions in order: those that block others, those that wait, those that work, idle ones; in
    /// each group the longest first.
    fn sorted(&self) -> Vec<(&Process, usize)> {
        let mut blocks: HashMap<i64, usize> = HashMap::new();
        for process in &self.look.processes {
            if let Some(holder) = process.session.blocked_by {
                *blocks.entry(holder).or_default() += 1;
            }
        }
        let mut sorted: Vec<(&Process, usize)> = self
            .look
            .processes
            .iter()
            .map(|process| (process, blocks.get(&process.session.session_id).copied().unwrap_or(0)))
            .collect();
        let rank = |state: &str| match state {
            "queued" | "lock_wait" => 0,
            "executing" => 1,
            "idle_in_transaction" => 2,
            _ => 3,
        };
        sorted.sort_by_key(|(process, blocks)| {
            let session = &process.session;
            let waited_ns = session.queued_ns.or(session.age_ns).unwrap_or(0);
            (std::cmp::Reverse(*blocks), rank(&session.true_state), -waited_ns, session.session_id)
        });
        sorted
    }

    /// The head: three or four lines, with notes.
    fn head(&self) -> Vec<String> {
        let at: String = clock::rfc3339(self.look.at).chars().take(19).collect();
        let states = self.states();
        let mut lines = vec![format!("{BOLD}{}{BOLD:#}  {}  {at}Z", clean(self.source), self.release)];
        // Without a thread pool nothing is queued; MySQL does not tell who idles in a transaction.
        let known = match self.is_postgresql() {
            true => ["lock_wait", "executing", "idle_in_transaction", "idle"],
            false => ["queued", "lock_wait", "executing", "idle"],
        };
        let named: Vec<String> = known
            .iter()
            .map(|state| format!("{} {}", states.get(state).unwrap_or(&0), word(state).to_lowercase()))
            .collect();
        lines.push(format!("sessions     {}: {}", states.values().sum::<u64>(), named.join(", ")));
        let groups = self.all(metrics::mysql::THREAD_POOL_GROUP_THREADS.name).count();
        if groups > 0 {
            let longest = self.one(metrics::mysql::THREAD_POOL_QUEUEING_TIME_MAX.name).unwrap_or(0.0);
            lines.push(format!(
                "thread pool  {groups} group{}: {} threads, {} active, {} standby, {} stalled; {} in queue, longest {} us",
                if groups == 1 { "" } else { "s" },
                self.sum(metrics::mysql::THREAD_POOL_GROUP_THREADS.name),
                self.sum(metrics::mysql::THREAD_POOL_GROUP_ACTIVE_THREADS.name),
                self.sum(metrics::mysql::THREAD_POOL_GROUP_STANDBY_THREADS.name),
                self.sum(metrics::mysql::THREAD_POOL_GROUP_STALLED.name),
                self.one(metrics::mysql::THREAD_POOL_QUEUED_CONNECTIONS.name).unwrap_or(0.0),
                (longest * 1e6).round(),
            ));
        } else if let Some((threads, idle)) = self
            .one(metrics::mysql::THREAD_POOL_THREADS.name)
            .filter(|threads| *threads > 0.0)
            .zip(self.one(metrics::mysql::THREAD_POOL_IDLE_THREADS.name))
        {
            lines.push(format!("thread pool  {threads} threads, {idle} idle; this server does not show its queue"));
        }
        let (counted, rate) = match self.is_postgresql() {
            true => ("transactions", self.per_second(TRANSACTIONS)),
            false => ("statements  ", self.per_second(STATEMENTS)),
        };
        let rate = rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}/s"));
        let waits = states.get("lock_wait").copied().unwrap_or(0);
        let mut last = format!("{counted} {rate}   lock waits {waits}");
        for lag in self.all(metrics::mysql::REPLICA_LAG.name) {
            last += &format!("   replica {} s behind", lag.value);
        }
        lines.push(last);
        lines.extend(self.notes.iter().map(|note| format!("{DIM}{}{DIM:#}", clean(note))));
        lines
    }

    /// The whole view, cut to the terminal's size if there is one.
    pub fn text(&self, size: Size) -> String {
        let (width, height) = size.unwrap_or((usize::MAX, usize::MAX));
        let mut lines = self.head();
        lines.push(String::new());
        let sorted = self.sorted();
        let has_traces = sorted.iter().any(|(process, _)| process.session.trace_id.is_some());
        let digits = match (has_traces, width >= ROOMY) {
            (false, _) => 0,
            (true, true) => 32,
            (true, false) => TRACE_DIGITS,
        };
        let head = row(
            &["ID", "USER", "DB", "CLIENT", "DOES", "FOR", "SERVER SAYS", "BLOCKED BY", "TRACE ID"],
            digits,
            "STATEMENT",
        );
        lines.push(format!("{BOLD}{head}{BOLD:#}"));
        for (process, blocks) in sorted {
            lines.push(line(process, blocks, digits, self.literals));
        }
        let more = lines.len().saturating_sub(height);
        if more > 0 {
            lines.truncate(height.saturating_sub(1));
            lines.push(format!("{DIM}… and {} more sessions{DIM:#}", more + 1));
        }
        let listed = self.look.processes.len() as u64;
        let idle = self.states().values().sum::<u64>().saturating_sub(listed);
        if idle > 0 && size.is_none() {
            lines.push(format!("{DIM}and {idle} more idle sessions{DIM:#}"));
        }
        lines.iter().map(|line| cut(line, width)).collect::<Vec<_>>().join("\n")
    }

    /// The same as an object.
    pub fn json(&self) -> Value {
        let sessions: Vec<Value> = self
            .sorted()
            .into_iter()
            .map(|(process, blocks)| {
                let s = &process.session;
                json!({
                    "id": s.session_id,
                    "user": s.user,
                    "database": s.database,
                    "client": s.client,
                    "true_state": s.true_state,
                    "queued_ns": s.queued_ns,
                    "age_ns": s.age_ns,
                    "command": s.command,
                    "state": s.state,
                    "blocked_by": s.blocked_by,
                    "blocks": blocks,
                    "trace_id": s.trace_id,
                    "digest": s.digest,
                    "digest_text": s.digest_text,
                    "statement": process.statement.as_ref().filter(|_| self.literals),
                })
            })
            .collect();
        let groups: Vec<&Sample> = self.all(metrics::mysql::THREAD_POOL_GROUP_THREADS.name).collect();
        let pool = (!groups.is_empty()).then(|| {
            json!({
                "groups": groups.len(),
                "threads": self.sum(metrics::mysql::THREAD_POOL_GROUP_THREADS.name),
                "active_threads": self.sum(metrics::mysql::THREAD_POOL_GROUP_ACTIVE_THREADS.name),
                "standby_threads": self.sum(metrics::mysql::THREAD_POOL_GROUP_STANDBY_THREADS.name),
                "stalled": self.sum(metrics::mysql::THREAD_POOL_GROUP_STALLED.name),
                "queued": self.one(metrics::mysql::THREAD_POOL_QUEUED_CONNECTIONS.name),
                "queueing_time_max_seconds": self.one(metrics::mysql::THREAD_POOL_QUEUEING_TIME_MAX.name),
            })
        });
        json!({
            "source": self.source,
            "release": self.release,
            "observed_at": self.look.at,
            "sessions_by_true_state": self.states(),
            "thread_pool": pool,
            "statements_per_second": self.per_second(STATEMENTS),
            "transactions_per_second": self.per_second(TRANSACTIONS),
            "replica_lag_seconds": self.one(metrics::mysql::REPLICA_LAG.name),
            "notes": self.notes,
            "sessions": sessions,
        })
    }
}

/// A true state in words.
fn word(state: &str) -> &str {
    match state {
        "queued" => "Queued",
        "lock_wait" => "Lock wait",
        "executing" => "Executing",
        "idle_in_transaction" => "In transaction",
        "idle" => "Idle",
        other => other,
    }
}

fn line(process: &Process, blocks: usize, digits: usize, literals: bool) -> String {
    let session = &process.session;
    let duration = match (session.queued_ns, session.age_ns) {
        (Some(waited), _) => format!("{} us", waited / 1_000),
        (None, Some(age)) => format!("{} s", age / 1_000_000_000),
        (None, None) => String::new(),
    };
    let says = match &session.state {
        Some(state) => format!("{}: {state}", session.command),
        None => session.command.to_string(),
    };
    let does = if blocks > 0 {
        format!("{}, blocks {blocks}", word(&session.true_state))
    } else {
        word(&session.true_state).to_owned()
    };
    let text = if literals { process.statement.as_deref() } else { session.digest_text.as_deref() };
    let blocked_by = session.blocked_by.map_or_else(String::new, |id| id.to_string());
    let told = |text: &Option<Text>| text.as_deref().unwrap_or_default().to_owned();
    let cells = [
        session.session_id.to_string(),
        told(&session.user),
        told(&session.database),
        told(&session.client),
        does,
        duration,
        says,
        blocked_by,
        told(&session.trace_id),
    ];
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    let out = row(&cells, digits, text.unwrap_or_default());
    let style = match session.true_state.as_str() {
        _ if blocks > 0 => AnsiColor::Red.on_default(),
        "queued" | "lock_wait" => AnsiColor::Yellow.on_default(),
        "idle" => DIM,
        _ => Style::new(),
    };
    format!("{style}{out}{style:#}")
}

/// One line of the list: cells of fixed width, the statement at the end.
fn row(cells: &[&str], digits: usize, statement: &str) -> String {
    let widths = [8, 12, 12, 21, 24, 12, 26, 10, digits];
    let mut out = String::new();
    for (cell, width) in cells.iter().zip(widths).filter(|(_, width)| *width > 0) {
        let text = cut(&clean(cell), width);
        let pad = width.saturating_sub(text.width());
        out.push_str(&text);
        out.push_str(&" ".repeat(pad + 1));
    }
    out.push_str(&clean(statement));
    out.trim_end().to_owned()
}

/// Removes control characters; line breaks and runs of blanks become one blank.
fn clean(text: &str) -> String {
    text.split_whitespace().map(one_line).collect::<Vec<_>>().join(" ")
}

/// The part of `line` that fits into `width` columns; styles take no columns, and those at its end
/// are kept.
fn cut(line: &str, width: usize) -> String {
    let (mut out, mut used, mut in_escape) = (String::new(), 0, false);
    for c in line.chars() {
        if in_escape || c == mark() {
            in_escape = !(in_escape && c.is_ascii_alphabetic());
            out.push(c);
            continue;
        }
        let wide = c.width().unwrap_or(0);
        if used + wide <= width {
            out.push(c);
        }
        used = used.saturating_add(wide);
    }
    out
}

#[cfg(test)]
mod tests {
    use holdup_recording::Labels;
    use holdup_recording::rows::Session;

    use super::*;

    fn process(id: i64, state: &str, age_s: i64, blocked_by: Option<i64>) -> Process {
        let queued = state == "queued";
        let session = Session {
            session_id: id,
            user: Some("app".into()),
            command: if queued || state == "idle" { "Sleep" } else { "Query" }.into(),
            true_state: state.into(),
            queued_ns: queued.then_some(age_s * 1_000_000_000),
            age_ns: Some(age_s * 1_000_000_000),
            blocked_by,
            digest_text: Some("SELECT ?".into()),
            ..Session::default()
        };
        Process { session, statement: Some("SELECT 'literal\n\x1b[2J-canary'".to_owned()) }
    }

    fn look(at_s: i64, questions: f64) -> Look {
        let sample = |metric: &str, labels, value| Sample {
            observed_at: at_s * 1_000_000_000,
            metric: metric.to_owned(),
            labels,
            value,
            ..Sample::default()
        };
        let state = |state| Labels::new([("command", "Sleep"), ("true_state", state)]);
        Look {
            at: at_s * 1_000_000_000,
            processes: vec![
                process(1, "idle", 900, None),
                process(2, "executing", 3, None),
                process(3, "queued", 2, None),
                process(4, "lock_wait", 9, Some(5)),
                process(5, "idle", 1, None),
            ],
            samples: vec![
                sample("mysql_global_status_questions", Labels::none(), questions),
                sample("mysql_sessions", state("idle"), 42.0),
                sample("mysql_sessions", state("queued"), 1.0),
                sample("mysql_thread_pool_group_threads", Labels::new([("group", "0")]), 4.0),
                sample("mysql_thread_pool_queued_connections", Labels::none(), 1.0),
            ],
        }
    }

    fn view<'a>(look: &'a Look, before: Option<&'a Look>, literals: bool) -> View<'a> {
        View { source: "mysql://h:3306", release: "MariaDB 10.11.6", look, before, notes: &[], literals }
    }

    #[test]
    fn harmful_sessions_come_first_and_queued_replaces_sleep() {
        let (before, now) = (look(10, 1_000.0), look(12, 1_500.0));
        let view = view(&now, Some(&before), false);
        let order: Vec<i64> = view.sorted().iter().map(|(process, _)| process.session.session_id).collect();
        assert_eq!(order, [5, 4, 3, 2, 1]);
        let text = anstream::adapter::strip_str(&super::super::visible::sent(&view.text(None))).to_string();
        assert!(text.contains("statements   250/s"), "{text}");
        assert!(text.contains("sessions     43: 1 queued"), "{text}");
        assert!(text.contains("1 group: 4 threads"), "{text}");
        let queued = text.lines().find(|line| line.starts_with("3 ")).unwrap();
        assert!(queued.contains("Queued") && queued.contains("2000000 us") && queued.contains("Sleep"), "{queued}");
        let holder = text.lines().find(|line| line.starts_with("5 ")).unwrap();
        assert!(holder.contains("Idle, blocks 1"), "{holder}");
        assert!(!text.contains("canary"), "literals are shown when they are asked for");
    }

    #[test]
    fn a_postgresql_counts_transactions_and_who_idles_in_one() {
        let sample = |at_s: i64, metric: &str, labels, value| Sample {
            observed_at: at_s * 1_000_000_000,
            metric: metric.to_owned(),
            labels,
            value,
            ..Sample::default()
        };
        let look = |at_s: i64, ended: f64| Look {
            at: at_s * 1_000_000_000,
            processes: vec![process(1, "idle", 9, None), process(2, "idle_in_transaction", 9, None)],
            samples: vec![
                sample(at_s, "postgresql_sessions", Labels::new([("true_state", "idle_in_transaction")]), 1.0),
                sample(at_s, "postgresql_sessions", Labels::new([("true_state", "idle")]), 1.0),
                sample(at_s, TRANSACTIONS, Labels::none(), ended),
            ],
        };
        let (before, now) = (look(10, 100.0), look(12, 300.0));
        let view = view(&now, Some(&before), false);
        let text = anstream::adapter::strip_str(&super::super::visible::sent(&view.text(None))).to_string();
        assert!(text.contains("sessions     2: 0 lock wait, 0 executing, 1 in transaction, 1 idle"), "{text}");
        assert!(text.contains("transactions 100/s"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("2 ") && line.contains("In transaction")), "{text}");
        assert_eq!(view.json()["transactions_per_second"], 100.0);
        assert_eq!(view.json()["statements_per_second"], Value::Null);
    }

    #[test]
    fn literals_are_asked_for_and_nothing_acts_on_the_terminal() {
        let now = look(12, 0.0);
        let shown = view(&now, None, true);
        let text = anstream::adapter::strip_str(&super::super::visible::sent(&shown.text(None))).to_string();
        assert!(text.contains("SELECT 'literal \\u001b[2J-canary'"), "{text}");
        assert_eq!(shown.json()["sessions"][0]["statement"], "SELECT 'literal\n\x1b[2J-canary'");
        assert_eq!(view(&now, None, false).json()["sessions"][0]["statement"], Value::Null);
        assert_eq!(shown.json()["sessions_by_true_state"]["idle"], 42);
    }

    #[test]
    fn it_fits_the_terminal() {
        let now = look(12, 0.0);
        let text = view(&now, None, false).text(Some((60, 8)));
        assert_eq!(text.lines().count(), 8);
        for line in text.lines() {
            assert!(
                anstream::adapter::strip_str(&super::super::visible::sent(line)).to_string().width() <= 60,
                "{line}"
            );
        }
        assert!(text.contains("more sessions"), "{text}");
    }
}
