//! Logs of any seed, of which all is known: every statement, its executions, their times, and a canary in every literal. What
//! comes out must be exactly that, by however many threads it was read, and no canary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use holdup_logs::digest::report::{Order, Report};
use holdup_logs::digest::run::{Options, run};

/// Numbers that look random and are the same each time (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

/// Statements in which `{}` is a literal and `{+}` a list of them.
const TEMPLATES: [&str; 16] = [
    "SELECT a, b FROM t1 WHERE id = {}",
    "select c from t2 where d > {} and e in ({+}) order by f desc limit {}",
    "INSERT INTO t3 (a, b) VALUES {rows}",
    "UPDATE t4 SET a = {}, b = b + {} WHERE c = {}",
    "DELETE FROM t5 WHERE a < {} OR b = {}",
    "SELECT x_{n}_y FROM t6_0001 WHERE a = {}",
    "SELECT COUNT(*) FROM t7 WHERE a BETWEEN {} AND {}",
    "SELECT a FROM t8\n  JOIN t9 ON t8.id = t9.id\n WHERE t9.b = {}",
    "SELECT CASE WHEN a > {} THEN {} ELSE {} END FROM t10",
    "(SELECT a FROM t11 WHERE b = {}) UNION ALL (SELECT a FROM t12 WHERE b = {})",
    "SELECT a FROM t13 WHERE b LIKE {} AND c IS NULL",
    "COMMIT",
    "SELECT a FROM t14 WHERE (b, c) IN ({pairs})",
    "SELECT f(a, {}) FROM t15 WHERE d = {} /* {comment} */",
    "SELECT a FROM t16 WHERE b = - {} AND c <> {}",
    "SELECT a FROM t17 WHERE id = {} FOR UPDATE",
];

/// What each literal holds: it must be in no output.
const CANARY: &str = "CaNaRy";

struct Writer {
    random: Random,
    is_mysql: bool,
}

impl Writer {
    fn literal(&mut self) -> String {
        // What looks like something else: quotes of the other kind, comments, heads of records, ends of statements.
        let nasty = [
            "",
            " -- ",
            "/*",
            "*/",
            ";",
            "\n# Time: 2025-11-03T10:00:00.000001Z\n",
            "\n\tx",
            "), (",
            "?",
            " #x",
            "LOG:  duration: 1 ms",
        ];
        let text =
            format!("{CANARY}{}{}{}", self.random.one(&nasty), self.random.below(1_000), self.random.one(&nasty));
        match self.random.below(9) {
            0 => self.random.below(1_000_000).to_string(),
            1 => format!("{}.{}", self.random.below(1_000), self.random.below(100)),
            2 => format!("{}e{}", self.random.below(100), self.random.below(9)),
            3 => format!("'{text}''s'"),
            4 if self.is_mysql => format!("'{text}\\'s \"'"),
            5 if self.is_mysql => format!("\"{text}'s \\\" \"\"\""),
            6 if self.is_mysql => format!("0x{:032X}", self.random.next()),
            4 => format!("E'{text}\\'s'"),
            5 => format!("$q${text}'$q$"),
            6 => format!("'{text}'::text"),
            _ => format!("'{text}'"),
        }
    }

    fn list(&mut self) -> String {
        let count = 1 + self.random.below(9);
        let values: Vec<String> =
            (0..count).map(|_| if self.random.below(9) == 0 { "NULL".to_owned() } else { self.literal() }).collect();
        values.join(self.random.one(&[",", ", ", " , "]))
    }

    fn statement(&mut self, template: &str) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, behind)) = rest.split_once('{') {
            let (what, after) = behind.split_once('}').unwrap();
            text.push_str(before);
            match what {
                "" => text += &self.literal(),
                "+" => text += &self.list(),
                "n" => text.push('7'),
                "comment" => {
                    let _ = write!(text, "trace={CANARY}{}", self.random.next());
                }
                _ => {
                    let count = 1 + self.random.below(5);
                    for row in 0..count {
                        let _ =
                            write!(text, "{}({}, {})", if row > 0 { "," } else { "" }, self.literal(), self.literal());
                    }
                }
            }
            rest = after;
        }
        text + rest
    }
}

/// Calls and times of one statement.
#[derive(Clone, Debug, Default, PartialEq)]
struct Truth {
    times_us: Vec<u64>,
}

