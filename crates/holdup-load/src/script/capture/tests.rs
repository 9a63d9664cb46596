//! Captures of responses good and bad; the walk through JSON against serde_json's own tree.

use serde_json::Value as Json;

use super::*;

fn body(body: &[u8]) -> Response<'_> {
    Response { status: 200, body, body_bytes: body.len() as u64, ..Response::default() }
}

fn cut(bytes: &[u8]) -> Response<'_> {
    Response { body_is_cut: true, body_bytes: bytes.len() as u64 + 1, ..body(bytes) }
}

fn take(capture: &str, response: &Response<'_>) -> Result<Value, StepFailure> {
    Capture::parse(capture).expect(capture).take(response, &mut Random::new(1))
}

fn pick(capture: &str, pick: Pick, response: &Response<'_>) -> Result<Value, StepFailure> {
    Capture::new(capture, pick, None).expect(capture).take(response, &mut Random::new(1))
}

fn found(text: &str) -> Result<Value, StepFailure> {
    Ok(Value::from(text))
}

fn list(texts: &[&str]) -> Result<Value, StepFailure> {
    Ok(Value::List(texts.iter().map(|text| Box::from(*text)).collect()))
}

const ORDER: &[u8] =
    br#" {"id": 12345678901234567890123, "price": 1.10, "tiny": -0.0e-7, "paid": true, "note": "a\n\u00e9\"\\",
    "next": null, "lines": [ {"sku": "x", "n": 1}, {"sku": "y"}, {"sku": null}, 7, {"sku": "z", "n": 3} ],
    "a/b": {"m~n": [[], ["deep"]]}, "": {"": "empty"}, "id": "again", "0": "zero", "emoji": "\ud83d\ude00"} "#;

