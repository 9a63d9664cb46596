//! Commands as a scenario writes them: types, names and mistakes. What a server makes of them is tested elsewhere.

use super::super::Scenario;
use crate::script::program::Form;
use crate::script::{document, fill};
use holdup_mongodb::Document;
use holdup_protocol::database::mongodb::Command;

fn scenario(operation: &str) -> Result<Scenario, String> {
    let text = format!(
        "target: mongodb://h/shop\nload: {{rate: 1, duration: 1s}}\nvars: {{a: 1}}\noperations:\n  - {operation}\n"
    );
    Scenario::parse(&text, "s.yaml").map_err(|error| error.to_string())
}

/// The command of a scenario without templates.
fn read(command: &str) -> Command {
    let scenario = scenario(&format!("command: {command}")).unwrap();
    let Form::Mongodb { commands, .. } = &scenario.sessions.unwrap().script.requests[0].form else {
        panic!("commands")
    };
    fill::commands(commands, "shop", &mut document::constant).unwrap().remove(0)
}

/// The same, as the server's side reads it.
fn sent(command: &str) -> String {
    let bytes = read(command).document.finish();
    let elements = Document::read(&bytes).unwrap().elements();
    elements
        .map(|element| element.unwrap())
        .map(|(name, value)| format!("{}={value:?} ", name.escape_ascii()))
        .collect()
}

#[test]
fn values_have_the_types_that_yaml_or_extended_json_give_them() {
    assert_eq!(
        sent("{ping: 1, b: '1', c: true, d: null, e: 1.5}"),
        "ping=Int(1) b=Text([49]) c=Bool(true) d=Other e=Double(1.5) "
    );
    let typed = "{ping: {$numberLong: 1}, a: {$date: {$numberLong: '5'}}, b: {$date: '1970-01-01T00:00:01Z'}, \
                 c: {$timestamp: {t: 7, i: 2}}, d: {$binary: {base64: AP8=, subType: '00'}}, e: {$maxKey: 1}}";
    assert_eq!(
        sent(typed),
        "ping=Long(1) a=Time(5) b=Time(1000) c=Timestamp { seconds: 7, increment: 2 } d=Binary([0, 255]) e=Other "
    );
    // What else the types have to say, byte by byte.
    for (value, bytes) in [
        ("{$binary: {base64: AP8=, subType: '80'}}", &b"\x05k\0\x02\0\0\0\x80\0\xff"[..]),
        ("{$uuid: 00000000-0000-4000-8000-000000000001}", b"\x05k\0\x10\0\0\0\x04\0"),
        ("{$regularExpression: {pattern: ^a, options: i}}", b"\x0bk\0^a\0i\0"),
        ("{$minKey: 1}", b"\xffk\0"),
        ("{$maxKey: 1}", b"\x7fk\0"),
    ] {
        let sent = read(&format!("{{ping: 1, k: {value}}}")).document.finish();
        assert!(sent.windows(bytes.len()).any(|window| window == bytes), "{value}: {}", sent.escape_ascii());
    }
}

#[test]
fn database_batch_and_comment_are_known_beside_the_document() {
    for (command, database, batch, has_comment) in [
        ("{find: a, batchSize: 7, comment: mine}", "shop", Some(7), true),
        ("{aggregate: a, pipeline: [], cursor: {batchSize: 9}}", "shop", Some(9), false),
        // The answer to an explanation has no cursor.
        ("{aggregate: a, pipeline: [], explain: true, batchSize: 7}", "shop", None, false),
        ("{ping: 1, $db: admin}", "admin", None, false),
    ] {
        let read = read(command);
        assert_eq!((read.database.as_str(), read.batch, read.has_comment), (database, batch, has_comment), "{command}");
    }
    assert_eq!(sent("{ping: 1, $db: admin}"), "ping=Int(1) ");
}

#[test]
fn an_operation_is_called_by_its_shape() {
    for (command, name) in [
        (
            "{find: orders, filter: {state: canary, total: {$gt: 5}}, limit: 1}",
            "find orders filter { state: ?, total: { $gt: ? } }",
        ),
        ("{insert: orders, documents: [{_id: 1}]}", "insert orders"),
        (
            "{find: 'orders_${a}', filter: {_id: {$oid: '0102030405060708090a0b0c'}}}",
            "find orders_{} filter { _id: ? }",
        ),
        // The keys of steps mean nothing in a command.
        (
            "{aggregate: a, pipeline: [{$lookup: {from: b, as: c.d}}, {$set: {1x: 1}}], cursor: {}}",
            "aggregate a pipeline [{ $lookup: { from: ?, as: ? } }, { $s…",
        ),
        ("{ping: 1}", "ping"),
        ("{find: '5'}", "find 5"),
    ] {
        assert_eq!(scenario(&format!("command: {command}")).unwrap().operations[0].name, name);
    }
    let both =
        "transaction: [{command: {insert: a, documents: [{}]}}, {command: {delete: b, deletes: [{q: {}, limit: 1}]}}]";
    assert_eq!(scenario(both).unwrap().operations[0].name, "transaction: insert a; delete b q ?");
}

#[test]
fn mistakes_are_said_with_line_and_way_out() {
    for (operation, words) in [
        (
            "command: {find: orders, filter: {_id: {$oid: 12}}}",
            "s.yaml:5: operations[0].command.filter._id.$oid: $oid is 24 hex digits, found \"12\"",
        ),
        ("command: {find: orders, filter: {_id: {$numberlong: 12}}}", "did you mean \"$numberLong\""),
        ("command: {insertMany: orders}", "the command for it is {insert: orders"),
        ("command: {aggregate: orders, pipeline: []}", "add cursor: {}"),
        ("command: {find: orders, lsid: 1}", "transaction: [{command: ...}]"),
        ("command: {find: orders, filter: {'${a}': 1}}", "names of fields are not filled in"),
        ("command: {find: orders, filter: {b: '${nothing}'}}", "nothing"),
        ("command: {find: orders, filter: {\"a\\0b\": 1}}", "NUL"),
        ("command: {find: orders, $db: '${uuid()}'}", "the same for every request"),
        ("command: find", "expected a command"),
        ("command: {}", "expected a command"),
        ("query: SELECT 1", "command: {find:"),
        ("get: /", "command: {find:"),
        ("{command: {ping: 1}, transaction: [{command: {ping: 1}}]}", "say what to execute"),
        ("transaction: []", "at least one command"),
        ("{command: {ping: 1}, capture: {b: json /x}}", "column NAME or rows"),
        ("{command: {ping: 1}, params: [1]}", "params"),
    ] {
        let error = scenario(operation).unwrap_err();
        assert!(error.contains(words) && error.starts_with("s.yaml:5: "), "{operation}: {error}");
    }
    let nowhere = "target: mongodb://h\nload: {rate: 1, duration: 1s}\noperations: [command: {ping: 1}]\n";
    let error = Scenario::parse(nowhere, "s.yaml").unwrap_err().to_string();
    assert!(error.contains("mongodb://HOST/shop"), "{error}");
    assert!(Scenario::parse(&nowhere.replace("ping: 1", "ping: 1, $db: admin"), "s.yaml").is_ok());
    let other = nowhere.replace("mongodb://h", "mysql://u@h");
    let error = Scenario::parse(&other, "s.yaml").unwrap_err().to_string();
    assert!(error.contains("mongodb://host/database"), "{error}");
}