/// Template, statement, time in microseconds.
type Executed = (usize, String, u64);

/// Executions, and what is true of them.
fn events(seed: u64, count: u64, is_mysql: bool) -> (Vec<Executed>, BTreeMap<usize, Truth>) {
    let mut writer = Writer { random: Random(seed), is_mysql };
    let mut truth = BTreeMap::<usize, Truth>::new();
    let events = (0..count)
        .map(|_| {
            let template = usize::try_from(writer.random.below(TEMPLATES.len() as u64)).unwrap();
            let sql = writer.statement(TEMPLATES[template]);
            let size = 4 + writer.random.below(24);
            let time_us = 1 + writer.random.below(1 << size);
            truth.entry(template).or_default().times_us.push(time_us);
            (template, sql, time_us)
        })
        .collect();
    (events, truth)
}

fn slow_log(events: &[Executed]) -> String {
    let mut log = "/usr/sbin/mysqld, Version: 8.0.35 (x). started with:\nTcp port: 3306  Unix socket: x\nTime  Id Command    Argument\n".to_owned();
    for (index, (_, sql, time_us)) in events.iter().enumerate() {
        let _ = write!(
            log,
            "# Time: 2025-11-03T10:00:00.{:06}Z\n# User@Host: u{}[u] @ h [10.0.0.1]  Id: 7\n# Query_time: {}.{:06}  Lock_time: 0.000001 Rows_sent: 1  Rows_examined: {index}\nSET timestamp=1762164000;\n{sql};\n",
            index % 1_000_000,
            index % 3,
            time_us / 1_000_000,
            time_us % 1_000_000
        );
    }
    log
}

fn stderr(events: &[Executed]) -> String {
    let mut log = String::new();
    for (index, (_, sql, time_us)) in events.iter().enumerate() {
        let prefix = format!(
            "2025-11-03 10:00:00.{:03} UTC [{}]: user=u{},db=d,app=a b,client=10.0.0.1 ",
            index % 1_000,
            100 + index % 5,
            index % 3
        );
        let _ = writeln!(
            log,
            "{prefix}LOG:  duration: {}.{:03} ms  statement: {}",
            time_us / 1_000,
            time_us % 1_000,
            sql.replace('\n', "\n\t")
        );
        if index % 7 == 0 {
            let _ = writeln!(
                log,
                "{prefix}ERROR:  invalid input syntax for type integer: \"{CANARY}\"\n{prefix}STATEMENT:  select '{CANARY}'"
            );
        }
    }
    log
}

fn csv(events: &[Executed]) -> String {
    let mut log = String::new();
    for (index, (_, sql, time_us)) in events.iter().enumerate() {
        let message =
            format!("duration: {}.{:03} ms  statement: {sql}", time_us / 1_000, time_us % 1_000).replace('"', "\"\"");
        let _ = writeln!(
            log,
            "2025-11-03 10:00:00.{:03} UTC,\"u{}\",\"d\",{},\"10.0.0.1:5\",69.1,1,\"SELECT\",2025-11-03 08:53:20 UTC,3/1,0,LOG,00000,\"{message}\",,,,,,,,,\"a b\",\"client backend\",,0",
            index % 1_000,
            index % 3,
            100 + index % 5
        );
    }
    log
}

fn json(events: &[Executed]) -> String {
    let mut log = String::new();
    for (index, (_, sql, time_us)) in events.iter().enumerate() {
        let message = format!("duration: {}.{:03} ms  statement: {sql}", time_us / 1_000, time_us % 1_000);
        let line = serde_json::json!({
            "timestamp": format!("2025-11-03 10:00:00.{:03} UTC", index % 1_000), "user": format!("u{}", index % 3), "dbname": "d",
            "pid": 100 + index % 5, "remote_host": "10.0.0.1", "error_severity": "LOG", "message": message, "application_name": "a b",
        });
        let _ = writeln!(log, "{line}");
    }
    log
}

