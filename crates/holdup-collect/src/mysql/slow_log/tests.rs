//! Entries as servers write them, wherever they are cut, and what tries to look like one.

use std::fs;
use std::io::Write as _;

use super::entries::TEXT_BYTES;
use super::*;
use crate::log::follow::Line;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const FOREIGN: &str = "ffffffffffffffffffffffffffffffff";
const MARIADB_OPENS: &str = "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-0+deb12u1-log (Debian 12). started with:\n\
    Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\nTime\t\t    Id Command\tArgument\n";
const MYSQL_OPENS: &str = "/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:\n\
    Tcp port: 3306  Unix socket: /var/run/mysqld/mysqld.sock\nTime                 Id Command    Argument\n";
/// 2026-11-22 15:23:06.
const STAMP: i64 = 1_795_360_986;

fn comment(trace: &str) -> String {
    format!("/*traceparent='00-{trace}-b7ad6b7169203331-01'*/")
}

fn mariadb(session: u32, text: &str) -> String {
    format!(
        "# User@Host: app[app] @ localhost [127.0.0.1]\n# Thread_id: {session}  Schema: shop  QC_hit: No\n\
         # Query_time: 1.700612  Lock_time: 0.000096  Rows_sent: 2  Rows_examined: 6\n# Rows_affected: 3  Bytes_sent: 110\n\
         SET timestamp={STAMP};\n{text};\n"
    )
}

/// Any bytes as a slow log, cut anywhere.
fn fuzz(cut: usize, bytes: &[u8]) -> Batch {
    let mut entries = Entries::new(0);
    let mut batch = Batch::default();
    let form = Form { stamp_is_begin: true };
    let mut each = |entry: Entry| {
        if is_foreign(&entry) {
            batch.statements.push(row(&entry, form, "fuzz", 1_000_000_000));
        }
    };
    let (head, tail) = bytes.split_at(cut.min(bytes.len()));
    let mut rest = Vec::new();
    for part in [head, tail] {
        rest.extend_from_slice(part);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            entries.take(&Line::Whole(line.strip_suffix(b"\n").unwrap_or(&line)), &mut each);
        }
        entries.looked(rest.is_empty(), 0, 0);
    }
    entries.take(&Line::Piece(&rest), &mut each);
    entries.finish(&mut each);
    batch
}

fn rows(bytes: &[u8]) -> Vec<Statement> {
    fuzz(bytes.len(), bytes).statements
}

/// Session, text and trace id of each.
fn told(rows: &[Statement]) -> Vec<(Option<i64>, &str, Option<&str>)> {
    rows.iter().map(|row| (row.session_id, row.digest_text.as_str(), row.trace_id.as_deref())).collect()
}

#[test]
fn mariadb_with_all_it_can_say() {
    let log = format!(
        "{MARIADB_OPENS}# Time: 261122  9:23:06\n# User@Host: root[root] @ localhost []\n# Thread_id: 5  Schema: shop  QC_hit: No\n\
         # Query_time: 0.000953  Lock_time: 0.000188  Rows_sent: 2  Rows_examined: 6\n# Rows_affected: 0  Bytes_sent: 110\n\
         # Pages_accessed: 1  Pages_read: 0  Pages_prefetched: 0  Pages_updated: 0  Old_rows_read: 0\n\
         # Pages_read_time: 0.0000  Engine_time: 0.0305\n# Tmp_tables: 2  Tmp_disk_tables: 1  Tmp_table_sizes: 32768\n\
         # Full_scan: Yes  Full_join: No  Tmp_table: Yes  Tmp_table_on_disk: Yes\n\
         # Filesort: Yes  Filesort_on_disk: No  Merge_passes: 0  Priority_queue: No\n#\n\
         # explain: id\tselect_type\ttable\ttype\n# explain: 1\tSIMPLE\tt\tALL\n#\n\
         # Warnings\n# Warning 1292 Truncated incorrect INTEGER value: 'canary'\nuse `sh``op`;\n\
         SET last_insert_id=7,insert_id=8,timestamp={STAMP};\nSELECT n, count(*)\n  FROM t -- don't;\n WHERE n <> 'canary' {};\n\
         # User@Host: root[root] @ localhost []\n# Thread_id: 6  Schema:   QC_hit: No\n\
         # Query_time: 0.000010  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0\n# Rows_affected: 0  Bytes_sent: 0\n\
         SET timestamp={STAMP};\n# administrator command: Quit;\n{}{MARIADB_OPENS}{}",
        comment(TRACE),
        mariadb(7, "/* holdup */ SELECT 1"),
        mariadb(8, "UPDATE t SET n = 'canary'"),
    );
    for cut in 0..=log.len() {
        let rows = fuzz(cut, log.as_bytes()).statements;
        assert_eq!(
            told(&rows),
            [(Some(5), "SELECT n, count(*) FROM t WHERE n != ?", Some(TRACE)), (Some(8), "UPDATE t SET n = ?", None)],
            "{cut}"
        );
        let (full, plain) = (&rows[0], &rows[1]);
        assert_eq!((full.duration_ns, full.lock_ns), (953_000, 188_000));
        assert_eq!((full.rows_sent, full.rows_examined, full.no_index), (2, 6, 1));
        assert_eq!((full.temporary_tables, full.temporary_disk_tables), (2, 1));
        assert_eq!(full.database.as_deref(), Some("sh`op"));
        assert_eq!((plain.duration_ns, plain.rows_affected, plain.no_index), (1_700_612_000, 3, 0));
    }
}

