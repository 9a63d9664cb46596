//! Records as servers write them, and as others would like them to be read.

use super::*;
use crate::digest::attribute::{QUERY_TIME, ROWS_EXAMINED};
use crate::digest::select::Select;
use crate::digest::tally::Identity;

fn read(log: &str) -> Tally {
    let mut tally = Tally::new(holdup_sql::Dialect::MySql, Identity::Holdup, Select::default());
    let block = Block { data: log.as_bytes().to_vec(), ..Block::default() };
    SlowLog::default().read(&block, &mut tally);
    tally
}

fn texts(tally: &Tally) -> Vec<(&str, u64)> {
    tally.shapes.iter().map(|shape| (shape.text.as_str(), shape.calls)).collect()
}

#[test]
fn records_of_all_makers_are_read() {
    let tally = read(
        "/usr/sbin/mysqld, Version: 8.0.35 (x). started with:\nTcp port: 3306  Unix socket: /run/x.sock\nTime  Id Command    Argument\n\
         # Time: 2025-11-03T10:00:00.003103Z\n# User@Host: api[api] @ web10 [10.0.1.20]  Id: 30351\n# Schema: shop  Last_errno: 1062  Killed: 0\n\
         # Query_time: 0.000096  Lock_time: 0.000027  Rows_sent: 1  Rows_examined: 1\n# Full_scan: No  Filesort: Yes\nuse shop;\n\
         SET timestamp=1762164000;\nselect a from t where b=1;\n\
         # User@Host: [SQL_SLAVE] @  []\n# Query_time: 2  Lock_time: 0  Rows_sent: 0  Rows_examined: 9\nSET timestamp=1762164001;\n\
         # administrator command: Quit;\n\
         # Time: 251103  9:42:44\n# User@Host: b[b] @ localhost []\n# Thread_id: 5  Schema: crm  QC_hit: No\n\
         # Query_time: 0.5  Lock_time: 0.1  Rows_sent: 3  Rows_examined: 3\nSELECT a\n  FROM t WHERE b='x;\n# y';\n",
    );
    assert_eq!(texts(&tally), [("select a from t where b = ?", 2), ("administrator command: Quit", 1)]);
    let shape = &tally.shapes[0];
    assert_eq!(shape.measure(QUERY_TIME).map(|time| (time.sum, time.min)), Some((500_096, 96)));
    assert_eq!(shape.measure(ROWS_EXAMINED).map(|rows| rows.sum), Some(4));
    assert_eq!(shape.measure(ERRORS).map(|errors| (errors.sum, errors.count)), Some((1, 1)));
    assert_eq!(shape.seen_us, Some((1_762_162_964_000_000, 1_762_164_000_000_000)));
    assert_eq!(shape.who[2].all().count(), 2);
    assert_eq!(tally.problems.all().count(), 0);
    let slowest = shape.slowest.as_ref().unwrap();
    assert_eq!(
        (slowest.text.as_str(), slowest.who[0].as_str(), slowest.who[1].as_str()),
        ("SELECT a\n  FROM t WHERE b=?", "b", "localhost")
    );
    assert_eq!(
        texts(&read("# Time: 251103  9:42:44\n# User@Host: b[b] @ localhost []\n# Query_time: 1\nuse `canary`;\n"))
            .len(),
        1
    );
}

#[test]
fn a_head_within_a_literal_is_text() {
    let head = "# Time: 2025-11-03T10:00:00.003103Z\n# User@Host: a[a] @ h [1.2.3.4]\n# Query_time: 1.0  Lock_time: 0.0\nSET timestamp=1762164000;\n";
    let hostile =
        format!("{head}insert into t values ('x;\n{head}select canary from canary;\n', 2);\n{head}select 1;\n");
    let tally = read(&hostile);
    assert_eq!(texts(&tally), [("insert into t values (?", 1), ("select ?", 1)]);
    assert_eq!(
        tally.problems.all().map(|(problem, count, _)| (problem, count)).collect::<Vec<_>>(),
        [(Problem::HeadInLiteral, 1)]
    );
    // A line alone is no head.
    let line =
        format!("{head}insert into t values ('x;\n# Time: 2025-11-03T10:00:00.003103Z\n', 2);\n{head}select 1;\n");
    assert_eq!(texts(&read(&line)), [("insert into t values (?+)", 1), ("select ?", 1)]);
    // Two odd quotes, as servers log them: what is between is lost and said to be, and nothing of it is read as code.
    let odd =
        format!("{head}select 'x;\n{head}select a from t where b = 'canary';\n{head}select y';\n{head}select 1;\n");
    let tally = read(&odd);
    assert_eq!(texts(&tally), [("select ?", 2)]);
    assert_eq!(tally.problems.all().map(|(_, count, _)| count).collect::<Vec<_>>(), [2]);
    // One that was cut off takes nothing with it.
    let cut = format!("{head}insert into t values ('x\n{head}select a from t where b='x';\n{head}select c from d;\n");
    assert_eq!(
        texts(&read(&cut)),
        [("insert into t values (?", 1), ("select a from t where b = ?", 1), ("select c from d", 1)]
    );
}

#[test]
fn what_cannot_be_read_is_counted() {
    let head = "# Time: 2025-11-03T10:00:00.003103Z\n# User@Host: a[a] @ h []\n";
    let tally =
        read(&format!("of a record;\n{head}# Query_time: slow\nselect 1;\n{head}{head}# Query_time: 1\nselect 2;\n"));
    let found: Vec<_> = tally.problems.all().map(|(problem, count, _)| (problem, count)).collect();
    assert_eq!(found, [(Problem::NoBeginning, 1), (Problem::NoStatement, 1), (Problem::BadNumber, 1)]);
    assert_eq!(texts(&tally), [("select ?", 2)]);
}

#[test]
fn blocks_are_cut_where_records_begin() {
    let head = "# Time: 2025-11-03T10:00:00.003103Z\n# User@Host: a[a] @ h [1.2.3.4]\n# Query_time: 1.0  Lock_time: 0.0\nuse shop;\nSET timestamp=1762164000;\n";
    let two = format!("{head}select 1;\n{head}select 'x;\n{head}';\n");
    let at = last_boundary(two.as_bytes(), Dialect::MySql).unwrap();
    assert_eq!(at, head.len() + "select 1;\n".len());
    assert_eq!(last_boundary(&two.as_bytes()[..at + 7], Dialect::MySql), None);
    let after = context(two.as_bytes(), &Context::default());
    assert_eq!((after.at_us, after.database), (Some(1_762_164_000_003_103), b"shop".to_vec()));
}
