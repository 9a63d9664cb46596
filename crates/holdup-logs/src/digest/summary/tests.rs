//! Dumps of both servers in all forms, with a value in a text of which nothing may come out.

use super::*;
use crate::digest::report::{Order, Report};
use crate::digest::run::Outcome;
use crate::digest::select::Select;
use crate::digest::tally::Identity;

fn report(dump: &str) -> Report {
    let counters = detect(dump.as_bytes()).unwrap_or_else(|| panic!("not known: {dump}"));
    let mut tally = Tally::new(counters.dialect(), Identity::Holdup, Select::default());
    let mut reader = Summary::new(counters);
    reader.read(&Block { data: dump.as_bytes().to_vec(), ..Block::default() }, &mut tally);
    reader.finish(&mut tally);
    Report::from_outcome(&Outcome { files: Vec::new(), tally }, &Order::TotalTime, 0)
}

fn check(report: &Report, text: &str) {
    let [query] = report.queries.as_slice() else { panic!("{:?}", report.queries) };
    assert_eq!(
        (query.fingerprint.to_lowercase().as_str(), query.calls, query.total_us),
        (text, 4, 10_000),
        "{query:?}"
    );
    assert_eq!((query.min_us, query.max_us), (Some(1_000), Some(4_000)));
    assert_eq!((query.p50_us, query.p95_us, query.p99_us), (None, None, None));
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(!report.text().contains("CaNaRy") && report.text().contains(" - "), "{}", report.text());
}

#[test]
fn performance_schema_is_read() {
    let dump = "SCHEMA_NAME\tDIGEST\tDIGEST_TEXT\tCOUNT_STAR\tSUM_TIMER_WAIT\tMIN_TIMER_WAIT\tAVG_TIMER_WAIT\tMAX_TIMER_WAIT\tSUM_LOCK_TIME\tSUM_ERRORS\tSUM_ROWS_SENT\tSUM_ROWS_EXAMINED\tFIRST_SEEN\tLAST_SEEN\tQUERY_SAMPLE_TEXT\n\
        shop\tabc\tSELECT `a` FROM `t` WHERE `b` = ? AND `c` = ?\t4\t10000000000\t1000000000\t2500000000\t4000000000\t2000000\t1\t8\t80\t2025-11-03 10:00:00.000000\t2025-11-03 11:00:00.000000\tselect a from t where b = 'CaNaRy'\\n and c = 1\n";
    let whole = report(dump);
    check(&whole, "select a from t where b = ? and c = ?");
    let query = &whole.queries[0];
    assert_eq!(query.first_seen.as_deref(), Some("2025-11-03 10:00:00"));
    assert_eq!((query.attributes["Rows_examined"].sum, query.attributes["Rows_examined"].max), (80, None));
    assert_eq!((query.stddev_us, query.rows_examined_per_sent), (None, Some(10.0)));
    let json = r#"[{"SCHEMA_NAME": "shop", "DIGEST_TEXT": "SELECT `a` FROM `t` WHERE `b` = ?", "COUNT_STAR": 4, "SUM_TIMER_WAIT": 10000000000, "MIN_TIMER_WAIT": 1000000000, "MAX_TIMER_WAIT": 4000000000, "DIGEST": null}]"#;
    check(&report(json), "select a from t where b = ?");
}

#[test]
fn pg_stat_statements_is_read() {
    let text = "select a from t where b = ?";
    let csv = "userid,dbid,queryid,query,calls,total_exec_time,min_exec_time,max_exec_time,mean_exec_time,stddev_exec_time,rows\n\
        10,5,-77,\"select a from t\n where b = $1\",4,10.0,1.0,4.0,2.5,1.118033988749895,4\n";
    let one = report(csv);
    check(&one, text);
    assert!((one.queries[0].stddev_us.unwrap() - 1_118.034).abs() < 0.01, "{:?}", one.queries[0].stddev_us);
    let aligned = " userid |       query        | calls | total_time | min_time | max_time \n\
        --------+--------------------+-------+------------+----------+----------\n     10 | select a from t   +|     4 |         10 |        1 |        4\n        |  where b = 'CaNaRy'|       |            |          |         \n(1 row)\n\n";
    check(&report(aligned), text);
    let bars = "userid|query|calls|total_exec_time|min_exec_time|max_exec_time\n10|select a from t\n where b = 'CaNaRy'|4|10|1|4\n(1 row)\n";
    check(&report(bars), text);
    let lines = "{\"query\": \"select a from t where b = $1\", \"calls\": 4, \"total_exec_time\": 10.0, \"min_exec_time\": 1.0, \"max_exec_time\": 4.0}\n";
    check(&report(lines), text);
}

#[test]
fn invalid_rows_are_counted() {
    let dump = "query,calls,total_time\n\"select 1\",x,1\n\"select 2\",1,0.5\n\"open,1";
    let report = report(dump);
    assert_eq!((report.calls, report.problems[0].count), (1, 2));
}