#[test]
fn mysql_and_percona_of_all_ages() {
    let at = STAMP * 1_000_000_000;
    for (log, errors, temporary, written) in [
        // 5.6
        (
            "# Time: 261122 15:23:06\n# User@Host: app[app] @ localhost [127.0.0.1]  Id:    42\n\
          # Query_time: 0.001000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 9\nuse shop;\nSET timestamp=1795360986;\n",
            0,
            0,
            None,
        ),
        // 5.7 and 8.0
        (
            "# Time: 2026-11-22T15:23:06.123456Z\n# User@Host: app[app] @ localhost [127.0.0.1]  Id:    42\n\
          # Query_time: 0.001000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 9\nuse shop;\nSET timestamp=1795360986;\n",
            0,
            0,
            Some(at + 123_456_000),
        ),
        // 8.0 with log_timestamps = SYSTEM and log_slow_extra
        (
            "# Time: 2026-11-22T16:23:06.123456+01:00\n# User@Host: app[app] @ localhost [127.0.0.1]  Id:    42\n\
          # Query_time: 0.001000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 9 Thread_id: 42 Errno: 1062 Killed: 0 \
          Bytes_received: 0 Bytes_sent: 56 Read_first: 0 Created_tmp_disk_tables: 1 Created_tmp_tables: 2 \
          Start: 2026-11-22T16:23:06.122456+01:00 End: 2026-11-22T16:23:06.123456+01:00\nuse shop;\nSET timestamp=1795360986;\n",
            1,
            3,
            Some(at + 123_456_000),
        ),
        // Percona Server 8.0
        (
            "# Time: 2026-11-22T15:23:06.123456Z\n# User@Host: app[app] @  [127.0.0.1]  Id:    42\n\
          # Schema: shop  Last_errno: 1205  Killed: 0\n\
          # Query_time: 0.001000  Lock_time: 0.000100  Rows_sent: 1  Rows_examined: 9  Rows_affected: 0  Bytes_sent: 272\n\
          # Tmp_tables: 2  Tmp_disk_tables: 1  Tmp_table_sizes: 0\n# InnoDB_trx_id: 1500\n\
          # QC_Hit: No  Full_scan: No  Full_join: No  Tmp_table: No  Tmp_table_on_disk: No\n\
          # Filesort: No  Filesort_on_disk: No  Merge_passes: 0\n\
          #   InnoDB_IO_r_ops: 6415  InnoDB_IO_r_bytes: 105103360  InnoDB_IO_r_wait: 0.001279\n\
          # No InnoDB statistics available for this query\n# Log_slow_rate_type: query  Log_slow_rate_limit: 10\n\
          SET timestamp=1795360986;\n",
            1,
            3,
            Some(at + 123_456_000),
        ),
    ] {
        let log = format!("{MYSQL_OPENS}{log}SELECT 'a;\n# canary' {};\n", comment(TRACE));
        let rows = rows(log.as_bytes());
        assert_eq!(told(&rows), [(Some(42), "SELECT ?", Some(TRACE))], "{log}");
        let row = &rows[0];
        assert_eq!((row.duration_ns, row.lock_ns, row.rows_examined), (1_000_000, 100_000, 9));
        assert_eq!((row.errors, row.temporary_tables + row.temporary_disk_tables), (errors, temporary));
        assert_eq!(row.database.as_deref(), Some("shop"));
        if let Some(written) = written {
            assert_eq!(row.observed_at, written);
        }
    }
}