#[test]
fn json_is_found_as_it_stands() {
    let order = body(ORDER);
    for (pointer, text) in [
        ("/id", "12345678901234567890123"),
        ("/price", "1.10"),
        ("/tiny", "-0.0e-7"),
        ("/paid", "true"),
        ("/note", "a\n\u{e9}\"\\"),
        ("/lines/0/sku", "x"),
        ("/lines/0", r#"{"sku": "x", "n": 1}"#),
        ("/lines/3", "7"),
        ("/a~1b/m~0n/1/0", "deep"),
        ("/a~1b/m~0n/0", "[]"),
        ("//", "empty"),
        ("/0", "zero"),
        ("/emoji", "\u{1F600}"),
        ("/lines/*/sku", "x"),
        ("/lines/*/n", "1"),
    ] {
        assert_eq!(take(&format!("json {pointer}"), &order), found(text), "{pointer}");
    }
    for pointer in ["/none", "/next", "/id/x", "/paid/x", "/note/0", "/lines/5", "/lines/-", "/lines/00", "/lines/sku"]
    {
        assert_eq!(take(&format!("json {pointer}"), &order), Err(StepFailure::CaptureMissed), "{pointer}");
    }
    assert_eq!(take("json", &body(b" [1] ")), found("[1]"));
    assert_eq!(take("json", &body(b"\xEF\xBB\xBF\"marked\"")), found("marked"));
}

#[test]
fn every_element_is_picked_from() {
    let order = body(ORDER);
    let skus = "json /lines/*/sku";
    assert_eq!(pick(skus, Pick::First, &order), found("x"));
    assert_eq!(pick(skus, Pick::Last, &order), found("z"));
    assert_eq!(pick(skus, Pick::All, &order), list(&["x", "y", "z"]));
    assert_eq!(pick(skus, Pick::Count, &order), found("3"));
    assert_eq!(pick("json /none/*", Pick::Count, &order), found("0"));
    assert_eq!(pick("json /none/*", Pick::All, &order), Err(StepFailure::CaptureMissed));
    assert_eq!(pick("json /a~1b/*/*/*", Pick::All, &order), list(&["deep"]));
    assert_eq!(pick("json /*", Pick::Count, &order), found("11"));
    let mut random = Random::new(3);
    let any = Capture::new(skus, Pick::Random, None).expect("a capture");
    let mut seen: Vec<Value> = (0..50).filter_map(|_| any.take(&order, &mut random).ok()).collect();
    seen.sort_by_key(|value| format!("{value:?}"));
    seen.dedup();
    assert_eq!(seen, [Value::from("x"), Value::from("y"), Value::from("z")]);
}

#[test]
fn a_default_stands_in_for_nothing_and_not_for_nonsense() {
    let with = |pick, default: &str| Capture::new("json /x/*", pick, Some(default.to_owned())).expect("a capture");
    let mut random = Random::new(1);
    let empty = body(b"{}");
    assert_eq!(with(Pick::First, "").take(&empty, &mut random), found(""));
    assert_eq!(with(Pick::All, "").take(&empty, &mut random), list(&[]));
    assert_eq!(with(Pick::All, "a").take(&empty, &mut random), list(&["a"]));
    assert_eq!(with(Pick::Count, "a").take(&empty, &mut random), found("0"));
    assert_eq!(with(Pick::First, "").take(&body(b"<html>"), &mut random), Err(StepFailure::BadJson));
}

#[test]
fn invalid_json_is_reported_with_its_place() {
    for bad in [
        &b""[..],
        b"<html>",
        b"{",
        b"{\"a\": 1",
        b"{\"a\": 1}}",
        b"{\"a\": 1} x",
        b"{\"a\": 01, \"b\": 2}",
        b"{\"a\" 1}",
        b"{a: 1}",
        b"{'a': 1}",
        b"[1, 2,]",
        b"{\"a\": tru}",
        b"{\"a\": \"\x01\"}",
        b"{\"a\xff\": 1}",
        b"{\"b\": \"\\ud800\"}",
        b"{\"b\": \"\xff\"}",
        b"{\"b\": \"\\x\"}",
        b"\0",
        b"\"x",
        b"nul",
        b"-",
    ] {
        assert_eq!(take("json /b", &body(bad)), Err(StepFailure::BadJson), "{}", String::from_utf8_lossy(bad));
    }
    // What comes after the place is not looked at.
    assert_eq!(take("json /b", &body(b"{\"b\": [1, 2], nonsense")), found("[1, 2]"));
    // Nor are strings beside the way decoded.
    assert_eq!(take("json /b", &body(b"{\"a\": \"\xff\\ud800\", \"b\": 1}")), found("1"));
}

#[test]
fn nesting_neither_ends_the_stack_nor_the_search() {
    for depth in [127, 128, 10_000, 1_000_000] {
        let deep = format!("{{\"a\": {}{}, \"b\": 1}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(take("json /b", &body(deep.as_bytes())), found("1"));
        assert_eq!(take("json /a/0/0", &body(deep.as_bytes())), found(&deep[8..6 + 2 * depth - 2]));
        let open = "[".repeat(depth);
        assert_eq!(take("json /b", &body(open.as_bytes())), Err(StepFailure::BadJson));
        assert_eq!(take("json /b", &cut(open.as_bytes())), Err(StepFailure::CaptureMissed));
        let objects = "{\"a\":".repeat(depth);
        assert_eq!(take(&format!("json {}", "/a".repeat(100)), &body(objects.as_bytes())), Err(StepFailure::BadJson));
    }
}

#[test]
fn wherever_a_body_is_cut_the_value_is_the_true_one_or_missed() {
    let texts = [ORDER, br#"{"a": [-1.5e+10, {"b": "\u00e9\ud83d\ude00"}], "c": false, "price": -120}"#, b"-12.5E-3\n"];
    for text in texts {
        for pointer in ["/id", "/price", "/a/0", "/a/*/b", "/c", "/a/0/x", "/lines/4/n", "/note", "/emoji", ""] {
            let capture = format!("json {pointer}");
            let whole = take(&capture, &body(text));
            for end in 0..text.len() {
                let value = take(&capture, &cut(&text[..end]));
                let cut_off = String::from_utf8_lossy(&text[..end]);
                assert!(
                    value == Err(StepFailure::CaptureMissed) || value == whole,
                    "{pointer} in {cut_off}: {value:?}"
                );
            }
        }
    }
    assert_eq!(take("json /id", &cut(b"{\"a\": 1}} ")), Err(StepFailure::BadJson));
    assert_eq!(pick("json /lines/*/sku", Pick::Count, &cut(ORDER)), Err(StepFailure::CaptureMissed));
    assert_eq!(pick("json /lines/*/sku", Pick::First, &cut(ORDER)), found("x"));
}

/// A random value, and text for it with blanks here and there.
fn random_json(random: &mut Random, depth: u64) -> Json {
    const NAMES: [&str; 12] = ["a", "b", "0", "1", "01", "-", "*", "a/b", "m~n", "", "~1", "\u{e9}\n\""];
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => Json::Null,
        1 => Json::Bool(random.below(2) == 0),
        2 => Json::from(random.next() as i64 >> random.below(64)),
        3 => Json::from((random.unit() - 0.5) * 1e9),
        4 => Json::from(NAMES[random.below(12) as usize].repeat(random.below(3) as usize)),
        5 => (0..random.below(5)).map(|_| random_json(random, depth - 1)).collect(),
        _ => {
            let member =
                |random: &mut Random| (NAMES[random.below(12) as usize].to_owned(), random_json(random, depth - 1));
            Json::Object((0..random.below(7)).map(|_| member(random)).collect())
        }
    }
}

fn random_pointer(random: &mut Random) -> String {
    const PARTS: [&str; 11] = ["/a", "/b", "/0", "/1", "/01", "/-", "/a~1b", "/m~0n", "/", "/~01", "/\u{e9}\n\""];
    (0..random.below(4)).map(|_| PARTS[random.below(11) as usize]).collect()
}

/// All places by way of the tree; `*` as in [`Pointer`].
fn places<'a>(json: &'a Json, pointer: &str) -> Vec<&'a Json> {
    let Some((before, after)) = pointer.split_once("/*") else { return json.pointer(pointer).into_iter().collect() };
    match json.pointer(before) {
        Some(Json::Array(elements)) => elements.iter().flat_map(|element| places(element, after)).collect(),
        Some(Json::Object(members)) => members.values().flat_map(|member| places(member, after)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_walk_finds_what_the_tree_has() {
    let mut random = Random::new(20);
    let mut hits = 0;
    for round in 0..20_000 {
        let json = random_json(&mut random, 4);
        let text = if round % 2 == 0 { json.to_string() } else { serde_json::to_string_pretty(&json).expect("text") };
        // Read back, since its numbers may come out a little different.
        let json: Json = serde_json::from_str(&text).expect("it is JSON");
        let mut pointer = random_pointer(&mut random);
        if round % 3 == 0 {
            pointer = format!("{pointer}/*{}", random_pointer(&mut random));
        }
        let response = body(text.as_bytes());
        let mut found = Vec::new();
        json::each(&response, &Pointer::parse(&pointer).expect("a pointer"), &mut |raw| {
            found.push(raw);
            std::ops::ControlFlow::Continue(())
        })
        .expect("it is JSON");
        let wanted = places(&json, &pointer);
        let parsed: Vec<Json> = found.iter().map(|raw| serde_json::from_str(raw).expect("JSON")).collect();
        assert!(parsed.iter().eq(wanted.iter().copied()), "{pointer:?} in {text}: {found:?}");
        let first = json_at(&response, &Pointer::parse(&pointer).expect("a pointer")).expect("it is JSON");
        match wanted.first() {
            Some(Json::String(content)) => assert_eq!(first.as_deref(), Some(content.as_str())),
            Some(other) => assert_eq!(serde_json::from_str::<Json>(&first.expect("found")).as_ref().ok(), Some(*other)),
            None => assert_eq!(first, None),
        }
        hits += wanted.len();
    }
    assert!(hits > 3_000, "{hits} hits test too little");
}

#[test]
fn a_pattern_gives_its_group_or_all_of_the_match() {
    let page = body(b"<a href='/p/17'>one</a> \0\xff <a href='/p/23'>two</a>");
    assert_eq!(take(r"regex /p/(\d+)", &page), found("17"));
    assert_eq!(take(r"regex /p/\d+", &page), found("/p/17"));
    assert_eq!(pick(r"regex /p/(\d+)", Pick::All, &page), list(&["17", "23"]));
    assert_eq!(pick(r"regex a href", Pick::Count, &page), found("2"));
    assert_eq!(take(r"regex (b)|one", &page), found("one"));
    assert_eq!(take(r"regex (?-u)\x00(.)", &page), found("\u{FFFD}"));
    assert_eq!(take(r"regex nothing", &page), Err(StepFailure::CaptureMissed));
    assert_eq!(take(r"regex /p/(\d+)", &cut(b"/p/1")), Err(StepFailure::CaptureMissed));
    assert_eq!(take(r"regex /p/(\d+)", &cut(b"/p/1 ")), found("1"));
    assert_eq!(take(r"regex /p/\d+", &cut(b"/p/1")), Err(StepFailure::CaptureMissed));
}

#[test]
fn costly_patterns_are_refused() {
    let error = |pattern: &str| Capture::parse(pattern).expect_err("an error");
    assert!(error(r"regex (\w{100}){100}").contains("too much memory"));
    assert!(error(&format!("regex {}{}", "(".repeat(1_000), ")".repeat(1_000))).contains("the pattern is wrong"));
    assert_eq!(error("regex a(b"), "the pattern is wrong: unclosed group");
    // A pattern that backtracks for ever elsewhere.
    let hostile = "a".repeat(100_000);
    assert_eq!(take("regex (a+)+$ b", &body(hostile.as_bytes())), Err(StepFailure::CaptureMissed));
}

#[test]
fn the_other_sources() {
    let fields: Vec<(&[u8], &[u8])> =
        vec![(b"Location", b"/orders/7"), (b"set-cookie", b"sid=a; Path=/"), (b"set-cookie", b"sid=b")];
    let columns: Vec<(&str, Option<&[u8]>)> =
        vec![("id", Some(b"9")), ("ID", Some(b"10")), ("Name", Some(b"")), ("gone", None)];
    let response = Response { fields: &fields, columns: &columns, rows: 3, ..body(b"") };
    assert_eq!(take("header location", &response), found("/orders/7"));
    assert_eq!(take("header x", &response), Err(StepFailure::CaptureMissed));
    assert_eq!(take("cookie sid", &response), found("b"));
    assert_eq!(pick("cookie sid", Pick::All, &response), list(&["b"]));
    assert_eq!(pick("header set-cookie", Pick::Count, &response), found("2"));
    assert_eq!(take("status", &response), found("200"));
    assert_eq!(take("body", &response), found(""));
    assert_eq!(take("body", &body(b"\xff\0a")), found("\u{FFFD}\0a"));
    assert_eq!(take("body", &cut(b"a")), Err(StepFailure::CaptureMissed));
    assert_eq!(take("column ID", &response), found("10"));
    assert_eq!(take("column Id", &response), found("9"));
    assert_eq!(take("column name", &response), found(""));
    assert_eq!(take("column gone", &response), Err(StepFailure::CaptureMissed));
    assert_eq!(take("column none", &response), Err(StepFailure::CaptureMissed));
    assert_eq!(take("rows", &response), found("3"));
}

#[test]
fn each_source_says_what_it_needs() {
    let needs = |source: &str| {
        let capture = Capture::parse(source).expect(source);
        let needs = capture.needs();
        (needs.head, needs.body, capture.is_of_statement())
    };
    for source in ["json /a", "json", "regex a", "body"] {
        assert_eq!(needs(source), (false, true, false), "{source}");
    }
    for source in ["header a", "cookie a"] {
        assert_eq!(needs(source), (true, false, false), "{source}");
    }
    assert_eq!(needs("status"), (false, false, false));
    for source in ["column a", "rows"] {
        assert_eq!(needs(source), (false, false, true), "{source}");
    }
}

#[test]
fn slips_in_a_capture_are_explained() {
    let error = |source: &str| Capture::parse(source).expect_err(source);
    assert_eq!(error("jsn /a"), "'jsn' is not a source; use json, regex, header, cookie, status, body, column or rows");
    assert!(error("").starts_with("'' is not"));
    assert_eq!(error("json token"), "the JSON pointer 'token' does not begin with '/'; write '/token'");
    assert_eq!(error("header"), "'header' needs a name, as in 'header Location'");
    assert_eq!(error("cookie  "), "'cookie' needs a name, as in 'cookie session'");
    assert_eq!(error("status 200"), "'status' takes no argument; remove '200'");
    assert!(error("regex ").contains("needs a pattern"));
}