/// The same statements on the wire, on five connections of MySQL that were open already, each answered with an OK.
fn packets(events: &[Executed]) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_ne_bytes().to_vec();
    file.extend([2_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat());
    file.extend([0, 0, 262_144, 101].iter().flat_map(|number: &u32| number.to_ne_bytes()));
    let (mut at_us, mut lines) = (1_762_164_000_000_000_u64, [[1_u32, 1_u32]; 5]);
    for (index, (_, sql, time_us)) in events.iter().enumerate() {
        let line = index % lines.len();
        let query = [&(sql.len() as u32 + 1).to_le_bytes()[..3], &[0, 3], sql.as_bytes()].concat();
        for (is_client, payload) in [(true, &query[..]), (false, b"\x07\0\0\x01\0\0\0\x02\0\0\0")] {
            at_us += if is_client { 10 } else { *time_us };
            let [sent, received] = lines[line];
            let (from, to) = if is_client { (20_000 + line as u16, 3_306_u16) } else { (3_306, 20_000 + line as u16) };
            let (number, ack) = if is_client { (sent, received) } else { (received, sent) };
            let length = 40 + payload.len() as u32;
            let head = [(at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32, length, length];
            file.extend(head.iter().flat_map(|number| number.to_ne_bytes()));
            file.extend([0x45, 0]);
            file.extend((length as u16).to_be_bytes());
            file.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            file.extend(if is_client { [10, 0, 0, 1, 10, 0, 0, 2] } else { [10, 0, 0, 2, 10, 0, 0, 1] });
            file.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
            file.extend([number.to_be_bytes(), ack.to_be_bytes()].concat());
            file.extend([0x50, 0x18, 1, 0, 0, 0, 0, 0]);
            file.extend(payload);
            lines[line][usize::from(!is_client)] += payload.len() as u32;
        }
    }
    file
}

/// The value that `quantile` of all are not above.
fn nearest_rank(sorted: &[u64], quantile: f64) -> u64 {
    let rank = (sorted.len() as f64 * quantile).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn report(path: &Path, threads: usize) -> String {
    let outcome = run(&[path.to_owned()], &Options { threads, ..Options::default() }).unwrap();
    let mut report = Report::from_outcome(&outcome, &Order::TotalTime, 0);
    let text = [report.text(), report.markdown(), report.html()].concat();
    assert!(
        !text.contains(CANARY),
        "{}: {:?}",
        path.display(),
        text.lines().filter(|line| line.contains(CANARY)).collect::<Vec<_>>()
    );
    report.files.clear();
    for query in &mut report.queries {
        if let Some(slowest) = &mut query.slowest {
            slowest.place = slowest.place.rsplit(' ').next().unwrap().to_owned();
        }
    }
    serde_json::to_string_pretty(&report).unwrap()
}

fn check(name: &str, log: &[u8], truth: &BTreeMap<usize, Truth>, folder: &Path, seed: u64) {
    let path: PathBuf = folder.join(name);
    std::fs::File::create(&path).unwrap().write_all(log).unwrap();
    let one = report(&path, 1);
    assert!(!one.contains(CANARY), "{name}, seed {seed}: a canary came out");
    for threads in [2, 3] {
        assert_eq!(report(&path, threads), one, "{name}, seed {seed}: {threads} threads");
    }
    let report: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert!(
        report["problems"]
            .as_array()
            .unwrap()
            .iter()
            .all(|problem| problem["what"].as_str().unwrap().contains("within literals")),
        "{}",
        report["problems"]
    );
    let queries = report["queries"].as_array().unwrap();
    assert_eq!(
        queries.len(),
        truth.len(),
        "{name}, seed {seed}: {:#?}",
        queries.iter().map(|query| &query["fingerprint"]).collect::<Vec<_>>()
    );
    for (template, truth) in truth {
        let mut times = truth.times_us.clone();
        times.sort_unstable();
        let table = TEMPLATES[*template]
            .split(['{', ' ', '(', '\n'])
            .find(|word| word.starts_with('t') && word.len() > 1 && word.as_bytes()[1].is_ascii_digit());
        let query = queries
            .iter()
            .find(|query| query["calls"] == times.len() && query["total_us"] == times.iter().sum::<u64>())
            .unwrap_or_else(|| panic!("{name}, seed {seed}: none like {}", TEMPLATES[*template]));
        let text = query["fingerprint"].as_str().unwrap();
        assert!(table.is_none_or(|table| text.contains(table)), "{text} has no {table:?}");
        assert_eq!(
            (&query["min_us"], &query["max_us"]),
            (&serde_json::json!(times[0]), &serde_json::json!(times[times.len() - 1]))
        );
        for (field, quantile) in [("p50_us", 0.5), ("p95_us", 0.95), ("p99_us", 0.99)] {
            let (ours, true_one) = (query[field].as_f64().unwrap(), nearest_rank(&times, quantile) as f64);
            assert!((ours - true_one).abs() <= true_one * 0.01, "{name}, seed {seed}: {field} {ours}, not {true_one}");
        }
    }
}

#[test]
fn generated_logs_are_read_exactly_for_every_seed() {
    let folder = tempfile::tempdir().unwrap();
    for seed in [1, 20_261_122] {
        let (events_of_mysql, truth) = events(seed, 4_000, true);
        check("slow.log", slow_log(&events_of_mysql).as_bytes(), &truth, folder.path(), seed);
        check("mysql.pcap", &packets(&events_of_mysql), &truth, folder.path(), seed);
        let (events_of_postgresql, truth) = events(seed, 4_000, false);
        check("postgresql.log", stderr(&events_of_postgresql).as_bytes(), &truth, folder.path(), seed);
        check("postgresql.csv", csv(&events_of_postgresql).as_bytes(), &truth, folder.path(), seed);
        check("postgresql.json", json(&events_of_postgresql).as_bytes(), &truth, folder.path(), seed);
    }
}

#[test]
fn nothing_that_is_in_a_log_stops_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let head = "# Time: 2025-11-03T10:00:00.003103Z\n# User@Host: a[a] @ h []\n# Query_time: 1.0  Lock_time: 0.0\nSET timestamp=1762164000;\n";
    let path = folder.path().join("slow.log");
    // A statement of 18 MB, one with zeros and bytes of no letter, one that is cut off.
    let mut log = format!("{head}select a from t where b = 1;\n{head}insert into t values ").into_bytes();
    while log.len() < 18 << 20 {
        log.extend_from_slice(b"(1,'CaNaRy'),");
    }
    log.extend_from_slice(format!("(1,'x');\n{head}select \0a, '").as_bytes());
    log.extend_from_slice(b"\xff\xfeCaNaRy\0' from t\xff;\n");
    log.extend_from_slice(format!("{head}select a from t where b = 'CaNaRy").as_bytes());
    std::fs::write(&path, &log).unwrap();
    let text = report(&path, 1);
    assert!(!text.contains(CANARY));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["calls"], 4);
    let what: Vec<_> = report["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["what"].as_str().unwrap(), problem["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(what, [("statements too long to be read whole: only their beginnings were", 1)]);
    let texts: Vec<_> =
        report["queries"].as_array().unwrap().iter().map(|query| query["fingerprint"].as_str().unwrap()).collect();
    assert!(texts.contains(&"insert into t values (?+)"), "{texts:?}");
}

#[test]
fn a_file_that_is_not_a_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, "nothing\nof the kind\n").unwrap();
    let why = run(&[path], &Options::default()).unwrap_err().to_string();
    assert!(why.contains("--type") && why.contains("slowlog"), "{why}");
    assert!(run(&[folder.path().to_owned()], &Options::default()).unwrap_err().to_string().contains("folder"));
    assert!(run(&[folder.path().join("absent")], &Options::default()).unwrap_err().to_string().contains("absent"));
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    assert_eq!(run(&[empty], &Options::default()).unwrap().tally.events, 0);
}

#[test]
fn logs_of_two_languages_are_read_each_in_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (slow, text) = (folder.path().join("slow.log"), folder.path().join("postgresql.log"));
    let sql = "select \"a\" from t where b = 1".to_owned();
    std::fs::write(&slow, slow_log(&[(0, sql.clone(), 5)])).unwrap();
    std::fs::write(&text, stderr(&[(0, sql, 7)])).unwrap();
    let outcome = run(&[slow.clone(), text.clone()], &Options::default()).unwrap();
    let report = Report::from_outcome(&outcome, &Order::TotalTime, 0);
    let texts: Vec<_> = report.queries.iter().map(|query| (query.fingerprint.as_str(), query.total_us)).collect();
    assert_eq!(texts, [("select a from t where b = ?", 7), ("select ? from t where b = ?", 5)]);
    let dialect = Some(holdup_logs::digest::Dialect::MySqlAnsiQuotes);
    let outcome = run(&[slow, text], &Options { dialect, ..Options::default() }).unwrap();
    assert_eq!(Report::from_outcome(&outcome, &Order::TotalTime, 0).distinct, 1);
}