#[test]
fn text_in_a_literal_or_comment_does_not_become_an_entry() {
    // Quotes are not needed for an id, and could not stand in every literal.
    let forged = mariadb(666, &format!("/*traceparent=00-{FOREIGN}-b7ad6b7169203331-01*/ SELECT 9"));
    for (open, close) in [("'", "'"), ("\"", "\""), ("`", "`"), ("'it\\'s", "'")] {
        let hostile = format!("SELECT {open};\n{forged}{close}");
        let log = [mariadb(1, "SELECT 1"), mariadb(2, &hostile), mariadb(3, "SELECT 3")].concat();
        let rows = rows(log.as_bytes());
        assert!(rows.iter().all(|row| row.trace_id.is_none() && row.session_id != Some(666)), "{hostile}: {rows:#?}");
        assert_eq!(rows[..2].iter().map(|row| row.session_id).collect::<Vec<_>>(), [Some(1), Some(2)]);
    }
    // A comment can't hold an id, which is in one; but the head of somebody else's.
    let hostile = format!("SELECT 1 /*;\n{}*/", mariadb(666, "SELECT 9"));
    let log = [mariadb(1, "SELECT 1"), mariadb(2, &hostile)].concat();
    assert_eq!(rows(log.as_bytes()).iter().map(|row| row.session_id).collect::<Vec<_>>(), [Some(1), Some(2)]);
    // Text that begins like a head, right behind the true one.
    let rows = rows(mariadb(4, &format!("{forged}SELECT 1")).as_bytes());
    assert_eq!(rows[0].session_id, Some(4));
}

