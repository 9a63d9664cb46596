//! What a database tells for advice: its tables and indexes, and plans with an index that is not there.

use holdup_collect::catalog::Catalog;
use holdup_sql::catalog::Index;

use crate::{Server, Which};

fn shop(which: Which) -> Option<(Server, Catalog)> {
    let server = Server::of(which, &[])?;
    server.run(
        "CREATE TABLE \"Order\" (id int PRIMARY KEY, customer int, state text, at timestamptz);
         INSERT INTO \"Order\" SELECT i, i % 5000, 'new', now() FROM generate_series(1, 60000) AS i;
         CREATE INDEX by_state ON \"Order\" (state, lower(state));
         CREATE UNIQUE INDEX few ON \"Order\" (customer) WHERE id < 100;
         CREATE TABLE empty (a int); ANALYZE; CREATE ROLE adviser LOGIN; GRANT SELECT ON \"Order\", empty TO adviser;",
    );
    let catalog = Catalog::connect(&server.address("adviser", "")).expect("it connects");
    Some((server, catalog))
}

fn tables_are_told(which: Which) {
    let Some((_server, catalog)) = shop(which) else { return };
    let order = catalog.table("Order").expect("it answers").expect("it is there");
    assert_eq!((order.columns.join(","), order.rows), ("id,customer,state,at".to_owned(), Some(60_000.0)));
    let index = |name: &str, columns: &[&str], is_unique| Index {
        name: name.to_owned(),
        columns: columns.iter().map(|&c| c.to_owned()).collect(),
        is_unique,
    };
    // One with a condition holds a value once among few rows only.
    let expected = [
        index("Order_pkey", &["id"], true),
        index("by_state", &["state", ""], false),
        index("few", &["customer"], false),
    ];
    assert_eq!(order.indexes, expected);
    assert_eq!(catalog.table("EMPTY").expect("it answers").expect("small letters are meant").columns, ["a"]);
    for none in ["gone", "x'y", "a.b.c.d.e", "\"; DROP TABLE empty; --"] {
        assert_eq!(catalog.table(none).ok().flatten(), None, "{none}");
    }
    assert!(catalog.table("empty").expect("it answers").is_some());
}

#[test]
fn tables_of_the_systems_are_told() {
    tables_are_told(Which::System);
}

#[test]
fn tables_of_13_are_told_and_without_the_extension_nothing_is_tried() {
    tables_are_told(Which::Fetched(13));
    let Some((_server, catalog)) = shop(Which::Fetched(13)) else { return };
    assert!(catalog.cannot_try().expect("it answers").expect("it can't").contains("CREATE EXTENSION hypopg"));
    let wanted = ["customer".to_owned()];
    let trial = catalog.try_index(("SELECT * FROM \"Order\" WHERE customer = $1", 1), "Order", &wanted);
    assert_eq!(trial.expect("the connection stays"), None);
    assert!(catalog.table("Order").expect("it answers").is_some(), "the connection is as it was");
}

#[test]
fn an_index_that_is_not_there_is_tried() {
    let Some((server, catalog)) = shop(Which::System) else { return };
    let there = server.run("SELECT count(*) FROM pg_available_extensions WHERE name = 'hypopg'");
    if there.trim() == "0" {
        assert!(std::env::var_os("CI").is_none(), "hypopg is missing; run: cargo xtask setup");
        return eprintln!("skipped: hypopg is not installed; run: cargo xtask setup");
    }
    server.run("CREATE EXTENSION hypopg");
    assert_eq!(catalog.cannot_try().expect("it answers"), None);
    let before = server.run("SELECT count(*) FROM pg_indexes WHERE tablename = 'Order'");
    let tried = |statement: &str, values, column: &str| {
        catalog.try_index((statement, values), "Order", &[column.to_owned()]).expect("it answers")
    };
    let helps = tried("SELECT * FROM \"Order\" WHERE customer = $1", 1, "customer").expect("it is planned");
    assert!(helps.is_used && helps.cost_after < helps.cost_before / 5.0, "{helps:?}");
    let useless = tried("SELECT count(*) FROM \"Order\" WHERE customer > $1", 1, "state").expect("it is planned");
    assert!(!useless.is_used && useless.cost_after == useless.cost_before, "{useless:?}");
    // What can't be planned, and two statements in one, change nothing.
    assert_eq!(tried("SELECT * FROM gone WHERE a = $1", 1, "customer"), None);
    assert_eq!(tried("SELECT 1; DELETE FROM \"Order\"", 0, "customer"), None);
    assert_eq!(server.run("SELECT count(*) FROM \"Order\"").trim(), "60000");
    assert!(tried("SELECT * FROM \"Order\" WHERE customer = $1", 1, "customer").is_some_and(|trial| trial.is_used));
    assert_eq!(server.run("SELECT count(*) FROM pg_indexes WHERE tablename = 'Order'"), before);
}
