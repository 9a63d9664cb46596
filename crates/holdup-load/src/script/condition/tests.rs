//! What conditions say of responses and variables, and what is said of those that are none.

use crate::script::tests::world::{SECRET, World};
use crate::script::{Condition, Needs, Random, Response, StepFailure, Subjects, Value};

const BODY: &[u8] =
    br#"{"id": 7, "name": "Ann", "total": "12.50", "none": null, "ok": true, "big": 12345678901234567891,
    "a b": 1, "items": [{"id": 1, "state": "new"}, {"id": 2, "state": "done"}], "tags": ["x"]}"#;

/// Whether it holds of a usual response.
fn http(world: &mut World, text: &str) -> Result<bool, StepFailure> {
    let fields: [(&[u8], &[u8]); 5] = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"x-count", b"10"),
        (b"via", b"a"),
        (b"Via", b"b"),
        (b"Set-Cookie", b"sid=s1; Path=/"),
    ];
    let response =
        Response { status: 201, fields: &fields, body: BODY, body_bytes: 4_096, rows: 0, ..Response::default() };
    let condition = parse(world, text, Subjects::Http);
    world.with(|ctx| condition.holds(ctx, Some(&response)))
}

fn parse(world: &World, text: &str, subjects: Subjects) -> Condition {
    Condition::parse(text, &world.names, subjects).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn plain(world: &mut World, text: &str) -> Result<bool, StepFailure> {
    let condition = parse(world, text, Subjects::None);
    world.with(|ctx| condition.holds(ctx, None))
}

fn all_hold(texts: &[&str]) {
    let mut world = World::new();
    for text in texts {
        assert_eq!(http(&mut world, text), Ok(true), "{text}");
        assert_eq!(http(&mut world, &format!("not ({text})")), Ok(false), "not ({text})");
    }
}

#[test]
fn responses_are_compared() {
    all_hold(&[
        "status == 201",
        "status==201",
        "status != 200 ",
        "status < 300",
        "status <= 201.0",
        "status > 2e2",
        "status >= 201",
        "status in 200..299",
        "status in 201..201",
        "status in [200, 201]",
        "status in (200,201)",
        "status contains 20",
        "status matches '^2'",
        "size == 4096",
        "size < 10000",
        "body contains Ann",
        r#"body contains "\"id\": 7""#,
        r#"body matches "\"id\": \d+,""#,
        "body matches ^.",
        "body exists",
        "header Content-Type contains json",
        "header content-type matches '(?i)UTF-8$'",
        "header x-count > 9",
        "header via == a",
        "header via == b",
        "header via != a",
        "header Via in [b, c]",
        "header x-count exists",
        "not header x-none exists",
        "cookie sid == s1",
        "cookie sid exists and not cookie other exists",
        "json /id > 0",
        "json /id == 7.0",
        "json /id exists",
        "json /name == Ann",
        "json /name == 'Ann'",
        "json /total == 12.5",
        "json /total < 100",
        "json /none exists",
        "json /none == null",
        "json /ok == true",
        "json /big == 12345678901234567891",
        "json /big != 12345678901234567890",
        "json '/a b' == 1",
        "json /items/1/state == done",
        "json /items/*/state == done",
        "json /items/*/state contains ne",
        "json /items/*/id in 2..9",
        "json /items/*/id exists",
        "json /tags == '[\"x\"]'",
        "json exists",
        "json contains Ann",
    ]);
}

#[test]
fn what_a_response_does_not_have_passes_no_comparison() {
    let mut world = World::new();
    for text in [
        "json /nope == ''",
        "json /nope != 1",
        "json /nope exists",
        "json /items/7/id exists",
        "json /items/*/nope exists",
        "json /items/*/nope != 1",
        "header x-none != a",
        "cookie other != a",
    ] {
        assert_eq!(http(&mut world, text), Ok(false), "{text}");
    }
}

#[test]
fn variables_are_compared() {
    let mut world = World::new();
    for text in [
        "token exists",
        "${token} exists",
        "not nothing exists",
        "not ${nothing} exists",
        "tries exists",
        "${tries} < 3",
        "tries < 3",
        "user-id == 1",
        "token == t0k",
        "token == \"${token}\"",
        "${token}x == ${token}x",
        "'${token}/${user-id}' == t0k/1",
        "token == '${template(\"${token}\")}'",
        "accounts.email contains @",
        "accounts.'First Name' == Ann",
        "length(ids) == 3",
        "add(user-id, 1) in 2..2",
        "9 < 10",
        "'9' < '10'",
        "9a > 10a",
        "abc < abd",
        "-1 < 0",
        "token in [a, ${token}]",
        "b\" == 'b\"'",
        "ids contains a",
        "not ids contains 'a,b'",
        "ids == ü",
        "a in ${ids}",
        "not d in ${ids}",
        "a in ${alias}",
        "base == /api/acme",
        "size_ exists or token exists",
        "größe == L",
    ] {
        let text = text.replace("9a >", "'9a' >").replace("abc <", "'abc' <").replace("b\" ==", "'b\"' ==");
        let text = text.replace("a in $", "'a' in $").replace("d in $", "'d' in $").replace("size_", "nothing");
        assert_eq!(plain(&mut world, &text), Ok(true), "{text}");
    }
    assert_eq!(plain(&mut world, "words exists"), Ok(false), "no row was drawn");
    for text in ["nothing == 1", "token == ${nothing}", "words == 1", "token contains ${nothing}"] {
        assert_eq!(plain(&mut world, text), Err(StepFailure::Template), "{text}");
    }
}

#[test]
fn rows_and_columns_of_statements() {
    let mut world = World::new();
    let columns: [(&str, Option<&[u8]>); 3] = [("id", Some(b"7")), ("Full Name", Some(b"Ann")), ("gone", None)];
    let response = Response { rows: 2, columns: &columns, ..Response::default() };
    for (text, holds) in [
        ("rows > 0", true),
        ("rows == 2", true),
        ("column id == 7.0", true),
        ("column 'Full Name' == Ann", true),
        ("column gone exists", false),
        ("column none exists", false),
        ("rows in 3..9", false),
        ("column id == ${user-id}", false),
    ] {
        let condition = parse(&world, text, Subjects::Sql);
        assert_eq!(world.with(|ctx| condition.holds(ctx, Some(&response))), Ok(holds), "{text}");
        assert_eq!(condition.needs(), Needs::default());
    }
}

#[test]
fn precedence_and_what_is_not_asked() {
    let mut world = World::new();
    for (text, holds) in [
        ("1 == 1 or 1 == 2 and 1 == 2", true),
        ("(1 == 1 or 1 == 2) and 1 == 2", false),
        ("not 1 == 2 and 1 == 1", true),
        ("not (1 == 2 or 1 == 1)", false),
        ("not not 1 == 1", true),
        ("1 == 1 and 2 == 2 and 3 == 3", true),
        ("1 == 2 or 2 == 3 or 3 == 3", true),
        ("((1 == 1))", true),
        ("1 == 2 and nothing == 1", false),
        ("1 == 1 or nothing == 1", true),
    ] {
        assert_eq!(plain(&mut world, text), Ok(holds), "{text}");
    }
    assert_eq!(plain(&mut world, "not nothing == 1"), Err(StepFailure::Template));
}

#[test]
fn a_body_that_is_not_json() {
    let mut world = World::new();
    for text in ["json /id == 1", "json /id exists", "not json /id exists", "json /*/id == 1"] {
        let condition = parse(&world, text, Subjects::Http);
        let response = Response { status: 200, body: b"<html>", ..Response::default() };
        assert_eq!(world.with(|ctx| condition.holds(ctx, Some(&response))), Err(StepFailure::BadJson), "{text}");
        assert_eq!(world.with(|ctx| condition.holds(ctx, None)), Err(StepFailure::Check), "{text}");
    }
    let bytes = parse(&world, "body contains ü and body matches '(?-u)\\xff$'", Subjects::Http);
    let response = Response { body: b"\xc3\xbc\xff", ..Response::default() };
    assert_eq!(world.with(|ctx| bytes.holds(ctx, Some(&response))), Ok(true));
}

#[test]
fn what_it_needs_is_known() {
    let world = World::new();
    for (text, head, body, status) in [
        ("status == 200", false, false, true),
        ("size > 1 and not (token exists or status < 300)", false, false, true),
        ("body contains a", false, true, false),
        ("json /a exists", false, true, false),
        ("json /*/a exists", false, true, false),
        ("header a exists or json /a exists", true, true, false),
        ("cookie a exists", true, false, false),
        ("${token} == status", false, false, false),
    ] {
        let condition = parse(&world, text, Subjects::Http);
        assert_eq!(condition.needs(), Needs { head, body }, "{text}");
        assert_eq!(condition.speaks_of_status(), status, "{text}");
    }
    let condition = parse(&world, "token == ${accounts.email} and 'x' in [${words}, ${ids}]", Subjects::None);
    assert_eq!(condition.feeders(), [0, 1]);
}

#[test]
fn slips_are_explained() {
    let world = World::new();
    for (text, at, message) in [
        ("", 0, "expected a condition, found its end"),
        ("statsu == 200", 0, r#"unknown name "statsu"; did you mean "status"?"#),
        ("tokne exists", 0, r#"unknown name "tokne"; did you mean "token"?"#),
        ("status == 200 and", 17, "expected a condition, found its end"),
        ("status", 6, "expected one of == != < <= > >= contains matches in exists, found its end"),
        ("status = 200", 7, "expected one of == != < <= > >= contains matches in exists, found \"=\"; write =="),
        ("body =~ x", 5, "expected one of == != < <= > >= contains matches in exists, found \"=~\"; write matches"),
        (
            "body contians x",
            5,
            "expected one of == != < <= > >= contains matches in exists, found \"contians\"; did you mean contains?",
        ),
        ("status ==", 9, "expected a value, found its end"),
        ("status == 200 && size > 1", 14, "expected and, or, or the end, found \"&&\"; write and"),
        ("status == 200 || size > 1", 14, "expected and, or, or the end, found \"||\"; write or"),
        ("!token exists", 0, "expected a condition, found \"!\"; write not"),
        ("status == 200)", 13, "expected and, or, or the end, found \")\"; its ( is missing"),
        ("(status == 200", 0, "( without its )"),
        ("(status == 200 size > 1)", 15, "expected and, or, or ), found \"size\""),
        (
            "body contains two words",
            18,
            "expected and, or, or the end, found \"words\"; a text of several words needs quotes",
        ),
        ("body contains 'two", 14, "a quoted text has no closing quote"),
        ("body contains '${tokne}'", 17, r#"unknown name "tokne"; did you mean "token"?"#),
        ("status == ${tokne}", 12, r#"unknown name "tokne"; did you mean "token"?"#),
        ("body == token", 8, "write ${token} for the variable, or \"token\" for the word"),
        ("body == accounts.email", 8, "write ${accounts.email} for the variable, or \"accounts.email\" for the word"),
        ("body == length(ids)", 8, "a text with ( needs quotes; a function is written ${length(ids)}"),
        ("header exists", 13, "a name is missing, as in \"header Content-Type\""),
        ("header == a", 7, "a name is missing, as in \"header Content-Type\""),
        ("json id == 1", 5, "the JSON pointer 'id' does not begin with '/'; write '/id'"),
        ("json /a~2 == 1", 5, "the JSON pointer has a '~' in 'a~2' that is neither ~0 (for ~) nor ~1 (for /)"),
        ("body matches 'a('", 13, "the pattern is wrong: unclosed group"),
        ("body matches ${token}", 13, "a pattern must be constant: it cannot contain a variable"),
        (r"body matches '(\w{100}){100}'", 13, "the pattern takes too much memory: repeat less in it"),
        ("status in 299..200", 10, "the end of a range must not be below its start"),
        ("status in 200..", 10, "the end of a range must not be below its start"),
        ("status in 200", 10, "in takes a range such as 200..299, a list such as [a, b], or a list variable as ${ids}"),
        ("status in [200, 201", 10, "the list has no closing ]"),
        ("status in [200 201]", 15, "expected , or ], found \"201]\""),
        ("rows > 0", 0, "rows is known only in a check of a statement"),
    ] {
        match Condition::parse(text, &world.names, Subjects::Http) {
            Ok(_) => panic!("{text} was parsed"),
            Err(error) => assert_eq!((error.message.as_str(), error.at), (message, at), "{text}"),
        }
    }
    let of_nothing = Condition::parse("status == 200", &world.names, Subjects::None).expect_err("no response");
    assert_eq!(of_nothing.message, "status is known only in a check of an HTTP response");
    let deep = format!("{}1 == 1{}", "(".repeat(40), ")".repeat(40));
    assert_eq!(
        Condition::parse(&deep, &world.names, Subjects::None).expect_err("deep").message,
        "nested deeper than 32"
    );
    let nots = format!("{}1 == 1", "not ".repeat(40));
    assert!(Condition::parse(&nots, &world.names, Subjects::None).is_err());
}

#[test]
fn a_variable_of_a_subjects_name_is_meant_where_there_is_no_response() {
    let mut world = World::new();
    world.names.variable("status");
    world.values.push(Value::from("new"));
    assert_eq!(plain(&mut world, "status == new"), Ok(true));
    assert_eq!(http(&mut world, "status == 201 and ${status} == new"), Ok(true));
}

#[test]
fn secrets_are_in_no_debug_output_and_no_error() {
    let world = World::new();
    let mut said = String::new();
    for text in ["body contains ${secret.PASSWORD}", "body matches '${login}'", "json /a == '${secret.PASSWORD}'"] {
        said += &format!("{:?}", parse(&world, text, Subjects::Http));
    }
    for text in ["body matches '(${secret.PASSWORD}'", "status in ${secret.PASSWORD}", "body == ${secret.PASSWORD} x"] {
        said += &format!("{:?}", Condition::parse(text, &world.names, Subjects::Http).expect_err(text));
    }
    assert!(!said.contains(SECRET), "{said}");
}

/// Thousands of texts made of the language's own words: none may panic.
#[test]
fn any_text_is_refused_or_answered() {
    const WORDS: &[&str] = &[
        "status",
        "body",
        "size",
        "json",
        "/id",
        "/*",
        "header",
        "x-count",
        "cookie",
        "sid",
        "token",
        "nothing",
        "ids",
        "${token}",
        "${ids}",
        "'a'",
        "\"${token}\"",
        "7",
        "2..3",
        "[",
        "]",
        "(",
        ")",
        ",",
        "==",
        "!=",
        "<",
        ">=",
        "contains",
        "matches",
        "in",
        "exists",
        "and",
        "or",
        "not",
        "\\",
        "'",
        "${",
        "ü",
        "length(",
        "rows",
        "column",
    ];
    let (mut world, mut random, mut parsed) = (World::new(), Random::new(9), 0);
    for round in 0..20_000 {
        let word = |random: &mut Random| WORDS[random.below(WORDS.len() as u64) as usize];
        let mut text = String::new();
        for _ in 0..=random.below(3) {
            if round % 2 == 0 {
                let (a, op, b) = (word(&mut random), random.below(8), word(&mut random));
                text += &format!("{a} {} {b} {} ", WORDS[24 + op as usize], ["and", "or"][random.below(2) as usize]);
            } else {
                text += word(&mut random);
                text += [" ", ""][random.below(2) as usize];
            }
        }
        if round % 2 == 0 {
            text += "1 == 1";
        }
        if Condition::parse(&text, &world.names, Subjects::Http).is_ok() {
            parsed += 1;
            let _ = http(&mut world, &text);
        }
    }
    assert!(parsed > 500, "only {parsed} were conditions");
}
