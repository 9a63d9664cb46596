//! What statements become.

use super::*;

fn text(sql: &str) -> String {
    digest_text(sql, Dialect::MySql)
}

#[test]
fn values_become_marks() {
    for (sql, expected) in [
        ("SELECT a FROM t WHERE id=7 AND b='x';", "SELECT a FROM t WHERE id = ? AND b = ?"),
        ("select  *\n from `t` where x in(1,2, 3)", "select * from t where x in (?+)"),
        ("select * from t where x IN ( 1 )", "select * from t where x IN (?+)"),
        ("insert into t(a,b) values(1,'x'),(2,'y'),(3,NULL)", "insert into t(a, b) values (?+)"),
        ("insert into t(a,b) values(1,'x'),(2,'cut off", "insert into t(a, b) values (?+)"),
        ("insert into t values (1, now(), 2), (3, now(), 4)", "insert into t values (?, now(), ?)"),
        ("select 1 where (a,b) in ((1,2),(3,4))", "select ? where (a, b) in ((?+))"),
        (
            "insert into t values (1) on duplicate key update a = values(a), b = values(b)",
            "insert into t values (?+) on duplicate key update a = values (a), b = values (b)",
        ),
        ("select a-1, -1, a - -1.5e3, b from t limit 5, 10", "select a - ?, ?, a - ?, b from t limit ?+"),
        ("select /* hi 'x' */ f(1, 2), count(*) from d.t -- bye", "select f(?+), count(*) from d.t"),
        ("select 'a' 'b', x is null, y = null, z is not null", "select ?, x is null, y = ?, z is not null"),
        ("set @a := 1, @@session.b = 0x1F", "set @? := ?, @@session.b = ?"),
        ("select /*!40001 SQL_NO_CACHE */ `a b`, `order`.`null`", "select SQL_NO_CACHE `a b`, order.null"),
        (
            "select distinctrow a from `in` where b <> 1 and c.`d`.`1` = 2",
            "select DISTINCT a from `in` where b != ? and c.d.`1` = ?",
        ),
        ("select @@ `extra_port`, @@session . a", "select @@extra_port, @@session.a"),
        ("select foo_2_3 from 2023_orders", "select foo_2_3 from 2023_orders"),
    ] {
        assert_eq!(text(sql), expected);
        assert_eq!(text(expected), expected, "not the same when done twice");
    }
}

#[test]
fn the_digest_is_pinned_and_blind_to_case_and_values() {
    assert_eq!(digest("SELECT 1", Dialect::MySql), digest("select  'x'", Dialect::MySql));
    assert_ne!(digest("SELECT a", Dialect::MySql), digest("SELECT b", Dialect::MySql));
    assert_eq!(digest_of_text("SELECT ?"), digest_of_text("select ?"));
    assert_eq!(digest_of_text(""), "efd01f60ba992926");
}

#[test]
fn no_byte_of_a_literal_survives() {
    for sql in [
        "select 'canary",
        "select \"canary",
        "select 'it''s canary'",
        r"select 'a\'canary'",
        "/* canary */ select 1",
        "select 1 # canary",
        "select 1 -- canary",
        "select /* canary",
        r"select '\\', 'canary'",
        "select x'canary', N'canary', _utf8'canary'",
        "insert into t values ('canary'),('canary",
        "set password for 'u'@'h' = 'canary'",
        "select 1 '' 'canary'",
    ] {
        assert!(!text(sql).contains("canary"), "{sql} -> {}", text(sql));
    }
    assert!(!text("select 918273, 0x918273, -918273.5, 1e918273, .918273").contains("918273"));
}

#[test]
fn a_bulk_insert_takes_linear_time_and_little_room() {
    let sql = format!("insert into t values {}(1,'x')", "(1,now(),'x'),".repeat(100_000));
    assert_eq!(text(&sql), "insert into t values (?, now(), ?)");
}

fn postgresql(sql: &str) -> String {
    digest_text(sql, Dialect::PostgreSql)
}

#[test]
fn values_of_postgresql_become_marks() {
    for (sql, expected) in [
        ("SELECT a FROM t WHERE id=$1 AND b='x';", "SELECT a FROM t WHERE id = ? AND b = ?"),
        ("select * from t where x in ($1 /*, ... */)", "select * from t where x in (?+)"),
        ("select * from t where x in ('a'::uuid, $2::uuid)", "select * from t where x in (?+)"),
        ("select * from t where x = any($1::int[])", "select * from t where x = any (?)"),
        ("select * from t where x = any(ARRAY[1, 2]) and y[1]=2", "select * from t where x = any (?) and y[?] = ?"),
        ("select E'a\\'b', $$c$$, U&'d', B'01', x'1f'", "select ?+"),
        ("select a::text, '1'::numeric(10,2)::text as b, -1::int", "select a::text, ? as b, ?"),
        (
            "select '12:00'::timestamp (3) without time zone at time zone 'UTC', f('1'::double precision, x)",
            "select ? at time zone ?, f(?, x)",
        ),
        (
            "select data ? 'k', data ?| array['a','b'], data ?? $1, $1 ? $2",
            "select data ? ?, data ?| ?, data ? ?, ? ? ?",
        ),
        ("select data->>'k', data#>>'{a,b}', a @> '{}'", "select data ->> ?, data #>> ?, a @> ?"),
        ("select date '2020-01-01' - 5, interval '1' '2'", "select date ? - ?, interval ?"),
        ("insert into t(a) values ($1),($2) returning id", "insert into t(a) values (?+) returning id"),
        (
            "update t set value = value - 1 where \"id\"=%s and \"Id\" = %(id)s",
            "update t set value = value - ? where id = ? and \"Id\" = ?",
        ),
        ("select * from t where a like :name and b=:b_2 limit 10", "select * from t where a like ? and b = ? limit ?"),
        ("select $fn$ body 'x' $fn$ /* a /* b */ c */, @ -5", "select ?, @ ?"),
        ("select mid, integer, database from slaves", "select mid, integer, database from slaves"),
        ("insert into t values ($1, now()), ($2, no", "insert into t values (?, now())"),
    ] {
        assert_eq!(postgresql(sql), expected);
        assert_eq!(postgresql(expected), expected, "not the same when done twice");
    }
    // What a driver of MySQL fills in is a value too.
    assert_eq!(
        text("select a %s, 1 from t where b=%s and c in (%s, %s)"),
        "select a % s, ? from t where b = ? and c in (?+)"
    );
}

#[test]
fn no_byte_of_a_literal_of_postgresql_survives_wherever_the_text_is_cut() {
    for sql in [
        "select 'canary', e'it\\'s canary' 'canary'",
        "select e'a'\n'it\\'canary'",
        "select $$canary$$, $a$ canary $$ canary $a$",
        "select /* canary /* canary */ canary */ 1 -- canary",
        "select U&'canary' uescape '!', b'canary', X'canary'",
        "insert into t values ('canary'),('canary')",
        "create role a password 'canary'",
        "select 'x'::bit varying(3)[] || 'canary', data ? 'canary'",
        "select 'a' -- canary\n 'canary'",
    ] {
        for end in 0..=sql.len() {
            let cut = &sql[..end];
            assert!(!postgresql(cut).contains("canary"), "{cut} -> {}", postgresql(cut));
        }
    }
    assert!(!postgresql("select 918273, 0x918273, -918273.5, 1e918273, .918273, 918_273, 918273abc").contains("91"));
}
