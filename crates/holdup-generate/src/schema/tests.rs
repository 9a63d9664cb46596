//! The schema's file: rows that depend on seed and number alone, values within their bounds, and mistakes. No server.

use super::*;

const GOOD: &str = "collection: orders
rows: 1000
seed: 7
fields:
  no: {sequence: {from: 1000, step: 10}}
  customer: {uniform: 1..5000}
  price: {uniform: 0.50..99.99}
  product: {zipf: {of: 1000, exponent: 1.1}}
  state: {choice: {paid: 90, open: 9, 7: 1}, nulls: 0.1}
  colour: {choice: [red, '1', 2]}
  note: {words: 3..5}
  code: {text: 8}
  at: {date: 2024-01-01..2026-01-01T12:00:00Z}
  gift: {chance: 0.2}
  ref: uuid
  currency: {value: EUR}
  address: {nested: {city: {choice: [A, B]}, zip: {uniform: 10000..99999}}}
  items: {array: {length: 1..3, of: {nested: {sku: {text: 3..3}}}}}
";

/// Row 1 of it.
const FIRST: &str = r#"{"_id":1,"no":1000,"customer":3599,"price":2.99,"product":1,"state":"paid","colour":2,"note":"street from delivery","code":"ftuphmjg","at":"2024-05-27T15:34:33.275Z","gift":true,"ref":"673b387e-055e-46e4-97e2-92caea69d072","currency":"EUR","address":{"city":"B","zip":99177},"items":[{"sku":"wti"},{"sku":"gvv"}]}"#;

fn read(text: &str) -> Result<Schema, String> {
    Schema::read(text, "s.yaml", None, None).map_err(|error| error.to_string())
}

#[test]
fn a_row_is_a_function_of_seed_and_number_alone() {
    let schema = read(GOOD).unwrap();
    let rows: Vec<String> = schema.sample(1_000).collect();
    assert_eq!(rows, read(GOOD).unwrap().sample(1_000).collect::<Vec<_>>());
    assert_eq!(rows.iter().collect::<std::collections::BTreeSet<_>>().len(), 1_000);
    let other = Schema { seed: 8, ..schema.clone() };
    let same = rows.iter().zip(other.sample(1_000)).filter(|(a, b)| *a == b).count();
    assert_eq!(same, 0);
    // Recorded: a change of this text is a change of everybody's data.
    assert_eq!(rows[0], FIRST);
}

#[test]
fn an_objectid_has_the_number_for_its_digits() {
    let schema = read(&GOOD.replace("rows: 1000", "rows: 1000\nids: objectid")).unwrap();
    let last = schema.sample(1_000).last().unwrap();
    let expected = r#"{"_id":{"$oid":"000000000000000000001000"},"no":10990,"#;
    assert!(last.starts_with(expected), "{last}");
}

#[test]
fn values_are_where_the_schema_says() {
    let schema = read(GOOD).unwrap();
    let mut nulls = 0;
    for text in schema.sample(1_000) {
        let row: serde_json::Value = serde_json::from_str(&text).unwrap();
        let number = row["_id"].as_i64().unwrap();
        assert_eq!(row["no"], 1_000 + 10 * (number - 1));
        assert!((1..=5_000).contains(&row["customer"].as_i64().unwrap()));
        let price = row["price"].as_f64().unwrap();
        assert!((0.5..=99.99).contains(&price) && (price * 100.0 - (price * 100.0).round()).abs() < 1e-9, "{price}");
        assert!((1..=1_000).contains(&row["product"].as_i64().unwrap()));
        nulls += u32::from(row["state"].is_null());
        assert!((3..=5).contains(&row["note"].as_str().unwrap().split(' ').count()));
        assert_eq!(row["code"].as_str().unwrap().len(), 8);
        let at = row["at"].as_str().unwrap();
        assert!(("2024-01-01T00:00:00.000Z"..="2026-01-01T12:00:00.000Z").contains(&at), "{at}");
        assert_eq!((row["ref"].as_str().unwrap().len(), &row["currency"]), (36, &serde_json::json!("EUR")));
        assert!(row["address"]["zip"].as_i64().unwrap() >= 10_000);
        assert!((1..=3).contains(&row["items"].as_array().unwrap().len()));
    }
    assert!((60..=140).contains(&nulls), "{nulls}");
}

#[test]
fn mistakes_are_said_with_line_and_way_out() {
    for (from, to, words) in [
        ("rows: 1000\n", "", "--rows 1000000"),
        ("rows: 1000", "rows: many", "s.yaml:2: rows: expected rows, a whole number, found \"many\""),
        ("{uniform: 1..5000}", "{uniform: 5000..1}", "s.yaml:6: fields.customer.uniform: the first end is above"),
        ("{uniform: 1..5000}", "{unifrom: 1..5000}", "did you mean \"uniform\""),
        ("{uniform: 1..5000}", "{uniform: 1..x}", "found \"x\""),
        ("{uniform: 1..5000}", "{uniform: 1, text: 3}", "one kind"),
        ("{uniform: 1..5000}", "random", "not a kind of field"),
        ("{date: 2024-01-01..2026-01-01T12:00:00Z}", "{date: 2024..2026}", "is not a date"),
        ("{choice: [red, '1', 2]}", "{choice: []}", "at least one value"),
        ("  customer:", "  _id:", "name another one with key: NAME"),
        ("  customer:", "  $customer:", "no $ before it"),
        ("collection: orders", "collection: orders\ntable: orders", "keep one"),
        ("{text: 8}", "{text: 99999999}", "out of range"),
        ("seed: 7", "ids: uuid", "s.yaml:3: ids: expected number or objectid, found \"uuid\""),
        ("{chance: 0.2}", "{chance: 2}", "a probability"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = read(&text).unwrap_err();
        assert!(error.contains(words), "{to}: {error}");
    }
}