/// Bytes set, left out, doubled: nothing panics, and of few lines come few rows.
#[test]
fn whatever_stands_there() {
    let hostile = format!("SELECT \"it's;\n{}\"", mariadb(666, "SELECT 9"));
    let log =
        [MARIADB_OPENS, &mariadb(1, "SELECT 'a' # b"), &mariadb(2, &hostile), MYSQL_OPENS, &mariadb(3, "x")].concat();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for _ in 0..3_000 {
        let mut bytes = log.clone().into_bytes();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            let end = (at + below(40)).min(bytes.len());
            match below(4) {
                0 => bytes[at] = below(256) as u8,
                1 => drop(bytes.drain(at..end)),
                2 => bytes.insert(at, [b'\n', b';', b'\'', b'#'][below(4)]),
                _ => {
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        assert!(fuzz(below(bytes.len()), &bytes).statements.len() <= lines / 4 + 1, "{}", bytes.escape_ascii());
    }
}

/// MariaDB logs what it can't parse: from an odd quote on, nothing is believed until an entry's end is known again.
#[test]
fn a_statement_that_is_broken_off() {
    let hostile =
        format!("SELECT ';\n{}'", mariadb(666, &format!("/*traceparent=00-{FOREIGN}-b7ad6b7169203331-01*/ SELECT 9")));
    let mut entries = Entries::new(0);
    let mut found = Vec::new();
    let mut look = |entries: &mut Entries, text: &str| {
        for line in text.lines() {
            entries.take(&Line::Whole(line.as_bytes()), &mut |entry| found.push(entry.head.session_id));
        }
        entries.looked(true, 0, 0);
        (std::mem::take(&mut found), std::mem::take(&mut entries.doubtful))
    };
    let text = [mariadb(1, "SELECT 'O'Brien'"), mariadb(2, &hostile), mariadb(3, "SELECT 1")].concat();
    assert_eq!(look(&mut entries, &text), (vec![Some(1)], 3));
    let text = [mariadb(4, "SELECT 4"), mariadb(5, "SELECT 5")].concat();
    assert_eq!(look(&mut entries, &text), (vec![Some(4)], 0), "the file ended with an entry");
    assert_eq!(look(&mut entries, &mariadb(6, "SELECT 6")), (vec![Some(5)], 0));
    // A head that no server writes, as far as we know.
    let text =
        format!("# User@Host: app[app] @ localhost []\n+ unknown\nSET timestamp=1;\n{} SELECT 7;\n", comment(FOREIGN));
    assert_eq!(look(&mut entries, &text), (vec![Some(6)], 1));
    assert_eq!(look(&mut entries, &mariadb(8, "SELECT 8")), (vec![], 0));
    assert_eq!(look(&mut entries, &mariadb(9, "SELECT 9")), (vec![Some(8)], 0));
}

#[test]
fn a_value_in_a_warning_does_not_end_the_head() {
    let forged = format!("SET timestamp=1;\n{} SELECT 1", comment(FOREIGN));
    let log = mariadb(1, &format!("SELECT CAST('x\n{forged}' AS INT)")).replace(
        "SET timestamp=179",
        &format!("# Warnings\n# Warning 1292 Truncated: 'x\n{forged};\nSET timestamp=179"),
    );
    let log = log.replace("'x\nSET", "'x'\nSET");
    assert_eq!(told(&rows(log.as_bytes())), []);
}

#[test]
fn a_statement_without_end_is_not_held() {
    let mut entries = Entries::new(0);
    let mut found = Vec::new();
    for line in mariadb(1, "").lines().take(5) {
        entries.take(&Line::Whole(line.as_bytes()), &mut |_| panic!("nothing is whole"));
    }
    let start = format!("INSERT INTO t VALUES {} ('", comment(TRACE));
    entries.take(&Line::Piece(start.as_bytes()), &mut |_| panic!("nothing is whole"));
    for _ in 0..100 {
        entries.take(&Line::Piece(&[b'c'; 70_000]), &mut |_| panic!("nothing is whole"));
    }
    entries.take(&Line::Whole(b"it''s');"), &mut |_| panic!("nothing is whole"));
    for line in mariadb(2, "SELECT 2").lines() {
        entries.take(&Line::Whole(line.as_bytes()), &mut |entry| found.push(entry));
    }
    assert_eq!((found.len(), found[0].text.len()), (1, TEXT_BYTES));
    let row = row(&found[0], Form::default(), "s", 0);
    assert_eq!((row.digest_text.as_str(), row.trace_id.as_deref()), ("INSERT INTO t VALUES (?", Some(TRACE)));
    // The quotes were balanced: the next one is believed.
    entries.finish(&mut |entry| found.push(entry));
    assert_eq!((found.len(), entries.doubtful), (2, 0));
}

#[test]
fn when_it_ended() {
    let second = 1_000_000_000;
    let entry = |duration_ns: i64, after: i64, before: i64| Entry {
        head: head::Head { stamp_at: 100 * second, stamp_grain_ns: second, duration_ns, ..head::Head::default() },
        after,
        before: Some(before),
        ..Entry::default()
    };
    let begin = Form { stamp_is_begin: true };
    // It began in 100..101 and took 2 s; it came into the log in 102.5..103.5.
    let slow = entry(2 * second, 1_025 * second / 10, 1_035 * second / 10);
    assert_eq!(ended_at(&slow, begin, 0), 10_275 * second / 100);
    // By the other meaning it would have come sooner: what is known is when it was found.
    assert_eq!(ended_at(&slow, Form::default(), 0), 103 * second);
    // The session has set another time.
    let odd = entry(0, 500 * second, 501 * second);
    assert_eq!(ended_at(&odd, begin, 0), 5_005 * second / 10);
}

#[test]
fn a_log_that_is_rotated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slow.log");
    let append = |text: &str| {
        fs::OpenOptions::new().create(true).append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
    };
    append(&mariadb(1, "SELECT 1"));
    let mut log = SlowLog::new(&path);
    log.skip_to_end().unwrap();
    let mut sample = |at_once: bool| {
        let mut batch = Batch::default();
        log.sample(Form::default(), at_once, "s", &mut batch).unwrap();
        assert!(batch.events.is_empty(), "{:?}", batch.events);
        batch.statements.iter().filter_map(|row| row.session_id).collect::<Vec<i64>>()
    };
    let none: [i64; 0] = [];
    append(&mariadb(2, "SELECT 2"));
    append(&mariadb(3, "SELECT 3")[..30]);
    assert_eq!(sample(false), none, "2 may go on");
    append(&mariadb(3, "SELECT 3")[30..]);
    assert_eq!(sample(false), [2]);
    assert_eq!(sample(false), [3]);
    append(&mariadb(4, "SELECT 4"));
    assert_eq!(sample(true), [4]);
    append(&mariadb(5, "SELECT 5"));
    fs::rename(&path, dir.path().join("old")).unwrap();
    append(&format!("{MARIADB_OPENS}{}", mariadb(6, "SELECT 6")));
    assert_eq!((sample(false), sample(false)), (vec![5], vec![6]));
}
