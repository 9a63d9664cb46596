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
fn what_reads_may_be_read_elsewhere() {
    for (sql, expected) in [
        ("(select 1) union (select 2)", Some(Access::Read)),
        ("select a from t for update", Some(Access::Write)),
        ("select replace(a, 'b', 'c') from t", Some(Access::Read)),
        ("with x as (select 1) delete from t", Some(Access::Write)),
        ("select a from t lock in share mode", Some(Access::Write)),
        ("set a = 1", None),
    ] {
        assert_eq!(kind(sql).1, expected, "{sql}");
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
        for text in
            [distill(sql), as_select(sql), shorten(sql, Some(0)), strip_comments(sql), constant_select_list(sql)]
        {
            assert!(text.len() <= sql.len() + 200);
        }
        let _ = (tables(sql), aliases(sql), table_references(sql), split(sql), split_subqueries(sql), kind(sql));
    }
}
