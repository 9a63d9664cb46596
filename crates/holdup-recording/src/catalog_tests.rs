//! Differences of two readings, and the statements that undo them.

use super::*;

const MADE: &str = "CREATE INDEX orders_customer ON public.orders USING btree (customer)";

fn objects(all: &[(Kind, &str, &str, &str, &str)]) -> Objects {
    let object = |(kind, on, name, state, definition): &(Kind, &str, &str, &str, &str)| {
        (Key::new(*kind, *on, *name), Form::new(*state, *definition))
    };
    all.iter().map(object).collect()
}

fn said(before: &Objects, after: &Objects, dialect: Dialect) -> Vec<(String, Option<String>)> {
    differences(before, after).iter().map(|change| (change.text(), restore(dialect, change))).collect()
}

#[test]
fn an_object_is_read_back_from_its_setting() {
    let key = Key::new(Kind::Index, "public.orders", "orders: by customer");
    let form = Form::new("invalid", MADE);
    let read = Key::of_setting(&key.setting());
    assert_eq!((&read, Form::of_value(&read, &form.value())), (&key, form));
    let plain = Key::of_setting("work_mem");
    assert_eq!((plain.setting().as_str(), Form::of_value(&plain, "[x] y").state.as_str()), ("work_mem", ""));
    assert_eq!(Key::of_setting("catalog.nonsense").kind, Kind::Setting);
}

#[test]
fn an_index_that_is_gone_comes_back_by_its_own_statement() {
    let table = (Kind::Table, "", "public.orders", "", "id integer\ncustomer integer");
    let before = objects(&[table, (Kind::Index, "public.orders", "orders_customer", "", MADE)]);
    let after = objects(&[table]);
    let gone = ("index orders_customer of public.orders is gone".to_owned(), Some(format!("{MADE};")));
    assert_eq!(said(&before, &after, Dialect::PostgreSql), [gone]);
    let renamed = MADE.replace("orders_customer", "by_customer");
    let after = objects(&[table, (Kind::Index, "public.orders", "by_customer", "", &renamed)]);
    let changes = differences(&before, &after);
    assert!(changes.iter().all(|change| change.to.is_some()), "a rename loses nothing: {changes:?}");
    assert_eq!(differences(&before, &Objects::new()).len(), 1, "the table went, and its index with it");
}

#[test]
fn an_index_out_of_use_is_put_back_into_use() {
    let one = |state: &str| objects(&[(Kind::Index, "shop.orders", "by_customer", state, "ALTER TABLE …")]);
    for (dialect, state, statement) in [
        (Dialect::MySql, "ignored", "ALTER TABLE `shop`.`orders` ALTER INDEX `by_customer` NOT IGNORED;"),
        (Dialect::MySql, "invisible", "ALTER TABLE `shop`.`orders` ALTER INDEX `by_customer` VISIBLE;"),
        (Dialect::PostgreSql, "invalid", "REINDEX INDEX CONCURRENTLY \"shop\".\"by_customer\";"),
    ] {
        let text = format!("index by_customer of shop.orders is {state}");
        assert_eq!(said(&one(""), &one(state), dialect), [(text, Some(statement.to_owned()))]);
    }
}

#[test]
fn settings_and_columns_go_back_to_what_they_were() {
    let before = objects(&[
        (Kind::Setting, "", "work_mem", "", "4MB"),
        (Kind::Setting, "role app in database shop", "jit", "", "off"),
        (Kind::Table, "", "public.orders", "", "id integer\nnote text statistics 500"),
    ]);
    let after = objects(&[
        (Kind::Setting, "", "work_mem", "", "64kB"),
        (Kind::Setting, "role app", "enable_sort", "", "off"),
        (Kind::Table, "", "public.orders", "", "id bigint\nnote text"),
    ]);
    let told = said(&before, &after, Dialect::PostgreSql);
    let told: Vec<(&str, &str)> =
        told.iter().map(|(text, back)| (text.as_str(), back.as_deref().unwrap_or_default())).collect();
    assert_eq!(
        told,
        [
            (
                "setting jit of role app in database shop is gone",
                "ALTER ROLE \"app\" IN DATABASE \"shop\" SET jit = 'off';"
            ),
            ("setting work_mem went from 4MB to 64kB", "ALTER SYSTEM SET work_mem = '4MB'; SELECT pg_reload_conf();"),
            ("setting enable_sort of role app is new: off", "ALTER ROLE \"app\" RESET enable_sort;"),
            (
                "column id of public.orders went from integer to bigint",
                "ALTER TABLE \"public\".\"orders\" ALTER COLUMN \"id\" TYPE integer;"
            ),
            (
                "column note of public.orders went from text statistics 500 to text",
                "ALTER TABLE \"public\".\"orders\" ALTER COLUMN \"note\" SET STATISTICS 500; ANALYZE \"public\".\"orders\";"
            ),
        ]
    );
}

#[test]
fn figures_that_move_by_themselves_are_not_settings() {
    assert!(moves_by_itself("gtid_binlog_pos") && moves_by_itself("started_at"));
    assert!(!moves_by_itself("innodb_flush_log_at_trx_commit"));
    assert!(!moves_by_itself("work_mem") && !moves_by_itself("catalog.index shop.free_at: used_at"));
}
