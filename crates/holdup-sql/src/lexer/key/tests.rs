//! That a key never stands for two digests, and seldom for less than one.

use std::collections::HashMap;

use super::*;
use crate::digest_text;

fn hash(sql: &str, dialect: Dialect) -> Option<u64> {
    key(sql.as_bytes(), dialect).map(|key| key.hash)
}

/// Pieces that statements are put together of: whatever changes what something else means, too.
const MYSQL: &[&str] = &[
    "select ",
    "a",
    " b ",
    "1",
    "1.5",
    ".5",
    "1e5",
    "1e",
    "'x'",
    "'it''s'",
    r"'a\'b'",
    "\"y\"",
    "`c`",
    "`d``e`",
    ", ",
    ",",
    "(",
    ")",
    " in (",
    "values (",
    "VALUES(",
    "), (",
    "),(",
    " null",
    "NULL",
    "true",
    "?",
    "?+",
    "@",
    "@a1",
    "@@x",
    "@1",
    "-",
    "- ",
    "--",
    "-- c\n",
    "# c\n",
    "/* c */",
    "/*! d */",
    "x'4D'",
    "n'o'",
    "0x1F",
    "0xZZ",
    "2023_t",
    "t_2",
    ".",
    ".1st",
    ";",
    " ",
    "\n",
    "=",
    ":=",
    "::",
    "->",
    "is ",
    "not ",
    "like ",
    "'open",
    "/* open",
    "\\",
    "\\N",
    "\0",
    "é",
    "$1",
    "in ((",
    "v",
    "values",
    "1 ",
    "2, 3, 4",
    "'a','b','c'",
    "+1",
    "_utf8'x'",
    "...",
    " as ",
    "'a' 'b'",
];
const POSTGRESQL: &[&str] = &[
    "select ",
    "a",
    " b ",
    "1",
    "1.5",
    ".5",
    "1e5",
    "1e",
    "12abc",
    "1_000",
    "'x'",
    "'it''s'",
    r"'a\'",
    "E'x\\'y'",
    "e'z'",
    "e'a'\n'b\\''",
    "\"y\"",
    "\"d\"\"e\"",
    ", ",
    ",",
    "(",
    ")",
    " in (",
    "values (",
    "VALUES(",
    "), (",
    "),(",
    " null",
    "NULL",
    "true",
    "?",
    "?+",
    "@",
    "@1",
    "-",
    "- ",
    "-- c\n",
    "#",
    "/* c /* d */ e */",
    "x'4D'",
    "U&'o'",
    "U&\"o\"",
    "0x1F",
    "t_2",
    "t$1",
    ".",
    ";",
    " ",
    "\n",
    "=",
    "::",
    "::int",
    "::text[]",
    "::numeric(3,2)",
    "'a'::uuid, 'b'::uuid",
    "->>",
    "is ",
    "not ",
    "'open",
    "/* open",
    "$1",
    "$2, $3",
    "$$x'$$",
    "$t$ $$ $t$",
    "$",
    "$t",
    "%s",
    ":name",
    ":1",
    "array[1,2]",
    "[",
    "]",
    "in ((",
    "v",
    "values",
    "2, 3, 4",
    "'a','b','c'",
    "+1",
    "\0",
    "é",
    "date ",
];

#[test]
fn one_key_has_one_digest() {
    let mut state = 11_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for (dialect, pieces) in [
        (Dialect::MySql, MYSQL),
        (Dialect::MySqlAnsiQuotes, MYSQL),
        (Dialect::MySqlNoBackslashEscapes, MYSQL),
        (Dialect::PostgreSql, POSTGRESQL),
    ] {
        let mut seen = HashMap::<u64, (String, String)>::new();
        let mut met = 0;
        for round in 0..60_000 {
            // Few pieces, so that the same key is met often.
            let sql: String =
                (0..1 + random(if round % 2 == 0 { 4 } else { 9 })).map(|_| pieces[random(pieces.len())]).collect();
            let Some(hash) = hash(&sql, dialect) else { continue };
            let text = digest_text(&sql, dialect).to_ascii_lowercase();
            if let Some((other, known)) = seen.get(&hash) {
                met += usize::from(*other != sql);
                assert_eq!(*known, text, "{dialect:?}: one key for {other:?} and {sql:?}");
            } else {
                seen.insert(hash, (sql, text));
            }
        }
        assert!(met > 1_000, "{dialect:?}: only {met} met");
    }
}

#[test]
fn values_make_no_further_keys() {
    for (dialect, one, other) in [
        (
            Dialect::MySql,
            "select a from t1 where b = 1 and c='x'",
            "select a from t1 where b = 0x1F and c='it''s \\' -- /*'",
        ),
        (
            Dialect::MySql,
            "select a from t where b in (1,2, 3)",
            "select a from t where b in (7, -8,NULL ,'x',?, 9.5e3)",
        ),
        (
            Dialect::MySql,
            "insert into t (a, b) values (1, now(), 'x'), (2, now(), 'y')",
            "insert into t (a, b) values (3, now(), 'x') ,(3, (4), 'y)'),\n (5, /* ) */ 'cut",
        ),
        (Dialect::MySql, "select 1 from t where (a,b) in ((1,2),(3,4))", "select 1 from t where (a,b) in ((1,2))"),
        (
            Dialect::MySql,
            "select user0_.a as a_1_0_ from t /* svc=a */",
            "select user0_.a as a_1_0_ from t /* svc=bcd 'x */",
        ),
        (
            Dialect::PostgreSql,
            "select * from t where a = any(array[1,2,3])",
            "select * from t where a = any(array[$1, $2, 'x', 4])",
        ),
        (
            Dialect::PostgreSql,
            "select 1 where a in ('x'::uuid, 'y'::uuid, 'z')",
            "select 1 where a in ('x'::text, 'y', $3::uuid, 'z')",
        ),
        (Dialect::PostgreSql, "select E'it\\'s', a", "select E'x'\n'y\\'', a"),
    ] {
        assert_eq!(hash(one, dialect), hash(other, dialect), "{one} | {other}");
        assert!(hash(one, dialect).is_some());
    }
    assert_eq!(hash("select /*!40001 a */ 1", Dialect::MySql), None);
    assert!(hash("select /*!40001 a */ 1", Dialect::PostgreSql).is_some());
}

#[test]
fn open_literals_are_reported() {
    for (sql, open) in [
        ("select 'a", true),
        ("select 'a\\'", true),
        ("select 'a'", false),
        ("select 'a''", true),
        ("select `a", true),
        ("select /* a", true),
        ("select /* a */", false),
        ("select /*/", true),
        ("select 1 # it's", false),
        ("insert into t values (1),('a", true),
        ("", false),
    ] {
        assert_eq!(key(sql.as_bytes(), Dialect::MySql).map(|key| key.open), Some(open), "{sql}");
    }
}
