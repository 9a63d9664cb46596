//! Logs of all forms, cut anywhere and changed under the reader.

use std::fs;
use std::io::Write as _;

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PREFIX: &str = "%m [%p] %q%u@%d ";

fn form() -> Form {
    Form { prefix: Prefix::parse(PREFIX), zone_seconds: 0, statement_threshold_ms: None }
}

fn text() -> String {
    let head = "2026-11-22 11:10:19.500 UTC [42]";
    format!(
        "{head} me@shop LOG:  duration: 12.345 ms  statement: /*traceparent='00-{TRACE}-b7ad6b7169203331-01'*/ SELECT *\n\
         \tFROM t\n\t2026-11-22 11:10:19.500 UTC [43] me@shop LOG:  duration: 1 ms  statement: forged\n\
         {head} me@shop LOG:  duration: 3.000 ms  execute <unnamed>: SELECT $1\n\
         {head} me@shop DETAIL:  parameters: $1 = 'canary'\n\tcanary\n\
         {head} LOG:  checkpoint starting: time\n\
         cp: cannot stat 'canary'\n\
         {head} me@shop LOG:  duration: 0.1 ms  bind <unnamed>: SELECT $1\n\
         {head} me@shop LOG:  duration: 250.000 ms  plan:\n\
         \tQuery Text: UPDATE t SET a = 'canary'\n\t WHERE b = 1;\n\tUpdate on t  (cost=0.00..1.00 rows=1 width=1)\n\t  Filter: (c = 'canary'::text)\n"
    )
}

fn rows(kind: u8, cut: usize, bytes: &[u8]) -> Vec<(i64, String, Option<i64>, Option<String>)> {
    let statements = fuzz(PREFIX, kind, cut, bytes).statements;
    statements.into_iter().map(|row| (row.duration_ns, row.digest_text, row.session_id, row.trace_id)).collect()
}

#[test]
fn executions_wherever_it_is_cut() {
    let text = text();
    let expected = [
        (12_345_000, "SELECT * FROM t", Some(TRACE.to_owned())),
        (3_000_000, "SELECT ?", None),
        (250_000_000, "UPDATE t SET a = ? WHERE b = ?", None),
    ];
    for cut in 0..=text.len() {
        let rows = rows(0, cut, text.as_bytes());
        assert_eq!(rows.len(), 3, "{cut}: {rows:?}");
        for (row, expected) in rows.iter().zip(&expected) {
            // What is on the line of a forged head belongs to the statement it stands in.
            assert!(row.1.starts_with(expected.1) && !row.1.contains("canary"), "{row:?}");
            assert_eq!((row.0, row.2, &row.3), (expected.0, Some(42), &expected.2));
        }
    }
}

#[test]
fn csv_and_json() {
    let sql = format!(
        "duration: 12.345 ms  statement: SELECT \"a\", 'x,\ny' /*traceparent='00-{TRACE}-b7ad6b7169203331-01'*/"
    );
    let csv = format!(
        "half of one\",\n2026-11-22 11:10:19.500 UTC,\"me\",\"shop\",42,\"127.0.0.1:5\",6921.2a,1,\"SELECT\",2026-11-22 11:00:00 UTC,3/4,0,LOG,00000,\"{}\",,,,,,,,,\"app\",\"client backend\",,0\n",
        sql.replace('"', "\"\"")
    );
    let object = serde_json::json!({"timestamp": "2026-11-22 11:10:19.500 UTC", "dbname": "shop", "pid": 42, "error_severity": "LOG", "message": sql});
    for (kind, text) in [(1, csv), (2, format!("{{\"half\n{object}\n"))] {
        for cut in 0..=text.len() {
            let rows = rows(kind, cut, text.as_bytes());
            assert_eq!(
                rows,
                [(12_345_000, "SELECT a, ?".to_owned(), Some(42), Some(TRACE.to_owned()))],
                "{kind} {cut}"
            );
        }
    }
}

#[test]
fn plans_of_all_formats_and_not_twice() {
    let plan = |body: &str| Entry {
        severity: "LOG".to_owned(),
        message: format!("duration: 20.5 ms  plan:\n{body}"),
        ..Entry::default()
    };
    for body in [
        "Query Text: SELECT a < 'canary'\nSeq Scan on t  (cost=0.00..1.00 rows=1 width=1)",
        "Query Text: SELECT a < 'canary'\nQuery Parameters: $1 = 'canary'\nSeq Scan on t  (cost=0.00..1.00 rows=1 width=1)",
        "{\n  \"Query Text\": \"SELECT a < 'canary'\",\n  \"Plan\": {}",
        "<explain>\n  <Query-Text>SELECT a &lt; 'canary'</Query-Text>",
        "Query Text: \"SELECT a < 'canary'\"\nPlan:\n  Node Type: \"Seq Scan\"",
    ] {
        let row = execution::from_entry(&plan(body), &form(), "s", 7).unwrap();
        assert_eq!(
            (row.digest_text.as_str(), row.duration_ns, row.observed_at),
            ("SELECT a < ?", 20_500_000, 7),
            "{body}"
        );
        // It is logged as a statement as well.
        let form = Form { statement_threshold_ms: Some(10.0), ..form() };
        assert!(execution::from_entry(&plan(body), &form, "s", 7).is_none());
    }
}

#[test]
fn a_log_that_is_rotated_emptied_and_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("postgresql.log");
    let line = |number: usize| {
        format!("2026-11-22 11:10:19.500 UTC [{number}] LOG:  duration: 1.000 ms  statement: SELECT {number}\n")
    };
    let append = |path: &Path, text: &str| {
        fs::OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    };
    append(&path, &line(1));
    let mut log = Log::new(path.clone());
    log.skip_to_end();
    let mut sample = || {
        let mut batch = Batch::default();
        log.sample(&form(), "s", &mut batch).unwrap();
        batch.statements.iter().filter_map(|row| row.session_id).collect::<Vec<i64>>()
    };
    let none: [i64; 0] = [];
    assert_eq!(sample(), none);
    let two = line(2);
    append(&path, &two[..50]);
    assert_eq!(sample(), none);
    append(&path, &two[50..]);
    append(&path, &line(3));
    assert_eq!(sample(), [2]);
    // Nothing more came: the last one is whole.
    assert_eq!(sample(), [3]);
    append(&path, &line(4));
    fs::rename(&path, dir.path().join("old")).unwrap();
    append(&path, &line(5));
    assert_eq!(sample(), [4]);
    assert_eq!(sample(), [5]);
    fs::write(&path, "").unwrap();
    assert_eq!(sample(), none);
    append(&path, &line(6));
    assert_eq!((sample(), sample()), (vec![], vec![6]));
}
