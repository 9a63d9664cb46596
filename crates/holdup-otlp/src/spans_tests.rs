//! Spans as packages of several languages and ages tell them, and the rows they become.

use std::borrow::Cow;

use holdup_sql::Dialect;

use super::*;
use crate::attributes::Value;

fn told<'a>(kind: u64, name: &'a str, attributes: &[(&str, &'a str)]) -> ParsedSpan<'a> {
    let mut told = ParsedSpan {
        trace_id: Some([0xab; 16]),
        span_id: Some([1, 2, 3, 4, 5, 6, 7, 0xff]),
        name: Cow::Borrowed(name),
        kind,
        start_ns: 1_700_000_000_000_000_000,
        end_ns: 1_700_000_000_020_000_000,
        status: 2,
        ..ParsedSpan::default()
    };
    for (key, value) in attributes {
        told.attributes.put(key, Value::Text(Cow::Borrowed(value)));
    }
    told
}

/// Kind, name, attributes; resource, system, peer.
type Case<'a> = (u64, &'a str, &'a [(&'a str, &'a str)], &'a str, Option<&'a str>, Option<&'a str>);

#[test]
fn spans_are_sorted_by_resource() {
    let cases: &[Case<'_>] = &[
        (2, "GET /vacancy", &[("http.request.method", "GET"), ("server.address", "me")], "request", None, None),
        (2, "shop.Cart/Get", &[("rpc.system", "grpc")], "request", None, None),
        (
            3,
            "SELECT shop",
            &[
                ("db.system.name", "mariadb"),
                ("db.query.text", "SELECT 1"),
                ("server.address", "db1"),
                ("server.port", "3306"),
            ],
            "database",
            Some("mariadb"),
            Some("db1:3306"),
        ),
        (
            3,
            "SELECT",
            &[
                ("db.system", "mysql"),
                ("db.statement", "SELECT 1"),
                ("net.peer.name", "db1"),
                ("net.peer.port", "3306"),
            ],
            "database",
            Some("mysql"),
            Some("db1:3306"),
        ),
        (3, "SELECT", &[("db.statement", "SELECT 1")], "database", None, None),
        // Some packages forget the kind.
        (
            0,
            "query",
            &[("db.system", "postgresql"), ("server.address", "::1"), ("server.port", "5432")],
            "database",
            Some("postgresql"),
            Some("[::1]:5432"),
        ),
        (3, "GET", &[("db.system", "redis"), ("db.statement", "GET user:1")], "cache", Some("redis"), None),
        (3, "get", &[("db.system.name", "memcached")], "cache", Some("memcached"), None),
        (
            3,
            "GET",
            &[("http.method", "GET"), ("net.peer.name", "prices"), ("net.peer.port", "80")],
            "http",
            Some("prices"),
            Some("prices:80"),
        ),
        (
            3,
            "GET",
            &[("http.request.method", "GET"), ("server.address", "prices")],
            "http",
            Some("prices"),
            Some("prices"),
        ),
        (
            3,
            "prices.Prices/Get",
            &[("rpc.system", "grpc"), ("server.address", "prices")],
            "http",
            Some("prices"),
            Some("prices"),
        ),
        (
            4,
            "orders publish",
            &[("messaging.system", "kafka"), ("server.address", "k")],
            "queue",
            Some("kafka"),
            Some("k"),
        ),
        (5, "orders process", &[], "request", None, None),
        (5, "orders receive", &[("messaging.operation.type", "receive")], "queue", None, None),
        (3, "orders receive", &[("messaging.system", "rabbitmq")], "queue", Some("rabbitmq"), None),
        (1, "connection_pool.checkout", &[("db.client.connection.pool.name", "main")], "pool", None, None),
        (3, "connect", &[("db.system", "mysql"), ("net.peer.name", "db1")], "pool", Some("mysql"), Some("db1")),
        (3, "pg-pool.connect", &[("db.system", "postgresql")], "pool", Some("postgresql"), None),
        (1, "HikariDataSource.getConnection", &[], "pool", None, None),
        (3, "sql.connector.connect", &[("db.system", "mysql")], "pool", Some("mysql"), None),
        // A statement is time in the database, whatever its connection's pool is called.
        (
            3,
            "SELECT",
            &[("db.system", "mysql"), ("db.statement", "SELECT 1"), ("pool.name", "main")],
            "database",
            Some("mysql"),
            None,
        ),
        (
            1,
            "ask prices",
            &[("http.url", "http://prices/1"), ("net.peer.name", "prices")],
            "http",
            Some("prices"),
            Some("prices"),
        ),
        (0, "GET", &[("http.method", "GET"), ("peer.service", "prices")], "http", Some("prices"), Some("prices")),
        // A server's own layers tell of the request that is served.
        (
            1,
            "middleware",
            &[("http.method", "GET"), ("http.route", "/a"), ("http.url", "http://me/a")],
            "other",
            None,
            None,
        ),
        (1, "handler", &[("http.request.method", "GET")], "other", None, None),
        (1, "swimming pool", &[], "other", None, None),
        (1, "render", &[], "other", None, None),
        (9, "odd", &[], "other", None, None),
    ];
    for (kind, name, attributes, resource, system, peer) in cases {
        let row = row("otlp", "shop", &told(*kind, name, attributes)).unwrap();
        assert_eq!(
            (row.resource.as_str(), row.system.as_deref(), row.peer.as_deref()),
            (*resource, *system, *peer),
            "{name} {attributes:?}"
        );
    }
}

#[test]
fn a_message_that_begins_something_is_a_request() {
    for (parent_id, flags, resource) in [
        (None, 0, "request"),
        (Some([9; 8]), 0x301, "request"),
        // Its parent is in the same process, or unknown.
        (Some([9; 8]), 0x101, "queue"),
        (Some([9; 8]), 0, "queue"),
    ] {
        let told = ParsedSpan { parent_id, flags, ..told(5, "orders process", &[("messaging.system", "kafka")]) };
        assert_eq!(row("otlp", "shop", &told).unwrap().resource, resource, "{parent_id:?} {flags:x}");
    }
}

#[test]
fn a_row_has_what_was_told() {
    let mut told =
        told(3, "SELECT shop", &[("db.system", "mariadb"), ("db.statement", "SELECT a FROM t WHERE id = 42")]);
    told.parent_id = Some([9; 8]);
    let row = row("otlp", "shop", &told).unwrap();
    assert_eq!((row.started_at, row.duration_ns), (1_700_000_000_000_000_000, 20_000_000));
    assert_eq!(row.trace_id, "abababababababababababababababab");
    assert_eq!(row.span_id.as_deref(), Some("01020304050607ff"));
    assert_eq!(row.parent_id.as_deref(), Some("0909090909090909"));
    assert_eq!(
        (row.source.as_str(), row.service.as_str(), row.kind.as_str(), row.status.as_str(), row.calls),
        ("otlp", "shop", "client", "error", 1)
    );
    assert_eq!(row.digest_text, Some(holdup_sql::digest_text("SELECT a FROM t WHERE id = 7", Dialect::MySql)));
    assert_eq!(row.digest, Some(holdup_sql::digest("select a from t where id = 1", Dialect::MySql)));
}

#[test]
fn a_statement_has_the_digest_that_its_server_is_watched_with() {
    for (system, dialect, statement) in [
        ("mysql", Dialect::MySql, r#"SELECT "it\"s" FROM t WHERE a = 'x\'y'"#),
        ("mariadb", Dialect::MySql, "SELECT `a` FROM t # why"),
        ("postgresql", Dialect::PostgreSql, r#"SELECT "Name" FROM t WHERE a = 'x\' AND b = $$it's$$ AND c = $1::uuid"#),
        ("cockroachdb", Dialect::PostgreSql, r#"SELECT "Name" FROM t WHERE a = ARRAY[1, 2]"#),
    ] {
        for key in ["db.system", "db.system.name"] {
            let told = told(3, statement, &[(key, system), ("db.query.text", statement)]);
            let row = row("otlp", "shop", &told).unwrap();
            assert_eq!(row.digest, Some(holdup_sql::digest(statement, dialect)), "{system} {statement}");
            assert_eq!(row.digest_text, Some(holdup_sql::digest_text(statement, dialect)));
        }
    }
}

#[test]
fn no_value_of_a_statement_or_a_url_is_kept() {
    let mysql = r#"SELECT "s3cret", 'it\'s s3cret' FROM t # s3cret"#;
    let postgresql = r"SELECT 'x\', 's3cret', $$it's s3cret$$, $a$ s3cret $a$ /* /* */ s3cret */";
    for (kind, name, attributes) in [
        (3, "SELECT 's3cret'", &[("db.system", "mysql"), ("db.statement", "SELECT 's3cret' /* s3cret */")][..]),
        (3, mysql, &[("db.system", "mysql"), ("db.statement", mysql)]),
        (3, mysql, &[("db.system.name", "mariadb")]),
        (3, postgresql, &[("db.system", "postgresql"), ("db.statement", postgresql)]),
        (3, postgresql, &[("db.system.name", "cockroachdb")]),
        (3, postgresql, &[("db.statement", postgresql)]),
        (3, postgresql, &[("db.system.name", "aws.redshift"), ("db.query.text", postgresql)]),
        (3, "SET", &[("db.system", "redis"), ("db.statement", "SET a s3cret")]),
        (3, "SET a s3cret", &[("db.system", "redis")]),
        (3, "SET a s3cret", &[("db.system.name", "Valkey")]),
        (3, "find", &[("db.system", "mongodb"), ("db.statement", "{\"name\": \"s3cret\"}")]),
        (3, "find {\"name\": s3cret}", &[("db.system", "mongodb")]),
        (1, "take 's3cret'", &[("pool.name", "main")]),
        (3, "GET http://me:s3cret@h/x?token=s3cret", &[("http.method", "GET"), ("http.url", "http://me:s3cret@h/x")]),
        (2, "GET /x?token=s3cret", &[]),
        (2, "GET /x/s3cret0815", &[]),
        (1, "load user=s3cret", &[]),
    ] {
        let row = row("otlp", "shop", &told(kind, name, attributes)).unwrap();
        assert!(!format!("{row:?}").contains("s3cret"), "{row:?}");
    }
    for (name, attributes) in [
        ("SELECT a FROM t LIMIT 4711", &[("db.system", "mysql")][..]),
        ("SELECT a FROM t LIMIT 4711", &[("db.system", "postgresql")]),
        ("GET user:4711", &[("db.system", "redis")]),
        ("take 4711", &[("pool.name", "main")]),
        ("GET /users/4711", &[("http.method", "GET")]),
        ("job 4711", &[]),
    ] {
        let row = row("otlp", "shop", &told(3, name, attributes)).unwrap();
        assert!(!row.name.contains("4711"), "{row:?}");
    }
}

#[test]
fn texts_are_bounded() {
    let long = "x".repeat(1 << 20);
    let told = told(
        3,
        &long,
        &[("db.system", "mysql"), ("db.statement", &long), ("server.address", &long), ("server.port", &long)],
    );
    let row = row("otlp", &long, &told).unwrap();
    let kept = row.service.len()
        + row.name.len()
        + row.digest_text.as_deref().map_or(0, str::len)
        + row.peer.map_or(0, |p| p.len());
    assert!(kept < 8 << 10, "{kept}");
}

#[test]
fn invalid_spans_are_rejected() {
    let good = told(2, "x", &[]);
    assert!(row("otlp", "", &good).is_ok());
    for bad in [
        ParsedSpan { trace_id: None, ..good.clone() },
        ParsedSpan { span_id: None, ..good.clone() },
        ParsedSpan { start_ns: 0, ..good.clone() },
        ParsedSpan { start_ns: u64::MAX, end_ns: u64::MAX, ..good.clone() },
        ParsedSpan { end_ns: good.start_ns - 1, ..good.clone() },
    ] {
        assert!(row("otlp", "", &bad).is_err());
    }
}

#[test]
fn a_failure_is_seen_where_the_status_says_nothing() {
    let status = |attributes: &[(&str, &str)], status: u64, has_exception: bool| {
        let span = ParsedSpan { status, has_exception, ..told(2, "GET /x", attributes) };
        row("otlp", "shop", &span).unwrap().status
    };
    for (attributes, expected) in [
        (&[("http.response.status_code", "503")][..], "error"),
        (&[("http.status_code", "404"), ("error.type", "404")], "unset"),
        (&[("rpc.grpc.status_code", "14")], "error"),
        (&[("rpc.grpc.status_code", "5")], "unset"),
        (&[("error", "true")], "error"),
        (&[("error", "false")], "unset"),
        (&[("exception.type", "IOException")], "error"),
        (&[], "unset"),
    ] {
        assert_eq!(status(attributes, 0, false), expected, "{attributes:?}");
    }
    assert_eq!(status(&[], 0, true), "error");
    // The app that set it knows that the exception was dealt with.
    assert_eq!((status(&[("error", "true")], 1, true), status(&[], 2, false)), ("ok".into(), "error".into()));
}
