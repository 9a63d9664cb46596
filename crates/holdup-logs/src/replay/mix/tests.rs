//! Sessions as a mix puts them together.

use super::*;
use crate::replay::order::HELD_BACK_BYTES;

fn statement(connection: u64, at_us: i64, database: &str, sql: &str) -> Recorded {
    Recorded {
        sql: sql.as_bytes().to_vec(),
        connection,
        at_us: Some(at_us),
        user: b"app".to_vec(),
        database: database.as_bytes().to_vec(),
        ..Recorded::default()
    }
}

fn command(connection: u64, at_us: i64, name: &str) -> Recorded {
    Recorded { kind: Kind::Command, ..statement(connection, at_us, "shop", name) }
}

fn rules() -> Rules {
    Rules { dialect: Dialect::MySql, writes: false, database: None, limit: None, length_us: None }
}

/// What a mix of these records is, in short, and what was left out.
fn mixed(records: Vec<Recorded>, rules: Rules) -> (Vec<String>, LeftOut) {
    let mut mix = Mix::new(Order::new(records.into_iter(), HELD_BACK_BYTES), rules, None);
    let text = |action: Action| match action {
        Action::Open(entry) => format!("open {}", entry.as_deref().unwrap_or("-")),
        Action::Execute(execution) => {
            let before = execution.goes_to.map_or_else(String::new, |before| format!("{before}; "));
            format!("{} {}{}", execution.number, before, execution.text)
        }
        Action::Close => "close".to_owned(),
    };
    let items = mix.by_ref().map(|item| format!("{}: {}", item.session, text(item.action))).collect();
    (items, mix.left_out)
}

#[test]
fn sessions_come_and_go_as_the_log_says() {
    let log = vec![
        command(7, 1, "Connect"),
        statement(7, 2, "shop", "SELECT 1"),
        statement(8, 3, "", "SELECT 2"),
        statement(7, 4, "other", "SELECT 3"),
        statement(7, 5, "shop", "use shop"),
        command(7, 6, "Ping"),
        command(7, 7, "Quit"),
        // Numbers are given again.
        command(7, 8, "Connect"),
        statement(7, 9, "shop", "COMMIT"),
    ];
    let (items, left_out) = mixed(log, rules());
    assert_eq!(
        items,
        [
            "0: open shop",
            "0: 0 SELECT 1",
            "1: 1 SELECT 2",
            "0: 2 USE `other`; SELECT 3",
            "0: 3 USE `shop`",
            "0: close",
            "2: open shop",
            "2: 4 COMMIT"
        ]
    );
    assert_eq!((left_out.commands, left_out.statements.len()), (1, 0));
}

#[test]
fn left_out_statements_keep_their_number() {
    let log = || {
        vec![
            statement(1, 1, "shop", "BEGIN"),
            statement(1, 2, "shop", "INSERT INTO t VALUES (1)"),
            statement(1, 3, "shop", "SELECT a FROM t FOR UPDATE"),
            statement(1, 4, "shop", "SELECT evil()"),
            statement(1, 5, "shop", "SELECT 1; SELECT 2"),
            statement(1, 6, "shop", "/* holdup */ SELECT 1"),
            Recorded { is_cut: true, ..statement(1, 7, "shop", "SELECT 1") },
            Recorded { sql: b"SELECT '\xff'".to_vec(), ..statement(1, 8, "shop", "") },
            statement(1, 9, "shop", "COMMIT"),
        ]
    };
    let (items, left_out) = mixed(log(), rules());
    assert_eq!(items, ["0: 0 BEGIN", "0: 8 COMMIT"]);
    let reasons: Vec<_> = left_out.statements.into_iter().map(|(reason, count)| (reason.name(), count)).collect();
    let one = |name| (name, 1);
    assert_eq!(reasons, ["changes", "locks", "calls", "unclear", "cut", "bytes", "own"].map(one));
    let (items, _) = mixed(log(), Rules { writes: true, ..rules() });
    assert_eq!(items.len(), 6);
    let (items, left_out) = mixed(log(), Rules { limit: Some(1), ..rules() });
    assert_eq!((items.len(), left_out.statements.len()), (1, 0));
    let (items, _) = mixed(log(), Rules { length_us: Some(8), ..rules() });
    assert_eq!(items.len(), 1);
}

#[test]
fn a_database_may_be_said() {
    let log = vec![statement(1, 1, "a", "SELECT 1"), statement(1, 2, "b", "use b"), statement(1, 3, "b", "SELECT 2")];
    let (items, left_out) = mixed(log, Rules { database: Some("test".into()), ..rules() });
    assert_eq!(items, ["0: 0 SELECT 1", "0: 2 SELECT 2"]);
    assert_eq!(left_out.statements.get(&Reason::Database), Some(&1));
}

#[test]
fn without_numbers_a_statement_is_one_of_a_free_connection() {
    let took = |at_us, took_us| Recorded { took_us: Some(took_us), ..statement(0, at_us, "", "SELECT 1") };
    let (items, _) = mixed(vec![took(1, 10), took(2, 3), took(6, 1), took(7, 1), took(12, 1)], rules());
    assert_eq!(items, ["0: 0 SELECT 1", "1: 1 SELECT 1", "1: 2 SELECT 1", "1: 3 SELECT 1", "0: 4 SELECT 1"]);
}

#[test]
fn a_prepared_statement_needs_its_parameters() {
    let asked = |sql: &str, parameters: &str| Recorded {
        parameters: parameters.as_bytes().to_vec(),
        ..statement(1, 1, "shop", sql)
    };
    let log = vec![
        asked("SELECT $1", "$1 = 'it''s'"),
        asked("SELECT $1", ""),
        asked("SELECT '$1', $$x$$", ""),
        asked("SELECT $1", "$1 = 'cut"),
    ];
    let rules = Rules { dialect: Dialect::PostgreSql, ..rules() };
    let mut mix = Mix::new(Order::new(log.into_iter(), HELD_BACK_BYTES), rules, None);
    let executions: Vec<Execution> = mix
        .by_ref()
        .filter_map(|item| if let Action::Execute(execution) = item.action { Some(execution) } else { None })
        .collect();
    assert_eq!(executions.iter().map(|execution| execution.number).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(executions[0].parameters, [Some(b"it's".to_vec())]);
    assert_eq!(mix.left_out.statements.get(&Reason::Values), Some(&2));
}
