//! Rewrites of statements of our own; the corpus has those of others.

use super::*;

#[test]
fn statements_in_a_few_words() {
    for (sql, expected) in [
        ("select a from t_1 join `t 2` using (b)", "SELECT t_? t ?"),
        ("INSERT INTO a.b SELECT c FROM d", "INSERT SELECT a.b d"),
        ("update t set replace = replace(a, 'select', 1)", "UPDATE REPLACE t"),
        ("show full columns from t", "SHOW COLUMNS"),
        ("drop table if exists a, b", "DROP TABLE a b"),
        ("lock tables a as x read, b write", "LOCK a b"),
        ("explain nothing", ""),
        ("administrator command: Quit", "ADMIN QUIT"),
    ] {
        assert_eq!(distill(sql), expected, "{sql}");
    }
}

#[test]
fn no_text_breaks_a_rewrite() {
    for sql in [
        "",
        "insert into",
        "insert into t (",
        "update",
        "update t set",
        "delete",
        "((((",
        "in(",
        "select 'ä",
        "ä in (",
        "/*",
        "replace into t set",
    ] {
        assert!(distill(sql).len() <= sql.len() + 200);
        let _ = tables(sql);
    }
}
